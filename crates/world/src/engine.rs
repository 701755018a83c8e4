//! Implements the script API on the world: [`Engine`] for [`WorldState`].

mod changes;
mod prefabs;

use std::rc::Rc;

use frolic_fleet_api::store::StoreRequest;
use frolic_protocol::{Args, ServerMessage, Value};
use frolic_scene::Pattern;
use frolic_scene::{degrees_from_quaternion, quaternion_from_degrees};
use frolic_script::{
    BuildRequest, Built, Engine, EngineError, EntityId, FireRequest, LogLevel, NpcFacts, NpcOrder,
    Origin, PlayerId, PlayerProperty, Property, RaycastHit, RaycastRequest, Recipient, ScriptLog,
    SpawnRequest, SpawnSource, Spawned, TerrainHit, TerrainInfo, WeaponSpec,
};
use frolic_sim::{Pose, Rotation, Vec3};
use frolic_terrain::{Material, Op};

use self::changes::{color, color_of, vector, wrong};
use crate::entity::ALWAYS_RELEVANT;
use crate::npcs::NPCS_MAX;
use crate::state::{Outgoing, SPAWNED_MAX, WorldState};

/// Attributes per entity or player.
const ATTRIBUTES_MAX: usize = 64;
const TAGS_MAX: usize = 32;
/// Log lines queued until the game server takes them.
const LOG_LINES_MAX: usize = 1024;
/// Store requests queued until the game server takes them.
const STORE_REQUESTS_MAX: usize = 1024;

impl Engine for WorldState {
    fn tick(&self) -> u64 {
        u64::from(self.tick)
    }

    fn time(&self) -> f64 {
        f64::from(self.tick) / f64::from(self.tick_hz)
    }

    fn wall_clock_ms(&self) -> u64 {
        let (ms, at) = self.wall_clock;
        let since = u64::from(self.tick.saturating_sub(at));
        ms + since * 1000 / u64::from(self.tick_hz.max(1))
    }

    fn gravity(&self) -> f32 {
        self.params.gravity
    }

    fn set_gravity(&mut self, gravity: f32) -> Result<(), EngineError> {
        self.change_gravity(gravity);
        Ok(())
    }

    fn watch_touches(&mut self, id: EntityId) {
        WorldState::watch_touches(self, id);
    }

    fn spawn(&mut self, request: &SpawnRequest) -> Result<Spawned, EngineError> {
        let (name, (definition, components, mut transform)) = match &request.source {
            SpawnSource::Prefab(name) => {
                let found = self.definitions.prefab(name);
                let found = found.ok_or_else(|| EngineError::NoSuchPrefab(name.clone()))?;
                let (definition, components) = found;
                let transform = components.transform.unwrap_or_default();
                (name.clone(), (definition, components, transform))
            }
            SpawnSource::Components(json) => ("Entity".to_owned(), self.spawn_components(json)?),
        };
        if let Some(position) = request.position {
            transform.position = position;
        }
        if components.npc.is_some() && !self.has_room_for_npc() {
            let message = format!("{NPCS_MAX} NPCs; destroy some first");
            return Err(EngineError::Limit(message));
        }
        let parts = match &request.source {
            SpawnSource::Prefab(name) => self.definitions.parts(name),
            SpawnSource::Components(_) => Rc::default(),
        };
        self.check_room_for_parts(&parts)?;
        self.check_room_for(&components, &transform)?;
        let scripts = components.script.iter().map(|s| s.path.clone()).collect();
        let entity = self
            .spawn_at(name, definition, components, transform)
            .ok_or_else(|| {
                let message = format!("{SPAWNED_MAX} spawned entities; destroy some first");
                EngineError::Limit(message)
            })?;
        let below = self.spawn_parts(entity, &transform, &parts)?;
        Ok(Spawned {
            entity,
            scripts,
            below,
        })
    }

    fn build(&mut self, request: &BuildRequest) -> Result<Built, EngineError> {
        WorldState::build(self, request)
    }

    fn structures(&self, owner: Option<&str>) -> Vec<EntityId> {
        self.structure_entities(owner)
    }

    fn built_by(&self, id: EntityId) -> Option<String> {
        self.structures.of_entity(id)?.owner.clone()
    }

    fn newest_op(&self) -> u64 {
        self.history.newest()
    }

    fn persisted_op(&self) -> u64 {
        self.history.persisted()
    }

