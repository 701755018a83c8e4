//! `frolic bench soak`: a long session of each sample game, and the
//! fingerprint at its end. The same build, another build of the same
//! sources, today or tomorrow: the fingerprint is the same.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use frolic_package::Package;
use frolic_sim::digest::Digest;
use frolic_world::{World, WorldOptions, input};
use serde::Serialize;

use crate::stages::Walkers;

/// Run every sample game for a while and print a fingerprint of each
#[derive(Args, Debug)]
pub struct SoakArgs {
    /// How many ticks of each game
    #[arg(long, default_value_t = 3600)]
    ticks: u32,
    /// How many players
    #[arg(long, default_value_t = 12)]
    players: u32,
    /// Only games whose name contains this
    #[arg(long, default_value = "")]
    game: String,
    /// Another build of this program to compare with
    #[arg(long, value_name = "FROLIC")]
    against: Option<PathBuf>,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct SoakReport {
    scene: String,
    ticks: u32,
    /// Of all states, one per second, in hexadecimal.
    fingerprint: String,
    /// How often a limit cut a script short: those may differ from run to run.
    cuts: u64,
    /// Whether the other build came to the same; none without one.
    same: Option<bool>,
}

/// Runs the games and prints a table, or JSON.
pub fn run(args: SoakArgs) -> Result<()> {
    let mut reports = Vec::new();
    for (name, files) in frolic_assets::sample_games() {
        if name.contains(&args.game) {
            reports.push(soak(name, &super::tools::package(files)?, &args)?);
        }
    }
    if let Some(other) = &args.against {
        let theirs = fingerprints_of(other, &args)?;
        for report in &mut reports {
            report.same = Some(theirs.contains(&report.fingerprint));
        }
    }
    if args.json {
        println!("{}", serde_json::to_string(&reports)?);
    }
    for report in reports.iter().filter(|_| !args.json) {
        let verdict = match report.same {
            Some(true) => "the same in the other build",
            Some(false) => "DIFFERENT in the other build",
            None => "",
        };
        println!(
            "{:<12} {} ticks  {}  {verdict}",
            report.scene, report.ticks, report.fingerprint
        );
    }
    if reports.iter().any(|report| report.same == Some(false)) {
        bail!("the two builds came to different states");
    }
    Ok(())
}

/// The output of the other build, as text to search.
fn fingerprints_of(other: &Path, args: &SoakArgs) -> Result<String> {
    let (ticks, players) = (args.ticks.to_string(), args.players.to_string());
    let output = Command::new(other)
        .args(["bench", "soak", "--json", "--ticks", &ticks])
        .args(["--players", &players, "--game", &args.game])
        .output()
        .with_context(|| format!("starting {}", other.display()))?;
    if !output.status.success() {
        bail!(
            "{} failed: {}",
            other.display(),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn soak(game: String, package: &Package, args: &SoakArgs) -> Result<SoakReport> {
    let mut options = WorldOptions::default();
    // A slow machine must not cut a script short: that would be another session.
    options.scripts.slice = std::time::Duration::from_secs(5);
    options.scripts.average = std::time::Duration::from_secs(5);
    let mut world = World::load(package, options).map_err(|error| anyhow!("{error}"))?;
    let mut walkers = Walkers::join(&mut world, args.players, 40.0);
    let mut digest = Digest::default();
    for tick in 0..args.ticks {
        walkers.steer(&mut world);
        world.apply(input::Step);
        world.collect_changes();
        if let Some(newest) = world.take_ops().last().map(|op| op.seq) {
            world.apply(input::OpsPersisted { up_to: newest });
        }
        // Nothing is persisted: every request is refused in the same way.
        for request in world.take_store_requests() {
            world.apply(input::StoreAnswered(frolic_fleet_api::store::StoreAnswer {
                id: request.id,
                result: Err("this session has no store".to_owned()),
            }));
        }
        drop((world.take_outbox(), world.take_logs()));
        if tick % 60 == 59 {
            let hash = world.state_hash();
            digest.word(hash as u32);
            digest.word((hash >> 32) as u32);
        }
    }
    Ok(SoakReport {
        scene: game,
        ticks: args.ticks,
        fingerprint: format!("{:016x}", digest.value()),
        cuts: world.script_cuts(),
        same: None,
    })
}
