//! The dialect law for the Agent Host Protocol: a client that reduces the actions has the state that the host projects,
//! in every form of the URIs, with our reducers and with the published ones.
//!
//! The protocol does not have actions for all members of its states. Such a member is as old as its snapshot if a state
//! is kept by actions, so the law excludes it:
//!
//! - `title`, `changes` and `interactivity` of a chat's own state: they are sent as `session/chatUpdated`, on the
//!   session's channel;
//! - for the published reducers, the activity in the `status` of a session (bits 0 to 4), and `config.schema` of a
//!   session if an agent announces its settings later. Both follow from the rest of the state, so the law includes them
//!   with our reducers and `derive_session`.

use std::collections::{BTreeMap, BTreeSet};

use ahp::reducers as published;
use ahp_types::actions::StateAction;
use grove_core::*;
use grove_wire::ahp::schema::SchemaValidator;
use grove_wire::ahp::uri::{SessionUris, Spelling};
use grove_wire::ahp::{self as ours, Action, ChatState, RootState, SessionState, decode, encode, project, reduce};
use grove_wire::jsonrpc;
use proptest::collection::vec;
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::random::{self, Dice};

const SPELLINGS: [Spelling; 3] = [Spelling::Computed, Spelling::Plain, Spelling::Derived];

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, cases, ..ProptestConfig::default() }
}

/// Deviations of the published reducers from the protocol: the action, and the bug.
const PUBLISHED_BUGS: &[(&str, &str)] = &[(
    "chat/queuedMessagesReordered",
    "messages that the order does not name come in the order of their ids, not as they were",
)];

/// The complete state that a client may hold of a session.
#[derive(Clone, Debug, PartialEq)]
struct ObservedState {
    session: SessionState,
    /// By the URI of their channels.
    chats: BTreeMap<String, ChatState>,
}

impl ObservedState {
    fn of(session: &Session, spelling: Spelling) -> Self {
        let names = SessionUris::of(session);
        let chat = |chat: &Chat| (names.chat(&chat.id, spelling), project::chat(&session.id, chat, &names, spelling));
        Self { session: project::session(session, &names, spelling), chats: session.chats.iter().map(chat).collect() }
    }

    /// Removes members that no action carries, and those that follow from the rest.
    fn lawful(self, event: &Event) -> Self {
        let mut lawful = self.derived();
        lawful.session.status &= !ours::status::ACTIVITY;
        if let (Change::Session(_, SessionEvent::DetailsChanged(_)), Some(config)) =
            (&event.change, &mut lawful.session.config)
        {
            config.schema = ours::SessionConfigSchema::default();
        }
        lawful
    }

    /// Removes members that no action of its channel carries.
    fn derived(mut self) -> Self {
        for chat in self.chats.values_mut() {
            chat.title.clear();
            chat.changes = None;
            chat.interactivity = None;
        }
        self
    }
}

/// The names for encoding an event: those that every recipient knows.
fn names_for(before: &Session, after: &Session, event: &Event) -> SessionUris {
    match &event.change {
        Change::Session(_, SessionEvent::ChatRemoved(_)) => SessionUris::of(before),
        _ => SessionUris::of(after),
    }
}

/// Reads a value with the published types, which must know all of it.
fn published<T: DeserializeOwned + std::fmt::Debug>(value: &Value) -> T {
    let read: T = serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"));
    assert!(!format!("{read:?}").contains("Unknown("), "unknown to the published types: {value}");
    read
}

fn json_of(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

/// A state as the published types write it.
fn as_published<T: DeserializeOwned + serde::Serialize>(state: &impl serde::Serialize) -> Value {
    json_of(&serde_json::from_value::<T>(json_of(state)).unwrap())
}

/// The differences of two values, with their places.
fn differences(mine: &Value, theirs: &Value, place: &str, found: &mut Vec<String>) {
    match (mine, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                let (a, b) = (a.get(key).unwrap_or(&Value::Null), b.get(key).unwrap_or(&Value::Null));
                differences(a, b, &format!("{place}/{key}"), found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                differences(a, b, &format!("{place}/{at}"), found);
            }
        }
        (a, b) if a == b => {}
        (a, b) => found.push(format!("{place}: {a}, not {b}")),
    }
}

