//! What the systems of a world share: its entities and players, the spatial
//! state that must never lag behind them, and the queues to scripts and
//! clients.

use std::collections::BTreeMap;
use std::rc::Rc;

use frolic_package::Package;
use frolic_protocol::entity::SCENE_DEFINITION;
use frolic_protocol::{PlayerInfo, quantize};
use frolic_scene::{BodyKind, Components, Transform};
use frolic_script::{EngineError, ScriptEvent};
use frolic_sim::{CharacterParams, CollisionWorld, Meshes, Pose, Vec3};

use crate::console::Console;
use crate::entities::{Change, Entity, EntityStore, SPAWNED_MAX};
use crate::nav::grid::Role;
use crate::outbox::Outbox;
use crate::player::{Player, PlayerNumber};
use crate::presence::Presence;
use crate::trigger::{Crossing, Triggers, Way};
use crate::updates::UpdateRule;

pub(crate) struct Space {
    pub tick: u32,
    pub tick_hz: u32,
    pub kill_height: f32,
    pub params: CharacterParams,
    pub entities: EntityStore,
    pub players: BTreeMap<PlayerNumber, Player>,
    pub collision: CollisionWorld,
    pub triggers: Triggers,
    /// Movement of characters in this tick, for triggers.
    pub ways: Vec<Way>,
    /// How often entities are replicated.
    pub updates: UpdateRule,
    /// Events for scripts, in order.
    pub events: Vec<ScriptEvent>,
    pub outbox: Outbox,
    pub presence: Presence,
    pub console: Console,
}

impl Space {
    /// The scene of a package.
    pub fn load(package: &Package) -> Self {
        let settings = &package.manifest.simulation;
        let params = CharacterParams {
            gravity: settings.gravity,
            ..CharacterParams::default()
        };
        let mut space = Self {
            tick: 0,
            tick_hz: settings.tick_hz.clamp(1, 240),
            kill_height: settings.kill_height,
            params,
            entities: EntityStore::default(),
            players: BTreeMap::new(),
            collision: frolic_sim::scene::load_with(&package.scene, meshes(package)),
            triggers: Triggers::default(),
            ways: Vec::new(),
            updates: UpdateRule::default(),
            events: Vec::new(),
            outbox: Outbox::default(),
            presence: Presence::default(),
            console: Console::default(),
        };
        let scene = &package.scene;
        for (entity, transform) in scene.entities.iter().zip(scene.world_transforms()) {
            let components = Rc::new(scene.resolved(entity));
            let name = entity.name.clone();
            let made = Entity::new(entity.id, name, SCENE_DEFINITION, components, &transform);
            space.insert(made, &transform);
        }
        for entity in scene.entities.iter().filter(|e| e.parent.is_some()) {
            space.entities.set_parent(entity.id, entity.parent);
        }
        space
    }

    /// The length of a tick in seconds.
    pub fn dt(&self) -> f32 {
        1.0 / self.tick_hz as f32
    }

    /// The tick, and ticks per second.
    pub fn time(&self) -> (u32, u32) {
        (self.tick, self.tick_hz)
    }

    /// The entity with that id, unless it is destroyed.
    pub fn alive(&self, id: u32) -> Option<&Entity> {
        self.entities.alive(id)
    }

    /// Players in the world, with or without a connection.
    pub fn online(&self) -> impl Iterator<Item = &Player> {
        self.players.values().filter(|player| player.online)
    }

    /// Where a player's character is.
    pub fn feet_of(&self, player: &Player) -> Vec3 {
        self.entities.feet(player.entity)
    }

    pub fn player(&self, number: PlayerNumber) -> Result<&Player, EngineError> {
        let player = self.players.get(&number);
        player.ok_or(EngineError::NoSuchPlayer(number))
    }

    pub fn player_mut(&mut self, number: PlayerNumber) -> Result<&mut Player, EngineError> {
        let player = self.players.get_mut(&number);
        player.ok_or(EngineError::NoSuchPlayer(number))
    }

    /// Whether a player is in the world and can act.
    pub fn is_living(&self, number: PlayerNumber) -> bool {
        self.players.get(&number).is_some_and(Player::is_living)
    }

    /// Replicates a change of a player's presence to all clients.
    pub fn announce(&mut self, info: PlayerInfo) {
        let time = self.time();
        self.presence.announce(vec![info], &mut self.outbox, time);
    }

    /// Adds an entity. Scene solids are in the collision world already.
    fn insert(&mut self, entity: Entity, transform: &Transform) {
        if let Some(shape) = frolic_sim::scene::trigger_shape(&entity.components, transform) {
            self.triggers.insert(entity.id, shape, entity.pose());
        }
        self.entities.insert(entity);
    }

