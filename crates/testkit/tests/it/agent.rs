//! The common behavior of all agents.

use std::time::{Duration, Instant};

use agent_client_protocol_schema::v1 as acp;
use grove_testkit::acp::AgentBehavior;
use serde_json::{Value, json};

use crate::fixture::{AgentFixture, choosing};

fn plain() -> AgentBehavior {
    AgentBehavior::default()
}

#[test]
fn a_plain_prompt_is_answered_with_its_words() {
    let (mut fixture, session) = AgentFixture::with_session(&plain());
    let link = json!({"type": "resource_link", "uri": "file:///x", "name": "x"});
    let prompt = json!([{"type": "text", "text": "good morning"}, link]);
    let answer = fixture.call("session/prompt", json!({"sessionId": session, "prompt": prompt})).unwrap();
    assert_eq!(answer["stopReason"], "end_turn");
    assert_eq!(fixture.text(), "You said: good morning (with resource_link)");
}

#[test]
fn every_update_is_one_of_the_protocols() {
    let (mut fixture, session) = AgentFixture::with_session(&plain());
    fixture.answers = choosing("allow_once");
    let steps = json!([
        {"say": {"text": "three words here", "chunks": 3, "delay_ms": 1}}, {"think": "hm"},
        {"tool": {"title": "touch x", "ask": true, "output": "ok"}},
        {"tool_call": {"toolCallId": "c", "title": "t"}}, {"tool_update": {"toolCallId": "c", "status": "failed"}},
        {"plan": [{"content": "c", "priority": "high", "status": "pending"}]},
        {"commands": [{"name": "n", "description": "d"}]}, {"mode": "plan"}, {"config": []},
        {"usage": {"used": 10, "size": 1000, "cost": {"amount": 0.1, "currency": "USD"}}},
        {"info": {"title": "A title"}}, {"notice": {"severity": "warning", "title": "t", "description": "d"}},
        {"stop": {"reason": "max_tokens", "usage": {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}}},
    ]);
    let answer = fixture.script(&session, steps).unwrap();
    let answer: acp::PromptResponse = serde_json::from_value(answer).unwrap();
    assert_eq!(answer.stop_reason, acp::StopReason::MaxTokens);
    assert_eq!(answer.usage.unwrap().total_tokens, 3);
    for update in &fixture.updates {
        let read: acp::SessionUpdate = serde_json::from_value(update.clone()).unwrap();
        let again = serde_json::to_value(read).unwrap();
        assert_eq!(again["sessionUpdate"], update["sessionUpdate"]);
    }
    let kinds = fixture.kinds();
    assert_eq!(kinds.len(), 16, "{kinds:?}");
    let asked: acp::RequestPermissionRequest = serde_json::from_value(fixture.asked[0]["params"].clone()).unwrap();
    assert_eq!(asked.options.len(), 4);
}

