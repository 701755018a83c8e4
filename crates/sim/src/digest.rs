//! A digest of simulation states, and long random runs to compute it from.
//!
//! The tests make the same run natively and in wasm: if a change makes the two
//! differ in one bit, prediction in the browser is broken.

use frolic_motion::{
    Buttons, CharacterInput, CharacterParams, CharacterState, Motion, Pose, Rotation, Vec3,
};
use frolic_scene::Triangles;
use frolic_terrain::{Action, Generator, Material, Op, Settings, Shape as Shape3, Terrain};

use crate::cache::StepCache;
use crate::character::step_character_with;
use crate::collision::CollisionWorld;
use crate::mesh::Meshes;
use crate::random::Random;
use crate::shape::Shape;

/// FNV-1a over the bits of everything written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Adds four bytes.
    pub fn word(&mut self, word: u32) {
        for byte in word.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Adds a vector, bit for bit.
    pub fn vector(&mut self, vector: Vec3) {
        vector
            .to_array()
            .iter()
            .for_each(|component| self.word(component.to_bits()));
    }

    /// Adds the state of a character.
    pub fn character(&mut self, state: &CharacterState) {
        self.vector(state.feet);
        self.vector(state.velocity);
        self.vector(state.ground_normal);
        self.word(state.ground.unwrap_or(0));
        self.word(u32::from(state.air_ticks));
    }

    /// The fingerprint.
    pub fn value(self) -> u64 {
        self.0
    }
}

/// A character that walks, runs and jumps at random, and the digest of all its
/// states.
struct Wanderer {
    random: Random,
    state: CharacterState,
    cache: StepCache,
    input: CharacterInput,
    pitch: f32,
    digest: Digest,
}

impl Wanderer {
    fn new(random: Random, feet: Vec3) -> Self {
        Self {
            random,
            state: CharacterState::at(feet),
            cache: StepCache::default(),
            input: CharacterInput::default(),
            pitch: 0.0,
            digest: Digest::default(),
        }
    }

    fn step(&mut self, world: &CollisionWorld, tick: u32) {
        let random = &mut self.random;
        if tick.is_multiple_of(20) {
            self.input = CharacterInput::new(
                random.range(-1.0, 1.0),
                random.range(-0.5, 1.5),
                random.range(-3.0, 3.0),
                self.pitch,
                Buttons(random.below(4) as u8),
            );
        }
        let params = CharacterParams::default();
        let (cache, state) = (&mut self.cache, &mut self.state);
        step_character_with(cache, world, &params, state, &self.input, 1.0 / 60.0);
    }

    /// Ends a tick: a character that is `lost`, or fell, restarts somewhere
    /// within `reach` at this height.
    fn end(&mut self, lost: bool, reach: f32, [y, z]: [f32; 2]) {
        if self.state.feet.y < -20.0 || lost {
            let x = self.random.range(-reach, reach);
            self.state = CharacterState::at(Vec3::new(x, y, z));
        }
        self.digest.character(&self.state);
    }
}

/// Walks randomly through a scene with every kind of shape, including moving
/// platforms, and returns the digest of all states.
pub fn random_walk(seed: u64, steps: u32) -> u64 {
    let mut random = Random::new(seed);
    let mut world = playground(&mut random);
    let mut wanderer = Wanderer::new(random, Vec3::new(0.0, 3.0, 0.0));
    for tick in 0..steps {
        world.begin_tick();
        for id in PLATFORMS {
            world.move_to(id, Pose::from_translation(platform(id, tick)));
        }
        wanderer.step(&world, tick);
        wanderer.end(false, 15.0, [4.0, 0.0]);
    }
    wanderer.digest.value()
}

/// The same over hills of triangles, with a moving mesh and pushable boxes.
pub fn mesh_walk(seed: u64, steps: u32) -> u64 {
    let mut random = Random::new(seed);
    let mut world = hills(&mut random);
    let mut wanderer = Wanderer::new(random, Vec3::new(0.0, 4.0, 0.0));
    let raft = PLATFORMS[0];
    for tick in 0..steps {
        world.begin_tick();
        world.move_to(raft, Pose::from_translation(platform(raft, tick)));
        wanderer.step(&world, tick);
        for touch in wanderer.cache.touches() {
            wanderer.digest.word(touch.entity);
            wanderer.digest.vector(touch.normal);
        }
        let drift = Vec3::new((tick % 300) as f32 * 0.01 - 1.5, 1.0, 2.0);
        world.move_late(2, Pose::from_translation(drift));
        wanderer.end(false, 9.0, [4.0, 0.0]);
    }
    wanderer.digest.value()
}

