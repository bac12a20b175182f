//! Encodes core's events: each becomes one action on one channel, or nothing.
//!
//! Two events describe a gated call: that it is ready, and the question. Both become `chat/toolCallReady`; the second
//! one has more data.

use grove_core as core;
use serde::Serialize;
use serde_json::Value;

use super::uri::{SessionUris, Spelling};
use super::*;
use crate::value_reader::from_value;

/// The origin of an event's action, for its echo.
#[derive(Clone, Copy, Debug)]
pub struct Echo<'a> {
    pub client: &'a core::ClientId,
    pub client_seq: u64,
    /// The unknown members of the client's action.
    pub extra: Option<&'a Object>,
}

impl Echo<'_> {
    fn origin(&self) -> ActionOrigin {
        ActionOrigin { client_id: self.client.to_string(), client_seq: self.client_seq }
    }
}

/// The frame of an event, and the type of its action.
pub fn frame(
    event: &core::Event,
    seq: u64,
    echo: Option<Echo<'_>>,
    names: Option<&SessionUris>,
    spelling: Spelling,
) -> Option<(&'static str, String)> {
    // Deltas are frequent: they are encoded without a copy.
    if let core::Change::Chat(_, chat, change) = &event.change
        && let Some(delta) = Delta::of(change)
    {
        let channel = names?.chat(chat, spelling);
        return Some((delta.kind, action_frame(&channel, &delta, seq, None, None)?));
    }
    let (channel, action) = action(event, names, spelling)?;
    let kind = kind(&action)?;
    let origin = echo.map(|echo| echo.origin());
    let frame = match echo.and_then(|echo| echo.extra) {
        None => action_frame(&channel, &action, seq, origin, None),
        Some(extra) => {
            let Value::Object(mut members) = serde_json::to_value(&action).ok()? else { return None };
            add(&mut members, extra);
            action_frame(&channel, &members, seq, origin, None)
        }
    };
    Some((kind, frame?))
}

/// The frame of an action for one client alone: a refusal, or the echo of an action that changes nothing.
pub fn direct_reply(
    channel: &str,
    action: &impl Serialize,
    seq: u64,
    echo: Option<Echo<'_>>,
    rejection_reason: Option<String>,
) -> Option<String> {
    action_frame(channel, action, seq, echo.map(|echo| echo.origin()), rejection_reason)
}

/// The frame of an action.
pub fn action_frame(
    channel: &str,
    action: &impl Serialize,
    server_seq: u64,
    origin: Option<ActionOrigin>,
    rejection_reason: Option<String>,
) -> Option<String> {
    let envelope = ActionEnvelope { channel: channel.to_owned(), action, server_seq, origin, rejection_reason };
    crate::jsonrpc::notification(notify::ACTION, &envelope).ok()
}

/// The envelope in a frame made here.
pub fn envelope_in(frame: &str) -> Option<&str> {
    frame.strip_prefix(r#"{"jsonrpc":"2.0","method":"action","params":"#)?.strip_suffix('}')
}

/// Text to append to a part, borrowed from its event.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Delta<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    turn_id: &'a str,
    part_id: &'a str,
    content: &'a str,
}

impl<'a> Delta<'a> {
    fn of(change: &'a core::ChatEvent) -> Option<Self> {
        let (kind, turn, part, content) = match change {
            core::ChatEvent::TextDelta { turn, part, content } => ("chat/delta", turn, part, content),
            core::ChatEvent::ReasoningDelta { turn, part, content } => ("chat/reasoning", turn, part, content),
            _ => return None,
        };
        Some(Self { kind, turn_id: turn.as_str(), part_id: part.as_str(), content })
    }
}

/// Adds missing members, at any depth. Existing ones are not changed.
fn add(members: &mut Object, extra: &Object) {
    for (name, more) in extra {
        match members.get_mut(name) {
            None => drop(members.insert(name.clone(), more.clone())),
            Some(mine) => merge_value(mine, more),
        }
    }
}

fn merge_value(value: &mut Value, extra: &Value) {
    match (value, extra) {
        (Value::Object(mine), Value::Object(more)) => add(mine, more),
        // Lists are merged item by item.
        (Value::Array(mine), Value::Array(more)) if mine.len() == more.len() => {
            mine.iter_mut().zip(more).for_each(|(mine, more)| merge_value(mine, more));
        }
        (_, _) => {}
    }
}