    /// Creates an entity from components. None if there are too many.
    pub fn spawn(
        &mut self,
        name: String,
        definition: u16,
        components: Rc<Components>,
        transform: &Transform,
    ) -> Option<u32> {
        if self.entities.spawned() >= SPAWNED_MAX {
            return None;
        }
        let id = self.entities.fresh_id();
        let mut entity = Entity::new(id, name, definition, components, transform);
        let components = &entity.components;
        let shape = frolic_sim::scene::insert(&mut self.collision, id, components, transform);
        self.collision.teleport(id, entity.solid_pose());
        entity.reach = shape.map_or(0.0, |shape| shape.reach());
        self.insert(entity, transform);
        self.solid_changed(id);
        self.entities.record(Change::Rebuilt(id));
        Some(id)
    }

    /// Creates the entity of a player's character.
    pub fn spawn_character(&mut self, player: PlayerNumber, name: &str, feet: Vec3) -> u32 {
        let id = self.entities.fresh_id();
        let transform = Transform {
            position: feet.to_array(),
            ..Transform::default()
        };
        let nothing = Rc::new(Components::default());
        let mut entity = Entity::new(id, name.to_owned(), SCENE_DEFINITION, nothing, &transform);
        entity.player = Some(player);
        self.insert(entity, &transform);
        id
    }

    /// Removes an entity and its children.
    pub fn destroy(&mut self, id: u32) {
        let Some(children) = self.entities.begin_removal(id) else {
            return;
        };
        for child in children {
            self.destroy(child);
        }
        self.solid_changed(id);
        self.entities.unindex(id);
        self.collision.remove(id);
        let mut crossings = self.triggers.remove(id);
        crossings.extend(self.triggers.forget(id));
        self.report(&crossings);
        self.events
            .push(ScriptEvent::EntityDestroyed { entity: id });
        self.entities.end_removal(id);
    }

    /// Moves an entity with its children; characters standing on it are
    /// carried.
    pub fn place(&mut self, id: u32, pose: Pose) {
        let Some(placed) = self.entities.place(id, pose) else {
            return;
        };
        self.solid_changed(id);
        self.collision.move_to(id, placed.solid);
        self.solid_changed(id);
        self.entities.record(Change::Placed(id));
        self.triggers.move_to(id, pose);
        self.entities.replicate(id);
        for child in placed.children {
            if let Some(child_pose) = self.alive(child).map(Entity::pose) {
                self.place(child, pose * (placed.before.inverse() * child_pose));
            }
        }
    }

    /// Moves an entity after characters have stepped; a character standing on
    /// it is carried in the next tick.
    pub fn place_late(&mut self, id: u32, pose: Pose) {
        let Some(placed) = self.entities.place(id, pose) else {
            return;
        };
        self.collision.move_late(id, placed.solid);
        self.triggers.move_to(id, pose);
        self.entities.replicate(id);
        for child in placed.children {
            if let Some(child_pose) = self.alive(child).map(Entity::pose) {
                self.place_late(child, pose * (placed.before.inverse() * child_pose));
            }
        }
    }

    /// Teleports a character's entity.
    pub fn teleport(&mut self, id: u32, feet: Vec3) {
        self.entities.teleport(id, feet);
        let crossings = self.triggers.forget(id);
        self.report(&crossings);
    }

    /// Records that an entity's solid is about to change, or has changed.
    pub fn solid_changed(&mut self, id: u32) {
        if self.entities.follows_solids()
            && let Some((low, high)) = self.collision.bounds_of(id)
            && self.role(id) != Role::Passing
        {
            self.entities.record(Change::Solid { low, high });
        }
    }

    /// The role of an entity's solid in path planning.
    pub fn role(&self, id: u32) -> Role {
        let body = |entity: &Entity| entity.components.body.map(|body| body.kind);
        match self.entities.get(id).and_then(body) {
            Some(BodyKind::Dynamic) => Role::Passing,
            _ if self.entities.moving().contains(&id) => Role::Passing,
            Some(BodyKind::Kinematic) => Role::Obstacle,
            _ => Role::Ground,
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
    fn report(&mut self, crossings: &[Crossing]) {
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
        let mut movers: Vec<u32> = self.entities.moving().iter().copied().collect();
        let parent_of = |id: u32| self.entities.get(id)?.parent;
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
                self.entities.set_moving(id, false);
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
            if arrived {
                self.entities.arrive(id);
            }
            self.place(id, pose);
        }
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
