//! Starting and stopping the process of one world.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use axum::routing::get;
use axum::serve::ListenerExt;
use axum::{Json, Router};
use frolic_package::{Limits, Package};
use frolic_protocol::fleet::{FleetAction, Heartbeat, ServerReady};
use frolic_protocol::ticket::TicketKey;
use frolic_script::VmLimits;
use frolic_script::guard::blame;
use frolic_world::replay::RecordOptions;
use frolic_world::{InterestPolicy, World, WorldOptions};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

use crate::admission::Admission;
use crate::boot::{BootError, ControlPlane};
use crate::config::{GameServerConfig, WorldSource};
use crate::host::{Host, HostSettings, unix_ms};
use crate::link::{INBOX_MESSAGES, Inbound};
use crate::lockdown;
use crate::metrics::Metrics;
use crate::recording;
use crate::scripts;
use crate::transport::sockets::Sockets;
use crate::transport::{Transports, websocket, webtransport};

const HEARTBEAT_EVERY: Duration = Duration::from_secs(2);
/// Without the control plane for this long, nobody can join any more and
/// nobody will restart us: stop.
const HEARTBEATS_MISSED_MAX: u32 = 30;
/// The control plane stops idle worlds without racing a join; a world stops
/// by itself only when it did not.
const IDLE_GRACE_S: u32 = 10;
/// How long a script that reaches no point to stop at may hold the world up.
const KILL_AFTER: Duration = Duration::from_millis(250);
/// Luau needs up to 4 MB of stack in debug builds for its deepest recursion.
const WORLD_STACK_BYTES: usize = 16 * 1024 * 1024;

/// Why a game server could not run.
#[derive(Debug, thiserror::Error)]
pub enum GameServerError {
    /// The control plane did not answer.
    #[error(transparent)]
    Boot(#[from] BootError),
    /// The package cannot be used.
    #[error("the package is not valid:\n{0}")]
    Package(String),
    /// The world did not load. Kept as text: the cause belongs to its thread.
    #[error("{0}")]
    Load(String),
    /// A port could not be opened.
    #[error("cannot listen on {address}: {source}; is another server there?")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// Without tickets everybody could come in from anywhere.
    #[error("{0} is not a loopback address: a world without tickets is for this machine only")]
    PublicWithoutTickets(IpAddr),
    /// The system gives no means to watch sockets.
    #[error("the sockets cannot be watched: {0}")]
    Sockets(std::io::Error),
    /// The world's thread ended early.
    #[error("the world stopped unexpectedly")]
    WorldDied,
    /// The thread could not be made.
    #[error("the world's thread could not start: {0}")]
    Thread(std::io::Error),
}

/// What the world's thread needs; the world itself is made there.
struct Plan {
    package: Package,
    room_code: String,
    seed: u64,
    disabled_scripts: Vec<String>,
    key: Option<TicketKey>,
}

/// Runs one world until it stops. `ready` is told the TCP port.
///
/// # Errors
/// When it cannot start, or its thread dies.
pub async fn run(
    mut config: GameServerConfig,
    ready: impl FnOnce(SocketAddr),
) -> Result<String, GameServerError> {
    let kill_after = config.blame.is_some().then_some(KILL_AFTER);
    if let Some(file) = config.blame.take() {
        blame::keep_in(file);
    }
    let (plan, control_plane) = plan(&config).await?;
    let metrics = Arc::new(Metrics::default());
    let (inbox, receiver) = mpsc::channel(INBOX_MESSAGES);
    let players_max = config
        .players_max
        .unwrap_or(plan.package.manifest.game.max_players);
    let connections_max = players_max.saturating_mul(2).saturating_add(64);

    let address = SocketAddr::new(config.host, config.port);
    let listener = TcpListener::bind(address)
        .await
        .map_err(|source| GameServerError::Listen { address, source })?;
    let address = listener.local_addr().unwrap_or(address);

    let (loaded, world_loaded) = oneshot::channel();
    let (ended, world_ended) = oneshot::channel();
    let world_metrics = metrics.clone();
    let confined = config.confined;
    let settings = Settings {
        kill_after,
        ..Settings::new(&config, players_max, control_plane.is_some())
    };
    std::thread::Builder::new()
        .name("world".into())
        .stack_size(WORLD_STACK_BYTES)
        .spawn(move || {
            let host = match load(plan, settings, receiver, world_metrics) {
                Ok(host) => host,
                Err(error) => {
                    let _ = loaded.send(Err(error));
                    return;
                }
            };
            if confined {
                lockdown::confine_world_thread();
            }
            let _ = loaded.send(Ok(()));
            let _ = ended.send(host.run());
        })
        .map_err(GameServerError::Thread)?;
    world_loaded
        .await
        .map_err(|_| GameServerError::WorldDied)??;

    let transports = Transports::new(inbox.clone(), metrics.clone(), connections_max);
    let webtransport = open_webtransport(&config, address);
    let server_ready = ServerReady {
        pid: std::process::id(),
        websocket_port: address.port(),
        webtransport: webtransport.as_ref().map(|w| w.endpoint.clone()),
    };
    if let Some(listening) = webtransport {
        tokio::spawn(webtransport::serve(listening, transports.clone()));
    }
    let mut routes = routes(transports, metrics.clone());
    if control_plane.is_none() {
        routes = routes.merge(bench_routes(metrics.clone()));
    }
    // Small messages leave at once: waiting for the last one's acknowledgement
    // would bunch snapshots up on a slow line.
    let listener = listener.tap_io(|socket| {
        let _ = socket.set_nodelay(true);
    });
    let routes = routes.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, routes).await });

    if let Some(control_plane) = &control_plane {
        control_plane.ready(&server_ready).await?;
        tokio::spawn(heartbeats(control_plane.clone(), metrics, inbox.clone()));
    }
    ready(address);
    tokio::spawn(stop_on_signal(inbox));

    let reason = world_ended.await.map_err(|_| GameServerError::WorldDied)?;
    if let Some(control_plane) = control_plane
        && let Err(error) = control_plane.stopped(&reason).await
    {
        tracing::warn!(%error, "the control plane was not told of the stop");
    }
    // Lets closing frames of WebTransport reach the clients.
    tokio::time::sleep(Duration::from_millis(200)).await;
    Ok(reason)
}

