//! Requests between the control plane and its game servers over HTTP below
//! `/internal/worlds/{world_id}`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::console::ClientPrints;

/// Environment variable with the bearer token for `/internal`.
pub const WORLD_TOKEN_ENV: &str = "FROLIC_WORLD_TOKEN";
/// Environment variable with the world's ticket key, in hex.
pub const TICKET_KEY_ENV: &str = "FROLIC_TICKET_KEY";

/// Header with the address of the client for whom the control plane opens a
/// WebSocket; sent together with the world's token.
pub const CLIENT_ADDRESS_HEADER: &str = "x-frolic-client-address";

/// Seconds in which a stopping world runs `PlayerRemoving` and `World.OnClose` and
/// stores what they save. A supervisor waits longer than this before it kills the
/// process.
pub const CLOSE_LIMIT_S: u32 = 10;

/// `GET /internal/worlds/{id}`: what a game server needs to start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorldBoot {
    /// The world's id, `world_…`.
    pub world_id: String,
    /// The short code that reaches it.
    pub room_code: String,
    /// The game it is an instance of.
    pub game_id: String,
    /// SHA-256 of the package, in hex.
    pub revision: String,
    /// Seed of everything random in the world.
    pub seed: u64,
    /// Scripts that forced an earlier process of this world to end; they are left
    /// out.
    pub disabled_scripts: Vec<String>,
    /// Counts the processes of this world: requests of an older one are refused.
    pub epoch: u64,
    /// Whether what is built here outlives the process.
    pub persistent: bool,
    /// Which client scripts must report their prints.
    #[serde(default)]
    pub client_prints: ClientPrints,
    /// Whether chat is filtered ([`crate::filter`]).
    #[serde(default = "on")]
    pub filter_chat: bool,
}

fn on() -> bool {
    true
}

/// Where a WebTransport endpoint is and how to trust it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebTransportEndpoint {
    /// UDP port.
    pub port: u16,
    /// SHA-256 of the certificate, in hex; the page pins it.
    pub cert_sha256: String,
}

/// `POST …/ready`: the world is loaded and accepts connections.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerReady {
    /// Process id of the game server.
    pub pid: u32,
    /// TCP port of the WebSocket endpoint.
    pub websocket_port: u16,
    /// Absent where UDP could not be bound.
    pub webtransport: Option<WebTransportEndpoint>,
}

/// `POST …/heartbeat`, every two seconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Players connected now.
    pub players: u32,
    /// Tickets used since the last heartbeat: their reservations can be released,
    /// also when the players have left again already. A process of an older version
    /// does not send it.
    #[serde(default)]
    pub arrived: u32,
    /// Persistent ids of disconnected players whose places are reserved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub away: Vec<String>,
    /// Persistent ids of players who recently came back from an earlier process of
    /// the world: their reservations can be released.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub returned: Vec<String>,
    /// Current tick.
    pub tick: u32,
    /// 99th percentile of the tick time of the last minute.
    pub tick_ms_p99: f32,
    /// Errors scripts raised since the last heartbeat.
    pub script_errors: u32,
}

/// An instruction in the answer to a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FleetAction {
    /// Continue.
    Continue,
    /// Accept no new players; stop when the last one leaves.
    Drain,
    /// Notify the players and stop now.
    Stop,
}

/// Answer to a heartbeat.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HeartbeatReply {
    /// The instruction.
    pub action: FleetAction,
    /// Players who were suspended from all worlds; most are in another one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expelled: Vec<Expelled>,
    /// Whether all client scripts must report their prints, from now on.
    #[serde(default)]
    pub prints_wanted: bool,
}

/// A player whom moderators have suspended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expelled {
    /// Persistent id.
    pub player_id: String,
    /// The reason for the player.
    pub reason: String,
}

/// `POST …/blocks`: requests the block list of a player.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AskBlocks {
    /// Persistent id.
    pub player_id: String,
}

/// Answer to [`AskBlocks`]: the block list.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PlayerBlocks {
    /// Persistent ids, at most [`BLOCKS_MAX`].
    pub player_ids: Vec<String>,
}

/// Players that one player can block.
pub const BLOCKS_MAX: usize = 500;

/// `POST …/scripts`: the list of client scripts that a world has compiled.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PublishScripts {
    /// JSON text of a [`ScriptList`](frolic_protocol::script::ScriptList).
    pub list: String,
    /// Content that the control plane does not have yet: one zstd frame each, in
    /// base64.
    pub contents: Vec<String>,
}

/// Answer to [`PublishScripts`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PublishedScripts {
    /// The platform's signature of the list, in hex.
    pub signature: String,
    /// Hashes (`sha256:…`) of contents that the control plane does not have.
    pub missing: Vec<String>,
}

/// `POST /internal/reload` on a game server: switches its world to these scripts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReloadRequest {
    /// SHA-256 of the package, in hex.
    pub revision: String,
    /// All its scripts: source by path below `scripts/`.
    pub scripts: BTreeMap<String, String>,
}

/// The result of a [`ReloadRequest`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadReply {
    /// The version that runs now.
    pub version: u32,
    /// New and changed scripts.
    pub changed: Vec<String>,
    /// Removed scripts.
    pub removed: Vec<String>,
    /// Why nothing changed: compile errors, as `path:line: message`.
    pub errors: Vec<String>,
    /// Why the world rolled back to the previous scripts at once: a new one failed
    /// while it started. `version` is that of the scripts that run.
    #[serde(default)]
    pub swapped_back: Option<String>,
}

/// `POST …/stopped`: the last request of a game server that stops by itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerStopped {
    /// A human-readable reason.
    pub reason: String,
}
