//! The messages themselves: one definition for both encodings.

use frolic_sim::{Angle, CharacterInput, CharacterParams};
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

/// The version of the binary form, which changes far more often: a client of
/// another one could not read what the server says. Raise it with every change
/// of the bytes (`tests/every_message/golden.rs` notices).
pub const BINARY_VERSION: u16 = 4;

/// One input with its number. Numbers rise by one with every tick of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberedInput {
    /// The client's count.
    pub seq: u32,
    /// What the player wanted in that tick.
    pub input: CharacterInput,
}

/// Which snapshot packets a client has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketAck {
    /// The highest number that came.
    pub newest: u32,
    /// Bit n is set when number `newest - 1 - n` came too.
    pub earlier: u32,
}

/// The moment of the past at which a client draws the others: what its player
/// aims at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// The tick.
    pub tick: u32,
    /// How far on to the next one, in 1/256.
    pub fraction: u8,
}

/// What a client makes of its own connection, for whoever runs the world.
/// Nobody vouches for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LineReport {
    /// Number of its newest input.
    pub input_seq: u32,
    /// Inputs that are not confirmed yet.
    pub pending_inputs: u32,
    /// How often it was wrong about its own character since the welcome.
    pub corrections: u32,
    /// Milliseconds since a snapshot came.
    pub snapshot_age_ms: f32,
    /// By how much snapshots come early or late, in milliseconds.
    pub jitter_ms: f32,
}

/// What a client asks for or tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ClientMessage {
    /// HANDSHAKE: the first message of a connection. Its bytes, and those of
    /// [`ServerMessage::Error`] and [`ServerMessage::Kick`], are the same in all
    /// versions: whoever speaks another one can be told so.
    Handshake {
        /// Must be [`BINARY_VERSION`], in JSON [`PROTOCOL_VERSION`].
        version: u16,
        /// Signed by the control plane; may come in the URL instead.
        ticket: Option<String>,
        /// From an earlier welcome, to get the same character back.
        resume_token: Option<String>,
        /// Used only where the server runs without tickets (development).
        name: Option<String>,
        /// With a resume token: how many counted messages have come from the
        /// server; none when this client has forgotten.
        received: Option<u32>,
    },
    /// INPUT_FRAME: the newest inputs, repeated until acknowledged.
    Inputs {
        /// Which snapshot packets came, where they are numbered.
        ack: Option<PacketAck>,
        /// What this client draws of the others now.
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
        /// The client's clock, returned as it is.
        t: f64,
        /// How many counted messages have come from the server.
        received: u32,
    },
    /// A polite goodbye: no resume is wanted.
    Leave,
    /// `Network.FireServer`.
    Event {
        /// Which event.
        name: String,
        /// Its arguments.
        args: Args,
    },
    /// `Network.InvokeServer`.
    Invoke {
        /// Chosen by the client; comes back with the answer.
        id: u32,
        /// Which function.
        name: String,
        /// Its arguments.
        args: Args,
    },
    /// Asks for the bytecode of scripts.
    ScriptRequest {
        /// Paths from the manifest, `@manifest`, or bundles.
        paths: Vec<String>,
        /// The first piece that is missing, of each: a download that broke
        /// off goes on there.
        from: u32,
    },
    /// Tells whether a script arrived intact.
    ScriptVerify {
        /// Which script; `@manifest` for all that run at the start.
        path: String,
        /// What the client computed.
        hash: String,
        /// Whether it matched the manifest.
        success: bool,
    },
    /// Says something to everybody in the world.
    Chat {
        /// The text.
        text: String,
    },
    /// TERRAFORM_REQUEST: changes the ground.
    Terraform(TerrainOp),
    /// CHUNK_REQUEST: asks for a piece of the ground.
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
        /// One value: whatever the spell wants to know.
        params: Args,
    },
    /// `Network.FireServerUnreliable`: not counted, and lost when the line
    /// loses it.
    UnreliableEvent {
        /// Which event.
        name: String,
        /// Its arguments.
        args: Args,
    },
    /// Asks where the server's time goes, for a debug overlay.
    AskFigures,
    /// Hides the chat between this player and another, or shows it again. For
    /// good it is the platform that keeps it; this is for the world they are in.
    Hide {
        /// The other's lasting id.
        player_id: String,
        /// Whether to hide or to show.
        hidden: bool,
    },
    /// Tells how the connection is at the client's end.
    Report(LineReport),
    /// Asks for the scene: JSON clients get it in no other way.
    AskScene,
    /// What this client's scripts printed and raised.
    Log(ClientLog),
}

