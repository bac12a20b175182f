//! Sessions: creating, resuming, closing, listing and deleting them; their names, models and modes.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use grove_core::*;
use grove_host::client_hooks::HookSource;
use grove_host::sequencer::{ListenScope, PublishedState};
use grove_host::session::{WorkspaceAnswer, WorkspaceRequest};
use grove_host::subscriber::Outgoing;
use grove_host::{AgentSetup, CreateSession, SetupChange};
use grove_storage::settings::THINKING_SETTINGS;
use grove_wire::copilot::events::{SessionShutdown, SessionWarning};
use grove_wire::copilot::methods::server::{LifecycleParams, SESSION_LIFECYCLE};
use grove_wire::copilot::methods::*;
use grove_wire::copilot::project;
use grove_wire::copilot::{decode, error};
use grove_wire::jsonrpc;
use grove_work::GitRepository;
use serde_json::json;

use super::endpoint::CopilotEndpoint;
use super::feed::FeedSubscriber;
use super::history::with_model;
use super::models::ModelChoice;
use super::peer::{CopilotError, CopilotPeer, SessionRef};
use super::setup;

/// The name of a client's offer to answer questions, in refusals and in the audit log.
const USER_INPUT: &str = "requestUserInput";

/// Created, changed and deleted sessions that may wait to be announced.
pub const NEWS_BUFFER: usize = 1_024;

impl CopilotPeer {
    pub(super) async fn create(&self, params: OpenParams) -> Result<OpenResult, CopilotError> {
        let id = match &params.session_id {
            Some(id) => id.clone(),
            None => self.host().new_id()?,
        };
        // An existing session is resumed.
        if let Ok(session) = self.find(&id).await {
            self.configure(&session, &params).await?;
            return self.open_for_client(&id, params, HookSource::Resume).await;
        }
        let setup = self.named_setup(&params, None).await?;
        self.check_room(&SessionId::from(id.as_str()))?;
        self.note_temp_files(&id);
        let ModelChoice { agent, model, fallback } = self.choose_model(params.model.as_deref())?;
        let folders = self.named_folders(Method::SessionCreate, &params).await?;
        let wanted = CreateSession {
            uri: SessionUri::from(format!("{agent}:/{id}")),
            agent: Some(agent),
            model,
            working_directories: folders,
            config: None,
            store: self.storage()?,
            setup: AgentSetup::default().changed(SetupChange { hooks: Some(self.hook_mode(&params)), ..setup }),
            active_client: self.active_client(&params),
        };
        self.host().create_session(wanted).await?;
        let selected = params.model.clone();
        if let Some(model) = &selected {
            self.select_model(&self.find(&id).await?, model, None).await?;
        }
        if self.endpoint().allows_all() {
            self.allow_everything(&self.find(&id).await?).await?;
        }
        let opened = self.open_for_client(&id, params, HookSource::New).await?;
        self.announce_created(&id, fallback).await?;
        Ok(opened)
    }

    pub(super) async fn resume(&self, params: OpenParams) -> Result<OpenResult, CopilotError> {
        let id = params.session_id.clone().unwrap_or_default();
        self.note_temp_files(&id);
        let folders = self.named_folders(Method::SessionResume, &params).await?;
        self.fetch(&SessionId::from(id.as_str()), folders).await?;
        if self.find(&id).await.is_err() {
            return Err(CopilotError::Failed(format!("Failed to load session events: Session not found: {id}")));
        }
        let session = self.find(&id).await?;
        self.apply_folders(&session, &params).await?;
        self.configure(&session, &params).await?;
        let model = params.model.clone();
        let is_told = !params.disable_resume.unwrap_or(false);
        let continues = params.continue_pending_work.unwrap_or(false);
        let opened = self.open_for_client(&id, params, HookSource::Resume).await?;
        if is_told {
            // A session whose storage accepts nothing at the moment is resumed all the same.
            if let Err(error) = self.note_resumed(&id, continues).await {
                tracing::warn!(session = id, ?error, "that a session was resumed is not in its log");
            }
        }
        if let Some(model) = model {
            let session = self.find(&id).await?;
            self.change_model(&session, &model, None).await.ok();
        }
        Ok(opened)
    }

