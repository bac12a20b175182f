//! The normal form becomes core's turns, and those become entries of a log and turns again.

use std::path::PathBuf;
use std::sync::Arc;

use grove_core::*;
use grove_fixtures::outside;
use grove_history::{Bookmark, ReadOutcome, claude, codex, copilot_cli, gemini, opencode, pi, vscode};
use grove_transcript::{HISTORY, TranscriptSource, TranscriptTurn, core_turn};
use grove_tree::open;
use grove_tree::turns::{TurnAttribution, header_line, turn_lines, turns};
use serde_json::json;

use crate::support::{lines, read_file, request};

/// A function that reads a log in memory.
type ReadLog = fn(&[u8], &str, Option<&Bookmark>, &mut dyn FnMut(TranscriptTurn)) -> std::io::Result<ReadOutcome>;

/// Writes these turns to a log, and reads them again.
fn through_a_log(written: &[Turn]) -> Vec<Arc<Turn>> {
    let new = NewSession {
        uri: "history:/s1".into(),
        id: "s1".into(),
        agent: "vs-code".into(),
        model: None,
        working_directories: vec![],
        config: None,
        store: StoreName::default(),
    };
    let session = Session::new(&new, Timestamp(1));
    let mut bytes = header_line(&session);
    let mut leaf: Option<String> = None;
    for turn in written {
        let origin =
            TurnAttribution { session: &session.id, agent: &session.agent, model: None, spent: None, seen_end: None };
        let log = open(bytes.clone(), &mut || unreachable!()).unwrap();
        let lines = turn_lines(turn, origin, leaf.as_deref(), &|id| log.index().find(id).is_some());
        bytes.extend(lines.bytes);
        leaf = lines.leaf;
    }
    let log = open(bytes, &mut || unreachable!()).unwrap();
    assert!(log.index().damage().is_empty(), "{:?}", log.index().damage());
    turns(&log)
}

fn round_trip(foreign: &[TranscriptTurn]) {
    let converted: Vec<Turn> = foreign.iter().map(|turn| core_turn(turn, Timestamp(5)).turn).collect();
    let again = through_a_log(&converted);
    assert_eq!(again.len(), converted.len());
    for (again, converted) in again.iter().zip(&converted) {
        assert_eq!(**again, *converted);
    }
}

#[test]
fn a_turn_in_core_has_text_reasoning_calls_plan_edits_and_the_rest_as_an_extra() {
    let uri = json!({"$mid": 1, "scheme": "file", "path": "/a.rs"});
    let foreign = request(
        json!({"requestId": "r", "timestamp": 100, "message": {"text": "go"}, "modelId": "copilot/m",
        "variableData": {"variables": [{"kind": "file", "name": "a.rs", "value": uri}]}, "promptTokens": 3,
        "response": [
            {"kind": "thinking", "value": "hm"}, {"value": "So:"},
            {"kind": "toolInvocationSerialized", "toolId": "manage_todo_list", "toolCallId": "t", "isComplete": true, "isConfirmed": {"type": 4},
                "toolSpecificData": {"kind": "todoList", "todoList": [{"id": 1, "title": "one", "status": "in-progress"}]}},
            {"kind": "textEditGroup", "uri": uri, "edits": [[{"range": {"startLineNumber": 1}, "text": "x"}]]},
            {"kind": "neverSeen"}, {"kind": "undoStop", "id": "u"}, {"kind": "warning", "content": "careful"},
        ],
        "result": {"timings": {"firstProgress": 1, "totalElapsed": 50}, "details": "M • 1x"}}),
    );
    let turn = core_turn(&foreign, Timestamp(0)).turn;
    let told: Vec<&str> = turn
        .parts
        .iter()
        .map(|part| match part {
            Part::Text(_) => "text",
            Part::Reasoning { .. } => "reasoning",
            Part::ToolCall(call) => {
                if call.name == "edit" {
                    "edit"
                } else {
                    "call"
                }
            }
            Part::Plan(_) => "plan",
            Part::Notice(_) => "notice",
            Part::Content(_) | Part::Error(_) | Part::InputRequest(_) => "other",
        })
        .collect();
    assert_eq!(told, ["reasoning", "text", "call", "plan", "edit", "notice", "notice"]);
    assert_eq!((turn.started_at, turn.ended_at, turn.outcome), (Timestamp(100), Timestamp(150), Outcome::Complete));
    assert_eq!(turn.message.attachments[0].path, "/a.rs");
    assert_eq!(turn.usage.as_ref().unwrap().input_tokens, Some(3));
    let history = &turn.message.extra.as_ref().unwrap()[HISTORY];
    assert_eq!((&history["firstResponseMs"], &history["model"]["displayName"]), (&json!(1), &json!("M")));
    let Part::ToolCall(call) = &turn.parts[2] else { panic!() };
    assert_eq!(call.confirmed.as_ref().unwrap().by, ConfirmationReason::Person);
    round_trip(&[foreign]);
}

