//! Seats: a player's place in the world, with or without a connection (NET-9).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use frolic_package::SceneEntity;
use frolic_protocol::keep::SavedPlayer;
use frolic_protocol::message::Resumption;
use frolic_protocol::packet;
use frolic_protocol::resume::{KeptLog, KeptMessage, SentLog};
use frolic_protocol::{ClientMessage, ServerMessage};
use frolic_world::PlayerNumber;

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

/// Of more than these nobody holds the places for them.
const AWAY_TOLD_MAX: usize = 1000;

/// Calls with a label that may wait for their answer.
const LABELS_MAX: usize = 512;
/// Numbers that are used for them, one after the other.
const LABELLED_IDS: u32 = 1 << 20;

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
    /// Number of the newest message to them when they were last kept.
    pub kept_sent: u32,
    /// Lasting ids of those whose chat is kept from them, and theirs from those.
    pub blocked: BTreeSet<String>,
    held: VecDeque<Held>,
    taken: u32,
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

/// Calls whose `id` is no number of ours: a text, say. The world counts them
/// from the top, and whoever called gets their own back.
#[derive(Default)]
pub struct CallLabels {
    waiting: VecDeque<(u32, Box<serde_json::Value>)>,
    given: u32,
}

impl CallLabels {
    /// The number for a call of this label.
    pub fn give(&mut self, label: Box<serde_json::Value>) -> u32 {
        if self.waiting.len() == LABELS_MAX {
            self.waiting.pop_front();
        }
        self.given = self.given.wrapping_add(1);
        let id = u32::MAX - self.given % LABELLED_IDS;
        self.waiting.push_back((id, label));
        id
    }

