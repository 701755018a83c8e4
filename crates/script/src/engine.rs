//! The interface between scripts and their world.
//!
//! The world implements [`Engine`]; the VM borrows it for the duration of one
//! call and never while user code runs. Every argument that reaches an engine
//! has been checked: numbers are finite and within
//! [`COORDINATE_MAX`](crate::limits::COORDINATE_MAX), names are short.

use frolic_fleet_api::store::StoreRequest;
use frolic_protocol::Value;
use frolic_terrain::{BlockHit, Grid, Material, Op};

use crate::ids::{EntityId, PlayerId};
use crate::log::ScriptLog;
use crate::npc::{NpcFacts, NpcOrder};
use crate::weapon::{FireRequest, WeaponSpec};

/// A field of an entity that scripts read and, where noted, write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Property {
    /// `String`, writable.
    Name,
    /// `Vector` in metres, writable (moves at once; use `move_to` for motion).
    Position,
    /// `Vector` of degrees (x pitch, y yaw, z roll), writable. See
    /// [`rotation`](crate::rotation) for the order of rotations.
    Rotation,
    /// `Vector` in metres per second, writable.
    Velocity,
    /// `Vector`, writable: a factor per axis.
    Scale,
    /// `String` `#rrggbb`, writable.
    Color,
    /// `Number` 0 (invisible) to 1, writable.
    Opacity,
    /// `Entity` or `Nil`, writable.
    Parent,
    /// `List` of `Entity`.
    Children,
    /// `List` of `String`.
    Tags,
    /// `Number`, the player that controls the entity, or `Nil`.
    Owner,
}

/// A field of a player that scripts read and, where noted, write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlayerProperty {
    /// `String`: the name that others see.
    Name,
    /// `String`: the account, the same in every world.
    UserId,
    /// `Entity`, or `Nil` while the player has no character.
    Character,
    /// `Number`, writable; zero or less kills.
    Health,
    /// `Number`, writable.
    MaxHealth,
    /// `String` or `Nil`, writable.
    Team,
}

/// The source of a spawned entity.
#[derive(Clone, Debug, PartialEq)]
pub enum SpawnSource {
    /// A prefab of the scene, by name.
    Prefab(String),
    /// Components in the form of `scene.json`.
    Components(serde_json::Value),
}

/// One `World.Spawn`.
#[derive(Clone, Debug, PartialEq)]
pub struct SpawnRequest {
    /// The prefab or the components.
    pub source: SpawnSource,
    /// Position; the prefab's by default.
    pub position: Option<[f32; 3]>,
}

/// The outcome of a spawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spawned {
    /// The new entity.
    pub entity: EntityId,
    /// Paths of the scripts its components name; the VM starts them.
    pub scripts: Vec<String>,
    /// The same for entities below it, which its prefab made: each with one path.
    pub below: Vec<(EntityId, String)>,
}

/// One `World.Build`.
#[derive(Clone, Debug, PartialEq)]
pub struct BuildRequest {
    /// A prefab of the scene.
    pub prefab: String,
    /// Position.
    pub position: [f32; 3],
    /// Rotation in degrees; the prefab's by default.
    pub rotation: Option<[f32; 3]>,
    /// Persistent id of the owner.
    pub owner: Option<String>,
}

/// The outcome of `World.Build`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// The new entity.
    pub entity: EntityId,
    /// Paths of the scripts its components name; the VM starts them.
    pub scripts: Vec<String>,
    /// Number of the operation; it is persistent once this is stored.
    pub seq: u64,
}

/// One `World.Raycast`.
#[derive(Clone, Debug, PartialEq)]
pub struct RaycastRequest {
    /// Where the ray starts.
    pub origin: [f32; 3],
    /// Unit length.
    pub direction: [f32; 3],
    /// Length of the ray, in metres.
    pub distance_max: f32,
    /// Entities the ray passes through.
    pub ignore: Vec<EntityId>,
    /// Only entities with this tag stop the ray.
    pub tag: Option<String>,
    /// The ray also hits characters, at the places where this player saw them.
    pub seen_by: Option<PlayerId>,
}

/// The first hit of a ray.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RaycastHit {
    /// The entity.
    pub entity: EntityId,
    /// The point on its surface.
    pub position: [f32; 3],
    /// The surface normal there.
    pub normal: [f32; 3],
    /// Metres from the origin.
    pub distance: f32,
}

