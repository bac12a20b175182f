//! The Copilot CLI's logs: the results of events, damage, and reading on from a bookmark.

use grove_history::copilot_cli::CopilotCli;
use grove_history::{Hints, HistoryReader, SessionLocation, read_with_turns};
use grove_transcript::{
    Approval, CallState, DamageKind, ToolInput, TranscriptPart, TranscriptSource, TranscriptToolKind, TurnOutcome,
};

use crate::support::{TestStore, calls, events};

const START: &str = r#"{"type":"session.start","id":"e0","timestamp":"2026-01-02T03:04:05.000Z","parentId":null,"data":{"sessionId":"s","version":1,"producer":"copilot-agent","copilotVersion":"1.0.0","startTime":"2026-01-02T03:04:05.000Z","selectedModel":"vendor/one","context":{"cwd":"/code/app","branch":"main","repository":"me/app"}}}"#;
const HELLO: &str = r#"{"type":"user.message","id":"u1","timestamp":"2026-01-02T03:04:06.000Z","data":{"content":"hello","transformedContent":"<current_datetime>now</current_datetime>\n\nhello","attachments":[{"type":"file","path":"/code/app/a.rs","displayName":"a.rs"}]}}
{"type":"assistant.turn_start","timestamp":"2026-01-02T03:04:06.100Z","data":{"turnId":"0"}}
{"type":"assistant.message","timestamp":"2026-01-02T03:04:07.000Z","data":{"messageId":"m1","content":"Hi there","reasoningText":"a greeting","toolRequests":[{"toolCallId":"c1","name":"bash","arguments":"{\"command\":\"ls\"}","intentionSummary":"look around"}],"outputTokens":5}}
{"type":"permission.requested","data":{"requestId":"p1","permissionRequest":{"kind":"shell","toolCallId":"c1"}}}
{"type":"permission.completed","data":{"requestId":"p1","result":{"kind":"approved"}}}
{"type":"tool.execution_start","timestamp":"2026-01-02T03:04:08.000Z","data":{"toolCallId":"c1","toolName":"bash","arguments":{"command":"ls"}}}
{"type":"tool.execution_complete","timestamp":"2026-01-02T03:04:09.000Z","data":{"toolCallId":"c1","success":true,"result":{"content":"a.rs"},"shellExecution":{"exitCode":0}}}
{"type":"assistant.turn_end","timestamp":"2026-01-02T03:04:10.000Z","data":{"turnId":"0"}}"#;

fn log(lines: &[&str]) -> String {
    let mut log = lines.join("\n");
    log.push('\n');
    log
}

#[test]
fn a_turn_has_text_reasoning_calls_with_approval_and_times() {
    let (session, turns) = events(&log(&[START, HELLO]));
    assert_eq!((session.source_id.as_str(), session.turns), ("s", 1));
    assert_eq!(session.workspace.repository.as_deref(), Some("me/app"));
    assert_eq!(session.models, ["one"]);
    let turn = &turns[0];
    assert_eq!((turn.id.as_str(), turn.outcome.clone()), ("u1", TurnOutcome::Complete));
    assert_eq!((turn.first_response_ms, turn.total_ms), (Some(1_000), Some(4_000)));
    assert_eq!((turn.message.text.as_str(), turn.message.attachments[0].name.as_str()), ("hello", "a.rs"));
    assert_eq!(turn.context[0].name, "current_datetime");
    assert_eq!(turn.usage.as_ref().unwrap().output_tokens, Some(5));
    assert!(matches!(&turn.parts[0], TranscriptPart::Reasoning { text, .. } if text == "a greeting"));
    assert!(matches!(&turn.parts[1], TranscriptPart::Text(text) if text == "Hi there"));
    let call = calls(&turn.parts)[0];
    assert_eq!((call.kind, call.state, call.exit_code), (TranscriptToolKind::Shell, CallState::Complete, Some(0)));
    assert!(matches!(&call.input, ToolInput::Command { command, .. } if command == "ls"));
    assert_eq!(call.approval, Approval::Person { button: Some("approved".into()) });
    assert_eq!((call.intention.as_deref(), call.output.as_ref().unwrap().text.as_str()), (Some("look around"), "a.rs"));
}

