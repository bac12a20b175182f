//! The session's copy of its chats follows them, by events of its own after those of the chat.

use grove_core::*;

use crate::scene::*;

/// The main chat's row, with something to read.
fn row(status: ChatStatus, modified_at: u64) -> SessionEvent {
    SessionEvent::ChatRowChanged(ChatRow {
        chat: main(),
        uri: None,
        origin: None,
        // The first prompt.
        title: "go".to_owned(),
        status,
        is_read: false,
        is_archived: false,
        modified_at: Timestamp(modified_at),
        touched_at: Timestamp(modified_at),
    })
}

fn needed(request: &str, about: InputSubject) -> SessionEvent {
    SessionEvent::InputNeededSet(InputNeeded { request: request.into(), chat: main(), turn: turn(), about })
}

fn removed(request: &str) -> SessionEvent {
    SessionEvent::InputNeededRemoved { chat: main(), request: request.into() }
}

/// The pending question of [`asked`].
fn question(scene: &Scene, request: &str) -> InputSubject {
    InputSubject::Question(Box::new(scene.input(request).clone()))
}

fn confirmation(scene: &Scene, call: &str) -> InputSubject {
    InputSubject::ToolConfirmation(Box::new(scene.call(call).clone()))
}

fn execution(scene: &Scene, call: &str) -> InputSubject {
    InputSubject::ClientExecution(Box::new(scene.call(call).clone()))
}

#[test]
fn a_turn_changes_the_row_at_its_start_and_at_its_end() {
    let mut scene = Scene::ready();
    let unread = SessionEvent::ReadChanged(false);
    let titled = SessionEvent::TitleChanged(SessionTitle::new("go", TitleSource::Prompt));
    assert_eq!(session_events(&scene.act(start(TURN)).unwrap()), [titled, unread, row(ChatStatus::InProgress, 3)]);
    assert_eq!(session_events(&scene.report(ended()).unwrap()), [row(ChatStatus::Idle, 4)]);
    scene.act(start("t2")).unwrap();
    let error = ErrorInfo::new("agent", "broke");
    let failed = ChatEvent::TurnFailed { turn: "t2".into(), duration: None, error };
    assert_eq!(session_events(&scene.report(failed).unwrap()), [row(ChatStatus::Error, 6)]);
    assert_eq!(session_events(&scene.act(start("t3")).unwrap()), [row(ChatStatus::InProgress, 7)]);
    assert_eq!(session_events(&scene.act(cancel("t3")).unwrap()), [row(ChatStatus::Idle, 8)]);
}

#[test]
fn a_permission_is_needed_until_it_is_answered() {
    let mut scene = Scene::reported([started("c1"), ready("c1", Gate::Follows)]);
    let since = scene.chat().modified_at.0;
    let changes = scene.report(gated("c1", "r1")).unwrap();
    let asked = needed("r1", confirmation(&scene, "c1"));
    assert_eq!(session_events(&changes), [asked, row(ChatStatus::InputNeeded, since)]);
    let changes = scene.act(resolve("r1", Decision::Denied)).unwrap();
    assert_eq!(session_events(&changes), [removed("r1"), row(ChatStatus::InProgress, since)]);
}

#[test]
fn a_question_is_needed_until_it_is_answered() {
    let mut scene = Scene::in_turn();
    let since = scene.chat().modified_at.0;
    let changes = scene.report(asked("q1")).unwrap();
    let is_asked = needed("q1", question(&scene, "q1"));
    assert_eq!(session_events(&changes), [is_asked, row(ChatStatus::InputNeeded, since)]);
    let changes = scene.act(answer("q1", InputOutcome::Accepted, answers(Answer::text("this")))).unwrap();
    assert_eq!(session_events(&changes), [removed("q1"), row(ChatStatus::InProgress, since)]);
}

