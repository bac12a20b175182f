//! The handshake with an agent: initialization, and opening our conversation.

use std::path::PathBuf;
use std::time::Duration;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1 as acp;
use serde::Serialize;
use serde_json::Value;

use super::chat::{AcpChat, ServicePolicy};
use super::process::AgentProcess;
use crate::acp::connection::{AgentCallError, CallPurpose, error_text};
use crate::acp::hooks::has_own_hooks;
use crate::acp::login::{AgentProbe, LOGIN_TIME, LoginMethod};
use crate::setup::HookMode;

/// The error code of an agent that requires a login first.
pub(crate) const AUTH_REQUIRED: i64 = -32000;

/// An agent after initialization.
#[derive(Debug)]
pub(super) struct InitializedAgent<'a> {
    chat: &'a AcpChat,
    process: &'a AgentProcess,
    probe: AgentProbe,
    patience: Duration,
}

/// A conversation with an agent.
#[derive(Debug)]
pub(super) struct AgentConversation {
    pub(super) session: acp::SessionId,
    /// The agent's answer that opened it.
    pub(super) result: Value,
    pub(super) context_retention: ContextRetention,
}

/// The agent's knowledge of the earlier conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContextRetention {
    Retained,
    Empty,
}

/// The reason why there is no conversation.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConversationError {
    #[error(transparent)]
    Call(#[from] AgentCallError),
    #[error(
        "it speaks version {theirs} of the Agent Client Protocol, and Grove speaks 1: install another version of it"
    )]
    Version { theirs: String },
    #[error(
        "{name} did not answer `initialize` within {} s: run its command in a terminal to see why, or raise \
         `agent-start` in grove.toml if it needs longer", .limit.as_secs_f32()
    )]
    Silent { name: String, limit: Duration },
    #[error(
        "this version of {0} does not wait for the hooks of the session: install the newest one, open the session without \
         `hooks`, or set hooks = \"best-effort\" under [copilot] in grove.toml"
    )]
    Hooks(String),
    #[error("{words}")]
    LoginRequired {
        /// The agent's own words.
        problem: String,
        /// The problem, with the next step for a person.
        words: String,
        methods: Vec<LoginMethod>,
    },
    #[error(
        "it does not reach the MCP server {server} over {transport}: leave the server out, limit it to other agents \
         (`agents` in grove.toml), or choose another agent"
    )]
    McpTransport { server: String, transport: &'static str },
    #[error("it opened a session without giving its id")]
    MissingSessionId,
}

/// Initializes an agent.
pub(super) async fn initialize_agent<'a>(
    chat: &'a AcpChat,
    process: &'a AgentProcess,
) -> Result<InitializedAgent<'a>, ConversationError> {
    let patience = chat.pool.options().patience;
    let able = match chat.service_policy {
        ServicePolicy::Everything => acp::ClientCapabilities::new()
            .fs(acp::FileSystemCapabilities::new().read_text_file(true).write_text_file(true))
            .terminal(true)
            .elicitation(
                acp::ElicitationCapabilities::new()
                    .form(acp::ElicitationFormCapabilities::new())
                    .url(acp::ElicitationUrlCapabilities::new()),
            ),
        ServicePolicy::Nothing => acp::ClientCapabilities::new(),
    };
    // `grove agents login` runs them. Older agents know the member of `_meta` alone.
    let able = able
        .auth(acp::AuthCapabilities::new().terminal(true))
        .meta(acp::Meta::from_iter([("terminal-auth".to_owned(), Value::Bool(true))]));
    let request = acp::InitializeRequest::new(ProtocolVersion::V1)
        .client_capabilities(able)
        .client_info(acp::Implementation::new("grove", env!("CARGO_PKG_VERSION")));
    let method = acp::AGENT_METHOD_NAMES.initialize;
    let limit = chat.pool.options().start;
    let answer: acp::InitializeResponse = match process.agent_connection.call(method, &request, limit).await {
        Err(AgentCallError::Slow { .. }) => {
            return Err(ConversationError::Silent { name: chat.program.display_name.clone(), limit });
        }
        other => other?,
    };
    if answer.protocol_version != ProtocolVersion::V1 {
        return Err(ConversationError::Version { theirs: answer.protocol_version.to_string() });
    }
    let info = answer.agent_info.as_ref().map(|info| (info.name.as_str(), info.version.as_str()));
    if chat.hooks == HookMode::Strict && !has_own_hooks(chat.hook_support(), info) {
        return Err(ConversationError::Hooks(chat.program.display_name.clone()));
    }
    chat.profile.capabilities(&answer.agent_capabilities);
    process.set_capabilities(answer.agent_capabilities);
    let (name, version) = answer.agent_info.map(|info| (info.name, info.version)).unzip();
    let probe = AgentProbe { name, version, login_methods: LoginMethod::read_all(&answer.auth_methods) };
    Ok(InitializedAgent { chat, process, probe, patience })
}