#[test]
fn turns_end_as_their_events_say() {
    let begin = r#"{"type":"user.message","id":"u2","data":{"content":"go on"}}"#;
    let round = r#"{"type":"assistant.turn_start","data":{"turnId":"1"}}"#;
    let end = r#"{"type":"assistant.turn_end","data":{"turnId":"1"}}"#;
    let error = r#"{"type":"session.error","data":{"errorType":"query","message":"too many"}}"#;
    let said = r#"{"type":"assistant.message","data":{"content":"so"}}"#;
    let abort = r#"{"type":"abort","data":{"reason":"user"}}"#;
    let outcome = |lines: &[&str]| events(&log(&[&[START, begin], lines].concat())).1[0].outcome.clone();
    assert_eq!(outcome(&[]), TurnOutcome::Interrupted);
    assert_eq!(outcome(&[round]), TurnOutcome::Interrupted, "as kill -9 leaves it");
    assert_eq!(outcome(&[round, said, end]), TurnOutcome::Complete);
    assert_eq!(outcome(&[round, end, abort]), TurnOutcome::Cancelled);
    assert!(matches!(outcome(&[round, error]), TurnOutcome::Failed(error) if error.message == "too many"));
    assert_eq!(outcome(&[round, error, said, end]), TurnOutcome::Complete, "it was tried again");
}

