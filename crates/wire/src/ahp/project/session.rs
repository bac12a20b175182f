//! The root, a session, and its row in the list.

use grove_core as core;
use serde_json::Value;

use super::input::input_request;
use super::tool_call::{running, tool_call};
use super::{activity, chat, directory, flags, from_extra};
use crate::ahp::uri::{SessionUris, Spelling};
use crate::ahp::*;
use crate::value_reader::from_value;

pub fn root(root: &core::Root) -> RootState {
    RootState {
        agents: root.agents.iter().map(agent).collect(),
        active_sessions: Some(u64::from(root.active_sessions)),
        ..RootState::default()
    }
}

pub fn agent(agent: &core::AgentInfo) -> AgentInfo {
    let model = |model: &core::ModelInfo| SessionModelInfo {
        id: model.id.to_string(),
        provider: agent.id.to_string(),
        name: model.name.clone(),
        max_context_window: model.max_context_window,
        supports_vision: model.supports_vision,
        ..SessionModelInfo::default()
    };
    AgentInfo {
        provider: agent.id.to_string(),
        display_name: agent.display_name.clone(),
        description: agent.description.clone(),
        models: agent.models.iter().map(model).collect(),
        capabilities: Some(AgentCapabilities {
            multiple_chats: Some(MultipleChatsCapability { fork: Some(true), side_chat: Some(true) }),
            multiple_working_directories: None,
        }),
        ..AgentInfo::default()
    }
}

/// A session's row in the list. `failed` is true if the last turn of its main chat ended in an error, which a session
/// that is not loaded does not know.
pub fn summary(session: &core::Session, failed: bool, names: &SessionUris, spelling: Spelling) -> SessionSummary {
    SessionSummary {
        provider: session.agent.to_string(),
        title: session.title.clone(),
        status: session_status(session, failed),
        working_directories: directories(&session.working_directories),
        resource: names.session(spelling).to_owned(),
        created_at: time::text(session.created_at),
        modified_at: time::text(last_modified(session)),
        chats: Some(chat_summaries(session, names, spelling)),
        default_chat: Some(names.chat(&core::Session::MAIN_CHAT.into(), spelling)),
        meta: Some(row_meta(session)),
        ..SessionSummary::default()
    }
}

/// Members of a session's row that the protocol has no place for: the store, the source of an import, and the checkout of the
/// working directory. Lists of other programs know the checkout under the same names.
pub fn row_meta(session: &core::Session) -> Object {
    let checkout = &session.checkout;
    // A worktree belongs to a repository elsewhere; any other checkout is its own.
    let repository = checkout.worktree_of.as_ref().or(checkout.root.as_ref());
    let worktree = checkout.root.as_ref().filter(|_| checkout.worktree_of.is_some());
    let members = [
        ("store", Some(session.store.as_str())),
        ("repositoryNwo", checkout.github.as_deref()),
        ("repositoryUrl", checkout.remote.as_deref()),
        ("repositoryPath", repository.map(String::as_str)),
        ("worktreePath", worktree.map(String::as_str)),
        ("branch", checkout.branch.as_deref()),
        ("baseBranchName", checkout.base_branch.as_deref()),
        ("pullRequestUrl", checkout.pull_request()),
    ];
    let members = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), Value::from(value?))));
    let from = session.details.imported_from.as_ref().and_then(|from| serde_json::to_value(from).ok());
    members.chain(from.map(|from| ("importedFrom".to_owned(), from))).collect()
}

/// The time of the last progress in the session or any of its chats, by the host's clock.
pub fn last_modified(session: &core::Session) -> core::Timestamp {
    let others = session.catalogue.iter().skip(1).map(|row| row.touched_at);
    others.fold(session.modified_at, Ord::max)
}

pub fn chat_summaries(session: &core::Session, names: &SessionUris, spelling: Spelling) -> Vec<SessionChatSummary> {
    let row = |row: &core::ChatRow| SessionChatSummary {
        resource: names.chat(&row.chat, spelling),
        title: row.title.clone(),
        status: Some(row_status(row)),
        ..SessionChatSummary::default()
    };
    session.catalogue.iter().map(row).collect()
}

pub fn session(session: &core::Session, names: &SessionUris, spelling: Spelling) -> SessionState {
    let (lifecycle, creation_error) = match &session.lifecycle {
        core::Lifecycle::Creating => (SessionLifecycle::Creating, None),
        core::Lifecycle::Ready => (SessionLifecycle::Ready, None),
        core::Lifecycle::CreationFailed(error) => (SessionLifecycle::Failed, Some(chat::error(error))),
    };
    let input_needed = session.input_needed.iter().map(|input| self::input_needed(&session.id, input, names, spelling));
    SessionState {
        provider: session.agent.to_string(),
        title: session.title.clone(),
        status: session_status(session, false),
        working_directories: directories(&session.working_directories),
        lifecycle,
        creation_error,
        active_clients: session.active_clients.iter().map(active_client).collect(),
        chats: session.catalogue.iter().map(|row| chat_summary(row, names, spelling)).collect(),
        default_chat: Some(names.chat(&core::Session::MAIN_CHAT.into(), spelling)),
        config: session.config.as_ref().map(|config| self::config(config, session.details.settings.as_ref())),
        input_needed: Some(input_needed.collect::<Vec<_>>()).filter(|needed| !needed.is_empty()),
        meta: details(&session.details),
        ..SessionState::default()
    }
}

/// A session's details beside its conversation.
///
/// No action carries the schema of the settings, so it is here as well as in `config`.
pub fn details(details: &core::SessionDetails) -> Option<Object> {
    match serde_json::to_value(details) {
        Ok(Value::Object(members)) if !members.is_empty() => Some(members),
        Ok(_) | Err(_) => None,
    }
}