    /// The folders that a request names, if the client may work there.
    async fn named_folders(&self, method: Method, params: &OpenParams) -> Result<Vec<String>, CopilotError> {
        let named = params.working_directory.as_ref();
        // Copilot's own CLI works in its working directory, which is the client's.
        let primary = named.or_else(|| self.endpoint().default_folder().filter(|_| method == Method::SessionCreate));
        let folders = primary.into_iter().chain(params.additional_directories.iter().flatten());
        let folders: Vec<String> = folders.map(|folder| folder_uri(folder)).collect();
        let checked = self.principal().check_folders(self.host(), folders.clone(), method.as_str()).await;
        checked.map_err(|missing| CopilotError::Error(error::not_permitted(method.as_str(), missing)))?;
        Ok(folders)
    }

    /// Gives a resumed session the folders that a request names. A storage client has named them when it was read.
    async fn apply_folders(&self, session: &SessionRef, params: &OpenParams) -> Result<(), CopilotError> {
        if self.is_client_stored() {
            return Ok(());
        }
        if let Some(folder) = &params.working_directory {
            let (wanted, now) = (folder_uri(folder), self.look(session, |s| s.working_directories.first().cloned()));
            if now.await?.as_ref() != Some(&wanted) {
                self.change_folder(Method::SessionResume, session, folder).await?;
            }
        }
        self.allow_folders(session, params.additional_directories.as_deref().unwrap_or_default()).await
    }

    /// Sends the first event of a new session, and the reason if it has another model than the client asked for.
    async fn announce_created(&self, id: &str, fallback: Option<String>) -> Result<(), CopilotError> {
        let session = self.find(id).await?;
        let start = self.look(&session, project::start).await?;
        let start = with_model(start, &self.selected_model(&session).await?);
        if let Some(feed) = self.endpoint().feeds().of(&session.id) {
            feed.tell(start);
            if let Some(message) = fallback {
                feed.say(SessionWarning { warning_type: "model".to_owned(), message, url: None });
            }
        }
        Ok(())
    }

    /// Notes in the log that a client has resumed a session: all clients that have it open are told.
    async fn note_resumed(&self, id: &str, continues: bool) -> Result<(), CopilotError> {
        let session = self.find(id).await?;
        let model = self.selected_model(&session).await?;
        let data = self.look(&session, move |session| {
            let chat = session.main_chat();
            json!({
                "infoType": "resume",
                "message": "A program of the Copilot SDK resumed the session.",
                "turns": chat.map_or(0, |chat| chat.turns.len()),
                "wasActive": chat.is_some_and(|chat| chat.active.is_some()),
                "model": model,
                "continues": continues,
                "context": SessionContext::of(session),
            })
        });
        self.add_info(&session, data.await?).await.map(|_| ())
    }

    /// Notes a session's temporary files: the endpoint's program may want to read them.
    fn note_temp_files(&self, session: &str) {
        if self.endpoint().keeps_temp_files() {
            self.host().keep_temp_files(&SessionId::from(session));
        }
    }

    /// The client with the tools that it offers, if it offers any.
    fn active_client(&self, params: &OpenParams) -> Option<ActiveClient> {
        let tools: Vec<ClientTool> = params.tools.iter().flatten().cloned().map(decode::tool).collect();
        let display_name = params.client_name.clone().or_else(|| Some("Copilot SDK".to_owned()));
        let client = ActiveClient { client: self.client().clone(), display_name, tools, extra: None };
        Some(client).filter(|client| !client.tools.is_empty())
    }