/// The members of a client's action that its type does not know, at any depth. `null` counts as absent.
pub fn unknown(raw: &Value, known: &Value) -> Option<Object> {
    let (Value::Object(raw), Value::Object(known)) = (raw, known) else { return None };
    let more = raw.iter().filter(|(_, value)| !value.is_null()).filter_map(|(name, value)| match known.get(name) {
        None => Some((name.clone(), value.clone())),
        Some(mine) => Some((name.clone(), unknown_in_value(value, mine)?)),
    });
    Some(more.collect::<Object>()).filter(|more| !more.is_empty())
}

fn unknown_in_value(raw: &Value, known: &Value) -> Option<Value> {
    match (raw, known) {
        (Value::Object(_), Value::Object(_)) => unknown(raw, known).map(Value::Object),
        (Value::Array(raw), Value::Array(known)) if raw.len() == known.len() => {
            let items = raw.iter().zip(known).map(|(raw, known)| unknown_in_value(raw, known).unwrap_or_default());
            let items: Vec<_> = items.collect();
            items.iter().any(|item| !item.is_null()).then_some(Value::Array(items))
        }
        (_, _) => None,
    }
}

fn kind(action: &Action) -> Option<&'static str> {
    match action {
        Action::Root(action) => Some(action.kind()),
        Action::Session(action) => Some(action.kind()),
        Action::Chat(action) => Some(action.kind()),
        Action::ResourceWatch(action) => Some(action.kind()),
        Action::Terminal(_) | Action::Changeset(_) | Action::Annotations(_) | Action::Unknown(_) => None,
    }
}

/// The action of an event, and its channel.
pub fn action(event: &core::Event, names: Option<&SessionUris>, spelling: Spelling) -> Option<(Uri, Action)> {
    match &event.change {
        core::Change::Root(change) => Some((ROOT.to_owned(), Action::Root(root(change)))),
        core::Change::Session(id, change) => {
            let names = names?;
            Some((names.session(spelling).to_owned(), Action::Session(session(id, change, names, spelling)?)))
        }
        core::Change::Chat(session, id, change) => {
            let channel = names?.chat(id, spelling);
            Some((channel, Action::Chat(chat(event.at, session, change)?)))
        }
    }
}

fn root(change: &core::RootEvent) -> RootAction {
    match change {
        core::RootEvent::AgentsChanged(agents) => {
            RootAction::AgentsChanged(RootAgentsChanged { agents: agents.iter().map(project::agent).collect() })
        }
        core::RootEvent::ActiveSessionsChanged(count) => {
            RootAction::ActiveSessionsChanged(RootActiveSessionsChanged { active_sessions: u64::from(*count) })
        }
    }
}

