//! A client of version 1.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};

use grove_wire::jsonrpc::{self, ErrorObject, Frame, Id};
use grove_wire::v1::{self, Action, ActionEnvelope, Notification, RootState, SessionState, Snapshot};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::connection::TestConnection;
use crate::socket::{ByteStream, ConnectionEnd};

/// An envelope as it arrived.
pub type Envelope = ActionEnvelope<Box<RawValue>>;

/// A snapshot with its state not parsed yet.
pub type RawSnapshot = Snapshot<Box<RawValue>>;

/// The answer to `reconnect`. A tagged enum could not keep its contents raw.
#[derive(serde::Deserialize)]
struct ReconnectReply {
    actions: Option<Vec<Envelope>>,
    snapshots: Option<Vec<RawSnapshot>>,
}

/// A version-1 client.
pub struct Client {
    connection: TestConnection,
    pub roots: HashMap<String, RootState>,
    pub sessions: HashMap<String, SessionState>,
    /// Every envelope, as it arrived.
    pub envelopes: Vec<Envelope>,
    pub notifications: Vec<Notification>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("connection", &self.connection).finish_non_exhaustive()
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
            roots: HashMap::new(),
            sessions: HashMap::new(),
            envelopes: Vec::new(),
            notifications: Vec::new(),
        }
    }

    /// `initialize` with version 1; the snapshots become this client's state.
    pub async fn initialize(&mut self, subscriptions: &[&str]) -> v1::InitializeResult<Box<RawValue>> {
        self.initialize_with(1, subscriptions).await.unwrap()
    }

    pub async fn initialize_with(
        &mut self,
        version: i64,
        subscriptions: &[&str],
    ) -> Result<v1::InitializeResult<Box<RawValue>>, ErrorObject> {
        let params = json!({
            "protocolVersion": version, "clientId": self.client_id, "initialSubscriptions": subscriptions,
        });
        let result: v1::InitializeResult<Box<RawValue>> = self.call("initialize", params).await?;
        self.see(result.server_seq);
        result.snapshots.iter().for_each(|snapshot| self.take_snapshot(snapshot));
        Ok(result)
    }

    /// Reconnects on a new stream, with everything seen so far; a replay or snapshots update the state. Returns whether
    /// it was a replay.
    pub async fn reconnect(&mut self, stream: Box<dyn ByteStream>, url: &str) -> bool {
        self.reopen(stream, url).await;
        let subscriptions: Vec<String> = self.roots.keys().chain(self.sessions.keys()).cloned().collect();
        let params = json!({
            "clientId": self.client_id, "lastSeenServerSeq": self.seen, "subscriptions": subscriptions,
        });
        let result: ReconnectReply = self.call("reconnect", params).await.unwrap();
        match result {
            ReconnectReply { actions: Some(actions), snapshots: None } => {
                actions.into_iter().for_each(|envelope| self.take_action(envelope));
                true
            }
            ReconnectReply { actions, snapshots } => {
                assert!(actions.is_none(), "either a replay or snapshots");
                let snapshots = snapshots.unwrap();
                self.roots.clear();
                self.sessions.clear();
                snapshots.iter().for_each(|snapshot| self.take_snapshot(snapshot));
                false
            }
        }
    }

    /// Asserts law 1 now: this client's state of a session equals a snapshot with the same number. The answer to
    /// `subscribe` follows every action up to its number, so there is nothing to wait for.
    pub async fn must_agree(&mut self, uri: &str) {
        let snapshot: RawSnapshot = self.call("subscribe", json!({"resource": uri})).await.unwrap();
        let theirs: SessionState = serde_json::from_str(snapshot.state.get()).unwrap();
        let mut mine = self.session(uri).clone();
        // A snapshot holds the newest turns only; those that both hold must agree.
        let both = mine.turns.len().min(theirs.turns.len());
        mine.turns.drain(..mine.turns.len() - both);
        let mut window = theirs.clone();
        window.turns.drain(..window.turns.len() - both);
        assert_eq!(mine, window, "{} and the host disagree on {uri} at {}", self.client_id, snapshot.from_seq);
        self.see(snapshot.from_seq);
    }

    /// Subscribes; the snapshot becomes this client's state.
    pub async fn subscribe(&mut self, uri: &str) -> Result<RawSnapshot, ErrorObject> {
        let snapshot: RawSnapshot = self.call("subscribe", json!({"resource": uri})).await?;
        self.take_snapshot(&snapshot);
        Ok(snapshot)
    }

    pub async fn create_session(&mut self, uri: &str) -> Result<(), ErrorObject> {
        self.call::<()>("createSession", json!({"session": uri})).await
    }

    /// Creates a session, subscribes to it and waits until it is ready.
    pub async fn ready_session(&mut self, uri: &str) {
        self.create_session(uri).await.unwrap();
        self.subscribe(uri).await.unwrap();
        self.until(|client| client.session(uri).lifecycle == v1::Lifecycle::Ready).await;
    }

    /// Dispatches an action, and returns its `clientSeq`.
    pub async fn dispatch(&mut self, action: Value) -> u64 {
        let client_seq = self.next_client_seq();
        let params = json!({"clientSeq": client_seq, "action": action});
        self.send(jsonrpc::notification("dispatchAction", &params).unwrap()).await;
        client_seq
    }

    /// Starts a turn with a text.
    pub async fn start_turn(&mut self, uri: &str, turn: &str, text: &str) -> u64 {
        self.dispatch(json!({
            "type": "session/turnStarted", "session": uri, "turnId": turn, "userMessage": {"text": text},
        }))
        .await
    }

    /// Starts a turn with a script.
    pub async fn script(&mut self, uri: &str, turn: &str, steps: Value) -> u64 {
        self.start_turn(uri, turn, &format!("script:{steps}")).await
    }

    /// Runs a script to the turn's end, and returns the finished turn.
    pub async fn run_script(&mut self, uri: &str, turn: &str, steps: Value) -> v1::Turn {
        self.script(uri, turn, steps).await;
        self.turn_end(uri, turn).await
    }

    /// Waits for a turn's end, and returns the finished turn.
    pub async fn turn_end(&mut self, uri: &str, turn: &str) -> v1::Turn {
        self.until(|client| client.session(uri).turns.iter().any(|done| done.id == turn)).await;
        self.session(uri).turns.iter().rfind(|done| done.id == turn).unwrap().clone()
    }

    pub fn session(&self, uri: &str) -> &SessionState {
        self.sessions.get(uri).unwrap_or_else(|| panic!("not subscribed to {uri}"))
    }

    /// The session's running turn.
    pub fn active(&self, uri: &str) -> &v1::ActiveTurn {
        self.session(uri).active_turn.as_ref().unwrap_or_else(|| panic!("{uri} has no active turn"))
    }

    /// Calls and waits for the answer; other messages are applied meanwhile.
    pub async fn call<R: DeserializeOwned>(&mut self, method: &str, params: impl Serialize) -> Result<R, ErrorObject> {
        let id = self.next_id();
        self.send(jsonrpc::request(&id, method, &params).unwrap()).await;
        loop {
            let text = self.frame().await.unwrap_or_else(|| panic!("{method} was not answered: {:?}", self.ended()));
            if let Some((answered, outcome)) = self.take(&text) {
                assert_eq!(answered.as_json(), id.as_json(), "an answer to another call");
                return outcome.map(|result| serde_json::from_str(result.get()).unwrap());
            }
        }
    }

    /// Applies messages until `done`.
    pub async fn until(&mut self, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            let text = self.frame().await.unwrap_or_else(|| panic!("the connection ended: {:?}", self.ended()));
            assert!(self.take(&text).is_none(), "an answer that nobody asked for: {text}");
        }
    }

    /// Applies messages until the answer to a `ping`: everything sent before has arrived then.
    pub async fn settle(&mut self) {
        self.call::<()>("ping", json!({})).await.unwrap();
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

    /// Applies everything until the connection ends, and returns its end.
    pub async fn until_end(&mut self) -> ConnectionEnd {
        while let Some(text) = self.frame().await {
            self.take(&text);
        }
        self.ended().unwrap().clone()
    }

    /// Applies one frame: actions and notifications change the state, an answer is returned.
    pub fn take(&mut self, text: &str) -> Option<(Id, Result<Box<RawValue>, ErrorObject>)> {
        match jsonrpc::parse(text).unwrap() {
            Frame::Single(Ok(jsonrpc::RpcMessage::Notification { method, params })) => {
                let params = params.expect("a notification of the host has params").get();
                match method.as_ref() {
                    v1::notify::ACTION => {
                        let params: v1::ActionParams<Box<RawValue>> = serde_json::from_str(params).unwrap();
                        self.take_action(params.envelope);
                    }
                    v1::notify::NOTIFICATION => {
                        let params: v1::NotificationParams = serde_json::from_str(params).unwrap();
                        self.notifications.push(params.notification);
                    }
                    other => panic!("the host sent {other}"),
                }
                None
            }
            Frame::Single(Ok(jsonrpc::RpcMessage::Response { id, outcome })) => {
                Some((id, outcome.map(ToOwned::to_owned)))
            }
            other => panic!("the host sent {other:?}"),
        }
    }

    fn take_action(&mut self, envelope: Envelope) {
        self.see_action(envelope.server_seq);
        if envelope.rejection_reason.is_none() {
            match Action::parse(&envelope.action) {
                Ok(Action::Root(action)) => {
                    for root in self.roots.values_mut() {
                        *root = v1::root_reducer(std::mem::take(root), &action);
                    }
                }
                Ok(Action::Session(action)) => {
                    if let Some(session) = self.sessions.get_mut(&action.session) {
                        v1::reduce::reduce_session(session, &action);
                    }
                }
                // As the protocol asks: unknown actions are ignored.
                Err(v1::ActionError::UnknownType(_)) => {}
                Err(error) => panic!("{error}: {}", envelope.action),
            }
        }
        self.envelopes.push(envelope);
    }

    fn take_snapshot(&mut self, snapshot: &RawSnapshot) {
        self.see(snapshot.from_seq);
        let (uri, state) = (snapshot.resource.clone(), snapshot.state.get());
        if v1::is_root(&uri) {
            self.roots.insert(uri, serde_json::from_str(state).unwrap());
        } else {
            self.sessions.insert(uri, serde_json::from_str(state).unwrap());
        }
    }
}
