//! Creating new sessions, and sending.

use std::collections::HashSet;
use std::sync::Arc;

use super::trust::TrustPrompt;
use super::view::ReplacementRequest;
use super::viewers::ViewerId;
use super::{Management, ManagementError, ManagementShared, SessionsEvent};
use crate::ids::{ProviderId, SessionId, SessionTypeId, Uri};
use crate::provider::{SendOptions, SessionsProvider};
use crate::session::{Interactivity, Session, SessionWorkspace};

/// The properties of a new session in a folder. Those that are `None` are chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewSession {
    /// Its provider. Else the first one that fits.
    pub provider_id: Option<ProviderId>,
    /// Its type. Else the provider's default.
    pub session_type: Option<SessionTypeId>,
}

/// A message on its way. Dropping the guard before the message arrived undoes the send: the caller may go away any
/// time.
struct MessageSendGuard<'a> {
    management: &'a Management,
    session: Session,
    arrived: bool,
}

impl<'a> MessageSendGuard<'a> {
    fn begin(management: &'a Management, session: Session) -> Self {
        management.select(|selection| selection.sending(session.id()));
        Self { management, session, arrived: false }
    }

    fn arrived(mut self, updated: &Session, chat: &Uri) {
        self.arrived = true;
        self.management.select(|selection| selection.sent(self.session.id(), updated, chat));
    }
}

impl Drop for MessageSendGuard<'_> {
    fn drop(&mut self) {
        if !self.arrived {
            self.management.select(|selection| selection.not_sent(&self.session));
        }
    }
}

impl Management {
    /// The draft: the new session that was not sent yet.
    pub fn new_session(&self) -> Option<Session> {
        self.view().new_session.clone()
    }

    /// Creates a draft in a workspace and makes it active. An earlier draft is dropped once the new one exists; if
    /// creating fails, it stays.
    pub async fn create_new_session(
        &self,
        provider: &ProviderId,
        workspace: &SessionWorkspace,
    ) -> Result<Session, ManagementError> {
        let provider = self.provider(provider.as_str())?;
        let session = draft_of(provider.as_ref(), workspace).await?;
        Ok(self.adopt(session).await)
    }

    /// Creates a draft in a folder, with a provider that knows it and has the requested type.
    pub async fn create_new_session_in(&self, folder: &Uri, wanted: NewSession) -> Result<Session, ManagementError> {
        let session = self.shared.draft_in(folder, wanted).await?;
        Ok(self.adopt(session).await)
    }

    /// Drops the draft.
    pub async fn unset_new_session(&self) {
        if let Some(session) = self.select(|selection| selection.unset_new()) {
            self.shared.drop_draft(&session).await;
        }
    }

    /// Changes the type of the draft. Its first message fixes the type.
    pub async fn set_session_type(
        &self,
        session: &SessionId,
        session_type: &SessionTypeId,
    ) -> Result<Session, ManagementError> {
        let (known, provider) = self.route(session)?;
        if known.was_sent() {
            return Err(ManagementError::AlreadySent(session.clone()));
        }
        if !provider.session_types_of(session).iter().any(|offered| offered.id == *session_type) {
            let (session, session_type) = (session.clone(), session_type.clone());
            return Err(ManagementError::UnknownSessionType { session, session_type });
        }
        let updated = provider.set_session_type(session, session_type).await?;
        self.select(|selection| selection.update_new(&updated));
        Ok(updated)
    }

    /// Sends a message in a new chat: the first one of a draft, a further one of any other session. If the session is
    /// active, that chat becomes active.
    pub async fn send_and_create_chat(
        &self,
        session: &SessionId,
        options: SendOptions,
        ask: &dyn TrustPrompt,
    ) -> Result<Session, ManagementError> {
        let (session, provider) = self.route(session)?;
        let is_new_session = !session.was_sent();
        if !is_new_session && !session.capabilities().supports_multiple_chats {
            return Err(ManagementError::SingleChat(session.id().clone()));
        }
        self.may_send(&session, provider.as_ref(), &options, ask).await?;
        let state = session.state();
        let before: HashSet<&Uri> = state.chats().map(|chat| &chat.resource).collect();
        let sending = MessageSendGuard::begin(self, session.clone());
        let updated = provider.send_and_create_chat(session.id(), options).await?;
        let now = updated.state();
        let newest = now.visible_chats().rfind(|chat| !before.contains(&chat.resource));
        let chat = newest.unwrap_or(&now.main_chat).resource.clone();
        sending.arrived(&updated, &chat);
        self.shared.tell(SessionsEvent::Sent { session: updated.clone(), chat, is_new_session });
        Ok(updated)
    }

