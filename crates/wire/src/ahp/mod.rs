//! The Agent Host Protocol, 1.0 and 0.9: the types on the wire.
//!
//! A client subscribes to *channels*, each named by a URI, and holds a copy of each channel's state:
//!
//! | channel | state | actions |
//! |---|---|---|
//! | `ahp-root://` | [`RootState`] | [`RootAction`] |
//! | a session | [`SessionState`] | [`SessionAction`] |
//! | a chat of a session | [`ChatState`] | [`ChatAction`] |
//! | a terminal | [`TerminalState`] | [`TerminalAction`] |
//! | a changeset | [`ChangesetState`] | [`ChangesetAction`] |
//! | a session's annotations | [`AnnotationsState`] | [`AnnotationsAction`] |
//! | a watch on files | [`ResourceWatchState`] | [`ResourceWatchAction`] |
//!
//! Only actions change state. Each comes in an [`ActionEnvelope`] with its channel and its position in the host's
//! order. News that are not state are [`Notification`]s: sent once, never replayed. Everything else is a request
//! ([`Method`]). Automations and canvases are not supported; other channels' mentions of them are kept as plain JSON.
//!
//! # Rules of these types
//!
//! - An unknown key is ignored. An unknown *value* is kept if the protocol leaves the list open: unions and open words
//!   have an `Unknown`, which is written back as it came.
//! - `Unknown` is for unknown tags only. A known tag with a malformed body is an error that names the place.
//! - Absent is not `null`: `None` is not written.
//! - Sequence numbers are `u64`, like every other count that cannot be negative.
//!
//! Modules: [`state`], [`action`], [`reduce`] for the effects of actions on states, [`command`], [`notification`],
//! [`error`], [`version`], and [`schema`] for the frames that a host may send; [`uri`] for the names of channels,
//! [`project`] for the projection of `grove-core`'s state, [`encode`] for its events, and [`decode`] for clients'
//! actions; [`embedded`] for the bytes embedded in a message.

pub(crate) mod macros;

pub mod action;
pub mod command;
pub mod decode;
mod derived_state;
pub mod embedded;
pub mod encode;
pub mod error;
pub mod notification;
pub mod project;
pub mod reduce;
#[cfg(feature = "schema")]
pub mod schema;
pub mod state;
pub mod time;
pub mod uri;
pub mod version;

pub use action::*;
pub use command::*;
pub use derived_state::derive_session;
pub use error::*;
pub use notification::*;
pub use state::*;
pub use version::{NegotiationError, Version, introduced_in, negotiate};

/// The URI of the root channel.
pub const ROOT: &str = "ahp-root://";

/// A URI as text. The protocol compares URIs as text, so they are not parsed here.
pub type Uri = String;

/// A JSON object whose keys the protocol leaves open.
pub type Object = serde_json::Map<String, serde_json::Value>;
