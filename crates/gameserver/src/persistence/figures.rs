//! Latency of persistence, for `/metrics`.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use frolic_protocol::persist::PersistBatch;

/// Upper bounds of the histogram, in milliseconds.
const BUCKETS_MS: [u64; 9] = [2, 5, 10, 20, 50, 100, 250, 1000, 5000];

/// Persistence counters.
#[derive(Default)]
pub struct PersistenceFigures {
    ops_waiting: AtomicU64,
    ops: AtomicU64,
    ops_us: AtomicU64,
    buckets: [AtomicU64; BUCKETS_MS.len()],
    batches: AtomicU64,
    batches_us: AtomicU64,
    players_at: Mutex<Option<Instant>>,
    checkpoint: Mutex<Option<(Instant, u64)>>,
}

impl PersistenceFigures {
    /// Records the number of waiting operations.
    pub fn waiting(&self, ops: usize) {
        self.ops_waiting.store(ops as u64, Relaxed);
    }

    /// An operation was stored, `after` this long.
    pub fn op_persisted(&self, after: Duration) {
        self.ops.fetch_add(1, Relaxed);
        self.ops_us.fetch_add(micros(after), Relaxed);
        for (bucket, limit) in self.buckets.iter().zip(BUCKETS_MS) {
            if after <= Duration::from_millis(limit) {
                bucket.fetch_add(1, Relaxed);
            }
        }
    }

    /// A batch was stored.
    pub fn stored(&self, batch: &PersistBatch, took: Duration) {
        self.batches.fetch_add(1, Relaxed);
        self.batches_us.fetch_add(micros(took), Relaxed);
        let now = Instant::now();
        if !batch.players.is_empty() {
            *lock(&self.players_at) = Some(now);
        }
        if let Some(checkpoint) = &batch.checkpoint {
            *lock(&self.checkpoint) = Some((now, checkpoint.seq));
        }
    }

    /// In the Prometheus text format.
    pub fn prometheus(&self) -> String {
        let mut text = String::new();
        let name = "frolic_op_keep_seconds";
        head(
            &mut text,
            name,
            "histogram",
            "Time from an operation to its commit on disk",
        );
        for (bucket, limit) in self.buckets.iter().zip(BUCKETS_MS) {
            let (seconds, count) = (limit as f64 / 1000.0, bucket.load(Relaxed));
            let _ = writeln!(text, "{name}_bucket{{le=\"{seconds}\"}} {count}");
        }
        let ops = self.ops.load(Relaxed);
        let sum = Duration::from_micros(self.ops_us.load(Relaxed)).as_secs_f64();
        let _ = writeln!(text, "{name}_bucket{{le=\"+Inf\"}} {ops}");
        let _ = writeln!(text, "{name}_sum {sum}\n{name}_count {ops}");
        let name = "frolic_keep_batch_seconds";
        head(
            &mut text,
            name,
            "summary",
            "Persisted batches, one transaction each",
        );
        let sum = Duration::from_micros(self.batches_us.load(Relaxed)).as_secs_f64();
        let batches = self.batches.load(Relaxed);
        let _ = writeln!(text, "{name}_sum {sum}\n{name}_count {batches}");
        let waiting = self.ops_waiting.load(Relaxed);
        gauge(
            &mut text,
            "frolic_ops_waiting",
            "Operations waiting to be persisted",
            waiting,
        );
        // Ages only once there is one: no figure is better than a wrong one.
        if let Some(at) = *lock(&self.players_at) {
            let age = at.elapsed().as_secs_f64();
            let help = "Since players were last stored";
            gauge(&mut text, "frolic_player_checkpoint_age_seconds", help, age);
        }
        if let Some((at, seq)) = *lock(&self.checkpoint) {
            let age = at.elapsed().as_secs_f64();
            gauge(
                &mut text,
                "frolic_checkpoint_age_seconds",
                "Since the last checkpoint of the world",
                age,
            );
            gauge(
                &mut text,
                "frolic_checkpoint_seq",
                "The last operation in it",
                seq,
            );
        }
        text
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn gauge(text: &mut String, name: &str, help: &str, value: impl std::fmt::Display) {
    head(text, name, "gauge", help);
    let _ = writeln!(text, "{name} {value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_counted_where_it_belongs() {
        let figures = PersistenceFigures::default();
        figures.op_persisted(Duration::from_millis(7));
        let text = figures.prometheus();
        for line in [
            "frolic_op_keep_seconds_bucket{le=\"0.005\"} 0",
            "frolic_op_keep_seconds_bucket{le=\"0.01\"} 1",
            "frolic_op_keep_seconds_count 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("checkpoint_age"));
    }
}
