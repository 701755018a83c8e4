//! The world's thread: one loop over client messages and the clock.
//!
//! [`Host`] orders the work of a tick; each part of it belongs to an object of its
//! own, which gets the world and the sessions when it needs them.

mod commits;
mod handshake;
mod lifecycle;
mod message;
mod outside;
mod persister;
mod reading;
mod reports;
mod saving;
mod scene;
mod scripts;
mod social;
mod telemetry;
mod terrain;
mod updates;

pub(crate) use handshake::unix_ms;
pub(crate) use persister::Returning;
pub(crate) use scene::EncodedScene;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use frolic_fleet_api::process::{ReloadReply, ReloadRequest};
use frolic_fleet_api::remote_commands::OutsideNews;
use frolic_protocol::ServerMessage;
use frolic_world::{PlayerNumber, World, input};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

use self::handshake::{Introduction, unix_s};
use self::lifecycle::Lifecycle;
use self::persister::Persister;
use self::reading::ReadingShare;
use self::reports::Reports;
use self::scene::SceneServer;
use self::scripts::ScriptServer;
use self::social::Social;
use self::telemetry::Telemetry;
use self::updates::{UpdateContext, Updates};
use crate::admission::Admission;
use crate::connection::sockets::Sockets;
use crate::connection::websocket::Reading;
use crate::connection::{CloseCode, Connection, ConnectionId, ConnectionPermit, QuicConnection};
use crate::console::Console;
use crate::decoder::{ClientInput, Encoding};
use crate::inbox::{Carrier, Inbound};
use crate::metrics::{KickCause, Metrics, Presence, StageClock, StageTimes, micros};
use crate::persistence::PersistenceClient;
use crate::player_sessions::{Place, PlayerSession, PlayerSessions};
use crate::recording::Recording;
use crate::scripts::ScriptRelease;
use crate::session::Session;
use crate::sessions::Sessions;
use crate::social::BlockListClient;
use crate::store::StoreClient;

/// A late server catches up by this many ticks; the rest is dropped.
const CATCH_UP_TICKS: u32 = 5;
/// Messages handled per tick, of all clients together: bounds the work, far above
/// what honest clients send.
const MESSAGES_PER_TICK: usize = 8 * 1024;
/// Sockets to read between two checks of the clock, and messages to take from the
/// inbox, where WebTransport messages arrive.
const READ_AT_ONCE: usize = 16;
const TAKEN_AT_ONCE: usize = 64;
/// A connection without a handshake is closed after this.
const HANDSHAKE_S: u32 = 5;
/// How long clients have to read why the world stops.
const FAREWELL: Duration = Duration::from_millis(500);

/// What clients know a world by.
pub struct WorldIdentity {
    /// The world's id.
    pub world_id: String,
    /// Its short code.
    pub room_code: String,
    /// Maximum number of players.
    pub players_max: u32,
}

/// The settings of a host.
pub struct HostSettings {
    /// Which world it is.
    pub identity: WorldIdentity,
    /// The game's id.
    pub game_id: String,
    /// Scripts that are sent together, by the bundle's name.
    pub bundles: BTreeMap<String, Vec<String>>,
    /// Sends script manifests to the platform, which signs them; none without a
    /// platform.
    pub releases: Option<mpsc::Sender<ScriptRelease>>,
    /// Stop after this many seconds without players; none: never.
    pub idle_stop_s: Option<u32>,
    /// Seconds that scripts have to finish when the world closes.
    pub close_limit_s: u32,
    /// The scene.
    pub scene: EncodedScene,
    /// Checks tickets and resume tokens.
    pub admission: Admission,
    /// Whether chat is filtered before any player reads it.
    pub filter_chat: bool,
    /// Where the session is recorded.
    pub recording: Option<Recording>,
    /// Persistent data of scripts.
    pub store: StoreClient,
    /// Persists operations and players of the world.
    pub persistence: PersistenceClient,
    /// Last positions of players who may come back.
    pub returning: Returning,
    /// Output and costs of scripts.
    pub console: Arc<Console>,
    /// Fetches the block lists of players.
    pub blocks: BlockListClient,
    /// Receives world events for subscribers outside of the world; none without a
    /// platform.
    pub news: Option<mpsc::Sender<OutsideNews>>,
}

