//! Every kind of update, and every rule by which one becomes events.

mod permission_requests;
mod turn_ends;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::*;
use crate::agent::*;
use agent_client_protocol_schema::v1 as acp;
use grove_core::*;

fn content_of(update_json: Value) -> Result<UpdateContent, UpdateError> {
    update(json!({"sessionId": "s", "update": update_json})).map(|update| {
        assert_eq!(*update.session.0, *"s");
        update.content
    })
}

fn events(update: Value) -> Vec<AgentEvent> {
    match content_of(update.clone()) {
        Ok(UpdateContent::Events(events)) => events,
        other => panic!("{update} is {other:?}"),
    }
}

fn event(update: Value) -> AgentEvent {
    let mut events = events(update);
    assert_eq!(events.len(), 1, "{events:?}");
    events.remove(0)
}

fn chunk(content: Value) -> Vec<AgentEvent> {
    events(json!({"sessionUpdate": "agent_message_chunk", "content": content}))
}

fn call(members: Value) -> ToolUpdate {
    let mut update_json = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c"});
    update_json.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    match event(update_json) {
        AgentEvent::Tool(update) => *update,
        other => panic!("{other:?}"),
    }
}

fn extra(update: &ToolUpdate) -> Value {
    update.extra.as_ref().map(|extra| extra["acp"].clone()).unwrap_or_default()
}

fn gave(text: &str) -> Option<AccumulatedOutput> {
    Some(AccumulatedOutput { text: text.to_owned(), pieces: vec![] })
}

fn notice(update: Value) -> String {
    match event(update) {
        AgentEvent::Notice(notice) => notice,
        other => panic!("{other:?}"),
    }
}

// Answers and thoughts.

#[test]
fn words_are_told_as_they_came() {
    let text = json!({"type": "text", "text": " a\n"});
    assert!(matches!(&chunk(text.clone())[..], [AgentEvent::Text(chunk_text)] if chunk_text == " a\n"));
    let thought = event(json!({"sessionUpdate": "agent_thought_chunk", "content": text}));
    assert!(matches!(thought, AgentEvent::Reasoning(chunk_text) if chunk_text == " a\n"));
}

#[test]
fn an_empty_chunk_says_nothing() {
    assert!(chunk(json!({"type": "text", "text": ""})).is_empty());
}

#[test]
fn the_persons_words_are_not_told_back() {
    assert!(
        events(json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "hi"}})).is_empty()
    );
}

#[test]
fn pictures_and_sounds_are_bodies() {
    for kind in ["image", "audio"] {
        for data in ["AQID", "AQ\nID", "AQI="] {
            let events = chunk(json!({"type": kind, "mimeType": "x/y", "data": data}));
            let [AgentEvent::PartContent { mime_type, body: PartContent::Bytes(bytes) }] = &events[..] else {
                panic!("{events:?}")
            };
            assert_eq!((mime_type.as_str(), &bytes[..2]), ("x/y", &[1, 2][..]), "{data}");
        }
    }
}

#[test]
fn a_body_that_cannot_be_decoded_is_noticed() {
    let events = chunk(json!({"type": "image", "mimeType": "image/png", "data": "?"}));
    assert!(matches!(&events[..], [AgentEvent::Notice(notice)] if notice.contains("image/png")), "{events:?}");
}

