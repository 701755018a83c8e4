//! One entity as the server knows it.

use std::collections::BTreeMap;
use std::rc::Rc;

use frolic_package::{Attribute, Components, Transform};
use frolic_protocol::entity::{EntityKind, SCENE_DEFINITION, flags};
use frolic_protocol::{EntityState, Value, quantize};
use frolic_sim::{Motion, Pose, Rotation, Vec3};

use crate::player::PlayerNumber;

/// Anything in the world, characters included.
pub(crate) struct Entity {
    pub id: u32,
    pub name: String,
    pub definition: u16,
    pub components: Rc<Components>,
    pub parent: Option<u32>,
    pub children: Vec<u32>,
    pub position: Vec3,
    pub rotation: Rotation,
    pub scale: Vec3,
    pub velocity: Vec3,
    pub motion: Option<Motion>,
    pub tags: Vec<String>,
    pub attributes: BTreeMap<String, Value>,
    /// The player whose character it is.
    pub player: Option<PlayerNumber>,
    /// Jumps from place to place, for clients that draw the way between.
    pub jumps: u8,
    pub destroyed: bool,
}

impl Entity {
    pub fn new(
        id: u32,
        name: String,
        definition: u16,
        components: Rc<Components>,
        transform: &Transform,
    ) -> Self {
        let pose = frolic_sim::scene::pose(transform);
        let attributes = components
            .attributes
            .iter()
            .flatten()
            .map(|(name, value)| (name.clone(), attribute_value(value)))
            .collect();
        Self {
            id,
            name,
            definition,
            parent: None,
            children: Vec::new(),
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
        }
    }

    pub fn pose(&self) -> Pose {
        Pose::from_parts(self.position, self.rotation)
    }

    pub fn is_of_scene(&self) -> bool {
        self.definition == SCENE_DEFINITION && self.player.is_none()
    }

    /// What clients know of it; characters add their own part.
    pub fn replicated(&self) -> EntityState {
        let mut state = EntityState::new(self.id, EntityKind::Thing);
        state.definition = self.definition;
        // A path is a function of the tick: its start stands for all of it,
        // so that a moving platform does not change from snapshot to snapshot.
        state.position = quantize::position(self.motion.map_or(self.position, |m| m.from));
        state.rotation = quantize::rotation(self.rotation);
        state.velocity = quantize::velocity(self.velocity);
        state.motion = self.motion;
        state.flags = flags::jumps(self.jumps);
        if self.destroyed {
            state.flags |= flags::DESTROYED;
        }
        state
    }
}

fn attribute_value(attribute: &Attribute) -> Value {
    match attribute {
        Attribute::Bool(value) => Value::Bool(*value),
        Attribute::Number(value) => Value::Number(*value),
        Attribute::String(value) => Value::String(value.clone()),
        Attribute::Vector(value) => Value::Vector(*value),
    }
}