fn hills(random: &mut Random) -> CollisionWorld {
    const SIDE: u32 = 21;
    let corner = |index: u32, height: f32| {
        let at = |n: u32| n as f32 - 10.0;
        [at(index % SIDE), height, at(index / SIDE)]
    };
    let corners = (0..SIDE * SIDE).map(|index| corner(index, random.range(-0.5, 0.5)));
    let corners: Vec<[f32; 3]> = corners.collect();
    let faces = (0..(SIDE - 1) * (SIDE - 1)).flat_map(|i| {
        let a = i / (SIDE - 1) * SIDE + i % (SIDE - 1);
        [[a, a + SIDE, a + 1], [a + 1, a + SIDE, a + SIDE + 1]]
    });
    let mut meshes = Meshes::default();
    if let Some(triangles) = Triangles::new(corners, faces.collect()) {
        meshes.add("hills", &triangles);
    }
    let shape = |scale: Vec3, meshes: &Meshes| {
        let (id, mesh) = meshes.find("hills")?;
        let reach = mesh.reach(scale);
        Some(Shape::Mesh { id, scale, reach })
    };
    let ground = shape(Vec3::new(1.5, 1.0, 1.5), &meshes);
    let raft = shape(Vec3::new(0.2, 0.2, 0.2), &meshes);
    let mut world = CollisionWorld::with_meshes(meshes);
    if let (Some(ground), Some(raft)) = (ground, raft) {
        world.insert(1, ground, Pose::identity());
        world.insert(
            PLATFORMS[0],
            raft,
            Pose::from_translation(platform(PLATFORMS[0], 0)),
        );
    }
    world.insert(
        2,
        Shape::Box(Vec3::splat(0.6)),
        Pose::translation(0.0, 1.0, 2.0),
    );
    world.set_pushable(2, true);
    world
}

/// The same on voxel hills that change under the feet.
pub fn random_walk_on_blocks(seed: u64, steps: u32) -> u64 {
    let mut world = CollisionWorld::new();
    world.set_terrain(Some(Terrain::new(&block_hills(seed as u32))));
    let mut wanderer = Wanderer::new(Random::new(seed), Vec3::new(0.5, 60.0, 0.5));
    for tick in 0..steps {
        world.begin_tick();
        if tick % 15 == 0 {
            let op = random_op(&mut wanderer.random, wanderer.state.feet);
            let changed = world.change_terrain(&op, |terrain| terrain.apply(&op).len());
            wanderer.digest.word(changed.unwrap_or(0) as u32);
        }
        wanderer.step(&world, tick);
        let feet = wanderer.state.feet;
        wanderer.end(feet.x.abs().max(feet.z.abs()) > 60.0, 50.0, [60.0, 0.5]);
    }
    if let Some(terrain) = world.terrain() {
        wanderer.digest.word(terrain.fingerprint() as u32);
    }
    wanderer.digest.value()
}

/// The same in a deep lake with rocks: floating, diving, leaping out.
pub fn random_swim(seed: u64, steps: u32) -> u64 {
    let mut world = CollisionWorld::new();
    let mut settings = Settings::new([64, 64, 64], Generator::default());
    settings.ops = vec![
        Op::fill([-32.0, 0.0, -32.0], [32.0, 20.0, 32.0], Material::SAND),
        Op::fill([-24.0, 4.0, -24.0], [24.0, 20.0, 24.0], Material::WATER),
    ];
    world.set_terrain(Some(Terrain::new(&settings)));
    let mut wanderer = Wanderer::new(Random::new(seed), Vec3::new(0.5, 22.0, 0.5));
    for tick in 0..steps {
        world.begin_tick();
        if tick % 40 == 0 {
            let op = random_op(&mut wanderer.random, wanderer.state.feet);
            world.change_terrain(&op, |terrain| terrain.apply(&op).len());
            wanderer.pitch = wanderer.random.range(-1.5, 1.5);
        }
        wanderer.step(&world, tick);
        let feet = wanderer.state.feet;
        wanderer.end(feet.x.abs().max(feet.z.abs()) > 30.0, 20.0, [22.0, 0.5]);
    }
    wanderer.digest.value()
}

fn block_hills(seed: u32) -> Settings {
    let hills = Generator::Hills {
        seed,
        height: 24,
        amplitude: 14,
        scale: 30,
        water: 20,
        snow: 34,
        trees: 0.7,
        clearing: None,
    };
    Settings::new([128, 64, 128], hills)
}

