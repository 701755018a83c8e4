//! Whether the server still reaches us. A connection can die without notice
//! (another Wi-Fi, a router that drops everything); silence is the only sign.

/// Without a snapshot for this long, prediction cannot be corrected any more:
/// inputs are stored for replay for about two seconds.
const STALLED_AFTER_MS: f64 = 2000.0;
/// Without any data for this long, the connection is considered lost.
const LOST_AFTER_MS: f64 = 12_000.0;
/// A page that did not run for longer than this (a slow frame, a suspended tab) has
/// unread packets: the excess does not count as silence.
const UNATTENDED_MS_MAX: f64 = 500.0;

/// The state of the connection, by recent arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Liveness {
    /// Data arrives, or there was no time for it yet.
    #[default]
    Alive,
    /// No snapshot for two seconds: the world is frozen until one arrives.
    Stalled,
    /// No data for twelve seconds: reconnect.
    Lost,
}

/// Measures how long nothing arrived, in time that the host was running.
#[derive(Default)]
pub(crate) struct Silence {
    last_ms: Option<f64>,
    /// Since any data arrived.
    any_ms: f64,
    /// Since a snapshot arrived; none before the first.
    snapshot_ms: Option<f64>,
    /// When the silence became a stall.
    stalled_at_ms: Option<f64>,
}

impl Silence {
    /// Advances the time; called before due work is done.
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

    /// Data arrived.
    pub fn received(&mut self) {
        self.any_ms = 0.0;
    }

    /// A snapshot arrived; true when that ends a stall.
    pub fn received_snapshot(&mut self) -> bool {
        self.snapshot_ms = Some(0.0);
        self.stalled_at_ms.take().is_some()
    }

    /// When the world was frozen, if it is.
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

    /// Advances in steps of `step` milliseconds, from `from` on.
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
        silence.received_snapshot();
        let now = silent(&mut silence, 0.0, 1984.0, 16.0);
        assert_eq!(silence.liveness(), Liveness::Alive);
        let now = silent(&mut silence, now, 48.0, 16.0);
        assert_eq!(silence.liveness(), Liveness::Stalled);
        silence.received();
        assert_eq!(silence.liveness(), Liveness::Stalled, "only a pong");
        assert!(silence.received_snapshot());
        assert_eq!(silence.liveness(), Liveness::Alive);
        assert!(!silence.received_snapshot());
        silence.received();
        silent(&mut silence, now, 12_100.0, 16.0);
        assert_eq!(silence.liveness(), Liveness::Lost);
    }

    #[test]
    fn a_page_that_did_not_run_has_not_listened() {
        let mut silence = Silence::default();
        silence.received_snapshot();
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
