//! One connection in the world's thread: its player, its view of the world, and
//! what is queued for it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use frolic_protocol::json;
use frolic_protocol::packet::{self, DATAGRAM_BYTES_MAX};
use frolic_protocol::resume::SentLog;
use frolic_protocol::{ServerMessage, Welcome};
use frolic_world::{ClientView, Delivery, JsonView, PlayerNumber, TerrainView, World};

use crate::connection::{CloseCode, Connection, ConnectionPermit};
use crate::decoder::Encoding;
use crate::metrics::{KickCause, Metrics};
use crate::pace::Pace;

/// Messages are gathered into packets of about this size; a proxy on the way may
/// not accept larger ones.
const PACKET_BYTES: usize = 256 * 1024;
/// Capacity that an empty packet may retain.
const PACKET_CAPACITY_MAX: usize = 64 * 1024;
/// The reason for a client that does not read.
const TOO_SLOW: &str =
    "you read too slowly: what was sent to you piled up; check your connection and join again";
/// Limit of messages that wait for a client's first snapshot, which is made in the
/// tick that admits the client, unless the client reads nothing at all.
const AFTER_SNAPSHOT_MAX: usize = 1024;
/// Snapshots whose acknowledgement is understood: as many as a JSON client's view
/// remembers.
const SNAPSHOTS_REMEMBERED: usize = 60;
/// How long a disconnected client has to read what was sent before, where its close
/// reason is queued behind that.
const FAREWELL: Duration = Duration::from_secs(2);
/// With this much queued, nothing large is added.
const CLOGGED_BYTES: usize = 2 * 1024 * 1024;

/// A connection, with or without a player yet.
pub struct Session {
    /// Its encoding.
    pub encoding: Encoding,
    /// Ticket from the URL.
    pub ticket: Option<String>,
    /// Tick at which it connected.
    pub opened_tick: u32,
    /// Set by a successful handshake.
    pub player: Option<SessionPlayer>,
    /// Its permit.
    pub permit: ConnectionPermit,
    /// Its outgoing side.
    pub connection: Connection,
    /// Binary messages of this tick, sent as one packet.
    packet: Vec<u8>,
    /// The losable ones of them, where the connection is lossy: for a datagram.
    loose: Vec<u8>,
    /// Messages to a JSON client that wait for its first snapshot.
    after_snapshot: Vec<String>,
    pace: Pace,
    kicked: Option<Kicked>,
}

/// A connection that is being closed.
struct Kicked {
    cause: KickCause,
    reason: String,
    /// When it was first seen to be still open.
    since: Option<Instant>,
}

/// State of a session once its player is admitted.
pub struct SessionPlayer {
    /// Their number in the world.
    pub number: PlayerNumber,
    /// The client's view of the world.
    pub view: View,
    /// The client's view of the terrain.
    pub terrain: TerrainView,
    /// Scripts that the client has verified.
    pub verified: BTreeSet<String>,
    /// How many scripts of the manifest the client was asked to run.
    pub executed: usize,
    /// Whether the client reported a script that failed verification.
    pub verify_failed: bool,
    /// Inputs that found the queue full; decays.
    pub refused_inputs: usize,
    /// Whether any message was received since the welcome, which proves that the
    /// welcome has arrived.
    pub has_received: bool,
    /// Which reliable messages a JSON client has received.
    pub counted: Counted,
    /// The client's last connection report.
    pub reported: Reported,
    /// How much of the requested scene was sent.
    pub scene: Option<AskedScene>,
}

/// A scene that is being sent to a client that asked for it.
#[derive(Clone, Copy)]
pub struct AskedScene {
    /// When the client asked.
    pub tick: u32,
    /// How many of its texts were sent.
    pub sent: usize,
}

/// A client's last connection report.
#[derive(Clone, Copy, Default)]
pub struct Reported {
    /// When it arrived.
    pub tick: u32,
    /// Total corrections at that time.
    pub corrections: u32,
}

/// A reliable message on its way to one client.
pub struct ReliableMessage {
    /// Shared by all its receivers.
    pub message: Arc<ServerMessage>,
    /// Its binary form.
    pub packet: Arc<[u8]>,
    /// The value from the client's request that the message repeats.
    pub echo: Option<Box<serde_json::Value>>,
}

/// Which reliable messages went out before which snapshot: a client that has the
/// snapshot has them as well, because a WebSocket preserves the order.
#[derive(Default)]
pub struct Counted {
    /// Number of the newest reliable message.
    newest: u32,
    /// What it was at the ticks of the last snapshots.
    at_ticks: VecDeque<(u32, u32)>,
}

