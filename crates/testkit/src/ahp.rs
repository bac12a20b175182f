//! A client of the Agent Host Protocol, over plain JSON: every frame that it gets is checked against the closed schema,
//! and its states are kept by our reducers.

use std::collections::{BTreeMap, HashMap};
use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;

use grove_wire::ahp::schema::SchemaValidator;
use grove_wire::ahp::{
    Action, ActionEnvelope, ActiveTurn, ChatState, ContentRef, InitializeResult, Method, ROOT, ResponsePart, RootState,
    SessionLifecycle, SessionState, Snapshot, SnapshotState, ToolCallState, Turn, derive_session, reduce,
};
use grove_wire::jsonrpc::{self, ErrorObject, Frame, Id, RpcMessage as Rpc};
use grove_wire::refusal::LIMIT_REACHED;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::connection::TestConnection;
use crate::socket::{ByteStream, ConnectionEnd};

/// An envelope, its action not parsed yet.
pub type Envelope = ActionEnvelope<Value>;

/// The outcome of reconnecting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReconnectOutcome {
    /// Everything missed; these channels are gone.
    Replay { missing: Vec<String> },
    /// The present states.
    Snapshots,
}

/// A client of the protocol.
pub struct Client {
    connection: TestConnection,
    /// Checks frames against the closed schema. Off if a test makes the host send something else.
    pub strict: bool,
    /// The states of the subscribed channels, with their sequence numbers.
    pub states: BTreeMap<String, SnapshotState>,
    cut_at: HashMap<String, u64>,
    /// Every envelope, as it arrived.
    pub envelopes: Vec<Envelope>,
    /// Every other notification: its method and params.
    pub notifications: Vec<(String, Value)>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ahp::Client").field("connection", &self.connection).finish_non_exhaustive()
    }
}

impl Deref for Client {
    type Target = TestConnection;

    fn deref(&self) -> &TestConnection {
        &self.connection
    }
}

impl DerefMut for Client {
    fn deref_mut(&mut self) -> &mut TestConnection {
        &mut self.connection
    }
}

fn closed() -> &'static SchemaValidator {
    static CLOSED: OnceLock<SchemaValidator> = OnceLock::new();
    CLOSED.get_or_init(SchemaValidator::new)
}

impl Client {
    /// Connects over TCP. `ws` is the address that the host prints.
    pub async fn connect(ws: &str, token: &str, client_id: &str) -> Self {
        Self::on(TestConnection::connect(ws, token, client_id).await)
    }

    /// Connects over any stream.
    pub async fn over(stream: Box<dyn ByteStream>, url: &str, client_id: &str) -> Self {
        Self::on(TestConnection::over(stream, url, client_id).await)
    }

    fn on(connection: TestConnection) -> Self {
        Self {
            connection,
            strict: true,
            states: BTreeMap::new(),
            cut_at: HashMap::new(),
            envelopes: Vec::new(),
            notifications: Vec::new(),
        }
    }

    /// `initialize`; the snapshots become this client's states.
    pub async fn initialize(&mut self, subscriptions: &[&str]) -> InitializeResult {
        self.initialize_with(&["1.0.0", "0.9.0"], subscriptions).await.unwrap()
    }

    pub async fn initialize_with(
        &mut self,
        versions: &[&str],
        subscriptions: &[&str],
    ) -> Result<InitializeResult, ErrorObject> {
        let params = json!({
            "channel": ROOT, "protocolVersions": versions, "clientId": self.client_id,
            "initialSubscriptions": subscriptions,
        });
        let result: InitializeResult = self.call(Method::Initialize, params).await?;
        self.see(result.server_seq);
        for snapshot in &result.snapshots {
            assert_eq!(snapshot.from_seq, result.server_seq, "all are cut at one number");
            self.take_snapshot(snapshot.clone());
        }
        Ok(result)
    }

    /// Replaces the stream.
    pub async fn move_to(&mut self, stream: Box<dyn ByteStream>, url: &str) {
        self.reopen(stream, url).await;
    }

