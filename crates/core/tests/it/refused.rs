//! What is refused, and in which words.

use std::collections::BTreeSet;

use grove_core::*;

use crate::scene::*;

struct Case {
    given: Scene,
    who: Who,
    command: Command,
    with: Rejection,
    says: &'static str,
}

/// What a client wants and does not get.
fn client_wants(given: Scene, command: Command, with: Rejection, says: &'static str) -> Case {
    Case { given, who: client(), command, with, says }
}

/// What an agent reports and is not believed.
fn agent_reports(given: Scene, event: ChatEvent, with: Rejection, says: &'static str) -> Case {
    Case { given, who: Who::Agent, command: Command::Report { chat: main(), event }, with, says }
}

fn check(cases: Vec<Case>) {
    for Case { given, who, command, with, says } in cases {
        let mut scene = given.clone();
        assert_eq!(scene.by(&who, command.clone()), Err(with.clone()), "{command:?}");
        assert_eq!(with.to_string(), says);
        assert_eq!(scene.session, given.session, "a refusal changes nothing: {command:?}");
    }
}

fn with_model(model: &str) -> Message {
    Message { model: Some(model.into()), ..Message::user("go") }
}

fn of_agent() -> Message {
    Message { origin: MessageOrigin::Agent, ..Message::user("go") }
}

fn start_with(message: Message) -> Command {
    Command::StartTurn { chat: main(), turn: TURN.into(), message }
}

fn unknown_model() -> Rejection {
    Rejection::UnknownModel { model: "huge".into(), provider: "scripted".into() }
}

fn tool_call(call: &str, problem: &'static str) -> Rejection {
    Rejection::ToolCall { call: call.into(), problem }
}

fn creation_failed() -> Rejection {
    Rejection::CreationFailed("no such program".into())
}

const CREATION_FAILED: &str = "the session could not be created (no such program): dispose it and create another";
const NOT_ACTIVE: &str = "turn t1 is not the active turn";
const IN_PROGRESS: &str = "turn t1 is still in progress: wait for its end or cancel it";
const NO_SIDE_CHAT: &str = "the session has no chat side";
const NOT_YOURS: &str = "only the host may do this";
const UNKNOWN_MODEL: &str = "agent scripted has no model huge";
const ONLY_USER: &str = "a client may only send messages of a person";

#[test]
fn a_turn_starts_only_in_a_usable_idle_chat_under_a_new_id_with_a_known_model() {
    let finished = Scene::reported([ended()]);
    check(vec![
        client_wants(Scene::failed(), start(TURN), creation_failed(), CREATION_FAILED),
        client_wants(Scene::in_turn(), start("t2"), Rejection::TurnInProgress(TURN.into()), IN_PROGRESS),
        client_wants(
            finished,
            start(TURN),
            Rejection::DuplicateTurn(TURN.into()),
            "there was a turn t1 before: choose another id",
        ),
        client_wants(Scene::ready(), start(""), Rejection::EmptyId, "an id must not be empty"),
        client_wants(Scene::ready(), start_with(of_agent()), Rejection::OnlyUserMessages, ONLY_USER),
        client_wants(Scene::ready(), start_with(with_model("huge")), unknown_model(), UNKNOWN_MODEL),
    ]);
}

#[test]
fn a_turn_is_cancelled_once_and_only_while_it_runs() {
    let not_active = || Rejection::TurnNotActive(TURN.into());
    check(vec![
        client_wants(Scene::ready(), cancel(TURN), not_active(), NOT_ACTIVE),
        client_wants(Scene::in_turn().after(cancel(TURN)), cancel(TURN), not_active(), NOT_ACTIVE),
        client_wants(
            Scene::in_turn(),
            cancel("t9"),
            Rejection::TurnNotActive("t9".into()),
            "turn t9 is not the active turn",
        ),
    ]);
}