/// A figure beside a player's name (`leaderstats`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(rename_all = "camelCase")]
pub struct PlayerStat {
    /// What is counted.
    pub name: String,
    /// As it is shown.
    pub text: String,
    /// As a number, if it is one.
    #[serde(serialize_with = "crate::value::serialize_number")]
    pub number: Option<f64>,
}

/// A player as others know them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(rename_all = "camelCase")]
pub struct PlayerInfo {
    /// Lasting id.
    pub id: String,
    /// Number within this world; entities name their owner by it.
    pub number: u32,
    /// Their character, or 0.
    pub entity_id: u32,
    /// Name to show.
    pub name: String,
    /// Whether they have a connection. Who lost it may come back for a minute,
    /// and stays in the world until then.
    pub online: bool,
    /// They are out of the world for good.
    pub left: bool,
    /// Their team, if scripts gave them one.
    pub team: Option<String>,
    /// Figures that everybody sees, by name.
    pub stats: Vec<PlayerStat>,
    /// How their character looks.
    pub looks: AvatarLooks,
}

/// HANDSHAKE_RESPONSE: the player is in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// The server's tick now.
    pub tick: u32,
    /// The player's character.
    pub entity_id: u32,
    /// The player's lasting id.
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
    /// Brings the character back after a lost connection.
    pub resume_token: String,
    /// Milliseconds since the server started.
    pub server_time: f64,
    /// SHA-256 of the package that runs.
    pub revision: String,
    /// How characters move here; prediction needs it.
    pub character: CharacterParams,
    /// Whether the counts below go on from an earlier connection.
    pub resumption: Resumption,
    /// How many counted messages the server has from this client; after a
    /// restart, how many had consequences that are kept.
    pub received: u32,
    /// Number of the last counted message before those that follow now. More
    /// than the client has: those between are lost.
    pub sent: u32,
}

/// Where a world's ticks spend their time, over the last second.
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

/// How a player came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Resumption {
    /// Counts start at nothing on both sides.
    New,
    /// The same session: counts go on, and what was not confirmed comes again.
    Resumed,
    /// The server was restarted in between and knows the player from their
    /// token and their checkpoint. Counts go on from there: what the server
    /// before had not kept as heard is sent again, because it is gone.
    Restarted,
}

