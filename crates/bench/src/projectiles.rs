//! `frolic bench projectiles`: what shots in flight cost per tick, for several
//! numbers of them, against casting as many rays through the same solids.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, anyhow, bail, ensure};
use clap::Args;
use frolic_package::Package;
use frolic_protocol::{Args as Values, Value};
use frolic_sim::random::Random;
use frolic_sim::{CollisionWorld, Vec3};
use frolic_world::{Stage, World, WorldOptions, input};
use serde::Serialize;

use crate::tools::{self, solid, stopwatch};
use frolic_bots::quantile;

const WARM_UP_TICKS: u32 = 60;
const AREA_M: f32 = 120.0;
const PILLARS: usize = 200;

const SCRIPT: &str = r#"
Projectile.Define("Ball", { Speed = 60, Radius = 0.05, LifeSeconds = 30, Ricochets = 16, Bounce = 1, Damage = 0 })
local wanted, random = 0, Random.new(7)
Network.OnClientEvent("Keep", function(_, count) wanted = count end)
function OnTick()
	local missing = wanted - Projectile.InFlight
	for _ = 1, math.min(missing, 500) do
		local place = Vector3.new(random.NextNumber(-55, 55), random.NextNumber(1, 6), random.NextNumber(-55, 55))
		local way = Vector3.new(random.NextNumber(-1, 1), random.NextNumber(-0.3, 0.3), random.NextNumber(-1, 1))
		Projectile.Fire({ Weapon = "Ball", From = place, Direction = way + Vector3.new(0.01, 0, 0) })
	end
end
"#;