/// A world and all its connections.
pub struct Host {
    world: World,
    identity: WorldIdentity,
    sessions: Sessions,
    players: PlayerSessions,
    inbox: mpsc::Receiver<Inbound>,
    sockets: Sockets,
    admission: Admission,
    social: Social,
    scripts: ScriptServer,
    scene: SceneServer,
    persister: Persister,
    updates: Updates,
    reports: Reports,
    lifecycle: Lifecycle,
    telemetry: Telemetry,
}

impl Host {
    /// A world that waits for its first player.
    pub fn new(
        world: World,
        settings: HostSettings,
        inbox: mpsc::Receiver<Inbound>,
        sockets: Sockets,
        metrics: Arc<Metrics>,
    ) -> Self {
        let (game_id, bundles) = (settings.game_id, settings.bundles);
        let (persistence, store) = (settings.persistence, settings.store);
        Self {
            identity: settings.identity,
            sessions: Sessions::default(),
            players: PlayerSessions::default(),
            inbox,
            sockets,
            admission: settings.admission,
            social: Social::new(settings.blocks, settings.filter_chat),
            scripts: ScriptServer::new(&world, game_id, bundles, settings.releases),
            scene: SceneServer::new(settings.scene),
            persister: Persister::new(persistence, store, settings.returning),
            updates: Updates::default(),
            reports: Reports::new(settings.console, settings.news, settings.recording),
            lifecycle: Lifecycle::new(settings.idle_stop_s, settings.close_limit_s),
            telemetry: Telemetry::new(metrics, world.tick_hz()),
            world,
        }
    }

    /// What the platform needs to sign the scripts for clients.
    pub fn release(&self) -> ScriptRelease {
        self.scripts.release(&self.world)
    }

    /// Runs until the world must stop; returns why.
    pub fn run(mut self) -> String {
        let step = Duration::from_secs(1) / self.world.tick_hz();
        let mut next = Instant::now() + step;
        loop {
            let now = Instant::now();
            if now < next {
                std::thread::sleep(next - now);
            } else if now - next > step * CATCH_UP_TICKS {
                let late = (now - next).as_micros() / step.as_micros().max(1);
                self.telemetry.ticks_dropped(late as u64);
                next = now;
            }
            let began = Instant::now();
            let late = began.saturating_duration_since(next);
            next += step;
            let stop = self.tick(began);
            self.telemetry.tick_ran(late, began.elapsed());
            if self.lifecycle.is_orphaned() {
                // As when the process is killed: there is no client left to notify.
                return "the server around this world has stopped".into();
            }
            let (tick, tick_hz) = (self.world.tick(), self.world.tick_hz());
            let players = self.players.taken();
            let stop = stop.or_else(|| self.lifecycle.reason_to_stop(players, tick, tick_hz));
            if let Some(reason) = stop {
                self.begin_close(reason);
                // Sends the store requests that closing handlers made at once.
                self.persister.ask_store(&mut self.world, &mut self.players);
            }
            if let Some(reason) = self.closed() {
                self.finish();
                return reason;
            }
        }
    }

