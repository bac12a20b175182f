//! A chat, its turns and their parts.

use grove_core as core;
use std::sync::Arc;

use super::input::{input_request, outcome};
use super::message::{message, pending};
use super::tool_call::{finished_call, tool_call};
use super::{activity, extra, flags};
use crate::ahp::uri::{SessionUris, Spelling};
use crate::ahp::*;
use crate::turn_encodings;
use crate::v1::project::{content_uri, plan_text};

/// A chat with all its loaded turns.
pub fn chat(session: &core::SessionId, chat: &core::Chat, names: &SessionUris, spelling: Spelling) -> ChatState {
    let turns = chat.turns.iter().map(|turn| self::turn(session, turn)).collect();
    let cursor = chat.turns.first().filter(|_| chat.has_older_turns).map(|turn| turn.id.to_string());
    ChatState { turns, turns_next_cursor: cursor, ..chat_without_turns(session, chat, names, spelling) }
}

/// A chat as JSON, with encoded turns, and a cursor if there are older ones.
pub fn chat_json(
    session: &core::SessionId,
    chat: &core::Chat,
    turns: &[Arc<str>],
    cursor: Option<String>,
    names: &SessionUris,
    spelling: Spelling,
) -> serde_json::Result<String> {
    with_turns(&ChatState { turns_next_cursor: cursor, ..chat_without_turns(session, chat, names, spelling) }, turns)
}