#[test]
fn a_model_has_one_name_in_the_sessions_of_every_tool() {
    const MODEL: &str = "claude-opus-4.5";
    let whole = |bytes: &[u8], read: ReadLog| read(bytes, "s", None, &mut |_| {}).unwrap().session.models;
    let with_vendor = format!("copilot/{MODEL}");
    let chat =
        json!({"requests": [{"requestId": "r", "message": {"text": "x"}, "response": [], "modelId": with_vendor}]});
    let asked = |text: &str| json!({"role": "user", "content": text});
    let cli = lines(&[
        json!({"type": "session.start", "data": {"sessionId": "s", "selectedModel": MODEL}}),
        json!({"type": "user.message", "data": {"content": "x"}}),
    ]);
    let claude = lines(&[
        json!({"type": "user", "uuid": "u", "sessionId": "s", "message": asked("x")}),
        json!({"type": "assistant", "uuid": "a", "parentUuid": "u", "sessionId": "s",
            "message": {"id": "m", "role": "assistant", "model": MODEL, "content": [{"type": "text", "text": "y"}]}}),
    ]);
    let codex = lines(&[
        json!({"type": "session_meta", "payload": {"id": "s"}}),
        json!({"type": "turn_context", "payload": {"model": MODEL}}),
        json!({"type": "event_msg", "payload": {"type": "user_message", "message": "x"}}),
    ]);
    let pi = lines(&[
        json!({"type": "session", "version": 3, "id": "s"}),
        json!({"type": "message", "id": "u", "parentId": null, "message": asked("x")}),
        json!({"type": "message", "id": "a", "parentId": "u", "message": {"role": "assistant", "provider": "anthropic",
            "model": MODEL, "content": [{"type": "text", "text": "y"}], "stopReason": "stop"}}),
    ]);
    let gemini = json!({"sessionId": "s", "messages": [{"id": "u", "type": "user", "content": "x"},
        {"id": "a", "type": "gemini", "content": "y", "model": MODEL}]});
    let opencode = json!({"info": {"id": "s"}, "messages": [{"info": {"id": "u", "role": "user"}, "parts": []},
        {"info": {"id": "a", "role": "assistant", "providerID": "anthropic", "modelID": MODEL}, "parts": []}]});
    let told = [
        vscode::read_flat(chat.to_string().as_bytes(), "s", &mut |_| {}).unwrap().models,
        whole(cli.as_bytes(), copilot_cli::read_log),
        whole(claude.as_bytes(), claude::read_log),
        whole(codex.as_bytes(), codex::read_log),
        whole(pi.as_bytes(), pi::read_log),
        gemini::read_log(gemini.to_string().as_bytes(), "s", &mut |_| {}).unwrap().models,
        opencode::read_exports(opencode.to_string().as_bytes(), "s", &mut |_| {}).unwrap().models,
    ];
    for (at, models) in told.iter().enumerate() {
        assert_eq!(models, &[MODEL], "{at}");
    }
}

#[test]
fn a_turn_that_was_interrupted_or_failed_ends_in_error_in_core() {
    for (more, kind) in
        [(json!({}), "interrupted"), (json!({"result": {"errorDetails": {"message": "m", "code": "c"}}}), "c")]
    {
        let mut fields = json!({"requestId": "r", "message": {"text": "x"}, "response": []});
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let turn = core_turn(&request(fields), Timestamp(7)).turn;
        assert_eq!((turn.outcome, turn.started_at), (Outcome::Error, Timestamp(7)));
        assert!(matches!(turn.parts.last(), Some(Part::Error(error)) if error.kind == kind));
    }
}

#[test]
fn calls_with_one_id_or_none_keep_their_own_results() {
    let shown = |id: &str, output: &str| {
        json!({"kind": "toolInvocationSerialized", "toolId": "x", "toolCallId": id, "isComplete": true,
            "toolSpecificData": {"kind": "simpleToolInvocation", "input": "i", "output": output}})
    };
    let foreign = request(json!({"requestId": "r", "message": {"text": "x"}, "result": {},
        "response": [shown("a", "one"), shown("a", "two"), shown("", "three"), shown("", "four")]}));
    round_trip(&[foreign]);
}

#[test]
fn subagents_are_child_chats_in_core() {
    let shown = |tool: &str, id: &str, owner: Option<&str>| json!({"kind": "toolInvocationSerialized", "toolId": tool, "toolCallId": id, "isComplete": true, "subAgentInvocationId": owner});
    let foreign = request(json!({"requestId": "r", "message": {"text": "x"}, "result": {}, "response": [
        shown("runSubagent", "a", None), shown("runSubagent", "b", Some("a")), shown("read_file", "c", Some("b"))]}));
    let core = core_turn(&foreign, Timestamp(0));
    let told: Vec<_> = core
        .chats
        .iter()
        .map(|chat| (chat.id.as_str(), chat.parent.as_ref().map(ChatId::as_str), chat.call.as_str(), chat.turns.len()))
        .collect();
    assert_eq!(told, [("a", None, "a", 1), ("b", Some("a"), "b", 1)]);
}

#[test]
#[cfg_attr(not(outside_fixtures), ignore = "needs the recordings outside the repository (GROVE_FIXTURES)")]
fn every_recorded_turn_becomes_entries_and_the_same_turn_again() {
    let fixtures = outside("vscode");
    let mut files: Vec<(TranscriptSource, PathBuf)> = Vec::new();
    for folder in ["copilot-chat-json", "copilot-chat-export"] {
        let entries = std::fs::read_dir(fixtures.join(folder)).unwrap();
        files.extend(entries.map(|entry| (TranscriptSource::VsCode, entry.unwrap().path())));
    }
    for name in ["agent-sessions/small.jsonl", "agent-sessions/large.jsonl", "vscode-agent-host/subagent-session.jsonl"]
    {
        files.push((TranscriptSource::CopilotCli, fixtures.join("copilot-cli").join(name)));
    }
    for (source, path) in files {
        round_trip(&read_file(source, &path).1);
    }
}