#[test]
fn a_permission_is_answered_once_and_only_where_it_was_asked() {
    let asked_about = || Scene::reported(asking("c1", "r1"));
    let answered = |decision| asked_about().after(resolve("r1", decision));
    let already = || Rejection::AlreadyAnswered("r1".into());
    let approve = |request| resolve(request, Decision::Approved);
    check(vec![
        client_wants(Scene::ready(), approve("r1"), Rejection::TurnNotActive(TURN.into()), NOT_ACTIVE),
        client_wants(
            asked_about(),
            approve("r9"),
            Rejection::UnknownRequest("r9".into()),
            "nothing was asked under r9",
        ),
        client_wants(answered(Decision::Approved), approve("r1"), already(), "r1 has been answered already"),
        client_wants(answered(Decision::Denied), approve("r1"), already(), "r1 has been answered already"),
        client_wants(
            asked_about().after(cancel(TURN)),
            approve("r1"),
            Rejection::TurnNotActive(TURN.into()),
            NOT_ACTIVE,
        ),
    ]);
}

#[test]
fn a_question_is_answered_once_and_only_while_its_turn_runs() {
    let questioned = || Scene::reported([asked("q1")]);
    let decline = |request| answer(request, InputResponse::Decline);
    let unknown = |request: &str| Rejection::UnknownRequest(request.into());
    check(vec![
        client_wants(Scene::ready(), decline("q1"), unknown("q1"), "nothing was asked under q1"),
        client_wants(questioned(), decline("q9"), unknown("q9"), "nothing was asked under q9"),
        client_wants(
            questioned().after(decline("q1")),
            decline("q1"),
            Rejection::AlreadyAnswered("q1".into()),
            "q1 has been answered already",
        ),
        client_wants(questioned().after(cancel(TURN)), decline("q1"), unknown("q1"), "nothing was asked under q1"),
        client_wants(Scene::reported(asking("c1", "r1")), decline("r1"), unknown("r1"), "nothing was asked under r1"),
    ]);
}

#[test]
fn a_model_is_one_that_the_agent_lists() {
    let mut orphan = Scene::ready();
    orphan.agent.models.clear();
    check(vec![
        client_wants(Scene::ready(), Command::ChangeModel("huge".into()), unknown_model(), UNKNOWN_MODEL),
        client_wants(
            orphan,
            Command::ChangeModel("small".into()),
            Rejection::UnknownModel { model: "small".into(), provider: "scripted".into() },
            "agent scripted has no model small",
        ),
        client_wants(Scene::failed(), Command::ChangeModel("small".into()), creation_failed(), CREATION_FAILED),
        client_wants(
            Scene::in_turn(),
            Command::Enqueue { chat: main(), message: PendingMessage { id: "p1".into(), message: with_model("huge") } },
            unknown_model(),
            UNKNOWN_MODEL,
        ),
    ]);
}

#[test]
fn without_an_agent_no_model_is_known() {
    let mut session = Scene::ready().session;
    let refused = advance(&mut session, None, Command::ChangeModel("small".into()), &client(), Timestamp(9));
    assert!(matches!(refused, Err(Rejection::UnknownModel { .. })));
}

#[test]
fn messages_wait_only_in_a_usable_session_within_bounds_and_in_the_name_of_a_person() {
    let unknown = || Rejection::UnknownPending("p9".into());
    let from_agent = || PendingMessage { id: "p1".into(), message: of_agent() };
    let full = (0..MAX_QUEUED).fold(Scene::in_turn(), |mut scene, number| {
        let chat = scene.session.chat_mut(&main()).unwrap();
        chat.queued.push(pending(&format!("p{number}"), "later"));
        scene
    });
    let no_such = "no message p9 is waiting";
    check(vec![
        client_wants(Scene::failed(), enqueue("p1"), creation_failed(), CREATION_FAILED),
        client_wants(Scene::in_turn(), enqueue(""), Rejection::EmptyId, "an id must not be empty"),
        client_wants(full, enqueue("one-more"), Rejection::QueueFull, "1000 messages are waiting already"),
        client_wants(
            Scene::in_turn(),
            Command::Enqueue { chat: main(), message: from_agent() },
            Rejection::OnlyUserMessages,
            ONLY_USER,
        ),
        client_wants(
            Scene::in_turn(),
            Command::SetSteering { chat: main(), message: from_agent() },
            Rejection::OnlyUserMessages,
            ONLY_USER,
        ),
        client_wants(
            Scene::failed(),
            Command::SetSteering { chat: main(), message: pending("p1", "left") },
            creation_failed(),
            CREATION_FAILED,
        ),
        client_wants(Scene::in_turn(), Command::RemoveSteering { chat: main(), id: "p9".into() }, unknown(), no_such),
        client_wants(
            Scene::in_turn().after(Command::SetSteering { chat: main(), message: pending("p1", "left") }),
            Command::RemoveSteering { chat: main(), id: "p9".into() },
            unknown(),
            no_such,
        ),
        client_wants(Scene::in_turn(), Command::Dequeue { chat: main(), id: "p9".into() }, unknown(), no_such),
        client_wants(
            Scene::in_turn().after(enqueue("p1")),
            Command::ReorderQueue { chat: main(), order: vec!["p1".into(), "p9".into()] },
            unknown(),
            no_such,
        ),
    ]);
}