impl Counted {
    fn note_snapshot(&mut self, tick: u32) {
        if self.at_ticks.len() == SNAPSHOTS_REMEMBERED {
            self.at_ticks.pop_front();
        }
        self.at_ticks.push_back((tick, self.newest));
    }

    /// The newest reliable message before a snapshot, if that is remembered.
    pub fn before(&mut self, tick: u32) -> Option<u32> {
        let place = self.at_ticks.iter().position(|(at, _)| *at == tick)?;
        let (_, newest) = self.at_ticks.drain(..=place).next_back()?;
        Some(newest)
    }
}

/// A client's view of the world, in its encoding.
pub enum View {
    /// Delta snapshots of cells.
    Binary(ClientView),
    /// Complete sets.
    Json(JsonView),
}

impl SessionPlayer {
    /// A player who was just admitted. Third-party clients ask for the scene if they
    /// want to draw it. They have no terrain generator either, so they ask for the
    /// chunks they want.
    pub fn new(number: PlayerNumber, encoding: Encoding, delivery: Delivery) -> Self {
        let (view, terrain) = match encoding {
            Encoding::Json => (
                View::Json(JsonView::new(number)),
                TerrainView::asking(number),
            ),
            Encoding::Binary => (
                View::Binary(ClientView::new(number, delivery)),
                TerrainView::new(number),
            ),
        };
        Self {
            number,
            view,
            terrain,
            verified: BTreeSet::new(),
            executed: 0,
            verify_failed: false,
            refused_inputs: 0,
            has_received: false,
            counted: Counted::default(),
            reported: Reported::default(),
            scene: None,
        }
    }

    /// Touches the memory that the next update begins with; see the caller.
    pub fn glance(&self) -> u32 {
        match &self.view {
            View::Binary(view) => view.glance(),
            View::Json(_) => 0,
        }
    }

    /// Whether the client has not been sent any snapshot yet.
    pub fn is_new(&self) -> bool {
        match &self.view {
            View::Binary(view) => view.is_new(),
            View::Json(view) => view.is_new(),
        }
    }
}

impl Session {
    /// A connection that has not sent anything.
    pub fn new(
        encoding: Encoding,
        ticket: Option<String>,
        connection: Connection,
        permit: ConnectionPermit,
        tick: u32,
        now: Instant,
    ) -> Self {
        Self {
            encoding,
            ticket,
            opened_tick: tick,
            player: None,
            permit,
            connection,
            packet: Vec::new(),
            loose: Vec::new(),
            after_snapshot: Vec::new(),
            pace: Pace::new(now),
            kicked: None,
        }
    }

    /// Whether the connection is closed, by us or by the client.
    pub fn is_over(&self) -> bool {
        self.connection.is_over()
    }

    /// Why it is being closed; its messages are ignored from then on.
    pub fn kicked(&self) -> Option<KickCause> {
        self.kicked.as_ref().map(|kicked| kicked.cause)
    }

    /// Whether the update that is due now should be made: not for a client that has
    /// not accepted the last ones. Call it once per update and before the update is
    /// made, because an update that was made must also be sent.
    pub fn takes_update(&mut self, now: Instant) -> bool {
        self.pace.takes_update(self.connection.is_behind(), now)
    }

    /// Whether the client has not accepted what was sent before.
    pub fn is_behind(&self) -> bool {
        self.connection.is_behind()
    }

    /// Whether the client gets fewer updates than it should.
    pub fn is_slow(&self) -> bool {
        self.pace.is_slow()
    }

    /// Whether something waits to be sent, or for the close, or for a handshake:
    /// the session must be checked in every tick.
    pub fn is_restless(&self) -> bool {
        let gathered = !self.packet.is_empty() || !self.loose.is_empty();
        let waits = gathered || self.connection.is_restless();
        let ends = self.is_over() || self.kicked.is_some();
        waits || self.player.is_none() || ends || self.is_slow()
    }

    /// Whether so much is queued that nothing large may be added.
    pub fn is_clogged(&self) -> bool {
        let held_back: usize = self.after_snapshot.iter().map(String::len).sum();
        self.connection.waiting_bytes() + self.packet.len() + held_back > CLOGGED_BYTES
    }

    /// Queues a text: the full snapshot follows the welcome directly, so all other
    /// messages wait for it.
    fn text(&mut self, text: String) {
        if !self.awaits_snapshot() {
            self.connection.text(&text);
        } else if self.after_snapshot.len() < AFTER_SNAPSHOT_MAX {
            self.after_snapshot.push(text);
        } else {
            self.kick_with(CloseCode::Policy, KickCause::SlowReader, TOO_SLOW);
        }
    }

