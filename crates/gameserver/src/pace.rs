//! How fast a client reads, and what follows from it: every update, fewer
//! updates, the door.

use std::time::{Duration, Instant};

/// A client that is behind for this long gets updates more rarely from then on.
const BEHIND_MAX: Duration = Duration::from_millis(500);
/// Between two steps down.
const STEP_DOWN: Duration = Duration::from_secs(1);
/// A client that keeps up for this long gets updates more often again.
const STEP_UP: Duration = Duration::from_secs(5);
/// At the lowest rate, one update in 2^3 is sent.
const LEVEL_MAX: u8 = 3;
/// A client that takes nothing at all for this long is let go.
pub const STUCK_MAX: Duration = Duration::from_secs(8);

/// What one client keeps up with.
#[derive(Debug)]
pub struct Pace {
    level: u8,
    updates: u32,
    behind_since: Option<Instant>,
    changed: Instant,
}

impl Pace {
    /// A client that is believed to keep up.
    pub fn new(now: Instant) -> Self {
        Self {
            level: 0,
            updates: 0,
            behind_since: None,
            changed: now,
        }
    }

    /// Whether the update that is due now is to be made. `behind`: what was
    /// sent before has not been taken yet.
    pub fn takes_update(&mut self, behind: bool, now: Instant) -> bool {
        let since_change = now.saturating_duration_since(self.changed);
        if behind {
            let since = *self.behind_since.get_or_insert(now);
            let long = now.saturating_duration_since(since) >= BEHIND_MAX;
            if long && self.level < LEVEL_MAX && (self.level == 0 || since_change >= STEP_DOWN) {
                self.level += 1;
                self.changed = now;
            } else if long {
                // The way back up counts from when it keeps up.
                self.changed = self.changed.max(now.checked_sub(STEP_DOWN).unwrap_or(now));
            }
            return false;
        }
        self.behind_since = None;
        if self.level > 0 && since_change >= STEP_UP {
            self.level -= 1;
            self.changed = now;
        }
        self.updates = self.updates.wrapping_add(1);
        self.updates.is_multiple_of(1 << self.level)
    }

    /// Whether the client gets fewer updates than it should.
    pub fn is_slow(&self) -> bool {
        self.level > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Updates sent in each of the given seconds at 20 Hz.
    fn run(behind: impl Fn(u64) -> bool, seconds: u64) -> Vec<u32> {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        (0..seconds)
            .map(|second| {
                let sent = |n: &u64| {
                    let ms = second * 1000 + n * 50;
                    let now = start + Duration::from_millis(ms);
                    pace.takes_update(behind(ms), now)
                };
                (0..20).filter(sent).count() as u32
            })
            .collect()
    }

    #[test]
    fn a_short_jam_costs_only_the_updates_within_it() {
        assert_eq!(run(|ms| (1000..1300).contains(&ms), 4), [20, 14, 20, 20]);
    }

    #[test]
    fn a_long_jam_lowers_the_rate_and_keeping_up_brings_it_back() {
        let sent = run(|ms| ms < 5000, 30);
        assert_eq!(sent[..5], [0; 5]);
        assert!(sent[5] <= 3, "an eighth at first: {sent:?}");
        let blocks: Vec<u32> = sent.chunks(5).map(|block| block.iter().sum()).collect();
        assert!(blocks.is_sorted(), "{sent:?}");
        assert_eq!(sent[29], 20);
    }
}
