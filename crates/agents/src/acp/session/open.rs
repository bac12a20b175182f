//! The handshake with an agent: initialization, and opening our conversation.

use std::path::PathBuf;
use std::time::Duration;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1 as acp;
use serde::Serialize;
use serde_json::Value;

use super::chat::{AcpChat, ServicePolicy};
use super::process::AgentProcess;
use crate::acp::connection::{AgentCallError, CallPurpose};
use crate::catalog;

/// The error code of an agent that requires a login first.
pub(super) const AUTH_REQUIRED: i64 = -32000;

/// An agent after initialization.
#[derive(Debug)]
pub(super) struct InitializedAgent<'a> {
    chat: &'a AcpChat,
    process: &'a AgentProcess,
    methods: Vec<acp::AuthMethod>,
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
    #[error("{0}")]
    Auth(String),
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
    chat.profile.capabilities(&answer.agent_capabilities);
    process.set_capabilities(answer.agent_capabilities);
    Ok(InitializedAgent { chat, process, methods: answer.auth_methods, patience })
}

impl InitializedAgent<'_> {
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
                    Err(error) if error.code() == Some(AUTH_REQUIRED) => return Err(self.not_logged_in(&error)),
                    other => other?,
                }
            }
            other => other?,
        };
        Ok(serde_json::from_str(result.get()).map_err(|error| AgentCallError::Nonsense { method, error })?)
    }

    async fn authenticate(&self, refusal: &AgentCallError) -> Result<(), ConversationError> {
        let method = acp::AGENT_METHOD_NAMES.authenticate;
        let Some(chosen) = &self.chat.program.auth else {
            return Err(ConversationError::Auth(self.ways(&format!("it requires a login ({refusal})"))));
        };
        let request = acp::AuthenticateRequest::new(chosen.clone());
        let answer = self.process.agent_connection.call_for(CallPurpose::Any, method, &request, self.patience).await;
        answer.map(drop).map_err(|error| self.not_logged_in(&error))
    }

    fn not_logged_in(&self, error: &AgentCallError) -> ConversationError {
        ConversationError::Auth(self.ways(&format!("it could not be logged in ({error})")))
    }

    /// Instructions for the person to log in.
    fn ways(&self, problem: &str) -> String {
        let name = &self.chat.program.display_name;
        let log_in = match catalog::agent_entry(self.chat.program.id.as_str()) {
            Some(known) => known.log_in.to_owned(),
            None => format!("log in with {name} itself"),
        };
        let ways: Vec<String> = self
            .methods
            .iter()
            .map(|way| match way.description() {
                Some(description) => format!("`{}` ({}: {description})", way.id().0, way.name()),
                None => format!("`{}` ({})", way.id().0, way.name()),
            })
            .collect();
        match ways.as_slice() {
            [] => format!("{problem}: {log_in}, then try again"),
            ways => format!(
                "{problem}: {log_in}, or set `auth` in its settings to one of {}, then try again",
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
