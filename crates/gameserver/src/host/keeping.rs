//! Players across processes of their world: persisted while they are connected,
//! restored when they come back.

use std::collections::BTreeMap;

use frolic_protocol::keep::{PlayerState, SavedPlayer, TOLD_BYTES_MAX};
use frolic_protocol::store::HeardCount;
use frolic_world::PlayerNumber;

use super::Host;
use crate::admission::{Identity, ResumeClaims, TOKEN_LIFETIME_S};
use crate::seats::{AWAY_TOLD_MAX, Cut, Place, Seat, Seats};
use crate::store::InputWatermarks;

/// Players who are remembered after they left; the platform stores the others.
const REMEMBERED_MAX: usize = 4096;
/// Interval of player checkpoints, in milliseconds: including the write to disk,
/// less than a second of movement can be lost.
const PLAYERS_EVERY_MS: u32 = 800;

/// Limit of unacknowledged messages of all players together in one checkpoint, in
/// bytes.
const TOLD_TOGETHER_BYTES: usize = 4 * 1024 * 1024;
/// Limit of unacknowledged messages of one player and of all, with the store writes
/// of one tick, in bytes: many of those may wait for a database.
const TOLD_WITH_STORE_BYTES: (usize, usize) = (4 * 1024, 64 * 1024);
/// Bytes of one player's open calls that always fit beside a write.
const CALLS_BYTES_MIN: usize = 1024;
/// Limit of queued messages of disconnected players with one operation, in bytes.
/// The rest waits for the next full checkpoint.
const AWAY_WITH_OP_BYTES: usize = 64 * 1024;

/// Last states of players who are not connected.
#[derive(Default)]
pub struct Returning {
    players: BTreeMap<String, SavedPlayer>,
    /// Players of an earlier process who have come back.
    returned: Vec<String>,
}

impl Returning {
    /// The players that an earlier process of this world persisted.
    pub fn new(players: Vec<SavedPlayer>) -> Self {
        let players = players.into_iter().take(REMEMBERED_MAX);
        Self {
            players: players
                .map(|player| (player.player_id.clone(), player))
                .collect(),
            returned: Vec::new(),
        }
    }

    /// Persistent ids of players of an earlier process who are back: while their
    /// places may still be reserved.
    pub fn returned(&self) -> &[String] {
        &self.returned
    }

    fn take(&mut self, player_id: &str) -> Option<SavedPlayer> {
        let player = self.players.remove(player_id)?;
        if !player.session.is_empty() && self.returned.len() < AWAY_TOLD_MAX {
            self.returned.push(player_id.to_owned());
        }
        Some(player)
    }

    /// Whether a player was in the world, or could have reconnected to it, when an
    /// earlier process ended.
    pub fn expects(&self, player_id: &str) -> bool {
        let player = self.players.get(player_id);
        player.is_some_and(|player| !player.session.is_empty())
    }

    /// Whether the session of a token is the one that was persisted. An older
    /// version issued tokens without a session.
    pub fn knows(&self, claims: &ResumeClaims) -> bool {
        let player = self.players.get(&claims.identity.player_id);
        let session = &claims.session;
        player.is_some_and(|player| player.session == *session && !session.is_empty())
    }

    /// Tokens of an earlier process are no longer accepted. In a persistent world
    /// the positions remain.
    fn end(&mut self, is_persistent: bool) {
        self.returned = Vec::new();
        if is_persistent {
            for player in self.players.values_mut() {
                player.told = Vec::new();
            }
        } else {
            self.players.clear();
        }
    }

    fn remember(&mut self, player: SavedPlayer) {
        if self.players.len() >= REMEMBERED_MAX {
            self.players.pop_first();
        }
        self.players.insert(player.player_id.clone(), player);
    }
}

impl Host {
    /// The last state of a player who is not in the world, if it is known.
    pub(super) fn place_of(&mut self, identity: &Identity) -> Option<SavedPlayer> {
        let known = self.settings.returning.take(&identity.player_id);
        known.or_else(|| {
            // A ticket has it only where worlds are persistent.
            let state: PlayerState = identity.left.clone()?;
            Some(SavedPlayer {
                player_id: identity.player_id.clone(),
                state,
                online: false,
                session: String::new(),
                received: 0,
                sent: 0,
                told: Vec::new(),
            })
        })
    }

