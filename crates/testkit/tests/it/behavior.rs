//! Each switch of a behavior, one test each.

use std::time::{Duration, Instant};

use grove_testkit::acp::{
    AgentAbilities, AgentBehavior, CrashPoint, PermissionOfferKind, PromptContentKind, RpcError, agent_program,
};
use serde_json::{Value, json};

use crate::fixture::{AgentFixture, choosing};

fn tool(ask: bool) -> Value {
    json!([{"tool": {"title": "touch x", "ask": ask, "output": "ok", "id": "c"}}])
}

fn code(outcome: Result<Value, Value>) -> i64 {
    outcome.unwrap_err()["code"].as_i64().unwrap()
}

/// The kinds of everything that an agent sends for a tool call that it asks for and that is approved, in order.
fn told(behavior: &AgentBehavior) -> Vec<String> {
    let (mut fixture, session) = AgentFixture::with_session(behavior);
    let id = fixture.begin(&session, &tool(true));
    let mut told = Vec::new();
    loop {
        let message = fixture.next();
        let update = &message["params"]["update"];
        if message["id"] == id && message.get("method").is_none() {
            return told;
        } else if message["method"] == "session/request_permission" {
            let answer = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
            fixture.line(&json!({"jsonrpc": "2.0", "id": message["id"], "result": answer}).to_string());
            told.push("asks".to_owned());
        } else {
            let status = update["status"].as_str().unwrap_or("-");
            told.push(format!("{} {status}", update["sessionUpdate"].as_str().unwrap()));
        }
    }
}

#[test]
fn a_well_behaved_agent_tells_its_tool_calls_whole() {
    let expected = ["tool_call pending", "asks", "tool_call_update in_progress", "tool_call_update completed"];
    assert_eq!(told(&AgentBehavior::default()), expected);
}

#[test]
fn never_tool_call_leaves_the_request_and_the_updates() {
    let told = told(&AgentBehavior { never_tool_call: true, ..AgentBehavior::default() });
    assert_eq!(told, ["asks", "tool_call_update in_progress", "tool_call_update completed"]);
}

#[test]
fn asks_first_comes_before_the_tool_call() {
    let told = told(&AgentBehavior { asks_first: true, ..AgentBehavior::default() });
    assert_eq!(told[..2], ["asks", "tool_call pending"]);
}

#[test]
fn bare_first_call_brings_its_input_later() {
    let (mut fixture, session) =
        AgentFixture::with_session(&AgentBehavior { bare_first_call: true, ..AgentBehavior::default() });
    fixture.script(&session, tool(false)).unwrap();
    assert_eq!((&fixture.updates[0]["title"], &fixture.updates[0]["rawInput"]), (&json!("Terminal"), &json!({})));
    assert_eq!(fixture.updates[1]["rawInput"], json!({"command": "touch x"}));
    assert_eq!(fixture.updates[1].get("status"), None);
}

#[test]
fn no_status_but_in_the_last_update() {
    let (mut fixture, session) =
        AgentFixture::with_session(&AgentBehavior { no_status: true, ..AgentBehavior::default() });
    fixture.script(&session, tool(false)).unwrap();
    let expected = ["tool_call pending", "tool_call_update", "tool_call_update", "tool_call_update completed"];
    assert_eq!(fixture.kinds(), expected);
}

#[test]
fn whether_to_ask_is_the_agents_policy() {
    let (mut fixture, session) =
        AgentFixture::with_session(&AgentBehavior { asks_always: true, ..AgentBehavior::default() });
    fixture.answers = choosing("reject_once");
    fixture.script(&session, tool(false)).unwrap();
    assert_eq!(fixture.asked.len(), 1);
    assert_eq!(fixture.kinds().last().unwrap(), "tool_call_update failed");

    let (mut fixture, session) =
        AgentFixture::with_session(&AgentBehavior { asks_nothing: true, ..AgentBehavior::default() });
    fixture.script(&session, tool(true)).unwrap();
    assert!(fixture.asked.is_empty());
}

#[test]
fn what_was_answered_for_good_is_not_asked_again() {
    let (mut fixture, session) = AgentFixture::with_session(&AgentBehavior::default());
    fixture.answers = choosing("allow_always");
    fixture.script(&session, tool(true)).unwrap();
    assert_eq!(fixture.asked.len(), 1);
    fixture.script(&session, tool(true)).unwrap();
    assert!(fixture.asked.is_empty());
    assert_eq!(fixture.kinds().last().unwrap(), "tool_call_update completed");
}

