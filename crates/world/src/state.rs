//! All state of a world except its scripts. Scripts reach it through
//! [`frolic_script::Engine`], implemented in `engine.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use frolic_fleet_api::store::StoreRequest;
use frolic_package::Package;
use frolic_protocol::entity::SCENE_DEFINITION;
use frolic_protocol::{PlayerInfo, ServerMessage, quantize};
use frolic_scene::{Components, SceneEntity, Transform};
use frolic_script::{ScriptEvent, ScriptLog};
use frolic_sim::{CharacterParams, CollisionWorld, Meshes, Pose, Vec3};

use crate::bodies::Bodies;
use crate::definitions::Definitions;
use crate::entity::Entity;
use crate::history::History;
use crate::lag_compensation::{Past, UpdateRule};
use crate::npcs::Npcs;
use crate::player::{Player, PlayerNumber};
use crate::projectiles::Projectiles;
use crate::registry::{self, Registry};
use crate::remote_commands::Visitors;
use crate::spells::Spells;
use crate::structures::Structures;
use crate::terrain::Ground;
use crate::trigger::{Crossing, Triggers, Way};

/// Limit of concurrent entities spawned by scripts.
pub(crate) const SPAWNED_MAX: usize = 20_000;

/// A message to one player, or to all.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The player, or none for all.
    pub to: Option<PlayerNumber>,
    /// The message.
    pub message: ServerMessage,
    /// Whether delivery must be reliable.
    pub reliable: bool,
}

pub(crate) struct WorldState {
    pub tick: u32,
    pub tick_hz: u32,
    pub kill_height: f32,
    pub params: CharacterParams,
    pub entities: BTreeMap<u32, Entity>,
    pub players: BTreeMap<PlayerNumber, Player>,
    pub collision: CollisionWorld,
    /// Rigid bodies.
    pub bodies: Bodies,
    /// Entities whose touches scripts subscribed to.
    pub watched: BTreeSet<u32>,
    /// Touches of one tick; a reused buffer.
    pub body_touches: Vec<(u32, u32)>,
    pub triggers: Triggers,
    /// Movement of characters in this tick, for triggers.
    pub ways: Vec<Way>,
    /// The available spells, and casts in progress.
    pub spells: Spells,
    pub visitors: Visitors,
    /// Persistent operations on their way to storage.
    pub history: History,
    /// Persistent structures.
    pub structures: Structures,
    /// Weapons and shots.
    pub projectiles: Projectiles,
    /// Ticks between a death and the respawn.
    pub respawn_ticks: u32,
    pub npcs: Npcs,
    /// Terrain state besides its blocks.
    pub ground: Ground,
    pub definitions: Definitions,
    /// Paths of the package's assets.
    pub assets: BTreeSet<String>,
    pub spawn_points: Vec<u32>,
    /// Entities that changed for clients since the last collection.
    pub touched: Vec<u32>,
    /// Entities with a motion or a velocity.
    pub moving: BTreeSet<u32>,
    pub registry: Registry,
    next_entity: u32,
    spawned: usize,
    /// Positions of the last ticks.
    pub past: Past,
    /// How often entities are replicated.
    pub updates: UpdateRule,
    /// Events for scripts, in order.
    pub events: Vec<ScriptEvent>,
    pub outbox: Vec<Outgoing>,
    /// Store requests that the host has not taken yet, and how many there were
    /// in all.
    pub store_outbox: Vec<StoreRequest>,
    pub store_requests: u64,
    pub logs: Vec<ScriptLog>,
    /// Errors that scripts raised since the start.
    pub script_errors: u64,
    /// Hash of the bytecode by path, and the package: stamped on every log
    /// line.
    pub script_hashes: BTreeMap<String, String>,
    pub revision: String,
    /// Incremented with every change of any script, from 1.
    pub script_version: u32,
    /// Players who joined or changed, and players who left, with the tick.
    pub presence_changes: Vec<(u32, PlayerInfo)>,
    /// Players whose team or leaderstats changed since they were last
    /// replicated.
    pub restyled: BTreeSet<PlayerNumber>,
    /// Players whose connection state changed since it was last replicated.
    pub reconnected: BTreeSet<PlayerNumber>,
    /// The wall-clock time in milliseconds, and the tick at which it was set.
    pub wall_clock: (u64, u32),
    /// Ticks that repeated a player's last input; a metric, not part of the
    /// world's state.
    pub repeated_inputs: u64,
}

/// Presence changes that are sent at once; the rest follow.
pub(crate) const PRESENCES_MAX: usize = 64;

