//! Queued messages become turns, one after another.

use grove_core::*;

use crate::scene::*;

fn turn_started(id: &str) -> ChatEvent {
    ChatEvent::TurnStarted { turn: id.into(), message: Message::user(id), started_at: None, queued: Some(id.into()) }
}

fn with_two_waiting() -> Scene {
    Scene::in_turn().after(enqueue("p1")).after(enqueue("p2"))
}

#[test]
fn however_a_turn_ends_the_message_that_waits_longest_becomes_the_next() {
    for end in [ended(), cancelled(), failed("broke")] {
        let mut scene = with_two_waiting();
        let changes = scene.report(end.clone()).unwrap();
        assert_eq!(chat_events(&changes), [lasting(end, 3), ChatEvent::QueuedRemoved("p1".into()), turn_started("p1")]);
        assert_eq!(scene.active().id, "p1".into());
        assert_eq!(scene.waiting(), ["p2"]);
    }
}

#[test]
fn a_persons_cancel_starts_the_next_message_too() {
    let mut scene = with_two_waiting();
    let changes = scene.act(cancel(TURN)).unwrap();
    assert_eq!(
        chat_events(&changes),
        [lasting(cancelled(), 3), ChatEvent::QueuedRemoved("p1".into()), turn_started("p1")]
    );
    scene.act(cancel("p1")).unwrap();
    scene.act(cancel("p2")).unwrap();
    assert!(scene.chat().active.is_none() && scene.waiting().is_empty());
}

#[test]
fn a_message_that_meets_an_idle_chat_becomes_a_turn_at_once() {
    let mut scene = Scene::ready();
    let changes = scene.act(enqueue("p1")).unwrap();
    let expected =
        [ChatEvent::QueuedSet(pending("p1", "p1")), ChatEvent::QueuedRemoved("p1".into()), turn_started("p1")];
    assert_eq!(chat_events(&changes), expected);
    assert_eq!(scene.chat().status(), ChatStatus::InProgress);
}

#[test]
fn a_message_of_a_busy_chat_waits() {
    let mut scene = Scene::in_turn();
    let changes = scene.act(enqueue("p1")).unwrap();
    assert_eq!(changes.len(), 1);
    assert_eq!(scene.waiting(), ["p1"]);
}

#[test]
fn a_message_sent_again_under_its_id_replaces_the_waiting_one_in_its_place() {
    let mut scene = with_two_waiting();
    scene.act(ClientCommand::Enqueue { chat: main(), message: pending("p1", "rather this") }).unwrap();
    assert_eq!(scene.waiting(), ["p1", "p2"]);
    scene.report(ended()).unwrap();
    assert_eq!(scene.active().message.text, "rather this");
}

#[test]
fn a_full_queue_still_takes_a_new_text_for_a_message_that_waits() {
    let mut scene = Scene::in_turn();
    let chat = scene.session.chat_mut(&main()).unwrap();
    chat.queued = (0..MAX_QUEUED).map(|number| pending(&format!("p{number}"), "later")).collect();
    assert!(scene.act(enqueue("p7")).is_ok());
    assert_eq!(scene.chat().queued.len(), MAX_QUEUED);
}

#[test]
fn a_new_order_decides_what_comes_next_and_those_it_leaves_out_stay_behind() {
    let mut scene = with_two_waiting().after(enqueue("p3"));
    scene.act(ClientCommand::ReorderQueue { chat: main(), order: vec!["p3".into()] }).unwrap();
    assert_eq!(scene.waiting(), ["p3", "p1", "p2"]);
    scene.act(ClientCommand::Dequeue { chat: main(), id: "p3".into() }).unwrap();
    scene.report(ended()).unwrap();
    assert_eq!(scene.active().id, "p1".into());
}

#[test]
fn a_waiting_message_whose_id_was_a_turn_before_gets_a_turn_of_another_id() {
    let mut scene = Scene::in_turn().after(enqueue(TURN));
    scene.report(ended()).unwrap();
    assert_eq!(scene.active().id, "t1-2".into());
    scene.act(enqueue(TURN)).unwrap();
    scene.act(cancel("t1-2")).unwrap();
    assert_eq!(scene.active().id, "t1-3".into());
}