/// What a server tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ServerMessage {
    /// First answer to a good handshake.
    Welcome(Box<Welcome>),
    /// The scene file, compressed with zstd.
    Scene {
        /// SHA-256 of the uncompressed text, in hex.
        hash: String,
        /// One zstd frame.
        zstd: Vec<u8>,
    },
    /// What entities of this definition look like; sent with the first snapshot
    /// of one that this client sees. Prefabs of the scene are known without it.
    Definition {
        /// Its number.
        index: u16,
        /// Components as JSON, in the form of scene.json.
        components: String,
    },
    /// STATE_SNAPSHOT, encoded by [`crate::snapshot`].
    Snapshot(Vec<u8>),
    /// A part of a packet that does not fit a datagram.
    Fragment(Fragment),
    /// Who is here: everybody after the welcome, then whoever changed.
    Presence(Vec<PlayerInfo>),
    /// Answer to a ping.
    Pong {
        /// The client's clock from the ping.
        t: f64,
        /// Milliseconds since the server started.
        server_time: f64,
        /// The server's tick now.
        tick: u32,
        /// How many counted messages the server has from this client.
        received: u32,
    },
    /// Something was refused; the connection stays.
    Error {
        /// A word for programs.
        code: String,
        /// A sentence for people.
        message: String,
    },
    /// The connection ends.
    Kick {
        /// A sentence for people.
        reason: String,
    },
    /// `Network.FireClient` or `Network.Broadcast`.
    Event {
        /// Which event.
        name: String,
        /// Its arguments.
        args: Args,
    },
    /// Answer to an invoke: the values, or what went wrong.
    InvokeResult {
        /// From the invoke.
        id: u32,
        /// What the function returned.
        result: Result<Args, String>,
    },
    /// Somebody said something.
    Chat {
        /// Who; empty for the game itself.
        from: String,
        /// What.
        text: String,
        /// Their lasting id; empty for the game itself.
        player_id: String,
    },
    /// Which scripts to run.
    ScriptManifest(ScriptManifest),
    /// A piece of one.
    ScriptChunk(ScriptChunk),
    /// Run it now.
    ExecuteScript {
        /// Which script; `@manifest` for everything in it, in order.
        path: String,
        /// Where it runs; a client refuses `server`.
        run_context: RunContext,
    },
    /// A resume token that lasts longer than the one before, for use after a
    /// restart of the server.
    ResumeToken {
        /// Replaces the welcome's.
        token: String,
    },
    /// Somebody cast a spell.
    Cast(Box<CastEvent>),
    /// Answer to [`ClientMessage::AskFigures`].
    Figures(TickFigures),
    /// How a weapon's shots fly and look; before the first of them.
    Weapon(Weapon),
    /// Who holds which weapon now.
    Armed {
        /// The player's number.
        player: u32,
        /// The weapon's number; none: empty hands.
        weapon: Option<u16>,
    },
    /// Shots that began or came within sight.
    ProjectileLaunch(Vec<Launch>),
    /// PROJECTILE_HIT: shots that are over.
    ProjectileHit(Vec<ProjectileHit>),
    /// How the own character is.
    Vitals(Vitals),
    /// NPC_EVENT: an NPC near the player has changed its mind.
    Npc(NpcEvent),
    /// TERRAFORM_APPLIED: the ground has changed.
    TerraformApplied(TerraformApplied),
    /// CHUNK_DATA: a piece of the ground.
    ChunkData(ChunkData),
    /// What is solid of an asset that mesh shapes name; all of them come
    /// before the scene.
    Mesh {
        /// Its path in the package.
        asset: String,
        /// One zstd frame of [`frolic_package::Triangles::encode`].
        zstd: Vec<u8>,
    },
    /// How characters move from now on: a script changed it.
    Character(CharacterParams),
    /// `Network.FireClientUnreliable` or `Network.BroadcastUnreliable`: not
    /// counted, and lost when the line loses it.
    UnreliableEvent {
        /// Which event.
        name: String,
        /// Its arguments.
        args: Args,
    },
    /// Which of [`ClientMessage::Log`] this client is to send: errors always.
    LogsWanted {
        /// Also what scripts `print` and `warn`.
        prints: bool,
    },
    /// Whether persistence takes unusually long; sent when that changes, and to
    /// players who join meanwhile.
    Saving {
        /// True from when saving is delayed until everything is stored again.
        delayed: bool,
    },
    /// The player looks this way from now on: they were put somewhere.
    Facing {
        /// As in an input.
        yaw: Angle,
    },
}

impl ServerMessage {
    /// Whether both sides count it, so that none is lost or doubled when the
    /// connection is. Everything else is told anew after a welcome.
    pub fn is_counted(&self) -> bool {
        matches!(
            self,
            ServerMessage::Event { .. }
                | ServerMessage::InvokeResult { .. }
                | ServerMessage::Chat { .. }
        )
    }

    /// Whether it may be lost: the next one replaces it. It overtakes what
    /// travels on a stream, where there is one.
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
    /// Whether both sides count it, so that none is lost or doubled when the
    /// connection is.
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
