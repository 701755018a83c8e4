//! Figures that need sorting: durations of ticks and round trips. The endpoint is
//! public, so they are computed once a second at most.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use frolic_world::Stage;
use serde::Serialize;

use super::StageTimes;
use super::ring::Ring;

/// Tick times retained: a minute at 60 Hz.
const TICKS_MAX: usize = 3600;
/// Round trips retained: some minutes of a small world, some seconds of a full one.
const ROUND_TRIPS_MAX: usize = 1024;
/// Client reports retained: each client sends one per second.
const REPORTS_MAX: usize = 1024;
/// How long a summary is valid.
const LASTS: Duration = Duration::from_secs(1);

/// What is measured around the world's step, in front of its stages.
const AROUND: [&str; 4] = ["tick", "reads", "snapshots", "writes"];
const FIELDS: usize = AROUND.len() + Stage::ALL.len();

/// Median, 99th percentile and mean; of times, in milliseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Quantiles {
    /// Median.
    pub p50: f32,
    /// 99th percentile.
    pub p99: f32,
    /// The mean of all: the long-run cost of something that does not run in every
    /// tick.
    pub mean: f32,
}

/// Everything that needs sorting.
#[derive(Debug, Default)]
pub struct Summary {
    /// Whole ticks.
    pub tick: Quantiles,
    /// The parts of a tick, by name.
    pub stages: BTreeMap<&'static str, Quantiles>,
    /// Round trips to clients.
    pub round_trip: Quantiles,
    /// Differences between consecutive round trips of the same client.
    pub jitter: Quantiles,
    /// Their mean, in milliseconds.
    pub jitter_mean: f32,
    /// What clients report of their connections.
    pub clients: ClientFigures,
}

/// What one client reports of its connection.
#[derive(Clone, Copy, Debug)]
pub struct ClientSees {
    /// Number of its newest input.
    pub input_seq: u32,
    /// Inputs that are not acknowledged.
    pub pending_inputs: u32,
    /// Age of its newest snapshot.
    pub snapshot_age_us: u32,
    /// Jitter of snapshot arrivals.
    pub jitter_us: u32,
}

/// Aggregate of all reports.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ClientFigures {
    /// See [`ClientSees`].
    pub input_seq: Quantiles,
    /// See [`ClientSees`].
    pub pending_inputs: Quantiles,
    /// See [`ClientSees`].
    pub snapshot_age_ms: Quantiles,
    /// See [`ClientSees`].
    pub jitter_ms: Quantiles,
}

/// Measurements, and the last summary of them. Only readers take the lock.
#[derive(Default)]
pub struct Measured {
    ticks: Ring<FIELDS, TICKS_MAX>,
    round_trips: Ring<1, ROUND_TRIPS_MAX>,
    jitter: Ring<1, ROUND_TRIPS_MAX>,
    reports: Ring<4, REPORTS_MAX>,
    summary: Mutex<Option<(Instant, Arc<Summary>)>>,
}

impl Measured {
    /// Records a tick.
    pub fn tick(&self, times: &StageTimes) {
        let mut numbers = [0; FIELDS];
        let around = [times.tick, times.reads, times.snapshots, times.writes];
        numbers[..AROUND.len()].copy_from_slice(&around);
        for stage in Stage::ALL {
            numbers[AROUND.len() + stage as usize] = times.step.of(stage);
        }
        self.ticks.note(numbers);
    }

    /// Records a round trip, in microseconds.
    pub fn round_trip(&self, time_us: u32) {
        self.round_trips.note([time_us]);
    }

    /// Records the difference from the previous round trip, in microseconds.
    pub fn jitter(&self, difference_us: u32) {
        self.jitter.note([difference_us]);
    }

    /// Records a client's report.
    pub fn report(&self, report: ClientSees) {
        self.reports.note([
            report.input_seq,
            report.pending_inputs,
            report.snapshot_age_us,
            report.jitter_us,
        ]);
    }

    /// Forgets the ticks and their summary.
    pub fn forget_ticks(&self) {
        let mut cached = self.cached();
        self.ticks.forget();
        *cached = None;
    }

    /// The figures, up to a second old.
    pub fn summary(&self, now: Instant) -> Arc<Summary> {
        let mut cached = self.cached();
        if let Some((made, summary)) = &*cached
            && now.saturating_duration_since(*made) < LASTS
        {
            return summary.clone();
        }
        let summary = Arc::new(self.sum_up());
        *cached = Some((now, summary.clone()));
        summary
    }

