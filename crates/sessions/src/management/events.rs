//! What the management tells.

use std::sync::Arc;

use crate::ids::{ProviderId, SessionId, Uri};
use crate::provider::{SessionReplacement, SessionsChange};
use crate::session::Session;

/// What happened, in the order in which it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionsEvent {
    /// The list of all sessions changed. A listener takes out what was removed first, then puts in the rest.
    Sessions(Arc<SessionsChange>),
    /// A session took another's place; the change of the list follows. Told so that what a view keeps with the old one can
    /// be moved.
    SessionReplacement(SessionReplacement),
    /// Session types may be others, of one folder at least.
    SessionTypes,
    /// A provider can or cannot be reached any more.
    Availability(ProviderId),
    /// Somebody sent something here.
    Sent {
        /// The session as it is afterwards.
        session: Session,
        /// The chat that it went to.
        chat: Uri,
        /// Whether it was the first of the session.
        is_new_session: bool,
    },
    /// Somebody deleted a session here.
    SessionDeleted(SessionId),
    /// Somebody deleted a chat here, and its session stays.
    ChatDeleted {
        /// The session.
        session: SessionId,
        /// The chat.
        chat: Uri,
    },
}
