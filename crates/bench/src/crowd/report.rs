//! The results of a crowd: figures, and warnings where they cannot be trusted.

use serde::Serialize;
use serde_json::Value;

use super::look::Work;
use super::{Crowd, CrowdArgs};
use frolic_bots::SwarmReport;

/// A load process that uses more of its core than this blurs what it measures.
const LOAD_CPU_MAX: f64 = 0.8;
/// So does one whose turns come this late.
const LOAD_LATE_MS_MAX: f64 = 10.0;
/// A host that takes more than this of the server's core is in every
/// hundredth tick, and so in their p99.
const STOLEN_MAX: f64 = 0.01;
/// The floor has to send as much as the crowd's server did, the server in
/// turns as much as without them, and the crowd as much as it was asked to.
const RATE_TOLERANCE: f64 = 0.03;
/// A server that costs something else in turns is another server, or has
/// another machine.
const CPU_TOLERANCE: f64 = 0.1;

/// Traffic of a crowd's clients: the floor moves the same.
#[derive(Debug, PartialEq)]
pub struct Traffic {
    /// Updates per client and second.
    pub update_hz: f64,
    /// Bytes of one, with all that came besides.
    pub update_bytes: usize,
    /// Messages from each client per second.
    pub input_hz: f64,
    /// Bytes of one.
    pub input_bytes: usize,
}

impl Traffic {
    /// As it was measured.
    pub fn of(swarm: &SwarmReport) -> Self {
        let update_hz = swarm.update_hz_mean.max(0.1);
        let update_bytes = swarm.bytes_per_client_s / update_hz;
        Self {
            update_hz,
            update_bytes: (update_bytes.round() as usize).max(1),
            input_hz: swarm.messages_out_hz.max(0.1),
            input_bytes: (swarm.message_out_bytes.round() as usize).max(1),
        }
    }
}

/// The cost of server and floor in alternating turns.
pub struct Turns {
    pub server_cpu_s_per_s: f64,
    /// The server's work in the measured seconds.
    pub work: Work,
    pub floor_cpu_s_per_s: f64,
    pub floor_load_cpu_s_per_s: f64,
    pub floor_update_hz: f64,
}

/// Figures of one run with a crowd of bots.
#[derive(Serialize)]
pub struct CrowdReport {
    players: u32,
    tick_hz: u32,
    snapshot_hz: u32,
    tick_ms_p50: f64,
    tick_ms_p99: f64,
    server_cpu_s_per_s: f64,
    server_rss_mb: f64,
    bytes_per_client_s: f64,
    update_hz_p50: f64,
    update_interval_ms_p99: f64,
    floor_cpu_s_per_s: f64,
    ratio_to_floor: f64,
    bytes_per_client_entity_update: f64,
    players_finished: u32,
    join_ms_p50: f64,
    join_ms_p99: f64,
    corrections_p50: f64,
    update_hz_p01: f64,
    entities_p50: f64,
    /// Entities known to a client, summed over clients and updates. Not each is
    /// in each update: far ones are updated less often.
    known_pairs_per_s: f64,
    rtt_ms_p50: f64,
    late_joins: u32,
    late_join_ms_p50: Option<f64>,
    late_join_ms_p99: Option<f64>,
    floor_update_hz: f64,
    /// Messages each client sent per second.
    messages_out_hz: f64,
    load_cpu_s_per_s: f64,
    load_late_ms_p99: f64,
    /// CPU of the floor's clients: the least any load can cost.
    floor_load_cpu_s_per_s: f64,
    /// CPU that the host took from the server's core during the measurement.
    stolen_s_per_s: f64,
    /// CPU of the server in the run without pauses, and its work in both.
    server_cpu_s_per_s_uninterrupted: f64,
    work_uninterrupted: Work,
    work_in_turns: Work,
    /// Why the first player who did not stay to the end left.
    first_error: Option<String>,
    /// All that the server said of itself: times of its stages, if it knows them.
    server_stats: Value,
    warnings: Vec<String>,
}