    /// Sends the store requests of scripts, with the counts of handled messages:
    /// the next process must not handle again what this one has written, and must
    /// answer it.
    pub(super) fn ask_store(&mut self) {
        self.keep_newcomers();
        let Self {
            settings,
            seats,
            world,
            ..
        } = self;
        // The same messages may have caused operations. Those are stored with the
        // writes or before them, never after.
        settings.keeper.hold(world);
        let (ops_mark, newest_op) = (settings.keeper.ops_mark(), world.newest_op());
        settings.store.pass_on(world, || {
            let (counts, named_mark) = heard_counts(seats);
            InputWatermarks {
                counts,
                after_mark: named_mark.max(ops_mark),
                newest_op,
            }
        });
    }

    /// Message counts are stored with a player's session, so the session must be
    /// stored first.
    fn keep_newcomers(&mut self) {
        let seats = &self.seats;
        let is_new = |number: &mut PlayerNumber| {
            let seat = seats.get(*number);
            seat.is_some_and(|seat| seat.named_mark.is_none())
        };
        let newcomers: Vec<PlayerNumber> = self.came_or_went.extract_if(.., is_new).collect();
        self.keep_those(&newcomers, Counted::AsKept);
    }

    /// Queues what must be persisted of this tick.
    pub(super) fn keep(&mut self) {
        let counted = self.heard_and_done();
        self.keep_ops(counted);
        let tick_hz = self.world.tick_hz();
        let every = (tick_hz * PLAYERS_EVERY_MS / 1000).max(1);
        let tick = self.world.tick();
        let came_or_went = std::mem::take(&mut self.came_or_went);
        let is_time = self.settings.keeper.keeps() && tick.is_multiple_of(every);
        if is_time {
            let players = self.checkpoints(counted, |seat| {
                seat.link().is_some() || seat.is_away_with_news()
            });
            self.settings.keeper.players(players);
        }
        self.keep_those(&came_or_went, counted);
        if is_time || self.settings.keeper.has_held(u64::MAX) {
            self.look_at_counts();
        }
        let lifetime = u32::try_from(TOKEN_LIFETIME_S).unwrap_or(u32::MAX);
        if tick == tick_hz.saturating_mul(lifetime) {
            self.settings
                .returning
                .end(self.settings.keeper.is_persistent());
            self.presence_changed = true;
        }
    }

    /// Persists operations, each together with how many messages of each player the
    /// world had handled by then: neither is stored without the other. Operations
    /// wait for pending writes that the same messages may have caused.
    fn keep_ops(&mut self, counted: Counted) {
        let up_to = match counted {
            Counted::Now => self.world.newest_op(),
            Counted::AsSeen => self.last_look.newest_op,
            Counted::AsKept => 0,
        };
        if self.settings.keeper.has_held(up_to) {
            let mut room = AWAY_WITH_OP_BYTES;
            let players = self.checkpoints(counted, |seat| {
                let cut = counted.cut(seat);
                // A player's message may have caused what disconnected players
                // missed.
                seat.kept.received != cut.received
                    || seat.link().is_none() && seat.kept.sent != cut.sent && {
                        let left = room.checked_sub(seat.left_bytes());
                        room = left.unwrap_or(room);
                        left.is_some()
                    }
            });
            self.settings.keeper.release(up_to, players);
        }
        self.settings.keeper.compact(&self.world);
    }

    /// The counts for checkpoints that are made independently: pending store
    /// requests of scripts may result from the last messages of players. Until they
    /// are answered, those messages are not persisted as handled.
    fn heard_and_done(&self) -> Counted {
        let store = &self.settings.store;
        match () {
            () if store.has_answered(store.asked()) => Counted::Now,
            () if store.has_answered(self.last_look.asked) => Counted::AsSeen,
            () => Counted::AsKept,
        }
    }

