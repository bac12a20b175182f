//! Laws that hold for every run, whatever happens in it.

use grove_core::*;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::random::{self, Dice};

/// The numbers that a run of up to `length` steps is made from.
fn steps(length: usize) -> impl Strategy<Value = Vec<u64>> {
    vec(any::<u64>(), 1..length)
}

/// Runs random commands through `advance` and shows each outcome, with the session before it, to `look`.
fn run(
    steps: &[u64],
    mut look: impl FnMut(&Session, &Session, &Result<Batch, Rejection>) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let agent = random::agent();
    let mut session = Session::new(&random::new_session(), Timestamp(1));
    for (number, step) in steps.iter().enumerate() {
        let (command, who) = random::command(&session, &mut Dice::new(*step));
        let before = session.clone();
        let outcome = advance(&mut session, Some(&agent), command, &who, Timestamp(number as u64 + 2));
        look(&before, &session, &outcome)?;
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
    let started = ChatEvent::TurnStarted { turn: "turn-0".into(), message: Message::user("go") };
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
    fn advancing_is_the_same_as_applying_the_events_that_it_gives(steps in steps(200)) {
        let mut follower = Session::new(&random::new_session(), Timestamp(1));
        run(&steps, |_, after, outcome| {
            for event in outcome.iter().flat_map(|batch| &batch.events) {
                follower.apply(event);
            }
            prop_assert_eq!(&follower, after);
            Ok(())
        })?;
    }

    #[test]
    fn a_refusal_leaves_the_session_unchanged(steps in steps(200)) {
        run(&steps, |before, after, outcome| {
            if outcome.is_err() {
                prop_assert_eq!(before, after);
            }
            Ok(())
        })?;
    }

    #[test]
    fn after_every_command_the_session_is_in_line_with_its_chats(steps in steps(200)) {
        run(&steps, |_, after, outcome| {
            prop_assert_eq!(mirror::due(after), vec![], "after {:?}", outcome);
            for (row, chat) in after.catalogue.iter().zip(&after.chats) {
                prop_assert_eq!((&row.chat, row.status, row.modified_at), (&chat.id, chat.status(), chat.modified_at));
            }
            let waiting = after.chats.iter().any(|chat| chat.status() == ChatStatus::InputNeeded);
            prop_assert_eq!(waiting, !after.input_needed.is_empty());
            Ok(())
        })?;
    }

    #[test]
    fn an_idle_chat_of_a_usable_session_has_no_message_waiting(steps in steps(200)) {
        run(&steps, |_, after, _| {
            let failed = matches!(after.lifecycle, Lifecycle::CreationFailed(_));
            for chat in &after.chats {
                prop_assert!(failed || chat.active.is_some() || chat.queued.is_empty());
            }
            Ok(())
        })?;
    }

    #[test]
    fn finished_turns_never_change_and_their_ids_are_unique(steps in steps(200)) {
        run(&steps, |before, after, _| {
            for (was, is) in before.chats.iter().zip(&after.chats) {
                prop_assert_eq!(&is.turns[..was.turns.len()], &was.turns[..]);
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
        let mut act = |command, who: Who| advance(&mut session, None, command, &who, Timestamp(2)).unwrap();
        let message = Message::user("go");
        act(Command::StartTurn { chat: chat.clone(), turn: turn.clone(), message }, Who::Client("c".into()));
        let text = Part::Text(TextPart { id: "text".into(), content: String::new(), delivery: Delivery::Streamed });
        let thought = Part::Reasoning { id: "thought".into(), content: String::new() };
        for part in [text, thought] {
            let event = ChatEvent::PartAdded { turn: turn.clone(), part };
            act(Command::Report { chat: chat.clone(), event }, Who::Agent);
        }
        let (mut said, mut thought) = (String::new(), String::new());
        for (content, aloud) in deltas {
            let (turn, content_of) = (turn.clone(), if aloud { &mut said } else { &mut thought });
            content_of.push_str(&content);
            let event = match aloud {
                true => ChatEvent::TextDelta { turn, part: "text".into(), content },
                false => ChatEvent::ReasoningDelta { turn, part: "thought".into(), content },
            };
            act(Command::Report { chat: chat.clone(), event }, Who::Agent);
        }
        act(Command::Report { chat: chat.clone(), event: ChatEvent::TurnCompleted { turn } }, Who::Agent);
        let parts = &session.main_chat().unwrap().turns[0].parts;
        prop_assert_eq!(&parts[0], &Part::Text(TextPart {
            id: "text".into(), content: said, delivery: Delivery::Streamed,
        }));
        prop_assert_eq!(&parts[1], &Part::Reasoning { id: "thought".into(), content: thought });
    }
}
