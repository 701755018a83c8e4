//! Starting and stopping the process of one world.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, header};
use axum::routing::get;
use axum::{Json, Router};
use frolic_fleet_api::console::ClientPrints;
use frolic_fleet_api::persist::Saved;
use frolic_fleet_api::process::{Expelled, FleetAction, Heartbeat, ServerReady};
use frolic_fleet_api::remote_commands::{OutsideNews, OutsideReply, OutsideRequest};
use frolic_fleet_api::ticket::TicketKey;
use frolic_metrics::Text;
use frolic_package::{Limits, Package, Triangles};
use frolic_protocol::ServerMessage;
use frolic_protocol::json;
use frolic_script::VmLimits;
use frolic_script::guard::blame;
use frolic_world::replay::RecordOptions;
use frolic_world::{InterestPolicy, World, WorldOptions};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

use crate::admission::Admission;
use crate::config::{GameServerConfig, WorldSource};
use crate::connection::sockets::Sockets;
use crate::console::{self, Console};
use crate::control_plane::{ControlPlane, ControlPlaneError};
use crate::host::{EncodedScene, Host, HostSettings, Returning, WorldIdentity, unix_ms};
use crate::http;
use crate::inbox::{INBOX_MESSAGES, Inbound};
use crate::lockdown;
use crate::metrics::Metrics;
use crate::persistence::{PersistQueue, PersistenceClient, PersistenceFigures};
use crate::recording;
use crate::reload;
use crate::scripts::ScriptRelease;
use crate::social::BlockListClient;
use crate::store::StoreClient;
use crate::transport::{Transports, websocket, webtransport};

const HEARTBEAT_EVERY: Duration = Duration::from_secs(2);
/// Without the control plane for this long, no player can join and no one will
/// restart this process: stop.
const HEARTBEATS_MISSED_MAX: u32 = 30;
/// Batches of events queued for the control plane; more are dropped.
const NEWS_QUEUE_MAX: usize = 64;
/// Manifests that may wait for their signature.
const RELEASES_MAX: usize = 16;
/// The control plane stops idle worlds without racing a join; a world stops by
/// itself only when the control plane did not.
const IDLE_GRACE_S: u32 = 10;
/// How long a script that reaches no interrupt point may block the world.
const KILL_AFTER: Duration = Duration::from_millis(250);
/// How long a closed world waits until the rest is persisted. Together with
/// [`CLOSE_LIMIT_S`](frolic_fleet_api::process::CLOSE_LIMIT_S) and the time for
/// clients to read the close reason, this is less than the platform waits before it
/// kills a process.
const LAST_SAVES: Duration = Duration::from_secs(5);
/// Luau needs up to 4 MB of stack in debug builds for its deepest recursion.
const WORLD_STACK_BYTES: usize = 16 * 1024 * 1024;

