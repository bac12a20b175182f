//! The event of a step. It is derived from the turn alone, so that it is the same at any time.

use grove_core::{self as core, CancelReason, Part, ToolCall, ToolCallStatus};
use serde_json::{Value, json};

use super::ids;
use super::steps::{ProjectedTurn, StepKind, StepPosition, TurnStep, leading_parts};
use crate::ahp::time;
use crate::copilot::decode;
use crate::copilot::events::*;
use crate::copilot::methods::{
    Attachment, AttachmentSelectionRange, BlobAttachment, DirectoryAttachment, FileAttachment, SelectionAttachment,
    SessionContext,
};
use crate::copilot::{Event, EventId};

/// The version of the events.
const VERSION: u64 = 1;
/// The producer of the events.
const PRODUCER: &str = "grove";

/// The first event of a session.
pub fn start(session: &core::Session) -> Event {
    let started_at = time::text(session.created_at);
    let start = SessionStart {
        session_id: session.id.to_string(),
        version: VERSION,
        producer: PRODUCER.to_owned(),
        copilot_version: env!("CARGO_PKG_VERSION").to_owned(),
        start_time: started_at.clone(),
        selected_model: session.model.as_ref().map(core::ModelId::to_string),
        context: SessionContext::of(session),
    };
    Event {
        id: ids::start_id(&session.id),
        timestamp: started_at,
        parent_id: None,
        ephemeral: false,
        agent_id: None,
        data: start.into(),
    }
}

/// The event of a step, after `parent`, with the time of its turn.
pub(super) fn event(session: &core::SessionId, turn: ProjectedTurn<'_>, step: TurnStep, parent: EventId) -> Event {
    let at = match (step.at, turn.end) {
        (StepPosition::End, Some((_, ended_at))) => ended_at,
        (StepPosition::Beginning | StepPosition::Part(_) | StepPosition::End, _) => turn.started_at,
    };
    Event {
        id: ids::step(session, turn, step),
        timestamp: time::text(at),
        parent_id: Some(parent),
        ephemeral: false,
        agent_id: None,
        data: data(session, turn, step),
    }
}

pub(super) fn data(session: &core::SessionId, turn: ProjectedTurn<'_>, step: TurnStep) -> EventData {
    let part = turn.parts.get(step.place());
    let model = || turn.message.model.as_ref().map(core::ModelId::to_string);
    let turn_id = turn.id.to_string();
    match (step.what, part) {
        (StepKind::UserMessage, _) => user_message(turn).into(),
        (StepKind::TurnStart, _) => TurnStart { turn_id, model: model() }.into(),
        (StepKind::Text, _) => assistant_message(session, turn, step.place(), Vec::new()).into(),
        (StepKind::Request, Some(Part::ToolCall(call))) => {
            assistant_message(session, turn, step.place(), vec![tool_request(call)]).into()
        }
        (StepKind::Reasoning, Some(Part::Reasoning { id, content })) => {
            Reasoning { reasoning_id: id.to_string(), content: content.clone() }.into()
        }
        (StepKind::ToolStart, Some(Part::ToolCall(call))) => ToolStart {
            tool_call_id: call.id.to_string(),
            tool_name: call.name.clone(),
            arguments: Some(announced_arguments(call)),
            turn_id: Some(turn_id),
        }
        .into(),
        (StepKind::ToolComplete, Some(Part::ToolCall(call))) => tool_complete(call, turn_id).into(),
        (StepKind::Info, Some(Part::Notice(notice))) => {
            SessionInfo { info_type: "notification".to_owned(), message: notice.clone(), ..SessionInfo::default() }
                .into()
        }
        (StepKind::Info, Some(Part::Content(content))) => content_info(content).into(),
        (StepKind::Warning, Some(Part::Error(error))) => {
            SessionWarning { warning_type: error.kind.clone(), message: error.message.clone(), url: None }.into()
        }
        (StepKind::Abort, _) => Abort { reason: "user_initiated".to_owned() }.into(),
        (StepKind::Failure, _) => match turn.failure().and_then(|at| turn.parts.get(at)) {
            Some(Part::Error(error)) => session_error(error).into(),
            _ => session_error(&core::ErrorInfo::new("failed", "the turn failed for an unknown reason")).into(),
        },
        (StepKind::TurnEnd, _) => TurnEnd { turn_id }.into(),
        // A step is made for its own part: no other gets here.
        (
            StepKind::Request
            | StepKind::Reasoning
            | StepKind::ToolStart
            | StepKind::ToolComplete
            | StepKind::Info
            | StepKind::Warning,
            _,
        ) => SessionInfo::default().into(),
    }
}

