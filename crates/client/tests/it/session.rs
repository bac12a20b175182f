//! Streaming, write-ahead, rejection, several clients.

use std::sync::{Arc, Mutex};

use grove_client::{
    Backoff, Client, ClientClosed, ConnectError, ConnectionStatus, DispatchError, DispatchOutcome, Endpoint,
    FrameDirection, FrameLog, Options, RequestError, ResourceChange, TransportError, Unsupported, V1,
};
use grove_host::Config;
use grove_wire::registry::{self, Registry};
use grove_wire::v1::{self, ActionType, SessionChange, SessionStatus, ToolCallStatus, TurnState};
use serde_json::json;

use crate::harness::{TestHost, confirmed, must_agree, options, ready_session, script, soon, start, turn_end, until};

const URI: &str = "scripted:/s";

#[tokio::test]
async fn an_own_turn_is_seen_at_once_and_confirmed_by_its_echo() {
    let host = TestHost::on_tcp(Config::default()).await;
    let client = host.client("a").await;
    let mut session = ready_session(&client, URI).await;

    host.front.let_up(false);
    let sent = session.dispatch(script("t1", json!([{"say": "hello", "chunks": 3}]))).unwrap();
    assert_eq!(sent.client_seq, 1);
    let shown = session.read(|state| state.session().unwrap().clone());
    assert_eq!(shown.active_turn.unwrap().id, "t1");
    assert_eq!(shown.summary.status, SessionStatus::InProgress);
    assert_eq!(confirmed(&session).active_turn, None, "the host knows nothing of it");
    assert_eq!(session.pending(), 1);

    host.front.let_up(true);
    let DispatchOutcome::Confirmed(seq) = soon("an echo", sent.into_future()).await else { panic!("it is taken") };
    assert!(session.read_confirmed(|_, at| at) >= seq, "an outcome is told when its effect is there");
    turn_end(&mut session, "t1").await;
    assert_eq!(session.pending(), 0);
    assert_eq!(confirmed(&session).turns[0].state, TurnState::Complete);
    must_agree(&session).await;
}

#[tokio::test]
async fn a_refused_action_is_reverted_with_the_hosts_reason() {
    let host = TestHost::on_tcp(Config::default()).await;
    let (client, other) = (host.client("a").await, host.client("b").await);
    let session = ready_session(&client, URI).await;
    let mut theirs = other.subscribe(URI).await.unwrap();

    let model = SessionChange::ModelChanged { model: "no-such-model".to_owned() };
    host.front.let_up(false);
    let sent = session.dispatch(model).unwrap();
    assert_eq!(session.read(|s| s.session().unwrap().summary.model.clone()).as_deref(), Some("no-such-model"));
    host.front.let_up(true);
    let DispatchOutcome::Rejected(reason) = soon("a refusal", sent.into_future()).await else {
        panic!("it is refused")
    };
    assert!(reason.contains("no-such-model"), "{reason}");
    assert_ne!(session.read(|s| s.session().unwrap().summary.model.clone()).as_deref(), Some("no-such-model"));

    // Two turns at a time: the host accepts one of them.
    host.front.let_up(false);
    let mine = session.dispatch(script("mine", json!([{"hang": true}]))).unwrap();
    let his = theirs.dispatch(script("his", json!([{"hang": true}]))).unwrap();
    assert_eq!(theirs.read(|s| s.session().unwrap().active_turn.clone()).unwrap().id, "his");
    host.front.let_up(true);
    let outcomes = [soon("an answer", mine.into_future()).await, soon("an answer", his.into_future()).await];
    let taken = outcomes.iter().filter(|outcome| matches!(outcome, DispatchOutcome::Confirmed(_))).count();
    let refused = outcomes.iter().filter(|outcome| matches!(outcome, DispatchOutcome::Rejected(_))).count();
    assert_eq!((taken, refused), (1, 1), "{outcomes:?}");
    until(&mut theirs, "the turn", |state| state.active_turn.is_some()).await;
    let seen = |session: &grove_client::Subscription<V1>| session.read(|s| s.session().unwrap().active_turn.clone());
    until(&mut session.clone(), "the turn", |state| state.active_turn.is_some()).await;
    assert_eq!(seen(&session).unwrap().id, seen(&theirs).unwrap().id);
    must_agree(&session).await;
    must_agree(&theirs).await;
}

