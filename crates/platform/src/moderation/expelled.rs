//! Recently suspended users. Game servers receive the list with each heartbeat and
//! disconnect them.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use frolic_protocol::fleet::Expelled;
use tokio::time::Instant;

/// How long a suspension is in the list: several heartbeats, in case one is lost.
const LIST_DURATION: Duration = Duration::from_secs(15);
/// Maximum length of the list.
const LIST_MAX: usize = 256;

/// The most recent suspensions.
#[derive(Debug, Default)]
pub struct Expulsions(Mutex<VecDeque<(Instant, Expelled)>>);

impl Expulsions {
    /// Adds a suspended user.
    pub fn add(&self, player_id: &str, reason: &str, now: Instant) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if list.len() >= LIST_MAX {
            list.pop_front();
        }
        let expelled = Expelled {
            player_id: player_id.to_owned(),
            reason: reason.to_owned(),
        };
        list.push_back((now, expelled));
    }

    /// The suspensions to send to game servers now.
    pub fn recent(&self, now: Instant) -> Vec<Expelled> {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.retain(|(at, _)| now.duration_since(*at) < LIST_DURATION);
        list.iter().map(|(_, expelled)| expelled.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspensions_are_listed_for_a_while_and_a_bounded_number() {
        let list = Expulsions::default();
        let now = Instant::now();
        for n in 0..1000 {
            list.add(&format!("user_{n}"), "because", now);
        }
        let recent = list.recent(now);
        assert_eq!(recent.len(), LIST_MAX);
        assert_eq!(recent[LIST_MAX - 1].player_id, "user_999");
        assert!(list.recent(now + LIST_DURATION).is_empty());
    }
}