impl CrowdReport {
    /// Puts both runs together: the one without pauses for what clients and
    /// ticks saw, the turns for what it cost.
    /// `pinning` is what stood in the way of a core for each.
    pub fn new(args: &CrowdArgs, crowd: &Crowd, turns: &Turns, pinning: Vec<String>) -> Self {
        let swarm = &crowd.swarm;
        let stat = |name: &str| crowd.stats[name].as_f64().unwrap_or(0.0);
        let seen_per_client_s = swarm.entities_mean * swarm.update_hz_mean;
        let mut report = Self {
            players: args.players,
            tick_hz: args.tick_hz,
            snapshot_hz: args.snapshot_hz,
            tick_ms_p50: stat("tick_ms_p50"),
            tick_ms_p99: stat("tick_ms_p99"),
            server_cpu_s_per_s: turns.server_cpu_s_per_s,
            server_rss_mb: crowd.rss_mb,
            bytes_per_client_s: swarm.bytes_per_client_s,
            update_hz_p50: swarm.update_hz_p50,
            update_interval_ms_p99: swarm.update_interval_ms_p99,
            floor_cpu_s_per_s: turns.floor_cpu_s_per_s,
            ratio_to_floor: turns.server_cpu_s_per_s / turns.floor_cpu_s_per_s.max(1e-3),
            bytes_per_client_entity_update: swarm.bytes_per_client_s / seen_per_client_s.max(1.0),
            players_finished: swarm.finished,
            join_ms_p50: swarm.join_ms_p50,
            join_ms_p99: swarm.join_ms_p99,
            corrections_p50: swarm.corrections_p50,
            update_hz_p01: swarm.update_hz_p01,
            entities_p50: swarm.entities_p50,
            known_pairs_per_s: seen_per_client_s * f64::from(swarm.finished),
            rtt_ms_p50: swarm.rtt_ms_p50,
            late_joins: swarm.late_joins,
            late_join_ms_p50: swarm.late_join_ms_p50,
            late_join_ms_p99: swarm.late_join_ms_p99,
            floor_update_hz: turns.floor_update_hz,
            messages_out_hz: swarm.messages_out_hz,
            load_cpu_s_per_s: crowd.load_cpu_s_per_s,
            load_late_ms_p99: swarm.load_late_ms_p99,
            floor_load_cpu_s_per_s: turns.floor_load_cpu_s_per_s,
            stolen_s_per_s: crowd.stolen_s_per_s,
            server_cpu_s_per_s_uninterrupted: crowd.server_cpu_s_per_s,
            work_uninterrupted: crowd.work,
            work_in_turns: turns.work,
            first_error: swarm.first_error.clone(),
            server_stats: crowd.stats.clone(),
            warnings: pinning,
        };
        let doubts = report.doubts(args, swarm.update_hz_mean);
        report.warnings.extend(doubts);
        report.warnings.extend(report.doubts_of_turns());
        report
    }

    /// Reasons to doubt these figures.
    fn doubts(&self, args: &CrowdArgs, update_hz: f64) -> Vec<String> {
        let mut doubts = Vec::new();
        let loads = [
            ("load", self.load_cpu_s_per_s),
            ("floor's load", self.floor_load_cpu_s_per_s),
        ];
        for (which, cpu) in loads {
            if cpu > LOAD_CPU_MAX {
                let percent = cpu * 100.0;
                doubts.push(format!(
                    "the {which} used {percent:.0} % of its core: it may be the bottleneck"
                ));
            }
        }
        if self.load_late_ms_p99 > LOAD_LATE_MS_MAX {
            let late_ms = self.load_late_ms_p99;
            doubts.push(format!(
                "the load itself was {late_ms:.1} ms late (p99): gaps are shorter than they look"
            ));
        }
        if self.stolen_s_per_s > STOLEN_MAX {
            let percent = self.stolen_s_per_s * 100.0;
            doubts.push(format!(
                "the host took {percent:.1} % of the server's core: ticks that it fell into look longer"
            ));
        }
        let input_hz = f64::from(args.input_hz);
        if self.messages_out_hz < input_hz * (1.0 - RATE_TOLERANCE) {
            let sent = self.messages_out_hz;
            doubts.push(format!(
                "players sent {sent:.1} times per second instead of {input_hz}"
            ));
        }
        if is_off(self.floor_update_hz, update_hz, RATE_TOLERANCE) {
            doubts.push(format!(
                "the floor sent {:.2} updates per second instead of {update_hz:.2}",
                self.floor_update_hz
            ));
        }
        if self.players_finished < self.players || self.late_joins < args.late_joins {
            let error = self.first_error.as_deref().unwrap_or("no reason known");
            doubts.push(format!("not all players stayed to the end: {error}"));
        }
        doubts
    }

