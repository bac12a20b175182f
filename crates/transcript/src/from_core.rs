//! Converts Grove's own turns to the normal form: the inverse of [`core_turn`](crate::core_turn).
//!
//! Data without a place in core are kept on the message (`history`), and are read from there.

use grove_core::*;
use serde_json::Value;

use crate::HISTORY;
use crate::normal::TranscriptAttachmentKind as TranscriptKind;
use crate::normal::{
    Approval, CallState, EditKind, FileLocation, Notice, Question as TranscriptQuestion, TodoItem, TodoStatus,
    ToolInput, ToolOutput as TranscriptOutput, TranscriptAttachment, TranscriptEdit, TranscriptMessage,
    TranscriptModel, TranscriptPart, TranscriptToolCall, TranscriptToolKind, TranscriptTurn, TranscriptUsage,
    TurnOutcome,
};
use crate::tools;

/// The kind of the error for an unknown end.
const INTERRUPTED: &str = "interrupted";

/// The turn in the normal form.
pub fn transcript_turn(turn: &Turn) -> TranscriptTurn {
    let mut transcript = rest_of(&turn.message);
    transcript.id = turn.id.to_string();
    transcript.started_at = Some(turn.started_at);
    transcript.ended_at = Some(turn.ended_at);
    transcript.message.text.clone_from(&turn.message.text);
    transcript.message.origin = turn.message.origin;
    if transcript.message.attachments.is_empty() {
        transcript.message.attachments = turn.message.attachments.iter().map(attachment).collect();
    }
    let usage = turn.usage.as_ref();
    if transcript.model.is_none() {
        let model = usage.and_then(|usage| usage.model.as_ref()).or(turn.message.model.as_ref());
        transcript.model = model.map(|model| TranscriptModel::new(model.as_str()));
    }
    transcript.usage = transcript.usage.or_else(|| usage.map(self::usage));
    transcript.outcome = outcome(turn);
    transcript.parts = parts(turn);
    transcript
}

fn rest_of(message: &Message) -> TranscriptTurn {
    let rest = message.extra.as_ref().and_then(|extra| extra.get(HISTORY));
    rest.and_then(|rest| serde_json::from_value(rest.clone()).ok()).unwrap_or_else(|| TranscriptTurn {
        message: TranscriptMessage { raw: message.extra.clone().unwrap_or_default(), ..TranscriptMessage::default() },
        ..TranscriptTurn::default()
    })
}

fn attachment(attachment: &Attachment) -> TranscriptAttachment {
    let kind = match attachment.kind {
        AttachmentKind::File => TranscriptKind::File,
        AttachmentKind::Directory => TranscriptKind::Folder,
        AttachmentKind::Selection => TranscriptKind::Selection,
    };
    let place = FileLocation::local(&attachment.path);
    let name = attachment.display_name.clone().unwrap_or_else(|| place.name().to_owned());
    TranscriptAttachment { kind, name, place: Some(place), ..TranscriptAttachment::default() }
}

fn usage(usage: &Usage) -> TranscriptUsage {
    TranscriptUsage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cache_read_tokens: usage.cache_read_tokens,
        cache_write_tokens: usage.cache_write_tokens,
        reasoning_tokens: usage.reasoning_tokens,
        // Grove counts the cost of a session so far, not that of a turn.
        cost: None,
    }
}

fn outcome(turn: &Turn) -> TurnOutcome {
    let error = turn.parts.iter().rev().find_map(|part| match part {
        Part::Error(error) => Some(error),
        _ => None,
    });
    match (turn.outcome, error) {
        (Outcome::Complete, _) => TurnOutcome::Complete,
        (Outcome::Cancelled, _) => TurnOutcome::Cancelled,
        (Outcome::Error, Some(error)) if error.kind == INTERRUPTED => TurnOutcome::Interrupted,
        (Outcome::Error, Some(error)) => TurnOutcome::Failed(error.clone()),
        (Outcome::Error, None) => {
            TurnOutcome::Failed(ErrorInfo::new("agentFailed", "The turn failed; no reason given."))
        }
    }
}

