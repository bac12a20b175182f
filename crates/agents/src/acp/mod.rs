//! Agents that speak the Agent Client Protocol, version 1: any program that does so on its stdio.
//!
//! # How it is laid out
//!
//! Pure translation, between the protocol's types and ours:
//! - `map`: what an agent says (`session/update`, permission requests, how a turn ended) as
//!   [`AgentEvent`](crate::AgentEvent)s.
//! - `settings`: an agent's modes, models and configuration options as settings of a session, and back.
//! - `content`: a person's message as the protocol's content, and a conversation retold to an agent that forgot it.
//! - `elicit`: an agent's questions to a person, and the answers.
//!
//! What talks and lives:
//! - `connection`: JSON-RPC over the lines of a shim; which frames are dealt with.
//! - `session`: one chat's agent ([`AgentSession`](crate::AgentSession)): started when it is needed, brought back when it
//!   died.
//! - `serve`: what an agent may ask of us: files, terminals.
//! - `pool`: all processes of a host: how many, where, and which may stop.
//! - `capture`: every frame in a file, for those who look for a mistake.
//!
//! # What happens when the host ends
//!
//! The agent's process belongs to a shim and works on. Each report says up to which of the agent's frames it is dealt
//! with ([`FrameCursor`](crate::FrameCursor)), and a small file in the shim's folder says which prompt was sent when. The next host
//! attaches to the shim, skips what is stored, and goes on. Commands on terminals that the agent asked us for end with
//! the host; the agent is told that they are gone.

mod agent;
#[cfg(test)]
mod arbitrary_updates;
mod capture;
mod connection;
pub(crate) mod content;
pub(crate) mod elicit;
pub(crate) mod map;
mod pool;
mod program;
mod random;
#[cfg(test)]
mod recorded;
mod serve;
mod session;
pub(crate) mod settings;
mod summary;

pub use agent::{AcpAgent, ListedSession};
pub use map::{UpdateError, read_update};
pub use pool::{Documents, NoDocuments, ProcessPool, ProcessPoolOptions, shim_folder};
pub use program::AcpProgram;