impl WorldState {
    pub fn load(package: &Package) -> Self {
        let settings = &package.manifest.simulation;
        let params = CharacterParams {
            gravity: settings.gravity,
            ..CharacterParams::default()
        };
        let mut state = Self {
            tick: 0,
            tick_hz: settings.tick_hz.clamp(1, 240),
            kill_height: settings.kill_height,
            params,
            entities: BTreeMap::new(),
            players: BTreeMap::new(),
            collision: frolic_sim::scene::load_with(&package.scene, meshes(package)),
            bodies: Bodies::default(),
            watched: BTreeSet::new(),
            body_touches: Vec::new(),
            triggers: Triggers::default(),
            ways: Vec::new(),
            spells: Spells::new(package),
            visitors: Visitors::default(),
            history: History::default(),
            structures: Structures::default(),
            projectiles: Projectiles::default(),
            respawn_ticks: 0,
            npcs: Npcs::default(),
            ground: Ground::default(),
            definitions: Definitions::new(&package.scene),
            assets: package
                .files
                .keys()
                .filter(|path| path.starts_with("assets/"))
                .cloned()
                .collect(),
            spawn_points: Vec::new(),
            touched: Vec::new(),
            moving: BTreeSet::new(),
            registry: Registry::default(),
            next_entity: SceneEntity::ID_MAX + 1,
            spawned: 0,
            past: Past::default(),
            updates: UpdateRule::default(),
            events: Vec::new(),
            outbox: Vec::new(),
            store_outbox: Vec::new(),
            store_requests: 0,
            logs: Vec::new(),
            script_errors: 0,
            script_hashes: BTreeMap::new(),
            revision: package.revision.clone(),
            script_version: 1,
            presence_changes: Vec::new(),
            restyled: BTreeSet::new(),
            reconnected: BTreeSet::new(),
            wall_clock: (0, 0),
            repeated_inputs: 0,
        };
        let scene = &package.scene;
        for (entity, transform) in scene.entities.iter().zip(scene.world_transforms()) {
            let components = Rc::new(scene.resolved(entity));
            let name = entity.name.clone();
            let mut made = Entity::new(entity.id, name, SCENE_DEFINITION, components, &transform);
            made.parent = entity.parent;
            state.register(made, &transform);
        }
        for entity in &scene.entities {
            if let Some(parent) = entity.parent.and_then(|id| state.entities.get_mut(&id)) {
                parent.children.push(entity.id);
            }
        }
        state.build_bodies();
        state
    }

    pub fn dt(&self) -> f32 {
        1.0 / self.tick_hz as f32
    }

    /// Adds an entity to every index. Scene solids are in the collision world
    /// already.
    fn register(&mut self, entity: Entity, transform: &Transform) {
        let components = &entity.components;
        if let Some(shape) = frolic_sim::scene::trigger_shape(components, transform) {
            self.triggers.insert(entity.id, shape, entity.pose());
        }
        if components.spawn_point.is_some() {
            self.spawn_points.push(entity.id);
        }
        let character = entity.player.map(|_| registry::CHARACTER);
        let types = registry::types(components).chain(character);
        self.registry.insert(entity.id, types, entity.position);
        self.registry.name(entity.id, &entity.name);
        for tag in &entity.tags {
            self.registry.name(entity.id, tag);
        }
        if components.script.is_some() {
            self.watched.insert(entity.id);
        }
        let (id, is_new) = (entity.id, !entity.is_of_scene());
        self.entities.insert(id, entity);
        self.add_npc(id);
        if is_new {
            self.replicate(id);
        }
    }

    /// Marks an entity for replication at the next collection.
    pub fn replicate(&mut self, id: u32) {
        if self.structures.hides(id) {
            return;
        }
        if let Some(entity) = self.entities.get_mut(&id) {
            entity.replicated = true;
            if !std::mem::replace(&mut entity.touched, true) {
                self.touched.push(id);
            }
        }
    }

    /// Removes a name or tag from the index, unless the entity's name or a tag
    /// still has that value.
    pub fn unindex(&mut self, id: u32, word: &str) {
        let still = self
            .alive(id)
            .is_some_and(|entity| entity.name == word || entity.tags.iter().any(|tag| tag == word));
        if !still {
            self.registry.unname(id, word);
        }
    }

    /// How many entities scripts spawned that still exist.
    pub fn spawned(&self) -> usize {
        self.spawned
    }

    /// Creates an entity from components. None if there are too many.
    pub fn spawn_at(
        &mut self,
        name: String,
        definition: u16,
        components: Rc<Components>,
        transform: Transform,
    ) -> Option<u32> {
        if self.spawned >= SPAWNED_MAX {
            return None;
        }
        self.spawned += 1;
        let id = self.fresh_id();
        let mut entity = Entity::new(id, name, definition, components, &transform);
        let components = &entity.components;
        let shape = frolic_sim::scene::insert(&mut self.collision, id, components, &transform);
        self.collision.teleport(id, entity.solid_pose());
        entity.reach = shape.map_or(0.0, |shape| shape.reach());
        self.register(entity, &transform);
        self.solid_changed(id);
        self.add_body(id);
        Some(id)
    }