/// Why a game server could not run.
#[derive(Debug, thiserror::Error)]
pub enum GameServerError {
    /// The control plane did not answer.
    #[error(transparent)]
    Boot(#[from] ControlPlaneError),
    /// The package cannot be used.
    #[error("the package is not valid:\n{0}")]
    Package(String),
    /// The world did not load. Stored as text: the cause belongs to its thread.
    #[error("{0}")]
    Load(String),
    /// A port could not be opened.
    #[error("cannot listen on {address}: {source}; is another server there?")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// Without tickets anyone could join from anywhere.
    #[error("{0} is not a loopback address: a world without tickets is for this machine only")]
    PublicWithoutTickets(IpAddr),
    /// The system provides no means to poll sockets.
    #[error("the sockets cannot be watched: {0}")]
    Sockets(std::io::Error),
    /// The world's thread ended early.
    #[error("the world stopped unexpectedly")]
    WorldDied,
    /// The thread could not be created.
    #[error("the world's thread could not start: {0}")]
    Thread(std::io::Error),
}

/// What the world's thread needs; the world itself is created there.
struct Plan {
    package: Package,
    room_code: String,
    seed: u64,
    disabled_scripts: Vec<String>,
    key: Option<TicketKey>,
    /// State that earlier processes of this world persisted.
    saved: Saved,
    epoch: u64,
    persistent: bool,
    filter_chat: bool,
    client_prints: ClientPrints,
}

/// Runs one world until it stops. `ready` receives the TCP port.
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
    let (releases, release_queue) = mpsc::channel(RELEASES_MAX);
    let (news, news_queue) = mpsc::channel(NEWS_QUEUE_MAX);
    let confined = config.confined;
    let persistence_figures = Arc::new(PersistenceFigures::default());
    let persist_queue = Arc::new(PersistQueue::new(plan.epoch, persistence_figures.clone()));
    let (store, store_task) = match &control_plane {
        Some(control_plane) => {
            let (epoch, persist_queue) = (plan.epoch, persist_queue.clone());
            let (door, task) =
                StoreClient::platform(control_plane.clone(), epoch, inbox.clone(), persist_queue);
            (door, Some(task))
        }
        None => (StoreClient::memory(), None),
    };
    let (persistence, persistence_task) = match &control_plane {
        Some(control_plane) => {
            let (door, task) = PersistenceClient::platform(
                control_plane.clone(),
                persist_queue,
                plan.persistent,
                inbox.clone(),
            );
            (door, Some(task))
        }
        None => (PersistenceClient::nowhere(), None),
    };
    let console = Arc::new(Console::new(plan.client_prints.clone()));
    let settings = Settings {
        kill_after,
        releases: control_plane.as_ref().map(|_| releases),
        news: control_plane.as_ref().map(|_| news),
        console: console.clone(),
        blocks: control_plane
            .as_ref()
            .map_or_else(BlockListClient::default, |control_plane| {
                BlockListClient::platform(control_plane.clone(), inbox.clone())
            }),
        ..Settings::new(
            &config,
            players_max,
            control_plane.is_some(),
            store,
            persistence,
        )
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
            let release = host.release();
            if confined {
                lockdown::confine_world_thread();
            }
            let _ = loaded.send(Ok(release));
            let _ = ended.send(host.run());
        })
        .map_err(GameServerError::Thread)?;
    let release = world_loaded
        .await
        .map_err(|_| GameServerError::WorldDied)??;
    store_scripts(config.script_folder.clone(), &release);
    if let Some(control_plane) = &control_plane {
        // Before the first client: it would refuse an unsigned manifest.
        let signature = control_plane.publish_scripts(&release).await?;
        let hash = release.hash;
        let _ = inbox.send(Inbound::Signed { hash, signature }).await;
        let folder = config.script_folder.clone();
        let signing = sign_lists(control_plane.clone(), folder, release_queue, inbox.clone());
        tokio::spawn(signing);
        tokio::spawn(post_news(control_plane.clone(), news_queue));
        learn_again(control_plane, &inbox).await;
    }

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
    let figures = Figures {
        metrics: metrics.clone(),
        console: console.clone(),
        control_plane: control_plane.clone(),
        persistence: persistence_figures,
    };
    let mut routes = routes(transports, figures);
    match &config.source {
        WorldSource::ControlPlane { token, .. } => {
            let platform = websocket::PlatformToken(Sha256::digest(token).into());
            routes = routes.layer(axum::Extension(platform));
            routes = routes.merge(reload::routes(inbox.clone(), token));
        }
        WorldSource::Package(_) => routes = routes.merge(bench_routes(metrics.clone())),
    }
    tokio::spawn(http::serve(listener, routes, connections_max));

    if let Some(control_plane) = &control_plane {
        control_plane.ready(&server_ready).await?;
        tokio::spawn(heartbeats(
            control_plane.clone(),
            metrics,
            console.clone(),
            inbox.clone(),
        ));
        tokio::spawn(console::send_reports(
            control_plane.clone(),
            console.clone(),
        ));
    }
    ready(address);
    tokio::spawn(stop_on_signal(inbox));

    let reason = world_ended.await.map_err(|_| GameServerError::WorldDied)?;
    // The last saves of scripts and of the world are still being stored: the token
    // expires with this process.
    let last_saves = async {
        for task in [store_task, persistence_task].into_iter().flatten() {
            let _ = task.await;
        }
    };
    let _ = tokio::time::timeout(LAST_SAVES, last_saves).await;
    if let Some(control_plane) = &control_plane {
        // The last output of scripts is often what matters.
        console::send_report(control_plane, &console).await;
    }
    if let Some(control_plane) = control_plane
        && let Err(error) = control_plane.stopped(&reason).await
    {
        tracing::warn!(%error, "the control plane was not notified of the stop");
    }
    // Lets WebTransport close frames reach the clients.
    tokio::time::sleep(Duration::from_millis(200)).await;
    Ok(reason)
}

