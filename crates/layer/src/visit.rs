//! What a connection may do.

use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use futures_util::stream::BoxStream;
use grove_core::{ClientId, Timestamp};
use grove_host::FolderTrust;
use grove_host::sessions::{Refusal, Visit};
use grove_sessions::management::{AskTrust, ManagementError, NewSession, TrustQuestion};
use grove_sessions::provider::{AttachedContext, BrowseRequest, Browsed, ReadState, SendOptions};
use grove_sessions::providers::hosts::THIS_HOST;
use grove_sessions::{Management, ProviderId, Session, SessionId, SessionTypeId, Trust, Uri};
use grove_wire::x_grove::sessions as wire;
use grove_wire::x_grove::sessions::{Call, Outcome};
use grove_work::local_path;

use super::refusal::{bad_id, refused, unfit};
use super::running::Running;
use super::{Layer, groups, rows, telling};

/// A connection that uses the layer.
pub(super) struct Visitor {
    layer: Layer,
    running: Arc<Running>,
    client: ClientId,
    /// What its client looks at.
    management: Arc<Management>,
    trust: Option<Arc<dyn FolderTrust>>,
}

impl Visitor {
    pub(super) fn new(
        layer: Layer,
        running: Arc<Running>,
        client: ClientId,
        trust: Option<Arc<dyn FolderTrust>>,
    ) -> Self {
        let management = running.viewer(&client);
        Self { layer, running, client, management, trust }
    }

    async fn list(&self, params: wire::ListParams) -> Result<Outcome, Refusal> {
        let after = params.cursor.as_deref().map(read_cursor).transpose()?;
        let limit = params.limit.unwrap_or(wire::ROWS).clamp(1, wire::MOST_ROWS);
        self.running.listed().await;
        let mut sessions = self.management.sessions();
        let total = sessions.len();
        let groups = after.is_none().then(|| groups::headings(sessions.clone()));
        let place = |session: &Session| Reverse((session.created_at(), session.id().clone()));
        sessions.sort_by_cached_key(place);
        let first =
            after.map_or(0, |after| sessions.partition_point(|session| place(session) <= Reverse(after.clone())));
        let page = &sessions[first..sessions.len().min(first.saturating_add(limit))];
        let has_more = first + page.len() < total;
        let next_cursor = page.last().filter(|_| has_more).map(cursor);
        let sessions = page.iter().map(rows::row).collect();
        Ok(Outcome::List(wire::ListResult { sessions, total, groups, next_cursor }))
    }

    fn providers(&self) -> Outcome {
        let providers = self.management.registry().providers();
        Outcome::Providers(wire::ProvidersResult { providers: providers.iter().map(rows::provider).collect() })
    }

    fn types(&self, params: &wire::TypesParams) -> Result<Outcome, Refusal> {
        let types = match &params.session {
            Some(session) => self.management.session_types(&session_id(session)?).map_err(of_nobody)?,
            None => self.management.all_session_types(),
        };
        let types = types.into_iter().map(|session_type| rows::session_type(session_type, None)).collect();
        Ok(Outcome::Types(wire::TypesResult { types }))
    }

    async fn types_for_folder(&self, folder: String) -> Outcome {
        let found = self.management.session_types_for_folder(&Uri::from(folder)).await.into_iter();
        let types = found.map(|(provider, session_type)| rows::session_type(session_type, Some(provider.as_str())));
        Outcome::Types(wire::TypesResult { types: types.collect() })
    }

    async fn create(&self, params: wire::CreateParams) -> Result<Outcome, Refusal> {
        let wanted = NewSession {
            provider_id: params.provider_id.map(|id| provider_id(&id)).transpose()?,
            session_type: params.session_type.map(SessionTypeId::from),
        };
        let created = self.management.create_new_session_in(&Uri::from(params.folder), wanted).await;
        Ok(shown(&created.map_err(of_nobody)?))
    }

    async fn send(&self, params: wire::SendParams, to: Where) -> Result<Outcome, Refusal> {
        let session = session_id(&params.session)?;
        let provider = provider_id(session.provider())?;
        let attached: Result<Vec<_>, Refusal> = params.attached_context.into_iter().map(attached).collect();
        let options = SendOptions { query: params.query, attached_context: attached? };
        let ask = Listed(self.trust.clone());
        let sent = match (to, params.chat) {
            (Where::NewChat, None) => self.management.send_and_create_chat(&session, options, &ask).await,
            (Where::NewChat, Some(_)) => return Err(unfit("a new chat has no name yet: leave `chat` out")),
            (Where::Chat, Some(chat)) => self.management.send_request(&session, &Uri::from(chat), options, &ask).await,
            (Where::Chat, None) => return Err(unfit("`chat` is missing: say to which chat it goes")),
        };
        Ok(shown(&sent.map_err(|error| refused(error, Some(&provider)))?))
    }

