//! The reducers against those of the protocol's own crate: the same actions, the same state after each of them.
//!
//! [`Bug`] lists the known bugs of that crate. There, ours differs, which other tests check against the rule, and the
//! comparison continues from our state.

use std::collections::BTreeSet;

use ahp::reducers::{self as upstream, ReduceOutcome};
use ahp_types::actions::StateAction;
use grove_wire::ahp::{ChatAction, SessionAction};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::ahp_reduce_random::{Dice, chat_action, empty_chat, empty_session, items, session_action};
use crate::ahp_reduce_support::{json_of, ours, state, step, theirs};

/// Deviations of ahp 1.0.0 from the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bug {
    /// A running or finished turn is started again.
    TurnStartedTwice,
    /// A turn whose start is not RFC 3339, or too late to add to, never ends.
    StartWithoutTime,
    /// Messages that a new order does not name are sorted by their ids.
    UnnamedSorted,
    /// `interactivity` and `movable` of a chat's row are never updated.
    FieldsOfChatDropped,
    /// A tool call with an unknown status is cancelled at the end of its turn, and loses its data.
    UnknownCallEmptied,
    /// A customization of an unknown type has no id there: it is neither inserted, replaced nor removed, and leaves an
    /// empty list instead of none.
    UnknownCustomizationDropped,
}

impl Bug {
    /// The bug that an action meets, if any.
    pub(crate) fn met(state: &Value, action: &Value) -> Option<Self> {
        match action["type"].as_str()? {
            "chat/turnStarted" => {
                let is_known = |turn: &Value| turn.is_object() && turn["id"] == action["turnId"];
                let known = is_known(&state["activeTurn"]) || items(&state["turns"]).any(is_known);
                known.then_some(Bug::TurnStartedTwice)
            }
            "chat/turnComplete" | "chat/turnCancelled" | "chat/error"
                if state["activeTurn"].is_object() && state["activeTurn"]["id"] == action["turnId"] =>
            {
                let turn = &state["activeTurn"];
                let start = turn["startedAt"].as_str()?.parse::<jiff::Timestamp>();
                let duration = jiff::SignedDuration::from_millis(action["duration"].as_i64()?.max(0));
                if !start.is_ok_and(|start| start.checked_add(duration).is_ok()) {
                    return Some(Bug::StartWithoutTime);
                }
                let is_unknown = |part: &Value| part["toolCall"]["status"] == "new";
                items(&turn["responseParts"]).any(is_unknown).then_some(Bug::UnknownCallEmptied)
            }
            "chat/queuedMessagesReordered" => {
                let is_unnamed = |message: &&Value| !items(&action["order"]).any(|id| *id == message["id"]);
                let unnamed = items(&state["queuedMessages"]).filter(is_unnamed).count();
                (unnamed > 1).then_some(Bug::UnnamedSorted)
            }
            "session/chatUpdated" => {
                let changes = action["changes"].as_object()?;
                let dropped = ["interactivity", "movable"].iter().any(|field| changes.contains_key(*field));
                dropped.then_some(Bug::FieldsOfChatDropped)
            }
            kind if kind.starts_with("session/customization") || kind.starts_with("session/mcpServer") => {
                let customization = &action["customization"];
                let id = customization.get("id").unwrap_or(&action["id"]);
                let is_it = |known: &Value| known["type"] == "new" && known["id"] == *id;
                let met = is_it(customization) || items(&state["customizations"]).any(is_it);
                met.then_some(Bug::UnknownCustomizationDropped)
            }
            _ => None,
        }
    }
}

/// One more bug, of the types there: a call that waits for a token is read as one with an unknown status. So no
/// comparison begins with such a state.
fn is_misread(state: &Value) -> bool {
    items(&state["activeTurn"]["responseParts"]).any(|part| part["toolCall"]["status"] == "auth-required")
}

/// Runs both through the same actions, generated one after the other from the current state.
fn compare<S: Serialize + DeserializeOwned>(
    reducer: &str,
    initial: &Value,
    apply: fn(&mut S, &StateAction) -> ReduceOutcome,
    rolls: Vec<[u8; 16]>,
    make_up: fn(&mut Dice, &Value) -> Value,
) {
    let mut ours = state(reducer, initial).unwrap();
    let mut theirs: S = serde_json::from_value(initial.clone()).unwrap();
    for rolls in rolls {
        let before = json_of(&ours);
        let action = make_up(&mut Dice::new(rolls), &before);
        step(&mut ours, &action).unwrap();
        if Bug::met(&before, &action).is_some() {
            if is_misread(&json_of(&ours)) {
                return;
            }
            theirs = serde_json::from_value(json_of(&ours)).unwrap();
        } else {
            let read: StateAction = serde_json::from_value(action.clone()).unwrap();
            assert!(!matches!(read, StateAction::Unknown(_)), "{action} is malformed");
            apply(&mut theirs, &read);
        }
        assert_eq!(json_of(&ours), serde_json::to_value(&theirs).unwrap(), "{action}\non {before}");
    }
}

