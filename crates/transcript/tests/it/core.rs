//! Turns of Grove's own.

use super::*;

/// The visible part of a turn, without data that core has in other forms.
fn seen(turn: &TranscriptTurn) -> TranscriptTurn {
    let mut turn = turn.clone();
    turn.parts.retain(|part| match part {
        TranscriptPart::Notice(notice) => !notice.text.is_empty(),
        _ => true,
    });
    for part in &mut turn.parts {
        match part {
            TranscriptPart::Reasoning { title, duration_ms, .. } => (*title, *duration_ms) = (None, None),
            TranscriptPart::ToolCall(call) => {
                let output = call.output.take().map(|output| ToolOutput { raw: None, ..output });
                // The output of an interrupted or refused call is not a result.
                let output = output.filter(|_| matches!(call.state, CallState::Complete | CallState::Failed));
                **call = TranscriptToolCall {
                    id: call.id.clone(),
                    name: call.name.clone(),
                    input: call.input.clone(),
                    output,
                    state: call.state,
                    exit_code: call.exit_code.filter(|_| call.state == CallState::Failed),
                    ..TranscriptToolCall::default()
                };
            }
            TranscriptPart::Text(_) => {}
            TranscriptPart::Edit(_)
            | TranscriptPart::Question(_)
            | TranscriptPart::Notice(_)
            | TranscriptPart::Raw(_) => {
                *part = TranscriptPart::Notice(Notice::default());
            }
        }
    }
    turn
}

#[test]
fn a_turn_comes_back_from_core_with_what_people_see_of_it() {
    let mut turn = turn();
    // Core has an edit as a call.
    turn.parts.retain(|part| !matches!(part, TranscriptPart::Edit(_)));
    let again = transcript_turn(&core_turn(&turn, Timestamp(0)).turn);
    assert_eq!(seen(&again), seen(&turn));
    for outcome in [TurnOutcome::Complete, TurnOutcome::Cancelled, TurnOutcome::Interrupted] {
        let turn = TranscriptTurn { outcome: outcome.clone(), ..turn.clone() };
        assert_eq!(transcript_turn(&core_turn(&turn, Timestamp(0)).turn).outcome, outcome);
    }
}

#[test]
fn recorded_turns_come_back_from_core_with_their_words_models_and_ends() {
    for (path, _, turns) in recorded() {
        for turn in turns {
            let again = transcript_turn(&core_turn(&turn, Timestamp(0)).turn);
            assert_eq!(
                (&again.message, again.text(), &again.model, &again.outcome, &again.usage, &again.context),
                (&turn.message, turn.text(), &turn.model, &turn.outcome, &turn.usage, &turn.context),
                "{}",
                path.display()
            );
        }
    }
}
