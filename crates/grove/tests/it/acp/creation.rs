//! Sessions whose agent starts, or fails to start, at their creation.

use grove_testkit::acp::{AgentBehavior, CrashPoint, RpcError};
use grove_wire::ahp::SessionLifecycle;
use grove_wire::v1;
use serde_json::json;

use super::*;

/// The output of `grove run` for an agent that does not start.
fn run_fails(stage: &Stage) -> String {
    let cwd = stage.place.path("work");
    let ran = stage.place.run(&["run", "--agent", "mine", "--cwd", cwd.to_str().unwrap(), "hello"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
    ran.stderr
}

/// Creates [`SESSION`] in a folder, and returns its chat, whatever the outcome.
async fn create(stage: &Stage, client: &mut Client, folder: &str) -> String {
    let folder = file_uri(&stage.place.path(folder));
    client.get(Method::CreateSession, json!({"channel": SESSION, "workingDirectories": [folder]})).await;
    client.subscribe(SESSION).await.unwrap();
    let chat = client.session(SESSION).default_chat.clone().unwrap();
    client.subscribe(&chat).await.unwrap();
    chat
}

#[tokio::test]
async fn a_session_is_creating_until_its_agent_is_initialised_and_prompts_wait_for_it() {
    let stage = Stage::new(AgentBehavior { slow_start: 700, ..AgentBehavior::default() });
    let mut client = stage.host().ahp("a").await;
    let chat = create(&stage, &mut client, "work").await;
    assert_eq!(client.session(SESSION).lifecycle, SessionLifecycle::Creating, "the answer does not wait for the agent");
    assert_eq!(said(&mut client, &chat, "t", json!([{"say": "here"}, "complaints"])).await, "herecomplaints: none\n");
    assert_eq!(client.session(SESSION).lifecycle, SessionLifecycle::Ready);
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn an_agent_that_exits_at_once_fails_the_creation_in_every_protocol() {
    let stage = Stage::new(AgentBehavior { crash_on: vec![CrashPoint::Initialize], ..AgentBehavior::default() });
    let mut client = stage.host().ahp("a").await;
    create(&stage, &mut client, "work").await;
    client.until(|client| client.session(SESSION).lifecycle == SessionLifecycle::Failed).await;
    let error = client.session(SESSION).creation_error.clone().unwrap();
    assert_eq!(error.error_type, "agentStart");
    assert!(error.message.contains("ended with code 1"), "{}", error.message);
    client.must_agree_on_all().await;

    let mut old = stage.host().client("v1").await;
    old.subscribe(SESSION).await.unwrap();
    let session = old.session(SESSION);
    assert_eq!(session.lifecycle, v1::Lifecycle::CreationFailed);
    assert_eq!(session.creation_error.as_ref().map(|error| error.message.as_str()), Some(error.message.as_str()));

    let told = run_fails(&stage);
    assert!(told.contains("ended with code 1") && told.contains("grove logs "), "{told}");
}

#[tokio::test]
async fn an_agent_that_wants_a_login_says_so_at_creation_with_its_own_words() {
    let fault = RpcError { code: -32000, message: "Please run /login".to_owned(), data: None };
    let refuses = [("session/new".to_owned(), fault)].into();
    let stage = Stage::new(AgentBehavior { refuses, ..AgentBehavior::default() });
    let mut client = stage.host().ahp("a").await;
    create(&stage, &mut client, "work").await;
    client.until(|client| client.session(SESSION).lifecycle == SessionLifecycle::Failed).await;
    let message = client.session(SESSION).creation_error.clone().unwrap().message;
    assert!(message.contains("Please run /login") && message.contains("log in with "), "{message}");
    let told = run_fails(&stage);
    assert!(told.contains("Please run /login"), "{told}");
}

#[tokio::test]
async fn a_working_directory_that_does_not_exist_fails_the_creation() {
    let stage = Stage::new(AgentBehavior::default());
    let mut client = stage.host().ahp("a").await;
    create(&stage, &mut client, "no/such/folder").await;
    client.until(|client| client.session(SESSION).lifecycle == SessionLifecycle::Failed).await;
    let message = client.session(SESSION).creation_error.clone().unwrap().message;
    assert!(message.contains("no/such/folder does not exist: create it"), "{message}");
}

#[tokio::test]
async fn an_agent_of_a_session_that_nobody_prompts_stops_when_it_is_idle() {
    let stage = Stage::with(AgentBehavior::default(), &["--agent-idle", "1"]);
    let mut client = stage.host().ahp("a").await;
    let chat = create(&stage, &mut client, "work").await;
    client.until(|client| client.session(SESSION).lifecycle == SessionLifecycle::Ready).await;
    let shims = || std::fs::read_dir(stage.place.data().join("agents")).into_iter().flatten().flatten();
    let sockets =
        || shims().filter(|shim| std::os::unix::net::UnixStream::connect(shim.path().join("socket")).is_ok()).count();
    let deadline = Deadline::new("the agent is still there");
    while sockets() > 0 {
        deadline.check();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(said(&mut client, &chat, "t", json!([{"say": "back"}])).await, "back");
}

#[test]
fn an_agent_that_only_the_commands_path_has_is_found_when_it_is_asked_for() {
    let stage = Stage::new(AgentBehavior::default());
    let script = format!("#!/bin/sh\nexec {}\n", agent_program().display());
    let program = stage.place.write("bin/claude-agent-acp", script);
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let run = |agent: &str| {
        let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
        let mut command = stage.place.grove(&["run", "--agent", agent, "hello"]);
        command.env("PATH", path).arg("--data-dir").arg(stage.place.data());
        CommandResult::from(command.output().unwrap())
    };
    let ran = run("claude");
    assert!(ran.code == Some(0) && ran.stdout.contains("You said: hello"), "{} {}", ran.stdout, ran.stderr);
    let missing = run("codex");
    assert!(missing.stderr.contains("grove agents install codex"), "{}", missing.stderr);
    assert_eq!(missing.code, Some(8));
}

#[tokio::test]
async fn a_forked_session_starts_no_agent_before_its_turn() {
    let stage = Stage::new(AgentBehavior { slow_start: 300, ..AgentBehavior::default() });
    let (mut client, chat) = stage.begin().await;
    said(&mut client, &chat, "t", json!([{"say": "hello"}])).await;
    let ran = stage.place.run(&["fork", ID]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let shims = std::fs::read_dir(stage.place.data().join("agents")).unwrap().count();
    assert_eq!(shims, 1, "the fork has none");
}
