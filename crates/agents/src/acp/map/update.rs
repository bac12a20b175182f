//! Reading `session/update`.

use agent_client_protocol_schema::v1 as acp;
use grove_core::*;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{JsonObject, block, call, text, usage};
use crate::agent::*;

/// The bytes of a message's id that tell it from others.
const MESSAGE_ID_BYTES: usize = 256;

/// An update, and the session that it is about.
#[derive(Debug)]
pub(crate) struct ParsedUpdate {
    pub(crate) session: acp::SessionId,
    pub(crate) content: UpdateContent,
}

/// The content of an update.
#[derive(Debug)]
pub(crate) enum UpdateContent {
    /// The events to report; empty if the update holds nothing that is kept.
    Events(Vec<AgentEvent>),
    /// The agent has switched to this mode. Its meaning depends on the offered modes.
    Mode(acp::SessionModeId),
    /// All configuration options, as they are from now on.
    Options(Vec<acp::SessionConfigOption>),
}

/// The reason why an update is not understood. Nothing of it is kept; the caller may log the frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpdateError {
    #[error("the update is not JSON: {0}; an agent may write nothing else to its stdout")]
    NotJson(String),
    /// A newer version of the protocol, or an extension of the agent's.
    #[error("the agent sent an update of unknown kind {kind:?}; its content is not shown")]
    Unknown { kind: String },
    #[error("the agent sent a malformed update of kind {kind:?}: {why}; its content is not shown")]
    Malformed { kind: String, why: String },
}

/// The events of a `session/update`'s params, as the host gets them: for readers of recorded conversations.
///
/// Changes of modes and configuration options give no events here: their meaning depends on what was offered before.
///
/// ```
/// use grove_agents::{AgentEvent, acp::read_update};
///
/// let params = r#"{"sessionId": "1", "update": {"sessionUpdate": "agent_message_chunk",
///     "content": {"type": "text", "text": "hello"}}}"#;
/// let events = read_update(params).unwrap();
/// assert!(matches!(&events[..], [AgentEvent::Text(said)] if said == "hello"));
/// ```
pub fn read_update(params: &str) -> Result<Vec<AgentEvent>, UpdateError> {
    let params = serde_json::from_str(params).map_err(|error| UpdateError::NotJson(error.to_string()))?;
    match update(params)?.content {
        UpdateContent::Events(events) => Ok(events),
        UpdateContent::Mode(_) | UpdateContent::Options(_) => Ok(Vec::new()),
    }
}

/// Reads the params of a `session/update`.
pub(crate) fn update(mut params: Value) -> Result<ParsedUpdate, UpdateError> {
    let session = params.get("sessionId").and_then(Value::as_str).map(acp::SessionId::new);
    let Some(Value::Object(mut members)) = params.get_mut("update").map(Value::take) else {
        return Err(malformed("", "it has no member \"update\" that is an object"));
    };
    let kind = match members.remove("sessionUpdate") {
        Some(Value::String(kind)) => kind,
        _ => return Err(malformed("", "it has no member \"sessionUpdate\" that is a text")),
    };
    let session = session.ok_or_else(|| malformed(&kind, "it has no member \"sessionId\" that is a text"))?;
    Ok(ParsedUpdate { session, content: read(&kind, members)? })
}

fn read(kind: &str, members: JsonObject) -> Result<UpdateContent, UpdateError> {
    let events = match kind {
        "agent_message_chunk" => chunk(kind, members, AgentEvent::Text, AgentEvent::MessageText)?,
        "agent_thought_chunk" => chunk(kind, members, AgentEvent::Reasoning, AgentEvent::MessageReasoning)?,
        // The host has the user's message; these come when an old conversation is replayed.
        "user_message_chunk" => Vec::new(),
        "tool_call" | "tool_call_update" => {
            let call = call::read(members).ok_or_else(|| malformed(kind, call::NO_ID))?;
            vec![AgentEvent::Tool(Box::new(call))]
        }
        "plan" => vec![AgentEvent::Plan(plan(kind, &members)?)],
        "plan_update" => vec![plan_update(kind, members)?],
        "plan_removed" => vec![AgentEvent::Plan(Vec::new())],
        "available_commands_update" => vec![AgentEvent::Commands(commands(kind, &members)?)],
        "session_info_update" => {
            text(&members, "title").map(|title| AgentEvent::Title(title.to_owned())).into_iter().collect()
        }
        "usage_update" => vec![AgentEvent::Usage(usage_update(kind, &members)?)],
        "notice" => vec![AgentEvent::Notice(notice(kind, &members)?)],
        "compaction_update" => compaction(typed(kind, members)?).into_iter().collect(),
        // The pieces of a summary are for the agent. A separate update says that there is one.
        "compaction_summary_chunk" => Vec::new(),
        "current_mode_update" => {
            return Ok(UpdateContent::Mode(typed::<acp::CurrentModeUpdate>(kind, members)?.current_mode_id));
        }
        "config_option_update" => {
            return Ok(UpdateContent::Options(typed::<acp::ConfigOptionUpdate>(kind, members)?.config_options));
        }
        _ => return Err(UpdateError::Unknown { kind: kind.to_owned() }),
    };
    Ok(UpdateContent::Events(events))
}

fn malformed(kind: &str, why: impl ToString) -> UpdateError {
    UpdateError::Malformed { kind: kind.to_owned(), why: why.to_string() }
}

fn typed<T: DeserializeOwned>(kind: &str, members: JsonObject) -> Result<T, UpdateError> {
    serde_json::from_value(Value::Object(members)).map_err(|error| malformed(kind, error))
}

