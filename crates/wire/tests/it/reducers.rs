//! The reducers' rules, one test each: state and action in JSON, and the resulting state.

use grove_wire::v1::{self, RootAction, RootState, SessionAction, SessionState};
use serde_json::{Value, json};

/// A session without turns.
fn idle() -> Value {
    json!({
        "summary": {
            "resource": "copilot:/1", "provider": "copilot", "title": "Name", "status": "idle",
            "createdAt": 10, "modifiedAt": 20,
        },
        "lifecycle": "ready",
        "turns": [],
    })
}

/// A session whose turn `t1` has just begun.
fn active() -> Value {
    let mut state = idle();
    state["summary"]["status"] = json!("in-progress");
    state["activeTurn"] = json!({
        "id": "t1", "userMessage": {"text": "hi"}, "streamingText": "", "responseParts": [],
        "toolCalls": {}, "pendingPermissions": {}, "reasoning": "",
    });
    state
}

/// A session whose turn `t1` has these calls, all running.
fn with_calls(ids: &[&str]) -> Value {
    reduce_all(active(), ids.iter().map(|id| tool_start(id)))
}

fn tool_start(id: &str) -> Value {
    json!({"type": "session/toolStart", "turnId": "t1", "toolCall": call(id)})
}

fn call(id: &str) -> Value {
    json!({
        "toolCallId": id, "toolName": "shell", "displayName": "Shell", "invocationMessage": format!("Running {id}"),
        "status": "running",
    })
}

fn tool_complete(id: &str, result: Value) -> Value {
    json!({"type": "session/toolComplete", "turnId": "t1", "toolCallId": id, "result": result})
}

fn asks(request: &str, call: Option<&str>) -> Value {
    let mut asked = json!({"requestId": request, "permissionKind": "shell"});
    if let Some(call) = call {
        asked["toolCallId"] = json!(call);
    }
    json!({"type": "session/permissionRequest", "turnId": "t1", "request": asked})
}

fn resolved(request: &str, approved: bool) -> Value {
    json!({"type": "session/permissionResolved", "turnId": "t1", "requestId": request, "approved": approved})
}

fn reduce(state: &Value, action: Value) -> Value {
    reduce_all(state.clone(), [action])
}

/// Typed in between: a `Value` would sort the tool calls by id.
fn reduce_all(state: Value, actions: impl IntoIterator<Item = Value>) -> Value {
    let state: SessionState = serde_json::from_value(state).unwrap();
    let reduced = actions.into_iter().fold(state, |state, mut action| {
        action["session"] = json!("copilot:/1");
        v1::session_reducer(state, &serde_json::from_value(action).unwrap())
    });
    serde_json::to_value(reduced).unwrap()
}

/// Checks that the action changes `path` to `value`, and nothing else.
fn changes(state: &Value, action: Value, path: &str, value: Value) {
    let mut expected = state.clone();
    let (parent, field) = path.rsplit_once('/').unwrap();
    expected.pointer_mut(parent).unwrap()[field] = value;
    assert_eq!(reduce(state, action.clone()), expected, "{action}");
}

fn ignores(state: &Value, action: Value) {
    assert_eq!(reduce(state, action.clone()), *state, "{action}");
}

/// Every action on a turn.
fn about(turn: &str) -> Vec<Value> {
    let mut actions = vec![
        json!({"type": "session/delta", "content": "a"}),
        json!({"type": "session/reasoning", "content": "a"}),
        json!({"type": "session/responsePart", "part": {"kind": "markdown", "content": "a"}}),
        json!({"type": "session/usage", "usage": {"inputTokens": 1}}),
        tool_start("c9"),
        tool_complete("c1", json!({"success": true, "pastTenseMessage": "Ran"})),
        asks("r9", Some("c1")),
        resolved("r1", true),
        json!({"type": "session/turnComplete"}),
        json!({"type": "session/turnCancelled"}),
        json!({"type": "session/error", "error": {"errorType": "agent", "message": "broke"}}),
    ];
    for action in &mut actions {
        action["turnId"] = json!(turn);
        action["timestamp"] = json!(99);
    }
    actions
}

