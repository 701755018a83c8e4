//! Entities as they are drawn in one frame.

use frolic_protocol::npc::Mood;
use frolic_sim::{Rotation, Vec3};

/// What an entity is drawn as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrawnKind {
    /// A player's character.
    Character,
    /// Anything else.
    Thing,
}

/// One entity, ready to draw.
#[derive(Clone, Copy, Debug)]
pub struct Drawn {
    /// Its network id.
    pub id: u32,
    /// What it is.
    pub kind: DrawnKind,
    /// 0 for an entity of the scene, else its definition.
    pub definition: u16,
    /// Whether a character stands on the ground.
    pub grounded: bool,
    /// Whether a character lies dead.
    pub dead: bool,
    /// Whether it is this client's own character.
    pub own: bool,
    /// Its position; of a character, its feet.
    pub position: Vec3,
    /// Its orientation.
    pub rotation: Rotation,
    /// Metres per second.
    pub velocity: Vec3,
    /// Where a character looks, in radians.
    pub yaw: f32,
    /// Up and down, in radians.
    pub pitch: f32,
    /// The mood of an NPC.
    pub mood: Mood,
}
