//! One player's place: what was said and heard, on however many connections and
//! in however many processes of the world.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use frolic_package::SceneEntity;
use frolic_protocol::keep::SavedPlayer;
use frolic_protocol::message::Resumption;
use frolic_protocol::packet;
use frolic_protocol::resume::{COUNT_MAX, KeptCall, KeptLog, KeptPacket, SentLog};
use frolic_protocol::{ClientMessage, ServerMessage};

use super::calls::{Calls, Label};
use crate::admission::{Identity, new_nonce};
use crate::flood::BURST;
use crate::link::ConnectionId;
use crate::session::Told;

/// A lost connection can be resumed for this long.
const RESUME_S: u32 = 60;
/// Events and calls of one player that are handled in one tick; scripts hear
/// of no more. The rest waits its turn.
const TAKEN_PER_TICK: u32 = 30;
/// Events and calls of one player that may wait: all that a line may bring at
/// once after it has stalled. More are a flood, and are dropped before.
const HELD_MAX: usize = BURST as usize;

/// Messages that a client may have heard of an earlier process which that had
/// not kept any more: it sends fewer in a second or two.
const AHEAD_MAX: u32 = 64 * 1024;

/// Bytes of a message or a call that are not its own, in a checkpoint.
const KEPT_BYTES: usize = 16;
/// The part of what is kept for one player that open calls may take.
const CALLS_SHARE: usize = 4;
/// The answer to a call that an earlier process of the world has taken.
const NEVER_ANSWERED: &str = "the server was restarted before it answered; call again";

/// A moment of a session, by the counts of both sides: what is stored of it must
/// be of one moment. Who says something again is answered again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// How many messages that count of theirs had been handled.
    pub received: u32,
    /// Number of the newest one to them.
    pub sent: u32,
}

impl Cut {
    /// The later one.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            received: self.received.max(other.received),
            sent: self.sent.max(other.sent),
        }
    }
}

/// A player's place.
pub struct Seat {
    /// Who they are.
    pub identity: Identity,
    /// Names the present connection in its resume tokens; nobody can guess it.
    pub nonce: String,
    /// What that was on the connection before.
    pub last_nonce: String,
    /// Names the session as long as its counts go on, on whatever connection
    /// and in whatever process.
    pub session: String,
    /// How the present connection came about, as long as nothing was heard on
    /// it: its welcome may be lost, and the next token with it. Until then the
    /// last token brings them back.
    pub unheard: Option<Resumption>,
    /// Their connection, or until which tick they may come back.
    pub place: Place,
    /// Messages that count, to them.
    pub log: SentLog<Told>,
    /// What they have called.
    pub calls: Calls,
    /// Whether they confirm with snapshots what they have, as JSON clients do
    /// that count nothing themselves.
    pub confirms: bool,
    /// How many messages that count have come from them.
    pub received: u32,
    /// What the player was last kept with, and the mark of the queue that this
    /// went to.
    pub kept: Cut,
    /// See [`kept`](Self::kept).
    pub kept_mark: u64,
    /// The mark of the first queue that has the session by this name; none as long
    /// as it has been put on no queue.
    pub named_mark: Option<u64>,
    /// How many are known to be stored as handled. A client that hears of it
    /// forgets them.
    pub stored_received: u32,
    /// The last look of all players.
    pub seen: Cut,
    /// How many had been handled when scripts last wrote to the store.
    pub store_received: u32,
    /// Whether they say how many messages they have.
    pub counts: bool,
    /// Lasting ids of those whose chat is kept from them, and theirs from those.
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
    /// Not connected, and gone for good at this tick.
    Away {
        /// When their time to come back is over.
        until_tick: u32,
    },
}

impl Place {
    /// Where somebody is whose connection was lost at this tick.
    pub fn away(tick: u32, tick_hz: u32) -> Self {
        let until_tick = tick.saturating_add(RESUME_S * tick_hz);
        Place::Away { until_tick }
    }
}

/// A message that waits for a later tick.
pub struct Held {
    /// The connection that it came on. Its answer goes there or nowhere: on
    /// another one the same number is of another command.
    pub link: ConnectionId,
    /// Which of the messages that count it is; none of a count that is over.
    pub number: Option<u32>,
    /// Number of its command.
    pub seq: Option<u32>,
    /// What it says.
    pub message: ClientMessage,
}

/// What to do with an event or a call.
pub enum Turn {
    /// Handle it now.
    Now(ClientMessage),
    /// It waits its turn.
    Later,
    /// Too many wait.
    Never,
}