#[test]
fn an_action_for_a_turn_that_is_not_active_changes_nothing_not_even_the_time() {
    let waiting = reduce(&with_calls(&["c1"]), asks("r1", Some("c1")));
    let finished = reduce(&active(), json!({"type": "session/turnComplete", "turnId": "t1"}));
    for action in about("t0") {
        ignores(&waiting, action);
    }
    for action in about("t1") {
        ignores(&idle(), action.clone());
        ignores(&finished, action);
    }
}

#[test]
fn a_delta_appends_to_the_streaming_text() {
    let delta = |content: &str| json!({"type": "session/delta", "turnId": "t1", "content": content});
    let state = reduce(&active(), delta("so "));
    changes(&state, delta("on"), "/activeTurn/streamingText", json!("so on"));
}

#[test]
fn reasoning_appends_to_the_reasoning() {
    let reasoning = |content: &str| json!({"type": "session/reasoning", "turnId": "t1", "content": content});
    let state = reduce(&active(), reasoning("h"));
    changes(&state, reasoning("m"), "/activeTurn/reasoning", json!("hm"));
}

#[test]
fn usage_replaces_the_usage() {
    let usage = |usage: Value| json!({"type": "session/usage", "turnId": "t1", "usage": usage});
    let state = reduce(&active(), usage(json!({"inputTokens": 1, "outputTokens": 2})));
    changes(&state, usage(json!({"inputTokens": 3})), "/activeTurn/usage", json!({"inputTokens": 3}));
}

#[test]
fn a_response_part_is_appended() {
    let part = |part: &Value| json!({"type": "session/responsePart", "turnId": "t1", "part": part});
    let (text, body) = (
        json!({"kind": "markdown", "content": "a"}),
        json!({"kind": "contentRef", "uri": "grove-content://1/abc", "sizeHint": 7}),
    );
    let state = reduce(&active(), part(&text));
    changes(&state, part(&body), "/activeTurn/responseParts", json!([text, body]));
}

#[test]
fn a_finished_turn_has_the_streamed_text_in_front_of_its_parts() {
    let part = json!({"kind": "markdown", "content": "a part"});
    let said = [
        json!({"type": "session/responsePart", "turnId": "t1", "part": part}),
        json!({"type": "session/delta", "turnId": "t1", "content": "streamed "}),
        json!({"type": "session/delta", "turnId": "t1", "content": "later"}),
    ];
    let state = reduce_all(active(), said);
    let done = reduce(&state, json!({"type": "session/turnComplete", "turnId": "t1"}));
    let expected = json!([{"kind": "markdown", "content": "streamed later"}, part]);
    assert_eq!(done["turns"][0]["responseParts"], expected);
}

#[test]
fn a_finished_turn_without_streamed_text_has_no_part_for_it() {
    let done = reduce(&active(), json!({"type": "session/turnComplete", "turnId": "t1"}));
    assert_eq!(done["turns"][0]["responseParts"], json!([]));
}

#[test]
fn the_modification_time_is_the_actions_and_stays_without_one() {
    let dated = [
        json!({"type": "session/titleChanged", "title": "Other"}),
        json!({"type": "session/modelChanged", "model": "gpt"}),
        json!({"type": "session/turnStarted", "turnId": "t1", "userMessage": {"text": "hi"}}),
    ];
    for action in dated {
        assert_eq!(reduce(&idle(), action.clone())["summary"]["modifiedAt"], 20, "{action}");
        let mut action = action;
        action["timestamp"] = json!(99);
        assert_eq!(reduce(&idle(), action)["summary"]["modifiedAt"], 99);
    }
    for end in ["session/turnComplete", "session/turnCancelled"] {
        let end = json!({"type": end, "turnId": "t1", "timestamp": 99});
        assert_eq!(reduce(&active(), end)["summary"]["modifiedAt"], 99);
    }
}

#[test]
fn a_started_tool_call_stands_under_its_id() {
    let first = with_calls(&["c1"]);
    assert_eq!(first["activeTurn"]["toolCalls"], json!({"c1": call("c1")}));
    let mut other = call("c1");
    other["displayName"] = json!("Renamed");
    let again = json!({"type": "session/toolStart", "turnId": "t1", "toolCall": other});
    changes(&first, again, "/activeTurn/toolCalls", json!({"c1": other}));
}