    /// Reconnects as 1.0 does, with one number for everything.
    pub async fn reconnect(&mut self, stream: Box<dyn ByteStream>, url: &str) -> ReconnectOutcome {
        self.move_to(stream, url).await;
        let subscriptions: Vec<String> = self.states.keys().cloned().collect();
        let params = json!({
            "channel": ROOT, "clientId": self.client_id, "lastSeenServerSeq": self.seen, "subscriptions": subscriptions,
        });
        let result: Value = self.call(Method::Reconnect, params).await.unwrap();
        self.take_reconnect_outcome(result)
    }

    /// Applies the answer to `reconnect` with one number.
    pub fn take_reconnect_outcome(&mut self, result: Value) -> ReconnectOutcome {
        match result["type"].as_str().unwrap() {
            "replay" => {
                self.take_replayed(&result["actions"]);
                let missing: Vec<String> = serde_json::from_value(result["missing"].clone()).unwrap();
                missing.iter().for_each(|uri| drop(self.states.remove(uri)));
                ReconnectOutcome::Replay { missing }
            }
            "snapshot" => {
                self.states.clear();
                let snapshots: Vec<Snapshot> = serde_json::from_value(result["snapshots"].clone()).unwrap();
                snapshots.into_iter().for_each(|snapshot| self.take_snapshot(snapshot));
                ReconnectOutcome::Snapshots
            }
            other => panic!("a return of type {other}"),
        }
    }

    /// Applies the answer to `reconnect` with a number for each channel. Returns each channel's outcome.
    pub fn take_outcomes(&mut self, result: &Value) -> Vec<(String, String)> {
        // Each channel is in order by itself; together they are not.
        let before = self.last_action_seq;
        let mut last = before;
        let outcomes = result["channels"].as_array().unwrap().iter().map(|outcome| {
            let (kind, channel) = (outcome["kind"].as_str().unwrap(), outcome["channel"].as_str().unwrap());
            self.last_action_seq = before;
            match kind {
                "replay" => self.take_replayed(&outcome["actions"]),
                "snapshot" => self.take_snapshot(serde_json::from_value(outcome["snapshot"].clone()).unwrap()),
                "missing" => drop(self.states.remove(channel)),
                other => panic!("an outcome of kind {other}"),
            }
            last = last.max(self.last_action_seq);
            (channel.to_owned(), kind.to_owned())
        });
        let outcomes = outcomes.collect();
        self.last_action_seq = last;
        outcomes
    }

    fn take_replayed(&mut self, actions: &Value) {
        let actions: Vec<Envelope> = serde_json::from_value(actions.clone()).unwrap();
        actions.into_iter().for_each(|envelope| self.take_action(envelope));
    }

    /// Asserts law 1 now: this client's state of a channel equals a snapshot with the same number. The answer to
    /// `subscribe` follows every action up to its number, so there is nothing to wait for.
    pub async fn must_agree(&mut self, uri: &str) {
        let result: Value = self.call(Method::Subscribe, json!({"channel": uri})).await.unwrap();
        let snapshot: Snapshot = serde_json::from_value(result["snapshot"].clone()).unwrap();
        let mine = self.states.get(uri).unwrap_or_else(|| panic!("not subscribed to {uri}")).clone();
        must_be_same(&self.client_id, uri, mine, snapshot.state);
        self.see(snapshot.from_seq);
    }

    /// Asserts law 1 for all subscriptions of this client.
    pub async fn must_agree_on_all(&mut self) {
        for uri in self.states.keys().cloned().collect::<Vec<_>>() {
            self.must_agree(&uri).await;
        }
    }

    /// Subscribes; the snapshot becomes this client's state.
    pub async fn subscribe(&mut self, uri: &str) -> Result<Snapshot, ErrorObject> {
        self.subscribe_with(json!({"channel": uri})).await
    }

    pub async fn subscribe_with(&mut self, params: Value) -> Result<Snapshot, ErrorObject> {
        let result: Value = self.call(Method::Subscribe, params).await?;
        let snapshot: Snapshot = serde_json::from_value(result["snapshot"].clone()).unwrap();
        self.take_snapshot(snapshot.clone());
        Ok(snapshot)
    }

    pub async fn unsubscribe(&mut self, uri: &str) {
        self.notify("unsubscribe", json!({"channel": uri})).await;
        self.states.remove(uri);
    }