    /// Sends a message in an existing chat.
    pub async fn send_request(
        &self,
        session: &SessionId,
        chat: &Uri,
        options: SendOptions,
        ask: &dyn TrustPrompt,
    ) -> Result<Session, ManagementError> {
        let (session, provider) = self.route(session)?;
        match session.state().chat(chat) {
            Some(known) if known.interactivity == Interactivity::Full => {}
            _ => return Err(ManagementError::UnknownChat { session: session.id().clone(), chat: chat.clone() }),
        }
        self.may_send(&session, provider.as_ref(), &options, ask).await?;
        let is_new_session = !session.was_sent();
        // Only a draft is changed by it. Otherwise another active chat stays active.
        let sending = is_new_session.then(|| MessageSendGuard::begin(self, session.clone()));
        let updated = provider.send_request(session.id(), chat, options).await?;
        match sending {
            Some(sending) => sending.arrived(&updated, chat),
            None => self.shared.catch_up(),
        }
        self.shared.tell(SessionsEvent::Sent { session: updated.clone(), chat: chat.clone(), is_new_session });
        Ok(updated)
    }

    async fn may_send(
        &self,
        session: &Session,
        provider: &dyn SessionsProvider,
        options: &SendOptions,
        ask: &dyn TrustPrompt,
    ) -> Result<(), ManagementError> {
        if session.is_archived() {
            return Err(ManagementError::Archived(session.id().clone()));
        }
        options.check(provider.capabilities().attachments)?;
        self.ensure_trusted(session, ask).await
    }

    /// Makes a session the draft.
    async fn adopt(&self, session: Session) -> Session {
        let before = self.select(|selection| selection.set_new(session.clone()));
        if let Some(before) = before.filter(|before| before.id() != session.id()) {
            self.shared.drop_draft(&before).await;
        }
        session
    }
}

impl ManagementShared {
    /// Creates a replacement for an active session that was archived: a new session like it. If that fails, the form
    /// stays.
    pub(super) async fn create_replacement(self: Arc<Self>, viewer: ViewerId, replacement_request: ReplacementRequest) {
        let ReplacementRequest { folder, provider, session_type } = replacement_request.clone();
        let wanted = NewSession { provider_id: Some(provider), session_type: Some(session_type) };
        let draft = match self.draft_in(&folder, wanted).await {
            Ok(draft) => draft,
            Err(error) => {
                tracing::debug!(%folder, %error, "cannot replace an archived session by a new one");
                return;
            }
        };
        // A viewer whose active session changed meanwhile is left alone.
        let fulfilled =
            self.select(viewer, |selection| selection.create_replacement(&replacement_request, draft.clone()));
        let superfluous = fulfilled.unwrap_or(Some(draft));
        if let Some(superfluous) = superfluous {
            self.drop_draft(&superfluous).await;
        }
    }

    /// Creates a session in a folder, with a provider that knows it and has the requested type.
    async fn draft_in(&self, folder: &Uri, wanted: NewSession) -> Result<Session, ManagementError> {
        let (provider, workspace) = self.choose(folder, &wanted).await?;
        let session = draft_of(provider.as_ref(), &workspace).await?;
        let Some(session_type) = wanted.session_type.filter(|wanted| *wanted != session.session_type()) else {
            return Ok(session);
        };
        match provider.set_session_type(session.id(), &session_type).await {
            Ok(session) => Ok(session),
            Err(error) => {
                self.drop_draft(&session).await;
                Err(error.into())
            }
        }
    }

    /// Chooses the provider of a new session, and its workspace.
    async fn choose(
        &self,
        folder: &Uri,
        wanted: &NewSession,
    ) -> Result<(Arc<dyn SessionsProvider>, SessionWorkspace), ManagementError> {
        if let Some(id) = &wanted.provider_id {
            let provider = self.provider(id.as_str())?;
            let workspace = provider.resolve_workspace(folder).await?;
            let not_its = || ManagementError::NotItsFolder { provider: id.clone(), folder: folder.clone() };
            return Ok((provider, workspace.ok_or_else(not_its)?));
        }
        for provider in self.registry.providers() {
            let offers = |id: &SessionTypeId| provider.session_types().iter().any(|offered| offered.id == *id);
            if !wanted.session_type.as_ref().is_none_or(offers) {
                continue;
            }
            match provider.resolve_workspace(folder).await {
                Ok(Some(workspace)) => return Ok((provider, workspace)),
                Ok(None) => {}
                Err(error) => tracing::debug!(provider = %provider.id(), %folder, %error, "cannot resolve a folder"),
            }
        }
        Err(ManagementError::NobodysFolder(folder.clone()))
    }

    /// Drops a draft, through its own provider. A failure only costs memory.
    async fn drop_draft(&self, session: &Session) {
        let Some(provider) = self.registry.get(session.id().provider()) else { return };
        if let Err(error) = provider.delete_new_session(session.id()).await {
            tracing::warn!(session = %session.id(), %error, "cannot drop a draft session");
        }
    }
}

/// Creates a draft of a provider, and checks its id.
async fn draft_of(provider: &dyn SessionsProvider, workspace: &SessionWorkspace) -> Result<Session, ManagementError> {
    let session = provider.create_new_session(workspace).await?;
    if session.id().provider() != provider.id().as_str() {
        let (provider, session) = (provider.id().clone(), session.id().clone());
        return Err(ManagementError::ForeignSession { provider, session });
    }
    Ok(session)
}
