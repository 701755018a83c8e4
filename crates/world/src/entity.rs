//! One entity as the server knows it.

use std::collections::BTreeMap;
use std::rc::Rc;

use frolic_package::{Attribute, Components, Transform};
use frolic_protocol::details::{Details, Looks};
use frolic_protocol::entity::{EntityKind, SCENE_DEFINITION, flags};
use frolic_protocol::{EntityState, Value, quantize};
use frolic_sim::{Motion, Pose, Rotation, Vec3};

use crate::player::PlayerNumber;

/// Things with this tag are told to everybody, however far away.
pub(crate) const ALWAYS_RELEVANT: &str = "AlwaysRelevant";

/// Anything in the world, characters included.
pub(crate) struct Entity {
    pub id: u32,
    pub name: String,
    pub definition: u16,
    pub components: Rc<Components>,
    pub parent: Option<u32>,
    pub children: Vec<u32>,
    pub position: Vec3,
    /// Where it was made; of an entity of the scene, where the file has it.
    pub made_at: Vec3,
    pub rotation: Rotation,
    /// Where the scene file has it; none for what is not of the scene.
    pub home: Option<Pose>,
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
    /// Whether clients know more of it than the scene file says.
    pub replicated: bool,
    /// Whether it waits to be looked at for the next snapshot.
    pub touched: bool,
    /// How scripts changed its looks.
    pub looks: Looks,
    /// Counts changes of looks and attributes; 0 is as the definition says.
    pub details_count: u16,
    /// Radius of a ball around it.
    pub reach: f32,
}

impl Entity {
    /// Whether everybody is told of it, wherever they are, where the map is
    /// cut into squares of this size.
    pub fn is_everywhere(&self, square_m: f32) -> bool {
        // What is destroyed has no tags any more, but those of the scene file,
        // by which everybody believes it there.
        let tags = match self.destroyed {
            true => self.components.tag.as_deref().unwrap_or_default(),
            false => &self.tags,
        };
        self.reach > square_m * 0.5 || tags.iter().any(|tag| tag == ALWAYS_RELEVANT)
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
            .map(|(name, value)| (name.clone(), attribute_value(value)))
            .collect();
        Self {
            id,
            name,
            definition,
            parent: None,
            children: Vec::new(),
            position: pose.translation,
            made_at: pose.translation,
            rotation: pose.rotation,
            home: (definition == SCENE_DEFINITION).then_some(pose),
            scale: Vec3::from(transform.scale),
            velocity: Vec3::ZERO,
            motion: None,
            tags: components.tag.clone().unwrap_or_default(),
            attributes,
            components,
            player: None,
            jumps: 0,
            destroyed: false,
            replicated: false,
            touched: false,
            looks: Looks::default(),
            details_count: 0,
            reach: shape.map_or(0.0, |shape| shape.reach()),
        }
    }

    pub fn pose(&self) -> Pose {
        Pose::from_parts(self.position, self.rotation)
    }

    /// Whether it stays where it is until a script or a force moves it.
    pub fn rests(&self) -> bool {
        self.motion.is_none() && self.velocity == Vec3::ZERO
    }

    /// Where its solid is: as clients have it, who are told of a place and a
    /// rotation rounded, and of a path exactly. Characters are predicted
    /// against the one and moved against the other.
    pub fn solid_pose(&self) -> Pose {
        let mut pose = quantize::pose(&self.pose(), self.home.as_ref());
        if !self.rests() {
            pose.translation = self.position;
        }
        pose
    }

    /// Everything that its definition does not say.
    pub fn details(&self) -> Details {
        Details {
            attributes: self.attributes.clone(),
            looks: self.looks,
        }
    }

    /// Looks or attributes changed. Nothing ever counts as unchanged again.
    pub fn note_details(&mut self) {
        self.details_count = self.details_count.checked_add(1).unwrap_or(1);
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
        state.details = self.details_count;
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
