//! The slots for processes: how many there may be, and which process stops for another.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// The slots of a pool.
#[derive(Debug)]
pub(crate) struct ProcessSlots {
    free: Arc<Semaphore>,
    table: Mutex<SlotTable>,
}

#[derive(Debug, Default)]
struct SlotTable {
    last: u64,
    taken: BTreeMap<u64, OccupiedSlot>,
    /// The number of callers that wait for a slot.
    waiting: usize,
}

#[derive(Debug)]
struct OccupiedSlot {
    /// The start of its idle time, if it is idle.
    idle: Option<Instant>,
    /// It was asked to stop for a waiting caller.
    is_asked_to_stop: bool,
    stop: Arc<Notify>,
}

/// A slot for one process. Dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct ProcessSlot {
    number: u64,
    stop: Arc<Notify>,
    slots: Arc<ProcessSlots>,
    /// None for a process that ran before the pool existed.
    _permit: Option<OwnedSemaphorePermit>,
}

/// A caller that waits for a slot, until it is dropped.
struct SlotWaiter<'a>(&'a ProcessSlots);

impl ProcessSlots {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let free = Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS)));
        Arc::new(Self { free, table: Mutex::default() })
    }

    pub(crate) fn taken(&self) -> usize {
        self.table().taken.len()
    }

    /// Takes a slot if one is free.
    pub(crate) fn try_take(self: &Arc<Self>) -> Option<ProcessSlot> {
        let permit = Arc::clone(&self.free).try_acquire_owned().ok()?;
        Some(self.slot(Some(permit)))
    }

    /// Takes a slot as soon as one is free. The process that was idle longest is asked to stop for it.
    pub(crate) async fn take(self: &Arc<Self>) -> ProcessSlot {
        if let Some(slot) = self.try_take() {
            return slot;
        }
        let waiter = SlotWaiter::new(self);
        // The semaphore is never closed; a process without a permit would only not be counted.
        let permit = Arc::clone(&self.free).acquire_owned().await.ok();
        drop(waiter);
        self.slot(permit)
    }

    /// Takes a slot if one is free or an idle process can stop. `None`: each of them has a turn.
    pub(crate) async fn take_from_idle(self: &Arc<Self>) -> Option<ProcessSlot> {
        if let Some(slot) = self.try_take() {
            return Some(slot);
        }
        let may_make_way = {
            let table = self.table();
            table.taken.values().filter(|taken| taken.idle.is_some()).count() > table.waiting
        };
        match may_make_way {
            true => Some(self.take().await),
            false => None,
        }
    }

    /// Takes a slot for a process that already runs, past the limit if need be.
    pub(crate) fn take_anyway(self: &Arc<Self>) -> ProcessSlot {
        let permit = Arc::clone(&self.free).try_acquire_owned().ok();
        self.slot(permit)
    }

    fn slot(self: &Arc<Self>, permit: Option<OwnedSemaphorePermit>) -> ProcessSlot {
        let mut table = self.table();
        table.last += 1;
        let (number, stop) = (table.last, Arc::new(Notify::new()));
        table.taken.insert(number, OccupiedSlot { idle: None, is_asked_to_stop: false, stop: Arc::clone(&stop) });
        ProcessSlot { number, stop, slots: Arc::clone(self), _permit: permit }
    }

    // Every change of the table is complete before anything can panic, so a poisoned one is still sound.
    fn table(&self) -> MutexGuard<'_, SlotTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotTable {
    /// Asks as many idle processes to stop as there are waiting callers, the longest idle first.
    fn make_room(&mut self) {
        let stopping_count = self.taken.values().filter(|taken| taken.is_asked_to_stop).count();
        for _ in stopping_count..self.waiting {
            let idle = self.taken.values_mut().filter(|taken| !taken.is_asked_to_stop && taken.idle.is_some());
            let Some(longest) = idle.min_by_key(|taken| taken.idle) else { return };
            longest.is_asked_to_stop = true;
            longest.stop.notify_one();
        }
    }
}

impl<'a> SlotWaiter<'a> {
    fn new(slots: &'a ProcessSlots) -> Self {
        let mut table = slots.table();
        table.waiting += 1;
        table.make_room();
        Self(slots)
    }
}

