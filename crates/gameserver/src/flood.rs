//! How much a client may say: a bucket that refills, one warning, then the door.

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

/// Messages per second that a client may send on average.
const MESSAGES_PER_S: f64 = 250.0;
/// Messages it may send at once.
const BURST: f64 = 500.0;
/// Dropped messages before the connection is closed.
const DROPPED_MAX: u32 = 1000;

/// Counts what one client sends.
pub struct FloodGuard {
    tokens: f64,
    last_s: f64,
    dropped: u32,
}

impl FloodGuard {
    /// A full bucket.
    pub fn new(now_s: f64) -> Self {
        Self {
            tokens: BURST,
            last_s: now_s,
            dropped: 0,
        }
    }

    /// Charges one message.
    pub fn charge(&mut self, now_s: f64) -> Verdict {
        let refill = (now_s - self.last_s).max(0.0) * MESSAGES_PER_S;
        self.tokens = (self.tokens + refill).min(BURST);
        self.last_s = now_s;
        if self.tokens >= BURST {
            // Quiet for a while: what happened before is forgiven.
            self.dropped = 0;
        }
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
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
        let mut guard = FloodGuard::new(0.0);
        assert!((0..6000).all(|n| guard.charge(f64::from(n) / 60.0) == Verdict::Pass));
        let verdicts: Vec<_> = (0..2000).map(|_| guard.charge(101.0)).collect();
        assert_eq!(verdicts.iter().filter(|v| **v == Verdict::Warn).count(), 1);
        assert_eq!(verdicts.last(), Some(&Verdict::Kick));
    }
}
