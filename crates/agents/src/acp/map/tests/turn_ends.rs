//! The end of a turn.

use super::*;

fn end(response: Value) -> (Vec<AgentEvent>, Result<(), AgentError>) {
    turn_end(&serde_json::from_value(response).unwrap(), false)
}

#[test]
fn a_turn_that_ends_well_says_what_it_used() {
    let (events, result) = end(json!({"stopReason": "end_turn", "usage": {"totalTokens": 9, "inputTokens": 1,
        "outputTokens": 2, "thoughtTokens": 3, "cachedReadTokens": 4, "cachedWriteTokens": 5}}));
    let usage = Usage {
        input_tokens: Some(1),
        output_tokens: Some(2),
        reasoning_tokens: Some(3),
        cache_read_tokens: Some(4),
        cache_write_tokens: Some(5),
        ..Usage::default()
    };
    assert!(matches!(&events[..], [AgentEvent::Usage(said)] if *said == usage), "{events:?}");
    assert!(result.is_ok());
    assert!(end(json!({"stopReason": "end_turn"})).0.is_empty());
}

#[test]
fn a_turn_that_was_cut_short_says_so() {
    for reason in ["max_tokens", "max_turn_requests"] {
        let (events, result) = end(json!({"stopReason": reason}));
        assert!(matches!(&events[..], [AgentEvent::Notice(notice)] if notice.contains("stopped")), "{events:?}");
        assert!(result.is_ok());
    }
}

#[test]
fn a_turn_that_was_refused_or_given_up_failed() {
    for (reason, words) in [("refusal", "refused"), ("cancelled", "the agent gave up the turn")] {
        let (events, result) = end(json!({"stopReason": reason}));
        assert!(events.is_empty());
        assert!(matches!(&result, Err(AgentError::TurnFailed(said)) if said.contains(words)), "{result:?}");
    }
}

#[test]
fn a_turn_that_ends_because_of_a_denial_did_not_fail() {
    let response = serde_json::from_value(json!({"stopReason": "cancelled"})).unwrap();
    let (events, result) = turn_end(&response, true);
    assert!(matches!(&events[..], [AgentEvent::Notice(notice)] if notice.contains("denied")), "{events:?}");
    assert!(result.is_ok());
}
