//! The fleet: the game servers of this control plane.
//!
//! There is at most one [`WorldProcess`] entry per world. It is created under one lock and removed
//! only after its process has ended, so a world never runs twice; the database carries this
//! guarantee over to the next control plane (`adopt.rs`). Joins reserve a slot on an entry and wait
//! until it is ready; a supervisor task per entry does the rest. No other module handles processes.

pub mod address;
mod adopt;
pub mod launcher;
pub(crate) mod lease;
pub mod process;
mod queue;
mod slots;
mod spec;
mod supervise;
pub mod wake;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use sqlx::AnyPool;
use tokio::time::{Instant, timeout_at};

use crate::core::clock::Clock;
use crate::core::error::ApiError;
use crate::core::metrics::FleetTotals;
use crate::core::settings::FleetSettings;
pub use launcher::{GameServer, LaunchRequest, Launcher, ProcessLauncher, ServerExit};
pub use process::{End, Endpoints, Phase, Reservation, WorldProcess};
pub use queue::QueuePosition;
pub use spec::WorldSpec;
pub(crate) use spec::{find_spec, set_player_count, unknown_world};

/// Failures that are stored at the same time.
const FAILURES_MAX: usize = 4096;
/// Assumed start time until the first start was measured.
const START_MS_INITIAL: u64 = 1000;

/// Reason why a world cannot be entered at the moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FleetError {
    /// All slots are taken or reserved.
    #[error(
        "this world is full ({max_players} players); join another one, or send 'Prefer: respond-async' to wait for a free slot"
    )]
    WorldFull {
        /// Player limit of the world.
        max_players: u32,
    },
    /// The process could not be started or crashed repeatedly.
    #[error("the world's game server could not be started: {why}")]
    StartFailed {
        /// Description of the failure.
        why: String,
    },
    /// The process did not become ready within the start timeout.
    #[error("the world's game server is still starting; try again in a moment")]
    StartTimeout,
    /// The world or its package failed repeatedly and is in its backoff pause.
    #[error("the world's game server keeps failing; try again in {} s", retry_after.as_secs() + 1)]
    CrashLoop {
        /// Time until the next attempt is allowed.
        retry_after: Duration,
    },
    /// The limit of simultaneous game servers is reached.
    #[error("all game servers are in use; join a running world or try again later")]
    TooManyServers,
    /// The world is draining: it accepts no new players.
    #[error("this world is closing; join another one")]
    Draining,
    /// The platform is shutting down.
    #[error("the platform is shutting down; try again in a moment")]
    ShuttingDown,
}

impl From<FleetError> for ApiError {
    fn from(error: FleetError) -> Self {
        let message = error.to_string();
        match error {
            FleetError::WorldFull { .. } => {
                ApiError::new(StatusCode::CONFLICT, "world_full", message)
            }
            FleetError::Draining => ApiError::new(StatusCode::CONFLICT, "world_closing", message),
            FleetError::StartFailed { .. } => ApiError::unavailable("server_failed", message, 2),
            FleetError::StartTimeout => ApiError::unavailable("server_starting", message, 2),
            FleetError::CrashLoop { retry_after } => {
                ApiError::unavailable("server_crashing", message, retry_after.as_secs() + 1)
            }
            FleetError::TooManyServers => ApiError::unavailable("fleet_full", message, 30),
            FleetError::ShuttingDown => ApiError::unavailable("shutting_down", message, 5),
        }
    }
}

/// A running world whose scripts can be reloaded.
#[derive(Clone, Debug)]
pub struct ReloadTarget {
    /// Id of the world.
    pub world_id: String,
    /// URL that accepts a [`ReloadRequest`](frolic_fleet_api::process::ReloadRequest).
    pub url: String,
    /// Bearer token for the request.
    pub token: String,
}

/// Result of an attempt to reserve a slot.
#[derive(Clone)]
pub enum PlaceOutcome {
    /// A slot is reserved; the server may still be starting.
    Reserved(Arc<WorldProcess>),
    /// No slot is free.
    Full(Arc<WorldProcess>),
    /// The world is draining and accepts no new players.
    Draining(Arc<WorldProcess>),
    /// The process is stopping; a new one can start after its end.
    Stopping(Arc<WorldProcess>),
}

