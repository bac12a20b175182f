//! Refused commands and the words of their rejections.

use std::collections::BTreeSet;

use grove_core::*;

use crate::scene::*;

struct Case {
    given: Scene,
    who: Actor,
    command: Command,
    with: Rejection,
    says: &'static str,
}

/// A client's command that is refused.
fn client_wants(given: Scene, command: Command, with: Rejection, says: &'static str) -> Case {
    Case { given, who: client(), command, with, says }
}

/// A host's command that is refused.
fn host_wants(given: Scene, command: Command, with: Rejection, says: &'static str) -> Case {
    Case { given, who: Actor::Host, command, with, says }
}

/// An agent's report that is refused.
fn agent_reports(given: Scene, event: ChatEvent, with: Rejection, says: &'static str) -> Case {
    Case { given, who: Actor::Agent, command: Command::Report { chat: main(), event }, with, says }
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
    Command::StartTurn { chat: main(), turn: TURN.into(), message, started_at: None }
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
const ONLY_USER: &str = "a client may only send user messages";

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
            "turn t1 exists already: choose another id",
        ),
        client_wants(Scene::ready(), start(""), Rejection::EmptyId, "an id must not be empty"),
        client_wants(Scene::ready(), start_with(of_agent()), Rejection::OnlyUserMessages, ONLY_USER),
        client_wants(Scene::ready(), start_with(with_model("huge")), unknown_model(), UNKNOWN_MODEL),
    ]);
}

#[test]
fn a_message_has_a_text_or_an_attachment() {
    const EMPTY: &str = "the message is empty: write a text or attach something";
    let pending = |text: &str| PendingMessage { id: "p1".into(), message: Message::user(text) };
    let cases = ["", " \n\t "].into_iter().flat_map(|text| {
        let message = pending(text);
        [
            client_wants(Scene::ready(), start_with(Message::user(text)), Rejection::EmptyMessage, EMPTY),
            client_wants(
                Scene::in_turn(),
                Command::Enqueue { chat: main(), message: message.clone() },
                Rejection::EmptyMessage,
                EMPTY,
            ),
            client_wants(
                Scene::in_turn(),
                Command::SetSteering { chat: main(), message },
                Rejection::EmptyMessage,
                EMPTY,
            ),
        ]
    });
    check(cases.collect());
    let attachment = Attachment { kind: AttachmentKind::File, path: "file:///a".into(), display_name: None };
    let attached = Message { attachments: vec![attachment], ..Message::user("") };
    assert!(Scene::ready().act(start_with(attached)).is_ok());
    // A draft may be empty: the person is about to write it.
    assert!(Scene::ready().act(Command::SetDraft { chat: main(), draft: Some(Message::user("")) }).is_ok());
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
            "there is no open request r9",
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
    let unknown = |request: &str| Rejection::UnknownRequest(request.into());
    check(vec![
        client_wants(Scene::ready(), decline("q1"), unknown("q1"), "there is no open request q1"),
        client_wants(questioned(), decline("q9"), unknown("q9"), "there is no open request q9"),
        client_wants(
            questioned().after(decline("q1")),
            decline("q1"),
            Rejection::AlreadyAnswered("q1".into()),
            "q1 has been answered already",
        ),
        client_wants(questioned().after(cancel(TURN)), decline("q1"), unknown("q1"), "there is no open request q1"),
        client_wants(Scene::reported(asking("c1", "r1")), decline("r1"), unknown("r1"), "there is no open request r1"),
    ]);
}