fn random_op(random: &mut Random, around: Vec3) -> Op {
    let action = [Action::Add, Action::Subtract, Action::Paint][random.below(3) as usize];
    let mut aside = || random.range(-4.0, 4.0);
    let center = (around + Vec3::new(aside(), aside(), aside())).to_array();
    let shape = if random.below(2) == 0 {
        Shape3::Sphere {
            radius: random.range(0.3, 2.5),
        }
    } else {
        let mut side = || random.range(0.5, 4.0);
        Shape3::Box {
            size: [side(), side(), side()],
        }
    };
    Op {
        action,
        center,
        shape,
        material: match action {
            Action::Subtract => Material::AIR,
            _ => Material::STONE,
        },
    }
}

const PLATFORMS: [u32; 2] = [900, 901];

fn platform(id: u32, tick: u32) -> Vec3 {
    let (a, b) = if id == 900 {
        (Vec3::new(-8.0, 0.3, 0.0), Vec3::new(8.0, 0.3, 0.0))
    } else {
        (Vec3::new(5.0, 0.0, 5.0), Vec3::new(5.0, 3.0, 5.0))
    };
    let leg = tick / 240;
    let (from, to) = if leg.is_multiple_of(2) {
        (a, b)
    } else {
        (b, a)
    };
    Motion {
        from,
        to,
        start_tick: leg * 240,
        end_tick: leg * 240 + 240,
    }
    .position_at(tick)
}

fn playground(random: &mut Random) -> CollisionWorld {
    let mut world = CollisionWorld::new();
    let floor = Shape::Box(Vec3::new(20.0, 0.5, 20.0));
    world.insert(1, floor, Pose::translation(0.0, -0.5, 0.0));
    for id in 2..150 {
        let size = Vec3::new(
            random.range(0.2, 2.0),
            random.range(0.1, 1.0),
            random.range(0.2, 2.0),
        );
        let shape = match random.below(5) {
            0 => Shape::Sphere(size.x),
            1 => Shape::Cylinder {
                half_height: size.y,
                radius: size.x,
            },
            2 => Shape::Wedge(size),
            3 => Shape::Capsule {
                half_height: size.y,
                radius: size.x,
            },
            _ => Shape::Box(size),
        };
        let place = Vec3::new(
            random.range(-19.0, 19.0),
            random.range(0.0, 2.5),
            random.range(-19.0, 19.0),
        );
        let turn = Rotation::from_xyzw(
            random.range(-0.2, 0.2),
            random.range(-1.0, 1.0),
            random.range(-0.2, 0.2),
            1.0,
        );
        world.insert(id, shape, Pose::from_parts(place, turn.normalize()));
    }
    for id in PLATFORMS {
        let slab = Shape::Box(Vec3::new(2.0, 0.2, 2.0));
        world.insert(id, slab, Pose::from_translation(platform(id, 0)));
    }
    world
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The browser must produce exactly these numbers; see
    /// `web/src/player/core/determinism.test.ts`.
    #[test]
    fn ten_thousand_random_steps_give_the_recorded_digest() {
        let digests: Vec<String> = (1..=3)
            .map(|seed| format!("{:016x}", random_walk(seed, 10_000)))
            .collect();
        let recorded = include_str!("../digests.txt");
        assert_eq!(
            digests.join("\n"),
            recorded.trim(),
            "update digests.txt only for an intended change of movement"
        );
    }

    #[test]
    fn hills_of_triangles_give_the_recorded_digest() {
        assert_eq!(
            format!("{:016x}", mesh_walk(1, 5_000)),
            include_str!("../mesh-digest.txt").trim(),
            "update mesh-digest.txt only for an intended change of movement"
        );
    }

    #[test]
    fn random_swimming_gives_the_recorded_digest() {
        assert_eq!(
            format!("{:016x}", random_swim(1, 10_000)),
            include_str!("../digest-swim.txt").trim(),
            "update digest-swim.txt only for an intended change of movement"
        );
    }

    /// The same for voxel terrain.
    #[test]
    fn random_steps_on_blocks_give_the_recorded_digest() {
        let digests: Vec<String> = (1..=3)
            .map(|seed| format!("{:016x}", random_walk_on_blocks(seed, 5_000)))
            .collect();
        let recorded = include_str!("../digests-blocks.txt");
        assert_eq!(
            digests.join("\n"),
            recorded.trim(),
            "update digests-blocks.txt only for an intended change of movement"
        );
    }
}
