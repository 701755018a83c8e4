//! Metrics of the game server, for heartbeats, `/metrics` and benchmarks.

mod page;
mod ring;
mod summary;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use frolic_protocol::message::LineReport;
use frolic_world::{StepTimes, WorldFigures};
use serde::Serialize;

use self::page::Page;
use self::summary::{ClientFigures, ClientSees, Measured, Quantiles};

/// Why we closed connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KickCause {
    /// More messages or inputs than allowed.
    Flood,
    /// It did not read what was sent to it.
    SlowReader,
    /// It sent an invalid message.
    Unreadable,
    /// It sent no valid handshake.
    Refused,
    /// Its player joined from elsewhere.
    Replaced,
    /// It left.
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

/// The most corrections that are accepted in one report: there is one per second.
const REPORTED_CORRECTIONS_MAX: u32 = 240;
const REPORTED_INPUTS_MAX: u32 = 1000;
const REPORTED_MS_MAX: f32 = 60_000.0;

/// Counters shared by the world's thread and the HTTP endpoints. The world's thread
/// never waits for readers.
#[derive(Default)]
pub struct Metrics {
    /// Held only to swap a pointer.
    presence: Mutex<Arc<Presence>>,
    /// Open connections, those without a player included.
    pub connections: AtomicU32,
    /// Current tick.
    pub tick: AtomicU32,
    /// Ticks that were dropped because the server was late.
    pub ticks_dropped: AtomicU64,
    /// Ticks that began more than half a tick late.
    pub ticks_late: AtomicU64,
    /// How far the server is from keeping up: 0 to 3.
    pub pressure: AtomicU8,
    /// Bytes sent to clients.
    pub bytes_out: AtomicU64,
    /// Bytes received from clients.
    pub bytes_in: AtomicU64,
    /// Bytes that are queued for clients.
    pub queued_bytes: AtomicU64,
    /// Clients that get fewer updates because they do not keep up.
    pub slow_readers: AtomicU32,
    /// Snapshots that were not made because a client did not read.
    pub snapshots_skipped: AtomicU64,
    /// Updates that had to wait for the next tick.
    pub updates_deferred: AtomicU64,
    /// Tickets that admitted a player.
    pub tickets_used: AtomicU64,
    /// Players who reconnected after losing their connection.
    pub resumed: AtomicU64,
    /// Errors that scripts raised.
    pub script_errors: AtomicU64,
    /// Memory of scripts.
    pub script_bytes: AtomicU64,
    /// Time of scripts in the last tick.
    pub script_us: AtomicU64,
    /// Sessions by WebTransport.
    pub webtransport: AtomicU32,
    /// Snapshots sent.
    pub snapshots: AtomicU64,
    /// Packets of snapshots that were sent unreliably.
    pub packets: AtomicU64,
    /// Those of them that clients did not acknowledge.
    pub packets_lost: AtomicU64,
    client_corrections: AtomicU64,
    entities: AtomicU64,
    waiting_inputs: AtomicU64,
    repeated_inputs: AtomicU64,
    kicks: [AtomicU64; KICK_CAUSES.len()],
    measured: Measured,
}

/// The players in the world at one moment.
#[derive(Clone, Debug, Default)]
pub struct Presence {
    /// Players with a connection.
    pub players: u32,
    /// Persistent ids of players who lost their connection and may reconnect.
    pub away: Vec<String>,
    /// Persistent ids of players who came from an earlier process of the world.
    pub returned: Vec<String>,
}

/// The variation of a connection's round trip times.
#[derive(Debug, Default)]
pub struct Jitter {
    last: Option<Duration>,
}

impl Jitter {
    /// The difference from the previous round trip; none for the first.
    pub fn after(&mut self, round_trip: Duration) -> Option<Duration> {
        let last = self.last.replace(round_trip)?;
        Some(last.abs_diff(round_trip))
    }
}

/// Figures in machine-readable form.
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
    /// How far the server is from keeping up: 0 to 3.
    pub pressure: u8,
    /// Bytes sent to clients.
    pub bytes_out: u64,
    /// Bytes received from clients.
    pub bytes_in: u64,
    /// Bytes that are queued for clients.
    pub queued_bytes: u64,
    /// Clients that get fewer updates because they do not keep up.
    pub slow_readers: u32,
    /// Snapshots not made for them.
    pub snapshots_skipped: u64,
    /// Updates that had to wait for the next tick.
    pub updates_deferred: u64,
    /// Connections ended because their client read too slowly.
    pub slow_reader_kicks: u64,
    /// Players who reconnected after losing their connection.
    pub resumed: u64,
    /// Round trips to clients.
    pub rtt_ms: Quantiles,
    /// Difference of consecutive round trips of the same client.
    pub jitter_ms: Quantiles,
    /// The mean of that.
    pub jitter_ms_mean: f32,
    /// What clients report of their connections, by the names in the debug overlay.
    pub clients: ClientFigures,
    /// Total of the corrections they have reported.
    pub client_corrections: u64,
}