    /// Subscribes the client to a session and has it take part.
    async fn open_for_client(
        &self,
        id: &str,
        params: OpenParams,
        source: HookSource,
    ) -> Result<OpenResult, CopilotError> {
        let session = self.find(id).await?;
        let answers = params.request_user_input.unwrap_or(false);
        if answers {
            let (needed, client) = (ScopeSet::NONE.with(Scope::Approve), Some(self.client()));
            let allowed = self.principal().authorize(self.host(), needed, USER_INPUT, client, Some(&session.id)).await;
            allowed.map_err(|forbidden| CopilotError::Failed(forbidden.to_string()))?;
        }
        let subscriber = FeedSubscriber {
            queue: self.queue().clone(),
            streaming: params.streaming.unwrap_or(false),
            answers: answers.then(|| self.clone()),
            shows_forms: params.request_elicitation.unwrap_or(false),
            commands: params.commands.iter().flatten().take(MAX_CLIENT_COMMANDS).cloned().collect(),
        };
        self.note_open(&session)?;
        if let Err(error) = self.endpoint().feeds().attach(self.host(), &session.id, self.id(), subscriber).await {
            self.closed(&session.id);
            return Err(error.into());
        }
        if let Err(error) = self.open_hooks(&session, self.hook_mode(&params), source).await {
            self.closed(&session.id);
            return Err(error);
        }
        if let Some(client) = self.active_client(&params) {
            self.carry_out(&session, ClientCommand::SetActiveClient(client)).await?;
        }
        if answers {
            self.ask_pending_requests(&session).await?;
        }
        if setup::names_provider(&params)
            && let Some(feed) = self.endpoint().feeds().of(&session.id)
        {
            let message =
                "`provider` has no effect: Grove's agents call the model servers of their own configurations.";
            feed.say(SessionWarning { warning_type: "provider".to_owned(), message: message.to_owned(), url: None });
        }
        Ok(OpenResult {
            session_id: session.id.to_string(),
            workspace_path: self.workspace_path(&session).await,
            capabilities: Some(self.capabilities(&session.id)),
        })
    }

    /// The abilities of the clients that have a session open, together.
    fn capabilities(&self, session: &SessionId) -> SessionCapabilities {
        let shows_forms = self.endpoint().feeds().of(session).is_some_and(|feed| feed.shows_forms());
        SessionCapabilities { ui: Some(UiCapabilities { elicitation: Some(shows_forms) }) }
    }

    /// The session's folder, as its store spells it.
    pub(super) async fn workspace_path(&self, session: &SessionRef) -> Option<String> {
        let fs = self.host().store_of(&session.id)?;
        fs.location(&grove_storage::paths::folder(&session.id)).ok()
    }

    /// Closes a session for this client. A session that it does not have open stays closed: a client may detach after
    /// it has suspended the session, or after another client has deleted it.
    pub(super) async fn detach(&self, params: SessionParams) -> Result<Success, CopilotError> {
        let id = SessionId::from(params.session_id.as_str());
        self.close_hooks(&id).await;
        if !self.closed(&id) {
            return Ok(Success::YES);
        }
        if let Ok(session) = self.find(&params.session_id).await {
            self.leave(&session.uri).await;
            if self.endpoint().has_storage_client() {
                // The SDK serves the session's files until it has this answer.
                self.host().flush_client_stored(&id).await;
            }
        }
        Ok(Success::YES)
    }

    /// Closes a session for this client, if the session exists.
    pub(super) async fn suspend(&self, params: SessionParams) -> Result<Success, CopilotError> {
        self.find(&params.session_id).await?;
        self.detach(params).await
    }

