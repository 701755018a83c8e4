//! A small world for tests: entities in a map, everything that scripts did in
//! plain sight.
#![allow(dead_code, reason = "each test program uses a part of this")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use frolic_fleet_api::store::StoreRequest;
use frolic_protocol::Value;
use frolic_script::{
    Attachment, BuildRequest, Built, CompiledScript, Engine, EngineError, EntityId, FireRequest,
    LogLevel, MemoryStore, NpcFacts, NpcOrder, NpcState, PlayerId, PlayerProperty, Property,
    RaycastHit, RaycastRequest, Recipient, ScriptEvent, ScriptLog, SpawnRequest, SpawnSource,
    Spawned, TerrainHit, TerrainInfo, Vm, VmLimits, WeaponSpec, compile,
};
use frolic_terrain::{Generator, Material, Op, Settings, Terrain};

#[derive(Default)]
pub struct FakeEntity {
    pub properties: BTreeMap<String, Value>,
    pub attributes: BTreeMap<String, Value>,
    pub tags: Vec<String>,
    pub impulses: Vec<[f32; 3]>,
    pub moves: Vec<([f32; 3], f32)>,
}

#[derive(Default)]
pub struct FakePlayer {
    pub properties: BTreeMap<String, Value>,
    pub stats: BTreeMap<String, Value>,
    pub deeds: Vec<String>,
}

#[derive(Default)]
pub struct FakeWorld {
    pub tick: u64,
    pub time: f64,
    pub gravity: f32,
    pub entities: BTreeMap<EntityId, FakeEntity>,
    pub players: BTreeMap<PlayerId, FakePlayer>,
    pub sent: Vec<(Recipient, String, Vec<Value>, bool)>,
    pub replies: Vec<(PlayerId, u32, Result<Vec<Value>, String>)>,
    pub logs: Vec<ScriptLog>,
    /// Draws and answers of spells that have run.
    pub casts_done: Vec<(u32, Vec<Value>)>,
    pub spawned: Vec<SpawnRequest>,
    pub destroyed: Vec<EntityId>,
    /// Scripts of the prefab "Scripted".
    pub prefab_scripts: Vec<String>,
    /// Requests of scripts to the store without an answer.
    pub store_requests: Vec<StoreRequest>,
    pub store: MemoryStore,
    /// The structures, their owners, and the newest persisted operation.
    pub built: BTreeMap<EntityId, Option<String>>,
    pub newest_op: u64,
    pub persisted_op: u64,
    pub weapons: BTreeMap<String, WeaponSpec>,
    pub armed: BTreeMap<PlayerId, String>,
    pub shots: BTreeMap<u32, FireRequest>,
    pub fired: u32,
    pub respawn_s: f64,
    pub chat: Vec<(Recipient, Option<PlayerId>, String)>,
    /// The state of entity 5, the guard, and whether a script controls it.
    pub npc: (NpcState, bool),
    /// Stone below y = 0.
    pub terrain: TestTerrain,
    next_id: EntityId,
}

/// A terrain with a default.
pub struct TestTerrain(Terrain);

impl Default for TestTerrain {
    fn default() -> Self {
        let rock = Generator::Flat {
            height: 32,
            surface: Material::STONE,
            soil: Material::STONE,
            rock: Material::STONE,
        };
        let mut settings = Settings::new([64, 64, 64], rock);
        settings.origin = Some([-32, -32, -32]);
        Self(Terrain::new(&settings))
    }
}

impl std::ops::Deref for TestTerrain {
    type Target = Terrain;

    fn deref(&self) -> &Terrain {
        &self.0
    }
}

impl std::ops::DerefMut for TestTerrain {
    fn deref_mut(&mut self) -> &mut Terrain {
        &mut self.0
    }
}

