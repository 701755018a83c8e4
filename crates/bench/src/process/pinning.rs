//! Whether two processes can have a core each, so that a load does not slow the
//! server it measures.

use std::process::Command;

/// The conditions for pinning.
struct Machine {
    cores: usize,
    has_taskset: bool,
    /// Which threads share the first of two cores, as the kernel lists them:
    /// `0,4` or `0-1`.
    siblings: String,
}

impl Machine {
    fn look(core: usize) -> Self {
        let siblings = format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
        Self {
            cores: cores(),
            has_taskset: has_taskset(),
            siblings: std::fs::read_to_string(siblings).unwrap_or_default(),
        }
    }
}

/// Whether a process can be pinned to this core.
pub fn can_pin(core: usize) -> bool {
    cores() > core && has_taskset()
}

/// Why figures of two processes on these cores are worth less.
pub fn doubts(cores: [usize; 2]) -> Vec<String> {
    doubts_of(&Machine::look(cores[0]), cores)
}

fn doubts_of(machine: &Machine, [one, other]: [usize; 2]) -> Vec<String> {
    let mut doubts = Vec::new();
    if !machine.has_taskset {
        doubts.push("nothing was pinned to a core: there is no `taskset`".to_owned());
    }
    if machine.cores <= one.max(other) {
        doubts.push(format!(
            "server and load shared cores: there are {} and not {}",
            machine.cores,
            one.max(other) + 1
        ));
    } else if is_listed(&machine.siblings, other) {
        doubts.push(format!(
            "cores {one} and {other} are threads of one: each slows the other down"
        ));
    }
    doubts
}

/// Whether a list as `0-1,4` holds a number.
fn is_listed(list: &str, number: usize) -> bool {
    list.trim().split(',').any(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let bounds = first.parse().ok().zip(last.parse().ok());
        bounds.is_some_and(|(first, last): (usize, usize)| (first..=last).contains(&number))
    })
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn has_taskset() -> bool {
    let version = Command::new("taskset").arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_pinning_is_said() {
        let check = |cores: usize, has_taskset: bool, siblings: &str, expected: &[&str]| {
            let machine = Machine {
                cores,
                has_taskset,
                siblings: siblings.to_owned(),
            };
            let doubts = doubts_of(&machine, [0, 1]);
            assert_eq!(doubts.len(), expected.len(), "{doubts:?}");
            for (doubt, part) in doubts.iter().zip(expected) {
                assert!(doubt.contains(part), "{doubt}");
            }
        };
        check(2, true, "0\n", &[]);
        check(8, true, "0,4\n", &[]);
        check(8, true, "", &[]);
        check(2, false, "0\n", &["taskset"]);
        check(1, true, "0\n", &["there are 1 and not 2"]);
        check(2, true, "0-1\n", &["threads of one"]);
        check(4, true, "0,1\n", &["threads of one"]);
        check(1, false, "0\n", &["taskset", "there are 1"]);
    }
}
