//! The published state, shared with everybody who reads it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use grove_checks::Check;
use grove_core::*;
use grove_storage::session_file::EvictedSession;
use grove_wire::ahp::TerminalInfo;
use grove_wire::ahp::uri::{ChatName, SessionName};

use super::{ConnectionId, ResolvedTarget, SubscriptionTarget};
use crate::presence::Presence;
use crate::subscriber::Dialect;
use crate::tokens::TokenPublicId;

/// The published state and the known clients, for readers outside the sequencer.
///
/// The sequencer alone changes them. It holds no lock while it waits, so readers never queue behind the disk.
#[derive(Debug)]
pub(super) struct SharedState {
    published: RwLock<PublishedState>,
    clients: RwLock<HashMap<ClientId, RememberedClient>>,
    /// The ids of clients that are about to attach, so that two tokens cannot both be the first to use one.
    claims: Mutex<HashMap<ClientId, ClientClaims>>,
    connections: AtomicUsize,
    presence: Arc<Presence>,
}

/// The connections that are about to attach with an id.
#[derive(Debug)]
struct ClientClaims {
    /// The named token of all of them; none for the owner of the host.
    token: Option<TokenPublicId>,
    connections: usize,
}

/// A client's id that belongs to a token, at least until this is dropped.
#[derive(Debug)]
pub struct ClientClaim {
    shared: Arc<SharedState>,
    client: ClientId,
}

impl ClientClaim {
    pub fn client(&self) -> &ClientId {
        &self.client
    }
}

impl Drop for ClientClaim {
    fn drop(&mut self) {
        let mut claims = self.shared.claims();
        if let Some(claimed) = claims.get_mut(&self.client) {
            claimed.connections -= 1;
            if claimed.connections == 0 {
                claims.remove(&self.client);
            }
        }
    }
}

/// A client that was connected before.
#[derive(Debug)]
pub(super) struct RememberedClient {
    pub(super) dialect: Dialect,
    /// Its own name, if it sent one to this host.
    pub(super) name: Option<Arc<str>>,
    /// The named token that its id belongs to; none for the owner of the host.
    pub(super) token: Option<TokenPublicId>,
    pub(super) connection: Option<ConnectionId>,
    /// The time of its last connect or disconnect, in the sequencer's own count.
    pub(super) touched: u64,
}

// Applying an event is total, and nothing else that can panic happens under a lock for writing, so a poisoned lock still
// guards valid data.
impl SharedState {
    pub(super) fn new(
        published: PublishedState,
        clients: HashMap<ClientId, RememberedClient>,
        presence: Arc<Presence>,
    ) -> Self {
        Self {
            published: RwLock::new(published),
            clients: RwLock::new(clients),
            claims: Mutex::default(),
            connections: AtomicUsize::new(0),
            presence,
        }
    }

    /// Claims a client's id for a token; `None` if it belongs to another one that exists.
    pub(super) fn claim_client(
        self: &Arc<Self>,
        client: ClientId,
        token: Option<TokenPublicId>,
        exists: impl Fn(Option<TokenPublicId>) -> bool,
    ) -> Option<ClientClaim> {
        let mut claims = self.claims();
        let remembered = self.clients().get(&client).map(|known| known.token);
        let claimed = claims.get(&client).map(|claimed| claimed.token).filter(|_| Check::ClientClaim.is_enforced());
        let is_taken =
            |owner: Option<Option<TokenPublicId>>| owner.is_some_and(|owner| owner != token && exists(owner));
        if Check::ClientId.is_enforced() && (is_taken(remembered) || is_taken(claimed)) {
            return None;
        }
        let claimed = claims.entry(client.clone()).or_insert(ClientClaims { token, connections: 0 });
        claimed.token = token;
        claimed.connections += 1;
        Some(ClientClaim { shared: self.clone(), client })
    }

    fn claims(&self) -> MutexGuard<'_, HashMap<ClientId, ClientClaims>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The attached clients of all sessions.
    pub(super) fn presence(&self) -> &Arc<Presence> {
        &self.presence
    }

    pub(super) fn published(&self) -> RwLockReadGuard<'_, PublishedState> {
        self.published.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn published_mut(&self) -> RwLockWriteGuard<'_, PublishedState> {
        self.published.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn clients(&self) -> RwLockReadGuard<'_, HashMap<ClientId, RememberedClient>> {
        self.clients.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn clients_mut(&self) -> RwLockWriteGuard<'_, HashMap<ClientId, RememberedClient>> {
        self.clients.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connections whose clients are known.
    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub(super) fn set_connections(&self, count: usize) {
        self.connections.store(count, Ordering::Relaxed);
    }
}

/// The state that everybody can see, and the sequence number of its last event.
#[derive(Debug, Default)]
pub struct PublishedState {
    pub state: State,
    /// Sessions that are listed and not loaded.
    pub evicted: HashMap<SessionId, EvictedSession>,
    pub seq: u64,
    /// The terminals of clients, once there were any.
    pub terminals: Option<Vec<TerminalInfo>>,
}

impl PublishedState {
    /// The session that was created under exactly this URI.
    pub(crate) fn session_at(&self, uri: &SessionUri) -> Option<&Session> {
        self.state.sessions.get(&uri.id()?).filter(|session| session.uri == *uri)
    }

    /// Says whether there is a session of this id, loaded or not.
    pub fn is_known(&self, id: &SessionId) -> bool {
        self.state.sessions.contains_key(id) || self.evicted.contains_key(id)
    }

    /// All listed sessions, and whether the last turn of the main chat ended in error.
    pub fn listed(&self) -> impl Iterator<Item = (&Session, bool)> {
        let failed = |session: &Session| session.main_chat().is_some_and(|chat| chat.status() == ChatStatus::Error);
        let loaded = self.state.sessions.values().map(move |session| (session, failed(session)));
        loaded.chain(self.evicted.values().map(|evicted| (&evicted.session, evicted.failed)))
    }

    /// The session with this chat, beside its main one.
    pub fn session_of_chat(&self, chat: &ChatId) -> Option<&Session> {
        self.listed().map(|(session, _)| session).find(|session| {
            session.catalogue.len() > 1 && session.catalogue.iter().skip(1).any(|row| row.chat == *chat)
        })
    }

    /// The loaded resource that a name refers to.
    pub fn find(&self, wanted: &SubscriptionTarget) -> Option<ResolvedTarget<'_>> {
        let session = |name: &SessionName| self.state.sessions.get(&name.id).filter(|session| name.fits(session));
        match wanted {
            SubscriptionTarget::Root => Some(ResolvedTarget::Root),
            SubscriptionTarget::SessionWithMainChat(uri) => {
                self.session_at(uri).map(ResolvedTarget::SessionWithMainChat)
            }
            SubscriptionTarget::Session(name) => session(name).map(ResolvedTarget::Session),
            SubscriptionTarget::Chat(ChatName::Main(name)) => {
                session(name).and_then(|session| Some(ResolvedTarget::Chat(session, session.main_chat()?)))
            }
            SubscriptionTarget::Chat(ChatName::Of(name, chat)) => {
                session(name).and_then(|session| Some(ResolvedTarget::Chat(session, session.chat(chat)?)))
            }
            SubscriptionTarget::Chat(ChatName::ById(id)) => {
                match self.state.sessions.get(&SessionId::from(id.as_str())) {
                    Some(session) => Some(ResolvedTarget::Chat(session, session.main_chat()?)),
                    None => {
                        let session = self.state.sessions.get(&self.session_of_chat(id)?.id)?;
                        Some(ResolvedTarget::Chat(session, session.chat(id)?))
                    }
                }
            }
        }
    }
}
