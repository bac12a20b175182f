//! Version 1, served: what each of its messages does here.

mod snapshot;

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use grove_core::{ClientId, ModelId, ProviderId, Session, SessionEvent, SessionId, SessionUri, Turn, TurnId};
use grove_tree::turns::Limit;
use grove_wire::jsonrpc::{self, ErrorObject, Id, Invalid, Message, Request};
use grove_wire::registry::Registry;
use grove_wire::v1::{self, Method, error_code, project};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use self::snapshot::{cut, cut_all, newest};
use super::Dialect;
use crate::connection::{Encode, Queue};
use crate::files::{self, FileError};
use crate::host::{CreateError, CreateSession, Host};
use crate::sequencer::{
    Attach, AttachAnswer, AttachAs, ConnectionId, Origin, Published, Refusal, Reply, SessionOrRoot, Stopped, Subscribe,
    Subscribed, ToSequencer,
};
use crate::session::{Dispatch, ToSession};
use crate::store::{content, session_file};

/// How many turns `fetchTurns` gives when nothing is said.
const DEFAULT_TURNS: u64 = 50;

/// The host's end of a version-1 connection.
pub(crate) struct Peer {
    host: Host,
    id: ConnectionId,
    queue: Arc<Queue>,
    /// Who the client is, once it has said so.
    client: Option<ClientId>,
}

