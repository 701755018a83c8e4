//! Metrics of the game server, for heartbeats, `/metrics` and benchmarks.

mod recent;
mod ring;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use frolic_metrics::{Counter, Gauge, Histogram, Seconds, Text, metrics};
use frolic_protocol::message::ConnectionReport;
use frolic_world::{StepTimes, WorldFigures};
use serde::Serialize;

use self::recent::{Quantiles, RecentTicks};

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

metrics! {
    /// Figures shared by the world's thread and the HTTP endpoints. The world's thread
    /// never waits for readers.
    pub struct Metrics {
        pub connections: Gauge = "connections", "Open connections, also of clients without a player.";
        pub webtransport: Gauge = "webtransport_connections", "Connections by WebTransport; the others are WebSockets.";
        pub ticks: Counter = "ticks_total", "The current tick.";
        pub ticks_dropped: Counter = "ticks_dropped_total", "Ticks dropped because the server was late.";
        pub ticks_late: Counter = "ticks_late_total", "Ticks that began more than half a tick late.";
        tick_seconds: Histogram = "tick_seconds", "Duration of a tick.";
        pub pressure: Gauge = "pressure", "How far the server is from keeping up, 0 to 3.";
        pub bytes_out: Counter = "sent_bytes_total", "Bytes sent to clients.";
        pub bytes_in: Counter = "received_bytes_total", "Bytes received from clients.";
        pub queued_bytes: Gauge = "queued_bytes", "Bytes queued for clients.";
        pub slow_readers: Gauge = "slow_readers", "Clients that get fewer updates because they do not keep up.";
        pub snapshots: Counter = "snapshots_total", "Snapshots sent.";
        pub snapshots_skipped: Counter = "snapshots_skipped_total", "Snapshots not made because a client did not read.";
        pub updates_deferred: Counter = "updates_deferred_total", "Updates that had to wait for the next tick.";
        pub packets: Counter = "snapshot_packets_total", "Packets of snapshots that were sent unreliably.";
        pub packets_lost: Counter = "snapshot_packets_lost_total", "Packets of snapshots that clients did not acknowledge.";
        pub tickets_used: Counter = "tickets_used_total", "Tickets that admitted a player.";
        pub resumed: Counter = "resumed_total", "Players who reconnected after losing their connection.";
        pub script_errors: Counter = "script_errors_total", "Errors raised by scripts.";
        pub script_bytes: Gauge = "script_bytes", "Memory of scripts.";
        pub script_seconds: Seconds = "script_seconds_total", "Time of scripts.";
        entities: Gauge = "entities", "Entities in the world.";
        waiting_inputs: Gauge = "waiting_inputs", "Inputs of all players that wait for their tick.";
        repeated_inputs: Counter = "repeated_inputs_total", "Ticks that repeated a player's last input because the next had not arrived.";
        round_trip_seconds: Histogram = "rtt_seconds", "Round trips to clients. Each connection is measured every few seconds.";
        jitter_seconds: Histogram = "jitter_seconds", "Difference of a round trip from the one before it on the same connection.";
        client_input_sequence: Gauge = "client_input_sequence", "Number of the newest input in the last client report.";
        client_pending_inputs: Histogram = "client_pending_inputs", "Inputs that are not acknowledged, as clients report.";
        client_snapshot_age_seconds: Histogram = "client_snapshot_age_seconds", "Age of the newest snapshot, as clients report.";
        client_jitter_seconds: Histogram = "client_jitter_seconds", "Jitter of snapshot arrivals, as clients report.";
        client_corrections: Counter = "client_corrections_total", "Corrections of predicted movement, as clients report.";
    } and {
        /// Locked only to swap a pointer.
        presence: Mutex<Arc<Presence>>,
        kicks: [Counter; KICK_CAUSES.len()],
        recent: RecentTicks,
    }
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
    pub connections: u64,
    /// Current tick.
    pub tick: u64,
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
    pub pressure: u64,
    /// Bytes sent to clients.
    pub bytes_out: u64,
    /// Bytes received from clients.
    pub bytes_in: u64,
    /// Bytes that are queued for clients.
    pub queued_bytes: u64,
    /// Clients that get fewer updates because they do not keep up.
    pub slow_readers: u64,
    /// Snapshots not made for them.
    pub snapshots_skipped: u64,
    /// Updates that had to wait for the next tick.
    pub updates_deferred: u64,
    /// Connections ended because their client read too slowly.
    pub slow_reader_kicks: u64,
    /// Players who reconnected after losing their connection.
    pub resumed: u64,
}

impl Metrics {
    /// Records the duration of a tick.
    pub fn tick_took(&self, times: StageTimes) {
        self.tick_seconds
            .observe_duration(Duration::from_micros(times.tick.into()));
        self.recent.note(&times);
    }

