//! Unusual but valid behaviour of hosts: a host whose messages the test writes, with a paused clock.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{SinkExt, StreamExt};
use grove_client::{
    Ahp, ByteStream, Client, ClientClosed, ClientLimits, ConnectionStatus, Dial, DispatchOutcome, Endpoint,
    HostRequest, Options, RequestError, RequestHandler, Subscription, V1,
};
use grove_wire::jsonrpc::ErrorObject;
use grove_wire::v1::{SessionChange, SessionState};
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use crate::harness::{options, soon};

const URI: &str = "scripted:/s";

/// A dialer for the test's host.
struct DuplexDialer(Mutex<mpsc::UnboundedSender<DuplexStream>>);

#[async_trait]
impl Dial for DuplexDialer {
    async fn dial(&self) -> io::Result<Box<dyn ByteStream>> {
        let (near, far) = tokio::io::duplex(64 << 10);
        self.0.lock().unwrap().send(far).map_err(|_| io::ErrorKind::ConnectionRefused)?;
        Ok(Box::new(near))
    }
}

struct OddHost {
    calls: mpsc::UnboundedReceiver<DuplexStream>,
}

/// The host's end of a connection.
struct Peer {
    socket: WebSocketStream<DuplexStream>,
}

/// A message of the client.
#[derive(Debug)]
struct ReceivedRequest {
    id: Value,
    method: String,
    params: Value,
}

impl OddHost {
    fn new() -> (Self, Endpoint) {
        let (dial, calls) = mpsc::unbounded_channel();
        let endpoint = Endpoint::over("ws://host/", None, Arc::new(DuplexDialer(Mutex::new(dial)))).unwrap();
        (Self { calls }, endpoint)
    }

    async fn accept(&mut self) -> Peer {
        let stream = soon("a connection", self.calls.recv()).await.unwrap();
        Peer { socket: tokio_tungstenite::accept_async(stream).await.unwrap() }
    }
}

impl Peer {
    async fn hear(&mut self) -> ReceivedRequest {
        loop {
            let Message::Text(text) = soon("a message", self.socket.next()).await.unwrap().unwrap() else { continue };
            let mut message: Value = serde_json::from_str(&text).unwrap();
            let method = message["method"].as_str().unwrap_or_default().to_owned();
            return ReceivedRequest { id: message["id"].take(), method, params: message["params"].take() };
        }
    }

    async fn hear_method(&mut self, method: &str) -> ReceivedRequest {
        let heard = self.hear().await;
        assert_eq!(heard.method, method, "{heard:?}");
        heard
    }

    async fn say(&mut self, mut message: Value) {
        message["jsonrpc"] = "2.0".into();
        self.socket.send(Message::text(message.to_string())).await.unwrap();
    }

    async fn answer(&mut self, heard: &ReceivedRequest, result: Value) {
        self.say(json!({"id": heard.id, "result": result})).await;
    }

    async fn refuse(&mut self, heard: &ReceivedRequest, code: i64) {
        self.say(json!({"id": heard.id, "error": {"code": code, "message": "no"}})).await;
    }

    async fn act(&mut self, envelope: Value) {
        self.say(json!({"method": "action", "params": {"envelope": envelope}})).await;
    }

    /// Accepts a client, with one session.
    async fn initialize(&mut self, seq: u64, title: &str) -> ReceivedRequest {
        let heard = self.hear_method("initialize").await;
        self.answer(&heard, json!({"protocolVersion": 1, "serverSeq": seq, "snapshots": [snapshot(seq, title)]})).await;
        heard
    }
}

fn snapshot(seq: u64, title: &str) -> Value {
    let summary = json!({"resource": URI, "provider": "scripted", "title": title, "status": "idle", "createdAt": 1,
        "modifiedAt": 1});
    json!({"resource": URI, "state": {"summary": summary, "lifecycle": "ready", "turns": []}, "fromSeq": seq})
}

fn title(seq: u64, title: &str) -> Value {
    json!({"serverSeq": seq, "action": {"type": "session/titleChanged", "session": URI, "title": title}})
}

fn odd_options() -> Options {
    Options { list_sessions: false, subscriptions: vec![URI.to_owned()], ..options("a") }
}

