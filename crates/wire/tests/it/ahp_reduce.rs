//! The rules of the reducers, one test each.

use grove_wire::ahp::reduce::{ReduceOutcome, State};
use grove_wire::ahp::status;
use serde_json::{Value, json};

use crate::ahp_reduce_random::{empty_chat, empty_session};
use crate::ahp_reduce_support::{json_of, ours, state, step};

fn message() -> Value {
    json!({"text": "hi", "origin": {"kind": "user"}})
}

fn start(id: &str, at: &str) -> Value {
    json!({"type": "chat/turnStarted", "turnId": id, "startedAt": at, "message": message()})
}

fn end(id: &str, duration: i64) -> Value {
    json!({"type": "chat/turnComplete", "turnId": id, "duration": duration})
}

fn markdown(id: &str) -> Value {
    json!({"type": "chat/responsePart", "turnId": "t", "part": {"kind": "markdown", "id": id, "content": ""}})
}

fn delta(part: &str, content: &str) -> Value {
    json!({"type": "chat/delta", "turnId": "t", "partId": part, "content": content})
}

/// An action on the call `c`.
fn call(kind: &str, mut body: Value) -> Value {
    body["type"] = json!(format!("chat/toolCall{kind}"));
    body["turnId"] = json!("t");
    body["toolCallId"] = json!("c");
    body
}

fn call_started() -> Value {
    call("Start", json!({"toolName": "shell", "displayName": "Shell"}))
}

/// The result for a chat in which the turn `t` runs, and these actions follow.
fn in_turn(actions: &[Value]) -> Value {
    let actions = [&[start("t", "2026-01-01T00:00:00Z")], actions].concat();
    ours("chat", &empty_chat(), &actions).unwrap()
}

/// The call of a chat in which the turn `t` runs, and these actions follow.
fn the_call(actions: &[Value]) -> Value {
    in_turn(actions)["activeTurn"]["responseParts"][0]["toolCall"].clone()
}

fn chat(actions: &[Value]) -> Value {
    ours("chat", &empty_chat(), actions).unwrap()
}

fn session(actions: &[Value]) -> Value {
    ours("session", &empty_session(), actions).unwrap()
}

fn ids(list: &Value, key: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
}

// Streaming.

#[test]
fn a_delta_goes_to_the_part_that_it_names() {
    let chat = in_turn(&[markdown("a"), markdown("b"), delta("a", "1"), delta("b", "2"), delta("a", "3")]);
    let contents = &chat["activeTurn"]["responseParts"];
    assert_eq!((&contents[0]["content"], &contents[1]["content"]), (&json!("13"), &json!("2")));
}

#[test]
fn a_delta_without_its_part_or_its_turn_changes_nothing() {
    let before = in_turn(&[markdown("a"), call_started()]);
    let thinking = json!({"type": "chat/reasoning", "turnId": "t", "partId": "a", "content": "x"});
    let late = json!({"type": "chat/delta", "turnId": "other", "partId": "a", "content": "x"});
    for stray in [delta("none", "x"), delta("c", "x"), thinking, late] {
        let mut state = state("chat", &before).unwrap();
        assert_eq!(step(&mut state, &stray).unwrap(), ReduceOutcome::Unchanged, "{stray}");
    }
}

/// Agents add to their newest part. The search begins there and ends with it, so a delta costs the same however many parts
/// come before: of two parts with one id the newer is found, and the older is never looked at.
#[test]
fn the_part_of_a_delta_is_looked_for_from_the_newest_back() {
    let chat = in_turn(&[markdown("a"), markdown("b"), markdown("a"), delta("a", "1"), delta("a", "2")]);
    let contents = chat["activeTurn"]["responseParts"].as_array().unwrap();
    let contents: Vec<_> = contents.iter().map(|part| part["content"].as_str().unwrap()).collect();
    assert_eq!(contents, ["", "", "12"]);
}

