//! `frolic bench crowd`: a world full of bots, beside the floor (PERF-2, PERF-4).

mod report;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::floor::FloorReport;
use super::game::Game;
use super::process::{Process, http_get, stolen_s};
use crate::bots::SwarmReport;
use crate::open_files;
use report::{CrowdReport, Traffic, Turns};

/// Server and load each have a core.
const SERVER_CORE: usize = 0;
const LOAD_CORE: usize = 1;
/// The load stops by itself; look a moment before it does.
const LOOK_BEFORE_END: Duration = Duration::from_millis(300);
/// How long crowd and floor run in each of their turns, after a moment in which
/// they find back to their beat.
const TURN: Duration = Duration::from_secs(1);
const SETTLE: Duration = Duration::from_millis(250);
/// Longer than all turns together.
const LOAD_SECONDS_MAX: u64 = 600;

/// Measure a world with a crowd in it, against the floor of the same traffic
#[derive(Args, Debug)]
pub struct CrowdArgs {
    /// How many players
    #[arg(long, default_value_t = 100)]
    players: u32,
    /// How long to measure
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Simulation steps per second
    #[arg(long, default_value_t = 60)]
    tick_hz: u32,
    /// Snapshots per second
    #[arg(long, default_value_t = 20)]
    snapshot_hz: u32,
    /// Use a flat world of this many metres a side instead of a game
    #[arg(long)]
    area: Option<f32>,
    /// The game to fill [default: the first sample]
    #[arg(long)]
    package: Option<PathBuf>,
    /// Players see others within this many metres, or `all` [default: as the game says]
    #[arg(long, value_parser = radius)]
    radius: Option<String>,
    /// Inputs per second of each player
    #[arg(long, default_value_t = 30)]
    input_hz: u32,
    /// Players that come in per second
    #[arg(long, default_value_t = 150)]
    joins_per_second: u32,
    /// Players that come in while the others are measured
    #[arg(long, default_value_t = 0)]
    late_joins: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Checked here, handed to the game server as it is.
fn radius(text: &str) -> Result<String, String> {
    let metres = text.parse().is_ok_and(|m: f32| m.is_finite() && m > 0.0);
    if metres || text == "all" {
        Ok(text.to_owned())
    } else {
        Err("metres, or `all`".to_owned())
    }
}

/// Runs the crowd by itself, then crowd and floor in turns.
pub fn run(args: CrowdArgs) -> Result<()> {
    if args.players == 0 || args.players > 10_000 || args.seconds == 0 || args.seconds > 600 {
        bail!("--players takes 1 to 10000 and --seconds 1 to 600");
    }
    // The processes we start inherit it.
    open_files::raise_limit();
    let game = Game::new(args.package.as_deref(), args.area)?;
    let crowd = measure_crowd(&args, &Server::start(&args, &game)?)?;
    let traffic = Traffic::of(&crowd.swarm);
    let turns = take_turns(&args, &Server::start(&args, &game)?, &traffic)?;
    let report = CrowdReport::new(&args, &crowd, &turns);
    if args.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        report.print();
    }
    Ok(())
}

/// What a run with the crowd gave.
struct Crowd {
    swarm: SwarmReport,
    load_cpu_s_per_s: f64,
    /// What the host took of the server's core.
    stolen_s_per_s: f64,
    rss_mb: f64,
    /// What the server says of itself.
    stats: Value,
}

/// A game server that nobody has been in.
struct Server {
    process: Process,
    address: String,
}

impl Server {
    fn start(args: &CrowdArgs, game: &Game) -> Result<Self> {
        let mut process = Process::start(Some(SERVER_CORE), &server_args(args, game))?;
        let ready = process.line()?;
        let address = ready.rsplit(' ').next().context("the server's address")?;
        Ok(Self {
            address: address.to_owned(),
            process,
        })
    }

    /// Where it says how it is.
    fn stats(&self) -> String {
        let address = self.address.replace("ws://", "http://");
        address.replace("/ws", "/stats")
    }
}

fn server_args(args: &CrowdArgs, game: &Game) -> Vec<String> {
    let mut server_args = words(&["gameserver", "--no-webtransport", "--port", "0"]);
    option(&mut server_args, "package", game.path().display());
    option(&mut server_args, "tick-hz", args.tick_hz);
    option(&mut server_args, "snapshot-hz", args.snapshot_hz);
    let places = args.players + args.late_joins + 8;
    option(&mut server_args, "max-players", places);
    if let Some(radius) = &args.radius {
        option(&mut server_args, "radius", radius);
    }
    server_args
}

fn start_load(args: &CrowdArgs, server: &Server, late_joins: u32, seconds: u64) -> Result<Process> {
    let mut load_args = words(&["bots", "--json", "--announce", "--light"]);
    option(&mut load_args, "url", &server.address);
    option(&mut load_args, "players", args.players);
    option(&mut load_args, "late-joins", late_joins);
    option(&mut load_args, "seconds", seconds);
    option(&mut load_args, "input-hz", args.input_hz);
    option(&mut load_args, "joins-per-second", args.joins_per_second);
    if let Some(area) = args.area {
        option(&mut load_args, "roam", area / 8.0);
    }
    let mut load = Process::start(Some(LOAD_CORE), &load_args)?;
    ensure!(load.line()? == "settled", "the bots did not settle");
    Ok(load)
}