    pub async fn create_session(&mut self, uri: &str) -> Result<(), ErrorObject> {
        self.call(Method::CreateSession, json!({"channel": uri})).await
    }

    /// Creates a session, subscribes to it and to its main chat, and waits until it is ready. Returns the chat's URI.
    pub async fn ready_session(&mut self, uri: &str) -> String {
        self.create_session(uri).await.unwrap();
        self.follow(uri).await
    }

    /// Subscribes to a session and its main chat, and waits until it is ready. Returns the chat's URI.
    pub async fn follow(&mut self, uri: &str) -> String {
        self.subscribe(uri).await.unwrap();
        self.until(|client| client.session(uri).lifecycle == SessionLifecycle::Ready).await;
        let chat = self.session(uri).default_chat.clone().unwrap();
        self.subscribe(&chat).await.unwrap();
        chat
    }

    /// Dispatches an action, and returns its `clientSeq`.
    pub async fn dispatch(&mut self, channel: &str, action: Value) -> u64 {
        let client_seq = self.next_client_seq();
        let params = json!({"channel": channel, "clientSeq": client_seq, "action": action});
        self.notify("dispatchAction", params).await;
        client_seq
    }

    /// Starts a turn with a text.
    pub async fn start_turn(&mut self, chat: &str, turn: &str, text: &str) -> u64 {
        self.dispatch(chat, turn_started(turn, text)).await
    }

    /// Starts a turn with a script.
    pub async fn script(&mut self, chat: &str, turn: &str, steps: Value) -> u64 {
        self.start_turn(chat, turn, &format!("script:{steps}")).await
    }

    /// Runs a script to the turn's end, and returns the finished turn.
    pub async fn run_script(&mut self, chat: &str, turn: &str, steps: Value) -> Turn {
        self.script(chat, turn, steps).await;
        self.turn_end(chat, turn).await
    }

    /// Waits for a turn's end, and returns the finished turn.
    pub async fn turn_end(&mut self, chat: &str, turn: &str) -> Turn {
        self.until(|client| client.chat(chat).turns.iter().any(|done| done.id == turn)).await;
        self.chat(chat).turns.iter().rfind(|done| done.id == turn).unwrap().clone()
    }

    /// Waits until the running turn has a call that fits, and returns it.
    pub async fn call_that(&mut self, chat: &str, fits: impl Fn(&ToolCallState) -> bool) -> ToolCallState {
        self.until(|client| client.calls(chat).any(&fits)).await;
        self.calls(chat).find(|call| fits(call)).unwrap().clone()
    }

    fn calls(&self, chat: &str) -> impl Iterator<Item = &ToolCallState> {
        let parts = self.chat(chat).active_turn.iter().flat_map(|turn| &turn.response_parts);
        parts.filter_map(|part| match part {
            ResponsePart::ToolCall(part) => Some(&part.tool_call),
            _ => None,
        })
    }

    pub fn root(&self) -> &RootState {
        match self.states.get(ROOT) {
            Some(SnapshotState::Root(root)) => root,
            _ => panic!("not subscribed to the root"),
        }
    }

    pub fn session(&self, uri: &str) -> &SessionState {
        match self.states.get(uri) {
            Some(SnapshotState::Session(session)) => session,
            _ => panic!("not subscribed to the session {uri}"),
        }
    }

    pub fn chat(&self, uri: &str) -> &ChatState {
        match self.states.get(uri) {
            Some(SnapshotState::Chat(chat)) => chat,
            _ => panic!("not subscribed to the chat {uri}"),
        }
    }

    /// The chat's running turn.
    pub fn active(&self, uri: &str) -> &ActiveTurn {
        self.chat(uri).active_turn.as_ref().unwrap_or_else(|| panic!("{uri} has no active turn"))
    }

    /// Calls and waits for the answer; other messages are applied meanwhile.
    pub async fn call<R: DeserializeOwned>(&mut self, method: Method, params: Value) -> Result<R, ErrorObject> {
        let result = self.ask(method.as_str(), params).await?;
        if self.strict
            && let Err(violation) = closed().result(method, &result)
        {
            panic!("{} is answered with {result}: {violation}", method.as_str());
        }
        Ok(serde_json::from_value(result).unwrap())
    }

