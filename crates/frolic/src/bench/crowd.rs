//! `frolic bench crowd`: a world full of bots, beside the floor (PERF-2, PERF-4).

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;

use super::meadow;
use super::process::Process;
use crate::bots::SwarmReport;

/// Server and load each have a core.
const SERVER_CORE: usize = 0;
const LOAD_CORE: usize = 1;
/// Bytes of an input message of a bot, framing included.
const INPUT_BYTES: usize = 80;

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
    /// Players see others within this many metres, or `all`
    #[arg(long, default_value = "all")]
    radius: String,
    /// Inputs per second of each player
    #[arg(long, default_value_t = 30)]
    input_hz: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct CrowdReport {
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
}

/// Runs the crowd, then the floor with messages of the size the crowd had.
pub fn run(args: CrowdArgs) -> Result<()> {
    if args.players == 0 || args.players > 10_000 || args.seconds == 0 || args.seconds > 600 {
        bail!("--players takes 1 to 10000 and --seconds 1 to 600");
    }
    let crowd = measure_crowd(&args)?;
    let update_bytes = crowd.swarm.bytes_per_client_s / crowd.swarm.update_hz_p50.max(1.0);
    let floor_cpu = measure_floor(&args, update_bytes as usize)?;
    let pairs = crowd.swarm.entities_p50.max(1.0) * crowd.swarm.update_hz_p50.max(1.0);
    let report = CrowdReport {
        players: args.players,
        tick_hz: args.tick_hz,
        snapshot_hz: args.snapshot_hz,
        tick_ms_p50: crowd.tick_ms[0],
        tick_ms_p99: crowd.tick_ms[1],
        server_cpu_s_per_s: crowd.cpu_s_per_s,
        server_rss_mb: crowd.rss_mb,
        bytes_per_client_s: crowd.swarm.bytes_per_client_s,
        update_hz_p50: crowd.swarm.update_hz_p50,
        update_interval_ms_p99: crowd.swarm.update_interval_ms_p99,
        floor_cpu_s_per_s: floor_cpu,
        ratio_to_floor: crowd.cpu_s_per_s / floor_cpu.max(1e-3),
        bytes_per_client_entity_update: crowd.swarm.bytes_per_client_s / pairs,
        players_finished: crowd.swarm.finished,
        join_ms_p50: crowd.swarm.join_ms_p50,
        join_ms_p99: crowd.swarm.join_ms_p99,
        corrections_p50: crowd.swarm.corrections_p50,
    };
    if args.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        println!(
            "{} of {} players stayed to the end",
            report.players_finished, report.players
        );
        println!(
            "tick       {:8.2} ms median, {:.2} ms p99 at {} Hz",
            report.tick_ms_p50, report.tick_ms_p99, report.tick_hz
        );
        println!(
            "updates    {:8.1} Hz median, gap p99 {:.1} ms",
            report.update_hz_p50, report.update_interval_ms_p99
        );
        println!(
            "server     {:8.3} CPU s/s, {:.0} MiB",
            report.server_cpu_s_per_s, report.server_rss_mb
        );
        println!(
            "floor      {:8.3} CPU s/s, so {:.2} x the floor",
            report.floor_cpu_s_per_s, report.ratio_to_floor
        );
        println!(
            "received   {:8.1} KiB/s per player, {:.2} bytes per entity and update",
            report.bytes_per_client_s / 1024.0,
            report.bytes_per_client_entity_update
        );
        println!(
            "join       {:8.0} ms median, {:.0} ms p99",
            report.join_ms_p50, report.join_ms_p99
        );
    }
    Ok(())
}

struct Crowd {
    swarm: SwarmReport,
    tick_ms: [f64; 2],
    cpu_s_per_s: f64,
    rss_mb: f64,
}

