//! Drafts: new sessions that exist only here until their first message creates them on the host.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use grove_client::dialect::ahp::DisposeSession;
use grove_client::{Ahp, Client, ConnectionStatus, DispatchError, DispatchOutcome, RequestError};
use grove_core::Timestamp;
use grove_wire::ahp::{
    Action, ChatAction, ChatTurnStarted, CreateSessionParams, Message, Object, SessionLifecycle,
    SessionState as HostSession, SessionSummary, time,
};
use tokio::time::timeout;

use super::details::ChatDetails;
use super::message::message;
use super::retry_delays::new_name;
use super::state::{agent_icon, capabilities, path_of};
use super::table::{DraftSession, HostState, MainChat};
use crate::ids::{SessionId, SessionTypeId};
use crate::metadata::Metadata;
use crate::provider::{ProviderError, SendOptions};
use crate::session::{
    ChatState, Session, SessionIdentity, SessionSource, SessionState, SessionStatus, SessionWorkspace, first_title,
};

/// The time that the list may take to show an action. The action is done all the same.
pub(super) const LISTING_TIMEOUT: Duration = Duration::from_secs(5);
/// The most drafts at once.
pub const MAX_DRAFTS: usize = 100;

pub(super) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Creates a draft in a folder of the host.
pub(super) fn create(shared: &HostState, workspace: &SessionWorkspace) -> Result<Session, ProviderError> {
    shared.client()?;
    let agents = shared.agents();
    let Some(agent) = agents.first() else {
        return Err(ProviderError::Refused(format!("{} has no agent: install one there", shared.host.label)));
    };
    let folder = path_of(workspace.uri.as_str());
    let host_uri = format!("untitled:/{}", new_name());
    let failed = |error| ProviderError::Failed { what: "naming the session", source: Box::new(error) };
    let (resource, created_at) = (shared.host.here(&host_uri), now());
    let identity = SessionIdentity {
        id: shared.host.session(&host_uri).map_err(failed)?,
        resource: resource.clone(),
        provider_id: shared.host.id.clone(),
        created_at,
    };
    let state = SessionState {
        session_type: SessionTypeId::from(agent.provider.as_str()),
        icon: agent_icon(),
        metadata: Arc::new(metadata(shared, workspace, &folder)),
        workspace: Some(Arc::new(workspace.clone())),
        capabilities: capabilities(agent),
        main_chat: Arc::new(ChatState::untitled(resource, created_at)),
        more_chats: Vec::new(),
        waiting: Arc::default(),
    };
    let source = SessionSource::new(identity, state);
    let session = source.session();
    match shared.add_draft(DraftSession { source, model: None }, MAX_DRAFTS) {
        true => Ok(session),
        false => {
            let refused = format!("{MAX_DRAFTS} new sessions wait for their first message: drop some of them");
            Err(ProviderError::Refused(refused))
        }
    }
}

/// The metadata of a draft, from its workspace.
fn metadata(shared: &HostState, workspace: &SessionWorkspace, folder: &str) -> Metadata {
    let metadata = shared.host.metadata(Some(folder));
    let identity = workspace.repositories.first().and_then(|repository| repository.identity.as_deref());
    match identity.and_then(|identity| identity.strip_prefix("github.com/")) {
        Some(repository) => metadata.with(crate::metadata::REPOSITORY_NWO, repository),
        None => metadata,
    }
}

/// Changes the type of a draft. `None` if it is not a draft.
pub(super) fn set_type(
    shared: &HostState,
    id: &SessionId,
    wanted: &SessionTypeId,
) -> Option<Result<Session, ProviderError>> {
    let agents = shared.agents();
    shared.with_draft(id, |draft| {
        let agent = agents.iter().find(|agent| agent.provider == wanted.as_str());
        let agent = agent.ok_or_else(|| ProviderError::UnknownSessionType(wanted.clone()))?;
        draft.source.update(|state| {
            state.session_type = wanted.clone();
            state.capabilities = capabilities(agent);
            // Another agent has other models.
            Arc::make_mut(&mut state.main_chat).model_id = None;
        });
        draft.model = None;
        Ok(draft.source.session())
    })
}

/// Restores the draft if its sending is given up at any point.
struct DraftSendGuard<'a> {
    shared: &'a HostState,
    id: &'a SessionId,
    is_committed: bool,
}

