//! Makes what happens in the world durable: which operations, players and script
//! writes are persisted together, and what may be acknowledged afterwards.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use frolic_fleet_api::ops::LoggedOp;
use frolic_fleet_api::persist::{PlayerState, SavedPlayer, UNDELIVERED_BYTES_MAX};
use frolic_fleet_api::store::{HandledCount, StoreAnswer};
use frolic_protocol::ServerMessage;
use frolic_world::{CommitGate, PlayerNumber, World, input};

use super::commits::Requester;
use super::saving::SavingNotice;
use crate::admission::{Identity, ResumeClaims, TOKEN_LIFETIME_S};
use crate::persistence::PersistenceClient;
use crate::player_sessions::{AWAY_UNDELIVERED_MAX, Counted, Place, PlayerSession, PlayerSessions};
use crate::sessions::Sessions;
use crate::store::{InputWatermarks, StoreClient};
use crate::stored::Stored;

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
    /// Whether tokens of that process have expired since the last check.
    expired: bool,
}

impl Returning {
    /// The players that an earlier process of this world persisted.
    pub fn new(players: Vec<SavedPlayer>) -> Self {
        let players = players.into_iter().take(REMEMBERED_MAX);
        Self {
            players: players
                .map(|player| (player.player_id.clone(), player))
                .collect(),
            ..Self::default()
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
        self.expired = true;
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

/// Persists a world and its players.
pub(super) struct Persister {
    client: PersistenceClient,
    store: StoreClient,
    returning: Returning,
    /// Answers to commands. Their number is bounded by the operations that may wait.
    commits: CommitGate<Requester>,
    /// The last snapshot of how far players' messages were handled.
    last_look: Look,
    saving: SavingNotice,
}

impl Persister {
    /// Persists through these clients.
    pub fn new(client: PersistenceClient, store: StoreClient, returning: Returning) -> Self {
        Self {
            client,
            store,
            returning,
            commits: CommitGate::default(),
            last_look: Look::default(),
            saving: SavingNotice::default(),
        }
    }

    /// Whether anything is persisted at all.
    pub fn persists(&self) -> bool {
        self.client.persists()
    }

    /// Players of an earlier process of the world.
    pub fn returning(&self) -> &Returning {
        &self.returning
    }

    /// Whether places of players of an earlier process have been given up since the
    /// last call.
    pub fn take_expired(&mut self) -> bool {
        std::mem::take(&mut self.returning.expired)
    }

    /// The last state of a player who is not in the world, if it is known.
    pub fn place_of(&mut self, identity: &Identity) -> Option<SavedPlayer> {
        let known = self.returning.take(&identity.player_id);
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

    /// The Store has answered requests of scripts.
    pub fn store_answered(&mut self, answers: Vec<StoreAnswer>, world: &mut World) {
        self.store.note_answers(answers.len());
        for answer in answers {
            world.apply(input::StoreAnswered(answer));
        }
    }

    /// Whether all requests of scripts to the Store are answered.
    pub fn store_has_settled(&self) -> bool {
        self.store.has_answered(self.store.asked())
    }

    /// Operations and players were persisted.
    pub fn persisted(&self, stored: Stored, world: &mut World, players: &mut PlayerSessions) {
        let up_to = stored.seq();
        world.apply(input::OpsPersisted { up_to });
        players.note_stored(stored.mark());
    }

    /// Answers a command once operation `op` is persisted.
    pub fn answer_after(&mut self, op: u64, requester: Requester) {
        self.commits.hold(op, requester);
    }

    /// Answers the commands that are persisted by now. Where operations are never
    /// stored, they delay no answer.
    pub fn answer_persisted(&mut self, world: &mut World, sessions: &mut Sessions) {
        if !self.client.is_persistent() {
            self.client.hold(world);
        }
        let due = self.commits.release(world.persisted_op());
        due.for_each(|requester| requester.acknowledge(sessions));
    }

    /// Requests a checkpoint of the world with the next batch.
    pub fn checkpoint_soon(&mut self) {
        self.client.checkpoint_soon();
    }

    /// Operations since the last call that are not going to be stored.
    pub fn take_unstored(&mut self) -> Vec<LoggedOp> {
        self.client.take_unstored()
    }

    /// The notice for all players when saving begins to be delayed, and when it no
    /// longer is.
    pub fn notice_saving(&mut self, now: Instant) -> Option<ServerMessage> {
        let since = self.client.waiting_since();
        let waited = since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        self.saving.update(waited)
    }

    /// The same for a player who has just joined.
    pub fn saving_notice(&self) -> Option<ServerMessage> {
        self.saving.for_newcomer()
    }

    /// Sends the store requests of scripts, with the counts of handled messages:
    /// the next process must not handle again what this one has written, and must
    /// answer it.
    pub fn ask_store(&mut self, world: &mut World, players: &mut PlayerSessions) {
        // Message counts are stored with a player's session, so the session must be
        // stored first.
        let newcomers = players.take_newcomers();
        self.persist_players(&newcomers, Counted::AsPersisted, world, players);
        // The same messages may have caused operations. Those are stored with the
        // writes or before them, never after.
        self.client.hold(world);
        let (ops_mark, newest_op) = (self.client.ops_mark(), world.newest_op());
        self.store.pass_on(world, || {
            let (counts, named_mark) = handled_counts(players);
            InputWatermarks {
                counts,
                after_mark: named_mark.max(ops_mark),
                newest_op,
            }
        });
    }

    /// Queues what must be persisted of this tick.
    pub fn persist(&mut self, world: &World, players: &mut PlayerSessions) {
        let counted = self.settled_counts();
        self.persist_ops(counted, world, players);
        let (tick, tick_hz) = (world.tick(), world.tick_hz());
        let every = (tick_hz * PLAYERS_EVERY_MS / 1000).max(1);
        let came_or_went = players.take_came_or_went();
        let is_time = self.client.persists() && tick.is_multiple_of(every);
        if is_time {
            let players = self.checkpoints(counted, world, players, |player_session| {
                player_session.connection_id().is_some()
                    || player_session.is_away_with_undelivered()
            });
            self.client.players(players);
        }
        self.persist_players(&came_or_went, counted, world, players);
        if is_time || self.client.has_held(u64::MAX) {
            self.look_at_counts(world, players);
        }
        let lifetime = u32::try_from(TOKEN_LIFETIME_S).unwrap_or(u32::MAX);
        if tick == tick_hz.saturating_mul(lifetime) {
            self.returning.end(self.client.is_persistent());
        }
    }

    /// Persists operations, each together with how many messages of each player the
    /// world had handled by then: neither is stored without the other. Operations
    /// wait for pending writes that the same messages may have caused.
    fn persist_ops(&mut self, counted: Counted, world: &World, players: &mut PlayerSessions) {
        let up_to = match counted {
            Counted::Now => world.newest_op(),
            Counted::AsObserved => self.last_look.newest_op,
            Counted::AsPersisted => 0,
        };
        if self.client.has_held(up_to) {
            let mut room = AWAY_WITH_OP_BYTES;
            let players = self.checkpoints(counted, world, players, |player_session| {
                let cut = player_session
                    .progress
                    .moment(counted, player_session.cut());
                let persisted = player_session.progress.persisted();
                // A player's message may have caused what disconnected players
                // missed.
                persisted.received != cut.received
                    || player_session.connection_id().is_none() && persisted.sent != cut.sent && {
                        let left = room.checked_sub(player_session.left_bytes());
                        room = left.unwrap_or(room);
                        left.is_some()
                    }
            });
            self.client.release(up_to, players);
        }
        self.client.compact(world);
    }

    /// The counts for checkpoints that are made independently: pending store
    /// requests of scripts may result from the last messages of players. Until they
    /// are answered, those messages are not persisted as handled.
    fn settled_counts(&self) -> Counted {
        if self.store_has_settled() {
            Counted::Now
        } else if self.store.has_answered(self.last_look.asked) {
            Counted::AsObserved
        } else {
            Counted::AsPersisted
        }
    }

    /// Records the handled messages of players, and the store requests and
    /// operations of scripts by now: once those requests are answered, that much is
    /// complete.
    fn look_at_counts(&mut self, world: &World, players: &mut PlayerSessions) {
        if self.store.has_answered(self.last_look.asked) {
            self.last_look = Look {
                asked: self.store.asked(),
                newest_op: world.newest_op(),
            };
            for (_, player_session) in players.iter_mut() {
                player_session.progress.observe(player_session.cut());
            }
        }
    }

    /// The checkpoints of some players.
    fn checkpoints(
        &self,
        counted: Counted,
        world: &World,
        players: &mut PlayerSessions,
        mut of: impl FnMut(&PlayerSession) -> bool,
    ) -> Vec<SavedPlayer> {
        let mark = self.client.next_mark();
        let share = undelivered_share_of(players);
        let players = players
            .iter_mut()
            .filter(|(_, player_session)| of(player_session));
        players
            .filter_map(|(number, player_session)| {
                let state = world.player_state(number)?;
                Some(saved(player_session, (counted, mark), state, share))
            })
            .collect()
    }

    /// Persists players who have just joined or left, with their last messages and
    /// the effects. All at once: they share one mark.
    fn persist_players(
        &mut self,
        numbers: &[PlayerNumber],
        counted: Counted,
        world: &World,
        players: &mut PlayerSessions,
    ) {
        if numbers.is_empty() {
            return;
        }
        let persisted = (counted, self.client.next_mark());
        let share = undelivered_share_of(players);
        let saved = numbers.iter().filter_map(|number| {
            let player_session = players.get_mut(*number)?;
            let state = world.player_state(*number)?;
            Some(saved(player_session, persisted, state, share))
        });
        let saved = saved.collect();
        self.client.players(saved);
    }

    /// A player leaves for good; in a persistent world they find their place again.
    pub fn player_leaves(
        &mut self,
        number: PlayerNumber,
        player_session: &mut PlayerSession,
        world: &World,
    ) {
        if !self.client.persists() {
            return;
        }
        let state = world.player_state(number);
        match state.filter(|_| self.client.is_persistent()) {
            Some(state) => {
                let player = SavedPlayer {
                    online: false,
                    session: String::new(),
                    received: 0,
                    sent: 0,
                    undelivered: Vec::new(),
                    ..saved(player_session, (Counted::Now, 0), state, 0)
                };
                self.returning.remember(player.clone());
                self.client.player(player);
            }
            None => self.client.forget(&player_session.identity.player_id),
        }
    }

    /// The world has closed: hands what is left to storage.
    pub fn finish(&mut self, world: &mut World, players: &mut PlayerSessions) {
        let players = self.checkpoints(Counted::Now, world, players, |_| true);
        self.client.finish(world, players);
    }
}

/// Bytes of unacknowledged messages per player in a checkpoint.
fn undelivered_share_of(players: &PlayerSessions) -> usize {
    let sizes = players
        .iter()
        .map(|(_, player_session)| player_session.left_bytes());
    undelivered_share(sizes, (UNDELIVERED_BYTES_MAX, UNDELIVERED_TOGETHER_BYTES))
}

/// The state when players were last examined.
#[derive(Clone, Copy, Default)]
struct Look {
    /// Store requests that scripts had made.
    asked: u64,
    /// Number of the newest operation.
    newest_op: u64,
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
    if total <= together {
        each
    } else {
        (together / with_some.max(1)).min(each)
    }
}

/// The handled-message counts of players who sent something since scripts last
/// wrote to the store; and the mark of the queue that has all their sessions.
fn handled_counts(player_sessions: &mut PlayerSessions) -> (Vec<HandledCount>, u64) {
    let has_spoken = |player_session: &PlayerSession| {
        player_session.progress.with_store() != player_session.handled()
    };
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
            named_mark = named_mark.max(player_session.progress.named_mark().unwrap_or(0));
            handled_count(player_session, share)
        });
    (counts.collect(), named_mark)
}

fn handled_count(player_session: &mut PlayerSession, undelivered_bytes: usize) -> HandledCount {
    let cut = player_session.cut();
    player_session.progress.note_store_write(cut.received);
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
    let cut = player_session
        .progress
        .moment(counted, player_session.cut());
    let undelivered = player_session.undelivered(cut, undelivered_bytes);
    player_session.note_persisted(cut, mark);
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
    use crate::connection::ConnectionId;
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