#[test]
fn what_the_protocol_does_not_have_is_refused() {
    let mut fixture = AgentFixture::start(&plain());
    let code = |outcome: Result<Value, Value>| outcome.unwrap_err()["code"].as_i64().unwrap();
    let new = json!({"cwd": "/", "mcpServers": []});
    assert_eq!(code(fixture.call("session/new", new.clone())), -32600, "before initialize");
    assert_eq!(code(fixture.call("initialize", json!({"protocolVersion": "one"}))), -32602);
    fixture.initialize();
    assert_eq!(code(fixture.call("initialize", json!({"protocolVersion": 1}))), -32600, "twice");
    assert_eq!(
        code(fixture.call("session/new", json!({"cwd": "here", "mcpServers": []}))),
        -32602,
        "a relative folder"
    );
    assert_eq!(code(fixture.call("session/new", json!({"cwd": "/"}))), -32602, "no servers");
    assert_eq!(code(fixture.call("session/new", json!({"cwd": "/", "mcpServers": [], "root": "/"}))), -32602);
    assert_eq!(code(fixture.call("session/blow_up", json!({}))), -32601);
    let session = fixture.new_session();
    let prompt = |session: &str, block: Value| json!({"sessionId": session, "prompt": [block]});
    let text = json!({"type": "text", "text": "t"});
    assert_eq!(code(fixture.call("session/prompt", prompt("nobody", text))), -32002);
    let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
    assert_eq!(code(fixture.call("session/prompt", prompt(&session, image))), -32602, "it takes no images");
    let script = json!({"type": "text", "text": "acp:[{\"sya\": 1}]"});
    assert_eq!(code(fixture.call("session/prompt", prompt(&session, script))), -32602, "a script with a mistake");
    fixture.line("{]");
    assert_eq!(fixture.next()["error"]["code"], -32700);
    fixture.line(r#"{"id":1,"method":"session/list"}"#);
    assert_eq!(fixture.next()["error"]["code"], -32600);
    fixture.line(r#"{"jsonrpc":"2.0","id":99,"result":{}}"#);
    let said = fixture.said(&session, json!(["complaints"]));
    assert!(said.contains("an answer to 99, which nobody asked"), "{said}");
}

#[test]
fn a_session_runs_one_turn_at_a_time() {
    let (mut fixture, session) = AgentFixture::with_session(&plain());
    let first = fixture.begin(&session, &json!([{"say": "begun"}, "hang"]));
    fixture.until(|fixture| fixture.text() == "begun");
    let second = fixture.begin(&session, &json!([]));
    assert_eq!(fixture.answer(second).unwrap_err()["code"], -32600);
    fixture.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(fixture.answer(first).unwrap()["stopReason"], "cancelled");
    assert_eq!(fixture.said(&session, json!([{"say": "again"}])), "again");
}

#[test]
fn what_is_asked_is_told() {
    let (mut fixture, session) = AgentFixture::with_session(&plain());
    fixture.answers = Box::new(|asked| match asked["method"].as_str().unwrap() {
        "fs/read_text_file" => Ok(json!({"content": "in the file"})),
        "fs/write_text_file" => Ok(json!({})),
        "terminal/create" => Ok(json!({"terminalId": "t1"})),
        "terminal/wait_for_exit" => Ok(json!({"exitCode": 7, "signal": null})),
        "terminal/output" => Ok(json!({"output": "out", "truncated": false})),
        "terminal/release" => Ok(json!({})),
        "elicitation/create" => Ok(json!({"action": "accept", "content": {"name": "n"}})),
        "session/request_permission" => Ok(json!({"outcome": {"outcome": "selected", "optionId": "b"}})),
        _ => Err(-32601),
    });
    let form = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let said = fixture.said(
        &session,
        json!([
            {"read": {"path": "/x"}}, {"write": {"path": "/x", "content": "c"}},
            {"terminal": {"create": {"command": "ls"}}},
            {"elicit": {"mode": "form", "message": "m", "requestedSchema": form}},
            {"ask": {"tool_call": {"toolCallId": "c"}, "options": [{"optionId": "b", "name": "B", "kind": "allow_once"}]}},
            {"request": {"method": "of/tomorrow"}}, "complaints",
        ]),
    );
    let lines: Vec<&str> = said.lines().collect();
    let elicited = r#"elicitation: {"action":"accept","content":{"name":"n"}}"#;
    let expected = [
        "read: in the file",
        "write: done",
        "terminal: exit 7: out",
        elicited,
        "permission: b",
        "of/tomorrow: error -32601 no",
        "complaints: none",
    ];
    assert_eq!(lines, expected);
    assert!(fixture.asked[..5].iter().all(|asked| asked["params"]["sessionId"] == *session));
    let methods: Vec<&str> = fixture.asked.iter().map(|asked| asked["method"].as_str().unwrap()).collect();
    assert_eq!(methods[2..6], ["terminal/create", "terminal/wait_for_exit", "terminal/output", "terminal/release"]);
    assert!(fixture.asked.last().unwrap()["params"].is_null(), "a request goes as it is");
}

#[test]
fn an_answer_that_was_not_offered_is_a_complaint() {
    let (mut fixture, session) = AgentFixture::with_session(&plain());
    fixture.answers = choosing("whatever");
    let said = fixture.said(&session, json!([{"ask": {"tool_call": {"toolCallId": "c"}}}, "complaints"]));
    assert!(said.contains("permission: error -32602 whatever was not offered"), "{said}");
    assert!(said.contains("complaints: whatever was chosen"), "{said}");
}

#[test]
fn a_cancelled_turn_kills_its_command_and_waits_for_what_it_asked() {
    let (mut fixture, session) = AgentFixture::with_session(&plain());
    let id = fixture.begin(&session, &json!([{"terminal": {"create": {"command": "sleep"}}}]));
    let create = fixture.next();
    fixture.line(&json!({"jsonrpc": "2.0", "id": create["id"], "result": {"terminalId": "t"}}).to_string());
    let wait = fixture.next();
    assert_eq!(wait["method"], "terminal/wait_for_exit");
    fixture.notify("session/cancel", json!({"sessionId": session}));
    let kill = fixture.next();
    assert_eq!(kill["method"], "terminal/kill");
    fixture.line(&json!({"jsonrpc": "2.0", "id": kill["id"], "result": {}}).to_string());
    assert!(fixture.is_silent(Duration::from_millis(100)), "it waits for the command's end");
    fixture.line(
        &json!({"jsonrpc": "2.0", "id": wait["id"], "result": {"exitCode": null, "signal": "SIGKILL"}}).to_string(),
    );
    assert_eq!(fixture.answer(id).unwrap()["stopReason"], "cancelled");
    assert_eq!(fixture.asked.last().unwrap()["method"], "terminal/release");
}

#[test]
fn a_cancelled_permission_ends_the_turn() {
    let (mut fixture, session) = AgentFixture::with_session(&plain());
    let id = fixture.begin(&session, &json!([{"ask": {"tool_call": {"toolCallId": "c"}}}, {"say": "not reached"}]));
    let asked = fixture.next();
    // The answer may come before the cancellation itself.
    fixture.line(
        &json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"outcome": {"outcome": "cancelled"}}}).to_string(),
    );
    fixture.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(fixture.answer(id).unwrap()["stopReason"], "cancelled");
    assert_eq!(fixture.kinds(), ["tool_call_update failed"]);
    assert!(fixture.said(&session, json!(["complaints"])).contains("none"));
}

