//! `frolic bench physics`: what rigid bodies cost in a world, beside rapier alone with the very
//! same bodies in the same run.
//!
//! The two take turns, round by round, so that whatever else the machine does meets both. A tick
//! of the world is measured twice: its physics stage, and all of it.

use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use frolic_package::Package;
use frolic_world::{Stage, World, WorldOptions, input};
use rapier3d::prelude::{
    CoefficientCombineRule, ColliderBuilder, PhysicsWorld, RigidBodyBuilder, Vector,
};
use serde::Serialize;
use serde_json::json;

use crate::tools::{self, mean, stopwatch};
use frolic_bots::quantile;

const TICK_HZ: u32 = 60;
/// Ticks in which everything is still awake after it was dropped.
const AWAKE_TICKS: u32 = 45;
/// Until everything sleeps.
const SETTLE_TICKS_MAX: u32 = 3_000;

/// Measure rigid bodies, beside rapier alone
#[derive(Args, Debug)]
pub struct PhysicsArgs {
    /// How often each scene is played
    #[arg(long, default_value_t = 10)]
    rounds: u32,
    /// Only scenes whose name contains this
    #[arg(long, default_value = "")]
    scene: String,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// The figures of one scene.
#[derive(Serialize)]
struct Report {
    scene: &'static str,
    bodies: usize,
    /// Bodies awake in a measured tick, on average: ours and rapier's.
    awake: f64,
    bare_awake: f64,
    ticks: usize,
    bare_mean_us: f64,
    bare_p99_us: f64,
    physics_mean_us: f64,
    physics_p99_us: f64,
    step_mean_us: f64,
    step_p99_us: f64,
    /// The physics stage over rapier alone.
    ratio: f64,
}

/// Where boxes of one metre are dropped from, and whether they are to sleep before it counts.
struct Drop {
    name: &'static str,
    places: Vec<[f32; 3]>,
    asleep: bool,
}

fn scenes() -> Vec<Drop> {
    let stacks = |count: usize, height: usize, gap: f32| -> Vec<[f32; 3]> {
        let side = (count / height).isqrt().max(1);
        (0..count)
            .map(|i| {
                let (stack, level) = (i / height, i % height);
                let (x, z) = ((stack % side) as f32, (stack / side) as f32);
                [x * 1.6, 0.5 + level as f32 * (1.0 + gap), z * 1.6]
            })
            .collect()
    };
    vec![
        Drop {
            name: "stack-200",
            places: stacks(200, 10, 0.02),
            asleep: false,
        },
        Drop {
            name: "awake-1000",
            places: stacks(1_000, 5, 0.1),
            asleep: false,
        },
        Drop {
            name: "asleep-1000",
            places: stacks(1_000, 5, 0.02),
            asleep: true,
        },
    ]
}

/// Runs every scene and prints a table, or JSON.
pub fn run(args: PhysicsArgs) -> Result<()> {
    if !(1..=1_000).contains(&args.rounds) {
        bail!("--rounds takes 1 to 1000");
    }
    if cfg!(debug_assertions) {
        tracing::warn!("this is not a release build: the figures mean nothing");
    }
    let mut reports = Vec::new();
    for scene in scenes() {
        if scene.name.contains(&args.scene) {
            reports.push(measure(&scene, args.rounds)?);
        }
    }
    if args.json {
        println!("{}", serde_json::to_string(&reports)?);
        return Ok(());
    }
    println!(
        "{:<12} {:>7} {:>7}  {:>12} {:>12} {:>12}  {:>6}",
        "scene", "bodies", "awake", "rapier", "physics", "whole tick", "ratio"
    );
    for report in &reports {
        println!(
            "{:<12} {:>7} {:>7.0}  {:>9.1} µs {:>9.1} µs {:>9.1} µs  {:>6.2}",
            report.scene,
            report.bodies,
            report.awake,
            report.bare_mean_us,
            report.physics_mean_us,
            report.step_mean_us,
            report.ratio,
        );
    }
    Ok(())
}

/// Times of ticks in microseconds, and how many bodies were awake in them.
#[derive(Default)]
struct Times {
    us: Vec<f64>,
    awake: Vec<f64>,
}

fn measure(scene: &Drop, rounds: u32) -> Result<Report> {
    let package = package(scene)?;
    let gravity = package.manifest.simulation.gravity;
    let (mut bare, mut stage, mut step) = (Times::default(), Times::default(), Times::default());
    for round in 0..rounds {
        let mut ours = || run_ours(scene, &package, &mut stage, &mut step);
        let mut alone = || run_bare(scene, gravity, &mut bare);
        if round % 2 == 0 {
            ours()?;
            alone()?;
        } else {
            alone()?;
            ours()?;
        }
    }
    let (bare_mean, physics_mean) = (mean(&bare.us), mean(&stage.us));
    Ok(Report {
        scene: scene.name,
        bodies: scene.places.len(),
        awake: mean(&step.awake),
        bare_awake: mean(&bare.awake),
        ticks: step.us.len(),
        bare_mean_us: bare_mean,
        bare_p99_us: quantile(&bare.us, 0.99),
        physics_mean_us: physics_mean,
        physics_p99_us: quantile(&stage.us, 0.99),
        step_mean_us: mean(&step.us),
        step_p99_us: quantile(&step.us, 0.99),
        ratio: physics_mean / bare_mean.max(1e-9),
    })
}

fn run_ours(scene: &Drop, package: &Package, stage: &mut Times, step: &mut Times) -> Result<()> {
    let options = WorldOptions {
        stopwatch: Some(stopwatch),
        ..WorldOptions::default()
    };
    let mut world = World::load(package, options).map_err(|error| anyhow!("{error}"))?;
    let mut settling = 0;
    while scene.asleep && (settling == 0 || world.awake_bodies() > 0) {
        world.apply(input::Step);
        world.collect_changes();
        settling += 1;
        if settling > SETTLE_TICKS_MAX {
            bail!("{} does not fall asleep", scene.name);
        }
    }
    for _ in 0..AWAKE_TICKS {
        let began = Instant::now();
        let report = world.apply(input::Step);
        step.us.push(began.elapsed().as_secs_f64() * 1e6);
        stage.us.push(f64::from(report.times.of(Stage::Physics)));
        step.awake.push(world.awake_bodies() as f64);
        world.collect_changes();
    }
    Ok(())
}

fn run_bare(scene: &Drop, gravity: f32, times: &mut Times) -> Result<()> {
    let mut physics = PhysicsWorld {
        gravity: Vector::Y * -gravity,
        ..PhysicsWorld::default()
    };
    physics.integration_parameters.dt = 1.0 / TICK_HZ as f32;
    let surface = |collider: ColliderBuilder| {
        collider
            .friction(0.5)
            .friction_combine_rule(CoefficientCombineRule::Min)
            .restitution_combine_rule(CoefficientCombineRule::Max)
    };
    let ground = surface(ColliderBuilder::cuboid(200.0, 0.5, 200.0));
    physics.insert_collider(ground.translation(Vector::Y * -0.5), None);
    for place in &scene.places {
        let body = RigidBodyBuilder::dynamic()
            .translation(Vector::from(*place))
            .ccd_enabled(true);
        physics.insert(
            body,
            surface(ColliderBuilder::cuboid(0.5, 0.5, 0.5)).mass(1.0),
        );
    }
    let mut settling = 0;
    while scene.asleep && (settling == 0 || physics.islands.num_active_bodies() > 0) {
        physics.step();
        settling += 1;
        if settling > SETTLE_TICKS_MAX {
            bail!("{} does not fall asleep in rapier", scene.name);
        }
    }
    for _ in 0..AWAKE_TICKS {
        let began = Instant::now();
        physics.step();
        times.us.push(began.elapsed().as_secs_f64() * 1e6);
        times.awake.push(physics.islands.num_active_bodies() as f64);
    }
    Ok(())
}

fn package(scene: &Drop) -> Result<Package> {
    let ground = tools::solid(1, "Ground", [0.0, -0.5, 0.0], [400.0, 1.0, 400.0]);
    let mut entities = vec![ground];
    for (index, place) in scene.places.iter().enumerate() {
        entities.push(json!({
            "id": index + 2, "name": "Box",
            "components": {
                "Transform": { "position": place },
                "Shape": { "type": "box", "size": [1.0, 1.0, 1.0] },
                "Body": { "type": "dynamic" },
            },
        }));
    }
    tools::package(tools::files("heap", &tools::scene(entities), &[])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_have_the_same_bodies_awake() {
        let scene = scenes().remove(0);
        let report = measure(&scene, 1).unwrap();
        assert_eq!((report.awake, report.bare_awake), (200.0, 200.0));
    }
}
