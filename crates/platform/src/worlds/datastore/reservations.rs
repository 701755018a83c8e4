//! Fairness between worlds that change the same key.
//!
//! `Update` compares and sets, so the fastest world wins and a slightly slower world could lose
//! every time. Therefore the loser of a swap gets a reservation of the key: other worlds that would
//! write the key wait for it for a moment. Reservations only provide fairness. They are stored in
//! memory and expire by themselves; correctness comes from the comparison in the database.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use frolic_fleet_api::store::{StoreAction, StoreKey};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Lifetime of a reservation: a few ticks and a round trip.
const RESERVATION_LIFETIME: Duration = Duration::from_millis(500);
/// Maximum time that one batch waits for the reservations of other worlds.
const WAIT_MAX: Duration = Duration::from_millis(1500);
/// Reservations that exist at the same time.
const RESERVATIONS_MAX: usize = 10_000;

/// Reservations of all games.
pub struct Reservations {
    reservations: Mutex<HashMap<GameKey, Reservation>>,
    changed: Notify,
    reservation: Duration,
    wait_max: Duration,
}

impl Default for Reservations {
    fn default() -> Self {
        Self::new(RESERVATION_LIFETIME, WAIT_MAX)
    }
}

/// A key of a game.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct GameKey {
    game_id: String,
    player: Option<String>,
    key: String,
}

struct Reservation {
    world_id: String,
    until: Instant,
}

impl Reservations {
    fn new(reservation: Duration, wait_max: Duration) -> Self {
        Self {
            reservations: Mutex::default(),
            changed: Notify::new(),
            reservation,
            wait_max,
        }
    }

    /// Waits until no other world has a reservation for a key that `actions` would write.
    pub async fn wait(&self, game_id: &str, world_id: &str, actions: &[&StoreAction]) {
        let keys: Vec<GameKey> = actions
            .iter()
            .filter_map(|action| written(action))
            .map(|key| game_key(game_id, key))
            .collect();
        let deadline = Instant::now() + self.wait_max;
        loop {
            // Created before the check, so that a notification in between is not lost.
            let changed = self.changed.notified();
            let until = {
                let reservations = self.reservations();
                let others = keys
                    .iter()
                    .filter_map(|game_key| reservations.get(game_key));
                let others = others.filter(|reservation| reservation.world_id != world_id);
                others.map(|reservation| reservation.until).max()
            };
            let now = Instant::now();
            match until {
                Some(until) if until > now && now < deadline => {
                    let _ = tokio::time::timeout_at(until.min(deadline), changed).await;
                }
                _ => return,
            }
        }
    }

    /// Records the result of a swap: success ends the world's reservation, failure creates one.
    pub fn note_swap(&self, game_id: &str, world_id: &str, key: &StoreKey, done: bool) {
        let game_key = game_key(game_id, key);
        let now = Instant::now();
        let mut reservations = self.reservations();
        if reservations.len() >= RESERVATIONS_MAX {
            reservations.retain(|_, reservation| reservation.until > now);
        }
        let known = reservations
            .get(&game_key)
            .filter(|reservation| reservation.until > now);
        let free = known.is_none_or(|reservation| reservation.world_id == world_id);
        if !free {
            return;
        }
        if done {
            reservations.remove(&game_key);
        } else if reservations.len() < RESERVATIONS_MAX {
            let reservation = Reservation {
                world_id: world_id.to_owned(),
                until: now + self.reservation,
            };
            reservations.insert(game_key, reservation);
        }
        drop(reservations);
        self.changed.notify_waiters();
    }

    fn reservations(&self) -> MutexGuard<'_, HashMap<GameKey, Reservation>> {
        self.reservations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn game_key(game_id: &str, key: &StoreKey) -> GameKey {
    GameKey {
        game_id: game_id.to_owned(),
        player: key.player.clone(),
        key: key.key.clone(),
    }
}

/// The key that an action writes.
fn written(action: &StoreAction) -> Option<&StoreKey> {
    match action {
        StoreAction::Set { at, .. }
        | StoreAction::Swap { at, .. }
        | StoreAction::Increment { at, .. }
        | StoreAction::Remove(at) => Some(at),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> StoreKey {
        StoreKey {
            player: None,
            key: "n".to_owned(),
        }
    }

    fn add() -> StoreAction {
        StoreAction::Increment { at: key(), by: 1.0 }
    }

    const LONG: Duration = Duration::from_secs(600);
    const SHORT: Duration = Duration::from_millis(30);

    /// Whether a world that writes the key has to wait.
    async fn waits(
        reservations: &Reservations,
        game_id: &str,
        world_id: &str,
        action: StoreAction,
    ) -> bool {
        let actions = [&action];
        let wait = reservations.wait(game_id, world_id, &actions);
        tokio::time::timeout(SHORT, wait).await.is_err()
    }

    #[tokio::test]
    async fn the_loser_of_a_swap_gets_the_reservation() {
        let reservations = Reservations::new(LONG, LONG);
        assert!(!waits(&reservations, "game", "a", add()).await);
        reservations.note_swap("game", "a", &key(), false);
        assert!(!waits(&reservations, "game", "a", add()).await);
        assert!(waits(&reservations, "game", "b", add()).await);
        // A world that loses against a reservation does not take the reservation changed.
        reservations.note_swap("game", "b", &key(), false);
        assert!(!waits(&reservations, "game", "a", add()).await);
        // Reads and other games do not wait.
        assert!(!waits(&reservations, "other", "b", add()).await);
        assert!(!waits(&reservations, "game", "b", StoreAction::Get(key())).await);

        let action = add();
        let actions = [&action];
        let waiting = reservations.wait("game", "b", &actions);
        let done = async { reservations.note_swap("game", "a", &key(), true) };
        tokio::join!(waiting, done);
        assert!(!waits(&reservations, "game", "b", add()).await);
    }

    #[tokio::test]
    async fn an_unused_reservation_expires() {
        let reservations = Reservations::new(SHORT, LONG);
        reservations.note_swap("game", "a", &key(), false);
        reservations.wait("game", "b", &[&add()]).await;
        assert!(!waits(&reservations, "game", "b", add()).await);
        // The total wait of a batch is limited as well.
        let reservations = Reservations::new(LONG, SHORT);
        reservations.note_swap("game", "a", &key(), false);
        reservations.wait("game", "b", &[&add()]).await;
    }
}
