//! Rigid bodies: everything that falls, rolls, stacks and can be pushed.
//!
//! rapier moves them in the physics stage of a tick ([`step`]). It contains
//! every solid: dynamic bodies are moved by forces, solids moved by scripts are
//! kinematic, the rest are fixed, and characters are kinematic capsules.
//! Characters collide with bodies as with any other solid, through the
//! collision world, which stores the pose of each body.
//!
//! A world without dynamic bodies costs nothing: rapier receives the scene when
//! the first dynamic body is added. Sleeping bodies are skipped, and while all
//! bodies sleep rapier is not stepped ([`physics`]).

mod build;
mod characters;
mod contacts;
mod crowding;
mod ground;
mod joints;
mod physics;
mod scripts;
mod shapes;
mod step;

use std::collections::BTreeMap;

use frolic_sim::{Pose, Vec3};
use rapier3d::prelude::{ColliderHandle, RigidBody, RigidBodyHandle};

use crate::fingerprint::Fingerprint;
use characters::Capsule;
use contacts::Touches;
use ground::GroundTiles;
use physics::Physics;
use rustc_hash::FxHashMap;
use shapes::ShapeCache;

/// All rigid bodies of a world.
#[derive(Default)]
pub(crate) struct Bodies {
    physics: Physics,
    /// By entity; used for lookups only, never iterated.
    links: FxHashMap<u32, Link>,
    /// Whether the scene's solids have been added to rapier.
    built: bool,
    /// Number of dynamic bodies.
    dynamic: usize,
    /// A tick, and the number of touching pairs in it.
    pairs: (u32, usize),
    /// Bodies that were awake after the last step, in rapier's order.
    awake: Vec<Awake>,
    awake_before: Vec<Awake>,
    /// Solids that scripts moved since the last step.
    moved: Vec<u32>,
    /// Bodies that fell out of the world in this step.
    fallen: Vec<u32>,
    /// Bodies with children that moved, with their previous poses.
    families: Vec<(u32, Pose)>,
    /// One capsule per player character, by entity.
    capsules: BTreeMap<u32, Capsule>,
    /// Bodies that a character is standing on.
    laden: Vec<u32>,
    /// Bodies that were added or teleported since the last step.
    fresh: Vec<u32>,
    ground_tiles: GroundTiles,
    touches: Touches,
    shapes: ShapeCache,
    /// The fixed body that joints to the world attach to.
    ground: Option<RigidBodyHandle>,
}

/// The rapier objects of an entity.
struct Link {
    /// None for a solid that never moves.
    body: Option<RigidBodyHandle>,
    collider: ColliderHandle,
    kind: Kind,
    /// The pose at creation; a body that falls out of the world returns to it.
    home: Pose,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Fixed, or moved by scripts.
    Solid,
    /// Moved by forces.
    Dynamic,
    /// Child of a dynamic body, and part of its rigid body.
    Part,
}

/// A body that is moving.
#[derive(Clone, Copy)]
pub(crate) struct Awake {
    pub entity: u32,
    handle: RigidBodyHandle,
    /// Counts teleports.
    pub jumps: u8,
    pub position: Vec3,
}

impl Bodies {
    /// Whether physics moves this entity.
    pub fn is_dynamic(&self, entity: u32) -> bool {
        let link = self.links.get(&entity);
        link.is_some_and(|link| link.kind == Kind::Dynamic)
    }

    /// Bodies that are awake.
    pub fn awake(&self) -> &[Awake] {
        &self.awake
    }

    fn of(&self, entity: u32) -> Option<&RigidBody> {
        let link = self.links.get(&entity)?;
        self.physics.bodies.get(link.body?)
    }

    fn dynamic_mut(&mut self, entity: u32) -> Option<&mut RigidBody> {
        let link = self.links.get(&entity)?;
        let body = link.body.filter(|_| link.kind == Kind::Dynamic)?;
        self.physics.bodies.get_mut(body)
    }

    /// Records that a script moved an entity; rapier is updated at the next
    /// step.
    pub fn note_moved(&mut self, entity: u32) {
        if self.built {
            self.moved.push(entity);
        }
    }

    /// Removes an entity.
    pub fn remove(&mut self, entity: u32) {
        self.unlink(entity);
        self.touches.forget(entity);
    }

    fn unlink(&mut self, entity: u32) {
        self.remove_capsule(entity);
        let Some(link) = self.links.remove(&entity) else {
            return;
        };
        match link.body {
            Some(body) if link.kind != Kind::Part => {
                self.physics.remove_body(body);
            }
            _ => {
                self.physics.remove_collider(link.collider);
            }
        }
        if link.kind == Kind::Dynamic {
            self.dynamic -= 1;
            self.awake.retain(|awake| awake.entity != entity);
        }
    }

    /// Adds the state that determines a body's next step and is not part of its
    /// entity.
    pub fn fingerprint(&self, fingerprint: &mut Fingerprint) {
        fingerprint.word(self.dynamic as u64);
        fingerprint.word(self.moved.len() as u64);
        for awake in &self.awake {
            fingerprint.word(u64::from(awake.entity));
            if let Some(body) = self.physics.bodies.get(awake.handle) {
                let speed = [body.linvel(), body.angvel()];
                for part in speed.iter().flat_map(|speed| speed.to_array()) {
                    fingerprint.word(u64::from(part.to_bits()));
                }
                let rested = body.activation().time_since_can_sleep;
                fingerprint.word(u64::from(rested.to_bits()));
            }
        }
        for id in self.touches.watched() {
            fingerprint.word(u64::from(*id));
        }
    }
}
