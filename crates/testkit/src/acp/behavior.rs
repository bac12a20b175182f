//! The behavior of an agent.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The environment variable that holds a behavior: JSON itself, or the path of a file with it.
pub const BEHAVIOR_VARIABLE: &str = "GROVE_ACP_AGENT";

/// The behavior of an agent. The default is a well-behaved agent that can do everything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentBehavior {
    /// The folder of its sessions, one file each. Without it, they are lost with the process.
    pub store: Option<PathBuf>,
    /// Its abilities beside answering prompts.
    pub can: AgentAbilities,
    /// The contents that it accepts in prompts beside text and links. It refuses the others.
    pub takes: Vec<PromptContentKind>,

    /// The ids of its authentication methods.
    pub auth_methods: Vec<String>,
    /// It has no sessions before one of them was used.
    pub needs_auth: bool,
    /// The file that stores a login. While it exists, the agent is logged in.
    pub credentials: Option<PathBuf>,
    /// Methods that it answers only once they are cancelled, with an error. `cancelled` in the folder of `store` names them.
    pub answers_if_cancelled: Vec<String>,
    /// It offers a login in a terminal, `terminal`, to clients that can run one: its program with `--login`.
    pub terminal_login: bool,

    /// Modes, by their ids; the first is the current one.
    pub modes: Vec<String>,
    /// Models in the older list that the protocol's types no longer have, by their ids; the first is the current one.
    pub models: Vec<String>,
    /// Configuration options, as the protocol writes them. One of category `mode` follows the mode, and vice versa.
    pub options: Vec<Value>,

    /// It never sends `tool_call`: a call is known from the permission request and the updates alone.
    pub never_tool_call: bool,
    /// It asks for permission before it sends `tool_call`.
    pub asks_first: bool,
    /// The first `tool_call` has neither input nor the final title; an update without a status adds them.
    pub bare_first_call: bool,
    /// Updates have no status, except for the last one.
    pub no_status: bool,
    /// It asks before every tool call, whatever the script says.
    pub asks_always: bool,
    /// It never asks before a tool call, whatever the script says.
    pub asks_nothing: bool,
    /// The answers that it offers when it asks; all four if empty.
    pub offers: Vec<PermissionOfferKind>,

    /// The history that `session/load` replays has other titles, kinds and outputs than the conversation had.
    pub load_differs: bool,
    /// It has the sessions of its store open from its start on.
    pub opens_stored: bool,
    /// Loading or resuming a session that is open is an error.
    pub already_loaded_error: bool,

    /// It lives on when its stdin ends, for [ten minutes](super::ALONE) at most.
    pub ignores_stdin_close: bool,
    /// It continues its turn when it is told to cancel it.
    pub ignores_cancel: bool,
    /// A call that runs when its turn is cancelled gets no last update.
    pub no_last_update_on_cancel: bool,
    /// Such a call gets the status `completed` instead of `failed`.
    pub cancelled_is_completed: bool,
    /// The milliseconds for which a `fail` step retries silently, before it fails.
    pub retries_for: u64,
    /// The milliseconds before it reads anything.
    pub slow_start: u64,
    /// It never answers `initialize`.
    pub hangs_initialize: bool,
    /// It never answers `session/close`.
    pub hangs_close: bool,
    /// The members of a `usage_update` that it sends right behind its answer to each prompt.
    pub late_usage: Option<Value>,
    /// It ends in the middle of these.
    pub crash_on: Vec<CrashPoint>,
    /// Requests that it refuses, by their methods.
    pub refuses: BTreeMap<String, RpcError>,

    /// The ids of its requests begin with 0 instead of 1.
    pub ids_from_zero: bool,
    /// The ids of its requests are strings.
    pub ids_as_text: bool,
    /// With each prompt it sends `craft/drainMidTurnQueue`, which no client knows, and a notification of that kind.
    pub unknown_request: bool,
    /// An empty chunk follows each text.
    pub empty_chunks: bool,
}

/// The abilities of an agent beside answering prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentAbilities {
    pub load: bool,
    pub resume: bool,
    pub close: bool,
    pub delete: bool,
    pub list: bool,
    pub fork: bool,
    pub additional_directories: bool,
    /// `session/set_title`.
    pub title: bool,
}