#[test]
fn a_stream_has_every_number_once_and_keeps_its_pace() {
    let (mut fixture, session) = AgentFixture::with_session(&plain());
    let began = Instant::now();
    let said = fixture.said(&session, json!([{"stream": {"count": 50, "per_second": 250}}]));
    assert!(began.elapsed() >= Duration::from_millis(196), "{:?}", began.elapsed());
    let numbers: Vec<u64> =
        said.split_terminator(';').map(|one| one.split(':').next().unwrap().parse().unwrap()).collect();
    assert_eq!(numbers, (1..=50).collect::<Vec<_>>());
    assert_eq!(fixture.updates.len(), 50);
}

#[test]
fn a_new_process_knows_the_sessions_of_the_old_one() {
    let store = tempfile::tempdir().unwrap();
    let behavior =
        AgentBehavior { store: Some(store.path().to_owned()), modes: vec!["ask".into(), "code".into()], ..plain() };
    let (mut fixture, session) = AgentFixture::with_session(&behavior);
    fixture.call("session/set_mode", json!({"sessionId": session, "modeId": "code"})).unwrap();
    fixture.script(&session, json!([{"say": "remember me"}, {"tool": {"title": "touch x"}}])).unwrap();
    let live = fixture.updates.clone();
    drop(fixture);

    let mut fixture = AgentFixture::start(&behavior);
    fixture.initialize();
    let listed = fixture.call("session/list", json!({"cwd": "/"})).unwrap();
    assert_eq!(listed["sessions"][0]["sessionId"], *session);
    let again = json!({"sessionId": session, "cwd": "/", "mcpServers": []});
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "t"}]});
    assert_eq!(fixture.call("session/prompt", prompt).unwrap_err()["code"], -32002, "it is not open yet");
    let resumed = fixture.call("session/resume", again.clone()).unwrap();
    assert_eq!(resumed["modes"]["currentModeId"], "code");
    assert!(fixture.updates.is_empty(), "resuming tells nothing");
    fixture.call("session/load", again.clone()).unwrap();
    assert_eq!(fixture.updates[0]["sessionUpdate"], "user_message_chunk");
    assert_eq!(fixture.updates[1..], live, "loading tells the conversation");
    let said = fixture.said(&session, json!(["echo_history"]));
    assert!(said.starts_with("history:\nuser: acp:[") && said.ends_with("agent: remember me\n"), "{said}");

    let forked = fixture.call("session/fork", again.clone()).unwrap()["sessionId"].as_str().unwrap().to_owned();
    assert!(fixture.said(&forked, json!(["echo_history"])).contains("remember me"));
    fixture.call("session/close", json!({"sessionId": session})).unwrap();
    fixture.call("session/delete", json!({"sessionId": session})).unwrap();
    assert_eq!(fixture.call("session/load", again).unwrap_err()["code"], -32002);
    let listed = fixture.call("session/list", json!({})).unwrap();
    let listed: Vec<&Value> = listed["sessions"].as_array().unwrap().iter().map(|one| &one["sessionId"]).collect();
    assert_eq!(listed, [&json!(forked)]);
}

