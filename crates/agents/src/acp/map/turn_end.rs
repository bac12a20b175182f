//! How a turn ended.

use agent_client_protocol_schema::v1 as acp;
use grove_core::Usage;

use crate::agent::*;

/// How a turn ended: what is to be said of it, and whether it failed.
pub(crate) fn turn_end(response: &acp::PromptResponse) -> (Vec<AgentEvent>, Result<(), AgentError>) {
    let mut events: Vec<_> = response.usage.as_ref().map(|usage| AgentEvent::Usage(spent(usage))).into_iter().collect();
    let notice = |text: &str| AgentEvent::Notice(text.to_owned());
    let failed = |text: &str| Err(AgentError::TurnFailed(text.to_owned()));
    let result = match response.stop_reason {
        acp::StopReason::MaxTokens => {
            events.push(notice("The agent stopped here: the model may say no more at once. Ask it to go on."));
            Ok(())
        }
        acp::StopReason::MaxTurnRequests => {
            events.push(notice(
                "The agent stopped here: it has asked the model as often as it may in a turn. Ask it to go on.",
            ));
            Ok(())
        }
        acp::StopReason::Refusal => failed("the agent refused to go on with this; ask for it in other words"),
        // A turn that was cancelled here is not waited for, so this was not ours.
        acp::StopReason::Cancelled => failed("the agent gave up the turn"),
        acp::StopReason::EndTurn => Ok(()),
        _ => Ok(()),
    };
    (events, result)
}

fn spent(usage: &acp::Usage) -> Usage {
    Usage {
        input_tokens: Some(usage.input_tokens),
        output_tokens: Some(usage.output_tokens),
        cache_read_tokens: usage.cached_read_tokens,
        cache_write_tokens: usage.cached_write_tokens,
        reasoning_tokens: usage.thought_tokens,
        ..Usage::default()
    }
}
