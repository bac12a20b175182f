//! The door for the GitHub Copilot SDK: a program that was written for the Copilot CLI's server finds one here.
//!
//! An [`CopilotEndpoint`] is what the SDK takes for one server process: a listening address, or a pair of pipes that was opened
//! for one program. Its connections (`connection.rs`) speak JSON-RPC in `Content-Length` frames, both ways. What a
//! connection asks for is done by its `CopilotPeer`, in the host's own terms: a session of the SDK is a session
//! like any other, with its main chat. What happens in a session is told by its *feed*: one task for each session
//! that an SDK has open, which puts events into the SDK's words once for all who hear them.
//!
//! A client may bring its own storage (`storage.rs`). Everything about that holds for its endpoint alone.

mod connection;
mod endpoint;
mod feed;
mod history;
mod models;
mod peer;
mod permissions;
mod quick_ack;
mod sessions;
mod storage;
mod turns;
mod workspace;

pub(crate) use connection::CopilotConnections;
pub use endpoint::{CopilotEndpoint, EndpointConfig};
pub(crate) use feed::Feeds;
pub use quick_ack::{QuickAckListener, QuickAckStream};
