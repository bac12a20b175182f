//! Claude Code: chains, messages in pieces, results, subagents, files beside a log.

use grove_core::{MessageOrigin, Timestamp};
use grove_fixtures::outside;
use grove_history::claude::{self, Claude};
use grove_history::{Hints, HistoryReader, SessionLocation, StoreRoot, read_with_turns};
use grove_transcript::{
    Approval, CallState, DamageKind, EditKind, ToolInput, TranscriptPart, TranscriptSession, TranscriptSource,
    TranscriptToolKind, TranscriptTurn, TurnOutcome, TurnParent, path,
};
use serde_json::{Value, json};

use crate::support::{TestStore, calls, everything, lines, read_file};

fn read(log: &str) -> (TranscriptSession, Vec<TranscriptTurn>) {
    let mut turns = Vec::new();
    let reading = claude::read_log(log.as_bytes(), "s", None, &mut |turn| turns.push(turn)).unwrap();
    (reading.session, turns)
}

/// A line with the common members.
fn line(kind: &str, id: &str, parent: Option<&str>, rest: Value) -> Value {
    let mut line = json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s", "cwd": "/w",
        "gitBranch": "main", "version": "2.1.0", "isSidechain": false, "timestamp": "2026-01-02T03:04:05.000Z"});
    line.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    line
}

fn user(id: &str, parent: Option<&str>, text: &str) -> Value {
    line("user", id, parent, json!({"message": {"role": "user", "content": text}}))
}

fn says(id: &str, parent: Option<&str>, message: &str, blocks: Value) -> Value {
    let usage =
        json!({"input_tokens": 2, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 3, "output_tokens": 7});
    line(
        "assistant",
        id,
        parent,
        json!({"message": {"id": message, "model": "claude-x", "content": blocks, "usage": usage}}),
    )
}

fn result(id: &str, parent: Option<&str>, call: &str, content: Value) -> Value {
    let blocks = json!([{"type": "tool_result", "tool_use_id": call, "content": content}]);
    line("user", id, parent, json!({"message": {"role": "user", "content": blocks}}))
}

fn call(id: &str, name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

fn texts(turns: &[TranscriptTurn]) -> Vec<&str> {
    turns.iter().map(|turn| turn.message.text.as_str()).collect()
}

#[test]
fn the_lines_of_one_message_are_one_message_and_its_usage_counts_once() {
    let (session, turns) = read(&lines(&[
        user("u1", None, "look"),
        says("a1", Some("u1"), "m1", json!([{"type": "thinking", "thinking": "hm", "signature": "x"}])),
        says("a2", Some("a1"), "m1", json!([{"type": "text", "text": "Look"}])),
        says("a3", Some("a2"), "m1", json!([{"type": "text", "text": "Looking."}])),
        says("a4", Some("a3"), "m1", json!([call("c1", "Read", json!({"file_path": "/w/a.rs"}))])),
        says("a5", Some("a4"), "m1", json!([call("c2", "Bash", json!({"command": "ls"}))])),
        // The results' parents are the lines of their calls, so the chain forks.
        result("r1", Some("a4"), "c1", json!([{"type": "text", "text": "fn main() {}"}])),
        result("r2", Some("a5"), "c2", json!("Exit code 2\nno")),
        says("a6", Some("r2"), "m2", json!([{"type": "text", "text": "Done."}])),
    ]));
    assert_eq!((session.turns, session.title.as_deref(), session.tools.len()), (1, Some("look"), 2));
    let turn = &turns[0];
    assert_eq!(turn.text(), "Looking.\n\nDone.");
    assert!(matches!(&turn.parts[0], TranscriptPart::Reasoning { text, .. } if text == "hm"));
    let calls = calls(&turn.parts);
    assert_eq!(
        (calls[0].kind, calls[0].output.as_ref().unwrap().text.as_str()),
        (TranscriptToolKind::Read, "fn main() {}")
    );
    assert_eq!(
        (calls[1].kind, calls[1].exit_code, calls[1].state),
        (TranscriptToolKind::Shell, Some(2), CallState::Complete)
    );
    assert_eq!(turn.outcome, TurnOutcome::Complete);
    let usage = turn.usage.as_ref().unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cache_read_tokens), (Some(30), Some(14), Some(20)));
    assert_eq!(session.models, ["claude-x"]);
    assert_eq!(session.workspace.branch.as_deref(), Some("main"));
    assert_eq!(session.created_at, Some(Timestamp(1_767_323_045_000)));
}

