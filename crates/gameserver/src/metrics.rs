//! What the game server measures of itself, for heartbeats, `/metrics` and benchmarks.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use serde::Serialize;

/// Tick times kept: a minute at 60 Hz.
const TICKS_KEPT: usize = 3600;

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
    /// Bytes sent to clients.
    pub bytes_out: AtomicU64,
    /// Bytes received from clients.
    pub bytes_in: AtomicU64,
    /// Snapshots that were not sent because a client did not read.
    pub snapshots_skipped: AtomicU64,
    /// Errors that scripts raised.
    pub script_errors: AtomicU64,
    /// Memory of scripts.
    pub script_bytes: AtomicU64,
    /// Time of scripts in the last tick.
    pub script_us: AtomicU64,
    ticks_us: Mutex<Ring>,
}

#[derive(Default)]
struct Ring {
    values: Vec<u32>,
    next: usize,
}

/// Figures for a program to read.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Figures {
    /// Players in the world.
    pub players: u32,
    /// Current tick.
    pub tick: u32,
    /// Median tick time of the last minute.
    pub tick_ms_p50: f32,
    /// 99th percentile of it.
    pub tick_ms_p99: f32,
    /// Ticks that were dropped.
    pub ticks_dropped: u64,
    /// Bytes sent to clients.
    pub bytes_out: u64,
    /// Bytes received from clients.
    pub bytes_in: u64,
}

impl Metrics {
    /// Notes how long a tick took.
    pub fn tick_took(&self, time: Duration) {
        let us = u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        let Ok(mut ring) = self.ticks_us.lock() else {
            return;
        };
        if ring.values.len() < TICKS_KEPT {
            ring.values.push(us);
        } else {
            let at = ring.next;
            ring.values[at] = us;
            ring.next = (at + 1) % TICKS_KEPT;
        }
    }

    /// Forgets the tick times: a benchmark's warm-up is over.
    pub fn forget_ticks(&self) {
        if let Ok(mut ring) = self.ticks_us.lock() {
            *ring = Ring::default();
        }
    }

    fn tick_ms(&self, quantiles: [f64; 2]) -> [f32; 2] {
        let Ok(ring) = self.ticks_us.lock() else {
            return [0.0; 2];
        };
        let mut sorted = ring.values.clone();
        drop(ring);
        sorted.sort_unstable();
        quantiles.map(|q| {
            let last = sorted.len().saturating_sub(1) as f64;
            let at = (last * q).round() as usize;
            sorted.get(at).map_or(0.0, |us| *us as f32 / 1000.0)
        })
    }

    /// Everything a program may want.
    pub fn figures(&self) -> Figures {
        let [tick_ms_p50, tick_ms_p99] = self.tick_ms([0.5, 0.99]);
        Figures {
            players: self.players.load(Relaxed),
            tick: self.tick.load(Relaxed),
            tick_ms_p50,
            tick_ms_p99,
            ticks_dropped: self.ticks_dropped.load(Relaxed),
            bytes_out: self.bytes_out.load(Relaxed),
            bytes_in: self.bytes_in.load(Relaxed),
        }
    }

    /// The text form that Prometheus reads.
    pub fn prometheus(&self) -> String {
        let figures = self.figures();
        let gauge = |name: &str, help: &str, kind: &str, value: f64| {
            format!(
                "# HELP frolic_{name} {help}\n# TYPE frolic_{name} {kind}\nfrolic_{name} {value}\n"
            )
        };
        let load = |counter: &AtomicU64| counter.load(Relaxed) as f64;
        [
            gauge(
                "players",
                "Players in the world.",
                "gauge",
                f64::from(figures.players),
            ),
            gauge(
                "connections",
                "Open connections.",
                "gauge",
                f64::from(self.connections.load(Relaxed)),
            ),
            gauge("tick", "Current tick.", "counter", f64::from(figures.tick)),
            gauge(
                "tick_ms_p50",
                "Median tick time of the last minute.",
                "gauge",
                f64::from(figures.tick_ms_p50),
            ),
            gauge(
                "tick_ms_p99",
                "99th percentile of the tick time.",
                "gauge",
                f64::from(figures.tick_ms_p99),
            ),
            gauge(
                "ticks_dropped_total",
                "Ticks dropped because the server was late.",
                "counter",
                load(&self.ticks_dropped),
            ),
            gauge(
                "bytes_out_total",
                "Bytes sent to clients.",
                "counter",
                load(&self.bytes_out),
            ),
            gauge(
                "bytes_in_total",
                "Bytes received from clients.",
                "counter",
                load(&self.bytes_in),
            ),
            gauge(
                "snapshots_skipped_total",
                "Snapshots not sent to slow readers.",
                "counter",
                load(&self.snapshots_skipped),
            ),
            gauge(
                "script_errors_total",
                "Errors raised by scripts.",
                "counter",
                load(&self.script_errors),
            ),
            gauge(
                "script_bytes",
                "Memory of scripts.",
                "gauge",
                load(&self.script_bytes),
            ),
            gauge(
                "script_us",
                "Time of scripts in the last tick.",
                "gauge",
                load(&self.script_us),
            ),
        ]
        .concat()
    }
}
