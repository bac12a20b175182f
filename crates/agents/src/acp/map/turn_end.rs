//! How a turn ended.

use agent_client_protocol_schema::v1 as acp;
use grove_core::Usage;

use crate::agent::*;

/// The end of a turn: the events to report, and whether it failed.
pub(crate) fn turn_end(response: &acp::PromptResponse) -> (Vec<AgentEvent>, Result<(), AgentError>) {
    let mut events: Vec<_> = response.usage.as_ref().map(|usage| AgentEvent::Usage(spent(usage))).into_iter().collect();
    let notice = |text: &str| AgentEvent::Notice(text.to_owned());
    let failed = |text: &str| Err(AgentError::TurnFailed(text.to_owned()));
    let result = match response.stop_reason {
        acp::StopReason::MaxTokens => {
            events.push(notice("The agent stopped: the reply reached the model's length limit. Ask it to continue."));
            Ok(())
        }
        acp::StopReason::MaxTurnRequests => {
            events.push(notice(
                "The agent stopped: this turn has reached the limit of requests to the model. Ask it to continue.",
            ));
            Ok(())
        }
        acp::StopReason::Refusal => failed("the agent refused this request; rephrase it"),
        // Nobody waits for a turn that was cancelled here, so the agent itself gave up.
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
