use grove_wire::ahp::ChatState;
use serde_json::{Value, json};

use super::*;

fn chat(turns: Value, active: Value) -> ChatState {
    let mut chat = json!({"resource": "c", "title": "", "status": 1, "modifiedAt": "", "turns": turns});
    if !active.is_null() {
        chat["activeTurn"] = active;
    }
    serde_json::from_value(chat).unwrap()
}

fn turn(id: &str, text: &str, state: &str) -> Value {
    let parts = json!([{"kind": "markdown", "id": format!("{id}-1"), "content": text}]);
    json!({"id": id, "startedAt": "", "message": {"text": format!("prompt {id}"), "origin": {"kind": "user"}},
        "responseParts": parts, "state": state})
}

fn active(id: &str, text: &str) -> Value {
    turn(id, text, "complete")
}

/// The updates as short texts.
fn told(report: &ChatReport) -> Vec<String> {
    let text = |update: &DueUpdate| {
        let DueUpdate::Ready(update) = update else { return format!("{update:?}") };
        let update = serde_json::to_value(update).unwrap();
        format!("{} {}", update["sessionUpdate"].as_str().unwrap(), update["content"]["text"].as_str().unwrap_or(""))
    };
    report.updates.iter().map(text).collect()
}

#[test]
fn text_is_told_once_however_it_grows() {
    let mut reported = ReportedChat::default();
    let steps = [
        ("he", vec!["user_message_chunk prompt a", "agent_message_chunk he"]),
        ("he", vec![]),
        ("hello", vec!["agent_message_chunk llo"]),
    ];
    for (text, expected) in steps {
        assert_eq!(told(&reported.advance(&chat(json!([]), active("a", text)), |_| false)), expected);
    }
    let ended = reported.advance(&chat(json!([turn("a", "hello!", "complete")]), Value::Null), |_| false);
    assert_eq!(told(&ended), ["agent_message_chunk !"]);
    assert_eq!(ended.ended.len(), 1);
    let again = reported.advance(&chat(json!([turn("a", "hello!", "complete")]), Value::Null), |_| false);
    assert!(again.updates.is_empty() && again.ended.is_empty());
}

#[test]
fn a_prompt_of_the_editor_is_not_told_to_it_again() {
    let mut reported = ReportedChat::default();
    let report = reported.advance(&chat(json!([]), active("a", "hi")), |turn| turn == "a");
    assert_eq!(told(&report), ["agent_message_chunk hi"]);
}

#[test]
fn turns_that_began_and_ended_unseen_are_told_in_order() {
    let mut reported = ReportedChat::default();
    reported.skip(&chat(json!([turn("a", "1", "complete")]), Value::Null));
    let now = json!([turn("a", "1", "complete"), turn("b", "2", "complete"), turn("c", "3", "cancelled")]);
    let report = reported.advance(&chat(now, Value::Null), |_| false);
    let expected = [
        "user_message_chunk prompt b",
        "agent_message_chunk 2",
        "user_message_chunk prompt c",
        "agent_message_chunk 3",
    ];
    assert_eq!(told(&report), expected);
    assert!(matches!(report.ended[1].outcome, ReportedOutcome::Cancelled));
}

#[test]
fn a_chat_that_went_back_repeats_nothing_and_goes_on() {
    let mut reported = ReportedChat::default();
    reported.skip(&chat(json!([turn("a", "1", "complete"), turn("b", "2", "complete")]), Value::Null));
    let back = reported.advance(&chat(json!([turn("a", "1", "complete")]), Value::Null), |_| false);
    assert!(told(&back).is_empty());
    assert!(told(&reported.advance(&chat(json!([]), Value::Null), |_| false)).is_empty());
    let on = reported.advance(&chat(json!([turn("d", "4", "complete")]), Value::Null), |_| true);
    assert_eq!(told(&on), ["agent_message_chunk 4"]);
}

#[test]
fn a_long_text_is_cut_between_characters() {
    let text = "ä".repeat(CHUNK_BYTES);
    let cut: Vec<&str> = pieces(&text).collect();
    assert_eq!(cut.len(), 2);
    assert_eq!(cut.concat(), text);
    assert_eq!(pieces("").count(), 0);
}

#[test]
fn a_tool_call_is_announced_and_then_only_its_changes_are_told() {
    let call = |status: &str, more: Value| {
        let mut call = json!({"status": status, "toolCallId": "t", "toolName": "shell", "displayName": "Shell",
            "invocationMessage": "ls", "toolInput": "ls", "_meta": {"toolKind": "terminal"}});
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let parts = json!([{"kind": "toolCall", "toolCall": call}]);
        let mut turn = active("a", "");
        turn["responseParts"] = parts;
        chat(json!([]), turn)
    };
    let mut reported = ReportedChat::default();
    let first = reported.advance(&call("running", json!({"confirmed": "not-needed"})), |_| true);
    let [DueUpdate::NewCall(new)] = &first.updates[..] else { panic!("{first:?}") };
    assert_eq!((new.kind, new.status), (acp::ToolKind::Execute, acp::ToolCallStatus::InProgress));
    let done = json!({"confirmed": "not-needed", "success": true, "pastTenseMessage": "listed",
        "content": [{"type": "text", "text": "a.txt"}]});
    let second = reported.advance(&call("completed", done), |_| true);
    let [DueUpdate::ChangedCall { told, now }] = &second.updates[..] else { panic!("{second:?}") };
    let update = serde_json::to_value(now.clone().update(Some(told), Vec::new())).unwrap();
    assert_eq!(update["status"], "completed");
    assert!(update.get("title").is_none() && update.get("rawInput").is_none(), "{update}");
}