impl AgentBehavior {
    /// The login in a terminal: stores it, and says so.
    pub fn log_in(&self) -> std::io::Result<()> {
        match &self.credentials {
            Some(credentials) => std::fs::write(credentials, "logged in"),
            None => Ok(()),
        }
    }
}

impl AgentAbilities {
    /// None of them.
    pub const NOTHING: Self = Self {
        load: false,
        resume: false,
        close: false,
        delete: false,
        list: false,
        fork: false,
        additional_directories: false,
        title: false,
    };
}

impl Default for AgentAbilities {
    fn default() -> Self {
        Self {
            load: true,
            resume: true,
            close: true,
            delete: true,
            list: true,
            fork: true,
            additional_directories: true,
            title: true,
        }
    }
}

/// A kind of content in prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptContentKind {
    Image,
    Audio,
    EmbeddedContext,
}

/// A kind of answer to a permission request. Its option has the same word as its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermissionOfferKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
}

impl PermissionOfferKind {
    pub const ALL: [Self; 4] = [Self::AllowOnce, Self::AllowAlways, Self::RejectOnce, Self::RejectAlways];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::AllowOnce => "allow_once",
            Self::AllowAlways => "allow_always",
            Self::RejectOnce => "reject_once",
            Self::RejectAlways => "reject_always",
        }
    }
}

/// The point at which an agent crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CrashPoint {
    Initialize,
    New,
    Load,
    Resume,
    SetMode,
    /// The prompt of the process with this number; the first is 1.
    Prompt(usize),
}

/// A JSON-RPC error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

/// The error of an invalid behavior.
#[derive(Debug, thiserror::Error)]
pub enum AgentBehaviorError {
    #[error("{BEHAVIOR_VARIABLE} names {0}, which cannot be read: {1}")]
    File(PathBuf, std::io::Error),
    #[error("{BEHAVIOR_VARIABLE} is not a behavior: {0}")]
    Form(#[from] serde_json::Error),
}

impl AgentBehavior {
    /// The behavior in the environment, or the default one.
    pub fn from_env() -> Result<Self, AgentBehaviorError> {
        match std::env::var_os(BEHAVIOR_VARIABLE) {
            None => Ok(Self::default()),
            Some(given) => Self::given(&given.to_string_lossy()),
        }
    }

    fn given(given: &str) -> Result<Self, AgentBehaviorError> {
        let given = given.trim();
        if given.is_empty() {
            return Ok(Self::default());
        }
        if given.starts_with('{') {
            return Ok(serde_json::from_str(given)?);
        }
        let text = std::fs::read_to_string(given).map_err(|error| AgentBehaviorError::File(given.into(), error))?;
        Ok(serde_json::from_str(&text)?)
    }

    /// The value for the environment variable.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a behavior serializes")
    }

    pub(super) fn offered(&self) -> &[PermissionOfferKind] {
        if self.offers.is_empty() { &PermissionOfferKind::ALL } else { &self.offers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_reads_as_it_was_written() {
        let behavior = AgentBehavior {
            store: Some("/somewhere".into()),
            can: AgentAbilities { load: false, ..AgentAbilities::default() },
            crash_on: vec![CrashPoint::New, CrashPoint::Prompt(2)],
            offers: vec![PermissionOfferKind::AllowOnce],
            never_tool_call: true,
            ..AgentBehavior::default()
        };
        assert_eq!(AgentBehavior::given(&behavior.to_json()).unwrap(), behavior);
    }

    #[test]
    fn a_switch_that_nobody_knows_is_refused() {
        let error = AgentBehavior::given(r#"{"never_tool_cal":true}"#).unwrap_err().to_string();
        assert!(error.contains("never_tool_cal"), "{error}");
    }

    #[test]
    fn a_character_may_lie_in_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), r#"{"asks_first":true,"can":{"fork":false}}"#).unwrap();
        let behavior = AgentBehavior::given(&file.path().to_string_lossy()).unwrap();
        assert!(behavior.asks_first && !behavior.can.fork && behavior.can.load);
        let missing = AgentBehavior::given("/nowhere/to/be/found").unwrap_err().to_string();
        assert!(missing.contains("/nowhere/to/be/found"), "{missing}");
    }
}