impl Drop for SlotWaiter<'_> {
    fn drop(&mut self) {
        self.0.table().waiting -= 1;
    }
}

impl ProcessSlot {
    /// Marks its process as idle: it is the next to stop when somebody waits.
    pub(crate) fn idle(&self) {
        let mut table = self.slots.table();
        if let Some(taken) = table.taken.get_mut(&self.number) {
            taken.idle.get_or_insert_with(Instant::now);
        }
        table.make_room();
    }

    /// The time since which its process is idle.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        self.slots.table().taken.get(&self.number).and_then(|taken| taken.idle)
    }

    /// Marks its process as busy. `false`: it was asked to stop earlier, and has to.
    pub(crate) fn busy(&self) -> bool {
        let mut table = self.slots.table();
        let Some(taken) = table.taken.get_mut(&self.number) else { return false };
        taken.idle = None;
        !taken.is_asked_to_stop
    }

    /// Waits until its process has to stop for another.
    pub(crate) async fn stop_requested(&self) {
        self.stop.notified().await;
    }
}

impl Drop for ProcessSlot {
    fn drop(&mut self) {
        self.slots.table().taken.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const SOON: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn one_more_process_waits_until_another_ends() {
        let slots = ProcessSlots::new(2);
        let first = slots.try_take().unwrap();
        let _second = slots.try_take().unwrap();
        assert!(slots.try_take().is_none());
        assert!(timeout(SOON, slots.take()).await.is_err());
        drop(first);
        timeout(SOON, slots.take()).await.unwrap();
        assert_eq!(slots.taken(), 1, "one was given back at once");
    }

    #[tokio::test]
    async fn the_longest_idle_process_goes_for_another_and_no_other_does() {
        let slots = ProcessSlots::new(3);
        let (busy, young, old) = (slots.take().await, slots.take().await, slots.take().await);
        old.idle();
        tokio::time::sleep(Duration::from_millis(2)).await;
        young.idle();
        let waiting = tokio::spawn({
            let slots = Arc::clone(&slots);
            async move { slots.take().await }
        });
        timeout(Duration::from_secs(5), old.stop_requested()).await.unwrap();
        assert!(timeout(SOON, young.stop_requested()).await.is_err() && young.busy() && busy.busy());
        assert!(!old.busy(), "it has to stop, whatever it is asked for");
        drop(old);
        waiting.await.unwrap();
    }

    #[tokio::test]
    async fn a_process_that_can_wait_gets_a_place_of_an_idle_one_and_none_of_a_busy_one() {
        let slots = ProcessSlots::new(1);
        let only = slots.take_from_idle().await.unwrap();
        assert!(slots.take_from_idle().await.is_none(), "it has a turn");
        only.idle();
        let waiting = tokio::spawn({
            let slots = Arc::clone(&slots);
            async move { slots.take_from_idle().await }
        });
        timeout(Duration::from_secs(5), only.stop_requested()).await.unwrap();
        drop(only);
        assert!(waiting.await.unwrap().is_some());
    }

    #[tokio::test]
    async fn whoever_becomes_idle_while_somebody_waits_goes_at_once() {
        let slots = ProcessSlots::new(1);
        let only = slots.take().await;
        let waiting = tokio::spawn({
            let slots = Arc::clone(&slots);
            async move { slots.take().await }
        });
        assert!(timeout(SOON, only.stop_requested()).await.is_err());
        only.idle();
        timeout(Duration::from_secs(5), only.stop_requested()).await.unwrap();
        drop(only);
        waiting.await.unwrap();
    }

    #[tokio::test]
    async fn whoever_stops_waiting_makes_nobody_go() {
        let slots = ProcessSlots::new(1);
        let only = slots.take().await;
        assert!(timeout(SOON, slots.take()).await.is_err());
        only.idle();
        assert!(timeout(SOON, only.stop_requested()).await.is_err());
        let extra = slots.take_anyway();
        assert_eq!(slots.taken(), 2);
        drop((only, extra));
        assert!(slots.try_take().is_some());
    }
}
