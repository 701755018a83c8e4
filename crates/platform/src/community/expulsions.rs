//! Recent suspensions and blocks. Game servers receive the list with each heartbeat and
//! disconnect the players concerned.

use std::collections::VecDeque;
use std::future::ready;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use frolic_fleet_api::process::Expelled;
use frolic_fleet_api::ticket::TICKET_LIFETIME_S;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

/// How long an entry is in the list: a ticket issued before the suspension admits its player until
/// it expires, plus several heartbeats, in case one is lost.
const LIST_DURATION: Duration = Duration::from_secs(TICKET_LIFETIME_S + 15);
/// Maximum length of the list.
const LIST_MAX: usize = 256;
/// Blocks in the list per owner, so that one owner cannot displace the blocks of others.
const BLOCKS_PER_OWNER_MAX: usize = 16;

/// The most recent suspensions and blocks, which instances of the platform would share.
pub trait Expulsions: Send + Sync {
    /// Adds a suspended player, or with `owner_id` one whom the owner of worlds has blocked.
    fn push(&self, player_id: &str, owner_id: Option<&str>, reason: &str) -> BoxFuture<'_, ()>;

    /// Removes a lifted suspension, or with `owner_id` a block.
    fn forget(&self, player_id: &str, owner_id: Option<&str>) -> BoxFuture<'_, ()>;

    /// The entries to send to game servers now.
    fn recent(&self) -> BoxFuture<'_, Vec<Expulsion>>;
}

/// The expulsions of one instance.
#[derive(Debug, Default)]
pub struct LocalExpulsions(Mutex<VecDeque<(Instant, Expulsion)>>);

/// A player who is to be disconnected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expulsion {
    /// Only in the worlds of this user, who blocked the player; in all worlds
    /// if moderators suspended the player.
    pub owner_id: Option<String>,
    /// The player, and the reason they read.
    pub expelled: Expelled,
}

impl dyn Expulsions {
    /// Adds a suspended player.
    pub async fn add(&self, player_id: &str, reason: &str) {
        self.push(player_id, None, reason).await;
    }

    /// Adds a player whom the owner of worlds has blocked.
    pub async fn block(&self, owner_id: &str, player_id: &str) {
        let reason = "The owner of this world has blocked you.";
        self.push(player_id, Some(owner_id), reason).await;
    }
}

impl Expulsions for LocalExpulsions {
    fn push(&self, player_id: &str, owner_id: Option<&str>, reason: &str) -> BoxFuture<'_, ()> {
        self.push_at(
            owner_id.map(str::to_owned),
            player_id,
            reason,
            Instant::now(),
        );
        Box::pin(ready(()))
    }

    fn forget(&self, player_id: &str, owner_id: Option<&str>) -> BoxFuture<'_, ()> {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.retain(|(_, one)| {
            one.owner_id.as_deref() != owner_id || one.expelled.player_id != player_id
        });
        Box::pin(ready(()))
    }

    fn recent(&self) -> BoxFuture<'_, Vec<Expulsion>> {
        Box::pin(ready(self.recent_at(Instant::now())))
    }
}

