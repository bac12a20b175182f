//! Hooks of clients: functions of a client's program that the host calls at moments of a session.
//!
//! A client that opens a session with hooks registers them in [`ClientHookRegistry`]. The session's task calls them
//! through `HookCaller` outside of itself, and holds what follows meanwhile: a tool call is published, and runs, after
//! the hooks before it have answered. A session that was opened with hooks expects them (`HookMode`), whether its
//! clients are connected or not.

pub(crate) mod answer;
pub(crate) mod caller;
mod registry;

use async_trait::async_trait;
use grove_core::{Answerer, SessionId, Timestamp};
use serde_json::Value;

pub use answer::{HookAnswer, HookVerdict, PromptOutcome, ToolOutcome};
pub(crate) use caller::HookCaller;
pub use registry::{ClientHookRegistry, HookSource};

/// The hooks of one client, for one session.
#[async_trait]
pub trait ClientHooks: Send + Sync + 'static {
    /// Calls the hook of a moment. A client without a hook for it gives an empty answer.
    async fn call(&self, moment: HookMoment) -> Result<HookAnswer, HookFailure>;

    /// The client, for people to see.
    fn party(&self) -> Answerer;
}

/// A moment of a session at which hooks are called.
#[derive(Clone, Debug, PartialEq)]
pub struct HookMoment {
    pub session: SessionId,
    pub at: Timestamp,
    /// The working directory, as a path; empty without one.
    pub folder: String,
    pub event: ClientHookEvent,
}

/// A moment at which hooks are called, with its data.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientHookEvent {
    /// The first prompt since the client opened the session.
    SessionStart {
        source: HookSource,
        initial_prompt: String,
    },
    /// The client closes the session.
    SessionEnd,
    PromptSubmitted {
        prompt: String,
    },
    /// A tool call is about to run.
    BeforeTool(HookedCall),
    /// A tool call has ended.
    AfterTool {
        call: HookedCall,
        result: HookedResult,
    },
    /// A turn has completed. It may be one that a hook asked for.
    AgentStop {
        is_again: bool,
    },
    /// A turn has failed.
    Error {
        message: String,
        of_agent: bool,
    },
}

/// A tool call, as hooks see it.
#[derive(Clone, Debug, PartialEq)]
pub struct HookedCall {
    /// The name of the tool, as the agent gives it.
    pub tool: String,
    /// The input as data, or as a text if it is none.
    pub arguments: Value,
}

/// The result of a tool call, as hooks see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookedResult {
    pub success: bool,
    pub text: String,
}

/// The reason why a hook has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HookFailure {
    #[error("no client with hooks is connected")]
    NoClient,
    #[error("the connection of the hook's client ended before it answered")]
    Disconnected,
    #[error("the hook did not answer within {0} s")]
    TimedOut(u64),
    #[error("the hook failed: {0}")]
    Failed(String),
}

impl ClientHookEvent {
    /// The protocol's name of the hook.
    pub fn name(&self) -> &'static str {
        match self {
            ClientHookEvent::SessionStart { .. } => "sessionStart",
            ClientHookEvent::SessionEnd => "sessionEnd",
            ClientHookEvent::PromptSubmitted { .. } => "userPromptSubmitted",
            ClientHookEvent::BeforeTool(_) => "preToolUse",
            ClientHookEvent::AfterTool { result: HookedResult { success: true, .. }, .. } => "postToolUse",
            ClientHookEvent::AfterTool { .. } => "postToolUseFailure",
            ClientHookEvent::AgentStop { .. } => "agentStop",
            ClientHookEvent::Error { .. } => "errorOccurred",
        }
    }
}

impl HookedCall {
    /// A call with this input.
    pub fn new(tool: &str, input: Option<&str>) -> Self {
        let text = input.unwrap_or_default();
        let parsed = serde_json::from_str(text).ok().filter(|value: &Value| value.is_object() || value.is_array());
        let arguments = match (parsed, text.is_empty()) {
            (Some(value), _) => value,
            (None, true) => Value::Object(serde_json::Map::new()),
            (None, false) => Value::String(text.to_owned()),
        };
        Self { tool: tool.to_owned(), arguments }
    }
}

/// The input of a call, from arguments that a hook gave.
pub(crate) fn input_of(arguments: &Value) -> String {
    match arguments {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}
