//! Copies that an agent makes of its own conversations.

use std::time::Duration;

use grove_agents::*;
use grove_testkit::acp::{AgentAbilities, AgentBehavior, RpcError};
use serde_json::json;

use crate::fixture::{AgentFixture, SHORT, TestSession, until};

/// The agent's memory of a conversation that it opens.
async fn remembered(fixture: &AgentFixture, agent_session_id: String) -> String {
    let mut copy = fixture.open_in(&fixture.pool(), "copy", Some(agent_session_id)).await;
    copy.turn("t", json!(["echo_history"])).await.unwrap();
    copy.agent.close(CloseReason::Detached).await;
    assert_eq!(copy.stored.notices, Vec::<String>::new(), "it got no recap");
    copy.stored.text
}

async fn begun(fixture: &AgentFixture) -> TestSession {
    let mut session = fixture.open().await;
    session.turn("t1", json!([{"say": "remember me"}])).await.unwrap();
    session
}

#[tokio::test]
async fn a_copy_is_made_by_the_process_that_runs_and_knows_nothing_that_is_said_later() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let mut session = begun(&fixture).await;
    let agent = session.agent.clone();
    let (forked, later) = tokio::join!(agent.fork(), async {
        // The copy is requested first: both wait for the same worker.
        tokio::task::yield_now().await;
        session.turn("t2", json!([{"say": "too late"}])).await
    });
    later.unwrap();
    let copy = forked.unwrap().expect("it can");
    assert_ne!(copy, session.stored.agent_session_id[0]);
    session.stored.text.clear();
    session.turn("t3", json!(["echo_history", "complaints"])).await.unwrap();
    let text = &session.stored.text;
    assert!(text.contains("too late") && text.contains("complaints: none"), "it goes on: {text}");
    session.agent.close(CloseReason::Detached).await;
    let told = remembered(&fixture, copy).await;
    assert!(told.contains("agent: remember me") && !told.contains("too late"), "{told}");
}

#[tokio::test]
async fn a_copy_is_made_by_another_process_where_none_runs() {
    let mut fixture = AgentFixture::new(AgentBehavior::default());
    fixture.options.idle = SHORT;
    let pool = fixture.pool();
    let mut session = fixture.open_in(&pool, "s", None).await;
    session.turn("t1", json!([{"say": "remember me"}])).await.unwrap();
    until("it is stopped", || pool.running() == 0).await;
    let copy = session.agent.fork().await.unwrap().expect("it can");
    assert_eq!(pool.running(), 0, "the process was for this alone");
    assert!(remembered(&fixture, copy).await.contains("agent: remember me"));
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn a_copy_in_another_process_is_given_up_for_a_turn() {
    let mut fixture = AgentFixture::new(AgentBehavior { slow_start: 1_000, ..AgentBehavior::default() });
    fixture.options.idle = SHORT;
    let pool = fixture.pool();
    let mut session = fixture.open_in(&pool, "s", None).await;
    session.turn("t1", json!([{"say": "remember me"}])).await.unwrap();
    until("it is stopped", || pool.running() == 0).await;
    let agent = session.agent.clone();
    let forked = tokio::spawn(async move { agent.fork().await });
    until("it is started", || pool.running() == 1).await;
    session.turn("t2", json!([{"say": "on"}])).await.unwrap();
    assert_eq!(forked.await.unwrap().unwrap(), None);
    until("what was started for it is gone", || pool.running() <= 1).await;
    session.agent.close(CloseReason::Removed).await;
    until("nothing is left", || std::fs::read_dir(fixture.root().join("shims")).unwrap().count() == 0).await;
}

#[tokio::test]
async fn what_cannot_be_copied_is_not() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let session = fixture.open().await;
    assert_eq!(session.agent.fork().await.unwrap(), None, "nothing was said yet");
    session.agent.close(CloseReason::Removed).await;
    assert_eq!(session.agent.fork().await.unwrap(), None, "it is closed");

    let fixture = AgentFixture::new(AgentBehavior {
        can: AgentAbilities { fork: false, ..AgentAbilities::default() },
        ..AgentBehavior::default()
    });
    let session = begun(&fixture).await;
    assert_eq!(session.agent.fork().await.unwrap(), None, "this one cannot");
    session.agent.close(CloseReason::Removed).await;

    let fault = RpcError { code: -32603, message: "no room".to_owned(), data: None };
    let refuses = [("session/fork".to_owned(), fault)].into();
    let fixture = AgentFixture::new(AgentBehavior { refuses, ..AgentBehavior::default() });
    let mut session = begun(&fixture).await;
    let error = session.agent.fork().await.unwrap_err().to_string();
    assert!(error.contains("no room") && error.contains("Scripted"), "{error}");
    let running = session.start("t2", &json!([{"say": "busy"}, "hang"]));
    session.until("it is busy", |stored| stored.text.contains("busy")).await;
    assert_eq!(session.agent.fork().await.unwrap(), None, "a turn runs");
    session.agent.cancel(&"t2".into()).await;
    tokio::time::timeout(Duration::from_secs(30), session.end(running)).await.unwrap().ok();
    session.agent.close(CloseReason::Removed).await;
}
