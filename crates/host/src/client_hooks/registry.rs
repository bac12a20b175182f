//! The clients with hooks, by session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grove_core::SessionId;
use tokio::sync::watch;

use super::ClientHooks;
use crate::sequencer::ConnectionId;

/// The clients that have hooks for sessions.
#[derive(Default)]
pub struct ClientHookRegistry {
    sessions: Mutex<HashMap<SessionId, Vec<HookClient>>>,
    /// Changes when a client registers its hooks.
    arrivals: watch::Sender<u64>,
}

/// A client with hooks for a session.
#[derive(Clone)]
pub(crate) struct HookClient {
    connection: ConnectionId,
    pub(crate) hooks: Arc<dyn ClientHooks>,
    source: HookSource,
    has_started: bool,
}

/// The way in which a client opened its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookSource {
    New,
    Resume,
}

impl ClientHookRegistry {
    /// Registers the hooks of a connection for a session, in place of its earlier ones.
    pub fn register(
        &self,
        session: &SessionId,
        connection: ConnectionId,
        hooks: Arc<dyn ClientHooks>,
        source: HookSource,
    ) {
        let client = HookClient { connection, hooks, source, has_started: false };
        let mut sessions = self.sessions();
        let clients = sessions.entry(session.clone()).or_default();
        clients.retain(|known| known.connection != connection);
        clients.push(client);
        drop(sessions);
        self.arrivals.send_modify(|count| *count += 1);
    }

    /// Forgets the hooks of a connection for a session. Returns them, if there were any.
    pub fn remove(&self, session: &SessionId, connection: ConnectionId) -> Option<Arc<dyn ClientHooks>> {
        let mut sessions = self.sessions();
        let clients = sessions.get_mut(session)?;
        let at = clients.iter().position(|known| known.connection == connection)?;
        let removed = clients.remove(at);
        if clients.is_empty() {
            sessions.remove(session);
        }
        Some(removed.hooks)
    }

    /// Returns whether a session has clients with hooks.
    pub fn has_clients(&self, session: &SessionId) -> bool {
        self.sessions().contains_key(session)
    }

    /// The clients with hooks for a session, in the order of their arrival.
    pub(crate) fn of(&self, session: &SessionId) -> Vec<HookClient> {
        self.sessions().get(session).cloned().unwrap_or_default()
    }

    /// Takes the clients that have not been told of a prompt yet: the session starts for them.
    pub(super) fn take_starting(&self, session: &SessionId) -> Vec<(Arc<dyn ClientHooks>, HookSource)> {
        let mut sessions = self.sessions();
        let mut starting = Vec::new();
        for client in sessions.get_mut(session).into_iter().flatten() {
            if !std::mem::replace(&mut client.has_started, true) {
                starting.push((client.hooks.clone(), client.source));
            }
        }
        starting
    }

    /// Waits until a session has a client with hooks.
    pub(super) async fn arrival(&self, session: &SessionId) {
        let mut arrivals = self.arrivals.subscribe();
        while !self.has_clients(session) {
            // The sender is here as long as this is.
            if arrivals.changed().await.is_err() {
                return;
            }
        }
    }

    // Every change is complete before anything can panic, so a poisoned lock still guards valid data.
    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Vec<HookClient>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for ClientHookRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientHookRegistry").finish_non_exhaustive()
    }
}
