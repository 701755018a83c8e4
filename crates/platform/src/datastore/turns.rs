//! Whose turn it is to change a key that several worlds change.
//!
//! `Update` compares and sets: whoever is quicker wins, and a world that is a
//! little slower could lose every time. So the loser of a swap gets the next
//! turn: for a moment others who would write that key wait for it. Turns are
//! for fairness only. They are kept in memory and run out by themselves; what
//! keeps the data right is the comparison in the database.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use frolic_protocol::store::{StoreAction, StoreKey};
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long a world has for its turn: a few ticks and the way here.
const TURN: Duration = Duration::from_millis(500);
/// How long one batch waits for the turns of others, all together.
const WAIT_MAX: Duration = Duration::from_millis(1500);
/// Turns that are remembered at once.
const TURNS_MAX: usize = 10_000;

/// Turns of all games.
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

    /// Waits until no other world has the turn for what these would write.
    pub async fn wait(&self, game_id: &str, world_id: &str, actions: &[&StoreAction]) {
        let places: Vec<Place> = actions
            .iter()
            .filter_map(|action| written(action))
            .map(|key| place(game_id, key))
            .collect();
        let deadline = Instant::now() + self.wait_max;
        loop {
            // Before the look, so that a turn that ends between is heard of.
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

    /// A swap was done or not: ends the world's turn, or gives it the next.
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

    /// Whether somebody who writes the key has to wait.
    async fn waits(turns: &Turns, game_id: &str, world_id: &str, action: StoreAction) -> bool {
        let actions = [&action];
        let wait = turns.wait(game_id, world_id, &actions);
        tokio::time::timeout(SHORT, wait).await.is_err()
    }

    #[tokio::test]
    async fn the_loser_of_a_swap_comes_next() {
        let turns = Turns::new(LONG, LONG);
        assert!(!waits(&turns, "game", "a", add()).await);
        turns.swapped("game", "a", &key(), false);
        assert!(!waits(&turns, "game", "a", add()).await);
        assert!(waits(&turns, "game", "b", add()).await);
        // Losing against somebody's turn does not take it from them.
        turns.swapped("game", "b", &key(), false);
        assert!(!waits(&turns, "game", "a", add()).await);
        // Only what would be written under it waits.
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
    async fn a_turn_that_is_not_used_runs_out() {
        let turns = Turns::new(SHORT, LONG);
        turns.swapped("game", "a", &key(), false);
        turns.wait("game", "b", &[&add()]).await;
        assert!(!waits(&turns, "game", "b", add()).await);
        // And nobody waits for ever, whatever others do.
        let turns = Turns::new(LONG, SHORT);
        turns.swapped("game", "a", &key(), false);
        turns.wait("game", "b", &[&add()]).await;
    }
}
