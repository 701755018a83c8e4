//! Durations of the newest ticks. Their quantiles need sorting, and the endpoint is
//! public, so they are computed once a second at most.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use frolic_metrics::Seconds;
use frolic_world::Stage;
use serde::Serialize;

use super::StageTimes;
use super::ring::Ring;

/// Tick times retained: a minute at 60 Hz.
const TICKS_MAX: usize = 3600;
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
}

/// The newest ticks, and the last summary of them. Only readers take the lock.
#[derive(Default)]
pub struct RecentTicks {
    ticks: Ring<FIELDS, TICKS_MAX>,
    /// The time of each part since the start.
    totals: [Seconds; FIELDS],
    summary: Mutex<Option<(Instant, Arc<Summary>)>>,
}

impl RecentTicks {
    /// Records a tick.
    pub fn note(&self, times: &StageTimes) {
        let mut numbers = [0; FIELDS];
        let around = [times.tick, times.reads, times.snapshots, times.writes];
        numbers[..AROUND.len()].copy_from_slice(&around);
        for stage in Stage::ALL {
            numbers[AROUND.len() + stage as usize] = times.step.of(stage);
        }
        for (total, time_us) in self.totals.iter().zip(numbers) {
            total.add(Duration::from_micros(time_us.into()));
        }
        self.ticks.note(numbers);
    }

    /// The time of each stage since the start, in seconds.
    pub fn totals(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let names = AROUND.into_iter().chain(Stage::ALL.map(Stage::name));
        let totals = self.totals.iter().map(Seconds::value);
        names.zip(totals).skip(1)
    }

    /// Forgets the ticks and their summary, but not the totals.
    pub fn forget(&self) {
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
        Summary {
            tick: part(0),
            stages: around.chain(step).collect(),
        }
    }

    fn cached(&self) -> MutexGuard<'_, Option<(Instant, Arc<Summary>)>> {
        self.summary.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of times in microseconds.
fn quantiles(times_us: impl Iterator<Item = u32>) -> Quantiles {
    let mut sorted: Vec<u32> = times_us.collect();
    sorted.sort_unstable();
    let ms = |us: f64| (us / 1000.0) as f32;
    let sum: u64 = sorted.iter().map(|time| u64::from(*time)).sum();
    let at = |q: f64| {
        let last = sorted.len().saturating_sub(1) as f64;
        let found = sorted.get((last * q).round() as usize);
        found.map_or(0.0, |time| ms(f64::from(*time)))
    };
    Quantiles {
        p50: at(0.5),
        p99: at(0.99),
        mean: ms(sum as f64 / sorted.len().max(1) as f64),
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
        let (measured, start) = (RecentTicks::default(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        measured.note(&tick(5));
        let first = measured.summary(at(0));
        assert_eq!(first.tick.p50, 5.0);
        measured.note(&tick(9));
        let same = measured.summary(at(999));
        assert!(Arc::ptr_eq(&first, &same), "made again");
        assert_eq!(measured.summary(at(1000)).tick.p99, 9.0);
        // A benchmark's warm-up is not in what it reads next.
        measured.forget();
        measured.note(&tick(2));
        assert_eq!(measured.summary(at(1001)).tick.p99, 2.0);
    }

    #[test]
    fn the_world_does_not_wait_for_readers() {
        let measured = RecentTicks::default();
        // As if a reader stopped while holding the lock.
        let reading = measured.cached();
        measured.note(&tick(5));
        drop(reading);
        assert_eq!(measured.summary(Instant::now()).tick.p50, 5.0);
    }

    /// A stage with nothing to do in every third tick costs two thirds of its
    /// median.
    #[test]
    fn the_mean_counts_idle_ticks() {
        let measured = RecentTicks::default();
        for snapshots in [3_000, 3_000, 0] {
            measured.note(&StageTimes {
                snapshots,
                ..tick(5)
            });
        }
        let snapshots = measured.summary(Instant::now()).stages["snapshots"];
        assert_eq!((snapshots.p50, snapshots.mean), (3.0, 2.0));
        let nothing = RecentTicks::default().summary(Instant::now());
        assert_eq!(nothing.tick.mean, 0.0);
    }

    #[test]
    fn every_part_of_a_tick_has_its_name() {
        let measured = RecentTicks::default();
        measured.note(&StageTimes {
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
