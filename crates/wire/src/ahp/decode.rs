//! Converts clients' actions to core's commands.

use grove_core as core;
use grove_core::ClientCommand;

use super::*;

/// The latest start of a turn that a client may claim: the beginning of the year 9999.
const LATEST_START: core::Timestamp = core::Timestamp(253_370_764_800_000);

/// The maximum length of an id from a client.
pub const MAX_ID: usize = 256;

/// Converts an action on a chat, or on a session if `chat` is `None`. The error is the reason for the refusal.
pub fn command(action: Action, chat: Option<&core::ChatId>) -> Result<ClientCommand, String> {
    let kind = action.kind().to_owned();
    if let Action::Unknown(_) = action {
        return Err(format!("{kind} is unknown"));
    }
    if !is_client_dispatchable(&kind) {
        return Err(format!("only the host may dispatch {kind}"));
    }
    match (action, chat) {
        // Some clients rename a session on its chat's channel.
        (Action::Session(action), _) => session(action),
        (Action::Chat(action), Some(chat)) => self::chat(action, chat.clone()),
        (Action::Chat(_), None) => Err(format!("{kind} is for a chat's channel, and this is a session's")),
        _ => Err(format!("{kind} does not belong on this channel")),
    }
}

fn session(action: SessionAction) -> Result<ClientCommand, String> {
    let kind = action.kind();
    Ok(match action {
        SessionAction::TitleChanged(SessionTitleChanged { title }) => ClientCommand::ChangeTitle(title),
        SessionAction::IsReadChanged(SessionIsReadChanged { is_read }) => ClientCommand::SetRead(is_read),
        SessionAction::IsArchivedChanged(SessionIsArchivedChanged { is_archived }) => {
            ClientCommand::SetArchived(is_archived)
        }
        SessionAction::ActiveClientSet(SessionActiveClientSet { active_client }) => {
            ClientCommand::SetActiveClient(self::active_client(active_client)?)
        }
        SessionAction::ActiveClientRemoved(SessionActiveClientRemoved { client_id }) => {
            ClientCommand::RemoveActiveClient(client_id.into())
        }
        SessionAction::ConfigChanged(SessionConfigChanged { config, replace }) => {
            ClientCommand::ChangeConfig { values: config, replace: replace.unwrap_or(false) }
        }
        _ => return Err(not_yet(kind)),
    })
}

