//! The setup of a session: what its creator configures for the agent, and what an agent can honour of it.
//!
//! A setup is never ignored. [`AgentSetup::check`] compares it with the [`AgentAbilities`] before the session is created,
//! and refuses with the reason and the next step. A setup may hold secrets (variables and headers of MCP servers), so
//! `Debug` leaves them out, and no event, state or log has them.

mod abilities;
mod custom_agents;
mod refusal;
mod skills;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

pub use abilities::{AgentAbilities, HookAbility, McpAbilities, Support, SystemMessageAbility, ToolFilterAbility};
pub use custom_agents::{CustomAgent, CustomAgents};
pub use refusal::SetupRefusal;
pub use skills::{Skill, Skills};

/// The MCP servers of a session.
pub const MAX_MCP_SERVERS: usize = 64;
/// The bytes of a session's setup as JSON.
pub const MAX_SETUP_BYTES: usize = 1 << 20;
/// The bytes of the name of an MCP server.
pub const MAX_SERVER_NAME: usize = 64;
/// The name of the MCP server through which an agent calls the tools of clients.
pub const CLIENT_TOOLS_SERVER: &str = "grove";

/// The configuration of a session's agent by the session's creator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentSetup {
    /// MCP servers that the agent starts or connects to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mcp_servers: Vec<McpServer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_message: Option<SystemMessage>,
    #[serde(skip_serializing_if = "CustomAgents::is_empty")]
    pub custom_agents: CustomAgents,
    #[serde(skip_serializing_if = "Skills::is_empty")]
    pub skills: Skills,
    #[serde(skip_serializing_if = "ToolFilter::is_none")]
    pub tool_filter: ToolFilter,
    /// Hooks of clients for the session, for which the agent has to wait.
    #[serde(skip_serializing_if = "HookMode::is_none")]
    pub hooks: HookMode,
}

/// The presence of clients' hooks in a session, and their weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HookMode {
    #[default]
    None,
    /// Hooks are called if the agent allows it. A hook that does not answer decides nothing.
    BestEffort,
    /// Before every tool call. A hook that does not answer denies the call.
    Strict,
}

/// Changes of a setup. Members that are not set stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetupChange {
    pub mcp_servers: Option<Vec<McpServer>>,
    pub system_message: Option<SystemMessage>,
    pub custom_agents: Option<Vec<CustomAgent>>,
    /// The name of the custom agent to select; an empty one selects none.
    pub selected_agent: Option<String>,
    pub skills: Option<Skills>,
    pub tool_filter: Option<ToolFilter>,
    pub hooks: Option<HookMode>,
    /// The tools that the caller is about to offer. The setup does not keep them.
    pub client_tools: Vec<String>,
}

/// An MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpServer {
    /// Unique in its setup.
    pub name: String,
    #[serde(flatten)]
    pub transport: McpTransport,
    /// For a server over stdio, which a program between it and the agent then starts.
    #[serde(default, skip_serializing_if = "McpRestriction::is_none")]
    pub restriction: McpRestriction,
}

/// The folder and the tools of an MCP server, of which agents know nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct McpRestriction {
    /// The working directory of the server; without one it is the agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The tools that the agent gets; without a list it gets all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<BTreeSet<String>>,
}

/// The way to an MCP server. `Debug` leaves out the values of variables and headers.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum McpTransport {
    /// A program that the agent starts.
    Stdio {
        command: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        args: Vec<String>,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
    },
    Http {
        url: String,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
    },
    Sse {
        url: String,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
    },
}

/// Instructions for the model beside the agent's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SystemMessage {
    pub mode: SystemMessageMode,
    pub content: String,
}

/// The place of a system message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SystemMessageMode {
    /// Behind the agent's own.
    Append,
    /// In place of the agent's own.
    Replace,
}

/// The tools that an agent may use, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolFilter {
    /// Only these; `None` means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available: Option<BTreeSet<String>>,
    /// All but these.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub excluded: BTreeSet<String>,
    /// Some of them are the agent's own. An agent that cannot leave them out is denied their calls, if it asks before each.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub own_tools: bool,
}

impl AgentSetup {
    /// Returns whether nothing is configured.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The same setup after a change.
    pub fn changed(&self, change: SetupChange) -> Self {
        let SetupChange {
            mcp_servers,
            system_message,
            custom_agents,
            selected_agent,
            skills,
            tool_filter,
            hooks,
            client_tools: _,
        } = change;
        Self {
            mcp_servers: mcp_servers.unwrap_or_else(|| self.mcp_servers.clone()),
            system_message: system_message.or_else(|| self.system_message.clone()),
            custom_agents: self.custom_agents.changed(custom_agents, selected_agent),
            skills: skills.unwrap_or_else(|| self.skills.clone()),
            tool_filter: tool_filter.unwrap_or_else(|| self.tool_filter.clone()),
            hooks: hooks.unwrap_or(self.hooks),
        }
    }