    /// Records the handled messages of players, and the store requests and
    /// operations of scripts by now: once those requests are answered, that much is
    /// complete.
    fn look_at_counts(&mut self) {
        let store = &self.settings.store;
        if store.has_answered(self.last_look.asked) {
            self.last_look = Look {
                asked: store.asked(),
                newest_op: self.world.newest_op(),
            };
            for (_, seat) in self.seats.iter_mut() {
                seat.seen = seat.cut();
            }
        }
    }

    /// The checkpoints of some connected players.
    pub(super) fn checkpoints(
        &mut self,
        counted: Counted,
        mut of: impl FnMut(&Seat) -> bool,
    ) -> Vec<SavedPlayer> {
        let (world, mark) = (&self.world, self.settings.keeper.next_mark());
        let share = self.told_share();
        let seats = self.seats.iter_mut().filter(|(_, seat)| of(seat));
        seats
            .filter_map(|(number, seat)| {
                let state = world.player_state(number)?;
                Some(saved(seat, (counted, mark), state, share))
            })
            .collect()
    }

    /// Persists players who have just joined or left, with their last messages and
    /// the effects.
    fn keep_those(&mut self, numbers: &[PlayerNumber], counted: Counted) {
        if numbers.is_empty() {
            return;
        }
        // All at once: they share one mark.
        let kept = (counted, self.settings.keeper.next_mark());
        let share = self.told_share();
        let Self { world, seats, .. } = self;
        let players = numbers.iter().filter_map(|number| {
            let (seat, state) = (seats.get_mut(*number)?, world.player_state(*number)?);
            Some(saved(seat, kept, state, share))
        });
        let players = players.collect();
        self.settings.keeper.players(players);
    }

    /// Bytes of unacknowledged messages per player in a checkpoint.
    fn told_share(&self) -> usize {
        let sizes = self.seats.iter().map(|(_, seat)| seat.left_bytes());
        told_share(sizes, (TOLD_BYTES_MAX, TOLD_TOGETHER_BYTES))
    }

    /// A player leaves for good; in a persistent world they find their place again.
    pub(super) fn keep_parting(&mut self, number: PlayerNumber, seat: &mut Seat) {
        if !self.settings.keeper.keeps() {
            return;
        }
        let player_id = seat.identity.player_id.clone();
        let state = self.world.player_state(number);
        match state.filter(|_| self.settings.keeper.is_persistent()) {
            Some(state) => {
                let player = SavedPlayer {
                    online: false,
                    session: String::new(),
                    received: 0,
                    sent: 0,
                    told: Vec::new(),
                    ..saved(seat, (Counted::Now, 0), state, 0)
                };
                self.settings.returning.remember(player.clone());
                self.settings.keeper.player(player);
            }
            None => self.settings.keeper.forget(&player_id),
        }
    }
}

/// The state when players were last examined.
#[derive(Clone, Copy, Default)]
pub(super) struct Look {
    /// Store requests that scripts had made.
    asked: u64,
    /// Number of the newest operation.
    newest_op: u64,
}

/// How many messages of a player are persisted as handled.
#[derive(Clone, Copy)]
pub(super) enum Counted {
    /// All that were handled.
    Now,
    /// As many as when last examined.
    AsSeen,
    /// As many as in the last checkpoint.
    AsKept,
}

impl Counted {
    fn cut(self, seat: &Seat) -> Cut {
        match self {
            Counted::Now => seat.cut(),
            Counted::AsSeen => seat.kept.max(seat.seen),
            Counted::AsKept => seat.kept,
        }
    }
}

/// How many bytes each player may use for unacknowledged messages, so that all of
/// these sizes together stay within `together`: most have little.
fn told_share(sizes: impl Iterator<Item = usize>, (each, together): (usize, usize)) -> usize {
    let (mut total, mut with_some) = (0usize, 0usize);
    for bytes in sizes.filter(|bytes| *bytes > 0) {
        total = total.saturating_add(bytes.min(each));
        with_some += 1;
    }
    match total <= together {
        true => each,
        false => (together / with_some.max(1)).min(each),
    }
}

