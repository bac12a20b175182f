//! The host's end of one connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use grove_core::{ClientId, Scope, ScopeSet, SessionId, SessionUri};
use grove_host::presence::ClientParty;
use grove_host::sequencer::{ConnectionId, PublishedState};
use grove_host::session::{CommandError, SessionHandle};
use grove_host::subscriber::{Encode, Outgoing, Queue, QueuedAnswer};
use grove_host::{CallCost, Clock, Host, LimitReached, UsageSlot};
use grove_wire::copilot::error;
use grove_wire::copilot::methods::Method;
use grove_wire::jsonrpc::{self, CallTable, ErrorObject};
use serde_json::value::RawValue;
use tokio::sync::SetOnce;

use super::connection::IncomingCall;
use super::endpoint::CopilotEndpoint;
use super::log_in::UnauthenticatedClient;
use crate::dialect::limit_reached;
use crate::principal::Principal;

/// The name of every client of this protocol in lists of clients.
const CLIENT_NAME: &str = "Copilot SDK";
/// The name of this protocol in lists of clients.
const DIALECT: &str = "copilot";

/// The host's end of a connection. Clones are the same one.
#[derive(Clone)]
pub(super) struct CopilotPeer(Arc<CopilotPeerInner>);

struct CopilotPeerInner {
    endpoint: CopilotEndpoint,
    id: ConnectionId,
    queue: Arc<Queue>,
    calls: Arc<CallTable>,
    /// The party behind the connection before it is authenticated: nobody, at its address.
    unknown: Arc<Principal>,
    /// The party behind the connection, from its log-in on.
    principal: SetOnce<Arc<Principal>>,
    /// The id of this client in the sessions that it takes part in.
    client: ClientId,
    /// The client if it has to authenticate; none for pipes.
    unauthenticated: Option<UnauthenticatedClient>,
    state: Mutex<CopilotPeerState>,
}

/// The client of a new connection.
pub(super) enum ConnectingClient {
    /// Its transport has authenticated it.
    Known(Arc<Principal>),
    Unauthenticated(UnauthenticatedClient),
}

#[derive(Default)]
struct CopilotPeerState {
    /// It has hooks, which the host calls over this connection.
    has_hooks: bool,
    /// The sessions that it has open.
    open: HashMap<SessionId, OpenSession>,
}

/// A session that a client has open.
struct OpenSession {
    uri: SessionUri,
    /// Counts it for the token of the connection.
    _slot: UsageSlot,
}

/// An answer, or the reason why there is none.
pub(super) type CopilotResult = Result<Box<RawValue>, CopilotError>;

/// The reason why a request fails.
#[derive(Debug)]
pub(super) enum CopilotError {
    /// The request was valid, and failed.
    Failed(String),
    /// No agent has the model.
    UnknownModel(String),
    /// The session refused a command.
    Refused(CommandError),
    Error(ErrorObject),
}

impl<E: std::error::Error> From<E> for CopilotError {
    fn from(error: E) -> Self {
        CopilotError::Failed(error.to_string())
    }
}

/// A session, as a request names it.
pub(super) struct SessionRef {
    pub(super) uri: SessionUri,
    pub(super) id: SessionId,
}

impl CopilotPeer {
    pub(super) fn new(
        endpoint: CopilotEndpoint,
        id: ConnectionId,
        queue: Arc<Queue>,
        calls: Arc<CallTable>,
        client: ConnectingClient,
    ) -> Self {
        let mut bytes = [0; 8];
        // Without randomness the connection's own number must do.
        endpoint.host().env().random.fill(&mut bytes).ok();
        let name = ClientId::from(format!("copilot-sdk-{}-{}", id.0, hex::encode(bytes)));
        let (unknown, known, unauthenticated) = match client {
            ConnectingClient::Known(principal) => (principal.clone(), Some(principal), None),
            ConnectingClient::Unauthenticated(unauthenticated) => {
                (Arc::new(Principal::new("", ScopeSet::NONE, unauthenticated.address)), None, Some(unauthenticated))
            }
        };
        let (principal, state) = (SetOnce::new(), Mutex::default());
        let inner =
            CopilotPeerInner { endpoint, id, queue, calls, unknown, principal, client: name, unauthenticated, state };
        let peer = Self(Arc::new(inner));
        if let Some(principal) = known {
            peer.admit(principal);
        }
        peer
    }

