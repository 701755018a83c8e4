//! Request and response types of the REST API. The OpenAPI document describes them, and `cargo xtask codegen`
//! generates the site's types from it, so that the site cannot drift from the server.

mod accounts;
mod admin;
mod catalog;
mod dashboard;
mod joining;
pub mod limits;
mod moderation;
mod profiles;
mod social;
mod spells;
mod worlds;

use serde::{Deserialize, Serialize};

pub use accounts::*;
pub use admin::*;
pub use catalog::*;
pub use dashboard::*;
pub use joining::*;
pub use moderation::*;
pub use profiles::*;
pub use social::*;
pub use spells::*;
pub use worlds::*;

/// `POST /join`: at most one of the four ids; without any it opens a new world of the
/// default game.
#[derive(Clone, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct JoinRequest {
    /// Join exactly this world.
    #[serde(default)]
    pub world_id: Option<String>,
    /// Join the best running world of this game, or a new one.
    #[serde(default)]
    pub game_id: Option<String>,
    /// Join the world with this room code.
    #[serde(default)]
    pub room_code: Option<String>,
    /// Join the world of this invitation, next to the friend who created it.
    #[serde(default)]
    pub invite: Option<String>,
    /// Release channel, with `game_id`; default `stable`.
    #[serde(default)]
    pub channel: Option<Channel>,
}

/// Response of `POST /join`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct JoinResponse {
    /// WebSocket URL of the world's server.
    pub server_address: String,
    /// The session token of the request.
    pub session_token: String,
    /// Your player id in the world.
    pub client_id: String,
    /// The joined world.
    pub world_id: String,
    /// Its game.
    pub game_id: String,
    /// Room code, to share with friends.
    pub room_code: String,
    /// Single-use, short-lived token that admits one connection to this world.
    pub ticket: String,
    /// The platform's public key in hex, which verifies the signature of the world's
    /// script list.
    pub script_key: String,
    /// Available transports.
    pub transports: Transports,
}

/// Transports of a world's server.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Transports {
    /// Always available.
    pub websocket: WebSocketTransport,
    /// `null` when the server cannot be reached over UDP.
    #[schema(required)]
    pub webtransport: Option<WebTransportTransport>,
}

/// A WebSocket endpoint.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WebSocketTransport {
    /// Append `?ticket=…`, or send the ticket in the first message.
    pub url: String,
}

/// A WebTransport endpoint.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WebTransportTransport {
    /// `https://…/game`.
    pub url: String,
    /// SHA-256 of its certificate in hex, for pinning.
    pub cert_sha256: String,
}

/// A world in a game's server browser.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RunningWorld {
    /// World id, to join.
    pub world_id: String,
    /// Room code, to share.
    pub room_code: String,
    /// Current players.
    pub players: u32,
    /// Maximum number of players.
    pub max_players: u32,
}

/// `GET /api/games/{id}/console?after=N`: output and cost of the game's scripts, for
/// its creator.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ConsolePage {
    /// The game.
    pub game_id: String,
    /// Its title.
    pub name: String,
    /// Revision of the newest package.
    pub revision: String,
    /// Value of `after` for the next request.
    pub last: u64,
    /// Its worlds, running ones first.
    pub worlds: Vec<ConsoleWorld>,
    /// Lines after `after`, oldest first; at most the newest 500.
    pub lines: Vec<ConsoleEntry>,
}

/// A world in a game's console.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ConsoleWorld {
    /// World id.
    pub world_id: String,
    /// Room code, to join.
    pub room_code: String,
    /// Whether a game server runs it now.
    pub running: bool,
    /// Current players.
    pub players: u32,
    /// 99th percentile of tick time at the last heartbeat.
    pub tick_ms_p99: f32,
    /// Time of its last report, RFC 3339.
    pub heard_at: String,
    /// Cost of its scripts.
    pub scripts: Vec<ConsoleScript>,
}

/// Resource usage of one script of a world.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ConsoleScript {
    /// Path; `@builtin` is the engine's own part.
    pub path: String,
    /// SHA-256 of its bytecode.
    pub hash: String,
    /// Recent CPU time in milliseconds per second.
    pub cpu_ms_per_s: f32,
    /// Memory in use, in bytes.
    pub memory_bytes: u64,
    /// Number of running instances: one, or one per entity.
    pub instances: u32,
    /// Total errors.
    pub errors: u32,
    /// How often it was stopped because of a time or memory limit.
    pub stops: u32,
    /// Instances that were disabled.
    pub disabled: u32,
}

/// One output line of a script.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ConsoleEntry {
    /// Sequence number over all lines of the platform.
    pub number: u64,
    /// Time of receipt, RFC 3339.
    pub at: String,
    /// World id.
    pub world_id: String,
    /// Room code of that world.
    pub room_code: String,
    /// `info`, `warn` or `error`.
    pub level: String,
    /// Tick of the world.
    pub tick: u32,
    /// Path of the script.
    pub script: String,
    /// Line number, when known.
    #[schema(required)]
    pub line: Option<u32>,
    /// The text.
    pub message: String,
    /// The source text of that line, when known.
    #[schema(required)]
    pub source_line: Option<String>,
    /// The stack of an error, one frame per line; else empty.
    pub stack: String,
    /// SHA-256 of the package.
    pub revision: String,
    /// SHA-256 of the script's bytecode; empty when there is none.
    pub hash: String,
    /// Set for a line reported by players' browsers, which is unverified.
    #[schema(required)]
    pub client: Option<ConsoleClient>,
}

/// The clients that reported a line.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ConsoleClient {
    /// Browser of the last client that reported it.
    pub browser: String,
    /// Total number of reports.
    pub count: u32,
    /// Number of players who reported it.
    pub players: u32,
}

/// `GET /health`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Health {
    /// `ok`, or `stopping` during shutdown.
    pub status: String,
    /// Version of the program.
    pub version: String,
    /// Running game servers.
    pub servers: u32,
    /// Players in all worlds.
    pub players: u32,
}

/// Body of every error response.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ErrorBody {
    /// The error.
    pub error: ErrorInfo,
}

/// Content of [`ErrorBody`].
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ErrorInfo {
    /// Stable code for programs.
    pub code: String,
    /// Message for people; says what to do.
    pub message: String,
    /// Additional machine-readable details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<serde_json::Value>,
}