impl Seat {
    /// A seat for a player on this connection.
    pub fn new(identity: Identity, nonce: String, link: ConnectionId) -> Self {
        Self {
            identity,
            nonce,
            last_nonce: String::new(),
            session: new_nonce(),
            unheard: None,
            place: Place::Online(link),
            log: SentLog::default(),
            calls: Calls::default(),
            confirms: false,
            received: 0,
            kept: Cut::default(),
            kept_mark: 0,
            named_mark: None,
            stored_received: 0,
            seen: Cut::default(),
            store_received: 0,
            counts: false,
            blocked: BTreeSet::new(),
            held: VecDeque::new(),
            taken: 0,
        }
    }

    /// Their connection, if there is one.
    pub fn link(&self) -> Option<ConnectionId> {
        match self.place {
            Place::Online(link) => Some(link),
            Place::Away { .. } => None,
        }
    }

    /// Goes on with what an earlier process of the world has left, in the session
    /// of that name; with none, in one of which their client has not heard, and
    /// only with what there is to tell. The session may be newer than what was
    /// kept: then its counts are not known, and all that is told again comes first.
    pub fn inherit(&mut self, saved: SavedPlayer, session: Option<String>) {
        let of_scene = |id: u32| id <= SceneEntity::ID_MAX;
        let kept = KeptLog::from_bytes(&saved.told, &of_scene);
        if kept.is_none() && !saved.told.is_empty() {
            let player = saved.player_id;
            tracing::warn!(player, "what was left to tell them cannot be read");
        }
        let kept = kept.unwrap_or_default();
        self.log = SentLog::restored(kept.base);
        for kept in kept.messages {
            let echo = kept.echo.and_then(|echo| serde_json::from_str(&echo).ok());
            self.log_message(kept.message, echo);
        }
        self.log.note_told(kept.told);
        let is_same = session.as_ref() == Some(&saved.session);
        match session {
            Some(_) if is_same => {
                self.session = saved.session;
                self.confirms = kept.confirms;
                self.received = saved.received;
                self.stored_received = saved.received;
                self.store_received = saved.received;
                kept.calls
                    .into_iter()
                    .for_each(|call| self.calls.inherit(call));
            }
            Some(newer) => {
                self.log.restart(true);
                self.session = newer;
            }
            None => self.unheard = Some(Resumption::New),
        }
        self.kept = self.cut();
        self.seen = self.cut();
    }

    fn log_message(&mut self, message: ServerMessage, echo: Option<Label>) {
        let packet = packet::single(&message);
        let bytes = packet.len();
        let told = Told {
            message: Arc::new(message),
            packet: packet.into(),
            echo,
        };
        self.log.push(told, bytes);
    }

    /// A connection begins for a client that has `received` so many messages,
    /// as far as it says so. Returns how it goes on, and the number before the
    /// next message. Who has forgotten the counts begins anew, with the same
    /// character; a `page` is a client of ours, which confirms what it has heard
    /// every second: what the last one did not may never have reached it.
    pub fn go_on(
        &mut self,
        asked: Resumption,
        received: Option<u32>,
        page: bool,
    ) -> (Resumption, u32) {
        let unheard = self.unheard.take();
        let (resumption, sent) = match (asked, received) {
            // A new page of the same player: the last one was closed.
            (Resumption::New, _) => {
                self.restart_counts(page || self.confirms || unheard.is_some());
                (asked, 0)
            }
            (Resumption::Restarted, Some(received))
                if received.saturating_sub(self.log.sent()) <= AHEAD_MAX
                    && received <= COUNT_MAX =>
            {
                (asked, self.log.take_up(received))
            }
            // The count that began anew is one of which nobody has heard.
            (Resumption::Resumed, Some(received)) if unheard != Some(Resumption::New) => {
                (asked, self.log.rewind(received))
            }
            // A stranger may count what it says, and not what it hears.
            (Resumption::Restarted, None) if !page => {
                self.renumber(self.confirms);
                (asked, 0)
            }
            (_, None) if self.confirms => (asked, self.log.rewind(0)),
            (Resumption::Resumed | Resumption::Restarted, _) => {
                self.restart_counts(page || unheard.is_some());
                (Resumption::New, 0)
            }
        };
        // Behind what they have heard, however much more that is than was kept.
        while let Some(id) = self.calls.next_lost() {
            let answer = ServerMessage::InvokeResult {
                id,
                result: Err(NEVER_ANSWERED.to_owned()),
            };
            let label = self.answered(&answer);
            self.log_message(answer, label);
        }
        self.unheard = Some(resumption);
        self.counts |= page || received.is_some();
        (resumption, sent)
    }