    /// Whether the server did the same in turns as without them: one that is
    /// paused in the middle of a tick may take that for a slow machine, and
    /// then sends less.
    fn doubts_of_turns(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        let work = &self.work_in_turns;
        let [sent, usual] = [work, &self.work_uninterrupted].map(Work::bytes_per_client_s);
        if is_off(sent, usual, RATE_TOLERANCE) {
            doubts.push(format!(
                "in turns the server sent {sent:.0} bytes per client and second instead of {usual:.0}"
            ));
        }
        let (cost, usual) = (
            self.server_cpu_s_per_s,
            self.server_cpu_s_per_s_uninterrupted,
        );
        if is_off(cost, usual, CPU_TOLERANCE) {
            doubts.push(format!(
                "in turns the server used {cost:.3} CPU s/s, without pauses {usual:.3}"
            ));
        }
        if work.pressure > 0 {
            let level = work.pressure;
            doubts.push(format!(
                "in turns the server was under pressure ({level}), and sent less"
            ));
        }
        if work.updates_deferred > 0 {
            let count = work.updates_deferred;
            doubts.push(format!(
                "in turns {count} updates had to wait for the next tick"
            ));
        }
        doubts
    }

    /// For people.
    pub fn print(&self) {
        println!(
            "{} of {} players stayed to the end",
            self.players_finished, self.players
        );
        println!(
            "tick       {:8.2} ms median, {:.2} ms p99 at {} Hz",
            self.tick_ms_p50, self.tick_ms_p99, self.tick_hz
        );
        println!(
            "updates    {:8.1} Hz median, {:.1} Hz worst hundredth, gap p99 {:.1} ms",
            self.update_hz_p50, self.update_hz_p01, self.update_interval_ms_p99
        );
        println!(
            "server     {:8.3} CPU s/s ({:.3} without pauses), {:.0} MiB",
            self.server_cpu_s_per_s, self.server_cpu_s_per_s_uninterrupted, self.server_rss_mb
        );
        println!(
            "floor      {:8.3} CPU s/s, so {:.2} x the floor",
            self.floor_cpu_s_per_s, self.ratio_to_floor
        );
        println!(
            "received   {:8.1} KiB/s per player, {:.2} bytes per entity and update",
            self.bytes_per_client_s / 1024.0,
            self.bytes_per_client_entity_update
        );
        println!(
            "known      {:8.0} entities (median player), {:.0} pairs per second",
            self.entities_p50, self.known_pairs_per_s
        );
        println!(
            "join       {:8.0} ms median, {:.0} ms p99",
            self.join_ms_p50, self.join_ms_p99
        );
        if let (Some(p50), Some(p99)) = (self.late_join_ms_p50, self.late_join_ms_p99) {
            let count = self.late_joins;
            println!("late join  {p50:8.0} ms median, {p99:.0} ms p99 of {count}");
        }
        println!(
            "load       {:8.3} CPU s/s ({:.3} at least), {:.1} ms late p99",
            self.load_cpu_s_per_s, self.floor_load_cpu_s_per_s, self.load_late_ms_p99
        );
        println!(
            "host       {:8.1} % of the server's core taken away",
            self.stolen_s_per_s * 100.0
        );
        for warning in &self.warnings {
            println!("warning: {warning}");
        }
    }
}

