//! The requests of a connection.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use futures_util::stream::BoxStream;
use grove_core::ClientId;
use grove_host::FolderTrust;
use grove_host::session_hub::{SessionHubConnection, SessionHubRefusal};
use grove_sessions::management::{ManagementError, NewSession, TrustPrompt, TrustQuestion};
use grove_sessions::provider::{self, AttachedContext, BrowseRequest, InputAnswer, ReadState, SendOptions};
use grove_sessions::providers::hosts::THIS_HOST;
use grove_sessions::{Management, ProviderId, Session, SessionId, SessionTypeId, Trust, Uri};
use grove_wire::x_grove::sessions as wire;
use grove_wire::x_grove::sessions::{SessionsCall, SessionsOutcome};
use grove_work::local_path;

use super::active_hub::ActiveHub;
use super::listing::{list_page, provider_labels};
use super::refusal::{bad_id, refused, unfit};
use super::waiting::waiting;
use super::{SessionHub, publisher, rows};

/// A connection that uses the session hub.
pub(super) struct HubConnection {
    hub: SessionHub,
    active_hub: Arc<ActiveHub>,
    client: ClientId,
    /// The view of its client.
    management: Arc<Management>,
    trust: Option<Arc<dyn FolderTrust>>,
}

impl HubConnection {
    pub(super) fn new(
        hub: SessionHub,
        active_hub: Arc<ActiveHub>,
        client: ClientId,
        trust: Option<Arc<dyn FolderTrust>>,
    ) -> Self {
        let management = active_hub.viewer(&client);
        Self { hub, active_hub, client, management, trust }
    }

    async fn list(&self, params: wire::SessionsListParams) -> Result<SessionsOutcome, SessionHubRefusal> {
        self.active_hub.listed().await;
        list_page(&self.management, params).map(SessionsOutcome::List)
    }

    fn shown(&self, session: &Session) -> SessionsOutcome {
        let is_pinned = self.management.pins().contains(session.id());
        SessionsOutcome::Session(Box::new(wire::SessionResult { session: rows::row(session, is_pinned) }))
    }

    async fn answer(&self, params: wire::AnswerParams) -> Result<SessionsOutcome, SessionHubRefusal> {
        let answer = match params.answer {
            wire::WaitingAnswer::Permission { approved, option_id } => {
                InputAnswer::Permission { is_approved: approved, option: option_id }
            }
            wire::WaitingAnswer::Input { response, answers } => {
                let answers = answers.map(serde_json::from_value).transpose();
                let answers = answers.map_err(|error| unfit(format!("the answers are invalid: {error}")))?;
                InputAnswer::Input { response, answers }
            }
        };
        let answered = self.management.answer_request(&session_id(&params.session)?, &params.request, answer).await;
        answered.map(|()| SessionsOutcome::Done {}).map_err(refused_without_provider)
    }

    fn providers(&self) -> SessionsOutcome {
        let providers = self.management.registry().providers();
        SessionsOutcome::Providers(wire::ProvidersResult { providers: providers.iter().map(rows::provider).collect() })
    }

    fn types(&self, params: &wire::TypesParams) -> Result<SessionsOutcome, SessionHubRefusal> {
        let types = match &params.session {
            Some(session) => self.management.session_types(&session_id(session)?).map_err(refused_without_provider)?,
            None => self.management.all_session_types(),
        };
        let types = types.into_iter().map(|session_type| rows::session_type(session_type, None)).collect();
        Ok(SessionsOutcome::Types(wire::TypesResult { types }))
    }

    async fn types_for_folder(&self, folder: String) -> SessionsOutcome {
        let found = self.management.session_types_for_folder(&Uri::from(folder)).await.into_iter();
        let types = found.map(|(provider, session_type)| rows::session_type(session_type, Some(provider.as_str())));
        SessionsOutcome::Types(wire::TypesResult { types: types.collect() })
    }

    async fn create(&self, params: wire::CreateParams) -> Result<SessionsOutcome, SessionHubRefusal> {
        let wanted = NewSession {
            provider_id: params.provider_id.map(|id| provider_id(&id)).transpose()?,
            session_type: params.session_type.map(SessionTypeId::from),
        };
        let created = self.management.create_new_session_in(&Uri::from(params.folder), wanted).await;
        Ok(self.shown(&created.map_err(refused_without_provider)?))
    }

    async fn send(&self, params: wire::SendParams, to: SendTarget) -> Result<SessionsOutcome, SessionHubRefusal> {
        let session = session_id(&params.session)?;
        let provider = provider_id(session.provider())?;
        let attached: Result<Vec<_>, SessionHubRefusal> = params.attached_context.into_iter().map(attached).collect();
        let options = SendOptions { query: params.query, attached_context: attached? };
        let ask = TrustedFolders(self.trust.clone());
        let sent = match (to, params.chat) {
            (SendTarget::NewChat, None) => self.management.send_and_create_chat(&session, options, &ask).await,
            (SendTarget::NewChat, Some(_)) => return Err(unfit("a new chat has no name yet: leave `chat` out")),
            (SendTarget::Chat, Some(chat)) => {
                self.management.send_request(&session, &Uri::from(chat), options, &ask).await
            }
            (SendTarget::Chat, None) => return Err(unfit("`chat` is missing: name the chat")),
        };
        Ok(self.shown(&sent.map_err(|error| refused(error, Some(&provider)))?))
    }

