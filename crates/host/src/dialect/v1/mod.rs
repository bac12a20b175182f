//! The server side of version 1: the handling of each of its messages.

mod snapshot;

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use grove_core::{ClientId, ModelId, ProviderId, Session, SessionEvent, SessionUri, Timestamp, TurnId};
use grove_wire::invalid_seq::InvalidSeqAction;
use grove_wire::jsonrpc::{self, ErrorObject, Id, Request};
use grove_wire::registry::Registry;
use grove_wire::v1::{self, Method, error_code, project};
use grove_work::{FileError, file_uri, local_path};
use serde::Deserialize;
use serde_json::value::RawValue;

use self::snapshot::{HistorySnapshot, cut, cut_all, share};
use super::Dialect;
use super::answer::{client_id, encode, join, not_initialized, read_params, stopped};
use super::turns::{self, TurnPage, TurnsError, newest};
use super::unnumbered;
use super::x_grove::announcement;
use crate::branch::ChatAddress;
use crate::connection::{Encode, Queue};
use crate::history::{CONTINUE_FIRST, HistoryOpenError, HistoryQuery};
use crate::host::{CreateError, CreateSession, Host};
use crate::sequencer::{
    ActionOrigin, Attach, AttachAnswer, AttachMode, ConnectionId, DirectReply, MissedEvents, ReconnectPosition,
    ReplySink, Subscribe, SubscribeOutcome, SubscriptionTarget, ToSequencer,
};
use crate::session::{self, ClientAction, ClientRequest, ToSession};

/// The default number of turns in an answer to `fetchTurns`.
const DEFAULT_TURNS: u64 = 50;

/// The sessions of other tools in a list, newest first.
const MAX_HISTORY_SESSIONS: usize = 10_000;

/// The host's end of a version-1 connection.
pub(crate) struct Peer {
    host: Host,
    id: ConnectionId,
    queue: Arc<Queue>,
    /// The client's id, once it has sent it.
    client: Option<ClientId>,
}

/// The frame of a notification, if version 1 and the client's version have one for it.
pub(crate) fn notification(
    change: &SessionEvent,
    session: &Session,
    version: u32,
    registry: &Registry,
) -> Option<Arc<str>> {
    let notification = v1::encode::notification(change, session)?;
    if !registry.knows_notification(notification.kind(), version) {
        return None;
    }
    let params = v1::NotificationParams { notification };
    jsonrpc::notification(v1::notify::NOTIFICATION, &params).ok().map(Arc::from)
}

impl Peer {
    pub(crate) fn new(host: Host, id: ConnectionId, queue: Arc<Queue>) -> Self {
        Self { host, id, queue, client: None }
    }

    /// Says whether the client has initialized.
    pub(super) fn has_begun(&self) -> bool {
        self.client.is_some()
    }

    pub(super) fn client(&self) -> Option<&ClientId> {
        self.client.as_ref()
    }

    /// The tree of a session, which in version 1 is that of its main chat.
    pub(super) async fn place(&self, uri: &str) -> Result<ChatAddress, ErrorObject> {
        let session = SessionUri::from(uri);
        match self.host.session(&session).await.map_err(stopped)? {
            Some(_) => Ok((session, Session::MAIN_CHAT.into())),
            None => Err(self.unchangeable(uri, self.missing(uri).await).await),
        }
    }

    /// The error that a session is missing, with the reason if it is known.
    async fn missing(&self, uri: &str) -> ErrorObject {
        let why = match SessionUri::from(uri).id() {
            Some(id) => self.host.why_missing(&id).await,
            None => None,
        };
        match why {
            Some(why) => ErrorObject::new(error_code::SESSION_NOT_FOUND, why),
            None => no_session(uri),
        }
    }