/// A client with a subscribed session, and the host's end.
async fn start(options: Options) -> (OddHost, Peer, Subscription<V1>) {
    let (mut host, endpoint) = OddHost::new();
    let (client, peer) = tokio::join!(Client::connect(endpoint, V1::default(), options), async {
        let mut peer = host.accept().await;
        peer.initialize(10, "a title").await;
        peer
    });
    (host, peer, client.unwrap().subscribe(URI).await.unwrap())
}

async fn until_title(session: &mut Subscription<V1>, title: &str) {
    let titled = |state: &SessionState| state.summary.title == title;
    soon(title, session.until(|state| titled(state.session()?).then_some(()))).await.unwrap();
}

fn model(name: &str) -> SessionChange {
    SessionChange::ModelChanged { model: name.to_owned() }
}

fn shown_model(session: &Subscription<V1>) -> Option<String> {
    session.read(|state| state.session().unwrap().summary.model.clone())
}

#[tokio::test(start_paused = true)]
async fn a_host_that_refuses_to_reconnect_is_asked_to_begin_afresh_on_the_same_connection() {
    let (mut host, peer, mut session) = start(odd_options()).await;
    let sent = session.dispatch(model("m")).unwrap();
    drop(peer);
    let mut peer = host.accept().await;
    let heard = peer.hear_method("reconnect").await;
    assert_eq!(heard.params, json!({"clientId": "a", "lastSeenServerSeq": 10, "subscriptions": [URI]}));
    peer.refuse(&heard, -32008).await;
    // It lost its state, and counts from a lower number.
    let heard = peer.initialize(3, "afresh").await;
    assert_eq!(heard.params["initialSubscriptions"], json!([URI]));
    until_title(&mut session, "afresh").await;
    assert_eq!(sent.await, DispatchOutcome::Lost);
    assert_eq!(session.client().seen(), 3, "not the higher one: it would never be reached");
    peer.act(title(4, "on")).await;
    until_title(&mut session, "on").await;
}

#[tokio::test(start_paused = true)]
async fn an_action_of_an_unknown_type_is_ignored_but_its_number_is_seen() {
    let (mut host, mut peer, mut session) = start(odd_options()).await;
    peer.act(json!({"serverSeq": 11, "action": {"type": "session/fromTheFuture", "session": URI, "x": [1]}})).await;
    peer.say(json!({"method": "notification", "params": {"notification": {"type": "notify/fromTheFuture"}}})).await;
    peer.act(title(12, "known")).await;
    until_title(&mut session, "known").await;
    peer.act(json!({"serverSeq": 13, "action": {"type": "session/fromTheFuture"}})).await;
    peer.act(title(12, "old")).await;
    drop(peer);
    let mut peer = host.accept().await;
    let heard = peer.hear_method("reconnect").await;
    assert_eq!(heard.params["lastSeenServerSeq"], 13);
    let future = json!({"serverSeq": 14, "action": {"type": "session/fromTheFuture"}});
    peer.answer(&heard, json!({"type": "replay", "actions": [future, title(15, "replayed")]})).await;
    until_title(&mut session, "replayed").await;
}

#[tokio::test(start_paused = true)]
async fn an_action_that_cannot_be_read_makes_the_client_begin_afresh() {
    let (mut host, mut peer, mut session) = start(odd_options()).await;
    peer.act(json!({"serverSeq": 11, "action": {"type": "session/titleChanged", "session": URI}})).await;
    let mut peer = host.accept().await;
    peer.initialize(11, "whole again").await;
    until_title(&mut session, "whole again").await;
    assert_eq!(session.client().status().borrow().clone(), ConnectionStatus::Connected);
}

