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
use report::{CrowdReport, Floor, Traffic};

/// Server and load each have a core.
const SERVER_CORE: usize = 0;
const LOAD_CORE: usize = 1;
/// The load stops by itself; look a moment before it does.
const LOOK_BEFORE_END: Duration = Duration::from_millis(300);

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

/// Runs the crowd, then the floor with messages as the crowd had them.
pub fn run(args: CrowdArgs) -> Result<()> {
    if args.players == 0 || args.players > 10_000 || args.seconds == 0 || args.seconds > 600 {
        bail!("--players takes 1 to 10000 and --seconds 1 to 600");
    }
    // The processes we start inherit it.
    open_files::raise_limit();
    let crowd = measure_crowd(&args)?;
    let traffic = Traffic::of(&crowd.swarm);
    let floor = measure_floor(&args, &traffic)?;
    let report = CrowdReport::new(&args, &crowd, &floor);
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
    server_cpu_s_per_s: f64,
    load_cpu_s_per_s: f64,
    /// What the host took of the server's core.
    stolen_s_per_s: f64,
    rss_mb: f64,
    /// What the server says of itself.
    stats: Value,
}

fn measure_crowd(args: &CrowdArgs) -> Result<Crowd> {
    let game = Game::new(args.package.as_deref(), args.area)?;
    let mut server_args = words(&["gameserver", "--no-webtransport", "--port", "0"]);
    option(&mut server_args, "package", game.path().display());
    option(&mut server_args, "tick-hz", args.tick_hz);
    option(&mut server_args, "snapshot-hz", args.snapshot_hz);
    let places = args.players + args.late_joins + 8;
    option(&mut server_args, "max-players", places);
    if let Some(radius) = &args.radius {
        option(&mut server_args, "radius", radius);
    }
    let mut server = Process::start(Some(SERVER_CORE), &server_args)?;
    let ready = server.line()?;
    let address = ready.rsplit(' ').next().context("the server's address")?;

    let mut load_args = words(&["bots", "--json", "--announce", "--light"]);
    option(&mut load_args, "url", address);
    option(&mut load_args, "players", args.players);
    option(&mut load_args, "late-joins", args.late_joins);
    option(&mut load_args, "seconds", args.seconds);
    option(&mut load_args, "input-hz", args.input_hz);
    option(&mut load_args, "joins-per-second", args.joins_per_second);
    if let Some(area) = args.area {
        option(&mut load_args, "roam", area / 8.0);
    }
    let mut load = Process::start(Some(LOAD_CORE), &load_args)?;
    ensure!(load.line()? == "settled", "the bots did not settle");
    let stats = address.replace("ws://", "http://").replace("/ws", "/stats");
    http_get(&format!("{stats}/reset"))?;
    let used = watch([&server, &load], args.seconds)?;
    Ok(Crowd {
        server_cpu_s_per_s: used.server,
        load_cpu_s_per_s: used.load,
        stolen_s_per_s: used.stolen,
        rss_mb: server.rss_mb()?,
        stats: serde_json::from_str(&http_get(&stats)?)?,
        swarm: last_word(&mut load)?,
    })
}

fn measure_floor(args: &CrowdArgs, traffic: &Traffic) -> Result<Floor> {
    let mut server_args = words(&["bench", "floor-server"]);
    option(&mut server_args, "tick-hz", args.tick_hz);
    option(&mut server_args, "update-hz", traffic.update_hz);
    option(&mut server_args, "bytes", traffic.update_bytes);
    let mut server = Process::start(Some(SERVER_CORE), &server_args)?;
    let port = server.line()?;
    let mut load_args = words(&["bench", "floor-clients"]);
    option(&mut load_args, "port", port);
    option(&mut load_args, "players", args.players);
    option(&mut load_args, "input-hz", traffic.input_hz);
    option(&mut load_args, "bytes", traffic.input_bytes);
    option(&mut load_args, "update-bytes", traffic.update_bytes);
    option(&mut load_args, "seconds", args.seconds);
    let mut load = Process::start(Some(LOAD_CORE), &load_args)?;
    ensure!(
        load.line()? == "settled",
        "the floor's clients did not settle"
    );
    let used = watch([&server, &load], args.seconds)?;
    let FloorReport { update_hz } = last_word(&mut load)?;
    Ok(Floor {
        cpu_s_per_s: used.server,
        load_cpu_s_per_s: used.load,
        update_hz,
    })
}

/// Processor time per second: what each process used, and what the host took
/// of the server's core.
struct Used {
    server: f64,
    load: f64,
    stolen: f64,
}

/// Watches over nearly all of the time.
fn watch([server, load]: [&Process; 2], seconds: u64) -> Result<Used> {
    let so_far =
        || -> Result<[f64; 3]> { Ok([server.cpu_s()?, load.cpu_s()?, stolen_s(SERVER_CORE)]) };
    let before = so_far()?;
    let watched = Duration::from_secs(seconds) - LOOK_BEFORE_END;
    std::thread::sleep(watched);
    let after = so_far()?;
    let [server, load, stolen] = [0, 1, 2].map(|n| (after[n] - before[n]) / watched.as_secs_f64());
    Ok(Used {
        server,
        load,
        stolen,
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