    /// Answers a request, or returns the reply with the error to answer with.
    pub(super) async fn request(
        &mut self,
        request: Request<'_>,
        reply: ReplySink,
    ) -> Result<(), (ReplySink, ErrorObject)> {
        let Request { id, method, params } = request;
        let Some(method) = Method::named(&method) else {
            let error = match self.client {
                Some(_) => ErrorObject::unknown_method(&method),
                None => not_initialized(),
            };
            return Err((reply, error));
        };
        let answer = match method {
            Method::Ping => Ok(encode(&id, &())),
            Method::Initialize | Method::Reconnect if self.client.is_some() => {
                Err(ErrorObject::invalid_request("this connection is initialized already"))
            }
            Method::Initialize => return self.initialize(id, params, reply).await,
            Method::Reconnect => return self.reconnect(id, params, reply).await,
            _ if self.client.is_none() => Err(not_initialized()),
            Method::Subscribe => return self.subscribe(id, params, reply).await,
            Method::CreateSession => self.create_session(params).await.map(|()| encode(&id, &())),
            Method::DisposeSession => self.dispose_session(params).await.map(|()| encode(&id, &())),
            Method::ListSessions => self.list_sessions(params).await.map(|result| encode(&id, &result)),
            Method::FetchTurns => self.fetch_turns(&id, params).await,
            Method::FetchContent => self.fetch_content(params).await.map(|result| encode(&id, &result)),
            Method::BrowseDirectory => self.browse_directory(params).await.map(|result| encode(&id, &result)),
        };
        match answer {
            Ok(text) => {
                reply(Encode::Text(text));
                Ok(())
            }
            Err(error) => Err((reply, error)),
        }
    }

