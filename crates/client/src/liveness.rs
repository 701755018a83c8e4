//! Whether the server still reaches us. A connection can die without a word
//! (another Wi-Fi, a router that drops everything); silence is the only sign.

/// Without a snapshot for so long, what is predicted cannot be put right any
/// more: inputs are kept for replay for about two seconds.
const STALLED_AFTER_MS: f64 = 2000.0;
/// Without anything for so long, the connection is given up.
const LOST_AFTER_MS: f64 = 12_000.0;
/// A page that did not run for longer than this (a slow frame, a tab that slept)
/// has packets that it did not read yet: the rest of that time is no silence.
const UNATTENDED_MS_MAX: f64 = 500.0;

/// How the connection is doing, by what came lately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Liveness {
    /// The server is heard, or there was no time to hear it yet.
    #[default]
    Alive,
    /// No snapshot for two seconds: the world stands still until one comes.
    Stalled,
    /// Nothing at all for twelve seconds: connect again.
    Lost,
}

/// Counts how long nothing came, in time that the host attended to us.
#[derive(Default)]
pub(crate) struct Silence {
    last_ms: Option<f64>,
    /// Since anything came.
    any_ms: f64,
    /// Since a snapshot came; none before the first.
    snapshot_ms: Option<f64>,
    /// When the silence became a stall.
    stalled_at_ms: Option<f64>,
}

impl Silence {
    /// Time goes by; called before what is due is done.
    pub fn advance(&mut self, now_ms: f64) {
        let elapsed = now_ms - self.last_ms.unwrap_or(now_ms);
        let elapsed = elapsed.clamp(0.0, UNATTENDED_MS_MAX);
        self.last_ms = Some(now_ms);
        self.any_ms += elapsed;
        if let Some(silent_ms) = &mut self.snapshot_ms {
            *silent_ms += elapsed;
            if *silent_ms >= STALLED_AFTER_MS && self.stalled_at_ms.is_none() {
                self.stalled_at_ms = Some(now_ms);
            }
        }
    }

    /// Bytes came.
    pub fn heard(&mut self) {
        self.any_ms = 0.0;
    }

    /// A snapshot came; true when that ends a stall.
    pub fn heard_snapshot(&mut self) -> bool {
        self.snapshot_ms = Some(0.0);
        self.stalled_at_ms.take().is_some()
    }

    /// When the world came to a stop, if it did.
    pub fn stalled_at_ms(&self) -> Option<f64> {
        self.stalled_at_ms
    }

    pub fn liveness(&self) -> Liveness {
        if self.any_ms >= LOST_AFTER_MS {
            Liveness::Lost
        } else if self.stalled_at_ms.is_some() {
            Liveness::Stalled
        } else {
            Liveness::Alive
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Advances in steps of so many milliseconds, from `from` on.
    fn silent(silence: &mut Silence, from: f64, ms: f64, step: f64) -> f64 {
        let steps = (ms / step) as u32;
        for at in 1..=steps {
            silence.advance(from + f64::from(at) * step);
        }
        from + f64::from(steps) * step
    }

    #[test]
    fn silence_stalls_after_two_seconds_and_is_a_loss_after_twelve() {
        let mut silence = Silence::default();
        silence.heard_snapshot();
        let now = silent(&mut silence, 0.0, 1984.0, 16.0);
        assert_eq!(silence.liveness(), Liveness::Alive);
        let now = silent(&mut silence, now, 48.0, 16.0);
        assert_eq!(silence.liveness(), Liveness::Stalled);
        silence.heard();
        assert_eq!(silence.liveness(), Liveness::Stalled, "only a pong");
        assert!(silence.heard_snapshot());
        assert_eq!(silence.liveness(), Liveness::Alive);
        assert!(!silence.heard_snapshot());
        silence.heard();
        silent(&mut silence, now, 12_100.0, 16.0);
        assert_eq!(silence.liveness(), Liveness::Lost);
    }

    #[test]
    fn a_page_that_did_not_run_has_not_listened() {
        let mut silence = Silence::default();
        silence.heard_snapshot();
        silence.advance(0.0);
        silence.advance(60_000.0);
        assert_eq!(silence.liveness(), Liveness::Alive);
        silent(&mut silence, 60_000.0, 1600.0, 16.0);
        assert_eq!(silence.liveness(), Liveness::Stalled);
    }

    #[test]
    fn before_the_first_snapshot_nothing_stalls_and_no_answer_is_a_loss() {
        let mut silence = Silence::default();
        let now = silent(&mut silence, 0.0, 11_000.0, 16.0);
        assert_eq!(silence.liveness(), Liveness::Alive);
        silent(&mut silence, now, 1200.0, 16.0);
        assert_eq!(silence.liveness(), Liveness::Lost);
    }
}
