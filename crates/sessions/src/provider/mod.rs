//! Providers: environments that have sessions. `docs/providers.md` says how to write one.

mod error;
mod events;
pub(crate) mod send;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use grove_core::Timestamp;
use grove_wire::ahp::{ChatInputAnswer, ChatInputResponseKind};
use indexmap::IndexMap;
use tokio::sync::broadcast;

pub use self::error::ProviderError;
pub use self::events::{Announcer, ProviderEvent, SessionReplacement, SessionsChange};
pub use self::send::{
    AttachedContext, AttachedContextKind, MAX_ATTACHMENT_BYTES, MAX_ATTACHMENTS, MAX_QUERY_BYTES, SendError,
    SendOptions, SupportedAttachments,
};
use crate::ids::{BrowseActionId, Icon, ProviderId, SessionId, SessionTypeId, Uri};
use crate::session::{Session, SessionWorkspace};

/// An environment that has sessions: this host, another one, another tool's store, a cloud.
///
/// Methods that are not async answer from memory, at once, and do not call the registry or the management: those call
/// them while they hold their locks.
///
/// Law: a listener that subscribes and then lists always knows the list. So a provider changes its list first, sends
/// the event afterwards, and sends events in the order of the changes.
#[async_trait]
pub trait SessionsProvider: Send + Sync + fmt::Debug {
    /// Its id, unique among the registered ones. The ids of its sessions begin with it.
    fn id(&self) -> &ProviderId;

    /// Its name for people.
    fn label(&self) -> Arc<str>;

    /// Its icon.
    fn icon(&self) -> Icon;

    /// Its position among the others: lower ones first, equal ones in the order of registration.
    fn order(&self) -> i32 {
        0
    }

    /// The environment of its sessions.
    fn environment(&self) -> ProviderEnvironment;

    /// Its reachability. Its sessions stay listed when it is unreachable.
    fn availability(&self) -> Availability {
        Availability::Ready
    }

    /// The time at which its sessions were as listed, if that is not now: it is unreachable, or has not listed them
    /// yet.
    fn seen_at(&self) -> Option<Timestamp> {
        None
    }

    /// The abilities of all its sessions.
    fn capabilities(&self) -> ProviderCapabilities {
        ProviderCapabilities::default()
    }

    /// The session types that it offers now.
    fn session_types(&self) -> Vec<SessionType>;

    /// Its events from now on.
    fn subscribe(&self) -> broadcast::Receiver<ProviderEvent>;

    /// All of its sessions. A new one is listed with its first message, not before.
    fn sessions(&self) -> Vec<Session>;

    /// The browse actions that find a workspace for a new session.
    fn browse_actions(&self) -> Vec<BrowseAction> {
        Vec::new()
    }

    /// Runs a browse action.
    async fn browse(&self, _request: &BrowseRequest) -> Result<BrowseOutcome, ProviderError> {
        Err(self.unsupported("look for folders"))
    }

    /// The workspace of a folder or repository. `None`: it does not belong to this provider.
    async fn resolve_workspace(&self, uri: &Uri) -> Result<Option<SessionWorkspace>, ProviderError>;

    /// Creates a new session that is not listed before its first message. Several may exist at once.
    async fn create_new_session(&self, _workspace: &SessionWorkspace) -> Result<Session, ProviderError> {
        Err(self.unsupported("begin sessions"))
    }

    /// Drops a new session that was not sent. An unknown or sent session is left alone.
    async fn delete_new_session(&self, _session: &SessionId) -> Result<(), ProviderError> {
        Ok(())
    }

    /// The session types that a session can have.
    fn session_types_of(&self, _session: &SessionId) -> Vec<SessionType> {
        self.session_types()
    }

    /// Changes the type of a new session. A sent one keeps its type ([`ProviderError::AlreadySent`]).
    async fn set_session_type(
        &self,
        _session: &SessionId,
        _session_type: &SessionTypeId,
    ) -> Result<Session, ProviderError> {
        Err(self.unsupported("change the type of a session"))
    }

    /// Renames a chat.
    async fn rename_chat(&self, _session: &SessionId, _chat: &Uri, _title: &str) -> Result<(), ProviderError> {
        Err(self.unsupported("rename chats"))
    }

    /// Chooses the model.
    async fn set_model(&self, _session: &SessionId, _model: &str) -> Result<(), ProviderError> {
        Err(self.unsupported("change the model"))
    }

    /// Archives a session.
    async fn archive_session(&self, _session: &SessionId) -> Result<(), ProviderError> {
        Err(self.unsupported("archive sessions"))
    }

    /// Unarchives a session.
    async fn unarchive_session(&self, _session: &SessionId) -> Result<(), ProviderError> {
        Err(self.unsupported("unarchive sessions"))
    }

