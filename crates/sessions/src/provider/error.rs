//! The errors of providers.

use thiserror::Error;

use crate::ids::{BrowseActionId, SessionId, SessionTypeId, Uri};

/// The reason why a provider failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// Sessions of this kind do not support that.
    #[error("{provider} cannot {what}")]
    Unsupported {
        /// The provider's label.
        provider: String,
        /// The requested action, as it is written after "cannot".
        what: &'static str,
    },
    /// It has no such session.
    #[error("there is no session {0}: list the sessions again")]
    UnknownSession(SessionId),
    /// The session has no such chat.
    #[error("session {session} has no chat {chat}: list its chats again")]
    UnknownChat {
        /// The session.
        session: SessionId,
        /// The chat.
        chat: Uri,
    },
    /// It has no such session type.
    #[error("no session type {0}: choose one of those that are offered")]
    UnknownSessionType(SessionTypeId),
    /// It has no such browse action.
    #[error("{provider} has no browse action {action}: choose one of those that are offered")]
    UnknownBrowseAction {
        /// The provider's label.
        provider: String,
        /// The requested action.
        action: BrowseActionId,
    },
    /// The first message fixes the type of a session.
    #[error("session {0} has been sent already, so its type stays: begin a new session for another one")]
    AlreadySent(SessionId),
    /// The provider's environment cannot be reached.
    #[error("{provider} cannot be reached: {reason}")]
    Away {
        /// The provider's label.
        provider: String,
        /// The reason, and the time of the next attempt.
        reason: String,
    },
    /// The request was refused.
    #[error("{0}")]
    Refused(String),
    /// A lower layer failed.
    #[error("{what} failed: {source}")]
    Failed {
        /// The action.
        what: &'static str,
        /// Its error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