#[test]
fn a_model_is_one_that_the_agent_lists() {
    check(vec![
        client_wants(Scene::ready(), Command::ChangeModel("huge".into()), unknown_model(), UNKNOWN_MODEL),
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
fn an_agent_that_has_not_told_its_models_may_have_any() {
    let mut silent = Scene::ready();
    silent.agent.models.clear();
    silent.act(Command::ChangeModel("small".into())).unwrap();
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
    let no_such = "there is no queued message p9";
    check(vec![
        client_wants(Scene::failed(), enqueue("p1"), creation_failed(), CREATION_FAILED),
        client_wants(Scene::in_turn(), enqueue(""), Rejection::EmptyId, "an id must not be empty"),
        client_wants(full, enqueue("one-more"), Rejection::QueueFull, "1000 messages are queued already"),
        client_wants(
            Scene::in_turn(),
            Command::Enqueue { chat: main(), message: from_agent() },
            Rejection::OnlyUserMessages,
            ONLY_USER,
        ),
        client_wants(
            Scene::ready(),
            Command::SetDraft { chat: main(), draft: Some(of_agent()) },
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
        Command::StartTurn { chat: side(), turn: turn(), message: Message::user("go"), started_at: None },
        Command::CancelTurn { chat: side(), turn: turn() },
        Command::ResolvePermission {
            chat: side(),
            turn: turn(),
            question: PermissionTarget::Request("r1".into()),
            verdict: Decision::Approved.into(),
        },
        Command::ConfirmResult { chat: side(), turn: turn(), call: "c1".into(), decision: Decision::Approved },
        Command::CompleteClientCall { chat: side(), turn: turn(), call: "c1".into(), result: success(), ask: false },
        Command::ReportClientOutput { chat: side(), turn: turn(), call: "c1".into(), output: output("half") },
        Command::AnswerInput {
            chat: side(),
            request: "q1".into(),
            outcome: InputOutcome::Cancelled,
            answers: Answers::new(),
        },
        Command::DraftAnswer { chat: side(), request: "q1".into(), question: QUESTION.into(), answer: None },
        Command::SetChatRead { chat: side(), read: true },
        Command::SetChatArchived { chat: side(), archived: true },
        Command::RenameChat { chat: side(), title: "x".into() },
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
    let of_the_host = [
        Command::Report { chat: side(), event: ended() },
        Command::StopTurn { chat: side(), turn: turn(), error: ErrorInfo::new("hostStopped", "bye") },
        Command::StartQueued { chat: side() },
        Command::TakeSteering { chat: side() },
        Command::RemoveChat(side()),
    ];
    cases.extend(of_the_host.map(|command| host_wants(Scene::in_turn(), command, unknown(), NO_SIDE_CHAT)));
    check(cases);
}

#[test]
fn a_client_reports_nothing_and_does_nothing_that_is_the_hosts() {
    let commands = [
        Command::Report { chat: main(), event: ended() },
        Command::ReportSession(SessionEvent::Ready),
        stop(),
        start_queued(),
        Command::TakeSteering { chat: main() },
        add_chat("side"),
        Command::RemoveChat("side".into()),
    ];
    let given = || Scene::in_turn().after_command_of_host(add_chat("aside"));
    check(
        commands
            .into_iter()
            .map(|command| client_wants(given(), command, Rejection::NotPermitted, NOT_YOURS))
            .collect(),
    );
}

#[test]
fn chats_are_added_under_new_names_within_bounds_and_removed_while_idle() {
    let beside = || Scene::ready().after_command_of_host(add_chat("side"));
    let busy = || {
        let (chat, message) = ("side".into(), Message::user("go"));
        beside().after(Command::StartTurn { chat, turn: turn(), message, started_at: None })
    };
    let full = || {
        (1..MAX_CHATS)
            .fold(Scene::ready(), |scene, number| scene.after_command_of_host(add_chat(&format!("c{number}"))))
    };
    let duplicate = |chat: &str| Rejection::DuplicateChat(chat.into());
    check(vec![
        host_wants(Scene::failed(), add_chat("side"), creation_failed(), CREATION_FAILED),
        host_wants(Scene::ready(), add_chat(""), Rejection::EmptyId, "an id must not be empty"),
        host_wants(beside(), add_chat("side"), duplicate("side"), "the session has a chat side already"),
        host_wants(beside(), add_chat("main"), duplicate("main"), "the session has a chat main already"),
        host_wants(full(), add_chat("side"), Rejection::TooManyChats, "the session has 100 chats already"),
        host_wants(
            beside(),
            Command::RemoveChat(main()),
            Rejection::MainChat,
            "the main chat cannot be removed: dispose the session instead",
        ),
        host_wants(busy(), Command::RemoveChat("side".into()), Rejection::TurnInProgress(turn()), IN_PROGRESS),
    ]);
}

#[test]
fn a_client_takes_part_in_its_own_name_and_within_bounds() {
    let mut full = Scene::ready();
    full.session.active_clients = (0..MAX_ACTIVE_CLIENTS).map(|number| taking_part(&format!("c{number}"))).collect();
    let others = || Scene::ready().after_host(SessionEvent::ActiveClientSet(taking_part("other")));
    let join = |client| Command::SetActiveClient(taking_part(client));
    check(vec![
        client_wants(Scene::ready(), join("other"), Rejection::NotPermitted, NOT_YOURS),
        client_wants(others(), Command::RemoveActiveClient("other".into()), Rejection::NotPermitted, NOT_YOURS),
        client_wants(full, join("client"), Rejection::TooManyClients, "100 clients take part already"),
    ]);
}

#[test]
fn a_session_without_settings_takes_none() {
    let mut given = Scene::ready();
    given.session.config = None;
    let change = Command::ChangeConfig { values: extra("mode", "auto"), replace: true };
    check(vec![client_wants(given, change, Rejection::NoConfig, "the session has no settings")]);
}

#[test]
fn a_session_keeps_no_more_rules_than_it_may() {
    let change = Command::ChangePermissions(PermissionsChange::AddDirectory("x".repeat(MAX_PERMISSION_ARGUMENT + 1)));
    let reason = "a session keeps 1000 rules and folders of up to 4096 bytes: remove some first";
    check(vec![client_wants(Scene::ready(), change, Rejection::TooManyRules, reason)]);
}

#[test]
fn the_folder_changes_only_while_nothing_runs_and_the_session_stands() {
    let set = || Command::SetWorkingDirectory("/w".into());
    check(vec![
        client_wants(Scene::failed(), set(), creation_failed(), CREATION_FAILED),
        client_wants(Scene::in_turn(), set(), Rejection::TurnInProgress(TURN.into()), IN_PROGRESS),
        client_wants(
            Scene::creating(),
            set(),
            Rejection::BeingCreated,
            "the session is still being created: try again in a moment",
        ),
    ]);
}

#[test]
fn a_client_runs_only_its_own_calls_and_only_while_they_run() {
    let mine = || Scene::reported(handed_to("client", "c1"));
    let theirs = || Scene::reported(handed_to("other", "c1"));
    let agents = || Scene::reported(running("c1"));
    let asked_about = || mine().after_report(gated("c1", "r1"));
    let done = || mine().after(complete("c1", false));
    let held = || mine().after(complete("c1", true));
    let givens = [
        (Scene::in_turn(), "is unknown", "tool call c1 is unknown"),
        (theirs(), "belongs to another client", "tool call c1 belongs to another client"),
        (agents(), "is run by the agent", "tool call c1 is run by the agent"),
        (asked_about(), "is not running", "tool call c1 is not running"),
        (done(), "is not running", "tool call c1 is not running"),
        (held(), "is not running", "tool call c1 is not running"),
    ];
    for (given, problem, says) in givens {
        let wants = |command| client_wants(given.clone(), command, tool_call("c1", problem), says);
        check([complete("c1", false), complete("c1", true), report_output("c1", "half")].map(wants).into());
    }
    let over = || mine().after(cancel(TURN));
    let not_active = || Rejection::TurnNotActive(TURN.into());
    check(vec![
        client_wants(over(), complete("c1", false), not_active(), NOT_ACTIVE),
        client_wants(over(), report_output("c1", "half"), not_active(), NOT_ACTIVE),
    ]);
}

#[test]
fn a_result_is_confirmed_only_while_it_waits() {
    let held = || Scene::reported(running("c1")).after_report(result_gated("c1"));
    let confirm = || confirm_result("c1", Decision::Approved);
    let no_result = || tool_call("c1", "has no pending result");
    let says = "tool call c1 has no pending result";
    check(vec![
        client_wants(Scene::in_turn(), confirm(), no_result(), says),
        client_wants(Scene::reported(running("c1")), confirm(), no_result(), says),
        client_wants(Scene::reported(asking("c1", "r1")), confirm(), no_result(), says),
        client_wants(held().after(confirm()), confirm(), no_result(), says),
        client_wants(held().after(cancel(TURN)), confirm(), Rejection::TurnNotActive(TURN.into()), NOT_ACTIVE),
    ]);
}

#[test]
fn a_verdict_takes_an_option_that_fits_it_and_edits_only_what_may_be_edited() {
    let with_options = || Scene::reported(asking_with_options("c1", "r1"));
    let plain = || Scene::reported(asking("c1", "r1"));
    let choose = |decision: Decision, option: &str| {
        resolve_with("r1", Verdict { option: Some(option.into()), ..decision.into() })
    };
    let unknown = |option: &str| Rejection::UnknownOption(option.into());
    let edited = Verdict { edited_input: Some("rm".into()), ..Decision::Approved.into() };
    check(vec![
        client_wants(
            with_options(),
            choose(Decision::Approved, "never"),
            unknown("never"),
            "never is none of the options",
        ),
        client_wants(
            with_options(),
            choose(Decision::Denied, "always"),
            unknown("always"),
            "always is none of the options",
        ),
        client_wants(
            with_options(),
            choose(Decision::Approved, "maybe"),
            unknown("maybe"),
            "maybe is none of the options",
        ),
        client_wants(plain(), choose(Decision::Approved, "always"), unknown("always"), "always is none of the options"),
        client_wants(
            plain(),
            resolve_with("r1", edited),
            tool_call("c1", "does not accept an edited input"),
            "tool call c1 does not accept an edited input",
        ),
    ]);
}

#[test]
fn a_permission_named_by_its_call_is_answered_only_while_that_call_waits() {
    let approve = |call| resolve_about(call, Decision::Approved);
    let waits_not = || tool_call("c1", "does not wait for an answer");
    let says = "tool call c1 does not wait for an answer";
    let answered = Scene::reported(asking("c1", "r1")).after(approve("c1"));
    let held = Scene::reported(running("c1")).after_report(result_gated("c1"));
    check(vec![
        client_wants(Scene::in_turn(), approve("c9"), tool_call("c9", "is unknown"), "tool call c9 is unknown"),
        client_wants(Scene::reported(running("c1")), approve("c1"), waits_not(), says),
        client_wants(answered, approve("c1"), waits_not(), says),
        client_wants(held, approve("c1"), waits_not(), says),
    ]);
}

#[test]
fn an_answer_belongs_to_a_question_and_what_is_required_is_answered() {
    let questioned = || Scene::reported([asked("q1")]);
    let accept = |answers| answer("q1", InputOutcome::Accepted, answers);
    let stray = || Answers::from([("other".into(), Answer::text("this"))]);
    let unknown = || Rejection::UnknownQuestion("other".into());
    let no_question = "there is no question other in this request";
    let unanswered = || Rejection::Unanswered(QUESTION.into());
    let answer_first = "question answer must be answered first";
    let skipped = Answer::Skipped { freeform: vec![] };
    let answer_error = || Answers::from([(QUESTION.into(), Answer::Submitted(AnswerValue::YesOrNo(true)))]);
    let of_another_kind = || {
        let why = "has the wrong type: a text is required".to_owned();
        Rejection::InvalidAnswer { question: QUESTION.into(), why }
    };
    let does_not_fit = "the answer to question answer does not fit: it has the wrong type: a text is required";
    let submitted = || Some(Answer::Submitted(AnswerValue::YesOrNo(true)));
    check(vec![
        client_wants(questioned(), accept(answer_error()), of_another_kind(), does_not_fit),
        client_wants(questioned(), draft_answer("q1", QUESTION, submitted()), of_another_kind(), does_not_fit),
        client_wants(questioned(), accept(stray()), unknown(), no_question),
        client_wants(questioned(), answer("q1", InputOutcome::Declined, stray()), unknown(), no_question),
        client_wants(questioned(), draft_answer("q1", "other", Some(draft("th"))), unknown(), no_question),
        client_wants(questioned(), accept(Answers::new()), unanswered(), answer_first),
        client_wants(questioned(), accept(answers(draft("th"))), unanswered(), answer_first),
        client_wants(questioned(), accept(answers(skipped)), unanswered(), answer_first),
        client_wants(
            questioned().after(draft_answer("q1", QUESTION, Some(draft("th")))),
            accept(Answers::new()),
            unanswered(),
            answer_first,
        ),
        client_wants(
            questioned().after(draft_answer("q1", QUESTION, Some(Answer::text("this")))),
            accept(answers(draft("no, th"))),
            unanswered(),
            answer_first,
        ),
        client_wants(
            questioned().after(decline("q1")),
            draft_answer("q1", QUESTION, None),
            Rejection::AlreadyAnswered("q1".into()),
            "q1 has been answered already",
        ),
        client_wants(
            Scene::in_turn(),
            draft_answer("q1", QUESTION, None),
            Rejection::UnknownRequest("q1".into()),
            "there is no open request q1",
        ),
    ]);
}

#[test]
fn the_host_stops_only_a_turn_that_runs() {
    check(vec![host_wants(Scene::ready(), stop(), Rejection::TurnNotActive(TURN.into()), NOT_ACTIVE)]);
}

#[test]
fn what_persons_do_and_what_follows_from_chats_is_not_reported() {
    let confirmed = ChatEvent::ToolCallConfirmed {
        turn: turn(),
        call: "c1".into(),
        request: "r1".into(),
        verdict: Decision::Approved.into(),
    };
    let answered = ChatEvent::InputAnswered {
        turn: turn(),
        request: "q1".into(),
        outcome: InputOutcome::Declined,
        answers: Answers::new(),
    };
    let drafted = ChatEvent::InputAnswerChanged {
        turn: turn(),
        request: "q1".into(),
        question: QUESTION.into(),
        answer: Some(draft("th")),
    };
    let call = Scene::reported(running("c9")).call("c9").clone();
    let question = InputRequest::ask("q9".into(), "?");
    let again =
        ChatEvent::TurnStarted { turn: turn(), message: Message::user("again"), started_at: None, queued: None };
    let events = [
        again,
        confirmed,
        answered,
        drafted,
        ChatEvent::ChatReadChanged(true),
        ChatEvent::ChatArchivedChanged(true),
        ChatEvent::ChatTitleChanged("x".into()),
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
        events
            .into_iter()
            .map(|event| agent_reports(given.clone(), event, Rejection::NotPermitted, NOT_YOURS))
            .collect(),
    );

    let row = given.session.catalogue[0].clone();
    let mirrored = [
        SessionEvent::ChatRowChanged(ChatRow { title: "other".into(), ..row.clone() }),
        SessionEvent::InputNeededSet(given.session.input_needed[0].clone()),
        SessionEvent::InputNeededRemoved { chat: main(), request: "r1".into() },
        SessionEvent::ChatAdded(ChatRow { chat: "side".into(), ..row }),
        SessionEvent::ChatRemoved(main()),
    ];
    let host = |event| host_wants(given.clone(), Command::ReportSession(event), Rejection::NotPermitted, NOT_YOURS);
    check(mirrored.into_iter().map(host).collect());
}

#[test]
fn a_creation_that_failed_does_not_become_ready() {
    let ready = Command::ReportSession(SessionEvent::Ready);
    check(vec![host_wants(Scene::failed(), ready, creation_failed(), CREATION_FAILED)]);
}

#[test]
fn a_report_for_a_turn_that_does_not_run_is_refused() {
    let not_active = || Rejection::TurnNotActive(TURN.into());
    let mut events = vec![streamed("x"), whole("x"), thought("x"), says("x", "a"), thinks("x", "a"), started("c1")];
    events.extend([writes("c1", "l"), ready("c1", Gate::None), gated("c1", "r1"), completed("c1")]);
    events.extend([result_gated("c1"), result_confirmed("c1", Decision::Approved), asked("q1"), ended()]);
    events.extend([
        ChatEvent::UsageReported { turn: turn(), usage: Usage::default() },
        put_out("c1", "half"),
        restated("c1", None, ConfirmationReason::NotNeeded),
        cancelled(),
        failed("late"),
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
        agent_reports(written(), says("x1", "a"), closed("x1"), "part x1 accepts no more text"),
        agent_reports(written(), thinks("y1", "a"), closed("y1"), "part y1 accepts no more text"),
        agent_reports(written(), says("w", "a"), closed("w"), "part w accepts no more text"),
        agent_reports(written(), says("y2", "a"), closed("y2"), "part y2 accepts no more text"),
        agent_reports(written(), thinks("x2", "a"), closed("x2"), "part x2 accepts no more text"),
        agent_reports(written(), says("z", "a"), unknown("z"), "the turn has no part z"),
        agent_reports(written(), thinks("z", "a"), unknown("z"), "the turn has no part z"),
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
    let past = "tool call c1 has its input already";
    let cannot_ask = "tool call c1 cannot ask for permission now";
    let not_running = "tool call c1 is not running";
    let no_result = "tool call c1 has no pending result";
    let problem = |problem| tool_call("c1", problem);
    let approved = || result_confirmed("c1", Decision::Approved);
    let again = |call: &str| restated(call, None, ConfirmationReason::NotNeeded);
    let mut cases = vec![
        agent_reports(runs(), writes("c1", "l"), problem("has its input already"), past),
        agent_reports(runs(), ready("c1", Gate::None), problem("has its input already"), past),
        agent_reports(done(), ready("c1", Gate::None), problem("has its input already"), past),
        agent_reports(begun(), gated("c1", "r2"), problem("cannot ask for permission now"), cannot_ask),
        agent_reports(waits(), gated("c1", "r2"), problem("cannot ask for permission now"), cannot_ask),
        agent_reports(done(), gated("c1", "r2"), problem("cannot ask for permission now"), cannot_ask),
        agent_reports(begun(), completed("c1"), problem("is not running"), not_running),
        agent_reports(waits(), completed("c1"), problem("is not running"), not_running),
        agent_reports(denied(), completed("c1"), problem("is not running"), not_running),
        agent_reports(done(), completed("c1"), problem("is not running"), not_running),
        agent_reports(done(), result_gated("c1"), problem("is not running"), not_running),
        agent_reports(begun(), put_out("c1", "half"), problem("is not running"), not_running),
        agent_reports(done(), put_out("c1", "half"), problem("is not running"), not_running),
        agent_reports(begun(), again("c1"), problem("is not running"), not_running),
        agent_reports(waits(), again("c1"), problem("is not running"), not_running),
        agent_reports(done(), again("c1"), problem("is not running"), not_running),
        agent_reports(runs(), approved(), problem("has no pending result"), no_result),
        agent_reports(done(), approved(), problem("has no pending result"), no_result),
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
        put_out("c9", "half"),
        again("c9"),
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

#[test]
fn a_call_that_is_told_of_again_has_the_name_that_it_began_with() {
    let renamed: [fn(&mut NewToolCall); 5] = [
        |call| call.name = "other".into(),
        |call| call.display_name = "Other".into(),
        |call| call.kind = Some(ToolKind::Edit),
        |call| call.language = None,
        |call| call.client = Some("client".into()),
    ];
    let cases = renamed.into_iter().flat_map(|rename| {
        let mut made_ready = ready("c1", Gate::None);
        let mut said_anew = restated("c1", None, ConfirmationReason::NotNeeded);
        if let ChatEvent::ToolCallReady { call, .. } = &mut made_ready {
            rename(call);
        }
        if let ChatEvent::ToolCallRestated { restated, .. } = &mut said_anew {
            rename(&mut restated.call);
        }
        let problem = || tool_call("c1", "has changed its name");
        [
            agent_reports(Scene::reported([started("c1")]), made_ready, problem(), "tool call c1 has changed its name"),
            agent_reports(Scene::reported(running("c1")), said_anew, problem(), "tool call c1 has changed its name"),
        ]
    });
    check(cases.collect());
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
            Rejection::UnknownQuestion(_) => 16,
            Rejection::Unanswered(_) => 17,
            Rejection::UnknownOption(_) => 18,
            Rejection::DuplicateChat(_) => 19,
            Rejection::TooManyChats => 20,
            Rejection::MainChat => 21,
            Rejection::TooManyClients => 22,
            Rejection::NoConfig => 23,
            Rejection::TooManyRules => 24,
            Rejection::NotPermitted => 25,
            Rejection::EmptyMessage => 26,
            Rejection::InvalidAnswer { .. } => 27,
            Rejection::BeingCreated => 28,
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
        Rejection::UnknownQuestion("x".into()),
        Rejection::Unanswered("x".into()),
        Rejection::UnknownOption("x".into()),
        Rejection::DuplicateChat("x".into()),
        Rejection::TooManyChats,
        Rejection::MainChat,
        Rejection::TooManyClients,
        Rejection::NoConfig,
        Rejection::TooManyRules,
        Rejection::NotPermitted,
        Rejection::EmptyMessage,
        Rejection::InvalidAnswer { question: "x".into(), why: "is less than 1".to_owned() },
        Rejection::BeingCreated,
    ];
    assert!(all.iter().map(describe).eq(0..29));
    let words: BTreeSet<String> = all.iter().map(ToString::to_string).collect();
    assert_eq!(words.len(), all.len());
}
