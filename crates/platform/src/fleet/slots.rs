//! The slots of a world: players in it, reservations of joining players, and the slots of
//! disconnected players who may return.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use frolic_fleet_api::process::Heartbeat;
use tokio::time::Instant;

use super::process::Reservation;
use super::queue::Queue;

/// The slots of one world.
pub(super) struct Slots {
    max_players: u32,
    /// Number of players in the last heartbeat.
    pub players: u32,
    /// Player id, and the time at which the reservation expires.
    reservations: HashMap<String, Instant>,
    /// Disconnected players, as reported by the process. Their slots stay reserved.
    away: HashSet<String>,
    /// Players who were in a process that crashed or was stopped, and the time at which their
    /// reservation expires.
    expected: HashMap<String, Instant>,
    /// Players waiting for a free slot.
    pub queue: Queue,
    /// Whether only players who have a slot may enter.
    pub draining: bool,
    /// Since when no player has been in the world or joining.
    pub empty_since: Instant,
}

impl Slots {
    pub fn new(max_players: u32, now: Instant) -> Self {
        Self {
            max_players,
            players: 0,
            reservations: HashMap::new(),
            away: HashSet::new(),
            expected: HashMap::new(),
            queue: Queue::new(now),
            draining: false,
            empty_since: now,
        }
    }

    /// Forgets the players of a process that has ended.
    pub fn clear_players(&mut self) {
        self.players = 0;
        self.away.clear();
    }

    /// Reserves the slots of the players of a process that has ended.
    pub fn expect(&mut self, players: Vec<String>, until: Instant) {
        self.expected = players.into_iter().map(|player| (player, until)).collect();
    }

    /// Updates the slots from a heartbeat. Returns whether a slot may have become free.
    pub fn report(&mut self, beat: &Heartbeat, now: Instant) -> bool {
        let taken = self.occupied();
        // Heartbeats do not name new players; most likely they hold the oldest reservations. A
        // wrong guess only keeps a slot reserved a little longer.
        self.release_oldest(beat.arrived);
        let lost = beat.away.iter().filter(|id| !self.away.contains(*id));
        let lost = u32::try_from(lost.count()).unwrap_or(u32::MAX);
        let before = self.players.saturating_add(beat.arrived);
        let departed = before.saturating_sub(beat.players).saturating_sub(lost);
        self.queue.departed(departed, now);
        self.expire(now);
        for player_id in &beat.returned {
            self.expected.remove(player_id);
        }
        self.players = beat.players;
        self.away = beat.away.iter().cloned().collect();
        let occupied = self.occupied();
        if occupied > 0 {
            self.empty_since = now;
        }
        departed > 0 || occupied < taken
    }

    /// Reserves a slot until the player connects or `hold` has passed.
    pub fn reserve(&mut self, player_id: &str, hold: Duration, now: Instant) -> Reservation {
        let returning = self.has_slot(player_id, now);
        if self.draining && !returning {
            return Reservation::Draining;
        }
        let free = self.max_players.saturating_sub(self.occupied());
        // Players in the queue come first.
        let ahead = self.queue.ahead_of(player_id, now);
        if !returning && ahead >= free as usize {
            return Reservation::Full;
        }
        self.queue.leave(player_id);
        self.expected.remove(player_id);
        self.reservations.insert(player_id.to_owned(), now + hold);
        Reservation::Reserved
    }

    /// Releases the reservation of a player. Returns whether there was one.
    pub fn release(&mut self, player_id: &str) -> bool {
        self.reservations.remove(player_id).is_some()
    }

    /// Whether a player without a slot would find none free.
    pub fn is_full_for(&mut self, player_id: &str, now: Instant) -> bool {
        !self.has_slot(player_id, now) && self.occupied() >= self.max_players
    }

    /// Whether a slot is reserved for a player who was in the world a moment ago.
    pub fn expects(&mut self, player_id: &str, now: Instant) -> bool {
        self.expire(now);
        self.away.contains(player_id) || self.expected.contains_key(player_id)
    }

    /// Slots in use, after expired reservations were dropped.
    pub fn in_use(&mut self, now: Instant) -> u32 {
        self.expire(now);
        self.occupied()
    }

    /// Number of reservations of joining players.
    pub fn reserved(&self) -> u32 {
        u32::try_from(self.reservations.len()).unwrap_or(u32::MAX)
    }

    /// Whether the world has no players and no disconnected ones who may return.
    pub fn is_deserted(&self) -> bool {
        self.players == 0 && self.away.is_empty()
    }

    fn has_slot(&mut self, player_id: &str, now: Instant) -> bool {
        self.expects(player_id, now) || self.reservations.contains_key(player_id)
    }

    fn occupied(&self) -> u32 {
        let expected = self.expected.keys().filter(|id| !self.away.contains(*id));
        let awaited = self.away.iter().chain(expected);
        // A reconnecting player who has a reservation counts once.
        let awaited = awaited.filter(|id| !self.reservations.contains_key(*id));
        let held = self.reservations.len() + awaited.count();
        self.players
            .saturating_add(u32::try_from(held).unwrap_or(u32::MAX))
    }

    fn expire(&mut self, now: Instant) {
        self.reservations.retain(|_, until| *until > now);
        self.expected.retain(|_, until| *until > now);
    }

    fn release_oldest(&mut self, count: u32) {
        for _ in 0..count {
            let oldest = self.reservations.iter().min_by_key(|(_, until)| **until);
            let Some(player_id) = oldest.map(|(player_id, _)| player_id.clone()) else {
                return;
            };
            self.reservations.remove(&player_id);
        }
    }
}
