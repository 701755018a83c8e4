//! Settings of the control plane, with the defaults of the specification.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use frolic_fleet_api::process::CLOSE_LIMIT_S;

use crate::api::limits::PACKAGE_BYTES_MAX;
use crate::core::blobs::BlobLocation;
use crate::core::tls::TlsSettings;

/// Settings of a control plane. Start from [`Settings::new`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// Address to listen on; game servers listen on the same one.
    pub host: IpAddr,
    /// Port to listen on; 0 picks a free one.
    pub port: u16,
    /// Directory of all persistent files.
    pub data_dir: PathBuf,
    /// Database connection URL; an SQLite file in `data_dir` when absent.
    pub database_url: Option<String>,
    /// Blob storage; a directory inside `data_dir` when absent.
    pub blobs: Option<BlobLocation>,
    /// Directory for world recordings. Recording is off when absent. Reports attach
    /// the recording of the reported world.
    pub record_dir: Option<PathBuf>,
    /// Snapshot bandwidth limit per player, in bytes per second; the game server's
    /// own default when absent.
    pub client_bytes_per_second: Option<u32>,
    /// Whether all player connections go through the platform's port, because the
    /// ports of game servers are not reachable from outside.
    pub single_port: bool,
    /// Whether names and chat are filtered.
    pub text_filter: bool,
    /// Signs tickets. The caller must generate it: it has no default, because a known
    /// default would allow forged tickets.
    pub secret_key: Vec<u8>,
    /// Bearer token for `/admin`. Those endpoints are disabled without it.
    pub admin_token: Option<String>,
    /// Certificate and key for TLS without a reverse proxy.
    pub tls: Option<TlsSettings>,
    /// External issuer of identities, in addition to local passwords.
    pub identity: Option<IdentitySettings>,
    /// The game that a join without an id opens.
    pub default_game: Option<String>,
    /// Whether worlds always forward the output of client scripts, for a creator's
    /// own machine; otherwise only while a console is open.
    pub client_prints: bool,
    /// Lifetime of a session.
    pub session_lifetime: Duration,
    /// Idle lifetime of an account session whose owner chose to stay signed in.
    pub remembered_lifetime: Duration,
    /// How long a stopped world that is not persistent is retained.
    pub world_retention: Duration,
    /// Life cycle of game servers.
    pub fleet: FleetSettings,
    /// Limits on requests and connections.
    pub limits: LimitSettings,
    /// Storage limits per game.
    pub datastore: DatastoreSettings,
}

/// A trusted issuer of JWTs.
#[derive(Clone, Debug)]
pub struct IdentitySettings {
    /// URL of the issuer's JWKS (public keys).
    pub jwks_url: String,
    /// Required `iss` claim.
    pub issuer: String,
    /// Required `aud` claim. Without it, tokens that the issuer made for other sites
    /// are accepted too.
    pub audience: Option<String>,
    /// Minimum time between two fetches of the keys. Bounds the fetches that tokens
    /// with unknown key ids can cause.
    pub keys_retry_after: Duration,
}

impl IdentitySettings {
    /// An issuer whose tokens are accepted for every audience.
    pub fn new(jwks_url: String, issuer: String) -> Self {
        Self {
            jwks_url,
            issuer,
            audience: None,
            keys_retry_after: Duration::from_secs(10),
        }
    }
}

/// Datastore limits of one game.
#[derive(Clone, Debug)]
pub struct DatastoreSettings {
    /// Maximum number of keys of the game and all its players, and of entries in its
    /// rankings.
    pub keys_per_game: i64,
    /// Maximum total size of keys and values, in bytes.
    pub bytes_per_game: i64,
}

/// How game servers are started, watched and stopped.
#[derive(Clone, Debug)]
pub struct FleetSettings {
    /// Maximum time from launch to `ready`; after it the start counts as failed.
    pub start_timeout: Duration,
    /// Time without a heartbeat after which a ready server counts as hung.
    pub heartbeat_timeout: Duration,
    /// Time from the stop request until the process is killed.
    pub stop_grace: Duration,
    /// Delay before the first restart after a crash; doubles with each further crash.
    pub backoff_first: Duration,
    /// Longest delay between restarts.
    pub backoff_max: Duration,
    /// Uptime after which the crash count starts again from zero.
    pub steady_after: Duration,
    /// Consecutive crashes after which the world is not restarted until a join
    /// requests it.
    pub crashes_max: u32,
    /// How long a join reserves a player slot before the client connects.
    pub reservation: Duration,
    /// How long a slot stays reserved for a player whose game server crashed.
    pub resume_hold: Duration,
    /// Maximum number of game servers that run at the same time.
    pub servers_max: usize,
    /// How long a world must be empty before its process may be stopped in favour of
    /// another world, when all processes are in use.
    pub spare_after: Duration,
}

