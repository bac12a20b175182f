//! What the GitHub Copilot SDK speaks with a host: JSON-RPC in frames of its own, protocol version 3.
//!
//! A client opens sessions by name, sends prompts, and hears of everything else as *events*: one linear list for each
//! session, of which a part is kept (and can be read again) and a part is said once (*ephemeral*). Questions go out as
//! events as well; whoever answers first answers for all.
//!
//! - [`framing`]: how a message is cut out of a stream of bytes.
//! - [`methods`]: requests and notifications of both sides, with what they carry; [`error`] for how calls fail.
//! - [`events`]: the events and their envelope.
//! - [`project`]: how `grove-core`'s state looks as events, live ([`project::Projector`]) and read again
//!   ([`project::history`]), and where an event stands ([`project::locate`]).
//! - [`decode`]: what a client's answers and prompts ask of `grove-core`.
//!
//! # Rules of these types
//!
//! - Names change from one release of the SDK to the next. A key that this build does not know is ignored, and what may
//!   be absent is optional.
//! - Only what a finished turn still knows is kept: what a person was asked, what a call put out while it ran and how
//!   settings changed are ephemeral here, because nobody could read them again.

pub mod decode;
pub mod error;
pub mod events;
pub mod framing;
pub mod methods;
pub mod project;

pub use events::{Event, EventData, EventId};

/// The version of the protocol. The SDK refuses any other.
pub const PROTOCOL_VERSION: u64 = 3;

/// A JSON object whose keys the protocol leaves open.
pub type Object = serde_json::Map<String, serde_json::Value>;
