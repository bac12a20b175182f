//! pi and oh-my-pi: all versions, branches, commands of the person.

use grove_history::pi::{self, Pi};
use grove_history::{Hints, HistoryReader, StoreRoot, read_with_turns};
use grove_transcript::{
    CallState, DamageKind, TranscriptPart, TranscriptSession, TranscriptSource, TranscriptToolKind, TranscriptTurn,
    TurnOutcome, TurnParent, path,
};
use serde_json::{Value, json};

use crate::support::{TestStore, calls, cases, everything, lines, read_file};

fn read(log: &str) -> (TranscriptSession, Vec<TranscriptTurn>) {
    let mut turns = Vec::new();
    let reading = pi::read_log(log.as_bytes(), "s", None, &mut |turn| turns.push(turn)).unwrap();
    (reading.session, turns)
}

fn header() -> Value {
    json!({"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-02T03:04:05.000Z", "cwd": "/w"})
}

fn entry(id: &str, parent: Option<&str>, kind: &str, rest: Value) -> Value {
    let mut entry = json!({"type": kind, "id": id, "parentId": parent, "timestamp": "2026-01-02T03:04:06.000Z"});
    entry.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    entry
}

fn user(id: &str, parent: Option<&str>, text: &str) -> Value {
    entry(id, parent, "message", json!({"message": {"role": "user", "content": [{"type": "text", "text": text}]}}))
}

