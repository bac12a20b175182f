//! The facade of a session: everything that a list or a view needs, whatever its provider.
//!
//! A provider creates a [`SessionSource`] and keeps it: only through it the session changes. Everybody else has the
//! [`Session`], which is cheap to clone, reads the newest state, and changes nothing.

mod chat;
mod derive;
mod github;
mod state;
mod status;
mod title;
mod workspace;

use std::fmt;
use std::sync::Arc;

use grove_core::Timestamp;
use tokio::sync::watch;

pub use self::chat::Chat;
pub use self::derive::ChatDeletion;
pub use self::github::{GitHubInfo, PullRequest};
pub use self::state::{
    ChatFileChange, ChatState, FileOperation, InputRequest, Interactivity, Mode, SessionCapabilities, SessionState,
};
pub use self::status::{SessionStatus, StatusBits};
pub use self::title::{UNTITLED, first_title};
pub use self::workspace::{Repository, SessionWorkspace, remote_identity};
use crate::ids::{Icon, Markdown, ProviderId, SessionId, SessionTypeId, Uri};
use crate::metadata::Metadata;
use crate::observable::Observable;

/// The constant properties of a session.
#[derive(Clone, Debug)]
pub struct SessionIdentity {
    /// Its id, which begins with the provider's id.
    pub id: SessionId,
    /// Its URI.
    pub resource: Uri,
    /// Its provider.
    pub provider_id: ProviderId,
    /// The time of its creation.
    pub created_at: Timestamp,
}

/// A session of any provider. It is one channel: properties are projections of its state.
#[derive(Clone)]
pub struct Session {
    identity: Arc<SessionIdentity>,
    state: watch::Receiver<Arc<SessionState>>,
}

/// The provider's end of a session. When it is dropped, the session keeps its last state for its holders.
pub struct SessionSource {
    session: Session,
    state: watch::Sender<Arc<SessionState>>,
}

impl Session {
    /// Its id, unique over all providers.
    pub fn id(&self) -> &SessionId {
        &self.identity.id
    }

    /// Its URI.
    pub fn resource(&self) -> &Uri {
        &self.identity.resource
    }

    /// Its provider.
    pub fn provider_id(&self) -> &ProviderId {
        &self.identity.provider_id
    }

    /// The time of its creation.
    pub fn created_at(&self) -> Timestamp {
        self.identity.created_at
    }

    /// Its whole present state. Properties read from one state are consistent.
    pub fn state(&self) -> Arc<SessionState> {
        self.state.borrow().clone()
    }

    /// A property: its present value, and each later one.
    pub fn observe<T: PartialEq + Clone>(
        &self,
        project: impl Fn(&SessionState) -> T + Send + Sync + 'static,
    ) -> Observable<T> {
        Observable::new(self.state.clone(), project)
    }

    /// Its agent backend.
    pub fn session_type(&self) -> SessionTypeId {
        self.state.borrow().session_type.clone()
    }

    /// Its icon.
    pub fn icon(&self) -> Icon {
        self.state.borrow().icon.clone()
    }

    /// Its workspace.
    pub fn workspace(&self) -> Option<Arc<SessionWorkspace>> {
        self.state.borrow().workspace.clone()
    }

    /// The metadata of its origin.
    pub fn metadata(&self) -> Arc<Metadata> {
        self.state.borrow().metadata.clone()
    }

    /// Its abilities.
    pub fn capabilities(&self) -> SessionCapabilities {
        self.state.borrow().capabilities
    }

    /// Its title.
    pub fn title(&self) -> Arc<str> {
        self.state.borrow().title()
    }

    /// The time of its last change.
    pub fn updated_at(&self) -> Timestamp {
        self.state.borrow().updated_at()
    }

    /// Its status.
    pub fn status(&self) -> SessionStatus {
        self.state.borrow().status()
    }

    /// The first failed chat after the main one.
    pub fn chat_error(&self) -> Option<Uri> {
        self.state.borrow().chat_error()
    }

    /// The files that it changed.
    pub fn changes(&self) -> Arc<[ChatFileChange]> {
        self.state.borrow().changes()
    }

