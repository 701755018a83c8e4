//! The process of one world as seen by the control plane: its phase, its players and the slots
//! reserved for joining players.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use frolic_fleet_api::process::{FleetAction, Heartbeat, ServerReady, WebTransportEndpoint};
use frolic_fleet_api::store::requests_per_minute;
use tokio::sync::watch;
use tokio::time::Instant;

use super::queue::{Queue, QueuePosition};
use crate::api::{RunningWorld, ServerInfo};
use crate::core::ids;
use crate::fleet::lease;

/// The properties of a world that the fleet needs.
#[derive(Clone, Debug)]
pub struct WorldSpec {
    /// Id of the world.
    pub world_id: String,
    /// Game of which it is an instance.
    pub game_id: String,
    /// Package revision that it runs.
    pub revision: String,
    /// Room code of the world.
    pub room_code: String,
    /// Player limit of the world.
    pub max_players: u32,
    /// Time after which an empty world is stopped.
    pub idle_stop: Duration,
    /// Whether operations in the world outlive its process.
    pub persistent: bool,
    /// Whether a room code is required to enter.
    pub private: bool,
}

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

/// State of the current process of the world.
struct ProcessState {
    server_id: String,
    /// Number of the process within the history of the world, from the database.
    epoch: u64,
    /// Ports of an adopted process. It becomes ready with its first heartbeat.
    adopted: Option<Endpoints>,
    token_sha256: [u8; 32],
    /// The token for requests to the process; `None` before the first launch.
    token: Option<String>,
    /// Revision of the package whose scripts run; a reload changes it.
    revision: String,
    launched_at: Instant,
    reported_at: Instant,
    empty_since: Instant,
    pid: Option<u32>,
    players: u32,
    tick: u32,
    tick_ms_p99: f32,
    script_errors: u64,
    crashes: u32,
    disabled_scripts: Vec<String>,
    draining: bool,
    /// Remaining data store requests, as of `store_at`.
    store_left: f64,
    store_at: Instant,
    /// Player id, and the time at which the reservation expires.
    reservations: HashMap<String, Instant>,
    /// Disconnected players, as reported by the process. Their slots stay reserved.
    away: HashSet<String>,
    /// Players who were in a process that crashed or was stopped, and the time at which their
    /// reservation expires.
    expected: HashMap<String, Instant>,
    /// Players waiting for a free slot.
    queue: Queue,
    /// Like [`WorldSpec::private`], which the owner may change while the world runs.
    private: bool,
}

/// Twice the limit for scripts, because heartbeats report the number of players with a delay.
fn store_allowance(players: u32) -> f64 {
    2.0 * f64::from(requests_per_minute(players as usize))
}

impl WorldProcess {
    pub(super) fn new(spec: WorldSpec) -> Self {
        let now = Instant::now();
        let (revision, private) = (spec.revision.clone(), spec.private);
        Self {
            spec,
            phase: watch::Sender::new(Phase::Starting),
            slots: watch::Sender::new(0),
            state: Mutex::new(ProcessState {
                server_id: ids::new_id("server"),
                epoch: 0,
                adopted: None,
                // No token has an all-zero hash, so none is accepted before the first launch.
                token_sha256: [0; 32],
                token: None,
                revision,
                launched_at: now,
                reported_at: now,
                empty_since: now,
                pid: None,
                players: 0,
                tick: 0,
                tick_ms_p99: 0.0,
                script_errors: 0,
                crashes: 0,
                disabled_scripts: Vec::new(),
                draining: false,
                store_left: store_allowance(0),
                store_at: now,
                reservations: HashMap::new(),
                away: HashSet::new(),
                expected: HashMap::new(),
                queue: Queue::new(now),
                private,
            }),
        }
    }

    /// Creates the entry of an adopted process.
    pub(super) fn adopted(lease: &lease::Lease) -> Self {
        let server = Self::new(lease.world.spec.clone());
        let mut state = server.state();
        if let Ok(Ok(digest)) = hex::decode(&lease.token_sha256).map(<[u8; 32]>::try_from) {
            state.token_sha256 = digest;
        }
        state.epoch = lease.epoch;
        state.pid = Some(lease.pid);
        state.adopted = Some(lease.endpoints.clone());
        state.disabled_scripts.clone_from(&lease.disabled_scripts);
        drop(state);
        server
    }

