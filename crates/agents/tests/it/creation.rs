//! Agents that start when their session is created.

use std::time::Duration;

use grove_agents::*;
use grove_testkit::acp::{Can, Character, CrashOn, Fault};
use serde_json::json;

use crate::place::{Place, Session, until};

/// Why a session cannot be created.
async fn refused(place: &Place) -> String {
    let fleet = place.fleet();
    let error = match Session::create(&place.agent(&fleet), "s", &place.work).await {
        Ok(_) => panic!("it was created"),
        Err(error) => error,
    };
    assert!(matches!(error, AgentError::Start(_)), "{error}");
    until("its process is gone", || fleet.running() == 0).await;
    error.to_string()
}

#[tokio::test]
async fn an_agent_of_a_new_session_is_initialised_before_its_first_turn_and_stops_when_it_is_idle() {
    let mut place = Place::new(Character { modes: vec!["ask".to_owned()], ..Character::default() });
    place.options.idle = Duration::from_secs(1);
    let fleet = place.fleet();
    let mut session = Session::create(&place.agent(&fleet), "s", &place.work).await.unwrap();
    assert_eq!(fleet.running(), 1);
    session.until("it tells its conversation", |stored| stored.known_as.len() == 1).await;
    session.until("it tells its settings", |stored| stored.settings.is_some()).await;
    until("nobody prompts it", || fleet.running() == 0).await;
    session.turn("t1", json!([{"say": "here"}, "complaints"])).await.unwrap();
    assert_eq!(session.stored.text, "herecomplaints: none\n");
    session.agent.close(Closing::Removed).await;
}

#[tokio::test]
async fn an_agent_that_forgot_a_conversation_without_a_word_says_nothing_of_it() {
    let mut place = Place::new(Character { can: Can::NOTHING, ..Character::default() });
    place.options.idle = Duration::from_millis(200);
    let fleet = place.fleet();
    let mut session = Session::create(&place.agent(&fleet), "s", &place.work).await.unwrap();
    until("nobody prompts it", || fleet.running() == 0).await;
    session.turn("t1", json!([{"say": "here"}])).await.unwrap();
    assert_eq!(session.stored.notices, [""; 0]);
    session.agent.close(Closing::Removed).await;
}

#[tokio::test]
async fn an_agent_that_exits_at_once_fails_the_creation_with_its_last_words() {
    for crash_on in [CrashOn::Initialize, CrashOn::New] {
        let place = Place::new(Character { crash_on: vec![crash_on], ..Character::default() });
        let told = refused(&place).await;
        assert!(told.contains("ended with code 1"), "{told}");
    }
    let mut place = Place::new(Character::default());
    place.program.program = "/bin/sh".into();
    place.program.args = vec!["-c".to_owned(), "echo no licence found >&2; exit 3".to_owned()];
    let told = refused(&place).await;
    assert!(told.contains("code 3") && told.contains("no licence found"), "{told}");
}

#[tokio::test]
async fn an_agent_that_wants_a_login_fails_the_creation_with_its_own_words_and_the_next_step() {
    let fault = Fault { code: -32000, message: "Please run /login".to_owned(), data: None };
    let refuses = [("session/new".to_owned(), fault)].into();
    let mut place = Place::new(Character { refuses, ..Character::default() });
    let told = refused(&place).await;
    assert!(told.contains("Please run /login") && told.contains("log in with Scripted itself"), "{told}");
    place.program.provider = "claude".into();
    let told = refused(&place).await;
    assert!(told.contains("run `claude` and log in there"), "{told}");
}

#[tokio::test]
async fn a_working_directory_that_does_not_exist_fails_the_creation() {
    let mut place = Place::new(Character::default());
    place.work = place.work.join("missing");
    let told = refused(&place).await;
    assert!(told.contains("missing does not exist: create it"), "{told}");
    std::fs::write(&place.work, "").unwrap();
    let told = refused(&place).await;
    assert!(told.contains("missing is not a folder"), "{told}");
}

#[tokio::test]
async fn an_agent_that_does_not_answer_fails_the_creation_in_time() {
    let place = Place::new(Character { slow_start: 600_000, ..Character::default() });
    let told = refused(&place).await;
    assert!(told.contains("was not ready within 5 s"), "{told}");
}

#[tokio::test]
async fn a_creation_that_is_given_up_leaves_nothing_behind() {
    let place = Place::new(Character { slow_start: 600_000, ..Character::default() });
    let fleet = place.fleet();
    let agent = place.agent(&fleet);
    let work = place.work.clone();
    let creating = tokio::spawn(async move { Session::create(&agent, "s", &work).await.map(|_| ()) });
    until("its process starts", || fleet.running() == 1).await;
    creating.abort();
    until("its process is gone", || fleet.running() == 0).await;
    let shims = place.root().join("shims");
    until("its folder is gone", || std::fs::read_dir(&shims).is_ok_and(|found| found.count() == 0)).await;
}

#[tokio::test]
async fn idle_agents_make_way_for_a_new_session_and_busy_ones_do_not() {
    let mut place = Place::new(Character::default());
    place.options.processes = 1;
    let fleet = place.fleet();
    let agent = place.agent(&fleet);
    let mut first = Session::create(&agent, "first", &place.work).await.unwrap();
    let mut second = Session::create(&agent, "second", &place.work).await.unwrap();
    assert_eq!(fleet.running(), 1, "the first one has made way");
    second.until("the second one is there", |stored| stored.known_as.len() == 1).await;
    let running = first.start("t1", &json!([{"say": "busy"}, "hang"]));
    first.until("the first one works", |stored| stored.text == "busy").await;
    // It has nothing to wait for: its agent starts with its first turn.
    let mut third = Session::create(&agent, "third", &place.work).await.unwrap();
    assert!(third.stored.known_as.is_empty());
    running.abort();
    first.agent.cancel(&"t1".into()).await;
    third.turn("t1", json!([{"say": "here"}])).await.unwrap();
    assert!(third.stored.text.ends_with("here"), "{}", third.stored.text);
    for session in [first, second, third] {
        session.agent.close(Closing::Removed).await;
    }
}
