//! The actions of a host's provider on its sessions.

use std::sync::Arc;

use async_trait::async_trait;
use grove_client::dialect::ahp::{DisposeChat, DisposeSession};
use grove_client::{Ahp, Client, DispatchOutcome, RequestError};
use grove_core::Timestamp;
use grove_wire::ahp::{
    Action, ChatAction, ChatIsReadChanged, ChatPendingMessageSet, CreateChatParams, Object, PendingMessageKind,
    SessionAction, SessionChatSummary, SessionConfigChanged, SessionIsArchivedChanged, SessionIsReadChanged,
    SessionTitleChanged, error_code,
};
use grove_wire::x_grove::{Method, RenameResult};
use serde_json::json;
use tokio::sync::broadcast;
use tokio::time::timeout;

use super::drafts::{self, LISTING_TIMEOUT, disconnected, dispatch_error, request_error, start, until_not_listed};
use super::message::{check_images, message};
use super::retry_delays::new_name;
use super::table::RowView;
use super::{HostProvider, answers, browse};
use crate::ids::{Icon, ProviderId, SessionId, SessionTypeId, Uri};
use crate::provider::{
    Availability, BrowseAction, BrowseOutcome, BrowseRequest, InputAnswer, ProviderCapabilities, ProviderEnvironment,
    ProviderError, ProviderEvent, ReadState, SendOptions, SessionType, SessionsProvider, SupportedAttachments,
};
use crate::session::{ChatDeletion, Session, SessionWorkspace};

/// The reason why there is nothing to answer.
const ANSWERED: &str = "the session does not wait for this answer any more: it was answered, or its turn ended";

#[async_trait]
impl SessionsProvider for HostProvider {
    fn id(&self) -> &ProviderId {
        &self.shared.host.id
    }

    fn label(&self) -> Arc<str> {
        self.shared.host.label.clone()
    }

    fn icon(&self) -> Icon {
        self.shared.host.icon()
    }

    fn order(&self) -> i32 {
        self.shared.host.order()
    }

    fn environment(&self) -> ProviderEnvironment {
        self.shared.host.environment()
    }

    fn availability(&self) -> Availability {
        self.shared.availability()
    }

    fn seen_at(&self) -> Option<Timestamp> {
        self.shared.shown_since()
    }

    fn capabilities(&self) -> ProviderCapabilities {
        ProviderCapabilities { attachments: SupportedAttachments::ALL }
    }

    fn session_types(&self) -> Vec<SessionType> {
        self.shared.session_types()
    }

    fn subscribe(&self) -> broadcast::Receiver<ProviderEvent> {
        self.shared.announcer.subscribe()
    }

    fn sessions(&self) -> Vec<Session> {
        self.shared.sessions()
    }

    fn browse_actions(&self) -> Vec<BrowseAction> {
        browse::actions(&self.shared)
    }

    async fn browse(&self, request: &BrowseRequest) -> Result<BrowseOutcome, ProviderError> {
        browse::browse(&self.shared, request).await
    }

    async fn resolve_workspace(&self, uri: &Uri) -> Result<Option<SessionWorkspace>, ProviderError> {
        browse::resolve(&self.shared, uri).await
    }

    async fn create_new_session(&self, workspace: &SessionWorkspace) -> Result<Session, ProviderError> {
        drafts::create(&self.shared, workspace)
    }

    async fn delete_new_session(&self, session: &SessionId) -> Result<(), ProviderError> {
        self.shared.drop_draft(session);
        Ok(())
    }

    /// The first message fixes the type.
    fn session_types_of(&self, session: &SessionId) -> Vec<SessionType> {
        let all = self.shared.session_types();
        match self.row(session) {
            Ok((_, row)) => {
                let own = row.session.session_type();
                all.into_iter().filter(|offered| offered.id == own).collect()
            }
            Err(_) => all,
        }
    }

    async fn set_session_type(
        &self,
        session: &SessionId,
        session_type: &SessionTypeId,
    ) -> Result<Session, ProviderError> {
        match drafts::set_type(&self.shared, session, session_type) {
            Some(changed) => changed,
            None if self.shared.sessions().iter().any(|known| known.id() == session) => {
                Err(ProviderError::AlreadySent(session.clone()))
            }
            None => Err(ProviderError::UnknownSession(session.clone())),
        }
    }