fn chat(action: ChatAction, chat: core::ChatId) -> Result<ClientCommand, String> {
    let kind = action.kind();
    Ok(match action {
        ChatAction::TurnStarted(started) => {
            if started.queued_message_id.is_some() {
                return Err("the host starts waiting messages by itself".to_owned());
            }
            let message = self::message(started.message)?;
            let started_at = Some(start(&started.started_at)?);
            ClientCommand::StartTurn { chat, turn: id(started.turn_id)?, message, started_at }
        }
        ChatAction::TurnCancelled(cancelled) => {
            if cancelled.duration < 0 {
                return Err("a duration cannot be negative".to_owned());
            }
            ClientCommand::CancelTurn { chat, turn: cancelled.turn_id.into() }
        }
        ChatAction::TurnResume(_) => return Err("this turn cannot be resumed: send a new message".to_owned()),
        ChatAction::ToolCallConfirmed(confirmed) => {
            let verdict = verdict(&confirmed)?;
            let question = core::PermissionTarget::OfToolCall(confirmed.tool_call_id.into());
            ClientCommand::ResolvePermission {
                chat,
                turn: confirmed.turn_id.into(),
                question,
                verdict,
                answered_by: None,
            }
        }
        ChatAction::ToolCallComplete(complete) => ClientCommand::CompleteClientCall {
            chat,
            turn: complete.turn_id.into(),
            call: complete.tool_call_id.into(),
            result: result(&complete.result),
            ask: complete.requires_result_confirmation.unwrap_or(false),
        },
        ChatAction::ToolCallResultConfirmed(confirmed) => ClientCommand::ConfirmResult {
            chat,
            turn: confirmed.turn_id.into(),
            call: confirmed.tool_call_id.into(),
            decision: if confirmed.approved { core::Decision::Approved } else { core::Decision::Denied },
            answered_by: None,
        },
        ChatAction::ToolCallContentChanged(changed) => ClientCommand::ReportClientOutput {
            chat,
            turn: changed.turn_id.into(),
            call: changed.tool_call_id.into(),
            output: core::ToolOutput {
                text: text(&changed.content),
                pieces: changed.content.iter().map(|piece| serde_json::to_value(piece).ok()).collect(),
                attached: Vec::new(),
            },
        },
        ChatAction::PendingMessageSet(set) => {
            let message = core::PendingMessage { id: id(set.id)?, message: self::message(set.message)? };
            match set.kind {
                PendingMessageKind::Steering => ClientCommand::SetSteering { chat, message },
                PendingMessageKind::Queued => ClientCommand::Enqueue { chat, message },
            }
        }
        ChatAction::PendingMessageRemoved(removed) => match removed.kind {
            PendingMessageKind::Steering => ClientCommand::RemoveSteering { chat, id: removed.id.into() },
            PendingMessageKind::Queued => ClientCommand::Dequeue { chat, id: removed.id.into() },
        },
        ChatAction::QueuedMessagesReordered(reordered) => {
            ClientCommand::ReorderQueue { chat, order: reordered.order.into_iter().map(Into::into).collect() }
        }
        ChatAction::DraftChanged(ChatDraftChanged { draft }) => {
            ClientCommand::SetDraft { chat, draft: draft.map(self::message).transpose()? }
        }
        ChatAction::InputAnswerChanged(changed) => ClientCommand::DraftAnswer {
            chat,
            request: changed.request_id.into(),
            question: changed.question_id.into(),
            answer: changed.answer.map(answer).transpose()?,
        },
        ChatAction::InputCompleted(completed) => {
            let answers = completed.answers.unwrap_or_default().into_iter();
            ClientCommand::AnswerInput {
                chat,
                request: completed.request_id.into(),
                outcome: match completed.response {
                    ChatInputResponseKind::Accept => core::InputOutcome::Accepted,
                    ChatInputResponseKind::Decline => core::InputOutcome::Declined,
                    ChatInputResponseKind::Cancel => core::InputOutcome::Cancelled,
                },
                answers: answers.map(|(id, given)| Ok((id.into(), answer(given)?))).collect::<Result<_, String>>()?,
                answered_by: None,
            }
        }
        ChatAction::IsReadChanged(ChatIsReadChanged { is_read }) => ClientCommand::SetChatRead { chat, read: is_read },
        ChatAction::IsArchivedChanged(ChatIsArchivedChanged { is_archived }) => {
            ClientCommand::SetChatArchived { chat, archived: is_archived }
        }
        _ => return Err(not_yet(kind)),
    })
}

/// The start of a turn that a client claims. The end must still be a valid calendar time, or the turn would never end
/// for clients that compute it.
fn start(text: &str) -> Result<core::Timestamp, String> {
    let at = time::parse(text)?;
    if at > LATEST_START {
        return Err(format!("{text:?} is too far in the future"));
    }
    Ok(at)
}

fn not_yet(kind: &str) -> String {
    format!("this host does not support {kind} yet")
}

/// An id that a client chose.
fn id<T: From<String>>(id: String) -> Result<T, String> {
    match id.len() {
        0 => Err("an id must not be empty".to_owned()),
        1..=MAX_ID => Ok(id.into()),
        _ => Err(format!("an id may have {MAX_ID} bytes at most")),
    }
}

/// A client's message.
pub fn message(message: Message) -> Result<core::Message, String> {
    let origin = match message.origin.kind {
        MessageKind::User => core::MessageOrigin::User,
        MessageKind::Agent => core::MessageOrigin::Agent,
        MessageKind::Tool => core::MessageOrigin::Tool,
        MessageKind::Automation => core::MessageOrigin::Automation,
        MessageKind::SystemNotification => core::MessageOrigin::SystemNotification,
        MessageKind::Unknown(kind) => return Err(format!("{kind:?} is not a kind of message")),
    };
    let extra = project::message_extra(&message);
    let attachments = message.attachments.iter().flatten().filter_map(attachment).collect();
    let model = message.model.map(|model| model.id.into());
    Ok(core::Message { text: message.text, attachments, origin, model, extra })
}

/// The modelled part of an attachment; the complete one is kept beside it.
pub(super) fn attachment(attachment: &MessageAttachment) -> Option<core::Attachment> {
    let MessageAttachment::Resource(resource) = attachment else { return None };
    let kind = match resource.display_kind.as_deref() {
        Some("directory" | "folder") => core::AttachmentKind::Directory,
        _ if resource.selection.is_some() => core::AttachmentKind::Selection,
        _ => core::AttachmentKind::File,
    };
    Some(core::Attachment { kind, path: resource.uri.clone(), display_name: Some(resource.label.clone()) })
}

