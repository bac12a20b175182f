//! The facade of a chat.

use std::fmt;
use std::sync::Arc;

use grove_core::Timestamp;
use tokio::sync::watch;

use super::github::GitHubInfo;
use super::state::{ChatFileChange, ChatState, Interactivity, Mode, SessionState};
use super::status::SessionStatus;
use crate::ids::{Markdown, Uri};
use crate::observable::Observable;

/// A chat of a session. It is a projection of the session's channel. A deleted chat keeps the state that it had when
/// the handle was made.
#[derive(Clone)]
pub struct Chat {
    session: watch::Receiver<Arc<SessionState>>,
    known: Arc<ChatState>,
}

impl Chat {
    pub(super) fn new(session: watch::Receiver<Arc<SessionState>>, known: Arc<ChatState>) -> Self {
        Self { session, known }
    }

    /// Its URI.
    pub fn resource(&self) -> &Uri {
        &self.known.resource
    }

    /// The time of its creation.
    pub fn created_at(&self) -> Timestamp {
        self.known.created_at
    }

    /// Its whole present state.
    pub fn state(&self) -> Arc<ChatState> {
        self.session.borrow().chat(&self.known.resource).unwrap_or(&self.known).clone()
    }

    /// Returns whether it still belongs to its session.
    pub fn exists(&self) -> bool {
        self.session.borrow().chat(&self.known.resource).is_some()
    }

    /// A property: its present value, and each later one.
    pub fn observe<T: PartialEq + Clone>(
        &self,
        project: impl Fn(&ChatState) -> T + Send + Sync + 'static,
    ) -> Observable<T> {
        let resource = self.known.resource.clone();
        let first = project(&self.known);
        Observable::of_part(self.session.clone(), first, move |state| state.chat(&resource).map(|chat| project(chat)))
    }

    /// Its title.
    pub fn title(&self) -> Arc<str> {
        self.state().title.clone()
    }

    /// The time of its last change.
    pub fn updated_at(&self) -> Timestamp {
        self.state().updated_at
    }

    /// Its status.
    pub fn status(&self) -> SessionStatus {
        self.state().status
    }

    /// The files that it changed.
    pub fn changes(&self) -> Arc<[ChatFileChange]> {
        self.state().changes.clone()
    }

    /// The chosen model.
    pub fn model_id(&self) -> Option<Arc<str>> {
        self.state().model_id.clone()
    }

    /// The chosen mode.
    pub fn mode(&self) -> Option<Mode> {
        self.state().mode.clone()
    }

    /// Returns whether it is still being set up.
    pub fn loading(&self) -> bool {
        self.state().loading
    }

    /// Returns whether it is archived.
    pub fn is_archived(&self) -> bool {
        self.state().is_archived
    }

    /// Returns whether a person has read its newest part.
    pub fn is_read(&self) -> bool {
        self.state().is_read
    }

    /// Its present activity.
    pub fn description(&self) -> Option<Markdown> {
        self.state().description.clone()
    }

    /// The time when its last turn ended.
    pub fn last_turn_end(&self) -> Option<Timestamp> {
        self.state().last_turn_end
    }

    /// Its GitHub information.
    pub fn github_info(&self) -> Option<Arc<GitHubInfo>> {
        self.state().github_info.clone()
    }

    /// The actions that a person may take on it, in its session.
    pub fn interactivity(&self) -> Interactivity {
        let session = self.session.borrow();
        session.interactivity(session.chat(&self.known.resource).unwrap_or(&self.known))
    }
}

impl fmt::Debug for Chat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Chat").field(self.resource()).finish()
    }
}