fn says(id: &str, parent: Option<&str>, blocks: Value, stop: &str) -> Value {
    entry(
        id,
        parent,
        "message",
        json!({"message": {"role": "assistant", "content": blocks, "provider": "p", "model": "m",
        "usage": {"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4, "cost": {"total": 0.5}}, "stopReason": stop}}),
    )
}

fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

#[test]
fn a_turn_has_its_calls_results_usage_and_model() {
    let call = json!([{"type": "thinking", "thinking": "hm"}, {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "ls"}}]);
    let result = json!({"message": {"role": "toolResult", "toolCallId": "c1", "toolName": "bash",
        "content": [{"type": "text", "text": "a"}], "isError": true, "details": {"n": 1}}});
    let (session, turns) = read(&lines(&[
        header(),
        entry("x", None, "model_change", json!({"provider": "p", "modelId": "other"})),
        user("u1", Some("x"), "look"),
        says("a1", Some("u1"), call, "toolUse"),
        entry("r1", Some("a1"), "message", result),
        says("a2", Some("r1"), text("done"), "stop"),
        entry("i1", Some("a2"), "session_info", json!({"name": " Named "})),
        entry("f1", Some("i1"), "from_the_future", json!({"beam": 1})),
    ]));
    assert_eq!(
        (session.title.as_deref(), session.turns, session.models.as_slice()),
        (Some("Named"), 1, &["m".to_owned()][..])
    );
    let turn = &turns[0];
    let call = calls(&turn.parts)[0];
    assert_eq!(
        (call.kind, call.state, call.output.as_ref().unwrap().text.as_str()),
        (TranscriptToolKind::Shell, CallState::Failed, "a")
    );
    let usage = turn.usage.as_ref().unwrap();
    assert_eq!(
        (usage.input_tokens, usage.output_tokens, usage.cost.as_ref().unwrap().as_f64()),
        (Some(16), Some(4), Some(1.0))
    );
    assert_eq!((turn.outcome.clone(), turn.follows), (TurnOutcome::Complete, TurnParent::Previous));
    assert!(matches!(turn.parts.last(), Some(TranscriptPart::Raw(raw)) if raw["type"] == "from_the_future"));
    assert!(session.damage.marks.is_empty());
}

#[test]
fn branches_say_which_turn_they_go_on_from_wherever_they_begin() {
    let (_, turns) = read(&lines(&[
        header(),
        user("u1", None, "one"),
        says("a1", Some("u1"), text("1"), "stop"),
        user("u2", Some("a1"), "two"),
        says("a2", Some("u2"), text("2"), "aborted"),
        entry("b1", Some("a1"), "branch_summary", json!({"fromId": "a2", "summary": "left"})),
        user("u3", Some("b1"), "three"),
        says("a3", Some("u2"), text("two, answered again"), "stop"),
        entry("b2", None, "branch_summary", json!({"fromId": "a3", "summary": ""})),
        user("u4", Some("b2"), "from the beginning"),
        user("u5", Some("gone"), "orphan"),
    ]));
    let follows: Vec<TurnParent> = turns.iter().map(|turn| turn.follows).collect();
    use TurnParent::{Nothing, Previous, Turn};
    assert_eq!(follows, [Previous, Previous, Turn(0), Turn(1), Nothing, Previous]);
    assert_eq!((turns[1].outcome.clone(), turns[3].text().as_str()), (TurnOutcome::Cancelled, "two, answered again"));
    assert_eq!(path(&turns[..3]), [0, 2]);
}

#[test]
fn what_the_person_ran_is_a_turn_and_the_first_version_needs_no_ids() {
    let run = json!({"type": "message", "timestamp": "2025-01-02T03:04:05.000Z", "message": {"role": "bashExecution",
        "command": "make", "output": "ok", "exitCode": 0}});
    let ask = json!({"type": "message", "message": {"role": "user", "content": "hi"}});
    let answer = json!({"type": "message", "message": {"role": "assistant", "content": [], "stopReason": "error", "errorMessage": "no"}});
    let header = json!({"type": "session", "id": "s", "timestamp": "2025-01-02T03:04:05.000Z", "cwd": "/w", "provider": "p", "modelId": "m"});
    let (session, turns) = read(&lines(&[header, run, ask, answer]));
    assert_eq!((turns[0].message.text.as_str(), calls(&turns[0].parts)[0].exit_code), ("! make", Some(0)));
    assert!(matches!(&turns[1].outcome, TurnOutcome::Failed(error) if error.message == "no"));
    assert_eq!(session.models, ["m"]);
    assert!(session.damage.marks.is_empty());
}

#[test]
fn reading_on_gives_what_reading_anew_gives_on_any_branch() {
    let log = lines(&[
        header(),
        user("u1", None, "one"),
        says("a1", Some("u1"), text("1"), "stop"),
        user("u2", Some("a1"), "two"),
        says("a2", Some("u2"), text("2"), "stop"),
        user("u3", Some("a1"), "three"),
        entry("l1", Some("u1"), "label", json!({"targetId": "u1", "label": "here"})),
        user("u4", Some("l1"), "four"),
        says("a4", Some("u2"), text("elsewhere"), "stop"),
    ]);
    let whole = read(&log);
    for cut in 0..=log.len() {
        let mut turns = Vec::new();
        let begun = pi::read_log(&log.as_bytes()[..cut], "s", None, &mut |turn| turns.push(turn)).unwrap();
        let Some(bookmark) = begun.bookmark else { continue };
        turns.truncate(bookmark.turns as usize);
        let more = pi::read_log(log.as_bytes(), "s", Some(&bookmark), &mut |turn| turns.push(turn)).unwrap();
        assert_eq!((turns, more.session), (whole.1.clone(), whole.0.clone()), "cut at {cut}");
    }
}

#[test]
fn sessions_are_found_by_folder_and_nothing_is_written() {
    let log = lines(&[header(), user("u1", None, "hi")]);
    let store = TestStore::new()
        .with("--w--/2026-01-02T03-04-05-000Z_s.jsonl", &log)
        .with("--w--/.hidden.jsonl", &log)
        .with("--w--/2026-01-02T03-04-05-000Z_s/draft.txt", "x");
    let before = everything(store.path());
    let root = StoreRoot { source: TranscriptSource::Pi, product: "oh-my-pi".into(), folder: store.path().into() };
    let listing = Pi.find(&root, Hints::Read);
    assert_eq!((listing.sessions.len(), listing.problems.len()), (1, 0));
    let (session, turns) = read_with_turns(&Pi, &listing.sessions[0]).unwrap();
    assert_eq!((session.source_id.as_str(), session.agent.as_deref(), turns.len()), ("s", Some("oh-my-pi"), 1));
    assert_eq!(everything(store.path()), before);
}

#[test]
fn sessions_of_pi_are_read_and_no_message_is_lost() {
    let fixtures = cases("../../../tree/tests/cases/pi");
    let mut read = 0;
    for (path, bytes, _) in everything(&fixtures) {
        if !path.to_string_lossy().ends_with("input.jsonl") {
            continue;
        }
        let (session, turns) = read_file(TranscriptSource::Pi, &path);
        let all = serde_json::to_string(&turns).unwrap();
        for line in bytes.split(|byte| *byte == b'\n') {
            let Ok(line) = serde_json::from_slice::<Value>(line) else { continue };
            let content = &line["message"]["content"];
            let texts = content.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
            for text in texts.chain(content.as_str()).filter(|text| !text.is_empty()) {
                let text = serde_json::to_string(text).unwrap();
                assert!(all.contains(text.trim_matches('"')), "{}: {text}", path.display());
            }
        }
        assert_eq!(session.turns as usize, turns.len());
        read += 1;
    }
    assert!(read > 20, "{read}");
    let marks = |name: &str| read_file(TranscriptSource::Pi, &fixtures.join(name).join("input.jsonl")).0.damage.marks;
    assert_eq!(marks("13-torn-last-line"), [DamageKind::TornTail]);
    assert_eq!(marks("16-empty-file"), [DamageKind::Empty]);
    assert_eq!(marks("18-no-header"), [DamageKind::MissingStart]);
    assert_eq!(marks("01-linear"), []);
    assert!(matches!(marks("27-future-version")[..], [DamageKind::NewerVersion { .. }]));
}