async fn plan(config: &GameServerConfig) -> Result<(Plan, Option<ControlPlane>), GameServerError> {
    match &config.source {
        WorldSource::ControlPlane { url, token, key } => {
            let control_plane = ControlPlane::new(url, &config.world_id, token);
            let boot = control_plane.boot().await?;
            let archive = control_plane.package().await?;
            let saved = control_plane.saved().await?;
            let package = Package::read(&archive, &Limits::default())
                .map_err(|report| GameServerError::Package(report.to_string()))?;
            let plan = Plan {
                package,
                room_code: boot.room_code,
                seed: boot.seed,
                disabled_scripts: boot.disabled_scripts,
                key: Some(*key),
                saved,
                epoch: boot.epoch,
                persistent: boot.persistent,
                filter_chat: boot.filter_chat,
                client_prints: boot.client_prints,
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
                saved: Saved::default(),
                epoch: 0,
                persistent: false,
                filter_chat: false,
                client_prints: ClientPrints::default(),
            };
            Ok((plan, None))
        }
    }
}

/// Sends each new manifest to the control plane and returns its signature to the
/// world.
async fn sign_lists(
    control_plane: ControlPlane,
    script_folder: Option<PathBuf>,
    mut releases: mpsc::Receiver<ScriptRelease>,
    inbox: mpsc::Sender<Inbound>,
) {
    while let Some(release) = releases.recv().await {
        match control_plane.publish_scripts(&release).await {
            Ok(signature) => {
                let hash = release.hash.clone();
                if inbox
                    .send(Inbound::Signed { hash, signature })
                    .await
                    .is_err()
                {
                    return;
                }
            }
            Err(error) => tracing::error!(%error, "new scripts run here, but no client gets them"),
        }
        store_scripts(script_folder.clone(), &release);
    }
}

/// Forwards world events to the control plane, for subscribers outside of the
/// world.
async fn post_news(control_plane: ControlPlane, mut queue: mpsc::Receiver<OutsideNews>) {
    while let Some(news) = queue.recv().await {
        if let Err(error) = control_plane.post_news(&news).await {
            tracing::debug!(%error, "an event for outside subscribers was lost");
        }
    }
}

/// Restores the spells that earlier processes of the world learned. A world that
/// cannot restore them still runs.
async fn learn_again(control_plane: &ControlPlane, inbox: &mpsc::Sender<Inbound>) {
    let spells = match control_plane.spells().await {
        Ok(spells) if !spells.is_empty() => spells,
        Ok(_) => return,
        Err(error) => {
            tracing::warn!(%error, "the learned spells could not be fetched");
            return;
        }
    };
    let (answer, learned) = oneshot::channel();
    let request = OutsideRequest::Learn { spells };
    let _ = inbox.send(Inbound::Outside { request, answer }).await;
    if let Ok(OutsideReply::Refused { message, .. }) = learned.await {
        tracing::warn!(message, "a spell was not restored");
    }
}

