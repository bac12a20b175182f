//! The JSON that is assembled by hand equals the JSON of the typed projection.

use std::sync::Arc;

use grove_core::{Session, Timestamp, advance};
use grove_wire::v1::project;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::random::{self, Dice};

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn session_and_turn_json_are_the_typed_projection(steps in vec(any::<u64>(), 1..250)) {
        let agent = random::agent();
        let mut session = Session::new(&random::new_session(), Timestamp(1));
        for (number, step) in steps.iter().enumerate() {
            let command = random::command(&session, &mut Dice::new(*step));
            // A refusal counts as a step.
            if advance(&mut session, Some(&agent), command, Timestamp(number as u64 + 2)).is_err() {
                continue;
            }
            if number % 10 == 0 || number + 1 == steps.len() {
                let typed = project::session(&session);
                let finished = &session.main_chat().unwrap().turns;
                let turns: Vec<Arc<str>> = finished.iter().map(|turn| project::turn_json(&session.id, turn)).collect();
                for (bytes, turn) in turns.iter().zip(&typed.turns) {
                    prop_assert_eq!(&**bytes, serde_json::to_string(turn).unwrap());
                }
                let written = project::session_json(&session, &turns).unwrap();
                prop_assert_eq!(written, serde_json::to_string(&typed).unwrap());

                // Only the newest turns, as in a snapshot.
                let newest = &turns[turns.len().saturating_sub(2)..];
                let mut window = typed;
                window.turns.drain(..turns.len() - newest.len());
                let written = project::session_json(&session, newest).unwrap();
                prop_assert_eq!(written, serde_json::to_string(&window).unwrap());
            }
        }
    }
}