/// Bounds on requests.
#[derive(Clone, Debug)]
pub struct LimitSettings {
    /// Maximum size of a JSON body.
    pub body_bytes_max: usize,
    /// Maximum size of a `.game` upload.
    pub package_bytes_max: usize,
    /// Maximum time to handle one request, including receiving its body.
    pub request_timeout: Duration,
    /// Maximum time to receive the headers of a request.
    pub header_timeout: Duration,
    /// Maximum number of open connections.
    pub connections_max: usize,
    /// Maximum number of WebSockets proxied through `/api/rooms`.
    pub proxied_sockets_max: usize,
    /// Maximum number of proxied WebSockets per address that have not shown a ticket
    /// yet.
    pub proxied_newcomers_max: usize,
    /// Silence after which one end of a proxied WebSocket counts as disconnected.
    pub proxied_silence_max: Duration,
    /// Time without a message in either direction after which a proxied WebSocket is
    /// closed.
    pub proxied_idle_max: Duration,
    /// Maximum number of connected Socket.IO clients.
    pub socketio_clients_max: usize,
    /// Rate limit of logins and joins per address: burst.
    pub rate_burst: u32,
    /// Rate limit of logins and joins per address: tokens per second.
    pub rate_per_s: f64,
    /// Consecutive wrong passwords before an account is rate limited; four times as
    /// many per address.
    pub password_tries_burst: u32,
    /// Password attempts regained per second.
    pub password_tries_per_s: f64,
}

impl Settings {
    /// Defaults of the specification, for `data_dir` and `secret_key`.
    pub fn new(data_dir: PathBuf, secret_key: Vec<u8>) -> Self {
        Self {
            host: IpAddr::from([127, 0, 0, 1]),
            port: 5000,
            data_dir,
            database_url: None,
            blobs: None,
            record_dir: None,
            client_bytes_per_second: None,
            single_port: false,
            text_filter: true,
            secret_key,
            admin_token: None,
            tls: None,
            identity: None,
            default_game: None,
            client_prints: false,
            session_lifetime: Duration::from_secs(4 * 60 * 60),
            remembered_lifetime: Duration::from_secs(30 * 24 * 60 * 60),
            world_retention: Duration::from_secs(60 * 60),
            fleet: FleetSettings::default(),
            limits: LimitSettings::default(),
            datastore: DatastoreSettings::default(),
        }
    }
}

impl Default for FleetSettings {
    fn default() -> Self {
        Self {
            start_timeout: Duration::from_secs(20),
            heartbeat_timeout: Duration::from_secs(15),
            // Scripts save first (`CLOSE_LIMIT_S`); then pending writes reach the store.
            stop_grace: Duration::from_secs(u64::from(CLOSE_LIMIT_S) + 10),
            backoff_first: Duration::from_millis(500),
            backoff_max: Duration::from_secs(30),
            steady_after: Duration::from_secs(60),
            crashes_max: 6,
            reservation: Duration::from_secs(frolic_fleet_api::ticket::TICKET_LIFETIME_S),
            resume_hold: Duration::from_secs(60),
            servers_max: 200,
            // A player who left may be reconnecting.
            spare_after: Duration::from_secs(5),
        }
    }
}

impl Default for DatastoreSettings {
    fn default() -> Self {
        Self {
            keys_per_game: 200_000,
            bytes_per_game: 256 * 1024 * 1024,
        }
    }
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            body_bytes_max: 64 * 1024,
            package_bytes_max: PACKAGE_BYTES_MAX,
            request_timeout: Duration::from_secs(30),
            header_timeout: Duration::from_secs(10),
            connections_max: 12_000,
            proxied_sockets_max: 2_000,
            proxied_newcomers_max: 32,
            proxied_silence_max: Duration::from_secs(20),
            proxied_idle_max: Duration::from_secs(90),
            socketio_clients_max: 10_000,
            rate_burst: 60,
            rate_per_s: 2.0,
            password_tries_burst: 10,
            password_tries_per_s: 1.0 / 30.0,
        }
    }
}