fn measure_crowd(args: &CrowdArgs) -> Result<Crowd> {
    let game = game(args)?;
    let mut server_args = strings(&["gameserver", "--no-webtransport", "--port", "0"]);
    server_args.extend(["--package".into(), game.path().display().to_string()]);
    server_args.extend(["--tick-hz".into(), args.tick_hz.to_string()]);
    server_args.extend(["--snapshot-hz".into(), args.snapshot_hz.to_string()]);
    server_args.extend(["--max-players".into(), (args.players + 8).to_string()]);
    if args.radius != "all" {
        let radius: f32 = args
            .radius
            .parse()
            .context("--radius takes metres or `all`")?;
        server_args.extend(["--radius".into(), radius.to_string()]);
    }
    let mut server = Process::start(SERVER_CORE, &server_args)?;
    let ready = server.line()?;
    let address = ready
        .rsplit(' ')
        .next()
        .context("the server's address")?
        .to_owned();

    let mut bots_args = strings(&["bots", "--json", "--announce", "--url", &address]);
    bots_args.extend(["--players".into(), args.players.to_string()]);
    bots_args.extend(["--seconds".into(), args.seconds.to_string()]);
    bots_args.extend(["--input-hz".into(), args.input_hz.to_string()]);
    if let Some(area) = args.area {
        bots_args.extend(["--roam".into(), (area / 8.0).to_string()]);
    }
    let mut bots = Process::start(LOAD_CORE, &bots_args)?;
    if bots.line()? != "settled" {
        bail!("the bots did not settle");
    }
    let stats = address.replace("ws://", "http://").replace("/ws", "/stats");
    http_get(&format!("{stats}/reset"))?;
    let before = server.cpu_s()?;
    // The bots stop by themselves; look a moment before they do.
    let watched = Duration::from_millis(args.seconds * 1000 - 300);
    std::thread::sleep(watched);
    let cpu_s_per_s = (server.cpu_s()? - before) / watched.as_secs_f64();
    let rss_mb = server.rss_mb()?;
    let figures: serde_json::Value = serde_json::from_str(&http_get(&stats)?)?;
    let tick_ms = ["tick_ms_p50", "tick_ms_p99"].map(|name| figures[name].as_f64().unwrap_or(0.0));
    let swarm = serde_json::from_str(&bots.line()?)?;
    Ok(Crowd {
        swarm,
        tick_ms,
        cpu_s_per_s,
        rss_mb,
    })
}

fn measure_floor(args: &CrowdArgs, update_bytes: usize) -> Result<f64> {
    let mut server_args = strings(&["bench", "floor-server"]);
    server_args.extend(["--tick-hz".into(), args.tick_hz.to_string()]);
    server_args.extend(["--update-hz".into(), args.snapshot_hz.to_string()]);
    server_args.extend(["--bytes".into(), update_bytes.max(1).to_string()]);
    let mut server = Process::start(SERVER_CORE, &server_args)?;
    let port = server.line()?;
    let mut load_args = strings(&["bench", "floor-clients", "--port", &port]);
    load_args.extend(["--players".into(), args.players.to_string()]);
    load_args.extend(["--input-hz".into(), args.input_hz.to_string()]);
    load_args.extend(["--bytes".into(), INPUT_BYTES.to_string()]);
    load_args.extend(["--seconds".into(), args.seconds.to_string()]);
    let mut load = Process::start(LOAD_CORE, &load_args)?;
    if load.line()? != "settled" {
        bail!("the floor's clients did not settle");
    }
    let before = server.cpu_s()?;
    let watched = Duration::from_millis(args.seconds * 1000 - 300);
    std::thread::sleep(watched);
    Ok((server.cpu_s()? - before) / watched.as_secs_f64())
}

/// A game on disk, which goes away with this value if it was made for the run.
enum Game {
    Given(PathBuf),
    Made(PathBuf),
}

impl Game {
    fn path(&self) -> &std::path::Path {
        match self {
            Game::Given(path) | Game::Made(path) => path,
        }
    }
}

impl Drop for Game {
    fn drop(&mut self) {
        if let Game::Made(path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn game(args: &CrowdArgs) -> Result<Game> {
    if let Some(path) = &args.package {
        return Ok(Game::Given(path.clone()));
    }
    let archive = match args.area {
        Some(area) => meadow::pack(area)?,
        None => {
            let samples = crate::assets::sample_games();
            let first = samples
                .values()
                .next()
                .context("this build has no sample games")?;
            frolic_package::pack(first).map_err(|error| anyhow::anyhow!("{error}"))?
        }
    };
    let path = std::env::temp_dir().join(format!("frolic-bench-{}.game", std::process::id()));
    std::fs::write(&path, archive).with_context(|| format!("writing {}", path.display()))?;
    Ok(Game::Made(path))
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// One small request; the benchmark itself runs on no runtime.
fn http_get(url: &str) -> Result<String> {
    use std::io::{Read, Write};
    let rest = url.strip_prefix("http://").context("an http address")?;
    let (host, path) = rest.split_once('/').context("a path")?;
    let mut stream = std::net::TcpStream::connect(host)?;
    write!(
        stream,
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").context("an answer")?;
    Ok(body.to_owned())
}
