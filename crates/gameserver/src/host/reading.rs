//! Limits the time a tick spends on reading client messages.

use std::time::{Duration, Instant};

/// The fraction of a tick's time that reading may take. When all clients send at
/// once the rest is read in the next tick, together with what arrived meanwhile,
/// rather than making this tick late for all.
const READING_SHARE: f32 = 0.25;

/// The part of a tick's time that is used for reading.
pub(super) struct ReadingShare {
    until: Instant,
    /// How many are read between two checks of the clock.
    at_once: usize,
}

impl ReadingShare {
    /// Starts now, in a world of `tick_hz` ticks per second.
    pub fn new(began: Instant, tick_hz: u32, at_once: usize) -> Self {
        let share = Duration::from_secs(1).mul_f32(READING_SHARE) / tick_hz.max(1);
        Self {
            until: began + share,
            at_once,
        }
    }

    /// Whether the rest must wait for the next tick, after `count` reads.
    pub fn is_used_after(&self, count: usize, now: impl FnOnce() -> Instant) -> bool {
        count > 0 && count.is_multiple_of(self.at_once) && now() > self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_stays_within_its_fraction_of_a_tick() {
        const AT_ONCE: usize = 64;
        let began = Instant::now();
        let share = ReadingShare::new(began, 50, AT_ONCE);
        // Each message takes `each_us` microseconds.
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
