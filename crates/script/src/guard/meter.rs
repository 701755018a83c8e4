//! The time of the running slice, as the watchdog measures it.

use std::time::Duration;

/// One step of the clock counts as at most this part of a slice. A watchdog
/// that was delayed, or a host that took the core away from a virtual machine
/// (the guest counts that as CPU time), then never looks like a whole slice.
/// An endless loop is still stopped, after some more looks at the clock.
const STEPS_PER_SLICE: u32 = 4;

/// Adds up the time of a slice.
#[derive(Debug)]
pub(super) struct Meter {
    step_max: Duration,
    last: Duration,
    ran: Duration,
}

impl Meter {
    pub(super) fn new(slice: Duration) -> Self {
        Self {
            step_max: slice / STEPS_PER_SLICE,
            last: Duration::ZERO,
            ran: Duration::ZERO,
        }
    }

    /// Begins a slice at a moment of the clock.
    pub(super) fn begin(&mut self, now: Duration) {
        self.last = now;
        self.ran = Duration::ZERO;
    }

    /// Adds the time since the last look; returns the time of the slice so far.
    pub(super) fn advance(&mut self, now: Duration) -> Duration {
        self.ran += now.saturating_sub(self.last).min(self.step_max);
        self.last = now;
        self.ran
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: Duration = Duration::from_millis(50);

    #[test]
    fn one_jump_of_the_clock_is_not_a_slice() {
        let ms = Duration::from_millis;
        let mut meter = Meter::new(SLICE);
        meter.begin(ms(1000));
        assert_eq!(meter.advance(ms(1002)), ms(2));
        assert!(meter.advance(ms(9000)) < SLICE, "the host took the core");
        meter.begin(ms(9000));
        assert_eq!(meter.advance(ms(9002)), ms(2), "a new slice");
    }

    #[test]
    fn an_endless_loop_is_stopped_however_seldom_the_clock_is_read() {
        for between in [2, 16, 500] {
            let mut meter = Meter::new(SLICE);
            meter.begin(Duration::ZERO);
            let looks =
                (1..).find(|look| meter.advance(Duration::from_millis(look * between)) > SLICE);
            assert!(looks <= Some(26), "{looks:?} at {between} ms");
        }
    }
}