#[test]
fn a_turn_that_was_taken_back_stays_and_the_path_leaves_it_out() {
    let (session, turns) = read(&lines(&[
        user("u1", None, "one"),
        says("a1", Some("u1"), "m1", json!("1")),
        user("u2", Some("a1"), "two"),
        says("a2", Some("u2"), "m2", json!("2")),
        user("u3", Some("a1"), "two again"),
        says("a3", Some("u3"), "m3", json!("3")),
        user("u4", None, "one again"),
        user("u5", Some("gone"), "its parent was on a line that is lost"),
    ]));
    let follows: Vec<TurnParent> = turns.iter().map(|turn| turn.follows).collect();
    assert_eq!(
        follows,
        [TurnParent::Previous, TurnParent::Previous, TurnParent::Turn(0), TurnParent::Nothing, TurnParent::Previous]
    );
    assert_eq!(path(&turns[..3]), [0, 2]);
    assert_eq!((session.turns, turns[3].outcome.clone()), (5, TurnOutcome::Interrupted));
}

#[test]
fn a_compaction_is_told_and_breaks_no_chain() {
    let boundary = json!({"subtype": "compact_boundary", "content": "Conversation compacted", "logicalParentUuid": "a1",
        "compactMetadata": {"trigger": "auto", "preTokens": 9}});
    let recap =
        json!({"isCompactSummary": true, "message": {"role": "user", "content": "This session is being continued…"}});
    let (session, turns) = read(&lines(&[
        user("u1", None, "one"),
        says("a1", Some("u1"), "m1", json!("1")),
        line("system", "b1", None, boundary),
        line("user", "s1", Some("b1"), recap),
        user("u2", Some("s1"), "two"),
        says("a2", Some("u2"), "m2", json!("2")),
    ]));
    assert_eq!((texts(&turns), turns[1].follows), (vec!["one", "two"], TurnParent::Previous));
    let notices = turns[0].parts.iter().filter_map(|part| match part {
        TranscriptPart::Notice(notice) => Some((notice.kind.as_str(), notice.text.as_str())),
        _ => None,
    });
    let notices: Vec<_> = notices.collect();
    assert_eq!(
        notices,
        [("compact_boundary", "Conversation compacted"), ("compact-summary", "This session is being continued…")]
    );
    assert_eq!(session.first_message, "one");
}

#[test]
fn what_was_stopped_refused_or_failed_says_so() {
    let denied = json!({"message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "is_error": true,
        "content": "The user doesn't want to proceed with this tool use."}]}, "toolUseResult": "User rejected tool use"});
    let error = json!({"isApiErrorMessage": true, "message": {"id": "m9", "model": "<synthetic>",
        "content": [{"type": "text", "text": "API Error: 500"}]}});
    let (session, turns) = read(&lines(&[
        user("u1", None, "one"),
        says("a1", Some("u1"), "m1", json!([call("c1", "Bash", json!({"command": "rm x"}))])),
        line("user", "r1", Some("a1"), denied),
        user("i1", Some("r1"), "[Request interrupted by user for tool use]"),
        user("u2", Some("i1"), "two"),
        line("assistant", "a2", Some("u2"), error),
        user("u3", Some("a2"), "three"),
        says("a3", Some("u3"), "m3", json!([call("c3", "Bash", json!({"command": "sleep 9"}))])),
    ]));
    let refused = calls(&turns[0].parts)[0];
    assert_eq!((refused.state, &refused.approval), (CallState::Refused, &Approval::Denied));
    assert_eq!(turns[0].outcome, TurnOutcome::Cancelled);
    assert!(matches!(&turns[1].outcome, TurnOutcome::Failed(error) if error.message == "API Error: 500"));
    assert_eq!(
        (turns[2].outcome.clone(), calls(&turns[2].parts)[0].state),
        (TurnOutcome::Interrupted, CallState::Interrupted)
    );
    assert_eq!((session.turns, session.turns_completed), (3, 2));
    assert_eq!(session.models, ["claude-x"], "the program's own words come from no model");
}