/// A reserved slot in a world whose server is ready.
#[derive(Clone, Debug)]
pub struct Placement {
    /// The world.
    pub spec: WorldSpec,
    /// Ports to connect to.
    pub endpoints: Endpoints,
    /// Epoch of the world's process. Its tickets are not valid for other processes.
    pub epoch: u64,
    /// Id of the user next to whom the player spawns.
    pub beside: Option<String>,
}

/// Handle to the fleet. Cheap to clone.
#[derive(Clone)]
pub struct Fleet(Arc<Inner>);

struct Inner {
    launcher: Box<dyn Launcher>,
    settings: FleetSettings,
    control_plane: String,
    host: IpAddr,
    secret: Vec<u8>,
    db: AnyPool,
    clock: Clock,
    servers: Mutex<HashMap<String, Arc<WorldProcess>>>,
    failures: Mutex<HashMap<String, Failure>>,
    stopping: AtomicBool,
    starts: AtomicU64,
    /// Moving average of the start time.
    start_ms: AtomicU64,
    crashes: AtomicU64,
    ended_script_errors: AtomicU64,
}

struct Failure {
    count: u32,
    until: Instant,
}

impl Fleet {
    /// Creates a fleet whose servers call `control_plane` and listen on `host`.
    pub fn new(
        launcher: Box<dyn Launcher>,
        settings: FleetSettings,
        control_plane: String,
        host: IpAddr,
        secret: Vec<u8>,
        (db, clock): (AnyPool, Clock),
    ) -> Self {
        Self(Arc::new(Inner {
            launcher,
            settings,
            control_plane,
            host,
            secret,
            db,
            clock,
            servers: Mutex::default(),
            failures: Mutex::default(),
            stopping: AtomicBool::new(false),
            starts: AtomicU64::new(0),
            start_ms: AtomicU64::new(START_MS_INITIAL),
            crashes: AtomicU64::new(0),
            ended_script_errors: AtomicU64::new(0),
        }))
    }

    /// Starts the new world `spec` and reserves a slot, without waiting.
    ///
    /// # Errors
    /// [`FleetError`] when the world cannot start now.
    pub fn open(&self, spec: &WorldSpec, player_id: &str) -> Result<Arc<WorldProcess>, FleetError> {
        let server = self.start(spec, Vec::new())?;
        server.reserve(player_id, self.0.settings.reservation);
        Ok(server)
    }

    /// Tries to reserve a slot in the world `spec` without waiting. Starts its server if none is
    /// running.
    ///
    /// # Errors
    /// [`FleetError`] when the world cannot start now.
    pub async fn try_enter(
        &self,
        spec: &WorldSpec,
        player_id: &str,
    ) -> Result<PlaceOutcome, FleetError> {
        let server = self.server_or_start(spec).await?;
        Ok(
            match server.reserve(player_id, self.0.settings.reservation) {
                Reservation::Reserved => PlaceOutcome::Reserved(server),
                Reservation::Full => PlaceOutcome::Full(server),
                Reservation::Draining => PlaceOutcome::Draining(server),
                Reservation::Stopping => PlaceOutcome::Stopping(server),
            },
        )
    }

    /// Renews the reservation of a player.
    pub fn renew_reservation(&self, server: &WorldProcess, player_id: &str) -> Reservation {
        server.reserve(player_id, self.0.settings.reservation)
    }

    /// Whether another game server may be started.
    pub fn has_capacity(&self) -> bool {
        self.servers().len() < self.0.settings.servers_max
    }

    /// Stops the world that has been empty for the longest time, so that another one can start.
    /// Returns `false` if no world is empty.
    pub fn stop_longest_empty(&self) -> bool {
        let empty = self.all().into_iter().filter_map(|server| {
            let since = server.empty_for()?;
            let idle = matches!(server.phase(), Phase::Ready(_));
            (idle && since >= self.0.settings.spare_after).then_some((since, server))
        });
        let longest = empty.max_by_key(|(since, _)| *since);
        if let Some((_, server)) = &longest {
            tracing::info!(
                world = server.spec.world_id,
                "stopping an empty world to start another"
            );
            server.stop_if_empty();
        }
        longest.is_some()
    }