#[test]
fn an_error_is_no_part_that_can_be_added_to_a_turn() {
    let part = json!({"kind": "error", "error": {"errorType": "e", "message": "m"}});
    assert_eq!(in_turn(&[json!({"type": "chat/responsePart", "turnId": "t", "part": part})]), in_turn(&[]));
}

// Turns.

#[test]
fn a_turn_that_runs_is_not_begun_again() {
    let again = start("t", "2030-01-01T00:00:00Z");
    assert_eq!(in_turn(&[markdown("a"), again]), in_turn(&[markdown("a")]));
}

#[test]
fn a_turn_that_is_over_is_not_begun_again() {
    let again = start("t", "2030-01-01T00:00:00Z");
    assert_eq!(in_turn(&[end("t", 1), again]), in_turn(&[end("t", 1)]));
}

#[test]
fn a_beginning_marks_the_chat_as_unread_and_uses_up_the_message_that_waited() {
    let pending =
        |kind: &str, id: &str| json!({"type": "chat/pendingMessageSet", "kind": kind, "id": id, "message": message()});
    let read = json!({"type": "chat/isReadChanged", "isRead": true});
    let mut begin = start("t", "2026-01-01T00:00:00Z");
    begin["queuedMessageId"] = json!("m");
    let chat = chat(&[pending("queued", "m"), pending("steering", "other"), read, begin]);
    assert_eq!(chat["status"], status::IN_PROGRESS);
    assert_eq!(chat["queuedMessages"], Value::Null);
    assert_eq!(chat["steeringMessage"]["id"], "other");
}

#[test]
fn a_chat_is_modified_when_its_turn_began_and_then_when_it_ended() {
    let begun = chat(&[start("t", "2026-01-01T01:00:00.25+01:00")]);
    assert_eq!(begun["modifiedAt"], "2026-01-01T01:00:00.25+01:00");
    let over = chat(&[start("t", "2026-01-01T01:00:00.25+01:00"), end("t", 61_001)]);
    assert_eq!(over["modifiedAt"], "2026-01-01T00:01:01.251Z");
}

#[test]
fn a_duration_is_never_negative() {
    let over = in_turn(&[end("t", -5)]);
    assert_eq!((&over["turns"][0]["duration"], &over["modifiedAt"]), (&json!(0), &json!("2026-01-01T00:00:00.000Z")));
}

#[test]
fn a_turn_whose_start_is_no_time_ends_all_the_same() {
    for (at, duration) in [("soon", 5), ("", 0), ("2026-01-01", 1), ("9999-12-30T00:00:00Z", i64::MAX)] {
        let over = chat(&[start("t", at), end("t", duration)]);
        assert_eq!(over["activeTurn"], Value::Null);
        assert_eq!((&over["turns"][0]["state"], &over["turns"][0]["startedAt"]), (&json!("complete"), &json!(at)));
        assert_eq!((&over["modifiedAt"], &over["status"]), (&json!(at), &json!(status::IDLE)));
    }
}

#[test]
fn the_end_of_a_turn_skips_the_calls_that_are_not_over() {
    let other = |mut action: Value| {
        action["toolCallId"] = json!("over");
        action
    };
    let ready = call("Ready", json!({"invocationMessage": "Running", "toolInput": "ls", "confirmed": "setting"}));
    let complete = call("Complete", json!({"result": {"success": true, "pastTenseMessage": "Ran"}}));
    let over =
        in_turn(&[call_started(), ready.clone(), other(call_started()), other(ready), other(complete), end("t", 1)]);
    let parts = &over["turns"][0]["responseParts"];
    let skipped = json!({"toolCallId": "c", "toolName": "shell", "displayName": "Shell", "status": "cancelled",
        "invocationMessage": "Running", "toolInput": "ls", "reason": "skipped"});
    assert_eq!(parts[0]["toolCall"], skipped);
    assert_eq!(parts[1]["toolCall"]["status"], "completed");
}

