//! Metrics of the control plane, for `/metrics`.

use std::time::Duration;

use axum::http::StatusCode;
pub use frolic_metrics::Counter;
use frolic_metrics::{Histogram, Text, metrics};

const PHASES: [&str; 4] = ["starting", "ready", "stopping", "backing_off"];

metrics! {
    /// All metrics of the control plane.
    pub struct Metrics {
        pub logins: Counter = "logins_total", "Guest logins.";
        pub store_requests: Counter = "store_requests_total", "Datastore requests of scripts.";
        pub rate_limited: Counter = "rate_limited_total", "Requests rejected by a rate limit.";
        persist_seconds: Histogram = "persist_seconds", "Duration of transactions that persist world state.";
        persisted_ops: Counter = "persisted_ops_total", "World operations persisted.";
        persisted_players: Counter = "persisted_players_total", "Player checkpoints persisted.";
        join_seconds: Histogram = "join_seconds", "Time from a join request to a slot in a running world.";
        joins_failed: Counter = "joins_failed_total", "Joins that failed.";
    } and {
        /// Responses by the first digit of the status.
        responses: [Counter; 6],
    }
}

/// Figures of all game servers.
#[derive(Clone, Copy, Debug, Default)]
pub struct FleetTotals {
    /// Servers per phase: starting, ready, stopping, backing off.
    pub by_phase: [u32; 4],
    /// Players in all worlds.
    pub players: u32,
    /// Worlds started since the platform started.
    pub starts: u64,
    /// Crashes since the platform started.
    pub crashes: u64,
    /// Errors that scripts raised.
    pub script_errors: u64,
}

impl Metrics {
    /// Counts one join and its duration.
    pub fn join_finished(&self, took: Duration, placed: bool) {
        if placed {
            self.join_seconds.observe_duration(took);
        } else {
            self.joins_failed.add(1);
        }
    }

    /// Counts one persisted batch of a world and its duration.
    pub fn world_persisted(&self, took: Duration, ops: usize, players: usize) {
        self.persist_seconds.observe_duration(took);
        self.persisted_ops.add(ops as u64);
        self.persisted_players.add(players as u64);
    }

    pub fn response_sent(&self, status: StatusCode) {
        if let Some(counter) = self.responses.get(usize::from(status.as_u16() / 100)) {
            counter.add(1);
        }
    }

    /// All metrics in the Prometheus text format. `sessions` is omitted when the
    /// count is unknown.
    pub fn render(&self, fleet: &FleetTotals, sessions: Option<u32>) -> String {
        let mut text = Text::default();
        if let Some(sessions) = sessions {
            text.gauge("sessions", "Valid sessions.", sessions);
        }
        text.gauge("players", "Players in all worlds.", fleet.players);
        text.family("servers", "gauge", "Game servers by phase.");
        for (phase, count) in PHASES.iter().zip(fleet.by_phase) {
            text.sample("servers", &[("phase", phase)], count);
        }
        text.counter("server_starts_total", "Worlds started.", fleet.starts);
        let help = "Game servers that crashed.";
        text.counter("server_crashes_total", help, fleet.crashes);
        let help = "Errors raised by scripts.";
        text.counter("script_errors_total", help, fleet.script_errors);
        self.write_metrics(&mut text);
        text.family("http_responses_total", "counter", "Responses by class.");
        for (class, counter) in self.responses.iter().enumerate().skip(1) {
            let class = format!("{class}xx");
            text.sample(
                "http_responses_total",
                &[("class", &class)],
                counter.value(),
            );
        }
        text.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_appear_in_the_text() {
        let metrics = Metrics::default();
        metrics.logins.add(2);
        metrics.join_finished(Duration::from_millis(80), true);
        metrics.join_finished(Duration::from_millis(80), false);
        metrics.response_sent(StatusCode::NOT_FOUND);
        let text = metrics.render(&FleetTotals::default(), Some(7));
        for line in [
            "frolic_sessions 7",
            "frolic_logins_total 2",
            "frolic_joins_failed_total 1",
            "frolic_join_seconds_bucket{le=\"0.05\"} 0",
            "frolic_join_seconds_bucket{le=\"0.1\"} 1",
            "frolic_join_seconds_count 1",
            "frolic_http_responses_total{class=\"4xx\"} 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }
}
