//! What an operator can set, with the numbers the specification gives.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use frolic_protocol::fleet::CLOSE_LIMIT_S;

use crate::blobs::BlobPlace;
use crate::tls::TlsSettings;

/// Settings of a control plane. Start from [`Settings::new`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// Address to listen on; game servers listen on the same one.
    pub host: IpAddr,
    /// Port to listen on; 0 picks a free one.
    pub port: u16,
    /// Folder of everything that is kept.
    pub data_dir: PathBuf,
    /// Where the tables are; SQLite in `data_dir` when absent.
    pub database_url: Option<String>,
    /// Where the blobs are; a folder inside `data_dir` when absent.
    pub blobs: Option<BlobPlace>,
    /// Where game servers record their worlds; nowhere when absent. Reports
    /// carry what is there.
    pub record_dir: Option<PathBuf>,
    /// What game servers send one player at most; their own default when
    /// absent.
    pub client_bytes_per_second: Option<u32>,
    /// Whether the ports of game servers are out of reach of players, who then
    /// come through the platform's.
    pub single_port: bool,
    /// Whether names and chat are filtered.
    pub text_filter: bool,
    /// Signs tickets. Never a known default: the caller makes one.
    pub secret_key: Vec<u8>,
    /// Opens `/admin`; without it those endpoints are closed.
    pub admin_token: Option<String>,
    /// Certificate and key, to speak TLS without a proxy in front.
    pub tls: Option<TlsSettings>,
    /// An issuer of identities beside our own passwords.
    pub identity: Option<IdentitySettings>,
    /// The game that a join without any id opens.
    pub default_game: Option<String>,
    /// Whether worlds pass on what all client scripts print, as on the machine of
    /// a creator; else only while the console is looked at.
    pub client_prints: bool,
    /// How long a login lasts.
    pub session_lifetime: Duration,
    /// How long an account stays signed in without being used, where its owner asked for that.
    pub remembered_lifetime: Duration,
    /// How long a world that is not persistent is kept asleep.
    pub world_keep: Duration,
    /// Life cycle of game servers.
    pub fleet: FleetSettings,
    /// Bounds on what clients may ask.
    pub limits: LimitSettings,
    /// Bounds on what games may keep.
    pub store: StoreSettings,
}

/// Whose JWTs are believed.
#[derive(Clone, Debug)]
pub struct IdentitySettings {
    /// Where the issuer publishes its keys.
    pub jwks_url: String,
    /// What its tokens must have as `iss`.
    pub issuer: String,
    /// What its tokens must have as `aud`; without it, tokens that the issuer
    /// made for other sites are believed too.
    pub audience: Option<String>,
    /// Time between two fetches of the keys, however many tokens name one
    /// that is not known.
    pub keys_retry_after: Duration,
}

impl IdentitySettings {
    /// An issuer and its keys, for every audience.
    pub fn new(jwks_url: String, issuer: String) -> Self {
        Self {
            jwks_url,
            issuer,
            audience: None,
            keys_retry_after: Duration::from_secs(10),
        }
    }
}

/// How much the scripts of one game may keep.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// Keys of the game and of all its players, and places in its rankings.
    pub keys_per_game: i64,
    /// Bytes of keys and values.
    pub bytes_per_game: i64,
}

/// How game servers are started, watched and stopped.
#[derive(Clone, Debug)]
pub struct FleetSettings {
    /// From launch to `ready`, before the process counts as failed.
    pub start_timeout: Duration,
    /// Silence after which a server that was ready counts as hung.
    pub heartbeat_timeout: Duration,
    /// From being asked to stop until the process is killed.
    pub stop_grace: Duration,
    /// Wait before the first restart after a crash; doubles each time.
    pub backoff_first: Duration,
    /// Longest wait between restarts.
    pub backoff_max: Duration,
    /// A server that ran this long starts a new count of crashes.
    pub steady_after: Duration,
    /// Crashes in a row after which the world is given up until asked for again.
    pub crashes_max: u32,
    /// How long a join holds a place for a client that has not connected yet.
    pub reservation: Duration,
    /// How long a place waits for somebody whose game server broke down.
    pub resume_hold: Duration,
    /// Game servers that run at once.
    pub servers_max: usize,
    /// How long a world is empty before it gives its process to one that is
    /// wanted, when all are in use.
    pub spare_after: Duration,
}

/// Bounds on requests.
#[derive(Clone, Debug)]
pub struct LimitSettings {
    /// Largest JSON body.
    pub body_bytes_max: usize,
    /// Largest `.game` upload.
    pub package_bytes_max: usize,
    /// Longest handling of one request; also how long a body may trickle in.
    pub request_timeout: Duration,
    /// Longest wait for the head of a request.
    pub header_timeout: Duration,
    /// Connections at once.
    pub connections_max: usize,
    /// WebSockets proxied at once through `/api/rooms`.
    pub proxied_sockets_max: usize,
    /// Those of one address that may wait there without having shown a ticket.
    pub proxied_newcomers_max: usize,
    /// Silence after which either end of a proxied WebSocket counts as gone.
    pub proxied_silence_max: Duration,
    /// Time without a message either way after which one is closed.
    pub proxied_idle_max: Duration,
    /// Socket.IO clients at once.
    pub socketio_clients_max: usize,
    /// Logins and joins one address may make in a burst.
    pub rate_burst: u32,
    /// Logins and joins one address gets back per second.
    pub rate_per_s: f64,
    /// Wrong passwords in a row before an account makes one wait; four times
    /// as many from one address.
    pub password_tries_burst: u32,
    /// Tries that come back per second.
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
            world_keep: Duration::from_secs(60 * 60),
            fleet: FleetSettings::default(),
            limits: LimitSettings::default(),
            store: StoreSettings::default(),
        }
    }
}

impl Default for FleetSettings {
    fn default() -> Self {
        Self {
            start_timeout: Duration::from_secs(20),
            heartbeat_timeout: Duration::from_secs(15),
            // For scripts that save, and then for what is on its way to storage.
            stop_grace: Duration::from_secs(u64::from(CLOSE_LIMIT_S) + 10),
            backoff_first: Duration::from_millis(500),
            backoff_max: Duration::from_secs(30),
            steady_after: Duration::from_secs(60),
            crashes_max: 6,
            reservation: Duration::from_secs(frolic_protocol::ticket::TICKET_LIFETIME_S),
            resume_hold: Duration::from_secs(60),
            servers_max: 200,
            // Whoever left may be on the way back.
            spare_after: Duration::from_secs(5),
        }
    }
}

impl Default for StoreSettings {
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
            package_bytes_max: 100 * 1024 * 1024,
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
