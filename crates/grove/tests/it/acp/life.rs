//! The life of agents' processes, and what clients see when an agent misbehaves.

use grove_shim::ShimStream;
use grove_testkit::acp::AgentBehavior;
use grove_testkit::ahp::markdown;
use grove_wire::ahp::{ROOT, SessionLifecycle, TurnState};
use serde_json::{Value, json};

use super::*;

/// The process that an agent has left in its group, and the agent itself.
async fn processes(client: &mut Client, chat: &str) -> [String; 2] {
    let told = said(client, chat, "spawns", json!([{"spawn": {"seconds": 600, "holds_stdout": true}}])).await;
    let left = after(&told, "spawned: ").to_owned();
    let stat = std::fs::read_to_string(format!("/proc/{left}/stat")).unwrap();
    let parent = stat[stat.rfind(')').unwrap()..].split(' ').nth(2).unwrap().to_owned();
    [left, parent]
}

async fn until_gone(processes: &[String]) {
    let deadline = Deadline::new("the agent is still there");
    while processes.iter().any(|process| is_alive(process)) {
        deadline.check();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

// Quirk 7.
#[tokio::test]
async fn an_agent_that_ignores_its_closed_stdin_is_gone_after_its_session() {
    let stage = Stage::new(AgentBehavior { ignores_stdin_close: true, ..AgentBehavior::default() });
    let (mut client, chat) = stage.begin().await;
    let processes = processes(&mut client, &chat).await;
    assert!(processes.iter().all(|process| is_alive(process)), "{processes:?}");
    client.get(Method::DisposeSession, json!({"channel": SESSION})).await;
    until_gone(&processes).await;
    let deadline = Deadline::new("the agent's folder is still there");
    while std::fs::read_dir(stage.place.data().join("agents")).is_ok_and(|found| found.count() > 0) {
        deadline.check();
    }
}

// Quirk 7.
#[tokio::test]
async fn an_agent_that_ignores_its_closed_stdin_is_gone_when_nobody_needs_it_and_comes_back() {
    let stage =
        Stage::with(AgentBehavior { ignores_stdin_close: true, ..AgentBehavior::default() }, &["--agent-idle", "1"]);
    let (mut client, chat) = stage.begin().await;
    until_gone(&processes(&mut client, &chat).await).await;
    let told = said(&mut client, &chat, "again", json!(["echo_history", "complaints"])).await;
    assert!(told.contains("agent: spawned: ") && told.contains("complaints: none"), "{told}");
    client.must_agree_on_all().await;
}

/// Waits until no agent of the stage's host has a shim.
async fn until_no_shims(stage: &Stage) {
    let deadline = Deadline::new("a shim is still there");
    loop {
        let folders = std::fs::read_dir(stage.place.data().join("agents")).unwrap();
        let shims = folders.map(|folder| async move { ShimStream::find(&folder.unwrap().path()).await });
        if futures_util::future::join_all(shims).await.iter().all(Option::is_none) {
            return;
        }
        deadline.check();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

// The host has no session any more that would end the agent, and the agent does not answer.
#[tokio::test]
async fn a_host_that_stops_ends_the_agent_of_a_session_that_was_just_disposed() {
    let mut stage = Stage::new(AgentBehavior { hangs_close: true, ..AgentBehavior::default() });
    let (mut client, chat) = stage.begin().await;
    let processes = processes(&mut client, &chat).await;
    client.get(Method::DisposeSession, json!({"channel": SESSION})).await;
    stage.host.take().unwrap().stop();
    until_gone(&processes).await;
    until_no_shims(&stage).await;
}

#[tokio::test]
async fn a_host_that_stops_ends_an_agent_that_is_still_starting() {
    let mut stage = Stage::new(AgentBehavior { hangs_initialize: true, ..AgentBehavior::default() });
    let mut client = stage.host().ahp("a").await;
    let folder = file_uri(&stage.place.path("work"));
    client.get(Method::CreateSession, json!({"channel": SESSION, "workingDirectories": [folder]})).await;
    let shim_folder = grove_agents::acp::shim_folder(&stage.place.data().join("agents"), &ID.into(), &"main".into());
    let deadline = Deadline::new("the agent does not start");
    while ShimStream::find(&shim_folder).await.is_none() {
        deadline.check();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stage.host.take().unwrap().stop();
    until_no_shims(&stage).await;
}

// As codex-acp does it.
#[tokio::test]
async fn a_turn_that_an_agent_ends_after_a_denial_has_not_failed() {
    let stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = stage.begin().await;
    let steps = json!([{"ask": {"tool_call": {"toolCallId": "c", "title": "touch x", "kind": "execute"}}}, {"stop": "cancelled"}]);
    for (turn, option) in [("denied", "reject_once"), ("approved", "allow_once")] {
        start(&mut client, &chat, turn, &steps).await;
        let call = asked(&mut client, &chat).await;
        answer(&mut client, &chat, turn, &call, option).await;
        let ended = client.turn_end(&chat, turn).await;
        let notices = parts(&ended, "systemNotification");
        match option {
            "reject_once" => {
                assert_eq!(ended.state, TurnState::Complete, "{ended:?}");
                assert!(notices.iter().any(|notice| notice.to_string().contains("was denied")), "{notices:?}");
            }
            _ => assert_eq!(ended.state, TurnState::Error, "an agent that gives up by itself fails: {ended:?}"),
        }
    }
    client.must_agree_on_all().await;
}

// Quirk 8.
#[tokio::test]
async fn a_turn_whose_agent_tries_again_in_silence_is_said_to_be_quiet_and_can_be_cancelled_at_once() {
    let stage = Stage::new(AgentBehavior { retries_for: 600_000, ..AgentBehavior::default() });
    let (mut client, chat) = stage.begin().await;
    let mut other = stage.host().ahp_connect("b").await;
    other.initialize(&[SESSION, &chat]).await;
    let fails = json!({"code": -32603, "message": "no model", "data": null});
    start(&mut client, &chat, "t", &json!([{"say": "trying"}, {"fail": fails}])).await;
    client.until(|client| client.chat(&chat).activity.is_some()).await;
    let words = client.chat(&chat).activity.clone().unwrap();
    assert!(words.starts_with("no report from the agent for 15 s"), "{words}");
    client.must_agree_on_all().await;

    // Every client may end it. The agent would go on trying for ten minutes, longer than a test waits for anything.
    cancel(&mut other, &chat, "t").await;
    let ended = client.turn_end(&chat, "t").await;
    assert_eq!((ended.state, markdown(&ended.response_parts).as_str()), (TurnState::Cancelled, "trying"));
    client.until(|client| client.chat(&chat).activity.is_none()).await;
    assert_eq!(said(&mut client, &chat, "u", json!([{"say": "back"}, "complaints"])).await, "backcomplaints: none\n");
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn a_stop_that_cancels_turns_leaves_no_agent_behind() {
    for (ignores_cancel, cancels_first) in [(false, true), (true, true), (false, false), (true, false)] {
        // An agent without a model retries silently; one that ignores cancellation goes on doing so.
        let behavior = AgentBehavior { retries_for: 600_000, ignores_cancel, ..AgentBehavior::default() };
        let stage = Stage::new(behavior);
        let (mut client, chat) = stage.begin().await;
        let processes = processes(&mut client, &chat).await;
        let call = json!({"toolCallId": "c", "title": "fetch", "status": "in_progress"});
        let fails = json!({"code": -32603, "message": "no model", "data": null});
        start(&mut client, &chat, "t", &json!([{"tool_call": call}, {"say": "trying"}, {"fail": fails}])).await;
        client.until(|client| streamed(client, &chat) == "trying").await;
        if cancels_first {
            assert_eq!(stage.place.run(&["cancel", ID]).code, Some(0));
        }
        assert!(processes.iter().all(|process| is_alive(process)), "{processes:?}");
        let stopped = stage.place.run(&["stop", "--turns"]);
        assert_eq!(stopped.code, Some(0), "{}", stopped.stderr);
        until_gone(&processes).await;
    }
}

#[tokio::test]
async fn an_agent_that_fails_says_why_in_its_turn() {
    let stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = stage.begin().await;
    let fails = json!({"code": -32603, "message": "no model", "data": {"details": "out of quota"}});
    let ended = run(&mut client, &chat, "t", json!([{"say": "so far"}, {"fail": fails}])).await;
    assert_eq!((ended.state, markdown(&ended.response_parts).as_str()), (TurnState::Error, "so far"));
    let error = parts(&ended, "error")[0]["error"]["message"].clone();
    assert!(error.as_str().unwrap().contains("no model"), "{error}");
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn a_crash_ends_the_turn_with_the_last_words_and_the_next_prompt_goes_on() {
    let stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = stage.begin().await;
    let mut old = stage.host().client("v1").await;
    old.subscribe(SESSION).await.unwrap();
    said(&mut client, &chat, "t1", json!([{"say": "remember me"}])).await;
    let lines: Vec<Value> = (1..=8).map(|n| json!({"stderr": format!("line {n}")})).collect();
    let tool = json!({"toolCallId": "c", "title": "sleep", "status": "in_progress", "rawInput": {"command": "sleep"}});
    let steps =
        [vec![json!({"say": "before"}), json!({"tool_call": tool})], lines, vec![json!({"crash": {"code": 7}})]];
    let ended = run(&mut client, &chat, "t2", json!(steps.concat())).await;
    assert_eq!((ended.state, markdown(&ended.response_parts).as_str()), (TurnState::Error, "before"));
    let error = parts(&ended, "error")[0]["error"].clone();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("code 7") && message.ends_with("line 4\nline 5\nline 6\nline 7\nline 8"), "{message}");
    assert!(!message.contains("line 3"), "{message}");
    assert_eq!(calls(&ended)[0]["status"], "cancelled", "what it did not end is not left running");
    assert_eq!(old.turn_end(SESSION, "t2").await.error.unwrap().message, message);

    let signalled = run(&mut client, &chat, "t3", json!([{"crash": {"signal": 9}}])).await;
    assert_eq!(signalled.state, TurnState::Error);
    let told = said(&mut client, &chat, "t4", json!(["echo_history"])).await;
    assert!(told.contains("agent: remember me"), "{told}");
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn a_second_session_waits_where_one_agent_may_run_and_says_so() {
    let stage = Stage::with(AgentBehavior::default(), &["--max-agents", "1"]);
    let mut client = stage.host().ahp("a").await;
    let first = stage.session(&mut client, "mine:/first").await;
    let second = stage.session(&mut client, "mine:/second").await;
    start(&mut client, &first, "t", &json!([{"say": "here"}, "hang"])).await;
    client.until(|client| streamed(client, &first) == "here").await;
    start(&mut client, &second, "t", &json!([{"say": "there"}])).await;
    let waits = |client: &Client| {
        client.chat(&second).activity.as_deref().is_some_and(|words| words.contains("limit on running agents"))
    };
    client.until(waits).await;
    client.barrier().await;
    assert!(client.active(&second).response_parts.is_empty() && waits(&client), "it waits");
    cancel(&mut client, &first, "t").await;
    let ended = client.turn_end(&second, "t").await;
    assert_eq!((ended.state, markdown(&ended.response_parts).as_str()), (TurnState::Complete, "there"));
    assert!(!waits(&client), "it waits no more");
    let told = |channel: &str, kind: &str| {
        let told = client.envelopes.iter().rposition(|told| told.channel == channel && told.action["type"] == kind);
        told.unwrap_or_else(|| panic!("no {kind} on {channel}"))
    };
    assert!(told(&first, "chat/turnCancelled") < told(&second, "chat/responsePart"), "one after the other");
    // The other one comes back as well.
    let told = said(&mut client, &first, "u", json!(["echo_history"])).await;
    assert!(told.contains("agent: here"), "{told}");
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn two_sessions_in_one_folder_are_warned_only_while_both_run() {
    let stage = Stage::new(AgentBehavior::default());
    let mut client = stage.host().ahp("a").await;
    let first = stage.session(&mut client, "mine:/first").await;
    let second = stage.session(&mut client, "mine:/second").await;
    for chat in [&first, &second] {
        said(&mut client, chat, "t1", json!([{"say": "hello"}])).await;
    }
    client.barrier().await;
    assert_eq!(meta(&client, "mine:/second", "warnings"), Value::Null, "one after the other is no collision");
    start(&mut client, &first, "t2", &json!([{"say": "here"}, "hang"])).await;
    client.until(|client| streamed(client, &first) == "here").await;
    start(&mut client, &second, "t2", &json!([{"say": "there"}, "hang"])).await;
    client.until(|client| meta(client, "mine:/second", "warnings") != Value::Null).await;
    let warning = meta(&client, "mine:/second", "warnings")[0].as_str().unwrap().to_owned();
    assert!(!warning.contains(":/") && warning.contains("/work"), "{warning}");
    client.until(|client| meta(client, "mine:/first", "warnings") != Value::Null).await;
    client.must_agree_on_all().await;
    // Nothing is forbidden, and the warning disappears with its reason.
    cancel(&mut client, &first, "t2").await;
    client.until(|client| meta(client, "mine:/second", "warnings") == Value::Null).await;
    client.until(|client| meta(client, "mine:/first", "warnings") == Value::Null).await;
    cancel(&mut client, &second, "t2").await;
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn what_an_agent_says_on_stderr_is_in_its_log_and_frames_are_written_without_secrets() {
    let frames = tempfile::tempdir().unwrap();
    let file = frames.path().join("frames.jsonl");
    let args = ["--log-agent-frames", file.to_str().unwrap()];
    let secret = "a-long-and-secret-value";
    let mut stage = Stage::with_env(AgentBehavior::default(), &[("MINE_VALUE", secret)], &args);
    let (mut client, chat) = stage.begin().await;
    let terminal = json!({"command": "true", "args": [], "env": [{"name": "OTHER", "value": "another-secret"}]});
    let steps = json!([
        {"stderr": "something is odd"}, {"env": "MINE_VALUE"}, {"say": "authorization: Bearer abcdefghijklmnop"},
        {"terminal": {"create": terminal}}, {"say": "as plain as this"},
    ]);
    let told = said(&mut client, &chat, "t", steps).await;
    assert!(told.contains(secret), "clients see what their agent says: {told}");
    let deadline = Deadline::new("the log is empty");
    while !stage.place.run(&["logs", ID]).stdout.contains("something is odd") {
        deadline.check();
    }
    client.get(Method::DisposeSession, json!({"channel": SESSION})).await;
    // Pending writes are completed when the host stops.
    stage.restart();
    let written = std::fs::read_to_string(&file).unwrap();
    for left_out in [secret, "abcdefghijklmnop"] {
        assert!(!written.contains(left_out), "{left_out} is in the file");
    }
    let lines: Vec<Value> = written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ways = |way: &str, words: &str| {
        lines.iter().any(|line| line["dir"] == way && line["session"] == ID && line["msg"].to_string().contains(words))
    };
    assert!(ways("c->a", "session/prompt") && ways("a->c", "as plain as this"), "{written}");
    let created = lines.iter().find(|line| line["msg"]["method"] == "terminal/create").unwrap();
    assert!(!created.to_string().contains("another-secret"), "{created}");
}

#[tokio::test]
async fn an_agent_that_cannot_start_says_why_and_others_are_not_bothered() {
    let stage =
        Stage::new(AgentBehavior { crash_on: vec![grove_testkit::acp::CrashPoint::New], ..AgentBehavior::default() });
    let mut client = stage.host().ahp_connect("a").await;
    client.initialize(&[ROOT]).await;
    client.get(Method::CreateSession, json!({"channel": SESSION})).await;
    client.subscribe(SESSION).await.unwrap();
    client.until(|client| client.session(SESSION).lifecycle == SessionLifecycle::Failed).await;
    let error = client.session(SESSION).creation_error.clone().unwrap();
    assert!(error.error_type == "agentStart" && error.message.contains("code 1"), "{error:?}");
    let chat = client.ready_session("scripted:/another").await;
    let ended = client.run_script(&chat, "t", json!([{"say": "fine"}])).await;
    assert_eq!(ended.state, TurnState::Complete);
}