    /// Says whether the client is authenticated.
    pub(super) fn is_in(&self) -> bool {
        self.0.principal.get().is_some()
    }

    /// The party behind the connection; nobody before it is authenticated.
    pub(super) fn principal(&self) -> &Arc<Principal> {
        self.0.principal.get().unwrap_or(&self.0.unknown)
    }

    /// Waits until the token of an authenticated client ends.
    pub(super) async fn token_ended(&self, clock: &dyn Clock) {
        self.0.principal.wait().await.ended(clock).await;
    }

    pub(super) fn endpoint(&self) -> &CopilotEndpoint {
        &self.0.endpoint
    }

    pub(super) fn host(&self) -> &Host {
        self.0.endpoint.host()
    }

    pub(super) fn id(&self) -> ConnectionId {
        self.0.id
    }

    pub(super) fn queue(&self) -> &Arc<Queue> {
        &self.0.queue
    }

    pub(super) fn calls(&self) -> &Arc<CallTable> {
        &self.0.calls
    }

    pub(super) fn client(&self) -> &ClientId {
        &self.0.client
    }

    /// The client if it has to authenticate; none for pipes.
    pub(super) fn unauthenticated(&self) -> Option<&UnauthenticatedClient> {
        self.0.unauthenticated.as_ref()
    }

    /// Admits the client: it may send requests, and is notified of created and deleted sessions if it may see them.
    pub(super) fn admit(&self, principal: Arc<Principal>) {
        self.host().log_in_usage(self.0.queue.usage(), principal.name());
        // A client logs in once: its messages are handled one by one until then.
        self.0.principal.set(principal).ok();
        if self.principal().may(Scope::Read) {
            self.endpoint().state().connections.insert(self.0.id, self.0.queue.clone());
        }
    }

    /// The party behind the client, for other clients to see.
    pub(super) fn party(&self) -> ClientParty {
        self.principal().party(Some(CLIENT_NAME))
    }

    /// Checks that the client may open another session, or has this one open.
    pub(super) fn check_room(&self, session: &SessionId) -> Result<(), CopilotError> {
        let (state, most) = (self.state(), self.queue().usage().limits().subscriptions);
        match state.open.len() >= most && !state.open.contains_key(session) {
            true => Err(CopilotError::Error(limit_reached(&LimitReached::subscriptions(most)))),
            false => Ok(()),
        }
    }

    /// Notes that the client opens a session, unless it or its token has too many open.
    pub(super) fn note_open(&self, session: &SessionRef) -> Result<(), CopilotError> {
        self.check_room(&session.id)?;
        let slot = self.queue().usage().subscription();
        let slot = slot.map_err(|reached| CopilotError::Error(limit_reached(&reached)))?;
        let open = OpenSession { uri: session.uri.clone(), _slot: slot };
        self.state().open.insert(session.id.clone(), open);
        self.host().presence().enter(&session.id, self.client(), self.id(), &self.party(), DIALECT);
        self.endpoint().state().open.entry(session.id.clone()).or_default().insert(self.0.id);
        Ok(())
    }

    /// Notes that the client has closed a session. `false` if it was not open.
    pub(super) fn closed(&self, session: &SessionId) -> bool {
        let mut state = self.endpoint().state();
        if let Some(connections) = state.open.get_mut(session) {
            connections.remove(&self.0.id);
            if connections.is_empty() {
                state.open.remove(session);
            }
        }
        drop(state);
        self.endpoint().feeds().detach(session, self.0.id);
        self.host().client_hooks().remove(session, self.0.id);
        self.host().presence().leave(session, self.client(), self.id());
        self.state().open.remove(session).is_some()
    }