    /// Makes any call, and returns the answer as it is.
    pub async fn ask(&mut self, method: &str, params: Value) -> Result<Value, ErrorObject> {
        let id = self.next_id();
        self.send(jsonrpc::request(&id, method, &params).unwrap()).await;
        loop {
            let text = self.frame().await.unwrap_or_else(|| panic!("{method} was not answered: {:?}", self.ended()));
            if let Some((answered, outcome)) = self.take(&text) {
                assert_eq!(answered.as_json(), id.as_json(), "an answer to another call");
                return outcome;
            }
        }
    }

    /// Makes a call that must fail, and returns its error.
    pub async fn refused(&mut self, method: Method, params: Value) -> ErrorObject {
        match self.call::<Value>(method, params.clone()).await {
            Err(error) => error,
            Ok(result) => panic!("{} {params} was answered with {result}", method.as_str()),
        }
    }

    pub async fn get(&mut self, method: Method, params: Value) -> Value {
        let answer = self.call(method, params.clone()).await;
        answer.unwrap_or_else(|error| panic!("{} {params}: {error}", method.as_str()))
    }

    /// Dispatches an action that must be rejected, and returns the reason. The action must come back unchanged.
    pub async fn rejected(&mut self, channel: &str, action: Value) -> String {
        let seq = self.dispatch(channel, action.clone()).await;
        let answer = self.answer_to(seq).await;
        assert_eq!((answer.channel.as_str(), &answer.action), (channel, &action), "the action comes back as it was");
        answer.rejection_reason.unwrap_or_else(|| panic!("{action} was accepted"))
    }

    /// Applies messages until `done`.
    pub async fn until(&mut self, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            let text = self.frame().await.unwrap_or_else(|| panic!("the connection ended: {:?}", self.ended()));
            assert!(self.take(&text).is_none(), "an answer that nobody asked for: {text}");
        }
    }

    /// Makes a call that passes the sequencer: everything published before has arrived when this returns.
    pub async fn barrier(&mut self) {
        self.call::<Value>(Method::Subscribe, json!({"channel": "scripted:/no-such-session"})).await.unwrap_err();
    }

    /// The envelope that answers a dispatched action: echo or rejection.
    pub async fn answer_to(&mut self, client_seq: u64) -> Envelope {
        let client_id = self.client_id.clone();
        let is_it = move |envelope: &Envelope| {
            envelope.origin.as_ref().is_some_and(|o| o.client_id == client_id && o.client_seq == client_seq)
        };
        self.until(|client| client.envelopes.iter().any(&is_it)).await;
        self.envelopes.iter().find(|envelope| is_it(envelope)).unwrap().clone()
    }

    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(jsonrpc::notification(method, &params).unwrap()).await;
    }

    /// The next frame as JSON, not applied.
    pub async fn json(&mut self) -> Value {
        let text = self.frame().await.unwrap_or_else(|| panic!("the connection ended: {:?}", self.ended()));
        serde_json::from_str(&text).unwrap()
    }

    /// Applies everything until the connection ends, and returns its end.
    pub async fn until_end(&mut self) -> ConnectionEnd {
        while let Some(text) = self.frame().await {
            self.take(&text);
        }
        self.ended().unwrap().clone()
    }

    /// The types of the actions on a channel, without rejected ones.
    pub fn kinds(&self, channel: &str) -> Vec<&str> {
        let of_it = |envelope: &&Envelope| envelope.channel == channel && envelope.rejection_reason.is_none();
        self.envelopes.iter().filter(of_it).map(|envelope| envelope.action["type"].as_str().unwrap()).collect()
    }

    /// The params of the notifications of a method.
    pub fn told(&self, method: &str) -> Vec<&Value> {
        self.notifications.iter().filter(|(known, _)| known == method).map(|(_, params)| params).collect()
    }

    /// Applies one frame: actions and notifications change the state, an answer is returned.
    pub fn take(&mut self, text: &str) -> Option<(Id, Result<Value, ErrorObject>)> {
        match jsonrpc::parse(text).unwrap() {
            Frame::Single(Ok(Rpc::Notification { method, params })) => {
                let params = params.expect("a notification of the host has params").get();
                let params: Value = serde_json::from_str(params).unwrap();
                // A rejected action comes back unchanged, even if it is invalid. Grove's own additions have no schema.
                if self.strict
                    && !method.starts_with("x-grove/")
                    && params.get("rejectionReason").is_none()
                    && let Err(violation) = closed().notification(&method, &params)
                {
                    panic!("{}: {method} {params}: {violation}", self.client_id);
                }
                match method.as_ref() {
                    "action" => self.take_action(serde_json::from_value(params).unwrap()),
                    other => self.notifications.push((other.to_owned(), params)),
                }
                None
            }
            Frame::Single(Ok(Rpc::Response { id, outcome })) => {
                // The code of a reached limit is Grove's own, and so is its data.
                if let Err(error) = &outcome
                    && self.strict
                    && error.code != LIMIT_REACHED
                {
                    closed().named("ErrorObject", &serde_json::to_value(error).unwrap()).unwrap();
                }
                Some((id, outcome.map(|result| serde_json::from_str(result.get()).unwrap())))
            }
            other => panic!("the host sent {other:?}"),
        }
    }

    fn take_action(&mut self, envelope: Envelope) {
        self.see_action(envelope.server_seq);
        let is_new = self.cut_at.get(&envelope.channel).is_none_or(|cut| envelope.server_seq > *cut);
        assert!(is_new, "{}: an action that its snapshot has already: {envelope:?}", self.client_id);
        if envelope.rejection_reason.is_none()
            && let Some(state) = self.states.get_mut(&envelope.channel)
        {
            let action: Action = serde_json::from_value(envelope.action.clone()).unwrap();
            assert!(!matches!(action, Action::Unknown(_)), "{action:?}");
            reduce::reduce(state, &action);
            if let SnapshotState::Session(session) = state {
                derive_session(session);
            }
        }
        self.envelopes.push(envelope);
    }

    fn take_snapshot(&mut self, snapshot: Snapshot) {
        assert!(!matches!(snapshot.state, SnapshotState::Unknown(_)), "{snapshot:?}");
        self.see(snapshot.from_seq);
        self.cut_at.insert(snapshot.resource.clone(), snapshot.from_seq);
        self.states.insert(snapshot.resource, snapshot.state);
    }
}

