//! The messages themselves: one definition for both encodings.

use frolic_motion::{Angle, CharacterParams};
use serde::{Deserialize, Serialize};

use crate::avatar::AvatarLooks;
use crate::client_log::ClientLog;
use crate::fragment::Fragment;
use crate::inputs::Inputs;
use crate::npc::NpcEvent;
use crate::projectile::{Launch, ProjectileHit, Vitals, Weapon};
use crate::script::{RunContext, ScriptChunk, ScriptManifest};
use crate::spell::CastEvent;
use crate::terrain::{ChunkData, TerraformApplied, TerrainOp};
use crate::value::Args;

/// The version of the JSON form: the `v` of each of its messages.
pub const PROTOCOL_VERSION: u16 = 2;

/// The version of the binary form, which changes far more often: clients of
/// different versions cannot decode each other's messages. Raise it with every
/// change of the bytes (`tests/every_message/golden.rs` notices).
pub const BINARY_VERSION: u16 = 4;

/// Which snapshot packets a client has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketAck {
    /// The highest number that arrived.
    pub newest: u32,
    /// Bit n is set when number `newest - 1 - n` arrived too.
    pub earlier: u32,
}

/// The tick at which a client draws the other entities: what its player aims at,
/// for lag compensation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// The tick.
    pub tick: u32,
    /// How far on to the next one, in 1/256.
    pub fraction: u8,
}

/// A client's report of its own connection, for the operator. It is untrusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectionReport {
    /// Number of its newest input.
    pub input_seq: u32,
    /// Inputs that are not acknowledged yet.
    pub pending_inputs: u32,
    /// Corrections of its own character since the welcome.
    pub corrections: u32,
    /// Milliseconds since a snapshot arrived.
    pub snapshot_age_ms: f32,
    /// Jitter of snapshot arrivals, in milliseconds.
    pub jitter_ms: f32,
}

/// Messages from a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ClientMessage {
    /// HANDSHAKE: the first message of a connection. Its bytes, and those of
    /// [`ServerMessage::Error`] and [`ServerMessage::Kick`], are the same in all
    /// versions, so that a client of another version gets a readable error.
    Handshake {
        /// Must be [`BINARY_VERSION`], in JSON [`PROTOCOL_VERSION`].
        version: u16,
        /// Signed by the control plane; may be in the URL instead.
        ticket: Option<String>,
        /// From an earlier welcome, to get the same character back.
        resume_token: Option<String>,
        /// Used only where the server runs without tickets (development).
        name: Option<String>,
        /// With a resume token: how many reliable messages were received from the
        /// server; none when this client has lost the count.
        received: Option<u32>,
    },
    /// INPUT_FRAME: the newest inputs, repeated until acknowledged.
    Inputs {
        /// Which snapshot packets arrived, where they are numbered.
        ack: Option<PacketAck>,
        /// The tick at which this client draws the other entities now.
        shown: Option<Shown>,
        /// In rising order; the server skips those it has.
        inputs: Inputs,
    },
    /// Acknowledges a JSON snapshot.
    SnapshotAck {
        /// Its tick.
        tick: u32,
    },
    /// Asks for a [`ServerMessage::Pong`].
    Ping {
        /// The client's clock, returned unchanged.
        t: f64,
        /// How many reliable messages were received from the server.
        received: u32,
    },
    /// The client leaves: no resume is wanted.
    Leave,
    /// `Network.FireServer`.
    Event {
        /// The event's name.
        name: String,
        /// Its arguments.
        args: Args,
    },
    /// `Network.InvokeServer`.
    Invoke {
        /// Chosen by the client; repeated in the answer.
        id: u32,
        /// The function's name.
        name: String,
        /// Its arguments.
        args: Args,
    },
    /// Asks for the bytecode of scripts.
    ScriptRequest {
        /// Paths from the manifest, `@manifest`, or bundles.
        paths: Vec<String>,
        /// The first missing chunk of each: an interrupted download continues
        /// there.
        from: u32,
    },
    /// Reports whether a script arrived intact.
    ScriptVerify {
        /// Which script; `@manifest` for all that run at the start.
        path: String,
        /// The result of the client.
        hash: String,
        /// Whether it matched the manifest.
        success: bool,
    },
    /// Sends a chat message to all players in the world.
    Chat {
        /// The text.
        text: String,
    },
    /// TERRAFORM_REQUEST: changes the terrain.
    Terraform(TerrainOp),
    /// CHUNK_REQUEST: asks for a chunk of the terrain.
    ChunkRequest {
        /// Its place, counted in chunks.
        chunk: [i32; 3],
    },
    /// Casts a spell.
    CastSpell {
        /// Which one.
        spell_id: String,
        /// Which of its revisions; none means the active one.
        revision_id: Option<String>,
        /// One value: the parameters of the spell.
        params: Args,
    },
    /// `Network.FireServerUnreliable`: not counted, and may be lost.
    UnreliableEvent {
        /// The event's name.
        name: String,
        /// Its arguments.
        args: Args,
    },
    /// Requests the server's tick timings, for a debug overlay.
    AskFigures,
    /// Hides the chat between this player and another, or shows it again. Applies
    /// to the current world only; the platform persists blocks.
    Hide {
        /// The other player's persistent id.
        player_id: String,
        /// Whether to hide or to show.
        hidden: bool,
    },
    /// Reports the state of the connection at the client's end.
    Report(ConnectionReport),
    /// Requests the scene: JSON clients get it in no other way.
    AskScene,
    /// Output and errors of this client's scripts.
    Log(ClientLog),
    /// Ends the life of the player's character, which then respawns: for players
    /// who are stuck.
    Reset,
}

