//! Players between two processes of their world: kept while they are here,
//! found again when they come back (DUR-2, NET-9).

use std::collections::BTreeMap;

use frolic_protocol::keep::{PlayerState, SavedPlayer, TOLD_BYTES_MAX};
use frolic_protocol::store::HeardCount;
use frolic_world::PlayerNumber;

use super::Host;
use crate::admission::{Identity, ResumeClaims, TOKEN_LIFETIME_S};
use crate::seats::{AWAY_TOLD_MAX, Place, Seat};

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
        let Self {
            settings,
            seats,
            world,
            ..
        } = self;
        settings.store.pass_on(world, || {
            let (each, together) = TOLD_WITH_STORE_BYTES;
            let share = seats.told_share(each, together);
            let seats = seats.iter_mut().map(|(_, seat)| seat);
            let spoken = seats.filter(|seat| seat.store_received != seat.handled());
            spoken.map(|seat| heard_count(seat, share)).collect()
        });
    }

    /// Takes what lasts of this tick on its way.
    pub(super) fn keep(&mut self) {
        // With an operation goes how many messages of each player the world had
        // heard by then: neither is stored without the other.
        let with_ops = self.settings.keeper.is_persistent() && self.world.has_ops();
        let players = if with_ops {
            let mut room = AWAY_WITH_OP_BYTES;
            self.checkpoints(Counted::Now, |seat| {
                // Somebody's words may be what those who are away missed.
                seat.kept.received != seat.handled()
                    || seat.is_away_with_news() && {
                        let left = room.checked_sub(seat.left_bytes());
                        room = left.unwrap_or(room);
                        left.is_some()
                    }
            })
        } else {
            Vec::new()
        };
        self.settings.keeper.pass_on(&mut self.world, players);
        let tick_hz = self.world.tick_hz();
        let every = (tick_hz * PLAYERS_EVERY_MS / 1000).max(1);
        let tick = self.world.tick();
        let came_or_went = std::mem::take(&mut self.came_or_went);
        let counted = self.heard_and_done();
        if self.settings.keeper.keeps() && tick.is_multiple_of(every) {
            let players = self.checkpoints(counted, |seat| {
                seat.link().is_some() || seat.is_away_with_news()
            });
            self.settings.keeper.players(players);
            self.look_at_counts();
        }
        self.keep_those(&came_or_went, counted);
        let lifetime = u32::try_from(TOKEN_LIFETIME_S).unwrap_or(u32::MAX);
        if tick == tick_hz.saturating_mul(lifetime) {
            self.settings
                .returning
                .end(self.settings.keeper.is_persistent());
            self.presence_changed = true;
        }
    }

    /// How far checkpoints of players go that are made beside everything else:
    /// what scripts have on its way to the store may be about what players said
    /// last. Until it is there, they are not kept as heard.
    fn heard_and_done(&self) -> Counted {
        let store = &self.settings.store;
        match () {
            () if store.has_answered(store.asked()) => Counted::Now,
            () if store.has_answered(self.asked_when_seen) => Counted::AsSeen,
            () => Counted::AsKept,
        }
    }

    /// Notes how far players have been heard, and what scripts have asked of
    /// the store by now: once that is answered, so much is done.
    fn look_at_counts(&mut self) {
        let store = &self.settings.store;
        if store.has_answered(self.asked_when_seen) {
            self.asked_when_seen = store.asked();
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
        let share = self.seats.told_share(TOLD_BYTES_MAX, TOLD_TOGETHER_BYTES);
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
        let kept = (counted, self.settings.keeper.next_mark());
        let share = self.seats.told_share(TOLD_BYTES_MAX, TOLD_TOGETHER_BYTES);
        for number in numbers {
            let state = self.world.player_state(*number);
            if let (Some(seat), Some(state)) = (self.seats.get_mut(*number), state) {
                let player = saved(seat, kept, state, share);
                self.settings.keeper.player(player);
            }
        }
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

fn heard_count(seat: &mut Seat, told_bytes: usize) -> HeardCount {
    let cut = seat.cut();
    seat.store_received = cut.received;
    HeardCount {
        player_id: seat.identity.player_id.clone(),
        session: seat.session.clone(),
        received: cut.received,
        sent: cut.sent,
        // What is kept of it already is better than a part of it.
        told: match seat.left_bytes() <= told_bytes {
            true => seat.left_to_tell(cut, told_bytes),
            false => Vec::new(),
        },
    }
}

/// A player as they are now, on the way to the pile of that mark, with up to so
/// many bytes of what they are to be told.
fn saved(
    seat: &mut Seat,
    (counted, mark): (Counted, u64),
    state: PlayerState,
    told_bytes: usize,
) -> SavedPlayer {
    let cut = match counted {
        Counted::Now => seat.cut(),
        Counted::AsSeen => seat.kept.max(seat.seen),
        Counted::AsKept => seat.kept,
    };
    let told = seat.left_to_tell(cut, told_bytes);
    seat.note_kept(cut);
    seat.kept_mark = mark;
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
