//! A host that is not ours: it uses the protocol's own types and keeps its states by the protocol's own reducers, so it
//! sends and accepts the same as other hosts. Its names follow the protocol's text (`ahp-session:/…`, `ahp-chat:/…`),
//! and of all requests it supports the few that every host has.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ahp::reducers::{ReduceOutcome, apply_action_to_chat, apply_action_to_session};
use ahp_types::actions::{ActionEnvelope, ActionOrigin, StateAction};
use ahp_types::commands::{
    CreateSessionParams, DispatchActionParams, InitializeParams, InitializeResult, ListSessionsResult, SubscribeParams,
    SubscribeResult,
};
use ahp_types::notifications::{SessionAddedParams, SessionRemovedParams, SessionSummaryChangedParams};
use ahp_types::state::{ChatState, SessionState, SessionSummary};
use futures_util::{SinkExt, StreamExt};
use grove_client::Endpoint;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio_tungstenite::tungstenite::Message;

const ROOT: &str = "ahp-root://";
const AT: &str = "2026-01-01T00:00:00.000Z";

/// An independent host on its own port.
#[derive(Clone)]
pub(super) struct IndependentHost {
    pub(super) endpoint: Endpoint,
    inner: Arc<Inner>,
}

struct Inner {
    hosted: Mutex<Hosted>,
    /// A tool may run.
    approved: Notify,
}

#[derive(Default)]
struct Hosted {
    versions: Vec<&'static str>,
    rows: BTreeMap<String, Row>,
    last_seq: u64,
    connections: Vec<Connection>,
    made: u64,
    /// Announcements of changed rows, while they are held back.
    held_back: Option<Vec<Value>>,
    /// New sessions that are not in its list yet, if it lists late.
    unlisted: Option<Vec<String>>,
    /// Set if its agents never become ready by themselves.
    stalls: bool,
}

struct Row {
    summary: SessionSummary,
    session: SessionState,
    chat: ChatState,
}

struct Connection {
    number: u64,
    client_id: String,
    out: mpsc::UnboundedSender<String>,
    subscribed: HashSet<String>,
}

/// A message, checked by the protocol's own type.
fn checked<T: DeserializeOwned + Serialize>(value: Value) -> Value {
    serde_json::to_value(serde_json::from_value::<T>(value).unwrap()).unwrap()
}

type RpcOutcome = Result<Value, Value>;

