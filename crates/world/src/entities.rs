//! All entities of a world.
//!
//! [`EntityStore`] is the only place that changes an entity. It maintains the
//! indices itself, and records each change for those who derive state from
//! entities: a [`Change`] for systems, a mark for replication, and the place
//! that was left for lag compensation.

mod entity;
mod index;
mod journal;
mod past;

use std::collections::{BTreeMap, BTreeSet};

use frolic_protocol::Value;
use frolic_protocol::details::Looks;
use frolic_scene::{ATTRIBUTES_MAX, SceneEntity, TAGS_MAX};
use frolic_script::EngineError;
use frolic_sim::{CharacterState, Motion, Pose, Rotation, Vec3};

use entity::ALWAYS_RELEVANT;
pub(crate) use entity::Entity;
pub(crate) use journal::Change;
pub(crate) use past::{Past, Place};

use crate::gait::Gait;
use index::Index;
use journal::Journal;

/// Limit of concurrent entities spawned by scripts.
pub(crate) const SPAWNED_MAX: usize = 20_000;
/// NPCs of one world.
pub(crate) const NPCS_MAX: usize = 1000;

/// All entities, with the indices over them and the journal of their changes.
pub(crate) struct EntityStore {
    all: BTreeMap<u32, Entity>,
    index: Index,
    journal: Journal,
    past: Past,
    /// Entities with a motion or a velocity.
    moving: BTreeSet<u32>,
    npcs: BTreeSet<u32>,
    spawn_points: Vec<u32>,
    /// Entities whose changes must not be replicated yet.
    held_back: BTreeSet<u32>,
    next_id: u32,
    spawned: usize,
}

/// An entity that was put somewhere else.
pub(crate) struct Placed {
    /// Where it was.
    pub before: Pose,
    /// The pose of its solid now.
    pub solid: Pose,
    pub children: Vec<u32>,
}

/// An entity that physics moved.
pub(crate) struct Drifted {
    pub before: Pose,
    pub jumps: u8,
    pub has_children: bool,
}

impl Default for EntityStore {
    fn default() -> Self {
        Self {
            all: BTreeMap::new(),
            index: Index::default(),
            journal: Journal::default(),
            past: Past::default(),
            moving: BTreeSet::new(),
            npcs: BTreeSet::new(),
            spawn_points: Vec::new(),
            held_back: BTreeSet::new(),
            next_id: SceneEntity::ID_MAX + 1,
            spawned: 0,
        }
    }
}

/// Queries.
impl EntityStore {
    /// The entity with that id, even if it is destroyed.
    pub fn get(&self, id: u32) -> Option<&Entity> {
        self.all.get(&id)
    }

    /// The entity with that id, unless it is destroyed.
    pub fn alive(&self, id: u32) -> Option<&Entity> {
        self.all.get(&id).filter(|entity| !entity.destroyed)
    }

