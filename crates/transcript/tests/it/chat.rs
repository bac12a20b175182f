//! Sessions in the format of Copilot Chat, read again by the reader of VS Code's.

use std::collections::HashSet;

use grove_core::{Extra, MessageOrigin};
use grove_history::vscode::read_flat;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn again(session: &TranscriptSession, turns: &[TranscriptTurn]) -> (TranscriptSession, Vec<TranscriptTurn>) {
    let text = written(Form::CopilotChat, session, turns);
    let value: Value = serde_json::from_str(&text).unwrap();
    chat_schema::check(&value);
    let mut read = Vec::new();
    let session = read_flat(text.as_bytes(), "file", &mut |turn| read.push(turn)).unwrap();
    assert!(session.damage.marks.is_empty(), "{:?}", session.damage);
    (session, read)
}

/// A turn without data that the format has no place for, and with its defaults.
fn plain(turn: &TranscriptTurn) -> TranscriptTurn {
    let mut turn = turn.clone();
    turn.id.clear();
    (turn.response_id, turn.agent_session) = (None, None);
    turn.model_message_id = turn.model_message_id.filter(|id| !id.is_empty());
    // The model's texts between its calls are derived from the parts if they are not known.
    turn.rounds.clear();
    (turn.first_response_ms, turn.total_ms) = (None, None);
    turn.raw = Extra::new();
    turn.agent = None;
    let model = turn.model.take().filter(|model| !model.id.is_empty() || model.display_name.is_some());
    turn.model = model
        .map(|model| TranscriptModel { display_name: model.display_name.filter(|name| !name.is_empty()), ..model });
    if let Some(usage) = &mut turn.usage {
        (usage.cache_read_tokens, usage.cache_write_tokens, usage.reasoning_tokens) = (None, None, None);
    }
    turn.usage = turn.usage.filter(|usage| !usage.is_empty());
    let message = &mut turn.message;
    message.raw = Extra::new();
    if message.origin != MessageOrigin::SystemNotification {
        message.origin = MessageOrigin::User;
    }
    for attachment in &mut message.attachments {
        attachment.raw = Extra::new();
        attachment.foreign_kind.clear();
        attachment.place = attachment.place.as_ref().map(place);
        attachment.text = attachment.text.take().filter(|_| attachment.place.is_none());
    }
    turn.references = turn.references.iter().map(place).collect();
    turn.context = turn.context.iter().flat_map(|block| grove_history::blocks(&shown(block))).collect();
    for block in &mut turn.code_blocks {
        block.raw = Extra::new();
    }
    if let TurnOutcome::Failed(error) = &mut turn.outcome {
        error.stack = None;
    }
    turn.parts = plain_parts(&turn.parts, &mut HashSet::new(), true);
    turn
}

fn shown(block: &ContextBlock) -> String {
    match block.name.as_str() {
        "" => block.text.clone(),
        name => format!("<{name}>\n{}\n</{name}>", block.text),
    }
}

/// A location, in one form.
fn place(place: &FileLocation) -> FileLocation {
    FileLocation { path: Some(place.shown().to_owned()), range: place.range, ..FileLocation::default() }
}

fn plain_parts(parts: &[TranscriptPart], ids: &mut HashSet<String>, is_main: bool) -> Vec<TranscriptPart> {
    let mut plain: Vec<TranscriptPart> = Vec::new();
    for part in parts {
        match part {
            TranscriptPart::Text(text) => match plain.last_mut() {
                _ if text.is_empty() => {}
                Some(TranscriptPart::Text(before)) => before.push_str(text),
                _ => plain.push(part.clone()),
            },
            TranscriptPart::Reasoning { text, title, .. } if text.is_empty() && title.is_none() => {}
            TranscriptPart::Reasoning { .. } => plain.push(part.clone()),
            TranscriptPart::ToolCall(call) => {
                plain.push(TranscriptPart::ToolCall(Box::new(plain_call(call, ids, is_main))))
            }
            TranscriptPart::Edit(edit) => plain.extend(plain_edits(edit)),
            TranscriptPart::Question(question) => {
                let answer = match question.answer.as_deref() {
                    Some(state @ ("accepted" | "rejected")) => state,
                    Some("not answered") | None => "not answered",
                    Some(_) => "answered",
                };
                let question = Question { answer: Some(answer.into()), raw: Extra::new(), ..question.clone() };
                plain.push(TranscriptPart::Question(question));
            }
            TranscriptPart::Notice(notice) if notice.text.is_empty() => {}
            TranscriptPart::Notice(notice) => {
                plain.push(TranscriptPart::Notice(Notice {
                    kind: String::new(),
                    text: notice.text.clone(),
                    raw: Extra::new(),
                }));
            }
            // Only VS Code's own raw parts are kept unchanged.
            TranscriptPart::Raw(value) => {
                let shown: String = value.to_string().chars().take(2_000).collect();
                let text = format!("Not understood: {shown}");
                plain.push(TranscriptPart::Notice(Notice { text, ..Notice::default() }));
            }
        }
    }
    plain
}

