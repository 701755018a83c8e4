//! Detects whether reloaded scripts perform worse than those before them.
//!
//! Compares the [`BEFORE_S`] seconds before a reload with the [`AFTER_S`]
//! seconds after it, in world time. New scripts perform worse if
//! - one of them fails at start, and the file did not fail before;
//! - they raise [`ERRORS_MIN`] errors or more, and more than twice as many per
//!   second as before;
//! - after the first second they take more than twice the time per tick that
//!   scripts took before, and [`SLOWER_US`] more.

use std::collections::{BTreeSet, VecDeque};

/// Seconds of history.
const BEFORE_S: usize = 5;
/// Seconds for which new scripts are watched.
const AFTER_S: u32 = 5;
/// Fewer errors are not significant.
const ERRORS_MIN: u32 = 3;
/// Additional microseconds per tick that are significant.
const SLOWER_US: f64 = 2_000.0;

/// Totals over some ticks.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    ticks: u32,
    errors: u32,
    us: u64,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.ticks += other.ticks;
        self.errors += other.errors;
        self.us += other.us;
    }

    fn us_per_tick(&self) -> f64 {
        self.us as f64 / f64::from(self.ticks.max(1))
    }
}

/// Watches the scripts of one world.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    tick_hz: u32,
    /// One per second, the newest last.
    seconds: VecDeque<Sum>,
    /// Files that failed at their last start.
    failed: BTreeSet<String>,
    trial: Option<Trial>,
}

/// New scripts on probation.
#[derive(Debug)]
struct Trial {
    before: Sum,
    after: Sum,
    /// Files that failed at start and had not failed before.
    newly_failed: Vec<String>,
}

impl Watch {
    /// `failed`: scripts that raised an error when the world started.
    pub fn new(tick_hz: u32, failed: BTreeSet<String>) -> Self {
        Self {
            tick_hz: tick_hz.max(1),
            failed,
            ..Self::default()
        }
    }

    /// Starts watching after a reload; `failed` raised an error at start.
    pub fn reloaded(&mut self, changed: &BTreeSet<String>, failed: BTreeSet<String>) {
        let newly_failed = failed.difference(&self.failed).cloned().collect();
        self.forget(changed);
        self.failed.extend(failed);
        let mut before = Sum::default();
        self.seconds.iter().for_each(|second| before.add(*second));
        self.trial = Some(Trial {
            before,
            after: Sum::default(),
            newly_failed,
        });
    }

    /// Why the new scripts should be rolled back before their first tick.
    pub fn failed_start(&mut self) -> Option<String> {
        let reason = self.trial.as_ref()?.failed_start()?;
        self.trial = None;
        Some(reason)
    }

    /// Ends watching after a rollback.
    pub fn swapped_back(&mut self, changed: &BTreeSet<String>) {
        self.forget(changed);
        self.trial = None;
        self.seconds.clear();
    }

    fn forget(&mut self, changed: &BTreeSet<String>) {
        self.failed.retain(|path| !changed.contains(path));
    }

    /// Records one tick. Returns once why the new scripts should be rolled
    /// back.
    pub fn tick(&mut self, errors: u32, script_us: u64) -> Option<String> {
        let now = Sum {
            ticks: 1,
            errors,
            us: script_us,
        };
        if self.seconds.back().is_none_or(|s| s.ticks >= self.tick_hz) {
            self.seconds.push_back(Sum::default());
            if self.seconds.len() > BEFORE_S {
                self.seconds.pop_front();
            }
        }
        if let Some(second) = self.seconds.back_mut() {
            second.add(now);
        }
        let trial = self.trial.as_mut()?;
        trial.after.add(now);
        let verdict = trial.verdict(self.tick_hz);
        if verdict.is_some() || trial.after.ticks >= AFTER_S * self.tick_hz {
            self.trial = None;
        }
        verdict
    }
}

impl Trial {
    fn failed_start(&self) -> Option<String> {
        let path = self.newly_failed.first()?;
        Some(format!("{path} failed when it started"))
    }

    fn verdict(&self, tick_hz: u32) -> Option<String> {
        if let Some(reason) = self.failed_start() {
            return Some(reason);
        }
        let (before, after) = (&self.before, &self.after);
        // Less than a second counts as a whole one: two errors in two ticks are
        // not sixty a second.
        let seconds = |ticks: u32| (f64::from(ticks) / f64::from(tick_hz)).max(1.0);
        let rate_before = f64::from(before.errors) / seconds(before.ticks);
        let rate_after = f64::from(after.errors) / seconds(after.ticks);
        if after.errors >= ERRORS_MIN && rate_after > 2.0 * rate_before {
            return Some(format!(
                "errors rose from {rate_before:.1} to {rate_after:.1} per second"
            ));
        }
        let (us_before, us_after) = (before.us_per_tick(), after.us_per_tick());
        let slower = us_after > 2.0 * us_before && us_after > us_before + SLOWER_US;
        (after.ticks >= tick_hz && slower).then(|| {
            format!(
                "script time rose from {:.1} to {:.1} ms per tick",
                us_before / 1000.0,
                us_after / 1000.0
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> Watch {
        let mut watch = Watch::new(60, BTreeSet::new());
        for _ in 0..300 {
            assert_eq!(watch.tick(0, 500), None);
        }
        watch
    }

    fn set(paths: &[&str]) -> BTreeSet<String> {
        paths.iter().map(|&path| path.to_owned()).collect()
    }

    #[test]
    fn quiet_scripts_stay() {
        let mut watch = watch();
        watch.reloaded(&set(&["a"]), set(&[]));
        assert!((0..600).all(|tick| watch.tick(u32::from(tick == 9), 900).is_none()));
    }

    #[test]
    fn errors_that_were_not_there_before_are_noticed() {
        let mut watch = watch();
        watch.reloaded(&set(&["a"]), set(&[]));
        let verdicts: Vec<_> = (0..600).filter_map(|_| watch.tick(1, 500)).collect();
        assert_eq!(verdicts.len(), 1, "once: {verdicts:?}");
        assert!(verdicts[0].contains("from 0.0"), "{verdicts:?}");
    }

    #[test]
    fn errors_as_before_are_no_news() {
        let mut watch = Watch::new(60, BTreeSet::new());
        (0..300).for_each(|_| assert_eq!(watch.tick(1, 0), None));
        watch.reloaded(&set(&["a"]), set(&[]));
        assert!((0..600).all(|_| watch.tick(1, 0).is_none()));
    }

    #[test]
    fn slow_scripts_are_noticed_after_a_second() {
        let mut watch = watch();
        watch.reloaded(&set(&["a"]), set(&[]));
        let first = (1..600).find(|_| watch.tick(0, 5_000).is_some());
        assert_eq!(first, Some(60));
        // Twice an insignificant time is still insignificant.
        let mut watch = self::watch();
        watch.reloaded(&set(&["a"]), set(&[]));
        assert!((0..600).all(|_| watch.tick(0, 2_000).is_none()));
    }

    #[test]
    fn a_file_that_fails_at_its_start_goes_unless_it_did_before() {
        let mut watch = watch();
        watch.reloaded(&set(&["a"]), set(&["a"]));
        assert!(watch.tick(1, 0).is_some_and(|why| why.contains('a')));
        let mut watch = Watch::new(60, set(&["a"]));
        watch.reloaded(&set(&["a"]), set(&["a"]));
        assert_eq!(watch.tick(1, 0), None);
        // Fixed, then broken again.
        watch.reloaded(&set(&["a"]), set(&[]));
        watch.reloaded(&set(&["a"]), set(&["a"]));
        assert!(watch.tick(1, 0).is_some());
    }
}