#[test]
fn the_end_of_a_turn_leaves_a_call_of_an_unknown_status_as_it_came() {
    let part = json!({"kind": "toolCall", "toolCall": {"status": "new", "toolCallId": "c", "more": [1]}});
    let said = json!({"type": "chat/responsePart", "turnId": "t", "part": part});
    assert_eq!(in_turn(&[said, end("t", 1)])["turns"][0]["responseParts"], json!([part]));
}

fn failed(resumable: Option<bool>) -> Value {
    let mut part = json!({"kind": "error", "error": {"errorType": "e", "message": "m"}});
    if let Some(resumable) = resumable {
        part["resumable"] = json!(resumable);
    }
    json!({"type": "chat/error", "turnId": "t", "duration": 1, "part": part})
}

#[test]
fn a_turn_that_failed_ends_with_the_error_as_its_last_part() {
    let chat = in_turn(&[markdown("a"), failed(None)]);
    assert_eq!((&chat["status"], &chat["turns"][0]["state"]), (&json!(status::ERROR), &json!("error")));
    assert_eq!(ids(&chat["turns"][0]["responseParts"], "kind"), ["markdown", "error"]);
}

#[test]
fn only_the_last_turn_is_resumed_and_only_if_its_error_allows_it() {
    let resume = json!({"type": "chat/turnResume", "turnId": "t"});
    let resumed = in_turn(&[markdown("a"), failed(Some(true)), resume.clone()]);
    assert_eq!((&resumed["turns"], &resumed["status"]), (&json!([]), &json!(status::IN_PROGRESS)));
    assert_eq!(resumed["activeTurn"]["startedAt"], "2026-01-01T00:00:00Z");
    assert_eq!(ids(&resumed["activeTurn"]["responseParts"], "kind"), ["markdown", "error"]);

    let later = [failed(Some(true)), start("u", "2026-01-02T00:00:00Z"), end("u", 1)];
    for before in [&[failed(None)][..], &[failed(Some(false))], &[end("t", 1)], &later, &later[..2]] {
        assert_eq!(in_turn(&[before, std::slice::from_ref(&resume)].concat()), in_turn(before));
    }
}

#[test]
fn older_turns_come_before_the_others_and_only_once() {
    let turn = |id: &str| json!({"id": id, "message": message(), "responseParts": [], "state": "complete"});
    let mut loaded = json!({"type": "chat/turnsLoaded", "turns": [turn("a"), turn("b"), turn("t")]});
    loaded["turnsNextCursor"] = json!("older");
    let chat = in_turn(&[end("t", 1), loaded]);
    assert_eq!(
        (ids(&chat["turns"], "id"), &chat["turnsNextCursor"]),
        (vec!["a".into(), "b".into(), "t".into()], &json!("older"))
    );
    let last = json!({"type": "chat/turnsLoaded", "turns": []});
    assert_eq!(ours("chat", &chat, &[last]).unwrap()["turnsNextCursor"], Value::Null);
}

#[test]
fn truncation_forgets_what_came_after_a_turn_and_the_one_that_runs() {
    let two = [end("t", 1), start("u", "2026-01-02T00:00:00Z"), end("u", 1), start("v", "2026-01-03T00:00:00Z")];
    let truncated = |id: Option<&str>| match id {
        Some(id) => json!({"type": "chat/truncated", "turnId": id}),
        None => json!({"type": "chat/truncated"}),
    };
    let after = |id| in_turn(&[&two[..], &[truncated(id)]].concat());
    assert_eq!(
        (ids(&after(Some("t"))["turns"], "id"), &after(Some("t"))["activeTurn"]),
        (vec!["t".into()], &Value::Null)
    );
    assert_eq!((&after(None)["turns"], &after(None)["status"]), (&json!([]), &json!(status::IDLE)));
    assert_eq!(after(Some("none")), in_turn(&two));
}

