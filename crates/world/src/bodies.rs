//! Rigid bodies: what falls, rolls, stacks and can be pushed.
//!
//! rapier moves them, in the physics stage of a tick ([`step`]). It knows all
//! that is solid: what has a dynamic body moves by forces, what scripts move
//! pushes it along, the rest stays, and characters are capsules that nothing
//! moves but themselves. Characters meet bodies as they meet any other solid,
//! through the collision world, where each body's pose is kept.
//!
//! A world in which nothing falls pays nothing: rapier is told of the scene
//! when the first dynamic body comes. A body that sleeps is not looked at, and while
//! all sleep rapier is not asked ([`physics`]).

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

use crate::replay::Fingerprint;
use characters::Capsule;
use contacts::Contacts;
use ground::GroundTiles;
use physics::Physics;
use rustc_hash::FxHashMap;
use shapes::ShapeCache;

/// All rigid bodies of a world.
#[derive(Default)]
pub(crate) struct Bodies {
    physics: Physics,
    /// By entity; only ever asked, never walked through.
    links: FxHashMap<u32, Link>,
    /// Whether rapier knows what is solid.
    built: bool,
    /// How many there are that fall.
    dynamic: usize,
    /// A tick, and the pairs that touch in it.
    pairs: (u32, usize),
    /// Those that were awake after the last step, in rapier's order.
    awake: Vec<Awake>,
    awake_before: Vec<Awake>,
    /// Solids that scripts have moved since the last step.
    moved: Vec<u32>,
    /// Bodies that fell out of the world in this step.
    fallen: Vec<u32>,
    /// Bodies that moved and have something hanging on them: where they were.
    families: Vec<(u32, Pose)>,
    /// One for each player's character, by entity.
    capsules: BTreeMap<u32, Capsule>,
    /// Bodies that somebody stands on.
    laden: Vec<u32>,
    /// Bodies that came or were put elsewhere since the last step.
    fresh: Vec<u32>,
    ground_tiles: GroundTiles,
    contacts: Contacts,
    shapes: ShapeCache,
    /// What joints to the world hang on.
    ground: Option<RigidBodyHandle>,
}

/// What rapier has of an entity.
struct Link {
    /// None for what never moves.
    body: Option<RigidBodyHandle>,
    collider: ColliderHandle,
    kind: Kind,
    /// Where it was made: what falls out of the world comes back there.
    home: Pose,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Stays, or is moved by scripts.
    Solid,
    /// Falls.
    Dynamic,
    /// Hangs on a body that falls, as a part of it.
    Part,
}

/// A body that moves.
#[derive(Clone, Copy)]
pub(crate) struct Awake {
    pub entity: u32,
    handle: RigidBodyHandle,
    /// Counts jumps from place to place.
    pub jumps: u8,
    pub position: Vec3,
}

impl Bodies {
    /// Whether physics moves this entity.
    pub fn is_dynamic(&self, entity: u32) -> bool {
        let link = self.links.get(&entity);
        link.is_some_and(|link| link.kind == Kind::Dynamic)
    }

    /// Those that are awake.
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

    /// A script moved an entity: rapier is told at the next step.
    pub fn note_moved(&mut self, entity: u32) {
        if self.built {
            self.moved.push(entity);
        }
    }

    /// Takes an entity out.
    pub fn remove(&mut self, entity: u32) {
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

    /// Adds what a body's next step depends on and its entity does not say.
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
    }
}
