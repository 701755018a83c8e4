//! The process of one world as seen by the control plane: its phase, its players and the slots
//! reserved for joining players.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use frolic_fleet_api::process::{FleetAction, Heartbeat, ServerReady, WebTransportEndpoint};
use frolic_fleet_api::store::requests_per_minute;
use frolic_protocol::token_bucket::{RateLimit, TokenBucket};
use tokio::sync::watch;
use tokio::time::Instant;

use super::lease;
use super::queue::QueuePosition;
use super::slots::Slots;
use super::spec::WorldSpec;
use crate::api::{RunningWorld, ServerInfo};
use crate::core::ids;

/// Ports of a game server that is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// TCP port of the WebSocket endpoint.
    pub websocket_port: u16,
    /// UDP endpoint, if WebTransport is available.
    pub webtransport: Option<WebTransportEndpoint>,
}

/// Lifecycle phase of a game server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Launched, not ready yet.
    Starting,
    /// Accepts connections.
    Ready(Endpoints),
    /// Asked to stop; accepts no new players.
    Stopping,
    /// Crashed; pauses before the next launch.
    BackingOff {
        /// Time of the next launch.
        until: Instant,
    },
    /// Ended finally; the entry has been removed from the fleet.
    Ended(End),
}

/// Final result of a game server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Ended normally; the next join starts the world again.
    Stopped,
    /// Could not be started or crashed repeatedly.
    Failed(String),
}

/// Result of [`WorldProcess::reserve`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reservation {
    /// The slot is reserved.
    Reserved,
    /// No slot is free.
    Full,
    /// The process is stopping. Wait for its end and start a new one.
    Stopping,
    /// The world is draining and accepts no new players.
    Draining,
}

/// One entry of the fleet, shared between its supervisor and requests.
pub struct WorldProcess {
    /// The world it runs.
    pub spec: WorldSpec,
    /// Notifies of phase changes.
    phase: watch::Sender<Phase>,
    /// Counter that increases when a slot may have become free.
    slots: watch::Sender<u64>,
    state: Mutex<ProcessState>,
}

/// State of an entry, over all processes of the world.
struct ProcessState {
    server_id: String,
    current: CurrentProcess,
    /// Figures of the last heartbeat.
    figures: Figures,
    slots: Slots,
    /// Revision of the package whose scripts run; a reload changes it.
    revision: String,
    crashes: u32,
    disabled_scripts: Vec<String>,
    /// Data store requests of the world.
    store_requests: TokenBucket,
    created_at: Instant,
    /// Like [`WorldSpec::private`], which the owner may change while the world runs.
    private: bool,
}

/// The current process of a world.
struct CurrentProcess {
    /// Number of the process within the history of the world, from the database.
    epoch: u64,
    /// Ports of an adopted process. It becomes ready with its first heartbeat.
    adopted: Option<Endpoints>,
    token_sha256: [u8; 32],
    /// The token for requests to the process; `None` before the first launch.
    token: Option<String>,
    launched_at: Instant,
    reported_at: Instant,
    pid: Option<u32>,
}

/// What a process reports about its world.
#[derive(Default)]
struct Figures {
    tick: u32,
    tick_ms_p99: f32,
    script_errors: u64,
}

/// Twice the limit for scripts, because heartbeats report the number of players with a delay.
fn store_limit(players: u32) -> RateLimit {
    let per_minute = 2.0 * f64::from(requests_per_minute(players as usize));
    RateLimit {
        burst: per_minute,
        per_s: per_minute / 60.0,
    }
}

