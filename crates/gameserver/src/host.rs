//! The world's thread: one loop over client messages and the clock.

mod closing;
mod handshake;
mod logs;
mod message;
mod outside;
mod persisting;
mod reading;
mod reload;
mod saving;
mod scene;
mod social;
mod terrain;
mod updates;

use closing::Closing;
pub(crate) use handshake::unix_ms;
use handshake::{Introduction, unix_s};
pub(crate) use persisting::Returning;
use persisting::{Counted, Look};
use reading::ReadingShare;
use saving::SavingNotice;
use terrain::Unstored;
use updates::Updates;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use bytes::Bytes;
use frolic_protocol::ServerMessage;
use frolic_protocol::client_log::ClientPrints;
use frolic_protocol::packet;
use frolic_protocol::remote_commands::OutsideNews;
use frolic_world::{PlayerNumber, World};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

use crate::admission::Admission;
use crate::client_logs::ClientLogs;
use crate::connection::{CloseCode, Connection, QuicConnection};
use crate::console::Console;
use crate::figures::LastSecond;
use crate::incoming::{Carrier, ClientInput, ConnectionId, Encoding, Inbound};
use crate::metrics::{KickCause, Metrics, Presence, StageClock, StageTimes, micros};
use crate::persistence::PersistenceClient;
use crate::player_sessions::{Place, PlayerSession, PlayerSessions};
use crate::pressure::Pressure;
use crate::recording::{self, Recording};
use crate::scripts::{ClientScripts, ScriptRelease};
use crate::session::{ReliableMessage, Session};
use crate::sessions::Sessions;
use crate::social::BlockListClient;
use crate::store::StoreClient;
use crate::transport::ConnectionPermit;
use crate::transport::socket::Reading;
use crate::transport::sockets::Sockets;

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

/// The settings of a host.
pub struct HostSettings {
    /// The world's id.
    pub world_id: String,
    /// Its short code.
    pub room_code: String,
    /// The game's id.
    pub game_id: String,
    /// Scripts that are sent together, by the bundle's name.
    pub bundles: BTreeMap<String, Vec<String>>,
    /// Sends script manifests to the platform, which signs them; none without a
    /// platform.
    pub press: Option<mpsc::Sender<ScriptRelease>>,
    /// Maximum number of players.
    pub players_max: u32,
    /// Stop after this many seconds without players; none: never.
    pub idle_stop_s: Option<u32>,
    /// Seconds that scripts have to finish when the world closes.
    pub close_limit_s: u32,
    /// SHA-256 and compressed text of the scene.
    pub scene: (String, Vec<u8>),
    /// Collision meshes of assets, compressed, by path: clients need them before
    /// the scene.
    pub meshes: Vec<(String, Vec<u8>)>,
    /// Both as JSON, for clients that ask for them: encoded once for all.
    pub scene_texts: Vec<String>,
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
    settings: HostSettings,
    client_scripts: ClientScripts,
    /// Scripts that run here already, but are announced to clients only once the
    /// platform has signed them.
    next_shelf: Option<ClientScripts>,
    scene_packet: Bytes,
    /// Connections that asked for the scene and have not received all of it.
    scene_readers: Vec<ConnectionId>,
    sessions: Sessions,
    player_sessions: PlayerSessions,
    inbox: mpsc::Receiver<Inbound>,
    sockets: Sockets,
    /// Messages of one socket; reused for its capacity.
    inputs: Vec<ClientInput>,
    metrics: Arc<Metrics>,
    started: Instant,
    draining: bool,
    /// Set once the world must stop.
    closing: Option<Closing>,
    /// The inbox is closed: the server around this world has stopped.
    orphaned: bool,
    /// Players who joined by invitation since the last tick, and who invited them.
    arrivals: Vec<(PlayerNumber, String)>,
    empty_since_tick: u32,
    /// Commands whose answer waits for persistence, in the order of their
    /// operations.
    unstored: VecDeque<Unstored>,
    /// Whether players were notified that saving is delayed.
    saving: SavingNotice,
    /// The last snapshot of how far players' messages were handled.
    last_look: Look,
    /// Players whose connection began or ended since the last tick.
    came_or_went: Vec<PlayerNumber>,
    /// A player joined, left or lost their connection since the metrics were
    /// updated.
    presence_changed: bool,
    updates: Updates,
    /// How far the server is from keeping up, 0 to 3: snapshots are thinned by it.
    pressure: u8,
    /// For debug overlays.
    last_second: LastSecond,
    /// Output of client scripts since the last report.
    client_logs: ClientLogs,
    /// Which clients report their prints, as last sent to them.
    client_prints: Arc<ClientPrints>,
}