    async fn delete(&self, params: wire::DeleteParams) -> Result<Outcome, Refusal> {
        if params.sessions.len() > wire::MOST_DELETED {
            return Err(unfit(format!("{} sessions are deleted at once, and no more", wire::MOST_DELETED)));
        }
        let sessions: Result<Vec<SessionId>, Refusal> = params.sessions.iter().map(|id| session_id(id)).collect();
        let batch = self.management.delete_sessions(&sessions?).await;
        Ok(Outcome::Deleted(wire::DeleteResult {
            deleted: batch.deleted.iter().map(SessionId::to_string).collect(),
            error: batch.first_error.map(|error| error.to_string()),
        }))
    }

    async fn browse(&self, params: wire::BrowseParams) -> Result<Outcome, Refusal> {
        let request =
            BrowseRequest { action: params.action.into(), chosen: params.chosen.map(Uri::from), query: params.query };
        let browsed = self.management.browse(&provider_id(&params.provider_id)?, &request).await.map_err(of_nobody)?;
        let result = match browsed {
            Browsed::Chosen(chosen) => {
                wire::BrowseResult { workspace: Some(rows::workspace(&chosen)), offers: Vec::new() }
            }
            Browsed::Nothing => wire::BrowseResult::default(),
            Browsed::Offered(offers) => wire::BrowseResult {
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
        Ok(Outcome::Browsed(result))
    }

    fn browse_actions(&self) -> Outcome {
        let actions = self.management.browse_actions().into_iter().map(|picked| wire::BrowseAction {
            id: picked.action.id.to_string(),
            label: picked.action.label.to_string(),
            icon: picked.action.icon.to_string(),
            provider_id: picked.action.provider_id.to_string(),
            provider_label: picked.provider_label.to_string(),
        });
        Outcome::BrowseActions(wire::BrowseActionsResult { actions: actions.collect() })
    }

    fn answer_trust(&self, params: wire::AnswerTrustParams) -> Result<(), Refusal> {
        let provider = provider_id(&params.provider_id)?;
        if self.management.registry().get(provider.as_str()).is_none() {
            return Err(of_nobody(ManagementError::UnknownProvider(params.provider_id)));
        }
        let answer = if params.trusted { Trust::Trusted } else { Trust::Refused };
        let kept = self.management.set_trust(provider, Uri::from(params.folder), answer);
        kept.map_err(|error| of_nobody(error.into()))
    }
}

#[async_trait]
impl Visit for Visitor {
    async fn call(&self, call: Call) -> Result<Outcome, Refusal> {
        let management = &self.management;
        let done = match call {
            Call::List(params) => return self.list(params).await,
            Call::Providers => return Ok(self.providers()),
            Call::Types(params) => return self.types(&params),
            Call::TypesForFolder(params) => return Ok(self.types_for_folder(params.folder).await),
            Call::Open(params) => {
                self.running.listed().await;
                return management
                    .open_session(&Uri::from(params.resource))
                    .map(|session| shown(&session))
                    .map_err(of_nobody);
            }
            Call::OpenChat(params) => management.open_chat(&session_id(&params.session)?, &Uri::from(params.chat)),
            Call::OpenNewSessionView => {
                management.open_new_session_view();
                Ok(())
            }
            Call::Restore => {
                self.running.listed().await;
                return Ok(management.restore().map_or(Outcome::Done {}, |session| shown(&session)));
            }
            Call::Create(params) => return self.create(params).await,
            Call::SetSessionType(params) => {
                let (session, session_type) = (session_id(&params.session)?, params.session_type.into());
                let changed = management.set_session_type(&session, &session_type).await;
                return changed.map(|session| shown(&session)).map_err(of_nobody);
            }
            Call::UnsetNewSession => {
                management.unset_new_session().await;
                Ok(())
            }
            Call::SendAndCreateChat(params) => return self.send(params, Where::NewChat).await,
            Call::SendRequest(params) => return self.send(params, Where::Chat).await,
            Call::SetModel(params) => management.set_model(&session_id(&params.session)?, &params.model).await,
            Call::RenameChat(params) => {
                let chat = Uri::from(params.chat);
                management.rename_chat(&session_id(&params.session)?, &chat, &params.title).await
            }
            Call::Archive(params) => management.archive_session(&session_id(&params.session)?).await,
            Call::Unarchive(params) => management.unarchive_session(&session_id(&params.session)?).await,
            Call::Delete(params) => return self.delete(params).await,
            Call::DeleteChat(params) => {
                let chat = Uri::from(params.chat);
                let deleted = management.delete_chat(&session_id(&params.session)?, &chat).await.map_err(of_nobody)?;
                return Ok(Outcome::DeletedChat(wire::DeleteChatResult { deleted }));
            }
            Call::SetRead(params) => {
                let read = if params.read { ReadState::Read } else { ReadState::Unread };
                management.set_read(&session_id(&params.session)?, read).await
            }
            Call::SetActiveProvider(params) => management.set_active_provider(&provider_id(&params.provider_id)?),
            Call::BrowseActions => return Ok(self.browse_actions()),
            Call::Browse(params) => return self.browse(params).await,
            Call::AnswerTrust(params) => return self.answer_trust(params).map(|()| Outcome::Done {}),
            // The host does these itself.
            Call::Subscribe | Call::Unsubscribe => Ok(()),
        };
        done.map(|()| Outcome::Done {}).map_err(of_nobody)
    }

    fn subscribe(&self) -> (wire::SubscribeResult, BoxStream<'static, Arc<str>>) {
        // Each listens before it is looked at, so that nothing is lost in between.
        let frames = self.running.frames.subscribe();
        let told = telling::follow(frames, self.management.observe(|view| view.clone()));
        let result = wire::SubscribeResult { view: rows::view(&self.management.view()) };
        (result, told)
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        let gone = self.running.left(&self.client);
        self.layer.leave();
        if let (Some(gone), Ok(runtime)) = (gone, tokio::runtime::Handle::try_current()) {
            // Its provider would keep a new session that nobody sends any more.
            runtime.spawn(async move { gone.unset_new_session().await });
        }
    }
}

impl fmt::Debug for Visitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visitor").field("client", &self.client).finish_non_exhaustive()
    }
}