/// Requires that two states are equal; reports only the differences.
fn same(what: &str, reduced: &Value, projected: &Value, after: &dyn std::fmt::Debug) -> Result<(), TestCaseError> {
    let mut found = Vec::new();
    differences(reduced, projected, "", &mut found);
    prop_assert!(found.is_empty(), "{} differs: {:#?} after {:?}", what, found, after);
    Ok(())
}

/// Checks the published reducers against ours. `after` is the expected state.
fn published_agree(
    seen: &ObservedState,
    channel: &str,
    action: &Value,
    after: &ObservedState,
) -> Result<(), TestCaseError> {
    let told: StateAction = published(action);
    let kind = action["type"].as_str().unwrap();
    let what = "the state under the published reducer";
    match (seen.chats.get(channel), after.chats.get(channel)) {
        (Some(before), Some(after)) => {
            let mut reduced: ahp_types::state::ChatState = serde_json::from_value(json_of(before)).unwrap();
            let outcome = published::apply_action_to_chat(&mut reduced, &told);
            prop_assert!(
                matches!(outcome, published::ReduceOutcome::Applied | published::ReduceOutcome::NoOp),
                "{}: {:?}",
                kind,
                outcome
            );
            let mut reduced = json_of(&reduced);
            let mut wanted = as_published::<ahp_types::state::ChatState>(after);
            if PUBLISHED_BUGS.iter().any(|(bug, _)| *bug == kind) {
                for state in [&mut reduced, &mut wanted] {
                    sort_queue(state);
                }
            }
            same(what, &reduced, &wanted, action)
        }
        (_, _) if kind.starts_with("session/") => {
            let mut reduced: ahp_types::state::SessionState = serde_json::from_value(json_of(&seen.session)).unwrap();
            let outcome = published::apply_action_to_session(&mut reduced, &told);
            prop_assert!(!matches!(outcome, published::ReduceOutcome::OutOfScope), "{} is out of scope", kind);
            reduced.status &= !ours::status::ACTIVITY;
            let wanted = as_published::<ahp_types::state::SessionState>(&after.session);
            same(what, &json_of(&reduced), &wanted, action)
        }
        (_, _) => Ok(()),
    }
}

fn sort_queue(chat: &mut Value) {
    if let Some(queue) = chat.get_mut("queuedMessages").and_then(Value::as_array_mut) {
        queue.sort_by_key(|message| message["id"].to_string());
    }
}

/// Checks the law for one event and one form. Returns the type of the action.
fn holds(
    closed: &SchemaValidator,
    before: &Session,
    after: &Session,
    event: &Event,
    spelling: Spelling,
) -> Result<Option<String>, TestCaseError> {
    let names = names_for(before, after, event);
    let projected = ObservedState::of(after, spelling);
    let mut seen = ObservedState::of(before, spelling);
    // New chats have no state to reduce, and removed ones none to compare with.
    let mut wanted = projected;
    wanted.chats.retain(|uri, _| seen.chats.contains_key(uri));
    // A chat that begins with another's turns is new until it has them.
    if let Change::Chat(_, chat, ChatEvent::TurnsInherited { .. }) = &event.change {
        wanted.chats.remove(&names.chat(chat, spelling));
    }
    seen.chats.retain(|uri, _| wanted.chats.contains_key(uri));
    let Some((channel, action)) = encode::action(event, Some(&names), spelling) else {
        prop_assert_eq!(seen.derived(), wanted.derived(), "nothing tells {:?}", event);
        return Ok(None);
    };
    // Through text, as on the wire.
    let text = serde_json::to_string(&action).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    let envelope = json!({"channel": channel, "action": value, "serverSeq": 1});
    let valid = closed.notification("action", &envelope);
    prop_assert!(valid.is_ok(), "{}: {}", envelope, valid.unwrap_err());
    let told = Action::parse(&text).unwrap();
    prop_assert_eq!(&told, &action, "what is read is what was written");

    published_agree(&seen.clone().lawful(event), &channel, &value, &wanted.clone().lawful(event))?;
    match &told {
        Action::Session(action) => {
            prop_assert_eq!(&channel, names.session(spelling));
            reduce::session(&mut seen.session, action);
            ours::derive_session(&mut seen.session);
        }
        Action::Chat(action) => {
            let Change::Chat(_, chat, _) = &event.change else { panic!("{event:?} is of no chat") };
            prop_assert_eq!(&channel, &names.chat(chat, spelling));
            if let Some(chat) = seen.chats.get_mut(&channel) {
                reduce::chat(chat, action);
            }
        }
        other => panic!("{other:?} is of neither a session nor a chat"),
    }
    let (mut seen, mut wanted) = (seen.derived(), wanted.derived());
    if let Change::Session(_, SessionEvent::DetailsChanged(details)) = &event.change
        && details.settings.is_none()
    {
        // A schema that is not announced any more leaves the initial one of the session, which only a snapshot has.
        for config in [&mut seen.session.config, &mut wanted.session.config].into_iter().flatten() {
            config.schema = ours::SessionConfigSchema::default();
        }
    }
    same("a session", &json_of(&seen.session), &json_of(&wanted.session), event)?;
    same("a chat", &json_of(&seen.chats), &json_of(&wanted.chats), event)?;
    prop_assert_eq!(seen, wanted);
    Ok(Some(told.kind().to_owned()))
}