fn session(
    id: &core::SessionId,
    change: &core::SessionEvent,
    names: &SessionUris,
    spelling: Spelling,
) -> Option<SessionAction> {
    Some(match change {
        core::SessionEvent::Created(_)
        | core::SessionEvent::Listed
        | core::SessionEvent::Removed
        // Sent with the rows.
        | core::SessionEvent::CheckoutChanged(_)
        // The store is internal to the host.
        | core::SessionEvent::Moved(_)
        // A message says which model it wants.
        | core::SessionEvent::ModelChanged(_)
        | core::SessionEvent::ModelReset => return None,
        core::SessionEvent::Ready => SessionAction::Ready(SessionReady {}),
        core::SessionEvent::CreationFailed(error) => {
            SessionAction::CreationFailed(SessionCreationFailed { error: project::error(error) })
        }
        core::SessionEvent::TitleChanged(title) => {
            SessionAction::TitleChanged(SessionTitleChanged { title: title.text().to_owned() })
        }
        core::SessionEvent::ReadChanged(is_read) => {
            SessionAction::IsReadChanged(SessionIsReadChanged { is_read: *is_read })
        }
        core::SessionEvent::ArchivedChanged(is_archived) => {
            SessionAction::IsArchivedChanged(SessionIsArchivedChanged { is_archived: *is_archived })
        }
        core::SessionEvent::ChatRowChanged(row) => SessionAction::ChatUpdated(SessionChatUpdated {
            chat: names.chat(&row.chat, spelling),
            changes: PartialChatSummary {
                title: Some(row.title.clone()),
                status: Some(project::row_status(row)),
                modified_at: Some(time::text(row.modified_at)),
                ..PartialChatSummary::default()
            },
        }),
        core::SessionEvent::WorkingDirectoryChanged { previous: None, directory } => {
            SessionAction::WorkingDirectorySet(SessionWorkingDirectorySet { directory: project::directory(directory) })
        }
        core::SessionEvent::WorkingDirectoryChanged { previous: Some(previous), directory } => {
            SessionAction::WorkingDirectoryReplaced(SessionWorkingDirectoryReplaced {
                directory: project::directory(previous),
                replacement: project::directory(directory),
            })
        }
        core::SessionEvent::ChatAdded(row) => {
            SessionAction::ChatAdded(SessionChatAdded { summary: project::chat_summary(row, names, spelling) })
        }
        core::SessionEvent::ChatRemoved(chat) => {
            SessionAction::ChatRemoved(SessionChatRemoved { chat: names.chat(chat, spelling) })
        }
        core::SessionEvent::InputNeededSet(input) => SessionAction::InputNeededSet(Box::new(SessionInputNeededSet {
            request: project::input_needed(id, input, names, spelling),
        })),
        core::SessionEvent::InputNeededRemoved { chat, request } => {
            SessionAction::InputNeededRemoved(SessionInputNeededRemoved { id: project::input_id(chat, request) })
        }
        core::SessionEvent::ActiveClientSet(client) => SessionAction::ActiveClientSet(SessionActiveClientSet {
            active_client: project::active_client(client),
        }),
        core::SessionEvent::ActiveClientRemoved(client) => {
            SessionAction::ActiveClientRemoved(SessionActiveClientRemoved { client_id: client.to_string() })
        }
        core::SessionEvent::ConfigChanged { values, replace } => SessionAction::ConfigChanged(SessionConfigChanged {
            config: values.clone(),
            replace: replace.then_some(true),
        }),
        core::SessionEvent::DetailsChanged(details) => {
            SessionAction::MetaChanged(SessionMetaChanged { meta: project::details(details) })
        }
    })
}