#[tokio::test]
async fn two_clients_are_in_step_and_a_foreign_action_does_not_disturb_what_is_pending() {
    let host = TestHost::on_tcp(Config::default()).await;
    let (client, other) = (host.client("a").await, host.client("b").await);
    let mut session = ready_session(&client, URI).await;
    let mut theirs = other.subscribe(URI).await.unwrap();
    let permission = json!([{"say": "before"}, {"tool": {"name": "sh", "input": "ls", "output": "out",
        "permission": "shell"}}, {"say": " after", "chunks": 3}]);
    theirs.dispatch(script("t1", permission)).unwrap();
    let asked =
        |state: &v1::SessionState| state.active_turn.as_ref().is_some_and(|t| !t.pending_permissions.is_empty());
    until(&mut session, "a question", asked).await;
    let request_id = session.read(|state| {
        state.session().unwrap().active_turn.as_ref().unwrap().pending_permissions.keys().next().unwrap().clone()
    });

    // The answer is streaming while the other client changes the model.
    let answer =
        SessionChange::PermissionResolved { turn_id: "t1".to_owned(), request_id, approved: true, policy_rule: None };
    host.front.let_up(false);
    let answered = session.dispatch(answer).unwrap();
    let running = |state: &v1::SessionState| {
        state.active_turn.as_ref().unwrap().tool_calls.values().all(|call| call.status == ToolCallStatus::Running)
    };
    assert!(session.read(|state| running(state.session().unwrap())), "its effect is seen");
    assert!(!running(&confirmed(&session)));
    host.front.let_up(true);
    assert!(matches!(soon("an echo", answered.into_future()).await, DispatchOutcome::Confirmed(_)));
    turn_end(&mut session, "t1").await;
    turn_end(&mut theirs, "t1").await;
    assert_eq!(confirmed(&session), confirmed(&theirs));
    must_agree(&session).await;
    must_agree(&theirs).await;
}

#[tokio::test]
async fn a_follower_sees_every_change_from_the_state_it_began_at() {
    let host = TestHost::on_tcp(Config::default()).await;
    let client = host.client("a").await;
    let mut session = ready_session(&client, URI).await;
    let (mut replayed, mut changes) = session.follow(Clone::clone);
    session.dispatch(script("t1", json!([{"say": "one two three", "chunks": 13}, {"reason": "why"}]))).unwrap();
    turn_end(&mut session, "t1").await;
    let (mut last, mut own) = (0, 0);
    while replayed != session.read_confirmed(|state, _| state.clone()) {
        let Some(ResourceChange::Action(applied)) = soon("a change", changes.next()).await else {
            panic!("only actions")
        };
        assert!(applied.server_seq > last, "in their order");
        last = applied.server_seq;
        own += usize::from(applied.own);
        <V1 as grove_client::Model>::reduce(&mut replayed, &applied.action);
    }
    assert_eq!(own, 1);
}

#[tokio::test]
async fn a_follower_that_is_too_slow_is_told_so_and_the_state_is_whole() {
    let host = TestHost::on_tcp(Config::default()).await;
    let mut options = options("a");
    options.limits.changes = 4;
    let client = Client::connect(host.endpoint(), V1::default(), options).await.unwrap();
    let mut session = ready_session(&client, URI).await;
    let ((), mut changes) = session.follow(|_| ());
    session.dispatch(script("t1", json!([{"say": "a long text in many pieces", "chunks": 26}]))).unwrap();
    turn_end(&mut session, "t1").await;
    assert!(matches!(soon("a change", changes.next()).await, Some(ResourceChange::Lagged)));
    must_agree(&session).await;
    let (state, _) = session.follow(Clone::clone);
    assert_eq!(state, session.read_confirmed(|state, _| state.clone()), "following again begins at what is");
}