#[test]
fn the_title_is_what_the_person_gave_then_what_was_made_then_what_was_said_first() {
    let said = user("u1", None, "first words\nand more");
    let title = |more: &[Value]| {
        let log: Vec<Value> = [said.clone()].into_iter().chain(more.iter().cloned()).collect();
        read(&lines(&log)).0.title.unwrap()
    };
    let made = json!({"type": "ai-title", "aiTitle": "Made", "sessionId": "s"});
    let given = json!({"type": "custom-title", "customTitle": "Given", "sessionId": "s"});
    let summary = |leaf: &str| json!({"type": "summary", "summary": "Summed up", "leafUuid": leaf});
    assert_eq!(title(&[]), "first words");
    assert_eq!(title(&[summary("u1")]), "Summed up");
    assert_eq!(title(&[summary("elsewhere")]), "first words", "a summary of another session");
    assert_eq!(title(&[given.clone(), made.clone()]), "Given");
    let renamed = "<command-name>/rename</command-name><command-args>Again</command-args>";
    assert_eq!(title(&[given, made, user("u2", Some("u1"), renamed)]), "Again");
}

#[test]
fn a_message_that_waited_begins_a_turn_and_notifications_are_not_the_persons() {
    let queued = json!({"attachment": {"type": "queued_command", "commandMode": "prompt", "prompt": "and this"}});
    let note = "<task-notification><task-id>t</task-id></task-notification>";
    let (session, turns) = read(&lines(&[
        user("u1", None, note),
        says("a1", Some("u1"), "m1", json!([call("c1", "Bash", json!({"command": "ls"}))])),
        result("r1", Some("a1"), "c1", json!("x")),
        line("attachment", "q1", Some("r1"), queued),
        says("a2", Some("q1"), "m2", json!("both done")),
    ]));
    assert_eq!(texts(&turns), [note, "and this"]);
    assert_eq!(
        (turns[0].message.origin, turns[1].message.origin),
        (MessageOrigin::SystemNotification, MessageOrigin::User)
    );
    assert!(turns.iter().all(|turn| turn.outcome == TurnOutcome::Complete));
    assert_eq!(session.first_message, "and this");
}

#[test]
fn kinds_that_are_not_known_are_kept_as_they_came() {
    let (session, turns) = read(&lines(&[
        user("u1", None, "x"),
        json!({"type": "hologram", "beam": 7}),
        says("a1", Some("u1"), "m1", json!([{"type": "dance", "step": 1}, {"type": "text", "text": "ok"}])),
        line("progress", "p1", Some("a1"), json!({"data": {"type": "warp", "at": 9}})),
    ]));
    let raw: Vec<&Value> = turns[0]
        .parts
        .iter()
        .filter_map(|part| match part {
            TranscriptPart::Raw(value) => Some(value),
            _ => None,
        })
        .collect();
    assert_eq!(
        raw,
        [
            &json!({"beam": 7, "type": "hologram"}),
            &json!({"type": "dance", "step": 1}),
            &json!({"type": "warp", "at": 9})
        ]
    );
    assert!(!session.damage.is_recovered());
}

