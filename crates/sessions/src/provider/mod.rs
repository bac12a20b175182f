//! What a provider is: an environment that has sessions. `docs/providers.md` says how to write one.

mod error;
mod events;
mod send;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use grove_core::Timestamp;
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
/// What is not async answers from memory, at once, and calls nothing of the registry or the management: those call it
/// while they hold their lists.
///
/// Law: whoever subscribes and then lists knows the list for good. So a provider changes its list first, tells of it
/// afterwards, and tells in the order in which the list changed.
#[async_trait]
pub trait SessionsProvider: Send + Sync + fmt::Debug {
    /// Its id, unique among the registered ones. The ids of its sessions begin with it.
    fn id(&self) -> &ProviderId;

    /// What people call it.
    fn label(&self) -> Arc<str>;

    /// How it is drawn.
    fn icon(&self) -> Icon;

    /// Where it stands among the others: lower ones first, equal ones as they were registered.
    fn order(&self) -> i32 {
        0
    }

    /// What its sessions run on.
    fn environment(&self) -> ProviderEnvironment;

    /// Whether it can be reached now. Its sessions stay listed when it cannot.
    fn availability(&self) -> Availability {
        Availability::Ready
    }

    /// When its sessions were as they are listed, where that is not now: it cannot be reached, or has not listed them yet.
    fn seen_at(&self) -> Option<Timestamp> {
        None
    }

    /// What can be done with all of its sessions.
    fn capabilities(&self) -> ProviderCapabilities {
        ProviderCapabilities::default()
    }

    /// The session types that it offers now.
    fn session_types(&self) -> Vec<SessionType>;

    /// What it tells from now on.
    fn subscribe(&self) -> broadcast::Receiver<ProviderEvent>;

    /// All of its sessions. A new one enters with its first message, not before.
    fn sessions(&self) -> Vec<Session>;

    /// The ways in which a workspace for a new session can be looked for.
    fn browse_actions(&self) -> Vec<BrowseAction> {
        Vec::new()
    }

    /// Runs a browse action.
    async fn browse(&self, _request: &BrowseRequest) -> Result<BrowseOutcome, ProviderError> {
        Err(self.unsupported("look for folders"))
    }

    /// The workspace that a folder or repository is. `None`: it is not one of this provider's.
    async fn resolve_workspace(&self, uri: &Uri) -> Result<Option<SessionWorkspace>, ProviderError>;

    /// Makes a new session that is not listed before its first message. Several may wait at once.
    async fn create_new_session(&self, _workspace: &SessionWorkspace) -> Result<Session, ProviderError> {
        Err(self.unsupported("begin sessions"))
    }

    /// Forgets a new session that was not sent. One that is unknown or was sent is left alone.
    async fn delete_new_session(&self, _session: &SessionId) -> Result<(), ProviderError> {
        Ok(())
    }

    /// The session types that a session can have.
    fn session_types_of(&self, _session: &SessionId) -> Vec<SessionType> {
        self.session_types()
    }

    /// Gives a new session another type. One that was sent keeps its own ([`ProviderError::AlreadySent`]).
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

    /// Puts a session away.
    async fn archive_session(&self, _session: &SessionId) -> Result<(), ProviderError> {
        Err(self.unsupported("archive sessions"))
    }

    /// Takes a session out again.
    async fn unarchive_session(&self, _session: &SessionId) -> Result<(), ProviderError> {
        Err(self.unsupported("unarchive sessions"))
    }

    /// Deletes a session.
    async fn delete_session(&self, _session: &SessionId) -> Result<(), ProviderError> {
        Err(self.unsupported("delete sessions"))
    }

    /// Deletes a chat, and the session with its last one. `false`: there is no such chat.
    /// [`SessionState::deleting`](crate::session::SessionState::deleting) says what it comes to.
    async fn delete_chat(&self, _session: &SessionId, _chat: &Uri) -> Result<bool, ProviderError> {
        Err(self.unsupported("delete chats"))
    }

    /// Marks a session as read or unread.
    async fn set_read(&self, _session: &SessionId, _read: ReadState) -> Result<(), ProviderError> {
        Err(self.unsupported("mark sessions as read"))
    }

    /// Sends a message in a new chat: the first one of a new session, a further one of any other. Gives the session as it
    /// is afterwards, which may have taken the new one's place.
    async fn send_and_create_chat(
        &self,
        _session: &SessionId,
        _options: SendOptions,
    ) -> Result<Session, ProviderError> {
        Err(self.unsupported("send messages"))
    }

    /// Sends a message in a chat that is there.
    async fn send_request(
        &self,
        _session: &SessionId,
        _chat: &Uri,
        _options: SendOptions,
    ) -> Result<Session, ProviderError> {
        Err(self.unsupported("send messages"))
    }

    /// The error of something that it does not do.
    fn unsupported(&self, what: &'static str) -> ProviderError {
        ProviderError::Unsupported { provider: self.label().to_string(), what }
    }
}

/// What the sessions of a provider run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderEnvironment {
    /// This host: sessions go on in the background.
    ThisHost,
    /// Another host, by its name.
    OtherHost(Arc<str>),
    /// Nothing: they are what another tool left.
    History,
    /// Somebody else's machines.
    Cloud,
}

impl ProviderEnvironment {
    /// Whether sessions run on a host, this one or another, and go on when nobody looks.
    pub fn is_background(&self) -> bool {
        match self {
            Self::ThisHost | Self::OtherHost(_) => true,
            Self::History | Self::Cloud => false,
        }
    }
}

/// Whether a provider can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// It can.
    Ready,
    /// It is being tried.
    Connecting,
    /// It cannot.
    Away {
        /// Why, and when it is tried again.
        reason: Arc<str>,
    },
    /// It can, but the two do not understand each other.
    Incompatible {
        /// Which versions each has, and what to do.
        message: Arc<str>,
    },
}

/// What can be done with all sessions of a provider. What differs between them is said by each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProviderCapabilities {
    /// Which attachments are taken.
    pub attachments: SupportedAttachments,
}

/// An agent backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionType {
    /// Its id. Several providers may have the same.
    pub id: SessionTypeId,
    /// What people call it.
    pub label: Arc<str>,
    /// How it is drawn.
    pub icon: Icon,
}

/// A way in which a workspace can be looked for, such as "Folders".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowseAction {
    /// Its id within its provider.
    pub id: BrowseActionId,
    /// What people call it.
    pub label: Arc<str>,
    /// How it is drawn.
    pub icon: Icon,
    /// Whose it is.
    pub provider_id: ProviderId,
}

/// A browse action that is run. A host has no dialogs: the action is run once for what it offers and, where the person must
/// choose, again with the choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowseRequest {
    /// The action.
    pub action: BrowseActionId,
    /// What the person has chosen of what was offered.
    pub chosen: Option<Uri>,
    /// What the person has typed to narrow it down.
    pub query: Option<String>,
}

/// What came of a browse action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrowseOutcome {
    /// The workspace was chosen.
    Chosen(SessionWorkspace),
    /// The person is to choose.
    Offered(Vec<BrowseOffer>),
    /// There is nothing to choose, or the person did not want to.
    Nothing,
}

/// A place that may be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowseOffer {
    /// The place.
    pub uri: Uri,
    /// What people call it.
    pub label: Arc<str>,
    /// What tells it from others of that name.
    pub description: Option<Arc<str>>,
}

/// Whether a session was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadState {
    /// All of it was.
    Read,
    /// The newest was not.
    Unread,
}