#[test]
fn nothing_is_done_to_a_chat_that_is_not_there() {
    let side = || ChatId::from("side");
    let commands = [
        Command::StartTurn { chat: side(), turn: turn(), message: Message::user("go") },
        Command::CancelTurn { chat: side(), turn: turn() },
        Command::ResolvePermission { chat: side(), turn: turn(), request: "r1".into(), decision: Decision::Approved },
        Command::AnswerInput { chat: side(), request: "q1".into(), response: InputResponse::Cancel },
        Command::SetSteering { chat: side(), message: pending("p1", "left") },
        Command::RemoveSteering { chat: side(), id: "p1".into() },
        Command::Enqueue { chat: side(), message: pending("p1", "later") },
        Command::Dequeue { chat: side(), id: "p1".into() },
        Command::ReorderQueue { chat: side(), order: vec![] },
        Command::SetDraft { chat: side(), draft: None },
    ];
    let unknown = || Rejection::UnknownChat("side".into());
    let mut cases: Vec<_> =
        commands.into_iter().map(|command| client_wants(Scene::in_turn(), command, unknown(), NO_SIDE_CHAT)).collect();
    let command = Command::Report { chat: side(), event: ended() };
    cases.push(Case { given: Scene::in_turn(), who: Who::Agent, command, with: unknown(), says: NO_SIDE_CHAT });
    check(cases);
}

#[test]
fn a_client_reports_nothing() {
    let report = Command::Report { chat: main(), event: ended() };
    check(vec![
        client_wants(Scene::in_turn(), report, Rejection::NotYours, NOT_YOURS),
        client_wants(Scene::creating(), Command::ReportSession(SessionEvent::Ready), Rejection::NotYours, NOT_YOURS),
    ]);
}

#[test]
fn what_persons_do_and_what_follows_from_chats_is_not_reported() {
    let confirmed = ChatEvent::ToolCallConfirmed {
        turn: turn(),
        call: "c1".into(),
        request: "r1".into(),
        decision: Decision::Approved,
    };
    let answered = ChatEvent::InputAnswered { turn: turn(), request: "q1".into(), response: InputResponse::Decline };
    let call = ToolCall {
        id: "c9".into(),
        name: "shell".into(),
        display_name: "Shell".into(),
        kind: None,
        language: None,
        invocation_message: String::new(),
        input: None,
        status: ToolCallStatus::Running,
        ready_rank: Some(0),
    };
    let question = InputRequest { id: "q9".into(), question: "?".into(), response: None };
    let events = [
        ChatEvent::TurnStarted { turn: turn(), message: Message::user("again") },
        confirmed,
        answered,
        ChatEvent::SteeringSet(pending("p1", "left")),
        ChatEvent::SteeringRemoved("p1".into()),
        ChatEvent::QueuedSet(pending("p1", "later")),
        ChatEvent::QueuedRemoved("p1".into()),
        ChatEvent::QueueReordered(vec![]),
        ChatEvent::DraftChanged(None),
        ChatEvent::PartAdded { turn: turn(), part: Part::ToolCall(Box::new(call)) },
        ChatEvent::PartAdded { turn: turn(), part: Part::InputRequest(question) },
    ];
    let given = Scene::reported(asking("c1", "r1").into_iter().chain([asked("q1")]));
    check(
        events.into_iter().map(|event| agent_reports(given.clone(), event, Rejection::NotYours, NOT_YOURS)).collect(),
    );

    let row = given.session.catalogue[0].clone();
    let mirrored = [
        SessionEvent::ChatRowChanged(ChatRow { title: "other".into(), ..row }),
        SessionEvent::InputNeededSet(given.session.input_needed[0].clone()),
        SessionEvent::InputNeededRemoved("r1".into()),
    ];
    let host = |event| Case {
        given: given.clone(),
        who: Who::Host,
        command: Command::ReportSession(event),
        with: Rejection::NotYours,
        says: NOT_YOURS,
    };
    check(mirrored.into_iter().map(host).collect());
}