    /// Announces the end of a session to all clients that have it open, and closes it for this one. The session itself
    /// stays: the others go on with it.
    pub(super) async fn shut_session_down(&self, params: ShutdownParams) -> Result<Success, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let ShutdownParams { session_id, kind, reason } = params;
        let (metrics, started_at) = (self.metrics(&session).await?, self.look(&session, |s| s.created_at).await?);
        let shutdown = SessionShutdown::of(&metrics, started_at, kind, reason);
        let message = "A program of the Copilot SDK shut the session down.";
        let data = json!({"infoType": "shutdown", "message": message, "shutdown": shutdown});
        if let Err(error) = self.add_info(&session, data).await {
            tracing::warn!(session = session_id, ?error, "that a session was shut down is not in its log");
        }
        if let Some(feed) = self.endpoint().feeds().of(&session.id) {
            // The event goes to this client, too.
            feed.settle().await;
        }
        self.detach(SessionParams { session_id }).await
    }

    pub(super) async fn delete(&self, params: SessionParams) -> Result<Success, CopilotError> {
        let id = SessionId::from(params.session_id.as_str());
        let found = self.find(&params.session_id).await;
        self.closed(&id);
        if self.delete_client_stored(&id).await? {
            return Ok(Success::YES);
        }
        match found {
            Ok(session) if self.host().erase(&session.uri).await? => Ok(Success::YES),
            Ok(_) | Err(_) => Ok(Success::failed(format!("Session file not found for {id}"))),
        }
    }

    pub(super) async fn list(&self, params: ListParams) -> Result<ListResult, CopilotError> {
        let filter = params.filter.unwrap_or_default();
        let rows = self.rows().await?;
        let mut sessions = self.host().env().spawn.run_blocking(move || with_repositories(rows)).await?;
        sessions.retain(|session| filter.takes(session.context.as_ref()));
        Ok(ListResult { sessions })
    }

    /// The sessions that clients of this endpoint can open, last changed first.
    pub(super) async fn rows(&self) -> Result<Vec<SessionMetadata>, CopilotError> {
        let peer = self.clone();
        let look = move |published: &PublishedState| {
            let listed = published.listed().map(|(session, _)| session);
            let mine = listed.filter(|session| peer.may_see(&session.store));
            let mut rows: Vec<_> = mine.map(|session| (session.modified_at, SessionMetadata::of(session))).collect();
            rows.sort_by(|(a, _), (b, _)| b.cmp(a));
            rows.into_iter().map(|(_, row)| row).collect::<Vec<_>>()
        };
        let rows = self.host().sequencer().read(look);
        self.with_client_stored(rows).await
    }

    pub(super) async fn last_id(&self) -> Result<MaybeSession, CopilotError> {
        let last = self.rows().await?.into_iter().next().map(|row| row.session_id);
        Ok(MaybeSession { session_id: last, workspace_path: None })
    }

    pub(super) async fn metadata(&self, params: SessionParams) -> Result<GetMetadataResult, CopilotError> {
        let session = self.rows().await?.into_iter().find(|row| row.session_id == params.session_id);
        Ok(GetMetadataResult { session })
    }

    /// No session is in the foreground: only the Copilot CLI has a terminal that shows one.
    pub(super) async fn set_foreground(&self, params: SessionParams) -> Result<Success, CopilotError> {
        self.find(&params.session_id).await?;
        Ok(Success::failed("Not running in TUI+server mode: open the session on the page, or with `grove attach`"))
    }

    pub(super) async fn name(&self, params: SessionParams) -> Result<NameGetResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let title = self.look(&session, |session| session.title.clone()).await?;
        Ok(NameGetResult { name: Some(title).filter(|title| title != Session::UNTITLED).into() })
    }

    pub(super) async fn set_name(&self, params: NameSetParams) -> Result<(), CopilotError> {
        let session = self.find(&params.session_id).await?;
        if normalized_title(&params.name).is_none() {
            return Err(CopilotError::Failed("a session's name must not be empty".to_owned()));
        }
        self.carry_out(&session, ClientCommand::ChangeTitle(params.name)).await
    }

    /// Changes the folder of a session, if the client may work there.
    pub(super) async fn change_folder(
        &self,
        method: Method,
        session: &SessionRef,
        folder: &str,
    ) -> Result<(), CopilotError> {
        let folders = vec![folder_uri(folder)];
        let checked = self.principal().check_folders(self.host(), folders.clone(), method.as_str()).await;
        checked.map_err(|missing| CopilotError::Error(error::not_permitted(method.as_str(), missing)))?;
        let [folder] = folders.as_slice() else { return Ok(()) };
        let (pending, _) = self.host().ask_to_set_working_directory(&session.uri, folder.clone()).await?;
        Ok(pending.answer().await?)
    }

    pub(super) async fn update_options(&self, params: UpdateOptionsParams) -> Result<Success, CopilotError> {
        let session = self.find(&params.session_id).await?;
        if let Some(model) = &params.model {
            self.change_model(&session, model, params.reasoning_effort.as_deref()).await?;
        } else if let Some(effort) = &params.reasoning_effort {
            self.change_effort(&session, effort).await?;
        }
        if let Some(folder) = &params.working_directory {
            self.change_folder(Method::OptionsUpdate, &session, folder).await?;
        }
        Ok(Success::YES)
    }

    pub(super) async fn is_processing(&self, params: SessionParams) -> Result<IsProcessingResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let busy = |session: &Session| session.main_chat().is_some_and(|chat| chat.active.is_some());
        Ok(IsProcessingResult { processing: self.look(&session, busy).await? })
    }
}

