//! The hooks that agents have themselves: a command that an agent runs before every tool call.
//!
//! The command is `grove agent-hook`. It passes the call to the host through a socket in the agent's folder, waits for the
//! decision of the session's hooks, and prints it as the agent reads it ([`HookFormat`]). A host that is restarted is
//! asked again.

pub(crate) mod command;
mod format;
mod start;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use command::run;
pub use format::HookFormat;
pub(crate) use start::{has_own_hooks, prepare};

/// The longest line between the command and the host.
pub const MAX_HOOK_LINE: usize = 16 << 20;

/// A call that an agent is about to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct HookRequest {
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    /// The agent's id of the call, if it gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<String>,
}

/// The decision about a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HookReply {
    pub(crate) decision: HookDecision,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The arguments with which the call is to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) arguments: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum HookDecision {
    /// The agent goes on as without hooks.
    None,
    Allow,
    Deny,
}

impl HookReply {
    pub(crate) fn denied(reason: impl Into<String>) -> Self {
        Self { decision: HookDecision::Deny, reason: Some(reason.into()), arguments: None }
    }
}

/// The socket in the folder of a chat's agent.
pub(crate) fn socket_in(folder: &Path) -> PathBuf {
    folder.join("hooks")
}
