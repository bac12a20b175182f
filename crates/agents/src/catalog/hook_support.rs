//! The ways in which an agent waits for the hooks of its session.
//!
//! They are no part of the catalog's file: a denial of a hook relies on them, so no download may change them.

use grove_core::AgentId;

use crate::acp::hooks::HookFormat;
use crate::setup::{HookAbility, Support};

/// OpenCode's permissions for a session with hooks. Its included agents have some of their own, and it passes on no requests of
/// subagents.
const OPENCODE_ASKS: &str = r#"{"permission": {"*": "ask", "task": "deny"}, "agent": {
    "build": {"permission": {"*": "ask", "task": "deny"}},
    "plan": {"permission": {"*": "ask", "task": "deny"}}}}"#;

/// How an agent is started for a session with hooks, and before which calls it then waits for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HookSupport {
    /// Nothing is known.
    #[default]
    Unknown,
    /// It asks for permission before everything but reads, as it is.
    AsksButReads,
    /// Settings make it ask before every call.
    Asks {
        /// The variable that holds its settings, as a JSON object.
        variable: &'static str,
        /// The settings, which are added to those that the variable has.
        settings: &'static str,
    },
    /// It has hooks of its own, which run a command before every call.
    Command(HookFormat),
}

impl HookSupport {
    /// The way of a known agent.
    pub fn of(agent: &AgentId) -> Self {
        match agent.as_str() {
            "claude" => HookSupport::AsksButReads,
            "codex" => HookSupport::Command(HookFormat::Codex),
            "copilot" => HookSupport::Command(HookFormat::Copilot),
            "opencode" => HookSupport::Asks { variable: "OPENCODE_CONFIG_CONTENT", settings: OPENCODE_ASKS },
            _ => HookSupport::Unknown,
        }
    }

    /// The calls before which the agent waits.
    pub fn ability(self) -> HookAbility {
        match self {
            HookSupport::Unknown => HookAbility::Unknown,
            HookSupport::AsksButReads => HookAbility::AllButReads,
            HookSupport::Asks { .. } | HookSupport::Command(_) => HookAbility::EveryCall,
        }
    }

    /// The support for hooks that change the arguments of a call.
    pub fn changed_arguments(self) -> Support {
        match self {
            HookSupport::Command(_) => Support::Yes,
            HookSupport::Unknown | HookSupport::AsksButReads | HookSupport::Asks { .. } => Support::No,
        }
    }
}