fn plain_edits(edit: &TranscriptEdit) -> Vec<TranscriptPart> {
    let bare = TranscriptEdit { place: place(&edit.place), ..TranscriptEdit::default() };
    let changes = TranscriptEdit { changes: edit.changes.clone(), ..bare.clone() };
    let rest = TranscriptEdit {
        kind: edit.kind,
        from: edit.from.as_ref().map(place),
        added: edit.added,
        removed: edit.removed,
        ..bare.clone()
    };
    let mut edits = Vec::new();
    if edit.changes.is_empty() || rest != bare {
        edits.push(TranscriptPart::Edit(Box::new(rest)));
    }
    if !edit.changes.is_empty() {
        edits.push(TranscriptPart::Edit(Box::new(changes)));
    }
    edits
}

fn plain_call(call: &TranscriptToolCall, ids: &mut HashSet<String>, is_main: bool) -> TranscriptToolCall {
    let mut call = call.clone();
    (call.raw, call.started_at, call.ended_at) = (Extra::new(), None, None);
    (call.model_id, call.shown_name) = (None, None);
    // A tool's kind follows from its name; without a name it is guessed from the text.
    if call.name == "unnamed" {
        call.kind = TranscriptToolKind::Other;
    }
    // A missing or duplicate id is replaced.
    if call.id.is_empty() || call.id.starts_with("call-") || !ids.insert(call.id.clone()) {
        call.id = "call".into();
    }
    call.provider = call.provider.filter(|label| label != "Built-In");
    call.intention = call.intention.filter(|words| *words != call.name);
    call.summary = call.summary.filter(|words| !words.is_empty());
    call.output = call.output.map(|output| ToolOutput { raw: None, ..output });
    let unknown = Approval::NotNeeded { reason: Some("unknown".into()) };
    if call.approval == unknown || call.approval == Approval::Waiting {
        call.approval = Approval::Unknown;
    }
    call.exit_code = call.exit_code.filter(|_| matches!(call.input, ToolInput::Command { .. }));
    if let ToolInput::Command { folder, language, .. } = &mut call.input {
        *folder = None;
        language.get_or_insert_with(|| "sh".into());
    }
    // The result's text leaves no room for the named files, or the other way round.
    call.places.clear();
    // An unknown input is an empty one there.
    call.raw_input = Some(call.raw_input.unwrap_or_else(|| json!({})));
    if !is_main || call.input != ToolInput::Generic {
        call.raw_input = None;
    }
    if let Some(chat) = call.subagent.take() {
        let parts: Vec<TranscriptPart> = chat.turns.into_iter().flat_map(|turn| turn.parts).collect();
        let turn = TranscriptTurn { parts: plain_parts(&parts, ids, false), ..TranscriptTurn::default() };
        call.subagent = (!turn.parts.is_empty())
            .then(|| Box::new(TranscriptChat { turns: vec![turn], ..TranscriptChat::default() }));
    }
    call
}

