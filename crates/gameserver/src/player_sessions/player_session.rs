//! One player's session: which messages were sent and received, across
//! connections and across processes of the world.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use frolic_fleet_api::persist::SavedPlayer;
use frolic_protocol::message::Resumption;
use frolic_protocol::packet;
use frolic_protocol::resume::{COUNT_MAX, PersistedCall, PersistedLog, PersistedPacket, SentLog};
use frolic_protocol::{ClientMessage, ServerMessage};
use frolic_scene::SceneEntity;

use super::calls::{Calls, Label};
use super::progress::{Cut, Progress};
use crate::admission::{Admission, Identity, new_nonce};
use crate::connection::ConnectionId;
use crate::flood::BURST;
use crate::session::ReliableMessage;

/// A lost connection can be resumed for this long.
const RESUME_S: u32 = 60;
/// Events and calls of one player that are handled in one tick. The rest wait for
/// the next ticks.
const TAKEN_PER_TICK: u32 = 30;
/// Events and calls of one player that may wait: all that a connection may deliver
/// at once after a stall. More are a flood, and are dropped earlier.
const HELD_MAX: usize = BURST as usize;

/// By how many messages a client may be ahead of what an earlier process persisted:
/// a server sends fewer in a second or two.
const AHEAD_MAX: u32 = 64 * 1024;

/// Bytes of overhead per message or call in a checkpoint.
const OVERHEAD_BYTES: usize = 16;
/// Divisor: the fraction of a player's checkpoint that open calls may take.
const CALLS_SHARE: usize = 4;
/// The answer to a call that an earlier process of the world accepted.
const NEVER_ANSWERED: &str = "the server was restarted before it answered; call again";

/// The session of one player.
pub struct PlayerSession {
    /// The player's identity.
    pub identity: Identity,
    /// Identifies the current connection in its resume tokens; not guessable.
    pub nonce: String,
    /// The nonce of the previous connection.
    pub last_nonce: String,
    /// Identifies the session while its counts continue, across connections and
    /// processes.
    pub session: String,
    /// How the current connection came about, while nothing was received on it: its
    /// welcome may be lost, and the next token with it. Until then the last token
    /// is accepted.
    pub unconfirmed: Option<Resumption>,
    /// Their connection, or until which tick they may reconnect.
    pub place: Place,
    /// Reliable messages to the player.
    pub log: SentLog<ReliableMessage>,
    /// The player's calls.
    pub calls: Calls,
    /// Whether the client acknowledges reliable messages through snapshots, as JSON
    /// clients do that do not count them.
    pub confirms: bool,
    /// How many reliable messages were received from the player.
    pub received: u32,
    /// How far the session is persisted.
    pub progress: Progress,
    /// Whether the client reports how many messages it has.
    pub counts: bool,
    /// Persistent ids of players whose chat is hidden from this player, and vice
    /// versa.
    pub blocked: BTreeSet<String>,
    pub(super) held: VecDeque<Held>,
    /// Messages that were handled in this tick.
    pub(super) taken: u32,
}

/// Where a player is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Connected.
    Online(ConnectionId),
    /// Not connected, and removed for good at this tick.
    Away {
        /// When the time to reconnect is over.
        until_tick: u32,
    },
}

impl Place {
    /// The place of a player whose connection was lost at this tick.
    pub fn away(tick: u32, tick_hz: u32) -> Self {
        let until_tick = tick.saturating_add(RESUME_S * tick_hz);
        Place::Away { until_tick }
    }
}

/// A message that waits for a later tick.
pub struct Held {
    /// The connection that it arrived on. Its answer goes there or nowhere: on
    /// another connection the same number means another command.
    pub connection_id: ConnectionId,
    /// Its number among the reliable messages; none if its count was reset.
    pub number: Option<u32>,
    /// Number of its command.
    pub seq: Option<u32>,
    /// The message.
    pub message: ClientMessage,
}

/// What to do with an event or a call.
pub enum Turn {
    /// Handle it now.
    Now(ClientMessage),
    /// Handle it in a later tick.
    Later,
    /// Refuse it: too many wait.
    Never,
}

impl PlayerSession {
    /// A new session of a player on this connection.
    pub fn new(identity: Identity, nonce: String, connection_id: ConnectionId) -> Self {
        Self {
            identity,
            nonce,
            last_nonce: String::new(),
            session: new_nonce(),
            unconfirmed: None,
            place: Place::Online(connection_id),
            log: SentLog::default(),
            calls: Calls::default(),
            confirms: false,
            received: 0,
            progress: Progress::default(),
            counts: false,
            blocked: BTreeSet::new(),
            held: VecDeque::new(),
            taken: 0,
        }
    }

    /// Their connection, if there is one.
    pub fn connection_id(&self) -> Option<ConnectionId> {
        match self.place {
            Place::Online(connection_id) => Some(connection_id),
            Place::Away { .. } => None,
        }
    }

