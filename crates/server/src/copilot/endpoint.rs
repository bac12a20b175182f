//! Endpoints: each is one server process to the SDK.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grove_checks::Check;
use grove_core::{ModelId, SessionId, StoreName};
use grove_host::Host;
use grove_host::sequencer::ConnectionId;
use grove_host::subscriber::Queue;
use grove_host::tokens::{HostToken, TokenGrant};
use subtle::ConstantTimeEq;

use super::feed::Feeds;
use super::storage::EndpointStorageClient;
use crate::http::WrongTokens;

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
    /// The folder of sessions that name none, as a URI: the working directory of the program that the SDK started.
    pub default_folder: Option<String>,
    /// Says whether its new sessions allow everything that no rule denies: the program was started with `--allow-all`.
    pub allows_all: bool,
}

/// The secret that opens an endpoint.
#[derive(Clone)]
pub enum EndpointSecret {
    /// One of the endpoint's own.
    Text(String),
    /// A token of the host: its own, as it is at the moment, or a named one.
    Token(HostToken),
}

/// The rights that a secret gives.
pub(super) enum EndpointLogin {
    /// Those of the token.
    Token(TokenGrant),
    /// Those of the program that opened the endpoint with a secret of its own.
    Secret,
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
    wrong_tokens: Arc<WrongTokens>,
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
    /// The names by which clients selected the models of sessions: names of Copilot's own, which the configuration maps.
    /// Those of closed sessions are forgotten.
    pub(super) selected_models: HashMap<SessionId, SelectedModel>,
    /// The modes of open sessions whose agents have none.
    pub(super) modes: HashMap<SessionId, String>,
}

/// The name by which a client selected a session's model.
#[derive(Clone, Debug)]
pub(super) struct SelectedModel {
    pub(super) name: String,
    /// The session's model at that time.
    pub(super) model: Option<ModelId>,
    /// The reasoning effort, if no agent has the model.
    pub(super) effort: Option<String>,
}

impl CopilotEndpoint {
    pub(crate) fn new(host: Host, feeds: Arc<Feeds>, wrong_tokens: Arc<WrongTokens>, config: EndpointConfig) -> Self {
        let endpoint = Self(Arc::new(EndpointInner { feeds, host, wrong_tokens, config, state: Mutex::default() }));
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

    pub(super) fn default_folder(&self) -> Option<&String> {
        self.0.config.default_folder.as_ref()
    }

    pub(super) fn allows_all(&self) -> bool {
        self.0.config.allows_all
    }

    pub(super) fn wrong_tokens(&self) -> &WrongTokens {
        &self.0.wrong_tokens
    }

    /// Compares a guess with the secrets that open the endpoint, in constant time.
    pub(super) fn open_with(&self, guess: &str) -> Option<EndpointLogin> {
        let is_enforced = Check::CopilotSecret.is_enforced();
        match &self.0.config.secret {
            None => (!is_enforced).then_some(EndpointLogin::Secret),
            Some(EndpointSecret::Text(secret)) => {
                let is_right = !secret.is_empty() && bool::from(secret.as_bytes().ct_eq(guess.as_bytes()));
                (is_right || !is_enforced).then_some(EndpointLogin::Secret)
            }
            Some(EndpointSecret::Token(token)) => {
                let named = || self.0.host.tokens().and_then(|tokens| tokens.check(guess));
                let found = token.check(guess).or_else(named);
                found.or_else(|| (!is_enforced).then(|| token.grant())).map(EndpointLogin::Token)
            }
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