async fn plan(config: &GameServerConfig) -> Result<(Plan, Option<ControlPlane>), GameServerError> {
    match &config.source {
        WorldSource::ControlPlane { url, token, key } => {
            let control_plane = ControlPlane::new(url, &config.world_id, token);
            let boot = control_plane.boot().await?;
            let archive = control_plane.package().await?;
            let package = Package::read(&archive, &Limits::default())
                .map_err(|report| GameServerError::Package(report.to_string()))?;
            let plan = Plan {
                package,
                room_code: boot.room_code,
                seed: boot.seed,
                disabled_scripts: boot.disabled_scripts,
                key: Some(*key),
            };
            Ok((plan, Some(control_plane)))
        }
        WorldSource::Package(package) => {
            if !config.host.is_loopback() {
                return Err(GameServerError::PublicWithoutTickets(config.host));
            }
            let plan = Plan {
                package: (**package).clone(),
                room_code: "LOCAL".into(),
                seed: 1,
                disabled_scripts: Vec::new(),
                key: None,
            };
            Ok((plan, None))
        }
    }
}

/// The part of the configuration that the world's thread needs.
struct Settings {
    world_id: String,
    players_max: u32,
    tick_hz: Option<u32>,
    snapshot_hz: Option<u32>,
    interest: Option<InterestPolicy>,
    stops_when_idle: bool,
    kill_after: Option<Duration>,
    script_folder: Option<std::path::PathBuf>,
    record_folder: Option<std::path::PathBuf>,
}

impl Settings {
    fn new(config: &GameServerConfig, players_max: u32, stops_when_idle: bool) -> Self {
        Self {
            world_id: config.world_id.clone(),
            players_max,
            tick_hz: config.tick_hz,
            snapshot_hz: config.snapshot_hz,
            interest: config.interest,
            stops_when_idle,
            kill_after: None,
            script_folder: config.script_folder.clone(),
            record_folder: config.record_folder.clone(),
        }
    }
}