/// Whether a figure is further from what it should be than it may.
fn is_off(figure: f64, expected: f64, tolerance: f64) -> bool {
    (figure / expected.max(1e-9) - 1.0).abs() > tolerance
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn args() -> CrowdArgs {
        CrowdArgs {
            players: 400,
            seconds: 10,
            tick_hz: 30,
            snapshot_hz: 20,
            area: None,
            package: None,
            radius: None,
            input_hz: 30,
            joins_per_second: 150,
            late_joins: 0,
            json: true,
        }
    }

    fn crowd() -> Crowd {
        Crowd {
            swarm: SwarmReport {
                players: 400,
                finished: 400,
                update_hz_p50: 20.0,
                update_hz_mean: 20.0,
                bytes_per_client_s: 40_000.0,
                messages_out_hz: 30.0,
                message_out_bytes: 61.6,
                entities_mean: 400.0,
                ..SwarmReport::default()
            },
            server_cpu_s_per_s: 0.31,
            load_cpu_s_per_s: 0.2,
            stolen_s_per_s: 0.0,
            rss_mb: 20.0,
            work: Work::of_bytes(40_100.0),
            stats: json!({ "tick_ms_p50": 1.5, "stage_ms": { "snapshots": 0.7 } }),
        }
    }

    fn turns() -> Turns {
        Turns {
            server_cpu_s_per_s: 0.3,
            work: Work::of_bytes(39_900.0),
            floor_cpu_s_per_s: 0.1,
            floor_load_cpu_s_per_s: 0.1,
            floor_update_hz: 20.0,
        }
    }

    #[test]
    fn the_figures_follow_from_the_runs() {
        let report = CrowdReport::new(&args(), &crowd(), &turns(), Vec::new());
        assert!((report.ratio_to_floor - 3.0).abs() < 1e-9);
        assert_eq!(report.bytes_per_client_entity_update, 5.0);
        assert_eq!(report.known_pairs_per_s, 3_200_000.0);
        assert_eq!(report.tick_ms_p50, 1.5);
        assert_eq!(report.warnings, Vec::<String>::new());
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["server_stats"]["stage_ms"]["snapshots"], 0.7);
        assert_eq!(json["late_join_ms_p99"], Value::Null);
        assert_eq!(json["server_cpu_s_per_s_uninterrupted"], 0.31);
        let promised = "players tick_hz snapshot_hz tick_ms_p50 tick_ms_p99 server_cpu_s_per_s \
            server_rss_mb bytes_per_client_s update_hz_p50 update_interval_ms_p99 \
            floor_cpu_s_per_s ratio_to_floor";
        for name in promised.split_whitespace() {
            assert!(json[name].is_number(), "{name} is missing from the report");
        }
    }

    #[test]
    fn the_floor_moves_what_was_measured() {
        let mut swarm = crowd().swarm;
        swarm.update_hz_mean = 12.5;
        let traffic = Traffic::of(&swarm);
        let expected = Traffic {
            update_hz: 12.5,
            update_bytes: 3200,
            input_hz: 30.0,
            input_bytes: 62,
        };
        assert_eq!(traffic, expected);
        assert_eq!(Traffic::of(&SwarmReport::default()).update_bytes, 1);
    }

    #[test]
    fn what_spoils_a_run_is_said() {
        let check = |spoil: fn(&mut Crowd, &mut Turns), warning: &str| {
            let (mut crowd, mut turns) = (crowd(), turns());
            spoil(&mut crowd, &mut turns);
            let warnings = CrowdReport::new(&args(), &crowd, &turns, Vec::new()).warnings;
            assert_eq!(warnings.len(), 1, "{warnings:?}");
            assert!(warnings[0].contains(warning), "{warnings:?}");
        };
        check(
            |crowd, _| crowd.load_cpu_s_per_s = 0.81,
            "the load used 81 %",
        );
        check(
            |_, turns| turns.floor_load_cpu_s_per_s = 0.9,
            "floor's load used",
        );
        check(
            |crowd, _| crowd.swarm.load_late_ms_p99 = 12.0,
            "12.0 ms late",
        );
        check(
            |crowd, _| crowd.stolen_s_per_s = 0.031,
            "the host took 3.1 %",
        );
        check(|_, turns| turns.floor_update_hz = 30.0, "30.00 updates");
        check(|crowd, _| crowd.swarm.messages_out_hz = 25.0, "25.0 times");
        check(|crowd, _| crowd.swarm.finished = 399, "not all players");
        check(
            |_, turns| turns.work = Work::of_bytes(38_500.0),
            "sent 38500 bytes",
        );
        check(
            |crowd, _| crowd.server_cpu_s_per_s = 0.34,
            "without pauses 0.340",
        );
        check(|_, turns| turns.work.pressure = 1, "under pressure (1)");
        check(|_, turns| turns.work.updates_deferred = 12, "12 updates");
        let shared = vec!["server and load shared cores".to_owned()];
        let report = CrowdReport::new(&args(), &crowd(), &turns(), shared.clone());
        assert_eq!(report.warnings, shared);
    }
}