fn chat(at: core::Timestamp, session: &core::SessionId, change: &core::ChatEvent) -> Option<ChatAction> {
    let duration = |duration: &Option<u64>| i64::try_from(duration.unwrap_or(0)).unwrap_or(i64::MAX);
    let pending = |kind, pending: &core::PendingMessage| {
        let PendingMessage { id, message } = project::pending(pending);
        ChatAction::PendingMessageSet(ChatPendingMessageSet { kind, id, message })
    };
    let removed = |kind, id: &core::PendingId| {
        ChatAction::PendingMessageRemoved(ChatPendingMessageRemoved { kind, id: id.to_string() })
    };
    Some(match change {
        core::ChatEvent::TurnStarted { turn, message, started_at, queued } => {
            ChatAction::TurnStarted(ChatTurnStarted {
                turn_id: turn.to_string(),
                started_at: time::text(started_at.unwrap_or(at)),
                message: project::message(message),
                queued_message_id: queued.as_ref().map(ToString::to_string),
                meta: None,
            })
        }
        core::ChatEvent::PartAdded { turn, part } => ChatAction::ResponsePart(ChatResponsePart {
            turn_id: turn.to_string(),
            part: project::part(session, part)?,
            meta: None,
        }),
        core::ChatEvent::TextDelta { turn, part, content } => ChatAction::Delta(ChatDelta {
            turn_id: turn.to_string(),
            part_id: part.to_string(),
            content: content.clone(),
            meta: None,
        }),
        core::ChatEvent::ReasoningDelta { turn, part, content } => ChatAction::Reasoning(ChatReasoning {
            turn_id: turn.to_string(),
            part_id: part.to_string(),
            content: content.clone(),
            meta: None,
        }),
        core::ChatEvent::ToolCallStarted { turn, call } => ChatAction::ToolCallStart(ChatToolCallStart {
            turn_id: turn.to_string(),
            tool_call_id: call.id.to_string(),
            meta: project::call_meta(call.kind, call.language.as_ref(), call.extra.as_ref(), None),
            tool_name: call.name.clone(),
            display_name: call.display_name.clone(),
            intention: None,
            contributor: project::contributor(call.client.as_ref()),
        }),
        core::ChatEvent::ToolCallInputDelta { turn, call, content } => ChatAction::ToolCallDelta(ChatToolCallDelta {
            turn_id: turn.to_string(),
            tool_call_id: call.to_string(),
            meta: None,
            content: Some(content.clone()),
            invocation_message: None,
        }),
        core::ChatEvent::ToolCallReady { turn, call, invocation_message, input, gate } => {
            ChatAction::ToolCallReady(Box::new(ChatToolCallReady {
                confirmed: match gate {
                    core::Gate::None => Some(ToolCallConfirmationReason::NotNeeded),
                    core::Gate::Follows => None,
                },
                meta: tool_call_meta(call),
                ..ready(turn, &call.id, Some(invocation_message), input.as_ref())
            }))
        }
        core::ChatEvent::ToolCallRestated { turn, restated } => {
            ChatAction::ToolCallReady(Box::new(ChatToolCallReady {
                confirmed: Some(project::confirmed_by(restated.confirmed)),
                meta: tool_call_meta(&restated.call),
                ..ready(turn, &restated.call.id, Some(&restated.invocation_message), restated.input.as_ref())
            }))
        }
        core::ChatEvent::ToolCallGated { turn, gated } => ChatAction::ToolCallReady(Box::new(ChatToolCallReady {
            intention: gated.request.intention.clone(),
            confirmation_title: Some(project::confirmation_title(&gated.request)),
            edits: project::edits(session, &gated.request),
            editable: Some(gated.request.editable),
            options: project::options(&gated.request),
            ..ready(turn, &gated.call, gated.invocation_message.as_ref(), gated.input.as_ref())
        })),
        core::ChatEvent::ToolCallConfirmed { turn, call, verdict, answer, .. } => {
            let approved = verdict.decision == core::Decision::Approved;
            let reason = if verdict.skipped { core::CancelReason::Skipped } else { core::CancelReason::Denied };
            let denial_detail = |name: &str| verdict.extra.as_ref().filter(|_| !approved)?.get(name).cloned();
            ChatAction::ToolCallConfirmed(Box::new(ChatToolCallConfirmed {
                turn_id: turn.to_string(),
                tool_call_id: call.to_string(),
                meta: answer.as_deref().and_then(answer_meta),
                approved,
                confirmed: approved.then(|| project::confirmed_by(verdict.by)),
                reason: (!approved).then(|| project::cancel_reason(reason)),
                edited_tool_input: verdict.edited_input.clone().filter(|_| approved),
                user_suggestion: denial_detail("userSuggestion").and_then(|value| from_value(&value).ok()),
                reason_message: denial_detail("reasonMessage").and_then(|value| from_value(&value).ok()),
                selected_option_id: verdict.option.clone(),
            }))
        }
        core::ChatEvent::ToolCallOutput { turn, call, output } => {
            ChatAction::ToolCallContentChanged(ChatToolCallContentChanged {
                turn_id: turn.to_string(),
                tool_call_id: call.to_string(),
                meta: None,
                content: project::output(session, output),
            })
        }
        core::ChatEvent::ToolCallCompleted { turn, call, result, run } => {
            ChatAction::ToolCallComplete(ChatToolCallComplete {
                meta: run.as_deref().and_then(run_meta),
                ..complete(session, turn, call, result)
            })
        }
        core::ChatEvent::ToolCallResultGated { turn, call, result, run } => {
            ChatAction::ToolCallComplete(ChatToolCallComplete {
                meta: run.as_deref().and_then(run_meta),
                requires_result_confirmation: Some(true),
                ..complete(session, turn, call, result)
            })
        }
        core::ChatEvent::ToolCallResultConfirmed { turn, call, decision, answer, .. } => {
            ChatAction::ToolCallResultConfirmed(ChatToolCallResultConfirmed {
                turn_id: turn.to_string(),
                tool_call_id: call.to_string(),
                meta: answer.as_deref().and_then(answer_meta),
                approved: *decision == core::Decision::Approved,
            })
        }
        core::ChatEvent::UsageReported { turn, usage } => {
            ChatAction::Usage(ChatUsage { turn_id: turn.to_string(), usage: project::usage(usage), meta: None })
        }
        core::ChatEvent::InputRequested { request, .. } => {
            ChatAction::InputRequested(ChatInputRequested { request: project::input_request(request) })
        }
        core::ChatEvent::InputAnswerChanged { request, question, answer, .. } => {
            ChatAction::InputAnswerChanged(ChatInputAnswerChanged {
                request_id: request.to_string(),
                question_id: question.to_string(),
                answer: answer.as_ref().map(project::answer),
            })
        }
        core::ChatEvent::InputAnswered { request, outcome, answers, .. } => {
            ChatAction::InputCompleted(ChatInputCompleted {
                request_id: request.to_string(),
                response: project::outcome(*outcome),
                answers: Some(project::answers(answers)).filter(|answers| !answers.is_empty()),
            })
        }
        core::ChatEvent::TurnCompleted { turn, duration: ran } => ChatAction::TurnComplete(ChatTurnComplete {
            turn_id: turn.to_string(),
            duration: duration(ran),
            meta: None,
        }),
        core::ChatEvent::TurnCancelled { turn, duration: ran } => ChatAction::TurnCancelled(ChatTurnCancelled {
            turn_id: turn.to_string(),
            duration: duration(ran),
            meta: None,
        }),
        core::ChatEvent::TurnFailed { turn, duration: ran, error } => ChatAction::Error(ChatError {
            turn_id: turn.to_string(),
            duration: duration(ran),
            part: ErrorPart::Error(project::error_part(error)),
            meta: None,
        }),
        core::ChatEvent::SteeringSet(message) => pending(PendingMessageKind::Steering, message),
        core::ChatEvent::SteeringRemoved(id) => removed(PendingMessageKind::Steering, id),
        core::ChatEvent::QueuedSet(message) => pending(PendingMessageKind::Queued, message),
        core::ChatEvent::QueuedRemoved(id) => removed(PendingMessageKind::Queued, id),
        core::ChatEvent::QueueReordered(order) => {
            let order = order.iter().map(ToString::to_string).collect();
            ChatAction::QueuedMessagesReordered(ChatQueuedMessagesReordered { order })
        }
        core::ChatEvent::DraftChanged(draft) => {
            ChatAction::DraftChanged(ChatDraftChanged { draft: draft.as_ref().map(project::message) })
        }
        core::ChatEvent::ChatReadChanged(is_read) => ChatAction::IsReadChanged(ChatIsReadChanged { is_read: *is_read }),
        core::ChatEvent::ChatArchivedChanged(is_archived) => {
            ChatAction::IsArchivedChanged(ChatIsArchivedChanged { is_archived: *is_archived })
        }
        core::ChatEvent::ActivityChanged(activity) => {
            ChatAction::ActivityChanged(ChatActivityChanged { activity: activity.clone() })
        }
        core::ChatEvent::TurnsCleared => ChatAction::Truncated(ChatTruncated { turn_id: None }),
        core::ChatEvent::BranchTurnsLoaded { turns, older } => ChatAction::TurnsLoaded(ChatTurnsLoaded {
            turns: turns.iter().map(|turn| project::turn(session, turn)).collect(),
            turns_next_cursor: turns.first().filter(|_| *older).map(|turn| turn.id.to_string()),
        }),
        // A chat's own channel has no action for it: its session's has, with the chat's row.
        core::ChatEvent::ChatTitleChanged(_) => return None,
        // The chat is new: its subscribers get these turns with the snapshot.
        core::ChatEvent::TurnsInherited { .. } => return None,
        // The agent's name for a conversation and further log entries are internal to the host.
        core::ChatEvent::AgentSessionChanged(_) | core::ChatEvent::EntryAdded(_) => return None,
    })
}

