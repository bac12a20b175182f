//! A log that the Copilot CLI wrote, as turns.
//!
//! A turn begins with a person's message. Events of agents beside the main one, and events that a turn does not need,
//! are left out: the log itself is kept. Lines that cannot be read are skipped.

use std::sync::Arc;

use grove_core::{
    CancelReason, Delivery, DerivedCache, ErrorInfo, Message, ModelId, Outcome, Part, TextPart, Timestamp, ToolCall,
    ToolCallStatus, ToolResult, Turn, Usage,
};
use serde_json::Value;

use super::decode;
use super::events::{AssistantMessage, ToolComplete, UserMessage};
use super::{Event, EventData};
use crate::ahp::time;

/// The contents of a Copilot CLI's log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CopilotLog {
    pub turns: Vec<Arc<Turn>>,
    pub title: Option<String>,
    /// The working directory as a path.
    pub folder: Option<String>,
    pub started_at: Option<Timestamp>,
}

/// Reads a log of the Copilot CLI. `None` if it is another program's: the first line is no `session.start`.
pub fn read_log(text: &str) -> Option<CopilotLog> {
    let mut lines = text.lines().map(|line| line.trim_matches(['\0', ' ', '\t'])).filter(|line| !line.is_empty());
    let first: Event = serde_json::from_str(lines.next()?).ok()?;
    let EventData::SessionStart(start) = &first.data else { return None };
    let mut reader = LogReader::default();
    reader.log.folder = start.context.as_ref().map(|context| context.cwd.clone());
    reader.log.started_at = time::parse(&start.start_time).ok();
    for line in lines {
        if let Ok(event) = serde_json::from_str::<Event>(line) {
            reader.read(event);
        }
    }
    reader.end_turn();
    Some(reader.log)
}

#[derive(Default)]
struct LogReader {
    log: CopilotLog,
    open: Option<Turn>,
}

impl LogReader {
    fn read(&mut self, event: Event) {
        if event.agent_id.is_some() {
            return;
        }
        let at = time::parse(&event.timestamp).unwrap_or(Timestamp(0));
        match event.data {
            EventData::UserMessage(message) => {
                self.end_turn();
                self.open = Some(begin(&event.id, message, at));
            }
            EventData::TitleChanged(changed) => self.log.title = Some(changed.title),
            data => {
                let Some(turn) = &mut self.open else { return };
                if continues(turn, data) {
                    turn.ended_at = turn.ended_at.max(at);
                }
            }
        }
    }

    fn end_turn(&mut self) {
        let Some(mut turn) = self.open.take() else { return };
        for part in &mut turn.parts {
            if let Part::ToolCall(call) = part
                && call.status == ToolCallStatus::Running
            {
                // The program ended before the call did.
                call.status = ToolCallStatus::Cancelled(CancelReason::Skipped.into());
            }
        }
        self.log.turns.push(Arc::new(turn));
    }
}

fn begin(id: &str, message: UserMessage, at: Timestamp) -> Turn {
    let UserMessage { content, message_id, attachments, .. } = message;
    Turn {
        id: message_id.as_deref().filter(|id| !id.is_empty()).unwrap_or(id).into(),
        message: Message { ..decode::message(content, attachments.unwrap_or_default()) },
        parts: Vec::new(),
        usage: None,
        outcome: Outcome::Complete,
        started_at: at,
        ended_at: at,
        derived: DerivedCache::default(),
    }
}

/// Adds an event to a turn. False for one that no turn needs.
fn continues(turn: &mut Turn, data: EventData) -> bool {
    match data {
        EventData::AssistantMessage(message) => add_message(turn, message),
        EventData::ToolStart(start) => {
            // A call is announced by the message before it, as a rule.
            if call_of(turn, &start.tool_call_id).is_none() {
                turn.parts.push(call(turn, &start.tool_call_id, start.tool_name, start.arguments));
            }
        }
        EventData::ToolComplete(complete) => end_call(turn, complete),
        EventData::Usage(usage) => {
            let usage = Usage {
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                model: Some(ModelId::from(usage.model)),
                cache_read_tokens: usage.cache_read_tokens,
                cache_write_tokens: usage.cache_write_tokens,
                reasoning_tokens: usage.reasoning_tokens,
                ..Usage::default()
            };
            turn.usage = Some(turn.usage.take().unwrap_or_default().added(usage));
        }
        EventData::Abort(_) => turn.outcome = Outcome::Cancelled,
        EventData::SessionError(error) => {
            turn.outcome = Outcome::Error;
            turn.parts
                .push(Part::Error(ErrorInfo { stack: error.stack, ..ErrorInfo::new(error.error_type, error.message) }));
        }
        EventData::TurnEnd(_) => {}
        _ => return false,
    }
    true
}