/// The extent of the terrain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TerrainInfo {
    /// Its lowest corner, in metres.
    pub min: [f32; 3],
    /// Its highest corner.
    pub max: [f32; 3],
    /// Side of a block in metres.
    pub block_size: f32,
}

/// A ray hit on terrain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TerrainHit {
    /// The point on its surface.
    pub position: [f32; 3],
    /// The normal of the face.
    pub normal: [f32; 3],
    /// Metres from the origin.
    pub distance: f32,
    /// The material of the block.
    pub material: Material,
    /// The centre of the block.
    pub block: [f32; 3],
}

impl TerrainHit {
    /// Converts a hit of the terrain.
    pub fn new(grid: &Grid, hit: &BlockHit, origin: [f32; 3], direction: [f32; 3]) -> Self {
        Self {
            position: std::array::from_fn(|axis| origin[axis] + direction[axis] * hit.distance),
            normal: hit.normal.map(|part| part as f32),
            distance: hit.distance,
            material: hit.material,
            block: grid.middle_of(hit.block),
        }
    }
}

fn no_terrain() -> EngineError {
    EngineError::Refused("this world has no terrain: give scene.json one".to_owned())
}

/// The recipients of a remote event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// One player.
    One(PlayerId),
    /// All connected players.
    All,
}

/// Why the world refused a script's request. The text is shown to the creator,
/// so it says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The entity does not exist.
    #[error("entity {0} does not exist (any more); check `entity.Exists` first")]
    NoSuchEntity(EntityId),
    /// The player has left.
    #[error("player {0} is not in this world (any more)")]
    NoSuchPlayer(PlayerId),
    /// The scene has no prefab of that name.
    #[error("there is no prefab \"{0}\" in scene.json")]
    NoSuchPrefab(String),
    /// The property cannot be assigned.
    #[error("{0} is read-only")]
    ReadOnly(&'static str),
    /// The value has the wrong type.
    #[error("{property} must be a {expected}")]
    WrongType {
        /// The property or argument.
        property: &'static str,
        /// The accepted type.
        expected: &'static str,
    },
    /// A limit of the world was reached.
    #[error("limit reached: {0}")]
    Limit(String),
    /// Any other reason.
    #[error("{0}")]
    Refused(String),
}

/// Everything that server scripts can request from the world.
///
/// Methods with a body have a sensible default, so that a small world (or a
/// test) implements only what it has.
pub trait Engine {
    /// The number of the current tick.
    fn tick(&self) -> u64;
    /// Seconds of simulated time since the world started.
    fn time(&self) -> f64;
    /// Milliseconds since the start of 1970, for `DateTime`. An input of the
    /// world, so that a recorded session is reproducible.
    fn wall_clock_ms(&self) -> u64 {
        0
    }
    /// Downward acceleration in m/s².
    fn gravity(&self) -> f32;
    /// Changes gravity for everything that moves.
    ///
    /// # Errors
    /// When the world's gravity is fixed.
    fn set_gravity(&mut self, _gravity: f32) -> Result<(), EngineError> {
        Err(EngineError::ReadOnly("World.Gravity"))
    }

    /// Enables [`ScriptEvent::Touched`](crate::ScriptEvent::Touched) for this
    /// entity.
    fn watch_touches(&mut self, _entity: EntityId) {}

    /// Creates an entity.
    ///
    /// # Errors
    /// Unknown prefab, malformed components, too many entities.
    fn spawn(&mut self, request: &SpawnRequest) -> Result<Spawned, EngineError>;
    /// Creates an entity that outlives the world's process. It is persistent
    /// once [`Engine::persisted_op`] has reached its number.
    ///
    /// # Errors
    /// Unknown prefab, too many structures.
    fn build(&mut self, _request: &BuildRequest) -> Result<Built, EngineError> {
        Err(EngineError::Refused("nothing can be built here".to_owned()))
    }
    /// The structures of one owner or of all, in the order they were built.
    fn structures(&self, _owner: Option<&str>) -> Vec<EntityId> {
        Vec::new()
    }
    /// Persistent id of a structure's owner.
    fn built_by(&self, _entity: EntityId) -> Option<String> {
        None
    }
    /// Number of the newest persistent operation.
    fn newest_op(&self) -> u64 {
        0
    }
    /// Number up to which they are stored; [`ScriptEvent::OpsKept`] follows
    /// when it rises.
    ///
    /// [`ScriptEvent::OpsKept`]: crate::ScriptEvent::OpsKept
    fn persisted_op(&self) -> u64 {
        0
    }
    /// Removes an entity and its children. [`ScriptEvent::EntityDestroyed`]
    /// follows for each of them.
    ///
    /// [`ScriptEvent::EntityDestroyed`]: crate::ScriptEvent::EntityDestroyed
    ///
    /// # Errors
    /// When there is no such entity, or it is a player's character.
    fn destroy(&mut self, entity: EntityId) -> Result<(), EngineError>;
    /// Whether the entity is in the world.
    fn exists(&self, entity: EntityId) -> bool;