#[test]
fn offers_are_the_only_options() {
    let behavior = AgentBehavior {
        offers: vec![PermissionOfferKind::AllowOnce, PermissionOfferKind::RejectOnce],
        ..AgentBehavior::default()
    };
    let (mut fixture, session) = AgentFixture::with_session(&behavior);
    fixture.answers = choosing("allow_once");
    fixture.script(&session, tool(true)).unwrap();
    let kinds: Vec<&Value> =
        fixture.asked[0]["params"]["options"].as_array().unwrap().iter().map(|option| &option["kind"]).collect();
    assert_eq!(kinds, ["allow_once", "reject_once"]);
}

#[test]
fn load_differs_from_the_live_conversation() {
    let (mut fixture, session) =
        AgentFixture::with_session(&AgentBehavior { load_differs: true, ..AgentBehavior::default() });
    fixture.script(&session, tool(false)).unwrap();
    let live = std::mem::take(&mut fixture.updates);
    fixture.call("session/load", json!({"sessionId": session, "cwd": "/", "mcpServers": []})).unwrap();
    assert_eq!(fixture.updates.len(), live.len() + 1);
    assert_eq!(live[0]["title"], "touch x");
    assert_eq!(fixture.updates[1]["title"], "exec_command");
    assert_eq!(fixture.updates[1].get("kind"), None);
}

#[test]
fn already_loaded_error_refuses_an_open_session() {
    let again = |session: &str| json!({"sessionId": session, "cwd": "/", "mcpServers": []});
    let (mut fixture, session) =
        AgentFixture::with_session(&AgentBehavior { already_loaded_error: true, ..AgentBehavior::default() });
    assert_eq!(code(fixture.call("session/load", again(&session))), -32602);
    let (mut fixture, session) = AgentFixture::with_session(&AgentBehavior::default());
    fixture.call("session/load", again(&session)).unwrap();
}

#[test]
fn opens_stored_has_the_sessions_of_an_earlier_process_open() {
    let store = tempfile::tempdir().unwrap();
    let behavior = AgentBehavior {
        store: Some(store.path().to_owned()),
        opens_stored: true,
        already_loaded_error: true,
        ..AgentBehavior::default()
    };
    let (fixture, session) = AgentFixture::with_session(&behavior);
    drop(fixture);
    let mut fixture = AgentFixture::start(&behavior);
    fixture.initialize();
    let again = json!({"sessionId": session, "cwd": "/", "mcpServers": []});
    assert_eq!(code(fixture.call("session/load", again)), -32602);
    fixture.script(&session, json!([{"say": "open"}])).unwrap();
}

#[test]
fn ignores_stdin_close_lives_on() {
    let mut fixture = AgentFixture::start(&AgentBehavior { ignores_stdin_close: true, ..AgentBehavior::default() });
    fixture.initialize();
    fixture.close_stdin();
    // An agent that does not ignore it, and gets it later, ends meanwhile.
    let mut other = AgentFixture::start(&AgentBehavior::default());
    other.initialize();
    other.close_stdin();
    other.end();
    assert!(fixture.runs());
}

#[test]
fn ignores_cancel_goes_on_to_the_end() {
    let (mut fixture, session) =
        AgentFixture::with_session(&AgentBehavior { ignores_cancel: true, ..AgentBehavior::default() });
    let id = fixture.begin(&session, &json!([{"say": "begun"}, {"sleep": 100}, {"say": ", done"}]));
    fixture.until(|fixture| fixture.text() == "begun");
    fixture.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(fixture.answer(id).unwrap()["stopReason"], "end_turn");
    assert_eq!(fixture.text(), "begun, done");
}

#[test]
fn a_cancelled_call_ends_as_the_character_has_it() {
    let silent = AgentBehavior { no_last_update_on_cancel: true, ..AgentBehavior::default() };
    let pleased = AgentBehavior { cancelled_is_completed: true, ..AgentBehavior::default() };
    let plain = AgentBehavior::default();
    let cases =
        [(plain, Some("tool_call_update failed")), (pleased, Some("tool_call_update completed")), (silent, None)];
    for (behavior, last) in cases {
        let (mut fixture, session) = AgentFixture::with_session(&behavior);
        let id = fixture.begin(&session, &json!([{"tool": {"takes_ms": 60_000}}]));
        fixture.until(|fixture| fixture.updates.len() == 2);
        fixture.notify("session/cancel", json!({"sessionId": session}));
        assert_eq!(fixture.answer(id).unwrap()["stopReason"], "cancelled");
        assert_eq!(fixture.kinds().get(2).map(String::as_str), last);
    }
}