#[test]
fn only_truncation_to_nothing_says_that_nothing_older_is_left() {
    let loaded = json!({"type": "chat/turnsLoaded", "turns": [], "turnsNextCursor": "older"});
    let cursor = |truncated: Value| in_turn(&[end("t", 1), loaded.clone(), truncated])["turnsNextCursor"].clone();
    assert_eq!(cursor(json!({"type": "chat/truncated", "turnId": "t"})), "older");
    assert_eq!(cursor(json!({"type": "chat/truncated"})), Value::Null);
}

// Queued messages, and questions.

#[test]
fn messages_that_a_new_order_does_not_name_keep_their_order_behind_it() {
    let queue = |id: &str| json!({"type": "chat/pendingMessageSet", "kind": "queued", "id": id, "message": message()});
    let order = |order: &[&str]| json!({"type": "chat/queuedMessagesReordered", "order": order});
    let queued = |named: &[&str]| {
        ids(&chat(&[queue("z"), queue("a"), queue("c"), queue("b"), order(named)])["queuedMessages"], "id")
    };
    assert_eq!(queued(&["c"]), ["c", "z", "a", "b"]);
    assert_eq!(queued(&["b", "none", "a", "b"]), ["b", "a", "z", "c"]);
    assert_eq!(queued(&[]), ["z", "a", "c", "b"]);
}

#[test]
fn a_question_that_is_asked_otherwise_keeps_its_answers() {
    let ask = |text: &str| json!({"type": "chat/inputRequested", "request": {"id": "q", "message": text}});
    let answer = json!({"state": "draft", "value": {"kind": "boolean", "value": true}});
    let answered = json!({"type": "chat/inputAnswerChanged", "requestId": "q", "questionId": "a", "answer": answer});
    let chat = in_turn(&[ask("Which?"), answered, ask("Really?")]);
    let request = &chat["activeTurn"]["responseParts"][0]["request"];
    assert_eq!(*request, json!({"id": "q", "message": "Really?", "answers": {"a": answer}}));
    assert_eq!(chat["status"], status::INPUT_NEEDED);
}

#[test]
fn a_chat_waits_until_every_question_is_closed_and_no_call_waits() {
    let ask = |id: &str| json!({"type": "chat/inputRequested", "request": {"id": id}});
    let close = |id: &str| json!({"type": "chat/inputCompleted", "requestId": id, "response": "accept"});
    let ready = call("Ready", json!({"invocationMessage": "Running"}));
    let confirmed = call("Confirmed", json!({"approved": true, "confirmed": "user-action"}));
    let all = [ask("a"), ask("b"), call_started(), ready, close("a"), confirmed, close("b")];
    let statuses: Vec<Value> = (0..=all.len()).map(|count| in_turn(&all[..count])["status"].clone()).collect();
    assert_eq!(statuses, [8, 24, 24, 24, 24, 24, 24, 8]);
    assert_eq!(in_turn(&[&all[..], &[close("b")]].concat()), in_turn(&all));
}

// Tool calls.

#[test]
fn a_call_with_a_decision_runs_and_without_one_waits_for_it() {
    let ready = |body: Value| the_call(&[call_started(), call("Ready", body)])["status"].clone();
    assert_eq!(ready(json!({"invocationMessage": "Running", "confirmed": "not-needed"})), "running");
    assert_eq!(ready(json!({"invocationMessage": "Running"})), "pending-confirmation");
}

#[test]
fn a_call_never_gets_to_a_client_or_away_from_it() {
    let client = |id: &str| json!({"kind": "client", "clientId": id});
    let mcp = |id: &str| json!({"kind": "mcp", "customizationId": id});
    let said = |first: Value, then: Value| {
        let mut begin = call_started();
        begin["contributor"] = first;
        the_call(&[begin, call("Ready", json!({"invocationMessage": "i", "contributor": then}))])["contributor"].clone()
    };
    assert_eq!(said(client("a"), client("b")), client("a"));
    assert_eq!(said(client("a"), mcp("m")), client("a"));
    assert_eq!(said(mcp("m"), client("a")), mcp("m"));
    assert_eq!(said(mcp("m"), mcp("n")), mcp("n"));
}

