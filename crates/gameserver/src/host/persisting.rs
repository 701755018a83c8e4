//! Players across processes of their world: persisted while they are connected,
//! restored when they come back.

use std::collections::BTreeMap;

use frolic_protocol::persist::{PlayerState, SavedPlayer, UNDELIVERED_BYTES_MAX};
use frolic_protocol::store::HandledCount;
use frolic_world::PlayerNumber;

use super::Host;
use crate::admission::{Identity, ResumeClaims, TOKEN_LIFETIME_S};
use crate::player_sessions::{AWAY_UNDELIVERED_MAX, Cut, Place, PlayerSession, PlayerSessions};
use crate::store::InputWatermarks;

/// Players who are remembered after they left; the platform stores the others.
const REMEMBERED_MAX: usize = 4096;
/// Interval of player checkpoints, in milliseconds: including the write to disk,
/// less than a second of movement can be lost.
const PLAYERS_EVERY_MS: u32 = 800;

/// Limit of unacknowledged messages of all players together in one checkpoint, in
/// bytes.
const UNDELIVERED_TOGETHER_BYTES: usize = 4 * 1024 * 1024;
/// Limit of unacknowledged messages of one player and of all, with the store writes
/// of one tick, in bytes: many of those may wait for a database.
const UNDELIVERED_WITH_STORE_BYTES: (usize, usize) = (4 * 1024, 64 * 1024);
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
        if !player.session.is_empty() && self.returned.len() < AWAY_UNDELIVERED_MAX {
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
                player.undelivered = Vec::new();
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
                undelivered: Vec::new(),
            })
        })
    }

    /// Sends the store requests of scripts, with the counts of handled messages:
    /// the next process must not handle again what this one has written, and must
    /// answer it.
    pub(super) fn ask_store(&mut self) {
        self.persist_newcomers();
        let Self {
            settings,
            player_sessions,
            world,
            ..
        } = self;
        // The same messages may have caused operations. Those are stored with the
        // writes or before them, never after.
        settings.persistence.hold(world);
        let (ops_mark, newest_op) = (settings.persistence.ops_mark(), world.newest_op());
        settings.store.pass_on(world, || {
            let (counts, named_mark) = handled_counts(player_sessions);
            InputWatermarks {
                counts,
                after_mark: named_mark.max(ops_mark),
                newest_op,
            }
        });
    }

    /// Message counts are stored with a player's session, so the session must be
    /// stored first.
    fn persist_newcomers(&mut self) {
        let player_sessions = &self.player_sessions;
        let is_new = |number: &mut PlayerNumber| {
            let player_session = player_sessions.get(*number);
            player_session.is_some_and(|player_session| player_session.named_mark.is_none())
        };
        let newcomers: Vec<PlayerNumber> = self.came_or_went.extract_if(.., is_new).collect();
        self.persist_players(&newcomers, Counted::AsPersisted);
    }

    /// Queues what must be persisted of this tick.
    pub(super) fn persist(&mut self) {
        let counted = self.settled_counts();
        self.persist_ops(counted);
        let tick_hz = self.world.tick_hz();
        let every = (tick_hz * PLAYERS_EVERY_MS / 1000).max(1);
        let tick = self.world.tick();
        let came_or_went = std::mem::take(&mut self.came_or_went);
        let is_time = self.settings.persistence.persists() && tick.is_multiple_of(every);
        if is_time {
            let players = self.checkpoints(counted, |player_session| {
                player_session.connection_id().is_some()
                    || player_session.is_away_with_undelivered()
            });
            self.settings.persistence.players(players);
        }
        self.persist_players(&came_or_went, counted);
        if is_time || self.settings.persistence.has_held(u64::MAX) {
            self.look_at_counts();
        }
        let lifetime = u32::try_from(TOKEN_LIFETIME_S).unwrap_or(u32::MAX);
        if tick == tick_hz.saturating_mul(lifetime) {
            self.settings
                .returning
                .end(self.settings.persistence.is_persistent());
            self.presence_changed = true;
        }
    }

    /// Persists operations, each together with how many messages of each player the
    /// world had handled by then: neither is stored without the other. Operations
    /// wait for pending writes that the same messages may have caused.
    fn persist_ops(&mut self, counted: Counted) {
        let up_to = match counted {
            Counted::Now => self.world.newest_op(),
            Counted::AsSeen => self.last_look.newest_op,
            Counted::AsPersisted => 0,
        };
        if self.settings.persistence.has_held(up_to) {
            let mut room = AWAY_WITH_OP_BYTES;
            let players = self.checkpoints(counted, |player_session| {
                let cut = counted.cut(player_session);
                // A player's message may have caused what disconnected players
                // missed.
                player_session.persisted.received != cut.received
                    || player_session.connection_id().is_none()
                        && player_session.persisted.sent != cut.sent
                        && {
                            let left = room.checked_sub(player_session.left_bytes());
                            room = left.unwrap_or(room);
                            left.is_some()
                        }
            });
            self.settings.persistence.release(up_to, players);
        }
        self.settings.persistence.compact(&self.world);
    }

    /// The counts for checkpoints that are made independently: pending store
    /// requests of scripts may result from the last messages of players. Until they
    /// are answered, those messages are not persisted as handled.
    fn settled_counts(&self) -> Counted {
        let store = &self.settings.store;
        match () {
            () if store.has_answered(store.asked()) => Counted::Now,
            () if store.has_answered(self.last_look.asked) => Counted::AsSeen,
            () => Counted::AsPersisted,
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
            for (_, player_session) in self.player_sessions.iter_mut() {
                player_session.seen = player_session.cut();
            }
        }
    }

    /// The checkpoints of some connected players.
    pub(super) fn checkpoints(
        &mut self,
        counted: Counted,
        mut of: impl FnMut(&PlayerSession) -> bool,
    ) -> Vec<SavedPlayer> {
        let (world, mark) = (&self.world, self.settings.persistence.next_mark());
        let share = self.undelivered_share();
        let player_sessions = self
            .player_sessions
            .iter_mut()
            .filter(|(_, player_session)| of(player_session));
        player_sessions
            .filter_map(|(number, player_session)| {
                let state = world.player_state(number)?;
                Some(saved(player_session, (counted, mark), state, share))
            })
            .collect()
    }

    /// Persists players who have just joined or left, with their last messages and
    /// the effects.
    fn persist_players(&mut self, numbers: &[PlayerNumber], counted: Counted) {
        if numbers.is_empty() {
            return;
        }
        // All at once: they share one mark.
        let persisted = (counted, self.settings.persistence.next_mark());
        let share = self.undelivered_share();
        let Self {
            world,
            player_sessions,
            ..
        } = self;
        let players = numbers.iter().filter_map(|number| {
            let (player_session, state) = (
                player_sessions.get_mut(*number)?,
                world.player_state(*number)?,
            );
            Some(saved(player_session, persisted, state, share))
        });
        let players = players.collect();
        self.settings.persistence.players(players);
    }

    /// Bytes of unacknowledged messages per player in a checkpoint.
    fn undelivered_share(&self) -> usize {
        let sizes = self
            .player_sessions
            .iter()
            .map(|(_, player_session)| player_session.left_bytes());
        undelivered_share(sizes, (UNDELIVERED_BYTES_MAX, UNDELIVERED_TOGETHER_BYTES))
    }

    /// A player leaves for good; in a persistent world they find their place again.
    pub(super) fn persist_leaving(
        &mut self,
        number: PlayerNumber,
        player_session: &mut PlayerSession,
    ) {
        if !self.settings.persistence.persists() {
            return;
        }
        let player_id = player_session.identity.player_id.clone();
        let state = self.world.player_state(number);
        match state.filter(|_| self.settings.persistence.is_persistent()) {
            Some(state) => {
                let player = SavedPlayer {
                    online: false,
                    session: String::new(),
                    received: 0,
                    sent: 0,
                    undelivered: Vec::new(),
                    ..saved(player_session, (Counted::Now, 0), state, 0)
                };
                self.settings.returning.remember(player.clone());
                self.settings.persistence.player(player);
            }
            None => self.settings.persistence.forget(&player_id),
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
    AsPersisted,
}

impl Counted {
    fn cut(self, player_session: &PlayerSession) -> Cut {
        match self {
            Counted::Now => player_session.cut(),
            Counted::AsSeen => player_session.persisted.max(player_session.seen),
            Counted::AsPersisted => player_session.persisted,
        }
    }
}

/// How many bytes each player may use for unacknowledged messages, so that all of
/// these sizes together stay within `together`: most have little.
fn undelivered_share(
    sizes: impl Iterator<Item = usize>,
    (each, together): (usize, usize),
) -> usize {
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
fn handled_counts(player_sessions: &mut PlayerSessions) -> (Vec<HandledCount>, u64) {
    let has_spoken =
        |player_session: &PlayerSession| player_session.store_received != player_session.handled();
    let spoken = player_sessions
        .iter()
        .filter(|(_, player_session)| has_spoken(player_session));
    let sizes = spoken.map(|(_, player_session)| player_session.left_bytes());
    let share = undelivered_share(sizes, UNDELIVERED_WITH_STORE_BYTES);
    let player_sessions = player_sessions
        .iter_mut()
        .map(|(_, player_session)| player_session);
    let mut named_mark = 0;
    let counts = player_sessions
        .filter(|player_session| has_spoken(player_session))
        .map(|player_session| {
            named_mark = named_mark.max(player_session.named_mark.unwrap_or(0));
            handled_count(player_session, share)
        });
    (counts.collect(), named_mark)
}

fn handled_count(player_session: &mut PlayerSession, undelivered_bytes: usize) -> HandledCount {
    let cut = player_session.cut();
    player_session.store_received = cut.received;
    // The last complete checkpoint is better than a part. But no other record says
    // that a call was received.
    let (undelivered, calls) = match player_session.left_bytes() <= undelivered_bytes {
        true => (
            player_session.undelivered(cut, undelivered_bytes),
            Vec::new(),
        ),
        false => (
            Vec::new(),
            player_session.open_calls(cut, undelivered_bytes.max(CALLS_BYTES_MIN)),
        ),
    };
    HandledCount {
        player_id: player_session.identity.player_id.clone(),
        session: player_session.session.clone(),
        received: cut.received,
        sent: cut.sent,
        undelivered,
        calls,
    }
}

/// A player's current state, on the way to the queue of that mark, with up to
/// `undelivered_bytes` of unacknowledged messages.
fn saved(
    player_session: &mut PlayerSession,
    (counted, mark): (Counted, u64),
    state: PlayerState,
    undelivered_bytes: usize,
) -> SavedPlayer {
    let cut = counted.cut(player_session);
    let undelivered = player_session.undelivered(cut, undelivered_bytes);
    player_session.note_persisted(cut);
    player_session.persisted_mark = mark;
    player_session.named_mark.get_or_insert(mark);
    SavedPlayer {
        player_id: player_session.identity.player_id.clone(),
        state,
        online: matches!(player_session.place, Place::Online(_)),
        session: player_session.session.clone(),
        received: cut.received,
        sent: cut.sent,
        undelivered,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use frolic_protocol::resume::PersistedLog;
    use frolic_protocol::{ServerMessage, packet};

    use super::*;
    use crate::incoming::ConnectionId;
    use crate::session::ReliableMessage;

    /// Messages were sent to all players, and one of them has made a call.
    fn crowd(bytes: usize) -> PlayerSessions {
        let mut player_sessions = PlayerSessions::default();
        for number in 1..=200 {
            let identity = Identity {
                player_id: format!("client_{number}"),
                ..Identity::default()
            };
            let mut player_session =
                PlayerSession::new(identity, String::new(), ConnectionId::new(number, 1));
            let message = ServerMessage::Chat {
                from: String::new(),
                text: "x".repeat(bytes),
                player_id: String::new(),
            };
            let reliable = ReliableMessage {
                packet: packet::single(&message).into(),
                message: Arc::new(message),
                echo: None,
            };
            player_session.log.push(reliable, bytes);
            player_sessions.insert(number, player_session);
        }
        if let Some(caller) = player_sessions.get_mut(7) {
            caller.received = 1;
            caller.calls.taken(42, Some(1));
        }
        player_sessions
    }

    fn calls(bytes: &[u8]) -> Vec<u32> {
        let persisted = PersistedLog::from_bytes(bytes, &|_| true);
        let calls = persisted.into_iter().flat_map(|persisted| persisted.calls);
        calls.map(|call| call.id).collect()
    }

    #[test]
    fn a_call_goes_with_a_write_however_many_messages_others_await() {
        let (counts, _) = handled_counts(&mut crowd(400));
        let [caller] = counts.as_slice() else {
            panic!("only one has spoken: {counts:?}");
        };
        assert_eq!((caller.received, caller.sent), (1, 1));
        assert_eq!(calls(&caller.undelivered), [42]);
        // Its own messages alone exceed the limit.
        let (counts, _) = handled_counts(&mut crowd(5_000));
        assert!(counts[0].undelivered.is_empty());
        assert_eq!(calls(&counts[0].calls), [42]);
    }
}
