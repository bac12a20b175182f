//! Tests of importing and exporting sessions of other programs.

use std::path::{Path, PathBuf};

use grove_core::{NewSession, Outcome, Part, Session, StoreName, Timestamp, ToolCallStatus};
use grove_history::{SessionLocation, read_with_turns, reader_of};
use grove_transcript::{TranscriptPart, TranscriptSession, TranscriptSource, TranscriptTurn};
use grove_tree::{EntryType, Log};
use grove_wire::copilot::Event;
use serde_json::{Value, json};

use super::copilot_cli::events;
use super::log_export;
use super::prepared_import::{ImportId, PrepareImportError, PreparedImport, prepare_import};
use super::transcript::{LOG, Transcript};

const ID: &str = "0b5d6a3e-5a4c-4c57-9d55-3c8d4d0f6a11";

/// A session folder of the Copilot CLI.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(lines: &[Value]) -> Self {
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        Self::of_text(&lines)
    }

    fn of_text(text: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write("events.jsonl", text);
        folder.write(
            "workspace.yaml",
            &format!("id: {ID}\ncwd: /w\nname: By a person\ncreated_at: 2026-01-01T00:00:00.000Z\n"),
        );
        folder
    }

    fn path(&self) -> PathBuf {
        self.0.path().join(ID)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn prepare_import(&self) -> PreparedImport {
        prepare_import(&self.path(), &ImportId::Own).unwrap()
    }
}

fn event(kind: &str, second: u32, data: Value) -> Value {
    let timestamp = format!("2026-01-01T00:00:{second:02}.000Z");
    json!({"type": kind, "data": data, "id": format!("e{second}-{kind}"), "timestamp": timestamp, "parentId": null})
}

/// Two turns with a compaction between them, and hidden events.
fn sample() -> Vec<Value> {
    let call = json!({"toolCallId": "c1", "name": "bash", "arguments": {"command": "echo hi"}});
    vec![
        event(
            "session.start",
            0,
            json!({"sessionId": ID, "version": 1, "producer": "copilot-agent", "copilotVersion": "1",
            "startTime": "2026-01-01T00:00:00.000Z", "context": {"cwd": "/w"}}),
        ),
        event("user.message", 1, json!({"content": "run it"})),
        event("assistant.turn_start", 2, json!({"turnId": "0"})),
        event(
            "assistant.message",
            3,
            json!({"messageId": "m1", "model": "first", "content": "I do.", "reasoningText": "hm",
            "toolRequests": [call]}),
        ),
        event(
            "tool.execution_start",
            4,
            json!({"toolCallId": "c1", "toolName": "bash",
            "arguments": {"command": "echo hi"}}),
        ),
        event(
            "permission.requested",
            5,
            json!({"requestId": "p1", "permissionRequest": {"kind": "shell", "toolCallId": "c1"}}),
        ),
        event(
            "permission.completed",
            6,
            json!({"requestId": "p1", "toolCallId": "c1", "result": {"kind": "approved"}}),
        ),
        event("tool.execution_complete", 7, json!({"toolCallId": "c1", "success": true, "result": {"content": "hi"}})),
        event("assistant.message", 8, json!({"messageId": "m2", "content": "Done.", "toolRequests": []})),
        event("assistant.turn_end", 9, json!({"turnId": "0"})),
        event("session.model_change", 10, json!({"newModel": "other"})),
        event("session.brand_new", 11, json!({"something": "else"})),
        event(
            "session.compaction_complete",
            12,
            json!({"success": true, "summaryContent": "It ran.",
            "preCompactionTokens": 900, "checkpointNumber": 1, "checkpointPath": "/x/checkpoints/001-it-ran.md"}),
        ),
        event("user.message", 13, json!({"content": "and?"})),
        event("assistant.turn_start", 14, json!({"turnId": "0"})),
        event("abort", 15, json!({"reason": "user initiated"})),
    ]
}

fn log_of(prepared_import: &mut PreparedImport) -> Log {
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut prepared_import.log, &mut bytes).unwrap();
    let log = grove_tree::open(bytes, &mut String::new).unwrap();
    assert_eq!(log.index().damage(), Vec::<&grove_tree::Damage>::new());
    log
}

fn exported_events(log: &Log) -> Vec<Event> {
    let new = NewSession {
        id: ID.into(),
        uri: format!("copilot:/{ID}").into(),
        agent: "copilot".into(),
        model: None,
        working_directories: vec!["/w".to_owned()],
        config: None,
        store: StoreName::default(),
    };
    let session = Session::new(&new, Timestamp(0));
    let mut made = 0;
    let mut new_id = || {
        made += 1;
        format!("new-{made}").into()
    };
    events(&session, log, &|file| format!("/there/checkpoints/{file}"), &mut new_id).events
}

