//! `frolic bots`: a crowd of players on the real client core.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::cache::ScriptCache;
use crate::door::Door;
use crate::report::SwarmReport;
use crate::swarm::Swarm;

/// Send a crowd of bots into a world and report what they saw
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  frolic bots --players 20 --seconds 30
  frolic bots --players 100 --url ws://127.0.0.1:7777/ws --json
  frolic bots --players 1000 --light --url ws://127.0.0.1:7777/ws")]
pub struct BotsArgs {
    /// How many
    #[arg(long, default_value_t = 10)]
    players: u32,
    /// How long they stay once all are in
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// The platform, or the WebSocket address of a game server without tickets
    #[arg(long, default_value = "http://127.0.0.1:5000")]
    url: String,
    /// Which game to join
    #[arg(long)]
    game: Option<String>,
    /// How often each sends its inputs, per second
    #[arg(long, default_value_t = 30)]
    input_hz: u32,
    /// How far they stray from where they started, in metres
    #[arg(long)]
    roam: Option<f32>,
    /// Folder to cache the game's scripts in between visits; without it bots
    /// request none
    #[arg(long, value_name = "FOLDER")]
    cache: Option<PathBuf>,
    /// New bots per second
    #[arg(long, default_value_t = 50)]
    joins_per_second: u32,
    /// All but a few are light: they send, read and count, but predict nothing
    #[arg(long)]
    light: bool,
    /// Light bots that come in while the others are measured
    #[arg(long, default_value_t = 0)]
    late_joins: u32,
    /// Report as one JSON object
    #[arg(long)]
    json: bool,
    /// Print a line once all are in
    #[arg(long, hide = true)]
    announce: bool,
}

/// Runs the crowd and prints its report.
pub async fn run(args: BotsArgs) -> Result<()> {
    if args.players == 0 || args.players > 10_000 || args.late_joins > 10_000 {
        bail!("--players takes 1 to 10000, --late-joins up to as many");
    }
    let cache = args.cache.map(|folder| {
        let shown = folder.display().to_string();
        ScriptCache::open(folder).with_context(|| format!("could not create the folder {shown}"))
    });
    let announce = args.announce;
    let swarm = Swarm {
        door: Door::new(&args.url, args.game),
        players: args.players,
        light: args.light,
        late: args.late_joins,
        time: Duration::from_secs(args.seconds),
        input_hz: args.input_hz.clamp(1, 240),
        roam_m: args.roam,
        cache: cache.transpose()?,
        joins_per_s: args.joins_per_second,
        on_settled: announce.then(|| Box::new(|| println!("settled")) as Box<dyn FnOnce() + Send>),
    };
    let report = swarm.run().await?;
    if args.json {
        println!("{}", serde_json::to_string(&report)?);
        return Ok(());
    }
    print(&report);
    Ok(())
}

fn print(report: &SwarmReport) {
    println!(
        "{} of {} bots stayed to the end",
        report.finished, report.players
    );
    if let Some(error) = &report.first_error {
        println!("the first that did not: {error}");
    }
    println!(
        "join       {:8.0} ms median, {:.0} ms p99",
        report.join_ms_p50, report.join_ms_p99
    );
    if let (Some(p50), Some(p99)) = (report.late_join_ms_p50, report.late_join_ms_p99) {
        let count = report.late_joins;
        println!("late join  {p50:8.0} ms median, {p99:.0} ms p99 of {count}");
    }
    println!(
        "updates    {:8.1} Hz median, {:.1} Hz worst hundredth",
        report.update_hz_p50, report.update_hz_p01
    );
    println!(
        "interval   {:8.1} ms median, {:.1} ms p99",
        report.update_interval_ms_p50, report.update_interval_ms_p99
    );
    println!(
        "received   {:8.1} KiB/s per bot",
        report.bytes_per_client_s / 1024.0
    );
    println!("round trip {:8.1} ms median", report.rtt_ms_p50);
    println!(
        "corrected  {:8.0} times (median bot)",
        report.corrections_p50
    );
    if report.returns > 0 {
        println!(
            "came back  {:8} times after a lost connection",
            report.returns
        );
    }
}
