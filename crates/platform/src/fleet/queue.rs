//! The queue for a full world: its order and the expected waiting time. A player who stops polling
//! is removed.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// Players that may wait for one world.
const WAITING_MAX: usize = 1000;
/// Waiting players poll at least once a second.
const POLL_TIMEOUT: Duration = Duration::from_secs(6);
/// Weight of a new measurement in the moving average of departure intervals.
const DEPARTURE_WEIGHT: f64 = 0.3;

/// Position in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePosition {
    /// Position, from 1.
    pub position: u32,
    /// Number of players in the queue.
    pub waiting: u32,
    /// Expected waiting time; unknown until a player has left the world.
    pub expected: Option<Duration>,
}

/// The queue of one world.
pub(super) struct Queue {
    waiting: VecDeque<Waiter>,
    /// Time at which slots last became free.
    departed_at: Instant,
    /// Moving average of the seconds between two departures.
    departure_s: Option<f64>,
}

struct Waiter {
    player_id: String,
    asked_at: Instant,
}

impl Queue {
    pub fn new(now: Instant) -> Self {
        Self {
            waiting: VecDeque::new(),
            departed_at: now,
            departure_s: None,
        }
    }

    /// Number of players ahead of this player; all of them if the player is not in the queue.
    pub fn ahead_of(&mut self, player_id: &str, now: Instant) -> usize {
        self.waiting
            .retain(|waiter| now.duration_since(waiter.asked_at) < POLL_TIMEOUT);
        self.index_of(player_id).unwrap_or(self.waiting.len())
    }

    /// Adds a player or renews the entry; `None` when the queue is full.
    pub fn take(&mut self, player_id: &str, now: Instant) -> Option<QueuePosition> {
        let index = self.ahead_of(player_id, now);
        match self.waiting.get_mut(index) {
            Some(waiter) => waiter.asked_at = now,
            None if index >= WAITING_MAX => return None,
            None => self.waiting.push_back(Waiter {
                player_id: player_id.to_owned(),
                asked_at: now,
            }),
        }
        Some(QueuePosition {
            position: u32::try_from(index + 1).unwrap_or(u32::MAX),
            waiting: u32::try_from(self.waiting.len()).unwrap_or(u32::MAX),
            expected: self.expected(index, now),
        })
    }

    pub fn leave(&mut self, player_id: &str) {
        self.waiting.retain(|waiter| waiter.player_id != player_id);
    }

    /// Records that `count` slots became free.
    pub fn departed(&mut self, count: u32, now: Instant) {
        if count == 0 {
            return;
        }
        let each = now.duration_since(self.departed_at).as_secs_f64() / f64::from(count);
        let before = self.departure_s.unwrap_or(each);
        self.departure_s = Some(before + (each - before) * DEPARTURE_WEIGHT);
        self.departed_at = now;
    }

    fn expected(&self, index: usize, now: Instant) -> Option<Duration> {
        let all = self.departure_s? * (index + 1) as f64;
        let passed = now.duration_since(self.departed_at).as_secs_f64();
        // An overdue slot may become free at any moment; the estimate must not be in the past.
        Duration::try_from_secs_f64((all - passed).max(1.0)).ok()
    }

    fn index_of(&self, player_id: &str) -> Option<usize> {
        let mut waiting = self.waiting.iter();
        waiting.position(|waiter| waiter.player_id == player_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_keeps_its_order_and_drops_players_who_stop_polling() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut queue = Queue::new(start);
        let position = |queue: &mut Queue, player, now| queue.take(player, now).unwrap().position;
        assert_eq!(position(&mut queue, "ada", at(0)), 1);
        assert_eq!(position(&mut queue, "bob", at(1)), 2);
        assert_eq!(position(&mut queue, "cy", at(2)), 3);
        assert_eq!(position(&mut queue, "bob", at(4)), 2);
        assert_eq!(queue.ahead_of("dan", at(4)), 3);
        // Ada has not polled since the start.
        assert_eq!(position(&mut queue, "bob", at(7)), 1);
        queue.leave("bob");
        assert_eq!(position(&mut queue, "cy", at(7)), 1);
        assert_eq!(queue.take("cy", at(7)).unwrap().waiting, 1);
    }

    #[test]
    fn the_expected_wait_follows_departures() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut queue = Queue::new(start);
        assert_eq!(queue.take("ada", at(1)).unwrap().expected, None);
        queue.departed(2, at(20));
        let expected = |queue: &mut Queue, player, now| queue.take(player, now).unwrap().expected;
        assert_eq!(
            expected(&mut queue, "ada", at(20)),
            Some(Duration::from_secs(10))
        );
        assert_eq!(
            expected(&mut queue, "bob", at(20)),
            Some(Duration::from_secs(20))
        );
        assert_eq!(
            expected(&mut queue, "ada", at(24)),
            Some(Duration::from_secs(6))
        );
        assert_eq!(
            expected(&mut queue, "bob", at(40)),
            Some(Duration::from_secs(1))
        );
    }

    #[test]
    fn a_queue_has_a_maximum_length() {
        let now = Instant::now();
        let mut queue = Queue::new(now);
        for number in 0..WAITING_MAX {
            assert!(queue.take(&format!("player {number}"), now).is_some());
        }
        assert_eq!(queue.take("one more", now), None);
        assert!(queue.take("player 7", now).is_some());
    }
}