impl FakeWorld {
    /// Ground (1), a kill brick (2), a guard who is an NPC (5) and the character (10) of player 7.
    pub fn new() -> FakeWorld {
        let mut world = FakeWorld {
            gravity: 20.0,
            next_id: 1_000_001,
            ..FakeWorld::default()
        };
        for (id, name, tag) in [
            (1, "Ground", ""),
            (2, "KillBrick", "deadly"),
            (5, "Guard", ""),
            (10, "Ada", ""),
        ] {
            let mut entity = FakeEntity::default();
            let text = |s: &str| Value::String(s.to_owned());
            entity.properties.insert("Name".into(), text(name));
            entity
                .properties
                .insert("Position".into(), Value::Vector([id as f32, 0.0, 0.0]));
            entity
                .properties
                .insert("Velocity".into(), Value::Vector([0.0; 3]));
            entity
                .tags
                .extend((!tag.is_empty()).then(|| tag.to_owned()));
            world.entities.insert(id, entity);
        }
        world.add_player(7, "Ada", 10);
        world
    }

    pub fn add_player(&mut self, id: PlayerId, name: &str, character: EntityId) {
        let mut player = FakePlayer::default();
        let mut set = |key: &str, value| player.properties.insert(key.to_owned(), value);
        set("Name", Value::String(name.to_owned()));
        set("UserId", Value::String(format!("user-{id}")));
        set("Character", Value::Entity(character));
        set("Health", Value::Number(100.0));
        set("MaxHealth", Value::Number(100.0));
        self.players.insert(id, player);
    }

    pub fn messages(&self, level: LogLevel) -> Vec<String> {
        let of_level = self.logs.iter().filter(|line| line.level == level);
        of_level.map(|line| line.message.clone()).collect()
    }

    fn entity(&self, id: EntityId) -> Result<&FakeEntity, EngineError> {
        self.entities.get(&id).ok_or(EngineError::NoSuchEntity(id))
    }

    fn entity_mut(&mut self, id: EntityId) -> Result<&mut FakeEntity, EngineError> {
        self.entities
            .get_mut(&id)
            .ok_or(EngineError::NoSuchEntity(id))
    }

    fn player(&self, id: PlayerId) -> Result<&FakePlayer, EngineError> {
        self.players.get(&id).ok_or(EngineError::NoSuchPlayer(id))
    }

    fn player_mut(&mut self, id: PlayerId) -> Result<&mut FakePlayer, EngineError> {
        self.players
            .get_mut(&id)
            .ok_or(EngineError::NoSuchPlayer(id))
    }
}

impl Engine for FakeWorld {
    fn tick(&self) -> u64 {
        self.tick
    }
    fn time(&self) -> f64 {
        self.time
    }
    /// Noon of a day in November.
    fn wall_clock_ms(&self) -> u64 {
        1_794_830_400_000
    }
    fn gravity(&self) -> f32 {
        self.gravity
    }
    fn set_gravity(&mut self, gravity: f32) -> Result<(), EngineError> {
        self.gravity = gravity;
        Ok(())
    }

    fn spawn(&mut self, request: &SpawnRequest) -> Result<Spawned, EngineError> {
        self.spawned.push(request.clone());
        let mut scripts = Vec::new();
        let name = match &request.source {
            SpawnSource::Prefab(name) if name == "Scripted" => {
                scripts.clone_from(&self.prefab_scripts);
                name.clone()
            }
            SpawnSource::Prefab(name) if name == "Bullet" => name.clone(),
            SpawnSource::Prefab(name) => return Err(EngineError::NoSuchPrefab(name.clone())),
            SpawnSource::Components(_) => "Made".to_owned(),
        };
        let id = self.next_id;
        self.next_id += 1;
        let mut entity = FakeEntity::default();
        entity.properties.insert("Name".into(), Value::String(name));
        let position = request.position.unwrap_or_default();
        entity
            .properties
            .insert("Position".into(), Value::Vector(position));
        self.entities.insert(id, entity);
        Ok(Spawned {
            entity: id,
            scripts,
            below: Vec::new(),
        })
    }
    fn build(&mut self, request: &BuildRequest) -> Result<Built, EngineError> {
        let spawned = self.spawn(&SpawnRequest {
            source: SpawnSource::Prefab(request.prefab.clone()),
            position: Some(request.position),
        })?;
        self.newest_op += 1;
        self.built.insert(spawned.entity, request.owner.clone());
        Ok(Built {
            entity: spawned.entity,
            scripts: spawned.scripts,
            seq: self.newest_op,
        })
    }
    fn structures(&self, owner: Option<&str>) -> Vec<EntityId> {
        let built = self.built.iter();
        let built = built.filter(|(id, _)| self.entities.contains_key(*id));
        built
            .filter(|(_, of)| owner.is_none_or(|owner| of.as_deref() == Some(owner)))
            .map(|(id, _)| *id)
            .collect()
    }
    fn built_by(&self, entity: EntityId) -> Option<String> {
        self.built.get(&entity)?.clone()
    }
    fn newest_op(&self) -> u64 {
        self.newest_op
    }
    fn persisted_op(&self) -> u64 {
        self.persisted_op
    }
    fn destroy(&mut self, entity: EntityId) -> Result<(), EngineError> {
        self.entity(entity)?;
        self.entities.remove(&entity);
        self.destroyed.push(entity);
        Ok(())
    }
    fn exists(&self, entity: EntityId) -> bool {
        self.entities.contains_key(&entity)
    }