    /// Moving average of the start time.
    pub fn average_start(&self) -> Duration {
        Duration::from_millis(self.0.start_ms.load(Ordering::Relaxed))
    }

    /// Adds a measured start time to the moving average.
    fn record_start(&self, took: Duration) {
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let before = self.0.start_ms.load(Ordering::Relaxed);
        // Concurrent updates may lose one measurement, which does not matter.
        let next = (before.saturating_mul(3).saturating_add(took)) / 4;
        self.0.start_ms.store(next.max(1), Ordering::Relaxed);
    }

    /// Reserves a slot in a running world of `game_id`. Prefers the world in which the player was
    /// until a moment ago, then the worlds in `preferred`, then the fullest.
    pub fn reserve_in_game(
        &self,
        game_id: &str,
        revision: &str,
        player_id: &str,
        preferred: &[String],
    ) -> Option<Arc<WorldProcess>> {
        let mut candidates: Vec<_> = self
            .all()
            .into_iter()
            .filter(|server| server.spec.game_id == game_id)
            .filter(|server| matches!(server.phase(), Phase::Ready(_) | Phase::Starting))
            .filter_map(|server| {
                let awaited = server.expects(player_id);
                let open = server.revision() == revision && !server.is_private();
                let liked = preferred.contains(&server.spec.world_id);
                (awaited || open).then(|| ((awaited, liked, server.occupied()), server))
            })
            .collect();
        // The sort is stable and entries come ordered by id.
        candidates.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
        candidates
            .into_iter()
            .map(|(_, server)| server)
            .find(|server| {
                server.reserve(player_id, self.0.settings.reservation) == Reservation::Reserved
            })
    }

    /// A stopping server of a game in which this player is still present. A join into another world
    /// of the game must wait for its end, because the data that its scripts store at the end must
    /// be stored before the other world loads it.
    pub async fn closing_with(&self, game_id: &str, player_id: &str) -> Option<Arc<WorldProcess>> {
        let closing = self
            .all()
            .into_iter()
            .filter(|server| server.spec.game_id == game_id && server.phase() == Phase::Stopping);
        for server in closing {
            let present = self.players_present(&server.spec.world_id, 0).await;
            if present.iter().any(|present| present == player_id) {
                return Some(server);
            }
        }
        None
    }

    /// The running worlds of a game whose scripts can be reloaded.
    pub fn reload_targets(&self, game_id: &str) -> Vec<ReloadTarget> {
        let of_game = self.all().into_iter();
        let of_game = of_game.filter(|server| server.spec.game_id == game_id);
        of_game
            .filter_map(|server| {
                let Phase::Ready(endpoints) = server.phase() else {
                    return None;
                };
                let local = address::local_ip(self.0.host);
                let address = SocketAddr::new(local, endpoints.websocket_port);
                Some(ReloadTarget {
                    world_id: server.spec.world_id.clone(),
                    url: format!("http://{address}/internal/reload"),
                    token: server.token()?,
                })
            })
            .collect()
    }

    /// The entry of a world, if it has one.
    pub fn server(&self, world_id: &str) -> Option<Arc<WorldProcess>> {
        self.servers().get(world_id).cloned()
    }

    /// Ports of a world that is ready.
    pub fn endpoints(&self, world_id: &str) -> Option<Endpoints> {
        match self.server(world_id)?.phase() {
            Phase::Ready(endpoints) => Some(endpoints),
            _ => None,
        }
    }

    /// Id of the running world with this room code.
    pub fn world_of_room(&self, room_code: &str) -> Option<String> {
        let servers = self.servers();
        let server = servers
            .values()
            .find(|server| server.spec.room_code == room_code);
        server.map(|server| server.spec.world_id.clone())
    }

    /// All entries, ordered by world id.
    pub fn all(&self) -> Vec<Arc<WorldProcess>> {
        let mut servers: Vec<_> = self.servers().values().cloned().collect();
        servers.sort_by(|a, b| a.spec.world_id.cmp(&b.spec.world_id));
        servers
    }

