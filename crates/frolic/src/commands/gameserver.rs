//! `frolic gameserver`: the process of one world. The control plane starts it.

use std::ffi::OsString;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use frolic_fleet_api::process::{CLOSE_LIMIT_S, TICKET_KEY_ENV, WORLD_TOKEN_ENV};
use frolic_gameserver::lockdown::{self, Needs};
use frolic_gameserver::{GameServerConfig, InterestPolicy, WorldSource};
use frolic_package::{Limits, Package};

use crate::config::CLIENT_BYTES_MIN;
use crate::folder;

/// The platform's secret, which it signs tickets with.
const SECRET_KEY_ENV: &str = "SECRET_KEY";

/// Run one world.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  frolic gameserver --port 7777 --world world_abc123 --control-plane http://127.0.0.1:5000
  frolic gameserver --port 7777 --package games/obby      (no tickets, this machine only)")]
pub struct GameserverArgs {
    /// TCP port for WebSocket and HTTP; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// The world's id
    #[arg(long, default_value = "world_local")]
    world: String,
    /// Address of the control plane, which hands out package and tickets
    #[arg(long, conflicts_with = "package")]
    control_plane: Option<String>,
    /// A game's folder or .game file, to run it without a control plane
    #[arg(long)]
    package: Option<PathBuf>,
    /// Do not offer WebTransport
    #[arg(long)]
    no_webtransport: bool,
    /// Simulation steps per second, instead of the game's
    #[arg(long)]
    tick_hz: Option<u32>,
    /// Snapshots per second, instead of the game's
    #[arg(long)]
    snapshot_hz: Option<u32>,
    /// Radius in metres within which entities are replicated, or `all` at the
    /// full rate, instead of the game's own setting
    #[arg(long, value_parser = interest)]
    radius: Option<InterestPolicy>,
    /// Bytes of snapshots a second that one player is sent at most, instead of
    /// 65536; `--radius all` knows no limit
    #[arg(long, value_parser = clap::value_parser!(u32).range(i64::from(CLIENT_BYTES_MIN)..))]
    client_bytes_per_second: Option<u32>,
    /// Most players, instead of the game's
    #[arg(long)]
    max_players: Option<u32>,
    /// Folder for compiled scripts
    #[arg(long)]
    script_folder: Option<PathBuf>,
    /// Folder to record the session in, for `frolic replay`
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
}

/// Takes what a full world needs, then away what no world does; before any
/// thread is started.
pub fn confine(args: &GameserverArgs) {
    // Before the walls, which need no gap for it then.
    let folders = [&args.script_folder, &args.record];
    let port = args.control_plane.as_deref().and_then(port_of);
    lockdown::confine(&Needs {
        reads: args.package.iter().cloned().collect(),
        writes: folders.into_iter().flatten().cloned().collect(),
        control_plane_port: port,
    });
}

/// The port of `http://host:port/…`.
fn port_of(url: &str) -> Option<u16> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split('/').next()?;
    match authority.rsplit_once(':') {
        Some((_, port)) => port.parse().ok(),
        None => Some(if scheme == "https" { 443 } else { 80 }),
    }
}

/// Runs the world until it stops.
pub async fn run(args: GameserverArgs) -> Result<()> {
    let source = match (&args.control_plane, &args.package) {
        (Some(url), None) => WorldSource::ControlPlane {
            url: url.clone(),
            token: env(WORLD_TOKEN_ENV)?,
            key: ticket_key(&env(TICKET_KEY_ENV)?)?,
        },
        (None, Some(path)) => {
            refuse_secrets(|name| std::env::var_os(name))?;
            WorldSource::Package(Box::new(read_package(path)?))
        }
        _ => bail!("say where the world comes from: --control-plane URL or --package PATH"),
    };
    let config = GameServerConfig {
        world_id: args.world.clone(),
        host: args.host,
        port: args.port,
        webtransport: !args.no_webtransport,
        source,
        tick_hz: args.tick_hz,
        snapshot_hz: args.snapshot_hz,
        interest: args.radius,
        client_bytes_per_s: args.client_bytes_per_second,
        players_max: args.max_players,
        close_limit_s: CLOSE_LIMIT_S,
        blame: Some(last_words()?),
        confined: true,
        script_folder: args.script_folder,
        record_folder: args.record,
    };
    let world = args.world;
    let reason = frolic_gameserver::run(config, |address| {
        println!("{world} is ready on ws://{address}/ws");
    })
    .await?;
    tracing::info!(%reason, "the world stopped");
    Ok(())
}

/// Without a control plane every client is admitted under any name: a server
/// with secrets set is not meant to run like that.
fn refuse_secrets(get: impl Fn(&str) -> Option<OsString>) -> Result<()> {
    for name in [SECRET_KEY_ENV, TICKET_KEY_ENV, WORLD_TOKEN_ENV] {
        if get(name).is_some_and(|value| !value.is_empty()) {
            bail!(
                "{name} is set, and --package admits every client without a ticket; \
                 unset it, or run the world from a control plane (--control-plane, or frolic serve)"
            );
        }
    }
    Ok(())
}

/// A world's process may have to end in the middle of a script; its name goes
/// to standard output, which the control plane reads.
fn last_words() -> Result<std::fs::File> {
    let output = std::io::stdout().as_fd().try_clone_to_owned();
    Ok(output.context("standard output cannot be shared")?.into())
}

fn env(name: &str) -> Result<String> {
    std::env::var(name).with_context(|| {
        format!("{name} is not set; the control plane sets it when it starts a game server")
    })
}

fn ticket_key(hex: &str) -> Result<[u8; 32]> {
    let bytes = (0..hex.len())
        .step_by(2)
        .map(|at| {
            hex.get(at..at + 2)
                .and_then(|pair| u8::from_str_radix(pair, 16).ok())
        })
        .collect::<Option<Vec<u8>>>();
    bytes
        .and_then(|bytes| bytes.try_into().ok())
        .with_context(|| format!("{TICKET_KEY_ENV} must be 64 hex digits"))
}

/// Reads a game from a folder or a file.
pub fn read_package(path: &std::path::Path) -> Result<Package> {
    let limits = Limits::default();
    let package = if path.is_dir() {
        Package::from_files(folder::read(path, &limits)?, &limits)
    } else {
        let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        Package::read(&bytes, &limits)
    };
    package.map_err(|report| anyhow::anyhow!("{} is not a valid game:\n{report}", path.display()))
}

/// `--radius`
fn interest(text: &str) -> Result<InterestPolicy, String> {
    if text == "all" {
        return Ok(InterestPolicy::EVERYTHING);
    }
    match text.parse::<f32>() {
        Ok(radius) if (1.0..=10_000.0).contains(&radius) => Ok(InterestPolicy::within(radius)),
        _ => Err("takes metres, 1 to 10000, or `all`".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_and_a_world_without_tickets_do_not_go_together() {
        let with = |set: &'static str, value: &'static str| {
            refuse_secrets(move |name| (name == set).then(|| value.into()))
        };
        for name in ["SECRET_KEY", "FROLIC_TICKET_KEY", "FROLIC_WORLD_TOKEN"] {
            let refusal = with(name, "0123456789").unwrap_err().to_string();
            assert!(refusal.starts_with(name), "{refusal}");
            assert!(with(name, "").is_ok(), "empty is not set");
        }
        assert!(with("PORT", "5000").is_ok());
    }
}
