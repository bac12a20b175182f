//! The events of an accepted command: its own echo first, then the consequences.

mod echo;

use grove_core::*;

use crate::scene::*;

fn entry() -> LogEntry {
    LogEntry { line: "{}".into(), after: None }
}

#[test]
fn entries_may_be_added_while_a_turn_runs_and_can_make_the_agent_forget() {
    let added = |resets_agent| HostCommand::AddEntries { chat: main(), entries: vec![entry()], resets_agent };
    let in_chat = |event| Change::Chat("s1".into(), main(), event);
    assert_eq!(Scene::in_turn().host(added(false)).unwrap(), [in_chat(ChatEvent::EntryAdded(entry()))]);
    let known = ChatEvent::AgentSessionChanged(Some("a".into()));
    let mut scene = Scene::ready().after_command_of_host(EventReport::Chat { chat: main(), event: known });
    let changes = scene.host(added(true)).unwrap();
    assert_eq!(changes[0], in_chat(ChatEvent::AgentSessionChanged(None)));
    assert_eq!(changes[1], in_chat(ChatEvent::EntryAdded(entry())));
}

#[test]
fn the_leaf_stays_where_it_is_while_a_turn_runs() {
    let moved = || HostCommand::MoveLeaf {
        chat: main(),
        turns: vec![],
        older: false,
        entries: vec![],
        settings: RestoredSettings::default(),
    };
    assert_eq!(Scene::in_turn().host(moved()), Err(Rejection::TurnInProgress(turn())));
    let known = Scene::ready().after_command_of_host(EventReport::Chat {
        chat: main(),
        event: ChatEvent::AgentSessionChanged(Some("a".into())),
    });
    let mut scene = known;
    let changes = scene.host(moved()).unwrap();
    let forgotten = Change::Chat("s1".into(), main(), ChatEvent::AgentSessionChanged(None));
    assert!(changes.contains(&forgotten), "what the agent remembers is another conversation: {changes:?}");
}

fn start_at(claimed: u64) -> ClientCommand {
    let message = Message::user("go");
    ClientCommand::StartTurn { chat: main(), turn: turn(), message, started_at: Some(Timestamp(claimed)) }
}

#[test]
fn a_command_that_finds_everything_as_it_wants_it_makes_nothing_happen() {
    let steered = || Scene::in_turn().after(steer("p1"));
    let waiting = || Scene::in_turn().after(enqueue("p1")).after(enqueue("p2"));
    let drafted = || Scene::reported([asked("q1")]).after(draft_answer("q1", QUESTION, Some(draft("th"))));
    let as_it_is = [
        (Scene::ready(), ClientCommand::ChangeTitle(Session::UNTITLED.into())),
        (Scene::ready(), ClientCommand::SetRead(true)),
        (Scene::ready(), ClientCommand::SetArchived(false)),
        (Scene::ready(), ClientCommand::SetChatRead { chat: main(), read: true }),
        (Scene::ready(), ClientCommand::SetChatArchived { chat: main(), archived: false }),
        (Scene::ready(), ClientCommand::RenameChat { chat: main(), title: Session::UNTITLED.into() }),
        (
            Scene::ready().after(ClientCommand::SetActiveClient(taking_part("client"))),
            ClientCommand::SetActiveClient(taking_part("client")),
        ),
        (Scene::ready(), ClientCommand::RemoveActiveClient("client".into())),
        (Scene::ready(), ClientCommand::ChangeConfig { values: extra("mode", "ask"), replace: true }),
        (Scene::ready(), ClientCommand::ChangeConfig { values: Extra::new(), replace: false }),
        (Scene::ready(), ClientCommand::ChangePermissions(PermissionsChange::Forget)),
        (
            Scene::ready().after(ClientCommand::SetWorkingDirectory("/w".into())),
            ClientCommand::SetWorkingDirectory("/w".into()),
        ),
        (drafted(), draft_answer("q1", QUESTION, Some(draft("th")))),
        (Scene::reported([asked("q1")]), draft_answer("q1", QUESTION, None)),
        (steered(), steer("p1")),
        (waiting(), enqueue("p2")),
        (waiting(), ClientCommand::ReorderQueue { chat: main(), order: vec!["p1".into()] }),
        (waiting(), ClientCommand::ReorderQueue { chat: main(), order: vec![] }),
        (Scene::ready(), ClientCommand::SetDraft { chat: main(), draft: None }),
    ];
    for (mut scene, command) in as_it_is {
        let before = scene.session.clone();
        assert_eq!(scene.act(command.clone()), Ok(vec![]), "{command:?}");
        assert_eq!(scene.session, before);
    }
    let of_the_host = [
        (Scene::ready(), start_queued()),
        (waiting(), start_queued()),
        (Scene::in_turn(), HostCommand::TakeSteering { chat: main() }),
        (Scene::ready(), EventReport::Chat { chat: main(), event: busy(None) }.into()),
        (Scene::reported([busy(Some("a"))]), EventReport::Chat { chat: main(), event: busy(Some("a")) }.into()),
        (Scene::reported([called(Some("a"))]), EventReport::Chat { chat: main(), event: called(Some("a")) }.into()),
    ];
    for (mut scene, command) in of_the_host {
        assert_eq!(scene.host(command.clone()), Ok(vec![]), "{command:?}");
    }
}

