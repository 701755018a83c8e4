//! Where the character step is measured: the sample games, a meadow, a heap
//! of turned shapes, and a field of moving platforms.

use anyhow::{Result, anyhow, bail};
use frolic_package::{Limits, Package, Scene};
use frolic_sim::random::Random;
use frolic_sim::{CollisionWorld, Pose, Shape, Vec3};

use crate::{meadow, tools};

const MEADOW_M: f32 = 400.0;
const PLATFORMS: u32 = 50;
const TURNED_SHAPES: u32 = 400;
/// How far a moving solid sways to either side, and how long that takes.
const SWAY_M: f32 = 3.0;
const SWAY_TICKS: u32 = 120;

/// A scene with everything a crowd needs to walk about in it.
pub struct StepScene {
    pub name: String,
    pub world: CollisionWorld,
    pub solids: usize,
    pub movers: Vec<Mover>,
    /// Characters start between these corners.
    corners: [Vec3; 2],
}

/// A solid that sways to and fro.
pub struct Mover {
    entity: u32,
    pose: Pose,
}

/// All scenes, the sample games first.
pub fn all() -> Result<Vec<StepScene>> {
    let mut scenes = Vec::new();
    for (name, files) in frolic_assets::sample_games() {
        scenes.push(of_package(name, &tools::package(files)?));
    }
    let package = Package::read(&meadow::pack(MEADOW_M)?, &Limits::default())
        .map_err(|report| anyhow!("{report}"))?;
    scenes.push(of_package("meadow".to_owned(), &package));
    scenes.push(dense());
    scenes.push(platforms());
    Ok(scenes)
}

/// A package's solids. Kinematic bodies sway, in place of the scripts that move them in the game.
fn of_package(name: String, package: &Package) -> StepScene {
    let scene: &Scene = &package.scene;
    let world = frolic_sim::scene::load(scene);
    let (mut low, mut high) = (Vec3::INFINITY, Vec3::NEG_INFINITY);
    let (mut solids, mut movers) = (0, Vec::new());
    for (entity, transform) in scene.entities.iter().zip(scene.world_transforms()) {
        let place = Vec3::from(transform.position);
        (low, high) = (low.min(place), high.max(place));
        if !world.contains(entity.id) {
            continue;
        }
        solids += 1;
        if scene.resolved(entity).body.is_some() {
            movers.push(Mover {
                entity: entity.id,
                pose: frolic_sim::scene::pose(&transform),
            });
        }
    }
    StepScene {
        name,
        world,
        solids,
        movers,
        corners: [low, high],
    }
}

fn floor(half_m: f32) -> CollisionWorld {
    let mut world = CollisionWorld::new();
    let slab = Shape::Box(Vec3::new(half_m, 0.5, half_m));
    world.insert(1, slab, Pose::translation(0.0, -0.5, 0.0));
    world
}

/// Shapes of every kind, turned every way, close together.
fn dense() -> StepScene {
    let mut random = Random::new(400);
    let mut world = floor(30.0);
    for id in 0..TURNED_SHAPES {
        let (shape, turn) = (random.shape(0.3, 2.0), random.rotation());
        let place = Vec3::new(
            random.range(-28.0, 28.0),
            random.range(-1.0, 3.0),
            random.range(-28.0, 28.0),
        );
        world.insert(id + 2, shape, Pose::from_parts(place, turn));
    }
    StepScene {
        name: "dense".to_owned(),
        world,
        solids: TURNED_SHAPES as usize + 1,
        movers: Vec::new(),
        corners: [Vec3::new(-28.0, -1.0, -28.0), Vec3::new(28.0, 3.0, 28.0)],
    }
}

/// A meadow with platforms that all move in every tick.
fn platforms() -> StepScene {
    let mut random = Random::new(50);
    let mut world = floor(100.0);
    let mut movers = Vec::new();
    for id in 2..2 + PLATFORMS {
        let pose = Pose::translation(
            random.range(-50.0, 50.0),
            random.range(0.0, 1.5),
            random.range(-50.0, 50.0),
        );
        world.insert(id, Shape::Box(Vec3::new(2.0, 0.25, 2.0)), pose);
        movers.push(Mover { entity: id, pose });
    }
    StepScene {
        name: "platforms".to_owned(),
        world,
        solids: PLATFORMS as usize + 1,
        movers,
        corners: [Vec3::new(-50.0, 0.0, -50.0), Vec3::new(50.0, 2.0, 50.0)],
    }
}

impl StepScene {
    /// Puts what moves where it is at a tick.
    pub fn move_solids(&mut self, tick: u32) {
        self.world.begin_tick();
        for mover in &self.movers {
            let phase = (tick + mover.entity * 17) % (4 * SWAY_TICKS);
            let out = phase.min(4 * SWAY_TICKS - phase) as f32 / SWAY_TICKS as f32 - 1.0;
            let mut pose = mover.pose;
            pose.translation.x += out * SWAY_M;
            self.world.move_to(mover.entity, pose);
        }
    }

    /// Places to stand on all over the scene, the same in every run.
    pub fn homes(&self, count: u32) -> Result<Vec<Vec3>> {
        let [low, high] = self.corners;
        let mut random = Random::new(7);
        let mut homes = Vec::with_capacity(count as usize);
        for _ in 0..count.saturating_mul(1000) {
            if homes.len() == count as usize {
                break;
            }
            let (x, z) = (random.range(low.x, high.x), random.range(low.z, high.z));
            let above = Vec3::new(x, high.y + 10.0, z);
            let hit = self
                .world
                .raycast(above, -Vec3::Y, high.y - low.y + 20.0, &[]);
            homes.extend(
                hit.filter(|hit| hit.normal.y > 0.7)
                    .map(|hit| hit.point + Vec3::Y * 0.05),
            );
        }
        if homes.len() < count as usize {
            bail!("found no place to stand in '{}'", self.name);
        }
        Ok(homes)
    }
}