    fn property(&self, entity: EntityId, property: Property) -> Result<Value, EngineError> {
        let found = self.entity(entity)?;
        Ok(match property {
            Property::Tags => Value::List(found.tags.iter().cloned().map(Value::String).collect()),
            Property::Children => Value::List(
                self.entities
                    .iter()
                    .filter(|(_, e)| e.properties.get("Parent") == Some(&Value::Entity(entity)))
                    .map(|(id, _)| Value::Entity(*id))
                    .collect(),
            ),
            other => {
                let stored = found.properties.get(&format!("{other:?}"));
                stored.cloned().unwrap_or_default()
            }
        })
    }
    fn set_property(
        &mut self,
        entity: EntityId,
        property: Property,
        value: Value,
    ) -> Result<(), EngineError> {
        let properties = &mut self.entity_mut(entity)?.properties;
        properties.insert(format!("{property:?}"), value);
        Ok(())
    }
    fn attribute(&self, entity: EntityId, name: &str) -> Result<Value, EngineError> {
        let stored = self.entity(entity)?.attributes.get(name);
        Ok(stored.cloned().unwrap_or_default())
    }
    fn attributes(&self, entity: EntityId) -> Result<Value, EngineError> {
        Ok(Value::Map(self.entity(entity)?.attributes.clone()))
    }
    fn set_attribute(
        &mut self,
        entity: EntityId,
        name: &str,
        value: Value,
    ) -> Result<(), EngineError> {
        let attributes = &mut self.entity_mut(entity)?.attributes;
        attributes.insert(name.to_owned(), value);
        Ok(())
    }
    fn set_tag(&mut self, entity: EntityId, tag: &str, on: bool) -> Result<(), EngineError> {
        let tags = &mut self.entity_mut(entity)?.tags;
        tags.retain(|t| t != tag);
        if on {
            tags.push(tag.to_owned());
        }
        Ok(())
    }

    fn move_to(&mut self, id: EntityId, to: [f32; 3], seconds: f32) -> Result<(), EngineError> {
        self.entity_mut(id)?.moves.push((to, seconds));
        Ok(())
    }
    fn set_velocity(&mut self, id: EntityId, velocity: [f32; 3]) -> Result<(), EngineError> {
        self.set_property(id, Property::Velocity, Value::Vector(velocity))
    }
    fn apply_impulse(&mut self, id: EntityId, impulse: [f32; 3]) -> Result<(), EngineError> {
        self.entity_mut(id)?.impulses.push(impulse);
        Ok(())
    }

