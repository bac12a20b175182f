//! Codex: rollouts of each age, repeated records, rolled back turns.

use grove_history::codex::{self, Codex};
use grove_history::{Hints, HistoryReader, StoreRoot, read_with_turns};
use grove_transcript::{
    CallState, DamageKind, ToolInput, TranscriptPart, TranscriptSession, TranscriptSource, TranscriptToolKind,
    TranscriptTurn, TurnOutcome, TurnParent, path,
};
use serde_json::{Value, json};

use crate::support::{TestStore, calls, everything, lines};

fn read(log: &str) -> (TranscriptSession, Vec<TranscriptTurn>) {
    let mut turns = Vec::new();
    let reading = codex::read_log(log.as_bytes(), "s", None, &mut |turn| turns.push(turn)).unwrap();
    (reading.session, turns)
}

fn item(kind: &str, payload: Value) -> Value {
    json!({"timestamp": "2026-01-02T03:04:05.000Z", "type": kind, "payload": payload})
}

fn event(kind: &str, rest: Value) -> Value {
    let mut payload = json!({"type": kind});
    payload.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    item("event_msg", payload)
}

fn said(role: &str, text: &str) -> Value {
    item("response_item", json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}))
}

fn start() -> Value {
    item(
        "session_meta",
        json!({"id": "s", "timestamp": "2026-01-02T03:04:00.000Z", "cwd": "/w", "cli_version": "0.9",
        "source": "cli", "git": {"branch": "main", "commit_hash": "abc", "repository_url": "https://example.test/o/r"}}),
    )
}

fn count(total: u64) -> Value {
    let usage = |count: u64| json!({"input_tokens": count, "cached_input_tokens": 4, "output_tokens": 2, "reasoning_output_tokens": 1});
    event("token_count", json!({"info": {"total_token_usage": usage(total), "last_token_usage": usage(10)}}))
}

#[test]
fn what_is_told_twice_counts_once() {
    let (session, turns) = read(&lines(&[
        start(),
        event("task_started", json!({"turn_id": "t1"})),
        said("developer", "be kind"),
        said("user", "<environment_context>\n  <shell>bash</shell>\n</environment_context>"),
        item("turn_context", json!({"model": "gpt-x", "cwd": "/w", "approval_policy": "never"})),
        said("user", "look"),
        event("user_message", json!({"message": "look", "images": []})),
        event("agent_reasoning", json!({"text": "hm"})),
        item(
            "response_item",
            json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"}),
        ),
        item(
            "response_item",
            json!({"type": "function_call", "name": "exec_command", "call_id": "c1",
            "arguments": "{\"cmd\":\"ls\",\"workdir\":\"/w\"}"}),
        ),
        count(10),
        count(10),
        event(
            "item_completed",
            json!({"item": {"type": "CommandExecution", "id": "c1", "exit_code": 3, "status": "completed"}}),
        ),
        item("response_item", json!({"type": "function_call_output", "call_id": "c1", "output": "a\nb"})),
        item(
            "response_item",
            json!({"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}),
        ),
        event("agent_message", json!({"message": "Done."})),
        count(20),
        event("task_complete", json!({"turn_id": "t1", "time_to_first_token_ms": 7})),
    ]));
    assert_eq!(
        (session.turns, session.title.as_deref(), session.models.as_slice()),
        (1, Some("look"), &["gpt-x".to_owned()][..])
    );
    assert_eq!(session.workspace.repository.as_deref(), Some("https://example.test/o/r"));
    assert_eq!((session.workspace.branch.as_deref(), session.workspace.shell.as_deref()), (Some("main"), Some("bash")));
    let turn = &turns[0];
    assert_eq!((turn.id.as_str(), turn.text().as_str(), turn.first_response_ms), ("t1", "Done.", Some(7)));
    assert_eq!(turn.parts.len(), 3, "{:?}", turn.parts);
    let call = calls(&turn.parts)[0];
    assert_eq!((call.kind, call.exit_code, call.state), (TranscriptToolKind::Shell, Some(3), CallState::Complete));
    assert!(
        matches!(&call.input, ToolInput::Command { command, folder, .. } if command == "ls" && folder.as_deref() == Some("/w"))
    );
    assert_eq!(call.output.as_ref().unwrap().text, "a\nb");
    assert_eq!(turn.usage.as_ref().unwrap().input_tokens, Some(20));
    assert_eq!((turn.outcome.clone(), turn.context.len()), (TurnOutcome::Complete, 2));
    assert!(session.damage.marks.is_empty());
}

#[test]
fn rollouts_without_events_and_those_without_envelopes_are_read() {
    let bare = |value: Value| value["payload"].clone();
    let call = json!({"type": "function_call", "name": "shell", "call_id": "c1", "arguments": "{\"command\":[\"bash\",\"-lc\",\"ls\"]}"});
    let output = json!({"type": "function_call_output", "call_id": "c1",
        "output": "{\"output\":\"x\\n\",\"metadata\":{\"exit_code\":1,\"duration_seconds\":0.1}}"});
    let (session, turns) = read(&lines(&[
        json!({"id": "s", "timestamp": "2025-05-02T03:04:05.000Z", "instructions": "be kind", "git": {"branch": "b"}}),
        json!({"record_type": "state"}),
        bare(said("user", "one")),
        call,
        output,
        bare(said("assistant", "two")),
        bare(said("user", "three")),
    ]));
    assert_eq!((session.turns, session.workspace.branch.as_deref()), (2, Some("b")));
    let first = calls(&turns[0].parts)[0];
    assert_eq!((first.exit_code, first.output.as_ref().unwrap().text.as_str()), (Some(1), "x\n"));
    assert!(matches!(&first.input, ToolInput::Command { command, .. } if command == "ls"));
    assert_eq!((turns[0].outcome.clone(), turns[1].outcome.clone()), (TurnOutcome::Complete, TurnOutcome::Interrupted));
}

#[test]
fn turns_that_were_rolled_back_stay_and_the_path_leaves_them_out() {
    let turn = |id: &str| {
        [
            event("task_started", json!({"turn_id": id})),
            event("user_message", json!({"message": id})),
            event("agent_message", json!({"message": "ok"})),
            event("task_complete", json!({})),
        ]
    };
    let mut log = vec![start()];
    log.extend(turn("one").into_iter().chain(turn("two")).chain(turn("three")));
    log.push(event("thread_rolled_back", json!({"num_turns": 2})));
    log.extend(turn("four"));
    log.push(event("thread_name_updated", json!({"thread_name": "Named"})));
    let (session, turns) = read(&lines(&log));
    assert_eq!((turns[3].follows, path(&turns)), (TurnParent::Turn(0), vec![0, 3]));
    assert_eq!(session.title.as_deref(), Some("Named"));
}

#[test]
fn what_was_stopped_or_failed_says_so_and_unknown_items_are_kept() {
    let (session, turns) = read(&lines(&[
        start(),
        event("user_message", json!({"message": "one"})),
        item(
            "response_item",
            json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": "c1",
            "input": "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"}),
        ),
        event("turn_aborted", json!({"reason": "interrupted"})),
        event("user_message", json!({"message": "two"})),
        event("error", json!({"message": "no model"})),
        event("user_message", json!({"message": "three"})),
        item("hologram", json!({"beam": 1})),
        item("response_item", json!({"type": "dance"})),
        item(
            "response_item",
            json!({"type": "web_search_call", "id": "w1", "status": "completed", "action": {"query": "q"}}),
        ),
    ]));
    assert_eq!(turns[0].outcome, TurnOutcome::Cancelled);
    assert!(matches!(&calls(&turns[0].parts)[0].input, ToolInput::Edits(edits) if edits[0].path == "a"));
    assert!(matches!(&turns[1].outcome, TurnOutcome::Failed(error) if error.message == "no model"));
    let raw = turns[2].parts.iter().filter(|part| matches!(part, TranscriptPart::Raw(_))).count();
    assert_eq!((raw, calls(&turns[2].parts)[0].name.as_str()), (2, "web_search"));
    assert_eq!((session.turns, session.turns_completed), (3, 2));
}