/// A stat beside a player's name (`leaderstats`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(rename_all = "camelCase")]
pub struct PlayerStat {
    /// Its name.
    pub name: String,
    /// Its display text.
    pub text: String,
    /// As a number, if it is one.
    #[serde(serialize_with = "crate::value::serialize_number")]
    pub number: Option<f64>,
}

/// A player, as replicated to others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(rename_all = "camelCase")]
pub struct PlayerInfo {
    /// Persistent id.
    pub id: String,
    /// Number within this world; entities name their owner by it.
    pub number: u32,
    /// Their character, or 0.
    pub entity_id: u32,
    /// Name to show.
    pub name: String,
    /// Whether they are connected. A player who lost their connection may reconnect
    /// for a minute, and stays in the world until then.
    pub online: bool,
    /// They have left the world for good.
    pub left: bool,
    /// Their team, if scripts gave them one.
    pub team: Option<String>,
    /// Stats that all players see, by name.
    pub stats: Vec<PlayerStat>,
    /// The looks of their character.
    pub looks: AvatarLooks,
}

/// HANDSHAKE_RESPONSE: the player was admitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// The server's current tick.
    pub tick: u32,
    /// The player's character.
    pub entity_id: u32,
    /// The player's persistent id.
    pub player_id: String,
    /// The player's number in this world.
    pub player_number: u32,
    /// Which world.
    pub world_id: String,
    /// Its short code.
    pub room_code: String,
    /// Simulation steps per second.
    pub tick_hz: u32,
    /// Snapshots per second.
    pub snapshot_hz: u32,
    /// Resumes the session after a lost connection.
    pub resume_token: String,
    /// Milliseconds since the server started.
    pub server_time: f64,
    /// SHA-256 of the package that runs.
    pub revision: String,
    /// How characters move here; prediction needs it.
    pub character: CharacterParams,
    /// Whether the counts below continue from an earlier connection.
    pub resumption: Resumption,
    /// How many reliable messages the server has from this client; after a restart,
    /// how many had effects that are persisted.
    pub received: u32,
    /// Number of the last reliable message before those that follow now. If it is
    /// more than the client has, those between are lost.
    pub sent: u32,
}

/// Tick timings of a world, over the last second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(rename_all = "camelCase")]
pub struct TickFigures {
    /// Mean of a tick, in milliseconds.
    pub tick_ms: f32,
    /// The longest tick.
    pub worst_ms: f32,
    /// Means of its stages, in their order.
    pub stages: Vec<StageFigure>,
}

/// One stage of a tick.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct StageFigure {
    /// Its name.
    pub name: String,
    /// Milliseconds per tick.
    pub ms: f32,
}

/// How a session began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Resumption {
    /// Counts start at zero on both sides.
    New,
    /// The same session: counts continue, and unacknowledged messages are sent
    /// again.
    Resumed,
    /// The server was restarted in between and knows the player from their token
    /// and their checkpoint. Counts continue from there: messages that the previous
    /// process had not persisted as handled are lost, so they are sent again.
    Restarted,
}

