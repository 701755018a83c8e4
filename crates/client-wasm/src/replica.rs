//! The replicated world for client scripts: entities and players, as of the last
//! frame.

use frolic_protocol::PlayerInfo;
use frolic_scene::degrees_from_quaternion;
use frolic_sim::Vec3;
use wasm_bindgen::prelude::*;

use crate::layout::vector;
use crate::{ClientCore, to_json};

// Unknown entities have no properties: vectors are empty, and texts are missing.
#[wasm_bindgen]
impl ClientCore {
    /// Whether an entity exists as far as this client knows.
    pub fn entity_exists(&self, id: u32) -> bool {
        self.client.queries().entity(id).is_some()
    }

    /// One of its vectors, by a constant `VECTOR`: three floats.
    pub fn entity_vector(&self, id: u32, vector: u8) -> Vec<f32> {
        let Some(entity) = self.client.queries().entity(id) else {
            return Vec::new();
        };
        let vector = match vector {
            vector::POSITION => entity.position().to_array(),
            vector::VELOCITY => entity.velocity().to_array(),
            vector::ROTATION => degrees_from_quaternion(entity.rotation().to_array()),
            _ => return Vec::new(),
        };
        vector.to_vec()
    }

    /// The prompt of the entity that the player can interact with while looking in a
    /// direction, in radians.
    pub fn prompt(&self, yaw: f32, pitch: f32) -> Option<String> {
        Some(self.client.queries().interaction(yaw, pitch)?.prompt)
    }

    /// Its name.
    pub fn entity_name(&self, id: u32) -> Option<String> {
        Some(self.client.queries().entity(id)?.name().to_owned())
    }

    /// Its colour; none also when nothing gives it one.
    pub fn entity_color(&self, id: u32) -> Option<String> {
        let color = self.client.queries().entity(id)?.color()?;
        Some(color.to_string())
    }

    /// Its tags.
    pub fn entity_tags(&self, id: u32) -> Vec<String> {
        let entity = self.client.queries().entity(id);
        entity.map_or(Vec::new(), |entity| entity.tags().to_vec())
    }

    /// The pattern of its surface.
    pub fn entity_pattern(&self, id: u32) -> Option<String> {
        Some(
            self.client
                .queries()
                .entity(id)?
                .pattern()
                .name()
                .to_owned(),
        )
    }

    /// An attribute as JSON of a `WireValue`.
    pub fn entity_attribute(&self, id: u32, name: &str) -> Option<String> {
        let value = self.client.queries().entity(id)?.attribute(name)?;
        Some(value.to_json().to_string())
    }

    /// What an NPC is up to, as in a frame; 0 for anything else.
    pub fn entity_mood(&self, id: u32) -> u8 {
        self.client
            .queries()
            .entity(id)
            .map_or(0, |entity| entity.mood().0)
    }

    /// Entities with this name or tag, in order of ids.
    pub fn find_entities(&self, word: &str) -> Vec<u32> {
        self.client.queries().find(word)
    }

    /// Entities within a sphere, in order of ids.
    pub fn entities_in_radius(&self, x: f32, y: f32, z: f32, radius: f32) -> Vec<u32> {
        self.client.queries().in_radius(Vec3::new(x, y, z), radius)
    }

    /// NPCs in view, in order of ids.
    pub fn npcs(&self) -> Vec<u32> {
        self.client.queries().npcs()
    }

    /// All players as JSON of `PlayerInfo[]`, disconnected ones among them, in order
    /// of numbers.
    pub fn players(&self) -> String {
        to_json(&self.client.queries().players())
    }

    /// A player as JSON of `PlayerInfo`, also one who left not long ago.
    pub fn player(&self, number: u32) -> Option<String> {
        let player: &PlayerInfo = self.client.queries().player(number)?;
        Some(to_json(player))
    }

    /// Number of the player whose character this is, or 0.
    pub fn player_of(&self, entity: u32) -> u32 {
        self.client
            .queries()
            .player_of(entity)
            .map_or(0, |player| player.number)
    }
}
