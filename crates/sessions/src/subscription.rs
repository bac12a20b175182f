//! Listening to what happens, with a bound.

use std::fmt;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

/// One thing that a listener is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubscriptionItem<E> {
    /// Something happened.
    Event(E),
    /// So much happened that this listener lost some of it: what it has is old, and it lists anew.
    Reset,
}

/// What happens from now on. Events wait up to a bound; past it the oldest are lost, and a [`SubscriptionItem::Reset`] says so.
pub struct Subscription<E> {
    receiver: broadcast::Receiver<E>,
}

impl<E: Clone> Subscription<E> {
    pub(crate) fn new(receiver: broadcast::Receiver<E>) -> Self {
        Self { receiver }
    }

    /// The next thing, `None` when there will be no more. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<SubscriptionItem<E>> {
        match self.receiver.recv().await {
            Ok(event) => Some(SubscriptionItem::Event(event)),
            Err(RecvError::Lagged(_)) => Some(self.reset()),
            Err(RecvError::Closed) => None,
        }
    }

    /// The next thing, where it has happened already.
    pub fn try_next(&mut self) -> Option<SubscriptionItem<E>> {
        match self.receiver.try_recv() {
            Ok(event) => Some(SubscriptionItem::Event(event)),
            Err(TryRecvError::Lagged(_)) => Some(self.reset()),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }

    /// What is left in the queue is older than the list that the listener asks for now.
    fn reset(&mut self) -> SubscriptionItem<E> {
        self.receiver = self.receiver.resubscribe();
        SubscriptionItem::Reset
    }
}

impl<E> fmt::Debug for Subscription<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}
