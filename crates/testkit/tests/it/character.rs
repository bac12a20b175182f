//! Each switch of a character, one test each.

use std::time::{Duration, Instant};

use grove_testkit::acp::{Can, Character, CrashOn, Fault, Offer, Takes, agent_program};
use serde_json::{Value, json};

use crate::place::{Place, choosing};

fn tool(ask: bool) -> Value {
    json!([{"tool": {"title": "touch x", "ask": ask, "output": "ok", "id": "c"}}])
}

fn code(outcome: Result<Value, Value>) -> i64 {
    outcome.unwrap_err()["code"].as_i64().unwrap()
}

/// The kinds of everything that an agent says of a tool call that it asks for and that is allowed, in its order.
fn told(character: &Character) -> Vec<String> {
    let (mut place, session) = Place::with_session(character);
    let id = place.begin(&session, &tool(true));
    let mut told = Vec::new();
    loop {
        let message = place.next();
        let update = &message["params"]["update"];
        if message["id"] == id && message.get("method").is_none() {
            return told;
        } else if message["method"] == "session/request_permission" {
            let answer = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
            place.line(&json!({"jsonrpc": "2.0", "id": message["id"], "result": answer}).to_string());
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
    assert_eq!(told(&Character::default()), expected);
}

#[test]
fn never_tool_call_leaves_the_request_and_the_updates() {
    let told = told(&Character { never_tool_call: true, ..Character::default() });
    assert_eq!(told, ["asks", "tool_call_update in_progress", "tool_call_update completed"]);
}

#[test]
fn asks_first_comes_before_the_tool_call() {
    let told = told(&Character { asks_first: true, ..Character::default() });
    assert_eq!(told[..2], ["asks", "tool_call pending"]);
}

#[test]
fn bare_first_call_brings_its_input_later() {
    let (mut place, session) = Place::with_session(&Character { bare_first_call: true, ..Character::default() });
    place.script(&session, tool(false)).unwrap();
    assert_eq!((&place.updates[0]["title"], &place.updates[0]["rawInput"]), (&json!("Terminal"), &json!({})));
    assert_eq!(place.updates[1]["rawInput"], json!({"command": "touch x"}));
    assert_eq!(place.updates[1].get("status"), None);
}

#[test]
fn no_status_but_in_the_last_update() {
    let (mut place, session) = Place::with_session(&Character { no_status: true, ..Character::default() });
    place.script(&session, tool(false)).unwrap();
    let expected = ["tool_call pending", "tool_call_update", "tool_call_update", "tool_call_update completed"];
    assert_eq!(place.kinds(), expected);
}

#[test]
fn whether_to_ask_is_the_agents_policy() {
    let (mut place, session) = Place::with_session(&Character { asks_always: true, ..Character::default() });
    place.answers = choosing("reject_once");
    place.script(&session, tool(false)).unwrap();
    assert_eq!(place.asked.len(), 1);
    assert_eq!(place.kinds().last().unwrap(), "tool_call_update failed");

    let (mut place, session) = Place::with_session(&Character { asks_nothing: true, ..Character::default() });
    place.script(&session, tool(true)).unwrap();
    assert!(place.asked.is_empty());
}

#[test]
fn what_was_answered_for_good_is_not_asked_again() {
    let (mut place, session) = Place::with_session(&Character::default());
    place.answers = choosing("allow_always");
    place.script(&session, tool(true)).unwrap();
    assert_eq!(place.asked.len(), 1);
    place.script(&session, tool(true)).unwrap();
    assert!(place.asked.is_empty());
    assert_eq!(place.kinds().last().unwrap(), "tool_call_update completed");
}

#[test]
fn offers_are_the_only_options() {
    let character = Character { offers: vec![Offer::AllowOnce, Offer::RejectOnce], ..Character::default() };
    let (mut place, session) = Place::with_session(&character);
    place.answers = choosing("allow_once");
    place.script(&session, tool(true)).unwrap();
    let kinds: Vec<&Value> =
        place.asked[0]["params"]["options"].as_array().unwrap().iter().map(|option| &option["kind"]).collect();
    assert_eq!(kinds, ["allow_once", "reject_once"]);
}

#[test]
fn load_differs_from_the_live_conversation() {
    let (mut place, session) = Place::with_session(&Character { load_differs: true, ..Character::default() });
    place.script(&session, tool(false)).unwrap();
    let live = std::mem::take(&mut place.updates);
    place.call("session/load", json!({"sessionId": session, "cwd": "/", "mcpServers": []})).unwrap();
    assert_eq!(place.updates.len(), live.len() + 1);
    assert_eq!(live[0]["title"], "touch x");
    assert_eq!(place.updates[1]["title"], "exec_command");
    assert_eq!(place.updates[1].get("kind"), None);
}

#[test]
fn already_loaded_error_refuses_an_open_session() {
    let again = |session: &str| json!({"sessionId": session, "cwd": "/", "mcpServers": []});
    let (mut place, session) = Place::with_session(&Character { already_loaded_error: true, ..Character::default() });
    assert_eq!(code(place.call("session/load", again(&session))), -32602);
    let (mut place, session) = Place::with_session(&Character::default());
    place.call("session/load", again(&session)).unwrap();
}

#[test]
fn opens_stored_has_the_sessions_of_an_earlier_process_open() {
    let store = tempfile::tempdir().unwrap();
    let character = Character {
        store: Some(store.path().to_owned()),
        opens_stored: true,
        already_loaded_error: true,
        ..Character::default()
    };
    let (place, session) = Place::with_session(&character);
    drop(place);
    let mut place = Place::start(&character);
    place.initialize();
    let again = json!({"sessionId": session, "cwd": "/", "mcpServers": []});
    assert_eq!(code(place.call("session/load", again)), -32602);
    place.script(&session, json!([{"say": "open"}])).unwrap();
}

#[test]
fn ignores_stdin_close_lives_on() {
    let mut place = Place::start(&Character { ignores_stdin_close: true, ..Character::default() });
    place.initialize();
    place.close_stdin();
    // One that does not ignore it, and is told later, ends meanwhile.
    let mut other = Place::start(&Character::default());
    other.initialize();
    other.close_stdin();
    other.end();
    assert!(place.runs());
}

#[test]
fn ignores_cancel_goes_on_to_the_end() {
    let (mut place, session) = Place::with_session(&Character { ignores_cancel: true, ..Character::default() });
    let id = place.begin(&session, &json!([{"say": "begun"}, {"sleep": 100}, {"say": ", done"}]));
    place.until(|place| place.text() == "begun");
    place.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(place.answer(id).unwrap()["stopReason"], "end_turn");
    assert_eq!(place.text(), "begun, done");
}

#[test]
fn a_cancelled_call_ends_as_the_character_has_it() {
    let silent = Character { no_last_update_on_cancel: true, ..Character::default() };
    let pleased = Character { cancelled_is_completed: true, ..Character::default() };
    let plain = Character::default();
    let cases =
        [(plain, Some("tool_call_update failed")), (pleased, Some("tool_call_update completed")), (silent, None)];
    for (character, last) in cases {
        let (mut place, session) = Place::with_session(&character);
        let id = place.begin(&session, &json!([{"tool": {"takes_ms": 60_000}}]));
        place.until(|place| place.updates.len() == 2);
        place.notify("session/cancel", json!({"sessionId": session}));
        assert_eq!(place.answer(id).unwrap()["stopReason"], "cancelled");
        assert_eq!(place.kinds().get(2).map(String::as_str), last);
    }
}

#[test]
fn retries_for_a_while_and_can_be_cancelled_meanwhile() {
    let (mut place, session) = Place::with_session(&Character { retries_for: 60_000, ..Character::default() });
    let id = place.begin(&session, &json!([{"say": "begun"}, {"fail": {"code": -32603, "message": "overloaded"}}]));
    place.until(|place| place.text() == "begun");
    assert!(place.is_silent(Duration::from_millis(100)));
    place.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(place.answer(id).unwrap()["stopReason"], "cancelled");

    let (mut place, session) = Place::with_session(&Character { retries_for: 100, ..Character::default() });
    let began = Instant::now();
    assert_eq!(code(place.script(&session, json!([{"fail": {"code": -32603, "message": "overloaded"}}]))), -32603);
    assert!(began.elapsed() >= Duration::from_millis(100));
}

#[test]
fn slow_start_takes_its_time() {
    let began = Instant::now();
    Place::start(&Character { slow_start: 200, ..Character::default() }).initialize();
    assert!(began.elapsed() >= Duration::from_millis(200));
}

#[test]
fn crash_on_ends_the_process_there() {
    let crash = |on| Character { crash_on: vec![on], ..Character::default() };
    let mut place = Place::start(&crash(CrashOn::Initialize));
    place.send("initialize", json!({"protocolVersion": 1}));
    assert_eq!(place.end().code(), Some(1));

    let mut place = Place::start(&crash(CrashOn::New));
    place.initialize();
    place.send("session/new", json!({"cwd": "/", "mcpServers": []}));
    assert_eq!(place.end().code(), Some(1));

    let (mut place, session) = Place::with_session(&crash(CrashOn::Prompt(2)));
    assert_eq!(place.said(&session, json!([{"say": "once"}])), "once");
    place.begin(&session, &json!([]));
    assert_eq!(place.end().code(), Some(1));
}

#[test]
fn refuses_a_method_with_its_error() {
    let fault = Fault { code: -32603, message: "not today".to_owned(), data: None };
    let refuses = [("session/new".to_owned(), fault)].into();
    let mut place = Place::start(&Character { refuses, ..Character::default() });
    place.initialize();
    assert_eq!(code(place.call("session/new", json!({"cwd": "/", "mcpServers": []}))), -32603);
}

#[test]
fn can_is_told_and_kept_to() {
    let mut place = Place::start(&Character { can: Can::NOTHING, ..Character::default() });
    let able = place.initialize()["agentCapabilities"].clone();
    assert_eq!((&able["loadSession"], &able["sessionCapabilities"]), (&json!(false), &json!({})));
    let session = place.new_session();
    let again = json!({"sessionId": session, "cwd": "/", "mcpServers": []});
    for method in ["load", "resume", "fork", "list", "close", "delete"] {
        assert_eq!(code(place.call(&format!("session/{method}"), again.clone())), -32601, "{method}");
    }
    let two = json!({"cwd": "/", "mcpServers": [], "additionalDirectories": ["/tmp"]});
    assert_eq!(code(place.call("session/new", two.clone())), -32602);

    let mut place = Place::start(&Character::default());
    let able = place.initialize()["agentCapabilities"]["sessionCapabilities"].clone();
    for name in ["list", "resume", "close", "delete", "fork", "additionalDirectories"] {
        assert_eq!(able[name], json!({}), "{name}");
    }
    place.call("session/new", two).unwrap();
}

#[test]
fn takes_the_contents_that_it_names() {
    let (mut place, session) = Place::with_session(&Character { takes: vec![Takes::Image], ..Character::default() });
    let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "see"}, image]});
    place.call("session/prompt", prompt).unwrap();
    assert_eq!(place.text(), "You said: see (with image)");
}