    /// Reads a property; see [`Property`] for the types.
    ///
    /// # Errors
    /// When there is no such entity.
    fn property(&self, entity: EntityId, property: Property) -> Result<Value, EngineError>;
    /// Writes a property.
    ///
    /// # Errors
    /// When there is no such entity, or it cannot be set that way.
    fn set_property(
        &mut self,
        entity: EntityId,
        property: Property,
        value: Value,
    ) -> Result<(), EngineError>;
    /// Reads a replicated attribute; `Nil` when it was never set.
    ///
    /// # Errors
    /// When there is no such entity.
    fn attribute(&self, _entity: EntityId, _name: &str) -> Result<Value, EngineError> {
        Ok(Value::Nil)
    }
    /// All attributes of an entity, as a `Map`.
    ///
    /// # Errors
    /// When there is no such entity.
    fn attributes(&self, _entity: EntityId) -> Result<Value, EngineError> {
        Ok(Value::Map(Default::default()))
    }
    /// Writes a replicated attribute; `Nil` removes it.
    ///
    /// # Errors
    /// When there is no such entity or it has too many attributes.
    fn set_attribute(
        &mut self,
        _entity: EntityId,
        _name: &str,
        _value: Value,
    ) -> Result<(), EngineError> {
        Err(EngineError::ReadOnly("Attributes"))
    }
    /// Adds (`true`) or removes a tag.
    ///
    /// # Errors
    /// When there is no such entity or it has too many tags.
    fn set_tag(&mut self, _entity: EntityId, _tag: &str, _on: bool) -> Result<(), EngineError> {
        Err(EngineError::ReadOnly("Tags"))
    }

    /// Moves an entity to a point within a number of seconds, as one replicated
    /// segment that clients replay smoothly.
    ///
    /// # Errors
    /// If there is no such entity or it cannot move.
    fn move_to(&mut self, entity: EntityId, to: [f32; 3], seconds: f32) -> Result<(), EngineError>;
    /// Sets the velocity of a moving entity.
    ///
    /// # Errors
    /// When there is no such entity or it cannot move.
    fn set_velocity(&mut self, entity: EntityId, velocity: [f32; 3]) -> Result<(), EngineError>;
    /// Adds impulse (kg·m/s).
    ///
    /// # Errors
    /// When there is no such entity or it cannot move.
    fn apply_impulse(&mut self, entity: EntityId, impulse: [f32; 3]) -> Result<(), EngineError>;

    /// Entities with this name or tag, by ascending id.
    fn find(&self, name_or_tag: &str) -> Vec<EntityId>;
    /// Entities that have this component, or `Character` for player characters;
    /// by ascending id.
    fn of_type(&self, _kind: &str) -> Vec<EntityId> {
        Vec::new()
    }
    /// Entities whose position is within the sphere, by ascending id.
    fn in_radius(&self, center: [f32; 3], radius: f32) -> Vec<EntityId>;
    /// The same with entities where a player saw them, if that is known.
    fn in_radius_seen_by(&self, center: [f32; 3], radius: f32, _player: PlayerId) -> Vec<EntityId> {
        self.in_radius(center, radius)
    }
    /// The first hit of a ray.
    fn raycast(&self, request: &RaycastRequest) -> Option<RaycastHit>;

