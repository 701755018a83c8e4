//! Processor time of a process, thread by thread.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// CPU time of the threads of a process at one moment. Only the difference of
/// two such readings is meaningful.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuTimes {
    clock: Clock,
    /// Nanoseconds by thread id; under the process's own where only all
    /// threads together are known.
    tasks: BTreeMap<u32, u64>,
}

/// Kernels have two counts of the same time, which do not agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    /// To the nanosecond, each thread for itself.
    Fine,
    /// Hundredths of a second, all threads together.
    Coarse,
}

impl CpuTimes {
    /// Reads what a process has used so far.
    ///
    /// # Errors
    /// When there is no such process, or the kernel does not say.
    pub fn of(pid: u32) -> Result<Self> {
        let process = format!("/proc/{pid}");
        let process = Path::new(&process);
        let tasks = fine_times(&process.join("task"))?;
        if tasks.values().any(|nanoseconds| *nanoseconds > 0) {
            return Ok(Self {
                clock: Clock::Fine,
                tasks,
            });
        }
        let stat = std::fs::read_to_string(process.join("stat"))?;
        Ok(Self {
            clock: Clock::Coarse,
            tasks: BTreeMap::from([(pid, coarse_time(&stat)?)]),
        })
    }

    /// Seconds that were used since an earlier reading. A thread that began in
    /// between counts whole; one that ended takes its time with it, and ours
    /// do not end.
    ///
    /// # Errors
    /// When the two cannot be compared.
    pub fn s_since(&self, before: &Self) -> Result<f64> {
        ensure!(
            self.clock == before.clock,
            "processor time was read by two clocks"
        );
        let mut sum = 0;
        for (task, now) in &self.tasks {
            let then = before.tasks.get(task).copied().unwrap_or(0);
            sum += now.checked_sub(then).with_context(|| {
                format!("thread {task} has used less processor time than before")
            })?;
        }
        Ok(sum as f64 / 1e9)
    }
}

/// CPU time of each thread, to the nanosecond. A thread may end while we read,
/// and kernels without this count have none of the files.
fn fine_times(tasks: &Path) -> Result<BTreeMap<u32, u64>> {
    let mut times = BTreeMap::new();
    for task in std::fs::read_dir(tasks).context("listing threads")? {
        let task = task?;
        let id = task.file_name();
        let id = id.to_str().and_then(|id| id.parse().ok());
        let id = id.context("a thread's id is a number")?;
        let Ok(text) = std::fs::read_to_string(task.path().join("schedstat")) else {
            continue;
        };
        let nanoseconds = text.split_whitespace().next().map(str::parse);
        times.insert(id, nanoseconds.context("schedstat is empty")??);
    }
    Ok(times)
}

/// CPU time of all threads together, from `/proc/PID/stat`.
fn coarse_time(stat: &str) -> Result<u64> {
    let (_, rest) = stat.rsplit_once(')').context("a process has a name")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    let (user, system) = (ticks(11).context("utime")?, ticks(12).context("stime")?);
    // USER_HZ has been 100 on Linux for every architecture we build for.
    Ok((user + system) * 10_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fine(tasks: &[(u32, u64)]) -> CpuTimes {
        CpuTimes {
            clock: Clock::Fine,
            tasks: tasks.iter().copied().collect(),
        }
    }

    #[test]
    fn threads_that_come_and_go_do_not_spoil_the_difference() {
        let before = fine(&[(1, 1_000_000_000), (2, 7_000_000_000)]);
        let after = fine(&[(1, 1_500_000_000), (3, 250_000_000)]);
        assert_eq!(after.s_since(&before).unwrap(), 0.75, "2 has ended");
    }

    #[test]
    fn what_cannot_be_compared_is_an_error() {
        let before = fine(&[(1, 2_000_000_000)]);
        assert!(fine(&[(1, 1_999_999_999)]).s_since(&before).is_err());
        let coarse = CpuTimes {
            clock: Clock::Coarse,
            ..fine(&[(1, 3_000_000_000)])
        };
        assert!(coarse.s_since(&before).is_err(), "another clock");
    }

    #[test]
    fn a_thread_that_ends_while_it_is_read_is_left_out() {
        let name = format!("frolic-tasks-{}", std::process::id());
        let tasks = std::env::temp_dir().join(name);
        for thread in ["11", "12"] {
            std::fs::create_dir_all(tasks.join(thread)).unwrap();
        }
        std::fs::write(tasks.join("11/schedstat"), "1500 20 3\n").unwrap();
        let times = fine_times(&tasks).unwrap();
        std::fs::remove_dir_all(&tasks).unwrap();
        assert_eq!(times, BTreeMap::from([(11, 1500)]));
    }

    #[test]
    fn the_coarse_count_is_in_hundredths() {
        let stat = "42 (a (b) c) S 1 1 1 0 -1 4 0 0 0 0 150 50 0 0 20 0";
        assert_eq!(coarse_time(stat).unwrap(), 2_000_000_000);
        assert!(coarse_time("42 (cut) S 1 1").is_err());
    }

    #[test]
    fn our_own_time_goes_on() {
        let pid = std::process::id();
        let before = CpuTimes::of(pid).unwrap();
        let after = CpuTimes::of(pid).unwrap();
        assert!(after.s_since(&before).unwrap() >= 0.0);
    }
}