fn ready(
    turn: &core::TurnId,
    call: &core::ToolCallId,
    message: Option<&String>,
    input: Option<&String>,
) -> ChatToolCallReady {
    ChatToolCallReady {
        turn_id: turn.to_string(),
        tool_call_id: call.to_string(),
        meta: None,
        contributor: None,
        intention: None,
        invocation_message: message.map(String::as_str).unwrap_or_default().into(),
        tool_input: input.map(|input| ToolInput::Inline(input.clone())),
        confirmation_title: None,
        risk_assessment: None,
        edits: None,
        editable: None,
        confirmed: None,
        options: None,
    }
}

/// The changed metadata of a call.
fn tool_call_meta(call: &core::NewToolCall) -> Option<Object> {
    let extra = call.extra.as_ref()?;
    project::call_meta(call.kind, call.language.as_ref(), Some(extra), None)
}

fn complete(
    session: &core::SessionId,
    turn: &core::TurnId,
    call: &core::ToolCallId,
    result: &core::ToolResult,
) -> ChatToolCallComplete {
    ChatToolCallComplete {
        turn_id: turn.to_string(),
        tool_call_id: call.to_string(),
        meta: None,
        result: project::result(session, result),
        requires_result_confirmation: None,
    }
}

/// The `_meta` of a call that has run. It replaces the earlier one, and so repeats it.
fn run_meta(run: &core::CallRun) -> Option<Object> {
    project::call_meta(run.kind, run.language.as_ref(), run.extra.as_ref(), Some(run.ran_ms))
}

