//! Recently suspended users. Game servers receive the list with each heartbeat and
//! disconnect them.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use frolic_protocol::fleet::Expelled;
use tokio::time::Instant;

/// How long a suspension is in the list: several heartbeats, in case one is lost.
const TOLD_FOR: Duration = Duration::from_secs(15);
/// Maximum length of the list.
const TOLD_MAX: usize = 256;

/// The most recent suspensions.
#[derive(Debug, Default)]
pub struct Expulsions(Mutex<VecDeque<(Instant, Expelled)>>);

impl Expulsions {
    /// Adds a suspended user.
    pub fn add(&self, player_id: &str, reason: &str, now: Instant) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= TOLD_MAX {
            told.pop_front();
        }
        let expelled = Expelled {
            player_id: player_id.to_owned(),
            reason: reason.to_owned(),
        };
        told.push_back((now, expelled));
    }

    /// The suspensions to send to game servers now.
    pub fn recent(&self, now: Instant) -> Vec<Expelled> {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.retain(|(at, _)| now.duration_since(*at) < TOLD_FOR);
        told.iter().map(|(_, expelled)| expelled.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspensions_are_told_for_a_while_and_a_bounded_number() {
        let told = Expulsions::default();
        let now = Instant::now();
        for n in 0..1000 {
            told.add(&format!("user_{n}"), "because", now);
        }
        let recent = told.recent(now);
        assert_eq!(recent.len(), TOLD_MAX);
        assert_eq!(recent[TOLD_MAX - 1].player_id, "user_999");
        assert!(told.recent(now + TOLD_FOR).is_empty());
    }
}
