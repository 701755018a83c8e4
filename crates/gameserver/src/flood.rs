//! Rate limit of client messages: a token bucket, one warning, then disconnection.

use frolic_protocol::token_bucket::{RateLimit, TokenBucket};

/// What to do with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Use it.
    Pass,
    /// Drop it, and warn: this is the first time.
    Warn,
    /// Drop it.
    Drop,
    /// Close the connection.
    Kick,
}

/// The budget that a message is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Events, calls and chat: a client never sends them again once they are
    /// acknowledged.
    Counted,
    /// Everything else. Most of it is inputs, which arrive by the hundred after a
    /// connection has stalled: those must not use up the budget of reliable
    /// messages.
    Other,
}

impl Budget {
    /// The budget of reliable messages, or the other one.
    pub fn of(counts: bool) -> Self {
        match counts {
            true => Budget::Counted,
            false => Budget::Other,
        }
    }
}

/// Messages of a budget that a client may send at once.
pub const BURST: u32 = 500;
/// Messages of a budget that it may send.
const MESSAGES: RateLimit = RateLimit {
    burst: BURST as f64,
    per_s: 250.0,
};
/// Dropped messages before the connection is closed.
const DROPPED_MAX: u32 = 1000;

/// Counts what one client sends.
#[derive(Default)]
pub struct FloodGuard {
    counted: TokenBucket,
    other: TokenBucket,
    dropped: u32,
}

impl FloodGuard {
    /// Charges one message; `now_s` counts from any moment.
    pub fn charge(&mut self, budget: Budget, now_s: f64) -> Verdict {
        if self.counted.is_full(now_s) && self.other.is_full(now_s) {
            // Quiet for a while: earlier drops are forgotten.
            self.dropped = 0;
        }
        let bucket = match budget {
            Budget::Counted => &mut self.counted,
            Budget::Other => &mut self.other,
        };
        if bucket.take(MESSAGES, 1.0, now_s).is_ok() {
            return Verdict::Pass;
        }
        self.dropped += 1;
        match self.dropped {
            1 => Verdict::Warn,
            n if n > DROPPED_MAX => Verdict::Kick,
            _ => Verdict::Drop,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_client_passes_and_a_flood_is_warned_then_kicked() {
        for budget in [Budget::Counted, Budget::Other] {
            let mut guard = FloodGuard::default();
            let mut charge = |now_s: f64| guard.charge(budget, now_s);
            assert!((0..6000).all(|n| charge(f64::from(n) / 60.0) == Verdict::Pass));
            let verdicts: Vec<_> = (0..2000).map(|_| charge(101.0)).collect();
            assert_eq!(verdicts.iter().filter(|v| **v == Verdict::Warn).count(), 1);
            assert_eq!(verdicts.last(), Some(&Verdict::Kick));
        }
    }

    #[test]
    fn inputs_have_their_own_budget_and_there_is_one_warning_for_both() {
        let mut guard = FloodGuard::default();
        let mut charge = |budget: Budget, times: u32| -> Vec<Verdict> {
            (0..times).map(|_| guard.charge(budget, 0.0)).collect()
        };
        let inputs = charge(Budget::Other, BURST + 100);
        assert_eq!(inputs[BURST as usize], Verdict::Warn);
        let events = charge(Budget::Counted, BURST + 1);
        assert!(events[..BURST as usize].iter().all(|v| *v == Verdict::Pass));
        assert_eq!(events.last(), Some(&Verdict::Drop), "it was warned");
        let dropped = charge(Budget::Counted, DROPPED_MAX);
        assert_eq!(dropped.last(), Some(&Verdict::Kick));
    }
}