    /// All entities in order of ids, including destroyed ones of the scene.
    pub fn iter(&self) -> impl Iterator<Item = &Entity> {
        self.all.values()
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Indices by name, tag, type and place.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Where entities were in the last ticks.
    pub fn past(&self) -> &Past {
        &self.past
    }

    /// Entities with a motion or a velocity, in order of ids.
    pub fn moving(&self) -> &BTreeSet<u32> {
        &self.moving
    }

    /// Entities that are NPCs, in order of ids.
    pub fn npcs(&self) -> &BTreeSet<u32> {
        &self.npcs
    }

    /// Whether there is capacity for one more NPC.
    pub fn has_room_for_npc(&self) -> bool {
        self.npcs.len() < NPCS_MAX
    }

    /// Entities with a spawn point, in order of creation.
    pub fn spawn_points(&self) -> &[u32] {
        &self.spawn_points
    }

    /// How many entities scripts spawned that still exist.
    pub fn spawned(&self) -> usize {
        self.spawned
    }

    /// The id of the next entity.
    pub fn next_id(&self) -> u32 {
        self.next_id
    }

    /// The place of the first entity with a name or tag.
    pub fn place_of(&self, name_or_tag: &str) -> Option<Vec3> {
        let id = *self.index.named(name_or_tag).first()?;
        Some(self.alive(id)?.position)
    }

    /// Where the character of an entity is.
    pub fn feet(&self, id: u32) -> Vec3 {
        self.get(id).map_or(Vec3::ZERO, |entity| entity.position)
    }

    /// Entities whose place is within a sphere, in order of ids.
    pub fn near(&self, center: Vec3, radius: f32) -> Vec<u32> {
        let near = |place: Vec3| (place - center).length_squared() <= radius * radius;
        let mut found = self.index.around(center, radius);
        found.retain(|id| self.alive(*id).is_some_and(|entity| near(entity.position)));
        found
    }
}

/// Creation and removal.
impl EntityStore {
    /// An unused id. Ids wrap around to the first one after the scene's.
    pub fn fresh_id(&mut self) -> u32 {
        loop {
            let id = self.next_id;
            self.next_id = id.checked_add(1).unwrap_or(SceneEntity::ID_MAX + 1);
            if !self.all.contains_key(&id) {
                return id;
            }
        }
    }

    #[cfg(test)]
    pub fn set_next_id(&mut self, id: u32) {
        self.next_id = id;
    }

    /// Adds an entity.
    pub fn insert(&mut self, entity: Entity) {
        let (id, components) = (entity.id, &entity.components);
        if components.spawn_point.is_some() {
            self.spawn_points.push(id);
        }
        if components.npc.is_some() && self.has_room_for_npc() {
            self.npcs.insert(id);
        }
        let character = entity.player.map(|_| index::CHARACTER);
        let types = index::types(components).chain(character);
        self.index.insert(id, types, entity.position);
        self.index.name(id, &entity.name);
        for tag in &entity.tags {
            self.index.name(id, tag);
        }
        let of_scene = entity.is_of_scene();
        if !of_scene && entity.player.is_none() {
            self.spawned += 1;
        }
        self.all.insert(id, entity);
        self.journal.changes.push(Change::Added(id));
        if !of_scene || self.npcs.contains(&id) {
            self.replicate(id);
        }
    }

    /// Marks an entity as destroyed; returns its children. None if it is
    /// destroyed already.
    pub fn begin_removal(&mut self, id: u32) -> Option<Vec<u32>> {
        let entity = self.all.get_mut(&id).filter(|e| !e.destroyed)?;
        self.journal.changes.push(Change::Removing(id));
        entity.destroyed = true;
        entity.motion = None;
        entity.velocity = Vec3::ZERO;
        self.index.unname(id, &entity.name);
        for tag in entity.tags.drain(..) {
            self.index.unname(id, &tag);
        }
        Some(std::mem::take(&mut entity.children))
    }

    /// Removes a destroyed entity from its parent and the indices.
    pub fn unindex(&mut self, id: u32) {
        let parent = self.get(id).and_then(|entity| entity.parent);
        self.detach(parent, id);
        self.index.remove(id);
        self.moving.remove(&id);
        self.npcs.remove(&id);
        self.spawn_points.retain(|point| *point != id);
        self.journal.changes.push(Change::Removed(id));
    }

    /// Ends the removal. Entities of the scene file stay, marked as destroyed,
    /// because clients have the file too.
    pub fn end_removal(&mut self, id: u32) {
        self.replicate(id);
        let of_scene = self.get(id).is_none_or(Entity::is_of_scene);
        if !of_scene && self.all.remove(&id).is_some_and(|e| e.player.is_none()) {
            self.spawned = self.spawned.saturating_sub(1);
        }
    }
}

/// Movement.
impl EntityStore {
    /// Puts an entity somewhere. None if it does not exist.
    pub fn place(&mut self, id: u32, pose: Pose) -> Option<Placed> {
        let entity = self.all.get_mut(&id).filter(|e| !e.destroyed)?;
        let before = entity.pose();
        self.past.note_left(id, entity.jumps, before.translation);
        entity.position = pose.translation;
        entity.rotation = pose.rotation;
        let placed = Placed {
            before,
            solid: entity.solid_pose(),
            children: entity.children.clone(),
        };
        self.index.went(id, before.translation, pose.translation);
        Some(placed)
    }

