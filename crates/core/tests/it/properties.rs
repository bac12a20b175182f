//! Laws that hold for every run.

use grove_core::*;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::random::{self, Dice};

/// The numbers that a run of up to `length` steps is made from.
fn steps(length: usize) -> impl Strategy<Value = Vec<u64>> {
    vec(any::<u64>(), 1..length)
}

/// A command, its result, and the session before and after it.
struct Step<'a> {
    command: &'a Command,
    before: &'a Session,
    after: &'a Session,
    outcome: &'a Result<EventBatch, Rejection>,
}

/// Runs random commands through `advance` and shows each step to `look`.
fn run(steps: &[u64], mut look: impl FnMut(Step<'_>) -> Result<(), TestCaseError>) -> Result<(), TestCaseError> {
    let agent = random::agent();
    let mut session = Session::new(&random::new_session(), Timestamp(1));
    for (number, step) in steps.iter().enumerate() {
        let command = random::command(&session, &mut Dice::new(*step));
        let before = session.clone();
        let outcome = advance(&mut session, Some(&agent), command.clone(), Timestamp(number as u64 + 2));
        look(Step { command: &command, before: &before, after: &session, outcome: &outcome })?;
    }
    Ok(())
}

fn config() -> ProptestConfig {
    // The failing input is printed and small; a file of old ones would be stale with the next change of the generator.
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

/// A state in which most of the random events find their session, and half of them its turn.
fn lively_state() -> State {
    let mut state = State::default();
    let id = random::new_session().id;
    let created = SessionEvent::Created(Box::new(random::new_session()));
    apply(&mut state, &Event { at: Timestamp(1), change: Change::Session(id.clone(), created) });
    let message = Message::user("go");
    let started = ChatEvent::TurnStarted { turn: "turn-0".into(), message, started_at: None, queued: None };
    apply(&mut state, &Event { at: Timestamp(2), change: Change::Chat(id, Session::MAIN_CHAT.into(), started) });
    state
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn applying_never_panics_and_what_concerns_another_session_changes_nothing(steps in steps(300)) {
        let mut state = lively_state();
        for step in steps {
            let event = random::event(&mut Dice::new(step));
            let before = state.clone();
            apply(&mut state, &event);
            for (id, session) in &before.sessions {
                if event.change.session() != Some(id) {
                    prop_assert_eq!(state.sessions.get(id), Some(session));
                }
            }
        }
    }

    #[test]
    fn an_event_is_the_same_after_it_was_written_and_read(step in any::<u64>()) {
        let event = random::event(&mut Dice::new(step));
        let written = serde_json::to_string(&event).unwrap();
        prop_assert_eq!(serde_json::from_str::<Event>(&written).unwrap(), event, "{}", written);
    }

    #[test]
    fn advancing_is_the_same_as_applying_the_events_that_it_gives(steps in steps(200)) {
        let mut follower = Session::new(&random::new_session(), Timestamp(1));
        run(&steps, |Step { after, outcome, .. }| {
            for event in outcome.iter().flat_map(|batch| &batch.events) {
                follower.apply(event);
            }
            prop_assert_eq!(&follower, after);
            Ok(())
        })?;
    }

    #[test]
    fn a_refusal_leaves_the_session_unchanged(steps in steps(200)) {
        run(&steps, |Step { before, after, outcome, .. }| {
            if outcome.is_err() {
                prop_assert_eq!(before, after);
            }
            Ok(())
        })?;
    }

    #[test]
    fn after_every_command_the_session_is_in_line_with_its_chats(steps in steps(200)) {
        run(&steps, |Step { after, outcome, .. }| {
            prop_assert_eq!(mirror::pending_events(after), vec![], "after {:?}", outcome);
            let rows: Vec<ChatRow> = after.chats.iter().map(Chat::row).collect();
            prop_assert_eq!(&after.catalogue, &rows);
            let waiting = after.chats.iter().any(|chat| chat.status() == ChatStatus::InputNeeded);
            let asks = |input: &InputNeeded| !matches!(input.about, InputSubject::ClientExecution(_));
            prop_assert_eq!(waiting, after.input_needed.iter().any(asks));
            Ok(())
        })?;
    }

    #[test]
    fn messages_wait_in_an_idle_chat_of_a_usable_session_only_after_the_host_stopped_its_turn(steps in steps(200)) {
        let held = |chat: &Chat| chat.active.is_none() && (chat.steering.is_some() || !chat.queued.is_empty());
        run(&steps, |Step { command, before, after, .. }| {
            let failed = matches!(after.lifecycle, Lifecycle::CreationFailed(_));
            let may_wait = |id: &ChatId| match command {
                Command::Host(HostCommand::StopTurn { .. }) => true,
                Command::Host(HostCommand::StartQueued { chat }) if chat == id => false,
                _ => before.chat(id).is_some_and(held),
            };
            for chat in &after.chats {
                prop_assert!(failed || !held(chat) || may_wait(&chat.id), "{:?}", command);
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_command_that_changes_nothing_makes_nothing_happen(steps in steps(200)) {
        run(&steps, |Step { command, before, after, outcome }| {
            // An agent may repeat the current state, and a model that is chosen again is announced as chosen.
            let told = match command {
                Command::Agent(_) | Command::Host(HostCommand::Report(_)) => true,
                Command::Host(_) | Command::Client(..) => matches!(
                    command.client_command(),
                    Some(
                        ClientCommand::ChangeModel(_)
                            | ClientCommand::ReportClientOutput { .. }
                            | ClientCommand::ReorderQueue { .. }
                    )
                ),
            };
            if before == after && !told {
                prop_assert!(outcome.as_ref().map_or(true, |batch| batch.events.is_empty()), "{:?}", outcome);
            }
            Ok(())
        })?;
    }

    #[test]
    fn the_main_chat_stays_and_what_starts_a_turn_leaves_its_session_unread(steps in steps(200)) {
        run(&steps, |Step { after, outcome, .. }| {
            prop_assert_eq!(after.main_chat().map(|chat| chat.id.as_str()), Some(Session::MAIN_CHAT));
            let starts = |event: &Event| matches!(event.change, Change::Chat(_, _, ChatEvent::TurnStarted { .. }));
            if outcome.iter().flat_map(|batch| &batch.events).any(starts) {
                prop_assert!(!after.is_read);
            }
            Ok(())
        })?;
    }

    #[test]
    fn finished_turns_never_change_and_their_ids_are_unique(steps in steps(200)) {
        run(&steps, |Step { before, after, outcome, .. }| {
            let moves = |event: &Event| matches!(event.change, Change::Chat(_, _, ChatEvent::TurnsCleared));
            let moved = outcome.iter().flat_map(|batch| &batch.events).any(moves);
            for is in &after.chats {
                let Some(was) = before.chat(&is.id) else { continue };
                match moved {
                    // Other turns are shown, each unchanged.
                    true => prop_assert!(is.turns.iter().all(|turn| was.turns.contains(turn)) || is.turns == was.turns),
                    false => prop_assert_eq!(&is.turns[..was.turns.len()], &was.turns[..]),
                }
                let mut ids: Vec<_> = is.turns.iter().map(|turn| &turn.id).collect();
                ids.extend(is.active.as_ref().map(|active| &active.id));
                let count = ids.len();
                ids.sort();
                ids.dedup();
                prop_assert_eq!(ids.len(), count);
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_text_is_the_concatenation_of_its_deltas(deltas in vec(("[a-z ñ🌲]{0,6}", any::<bool>()), 0..60)) {
        let mut session = Session::new(&random::new_session(), Timestamp(1));
        let chat = ChatId::from(Session::MAIN_CHAT);
        let turn = TurnId::from("t1");
        let mut act = |command: Command| advance(&mut session, None, command, Timestamp(2)).unwrap();
        let message = Message::user("go");
        let start = ClientCommand::StartTurn { chat: chat.clone(), turn: turn.clone(), message, started_at: None };
        act(Command::Client("c".into(), start));
        let text = Part::Text(TextPart { id: "text".into(), content: String::new(), delivery: Delivery::Streamed });
        let thought = Part::Reasoning { id: "thought".into(), content: String::new() };
        for part in [text, thought] {
            let event = ChatEvent::PartAdded { turn: turn.clone(), part };
            act(Command::Agent(EventReport::Chat { chat: chat.clone(), event }));
        }
        let (mut said, mut thought) = (String::new(), String::new());
        for (content, aloud) in deltas {
            let (turn, content_of) = (turn.clone(), if aloud { &mut said } else { &mut thought });
            content_of.push_str(&content);
            let event = match aloud {
                true => ChatEvent::TextDelta { turn, part: "text".into(), content },
                false => ChatEvent::ReasoningDelta { turn, part: "thought".into(), content },
            };
            act(Command::Agent(EventReport::Chat { chat: chat.clone(), event }));
        }
        let end = ChatEvent::TurnCompleted { turn, duration: None };
        act(Command::Agent(EventReport::Chat { chat: chat.clone(), event: end }));
        let parts = &session.main_chat().unwrap().turns[0].parts;
        prop_assert_eq!(&parts[0], &Part::Text(TextPart {
            id: "text".into(), content: said, delivery: Delivery::Streamed,
        }));
        prop_assert_eq!(&parts[1], &Part::Reasoning { id: "thought".into(), content: thought });
    }
}
