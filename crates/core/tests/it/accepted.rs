//! What an accepted command makes happen: its own echo first, then what follows from it.

use std::collections::BTreeSet;

use grove_core::*;

use crate::scene::*;

/// A command's name; does not compile without all of them.
fn name(command: &Command) -> &'static str {
    match command {
        Command::StartTurn { .. } => "StartTurn",
        Command::CancelTurn { .. } => "CancelTurn",
        Command::ResolvePermission { .. } => "ResolvePermission",
        Command::AnswerInput { .. } => "AnswerInput",
        Command::ChangeModel(_) => "ChangeModel",
        Command::ChangeTitle(_) => "ChangeTitle",
        Command::SetRead(_) => "SetRead",
        Command::SetArchived(_) => "SetArchived",
        Command::SetSteering { .. } => "SetSteering",
        Command::RemoveSteering { .. } => "RemoveSteering",
        Command::Enqueue { .. } => "Enqueue",
        Command::Dequeue { .. } => "Dequeue",
        Command::ReorderQueue { .. } => "ReorderQueue",
        Command::SetDraft { .. } => "SetDraft",
        Command::Report { .. } => "Report",
        Command::ReportSession(_) => "ReportSession",
    }
}

const COMMANDS: usize = 16;

/// The first event of each accepted command is the command itself, as it happened.
#[test]
fn every_command_is_echoed_first() {
    let waiting = || Scene::in_turn().after(enqueue("p1")).after(enqueue("p2"));
    let steering = || Command::SetSteering { chat: main(), message: pending("p1", "left") };
    let chat_cases = [
        (Scene::ready(), start(TURN), ChatEvent::TurnStarted { turn: turn(), message: Message::user("go") }),
        (Scene::in_turn(), cancel(TURN), ChatEvent::TurnCancelled { turn: turn() }),
        (
            Scene::reported(asking("c1", "r1")),
            resolve("r1", Decision::Denied),
            ChatEvent::ToolCallConfirmed {
                turn: turn(),
                call: "c1".into(),
                request: "r1".into(),
                decision: Decision::Denied,
            },
        ),
        (
            Scene::reported([asked("q1")]),
            answer("q1", InputResponse::Cancel),
            ChatEvent::InputAnswered { turn: turn(), request: "q1".into(), response: InputResponse::Cancel },
        ),
        (Scene::in_turn(), steering(), ChatEvent::SteeringSet(pending("p1", "left"))),
        (
            Scene::in_turn().after(steering()),
            Command::RemoveSteering { chat: main(), id: "p1".into() },
            ChatEvent::SteeringRemoved("p1".into()),
        ),
        (Scene::in_turn(), enqueue("p1"), ChatEvent::QueuedSet(pending("p1", "p1"))),
        (waiting(), Command::Dequeue { chat: main(), id: "p1".into() }, ChatEvent::QueuedRemoved("p1".into())),
        (
            waiting(),
            Command::ReorderQueue { chat: main(), order: vec!["p2".into(), "p1".into()] },
            ChatEvent::QueueReordered(vec!["p2".into(), "p1".into()]),
        ),
        (
            Scene::failed(),
            Command::SetDraft { chat: main(), draft: Some(Message::user("half a")) },
            ChatEvent::DraftChanged(Some(Message::user("half a"))),
        ),
    ];
    let session_cases = [
        (Scene::ready(), Command::ChangeModel("large".into()), SessionEvent::ModelChanged("large".into())),
        (Scene::failed(), Command::ChangeTitle("Name".into()), SessionEvent::TitleChanged("Name".into())),
        (Scene::failed(), Command::SetRead(false), SessionEvent::ReadChanged(false)),
        (Scene::failed(), Command::SetArchived(true), SessionEvent::ArchivedChanged(true)),
    ];
    let mut seen = BTreeSet::new();
    for (mut scene, command, echo) in chat_cases {
        seen.insert(name(&command));
        let changes = scene.act(command).unwrap();
        assert_eq!(changes[0], Change::Chat("s1".into(), main(), echo));
    }
    for (mut scene, command, echo) in session_cases {
        seen.insert(name(&command));
        let changes = scene.act(command).unwrap();
        assert_eq!(changes, [Change::Session("s1".into(), echo)]);
    }
    let reports = [
        (Who::Agent, Command::Report { chat: main(), event: ended() }),
        (Who::Host, Command::ReportSession(SessionEvent::Listed)),
    ];
    for (who, command) in reports {
        seen.insert(name(&command));
        let first = Scene::in_turn().by(&who, command.clone()).unwrap().swap_remove(0);
        let echoed = match command {
            Command::Report { chat, event } => Change::Chat("s1".into(), chat, event),
            Command::ReportSession(event) => Change::Session("s1".into(), event),
            other => panic!("{other:?}"),
        };
        assert_eq!(first, echoed);
    }
    assert_eq!(seen.len(), COMMANDS, "every command was tried");
}