#[test]
fn a_chat_waits_for_a_person_until_the_last_question_is_answered() {
    let mut scene = Scene::reported(asking("c1", "r1").into_iter().chain(asking("c2", "r2")).chain([asked("q1")]));
    for command in [resolve("r2", Decision::Approved), decline("q1")] {
        let changes = scene.act(command).unwrap();
        assert!(matches!(session_events(&changes)[..], [SessionEvent::InputNeededRemoved { .. }]), "the row stays");
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
    assert_eq!(session_events(&changes)[..2], ["r1", "q1"].map(removed));
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
        ChatEvent::UsageReported { turn: turn(), usage: Usage::default() },
        busy(Some("Trying again")),
        called(Some("agent-7")),
    ];
    let mut scene = Scene::in_turn();
    for report in reports {
        let changes = scene.report(report).unwrap();
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert!(!changes[0].class().is_mirrored);
    }
    for report in [ready("c1", Gate::None), put_out("c1", "half"), completed("c1")] {
        let changes = scene.report(report).unwrap();
        assert_eq!(changes.len(), 1, "nor does a call that the agent runs: {changes:?}");
    }
}

#[test]
fn a_result_is_needed_until_a_person_has_confirmed_it() {
    let mut scene = Scene::reported(running("c1"));
    let since = scene.chat().modified_at.0;
    let changes = scene.report(result_gated("c1")).unwrap();
    let held = needed("c1/result", confirmation(&scene, "c1"));
    assert_eq!(session_events(&changes), [held, row(ChatStatus::InputNeeded, since)]);
    let changes = scene.act(confirm_result("c1", Decision::Approved)).unwrap();
    assert_eq!(session_events(&changes), [removed("c1/result"), row(ChatStatus::InProgress, since)]);
}

#[test]
fn a_client_is_needed_while_a_call_of_its_own_runs_and_hears_what_it_has_put_out() {
    let mut scene = Scene::in_turn();
    let [begun, ready] = handed_to("client", "c1");
    scene.report(begun).unwrap();
    let changes = scene.report(ready).unwrap();
    assert_eq!(session_events(&changes), [needed("c1/run", execution(&scene, "c1"))], "nobody is asked");
    let changes = scene.act(report_output("c1", "half")).unwrap();
    assert_eq!(session_events(&changes), [needed("c1/run", execution(&scene, "c1"))]);
    let call = NewToolCall { client: Some("client".into()), ..new_call("c1") };
    let restated = InvocationUpdate {
        call,
        invocation_message: "Again".into(),
        input: None,
        confirmed: ConfirmationReason::NotNeeded,
    };
    let changes = scene.report(ChatEvent::ToolCallRestated { turn: turn(), restated: Box::new(restated) }).unwrap();
    assert_eq!(session_events(&changes), [needed("c1/run", execution(&scene, "c1"))], "as it is now");
    assert_eq!(scene.session.input_needed.len(), 1);
    let changes = scene.act(complete("c1", false)).unwrap();
    assert_eq!(session_events(&changes), [removed("c1/run")]);
}

#[test]
fn a_question_and_a_call_of_one_name_are_needed_side_by_side() {
    let scene = Scene::reported(handed_to("client", "x").into_iter().chain([asked("x")]));
    let about: Vec<_> = scene.session.input_needed.iter().map(|input| input.about.clone()).collect();
    assert_eq!(about, [execution(&scene, "x"), question(&scene, "x")]);
}

#[test]
fn a_question_is_told_again_when_a_draft_of_its_answer_changes() {
    let mut scene = Scene::reported([asked("q1")]);
    for answer in [Some(draft("t")), Some(draft("th")), None] {
        let changes = scene.act(draft_answer("q1", QUESTION, answer)).unwrap();
        assert_eq!(session_events(&changes), [needed("q1", question(&scene, "q1"))]);
        assert_eq!(scene.session.input_needed.len(), 1);
    }
}

