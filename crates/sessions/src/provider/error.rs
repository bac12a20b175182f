//! Why a provider did not do something.

use thiserror::Error;

use crate::ids::{BrowseActionId, SessionId, SessionTypeId, Uri};

/// Why a provider did not do something.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// Sessions of this kind cannot do that.
    #[error("{provider} cannot {what}")]
    Unsupported {
        /// The provider's label.
        provider: String,
        /// What was asked for, as it stands after "cannot".
        what: &'static str,
    },
    /// It has no such session.
    #[error("there is no session {0}: list the sessions again")]
    UnknownSession(SessionId),
    /// The session has no such chat.
    #[error("session {session} has no chat {chat}: look at its chats again")]
    UnknownChat {
        /// The session.
        session: SessionId,
        /// The chat.
        chat: Uri,
    },
    /// It has no such session type.
    #[error("there is no session type {0} here: choose one of those that are offered")]
    UnknownSessionType(SessionTypeId),
    /// It has no such browse action.
    #[error("{provider} has no browse action {action}: choose one of those that are offered")]
    UnknownBrowseAction {
        /// The provider's label.
        provider: String,
        /// The action that was asked for.
        action: BrowseActionId,
    },
    /// The type of a session is fixed by its first message.
    #[error("session {0} has been sent already, so its type stays: begin a new session for another one")]
    AlreadySent(SessionId),
    /// What the sessions lie on cannot be reached.
    #[error("{provider} cannot be reached: {reason}")]
    Away {
        /// The provider's label.
        provider: String,
        /// Why, and when it is tried again.
        reason: String,
    },
    /// It was asked and said no.
    #[error("{0}")]
    Refused(String),
    /// Something went wrong below.
    #[error("{what} failed: {source}")]
    Failed {
        /// What was done.
        what: &'static str,
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
