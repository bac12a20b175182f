//! Reconnecting in version 1.

use std::time::Duration;

use grove_client::{Client, ConnectionStatus, DispatchError, DispatchOutcome, RequestError, ResourceChange, V1};
use grove_host::{Config, Limits};
use grove_wire::v1::{self, SessionChange};
use serde_json::json;

use crate::harness::{TestHost, confirmed, must_agree, ready_session, script, soon, start, turn_end, until};

const URI: &str = "scripted:/s";

async fn connected(client: &Client<V1>) {
    soon("a connection", client.connected()).await.unwrap();
}

/// Cuts every connection, and refuses new ones until the clients have noticed.
async fn cut(host: &TestHost, clients: &[&Client<V1>]) {
    host.front.refuse(true);
    host.front.cut();
    for client in clients {
        let mut status = client.status();
        let lost = status.wait_for(|status| matches!(status, ConnectionStatus::Reconnecting { .. }));
        soon("a lost connection", lost).await.unwrap();
    }
}

/// Waits until the host reaches a sequence number.
async fn host_reaches(host: &TestHost, seq: u64) {
    soon("the host to go on", async {
        while host.host.status().await.unwrap().server_seq < seq {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

fn let_in(host: &TestHost) {
    host.front.refuse(false);
}

#[tokio::test]
async fn a_client_that_was_cut_off_gets_exactly_what_it_missed() {
    let host = TestHost::on_tcp(Config::default()).await;
    let client = host.client("a").await;
    let mut session = ready_session(&client, URI).await;
    session
        .dispatch(script(
            "t1",
            json!([{"say": "one", "chunks": 3}, {"sleepMs": 50},
        {"say": "two three four", "chunks": 14}]),
        ))
        .unwrap();
    until(&mut session, "some text", |s| s.active_turn.as_ref().is_some_and(|t| !t.streaming_text.is_empty())).await;
    let (_, mut changes) = session.follow(|_| ());

    cut(&host, &[&client]).await;
    assert!(matches!(session.dispatch(start("t2", "")), Err(DispatchError::NotConnected(_))));
    assert!(matches!(client.subscribe("scripted:/x").await, Err(RequestError::NotConnected(_))));
    assert!(session.read(|state| state.session().unwrap().active_turn.is_some()), "the state is as it was");
    let_in(&host);
    connected(&client).await;
    turn_end(&mut session, "t1").await;
    must_agree(&session).await;
    let mut told = 0;
    loop {
        match soon("a change", changes.next()).await {
            Some(ResourceChange::Action(applied)) => {
                told += 1;
                if let v1::Action::Session(v1::SessionAction {
                    change: v1::SessionChange::TurnComplete { .. }, ..
                }) = applied.action
                {
                    break;
                }
            }
            other => panic!("a replay is actions, and nothing else: {other:?}"),
        }
    }
    assert!(told > 1, "a replay reaches those who follow");
    session.dispatch(script("t2", json!([{"say": "live again"}]))).unwrap();
    turn_end(&mut session, "t2").await;
    must_agree(&session).await;
}

#[tokio::test]
async fn a_client_that_missed_too_much_gets_snapshots() {
    let limits = Limits { replay_actions: 4, ..Limits::default() };
    let host = TestHost::on_tcp(Config { limits, ..Config::default() }).await;
    let client = host.client("a").await;
    let mut session = ready_session(&client, URI).await;
    let root = client.subscribe(v1::ROOT).await.unwrap();
    let ((), mut changes) = session.follow(|_| ());
    host.front.let_down(false);
    let many = json!([{"say": "much more than four pieces", "chunks": 20}, {"hang": true}]);
    let sent = session.dispatch(script("t1", many)).unwrap();
    host_reaches(&host, client.seen() + 20 * 1_024).await;
    cut(&host, &[&client]).await;
    host.front.let_down(true);
    let_in(&host);
    assert_eq!(soon("an outcome", sent.into_future()).await, DispatchOutcome::Lost, "snapshots tell no outcomes");
    assert!(matches!(soon("a change", changes.next()).await, Some(ResourceChange::Replaced)));
    let text = confirmed(&session).active_turn.unwrap().streaming_text;
    assert_eq!(text, "much more than four pieces", "what was lost in sight was taken all the same");
    must_agree(&session).await;
    assert!(root.read(|state| !state.root().unwrap().agents.is_empty()));
    session.dispatch(SessionChange::TurnCancelled { turn_id: "t1".to_owned() }).unwrap();
    turn_end(&mut session, "t1").await;
    must_agree(&session).await;
}

#[tokio::test]
async fn what_was_not_answered_is_confirmed_by_the_replay_or_lost() {
    let host = TestHost::on_tcp(Config::default()).await;
    let client = host.client("a").await;
    let mut session = ready_session(&client, URI).await;

    // The host gets it; its echo does not arrive.
    host.front.let_down(false);
    let taken = session.dispatch(script("t1", json!([{"say": "taken"}]))).unwrap();
    host_reaches(&host, client.seen() + 3 * 1_024).await;
    assert_eq!(session.pending(), 1);
    cut(&host, &[&client]).await;
    host.front.let_down(true);
    assert_eq!(session.pending(), 1, "a replay may still bring its echo");
    let_in(&host);
    assert!(matches!(soon("an answer", taken.into_future()).await, DispatchOutcome::Confirmed(_)));
    turn_end(&mut session, "t1").await;
    must_agree(&session).await;

    // The host does not get it.
    host.front.let_up(false);
    let lost = session.dispatch(script("t2", json!([{"say": "lost"}]))).unwrap();
    assert!(session.read(|state| state.session().unwrap().active_turn.is_some()));
    cut(&host, &[&client]).await;
    host.front.let_up(true);
    let_in(&host);
    assert_eq!(soon("an answer", lost.into_future()).await, DispatchOutcome::Lost);
    assert_eq!(session.pending(), 0);
    assert!(session.read(|state| state.session().unwrap().active_turn.is_none()), "its effect is gone");
    must_agree(&session).await;
    session.dispatch(script("t3", json!([{"say": "on we go"}]))).unwrap();
    turn_end(&mut session, "t3").await;
}

#[tokio::test]
async fn a_host_that_was_killed_and_started_again_is_found_again() {
    let mut host = TestHost::on_tcp(Config::default()).await;
    let client = host.client("a").await;
    let mut session = ready_session(&client, URI).await;
    session.dispatch(script("t1", json!([{"say": "before"}]))).unwrap();
    turn_end(&mut session, "t1").await;
    let seen = client.seen();
    let mut status = client.status();
    host.kill_and_restart(Config::default()).await;
    soon("a lost connection", status.changed()).await.unwrap();
    connected(&client).await;
    let sent = soon("a dispatched turn", async {
        loop {
            // The client may not have noticed the end of the old connection yet.
            match session.dispatch(script("t2", json!([{"say": "after"}]))).map(|sent| sent.into_future()) {
                Ok(sent) => match sent.await {
                    DispatchOutcome::Lost => {}
                    outcome => break outcome,
                },
                Err(_) => connected(&client).await,
            }
        }
    });
    let DispatchOutcome::Confirmed(seq) = sent.await else { panic!("it is taken") };
    assert!(seq > seen, "numbers grow across restarts");
    turn_end(&mut session, "t2").await;
    assert_eq!(confirmed(&session).turns.len(), 2);
    must_agree(&session).await;
}

#[tokio::test]
async fn a_host_that_has_forgotten_everything_is_no_obstacle() {
    let mut host = TestHost::on_tcp(Config::default()).await;
    let client = host.client("a").await;
    let mut session = ready_session(&client, URI).await;
    session.dispatch(script("t1", json!([{"say": "before"}]))).unwrap();
    turn_end(&mut session, "t1").await;
    cut(&host, &[&client]).await;
    host.forget_and_restart(Config::default()).await;
    let_in(&host);
    connected(&client).await;
    assert!(session.is_gone());
    let again = ready_session(&client, URI).await;
    assert!(!session.is_gone(), "another one of that name is there now");
    assert_eq!(confirmed(&session).turns, vec![]);
    again.dispatch(script("t2", json!([{"say": "after"}]))).unwrap();
    turn_end(&mut session, "t2").await;
    must_agree(&session).await;
}

#[tokio::test]
async fn a_session_that_went_while_nobody_was_connected_is_gone() {
    let host = TestHost::on_tcp(Config::default()).await;
    let (client, other) = (host.client("a").await, host.client("b").await);
    let mut gone = ready_session(&client, URI).await;
    let mut stays = ready_session(&client, "scripted:/stays").await;
    let ((), mut changes) = gone.follow(|_| ());
    host.front.let_down(false);
    let dispose = v1::DisposeSessionParams { session: URI.to_owned() };
    // The answer is held up, too; the request must be done.
    let disposed = tokio::spawn(async move { other.request(dispose).await });
    soon("a disposed session", async {
        while host.host.status().await.unwrap().sessions != 1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(!gone.is_gone());
    host.front.cut();
    host.front.let_down(true);
    soon("the end of the session", async {
        while !gone.is_gone() {
            gone.changed().await.unwrap();
        }
    })
    .await;
    assert!(matches!(soon("a change", changes.next()).await, Some(ResourceChange::Gone)));
    assert!(gone.read(|state| state.session().is_some()), "its last state stays readable");
    assert!(!stays.is_gone());
    stays.dispatch(script("t1", json!([{"say": "hello"}]))).unwrap();
    turn_end(&mut stays, "t1").await;
    disposed.abort();

    // A new one of that name is another resource, and revives the subscription.
    crate::harness::create(&client, URI).await;
    let again = client.subscribe(URI).await.unwrap();
    assert!(!again.is_gone() && !gone.is_gone());
}

#[tokio::test(start_paused = true)]
async fn a_host_that_falls_silent_is_given_up_for_lost() {
    let host = TestHost::in_memory(Config::default()).await;
    let client = host.client_in_memory("a").await;
    let mut status = client.status();
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(!status.has_changed().unwrap(), "pings keep it alive");
    host.front.let_down(false);
    let lost = status.wait_for(|status| matches!(status, ConnectionStatus::Reconnecting { .. }));
    let why = format!("{:?}", *tokio::time::timeout(Duration::from_secs(60), lost).await.unwrap().unwrap());
    assert!(why.contains("silent"), "{why}");
    host.front.let_down(true);
    connected(&client).await;
}