    async fn initialize(
        &mut self,
        id: Id,
        params: Option<&RawValue>,
        reply: ReplySink,
    ) -> Result<(), (ReplySink, ErrorObject)> {
        let checked = read_params::<v1::InitializeParams>(params).and_then(|params| {
            let version = self.host.0.config.registry.negotiate(params.protocol_version);
            let version =
                version.map_err(|error| ErrorObject::new(error_code::UNSUPPORTED_VERSION, error.to_string()))?;
            Ok((client_id(params.client_id)?, version, params.initial_subscriptions.unwrap_or_default()))
        });
        let (client, version, subscriptions) = match checked {
            Ok(checked) => checked,
            Err(error) => return Err((reply, error)),
        };
        let limits = self.host.0.config.limits;
        let folder = self.host.0.config.folders.default_directory.clone();
        let announced = announcement(&self.host);
        let foreign = self.open_all(&subscriptions).await;
        let wanted = subscriptions.clone();
        self.attach(
            client,
            AttachMode::New(Dialect::V1 { version }),
            &subscriptions,
            Box::new(move |attached| {
                let seq = attached.published.seq;
                let cuts = cut_all(&wanted, foreign, &attached, &limits);
                Encode::later(move || {
                    let folder = folder.and_then(|folder| serde_json::to_string(&file_uri(&folder)).ok());
                    let folder = folder.map(|folder| format!(r#","defaultDirectory":{folder}"#)).unwrap_or_default();
                    let meta = serde_json::Value::Object(announced.meta());
                    let snapshots = join(cuts.iter().map(|cut| cut.json()));
                    jsonrpc::response_raw(
                        &id,
                        &format!(
                            r#"{{"protocolVersion":{version},"serverSeq":{seq},"snapshots":[{snapshots}]{folder},"_meta":{meta}}}"#
                        ),
                    )
                })
            }),
            reply,
        )
        .await;
        Ok(())
    }

    async fn reconnect(
        &mut self,
        id: Id,
        params: Option<&RawValue>,
        reply: ReplySink,
    ) -> Result<(), (ReplySink, ErrorObject)> {
        let checked = read_params::<v1::ReconnectParams>(params)
            .and_then(|params| Ok((client_id(params.client_id)?, params.last_seen_server_seq, params.subscriptions)));
        let (client, seen, subscriptions) = match checked {
            Ok(checked) => checked,
            Err(error) => return Err((reply, error)),
        };
        let limits = self.host.0.config.limits;
        let registry = self.host.0.config.registry;
        let foreign = self.open_all(&subscriptions).await;
        let wanted = subscriptions.clone();
        self.attach(
            client,
            AttachMode::Returning {
                seen: ReconnectPosition::UpTo(seen),
                unless_known: Dialect::V1 { version: registry.current },
            },
            &subscriptions,
            Box::new(move |attached| -> Encode {
                match attached.missed {
                    MissedEvents::Together(Some(missed)) => Encode::later(move || {
                        let frames: Vec<_> =
                            missed.iter().filter_map(|(event, dialect)| event.frame(*dialect, &registry)).collect();
                        let actions = join(frames.iter().filter_map(|frame| v1::encode::envelope_in(frame)));
                        jsonrpc::response_raw(&id, &format!(r#"{{"type":"replay","actions":[{actions}]}}"#))
                    }),
                    MissedEvents::Together(None) | MissedEvents::Each(_) => {
                        let cuts = cut_all(&wanted, foreign, &attached, &limits);
                        Encode::later(move || {
                            let snapshots = join(cuts.iter().map(|cut| cut.json()));
                            jsonrpc::response_raw(&id, &format!(r#"{{"type":"snapshot","snapshots":[{snapshots}]}}"#))
                        })
                    }
                }
            }),
            reply,
        )
        .await;
        Ok(())
    }

    async fn attach(
        &mut self,
        client: ClientId,
        how: AttachMode,
        subscriptions: &[String],
        answer: AttachAnswer,
        reply: ReplySink,
    ) {
        self.client = Some(client.clone());
        for uri in subscriptions {
            self.load(uri).await;
        }
        let attach = Attach {
            connection: self.id,
            queue: self.queue.clone(),
            client,
            how,
            subscriptions: subscriptions.iter().map(|uri| wanted(uri)).collect(),
            spellings: Arc::default(),
            answer,
            reply,
        };
        // A stopping host closes the connection; that is the answer.
        self.host.0.sequencer.tell(ToSequencer::Attach(attach)).await.ok();
    }

    /// Loads a session before it is read. A stopping host loads nothing, and says so by itself.
    async fn load(&self, uri: &str) {
        if let SubscriptionTarget::SessionWithMainChat(uri) = wanted(uri)
            && let Some(id) = uri.id()
        {
            self.host.load(&id).await.ok();
        }
    }

    async fn subscribe(
        &mut self,
        id: Id,
        params: Option<&RawValue>,
        reply: ReplySink,
    ) -> Result<(), (ReplySink, ErrorObject)> {
        let uri = match read_params::<v1::SubscribeParams>(params) {
            Ok(params) => params.resource,
            Err(error) => return Err((reply, error)),
        };
        self.load(&uri).await;
        let limits = self.host.0.config.limits;
        match self.opened(&uri, limits.snapshot_bytes).await {
            Ok(Some((foreign, seq))) => {
                let cut = foreign.at(&uri, seq);
                reply(Encode::later(move || jsonrpc::response_raw(&id, &cut.json())));
                return Ok(());
            }
            Ok(None) => {}
            Err(error) => return Err((reply, super::history::not_opened(&error))),
        }
        let missing = self.missing(&uri).await;
        let subscribe = Subscribe {
            connection: self.id,
            wanted: wanted(&uri),
            patience: Duration::ZERO,
            answer: Box::new(move |subscribed| match subscribed {
                SubscribeOutcome::Yes(published) => {
                    let cut = cut(&uri, published, &limits, limits.snapshot_bytes);
                    Encode::later(move || match cut {
                        Some(cut) => jsonrpc::response_raw(&id, &cut.json()),
                        None => jsonrpc::error(Some(&id), &missing),
                    })
                }
                SubscribeOutcome::Unknown => Encode::later(move || jsonrpc::error(Some(&id), &missing)),
                SubscribeOutcome::TooMany => Encode::later(move || {
                    let message = format!("a connection may have {} subscriptions at most", limits.subscriptions);
                    jsonrpc::error(Some(&id), &ErrorObject::invalid_request(message))
                }),
            }),
            reply,
        };
        self.host.0.sequencer.tell(ToSequencer::Subscribe(subscribe)).await.ok();
        Ok(())
    }

    /// Another tool's session. It has no events, so there is nothing to subscribe to.
    async fn opened(&self, uri: &str, bytes: usize) -> Result<Option<(HistorySnapshot, u64)>, HistoryOpenError> {
        let opened = self.host.open_history(&wanted(uri), usize::MAX, bytes).await?;
        Ok(opened.map(|(opened, seq)| (HistorySnapshot::of(&opened.session, bytes), seq)))
    }

    /// Reads every requested session of other tools, in order, when a client connects.
    ///
    /// Unreadable ones are left out, and so are those beyond the subscriptions that a connection may have.
    async fn open_all(&self, uris: &[String]) -> Vec<Option<HistorySnapshot>> {
        let limits = &self.host.0.config.limits;
        let (share, mut left) = (share(limits, uris.len()), limits.subscriptions);
        let mut foreign = Vec::with_capacity(uris.len());
        for uri in uris {
            let opened = match left {
                0 => None,
                _ => self.opened(uri, share).await.unwrap_or_else(|error| {
                    tracing::debug!(%error, %uri, "a session of another tool is left out");
                    None
                }),
            };
            left -= usize::from(opened.is_some());
            foreign.push(opened.map(|(foreign, _)| foreign));
        }
        foreign
    }

    /// The error that another tool's session cannot be changed, or the given one.
    async fn unchangeable(&self, uri: &str, otherwise: ErrorObject) -> ErrorObject {
        match self.host.is_history(&wanted(uri)).await {
            true => ErrorObject::new(otherwise.code, CONTINUE_FIRST),
            false => otherwise,
        }
    }

    async fn create_session(&self, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        let params: v1::CreateSessionParams = read_params(params)?;
        // It would hide another tool's session of this name.
        if self.host.is_history(&wanted(&params.session)).await {
            return Err(ErrorObject::new(error_code::SESSION_EXISTS, CONTINUE_FIRST));
        }
        let wanted = CreateSession {
            uri: params.session.into(),
            provider: params.provider.map(ProviderId::from),
            model: params.model.map(ModelId::from),
            working_directories: params.working_directory.into_iter().collect(),
            config: None,
            store: None,
        };
        self.host.create_session(wanted).await.map_err(|error| {
            let code = match &error {
                CreateError::BadUri(_)
                | CreateError::ReservedUri(_)
                | CreateError::UnknownModel { .. }
                | CreateError::Store(_)
                | CreateError::WorkingDirectory(_)
                | CreateError::TooManyDirectories(_) => jsonrpc::code::INVALID_PARAMS,
                CreateError::UnknownProvider(_) => error_code::PROVIDER_NOT_FOUND,
                CreateError::Exists(_)
                | CreateError::IdTaken { .. }
                | CreateError::BeingImported(_)
                | CreateError::Kept(_) => error_code::SESSION_EXISTS,
                CreateError::Folder(_)
                | CreateError::Provider { .. }
                | CreateError::BeingCopied(_)
                | CreateError::IdGenerationError(_)
                | CreateError::NotStored(_)
                | CreateError::HostStopped(_) => jsonrpc::code::INTERNAL,
            };
            ErrorObject::new(code, error.to_string())
        })
    }

    async fn dispose_session(&self, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        let params: v1::DisposeSessionParams = read_params(params)?;
        let uri = SessionUri::from(params.session);
        match self.host.dispose_session(&uri).await.map_err(stopped)? {
            true => Ok(()),
            false => Err(self.unchangeable(uri.as_str(), no_session(uri.as_str())).await),
        }
    }

    async fn list_sessions(&self, params: Option<&RawValue>) -> Result<v1::ListSessionsResult, ErrorObject> {
        let params: v1::ListSessionsParams = match params {
            Some(params) => read_params(Some(params))?,
            None => Default::default(),
        };
        let mut filter = params.filter.unwrap_or_default();
        // A folder may be written as a path or as a URI; they are compared as paths.
        let folder = filter.working_directory.take().map(|folder| local_path(&folder).ok());
        let summaries = self.host.0.sequencer.read(|published, _| {
            let summary = |(session, failed): (&Session, bool)| {
                let summary = project::summary(session);
                let status = if failed { v1::SessionStatus::Error } else { summary.status };
                v1::SessionSummary { status, ..summary }
            };
            published.listed().map(summary).collect::<Vec<_>>()
        });
        let mut sessions = summaries.await.map_err(stopped)?;
        if filter.history == Some(true)
            && let Some(history) = self.host.history()
        {
            let since = filter.modified_since.map(Timestamp);
            let query = HistoryQuery {
                source: filter.provider.clone(),
                since,
                limit: MAX_HISTORY_SESSIONS,
                ..HistoryQuery::default()
            };
            let rows = history.list(query).await.map_err(|error| super::history::unavailable(&error))?;
            sessions.extend(rows.iter().map(|row| project::summary(&row.session)));
        }
        sessions.retain(|summary| {
            let path = || summary.working_directory.as_deref().and_then(|folder| local_path(folder).ok());
            filter.takes(summary) && folder.as_ref().is_none_or(|folder| folder.is_some() && path() == *folder)
        });
        sessions.sort_by(|a, b| b.modified_at.cmp(&a.modified_at).then_with(|| a.resource.cmp(&b.resource)));
        Ok(v1::ListSessionsResult { sessions })
    }

    async fn fetch_turns(&self, id: &Id, params: Option<&RawValue>) -> Result<String, ErrorObject> {
        let params: v1::FetchTurnsParams = read_params(params)?;
        self.load(&params.session).await;
        let uri = SessionUri::from(params.session.as_str());
        let before = params.before.map(TurnId::from);
        let limits = self.host.0.config.limits;
        let most = params.limit.unwrap_or(DEFAULT_TURNS).min(limits.snapshot_turns as u64) as usize;
        let found = turns::find(&self.host, SubscriptionTarget::SessionWithMainChat(uri), before, most).await.map_err(
            |error| match error {
                TurnsError::NoChat => no_session(&params.session),
                TurnsError::HostStopped(error) => stopped(error),
                error @ (TurnsError::NoTurn(_) | TurnsError::Unreadable(_) | TurnsError::History(_)) => {
                    ErrorObject::invalid_params(error.to_string())
                }
            },
        )?;
        let TurnPage { session, turns, older } = found;
        let window = newest(&turns, |turn| project::turn_json(&session, turn), limits.snapshot_bytes);
        let has_more = older || window.len() < turns.len();
        let turns = window.join(",");
        Ok(jsonrpc::response_raw(id, &format!(r#"{{"turns":[{turns}],"hasMore":{has_more}}}"#)))
    }

    async fn fetch_content(&self, params: Option<&RawValue>) -> Result<v1::FetchContentResult, ErrorObject> {
        let params: v1::FetchContentParams = read_params(params)?;
        let not_found = |message: String| ErrorObject::new(error_code::CONTENT_NOT_FOUND, message);
        let Some((session, id)) = project::parse_content_uri(&params.uri) else {
            let path = local_path(&params.uri).map_err(file_error)?;
            let policy = self.host.policy().await.map_err(stopped)?;
            let most = self.host.0.config.limits.fetch_bytes;
            let content = grove_work::read(&policy, &path, most).await.map_err(file_error)?;
            return Ok(content_result(content.bytes, None));
        };
        let known = self.host.content_type(&session, &id).await.map_err(stopped)?;
        let mime_type = known.ok_or_else(|| not_found(format!("there is no content {}", params.uri)))?;
        match self.host.content(&session, &id).await {
            Ok(bytes) => Ok(content_result(bytes, mime_type)),
            Err(error) => Err(not_found(error.to_string())),
        }
    }

    async fn browse_directory(&self, params: Option<&RawValue>) -> Result<v1::BrowseDirectoryResult, ErrorObject> {
        let params: v1::BrowseDirectoryParams = read_params(params)?;
        let path = local_path(&params.uri).map_err(file_error)?;
        let policy = self.host.policy().await.map_err(stopped)?;
        let most = self.host.0.config.limits.folder_entries;
        let entries = grove_work::list(&policy, &path, most).await.map_err(file_error)?;
        let entries = entries.into_iter().map(|grove_work::FolderEntry { name, kind }| {
            let kind = match kind {
                grove_work::FileKind::Folder => v1::EntryKind::Directory,
                grove_work::FileKind::File | grove_work::FileKind::Link => v1::EntryKind::File,
            };
            v1::DirectoryEntry { name, kind }
        });
        Ok(v1::BrowseDirectoryResult { entries: entries.collect() })
    }

    pub(super) async fn notified(&self, method: &str, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        let Some(client) = &self.client else { return Err(not_initialized()) };
        match method {
            v1::notify::UNSUBSCRIBE => {
                let params: v1::UnsubscribeParams = read_params(params)?;
                let message = ToSequencer::Unsubscribe(self.id, wanted(&params.resource));
                self.host.0.sequencer.tell(message).await.map_err(stopped)?;
            }
            v1::notify::DISPATCH_ACTION => {
                let params = match read_params::<v1::DispatchActionParams>(params) {
                    Ok(params) => params,
                    Err(error) => {
                        let refusal = InvalidSeqAction::refusal_v1;
                        return unnumbered::refuse(&self.host, self.id, client.clone(), params, error, refusal).await;
                    }
                };
                let origin = ActionOrigin { client: client.clone(), client_seq: params.client_seq, extra: None };
                self.dispatch(origin, params.action).await?;
            }
            other => return Err(ErrorObject::unknown_method(other)),
        }
        Ok(())
    }

    /// Sends an action to its session. One for an unknown session is ignored without an echo.
    async fn dispatch(&self, origin: ActionOrigin, raw: Box<RawValue>) -> Result<(), ErrorObject> {
        // Every member is optional: an action that names a session is answered whatever else is wrong with it.
        #[derive(Deserialize)]
        struct Head {
            #[serde(rename = "type", default)]
            kind: serde_json::Value,
            #[serde(default)]
            session: serde_json::Value,
        }
        let head: Head =
            serde_json::from_str(raw.get()).map_err(|error| ErrorObject::invalid_params(error.to_string()))?;
        let command = v1::Action::parse(&raw)
            .map_err(|error| error.to_string())
            .and_then(|action| v1::decode::command(action).map_err(|error| error.to_string()));
        let connection = self.id;
        let answer = {
            let origin = origin.to_v1();
            move |reply: session::DispatchOutcome| DirectReply {
                connection,
                frame: Box::new(move |server_seq| {
                    let rejection_reason = match reply {
                        session::DispatchOutcome::Refused(reason) => Some(reason),
                        session::DispatchOutcome::NoChange => None,
                    };
                    let envelope =
                        v1::ActionEnvelope { action: raw, server_seq, origin: Some(origin), rejection_reason };
                    v1::encode::action_frame(&envelope).ok().map(Arc::from)
                }),
                answer: None,
            }
        };
        match (head.session.as_str(), head.kind.as_str()) {
            (Some(uri), _) => {
                let Some(session) = self.host.session(&SessionUri::from(uri)).await.map_err(stopped)? else {
                    if self.host.is_history(&wanted(uri)).await {
                        let refused = answer(session::DispatchOutcome::Refused(CONTINUE_FIRST.to_owned()));
                        self.host.0.sequencer.tell(ToSequencer::SendDirect(refused)).await.map_err(stopped)?;
                    }
                    return Ok(());
                };
                let dispatch = ClientAction {
                    client_request: command.map(|command| ClientRequest::Command(Box::new(command))),
                    origin,
                    answer: Box::new(answer),
                };
                // A session that ends at this moment counts as unknown.
                session.inbox.send(ToSession::ClientAction(dispatch)).await.ok();
            }
            (None, Some(kind)) if kind.starts_with("root/") => {
                let reason = command.err().unwrap_or_else(|| format!("only the host may dispatch {kind}"));
                let refused = ToSequencer::SendDirect(answer(session::DispatchOutcome::Refused(reason)));
                self.host.0.sequencer.tell(refused).await.map_err(stopped)?;
            }
            (None, _) => return Err(ErrorObject::invalid_params("the action names no session")),
        }
        Ok(())
    }
}

fn no_session(uri: &str) -> ErrorObject {
    let uri: String = uri.chars().take(200).collect();
    ErrorObject::new(error_code::SESSION_NOT_FOUND, format!("there is no session {uri}"))
}

fn file_error(error: FileError) -> ErrorObject {
    let code = match &error {
        FileError::NotAFileUri(_) | FileError::LongPath { .. } => jsonrpc::code::INVALID_PARAMS,
        FileError::NotFound { .. }
        | FileError::Outside { .. }
        | FileError::PermissionDenied { .. }
        | FileError::NotAFolder { .. }
        | FileError::NotAFile { .. }
        | FileError::TooManyEntries { .. }
        | FileError::TooLarge { .. }
        | FileError::Io { .. } => error_code::CONTENT_NOT_FOUND,
    };
    ErrorObject::new(code, error.to_string())
}

fn wanted(uri: &str) -> SubscriptionTarget {
    if v1::is_root(uri) { SubscriptionTarget::Root } else { SubscriptionTarget::SessionWithMainChat(uri.into()) }
}

fn content_result(bytes: Vec<u8>, mime_type: Option<String>) -> v1::FetchContentResult {
    match String::from_utf8(bytes) {
        Ok(data) => v1::FetchContentResult { data, encoding: v1::Encoding::Utf8, mime_type },
        Err(not_text) => v1::FetchContentResult {
            data: BASE64_STANDARD.encode(not_text.as_bytes()),
            encoding: v1::Encoding::Base64,
            mime_type,
        },
    }
}