#[test]
fn a_model_that_is_chosen_behind_a_turn_counts_from_the_next_one_on() {
    let chosen = r#"{"type":"session.model_change","data":{"previousModel":"vendor/one","newModel":"vendor/two"}}"#;
    let resumed = r#"{"type":"session.resume","data":{"selectedModel":"vendor/two"}}"#;
    let begin = r#"{"type":"user.message","id":"u2","data":{"content":"go on"}}"#;
    let round = r#"{"type":"assistant.turn_start","data":{"turnId":"1"}}"#;
    let abort = r#"{"type":"abort","data":{"reason":"user"}}"#;
    let models = |lines: &[&str]| {
        let model =
            |turn: &grove_transcript::TranscriptTurn| turn.model.as_ref().map_or("?".into(), |it| it.model.clone());
        events(&log(lines)).1.iter().map(model).collect::<Vec<String>>()
    };
    for change in [chosen, resumed] {
        assert_eq!(models(&[START, HELLO, change, begin, round]), ["one", "two"]);
        assert_eq!(models(&[START, HELLO, change]), ["one"], "the end of the log");
    }
    assert_eq!(models(&[START, begin, abort, chosen, begin, round]), ["one", "two"]);
    assert_eq!(models(&[START, begin, chosen, round]), ["two"], "before anything was done");
    let unsaid = START.replace(r#""selectedModel":"vendor/one","#, "");
    assert_eq!(models(&[&unsaid, HELLO, chosen, begin, round]), ["?", "two"], "nobody knows the first one's");
}

#[test]
fn a_refused_call_and_one_that_nobody_answered_are_told_apart() {
    let begin = r#"{"type":"user.message","id":"u2","data":{"content":"go on"}}"#;
    let ask = r#"{"type":"permission.requested","data":{"requestId":"p","permissionRequest":{"kind":"shell","toolCallId":"c"}}}"#;
    let deny =
        r#"{"type":"permission.completed","data":{"requestId":"p","result":{"kind":"denied-interactively-by-user"}}}"#;
    let call = |lines: &[&str]| {
        let (_, turns) = events(&log(&[&[START, begin], lines].concat()));
        let call = calls(&turns[0].parts)[0];
        (call.approval.clone(), call.state)
    };
    assert_eq!(call(&[ask]), (Approval::Waiting, CallState::Interrupted));
    assert_eq!(call(&[ask, deny]), (Approval::Denied, CallState::Refused));
}

#[test]
fn what_a_skill_says_is_no_persons_message() {
    let skill = r#"{"type":"user.message","id":"u2","data":{"content":"be good","source":"skill-x"}}"#;
    let (session, turns) = events(&log(&[START, HELLO, skill]));
    assert_eq!((session.turns, turns.len()), (1, 1));
}

#[test]
fn unknown_events_are_kept_raw_and_a_newer_version_is_marked() {
    let start = START.replace("\"version\":1", "\"version\":99");
    let odd = r#"{"type":"canvas.drawn","data":{"shape":"circle"}}"#;
    let (session, turns) = events(&log(&[&start, HELLO, odd]));
    assert_eq!(session.damage.marks, [DamageKind::NewerVersion { version: 99 }]);
    assert!(!session.damage.is_recovered());
    let raw = turns[0].parts.iter().find_map(|part| match part {
        TranscriptPart::Raw(value) => Some(value.to_string()),
        _ => None,
    });
    assert_eq!(raw.as_deref(), Some(r#"{"shape":"circle","type":"canvas.drawn"}"#));
}

#[test]
fn damaged_logs_give_what_they_hold() {
    let whole = log(&[START, HELLO]);
    let marks = |log: &str| events(log).0.damage.marks;
    assert_eq!(marks(&whole), []);
    assert_eq!(marks(whole.trim_end()), [], "only the last line feed is missing");
    assert_eq!(marks(""), [DamageKind::Empty]);
    assert_eq!(marks(&format!("{whole}{{\"type\":\"assist")), [DamageKind::TornTail]);
    assert_eq!(marks(&format!("{whole}\0\0\0\0")), [DamageKind::TornTail], "zeros, as a power cut leaves them");
    assert_eq!(marks(HELLO), [DamageKind::MissingStart]);
    let (zeros, turns) = events(&format!("{START}\n\0\0\0{HELLO}\n"));
    assert_eq!(
        (zeros.damage.marks.as_slice(), zeros.damage.places[0].line, turns.len()),
        (&[DamageKind::Damaged][..], Some(2), 1)
    );
    let (session, turns) = events(&log(&[START, "not json", HELLO, "[1]", "{\"no\":\"type\"}"]));
    assert_eq!(session.damage.marks, [DamageKind::Damaged]);
    let lines: Vec<_> = session.damage.places.iter().map(|place| place.line).collect();
    assert_eq!((lines, turns.len()), (vec![Some(2), Some(11), Some(12)], 1));
}

#[test]
fn the_title_is_the_persons_then_the_programs_then_the_first_words() {
    let titled = r#"{"type":"session.title_changed","data":{"title":"From the program"}}"#;
    let store = TestStore::new().with("s/events.jsonl", log(&[START, HELLO]));
    let root = grove_history::StoreRoot {
        source: TranscriptSource::CopilotCli,
        product: "p".into(),
        folder: store.path().into(),
    };
    let title = || {
        let found = CopilotCli.find(&root, Hints::Read);
        assert!(found.problems.is_empty());
        read_with_turns(&CopilotCli, &found.sessions[0]).unwrap().0.title.unwrap()
    };
    assert_eq!(title(), "hello");
    store.put(
        "s/workspace.yaml",
        "id: s\ncwd: /code/app\nname: From the manifest\ncreated_at: 2026-01-02T03:04:05.000Z\n",
    );
    assert_eq!(title(), "From the manifest");
    assert_eq!(CopilotCli.find(&root, Hints::Read).sessions[0].preview.title.as_deref(), Some("From the manifest"));
    store.put("s/events.jsonl", log(&[START, HELLO, titled]));
    assert_eq!(title(), "From the program");
    store.put("s/vscode.metadata.json", r#"{"customTitle":"From the person","parentSessionId":"p0"}"#);
    assert_eq!(title(), "From the person");
}

#[test]
fn a_folder_takes_the_place_of_an_older_file_of_the_same_session() {
    let store = TestStore::new()
        .with("a.jsonl", log(&[START]))
        .with("b.jsonl", log(&[START]))
        .with("b/events.jsonl", log(&[START]))
        .with("b/workspace.yaml", "nonsense\n")
        .with("c/plan.md", "no log");
    let root = grove_history::StoreRoot {
        source: TranscriptSource::CopilotCli,
        product: "p".into(),
        folder: store.path().into(),
    };
    let found = CopilotCli.find(&root, Hints::Read);
    let names: Vec<_> =
        found.sessions.iter().map(|location| location.path.strip_prefix(store.path()).unwrap().to_owned()).collect();
    assert_eq!(names, [std::path::Path::new("a.jsonl"), std::path::Path::new("b/events.jsonl")]);
    assert_eq!(found.problems.len(), 1, "the manifest that is none hides no session: {:?}", found.problems);
}

#[test]
fn reading_on_from_a_bookmark_gives_what_reading_anew_gives() {
    let more: Vec<String> = (2..6)
        .map(|number| {
            let hello = HELLO.replace("\"u1\"", &format!("\"u{number}\"")).replace("c1", &format!("c{number}"));
            if number == 4 { format!("broken line\n{hello}") } else { hello }
        })
        .collect();
    let early = r#"{"type":"session.info","data":{"message":"before anything was said"}}"#;
    let lines: Vec<&str> = [START, early, HELLO].into_iter().chain(more.iter().map(String::as_str)).collect();
    let whole = log(&lines);
    let store = TestStore::new();
    for cut in (0..whole.len()).step_by(97) {
        let path = store.put("s/events.jsonl", &whole.as_bytes()[..cut]);
        let location = SessionLocation::of_file(TranscriptSource::CopilotCli, &path).unwrap();
        let mut turns = Vec::new();
        let first = CopilotCli.read(&location, None, &mut |turn| turns.push(turn)).unwrap();
        store.put("s/events.jsonl", &whole);
        let Some(bookmark) = first.bookmark else { continue };
        turns.truncate(bookmark.turns as usize);
        let kept: grove_history::Bookmark = serde_json::from_str(&serde_json::to_string(&bookmark).unwrap()).unwrap();
        let second = CopilotCli.read(&location, Some(&kept), &mut |turn| turns.push(turn)).unwrap();
        let mut expected = Vec::new();
        let full = CopilotCli.read(&location, None, &mut |turn| expected.push(turn)).unwrap();
        assert_eq!((&second, &turns), (&full, &expected), "cut at {cut}");
    }
}

#[test]
fn subagents_end_as_their_events_say() {
    let begin = r#"{"type":"user.message","id":"u2","data":{"content":"go on"}}"#;
    let task = r#"{"type":"tool.execution_start","data":{"toolCallId":"t","toolName":"task","arguments":{"prompt":"look","description":"d"}}}"#;
    let started =
        r#"{"type":"subagent.started","agentId":"g","data":{"toolCallId":"t","agentDisplayName":"Explorer"}}"#;
    let asked = r#"{"type":"user.message","agentId":"g","data":{"content":"look well"}}"#;
    let said = r#"{"type":"assistant.message","agentId":"g","data":{"content":"found"}}"#;
    let chat = |end: &str| {
        let (session, turns) = events(&log(&[START, begin, task, started, asked, said, end]));
        assert_eq!(session.turns, 1, "what a subagent is told is no turn of the session");
        let call = calls(&turns[0].parts)[0].clone();
        assert_eq!((call.name.as_str(), turns[0].text().as_str()), ("task", ""));
        *call.subagent.unwrap()
    };
    let done = chat(r#"{"type":"subagent.completed","agentId":"g","data":{"toolCallId":"t"}}"#);
    assert_eq!(done.agent.as_deref(), Some("Explorer"));
    let turn = &done.turns[0];
    assert_eq!((turn.message.text.as_str(), turn.text().as_str()), ("look well", "found"));
    assert_eq!(turn.outcome, TurnOutcome::Complete);
    let failed = chat(r#"{"type":"subagent.failed","agentId":"g","data":{"toolCallId":"t","error":"no"}}"#);
    assert!(matches!(&failed.turns[0].outcome, TurnOutcome::Failed(error) if error.message == "no"));
}