#[test]
fn retries_for_a_while_and_can_be_cancelled_meanwhile() {
    let (mut fixture, session) =
        AgentFixture::with_session(&AgentBehavior { retries_for: 60_000, ..AgentBehavior::default() });
    let id = fixture.begin(&session, &json!([{"say": "begun"}, {"fail": {"code": -32603, "message": "overloaded"}}]));
    fixture.until(|fixture| fixture.text() == "begun");
    assert!(fixture.is_silent(Duration::from_millis(100)));
    fixture.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(fixture.answer(id).unwrap()["stopReason"], "cancelled");

    let (mut fixture, session) =
        AgentFixture::with_session(&AgentBehavior { retries_for: 100, ..AgentBehavior::default() });
    let began = Instant::now();
    assert_eq!(code(fixture.script(&session, json!([{"fail": {"code": -32603, "message": "overloaded"}}]))), -32603);
    assert!(began.elapsed() >= Duration::from_millis(100));
}

#[test]
fn slow_start_takes_its_time() {
    let began = Instant::now();
    AgentFixture::start(&AgentBehavior { slow_start: 200, ..AgentBehavior::default() }).initialize();
    assert!(began.elapsed() >= Duration::from_millis(200));
}

#[test]
fn crash_on_ends_the_process_there() {
    let crash = |on| AgentBehavior { crash_on: vec![on], ..AgentBehavior::default() };
    let mut fixture = AgentFixture::start(&crash(CrashPoint::Initialize));
    fixture.send("initialize", json!({"protocolVersion": 1}));
    assert_eq!(fixture.end().code(), Some(1));

    let mut fixture = AgentFixture::start(&crash(CrashPoint::New));
    fixture.initialize();
    fixture.send("session/new", json!({"cwd": "/", "mcpServers": []}));
    assert_eq!(fixture.end().code(), Some(1));

    let (mut fixture, session) = AgentFixture::with_session(&crash(CrashPoint::Prompt(2)));
    assert_eq!(fixture.said(&session, json!([{"say": "once"}])), "once");
    fixture.begin(&session, &json!([]));
    assert_eq!(fixture.end().code(), Some(1));
}

#[test]
fn refuses_a_method_with_its_error() {
    let fault = RpcError { code: -32603, message: "not today".to_owned(), data: None };
    let refuses = [("session/new".to_owned(), fault)].into();
    let mut fixture = AgentFixture::start(&AgentBehavior { refuses, ..AgentBehavior::default() });
    fixture.initialize();
    assert_eq!(code(fixture.call("session/new", json!({"cwd": "/", "mcpServers": []}))), -32603);
}

#[test]
fn can_is_told_and_kept_to() {
    let mut fixture = AgentFixture::start(&AgentBehavior { can: AgentAbilities::NOTHING, ..AgentBehavior::default() });
    let able = fixture.initialize()["agentCapabilities"].clone();
    assert_eq!((&able["loadSession"], &able["sessionCapabilities"]), (&json!(false), &json!({})));
    let session = fixture.new_session();
    let again = json!({"sessionId": session, "cwd": "/", "mcpServers": []});
    for method in ["load", "resume", "fork", "list", "close", "delete"] {
        assert_eq!(code(fixture.call(&format!("session/{method}"), again.clone())), -32601, "{method}");
    }
    let two = json!({"cwd": "/", "mcpServers": [], "additionalDirectories": ["/tmp"]});
    assert_eq!(code(fixture.call("session/new", two.clone())), -32602);

    let mut fixture = AgentFixture::start(&AgentBehavior::default());
    let able = fixture.initialize()["agentCapabilities"]["sessionCapabilities"].clone();
    for name in ["list", "resume", "close", "delete", "fork", "additionalDirectories"] {
        assert_eq!(able[name], json!({}), "{name}");
    }
    fixture.call("session/new", two).unwrap();
}

#[test]
fn takes_the_contents_that_it_names() {
    let (mut fixture, session) = AgentFixture::with_session(&AgentBehavior {
        takes: vec![PromptContentKind::Image],
        ..AgentBehavior::default()
    });
    let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "see"}, image]});
    fixture.call("session/prompt", prompt).unwrap();
    assert_eq!(fixture.text(), "You said: see (with image)");
}

#[test]
fn needs_auth_before_any_session() {
    let behavior = AgentBehavior { needs_auth: true, auth_methods: vec!["key".into()], ..AgentBehavior::default() };
    let mut fixture = AgentFixture::start(&behavior);
    assert_eq!(fixture.initialize()["authMethods"], json!([{"id": "key", "name": "key"}]));
    let new = json!({"cwd": "/", "mcpServers": []});
    assert_eq!(code(fixture.call("session/new", new.clone())), -32000);
    assert_eq!(code(fixture.call("authenticate", json!({"methodId": "door"}))), -32602);
    fixture.call("authenticate", json!({"methodId": "key"})).unwrap();
    fixture.call("session/new", new).unwrap();
}

