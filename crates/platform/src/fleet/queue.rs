//! Who waits for a place in a full world, in order, and how long that may take.
//! Whoever stops asking loses their turn.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// People who may wait for one world.
const WAITING_MAX: usize = 1000;
/// Those who wait ask at least once a second.
const SILENCE_MAX: Duration = Duration::from_secs(6);
/// How much one more departure changes what is expected of the next.
const NEWS_SHARE: f64 = 0.3;

/// A place in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// From 1.
    pub position: u32,
    /// People in the queue.
    pub waiting: u32,
    /// When it may be one's turn; not known before anybody has left.
    pub expected: Option<Duration>,
}

/// The queue of one world.
pub(super) struct Queue {
    waiting: VecDeque<Waiter>,
    /// When places last became free.
    departed_at: Instant,
    /// Seconds from one departure to the next, lately.
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

    /// How many come before this player; everybody, when they do not wait.
    pub fn ahead_of(&mut self, player_id: &str, now: Instant) -> usize {
        self.waiting
            .retain(|waiter| now.duration_since(waiter.asked_at) < SILENCE_MAX);
        self.index_of(player_id).unwrap_or(self.waiting.len())
    }

    /// Takes or keeps a place in the queue; none when it is too long already.
    pub fn take(&mut self, player_id: &str, now: Instant) -> Option<Turn> {
        let index = self.ahead_of(player_id, now);
        match self.waiting.get_mut(index) {
            Some(waiter) => waiter.asked_at = now,
            None if index >= WAITING_MAX => return None,
            None => self.waiting.push_back(Waiter {
                player_id: player_id.to_owned(),
                asked_at: now,
            }),
        }
        Some(Turn {
            position: u32::try_from(index + 1).unwrap_or(u32::MAX),
            waiting: u32::try_from(self.waiting.len()).unwrap_or(u32::MAX),
            expected: self.expected(index, now),
        })
    }

    pub fn leave(&mut self, player_id: &str) {
        self.waiting.retain(|waiter| waiter.player_id != player_id);
    }

    /// So many places became free.
    pub fn departed(&mut self, count: u32, now: Instant) {
        if count == 0 {
            return;
        }
        let each = now.duration_since(self.departed_at).as_secs_f64() / f64::from(count);
        let before = self.departure_s.unwrap_or(each);
        self.departure_s = Some(before + (each - before) * NEWS_SHARE);
        self.departed_at = now;
    }

    fn expected(&self, index: usize, now: Instant) -> Option<Duration> {
        let all = self.departure_s? * (index + 1) as f64;
        let passed = now.duration_since(self.departed_at).as_secs_f64();
        // A place that is overdue may come any moment, not a moment ago.
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
    fn a_queue_keeps_its_order_and_forgets_the_silent() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut queue = Queue::new(start);
        let position = |queue: &mut Queue, player, now| queue.take(player, now).unwrap().position;
        assert_eq!(position(&mut queue, "ada", at(0)), 1);
        assert_eq!(position(&mut queue, "bob", at(1)), 2);
        assert_eq!(position(&mut queue, "cy", at(2)), 3);
        assert_eq!(position(&mut queue, "bob", at(4)), 2);
        assert_eq!(queue.ahead_of("dan", at(4)), 3);
        // Ada has not asked since the start.
        assert_eq!(position(&mut queue, "bob", at(7)), 1);
        queue.leave("bob");
        assert_eq!(position(&mut queue, "cy", at(7)), 1);
        assert_eq!(queue.take("cy", at(7)).unwrap().waiting, 1);
    }

    #[test]
    fn what_is_expected_follows_who_left() {
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
    fn a_queue_has_an_end() {
        let now = Instant::now();
        let mut queue = Queue::new(now);
        for number in 0..WAITING_MAX {
            assert!(queue.take(&format!("player {number}"), now).is_some());
        }
        assert_eq!(queue.take("one more", now), None);
        assert!(queue.take("player 7", now).is_some());
    }
}