/// Writes compiled scripts to disk; a failure is no reason to stop.
fn store_scripts(folder: Option<PathBuf>, release: &ScriptRelease) {
    if let Some(folder) = folder
        && let Err(error) = release.script_dump.write(&folder)
    {
        tracing::warn!(%error, folder = %folder.display(), "compiled scripts were not written");
    }
}

/// The part of the configuration that the world's thread needs.
struct Settings {
    world_id: String,
    players_max: u32,
    tick_hz: Option<u32>,
    snapshot_hz: Option<u32>,
    interest: Option<InterestPolicy>,
    client_bytes_per_s: Option<u32>,
    stops_when_idle: bool,
    close_limit_s: u32,
    kill_after: Option<Duration>,
    record_folder: Option<PathBuf>,
    releases: Option<mpsc::Sender<ScriptRelease>>,
    news: Option<mpsc::Sender<OutsideNews>>,
    store: StoreClient,
    persistence: PersistenceClient,
    console: Arc<Console>,
    blocks: BlockListClient,
}

impl Settings {
    fn new(
        config: &GameServerConfig,
        players_max: u32,
        stops_when_idle: bool,
        store: StoreClient,
        persistence: PersistenceClient,
    ) -> Self {
        Self {
            world_id: config.world_id.clone(),
            players_max,
            tick_hz: config.tick_hz,
            snapshot_hz: config.snapshot_hz,
            interest: config.interest,
            client_bytes_per_s: config.client_bytes_per_s,
            stops_when_idle,
            close_limit_s: config.close_limit_s,
            kill_after: None,
            record_folder: config.record_folder.clone(),
            releases: None,
            news: None,
            store,
            persistence,
            console: Arc::default(),
            blocks: BlockListClient::default(),
        }
    }
}

/// Microseconds since the first call, for the world's metrics.
fn stopwatch() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let since = START.get_or_init(Instant::now).elapsed();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

fn load(
    plan: Plan,
    settings: Settings,
    inbox: mpsc::Receiver<Inbound>,
    metrics: Arc<Metrics>,
) -> Result<Host, GameServerError> {
    let package = plan.package;
    let mut persistence = settings.persistence;
    persistence.begin_after(&plan.saved.world.checkpoint);
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
        client_bytes_per_s: settings.client_bytes_per_s,
        stopwatch: Some(stopwatch),
        saved: Some(plan.saved.world),
    };
    let world =
        World::load(&package, options).map_err(|error| GameServerError::Load(error.to_string()))?;
    persistence.note_near_only(world.is_near_only());
    let scene = package.scene_for_clients();
    let compressed = zstd::bulk::compress(&scene, 9).unwrap_or_default();
    let scene_hash = hex::encode(Sha256::digest(&scene));
    let meshes = compressed_meshes(&package);
    let idle_stop_s = package.manifest.world.idle_stop_s;
    let host = HostSettings {
        admission: Admission::new(settings.world_id.clone(), plan.key, plan.epoch),
        filter_chat: plan.filter_chat,
        identity: WorldIdentity {
            world_id: settings.world_id,
            room_code: plan.room_code,
            players_max: settings.players_max,
        },
        game_id: package.manifest.game.id.clone(),
        bundles: package.manifest.bundles.clone(),
        releases: settings.releases,
        idle_stop_s: settings
            .stops_when_idle
            .then_some(idle_stop_s.saturating_add(IDLE_GRACE_S)),
        close_limit_s: settings.close_limit_s,
        scene: EncodedScene {
            texts: scene_texts(&scene_hash, &scene, &meshes),
            hash: scene_hash,
            zstd: compressed,
            meshes,
        },
        recording,
        store: settings.store,
        persistence,
        returning: Returning::new(plan.saved.players),
        console: settings.console,
        blocks: settings.blocks,
        news: settings.news,
    };
    let sockets = Sockets::new().map_err(GameServerError::Sockets)?;
    Ok(Host::new(world, host, inbox, sockets, metrics))
}

