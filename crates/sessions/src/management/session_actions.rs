//! Acting on sessions through their providers.

use super::{Management, ManagementError, SessionsEvent};
use crate::ids::{SessionId, Uri};
use crate::provider::ReadState;
use crate::session::ChatDeletion;

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
