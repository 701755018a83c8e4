//! Implements the script API on the world: [`Engine`] for [`WorldState`].

mod changes;
mod prefabs;

use std::rc::Rc;

use frolic_fleet_api::store::StoreRequest;
use frolic_protocol::{Args, ServerMessage, Value};
use frolic_scene::{ATTRIBUTES_MAX, Pattern, degrees_from_quaternion, quaternion_from_degrees};
use frolic_script::{
    BuildRequest, Built, Engine, EngineError, EntityId, FireRequest, NpcFacts, NpcOrder, PlayerId,
    PlayerProperty, Property, RaycastHit, RaycastRequest, Recipient, ScriptLog, SpawnRequest,
    SpawnSource, Spawned, TerrainHit, TerrainInfo, WeaponSpec,
};
use frolic_sim::{Pose, Rotation, Vec3};
use frolic_terrain::{Material, Op};

use self::changes::{color, color_of, vector, wrong};
use crate::characters;
use crate::entities::{Entity, NPCS_MAX, SPAWNED_MAX};
use crate::search::{find_along, find_near};
use crate::state::WorldState;
use crate::terrain::scripts as terrain;

impl Engine for WorldState {
    fn tick(&self) -> u64 {
        u64::from(self.space.tick)
    }

    fn time(&self) -> f64 {
        f64::from(self.space.tick) / f64::from(self.space.tick_hz)
    }

    fn wall_clock_ms(&self) -> u64 {
        let (ms, at) = self.wall_clock;
        let since = u64::from(self.space.tick.saturating_sub(at));
        ms + since * 1000 / u64::from(self.space.tick_hz.max(1))
    }

    fn gravity(&self) -> f32 {
        self.space.params.gravity
    }

    fn set_gravity(&mut self, gravity: f32) -> Result<(), EngineError> {
        let params = &mut self.space.params;
        if params.gravity != gravity {
            params.gravity = gravity;
            self.bodies.wake_all();
            let message = ServerMessage::Character(self.space.params);
            self.space.outbox.broadcast(message);
        }
        Ok(())
    }

    fn watch_touches(&mut self, id: EntityId) {
        if self.space.alive(id).is_some() {
            self.bodies.watch(id);
        }
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
        if components.npc.is_some() && !self.space.entities.has_room_for_npc() {
            let message = format!("{NPCS_MAX} NPCs; destroy some first");
            return Err(EngineError::Limit(message));
        }
        let parts = match &request.source {
            SpawnSource::Prefab(name) => self.definitions.parts(name),
            SpawnSource::Components(_) => Rc::default(),
        };
        self.check_room_for_parts(&parts)?;
        self.bodies
            .check_room_for(&self.space, &components, &transform)?;
        let scripts = components.script.iter().map(|s| s.path.clone()).collect();
        let entity = self
            .spawn(name, definition, components, &transform)
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
        let Self {
            structures,
            space,
            history,
            definitions,
            ..
        } = self;
        let built = structures.build(space, history, definitions, request)?;
        self.settle();
        Ok(built)
    }