fn load(
    plan: Plan,
    settings: Settings,
    inbox: mpsc::Receiver<Inbound>,
    metrics: Arc<Metrics>,
) -> Result<Host, GameServerError> {
    let package = plan.package;
    let recording = recording::start(settings.record_folder.as_deref(), &settings.world_id);
    let options = WorldOptions {
        seed: plan.seed,
        started_unix_ms: unix_ms(),
        disabled_scripts: plan.disabled_scripts,
        scripts: VmLimits {
            kill_after: settings.kill_after,
            ..VmLimits::default()
        },
        record: recording.as_ref().map(|_| RecordOptions::default()),
        tick_hz: settings.tick_hz,
        snapshot_hz: settings.snapshot_hz,
        interest: settings.interest,
    };
    let world =
        World::load(&package, options).map_err(|error| GameServerError::Load(error.to_string()))?;
    if let Some(folder) = &settings.script_folder
        && let Err(error) = scripts::keep(folder, &world)
    {
        tracing::warn!(%error, folder = %folder.display(), "compiled scripts were not kept");
    }
    let scene = package.scene_json();
    let compressed = zstd::bulk::compress(scene, 9).unwrap_or_default();
    let idle_stop_s = package.manifest.world.idle_stop_s;
    let host = HostSettings {
        admission: Admission::new(settings.world_id.clone(), plan.key),
        world_id: settings.world_id,
        room_code: plan.room_code,
        revision: package.revision.clone(),
        players_max: settings.players_max,
        idle_stop_s: settings
            .stops_when_idle
            .then_some(idle_stop_s.saturating_add(IDLE_GRACE_S)),
        scene: (hex::encode(Sha256::digest(scene)), compressed),
        recording,
    };
    let sockets = Sockets::new().map_err(GameServerError::Sockets)?;
    Ok(Host::new(world, host, inbox, sockets, metrics))
}

fn open_webtransport(
    config: &GameServerConfig,
    address: SocketAddr,
) -> Option<webtransport::Listening> {
    if !config.webtransport {
        return None;
    }
    let opened = webtransport::listen(SocketAddr::new(address.ip(), 0));
    opened
        .inspect_err(|error| tracing::warn!(%error, "no WebTransport; WebSocket only"))
        .ok()
}

fn routes(transports: Transports, metrics: Arc<Metrics>) -> Router {
    let (figures, text) = (metrics.clone(), metrics);
    Router::new()
        .route("/", get(websocket::upgrade))
        .route("/ws", get(websocket::upgrade))
        .route("/health", get(|| async { "ok" }))
        .route("/metrics", get(move || async move { text.prometheus() }))
        .route(
            "/stats",
            get(move || async move { Json(figures.figures()) }),
        )
        .with_state(transports)
}

/// For benchmarks on a world without tickets: forgets the warm-up.
fn bench_routes(metrics: Arc<Metrics>) -> Router {
    let reset = get(move || async move { metrics.forget_ticks() });
    Router::new().route("/stats/reset", reset)
}

async fn heartbeats(
    control_plane: ControlPlane,
    metrics: Arc<Metrics>,
    inbox: mpsc::Sender<Inbound>,
) {
    let mut missed = 0;
    let mut errors_told = 0;
    let mut every = tokio::time::interval(HEARTBEAT_EVERY);
    loop {
        every.tick().await;
        let figures = metrics.figures();
        let errors = metrics.script_errors.load(Relaxed);
        let heartbeat = Heartbeat {
            players: figures.players,
            tick: figures.tick,
            tick_ms_p99: figures.tick_ms_p99,
            script_errors: (errors - errors_told) as u32,
        };
        let order = match control_plane.heartbeat(&heartbeat).await {
            Ok(reply) => {
                missed = 0;
                errors_told = errors;
                match reply.action {
                    FleetAction::Continue => continue,
                    FleetAction::Drain => Inbound::Drain,
                    FleetAction::Stop => Inbound::Stop {
                        reason: "the operator stopped this world".into(),
                    },
                }
            }
            Err(error) => {
                missed += 1;
                tracing::warn!(%error, missed, "heartbeat failed");
                if missed < HEARTBEATS_MISSED_MAX && !error.is_replaced() {
                    continue;
                }
                Inbound::Stop {
                    reason: "the platform is gone; try again later".into(),
                }
            }
        };
        if inbox.send(order).await.is_err() {
            return;
        }
    }
}

async fn stop_on_signal(inbox: mpsc::Sender<Inbound>) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut interrupt)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) else {
        return;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    let reason = "the server is restarting; join again in a moment".to_owned();
    let _ = inbox.send(Inbound::Stop { reason }).await;
}
