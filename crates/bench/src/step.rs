//! `frolic bench step`: what one step of one character costs, in scenes of several kinds.
//!
//! The ticks of a scene alternate between two ways to look: one reads the
//! clock around the whole crowd, for the mean and the cost of a tick without
//! the clock's own, the other around every single step, for the spread.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use frolic_sim::{CharacterInput, CharacterParams, CharacterState, StepCache, step_character_with};
use serde::Serialize;

use crate::step_scenes::{self, StepScene};
use frolic_bots::{Behaviour, quantile};

const TICK_HZ: u32 = 60;
/// Until all characters have landed and the caches of the machine are warm.
const WARM_UP_TICKS: u32 = 240;

/// A character this far below home is put back there: a long fall is cheap and
/// would distort the figures.
const FALL_M: f32 = 4.0;

/// Measure the character step, per scene: median, 99th percentile and mean
#[derive(Args, Debug)]
pub struct StepArgs {
    /// How many characters per scene
    #[arg(long, default_value_t = 1000)]
    players: u32,
    /// How many ticks to measure
    #[arg(long, default_value_t = 1200)]
    ticks: u32,
    /// Only scenes whose name contains this
    #[arg(long, default_value = "")]
    scene: String,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// The figures of one scene, once walking about and once standing still.
#[derive(Serialize)]
struct SceneReport {
    scene: String,
    solids: usize,
    movers: usize,
    players: u32,
    walking: Cost,
    idle: Cost,
    /// Posing one moving solid for a tick.
    move_ns: f64,
}

#[derive(Serialize)]
struct Cost {
    step_median_ns: f64,
    step_p99_ns: f64,
    step_mean_ns: f64,
    /// All characters, one tick.
    tick_median_ms: f64,
    tick_p99_ms: f64,
}

/// Runs every scene and prints a table, or JSON.
pub fn run(args: StepArgs) -> Result<()> {
    if !(1..=100_000).contains(&args.players) || !(10..=100_000).contains(&args.ticks) {
        bail!("--players takes 1 to 100000 and --ticks 10 to 100000");
    }
    if cfg!(debug_assertions) {
        tracing::warn!("this is not a release build: the figures mean nothing");
    }
    let mut reports = Vec::new();
    for scene in step_scenes::all()? {
        if scene.name.contains(&args.scene) {
            reports.push(measure(scene, &args)?);
        }
    }
    if args.json {
        println!("{}", serde_json::to_string(&reports)?);
        return Ok(());
    }
    println!(
        "{:<12} {:>6} {:>6}  {:<8} {:>9} {:>9} {:>9}  {:>10} {:>10}  {:>8}",
        "scene", "solids", "movers", "", "median", "p99", "mean", "tick", "tick p99", "move"
    );
    for report in &reports {
        for (what, cost) in [("walking", &report.walking), ("idle", &report.idle)] {
            println!(
                "{:<12} {:>6} {:>6}  {:<8} {:>6.0} ns {:>6.0} ns {:>6.0} ns  {:>7.3} ms {:>7.3} ms  {:>5.0} ns",
                report.scene,
                report.solids,
                report.movers,
                what,
                cost.step_median_ns,
                cost.step_p99_ns,
                cost.step_mean_ns,
                cost.tick_median_ms,
                cost.tick_p99_ms,
                report.move_ns,
            );
        }
    }
    Ok(())
}

fn measure(mut scene: StepScene, args: &StepArgs) -> Result<SceneReport> {
    let mut crowd = Crowd::new(&scene, args.players)?;
    let walking = crowd.measure(&mut scene, args.ticks, Doing::Walking);
    let idle = crowd.measure(&mut scene, args.ticks, Doing::Nothing);
    let move_ns = match scene.movers.len() {
        0 => 0.0,
        movers => crowd.moving_s * 1e9 / (f64::from(crowd.tick) * movers as f64),
    };
    Ok(SceneReport {
        scene: scene.name,
        solids: scene.solids,
        movers: scene.movers.len(),
        players: args.players,
        walking,
        idle,
        move_ns,
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Doing {
    Walking,
    Nothing,
}

struct Walker {
    character: CharacterState,
    cache: StepCache,
    input: CharacterInput,
    behaviour: Behaviour,
    home: CharacterState,
}

struct Crowd {
    walkers: Vec<Walker>,
    params: CharacterParams,
    tick: u32,
    /// Time spent on moving solids, all ticks together.
    moving_s: f64,
    clock_ns: f64,
}

impl Crowd {
    fn new(scene: &StepScene, players: u32) -> Result<Self> {
        let homes = scene.homes(players)?;
        let walkers = homes.into_iter().enumerate().map(|(index, feet)| Walker {
            character: CharacterState::at(feet),
            cache: StepCache::default(),
            input: CharacterInput::default(),
            behaviour: Behaviour::new(index as u64, None),
            home: CharacterState::at(feet),
        });
        Ok(Self {
            walkers: walkers.collect(),
            params: CharacterParams::default(),
            tick: 0,
            moving_s: 0.0,
            clock_ns: clock_ns(),
        })
    }

    fn measure(&mut self, scene: &mut StepScene, ticks: u32, doing: Doing) -> Cost {
        for _ in 0..WARM_UP_TICKS {
            self.prepare(scene, doing);
            self.step_all(scene);
        }
        let mut ticks_ns = Vec::with_capacity(ticks as usize);
        let mut steps_ns = Vec::with_capacity(ticks as usize * self.walkers.len());
        for _ in 0..ticks {
            self.prepare(scene, doing);
            let start = Instant::now();
            self.step_all(scene);
            ticks_ns.push(start.elapsed().as_nanos() as f64);
            self.prepare(scene, doing);
            self.step_each(scene, &mut steps_ns);
        }
        let players = self.walkers.len() as f64;
        let mean = ticks_ns.iter().sum::<f64>() / ticks_ns.len() as f64 / players;
        Cost {
            step_median_ns: (quantile(&steps_ns, 0.5) - self.clock_ns).max(0.0),
            step_p99_ns: (quantile(&steps_ns, 0.99) - self.clock_ns).max(0.0),
            step_mean_ns: mean,
            tick_median_ms: quantile(&ticks_ns, 0.5) / 1e6,
            tick_p99_ms: quantile(&ticks_ns, 0.99) / 1e6,
        }
    }

    /// Everything in a tick except the step: solids move, players decide,
    /// fallen characters return home.
    fn prepare(&mut self, scene: &mut StepScene, doing: Doing) {
        self.tick += 1;
        let start = Instant::now();
        scene.move_solids(self.tick);
        self.moving_s += start.elapsed().as_secs_f64();
        let now_s = f64::from(self.tick) / f64::from(TICK_HZ);
        for walker in &mut self.walkers {
            let feet = walker.character.feet;
            walker.input = match doing {
                Doing::Walking => walker.behaviour.input(now_s, feet),
                Doing::Nothing => CharacterInput::default(),
            };
            if feet.y < walker.home.feet.y - FALL_M {
                walker.character = walker.home;
            }
        }
    }

    fn step_all(&mut self, scene: &StepScene) {
        for walker in &mut self.walkers {
            walker.step(scene, &self.params);
        }
        black_box(&mut self.walkers);
    }

    fn step_each(&mut self, scene: &StepScene, steps_ns: &mut Vec<f64>) {
        for walker in &mut self.walkers {
            let start = Instant::now();
            walker.step(scene, &self.params);
            black_box(&mut walker.character);
            steps_ns.push(start.elapsed().as_nanos() as f64);
        }
    }
}

impl Walker {
    fn step(&mut self, scene: &StepScene, params: &CharacterParams) {
        step_character_with(
            &mut self.cache,
            &scene.world,
            params,
            &mut self.character,
            &self.input,
            1.0 / TICK_HZ as f32,
        );
    }
}

/// The cost of reading the clock twice.
fn clock_ns() -> f64 {
    let reads: Vec<f64> = (0..10_001)
        .map(|_| Instant::now().elapsed().as_nanos() as f64)
        .collect();
    quantile(&reads, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scene_can_be_measured() {
        let args = StepArgs {
            players: 4,
            ticks: 10,
            scene: String::new(),
            json: false,
        };
        let scenes = step_scenes::all().unwrap();
        assert!(scenes.len() >= 4);
        for scene in scenes {
            let report = measure(scene, &args).unwrap();
            assert!(report.walking.step_mean_ns > 0.0, "{}", report.scene);
            assert!(report.walking.step_p99_ns >= report.walking.step_median_ns);
        }
    }
}
