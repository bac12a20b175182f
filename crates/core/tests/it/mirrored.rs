//! What a session says of its chats follows them, by events of its own behind those of the chat.

use grove_core::*;

use crate::scene::*;

fn row(status: ChatStatus, modified_at: u64) -> SessionEvent {
    SessionEvent::ChatRowChanged(ChatRow {
        chat: main(),
        title: String::new(),
        status,
        modified_at: Timestamp(modified_at),
    })
}

fn needed(request: &str, about: InputSubject) -> SessionEvent {
    SessionEvent::InputNeededSet(InputNeeded { request: request.into(), chat: main(), turn: turn(), about })
}

fn confirmation(call: &str) -> InputSubject {
    InputSubject::ToolConfirmation(call.into())
}

#[test]
fn a_turn_changes_the_row_at_its_start_and_at_its_end() {
    let mut scene = Scene::ready();
    assert_eq!(session_events(&scene.act(start(TURN)).unwrap()), [row(ChatStatus::InProgress, 3)]);
    assert_eq!(session_events(&scene.report(ended()).unwrap()), [row(ChatStatus::Idle, 4)]);
    scene.act(start("t2")).unwrap();
    let failed = ChatEvent::TurnFailed { turn: "t2".into(), error: ErrorInfo::new("agent", "broke") };
    assert_eq!(session_events(&scene.report(failed).unwrap()), [row(ChatStatus::Error, 6)]);
    assert_eq!(session_events(&scene.act(start("t3")).unwrap()), [row(ChatStatus::InProgress, 7)]);
    assert_eq!(session_events(&scene.act(cancel("t3")).unwrap()), [row(ChatStatus::Idle, 8)]);
}

#[test]
fn a_permission_is_needed_until_it_is_answered() {
    let mut scene = Scene::reported([started("c1"), ready("c1", Gate::Follows)]);
    let since = scene.chat().modified_at.0;
    let changes = scene.report(gated("c1", "r1")).unwrap();
    assert_eq!(session_events(&changes), [needed("r1", confirmation("c1")), row(ChatStatus::InputNeeded, since)]);
    let changes = scene.act(resolve("r1", Decision::Denied)).unwrap();
    let removed = SessionEvent::InputNeededRemoved("r1".into());
    assert_eq!(session_events(&changes), [removed, row(ChatStatus::InProgress, since)]);
}

#[test]
fn a_question_is_needed_until_it_is_answered() {
    let mut scene = Scene::in_turn();
    let since = scene.chat().modified_at.0;
    let changes = scene.report(asked("q1")).unwrap();
    assert_eq!(session_events(&changes), [needed("q1", InputSubject::Question), row(ChatStatus::InputNeeded, since)]);
    let changes = scene.act(answer("q1", InputResponse::Accept { text: "this".into() })).unwrap();
    let removed = SessionEvent::InputNeededRemoved("q1".into());
    assert_eq!(session_events(&changes), [removed, row(ChatStatus::InProgress, since)]);
}

#[test]
fn a_chat_waits_for_a_person_until_the_last_question_is_answered() {
    let mut scene = Scene::reported(asking("c1", "r1").into_iter().chain(asking("c2", "r2")).chain([asked("q1")]));
    for command in [resolve("r2", Decision::Approved), answer("q1", InputResponse::Decline)] {
        let changes = scene.act(command).unwrap();
        assert!(matches!(session_events(&changes)[..], [SessionEvent::InputNeededRemoved(_)]), "the row stays");
        assert_eq!(scene.chat().status(), ChatStatus::InputNeeded);
    }
    scene.act(resolve("r1", Decision::Approved)).unwrap();
    assert_eq!(scene.chat().status(), ChatStatus::InProgress);
    assert_eq!(scene.session.input_needed, []);
}

#[test]
fn the_end_of_a_turn_takes_its_open_questions_with_it() {
    let mut scene = Scene::reported(asking("c1", "r1").into_iter().chain([asked("q1")]));
    let changes = scene.act(cancel(TURN)).unwrap();
    let removed = ["r1", "q1"].map(|request| SessionEvent::InputNeededRemoved(request.into()));
    assert_eq!(session_events(&changes)[..2], removed);
    assert_eq!(scene.session.input_needed, []);
}

#[test]
fn a_next_turn_from_the_queue_is_mirrored_once_as_it_stands_at_the_end() {
    let mut scene = Scene::in_turn().after(enqueue("p1"));
    let changes = scene.report(ended()).unwrap();
    assert_eq!(session_events(&changes), [row(ChatStatus::InProgress, scene.now)]);
}

#[test]
fn streaming_changes_nothing_that_a_session_says_of_its_chats() {
    let reports = [
        streamed("x"),
        says("x", "a"),
        thought("y"),
        thinks("y", "b"),
        started("c1"),
        writes("c1", "l"),
        ready("c1", Gate::None),
        result_gated("c1"),
        result_confirmed("c1", Decision::Approved),
        ChatEvent::UsageReported { turn: turn(), usage: Usage::default() },
    ];
    let mut scene = Scene::in_turn();
    for report in reports {
        let changes = scene.report(report).unwrap();
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert!(!mirror::may_concern(&changes[0]));
    }
}

#[test]
fn what_is_out_of_line_is_due() {
    let mut session = Scene::reported([asked("q1")]).session;
    assert_eq!(mirror::due(&session), []);
    session.input_needed.clear();
    session.catalogue[0].status = ChatStatus::Idle;
    let since = session.chats[0].modified_at.0;
    assert_eq!(mirror::due(&session), [needed("q1", InputSubject::Question), row(ChatStatus::InputNeeded, since)]);
    session.chats[0].active = None;
    session.input_needed = Scene::reported([asked("q1")]).session.input_needed;
    assert_eq!(mirror::due(&session)[0], SessionEvent::InputNeededRemoved("q1".into()));
}