    /// One tick; a reason means that the world must stop. The last tick is as
    /// complete as the others: messages received in it are handled.
    fn tick(&mut self, began: Instant) -> Option<String> {
        let mut clock = StageClock::new(began);
        if !self.lifecycle.is_closing() {
            // When closing, held messages are left to the next process: clients
            // send them again.
            self.take_held();
        }
        let reason = self.take_messages(began);
        self.read_sockets(began);
        let reads = clock.lap();
        if self.world.tick().is_multiple_of(self.world.tick_hz()) {
            let unix_ms = unix_ms();
            self.world.apply(input::WallClock { unix_ms });
            self.telemetry.metrics().note_world(self.world.figures());
        }
        let step = self.world.apply(input::Step);
        self.social.place_arrivals(&mut self.world, &self.players);
        let report = step.scripts;
        if !self.lifecycle.is_closing() {
            let (world, sessions) = (&mut self.world, &mut self.sessions);
            self.scripts.judge(report.last_tick_us, world, sessions);
        }
        self.reports.record(&mut self.world);
        clock.lap();
        self.persister
            .answer_persisted(&mut self.world, &mut self.sessions);
        self.deliver_outbox();
        // Including requests caused by the messages delivered in this tick.
        self.persister.ask_store(&mut self.world, &mut self.players);
        self.persister.persist(&self.world, &mut self.players);
        if let Some(notice) = self.persister.notice_saving(began) {
            self.sessions.send_to_players(&notice);
        }
        let unstored = self.persister.take_unstored();
        self.reports.events(&mut self.world, unstored);
        self.report_scripts(began);
        self.reports
            .forward_client_output(&self.world, &mut self.sessions, &self.players);
        self.scene.send_next(&mut self.sessions);
        terrain::send_chunks(&mut self.world, &mut self.sessions);
        let mut context = UpdateContext {
            world: &mut self.world,
            sessions: &mut self.sessions,
            players: &mut self.players,
            metrics: self.telemetry.metrics(),
            pressure: self.telemetry.pressure(),
        };
        let updates = self.updates.send(&mut context, began, &mut clock);
        self.tend_sessions(began);
        let tending = clock.lap();

        let metrics = self.telemetry.metrics();
        metrics.script_bytes.set(report.memory_bytes as u64);
        metrics
            .script_seconds
            .add(Duration::from_micros(report.last_tick_us));
        metrics.ticks.set(self.world.tick().into());
        self.telemetry.tick_took(&StageTimes {
            tick: micros(began.elapsed()),
            reads,
            step: step.times,
            snapshots: updates.snapshots,
            writes: updates.writes + tending,
        });
        reason
    }

