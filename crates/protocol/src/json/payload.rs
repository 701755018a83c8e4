//! The payload of each command. TypeScript gets the same types.

use serde::Deserialize;
use serde_json::Value as Json;

use crate::terrain::TerrainAction;
use crate::value::Args;
use crate::whole::Whole;

/// `session.handshake`
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, optional_fields = nullable))]
#[serde(rename_all = "camelCase", default)]
pub struct HandshakePayload {
    /// Signed by the control plane; may be in the URL instead.
    pub ticket: Option<String>,
    /// From an earlier welcome.
    pub resume_token: Option<String>,
    /// Where the server runs without tickets.
    pub name: Option<String>,
    /// With a resume token: the newest `n` that was received.
    #[cfg_attr(test, ts(as = "Option<u32>"))]
    pub received: Option<Whole<u32>>,
}

/// `movement.input_batch`
#[derive(Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct InputBatch {
    /// In rising order of `seq`.
    pub inputs: Vec<JsonInput>,
}

/// One input; omitted buttons are not held.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct JsonInput {
    /// The client's count of inputs.
    #[cfg_attr(test, ts(as = "u32"))]
    pub seq: Whole<u32>,
    /// Forward.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub up: bool,
    /// Backward.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub down: bool,
    /// Sideways.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub left: bool,
    /// Sideways.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub right: bool,
    /// Held as long as it is set.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub jump: bool,
    /// Faster.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub run: bool,
    /// Where forward is: radians, counter-clockwise from −z.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub yaw: f32,
    /// Radians, upwards.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub pitch: f32,
    /// Held as long as it is set.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub fire: bool,
    /// Held as long as it is set.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub interact: bool,
}

/// `session.ack`
#[derive(Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct AckPayload {
    /// Tick of the newest snapshot the client holds.
    #[cfg_attr(test, ts(as = "u32"))]
    pub tick: Whole<u32>,
}

/// `session.ping`
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(default)]
pub struct PingPayload {
    /// Echoed unchanged.
    #[cfg_attr(test, ts(type = "number | string"))]
    pub t: Json,
    /// The newest `n` that was received, which the server may then discard.
    #[cfg_attr(test, ts(optional, as = "Option<u32>"))]
    pub received: Whole<u32>,
}

/// `session.report`
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(rename_all = "camelCase", default)]
pub struct ReportPayload {
    /// Number of the newest input.
    #[cfg_attr(test, ts(optional, as = "Option<u32>"))]
    pub input_seq: Whole<u32>,
    /// Inputs after the newest `ackSeq`.
    #[cfg_attr(test, ts(optional, as = "Option<u32>"))]
    pub pending_inputs: Whole<u32>,
    /// How often the own character was not where it was predicted, since the
    /// welcome.
    #[cfg_attr(test, ts(optional, as = "Option<u32>"))]
    pub corrections: Whole<u32>,
    /// Milliseconds since a snapshot arrived.
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub snapshot_age_ms: f32,
    /// Jitter of snapshot arrivals.
    #[cfg_attr(test, ts(optional, as = "Option<_>"))]
    pub jitter_ms: f32,
}

/// `network.event`
#[derive(Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct EventPayload {
    /// The event's name.
    pub name: String,
    /// Its arguments.
    #[serde(default)]
    #[cfg_attr(test, ts(type = "unknown[]"))]
    pub args: Args,
}

/// `network.invoke`
#[derive(Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct InvokePayload {
    /// Echoed in the answer.
    #[serde(default)]
    #[cfg_attr(test, ts(type = "number | string"))]
    pub id: Json,
    /// The function's name.
    pub name: String,
    /// Its arguments.
    #[serde(default)]
    #[cfg_attr(test, ts(type = "unknown[]"))]
    pub args: Args,
}

/// `chat.say`
#[derive(Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct ChatPayload {
    /// The text.
    pub text: String,
}

/// `chat.hide`
#[derive(Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
#[serde(rename_all = "camelCase")]
pub struct HidePayload {
    /// The other player's `id` in the presence.
    pub player_id: String,
    /// Whether to hide the chat between both players, or to show it again.
    pub hidden: bool,
}

/// `scripts.request`
#[derive(Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct ScriptsPayload {
    /// Paths from the manifest, `@manifest`, or `@bundle/` and a name.
    pub paths: Vec<String>,
    /// The first missing chunk of each.
    #[serde(default)]
    #[cfg_attr(test, ts(optional, as = "Option<u32>"))]
    pub from: Whole<u32>,
}

/// `scripts.verify`
#[derive(Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct ScriptVerifyPayload {
    /// The script; `@manifest` for all that run at the start.
    pub path: String,
    /// `sha256:` and what the client computed, in hex.
    pub hash: String,
    /// Whether it matches the manifest.
    pub success: bool,
}

/// `terrain.op`
#[derive(Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, optional_fields = nullable))]
pub struct TerrainOpPayload {
    /// The kind of change.
    pub op: TerrainAction,
    /// The centre, in metres.
    pub center: [f32; 3],
    /// Of a ball, in metres; this or `size`.
    pub radius: Option<f32>,
    /// Of a box, in metres along x, y and z; this or `radius`.
    pub size: Option<[f32; 3]>,
    /// Material to add or paint with.
    pub material: Option<String>,
}

/// `terrain.chunk`
#[derive(Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export))]
pub struct TerrainChunkPayload {
    /// Chunks east.
    #[cfg_attr(test, ts(as = "i32"))]
    pub x: Whole<i32>,
    /// Chunks up.
    #[cfg_attr(test, ts(as = "i32"))]
    pub y: Whole<i32>,
    /// Chunks south.
    #[cfg_attr(test, ts(as = "i32"))]
    pub z: Whole<i32>,
}

/// `spell.cast`
#[derive(Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, optional_fields = nullable))]
pub struct SpellCastPayload {
    /// Which spell.
    pub spell_id: String,
    /// The revision; without it, the active one.
    pub revision_id: Option<String>,
    /// Parameters for the spell.
    #[serde(default)]
    #[cfg_attr(test, ts(type = "unknown"))]
    pub params: Json,
}
