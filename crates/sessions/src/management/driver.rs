//! The driver, which notifies listeners of changes when they happen, and not only on the next read.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::{self, FuturesUnordered, SelectAll, Stream};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{oneshot, watch};

use super::ManagementShared;
use crate::provider::SessionsProvider;
use crate::session::SessionState;

/// Drives the management: the caller spawns [`ManagementDriver::run`], which ends when the management is dropped.
#[derive(Debug)]
#[must_use = "listeners hear nothing unless it runs"]
pub struct ManagementDriver {
    pub(super) shared: Arc<ManagementShared>,
    pub(super) dropped: oneshot::Receiver<()>,
}

type Wakes = Pin<Box<dyn Stream<Item = ()> + Send>>;

impl ManagementDriver {
    /// Passes on events until the management is dropped.
    pub async fn run(mut self) {
        let mut registry = self.shared.registry.entries();
        let mut looked = self.shared.looked.subscribe();
        let mut wakes: SelectAll<Wakes> = SelectAll::new();
        let mut fulfilling = FuturesUnordered::new();
        let mut listening: HashMap<u64, oneshot::Sender<()>> = HashMap::new();
        loop {
            // Each receiver subscribes before the state is read, so that nothing happens unnoticed in between.
            let entries = registry.borrow_and_update().clone();
            listening.retain(|number, _| entries.iter().any(|entry| entry.number == *number));
            for entry in entries.iter() {
                listening.entry(entry.number).or_insert_with(|| {
                    let (stop, stopped) = oneshot::channel();
                    wakes.push(wakes_of(entry.provider.as_ref(), stopped));
                    stop
                });
            }
            looked.mark_unchanged();
            let mut active = self.shared.active();
            self.shared.catch_up();
            let replacement_requests = self.shared.replacement_requests().into_iter();
            fulfilling.extend(replacement_requests.map(|(viewer, replacement_request)| {
                self.shared.clone().create_replacement(viewer, replacement_request)
            }));
            tokio::select! {
                _ = &mut self.dropped => return,
                _ = registry.changed() => {}
                _ = looked.changed() => {}
                () = changed(&mut active) => {}
                Some(()) = wakes.next() => {}
                Some(()) = fulfilling.next() => {}
            }
        }
    }
}

/// Signals each event of a provider, until it is stopped. The event itself is read from another receiver.
fn wakes_of(provider: &dyn SessionsProvider, stopped: oneshot::Receiver<()>) -> Wakes {
    let events = provider.subscribe();
    let wakes = stream::unfold((events, stopped), |(mut events, mut stopped)| async move {
        tokio::select! {
            _ = &mut stopped => None,
            event = events.recv() => match event {
                Ok(_) | Err(RecvError::Lagged(_)) => Some(((), (events, stopped))),
                Err(RecvError::Closed) => None,
            },
        }
    });
    Box::pin(wakes)
}

/// Waits for a change of an active session. A session without a source never changes.
async fn changed(active: &mut [watch::Receiver<Arc<SessionState>>]) {
    let mut waits: FuturesUnordered<_> = active.iter_mut().map(|session| session.changed()).collect();
    while let Some(changed) = waits.next().await {
        if changed.is_ok() {
            return;
        }
    }
    std::future::pending().await
}
