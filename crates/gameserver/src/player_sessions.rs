//! Player sessions: the players of a world, with or without a connection.

mod calls;
mod delivery;
mod player_session;
mod progress;

use std::collections::BTreeMap;

use frolic_world::PlayerNumber;

pub use self::player_session::{Held, Place, PlayerSession, Turn};
pub use self::progress::Counted;

/// Limit of disconnected players in a heartbeat; the places of more are not
/// reserved.
pub const AWAY_UNDELIVERED_MAX: usize = 1000;

/// All players in the world, connected or expected back.
#[derive(Default)]
pub struct PlayerSessions {
    by_number: BTreeMap<PlayerNumber, PlayerSession>,
    online: u32,
    /// Players who used their message quota in this tick, or have messages waiting:
    /// only their sessions are checked when the next tick begins.
    spoken: Vec<PlayerNumber>,
    /// Players whose connection began or ended, until they are persisted.
    came_or_went: Vec<PlayerNumber>,
    /// A player joined, left or lost their connection.
    changed: bool,
}

impl PlayerSessions {
    /// Adds a player's session.
    pub fn insert(&mut self, number: PlayerNumber, player_session: PlayerSession) {
        self.online += u32::from(player_session.connection_id().is_some());
        if let Some(old) = self.by_number.insert(number, player_session) {
            self.online -= u32::from(old.connection_id().is_some());
        }
    }

    /// Removes a player's session.
    pub fn remove(&mut self, number: PlayerNumber) -> Option<PlayerSession> {
        self.changed = true;
        let player_session = self.by_number.remove(&number)?;
        self.online -= u32::from(player_session.connection_id().is_some());
        Some(player_session)
    }

    /// Changes where a player is.
    pub fn move_to(&mut self, number: PlayerNumber, place: Place) {
        if let Some(player_session) = self.by_number.get_mut(&number) {
            self.online -= u32::from(player_session.connection_id().is_some());
            player_session.place = place;
            self.online += u32::from(player_session.connection_id().is_some());
            self.came_or_went.push(number);
            self.changed = true;
        }
    }

    /// Whether a player joined, left or lost their connection since the last call.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Players whose connection began or ended since the last call.
    pub fn take_came_or_went(&mut self) -> Vec<PlayerNumber> {
        std::mem::take(&mut self.came_or_went)
    }

    /// Those of them whose session was never persisted.
    pub fn take_newcomers(&mut self) -> Vec<PlayerNumber> {
        let by_number = &self.by_number;
        let is_new = |number: &mut PlayerNumber| {
            let player_session = by_number.get(number);
            player_session
                .is_some_and(|player_session| player_session.progress.named_mark().is_none())
        };
        self.came_or_went.extract_if(.., is_new).collect()
    }

    /// A player's session.
    pub fn get(&self, number: PlayerNumber) -> Option<&PlayerSession> {
        self.by_number.get(&number)
    }

    /// A player's session.
    pub fn get_mut(&mut self, number: PlayerNumber) -> Option<&mut PlayerSession> {
        self.by_number.get_mut(&number)
    }

    /// Every player's session.
    pub fn iter(&self) -> impl Iterator<Item = (PlayerNumber, &PlayerSession)> {
        self.by_number
            .iter()
            .map(|(number, player_session)| (*number, player_session))
    }

    /// Every player's session.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (PlayerNumber, &mut PlayerSession)> {
        self.by_number
            .iter_mut()
            .map(|(number, player_session)| (*number, player_session))
    }

    /// Players with a connection.
    pub fn online(&self) -> u32 {
        self.online
    }

    /// Players with a connection, and those who may reconnect.
    pub fn taken(&self) -> u32 {
        self.by_number.len() as u32
    }

    /// Persistent ids of players who may reconnect, as many as a heartbeat takes.
    pub fn away(&self) -> Vec<String> {
        if self.online == self.taken() {
            return Vec::new();
        }
        let away = self
            .iter()
            .filter(|(_, player_session)| player_session.connection_id().is_none());
        away.map(|(_, player_session)| player_session.identity.player_id.clone())
            .take(AWAY_UNDELIVERED_MAX)
            .collect()
    }

    /// The player with a persistent id.
    pub fn of_player(&self, player_id: &str) -> Option<PlayerNumber> {
        self.find(|player_session| player_session.identity.player_id == player_id)
    }

    /// The player with a persistent id, if they are connected.
    pub fn connected(&self, player_id: &str) -> Option<PlayerNumber> {
        self.find(|player_session| {
            player_session.identity.player_id == player_id
                && player_session.connection_id().is_some()
        })
    }

    /// The player that a resume token refers to.
    pub fn of_nonce(&self, nonce: &str) -> Option<PlayerNumber> {
        self.find(|player_session| !nonce.is_empty() && player_session.nonce == nonce)
    }

    /// The player whose previous connection a resume token refers to, while nothing
    /// was received on the current one; or at any time, if a ticket has proven that
    /// this is the player.
    pub fn before_nonce(&self, player_id: Option<&str>, nonce: &str) -> Option<PlayerNumber> {
        self.find(|player_session| {
            let vouched = player_id.is_some_and(|id| id == player_session.identity.player_id);
            let is_confirmed = player_session.unconfirmed.is_none();
            !nonce.is_empty() && player_session.last_nonce == nonce && (vouched || !is_confirmed)
        })
    }

    fn find(&self, wanted: impl Fn(&PlayerSession) -> bool) -> Option<PlayerNumber> {
        let mut player_sessions = self.iter();
        player_sessions
            .find(|(_, player_session)| wanted(player_session))
            .map(|(number, _)| number)
    }

    /// Accepts an event or a call of a player, in order.
    pub fn take_turn(&mut self, number: PlayerNumber, held: Held) -> Option<Turn> {
        let player_session = self.by_number.get_mut(&number)?;
        if player_session.taken == 0 && player_session.held.is_empty() {
            self.spoken.push(number);
        }
        Some(player_session.take_turn(held))
    }

    /// Begins a tick: all players have their full message quota again. Returns the
    /// players whose messages wait.
    pub fn begin_tick(&mut self, waiting: &mut Vec<PlayerNumber>) {
        let by_number = &mut self.by_number;
        self.spoken.retain(|number| {
            let Some(player_session) = by_number.get_mut(number) else {
                return false;
            };
            player_session.taken = 0;
            !player_session.held.is_empty()
        });
        waiting.extend_from_slice(&self.spoken);
    }

    /// Everything queued for persistence up to this mark is stored.
    pub fn note_stored(&mut self, mark: u64) {
        for player_session in self.by_number.values_mut() {
            player_session.progress.note_stored(mark);
        }
    }

    /// Players whose time to reconnect is over.
    pub fn overdue(&self, tick: u32, overdue: &mut Vec<PlayerNumber>) {
        if self.online as usize == self.by_number.len() {
            return;
        }
        overdue.extend(self.iter().filter_map(
            |(number, player_session)| match player_session.place {
                Place::Away { until_tick } if until_tick <= tick => Some(number),
                _ => None,
            },
        ));
    }
}