    fn destroy(&mut self, id: EntityId) -> Result<(), EngineError> {
        self.movable(id)?;
        if self.structures.of_entity(id).is_some() {
            self.room_for_op()?;
        }
        WorldState::destroy(self, id);
        Ok(())
    }

    fn exists(&self, id: EntityId) -> bool {
        self.alive(id).is_some()
    }

    fn property(&self, id: EntityId, property: Property) -> Result<Value, EngineError> {
        let entity = self.entity(id)?;
        Ok(match property {
            Property::Name => Value::String(entity.name.clone()),
            Property::Position => Value::Vector(entity.position.to_array()),
            Property::Rotation => {
                Value::Vector(degrees_from_quaternion(entity.rotation.to_array()))
            }
            Property::Velocity => Value::Vector(entity.velocity.to_array()),
            Property::Scale => Value::Vector(entity.scale.to_array()),
            Property::Color => color_of(entity),
            Property::Opacity => {
                let material = entity.components.material.as_ref();
                let own = material.map_or(1.0, |material| material.opacity);
                Value::Number(f64::from(entity.looks.opacity.unwrap_or(own)))
            }
            Property::Parent => entity.parent.map_or(Value::Nil, Value::Entity),
            Property::Children => {
                Value::List(entity.children.iter().copied().map(Value::Entity).collect())
            }
            Property::Tags => Value::List(entity.tags.iter().cloned().map(Value::String).collect()),
            Property::Owner => entity
                .player
                .map_or(Value::Nil, |player| Value::Number(f64::from(player))),
        })
    }

    fn set_property(
        &mut self,
        id: EntityId,
        property: Property,
        value: Value,
    ) -> Result<(), EngineError> {
        match property {
            Property::Name => {
                let Value::String(name) = value else {
                    return Err(wrong("Name", "string"));
                };
                let old = std::mem::replace(&mut self.entity_mut(id)?.name, name.clone());
                self.unindex(id, &old);
                self.registry.name(id, &name);
            }
            Property::Position => {
                let to = vector("Position", &value)?;
                if let Some(player) = self.entity(id)?.player {
                    self.teleport(player, to);
                    return Ok(());
                }
                self.check_room_at(id, to)?;
                let entity = self.movable(id)?;
                entity.motion = None;
                let pose = Pose::from_parts(to, entity.rotation);
                self.place(id, pose);
            }
            Property::Rotation => {
                let degrees = vector("Rotation", &value)?;
                let entity = self.movable(id)?;
                let turned = Rotation::from_array(quaternion_from_degrees(degrees.to_array()));
                let pose = Pose::from_parts(entity.position, turned.normalize());
                self.place(id, pose);
            }
            Property::Velocity => {
                let velocity = vector("Velocity", &value)?;
                self.set_velocity(id, velocity.to_array())?;
            }
            Property::Scale => {
                let scale = vector("Scale", &value)?;
                self.set_scale(id, scale)?;
            }
            Property::Color => {
                let color = color("Color", &value)?;
                self.movable(id)?.looks.color = Some(color);
                self.details_changed(id);
            }
            Property::Opacity => {
                let Value::Number(opacity) = value else {
                    return Err(wrong("Opacity", "number"));
                };
                self.movable(id)?.looks.opacity = Some(opacity.clamp(0.0, 1.0) as f32);
                self.details_changed(id);
            }
            Property::Parent => {
                let parent = match value {
                    Value::Nil => None,
                    Value::Entity(parent) => Some(parent),
                    _ => return Err(wrong("Parent", "entity or nil")),
                };
                self.set_parent(id, parent)?;
            }
            Property::Children => return Err(EngineError::ReadOnly("Children")),
            Property::Tags => return Err(EngineError::ReadOnly("Tags; use AddTag and RemoveTag")),
            Property::Owner => return Err(EngineError::ReadOnly("Owner")),
        }
        Ok(())
    }

    fn attribute(&self, id: EntityId, name: &str) -> Result<Value, EngineError> {
        let attributes = &self.entity(id)?.attributes;
        Ok(attributes.get(name).cloned().unwrap_or_default())
    }

    fn attributes(&self, id: EntityId) -> Result<Value, EngineError> {
        Ok(Value::Map(self.entity(id)?.attributes.clone()))
    }

    fn set_attribute(&mut self, id: EntityId, name: &str, value: Value) -> Result<(), EngineError> {
        let entity = self.entity_mut(id)?;
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
        self.details_changed(id);
        Ok(())
    }