/// Checks that snapshots match the schema.
fn snapshots_are_valid(closed: &SchemaValidator, session: &Session, spelling: Spelling) -> Result<(), TestCaseError> {
    let seen = ObservedState::of(session, spelling);
    let chats = seen.chats.values().map(|chat| ("ChatState", json_of(chat)));
    for (name, state) in std::iter::once(("SessionState", json_of(&seen.session))).chain(chats) {
        let valid = closed.named(name, &state);
        prop_assert!(valid.is_ok(), "{}: {}", name, valid.unwrap_err());
        match name {
            "ChatState" => drop(published::<ahp_types::state::ChatState>(&state)),
            _ => drop(published::<ahp_types::state::SessionState>(&state)),
        }
    }
    let names = SessionUris::of(session);
    let summary = json_of(&project::summary(session, false, &names, spelling));
    let valid = closed.named("SessionSummary", &summary);
    prop_assert!(valid.is_ok(), "{}: {}", summary, valid.unwrap_err());
    published::<ahp_types::state::SessionSummary>(&summary);
    Ok(())
}

/// Checks that a client's action expresses its command: decoded and executed, it gives the same action.
fn says_what_is_wanted(
    before: &Session,
    batch: &EventBatch,
    who: &Actor,
    now: Timestamp,
    spelling: Spelling,
) -> Result<(), TestCaseError> {
    let (Actor::Client(client), Some(event)) = (who, batch.events.first()) else { return Ok(()) };
    // Only clients of the SDK change permissions without asking: AHP has no action for it.
    if matches!(&event.change, Change::Session(_, SessionEvent::DetailsChanged(_))) {
        return Ok(());
    }
    let names = SessionUris::of(before);
    let Some((_, action)) = encode::action(event, Some(&names), spelling) else { return Ok(()) };
    let chat = match &event.change {
        Change::Chat(_, chat, _) => Some(chat),
        _ => None,
    };
    let command = decode::command(action.clone(), chat);
    prop_assert!(command.is_ok(), "{:?} is refused: {:?}", action, command);
    let mut again = before.clone();
    // The host adds the party behind an answer, whatever the action says.
    let command = match party(event) {
        Some(party) => command.unwrap().answered_by(party),
        None => command.unwrap(),
    };
    let command = Command::Client(client.clone(), command);
    let repeated = advance(&mut again, Some(&random::agent()), command, now);
    prop_assert!(repeated.is_ok(), "{:?} is refused: {:?}", action, repeated);
    let repeated = repeated.unwrap();
    let told = |batch: &EventBatch| -> Vec<_> {
        batch.events.iter().map(|event| encode::action(event, Some(&names), spelling)).collect()
    };
    // Another dialect's unmodelled data are not sent here; a change of only those is none.
    let mut after = before.clone();
    batch.events.iter().for_each(|event| after.apply(event));
    if !(repeated.events.is_empty() && ObservedState::of(before, spelling) == ObservedState::of(&after, spelling)) {
        prop_assert_eq!(told(&repeated), told(batch));
    }
    Ok(())
}

