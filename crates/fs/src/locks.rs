//! Locks by key, first come, first served.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// A lock for each [`lock_key`](crate::SessionFs::lock_key), held while a file is changed in several steps. A clone is
/// another handle on the same locks.
#[derive(Clone, Debug, Default)]
pub struct Locks {
    held: Arc<Mutex<HashMap<String, Arc<AsyncMutex<()>>>>>,
}

/// A lock that is held until this is dropped.
#[derive(Debug)]
pub struct LockGuard {
    // Dropped before `forget` checks for other users.
    guard: Option<OwnedMutexGuard<()>>,
    forget: LockCleanup,
}

impl Locks {
    /// Waits for a key's lock, in order of the calls. Dropping the future gives up the place.
    pub async fn hold(&self, key: &str) -> LockGuard {
        let lock = {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(held.entry(key.to_owned()).or_default())
        };
        // It must forget the key even if the wait is dropped.
        let forget = LockCleanup { locks: self.clone(), key: key.to_owned() };
        let guard = lock.lock_owned().await;
        LockGuard { guard: Some(guard), forget }
    }

    /// The number of keys that are held or waited for.
    pub fn len(&self) -> usize {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl LockGuard {
    /// The key that is held.
    pub fn key(&self) -> &str {
        &self.forget.key
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        self.guard = None;
    }
}

/// Removes a key from the map when nobody holds it or waits for it, so that the map only has keys in use.
#[derive(Debug)]
struct LockCleanup {
    locks: Locks,
    key: String,
}

impl Drop for LockCleanup {
    fn drop(&mut self) {
        let mut held = self.locks.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.get(&self.key).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            held.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Locks;

    #[tokio::test]
    async fn a_key_is_held_by_one_and_then_by_the_next_who_asked() {
        let locks = Locks::default();
        let first = locks.hold("one:/state/events.jsonl").await;
        let (sender, mut order) = tokio::sync::mpsc::unbounded_channel();
        for number in 0..3 {
            let (locks, sender) = (locks.clone(), sender.clone());
            tokio::spawn(async move {
                let held = locks.hold("one:/state/events.jsonl").await;
                sender.send(number).unwrap();
                drop(held);
            });
            tokio::task::yield_now().await;
        }
        order.try_recv().unwrap_err();
        drop(first);
        for number in 0..3 {
            assert_eq!(order.recv().await, Some(number));
        }
        tokio::task::yield_now().await;
        assert!(locks.is_empty());
    }

    #[tokio::test]
    async fn two_sessions_with_the_same_path_do_not_wait_for_each_other() {
        let locks = Locks::default();
        let one = locks.hold("one:/state/events.jsonl").await;
        let two = locks.hold("two:/state/events.jsonl").await;
        assert_eq!((one.key(), locks.len()), ("one:/state/events.jsonl", 2));
        drop((one, two));
        assert!(locks.is_empty());
    }

    #[tokio::test]
    async fn who_stops_waiting_is_forgotten() {
        let locks = Locks::default();
        let held = locks.hold("key").await;
        let waiting = tokio::spawn({
            let locks = locks.clone();
            async move { drop(locks.hold("key").await) }
        });
        tokio::task::yield_now().await;
        waiting.abort();
        waiting.await.unwrap_err();
        drop(held);
        assert!(locks.is_empty());
    }
}