#[test]
fn a_claimed_start_shifts_a_turn_and_leaves_its_length() {
    let mut scene = Scene::ready().after(start_at(1_000));
    assert_eq!((scene.active().started_at, scene.chat().modified_at), (Timestamp(1_000), Timestamp(1_000)));
    assert_eq!(scene.session.modified_at, Timestamp(scene.now), "the session's own time is the host's");
    scene.now += 50;
    scene.report(ended()).unwrap();
    let turn = scene.last_turn();
    assert_eq!((turn.started_at, turn.ended_at), (Timestamp(1_000), Timestamp(1_051)));
    assert_eq!((scene.chat().modified_at, scene.session.modified_at), (Timestamp(1_051), Timestamp(scene.now)));
}

#[test]
fn a_turn_takes_as_long_as_the_hosts_clock_says_whatever_an_agent_reports() {
    let mut scene = Scene::in_turn();
    let changes = scene.report(lasting(ended(), 1_000)).unwrap();
    assert_eq!(chat_events(&changes), [lasting(ended(), 1)]);
    assert_eq!(scene.last_turn().ended_at, Timestamp(scene.now));
}

#[test]
fn a_permission_is_answered_by_its_own_name_or_by_that_of_its_call() {
    let mut scene = Scene::reported(asking("c1", "r1"));
    let changes = scene.act(resolve_about("c1", Decision::Approved)).unwrap();
    let by_request = Scene::reported(asking("c1", "r1")).act(resolve("r1", Decision::Approved)).unwrap();
    assert_eq!(changes, by_request);
    assert_eq!(*scene.status_of("c1"), ToolCallStatus::Running);
}

#[test]
fn a_question_about_a_call_says_again_what_the_call_is() {
    let gated = |message: Option<&str>, input: Option<&str>| {
        let gated = ToolCallGate {
            call: "c1".into(),
            request: permission("r1"),
            invocation_message: message.map(Into::into),
            input: input.map(Into::into),
            hook: None,
        };
        ChatEvent::ToolCallGated { turn: turn(), gated: Box::new(gated) }
    };
    let mut scene = Scene::reported(running("c1"));
    let call = scene.call("c1").clone();
    let changes = scene.report(gated(None, None)).unwrap();
    assert_eq!(chat_events(&changes), [gated(Some(&call.invocation_message), call.input.as_deref())]);
    let changes = Scene::reported(running("c1")).report(gated(Some("Again"), Some("ls -a"))).unwrap();
    assert_eq!(chat_events(&changes), [gated(Some("Again"), Some("ls -a"))]);
}

#[test]
fn whoever_confirms_a_result_confirms_the_one_that_waits() {
    let waiting = ToolResult { output: Some("1".into()), ..success() };
    let another = ToolResult { output: Some("2".into()), ..waiting.clone() };
    let confirmed = |result: &ToolResult| ChatEvent::ToolCallResultConfirmed {
        turn: turn(),
        call: "c1".into(),
        result: result.clone(),
        decision: Decision::Approved,
        answer: None,
    };
    let gated = ChatEvent::ToolCallResultGated { turn: turn(), call: "c1".into(), result: waiting.clone(), run: None };
    let mut scene = Scene::reported(running("c1")).after_report(gated);
    let changes = scene.report(confirmed(&another)).unwrap();
    assert_eq!(chat_events(&changes), [confirmed(&waiting)]);
    assert_eq!(*scene.status_of("c1"), ToolCallStatus::Completed(waiting));
}