    async fn rename_chat(&self, session: &SessionId, chat: &Uri, title: &str) -> Result<(), ProviderError> {
        let (host_uri, row) = self.row(session)?;
        let state = row.session.state();
        if state.chat(chat).is_none() {
            return Err(ProviderError::UnknownChat { session: session.clone(), chat: chat.clone() });
        }
        if state.main_chat.resource != *chat {
            return self.rename_other(host_uri, chat, title).await;
        }
        if row.summary.is_some_and(|summary| summary.title == title) {
            return Ok(());
        }
        let title = title.to_owned();
        self.tell(host_uri, Action::Session(SessionAction::TitleChanged(SessionTitleChanged { title }))).await
    }

    async fn set_model(&self, session: &SessionId, model: &str) -> Result<(), ProviderError> {
        let agents = self.shared.agents();
        let refused = |agent: &SessionTypeId| {
            let known = agents.iter().find(|known| known.provider == agent.as_str());
            let models = known.map(|agent| agent.models.as_slice()).unwrap_or_default();
            if models.is_empty() || models.iter().any(|known| known.id == model) {
                return None;
            }
            let names: Vec<&str> = models.iter().map(|known| known.id.as_str()).collect();
            Some(ProviderError::Refused(format!("{agent} has no model {model}: choose one of {}", names.join(", "))))
        };
        let drafted = self.shared.with_draft(session, |draft| {
            if let Some(refused) = refused(&draft.source.session().session_type()) {
                return Err(refused);
            }
            draft.model = Some(model.to_owned());
            draft.source.update_main_chat(|chat| chat.model_id = Some(model.into()));
            Ok(())
        });
        if let Some(drafted) = drafted {
            return drafted;
        }
        let (host_uri, row) = self.row(session)?;
        self.shared.client()?;
        let agent = row.session.session_type();
        let is_listed = agents.iter().any(|known| known.provider == agent.as_str() && !known.models.is_empty());
        if row.model_is_setting || !is_listed {
            // If it is a setting of the session, the host stores it.
            let config = Object::from_iter([("model".to_owned(), model.into())]);
            let change = SessionConfigChanged { config, replace: None };
            return self.tell(host_uri, Action::Session(SessionAction::ConfigChanged(change))).await;
        }
        if let Some(refused) = refused(&agent) {
            return Err(refused);
        }
        self.shared.choose_model(host_uri, model);
        Ok(())
    }

    async fn archive_session(&self, session: &SessionId) -> Result<(), ProviderError> {
        self.set_archived(session, true).await
    }

    async fn unarchive_session(&self, session: &SessionId) -> Result<(), ProviderError> {
        self.set_archived(session, false).await
    }

    async fn delete_session(&self, session: &SessionId) -> Result<(), ProviderError> {
        let (host_uri, _) = self.row(session)?;
        let client = self.shared.client()?;
        match client.request(DisposeSession { channel: host_uri.to_owned() }).await {
            Ok(()) => {}
            // Another client was faster.
            Err(RequestError::Refused { error, .. }) if error.code == error_code::SESSION_NOT_FOUND => {}
            Err(error) => return Err(request_error(&self.shared, error)),
        }
        // The list must not bring it back, so it has to be removed there first.
        until_not_listed(&client, host_uri).await;
        self.shared.remove(host_uri);
        Ok(())
    }

    async fn delete_chat(&self, session: &SessionId, chat: &Uri) -> Result<bool, ProviderError> {
        let (host_uri, row) = self.row(session)?;
        match row.session.state().deleting(chat) {
            ChatDeletion::Unknown => Ok(false),
            ChatDeletion::Session => self.delete_session(session).await.map(|()| true),
            ChatDeletion::MainChat => {
                Err(ProviderError::Refused("the main chat stays while there are others: delete those first".to_owned()))
            }
            ChatDeletion::Chat => {
                let client = self.shared.client()?;
                let Some(channel) = self.shared.host.host_uri(chat).map(ToOwned::to_owned) else { return Ok(false) };
                match client.request(DisposeChat { channel: channel.clone() }).await {
                    Ok(()) => {}
                    Err(RequestError::Refused { error, .. }) if error.code == error_code::NOT_FOUND => {
                        return Ok(false);
                    }
                    Err(error) => return Err(request_error(&self.shared, error)),
                }
                self.wait_until_listed(&client, host_uri, |chats| chats.iter().all(|chat| chat.resource != channel))
                    .await;
                Ok(true)
            }
        }
    }

