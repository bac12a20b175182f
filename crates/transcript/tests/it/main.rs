//! Sessions are written, and read again.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

mod chat;
mod chat_schema;
mod core;
mod people;

use std::path::{Path, PathBuf};

use grove_core::{ErrorInfo, Timestamp};
use grove_fixtures::both;
use grove_history::{SessionLocation, read_with_turns, reader_of};
use grove_transcript::export::{CopilotChat, Heading, Html, Json, Markdown, TurnWriter};
use grove_transcript::*;
use serde_json::json;

#[derive(Clone, Copy)]
enum Form {
    Markdown,
    Html,
    Json,
    CopilotChat,
}

/// A session in a format.
fn written(form: Form, session: &TranscriptSession, turns: &[TranscriptTurn]) -> String {
    let mut out = Vec::new();
    let heading = Heading { source: session.source.name(), session, abandoned: 0, allow_all: None };
    let mut writer: Box<dyn TurnWriter + '_> = match form {
        Form::Markdown => Box::new(Markdown::begin(&mut out, heading).unwrap()),
        Form::Html => Box::new(Html::begin(&mut out, heading).unwrap()),
        Form::Json => Box::new(Json::begin(&mut out, heading).unwrap()),
        Form::CopilotChat => Box::new(CopilotChat::begin(&mut out, heading).unwrap()),
    };
    for turn in turns {
        writer.turn(turn).unwrap();
    }
    writer.finish().unwrap();
    drop(writer);
    String::from_utf8(out).unwrap()
}

/// A turn with something of each kind.
fn turn() -> TranscriptTurn {
    let call = TranscriptToolCall {
        id: "c1".into(),
        name: "bash".into(),
        kind: TranscriptToolKind::Shell,
        intention: Some("List the folder".into()),
        input: ToolInput::Command {
            command: "ls".into(),
            folder: None,
            language: Some("sh".into()),
            background: false,
        },
        raw_input: Some(json!({"command": "ls"})),
        output: Some(ToolOutput { text: "a.rs\n```\n".into(), raw: None }),
        approval: Approval::Person { button: None },
        state: CallState::Failed,
        exit_code: Some(2),
        ..TranscriptToolCall::default()
    };
    let inner = TranscriptTurn {
        id: "inner".into(),
        message: TranscriptMessage { text: "look".into(), ..TranscriptMessage::default() },
        parts: vec![TranscriptPart::Text("Nothing there.".into())],
        outcome: TurnOutcome::Complete,
        ..TranscriptTurn::default()
    };
    let subagent = TranscriptToolCall {
        id: "c2".into(),
        name: "runSubagent".into(),
        kind: TranscriptToolKind::Subagent,
        input: ToolInput::Subagent { agent: None, description: Some("look".into()), prompt: "look".into() },
        state: CallState::Complete,
        subagent: Some(Box::new(TranscriptChat { id: "c2".into(), turns: vec![inner], ..TranscriptChat::default() })),
        ..TranscriptToolCall::default()
    };
    let edit = TranscriptEdit {
        kind: EditKind::Create,
        place: FileLocation::local("/w/b.rs"),
        added: Some(3),
        ..TranscriptEdit::default()
    };
    TranscriptTurn {
        id: "t1".into(),
        started_at: Some(Timestamp(1_700_000_000_000)),
        ended_at: Some(Timestamp(1_700_000_065_000)),
        message: TranscriptMessage {
            text: "What is here?\nTell me.".into(),
            attachments: vec![TranscriptAttachment {
                kind: TranscriptAttachmentKind::File,
                name: "a.rs".into(),
                place: Some(FileLocation::local("/w/a.rs")),
                ..TranscriptAttachment::default()
            }],
            ..TranscriptMessage::default()
        },
        parts: vec![
            TranscriptPart::Reasoning { text: "I look first.".into(), title: None, duration_ms: Some(1_500) },
            TranscriptPart::Text("I **look**.".into()),
            TranscriptPart::ToolCall(Box::new(call)),
            TranscriptPart::ToolCall(Box::new(subagent)),
            TranscriptPart::Edit(Box::new(edit)),
            TranscriptPart::Question(Question { message: "Go on?".into(), ..Question::default() }),
            TranscriptPart::Notice(Notice { kind: "warning".into(), text: "Slow.".into(), ..Notice::default() }),
            TranscriptPart::Raw(json!({"new": true})),
        ],
        outcome: TurnOutcome::Failed(ErrorInfo::new("agentFailed", "the line went dead")),
        model: Some(TranscriptModel::new("copilot/gpt-4")),
        usage: Some(TranscriptUsage { input_tokens: Some(12), output_tokens: Some(3), ..TranscriptUsage::default() }),
        references: vec![FileLocation::local("/w/c.rs")],
        citations: vec![CodeCitation { source: "https://e.org/x".into(), licence: "MIT".into(), snippet: "x".into() }],
        ..TranscriptTurn::default()
    }
}

fn session_of(turns: &[TranscriptTurn]) -> TranscriptSession {
    let mut session = TranscriptSession::new(TranscriptSource::CopilotCli, "s1");
    session.title = Some("A *small* session".into());
    session.created_at = Some(Timestamp(1_700_000_000_000));
    session.workspace.folders = vec![FileLocation::local("/w")];
    turns.iter().for_each(|turn| session.count(turn));
    session
}

/// Every session of our own cases, and every recorded one if the recordings are present.
fn recorded() -> Vec<(PathBuf, TranscriptSession, Vec<TranscriptTurn>)> {
    let mut found = Vec::new();
    for (source, folders) in [
        (
            TranscriptSource::VsCode,
            ["vscode/copilot-chat-json", "vscode/copilot-chat-export", "vscode/copilot-chat-jsonl"],
        ),
        (
            TranscriptSource::CopilotCli,
            ["copilot-cli/local-acp-mode", "copilot-cli/local-prompt-mode", "copilot-cli/local-sdk-full-and-forks"],
        ),
    ] {
        let mut open: Vec<PathBuf> =
            folders.iter().flat_map(|folder| both(folder)).filter(|folder| folder.is_dir()).collect();
        if source == TranscriptSource::VsCode {
            open.push(Path::new(env!("CARGO_MANIFEST_DIR")).join("../history/tests/cases/vscode/jsonl-full-3-turns"));
        }
        while let Some(path) = open.pop() {
            if path.is_dir() {
                open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                continue;
            }
            let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            let is_session = match source {
                TranscriptSource::VsCode => matches!(extension, "json" | "jsonl"),
                _ => path.file_name().is_some_and(|name| name == "events.jsonl"),
            };
            if !is_session {
                continue;
            }
            let (session, turns) =
                read_with_turns(reader_of(source), &SessionLocation::of_file(source, &path).unwrap()).unwrap();
            if !turns.is_empty() {
                found.push((path, session, turns));
            }
        }
    }
    assert!(!found.is_empty(), "there are cases of our own");
    found
}

#[test]
fn json_is_the_normal_form_whole() {
    let turns = vec![turn(), TranscriptTurn { id: "t2".into(), ..TranscriptTurn::default() }];
    let mut sessions = vec![(PathBuf::new(), session_of(&turns), turns)];
    sessions.extend(recorded());
    for (path, session, turns) in sessions {
        #[derive(serde::Deserialize)]
        struct SessionWithTurns {
            session: TranscriptSession,
            turns: Vec<TranscriptTurn>,
        }
        let whole: SessionWithTurns = serde_json::from_str(&written(Form::Json, &session, &turns)).unwrap();
        assert_eq!((whole.session, whole.turns), (session, turns), "{}", path.display());
    }
}
