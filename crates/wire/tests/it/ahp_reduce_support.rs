//! Both reducers behind one interface, from JSON to JSON: ours, and those of the protocol's own crate.

use ahp::reducers as upstream;
use grove_wire::ahp::Action;
use grove_wire::ahp::reduce::{self, ReduceOutcome, State};
use serde_json::{Map, Value};

/// The state of the channel that `reducer` reduces, in a form that a value can be read into.
pub(crate) fn state(reducer: &str, value: &Value) -> Result<State, serde_json::Error> {
    let value = value.clone();
    Ok(match reducer {
        "root" => State::Root(serde_json::from_value(value)?),
        "session" => State::Session(serde_json::from_value(value)?),
        "chat" => State::Chat(serde_json::from_value(value)?),
        "terminal" => State::Terminal(serde_json::from_value(value)?),
        "changeset" => State::Changeset(serde_json::from_value(value)?),
        "annotations" => State::Annotations(serde_json::from_value(value)?),
        "resourceWatch" => State::ResourceWatch(serde_json::from_value(value)?),
        other => panic!("there is no reducer {other}"),
    })
}

pub(crate) fn json_of(state: &State) -> Value {
    serde_json::to_value(state).unwrap()
}

/// Reduces, and checks the outcome: it is `Changed` exactly if the state has changed.
pub(crate) fn step(state: &mut State, action: &Value) -> Result<ReduceOutcome, serde_json::Error> {
    let action: Action = serde_json::from_value(action.clone())?;
    let before = state.clone();
    let outcome = reduce::reduce(state, &action);
    assert_eq!(outcome.is_changed(), *state != before, "{action:?} on {before:?}");
    Ok(outcome)
}

/// The state after all actions, or the error of reading the case.
pub(crate) fn ours(reducer: &str, initial: &Value, actions: &[Value]) -> Result<Value, serde_json::Error> {
    let mut state = state(reducer, initial)?;
    for action in actions {
        step(&mut state, action)?;
    }
    Ok(json_of(&state))
}

/// The same by the protocol's own crate. An action that it cannot read counts as unknown there; here it is
/// distinguished.
pub(crate) fn theirs(reducer: &str, initial: &Value, actions: &[Value]) -> Result<Value, String> {
    let read = |action: &Value| -> Result<ahp_types::actions::StateAction, String> {
        let read = serde_json::from_value(action.clone()).map_err(|error| error.to_string())?;
        let is_known = Action::kinds().any(|(kind, _)| action["type"] == kind);
        match read {
            ahp_types::actions::StateAction::Unknown(_) if is_known => Err(format!("malformed {}", action["type"])),
            read => Ok(read),
        }
    };
    macro_rules! run {
        ($state:ty, $apply:path) => {{
            let mut state: $state = serde_json::from_value(initial.clone()).map_err(|error| error.to_string())?;
            for action in actions {
                $apply(&mut state, &read(action)?);
            }
            serde_json::to_value(&state).map_err(|error| error.to_string())
        }};
    }
    match reducer {
        "root" => run!(ahp_types::state::RootState, upstream::apply_action_to_root),
        "session" => run!(ahp_types::state::SessionState, upstream::apply_action_to_session),
        "chat" => run!(ahp_types::state::ChatState, upstream::apply_action_to_chat),
        "terminal" => run!(ahp_types::state::TerminalState, upstream::apply_action_to_terminal),
        "changeset" => run!(ahp_types::state::ChangesetState, upstream::apply_action_to_changeset),
        "annotations" => run!(ahp_types::state::AnnotationsState, upstream::apply_action_to_annotations),
        "resourceWatch" => run!(ahp_types::state::ResourceWatchState, upstream::apply_action_to_resource_watch),
        other => panic!("there is no reducer {other}"),
    }
}

/// Removes keys whose value is `null`: the cases write absence so.
pub(crate) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let kept = object.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}