    /// Records a round trip to a client. Each connection is measured every few
    /// seconds.
    pub fn round_trip_took(&self, time: Duration) {
        self.round_trip_seconds.observe_duration(time);
    }

    /// Records the difference from the previous round trip on the same connection.
    pub fn jitter_was(&self, difference: Duration) {
        self.jitter_seconds.observe_duration(difference);
    }

    /// Records a client's connection report, and how many corrections are new in
    /// it. The values are untrusted: one client of many.
    pub fn client_reported(&self, report: &ConnectionReport, corrections: u32) {
        let corrections = corrections.min(REPORTED_CORRECTIONS_MAX);
        self.client_corrections.add(corrections.into());
        let seconds = |ms: f32| f64::from(ms.clamp(0.0, REPORTED_MS_MAX)) / 1000.0;
        self.client_input_sequence.set(report.input_seq.into());
        self.client_pending_inputs
            .observe(report.pending_inputs.min(REPORTED_INPUTS_MAX).into());
        self.client_snapshot_age_seconds
            .observe(seconds(report.snapshot_age_ms));
        self.client_jitter_seconds
            .observe(seconds(report.jitter_ms));
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
        self.entities.set(world.entities as u64);
        self.waiting_inputs.set(world.waiting_inputs as u64);
        self.repeated_inputs.set(world.repeated_inputs);
    }

    /// Forgets the tick times: a benchmark's warm-up is over.
    pub fn forget_ticks(&self) {
        self.recent.forget();
    }

    /// Records a connection that we closed.
    pub fn kicked(&self, cause: KickCause) {
        self.kicks[cause as usize].add(1);
    }

    /// All figures. The endpoint is public: counters are read as they are, and what
    /// needs computation is up to a second old.
    pub fn figures(&self) -> Figures {
        let summary = self.recent.summary(Instant::now());
        Figures {
            players: self.presence().players,
            connections: self.connections.value(),
            tick: self.ticks.value(),
            tick_ms_p50: summary.tick.p50,
            tick_ms_p99: summary.tick.p99,
            stage_ms: summary.stages.clone(),
            ticks_dropped: self.ticks_dropped.value(),
            ticks_late: self.ticks_late.value(),
            pressure: self.pressure.value(),
            bytes_out: self.bytes_out.value(),
            bytes_in: self.bytes_in.value(),
            queued_bytes: self.queued_bytes.value(),
            slow_readers: self.slow_readers.value(),
            snapshots_skipped: self.snapshots_skipped.value(),
            updates_deferred: self.updates_deferred.value(),
            slow_reader_kicks: self.kicks[KickCause::SlowReader as usize].value(),
            resumed: self.resumed.value(),
        }
    }

    /// Writes all metrics.
    pub fn write(&self, text: &mut Text) {
        text.gauge("players", "Players in the world.", self.presence().players);
        self.write_metrics(text);
        text.family("kicks_total", "counter", "Connections ended by the server.");
        for (cause, name) in KICK_CAUSES {
            let count = self.kicks[cause as usize].value();
            text.sample("kicks_total", &[("cause", name)], count);
        }
        let (name, help) = ("tick_stage_seconds_total", "Time of the stages of ticks.");
        text.family(name, "counter", help);
        for (stage, seconds) in self.recent.totals() {
            text.sample(name, &[("stage", stage)], seconds);
        }
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

    fn text_of(metrics: &Metrics) -> String {
        let mut text = Text::default();
        metrics.write(&mut text);
        text.finish()
    }

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
        let text = text_of(&metrics);
        for line in [
            "frolic_tick_seconds_bucket{le=\"0.05\"} 50",
            "frolic_tick_seconds_sum 5.05",
            "frolic_tick_stage_seconds_total{stage=\"writes\"} 0.0505",
            "frolic_kicks_total{cause=\"slow_reader\"} 1",
            "frolic_kicks_total{cause=\"flood\"} 0",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
        assert_eq!(metrics.figures().tick_ms_p99, 99.0);
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
        for (connection, ms) in [(&mut near, [20, 20, 24]), (&mut far, [200, 200, 192])] {
            let times = ms.map(Duration::from_millis);
            let differences = times.into_iter().filter_map(|time| connection.after(time));
            differences.for_each(|difference| metrics.jitter_was(difference));
        }
        let text = text_of(&metrics);
        for line in [
            "frolic_jitter_seconds_bucket{le=\"0.002\"} 2",
            "frolic_jitter_seconds_bucket{le=\"0.01\"} 4",
            "frolic_jitter_seconds_sum 0.012",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }
}