/// The party behind an answer.
fn party(event: &Event) -> Option<&Answerer> {
    let Change::Chat(_, _, event) = &event.change else { return None };
    match event {
        ChatEvent::ToolCallConfirmed { answer, .. } | ChatEvent::ToolCallResultConfirmed { answer, .. } => {
            answer.as_deref().map(|answer| &answer.by)
        }
        ChatEvent::InputAnswered { answered_by, .. } => answered_by.as_deref(),
        _ => None,
    }
}

/// Checks that the frame of an event is its action in an envelope, however it was made.
fn frame_is_the_action(event: &Event, names: &SessionUris, spelling: Spelling) -> Result<(), TestCaseError> {
    let framed = encode::frame(event, 7, None, Some(names), spelling);
    let Some((channel, action)) = encode::action(event, Some(names), spelling) else {
        prop_assert_eq!(framed, None);
        return Ok(());
    };
    let kind = action.kind().to_owned();
    let envelope = ours::ActionEnvelope { channel, action, server_seq: 7, origin: None, rejection_reason: None };
    let slow = jsonrpc::notification("action", &envelope).unwrap();
    let (told, frame) = framed.unwrap();
    prop_assert_eq!(told, kind);
    prop_assert_eq!(encode::envelope_in(&frame).unwrap(), serde_json::to_string(&envelope).unwrap());
    prop_assert_eq!(frame, slow);
    Ok(())
}

/// Checks that a chat assembled from encoded turns is the chat.
fn pieces_make_the_chat(session: &Session, spelling: Spelling) -> Result<(), TestCaseError> {
    let names = SessionUris::of(session);
    for chat in &session.chats {
        let turns: Vec<_> = chat.turns.iter().map(|turn| project::turn_json(&session.id, turn)).collect();
        let cursor = chat.turns.first().filter(|_| chat.has_older_turns).map(|turn| turn.id.to_string());
        let json = project::chat_json(&session.id, chat, &turns, cursor, &names, spelling).unwrap();
        let whole = serde_json::to_string(&project::chat(&session.id, chat, &names, spelling)).unwrap();
        prop_assert_eq!(json, whole);
    }
    Ok(())
}

/// The notable situations of a session: where the law could break.
fn situations(session: &Session) -> Vec<&'static str> {
    let parts = || session.chats.iter().filter_map(|chat| chat.active.as_ref()).flat_map(|turn| turn.parts());
    let calls = || {
        parts().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call.as_ref()),
            _ => None,
        })
    };
    let turns = || session.chats.iter().filter_map(|chat| chat.active.as_ref()?.usage.as_ref());
    let is_attached = |output: &ToolOutput| output.pieces.is_none() && !output.attached.is_empty();
    let gave_something = |call: &ToolCall| match &call.status {
        ToolCallStatus::Completed(result) => !result.attached.is_empty(),
        _ => false,
    };
    let needed = |fits: fn(&InputSubject) -> bool| session.input_needed.iter().any(|input| fits(&input.about));
    let all = [
        (calls().any(|call| call.status == ToolCallStatus::Ready), "a call waits for its gate"),
        (calls().any(|call| call.announced.is_some()), "a call is restated"),
        (calls().any(|call| call.output.is_some()), "a call has put something out"),
        (calls().any(|call| call.client.is_some()), "a client runs a call"),
        (
            calls().any(|call| call.confirmed.as_ref().is_some_and(|confirmed| confirmed.option.is_some())),
            "an option was chosen",
        ),
        (needed(|about| matches!(about, InputSubject::Question(_))), "a question is open"),
        (needed(|about| matches!(about, InputSubject::ToolConfirmation(_))), "a confirmation is open"),
        (needed(|about| matches!(about, InputSubject::ClientExecution(_))), "a client is asked"),
        (session.chats.len() > 2, "there are three chats"),
        (session.chats.iter().filter(|chat| chat.active.is_some()).count() > 1, "two turns run"),
        (session.chats.iter().any(|chat| chat.queued.len() > 2), "messages wait"),
        (session.chats.iter().any(|chat| chat.steering.is_some()), "a message steers"),
        (session.chats.iter().any(|chat| chat.draft.is_some()), "something is being written"),
        (session.active_clients.len() > 1, "two clients take part"),
        (matches!(session.lifecycle, Lifecycle::CreationFailed(_)), "the creation failed"),
        (parts().any(|part| matches!(part, Part::Plan(entries) if !entries.is_empty())), "there is a plan"),
        (parts().any(|part| matches!(part, Part::Notice(_))), "there is a notice"),
        (calls().any(|call| call.extra.is_some()), "an agent says more of a call"),
        (calls().any(|call| call.output.as_ref().is_some_and(is_attached)), "a running call has something attached"),
        (calls().any(gave_something), "a result has something attached"),
        (
            session.chats.iter().any(|chat| chat.active.is_some() && chat.activity.is_some()),
            "a turn is busy with something",
        ),
        (session.chats.iter().any(|chat| chat.agent_session.is_some()), "an agent has its own name for a chat"),
        (turns().any(|usage| usage.cost.is_some() && usage.context.is_some()), "something was spent"),
        (!session.details.remembered.is_empty(), "an answer is remembered"),
        (session.details.settings.is_some(), "an agent said what may be set"),
        (
            !session.details.commands.is_empty() && !session.details.warnings.is_empty(),
            "there are commands and warnings",
        ),
    ];
    all.into_iter().filter_map(|(is_so, name)| is_so.then_some(name)).collect()
}