    fn structures(&self, owner: Option<&str>) -> Vec<EntityId> {
        self.structures.entities_of(owner)
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
            self.history.check_room()?;
        }
        WorldState::destroy(self, id);
        Ok(())
    }

    fn exists(&self, id: EntityId) -> bool {
        self.space.alive(id).is_some()
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
                self.space.entities.rename(id, &name)?;
            }
            Property::Position => {
                let to = vector("Position", &value)?;
                if let Some(player) = self.entity(id)?.player {
                    characters::teleport(&mut self.space, player, to);
                    return Ok(());
                }
                self.bodies.check_room_at(&self.space, id, to)?;
                let pose = Pose::from_parts(to, self.movable(id)?.rotation);
                self.space.entities.stop_motion(id);
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
                self.movable(id)?;
                let entities = &mut self.space.entities;
                entities.change_looks(id, |looks| looks.color = Some(color));
            }
            Property::Opacity => {
                let Value::Number(opacity) = value else {
                    return Err(wrong("Opacity", "number"));
                };
                self.movable(id)?;
                let opacity = opacity.clamp(0.0, 1.0) as f32;
                let entities = &mut self.space.entities;
                entities.change_looks(id, |looks| looks.opacity = Some(opacity));
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
        self.space.entities.set_attribute(id, name, value)
    }

    fn set_tag(&mut self, id: EntityId, tag: &str, on: bool) -> Result<(), EngineError> {
        self.space.entities.set_tag(id, tag, on)
    }

    fn move_to(&mut self, id: EntityId, to: [f32; 3], seconds: f32) -> Result<(), EngineError> {
        if self.space.entities.npcs().contains(&id) {
            let advice = "this is an NPC; use entity.Npc.MoveTo, or set its Position".to_owned();
            return Err(EngineError::Refused(advice));
        }
        let (tick, tick_hz) = self.space.time();
        if self.bodies.is_dynamic(id) {
            let advice = "physics moves a dynamic body: use SetVelocity or ApplyImpulse, set \
                          Position to put it elsewhere, or make its Body kinematic";
            return Err(EngineError::Refused(advice.to_owned()));
        }
        let entity = self.movable(id)?;
        let offset = Vec3::from(to) - entity.position;
        let ticks = (seconds.max(0.0) * tick_hz as f32).round().min(1e6) as u32;
        if ticks == 0 {
            let pose = Pose::from_parts(Vec3::from(to), entity.rotation);
            self.space.entities.stop_motion(id);
            self.place(id, pose);
        } else {
            debug_assert!(tick.checked_add(ticks).is_some());
            self.set_motion(id, offset, ticks);
            self.settle();
        }
        Ok(())
    }

    fn set_velocity(&mut self, id: EntityId, velocity: [f32; 3]) -> Result<(), EngineError> {
        let velocity = Vec3::from(velocity);
        if self.npcs.push(&mut self.space, id, velocity) {
            return Ok(());
        }
        let space = &mut self.space;
        space.solid_changed(id);
        let entity = space.entities.alive(id);
        let player = entity.ok_or(EngineError::NoSuchEntity(id))?.player;
        space.entities.set_velocity(id, velocity);
        if let Some(player) = player {
            let gait = &mut space.player_mut(player)?.gait;
            gait.velocity = velocity;
            gait.ground = None;
            return Ok(());
        }
        space.entities.stop_motion(id);
        space.entities.replicate(id);
        if self.bodies.set_velocity(id, velocity) {
            self.settle();
            return Ok(());
        }
        let moves = velocity != Vec3::ZERO;
        space.entities.set_moving(id, moves);
        if !moves {
            if let Some(solid) = space.alive(id).map(Entity::solid_pose) {
                space.collision.move_to(id, solid);
            }
            space.solid_changed(id);
        }
        self.settle();
        Ok(())
    }

    fn apply_impulse(&mut self, id: EntityId, impulse: [f32; 3]) -> Result<(), EngineError> {
        self.entity(id)?;
        if let Some(velocity) = self.bodies.push_at_centre(id, Vec3::from(impulse)) {
            self.space.entities.set_velocity(id, velocity);
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
        self.space.entities.index().named(name_or_tag)
    }

    fn of_type(&self, kind: &str) -> Vec<EntityId> {
        self.space.entities.index().of_type(kind)
    }

    fn in_radius(&self, center: [f32; 3], radius: f32) -> Vec<EntityId> {
        self.space.entities.near(Vec3::from(center), radius)
    }

    fn in_radius_seen_by(&self, center: [f32; 3], radius: f32, player: PlayerId) -> Vec<EntityId> {
        find_near(&self.space, Vec3::from(center), radius, player)
    }

    fn raycast(&self, request: &RaycastRequest) -> Option<RaycastHit> {
        find_along(&self.space, request)
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
        terrain::info(&self.space)
    }

    fn terrain_block(&self, at: [f32; 3]) -> Result<Material, EngineError> {
        terrain::block(&self.space, at)
    }

    fn terrain_height(&self, x: f32, z: f32) -> Result<Option<f32>, EngineError> {
        terrain::height(&self.space, x, z)
    }

    fn terrain_raycast(
        &self,
        origin: [f32; 3],
        direction: [f32; 3],
        distance_max: f32,
    ) -> Result<Option<TerrainHit>, EngineError> {
        terrain::raycast(&self.space, origin, direction, distance_max)
    }

    fn terraform(&mut self, op: &Op) -> Result<bool, EngineError> {
        self.ground
            .terraform_by_script(&mut self.space, &mut self.history, op)
    }

    fn players(&self) -> Vec<PlayerId> {
        self.space.online().map(|player| player.number).collect()
    }

    fn player_property(
        &self,
        id: PlayerId,
        property: PlayerProperty,
    ) -> Result<Value, EngineError> {
        let player = self.space.player(id)?;
        Ok(match property {
            PlayerProperty::Name => Value::String(player.name.clone()),
            PlayerProperty::UserId => Value::String(player.id.clone()),
            PlayerProperty::Character => match self.space.alive(player.entity) {
                Some(_) => Value::Entity(player.entity),
                None => Value::Nil,
            },
            PlayerProperty::Health => Value::Number(player.vitality.health),
            PlayerProperty::MaxHealth => Value::Number(player.vitality.health_max),
            PlayerProperty::Team => player.style.team.clone().map_or(Value::Nil, Value::String),
        })
    }

    fn set_player_property(
        &mut self,
        id: PlayerId,
        property: PlayerProperty,
        value: Value,
    ) -> Result<(), EngineError> {
        let player = self.space.player_mut(id)?;
        match (property, value) {
            (PlayerProperty::Health, Value::Number(health)) => {
                player.vitality.health = health.clamp(0.0, player.vitality.health_max);
                if player.vitality.health <= 0.0 {
                    self.kill(id)?;
                }
            }
            (PlayerProperty::MaxHealth, Value::Number(max)) if max > 0.0 => {
                player.vitality.health_max = max;
                player.vitality.health = player.vitality.health.min(max);
            }
            (PlayerProperty::Team, value @ (Value::String(_) | Value::Nil)) => {
                let team = match value {
                    Value::String(team) => Some(team),
                    _ => None,
                };
                if player.style.team != team {
                    player.style.team = team;
                    self.space.presence.restyle(id);
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
            .space
            .player(id)?
            .style
            .stats
            .get(name)
            .cloned()
            .unwrap_or_default())
    }

    fn player_stats(&self, id: PlayerId) -> Result<Value, EngineError> {
        let stats = self.space.player(id)?.style.stats.iter();
        let stats = stats.map(|(name, value)| (name.to_owned(), value.clone()));
        Ok(Value::Map(stats.collect()))
    }

    fn set_player_stat(
        &mut self,
        id: PlayerId,
        name: &str,
        value: Value,
    ) -> Result<(), EngineError> {
        let stats = &mut self.space.player_mut(id)?.style.stats;
        if stats.len() >= ATTRIBUTES_MAX && stats.get(name).is_none() {
            return Err(EngineError::Limit(format!("{ATTRIBUTES_MAX} leaderstats")));
        }
        let before = match value {
            Value::Nil => stats.remove(name),
            ref value => stats.insert(name, value.clone()),
        };
        if before.unwrap_or_default() != value {
            self.space.presence.restyle(id);
        }
        Ok(())
    }

    fn respawn(&mut self, id: PlayerId) -> Result<(), EngineError> {
        self.space.player(id)?;
        self.characters.respawn(&mut self.space, id);
        Ok(())
    }

    fn kill(&mut self, id: PlayerId) -> Result<(), EngineError> {
        self.space.player(id)?;
        self.characters.die(&mut self.space, id, None, None);
        Ok(())
    }

    fn teleport(&mut self, id: PlayerId, to: [f32; 3]) -> Result<(), EngineError> {
        self.space.player(id)?;
        characters::teleport(&mut self.space, id, Vec3::from(to));
        Ok(())
    }

    fn face(&mut self, id: PlayerId, place: [f32; 3]) -> Result<(), EngineError> {
        self.space.player(id)?;
        characters::face_towards(&mut self.space, id, Vec3::from(place));
        Ok(())
    }

    fn player_of_entity(&self, id: EntityId) -> Option<PlayerId> {
        self.space.alive(id)?.player
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
                self.space.player(player)?;
                Some(player)
            }
        };
        let (name, args) = (name.to_owned(), Args(args));
        let outbox = &mut self.space.outbox;
        match reliable {
            true => outbox.send(to, ServerMessage::Event { name, args }),
            false => outbox.send_unreliable(to, ServerMessage::UnreliableEvent { name, args }),
        }
        Ok(())
    }

    fn reply(&mut self, player: PlayerId, invoke: u32, result: Result<Vec<Value>, String>) {
        let message = ServerMessage::InvokeResult {
            id: invoke,
            result: result.map(Args),
        };
        self.space.outbox.send(Some(player), message);
    }

    fn store(&mut self, request: StoreRequest) -> Result<(), EngineError> {
        self.store.push(request)
    }

    fn npcs(&self) -> Vec<EntityId> {
        self.space.entities.npcs().iter().copied().collect()
    }

    fn npc(&self, id: EntityId) -> Result<Option<NpcFacts>, EngineError> {
        self.npcs.facts(&self.space, id)
    }

    fn order_npc(&mut self, id: EntityId, order: NpcOrder) -> Result<(), EngineError> {
        self.npcs.order(&self.space, id, order)
    }

    fn spells(&self) -> Vec<String> {
        self.spells.ids()
    }

    fn cast(&mut self, player: PlayerId, spell: &str, params: Value) -> Result<(), EngineError> {
        self.spells
            .cast(&mut self.space, player, spell, None, params)
            .map_err(|refusal| EngineError::Refused(refusal.to_string()))
    }

    fn cast_done(&mut self, cast: u32, draws: u32, answers: Vec<Value>) {
        let news = self
            .spells
            .announce(&mut self.space, (cast, draws), answers);
        if let Some(news) = news {
            self.visitors.report(news);
        }
    }

    fn define_weapon(&mut self, name: &str, weapon: &WeaponSpec) -> Result<(), EngineError> {
        self.projectiles.define(&mut self.space, name, weapon)
    }

    fn arm(&mut self, player: PlayerId, weapon: Option<&str>) -> Result<(), EngineError> {
        self.projectiles.arm(&mut self.space, player, weapon)
    }

    fn weapon_of(&self, player: PlayerId) -> Option<String> {
        self.projectiles.weapon_of(&self.space, player)
    }

    fn fire(&mut self, request: &FireRequest) -> Result<u32, EngineError> {
        self.projectiles.fire(&self.space, request)
    }

    fn remove_projectile(&mut self, id: u32) -> bool {
        self.projectiles
            .remove(&mut self.space, &self.characters, id)
    }

    fn projectiles(&self) -> usize {
        self.projectiles.flying.len()
    }

    fn is_alive(&self, player: PlayerId) -> bool {
        self.space.is_living(player)
    }

    fn respawn_seconds(&self) -> f64 {
        f64::from(self.characters.respawn_ticks) / f64::from(self.space.tick_hz)
    }

    fn set_respawn_seconds(&mut self, seconds: f64) -> Result<(), EngineError> {
        let ticks = seconds * f64::from(self.space.tick_hz);
        self.characters.respawn_ticks = ticks.round() as u32;
        Ok(())
    }

    fn chat(
        &mut self,
        to: Recipient,
        from: Option<PlayerId>,
        text: &str,
    ) -> Result<(), EngineError> {
        let space = &mut self.space;
        let (from, player_id) = match from {
            Some(number) => {
                let player = space.player(number)?;
                (player.name.clone(), player.id.clone())
            }
            None => Default::default(),
        };
        let to = match to {
            Recipient::All => None,
            Recipient::One(number) => Some(space.player(number)?.number),
        };
        let text = text.to_owned();
        let message = ServerMessage::Chat {
            from,
            text,
            player_id,
        };
        space.outbox.send(to, message);
        Ok(())
    }

    fn log(&mut self, line: ScriptLog) {
        self.space.console.log(line);
    }
}