#[test]
fn modes_models_and_options_come_in_any_mix() {
    let url = "https://agentclientprotocol.com/protocol/session-modes#agent";
    let choices = |values: [&str; 2]| values.map(|value| json!({"value": value, "name": value}));
    let grouped = json!([{"group": "g", "name": "G", "options": choices(["small", "large"])}]);
    let options = vec![
        json!({"id": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": "plan",
            "options": choices(["plan", url])}),
        json!({"id": "size", "name": "Size", "type": "select", "currentValue": "small", "options": grouped}),
        json!({"id": "fast", "name": "Fast", "type": "boolean", "currentValue": false}),
    ];
    let behavior = AgentBehavior {
        modes: vec!["plan".into(), url.into()],
        models: vec!["one".into(), "two".into()],
        options,
        ..AgentBehavior::default()
    };
    let mut fixture = AgentFixture::start(&behavior);
    fixture.initialize();
    let new = fixture.call("session/new", json!({"cwd": "/", "mcpServers": []})).unwrap();
    let session = new["sessionId"].clone();
    assert_eq!(new["modes"]["currentModeId"], "plan");
    assert_eq!(new["modes"]["availableModes"][1], json!({"id": url, "name": "agent"}));
    assert_eq!(new["models"]["currentModelId"], "one");
    assert_eq!(new["configOptions"].as_array().unwrap().len(), 3);

    fixture.call("session/set_mode", json!({"sessionId": session, "modeId": url})).unwrap();
    fixture.call("session/set_model", json!({"sessionId": session, "modelId": "two"})).unwrap();
    let set = json!({"sessionId": session, "configId": "size", "value": "large"});
    let set = fixture.call("session/set_config_option", set).unwrap();
    assert_eq!(set["configOptions"][0]["currentValue"], url, "the option follows the mode");
    assert_eq!(set["configOptions"][1]["currentValue"], "large");
    let fast = json!({"sessionId": session, "configId": "fast", "type": "boolean", "value": true});
    fixture.call("session/set_config_option", fast).unwrap();
    for (method, params) in [
        ("session/set_mode", json!({"sessionId": session, "modeId": "none"})),
        ("session/set_model", json!({"sessionId": session, "modelId": "none"})),
        ("session/set_config_option", json!({"sessionId": session, "configId": "size", "value": "none"})),
        ("session/set_config_option", json!({"sessionId": session, "configId": "none", "value": "x"})),
    ] {
        assert_eq!(code(fixture.call(method, params)), -32602, "{method}");
    }
    let said = fixture.said(session.as_str().unwrap(), json!(["settings"]));
    let said: Value = serde_json::from_str(said.strip_prefix("settings: ").unwrap()).unwrap();
    assert_eq!(said, json!({"mode": url, "model": "two", "options": {"size": "large", "fast": true}}));
}

#[test]
fn ids_are_as_the_character_has_them() {
    let zero = AgentBehavior { ids_from_zero: true, ..AgentBehavior::default() };
    let text = AgentBehavior { ids_as_text: true, ..AgentBehavior::default() };
    for (behavior, id) in [(AgentBehavior::default(), json!(1)), (zero, json!(0)), (text, json!("question 1"))] {
        let (mut fixture, session) = AgentFixture::with_session(&behavior);
        fixture.script(&session, json!([{"read": {"path": "/x"}}])).unwrap();
        assert_eq!(fixture.asked[0]["id"], id);
    }
}

#[test]
fn unknown_request_wants_no_such_method() {
    let behavior = AgentBehavior { unknown_request: true, ..AgentBehavior::default() };
    let (mut fixture, session) = AgentFixture::with_session(&behavior);
    assert_eq!(fixture.said(&session, json!([{"say": "fine"}])), "fine");
    assert_eq!(fixture.asked[0]["method"], "craft/drainMidTurnQueue");
    fixture.answers = Box::new(|_| Ok(json!({})));
    assert_eq!(code(fixture.script(&session, json!([]))), -32603, "only -32601 is an answer");
}

#[test]
fn empty_chunks_follow_each_text() {
    let (mut fixture, session) =
        AgentFixture::with_session(&AgentBehavior { empty_chunks: true, ..AgentBehavior::default() });
    fixture.script(&session, json!([{"say": "something"}])).unwrap();
    assert_eq!(fixture.updates.len(), 2);
    assert_eq!(fixture.updates[1]["content"]["text"], "");
}

#[test]
fn the_program_is_found() {
    assert_eq!(
        agent_program().canonicalize().unwrap(),
        std::path::Path::new(env!("CARGO_BIN_EXE_acp-agent")).canonicalize().unwrap()
    );
}