    fn set_tag(&mut self, id: EntityId, tag: &str, on: bool) -> Result<(), EngineError> {
        let tags = &mut self.entity_mut(id)?.tags;
        tags.retain(|known| known != tag);
        if tag == ALWAYS_RELEVANT {
            self.replicate(id);
        }
        let tags = &mut self.entity_mut(id)?.tags;
        if on {
            if tags.len() >= TAGS_MAX {
                return Err(EngineError::Limit(format!("{TAGS_MAX} tags on one entity")));
            }
            tags.push(tag.to_owned());
            self.registry.name(id, tag);
        } else {
            self.unindex(id, tag);
        }
        Ok(())
    }

    fn move_to(&mut self, id: EntityId, to: [f32; 3], seconds: f32) -> Result<(), EngineError> {
        if self.is_npc(id) {
            let advice = "this is an NPC; use entity.Npc.MoveTo, or set its Position".to_owned();
            return Err(EngineError::Refused(advice));
        }
        let (tick_hz, tick) = (self.tick_hz as f32, self.tick);
        if self.bodies.is_dynamic(id) {
            let advice = "physics moves a dynamic body: use SetVelocity or ApplyImpulse, set \
                          Position to put it elsewhere, or make its Body kinematic";
            return Err(EngineError::Refused(advice.to_owned()));
        }
        let entity = self.movable(id)?;
        let offset = Vec3::from(to) - entity.position;
        let ticks = (seconds.max(0.0) * tick_hz).round().min(1e6) as u32;
        if ticks == 0 {
            let pose = Pose::from_parts(Vec3::from(to), entity.rotation);
            entity.motion = None;
            self.place(id, pose);
        } else {
            debug_assert!(tick.checked_add(ticks).is_some());
            self.set_motion(id, offset, ticks);
        }
        Ok(())
    }

    fn set_velocity(&mut self, id: EntityId, velocity: [f32; 3]) -> Result<(), EngineError> {
        let velocity = Vec3::from(velocity);
        if self.push_npc(id, velocity) {
            return Ok(());
        }
        self.solid_changed(id);
        let entity = self.entity_mut(id)?;
        entity.velocity = velocity;
        if let Some(player) = entity.player {
            let character = &mut self.player_mut(player)?.character;
            character.velocity = velocity;
            character.ground = None;
            return Ok(());
        }
        entity.motion = None;
        self.replicate(id);
        if self.set_body_velocity(id, velocity) {
            return Ok(());
        }
        if velocity == Vec3::ZERO {
            self.moving.remove(&id);
            if let Some(entity) = self.alive(id) {
                let solid = entity.solid_pose();
                self.collision.move_to(id, solid);
            }
            self.solid_changed(id);
        } else {
            self.moving.insert(id);
        }
        Ok(())
    }

    fn apply_impulse(&mut self, id: EntityId, impulse: [f32; 3]) -> Result<(), EngineError> {
        self.entity(id)?;
        if self.push_body(id, Vec3::from(impulse)) {
            return Ok(());
        }
        let entity = self.entity(id)?;
        let mass = entity
            .components
            .body
            .as_ref()
            .map_or(1.0, |body| body.mass);
        let velocity = entity.velocity + Vec3::from(impulse) / mass.max(1e-3);
        self.set_velocity(id, velocity.to_array())
    }

    fn find(&self, name_or_tag: &str) -> Vec<EntityId> {
        self.registry.named(name_or_tag)
    }

    fn of_type(&self, kind: &str) -> Vec<EntityId> {
        self.registry.of_type(kind)
    }

    fn in_radius(&self, center: [f32; 3], radius: f32) -> Vec<EntityId> {
        self.find_near(Vec3::from(center), radius, None)
    }

    fn in_radius_seen_by(&self, center: [f32; 3], radius: f32, player: PlayerId) -> Vec<EntityId> {
        self.find_near(Vec3::from(center), radius, Some(player))
    }

    fn raycast(&self, request: &RaycastRequest) -> Option<RaycastHit> {
        self.find_along(request)
    }