const SITUATIONS: usize = 26;

/// Runs `steps`, checks the law for every event, and returns the types of the actions and the situations that occurred.
fn hold_to_law(steps: &[u64]) -> Result<BTreeSet<String>, TestCaseError> {
    let (agent, closed) = (random::agent(), SchemaValidator::new());
    let mut session = Session::new(&random::new_session(), Timestamp(1));
    let mut seen = BTreeSet::new();
    for (number, step) in steps.iter().enumerate() {
        let command = random::command(&session, &mut Dice::new(*step));
        let who = command.sender();
        let mut before = session.clone();
        let now = Timestamp(number as u64 + 2);
        let Ok(batch) = advance(&mut session, Some(&agent), command, now) else { continue };
        for spelling in SPELLINGS {
            says_what_is_wanted(&before, &batch, &who, now, spelling)?;
        }
        for event in &batch.events {
            let mut after = before.clone();
            after.apply(event);
            for spelling in SPELLINGS {
                seen.extend(holds(&closed, &before, &after, event, spelling)?);
                frame_is_the_action(event, &names_for(&before, &after, event), spelling)?;
            }
            before = after;
        }
        // Complete states are large: one form of names at a time.
        let spelling = SPELLINGS[number % SPELLINGS.len()];
        pieces_make_the_chat(&session, spelling)?;
        snapshots_are_valid(&closed, &session, spelling)?;
        seen.extend(situations(&session).into_iter().map(str::to_owned));
    }
    Ok(seen)
}

proptest! {
    #![proptest_config(config(12))]

    #[test]
    fn reducing_the_action_gives_the_projection_of_what_the_event_made(steps in vec(any::<u64>(), 1..150)) {
        hold_to_law(&steps)?;
    }
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn reducing_the_root_action_gives_the_projection_of_the_root(steps in vec(any::<u64>(), 1..30)) {
        let closed = SchemaValidator::new();
        let mut state = State::default();
        for step in steps {
            let mut dice = Dice::new(step);
            let root = match dice.chance(50) {
                true => RootEvent::AgentsChanged((0..dice.below(3)).map(|_| random::agent()).collect()),
                false => RootEvent::ActiveSessionsChanged(dice.below(9) as u32),
            };
            let event = Event { at: Timestamp(1), change: Change::Root(root) };
            let mut seen = project::root(&state.root);
            apply(&mut state, &event);
            let (channel, action) = encode::action(&event, None, Spelling::Computed).unwrap();
            prop_assert_eq!(channel, ours::ROOT);
            let told = json_of(&action);
            closed.notification("action", &json!({"channel": ours::ROOT, "action": told, "serverSeq": 1})).unwrap();
            let mut theirs: ahp_types::state::RootState = published(&json_of(&seen));
            published::apply_action_to_root(&mut theirs, &published(&told));
            let Action::Root(action) = action else { panic!("an event of the root became {action:?}") };
            reduce::root(&mut seen, &action);
            let projected: RootState = project::root(&state.root);
            closed.named("RootState", &json_of(&projected)).unwrap();
            prop_assert_eq!(json_of(&theirs), as_published::<ahp_types::state::RootState>(&projected));
            prop_assert_eq!(seen, projected);
        }
    }
}