fn parts(turn: &Turn) -> Vec<TranscriptPart> {
    let last_error = turn.parts.iter().rposition(|part| matches!(part, Part::Error(_)));
    // The error that ended a turn becomes its outcome.
    let final_error = last_error.filter(|_| turn.outcome == Outcome::Error);
    let mut parts = Vec::new();
    for (at, part) in turn.parts.iter().enumerate() {
        let notice = |kind: &str, text: String| {
            TranscriptPart::Notice(Notice { kind: kind.to_owned(), text, raw: Extra::new() })
        };
        match part {
            Part::Text(text) => parts.push(TranscriptPart::Text(text.content.clone())),
            Part::Reasoning { content, .. } => {
                parts.push(TranscriptPart::Reasoning { text: content.clone(), title: None, duration_ms: None });
            }
            Part::ToolCall(call) => add_call(&mut parts, call),
            Part::Content(content) => parts.push(notice("content", stored(content))),
            Part::Error(_) if final_error == Some(at) => {}
            Part::Error(error) => parts.push(notice("error", error.message.clone())),
            Part::InputRequest(request) => parts.push(TranscriptPart::Question(question(request))),
            Part::Plan(_) if is_told(parts.last(), part) => {}
            Part::Plan(steps) => {
                parts.push(notice("plan", crate::export::labels::todos(&steps.iter().map(todo).collect::<Vec<_>>())));
            }
            Part::Notice(text) => parts.push(notice("notice", text.clone())),
        }
    }
    parts
}

/// True if the call before a plan has the same contents.
fn is_told(before: Option<&TranscriptPart>, plan: &Part) -> bool {
    let (Some(TranscriptPart::ToolCall(call)), Part::Plan(steps)) = (before, plan) else { return false };
    match &call.input {
        ToolInput::Todos(items) => items.iter().map(|item| &item.title).eq(steps.iter().map(|step| &step.content)),
        _ => false,
    }
}

fn todo(step: &PlanEntry) -> TodoItem {
    let status = match step.status {
        PlanStatus::Pending => TodoStatus::NotStarted,
        PlanStatus::InProgress => TodoStatus::InProgress,
        PlanStatus::Completed => TodoStatus::Completed,
    };
    TodoItem { title: step.content.clone(), status, ..TodoItem::default() }
}

fn stored(content: &ContentRef) -> String {
    format!("{}, {} bytes, stored beside the log", content.mime_type.as_deref().unwrap_or("a body"), content.size)
}

fn add_call(parts: &mut Vec<TranscriptPart>, call: &ToolCall) {
    let kind = kind(call);
    let raw_input = call.input.as_ref().map(|text| match serde_json::from_str(text) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => value,
        _ => Value::String(text.clone()),
    });
    let mut input = match &raw_input {
        Some(Value::String(command)) if kind == TranscriptToolKind::Shell => {
            ToolInput::Command { command: command.clone(), folder: None, language: None, background: false }
        }
        // If only the meaning of an input was known, that is what was written.
        Some(input) => match tools::input_of(kind, input) {
            ToolInput::Generic => serde_json::from_value(input.clone()).unwrap_or_default(),
            understood => understood,
        },
        None => ToolInput::Generic,
    };
    if let ToolInput::Command { language, .. } = &mut input {
        language.clone_from(&call.language);
    }
    let result = match &call.status {
        ToolCallStatus::Completed(result) | ToolCallStatus::PendingResultConfirmation(result) => Some(result),
        _ => None,
    };
    let output = result.and_then(|result| result.output.clone()).or_else(|| Some(call.output.as_ref()?.text.clone()));
    let exit_code = result.and_then(|result| result.extra.as_ref()?.get("exitCode")?.as_i64());
    let labels = Some(call.invocation_message.clone()).filter(|labels| !labels.is_empty() && *labels != call.name);
    parts.push(TranscriptPart::ToolCall(Box::new(TranscriptToolCall {
        id: call.id.to_string(),
        name: call.name.clone(),
        shown_name: Some(call.display_name.clone()).filter(|name| !name.is_empty() && *name != call.name),
        kind,
        intention: call.intention.clone().or(labels),
        summary: result.map(|result| result.past_tense_message.clone()).filter(|labels| !labels.is_empty()),
        input,
        raw_input,
        output: output.map(|text| TranscriptOutput { text, raw: None }),
        approval: approval(call),
        state: state(call),
        exit_code,
        ran_ms: call.ran_ms,
        raw: call.extra.clone().unwrap_or_default(),
        ..TranscriptToolCall::default()
    })));
    let attached = result.map_or(&[][..], |result| result.attached.as_slice());
    for attached in attached {
        parts.push(match attached {
            ToolAttachment::Edit(change) => TranscriptPart::Edit(Box::new(edit(change))),
            ToolAttachment::Content(content) => {
                TranscriptPart::Notice(Notice { kind: "content".to_owned(), text: stored(content), raw: Extra::new() })
            }
        });
    }
}

