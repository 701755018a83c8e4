//! Time of a load process: it stops while the process is paused.
//!
//! `frolic bench crowd` pauses processes so that others can run. With the wall
//! clock, a resumed process would send at once everything that was due
//! meanwhile.

use std::time::{Duration, Instant};

/// The clock is read more often than this while the process runs.
const STOPPED: Duration = Duration::from_millis(500);

/// A clock that stops while its process is stopped, if it is read often
/// enough.
pub struct RunClock {
    started: Instant,
    asked: Instant,
}

impl RunClock {
    /// Starts at nothing.
    pub fn start() -> Self {
        let now = Instant::now();
        Self {
            started: now,
            asked: now,
        }
    }

    /// Time since the start in which the process ran.
    pub fn elapsed(&mut self) -> Duration {
        self.elapsed_at(Instant::now())
    }

    fn elapsed_at(&mut self, now: Instant) -> Duration {
        let since = now.saturating_duration_since(self.asked);
        if since > STOPPED {
            self.started += since;
        }
        self.asked = now;
        now.saturating_duration_since(self.started)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stands_still_while_the_clock_is_not_read() {
        let mut clock = RunClock::start();
        let start = clock.asked;
        let mut at = |ms| {
            clock
                .elapsed_at(start + Duration::from_millis(ms))
                .as_millis()
        };
        assert_eq!([at(10), at(400)], [10, 400]);
        assert_eq!(at(1_700), 400, "it was stopped");
        assert_eq!(at(1_750), 450);
    }
}
