//! Projects core's state to version 1: a session together with its main chat.
//!
//! Version 1 does not see a tool call whose input is being streamed, the output of a running call, a question to the
//! person, queue, steering, drafts, other chats, settings and the clients that take part.

use std::sync::Arc;

use grove_core as core;

use super::state::*;
use crate::turn_encodings;

/// The text of a withheld result, in the action and in the state alike.
pub(super) const RESULT_WITHHELD: &str = "Result withheld";

pub fn root(root: &core::Root) -> RootState {
    RootState { agents: root.agents.iter().map(agent).collect() }
}

pub fn agent(agent: &core::AgentInfo) -> AgentInfo {
    AgentInfo {
        provider: agent.id.to_string(),
        display_name: agent.display_name.clone(),
        description: agent.description.clone(),
        models: agent
            .models
            .iter()
            .map(|model| ModelInfo {
                id: model.id.to_string(),
                provider: agent.id.to_string(),
                name: model.name.clone(),
                max_context_window: model.max_context_window,
                supports_vision: model.supports_vision,
            })
            .collect(),
    }
}

pub fn summary(session: &core::Session) -> SessionSummary {
    SessionSummary {
        resource: session.uri.to_string(),
        provider: session.agent.to_string(),
        title: session.title.clone(),
        status: session.main_chat().map_or(SessionStatus::Idle, |chat| match chat.status() {
            core::ChatStatus::Idle => SessionStatus::Idle,
            core::ChatStatus::InProgress | core::ChatStatus::InputNeeded => SessionStatus::InProgress,
            core::ChatStatus::Error => SessionStatus::Error,
        }),
        created_at: session.created_at.0,
        modified_at: session.modified_at.0,
        model: session.model.as_ref().map(ToString::to_string),
        working_directory: session.working_directories.first().cloned(),
    }
}

/// The complete session with all turns.
pub fn session(session: &core::Session) -> SessionState {
    let chat = session.main_chat();
    SessionState {
        summary: summary(session),
        lifecycle: lifecycle(session),
        creation_error: creation_error(session),
        turns: chat.iter().flat_map(|chat| &chat.turns).map(|turn| self::turn(&session.id, turn)).collect(),
        active_turn: chat.and_then(|chat| chat.active.as_deref()).map(|active| active_turn(&session.id, active)),
    }
}