#[test]
fn resources_are_bodies_of_their_type() {
    let resource = |resource: Value| chunk(json!({"type": "resource", "resource": resource}));
    let events = resource(json!({"uri": "file:///a", "text": "fn", "mimeType": "text/x-rust"}));
    let [AgentEvent::PartContent { mime_type, body: PartContent::Text(text) }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((mime_type.as_str(), text.as_str()), ("text/x-rust", "fn"));

    let events = resource(json!({"uri": "file:///a", "text": "fn"}));
    assert!(matches!(&events[..], [AgentEvent::PartContent { mime_type, .. }] if mime_type == "text/plain"));
    let events = resource(json!({"uri": "file:///a", "blob": "AQID"}));
    let [AgentEvent::PartContent { mime_type, body: PartContent::Bytes(bytes) }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((mime_type.as_str(), &bytes[..]), ("application/octet-stream", &[1, 2, 3][..]));
}

#[test]
fn a_link_is_markdown_that_nothing_in_it_can_end() {
    let link = |name: &str, uri: &str| {
        let events = chunk(json!({"type": "resource_link", "name": name, "uri": uri}));
        let [AgentEvent::Text(text)] = &events[..] else { panic!("{events:?}") };
        text.clone()
    };
    assert_eq!(link("a.rs", "file:///a.rs"), "[a.rs](file:///a.rs)");
    assert_eq!(link("a](b)", "x:/ (1)\n%20"), "[a\\](b)](x:/%20%281%29%0A%20)");
    let titled = chunk(json!({"type": "resource_link", "name": "n", "title": "T", "uri": "u:v"}));
    assert!(matches!(&titled[..], [AgentEvent::Text(text)] if text == "[T](u:v)"));
}

// Tool calls.

#[test]
fn a_call_tells_only_what_was_said() {
    let update = call(json!({}));
    assert_eq!(update.call.as_str(), "c");
    assert!(update.name.is_none() && update.kind.is_none() && update.title.is_none() && update.input.is_none());
    assert!(update.stage.is_none() && update.output.is_none() && update.structured.is_none());
    assert!(update.extra.is_none() && update.permission.is_none());
    // Defaults of the protocol were not said.
    let AgentEvent::Tool(update) = event(json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "t"})) else {
        panic!()
    };
    assert!(update.stage.is_none() && update.output.is_none() && update.extra.is_none());
}