/// Inserts encoded turns into a chat that was projected without turns.
pub(super) fn with_turns(state: &ChatState, turns: &[Arc<str>]) -> serde_json::Result<String> {
    let json = serde_json::to_string(state)?;
    // No text of the state can contain this: quotes in a text are escaped.
    const NO_TURNS: &str = r#","turns":[]"#;
    Ok(json.replacen(NO_TURNS, &format!(r#","turns":[{}]"#, turns.join(",")), 1))
}

/// A finished turn as JSON, encoded once and cached with the turn.
pub fn turn_json(session: &core::SessionId, turn: &core::Turn) -> Arc<str> {
    turn_encodings::ahp(turn, || {
        // Plain data with string keys always serializes; the fallback is an empty turn.
        serde_json::to_string(&self::turn(session, turn)).unwrap_or_else(|_| "{}".to_owned())
    })
}

pub(super) fn chat_without_turns(
    session: &core::SessionId,
    chat: &core::Chat,
    names: &SessionUris,
    spelling: Spelling,
) -> ChatState {
    // A ready call is gated in the same batch; here it counts as gated already.
    let is_ready = |part: &core::Part| match part {
        core::Part::ToolCall(call) => call.status == core::ToolCallStatus::Ready,
        _ => false,
    };
    let activity = match chat.active.as_deref() {
        Some(active) if active.parts().iter().any(is_ready) => status::INPUT_NEEDED,
        _ => activity(chat.status()),
    };
    let queued: Vec<_> = chat.queued.iter().map(pending).collect();
    ChatState {
        resource: names.chat(&chat.id, spelling),
        title: chat.title.clone(),
        status: flags(activity, chat.is_read, chat.is_archived),
        modified_at: time::text(chat.modified_at),
        active_turn: chat.active.as_deref().map(|active| active_turn(session, active)),
        steering_message: chat.steering.as_ref().map(pending),
        queued_messages: Some(queued).filter(|queued| !queued.is_empty()),
        draft: chat.draft.as_ref().map(message),
        activity: chat.activity.clone(),
        origin: chat.origin.as_deref().and_then(|origin| super::session::origin(origin, names, spelling)),
        ..ChatState::default()
    }
}

pub(super) fn active_turn(session: &core::SessionId, active: &core::ActiveTurn) -> ActiveTurn {
    let parts = active.parts().iter().filter_map(|part| self::part(session, part));
    ActiveTurn {
        id: active.id.to_string(),
        started_at: time::text(active.started_at),
        message: message(&active.message),
        response_parts: parts.collect(),
        usage: active.usage.as_ref().map(usage),
    }
}

pub fn turn(session: &core::SessionId, turn: &core::Turn) -> Turn {
    let (state, ending) = match turn.outcome {
        core::Outcome::Complete => (TurnState::Complete, None),
        core::Outcome::Cancelled => (TurnState::Cancelled, None),
        core::Outcome::Error => (TurnState::Error, turn.parts.last()),
    };
    let parts = turn.parts.iter().filter_map(|part| match part {
        core::Part::ToolCall(call) => {
            Some(ResponsePart::ToolCall(Box::new(ToolCallResponsePart { tool_call: finished_call(session, call) })))
        }
        part => self::part(session, part),
    });
    let error = ending.and_then(|part| match part {
        core::Part::Error(error) => Some(ResponsePart::Error(error_part(error))),
        _ => None,
    });
    let duration = turn.ended_at.0.saturating_sub(turn.started_at.0);
    Turn {
        id: turn.id.to_string(),
        started_at: Some(time::text(turn.started_at)),
        duration: Some(i64::try_from(duration).unwrap_or(i64::MAX)),
        message: message(&turn.message),
        response_parts: parts.chain(error).collect(),
        usage: turn.usage.as_ref().map(usage),
        state,
    }
}

/// A part of a turn. This dialect has no place for an error that did not end the turn.
pub fn part(session: &core::SessionId, part: &core::Part) -> Option<ResponsePart> {
    Some(match part {
        core::Part::Text(text) => {
            ResponsePart::Markdown(MarkdownResponsePart { id: text.id.to_string(), content: text.content.clone() })
        }
        core::Part::Reasoning { id, content } => {
            ResponsePart::Reasoning(ReasoningResponsePart { id: id.to_string(), content: content.clone() })
        }
        core::Part::ToolCall(call) => {
            ResponsePart::ToolCall(Box::new(ToolCallResponsePart { tool_call: tool_call(session, call) }))
        }
        core::Part::Content(content) => ResponsePart::ContentRef(content_ref(session, content)),
        core::Part::Plan(entries) => ResponsePart::SystemNotification(SystemNotificationResponsePart {
            content: StringOrMarkdown::Markdown { markdown: plan_text(entries) },
            meta: extra([("plan", Some(serde_json::to_value(entries)))]),
        }),
        core::Part::Notice(notice) => ResponsePart::SystemNotification(SystemNotificationResponsePart {
            content: notice.as_str().into(),
            meta: None,
        }),
        core::Part::InputRequest(request) => ResponsePart::InputRequest(InputRequestResponsePart {
            request: input_request(request),
            response: request.outcome.map(outcome),
        }),
        core::Part::Error(_) => return None,
    })
}

/// The reference to a stored body.
pub(super) fn content_ref(session: &core::SessionId, content: &core::ContentRef) -> ContentRef {
    ContentRef {
        uri: content_uri(session, &content.id),
        size_hint: Some(content.size),
        content_type: content.mime_type.clone(),
        nonce: None,
    }
}

pub fn error_part(error: &core::ErrorInfo) -> ErrorResponsePart {
    ErrorResponsePart { error: self::error(error), resumable: None }
}

pub fn error(error: &core::ErrorInfo) -> ErrorInfo {
    ErrorInfo { error_type: error.kind.clone(), message: error.message.clone(), stack: error.stack.clone(), meta: None }
}

pub fn usage(usage: &core::Usage) -> UsageInfo {
    UsageInfo {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        model: usage.model.as_ref().map(ToString::to_string),
        cache_read_tokens: usage.cache_read_tokens,
        meta: extra([
            ("cacheWriteTokens", usage.cache_write_tokens.map(|tokens| Ok(tokens.into()))),
            ("reasoningTokens", usage.reasoning_tokens.map(|tokens| Ok(tokens.into()))),
            ("context", usage.context.as_ref().map(serde_json::to_value)),
            ("cost", usage.cost.as_ref().map(serde_json::to_value)),
        ]),
    }
}