#[test]
fn a_subagent_in_the_same_file_is_a_chat_of_the_call_that_was_given_its_words() {
    let side = |line: Value| {
        let mut line = line;
        line["isSidechain"] = json!(true);
        line
    };
    let (_, turns) = read(&lines(&[
        user("u1", None, "delegate"),
        says(
            "a1",
            Some("u1"),
            "m1",
            json!([call("c1", "Task", json!({"prompt": "count", "subagent_type": "counter"}))]),
        ),
        side(user("x1", None, "count")),
        side(says("x2", Some("x1"), "m2", json!([call("c2", "Bash", json!({"command": "wc"}))]))),
        side(result("x3", Some("x2"), "c2", json!("3"))),
        side(says("x4", Some("x3"), "m3", json!("three"))),
        result("r1", Some("a1"), "c1", json!("three")),
        says("a2", Some("r1"), "m4", json!("It is three.")),
    ]));
    assert_eq!(turns.len(), 1);
    let call = calls(&turns[0].parts)[0];
    let chat = call.subagent.as_ref().unwrap();
    assert_eq!((chat.agent.as_deref(), chat.turns[0].message.text.as_str()), (Some("counter"), "count"));
    assert_eq!((chat.turns[0].text().as_str(), calls(&chat.turns[0].parts).len()), ("three", 1));
    assert_eq!(turns[0].text(), "It is three.");
}