    /// Deletes a session.
    async fn delete_session(&self, _session: &SessionId) -> Result<(), ProviderError> {
        Err(self.unsupported("delete sessions"))
    }

    /// Deletes a chat, and the session with its last one. `false`: there is no such chat.
    /// [`SessionState::deleting`](crate::session::SessionState::deleting) gives the effect.
    async fn delete_chat(&self, _session: &SessionId, _chat: &Uri) -> Result<bool, ProviderError> {
        Err(self.unsupported("delete chats"))
    }

    /// Marks a session as read or unread.
    async fn set_read(&self, _session: &SessionId, _read: ReadState) -> Result<(), ProviderError> {
        Err(self.unsupported("mark sessions as read"))
    }

    /// Answers a pending request for a person's input ([`SessionState::waiting`](crate::session::SessionState::waiting)).
    async fn answer_request(
        &self,
        _session: &SessionId,
        _request: &str,
        _answer: InputAnswer,
    ) -> Result<(), ProviderError> {
        Err(self.unsupported("answer requests"))
    }

    /// Sends a message in a new chat: the first one of a new session, a further one of any other. Returns the updated
    /// session, which may have replaced the new one.
    async fn send_and_create_chat(
        &self,
        _session: &SessionId,
        _options: SendOptions,
    ) -> Result<Session, ProviderError> {
        Err(self.unsupported("send messages"))
    }

    /// Sends a message in an existing chat.
    async fn send_request(
        &self,
        _session: &SessionId,
        _chat: &Uri,
        _options: SendOptions,
    ) -> Result<Session, ProviderError> {
        Err(self.unsupported("send messages"))
    }

    /// The error for an unsupported action.
    fn unsupported(&self, what: &'static str) -> ProviderError {
        ProviderError::Unsupported { provider: self.label().to_string(), what }
    }
}

/// The environment that a provider's sessions run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderEnvironment {
    /// This host: sessions go on in the background.
    ThisHost,
    /// Another host, by its name.
    OtherHost(Arc<str>),
    /// None: the sessions were left by another tool.
    History,
    /// Machines of a cloud service.
    Cloud,
}

impl ProviderEnvironment {
    /// Returns whether sessions run on a host, this one or another, and go on in the background.
    pub fn is_background(&self) -> bool {
        match self {
            Self::ThisHost | Self::OtherHost(_) => true,
            Self::History | Self::Cloud => false,
        }
    }
}

/// The reachability of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// It is reachable.
    Ready,
    /// A connection is being made.
    Connecting,
    /// It is unreachable.
    Away {
        /// The reason, and the time of the next attempt.
        reason: Arc<str>,
    },
    /// It is reachable, but the versions are incompatible.
    Incompatible {
        /// The versions of both sides, and what to do.
        message: Arc<str>,
    },
}

/// The abilities of all sessions of a provider. Each session has further ones of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProviderCapabilities {
    /// The accepted attachments.
    pub attachments: SupportedAttachments,
}

/// An agent backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionType {
    /// Its id. Several providers may have the same.
    pub id: SessionTypeId,
    /// Its name for people.
    pub label: Arc<str>,
    /// Its icon.
    pub icon: Icon,
}

/// A way to find a workspace, such as "Folders".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowseAction {
    /// Its id within its provider.
    pub id: BrowseActionId,
    /// Its name for people.
    pub label: Arc<str>,
    /// Its icon.
    pub icon: Icon,
    /// Its provider.
    pub provider_id: ProviderId,
}

/// A call of a browse action. A host has no dialogs: the action is called once for its offers and, if the person must
/// choose, again with the choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowseRequest {
    /// The action.
    pub action: BrowseActionId,
    /// The person's choice among the offers.
    pub chosen: Option<Uri>,
    /// The person's text that narrows the offers.
    pub query: Option<String>,
}

/// The result of a browse action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrowseOutcome {
    /// The workspace was chosen.
    Chosen(SessionWorkspace),
    /// The person has to choose.
    Offered(Vec<BrowseOffer>),
    /// There is nothing to choose, or the person cancelled.
    Nothing,
}

/// A place that may be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowseOffer {
    /// The place.
    pub uri: Uri,
    /// Its name for people.
    pub label: Arc<str>,
    /// Distinguishes it from others of that name.
    pub description: Option<Arc<str>>,
}

/// A person's answer to a pending request.
#[derive(Clone, Debug, PartialEq)]
pub enum InputAnswer {
    /// To a permission request.
    Permission {
        /// The tool may run.
        is_approved: bool,
        /// The chosen option.
        option: Option<String>,
    },
    /// To questions.
    Input {
        /// The kind of answer.
        response: ChatInputResponseKind,
        /// The answers by the ids of the questions.
        answers: Option<IndexMap<String, ChatInputAnswer>>,
    },
}

/// The read mark of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadState {
    /// All of it was read.
    Read,
    /// The newest part was not read.
    Unread,
}
