//! Why something was not done.

use thiserror::Error;

use crate::ids::{ProviderId, SessionId, SessionTypeId, Uri};
use crate::provider::{ProviderError, SendError};
use crate::state_store::StateStoreError;

/// Why something was not done.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ManagementError {
    /// No provider has this id.
    #[error("there is no sessions provider {0}: it may have been taken out; list the providers again")]
    UnknownProvider(String),
    /// No session has this id.
    #[error("there is no session {0}: list the sessions again")]
    UnknownSession(SessionId),
    /// No session has this URI.
    #[error("there is no session at {0}: list the sessions again")]
    UnknownResource(Uri),
    /// The session shows no such chat.
    #[error("session {session} shows no chat {chat}: look at its chats again")]
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
    /// The type of a session is fixed by its first message.
    #[error("session {0} has been sent already, so its type stays: begin a new session for another one")]
    AlreadySent(SessionId),
    /// The session has one chat and no more.
    #[error("session {0} has a single chat: send to that one, or begin a new session")]
    SingleChat(SessionId),
    /// Nothing is sent to what was put away.
    #[error("session {0} is archived: unarchive it before you send")]
    Archived(SessionId),
    /// The main chat holds the others together.
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
    /// No provider knows the folder, or none that does has the type that was asked for.
    #[error("no provider can begin such a session in {0}: choose another folder or another session type")]
    NobodysFolder(Uri),
    /// A person said that the folder is not trusted.
    #[error("{0} is not trusted: nothing is sent there unless you say that it is")]
    Untrusted(Uri),
    /// Nobody said whether the folder is trusted.
    #[error("nobody said whether {0} is trusted: send again and answer")]
    TrustUnanswered(Uri),
    /// A provider gave a session that is not its own by its id.
    #[error(
        "provider {provider} gave session {session}, whose id must begin with {provider}: this is a fault of the provider"
    )]
    ForeignSession {
        /// The provider.
        provider: ProviderId,
        /// The session.
        session: SessionId,
    },
    /// It cannot be sent.
    #[error(transparent)]
    Send(#[from] SendError),
    /// It cannot be kept.
    #[error(transparent)]
    StateStore(#[from] StateStoreError),
    /// The provider did not do it.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}