fn store() -> TestStore {
    let agent = |text: &str| lines(&[user("x1", None, "go"), says("x2", Some("x1"), "mx", json!(text))]);
    let nested = lines(&[
        user("x1", None, "go"),
        says("x2", Some("x1"), "my", json!([call("n1", "Task", json!({"prompt": "deeper"}))])),
        line(
            "user",
            "x3",
            Some("x2"),
            json!({"message": {"content": [{"type": "tool_result", "tool_use_id": "n1", "content": "k"}]},
            "toolUseResult": {"agentId": "b"}}),
        ),
        says("x4", Some("x3"), "mz", json!("outer")),
    ]);
    let spilled = "<persisted-output>\nFull output saved to: /home/me/.claude/x/s/tool-results/c2.txt\n\nPreview:\nab";
    let log = lines(&[
        user("u1", None, "go"),
        says(
            "a1",
            Some("u1"),
            "m1",
            json!([
                call("c1", "Task", json!({"prompt": "go"})),
                call("c2", "Bash", json!({"command": "yes"})),
                call("c3", "Bash", json!({"command": "no"}))
            ]),
        ),
        line(
            "user",
            "r1",
            Some("a1"),
            json!({"message": {"content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]},
            "toolUseResult": {"agentId": "a", "status": "completed"}}),
        ),
        result("r2", Some("a1"), "c2", json!(spilled)),
        result("r3", Some("a1"), "c3", json!("Full output saved to: ../../../../secret.txt")),
        says("a2", Some("r1"), "m2", json!("done")),
    ]);
    TestStore::new()
        .with("projects/-w/s.jsonl", log)
        .with("projects/-w/s/subagents/agent-a.jsonl", nested)
        .with("projects/-w/s/subagents/agent-a.meta.json", r#"{"agentType":"walker","spawnDepth":1}"#)
        .with("projects/-w/s/subagents/agent-b.jsonl", agent("inner"))
        .with("projects/-w/s/subagents/agent-lone.jsonl", agent("alone"))
        .with("projects/-w/s/tool-results/c2.txt", "all of it")
        .with("projects/-w/agent-old.jsonl", agent("old"))
        .with("secret.txt", "secret")
        .with("todos/s-agent-s.json", r#"[{"content":"write","status":"completed","id":"1"}]"#)
        .with("todos/s-agent-a.json", r#"[{"content":"look","status":"pending","id":"1"}]"#)
        .with("file-history/s/abc@v1", "before")
        .with("debug/s.jsonl", "what the program says of itself")
}

fn root(store: &TestStore) -> StoreRoot {
    StoreRoot { source: TranscriptSource::Claude, product: "Claude Code".into(), folder: store.path().join("projects") }
}

#[test]
fn what_lies_beside_a_log_is_read_with_it_and_nothing_is_written() {
    let store = store();
    let before = everything(store.path());
    let listing = Claude.find(&root(&store), Hints::Read);
    assert!(listing.problems.is_empty(), "{:?}", listing.problems);
    assert_eq!(listing.sessions.len(), 1, "a subagent's log is no session");
    let location = &listing.sessions[0];
    let (session, turns) = read_with_turns(&Claude, location).unwrap();
    let calls = calls(&turns[0].parts);
    let chat = calls[0].subagent.as_ref().unwrap();
    assert_eq!(
        (chat.id.as_str(), chat.agent.as_deref(), chat.turns[0].text().as_str()),
        ("a", Some("walker"), "outer")
    );
    let inner = chat.turns[0].tool_calls().next().unwrap().subagent.as_ref().unwrap();
    assert_eq!(inner.turns[0].text(), "inner", "subagents of subagents");
    let output = calls[1].output.as_ref().unwrap();
    assert_eq!(output.text, "all of it");
    assert!(output.raw.as_ref().unwrap().as_str().unwrap().contains("Preview"));
    assert!(!calls[2].output.as_ref().unwrap().text.contains("secret\n"), "no name leads out of the session's folder");
    assert_eq!(calls[3].subagent.as_ref().unwrap().turns[0].text(), "alone", "one that nobody started");
    assert!(session.damage.marks.is_empty(), "{:?}", session.damage);

    assert_eq!(session.todos[0].title, "write");
    assert_eq!(claude::todos(&location.path, "a").unwrap().len(), 1, "a subagent's own");
    assert!(claude::todos(&location.path, "../../secret").unwrap().is_empty());
    assert_eq!(claude::backup(&location.path, "abc@v1").unwrap().as_deref(), Some(&b"before"[..]));
    assert_eq!(claude::backup(&location.path, "../../secret.txt").unwrap(), None);
    assert_eq!(everything(store.path()), before);
}

#[test]
fn the_programs_own_list_is_a_hint_and_hides_no_session() {
    let store = store();
    store.put(
        "projects/-w/sessions-index.json",
        r#"{"version":1,"entries":[{"sessionId":"gone","summary":"Gone"},{"sessionId":"t","summary":"Listed",
           "projectPath":"/w/t","created":"2026-01-02T03:04:05.000Z"}]}"#,
    );
    store.put("projects/-w/t.jsonl", lines(&[user("u1", None, "hi")]));
    let listing = Claude.find(&root(&store), Hints::Read);
    let told: Vec<_> = listing
        .sessions
        .iter()
        .map(|found| (found.id.as_str(), found.preview.listed, found.preview.title.as_deref()))
        .collect();
    assert_eq!(told, [("s", Some(false), None), ("t", Some(true), Some("Listed"))]);
    store.put("projects/-w/sessions-index.json", "{");
    let listing = Claude.find(&root(&store), Hints::Read);
    assert_eq!((listing.sessions.len(), listing.problems.len()), (2, 1));
    assert_eq!(Claude.find(&root(&store), Hints::Skip).problems.len(), 0);
}

#[test]
fn a_fork_names_its_parent_and_a_file_that_was_renamed_its_old_name() {
    let other = |mut line: Value| {
        line["sessionId"] = json!("old");
        line
    };
    let (fork, _) = read(&lines(&[other(user("u1", None, "a")), user("u2", Some("u1"), "b")]));
    assert_eq!((fork.parent.as_deref(), fork.aliases.len()), (Some("old"), 0));
    let (moved, _) = read(&lines(&[other(user("u1", None, "a"))]));
    assert_eq!((moved.parent.as_deref(), moved.has_id("old")), (None, true));
}

#[test]
fn reading_on_gives_what_reading_anew_gives_wherever_new_lines_hang() {
    let log = lines(&[
        user("u1", None, "one"),
        says("a1", Some("u1"), "m1", json!("1")),
        user("u2", Some("a1"), "two"),
        says("a2", Some("u2"), "m2", json!([call("c2", "Bash", json!({"command": "ls"}))])),
        // One line ends a call and begins a turn.
        line(
            "user",
            "u3",
            Some("a2"),
            json!({"toolUseResult": {"stdout": "x"}, "message": {"content": [
            {"type": "tool_result", "tool_use_id": "c2", "content": "x"}, {"type": "text", "text": "three"}]}}),
        ),
        says("a3", Some("u3"), "m3", json!("3")),
        user("u4", Some("a1"), "two again"),
        says("a4", Some("u4"), "m4", json!("4")),
        json!({"type": "summary", "summary": "Sum", "leafUuid": "u1"}),
        user("u5", Some("a2"), "three again"),
    ]);
    let whole = read(&log);
    for cut in (0..=log.len()).filter(|cut| log.is_char_boundary(*cut)) {
        let mut turns = Vec::new();
        let begun = claude::read_log(&log.as_bytes()[..cut], "s", None, &mut |turn| turns.push(turn)).unwrap();
        let Some(bookmark) = begun.bookmark else { continue };
        turns.truncate(bookmark.turns as usize);
        let more = claude::read_log(log.as_bytes(), "s", Some(&bookmark), &mut |turn| turns.push(turn)).unwrap();
        assert_eq!(turns, whole.1, "cut at {cut}");
        assert_eq!(more.session, whole.0, "cut at {cut}");
    }
}

#[test]
#[cfg_attr(not(outside_fixtures), ignore = "needs the recordings outside the repository (GROVE_FIXTURES)")]
fn recorded_sessions_of_claude_code_are_read() {
    let fixtures = outside("vscode/claude-code");
    let read = |name: &str| read_file(TranscriptSource::Claude, &fixtures.join(name));
    let (session, turns) = read("vscode-copilot-chat/b3a7bd3c-5a10-4e7b-8ff0-7fc0cd6d1093.jsonl");
    assert!(session.first_message.starts_with("Run 4 subagents in parallel"));
    assert_eq!((session.turns, session.tools.as_slice()), (1, &["Task".to_owned()][..]));
    let calls = calls(&turns[0].parts);
    assert_eq!(calls.len(), 4);
    for call in calls {
        let chat = call.subagent.as_ref().unwrap();
        assert_eq!((chat.agent.as_deref(), chat.turns.len()), (Some("Bash"), 1));
        assert!(
            chat.turns[0]
                .tool_calls()
                .all(|call| matches!(&call.input, ToolInput::Command { command, .. } if command.starts_with("sleep")))
        );
    }
    assert!(turns[0].context.iter().any(|block| block.name == "system-reminder"));
    assert_eq!(turns[0].outcome, TurnOutcome::Complete);
    let (session, turns) = read("agentsview/truncated.jsonl");
    assert_eq!(
        (session.turns, turns[0].text().as_str(), session.damage.marks),
        (1, "Hi there", vec![DamageKind::Damaged])
    );
    let (_, turns) = read("agentsview/tool_call_pending.jsonl");
    assert_eq!(turns[0].outcome, TurnOutcome::Interrupted);
    let (session, turns) = read("claude-code-log/edge_cases.jsonl");
    assert!(session.damage.count >= 4, "{:?}", session.damage);
    assert!(turns.len() >= 3 && turns.iter().all(|turn| turn.follows == TurnParent::Previous));
    let (session, turns) = read("agent-sessions/subagent/0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f.jsonl");
    assert_eq!((session.turns, turns[0].tool_calls().filter(|call| call.subagent.is_some()).count()), (1, 1));
}

#[test]
#[cfg_attr(not(outside_fixtures), ignore = "needs the recordings outside the repository (GROVE_FIXTURES)")]
fn every_recorded_log_of_claude_code_is_read_without_loss() {
    let fixtures = outside("vscode/claude-code");
    let mut read = 0;
    for (path, bytes, _) in everything(&fixtures) {
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let location = SessionLocation::of_file(TranscriptSource::Claude, &path).unwrap();
        let (session, turns) = read_with_turns(&Claude, &location).unwrap();
        assert_eq!(session.turns as usize, turns.len(), "{}", path.display());
        let all = serde_json::to_string(&turns).unwrap();
        for line in bytes.split(|byte| *byte == b'\n') {
            let Ok(line) = serde_json::from_slice::<Value>(line) else { continue };
            for block in line["message"]["content"].as_array().into_iter().flatten() {
                if let Some(text) =
                    block["text"].as_str().filter(|text| !text.contains('<') && line["type"] == "assistant")
                {
                    let text = serde_json::to_string(text).unwrap();
                    assert!(all.contains(text.trim_matches('"')), "{}: {text}", path.display());
                }
            }
        }
        read += 1;
    }
    assert!(read > 20, "{read}");
}

#[test]
fn copies_of_files_tell_what_became_of_them_between_two_messages() {
    let snapshot = |message: &str, is_update: bool, backups: Value| {
        json!({"type": "file-history-snapshot", "messageId": message, "isSnapshotUpdate": is_update,
            "snapshot": {"messageId": message, "trackedFileBackups": backups, "timestamp": "2026-01-01T00:00:00Z"}})
    };
    let copy = |name: Option<&str>| json!({"backupFileName": name, "version": 1});
    let mut first = user("u1", None, "one");
    first["cwd"] = json!("/w");
    let log = lines(&[
        first,
        says("a1", Some("u1"), "m1", json!("1")),
        snapshot("u1", true, json!({"src/a.rs": copy(Some("a@v1")), "new.rs": copy(None)})),
        snapshot("u2", false, json!({"src/a.rs": copy(Some("a@v2")), "new.rs": copy(Some("n@v1"))})),
        user("u2", Some("a1"), "two"),
        says("a2", Some("u2"), "m2", json!("2")),
        snapshot("u3", false, json!({"src/a.rs": copy(Some("a@v2")), "new.rs": copy(Some("n@v1"))})),
        user("u3", Some("a2"), "three"),
    ]);
    let store = TestStore::new()
        .with("file-history/s/a@v1", "one\ntwo\n")
        .with("file-history/s/a@v2", "one\n2\nthree\n")
        .with("file-history/s/n@v1", "new\n");
    let path = store.put("projects/-w/s.jsonl", &log);
    let (_, turns) = read_file(TranscriptSource::Claude, &path);
    let edits = |turn: &TranscriptTurn| {
        let edits = turn.parts.iter().filter_map(|part| match part {
            TranscriptPart::Edit(edit) => Some((edit.place.shown().to_owned(), edit.kind, edit.added, edit.removed)),
            _ => None,
        });
        edits.collect::<Vec<_>>()
    };
    let told = |path: &str, kind, added, removed| (path.to_owned(), kind, Some(added), Some(removed));
    assert_eq!(
        edits(&turns[0]),
        [told("/w/src/a.rs", EditKind::Edit, 2, 1), told("/w/new.rs", EditKind::Create, 1, 0)]
    );
    assert_eq!((edits(&turns[1]), edits(&turns[2])), (vec![], vec![]));
}

#[test]
fn the_title_of_the_programs_own_list_stands_where_the_log_has_none() {
    let store = TestStore::new().with(
        "projects/-w/sessions-index.json",
        r#"{"entries":[{"sessionId":"s","summary":"Listed","firstPrompt":"hi"}]}"#,
    );
    let title = |log: &str| {
        let path = store.put("projects/-w/s.jsonl", log);
        let location = grove_history::locate(TranscriptSource::Claude, &path).unwrap();
        read_with_turns(&Claude, &location).unwrap().0.title.unwrap()
    };
    let said = lines(&[user("u1", None, "hi")]);
    assert_eq!(title(&said), "Listed");
    assert_eq!(title(&format!("{said}{}\n", json!({"type": "ai-title", "aiTitle": "Made"}))), "Made");
    assert_eq!(title(&format!("{said}{}\n", json!({"type": "custom-title", "customTitle": "Given"}))), "Given");
}
