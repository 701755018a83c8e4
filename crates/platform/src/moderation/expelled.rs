//! Recent suspensions and blocks: game servers receive them with their next
//! heartbeat and disconnect the players concerned.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use frolic_protocol::fleet::Expelled;
use frolic_protocol::ticket::TICKET_LIFETIME_S;
use tokio::time::Instant;

/// How long they are sent: a ticket of before admits its player until it
/// expires, and some heartbeats after that, because one may be lost.
const TOLD_FOR: Duration = Duration::from_secs(TICKET_LIFETIME_S + 15);
/// Most that are told at once.
const TOLD_MAX: usize = 256;

/// The newest suspensions and blocks.
#[derive(Debug, Default)]
pub struct Expulsions(Mutex<VecDeque<(Instant, Expulsion)>>);

/// A player who is to be disconnected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expulsion {
    /// Only from the worlds of this user, who blocked the player; from all
    /// worlds if moderators suspended the player.
    pub owner_id: Option<String>,
    /// The player, and the reason they read.
    pub expelled: Expelled,
}

impl Expulsions {
    /// Moderators suspended a player.
    pub fn add(&self, player_id: &str, reason: &str, now: Instant) {
        self.push(None, player_id, reason, now);
    }

    /// The owner of worlds blocked a player.
    pub fn block(&self, owner_id: &str, player_id: &str, now: Instant) {
        let reason = "The owner of this world has blocked you.";
        self.push(Some(owner_id.to_owned()), player_id, reason, now);
    }

    /// A suspension was lifted, or with `owner_id` a block: the player may
    /// come back now.
    pub fn forget(&self, owner_id: Option<&str>, player_id: &str) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.retain(|(_, one)| {
            one.owner_id.as_deref() != owner_id || one.expelled.player_id != player_id
        });
    }

    fn push(&self, owner_id: Option<String>, player_id: &str, reason: &str, now: Instant) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= TOLD_MAX {
            told.pop_front();
        }
        let expelled = Expelled {
            player_id: player_id.to_owned(),
            reason: reason.to_owned(),
        };
        let expulsion = Expulsion { owner_id, expelled };
        told.push_back((now, expulsion));
    }

    /// What to send to game servers now.
    pub fn recent(&self, now: Instant) -> Vec<Expulsion> {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.retain(|(at, _)| now.duration_since(*at) < TOLD_FOR);
        told.iter().map(|(_, one)| one.clone()).collect()
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
        assert_eq!(recent[TOLD_MAX - 1].expelled.player_id, "user_999");
        assert!(told.recent(now + TOLD_FOR).is_empty());
    }

    #[test]
    fn a_suspension_is_sent_until_older_tickets_have_expired() {
        let told = Expulsions::default();
        let now = Instant::now();
        told.add("user_eve", "because", now);
        let last_entry = now + Duration::from_secs(TICKET_LIFETIME_S + 5);
        assert_eq!(told.recent(last_entry).len(), 1);
    }

    #[test]
    fn a_lifted_suspension_is_sent_no_more_and_leaves_blocks() {
        let told = Expulsions::default();
        let now = Instant::now();
        told.add("user_eve", "because", now);
        told.block("user_ada", "user_eve", now);
        told.forget(None, "user_eve");
        let recent = told.recent(now);
        assert_eq!(recent.len(), 1);
        assert_eq!(recent[0].owner_id.as_deref(), Some("user_ada"));
        told.forget(Some("user_ada"), "user_eve");
        assert!(told.recent(now).is_empty());
    }
}
