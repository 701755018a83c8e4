//! What tests and benchmarks observe of a world.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use frolic_protocol::Value;
use frolic_protocol::details::Looks;
use frolic_scene::Components;
use frolic_script::EntityId;
use frolic_sim::{Rotation, Vec3};

use super::World;
use crate::npcs::NpcReport;

/// An entity at one moment.
#[derive(Clone, Debug)]
pub struct EntityRecord {
    /// Its name.
    pub name: String,
    /// Its components, merged with those of its prefab.
    pub components: Rc<Components>,
    /// Where it is.
    pub position: Vec3,
    /// Its orientation.
    pub rotation: Rotation,
    /// Its scale.
    pub scale: Vec3,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its attributes.
    pub attributes: BTreeMap<String, Value>,
    /// Changes of its appearance by scripts.
    pub looks: Looks,
    /// Whether it stays in place until a script or a force moves it.
    pub rests: bool,
    /// Whether it was destroyed.
    pub destroyed: bool,
}

impl World {
    /// An entity as it is now.
    pub fn entity(&self, id: EntityId) -> Option<EntityRecord> {
        let state = self.state.borrow();
        let entity = state.space.entities.get(id)?;
        Some(EntityRecord {
            name: entity.name.clone(),
            components: Rc::clone(&entity.components),
            position: entity.position,
            rotation: entity.rotation,
            scale: entity.scale,
            tags: entity.tags.clone(),
            attributes: entity.attributes.clone(),
            looks: entity.looks,
            rests: entity.rests(),
            destroyed: entity.destroyed,
        })
    }

    /// The bounding box of an entity's solid: its lowest and highest corner.
    /// None without a solid.
    pub fn bounds_of(&self, entity: EntityId) -> Option<(Vec3, Vec3)> {
        self.state.borrow().space.collision.bounds_of(entity)
    }

    /// All NPCs, in order of their ids.
    pub fn npcs(&self) -> Vec<NpcReport> {
        let state = self.state.borrow();
        state.npcs.reports(&state.space)
    }

    /// Rays that NPCs cast in the last tick.
    pub fn npc_rays(&self) -> u32 {
        self.state.borrow().npcs.rays()
    }

    /// Names of the persistent structures, by number.
    pub fn structures(&self) -> BTreeSet<(u64, String)> {
        let state = self.state.borrow();
        let all = state.structures.all();
        all.map(|one| (one.number, one.prefab.clone())).collect()
    }
}