impl InitializedAgent<'_> {
    /// The facts that the agent told.
    pub(super) fn probe(&self) -> &AgentProbe {
        &self.probe
    }

    /// Has the agent log in with one of its methods. It may wait for a person.
    pub(super) async fn log_in(&self, method: &str) -> Result<(), AgentCallError> {
        let request = acp::AuthenticateRequest::new(method.to_owned());
        let name = acp::AGENT_METHOD_NAMES.authenticate;
        self.process.agent_connection.call_for(CallPurpose::Any, name, &request, LOGIN_TIME).await.map(drop)
    }

    /// Reopens a conversation that the agent had before, or begins one.
    pub(super) async fn open(&self, agent_session_id: Option<&str>) -> Result<AgentConversation, ConversationError> {
        if let Some(agent_session_id) = agent_session_id
            && let Some(opened) = self.reopen(agent_session_id.to_owned().into()).await?
        {
            return Ok(opened);
        }
        let able = self.process.capabilities();
        let request = acp::NewSessionRequest::new(self.chat.cwd())
            .additional_directories(self.additional_folders())
            .mcp_servers(self.servers()?)
            .system_prompt(self.chat.requested_system_prompt(&able))
            .meta(self.chat.setup_metadata(&able));
        let method = acp::AGENT_METHOD_NAMES.session_new;
        let result = self.opening(CallPurpose::Opens(None), method, &request).await?;
        let session = self.process.session().ok_or(ConversationError::MissingSessionId)?;
        Ok(AgentConversation { session, result, context_retention: ContextRetention::Empty })
    }

    /// `None`: the agent cannot, or has forgotten the conversation.
    async fn reopen(&self, session: acp::SessionId) -> Result<Option<AgentConversation>, ConversationError> {
        let able = self.process.capabilities();
        let opens = || CallPurpose::Opens(Some(session.clone()));
        let mut result = None;
        if able.session_capabilities.resume.is_some() {
            let request = acp::ResumeSessionRequest::new(session.clone(), self.chat.cwd())
                .additional_directories(self.additional_folders())
                .mcp_servers(self.servers()?)
                .system_prompt(self.chat.requested_system_prompt(&able))
                .meta(self.chat.setup_metadata(&able));
            let method = acp::AGENT_METHOD_NAMES.session_resume;
            result = forgotten(self.opening(opens(), method, &request).await)?;
        }
        if result.is_none() && able.load_session {
            let request = acp::LoadSessionRequest::new(session.clone(), self.chat.cwd())
                .additional_directories(self.additional_folders())
                .mcp_servers(self.servers()?)
                .system_prompt(self.chat.requested_system_prompt(&able))
                .meta(self.chat.setup_metadata(&able));
            let method = acp::AGENT_METHOD_NAMES.session_load;
            result = forgotten(self.opening(opens(), method, &request).await)?;
        }
        let Some(result) = result else { return Ok(None) };
        // An agent that already has it open reports that as an error, which opens nothing.
        if self.process.session().is_none() {
            self.process.opened(session.clone());
        }
        Ok(Some(AgentConversation { session, result, context_retention: ContextRetention::Retained }))
    }

    /// Calls a method; if the agent requires a login first, logs in once.
    pub(super) async fn opening<P: Serialize>(
        &self,
        purpose: CallPurpose,
        method: &'static str,
        params: &P,
    ) -> Result<Value, ConversationError> {
        let call = || self.process.agent_connection.call_for(purpose.clone(), method, params, self.patience);
        let result = match call().await {
            Err(error) if error.code() == Some(AUTH_REQUIRED) => {
                self.authenticate(&error).await?;
                match call().await {
                    Err(error) if error.code() == Some(AUTH_REQUIRED) => {
                        return Err(self.login_required(&format!("it could not be logged in ({error})"), &error));
                    }
                    other => other?,
                }
            }
            other => other?,
        };
        Ok(serde_json::from_str(result.get()).map_err(|error| AgentCallError::Nonsense { method, error })?)
    }

    async fn authenticate(&self, refusal: &AgentCallError) -> Result<(), ConversationError> {
        let method = acp::AGENT_METHOD_NAMES.authenticate;
        let wanted = &self.chat.program.auth;
        let is_offered = |wanted: &&String| self.probe.login_methods.iter().any(|way| way.id == **wanted);
        let Some(chosen) = wanted.iter().find(is_offered).or(wanted.first()) else {
            return Err(self.login_required(&format!("it requires a login ({refusal})"), refusal));
        };
        let request = acp::AuthenticateRequest::new(chosen.clone());
        let answer = self.process.agent_connection.call_for(CallPurpose::Any, method, &request, self.patience).await;
        answer.map(drop).map_err(|error| self.login_required(&format!("it could not be logged in ({error})"), refusal))
    }

    fn login_required(&self, problem: &str, refusal: &AgentCallError) -> ConversationError {
        let own_words = match refusal {
            AgentCallError::Refused { error, .. } => error_text(error),
            other => other.to_string(),
        };
        let methods = self.probe.login_methods.clone();
        ConversationError::LoginRequired { problem: own_words, words: self.ways(problem), methods }
    }

    /// Instructions for the person to log in.
    fn ways(&self, problem: &str) -> String {
        let name = &self.chat.program.display_name;
        let log_in = match &self.chat.program.known {
            Some(known) => known.log_in.clone(),
            None => format!("log in with {name} itself"),
        };
        let id = &self.chat.program.id;
        let ways: Vec<String> = self
            .probe
            .login_methods
            .iter()
            .map(|way| match &way.description {
                Some(description) => format!("`{}` ({}: {description})", way.id, way.name),
                None => format!("`{}` ({})", way.id, way.name),
            })
            .collect();
        match ways.as_slice() {
            [] => format!("{problem}: {log_in}, then try again"),
            ways => format!(
                "{problem}: {log_in}, or use one of its methods {} with `grove agents login {id}` or as `auth` in its \
                 settings, then try again",
                ways.join(", ")
            ),
        }
    }

    fn servers(&self) -> Result<Vec<acp::McpServer>, ConversationError> {
        self.chat.requested_servers(&self.process.capabilities(), self.process.tools.as_deref())
    }

    fn additional_folders(&self) -> Vec<PathBuf> {
        additional_folders(self.chat, &self.process.capabilities())
    }
}