    async fn delete(&self, params: wire::DeleteParams) -> Result<SessionsOutcome, SessionHubRefusal> {
        if params.sessions.len() > wire::MAX_DELETED_SESSIONS {
            return Err(unfit(format!("at most {} sessions can be deleted at once", wire::MAX_DELETED_SESSIONS)));
        }
        let sessions: Result<Vec<SessionId>, SessionHubRefusal> =
            params.sessions.iter().map(|id| session_id(id)).collect();
        let batch = self.management.delete_sessions(&sessions?).await;
        Ok(SessionsOutcome::Deleted(wire::DeleteResult {
            deleted: batch.deleted.iter().map(SessionId::to_string).collect(),
            error: batch.first_error.map(|error| error.to_string()),
        }))
    }

    async fn browse(&self, params: wire::BrowseParams) -> Result<SessionsOutcome, SessionHubRefusal> {
        let request =
            BrowseRequest { action: params.action.into(), chosen: params.chosen.map(Uri::from), query: params.query };
        let browsed = self
            .management
            .browse(&provider_id(&params.provider_id)?, &request)
            .await
            .map_err(refused_without_provider)?;
        let result = match browsed {
            provider::BrowseOutcome::Chosen(chosen) => {
                wire::BrowseResult { workspace: Some(rows::workspace(&chosen)), offers: Vec::new() }
            }
            provider::BrowseOutcome::Nothing => wire::BrowseResult::default(),
            provider::BrowseOutcome::Offered(offers) => wire::BrowseResult {
                workspace: None,
                offers: offers
                    .into_iter()
                    .map(|offer| wire::BrowseOffer {
                        uri: offer.uri.to_string(),
                        label: offer.label.to_string(),
                        description: offer.description.map(|words| words.to_string()),
                    })
                    .collect(),
            },
        };
        Ok(SessionsOutcome::Browsed(result))
    }

    fn browse_actions(&self) -> SessionsOutcome {
        let actions = self.management.browse_actions().into_iter().map(|picked| wire::BrowseAction {
            id: picked.action.id.to_string(),
            label: picked.action.label.to_string(),
            icon: picked.action.icon.to_string(),
            provider_id: picked.action.provider_id.to_string(),
            provider_label: picked.provider_label.to_string(),
        });
        SessionsOutcome::BrowseActions(wire::BrowseActionsResult { actions: actions.collect() })
    }

    fn answer_trust(&self, params: wire::AnswerTrustParams) -> Result<(), SessionHubRefusal> {
        let provider = provider_id(&params.provider_id)?;
        if self.management.registry().get(provider.as_str()).is_none() {
            return Err(refused_without_provider(ManagementError::UnknownProvider(params.provider_id)));
        }
        let answer = if params.trusted { Trust::Trusted } else { Trust::Refused };
        let result = self.management.set_trust(provider, Uri::from(params.folder), answer);
        result.map_err(|error| refused_without_provider(error.into()))
    }
}

