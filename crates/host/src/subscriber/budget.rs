//! A bound on the bytes in use.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// A bound on bytes. Users reserve the bytes that they expect to need, and correct the number once they know it.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    used: Mutex<usize>,
    freed: Notify,
}

/// Bytes in use, until this is dropped.
#[derive(Debug)]
pub struct ReservedBytes {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Budget {
    /// A budget of so many bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, used: Mutex::default(), freed: Notify::new() }
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Waits until so many bytes are left, or none is in use: a request above the bound is let through alone.
    pub(crate) async fn reserve(self: &Arc<Self>, bytes: usize) -> ReservedBytes {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // Bytes that are freed between the check and the wait must not be missed.
            freed.as_mut().enable();
            {
                let mut used = self.used();
                if *used == 0 || used.saturating_add(bytes) <= self.limit {
                    *used += bytes;
                    return ReservedBytes { budget: self.clone(), bytes };
                }
            }
            freed.await;
        }
    }

    /// Reserves without waiting; `None` if fewer bytes are left.
    pub fn try_reserve(self: &Arc<Self>, bytes: usize) -> Option<ReservedBytes> {
        let mut used = self.used();
        (used.saturating_add(bytes) <= self.limit).then(|| {
            *used += bytes;
            ReservedBytes { budget: self.clone(), bytes }
        })
    }

    // Nothing in here can panic half-way, so a poisoned lock still guards a valid number.
    fn used(&self) -> MutexGuard<'_, usize> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReservedBytes {
    /// Corrects the reservation to the actual size.
    pub(crate) fn resize_to(&mut self, bytes: usize) {
        let mut used = self.budget.used();
        *used = used.saturating_sub(self.bytes) + bytes;
        drop(used);
        if bytes < self.bytes {
            self.budget.freed.notify_waiters();
        }
        self.bytes = bytes;
    }
}

impl Drop for ReservedBytes {
    fn drop(&mut self) {
        self.resize_to(0);
        self.budget.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn more_than_the_bound_is_let_through_by_itself_alone() {
        let budget = Arc::new(Budget::new(10));
        let mut first = budget.reserve(4).now_or_never().unwrap();
        let second = budget.reserve(6).now_or_never().unwrap();
        assert!(budget.reserve(1).now_or_never().is_none());
        drop(second);
        // The actual size is larger.
        first.resize_to(50);
        let mut waiting = Box::pin(budget.reserve(1));
        assert!((&mut waiting).now_or_never().is_none());
        first.resize_to(9);
        let third = (&mut waiting).now_or_never().unwrap();
        assert!(budget.reserve(1).now_or_never().is_none());
        drop((first, third));
        assert!(budget.reserve(100).now_or_never().is_some());
        assert_eq!(*budget.used(), 0);
    }
}
