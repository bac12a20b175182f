//! Bounded subscriptions to events.

use std::fmt;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

/// An item of a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubscriptionItem<E> {
    /// An event.
    Event(E),
    /// This listener was too slow and lost events: its list is outdated, and it has to list again.
    Reset,
}

/// The events from now on. They wait up to a limit; past it the oldest are lost, and a [`SubscriptionItem::Reset`] says
/// so.
pub struct Subscription<E> {
    receiver: broadcast::Receiver<E>,
}

impl<E: Clone> Subscription<E> {
    pub(crate) fn new(receiver: broadcast::Receiver<E>) -> Self {
        Self { receiver }
    }

    /// The next item, `None` when there will be no more. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<SubscriptionItem<E>> {
        match self.receiver.recv().await {
            Ok(event) => Some(SubscriptionItem::Event(event)),
            Err(RecvError::Lagged(_)) => Some(self.reset()),
            Err(RecvError::Closed) => None,
        }
    }

    /// The next item, if there is one already.
    pub fn try_next(&mut self) -> Option<SubscriptionItem<E>> {
        match self.receiver.try_recv() {
            Ok(event) => Some(SubscriptionItem::Event(event)),
            Err(TryRecvError::Lagged(_)) => Some(self.reset()),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }

    /// The remaining events are older than the list that the listener requests now.
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