#[cfg(test)]
mod tests {
    use frolic_protocol::ClientMessage;

    use super::*;
    use crate::admission::Identity;
    use crate::connection::ConnectionId;

    fn player_session(player_id: &str, connection_id: ConnectionId) -> PlayerSession {
        let identity = Identity {
            player_id: player_id.into(),
            name: "Ada".into(),
            ..Identity::default()
        };
        PlayerSession::new(identity, format!("nonce of {player_id}"), connection_id)
    }

    /// A player can resume within 60 s; after that the place is free for
    /// others.
    #[test]
    fn a_lost_player_has_sixty_seconds_to_come_back() {
        for tick_hz in [20, 60] {
            let mut player_sessions = PlayerSessions::default();
            player_sessions.insert(1, player_session("client_1", ConnectionId::new(7, 1)));
            player_sessions.insert(2, player_session("client_2", ConnectionId::new(8, 1)));
            let lost_at = 1_000;
            player_sessions.move_to(1, Place::away(lost_at, tick_hz));
            assert_eq!((player_sessions.online(), player_sessions.taken()), (1, 2));
            let overdue = |player_sessions: &PlayerSessions, after_s: u32| {
                let mut overdue = Vec::new();
                player_sessions.overdue(lost_at + after_s * tick_hz, &mut overdue);
                overdue
            };
            assert_eq!(overdue(&player_sessions, 0), [] as [PlayerNumber; 0]);
            assert_eq!(overdue(&player_sessions, 59), [] as [PlayerNumber; 0]);
            assert_eq!(player_sessions.of_nonce("nonce of client_1"), Some(1));
            assert_eq!(
                overdue(&player_sessions, 61),
                [1],
                "and no connected player"
            );
            // A player who has reconnected is not overdue, however long ago they
            // were lost.
            player_sessions.move_to(1, Place::Online(ConnectionId::new(9, 1)));
            assert_eq!(overdue(&player_sessions, 3_600), [] as [PlayerNumber; 0]);
        }
    }

    #[test]
    fn a_burst_of_events_waits_its_turn_and_only_a_flood_is_refused() {
        let mut player_sessions = PlayerSessions::default();
        let connection_id = ConnectionId::new(7, 1);
        player_sessions.insert(1, player_session("client_1", connection_id));
        let chat = |n: u32| ClientMessage::Chat {
            text: n.to_string(),
        };
        let mut taken = Vec::new();
        let mut refused = 0;
        for n in 0..600 {
            player_sessions.get_mut(1).unwrap().received += 1;
            let held = Held {
                connection_id,
                number: Some(n + 1),
                seq: None,
                message: chat(n),
            };
            match player_sessions.take_turn(1, held).unwrap() {
                Turn::Now(message) => taken.push(message),
                Turn::Later => {}
                Turn::Never => refused += 1,
            }
        }
        assert_eq!((taken.len(), refused), (30, 600 - 30 - 500));
        let handled = |player_sessions: &PlayerSessions| player_sessions.get(1).unwrap().handled();
        assert_eq!(
            handled(&player_sessions),
            30,
            "what was refused came behind the rest"
        );
        for _ in 0..20 {
            let mut waiting = Vec::new();
            player_sessions.begin_tick(&mut waiting);
            for number in waiting {
                while let Some(held) = player_sessions.get_mut(number).unwrap().next_held() {
                    taken.push(held.message);
                }
            }
        }
        assert_eq!(taken, (0..530).map(chat).collect::<Vec<_>>());
        assert_eq!(handled(&player_sessions), 600);
    }
}
