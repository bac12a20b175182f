//! Acting on sessions through their providers.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Management, ManagementError, SessionsEvent};
use crate::ids::{SessionId, Uri};
use crate::provider::{InputAnswer, ReadState, SessionsChange};
use crate::session::ChatDeletion;
use crate::state_store::{StateChange, StateStoreError};

/// The result of deleting several sessions.
#[derive(Debug, Default)]
pub struct BatchDeletion {
    /// The deleted sessions.
    pub deleted: Vec<SessionId>,
    /// The first error. The others were tried nevertheless.
    pub first_error: Option<ManagementError>,
}

impl Management {
    /// Renames a chat.
    pub async fn rename_chat(&self, session: &SessionId, chat: &Uri, title: &str) -> Result<(), ManagementError> {
        let (known, provider) = self.route(session)?;
        if known.chat(chat).is_none() {
            return Err(ManagementError::UnknownChat { session: session.clone(), chat: chat.clone() });
        }
        Ok(provider.rename_chat(session, chat, title).await?)
    }

    /// Chooses the model.
    pub async fn set_model(&self, session: &SessionId, model: &str) -> Result<(), ManagementError> {
        let (_, provider) = self.route(session)?;
        Ok(provider.set_model(session, model).await?)
    }

    /// Archives a session.
    pub async fn archive_session(&self, session: &SessionId) -> Result<(), ManagementError> {
        let (_, provider) = self.route(session)?;
        Ok(provider.archive_session(session).await?)
    }

    /// Unarchives a session.
    pub async fn unarchive_session(&self, session: &SessionId) -> Result<(), ManagementError> {
        let (_, provider) = self.route(session)?;
        Ok(provider.unarchive_session(session).await?)
    }

    /// Pins a session, or unpins it. The list announces it as changed.
    pub fn pin(&self, session: &SessionId, is_pinned: bool) -> Result<(), ManagementError> {
        let known = match self.route(session) {
            Ok((known, _)) => Some(known),
            // A pin of a missing session can be removed.
            Err(_) if !is_pinned => None,
            Err(error) => return Err(error),
        };
        let change = |is_pinned| StateChange::Pin { session: session.clone(), is_pinned };
        match self.shared.remember(change(is_pinned)) {
            Err(StateStoreError::TooManyPins) => {
                self.unpin_missing();
                self.shared.remember(change(is_pinned))?;
            }
            done => done?,
        }
        if let Some(known) = known {
            self.shared.tell(SessionsEvent::Sessions(Arc::new(SessionsChange::changed([known]))));
        }
        Ok(())
    }

    /// The pinned sessions.
    pub fn pins(&self) -> HashSet<SessionId> {
        self.shared.persistent_state(|state| state.pinned.iter().cloned().collect())
    }

    /// Removes the pins of sessions that are not listed any more.
    fn unpin_missing(&self) {
        let mut inner = self.shared.current();
        let pinned = inner.persistent_state.pinned.clone();
        for session in pinned.into_iter().filter(|session| inner.aggregate.get(session).is_none()).collect::<Vec<_>>() {
            self.shared.try_remember(&mut inner, StateChange::Pin { session, is_pinned: false });
        }
    }

    /// Answers a pending request of a session for a person's input.
    pub async fn answer_request(
        &self,
        session: &SessionId,
        request: &str,
        answer: InputAnswer,
    ) -> Result<(), ManagementError> {
        let (_, provider) = self.route(session)?;
        Ok(provider.answer_request(session, request, answer).await?)
    }

    /// Marks a session as read or unread.
    pub async fn set_read(&self, session: &SessionId, read: ReadState) -> Result<(), ManagementError> {
        let (_, provider) = self.route(session)?;
        Ok(provider.set_read(session, read).await?)
    }

    /// Deletes a session.
    pub async fn delete_session(&self, session: &SessionId) -> Result<(), ManagementError> {
        let (_, provider) = self.route(session)?;
        provider.delete_session(session).await?;
        self.shared.catch_up();
        self.shared.tell(SessionsEvent::SessionDeleted(session.clone()));
        Ok(())
    }

    /// Deletes several sessions, provider by provider, and continues after errors.
    pub async fn delete_sessions(&self, sessions: &[SessionId]) -> BatchDeletion {
        let mut batch = BatchDeletion::default();
        let mut by_provider: Vec<&SessionId> = sessions.iter().collect();
        let place = |id: &SessionId| sessions.iter().position(|other| other.provider() == id.provider());
        by_provider.sort_by_cached_key(|id| place(id));
        for session in by_provider {
            match self.delete_session(session).await {
                Ok(()) => batch.deleted.push(session.clone()),
                Err(error) => batch.first_error = batch.first_error.or(Some(error)),
            }
        }
        batch
    }

    /// Deletes a chat, and the session with its last one. `false`: there is no such chat, and nothing happened. The
    /// main chat stays while there are others.
    pub async fn delete_chat(&self, session: &SessionId, chat: &Uri) -> Result<bool, ManagementError> {
        let (known, provider) = self.route(session)?;
        match known.state().deleting(chat) {
            ChatDeletion::Unknown => Ok(false),
            ChatDeletion::MainChat => Err(ManagementError::MainChat(session.clone())),
            ChatDeletion::Session => self.delete_session(session).await.map(|()| true),
            ChatDeletion::Chat => {
                let deleted = provider.delete_chat(session, chat).await?;
                if deleted {
                    self.shared.catch_up();
                    let (session, chat) = (session.clone(), chat.clone());
                    self.shared.tell(SessionsEvent::ChatDeleted { session, chat });
                }
                Ok(deleted)
            }
        }
    }
}
