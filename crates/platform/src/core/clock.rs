//! Wall-clock time as an input, because sessions and tickets expire by it and tests control it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Source of the wall-clock time. Cheap to clone.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> i64 + Send + Sync>);

impl Clock {
    /// The system clock.
    pub fn system() -> Self {
        Self(Arc::new(|| {
            let since_epoch = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
        }))
    }

    /// A clock that changes only when the returned hand is moved.
    pub fn manual(start_ms: i64) -> (Self, ClockHand) {
        let hand = ClockHand(Arc::new(AtomicI64::new(start_ms)));
        let now = hand.0.clone();
        (Self(Arc::new(move || now.load(Ordering::Relaxed))), hand)
    }

    /// Unix time in milliseconds.
    pub fn now_ms(&self) -> i64 {
        (self.0)()
    }

    /// Unix time in whole seconds.
    pub fn now_s(&self) -> u64 {
        u64::try_from(self.now_ms() / 1000).unwrap_or(0)
    }
}

/// Moves a [`Clock::manual`].
#[derive(Clone)]
pub struct ClockHand(Arc<AtomicI64>);

impl ClockHand {
    /// Moves the clock forward.
    pub fn advance_ms(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

/// Formats Unix milliseconds as RFC 3339 in UTC.
pub fn rfc3339(unix_ms: i64) -> String {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(unix_ms) * 1_000_000)
        .ok()
        .and_then(|moment| moment.format(&Rfc3339).ok())
        // Only years outside 0..9999 end here; stored times come from our own clock.
        .unwrap_or_else(|| "1970-01-01T00:00:00Z".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rfc_3339_in_utc() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(1_763_164_800_250), "2025-11-15T00:00:00.25Z");
        assert_eq!(rfc3339(i64::MAX), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn a_manual_clock_moves_only_by_hand() {
        let (clock, hand) = Clock::manual(5_000);
        assert_eq!(clock.now_s(), 5);
        hand.advance_ms(1_500);
        assert_eq!(clock.now_ms(), 6_500);
    }
}