impl WorldProcess {
    pub(super) fn new(spec: WorldSpec) -> Self {
        let now = Instant::now();
        let (revision, private) = (spec.revision.clone(), spec.private);
        let max_players = spec.max_players;
        Self {
            spec,
            phase: watch::Sender::new(Phase::Starting),
            slots: watch::Sender::new(0),
            state: Mutex::new(ProcessState {
                server_id: ids::new_id("server"),
                current: CurrentProcess {
                    epoch: 0,
                    adopted: None,
                    // No token has an all-zero hash, so none is accepted before the first launch.
                    token_sha256: [0; 32],
                    token: None,
                    launched_at: now,
                    reported_at: now,
                    pid: None,
                },
                figures: Figures::default(),
                slots: Slots::new(max_players, now),
                revision,
                crashes: 0,
                disabled_scripts: Vec::new(),
                store_requests: TokenBucket::default(),
                created_at: now,
                private,
            }),
        }
    }

    /// Creates the entry of an adopted process.
    pub(super) fn adopted(lease: &lease::Lease) -> Self {
        let server = Self::new(lease.world.clone());
        let mut state = server.state();
        if let Ok(Ok(digest)) = hex::decode(&lease.token_sha256).map(<[u8; 32]>::try_from) {
            state.current.token_sha256 = digest;
        }
        state.current.epoch = lease.epoch;
        state.current.pid = Some(lease.pid);
        state.current.adopted = Some(lease.endpoints.clone());
        state.disabled_scripts.clone_from(&lease.disabled_scripts);
        drop(state);
        server
    }

    /// Epoch of the current process.
    pub fn epoch(&self) -> u64 {
        self.state().current.epoch
    }

    /// The current phase.
    pub fn phase(&self) -> Phase {
        self.phase.borrow().clone()
    }

    /// Completes when the server has left the fleet.
    pub async fn ended(&self) {
        let mut phase = self.phase.subscribe();
        // Cannot fail: the sender is in `self`.
        let _ = phase
            .wait_for(|phase| matches!(phase, Phase::Ended(_)))
            .await;
    }