    /// Epoch of the current process.
    pub fn epoch(&self) -> u64 {
        self.state().epoch
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
        state.draining = true;
        if state.is_deserted() {
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
        let state = self.state();
        if state.occupied() == 0 {
            self.request_stop();
        }
    }

    /// Switches to a new process: only its token is accepted from now on, so that a process that
    /// was given up cannot act for the world.
    pub(super) fn begin_launch(&self, token: &str, epoch: u64) {
        let now = Instant::now();
        let mut state = self.state();
        state.epoch = epoch;
        state.adopted = None;
        state.token_sha256 = ids::secret_digest(token);
        state.token = Some(token.to_owned());
        state.launched_at = now;
        state.reported_at = now;
        state.pid = None;
        state.players = 0;
        state.away.clear();
    }

    /// Revision of the package whose scripts state.
    pub fn revision(&self) -> String {
        self.state().revision.clone()
    }

    /// Records the revision after a reload.
    pub(crate) fn set_revision(&self, revision: &str) {
        self.state().revision = revision.to_owned();
    }

    pub(crate) fn token(&self) -> Option<String> {
        self.state().token.clone()
    }

    /// Whether `token` belongs to the current process.
    pub fn accepts_token(&self, token: &str) -> bool {
        let expected = self.state().token_sha256;
        let accepted = ids::matches_secret(token, &expected);
        if accepted {
            // The database stores only the hash, so an adopted process sends the token first.
            self.state().token.get_or_insert_with(|| token.to_owned());
        }
        accepted
    }

    /// Handles `POST …/ready`. Returns `false` if the server was not expected.
    pub fn ready(&self, ready: ServerReady) -> bool {
        let now = Instant::now();
        let mut state = self.state();
        state.pid = Some(ready.pid);
        state.reported_at = now;
        state.empty_since = now;
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
        // Heartbeats do not name new players; most likely they hold the oldest reservations. A
        // wrong guess only keeps a slot reserved a little longer.
        let taken = state.occupied();
        state.release_oldest(beat.arrived);
        let lost = beat.away.iter().filter(|id| !state.away.contains(*id));
        let lost = u32::try_from(lost.count()).unwrap_or(u32::MAX);
        let before = state.players.saturating_add(beat.arrived);
        let departed = before.saturating_sub(beat.players).saturating_sub(lost);
        state.queue.departed(departed, now);
        state.expire(now);
        for player_id in &beat.returned {
            state.expected.remove(player_id);
        }
        state.players = beat.players;
        state.away = beat.away.iter().cloned().collect();
        if departed > 0 || state.occupied() < taken {
            self.slots.send_modify(|count| *count += 1);
        }
        state.reported_at = now;
        state.tick = beat.tick;
        state.tick_ms_p99 = beat.tick_ms_p99;
        state.script_errors += u64::from(beat.script_errors);
        if let Some(endpoints) = state.adopted.take() {
            self.advance(Phase::Ready(endpoints));
        }
        if state.occupied() > 0 {
            state.empty_since = now;
        }
        let idle = now.duration_since(state.empty_since) >= self.spec.idle_stop;
        let drained = state.draining && state.is_deserted();
        if idle || drained {
            // Still under the lock that `reserve` takes: a join either reserves its slot before
            // this check or finds the server stopping.
            self.request_stop();
        }
        match *self.phase.borrow() {
            Phase::Stopping | Phase::Ended(_) => FleetAction::Stop,
            _ if state.draining => FleetAction::Drain,
            _ => FleetAction::Continue,
        }
    }

    /// Reserves a slot for `player_id` until the player connects or `hold` has passed.
    pub fn reserve(&self, player_id: &str, hold: Duration) -> Reservation {
        let now = Instant::now();
        let mut state = self.state();
        if matches!(*self.phase.borrow(), Phase::Stopping | Phase::Ended(_)) {
            return Reservation::Stopping;
        }
        state.expire(now);
        let returning = state.reservations.contains_key(player_id) || state.expects(player_id);
        if state.draining && !returning {
            return Reservation::Draining;
        }
        let free = self.spec.max_players.saturating_sub(state.occupied());
        // Players in the queue come first.
        let ahead = state.queue.ahead_of(player_id, now);
        if !returning && ahead >= free as usize {
            return Reservation::Full;
        }
        state.queue.leave(player_id);
        state.expected.remove(player_id);
        state.reservations.insert(player_id.to_owned(), now + hold);
        Reservation::Reserved
    }

    /// Whether a player without a slot would find none free.
    pub fn is_full_for(&self, player_id: &str) -> bool {
        let mut state = self.state();
        state.expire(Instant::now());
        let has_slot = state.reservations.contains_key(player_id) || state.expects(player_id);
        !has_slot && state.occupied() >= self.spec.max_players
    }

    /// Whether a slot is reserved for a player who was in the world a moment ago.
    pub fn expects(&self, player_id: &str) -> bool {
        let mut state = self.state();
        state.expire(Instant::now());
        state.expects(player_id)
    }

    /// Reserves the slots of the players of a process that has ended.
    pub(super) fn expect_players(&self, players: Vec<String>, hold: Duration) {
        let until = Instant::now() + hold;
        let players = players.into_iter().map(|player| (player, until));
        self.state().expected = players.collect();
    }

    /// Releases a slot after a failed join.
    pub fn release(&self, player_id: &str) {
        if self.state().reservations.remove(player_id).is_some() {
            self.slots.send_modify(|count| *count += 1);
        }
    }

    /// Adds a player to the queue or renews the entry; `None` when the queue is full.
    pub fn enqueue(&self, player_id: &str) -> Option<QueuePosition> {
        self.state().queue.take(player_id, Instant::now())
    }

    /// Removes a player from the queue.
    pub fn leave_queue(&self, player_id: &str) {
        self.state().queue.leave(player_id);
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
        state.expire(now);
        (state.occupied() == 0).then(|| now.duration_since(state.empty_since))
    }

    /// Consumes `count` data store requests of the world's allowance. The game server's own limit
    /// is lower; this one protects against a game server that ignores it.
    pub fn take_store_requests(&self, count: usize) -> bool {
        let now = Instant::now();
        let mut state = self.state();
        let allowance = store_allowance(state.players);
        let filled = now.duration_since(state.store_at).as_secs_f64() * allowance / 60.0;
        state.store_at = now;
        state.store_left = (state.store_left + filled).min(allowance);
        let enough = state.store_left >= count as f64;
        if enough {
            state.store_left -= count as f64;
        }
        enough
    }

    /// Slots in use: players in the world, joining players and disconnected players.
    pub fn occupied(&self) -> u32 {
        let mut state = self.state();
        state.expire(Instant::now());
        state.occupied()
    }

    /// Number of players in the last heartbeat.
    pub fn players(&self) -> u32 {
        self.state().players
    }

    pub(super) fn script_errors(&self) -> u64 {
        self.state().script_errors
    }

    pub(super) fn since_heartbeat(&self) -> Duration {
        self.state().reported_at.elapsed()
    }

    /// Time since the process was launched.
    pub(crate) fn since_launch(&self) -> Duration {
        self.state().launched_at.elapsed()
    }

    pub(super) fn count_crash(&self) {
        let mut state = self.state();
        state.crashes += 1;
        state.players = 0;
        state.away.clear();
        state.pid = None;
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

    /// Scripts that this world must not state.
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
            pid: state.pid,
            players: state.players,
            reserved: u32::try_from(state.reservations.len()).unwrap_or(u32::MAX),
            max_players: self.spec.max_players,
            tick: state.tick,
            tick_ms_p99: state.tick_ms_p99,
            crashes: state.crashes,
            uptime_s: u32::try_from(state.launched_at.elapsed().as_secs()).unwrap_or(u32::MAX),
        }
    }

