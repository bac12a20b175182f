//! The fuzz body of the Agent Client Protocol.

use grove_agents::acp::read_update;
use grove_agents::{AgentEvent, ToolOutputPart};
use grove_core::Usage;

/// Any lines as messages of an agent: each is reported, with content, or refused with a reason.
pub fn acp(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for line in text.lines() {
        match read_update(line) {
            Ok(events) => events.iter().for_each(says_something),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

fn says_something(event: &AgentEvent) {
    match event {
        AgentEvent::Text(text) | AgentEvent::Reasoning(text) | AgentEvent::Notice(text) | AgentEvent::Title(text) => {
            assert!(!text.is_empty());
        }
        AgentEvent::MessageText(chunk) | AgentEvent::MessageReasoning(chunk) => {
            assert!(!chunk.message.is_empty() && !chunk.content.is_empty());
        }
        AgentEvent::Tool(call) => {
            let input = call.input.as_deref().unwrap_or("null");
            assert!(serde_json::from_str::<serde_json::Value>(input).is_ok(), "{input}");
            assert!(call.permission.is_none(), "an update asks nothing");
            assert!(call.extra.as_ref().is_none_or(|extra| extra.contains_key("acp")));
            let Some(gave) = &call.output else { return };
            assert!(!gave.text.is_empty() || !gave.pieces.is_empty());
            for piece in &gave.pieces {
                let ToolOutputPart::Edit { before, after, .. } = piece else { continue };
                assert!(before.is_some() || after.is_some());
            }
        }
        AgentEvent::Commands(commands) => assert!(commands.iter().all(|command| !command.name.is_empty())),
        AgentEvent::Plan(entries) => assert!(entries.iter().all(|entry| !entry.content.is_empty())),
        AgentEvent::Usage(usage) => assert!(usage.context.is_some() || usage.cost.is_some()),
        AgentEvent::CallUsage(usage) => assert!(*usage != Usage::default()),
        AgentEvent::PartContent { mime_type, .. } => assert!(!mime_type.is_empty()),
        other => panic!("an update alone does not tell {other:?}"),
    }
}