impl LocalExpulsions {
    fn push_at(&self, owner_id: Option<String>, player_id: &str, reason: &str, now: Instant) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.retain(|(at, one)| {
            let replaced = one.owner_id == owner_id && one.expelled.player_id == player_id;
            !replaced && now.duration_since(*at) < LIST_DURATION
        });
        if owner_id.is_some() {
            let by_owner = |(_, one): &&(Instant, Expulsion)| one.owner_id == owner_id;
            if list.iter().filter(by_owner).count() >= BLOCKS_PER_OWNER_MAX {
                let oldest = list.iter().position(|one| by_owner(&one));
                oldest.and_then(|index| list.remove(index));
            }
        }
        if list.len() >= LIST_MAX {
            // Any user can block others, so blocks must not displace suspensions.
            match list.iter().position(|(_, one)| one.owner_id.is_some()) {
                Some(oldest_block) => drop(list.remove(oldest_block)),
                None if owner_id.is_some() => return,
                None => drop(list.pop_front()),
            }
        }
        let expelled = Expelled {
            player_id: player_id.to_owned(),
            reason: reason.to_owned(),
        };
        let expulsion = Expulsion { owner_id, expelled };
        list.push_back((now, expulsion));
    }

    fn recent_at(&self, now: Instant) -> Vec<Expulsion> {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.retain(|(at, _)| now.duration_since(*at) < LIST_DURATION);
        list.iter().map(|(_, one)| one.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl LocalExpulsions {
        fn add(&self, player_id: &str, reason: &str, now: Instant) {
            self.push_at(None, player_id, reason, now);
        }

        fn block(&self, owner_id: &str, player_id: &str, now: Instant) {
            self.push_at(Some(owner_id.to_owned()), player_id, "blocked", now);
        }
    }

    #[test]
    fn suspensions_are_listed_for_a_while_and_a_bounded_number() {
        let list = LocalExpulsions::default();
        let now = Instant::now();
        for n in 0..1000 {
            list.add(&format!("user_{n}"), "because", now);
        }
        let recent = list.recent_at(now);
        assert_eq!(recent.len(), LIST_MAX);
        assert_eq!(recent[LIST_MAX - 1].expelled.player_id, "user_999");
        assert!(list.recent_at(now + LIST_DURATION).is_empty());
    }

    #[test]
    fn blocks_do_not_displace_suspensions() {
        let list = LocalExpulsions::default();
        let now = Instant::now();
        list.add("user_eve", "because", now);
        for n in 0..1000 {
            list.block(&format!("owner_{n}"), "user_ben", now);
        }
        let recent = list.recent_at(now);
        assert_eq!(recent.len(), LIST_MAX);
        assert_eq!(recent[0].expelled.player_id, "user_eve");
        for n in 0..LIST_MAX {
            list.add(&format!("user_{n}"), "because", now);
        }
        list.block("owner_1", "user_ben", now);
        let recent = list.recent_at(now);
        assert_eq!(recent.len(), LIST_MAX);
        assert!(recent.iter().all(|one| one.owner_id.is_none()));
    }

    #[test]
    fn an_owner_has_a_bounded_number_of_blocks_in_the_list() {
        let list = LocalExpulsions::default();
        let now = Instant::now();
        list.block("owner_ada", "user_eve", now);
        for n in 0..100 {
            list.block("owner_cy", &format!("user_{n}"), now);
        }
        let recent = list.recent_at(now);
        assert_eq!(recent.len(), 1 + BLOCKS_PER_OWNER_MAX);
        assert_eq!(recent[0].owner_id.as_deref(), Some("owner_ada"));
        assert_eq!(recent[BLOCKS_PER_OWNER_MAX].expelled.player_id, "user_99");
    }

    #[test]
    fn a_repeated_entry_replaces_the_earlier_one() {
        let list = LocalExpulsions::default();
        let now = Instant::now();
        let later = now + Duration::from_secs(10);
        for at in [now, later] {
            list.add("user_eve", "because", at);
            list.block("user_ada", "user_eve", at);
        }
        assert_eq!(list.recent_at(later).len(), 2);
        assert_eq!(list.recent_at(now + LIST_DURATION).len(), 2);
    }

    #[test]
    fn a_suspension_is_sent_until_older_tickets_have_expired() {
        let list = LocalExpulsions::default();
        let now = Instant::now();
        list.add("user_eve", "because", now);
        let last_entry = now + Duration::from_secs(TICKET_LIFETIME_S + 5);
        assert_eq!(list.recent_at(last_entry).len(), 1);
    }

    #[tokio::test]
    async fn a_lifted_suspension_is_sent_no_more_and_leaves_blocks() {
        let list = LocalExpulsions::default();
        let now = Instant::now();
        list.add("user_eve", "because", now);
        list.block("user_ada", "user_eve", now);
        list.forget("user_eve", None).await;
        let recent = list.recent_at(now);
        assert_eq!(recent.len(), 1);
        assert_eq!(recent[0].owner_id.as_deref(), Some("user_ada"));
        list.forget("user_eve", Some("user_ada")).await;
        assert!(list.recent_at(now).is_empty());
    }
}