#[test]
fn only_an_input_that_was_shown_is_replaced_by_an_edited_one() {
    let input = |given: Value| {
        let ready = call("Ready", json!({"invocationMessage": "i", "toolInput": given}));
        let confirmed = call("Confirmed", json!({"approved": true, "editedToolInput": "ls -l"}));
        the_call(&[call_started(), ready, confirmed])["toolInput"].clone()
    };
    assert_eq!(input(json!("ls")), "ls -l");
    assert_eq!(input(json!({"uri": "file:///input"})), json!({"uri": "file:///input"}));
}

#[test]
fn a_chosen_option_is_kept_to_the_end_of_the_call() {
    let option = json!({"id": "o", "label": "Always", "kind": "approve"});
    let actions = [
        call_started(),
        call("Ready", json!({"invocationMessage": "i", "options": [option]})),
        call("Confirmed", json!({"approved": true, "selectedOptionId": "o"})),
        call(
            "Complete",
            json!({"result": {"success": true, "pastTenseMessage": "p"}, "requiresResultConfirmation": true}),
        ),
        call("ResultConfirmed", json!({"approved": true})),
    ];
    for (count, status) in [(3, "running"), (4, "pending-result-confirmation"), (5, "completed")] {
        let call = the_call(&actions[..count]);
        assert_eq!((&call["status"], &call["selectedOption"]), (&json!(status), &option));
    }
}

#[test]
fn a_call_that_waits_for_a_token_can_only_fail() {
    let mut begin = call_started();
    begin["contributor"] = json!({"kind": "mcp", "customizationId": "m"});
    let auth = json!({"reason": "required", "resource": {"resource": "https://a.example"}});
    let waiting = [
        begin,
        call("Ready", json!({"invocationMessage": "i", "confirmed": "not-needed"})),
        call("ContentChanged", json!({"content": [{"type": "text", "text": "so far"}]})),
        call("AuthRequired", json!({"auth": auth})),
    ];
    let complete = |success: bool| {
        let result = json!({"success": success, "pastTenseMessage": "p"});
        let complete = call("Complete", json!({"result": result, "requiresResultConfirmation": true}));
        the_call(&[&waiting[..], &[complete]].concat())
    };
    assert_eq!(complete(true), the_call(&waiting));
    assert_eq!(complete(false)["status"], "completed");
    assert_eq!(complete(false)["content"], json!([{"type": "text", "text": "so far"}]));
}

#[test]
fn a_call_that_is_over_stays_as_it_is() {
    let over = [
        call_started(),
        call("Ready", json!({"invocationMessage": "i"})),
        call("Confirmed", json!({"approved": false, "reason": "denied"})),
    ];
    let late = [
        call("Delta", json!({"content": "x"})),
        call("Ready", json!({"invocationMessage": "j", "confirmed": "setting"})),
        call("Confirmed", json!({"approved": true})),
        call("Complete", json!({"result": {"success": true, "pastTenseMessage": "p"}})),
        call("ResultConfirmed", json!({"approved": true})),
        call("ContentChanged", json!({"content": []})),
        call("AuthResolved", json!({})),
    ];
    assert_eq!(the_call(&over)["status"], "cancelled");
    for late in late {
        assert_eq!(in_turn(&[&over[..], std::slice::from_ref(&late)].concat()), in_turn(&over), "{late}");
    }
}

// Sessions.

fn chat_added(id: &str) -> Value {
    json!({"type": "session/chatAdded", "summary": {"resource": id, "title": "", "status": 1, "modifiedAt": "x"}})
}