    async fn set_read(&self, session: &SessionId, read: ReadState) -> Result<(), ProviderError> {
        let (host_uri, row) = self.row(session)?;
        let is_read = read == ReadState::Read;
        let summary = row.summary.ok_or_else(|| self.shared.not_reached())?;
        let bits = crate::session::StatusBits::from_bits;
        // A host may leave an action without effect unanswered, so it is not sent.
        if bits(summary.status).is_read != is_read {
            let change = SessionIsReadChanged { is_read };
            self.tell(host_uri, Action::Session(SessionAction::IsReadChanged(change))).await?;
        }
        if is_read {
            let chats = summary.chats.unwrap_or_default();
            let unread = chats.iter().filter(|chat| chat.status.is_some_and(|status| !bits(status).is_read));
            for chat in unread {
                let change = ChatIsReadChanged { is_read };
                self.tell(&chat.resource, Action::Chat(ChatAction::IsReadChanged(change))).await?;
            }
        }
        Ok(())
    }

    async fn answer_request(
        &self,
        session: &SessionId,
        request: &str,
        answer: InputAnswer,
    ) -> Result<(), ProviderError> {
        let (_, row) = self.row(session)?;
        let waiting = row.session.state().waiting.clone();
        let known = waiting.iter().find(|known| &*known.id == request);
        let known = known.ok_or_else(|| ProviderError::Refused(ANSWERED.to_owned()))?;
        let (chat, action) = answers::action(&known.content, answer)?;
        self.tell(chat, action).await
    }

    async fn send_and_create_chat(&self, session: &SessionId, options: SendOptions) -> Result<Session, ProviderError> {
        if let Some(draft) = self.draft(session) {
            self.check_images(&draft, &options, draft.model_id().as_deref())?;
            return drafts::send_first(&self.shared, session, options, self.commit).await;
        }
        let (host_uri, row) = self.row(session)?;
        self.check_images(&row.session, &options, row.chosen_model.as_deref())?;
        let message = message(options, row.chosen_model)?;
        let client = self.shared.client()?;
        let chat = format!("ahp-chat:/{}", new_name());
        let create = CreateChatParams {
            channel: host_uri.to_owned(),
            chat: chat.clone(),
            initial_message: Some(message),
            ..CreateChatParams::default()
        };
        client.request(create).await.map_err(|error| request_error(&self.shared, error))?;
        self.wait_until_listed(&client, host_uri, |chats| chats.iter().any(|known| known.resource == chat)).await;
        Ok(row.session)
    }

    async fn send_request(
        &self,
        session: &SessionId,
        chat: &Uri,
        options: SendOptions,
    ) -> Result<Session, ProviderError> {
        if let Some(draft) = self.draft(session) {
            self.check_images(&draft, &options, draft.model_id().as_deref())?;
            return drafts::send_first(&self.shared, session, options, self.commit).await;
        }
        let (_, row) = self.row(session)?;
        let unknown = || ProviderError::UnknownChat { session: session.clone(), chat: chat.clone() };
        let state = row.session.state();
        let known = state.chat(chat).ok_or_else(unknown)?;
        let channel = self.shared.host.host_uri(&known.resource).ok_or_else(unknown)?;
        self.check_images(&row.session, &options, known.model_id.as_deref())?;
        let message = message(options, row.chosen_model)?;
        let client = self.shared.client()?;
        let held = client.subscribe(channel).await.map_err(|error| request_error(&self.shared, error))?;
        let is_running = held.read(|state| state.chat().is_some_and(|chat| chat.active_turn.is_some()));
        // While a turn runs, the message waits for its end.
        let action = if is_running {
            let kind = PendingMessageKind::Queued;
            Action::Chat(ChatAction::PendingMessageSet(ChatPendingMessageSet { kind, id: new_name(), message }))
        } else {
            start(message)
        };
        self.dispatch(&client, channel, action).await?;
        Ok(row.session)
    }
}