    /// Takes over where physics moved an entity.
    pub fn drift(&mut self, id: u32, pose: Pose, velocity: Vec3) -> Option<Drifted> {
        let entity = self.all.get_mut(&id)?;
        let before = entity.pose();
        self.past.note_left(id, entity.jumps, before.translation);
        entity.position = pose.translation;
        entity.rotation = pose.rotation;
        entity.velocity = velocity;
        let drifted = Drifted {
            before,
            jumps: entity.jumps,
            has_children: !entity.children.is_empty(),
        };
        mark(entity, &self.held_back, &mut self.journal);
        self.index.went(id, before.translation, pose.translation);
        Some(drifted)
    }

    /// Records that physics brought an entity to rest; returns the pose of its
    /// solid.
    pub fn settle(&mut self, id: u32) -> Option<Pose> {
        let entity = self.all.get_mut(&id)?;
        entity.velocity = Vec3::ZERO;
        mark(entity, &self.held_back, &mut self.journal);
        Some(entity.solid_pose())
    }

    /// Takes a step of a character, which faces `rotation` if it is an NPC.
    /// Nothing is marked for replication: players' characters are replicated
    /// in every tick, and an NPC knows what of it has changed. Returns its
    /// pose before, and the entity.
    pub fn walk(
        &mut self,
        id: u32,
        gait: &mut Gait,
        rotation: Option<Rotation>,
        step: impl FnOnce(&mut CharacterState),
    ) -> Option<(Pose, &Entity)> {
        let entity = self.all.get_mut(&id)?;
        let before = entity.pose();
        let mut character = gait.at(entity.position);
        step(&mut character);
        *gait = Gait::of(&character);
        entity.position = character.feet;
        entity.velocity = character.velocity;
        entity.rotation = rotation.unwrap_or(entity.rotation);
        self.index.went(id, before.translation, character.feet);
        Some((before, entity))
    }

    /// Teleports a player's character.
    pub fn teleport(&mut self, id: u32, feet: Vec3) {
        if let Some(entity) = self.alive_mut(id) {
            entity.jumps = (entity.jumps + 1) & 3;
            let from = std::mem::replace(&mut entity.position, feet);
            self.index.went(id, from, feet);
        }
    }

    /// Counts a teleport, across which clients do not interpolate.
    pub fn count_jump(&mut self, id: u32) {
        if let Some(entity) = self.all.get_mut(&id) {
            entity.jumps = (entity.jumps + 1) & 3;
        }
    }

    /// Sets the velocity only; see [`EntityStore::set_course`].
    pub fn set_velocity(&mut self, id: u32, velocity: Vec3) {
        if let Some(entity) = self.alive_mut(id) {
            entity.velocity = velocity;
        }
    }

    /// Ends a motion.
    pub fn stop_motion(&mut self, id: u32) {
        if let Some(entity) = self.alive_mut(id) {
            entity.motion = None;
        }
    }

    /// Ends a motion that has arrived. An entity without a velocity is then at
    /// rest.
    pub fn arrive(&mut self, id: u32) {
        if let Some(entity) = self.alive_mut(id) {
            entity.motion = None;
            if entity.velocity == Vec3::ZERO {
                self.moving.remove(&id);
            }
        }
    }

    /// Sets an entity that nothing else moves in motion, or stops it.
    pub fn set_moving(&mut self, id: u32, moves: bool) {
        match moves {
            true => self.moving.insert(id),
            false => self.moving.remove(&id),
        };
    }

