//! The Gemini CLI: logs that change earlier messages, objects of older versions, subagents.

use grove_history::gemini::{self, Gemini};
use grove_history::{Hints, HistoryReader, StoreRoot, read_with_turns};
use grove_transcript::{
    CallState, DamageKind, TranscriptPart, TranscriptSession, TranscriptSource, TranscriptToolKind, TranscriptTurn,
    TurnOutcome, TurnParent, path,
};
use serde_json::{Value, json};

use crate::support::{TestStore, calls, everything, lines};

fn read(log: &str) -> (TranscriptSession, Vec<TranscriptTurn>) {
    let mut turns = Vec::new();
    let session = gemini::read_log(log.as_bytes(), "session-x", &mut |turn| turns.push(turn)).unwrap();
    (session, turns)
}

fn head() -> Value {
    json!({"sessionId": "s", "projectHash": "h", "startTime": "2026-01-02T03:04:05.000Z", "kind": "main"})
}

fn user(id: &str, text: &str) -> Value {
    json!({"id": id, "timestamp": "2026-01-02T03:04:06.000Z", "type": "user", "content": [{"text": text}]})
}

fn answer(id: &str, text: &str, calls: Value) -> Value {
    json!({"id": id, "timestamp": "2026-01-02T03:04:07.000Z", "type": "gemini", "content": text, "model": "g",
        "thoughts": [{"subject": "Plan", "description": "go"}], "toolCalls": calls,
        "tokens": {"input": 10, "output": 2, "cached": 4, "thoughts": 1, "tool": 0, "total": 13}})
}

fn call(agent: Option<&str>) -> Value {
    json!([{"id": "c1", "name": "run_shell_command", "args": {"command": "ls"}, "status": "success", "displayName": "Shell",
        "agentId": agent, "description": "list", "resultDisplay": "a",
        "result": [{"functionResponse": {"id": "c1", "name": "run_shell_command", "response": {"output": "a"}}}]}])
}

#[test]
fn a_message_that_is_written_anew_is_one_message() {
    let back = json!({"id": "r", "type": "user", "content": [{"functionResponse": {"id": "c1", "response": {"output": "a"}}}]});
    let (session, turns) = read(&lines(&[
        head(),
        json!({"$set": {"messages": [user("ctx", "<session_context>\nhere\n</session_context>")]}}),
        user("u1", "look"),
        answer("a1", "", json!([])),
        json!({"$set": {"lastUpdated": "2026-01-02T03:04:09.000Z", "summary": "Looks"}}),
        answer("a1", "", call(None)),
        back,
        answer("a2", "done", json!([])),
    ]));
    assert_eq!((session.source_id.as_str(), session.title.as_deref(), session.turns), ("s", Some("Looks"), 1));
    let turn = &turns[0];
    assert_eq!((turn.text().as_str(), turn.outcome.clone(), turn.context.len()), ("done", TurnOutcome::Complete, 1));
    let call = calls(&turn.parts)[0];
    assert_eq!(
        (call.kind, call.state, call.output.as_ref().unwrap().text.as_str()),
        (TranscriptToolKind::Shell, CallState::Complete, "a")
    );
    assert_eq!(turn.usage.as_ref().unwrap().input_tokens, Some(20));
    assert!(matches!(&turn.parts[0], TranscriptPart::Reasoning { title: Some(title), .. } if title == "Plan"));
    assert!(session.damage.marks.is_empty() && session.has_id("session-x"));
}