    /// A token to resume the session with, issued at this time.
    pub fn token(&self, admission: &Admission, now_unix_s: u64) -> String {
        admission.token(&self.identity, &self.nonce, &self.session, now_unix_s)
    }

    /// Continues with what an earlier process of the world persisted, in the
    /// session of that name; without a name, in a session unknown to the client,
    /// and only with the messages still to send. The session may be newer than the
    /// checkpoint: then its counts are unknown, and everything that is sent again
    /// comes first.
    pub fn inherit(&mut self, saved: SavedPlayer, session: Option<String>) {
        let of_scene = |id: u32| id <= SceneEntity::ID_MAX;
        let persisted = PersistedLog::from_bytes(&saved.undelivered, &of_scene);
        if persisted.is_none() && !saved.undelivered.is_empty() {
            let player = saved.player_id;
            tracing::warn!(player, "the persisted messages cannot be decoded");
        }
        let persisted = persisted.unwrap_or_default();
        self.log = SentLog::restored(persisted.base);
        for persisted in persisted.messages {
            let echo = persisted
                .echo
                .and_then(|echo| serde_json::from_str(&echo).ok());
            self.log_message(persisted.message, echo);
        }
        self.log.note_written(persisted.written);
        let is_same = session.as_ref() == Some(&saved.session);
        let mut stored = 0;
        match session {
            Some(_) if is_same => {
                self.session = saved.session;
                self.confirms = persisted.confirms;
                self.received = saved.received;
                stored = saved.received;
                persisted
                    .calls
                    .into_iter()
                    .for_each(|call| self.calls.inherit(call));
            }
            Some(newer) => {
                self.log.restart(true);
                self.session = newer;
            }
            None => self.unconfirmed = Some(Resumption::New),
        }
        self.progress = Progress::inherited(stored, self.cut());
    }

    fn log_message(&mut self, message: ServerMessage, echo: Option<Label>) {
        let packet = packet::single(&message);
        let bytes = packet.len();
        let reliable = ReliableMessage {
            message: Arc::new(message),
            packet: packet.into(),
            echo,
        };
        self.log.push(reliable, bytes);
    }

    /// A connection begins for a client that reports `received` messages, if it
    /// reports any. Returns how the session continues, and the number before the
    /// next message. A client that has lost its counts starts over with the same
    /// character. `page` marks a client of ours, which acknowledges every second:
    /// what the last page did not acknowledge may never have arrived.
    pub fn go_on(
        &mut self,
        asked: Resumption,
        received: Option<u32>,
        page: bool,
    ) -> (Resumption, u32) {
        let unconfirmed = self.unconfirmed.take();
        let (resumption, sent) = match (asked, received) {
            // A new page of the same player: the last one was closed.
            (Resumption::New, _) => {
                self.restart_counts(page || self.confirms || unconfirmed.is_some());
                (asked, 0)
            }
            (Resumption::Restarted, Some(received))
                if received.saturating_sub(self.log.sent()) <= AHEAD_MAX
                    && received <= COUNT_MAX =>
            {
                (asked, self.log.take_up(received))
            }
            // The client has not seen the count that was restarted.
            (Resumption::Resumed, Some(received)) if unconfirmed != Some(Resumption::New) => {
                (asked, self.log.rewind(received))
            }
            // A third-party client may count what it sends, and not what it
            // receives.
            (Resumption::Restarted, None) if !page => {
                self.renumber(self.confirms);
                (asked, 0)
            }
            (_, None) if self.confirms => (asked, self.log.rewind(0)),
            (Resumption::Resumed | Resumption::Restarted, _) => {
                self.restart_counts(page || unconfirmed.is_some());
                (Resumption::New, 0)
            }
        };
        // After everything the client has received, however much more that is than
        // was persisted.
        while let Some(id) = self.calls.next_lost() {
            let answer = ServerMessage::InvokeResult {
                id,
                result: Err(NEVER_ANSWERED.to_owned()),
            };
            let label = self.answered(&answer);
            self.log_message(answer, label);
        }
        self.unconfirmed = Some(resumption);
        self.counts |= page || received.is_some();
        (resumption, sent)
    }

    /// A message was received: the welcome has arrived, and the last token is void.
    pub fn note_received(&mut self) {
        self.unconfirmed = None;
    }

    /// Counts a reliable message from the player; returns its number.
    pub fn count_received(&mut self) -> u32 {
        self.received = self.received.wrapping_add(1);
        self.received
    }

    /// The client has `received` messages. Returns how many of its own it may
    /// discard: with `persists`, only those that are persisted as handled.
    pub fn acknowledge(&mut self, received: u32, persists: bool) -> u32 {
        self.log.confirm(received);
        self.counts |= received > 0;
        if persists {
            self.progress.stored()
        } else {
            self.received
        }
    }

