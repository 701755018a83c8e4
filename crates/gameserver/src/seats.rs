//! Seats: a player's place in the world, with or without a connection (NET-9).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use frolic_protocol::resume::SentLog;
use frolic_protocol::{ClientMessage, ServerMessage};
use frolic_world::PlayerNumber;

use crate::admission::Identity;
use crate::link::LinkId;

/// Events and calls of one player that are handled in one tick; scripts hear
/// of no more. The rest waits its turn.
const TAKEN_PER_TICK: u32 = 30;
/// Events and calls of one player that may wait: what arrives at once after
/// a stalled line.
const HELD_MAX: usize = 256;

/// A player's place.
pub struct Seat {
    /// Who they are.
    pub identity: Identity,
    /// Names this session in its resume tokens; nobody can guess it.
    pub nonce: String,
    /// What it was on the connection before.
    pub last_nonce: String,
    /// Their connection, or until which tick they may come back.
    pub place: Place,
    /// Messages that count, to them.
    pub log: SentLog<Arc<ServerMessage>>,
    /// How many messages that count have come from them.
    pub received: u32,
    /// How many of the session before had come to an earlier process of this
    /// world, for a client that comes from there.
    pub received_before: u32,
    /// How many had been handled when the player was last kept.
    pub kept_received: u32,
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

/// A message that waits for a later tick, with the number of its command.
pub type Held = (Option<u32>, ClientMessage);

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
            last_nonce: String::new(),
            place: Place::Online(link),
            log: SentLog::default(),
            received: 0,
            received_before: 0,
            kept_received: 0,
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

    /// Both counts start anew, with a client that knows of none. What was
    /// never told is kept for it.
    pub fn restart_counts(&mut self) {
        self.log.restart(false);
        self.received = 0;
        self.kept_received = 0;
    }

    /// Messages that count that have reached the world.
    pub fn handled(&self) -> u32 {
        self.received.wrapping_sub(self.held.len() as u32)
    }

    fn take_turn(&mut self, seq: Option<u32>, message: ClientMessage) -> Turn {
        if self.held.is_empty() && self.taken < TAKEN_PER_TICK {
            self.taken += 1;
            return Turn::Now(message);
        }
        if self.held.len() >= HELD_MAX {
            return Turn::Never;
        }
        self.held.push_back((seq, message));
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

    /// The seat of a lasting id.
    pub fn of_player(&self, player_id: &str) -> Option<PlayerNumber> {
        self.find(|seat| seat.identity.player_id == player_id)
    }

    /// The seat that a resume token speaks of.
    pub fn of_nonce(&self, nonce: &str) -> Option<PlayerNumber> {
        self.find(|seat| !nonce.is_empty() && seat.nonce == nonce)
    }

    /// The seat of a lasting id, if the token speaks of its last connection.
    pub fn before_nonce(&self, player_id: &str, nonce: &str) -> Option<PlayerNumber> {
        self.find(|seat| {
            seat.identity.player_id == player_id && !nonce.is_empty() && seat.last_nonce == nonce
        })
    }

    fn find(&self, wanted: impl Fn(&Seat) -> bool) -> Option<PlayerNumber> {
        let mut seats = self.iter();
        seats
            .find(|(_, seat)| wanted(seat))
            .map(|(number, _)| number)
    }

    /// Takes an event or a call of a player, in order.
    pub fn take_turn(
        &mut self,
        number: PlayerNumber,
        seq: Option<u32>,
        message: ClientMessage,
    ) -> Option<Turn> {
        let seat = self.by_number.get_mut(&number)?;
        if seat.taken == 0 && seat.held.is_empty() {
            self.spoken.push(number);
        }
        Some(seat.take_turn(seq, message))
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

    #[test]
    fn a_burst_of_events_waits_its_turn_and_only_a_flood_is_refused() {
        let identity = Identity {
            player_id: "client_1".into(),
            name: "Ada".into(),
            ..Identity::default()
        };
        let mut seats = Seats::default();
        seats.insert(1, Seat::new(identity, "nonce".into(), 7));
        let chat = |n: u32| ClientMessage::Chat {
            text: n.to_string(),
        };
        let mut heard = Vec::new();
        let mut refused = 0;
        for n in 0..300 {
            match seats.take_turn(1, None, chat(n)).unwrap() {
                Turn::Now(message) => heard.push(message),
                Turn::Later => {}
                Turn::Never => refused += 1,
            }
        }
        assert_eq!((heard.len(), refused), (30, 300 - 30 - 256));
        for _ in 0..20 {
            let mut waiting = Vec::new();
            seats.begin_tick(&mut waiting);
            for number in waiting {
                while let Some((_, message)) = seats.get_mut(number).unwrap().next_held() {
                    heard.push(message);
                }
            }
        }
        assert_eq!(heard, (0..286).map(chat).collect::<Vec<_>>());
    }
}
