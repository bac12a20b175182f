//! Endpoints: each is one server process to the SDK.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grove_checks::Check;
use grove_core::{SessionId, StoreName};
use grove_host::Host;
use grove_host::sequencer::ConnectionId;
use grove_host::subscriber::Queue;
use grove_host::tokens::HostToken;
use subtle::ConstantTimeEq;

use super::feed::Feeds;
use super::storage::EndpointStorageClient;

/// The configuration of an endpoint.
#[derive(Clone)]
pub struct EndpointConfig {
    /// The name of the store for sessions of a storage client.
    pub store: StoreName,
    /// The secret that a client must send in `connect`.
    ///
    /// Without one, the endpoint accepts pipes alone (`grove copilot --stdio`): reaching an address is not enough.
    pub secret: Option<EndpointSecret>,
    /// Says whether the temporary files of its sessions are kept.
    pub keeps_temp_files: bool,
}

/// The secret that opens an endpoint.
#[derive(Clone)]
pub enum EndpointSecret {
    /// One of the endpoint's own.
    Text(String),
    /// The host's own token, as it is at the moment.
    HostToken(HostToken),
}

impl fmt::Debug for EndpointSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EndpointSecret(…)")
    }
}

impl fmt::Debug for EndpointConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointConfig").field("store", &self.store).finish_non_exhaustive()
    }
}

/// An address or a pair of pipes at which SDKs find a server. Clones are the same endpoint.
#[derive(Clone)]
pub(crate) struct CopilotEndpoint(Arc<EndpointInner>);

struct EndpointInner {
    host: Host,
    /// The feeds of all endpoints.
    feeds: Arc<Feeds>,
    config: EndpointConfig,
    state: Mutex<EndpointState>,
}

impl fmt::Debug for CopilotEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Endpoint").field(&self.0.config).finish()
    }
}

/// The state of an endpoint.
#[derive(Default)]
pub(super) struct EndpointState {
    /// Authenticated connections, which are notified of created and deleted sessions.
    pub(super) connections: HashMap<ConnectionId, Arc<Queue>>,
    /// The sessions that were created or opened here, with the connections that have them open.
    pub(super) open: HashMap<SessionId, HashSet<ConnectionId>>,
    /// The storage client, once a client has attached its storage.
    pub(super) storage_client: Option<EndpointStorageClient>,
    /// The session in the foreground of the user's screen.
    pub(super) foreground: Option<SessionId>,
}

impl CopilotEndpoint {
    pub(crate) fn new(host: Host, feeds: Arc<Feeds>, config: EndpointConfig) -> Self {
        let endpoint = Self(Arc::new(EndpointInner { feeds, host, config, state: Mutex::default() }));
        endpoint.announce();
        endpoint
    }

    pub(super) fn host(&self) -> &Host {
        &self.0.host
    }

    pub(super) fn feeds(&self) -> &Arc<Feeds> {
        &self.0.feeds
    }

    pub(super) fn store(&self) -> &StoreName {
        &self.0.config.store
    }

    pub(super) fn keeps_temp_files(&self) -> bool {
        self.0.config.keeps_temp_files
    }

    /// The host's own token, if that opens the endpoint.
    pub(crate) fn host_token(&self) -> Option<&HostToken> {
        match &self.0.config.secret {
            Some(EndpointSecret::HostToken(token)) => Some(token),
            Some(EndpointSecret::Text(_)) | None => None,
        }
    }

    /// Compares a secret with the endpoint's, in constant time.
    pub(super) fn opens(&self, guess: Option<&str>) -> bool {
        if !Check::CopilotSecret.is_enforced() {
            return true;
        }
        match &self.0.config.secret {
            None => false,
            Some(EndpointSecret::Text(secret)) => {
                !secret.is_empty() && secret.as_bytes().ct_eq(guess.unwrap_or_default().as_bytes()).into()
            }
            Some(EndpointSecret::HostToken(token)) => token.check(guess.unwrap_or_default()).is_some(),
        }
    }

    // Nothing that can panic leaves it half-changed, so a poisoned lock still guards valid data.
    pub(super) fn state(&self) -> MutexGuard<'_, EndpointState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn downgrade(&self) -> WeakEndpoint {
        WeakEndpoint(Arc::downgrade(&self.0))
    }
}

/// A weak reference to an endpoint.
pub(super) struct WeakEndpoint(std::sync::Weak<EndpointInner>);

impl WeakEndpoint {
    pub(super) fn upgrade(&self) -> Option<CopilotEndpoint> {
        self.0.upgrade().map(CopilotEndpoint)
    }
}
