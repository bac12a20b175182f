//! A resource's state, shared between the connection that changes it and those who look.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{broadcast, watch};

use crate::dialect::{Dialect, DispatchOrigin};
use crate::reconcile::{ApplyOutcome, ReconciledState};

/// An action that changed the confirmed state.
#[derive(Clone, Debug)]
pub struct AppliedAction<A> {
    pub server_seq: u64,
    pub origin: Option<DispatchOrigin>,
    /// Whether this client dispatched it.
    pub own: bool,
    pub action: A,
}

/// What happened to a resource's confirmed state.
#[derive(Clone, Debug)]
pub enum ResourceChange<A> {
    Action(Arc<AppliedAction<A>>),
    /// The state came afresh, and what led to it is not known: read it.
    Replaced,
    /// The resource is not there any more; its last state stays readable.
    Gone,
    /// This follower was too slow, and changes are missing: follow again, from the state as it is now.
    Lagged,
}

/// The changes of a resource from a certain state on.
#[derive(Debug)]
pub struct ResourceChanges<A: Clone> {
    receiver: broadcast::Receiver<ResourceChange<A>>,
}

impl<A: Clone> ResourceChanges<A> {
    /// The next change; `None` when the client is closed or nobody is subscribed any more.
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
    /// Only once somebody follows.
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

    /// Reads, and listens for what comes after exactly that.
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

    /// An action of the host's order; `own` is its `clientSeq` where it is this client's.
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

    /// An action of this client is not pending any more, and had no effect.
    pub(crate) fn settle(&self, client_seq: u64) {
        if self.held().state.settle(client_seq) {
            self.wake();
        }
    }

    /// The host's state afresh.
    pub(crate) fn replace(&self, state: D::ResourceState, seq: u64) {
        let mut held = self.held();
        held.state.replace(state, seq);
        held.gone = false;
        held.tell(|| ResourceChange::Replaced);
        drop(held);
        self.wake();
    }

    /// No answer to what is pending will come.
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

    /// Ends the followers: nothing will come any more.
    pub(crate) fn end(&self) {
        self.held().changes = None;
    }

    fn wake(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    // Every change of what is held is whole before anything can panic, but for a reader's closure, which changes
    // nothing: a poisoned one is still sound.
    fn held(&self) -> MutexGuard<'_, ResourceCell<D>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Dialect> ResourceCell<D> {
    fn tell(&mut self, change: impl FnOnce() -> ResourceChange<D::Action>) {
        match &self.changes {
            Some(changes) if changes.receiver_count() > 0 => {
                // The last follower may go between the two lines; then nobody hears it.
                changes.send(change()).ok();
            }
            // Nobody follows any more: the buffer is not needed.
            Some(_) => self.changes = None,
            None => {}
        }
    }
}