/// The handled-message counts of players who sent something since scripts last
/// wrote to the store; and the mark of the queue that has all their sessions.
fn heard_counts(seats: &mut Seats) -> (Vec<HeardCount>, u64) {
    let has_spoken = |seat: &Seat| seat.store_received != seat.handled();
    let spoken = seats.iter().filter(|(_, seat)| has_spoken(seat));
    let sizes = spoken.map(|(_, seat)| seat.left_bytes());
    let share = told_share(sizes, TOLD_WITH_STORE_BYTES);
    let seats = seats.iter_mut().map(|(_, seat)| seat);
    let mut named_mark = 0;
    let counts = seats.filter(|seat| has_spoken(seat)).map(|seat| {
        named_mark = named_mark.max(seat.named_mark.unwrap_or(0));
        heard_count(seat, share)
    });
    (counts.collect(), named_mark)
}

fn heard_count(seat: &mut Seat, told_bytes: usize) -> HeardCount {
    let cut = seat.cut();
    seat.store_received = cut.received;
    // The last complete checkpoint is better than a part. But no other record says
    // that a call was received.
    let (told, calls) = match seat.left_bytes() <= told_bytes {
        true => (seat.left_to_tell(cut, told_bytes), Vec::new()),
        false => (
            Vec::new(),
            seat.left_open(cut, told_bytes.max(CALLS_BYTES_MIN)),
        ),
    };
    HeardCount {
        player_id: seat.identity.player_id.clone(),
        session: seat.session.clone(),
        received: cut.received,
        sent: cut.sent,
        told,
        calls,
    }
}

/// A player's current state, on the way to the queue of that mark, with up to
/// `told_bytes` of unacknowledged messages.
fn saved(
    seat: &mut Seat,
    (counted, mark): (Counted, u64),
    state: PlayerState,
    told_bytes: usize,
) -> SavedPlayer {
    let cut = counted.cut(seat);
    let told = seat.left_to_tell(cut, told_bytes);
    seat.note_kept(cut);
    seat.kept_mark = mark;
    seat.named_mark.get_or_insert(mark);
    SavedPlayer {
        player_id: seat.identity.player_id.clone(),
        state,
        online: matches!(seat.place, Place::Online(_)),
        session: seat.session.clone(),
        received: cut.received,
        sent: cut.sent,
        told,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use frolic_protocol::resume::KeptLog;
    use frolic_protocol::{ServerMessage, packet};

    use super::*;
    use crate::link::ConnectionId;
    use crate::session::Told;

    /// Messages were sent to all players, and one of them has made a call.
    fn crowd(bytes: usize) -> Seats {
        let mut seats = Seats::default();
        for number in 1..=200 {
            let identity = Identity {
                player_id: format!("client_{number}"),
                ..Identity::default()
            };
            let mut seat = Seat::new(identity, String::new(), ConnectionId::new(number, 1));
            let message = ServerMessage::Chat {
                from: String::new(),
                text: "x".repeat(bytes),
                player_id: String::new(),
            };
            let told = Told {
                packet: packet::single(&message).into(),
                message: Arc::new(message),
                echo: None,
            };
            seat.log.push(told, bytes);
            seats.insert(number, seat);
        }
        if let Some(caller) = seats.get_mut(7) {
            caller.received = 1;
            caller.calls.taken(42, Some(1));
        }
        seats
    }

    fn calls(bytes: &[u8]) -> Vec<u32> {
        let kept = KeptLog::from_bytes(bytes, &|_| true);
        let calls = kept.into_iter().flat_map(|kept| kept.calls);
        calls.map(|call| call.id).collect()
    }

    #[test]
    fn a_call_goes_with_a_write_however_many_messages_others_await() {
        let (heard, _) = heard_counts(&mut crowd(400));
        let [caller] = heard.as_slice() else {
            panic!("only one has spoken: {heard:?}");
        };
        assert_eq!((caller.received, caller.sent), (1, 1));
        assert_eq!(calls(&caller.told), [42]);
        // Its own messages alone exceed the limit.
        let (heard, _) = heard_counts(&mut crowd(5_000));
        assert!(heard[0].told.is_empty());
        assert_eq!(calls(&heard[0].calls), [42]);
    }
}
