//! What the game server measures of itself, for heartbeats, `/metrics` and benchmarks.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use frolic_world::{Stage, StepTimes};
use serde::Serialize;

/// Tick times kept: a minute at 60 Hz.
const TICKS_KEPT: usize = 3600;

/// Why connections were ended by us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KickCause {
    /// More messages or inputs than allowed.
    Flood,
    /// It did not read what it was sent.
    SlowReader,
    /// It sent something that is no message.
    Unreadable,
    /// It did not say who it is, or not acceptably.
    Refused,
    /// Its player came in from elsewhere.
    Replaced,
    /// It said goodbye.
    Left,
    /// The world stops.
    Stopped,
    /// Moderators have suspended its player.
    Expelled,
}

/// Every cause with its name for `/metrics`.
const KICK_CAUSES: [(KickCause, &str); 8] = [
    (KickCause::Flood, "flood"),
    (KickCause::SlowReader, "slow_reader"),
    (KickCause::Unreadable, "unreadable"),
    (KickCause::Refused, "refused"),
    (KickCause::Replaced, "replaced"),
    (KickCause::Left, "left"),
    (KickCause::Stopped, "stopped"),
    (KickCause::Expelled, "expelled"),
];

/// Times of one tick's stages, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct StageTimes {
    /// The whole tick.
    pub tick: u32,
    /// Reading sockets and handling what they say.
    pub reads: u32,
    /// The stages of the world's step.
    pub step: StepTimes,
    /// Events and snapshots, made and encoded.
    pub snapshots: u32,
    /// Writing to sockets.
    pub writes: u32,
}

/// Counters shared by the world's thread and the HTTP endpoints.
#[derive(Default)]
pub struct Metrics {
    /// Players in the world.
    pub players: AtomicU32,
    /// Open connections, those without a player included.
    pub connections: AtomicU32,
    /// Current tick.
    pub tick: AtomicU32,
    /// Ticks that were dropped because the server was late.
    pub ticks_dropped: AtomicU64,
    /// Ticks that began more than half a tick late.
    pub ticks_late: AtomicU64,
    /// How hard it is to keep up: 0 to 3.
    pub pressure: AtomicU8,
    /// Bytes sent to clients.
    pub bytes_out: AtomicU64,
    /// Bytes received from clients.
    pub bytes_in: AtomicU64,
    /// Bytes that wait for clients to take them.
    pub queued_bytes: AtomicU64,
    /// Clients that get fewer updates because they do not keep up.
    pub slow_readers: AtomicU32,
    /// Snapshots that were not made because a client did not read.
    pub snapshots_skipped: AtomicU64,
    /// Updates that had to wait for the next tick.
    pub updates_deferred: AtomicU64,
    /// Tickets that let somebody in.
    pub tickets_used: AtomicU64,
    /// Players who came back after losing their connection.
    pub resumed: AtomicU64,
    /// Errors that scripts raised.
    pub script_errors: AtomicU64,
    /// Memory of scripts.
    pub script_bytes: AtomicU64,
    /// Time of scripts in the last tick.
    pub script_us: AtomicU64,
    kicks: [AtomicU64; KICK_CAUSES.len()],
    ticks: Mutex<Ring>,
}

#[derive(Default)]
struct Ring {
    values: Vec<StageTimes>,
    next: usize,
}

/// Median and 99th percentile, in milliseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Quantiles {
    /// Median.
    pub p50: f32,
    /// 99th percentile.
    pub p99: f32,
}

/// Figures for a program to read.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// Players in the world.
    pub players: u32,
    /// Open connections.
    pub connections: u32,
    /// Current tick.
    pub tick: u32,
    /// Median tick time of the last minute.
    pub tick_ms_p50: f32,
    /// 99th percentile of it.
    pub tick_ms_p99: f32,
    /// The same by stage, from `reads` over those of the world's step to
    /// `snapshots` and `writes`.
    pub stage_ms: BTreeMap<&'static str, Quantiles>,
    /// Ticks that were dropped.
    pub ticks_dropped: u64,
    /// Ticks that began late.
    pub ticks_late: u64,
    /// How hard it is to keep up: 0 to 3.
    pub pressure: u8,
    /// Bytes sent to clients.
    pub bytes_out: u64,
    /// Bytes received from clients.
    pub bytes_in: u64,
    /// Bytes that wait for clients to take them.
    pub queued_bytes: u64,
    /// Clients that get fewer updates because they do not keep up.
    pub slow_readers: u32,
    /// Snapshots not made for them.
    pub snapshots_skipped: u64,
    /// Updates that had to wait for the next tick.
    pub updates_deferred: u64,
    /// Connections ended because their client read too slowly.
    pub slow_reader_kicks: u64,
    /// Players who came back after losing their connection.
    pub resumed: u64,
}

