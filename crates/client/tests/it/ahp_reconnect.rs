//! Reconnecting in the Agent Host Protocol.

use std::time::Duration;

use grove_client::{Ahp, Client, ConnectionStatus, DispatchHandle, DispatchOutcome, ResourceChange};
use grove_host::{Config, Limits};
use grove_wire::ahp::{Action, ChatAction};
use proptest::prelude::*;
use serde_json::json;

use crate::ahp::{SESSION, SessionWithChat, asked, cancel, confirm, join, ready, script, start, text, title};
use crate::harness::{TestHost, soon};
use crate::steps::{Step, settle, step, steps};

async fn connected(client: &Client<Ahp>) {
    soon("a connection", client.connected()).await.unwrap();
}

/// Cuts every connection, and refuses new ones until the client has noticed.
async fn cut(host: &TestHost, client: &Client<Ahp>) {
    host.front.refuse(true);
    host.front.cut();
    let mut status = client.status();
    let lost = status.wait_for(|status| matches!(status, ConnectionStatus::Reconnecting { .. }));
    soon("a lost connection", lost).await.unwrap();
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

#[tokio::test]
async fn a_client_that_was_cut_off_gets_exactly_what_it_missed() {
    let host = TestHost::on_tcp(Config::default()).await;
    let client = host.ahp("a").await;
    let mut talk = ready(&client, SESSION).await;
    // The client is cut off during the pause, which a busy machine must not miss.
    let steps = json!([
        {"say": "one", "chunks": 3},
        {"sleepMs": 1_000},
        {"say": "two three four", "chunks": 14},
        {"title": "T"}
    ]);
    talk.chat.dispatch(script("t1", steps)).unwrap();
    talk.until("some text", |chat| chat.active_turn.as_ref().is_some_and(|t| !text(&t.response_parts).is_empty()))
        .await;
    let (_, mut changes) = talk.chat.follow(|_| ());
    cut(&host, &client).await;
    assert!(talk.shown().active_turn.is_some(), "the state is as it was");
    host.front.refuse(false);
    connected(&client).await;
    talk.turn_end("t1").await;
    talk.must_agree().await;
    let mut told = 0;
    loop {
        match soon("a change", changes.next()).await {
            Some(ResourceChange::Action(applied)) => {
                told += 1;
                if matches!(applied.action, Action::Chat(ChatAction::TurnComplete(_))) {
                    break;
                }
            }
            other => panic!("a replay is actions, and nothing else: {other:?}"),
        }
    }
    assert!(told > 1, "a replay reaches those who follow");
    assert_eq!(talk.session_state().title, "T", "every channel is brought forward");
    talk.chat.dispatch(script("t2", json!([{"say": "live again"}]))).unwrap();
    talk.turn_end("t2").await;
    talk.must_agree().await;
}

#[tokio::test]
async fn a_client_that_missed_too_much_gets_snapshots() {
    let limits = Limits { replay_actions: 4, ..Limits::default() };
    let host = TestHost::on_tcp(Config { limits, ..Config::default() }).await;
    let client = host.ahp("a").await;
    let mut talk = ready(&client, SESSION).await;
    let ((), mut changes) = talk.chat.follow(|_| ());
    host.front.let_down(false);
    let many = json!([{"say": "much more than four pieces", "chunks": 20}, {"hang": true}]);
    let sent = talk.chat.dispatch(script("t1", many)).unwrap();
    host_reaches(&host, client.seen() + 20 * 1_024).await;
    cut(&host, &client).await;
    host.front.let_down(true);
    host.front.refuse(false);
    assert_eq!(soon("an outcome", sent.into_future()).await, DispatchOutcome::Lost, "snapshots tell no outcomes");
    assert!(matches!(soon("a change", changes.next()).await, Some(ResourceChange::Replaced)));
    let said = text(&talk.confirmed().active_turn.unwrap().response_parts);
    assert_eq!(said, "much more than four pieces", "what was lost in sight was taken all the same");
    talk.must_agree().await;
    talk.chat.dispatch(cancel("t1")).unwrap();
    talk.turn_end("t1").await;
    talk.must_agree().await;
}

#[tokio::test]
async fn what_was_not_answered_is_confirmed_by_the_replay_or_lost() {
    let host = TestHost::on_tcp(Config::default()).await;
    let client = host.ahp("a").await;
    let mut talk = ready(&client, SESSION).await;

    // The host gets it; its echo does not arrive.
    host.front.let_down(false);
    let taken = talk.chat.dispatch(script("t1", json!([{"say": "taken"}]))).unwrap();
    host_reaches(&host, client.seen() + 3 * 1_024).await;
    cut(&host, &client).await;
    host.front.let_down(true);
    assert_eq!(talk.chat.pending(), 1, "a replay may still bring its echo");
    host.front.refuse(false);
    assert!(matches!(soon("an answer", taken.into_future()).await, DispatchOutcome::Confirmed(_)));
    talk.turn_end("t1").await;
    talk.must_agree().await;

    // The host does not get it.
    host.front.let_up(false);
    let lost = talk.chat.dispatch(start("t2", "lost")).unwrap();
    assert!(talk.shown().active_turn.is_some());
    cut(&host, &client).await;
    host.front.let_up(true);
    host.front.refuse(false);
    assert_eq!(soon("an answer", lost.into_future()).await, DispatchOutcome::Lost);
    assert_eq!(talk.chat.pending(), 0);
    assert!(talk.shown().active_turn.is_none(), "its effect is gone");
    talk.must_agree().await;
}

#[tokio::test]
async fn a_host_that_was_killed_and_started_again_is_found_again() {
    let mut host = TestHost::on_tcp(Config::default()).await;
    let client = host.ahp("a").await;
    let mut talk = ready(&client, SESSION).await;
    talk.chat.dispatch(script("t1", json!([{"say": "before"}]))).unwrap();
    talk.turn_end("t1").await;
    let seen = client.seen();
    let mut status = client.status();
    host.kill_and_restart(Config::default()).await;
    soon("a lost connection", status.changed()).await.unwrap();
    connected(&client).await;
    talk.must_agree().await;
    let DispatchOutcome::Confirmed(seq) =
        soon("an echo", talk.chat.dispatch(script("t2", json!([{"say": "after"}]))).unwrap().into_future()).await
    else {
        panic!("it is taken")
    };
    assert!(seq > seen, "numbers grow across restarts");
    talk.turn_end("t2").await;
    assert_eq!(talk.confirmed().turns.len(), 2);
    talk.must_agree().await;
}

#[tokio::test]
async fn a_host_that_has_forgotten_everything_is_no_obstacle() {
    let mut host = TestHost::on_tcp(Config::default()).await;
    let client = host.ahp("a").await;
    let mut talk = ready(&client, SESSION).await;
    talk.chat.dispatch(script("t1", json!([{"say": "before"}]))).unwrap();
    talk.turn_end("t1").await;
    cut(&host, &client).await;
    host.forget_and_restart(Config::default()).await;
    host.front.refuse(false);
    connected(&client).await;
    assert!(talk.session.is_gone() && talk.chat.is_gone());
    let mut again = ready(&client, SESSION).await;
    again.chat.dispatch(script("t2", json!([{"say": "after"}]))).unwrap();
    again.turn_end("t2").await;
    again.must_agree().await;
    assert!(!talk.chat.is_gone(), "another one of that name is there now");
}

#[tokio::test]
async fn a_session_that_went_while_nobody_was_connected_is_gone() {
    let host = TestHost::on_tcp(Config::default()).await;
    let (client, other) = (host.ahp("a").await, host.ahp("b").await);
    let gone = ready(&client, SESSION).await;
    let mut stays = ready(&client, "scripted:/stays").await;
    host.front.let_down(false);
    let dispose = grove_client::dialect::ahp::DisposeSession { channel: SESSION.to_owned() };
    let disposed = tokio::spawn(async move { other.request(dispose).await });
    soon("a disposed session", async {
        while host.host.status().await.unwrap().sessions != 1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    host.front.cut();
    host.front.let_down(true);
    for mut subscription in [gone.session, gone.chat] {
        soon("its end", async {
            while !subscription.is_gone() {
                subscription.changed().await.unwrap();
            }
        })
        .await;
    }
    stays.chat.dispatch(script("t1", json!([{"say": "hello"}]))).unwrap();
    stays.turn_end("t1").await;
    stays.must_agree().await;
    disposed.abort();
}

/// Dispatches the action of a step, if it is possible now.
fn act(talk: &SessionWithChat, number: usize, step: &Step) -> Option<DispatchHandle> {
    let active = talk.shown().active_turn;
    match step {
        Step::Start { script: which, .. } => talk.chat.dispatch(script(&format!("t{number}"), steps(*which))).ok(),
        Step::Cancel { .. } => talk.chat.dispatch(cancel(&active?.id)).ok(),
        Step::Answer { approved, .. } => {
            let call = asked(&talk.shown())?;
            talk.chat.dispatch(confirm(&active?.id, &call, *approved)).ok()
        }
        Step::Set { plain: same, .. } => {
            let name = if *same { "same".to_owned() } else { format!("name {number}") };
            talk.session.dispatch(title(&name)).ok()
        }
        Step::Pass { .. } | Step::Up(_) | Step::Down(_) | Step::Cut | Step::Restart => None,
    }
}

async fn converge(steps: Vec<Step>, replay: usize) {
    let config = || Config { limits: Limits { replay_actions: replay, ..Limits::default() }, ..Config::default() };
    let mut host = TestHost::in_memory(config()).await;
    let first = host.ahp_in_memory("a").await;
    let second = host.ahp_in_memory("b").await;
    let mut talks = [ready(&first, SESSION).await, join(&second, SESSION).await];
    let mut sent = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        match step.client() {
            Some(client) => sent.extend(act(&talks[client], number, step)),
            None => step.befall(&mut host, &config).await,
        }
    }
    settle(&host, sent).await;
    for talk in &talks {
        connected(talk.chat.client()).await;
    }
    // An endless turn is cancelled, so that states can be compared.
    soon("rest", async {
        while let Some(active) = talks[0].confirmed().active_turn {
            talks[0].chat.dispatch(cancel(&active.id)).unwrap().await;
            // A paused clock stands still while no task sleeps.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    for talk in &mut talks {
        talk.until("rest", |chat| chat.active_turn.is_none()).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    for talk in &talks {
        talk.must_agree().await;
        assert_eq!((talk.chat.pending(), talk.session.pending()), (0, 0));
        assert_eq!(talk.shown(), talk.confirmed());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn clients_that_are_cut_off_held_up_and_restarted_under_converge(
        steps in prop::collection::vec(step(), 1..40),
        replay in prop_oneof![Just(3usize), Just(10_000)],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(converge(steps, replay));
    }
}