#[test]
fn needs_auth_before_any_session() {
    let character = Character { needs_auth: true, auth_methods: vec!["key".into()], ..Character::default() };
    let mut place = Place::start(&character);
    assert_eq!(place.initialize()["authMethods"], json!([{"id": "key", "name": "key"}]));
    let new = json!({"cwd": "/", "mcpServers": []});
    assert_eq!(code(place.call("session/new", new.clone())), -32000);
    assert_eq!(code(place.call("authenticate", json!({"methodId": "door"}))), -32602);
    place.call("authenticate", json!({"methodId": "key"})).unwrap();
    place.call("session/new", new).unwrap();
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
    let character = Character {
        modes: vec!["plan".into(), url.into()],
        models: vec!["one".into(), "two".into()],
        options,
        ..Character::default()
    };
    let mut place = Place::start(&character);
    place.initialize();
    let new = place.call("session/new", json!({"cwd": "/", "mcpServers": []})).unwrap();
    let session = new["sessionId"].clone();
    assert_eq!(new["modes"]["currentModeId"], "plan");
    assert_eq!(new["modes"]["availableModes"][1], json!({"id": url, "name": "agent"}));
    assert_eq!(new["models"]["currentModelId"], "one");
    assert_eq!(new["configOptions"].as_array().unwrap().len(), 3);

    place.call("session/set_mode", json!({"sessionId": session, "modeId": url})).unwrap();
    place.call("session/set_model", json!({"sessionId": session, "modelId": "two"})).unwrap();
    let set = json!({"sessionId": session, "configId": "size", "value": "large"});
    let set = place.call("session/set_config_option", set).unwrap();
    assert_eq!(set["configOptions"][0]["currentValue"], url, "the option follows the mode");
    assert_eq!(set["configOptions"][1]["currentValue"], "large");
    let fast = json!({"sessionId": session, "configId": "fast", "type": "boolean", "value": true});
    place.call("session/set_config_option", fast).unwrap();
    for (method, params) in [
        ("session/set_mode", json!({"sessionId": session, "modeId": "none"})),
        ("session/set_model", json!({"sessionId": session, "modelId": "none"})),
        ("session/set_config_option", json!({"sessionId": session, "configId": "size", "value": "none"})),
        ("session/set_config_option", json!({"sessionId": session, "configId": "none", "value": "x"})),
    ] {
        assert_eq!(code(place.call(method, params)), -32602, "{method}");
    }
    let said = place.said(session.as_str().unwrap(), json!(["settings"]));
    let said: Value = serde_json::from_str(said.strip_prefix("settings: ").unwrap()).unwrap();
    assert_eq!(said, json!({"mode": url, "model": "two", "options": {"size": "large", "fast": true}}));
}