    fn release_texts(&mut self) {
        for text in std::mem::take(&mut self.after_snapshot) {
            self.connection.text(&text);
        }
    }

    /// Admits a player on this connection and sends the welcome. For a JSON client,
    /// all further messages wait for its first snapshot.
    pub fn welcome(&mut self, player: SessionPlayer, welcome: Welcome) {
        self.send(&ServerMessage::Welcome(Box::new(welcome)));
        self.player = Some(player);
    }

    /// Queues a message; binary ones are sent together at the end of the tick.
    pub fn send(&mut self, message: &ServerMessage) {
        match self.encoding {
            Encoding::Binary if self.may_lose(message) => {
                self.send_loose(&packet::single(message));
            }
            Encoding::Binary => packet::write(&mut self.packet, message),
            Encoding::Json => {
                if let Some(text) = json::encode(message) {
                    self.text(text);
                }
            }
        }
    }

    /// Whether a message bypasses the stream, which may be blocked by a loss, and
    /// may be lost itself.
    fn may_lose(&self, message: &ServerMessage) -> bool {
        message.is_unreliable() && self.connection.delivery() == Delivery::Lossy
    }

    /// Queues a losable packet, unless it is too large for a datagram: fragmented
    /// it would be lost more often than its sender expects.
    fn send_loose(&mut self, packet: &[u8]) {
        if packet.len() > DATAGRAM_BYTES_MAX {
            self.send_packet(packet);
            return;
        }
        if self.loose.len() + packet.len() > DATAGRAM_BYTES_MAX {
            self.finish_loose();
        }
        self.loose.extend_from_slice(packet);
    }

    fn finish_loose(&mut self) {
        if !self.loose.is_empty() {
            self.connection.loose(std::mem::take(&mut self.loose));
        }
    }

    /// Queues an answer that repeats a value of the request.
    pub fn send_echoing(&mut self, message: &ServerMessage, echo: Option<&serde_json::Value>) {
        let Some(echo) = echo.filter(|_| self.encoding == Encoding::Json) else {
            self.send(message);
            return;
        };
        if let Some(text) = json::encode_echoing(message, echo) {
            self.text(text);
        }
    }

    /// Queues a message without waiting for the first snapshot.
    fn send_now(&mut self, message: &ServerMessage) {
        match self.encoding {
            Encoding::Binary => packet::write(&mut self.packet, message),
            Encoding::Json => {
                if let Some(text) = json::encode(message) {
                    self.connection.text(&text);
                }
            }
        }
    }

    /// Queues a reliable message with its number: the number is sent to JSON
    /// clients, binary clients count themselves.
    pub fn send_counted(&mut self, reliable: &ReliableMessage, number: u32) {
        if let Some(player) = &mut self.player {
            player.counted.newest = number;
        }
        match self.encoding {
            Encoding::Binary => packet::write(&mut self.packet, &*reliable.message),
            Encoding::Json => {
                let echo = reliable.echo.as_deref();
                if let Some(text) = json::encode_counted(&reliable.message, number, echo) {
                    self.text(text);
                }
            }
        }
    }

    /// Queues every reliable message that was not sent on this connection.
    pub fn send_unwritten(&mut self, log: &mut SentLog<ReliableMessage>) {
        while let Some((number, reliable)) = log.next_unwritten() {
            self.send_counted(reliable, number);
        }
    }

    /// Queues a text that was encoded before.
    pub fn send_text(&mut self, text: &str) {
        self.connection.text(text);
    }

    /// Whether it is a JSON client without a snapshot yet: it gets one directly
    /// after the welcome.
    pub fn awaits_snapshot(&self) -> bool {
        let player = self.player.as_ref();
        self.encoding == Encoding::Json && player.is_some_and(SessionPlayer::is_new)
    }

    /// Queues a message whose packet was encoded before.
    pub fn send_packet_or(&mut self, packet: &[u8], message: &ServerMessage) {
        match self.encoding {
            Encoding::Binary if self.may_lose(message) => self.send_loose(packet),
            Encoding::Binary => self.send_packet(packet),
            Encoding::Json => self.send(message),
        }
    }

    /// Queues a packet that was encoded before; JSON clients do not get it.
    pub fn send_packet(&mut self, packet: &[u8]) {
        if self.packet.len() + packet.len() > PACKET_BYTES {
            self.finish_packet();
        }
        self.packet.extend_from_slice(packet);
    }

