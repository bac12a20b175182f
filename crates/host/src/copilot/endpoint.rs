//! What the SDK takes for one server process.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grove_core::{SessionId, StoreName};
use subtle::ConstantTimeEq;

use super::storage::EndpointStorageClient;
use crate::connection::Queue;
use crate::host::Host;
use crate::sequencer::ConnectionId;

/// How an endpoint is opened.
#[derive(Clone)]
pub struct EndpointConfig {
    /// The name of the store for sessions of a client that brings its own storage.
    pub store: StoreName,
    /// The secret that a client must send in `connect`. Without one, the endpoint accepts pipes alone
    /// ([`CopilotEndpoint::serve_pipes`]): nobody who reaches an address gets in.
    pub secret: Option<String>,
    /// Whether the temporary files of its sessions stay.
    pub keeps_temp_files: bool,
}

impl fmt::Debug for EndpointConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointConfig").field("store", &self.store).finish_non_exhaustive()
    }
}

/// An address or a pair of pipes at which SDKs find a server. Clones are the same endpoint.
#[derive(Clone)]
pub struct CopilotEndpoint(Arc<EndpointInner>);

struct EndpointInner {
    host: Host,
    config: EndpointConfig,
    state: Mutex<EndpointState>,
}

impl fmt::Debug for CopilotEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Endpoint").field(&self.0.config).finish()
    }
}

/// What is going on at an endpoint.
#[derive(Default)]
pub(super) struct EndpointState {
    /// Those who are let in, to be told of sessions that come and go.
    pub(super) connections: HashMap<ConnectionId, Arc<Queue>>,
    /// The sessions that were made or taken up here, and by how many connections they are open.
    pub(super) open: HashMap<SessionId, HashSet<ConnectionId>>,
    /// Whose storage it is, once a client brought its own.
    pub(super) storage_client: Option<EndpointStorageClient>,
    /// The session that a person looks at.
    pub(super) foreground: Option<SessionId>,
}

impl CopilotEndpoint {
    pub fn new(host: Host, config: EndpointConfig) -> Self {
        let endpoint = Self(Arc::new(EndpointInner { host, config, state: Mutex::default() }));
        endpoint.announce();
        endpoint
    }

    pub(super) fn host(&self) -> &Host {
        &self.0.host
    }

    pub(super) fn store(&self) -> &StoreName {
        &self.0.config.store
    }

    pub(super) fn keeps_temp_files(&self) -> bool {
        self.0.config.keeps_temp_files
    }

    /// Whether this opens the endpoint, in a time that says nothing about where a guess is wrong.
    pub(super) fn opens(&self, guess: Option<&str>) -> bool {
        match &self.0.config.secret {
            None => false,
            Some(secret) => !secret.is_empty() && secret.as_bytes().ct_eq(guess.unwrap_or_default().as_bytes()).into(),
        }
    }

    // Nothing that can panic leaves it half-changed, so a poisoned lock still guards whole data.
    pub(super) fn state(&self) -> MutexGuard<'_, EndpointState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn downgrade(&self) -> WeakEndpoint {
        WeakEndpoint(Arc::downgrade(&self.0))
    }
}

/// An endpoint, as long as somebody else holds it.
pub(super) struct WeakEndpoint(std::sync::Weak<EndpointInner>);

impl WeakEndpoint {
    pub(super) fn upgrade(&self) -> Option<CopilotEndpoint> {
        self.0.upgrade().map(CopilotEndpoint)
    }
}