#[test]
fn ids_are_as_the_character_has_them() {
    let zero = Character { ids_from_zero: true, ..Character::default() };
    let text = Character { ids_as_text: true, ..Character::default() };
    for (character, id) in [(Character::default(), json!(1)), (zero, json!(0)), (text, json!("question 1"))] {
        let (mut place, session) = Place::with_session(&character);
        place.script(&session, json!([{"read": {"path": "/x"}}])).unwrap();
        assert_eq!(place.asked[0]["id"], id);
    }
}

#[test]
fn unknown_request_wants_no_such_method() {
    let character = Character { unknown_request: true, ..Character::default() };
    let (mut place, session) = Place::with_session(&character);
    assert_eq!(place.said(&session, json!([{"say": "fine"}])), "fine");
    assert_eq!(place.asked[0]["method"], "craft/drainMidTurnQueue");
    place.answers = Box::new(|_| Ok(json!({})));
    assert_eq!(code(place.script(&session, json!([]))), -32603, "only -32601 is an answer");
}

#[test]
fn empty_chunks_follow_each_text() {
    let (mut place, session) = Place::with_session(&Character { empty_chunks: true, ..Character::default() });
    place.script(&session, json!([{"say": "something"}])).unwrap();
    assert_eq!(place.updates.len(), 2);
    assert_eq!(place.updates[1]["content"]["text"], "");
}

#[test]
fn the_program_is_found() {
    assert_eq!(
        agent_program().canonicalize().unwrap(),
        std::path::Path::new(env!("CARGO_BIN_EXE_acp-agent")).canonicalize().unwrap()
    );
}
