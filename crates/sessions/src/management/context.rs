//! The context keys: facts about the active session, by which clients decide what they offer.

use std::sync::Arc;

use crate::provider::ProviderEnvironment;
use crate::session::Session;

/// The context keys that follow from the active session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextKeys {
    /// The form for a new session is active: no sent session is chosen.
    pub is_new_chat_session: bool,
    /// The session's provider, or empty.
    pub active_session_provider_id: Arc<str>,
    /// Its session type, or empty.
    pub active_session_type: Arc<str>,
    /// It runs on a host, this one or another, and goes on in the background.
    pub is_active_session_background_provider: bool,
    /// It is archived.
    pub is_active_session_archived: bool,
    /// It supports further chats.
    pub active_session_supports_multi_chat: bool,
    /// It works in a git repository.
    pub active_session_has_git_repository: bool,
}

/// The value of a context key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContextValue {
    /// Yes or no.
    Flag(bool),
    /// Text.
    Text(Arc<str>),
}

impl ContextKeys {
    /// The keys of a session, with the environment of its provider if that is registered.
    pub(super) fn of(session: Option<&Session>, environment: Option<ProviderEnvironment>) -> Self {
        let Some(session) = session else { return Self::default() };
        let state = session.state();
        Self {
            is_new_chat_session: !state.was_sent(),
            active_session_provider_id: session.provider_id().as_str().into(),
            active_session_type: state.session_type.as_str().into(),
            is_active_session_background_provider: environment.is_some_and(|environment| environment.is_background()),
            is_active_session_archived: state.is_archived(),
            active_session_supports_multi_chat: state.capabilities.supports_multiple_chats,
            active_session_has_git_repository: state
                .workspace
                .as_ref()
                .is_some_and(|workspace| !workspace.repositories.is_empty()),
        }
    }

    /// All keys, under their names for clients.
    pub fn entries(&self) -> [(&'static str, ContextValue); 7] {
        use ContextValue::{Flag, Text};
        [
            ("isNewChatSession", Flag(self.is_new_chat_session)),
            ("activeSessionProviderId", Text(self.active_session_provider_id.clone())),
            ("activeSessionType", Text(self.active_session_type.clone())),
            ("isActiveSessionBackgroundProvider", Flag(self.is_active_session_background_provider)),
            ("isActiveSessionArchived", Flag(self.is_active_session_archived)),
            ("activeSessionSupportsMultiChat", Flag(self.active_session_supports_multi_chat)),
            ("activeSessionHasGitRepository", Flag(self.active_session_has_git_repository)),
        ]
    }

    /// The value under a name.
    pub fn get(&self, name: &str) -> Option<ContextValue> {
        self.entries().into_iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}

/// The keys without an active session.
impl Default for ContextKeys {
    fn default() -> Self {
        Self {
            is_new_chat_session: true,
            active_session_provider_id: "".into(),
            active_session_type: "".into(),
            is_active_session_background_provider: false,
            is_active_session_archived: false,
            active_session_supports_multi_chat: false,
            active_session_has_git_repository: false,
        }
    }
}

/// The context keys of one row of a list, for its menu.
pub fn row_context(session: &Session) -> [(&'static str, ContextValue); 1] {
    [("chatSessionProviderId", ContextValue::Text(session.provider_id().as_str().into()))]
}
