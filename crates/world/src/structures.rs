//! Structures: entities that outlive the process of their world.
//!
//! A structure exists at once for scripts and collisions, but its creation and
//! removal are replicated only after they are stored: no client sees what a
//! crash could undo.

use std::collections::{BTreeMap, BTreeSet};

use frolic_fleet_api::ops::{Structure, WorldOp};
use frolic_scene::Transform;
use frolic_scene::quaternion_from_degrees;
use frolic_script::{BuildRequest, Built, EngineError, EntityId};
use frolic_sim::Rotation;

use crate::definitions::Definitions;
use crate::entities::SPAWNED_MAX;
use crate::history::{History, Publication};
use crate::player::PlayerNumber;
use crate::space::Space;

/// Structures of one world.
pub(crate) const STRUCTURES_MAX: usize = 10_000;
/// Structures built in one second, all players and scripts together.
const BUILDS_PER_SECOND: u32 = 200;

/// The persistent structures of a world.
pub(crate) struct Structures {
    /// The number of the next one.
    next: u64,
    all: BTreeMap<u64, Standing>,
    by_entity: BTreeMap<EntityId, u64>,
    /// Players in the world by persistent id; a structure is always replicated
    /// to its owner.
    present: BTreeMap<String, PlayerNumber>,
    /// The current second, and how many were built in it.
    rate: (u32, u32),
    /// The last operation on any of them.
    changed: u64,
}

struct Standing {
    structure: Structure,
    /// None if the game no longer has the prefab. The structure stays in the
    /// list, because a later version of the game may have it again.
    entity: Option<EntityId>,
}

impl Default for Structures {
    fn default() -> Self {
        Self {
            next: 1,
            all: BTreeMap::new(),
            by_entity: BTreeMap::new(),
            present: BTreeMap::new(),
            rate: (0, 0),
            changed: 0,
        }
    }
}

impl Structures {
    /// The number of the next one.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The last operation on any of them.
    pub fn changed(&self) -> u64 {
        self.changed
    }

    /// All structures, by number.
    pub fn all(&self) -> impl Iterator<Item = &Structure> {
        self.all.values().map(|standing| &standing.structure)
    }

    /// All structures with their entities.
    pub fn standing(&self) -> impl Iterator<Item = (&Structure, Option<EntityId>)> {
        let all = self.all.values();
        all.map(|standing| (&standing.structure, standing.entity))
    }

    /// The structure that an entity is.
    pub fn of_entity(&self, entity: EntityId) -> Option<&Structure> {
        let number = self.by_entity.get(&entity)?;
        self.all.get(number).map(|standing| &standing.structure)
    }

    /// The owner of an entity, if they are in the world.
    pub fn present_owner(&self, entity: EntityId) -> Option<PlayerNumber> {
        let owner = self.of_entity(entity)?.owner.as_ref()?;
        self.present.get(owner).copied()
    }

    /// How many were built in the current second, for the fingerprint.
    pub fn rate(&self) -> (u32, u32) {
        self.rate
    }

    /// Removes all structures; returns their entities.
    pub fn forget_all(&mut self) -> Vec<EntityId> {
        self.by_entity.clear();
        let all = std::mem::take(&mut self.all).into_values();
        all.filter_map(|standing| standing.entity).collect()
    }

    /// Hides an operation on a structure from clients until it is stored.
    pub fn hide(&mut self, space: &mut Space, history: &mut History, until: u64, entity: EntityId) {
        self.changed = until;
        history.publish_after(until, Publication::Structure(entity));
        space.entities.hold_back(entity);
    }

    fn take_turn(&mut self, second: u32) -> bool {
        if self.rate.0 != second {
            self.rate = (second, 0);
        }
        let free = self.rate.1 < BUILDS_PER_SECOND;
        self.rate.1 += u32::from(free);
        free
    }

