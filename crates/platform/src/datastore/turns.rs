//! Fairness between worlds that change the same key.
//!
//! `Update` compares and sets, so the fastest world wins and a slightly slower world could lose
//! every time. Therefore the loser of a swap gets a reservation of the key: other worlds that would
//! write the key wait for it for a moment. Reservations only provide fairness. They are stored in
//! memory and expire by themselves; correctness comes from the comparison in the database.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use frolic_protocol::store::{StoreAction, StoreKey};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Lifetime of a reservation: a few ticks and a round trip.
const TURN: Duration = Duration::from_millis(500);
/// Maximum time that one batch waits for the reservations of other worlds.
const WAIT_MAX: Duration = Duration::from_millis(1500);
/// Reservations that exist at the same time.
const TURNS_MAX: usize = 10_000;

/// Reservations of all games.
pub struct Turns {
    turns: Mutex<HashMap<Place, Turn>>,
    over: Notify,
    turn: Duration,
    wait_max: Duration,
}

impl Default for Turns {
    fn default() -> Self {
        Self::new(TURN, WAIT_MAX)
    }
}

/// A key of a game.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    game_id: String,
    player: Option<String>,
    key: String,
}

struct Turn {
    world_id: String,
    until: Instant,
}

impl Turns {
    fn new(turn: Duration, wait_max: Duration) -> Self {
        Self {
            turns: Mutex::default(),
            over: Notify::new(),
            turn,
            wait_max,
        }
    }

    /// Waits until no other world has a reservation for a key that `actions` would write.
    pub async fn wait(&self, game_id: &str, world_id: &str, actions: &[&StoreAction]) {
        let places: Vec<Place> = actions
            .iter()
            .filter_map(|action| written(action))
            .map(|key| place(game_id, key))
            .collect();
        let deadline = Instant::now() + self.wait_max;
        loop {
            // Created before the check, so that a notification in between is not lost.
            let over = self.over.notified();
            let until = {
                let turns = self.turns();
                let others = places.iter().filter_map(|place| turns.get(place));
                let others = others.filter(|turn| turn.world_id != world_id);
                others.map(|turn| turn.until).max()
            };
            let now = Instant::now();
            match until {
                Some(until) if until > now && now < deadline => {
                    let _ = tokio::time::timeout_at(until.min(deadline), over).await;
                }
                _ => return,
            }
        }
    }

    /// Records the result of a swap: success ends the world's reservation, failure creates one.
    pub fn swapped(&self, game_id: &str, world_id: &str, key: &StoreKey, done: bool) {
        let place = place(game_id, key);
        let now = Instant::now();
        let mut turns = self.turns();
        if turns.len() >= TURNS_MAX {
            turns.retain(|_, turn| turn.until > now);
        }
        let known = turns.get(&place).filter(|turn| turn.until > now);
        let free = known.is_none_or(|turn| turn.world_id == world_id);
        if !free {
            return;
        }
        if done {
            turns.remove(&place);
        } else if turns.len() < TURNS_MAX {
            let turn = Turn {
                world_id: world_id.to_owned(),
                until: now + self.turn,
            };
            turns.insert(place, turn);
        }
        drop(turns);
        self.over.notify_waiters();
    }

    fn turns(&self) -> MutexGuard<'_, HashMap<Place, Turn>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(game_id: &str, key: &StoreKey) -> Place {
    Place {
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
    async fn waits(turns: &Turns, game_id: &str, world_id: &str, action: StoreAction) -> bool {
        let actions = [&action];
        let wait = turns.wait(game_id, world_id, &actions);
        tokio::time::timeout(SHORT, wait).await.is_err()
    }

    #[tokio::test]
    async fn the_loser_of_a_swap_gets_the_next_turn() {
        let turns = Turns::new(LONG, LONG);
        assert!(!waits(&turns, "game", "a", add()).await);
        turns.swapped("game", "a", &key(), false);
        assert!(!waits(&turns, "game", "a", add()).await);
        assert!(waits(&turns, "game", "b", add()).await);
        // A world that loses against a reservation does not take the reservation over.
        turns.swapped("game", "b", &key(), false);
        assert!(!waits(&turns, "game", "a", add()).await);
        // Reads and other games do not wait.
        assert!(!waits(&turns, "other", "b", add()).await);
        assert!(!waits(&turns, "game", "b", StoreAction::Get(key())).await);

        let action = add();
        let actions = [&action];
        let waiting = turns.wait("game", "b", &actions);
        let done = async { turns.swapped("game", "a", &key(), true) };
        tokio::join!(waiting, done);
        assert!(!waits(&turns, "game", "b", add()).await);
    }

    #[tokio::test]
    async fn an_unused_turn_expires() {
        let turns = Turns::new(SHORT, LONG);
        turns.swapped("game", "a", &key(), false);
        turns.wait("game", "b", &[&add()]).await;
        assert!(!waits(&turns, "game", "b", add()).await);
        // The total wait of a batch is limited as well.
        let turns = Turns::new(LONG, SHORT);
        turns.swapped("game", "a", &key(), false);
        turns.wait("game", "b", &[&add()]).await;
    }
}
