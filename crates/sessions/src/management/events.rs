//! The events of the management.

use std::sync::Arc;

use crate::ids::{ProviderId, SessionId, Uri};
use crate::provider::{SessionReplacement, SessionsChange};
use crate::session::Session;

/// An event, in the order in which they happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionsEvent {
    /// The list of all sessions changed. A listener applies the removals first, then the rest.
    Sessions(Arc<SessionsChange>),
    /// A session replaced another; the change of the list follows. It lets a client move data that it keeps for the old
    /// one.
    SessionReplacement(SessionReplacement),
    /// Session types may have changed, of one folder at least.
    SessionTypes,
    /// A provider became reachable or unreachable.
    Availability(ProviderId),
    /// A message was sent through this management.
    Sent {
        /// The session as it is afterwards.
        session: Session,
        /// The chat that received it.
        chat: Uri,
        /// Set if it was the first of the session.
        is_new_session: bool,
    },
    /// A session was deleted through this management.
    SessionDeleted(SessionId),
    /// A chat was deleted through this management, and its session stays.
    ChatDeleted {
        /// The session.
        session: SessionId,
        /// The chat.
        chat: Uri,
    },
}