/// The status of a session: the most urgent activity of its chats, and its own flags.
///
/// No action of a session carries the activity of its chats: a client that applies actions derives it from the rows of
/// the chats ([`derive_session`](crate::ahp::derive_session)).
pub fn session_status(session: &core::Session, failed: bool) -> u32 {
    let any = |status| session.catalogue.iter().any(|row| row.status == status);
    let waits = |input: &core::InputNeeded| !matches!(input.about, core::InputSubject::ClientExecution(_));
    let activity = if session.input_needed.iter().any(waits) {
        status::INPUT_NEEDED
    } else if any(core::ChatStatus::InProgress) || any(core::ChatStatus::InputNeeded) {
        status::IN_PROGRESS
    } else if failed || any(core::ChatStatus::Error) {
        status::ERROR
    } else {
        status::IDLE
    };
    flags(activity, session.is_read, session.is_archived)
}

pub fn row_status(row: &core::ChatRow) -> u32 {
    flags(activity(row.status), row.is_read, row.is_archived)
}

pub fn chat_summary(row: &core::ChatRow, names: &SessionUris, spelling: Spelling) -> ChatSummary {
    ChatSummary {
        resource: names.chat(&row.chat, spelling),
        title: row.title.clone(),
        status: row_status(row),
        modified_at: time::text(row.modified_at),
        origin: row.origin.as_deref().and_then(|origin| self::origin(origin, names, spelling)),
        ..ChatSummary::default()
    }
}

/// The origin of a chat, if it is another chat of the session.
pub(super) fn origin(origin: &core::ChatOrigin, names: &SessionUris, spelling: Spelling) -> Option<ChatOrigin> {
    let chat = names.origin(origin, spelling)?;
    let turn_id = origin.turn.as_ref()?.to_string();
    Some(match &origin.kind {
        core::OriginKind::Fork => ChatOrigin::Fork(ForkChatOrigin { chat, turn_id }),
        core::OriginKind::Side { selection } => {
            let selection = selection.as_ref().map(|selection| SideChatSelection {
                text: selection.text.clone(),
                response_part_id: selection.part.clone(),
            });
            ChatOrigin::SideChat(SideChatOrigin { chat, turn_id, selection })
        }
    })
}

/// The settings with the newest known schema.
pub fn config(config: &core::SessionConfig, settings: Option<&core::Extra>) -> SessionConfigState {
    let schema = from_value(&Value::Object(settings.unwrap_or(&config.schema).clone()));
    let none = SessionConfigSchema { kind: "object".to_owned(), ..SessionConfigSchema::default() };
    SessionConfigState { schema: schema.unwrap_or(none), values: config.values.clone() }
}

pub fn active_client(client: &core::ActiveClient) -> SessionActiveClient {
    SessionActiveClient {
        client_id: client.client.to_string(),
        display_name: client.display_name.clone(),
        tools: client.tools.iter().map(tool).collect(),
        customizations: from_extra(client.extra.as_ref(), "customizations"),
    }
}

pub(super) fn tool(tool: &core::ClientTool) -> ToolDefinition {
    let extra = tool.extra.as_ref();
    ToolDefinition {
        name: tool.name.clone(),
        title: from_extra(extra, "title"),
        description: tool.description.clone(),
        input_schema: tool.input_schema.as_ref().and_then(|schema| schema.as_object().cloned()),
        output_schema: from_extra(extra, "outputSchema"),
        annotations: from_extra(extra, "annotations"),
        meta: from_extra(extra, "_meta"),
    }
}

/// The id of a needed input: a request is unique only in its chat.
pub fn input_id(chat: &core::ChatId, request: &core::RequestId) -> String {
    format!("{chat}/{request}")
}

pub fn input_needed(
    session: &core::SessionId,
    input: &core::InputNeeded,
    names: &SessionUris,
    spelling: Spelling,
) -> SessionInputRequest {
    let (id, chat, turn_id) =
        (input_id(&input.chat, &input.request), names.chat(&input.chat, spelling), input.turn.to_string());
    match &input.about {
        core::InputSubject::Question(request) => {
            let request = input_request(request);
            SessionInputRequest::ChatInput(SessionChatInputRequest { id, chat, request })
        }
        core::InputSubject::ToolConfirmation(call) => {
            let tool_call = match tool_call(session, call) {
                ToolCallState::PendingResultConfirmation(call) => ToolCallConfirmation::PendingResultConfirmation(call),
                ToolCallState::PendingConfirmation(call) => ToolCallConfirmation::PendingConfirmation(call),
                // Only a waiting call needs input.
                other => ToolCallConfirmation::PendingConfirmation(ToolCallPendingConfirmation {
                    base: other.base().cloned().unwrap_or_default(),
                    ..ToolCallPendingConfirmation::default()
                }),
            };
            let request = SessionToolConfirmationRequest { id, chat, turn_id, tool_call };
            SessionInputRequest::ToolConfirmation(request)
        }
        core::InputSubject::ClientExecution(call) => {
            SessionInputRequest::ToolClientExecution(SessionToolClientExecutionRequest {
                id,
                chat,
                turn_id,
                client_id: call.client.as_ref().map(ToString::to_string).unwrap_or_default(),
                tool_call: RunningToolCall::Running(running(session, call)),
            })
        }
    }
}

pub(in crate::ahp) fn directories(directories: &[String]) -> Option<Vec<Uri>> {
    Some(directories.iter().map(|path| directory(path)).collect::<Vec<_>>()).filter(|all| !all.is_empty())
}