#[test]
fn a_completed_tool_call_has_its_result_and_a_status_by_success() {
    let state = with_calls(&["c1", "c2"]);
    for (success, status) in [(true, "completed"), (false, "failed")] {
        let mut done = call("c1");
        done["status"] = json!(status);
        done["success"] = json!(success);
        done["pastTenseMessage"] = json!("Ran");
        done["toolOutput"] = json!("x");
        let result = json!({"success": success, "pastTenseMessage": "Ran", "toolOutput": "x"});
        changes(&state, tool_complete("c1", result), "/activeTurn/toolCalls/c1", done);
    }
}

#[test]
fn the_completion_of_an_unknown_tool_call_changes_nothing() {
    ignores(&with_calls(&["c1"]), tool_complete("c9", json!({"success": true, "pastTenseMessage": "Ran"})));
}

#[test]
fn a_permission_request_is_listed_and_holds_the_call_it_names() {
    let state = reduce(&with_calls(&["c1", "c2"]), asks("r1", Some("c1")));
    assert_eq!(
        state["activeTurn"]["pendingPermissions"],
        json!({"r1": {"requestId": "r1", "permissionKind": "shell", "toolCallId": "c1"}})
    );
    assert_eq!(state["activeTurn"]["toolCalls"]["c1"]["status"], "pending-permission");
    assert_eq!(state["activeTurn"]["toolCalls"]["c2"]["status"], "running");
}

#[test]
fn a_permission_request_without_a_known_call_is_listed_all_the_same() {
    for named in [None, Some("c9")] {
        let mut request = json!({"requestId": "r1", "permissionKind": "shell"});
        if let Some(named) = named {
            request["toolCallId"] = json!(named);
        }
        let state = with_calls(&["c1"]);
        changes(&state, asks("r1", named), "/activeTurn/pendingPermissions", json!({"r1": request}));
    }
}

#[test]
fn a_resolved_permission_is_gone_and_its_call_runs_or_has_failed() {
    let state = reduce_all(with_calls(&["c1", "c2"]), [asks("r1", Some("c1")), asks("r2", Some("c2"))]);
    for (approved, status) in [(true, "running"), (false, "failed")] {
        let after = reduce(&state, resolved("r1", approved));
        assert_eq!(after["activeTurn"]["pendingPermissions"].as_object().unwrap().keys().collect::<Vec<_>>(), ["r2"]);
        assert_eq!(after["activeTurn"]["toolCalls"]["c1"]["status"], status);
        assert_eq!(after["activeTurn"]["toolCalls"]["c2"]["status"], "pending-permission");
    }
    ignores(&state, resolved("r9", true));
}

#[test]
fn each_end_of_a_turn_finalizes_it_in_its_own_state() {
    let error = json!({"errorType": "agent", "message": "broke"});
    let ends = [
        (json!({"type": "session/turnComplete", "turnId": "t1"}), "complete", "idle"),
        (json!({"type": "session/turnCancelled", "turnId": "t1"}), "cancelled", "idle"),
        (json!({"type": "session/error", "turnId": "t1", "error": error}), "error", "error"),
    ];
    let usage = json!({"type": "session/usage", "turnId": "t1", "usage": {"inputTokens": 1}});
    let state = reduce(&active(), usage);
    for (end, turn_state, status) in ends {
        let after = reduce(&state, end);
        let mut turn = json!({
            "id": "t1", "userMessage": {"text": "hi"}, "responseParts": [], "toolCalls": [],
            "usage": {"inputTokens": 1}, "state": turn_state,
        });
        if turn_state == "error" {
            turn["error"] = error.clone();
        }
        let mut expected = idle();
        expected["summary"]["status"] = json!(status);
        expected["turns"] = json!([turn]);
        assert_eq!(after, expected, "reasoning and permissions go with the active turn");
    }
}

#[test]
fn a_finished_turn_keeps_its_calls_in_their_order_of_start() {
    let done = |id: &str| tool_complete(id, json!({"success": true, "pastTenseMessage": format!("Ran {id}")}));
    let mut actions = ["z", "a", "m"].map(tool_start).to_vec();
    actions.extend(["m", "a", "z"].map(done));
    actions.push(json!({"type": "session/turnComplete", "turnId": "t1"}));
    let after = reduce_all(active(), actions);
    let ids: Vec<_> =
        after["turns"][0]["toolCalls"].as_array().unwrap().iter().map(|call| &call["toolCallId"]).collect();
    assert_eq!(ids, ["z", "a", "m"]);
}