    /// Stops the server with this server id or world id.
    pub fn stop(&self, id: &str) -> bool {
        let server = self.all().into_iter().find(|server| server.is(id));
        if let Some(server) = &server {
            server.request_stop();
        }
        server.is_some()
    }

    /// Drains a server: it stops after its last player has left.
    pub fn drain(&self, id: &str) -> bool {
        let server = self.all().into_iter().find(|server| server.is(id));
        if let Some(server) = &server {
            server.drain();
        }
        server.is_some()
    }

    /// Rejects new worlds, stops every server and waits for their end.
    pub async fn shut_down(&self) {
        self.0.stopping.store(true, Ordering::SeqCst);
        let servers = self.all();
        for server in &servers {
            server.request_stop();
        }
        // Supervisors kill processes that do not stop, so this deadline is not reached.
        let deadline = Instant::now() + self.0.settings.stop_grace + Duration::from_secs(5);
        for server in servers {
            let _ = wait_for_end(&server, deadline).await;
        }
    }

    /// Whether [`Fleet::shut_down`] was called.
    pub fn is_stopping(&self) -> bool {
        self.0.stopping.load(Ordering::SeqCst)
    }

    /// Figures of the whole fleet.
    pub fn totals(&self) -> FleetTotals {
        let mut totals = FleetTotals {
            starts: self.0.starts.load(Ordering::Relaxed),
            crashes: self.0.crashes.load(Ordering::Relaxed),
            script_errors: self.0.ended_script_errors.load(Ordering::Relaxed),
            ..FleetTotals::default()
        };
        for server in self.all() {
            let phase = match server.phase() {
                Phase::Starting => 0,
                Phase::Ready(_) => 1,
                Phase::Stopping | Phase::Ended(_) => 2,
                Phase::BackingOff { .. } => 3,
            };
            totals.by_phase[phase] += 1;
            totals.players += server.players();
            totals.script_errors += server.script_errors();
        }
        totals
    }

    fn join_deadline(&self) -> Instant {
        Instant::now() + self.0.settings.start_timeout + Duration::from_secs(1)
    }

    /// Returns the server of a world, started if necessary. Players who were present when the last
    /// process stopped a moment ago may be reconnecting, so their slots are reserved.
    async fn server_or_start(&self, spec: &WorldSpec) -> Result<Arc<WorldProcess>, FleetError> {
        if let Some(server) = self.server(&spec.world_id) {
            return Ok(server);
        }
        let hold_ms = i64::try_from(self.0.settings.resume_hold.as_millis());
        let since_ms = self.0.clock.now_ms() - hold_ms.unwrap_or(i64::MAX);
        let expected = self.players_present(&spec.world_id, since_ms).await;
        self.start(spec, expected)
    }

    /// Players in the last process of a world, if it reported since `since_ms`.
    async fn players_present(&self, world_id: &str, since_ms: i64) -> Vec<String> {
        let players = lease::players_present(self.db(), world_id, since_ms).await;
        players.unwrap_or_else(|error| {
            tracing::warn!(%error, world_id, "could not load the players of the last process");
            Vec::new()
        })
    }

    /// Returns the server of a world, started if necessary with slots reserved for `expected`.
    fn start(
        &self,
        spec: &WorldSpec,
        expected: Vec<String>,
    ) -> Result<Arc<WorldProcess>, FleetError> {
        let mut servers = self.servers();
        if let Some(server) = servers.get(&spec.world_id) {
            return Ok(server.clone());
        }
        // Read under the lock: shutdown sets the flag before it lists the entries, so no server can
        // start behind it.
        if self.is_stopping() {
            return Err(FleetError::ShuttingDown);
        }
        self.check_failures(spec)?;
        if servers.len() >= self.0.settings.servers_max {
            return Err(FleetError::TooManyServers);
        }
        let server = Arc::new(WorldProcess::new(spec.clone()));
        server.expect_players(expected, self.0.settings.resume_hold);
        servers.insert(spec.world_id.clone(), server.clone());
        drop(servers);
        self.0.starts.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(supervise::supervise(self.clone(), server.clone(), None));
        Ok(server)
    }

