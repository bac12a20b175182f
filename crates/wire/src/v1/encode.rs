//! Encodes core's events in version 1: each becomes one action, or nothing.

use grove_core::{self as core, Change, ChatEvent, Decision, Delivery, POLICY_RULE, RootEvent, SessionEvent};

use super::action::*;
use super::project;

/// The action of an event in version 1, if it has one. `uri` is the URI of the event's session.
pub fn action(event: &core::Event, uri: &str) -> Option<Action> {
    let (change, dated) = match &event.change {
        Change::Root(RootEvent::AgentsChanged(agents)) => {
            let agents = agents.iter().map(project::agent).collect();
            return Some(Action::Root(RootAction::AgentsChanged { agents }));
        }
        Change::Root(RootEvent::ActiveSessionsChanged(_)) => return None,
        Change::Session(_, event) => match session_message(event) {
            SessionMessage::Action(change, dated) => (change, dated),
            SessionMessage::Added | SessionMessage::Removed | SessionMessage::None => return None,
        },
        Change::Chat(session, chat, event) if chat.as_str() == core::Session::MAIN_CHAT => chat_change(session, event)?,
        Change::Chat(..) => return None,
    };
    let timestamp = match dated {
        TimestampUse::Include => Some(event.at.0),
        TimestampUse::Omit => None,
    };
    Some(Action::Session(SessionAction { session: uri.to_owned(), change, timestamp }))
}

/// The chat whose subscribers need a new snapshot after a change: version 1 has no action for a leaf that moves, for another
/// working directory, nor for a session without a model.
pub fn needs_snapshot(change: &Change) -> Option<(&core::SessionId, core::ChatId)> {
    match change {
        Change::Chat(session, chat, ChatEvent::TurnsCleared) => Some((session, chat.clone())),
        // Version 1 shows a session together with its main chat.
        Change::Session(session, SessionEvent::WorkingDirectoryChanged { .. } | SessionEvent::ModelReset) => {
            Some((session, core::Session::MAIN_CHAT.into()))
        }
        _ => None,
    }
}

/// The notification of an event in version 1, if it has one. `session` is its session after the event, or before its
/// removal.
pub fn notification(event: &SessionEvent, session: &core::Session) -> Option<Notification> {
    match session_message(event) {
        SessionMessage::Added => Some(Notification::SessionAdded { summary: project::summary(session) }),
        SessionMessage::Removed => Some(Notification::SessionRemoved { session: session.uri.to_string() }),
        SessionMessage::Action(..) | SessionMessage::None => None,
    }
}

/// The message of a session event to its subscribers, or to everybody.
#[expect(clippy::large_enum_variant, reason = "it is taken apart as soon as it is made")]
enum SessionMessage {
    Action(SessionChange, TimestampUse),
    Added,
    Removed,
    None,
}

/// The presence of a timestamp on an action. Actions that change `modifiedAt` have one.
enum TimestampUse {
    Include,
    Omit,
}

fn session_message(event: &SessionEvent) -> SessionMessage {
    match event {
        SessionEvent::Listed => SessionMessage::Added,
        SessionEvent::Removed => SessionMessage::Removed,
        SessionEvent::Ready => SessionMessage::Action(SessionChange::Ready, TimestampUse::Omit),
        SessionEvent::CreationFailed(error) => {
            let change = SessionChange::CreationFailed { error: project::error(error) };
            SessionMessage::Action(change, TimestampUse::Omit)
        }
        SessionEvent::TitleChanged(title) => {
            let change = SessionChange::TitleChanged { title: title.text().to_owned() };
            SessionMessage::Action(change, TimestampUse::Include)
        }
        SessionEvent::ModelChanged(model) => {
            SessionMessage::Action(SessionChange::ModelChanged { model: model.to_string() }, TimestampUse::Include)
        }
        // Its subscribers begin again with a snapshot.
        SessionEvent::ModelReset
        | SessionEvent::Created(_)
        | SessionEvent::ReadChanged(_)
        | SessionEvent::ArchivedChanged(_)
        | SessionEvent::ChatRowChanged(_)
        | SessionEvent::InputNeededSet(_)
        | SessionEvent::InputNeededRemoved { .. }
        | SessionEvent::ChatAdded(_)
        | SessionEvent::ChatRemoved(_)
        | SessionEvent::ActiveClientSet(_)
        | SessionEvent::ActiveClientRemoved(_)
        | SessionEvent::ConfigChanged { .. }
        | SessionEvent::DetailsChanged(_)
        | SessionEvent::CheckoutChanged(_)
        // Version 1 cannot say this: its subscribers begin again with a snapshot.
        | SessionEvent::WorkingDirectoryChanged { .. }
        | SessionEvent::Moved(_) => SessionMessage::None,
    }
}