impl Metrics {
    /// Records the duration of a tick.
    pub fn tick_took(&self, times: StageTimes) {
        self.measured.tick(&times);
    }

    /// Records a round trip to a client. Each connection is measured every few
    /// seconds.
    pub fn round_trip_took(&self, time: Duration) {
        self.measured.round_trip(micros(time));
    }

    /// Records the difference from the previous round trip on the same connection.
    pub fn jitter_was(&self, difference: Duration) {
        self.measured.jitter(micros(difference));
    }

    /// Records a client's connection report, and how many corrections are new in
    /// it. The values are untrusted: one client of many.
    pub fn client_reported(&self, report: &LineReport, corrections: u32) {
        let corrections = corrections.min(REPORTED_CORRECTIONS_MAX);
        self.client_corrections
            .fetch_add(u64::from(corrections), Relaxed);
        let micros = |ms: f32| (ms.clamp(0.0, REPORTED_MS_MAX) * 1000.0) as u32;
        self.measured.report(ClientSees {
            input_seq: report.input_seq,
            pending_inputs: report.pending_inputs.min(REPORTED_INPUTS_MAX),
            snapshot_age_us: micros(report.snapshot_age_ms),
            jitter_us: micros(report.jitter_ms),
        });
    }

    /// Records which players are here.
    pub fn set_presence(&self, now: Presence) {
        let now = Arc::new(now);
        let before = std::mem::replace(&mut *self.lock_presence(), now);
        // Up to a thousand names are freed after the lock is released.
        drop(before);
    }

    /// Which players are here.
    pub fn presence(&self) -> Arc<Presence> {
        self.lock_presence().clone()
    }

    fn lock_presence(&self) -> MutexGuard<'_, Arc<Presence>> {
        self.presence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the state of the world.
    pub fn note_world(&self, world: WorldFigures) {
        self.entities.store(world.entities as u64, Relaxed);
        self.waiting_inputs
            .store(world.waiting_inputs as u64, Relaxed);
        self.repeated_inputs.store(world.repeated_inputs, Relaxed);
    }

    /// Forgets the tick times: a benchmark's warm-up is over.
    pub fn forget_ticks(&self) {
        self.measured.forget_ticks();
    }

    /// Records a connection that we closed.
    pub fn kicked(&self, cause: KickCause) {
        self.kicks[cause as usize].fetch_add(1, Relaxed);
    }

    /// All figures. The endpoint is public: counters are read as they are, and what
    /// needs computation is up to a second old.
    pub fn figures(&self) -> Figures {
        let summary = self.measured.summary(Instant::now());
        Figures {
            players: self.presence().players,
            connections: self.connections.load(Relaxed),
            tick: self.tick.load(Relaxed),
            tick_ms_p50: summary.tick.p50,
            tick_ms_p99: summary.tick.p99,
            stage_ms: summary.stages.clone(),
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
            rtt_ms: summary.round_trip,
            jitter_ms: summary.jitter,
            jitter_ms_mean: summary.jitter_mean,
            clients: summary.clients,
            client_corrections: self.client_corrections.load(Relaxed),
        }
    }