    fn surface(&self, entity: EntityId) -> Option<&'static str> {
        let material = self.entity(entity).ok()?.components.material.as_ref();
        Some(
            material
                .map_or(Pattern::Plain, |material| material.pattern)
                .name(),
        )
    }

    fn terrain_info(&self) -> Result<TerrainInfo, EngineError> {
        self.script_terrain_info()
    }

    fn terrain_block(&self, at: [f32; 3]) -> Result<Material, EngineError> {
        self.script_terrain_block(at)
    }

    fn terrain_height(&self, x: f32, z: f32) -> Result<Option<f32>, EngineError> {
        self.script_terrain_height(x, z)
    }

    fn terrain_raycast(
        &self,
        origin: [f32; 3],
        direction: [f32; 3],
        distance_max: f32,
    ) -> Result<Option<TerrainHit>, EngineError> {
        self.script_terrain_raycast(origin, direction, distance_max)
    }

    fn terraform(&mut self, op: &Op) -> Result<bool, EngineError> {
        self.script_terraform(op)
    }

    fn players(&self) -> Vec<PlayerId> {
        let online = self.players.values().filter(|player| player.online);
        online.map(|player| player.number).collect()
    }

    fn player_property(
        &self,
        id: PlayerId,
        property: PlayerProperty,
    ) -> Result<Value, EngineError> {
        let player = self.player(id)?;
        Ok(match property {
            PlayerProperty::Name => Value::String(player.name.clone()),
            PlayerProperty::UserId => Value::String(player.id.clone()),
            PlayerProperty::Character => match self.alive(player.entity) {
                Some(_) => Value::Entity(player.entity),
                None => Value::Nil,
            },
            PlayerProperty::Health => Value::Number(player.health),
            PlayerProperty::MaxHealth => Value::Number(player.health_max),
            PlayerProperty::Team => player.team.clone().map_or(Value::Nil, Value::String),
        })
    }

    fn set_player_property(
        &mut self,
        id: PlayerId,
        property: PlayerProperty,
        value: Value,
    ) -> Result<(), EngineError> {
        let player = self.player_mut(id)?;
        match (property, value) {
            (PlayerProperty::Health, Value::Number(health)) => {
                player.health = health.clamp(0.0, player.health_max);
                if player.health <= 0.0 {
                    self.kill(id)?;
                }
            }
            (PlayerProperty::MaxHealth, Value::Number(max)) if max > 0.0 => {
                player.health_max = max;
                player.health = player.health.min(max);
            }
            (PlayerProperty::Team, value @ (Value::String(_) | Value::Nil)) => {
                let team = match value {
                    Value::String(team) => Some(team),
                    _ => None,
                };
                if player.team != team {
                    player.team = team;
                    self.restyled.insert(id);
                }
            }
            (PlayerProperty::Health, _) => return Err(wrong("Health", "number")),
            (PlayerProperty::MaxHealth, _) => return Err(wrong("MaxHealth", "number above 0")),
            (PlayerProperty::Team, _) => return Err(wrong("Team", "string")),
            (PlayerProperty::Name, _) => return Err(EngineError::ReadOnly("Name")),
            (PlayerProperty::UserId, _) => return Err(EngineError::ReadOnly("UserId")),
            (PlayerProperty::Character, _) => return Err(EngineError::ReadOnly("Character")),
        }
        Ok(())
    }

    fn player_stat(&self, id: PlayerId, name: &str) -> Result<Value, EngineError> {
        Ok(self
            .player(id)?
            .stats
            .get(name)
            .cloned()
            .unwrap_or_default())
    }

    fn player_stats(&self, id: PlayerId) -> Result<Value, EngineError> {
        let stats = self.player(id)?.stats.iter();
        let stats = stats.map(|(name, value)| (name.to_owned(), value.clone()));
        Ok(Value::Map(stats.collect()))
    }

    fn set_player_stat(
        &mut self,
        id: PlayerId,
        name: &str,
        value: Value,
    ) -> Result<(), EngineError> {
        let stats = &mut self.player_mut(id)?.stats;
        if stats.len() >= ATTRIBUTES_MAX && stats.get(name).is_none() {
            return Err(EngineError::Limit(format!("{ATTRIBUTES_MAX} leaderstats")));
        }
        let before = match value {
            Value::Nil => stats.remove(name),
            ref value => stats.insert(name, value.clone()),
        };
        if before.unwrap_or_default() != value {
            self.restyled.insert(id);
        }
        Ok(())
    }

    fn respawn(&mut self, id: PlayerId) -> Result<(), EngineError> {
        self.player(id)?;
        WorldState::respawn(self, id);
        Ok(())
    }

    fn kill(&mut self, id: PlayerId) -> Result<(), EngineError> {
        self.player(id)?;
        self.die(id, None, None);
        Ok(())
    }

    fn teleport(&mut self, id: PlayerId, to: [f32; 3]) -> Result<(), EngineError> {
        self.player(id)?;
        WorldState::teleport(self, id, Vec3::from(to));
        Ok(())
    }

    fn face(&mut self, id: PlayerId, place: [f32; 3]) -> Result<(), EngineError> {
        self.player(id)?;
        self.face_towards(id, Vec3::from(place));
        Ok(())
    }

    fn player_of_entity(&self, id: EntityId) -> Option<PlayerId> {
        self.alive(id)?.player
    }

    fn send(
        &mut self,
        to: Recipient,
        name: &str,
        args: Vec<Value>,
        reliable: bool,
    ) -> Result<(), EngineError> {
        let to = match to {
            Recipient::All => None,
            Recipient::One(player) => {
                self.player(player)?;
                Some(player)
            }
        };
        let (name, args) = (name.to_owned(), Args(args));
        let message = match reliable {
            true => ServerMessage::Event { name, args },
            false => ServerMessage::UnreliableEvent { name, args },
        };
        self.outbox.push(Outgoing {
            to,
            message,
            reliable,
        });
        Ok(())
    }

    fn reply(&mut self, player: PlayerId, invoke: u32, result: Result<Vec<Value>, String>) {
        self.outbox.push(Outgoing {
            to: Some(player),
            message: ServerMessage::InvokeResult {
                id: invoke,
                result: result.map(Args),
            },
            reliable: true,
        });
    }

    fn store(&mut self, request: StoreRequest) -> Result<(), EngineError> {
        if self.store_outbox.len() >= STORE_REQUESTS_MAX {
            let message = format!("{STORE_REQUESTS_MAX} requests to the store in one tick");
            return Err(EngineError::Limit(message));
        }
        self.store_requests += 1;
        self.store_outbox.push(request);
        Ok(())
    }

    fn npcs(&self) -> Vec<EntityId> {
        self.npcs.all.keys().copied().collect()
    }

    fn npc(&self, id: EntityId) -> Result<Option<NpcFacts>, EngineError> {
        self.npc_facts(id)
    }

    fn order_npc(&mut self, id: EntityId, order: NpcOrder) -> Result<(), EngineError> {
        WorldState::order_npc(self, id, order)
    }

    fn spells(&self) -> Vec<String> {
        self.spells.ids()
    }

    fn cast(&mut self, player: PlayerId, spell: &str, params: Value) -> Result<(), EngineError> {
        self.cast_spell(player, spell, None, params)
            .map_err(|refusal| EngineError::Refused(refusal.to_string()))
    }

    fn cast_done(&mut self, cast: u32, draws: u32, answers: Vec<Value>) {
        self.announce_cast(cast, draws, answers);
    }

    fn define_weapon(&mut self, name: &str, weapon: &WeaponSpec) -> Result<(), EngineError> {
        WorldState::define_weapon(self, name, weapon)
    }

    fn arm(&mut self, player: PlayerId, weapon: Option<&str>) -> Result<(), EngineError> {
        WorldState::arm(self, player, weapon)
    }

    fn weapon_of(&self, player: PlayerId) -> Option<String> {
        WorldState::weapon_of(self, player)
    }

    fn fire(&mut self, request: &FireRequest) -> Result<u32, EngineError> {
        WorldState::fire(self, request)
    }

    fn remove_projectile(&mut self, id: u32) -> bool {
        WorldState::remove_projectile(self, id)
    }

    fn projectiles(&self) -> usize {
        self.projectiles.flying.len()
    }

    fn is_alive(&self, player: PlayerId) -> bool {
        self.is_living(player)
    }

    fn respawn_seconds(&self) -> f64 {
        f64::from(self.respawn_ticks) / f64::from(self.tick_hz)
    }

    fn set_respawn_seconds(&mut self, seconds: f64) -> Result<(), EngineError> {
        self.respawn_ticks = (seconds * f64::from(self.tick_hz)).round() as u32;
        Ok(())
    }

    fn chat(
        &mut self,
        to: Recipient,
        from: Option<PlayerId>,
        text: &str,
    ) -> Result<(), EngineError> {
        self.write_chat(to, from, text)
    }

    fn log(&mut self, mut line: ScriptLog) {
        self.script_errors += u64::from(line.level == LogLevel::Error);
        if self.logs.len() < LOG_LINES_MAX {
            line.origin = Some(Origin {
                revision: self.revision.clone(),
                hash: self.script_hashes.get(&line.script).cloned(),
            });
            self.logs.push(line);
        }
    }
}
