//! The ACP agent kind: any program that speaks the protocol.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use agent_client_protocol_schema::v1 as acp;
use async_trait::async_trait;
use grove_core::*;
use tokio::sync::{mpsc, watch};

use super::connection::AgentCallError;
use super::login::{AgentProbe, LOGIN_TIME};
use super::pool::ProcessPool;
use super::program::AcpProgram;
use super::quirks::{ProgramQuirks, SystemMessageWay, ToolFilterWay};
use super::session::{
    AUTH_REQUIRED, AcpChat, AcpSession, ONE_SHOT_CHAT, OneShotProcess, hook_support, one_shot_session,
};
use super::settings::AgentSettings;
use super::summary::AcpSummarizer;
use crate::agent::*;
use crate::setup::{AgentAbilities, McpAbilities, Support, SystemMessageAbility, ToolFilterAbility};
use crate::sink::ChatSink;

/// The limit of an agent's own sessions that are listed. More are left out.
pub const LISTED: usize = 1_000;

/// Any program that speaks ACP.
#[derive(Debug)]
pub struct AcpAgent {
    program: Arc<AcpProgram>,
    pool: Arc<ProcessPool>,
    profile: Arc<AgentProfile>,
}

/// The facts that agents of one kind have reported about themselves.
#[derive(Debug)]
pub(crate) struct AgentProfile {
    models: watch::Sender<Vec<ModelInfo>>,
    settings: Mutex<Option<SessionConfig>>,
    /// The abilities that it announced when it was last initialized.
    capabilities: Mutex<Option<acp::AgentCapabilities>>,
}

/// A conversation that the agent stores itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSession {
    /// The agent's id of it ([`AgentEvent::AgentSessionId`]).
    pub id: String,
    pub working_directory: PathBuf,
    pub title: Option<String>,
    /// The time of the last change, as the agent wrote it (ISO 8601).
    pub updated_at: Option<String>,
}

impl AcpAgent {
    pub fn new(program: AcpProgram, pool: Arc<ProcessPool>) -> Self {
        let profile = AgentProfile {
            models: watch::Sender::new(Vec::new()),
            settings: Mutex::default(),
            capabilities: Mutex::default(),
        };
        Self { program: Arc::new(program), pool, profile: Arc::new(profile) }
    }

    /// The models to choose from, as far as they are known: an agent reports them when one of its sessions is opened.
    pub fn models(&self) -> watch::Receiver<Vec<ModelInfo>> {
        self.profile.models.subscribe()
    }

    /// Lists the conversations that the agent stores itself, of one folder or of all. Starts a process for it.
    pub async fn list(&self, working_directory: Option<&Path>) -> Result<Vec<ListedSession>, AgentError> {
        let one_shot = self.one_shot(working_directory).await?;
        let listed = match one_shot.capabilities().session_capabilities.list {
            Some(_) => self.pages(&one_shot, working_directory).await,
            None => Err(self.cannot("list its sessions")),
        };
        one_shot.end().await;
        listed
    }

    /// Starts the agent, and returns the facts that it tells when it is initialised.
    pub async fn probe(&self) -> Result<AgentProbe, AgentError> {
        let one_shot = self.one_shot(None).await?;
        let probe = one_shot.probe().clone();
        one_shot.end().await;
        Ok(probe)
    }

    /// Starts the agent, and has it log in with one of its methods. It may wait for a person, in a browser for example.
    pub async fn log_in(&self, method: &str) -> Result<(), AgentError> {
        let one_shot = self.one_shot(None).await?;
        let request = acp::AuthenticateRequest::new(method.to_owned());
        let answer: Result<serde_json::Value, _> =
            one_shot.call_within(acp::AGENT_METHOD_NAMES.authenticate, &request, LOGIN_TIME).await;
        one_shot.end().await;
        answer.map(drop).map_err(|error| self.failed(&error))
    }

    /// Copies a conversation that the agent stores, and returns the agent's id of the copy. Starts a process for it.
    pub async fn fork(&self, agent_session_id: &str, working_directory: &Path) -> Result<String, AgentError> {
        let one_shot = self.one_shot(Some(working_directory)).await?;
        let forked = one_shot.fork(agent_session_id).await.map_err(|error| self.failed(&error))?;
        forked.ok_or_else(|| self.cannot("copy a session"))
    }