    fn find(&self, wanted: &str) -> Vec<EntityId> {
        let name = Value::String(wanted.to_owned());
        self.entities
            .iter()
            .filter(|(_, e)| {
                e.properties.get("Name") == Some(&name) || e.tags.iter().any(|t| t == wanted)
            })
            .map(|(id, _)| *id)
            .collect()
    }
    /// Everything deadly here is a trigger.
    fn of_type(&self, kind: &str) -> Vec<EntityId> {
        if kind == "Trigger" {
            return self.find("deadly");
        }
        Vec::new()
    }
    fn in_radius(&self, center: [f32; 3], radius: f32) -> Vec<EntityId> {
        self.entities
            .iter()
            .filter(|(_, e)| match e.properties.get("Position") {
                Some(Value::Vector(p)) => (p[0] - center[0]).abs() <= radius,
                _ => false,
            })
            .map(|(id, _)| *id)
            .collect()
    }
    /// A player saw everything but their own character.
    fn in_radius_seen_by(&self, center: [f32; 3], radius: f32, player: PlayerId) -> Vec<EntityId> {
        let mut found = self.in_radius(center, radius);
        found.retain(|id| self.player_of_entity(*id) != Some(player));
        found
    }
    fn surface(&self, _entity: EntityId) -> Option<&'static str> {
        Some("plain")
    }

    fn raycast(&self, request: &RaycastRequest) -> Option<RaycastHit> {
        if let Some(player) = request.seen_by {
            return Some(RaycastHit {
                entity: 2,
                position: request.origin,
                normal: [0.0, 1.0, 0.0],
                distance: player as f32,
            });
        }
        let down = request.direction[1] < -0.5 && request.distance_max >= request.origin[1];
        if down && request.ignore.contains(&1) && request.origin[0] > 20.0 {
            return Some(RaycastHit {
                entity: 0,
                position: [request.origin[0], 0.0, request.origin[2]],
                normal: [0.0, 1.0, 0.0],
                distance: request.origin[1],
            });
        }
        (down && !request.ignore.contains(&1)).then(|| RaycastHit {
            entity: 1,
            position: [request.origin[0], 0.0, request.origin[2]],
            normal: [0.0, 1.0, 0.0],
            distance: request.origin[1],
        })
    }

    fn terrain_info(&self) -> Result<TerrainInfo, EngineError> {
        let [min, max] = self.terrain.grid().bounds_m();
        let block_size = self.terrain.grid().block_m();
        Ok(TerrainInfo {
            min,
            max,
            block_size,
        })
    }
    fn terrain_block(&self, at: [f32; 3]) -> Result<Material, EngineError> {
        Ok(self.terrain.block(self.terrain.grid().block_at(at)))
    }
    fn terrain_height(&self, x: f32, z: f32) -> Result<Option<f32>, EngineError> {
        Ok(self.terrain.height_at(x, z))
    }
    fn terrain_raycast(
        &self,
        origin: [f32; 3],
        direction: [f32; 3],
        distance_max: f32,
    ) -> Result<Option<TerrainHit>, EngineError> {
        let hit = self.terrain.raycast(origin, direction, distance_max);
        Ok(hit.map(|hit| TerrainHit::new(self.terrain.grid(), &hit, origin, direction)))
    }
    fn terraform(&mut self, op: &Op) -> Result<bool, EngineError> {
        Ok(!self.terrain.apply(op).is_empty())
    }

    fn players(&self) -> Vec<PlayerId> {
        self.players.keys().copied().collect()
    }
    fn player_property(
        &self,
        player: PlayerId,
        property: PlayerProperty,
    ) -> Result<Value, EngineError> {
        let stored = self
            .player(player)?
            .properties
            .get(&format!("{property:?}"));
        Ok(stored.cloned().unwrap_or_default())
    }
    fn set_player_property(
        &mut self,
        player: PlayerId,
        property: PlayerProperty,
        value: Value,
    ) -> Result<(), EngineError> {
        let properties = &mut self.player_mut(player)?.properties;
        properties.insert(format!("{property:?}"), value);
        Ok(())
    }
    fn player_stat(&self, player: PlayerId, name: &str) -> Result<Value, EngineError> {
        let stored = self.player(player)?.stats.get(name);
        Ok(stored.cloned().unwrap_or_default())
    }
    fn player_stats(&self, player: PlayerId) -> Result<Value, EngineError> {
        Ok(Value::Map(self.player(player)?.stats.clone()))
    }
    fn set_player_stat(
        &mut self,
        player: PlayerId,
        name: &str,
        value: Value,
    ) -> Result<(), EngineError> {
        self.player_mut(player)?
            .stats
            .insert(name.to_owned(), value);
        Ok(())
    }
    fn respawn(&mut self, player: PlayerId) -> Result<(), EngineError> {
        self.player_mut(player)?.deeds.push("respawn".to_owned());
        Ok(())
    }
    fn kill(&mut self, player: PlayerId) -> Result<(), EngineError> {
        self.player_mut(player)?.deeds.push("kill".to_owned());
        Ok(())
    }
    fn teleport(&mut self, player: PlayerId, to: [f32; 3]) -> Result<(), EngineError> {
        let deed = format!("teleport {} {} {}", to[0], to[1], to[2]);
        self.player_mut(player)?.deeds.push(deed);
        Ok(())
    }
    fn player_of_entity(&self, entity: EntityId) -> Option<PlayerId> {
        let wanted = Value::Entity(entity);
        self.players
            .iter()
            .find(|(_, p)| p.properties.get("Character") == Some(&wanted))
            .map(|(id, _)| *id)
    }

    fn send(
        &mut self,
        to: Recipient,
        name: &str,
        args: Vec<Value>,
        reliable: bool,
    ) -> Result<(), EngineError> {
        self.sent.push((to, name.to_owned(), args, reliable));
        Ok(())
    }
    fn reply(&mut self, player: PlayerId, invoke: u32, result: Result<Vec<Value>, String>) {
        self.replies.push((player, invoke, result));
    }
    fn store(&mut self, request: StoreRequest) -> Result<(), EngineError> {
        self.store_requests.push(request);
        Ok(())
    }
    fn npcs(&self) -> Vec<EntityId> {
        let guard = self.entities.contains_key(&5);
        guard.then_some(5).into_iter().collect()
    }
    fn npc(&self, entity: EntityId) -> Result<Option<NpcFacts>, EngineError> {
        self.entity(entity)?;
        Ok((entity == 5).then_some(NpcFacts {
            state: self.npc.0,
            target: None,
            suspicion: 0.0,
            overridden: self.npc.1,
        }))
    }
    /// Records the order.
    fn order_npc(&mut self, entity: EntityId, order: NpcOrder) -> Result<(), EngineError> {
        let text = match order {
            NpcOrder::MoveTo { to, run } => format!("MoveTo {to:?} {run}"),
            NpcOrder::LookAt(place) => format!("LookAt {}", place.is_some()),
            NpcOrder::Patrol(places) => format!("Patrol {}", places.len()),
            NpcOrder::SetState(state) => {
                self.npc = (state, true);
                format!("SetState {}", state.name())
            }
            NpcOrder::Release => {
                self.npc.1 = false;
                "Release".to_owned()
            }
            other => format!("{other:?}"),
        };
        let attributes = &mut self.entity_mut(entity)?.attributes;
        let before = match attributes.get("Orders") {
            Some(Value::String(before)) => before.clone(),
            _ => String::new(),
        };
        attributes.insert("Orders".into(), Value::String(format!("{before}{text}; ")));
        Ok(())
    }
    fn spells(&self) -> Vec<String> {
        vec!["agree".to_owned()]
    }
    fn cast(&mut self, _: PlayerId, spell: &str, _: Value) -> Result<(), EngineError> {
        match spell {
            "agree" => Ok(()),
            other => Err(EngineError::Refused(format!("there is no spell {other}"))),
        }
    }
    fn cast_done(&mut self, _: u32, draws: u32, answers: Vec<Value>) {
        self.casts_done.push((draws, answers));
    }
    fn define_weapon(&mut self, name: &str, weapon: &WeaponSpec) -> Result<(), EngineError> {
        self.weapons.insert(name.to_owned(), weapon.clone());
        Ok(())
    }
    fn arm(&mut self, player: PlayerId, weapon: Option<&str>) -> Result<(), EngineError> {
        self.player(player)?;
        match weapon {
            Some(name) if !self.weapons.contains_key(name) => {
                return Err(EngineError::Refused(format!("no weapon {name}")));
            }
            Some(name) => self.armed.insert(player, name.to_owned()),
            None => self.armed.remove(&player),
        };
        Ok(())
    }
    fn weapon_of(&self, player: PlayerId) -> Option<String> {
        self.armed.get(&player).cloned()
    }
    fn fire(&mut self, request: &FireRequest) -> Result<u32, EngineError> {
        if !self.weapons.contains_key(&request.weapon) {
            return Err(EngineError::Refused("no such weapon".to_owned()));
        }
        self.fired += 1;
        self.shots.insert(self.fired, request.clone());
        Ok(self.fired)
    }
    fn remove_projectile(&mut self, id: u32) -> bool {
        self.shots.remove(&id).is_some()
    }
    fn projectiles(&self) -> usize {
        self.shots.len()
    }
    fn respawn_seconds(&self) -> f64 {
        self.respawn_s
    }
    fn set_respawn_seconds(&mut self, seconds: f64) -> Result<(), EngineError> {
        self.respawn_s = seconds;
        Ok(())
    }
    fn chat(
        &mut self,
        to: Recipient,
        from: Option<PlayerId>,
        text: &str,
    ) -> Result<(), EngineError> {
        self.chat.push((to, from, text.to_owned()));
        Ok(())
    }
    fn log(&mut self, line: ScriptLog) {
        self.logs.push(line);
    }
}