fn add_message(turn: &mut Turn, message: AssistantMessage) {
    let id = |turn: &Turn| format!("part-{}", turn.parts.len());
    if let Some(content) = message.reasoning_text.filter(|text| !text.is_empty()) {
        turn.parts.push(Part::Reasoning { id: id(turn).into(), content });
    }
    if !message.content.is_empty() {
        let text = TextPart { id: id(turn).into(), content: message.content, delivery: Delivery::Whole };
        turn.parts.push(Part::Text(text));
    }
    for request in message.tool_requests.unwrap_or_default() {
        let part = call(turn, &request.tool_call_id, request.name, request.arguments);
        turn.parts.push(part);
    }
}

fn call(turn: &Turn, id: &str, name: String, arguments: Option<Value>) -> Part {
    let rank = turn.parts.iter().filter(|part| matches!(part, Part::ToolCall(_))).count();
    Part::ToolCall(Box::new(ToolCall {
        id: id.into(),
        display_name: name.clone(),
        invocation_message: name.clone(),
        name,
        kind: None,
        language: None,
        intention: None,
        client: None,
        input: arguments.map(|arguments| arguments.to_string()),
        confirmed: None,
        output: None,
        status: ToolCallStatus::Running,
        ready_rank: u32::try_from(rank).ok(),
        announced: None,
        extra: None,
        running_since: None,
        ran_ms: None,
    }))
}

fn call_of<'a>(turn: &'a mut Turn, id: &str) -> Option<&'a mut ToolCall> {
    turn.parts.iter_mut().rev().find_map(|part| match part {
        Part::ToolCall(call) if call.id.as_str() == id => Some(call.as_mut()),
        _ => None,
    })
}

fn end_call(turn: &mut Turn, complete: ToolComplete) {
    let Some(call) = call_of(turn, &complete.tool_call_id) else { return };
    let output = match (complete.result, complete.error) {
        (Some(result), _) => result.content,
        (None, Some(error)) => error.message,
        (None, None) => String::new(),
    };
    call.status = ToolCallStatus::Completed(ToolResult {
        success: complete.success,
        past_tense_message: call.name.clone(),
        output: Some(output),
        attached: Vec::new(),
        extra: None,
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(kind: &str, data: Value) -> String {
        json!({"type": kind, "data": data, "id": kind, "timestamp": "2026-01-02T03:04:05.000Z", "parentId": null})
            .to_string()
    }

    #[test]
    fn a_log_of_the_cli_is_turns_and_damage_in_it_costs_its_lines() {
        let start = json!({"sessionId": "s", "version": 1, "producer": "copilot-agent", "copilotVersion": "1",
            "startTime": "2026-01-02T03:04:00.000Z", "context": {"cwd": "/project"}});
        let request = json!({"toolCallId": "c", "name": "bash", "arguments": {"command": "ls"}});
        let log = [
            line("session.start", start),
            "not a line".to_owned(),
            line("user.message", json!({"content": "look", "messageId": "m1"})),
            line("assistant.message", json!({"messageId": "a", "content": "I look.", "toolRequests": [request]})),
            line("tool.execution_start", json!({"toolCallId": "c", "toolName": "bash"})),
            line("of.the.future", json!({})),
            line(
                "tool.execution_complete",
                json!({"toolCallId": "c", "success": true, "result": {"content": "a.txt"}}),
            ),
            line("session.title_changed", json!({"title": "Looking"})),
            line("user.message", json!({"content": "more", "messageId": "m2"})),
            line("tool.execution_start", json!({"toolCallId": "d", "toolName": "bash"})),
            line("abort", json!({"reason": "user_initiated"})),
            r#"{"type":"assistant.mess"#.to_owned(),
        ];
        let log = read_log(&log.join("\n")).unwrap();
        assert_eq!((log.folder.as_deref(), log.title.as_deref()), (Some("/project"), Some("Looking")));
        assert_eq!(log.turns.iter().map(|turn| turn.id.as_str()).collect::<Vec<_>>(), ["m1", "m2"]);
        let [Part::Text(text), Part::ToolCall(call)] = log.turns[0].parts.as_slice() else { panic!("{log:?}") };
        assert_eq!((text.content.as_str(), call.name.as_str()), ("I look.", "bash"));
        assert!(matches!(&call.status, ToolCallStatus::Completed(result) if result.output.as_deref() == Some("a.txt")));
        assert_eq!(log.turns[1].outcome, Outcome::Cancelled);
        let [Part::ToolCall(call)] = log.turns[1].parts.as_slice() else { panic!("{log:?}") };
        assert!(matches!(call.status, ToolCallStatus::Cancelled(_)));
        assert_eq!(read_log("{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n"), None);
        assert_eq!(read_log(""), None);
    }
}
