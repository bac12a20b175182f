//! Turns that are cancelled.

use std::time::Duration;

use grove_agents::*;
use grove_testkit::acp::AgentBehavior;
use serde_json::json;
use tokio::time::timeout;

use crate::fixture::{AgentFixture, DEADLINE, after, is_alive, until};

#[tokio::test]
async fn a_cancelled_turn_leaves_the_agent_for_the_next() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let pool = fixture.pool();
    let mut session = fixture.open_in(&pool, "s", None).await;
    let running = session.start("t1", &json!([{"say": "one"}, "hang", {"say": "never"}]));
    session.until("it runs", |stored| stored.text == "one").await;
    running.abort();
    session.agent.cancel(&"t1".into()).await;
    session.turn("t2", json!([{"say": " two"}, {"spawn": {}}, "complaints"])).await.unwrap();
    let text = session.stored.text.clone();
    assert!(text.starts_with("one two") && text.contains("complaints: none"), "{text}");
    assert_eq!(session.stored.agent_session_id.len(), 1);
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn what_a_cancelled_turn_asked_is_answered_with_cancelled() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let mut session = fixture.open().await;
    // The future lives on: the host may cancel before it drops it.
    let running = session.start("t1", &json!([{"tool": {"title": "x", "ask": true}}]));
    session.until("it asks", |stored| stored.asked.len() == 1).await;
    session.agent.cancel(&"t1".into()).await;
    session.end(running).await.unwrap_err();
    session.turn("t2", json!(["complaints"])).await.unwrap();
    assert!(session.stored.text.contains("complaints: none"), "{}", session.stored.text);
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn an_agent_that_ignores_cancel_is_ended_and_started_anew() {
    let mut fixture = AgentFixture::new(AgentBehavior { ignores_cancel: true, ..AgentBehavior::default() });
    fixture.options.cancel = Duration::from_secs(3);
    let mut session = fixture.open().await;
    let steps = json!([{"say": "one"}, {"spawn": {}}, {"sleep": 600_000}]);
    let running = session.start("t1", &steps);
    session.until("it runs", |stored| stored.text.contains('\n')).await;
    let left = after(&session.stored.text, "spawned: ").to_owned();
    running.abort();
    session.agent.cancel(&"t1".into()).await;
    session.turn("t2", json!([{"say": "two"}])).await.unwrap();
    assert!(session.stored.text.ends_with("two"), "{}", session.stored.text);
    assert!(!is_alive(left), "its group is ended");
    let waits = session.stored.activities.first().cloned().flatten().unwrap();
    assert!(waits.contains("Scripted still works on the cancelled turn"), "{waits}");
    let [notice] = &session.stored.notices[..] else { panic!("{:?}", session.stored.notices) };
    assert!(notice.contains("Scripted did not stop") && notice.contains("within 3 s"), "{notice}");
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn a_turn_is_cancelled_while_nobody_takes_its_reports() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let mut session = fixture.open().await;
    session.turn("t0", json!([])).await.unwrap();
    let running = session.start("t1", &json!([{"stream": {"count": 100_000, "per_second": 100_000.0}}, "hang"]));
    session.until_full().await;
    timeout(DEADLINE, session.agent.cancel(&"t1".into())).await.expect("it waits for nobody who takes reports");
    running.abort();
    session.stored.text.clear();
    session.turn("t2", json!([{"say": "two"}])).await.unwrap();
    assert!(session.stored.text.ends_with("two"), "{}", session.stored.text);
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn a_turn_that_is_cancelled_while_its_agent_starts_is_never_sent() {
    let fixture = AgentFixture::new(AgentBehavior { slow_start: 1_000, ..AgentBehavior::default() });
    let pool = fixture.pool();
    let mut session = fixture.open_in(&pool, "s", None).await;
    let running = session.start("t1", &json!([{"say": "never"}]));
    until("it starts", || pool.running() == 1).await;
    session.agent.cancel(&"t1".into()).await;
    session.end(running).await.unwrap_err();
    session.turn("t2", json!(["echo_history", {"say": "two"}])).await.unwrap();
    assert!(!session.stored.text.contains("never"), "{}", session.stored.text);
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn an_agent_whose_turn_was_cancelled_ends_with_the_host() {
    for ignores_cancel in [false, true] {
        let fixture = AgentFixture::new(AgentBehavior { ignores_cancel, ..AgentBehavior::default() });
        let mut session = fixture.open().await;
        // Nothing is stored: the agent's output is left for the next host, unless it is no longer needed.
        session.stored.forgets = false;
        let running = session.start("t1", &json!([{"spawn": {}}, {"say": "ready"}, {"sleep": 600_000}]));
        session.until("it runs", |stored| stored.text.ends_with("ready")).await;
        let left = after(&session.stored.text, "spawned: ").to_owned();
        running.abort();
        session.agent.cancel(&"t1".into()).await;
        session.agent.close(CloseReason::Detached).await;
        assert!(!is_alive(&left), "ignores_cancel: {ignores_cancel}");
    }
}
