//! The server for the GitHub Copilot SDK: programs written for the Copilot CLI's server connect here.
//!
//! A `CopilotEndpoint` is one server process to the SDK: a listening address, or a pair of pipes opened for one
//! program. Its connections (`connection.rs`) speak JSON-RPC in `Content-Length` frames, both ways. The `CopilotPeer`
//! of a connection carries out its requests (`dispatch.rs` lists the methods) in the host's own terms: a session of the
//! SDK is a session like any other, with its main chat. Events of a session come from its *feed*: one task for each
//! session that an SDK has open, which translates events for the SDK once for all subscribers.
//!
//! A client may bring its own storage (`storage.rs`). Everything about that applies to its endpoint alone.

pub(crate) mod client_requests;
mod commands;
pub(crate) mod connection;
mod custom_agents;
mod dispatch;
mod elicitation;
mod endpoint;
pub(crate) mod feed;
pub(crate) mod history;
mod hooks;
mod log_in;
mod metadata;
mod model_switch;
mod models;
mod modes;
mod peer;
mod permissions;
mod queue;
mod quick_ack;
pub(crate) mod recent_events;
mod session_catalog;
pub(crate) mod sessions;
mod setup;
pub(crate) mod skills;
mod storage;
mod turns;
pub(crate) mod workspace;

pub(crate) use endpoint::CopilotEndpoint;
pub use endpoint::{EndpointConfig, EndpointSecret};
pub(crate) use feed::Feeds;
pub(crate) use log_in::UnauthenticatedClient;
pub use quick_ack::{QuickAckListener, QuickAckStream};