    /// Starts a motion by `offset`. Paths are replicated exactly, so it begins
    /// at the pose that clients have. Returns the children.
    pub fn start_motion(&mut self, id: u32, offset: Vec3, ticks: (u32, u32)) -> Option<Vec<u32>> {
        let entity = self.all.get_mut(&id).filter(|e| !e.destroyed)?;
        let from = entity.solid_pose().translation;
        entity.velocity = Vec3::ZERO;
        entity.motion = Some(Motion {
            from,
            to: entity.position + offset,
            start_tick: ticks.0,
            end_tick: ticks.1,
        });
        let children = entity.children.clone();
        self.moving.insert(id);
        self.replicate(id);
        Some(children)
    }

    /// Records the places of all moving entities at the end of a tick: the
    /// characters of players, NPCs, entities in motion, and bodies.
    pub fn remember(
        &mut self,
        (tick, tick_hz): (u32, u32),
        characters: impl Iterator<Item = u32>,
        bodies: impl Iterator<Item = Place>,
    ) {
        let Self {
            all, moving, npcs, ..
        } = self;
        let ids = characters.chain(npcs.iter().copied());
        let ids = ids.chain(moving.iter().copied());
        let alive = |id: u32| all.get(&id).filter(|entity| !entity.destroyed);
        let things = ids.filter_map(|id| alive(id).map(Place::of));
        self.past
            .remember(tick, tick_hz, self.next_id, things.chain(bodies));
    }
}

/// Properties.
impl EntityStore {
    fn alive_mut(&mut self, id: u32) -> Option<&mut Entity> {
        self.all.get_mut(&id).filter(|entity| !entity.destroyed)
    }

    fn known_mut(&mut self, id: u32) -> Result<&mut Entity, EngineError> {
        self.alive_mut(id).ok_or(EngineError::NoSuchEntity(id))
    }

    /// Removes a name or tag from the index, unless the entity's name or a tag
    /// still has that value.
    fn unname(&mut self, id: u32, word: &str) {
        let still = self
            .alive(id)
            .is_some_and(|entity| entity.name == word || entity.tags.iter().any(|tag| tag == word));
        if !still {
            self.index.unname(id, word);
        }
    }

    pub fn rename(&mut self, id: u32, name: &str) -> Result<(), EngineError> {
        let old = std::mem::replace(&mut self.known_mut(id)?.name, name.to_owned());
        self.unname(id, &old);
        self.index.name(id, name);
        Ok(())
    }

    pub fn set_tag(&mut self, id: u32, tag: &str, on: bool) -> Result<(), EngineError> {
        let tags = &mut self.known_mut(id)?.tags;
        tags.retain(|known| known != tag);
        if tag == ALWAYS_RELEVANT {
            self.replicate(id);
        }
        let tags = &mut self.known_mut(id)?.tags;
        if on {
            if tags.len() >= TAGS_MAX {
                return Err(EngineError::Limit(format!("{TAGS_MAX} tags on one entity")));
            }
            tags.push(tag.to_owned());
            self.index.name(id, tag);
        } else {
            self.unname(id, tag);
        }
        Ok(())
    }

    pub fn set_attribute(&mut self, id: u32, name: &str, value: Value) -> Result<(), EngineError> {
        let entity = self.known_mut(id)?;
        let attributes = &mut entity.attributes;
        let before = match value {
            Value::Nil => attributes.remove(name),
            value if attributes.get(name) == Some(&value) => return Ok(()),
            value if attributes.len() < ATTRIBUTES_MAX || attributes.contains_key(name) => {
                attributes.insert(name.to_owned(), value)
            }
            _ => {
                let message = format!("{ATTRIBUTES_MAX} attributes on one entity");
                return Err(EngineError::Limit(message));
            }
        };
        if let Err(cause) = entity.details().check_attributes() {
            // This change cannot be replicated, so it is undone: server and
            // client state must not differ.
            match before {
                Some(before) => entity.attributes.insert(name.to_owned(), before),
                None => entity.attributes.remove(name),
            };
            return Err(EngineError::Limit(cause.to_string()));
        }
        entity.note_details();
        self.replicate(id);
        Ok(())
    }

