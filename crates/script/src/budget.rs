//! Time that the scripts of a world have: so much per tick on average, with
//! some saved up for a heavy moment.

use std::time::Duration;

/// What is left of a world's time.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    /// Time that is owed, at most the savings when all is well.
    used: Duration,
    waiting: bool,
}

/// What to do after a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing.
    GoOn,
    /// Somebody has to wait.
    Pause,
    /// Whoever waits may go on.
    Resume,
}

impl Budget {
    /// Charges one tick. Who waits goes on when everything is saved up again,
    /// so that the average holds whatever a script does in between.
    pub fn charge(&mut self, spent: Duration, average: Duration, savings: Duration) -> Verdict {
        self.used = (self.used + spent).saturating_sub(average);
        // In debt without spending: whoever is to blame waits already.
        if self.used > savings && spent > average {
            // The debt is paid by waiting; without a bound one bad moment
            // would be paid for a minute.
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
    fn whoever_always_takes_too_much_gets_the_average() {
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
