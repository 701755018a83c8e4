//! Seats: a player's place in the world, with or without a connection.

mod calls;
mod seat;

use std::collections::BTreeMap;

use frolic_world::PlayerNumber;

pub use self::seat::{Cut, Held, Place, Seat, Turn};

/// Limit of disconnected players in a heartbeat; the places of more are not
/// reserved.
pub const AWAY_TOLD_MAX: usize = 1000;

/// All players in the world, connected or expected back.
#[derive(Default)]
pub struct Seats {
    by_number: BTreeMap<PlayerNumber, Seat>,
    online: u32,
    /// Players who used their message quota in this tick, or have messages waiting:
    /// only their seats are checked when the next tick begins.
    spoken: Vec<PlayerNumber>,
}

impl Seats {
    /// Adds a player's seat.
    pub fn insert(&mut self, number: PlayerNumber, seat: Seat) {
        self.online += u32::from(seat.link().is_some());
        if let Some(old) = self.by_number.insert(number, seat) {
            self.online -= u32::from(old.link().is_some());
        }
    }

    /// Removes a seat.
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

    /// Players with a connection, and those who may reconnect.
    pub fn taken(&self) -> u32 {
        self.by_number.len() as u32
    }

    /// Persistent ids of players who may reconnect, as many as a heartbeat takes.
    pub fn away(&self) -> Vec<String> {
        if self.online == self.taken() {
            return Vec::new();
        }
        let away = self.iter().filter(|(_, seat)| seat.link().is_none());
        away.map(|(_, seat)| seat.identity.player_id.clone())
            .take(AWAY_TOLD_MAX)
            .collect()
    }

    /// The seat of a persistent id.
    pub fn of_player(&self, player_id: &str) -> Option<PlayerNumber> {
        self.find(|seat| seat.identity.player_id == player_id)
    }

    /// The seat that a resume token refers to.
    pub fn of_nonce(&self, nonce: &str) -> Option<PlayerNumber> {
        self.find(|seat| !nonce.is_empty() && seat.nonce == nonce)
    }

    /// The seat whose previous connection a resume token refers to, while nothing
    /// was received on the current one; or at any time, if a ticket has proven that
    /// this is the player.
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

    /// Accepts an event or a call of a player, in order.
    pub fn take_turn(&mut self, number: PlayerNumber, held: Held) -> Option<Turn> {
        let seat = self.by_number.get_mut(&number)?;
        if seat.taken == 0 && seat.held.is_empty() {
            self.spoken.push(number);
        }
        Some(seat.take_turn(held))
    }

    /// Begins a tick: all players have their full message quota again. Returns the
    /// players whose messages wait.
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

    /// Everything queued for persistence up to this mark is stored.
    pub fn note_stored(&mut self, mark: u64) {
        for seat in self.by_number.values_mut() {
            seat.note_stored(mark);
        }
    }

    /// Players whose time to reconnect is over.
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
    use frolic_protocol::ClientMessage;

    use super::*;
    use crate::admission::Identity;
    use crate::link::ConnectionId;

    fn seat(player_id: &str, link: ConnectionId) -> Seat {
        let identity = Identity {
            player_id: player_id.into(),
            name: "Ada".into(),
            ..Identity::default()
        };
        Seat::new(identity, format!("nonce of {player_id}"), link)
    }

    /// A player who reconnects within 60 s has their seat; after that it is free
    /// for others.
    #[test]
    fn a_lost_player_has_sixty_seconds_to_come_back() {
        for tick_hz in [20, 60] {
            let mut seats = Seats::default();
            seats.insert(1, seat("client_1", ConnectionId::new(7, 1)));
            seats.insert(2, seat("client_2", ConnectionId::new(8, 1)));
            let lost_at = 1_000;
            seats.move_to(1, Place::away(lost_at, tick_hz));
            assert_eq!((seats.online(), seats.taken()), (1, 2));
            let overdue = |seats: &Seats, after_s: u32| {
                let mut overdue = Vec::new();
                seats.overdue(lost_at + after_s * tick_hz, &mut overdue);
                overdue
            };
            assert_eq!(overdue(&seats, 0), [] as [PlayerNumber; 0]);
            assert_eq!(overdue(&seats, 59), [] as [PlayerNumber; 0]);
            assert_eq!(seats.of_nonce("nonce of client_1"), Some(1));
            assert_eq!(overdue(&seats, 61), [1], "and no connected player");
            // A player who has reconnected is not overdue, however long ago they
            // were lost.
            seats.move_to(1, Place::Online(ConnectionId::new(9, 1)));
            assert_eq!(overdue(&seats, 3_600), [] as [PlayerNumber; 0]);
        }
    }

    #[test]
    fn a_burst_of_events_waits_its_turn_and_only_a_flood_is_refused() {
        let mut seats = Seats::default();
        let link = ConnectionId::new(7, 1);
        seats.insert(1, seat("client_1", link));
        let chat = |n: u32| ClientMessage::Chat {
            text: n.to_string(),
        };
        let mut heard = Vec::new();
        let mut refused = 0;
        for n in 0..600 {
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
        assert_eq!((heard.len(), refused), (30, 600 - 30 - 500));
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
        assert_eq!(heard, (0..530).map(chat).collect::<Vec<_>>());
        assert_eq!(handled(&seats), 600);
    }
}