#[tokio::test]
async fn what_is_subscribed_twice_is_kept_once_and_let_go_with_the_last_handle() {
    let host = TestHost::on_tcp(Config::default()).await;
    let frames = Arc::new(Mutex::new(Vec::new()));
    let seen = frames.clone();
    let log = FrameLog::new(move |direction, frame| seen.lock().unwrap().push((direction, frame.to_owned())));
    let client = Client::connect(host.endpoint(), V1::default(), Options { log: Some(log), ..options("a") });
    let client = client.await.unwrap();
    let session = ready_session(&client, URI).await;
    let (again, third) = tokio::join!(client.subscribe(URI), client.subscribe(URI));
    let clone = again.unwrap().clone();
    drop((session, third));
    clone.read(|state| assert!(state.session().is_some()));
    drop(clone);
    client.request_raw::<()>("ping", &json!({})).await.unwrap();
    let sent = |method: &str| {
        let frames = frames.lock().unwrap();
        let sent = frames.iter().filter(|(direction, _)| *direction == FrameDirection::ToHost);
        sent.filter(|(_, frame)| frame.contains(&format!("\"{method}\""))).count()
    };
    assert_eq!((sent("subscribe"), sent("unsubscribe"), sent("initialize")), (1, 1, 1));
    assert!(frames.lock().unwrap().iter().any(|(direction, _)| *direction == FrameDirection::FromHost));

    // A dropped request leaves nothing behind.
    drop(tokio::time::timeout(std::time::Duration::ZERO, client.subscribe(URI)).await);
    soon("letting go", async {
        while sent("unsubscribe") < sent("subscribe") {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_session_that_is_disposed_is_gone_and_what_was_pending_there_is_lost() {
    let host = TestHost::on_tcp(Config::default()).await;
    let (client, other) = (host.client("a").await, host.client("b").await);
    let mut session = ready_session(&client, URI).await;
    let theirs = other.subscribe(URI).await.unwrap();
    host.front.let_down(false);
    let dispose = client.request(v1::DisposeSessionParams { session: URI.to_owned() });
    let (disposed, late) = tokio::join!(dispose, async {
        soon("a disposed session", async {
            while host.host.status().await.unwrap().sessions != 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        // The other client does not know yet; the host ignores this silently.
        let late = theirs.dispatch(start("t1", "late")).unwrap();
        assert_eq!(theirs.pending(), 1);
        host.front.let_down(true);
        soon("an outcome", late.into_future()).await
    });
    disposed.unwrap();
    assert_eq!(late, DispatchOutcome::Lost);
    assert!(theirs.is_gone() && theirs.pending() == 0);
    assert!(matches!(theirs.dispatch(start("t2", "later")), Err(DispatchError::Gone(_))));
    soon("the end of the session", async {
        while !session.is_gone() {
            session.changed().await.unwrap();
        }
    })
    .await;
    assert!(client.subscribe(URI).await.is_err(), "the host is asked again");
    assert!(session.is_gone());
}

#[tokio::test]
async fn the_root_is_one_resource_however_it_is_spelled() {
    let host = TestHost::on_tcp(Config::default()).await;
    let options = Options { subscriptions: vec![v1::ROOT_ALIAS.to_owned()], ..options("a") };
    let client = Client::connect(host.endpoint(), V1::default(), options).await.unwrap();
    let root = client.subscribe(v1::ROOT).await.unwrap();
    assert_eq!(root.read(|state| state.root().unwrap().agents[0].provider.clone()), "scripted");
    assert_eq!(root.resource(), client.subscribe(v1::ROOT_ALIAS).await.unwrap().resource());
    let refused = root.dispatch(SessionChange::ModelChanged { model: "m".to_owned() });
    assert!(matches!(refused, Err(DispatchError::Unsupported(Unsupported::ByResource { .. }))));
}

#[tokio::test]
async fn what_the_host_cannot_do_is_not_sent() {
    // A client of a version 2 with changes of the model, and a host of version 1.
    fn introduced_in(action: ActionType) -> u32 {
        if action == ActionType::ModelChanged { 2 } else { registry::action_introduced_in(action) }
    }
    let registry = Registry { current: 2, action_introduced_in: introduced_in, ..Registry::RELEASED };
    let newer = V1 { registry, ..V1::default() };
    let host = TestHost::on_tcp(Config::default()).await;
    let frames = Arc::new(Mutex::new(String::new()));
    let seen = frames.clone();
    let log = FrameLog::new(move |_, frame| seen.lock().unwrap().push_str(frame));
    let client = Client::connect(host.endpoint(), newer, Options { log: Some(log), ..options("a") }).await.unwrap();
    let server = client.server().unwrap();
    assert_eq!(server.version, 1, "the host's version counts");
    assert!(!server.capabilities().reasoning && server.capabilities().sessions);
    let mut session = {
        let params =
            v1::CreateSessionParams { session: URI.to_owned(), provider: None, model: None, working_directory: None };
        client.request(params).await.unwrap();
        client.subscribe(URI).await.unwrap()
    };
    let refused = session.dispatch(SessionChange::ModelChanged { model: "m".to_owned() });
    let Err(DispatchError::Unsupported(why)) = refused else { panic!("it is not known to version 1") };
    assert_eq!(why, Unsupported::ByVersion { what: "session/modelChanged".to_owned(), version: "1".to_owned() });
    let refused = session.dispatch(SessionChange::TitleChanged { title: "mine".to_owned() });
    assert!(matches!(refused, Err(DispatchError::Unsupported(Unsupported::ByClients { .. }))));
    assert_eq!(session.pending(), 0);
    session.dispatch(start("t1", "script:[]")).unwrap();
    until(&mut session, "a turn's end", |state| state.turns.len() == 1).await;
    let frames = frames.lock().unwrap();
    assert!(!frames.contains("modelChanged") && !frames.contains("\"mine\""), "{frames}");
}

#[tokio::test]
async fn errors_say_what_the_host_said() {
    let host = TestHost::on_tcp(Config::default()).await;
    let client = host.client("a").await;
    let unknown = client.subscribe("scripted:/nowhere").await.unwrap_err();
    let RequestError::Refused { method, error } = unknown else { panic!("{unknown}") };
    assert_eq!((method.as_str(), error.code), ("subscribe", v1::error_code::SESSION_NOT_FOUND));
    let fetch = v1::FetchTurnsParams { session: "scripted:/nowhere".to_owned(), before: None, limit: None };
    assert!(matches!(client.request(fetch).await, Err(RequestError::Refused { .. })));
    let wrong = client.request_raw::<Vec<u8>>("ping", &json!({})).await;
    assert!(matches!(wrong, Err(RequestError::NotUnderstood { .. })));

    let wrong = Endpoint::tcp(&host.url(), Some("ffffffffffffffffffffffffffffffff")).unwrap();
    let denied = Client::connect(wrong, V1::default(), options("b")).await.unwrap_err();
    let ConnectError::Open(TransportError::Denied { status: 403, message }) = denied else { panic!("{denied}") };
    assert!(message.contains("token"), "{message}");
    let old = V1 { registry: Registry { current: 0, ..Registry::RELEASED }, ..V1::default() };
    let refused = Client::connect(host.endpoint(), old, options("b")).await.unwrap_err();
    assert!(matches!(refused, ConnectError::Refused(error) if error.code == v1::error_code::UNSUPPORTED_VERSION));
    host.front.refuse(true);
    let nobody = Client::connect(host.endpoint(), V1::default(), options("b")).await.unwrap_err();
    assert!(matches!(nobody, ConnectError::Open(_)), "{nobody}");
}

#[tokio::test]
async fn a_client_ends_when_it_is_closed_let_go_taken_over_or_has_tried_enough() {
    let host = TestHost::on_tcp(Config::default()).await;
    let connections = async |wanted: usize| {
        soon("connections to come and go", async {
            while host.host.status().await.unwrap().connections != wanted {
                tokio::task::yield_now().await;
            }
        })
        .await;
    };
    let client = host.client("a").await;
    let mut session = ready_session(&client, URI).await;
    connections(1).await;
    drop(client);
    session.read(|state| assert!(state.session().is_some()));
    connections(1).await;
    let client = session.client().clone();
    soon("the end", client.close()).await;
    assert_eq!(*client.status().borrow(), ConnectionStatus::ClientClosed(ClientClosed::LocalClose));
    assert_eq!(
        soon("the end", async {
            loop {
                if let Err(why) = session.changed().await {
                    break why;
                }
            }
        })
        .await,
        ClientClosed::LocalClose
    );
    assert!(matches!(session.dispatch(start("t", "")), Err(DispatchError::NotConnected(_))));
    connections(0).await;

    drop(host.client("b").await);
    connections(0).await;

    let older = host.client("c").await;
    let _newer = host.client("c").await;
    let mut status = older.status();
    soon("the end", status.wait_for(ConnectionStatus::is_closed)).await.unwrap();
    assert_eq!(*older.status().borrow(), ConnectionStatus::ClientClosed(ClientClosed::TakenOver));

    let reconnect = Backoff { attempts: Some(2), ..options("d").reconnect };
    let client = Client::connect(host.endpoint(), V1::default(), Options { reconnect, ..options("d") }).await.unwrap();
    host.front.refuse(true);
    host.front.cut();
    let mut status = client.status();
    soon("the end", status.wait_for(ConnectionStatus::is_closed)).await.unwrap();
    let closed = client.status().borrow().clone();
    assert!(matches!(closed, ConnectionStatus::ClientClosed(ClientClosed::GaveUp { attempts: 2, .. })), "{closed:?}");
    assert!(client.connected().await.is_err());
}