fn kind(call: &ToolCall) -> TranscriptToolKind {
    let by_name = tools::tool_kind(&call.name);
    if by_name != TranscriptToolKind::Other {
        return by_name;
    }
    match call.kind {
        Some(ToolKind::Terminal) => TranscriptToolKind::Shell,
        Some(ToolKind::Read) => TranscriptToolKind::Read,
        Some(ToolKind::Edit | ToolKind::Delete | ToolKind::Move) => TranscriptToolKind::Edit,
        Some(ToolKind::Search) => TranscriptToolKind::Search,
        Some(ToolKind::Fetch) => TranscriptToolKind::Fetch,
        Some(ToolKind::Think | ToolKind::SwitchMode) | None => TranscriptToolKind::Other,
    }
}

fn approval(call: &ToolCall) -> Approval {
    match &call.status {
        ToolCallStatus::Cancelled(cancelled) => match cancelled.reason {
            CancelReason::Denied | CancelReason::ResultDenied => Approval::Denied,
            CancelReason::Skipped => Approval::Skipped,
        },
        ToolCallStatus::PendingConfirmation(_) => Approval::Waiting,
        _ => match &call.confirmed {
            None => Approval::Unknown,
            Some(Confirmation { by: ConfirmationReason::NotNeeded, .. }) => Approval::NotNeeded { reason: None },
            Some(Confirmation { by: ConfirmationReason::Setting, .. }) => Approval::Setting { id: None },
            Some(Confirmation { by: ConfirmationReason::Person, option }) => {
                Approval::Person { button: option.as_ref().map(|option| option.label.clone()) }
            }
        },
    }
}

fn state(call: &ToolCall) -> CallState {
    match &call.status {
        ToolCallStatus::Completed(result) | ToolCallStatus::PendingResultConfirmation(result) => {
            if result.success {
                CallState::Complete
            } else {
                CallState::Failed
            }
        }
        ToolCallStatus::Cancelled(_) => CallState::Refused,
        ToolCallStatus::Streaming
        | ToolCallStatus::Ready
        | ToolCallStatus::PendingConfirmation(_)
        | ToolCallStatus::Running => CallState::Interrupted,
    }
}

fn edit(change: &FileChange) -> TranscriptEdit {
    let kind = match (&change.before, &change.after) {
        (None, Some(_)) => EditKind::Create,
        (Some(_), None) => EditKind::Delete,
        _ => EditKind::Edit,
    };
    TranscriptEdit {
        kind,
        place: FileLocation::local(&change.path),
        added: Some(change.added),
        removed: Some(change.removed),
        ..TranscriptEdit::default()
    }
}

fn question(request: &InputRequest) -> TranscriptQuestion {
    let questions = request.questions.iter().map(|question| question.message.clone());
    let message: Vec<String> = request.message.clone().into_iter().chain(questions).collect();
    let answers = request.answers.values().map(|answer| match answer {
        Answer::Submitted(AnswerValue::Text(text)) => text.clone(),
        other => serde_json::to_value(other).map(|value| value.to_string()).unwrap_or_default(),
    });
    let answers: Vec<String> = answers.collect();
    let ended = request.outcome.map(|outcome| match outcome {
        InputOutcome::Accepted => "answered",
        InputOutcome::Declined => "declined",
        InputOutcome::Cancelled => "cancelled",
    });
    let answer = match answers.is_empty() {
        true => ended.map(str::to_owned),
        false => Some(answers.join("\n")),
    };
    let party = request.answered_by.as_deref().and_then(|party| serde_json::to_value(party).ok());
    let raw = party.into_iter().map(|party| (ANSWERED_BY.to_owned(), party)).collect();
    TranscriptQuestion { title: String::new(), message: message.join("\n"), answer, raw }
}
