//! How long a tick reads what clients say.

use std::time::{Duration, Instant};

/// What part of a tick's time may go into reading. When everybody speaks at
/// once the rest is read in the next tick, together with what came meanwhile,
/// rather than making this one late for all.
const READING_SHARE: f32 = 0.25;

/// The part of a tick's time in which something is read.
pub(super) struct ReadingShare {
    until: Instant,
    /// So many are read before the clock is looked at.
    at_once: usize,
}

impl ReadingShare {
    /// From now on, in a world of so many ticks per second.
    pub fn new(began: Instant, tick_hz: u32, at_once: usize) -> Self {
        let share = Duration::from_secs(1).mul_f32(READING_SHARE) / tick_hz.max(1);
        Self {
            until: began + share,
            at_once,
        }
    }

    /// Whether the rest is for the next tick, behind so many.
    pub fn is_used_after(&self, count: usize, now: impl FnOnce() -> Instant) -> bool {
        count > 0 && count.is_multiple_of(self.at_once) && now() > self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_in_a_tick_has_its_share_of_the_time_and_no_more() {
        const AT_ONCE: usize = 64;
        let began = Instant::now();
        let share = ReadingShare::new(began, 50, AT_ONCE);
        // A message takes so many microseconds.
        let taken = |each_us: u64| {
            let now = |count: usize| began + Duration::from_micros(each_us * count as u64);
            let stops = |count: &usize| share.is_used_after(*count, || now(*count));
            (0..8 * 1024).find(stops)
        };
        assert_eq!(taken(0), None, "all of them");
        // A quarter of 20 ms.
        assert_eq!(taken(10), Some(512));
        assert_eq!(taken(1_000), Some(AT_ONCE), "some in every tick");
    }
}