    /// Changes an entity's appearance.
    pub fn change_looks(&mut self, id: u32, change: impl FnOnce(&mut Looks)) {
        if let Some(entity) = self.alive_mut(id) {
            change(&mut entity.looks);
            entity.note_details();
        }
        self.replicate(id);
    }

    /// Sets an entity's size, and the radius of its bounding sphere.
    pub fn resize(&mut self, id: u32, scale: Vec3, reach: f32) {
        if let Some(entity) = self.alive_mut(id) {
            entity.scale = scale;
            entity.reach = reach;
        }
        self.journal.changes.push(Change::Rebuilt(id));
        self.change_looks(id, |looks| looks.scale = Some(scale.to_array()));
    }

    /// Attaches an entity to a parent, or detaches it; it stays where it is.
    pub fn set_parent(&mut self, id: u32, parent: Option<u32>) {
        let Some(entity) = self.alive_mut(id) else {
            return;
        };
        let before = std::mem::replace(&mut entity.parent, parent);
        self.detach(before, id);
        if let Some(parent) = parent.and_then(|parent| self.all.get_mut(&parent)) {
            parent.children.push(id);
        }
    }

    fn detach(&mut self, parent: Option<u32>, child: u32) {
        if let Some(parent) = parent.and_then(|parent| self.all.get_mut(&parent)) {
            parent.children.retain(|id| *id != child);
        }
    }
}

/// The journal.
impl EntityStore {
    /// Marks an entity for replication at the next collection.
    pub fn replicate(&mut self, id: u32) {
        if let Some(entity) = self.all.get_mut(&id) {
            mark(entity, &self.held_back, &mut self.journal);
        }
    }

    /// Passes the entities that changed for clients since the last call; none
    /// for one that was removed.
    pub fn drain_touched(&mut self, mut read: impl FnMut(u32, Option<&Entity>)) {
        for id in self.journal.touched.drain(..) {
            let entity = self.all.get_mut(&id);
            if let Some(entity) = entity {
                entity.replicated.touched = false;
                read(id, Some(entity));
            } else {
                read(id, None);
            }
        }
    }

    /// Replicates nothing about an entity until it is released. It may be
    /// marked already, because it was just spawned, or moved before it was
    /// destroyed; the next collection would find it there, or removed.
    pub fn hold_back(&mut self, id: u32) {
        self.held_back.insert(id);
        let entity = self.all.get_mut(&id);
        let marked = entity.is_none_or(|entity| std::mem::take(&mut entity.replicated.touched));
        if marked && let Some(at) = self.journal.touched.iter().rposition(|other| *other == id) {
            self.journal.touched.remove(at);
        }
    }

    /// Replicates an entity that was held back.
    pub fn release(&mut self, id: u32) {
        self.held_back.remove(&id);
        if self.all.contains_key(&id) {
            self.replicate(id);
        } else {
            // The next collection finds it removed.
            self.journal.touched.push(id);
        }
    }

    /// Records a change for systems.
    pub fn record(&mut self, change: Change) {
        self.journal.changes.push(change);
    }

    /// Sets whether pathfinding follows changed solids.
    pub fn follow_solids(&mut self, follows: bool) {
        self.journal.follows_solids = follows;
    }

    pub fn follows_solids(&self) -> bool {
        self.journal.follows_solids
    }

    /// The changes since the last call, in `changes`, which must be empty.
    pub fn take_changes(&mut self, changes: &mut Vec<Change>) {
        std::mem::swap(&mut self.journal.changes, changes);
    }
}

fn mark(entity: &mut Entity, held_back: &BTreeSet<u32>, journal: &mut Journal) {
    if !held_back.is_empty() && held_back.contains(&entity.id) {
        return;
    }
    entity.replicated.differs = true;
    if !std::mem::replace(&mut entity.replicated.touched, true) {
        journal.touched.push(entity.id);
    }
}

#[cfg(test)]
mod tests;
