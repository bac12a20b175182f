//! Choosing the active session, chat and provider.

use super::view::ActiveSession;
use super::{Management, ManagementError};
use crate::ids::{ProviderId, SessionId, Uri};
use crate::session::{Interactivity, Session};
use crate::state_store::{LastChat, StateChange};

impl Management {
    /// The active session, with its chat. `None`: the form for a new one.
    pub fn active_session(&self) -> Option<ActiveSession> {
        self.view().active_session.clone()
    }

    /// The provider for new sessions: the chosen one while it is registered, else the first.
    pub fn active_provider_id(&self) -> Option<ProviderId> {
        self.view().active_provider_id.clone()
    }

    /// Chooses the provider for new sessions.
    pub fn set_active_provider(&self, id: &ProviderId) -> Result<(), ManagementError> {
        self.provider(id.as_str())?;
        self.shared.remember(StateChange::ActiveProvider(id.clone()))?;
        self.select(|_| ());
        Ok(())
    }

    /// Makes a session active, with its last open chat, else the first.
    pub fn open_session(&self, resource: &Uri) -> Result<Session, ManagementError> {
        let session = self.session(resource).ok_or_else(|| ManagementError::UnknownResource(resource.clone()))?;
        self.open(&session, None);
        Ok(session)
    }

    /// Makes a chat of a session active.
    pub fn open_chat(&self, session: &SessionId, chat: &Uri) -> Result<(), ManagementError> {
        let (session, _) = self.route(session)?;
        let state = session.state();
        match state.chat(chat) {
            Some(known) if known.interactivity != Interactivity::Hidden => {}
            _ => return Err(ManagementError::UnknownChat { session: session.id().clone(), chat: chat.clone() }),
        }
        self.open(&session, Some(chat.clone()));
        Ok(())
    }

    /// Shows the form for a new session, with the draft if there is one.
    pub fn open_new_session_view(&self) {
        self.select(|selection| selection.open_new());
    }

    /// Makes the session active that was last open, by any viewer, if it is listed and no other is active. `None` if
    /// not: its provider may come later. An archived session is not opened.
    pub fn restore(&self) -> Option<Session> {
        if self.active_session().is_some() {
            return None;
        }
        let last = self.shared.persistent_state(|persistent_state| persistent_state.last_session.clone())?;
        let session = self.session_by_id(&last).filter(|session| !session.is_archived())?;
        self.open(&session, None);
        Some(session)
    }

    fn open(&self, session: &Session, chat: Option<Uri>) {
        let last = self.shared.persistent_state(|persistent_state| persistent_state.last_chat(session.id()).cloned());
        // The last open chat may be gone; then it is the first, as in a session never opened.
        let last = last.filter(|last| session.state().visible_chats().any(|chat| &chat.resource == last));
        let known = self.select(|selection| {
            let known = selection.active() == Some(session);
            let first = if known { None } else { last };
            selection.open(session.clone(), chat.clone().or(first));
            known
        });
        let mut inner = self.shared.current();
        if !known && session.was_sent() {
            self.shared.try_remember(&mut inner, StateChange::LastSession(session.id().clone()));
        }
        if let Some(chat) = chat {
            let last = LastChat { session: session.id().clone(), chat };
            self.shared.try_remember(&mut inner, StateChange::LastChat(last));
        }
    }
}
