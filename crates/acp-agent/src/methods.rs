//! The methods that an editor calls.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use grove_client::dialect::ahp::DisposeSession;
use grove_wire::ahp::{CreateSessionParams, SessionLifecycle};
use grove_wire::file_uri;
use grove_wire::jsonrpc::{ErrorObject, Id};
use grove_wire::x_grove::Method;
use grove_wire::x_grove::NewSessionResult;
use grove_wire::x_grove::removal::{EraseParams, EraseResult, RemovalMethod};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::capabilities::{EditorCapabilities, initialized};
use crate::follower::SessionFollower;
use crate::host::{EditorClient, HostConnection, refusal};
use crate::server::{AcpServer, EditorLink};
use crate::session::{EditorSession, PromptEnd, session_uri};
use crate::settings::SettingChange;
use crate::{documents, prompt, session_list};

/// How long an agent may take to start.
pub const START: Duration = Duration::from_secs(120);

/// The answer to a request, and the follower that begins behind it.
pub(crate) struct MethodReply {
    pub(crate) result: Box<RawValue>,
    pub(crate) follower: Option<SessionFollower>,
}

impl MethodReply {
    pub(crate) fn new(result: &impl Serialize) -> Result<Self, ErrorObject> {
        let result = to_raw_value(result).map_err(|error| ErrorObject::internal(error.to_string()))?;
        Ok(Self { result, follower: None })
    }

    fn followed_by(self, follower: SessionFollower) -> Self {
        Self { follower: Some(follower), ..self }
    }
}

fn read<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, ErrorObject> {
    let text = params.map_or("{}", RawValue::get);
    serde_json::from_str(text).map_err(|error| ErrorObject::invalid_params(format!("the params are invalid: {error}")))
}

/// A new id, as other clients create them.
fn new_id() -> Result<String, ErrorObject> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| ErrorObject::internal(format!("cannot get random numbers: {error}")))?;
    Ok(uuid::Builder::from_random_bytes(bytes).into_uuid().to_string())
}