/// The law proves little about a run in which little happens.
#[test]
fn the_random_runs_reach_every_action_that_an_event_can_become_and_every_remarkable_situation() {
    let mut seen = BTreeSet::new();
    for run in 0..36u64 {
        let steps: Vec<u64> = (0..120).map(|step| run * 1_000 + step).collect();
        seen.extend(hold_to_law(&steps).unwrap());
    }
    let (actions, situations): (BTreeSet<_>, BTreeSet<_>) = seen.into_iter().partition(|name| name.contains('/'));
    let wanted = [
        "chat/activityChanged",
        "chat/delta",
        "chat/draftChanged",
        "chat/error",
        "chat/inputAnswerChanged",
        "chat/inputCompleted",
        "chat/inputRequested",
        "chat/isArchivedChanged",
        "chat/isReadChanged",
        "chat/pendingMessageRemoved",
        "chat/pendingMessageSet",
        "chat/queuedMessagesReordered",
        "chat/reasoning",
        "chat/responsePart",
        "chat/toolCallComplete",
        "chat/toolCallConfirmed",
        "chat/toolCallContentChanged",
        "chat/toolCallDelta",
        "chat/toolCallReady",
        "chat/toolCallResultConfirmed",
        "chat/toolCallStart",
        "chat/truncated",
        "chat/turnCancelled",
        "chat/turnComplete",
        "chat/turnStarted",
        "chat/turnsLoaded",
        "chat/usage",
        "session/activeClientRemoved",
        "session/activeClientSet",
        "session/chatAdded",
        "session/chatRemoved",
        "session/chatUpdated",
        "session/configChanged",
        "session/creationFailed",
        "session/inputNeededRemoved",
        "session/inputNeededSet",
        "session/isArchivedChanged",
        "session/isReadChanged",
        "session/metaChanged",
        "session/ready",
        "session/titleChanged",
    ];
    assert_eq!(actions, wanted.map(str::to_owned).into());
    assert_eq!(situations.len(), SITUATIONS, "{situations:?}");
}

/// The excepted bugs exist: when the published crate fixes one, its exception is removed.
#[test]
fn the_published_reducers_still_have_the_bugs_that_are_excepted() {
    let [(kind, _)] = PUBLISHED_BUGS else { panic!("each exception has its case here") };
    let queue = ["z", "a", "c"].map(|id| json!({"id": id, "message": {"text": id, "origin": {"kind": "user"}}}));
    let chat = json!({
        "resource": "ahp-chat:/c", "title": "", "status": 1, "modifiedAt": "2026-01-01T00:00:00.000Z", "turns": [],
        "queuedMessages": queue,
    });
    let action = json!({"type": kind, "order": ["c"]});
    let order = |chat: &Value| -> Vec<String> {
        let queue = chat["queuedMessages"].as_array().unwrap();
        queue.iter().map(|message| message["id"].as_str().unwrap().to_owned()).collect()
    };
    let mut theirs: ahp_types::state::ChatState = published(&chat);
    published::apply_action_to_chat(&mut theirs, &published(&action));
    assert_eq!(order(&json_of(&theirs)), ["c", "a", "z"]);
    let mut mine: ChatState = serde_json::from_value(chat).unwrap();
    let Action::Chat(action) = Action::parse(&action.to_string()).unwrap() else { panic!("not of a chat") };
    reduce::chat(&mut mine, &action);
    assert_eq!(order(&json_of(&mine)), ["c", "z", "a"]);
}
