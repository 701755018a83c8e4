//! Figures for the debug overlay and for load reports.

use serde::Serialize;

/// Statistics of the connection.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, rename = "CoreStats"))]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// Newest known server tick.
    pub tick: u32,
    /// Smoothed round trip of the last pings; none before the first answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub rtt_ms: Option<f64>,
    /// Jitter of snapshot arrivals.
    pub jitter_ms: f64,
    /// Fraction of snapshots that never arrived, 0 to 1.
    pub loss: f64,
    /// Number of the newest input.
    pub input_seq: u32,
    /// Inputs the server has not acknowledged.
    pub pending_inputs: usize,
    /// How often prediction was wrong.
    pub corrections: u32,
    /// By how much it was wrong the last time, in metres.
    pub last_correction_m: f32,
    /// Bytes received per second.
    pub bytes_in_per_s: f64,
    /// Bytes sent per second.
    pub bytes_out_per_s: f64,
    /// Total bytes received.
    pub bytes_in: u64,
    /// Total bytes of messages about scripts, both ways.
    pub script_bytes: u64,
    /// Version of the scripts that the server runs.
    pub script_version: u32,
    /// Total snapshots received.
    pub snapshots: u32,
    /// Time since the newest snapshot; none before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub snapshot_age_ms: Option<f64>,
    /// Known entities.
    pub entities: usize,
    /// Playback delay of other entities.
    pub playback_delay_ms: f64,
}

/// Bytes per second over the last second.
#[derive(Default)]
pub(crate) struct Meter {
    pub total: u64,
    window_start_ms: f64,
    window_bytes: u64,
    pub per_s: f64,
}

impl Meter {
    pub fn add(&mut self, bytes: usize) {
        self.total += bytes as u64;
        self.window_bytes += bytes as u64;
    }

    pub fn roll(&mut self, now_ms: f64) {
        let elapsed = now_ms - self.window_start_ms;
        if elapsed >= 1000.0 {
            self.per_s = self.window_bytes as f64 * 1000.0 / elapsed;
            self.window_bytes = 0;
            self.window_start_ms = now_ms;
        }
    }
}
