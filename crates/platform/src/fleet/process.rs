//! The process of one world as the control plane sees it: its phase, its players,
//! and the places reserved for players who are joining.

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

/// What the fleet must know of a world to run it.
#[derive(Clone, Debug)]
pub struct WorldSpec {
    /// Id of the world.
    pub world_id: String,
    /// Game it is an instance of.
    pub game_id: String,
    /// Package it runs.
    pub revision: String,
    /// Code that reaches it.
    pub room_code: String,
    /// Players that fit.
    pub max_players: u32,
    /// How long it may be empty before it is stopped.
    pub idle_stop: Duration,
    /// Whether what is built in it outlives its process.
    pub persistent: bool,
    /// Whether only those with its room code may come.
    pub private: bool,
}

/// Where a ready server takes connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// TCP port of the WebSocket endpoint.
    pub websocket_port: u16,
    /// UDP endpoint, where there is one.
    pub webtransport: Option<WebTransportEndpoint>,
}

/// Where in its life a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Launched, not ready yet.
    Starting,
    /// Takes connections.
    Ready(Endpoints),
    /// Asked to stop; takes nobody new.
    Stopping,
    /// Crashed; waits before the next launch.
    BackingOff {
        /// When it is launched again.
        until: Instant,
    },
    /// Gone for good; its entry is out of the fleet.
    Ended(End),
}

/// How a server's life ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// As it should; whoever still wants the world starts it again.
    Stopped,
    /// It could not be started or kept crashing.
    Failed(String),
}

/// Answer to a wish for a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reservation {
    /// The place is held.
    Held,
    /// No place is left.
    Full,
    /// The server is on its way out: wait for its end and start anew.
    Leaving,
    /// It lets its players finish and takes nobody new.
    Draining,
}

/// One entry of the fleet. Shared between its supervisor and requests.
pub struct WorldProcess {
    /// The world it runs.
    pub spec: WorldSpec,
    /// Changes of phase, to wait on.
    phase: watch::Sender<Phase>,
    /// Counts moments at which a place may have become free, to wait on.
    places: watch::Sender<u64>,
    run: Mutex<Run>,
}

/// What belongs to the current process of the world.
struct Run {
    server_id: String,
    /// Counts the processes of the world, in the database.
    epoch: u64,
    /// Where a process takes connections that outlived the platform; it is
    /// ready once it has called.
    adopted: Option<Endpoints>,
    token_sha256: [u8; 32],
    /// The same token, to speak to the process; none before the first launch.
    token: Option<String>,
    /// Package whose scripts it runs; a reload changes it.
    revision: String,
    launched_at: Instant,
    heard_at: Instant,
    empty_since: Instant,
    pid: Option<u32>,
    players: u32,
    tick: u32,
    tick_ms_p99: f32,
    script_errors: u64,
    crashes: u32,
    disabled_scripts: Vec<String>,
    draining: bool,
    /// Requests to the store that are left, as of `store_at`.
    store_left: f64,
    store_at: Instant,
    /// Player id and when its place is given up.
    reservations: HashMap<String, Instant>,
    /// Those who lost their connection, as the process says: their places wait
    /// for them.
    away: HashSet<String>,
    /// Those who were in a process that broke down or was stopped, and how long
    /// their places wait for them.
    orphans: HashMap<String, Instant>,
    /// Those for whom there is no place.
    queue: Queue,
    /// As [`WorldSpec::private`], which its owner may change while it runs.
    private: bool,
}