#[tokio::test(start_paused = true)]
async fn answers_are_told_apart_by_their_number_whatever_their_order() {
    let (_host, mut peer, mut session) = start(odd_options()).await;
    let (first, second, third) = (
        session.dispatch(model("1")).unwrap(),
        session.dispatch(model("2")).unwrap(),
        session.dispatch(model("3")).unwrap(),
    );
    assert_eq!(shown_model(&session).as_deref(), Some("3"));
    let action = |name: &str| json!({"type": "session/modelChanged", "session": URI, "model": name});
    let origin = |seq: u64| json!({"clientId": "a", "clientSeq": seq});
    // A rejection without a number, whose action is unreadable.
    peer.act(json!({"serverSeq": 0, "action": {"type": "session/modelChanged"}, "origin": origin(3),
        "rejectionReason": "no"}))
        .await;
    assert_eq!(third.await, DispatchOutcome::Rejected("no".to_owned()));
    assert_eq!(shown_model(&session).as_deref(), Some("2"));
    // Rejections that are sent to all clients, and an action of another client.
    peer.act(json!({"serverSeq": 11, "action": action("9"), "rejectionReason": "no",
        "origin": {"clientId": "b", "clientSeq": 1}}))
        .await;
    peer.act(json!({"serverSeq": 12, "action": action("8"), "origin": {"clientId": "b", "clientSeq": 2}})).await;
    peer.act(json!({"serverSeq": 13, "action": action("2"), "origin": origin(2)})).await;
    assert_eq!(second.await, DispatchOutcome::Confirmed(13));
    assert_eq!(shown_model(&session).as_deref(), Some("1"), "still pending, on top of the others");
    peer.act(json!({"serverSeq": 14, "action": action("1"), "origin": origin(1)})).await;
    assert_eq!(first.await, DispatchOutcome::Confirmed(14));
    peer.act(title(15, "done")).await;
    until_title(&mut session, "done").await;
    assert_eq!(session.pending(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_the_host_never_answers_ends_in_time() {
    let (_host, mut peer, session) = start(odd_options()).await;
    let sent = session.dispatch(model("m")).unwrap();
    let request = tokio::spawn({
        let client = session.client().clone();
        async move { client.request_raw::<()>("ping", &json!({})).await }
    });
    peer.hear_method("dispatchAction").await;
    let heard = peer.hear_method("ping").await;
    let keeps_alive = tokio::spawn(async move {
        while let Some(Ok(_)) = peer.socket.next().await {}
        drop(heard);
    });
    assert!(matches!(request.await.unwrap(), Err(RequestError::TimedOut { .. })));
    assert_eq!(sent.await, DispatchOutcome::Lost);
    assert_eq!(shown_model(&session), None, "what is shown does not stand on it for ever");
    keeps_alive.abort();
}

#[tokio::test(start_paused = true)]
async fn snapshots_and_actions_in_one_breath_keep_their_order() {
    let options = Options { subscriptions: Vec::new(), list_sessions: false, ..options("a") };
    let (mut host, endpoint) = OddHost::new();
    let (client, mut peer) = tokio::join!(Client::connect(endpoint, V1::default(), options), async {
        let mut peer = host.accept().await;
        let heard = peer.hear_method("initialize").await;
        peer.answer(&heard, json!({"protocolVersion": 1, "serverSeq": 10, "snapshots": []})).await;
        peer
    });
    let client = client.unwrap();
    let (session, ()) = tokio::join!(client.subscribe(URI), async {
        let heard = peer.hear_method("subscribe").await;
        // An action that the snapshot contains, the snapshot, and a later action, before anything is read.
        peer.socket
            .feed(Message::text(
                json!({"jsonrpc": "2.0", "method": "action",
            "params": {"envelope": title(11, "in it")}})
                .to_string(),
            ))
            .await
            .unwrap();
        peer.socket
            .feed(Message::text(
                json!({"jsonrpc": "2.0", "id": heard.id,
            "result": snapshot(11, "in it")})
                .to_string(),
            ))
            .await
            .unwrap();
        peer.act(title(12, "after it")).await;
    });
    let mut session = session.unwrap();
    until_title(&mut session, "after it").await;
    assert_eq!(session.read_confirmed(|_, seq| seq), 12);
}

#[tokio::test(start_paused = true)]
async fn a_hosts_requests_are_answered_and_its_own_notifications_are_passed_on() {
    let (_host, mut peer, session) = start(odd_options()).await;
    let mut notifications = session.client().notifications();
    peer.say(json!({"id": "q", "method": "ping"})).await;
    assert_eq!(peer.hear().await.id, "q");
    peer.say(json!({"id": 7, "method": "resourceRead", "params": {}})).await;
    assert_eq!(peer.hear().await.id, 7);
    peer.say(json!({"method": "x-grove/progress", "params": {"done": 1}})).await;
    let notification = soon("a notification", notifications.recv()).await.unwrap();
    assert_eq!((notification.method.as_str(), notification.params.get()), ("x-grove/progress", r#"{"done":1}"#));
}

#[tokio::test(start_paused = true)]
async fn a_clients_own_answers_reach_the_host_in_any_order() {
    let handler = RequestHandler::new(|request: HostRequest| async move {
        match request.method.as_str() {
            "slow" => tokio::time::sleep(Duration::from_secs(1)).await,
            "never" => std::future::pending().await,
            "fast" => {}
            other => return Err(ErrorObject::unknown_method(other)),
        }
        Ok(request.params)
    });
    let (_host, mut peer, _session) = start(Options { requests: Some(handler), ..odd_options() }).await;
    peer.say(json!({"id": 1, "method": "slow", "params": {"a": 1}})).await;
    peer.say(json!({"id": 2, "method": "fast"})).await;
    peer.say(json!({"id": 3, "method": "other"})).await;
    let mut answered = Vec::new();
    for _ in 0..3 {
        answered.push(peer.hear().await.id);
    }
    assert_eq!(answered.last(), Some(&json!(1)), "the slow one holds nobody: {answered:?}");
    // Requests without an answer are bounded, and a ping is no such request.
    for id in 0..65 {
        peer.say(json!({"id": format!("n{id}"), "method": "never"})).await;
    }
    assert_eq!(peer.hear().await.id, "n64", "refused");
    peer.say(json!({"id": "q", "method": "ping"})).await;
    assert_eq!(peer.hear().await.id, "q");
}

#[tokio::test(start_paused = true)]
async fn waits_grow_while_the_host_is_away_and_a_close_is_heard_meanwhile() {
    let (mut host, mut peer, session) = start(odd_options()).await;
    let frame = CloseFrame { code: 1001.into(), reason: "the host stops".into() };
    peer.socket.send(Message::Close(Some(frame))).await.unwrap();
    drop(peer);
    let mut waits = Vec::new();
    let mut last = tokio::time::Instant::now();
    for _ in 0..8 {
        drop(soon("an attempt", host.calls.recv()).await);
        waits.push(last.elapsed());
        last = tokio::time::Instant::now();
    }
    // 20 ms at first, doubled each time, at most 200 ms, each spread over its upper half.
    for (wait, whole) in waits.iter().zip([20, 40, 80, 160, 200, 200, 200, 200]) {
        let whole = Duration::from_millis(whole);
        assert!(*wait >= whole / 2 && *wait <= whole + Duration::from_millis(2), "{waits:?}");
    }
    let client = session.client();
    let ConnectionStatus::Reconnecting { attempt, .. } = client.status().borrow().clone() else {
        panic!("it tries again")
    };
    assert!(attempt >= 8);
    soon("the end", client.close()).await;
    assert_eq!(*client.status().borrow(), ConnectionStatus::ClientClosed(ClientClosed::LocalClose));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_never_ends_is_given_up() {
    let (mut host, endpoint) = OddHost::new();
    let limits = ClientLimits { list_pages: 5, ..ClientLimits::default() };
    let options = Options { limits, list_sessions: false, ..options("a") };
    let (client, mut peer) = tokio::join!(Client::connect(endpoint, Ahp::default(), options), async {
        let mut peer = host.accept().await;
        let heard = peer.hear_method("initialize").await;
        let version = &heard.params["protocolVersions"][0];
        peer.answer(&heard, json!({"protocolVersion": version, "serverSeq": 1, "snapshots": []})).await;
        peer
    });
    let sessions = client.unwrap().sessions();
    let endless = async {
        for page in 1..=5 {
            let heard = peer.hear_method("listSessions").await;
            peer.answer(&heard, json!({"items": [], "nextCursor": format!("page {page}")})).await;
        }
    };
    let (listed, ()) = tokio::join!(sessions.refresh(), endless);
    assert!(matches!(listed, Err(RequestError::Endless { pages: 5, .. })), "{listed:?}");
}