#[test]
fn a_call_without_its_id_is_refused() {
    for id in [json!(null), json!(1)] {
        let refused = content_of(json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": "t"}));
        assert!(matches!(refused, Err(UpdateError::Malformed { .. })), "{refused:?}");
    }
}

#[test]
fn a_kind_of_tool_names_the_tool_where_nothing_else_does() {
    let kinds = [
        ("read", ToolKind::Read),
        ("edit", ToolKind::Edit),
        ("delete", ToolKind::Delete),
        ("move", ToolKind::Move),
        ("search", ToolKind::Search),
        ("execute", ToolKind::Terminal),
        ("think", ToolKind::Think),
        ("fetch", ToolKind::Fetch),
        ("switch_mode", ToolKind::SwitchMode),
    ];
    for (name, kind) in kinds {
        let update = call(json!({"kind": name}));
        assert_eq!((update.kind, update.name.as_deref()), (Some(kind), Some(name)));
        assert_eq!(extra(&update), json!({"kind": name}), "as it was said");
    }
    let update = call(json!({"kind": "other"}));
    assert_eq!((update.kind, update.name.as_deref()), (None, None));
    let update = call(json!({"kind": "dance"}));
    assert_eq!((update.kind, update.name.as_deref()), (None, Some("dance")));
    assert_eq!(call(json!({"kind": "execute", "name": "Bash"})).name.as_deref(), Some("Bash"));
}

#[test]
fn every_status_is_a_stage() {
    let stages = [
        ("pending", ToolStage::Pending),
        ("in_progress", ToolStage::Running),
        ("completed", ToolStage::Completed),
        ("failed", ToolStage::Failed),
    ];
    for (name, stage) in stages {
        let update = call(json!({"status": name}));
        assert_eq!((update.stage, update.extra.is_none()), (Some(stage), true));
    }
    let update = call(json!({"status": "paused"}));
    assert_eq!((update.stage, extra(&update)), (None, json!({"status": "paused"})));
}

#[test]
fn the_input_is_compact_json_in_the_order_in_which_it_was_written() {
    let input = |input: Value| call(json!({"rawInput": input})).input;
    assert_eq!(input(json!({"b": 1, "a": ["x y"]})).as_deref(), Some(r#"{"b":1,"a":["x y"]}"#));
    assert_eq!(input(json!("ls")).as_deref(), Some("\"ls\""));
    for nothing in [json!({}), json!(null)] {
        assert_eq!(input(nothing), None);
    }
}

#[test]
fn text_blocks_are_the_output() {
    let text = |text: &str| json!({"type": "content", "content": {"type": "text", "text": text}});
    let update = call(json!({"content": [text("a"), text("b")], "rawOutput": "c"}));
    assert_eq!(update.output, gave("a\nb"));
    assert_eq!(Value::from(update.structured.unwrap()), json!({"output": "c"}));
    assert_eq!(call(json!({"content": []})).output, None, "that there is nothing yet takes nothing back");
}

#[test]
fn diffs_are_edits() {
    let edit = |old: Value, new: Value| {
        let update = call(json!({"content": [{"type": "diff", "path": "a.rs", "oldText": old, "newText": new}]}));
        assert!(update.extra.is_none(), "{:?}", update.extra);
        update.output.unwrap().pieces
    };
    let piece = |before: Option<&str>, after: Option<&str>| {
        let text = |text: Option<&str>| text.map(str::to_owned);
        vec![ToolOutputPart::Edit { path: "a.rs".to_owned(), before: text(before), after: text(after) }]
    };
    assert_eq!(edit(json!("a"), json!("b")), piece(Some("a"), Some("b")));
    assert_eq!(edit(json!(null), json!("b")), piece(None, Some("b")));
    assert_eq!(edit(json!("a"), json!(null)), piece(Some("a"), None));
}

#[test]
fn pictures_of_a_call_are_pieces_and_broken_ones_are_kept() {
    let picture =
        |data: &str| json!({"type": "content", "content": {"type": "image", "mimeType": "x/y", "data": data}});
    let update = call(json!({"content": [picture("AQID"), picture("?")]}));
    let bytes = ToolOutputPart::Bytes { mime_type: "x/y".to_owned(), bytes: vec![1, 2, 3] };
    assert_eq!(update.output.as_ref().unwrap().pieces, [bytes]);
    assert_eq!(extra(&update), json!({"content": [picture("?")]}));
}

#[test]
fn a_terminal_is_named_by_its_id() {
    let update = call(json!({"content": [{"type": "terminal", "terminalId": "t1"}]}));
    assert_eq!((update.output.clone(), extra(&update)), (None, json!({"terminals": ["t1"]})));
}

#[test]
fn the_words_of_a_raw_result_stand_beside_what_is_shown() {
    let text = |text: &str| Some(text.to_owned());
    let output = |raw: Value| call(json!({"content": [], "rawOutput": raw})).result_text;
    assert_eq!(output(json!("x")), text("x"));
    for name in ["output", "formatted_output", "aggregated_output", "content", "text", "stdout", "stderr"] {
        assert_eq!(output(json!({"code": 0, name: "x"})), text("x"), "{name}");
    }
    assert_eq!(output(json!({"stdout": "x", "stderr": "y", "aggregated_output": "xy"})), text("xy"));
    assert_eq!(output(json!({"stdout": "x", "stderr": "y"})), text("x\ny"));
    assert_eq!(output(json!({"content": [{"type": "text", "text": "x"}, {"text": "y"}]})), text("x\ny"));
    for nothing in [json!({"code": 0}), json!(7), json!(null), json!({"output": ""})] {
        assert_eq!(output(nothing.clone()), None, "{nothing}");
    }
}

#[test]
fn what_is_not_modelled_is_kept_as_it_came() {
    let link = json!({"type": "content", "content": {"type": "resource_link", "name": "n", "uri": "u"}});
    let noted = json!({"type": "content", "content": {"type": "text", "text": "a", "_meta": {"x": 1}}});
    let update = call(json!({
        "locations": [{"path": "/a", "line": 3}], "_meta": {"tool": "Bash"}, "timestamp": 7, "title": 5,
        "content": [link, noted, "odd"], "empty": null, "none": [],
    }));
    assert_eq!(update.output, gave("a"));
    let noted = json!({"type": "content", "content": {"type": "text", "_meta": {"x": 1}}});
    let expected = json!({
        "locations": [{"path": "/a", "line": 3}], "_meta": {"tool": "Bash"}, "timestamp": 7, "title": 5,
        "content": [link, noted, "odd"],
    });
    assert_eq!(extra(&update), expected);
}

// Plans, commands and the rest.

#[test]
fn a_plan_is_told_whole() {
    let entries = json!([
        {"content": "a", "priority": "high", "status": "completed"},
        {"content": "b", "priority": "low", "status": "in_progress"},
        {"content": "c", "priority": "medium", "status": "pending"},
        {"content": "d", "priority": "urgent", "status": "cancelled"},
    ]);
    let wanted = [
        ("a", PlanPriority::High, PlanStatus::Completed),
        ("b", PlanPriority::Low, PlanStatus::InProgress),
        ("c", PlanPriority::Medium, PlanStatus::Pending),
        ("d", PlanPriority::Medium, PlanStatus::Pending),
    ];
    let wanted = wanted.map(|(content, priority, status)| PlanEntry { content: content.to_owned(), priority, status });
    for update in [
        json!({"sessionUpdate": "plan", "entries": entries}),
        json!({"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "p", "entries": entries}}),
    ] {
        let AgentEvent::Plan(plan) = event(update) else { panic!() };
        assert_eq!(plan, wanted);
    }
    let removed = event(json!({"sessionUpdate": "plan_removed", "planId": "p"}));
    assert!(matches!(removed, AgentEvent::Plan(plan) if plan.is_empty()));
}

#[test]
fn a_plan_that_is_no_list_is_shown_all_the_same() {
    let update = |plan: Value| json!({"sessionUpdate": "plan_update", "plan": plan});
    let event = event(update(json!({"type": "markdown", "planId": "p", "content": "# a"})));
    let AgentEvent::PartContent { mime_type, body: PartContent::Text(text) } = event else { panic!() };
    assert_eq!((mime_type.as_str(), text.as_str()), ("text/markdown", "# a"));
    assert!(notice(update(json!({"type": "file", "planId": "p", "uri": "file:///p.md"}))).contains("file:///p.md"));
    let unknown = content_of(update(json!({"type": "graph"}))).unwrap_err();
    assert_eq!(unknown, UpdateError::Unknown { kind: "plan_update/graph".to_owned() });
}

#[test]
fn commands_are_told_without_their_slash() {
    let event = event(json!({"sessionUpdate": "available_commands_update", "availableCommands": [
        {"name": "plan", "description": "d", "input": {"hint": "what"}},
        {"name": "/a b", "description": "d", "input": null},
        {"name": "c", "input": {"hint": ""}},
        {"name": "/", "description": "nothing to type"},
    ]}));
    let AgentEvent::Commands(commands) = event else { panic!() };
    let command = |name: &str, description: &str, hint: Option<&str>| AgentCommand {
        name: name.to_owned(),
        description: description.to_owned(),
        hint: hint.map(str::to_owned),
    };
    assert_eq!(commands, [command("plan", "d", Some("what")), command("a b", "d", None), command("c", "", None)]);
}

#[test]
fn modes_and_options_are_left_to_the_settings() {
    let mode = content_of(json!({"sessionUpdate": "current_mode_update", "currentModeId": "https://x/#plan"})).unwrap();
    assert!(matches!(mode, UpdateContent::Mode(mode) if *mode.0 == *"https://x/#plan"));
    let option = json!({"id": "o", "name": "O", "type": "boolean", "currentValue": true});
    let odd = json!({"id": "p", "name": "P", "type": "slider", "currentValue": 3});
    let options = content_of(json!({"sessionUpdate": "config_option_update", "configOptions": [option, odd]})).unwrap();
    assert!(matches!(options, UpdateContent::Options(options) if options.len() == 1));
    let params = r#"{"sessionId":"s","update":{"sessionUpdate":"current_mode_update","currentModeId":"m"}}"#;
    assert!(read_update(params).unwrap().is_empty());
}

#[test]
fn a_title_is_told_where_there_is_one() {
    let title = |members: Value| {
        let mut update = json!({"sessionUpdate": "session_info_update", "updatedAt": "now"});
        update.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        events(update)
    };
    assert!(matches!(&title(json!({"title": "T"}))[..], [AgentEvent::Title(title)] if title == "T"));
    for nothing in [json!({}), json!({"title": null}), json!({"title": ""})] {
        assert!(title(nothing).is_empty());
    }
}

#[test]
fn usage_is_window_and_cost_as_they_were_said() {
    let update =
        json!({"sessionUpdate": "usage_update", "used": 5, "size": 9, "cost": {"amount": 0.1, "currency": "EUR"}});
    let AgentEvent::Usage(usage) = event(update) else { panic!() };
    assert_eq!(usage.context, Some(ContextUsage { used: 5, size: 9 }));
    let cost = Cost { amount: Number::from_f64(0.1).unwrap(), currency: "EUR".to_owned() };
    assert_eq!((usage.cost, usage.input_tokens), (Some(cost), None));
    let AgentEvent::Usage(usage) = event(json!({"sessionUpdate": "usage_update", "used": 5, "size": 9})) else {
        panic!()
    };
    assert_eq!(usage.cost, None);
    assert!(content_of(json!({"sessionUpdate": "usage_update", "used": -1})).is_err());
}

#[test]
fn a_notice_says_how_grave_it_is() {
    let notice = |severity: &str, description: Value| {
        notice(json!({"sessionUpdate": "notice", "severity": severity, "title": "t", "description": description}))
    };
    assert_eq!(notice("info", json!(null)), "t");
    assert_eq!(notice("warning", json!("d")), "Warning: t\nd");
    assert_eq!(notice("error", json!("")), "Error: t");
    assert_eq!(notice("_mine", json!(null)), "t");
}

#[test]
fn a_compaction_is_noticed_where_a_person_has_something_of_it() {
    let update = |status: &str, more: Value| {
        let mut update = json!({"sessionUpdate": "compaction_update", "compactionId": "k", "status": status});
        update.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        update
    };
    assert!(notice(update("in_progress", json!({}))).contains("summarizing"));
    let summary = json!({"summary": [{"type": "text", "text": "we did x"}]});
    assert!(notice(update("completed", summary)).ends_with(":\nwe did x"));
    assert!(notice(update("completed", json!({}))).ends_with("to free context."));
    assert!(notice(update("failed", json!({"error": "no room"}))).ends_with("no room"));
    assert!(events(update("cancelled", json!({}))).is_empty());
    let chunk = json!({"sessionUpdate": "compaction_summary_chunk", "compactionId": "k",
        "content": {"type": "text", "text": "x"}});
    assert!(events(chunk).is_empty());
}

#[test]
fn an_unknown_kind_of_update_is_named() {
    let unknown = content_of(json!({"sessionUpdate": "_vendor/x", "a": 1})).unwrap_err();
    assert_eq!(unknown, UpdateError::Unknown { kind: "_vendor/x".to_owned() });
    assert!(unknown.to_string().contains("_vendor/x"));
}

#[test]
fn a_malformed_update_says_what_is_wrong() {
    for (update, why) in [
        (json!({"sessionUpdate": "agent_message_chunk"}), "content"),
        (json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "video"}}), "video"),
        (json!({"sessionUpdate": "plan", "entries": 1}), "entries"),
        (json!({"sessionUpdate": "plan_update", "plan": {"type": "markdown"}}), "content"),
        (json!({"sessionUpdate": "available_commands_update"}), "availableCommands"),
        (json!({"sessionUpdate": "current_mode_update"}), "currentModeId"),
        (json!({"sessionUpdate": "notice", "severity": "info"}), "title"),
        (json!({}), "sessionUpdate"),
        (json!([]), "update"),
    ] {
        let error = content_of(update.clone()).unwrap_err();
        assert!(matches!(error, UpdateError::Malformed { .. }), "{update}: {error:?}");
        assert!(error.to_string().contains(why), "{update}: {error}");
    }
    assert!(update(json!({"update": {"sessionUpdate": "plan_removed"}})).is_err(), "of which session?");
    assert!(matches!(read_update("{"), Err(UpdateError::NotJson(_))));
}

// Permission.
