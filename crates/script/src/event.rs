//! World events that are delivered to scripts.

use frolic_protocol::Value;

use crate::ids::{EntityId, PlayerId};
use crate::npc::NpcHappening;
use crate::weapon::HitReport;

/// One event, passed to [`Vm::dispatch`](crate::Vm::dispatch).
#[derive(Clone, Debug, PartialEq)]
pub enum ScriptEvent {
    /// A player entered the world; they are in `Engine::players` already.
    PlayerJoined {
        /// The player.
        player: PlayerId,
    },
    /// A player left; their properties may still be read during the event.
    PlayerLeft {
        /// The player.
        player: PlayerId,
    },
    /// The world is closing: handlers of `PlayerLeft` run for all players in
    /// it, whose properties stay readable.
    Closing,
    /// A player who was in the world all the time reconnected, so that their
    /// client scripts start without any state.
    PlayerResumed {
        /// The player.
        player: PlayerId,
    },
    /// A player's character (re)spawned.
    CharacterSpawned {
        /// The player.
        player: PlayerId,
    },
    /// A client called `Network.FireServer`.
    ClientEvent {
        /// The player.
        player: PlayerId,
        /// The event's name.
        name: String,
        /// Its arguments, already within `ValueLimits`.
        args: Vec<Value>,
    },
    /// A client called `Network.InvokeServer` and waits for `Engine::reply`.
    ClientInvoke {
        /// The player.
        player: PlayerId,
        /// The client's number for the call.
        id: u32,
        /// The function's name.
        name: String,
        /// Its arguments, already within `ValueLimits`.
        args: Vec<Value>,
    },
    /// An entity entered a trigger's volume.
    TriggerEnter {
        /// The trigger.
        entity: EntityId,
        /// The entity that entered.
        other: EntityId,
    },
    /// An entity left a trigger's volume.
    TriggerExit {
        /// The trigger.
        entity: EntityId,
        /// The entity that left.
        other: EntityId,
    },
    /// Two solid entities came into contact.
    Touched {
        /// The entity.
        entity: EntityId,
        /// The entity that it touched.
        other: EntityId,
    },
    /// A player pressed interact at an entity.
    Interact {
        /// The entity.
        entity: EntityId,
        /// The player.
        player: PlayerId,
    },
    /// The store answered an [`Engine::store`](crate::Engine::store).
    StoreAnswer {
        /// Number of the request.
        id: u32,
        /// Its result, or the error.
        result: Result<Vec<Value>, String>,
    },
    /// Persistent operations are stored up to this number; see
    /// [`Built::seq`](crate::Built::seq).
    OpsKept {
        /// Its number.
        up_to: u64,
    },
    /// Something happened to an NPC.
    Npc {
        /// Its entity.
        entity: EntityId,
        /// The event.
        what: NpcHappening,
    },
    /// A spell is cast; [`Engine::cast_done`](crate::Engine::cast_done) follows.
    Cast {
        /// Number of the cast.
        cast: u32,
        /// Path of the spell's code.
        path: String,
        /// The spell.
        spell: String,
        /// Seed of all randomness in it; below 2^53.
        seed: u64,
        /// The caster.
        player: PlayerId,
        /// The target position.
        target: [f32; 3],
        /// Parameters from the caster.
        params: Value,
    },
    /// A shot hit something; damage is already applied.
    ProjectileHit(HitReport),
    /// A player's character died.
    PlayerDied {
        /// The player.
        player: PlayerId,
        /// The player who killed them, if any.
        killer: Option<PlayerId>,
        /// The weapon.
        weapon: Option<String>,
    },
    /// A player sent a chat message that has not been delivered yet.
    Chat {
        /// The player.
        player: PlayerId,
        /// The text, trimmed and of bounded length.
        text: String,
    },
    /// Terrain changed within a box.
    TerrainChanged {
        /// Its lowest corner, in metres.
        min: [f32; 3],
        /// Its highest corner.
        max: [f32; 3],
        /// The player who changed it; none: a script.
        player: Option<PlayerId>,
    },
    /// An entity was removed; its scripts end after this.
    EntityDestroyed {
        /// The entity.
        entity: EntityId,
    },
}