#[test]
fn a_creation_that_failed_does_not_become_ready() {
    check(vec![Case {
        given: Scene::failed(),
        who: Who::Host,
        command: Command::ReportSession(SessionEvent::Ready),
        with: creation_failed(),
        says: CREATION_FAILED,
    }]);
}

#[test]
fn a_report_for_a_turn_that_does_not_run_is_refused() {
    let not_active = || Rejection::TurnNotActive(TURN.into());
    let mut events = vec![streamed("x"), whole("x"), thought("x"), says("x", "a"), thinks("x", "a"), started("c1")];
    events.extend([writes("c1", "l"), ready("c1", Gate::None), gated("c1", "r1"), completed("c1")]);
    events.extend([result_gated("c1"), result_confirmed("c1", Decision::Approved), asked("q1"), ended()]);
    events.extend([
        ChatEvent::UsageReported { turn: turn(), usage: Usage::default() },
        ChatEvent::TurnCancelled { turn: turn() },
        ChatEvent::TurnFailed { turn: turn(), error: ErrorInfo::new("agent", "late") },
    ]);
    for given in [Scene::ready(), Scene::in_turn().after(cancel(TURN)), Scene::ready().after(start("t2"))] {
        check(
            events.iter().map(|event| agent_reports(given.clone(), event.clone(), not_active(), NOT_ACTIVE)).collect(),
        );
    }
}

#[test]
fn deltas_go_to_the_newest_part_of_their_kind_and_ids_are_not_used_twice() {
    let closed = |part: &str| Rejection::PartClosed(part.into());
    let unknown = |part: &str| Rejection::UnknownPart(part.into());
    let written = || Scene::reported([streamed("x1"), streamed("x2"), thought("y1"), thought("y2"), whole("w")]);
    let duplicate = "the turn has a part of this id already";
    check(vec![
        agent_reports(written(), says("x1", "a"), closed("x1"), "part x1 takes no more of this"),
        agent_reports(written(), thinks("y1", "a"), closed("y1"), "part y1 takes no more of this"),
        agent_reports(written(), says("w", "a"), closed("w"), "part w takes no more of this"),
        agent_reports(written(), says("y2", "a"), closed("y2"), "part y2 takes no more of this"),
        agent_reports(written(), thinks("x2", "a"), closed("x2"), "part x2 takes no more of this"),
        agent_reports(written(), says("z", "a"), unknown("z"), "the turn has no such part z"),
        agent_reports(written(), thinks("z", "a"), unknown("z"), "the turn has no such part z"),
        agent_reports(written(), streamed("x1"), Rejection::DuplicatePart, duplicate),
        agent_reports(written(), thought("x1"), Rejection::DuplicatePart, duplicate),
        agent_reports(Scene::reported([started("c1")]), started("c1"), Rejection::DuplicatePart, duplicate),
        agent_reports(Scene::reported([asked("q1")]), asked("q1"), Rejection::DuplicatePart, duplicate),
        agent_reports(Scene::reported(asking("c1", "r1")), asked("r1"), Rejection::DuplicatePart, duplicate),
    ]);
}