impl CopilotEndpoint {
    /// Tells all clients of a created, changed or deleted session.
    pub(super) fn tell(&self, change: &LifecycleParams) {
        let Ok(text) = jsonrpc::notification(SESSION_LIFECYCLE, change) else { return };
        let text: Arc<str> = text.into();
        for queue in self.state().connections.values() {
            queue.push(Outgoing::Frame(text.clone()));
        }
    }

    /// Announces created, changed and deleted sessions for as long as the endpoint exists.
    pub(super) fn announce(&self) {
        let (endpoint, host) = (self.downgrade(), self.host().clone());
        let spawn = host.env().spawn.clone();
        spawn.spawn(Box::pin(async move {
            while let Ok(((), mut events)) = host.sequencer().listen(ListenScope::News, NEWS_BUFFER, |_| ()).await {
                while let Some(event) = events.recv().await {
                    let Some(endpoint) = endpoint.upgrade() else { return };
                    let Change::Session(id, change) = &event.event.change else { continue };
                    if matches!(change, SessionEvent::Removed) {
                        endpoint.tell(&LifecycleParams::deleted(id));
                        continue;
                    }
                    let (wanted, change) = (id.clone(), change.clone());
                    let look = move |published: &PublishedState| {
                        let session = published.state.sessions.get(&wanted)?;
                        Some((session.store.clone(), project::lifecycle(&change, session)?))
                    };
                    if let Some((store, change)) = host.sequencer().read(look)
                        && endpoint.may_see(&store)
                    {
                        endpoint.tell(&change);
                    }
                }
                if endpoint.upgrade().is_none() {
                    return;
                }
            }
        }));
    }
}

/// Adds the repositories of their folders to rows.
fn with_repositories(mut rows: Vec<SessionMetadata>) -> Vec<SessionMetadata> {
    let mut known: HashMap<String, Option<GitRepository>> = HashMap::new();
    for context in rows.iter_mut().filter_map(|row| row.context.as_mut()) {
        let looked = || GitRepository::of(Path::new(&context.cwd));
        if let Some(repository) = known.entry(context.cwd.clone()).or_insert_with(looked) {
            context.git_root = Some(repository.root.display().to_string());
            context.branch = repository.branch.clone();
            context.repository = repository.name();
        }
    }
    rows
}

/// The setting for the reasoning effort, if the agent has one, and its value.
pub(super) fn effort(session: &Session) -> Option<(String, Option<String>)> {
    let config = session.config.as_ref();
    let schemas = config.map(|config| &config.schema).into_iter().chain(&session.details.settings);
    let mut known = schemas.filter_map(|schema| schema.get("properties")?.as_object());
    let setting = known.find_map(|known| THINKING_SETTINGS.into_iter().find(|name| known.contains_key(*name)))?;
    let chosen = config.and_then(|config| config.values.get(setting)?.as_str().map(str::to_owned));
    Some((setting.to_owned(), chosen))
}

/// A folder as sessions name it.
fn folder_uri(folder: &str) -> String {
    if folder.contains("://") { folder.to_owned() } else { grove_work::file_uri(std::path::Path::new(folder)) }
}

/// Requests to a session's workspace.
impl CopilotPeer {
    pub(super) async fn ask_workspace(
        &self,
        session: &SessionRef,
        request: WorkspaceRequest,
    ) -> Result<WorkspaceAnswer, CopilotError> {
        let answer = self.host().ask_workspace(&session.uri, request).await?;
        Ok(answer.await.map_err(|_| CopilotError::Failed(format!("Session not found: {}", session.id)))??)
    }
}