fn verdict(confirmed: &ChatToolCallConfirmed) -> Result<core::Verdict, String> {
    let by = match &confirmed.confirmed {
        None | Some(ToolCallConfirmationReason::UserAction) => core::ConfirmationReason::Person,
        Some(ToolCallConfirmationReason::Setting) => core::ConfirmationReason::Setting,
        // A client's "not needed" is an answer to a question that was asked.
        Some(ToolCallConfirmationReason::NotNeeded) => core::ConfirmationReason::Person,
        Some(ToolCallConfirmationReason::Unknown(by)) => return Err(format!("{by:?} is not a reason to confirm")),
    };
    Ok(core::Verdict {
        decision: if confirmed.approved { core::Decision::Approved } else { core::Decision::Denied },
        by,
        option: confirmed.selected_option_id.clone(),
        edited_input: confirmed.edited_tool_input.clone().filter(|_| confirmed.approved),
        skipped: !confirmed.approved && confirmed.reason == Some(ToolCallCancellationReason::Skipped),
        extra: project::extra([
            ("userSuggestion", confirmed.user_suggestion.as_ref().map(serde_json::to_value)),
            ("reasonMessage", confirmed.reason_message.as_ref().map(serde_json::to_value)),
        ])
        .filter(|_| !confirmed.approved),
    })
}

fn result(result: &ToolCallResult) -> core::ToolResult {
    let markdown = match &result.past_tense_message {
        StringOrMarkdown::Plain(_) => None,
        markdown @ StringOrMarkdown::Markdown { .. } => Some(serde_json::to_value(markdown)),
    };
    core::ToolResult {
        success: result.success,
        past_tense_message: result.past_tense_message.text().to_owned(),
        output: result.content.as_deref().map(text),
        attached: Vec::new(),
        extra: project::extra([
            ("pastTenseMessage", markdown),
            ("content", result.content.as_ref().map(serde_json::to_value)),
            ("structuredContent", result.structured_content.as_ref().map(serde_json::to_value)),
            ("error", result.error.as_ref().map(serde_json::to_value)),
        ]),
    }
}

/// The text among pieces of output.
fn text(pieces: &[ToolResultContent]) -> String {
    let texts = pieces.iter().filter_map(|piece| match piece {
        ToolResultContent::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn answer(answer: ChatInputAnswer) -> Result<core::Answer, String> {
    Ok(match answer {
        ChatInputAnswer::Draft(answered) => core::Answer::Draft(answer_value(answered.value)?),
        ChatInputAnswer::Submitted(answered) => core::Answer::Submitted(answer_value(answered.value)?),
        ChatInputAnswer::Skipped(skipped) => {
            core::Answer::Skipped { freeform: skipped.freeform_values.unwrap_or_default() }
        }
    })
}

fn answer_value(value: ChatInputAnswerValue) -> Result<core::AnswerValue, String> {
    Ok(match value {
        ChatInputAnswerValue::Text(text) => core::AnswerValue::Text(text.value),
        ChatInputAnswerValue::Number(number) => core::AnswerValue::Number(number.value),
        ChatInputAnswerValue::Boolean(boolean) => core::AnswerValue::YesOrNo(boolean.value),
        ChatInputAnswerValue::Selected(selected) => {
            core::AnswerValue::One { id: selected.value, freeform: selected.freeform_values.unwrap_or_default() }
        }
        ChatInputAnswerValue::SelectedMany(selected) => {
            core::AnswerValue::Several { ids: selected.value, freeform: selected.freeform_values.unwrap_or_default() }
        }
        ChatInputAnswerValue::Unknown(_) => return Err("this kind of answer is unknown".to_owned()),
    })
}

/// A client that takes part, as it describes itself.
pub fn active_client(client: SessionActiveClient) -> Result<core::ActiveClient, String> {
    let extra = project::extra([("customizations", client.customizations.as_ref().map(serde_json::to_value))]);
    Ok(core::ActiveClient {
        client: id(client.client_id)?,
        display_name: client.display_name,
        tools: client.tools.into_iter().map(tool).collect(),
        extra,
    })
}

fn tool(tool: ToolDefinition) -> core::ClientTool {
    core::ClientTool {
        extra: project::extra([
            ("title", tool.title.as_ref().map(serde_json::to_value)),
            ("outputSchema", tool.output_schema.as_ref().map(serde_json::to_value)),
            ("annotations", tool.annotations.as_ref().map(serde_json::to_value)),
            ("_meta", tool.meta.as_ref().map(serde_json::to_value)),
        ]),
        name: tool.name,
        description: tool.description,
        input_schema: tool.input_schema.map(serde_json::Value::Object),
    }
}
