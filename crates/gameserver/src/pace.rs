//! Adapts to how fast a client reads: every update, fewer updates, or
//! disconnection.

use std::time::{Duration, Instant};

/// A client that is behind for this long gets updates more rarely from then on.
const BEHIND_MAX: Duration = Duration::from_millis(500);
/// Between two steps down.
const STEP_DOWN: Duration = Duration::from_secs(1);
/// A client that keeps up for this long gets updates more often again.
const STEP_UP: Duration = Duration::from_secs(5);
/// At the lowest rate, one update in 2^3 is sent.
const LEVEL_MAX: u8 = 3;
/// A client that reads nothing at all for this long is disconnected.
const STUCK_MAX: Duration = Duration::from_secs(8);
/// So is one that reads a little now and then, and was behind all the time: it gets
/// no updates, so what it shows is that old, and it occupies a place. Congestion on
/// a playable connection ends much sooner; the player may reconnect for a minute.
const BEHIND_FOR: Duration = Duration::from_secs(30);
/// Large messages get more time: a scene has up to 16 MiB, and a slow connection is
/// no fault. A connection slower than this has no capacity for updates either.
const SLOWEST_BYTES_PER_S: f64 = 32.0 * 1024.0;

/// The update rate that one client keeps up with.
#[derive(Debug)]
pub struct Pace {
    level: u8,
    updates: u32,
    behind_since: Option<Instant>,
    changed: Instant,
}

impl Pace {
    /// A client that is assumed to keep up.
    pub fn new(now: Instant) -> Self {
        Self {
            level: 0,
            updates: 0,
            behind_since: None,
            changed: now,
        }
    }

    /// Whether the update that is due now should be made. `behind`: what was sent
    /// before has not been read yet.
    pub fn takes_update(&mut self, behind: bool, now: Instant) -> bool {
        let since_change = now.saturating_duration_since(self.changed);
        if behind {
            let since = *self.behind_since.get_or_insert(now);
            let long = now.saturating_duration_since(since) >= BEHIND_MAX;
            if long && self.level < LEVEL_MAX && (self.level == 0 || since_change >= STEP_DOWN) {
                self.level += 1;
                self.changed = now;
            } else if long {
                // The recovery time counts from when it keeps up.
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

/// What a client was sent and has not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backlog {
    /// Nothing.
    Empty,
    /// Not enough to be behind.
    Small,
    /// Enough bytes to be behind: it gets no updates.
    Large(usize),
}

/// Whether a client reads what it is sent.
#[derive(Debug, Default)]
pub struct Uptake {
    /// Since when it has read nothing although something waits.
    stuck_since: Option<Instant>,
    /// Since when it has been behind without interruption, and the maximum of
    /// bytes.
    behind_since: Option<Instant>,
    most_bytes: usize,
}

impl Uptake {
    /// Records what is left after an attempt to send, and whether anything was read
    /// since the last one.
    pub fn note(&mut self, taken: bool, left: Backlog, now: Instant) {
        self.stuck_since = match self.stuck_since {
            _ if left == Backlog::Empty => None,
            Some(since) if !taken => Some(since),
            _ => Some(now),
        };
        if let Backlog::Large(bytes) = left {
            self.behind_since.get_or_insert(now);
            self.most_bytes = self.most_bytes.max(bytes);
        } else {
            self.behind_since = None;
            self.most_bytes = 0;
        }
    }

    /// Whether it must be disconnected.
    pub fn is_too_slow(&self, now: Instant) -> bool {
        let lasts = |since: Option<Instant>, longer_than: Duration| {
            since.is_some_and(|since| now.saturating_duration_since(since) > longer_than)
        };
        let large = Duration::from_secs_f64(self.most_bytes as f64 / SLOWEST_BYTES_PER_S);
        lasts(self.stuck_since, STUCK_MAX) || lasts(self.behind_since, BEHIND_FOR + large)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many seconds a client is disconnected that has `waiting` bytes
    /// queued and reads `taken` of them in every `nth` second. None: it finishes
    /// before.
    fn let_go_after(mut waiting: usize, taken: usize, nth: u64) -> Option<u64> {
        let start = Instant::now();
        let mut uptake = Uptake::default();
        for second in 0.. {
            let now = start + Duration::from_secs(second);
            let takes = second.is_multiple_of(nth);
            waiting = waiting.saturating_sub(if takes { taken } else { 0 });
            let left = match waiting {
                0 => Backlog::Empty,
                bytes => Backlog::Large(bytes),
            };
            uptake.note(takes, left, now);
            if uptake.is_too_slow(now) {
                return Some(second);
            }
            if left == Backlog::Empty {
                return None;
            }
        }
        None
    }

    #[test]
    fn a_client_behind_for_too_long_is_disconnected_although_it_reads_a_little() {
        const KIB: usize = 1024;
        assert_eq!(let_go_after(200 * KIB, 2 * KIB, 1), Some(37));
        assert_eq!(let_go_after(200 * KIB, 2 * KIB, 5), Some(37));
        assert_eq!(let_go_after(200 * KIB, 0, 100), Some(9), "nothing at all");
        assert_eq!(let_go_after(200 * KIB, 8 * KIB, 1), None);
        // The largest scene on a connection of half a megabit.
        assert_eq!(let_go_after(16 * KIB * KIB, 64 * KIB, 1), None);
    }

    #[test]
    fn a_client_that_catches_up_now_and_then_stays() {
        let start = Instant::now();
        let mut uptake = Uptake::default();
        for second in 0..120 {
            let left = match second % 20 {
                0 => Backlog::Small,
                _ => Backlog::Large(100_000),
            };
            let now = start + Duration::from_secs(second);
            uptake.note(true, left, now);
            assert!(!uptake.is_too_slow(now), "after {second} s");
        }
    }

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
