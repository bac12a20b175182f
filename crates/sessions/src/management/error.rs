//! The errors of the management.

use thiserror::Error;

use crate::ids::{ProviderId, SessionId, SessionTypeId, Uri};
use crate::provider::{ProviderError, SendError};
use crate::state_store::StateStoreError;

/// The reason why an action failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ManagementError {
    /// No provider has this id.
    #[error("no sessions provider {0}: it may have been unregistered; list the providers again")]
    UnknownProvider(String),
    /// No session has this id.
    #[error("there is no session {0}: list the sessions again")]
    UnknownSession(SessionId),
    /// No session has this URI.
    #[error("there is no session at {0}: list the sessions again")]
    UnknownResource(Uri),
    /// The session shows no such chat.
    #[error("session {session} has no visible chat {chat}: list its chats again")]
    UnknownChat {
        /// The session.
        session: SessionId,
        /// The chat.
        chat: Uri,
    },
    /// The session cannot have this type.
    #[error("session {session} cannot have the type {session_type}: choose one of those that are offered for it")]
    UnknownSessionType {
        /// The session.
        session: SessionId,
        /// The type.
        session_type: SessionTypeId,
    },
    /// The first message fixes the type of a session.
    #[error("session {0} has been sent already, so its type stays: begin a new session for another one")]
    AlreadySent(SessionId),
    /// The session supports only one chat.
    #[error("session {0} has a single chat: send to that one, or begin a new session")]
    SingleChat(SessionId),
    /// An archived session accepts no messages.
    #[error("session {0} is archived: unarchive it before you send")]
    Archived(SessionId),
    /// The other chats depend on the main chat.
    #[error("the main chat of session {0} stays while there are others: delete those first, or the whole session")]
    MainChat(SessionId),
    /// The chosen provider does not know the folder.
    #[error("provider {provider} cannot work in {folder}: choose another provider or another folder")]
    NotItsFolder {
        /// The provider.
        provider: ProviderId,
        /// The folder.
        folder: Uri,
    },
    /// No provider knows the folder, or none that does has the requested type.
    #[error("no provider can begin such a session in {0}: choose another folder or another session type")]
    NobodysFolder(Uri),
    /// A person refused to trust the folder.
    #[error("{0} is not trusted: trust it before you send")]
    Untrusted(Uri),
    /// Nobody answered whether the folder is trusted.
    #[error("the question whether {0} is trusted was not answered: send again and answer")]
    TrustUnanswered(Uri),
    /// A provider returned a session whose id belongs to another provider.
    #[error(
        "provider {provider} returned session {session}, whose id must begin with {provider}: a bug of the provider"
    )]
    ForeignSession {
        /// The provider.
        provider: ProviderId,
        /// The session.
        session: SessionId,
    },
    /// The message is invalid.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The state store failed.
    #[error(transparent)]
    StateStore(#[from] StateStoreError),
    /// The provider failed.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}