    /// How the session continues on another connection. A player who was brought
    /// over from another process and has not sent anything since is still
    /// restarted.
    pub fn resumption(&self) -> Resumption {
        match self.unconfirmed {
            Some(Resumption::Restarted) => Resumption::Restarted,
            _ => Resumption::Resumed,
        }
    }

    /// The client has every message up to `sent`: it has acknowledged a snapshot
    /// that was sent behind it on an ordered connection.
    pub fn confirm(&mut self, sent: u32) {
        self.log.confirm(sent);
        self.confirms = true;
    }

    /// Restarts both counts, for a client that knows neither. Messages that were
    /// never sent are retained for it, and with `retain_written` all unacknowledged
    /// ones.
    fn restart_counts(&mut self, retain_written: bool) {
        self.calls.forget();
        self.renumber(retain_written);
        self.confirms = false;
        self.received = 0;
        self.progress.restart_received();
        // Waiting messages belong to the previous count.
        for held in &mut self.held {
            held.number = None;
        }
    }

    /// Numbers messages to the client from zero, in a session of another name:
    /// within one session, a greater number is later.
    fn renumber(&mut self, retain_written: bool) {
        let smaller = self.log.restart(retain_written);
        self.session = new_nonce();
        self.calls.renumber(smaller);
        self.progress.rename(smaller, self.log.sent());
    }

    /// The current moment.
    pub fn cut(&self) -> Cut {
        Cut {
            received: self.handled(),
            sent: self.log.sent(),
        }
    }

    /// Reliable messages that were handled or refused, up to the first that waits.
    pub fn handled(&self) -> u32 {
        let first = self.held.iter().find_map(|held| held.number);
        first.map_or(self.received, |number| number.saturating_sub(1))
    }

    /// Whether messages for a disconnected player were queued that are not
    /// persisted.
    pub fn is_away_with_undelivered(&self) -> bool {
        self.connection_id().is_none() && self.progress.persisted().sent != self.log.sent()
    }

    /// The label of the call that the next message answers, if it has one.
    pub fn answered(&mut self, message: &ServerMessage) -> Option<Label> {
        let ServerMessage::InvokeResult { id, .. } = message else {
            return None;
        };
        let number = self.log.sent().wrapping_add(1);
        self.calls.answered(*id, number)
    }

    /// A checkpoint of this moment was put on the queue of that mark.
    pub fn note_persisted(&mut self, cut: Cut, mark: u64) {
        self.progress.note_persisted(cut, mark);
        self.calls.note_persisted(cut);
    }

    /// The unacknowledged messages and unanswered calls at a moment, in at most
    /// `bytes_max` bytes, for [`inherit`](Self::inherit).
    pub fn undelivered(&self, at: Cut, bytes_max: usize) -> Vec<u8> {
        let calls = self.calls.open_calls(at, bytes_max / CALLS_SHARE);
        let of_calls: usize = calls.iter().map(PersistedCall::bytes).sum();
        // A client that neither acknowledges nor counts is assumed to have what was
        // sent.
        let after = match self.confirms || self.counts {
            true => 0,
            false => self.log.written(),
        };
        let range = (after, at.sent);
        let log = PersistedLog::of(&self.log, range, bytes_max - of_calls, |reliable| {
            PersistedPacket {
                packet: &reliable.packet,
                echo: reliable.echo.as_ref().map(|echo| echo.to_string()),
            }
        });
        let confirms = self.confirms;
        PersistedLog {
            confirms,
            calls,
            ..log
        }
        .to_bytes()
    }

    /// Only the unanswered calls at a moment, in the same form.
    pub fn open_calls(&self, at: Cut, bytes_max: usize) -> Vec<u8> {
        let log: PersistedLog<PersistedPacket<'_>> = PersistedLog {
            calls: self.calls.open_calls(at, bytes_max),
            ..PersistedLog::default()
        };
        log.to_bytes()
    }

    /// The approximate size of that, in bytes.
    pub fn left_bytes(&self) -> usize {
        let (messages, bytes) = self.log.size();
        bytes + (messages + self.calls.len()) * OVERHEAD_BYTES
    }

    pub(super) fn take_turn(&mut self, held: Held) -> Turn {
        if self.held.is_empty() && self.taken < TAKEN_PER_TICK {
            self.taken += 1;
            return Turn::Now(held.message);
        }
        if self.held.len() >= HELD_MAX {
            return Turn::Never;
        }
        self.held.push_back(held);
        Turn::Later
    }

    /// In a new tick: the next waiting message, until this tick's quota is used.
    pub fn next_held(&mut self) -> Option<Held> {
        if self.taken >= TAKEN_PER_TICK {
            return None;
        }
        let held = self.held.pop_front()?;
        self.taken += 1;
        Some(held)
    }
}

#[cfg(test)]
mod tests;
