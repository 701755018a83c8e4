//! How many tests passed and failed, read from what test runners print.

use std::fmt;
use std::ops::AddAssign;

use serde_json::Value;

/// Tests that ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: usize,
    pub failed: usize,
}

impl Counts {
    /// Whether not a single test ran.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// Sums the `test result:` lines of `cargo test`.
pub fn libtest(output: &str) -> Counts {
    let mut counts = Counts::default();
    for line in output.lines() {
        let Some((_, result)) = line.split_once("test result: ") else {
            continue;
        };
        // "ok. 12 passed; 0 failed; 1 ignored; …"
        let number = |word: &str| {
            let before = result.split(word).next()?.trim_end();
            before.rsplit([' ', '.']).next()?.parse::<usize>().ok()
        };
        counts.passed += number("passed").unwrap_or(0);
        counts.failed += number("failed;").unwrap_or(0);
    }
    counts
}

/// Reads vitest's JSON report.
pub fn vitest(report: &str) -> Counts {
    let report: Value = serde_json::from_str(report).unwrap_or(Value::Null);
    let number = |name: &str| report[name].as_u64().unwrap_or(0) as usize;
    Counts {
        passed: number("numPassedTests"),
        failed: number("numFailedTests"),
    }
}

/// Reads the summary at the end of the TAP output of `node --test`.
pub fn tap(output: &str) -> Counts {
    let number = |name: &str| {
        let mut lines = output.lines().rev();
        let found = lines.find_map(|line| line.strip_prefix("# ")?.strip_prefix(name));
        found.map_or(0, |rest| rest.trim().parse().unwrap_or(0))
    };
    Counts {
        passed: number("pass "),
        failed: number("fail ") + number("cancelled "),
    }
}

/// The failed tests of `node --test`: each `not ok` with the block that explains it.
pub fn tap_failures(output: &str) -> String {
    let mut failures = String::new();
    let mut inside = false;
    for line in output.lines() {
        inside |= line.trim_start().starts_with("not ok ");
        if inside {
            failures.push_str(line);
            failures.push('\n');
            inside = line.trim() != "...";
        }
    }
    failures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_are_shown_and_passed_ones_are_not() {
        let output = "# Subtest: one\nok 1 - one\n  ---\n  duration_ms: 3\n  ...\n\
            # Subtest: two\nnot ok 2 - two\n  ---\n  error: 'why'\n  ...\nok 3 - three\n";
        let shown = tap_failures(output);
        assert_eq!(shown, "not ok 2 - two\n  ---\n  error: 'why'\n  ...\n");
    }

    #[test]
    fn libtest_lines_add_up() {
        let output = "test a ... ok\n\
            test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n\
            test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(
            libtest(output),
            Counts {
                passed: 15,
                failed: 2
            }
        );
    }

    #[test]
    fn tap_summary_counts_cancelled_as_failed() {
        let output = "ok 1 - a\n# tests 5\n# suites 1\n# pass 3\n# fail 1\n# cancelled 1\n";
        assert_eq!(
            tap(output),
            Counts {
                passed: 3,
                failed: 2
            }
        );
    }

    #[test]
    fn vitest_report_is_read() {
        let report = r#"{"numTotalTests":4,"numPassedTests":3,"numFailedTests":1}"#;
        assert_eq!(
            vitest(report),
            Counts {
                passed: 3,
                failed: 1
            }
        );
        assert_eq!(vitest("not JSON"), Counts::default());
    }
}