    /// Ends the connection: its tools and pending answers are gone with it.
    pub(super) async fn ended(self) {
        self.endpoint().state().connections.remove(&self.0.id);
        let open: Vec<_> = std::mem::take(&mut self.state().open).into_iter().collect();
        for (id, session) in open {
            self.closed(&id);
            self.leave(&session.uri).await;
        }
        self.storage_client_ended().await;
    }

    /// Notes that the client has hooks.
    pub(super) fn note_hooks(&self) {
        self.state().has_hooks = true;
    }

    /// Tells a session that this client takes part no more.
    pub(super) async fn leave(&self, uri: &SessionUri) {
        if let Some(id) = uri.id()
            && let Some(session) = self.host().open_session(&id)
        {
            session.client_gone(self.0.client.clone()).await;
        }
    }

    /// Handles a client's request. Slow ones run concurrently with the next.
    pub(super) async fn handle(&self, wanted: IncomingCall) {
        let IncomingCall { id, method, params, .. } = wanted;
        let peer = self.clone();
        let doing: BoxFuture<'static, CopilotResult> = match Method::named(&method) {
            None => {
                let unserved = method.clone();
                Box::pin(async move { peer.dispatch_unserved(&unserved, params.as_deref()).await })
            }
            Some(known) => Box::pin(async move { peer.dispatch(known, params.as_deref()).await }),
        };
        let known = Method::named(&method);
        // Before a client is authenticated, `connect` alone is handled.
        let slot = match self.0.queue.usage().request(known.map_or(CallCost::Small, call_cost)) {
            Ok(slot) => slot,
            Err(reached) => {
                let Some(id) = id else { return };
                let error = jsonrpc::error(Some(&id), &limit_reached(&reached));
                return self.0.queue.push(Outgoing::Frame(error.into()));
            }
        };
        let expected = known.map_or(ANSWER_BYTES, answer_bytes);
        let (Some(id), Some(permit)) = (id, self.0.queue.answer_permit(expected).await) else {
            drop(doing.await);
            return;
        };
        let queue = self.0.queue.clone();
        // A prompt waits for the hooks of this client, whose answers come over this connection.
        let awaits_hooks = known == Some(Method::SessionSend) && self.state().has_hooks;
        let takes_time = awaits_hooks || known.is_some_and(takes_time);
        let answering = async move {
            let text = match doing.await {
                Ok(result) => jsonrpc::response_raw(&id, result.get()),
                Err(CopilotError::Failed(reason) | CopilotError::UnknownModel(reason)) => {
                    jsonrpc::error(Some(&id), &error::failed(&method, reason))
                }
                Err(CopilotError::Refused(refusal)) => jsonrpc::error(Some(&id), &error::failed(&method, refusal)),
                Err(CopilotError::Error(error)) => jsonrpc::error(Some(&id), &error),
            };
            queue.push(Outgoing::QueuedAnswer(QueuedAnswer::new(Encode::Text(text), permit)));
            drop(slot);
        };
        match takes_time {
            true => self.host().env().spawn.spawn(Box::pin(answering)),
            false => answering.await,
        }
    }

    /// The session that a request is about, loaded.
    pub(super) async fn find(&self, id: &str) -> Result<SessionRef, CopilotError> {
        let id = SessionId::from(id);
        self.host().load(&id).await?;
        let wanted = id.clone();
        let look = move |published: &PublishedState| {
            published.state.sessions.get(&wanted).map(|session| (session.uri.clone(), session.store.clone()))
        };
        match self.host().sequencer().read(look) {
            Some((uri, store)) if self.may_see(&store) => Ok(SessionRef { uri, id }),
            Some(_) | None => Err(CopilotError::Failed(format!("Session not found: {id}"))),
        }
    }

    /// Reads a loaded session.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        session: &SessionRef,
        look: impl FnOnce(&grove_core::Session) -> T + Send + 'static,
    ) -> Result<T, CopilotError> {
        let id = session.id.clone();
        let seen = move |published: &PublishedState| published.state.sessions.get(&id).map(look);
        let seen = self.host().sequencer().read(seen);
        seen.ok_or_else(|| CopilotError::Failed(format!("Session not found: {}", session.id)))
    }

    /// The task of a session.
    pub(super) async fn task(&self, session: &SessionRef) -> Result<SessionHandle, CopilotError> {
        let task = self.host().session(&session.uri).await?;
        task.ok_or_else(|| CopilotError::Failed(format!("Session not found: {}", session.id)))
    }

    /// Sends a command to a session.
    pub(super) async fn carry_out(
        &self,
        session: &SessionRef,
        command: grove_core::ClientCommand,
    ) -> Result<(), CopilotError> {
        let task = self.task(session).await?;
        let command = command.answered_by(&self.party().answerer());
        self.host().carry_out(&task, command).await?.map_err(CopilotError::Refused)
    }

    // Nothing that can panic leaves it half-changed, so a poisoned lock still guards valid data.
    fn state(&self) -> MutexGuard<'_, CopilotPeerState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The expected size of an answer, before it is known.