/// Collision meshes of a game's assets, by path.
fn compressed_meshes(package: &Package) -> Vec<(String, Vec<u8>)> {
    let compress = |(asset, mesh): (&String, &Arc<Triangles>)| {
        let zstd = zstd::bulk::compress(&mesh.encode(), 9).ok()?;
        Some((asset.clone(), zstd))
    };
    package.meshes.iter().filter_map(compress).collect()
}

/// The texts for a JSON client that asks for the scene, in order: the collision
/// meshes, as other clients get them, then the scene itself.
fn scene_texts(hash: &str, scene: &[u8], meshes: &[(String, Vec<u8>)]) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for (asset, zstd) in meshes {
        let (asset, zstd) = (asset.clone(), zstd.clone());
        texts.extend(json::encode(&ServerMessage::Mesh { asset, zstd }));
    }
    texts.extend(json::scene(hash, scene).unwrap_or_default());
    texts
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

/// The source of `/metrics` and `/stats`.
#[derive(Clone)]
struct Figures {
    metrics: Arc<Metrics>,
    console: Arc<Console>,
    control_plane: Option<ControlPlane>,
    persistence: Arc<PersistenceFigures>,
}

impl Figures {
    /// This port is public. Metrics that name server scripts are only for callers
    /// with the world's token, and for this machine where there is none.
    fn prometheus(&self, headers: &HeaderMap) -> String {
        let token = headers.get(header::AUTHORIZATION);
        let token = token.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let trusted = match &self.control_plane {
            Some(control_plane) => token.is_some_and(|token| control_plane.is_token(token)),
            None => true,
        };
        let mut text = Text::default();
        self.metrics.write(&mut text);
        self.persistence.write(&mut text);
        if trusted {
            self.console.write_metrics(&mut text);
        }
        text.finish()
    }
}

fn routes(transports: Transports, figures: Figures) -> Router {
    let (figures, text) = (figures.metrics.clone(), figures);
    Router::new()
        .route("/", get(websocket::upgrade))
        .route("/ws", get(websocket::upgrade))
        .route("/health", get(|| async { "ok" }))
        .route(
            "/metrics",
            get(move |headers: HeaderMap| async move { text.prometheus(&headers) }),
        )
        .route(
            "/stats",
            get(move || async move { Json(figures.figures()) }),
        )
        .with_state(transports)
}

/// For benchmarks on a world without tickets: resets the tick times after the
/// warm-up.
fn bench_routes(metrics: Arc<Metrics>) -> Router {
    let reset = get(move || async move { metrics.forget_ticks() });
    Router::new().route("/stats/reset", reset)
}

async fn heartbeats(
    control_plane: ControlPlane,
    metrics: Arc<Metrics>,
    console: Arc<Console>,
    inbox: mpsc::Sender<Inbound>,
) {
    let mut missed = 0;
    let mut errors_sent = 0;
    let mut arrivals_reported = 0;
    let mut every = tokio::time::interval(HEARTBEAT_EVERY);
    loop {
        every.tick().await;
        let figures = metrics.figures();
        let errors = metrics.script_errors.value();
        // A ticket used after this is reported in the next heartbeat, and its
        // player counts twice until then.
        let arrivals = metrics.tickets_used.value();
        let here = metrics.presence();
        let heartbeat = Heartbeat {
            players: here.players,
            arrived: (arrivals - arrivals_reported) as u32,
            away: here.away.clone(),
            returned: here.returned.clone(),
            tick: figures.tick as u32,
            tick_ms_p99: figures.tick_ms_p99,
            script_errors: (errors - errors_sent) as u32,
        };
        let order = match control_plane.heartbeat(&heartbeat).await {
            Ok(reply) => {
                missed = 0;
                errors_sent = errors;
                arrivals_reported = arrivals;
                console.set_prints_wanted(reply.prints_wanted);
                for Expelled { player_id, reason } in reply.expelled {
                    let _ = inbox.send(Inbound::Expel { player_id, reason }).await;
                }
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
