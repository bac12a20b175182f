//! A resource's state, shared by the connection that changes it and its readers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{broadcast, watch};

use crate::dialect::{Dialect, DispatchOrigin};
use crate::reconcile::{ApplyOutcome, ReconciledState};

/// An action that changed the confirmed state.
#[derive(Clone, Debug)]
pub struct AppliedAction<A> {
    pub server_seq: u64,
    pub origin: Option<DispatchOrigin>,
    /// This client dispatched it.
    pub own: bool,
    pub action: A,
}

/// A change of a resource's confirmed state.
#[derive(Clone, Debug)]
pub enum ResourceChange<A> {
    Action(Arc<AppliedAction<A>>),
    /// The state was replaced, without the actions in between: read it.
    Replaced,
    /// The resource was removed; its last state stays readable.
    Gone,
    /// This follower was too slow, and missed changes: follow again from the current state.
    Lagged,
}

/// The changes of a resource since a given state.
#[derive(Debug)]
pub struct ResourceChanges<A: Clone> {
    receiver: broadcast::Receiver<ResourceChange<A>>,
}

impl<A: Clone> ResourceChanges<A> {
    /// The next change; `None` once the client is closed or the last subscription is dropped.
    pub async fn next(&mut self) -> Option<ResourceChange<A>> {
        match self.receiver.recv().await {
            Ok(change) => Some(change),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(ResourceChange::Lagged),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

pub(crate) struct Resource<D: Dialect> {
    held: Mutex<ResourceCell<D>>,
    version: watch::Sender<u64>,
}

struct ResourceCell<D: Dialect> {
    state: ReconciledState<D>,
    gone: bool,
    /// Created for the first follower.
    changes: Option<broadcast::Sender<ResourceChange<D::Action>>>,
}

impl<D: Dialect> Resource<D> {
    pub(crate) fn new(state: D::ResourceState, seq: u64) -> Self {
        let held = ResourceCell { state: ReconciledState::new(state, seq), gone: false, changes: None };
        Self { held: Mutex::new(held), version: watch::Sender::new(0) }
    }

    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.held().gone
    }

    pub(crate) fn read<T>(&self, read: impl FnOnce(&mut ReconciledState<D>) -> T) -> T {
        read(&mut self.held().state)
    }

    /// Reads the state, and follows the changes after exactly that.
    pub(crate) fn follow<T>(
        &self,
        limit: usize,
        read: impl FnOnce(&D::ResourceState) -> T,
    ) -> (T, ResourceChanges<D::Action>) {
        let mut held = self.held();
        let changes = held.changes.get_or_insert_with(|| broadcast::Sender::new(limit.max(1)));
        let receiver = changes.subscribe();
        (read(held.state.confirmed()), ResourceChanges { receiver })
    }

    pub(crate) fn dispatched(&self, client_seq: u64, action: D::Action) {
        self.held().state.dispatched(client_seq, action);
        self.wake();
    }

    /// Applies an action of the host; `own` is its `clientSeq` if this client dispatched it.
    pub(crate) fn take(&self, server_seq: u64, origin: Option<DispatchOrigin>, own: Option<u64>, action: D::Action) {
        let mut held = self.held();
        if held.state.take(server_seq, own, &action) == ApplyOutcome::Changed {
            held.tell(|| {
                ResourceChange::Action(Arc::new(AppliedAction { server_seq, origin, own: own.is_some(), action }))
            });
        }
        drop(held);
        self.wake();
    }

    /// Removes a pending action without effect.
    pub(crate) fn settle(&self, client_seq: u64) {
        if self.held().state.settle(client_seq) {
            self.wake();
        }
    }

    /// Replaces the confirmed state.
    pub(crate) fn replace(&self, state: D::ResourceState, seq: u64) {
        let mut held = self.held();
        held.state.replace(state, seq);
        held.gone = false;
        held.tell(|| ResourceChange::Replaced);
        drop(held);
        self.wake();
    }

    /// Removes all pending actions: they will get no answer.
    pub(crate) fn give_up(&self) {
        if !self.held().state.give_up().is_empty() {
            self.wake();
        }
    }

    pub(crate) fn go(&self) {
        let mut held = self.held();
        held.state.give_up();
        if !std::mem::replace(&mut held.gone, true) {
            held.tell(|| ResourceChange::Gone);
        }
        drop(held);
        self.wake();
    }

    /// Ends the followers: there will be no more changes.
    pub(crate) fn end(&self) {
        self.held().changes = None;
    }

    fn wake(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    // Only a reader's closure can panic while the lock is held, and it changes nothing: a poisoned lock is still sound.
    fn held(&self) -> MutexGuard<'_, ResourceCell<D>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Dialect> ResourceCell<D> {
    fn tell(&mut self, change: impl FnOnce() -> ResourceChange<D::Action>) {
        match &self.changes {
            Some(changes) if changes.receiver_count() > 0 => {
                // The last follower may be dropped between the two lines.
                changes.send(change()).ok();
            }
            // The last follower is gone: the buffer is not needed.
            Some(_) => self.changes = None,
            None => {}
        }
    }
}
