//! `frolic bench crowd`: a world full of bots, beside the floor.

mod look;
mod report;
mod turns;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::game::Game;
use crate::process::{Process, http_get, pinning, stolen_s};
use frolic_bots::SwarmReport;
use look::{Look, Work};
use report::{CrowdReport, Traffic};

/// Server and load each have a core.
const SERVER_CORE: usize = 0;
const LOAD_CORE: usize = 1;
/// The load stops by itself; look a moment before it does.
const LOOK_BEFORE_END: Duration = Duration::from_millis(300);

/// Measure a world with a crowd in it, against the floor of the same traffic
#[derive(Args, Debug)]
#[command(after_help = "\
The crowd comes in twice: for --seconds without a break, which gives ticks, gaps, bytes and joins, and
then for as many turns of a second with the floor (30 at most), which give what both cost. A run takes
three and a half times --seconds (at most --seconds and 75 s), the time to join twice, and up to 20 s.")]
pub struct CrowdArgs {
    /// How many players
    #[arg(long, default_value_t = 100)]
    players: u32,
    /// How long to measure, and how many turns, up to 30
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
    let game = Game::new(args.package.as_deref(), args.area)?;
    let crowd = measure_crowd(&args, &Server::start(&args, &game)?)?;
    let traffic = Traffic::of(&crowd.swarm);
    let turns = turns::take_turns(&args, &Server::start(&args, &game)?, &traffic)?;
    let pinning = pinning::doubts([SERVER_CORE, LOAD_CORE]);
    let report = CrowdReport::new(&args, &crowd, &turns, pinning);
    if args.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        report.print();
    }
    Ok(())
}

/// The figures of a run with the crowd.
struct Crowd {
    swarm: SwarmReport,
    server_cpu_s_per_s: f64,
    load_cpu_s_per_s: f64,
    /// CPU time that the host took from the server's core.
    stolen_s_per_s: f64,
    rss_mb: f64,
    /// The server's work in the meantime.
    work: Work,
    /// The server's own figures.
    stats: Value,
}

/// A game server without players so far.
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

    fn look(&self) -> Result<Look> {
        Look::at(&self.stats())
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
    // The first sample precedes the reset of tick statistics, or its cached
    // summary would be returned again within the next second.
    let before = server.look()?;
    http_get(&format!("{}/reset", server.stats()))?;
    let began = Instant::now();
    let (server_before, load_before) = (server.process.cpu()?, load.cpu()?);
    let stolen_before = stolen_s(SERVER_CORE);
    std::thread::sleep(Duration::from_secs(args.seconds) - LOOK_BEFORE_END);
    let watched_s = began.elapsed().as_secs_f64();
    let server_s = server.process.cpu()?.s_since(&server_before)?;
    let load_s = load.cpu()?.s_since(&load_before)?;
    let stolen = stolen_s(SERVER_CORE) - stolen_before;
    let after = server.look()?;
    let mut work = Work::default();
    work.add(&before, &after);
    Ok(Crowd {
        server_cpu_s_per_s: server_s / watched_s,
        load_cpu_s_per_s: load_s / watched_s,
        stolen_s_per_s: stolen / watched_s,
        rss_mb: server.process.rss_mb()?,
        work,
        stats: after.stats,
        swarm: last_word(&mut load)?,
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