#[test]
fn what_was_taken_back_stays_and_the_path_leaves_it_out() {
    let (session, turns) = read(&lines(&[
        head(),
        user("u1", "one"),
        answer("a1", "1", json!([])),
        user("u2", "two"),
        json!({"id": "e", "type": "error", "content": "no"}),
        json!({"$rewindTo": "u2"}),
        user("u3", "three"),
        json!({"id": "i", "type": "info", "content": "Request cancelled."}),
        json!({"$rewindTo": "nobody"}),
        user("u4", "four"),
        json!({"id": "z", "type": "hologram", "beam": 1}),
    ]));
    let follows: Vec<TurnParent> = turns.iter().map(|turn| turn.follows).collect();
    assert_eq!(follows, [TurnParent::Previous, TurnParent::Previous, TurnParent::Turn(0), TurnParent::Nothing]);
    assert_eq!(path(&turns[..3]), [0, 2]);
    assert!(matches!(&turns[1].outcome, TurnOutcome::Failed(error) if error.message == "no"));
    assert_eq!(turns[2].outcome, TurnOutcome::Cancelled);
    assert!(matches!(turns[3].parts.last(), Some(TranscriptPart::Raw(raw)) if raw["type"] == "hologram"));
    assert!(session.damage.marks.is_empty());
}

#[test]
fn an_object_of_an_older_version_is_read_and_so_is_what_is_left_of_it() {
    let mut object = head();
    object["messages"] = json!([user("u1", "one"), answer("a1", "1", json!([])), user("u2", "two")]);
    let whole = serde_json::to_string_pretty(&object).unwrap();
    let (session, turns) = read(&whole);
    assert_eq!((session.source_id.as_str(), turns.len(), session.damage.marks.len()), ("s", 2, 0));
    let mut before = 0;
    for cut in 0..whole.len() {
        let (session, turns) = read(&whole[..cut]);
        assert!(turns.len() >= before && session.damage.is_recovered(), "cut at {cut}");
        before = turns.len();
    }
    let (one_line, turns) = read(&object.to_string());
    assert_eq!((one_line.source_id.as_str(), turns.len()), ("s", 2));
}

#[test]
fn subagents_are_chats_of_their_calls_and_nothing_is_written() {
    let log = lines(&[head(), user("u1", "one"), answer("a1", "", call(Some("sub"))), answer("a2", "done", json!([]))]);
    let sub = |id: &str| {
        lines(&[
            json!({"sessionId": id, "projectHash": "h", "kind": "subagent"}),
            user("x", "go"),
            answer("y", "went", json!([])),
        ])
    };
    let store = TestStore::new()
        .with("proj/.project_root", "/w/proj\n")
        .with("proj/chats/session-2026-01-02T03-04-x.jsonl", log)
        .with("proj/chats/s/sub.jsonl", sub("sub"))
        .with("proj/chats/s/lone.jsonl", sub("lone"))
        .with("proj/logs.json", "[]");
    let before = everything(store.path());
    let root =
        StoreRoot { source: TranscriptSource::Gemini, product: "Gemini CLI".into(), folder: store.path().into() };
    let listing = Gemini.find(&root, Hints::Read);
    assert_eq!((listing.sessions.len(), listing.problems.len()), (1, 0));
    let (session, turns) = read_with_turns(&Gemini, &listing.sessions[0]).unwrap();
    assert_eq!(session.workspace.folders[0].shown(), "/w/proj");
    let calls = calls(&turns[0].parts);
    assert_eq!(calls[0].subagent.as_ref().unwrap().turns[0].text(), "went");
    assert_eq!((calls.len(), calls[1].subagent.as_ref().unwrap().id.as_str()), (2, "lone"));
    assert_eq!(everything(store.path()), before);
}

#[test]
fn torn_and_broken_logs_give_what_they_hold() {
    let log = lines(&[head(), user("u1", "one"), answer("a1", "1", json!([]))]);
    let (session, turns) = read(&format!("{log}{{\"id\":\"u2\",\"ty"));
    assert_eq!((turns.len(), session.damage.marks), (1, vec![DamageKind::TornTail]));
    let (session, turns) = read(&format!("garbage\n{log}"));
    assert_eq!((turns.len(), session.damage.marks), (1, vec![DamageKind::Damaged]));
    let (session, _) = read(&lines(&[user("u1", "one")]));
    assert_eq!(session.damage.marks, [DamageKind::MissingStart]);
}