/// To which chat something is sent.
enum Where {
    NewChat,
    Chat,
}

/// Knows the answer where the folder is in the list of this host. Otherwise the client is told to ask.
struct Listed(Option<Arc<dyn FolderTrust>>);

#[async_trait]
impl AskTrust for Listed {
    async fn ask(&self, question: &TrustQuestion) -> Option<Trust> {
        let trust = self.0.as_ref().filter(|_| question.provider_id.as_str() == THIS_HOST)?;
        let folder = local_path(question.workspace.uri.as_str()).ok()?;
        trust.is_trusted(&folder).then_some(Trust::Trusted)
    }
}

impl fmt::Debug for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listed").finish_non_exhaustive()
    }
}

fn shown(session: &Session) -> Outcome {
    Outcome::Session(Box::new(wire::SessionResult { session: rows::row(session) }))
}

fn of_nobody(error: ManagementError) -> Refusal {
    refused(error, None)
}

fn session_id(text: &str) -> Result<SessionId, Refusal> {
    SessionId::parse(text).map_err(bad_id)
}

fn provider_id(text: &str) -> Result<ProviderId, Refusal> {
    ProviderId::new(text).map_err(bad_id)
}

fn attached(attached: wire::Attached) -> Result<AttachedContext, Refusal> {
    Ok(match attached {
        wire::Attached::File { uri } => AttachedContext::File { uri: uri.into() },
        wire::Attached::Folder { uri } => AttachedContext::Folder { uri: uri.into() },
        wire::Attached::Selection { uri, first_line, last_line, text } => {
            AttachedContext::Selection { uri: uri.into(), first_line, last_line, text: text.into() }
        }
        wire::Attached::Image { media_type, data } => {
            let data =
                BASE64_STANDARD.decode(data).map_err(|error| unfit(format!("an image is no base64: {error}")))?;
            AttachedContext::Image { media_type: media_type.into(), data: data.into() }
        }
    })
}

/// Where a page ends: what it is sorted by never changes.
fn cursor(session: &Session) -> String {
    format!("{}:{}", session.created_at().0, session.id())
}

fn read_cursor(text: &str) -> Result<(Timestamp, SessionId), Refusal> {
    let read = || {
        let (at, id) = text.split_once(':')?;
        Some((Timestamp(at.parse().ok()?), SessionId::parse(id).ok()?))
    };
    read().ok_or_else(|| unfit("the cursor is none of this list: begin without one"))
}
