//! The facade of a session: all that a list or a view needs, whichever provider it comes from.
//!
//! A provider makes a [`SessionSource`] and keeps it: through it alone the session changes. Everybody
//! else has the [`Session`], which is cheap to clone, reads the newest state, and never reaches back to anything.

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
    ChatFileChange, ChatState, FileOperation, Interactivity, Mode, SessionCapabilities, SessionState,
};
pub use self::status::{SessionStatus, StatusBits};
pub use self::title::{UNTITLED, first_title};
pub use self::workspace::{Repository, SessionWorkspace, remote_identity};
use crate::ids::{Icon, Markdown, ProviderId, SessionId, SessionTypeId, Uri};
use crate::metadata::Metadata;
use crate::observable::Observable;

/// What of a session never changes.
#[derive(Clone, Debug)]
pub struct SessionIdentity {
    /// Its id, in which the provider's id stands first.
    pub id: SessionId,
    /// Its URI.
    pub resource: Uri,
    /// Whose session it is.
    pub provider_id: ProviderId,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A session, whichever provider it comes from. It is one channel: properties are projections of its state.
#[derive(Clone)]
pub struct Session {
    identity: Arc<SessionIdentity>,
    state: watch::Receiver<Arc<SessionState>>,
}

/// The provider's end of a session. When it is dropped the session keeps its last state for those who hold it.
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

    /// Whose session it is.
    pub fn provider_id(&self) -> &ProviderId {
        &self.identity.provider_id
    }

    /// When it was made.
    pub fn created_at(&self) -> Timestamp {
        self.identity.created_at
    }

    /// All of it at this moment. Properties read from one state fit together.
    pub fn state(&self) -> Arc<SessionState> {
        self.state.borrow().clone()
    }

    /// A property: its value now, and each value after it.
    pub fn observe<T: PartialEq + Clone>(
        &self,
        project: impl Fn(&SessionState) -> T + Send + Sync + 'static,
    ) -> Observable<T> {
        Observable::new(self.state.clone(), project)
    }

    /// Which agent backend it has.
    pub fn session_type(&self) -> SessionTypeId {
        self.state.borrow().session_type.clone()
    }

    /// How it is drawn.
    pub fn icon(&self) -> Icon {
        self.state.borrow().icon.clone()
    }

    /// Where it works.
    pub fn workspace(&self) -> Option<Arc<SessionWorkspace>> {
        self.state.borrow().workspace.clone()
    }

    /// What is known of where it came from.
    pub fn metadata(&self) -> Arc<Metadata> {
        self.state.borrow().metadata.clone()
    }

    /// What can be done with it.
    pub fn capabilities(&self) -> SessionCapabilities {
        self.state.borrow().capabilities
    }

    /// What it is called.
    pub fn title(&self) -> Arc<str> {
        self.state.borrow().title()
    }

    /// When it last changed.
    pub fn updated_at(&self) -> Timestamp {
        self.state.borrow().updated_at()
    }

    /// What it is doing.
    pub fn status(&self) -> SessionStatus {
        self.state.borrow().status()
    }

    /// The first chat after the main one that failed.
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

    /// Whether it is still being set up.
    pub fn loading(&self) -> bool {
        self.state.borrow().loading()
    }

    /// Whether it was put away.
    pub fn is_archived(&self) -> bool {
        self.state.borrow().is_archived()
    }

    /// Whether all of it was read.
    pub fn is_read(&self) -> bool {
        self.state.borrow().is_read()
    }

    /// What happens in it now.
    pub fn description(&self) -> Option<Markdown> {
        self.state.borrow().description()
    }

    /// When its last turn ended.
    pub fn last_turn_end(&self) -> Option<Timestamp> {
        self.state.borrow().last_turn_end()
    }

    /// What GitHub knows of it.
    pub fn github_info(&self) -> Option<Arc<GitHubInfo>> {
        self.state.borrow().github_info()
    }

    /// Whether something was sent.
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

    /// Whether it changed since this handle last looked with [`Session::look`].
    pub(crate) fn changed_since_look(&self) -> bool {
        self.state.has_changed().unwrap_or(false)
    }

    pub(crate) fn look(&mut self) {
        self.state.mark_unchanged();
    }

    /// Whether its provider still holds its end.
    pub(crate) fn is_held(&self) -> bool {
        self.state.has_changed().is_ok()
    }
}

/// Two are equal when they are the same session and are fed by the same source.
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
    /// A new session's.
    pub fn new(identity: SessionIdentity, state: SessionState) -> Self {
        let (sender, receiver) = watch::channel(Arc::new(state));
        Self { session: Session { identity: Arc::new(identity), state: receiver }, state: sender }
    }

    /// The session, for everybody else.
    pub fn session(&self) -> Session {
        self.session.clone()
    }

    /// Changes the state. Those who look are woken where it differs afterwards, and `true` is given; the provider then tells
    /// that the session changed.
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

    /// Changes one chat. Nothing happens where there is none with this URI.
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