impl AcpServer {
    /// Carries out a request.
    pub(crate) async fn call(
        &self,
        id: &Id,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<MethodReply, ErrorObject> {
        let names = &acp::AGENT_METHOD_NAMES;
        if method == names.initialize {
            return self.initialize(read(params)?).await;
        }
        let link = self.link()?;
        if method == names.session_prompt {
            // It waits for the host itself, so that it can be cancelled meanwhile.
            return self.prompt(id, read(params)?).await;
        }
        link.host.ready().await?;
        match method {
            method if method == names.session_new => self.new_session(link, read(params)?).await,
            method if method == names.session_load => self.load(link, read(params)?).await,
            method if method == names.session_resume => self.resume(link, read(params)?).await,
            method if method == names.session_fork => self.fork(link, read(params)?).await,
            method if method == names.session_list => session_list::list(link, read(params)?).await,
            method if method == names.session_close => self.close(&read(params)?),
            method if method == names.session_delete => self.delete(link, &read(params)?).await,
            method if method == names.session_archive => {
                let params: acp::ArchiveSessionRequest = read(params)?;
                self.archive(link, &params.session_id).await?;
                MethodReply::new(&acp::ArchiveSessionResponse::new())
            }
            method if method == names.session_unarchive => {
                let params: acp::UnarchiveSessionRequest = read(params)?;
                session_list::set_archived(link, &params.session_id, false).await?;
                MethodReply::new(&acp::UnarchiveSessionResponse::new())
            }
            method if method == names.session_set_title => session_list::set_title(link, read(params)?).await,
            method if method == names.session_set_mode => self.set_mode(link, &read(params)?).await,
            method if method == names.session_set_config_option => self.set_option(link, &read(params)?).await,
            method if method == names.authenticate => Err(ErrorObject::invalid_params(
                "Grove has no account: sign in with the agent's own program (`grove agents` names it)",
            )),
            other => Err(ErrorObject::unknown_method(other)),
        }
    }

    /// Handles a notification. Unknown ones are ignored, as the protocol requires.
    pub(crate) fn notified(&self, method: &str, params: Option<&RawValue>) {
        if method == acp::AGENT_METHOD_NAMES.session_cancel {
            let cancelled = read::<acp::CancelNotification>(params);
            if let Some(session) = cancelled.ok().and_then(|params| self.sessions.get(&params.session_id.0).ok()) {
                session.cancel();
            }
        } else if method == acp::PROTOCOL_LEVEL_METHOD_NAMES.cancel_request
            && let Ok(cancelled) = read::<Value>(params)
            && let Some((session, turn)) = self.open_prompt(&cancelled["requestId"])
        {
            session.cancel_prompt(&turn);
        }
    }

    async fn initialize(&self, params: acp::InitializeRequest) -> Result<MethodReply, ErrorObject> {
        let mut editor = EditorCapabilities::of(&params.client_capabilities);
        if !self.access.shares_files() {
            editor = EditorCapabilities { reads_files: false, writes_files: false, ..editor };
        }
        let client = EditorClient {
            name: params.client_info.map(|info| info.title.unwrap_or(info.name)),
            documents: editor.reads_files.then(|| documents::handler(self.editor.clone(), self.sessions.clone())),
            writes_documents: editor.writes_files,
        };
        let host = HostConnection::open(self.access.clone(), client).await?;
        self.set_link(EditorLink { host, editor });
        MethodReply::new(&initialized())
    }

    async fn new_session(&self, link: &EditorLink, params: acp::NewSessionRequest) -> Result<MethodReply, ErrorObject> {
        self.sessions.require_room()?;
        let folders = folders(&params.cwd, &params.additional_directories)?;
        let session = create(link, &new_id()?, self.choice.agent.clone(), folders, params.mcp_servers).await?;
        self.sessions.insert(&session);
        let settings = session.settings();
        let response = acp::NewSessionResponse::new(acp::SessionId::new(session.id.as_str()))
            .modes(settings.modes)
            .config_options(settings.options);
        let follower = SessionFollower::from_now_on(session, self.editor.clone());
        Ok(MethodReply::new(&response)?.followed_by(follower))
    }

    async fn load(&self, link: &EditorLink, params: acp::LoadSessionRequest) -> Result<MethodReply, ErrorObject> {
        let session = self.open(link, &params.session_id).await?;
        session.give_servers(params.mcp_servers).await?;
        let replayed = SessionFollower::replay(session.clone(), self.editor.clone()).await;
        let follower = replayed.map_err(|error| refusal(&error))?;
        self.sessions.insert(&session);
        let settings = session.settings();
        let response = acp::LoadSessionResponse::new().modes(settings.modes).config_options(settings.options);
        Ok(MethodReply::new(&response)?.followed_by(follower))
    }

    async fn resume(&self, link: &EditorLink, params: acp::ResumeSessionRequest) -> Result<MethodReply, ErrorObject> {
        let session = self.open(link, &params.session_id).await?;
        session.give_servers(params.mcp_servers).await?;
        self.sessions.insert(&session);
        let settings = session.settings();
        let response = acp::ResumeSessionResponse::new().modes(settings.modes).config_options(settings.options);
        let follower = SessionFollower::from_now_on(session, self.editor.clone());
        Ok(MethodReply::new(&response)?.followed_by(follower))
    }

    /// Opens a session of the host, without adding it to the open ones.
    async fn open(&self, link: &EditorLink, id: &acp::SessionId) -> Result<Arc<EditorSession>, ErrorObject> {
        if self.sessions.get(&id.0).is_err() {
            self.sessions.require_room()?;
        }
        EditorSession::open(&link.host, link.editor, &id.0).await
    }

    async fn fork(&self, link: &EditorLink, params: acp::ForkSessionRequest) -> Result<MethodReply, ErrorObject> {
        self.sessions.require_room()?;
        let source = json!({"channel": session_uri(&params.session_id.0)});
        let forked = link.host.client.request_raw::<NewSessionResult>(Method::Fork.as_str(), &source).await;
        let forked = forked.map_err(|error| refusal(&error))?;
        let session = EditorSession::open(&link.host, link.editor, session_list::id_of(&forked.session)).await?;
        session.give_servers(params.mcp_servers).await?;
        self.sessions.insert(&session);
        let settings = session.settings();
        let response = acp::ForkSessionResponse::new(acp::SessionId::new(session.id.as_str()))
            .modes(settings.modes)
            .config_options(settings.options);
        let follower = SessionFollower::from_now_on(session, self.editor.clone());
        Ok(MethodReply::new(&response)?.followed_by(follower))
    }

    /// Closes a session here. The editor's own turns are cancelled, as the protocol requires; others go on.
    fn close(&self, params: &acp::CloseSessionRequest) -> Result<MethodReply, ErrorObject> {
        let session = self.sessions.get(&params.session_id.0)?;
        if session.has_prompts() {
            session.cancel();
            session.settle_prompts();
            session.end_prompts(|| PromptEnd::Removed);
        }
        session.close();
        self.sessions.remove(&params.session_id.0);
        MethodReply::new(&acp::CloseSessionResponse::new())
    }

    /// Closes a session, cancels every turn of it, also those of other clients, and archives it, as the protocol requires.
    async fn archive(&self, link: &EditorLink, id: &acp::SessionId) -> Result<(), ErrorObject> {
        let session = match self.sessions.get(&id.0) {
            Ok(session) => session,
            Err(_) => EditorSession::open(&link.host, link.editor, &id.0).await?,
        };
        session.cancel_all();
        session.end_prompts(|| PromptEnd::Removed);
        session_list::set_archived(link, id, true).await?;
        session.close();
        self.sessions.remove(&id.0);
        Ok(())
    }

    async fn delete(&self, link: &EditorLink, params: &acp::DeleteSessionRequest) -> Result<MethodReply, ErrorObject> {
        let dispose = DisposeSession { channel: session_uri(&params.session_id.0) };
        link.host.client.request(dispose).await.map_err(|error| refusal(&error))?;
        if let Some(session) = self.sessions.remove(&params.session_id.0) {
            session.close();
        }
        MethodReply::new(&acp::DeleteSessionResponse::new())
    }

    async fn prompt(&self, id: &Id, params: acp::PromptRequest) -> Result<MethodReply, ErrorObject> {
        let session = self.sessions.get(&params.session_id.0)?;
        let message = prompt::message(params.prompt)?;
        let turn = new_id()?;
        let _open = self.note_prompt(id, &session, &turn);
        let end = session.prompt(&turn, message).await?;
        MethodReply::new(&end.response()?)
    }

    async fn set_mode(
        &self,
        link: &EditorLink,
        params: &acp::SetSessionModeRequest,
    ) -> Result<MethodReply, ErrorObject> {
        let session = self.sessions.get(&params.session_id.0)?;
        let change = session.with_settings(|source| source.mode_change(&params.mode_id.0));
        let replaced = self.configure(link, &session, change).await?;
        let reply = MethodReply::new(&acp::SetSessionModeResponse::new())?;
        Ok(match replaced {
            None => reply,
            Some(session) => {
                let mut follower = SessionFollower::from_now_on(session, self.editor.clone());
                // The answer has no settings.
                follower.forget_settings();
                reply.followed_by(follower)
            }
        })
    }

    async fn set_option(
        &self,
        link: &EditorLink,
        params: &acp::SetSessionConfigOptionRequest,
    ) -> Result<MethodReply, ErrorObject> {
        let session = self.sessions.get(&params.session_id.0)?;
        let change = session.with_settings(|source| source.change(&params.config_id.0, &params.value));
        let replaced = self.configure(link, &session, change).await?;
        let shown = replaced.as_ref().unwrap_or(&session);
        let reply = MethodReply::new(&acp::SetSessionConfigOptionResponse::new(shown.settings().options))?;
        Ok(match replaced {
            None => reply,
            Some(session) => reply.followed_by(SessionFollower::from_now_on(session, self.editor.clone())),
        })
    }

    /// Makes a change of a setting. Another agent needs another session, which is returned.
    async fn configure(
        &self,
        link: &EditorLink,
        session: &Arc<EditorSession>,
        change: Option<Result<SettingChange, ErrorObject>>,
    ) -> Result<Option<Arc<EditorSession>>, ErrorObject> {
        let change = change.unwrap_or_else(|| Err(ErrorObject::internal("the session has no state yet: try again")))?;
        let former = session.read_session(|state| (state.provider.clone(), state.working_directories.clone()));
        match (change, former) {
            (SettingChange::Agent(agent), Some((former, folders))) if session.is_empty() => {
                if agent == former {
                    return Ok(None);
                }
                let folders = folders.unwrap_or_default();
                self.change_agent(link, session, (&former, agent), folders).await.map(Some)
            }
            (SettingChange::Agent(agent), Some((former, _))) if agent == former => Ok(None),
            (change, _) => session.configure(change).await.map(|()| None),
        }
    }

    /// Replaces a session in which nothing was said by one of another agent, under the same id.
    async fn change_agent(
        &self,
        link: &EditorLink,
        session: &Arc<EditorSession>,
        (former, agent): (&str, String),
        folders: Vec<String>,
    ) -> Result<Arc<EditorSession>, ErrorObject> {
        let (id, servers) = (session.id.as_str(), session.servers());
        session.close();
        erase(link, former, id).await?;
        match create(link, id, Some(agent), folders.clone(), servers.clone()).await {
            Ok(session) => {
                self.sessions.insert(&session);
                Ok(session)
            }
            Err(error) => {
                // The editor's session must stay usable.
                let again = create(link, id, Some(former.to_owned()), folders, servers).await?;
                self.sessions.insert(&again);
                tokio::spawn(SessionFollower::from_now_on(again, self.editor.clone()).run());
                Err(error)
            }
        }
    }
}

/// Creates a session, and waits until its agent is ready.
async fn create(
    link: &EditorLink,
    id: &str,
    agent: Option<String>,
    folders: Vec<String>,
    servers: Vec<acp::McpServer>,
) -> Result<Arc<EditorSession>, ErrorObject> {
    let params = CreateSessionParams {
        channel: session_uri(id),
        provider: agent,
        working_directories: Some(folders),
        ..CreateSessionParams::default()
    };
    link.host.client.request(params).await.map_err(|error| refusal(&error))?;
    let session = EditorSession::open(&link.host, link.editor, id).await?;
    let mut state = session.session.clone();
    let started = state.until(|state| {
        let session = state.session()?;
        match session.lifecycle {
            SessionLifecycle::Ready => Some(Ok(())),
            SessionLifecycle::Failed => Some(Err(session.creation_error.clone().unwrap_or_default())),
            SessionLifecycle::Creating | SessionLifecycle::Unknown(_) => None,
        }
    });
    let failure = match tokio::time::timeout(START, started).await {
        Ok(Ok(Ok(()))) => match session.give_servers(servers).await {
            Ok(()) => return Ok(session),
            Err(error) => error,
        },
        Ok(Ok(Err(error))) => ErrorObject::internal(format!("the agent did not start: {}", error.message)),
        Ok(Err(closed)) => ErrorObject::internal(closed.to_string()),
        Err(_) => ErrorObject::internal(format!("the agent did not start within {} s", START.as_secs())),
    };
    // A session that never began is left nowhere.
    if let Some(agent) = session.read_session(|state| state.provider.clone()) {
        erase(link, &agent, id).await.ok();
    }
    Err(failure)
}

async fn erase(link: &EditorLink, agent: &str, id: &str) -> Result<(), ErrorObject> {
    let params = EraseParams { session: format!("{agent}:/{id}") };
    let erased = link.host.client.request_raw::<EraseResult>(RemovalMethod::Erase.as_str(), &params).await;
    erased.map(|_| ()).map_err(|error| refusal(&error))
}

/// The working folders of a session, as URIs.
fn folders(cwd: &Path, more: &[PathBuf]) -> Result<Vec<String>, ErrorObject> {
    let uri = |path: &Path| {
        let uri = path.to_str().and_then(file_uri::of_path);
        uri.ok_or_else(|| ErrorObject::invalid_params(format!("{path:?} is no absolute path")))
    };
    std::iter::once(cwd).chain(more.iter().map(PathBuf::as_path)).map(uri).collect()
}