fn same(session: &TranscriptSession, turns: &[TranscriptTurn], what: &str) {
    let (read, read_turns) = again(session, turns);
    assert_eq!(read_turns.len(), turns.len(), "{what}");
    for (read, turn) in read_turns.iter().zip(turns) {
        let (mut read, turn) = (plain(read), plain(turn));
        // The format requires times; unknown ones are made up.
        read.started_at = read.started_at.filter(|_| turn.started_at.is_some());
        read.ended_at = read.ended_at.filter(|_| turn.ended_at.is_some());
        for (read, part) in read.parts.iter().zip(&turn.parts) {
            assert_eq!(read, part, "{what}");
        }
        assert_eq!(read, turn, "{what}");
    }
    assert_eq!(read.source_id, session.source_id, "{what}");
    assert_eq!((read.turns, read.turns_completed), (session.turns, session.turns_completed), "{what}");
    if session.title.is_some() {
        assert_eq!(read.title, session.title, "{what}");
    }
}

#[test]
fn a_session_with_everything_is_read_again_as_it_was() {
    let turns = [turn()];
    same(&session_of(&turns), &turns, "a sample");
}

#[test]
fn what_is_not_understood_is_told_in_words_and_stays_as_it_is_where_it_is_vs_codes_own() {
    let turns = [TranscriptTurn { parts: vec![TranscriptPart::Raw(json!({"kind": "new"}))], ..turn() }];
    let mut session = session_of(&turns);
    let told = |session: &TranscriptSession| again(session, &turns).1.remove(0).parts.remove(0);
    assert!(
        matches!(told(&session), TranscriptPart::Notice(notice) if notice.text.contains("Not understood: {\"kind\""))
    );
    session.source = TranscriptSource::VsCode;
    assert_eq!(told(&session), turns[0].parts[0]);
}

#[test]
fn what_vs_code_imports_is_there() {
    let turns = [turn()];
    let value: Value = serde_json::from_str(&written(Form::CopilotChat, &session_of(&turns), &turns)).unwrap();
    // Its import accepts any object with these two.
    assert!(value["requests"].is_array() && value["responderUsername"].is_string());
    let round = &value["requests"][0]["result"]["metadata"]["toolCallRounds"][0];
    assert_eq!((&round["response"], &round["toolCalls"][0]["id"]), (&json!("I **look**."), &json!("c1")));
}

#[test]
fn recorded_sessions_are_read_again_as_they_were() {
    for (path, session, turns) in recorded() {
        same(&session, &turns, &path.display().to_string());
    }
}

fn words() -> impl Strategy<Value = String> {
    "[a-zé𝄞<>&\"\\\\\n ]{0,12}"
}

fn word() -> impl Strategy<Value = String> {
    "[a-z]{1,8}"
}

fn a_place() -> impl Strategy<Value = FileLocation> {
    prop_oneof!["/[a-z é#%]{1,8}".prop_map(FileLocation::local), "[a-c]:\\\\[a-z]{1,5}".prop_map(FileLocation::local)]
}

fn an_input() -> impl Strategy<Value = (String, TranscriptToolKind, ToolInput, Option<Value>)> {
    prop_oneof![
        words().prop_map(|command| {
            let raw = json!({"command": command});
            let input = ToolInput::Command { command, folder: None, language: None, background: false };
            ("run_in_terminal".to_owned(), TranscriptToolKind::Shell, input, Some(raw))
        }),
        (word(), word()).prop_map(|(path, after)| {
            let raw = json!({"filePath": path, "newString": after, "oldString": "x"});
            let input =
                ToolInput::Edits(vec![Replacement { path, before: Some("x".into()), after, ..Replacement::default() }]);
            ("replace_string_in_file".to_owned(), TranscriptToolKind::Edit, input, Some(raw))
        }),
        vec(word(), 0..3).prop_map(|titles| {
            let item = |title: String| TodoItem { id: "1".into(), title, ..TodoItem::default() };
            let input = ToolInput::Todos(titles.into_iter().map(item).collect());
            ("manage_todo_list".to_owned(), TranscriptToolKind::Todo, input, None)
        }),
        (word(), words()).prop_map(|(name, said)| {
            let name = format!("mcp_{name}");
            (name, TranscriptToolKind::Other, ToolInput::Generic, Some(json!({"said": said})))
        }),
    ]
}

