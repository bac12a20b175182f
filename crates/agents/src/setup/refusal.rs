//! The reasons why a setup is refused.

use super::{CLIENT_TOOLS_SERVER, MAX_MCP_SERVERS, MAX_SERVER_NAME, MAX_SETUP_BYTES};

/// The reason why a session cannot have a setup.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupRefusal {
    #[error("a session may have at most {MAX_MCP_SERVERS} MCP servers: name fewer")]
    TooManyServers,
    #[error(
        "the setup of a session may have at most {MAX_SETUP_BYTES} bytes: shorten its system message, or its MCP servers"
    )]
    TooLarge,
    #[error(
        "{0:?} cannot name an MCP server: use 1 to {MAX_SERVER_NAME} letters, digits, spaces and the characters - _ . / @"
    )]
    ServerName(String),
    #[error("the name {0:?} of an MCP server is taken ({CLIENT_TOOLS_SERVER} is Grove's own): give each its own name")]
    ServerNameTaken(String),
    #[error(
        "the tools of the MCP server {0} cannot be restricted: Grove does so for servers over stdio alone; leave out \
         `tools`"
    )]
    McpRestriction(String),
    #[error(
        "the agent {agent} cannot use the MCP server {server}: it reaches none over {transport}; leave the server out, or \
         choose another agent"
    )]
    Transport { agent: String, server: String, transport: &'static str },
    #[error("the agent {agent} cannot have a system message: leave it out, or choose another agent")]
    SystemMessage { agent: String },
    #[error(
        "the agent {agent} does not let its own system message be replaced: append to it instead, or choose another agent"
    )]
    ReplacedSystemMessage { agent: String },
    #[error("{0:?} cannot name a custom agent: give each a name of its own")]
    CustomAgentName(String),
    #[error("there is no custom agent {0:?}: define it in `customAgents`")]
    NoCustomAgent(String),
    #[error(
        "the custom agent {custom} cannot be selected: the agent {agent} takes its prompt, and cannot honour its \
         `{member}`; leave that out, or configure the session with it"
    )]
    CustomAgent { agent: String, custom: String, member: String },
    #[error(
        "the agent {agent} cannot exclude tools of its own, and may not ask before it uses them: leave out the lists of \
         available and excluded tools, or choose another agent"
    )]
    ToolFilter { agent: String },
    #[error(
        "the agent {agent} runs {calls} without asking Grove, so a preToolUse hook that denies could not stop them: open \
         the session without `hooks`, choose another agent, or set hooks = \"best-effort\" under [copilot] in grove.toml"
    )]
    Hooks { agent: String, calls: &'static str },
}
