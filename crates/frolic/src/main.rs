//! The `frolic` command line: each subcommand is a file in `commands/`. Logic
//! belongs into the crates.
#![forbid(unsafe_code)]

mod commands;
mod config;
mod credentials;
mod folder;
mod language_model;
mod open_files;
mod samples;
mod spells;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

/// Create, share and play multiplayer games
#[derive(Parser, Debug)]
#[command(name = "frolic", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Bench(commands::bench::BenchArgs),
    Bots(frolic_bots::BotsArgs),
    Check(commands::check::CheckArgs),
    Dev(commands::dev::DevArgs),
    Gameserver(commands::gameserver::GameserverArgs),
    Health(commands::health::HealthArgs),
    Login(commands::login::LoginArgs),
    New(commands::new::NewArgs),
    Pack(commands::pack::PackArgs),
    Publish(commands::publish::PublishArgs),
    Replay(commands::replay::ReplayArgs),
    Serve(Box<commands::serve::ServeArgs>),
    Soul(commands::soul::SoulArgs),
    Types(commands::types::TypesArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    start_logging();
    open_files::raise_limit();
    frolic_platform::tls::use_ring();
    if let Command::Gameserver(args) = &cli.command {
        commands::gameserver::confine(args);
    }
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: no threads can be started: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(run(cli.command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Bench(args) => commands::bench::run(args).await,
        Command::Bots(args) => frolic_bots::run(args).await,
        Command::Check(args) => commands::check::run(args),
        Command::Dev(args) => commands::dev::run(args).await,
        Command::Gameserver(args) => commands::gameserver::run(args).await,
        Command::Health(args) => commands::health::run(args).await,
        Command::Login(args) => commands::login::run(args).await,
        Command::New(args) => commands::new::run(args),
        Command::Pack(args) => commands::pack::run(args),
        Command::Publish(args) => commands::publish::run(args).await,
        Command::Replay(args) => commands::replay::run(args),
        Command::Serve(args) => commands::serve::run(*args).await,
        Command::Soul(args) => commands::soul::run(&args),
        Command::Types(args) => commands::types::run(args),
    }
}

/// Logs go to stderr, filtered by `RUST_LOG`; `FROLIC_LOG=json` writes them
/// for programs.
fn start_logging() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    if std::env::var("FROLIC_LOG").is_ok_and(|form| form == "json") {
        builder.json().init();
    } else {
        builder.compact().init();
    }
}