#[test]
fn questions_of_two_chats_may_have_one_name() {
    let mut scene = Scene::reported([asked("q1")]).after_command_of_host(add_chat("side"));
    let side = ChatId::from("side");
    let turn = TurnId::from("t2");
    let message = Message::user("go");
    scene.act(ClientCommand::StartTurn { chat: side.clone(), turn: turn.clone(), message, started_at: None }).unwrap();
    let request = Box::new(scene.input("q1").clone());
    let event = ChatEvent::InputRequested { turn, request };
    scene.by(Command::Agent(EventReport::Chat { chat: side.clone(), event })).unwrap();
    assert_eq!(scene.session.input_needed.len(), 2);
    scene.act(decline("q1")).unwrap();
    assert!(matches!(&scene.session.input_needed[..], [left] if left.is(&side, &"q1".into())));
}

#[test]
fn whatever_makes_a_chat_unread_makes_its_session_unread() {
    let unread = SessionEvent::ReadChanged(false);
    let read_chat = |read| ClientCommand::SetChatRead { chat: main(), read };
    let read = || Scene::in_turn().after(ClientCommand::SetRead(true));
    let tells = |changes: Vec<Change>| session_events(&changes).contains(&unread);
    assert!(tells(read().report(asked("q1")).unwrap()), "even where the chat was unread before");
    assert!(tells(read().after(read_chat(true)).act(read_chat(false)).unwrap()));
    assert!(tells(read().after(cancel(TURN)).act(start("t2")).unwrap()));
    assert!(!tells(read().report(ended()).unwrap()));
    assert!(!tells(read().act(read_chat(true)).unwrap()));
    assert!(!tells(Scene::in_turn().report(asked("q1")).unwrap()), "once is enough");
}

#[test]
fn the_row_has_a_chats_flags() {
    let mut scene = Scene::in_turn();
    let ChatRow { is_read, is_archived, .. } = scene.session.catalogue[0];
    assert_eq!((is_read, is_archived), (false, false));
    scene.act(ClientCommand::SetChatRead { chat: main(), read: true }).unwrap();
    scene.act(ClientCommand::SetChatArchived { chat: main(), archived: true }).unwrap();
    let ChatRow { is_read, is_archived, .. } = scene.session.catalogue[0];
    assert_eq!((is_read, is_archived), (true, true));
    assert!(!scene.session.is_read && !scene.session.is_archived, "the session's own are a person's own doing");
}

#[test]
fn a_chat_that_is_renamed_has_its_name_in_its_row_and_the_session_keeps_its_own() {
    let mut scene = Scene::ready().after_command_of_host(add_chat("side"));
    let rename = |title: &str| ClientCommand::RenameChat { chat: "side".into(), title: title.into() };
    let changes = scene.act(rename("Beside")).unwrap();
    assert_eq!(changes[0], Change::Chat("s1".into(), "side".into(), ChatEvent::ChatTitleChanged("Beside".into())));
    assert!(matches!(&changes[1], Change::Session(_, SessionEvent::ChatRowChanged(row)) if row.title == "Beside"));
    assert_eq!((changes.len(), scene.session.catalogue[1].title.as_str()), (2, "Beside"));
    assert_eq!(scene.act(rename("Beside")), Ok(vec![]), "it is called so already");
    assert_eq!(scene.session.title, Session::UNTITLED);
}

#[test]
fn what_is_out_of_line_is_due() {
    let scene = Scene::reported([asked("q1")]);
    let mut session = scene.session.clone();
    assert_eq!(mirror::pending_events(&session), []);
    session.input_needed.clear();
    session.catalogue[0].status = ChatStatus::Idle;
    let since = session.chats[0].modified_at.0;
    let is_asked = needed("q1", question(&scene, "q1"));
    assert_eq!(mirror::pending_events(&session), [is_asked, row(ChatStatus::InputNeeded, since)]);
    session.chats[0].active = None;
    session.input_needed = scene.session.input_needed;
    assert_eq!(mirror::pending_events(&session)[0], removed("q1"));
}