pub(super) fn session_error(error: &core::ErrorInfo) -> SessionError {
    SessionError {
        error_type: error.kind.clone(),
        message: error.message.clone(),
        stack: error.stack.clone(),
        url: None,
    }
}

/// The message whose text is in part `at`, or that requests this call.
fn assistant_message(
    session: &core::SessionId,
    turn: ProjectedTurn<'_>,
    at: usize,
    tool_requests: Vec<ToolRequest>,
) -> AssistantMessage {
    let leading_parts = leading_parts(turn.parts, at);
    let content = match leading_parts.text.and_then(|text| turn.parts.get(text)) {
        Some(Part::Text(text)) => text.content.clone(),
        _ => String::new(),
    };
    let reasoning_text = match leading_parts.reasoning.and_then(|reasoning| turn.parts.get(reasoning)) {
        Some(Part::Reasoning { content, .. }) => Some(content.clone()),
        _ => None,
    };
    AssistantMessage {
        message_id: ids::message(session, turn, leading_parts.text.unwrap_or(at)).to_string(),
        model: turn.message.model.as_ref().map(core::ModelId::to_string),
        content,
        tool_requests: Some(tool_requests),
        reasoning_text,
        turn_id: Some(turn.id.to_string()),
    }
}

fn user_message(turn: ProjectedTurn<'_>) -> UserMessage {
    let message = turn.message;
    let source = match message.origin {
        core::MessageOrigin::User => None,
        core::MessageOrigin::Agent => Some("agent"),
        core::MessageOrigin::Tool => Some("tool"),
        core::MessageOrigin::Automation => Some("automation"),
        core::MessageOrigin::SystemNotification => Some("system"),
    };
    let own = message.extra.as_ref().and_then(|extra| extra.get(decode::EXTRA));
    let attachments = original(message, own).unwrap_or_else(|| attachments(message));
    UserMessage {
        agent_mode: own.and_then(|own| own.get("agentMode")?.as_str().map(str::to_owned)),
        content: message.text.clone(),
        message_id: Some(turn.id.to_string()),
        attachments: Some(attachments).filter(|attachments| !attachments.is_empty()),
        source: source.map(str::to_owned),
    }
}

/// A message's attachments as they came from a client of this protocol, with the bytes of those that have some.
fn original(message: &core::Message, own: Option<&Value>) -> Option<Vec<Attachment>> {
    let own = own?.get("attachments")?;
    let mut kept: Vec<Attachment> = serde_json::from_value(own.clone()).ok()?;
    let mut bytes = attachments(message).into_iter().filter_map(|attachment| match attachment {
        Attachment::Blob(blob) => blob.data,
        _ => None,
    });
    for attachment in &mut kept {
        if let Attachment::Blob(blob) = attachment {
            blob.data = bytes.next();
        }
    }
    Some(kept)
}

/// A message's attachments. Embedded bytes are kept in the Agent Host Protocol's types.
fn attachments(message: &core::Message) -> Vec<Attachment> {
    let modelled = message.attachments.iter().map(attachment);
    let ahp_attachments = crate::ahp::project::message(message).attachments.unwrap_or_default();
    let blobs = ahp_attachments.into_iter().filter_map(|attachment| match attachment {
        crate::ahp::MessageAttachment::EmbeddedResource(blob) => Some(Attachment::Blob(BlobAttachment {
            data: Some(blob.data),
            mime_type: Some(blob.content_type),
            display_name: Some(blob.label),
        })),
        _ => None,
    });
    modelled.chain(blobs).collect()
}