    fn sum_up(&self) -> Summary {
        let ticks = self.ticks.values();
        let part = |place: usize| quantiles(ticks.iter().map(|tick| tick[place]));
        let around = AROUND.into_iter().enumerate().skip(1);
        let around = around.map(|(place, name)| (name, part(place)));
        let step = Stage::ALL.map(|stage| (stage.name(), part(AROUND.len() + stage as usize)));
        let first = |[time_us]: [u32; 1]| time_us;
        let jitter = quantiles(self.jitter.values().into_iter().map(first));
        Summary {
            tick: part(0),
            stages: around.chain(step).collect(),
            round_trip: quantiles(self.round_trips.values().into_iter().map(first)),
            jitter_mean: jitter.mean,
            jitter,
            clients: self.clients(),
        }
    }

    fn clients(&self) -> ClientFigures {
        let reports = self.reports.values();
        let values = |place: usize| reports.iter().map(move |report| report[place]);
        ClientFigures {
            input_seq: quantiles_of(values(0), 1.0),
            pending_inputs: quantiles_of(values(1), 1.0),
            snapshot_age_ms: quantiles(values(2)),
            jitter_ms: quantiles(values(3)),
        }
    }

    fn cached(&self) -> MutexGuard<'_, Option<(Instant, Arc<Summary>)>> {
        self.summary.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn quantiles(times_us: impl Iterator<Item = u32>) -> Quantiles {
    quantiles_of(times_us, 1000.0)
}

fn quantiles_of(numbers: impl Iterator<Item = u32>, per: f32) -> Quantiles {
    let mut sorted: Vec<u32> = numbers.collect();
    sorted.sort_unstable();
    let sum: u64 = sorted.iter().map(|number| u64::from(*number)).sum();
    let mean = sum as f32 / sorted.len().max(1) as f32 / per;
    let at = |q: f64| {
        let last = sorted.len().saturating_sub(1) as f64;
        let found = sorted.get((last * q).round() as usize);
        found.map_or(0.0, |number| *number as f32 / per)
    };
    Quantiles {
        p50: at(0.5),
        p99: at(0.99),
        mean,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(ms: u32) -> StageTimes {
        StageTimes {
            tick: ms * 1000,
            ..StageTimes::default()
        }
    }

    #[test]
    fn figures_are_made_once_a_second_however_many_ask() {
        let (measured, start) = (Measured::default(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        measured.tick(&tick(5));
        let first = measured.summary(at(0));
        assert_eq!(first.tick.p50, 5.0);
        measured.tick(&tick(9));
        let same = measured.summary(at(999));
        assert!(Arc::ptr_eq(&first, &same), "made again");
        assert_eq!(measured.summary(at(1000)).tick.p99, 9.0);
        // A benchmark's warm-up is not in what it reads next.
        measured.forget_ticks();
        measured.tick(&tick(2));
        assert_eq!(measured.summary(at(1001)).tick.p99, 2.0);
    }

    #[test]
    fn the_world_does_not_wait_for_readers() {
        let measured = Measured::default();
        // As if a reader stopped while holding the lock.
        let reading = measured.cached();
        measured.tick(&tick(5));
        measured.round_trip(40_000);
        measured.jitter(3_000);
        drop(reading);
        let summary = measured.summary(Instant::now());
        let medians = (summary.tick.p50, summary.round_trip.p50, summary.jitter.p50);
        assert_eq!(medians, (5.0, 40.0, 3.0));
    }

    /// A stage with nothing to do in every third tick costs two thirds of its
    /// median.
    #[test]
    fn the_mean_counts_idle_ticks() {
        let measured = Measured::default();
        for snapshots in [3_000, 3_000, 0] {
            measured.tick(&StageTimes {
                snapshots,
                ..tick(5)
            });
        }
        let snapshots = measured.summary(Instant::now()).stages["snapshots"];
        assert_eq!((snapshots.p50, snapshots.mean), (3.0, 2.0));
        let nothing = Measured::default().summary(Instant::now());
        assert_eq!(nothing.tick.mean, 0.0);
    }

    #[test]
    fn every_part_of_a_tick_has_its_name() {
        let measured = Measured::default();
        measured.tick(&StageTimes {
            reads: 1_000,
            snapshots: 2_000,
            writes: 3_000,
            ..tick(20)
        });
        let stages = &measured.summary(Instant::now()).stages;
        let of = |name: &str| stages.get(name).map(|times| times.p99);
        assert_eq!(of("reads"), Some(1.0));
        assert_eq!(of("snapshots"), Some(2.0));
        assert_eq!(of("writes"), Some(3.0));
        assert_eq!(of("physics"), Some(0.0));
        assert_eq!(stages.len(), Stage::ALL.len() + 3, "{stages:?}");
    }
}
