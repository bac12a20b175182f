//! Whatever happens to a file, reading it returns the readable part and never fails.

use grove_history::vscode::VsCode;
use grove_history::{HistoryReader, SessionLocation, copilot_cli, vscode};
use grove_transcript::{DamageKind, TranscriptSession, TranscriptSource, TranscriptTurn, TurnOutcome};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{TestStore, read_file};

fn session() -> Value {
    let request = |number: u32| {
        json!({"requestId": format!("r{number}"), "message": {"text": format!("question {number} é")},
            "response": [{"value": "answer"}, {"kind": "thinking", "value": "hm"}], "modelState": {"value": 1}})
    };
    json!({"version": 3, "sessionId": "s", "requests": (0..4).map(request).collect::<Vec<_>>(), "customTitle": "T"})
}

/// The same session as a log: each request is pushed, then answered.
fn log() -> String {
    let mut lines = vec![json!({"kind": 0, "v": {"version": 3, "sessionId": "s", "requests": []}})];
    for (at, request) in session()["requests"].as_array().unwrap().iter().enumerate() {
        let mut begun = request.clone();
        begun["response"] = json!([]);
        begun["modelState"] = json!({"value": 0});
        lines.push(json!({"kind": 2, "k": ["requests"], "v": [begun]}));
        lines.push(json!({"kind": 2, "k": ["requests", at, "response"], "v": request["response"]}));
        lines.push(json!({"kind": 1, "k": ["requests", at, "modelState"], "v": request["modelState"]}));
    }
    lines.push(json!({"kind": 1, "k": ["customTitle"], "v": "T"}));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn read(name: &str, bytes: &[u8]) -> (TranscriptSession, Vec<TranscriptTurn>) {
    let mut turns = Vec::new();
    let read = if name.ends_with(".jsonl") { vscode::read_log } else { vscode::read_flat };
    let session = read(bytes, "s", &mut |turn| turns.push(turn)).unwrap();
    (session, turns)
}

#[test]
fn both_forms_of_a_session_come_to_the_same() {
    let (flat, flat_turns) = read("s.json", session().to_string().as_bytes());
    let (log, log_turns) = read("s.jsonl", log().as_bytes());
    assert_eq!(flat_turns, log_turns);
    assert_eq!((flat.title, flat.turns, flat.damage), (log.title, log.turns, log.damage));
}

#[test]
fn a_file_cut_at_any_byte_gives_the_turns_before_the_cut() {
    let (whole_flat, whole_log) = (session().to_string(), log());
    let all = read("s.json", whole_flat.as_bytes()).1;
    for cut in 0..whole_flat.len() {
        let (session, turns) = read("s.json", &whole_flat.as_bytes()[..cut]);
        // The last one may be cut itself: it is returned as far as it goes.
        if let Some((last, before)) = turns.split_last() {
            let whole = &all[before.len()];
            assert_eq!((before, &last.id), (&all[..before.len()], &whole.id), "cut at {cut}");
            assert!(whole.message.text.starts_with(&last.message.text) && whole.text().starts_with(&last.text()));
        }
        assert!(session.damage.is_recovered(), "cut at {cut}");
    }
    let mut before = 0;
    for cut in 0..whole_log.len() {
        let (_, turns) = read("s.jsonl", &whole_log.as_bytes()[..cut]);
        assert!(turns.len() >= before, "cut at {cut}");
        before = turns.len();
    }
    assert_eq!(before, 4);
}

#[test]
fn a_request_that_is_no_json_costs_itself_alone() {
    let text = r#"{"version":3,"sessionId":"s","requests":[{"requestId":"a"},{"requestId":tru},{"requestId":"c"}],"customTitle":"T"}"#;
    let (session, turns) = read("s.json", text.as_bytes());
    assert_eq!(turns.iter().map(|turn| turn.id.as_str()).collect::<Vec<_>>(), ["a", "c"]);
    assert_eq!((session.title.as_deref(), session.damage.marks.as_slice()), (Some("T"), &[DamageKind::Damaged][..]));
    assert_eq!(session.damage.places[0].offset, 59);
}

#[test]
fn bytes_that_are_no_text_cost_themselves_alone_and_half_a_character_is_no_damage() {
    let flat =
        b"{\"requests\":[{\"requestId\":\"a\",\"message\":\"x\xff\"},{\"requestId\":\"b\",\"message\":\"y\\ud83d\"}]}";
    let log = [b"{\"kind\":0,\"v\":", &flat[..], b"}\n"].concat();
    for (name, bytes) in [("s.json", &flat[..]), ("s.jsonl", &log)] {
        let (session, turns) = read(name, bytes);
        let texts: Vec<&str> = turns.iter().map(|turn| turn.message.text.as_str()).collect();
        assert_eq!((texts, session.damage.count), (vec!["x\u{fffd}", "y\u{fffd}"], 1), "{name}");
    }
}

#[test]
fn what_is_nested_too_deep_costs_itself_alone() {
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let text = format!(r#"{{"requests":[{{"requestId":"a","x":{deep}}},{{"requestId":"b"}}]}}"#);
    let (session, turns) = read("s.json", text.as_bytes());
    assert_eq!((turns.len(), session.damage.count), (1, 1));
}

#[test]
fn a_log_cannot_nest_deeper_than_json_can() {
    let mut log = String::from("{\"kind\":0,\"v\":{\"requests\":[]}}\n");
    let mut path: Vec<String> = Vec::new();
    for _ in 0..300 {
        path.push("a".into());
        log.push_str(&format!("{}\n", json!({"kind": 1, "k": path, "v": {}})));
    }
    let (session, _) = read("s.jsonl", log.as_bytes());
    assert_eq!(session.damage.count, 300 - 64);
    assert_eq!(session.damage.places.len(), grove_transcript::limits::MAX_DAMAGE_LOCATIONS);
}

#[test]
fn a_large_flat_file_is_read_request_by_request() {
    let request =
        json!({"requestId": "r", "message": {"text": "x"}, "response": [{"value": "y".repeat(100_000)}]}).to_string();
    let store = TestStore::new();
    let path = store.path().join("big.json");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    use std::io::Write;
    file.write_all(b"{\"version\":3,\"requests\":[").unwrap();
    for number in 0..300 {
        if number > 0 {
            file.write_all(b",").unwrap();
        }
        file.write_all(request.as_bytes()).unwrap();
    }
    file.write_all(b"]}").unwrap();
    file.into_inner().unwrap().sync_all().unwrap();
    let location = SessionLocation::of_file(TranscriptSource::VsCode, &path).unwrap();
    let mut turns = 0;
    // Each turn is dropped as it comes; nothing here holds two.
    let reading = VsCode.read(&location, None, &mut |turn| turns += u32::from(turn.text().len() == 100_000)).unwrap();
    assert_eq!((turns, reading.session.turns), (300, 300));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z<>/`\\[\\]()é ]{0,12}".prop_map(Value::from),
    ];
    let keys = prop_oneof![
        "[a-z]{1,3}",
        prop::sample::select(vec![
            "kind",
            "value",
            "message",
            "text",
            "parts",
            "response",
            "result",
            "metadata",
            "requests",
            "requestId",
            "uri",
            "path",
            "scheme",
            "range",
            "edits",
            "toolCallId",
            "toolId",
            "subAgentInvocationId",
            "toolSpecificData",
            "isConfirmed",
            "type",
            "toolCallRounds",
            "toolCalls",
            "toolCallResults",
            "content",
            "node",
            "children",
            "timeline",
            "operations",
            "epoch",
            "data",
            "agentId",
            "parentToolCallId",
            "toolRequests",
            "name",
            "arguments",
            "usage",
            "modelState",
            "renderedUserMessage",
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(6, 128, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn no_request_whatever_it_says_stops_a_reading(requests in prop::collection::vec(any_json(), 0..4)) {
        let (session, turns) = read("s.json", json!({"sessionId": "s", "requests": requests}).to_string().as_bytes());
        prop_assert_eq!(turns.len(), requests.len());
        prop_assert_eq!(session.turns as usize, requests.len());
        prop_assert!(grove_history::SessionChanges::of(&turns).files.len() <= grove_history::MAX_CHANGES);
        for turn in &turns {
            prop_assert!(!turn.id.is_empty());
            grove_transcript::core_turn(turn, grove_core::Timestamp(0));
        }
    }

    #[test]
    fn no_event_whatever_it_says_stops_a_reading(
        events in prop::collection::vec((prop::sample::select(vec![
            "session.start", "user.message", "assistant.message", "assistant.turn_start", "assistant.turn_end", "tool.execution_start",
            "tool.execution_complete", "permission.requested", "permission.completed", "subagent.started", "subagent.completed",
            "subagent.failed", "session.shutdown", "session.error", "abort", "session.usage_record", "x",
        ]), any_json()), 0..12)
    ) {
        let log: String = events.iter().map(|(kind, data)| format!("{}\n", json!({"type": kind, "data": data, "agentId": data.get("agentId")}))).collect();
        let mut turns = Vec::new();
        let reading = copilot_cli::read_log(log.as_bytes(), "s", None, &mut |turn| turns.push(turn)).unwrap();
        prop_assert_eq!(reading.session.turns as usize, turns.len());
    }

    #[test]
    fn no_log_whatever_it_says_stops_a_reading(entries in prop::collection::vec((0..5_u64, prop::collection::vec(
        prop_oneof![prop::sample::select(vec!["requests", "a"]).prop_map(Value::from), (0..4_u64).prop_map(Value::from)], 0..4),
        any_json(), prop::option::of(0..6_u64)), 0..12))
    {
        let log: String = entries.iter().map(|(kind, path, value, keep)| format!("{}\n", json!({"kind": kind, "k": path, "v": value, "i": keep}))).collect();
        read("s.jsonl", log.as_bytes());
    }
}

#[test]
fn a_flat_file_that_is_cut_inside_its_only_answer_shows_the_question_and_what_was_answered() {
    let request = json!({"requestId": "r1", "message": {"text": "What is it?"}, "response": [{"value": "It is a very long answer"}]});
    let text = json!({"version": 3, "requests": [request], "sessionId": "s"}).to_string();
    let store = TestStore::new();
    let path = store.put("s.json", &text[..text.find("long answer").unwrap()]);
    let (session, turns) = read_file(TranscriptSource::VsCode, &path);
    assert_eq!((turns.len(), session.damage.marks.as_slice()), (1, &[DamageKind::TornTail][..]));
    assert_eq!((turns[0].message.text.as_str(), turns[0].text().as_str()), ("What is it?", "It is a very "));
    assert_eq!(turns[0].outcome, TurnOutcome::Interrupted);
    // Wherever it is cut, no turn with a complete question is lost, and none is made up.
    let question = text.find("},\"response\"").unwrap();
    for cut in 1..text.len() {
        let path = store.put("s.json", &text.as_bytes()[..cut]);
        let (session, turns) = read_file(TranscriptSource::VsCode, &path);
        assert!(turns.len() <= 1 && (cut <= question || turns[0].message.text == "What is it?"), "{cut}");
        assert_eq!(session.damage.marks, [DamageKind::TornTail], "{cut}");
    }
}

#[test]
fn damage_in_one_request_leaves_those_behind_it() {
    let request = |id: &str| {
        json!({"requestId": id, "message": {"text": format!("say {id}")}, "response": [{"value": format!("said {id}")}],
            "result": {"metadata": {"toolCallRounds": []}}, "shouldBeRemovedOnSend": {"requestId": "other"}})
    };
    let text = json!({"version": 3, "requests": [request("r1"), request("r2"), request("r3")], "customTitle": "Title"});
    for text in [text.to_string(), serde_json::to_string_pretty(&text).unwrap()] {
        let begin = text.find("\"say r2\"").unwrap();
        let end = text.find("\"r3\"").unwrap();
        let structure = |byte: u8| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']' | b',' | b':');
        for at in (begin..end).filter(|at| structure(text.as_bytes()[*at])) {
            for by in [b' ', b'"', b'{', b']', 0] {
                let mut damaged = text.clone().into_bytes();
                damaged[at] = by;
                let (session, turns) = read_flat(&damaged);
                let said: Vec<&str> = turns.iter().map(|turn| turn.message.text.as_str()).collect();
                let is_key_of_next = text[at..end].chars().all(|letter| "{}\"requestId: ,\n".contains(letter));
                if !is_key_of_next {
                    assert_eq!((said.first(), said.last()), (Some(&"say r1"), Some(&"say r3")), "{at} {by}: {said:?}");
                    assert!(said.len() <= 3, "{at} {by}: {said:?}");
                    assert_eq!(session.title.as_deref(), Some("Title"), "{at} {by}");
                }
            }
        }
    }
}

fn read_flat(bytes: &[u8]) -> (TranscriptSession, Vec<TranscriptTurn>) {
    let mut turns = Vec::new();
    let session = grove_history::vscode::read_flat(bytes, "s", &mut |turn| turns.push(turn)).unwrap();
    (session, turns)
}

#[test]
fn damage_in_one_message_of_gemini_leaves_those_behind_it() {
    let message = |id: &str, kind: &str| {
        format!(
            "{{\"id\":\"{id}\",\"timestamp\":\"2026-01-01T00:00:00Z\",\"type\":\"{kind}\",\"content\":\"words of {id}\"}}"
        )
    };
    let [one, two, three] = [message("m1", "user"), message("m2", "gemini"), message("m3", "user")];
    let broken = two.replace("words of m2\"", "words of m2");
    let text = format!(
        "{{\n\"sessionId\":\"s\",\"messages\":[{one},{broken},{three}],\"startTime\":\"2026-01-01T00:00:00Z\"}}"
    );
    let mut turns = Vec::new();
    let session = grove_history::gemini::read_log(text.as_bytes(), "s", &mut |turn| turns.push(turn)).unwrap();
    let said: Vec<&str> = turns.iter().map(|turn| turn.message.text.as_str()).collect();
    assert_eq!(said, ["words of m1", "words of m3"]);
    assert!(turns[0].text().starts_with("words of m2"), "{turns:?}");
    assert_eq!(session.damage.marks, [DamageKind::Damaged]);
}
