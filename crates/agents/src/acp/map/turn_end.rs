//! How a turn ended.

use agent_client_protocol_schema::v1 as acp;

use super::usage;
use crate::agent::*;

/// The end of a turn: the events to report, and whether it failed.
pub(crate) fn turn_end(response: &acp::PromptResponse) -> (Vec<AgentEvent>, Result<(), AgentError>) {
    let mut events: Vec<_> = usage::of_turn(response).map(AgentEvent::Usage).into_iter().collect();
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
