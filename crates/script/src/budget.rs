//! CPU time budget of a world's scripts: an average per tick, with savings for
//! peaks.

use std::time::Duration;

/// The time budget of a world.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    /// Time used beyond the average; at most the savings while within budget.
    used: Duration,
    waiting: bool,
}

/// The action after a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing.
    GoOn,
    /// Pause the script that used most.
    Pause,
    /// Resume paused scripts.
    Resume,
}

impl Budget {
    /// Charges one tick. Paused scripts resume when the savings are full again,
    /// so that the average holds whatever scripts do in between.
    pub fn charge(&mut self, spent: Duration, average: Duration, savings: Duration) -> Verdict {
        self.used = (self.used + spent).saturating_sub(average);
        // In debt without spending: the responsible scripts are paused already.
        if self.used > savings && spent > average {
            // The debt is bounded, or one bad moment would pause scripts for a
            // minute.
            self.used = self.used.min(savings * 2);
            self.waiting = true;
            return Verdict::Pause;
        }
        if self.waiting && self.used.is_zero() {
            self.waiting = false;
            return Verdict::Resume;
        }
        Verdict::GoOn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AVERAGE: Duration = Duration::from_millis(4);
    const SAVINGS: Duration = Duration::from_millis(100);

    #[test]
    fn a_heavy_moment_is_paid_from_savings() {
        let mut budget = Budget::default();
        let ms = Duration::from_millis;
        assert_eq!(budget.charge(ms(90), AVERAGE, SAVINGS), Verdict::GoOn);
        for _ in 0..100 {
            assert_eq!(budget.charge(ms(3), AVERAGE, SAVINGS), Verdict::GoOn);
        }
    }

    #[test]
    fn a_script_that_always_takes_too_much_gets_the_average() {
        let mut budget = Budget::default();
        let (mut running, mut spent) = (true, Duration::ZERO);
        for _ in 0..1000 {
            let tick = if running { 40 } else { 0 };
            spent += Duration::from_millis(tick);
            match budget.charge(Duration::from_millis(tick), AVERAGE, SAVINGS) {
                Verdict::Pause => running = false,
                Verdict::Resume => running = true,
                Verdict::GoOn => {}
            }
        }
        let mean = spent / 1000;
        assert!(mean < AVERAGE + AVERAGE / 4, "{mean:?} per tick");
    }

    #[test]
    fn nobody_else_waits_for_the_debt_of_one() {
        let mut budget = Budget::default();
        let ms = Duration::from_millis;
        assert_eq!(budget.charge(ms(500), AVERAGE, SAVINGS), Verdict::Pause);
        let resumed = (1..200).find(|_| {
            let verdict = budget.charge(ms(1), AVERAGE, SAVINGS);
            assert_ne!(verdict, Verdict::Pause);
            verdict == Verdict::Resume
        });
        assert_eq!(resumed, Some(67), "200 ms of debt at 3 ms per tick");
    }
}
