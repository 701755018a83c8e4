//! Structures: entities that outlive the process of their world.
//!
//! A structure exists at once for scripts and collisions, but its creation and
//! removal are replicated only after they are stored: no client sees what a
//! crash could undo.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use frolic_fleet_api::ops::{Structure, WorldOp};
use frolic_scene::Transform;
use frolic_scene::quaternion_from_degrees;
use frolic_script::{BuildRequest, Built, EngineError, EntityId};
use frolic_sim::Rotation;

use crate::player::PlayerNumber;
use crate::state::{SPAWNED_MAX, WorldState};

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
    /// Entities whose change must not be replicated before an operation is
    /// stored.
    waiting: VecDeque<(u64, EntityId)>,
    hidden: BTreeSet<EntityId>,
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
            waiting: VecDeque::new(),
            hidden: BTreeSet::new(),
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

    /// Whether changes of this entity must not be replicated yet.
    pub fn hides(&self, entity: EntityId) -> bool {
        !self.hidden.is_empty() && self.hidden.contains(&entity)
    }

    /// How many were built in the current second, for the fingerprint.
    pub fn rate(&self) -> (u32, u32) {
        self.rate
    }

    /// Entities whose change is not replicated yet.
    pub fn waiting(&self) -> impl Iterator<Item = (u64, EntityId)> {
        self.waiting.iter().copied()
    }

    /// Removes all structures; returns their entities.
    pub fn forget_all(&mut self) -> Vec<EntityId> {
        self.by_entity.clear();
        let all = std::mem::take(&mut self.all).into_values();
        all.filter_map(|standing| standing.entity).collect()
    }

    /// Hides an operation on a structure from clients until it is stored.
    fn hide(&mut self, until: u64, entity: EntityId) {
        self.changed = until;
        self.hidden.insert(entity);
        self.waiting.push_back((until, entity));
    }

    fn take_turn(&mut self, second: u32) -> bool {
        if self.rate.0 != second {
            self.rate = (second, 0);
        }
        let free = self.rate.1 < BUILDS_PER_SECOND;
        self.rate.1 += u32::from(free);
        free
    }
}

impl WorldState {
    /// Builds a persistent structure.
    pub fn build(&mut self, request: &BuildRequest) -> Result<Built, EngineError> {
        let prefab = &request.prefab;
        let found = self.definitions.prefab(prefab);
        let (definition, components) =
            found.ok_or_else(|| EngineError::NoSuchPrefab(prefab.clone()))?;
        self.room_for_op()?;
        if self.structures.all.len() >= STRUCTURES_MAX {
            let message = format!("{STRUCTURES_MAX} structures in one world; destroy some first");
            return Err(EngineError::Limit(message));
        }
        if !self.structures.take_turn(self.tick / self.tick_hz.max(1)) {
            let message = format!("{BUILDS_PER_SECOND} structures built in one second");
            return Err(EngineError::Limit(message));
        }
        let own = components.transform.unwrap_or_default();
        let structure = Structure {
            number: self.structures.next,
            prefab: prefab.clone(),
            position: request.position,
            rotation: request
                .rotation
                .map_or(own.rotation, quaternion_from_degrees),
            owner: request.owner.clone(),
        };
        let transform = placed(&structure, own);
        let scripts = components.script.iter().map(|s| s.path.clone()).collect();
        let entity = self
            .spawn_at(prefab.clone(), definition, components, transform)
            .ok_or_else(|| EngineError::Limit(format!("{SPAWNED_MAX} spawned entities")))?;
        self.structures.next += 1;
        self.stand(structure.clone(), Some(entity));
        let by = request.owner.clone();
        let seq = self.log_op(by, WorldOp::Build(structure), |_| Vec::new());
        self.hide_structure(seq, entity);
        Ok(Built {
            entity,
            scripts,
            seq,
        })
    }

    /// Checks whether there is capacity for one more operation.
    ///
    /// # Errors
    /// If too many wait to be stored.
    pub fn room_for_op(&self) -> Result<(), EngineError> {
        if self.history.has_room() {
            return Ok(());
        }
        let message = "too many changes of this world wait to be stored; try again in a moment";
        Err(EngineError::Limit(message.to_owned()))
    }