    /// Something was heard: the welcome has arrived, and the last token is
    /// worth nothing any more.
    pub fn note_heard(&mut self) {
        self.unheard = None;
    }

    /// The client has every message up to this number: it has acknowledged a
    /// snapshot that came behind it on a line that keeps the order.
    pub fn confirm(&mut self, told: u32) {
        self.log.confirm(told);
        self.confirms = true;
    }

    /// Both counts start anew, with a client that knows of none. What was
    /// never told is kept for it, and with `keep_told` all that waits to be
    /// confirmed.
    fn restart_counts(&mut self, keep_told: bool) {
        self.calls.forget();
        self.renumber(keep_told);
        self.confirms = false;
        self.received = 0;
        self.kept.received = 0;
        self.seen.received = 0;
        self.stored_received = 0;
        self.store_received = 0;
        // What waits is of the count that is over.
        for held in &mut self.held {
            held.number = None;
        }
    }

    /// Messages to them are counted from nothing, in a session of another name:
    /// in one, a greater number is a later one.
    fn renumber(&mut self, keep_told: bool) {
        let smaller = self.log.restart(keep_told);
        self.session = new_nonce();
        self.named_mark = None;
        self.calls.renumber(smaller);
        for cut in [&mut self.kept, &mut self.seen] {
            cut.sent = cut.sent.saturating_sub(smaller).min(self.log.sent());
        }
    }

    /// The present moment.
    pub fn cut(&self) -> Cut {
        Cut {
            received: self.handled(),
            sent: self.log.sent(),
        }
    }

    /// Messages that count that have reached the world, or were refused; up to
    /// the first that waits.
    pub fn handled(&self) -> u32 {
        let first = self.held.iter().find_map(|held| held.number);
        first.map_or(self.received, |number| number.saturating_sub(1))
    }

    /// Whether something has come up for them while they are not connected that
    /// is not kept.
    pub fn is_away_with_news(&self) -> bool {
        self.link().is_none() && self.kept.sent != self.log.sent()
    }

    /// The label of the call that the next message to them answers, if it has one.
    pub fn answered(&mut self, message: &ServerMessage) -> Option<Label> {
        let ServerMessage::InvokeResult { id, .. } = message else {
            return None;
        };
        let number = self.log.sent().wrapping_add(1);
        self.calls.answered(*id, number)
    }

    /// They are kept as they were then.
    pub fn note_kept(&mut self, cut: Cut) {
        self.kept = cut;
        self.calls.note_kept(cut);
    }

    /// What they had not confirmed, and what was heard and not answered, at a
    /// moment, in up to so many bytes, for [`inherit`](Self::inherit).
    pub fn left_to_tell(&self, at: Cut, bytes_max: usize) -> Vec<u8> {
        let calls = self.calls.left_open(at, bytes_max / CALLS_SHARE);
        let of_calls: usize = calls.iter().map(KeptCall::bytes).sum();
        // Who neither confirms nor counts has what was told.
        let after = match self.confirms || self.counts {
            true => 0,
            false => self.log.told(),
        };
        let range = (after, at.sent);
        let log = KeptLog::of(&self.log, range, bytes_max - of_calls, |told| KeptPacket {
            packet: &told.packet,
            echo: told.echo.as_ref().map(|echo| echo.to_string()),
        });
        let confirms = self.confirms;
        KeptLog {
            confirms,
            calls,
            ..log
        }
        .to_bytes()
    }

    /// Only what was heard and not answered at a moment, in the same form.
    pub fn left_open(&self, at: Cut, bytes_max: usize) -> Vec<u8> {
        let log: KeptLog<KeptPacket<'_>> = KeptLog {
            calls: self.calls.left_open(at, bytes_max),
            ..KeptLog::default()
        };
        log.to_bytes()
    }

    /// About how many bytes that has.
    pub fn left_bytes(&self) -> usize {
        let (messages, bytes) = self.log.size();
        bytes + (messages + self.calls.len()) * KEPT_BYTES
    }

    /// What was put on a queue is stored, up to this mark.
    pub(super) fn note_stored(&mut self, mark: u64) {
        if self.kept_mark <= mark {
            self.stored_received = self.stored_received.max(self.kept.received);
        }
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

    /// A new tick: the next that waited, until this tick's share is used.
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