#[test]
fn a_session_that_is_still_being_created_takes_turns_and_models() {
    let mut scene = Scene::creating();
    scene.act(Command::ChangeModel("small".into())).unwrap();
    scene.act(start(TURN)).unwrap();
    assert_eq!(scene.chat().status(), ChatStatus::InProgress);
}

#[test]
fn a_message_may_ask_for_a_model_that_the_agent_lists() {
    let mut scene = Scene::ready();
    let message = Message { model: Some("large".into()), ..Message::user("go") };
    scene.act(Command::StartTurn { chat: main(), turn: turn(), message: message.clone() }).unwrap();
    assert_eq!(scene.active().message, message);
    assert_eq!(scene.session.model, None, "the session's own model stays");
}

#[test]
fn the_host_and_agents_may_send_messages_that_are_no_persons() {
    for origin in
        [MessageOrigin::Agent, MessageOrigin::Tool, MessageOrigin::Automation, MessageOrigin::SystemNotification]
    {
        let message = Message { origin, ..Message::user("go") };
        let command = Command::StartTurn { chat: main(), turn: turn(), message };
        assert!(Scene::ready().by(&Who::Host, command.clone()).is_ok());
        assert_eq!(Scene::ready().act(command), Err(Rejection::OnlyUserMessages));
    }
}

#[test]
fn a_denied_permission_cancels_the_call_and_an_approved_one_lets_it_run() {
    let mut denied = Scene::reported(asking("c1", "r1"));
    denied.act(resolve("r1", Decision::Denied)).unwrap();
    assert_eq!(*denied.status_of("c1"), ToolCallStatus::Cancelled(CancelReason::Denied));
    assert!(denied.chat().active.is_some(), "the turn goes on");

    let mut approved = Scene::reported(asking("c1", "r1"));
    approved.act(resolve("r1", Decision::Approved)).unwrap();
    assert_eq!(*approved.status_of("c1"), ToolCallStatus::Running);
    approved.report(gated("c1", "r2")).unwrap();
    approved.act(resolve("r2", Decision::Approved)).unwrap();
    assert_eq!(*approved.status_of("c1"), ToolCallStatus::Running, "a running call may be asked about again");
}

#[test]
fn calls_that_run_side_by_side_are_answered_and_completed_each_on_its_own() {
    let reports = asking("c1", "r1").into_iter().chain(asking("c2", "r2")).chain(running("c3"));
    let mut scene = Scene::reported(reports);
    scene.report(completed("c3")).unwrap();
    scene.act(resolve("r2", Decision::Approved)).unwrap();
    assert!(matches!(scene.status_of("c1"), ToolCallStatus::PendingConfirmation(request) if request.id == "r1".into()));
    assert_eq!(*scene.status_of("c2"), ToolCallStatus::Running);
    scene.act(resolve("r1", Decision::Denied)).unwrap();
    scene.report(completed("c2")).unwrap();
    assert_eq!(*scene.status_of("c2"), ToolCallStatus::Completed(success()));
    assert!(!scene.active().waits_for_person());
}

#[test]
fn a_finished_turn_can_be_followed_by_another() {
    let mut scene = Scene::reported([ended()]);
    scene.act(start("t2")).unwrap();
    assert_eq!(scene.active().id, "t2".into());
    assert_eq!(scene.chat().turns.len(), 1);
}

#[test]
fn validating_alone_changes_nothing() {
    let scene = Scene::in_turn();
    let tip = Tip { session: &scene.session, agent: Some(&scene.agent) };
    let batch = validate(tip, cancel(TURN), &client(), Timestamp(50)).unwrap();
    let cancelled = Change::Chat("s1".into(), main(), ChatEvent::TurnCancelled { turn: turn() });
    assert_eq!(batch.events, [Event { at: Timestamp(50), change: cancelled }]);
    assert_eq!(scene.session, Scene::in_turn().session);
}
