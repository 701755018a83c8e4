//! Players between two processes of their world: kept while they are here,
//! found again when they come back.

use std::collections::BTreeMap;

use frolic_protocol::keep::{PlayerState, SavedPlayer, TOLD_BYTES_MAX};
use frolic_protocol::store::HeardCount;
use frolic_world::PlayerNumber;

use super::Host;
use crate::admission::{Identity, ResumeClaims, TOKEN_LIFETIME_S};
use crate::seats::{AWAY_TOLD_MAX, Cut, Place, Seat, Seats};
use crate::store::InputWatermarks;

/// Players that are remembered after they left; the platform knows the others.
const REMEMBERED_MAX: usize = 4096;
/// Between two checkpoints of players, in milliseconds: with the way to the
/// disk, less than a second of movement can be lost.
const PLAYERS_EVERY_MS: u32 = 800;

/// Bytes of what is left to tell to all players together, in one checkpoint.
const TOLD_TOGETHER_BYTES: usize = 4 * 1024 * 1024;
/// Bytes of what is left to tell to one player and to all, with what scripts
/// write to the store in one tick: many of those may wait for a database.
const TOLD_WITH_STORE_BYTES: (usize, usize) = (4 * 1024, 64 * 1024);
/// Bytes of one player's open calls that fit beside a write in any case.
const CALLS_BYTES_MIN: usize = 1024;
/// Bytes of what is left to tell to those who are away, with one operation. More
/// of it waits for the next checkpoint of all.
const AWAY_WITH_OP_BYTES: usize = 64 * 1024;

/// Where players were who are not here.
#[derive(Default)]
pub struct Returning {
    players: BTreeMap<String, SavedPlayer>,
    /// Those of an earlier process who have come back.
    returned: Vec<String>,
}

impl Returning {
    /// Those that an earlier process of this world knew.
    pub fn new(players: Vec<SavedPlayer>) -> Self {
        let players = players.into_iter().take(REMEMBERED_MAX);
        Self {
            players: players
                .map(|player| (player.player_id.clone(), player))
                .collect(),
            returned: Vec::new(),
        }
    }

    /// Lasting ids of those who were in an earlier process and are here again:
    /// as long as somebody may hold their places.
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

    /// Whether a player was in the world, or might have come back to it, when
    /// an earlier process ended.
    pub fn expects(&self, player_id: &str) -> bool {
        let player = self.players.get(player_id);
        player.is_some_and(|player| !player.session.is_empty())
    }

    /// Whether it is the session of a token in which they were then. An older
    /// version gave tokens without one.
    pub fn knows(&self, claims: &ResumeClaims) -> bool {
        let player = self.players.get(&claims.identity.player_id);
        let session = &claims.session;
        player.is_some_and(|player| player.session == *session && !session.is_empty())
    }

    /// Nobody comes back by a token of an earlier process any more. Where they
    /// were lasts in a world that is kept.
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
    /// Where a player goes on who is not in the world, if that is known.
    pub(super) fn place_of(&mut self, identity: &Identity) -> Option<SavedPlayer> {
        let known = self.settings.returning.take(&identity.player_id);
        known.or_else(|| {
            // A ticket says it only where worlds are kept.
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

    /// Passes on what scripts asked of the store, with how far players had
    /// been heard by then: a process that follows must not be told again what
    /// this one has written, and has to answer it.
    pub(super) fn ask_store(&mut self) {
        self.keep_newcomers();
        let Self {
            settings,
            seats,
            world,
            ..
        } = self;
        // The same words may have caused operations. Those are stored with the
        // writes or before them, and never behind.
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

    /// How far somebody was heard is noted with their session, so that goes
    /// ahead of what they say.
    fn keep_newcomers(&mut self) {
        let seats = &self.seats;
        let is_new = |number: &mut PlayerNumber| {
            let seat = seats.get(*number);
            seat.is_some_and(|seat| seat.named_mark.is_none())
        };
        let newcomers: Vec<PlayerNumber> = self.came_or_went.extract_if(.., is_new).collect();
        self.keep_those(&newcomers, Counted::AsKept);
    }

    /// Takes what lasts of this tick on its way.
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

    /// Has operations stored, each together with how many messages of each player
    /// the world had heard by then: neither is stored without the other. While
    /// writes are on their way that the same messages may have caused,
    /// operations wait for those.
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
                // Somebody's words may be what those who are away missed.
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

    /// How far checkpoints of players go that are made beside everything else:
    /// what scripts have on its way to the store may be about what players said
    /// last. Until it is there, they are not kept as heard.
    fn heard_and_done(&self) -> Counted {
        let store = &self.settings.store;
        match () {
            () if store.has_answered(store.asked()) => Counted::Now,
            () if store.has_answered(self.last_look.asked) => Counted::AsSeen,
            () => Counted::AsKept,
        }
    }

    /// Notes how far players have been heard, and what scripts have asked of
    /// the store and done by now: once the former is answered, so much is done.
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

    /// The checkpoints of some of those who are here.
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

    /// Keeps those who have just come or gone, with what they said last and what
    /// came of it.
    fn keep_those(&mut self, numbers: &[PlayerNumber], counted: Counted) {
        if numbers.is_empty() {
            return;
        }
        // All at once: they have one mark.
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

    /// Bytes of what is left to tell to one player, in a checkpoint.
    fn told_share(&self) -> usize {
        let sizes = self.seats.iter().map(|(_, seat)| seat.left_bytes());
        told_share(sizes, (TOLD_BYTES_MAX, TOLD_TOGETHER_BYTES))
    }

    /// A player leaves for good; in a world that is kept they find their place
    /// again.
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

/// What there was when players were looked at.
#[derive(Clone, Copy, Default)]
pub(super) struct Look {
    /// What scripts had asked of the store.
    asked: u64,
    /// Number of the newest operation.
    newest_op: u64,
}

/// How many messages of a player are kept as handled.
#[derive(Clone, Copy)]
pub(super) enum Counted {
    /// All that were.
    Now,
    /// As many as at the last look.
    AsSeen,
    /// As many as before.
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

/// How many bytes each may have of what is left to tell, so that it is no more
/// than `together` of all of these sizes: most have little.
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

/// How far those have been heard who have said something since scripts last
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
    // What is kept of it already is better than a part of it. But nobody else
    // says that a call was heard.
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

/// A player as they are now, on the way to the queue of that mark, with up to so
/// many bytes of what they are to be told.
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

    /// Everybody has been told something, and one of them has called.
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
    fn a_call_goes_with_a_write_however_many_others_have_something_to_hear() {
        let (heard, _) = heard_counts(&mut crowd(400));
        let [caller] = heard.as_slice() else {
            panic!("only one has spoken: {heard:?}");
        };
        assert_eq!((caller.received, caller.sent), (1, 1));
        assert_eq!(calls(&caller.told), [42]);
        // It alone has too much to hear.
        let (heard, _) = heard_counts(&mut crowd(5_000));
        assert!(heard[0].told.is_empty());
        assert_eq!(calls(&heard[0].calls), [42]);
    }
}