fn measure_crowd(args: &CrowdArgs, server: &Server) -> Result<Crowd> {
    let mut load = start_load(args, server, args.late_joins, args.seconds)?;
    let stats = server.stats();
    http_get(&format!("{stats}/reset"))?;
    let (load_before, stolen_before) = (load.cpu_s()?, stolen_s(SERVER_CORE));
    let watched = Duration::from_secs(args.seconds) - LOOK_BEFORE_END;
    std::thread::sleep(watched);
    let watched_s = watched.as_secs_f64();
    Ok(Crowd {
        load_cpu_s_per_s: (load.cpu_s()? - load_before) / watched_s,
        stolen_s_per_s: (stolen_s(SERVER_CORE) - stolen_before) / watched_s,
        rss_mb: server.process.rss_mb()?,
        stats: serde_json::from_str(&http_get(&stats)?)?,
        swarm: last_word(&mut load)?,
    })
}

/// A server and its load; only one of several runs at a time.
struct Pair<'a> {
    server: &'a Process,
    load: &'a Process,
    /// Processor time in the turns so far.
    server_s: f64,
    load_s: f64,
}

impl<'a> Pair<'a> {
    fn new(server: &'a Process, load: &'a Process) -> Self {
        Self {
            server,
            load,
            server_s: 0.0,
            load_s: 0.0,
        }
    }

    fn pause(&self) -> Result<()> {
        // What is sent while the load's clock stands still would count double.
        self.server.pause()?;
        self.load.pause()
    }

    fn resume(&self) -> Result<()> {
        self.load.resume()?;
        self.server.resume()
    }

    fn take_turn(&mut self) -> Result<()> {
        self.resume()?;
        std::thread::sleep(SETTLE);
        let (server, load) = (self.server.cpu_s()?, self.load.cpu_s()?);
        std::thread::sleep(TURN);
        self.server_s += self.server.cpu_s()? - server;
        self.load_s += self.load.cpu_s()? - load;
        self.pause()
    }
}

/// Lets crowd and floor take turns of a second each: the machine is not the
/// same from one minute to the next, and what they cost is compared.
fn take_turns(args: &CrowdArgs, server: &Server, traffic: &Traffic) -> Result<Turns> {
    // Ended by us, not by the clock.
    let load = start_load(args, server, 0, LOAD_SECONDS_MAX)?;
    let mut crowd = Pair::new(&server.process, &load);
    crowd.pause()?;

    let mut floor_args = words(&["bench", "floor-server"]);
    option(&mut floor_args, "tick-hz", args.tick_hz);
    option(&mut floor_args, "update-hz", traffic.update_hz);
    option(&mut floor_args, "bytes", traffic.update_bytes);
    let mut floor_server = Process::start(Some(SERVER_CORE), &floor_args)?;
    let port = floor_server.line()?;
    let turns = args.seconds;
    let run_s = (TURN + SETTLE).mul_f64(turns as f64).as_secs() + 1;
    let mut load_args = words(&["bench", "floor-clients"]);
    option(&mut load_args, "port", port);
    option(&mut load_args, "players", args.players);
    option(&mut load_args, "input-hz", traffic.input_hz);
    option(&mut load_args, "bytes", traffic.input_bytes);
    option(&mut load_args, "update-bytes", traffic.update_bytes);
    option(&mut load_args, "seconds", run_s);
    let mut floor_load = Process::start(Some(LOAD_CORE), &load_args)?;
    ensure!(
        floor_load.line()? == "settled",
        "the floor's clients did not settle"
    );
    let mut floor = Pair::new(&floor_server, &floor_load);
    floor.pause()?;
    for _ in 0..turns {
        crowd.take_turn()?;
        floor.take_turn()?;
    }
    floor.resume()?;
    crowd.resume()?;
    let stats: Value = serde_json::from_str(&http_get(&server.stats())?)?;
    ensure!(
        stats["players"].as_u64() == Some(args.players.into()),
        "of {} players {} were there in the end",
        args.players,
        stats["players"]
    );
    let turns_s = TURN.as_secs_f64() * turns as f64;
    let [server_cpu, floor_cpu, floor_load_cpu] =
        [crowd.server_s, floor.server_s, floor.load_s].map(|cpu_s| cpu_s / turns_s);
    let FloorReport { update_hz } = last_word(&mut floor_load)?;
    Ok(Turns {
        server_cpu_s_per_s: server_cpu,
        floor_cpu_s_per_s: floor_cpu,
        floor_load_cpu_s_per_s: floor_load_cpu,
        floor_update_hz: update_hz,
    })
}

fn last_word<T: DeserializeOwned>(process: &mut Process) -> Result<T> {
    let line = process.line()?;
    serde_json::from_str(&line).with_context(|| format!("reading {line}"))
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn option(args: &mut Vec<String>, name: &str, value: impl std::fmt::Display) {
    args.extend([format!("--{name}"), value.to_string()]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: CrowdArgs,
    }

    #[test]
    fn the_radius_is_metres_or_all_or_left_to_the_game() {
        let radius = |words: &str| {
            let line = Line::try_parse_from(words.split(' ')).map(|line| line.args.radius);
            line.map_err(|error| error.kind())
        };
        assert_eq!(radius("crowd --players 5"), Ok(None));
        assert_eq!(radius("crowd --radius all"), Ok(Some("all".into())));
        assert_eq!(radius("crowd --radius 12.5"), Ok(Some("12.5".into())));
        for wrong in ["some", "0", "NaN", "inf"] {
            assert!(radius(&format!("crowd --radius {wrong}")).is_err());
        }
    }
}