    pub(crate) fn watch_phase(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// Sets the final phase.
    pub(super) fn set_ended(&self, end: End) {
        self.phase.send_replace(Phase::Ended(end));
    }

    /// Changes the phase to `next` unless the server was asked to stop, because a stop must not be
    /// overwritten.
    pub(super) fn advance(&self, next: Phase) -> bool {
        self.phase.send_if_modified(|phase| {
            let allowed = !matches!(phase, Phase::Stopping | Phase::Ended(_));
            if allowed {
                *phase = next;
            }
            allowed
        })
    }

    /// Rejects new players and stops after the last player has left.
    pub(super) fn drain(&self) {
        let mut state = self.state();
        state.slots.draining = true;
        if state.slots.is_deserted() {
            self.request_stop();
        }
    }

    /// Asks the server to stop; its supervisor does the rest.
    pub(super) fn request_stop(&self) {
        self.phase.send_if_modified(|phase| {
            let leaving = matches!(phase, Phase::Stopping | Phase::Ended(_));
            if !leaving {
                *phase = Phase::Stopping;
            }
            !leaving
        });
    }

    /// Asks the server to stop unless a player is in it or joining.
    pub(super) fn stop_if_empty(&self) {
        // Checked under the lock that `reserve` takes, so that no player can join in between.
        let mut state = self.state();
        if state.slots.in_use(Instant::now()) == 0 {
            self.request_stop();
        }
    }

    /// Switches to a new process: only its token is accepted from now on, so that a process that
    /// was given up cannot act for the world.
    pub(super) fn begin_launch(&self, token: &str, epoch: u64) {
        let now = Instant::now();
        let mut state = self.state();
        state.current = CurrentProcess {
            epoch,
            adopted: None,
            token_sha256: ids::secret_digest(token),
            token: Some(token.to_owned()),
            launched_at: now,
            reported_at: now,
            pid: None,
        };
        state.slots.clear_players();
    }

    /// Revision of the package whose scripts run.
    pub fn revision(&self) -> String {
        self.state().revision.clone()
    }

    /// Records the revision after a reload.
    pub(crate) fn set_revision(&self, revision: &str) {
        self.state().revision = revision.to_owned();
    }

    pub(crate) fn token(&self) -> Option<String> {
        self.state().current.token.clone()
    }

    /// Whether `token` belongs to the current process.
    pub fn accepts_token(&self, token: &str) -> bool {
        let current = &mut self.state().current;
        let accepted = ids::matches_secret(token, &current.token_sha256);
        if accepted {
            // The database stores only the hash, so an adopted process sends the token first.
            current.token.get_or_insert_with(|| token.to_owned());
        }
        accepted
    }

    /// Handles `POST …/ready`. Returns `false` if the server was not expected.
    pub fn ready(&self, ready: ServerReady) -> bool {
        let now = Instant::now();
        let mut state = self.state();
        state.current.pid = Some(ready.pid);
        state.current.reported_at = now;
        state.slots.empty_since = now;
        drop(state);
        self.phase.send_if_modified(|phase| {
            let expected = *phase == Phase::Starting;
            if expected {
                *phase = Phase::Ready(Endpoints {
                    websocket_port: ready.websocket_port,
                    webtransport: ready.webtransport,
                });
            }
            expected
        })
    }

    /// Handles `POST …/heartbeat`: stores the figures and returns the next action.
    pub fn heartbeat(&self, beat: &Heartbeat) -> FleetAction {
        let now = Instant::now();
        let mut state = self.state();
        if state.slots.report(beat, now) {
            self.slots.send_modify(|count| *count += 1);
        }
        state.current.reported_at = now;
        let script_errors = state.figures.script_errors + u64::from(beat.script_errors);
        state.figures = Figures {
            tick: beat.tick,
            tick_ms_p99: beat.tick_ms_p99,
            script_errors,
        };
        if let Some(endpoints) = state.current.adopted.take() {
            self.advance(Phase::Ready(endpoints));
        }
        let idle = now.duration_since(state.slots.empty_since) >= self.spec.idle_stop;
        let drained = state.slots.draining && state.slots.is_deserted();
        if idle || drained {
            // Still under the lock that `reserve` takes: a join either reserves its slot before
            // this check or finds the server stopping.
            self.request_stop();
        }
        match *self.phase.borrow() {
            Phase::Stopping | Phase::Ended(_) => FleetAction::Stop,
            _ if state.slots.draining => FleetAction::Drain,
            _ => FleetAction::Continue,
        }
    }

    /// Reserves a slot for `player_id` until the player connects or `hold` has passed.
    pub fn reserve(&self, player_id: &str, hold: Duration) -> Reservation {
        let mut state = self.state();
        if matches!(*self.phase.borrow(), Phase::Stopping | Phase::Ended(_)) {
            return Reservation::Stopping;
        }
        state.slots.reserve(player_id, hold, Instant::now())
    }

    /// Whether a player without a slot would find none free.
    pub fn is_full_for(&self, player_id: &str) -> bool {
        self.state().slots.is_full_for(player_id, Instant::now())
    }

    /// Whether a slot is reserved for a player who was in the world a moment ago.
    pub fn expects(&self, player_id: &str) -> bool {
        self.state().slots.expects(player_id, Instant::now())
    }

    /// Reserves the slots of the players of a process that has ended.
    pub(super) fn expect_players(&self, players: Vec<String>, hold: Duration) {
        self.state().slots.expect(players, Instant::now() + hold);
    }

    /// Releases a slot after a failed join.
    pub fn release(&self, player_id: &str) {
        if self.state().slots.release(player_id) {
            self.slots.send_modify(|count| *count += 1);
        }
    }

    /// Adds a player to the queue or renews the entry; `None` when the queue is full.
    pub fn enqueue(&self, player_id: &str) -> Option<QueuePosition> {
        self.state().slots.queue.take(player_id, Instant::now())
    }

    /// Removes a player from the queue.
    pub fn leave_queue(&self, player_id: &str) {
        self.state().slots.queue.leave(player_id);
        self.slots.send_modify(|count| *count += 1);
    }

    /// Notifies when a slot may have become free.
    pub(crate) fn watch_slots(&self) -> watch::Receiver<u64> {
        self.slots.subscribe()
    }

    /// Whether a room code is required to enter.
    pub fn is_private(&self) -> bool {
        self.state().private
    }

    pub(crate) fn set_private(&self, private: bool) {
        self.state().private = private;
    }

    /// How long the world has been empty; `None` while a player is in it or joining.
    pub(super) fn empty_for(&self) -> Option<Duration> {
        let now = Instant::now();
        let mut state = self.state();
        (state.slots.in_use(now) == 0).then(|| now.duration_since(state.slots.empty_since))
    }

    /// Consumes `count` data store requests of the world's allowance. The game server's own limit
    /// is lower; this one protects against a game server that ignores it.
    pub fn take_store_requests(&self, count: usize) -> bool {
        let state = &mut *self.state();
        let limit = store_limit(state.slots.players);
        let now_s = state.created_at.elapsed().as_secs_f64();
        let taken = state.store_requests.take(limit, count as f64, now_s);
        taken.is_ok()
    }

    /// Slots in use: players in the world, joining players and disconnected players.
    pub fn occupied(&self) -> u32 {
        self.state().slots.in_use(Instant::now())
    }

    /// Number of players in the last heartbeat.
    pub fn players(&self) -> u32 {
        self.state().slots.players
    }

    pub(super) fn script_errors(&self) -> u64 {
        self.state().figures.script_errors
    }

    pub(super) fn since_heartbeat(&self) -> Duration {
        self.state().current.reported_at.elapsed()
    }

    /// Time since the process was launched.
    pub(crate) fn since_launch(&self) -> Duration {
        self.state().current.launched_at.elapsed()
    }

    pub(super) fn count_crash(&self) {
        let mut state = self.state();
        state.crashes += 1;
        state.slots.clear_players();
        state.current.pid = None;
    }

    /// Disables a script from the next launch on. Returns `false` if it is disabled already.
    pub(super) fn disable_script(&self, path: &str) -> bool {
        let mut state = self.state();
        let added = !state.disabled_scripts.iter().any(|known| known == path);
        if added {
            state.disabled_scripts.push(path.to_owned());
        }
        added
    }

    /// Scripts that this world must not run.
    pub fn disabled_scripts(&self) -> Vec<String> {
        self.state().disabled_scripts.clone()
    }

    pub(super) fn is(&self, id: &str) -> bool {
        self.spec.world_id == id || self.state().server_id == id
    }

    /// Description for the server browser.
    pub fn running_world(&self) -> RunningWorld {
        RunningWorld {
            world_id: self.spec.world_id.clone(),
            room_code: self.spec.room_code.clone(),
            players: self.players(),
            max_players: self.spec.max_players,
        }
    }

    /// Description for admins.
    pub fn info(&self) -> ServerInfo {
        let phase = match self.phase() {
            Phase::Starting => "starting",
            Phase::Ready(_) => "ready",
            Phase::Stopping | Phase::Ended(_) => "stopping",
            Phase::BackingOff { .. } => "backing_off",
        };
        let state = self.state();
        ServerInfo {
            server_id: state.server_id.clone(),
            world_id: self.spec.world_id.clone(),
            game_id: self.spec.game_id.clone(),
            room_code: self.spec.room_code.clone(),
            state: phase.to_owned(),
            pid: state.current.pid,
            players: state.slots.players,
            reserved: state.slots.reserved(),
            max_players: self.spec.max_players,
            tick: state.figures.tick,
            tick_ms_p99: state.figures.tick_ms_p99,
            crashes: state.crashes,
            uptime_s: u32::try_from(state.current.launched_at.elapsed().as_secs())
                .unwrap_or(u32::MAX),
        }
    }

    fn state(&self) -> MutexGuard<'_, ProcessState> {
        // Every critical section leaves the state consistent, even on a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
