//! One player's place: what was said and heard, on however many connections and
//! in however many processes of the world (NET-9).

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use frolic_package::SceneEntity;
use frolic_protocol::keep::SavedPlayer;
use frolic_protocol::message::Resumption;
use frolic_protocol::packet;
use frolic_protocol::resume::{KeptCall, KeptLog, KeptMessage, SentLog};
use frolic_protocol::{ClientMessage, ServerMessage};

use super::labels::CallLabels;
use crate::admission::{Identity, new_nonce};
use crate::link::LinkId;
use crate::session::Told;

/// Events and calls of one player that are handled in one tick; scripts hear
/// of no more. The rest waits its turn.
const TAKEN_PER_TICK: u32 = 30;
/// Events and calls of one player that may wait: what arrives at once after
/// a stalled line.
const HELD_MAX: usize = 256;

/// Messages that a client may have heard of an earlier process which that had
/// not kept any more: it sends fewer in a second or two.
const AHEAD_MAX: u32 = 64 * 1024;
/// No session is told more; who says so has made it up.
const COUNT_MAX: u32 = u32::MAX / 2;

/// Calls of one player that are remembered until they are answered.
const CALLS_MAX: usize = 256;
/// Bytes of one in a checkpoint, its label aside.
const CALL_BYTES: usize = 16;
/// The answer to a call that an earlier process of the world has taken.
const NEVER_ANSWERED: &str = "the server was restarted before it answered; call again";

/// A player's place.
pub struct Seat {
    /// Who they are.
    pub identity: Identity,
    /// Names the present connection in its resume tokens; nobody can guess it.
    pub nonce: String,
    /// Names the session as long as its counts go on, on whatever connection
    /// and in whatever process.
    pub session: String,
    /// What it was on the connection before.
    pub last_nonce: String,
    /// How the present connection came about, as long as nothing was heard on
    /// it: its welcome may be lost, and the next token with it. Until then the
    /// last token brings them back.
    pub unheard: Option<Resumption>,
    /// Their connection, or until which tick they may come back.
    pub place: Place,
    /// Messages that count, to them.
    pub log: SentLog<Told>,
    /// What they call their calls.
    pub labels: CallLabels,
    /// Calls that the world has and has not answered: their ids, and which of
    /// the messages that count they were.
    calls: VecDeque<(u32, u32)>,
    /// Whether they confirm with snapshots what they have, as JSON clients do
    /// that count nothing themselves.
    pub confirms: bool,
    /// How many messages that count have come from them.
    pub received: u32,
    /// How many had been handled when the player was last kept, and the mark
    /// of the pile that this went to.
    pub kept_received: u32,
    /// See [`kept_received`](Self::kept_received).
    pub kept_mark: u64,
    /// How many are known to be stored as handled. A client that hears of it
    /// forgets them.
    pub stored_received: u32,
    /// How many had been handled at the last look of all players.
    pub seen_received: u32,
    /// How many had been handled when scripts last wrote to the store.
    pub store_received: u32,
    /// Number of the newest message to them that was kept: what players said
    /// before it is kept as handled.
    pub kept_sent: u32,
    /// What it was at the last look of all players.
    pub seen_sent: u32,
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
    Online(LinkId),
    /// Not connected, and gone for good at this tick.
    Away {
        /// When their time to come back is over.
        until_tick: u32,
    },
}

/// A message that waits for a later tick.
pub struct Held {
    /// The connection that it came on. Its answer goes there or nowhere: on
    /// another one the same number is of another command.
    pub link: LinkId,
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
    pub fn new(identity: Identity, nonce: String, link: LinkId) -> Self {
        Self {
            identity,
            nonce,
            session: new_nonce(),
            last_nonce: String::new(),
            unheard: None,
            place: Place::Online(link),
            log: SentLog::default(),
            labels: CallLabels::default(),
            calls: VecDeque::new(),
            confirms: false,
            received: 0,
            kept_received: 0,
            kept_mark: 0,
            stored_received: 0,
            seen_received: 0,
            store_received: 0,
            kept_sent: 0,
            seen_sent: 0,
            counts: false,
            blocked: BTreeSet::new(),
            held: VecDeque::new(),
            taken: 0,
        }
    }

    /// Their connection, if there is one.
    pub fn link(&self) -> Option<LinkId> {
        match self.place {
            Place::Online(link) => Some(link),
            Place::Away { .. } => None,
        }
    }

