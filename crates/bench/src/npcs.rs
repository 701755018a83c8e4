//! `frolic bench npcs`: what NPCs cost in a tick, with players among them.
//!
//! A field of pillars and walls; every NPC has a patrol of its own, and the
//! players walk about between them, so that all of it happens all the time:
//! looks, chases, searches, ways around things.

use anyhow::{Result, anyhow, bail};
use clap::Args;
use frolic_package::Package;
use frolic_protocol::NumberedInput;
use frolic_protocol::npc::NpcState;
use frolic_sim::Vec3;
use frolic_world::{PlayerNumber, Stage, World, WorldOptions, input};
use serde::Serialize;
use serde_json::json;

use crate::tools::{self, mean, solid, stopwatch};
use frolic_bots::{Behaviour, quantile};

const TICK_HZ: f64 = 60.0;
/// Until all NPCs have landed and set out.
const WARM_UP_TICKS: u32 = 300;
/// Metres between two NPCs' posts, and between two pillars.
const POST_M: f32 = 6.0;
const PILLAR_M: f32 = 9.0;

/// Measure NPCs: the tick, and the part of it that they take
#[derive(Args, Debug)]
pub struct NpcsArgs {
    /// How many NPCs; several numbers are measured one after the other
    #[arg(long, value_delimiter = ',', default_value = "100,500")]
    npcs: Vec<u32>,
    /// How many players walk among them
    #[arg(long, default_value_t = 50)]
    players: u32,
    /// How many ticks to measure
    #[arg(long, default_value_t = 1800)]
    ticks: u32,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// The figures for one number of NPCs. Milliseconds per tick.
#[derive(Serialize)]
struct Report {
    scene: String,
    npcs: u32,
    players: u32,
    npcs_ms: Spread,
    tick_ms: Spread,
    rays_mean: f64,
    rays_max: u32,
    /// How many, on average, were not idle.
    excited_mean: f64,
}

#[derive(Serialize)]
struct Spread {
    mean: f64,
    median: f64,
    p99: f64,
    max: f64,
}

/// Runs each number and prints a table, or JSON.
pub fn run(args: NpcsArgs) -> Result<()> {
    let good = |npcs: &u32| (1..=1000).contains(npcs);
    if !args.npcs.iter().all(good) || args.players > 1000 || !(10..=100_000).contains(&args.ticks) {
        bail!("--npcs takes 1 to 1000, --players up to 1000 and --ticks 10 to 100000");
    }
    if cfg!(debug_assertions) {
        tracing::warn!("this is not a release build: the figures mean nothing");
    }
    let reports: Result<Vec<Report>> = args.npcs.iter().map(|n| measure(*n, &args)).collect();
    let reports = reports?;
    if args.json {
        println!("{}", serde_json::to_string(&reports)?);
        return Ok(());
    }
    println!(
        "{:>5} {:>8}  {:>9} {:>9} {:>9}  {:>9} {:>9}  {:>6} {:>8}",
        "npcs", "players", "mean", "median", "p99", "tick", "tick p99", "rays", "excited"
    );
    for report in reports {
        println!(
            "{:>5} {:>8}  {:>6.3} ms {:>6.3} ms {:>6.3} ms  {:>6.3} ms {:>6.3} ms  {:>6.1} {:>8.1}",
            report.npcs,
            report.players,
            report.npcs_ms.mean,
            report.npcs_ms.median,
            report.npcs_ms.p99,
            report.tick_ms.mean,
            report.tick_ms.p99,
            report.rays_mean,
            report.excited_mean,
        );
    }
    Ok(())
}

fn measure(npcs: u32, args: &NpcsArgs) -> Result<Report> {
    let options = WorldOptions {
        stopwatch: Some(stopwatch),
        ..WorldOptions::default()
    };
    let game = field(npcs)?;
    let mut world = World::load(&game, options).map_err(|error| anyhow!("{error}"))?;
    let mut walkers: Vec<(PlayerNumber, Behaviour)> = (0..args.players)
        .map(|index| {
            let number = world.apply(input::Join::new(
                format!("bench_{index}"),
                format!("Bench {index}"),
            ));
            (number, Behaviour::new(u64::from(index), None))
        })
        .collect();
    let (mut npcs_ms, mut tick_ms) = (Vec::new(), Vec::new());
    let (mut rays, mut rays_max, mut excited) = (0_u64, 0, 0_u64);
    for tick in 1..=WARM_UP_TICKS + args.ticks {
        for (number, behaviour) in &mut walkers {
            let feet = world.character(*number).map_or(Vec3::ZERO, |c| c.feet);
            let input = behaviour.input(f64::from(tick) / TICK_HZ, feet);
            world.apply(input::Controls::new(
                *number,
                [NumberedInput { seq: tick, input }],
            ));
        }
        let began = stopwatch();
        let report = world.apply(input::Step);
        let took = stopwatch() - began;
        world.take_outbox();
        if tick > WARM_UP_TICKS {
            npcs_ms.push(f64::from(report.times.of(Stage::Npcs)) / 1000.0);
            tick_ms.push(took as f64 / 1000.0);
            rays += u64::from(world.npc_rays());
            rays_max = rays_max.max(world.npc_rays());
            let all = world.npcs();
            excited += all.iter().filter(|npc| npc.state != NpcState::Idle).count() as u64;
        }
    }
    Ok(Report {
        scene: format!("{npcs} NPCs, {} players", args.players),
        npcs,
        players: args.players,
        npcs_ms: spread(&npcs_ms),
        tick_ms: spread(&tick_ms),
        rays_mean: rays as f64 / f64::from(args.ticks),
        rays_max,
        excited_mean: excited as f64 / f64::from(args.ticks),
    })
}

fn spread(values: &[f64]) -> Spread {
    Spread {
        mean: mean(values),
        median: quantile(values, 0.5),
        p99: quantile(values, 0.99),
        max: quantile(values, 1.0),
    }
}

/// Posts in a square formation, pillars between them, and a wall here and
/// there.
fn field(npcs: u32) -> Result<Package> {
    let side = (npcs as f32).sqrt().ceil();
    let half = side * POST_M / 2.0;
    let size = half * 2.0 + 30.0;
    let mut entities = vec![solid(1, "Ground", [0.0, -0.5, 0.0], [size, 1.0, size])];
    for index in 0..64 {
        let place = |n: u32| (n as f32 + 0.5) / 8.0 * half * 2.0 - half;
        let at = [place(index % 8) + 1.5, 0.1, place(index / 8) + 1.5];
        entities.push(tools::spawn_point(entities.len() + 1, at));
    }
    let pillars = (half * 2.0 / PILLAR_M) as u32 + 1;
    for index in 0..pillars * pillars {
        let (x, z) = (index % pillars, index / pillars);
        let at = [x as f32 * PILLAR_M - half, 1.5, z as f32 * PILLAR_M - half];
        // Every fifth is a wall.
        let size = if index % 5 == 0 {
            [6.0, 3.0, 0.6]
        } else {
            [1.2, 3.0, 1.2]
        };
        entities.push(solid(entities.len() + 1, "Pillar", at, size));
    }
    for index in 0..npcs {
        let (column, row) = (index % side as u32, index / side as u32);
        let at = |n: u32| n as f32 * POST_M - half + POST_M / 2.0;
        let (x, z) = (at(column), at(row));
        let far = 8.0 + (index % 5) as f32 * 3.0;
        entities.push(
            json!({"id": entities.len() + 1, "name": "Guard", "components": {
            "Transform": {"position": [x, 0.0, z]},
            "Npc": {"patrol": [[x, 0.0, z], [x + far, 0.0, z], [x, 0.0, z - far]]}}}),
        );
    }
    tools::package(tools::files("field", &tools::scene(entities), &[])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn npcs_are_measured_and_busy() {
        let args = NpcsArgs {
            npcs: vec![20],
            players: 8,
            ticks: 120,
            json: true,
        };
        let report = measure(20, &args).expect("the field is a game");
        assert!(report.npcs_ms.mean > 0.0 && report.npcs_ms.p99 <= report.tick_ms.max);
        assert!(report.rays_mean > 0.0, "no NPC looked");
    }
}