    /// Builds a persistent structure.
    pub fn build(
        &mut self,
        space: &mut Space,
        history: &mut History,
        definitions: &Definitions,
        request: &BuildRequest,
    ) -> Result<Built, EngineError> {
        let prefab = &request.prefab;
        let found = definitions.prefab(prefab);
        let (definition, components) =
            found.ok_or_else(|| EngineError::NoSuchPrefab(prefab.clone()))?;
        history.check_room()?;
        if self.all.len() >= STRUCTURES_MAX {
            let message = format!("{STRUCTURES_MAX} structures in one world; destroy some first");
            return Err(EngineError::Limit(message));
        }
        if !self.take_turn(space.tick / space.tick_hz.max(1)) {
            let message = format!("{BUILDS_PER_SECOND} structures built in one second");
            return Err(EngineError::Limit(message));
        }
        let own = components.transform.unwrap_or_default();
        let structure = Structure {
            number: self.next,
            prefab: prefab.clone(),
            position: request.position,
            rotation: request
                .rotation
                .map_or(own.rotation, quaternion_from_degrees),
            owner: request.owner.clone(),
        };
        let transform = placed(&structure, own);
        let scripts = components.script.iter().map(|s| s.path.clone()).collect();
        let entity = space
            .spawn(prefab.clone(), definition, components, &transform)
            .ok_or_else(|| EngineError::Limit(format!("{SPAWNED_MAX} spawned entities")))?;
        self.next += 1;
        self.stand(structure.clone(), Some(entity));
        let by = request.owner.clone();
        let seq = history.log(by, WorldOp::Build(structure));
        self.hide(space, history, seq, entity);
        Ok(Built {
            entity,
            scripts,
            seq,
        })
    }

    /// Records the removal of an entity, if it is a structure.
    pub fn note_removed(&mut self, space: &mut Space, history: &mut History, entity: EntityId) {
        if let Some(structure) = self.by_entity.remove(&entity) {
            self.all.remove(&structure);
            let seq = history.log(None, WorldOp::Unbuild { structure });
            self.hide(space, history, seq, entity);
        }
    }

    /// Updates the owner of a player's structures after they joined or left.
    pub fn note_owner(&mut self, space: &mut Space, id: &str) {
        let number = space.online().find(|player| player.id == id);
        match number.map(|player| player.number) {
            Some(number) => self.present.insert(id.to_owned(), number),
            None => self.present.remove(id),
        };
        for entity in self.entities_of(Some(id)) {
            space.entities.replicate(entity);
        }
    }

    /// Entities of the structures of an owner, or of all, as far as they exist.
    pub fn entities_of(&self, owner: Option<&str>) -> Vec<EntityId> {
        let all = self.all.values();
        all.filter(|standing| {
            owner.is_none_or(|owner| standing.structure.owner.as_deref() == Some(owner))
        })
        .filter_map(|standing| standing.entity)
        .collect()
    }

    /// Restores the structures of an earlier process of this world. Returns the
    /// prefabs that the game no longer has.
    pub fn restore(
        &mut self,
        space: &mut Space,
        definitions: &Definitions,
        (next, seq): (u64, u64),
        all: impl IntoIterator<Item = Structure>,
    ) -> BTreeSet<String> {
        let mut unknown = BTreeSet::new();
        for structure in all {
            let entity = stand_up(space, definitions, &structure);
            if entity.is_none() {
                unknown.insert(structure.prefab.clone());
            }
            self.next = self.next.max(structure.number + 1);
            self.stand(structure, entity);
        }
        self.next = self.next.max(next);
        self.changed = seq;
        unknown
    }

    fn stand(&mut self, structure: Structure, entity: Option<EntityId>) {
        let number = structure.number;
        if let Some(entity) = entity {
            self.by_entity.insert(entity, number);
        }
        let standing = Standing { structure, entity };
        self.all.insert(number, standing);
    }
}

fn stand_up(
    space: &mut Space,
    definitions: &Definitions,
    structure: &Structure,
) -> Option<EntityId> {
    let (definition, components) = definitions.prefab(&structure.prefab)?;
    let own = components.transform.unwrap_or_default();
    let transform = placed(structure, own);
    let sound = transform.position.iter().chain(&transform.rotation);
    if !sound.into_iter().all(|part| part.is_finite()) {
        return None;
    }
    space.spawn(structure.prefab.clone(), definition, components, &transform)
}

/// The transform of a structure; its prefab defines the rest.
fn placed(structure: &Structure, own: Transform) -> Transform {
    let turned = Rotation::from_array(structure.rotation);
    let rotation = if turned.length_squared() > 1e-6 {
        turned.normalize().to_array()
    } else {
        own.rotation
    };
    Transform {
        position: structure.position,
        rotation,
        ..own
    }
}
