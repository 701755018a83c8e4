//! What a game server is told when it starts.

use std::net::IpAddr;

use frolic_package::Package;
use frolic_protocol::ticket::TicketKey;

/// Where the world comes from.
pub enum WorldSource {
    /// From a control plane, which also hands out the tickets.
    ControlPlane {
        /// Its address, for example `http://127.0.0.1:5000`.
        url: String,
        /// Bearer token for `/internal`.
        token: String,
        /// Checks tickets.
        key: TicketKey,
    },
    /// Straight from a package, without tickets: for development and
    /// benchmarks, on a loopback address only.
    Package(Box<Package>),
}

/// How to run one world.
pub struct GameServerConfig {
    /// The world's id.
    pub world_id: String,
    /// Address to listen on.
    pub host: IpAddr,
    /// TCP port of WebSocket and HTTP; 0 takes a free one.
    pub port: u16,
    /// Whether to offer WebTransport.
    pub webtransport: bool,
    /// Where the world comes from.
    pub source: WorldSource,
    /// Overrides the game's simulation rate.
    pub tick_hz: Option<u32>,
    /// Overrides the game's snapshot rate.
    pub snapshot_hz: Option<u32>,
    /// Overrides what the game says clients are told of.
    pub interest: Option<frolic_world::InterestPolicy>,
    /// Overrides how many bytes of snapshots a client is sent in a second.
    pub client_bytes_per_s: Option<u32>,
    /// Overrides the game's player limit.
    pub players_max: Option<u32>,
    /// Seconds that scripts have when the world ends; usually
    /// [`CLOSE_LIMIT_S`](frolic_protocol::fleet::CLOSE_LIMIT_S).
    pub close_limit_s: u32,
    /// Where to write the name of a script that the process has to end for;
    /// whoever restarts it leaves that script out. None: such a script hangs
    /// the world.
    pub blame: Option<std::fs::File>,
    /// Whether the world's thread gives up every system call it does not need;
    /// see [`lockdown`](crate::lockdown).
    pub confined: bool,
    /// Where compiled scripts are kept; none: nowhere.
    pub script_folder: Option<std::path::PathBuf>,
    /// Where the session is recorded, for a replay; none: nowhere.
    pub record_folder: Option<std::path::PathBuf>,
}
