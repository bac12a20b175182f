//! The parts of a session's setup that an agent can honour.

use grove_core::PermissionKind;

use super::{HookMode, McpTransport, SetupRefusal, SystemMessageMode, ToolFilter};

/// The parts of a session's setup that an agent can honour, and how. By default none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentAbilities {
    pub mcp: McpAbilities,
    pub system_message: SystemMessageAbility,
    pub tool_filter: ToolFilterAbility,
    /// The kinds of actions before which it always asks for permission, however it is configured.
    pub asks_before: Vec<PermissionKind>,
    pub hooks: HookAbility,
    /// A hook may change the arguments of its calls.
    pub changed_arguments: Support,
}

/// The tool calls before which an agent waits for hooks, if it is started for a session that has some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HookAbility {
    /// Those before which it asks for permission, whichever these are.
    #[default]
    Unknown,
    /// All but those that only read.
    AllButReads,
    EveryCall,
}

/// The transports over which an agent reaches MCP servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct McpAbilities {
    pub stdio: Support,
    pub http: Support,
    pub sse: Support,
}

/// An agent's support for one ability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Support {
    #[default]
    No,
    Yes,
    /// It says so only when it runs. A session that needs the ability fails to start if it is missing.
    Unknown,
}

/// The way of a system message to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SystemMessageAbility {
    /// The agent has no model.
    #[default]
    None,
    /// As a visible message before the first prompt, beside the agent's own system message.
    BeforeFirstPrompt,
    /// Into the agent's own system message, or in its place.
    Native,
}

/// The way in which tools are excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolFilterAbility {
    /// The tools of clients and MCP servers alone: the agent's own cannot be excluded.
    #[default]
    OfferedTools,
    /// Those, and the agent's own, by the agent itself.
    Native,
}

impl McpAbilities {
    /// The agent's support for servers over this transport.
    pub fn of(&self, transport: &McpTransport) -> Support {
        match transport {
            McpTransport::Stdio { .. } => self.stdio,
            McpTransport::Http { .. } => self.http,
            McpTransport::Sse { .. } => self.sse,
        }
    }
}

impl HookAbility {
    pub(super) fn check(self, agent: &str, mode: HookMode) -> Result<(), SetupRefusal> {
        match (mode, self) {
            (HookMode::None | HookMode::BestEffort, _) | (HookMode::Strict, HookAbility::EveryCall) => Ok(()),
            (HookMode::Strict, HookAbility::AllButReads) => {
                Err(SetupRefusal::Hooks { agent: agent.to_owned(), calls: "calls that only read" })
            }
            (HookMode::Strict, HookAbility::Unknown) => {
                Err(SetupRefusal::Hooks { agent: agent.to_owned(), calls: "some of its calls" })
            }
        }
    }
}

impl SystemMessageAbility {
    pub(super) fn check(self, agent: &str, mode: SystemMessageMode) -> Result<(), SetupRefusal> {
        match (self, mode) {
            (SystemMessageAbility::Native, _)
            | (SystemMessageAbility::BeforeFirstPrompt, SystemMessageMode::Append) => Ok(()),
            (SystemMessageAbility::BeforeFirstPrompt, SystemMessageMode::Replace) => {
                Err(SetupRefusal::ReplacedSystemMessage { agent: agent.to_owned() })
            }
            (SystemMessageAbility::None, _) => Err(SetupRefusal::SystemMessage { agent: agent.to_owned() }),
        }
    }
}

impl AgentAbilities {
    /// Returns whether the agent leaves out tools of its own because the host denies their calls.
    pub fn denies_filtered(&self, filter: &ToolFilter) -> bool {
        filter.own_tools && self.tool_filter != ToolFilterAbility::Native && self.hooks == HookAbility::EveryCall
    }

    pub(super) fn check_filter(&self, agent: &str, filter: &ToolFilter, offered: &[&str]) -> Result<(), SetupRefusal> {
        let are_offered = filter.excluded.iter().all(|tool| offered.contains(&tool.as_str()));
        let is_left_out = self.tool_filter == ToolFilterAbility::Native || self.denies_filtered(filter);
        if is_left_out || (filter.available.is_none() && are_offered) {
            return Ok(());
        }
        Err(SetupRefusal::ToolFilter { agent: agent.to_owned() })
    }
}
