//! The startup configuration of a game server.

use std::net::IpAddr;

use frolic_fleet_api::ticket::TicketKey;
use frolic_package::Package;

/// The source of the world.
pub enum WorldSource {
    /// From a control plane, which also issues the tickets.
    ControlPlane {
        /// Its address, for example `http://127.0.0.1:5000`.
        url: String,
        /// Bearer token for `/internal`.
        token: String,
        /// Checks tickets.
        key: TicketKey,
    },
    /// Directly from a package, without tickets: for development and benchmarks, on
    /// a loopback address only.
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
    /// The source of the world.
    pub source: WorldSource,
    /// Overrides the game's simulation rate.
    pub tick_hz: Option<u32>,
    /// Overrides the game's snapshot rate.
    pub snapshot_hz: Option<u32>,
    /// Overrides the game's interest policy, which selects what is replicated to
    /// clients.
    pub interest: Option<frolic_world::InterestPolicy>,
    /// Overrides the limit of snapshot bytes per client and second.
    pub client_bytes_per_s: Option<u32>,
    /// Overrides the game's player limit.
    pub players_max: Option<u32>,
    /// Seconds that scripts have when the world closes; usually
    /// [`CLOSE_LIMIT_S`](frolic_fleet_api::process::CLOSE_LIMIT_S).
    pub close_limit_s: u32,
    /// Where to write the name of a script that forces the process to end; the
    /// supervisor leaves that script out when it restarts. None: such a script
    /// hangs the world.
    pub blame: Option<std::fs::File>,
    /// Whether the world's thread gives up every system call it does not need; see
    /// [`lockdown`](crate::lockdown).
    pub confined: bool,
    /// Folder for compiled scripts; none: they are not written.
    pub script_folder: Option<std::path::PathBuf>,
    /// Folder for recordings of the session; none: not recorded.
    pub record_folder: Option<std::path::PathBuf>,
}