/// The session as JSON, with encoded turns. The same as [`session`] with only those turns.
pub fn session_json(session: &core::Session, turns: &[Arc<str>]) -> serde_json::Result<String> {
    let mut json = format!(
        r#"{{"summary":{},"lifecycle":{}"#,
        serde_json::to_string(&summary(session))?,
        serde_json::to_string(&lifecycle(session))?
    );
    if let Some(error) = creation_error(session) {
        json.push_str(r#","creationError":"#);
        json.push_str(&serde_json::to_string(&error)?);
    }
    json.push_str(r#","turns":["#);
    json.push_str(&turns.join(","));
    json.push(']');
    if let Some(active) = session.main_chat().and_then(|chat| chat.active.as_deref()) {
        json.push_str(r#","activeTurn":"#);
        json.push_str(&serde_json::to_string(&active_turn(&session.id, active))?);
    }
    json.push('}');
    Ok(json)
}

/// A finished turn as JSON, encoded once and cached with the turn.
pub fn turn_json(session: &core::SessionId, turn: &core::Turn) -> Arc<str> {
    turn_encodings::v1(turn, || {
        // Plain data with string keys always serializes; the fallback is an empty turn.
        serde_json::to_string(&self::turn(session, turn)).unwrap_or_else(|_| "{}".to_owned())
    })
}

fn lifecycle(session: &core::Session) -> Lifecycle {
    match session.lifecycle {
        core::Lifecycle::Creating => Lifecycle::Creating,
        core::Lifecycle::Ready => Lifecycle::Ready,
        core::Lifecycle::CreationFailed(_) => Lifecycle::CreationFailed,
    }
}

fn creation_error(session: &core::Session) -> Option<ErrorInfo> {
    match &session.lifecycle {
        core::Lifecycle::CreationFailed(error) => Some(self::error(error)),
        core::Lifecycle::Creating | core::Lifecycle::Ready => None,
    }
}

pub fn turn(session: &core::SessionId, turn: &core::Turn) -> Turn {
    // The error that ended the turn is its last part; version 1 does not see earlier ones, which did not end it.
    let error = match (turn.outcome, turn.parts.last()) {
        (core::Outcome::Error, Some(core::Part::Error(error))) => Some(self::error(error)),
        _ => None,
    };
    let state = match turn.outcome {
        core::Outcome::Complete => TurnState::Complete,
        core::Outcome::Cancelled => TurnState::Cancelled,
        core::Outcome::Error => TurnState::Error,
    };
    let contents = TurnContents::of(session, &turn.parts);
    contents.into_active(&turn.id, &turn.message, turn.usage.as_ref()).finish(state, error.as_ref())
}

fn active_turn(session: &core::SessionId, active: &core::ActiveTurn) -> ActiveTurn {
    TurnContents::of(session, active.parts()).into_active(&active.id, &active.message, active.usage.as_ref())
}

/// A turn's parts in version 1.
#[derive(Default)]
struct TurnContents<'a> {
    streaming_text: String,
    reasoning: String,
    response_parts: Vec<ResponsePart>,
    calls: Vec<(u32, &'a core::ToolCall)>,
}

impl<'a> TurnContents<'a> {
    fn of(session: &core::SessionId, parts: &'a [core::Part]) -> Self {
        let mut contents = Self::default();
        for part in parts {
            match part {
                core::Part::Text(text) if text.delivery == core::Delivery::Streamed => {
                    contents.streaming_text.push_str(&text.content);
                }
                core::Part::Reasoning { content, .. } => contents.reasoning.push_str(content),
                core::Part::ToolCall(call) => contents.calls.extend(call.ready_rank.map(|rank| (rank, &**call))),
                core::Part::Text(_)
                | core::Part::Content(_)
                | core::Part::Error(_)
                | core::Part::InputRequest(_)
                | core::Part::Plan(_)
                | core::Part::Notice(_) => contents.response_parts.extend(response_part(session, part)),
            }
        }
        contents.calls.sort_by_key(|(rank, _)| *rank);
        contents
    }

    fn into_active(self, id: &core::TurnId, message: &core::Message, usage: Option<&core::Usage>) -> ActiveTurn {
        let pending = self.calls.iter().filter_map(|(_, call)| match &call.status {
            core::ToolCallStatus::PendingConfirmation(pending) => Some(permission(pending, &call.id)),
            _ => None,
        });
        ActiveTurn {
            id: id.to_string(),
            user_message: user_message(message),
            pending_permissions: pending.map(|request| (request.request_id.clone(), request)).collect(),
            tool_calls: self.calls.iter().map(|(_, call)| (call.id.to_string(), tool_call(call))).collect(),
            streaming_text: self.streaming_text,
            response_parts: self.response_parts,
            reasoning: self.reasoning,
            usage: usage.map(self::usage),
        }
    }
}

/// A part that version 1 has as such.
pub(super) fn response_part(session: &core::SessionId, part: &core::Part) -> Option<ResponsePart> {
    match part {
        core::Part::Text(text) if text.delivery == core::Delivery::Whole => {
            Some(ResponsePart::Markdown { content: text.content.clone() })
        }
        core::Part::Content(content) => Some(ResponsePart::ContentRef {
            uri: content_uri(session, &content.id),
            size_hint: Some(content.size),
            mime_type: content.mime_type.clone(),
        }),
        core::Part::Plan(entries) => Some(ResponsePart::Markdown { content: plan_text(entries) }),
        core::Part::Notice(notice) => Some(ResponsePart::Markdown { content: notice.clone() }),
        core::Part::Text(_)
        | core::Part::Reasoning { .. }
        | core::Part::ToolCall(_)
        | core::Part::Error(_)
        | core::Part::InputRequest(_) => None,
    }
}

/// A plan as a Markdown task list.
pub fn plan_text(entries: &[core::PlanEntry]) -> String {
    let line = |entry: &core::PlanEntry| {
        // An entry of several lines would end the list.
        let content = entry.content.split_whitespace().collect::<Vec<_>>().join(" ");
        match entry.status {
            core::PlanStatus::Completed => format!("- [x] {content}"),
            core::PlanStatus::InProgress => format!("- [ ] **{content}**"),
            core::PlanStatus::Pending => format!("- [ ] {content}"),
        }
    };
    entries.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The scheme of the URIs under which stored bodies are fetched.
const CONTENT_SCHEME: &str = "grove-content://";

/// The URI of a stored body.
pub fn content_uri(session: &core::SessionId, content: &core::ContentId) -> String {
    format!("{CONTENT_SCHEME}{session}/{content}")
}

/// The session and body that a content URI names.
pub fn parse_content_uri(uri: &str) -> Option<(core::SessionId, core::ContentId)> {
    let (session, content) = uri.strip_prefix(CONTENT_SCHEME)?.split_once('/')?;
    (!session.is_empty() && !content.is_empty()).then(|| (session.into(), content.into()))
}

fn tool_call(call: &core::ToolCall) -> ToolCallState {
    let (status, result) = match &call.status {
        core::ToolCallStatus::Streaming
        | core::ToolCallStatus::Ready
        | core::ToolCallStatus::Running
        | core::ToolCallStatus::PendingResultConfirmation(_) => (ToolCallStatus::Running, None),
        core::ToolCallStatus::PendingConfirmation(_) => (ToolCallStatus::PendingPermission, None),
        core::ToolCallStatus::Completed(result) if result.success => {
            (ToolCallStatus::Completed, Some(tool_result(result)))
        }
        core::ToolCallStatus::Completed(result) => (ToolCallStatus::Failed, Some(tool_result(result))),
        core::ToolCallStatus::Cancelled(cancellation) => match cancellation.reason {
            core::CancelReason::Denied | core::CancelReason::Skipped => (ToolCallStatus::Failed, None),
            core::CancelReason::ResultDenied => (ToolCallStatus::Failed, Some(withheld_result())),
        },
    };
    let (message, input) = match call.announced.as_deref() {
        Some(announced) => (&announced.message, &announced.input),
        None => (&call.invocation_message, &call.input),
    };
    let started = started_call(&call.names(), message, input.as_deref());
    match result {
        None => ToolCallState { status, ..started },
        Some(result) => ToolCallState {
            status,
            success: Some(result.success),
            past_tense_message: Some(result.past_tense_message),
            tool_output: result.tool_output,
            ..started
        },
    }
}

/// A call as version 1 first sees it.
pub(super) fn started_call(call: &core::NewToolCall, invocation_message: &str, input: Option<&str>) -> ToolCallState {
    ToolCallState {
        tool_call_id: call.id.to_string(),
        tool_name: call.name.clone(),
        display_name: call.display_name.clone(),
        invocation_message: invocation_message.to_owned(),
        tool_input: input.map(ToOwned::to_owned),
        tool_kind: (call.kind == Some(core::ToolKind::Terminal)).then_some(ToolKind::Terminal),
        language: call.language.clone(),
        status: ToolCallStatus::Running,
        success: None,
        past_tense_message: None,
        tool_output: None,
    }
}

pub(super) fn tool_result(result: &core::ToolResult) -> ToolCallResult {
    ToolCallResult {
        success: result.success,
        past_tense_message: result.past_tense_message.clone(),
        tool_output: result.output.clone(),
    }
}

pub(super) fn withheld_result() -> ToolCallResult {
    ToolCallResult { success: false, past_tense_message: RESULT_WITHHELD.to_owned(), tool_output: None }
}

pub(super) fn permission(request: &core::PermissionRequest, call: &core::ToolCallId) -> PermissionRequest {
    PermissionRequest {
        request_id: request.id.to_string(),
        permission_kind: match request.kind {
            core::PermissionKind::Shell => PermissionKind::Shell,
            core::PermissionKind::Write => PermissionKind::Write,
            core::PermissionKind::Mcp => PermissionKind::Mcp,
            core::PermissionKind::Read => PermissionKind::Read,
            core::PermissionKind::Url => PermissionKind::Url,
        },
        tool_call_id: Some(call.to_string()),
        path: request.path.clone(),
        full_command_text: request.full_command_text.clone(),
        intention: request.intention.clone(),
    }
}

pub(super) fn user_message(message: &core::Message) -> UserMessage {
    let attachments = attachments(message);
    UserMessage { text: message.text.clone(), attachments: (!attachments.is_empty()).then_some(attachments) }
}

/// The attachments of a message, in the form in which clients send them.
pub fn attachments(message: &core::Message) -> Vec<Attachment> {
    let attachment = |attachment: &core::Attachment| Attachment {
        kind: match attachment.kind {
            core::AttachmentKind::File => AttachmentKind::File,
            core::AttachmentKind::Directory => AttachmentKind::Directory,
            core::AttachmentKind::Selection => AttachmentKind::Selection,
        },
        path: attachment.path.clone(),
        display_name: attachment.display_name.clone(),
    };
    message.attachments.iter().map(attachment).collect()
}

pub(super) fn usage(usage: &core::Usage) -> UsageInfo {
    UsageInfo {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        model: usage.model.as_ref().map(ToString::to_string),
        cache_read_tokens: usage.cache_read_tokens,
    }
}

pub(super) fn error(error: &core::ErrorInfo) -> ErrorInfo {
    ErrorInfo { error_type: error.kind.clone(), message: error.message.clone(), stack: error.stack.clone() }
}