fn rolls() -> impl Strategy<Value = Vec<[u8; 16]>> {
    proptest::collection::vec(any::<[u8; 16]>(), 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_chat_is_what_the_protocols_own_reducer_makes_of_it(rolls in rolls()) {
        compare("chat", &empty_chat(), upstream::apply_action_to_chat, rolls, chat_action);
    }

    #[test]
    fn a_session_is_what_the_protocols_own_reducer_makes_of_it(rolls in rolls()) {
        compare("session", &empty_session(), upstream::apply_action_to_session, rolls, session_action);
    }
}

/// A comparison of states that never change would prove nothing.
#[test]
fn what_is_made_up_for_the_comparison_changes_something_in_every_way() {
    let mut changing = BTreeSet::new();
    let mut runner = TestRunner::deterministic();
    let mut run = |reducer: &str, initial: Value, make_up: fn(&mut Dice, &Value) -> Value| {
        for _ in 0..200 {
            let mut state = state(reducer, &initial).unwrap();
            for rolls in rolls().new_tree(&mut runner).unwrap().current() {
                let action = make_up(&mut Dice::new(rolls), &json_of(&state));
                if step(&mut state, &action).unwrap().is_changed() {
                    changing.insert(action["type"].as_str().unwrap().to_owned());
                }
            }
        }
    };
    run("chat", empty_chat(), chat_action);
    run("session", empty_session(), session_action);
    let kinds = ChatAction::KINDS.iter().chain(SessionAction::KINDS).map(|(kind, _)| *kind);
    let never: Vec<_> = kinds.filter(|kind| !changing.contains(*kind)).collect();
    assert!(never.is_empty(), "{never:?}");
}

/// An exception that is not needed any more hides something else: each bug must still exist.
#[test]
fn every_bug_of_the_protocols_own_reducers_is_still_there() {
    let message = json!({"text": "hi", "origin": {"kind": "user"}});
    let start = |at: &str| json!({"type": "chat/turnStarted", "turnId": "t", "startedAt": at, "message": message});
    let end = json!({"type": "chat/turnComplete", "turnId": "t", "duration": 1});
    let queue = |id: &str| json!({"type": "chat/pendingMessageSet", "kind": "queued", "id": id, "message": message});
    let call = json!({"kind": "toolCall", "toolCall": {"status": "new", "toolCallId": "c"}});
    let summary = json!({"resource": "ahp-chat:/1", "title": "", "status": 1, "modifiedAt": "x"});
    let unknown = json!({"type": "new", "id": "n"});

    let still_there = |bug: Bug, reducer: &str, actions: &[Value]| {
        let initial = if reducer == "chat" { empty_chat() } else { empty_session() };
        let (last, before) = actions.split_last().unwrap();
        let state = ours(reducer, &initial, before).unwrap();
        assert_eq!(state, theirs(reducer, &initial, before).unwrap(), "{bug:?}");
        assert_eq!(Bug::met(&state, last), Some(bug));
        assert_ne!(ours(reducer, &initial, actions).unwrap(), theirs(reducer, &initial, actions).unwrap(), "{bug:?}");
    };
    let valid = start("2026-01-01T00:00:00Z");
    still_there(Bug::TurnStartedTwice, "chat", &[valid.clone(), end.clone(), valid.clone()]);
    still_there(Bug::StartWithoutTime, "chat", &[start("soon"), end.clone()]);
    let reordered = json!({"type": "chat/queuedMessagesReordered", "order": ["c"]});
    still_there(Bug::UnnamedSorted, "chat", &[queue("z"), queue("a"), queue("c"), reordered]);
    let said = json!({"type": "chat/responsePart", "turnId": "t", "part": call});
    still_there(Bug::UnknownCallEmptied, "chat", &[valid, said, end]);
    let added = json!({"type": "session/chatAdded", "summary": summary});
    for changes in [json!({"movable": true}), json!({"interactivity": "hidden"})] {
        let updated = json!({"type": "session/chatUpdated", "chat": "ahp-chat:/1", "changes": changes});
        still_there(Bug::FieldsOfChatDropped, "session", &[added.clone(), updated]);
    }
    let updated = json!({"type": "session/customizationUpdated", "customization": unknown});
    still_there(Bug::UnknownCustomizationDropped, "session", &[updated]);
    let all = json!({"type": "session/customizationsChanged", "customizations": [unknown]});
    let removed = json!({"type": "session/customizationRemoved", "id": "n"});
    still_there(Bug::UnknownCustomizationDropped, "session", &[all, removed]);
}

#[test]
fn a_call_that_waits_for_a_token_is_still_misread_there() {
    let mut chat = empty_chat();
    chat["status"] = json!(24);
    let call = json!({"status": "auth-required", "toolCallId": "c", "toolName": "t", "displayName": "T",
        "invocationMessage": "i", "confirmed": "not-needed", "contributor": {"kind": "mcp", "customizationId": "s"},
        "auth": {"reason": "required", "resource": {"resource": "https://a.example"}}});
    chat["activeTurn"] = json!({"id": "t", "startedAt": "2026-01-01T00:00:00Z",
        "message": {"text": "hi", "origin": {"kind": "user"}},
        "responseParts": [{"kind": "toolCall", "toolCall": call}]});
    assert!(is_misread(&chat));
    let resolved = [json!({"type": "chat/toolCallAuthResolved", "turnId": "t", "toolCallId": "c"})];
    let call = |state: Value| state["activeTurn"]["responseParts"][0]["toolCall"]["status"].clone();
    assert_eq!(call(ours("chat", &chat, &resolved).unwrap()), "running");
    assert_eq!(call(theirs("chat", &chat, &resolved).unwrap()), "auth-required");
}