fn chat_change(session: &core::SessionId, event: &ChatEvent) -> Option<(SessionChange, TimestampUse)> {
    let turn_id = event.turn()?.to_string();
    let change = match event {
        ChatEvent::TurnStarted { message, .. } => {
            let user_message = project::user_message(message);
            return Some((SessionChange::TurnStarted { turn_id, user_message }, TimestampUse::Include));
        }
        ChatEvent::TurnCompleted { .. } => return Some((SessionChange::TurnComplete { turn_id }, TimestampUse::Include)),
        ChatEvent::TurnCancelled { .. } => return Some((SessionChange::TurnCancelled { turn_id }, TimestampUse::Include)),
        ChatEvent::TurnFailed { error, .. } => {
            return Some((SessionChange::Error { turn_id, error: project::error(error) }, TimestampUse::Include));
        }
        // The initial content of a streamed part is streamed text too, empty or not.
        ChatEvent::PartAdded { part: core::Part::Text(text), .. } if text.delivery == Delivery::Streamed => {
            if text.content.is_empty() {
                return None;
            }
            SessionChange::Delta { turn_id, content: text.content.clone() }
        }
        ChatEvent::PartAdded { part: core::Part::Reasoning { content, .. }, .. } => {
            if content.is_empty() {
                return None;
            }
            SessionChange::Reasoning { turn_id, content: content.clone() }
        }
        ChatEvent::PartAdded { part, .. } => {
            SessionChange::ResponsePart { turn_id, part: project::response_part(session, part)? }
        }
        ChatEvent::TextDelta { content, .. } => SessionChange::Delta { turn_id, content: content.clone() },
        ChatEvent::ReasoningDelta { content, .. } => SessionChange::Reasoning { turn_id, content: content.clone() },
        ChatEvent::ToolCallReady { call, invocation_message, input, .. } => {
            let tool_call = project::started_call(call, invocation_message, input.as_deref());
            SessionChange::ToolStart { turn_id, tool_call }
        }
        ChatEvent::ToolCallGated { gated, .. } => {
            SessionChange::PermissionRequest { turn_id, request: project::permission(&gated.request, &gated.call) }
        }
        ChatEvent::ToolCallConfirmed { request, verdict, .. } => SessionChange::PermissionResolved {
            turn_id,
            request_id: request.to_string(),
            approved: verdict.decision == Decision::Approved,
            policy_rule: verdict.extra.as_ref().and_then(|extra| Some(extra.get(POLICY_RULE)?.as_str()?.to_owned())),
        },
        ChatEvent::ToolCallCompleted { call, result, .. } => SessionChange::ToolComplete {
            turn_id,
            tool_call_id: call.to_string(),
            result: project::tool_result(result),
        },
        ChatEvent::ToolCallResultConfirmed { call, result, decision, .. } => SessionChange::ToolComplete {
            turn_id,
            tool_call_id: call.to_string(),
            result: match decision {
                Decision::Approved => project::tool_result(result),
                Decision::Denied => project::withheld_result(),
            },
        },
        ChatEvent::UsageReported { usage, .. } => SessionChange::Usage { turn_id, usage: project::usage(usage) },
        ChatEvent::ToolCallStarted { .. }
        | ChatEvent::ToolCallInputDelta { .. }
        | ChatEvent::ToolCallRestated { .. }
        | ChatEvent::ToolCallOutput { .. }
        | ChatEvent::ToolCallResultGated { .. }
        | ChatEvent::InputRequested { .. }
        | ChatEvent::InputAnswerChanged { .. }
        | ChatEvent::InputAnswered { .. }
        | ChatEvent::SteeringSet(_)
        | ChatEvent::SteeringRemoved(_)
        | ChatEvent::QueuedSet(_)
        | ChatEvent::QueuedRemoved(_)
        | ChatEvent::QueueReordered(_)
        | ChatEvent::DraftChanged(_)
        | ChatEvent::ChatReadChanged(_)
        | ChatEvent::ChatArchivedChanged(_)
        // Concerns a chat that version 1 does not see.
        | ChatEvent::ChatTitleChanged(_)
        | ChatEvent::ActivityChanged(_)
        | ChatEvent::AgentSessionChanged(_)
        // Version 1 cannot express this: its clients resynchronize.
        | ChatEvent::TurnsCleared
        | ChatEvent::BranchTurnsLoaded { .. }
        // The chat is new, so nobody has seen it before.
        | ChatEvent::TurnsInherited { .. }
        | ChatEvent::EntryAdded(_) => return None,
    };
    Some((change, TimestampUse::Omit))
}

const FRAME_HEAD: &str = r#"{"jsonrpc":"2.0","method":"action","params":{"envelope":"#;
const FRAME_TAIL: &str = "}}";

/// The frame of an `action` notification. [`envelope_in`] extracts its envelope.
pub fn action_frame<A: serde::Serialize>(envelope: &ActionEnvelope<A>) -> serde_json::Result<String> {
    let mut frame = Vec::with_capacity(256);
    frame.extend_from_slice(FRAME_HEAD.as_bytes());
    serde_json::to_writer(&mut frame, envelope)?;
    frame.extend_from_slice(FRAME_TAIL.as_bytes());
    String::from_utf8(frame).map_err(serde::ser::Error::custom)
}

/// The envelope of a frame of [`action_frame`], for a replay from encoded frames.
pub fn envelope_in(frame: &str) -> Option<&str> {
    frame.strip_prefix(FRAME_HEAD)?.strip_suffix(FRAME_TAIL)
}