#[test]
fn a_row_takes_every_field_that_is_updated() {
    let changes = json!({"title": "T", "status": 8, "activity": "a", "modifiedAt": "y", "changes": {"files": 1},
        "origin": {"kind": "user"}, "movable": true, "interactivity": "read-only", "workingDirectories": ["file:///a"]});
    let updated = json!({"type": "session/chatUpdated", "chat": "c", "changes": changes});
    let mut expected = changes.clone();
    expected["resource"] = json!("c");
    assert_eq!(session(&[chat_added("c"), updated])["chats"], json!([expected]));
}

#[test]
fn an_order_of_other_chats_than_there_are_changes_nothing() {
    let added = ["a", "b", "c"].map(chat_added);
    let order = |order: &[&str]| {
        let reordered = json!({"type": "session/chatsReordered", "chats": order});
        ids(&session(&[&added[..], &[reordered]].concat())["chats"], "resource").concat()
    };
    assert_eq!(order(&["c", "a", "b"]), "cab");
    for wrong in [&["c", "a"][..], &["c", "a", "a"], &["c", "a", "d"], &["d", "c", "b", "a"], &[]] {
        assert_eq!(order(wrong), "abc", "{wrong:?}");
    }
}

#[test]
fn a_chat_that_is_gone_is_not_the_default_any_more() {
    let default = json!({"type": "session/defaultChatChanged", "defaultChat": "a"});
    let removed = |id: &str| json!({"type": "session/chatRemoved", "chat": id});
    let after =
        |id: &str| session(&[chat_added("a"), chat_added("b"), default.clone(), removed(id)])["defaultChat"].clone();
    assert_eq!((after("a"), after("b")), (Value::Null, json!("a")));
}

#[test]
fn a_directory_that_is_replaced_is_there_once() {
    let set = |directory: &str| json!({"type": "session/workingDirectorySet", "directory": directory});
    let after = |directory: &str, replacement: &str| {
        let replaced =
            json!({"type": "session/workingDirectoryReplaced", "directory": directory, "replacement": replacement});
        let session = session(&[set("file:///c"), replaced]);
        let directories = session["workingDirectories"].as_array().unwrap().iter();
        directories.map(|uri| uri.as_str().unwrap().trim_start_matches("file:///")).collect::<String>()
    };
    assert_eq!(after("file:///a", "file:///d"), "dbc");
    assert_eq!(after("file:///a", "file:///c"), "cb");
    assert_eq!(after("file:///c", "file:///a"), "ab");
    assert_eq!(after("file:///d", "file:///a"), "abc");
}

#[test]
fn a_call_that_a_client_executes_is_no_need_for_input() {
    let call = json!({"status": "running", "toolCallId": "c", "toolName": "t", "displayName": "T",
        "invocationMessage": "i", "confirmed": "not-needed"});
    let executed = json!({"kind": "toolClientExecution", "id": "n", "chat": "c", "turnId": "t", "clientId": "k",
        "toolCall": call});
    let asked = json!({"kind": "chatInput", "id": "m", "chat": "c", "request": {"id": "q"}});
    let need = |request: &Value| json!({"type": "session/inputNeededSet", "request": request});
    let no_need = |id: &str| json!({"type": "session/inputNeededRemoved", "id": id});
    assert_eq!(session(&[need(&executed)])["status"], status::IDLE);
    assert_eq!(session(&[need(&executed), need(&asked)])["status"], status::INPUT_NEEDED);
    let after = session(&[need(&executed), need(&asked), no_need("m")]);
    assert_eq!((&after["status"], ids(&after["inputNeeded"], "id")), (&json!(status::IN_PROGRESS), vec!["n".into()]));
    assert_eq!(session(&[need(&asked), no_need("m")])["inputNeeded"], Value::Null);
}