    /// Goes on with what an earlier process of the world has left of this
    /// session. Of another one, of which its client may not have heard, only
    /// what there is to tell is taken.
    pub fn inherit(&mut self, saved: SavedPlayer, same_session: bool) {
        let of_scene = |id: u32| id <= SceneEntity::ID_MAX;
        let kept = KeptLog::from_bytes(&saved.told, &of_scene);
        if kept.is_none() && !saved.told.is_empty() {
            let player = saved.player_id;
            tracing::warn!(player, "what was left to tell them cannot be read");
        }
        let kept = kept.unwrap_or_default();
        self.log = SentLog::restored(kept.base);
        let messages = kept.messages.into_iter();
        let messages = messages.map(|kept| (kept.message.into_owned(), kept.echo));
        let unanswered = kept.calls.into_iter().map(|call| {
            let result = Err(NEVER_ANSWERED.to_owned());
            (
                ServerMessage::InvokeResult {
                    id: call.id,
                    result,
                },
                call.echo,
            )
        });
        for (message, echo) in messages.chain(unanswered) {
            let bytes = packet::single(&message).len();
            let told = Told {
                message: Arc::new(message),
                echo: echo.and_then(|echo| serde_json::from_str(&echo).ok()),
            };
            self.log.push(told, bytes);
        }
        self.log.note_told(kept.told);
        self.kept_sent = self.log.sent();
        self.seen_sent = self.log.sent();
        if !same_session {
            self.unheard = Some(Resumption::New);
            return;
        }
        self.session = saved.session;
        self.confirms = kept.confirms;
        let received = saved.received;
        self.received = received;
        self.kept_received = received;
        self.stored_received = received;
        self.seen_received = received;
        self.store_received = received;
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
            (Resumption::New, _) => {
                self.restart_counts(unheard.is_some());
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
            // A stranger may count what it says, and not what it hears. Numbers
            // that an earlier process gave are not given again.
            (Resumption::Restarted, None) if !page => {
                self.log.restart(self.confirms);
                (asked, 0)
            }
            (_, None) if self.confirms => (asked, self.log.rewind(0)),
            (Resumption::Resumed | Resumption::Restarted, _) => {
                self.restart_counts(page || unheard.is_some());
                (Resumption::New, 0)
            }
        };
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
        self.log.restart(keep_told);
        self.session = new_nonce();
        self.kept_sent = 0;
        self.seen_sent = 0;
        self.confirms = false;
        self.received = 0;
        self.kept_received = 0;
        self.stored_received = 0;
        self.seen_received = 0;
        self.store_received = 0;
        // What waits is of the count that is over.
        for held in &mut self.held {
            held.number = None;
        }
        self.calls.clear();
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
        self.link().is_none() && self.kept_sent != self.log.sent()
    }

    /// The world has taken a call of theirs.
    pub fn note_call(&mut self, id: u32, number: u32) {
        if self.calls.len() == CALLS_MAX {
            self.calls.pop_front();
        }
        self.calls.push_back((id, number));
    }

    /// The label of the call that a message answers, if it has one.
    pub fn answered(&mut self, message: &ServerMessage) -> Option<Box<serde_json::Value>> {
        let ServerMessage::InvokeResult { id, .. } = message else {
            return None;
        };
        self.calls.retain(|(open, _)| open != id);
        self.labels.take_for(*id)
    }

    /// What they have not confirmed and what was not answered of all that is
    /// kept as heard, in up to so many bytes, for [`inherit`](Self::inherit).
    pub fn left_to_tell(&self, bytes_max: usize) -> Vec<u8> {
        let mut room = bytes_max;
        let mut calls = Vec::new();
        for (id, number) in &self.calls {
            let echo = self.labels.of(*id).map(serde_json::Value::to_string);
            let bytes = CALL_BYTES + echo.as_ref().map_or(0, String::len);
            match room.checked_sub(bytes) {
                Some(left) if *number <= self.kept_received => {
                    room = left;
                    let (id, echo) = (*id, echo.map(Cow::Owned));
                    calls.push(KeptCall { id, echo });
                }
                _ => break,
            }
        }
        // Who neither confirms nor counts has what was told.
        let after = match self.confirms || self.counts {
            true => 0,
            false => self.log.told(),
        };
        let range = (after, self.kept_sent);
        let log = KeptLog::of(&self.log, range, room, |told| KeptMessage {
            message: Cow::Borrowed(&*told.message),
            echo: told.echo.as_ref().map(|echo| echo.to_string().into()),
        });
        let confirms = self.confirms;
        KeptLog {
            confirms,
            calls,
            ..log
        }
        .to_bytes()
    }

    /// What was put on a pile is stored, up to this mark.
    pub(super) fn note_stored(&mut self, mark: u64) {
        if self.kept_mark <= mark {
            self.stored_received = self.stored_received.max(self.kept_received);
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