#[test]
fn forks_and_subagents_name_the_session_that_they_come_from() {
    let with = |rest: Value| {
        let mut meta = start();
        meta["payload"].as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        let other = item("session_meta", json!({"id": "other", "cwd": "/elsewhere"}));
        read(&lines(&[meta, other, event("user_message", json!({"message": "x"}))])).0
    };
    let fork = with(json!({"forked_from_id": "p"}));
    assert_eq!((fork.parent.as_deref(), fork.source_id.as_str()), (Some("p"), "s"));
    let spawned = with(json!({"source": {"subagent": {"thread_spawn": {"parent_thread_id": "q", "depth": 1}}}}));
    assert_eq!(spawned.parent.as_deref(), Some("q"));
}

/// Compresses bytes as a raw block, since nothing here writes the format.
fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packed = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
    let header = u32::try_from(bytes.len()).unwrap() << 3 | 1;
    packed.extend(&header.to_le_bytes()[..3]);
    packed.extend(bytes);
    packed
}

#[test]
fn rollouts_are_found_by_day_packed_or_put_aside_and_nothing_is_written() {
    let id = |last: char| format!("01a1e039-1686-7a20-b7e3-98dd8870ad1{last}");
    let log = lines(&[start(), event("user_message", json!({"message": "hi"}))]);
    let store = TestStore::new()
        .with(&format!("sessions/2026/01/02/rollout-2026-01-02T03-04-05-{}.jsonl", id('a')), &log)
        .with(&format!("sessions/2026/01/01/rollout-2026-01-01T03-04-05-{}.jsonl.zst", id('b')), packed(log.as_bytes()))
        .with(
            &format!("sessions/2026/01/01/rollout-2026-01-01T03-04-05-{}.jsonl.zst", id('d')),
            &packed(log.as_bytes())[..40],
        )
        .with(&format!("archived_sessions/rollout-2025-01-01T03-04-05-{}.jsonl", id('c')), &log)
        .with("sessions/2026/01/02/notes.txt", "x")
        .with(
            "session_index.jsonl",
            format!("{}\n{{torn", json!({"id": id('a'), "thread_name": "Named", "updated_at": "x"})),
        );
    let before = everything(store.path());
    let root = StoreRoot { source: TranscriptSource::Codex, product: "Codex".into(), folder: store.path().into() };
    let listing = Codex.find(&root, Hints::Read);
    assert!(listing.problems.is_empty(), "{:?}", listing.problems);
    let ids: Vec<&str> = listing.sessions.iter().map(|found| found.id.as_str()).collect();
    assert_eq!(ids, [id('c'), id('b'), id('d'), id('a')]);
    for location in &listing.sessions {
        let (session, turns) = read_with_turns(&Codex, location).unwrap();
        if location.id == id('d') {
            assert!(session.damage.marks.contains(&DamageKind::TornTail), "what is torn in its packing");
        } else {
            assert_eq!((turns[0].message.text.as_str(), session.damage.marks.len()), ("hi", 0), "{}", location.id);
        }
        let title = if location.id == id('a') { Some("Named") } else { Some("hi").filter(|_| !turns.is_empty()) };
        assert_eq!(session.title.as_deref(), title);
    }
    assert_eq!(everything(store.path()), before);
}