fn answer_meta(answer: &core::CallAnswer) -> Option<Object> {
    project::call_meta(answer.kind, answer.language.as_ref(), Some(&answer.extra()), answer.ran_ms)
}

/// The news of an event for those who hear of the root, where there are any.
pub fn notification(
    change: &core::SessionEvent,
    session: &core::Session,
    names: &SessionUris,
    spelling: Spelling,
) -> Option<Notification> {
    let channel = ROOT.to_owned();
    let resource = names.session(spelling).to_owned();
    let status = || Some(project::session_status(session, false));
    let modified_at = || Some(time::text(project::last_modified(session)));
    let changes = match change {
        core::SessionEvent::Listed => {
            let summary = project::summary(session, false, names, spelling);
            return Some(Notification::SessionAdded(SessionAddedParams { channel, summary }));
        }
        core::SessionEvent::Removed => {
            return Some(Notification::SessionRemoved(SessionRemovedParams { channel, session: resource }));
        }
        core::SessionEvent::TitleChanged(title) => PartialSessionSummary {
            title: Some(title.text().to_owned()),
            modified_at: modified_at(),
            ..PartialSessionSummary::default()
        },
        core::SessionEvent::ReadChanged(_) | core::SessionEvent::ArchivedChanged(_) => {
            PartialSessionSummary { status: status(), ..PartialSessionSummary::default() }
        }
        core::SessionEvent::ChatRowChanged(_)
        | core::SessionEvent::ChatAdded(_)
        | core::SessionEvent::ChatRemoved(_) => PartialSessionSummary {
            status: status(),
            modified_at: modified_at(),
            chats: Some(project::chat_summaries(session, names, spelling)),
            ..PartialSessionSummary::default()
        },
        core::SessionEvent::Created(_)
        | core::SessionEvent::Ready
        | core::SessionEvent::CreationFailed(_)
        | core::SessionEvent::ModelChanged(_)
        | core::SessionEvent::ModelReset
        | core::SessionEvent::InputNeededSet(_)
        | core::SessionEvent::InputNeededRemoved { .. }
        | core::SessionEvent::ActiveClientSet(_)
        | core::SessionEvent::ActiveClientRemoved(_)
        | core::SessionEvent::ConfigChanged { .. }
        | core::SessionEvent::DetailsChanged(_) => return None,
        core::SessionEvent::WorkingDirectoryChanged { .. } => PartialSessionSummary {
            working_directories: project::directories(&session.working_directories),
            ..PartialSessionSummary::default()
        },
        // It is told with the row, once there is one.
        core::SessionEvent::CheckoutChanged(_) if session.lifecycle == core::Lifecycle::Creating => return None,
        core::SessionEvent::CheckoutChanged(_) | core::SessionEvent::Moved(_) => {
            PartialSessionSummary { meta: Some(project::row_meta(session)), ..PartialSessionSummary::default() }
        }
    };
    let changed = SessionSummaryChangedParams { channel, session: resource, changes };
    Some(Notification::SessionSummaryChanged(changed))
}