#[test]
fn in_a_session_whose_creation_failed_nothing_that_waits_becomes_a_turn() {
    let scene = Scene::creating().after(start(TURN)).after(enqueue("p1"));
    let mut scene = scene.after_host(SessionEvent::CreationFailed(ErrorInfo::new("agentStart", "no such program")));
    scene.report(failed("none")).unwrap();
    assert_eq!(scene.host(start_queued()), Ok(vec![]));
    assert!(scene.chat().active.is_none());
    assert_eq!(scene.waiting(), ["p1"], "a person can still read it and take it away");
    scene.act(ClientCommand::Dequeue { chat: main(), id: "p1".into() }).unwrap();
}

#[test]
fn steering_is_one_message_and_drafts_are_kept() {
    let mut scene = Scene::in_turn();
    for text in ["left", "right"] {
        scene.act(ClientCommand::SetSteering { chat: main(), message: pending(text, text) }).unwrap();
    }
    assert_eq!(scene.chat().steering, Some(pending("right", "right")));
    scene.act(ClientCommand::RemoveSteering { chat: main(), id: "right".into() }).unwrap();
    assert_eq!(scene.chat().steering, None);

    scene.act(ClientCommand::SetDraft { chat: main(), draft: Some(Message::user("half")) }).unwrap();
    assert_eq!(scene.chat().draft, Some(Message::user("half")));
    scene.act(ClientCommand::SetDraft { chat: main(), draft: None }).unwrap();
    assert_eq!(scene.chat().draft, None);
}

#[test]
fn a_message_for_a_running_turn_that_meets_an_idle_chat_is_a_turn_of_its_own() {
    let mut scene = Scene::ready();
    let changes = scene.act(steer("p1")).unwrap();
    let expected =
        [ChatEvent::SteeringSet(pending("p1", "p1")), ChatEvent::SteeringRemoved("p1".into()), turn_started("p1")];
    assert_eq!(chat_events(&changes), expected);
    assert_eq!((scene.active().id.as_str(), &scene.chat().steering), ("p1", &None));
}

#[test]
fn a_message_that_came_too_late_for_its_turn_goes_before_the_queue() {
    let mut scene = with_two_waiting().after(steer("p3"));
    let changes = scene.report(ended()).unwrap();
    let expected = [lasting(ended(), 4), ChatEvent::SteeringRemoved("p3".into()), turn_started("p3")];
    assert_eq!(chat_events(&changes), expected);
    assert_eq!(scene.waiting(), ["p1", "p2"]);
}

#[test]
fn a_message_that_its_turn_took_up_does_not_become_another() {
    let mut scene = with_two_waiting().after(steer("p3"));
    scene.host(HostCommand::TakeSteering { chat: main() }).unwrap();
    assert_eq!(scene.chat().steering, None);
    scene.report(ended()).unwrap();
    assert_eq!(scene.active().id, "p1".into());
}

#[test]
fn what_waits_when_the_host_stops_waits_for_its_next_start() {
    let mut scene = with_two_waiting().after(steer("p3"));
    let changes = scene.host(stop()).unwrap();
    assert_eq!(chat_events(&changes).len(), 1, "the turn ends and none begins");
    assert_eq!((scene.last_turn().outcome, scene.chat().status()), (Outcome::Error, ChatStatus::Error));
    assert_eq!(scene.waiting(), ["p1", "p2"]);
    scene.act(enqueue("p4")).unwrap();
    assert_eq!(scene.waiting(), ["p1", "p2", "p4"], "nothing overtakes what waits");

    for (number, next) in ["p3", "p1", "p2", "p4"].into_iter().enumerate() {
        match number {
            0 => assert_eq!(chat_events(&scene.host(start_queued()).unwrap())[1], turn_started(next)),
            _ => assert_eq!(scene.active().id, next.into()),
        }
        scene.act(cancel(next)).unwrap();
    }
    assert!(scene.chat().active.is_none());
}

#[test]
fn a_held_message_for_a_running_turn_is_not_overtaken_either() {
    let mut scene = Scene::in_turn().after(steer("p1")).after_command_of_host(stop());
    assert_eq!(scene.act(steer("p1")), Ok(vec![]), "it waits already");
    scene.act(enqueue("p2")).unwrap();
    assert_eq!((scene.chat().active.is_some(), scene.waiting()), (false, vec!["p2"]));
    scene.act(start("t2")).unwrap();
    scene.act(cancel("t2")).unwrap();
    assert_eq!(scene.active().id, "p1".into(), "a person's own turn sets the queue going again");
}
