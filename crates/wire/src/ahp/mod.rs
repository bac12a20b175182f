//! The Agent Host Protocol, 1.0 and 0.9: the shapes on the wire.
//!
//! A client subscribes to *channels*, each named by a URI, and holds a copy of the state behind every one of them:
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
//! State changes by actions alone. Each travels in an [`ActionEnvelope`] that says which channel it is for and which
//! place it has in the host's order. What is no state is a [`Notification`]: told once, never replayed. Everything else
//! is a request ([`Method`]). Automations and canvases are not spoken; where another channel mentions them, they are
//! carried as plain JSON.
//!
//! # Rules of these types
//!
//! - A key that this build does not know is ignored. A *value* that it does not know is kept where the protocol leaves
//!   the list open: unions and open words have an `Unknown`, which is written back as it came.
//! - `Unknown` is for unknown tags only. A known tag with a malformed body is an error that says where.
//! - Absent is not `null`: what is `None` is not written.
//! - Sequence numbers are `u64`, and so is every other count that cannot be negative.
//!
//! Modules: [`state`], [`action`], [`reduce`], which says what actions do to states, [`command`], [`notification`],
//! [`error`], [`version`], and [`schema`], which says what a host may send; [`uri`] for the names of channels,
//! [`project`] for how `grove-core`'s state looks here, [`encode`] for its events, and [`decode`] for what a client's
//! action asks of it; [`embedded`] for the bytes that come with a message.

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

/// The URI of the root channel: there is exactly one.
pub const ROOT: &str = "ahp-root://";

/// A URI as it is written. The protocol compares URIs as text, so nothing here takes one apart.
pub type Uri = String;

/// A JSON object whose keys the protocol leaves open.
pub type Object = serde_json::Map<String, serde_json::Value>;
