//! The process of one world as seen by the control plane: its phase, its players and the slots
//! reserved for joining players.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use frolic_protocol::fleet::{FleetAction, Heartbeat, ServerReady, WebTransportEndpoint};
use frolic_protocol::store::requests_per_minute;
use tokio::sync::watch;
use tokio::time::Instant;

use super::queue::{Queue, Turn};
use crate::api::{RunningWorld, ServerInfo};
use crate::{ids, world_lease};

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
    Held,
    /// No slot is free.
    Full,
    /// The process is stopping. Wait for its end and start a new one.
    Leaving,
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
    run: Mutex<Run>,
}

/// State of the current process of the world.
struct Run {
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
    orphans: HashMap<String, Instant>,
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
            run: Mutex::new(Run {
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
                orphans: HashMap::new(),
                queue: Queue::new(now),
                private,
            }),
        }
    }

    /// Creates the entry of an adopted process.
    pub(super) fn adopted(run: &world_lease::Run) -> Self {
        let server = Self::new(run.world.spec.clone());
        let mut state = server.run();
        if let Ok(Ok(digest)) = hex::decode(&run.token_sha256).map(<[u8; 32]>::try_from) {
            state.token_sha256 = digest;
        }
        state.epoch = run.epoch;
        state.pid = Some(run.pid);
        state.adopted = Some(run.endpoints.clone());
        state.disabled_scripts.clone_from(&run.disabled_scripts);
        drop(state);
        server
    }

    /// Epoch of the current process.
    pub fn epoch(&self) -> u64 {
        self.run().epoch
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
        let mut run = self.run();
        run.draining = true;
        if run.is_deserted() {
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
        let run = self.run();
        if run.occupied() == 0 {
            self.request_stop();
        }
    }

    /// Switches to a new process: only its token is accepted from now on, so that a process that
    /// was given up cannot act for the world.
    pub(super) fn begin_launch(&self, token: &str, epoch: u64) {
        let now = Instant::now();
        let mut run = self.run();
        run.epoch = epoch;
        run.adopted = None;
        run.token_sha256 = ids::secret_digest(token);
        run.token = Some(token.to_owned());
        run.launched_at = now;
        run.reported_at = now;
        run.pid = None;
        run.players = 0;
        run.away.clear();
    }

    /// Revision of the package whose scripts run.
    pub fn revision(&self) -> String {
        self.run().revision.clone()
    }

    /// Records the revision after a reload.
    pub(crate) fn set_revision(&self, revision: &str) {
        self.run().revision = revision.to_owned();
    }

    pub(crate) fn token(&self) -> Option<String> {
        self.run().token.clone()
    }

    /// Whether `token` belongs to the current process.
    pub fn accepts_token(&self, token: &str) -> bool {
        let expected = self.run().token_sha256;
        let accepted = ids::matches_secret(token, &expected);
        if accepted {
            // The database stores only the hash, so an adopted process sends the token first.
            self.run().token.get_or_insert_with(|| token.to_owned());
        }
        accepted
    }

    /// Handles `POST …/ready`. Returns `false` if the server was not expected.
    pub fn ready(&self, ready: ServerReady) -> bool {
        let now = Instant::now();
        let mut run = self.run();
        run.pid = Some(ready.pid);
        run.reported_at = now;
        run.empty_since = now;
        drop(run);
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
        let mut run = self.run();
        // Heartbeats do not name new players; most likely they hold the oldest reservations. A
        // wrong guess only keeps a slot reserved a little longer.
        let taken = run.occupied();
        run.release_oldest(beat.arrived);
        let lost = beat.away.iter().filter(|id| !run.away.contains(*id));
        let lost = u32::try_from(lost.count()).unwrap_or(u32::MAX);
        let before = run.players.saturating_add(beat.arrived);
        let departed = before.saturating_sub(beat.players).saturating_sub(lost);
        run.queue.departed(departed, now);
        run.expire(now);
        for player_id in &beat.returned {
            run.orphans.remove(player_id);
        }
        run.players = beat.players;
        run.away = beat.away.iter().cloned().collect();
        if departed > 0 || run.occupied() < taken {
            self.slots.send_modify(|count| *count += 1);
        }
        run.reported_at = now;
        run.tick = beat.tick;
        run.tick_ms_p99 = beat.tick_ms_p99;
        run.script_errors += u64::from(beat.script_errors);
        if let Some(endpoints) = run.adopted.take() {
            self.advance(Phase::Ready(endpoints));
        }
        if run.occupied() > 0 {
            run.empty_since = now;
        }
        let idle = now.duration_since(run.empty_since) >= self.spec.idle_stop;
        let drained = run.draining && run.is_deserted();
        if idle || drained {
            // Still under the lock that `reserve` takes: a join either reserves its slot before
            // this check or finds the server stopping.
            self.request_stop();
        }
        match *self.phase.borrow() {
            Phase::Stopping | Phase::Ended(_) => FleetAction::Stop,
            _ if run.draining => FleetAction::Drain,
            _ => FleetAction::Continue,
        }
    }

    /// Reserves a slot for `player_id` until the player connects or `hold` has passed.
    pub fn reserve(&self, player_id: &str, hold: Duration) -> Reservation {
        let now = Instant::now();
        let mut run = self.run();
        if matches!(*self.phase.borrow(), Phase::Stopping | Phase::Ended(_)) {
            return Reservation::Leaving;
        }
        run.expire(now);
        let returning = run.reservations.contains_key(player_id) || run.awaits(player_id);
        if run.draining && !returning {
            return Reservation::Draining;
        }
        let free = self.spec.max_players.saturating_sub(run.occupied());
        // Players in the queue come first.
        let ahead = run.queue.ahead_of(player_id, now);
        if !returning && ahead >= free as usize {
            return Reservation::Full;
        }
        run.queue.leave(player_id);
        run.orphans.remove(player_id);
        run.reservations.insert(player_id.to_owned(), now + hold);
        Reservation::Held
    }

    /// Whether a player without a slot would find none free.
    pub fn is_full_for(&self, player_id: &str) -> bool {
        let mut run = self.run();
        run.expire(Instant::now());
        let has_slot = run.reservations.contains_key(player_id) || run.awaits(player_id);
        !has_slot && run.occupied() >= self.spec.max_players
    }

    /// Whether a slot is reserved for a player who was in the world a moment ago.
    pub fn awaits(&self, player_id: &str) -> bool {
        let mut run = self.run();
        run.expire(Instant::now());
        run.awaits(player_id)
    }

    /// Reserves the slots of the players of a process that has ended.
    pub(super) fn await_orphans(&self, players: Vec<String>, hold: Duration) {
        let until = Instant::now() + hold;
        let players = players.into_iter().map(|player| (player, until));
        self.run().orphans = players.collect();
    }

    /// Releases a slot after a failed join.
    pub fn release(&self, player_id: &str) {
        if self.run().reservations.remove(player_id).is_some() {
            self.slots.send_modify(|count| *count += 1);
        }
    }

    /// Adds a player to the queue or renews the entry; `None` when the queue is full.
    pub fn queue_up(&self, player_id: &str) -> Option<Turn> {
        self.run().queue.take(player_id, Instant::now())
    }

    /// Removes a player from the queue.
    pub fn leave_queue(&self, player_id: &str) {
        self.run().queue.leave(player_id);
        self.slots.send_modify(|count| *count += 1);
    }

    /// Notifies when a slot may have become free.
    pub(crate) fn watch_slots(&self) -> watch::Receiver<u64> {
        self.slots.subscribe()
    }

    /// Whether a room code is required to enter.
    pub fn is_private(&self) -> bool {
        self.run().private
    }

    pub(crate) fn set_private(&self, private: bool) {
        self.run().private = private;
    }

    /// How long the world has been empty; `None` while a player is in it or joining.
    pub(super) fn empty_for(&self) -> Option<Duration> {
        let now = Instant::now();
        let mut run = self.run();
        run.expire(now);
        (run.occupied() == 0).then(|| now.duration_since(run.empty_since))
    }

    /// Consumes `count` data store requests of the world's allowance. The game server's own limit
    /// is lower; this one protects against a game server that ignores it.
    pub fn take_store_requests(&self, count: usize) -> bool {
        let now = Instant::now();
        let mut run = self.run();
        let allowance = store_allowance(run.players);
        let filled = now.duration_since(run.store_at).as_secs_f64() * allowance / 60.0;
        run.store_at = now;
        run.store_left = (run.store_left + filled).min(allowance);
        let enough = run.store_left >= count as f64;
        if enough {
            run.store_left -= count as f64;
        }
        enough
    }

    /// Slots in use: players in the world, joining players and disconnected players.
    pub fn occupied(&self) -> u32 {
        let mut run = self.run();
        run.expire(Instant::now());
        run.occupied()
    }

    /// Number of players in the last heartbeat.
    pub fn players(&self) -> u32 {
        self.run().players
    }

    pub(super) fn script_errors(&self) -> u64 {
        self.run().script_errors
    }

    pub(super) fn silence(&self) -> Duration {
        self.run().reported_at.elapsed()
    }

    /// Time since the process was launched.
    pub(crate) fn since_launch(&self) -> Duration {
        self.run().launched_at.elapsed()
    }

    pub(super) fn count_crash(&self) {
        let mut run = self.run();
        run.crashes += 1;
        run.players = 0;
        run.away.clear();
        run.pid = None;
    }

    /// Disables a script from the next launch on. Returns `false` if it is disabled already.
    pub(super) fn disable_script(&self, path: &str) -> bool {
        let mut run = self.run();
        let added = !run.disabled_scripts.iter().any(|known| known == path);
        if added {
            run.disabled_scripts.push(path.to_owned());
        }
        added
    }

    /// Scripts that this world must not run.
    pub fn disabled_scripts(&self) -> Vec<String> {
        self.run().disabled_scripts.clone()
    }

    pub(super) fn is(&self, id: &str) -> bool {
        self.spec.world_id == id || self.run().server_id == id
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
        let state = match self.phase() {
            Phase::Starting => "starting",
            Phase::Ready(_) => "ready",
            Phase::Stopping | Phase::Ended(_) => "stopping",
            Phase::BackingOff { .. } => "backing_off",
        };
        let run = self.run();
        ServerInfo {
            server_id: run.server_id.clone(),
            world_id: self.spec.world_id.clone(),
            game_id: self.spec.game_id.clone(),
            room_code: self.spec.room_code.clone(),
            state: state.to_owned(),
            pid: run.pid,
            players: run.players,
            reserved: u32::try_from(run.reservations.len()).unwrap_or(u32::MAX),
            max_players: self.spec.max_players,
            tick: run.tick,
            tick_ms_p99: run.tick_ms_p99,
            crashes: run.crashes,
            uptime_s: u32::try_from(run.launched_at.elapsed().as_secs()).unwrap_or(u32::MAX),
        }
    }

    fn run(&self) -> MutexGuard<'_, Run> {
        // Every critical section leaves the state consistent, even on a panic.
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Run {
    fn occupied(&self) -> u32 {
        let orphans = self.orphans.keys().filter(|id| !self.away.contains(*id));
        let awaited = self.away.iter().chain(orphans);
        // A reconnecting player who has a reservation counts once.
        let awaited = awaited.filter(|id| !self.reservations.contains_key(*id));
        let held = self.reservations.len() + awaited.count();
        self.players
            .saturating_add(u32::try_from(held).unwrap_or(u32::MAX))
    }

    fn awaits(&self, player_id: &str) -> bool {
        self.away.contains(player_id) || self.orphans.contains_key(player_id)
    }

    /// Whether the world has no players and no disconnected ones who may return.
    fn is_deserted(&self) -> bool {
        self.players == 0 && self.away.is_empty()
    }

    fn expire(&mut self, now: Instant) {
        self.reservations.retain(|_, until| *until > now);
        self.orphans.retain(|_, until| *until > now);
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
