//! When a world stops, and how far its end has progressed.

use std::time::{Duration, Instant};

/// Decides when the world must stop.
pub(super) struct Lifecycle {
    /// Stop after this many seconds without players; none: never.
    idle_stop_s: Option<u32>,
    /// Seconds that scripts have to finish when the world closes.
    close_limit_s: u32,
    /// No more players are admitted, and the world stops when the last has left.
    draining: bool,
    /// The server around this world has stopped.
    orphaned: bool,
    /// The last tick with a player in the world, or who might reconnect.
    occupied_tick: u32,
    closing: Option<Closing>,
}

/// A world that is about to end.
struct Closing {
    /// Why, for players.
    reason: String,
    began: Instant,
}

impl Lifecycle {
    /// The lifecycle of a world that stops after `idle_stop_s` seconds without
    /// players, and gives scripts `close_limit_s` seconds to finish.
    pub fn new(idle_stop_s: Option<u32>, close_limit_s: u32) -> Self {
        Self {
            idle_stop_s,
            close_limit_s,
            draining: false,
            orphaned: false,
            occupied_tick: 0,
            closing: None,
        }
    }

    /// Admits no more players.
    pub fn drain(&mut self) {
        self.draining = true;
    }

    /// Whether no more players are admitted.
    pub fn is_draining(&self) -> bool {
        self.draining
    }

    /// The server around this world has stopped: as when the process is killed.
    pub fn orphan(&mut self) {
        self.orphaned = true;
    }

    /// Whether it has.
    pub fn is_orphaned(&self) -> bool {
        self.orphaned
    }

    /// Why the world is closing, if it is.
    pub fn closing(&self) -> Option<&str> {
        Some(&self.closing.as_ref()?.reason)
    }

    /// Whether the world is closing.
    pub fn is_closing(&self) -> bool {
        self.closing.is_some()
    }

    /// The world begins to close.
    pub fn close(&mut self, reason: String, now: Instant) {
        self.closing = Some(Closing { reason, began: now });
    }

    /// The limit in seconds, once a world that is closing has exceeded it.
    pub fn exceeded_limit_s(&self, now: Instant) -> Option<u32> {
        let limit = Duration::from_secs(self.close_limit_s.into());
        let waited = now.saturating_duration_since(self.closing.as_ref()?.began);
        (waited >= limit).then_some(self.close_limit_s)
    }

    /// Why the world must stop at this tick; `players` are those who are connected or
    /// may reconnect.
    pub fn reason_to_stop(&mut self, players: u32, tick: u32, tick_hz: u32) -> Option<String> {
        if players > 0 {
            self.occupied_tick = tick;
            return None;
        }
        if self.is_closing() {
            return None;
        }
        if self.draining {
            return Some("drained".into());
        }
        let empty_ticks = tick.saturating_sub(self.occupied_tick);
        let idle_stop_s = self.idle_stop_s?;
        (empty_ticks > idle_stop_s.saturating_mul(tick_hz))
            .then(|| format!("no player for {idle_stop_s} s"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_stops_when_it_was_empty_for_long_enough() {
        let mut lifecycle = Lifecycle::new(Some(10), 5);
        assert_eq!(lifecycle.reason_to_stop(0, 100, 20), None);
        assert_eq!(lifecycle.reason_to_stop(1, 150, 20), None);
        assert_eq!(lifecycle.reason_to_stop(0, 350, 20), None);
        let reason = lifecycle.reason_to_stop(0, 351, 20);
        assert_eq!(reason.as_deref(), Some("no player for 10 s"));
    }

    #[test]
    fn a_draining_world_stops_with_its_last_player() {
        let mut lifecycle = Lifecycle::new(None, 5);
        assert_eq!(lifecycle.reason_to_stop(0, 100_000, 20), None);
        lifecycle.drain();
        assert_eq!(lifecycle.reason_to_stop(1, 100_001, 20), None);
        let reason = lifecycle.reason_to_stop(0, 100_002, 20);
        assert_eq!(reason.as_deref(), Some("drained"));
        let now = Instant::now();
        lifecycle.close("drained".into(), now);
        assert_eq!(lifecycle.reason_to_stop(0, 100_003, 20), None, "once");
        assert_eq!(lifecycle.exceeded_limit_s(now), None);
        let late = now + Duration::from_secs(5);
        assert_eq!(lifecycle.exceeded_limit_s(late), Some(5));
    }
}