#[test]
fn an_agent_ends_with_its_stdin_or_as_it_is_told() {
    use std::os::unix::process::ExitStatusExt;

    let (mut fixture, session) = AgentFixture::with_session(&plain());
    fixture.begin(&session, &json!(["hang"]));
    fixture.close_stdin();
    assert!(fixture.end().success());

    let (mut fixture, session) = AgentFixture::with_session(&plain());
    fixture.begin(&session, &json!([{"crash": {"code": 3}}]));
    assert_eq!(fixture.end().code(), Some(3));

    let (mut fixture, session) = AgentFixture::with_session(&plain());
    fixture.begin(&session, &json!([{"crash": {"signal": 9}}]));
    assert_eq!(fixture.end().signal(), Some(9));
}

#[test]
fn a_process_can_be_left_behind() {
    let (mut fixture, session) = AgentFixture::with_session(&plain());
    let said = fixture.said(&session, json!([{"spawn": {"seconds": 30}}]));
    let pid: i32 = said.trim().strip_prefix("spawned: ").unwrap().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    fixture.close_stdin();
    fixture.end();
    rustix::process::test_kill_process(pid).expect("it outlives the agent");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn any_line_can_be_said() {
    let (mut fixture, session) = AgentFixture::with_session(&plain());
    let id = fixture.begin(&session, &json!([{"raw": "no JSON {"}, {"raw": {"any": "thing"}}]));
    assert_eq!(fixture.next_line(), "no JSON {");
    assert_eq!(fixture.next(), json!({"any": "thing"}));
    fixture.answer(id).unwrap();
}

#[test]
fn an_update_can_come_after_its_turn() {
    let (mut fixture, session) = AgentFixture::with_session(&plain());
    let update = json!({"sessionUpdate": "session_info_update", "title": "late"});
    fixture.script(&session, json!([{"later": {"delay_ms": 50, "update": update}}])).unwrap();
    assert!(fixture.updates.is_empty());
    fixture.until(|fixture| !fixture.updates.is_empty());
    assert_eq!(fixture.updates, [update]);
}

#[test]
fn surroundings_are_told() {
    let (mut fixture, session) = AgentFixture::with_session(&plain());
    let said = fixture.said(&session, json!(["cwd", {"env": "GROVE_ACP_AGENT"}, {"env": "NOBODY_SET_THIS"}, "client"]));
    assert!(said.starts_with("cwd: /\nprocess: /"), "{said}");
    assert!(said.contains("env: GROVE_ACP_AGENT is {"), "{said}");
    assert!(said.contains("env: NOBODY_SET_THIS is not set"), "{said}");
    assert!(said.contains(r#""clientCapabilities":{"#), "{said}");
}

#[test]
fn an_agent_starts_in_a_few_milliseconds() {
    let times = (0..10).map(|_| {
        let began = Instant::now();
        AgentFixture::start(&plain()).initialize();
        began.elapsed()
    });
    let fastest = times.min().unwrap();
    assert!(fastest < Duration::from_millis(200), "{fastest:?}");
}