    /// The instructions for the model: the system message, the prompt of the selected custom agent, the list of skills.
    pub fn instructions(&self) -> Option<Cow<'_, SystemMessage>> {
        let prompt = self.custom_agents.selected().map(|agent| agent.prompt.clone());
        let more: Vec<String> = prompt.into_iter().chain(self.skills.text()).collect();
        if more.is_empty() {
            return self.system_message.as_ref().map(Cow::Borrowed);
        }
        let mode = self.system_message.as_ref().map_or(SystemMessageMode::Append, |message| message.mode);
        let first = self.system_message.iter().map(|message| message.content.as_str());
        let contents: Vec<&str> = first.chain(more.iter().map(String::as_str)).collect();
        Some(Cow::Owned(SystemMessage { mode, content: contents.join("\n\n") }))
    }

    /// The values that must not be written anywhere else: those of variables and headers.
    pub fn secrets(&self) -> impl Iterator<Item = &String> {
        self.mcp_servers.iter().flat_map(McpServer::secrets)
    }

    /// Checks the setup, and that an agent of this name and with these abilities can honour all of it. `offered` are the
    /// tools of clients, which Grove excludes itself.
    pub fn check(&self, agent: &str, abilities: &AgentAbilities, offered: &[&str]) -> Result<(), SetupRefusal> {
        self.check_bounds()?;
        for server in &self.mcp_servers {
            if !server.restriction.is_none() && !matches!(server.transport, McpTransport::Stdio { .. }) {
                return Err(SetupRefusal::McpRestriction(server.name.clone()));
            }
            if abilities.mcp.of(&server.transport) == Support::No {
                return Err(SetupRefusal::Transport {
                    agent: agent.to_owned(),
                    server: server.name.clone(),
                    transport: server.transport.name(),
                });
            }
        }
        self.custom_agents.check(agent)?;
        if let Some(message) = self.instructions() {
            abilities.system_message.check(agent, message.mode)?;
        }
        abilities.hooks.check(agent, self.hooks)?;
        abilities.check_filter(agent, &self.tool_filter, offered)
    }

    fn check_bounds(&self) -> Result<(), SetupRefusal> {
        if self.mcp_servers.len() > MAX_MCP_SERVERS {
            return Err(SetupRefusal::TooManyServers);
        }
        let mut names = BTreeSet::new();
        for McpServer { name, .. } in &self.mcp_servers {
            let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ' | '/' | '@');
            if name.is_empty() || name.len() > MAX_SERVER_NAME || !name.chars().all(is_fit) {
                return Err(SetupRefusal::ServerName(name.chars().take(MAX_SERVER_NAME).collect()));
            }
            if name == CLIENT_TOOLS_SERVER || !names.insert(name) {
                return Err(SetupRefusal::ServerNameTaken(name.clone()));
            }
        }
        // Plain data with string keys always serializes.
        let bytes = serde_json::to_vec(self).map_or(usize::MAX, |json| json.len());
        if bytes > MAX_SETUP_BYTES {
            return Err(SetupRefusal::TooLarge);
        }
        Ok(())
    }
}

impl HookMode {
    /// Returns whether the session has no hooks.
    pub fn is_none(&self) -> bool {
        *self == HookMode::None
    }
}

impl SetupChange {
    /// Returns whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.mcp_servers.is_none()
            && self.system_message.is_none()
            && self.custom_agents.is_none()
            && self.selected_agent.is_none()
            && self.skills.is_none()
            && self.tool_filter.is_none()
    }
}

impl McpRestriction {
    /// Returns whether the server is as it is.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl McpServer {
    /// A server without a restriction.
    pub fn new(name: impl Into<String>, transport: McpTransport) -> Self {
        Self { name: name.into(), transport, restriction: McpRestriction::default() }
    }

    /// The values of its variables or headers.
    pub fn secrets(&self) -> impl Iterator<Item = &String> {
        match &self.transport {
            McpTransport::Stdio { env, .. } => env.values(),
            McpTransport::Http { headers, .. } | McpTransport::Sse { headers, .. } => headers.values(),
        }
    }
}

impl McpTransport {
    /// Its name in words.
    pub fn name(&self) -> &'static str {
        match self {
            McpTransport::Stdio { .. } => "stdio",
            McpTransport::Http { .. } => "HTTP",
            McpTransport::Sse { .. } => "SSE",
        }
    }
}

impl fmt::Debug for McpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            McpTransport::Stdio { command, args, env } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", &args.len())
                .field("env", &env.keys())
                .finish(),
            McpTransport::Http { url: _, headers } | McpTransport::Sse { url: _, headers } => {
                f.debug_struct(self.name()).field("headers", &headers.keys()).finish_non_exhaustive()
            }
        }
    }
}

impl ToolFilter {
    /// Returns whether every tool may be used.
    pub fn is_none(&self) -> bool {
        self.available.is_none() && self.excluded.is_empty()
    }

    /// Returns whether a tool may be used.
    pub fn allows(&self, tool: &str) -> bool {
        self.available.as_ref().is_none_or(|available| available.contains(tool)) && !self.excluded.contains(tool)
    }

    /// Returns whether an agent may make a call. Agents put the name of an MCP server before the names of its tools.
    pub fn allows_call(&self, tool: &str) -> bool {
        let ends = |name: &String| {
            let before = tool.strip_suffix(name.as_str());
            before.is_some_and(|before| before.is_empty() || before.ends_with(['_', '-', '.', '/']))
        };
        let is_available = self.available.as_ref().is_none_or(|available| available.iter().any(ends));
        is_available && !self.excluded.contains(tool)
    }
}

#[cfg(test)]
mod tests;