    async fn pages(&self, one_shot: &OneShotProcess, folder: Option<&Path>) -> Result<Vec<ListedSession>, AgentError> {
        let mut listed: Vec<ListedSession> = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let request = acp::ListSessionsRequest::new().cwd(folder.map(Path::to_owned)).cursor(cursor.clone());
            let page: acp::ListSessionsResponse = one_shot
                .call(acp::AGENT_METHOD_NAMES.session_list, &request)
                .await
                .map_err(|error| self.failed(&error))?;
            let before = listed.len();
            listed.extend(page.sessions.into_iter().take(LISTED - before).map(|info| ListedSession {
                id: info.session_id.0.to_string(),
                working_directory: info.cwd,
                title: info.title,
                updated_at: info.updated_at,
            }));
            // An agent whose pages never end repeats a cursor or sends an empty page.
            let next = page.next_cursor.filter(|next| Some(next) != cursor.as_ref());
            if next.is_none() || listed.len() >= LISTED || listed.len() == before {
                return Ok(listed);
            }
            cursor = next;
        }
    }

    async fn one_shot(&self, folder: Option<&Path>) -> Result<OneShotProcess, AgentError> {
        // Nobody receives: without an open conversation nothing is reported.
        let (reports, _) = mpsc::channel(1);
        let opening = OpenSession {
            session: one_shot_session(&self.program),
            chat: ONE_SHOT_CHAT.into(),
            model: None,
            working_directories: folder.map(|folder| folder.display().to_string()).into_iter().collect(),
            agent_session_id: None,
            settings: Extra::new(),
            reports: ChatSink::new(ONE_SHOT_CHAT.into(), reports),
            spills: Arc::new(()),
            start: AgentStart::FirstTurn,
            setup: Arc::default(),
            client_tools: ClientTools::default(),
        };
        OneShotProcess::start(Arc::new(self.chat(&opening)?.without_services())).await
    }

    fn chat(&self, opening: &OpenSession) -> Result<AcpChat, AgentError> {
        let (program, pool, profile) = (&self.program, &self.pool, &self.profile);
        AcpChat::new(Arc::clone(program), Arc::clone(pool), Arc::clone(profile), opening)
    }

    fn failed(&self, error: &AgentCallError) -> AgentError {
        let AcpProgram { id, display_name, .. } = self.program.as_ref();
        if error.code() == Some(AUTH_REQUIRED) {
            let words = format!("{display_name} requires a login: run `grove agents login {id}`, then try again");
            return AgentError::LoginRequired { words, has_methods: false };
        }
        AgentError::TurnFailed(format!("{display_name}: {error}"))
    }

    fn cannot(&self, what: &str) -> AgentError {
        AgentError::TurnFailed(format!("{} cannot {what}: try a newer version", self.program.display_name))
    }
}

#[async_trait]
impl Agent for AcpAgent {
    fn info(&self) -> AgentInfo {
        let AcpProgram { id, display_name, description, .. } = self.program.as_ref();
        AgentInfo {
            id: id.clone(),
            display_name: display_name.clone(),
            description: description.clone(),
            models: self.profile.models.borrow().clone(),
        }
    }

    async fn open(&self, session: OpenSession) -> Result<Arc<dyn AgentSession>, AgentError> {
        self.program.find()?;
        let start = session.start;
        let opened = AcpSession::new(Arc::new(self.chat(&session)?), session);
        match start {
            AgentStart::FirstTurn => {}
            AgentStart::Now { within } => opened.start(within).await?,
        }
        Ok(Arc::new(opened))
    }

    fn settings(&self) -> Option<SessionConfig> {
        let profile = self.profile.settings.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // The agent reports its settings when the first session runs. The session needs a place for them from the
        // start:
        // one created without settings never gets any.
        Some(profile.unwrap_or_else(|| SessionConfig::of(Extra::new())))
    }

    fn abilities(&self) -> AgentAbilities {
        let (quirks, announced) = (ProgramQuirks::of(&self.program), self.profile.announced());
        let reaches = |has: fn(&acp::McpCapabilities) -> bool| match &announced {
            Some(announced) if has(&announced.mcp_capabilities) => Support::Yes,
            Some(_) => Support::No,
            None => Support::Unknown,
        };
        let overrides = |announced: &acp::AgentCapabilities| {
            let mode = announced.session_capabilities.system_prompt.as_ref().and_then(|able| able.mode.as_ref());
            mode.is_some_and(|mode| mode.override_.is_some())
        };
        let is_native =
            quirks.system_message == SystemMessageWay::Metadata || announced.as_ref().is_some_and(overrides);
        let hooks = hook_support(&self.program);
        AgentAbilities {
            hooks: hooks.ability(),
            changed_arguments: hooks.changed_arguments(),
            mcp: McpAbilities { stdio: Support::Yes, http: reaches(|able| able.http), sse: reaches(|able| able.sse) },
            system_message: match is_native {
                true => SystemMessageAbility::Native,
                false => SystemMessageAbility::BeforeFirstPrompt,
            },
            tool_filter: match quirks.tool_filter {
                ToolFilterWay::None => ToolFilterAbility::OfferedTools,
                ToolFilterWay::Arguments | ToolFilterWay::Metadata => ToolFilterAbility::Native,
            },
            // Their own configurations decide when they ask.
            asks_before: Vec::new(),
        }
    }

    fn edits_files(&self) -> bool {
        true
    }

    fn turn_survival(&self) -> TurnSurvival {
        TurnSurvival::Running
    }

    fn summarizer(&self) -> Option<Arc<dyn Summarizer>> {
        let (program, pool, profile) = (&self.program, &self.pool, &self.profile);
        Some(Arc::new(AcpSummarizer::new(Arc::clone(program), Arc::clone(pool), Arc::clone(profile))))
    }

    fn manages_context_window(&self) -> bool {
        true
    }
}

impl AgentProfile {
    /// Stores what an agent announces.
    pub(crate) fn capabilities(&self, announced: &acp::AgentCapabilities) {
        *self.capabilities.lock().unwrap_or_else(PoisonError::into_inner) = Some(announced.clone());
    }

    /// Returns whether a process of it offered to delete sessions.
    pub(crate) fn deletes_sessions(&self) -> bool {
        self.announced().is_some_and(|announced| announced.session_capabilities.delete.is_some())
    }

    fn announced(&self) -> Option<acp::AgentCapabilities> {
        self.capabilities.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stores the models that a session reports.
    pub(crate) fn models(&self, settings: &AgentSettings) {
        let models = settings.models();
        if models.is_empty() {
            return;
        }
        self.models.send_if_modified(|known| {
            let differs = *known != models;
            *known = models;
            differs
        });
    }

    /// Stores the settings that a session offers, and their defaults while nobody has chosen anything yet.
    pub(crate) fn defaults(&self, settings: &AgentSettings) {
        if let Some(AgentEvent::AgentSettings { schema, values }) = settings.event() {
            let config = SessionConfig { schema, values };
            *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = Some(config);
        }
    }
}