impl Metrics {
    /// Notes how long a tick took.
    pub fn tick_took(&self, times: StageTimes) {
        let Ok(mut ring) = self.ticks.lock() else {
            return;
        };
        if ring.values.len() < TICKS_KEPT {
            ring.values.push(times);
        } else {
            let at = ring.next;
            ring.values[at] = times;
            ring.next = (at + 1) % TICKS_KEPT;
        }
    }

    /// Forgets the tick times: a benchmark's warm-up is over.
    pub fn forget_ticks(&self) {
        if let Ok(mut ring) = self.ticks.lock() {
            *ring = Ring::default();
        }
    }

    /// Notes a connection that we ended.
    pub fn kicked(&self, cause: KickCause) {
        self.kicks[cause as usize].fetch_add(1, Relaxed);
    }

    /// Everything a program may want.
    pub fn figures(&self) -> Figures {
        let ticks = self
            .ticks
            .lock()
            .map_or_else(|_| Vec::new(), |ring| ring.values.clone());
        let tick = quantiles(&ticks, |times| times.tick);
        Figures {
            players: self.players.load(Relaxed),
            connections: self.connections.load(Relaxed),
            tick: self.tick.load(Relaxed),
            tick_ms_p50: tick.p50,
            tick_ms_p99: tick.p99,
            stage_ms: stages(&ticks),
            ticks_dropped: self.ticks_dropped.load(Relaxed),
            ticks_late: self.ticks_late.load(Relaxed),
            pressure: self.pressure.load(Relaxed),
            bytes_out: self.bytes_out.load(Relaxed),
            bytes_in: self.bytes_in.load(Relaxed),
            queued_bytes: self.queued_bytes.load(Relaxed),
            slow_readers: self.slow_readers.load(Relaxed),
            snapshots_skipped: self.snapshots_skipped.load(Relaxed),
            updates_deferred: self.updates_deferred.load(Relaxed),
            slow_reader_kicks: self.kicks[KickCause::SlowReader as usize].load(Relaxed),
            resumed: self.resumed.load(Relaxed),
        }
    }

    /// The text form that Prometheus reads.
    pub fn prometheus(&self) -> String {
        let now = self.figures();
        let (gauge, counter) = ("gauge", "counter");
        let load = |value: &AtomicU64| value.load(Relaxed) as f64;
        let lines: &[(&str, &str, &str, f64)] = &[
            (
                "players",
                "Players in the world.",
                gauge,
                now.players.into(),
            ),
            (
                "connections",
                "Open connections.",
                gauge,
                now.connections.into(),
            ),
            ("tick", "Current tick.", counter, now.tick.into()),
            (
                "tick_ms_p50",
                "Median tick time of the last minute.",
                gauge,
                now.tick_ms_p50.into(),
            ),
            (
                "tick_ms_p99",
                "99th percentile of the tick time.",
                gauge,
                now.tick_ms_p99.into(),
            ),
            (
                "ticks_dropped_total",
                "Ticks dropped because the server was late.",
                counter,
                now.ticks_dropped as f64,
            ),
            (
                "ticks_late_total",
                "Ticks that began more than half a tick late.",
                counter,
                now.ticks_late as f64,
            ),
            (
                "pressure",
                "How hard it is to keep up, 0 to 3.",
                gauge,
                now.pressure.into(),
            ),
            (
                "bytes_out_total",
                "Bytes sent to clients.",
                counter,
                now.bytes_out as f64,
            ),
            (
                "bytes_in_total",
                "Bytes received from clients.",
                counter,
                now.bytes_in as f64,
            ),
            (
                "queued_bytes",
                "Bytes that wait for clients to take them.",
                gauge,
                now.queued_bytes as f64,
            ),
            (
                "slow_readers",
                "Clients that get fewer updates because they do not keep up.",
                gauge,
                now.slow_readers.into(),
            ),
            (
                "snapshots_skipped_total",
                "Snapshots not made for slow readers.",
                counter,
                now.snapshots_skipped as f64,
            ),
            (
                "updates_deferred_total",
                "Updates that had to wait for the next tick.",
                counter,
                now.updates_deferred as f64,
            ),
            (
                "resumed_total",
                "Players who came back after losing their connection.",
                counter,
                now.resumed as f64,
            ),
            (
                "script_errors_total",
                "Errors raised by scripts.",
                counter,
                load(&self.script_errors),
            ),
            (
                "script_bytes",
                "Memory of scripts.",
                gauge,
                load(&self.script_bytes),
            ),
            (
                "script_us",
                "Time of scripts in the last tick.",
                gauge,
                load(&self.script_us),
            ),
        ];
        let mut text = String::new();
        for (name, help, kind, value) in lines {
            heading(&mut text, name, help, kind);
            let _ = writeln!(text, "frolic_{name} {value}");
        }
        heading(
            &mut text,
            "kicks_total",
            "Connections ended by the server.",
            counter,
        );
        for (cause, name) in KICK_CAUSES {
            let count = self.kicks[cause as usize].load(Relaxed);
            let _ = writeln!(text, "frolic_kicks_total{{cause=\"{name}\"}} {count}");
        }
        heading(
            &mut text,
            "stage_ms",
            "Time of a tick's stages in the last minute.",
            gauge,
        );
        for (stage, times) in &now.stage_ms {
            for (quantile, value) in [("0.5", times.p50), ("0.99", times.p99)] {
                let _ = writeln!(
                    text,
                    "frolic_stage_ms{{stage=\"{stage}\",quantile=\"{quantile}\"}} {value}"
                );
            }
        }
        text
    }
}