    /// All connected players, by ascending id.
    fn players(&self) -> Vec<PlayerId>;
    /// Reads a player's property.
    ///
    /// # Errors
    /// When the player has left.
    fn player_property(
        &self,
        player: PlayerId,
        property: PlayerProperty,
    ) -> Result<Value, EngineError>;
    /// Writes a player's property.
    ///
    /// # Errors
    /// When the player has left or the property is read-only.
    fn set_player_property(
        &mut self,
        player: PlayerId,
        property: PlayerProperty,
        value: Value,
    ) -> Result<(), EngineError>;
    /// Reads one of the leaderstats shown beside the player's name.
    ///
    /// # Errors
    /// If the player has left.
    fn player_stat(&self, _player: PlayerId, _name: &str) -> Result<Value, EngineError> {
        Ok(Value::Nil)
    }
    /// All leaderstats, as a `Map`.
    ///
    /// # Errors
    /// If the player has left.
    fn player_stats(&self, _player: PlayerId) -> Result<Value, EngineError> {
        Ok(Value::Map(Default::default()))
    }
    /// Writes one of the leaderstats shown beside the player's name.
    ///
    /// # Errors
    /// If the player has left or there are too many.
    fn set_player_stat(
        &mut self,
        _player: PlayerId,
        _name: &str,
        _value: Value,
    ) -> Result<(), EngineError> {
        Err(EngineError::ReadOnly("leaderstats"))
    }
    /// Moves the player to a spawn point with full health.
    ///
    /// # Errors
    /// If the player has left.
    fn respawn(&mut self, player: PlayerId) -> Result<(), EngineError>;
    /// Ends the character's life; the world respawns it by its own rules.
    ///
    /// # Errors
    /// When the player has left.
    fn kill(&mut self, player: PlayerId) -> Result<(), EngineError>;
    /// Moves the character at once, without interpolation on clients.
    ///
    /// # Errors
    /// When the player has left or has no body.
    fn teleport(&mut self, player: PlayerId, to: [f32; 3]) -> Result<(), EngineError>;
    /// Turns the player's view towards a place.
    ///
    /// # Errors
    /// When the player has left.
    fn face(&mut self, _player: PlayerId, _place: [f32; 3]) -> Result<(), EngineError> {
        Ok(())
    }
    /// The player whose character this entity is.
    fn player_of_entity(&self, entity: EntityId) -> Option<PlayerId>;

    /// Sends a remote event.
    ///
    /// # Errors
    /// When the player has left or the event is too large.
    fn send(
        &mut self,
        to: Recipient,
        name: &str,
        args: Vec<Value>,
        reliable: bool,
    ) -> Result<(), EngineError>;
    /// Answers a
    /// [`ScriptEvent::ClientInvoke`](crate::ScriptEvent::ClientInvoke); an
    /// error text is sent to the caller.
    fn reply(&mut self, _player: PlayerId, _invoke: u32, _result: Result<Vec<Value>, String>) {}

    /// Passes a request on to the store; [`ScriptEvent::StoreAnswer`] follows.
    ///
    /// [`ScriptEvent::StoreAnswer`]: crate::ScriptEvent::StoreAnswer
    ///
    /// # Errors
    /// If the world has no store, or too many requests are pending.
    fn store(&mut self, _request: StoreRequest) -> Result<(), EngineError> {
        Err(EngineError::Refused("this world has no store".to_owned()))
    }