/// Twice what scripts are allowed: heartbeats count players a little late.
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
            places: watch::Sender::new(0),
            run: Mutex::new(Run {
                server_id: ids::new_id("server"),
                epoch: 0,
                adopted: None,
                // No token has an all-zero hash: closed until the first launch.
                token_sha256: [0; 32],
                token: None,
                revision,
                launched_at: now,
                heard_at: now,
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

    /// The entry of a process that outlived the platform.
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

    /// Counts the processes of the world: the one that runs now.
    pub fn epoch(&self) -> u64 {
        self.run().epoch
    }

    /// The phase now.
    pub fn phase(&self) -> Phase {
        self.phase.borrow().clone()
    }

    /// Completes when the server has left the fleet.
    pub async fn ended(&self) {
        let mut phase = self.phase.subscribe();
        // The sender is ours: waiting cannot fail.
        let _ = phase
            .wait_for(|phase| matches!(phase, Phase::Ended(_)))
            .await;
    }

    pub(crate) fn watch_phase(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// The last phase of all.
    pub(super) fn set_ended(&self, end: End) {
        self.phase.send_replace(Phase::Ended(end));
    }

    /// Moves on to `next`, unless the server was asked to stop meanwhile: a
    /// stop must never be overwritten.
    pub(super) fn advance(&self, next: Phase) -> bool {
        self.phase.send_if_modified(|phase| {
            let allowed = !matches!(phase, Phase::Stopping | Phase::Ended(_));
            if allowed {
                *phase = next;
            }
            allowed
        })
    }

    /// Takes nobody new and stops when the last player has left.
    pub(super) fn drain(&self) {
        let mut run = self.run();
        run.draining = true;
        if run.is_deserted() {
            self.request_stop();
        }
    }

    /// Asks the server to leave; its supervisor does the rest.
    pub(super) fn request_stop(&self) {
        self.phase.send_if_modified(|phase| {
            let leaving = matches!(phase, Phase::Stopping | Phase::Ended(_));
            if !leaving {
                *phase = Phase::Stopping;
            }
            !leaving
        });
    }

    /// Asks it to leave unless somebody came meanwhile.
    pub(super) fn stop_if_empty(&self) {
        // Under the lock that `reserve` takes: nobody slips in between.
        let run = self.run();
        if run.occupied() == 0 {
            self.request_stop();
        }
    }

    /// A new process takes over: only its token counts from here on, so that a
    /// process that was given up can never speak for the world again.
    pub(super) fn begin_launch(&self, token: &str, epoch: u64) {
        let now = Instant::now();
        let mut run = self.run();
        run.epoch = epoch;
        run.adopted = None;
        run.token_sha256 = ids::secret_digest(token);
        run.token = Some(token.to_owned());
        run.launched_at = now;
        run.heard_at = now;
        run.pid = None;
        run.players = 0;
        run.away.clear();
    }

    /// The package whose scripts it runs.
    pub fn revision(&self) -> String {
        self.run().revision.clone()
    }

    /// A reload brought it to another package.
    pub(crate) fn set_revision(&self, revision: &str) {
        self.run().revision = revision.to_owned();
    }

    pub(crate) fn token(&self) -> Option<String> {
        self.run().token.clone()
    }

    /// Whether `token` belongs to the process that runs the world now.
    pub fn accepts_token(&self, token: &str) -> bool {
        let expected = self.run().token_sha256;
        let accepted = ids::matches_secret(token, &expected);
        if accepted {
            // The database has its hash only: an adopted process says it first.
            self.run().token.get_or_insert_with(|| token.to_owned());
        }
        accepted
    }

    /// `POST …/ready`. False when the server was not waited for.
    pub fn ready(&self, ready: ServerReady) -> bool {
        let now = Instant::now();
        let mut run = self.run();
        run.pid = Some(ready.pid);
        run.heard_at = now;
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

    /// `POST …/heartbeat`: takes the figures and says what to do next.
    pub fn heartbeat(&self, beat: &Heartbeat) -> FleetAction {
        let now = Instant::now();
        let mut run = self.run();
        // Heartbeats name no players: whoever is new was most likely the one
        // who waited longest. A wrong guess only holds a place a little longer.
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
            self.places.send_modify(|moments| *moments += 1);
        }
        run.heard_at = now;
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
            // Still under the lock that `reserve` takes: a join either holds
            // its place before we look, or finds the server leaving.
            self.request_stop();
        }
        match *self.phase.borrow() {
            Phase::Stopping | Phase::Ended(_) => FleetAction::Stop,
            _ if run.draining => FleetAction::Drain,
            _ => FleetAction::Continue,
        }
    }

    /// Holds a place for `player_id` until it connects or `hold` has passed.
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
        // Whoever waits comes first.
        let ahead = run.queue.ahead_of(player_id, now);
        if !returning && ahead >= free as usize {
            return Reservation::Full;
        }
        run.queue.leave(player_id);
        run.orphans.remove(player_id);
        run.reservations.insert(player_id.to_owned(), now + hold);
        Reservation::Held
    }

    /// Whether there is no place for somebody who does not have one yet.
    pub fn is_full_for(&self, player_id: &str) -> bool {
        let mut run = self.run();
        run.expire(Instant::now());
        let has_one = run.reservations.contains_key(player_id) || run.awaits(player_id);
        !has_one && run.occupied() >= self.spec.max_players
    }

    /// Whether a place waits for somebody who was here a moment ago.
    pub fn awaits(&self, player_id: &str) -> bool {
        let mut run = self.run();
        run.expire(Instant::now());
        run.awaits(player_id)
    }

    /// Holds the places of those who were in a process that is gone.
    pub(super) fn await_orphans(&self, players: Vec<String>, hold: Duration) {
        let until = Instant::now() + hold;
        let players = players.into_iter().map(|player| (player, until));
        self.run().orphans = players.collect();
    }

    /// Gives a place back, after a join that failed.
    pub fn release(&self, player_id: &str) {
        if self.run().reservations.remove(player_id).is_some() {
            self.places.send_modify(|moments| *moments += 1);
        }
    }

    /// Takes or keeps a turn to wait for a place; none when too many wait.
    pub fn queue_up(&self, player_id: &str) -> Option<Turn> {
        self.run().queue.take(player_id, Instant::now())
    }

    /// Gives a turn up.
    pub fn leave_queue(&self, player_id: &str) {
        self.run().queue.leave(player_id);
        self.places.send_modify(|moments| *moments += 1);
    }

    /// Changes when a place may have become free.
    pub(crate) fn watch_places(&self) -> watch::Receiver<u64> {
        self.places.subscribe()
    }

    /// Whether only those with its room code may come.
    pub fn is_private(&self) -> bool {
        self.run().private
    }

    pub(crate) fn set_private(&self, private: bool) {
        self.run().private = private;
    }

    /// How long it has been empty; none when somebody is in it or on the way.
    pub(super) fn empty_for(&self) -> Option<Duration> {
        let now = Instant::now();
        let mut run = self.run();
        run.expire(now);
        (run.occupied() == 0).then(|| now.duration_since(run.empty_since))
    }

    /// Takes so many requests to the store off what the world may make. Its
    /// own limit is lower and comes first: this one is for a game server that
    /// does not keep to it.
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

    /// Players in it, on their way, and those whose places wait for them.
    pub fn occupied(&self) -> u32 {
        let mut run = self.run();
        run.expire(Instant::now());
        run.occupied()
    }

    /// Players at the last heartbeat.
    pub fn players(&self) -> u32 {
        self.run().players
    }

    pub(super) fn script_errors(&self) -> u64 {
        self.run().script_errors
    }

    pub(super) fn silence(&self) -> Duration {
        self.run().heard_at.elapsed()
    }

    /// Since the process was launched.
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

    /// Leaves a script out from the next launch on; false when it is left out
    /// already.
    pub(super) fn disable_script(&self, path: &str) -> bool {
        let mut run = self.run();
        let news = !run.disabled_scripts.iter().any(|known| known == path);
        if news {
            run.disabled_scripts.push(path.to_owned());
        }
        news
    }

    /// Scripts that this world must not run.
    pub fn disabled_scripts(&self) -> Vec<String> {
        self.run().disabled_scripts.clone()
    }

    pub(super) fn is(&self, id: &str) -> bool {
        self.spec.world_id == id || self.run().server_id == id
    }

    /// As the server browser shows it.
    pub fn running_world(&self) -> RunningWorld {
        RunningWorld {
            world_id: self.spec.world_id.clone(),
            room_code: self.spec.room_code.clone(),
            players: self.players(),
            max_players: self.spec.max_players,
        }
    }

    /// As an admin sees it.
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
        // Every critical section leaves the figures whole, even on a panic.
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Run {
    fn occupied(&self) -> u32 {
        let orphans = self.orphans.keys().filter(|id| !self.away.contains(*id));
        let awaited = self.away.iter().chain(orphans);
        // Whoever is on the way back has a place already.
        let awaited = awaited.filter(|id| !self.reservations.contains_key(*id));
        let held = self.reservations.len() + awaited.count();
        self.players
            .saturating_add(u32::try_from(held).unwrap_or(u32::MAX))
    }

    fn awaits(&self, player_id: &str) -> bool {
        self.away.contains(player_id) || self.orphans.contains_key(player_id)
    }

    /// Nobody is in it, and nobody may come back.
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
