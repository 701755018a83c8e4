//! `frolic bench stages`: what each stage of a tick costs, as what there is to
//! do grows: players, bodies, projectiles, NPCs, edits of the ground.
//!
//! The world is stepped by hand in this process, without sockets: only the
//! simulation is measured.

use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use frolic_protocol::NumberedInput;
use frolic_sim::Vec3;
use frolic_world::{PlayerNumber, Stage, World, WorldOptions, input};
use serde::Serialize;

use crate::stage_scenes::{self, Case};
use crate::tools::stopwatch;
use frolic_bots::{Behaviour, quantile};

/// Until all characters have landed, bodies that can sleep do, and the
/// machine's caches are warm.
const WARM_UP_TICKS: u32 = 300;

/// Measure the stages of a tick: players, bodies, projectiles, NPCs, terrain
#[derive(Args, Debug)]
pub struct StagesArgs {
    /// How many ticks to measure per case
    #[arg(long, default_value_t = 600)]
    ticks: u32,
    /// Only cases whose name contains this
    #[arg(long, default_value = "")]
    case: String,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct CaseReport {
    scene: String,
    players: u32,
    things: u32,
    /// The whole step.
    tick_ms_p50: f64,
    tick_ms_p99: f64,
    /// Median of each stage.
    stage_ms: std::collections::BTreeMap<&'static str, f64>,
}

/// Runs every case and prints a table, or JSON.
pub fn run(args: StagesArgs) -> Result<()> {
    if !(10..=100_000).contains(&args.ticks) {
        bail!("--ticks takes 10 to 100000");
    }
    if cfg!(debug_assertions) {
        tracing::warn!("this is not a release build: the figures mean nothing");
    }
    let mut reports = Vec::new();
    for case in stage_scenes::all() {
        if case.name.contains(&args.case) {
            reports.push(measure(&case, args.ticks)?);
        }
    }
    if args.json {
        println!("{}", serde_json::to_string(&reports)?);
        return Ok(());
    }
    for report in &reports {
        let stages = report.stage_ms.iter();
        let stages: Vec<String> = stages
            .filter(|(_, ms)| **ms >= 0.005)
            .map(|(name, ms)| format!("{name} {ms:.3}"))
            .collect();
        println!(
            "{:<44} p50 {:>7.3} ms  p99 {:>7.3} ms  {}",
            report.scene,
            report.tick_ms_p50,
            report.tick_ms_p99,
            stages.join(", ")
        );
    }
    Ok(())
}

/// Players of a world who walk about.
pub(super) struct Walkers {
    walkers: Vec<(PlayerNumber, Behaviour)>,
    seq: u32,
}

impl Walkers {
    pub fn join(world: &mut World, count: u32, roam_m: f32) -> Self {
        let walkers = (0..count).map(|index| {
            let number = world.apply(input::Join::new(
                format!("user_{index}"),
                format!("Walker {index}"),
            ));
            (number, Behaviour::new(u64::from(index) + 1, Some(roam_m)))
        });
        Self {
            walkers: walkers.collect(),
            seq: 0,
        }
    }

    /// Queues each player's input for the next step.
    pub fn steer(&mut self, world: &mut World) {
        self.seq += 1;
        let now_s = f64::from(self.seq) / f64::from(world.tick_hz());
        for (number, behaviour) in &mut self.walkers {
            let feet = world.character(*number).map_or(Vec3::ZERO, |c| c.feet);
            let input = behaviour.input(now_s, feet);
            let seq = self.seq;
            world.apply(input::Controls::new(
                *number,
                [NumberedInput { seq, input }],
            ));
        }
    }
}

fn measure(case: &Case, ticks: u32) -> Result<CaseReport> {
    let package = case.package()?;
    let options = WorldOptions {
        stopwatch: Some(stopwatch),
        ..WorldOptions::default()
    };
    let mut world = World::load(&package, options).map_err(|error| anyhow!("{error}"))?;
    let mut walkers = Walkers::join(&mut world, case.players, 12.0);
    let mut steps = Vec::with_capacity(ticks as usize);
    let mut stages: Vec<Vec<f64>> = vec![Vec::new(); Stage::ALL.len()];
    for tick in 0..WARM_UP_TICKS + ticks {
        walkers.steer(&mut world);
        let began = Instant::now();
        let report = world.apply(input::Step);
        let took = began.elapsed();
        world.collect_changes();
        for line in world.take_logs() {
            if line.level == frolic_script::LogLevel::Error {
                bail!("{}: {}", case.name, line.message);
            }
        }
        let newest = world.take_ops().last().map(|op| op.seq);
        if let Some(newest) = newest {
            world.apply(input::OpsPersisted { up_to: newest });
        }
        drop(world.take_outbox());
        if tick >= WARM_UP_TICKS {
            steps.push(took.as_secs_f64() * 1000.0);
            for stage in Stage::ALL {
                stages[stage as usize].push(f64::from(report.times.of(stage)) / 1000.0);
            }
        }
    }
    Ok(CaseReport {
        scene: case.name.clone(),
        players: case.players,
        things: case.things,
        tick_ms_p50: quantile(&steps, 0.5),
        tick_ms_p99: quantile(&steps, 0.99),
        stage_ms: Stage::ALL
            .into_iter()
            .map(|stage| (stage.name(), quantile(&stages[stage as usize], 0.5)))
            .collect(),
    })
}