#[test]
fn an_option_and_an_edited_input_are_kept_with_the_call() {
    let asked = || Scene::reported(asking_with_options("c1", "r1"));
    let option = |id: &str| permission_with_options("r1").options.into_iter().find(|option| option.id == id);
    let allow = Verdict {
        option: Some("always".into()),
        edited_input: Some("ls -a".into()),
        by: ConfirmationReason::Setting,
        ..Decision::Approved.into()
    };
    let allowed = asked().after(resolve_with("r1", allow));
    let call = allowed.call("c1");
    assert_eq!(call.confirmed, Some(Confirmation { by: ConfirmationReason::Setting, option: option("always") }));
    assert_eq!((&call.status, call.input.as_deref()), (&ToolCallStatus::Running, Some("ls -a")));

    let refuse = Verdict {
        option: Some("never".into()),
        skipped: true,
        extra: Some(extra("reason", "not now")),
        ..Decision::Denied.into()
    };
    let refused = asked().after(resolve_with("r1", refuse));
    let cancellation = Cancellation {
        reason: CancelReason::Skipped,
        option: option("never"),
        extra: Some(extra("reason", "not now")),
    };
    assert_eq!(*refused.status_of("c1"), ToolCallStatus::Cancelled(cancellation));
    assert_eq!(refused.call("c1").confirmed, None);
}

#[test]
fn the_host_and_agents_may_end_a_call_that_a_client_runs() {
    let by_host = Command::Host(complete("c1", false).into());
    let by_agent = Command::Agent(EventReport::Chat { chat: main(), event: completed("c1") });
    for command in [by_host, by_agent] {
        let mut scene = Scene::reported(handed_to("client", "c1"));
        scene.by(command).unwrap();
        assert_eq!(*scene.status_of("c1"), ToolCallStatus::Completed(success()));
    }
}

#[test]
fn a_person_decides_whether_the_agent_sees_what_a_client_brought() {
    let held = || Scene::reported(handed_to("client", "c1")).after(complete("c1", true));
    assert_eq!(held().chat().status(), ChatStatus::InputNeeded);
    let seen = held().after(confirm_result("c1", Decision::Approved));
    assert_eq!(*seen.status_of("c1"), ToolCallStatus::Completed(success()));
    let withheld = held().after(confirm_result("c1", Decision::Denied));
    assert_eq!(*withheld.status_of("c1"), ToolCallStatus::Cancelled(CancelReason::ResultDenied.into()));
}

#[test]
fn what_was_submitted_as_a_draft_counts_as_answered() {
    let scene = Scene::reported([asked("q1")]).after(draft_answer("q1", QUESTION, Some(Answer::text("this"))));
    let scene = scene.after(answer("q1", InputOutcome::Accepted, Answers::new()));
    assert_eq!(scene.input("q1").outcome, Some(InputOutcome::Accepted));
    assert_eq!(scene.input("q1").answers, answers(Answer::text("this")));
}

#[test]
fn an_added_chat_is_empty_and_lives_beside_the_main_one() {
    let mut scene = Scene::in_turn().after_command_of_host(add_chat("side"));
    let side = scene.session.chat(&"side".into()).unwrap();
    assert_eq!(*side, Chat { uri: Some("scripted:/s1/side".into()), ..Chat::new("side".into(), Timestamp(scene.now)) });
    assert_eq!(scene.session.catalogue, scene.session.chats.iter().map(Chat::row).collect::<Vec<_>>());
    let go = |turn: &str| ClientCommand::StartTurn {
        chat: "side".into(),
        turn: turn.into(),
        message: Message::user("go"),
        started_at: None,
    };
    assert_eq!(scene.act(go(TURN)), Err(Rejection::DuplicateTurn(turn())), "an id is given once in a session");
    scene.act(go("t2")).unwrap();
    assert!(scene.session.chats.iter().all(|chat| chat.active.is_some()), "both run, each its own turn");
    scene.act(ClientCommand::CancelTurn { chat: "side".into(), turn: "t2".into() }).unwrap();
    scene.host(HostCommand::RemoveChat("side".into())).unwrap();
    assert_eq!((scene.session.chats.len(), scene.session.catalogue.len()), (1, 1));
    assert_eq!(scene.active().id, turn());
}

#[test]
fn a_full_session_still_takes_a_change_of_a_client_that_takes_part() {
    let mut scene = Scene::ready();
    scene.session.active_clients = (0..MAX_ACTIVE_CLIENTS).map(|number| taking_part(&format!("c{number}"))).collect();
    let renamed = ActiveClient { display_name: Some("Mine".into()), ..taking_part("c7") };
    scene.by(Command::Client("c7".into(), ClientCommand::SetActiveClient(renamed.clone()))).unwrap();
    assert_eq!(scene.session.active_clients[7], renamed);
}

#[test]
fn a_session_that_is_still_being_created_takes_turns_and_models() {
    let mut scene = Scene::creating();
    scene.act(ClientCommand::ChangeModel("small".into())).unwrap();
    scene.act(start(TURN)).unwrap();
    assert_eq!(scene.chat().status(), ChatStatus::InProgress);
}