impl Drop for DraftSendGuard<'_> {
    fn drop(&mut self) {
        if !self.is_committed {
            self.shared.roll_back(self.id);
        }
    }
}

/// Sends the first message of a draft.
pub(super) async fn send_first(
    shared: &HostState,
    id: &SessionId,
    options: SendOptions,
    commit: Duration,
) -> Result<Session, ProviderError> {
    let client = shared.client()?;
    let drafted = shared.with_draft(id, |draft| (draft.source.session(), draft.model.clone()));
    let (draft, model) = drafted.ok_or_else(|| ProviderError::UnknownSession(id.clone()))?;
    let agent = draft.session_type();
    let host_uri = format!("{agent}:/{}", new_name());
    let is_listed_model = |model: &str| {
        let agents = shared.agents();
        let agent = agents.iter().find(|known| known.provider == agent.as_str());
        agent.is_some_and(|agent| agent.models.iter().any(|known| known.id == model))
    };
    // An agent that lists no models has them among its settings.
    let (model, setting): (Option<String>, Option<String>) = match model {
        Some(model) if is_listed_model(&model) => (Some(model), None),
        model => (None, model),
    };
    let create = CreateSessionParams {
        channel: host_uri.clone(),
        provider: Some(agent.to_string()),
        working_directories: draft.workspace().map(|workspace| vec![workspace.uri.to_string()]),
        config: setting.map(|model| Object::from_iter([("model".to_owned(), model.into())])),
        ..CreateSessionParams::default()
    };
    let title = first_title(&options.query);
    let message = message(options, model)?;
    let show = |source: &SessionSource| {
        source.update_main_chat(|chat| {
            chat.title = title.as_str().into();
            chat.status = SessionStatus::InProgress;
            chat.loading = true;
            chat.updated_at = now();
        });
    };
    shared.begin_sending(id, &host_uri, show).ok_or_else(|| ProviderError::UnknownSession(id.clone()))?;
    let mut sending = DraftSendGuard { shared, id, is_committed: false };
    let outcome = tokio::select! {
        outcome = begin(shared, &client, create, message, commit) => outcome,
        () = disconnected(&client) => Err(FirstSendError::Unknown(shared.not_reached())),
        () = taken_back(&client, &host_uri) => Err(FirstSendError::Nothing(ProviderError::Refused(
            "the host removed the session before its first message: try again, or another agent".to_owned(),
        ))),
    };
    let error = match outcome {
        Ok((host_session, main)) => {
            let summary = summary(&host_uri, &draft, host_session);
            let committed = shared.commit(id, summary, main).ok_or_else(|| shared.not_reached())?;
            sending.is_committed = true;
            return Ok(committed);
        }
        Err(FirstSendError::Nothing(error) | FirstSendError::Unknown(error)) => error,
        Err(FirstSendError::Made(error)) => {
            // A session without a message is useless.
            match client.request(DisposeSession { channel: host_uri.clone() }).await {
                Ok(()) => until_not_listed(&client, &host_uri).await,
                Err(error) => {
                    tracing::debug!(session = host_uri, %error, "cannot delete an empty session from its host");
                }
            }
            error
        }
    };
    // A session that is not in the host's list is not shown in place of the draft. The driver may not have read it yet.
    if client.sessions().read(|list| list.get(&host_uri).is_none()) {
        shared.remove(&host_uri);
    }
    Err(error)
}

/// The reason why the first message was not sent, and the state on the host.
enum FirstSendError {
    Nothing(ProviderError),
    Made(ProviderError),
    /// The connection was lost: the list will show the result.
    Unknown(ProviderError),
}

