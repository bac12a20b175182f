//! How a turn ended.

use agent_client_protocol_schema::v1 as acp;

use super::usage;
use crate::agent::*;

/// The end of a turn: the events to report, and whether it failed. `was_denied`: a person denied a request in it.
pub(crate) fn turn_end(response: &acp::PromptResponse, was_denied: bool) -> (Vec<AgentEvent>, Result<(), AgentError>) {
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
        // Some agents end the turn when a request is denied.
        acp::StopReason::Cancelled if was_denied => {
            events.push(notice("The agent stopped because its request was denied. Tell it how to go on."));
            Ok(())
        }
        // Nobody waits for a turn that was cancelled here, so the agent itself gave up.
        acp::StopReason::Cancelled => failed("the agent gave up the turn"),
        acp::StopReason::EndTurn => Ok(()),
        _ => Ok(()),
    };
    (events, result)
}