    fn check_failures(&self, spec: &WorldSpec) -> Result<(), FleetError> {
        let failures = self.failures();
        let now = Instant::now();
        let until = [&spec.world_id, &spec.revision]
            .into_iter()
            .filter_map(|key| failures.get(key))
            .map(|failure| failure.until)
            .max();
        match until {
            Some(until) if until > now => Err(FleetError::CrashLoop {
                retry_after: until - now,
            }),
            _ => Ok(()),
        }
    }

    /// Records a failure of a world or a package, so that the pause before the next start doubles.
    fn record_failure(&self, key: &str) {
        let settings = &self.0.settings;
        let now = Instant::now();
        let mut failures = self.failures();
        failures.retain(|_, failure| failure.until + settings.steady_after > now);
        if failures.len() >= FAILURES_MAX {
            return;
        }
        let failure = failures.entry(key.to_owned()).or_insert(Failure {
            count: 0,
            until: now,
        });
        failure.count += 1;
        failure.until = now + backoff(settings.backoff_first, settings.backoff_max, failure.count);
    }

    fn count_crash(&self) {
        self.0.crashes.fetch_add(1, Ordering::Relaxed);
    }

    async fn remove(&self, server: &Arc<WorldProcess>, end: End) {
        let world_id = &server.spec.world_id;
        self.0
            .ended_script_errors
            .fetch_add(server.script_errors(), Ordering::Relaxed);
        if let Err(error) = set_player_count(&self.0.db, world_id, 0, None).await {
            tracing::warn!(%error, world = world_id, "could not store the player count");
        }
        // Removed from the map first, because a caller that sees `Ended` may start the world again
        // at once.
        self.servers().remove(world_id);
        server.set_ended(end);
    }

    fn settings(&self) -> &FleetSettings {
        &self.0.settings
    }

    fn launcher(&self) -> &dyn Launcher {
        self.0.launcher.as_ref()
    }

    fn control_plane(&self) -> &str {
        &self.0.control_plane
    }

    /// Address that game servers listen on.
    pub fn host(&self) -> IpAddr {
        self.0.host
    }

    fn db(&self) -> &AnyPool {
        &self.0.db
    }

    fn secret(&self) -> &[u8] {
        &self.0.secret
    }

    fn servers(&self) -> MutexGuard<'_, HashMap<String, Arc<WorldProcess>>> {
        self.0
            .servers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn failures(&self) -> MutexGuard<'_, HashMap<String, Failure>> {
        self.0
            .failures
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ports of the server once it is ready; `None` if it stopped.
async fn wait_until_ready(
    server: &WorldProcess,
    deadline: Instant,
) -> Result<Option<Endpoints>, FleetError> {
    let mut phase = server.watch_phase();
    let settled = phase.wait_for(|phase| matches!(phase, Phase::Ready(_) | Phase::Ended(_)));
    match timeout_at(deadline, settled).await {
        Ok(Ok(phase)) => match &*phase {
            Phase::Ready(endpoints) => Ok(Some(endpoints.clone())),
            Phase::Ended(End::Failed(why)) => Err(FleetError::StartFailed { why: why.clone() }),
            _ => Ok(None),
        },
        // Cannot happen: the sender is in `server`.
        Ok(Err(_)) => Ok(None),
        Err(_) => Err(FleetError::StartTimeout),
    }
}

async fn wait_for_end(server: &WorldProcess, deadline: Instant) -> Result<(), FleetError> {
    timeout_at(deadline, server.ended())
        .await
        .map_err(|_| FleetError::StartTimeout)
}

/// Pause after `count` failures in a row.
fn backoff(first: Duration, max: Duration, count: u32) -> Duration {
    let doublings = count.saturating_sub(1).min(16);
    first.saturating_mul(1 << doublings).min(max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_maximum() {
        let pause = |count| backoff(Duration::from_millis(500), Duration::from_secs(30), count);
        assert_eq!(pause(1), Duration::from_millis(500));
        assert_eq!(pause(3), Duration::from_secs(2));
        assert_eq!(pause(7), Duration::from_secs(30));
        assert_eq!(pause(u32::MAX), Duration::from_secs(30));
    }
}