fn stages(ticks: &[StageTimes]) -> BTreeMap<&'static str, Quantiles> {
    let of_step = Stage::ALL.map(|stage| {
        let times = quantiles(ticks, |times| times.step.of(stage));
        (stage.name(), times)
    });
    let around = [
        ("reads", quantiles(ticks, |times| times.reads)),
        ("snapshots", quantiles(ticks, |times| times.snapshots)),
        ("writes", quantiles(ticks, |times| times.writes)),
    ];
    of_step.into_iter().chain(around).collect()
}

fn heading(text: &mut String, name: &str, help: &str, kind: &str) {
    let _ = writeln!(
        text,
        "# HELP frolic_{name} {help}\n# TYPE frolic_{name} {kind}"
    );
}

fn quantiles(ticks: &[StageTimes], stage: impl Fn(&StageTimes) -> u32) -> Quantiles {
    let mut sorted: Vec<u32> = ticks.iter().map(stage).collect();
    sorted.sort_unstable();
    let at = |q: f64| {
        let last = sorted.len().saturating_sub(1) as f64;
        let found = sorted.get((last * q).round() as usize);
        found.map_or(0.0, |us| *us as f32 / 1000.0)
    };
    Quantiles {
        p50: at(0.5),
        p99: at(0.99),
    }
}

/// Measures the stages of a tick one after the other.
pub struct StageClock {
    last: std::time::Instant,
}

impl StageClock {
    /// Starts with the tick.
    pub fn new(began: std::time::Instant) -> Self {
        Self { last: began }
    }

    /// Microseconds since the last stage ended.
    pub fn lap(&mut self) -> u32 {
        let now = std::time::Instant::now();
        let time = now.duration_since(self.last);
        self.last = now;
        micros(time)
    }
}

/// A time as whole microseconds.
pub fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_and_kicks_are_told_by_name() {
        let metrics = Metrics::default();
        for us in 1..=100 {
            metrics.tick_took(StageTimes {
                tick: us * 1000,
                writes: us * 10,
                ..StageTimes::default()
            });
        }
        metrics.kicked(KickCause::SlowReader);
        let text = metrics.prometheus();
        for line in [
            "frolic_tick_ms_p99 99",
            "frolic_stage_ms{stage=\"writes\",quantile=\"0.99\"} 0.99",
            "frolic_kicks_total{cause=\"slow_reader\"} 1",
            "frolic_kicks_total{cause=\"flood\"} 0",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
        for (index, (cause, _)) in KICK_CAUSES.iter().enumerate() {
            assert_eq!(*cause as usize, index, "counters are found by number");
        }
        metrics.forget_ticks();
        assert_eq!(metrics.figures().tick_ms_p50, 0.0);
    }
}