    /// Makes the player's next snapshot and queues it: in the packet with
    /// everything else where packets arrive in order, on its own where it may be
    /// lost.
    pub fn send_snapshot(&mut self, world: &mut World, pressure: u8) {
        let Some(player) = &mut self.player else {
            return;
        };
        let lossy = self.connection.delivery() == Delivery::Lossy;
        match &mut player.view {
            View::Json(view) => {
                // An appearance is sent before anything that refers to it; the
                // protocol requires the first snapshot directly after the welcome.
                let awaits = view.is_new();
                let (connection, later) = (&mut self.connection, &mut self.after_snapshot);
                view.introduce(world, &mut |message| match json::encode(message) {
                    Some(text) if awaits => later.push(text),
                    Some(text) => connection.text(&text),
                    None => {}
                });
                if let Some(text) = world.json_snapshot(view) {
                    self.connection.text(&text);
                    player.counted.note_snapshot(world.tick());
                }
            }
            View::Binary(view) => {
                let packet = &mut self.packet;
                view.introduce(world, &mut |message| packet::write(packet, message));
                if lossy && !self.packet.is_empty() {
                    // Before the snapshot, on the reliable stream.
                    self.connection.reliable(&self.packet);
                    self.packet.clear();
                }
                let (connection, packet) = (&mut self.connection, &mut self.packet);
                world.snapshot(view, pressure, &mut |bytes| {
                    packet::write_snapshot(packet, bytes);
                    if lossy {
                        connection.snapshot(std::mem::take(packet));
                    }
                });
            }
        }
        if !self.awaits_snapshot() {
            self.release_texts();
        }
    }

    /// Swaps the buffer that messages are gathered in, if it is empty.
    pub fn exchange_packet(&mut self, other: &mut Vec<u8>) {
        if self.packet.is_empty() {
            std::mem::swap(&mut self.packet, other);
        }
    }

    /// Acknowledges or refuses a JSON command.
    pub fn answer(&mut self, seq: Option<u32>, outcome: Result<(), (&str, String)>) {
        let text = match (seq, outcome) {
            (Some(seq), Ok(())) => json::ack(seq),
            (seq, Err((code, message))) if self.encoding == Encoding::Json => {
                json::error(seq, code, &message)
            }
            (_, Err((code, message))) => {
                self.send(&ServerMessage::Error {
                    code: code.to_owned(),
                    message,
                });
                return;
            }
            (None, Ok(())) => return,
        };
        self.text(text);
    }

    /// Sends the reason and closes the connection.
    pub fn kick(&mut self, cause: KickCause, reason: &str) {
        self.kick_with(CloseCode::Normal, cause, reason);
    }

    /// Sends the reason and closes the connection with a WebSocket close code.
    pub fn kick_with(&mut self, code: CloseCode, cause: KickCause, reason: &str) {
        if self.kicked.is_some() {
            return;
        }
        self.kicked = Some(Kicked {
            cause,
            reason: reason.to_owned(),
            since: None,
        });
        // There will be no snapshot to wait for.
        self.release_texts();
        self.loose.clear();
        self.send_now(&ServerMessage::Kick {
            reason: reason.to_owned(),
        });
        self.finish_packet();
        self.connection.close(code, reason);
    }

    /// Queues the gathered messages as one packet.
    pub fn finish_packet(&mut self) {
        if !self.packet.is_empty() {
            self.connection.reliable(&self.packet);
            self.packet.clear();
            self.packet.shrink_to(PACKET_CAPACITY_MAX);
        }
    }

    /// Sends what is queued, and gives up on a client that reads nothing. Never
    /// blocks.
    pub fn flush(&mut self, now: Instant, metrics: &Metrics) {
        self.finish_packet();
        self.finish_loose();
        self.connection.flush(now, metrics);
        if self.kicked.is_none() && self.connection.is_stuck(now) {
            let player = self.player.as_ref().map(|player| player.number);
            let waiting_bytes = self.connection.waiting_bytes();
            tracing::warn!(
                player,
                waiting_bytes,
                "a client reads too slowly and is disconnected"
            );
            self.connection.abandon(TOO_SLOW);
            self.kick_with(CloseCode::Policy, KickCause::SlowReader, TOO_SLOW);
            self.connection.flush(now, metrics);
        }
        self.hurry_out(now);
    }

    /// Closes a connection ahead of everything queued, if its client was asked to
    /// leave and has not read that for too long: a kicked client must not be able
    /// to stay by reading slowly.
    fn hurry_out(&mut self, now: Instant) {
        if let Some(kicked) = &mut self.kicked {
            let since = *kicked.since.get_or_insert(now);
            if now.saturating_duration_since(since) > FAREWELL {
                self.connection.abandon(&kicked.reason);
            }
        }
    }
}

#[cfg(test)]
mod tests;