    /// The label of the call that a message answers.
    pub fn take_for(&mut self, message: &ServerMessage) -> Option<Box<serde_json::Value>> {
        let ServerMessage::InvokeResult { id, .. } = message else {
            return None;
        };
        let place = self.waiting.iter().position(|(known, _)| known == id)?;
        self.waiting.remove(place).map(|(_, label)| label)
    }
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
            confirms: false,
            received: 0,
            kept_received: 0,
            kept_mark: 0,
            stored_received: 0,
            seen_received: 0,
            store_received: 0,
            kept_sent: 0,
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
    /// session.
    pub fn inherit(&mut self, saved: SavedPlayer) {
        let of_scene = |id: u32| id <= SceneEntity::ID_MAX;
        let kept = KeptLog::from_bytes(&saved.told, &of_scene);
        if kept.is_none() && !saved.told.is_empty() {
            let player = saved.player_id;
            tracing::warn!(player, "what was left to tell them cannot be read");
        }
        let kept = kept.unwrap_or_default();
        self.session = saved.session;
        self.confirms = kept.confirms;
        self.log = SentLog::restored(kept.base);
        for KeptMessage { message, echo } in kept.messages {
            let bytes = packet::single(&*message).len();
            let told = Told {
                message: Arc::new(message.into_owned()),
                echo: echo.and_then(|echo| serde_json::from_str(&echo).ok()),
            };
            self.log.push(told, bytes);
        }
        self.kept_sent = self.log.sent();
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
                if received.saturating_sub(self.log.sent()) <= AHEAD_MAX =>
            {
                (asked, self.log.take_up(received))
            }
            // The count that began anew is one of which nobody has heard.
            (Resumption::Resumed, Some(received)) if unheard != Some(Resumption::New) => {
                (asked, self.log.rewind(received))
            }
            (_, None) if self.confirms => (asked, self.log.rewind(0)),
            // A stranger may count what it says, and not what it hears.
            (Resumption::Restarted, None) if !page => {
                self.log.restart(true);
                (asked, 0)
            }
            (Resumption::Resumed | Resumption::Restarted, _) => {
                self.restart_counts(page || unheard.is_some());
                (Resumption::New, 0)
            }
        };
        self.unheard = Some(resumption);
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
    }

    /// Messages that count that have reached the world, or were refused; up to
    /// the first that waits.
    pub fn handled(&self) -> u32 {
        let first = self.held.iter().find_map(|held| held.number);
        first.map_or(self.received, |number| number.saturating_sub(1))
    }

    /// What they have not confirmed, in up to so many bytes, for
    /// [`inherit`](Self::inherit).
    pub fn left_to_tell(&self, bytes_max: usize) -> Vec<u8> {
        let kept = KeptLog::of(&self.log, self.confirms, bytes_max, |told| KeptMessage {
            message: Cow::Borrowed(&*told.message),
            echo: told.echo.as_ref().map(|echo| echo.to_string().into()),
        });
        kept.to_bytes()
    }

    /// What was put on a pile is stored, up to this mark.
    fn note_stored(&mut self, mark: u64) {
        if self.kept_mark <= mark {
            self.stored_received = self.stored_received.max(self.kept_received);
        }
    }

    fn take_turn(&mut self, held: Held) -> Turn {
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

/// Everybody in the world, connected or expected back.
#[derive(Default)]
pub struct Seats {
    by_number: BTreeMap<PlayerNumber, Seat>,
    online: u32,
    /// Who has used turns in this tick, or waits for more: only their seats
    /// are looked at when the next begins.
    spoken: Vec<PlayerNumber>,
}

impl Seats {
    /// Seats a player.
    pub fn insert(&mut self, number: PlayerNumber, seat: Seat) {
        self.online += u32::from(seat.link().is_some());
        if let Some(old) = self.by_number.insert(number, seat) {
            self.online -= u32::from(old.link().is_some());
        }
    }

    /// Takes a seat away.
    pub fn remove(&mut self, number: PlayerNumber) -> Option<Seat> {
        let seat = self.by_number.remove(&number)?;
        self.online -= u32::from(seat.link().is_some());
        Some(seat)
    }

    /// Changes where a player is.
    pub fn move_to(&mut self, number: PlayerNumber, place: Place) {
        if let Some(seat) = self.by_number.get_mut(&number) {
            self.online -= u32::from(seat.link().is_some());
            seat.place = place;
            self.online += u32::from(seat.link().is_some());
        }
    }

    /// A seat.
    pub fn get(&self, number: PlayerNumber) -> Option<&Seat> {
        self.by_number.get(&number)
    }

    /// A seat.
    pub fn get_mut(&mut self, number: PlayerNumber) -> Option<&mut Seat> {
        self.by_number.get_mut(&number)
    }

    /// Every seat.
    pub fn iter(&self) -> impl Iterator<Item = (PlayerNumber, &Seat)> {
        self.by_number.iter().map(|(number, seat)| (*number, seat))
    }

    /// Every seat.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (PlayerNumber, &mut Seat)> {
        self.by_number
            .iter_mut()
            .map(|(number, seat)| (*number, seat))
    }

    /// Players with a connection.
    pub fn online(&self) -> u32 {
        self.online
    }

    /// Players with a connection, and those who may come back.
    pub fn taken(&self) -> u32 {
        self.by_number.len() as u32
    }

    /// Lasting ids of those who may come back, as many as a heartbeat takes.
    pub fn away(&self) -> Vec<String> {
        if self.online == self.taken() {
            return Vec::new();
        }
        let away = self.iter().filter(|(_, seat)| seat.link().is_none());
        away.map(|(_, seat)| seat.identity.player_id.clone())
            .take(AWAY_TOLD_MAX)
            .collect()
    }

    /// The seat of a lasting id.
    pub fn of_player(&self, player_id: &str) -> Option<PlayerNumber> {
        self.find(|seat| seat.identity.player_id == player_id)
    }

    /// The seat that a resume token speaks of.
    pub fn of_nonce(&self, nonce: &str) -> Option<PlayerNumber> {
        self.find(|seat| !nonce.is_empty() && seat.nonce == nonce)
    }

    /// The seat whose last connection a resume token speaks of, while nothing
    /// was heard on the present one; or at any time, if a ticket has shown
    /// that this is the player.
    pub fn before_nonce(&self, player_id: Option<&str>, nonce: &str) -> Option<PlayerNumber> {
        self.find(|seat| {
            let vouched = player_id.is_some_and(|id| id == seat.identity.player_id);
            let told = seat.unheard.is_none();
            !nonce.is_empty() && seat.last_nonce == nonce && (vouched || !told)
        })
    }

    fn find(&self, wanted: impl Fn(&Seat) -> bool) -> Option<PlayerNumber> {
        let mut seats = self.iter();
        seats
            .find(|(_, seat)| wanted(seat))
            .map(|(number, _)| number)
    }

    /// Takes an event or a call of a player, in order.
    pub fn take_turn(&mut self, number: PlayerNumber, held: Held) -> Option<Turn> {
        let seat = self.by_number.get_mut(&number)?;
        if seat.taken == 0 && seat.held.is_empty() {
            self.spoken.push(number);
        }
        Some(seat.take_turn(held))
    }

    /// Begins a tick: everybody has their share of turns again. Returns
    /// whose messages wait.
    pub fn begin_tick(&mut self, waiting: &mut Vec<PlayerNumber>) {
        let by_number = &mut self.by_number;
        self.spoken.retain(|number| {
            let Some(seat) = by_number.get_mut(number) else {
                return false;
            };
            seat.taken = 0;
            !seat.held.is_empty()
        });
        waiting.extend_from_slice(&self.spoken);
    }

    /// What was put on a pile is stored, up to this mark.
    pub fn note_stored(&mut self, mark: u64) {
        for seat in self.by_number.values_mut() {
            seat.note_stored(mark);
        }
    }

    /// Players whose time to come back is over.
    pub fn overdue(&self, tick: u32, overdue: &mut Vec<PlayerNumber>) {
        if self.online as usize == self.by_number.len() {
            return;
        }
        overdue.extend(self.iter().filter_map(|(number, seat)| match seat.place {
            Place::Away { until_tick } if until_tick <= tick => Some(number),
            _ => None,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told to a client that comes back and has forgotten its count.
    fn told_again(page: bool) -> usize {
        let mut seat = Seat::new(Identity::default(), "nonce".into(), LinkId::new(7, 1));
        let kick = ServerMessage::Kick {
            reason: String::new(),
        };
        let told = |message: &ServerMessage| Told {
            echo: None,
            message: message.clone().into(),
        };
        for _ in 0..3 {
            seat.log.push(told(&kick), 1);
        }
        seat.log.tell_all();
        seat.log.confirm(1);
        let (resumption, sent) = seat.go_on(Resumption::Resumed, None, page);
        assert_eq!((resumption, sent), (Resumption::New, 0));
        std::iter::from_fn(|| seat.log.next_untold().map(|_| ())).count()
    }

    #[test]
    fn a_page_that_is_opened_again_hears_what_the_last_one_may_have_missed() {
        assert_eq!(told_again(true), 2);
        assert_eq!(told_again(false), 0, "it would have confirmed nothing");
    }

    #[test]
    fn a_burst_of_events_waits_its_turn_and_only_a_flood_is_refused() {
        let identity = Identity {
            player_id: "client_1".into(),
            name: "Ada".into(),
            ..Identity::default()
        };
        let mut seats = Seats::default();
        let link = LinkId::new(7, 1);
        seats.insert(1, Seat::new(identity, "nonce".into(), link));
        let chat = |n: u32| ClientMessage::Chat {
            text: n.to_string(),
        };
        let mut heard = Vec::new();
        let mut refused = 0;
        for n in 0..300 {
            seats.get_mut(1).unwrap().received += 1;
            let held = Held {
                link,
                number: Some(n + 1),
                seq: None,
                message: chat(n),
            };
            match seats.take_turn(1, held).unwrap() {
                Turn::Now(message) => heard.push(message),
                Turn::Later => {}
                Turn::Never => refused += 1,
            }
        }
        assert_eq!((heard.len(), refused), (30, 300 - 30 - 256));
        let handled = |seats: &Seats| seats.get(1).unwrap().handled();
        assert_eq!(handled(&seats), 30, "what was refused came behind the rest");
        for _ in 0..20 {
            let mut waiting = Vec::new();
            seats.begin_tick(&mut waiting);
            for number in waiting {
                while let Some(held) = seats.get_mut(number).unwrap().next_held() {
                    heard.push(held.message);
                }
            }
        }
        assert_eq!(heard, (0..286).map(chat).collect::<Vec<_>>());
        assert_eq!(handled(&seats), 300);
    }
}