#[test]
fn a_decision_is_kept_where_a_customization_keeps_decisions_and_is_on_or_off_elsewhere() {
    let skill = json!({"type": "skill", "id": "s", "uri": "u", "name": "S"});
    let plugin = json!({"type": "plugin", "id": "p", "uri": "u", "name": "P", "children": [skill]});
    let all = json!({"type": "session/customizationsChanged", "customizations": [plugin]});
    let decisions = json!([{"kind": "session", "enabled": false}, {"kind": "global", "enabled": true}]);
    let toggle = |id: &str, enablement: &Value| json!({"type": "session/customizationToggled", "id": id, "enablement": enablement});
    let off = session(&[all, toggle("p", &decisions), toggle("s", &decisions)]);
    let plugin = &off["customizations"][0];
    assert_eq!((&plugin["enablement"], &plugin["children"][0]["enabled"]), (&decisions, &json!(false)));
    let undecided = ours("session", &off, &[toggle("p", &json!([])), toggle("s", &json!([]))]).unwrap();
    let plugin = &undecided["customizations"][0];
    assert_eq!((plugin.get("enablement"), &plugin["children"][0]["enabled"]), (None, &json!(true)));
}

#[test]
fn a_customization_of_an_unknown_type_is_put_in_replaced_and_removed_by_its_id() {
    let update = |more: u64| {
        let customization = json!({"type": "new", "id": "n", "more": more});
        json!({"type": "session/customizationUpdated", "customization": customization})
    };
    let removed = json!({"type": "session/customizationRemoved", "id": "n"});
    assert_eq!(session(&[update(1), update(2)])["customizations"], json!([{"type": "new", "id": "n", "more": 2}]));
    assert_eq!(session(&[update(1), removed])["customizations"], json!([]));
}

#[test]
fn a_session_that_gets_ready_keeps_its_status() {
    let mut initial = empty_session();
    initial["status"] = json!(status::IN_PROGRESS | status::IS_ARCHIVED);
    let ready = ours("session", &initial, &[json!({"type": "session/ready"})]).unwrap();
    assert_eq!((&ready["lifecycle"], &ready["status"]), (&json!("ready"), &initial["status"]));
}

#[test]
fn a_bit_of_the_status_that_nobody_knows_is_carried_along() {
    let mut initial = empty_chat();
    initial["status"] = json!(0x8000_0001_u32);
    let begun = ours("chat", &initial, &[start("t", "2026-01-01T00:00:00Z")]).unwrap();
    assert_eq!(begun["status"], 0x8000_0008_u32);
}

// The other channels.

#[test]
fn values_are_added_to_or_replaced_but_only_where_there_is_a_schema() {
    let config = json!({"schema": {"type": "object", "properties": {}}, "values": {"a": 1, "b": 2}});
    let changed = |replace: bool| json!({"type": "root/configChanged", "config": {"b": 3}, "replace": replace});
    let values = |replace| {
        let root = json!({"agents": [], "config": config});
        ours("root", &root, &[changed(replace)]).unwrap()["config"]["values"].clone()
    };
    assert_eq!((values(false), values(true)), (json!({"a": 1, "b": 3}), json!({"b": 3})));
    assert_eq!(ours("root", &json!({"agents": []}), &[changed(true)]).unwrap(), json!({"agents": []}));
}

#[test]
fn output_belongs_to_the_command_that_runs_or_to_none() {
    let terminal = json!({"title": "sh", "content": [], "lifecycle": {"status": "running"},
        "claim": {"kind": "client", "clientId": "k"}});
    let data = |data: &str| json!({"type": "terminal/data", "data": data});
    let actions = [
        data("$ "),
        json!({"type": "terminal/commandExecuted", "commandId": "1", "commandLine": "ls", "timestamp": 5}),
        data("a"),
        data("b"),
        json!({"type": "terminal/commandFinished", "commandId": "1", "exitCode": 0}),
        data("$ "),
        json!({"type": "terminal/input", "data": "x"}),
        json!({"type": "terminal/exited", "exitCode": 1}),
    ];
    let after = ours("terminal", &terminal, &actions).unwrap();
    let command = json!({"type": "command", "commandId": "1", "commandLine": "ls", "output": "ab", "timestamp": 5,
        "isComplete": true, "exitCode": 0});
    let prompt = json!({"type": "unclassified", "value": "$ "});
    assert_eq!(after["content"], json!([prompt, command, prompt]));
    assert_eq!(after["lifecycle"], json!({"status": "exited", "exitCode": 1}));
}

