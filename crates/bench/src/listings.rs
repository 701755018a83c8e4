//! `frolic bench listings`: how many listings of the store one core gives,
//! beside a hello-world route of axum on the same core in the same run.

pub mod load;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;

use crate::process::{Process, pinning};
use load::LoadReport;

/// The core of the server, and that of the load.
const SERVER_CORE: usize = 0;
const LOAD_CORE: usize = 1;
/// The requested pages: the first page of each row of the store, a later page,
/// a search.
const PATHS: [&str; 5] = [
    "/api/games",
    "/api/games?sort=new",
    "/api/games?sort=featured",
    "/api/games?page=37",
    "/api/games?q=meadow",
];
/// Hello and listings take turns, so that a busy moment of the machine hits both.
const ROUNDS: u32 = 3;
/// How long the store may take to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// The rate that is asked of one core, to see the delay at it.
const WANTED_PER_S: u32 = 2_000;

/// Measure the store's listings beside a hello-world route
#[derive(Args, Debug)]
pub struct ListingsArgs {
    /// Games in the database
    #[arg(long, default_value_t = 10_000)]
    games: u32,
    /// Concurrent connections, kept alive
    #[arg(long, default_value_t = 16)]
    connections: u32,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 3)]
    seconds: u32,
    /// Seconds at 2,000 a second: long enough for what a store does now and then
    #[arg(long, default_value_t = 25)]
    steady_seconds: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The results.
#[derive(Debug, Serialize)]
struct ListingsReport {
    games: u32,
    hello_per_s: f64,
    listings_per_s: f64,
    /// Of the hello-world route's rate, in the same run.
    share_of_hello: f64,
    /// As many as fit.
    listings_ms_p50: f64,
    listings_ms_p99: f64,
    /// At 2,000 a second.
    steady_per_s: f64,
    steady_ms_p50: f64,
    steady_ms_p99: f64,
    answer_bytes: f64,
    /// Reasons to doubt these figures.
    warnings: Vec<String>,
}

/// Starts both servers, asks them in turns, and ends them.
pub fn run(args: &ListingsArgs) -> Result<()> {
    let is_short = args.seconds == 0 || args.steady_seconds == 0;
    if args.games > 1_000_000 || !(1..=1000).contains(&args.connections) || is_short {
        bail!("--games takes up to 1000000, --connections 1 to 1000, seconds at least 1");
    }
    let mut hello = server(&["--hello"])?;
    let mut store = server(&["--games", &args.games.to_string()])?;
    let hello_port = port(&mut hello)?;
    let store_port = port(&mut store).context("the store did not start")?;
    // Once, unmeasured: caches fill, and every path has to work.
    let warm_up = load(&store_port, &PATHS, args.connections, 1, 0)?;
    let (mut hellos, mut listings) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        hellos.push(load(
            &hello_port,
            &["/"],
            args.connections,
            args.seconds,
            0,
        )?);
        listings.push(load(
            &store_port,
            &PATHS,
            args.connections,
            args.seconds,
            0,
        )?);
    }
    let steady = load(
        &store_port,
        &PATHS,
        args.connections,
        args.steady_seconds,
        WANTED_PER_S,
    )?;
    // In its own way: it takes its data with it.
    store.ask_to_end(PATIENCE);
    let median = |reports: &[LoadReport], figure: fn(&LoadReport) -> f64| {
        let mut figures: Vec<f64> = reports.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures[figures.len() / 2]
    };
    let hello_per_s = median(&hellos, |report| report.per_s);
    let listings_per_s = median(&listings, |report| report.per_s);
    let report = ListingsReport {
        games: args.games,
        hello_per_s,
        listings_per_s,
        share_of_hello: listings_per_s / hello_per_s.max(1.0),
        listings_ms_p50: median(&listings, |report| report.ms_p50),
        listings_ms_p99: median(&listings, |report| report.ms_p99),
        steady_per_s: steady.per_s,
        steady_ms_p50: steady.ms_p50,
        steady_ms_p99: steady.ms_p99,
        answer_bytes: warm_up.answer_bytes,
        warnings: pinning::doubts([SERVER_CORE, LOAD_CORE]),
    };
    if args.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        report.print(args.connections);
    }
    Ok(())
}

impl ListingsReport {
    fn print(&self, connections: u32) {
        println!("one core, {connections} connections   answers/s    median      p99");
        println!("hello world of axum        {:9.0}", self.hello_per_s);
        println!(
            "listings, {:6} games     {:9.0}  {:6.2} ms  {:6.2} ms   {:.0} % of hello, {:.0} bytes each",
            self.games,
            self.listings_per_s,
            self.listings_ms_p50,
            self.listings_ms_p99,
            self.share_of_hello * 100.0,
            self.answer_bytes
        );
        println!(
            "listings, {WANTED_PER_S} a second   {:9.0}  {:6.2} ms  {:6.2} ms",
            self.steady_per_s, self.steady_ms_p50, self.steady_ms_p99
        );
        for warning in &self.warnings {
            println!("warning: {warning}");
        }
    }
}

fn server(args: &[&str]) -> Result<Process> {
    let mut all = vec!["bench".to_owned(), "listings-server".to_owned()];
    all.extend(args.iter().map(|arg| (*arg).to_owned()));
    Process::start(Some(SERVER_CORE), &all)
}

/// The first line that is a number; the platform talks while it starts.
fn port(process: &mut Process) -> Result<String> {
    loop {
        let line = process.line()?;
        if line.parse::<u16>().is_ok() {
            return Ok(line);
        }
    }
}

/// Asks for the paths in turns; `per_s` 0 means as fast as answers come.
fn load(
    port: &str,
    paths: &[&str],
    connections: u32,
    seconds: u32,
    per_s: u32,
) -> Result<LoadReport> {
    let mut args = vec!["bench".to_owned(), "listings-load".to_owned()];
    for (name, value) in [
        ("--port", port.to_owned()),
        ("--connections", connections.to_string()),
        ("--seconds", seconds.to_string()),
        ("--per-s", per_s.to_string()),
    ] {
        args.extend([name.to_owned(), value]);
    }
    args.extend(paths.iter().map(|path| format!("--path={path}")));
    let mut process = Process::start(Some(LOAD_CORE), &args)?;
    let line = process.line()?;
    serde_json::from_str(&line).with_context(|| format!("reading the load's output: {line}"))
}