/// A VM over a fake world.
pub struct Stage {
    pub world: Rc<RefCell<FakeWorld>>,
    pub vm: Vm,
}

impl Stage {
    pub fn new() -> Stage {
        Stage::with_limits(VmLimits::default())
    }

    pub fn with_limits(limits: VmLimits) -> Stage {
        let world = Rc::new(RefCell::new(FakeWorld::new()));
        let mut vm = Vm::new(world.clone(), limits, 42).expect("the VM starts");
        vm.grant(["store".to_owned(), "chat".to_owned()]);
        Stage { world, vm }
    }

    /// Starts scripts given as (path, source).
    pub fn start(&mut self, sources: &[(&str, &str)]) {
        self.start_attached(sources, &[]);
    }

    pub fn start_attached(&mut self, sources: &[(&str, &str)], attached: &[(EntityId, &str)]) {
        let scripts: Vec<CompiledScript> = sources
            .iter()
            .map(|(path, source)| compile(path, source).expect("the test script compiles"))
            .collect();
        let attachments: Vec<Attachment> = attached
            .iter()
            .map(|(entity, script)| Attachment {
                entity: *entity,
                script: (*script).to_owned(),
            })
            .collect();
        self.vm.start(scripts, &attachments);
    }

    /// Steps world time, 60 ticks a second.
    pub fn ticks(&mut self, count: u32) {
        for _ in 0..count {
            {
                let mut world = self.world.borrow_mut();
                world.tick += 1;
                world.time += 1.0 / 60.0;
            }
            self.vm.tick(1.0 / 60.0);
        }
    }

    /// Persists everything built so far.
    pub fn persist_ops(&mut self) {
        let up_to = self.world.borrow().newest_op;
        if std::mem::replace(&mut self.world.borrow_mut().persisted_op, up_to) < up_to {
            self.vm.dispatch(ScriptEvent::OpsKept { up_to });
        }
    }

    /// Answers everything that scripts asked of the store so far.
    pub fn answer_store(&mut self) {
        let requests = std::mem::take(&mut self.world.borrow_mut().store_requests);
        for request in requests {
            let result = self.world.borrow_mut().store.apply(&request.action);
            self.vm.dispatch(ScriptEvent::StoreAnswer {
                id: request.id,
                result: result.map(|args| args.0),
            });
        }
    }

    pub fn prints(&self) -> Vec<String> {
        self.world.borrow().messages(LogLevel::Info)
    }

    pub fn errors(&self) -> Vec<String> {
        self.world.borrow().messages(LogLevel::Error)
    }
}