#[test]
fn a_tool_call_takes_only_the_steps_that_its_state_allows() {
    let begun = || Scene::reported([started("c1")]);
    let runs = || Scene::reported(running("c1"));
    let waits = || Scene::reported(asking("c1", "r1"));
    let done = || runs().after_report(completed("c1"));
    let denied = || waits().after(resolve("r1", Decision::Denied));
    let past = "tool call c1 is past its beginning";
    let cannot_ask = "tool call c1 cannot be asked about now";
    let not_running = "tool call c1 is not running";
    let no_result = "tool call c1 has no result that waits";
    let problem = |problem| tool_call("c1", problem);
    let approved = || result_confirmed("c1", Decision::Approved);
    let mut cases = vec![
        agent_reports(runs(), writes("c1", "l"), problem("is past its beginning"), past),
        agent_reports(runs(), ready("c1", Gate::None), problem("is past its beginning"), past),
        agent_reports(done(), ready("c1", Gate::None), problem("is past its beginning"), past),
        agent_reports(begun(), gated("c1", "r2"), problem("cannot be asked about now"), cannot_ask),
        agent_reports(waits(), gated("c1", "r2"), problem("cannot be asked about now"), cannot_ask),
        agent_reports(done(), gated("c1", "r2"), problem("cannot be asked about now"), cannot_ask),
        agent_reports(begun(), completed("c1"), problem("is not running"), not_running),
        agent_reports(waits(), completed("c1"), problem("is not running"), not_running),
        agent_reports(denied(), completed("c1"), problem("is not running"), not_running),
        agent_reports(done(), completed("c1"), problem("is not running"), not_running),
        agent_reports(done(), result_gated("c1"), problem("is not running"), not_running),
        agent_reports(runs(), approved(), problem("has no result that waits"), no_result),
        agent_reports(done(), approved(), problem("has no result that waits"), no_result),
        agent_reports(
            Scene::reported(asking("c1", "r1").into_iter().chain(running("c2"))),
            gated("c2", "r1"),
            Rejection::AlreadyAnswered("r1".into()),
            "r1 has been answered already",
        ),
    ];
    let strangers = [
        writes("c9", "l"),
        ready("c9", Gate::None),
        gated("c9", "r1"),
        completed("c9"),
        result_gated("c9"),
        result_confirmed("c9", Decision::Denied),
    ];
    cases.extend(
        strangers.map(|event| {
            agent_reports(Scene::in_turn(), event, tool_call("c9", "is unknown"), "tool call c9 is unknown")
        }),
    );
    check(cases);
}

/// Each reason has its own words, so that a person can tell them apart; `describe` does not compile without all.
#[test]
fn every_reason_is_said_in_its_own_words() {
    fn describe(rejection: &Rejection) -> usize {
        match rejection {
            Rejection::CreationFailed(_) => 0,
            Rejection::UnknownChat(_) => 1,
            Rejection::TurnInProgress(_) => 2,
            Rejection::TurnNotActive(_) => 3,
            Rejection::DuplicateTurn(_) => 4,
            Rejection::EmptyId => 5,
            Rejection::UnknownRequest(_) => 6,
            Rejection::AlreadyAnswered(_) => 7,
            Rejection::UnknownModel { .. } => 8,
            Rejection::UnknownPending(_) => 9,
            Rejection::QueueFull => 10,
            Rejection::OnlyUserMessages => 11,
            Rejection::UnknownPart(_) => 12,
            Rejection::PartClosed(_) => 13,
            Rejection::DuplicatePart => 14,
            Rejection::ToolCall { .. } => 15,
            Rejection::NotYours => 16,
        }
    }
    let all = [
        creation_failed(),
        Rejection::UnknownChat("x".into()),
        Rejection::TurnInProgress("x".into()),
        Rejection::TurnNotActive("x".into()),
        Rejection::DuplicateTurn("x".into()),
        Rejection::EmptyId,
        Rejection::UnknownRequest("x".into()),
        Rejection::AlreadyAnswered("x".into()),
        unknown_model(),
        Rejection::UnknownPending("x".into()),
        Rejection::QueueFull,
        Rejection::OnlyUserMessages,
        Rejection::UnknownPart("x".into()),
        Rejection::PartClosed("x".into()),
        Rejection::DuplicatePart,
        tool_call("x", "is unknown"),
        Rejection::NotYours,
    ];
    assert!(all.iter().map(describe).eq(0..17));
    let words: BTreeSet<String> = all.iter().map(ToString::to_string).collect();
    assert_eq!(words.len(), all.len());
}
