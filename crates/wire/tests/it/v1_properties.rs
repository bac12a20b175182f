//! The dialect law: a client that reduces version 1's actions has the state that the host projects.

use std::collections::BTreeSet;

use grove_core::{self as core, *};
use grove_wire::v1::{self, Action, encode, project};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::random::{self, Dice};

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

/// A session with a second chat, which version 1 does not see.
fn session_with_two_chats() -> Session {
    let mut session = Session::new(&random::new_session(), Timestamp(1));
    let side = core::Chat::new("side".into(), Timestamp(1));
    session.catalogue.push(side.row());
    session.chats.push(side);
    session
}

/// A client's state after `event`, starting from the projection of the state before.
fn reduced(before: &Session, event: &Event) -> v1::SessionState {
    let seen = project::session(before);
    match encode::action(event, before.uri.as_str()) {
        Some(Action::Session(action)) => {
            assert_eq!(action.session, before.uri.as_str());
            // Through text, as on the wire.
            let text = serde_json::to_string(&Action::Session(action)).unwrap();
            match Action::parse(&serde_json::value::RawValue::from_string(text).unwrap()).unwrap() {
                Action::Session(action) => v1::session_reducer(seen, &action),
                Action::Root(_) => panic!("a session's action came back as the root's"),
            }
        }
        Some(Action::Root(_)) => panic!("an event of a session became an action on the root: {event:?}"),
        None => seen,
    }
}

fn order_of_calls(state: &v1::SessionState) -> Vec<&str> {
    let calls = state.active_turn.iter().flat_map(|active| active.tool_calls.keys());
    calls.map(String::as_str).collect()
}

/// The notable situations of a session: where the law could break.
fn situations(session: &Session) -> Vec<&'static str> {
    let Some(chat) = session.main_chat() else { return vec![] };
    let calls = |parts: &[Part]| -> Vec<ToolCall> {
        let calls = parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call.as_ref().clone()),
            _ => None,
        });
        calls.collect()
    };
    let active = chat.active.as_ref().map_or_else(Vec::new, |active| calls(active.parts()));
    let count = |fits: fn(&ToolCallStatus) -> bool| active.iter().filter(|call| fits(&call.status)).count();
    let last = chat.turns.last();
    let finished = last.map_or_else(Vec::new, |turn| calls(&turn.parts));
    let came_to_nothing = |why: CancelReason| {
        let cancelled = |call: &ToolCall| match &call.status {
            ToolCallStatus::Cancelled(cancellation) => cancellation.reason == why,
            _ => false,
        };
        finished.iter().any(cancelled)
    };
    let runs_for_client = |call: &ToolCall| call.client.is_some() && call.status == ToolCallStatus::Running;
    let has =
        |fits: fn(&Part) -> bool| last.is_some_and(|turn| turn.parts.iter().filter(|part| fits(part)).count() > 1);
    let failed_before = chat.turns.iter().any(|turn| turn.outcome == Outcome::Error);
    let all = [
        (count(|status| matches!(status, ToolCallStatus::PendingConfirmation(_))) > 1, "two permissions are open"),
        (count(|status| *status == ToolCallStatus::Running) > 1, "two calls run side by side"),
        (count(|status| *status == ToolCallStatus::Streaming) > 1, "two calls are being written"),
        (count(|status| matches!(status, ToolCallStatus::PendingResultConfirmation(_))) > 0, "a result waits"),
        (
            finished.iter().any(|call| call.status == ToolCallStatus::Streaming),
            "a call was cut off before it was whole",
        ),
        (came_to_nothing(CancelReason::Denied), "a call was denied"),
        (came_to_nothing(CancelReason::Skipped), "a call was skipped"),
        (came_to_nothing(CancelReason::ResultDenied), "a result was withheld"),
        (active.iter().any(runs_for_client), "a client runs a call"),
        (active.iter().any(|call| call.output.is_some()), "a call has put something out"),
        (active.iter().any(|call| call.announced.is_some()), "a call is restated"),
        (finished.iter().any(|call| call.announced.is_some()), "a call was restated"),
        (has(|part| matches!(part, Part::Text(text) if text.delivery == Delivery::Streamed)), "texts were streamed"),
        (has(|part| matches!(part, Part::Text(text) if text.delivery == Delivery::Whole)), "whole texts were added"),
        (has(|part| matches!(part, Part::Reasoning { .. })), "there was more than one thought"),
        (has(|part| matches!(part, Part::Content(_))), "bodies were added"),
        (has(|part| matches!(part, Part::Error(_))), "an error came before the error that ended the turn"),
        (chat.status() == ChatStatus::InputNeeded, "a person is asked"),
        (!chat.queued.is_empty(), "messages wait"),
        (chat.active.is_none() && !chat.queued.is_empty(), "messages wait for the next start"),
        (last.is_some_and(|turn| turn.ended_at > session.modified_at), "a turn's clock is ahead"),
        (session.chats.len() > 1, "there is another chat"),
        (failed_before && chat.active.is_some(), "a turn follows a failed one"),
        (last.is_some_and(|turn| turn.outcome == Outcome::Cancelled), "a turn was cancelled"),
        (matches!(session.lifecycle, Lifecycle::CreationFailed(_)), "the creation failed"),
        (has(|part| matches!(part, Part::Plan(_))), "there was more than one plan"),
        (has(|part| matches!(part, Part::Notice(_))), "there was more than one notice"),
        (chat.activity.is_some(), "the chat is busy with something"),
        (session.details != SessionDetails::default(), "there is something to know of the session"),
    ];
    all.into_iter().filter_map(|(is_so, name)| is_so.then_some(name)).collect()
}