fn attachment(attachment: &core::Attachment) -> Attachment {
    let path = file_path(&attachment.path);
    let display_name = Some(attachment.display_name.clone().unwrap_or_else(|| path.clone()));
    match attachment.kind {
        core::AttachmentKind::File => Attachment::File(FileAttachment { path, display_name, line_range: None }),
        core::AttachmentKind::Directory => Attachment::Directory(DirectoryAttachment { path, display_name }),
        core::AttachmentKind::Selection => Attachment::Selection(SelectionAttachment {
            file_path: path,
            display_name,
            // Core does not know the range in the file; readers require the text.
            text: Some(String::new()),
            selection: Some(AttachmentSelectionRange::default()),
        }),
    }
}

/// A file's URI as a path; anything else unchanged.
fn file_path(uri: &str) -> String {
    crate::file_uri::to_path(uri).unwrap_or_else(|| uri.to_owned())
}

fn tool_request(call: &ToolCall) -> ToolRequest {
    ToolRequest {
        tool_call_id: call.id.to_string(),
        name: call.name.clone(),
        arguments: Some(announced_arguments(call)),
        kind: Some("function".to_owned()),
        tool_title: title(call),
        intention_summary: None,
    }
}

fn title(call: &ToolCall) -> Option<String> {
    Some(call.display_name.clone()).filter(|title| !title.is_empty() && *title != call.name)
}

/// A call's arguments when it became ready: they were sent then and are not replaced.
fn announced_arguments(call: &ToolCall) -> Value {
    let input = match &call.announced {
        Some(announced) => announced.input.as_deref(),
        None => call.input.as_deref(),
    };
    arguments(call, input)
}

/// A call's input as arguments: always an object.
pub(super) fn arguments(call: &ToolCall, input: Option<&str>) -> Value {
    let Some(input) = input else { return json!({}) };
    match serde_json::from_str(input) {
        Ok(Value::Object(arguments)) => Value::Object(arguments),
        _ if call.kind == Some(core::ToolKind::Terminal) => json!({ "command": input }),
        _ => json!({ "input": input }),
    }
}

/// The result of a call. A call without a result in a finished turn was interrupted.
fn tool_complete(call: &ToolCall, turn_id: String) -> ToolComplete {
    let failed = |message: String, code: &str| ToolError { message, code: Some(code.to_owned()) };
    let (result, error) = match &call.status {
        ToolCallStatus::Completed(result) => {
            let content = result.output.clone().unwrap_or_else(|| result.past_tense_message.clone());
            match result.success {
                true => (Some(ToolResult { content, detailed_content: None }), None),
                false => (None, Some(failed(content, "failure"))),
            }
        }
        ToolCallStatus::Cancelled(cancellation) => {
            let why = match cancellation.reason {
                CancelReason::Denied => "Permission denied",
                CancelReason::Skipped => "The call was passed over",
                CancelReason::ResultDenied => "The call ran, and its result was withheld",
            };
            let message = match feedback(cancellation.extra.as_ref()) {
                Some(feedback) => format!("{why}: {feedback}"),
                None => format!("{why}."),
            };
            (None, Some(failed(message, "denied")))
        }
        ToolCallStatus::Streaming
        | ToolCallStatus::Ready
        | ToolCallStatus::PendingConfirmation(_)
        | ToolCallStatus::Running
        | ToolCallStatus::PendingResultConfirmation(_) => {
            (None, Some(failed("The call was cut off before it gave a result.".to_owned(), "interrupted")))
        }
    };
    let success = error.is_none();
    ToolComplete { tool_call_id: call.id.to_string(), success, result, error, turn_id: Some(turn_id) }
}

/// A person's comment on a denial.
pub(super) fn feedback(extra: Option<&core::Extra>) -> Option<String> {
    let message = extra?.get("reasonMessage")?;
    let text = message.as_str().or_else(|| message.get("markdown")?.as_str())?;
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

fn content_info(content: &core::ContentRef) -> SessionInfo {
    let kind = content.mime_type.as_deref().unwrap_or("of no known type");
    SessionInfo {
        info_type: "content".to_owned(),
        message: format!("A body of {} bytes ({kind}) is stored as {}.", content.size, content.id),
        ..SessionInfo::default()
    }
}
