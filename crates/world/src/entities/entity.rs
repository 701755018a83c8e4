//! One entity on the server.

use std::collections::BTreeMap;
use std::rc::Rc;

use frolic_protocol::details::{Details, Looks};
use frolic_protocol::entity::{EntityKind, SCENE_DEFINITION, flags};
use frolic_protocol::{EntityState, Value, quantize};
use frolic_scene::{Components, Transform};
use frolic_sim::{Motion, Pose, Rotation, Vec3};

use crate::player::PlayerNumber;

/// Entities with this tag are replicated to all clients at any distance.
pub(crate) const ALWAYS_RELEVANT: &str = "AlwaysRelevant";

/// Where an entity comes from.
pub(crate) struct Origin {
    /// Where it was created; for an entity of the scene, its place in the scene
    /// file.
    pub place: Vec3,
    /// The pose in the scene file; none for an entity that is not of the scene.
    pub home: Option<Pose>,
}

/// An entity's part of the bookkeeping of replication.
#[derive(Default)]
pub(crate) struct Replicated {
    /// Whether its state differs from the scene file, so that clients must
    /// receive it.
    pub differs: bool,
    /// Whether it is queued for the next snapshot.
    pub touched: bool,
    /// Counts changes of appearance and attributes; 0 means as in the
    /// definition.
    pub details_count: u16,
}

/// Any entity in the world, including characters.
pub(crate) struct Entity {
    pub id: u32,
    pub name: String,
    pub definition: u16,
    pub components: Rc<Components>,
    pub parent: Option<u32>,
    pub children: Vec<u32>,
    pub origin: Origin,
    pub position: Vec3,
    pub rotation: Rotation,
    pub scale: Vec3,
    pub velocity: Vec3,
    pub motion: Option<Motion>,
    pub tags: Vec<String>,
    pub attributes: BTreeMap<String, Value>,
    /// The player whose character it is.
    pub player: Option<PlayerNumber>,
    /// Counts teleports, between which clients do not interpolate.
    pub jumps: u8,
    pub destroyed: bool,
    pub replicated: Replicated,
    /// Changes of its appearance by scripts.
    pub looks: Looks,
    /// Radius of its bounding sphere.
    pub reach: f32,
}

impl Entity {
    /// Whether it is replicated to all clients at any distance, with cells of
    /// this size.
    pub fn is_everywhere(&self, cell_m: f32) -> bool {
        // A destroyed entity has no tags any more except those of the scene
        // file, because of which all clients believe that it exists.
        let tags = match self.destroyed {
            true => self.components.tag.as_deref().unwrap_or_default(),
            false => &self.tags,
        };
        self.reach > cell_m * 0.5 || tags.iter().any(|tag| tag == ALWAYS_RELEVANT)
    }

    pub fn new(
        id: u32,
        name: String,
        definition: u16,
        components: Rc<Components>,
        transform: &Transform,
    ) -> Self {
        let pose = frolic_sim::scene::pose(transform);
        let shape = frolic_sim::scene::solid_shape(&components, transform);
        let attributes = components
            .attributes
            .iter()
            .flatten()
            .map(|(name, value)| (name.clone(), Value::from(value)))
            .collect();
        Self {
            id,
            name,
            definition,
            parent: None,
            children: Vec::new(),
            origin: Origin {
                place: pose.translation,
                home: (definition == SCENE_DEFINITION).then_some(pose),
            },
            position: pose.translation,
            rotation: pose.rotation,
            scale: Vec3::from(transform.scale),
            velocity: Vec3::ZERO,
            motion: None,
            tags: components.tag.clone().unwrap_or_default(),
            attributes,
            components,
            player: None,
            jumps: 0,
            destroyed: false,
            replicated: Replicated::default(),
            looks: Looks::default(),
            reach: shape.map_or(0.0, |shape| shape.reach()),
        }
    }

    pub fn pose(&self) -> Pose {
        Pose::from_parts(self.position, self.rotation)
    }

    /// Whether it stays in place until a script or a force moves it.
    pub fn rests(&self) -> bool {
        self.motion.is_none() && self.velocity == Vec3::ZERO
    }

    /// The pose of its solid as clients have it: position and rotation are
    /// replicated rounded, paths exactly. Characters are predicted against the
    /// client's pose and moved against the server's, so the two must be equal.
    pub fn solid_pose(&self) -> Pose {
        let mut pose = quantize::pose(&self.pose(), self.origin.home.as_ref());
        if !self.rests() {
            pose.translation = self.position;
        }
        pose
    }

    /// All replicated state that is not in its definition.
    pub fn details(&self) -> Details {
        Details {
            attributes: self.attributes.clone(),
            looks: self.looks,
        }
    }

    /// Records a change of appearance or attributes. The count never returns to
    /// 0.
    pub fn note_details(&mut self) {
        let count = &mut self.replicated.details_count;
        *count = count.checked_add(1).unwrap_or(1);
    }

    pub fn is_of_scene(&self) -> bool {
        self.definition == SCENE_DEFINITION && self.player.is_none()
    }

    /// Its replicated state; characters add their own part.
    pub fn replicated(&self) -> EntityState {
        let mut state = EntityState::new(self.id, EntityKind::Thing);
        state.definition = self.definition;
        // A path is a function of the tick. Only its start is replicated, so
        // that a moving platform does not change from snapshot to snapshot.
        state.position = quantize::position(self.motion.map_or(self.position, |m| m.from));
        state.rotation = quantize::rotation(self.rotation);
        state.velocity = quantize::velocity(self.velocity);
        state.motion = self.motion;
        state.details = self.replicated.details_count;
        state.flags = flags::jumps(self.jumps);
        if self.destroyed {
            state.flags |= flags::DESTROYED;
        }
        state
    }
}
