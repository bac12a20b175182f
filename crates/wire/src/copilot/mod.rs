//! The protocol between the GitHub Copilot SDK and a host: JSON-RPC in frames of its own, protocol version 3.
//!
//! A client opens sessions by id, sends prompts, and gets everything else as *events*: one linear list for each
//! session. Some events are persisted (and can be read again), others are sent once (*ephemeral*). Questions are sent
//! as events as well; the first answer counts.
//!
//! - [`framing`]: splits a stream of bytes into messages.
//! - [`methods`]: requests and notifications of both sides with their data; [`error`]: errors of calls.
//! - [`events`]: the events and their envelope.
//! - [`project`]: `grove-core`'s state as events, live ([`project::Projector`]) and read again ([`project::history`]),
//!   and the position of an event ([`project::locate`]).
//! - [`hooks`]: the calls of a client's hooks, their inputs and outputs.
//! - [`surface`]: the table of everything that the SDK declares: served, absent, refused.
//! - [`import`]: reads a log that the Copilot CLI wrote.
//! - [`decode`]: converts clients' answers and prompts for `grove-core`.
//!
//! # Rules of these types
//!
//! - Names change from one release of the SDK to the next. An unknown key is ignored, and optional members may be
//!   absent.
//! - Only events that a finished turn can still produce are persisted: questions to a person, output of running calls
//!   and changes of settings are ephemeral here, because they could not be read again.

pub mod decode;
pub mod error;
pub mod events;
pub mod framing;
pub mod hooks;
pub mod import;
pub mod methods;
pub mod project;
pub mod surface;

pub use events::{Event, EventData, EventId};

/// The version of the protocol. The SDK refuses any other.
pub const PROTOCOL_VERSION: u64 = 3;

/// A JSON object whose keys the protocol leaves open.
pub type Object = serde_json::Map<String, serde_json::Value>;