/// Asserts that two states of a channel are equal, except for a chat's title, which no action of the channel carries. A
/// snapshot may hold fewer turns; those that both hold must agree.
pub fn must_be_same(whose: &str, uri: &str, mut mine: SnapshotState, mut theirs: SnapshotState) {
    for state in [&mut mine, &mut theirs] {
        if let SnapshotState::Chat(chat) = state {
            chat.title.clear();
            chat.changes = None;
            chat.interactivity = None;
        }
    }
    if let (SnapshotState::Chat(mine), SnapshotState::Chat(theirs)) = (&mut mine, &mut theirs)
        && mine.turns.len() != theirs.turns.len()
    {
        let both = mine.turns.len().min(theirs.turns.len());
        for chat in [mine, theirs] {
            chat.turns.drain(..chat.turns.len() - both);
            chat.turns_next_cursor = None;
        }
    }
    assert_eq!(mine, theirs, "{whose} and the host disagree on {uri}");
}

/// The action that starts a turn.
pub fn turn_started(turn: &str, text: &str) -> Value {
    json!({
        "type": "chat/turnStarted", "turnId": turn, "startedAt": "2026-10-10T10:00:00.000Z", "message": message(text),
    })
}

/// A person's message.
pub fn message(text: &str) -> Value {
    json!({"text": text, "origin": {"kind": "user"}})
}

/// The streamed text of a turn, all parts together.
pub fn markdown(parts: &[ResponsePart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        ResponsePart::Markdown(part) => Some(part.content.as_str()),
        _ => None,
    });
    texts.collect()
}

/// The references to bodies in a turn.
pub fn contents(parts: &[ResponsePart]) -> Vec<&ContentRef> {
    let contents = parts.iter().filter_map(|part| match part {
        ResponsePart::ContentRef(content) => Some(content),
        _ => None,
    });
    contents.collect()
}