#[async_trait]
impl SessionHubConnection for HubConnection {
    async fn call(&self, call: SessionsCall) -> Result<SessionsOutcome, SessionHubRefusal> {
        let management = &self.management;
        let done = match call {
            SessionsCall::List(params) => return self.list(params).await,
            SessionsCall::Providers => return Ok(self.providers()),
            SessionsCall::Types(params) => return self.types(&params),
            SessionsCall::TypesForFolder(params) => return Ok(self.types_for_folder(params.folder).await),
            SessionsCall::Open(params) => {
                self.active_hub.listed().await;
                return management
                    .open_session(&Uri::from(params.resource))
                    .map(|session| self.shown(&session))
                    .map_err(refused_without_provider);
            }
            SessionsCall::OpenChat(params) => {
                management.open_chat(&session_id(&params.session)?, &Uri::from(params.chat))
            }
            SessionsCall::OpenNewSessionView => {
                management.open_new_session_view();
                Ok(())
            }
            SessionsCall::Restore => {
                self.active_hub.listed().await;
                return Ok(management.restore().map_or(SessionsOutcome::Done {}, |session| self.shown(&session)));
            }
            SessionsCall::Create(params) => return self.create(params).await,
            SessionsCall::SetSessionType(params) => {
                let (session, session_type) = (session_id(&params.session)?, params.session_type.into());
                let changed = management.set_session_type(&session, &session_type).await;
                return changed.map(|session| self.shown(&session)).map_err(refused_without_provider);
            }
            SessionsCall::UnsetNewSession => {
                management.unset_new_session().await;
                Ok(())
            }
            SessionsCall::SendAndCreateChat(params) => return self.send(params, SendTarget::NewChat).await,
            SessionsCall::SendRequest(params) => return self.send(params, SendTarget::Chat).await,
            SessionsCall::SetModel(params) => management.set_model(&session_id(&params.session)?, &params.model).await,
            SessionsCall::RenameChat(params) => {
                let chat = Uri::from(params.chat);
                management.rename_chat(&session_id(&params.session)?, &chat, &params.title).await
            }
            SessionsCall::Archive(params) => management.archive_session(&session_id(&params.session)?).await,
            SessionsCall::Unarchive(params) => management.unarchive_session(&session_id(&params.session)?).await,
            SessionsCall::Delete(params) => return self.delete(params).await,
            SessionsCall::DeleteChat(params) => {
                let chat = Uri::from(params.chat);
                let deleted = management
                    .delete_chat(&session_id(&params.session)?, &chat)
                    .await
                    .map_err(refused_without_provider)?;
                return Ok(SessionsOutcome::DeletedChat(wire::DeleteChatResult { deleted }));
            }
            SessionsCall::SetRead(params) => {
                let read = if params.read { ReadState::Read } else { ReadState::Unread };
                management.set_read(&session_id(&params.session)?, read).await
            }
            SessionsCall::Pin(params) => management.pin(&session_id(&params.session)?, params.pinned),
            SessionsCall::Waiting => {
                self.active_hub.listed().await;
                return Ok(SessionsOutcome::Waiting(waiting(management.sessions(), &provider_labels(management))));
            }
            SessionsCall::Answer(params) => return self.answer(params).await,
            SessionsCall::SetActiveProvider(params) => {
                management.set_active_provider(&provider_id(&params.provider_id)?)
            }
            SessionsCall::BrowseActions => return Ok(self.browse_actions()),
            SessionsCall::Browse(params) => return self.browse(params).await,
            SessionsCall::AnswerTrust(params) => return self.answer_trust(params).map(|()| SessionsOutcome::Done {}),
            // The host handles these itself.
            SessionsCall::Subscribe | SessionsCall::Unsubscribe => Ok(()),
        };
        done.map(|()| SessionsOutcome::Done {}).map_err(refused_without_provider)
    }

    fn subscribe(&self) -> (wire::SubscribeResult, BoxStream<'static, Arc<str>>) {
        // Listen before reading, so that no change is lost in between.
        let frames = self.active_hub.frames.subscribe();
        let updates = publisher::follow(frames, self.management.clone());
        let result = wire::SubscribeResult { view: rows::view(&self.management.view(), &self.management.pins()) };
        (result, updates)
    }
}

impl Drop for HubConnection {
    fn drop(&mut self) {
        let gone = self.active_hub.left(&self.client);
        self.hub.leave();
        if let (Some(gone), Ok(runtime)) = (gone, tokio::runtime::Handle::try_current()) {
            // Its provider would keep a draft session that will never be sent.
            runtime.spawn(async move { gone.unset_new_session().await });
        }
    }
}

impl fmt::Debug for HubConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HubConnection").field("client", &self.client).finish_non_exhaustive()
    }
}

/// The chat that a message is sent to.
enum SendTarget {
    NewChat,
    Chat,
}

/// Answers for folders in the list of this host. Otherwise the client must ask.
struct TrustedFolders(Option<Arc<dyn FolderTrust>>);

#[async_trait]
impl TrustPrompt for TrustedFolders {
    async fn ask(&self, question: &TrustQuestion) -> Option<Trust> {
        let trust = self.0.as_ref().filter(|_| question.provider_id.as_str() == THIS_HOST)?;
        let folder = local_path(question.workspace.uri.as_str()).ok()?;
        trust.is_trusted(&folder).then_some(Trust::Trusted)
    }
}

impl fmt::Debug for TrustedFolders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrustedFolders").finish_non_exhaustive()
    }
}

fn refused_without_provider(error: ManagementError) -> SessionHubRefusal {
    refused(error, None)
}

fn session_id(text: &str) -> Result<SessionId, SessionHubRefusal> {
    SessionId::parse(text).map_err(bad_id)
}

fn provider_id(text: &str) -> Result<ProviderId, SessionHubRefusal> {
    ProviderId::new(text).map_err(bad_id)
}

fn attached(attached: wire::ContextAttachment) -> Result<AttachedContext, SessionHubRefusal> {
    Ok(match attached {
        wire::ContextAttachment::File { uri } => AttachedContext::File { uri: uri.into() },
        wire::ContextAttachment::Folder { uri } => AttachedContext::Folder { uri: uri.into() },
        wire::ContextAttachment::Selection { uri, first_line, last_line, text } => {
            AttachedContext::Selection { uri: uri.into(), first_line, last_line, text: text.into() }
        }
        wire::ContextAttachment::Image { media_type, data } => {
            let data = BASE64_STANDARD
                .decode(data)
                .map_err(|error| unfit(format!("an image is not valid base64: {error}")))?;
            AttachedContext::Image { media_type: media_type.into(), data: data.into() }
        }
    })
}
