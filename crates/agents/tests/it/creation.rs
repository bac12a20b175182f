//! Agents that start when their session is created.

use std::time::Duration;

use grove_agents::catalog::AgentCatalog;
use grove_agents::*;
use grove_testkit::acp::{AgentAbilities, AgentBehavior, CrashPoint, RpcError};
use serde_json::json;

use crate::fixture::{AgentFixture, TestSession, until};

/// The error of creating a session.
async fn refused(fixture: &AgentFixture) -> String {
    let pool = fixture.pool();
    let error = match TestSession::create(&fixture.agent(&pool), "s", &fixture.work).await {
        Ok(_) => panic!("it was created"),
        Err(error) => error,
    };
    assert!(matches!(error, AgentError::Start(_) | AgentError::LoginRequired { .. }), "{error}");
    until("its process is gone", || pool.running() == 0).await;
    error.to_string()
}

#[tokio::test]
async fn an_agent_of_a_new_session_is_initialised_before_its_first_turn_and_stops_when_it_is_idle() {
    let mut fixture = AgentFixture::new(AgentBehavior { modes: vec!["ask".to_owned()], ..AgentBehavior::default() });
    fixture.options.idle = Duration::from_secs(1);
    let pool = fixture.pool();
    let mut session = TestSession::create(&fixture.agent(&pool), "s", &fixture.work).await.unwrap();
    assert_eq!(pool.running(), 1);
    session.until("it tells its conversation", |stored| stored.agent_session_id.len() == 1).await;
    session.until("it tells its settings", |stored| stored.settings.is_some()).await;
    until("nobody prompts it", || pool.running() == 0).await;
    session.turn("t1", json!([{"say": "here"}, "complaints"])).await.unwrap();
    assert_eq!(session.stored.text, "herecomplaints: none\n");
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn an_agent_that_forgot_a_conversation_without_a_word_says_nothing_of_it() {
    let mut fixture = AgentFixture::new(AgentBehavior { can: AgentAbilities::NOTHING, ..AgentBehavior::default() });
    fixture.options.idle = Duration::from_millis(200);
    let pool = fixture.pool();
    let mut session = TestSession::create(&fixture.agent(&pool), "s", &fixture.work).await.unwrap();
    until("nobody prompts it", || pool.running() == 0).await;
    session.turn("t1", json!([{"say": "here"}])).await.unwrap();
    assert_eq!(session.stored.notices, [""; 0]);
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn an_agent_that_exits_at_once_fails_the_creation_with_its_last_words() {
    for crash_on in [CrashPoint::Initialize, CrashPoint::New] {
        let fixture = AgentFixture::new(AgentBehavior { crash_on: vec![crash_on], ..AgentBehavior::default() });
        let told = refused(&fixture).await;
        assert!(told.contains("ended with code 1"), "{told}");
    }
    let mut fixture = AgentFixture::new(AgentBehavior::default());
    fixture.program.program = "/bin/sh".into();
    fixture.program.args = vec!["-c".to_owned(), "echo no licence found >&2; exit 3".to_owned()];
    let told = refused(&fixture).await;
    assert!(told.contains("code 3") && told.contains("no licence found"), "{told}");
}

#[tokio::test]
async fn an_agent_that_wants_a_login_fails_the_creation_with_its_own_words_and_the_next_step() {
    let fault = RpcError { code: -32000, message: "Please run /login".to_owned(), data: None };
    let refuses = [("session/new".to_owned(), fault)].into();
    let mut fixture = AgentFixture::new(AgentBehavior { refuses, ..AgentBehavior::default() });
    let told = refused(&fixture).await;
    assert!(told.contains("Please run /login") && told.contains("log in with Scripted itself"), "{told}");
    fixture.program.id = "claude".into();
    fixture.program.known = AgentCatalog::built_in().get("claude").cloned();
    let told = refused(&fixture).await;
    assert!(told.contains("run `claude` and log in there"), "{told}");
}

#[tokio::test]
async fn a_working_directory_that_does_not_exist_fails_the_creation() {
    let mut fixture = AgentFixture::new(AgentBehavior::default());
    fixture.work = fixture.work.join("missing");
    let told = refused(&fixture).await;
    assert!(told.contains("missing does not exist: create it"), "{told}");
    std::fs::write(&fixture.work, "").unwrap();
    let told = refused(&fixture).await;
    assert!(told.contains("missing is not a folder"), "{told}");
}

#[tokio::test]
async fn an_agent_that_does_not_answer_fails_the_creation_in_time() {
    let fixture = AgentFixture::new(AgentBehavior { slow_start: 600_000, ..AgentBehavior::default() });
    let told = refused(&fixture).await;
    assert!(told.contains("was not ready within 5 s"), "{told}");
}

#[tokio::test]
async fn a_creation_that_is_given_up_leaves_nothing_behind() {
    let fixture = AgentFixture::new(AgentBehavior { slow_start: 600_000, ..AgentBehavior::default() });
    let pool = fixture.pool();
    let agent = fixture.agent(&pool);
    let work = fixture.work.clone();
    let creating = tokio::spawn(async move { TestSession::create(&agent, "s", &work).await.map(|_| ()) });
    until("its process starts", || pool.running() == 1).await;
    creating.abort();
    until("its process is gone", || pool.running() == 0).await;
    let shims = fixture.root().join("shims");
    until("its folder is gone", || std::fs::read_dir(&shims).is_ok_and(|found| found.count() == 0)).await;
}

#[tokio::test]
async fn idle_agents_make_way_for_a_new_session_and_busy_ones_do_not() {
    let mut fixture = AgentFixture::new(AgentBehavior::default());
    fixture.options.processes = 1;
    let pool = fixture.pool();
    let agent = fixture.agent(&pool);
    let mut first = TestSession::create(&agent, "first", &fixture.work).await.unwrap();
    let mut second = TestSession::create(&agent, "second", &fixture.work).await.unwrap();
    assert_eq!(pool.running(), 1, "the first one has made way");
    second.until("the second one is there", |stored| stored.agent_session_id.len() == 1).await;
    let running = first.start("t1", &json!([{"say": "busy"}, "hang"]));
    first.until("the first one works", |stored| stored.text == "busy").await;
    // No slot is free: its agent starts with its first turn.
    let mut third = TestSession::create(&agent, "third", &fixture.work).await.unwrap();
    assert!(third.stored.agent_session_id.is_empty());
    running.abort();
    first.agent.cancel(&"t1".into()).await;
    third.turn("t1", json!([{"say": "here"}])).await.unwrap();
    assert!(third.stored.text.ends_with("here"), "{}", third.stored.text);
    for session in [first, second, third] {
        session.agent.close(CloseReason::Removed).await;
    }
}
