//! Copies that an agent makes of its own conversations.

use std::time::Duration;

use grove_agents::*;
use grove_testkit::acp::{Can, Character, Fault};
use serde_json::json;

use crate::place::{Place, SHORT, Session, until};

/// What an agent remembers of a conversation that it opens.
async fn remembered(place: &Place, known_as: String) -> String {
    let mut copy = place.open_in(&place.fleet(), "copy", Some(known_as)).await;
    copy.turn("t", json!(["echo_history"])).await.unwrap();
    copy.agent.close(Closing::LetGo).await;
    assert_eq!(copy.stored.notices, Vec::<String>::new(), "it was not told anew");
    copy.stored.text
}

async fn begun(place: &Place) -> Session {
    let mut session = place.open().await;
    session.turn("t1", json!([{"say": "remember me"}])).await.unwrap();
    session
}

#[tokio::test]
async fn a_copy_is_made_by_the_process_that_runs_and_knows_nothing_that_is_said_later() {
    let place = Place::new(Character::default());
    let mut session = begun(&place).await;
    let agent = session.agent.clone();
    let (forked, later) = tokio::join!(agent.fork(), async {
        // The copy is asked for first: both wait for the same worker.
        tokio::task::yield_now().await;
        session.turn("t2", json!([{"say": "too late"}])).await
    });
    later.unwrap();
    let copy = forked.unwrap().expect("it can");
    assert_ne!(copy, session.stored.known_as[0]);
    session.stored.text.clear();
    session.turn("t3", json!(["echo_history", "complaints"])).await.unwrap();
    let text = &session.stored.text;
    assert!(text.contains("too late") && text.contains("complaints: none"), "it goes on: {text}");
    session.agent.close(Closing::LetGo).await;
    let told = remembered(&place, copy).await;
    assert!(told.contains("agent: remember me") && !told.contains("too late"), "{told}");
}

#[tokio::test]
async fn a_copy_is_made_by_another_process_where_none_runs() {
    let mut place = Place::new(Character::default());
    place.options.idle = SHORT;
    let fleet = place.fleet();
    let mut session = place.open_in(&fleet, "s", None).await;
    session.turn("t1", json!([{"say": "remember me"}])).await.unwrap();
    until("it is stopped", || fleet.running() == 0).await;
    let copy = session.agent.fork().await.unwrap().expect("it can");
    assert_eq!(fleet.running(), 0, "the process was for this alone");
    assert!(remembered(&place, copy).await.contains("agent: remember me"));
    session.agent.close(Closing::Removed).await;
}

#[tokio::test]
async fn a_copy_in_another_process_is_given_up_for_a_turn() {
    let mut place = Place::new(Character { slow_start: 1_000, ..Character::default() });
    place.options.idle = SHORT;
    let fleet = place.fleet();
    let mut session = place.open_in(&fleet, "s", None).await;
    session.turn("t1", json!([{"say": "remember me"}])).await.unwrap();
    until("it is stopped", || fleet.running() == 0).await;
    let agent = session.agent.clone();
    let forked = tokio::spawn(async move { agent.fork().await });
    until("it is started", || fleet.running() == 1).await;
    session.turn("t2", json!([{"say": "on"}])).await.unwrap();
    assert_eq!(forked.await.unwrap().unwrap(), None);
    until("what was started for it is gone", || fleet.running() <= 1).await;
    session.agent.close(Closing::Removed).await;
    until("nothing is left", || std::fs::read_dir(place.root().join("shims")).unwrap().count() == 0).await;
}

#[tokio::test]
async fn what_cannot_be_copied_is_not() {
    let place = Place::new(Character::default());
    let session = place.open().await;
    assert_eq!(session.agent.fork().await.unwrap(), None, "nothing was said yet");
    session.agent.close(Closing::Removed).await;
    assert_eq!(session.agent.fork().await.unwrap(), None, "it is closed");

    let place = Place::new(Character { can: Can { fork: false, ..Can::default() }, ..Character::default() });
    let session = begun(&place).await;
    assert_eq!(session.agent.fork().await.unwrap(), None, "this one cannot");
    session.agent.close(Closing::Removed).await;

    let fault = Fault { code: -32603, message: "no room".to_owned(), data: None };
    let refuses = [("session/fork".to_owned(), fault)].into();
    let place = Place::new(Character { refuses, ..Character::default() });
    let mut session = begun(&place).await;
    let error = session.agent.fork().await.unwrap_err().to_string();
    assert!(error.contains("no room") && error.contains("Scripted"), "{error}");
    let running = session.start("t2", &json!([{"say": "busy"}, "hang"]));
    session.until("it is busy", |stored| stored.text.contains("busy")).await;
    assert_eq!(session.agent.fork().await.unwrap(), None, "a turn runs");
    session.agent.cancel(&"t2".into()).await;
    tokio::time::timeout(Duration::from_secs(30), session.end(running)).await.unwrap().ok();
    session.agent.close(Closing::Removed).await;
}