    /// Creates the entity of a player's character.
    pub fn spawn_character(&mut self, player: PlayerNumber, name: &str, feet: Vec3) -> u32 {
        let id = self.fresh_id();
        let transform = Transform {
            position: feet.to_array(),
            ..Transform::default()
        };
        let nothing = Rc::new(Components::default());
        let mut entity = Entity::new(id, name.to_owned(), SCENE_DEFINITION, nothing, &transform);
        entity.player = Some(player);
        self.register(entity, &transform);
        id
    }

    /// The id of the next entity.
    pub fn next_entity(&self) -> u32 {
        self.next_entity
    }

    /// An unused id. Ids wrap around to the first one after the scene's.
    fn fresh_id(&mut self) -> u32 {
        loop {
            let id = self.next_entity;
            self.next_entity = id.checked_add(1).unwrap_or(SceneEntity::ID_MAX + 1);
            if !self.entities.contains_key(&id) {
                return id;
            }
        }
    }

    /// Removes an entity and its children.
    pub fn destroy(&mut self, id: u32) {
        if self.alive(id).is_some() {
            self.note_unbuilt(id);
        }
        let Some(entity) = self.entities.get_mut(&id).filter(|e| !e.destroyed) else {
            return;
        };
        entity.destroyed = true;
        entity.motion = None;
        entity.velocity = Vec3::ZERO;
        let (children, parent) = (std::mem::take(&mut entity.children), entity.parent);
        let words: Vec<String> = entity
            .tags
            .drain(..)
            .chain(std::iter::once(entity.name.clone()))
            .collect();
        let from_scene = entity.is_of_scene();
        for word in words {
            self.unindex(id, &word);
        }
        for child in children {
            self.destroy(child);
        }
        if let Some(parent) = parent.and_then(|parent| self.entities.get_mut(&parent)) {
            parent.children.retain(|child| *child != id);
        }
        self.solid_changed(id);
        self.remove_npc(id);
        self.registry.remove(id);
        self.collision.remove(id);
        self.bodies.remove(id);
        self.watched.remove(&id);
        self.moving.remove(&id);
        self.spawn_points.retain(|point| *point != id);
        let mut crossings = self.triggers.remove(id);
        crossings.extend(self.triggers.forget(id));
        self.report(&crossings);
        self.events
            .push(ScriptEvent::EntityDestroyed { entity: id });
        // Entities of the scene file stay, marked as destroyed, because clients
        // have the file too.
        self.replicate(id);
        if !from_scene {
            let gone = self.entities.remove(&id);
            if gone.is_some_and(|entity| entity.player.is_none()) {
                self.spawned = self.spawned.saturating_sub(1);
            }
        }
    }

    /// The entity with that id, unless it is destroyed.
    pub fn alive(&self, id: u32) -> Option<&Entity> {
        self.entities.get(&id).filter(|entity| !entity.destroyed)
    }

    pub fn alive_mut(&mut self, id: u32) -> Option<&mut Entity> {
        self.entities
            .get_mut(&id)
            .filter(|entity| !entity.destroyed)
    }

    /// Moves an entity with its children; characters standing on it are
    /// carried.
    pub fn place(&mut self, id: u32, pose: Pose) {
        let entity = self.entities.get_mut(&id).filter(|e| !e.destroyed);
        let Some(entity) = entity else {
            return;
        };
        let before = entity.pose();
        self.past.note_left(id, entity.jumps, before.translation);
        entity.position = pose.translation;
        entity.rotation = pose.rotation;
        let (solid, children) = (entity.solid_pose(), entity.children.clone());
        self.solid_changed(id);
        self.registry.moved(id, pose.translation);
        self.collision.move_to(id, solid);
        self.bodies.note_moved(id);
        self.solid_changed(id);
        self.npc_placed(id, &pose);
        self.triggers.move_to(id, pose);
        self.replicate(id);
        for child in children {
            if let Some(child_pose) = self.alive(child).map(Entity::pose) {
                let local = before.inverse() * child_pose;
                self.place(child, pose * local);
            }
        }
    }

    /// Finds which entities crossed the border of a trigger in this tick.
    pub fn cross_triggers(&mut self) {
        let mut ways = std::mem::take(&mut self.ways);
        let crossings = self.triggers.cross(&self.collision, &ways);
        self.report(&crossings);
        ways.clear();
        self.ways = ways;
    }