const ANSWER_BYTES: usize = 1 << 20;
/// The expected size of an answer with the whole conversation of a session.
const HISTORY_BYTES: usize = 32 << 20;

/// The expected size of an answer, so that not too many large ones are made at once.
fn answer_bytes(method: Method) -> usize {
    match method {
        Method::SessionGetMessages | Method::SessionsReadPersistedEvents => HISTORY_BYTES,
        Method::WorkspaceReadFile | Method::WorkspaceReadCheckpoint | Method::EventLogRead => 4 * ANSWER_BYTES,
        _ => ANSWER_BYTES,
    }
}

/// The cost of a request beyond that of its message.
fn call_cost(method: Method) -> CallCost {
    match method {
        Method::SessionCreate | Method::SessionResume | Method::SessionsFork => CallCost::Start,
        Method::HistoryCompact
        | Method::HistoryTruncate
        | Method::HistoryRewind
        | Method::UsageGetMetrics
        | Method::SessionsGetSizes
        | Method::SessionsBulkDelete
        | Method::SessionsPruneOld => CallCost::Large,
        _ => CallCost::Small,
    }
}

/// Says whether other requests need not wait for this one: it asks a store, a model or the clock.
fn takes_time(method: Method) -> bool {
    matches!(
        method,
        Method::RuntimeShutdown
            | Method::SessionFsSetProvider
            | Method::SessionCreate
            | Method::SessionResume
            | Method::SessionDelete
            | Method::SessionGetMessages
            | Method::SessionsFork
            | Method::SessionsReadPersistedEvents
            | Method::HistoryCompact
            | Method::EventLogRead
            | Method::PlanRead
            | Method::PlanUpdate
            | Method::PlanDelete
            | Method::WorkspaceGet
            | Method::WorkspaceListFiles
            | Method::WorkspaceReadFile
            | Method::WorkspaceCreateFile
            | Method::WorkspaceStatFile
            | Method::WorkspaceRemovePath
            | Method::WorkspaceRenamePath
            | Method::WorkspaceSaveLargePaste
            | Method::WorkspaceListCheckpoints
            | Method::WorkspaceReadCheckpoint
            | Method::UiElicitation
            | Method::SessionSendAndWait
            | Method::Log
            | Method::MetadataSnapshot
            | Method::MetadataSetWorkingDirectory
            | Method::MetadataRecordContext
            | Method::UsageGetMetrics
            | Method::PlanReadTodos
            | Method::PlanReadTodosWithDependencies
            | Method::WorkspaceEnsure
            | Method::CommandsInvoke
            | Method::CommandsExecute
            | Method::SessionShutdown
            | Method::OptionsUpdate
            | Method::SessionsGetSizes
            | Method::SessionsSave
            | Method::SessionsDelete
            | Method::SessionsBulkDelete
            | Method::SessionsPruneOld
    )
}