    /// Handles the messages in the inbox: everything except WebSocket data. A
    /// reason means that the world must stop.
    fn take_messages(&mut self, now: Instant) -> Option<String> {
        let share = ReadingShare::new(Instant::now(), self.world.tick_hz(), TAKEN_AT_ONCE);
        for count in 0..MESSAGES_PER_TICK {
            if share.is_used_after(count, Instant::now) {
                break;
            }
            match self.inbox.try_recv() {
                Ok(Inbound::Stop { reason }) => return Some(reason),
                Ok(inbound) => self.take_message(inbound, now),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.lifecycle.orphan();
                    break;
                }
            }
        }
        None
    }

    fn take_message(&mut self, inbound: Inbound, now: Instant) {
        match inbound {
            Inbound::Open {
                encoding,
                ticket,
                carrier,
                permit,
            } => self.open(encoding, ticket, carrier, permit, now),
            Inbound::ClientInput {
                connection_id,
                input,
            } => {
                self.handle_input(connection_id, input);
                self.sessions.settle(connection_id);
            }
            Inbound::Closed { connection_id } => self.connection_closed(connection_id, now),
            Inbound::Reload { request, answer } => {
                // The caller may have disconnected; the world has changed all the
                // same.
                let _ = answer.send(self.reload(&request));
            }
            Inbound::Outside { request, answer } => self.answer_outside(request, answer),
            Inbound::Signed { hash, signature } => {
                self.scripts.signed(&hash, signature, &mut self.sessions);
            }
            Inbound::Store(answers) => self.persister.store_answered(answers, &mut self.world),
            Inbound::Persisted(stored) => {
                self.persister
                    .persisted(stored, &mut self.world, &mut self.players);
            }
            Inbound::Blocks { player_id, blocked } => {
                let number = self.players.of_player(&player_id);
                if let Some(player) = number.and_then(|number| self.players.get_mut(number)) {
                    // Players that were hidden here meanwhile stay hidden.
                    player.blocked.extend(blocked);
                }
            }
            Inbound::Expel { player_id, reason } => self.expel(&player_id, &reason),
            Inbound::Drain => self.lifecycle.drain(),
            // Ends the tick's reading.
            Inbound::Stop { .. } => {}
        }
    }

    fn open(
        &mut self,
        encoding: Encoding,
        ticket: Option<String>,
        carrier: Carrier,
        permit: ConnectionPermit,
        now: Instant,
    ) {
        let connection_id = permit.connection_id();
        let connection = match carrier {
            Carrier::Channel {
                outbox,
                end,
                carried,
            } => Connection::Quic(QuicConnection::new(outbox, end, carried)),
            Carrier::Socket { stream, read_ahead } => {
                match self
                    .sockets
                    .adopt(connection_id, stream, encoding, &read_ahead, now)
                {
                    Ok(connection) => Connection::WebSocket(connection),
                    Err(cause) => {
                        tracing::debug!(%cause, "a socket broke before its first message");
                        return;
                    }
                }
            }
        };
        let has_ticket = ticket.is_some();
        let session = Session::new(encoding, ticket, connection, permit, self.world.tick(), now);
        self.sessions.insert(connection_id, session);
        if has_ticket && encoding == Encoding::Json {
            // A ticket in the URL is the handshake.
            self.handshake(connection_id, None, Introduction::default());
        }
    }

    /// Reads every socket that has data, once.
    fn read_sockets(&mut self, now: Instant) {
        let now_s = self.telemetry.seconds_at(now);
        let share = ReadingShare::new(Instant::now(), self.world.tick_hz(), READ_AT_ONCE);
        self.sockets.look();
        // Messages of one socket; reused for its capacity.
        let mut inputs = Vec::new();
        let mut messages = 0;
        for count in 0..self.sockets.ready_count() {
            if share.is_used_after(count, Instant::now) || messages > MESSAGES_PER_TICK {
                break;
            }
            let Some(ready) = self.sockets.next_ready() else {
                break;
            };
            let Some(session) = self.sessions.get_quietly(ready.connection_id) else {
                continue;
            };
            let Connection::WebSocket(connection) = &mut session.connection else {
                continue;
            };
            let memory = self.sockets.memory();
            let moment = (now, now_s);
            let metrics = self.telemetry.metrics();
            let reading = connection.receive(ready.closed, moment, memory, &mut inputs, metrics);
            let round_trip = connection.take_round_trip();
            if let Some((player, time)) = session.player.as_ref().zip(round_trip) {
                let ms = u16::try_from(time.as_millis()).unwrap_or(u16::MAX);
                let player = player.number;
                self.world.apply(input::RoundTrip { player, ms });
                metrics.round_trip_took(time);
            }
            messages += inputs.len();
            for input in inputs.drain(..) {
                self.handle_input(ready.connection_id, input);
            }
            self.sessions.settle(ready.connection_id);
            match reading {
                Reading::Drained => {}
                Reading::More => self.sockets.again(ready.connection_id),
                Reading::Gone => self.connection_closed(ready.connection_id, now),
                Reading::Broken(code, cause, reason) => {
                    if let Some(session) = self.sessions.get_mut(ready.connection_id) {
                        session.kick_with(code, cause, &reason);
                    }
                }
            }
        }
    }

    /// Handles one input of a connection. What it queues for sending is noticed
    /// only when the session is settled.
    fn handle_input(&mut self, connection_id: ConnectionId, input: ClientInput) {
        let Some(session) = self.sessions.get_quietly(connection_id) else {
            return;
        };
        if session.kicked().is_some() {
            return;
        }
        match input {
            ClientInput::Message { seq, message, echo } => {
                self.message(connection_id, seq, message, echo)
            }
            ClientInput::Refused(error) => {
                session.answer(error.seq, Err((error.code, error.message)));
                if error.counts {
                    self.count_dropped(connection_id);
                }
            }
            ClientInput::Dropped => self.count_dropped(connection_id),
            ClientInput::Flooding { seq } => {
                let message = "too many messages: this one was dropped".to_owned();
                session.answer(seq, Err(("flood", message)));
            }
            ClientInput::Broken(error) => {
                session.kick_with(CloseCode::Policy, error.cause(), &error.to_string());
            }
        }
    }

    /// A connection was closed; its player may reconnect.
    fn connection_closed(&mut self, connection_id: ConnectionId, now: Instant) {
        let Some(session) = self.sessions.remove(connection_id) else {
            return;
        };
        if let Some(cause) = session.kicked() {
            self.telemetry.metrics().kicked(cause);
        }
        if let Connection::WebSocket(connection) = session.connection {
            self.sockets.part(connection, session.permit, now);
        }
        if let Some(player) = session.player {
            let away = Place::away(self.world.tick(), self.world.tick_hz());
            self.players.move_to(player.number, away);
            self.world.apply(input::Connected {
                player: player.number,
                connected: false,
            });
        }
    }

    /// Removes a player from the world for good.
    fn remove_player(&mut self, number: PlayerNumber) {
        if let Some(mut player_session) = self.players.remove(number) {
            self.persister
                .player_leaves(number, &mut player_session, &self.world);
            self.admission.spend(player_session.nonce, unix_s());
        }
        self.world.apply(input::Leave { player: number });
    }

    /// Disconnects a player whom moderators have suspended.
    fn expel(&mut self, player_id: &str, reason: &str) {
        let Some(number) = self.players.of_player(player_id) else {
            return;
        };
        let player_session = self.players.get(number);
        let connection_id = player_session.and_then(PlayerSession::connection_id);
        if let Some(session) = connection_id.and_then(|id| self.sessions.get_mut(id)) {
            session.player = None;
            session.kick(KickCause::Expelled, reason);
        }
        // Their place is not reserved: coming back needs a new ticket.
        self.remove_player(number);
    }

    /// Switches the world to the scripts of a package.
    fn reload(&mut self, request: &ReloadRequest) -> ReloadReply {
        if self.lifecycle.is_closing() {
            // The running scripts must finish in order; the next process has the
            // new ones.
            return ReloadReply {
                version: self.world.script_version(),
                errors: vec!["the world is closing; its next start has the new scripts".into()],
                ..ReloadReply::default()
            };
        }
        let reply = self
            .scripts
            .reload(request, &mut self.world, &mut self.sessions);
        self.report_scripts(Instant::now());
        reply
    }

    fn report_scripts(&mut self, now: Instant) {
        let metrics = self.telemetry.metrics();
        self.reports.script_output(&mut self.world, now, metrics);
    }

    /// Sends what the world has for players, and who disconnected and reconnected.
    fn deliver_outbox(&mut self) {
        for outgoing in self.world.take_outbox() {
            match outgoing.message {
                ServerMessage::TerraformApplied(applied) => {
                    terrain::send_change(&self.world, &mut self.sessions, applied);
                }
                message => {
                    let (to, reliable) = (outgoing.to, outgoing.reliable);
                    self.players
                        .deliver(&mut self.sessions, to, message, reliable);
                }
            }
        }
        let changed = self.world.take_reconnected();
        if !changed.is_empty() {
            let message = ServerMessage::Presence(changed);
            self.players
                .deliver(&mut self.sessions, None, message, true);
        }
    }

    /// Sends what is queued, and disconnects clients that are lost or late.
    fn tend_sessions(&mut self, now: Instant) {
        let (tick, tick_hz) = (self.world.tick(), self.world.tick_hz());
        let patience = HANDSHAKE_S * tick_hz;
        let mut lost = Vec::new();
        let (mut queued_bytes, mut slow_readers) = (0, 0);
        let metrics = self.telemetry.metrics();
        // Idle sessions are checked once a second, to see whether they are alive.
        let (turn, of) = (tick as usize, tick_hz.max(1) as usize);
        self.sessions
            .tend(turn, of, |connection_id, update_waits, session| {
                if session.player.is_none() && tick.saturating_sub(session.opened_tick) == patience
                {
                    let reason = "no handshake came; send one within five seconds";
                    session.kick_with(CloseCode::Policy, KickCause::Refused, reason);
                }
                if !update_waits {
                    session.flush(now, metrics);
                }
                queued_bytes += session.connection.waiting_bytes() as u64;
                slow_readers += u64::from(session.is_slow());
                if session.is_over() {
                    lost.push(connection_id);
                }
            });
        metrics.queued_bytes.set(queued_bytes);
        metrics.slow_readers.set(slow_readers);
        for connection_id in lost {
            self.connection_closed(connection_id, now);
        }
        let metrics = self.telemetry.metrics();
        self.sockets.tend_farewells(now, metrics);
        self.renew_tokens();
        let mut overdue = Vec::new();
        if !self.lifecycle.is_closing() {
            self.players.overdue(tick, &mut overdue);
        }
        for number in overdue {
            self.remove_player(number);
        }
        // Once per tick, however many players joined and left in it.
        if self.players.take_changed() | self.persister.take_expired() {
            self.telemetry.metrics().set_presence(Presence {
                players: self.players.online(),
                away: self.players.away(),
                returned: self.persister.returning().returned().to_vec(),
            });
        }
    }

    /// Begins to close the world: notifies and disconnects all players, and runs
    /// `PlayerRemoving` and `World.OnClose` in scripts. The loop continues until
    /// [`Host::closed`].
    ///
    /// Clients go first: what a player did after `PlayerRemoving` saved their
    /// progress would be lost. Messages that were not handled are sent again to the
    /// next process, and what scripts send now waits for them there.
    fn begin_close(&mut self, reason: String) {
        if self.lifecycle.is_closing() {
            return;
        }
        let began = Instant::now();
        for mut session in self.sessions.take_all() {
            // Their places are persisted: a player who joins again continues where
            // they were, on the next server.
            session.send(&ServerMessage::Error {
                code: "restarting".to_owned(),
                message: reason.clone(),
            });
            session.kick(KickCause::Stopped, &reason);
            session.flush(began, self.telemetry.metrics());
            if let Connection::WebSocket(connection) = session.connection {
                self.sockets.part(connection, session.permit, began);
            }
        }
        self.world.apply(input::Close);
        self.lifecycle.close(reason, began);
    }

    /// Why the world was closed, once closing handlers have finished and all their
    /// store requests are answered, or the time for it is up.
    fn closed(&mut self) -> Option<String> {
        let reason = self.lifecycle.closing()?.to_owned();
        if self.world.has_closed() && self.persister.store_has_settled() {
            return Some(reason);
        }
        let limit_s = self.lifecycle.exceeded_limit_s(Instant::now())?;
        self.world.apply(input::EndClose { seconds: limit_s });
        Some(reason)
    }

    /// The world has closed: hands what is left to storage, and gives clients a
    /// moment to read the last message.
    fn finish(&mut self) {
        // What handlers did in the last moment.
        self.deliver_outbox();
        self.report_scripts(Instant::now());
        self.reports.finish_recording(&mut self.world);
        self.persister.finish(&mut self.world, &mut self.players);
        let began = Instant::now();
        let metrics = self.telemetry.metrics();
        while self.sockets.tend_farewells(Instant::now(), metrics) > 0 && began.elapsed() < FAREWELL
        {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