/// The other folders of a chat, if the agent can work in several.
fn additional_folders(chat: &AcpChat, able: &acp::AgentCapabilities) -> Vec<PathBuf> {
    match able.session_capabilities.additional_directories {
        Some(_) => chat.additional_folders().to_vec(),
        None => Vec::new(),
    }
}

/// The request that copies a conversation; `None` if the agent cannot.
pub(super) fn fork_request(
    chat: &AcpChat,
    process: &AgentProcess,
    session: acp::SessionId,
) -> Option<acp::ForkSessionRequest> {
    let able = process.capabilities();
    able.session_capabilities.fork.as_ref()?;
    Some(acp::ForkSessionRequest::new(session, chat.cwd()).additional_directories(additional_folders(chat, &able)))
}

/// The result of reopening a conversation: `None` if the agent refused. Only an agent that no longer answers, or
/// requires a login, is a reason not to begin another.
fn forgotten(result: Result<Value, ConversationError>) -> Result<Option<Value>, ConversationError> {
    match result {
        Ok(result) => Ok(Some(result)),
        Err(ConversationError::Call(AgentCallError::Refused { error, .. })) if is_open(&error.message) => {
            Ok(Some(Value::Null))
        }
        Err(ConversationError::Call(error @ AgentCallError::Refused { .. })) => {
            tracing::debug!(%error, "an agent did not reopen a conversation");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Returns whether an agent refuses to load a session because it has it open.
fn is_open(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    message.contains("already") && ["loaded", "open", "active"].iter().any(|word| message.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_is_loaded_already_is_open() {
        assert!(is_open("Session f5428d38 is already loaded"));
        assert!(!is_open("Session f5428d38 was not found"));
        assert!(!is_open("it already failed"));
    }
}