/// The frame of a notification, where version 1 and the client's version have one for this.
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

    /// Handles one message. Its effect has taken place, or has its place, when this returns.
    pub(crate) async fn handle(&mut self, message: Result<Message<'_>, Invalid>, reply: Reply) {
        match message {
            Ok(Message::Request(request)) => {
                let id = request.id.clone();
                if let Err((reply, error)) = self.request(request, reply).await {
                    reply(Box::new(move || jsonrpc::error(Some(&id), &error)));
                }
            }
            Ok(Message::Notification { method, params }) => {
                if let Err(error) = self.notified(&method, params).await {
                    // Nobody waits for an answer to a notification; the log is all there is.
                    tracing::debug!(%error, %method, "a client's notification was not understood");
                }
            }
            // The host asks version-1 clients nothing, so no answer is awaited.
            Ok(Message::Response { .. }) => {}
            Err(Invalid { id, error }) => reply(Box::new(move || jsonrpc::error(id.as_ref(), &error))),
        }
    }

    /// Answers a request, or gives the reply back with the error to answer with.
    async fn request(&mut self, request: Request<'_>, reply: Reply) -> Result<(), (Reply, ErrorObject)> {
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
                reply(Box::new(move || text));
                Ok(())
            }
            Err(error) => Err((reply, error)),
        }
    }

    async fn initialize(
        &mut self,
        id: Id,
        params: Option<&RawValue>,
        reply: Reply,
    ) -> Result<(), (Reply, ErrorObject)> {
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
        let wanted = subscriptions.clone();
        self.attach(
            client,
            AttachAs::New(Dialect::V1 { version }),
            &subscriptions,
            Box::new(move |attached| {
                let seq = attached.published.seq;
                let cuts = cut_all(&wanted, &attached, &limits);
                Box::new(move || {
                    let folder = folder.and_then(|folder| serde_json::to_string(&file_uri(&folder)).ok());
                    let folder = folder.map(|folder| format!(r#","defaultDirectory":{folder}"#)).unwrap_or_default();
                    let snapshots = join(cuts.iter().map(|cut| cut.json()));
                    jsonrpc::response_raw(
                        &id,
                        &format!(
                            r#"{{"protocolVersion":{version},"serverSeq":{seq},"snapshots":[{snapshots}]{folder}}}"#
                        ),
                    )
                })
            }),
            reply,
        )
        .await;
        Ok(())
    }

    async fn reconnect(&mut self, id: Id, params: Option<&RawValue>, reply: Reply) -> Result<(), (Reply, ErrorObject)> {
        let checked = read_params::<v1::ReconnectParams>(params)
            .and_then(|params| Ok((client_id(params.client_id)?, params.last_seen_server_seq, params.subscriptions)));
        let (client, seen, subscriptions) = match checked {
            Ok(checked) => checked,
            Err(error) => return Err((reply, error)),
        };
        let limits = self.host.0.config.limits;
        let registry = self.host.0.config.registry;
        let wanted = subscriptions.clone();
        self.attach(
            client,
            AttachAs::Returning { seen, unless_known: Dialect::V1 { version: registry.current } },
            &subscriptions,
            Box::new(move |attached| -> Encode {
                let dialect = attached.dialect;
                match attached.missed {
                    Some(missed) => Box::new(move || {
                        let frames: Vec<_> =
                            missed.iter().filter_map(|event| event.frame(dialect, &registry)).collect();
                        let actions = join(frames.iter().filter_map(|frame| v1::encode::envelope_in(frame)));
                        jsonrpc::response_raw(&id, &format!(r#"{{"type":"replay","actions":[{actions}]}}"#))
                    }),
                    None => {
                        let cuts = cut_all(&wanted, &attached, &limits);
                        Box::new(move || {
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
        how: AttachAs,
        subscriptions: &[String],
        answer: AttachAnswer,
        reply: Reply,
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
            subscriptions: subscriptions.iter().map(|uri| resource(uri)).collect(),
            answer,
            reply,
        };
        // A host that is stopping closes the connection; that is the answer.
        self.host.0.sequencer.tell(ToSequencer::Attach(attach)).await.ok();
    }

    /// Loads a session before it is looked at. A host that is stopping loads nothing, and says so by itself.
    async fn load(&self, uri: &str) {
        if let SessionOrRoot::Session(uri) = resource(uri)
            && let Some(id) = uri.id()
        {
            self.host.load(&id).await.ok();
        }
    }

    async fn subscribe(&mut self, id: Id, params: Option<&RawValue>, reply: Reply) -> Result<(), (Reply, ErrorObject)> {
        let uri = match read_params::<v1::SubscribeParams>(params) {
            Ok(params) => params.resource,
            Err(error) => return Err((reply, error)),
        };
        self.load(&uri).await;
        let limits = self.host.0.config.limits;
        let subscribe = Subscribe {
            connection: self.id,
            resource: resource(&uri),
            answer: Box::new(move |subscribed| match subscribed {
                Subscribed::Yes(published) => {
                    let cut = cut(&uri, published, &limits, limits.snapshot_bytes);
                    Box::new(move || match cut {
                        Some(cut) => jsonrpc::response_raw(&id, &cut.json()),
                        None => jsonrpc::error(Some(&id), &no_session(&uri)),
                    })
                }
                Subscribed::Unknown => Box::new(move || jsonrpc::error(Some(&id), &no_session(&uri))),
                Subscribed::TooMany => Box::new(move || {
                    let message = format!("a connection may have {} subscriptions at most", limits.subscriptions);
                    jsonrpc::error(Some(&id), &ErrorObject::invalid_request(message))
                }),
            }),
            reply,
        };
        self.host.0.sequencer.tell(ToSequencer::Subscribe(subscribe)).await.ok();
        Ok(())
    }

    async fn create_session(&self, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        let params: v1::CreateSessionParams = read_params(params)?;
        let wanted = CreateSession {
            uri: params.session.into(),
            provider: params.provider.map(ProviderId::from),
            model: params.model.map(ModelId::from),
            working_directory: params.working_directory,
        };
        self.host.create_session(wanted).await.map_err(|error| {
            let code = match &error {
                CreateError::BadUri(_) | CreateError::UnknownModel { .. } | CreateError::WorkingDirectory(_) => {
                    jsonrpc::code::INVALID_PARAMS
                }
                CreateError::UnknownProvider(_) => error_code::PROVIDER_NOT_FOUND,
                CreateError::Exists(_) => error_code::SESSION_EXISTS,
                CreateError::Folder(_) | CreateError::NotStored(_) | CreateError::Stopped(_) => jsonrpc::code::INTERNAL,
            };
            ErrorObject::new(code, error.to_string())
        })
    }

    async fn dispose_session(&self, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        let params: v1::DisposeSessionParams = read_params(params)?;
        let uri = SessionUri::from(params.session);
        match self.host.dispose_session(&uri).await.map_err(stopped)? {
            true => Ok(()),
            false => Err(no_session(uri.as_str())),
        }
    }

    async fn list_sessions(&self, params: Option<&RawValue>) -> Result<v1::ListSessionsResult, ErrorObject> {
        let params: v1::ListSessionsParams = match params {
            Some(params) => read_params(Some(params))?,
            None => Default::default(),
        };
        let mut filter = params.filter.unwrap_or_default();
        // A folder may be written as a path or as a URI; the path behind it decides.
        let folder = filter.working_directory.take().map(|folder| files::local_path(&folder).ok());
        let summaries = self.host.0.sequencer.read(|published, _| {
            let loaded = published.state.sessions.values().map(project::summary);
            let cold = published.cold.values().map(|cold| {
                let summary = project::summary(&cold.session);
                let status = if cold.failed { v1::SessionStatus::Error } else { summary.status };
                v1::SessionSummary { status, ..summary }
            });
            loaded.chain(cold).collect::<Vec<_>>()
        });
        let mut sessions = summaries.await.map_err(stopped)?;
        sessions.retain(|summary| {
            let path = || summary.working_directory.as_deref().and_then(|folder| files::local_path(folder).ok());
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
        let look = {
            let before = before.clone();
            move |published: &Published, _| look_for_turns(published, &uri, before.as_ref(), most)
        };
        let found = match self.host.0.sequencer.read(look).await.map_err(stopped)?? {
            Turns::Here(found) => found,
            // The rest is in the session's folder.
            Turns::Stored { session, before, here } => {
                let limit = Limit { turns: most - here.len(), bytes: limits.snapshot_bytes as u64 };
                let fs = self.host.0.env.sessions.as_ref();
                let window = session_file::read_turns(fs, &session, before.as_ref(), limit).await;
                let window = window.map_err(|error| ErrorObject::invalid_params(error.to_string()))?;
                let turns = window.turns.into_iter().chain(here).collect();
                FoundTurns { session, turns, older: window.older }
            }
        };
        let FoundTurns { session, turns, older } = found;
        let window = newest(&turns, |turn| project::turn_json(&session, turn), limits.snapshot_bytes);
        let has_more = older || window.len() < turns.len();
        let turns = window.join(",");
        Ok(jsonrpc::response_raw(id, &format!(r#"{{"turns":[{turns}],"hasMore":{has_more}}}"#)))
    }

    async fn fetch_content(&self, params: Option<&RawValue>) -> Result<v1::FetchContentResult, ErrorObject> {
        let params: v1::FetchContentParams = read_params(params)?;
        let not_found = |message: String| ErrorObject::new(error_code::CONTENT_NOT_FOUND, message);
        let Some((session, id)) = project::parse_content_uri(&params.uri) else {
            let folders = self.host.working_directories().await.map_err(stopped)?;
            let config = &self.host.0.config;
            let bytes =
                files::read(&params.uri, &config.folders, &folders, &config.limits).await.map_err(file_error)?;
            return Ok(content_result(bytes, None));
        };
        self.host.load(&session).await.map_err(stopped)?;
        let known = self.host.0.sequencer.read({
            let (session, id) = (session.clone(), id.clone());
            move |published, _| mime_type(published, &session, &id)
        });
        let mime_type =
            known.await.map_err(stopped)?.ok_or_else(|| not_found(format!("there is no content {}", params.uri)))?;
        match content::get(self.host.0.env.sessions.as_ref(), &session, &id).await {
            Ok(bytes) => Ok(content_result(bytes, mime_type)),
            Err(error) => Err(not_found(error.to_string())),
        }
    }

    async fn browse_directory(&self, params: Option<&RawValue>) -> Result<v1::BrowseDirectoryResult, ErrorObject> {
        let params: v1::BrowseDirectoryParams = read_params(params)?;
        let folders = self.host.working_directories().await.map_err(stopped)?;
        let config = &self.host.0.config;
        let entries =
            files::browse(&params.uri, &config.folders, &folders, &config.limits).await.map_err(file_error)?;
        Ok(v1::BrowseDirectoryResult { entries })
    }

    async fn notified(&self, method: &str, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        let Some(client) = &self.client else { return Err(not_initialized()) };
        match method {
            v1::notify::UNSUBSCRIBE => {
                let params: v1::UnsubscribeParams = read_params(params)?;
                let message = ToSequencer::Unsubscribe(self.id, resource(&params.resource));
                self.host.0.sequencer.tell(message).await.map_err(stopped)?;
            }
            v1::notify::DISPATCH_ACTION => {
                let params: v1::DispatchActionParams = read_params(params)?;
                let origin = Origin { client: client.clone(), client_seq: params.client_seq };
                self.dispatch(origin, params.action).await?;
            }
            other => return Err(ErrorObject::unknown_method(other)),
        }
        Ok(())
    }

    /// Takes an action to its session. One for an unknown session is ignored without an echo.
    async fn dispatch(&self, origin: Origin, raw: Box<RawValue>) -> Result<(), ErrorObject> {
        // Anything may stand here: an action that names a session is answered whatever else is wrong with it.
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
        let refuse = {
            let origin = origin.to_v1();
            move |reason: String| Refusal {
                connection,
                frame: Box::new(move |server_seq| {
                    let envelope = v1::ActionEnvelope {
                        action: raw,
                        server_seq,
                        origin: Some(origin),
                        rejection_reason: Some(reason),
                    };
                    v1::encode::action_frame(&envelope).ok().map(Arc::from)
                }),
            }
        };
        match (head.session.as_str(), head.kind.as_str()) {
            (Some(uri), _) => {
                let session = self.host.session(&SessionUri::from(uri)).await.map_err(stopped)?;
                let Some(session) = session else { return Ok(()) };
                let dispatch = Dispatch { command, origin, refuse: Box::new(refuse) };
                // A session that ends at this moment is unknown already.
                session.inbox.send(ToSession::Dispatch(dispatch)).await.ok();
            }
            (None, Some(kind)) if kind.starts_with("root/") => {
                let reason = command.err().unwrap_or_else(|| format!("only the host may dispatch {kind}"));
                self.host.0.sequencer.tell(ToSequencer::Refuse(refuse(reason))).await.map_err(stopped)?;
            }
            (None, _) => return Err(ErrorObject::invalid_params("the action names no session")),
        }
        Ok(())
    }
}

fn not_initialized() -> ErrorObject {
    ErrorObject::invalid_request("send `initialize` or `reconnect` first")
}

fn no_session(uri: &str) -> ErrorObject {
    let uri: String = uri.chars().take(200).collect();
    ErrorObject::new(error_code::SESSION_NOT_FOUND, format!("there is no session {uri}"))
}

fn stopped(stopped: Stopped) -> ErrorObject {
    ErrorObject::internal(stopped.to_string())
}

fn file_error(error: FileError) -> ErrorObject {
    let code = match &error {
        FileError::NotAFileUri(_) => jsonrpc::code::INVALID_PARAMS,
        FileError::Io { .. }
        | FileError::Outside(_)
        | FileError::NotAFolder(_)
        | FileError::NotAFile(_)
        | FileError::TooManyEntries { .. }
        | FileError::TooLarge { .. } => error_code::CONTENT_NOT_FOUND,
    };
    ErrorObject::new(code, error.to_string())
}

fn read_params<P: DeserializeOwned>(params: Option<&RawValue>) -> Result<P, ErrorObject> {
    let params = params.ok_or_else(|| ErrorObject::invalid_params("params are missing"))?;
    serde_json::from_str(params.get()).map_err(|error| ErrorObject::invalid_params(format!("params: {error}")))
}

fn client_id(id: String) -> Result<ClientId, ErrorObject> {
    const MOST: usize = 256;
    if id.is_empty() || id.len() > MOST {
        return Err(ErrorObject::invalid_params(format!("`clientId` must have 1 to {MOST} bytes")));
    }
    Ok(id.into())
}

fn resource(uri: &str) -> SessionOrRoot {
    if v1::is_root(uri) { SessionOrRoot::Root } else { SessionOrRoot::Session(uri.into()) }
}

fn file_uri(path: &std::path::Path) -> String {
    const KEEP: &percent_encoding::AsciiSet =
        &percent_encoding::NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    let path = path.to_string_lossy();
    format!("file://{}", percent_encoding::utf8_percent_encode(&path, KEEP))
}

fn encode<R: serde::Serialize>(id: &Id, result: &R) -> String {
    jsonrpc::response(id, result)
        .unwrap_or_else(|error| jsonrpc::error(Some(id), &ErrorObject::internal(error.to_string())))
}

fn join<T: AsRef<str>>(items: impl Iterator<Item = T>) -> String {
    let mut joined = String::new();
    for item in items {
        if !joined.is_empty() {
            joined.push(',');
        }
        joined.push_str(item.as_ref());
    }
    joined
}

/// Turns that were asked for.
struct FoundTurns {
    session: SessionId,
    turns: Vec<Arc<Turn>>,
    older: bool,
}

/// Where they are.
enum Turns {
    Here(FoundTurns),
    /// In the session's folder, before a turn; `here` are those that come behind them.
    Stored {
        session: SessionId,
        before: Option<TurnId>,
        here: Vec<Arc<Turn>>,
    },
}

fn look_for_turns(
    published: &Published,
    uri: &SessionUri,
    before: Option<&TurnId>,
    most: usize,
) -> Result<Turns, ErrorObject> {
    let session = published.session_at(uri).ok_or_else(|| no_session(uri.as_str()))?;
    let id = session.id.clone();
    let Some(chat) = session.main_chat() else {
        return Ok(Turns::Here(FoundTurns { session: id, turns: Vec::new(), older: false }));
    };
    let end = match before {
        None => Some(chat.turns.len()),
        // The active turn comes after all the others.
        Some(before) if chat.active_turn(before).is_some() => Some(chat.turns.len()),
        Some(before) => chat.position(before),
    };
    match end {
        Some(end) if end >= most || !chat.has_older_turns => {
            let start = end.saturating_sub(most);
            let older = start > 0 || chat.has_older_turns;
            Ok(Turns::Here(FoundTurns { session: id, turns: chat.turns[start..end].to_vec(), older }))
        }
        // Where older turns are stored, the first one here was read from there.
        Some(end) => {
            let before = chat.turns.first().map(|turn| turn.id.clone());
            Ok(Turns::Stored { session: id, before, here: chat.turns[..end].to_vec() })
        }
        None if chat.has_older_turns => Ok(Turns::Stored { session: id, before: before.cloned(), here: Vec::new() }),
        None => {
            let before = before.map(ToString::to_string).unwrap_or_default();
            Err(ErrorObject::invalid_params(format!("the session has no turn {before}")))
        }
    }
}

/// What kind of content this is, as far as a turn that is loaded says so; `None` where there is no such session.
fn mime_type(published: &Published, session: &SessionId, content: &grove_core::ContentId) -> Option<Option<String>> {
    let session = published.state.sessions.get(session)?;
    let finished = session.chats.iter().flat_map(|chat| &chat.turns).flat_map(|turn| &turn.parts);
    let active = session.chats.iter().filter_map(|chat| chat.active.as_deref()).flat_map(|turn| turn.parts());
    let named = finished.chain(active).find_map(|part| match part {
        grove_core::Part::Content(found) if found.id == *content => Some(found.mime_type.clone()),
        _ => None,
    });
    Some(named.flatten())
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
