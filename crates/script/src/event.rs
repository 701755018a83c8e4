//! What happens in the world that scripts hear of.

use frolic_protocol::Value;

use crate::engine::{EntityId, PlayerId};
use crate::npc::NpcHappening;
use crate::weapon::HitReport;

/// One occurrence, handed to [`Vm::dispatch`](crate::Vm::dispatch).
#[derive(Clone, Debug, PartialEq)]
pub enum ScriptEvent {
    /// A player entered the world; they are in `Engine::players` already.
    PlayerJoined {
        /// Who.
        player: PlayerId,
    },
    /// A player left; their properties may still be read during the event.
    PlayerLeft {
        /// Who.
        player: PlayerId,
    },
    /// The world is about to end: `PlayerLeft` is meant for everybody who is
    /// in it, and stays readable.
    Closing,
    /// A player who was here all the time connected again, so that their client
    /// scripts start without any state.
    PlayerResumed {
        /// Who.
        player: PlayerId,
    },
    /// A player's character was (re)born.
    CharacterSpawned {
        /// Whose.
        player: PlayerId,
    },
    /// A client called `Network.FireServer`.
    ClientEvent {
        /// Who.
        player: PlayerId,
        /// The event's name.
        name: String,
        /// Its arguments, already within `ValueLimits`.
        args: Vec<Value>,
    },
    /// A client called `Network.InvokeServer` and waits for `Engine::reply`.
    ClientInvoke {
        /// Who.
        player: PlayerId,
        /// The client's number for the call.
        id: u32,
        /// The function's name.
        name: String,
        /// Its arguments, already within `ValueLimits`.
        args: Vec<Value>,
    },
    /// Something entered a trigger's volume.
    TriggerEnter {
        /// The trigger.
        entity: EntityId,
        /// What entered.
        other: EntityId,
    },
    /// Something left a trigger's volume.
    TriggerExit {
        /// The trigger.
        entity: EntityId,
        /// What left.
        other: EntityId,
    },
    /// Two solid things met.
    Touched {
        /// The entity.
        entity: EntityId,
        /// What it met.
        other: EntityId,
    },
    /// A player pressed interact at an entity.
    Interact {
        /// The entity.
        entity: EntityId,
        /// Who.
        player: PlayerId,
    },
    /// The store answered an [`Engine::store`](crate::Engine::store).
    StoreAnswer {
        /// Number of the request.
        id: u32,
        /// What it gave, or why not.
        result: Result<Vec<Value>, String>,
    },
    /// Lasting operations are stored up to this number; see [`Built::seq`](crate::Built::seq).
    OpsKept {
        /// Its number.
        up_to: u64,
    },
    /// Something happened to an NPC.
    Npc {
        /// Its entity.
        entity: EntityId,
        /// What.
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
        /// Of everything random in it; below 2^53.
        seed: u64,
        /// Who casts.
        player: PlayerId,
        /// Where it is aimed at.
        target: [f32; 3],
        /// What the caster gave along.
        params: Value,
    },
    /// A shot hit something; damage is done already.
    ProjectileHit(HitReport),
    /// A player's character died.
    PlayerDied {
        /// Whose.
        player: PlayerId,
        /// Who did it, if anybody.
        killer: Option<PlayerId>,
        /// With which weapon.
        weapon: Option<String>,
    },
    /// A player said something; nobody has heard it yet.
    Chat {
        /// Who.
        player: PlayerId,
        /// What, trimmed and of bounded length.
        text: String,
    },
    /// The ground changed within a box.
    TerrainChanged {
        /// Its lowest corner, in metres.
        min: [f32; 3],
        /// Its highest corner.
        max: [f32; 3],
        /// Who did it; none: a script.
        player: Option<PlayerId>,
    },
    /// An entity is gone; its scripts end after this.
    EntityDestroyed {
        /// The entity.
        entity: EntityId,
    },
}