    /// The Prometheus text format.
    pub fn prometheus(&self) -> String {
        let now = self.figures();
        let load = |value: &AtomicU64| value.load(Relaxed);
        let mut page = Page::default();
        page.gauge("players", "Players in the world.", now.players as f64);
        page.gauge("connections", "Open connections.", now.connections as f64);
        page.counter("tick", "Current tick.", now.tick as f64);
        page.gauge(
            "tick_ms_p50",
            "Median tick time of the last minute.",
            now.tick_ms_p50 as f64,
        );
        page.gauge(
            "tick_ms_p99",
            "99th percentile of the tick time.",
            now.tick_ms_p99 as f64,
        );
        page.counter(
            "ticks_dropped_total",
            "Ticks dropped because the server was late.",
            now.ticks_dropped as f64,
        );
        page.counter(
            "ticks_late_total",
            "Ticks that began more than half a tick late.",
            now.ticks_late as f64,
        );
        page.gauge(
            "pressure",
            "How hard it is to keep up, 0 to 3.",
            now.pressure as f64,
        );
        page.counter(
            "bytes_out_total",
            "Bytes sent to clients.",
            now.bytes_out as f64,
        );
        page.counter(
            "bytes_in_total",
            "Bytes received from clients.",
            now.bytes_in as f64,
        );
        page.gauge(
            "queued_bytes",
            "Bytes that wait for clients to take them.",
            now.queued_bytes as f64,
        );
        page.gauge(
            "slow_readers",
            "Clients that get fewer updates because they do not keep up.",
            now.slow_readers as f64,
        );
        page.counter(
            "snapshots_skipped_total",
            "Snapshots not made for slow readers.",
            now.snapshots_skipped as f64,
        );
        page.counter(
            "updates_deferred_total",
            "Updates that had to wait for the next tick.",
            now.updates_deferred as f64,
        );
        page.counter(
            "resumed_total",
            "Players who came back after losing their connection.",
            now.resumed as f64,
        );
        page.counter(
            "script_errors_total",
            "Errors raised by scripts.",
            load(&self.script_errors) as f64,
        );
        page.gauge(
            "script_bytes",
            "Memory of scripts.",
            load(&self.script_bytes) as f64,
        );
        page.gauge(
            "script_us",
            "Time of scripts in the last tick.",
            load(&self.script_us) as f64,
        );
        page.gauge(
            "webtransport",
            "Connections by WebTransport; the others are WebSockets.",
            self.webtransport.load(Relaxed) as f64,
        );
        page.gauge(
            "entities",
            "Things in the world.",
            load(&self.entities) as f64,
        );
        page.gauge(
            "waiting_inputs",
            "Inputs of all players that wait for their tick.",
            load(&self.waiting_inputs) as f64,
        );
        page.counter(
            "repeated_inputs_total",
            "Ticks that used a player's last input again: the next had not come.",
            load(&self.repeated_inputs) as f64,
        );
        page.counter(
            "snapshots_total",
            "Snapshots sent.",
            load(&self.snapshots) as f64,
        );
        page.counter(
            "snapshot_packets_total",
            "Packets of snapshots sent where they may be lost.",
            load(&self.packets) as f64,
        );
        page.counter(
            "snapshot_packets_lost_total",
            "Packets of snapshots that clients did not acknowledge.",
            load(&self.packets_lost) as f64,
        );
        page.heading(
            "rtt_ms",
            "Round trips to clients, as far as they were measured last.",
            "gauge",
        );
        page.quantiles("rtt_ms", "", now.rtt_ms);
        page.heading(
            "jitter_ms",
            "By how much round trips differ from those before them, of the same client.",
            "gauge",
        );
        page.quantiles("jitter_ms", "", now.jitter_ms);
        page.gauge(
            "jitter_ms_mean",
            "Mean difference of a round trip from the one before it.",
            now.jitter_ms_mean as f64,
        );
        page.counter(
            "client_corrections_total",
            "Corrections of predicted movement, as clients report.",
            now.client_corrections as f64,
        );
        let clients = now.clients;
        for (name, help, figure) in [
            (
                "client_input_sequence",
                "Numbers of the newest inputs, as clients report.",
                clients.input_seq,
            ),
            (
                "client_pending_inputs",
                "Inputs that are not confirmed yet, as clients report.",
                clients.pending_inputs,
            ),
            (
                "client_snapshot_age_ms",
                "Time since a snapshot came, as clients report.",
                clients.snapshot_age_ms,
            ),
            (
                "client_jitter_ms",
                "By how much snapshots come early or late, as clients report.",
                clients.jitter_ms,
            ),
        ] {
            page.heading(name, help, "gauge");
            page.quantiles(name, "", figure);
        }
        page.heading("kicks_total", "Connections ended by the server.", "counter");
        for (cause, name) in KICK_CAUSES {
            let count = self.kicks[cause as usize].load(Relaxed);
            page.line("kicks_total", &format!("cause=\"{name}\""), count as f64);
        }
        page.heading(
            "stage_ms",
            "Time of a tick's stages in the last minute.",
            "gauge",
        );
        for (stage, times) in &now.stage_ms {
            page.quantiles("stage_ms", &format!("stage=\"{stage}\","), *times);
        }
        page.finish()
    }
}

/// Measures the stages of a tick one after the other.
pub struct StageClock {
    last: Instant,
}

impl StageClock {
    /// Starts with the tick.
    pub fn new(began: Instant) -> Self {
        Self { last: began }
    }

    /// Microseconds since the last stage ended.
    pub fn lap(&mut self) -> u32 {
        let now = Instant::now();
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
    fn stages_and_kicks_are_reported_by_name() {
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

    #[test]
    fn presence_can_be_read_while_it_changes() {
        let metrics = Metrics::default();
        let away = vec!["user_1".to_owned()];
        metrics.set_presence(Presence {
            players: 3,
            away,
            ..Presence::default()
        });
        let read = metrics.presence();
        metrics.set_presence(Presence::default());
        assert_eq!((read.players, read.away.len()), (3, 1));
        assert_eq!(metrics.figures().players, 0);
    }

    #[test]
    fn jitter_is_the_difference_of_a_connections_round_trips() {
        let metrics = Metrics::default();
        let (mut near, mut far) = (Jitter::default(), Jitter::default());
        // Two steady connections with different latency: they are not compared.
        for (line, ms) in [(&mut near, [20, 20, 24]), (&mut far, [200, 200, 192])] {
            let times = ms.map(Duration::from_millis);
            let differences = times.into_iter().filter_map(|time| line.after(time));
            differences.for_each(|difference| metrics.jitter_was(difference));
        }
        let text = metrics.prometheus();
        for line in [
            "frolic_jitter_ms{quantile=\"0.5\"} 4",
            "frolic_jitter_ms{quantile=\"0.99\"} 8",
            "frolic_jitter_ms_mean 3",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }
}
