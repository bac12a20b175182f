//! The connections of the host.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Host;
use crate::presence::Presence;
use crate::sequencer::ConnectionId;
use crate::subscriber::{DisconnectReason, Outgoing, Queue};

/// The queues of connections that do not attach to the sequencer: a host that stops ends them as well.
#[derive(Default)]
pub(super) struct UnattachedConnections(Mutex<HashMap<ConnectionId, Arc<Queue>>>);

impl UnattachedConnections {
    /// Ends all of them, after their queued output.
    pub(super) fn end(&self) {
        self.all().values().for_each(|queue| queue.push(Outgoing::Last(DisconnectReason::Stopping)));
    }

    // Nothing that can panic leaves it half-changed, so a poisoned lock still guards valid data.
    fn all(&self) -> MutexGuard<'_, HashMap<ConnectionId, Arc<Queue>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Host {
    /// The attached clients of all sessions.
    pub fn presence(&self) -> &Arc<Presence> {
        self.0.sequencer.presence()
    }

    /// The id of a new connection.
    pub fn next_connection(&self) -> ConnectionId {
        ConnectionId(self.0.last_connection.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Adds a connection that does not attach to the sequencer. A host that stops ends it, after its queued output.
    pub fn add_unattached(&self, id: ConnectionId, queue: Arc<Queue>) {
        self.0.unattached.all().insert(id, queue);
    }

    /// Removes a connection that has ended and was not attached to the sequencer.
    pub fn remove_unattached(&self, id: ConnectionId) {
        self.0.unattached.all().remove(&id);
    }
}