    /// Entities that are NPCs, by ascending id.
    fn npcs(&self) -> Vec<EntityId> {
        Vec::new()
    }
    /// The state of an NPC; none for any other entity.
    ///
    /// # Errors
    /// If there is no such entity.
    fn npc(&self, _entity: EntityId) -> Result<Option<NpcFacts>, EngineError> {
        Ok(None)
    }
    /// Gives an NPC an order.
    ///
    /// # Errors
    /// If there is no such entity, or it is not an NPC.
    fn order_npc(&mut self, _entity: EntityId, _order: NpcOrder) -> Result<(), EngineError> {
        Err(EngineError::Refused("this world has no NPCs".to_owned()))
    }
    /// Ids of the spells that can be cast here.
    fn spells(&self) -> Vec<String> {
        Vec::new()
    }
    /// Casts a spell for a player; [`ScriptEvent::Cast`] follows.
    ///
    /// [`ScriptEvent::Cast`]: crate::ScriptEvent::Cast
    ///
    /// # Errors
    /// Why the player may not cast it now.
    fn cast(&mut self, _player: PlayerId, _spell: &str, _params: Value) -> Result<(), EngineError> {
        Err(EngineError::Refused("this world has no spells".to_owned()))
    }
    /// Reports that a spell has run up to its end or its first wait: how often
    /// it drew random numbers, and the results of its queries.
    fn cast_done(&mut self, _cast: u32, _draws: u32, _answers: Vec<Value>) {}
    /// The extent of the terrain.
    ///
    /// # Errors
    /// If the world has none, as with all terrain methods.
    fn terrain_info(&self) -> Result<TerrainInfo, EngineError> {
        Err(no_terrain())
    }
    /// The pattern of an entity's surface, as `scene.json` names it.
    fn surface(&self, _entity: EntityId) -> Option<&'static str> {
        None
    }
    /// The material at a place; air outside of the terrain.
    ///
    /// # Errors
    /// See [`Engine::terrain_info`].
    fn terrain_block(&self, _at: [f32; 3]) -> Result<Material, EngineError> {
        Err(no_terrain())
    }
    /// The height of the terrain at a place of the map.
    ///
    /// # Errors
    /// See [`Engine::terrain_info`].
    fn terrain_height(&self, _x: f32, _z: f32) -> Result<Option<f32>, EngineError> {
        Err(no_terrain())
    }
    /// The first solid block along a ray; `direction` has length one.
    ///
    /// # Errors
    /// See [`Engine::terrain_info`].
    fn terrain_raycast(
        &self,
        _origin: [f32; 3],
        _direction: [f32; 3],
        _distance_max: f32,
    ) -> Result<Option<TerrainHit>, EngineError> {
        Err(no_terrain())
    }
    /// Changes terrain; returns whether any block changed.
    /// [`ScriptEvent::TerrainChanged`] follows.
    ///
    /// [`ScriptEvent::TerrainChanged`]: crate::ScriptEvent::TerrainChanged
    ///
    /// # Errors
    /// See [`Engine::terrain_info`]; also if it exceeds the limit of one tick.
    fn terraform(&mut self, _op: &Op) -> Result<bool, EngineError> {
        Err(no_terrain())
    }

    /// Defines a weapon, or changes the one with that name.
    ///
    /// # Errors
    /// If there are too many weapons.
    fn define_weapon(&mut self, _name: &str, _weapon: &WeaponSpec) -> Result<(), EngineError> {
        Err(no_projectiles())
    }
    /// Gives a player a weapon, or takes it away.
    ///
    /// # Errors
    /// When the player has left, or no weapon has that name.
    fn arm(&mut self, _player: PlayerId, _weapon: Option<&str>) -> Result<(), EngineError> {
        Err(no_projectiles())
    }
    /// The weapon that a player holds.
    fn weapon_of(&self, _player: PlayerId) -> Option<String> {
        None
    }
    /// Fires a shot and returns its number; [`ScriptEvent::ProjectileHit`]
    /// follows if it hits.
    ///
    /// [`ScriptEvent::ProjectileHit`]: crate::ScriptEvent::ProjectileHit
    ///
    /// # Errors
    /// If no weapon has that name, or too many shots are in flight.
    fn fire(&mut self, _request: &FireRequest) -> Result<u32, EngineError> {
        Err(no_projectiles())
    }
    /// Removes a shot in flight; false if it has ended.
    fn remove_projectile(&mut self, _id: u32) -> bool {
        false
    }
    /// Shots in flight.
    fn projectiles(&self) -> usize {
        0
    }
    /// Whether a player is in the world and alive.
    fn is_alive(&self, player: PlayerId) -> bool {
        self.players().contains(&player)
    }
    /// Seconds between a death and the respawn.
    fn respawn_seconds(&self) -> f64 {
        0.0
    }
    /// Sets [`Engine::respawn_seconds`].
    ///
    /// # Errors
    /// If the world does not allow that.
    fn set_respawn_seconds(&mut self, _seconds: f64) -> Result<(), EngineError> {
        Err(EngineError::ReadOnly("Players.RespawnSeconds"))
    }

    /// Sends a chat message: of a player, or of the game.
    ///
    /// # Errors
    /// If a player has left.
    fn chat(
        &mut self,
        _to: Recipient,
        _from: Option<PlayerId>,
        _text: &str,
    ) -> Result<(), EngineError> {
        Err(EngineError::Refused("this world has no chat".to_owned()))
    }

    /// A line for the creator's console.
    fn log(&mut self, line: ScriptLog);
}

fn no_projectiles() -> EngineError {
    EngineError::Refused("this world has no projectiles".to_owned())
}