const SITUATIONS: usize = 29;

/// Runs `steps`, checks the law for every event, and returns the types of the actions and the situations that occurred.
fn hold_to_law(mut session: Session, steps: &[u64]) -> Result<BTreeSet<&'static str>, TestCaseError> {
    let agent = random::agent();
    let mut seen = BTreeSet::new();
    for (number, step) in steps.iter().enumerate() {
        let command = random::command(&session, &mut Dice::new(*step));
        let mut before = session.clone();
        let now = Timestamp(number as u64 + 2);
        let Ok(batch) = advance(&mut session, Some(&agent), command, now) else { continue };
        for event in &batch.events {
            let mut after = before.clone();
            after.apply(event);
            // A client of version 1 begins again with a snapshot where the leaf moves, or the folder changes.
            if let Change::Chat(_, _, ChatEvent::TurnsCleared | ChatEvent::BranchTurnsLoaded { .. })
            | Change::Session(_, SessionEvent::WorkingDirectoryChanged { .. }) = &event.change
            {
                before = after;
                continue;
            }
            let (reduced, projected) = (reduced(&before, event), project::session(&after));
            // Maps are equal in any order, but a finished turn lists its calls in theirs.
            prop_assert_eq!(order_of_calls(&reduced), order_of_calls(&projected), "after {:?}", event);
            prop_assert_eq!(reduced, projected, "after {:?}", event);
            if let Some(action) = encode::action(event, before.uri.as_str()) {
                seen.insert(action.kind().as_str());
            }
            before = after;
        }
        seen.extend(situations(&session));
    }
    Ok(seen)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn reducing_the_action_gives_the_projection_of_what_the_event_made(steps in vec(any::<u64>(), 1..250)) {
        hold_to_law(Session::new(&random::new_session(), Timestamp(1)), &steps)?;
    }

    #[test]
    fn version_1_does_not_see_another_chat(steps in vec(any::<u64>(), 1..250)) {
        hold_to_law(session_with_two_chats(), &steps)?;
    }

    #[test]
    fn reducing_the_root_action_gives_the_projection_of_the_root(steps in vec(any::<u64>(), 1..50)) {
        let mut state = State::default();
        for step in steps {
            let mut dice = Dice::new(step);
            let root = match dice.chance(50) {
                true => RootEvent::AgentsChanged((0..dice.below(3)).map(|_| random::agent()).collect()),
                false => RootEvent::ActiveSessionsChanged(dice.below(9) as u32),
            };
            let event = Event { at: Timestamp(1), change: Change::Root(root) };
            let before = project::root(&state.root);
            apply(&mut state, &event);
            let reduced = match encode::action(&event, v1::ROOT) {
                Some(Action::Root(action)) => v1::root_reducer(before, &action),
                Some(Action::Session(_)) => panic!("an event of the root became an action on a session"),
                None => before,
            };
            prop_assert_eq!(reduced, project::root(&state.root));
        }
    }
}

/// The law proves little about a run in which little happens.
#[test]
fn the_random_runs_reach_every_session_action_and_every_remarkable_situation() {
    let mut seen = BTreeSet::new();
    for run in 0..100u64 {
        let steps: Vec<u64> = (0..250).map(|step| run * 1_000 + step).collect();
        seen.extend(hold_to_law(Session::new(&random::new_session(), Timestamp(1)), &steps).unwrap());
    }
    let (actions, situations): (BTreeSet<_>, BTreeSet<_>) = seen.into_iter().partition(|name| name.contains('/'));
    let all = v1::ActionType::ALL.iter().map(|kind| kind.as_str()).filter(|kind| kind.starts_with("session/"));
    assert_eq!(actions, all.collect());
    assert_eq!(situations.len(), SITUATIONS, "{situations:?}");
}

#[test]
fn a_list_is_told_of_a_session_when_it_is_listed_and_when_it_is_removed_and_at_no_other_event() {
    let session = Session::new(&random::new_session(), Timestamp(1));
    let added = v1::Notification::SessionAdded { summary: project::summary(&session) };
    assert_eq!(encode::notification(&SessionEvent::Listed, &session), Some(added));
    let removed = v1::Notification::SessionRemoved { session: "scripted:/s1".into() };
    assert_eq!(encode::notification(&SessionEvent::Removed, &session), Some(removed));
    for step in 0..500 {
        let event = random::session_event(&mut Dice::new(step));
        if event != SessionEvent::Listed {
            assert_eq!(encode::notification(&event, &session), None, "{event:?}");
        }
    }
}