fn a_call() -> impl Strategy<Value = TranscriptToolCall> {
    let approval = prop_oneof![
        Just(Approval::Unknown),
        Just(Approval::NotNeeded { reason: None }),
        word().prop_map(|id| Approval::Setting { id: Some(id) }),
        word().prop_map(|scope| Approval::Remembered { scope: Some(scope) }),
        of(word()).prop_map(|button| Approval::Person { button }),
    ];
    let state = prop_oneof![Just(CallState::Complete), Just(CallState::Failed), Just(CallState::Interrupted)];
    let refused = prop_oneof![Just(Approval::Denied), Just(Approval::Skipped)].prop_map(|by| (by, CallState::Refused));
    let ends = prop_oneof![4 => (approval, state), 1 => refused];
    ("c?[a-d]?", an_input(), of(words()), ends, of(word()), of(word())).prop_map(
        |(id, (name, kind, input, raw_input), output, (approval, state), summary, provider)| TranscriptToolCall {
            id,
            name,
            kind,
            input,
            raw_input,
            output: output.map(|text| ToolOutput { text, raw: None }),
            approval,
            state,
            summary,
            provider,
            ..TranscriptToolCall::default()
        },
    )
}

fn a_part() -> impl Strategy<Value = TranscriptPart> {
    prop_oneof![
        words().prop_map(TranscriptPart::Text),
        (words(), of(word()), of(0..9_000_u64)).prop_map(|(text, title, duration_ms)| TranscriptPart::Reasoning {
            text,
            title,
            duration_ms
        }),
        a_call().prop_map(|call| TranscriptPart::ToolCall(Box::new(call))),
        (a_place(), of(0..9_u64), vec(word(), 0..3)).prop_map(|(place, added, texts)| {
            let changes = texts.into_iter().map(|text| TextChange { text, ..TextChange::default() }).collect();
            TranscriptPart::Edit(Box::new(TranscriptEdit { place, added, changes, ..TranscriptEdit::default() }))
        }),
        (words(), words(), of(word())).prop_map(|(title, message, answer)| {
            TranscriptPart::Question(Question { title, message, answer, raw: Extra::new() })
        }),
        word().prop_map(|text| TranscriptPart::Notice(Notice { kind: "note".into(), text, raw: Extra::new() })),
    ]
}

fn an_outcome() -> impl Strategy<Value = TurnOutcome> {
    prop_oneof![
        Just(TurnOutcome::Complete),
        Just(TurnOutcome::Cancelled),
        Just(TurnOutcome::Interrupted),
        (word(), words()).prop_map(|(kind, message)| TurnOutcome::Failed(ErrorInfo::new(kind, message))),
    ]
}

fn a_turn() -> impl Strategy<Value = TranscriptTurn> {
    let attachment = (word(), prop_oneof![a_place().prop_map(Ok), word().prop_map(Err)]).prop_map(|(name, content)| {
        let (kind, place, text) = match content {
            Ok(place) => (TranscriptAttachmentKind::File, Some(place), None),
            Err(text) => (TranscriptAttachmentKind::Text, None, Some(text)),
        };
        TranscriptAttachment { kind, name, place, text, ..TranscriptAttachment::default() }
    });
    let usage = (of(0..9_u64), of(0..9_u64)).prop_map(|(input_tokens, output_tokens)| TranscriptUsage {
        input_tokens,
        output_tokens,
        ..TranscriptUsage::default()
    });
    let said = (words(), vec(attachment, 0..3), of(word()));
    let facts = (an_outcome(), of(usage), of(word()), vec(a_place(), 0..2), of(1_u64..9_000_000));
    (said, vec(a_part(), 0..7), facts).prop_map(
        |((text, attachments, command), parts, (outcome, usage, model, references, ended))| TranscriptTurn {
            id: "t".into(),
            message: TranscriptMessage { text, attachments, command, ..TranscriptMessage::default() },
            parts,
            outcome,
            usage,
            model: model.map(|model| TranscriptModel::new(&format!("copilot/{model}"))),
            references,
            started_at: Some(Timestamp(5)),
            ended_at: Some(Timestamp(ended.unwrap_or(5))),
            ..TranscriptTurn::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_session_is_read_again_as_it_was(turns in vec(a_turn(), 0..4)) {
        let session = session_of(&turns);
        same(&session, &turns, "any");
    }
}
