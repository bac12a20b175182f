//! Agents that speak the Agent Client Protocol, version 1, on their stdio.
//!
//! # Layout
//!
//! Pure translation between the protocol's types and ours:
//! - `map`: an agent's messages (`session/update`, permission requests, the end of a turn) as
//!   [`AgentEvent`](crate::AgentEvent)s.
//! - `settings`: an agent's modes, models and configuration options as settings of a session, and back.
//! - `content`: a user's message as protocol content, and the recap of a conversation for an agent that forgot it.
//! - `elicit`: an agent's questions to a person, and the answers.
//!
//! Processes and connections:
//! - `connection`: JSON-RPC over the lines of a shim, and which frames are handled.
//! - `session`: the agent of one chat ([`AgentSession`](crate::AgentSession)): started when it is needed, restarted
//!   after it died.
//! - `client_tools`: the tools of clients, as an MCP server for agents. `quirks`: how programs take a session's setup.
//! - `serve`: files and terminals for agents.
//! - `pool`: all agent processes of a host: their number, their folders, and which may stop.
//! - [`hooks`]: the command that agents with hooks of their own run before a tool call.
//! - `capture`: every frame in a file, for debugging.
//!
//! # When the host ends
//!
//! The agent's process belongs to a shim and works on. Each report names the last frame of the agent that is handled
//! with it ([`FrameCursor`](grove_core::FrameCursor)), and a small file in the shim's folder records the prompt that was
//! sent. The next host attaches to the shim, skips what is stored, and goes on. Commands on the agent's terminals end
//! with the host; the agent is told that they are gone.

pub(crate) mod agent;
#[cfg(test)]
mod arbitrary_updates;
mod capture;
pub mod client_tools;
pub(crate) mod connection;
pub(crate) mod content;
pub(crate) mod elicit;
pub mod hooks;
pub(crate) mod login;
pub(crate) mod map;
pub mod mcp_filter;
mod pool;
mod program;
mod quirks;
mod random;
#[cfg(test)]
mod recorded;
pub(crate) mod serve;
pub(crate) mod session;
pub(crate) mod settings;
pub(crate) mod summary;

pub use agent::{AcpAgent, ListedSession};
pub use login::{AgentProbe, LoginKind, LoginMethod, TerminalLogin};
pub use map::{UpdateError, read_update};
pub use pool::{Documents, NoDocuments, ProcessPool, ProcessPoolOptions, ShimProcess, shim_folder};
pub use program::{AcpProgram, FileScope};