#[test]
fn a_call_that_never_completed_counts_as_failed_under_its_first_message() {
    let state = reduce_all(
        with_calls(&["c1", "c2", "c3"]),
        [
            tool_complete("c1", json!({"success": true, "pastTenseMessage": "Ran", "toolOutput": "x"})),
            asks("r2", Some("c2")),
            asks("r3", Some("c3")),
            resolved("r3", false),
        ],
    );
    let after = reduce(&state, json!({"type": "session/turnCancelled", "turnId": "t1"}));
    let cut = |id: &str| {
        json!({
            "toolCallId": id, "toolName": "shell", "displayName": "Shell", "success": false,
            "pastTenseMessage": format!("Running {id}"),
        })
    };
    let done = json!({
        "toolCallId": "c1", "toolName": "shell", "displayName": "Shell", "success": true,
        "pastTenseMessage": "Ran", "toolOutput": "x",
    });
    assert_eq!(after["turns"][0]["toolCalls"], json!([done, cut("c2"), cut("c3")]));
}

#[test]
fn a_turn_starts_empty_and_only_where_none_is_active() {
    let started = json!({
        "type": "session/turnStarted", "turnId": "t1",
        "userMessage": {"text": "hi"}, "timestamp": 20,
    });
    assert_eq!(reduce(&idle(), started), active());
    let second = json!({
        "type": "session/turnStarted", "turnId": "t2",
        "userMessage": {"text": "again"}, "timestamp": 99,
    });
    ignores(&active(), second);
}

#[test]
fn the_status_follows_the_last_turn() {
    let start = |id: &str| json!({"type": "session/turnStarted", "turnId": id, "userMessage": {"text": "hi"}});
    let error = json!({"errorType": "agent", "message": "broke"});
    let failed = reduce(&active(), json!({"type": "session/error", "turnId": "t1", "error": error}));
    assert_eq!(failed["summary"]["status"], "error");
    let running = reduce(&failed, start("t2"));
    assert_eq!(running["summary"]["status"], "in-progress");
    let cancelled = reduce(&running, json!({"type": "session/turnCancelled", "turnId": "t2"}));
    assert_eq!(cancelled["summary"]["status"], "idle");
}

#[test]
fn creation_ends_in_ready_or_in_an_error() {
    let mut creating = idle();
    creating["lifecycle"] = json!("creating");
    changes(&creating, json!({"type": "session/ready"}), "/lifecycle", json!("ready"));
    let error = json!({"errorType": "agentStart", "message": "no such program"});
    let failed = reduce(&creating, json!({"type": "session/creationFailed", "error": error}));
    let mut expected = creating;
    expected["lifecycle"] = json!("creationFailed");
    expected["creationError"] = error;
    assert_eq!(failed, expected);
}

#[test]
fn title_and_model_are_the_summarys() {
    changes(&idle(), json!({"type": "session/titleChanged", "title": "Other"}), "/summary/title", json!("Other"));
    changes(&idle(), json!({"type": "session/modelChanged", "model": "gpt"}), "/summary/model", json!("gpt"));
}

#[test]
fn the_roots_agents_are_replaced() {
    let agent = |provider: &str| json!({"provider": provider, "displayName": "", "description": "", "models": []});
    let state: RootState = serde_json::from_value(json!({"agents": [agent("a"), agent("b")]})).unwrap();
    let action: RootAction =
        serde_json::from_value(json!({"type": "root/agentsChanged", "agents": [agent("c")]})).unwrap();
    let after = v1::root_reducer(state, &action);
    assert_eq!(serde_json::to_value(after).unwrap(), json!({"agents": [agent("c")]}));
}

#[test]
fn reducing_in_place_is_the_same() {
    let state: SessionState = serde_json::from_value(with_calls(&["c1"])).unwrap();
    for mut action in about("t1") {
        action["session"] = json!("copilot:/1");
        let action: SessionAction = serde_json::from_value(action).unwrap();
        let mut in_place = state.clone();
        v1::reduce::reduce_session(&mut in_place, &action);
        assert_eq!(in_place, v1::session_reducer(state.clone(), &action));
    }
}