#[test]
fn a_session_of_the_cli_becomes_turns_with_all_that_they_tell() {
    let mut prepared_import = Folder::new(&sample()).prepare_import();
    let about = &prepared_import.about;
    assert_eq!(about.id.as_deref(), Some(ID));
    assert_eq!(about.title.as_deref(), Some("By a person"));
    assert_eq!(about.working_directory.as_deref(), Some("file:///w"));
    assert_eq!((prepared_import.turns, prepared_import.warnings.as_slice()), (Some(2), [].as_slice()));
    let log = log_of(&mut prepared_import);
    let turns = grove_tree::turns::turns(&log);
    let [first, second] = turns.as_slice() else { panic!("{turns:?}") };
    assert_eq!((first.message.text.as_str(), first.outcome), ("run it", Outcome::Complete));
    let [Part::Reasoning { content, .. }, Part::Text(before), Part::ToolCall(call), Part::Text(after)] =
        first.parts.as_slice()
    else {
        panic!("{:?}", first.parts)
    };
    assert_eq!((content.as_str(), before.content.as_str(), after.content.as_str()), ("hm", "I do.", "Done."));
    let ToolCallStatus::Completed(result) = &call.status else { panic!("{call:?}") };
    assert_eq!((result.success, result.output.as_deref()), (true, Some("hi")));
    assert!(call.confirmed.is_some(), "the approval is kept");
    assert_eq!((second.message.text.as_str(), second.outcome), ("and?", Outcome::Cancelled));

    let index = log.index();
    let kinds: Vec<EntryType> = index.branch(index.leaf().unwrap()).iter().map(|entry| index.kind(*entry)).collect();
    let beside: Vec<EntryType> = kinds.into_iter().filter(|kind| *kind != EntryType::Message).collect();
    assert_eq!(beside, [EntryType::Compaction, EntryType::ModelChange]);
    let text = String::from_utf8_lossy(log.bytes()).into_owned();
    assert!(text.contains(r#""something":"else""#), "unknown events are kept: {text}");
    assert!(!text.contains("Not understood"), "and are not shown: {text}");
    assert!(text.contains(r#""checkpointNumber":1"#), "{text}");
}

#[test]
fn what_is_written_for_the_cli_is_a_chain_and_has_the_compaction_in_its_place() {
    let mut prepared_import = Folder::new(&sample()).prepare_import();
    let events = exported_events(&log_of(&mut prepared_import));
    let kinds: Vec<&str> = events.iter().map(Event::kind).collect();
    assert_eq!(
        kinds,
        [
            "session.start",
            "user.message",
            "assistant.turn_start",
            "assistant.message",
            "tool.execution_start",
            "tool.execution_complete",
            "assistant.message",
            "assistant.turn_end",
            "session.compaction_complete",
            "user.message",
            "assistant.turn_start",
            "abort",
            "assistant.turn_end",
        ]
    );
    let mut before = None;
    for event in &events {
        assert_eq!(event.parent_id, before);
        before = Some(event.id.clone());
    }
    let compaction = serde_json::to_value(&events[8]).unwrap();
    assert_eq!(compaction["data"]["summaryContent"], "It ran.");
    assert_eq!(compaction["data"]["checkpointPath"], "/there/checkpoints/001-it-ran.md");
}

#[test]
fn a_compaction_that_keeps_something_comes_before_what_it_keeps() {
    let header =
        json!({"type": "session", "version": 3, "id": "x", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/"});
    let entry = |id: &str, parent: Option<&str>, body: Value| {
        let mut entry = json!({"id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z"});
        entry.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        entry
    };
    let message = |role: &str, text: &str| json!({"type": "message", "message": {"role": role, "content": text}});
    let compaction = json!({"type": "compaction", "summary": "s", "firstKeptEntryId": "b2", "tokensBefore": 1});
    let lines = [
        header,
        entry("a1", None, message("user", "one")),
        entry("a2", Some("a1"), message("assistant", "1")),
        entry("b1", Some("a2"), message("user", "two")),
        entry("b2", Some("b1"), message("assistant", "2")),
        entry("c", Some("b2"), compaction),
        entry("d1", Some("c"), message("user", "three")),
    ];
    let bytes = lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect();
    let log = grove_tree::open(bytes, &mut String::new).unwrap();
    let events = exported_events(&log);
    let order: Vec<String> = events
        .iter()
        .filter_map(|event| match event.kind() {
            "session.compaction_complete" => Some("compaction".to_owned()),
            "user.message" => serde_json::to_value(event).unwrap()["data"]["content"].as_str().map(str::to_owned),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["one", "compaction", "two", "three"]);
}

#[test]
fn of_a_damaged_log_everything_else_is_taken_and_told_what_is_missing() {
    let lines: Vec<String> = sample().iter().map(Value::to_string).collect();
    let mut damaged = lines.clone();
    damaged.insert(2, "{\"type\":\"session.in".to_owned());
    let prepared_import = Folder::of_text(&format!("{}\n", damaged.join("\n"))).prepare_import();
    assert_eq!(prepared_import.turns, Some(2));
    assert!(prepared_import.warnings[0].starts_with("events.jsonl, line 3: "), "{:?}", prepared_import.warnings);

    let whole = lines.join("\n");
    let torn = Folder::of_text(&whole[..whole.len() - 20]).prepare_import();
    assert_eq!(torn.turns, Some(2));
    assert!(torn.warnings[0].starts_with(&format!("events.jsonl, line {}: ", lines.len())), "{:?}", torn.warnings);

    let headless = Folder::of_text(&lines[1..].join("\n")).prepare_import();
    assert_eq!(headless.turns, Some(2));
    assert!(headless.warnings.iter().any(|words| words.contains("lacks its beginning")), "{:?}", headless.warnings);
}

#[test]
fn a_log_cut_at_any_byte_gives_what_there_is_or_says_that_it_is_none() {
    let lines: Vec<String> = sample().iter().map(Value::to_string).collect();
    let whole = format!("{}\n", lines.join("\n"));
    for cut in (0..whole.len()).step_by(37) {
        let folder = Folder::of_text(&whole[..cut]);
        match prepare_import(&folder.path(), &ImportId::Own) {
            Ok(mut prepared_import) => drop(log_of(&mut prepared_import)),
            Err(PrepareImportError::Empty(_)) => assert!(cut == 0, "cut at {cut}"),
            Err(error) => panic!("cut at {cut}: {error}"),
        }
    }
}

#[test]
fn what_lies_beside_a_log_goes_along_and_links_do_not() {
    let folder = Folder::new(&sample());
    folder.write("plan.md", "# Plan");
    folder.write("files/notes/x.md", "x");
    folder.write("checkpoints/index.md", "");
    folder.write("rewind-file-snapshots/tracking.json", "{}");
    folder.write("files/bad\u{200d}name", "x");
    std::os::unix::fs::symlink("/etc", folder.path().join("files/etc")).unwrap();
    let prepared_import = folder.prepare_import();
    let names: Vec<&str> = prepared_import.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["checkpoints/index.md", "files/notes/x.md", "plan.md"]);
    assert_eq!(prepared_import.warnings.len(), 2, "{:?}", prepared_import.warnings);
    assert!(prepared_import.manifest.unwrap().contains("name: By a person"));
}

#[test]
fn a_session_keeps_its_id_unless_it_is_to_have_another() {
    let folder = Folder::new(&sample());
    let new = prepare_import(&folder.path(), &ImportId::New("another".to_owned())).unwrap();
    assert_eq!(new.about.id.as_deref(), Some("another"));
    assert!(new.manifest.unwrap().contains("id: another"));
    // The name of the folder does not matter.
    let renamed = folder.path().with_file_name("state");
    std::fs::rename(folder.path(), &renamed).unwrap();
    assert_eq!(prepare_import(&renamed, &ImportId::Own).unwrap().about.id.as_deref(), Some(ID));
}

#[test]
fn what_is_no_session_is_refused_with_what_would_be_one() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |path: &Path| prepare_import(path, &ImportId::Own).unwrap_err().to_string();
    assert!(refused(folder.path()).contains("is no session: name a session's folder"));
    assert!(refused(&folder.path().join("nowhere")).contains("No such file"));
    let text = folder.path().join("x.jsonl");
    std::fs::write(&text, "just words\n").unwrap();
    assert!(refused(&text).contains("is no session"));
}

#[test]
fn a_log_of_pi_is_taken_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("2026_abc.jsonl");
    let text = "{\"type\":\"title\",\"v\":1,\"title\":\"T\"}\n\
        {\"type\":\"session\",\"version\":3,\"id\":\"abc\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/w\"}\n";
    std::fs::write(&path, text).unwrap();
    let mut prepared_import = prepare_import(&path, &ImportId::Own).unwrap();
    assert_eq!(prepared_import.about.id.as_deref(), Some("abc"));
    assert_eq!((prepared_import.about.created_at, prepared_import.turns), (Some(1_767_225_600_000), None));
    let mut same = String::new();
    std::io::Read::read_to_string(&mut prepared_import.log, &mut same).unwrap();
    assert_eq!(same, text);
}

/// The visible content of a turn.
fn summary_of(turn: &TranscriptTurn) -> (String, Vec<(String, String)>) {
    let parts = turn.parts.iter().filter_map(|part| match part {
        TranscriptPart::Text(text) => Some(("text".to_owned(), text.clone())),
        TranscriptPart::Reasoning { text, .. } => Some(("reasoning".to_owned(), text.clone())),
        TranscriptPart::ToolCall(call) => {
            let output = call.output.as_ref().map(|output| output.text.clone()).unwrap_or_default();
            Some((format!("{} {:?} {:?}", call.name, call.raw_input, call.state), output))
        }
        _ => None,
    });
    (turn.message.text.clone(), parts.collect())
}

#[test]
fn what_the_cli_wrote_is_the_same_after_it_was_taken_in_and_given_back() {
    let mut count = 0;
    for kind in ["local-acp-mode", "local-prompt-mode", "local-sdk-full-and-forks"] {
        let roots = grove_fixtures::both("copilot-cli");
        for folder in roots.iter().flat_map(|root| std::fs::read_dir(root.join(kind)).unwrap()) {
            let folder = folder.unwrap().path();
            if !folder.join("events.jsonl").is_file() {
                continue;
            }
            let mut prepared_import = prepare_import(&folder, &ImportId::Own).unwrap();
            assert_eq!(prepared_import.warnings, Vec::<String>::new(), "{}", folder.display());
            let events = exported_events(&log_of(&mut prepared_import));
            let again = tempfile::tempdir().unwrap();
            let path = again.path().join("events.jsonl");
            let lines: String =
                events.iter().map(|event| format!("{}\n", serde_json::to_string(event).unwrap())).collect();
            std::fs::write(&path, lines).unwrap();
            let read = |path: &Path| {
                let location = SessionLocation::of_file(TranscriptSource::CopilotCli, path).unwrap();
                read_with_turns(reader_of(TranscriptSource::CopilotCli), &location).unwrap().1
            };
            let (before, after) = (read(&folder.join("events.jsonl")), read(&path));
            let summaries = |turns: &[TranscriptTurn]| turns.iter().map(summary_of).collect::<Vec<_>>();
            assert_eq!(summaries(&before), summaries(&after), "{}", folder.display());
            count += 1;
        }
    }
    assert!(count >= 5, "{count} sessions");
}

/// Writes the log of a session, and compares the visible content of both.
fn through_a_log(path: &Path) {
    let location = SessionLocation::of_file(TranscriptSource::CopilotCli, path).unwrap();
    let transcript = Transcript::of_located(&location).unwrap();
    let (mut lines, mut again) = (Vec::new(), Vec::new());
    log_export::write(&transcript, &mut lines).unwrap();
    let log = || grove_tree::open(lines.clone(), &mut String::new).unwrap();
    assert!(log().index().damage().is_empty());
    assert_eq!(log().index().name(), transcript.session().title);
    let own = Transcript::of_log(LOG, TranscriptSession::new(TranscriptSource::default(), "s"), log()).unwrap();
    log_export::write(&own, &mut again).unwrap();
    assert_eq!(again, lines, "a log stays as it is");
    let turns = |transcript: &Transcript| {
        let mut turns = Vec::new();
        transcript
            .each(&mut |turn| {
                turns.push(summary_of(&turn));
                Ok::<(), std::io::Error>(())
            })
            .unwrap();
        turns
    };
    assert_eq!(turns(&own), turns(&transcript), "{}", path.display());
}

#[test]
fn a_session_of_another_tool_is_parsed_once() {
    let folder = Folder::new(&sample());
    let path = folder.path().join("events.jsonl");
    let location = SessionLocation::of_file(TranscriptSource::CopilotCli, &path).unwrap();
    let (_, turns) = read_with_turns(reader_of(TranscriptSource::CopilotCli), &location).unwrap();
    let transcript = Transcript::of_located(&location).unwrap();
    // Nothing needs the file any more.
    std::fs::remove_file(&path).unwrap();
    let mut again = Vec::new();
    transcript
        .each(&mut |turn| {
            again.push(turn);
            Ok::<(), std::io::Error>(())
        })
        .unwrap();
    assert_eq!(again, turns);
    log_export::write(&transcript, Vec::new()).unwrap();
}

#[test]
fn a_session_of_another_tool_is_the_same_in_the_log_that_is_written_of_it() {
    let folder = Folder::new(&sample());
    through_a_log(&folder.path().join("events.jsonl"));
    let mut count = 0;
    for kind in ["local-acp-mode", "local-prompt-mode", "local-sdk-full-and-forks"] {
        let roots = grove_fixtures::both("copilot-cli");
        for folder in roots.iter().flat_map(|root| std::fs::read_dir(root.join(kind)).unwrap()) {
            let path = folder.unwrap().path().join("events.jsonl");
            if !path.is_file() {
                continue;
            }
            through_a_log(&path);
            count += 1;
        }
    }
    assert!(count >= 5, "{count} sessions");
}