    fn state(&self) -> MutexGuard<'_, ProcessState> {
        // Every critical section leaves the state consistent, even on a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProcessState {
    fn occupied(&self) -> u32 {
        let expected = self.expected.keys().filter(|id| !self.away.contains(*id));
        let awaited = self.away.iter().chain(expected);
        // A reconnecting player who has a reservation counts once.
        let awaited = awaited.filter(|id| !self.reservations.contains_key(*id));
        let held = self.reservations.len() + awaited.count();
        self.players
            .saturating_add(u32::try_from(held).unwrap_or(u32::MAX))
    }

    fn expects(&self, player_id: &str) -> bool {
        self.away.contains(player_id) || self.expected.contains_key(player_id)
    }

    /// Whether the world has no players and no disconnected ones who may return.
    fn is_deserted(&self) -> bool {
        self.players == 0 && self.away.is_empty()
    }

    fn expire(&mut self, now: Instant) {
        self.reservations.retain(|_, until| *until > now);
        self.expected.retain(|_, until| *until > now);
    }

    fn release_oldest(&mut self, count: u32) {
        for _ in 0..count {
            let oldest = self.reservations.iter().min_by_key(|(_, until)| **until);
            let Some(player_id) = oldest.map(|(player_id, _)| player_id.clone()) else {
                return;
            };
            self.reservations.remove(&player_id);
        }
    }
}