    /// Records the removal of an entity that is about to be destroyed, if it is
    /// a structure.
    pub fn note_unbuilt(&mut self, entity: EntityId) {
        let Some(number) = self.structures.by_entity.remove(&entity) else {
            return;
        };
        let structure = number;
        self.structures.all.remove(&number);
        let seq = self.log_op(None, WorldOp::Unbuild { structure }, |_| Vec::new());
        self.hide_structure(seq, entity);
    }

    /// Hides an operation on a structure from clients until it is stored. The
    /// entity may be marked for replication already, because it was just
    /// spawned, or moved before it was destroyed; the next collection would
    /// find it there, or removed.
    pub fn hide_structure(&mut self, until: u64, entity: EntityId) {
        self.structures.hide(until, entity);
        let touched = self.entities.get_mut(&entity).map(|e| &mut e.touched);
        if touched.is_some_and(std::mem::take)
            && let Some(at) = self.touched.iter().rposition(|id| *id == entity)
        {
            self.touched.remove(at);
        }
    }

    /// Releases the changes of operations that are stored up to this number.
    pub fn show_structures(&mut self, persisted: u64) {
        let structures = &mut self.structures;
        let due = structures.waiting.iter();
        let due = due.take_while(|(seq, _)| *seq <= persisted).count();
        let shown: Vec<EntityId> = structures.waiting.drain(..due).map(|(_, id)| id).collect();
        for id in shown {
            if self
                .structures
                .waiting
                .iter()
                .any(|(_, other)| *other == id)
            {
                continue;
            }
            self.structures.hidden.remove(&id);
            if self.entities.contains_key(&id) {
                self.replicate(id);
            } else {
                // The next collection finds it removed.
                self.touched.push(id);
            }
        }
    }

    /// Updates the owner of a player's structures after they joined or left.
    pub fn note_owner(&mut self, id: &str) {
        let mut online = self.players.values().filter(|player| player.online);
        let number = online.find(|player| player.id == id).map(|p| p.number);
        match number {
            Some(number) => self.structures.present.insert(id.to_owned(), number),
            None => self.structures.present.remove(id),
        };
        for entity in self.structure_entities(Some(id)) {
            self.replicate(entity);
        }
    }

    /// Entities of the structures of an owner, or of all, as far as they exist.
    pub fn structure_entities(&self, owner: Option<&str>) -> Vec<EntityId> {
        let all = self.structures.all.values();
        all.filter(|standing| {
            owner.is_none_or(|owner| standing.structure.owner.as_deref() == Some(owner))
        })
        .filter_map(|standing| standing.entity)
        .collect()
    }

    /// Restores the structures of an earlier process of this world. Returns the
    /// prefabs that the game no longer has.
    pub fn restore_structures(
        &mut self,
        next: u64,
        seq: u64,
        all: impl IntoIterator<Item = Structure>,
    ) -> BTreeSet<String> {
        let mut unknown = BTreeSet::new();
        for structure in all {
            let entity = self.stand_up(&structure);
            if entity.is_none() {
                unknown.insert(structure.prefab.clone());
            }
            self.structures.next = self.structures.next.max(structure.number + 1);
            self.stand(structure, entity);
        }
        self.structures.next = self.structures.next.max(next);
        self.structures.changed = seq;
        unknown
    }

    fn stand_up(&mut self, structure: &Structure) -> Option<EntityId> {
        let (definition, components) = self.definitions.prefab(&structure.prefab)?;
        let own = components.transform.unwrap_or_default();
        let transform = placed(structure, own);
        let sound = transform.position.iter().chain(&transform.rotation);
        if !sound.into_iter().all(|part| part.is_finite()) {
            return None;
        }
        self.spawn_at(structure.prefab.clone(), definition, components, transform)
    }

    fn stand(&mut self, structure: Structure, entity: Option<EntityId>) {
        let number = structure.number;
        if let Some(entity) = entity {
            self.structures.by_entity.insert(entity, number);
        }
        let standing = Standing { structure, entity };
        self.structures.all.insert(number, standing);
    }
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
