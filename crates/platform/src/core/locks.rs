//! Locks by name, which instances of the platform would share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures_util::future::BoxFuture;
use tokio::sync::Mutex as Lock;

/// Entries of released locks that are kept before they are removed.
const RELEASED_MAX: usize = 1024;

/// Holds a lock until it is dropped.
pub type LockGuard = Box<dyn Send>;

/// Locks by name.
pub trait Locks: Send + Sync {
    /// Waits for the lock `name`.
    fn lock(&self, name: String) -> BoxFuture<'_, LockGuard>;

    /// Takes the lock `name`, unless it is held.
    fn try_lock(&self, name: String) -> BoxFuture<'_, Option<LockGuard>>;
}

/// Locks within one instance.
#[derive(Default)]
pub struct LocalLocks(Mutex<HashMap<String, Weak<Lock<()>>>>);

impl LocalLocks {
    fn named(&self, name: String) -> Arc<Lock<()>> {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(&name).and_then(Weak::upgrade) {
            return lock;
        }
        if locks.len() >= RELEASED_MAX {
            locks.retain(|_, lock| lock.strong_count() > 0);
        }
        let lock = Arc::new(Lock::new(()));
        locks.insert(name, Arc::downgrade(&lock));
        lock
    }
}

impl Locks for LocalLocks {
    fn lock(&self, name: String) -> BoxFuture<'_, LockGuard> {
        Box::pin(async move { Box::new(self.named(name).lock_owned().await) as LockGuard })
    }

    fn try_lock(&self, name: String) -> BoxFuture<'_, Option<LockGuard>> {
        let guard = self.named(name).try_lock_owned();
        let guard = guard.ok().map(|guard| Box::new(guard) as LockGuard);
        Box::pin(std::future::ready(guard))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lock_is_held_by_one_at_a_time() {
        let locks = LocalLocks::default();
        let held = locks.lock("a".to_owned()).await;
        assert!(locks.try_lock("a".to_owned()).await.is_none());
        assert!(locks.try_lock("b".to_owned()).await.is_some());
        drop(held);
        assert!(locks.try_lock("a".to_owned()).await.is_some());
    }

    #[tokio::test]
    async fn released_locks_take_a_bounded_amount_of_memory() {
        let locks = LocalLocks::default();
        let held = locks.lock("held".to_owned()).await;
        for number in 0..10 * RELEASED_MAX {
            drop(locks.lock(number.to_string()).await);
        }
        assert!(locks.0.lock().unwrap().len() <= RELEASED_MAX);
        assert!(locks.try_lock("held".to_owned()).await.is_none());
        drop(held);
    }
}