    /// The chosen model.
    pub fn model_id(&self) -> Option<Arc<str>> {
        self.state.borrow().model_id()
    }

    /// The chosen mode.
    pub fn mode(&self) -> Option<Mode> {
        self.state.borrow().mode()
    }

    /// Returns whether it is still being set up.
    pub fn loading(&self) -> bool {
        self.state.borrow().loading()
    }

    /// Returns whether it is archived.
    pub fn is_archived(&self) -> bool {
        self.state.borrow().is_archived()
    }

    /// Returns whether all of it was read.
    pub fn is_read(&self) -> bool {
        self.state.borrow().is_read()
    }

    /// Its present activity.
    pub fn description(&self) -> Option<Markdown> {
        self.state.borrow().description()
    }

    /// The time when its last turn ended.
    pub fn last_turn_end(&self) -> Option<Timestamp> {
        self.state.borrow().last_turn_end()
    }

    /// Its GitHub information.
    pub fn github_info(&self) -> Option<Arc<GitHubInfo>> {
        self.state.borrow().github_info()
    }

    /// Returns whether something was sent.
    pub fn was_sent(&self) -> bool {
        self.state.borrow().was_sent()
    }

    /// Its chats, the main one first.
    pub fn chats(&self) -> Vec<Chat> {
        let state = self.state();
        state.chats().map(|chat| Chat::new(self.state.clone(), chat.clone())).collect()
    }

    /// Its first chat.
    pub fn main_chat(&self) -> Chat {
        Chat::new(self.state.clone(), self.state().main_chat.clone())
    }

    /// The chat with a URI.
    pub fn chat(&self, resource: &Uri) -> Option<Chat> {
        let chat = self.state().chat(resource)?.clone();
        Some(Chat::new(self.state.clone(), chat))
    }

    pub(crate) fn receiver(&self) -> watch::Receiver<Arc<SessionState>> {
        self.state.clone()
    }

    /// Returns whether it changed since this handle's last [`Session::look`].
    pub(crate) fn changed_since_look(&self) -> bool {
        self.state.has_changed().unwrap_or(false)
    }

    pub(crate) fn look(&mut self) {
        self.state.mark_unchanged();
    }

    /// Returns whether its provider still holds its source.
    pub(crate) fn is_held(&self) -> bool {
        self.state.has_changed().is_ok()
    }
}

/// Two are equal if they are the same session and have the same source.
impl PartialEq for Session {
    fn eq(&self, other: &Self) -> bool {
        self.identity.id == other.identity.id && self.state.same_channel(&other.state)
    }
}

impl Eq for Session {}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Session").field(self.id()).finish()
    }
}

impl SessionSource {
    /// The source of a new session.
    pub fn new(identity: SessionIdentity, state: SessionState) -> Self {
        let (sender, receiver) = watch::channel(Arc::new(state));
        Self { session: Session { identity: Arc::new(identity), state: receiver }, state: sender }
    }

    /// The session, for everybody else.
    pub fn session(&self) -> Session {
        self.session.clone()
    }

    /// Changes the state. If it differs afterwards, observers are woken and the result is `true`; the provider then
    /// announces the change.
    pub fn update(&self, change: impl FnOnce(&mut SessionState)) -> bool {
        self.state.send_if_modified(|state| {
            let mut next = SessionState::clone(state);
            change(&mut next);
            let differs = **state != next;
            if differs {
                *state = Arc::new(next);
            }
            differs
        })
    }

    /// Changes the main chat.
    pub fn update_main_chat(&self, change: impl FnOnce(&mut ChatState)) -> bool {
        self.update(|state| change(Arc::make_mut(&mut state.main_chat)))
    }

    /// Changes one chat, if there is one with this URI.
    pub fn update_chat(&self, resource: &Uri, change: impl FnOnce(&mut ChatState)) -> bool {
        self.update(|state| {
            let mut chats = std::iter::once(&mut state.main_chat).chain(&mut state.more_chats);
            if let Some(chat) = chats.find(|chat| &chat.resource == resource) {
                change(Arc::make_mut(chat));
            }
        })
    }
}

impl fmt::Debug for SessionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionSource").field(self.session.id()).finish()
    }
}