/// Measure shots in flight, per number of them: time per tick and per shot
#[derive(Args, Debug)]
pub struct ProjectilesArgs {
    /// How many players they may hit
    #[arg(long, default_value_t = 100)]
    players: u32,
    /// How many ticks to measure
    #[arg(long, default_value_t = 300)]
    ticks: u32,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// The figures of one number of shots.
#[derive(Serialize)]
struct Report {
    scene: String,
    in_flight: u32,
    players: u32,
    /// Of the stage "projectiles", in microseconds per tick.
    median_us: f64,
    p99_us: f64,
    ns_per_shot: f64,
    /// The floor: one ray of the same length through the same solids.
    ray_ns: f64,
    ratio_to_ray: f64,
    /// Messages to clients per tick, and their bytes per shot and second.
    bytes_per_shot_s: f64,
}

/// Measures a growing number of shots and prints a table, or JSON.
pub fn run(args: ProjectilesArgs) -> Result<()> {
    if !(1..=100_000).contains(&args.ticks) || args.players > 2_000 {
        bail!("--ticks takes 1 to 100000, --players up to 2000");
    }
    if cfg!(debug_assertions) {
        tracing::warn!("this is not a release build: the figures mean nothing");
    }
    let mut reports = Vec::new();
    for in_flight in [100, 1_000, 4_000] {
        reports.push(measure(in_flight, &args)?);
    }
    if args.json {
        println!("{}", serde_json::to_string(&reports)?);
        return Ok(());
    }
    println!(
        "{:>9} {:>8} {:>11} {:>11} {:>10} {:>10} {:>7} {:>14}",
        "in flight", "players", "median", "p99", "per shot", "one ray", "x ray", "bytes/shot/s"
    );
    for report in &reports {
        println!(
            "{:>9} {:>8} {:>8.0} us {:>8.0} us {:>7.0} ns {:>7.0} ns {:>7.1} {:>14.1}",
            report.in_flight,
            report.players,
            report.median_us,
            report.p99_us,
            report.ns_per_shot,
            report.ray_ns,
            report.ratio_to_ray,
            report.bytes_per_shot_s,
        );
    }
    Ok(())
}

fn measure(in_flight: u32, args: &ProjectilesArgs) -> Result<Report> {
    let package = package()?;
    let options = WorldOptions {
        stopwatch: Some(stopwatch),
        ..WorldOptions::default()
    };
    let mut world = World::load(&package, options).map_err(|error| anyhow!("{error}"))?;
    let mut first = None;
    for index in 0..args.players.max(1) {
        let number = world.apply(input::Join::new(
            format!("id{index}"),
            format!("Bot{index}"),
        ));
        first.get_or_insert(number);
    }
    let first = first.ok_or_else(|| anyhow!("no player is in the world"))?;
    world.apply(input::Step);
    let wanted = Values(vec![Value::Number(f64::from(in_flight))]);
    ensure!(
        world.apply(input::Event::new(first, "Keep", wanted)),
        "refused"
    );
    for _ in 0..WARM_UP_TICKS {
        world.apply(input::Step);
        world.take_outbox();
    }
    let there = world.projectiles() as u32;
    ensure!(
        there * 10 > in_flight * 9,
        "only {there} shots are in flight"
    );
    let (mut times, mut bytes) = (Vec::new(), 0usize);
    for _ in 0..args.ticks {
        let report = world.apply(input::Step);
        times.push(f64::from(report.times.of(Stage::Projectiles)));
        for outgoing in world.take_outbox() {
            bytes += frolic_protocol::packet::single(&outgoing.message).len();
        }
    }
    let at = |share: f64| quantile(&times, share);
    let ns_per_shot = at(0.5) * 1000.0 / f64::from(in_flight);
    let ray_ns = ray_ns(&package);
    let seconds = f64::from(args.ticks) / f64::from(world.tick_hz());
    let launches = f64::from(in_flight) * seconds * f64::from(args.players.max(1));
    Ok(Report {
        scene: format!("{in_flight} in flight, {} players", args.players),
        in_flight,
        players: args.players,
        median_us: at(0.5),
        p99_us: at(0.99),
        ns_per_shot,
        ray_ns,
        ratio_to_ray: ns_per_shot / ray_ns.max(1e-3),
        bytes_per_shot_s: bytes as f64 / launches,
    })
}

/// Nanoseconds of one ray, a metre long, as a shot casts one in a tick.
fn ray_ns(package: &Package) -> f64 {
    let solids: CollisionWorld = frolic_sim::scene::load(&package.scene);
    let mut random = Random::new(3);
    let rays: Vec<(Vec3, Vec3)> = (0..10_000)
        .map(|_| {
            let mut number = |size: f32| random.range(-size, size);
            let origin = Vec3::new(number(55.0), 3.0 + number(2.0), number(55.0));
            let way = Vec3::new(number(1.0), number(0.3), number(1.0)).normalize_or(Vec3::X);
            (origin, way)
        })
        .collect();
    let mut best = f64::INFINITY;
    for _ in 0..20 {
        let began = Instant::now();
        for (origin, way) in &rays {
            black_box(solids.raycast(*origin, *way, 1.0, &[]));
        }
        best = best.min(began.elapsed().as_nanos() as f64 / rays.len() as f64);
    }
    best
}

/// A walled meadow full of pillars.
fn package() -> Result<Package> {
    let mut entities = vec![
        solid(1, "Ground", [0.0, -0.5, 0.0], [AREA_M, 1.0, AREA_M]),
        solid(2, "Sky", [0.0, 10.5, 0.0], [AREA_M, 1.0, AREA_M]),
    ];
    let half = AREA_M / 2.0;
    for (index, side) in [-half, half].into_iter().enumerate() {
        let id = 3 + 2 * index;
        entities.push(solid(id, "Wall", [side, 5.0, 0.0], [1.0, 12.0, AREA_M]));
        entities.push(solid(id + 1, "Wall", [0.0, 5.0, side], [AREA_M, 12.0, 1.0]));
    }
    let mut random = Random::new(11);
    for index in 0..PILLARS {
        let mut place = || random.range(-half + 3.0, half - 3.0);
        let at = [place(), 2.0, place()];
        entities.push(solid(10 + index, "Pillar", at, [1.0, 4.0, 1.0]));
    }
    entities.push(tools::spawn_point(1000, [0.0, 0.1, 0.0]));
    let scripts = [("scripts/ServerScriptService/Shots.luau", SCRIPT)];
    tools::package(tools::files("range", &tools::scene(entities), &scripts)?)
}
