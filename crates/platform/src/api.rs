//! What the REST interface takes and gives, as types. The tests write them as
//! TypeScript (`rest.ts`), so the site cannot drift from the server.

mod accounts;
mod admin;
mod dashboard;
mod joining;
mod moderation;
mod profiles;
mod social;
mod spells;
mod store;
mod worlds;

use serde::{Deserialize, Serialize};

pub use accounts::*;
pub use admin::*;
pub use dashboard::*;
pub use joining::*;
pub use moderation::*;
pub use profiles::*;
pub use social::*;
pub use spells::*;
pub use store::*;
pub use worlds::*;

/// `POST /join`: at most one of the four; none opens a new world of the
/// default game.
#[derive(Clone, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct JoinRequest {
    /// Exactly this world.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub world_id: Option<String>,
    /// The best running world of this game, or a new one.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub game_id: Option<String>,
    /// The world behind this code.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub room_code: Option<String>,
    /// The world that a friend invited to, beside that friend.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub invite: Option<String>,
    /// Which version of the game, with `game_id`: `stable` without it.
    #[serde(default)]
    #[cfg_attr(test, ts(optional))]
    pub channel: Option<Channel>,
}

/// Answer of `POST /join`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct JoinResponse {
    /// WebSocket address of the world's server.
    pub server_address: String,
    /// The token that asked.
    pub session_token: String,
    /// Who you are in the world.
    pub client_id: String,
    /// The world that was found or made.
    pub world_id: String,
    /// The game it is an instance of.
    pub game_id: String,
    /// Code to give to a friend.
    pub room_code: String,
    /// Admits one connection to this world, once, for a short time.
    pub ticket: String,
    /// The platform's public key, in hex: the world's list of scripts is
    /// signed with it.
    pub script_key: String,
    /// All the ways to connect.
    pub transports: Transports,
}

/// Ways to reach a world's server.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct Transports {
    /// Always there.
    pub websocket: WebSocketTransport,
    /// `null` where the server cannot be reached over UDP.
    pub webtransport: Option<WebTransportTransport>,
}

/// A WebSocket endpoint.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct WebSocketTransport {
    /// Add `?ticket=…`, or send the ticket in the first message.
    pub url: String,
}

/// A WebTransport endpoint.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct WebTransportTransport {
    /// `https://…/game`.
    pub url: String,
    /// SHA-256 of its certificate in hex, to pin.
    pub cert_sha256: String,
}

/// A world in a game's server browser.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct RunningWorld {
    /// Id to join.
    pub world_id: String,
    /// Code to share.
    pub room_code: String,
    /// Players in it.
    pub players: u32,
    /// Players that fit.
    pub max_players: u32,
}

/// `GET /api/games/{id}/console?after=N`: what the game's scripts say and
/// cost, for its creator.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct ConsolePage {
    /// The game.
    pub game_id: String,
    /// Its title.
    pub name: String,
    /// Newest package.
    pub revision: String,
    /// What to pass as `after` next.
    pub last: u64,
    /// Its worlds, running ones first.
    pub worlds: Vec<ConsoleWorld>,
    /// Lines after `after`, oldest first; the newest 500.
    pub lines: Vec<ConsoleEntry>,
}

/// A world in a game's console.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct ConsoleWorld {
    /// Id.
    pub world_id: String,
    /// Code to join it by.
    pub room_code: String,
    /// Whether a game server runs it now.
    pub running: bool,
    /// Players in it.
    pub players: u32,
    /// 99th percentile of tick time at the last heartbeat.
    pub tick_ms_p99: f32,
    /// When it last said something, RFC 3339.
    pub heard_at: String,
    /// What its scripts cost.
    pub scripts: Vec<ConsoleScript>,
}

/// What one script of a world costs.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct ConsoleScript {
    /// Path; `@builtin` is the engine's own part.
    pub path: String,
    /// SHA-256 of its bytecode.
    pub hash: String,
    /// Milliseconds of CPU per second, lately.
    pub cpu_ms_per_s: f32,
    /// Bytes it holds.
    pub memory_bytes: u64,
    /// How often it runs: once, or once per entity.
    pub instances: u32,
    /// Errors so far.
    pub errors: u32,
    /// How often it was stopped for time or memory.
    pub stops: u32,
    /// Instances that were disabled.
    pub disabled: u32,
}

/// One line of a script.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct ConsoleEntry {
    /// Rises with every line of the platform.
    pub number: u64,
    /// When the platform heard it, RFC 3339.
    pub at: String,
    /// World it is of.
    pub world_id: String,
    /// Code of that world.
    pub room_code: String,
    /// `info`, `warn` or `error`.
    pub level: String,
    /// Tick of the world.
    pub tick: u32,
    /// Path of the script.
    pub script: String,
    /// Line in it, when known.
    pub line: Option<u32>,
    /// The text.
    pub message: String,
    /// The source text of that line, when known.
    pub source_line: Option<String>,
    /// The stack of an error, one frame per line; else empty.
    pub stack: String,
    /// SHA-256 of the package that ran.
    pub revision: String,
    /// SHA-256 of the script's bytecode; empty when it has none.
    pub hash: String,
    /// For a line that players' browsers sent: nobody vouches for what it says.
    pub client: Option<ConsoleClient>,
}

/// Which clients a line comes from.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct ConsoleClient {
    /// What runs there; of the last one that said it.
    pub browser: String,
    /// How often it was said, by all of them.
    pub count: u32,
    /// How many players said it.
    pub players: u32,
}

/// `GET /health`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct Health {
    /// `ok`, or `stopping` during shutdown.
    pub status: String,
    /// Version of the program.
    pub version: String,
    /// Game servers that run.
    pub servers: u32,
    /// Players in all worlds.
    pub players: u32,
}

/// Every error.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct ErrorBody {
    /// What went wrong.
    pub error: ErrorInfo,
}

/// Inside [`ErrorBody`].
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export, export_to = "rest.ts"))]
pub struct ErrorInfo {
    /// For programs; stable.
    pub code: String,
    /// For people; says what to do.
    pub message: String,
    /// More for programs, when there is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "unknown"))]
    pub details: Option<serde_json::Value>,
}