#[test]
fn a_message_may_ask_for_a_model_that_the_agent_lists() {
    let mut scene = Scene::ready();
    let message = Message { model: Some("large".into()), ..Message::user("go") };
    let start = ClientCommand::StartTurn { chat: main(), turn: turn(), message: message.clone(), started_at: None };
    scene.act(start).unwrap();
    assert_eq!(scene.active().message, message);
    assert_eq!(scene.session.model, None, "the session's own model stays");
}

#[test]
fn the_host_may_send_messages_that_are_no_persons() {
    for origin in
        [MessageOrigin::Agent, MessageOrigin::Tool, MessageOrigin::Automation, MessageOrigin::SystemNotification]
    {
        let message = Message { origin, ..Message::user("go") };
        let command = ClientCommand::StartTurn { chat: main(), turn: turn(), message, started_at: None };
        assert!(Scene::ready().host(command.clone()).is_ok());
        assert_eq!(Scene::ready().act(command), Err(Rejection::OnlyUserMessages));
    }
}

#[test]
fn a_denied_permission_cancels_the_call_and_an_approved_one_lets_it_run() {
    let mut denied = Scene::reported(asking("c1", "r1"));
    denied.act(resolve("r1", Decision::Denied)).unwrap();
    assert_eq!(*denied.status_of("c1"), ToolCallStatus::Cancelled(CancelReason::Denied.into()));
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
    let tip = ValidationContext { session: &scene.session, agent: Some(&scene.agent), queue: QueuePolicy::Start };
    let batch = validate(tip, Command::Client(client(), cancel(TURN)), Timestamp(50)).unwrap();
    let cancelled = Change::Chat("s1".into(), main(), lasting(cancelled(), 47));
    assert_eq!(batch.events, [Event { at: Timestamp(50), change: cancelled }]);
    assert_eq!(scene.session, Scene::in_turn().session);
}

#[test]
fn what_a_chat_is_busy_with_and_how_its_agent_calls_it_may_be_said_without_a_turn() {
    let mut scene = Scene::ready();
    for event in [busy(Some("Waiting for the model")), busy(None), called(Some("agent-7")), called(None)] {
        assert_eq!(chat_events(&scene.report(event.clone()).unwrap()), [event]);
    }
    scene.report(busy(Some("Signing in"))).unwrap();
    scene.report(called(Some("agent-7"))).unwrap();
    let chat = scene.chat();
    assert_eq!((chat.activity.as_deref(), chat.agent_session.as_deref()), (Some("Signing in"), Some("agent-7")));
}

#[test]
fn what_a_chat_was_busy_with_is_over_with_its_turn_behind_the_end_and_before_what_comes_next() {
    let none = || busy(None);
    let given = || Scene::reported([busy(Some("Trying again")), called(Some("agent-7"))]);
    for end in [ended(), cancelled(), failed("broken")] {
        let mut scene = given();
        assert_eq!(chat_events(&scene.report(end.clone()).unwrap()), [lasting(end, 3), none()]);
        assert_eq!(scene.chat().activity, None);
        assert_eq!(scene.chat().agent_session.as_deref(), Some("agent-7"), "the conversation goes on");
    }
    let by_person = chat_events(&given().act(cancel(TURN)).unwrap());
    assert_eq!(by_person, [lasting(cancelled(), 3), none()]);
    assert_eq!(chat_events(&given().host(stop()).unwrap())[1..], [none()]);
    let next = chat_events(&given().after(enqueue("p1")).report(ended()).unwrap());
    assert_eq!(next[..3], [lasting(ended(), 4), none(), ChatEvent::QueuedRemoved("p1".into())]);
    let quiet = chat_events(&Scene::in_turn().report(ended()).unwrap());
    assert_eq!(quiet, [lasting(ended(), 1)], "where nothing was said nothing is taken back");
}

#[test]
fn an_agent_says_anew_what_a_call_is_and_not_why_it_may_run() {
    let allowed = Scene::reported(asking("c1", "r1")).after(resolve("r1", Decision::Approved));
    for (mut scene, by) in
        [(allowed, ConfirmationReason::Person), (Scene::reported(running("c1")), ConfirmationReason::NotNeeded)]
    {
        let changes = scene.report(restated("c1", Some("ls -a"), ConfirmationReason::Setting)).unwrap();
        assert_eq!(chat_events(&changes), [restated("c1", Some("ls -a"), by)]);
        assert_eq!(scene.call("c1").confirmed, Some(Confirmation { by, option: None }));
    }
}
