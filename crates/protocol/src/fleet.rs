//! What the control plane and its game servers say to each other over HTTP
//! below `/internal/worlds/{world_id}`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::client_log::ClientPrints;

/// Environment variable with the bearer token for `/internal`.
pub const WORLD_TOKEN_ENV: &str = "FROLIC_WORLD_TOKEN";
/// Environment variable with the world's ticket key, in hex.
pub const TICKET_KEY_ENV: &str = "FROLIC_TICKET_KEY";

/// Header in which the control plane says for whom it opens a WebSocket; it
/// shows the world's token beside it.
pub const CLIENT_ADDRESS_HEADER: &str = "x-frolic-client-address";

/// Seconds in which a world that stops runs `PlayerRemoving` and
/// `World.OnClose` and stores what they save. Whoever stops a game server waits
/// longer than this before it is killed.
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
    /// Scripts that an earlier process of this world had to end for; they are
    /// left out.
    pub disabled_scripts: Vec<String>,
    /// Counts the processes of this world: what an older one sends is refused.
    pub epoch: u64,
    /// Whether what is built here outlives the process.
    pub persistent: bool,
    /// Which client scripts are to say what they print.
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

/// `POST …/ready`: the world is loaded and takes connections.
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
    /// Tickets used since the last heartbeat: whoever held a place for them
    /// need not any longer, also when they have left again already. A process
    /// that an older version started does not say.
    #[serde(default)]
    pub arrived: u32,
    /// Lasting ids of those whose connection was lost and whose places wait
    /// for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub away: Vec<String>,
    /// Lasting ids of those who came back from an earlier process of the world,
    /// lately: nobody needs to hold a place for them any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub returned: Vec<String>,
    /// Current tick.
    pub tick: u32,
    /// 99th percentile of the tick time of the last minute.
    pub tick_ms_p99: f32,
    /// Errors scripts raised since the last heartbeat.
    pub script_errors: u32,
}

/// What the control plane answers to a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FleetAction {
    /// Go on.
    Continue,
    /// Take no new players; stop when the last one leaves.
    Drain,
    /// Tell the players and stop now.
    Stop,
}

/// Answer to a heartbeat.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HeartbeatReply {
    /// What to do next.
    pub action: FleetAction,
    /// Players who may not be in any world any more; most are in another one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expelled: Vec<Expelled>,
    /// Whether all client scripts are to say what they print, from now on.
    #[serde(default)]
    pub prints_wanted: bool,
}

/// Somebody whom moderators have suspended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expelled {
    /// Lasting id.
    pub player_id: String,
    /// What to tell them.
    pub reason: String,
}

/// `POST …/blocks`: asks whom a player has blocked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AskBlocks {
    /// Lasting id.
    pub player_id: String,
}

/// Answer to [`AskBlocks`]: with whom a player wants nothing to do.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PlayerBlocks {
    /// Lasting ids, at most [`BLOCKS_MAX`].
    pub player_ids: Vec<String>,
}

/// Players that one player can block.
pub const BLOCKS_MAX: usize = 500;

/// `POST …/scripts`: the list of client scripts that a world has compiled.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PublishScripts {
    /// JSON text of a [`ScriptList`](crate::script::ScriptList).
    pub list: String,
    /// What it names and the control plane does not have yet: one zstd frame
    /// each, in base64.
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

/// `POST /internal/reload` on a game server: brings its world to these
/// scripts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReloadRequest {
    /// SHA-256 of the package, in hex.
    pub revision: String,
    /// All its scripts: source by path below `scripts/`.
    pub scripts: BTreeMap<String, String>,
}

/// What came of a [`ReloadRequest`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadReply {
    /// The version that runs now.
    pub version: u32,
    /// New and changed scripts.
    pub changed: Vec<String>,
    /// Scripts that are gone.
    pub removed: Vec<String>,
    /// Why nothing changed: what does not compile, as `path:line: message`.
    pub errors: Vec<String>,
    /// Why the world returned to the scripts before these at once: one failed
    /// while it started. `version` is that of the scripts that run.
    #[serde(default)]
    pub swapped_back: Option<String>,
}

/// `POST …/stopped`: the last word of a game server that ends by itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerStopped {
    /// Why, for people.
    pub reason: String,
}
