//! Moments between ticks, and the moment that a player's client shows.

/// The longest rewind. A player with more latency has to aim ahead, because the
/// others could not defend themselves against an older shot.
pub const REWIND_MAX_MS: u32 = 250;
/// How far behind the newest snapshot a client is assumed to show others if it
/// does not report it: the buffer that docs/protocol/websocket.md recommends.
pub(crate) const BUFFER_MS: u32 = 100;
/// Fractions of a tick in which moments are counted.
pub(crate) const PER_TICK: u64 = 256;

/// A moment between two ticks: the tick, then its fraction in the low byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(pub u64);

impl Moment {
    pub fn new(tick: u32, fraction: u8) -> Self {
        Self(u64::from(tick) * PER_TICK + u64::from(fraction))
    }

    pub fn tick(self) -> u32 {
        (self.0 / PER_TICK) as u32
    }

    /// Progress to the next tick, from 0 up to 1.
    pub fn fraction(self) -> f32 {
        (self.0 % PER_TICK) as f32 / PER_TICK as f32
    }

    pub fn before(self, ms: u32, tick_hz: u32) -> Self {
        let back = u64::from(ms) * u64::from(tick_hz) * PER_TICK / 1000;
        Self(self.0.saturating_sub(back))
    }

    pub fn ticks_before(self, ticks: f32) -> Self {
        Self(self.0.saturating_sub((ticks * PER_TICK as f32) as u64))
    }

    /// As a number for a fingerprint.
    pub fn word(self) -> u64 {
        self.0
    }
}

/// What a player's client is known to show.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shown {
    /// The moment that it reported.
    pub said: Option<Moment>,
    /// Otherwise the moment is estimated from this.
    pub round_trip_ms: u16,
}

impl Shown {
    /// Records a client's report. A reordered message reports slightly less
    /// than the one before; a real step back is larger than that.
    pub fn note(&mut self, moment: Moment, tick_hz: u32) -> bool {
        let overtaken = self
            .said
            .is_some_and(|known| moment < known && moment >= known.before(REWIND_MAX_MS, tick_hz));
        let is_new = !overtaken && self.said != Some(moment);
        if is_new {
            self.said = Some(moment);
        }
        is_new
    }

    /// The moment to query if `now` is the newest.
    pub fn moment(self, now: Moment, tick_hz: u32) -> Moment {
        let estimate = || {
            let behind = BUFFER_MS + u32::from(self.round_trip_ms);
            now.before(behind, tick_hz)
        };
        let oldest = now.before(REWIND_MAX_MS, tick_hz);
        self.said.unwrap_or_else(estimate).clamp(oldest, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_believed_within_a_quarter_of_a_second() {
        let (now, oldest) = (Moment::new(1000, 0), Moment::new(985, 0));
        let at = |said| Shown {
            said: Some(said),
            round_trip_ms: 0,
        };
        let cases = [
            (Moment::new(990, 128), Moment::new(990, 128)),
            (Moment::new(0, 0), oldest),
            (Moment::new(984, 255), oldest),
            (Moment::new(1000, 1), now),
            (Moment::new(u32::MAX, 255), now),
        ];
        for (said, used) in cases {
            assert_eq!(at(said).moment(now, 60), used, "{said:?}");
        }
        let silent = |round_trip_ms| Shown {
            said: None,
            round_trip_ms,
        };
        assert_eq!(silent(0).moment(now, 60), Moment::new(994, 0));
        assert_eq!(silent(100).moment(now, 60), Moment::new(988, 0));
        assert_eq!(silent(u16::MAX).moment(now, 60), oldest);
        assert_eq!(silent(9).moment(Moment::new(2, 0), 60), Moment::new(0, 0));
    }

    #[test]
    fn an_overtaken_message_is_old_news_and_a_step_back_is_not() {
        let mut shown = Shown::default();
        assert!(shown.note(Moment::new(500, 10), 60));
        assert!(!shown.note(Moment::new(499, 0), 60), "overtaken");
        assert!(!shown.note(Moment::new(500, 10), 60), "known");
        assert!(
            shown.note(Moment::new(u32::MAX, 0), 60),
            "believed when used"
        );
        assert!(shown.note(Moment::new(501, 0), 60), "and taken back");
    }
}
