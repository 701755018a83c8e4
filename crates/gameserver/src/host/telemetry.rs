//! How the world's thread keeps up with its clock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use frolic_protocol::message::TickFigures;

use crate::figures::LastSecond;
use crate::metrics::{Metrics, StageTimes};
use crate::pressure::Pressure;

/// Measures ticks.
pub(super) struct Telemetry {
    metrics: Arc<Metrics>,
    started: Instant,
    step: Duration,
    tick_hz: u32,
    pressure: Pressure,
    /// For debug overlays.
    last_second: LastSecond,
}

impl Telemetry {
    /// For a world of `tick_hz` ticks per second.
    pub fn new(metrics: Arc<Metrics>, tick_hz: u32) -> Self {
        Self {
            metrics,
            started: Instant::now(),
            step: Duration::from_secs(1) / tick_hz.max(1),
            tick_hz,
            pressure: Pressure::new(tick_hz),
            last_second: LastSecond::default(),
        }
    }

    /// The counters that other threads read.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Milliseconds since the start of the world.
    pub fn server_time_ms(&self) -> f64 {
        self.seconds_at(Instant::now()) * 1000.0
    }

    /// Seconds from the start of the world to `now`.
    pub fn seconds_at(&self, now: Instant) -> f64 {
        now.saturating_duration_since(self.started).as_secs_f64()
    }

    /// How far the server is from keeping up, 0 to 3.
    pub fn pressure(&self) -> u8 {
        self.pressure.level()
    }

    /// Where the ticks of the last second spent their time.
    pub fn figures(&self) -> TickFigures {
        self.last_second.figures().clone()
    }

    /// Ticks were dropped to catch up with the clock.
    pub fn ticks_dropped(&self, count: u64) {
        self.metrics.ticks_dropped.add(count);
    }

    /// Records the duration of a tick's stages.
    pub fn tick_took(&mut self, times: &StageTimes) {
        self.metrics.tick_took(*times);
        self.last_second.note(times, self.tick_hz);
    }

    /// Records a tick that began so `late` and took so long.
    pub fn tick_ran(&mut self, late: Duration, took: Duration) {
        let is_late = late > self.step / 2;
        self.metrics.ticks_late.add(is_late.into());
        let (late, took) = (
            late.div_duration_f32(self.step),
            took.div_duration_f32(self.step),
        );
        self.pressure.note(late, took);
        self.metrics.pressure.set(self.pressure().into());
    }
}