    /// Queues crossings for scripts.
    pub fn report(&mut self, crossings: &[Crossing]) {
        self.events.extend(crossings.iter().map(|crossing| {
            let (entity, other) = (crossing.trigger, crossing.other);
            if crossing.entered {
                ScriptEvent::TriggerEnter { entity, other }
            } else {
                ScriptEvent::TriggerExit { entity, other }
            }
        }));
    }

    /// All moving entities, children after their parents: a child is first
    /// carried along and then placed by its own path.
    fn movers(&self) -> Vec<u32> {
        let mut movers: Vec<u32> = self.moving.iter().copied().collect();
        let parent_of = |id: u32| self.entities.get(&id)?.parent;
        if movers.iter().any(|id| parent_of(*id).is_some()) {
            let above = |id: &u32| std::iter::successors(parent_of(*id), |id| parent_of(*id));
            movers.sort_by_cached_key(|id| above(id).count());
        }
        movers
    }

    /// Moves entities along their paths and velocities.
    pub fn move_things(&mut self) {
        let (tick, dt) = (self.tick, self.dt());
        for id in self.movers() {
            let Some(entity) = self.alive(id) else {
                self.moving.remove(&id);
                continue;
            };
            let mut pose = entity.pose();
            match entity.motion {
                Some(motion) => pose.translation = motion.position_at(tick),
                None => pose.translation += entity.velocity * dt,
            }
            let arrived = entity.motion.is_some_and(|motion| tick >= motion.end_tick);
            let away = pose.translation.abs().max_element() > quantize::POSITION_MAX;
            let lost = (away || pose.translation.y < self.kill_height) && !entity.is_of_scene();
            if lost {
                self.destroy(id);
                continue;
            }
            // An entity that has arrived is at rest, and so is its solid.
            if arrived && let Some(entity) = self.alive_mut(id) {
                entity.motion = None;
                if entity.velocity == Vec3::ZERO {
                    self.moving.remove(&id);
                }
            }
            self.place(id, pose);
        }
    }

    /// Replicates changed teams and leaderstats to all clients, at most five
    /// times a second, because scripts may change them in every tick.
    pub fn replicate_restyled(&mut self) {
        if self.restyled.is_empty() || !self.tick.is_multiple_of((self.tick_hz / 5).max(1)) {
            return;
        }
        let mut changed = Vec::new();
        while changed.len() < PRESENCES_MAX
            && let Some(number) = self.restyled.pop_first()
        {
            changed.extend(self.players.get(&number).map(Player::info));
        }
        self.note_presences(changed);
    }

    pub fn note_presence(&mut self, info: PlayerInfo) {
        self.note_presences(vec![info]);
    }

    fn note_presences(&mut self, changed: Vec<PlayerInfo>) {
        self.outbox.push(Outgoing {
            to: None,
            message: ServerMessage::Presence(changed.clone()),
            reliable: true,
        });
        self.store_presences(changed);
    }

    /// Stores presence changes for the next snapshots of JSON clients.
    pub fn store_presences(&mut self, changed: Vec<PlayerInfo>) {
        self.presence_changes
            .retain(|(_, known)| changed.iter().all(|info| info.number != known.number));
        // Between two steps the snapshot of this tick may have been sent
        // already, so the change belongs to the next one.
        let tick = self.tick + 1;
        self.presence_changes
            .extend(changed.into_iter().map(|info| (tick, info)));
        // JSON clients receive changes since their baseline, which is a few
        // seconds old at most.
        let forget_before = self.tick.saturating_sub(self.tick_hz * 30);
        self.presence_changes
            .retain(|(tick, info)| !info.left || *tick >= forget_before);
    }
}

/// The collision meshes of a package.
fn meshes(package: &Package) -> Meshes {
    let mut meshes = Meshes::default();
    for (asset, triangles) in &package.meshes {
        meshes.add(asset, triangles);
    }
    meshes
}

#[cfg(test)]
mod tests {
    use super::*;
    use frolic_scene::Limits;

    #[test]
    fn ids_wrap_around_without_reusing_live_ones() {
        let files = BTreeMap::from([
            (
                "game.toml".to_owned(),
                b"[game]\nid = \"test\"\nname = \"Test\"\n".to_vec(),
            ),
            (
                "scene.json".to_owned(),
                br#"{"format":1,"prefabs":{},"entities":[]}"#.to_vec(),
            ),
        ]);
        let package = Package::from_files(files, &Limits::default())
            .unwrap_or_else(|report| panic!("{report}"));
        let mut state = WorldState::load(&package);
        let first = state.spawn_character(1, "Ada", Vec3::ZERO);
        state.next_entity = u32::MAX;
        let ids = [2, 3, 4].map(|number| state.spawn_character(number, "Ben", Vec3::ZERO));
        assert_eq!(first, SceneEntity::ID_MAX + 1);
        assert_eq!(ids, [u32::MAX, first + 1, first + 2]);
    }
}