/// Messages from a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ServerMessage {
    /// First answer to a valid handshake.
    Welcome(Box<Welcome>),
    /// The scene file, compressed with zstd.
    Scene {
        /// SHA-256 of the uncompressed text, in hex.
        hash: String,
        /// One zstd frame.
        zstd: Vec<u8>,
    },
    /// The appearance of entities of this definition; sent with the first snapshot
    /// of one that this client sees. Prefabs of the scene are known without it.
    Definition {
        /// Its number.
        index: u16,
        /// Components as JSON, in the form of scene.json.
        components: String,
    },
    /// STATE_SNAPSHOT, encoded by [`crate::snapshot`].
    Snapshot(Vec<u8>),
    /// A fragment of a packet that does not fit a datagram.
    Fragment(Fragment),
    /// The players in the world: all of them after the welcome, then those that
    /// changed.
    Presence(Vec<PlayerInfo>),
    /// Answer to a ping.
    Pong {
        /// The client's clock from the ping.
        t: f64,
        /// Milliseconds since the server started.
        server_time: f64,
        /// The server's current tick.
        tick: u32,
        /// How many reliable messages the server has from this client.
        received: u32,
    },
    /// Something was refused; the connection stays open.
    Error {
        /// A machine-readable code.
        code: String,
        /// A human-readable message.
        message: String,
    },
    /// The server closes the connection.
    Kick {
        /// A human-readable reason.
        reason: String,
    },
    /// `Network.FireClient` or `Network.Broadcast`.
    Event {
        /// The event's name.
        name: String,
        /// Its arguments.
        args: Args,
    },
    /// Answer to an invoke: the values, or an error.
    InvokeResult {
        /// From the invoke.
        id: u32,
        /// The result of the function.
        result: Result<Args, String>,
    },
    /// A chat message.
    Chat {
        /// The sender's name; empty for the game itself.
        from: String,
        /// The text.
        text: String,
        /// The sender's persistent id; empty for the game itself.
        player_id: String,
    },
    /// The scripts to run.
    ScriptManifest(ScriptManifest),
    /// A chunk of a script.
    ScriptChunk(ScriptChunk),
    /// Run a script now.
    ExecuteScript {
        /// Which script; `@manifest` for everything in it, in order.
        path: String,
        /// Where it runs; a client refuses `server`.
        run_context: RunContext,
    },
    /// A resume token that is valid longer than the previous one, for use after a
    /// restart of the server.
    ResumeToken {
        /// Replaces the welcome's.
        token: String,
    },
    /// A player cast a spell.
    Cast(Box<CastEvent>),
    /// Answer to [`ClientMessage::AskFigures`].
    Figures(TickFigures),
    /// How a weapon's shots fly and look; sent before the first of them.
    Weapon(Weapon),
    /// The weapon of a player changed.
    Armed {
        /// The player's number.
        player: u32,
        /// The weapon's number; none: empty hands.
        weapon: Option<u16>,
    },
    /// Shots that began or came into view.
    ProjectileLaunch(Vec<Launch>),
    /// PROJECTILE_HIT: shots that ended.
    ProjectileHit(Vec<ProjectileHit>),
    /// The vitals of the own character.
    Vitals(Vitals),
    /// NPC_EVENT: an NPC near the player has changed its behaviour.
    Npc(NpcEvent),
    /// TERRAFORM_APPLIED: the terrain has changed.
    TerraformApplied(TerraformApplied),
    /// CHUNK_DATA: a chunk of the terrain.
    ChunkData(ChunkData),
    /// The collision mesh of an asset that mesh shapes name; all of them are sent
    /// before the scene.
    Mesh {
        /// Its path in the package.
        asset: String,
        /// One zstd frame of [`frolic_scene::Triangles::encode`].
        zstd: Vec<u8>,
    },
    /// Movement parameters of characters from now on: a script changed them.
    Character(CharacterParams),
    /// `Network.FireClientUnreliable` or `Network.BroadcastUnreliable`: not
    /// counted, and may be lost.
    UnreliableEvent {
        /// The event's name.
        name: String,
        /// Its arguments.
        args: Args,
    },
    /// Which [`ClientMessage::Log`] lines this client must send: errors always.
    LogsWanted {
        /// Also the output of `print` and `warn`.
        prints: bool,
    },
    /// Whether persistence takes unusually long; sent when that changes, and to
    /// players who join meanwhile.
    Saving {
        /// True from when saving is delayed until everything is stored again.
        delayed: bool,
    },
    /// The player faces this way from now on: they were placed.
    Facing {
        /// As in an input.
        yaw: Angle,
    },
}

impl ServerMessage {
    /// Whether the message is reliable: both sides count it, so that none is lost
    /// or duplicated with the connection. Everything else is sent again after a
    /// welcome.
    pub fn is_counted(&self) -> bool {
        matches!(
            self,
            ServerMessage::Event { .. }
                | ServerMessage::InvokeResult { .. }
                | ServerMessage::Chat { .. }
        )
    }

    /// Whether it may be lost: the next one replaces it. It overtakes messages on a
    /// stream, where there is one.
    pub fn is_unreliable(&self) -> bool {
        matches!(
            self,
            ServerMessage::Snapshot(_)
                | ServerMessage::Fragment(_)
                | ServerMessage::Pong { .. }
                | ServerMessage::Figures(_)
                | ServerMessage::UnreliableEvent { .. }
        )
    }
}

impl ClientMessage {
    /// Whether the message is reliable: both sides count it, so that none is lost
    /// or duplicated with the connection.
    pub fn is_counted(&self) -> bool {
        matches!(
            self,
            ClientMessage::Event { .. } | ClientMessage::Invoke { .. } | ClientMessage::Chat { .. }
        )
    }

    /// Whether it may be lost: the next one replaces it.
    pub fn is_unreliable(&self) -> bool {
        matches!(
            self,
            ClientMessage::Inputs { .. }
                | ClientMessage::SnapshotAck { .. }
                | ClientMessage::Ping { .. }
                | ClientMessage::UnreliableEvent { .. }
                | ClientMessage::AskFigures
                | ClientMessage::Report(_)
        )
    }
}