async fn begin(
    shared: &HostState,
    client: &Client<Ahp>,
    create: CreateSessionParams,
    message: Message,
    commit: Duration,
) -> Result<(HostSession, MainChat), FirstSendError> {
    let host_uri = create.channel.clone();
    client.request(create).await.map_err(|error| match error {
        RequestError::TimedOut { .. } | RequestError::Lost { .. } => {
            FirstSendError::Unknown(request_error(shared, error))
        }
        error => FirstSendError::Nothing(request_error(shared, error)),
    })?;
    let made = |error| FirstSendError::Made(request_error(shared, error));
    let mut session = client.subscribe(&host_uri).await.map_err(made)?;
    let ready = session.until(|state| {
        let session = state.session()?;
        (session.lifecycle != SessionLifecycle::Creating).then(|| session.clone())
    });
    let slow = |_| {
        let seconds = commit.as_secs();
        FirstSendError::Made(ProviderError::Refused(format!(
            "the agent was not ready in {seconds} s: try again, or another one"
        )))
    };
    let state =
        timeout(commit, ready).await.map_err(slow)?.map_err(|_| FirstSendError::Unknown(shared.not_reached()))?;
    if state.lifecycle == SessionLifecycle::Failed {
        let why = state.creation_error.map_or_else(|| "the agent did not start".to_owned(), |error| error.message);
        return Err(FirstSendError::Made(ProviderError::Refused(why)));
    }
    let chat = state.default_chat.clone().ok_or_else(|| {
        FirstSendError::Made(ProviderError::Refused(
            "the host gave the session no chat: bring it up to date".to_owned(),
        ))
    })?;
    let chat = client.subscribe(&chat).await.map_err(made)?;
    let started = chat.dispatch(start(message)).map_err(|error| FirstSendError::Made(dispatch_error(shared, error)))?;
    match started.await {
        DispatchOutcome::Confirmed(_) => {
            let details = chat.read(|state| state.chat().map(ChatDetails::of)).unwrap_or_default();
            Ok((state, MainChat { host_uri: chat.resource().to_owned(), details }))
        }
        DispatchOutcome::Rejected(why) => Err(FirstSendError::Made(ProviderError::Refused(why))),
        DispatchOutcome::Lost => Err(FirstSendError::Unknown(shared.not_reached())),
    }
}

pub(super) fn start(message: Message) -> Action {
    Action::Chat(ChatAction::TurnStarted(ChatTurnStarted {
        turn_id: new_name(),
        started_at: time::text(now()),
        message,
        queued_message_id: None,
        meta: None,
    }))
}

/// A row for a session that is not in the host's list yet.
fn summary(host_uri: &str, draft: &Session, state: HostSession) -> SessionSummary {
    let at = time::text(draft.created_at());
    SessionSummary {
        provider: state.provider,
        title: state.title,
        status: grove_wire::ahp::status::IN_PROGRESS | grove_wire::ahp::status::IS_READ,
        project: state.project,
        working_directories: state.working_directories,
        resource: host_uri.to_owned(),
        created_at: at.clone(),
        modified_at: at,
        default_chat: state.default_chat,
        meta: state.meta,
        ..SessionSummary::default()
    }
}

/// Waits until the host's list has had a session and no longer has it.
async fn taken_back(client: &Client<Ahp>, host_uri: &str) {
    let mut sessions = client.sessions();
    let mut was_listed = false;
    let gone = sessions.until(|list| {
        let is_listed = list.get(host_uri).is_some();
        was_listed |= is_listed;
        (was_listed && !is_listed).then_some(())
    });
    // The end of the client is handled elsewhere.
    if gone.await.is_err() {
        std::future::pending().await
    }
}

/// Waits until the host's list no longer has a deleted session.
pub(super) async fn until_not_listed(client: &Client<Ahp>, host_uri: &str) {
    let mut sessions = client.sessions();
    let gone = sessions.until(|list| list.get(host_uri).is_none().then_some(()));
    if timeout(LISTING_TIMEOUT, gone).await.is_err()
        && let Err(error) = client.sessions().refresh().await
    {
        tracing::debug!(session = host_uri, %error, "a host did not confirm the deletion of a session");
    }
}

/// Waits until the connection is lost.
pub(super) async fn disconnected(client: &Client<Ahp>) {
    let mut status = client.status();
    // The sender lives as long as the client.
    status.wait_for(|status| *status != ConnectionStatus::Connected).await.ok();
}

pub(super) fn request_error(shared: &HostState, error: RequestError) -> ProviderError {
    match error {
        RequestError::NotConnected(_) | RequestError::Lost { .. } => shared.not_reached(),
        RequestError::Refused { error, .. } => ProviderError::Refused(error.message),
        error => ProviderError::Failed { what: "asking the host", source: Box::new(error) },
    }
}

pub(super) fn dispatch_error(shared: &HostState, error: DispatchError) -> ProviderError {
    match error {
        DispatchError::NotConnected(_) => shared.not_reached(),
        error => ProviderError::Failed { what: "telling the host", source: Box::new(error) },
    }
}
