//! When to step: the client runs just far enough ahead of the server.
//!
//! The server reports with every snapshot how many of our inputs are queued. With
//! too few, a late packet leaves a tick without input; with too many, everything
//! feels delayed. The client's clock runs a little faster or slower to hold the
//! queue at a target that rises when inputs arrive late and sinks when they do not.

/// How many steps one call may catch up; time beyond that is dropped, as when a
/// browser tab was suspended.
const CATCH_UP_STEPS_MAX: u32 = 8;
const QUEUE_TARGET_MIN: f64 = 1.5;
const QUEUE_TARGET_MAX: f64 = 6.0;

/// A client's clock, in steps of the simulation.
pub struct Pacing {
    step_ms: f64,
    last_ms: Option<f64>,
    owed_ms: f64,
    rate: f64,
    queue_target: f64,
}

impl Pacing {
    /// A clock for a world with this many ticks per second.
    pub fn new(tick_hz: u32) -> Self {
        Self {
            step_ms: 1000.0 / f64::from(tick_hz.max(1)),
            last_ms: None,
            owed_ms: 0.0,
            rate: 1.0,
            queue_target: QUEUE_TARGET_MIN,
        }
    }

    /// How many steps are due at `now_ms`.
    pub fn steps_due(&mut self, now_ms: f64) -> u32 {
        let elapsed = now_ms - self.last_ms.unwrap_or(now_ms);
        self.last_ms = Some(now_ms);
        self.owed_ms += elapsed.max(0.0) * self.rate;
        let due = (self.owed_ms / self.step_ms) as u32;
        self.owed_ms -= f64::from(due) * self.step_ms;
        due.min(CATCH_UP_STEPS_MAX)
    }

    /// The fraction between the last step and the next, 0 to 1.
    pub fn fraction(&self, now_ms: f64) -> f32 {
        let since = now_ms - self.last_ms.unwrap_or(now_ms);
        (((self.owed_ms + since * self.rate) / self.step_ms) as f32).clamp(0.0, 1.0)
    }

    /// Learns from a snapshot how our inputs reach the server.
    pub fn observe(&mut self, queued: u8, late_ticks: u8) {
        if late_ticks > 0 {
            self.queue_target = (self.queue_target + 0.3).min(QUEUE_TARGET_MAX);
        } else {
            self.queue_target = (self.queue_target - 0.002).max(QUEUE_TARGET_MIN);
        }
        let shortage = self.queue_target - f64::from(queued) + f64::from(late_ticks);
        self.rate = 1.0 + (shortage * 0.02).clamp(-0.1, 0.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_follow_the_clock_and_a_pause_is_not_caught_up() {
        let mut pacing = Pacing::new(60);
        assert_eq!(pacing.steps_due(0.0), 0);
        let steps: u32 = (1..=1000).map(|ms| pacing.steps_due(f64::from(ms))).sum();
        assert!((59..=60).contains(&steps), "{steps}");
        assert_eq!(pacing.steps_due(60_000.0), CATCH_UP_STEPS_MAX);
        assert!(
            pacing.steps_due(60_001.0) <= 1,
            "the rest of the pause is gone"
        );
    }

    #[test]
    fn an_empty_queue_speeds_up_and_a_full_one_slows_down() {
        let mut pacing = Pacing::new(60);
        pacing.observe(0, 1);
        assert!(pacing.rate > 1.0);
        pacing.observe(12, 0);
        assert!(pacing.rate < 1.0);
    }
}