#[test]
fn an_error_of_a_changeset_stands_only_as_long_as_its_status_says_so() {
    let operation = json!({"id": "o", "label": "O", "scopes": [], "status": "idle"});
    let changeset = json!({"status": "computing", "files": [], "operations": [operation]});
    let error = json!({"errorType": "e", "message": "m"});
    let moved = |status: &str| json!({"type": "changeset/statusChanged", "status": status, "error": error});
    let operated = |status: &str| json!({"type": "changeset/operationStatusChanged", "operationId": "o", "status": status, "error": error});
    let after =
        |status: &str| ours("changeset", &changeset, &[moved("error"), operated("error"), moved(status)]).unwrap();
    assert_eq!((&after("error")["error"], &after("error")["operations"][0]["error"]), (&error, &error));
    assert_eq!(after("ready")["error"], Value::Null);
    let recovered = ours("changeset", &after("error"), &[operated("running")]).unwrap();
    assert_eq!(recovered["operations"][0].get("error"), None);
}

#[test]
fn an_update_of_an_annotation_leaves_its_entries() {
    let annotation = json!({"id": "a", "origin": {"session": "s"}, "resource": "file:///a", "resolved": false,
        "entries": [{"id": "e", "text": "look"}]});
    let initial = json!({"annotations": [annotation]});
    let updated = json!({"type": "annotations/updated", "annotationId": "a", "resolved": true});
    let mut expected = annotation.clone();
    expected["resolved"] = json!(true);
    assert_eq!(ours("annotations", &initial, &[updated]).unwrap(), json!({"annotations": [expected]}));
}

#[test]
fn what_happened_to_files_is_told_and_not_kept() {
    let watch = json!({"root": "file:///a", "recursive": true});
    let changes = json!({"items": [{"uri": "file:///a/b", "type": "added"}]});
    let changed = json!({"type": "resourceWatch/changed", "changes": changes});
    assert_eq!(ours("resourceWatch", &watch, &[changed]).unwrap(), watch);
}

// All channels.

#[test]
fn an_action_of_another_channel_or_of_an_unknown_type_changes_nothing() {
    let begin = start("t", "2026-01-01T00:00:00Z");
    let unknown = json!({"type": "chat/somethingNew", "turnId": "t"});
    let title = json!({"type": "session/titleChanged", "title": "T"});
    for (reducer, initial, action) in [
        ("session", empty_session(), &begin),
        ("chat", empty_chat(), &title),
        ("chat", empty_chat(), &unknown),
        ("root", json!({"agents": []}), &begin),
    ] {
        let mut state = state(reducer, &initial).unwrap();
        assert_eq!(step(&mut state, action).unwrap(), ReduceOutcome::Unchanged);
        assert_eq!(json_of(&state), initial);
    }
    let mut other = State::Unknown(json!({"entries": []}));
    assert_eq!(step(&mut other, &begin).unwrap(), ReduceOutcome::Unchanged);
}

#[test]
fn what_says_nothing_new_changes_nothing() {
    let client = json!({"type": "session/activeClientSet", "activeClient": {"clientId": "k", "tools": []}});
    let title = json!({"type": "session/titleChanged", "title": "T"});
    let read = json!({"type": "session/isReadChanged", "isRead": true});
    let mut state = state("session", &empty_session()).unwrap();
    for action in [client, title, read, chat_added("c")] {
        assert_eq!(step(&mut state, &action).unwrap(), ReduceOutcome::Changed, "{action}");
        assert_eq!(step(&mut state, &action).unwrap(), ReduceOutcome::Unchanged, "{action}");
    }
}