impl IndependentHost {
    pub(super) async fn start(versions: &[&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Endpoint::tcp(&format!("ws://{}/", listener.local_addr().unwrap()), None).unwrap();
        let hosted = Hosted { versions: versions.to_vec(), ..Hosted::default() };
        let host = Self { endpoint, inner: Arc::new(Inner { hosted: Mutex::new(hosted), approved: Notify::new() }) };
        tokio::spawn({
            let host = host.clone();
            async move {
                let mut number = 0;
                while let Ok((stream, _)) = listener.accept().await {
                    number += 1;
                    tokio::spawn(host.clone().serve(stream, number));
                }
            }
        });
        host
    }

    /// From now on it speaks these versions.
    pub(super) fn upgrade(&self, versions: &[&'static str]) {
        self.inner.hosted.lock().unwrap().versions = versions.to_vec();
    }

    /// From now on it does not announce changed rows of its list.
    pub(super) fn hold_back_the_list(&self) {
        self.inner.hosted.lock().unwrap().held_back = Some(Vec::new());
    }

    /// Announces what was held back.
    pub(super) fn tell_the_list(&self) {
        let mut hosted = self.inner.hosted.lock().unwrap();
        for changed in hosted.held_back.take().unwrap_or_default() {
            hosted.notify("root/sessionSummaryChanged", changed);
        }
    }

    /// From now on new sessions are in no list.
    pub(super) fn list_late(&self) {
        self.inner.hosted.lock().unwrap().unlisted = Some(Vec::new());
    }

    /// Lists new sessions, including those that were held back.
    pub(super) fn list_now(&self) {
        let mut hosted = self.inner.hosted.lock().unwrap();
        for session in hosted.unlisted.take().unwrap_or_default() {
            hosted.tell_added(&session);
        }
    }

    /// Creates a session there that is listed at once.
    pub(super) fn list_another(&self, session: &str) {
        let mut hosted = self.inner.hosted.lock().unwrap();
        let unlisted = hosted.unlisted.take();
        hosted.create(session, "file:///srv/app");
        hosted.unlisted = unlisted;
    }

    /// From now on the agent of a session that a client creates is not ready by itself.
    pub(super) fn stall(&self) {
        self.inner.hosted.lock().unwrap().stalls = true;
    }

    /// The sessions that it has.
    pub(super) fn sessions(&self) -> Vec<String> {
        self.inner.hosted.lock().unwrap().rows.keys().cloned().collect()
    }

    /// Creates a session there.
    pub(super) fn create(&self, session: &str) {
        self.inner.hosted.lock().unwrap().create(session, "file:///srv/app");
        self.ready(session);
    }

    pub(super) fn dispose(&self, session: &str) {
        self.inner.hosted.lock().unwrap().dispose(session);
    }

    /// Sends an action of the host itself on a channel.
    pub(super) fn say(&self, channel: &str, action: Value) {
        self.inner.hosted.lock().unwrap().apply(channel, action, None);
    }

    fn ready(&self, session: &str) {
        self.say(session, json!({"type": "session/ready"}));
    }

    async fn serve(self, stream: TcpStream, number: u64) {
        let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
        let (out, mut outgoing) = mpsc::unbounded_channel();
        let connection = Connection { number, client_id: String::new(), out, subscribed: HashSet::new() };
        self.inner.hosted.lock().unwrap().connections.push(connection);
        loop {
            let text = tokio::select! {
                Some(text) = outgoing.recv() => text,
                message = socket.next() => match message {
                    Some(Ok(Message::Text(text))) => {
                        self.heard(number, &text);
                        continue;
                    }
                    Some(Ok(_)) => continue,
                    Some(Err(_)) | None => break,
                },
            };
            if socket.send(Message::text(text)).await.is_err() {
                break;
            }
        }
        self.inner.hosted.lock().unwrap().connections.retain(|connection| connection.number != number);
    }

    /// Handles a message. Its answer follows everything sent before it.
    fn heard(&self, number: u64, text: &str) {
        let message: Value = serde_json::from_str(text).unwrap();
        let params = message.get("params").cloned().unwrap_or_default();
        let method = message["method"].as_str().unwrap_or_default();
        if message.get("id").is_none() {
            if method == "dispatchAction" {
                self.dispatched(number, serde_json::from_value(params).unwrap());
            }
            return;
        }
        let mut answer = match self.request(number, method, params) {
            Ok(result) => json!({"result": result}),
            Err(error) => json!({"error": error}),
        };
        (answer["jsonrpc"], answer["id"]) = ("2.0".into(), message["id"].clone());
        let out = self.inner.hosted.lock().unwrap().connection(number).out.clone();
        out.send(answer.to_string()).unwrap();
    }

    fn request(&self, number: u64, method: &str, params: Value) -> RpcOutcome {
        assert!(!method.starts_with("x-grove/"), "it has announced nothing of that: {method}");
        let refused = |code: i64, message: &str| Err(json!({"code": code, "message": message}));
        let mut hosted = self.inner.hosted.lock().unwrap();
        match method {
            "initialize" => {
                let params: InitializeParams = serde_json::from_value(params).unwrap();
                let known: Vec<String> =
                    params.protocol_versions.into_iter().filter(|it| hosted.versions.contains(&it.as_str())).collect();
                let Ok(Some(version)) = ahp_types::negotiate_protocol_version(&known) else {
                    let data = json!({"supportedVersions": hosted.versions});
                    return Err(json!({"code": -32005, "message": "no common version", "data": data}));
                };
                hosted.connection(number).client_id = params.client_id;
                let wanted = params.initial_subscriptions.unwrap_or_default();
                let snapshots: Vec<Value> = wanted.iter().filter_map(|it| hosted.subscribe(number, it)).collect();
                let result = json!({"protocolVersion": version, "serverSeq": hosted.last_seq, "snapshots": snapshots,
                    "serverInfo": {"name": "independent", "version": "1"}});
                Ok(checked::<InitializeResult>(result))
            }
            "listSessions" => {
                let is_listed = |name: &String| hosted.unlisted.as_ref().is_none_or(|late| !late.contains(name));
                let rows = hosted.rows.iter().filter(|(name, _)| is_listed(name));
                let rows: Vec<_> = rows.map(|(_, row)| &row.summary).collect();
                Ok(checked::<ListSessionsResult>(json!({"items": rows})))
            }
            "subscribe" => {
                let params: SubscribeParams = serde_json::from_value(params).unwrap();
                match hosted.subscribe(number, &params.channel) {
                    Some(snapshot) => Ok(checked::<SubscribeResult>(json!({"snapshot": snapshot}))),
                    None => refused(-32008, "there is no such channel"),
                }
            }
            "createSession" => {
                let params: CreateSessionParams = serde_json::from_value(params).unwrap();
                if hosted.rows.contains_key(&params.channel) {
                    return refused(-32003, "it is there already");
                }
                let folder = params.working_directories.and_then(|all| all.into_iter().next()).unwrap();
                hosted.create(&params.channel, &folder);
                if !hosted.stalls {
                    let (host, session) = (self.clone(), params.channel);
                    tokio::spawn(async move {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                        host.ready(&session);
                    });
                }
                Ok(Value::Null)
            }
            "disposeSession" => match hosted.dispose(params["channel"].as_str().unwrap()) {
                true => Ok(Value::Null),
                false => refused(-32001, "there is no such session"),
            },
            "ping" => Ok(Value::Null),
            "reconnect" => refused(-32008, "nobody is remembered here"),
            _ => refused(-32601, "this host does not know that"),
        }
    }

    fn dispatched(&self, number: u64, params: DispatchActionParams) {
        assert!(!matches!(params.action, StateAction::Unknown(_)), "it is malformed: {:?}", params.action);
        let mut hosted = self.inner.hosted.lock().unwrap();
        let client_id = hosted.connection(number).client_id.clone();
        let origin = ActionOrigin { client_id, client_seq: params.client_seq };
        let action = serde_json::to_value(&params.action).unwrap();
        hosted.apply(&params.channel, action, Some(origin));
        match params.action {
            StateAction::ChatTurnStarted(start) => {
                tokio::spawn(self.clone().work(params.channel, start.turn_id, start.message.text));
            }
            StateAction::ChatToolCallConfirmed(answer) if answer.approved => self.inner.approved.notify_one(),
            _ => {}
        }
    }

    /// Its agent: it repeats the message word by word, and runs a tool for the word "run".
    async fn work(self, chat: String, turn: String, text: String) {
        let part = json!({"kind": "markdown", "id": "p1", "content": ""});
        self.say(&chat, json!({"type": "chat/responsePart", "turnId": turn, "part": part}));
        for word in text.split_inclusive(' ') {
            tokio::time::sleep(Duration::from_millis(10)).await;
            self.say(&chat, json!({"type": "chat/delta", "turnId": turn, "partId": "p1", "content": word}));
        }
        if text.contains("run") {
            let call = |kind: &str, more: Value| {
                let mut action = json!({"type": kind, "turnId": turn, "toolCallId": "call-1"});
                action.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                self.say(&chat, action);
            };
            call("chat/toolCallStart", json!({"toolName": "make", "displayName": "Make"}));
            call("chat/toolCallReady", json!({"invocationMessage": "Running make"}));
            self.inner.approved.notified().await;
            let result = json!({"success": true, "pastTenseMessage": "Ran make", "content": []});
            call("chat/toolCallComplete", json!({"result": result}));
        }
        self.say(&chat, json!({"type": "chat/turnComplete", "turnId": turn, "duration": 5}));
    }
}

impl Hosted {
    fn connection(&mut self, number: u64) -> &mut Connection {
        self.connections.iter_mut().find(|connection| connection.number == number).unwrap()
    }

    fn subscribe(&mut self, number: u64, channel: &str) -> Option<Value> {
        let state = match channel {
            ROOT => {
                json!({"agents": [{"provider": "parrot", "displayName": "Parrot", "description": "", "models": []}]})
            }
            _ => match self.rows.iter().find(|(name, row)| *name == channel || row.chat.resource == channel) {
                Some((name, row)) if name == channel => serde_json::to_value(&row.session).unwrap(),
                Some((_, row)) => serde_json::to_value(&row.chat).unwrap(),
                None => return None,
            },
        };
        self.connection(number).subscribed.insert(channel.to_owned());
        Some(json!({"resource": channel, "state": state, "fromSeq": self.last_seq}))
    }

    fn create(&mut self, session: &str, folder: &str) {
        self.made += 1;
        let chat = format!("ahp-chat:/{}", self.made);
        let common = json!({"resource": session, "provider": "parrot", "title": "", "status": 1, "createdAt": AT,
            "modifiedAt": AT, "workingDirectories": [folder], "defaultChat": chat});
        let state = json!({"provider": "parrot", "title": "", "status": 1, "lifecycle": "creating", "activeClients": [],
            "workingDirectories": [folder], "defaultChat": chat,
            "chats": [{"resource": chat, "title": "", "status": 1, "modifiedAt": AT}]});
        let row = Row {
            summary: serde_json::from_value(common).unwrap(),
            session: serde_json::from_value(state).unwrap(),
            chat: serde_json::from_value(
                json!({"resource": chat, "title": "", "status": 1, "modifiedAt": AT, "turns": []}),
            )
            .unwrap(),
        };
        self.rows.insert(session.to_owned(), row);
        match &mut self.unlisted {
            Some(unlisted) => unlisted.push(session.to_owned()),
            None => self.tell_added(session),
        }
    }

    fn tell_added(&self, session: &str) {
        let added = json!({"channel": ROOT, "summary": self.rows[session].summary});
        self.notify("root/sessionAdded", checked::<SessionAddedParams>(added));
    }

    fn dispose(&mut self, session: &str) -> bool {
        let is_gone = self.rows.remove(session).is_some();
        let removed = json!({"channel": ROOT, "session": session});
        self.notify("root/sessionRemoved", checked::<SessionRemovedParams>(removed));
        is_gone
    }

    /// Applies an action and notifies the subscribers of the channel, and of the list if its row changed.
    fn apply(&mut self, channel: &str, action: Value, origin: Option<ActionOrigin>) {
        let action: StateAction = serde_json::from_value(action).unwrap();
        assert!(!matches!(action, StateAction::Unknown(_)), "the protocol does not know {action:?}");
        let found = self.rows.iter_mut().find(|(name, row)| *name == channel || row.chat.resource == channel);
        let Some((session, row)) = found else { return };
        let outcome = match session == channel {
            true => apply_action_to_session(&mut row.session, &action),
            false => apply_action_to_chat(&mut row.chat, &action),
        };
        assert!(matches!(outcome, ReduceOutcome::Applied | ReduceOutcome::NoOp), "{action:?}: {outcome:?}");
        let status = (row.chat.status & 31) | (row.session.status & !31);
        let changes = json!({"status": status, "title": row.session.title, "modifiedAt": row.chat.modified_at});
        let session = session.clone();
        let differs = (row.summary.status, &row.summary.title) != (status, &row.session.title);
        (row.summary.status, row.summary.title) = (status, row.session.title.clone());
        self.last_seq += 1;
        let envelope = ActionEnvelope {
            channel: channel.to_owned(),
            action,
            server_seq: self.last_seq,
            origin,
            rejection_reason: None,
        };
        self.notify("action", serde_json::to_value(envelope).unwrap());
        if differs {
            let changed = json!({"channel": ROOT, "session": session, "changes": changes});
            let changed = checked::<SessionSummaryChangedParams>(changed);
            match &mut self.held_back {
                Some(held_back) => held_back.push(changed),
                None => self.notify("root/sessionSummaryChanged", changed),
            }
        }
    }

    /// Notifies all subscribers of the channel.
    fn notify(&self, method: &str, params: Value) {
        let channel = params["channel"].as_str().unwrap();
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string();
        for connection in self.connections.iter().filter(|connection| connection.subscribed.contains(channel)) {
            // A connection that ends is removed by itself.
            connection.out.send(message.clone()).ok();
        }
    }
}
