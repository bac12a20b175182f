//! The lifetime of an agent's process, and the knowledge of the next one.

use std::sync::Arc;
use std::time::Duration;

use grove_agents::*;
use grove_core::*;
use grove_testkit::acp::{AgentAbilities, AgentBehavior, CrashPoint, prompt};
use serde_json::json;

use crate::fixture::{AgentFixture, SHORT, TestSession, after, is_alive, until, until_idle};

#[tokio::test]
async fn an_agent_starts_with_its_first_turn_and_stays_for_the_next() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let pool = fixture.pool();
    let mut session = fixture.open_in(&pool, "s", None).await;
    assert_eq!(pool.running(), 0, "opening starts nothing");
    session.turn("t1", json!([{"say": "one "}, {"spawn": {}}])).await.unwrap();
    session.turn("t2", json!([{"say": "two"}, "echo_history", "cwd", "client", "complaints"])).await.unwrap();
    assert_eq!(pool.running(), 1);
    let text = &session.stored.text;
    assert!(text.contains("one ") && text.contains("agent: one"), "the same process: {text}");
    assert!(text.contains(&fixture.work.display().to_string()), "{text}");
    assert!(text.contains("\"grove\"") && text.contains("complaints: none"), "{text}");
    assert_eq!(session.stored.agent_session_id.len(), 1);
    let left = after(text, "spawned: ").to_owned();
    session.agent.close(CloseReason::Removed).await;
    assert!(!is_alive(&left), "what it started ends with it");
    assert_eq!(pool.running(), 0);
    assert_eq!(std::fs::read_dir(fixture.root().join("shims")).unwrap().count(), 0, "its folder is gone");
}

#[tokio::test]
async fn a_program_that_is_missing_is_named_before_anything_starts() {
    let mut fixture = AgentFixture::new(AgentBehavior::default());
    fixture.program.program = "no-such-agent".into();
    let (sender, _reports) = tokio::sync::mpsc::channel(1);
    let opening = OpenSession {
        session: "s".into(),
        chat: "main".into(),
        model: None,
        working_directories: vec![],
        agent_session_id: None,
        settings: Extra::new(),
        reports: ChatSink::new("main".into(), sender),
        spills: std::sync::Arc::new(()),
        start: AgentStart::FirstTurn,
        setup: Arc::default(),
        client_tools: ClientTools::default(),
    };
    let error = fixture.agent(&fixture.pool()).open(opening).await.err().unwrap().to_string();
    assert!(error.contains("no-such-agent") && error.contains("install"), "{error}");
}

#[tokio::test]
async fn a_crash_fails_the_turn_and_the_next_one_goes_on_with_the_session() {
    for can in [AgentAbilities::default(), AgentAbilities { resume: false, ..AgentAbilities::default() }] {
        let fixture = AgentFixture::new(AgentBehavior { can, load_differs: true, ..AgentBehavior::default() });
        let mut session = fixture.open().await;
        session.turn("t1", json!([{"say": "remember me"}])).await.unwrap();
        let crash = json!([{"say": "here"}, {"stderr": "out of luck"}, {"crash": {"code": 7}}]);
        let error = session.turn("t2", crash).await.unwrap_err();
        let told = error.to_string();
        assert!(matches!(error, AgentError::Died(_)) && told.contains("code 7"), "{told}");
        assert!(told.contains("out of luck"), "{told}");
        assert!(session.stored.text.ends_with("here"), "what it said is not lost");
        session.stored.text.clear();
        session.turn("t3", json!(["echo_history"])).await.unwrap();
        assert!(session.stored.text.contains("agent: remember me"), "{}", session.stored.text);
        assert!(
            session.stored.text.starts_with("user: ") || session.stored.text.starts_with("history"),
            "nothing of the replay is shown: {}",
            session.stored.text
        );
        assert_eq!(session.stored.agent_session_id.len(), 1, "it is the same conversation");
        session.agent.close(CloseReason::Removed).await;
    }
}