/// The events of a chunk: its content, and the usage of the model call that it ends.
fn chunk(
    kind: &str,
    members: JsonObject,
    say: fn(String) -> AgentEvent,
    say_of_message: fn(MessageChunk) -> AgentEvent,
) -> Result<Vec<AgentEvent>, UpdateError> {
    let message = text(&members, "messageId").map(|id| id[..id.floor_char_boundary(MESSAGE_ID_BYTES)].to_owned());
    let usage = members.get("_meta").and_then(|meta| meta.get("usage")?.as_object()).and_then(usage::of_call);
    let block = typed::<acp::ContentChunk>(kind, members)?.content;
    let mut events = match message {
        Some(message) => {
            block::events(block, |content| say_of_message(MessageChunk { message: message.clone(), content }))
        }
        None => block::events(block, say),
    };
    events.extend(usage.map(AgentEvent::CallUsage));
    Ok(events)
}

fn list<'a>(kind: &str, members: &'a JsonObject, name: &str) -> Result<&'a Vec<Value>, UpdateError> {
    let list = members.get(name).and_then(Value::as_array);
    list.ok_or_else(|| malformed(kind, format!("it has no list {name:?}")))
}

/// The steps of a plan. A step whose priority or status has a new name is shown rather than left out.
fn plan(kind: &str, members: &JsonObject) -> Result<Vec<PlanEntry>, UpdateError> {
    let entry = |entry: &Value| {
        let entry = entry.as_object()?;
        let priority = match text(entry, "priority") {
            Some("high") => PlanPriority::High,
            Some("low") => PlanPriority::Low,
            _ => PlanPriority::Medium,
        };
        let status = match text(entry, "status") {
            Some("completed") => PlanStatus::Completed,
            Some("in_progress") => PlanStatus::InProgress,
            _ => PlanStatus::Pending,
        };
        Some(PlanEntry { content: text(entry, "content")?.to_owned(), priority, status })
    };
    Ok(list(kind, members, "entries")?.iter().filter_map(entry).collect())
}

fn plan_update(kind: &str, mut members: JsonObject) -> Result<AgentEvent, UpdateError> {
    let Some(Value::Object(plan_members)) = members.remove("plan") else {
        return Err(malformed(kind, "it has no member \"plan\" that is an object"));
    };
    let needed =
        |name: &str| text(&plan_members, name).ok_or_else(|| malformed(kind, format!("its plan has no {name:?}")));
    match needed("type")? {
        "items" => plan(kind, &plan_members).map(AgentEvent::Plan),
        "markdown" => {
            let body = PartContent::Text(needed("content")?.to_owned());
            Ok(AgentEvent::PartContent { mime_type: "text/markdown".to_owned(), body })
        }
        "file" => Ok(AgentEvent::Notice(format!("The agent's plan is in {}.", needed("uri")?))),
        other => Err(UpdateError::Unknown { kind: format!("{kind}/{other}") }),
    }
}

fn commands(kind: &str, members: &JsonObject) -> Result<Vec<AgentCommand>, UpdateError> {
    let command = |command: &Value| {
        let command = command.as_object()?;
        let name = text(command, "name").map(|name| name.strip_prefix('/').unwrap_or(name))?;
        let hint = command.get("input").and_then(Value::as_object).and_then(|input| text(input, "hint"));
        Some(AgentCommand {
            name: Some(name).filter(|name| !name.is_empty())?.to_owned(),
            description: text(command, "description").unwrap_or_default().to_owned(),
            hint: hint.map(str::to_owned),
        })
    };
    Ok(list(kind, members, "availableCommands")?.iter().filter_map(command).collect())
}

fn usage_update(kind: &str, members: &JsonObject) -> Result<Usage, UpdateError> {
    let number = |name: &str| members.get(name).and_then(Value::as_u64);
    let context = number("used").zip(number("size")).map(|(used, size)| ContextUsage { used, size });
    let cost = members.get("cost").and_then(Value::as_object).and_then(|cost| {
        let Value::Number(amount) = cost.get("amount")? else { return None };
        Some(Cost { amount: amount.clone(), currency: text(cost, "currency")?.to_owned() })
    });
    if context.is_none() && cost.is_none() {
        return Err(malformed(kind, "it has neither \"used\" and \"size\" nor a \"cost\""));
    }
    Ok(Usage { context, cost, ..Usage::default() })
}

fn notice(kind: &str, members: &JsonObject) -> Result<String, UpdateError> {
    let title = text(members, "title").ok_or_else(|| malformed(kind, "it has no \"title\""))?;
    let severity = match text(members, "severity") {
        Some("warning") => "Warning: ",
        Some("error") => "Error: ",
        _ => "",
    };
    Ok(match text(members, "description") {
        Some(description) => format!("{severity}{title}\n{description}"),
        None => format!("{severity}{title}"),
    })
}

fn compaction(update: acp::CompactionUpdate) -> Option<AgentEvent> {
    let text = match update.status {
        acp::CompactionStatus::InProgress => "The agent is summarizing the conversation to free context.".to_owned(),
        acp::CompactionStatus::Completed => match block::words(update.summary.value().into_iter().flatten()) {
            Some(summary) => format!("The agent has summarized the conversation to free context:\n{summary}"),
            None => "The agent has summarized the conversation to free context.".to_owned(),
        },
        acp::CompactionStatus::Failed => match update.error.value() {
            Some(error) => format!("The agent could not summarize the conversation: {error}"),
            None => "The agent could not summarize the conversation.".to_owned(),
        },
        // A compaction without a result needs no notice.
        _ => return None,
    };
    Some(AgentEvent::Notice(text))
}
