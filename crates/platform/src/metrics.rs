//! Counters for `/metrics`. There is no registry: each metric is a field.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::StatusCode;

use crate::fleet::FleetTotals;

/// Upper bounds of the join histogram, in seconds.
const JOIN_BUCKETS_S: [f64; 8] = [0.025, 0.05, 0.1, 0.3, 1.0, 2.0, 5.0, 20.0];
const PHASES: [&str; 4] = ["starting", "ready", "stopping", "backing_off"];

/// A monotonic counter.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The current value.
    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// All counters of the control plane.
#[derive(Default)]
pub struct Metrics {
    /// Guest logins.
    pub logins: Counter,
    /// Datastore requests of scripts.
    pub store_requests: Counter,
    /// Requests rejected by a rate limit.
    pub rate_limited: Counter,
    /// Persisted batches of world state, and their content.
    persists: Counter,
    persist_us: Counter,
    persisted_ops: Counter,
    persisted_players: Counter,
    joins_failed: Counter,
    join_buckets: [Counter; JOIN_BUCKETS_S.len()],
    join_count: Counter,
    join_us: Counter,
    /// Responses by the first digit of the status.
    responses: [Counter; 6],
}

impl Metrics {
    /// Counts one join and its duration.
    pub fn join_finished(&self, took: Duration, placed: bool) {
        if !placed {
            self.joins_failed.add(1);
            return;
        }
        self.join_count.add(1);
        self.join_us
            .add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        for (bucket, limit) in self.join_buckets.iter().zip(JOIN_BUCKETS_S) {
            if took.as_secs_f64() <= limit {
                bucket.add(1);
            }
        }
    }

    /// Counts one persisted batch of a world and its duration.
    pub fn world_persisted(&self, took: Duration, ops: usize, players: usize) {
        self.persists.add(1);
        self.persist_us
            .add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
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
        let mut text = String::with_capacity(4096);
        if let Some(sessions) = sessions {
            gauge(&mut text, "frolic_sessions", "Valid sessions", sessions);
        }
        gauge(
            &mut text,
            "frolic_players",
            "Players in all worlds",
            fleet.players,
        );
        head(
            &mut text,
            "frolic_servers",
            "gauge",
            "Game servers by phase",
        );
        for (phase, count) in PHASES.iter().zip(fleet.by_phase) {
            let _ = writeln!(text, "frolic_servers{{phase=\"{phase}\"}} {count}");
        }
        for (name, help, value) in [
            ("frolic_server_starts_total", "Worlds started", fleet.starts),
            (
                "frolic_server_crashes_total",
                "Game servers that crashed",
                fleet.crashes,
            ),
            (
                "frolic_script_errors_total",
                "Errors raised by scripts",
                fleet.script_errors,
            ),
            ("frolic_logins_total", "Guest logins", self.logins.value()),
            (
                "frolic_store_requests_total",
                "Datastore requests of scripts",
                self.store_requests.value(),
            ),
            (
                "frolic_kept_ops_total",
                "World operations persisted",
                self.persisted_ops.value(),
            ),
            (
                "frolic_kept_players_total",
                "Player checkpoints persisted",
                self.persisted_players.value(),
            ),
            (
                "frolic_joins_failed_total",
                "Joins that failed",
                self.joins_failed.value(),
            ),
            (
                "frolic_rate_limited_total",
                "Requests rejected by a rate limit",
                self.rate_limited.value(),
            ),
        ] {
            head(&mut text, name, "counter", help);
            let _ = writeln!(text, "{name} {value}");
        }
        head(
            &mut text,
            "frolic_http_responses_total",
            "counter",
            "Responses by class",
        );
        for (class, counter) in self.responses.iter().enumerate().skip(1) {
            let _ = writeln!(
                text,
                "frolic_http_responses_total{{class=\"{class}xx\"}} {}",
                counter.value()
            );
        }
        let name = "frolic_keep_seconds";
        head(
            &mut text,
            name,
            "summary",
            "Duration of transactions that persist world state",
        );
        let seconds = Duration::from_micros(self.persist_us.value()).as_secs_f64();
        let _ = writeln!(
            text,
            "{name}_sum {seconds}\n{name}_count {}",
            self.persists.value()
        );
        self.render_joins(&mut text);
        text
    }

    fn render_joins(&self, text: &mut String) {
        let name = "frolic_join_seconds";
        head(
            text,
            name,
            "histogram",
            "Time from a join request to a slot in a running world",
        );
        for (bucket, limit) in self.join_buckets.iter().zip(JOIN_BUCKETS_S) {
            let _ = writeln!(text, "{name}_bucket{{le=\"{limit}\"}} {}", bucket.value());
        }
        let count = self.join_count.value();
        let _ = writeln!(text, "{name}_bucket{{le=\"+Inf\"}} {count}");
        let seconds = Duration::from_micros(self.join_us.value()).as_secs_f64();
        let _ = writeln!(text, "{name}_sum {seconds}");
        let _ = writeln!(text, "{name}_count {count}");
    }
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn gauge(text: &mut String, name: &str, help: &str, value: u32) {
    head(text, name, "gauge", help);
    let _ = writeln!(text, "{name} {value}");
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
