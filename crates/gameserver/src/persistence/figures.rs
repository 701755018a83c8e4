//! Metrics of persistence.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use frolic_fleet_api::persist::PersistBatch;
use frolic_metrics::{Gauge, Histogram, Text, metrics};

metrics! {
    /// Persistence metrics.
    pub struct PersistenceFigures {
        op_seconds: Histogram = "op_persist_seconds", "Time from an operation to its commit.";
        batch_seconds: Histogram = "persist_batch_seconds", "Duration of a persisted batch, one transaction each.";
        ops_waiting: Gauge = "ops_waiting", "Operations that wait to be persisted.";
    } and {
        last: Mutex<Last>,
    }
}

/// What was persisted last.
#[derive(Default)]
struct Last {
    players_at: Option<Instant>,
    checkpoint: Option<(Instant, u64)>,
}

impl PersistenceFigures {
    /// Records the number of waiting operations.
    pub fn waiting(&self, ops: usize) {
        self.ops_waiting.set(ops as u64);
    }

    /// An operation was stored, `after` this long.
    pub fn op_persisted(&self, after: Duration) {
        self.op_seconds.observe_duration(after);
    }

    /// A batch was stored.
    pub fn stored(&self, batch: &PersistBatch, took: Duration) {
        self.batch_seconds.observe_duration(took);
        let now = Instant::now();
        let mut last = self.last();
        if !batch.players.is_empty() {
            last.players_at = Some(now);
        }
        if let Some(checkpoint) = &batch.checkpoint {
            last.checkpoint = Some((now, checkpoint.seq));
        }
    }

    /// Writes all metrics. Ages only once there is one: no figure is better than a
    /// wrong one.
    pub fn write(&self, text: &mut Text) {
        self.write_metrics(text);
        let last = self.last();
        if let Some(at) = last.players_at {
            let (name, help) = (
                "player_checkpoint_age_seconds",
                "Since players were last stored.",
            );
            text.gauge(name, help, at.elapsed().as_secs_f64());
        }
        if let Some((at, seq)) = last.checkpoint {
            let (name, help) = (
                "checkpoint_age_seconds",
                "Since the last checkpoint of the world.",
            );
            text.gauge(name, help, at.elapsed().as_secs_f64());
            text.gauge("checkpoint_seq", "The last operation in it.", seq);
        }
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_counted_where_it_belongs() {
        let figures = PersistenceFigures::default();
        figures.op_persisted(Duration::from_millis(7));
        let mut text = Text::default();
        figures.write(&mut text);
        let text = text.finish();
        for line in [
            "frolic_op_persist_seconds_bucket{le=\"0.005\"} 0",
            "frolic_op_persist_seconds_bucket{le=\"0.01\"} 1",
            "frolic_op_persist_seconds_count 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("checkpoint_age"));
    }
}