/// The collision meshes and the scene behind them, as one packet.
fn packet_of(meshes: &[(String, Vec<u8>)], scene: &ServerMessage) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (asset, zstd) in meshes {
        let mesh = ServerMessage::Mesh {
            asset: asset.clone(),
            zstd: zstd.clone(),
        };
        packet::write(&mut bytes, &mesh);
    }
    packet::write(&mut bytes, scene);
    bytes
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
        let scene = ServerMessage::Scene {
            hash: settings.scene.0.clone(),
            zstd: settings.scene.1.clone(),
        };
        let client_prints = settings.console.client_prints();
        Self {
            client_scripts: ClientScripts::new(&world, &settings.game_id, &settings.bundles, None),
            next_shelf: None,
            scene_packet: packet_of(&settings.meshes, &scene).into(),
            scene_readers: Vec::new(),
            world,
            settings,
            sessions: Sessions::default(),
            player_sessions: PlayerSessions::default(),
            inbox,
            sockets,
            inputs: Vec::new(),
            metrics,
            started: Instant::now(),
            draining: false,
            closing: None,
            orphaned: false,
            arrivals: Vec::new(),
            empty_since_tick: 0,
            unstored: VecDeque::new(),
            saving: SavingNotice::default(),
            last_look: Look::default(),
            came_or_went: Vec::new(),
            presence_changed: false,
            updates: Updates::default(),
            pressure: 0,
            last_second: LastSecond::default(),
            client_logs: ClientLogs::default(),
            client_prints,
        }
    }

    /// Runs until the world must stop; returns why.
    pub fn run(mut self) -> String {
        let tick_hz = self.world.tick_hz();
        let step = Duration::from_secs(1) / tick_hz;
        let mut pressure = Pressure::new(tick_hz);
        let mut next = Instant::now() + step;
        loop {
            let now = Instant::now();
            if now < next {
                std::thread::sleep(next - now);
            } else if now - next > step * CATCH_UP_TICKS {
                let late = (now - next).as_micros() / step.as_micros().max(1);
                self.metrics.ticks_dropped.fetch_add(late as u64, Relaxed);
                next = now;
            }
            let began = Instant::now();
            let late = began.saturating_duration_since(next);
            next += step;
            self.metrics
                .ticks_late
                .fetch_add(u64::from(late > step / 2), Relaxed);
            let ended = self.tick(began);
            pressure.note(
                late.div_duration_f32(step),
                began.elapsed().div_duration_f32(step),
            );
            self.pressure = pressure.level();
            self.metrics.pressure.store(self.pressure, Relaxed);
            if self.orphaned {
                // As when the process is killed: there is no client left to notify.
                return "the server around this world has stopped".into();
            }
            if let Some(reason) = ended.or_else(|| self.reason_to_stop()) {
                self.begin_close(reason);
                // Sends the store requests that closing handlers made at once.
                self.ask_store();
            }
            if self.has_closed()
                && let Some(closing) = self.closing.take()
            {
                return self.stop(closing.reason);
            }
        }
    }

    /// One tick; a reason means that the world must stop. The last tick is as
    /// complete as the others: messages received in it are handled.
    fn tick(&mut self, began: Instant) -> Option<String> {
        let mut clock = StageClock::new(began);
        if self.closing.is_none() {
            // When closing, held messages are left to the next process: clients
            // send them again.
            self.take_held();
        }
        let reason = self.take_messages(began);
        self.read_sockets(began);
        let reads = clock.lap();
        if self.world.tick().is_multiple_of(self.world.tick_hz()) {
            self.world.set_wall_clock(unix_ms());
            self.metrics.note_world(self.world.figures());
        }
        let step = self.world.step();
        self.place_arrivals();
        let report = step.scripts;
        if self.closing.is_none() {
            self.judge_scripts(report.last_tick_us);
        }
        recording::record(&mut self.settings.recording, &mut self.world);
        clock.lap();
        if !self.settings.persistence.is_persistent() {
            // Operations that are never stored delay no answer.
            self.settings.persistence.hold(&mut self.world);
        }
        self.answer_stored();
        self.deliver_outbox();
        self.send_reconnected();
        // Including requests caused by the messages delivered in this tick.
        self.ask_store();
        self.persist();
        self.notice_saving(began);
        self.report_outside();
        self.write_logs(began);
        self.write_client_logs();
        self.send_scene();
        self.send_chunks();
        let updates = self.send_updates(began, &mut clock);
        self.tend_sessions(began);
        let tending = clock.lap();

        let metrics = &self.metrics;
        metrics
            .script_bytes
            .store(report.memory_bytes as u64, Relaxed);
        metrics.script_us.store(report.last_tick_us, Relaxed);
        metrics.tick.store(self.world.tick(), Relaxed);
        let times = StageTimes {
            tick: micros(began.elapsed()),
            reads,
            step: step.times,
            snapshots: updates.snapshots,
            writes: updates.writes + tending,
        };
        metrics.tick_took(times);
        self.last_second.note(&times, self.world.tick_hz());
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
                Ok(Inbound::Open {
                    encoding,
                    ticket,
                    carrier,
                    permit,
                }) => self.open(encoding, ticket, carrier, permit, now),
                Ok(Inbound::ClientInput {
                    connection_id,
                    input,
                }) => {
                    self.handle_input(connection_id, input);
                    self.sessions.settle(connection_id);
                }
                Ok(Inbound::Closed { connection_id }) => self.closed(connection_id, now),
                Ok(Inbound::Reload { request, answer }) => {
                    // The caller may have disconnected; the world has changed all
                    // the same.
                    let _ = answer.send(self.reload(&request));
                }
                Ok(Inbound::Outside { request, answer }) => self.answer_outside(request, answer),
                Ok(Inbound::Signed { hash, signature }) => self.signed(&hash, signature),
                Ok(Inbound::Store(answers)) => {
                    self.settings.store.note_answers(answers.len());
                    for answer in answers {
                        self.world.store_answer(answer);
                    }
                }
                Ok(Inbound::Persisted(stored)) => {
                    self.world.ops_persisted(stored.seq());
                    self.player_sessions.note_stored(stored.mark());
                }
                Ok(Inbound::Blocks { player_id, blocked }) => self.note_blocks(&player_id, blocked),
                Ok(Inbound::Expel { player_id, reason }) => self.expel(&player_id, &reason),
                Ok(Inbound::Drain) => self.draining = true,
                Ok(Inbound::Stop { reason }) => return Some(reason),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    self.orphaned = true;
                    break;
                }
            }
        }
        None
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
        let now_s = now.duration_since(self.started).as_secs_f64();
        let share = ReadingShare::new(Instant::now(), self.world.tick_hz(), READ_AT_ONCE);
        self.sockets.look();
        let mut inputs = std::mem::take(&mut self.inputs);
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
            let reading =
                connection.receive(ready.closed, moment, memory, &mut inputs, &self.metrics);
            let round_trip = connection.take_round_trip();
            if let Some((player, time)) = session.player.as_ref().zip(round_trip) {
                let ms = u16::try_from(time.as_millis()).unwrap_or(u16::MAX);
                self.world.note_round_trip(player.number, ms);
                self.metrics.round_trip_took(time);
            }
            messages += inputs.len();
            for input in inputs.drain(..) {
                self.handle_input(ready.connection_id, input);
            }
            self.sessions.settle(ready.connection_id);
            match reading {
                Reading::Drained => {}
                Reading::More => self.sockets.again(ready.connection_id),
                Reading::Gone => self.closed(ready.connection_id, now),
                Reading::Broken(code, cause, reason) => {
                    if let Some(session) = self.sessions.get_mut(ready.connection_id) {
                        session.kick_with(code, cause, &reason);
                    }
                }
            }
        }
        self.inputs = inputs;
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
                let (code, cause) = error.ending();
                session.kick_with(code, cause, &error.to_string());
            }
        }
    }

    /// A connection was closed; its player may reconnect.
    fn closed(&mut self, connection_id: ConnectionId, now: Instant) {
        let Some(session) = self.sessions.remove(connection_id) else {
            return;
        };
        if let Some(cause) = session.kicked() {
            self.metrics.kicked(cause);
        }
        if let Connection::WebSocket(connection) = session.connection {
            self.sockets.part(connection, session.permit, now);
        }
        let Some(player) = session.player else {
            return;
        };
        let away = Place::away(self.world.tick(), self.world.tick_hz());
        self.player_sessions.move_to(player.number, away);
        self.world.set_connected(player.number, false);
        self.came_or_went.push(player.number);
        self.note_players();
    }

    /// Removes a player from the world for good.
    fn part(&mut self, number: PlayerNumber) {
        if let Some(mut player_session) = self.player_sessions.remove(number) {
            self.persist_leaving(number, &mut player_session);
            self.settings
                .admission
                .spend(player_session.nonce, unix_s());
        }
        self.world.leave(number);
        self.note_players();
    }

    fn note_players(&mut self) {
        self.presence_changed = true;
        self.empty_since_tick = self.world.tick();
    }

    /// Once per tick, however many players joined and left in it.
    fn report_presence(&mut self) {
        if std::mem::take(&mut self.presence_changed) {
            self.metrics.set_presence(Presence {
                players: self.player_sessions.online(),
                away: self.player_sessions.away(),
                returned: self.settings.returning.returned().to_vec(),
            });
        }
    }

    fn deliver_outbox(&mut self) {
        for outgoing in self.world.take_outbox() {
            match outgoing.message {
                ServerMessage::TerraformApplied(applied) => self.send_terraformed(applied),
                message => self.deliver(outgoing.to, message, outgoing.reliable),
            }
        }
    }

    /// Notifies all players of disconnects and reconnects.
    fn send_reconnected(&mut self) {
        let changed = self.world.take_reconnected();
        if !changed.is_empty() {
            self.deliver(None, ServerMessage::Presence(changed), true);
        }
    }

    /// Sends a message to one player or to all. Reliable messages are stored until
    /// they are acknowledged, and for disconnected players until they reconnect.
    fn deliver(&mut self, to: Option<PlayerNumber>, message: ServerMessage, reliable: bool) {
        let message = Arc::new(message);
        // Encoded once for all binary clients.
        let packet: Arc<[u8]> = packet::single(&*message).into();
        let deaf = match &*message {
            ServerMessage::Chat { player_id, .. } => {
                social::deaf_to(&self.player_sessions, player_id)
            }
            _ => BTreeSet::new(),
        };
        let sessions = &mut self.sessions;
        let mut send = |player_session: &mut PlayerSession| {
            let session = player_session
                .connection_id()
                .and_then(|connection_id| sessions.get_mut(connection_id));
            let takes = |session: &Session| reliable || !session.is_behind();
            if !session.as_deref().map_or(reliable, takes) {
                return;
            }
            if !message.is_counted() {
                if let Some(session) = session {
                    session.send_packet_or(&packet, &message);
                }
                return;
            }
            let reliable = ReliableMessage {
                echo: player_session.answered(&message),
                message: message.clone(),
                packet: packet.clone(),
            };
            // A session that waits for its first snapshot gets the message after
            // it.
            let mut session = session.filter(|session| !session.awaits_snapshot());
            let number = player_session.log.sent().wrapping_add(1);
            match &mut session {
                Some(session) if session.encoding == Encoding::Binary => {
                    session.send_packet(&packet);
                }
                Some(session) => session.send_counted(&reliable, number),
                None => {}
            }
            player_session.log.push(reliable, packet.len());
            if session.is_some() {
                player_session.log.mark_all_written();
            }
        };
        match to {
            Some(number) if deaf.contains(&number) => None,
            Some(number) => self.player_sessions.get_mut(number).map(send),
            None => {
                let player_sessions = self.player_sessions.iter_mut();
                let hearing = player_sessions.filter(|(number, _)| !deaf.contains(number));
                hearing.for_each(|(_, player_session)| send(player_session));
                None
            }
        };
    }

    /// Sends what is queued, and disconnects clients that are lost or late.
    fn tend_sessions(&mut self, now: Instant) {
        let (tick, tick_hz) = (self.world.tick(), self.world.tick_hz());
        let patience = HANDSHAKE_S * tick_hz;
        let mut lost = Vec::new();
        let (mut queued_bytes, mut slow_readers) = (0, 0);
        let metrics = &self.metrics;
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
                slow_readers += u32::from(session.is_slow());
                if session.is_over() {
                    lost.push(connection_id);
                }
            });
        self.metrics.queued_bytes.store(queued_bytes, Relaxed);
        self.metrics.slow_readers.store(slow_readers, Relaxed);
        for connection_id in lost {
            self.closed(connection_id, now);
        }
        self.sockets.tend_farewells(now, &self.metrics);
        self.renew_tokens();
        let mut overdue = Vec::new();
        if self.closing.is_none() {
            self.player_sessions.overdue(tick, &mut overdue);
        }
        for number in overdue {
            self.part(number);
        }
        self.report_presence();
    }

    fn reason_to_stop(&self) -> Option<String> {
        // No player is connected, and none may reconnect.
        if self.player_sessions.taken() > 0 || self.closing.is_some() {
            return None;
        }
        if self.draining {
            return Some("drained".into());
        }
        let empty_ticks = self.world.tick().saturating_sub(self.empty_since_tick);
        let idle_stop_s = self.settings.idle_stop_s?;
        (empty_ticks > idle_stop_s.saturating_mul(self.world.tick_hz()))
            .then(|| format!("no player for {idle_stop_s} s"))
    }

    fn server_time_ms(&self) -> f64 {
        self.started.elapsed().as_secs_f64() * 1000.0
    }
}