impl HostProvider {
    /// A listed session, and its URI on the host.
    fn row<'a>(&self, session: &'a SessionId) -> Result<(&'a str, RowView), ProviderError> {
        let unknown = || ProviderError::UnknownSession(session.clone());
        let host_uri = self.shared.host.session_on_host(session).ok_or_else(unknown)?;
        Ok((host_uri, self.shared.row(host_uri).ok_or_else(unknown)?))
    }

    /// A draft.
    fn draft(&self, session: &SessionId) -> Option<Session> {
        self.shared.with_draft(session, |draft| draft.source.session())
    }

    /// Checks that the agent of a session accepts the attachments, as far as its host says so.
    fn check_images(&self, session: &Session, options: &SendOptions, model: Option<&str>) -> Result<(), ProviderError> {
        let (agents, own) = (self.shared.agents(), session.session_type());
        check_images(options, agents.iter().find(|agent| agent.provider == own.as_str()), model)
    }

    /// Renames a chat other than the main one. The protocol can set the titles of sessions, and not of chats: Grove
    /// hosts have a request of their own.
    async fn rename_other(&self, host_uri: &str, chat: &Uri, title: &str) -> Result<(), ProviderError> {
        let client = self.shared.client()?;
        if !client.offers(Method::Rename) {
            return Err(self.unsupported("rename a chat other than the main one: its host does not know how"));
        }
        let channel = self.shared.host.host_uri(chat).unwrap_or_default();
        let params = json!({"channel": channel, "title": title});
        let renamed = client.request_raw::<RenameResult>(Method::Rename.as_str(), &params).await;
        let RenameResult {} = renamed.map_err(|error| request_error(&self.shared, error))?;
        self.wait_until_listed(&client, host_uri, |chats| {
            chats.iter().any(|chat| chat.resource == channel && chat.title == title)
        })
        .await;
        Ok(())
    }

    async fn set_archived(&self, session: &SessionId, is_archived: bool) -> Result<(), ProviderError> {
        let (host_uri, row) = self.row(session)?;
        if row.session.is_archived() == is_archived {
            return Ok(());
        }
        let change = SessionIsArchivedChanged { is_archived };
        self.tell(host_uri, Action::Session(SessionAction::IsArchivedChanged(change))).await
    }

    /// Dispatches an action to a channel of the host, and waits for its outcome.
    async fn tell(&self, channel: &str, action: Action) -> Result<(), ProviderError> {
        let client = self.shared.client()?;
        self.dispatch(&client, channel, action).await
    }

    async fn dispatch(&self, client: &Client<Ahp>, channel: &str, action: Action) -> Result<(), ProviderError> {
        let shared = &self.shared;
        let done = async {
            // Without a subscription only a refusal would be received.
            let held = client.subscribe(channel).await.map_err(|error| request_error(shared, error))?;
            match held.dispatch(action).map_err(|error| dispatch_error(shared, error))?.await {
                DispatchOutcome::Confirmed(_) => Ok(()),
                DispatchOutcome::Rejected(why) => Err(ProviderError::Refused(why)),
                DispatchOutcome::Lost => Err(shared.not_reached()),
            }
        };
        tokio::select! {
            done = done => done,
            () = disconnected(client) => Err(shared.not_reached()),
        }
    }

    /// Waits until the list shows the chats of a session as expected, and shows them so.
    async fn wait_until_listed(
        &self,
        client: &Client<Ahp>,
        host_uri: &str,
        done: impl Fn(&[SessionChatSummary]) -> bool,
    ) {
        let mut sessions = client.sessions();
        let listing =
            sessions.until(|list| done(list.get(host_uri)?.chats.as_deref().unwrap_or_default()).then_some(()));
        if timeout(LISTING_TIMEOUT, listing).await.is_err() {
            tracing::debug!(session = host_uri, "a host's list does not show an action");
        }
        // The driver reads the list as well, and may come later than the caller.
        client.sessions().read(|list| self.shared.take_list(list, false));
    }
}