#[tokio::test]
async fn an_agent_that_forgot_is_told_the_conversation() {
    let fixture = AgentFixture::new(AgentBehavior { can: AgentAbilities::NOTHING, ..AgentBehavior::default() });
    let mut session = fixture.open_in(&fixture.pool(), "s", Some("forgotten".to_owned())).await;
    let running = session.start_with("t1", with_history());
    session.end(running).await.unwrap();
    session.turn("t2", json!(["echo_history"])).await.unwrap();
    let text = &session.stored.text;
    assert!(text.contains("4711") && text.contains("what was the number?"), "{text}");
    assert_eq!(session.stored.agent_session_id.len(), 1, "it has another name now");
    assert_eq!(session.stored.notices.len(), 1, "{:?}", session.stored.notices);
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn a_conversation_that_cannot_be_told_fails_the_turn_and_is_asked_for_again() {
    let fixture = AgentFixture::new(AgentBehavior { can: AgentAbilities::NOTHING, ..AgentBehavior::default() });
    let mut session = fixture.open_in(&fixture.pool(), "s", Some("forgotten".to_owned())).await;
    let memory = Arc::new(Unreadable);
    let running = session.start_with("t1", Prompt { memory, ..with_history() });
    let error = session.end(running).await.unwrap_err();
    assert!(
        matches!(error, AgentError::ConversationHistory(_)) && error.to_string().contains("disk is gone"),
        "{error}"
    );
    let running = session.start_with("t2", with_history());
    session.end(running).await.unwrap();
    session.turn("t3", json!(["echo_history"])).await.unwrap();
    assert!(session.stored.text.contains("4711"), "{}", session.stored.text);
    // An agent that remembers gets no recap.
    let running = session.start_with("t4", Prompt { memory: Arc::new(Unreadable), ..with_history() });
    session.end(running).await.unwrap();
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn an_agent_that_was_started_to_be_configured_is_told_the_conversation_as_well() {
    let modes = vec!["ask".to_owned(), "code".to_owned()];
    let fixture = AgentFixture::new(AgentBehavior { can: AgentAbilities::NOTHING, modes, ..AgentBehavior::default() });
    let pool = fixture.pool();
    let mut session = fixture.open_in(&pool, "s", Some("forgotten".to_owned())).await;
    session.agent.configure([("mode".to_owned(), json!("code"))].into_iter().collect()).await;
    session.until("it is started", |stored| !stored.agent_session_id.is_empty()).await;
    let running = session.start_with("t1", with_history());
    session.end(running).await.unwrap();
    session.turn("t2", json!(["echo_history"])).await.unwrap();
    assert!(session.stored.text.contains("4711"), "{}", session.stored.text);
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn an_agent_that_dies_before_its_prompt_is_sent_fails_the_turn() {
    let modes = vec!["ask".to_owned(), "code".to_owned()];
    let fixture =
        AgentFixture::new(AgentBehavior { crash_on: vec![CrashPoint::SetMode], modes, ..AgentBehavior::default() });
    let agent = fixture.agent(&fixture.pool());
    let settings = [("mode".to_owned(), json!("code"))].into_iter().collect();
    let mut session = TestSession::open(&agent, "s", vec![fixture.work.display().to_string()], None, settings).await;
    let error = session.turn("t1", json!([{"say": "never"}])).await.unwrap_err();
    assert!(matches!(&error, AgentError::Died(how) if how.contains("code 1")), "{error}");
    session.agent.close(CloseReason::Removed).await;
}

/// A fixed earlier conversation.
#[derive(Debug)]
struct FixedHistory(&'static str);

#[async_trait::async_trait]
impl ConversationHistory for FixedHistory {
    async fn retell(&self, most: usize) -> Result<Option<String>, AgentError> {
        Ok(Some(self.0[..self.0.len().min(most)].to_owned()))
    }
}

#[derive(Debug)]
struct Unreadable;

#[async_trait::async_trait]
impl ConversationHistory for Unreadable {
    async fn retell(&self, _most: usize) -> Result<Option<String>, AgentError> {
        Err(AgentError::ConversationHistory("the disk is gone".to_owned()))
    }
}

/// A prompt in a conversation with earlier messages.
fn with_history() -> Prompt {
    let message = Message::user(prompt(&json!([{"say": "ok"}])));
    Prompt {
        message,
        model: None,
        client_tools: vec![],
        memory: Arc::new(FixedHistory("User:\nwhat was the number?\n\nAssistant:\nIt was 4711.")),
    }
}

#[tokio::test]
async fn a_start_that_fails_says_why_and_leaves_nothing() {
    let fixture = AgentFixture::new(AgentBehavior { crash_on: vec![CrashPoint::New], ..AgentBehavior::default() });
    let pool = fixture.pool();
    let mut session = fixture.open_in(&pool, "s", None).await;
    let error = session.turn("t", json!([])).await.unwrap_err();
    assert!(matches!(error, AgentError::Start(_)), "{error}");
    assert_eq!(pool.running(), 0);
    let mut fixture = AgentFixture::new(AgentBehavior { slow_start: 30_000, ..AgentBehavior::default() });
    fixture.options.start = SHORT;
    let pool = fixture.pool();
    let mut session = fixture.open_in(&pool, "s", None).await;
    let error = session.turn("t", json!([])).await.unwrap_err().to_string();
    assert!(error.contains("initialize"), "{error}");
    assert_eq!(pool.running(), 0);
}

#[tokio::test]
async fn an_idle_agent_is_stopped_and_comes_back() {
    let mut fixture = AgentFixture::new(AgentBehavior::default());
    fixture.options.idle = Duration::from_millis(50);
    let pool = fixture.pool();
    let mut session = fixture.open_in(&pool, "s", None).await;
    session.turn("t1", json!([{"say": "one"}])).await.unwrap();
    until("it stops", || pool.running() == 0).await;
    session.turn("t2", json!(["echo_history"])).await.unwrap();
    assert!(session.stored.text.contains("agent: one"), "{}", session.stored.text);
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn no_more_agents_run_than_may_and_the_longest_idle_goes() {
    let mut fixture = AgentFixture::new(AgentBehavior::default());
    fixture.options.processes = 2;
    let pool = fixture.pool();
    let mut sessions = Vec::new();
    for name in ["a", "b", "c"] {
        sessions.push(fixture.open_in(&pool, name, None).await);
    }
    sessions[0].turn("t1", json!([{"say": "a"}])).await.unwrap();
    let hanging = sessions[1].start("t1", &json!([{"say": "b"}, "hang"]));
    sessions[1].until("it runs", |stored| stored.text == "b").await;
    sessions[2].turn("t1", json!([{"say": "c"}])).await.unwrap();
    assert_eq!(pool.running(), 2, "the idle one has made room");
    let told = |activities: &[Option<String>]| {
        let [Some(waits), None] = activities else { panic!("it waits, and then no more: {activities:?}") };
        assert!(waits.contains("The limit on running agents (2)"), "{waits}");
    };
    told(&sessions[2].stored.activities);
    assert!(sessions[2].stored.notices.is_empty(), "nothing stays of it: {:?}", sessions[2].stored.notices);
    // Now two are busy, and a third waits until one of them is done.
    let busy = sessions[2].start("t2", &json!([{"say": "+"}, "hang"]));
    sessions[2].until("it runs", |stored| stored.text == "c+").await;
    let waiting = sessions[0].start("t2", &json!([{"say": "again"}]));
    sessions[0].until("it says that it waits", |stored| stored.activities.len() == 1).await;
    until_idle(Duration::from_secs(1)).await;
    assert_eq!((pool.running(), sessions[0].stored.text.as_str()), (2, "a"));
    sessions[2].agent.cancel(&"t2".into()).await;
    busy.abort();
    sessions[0].end(waiting).await.unwrap();
    assert_eq!(sessions[0].stored.text, "aagain");
    told(&sessions[0].stored.activities);
    hanging.abort();
    for session in &sessions {
        session.agent.close(CloseReason::Removed).await;
    }
    // The conversations of agents that were stopped are deleted in the background.
    until("nothing is left", || pool.running() == 0).await;
}

#[tokio::test]
async fn an_agent_that_ignores_its_closed_stdin_is_killed_with_its_group() {
    let fixture = AgentFixture::new(AgentBehavior { ignores_stdin_close: true, ..AgentBehavior::default() });
    let mut session = fixture.open().await;
    session.turn("t", json!([{"spawn": {"holds_stdout": true}}])).await.unwrap();
    let left = after(&session.stored.text, "spawned: ").to_owned();
    assert!(is_alive(&left));
    session.agent.close(CloseReason::Detached).await;
    assert!(!is_alive(&left));
}

#[tokio::test]
async fn without_a_working_directory_an_agent_works_in_a_folder_of_its_own() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let agent = fixture.agent(&fixture.pool());
    let mut session = TestSession::open(&agent, "s", vec![], None, Extra::new()).await;
    session.turn("t", json!(["cwd"])).await.unwrap();
    let shims = fixture.root().join("shims").display().to_string();
    assert!(session.stored.text.contains(&shims), "{}", session.stored.text);
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn agents_of_an_earlier_host_are_ended_but_for_those_whose_turns_go_on() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let mut lost = fixture.open_in(&fixture.pool(), "lost", None).await;
    let mut kept = fixture.open_in(&fixture.pool(), "kept", None).await;
    let mut alive = Vec::new();
    for session in [&mut lost, &mut kept] {
        let running = session.start("t", &json!([{"spawn": {}}, "hang"]));
        session.until("it runs", |stored| stored.text.contains('\n')).await;
        alive.push(after(&session.stored.text, "spawned: ").to_owned());
        running.abort();
    }
    drop((lost, kept));
    std::fs::create_dir(fixture.root().join("shims/notes")).unwrap();
    let pool = fixture.pool();
    pool.sweep(&[("kept".into(), "main".into())]).await;
    assert!(!is_alive(&alive[0]) && is_alive(&alive[1]));
    assert!(!pool.folder_of(&"lost".into(), &"main".into()).exists());
    assert!(pool.folder_of(&"kept".into(), &"main".into()).exists());
    assert!(fixture.root().join("shims/notes").exists(), "what is not ours stays");
    pool.sweep(&[]).await;
    assert!(!is_alive(&alive[1]));
}

#[tokio::test]
async fn an_agent_that_never_answers_initialize_is_named_while_it_is_waited_for_and_when_it_is_given_up() {
    let mut fixture = AgentFixture::new(AgentBehavior { hangs_initialize: true, ..AgentBehavior::default() });
    fixture.options.start = Duration::from_secs(3);
    let pool = fixture.pool();
    let mut session = fixture.open_in(&pool, "s", None).await;
    let began = std::time::Instant::now();
    let running = session.start("t", &json!([{"say": "never"}]));
    session.until("it tells what it waits for", |stored| stored.activities.len() == 1).await;
    let waits = session.stored.activities[0].clone().unwrap();
    assert!(waits.contains("Scripted") && waits.contains("initialize"), "{waits}");
    let error = session.end(running).await.unwrap_err().to_string();
    assert!(error.contains("Scripted") && error.contains("`initialize` within 3 s"), "{error}");
    assert!(error.contains("agent-start"), "the next step: {error}");
    assert!(began.elapsed() < Duration::from_secs(30), "other steps have a minute");
    assert_eq!(pool.running(), 0);
}

#[tokio::test]
async fn an_agent_that_closes_its_stdout_fails_its_turn_at_once_and_the_next_one_runs() {
    let fixture = AgentFixture::new(AgentBehavior { ignores_stdin_close: true, ..AgentBehavior::default() });
    let mut session = fixture.open().await;
    session.turn("t1", json!([{"say": "one"}])).await.unwrap();
    let began = std::time::Instant::now();
    let error = session.turn("t2", json!([{"say": "said"}, "close_stdout", "hang"])).await.unwrap_err();
    let told = error.to_string();
    assert!(matches!(error, AgentError::Died(_)) && told.contains("closed its stdout"), "{told}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(session.stored.text.ends_with("said"), "what it said is not lost: {}", session.stored.text);
    session.turn("t3", json!([{"say": "three"}])).await.unwrap();
    assert!(session.stored.text.ends_with("three"));
    session.agent.close(CloseReason::Removed).await;
}

#[tokio::test]
async fn a_shim_that_no_session_uses_is_ended_and_the_others_run_on() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let pool = fixture.pool();
    let mut alive = Vec::new();
    let mut sessions = Vec::new();
    for name in ["left", "kept", "used"] {
        let mut session = fixture.open_in(&pool, name, None).await;
        let running = session.start("t", &json!([{"spawn": {}}, "hang"]));
        session.until("it runs", |stored| stored.text.contains('\n')).await;
        alive.push(after(&session.stored.text, "spawned: ").to_owned());
        sessions.push((session, running));
    }
    let used = sessions.pop().unwrap();
    for (session, running) in sessions {
        // The turn goes on without a host.
        running.abort();
        session.agent.close(CloseReason::Detached).await;
        drop(session);
    }
    // The next host of the two knows of one of them.
    let next = fixture.pool();
    let used_folder = next.folder_of(&"used".into(), &"main".into());
    let set_aside = fixture.root().join("used");
    std::fs::rename(&used_folder, &set_aside).unwrap();
    std::fs::rename(next.folder_of(&"left".into(), &"main".into()), fixture.root().join("left")).unwrap();
    next.sweep(&[("kept".into(), "main".into())]).await;
    std::fs::rename(&set_aside, &used_folder).unwrap();
    std::fs::rename(fixture.root().join("left"), next.folder_of(&"left".into(), &"main".into())).unwrap();
    assert!(alive.iter().all(is_alive), "all of them run");
    let reopened = fixture.open_in(&next, "used", None).await;
    next.sweep_unused().await;
    assert!(!is_alive(&alive[0]), "no session names it");
    assert!(is_alive(&alive[1]) && is_alive(&alive[2]), "one goes on, one is used");
    assert!(next.folder_of(&"left".into(), &"main".into()).exists(), "its log stays");
    used.1.abort();
    drop(reopened);
    next.sweep_unused().await;
    next.sweep(&[]).await;
    assert!(!is_alive(&alive[1]));
}

#[tokio::test]
async fn an_agent_whose_turn_ends_as_the_host_stops_ends_with_it_once_that_is_stored() {
    let fixture = AgentFixture::new(AgentBehavior::default());
    let mut session = fixture.open().await;
    session.stored.forgets = false;
    session.turn("t", json!([{"spawn": {}}, {"say": "done"}])).await.unwrap();
    let left = after(&session.stored.text, "spawned: ").to_owned();
    let agent = std::sync::Arc::clone(&session.agent);
    let closing = tokio::spawn(async move { agent.close(CloseReason::Detached).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    // The journal confirms the last batch a moment after the host began to stop.
    session.agent.stored(session.stored.mark.as_ref().unwrap());
    closing.await.unwrap();
    until("the agent ends with the host", || !is_alive(&left)).await;
}
