//! Refused changes of chats, clients and the session's properties.

use super::*;

#[test]
fn nothing_is_done_to_a_chat_that_is_not_there() {
    let side = || ChatId::from("side");
    let commands = [
        ClientCommand::StartTurn { chat: side(), turn: turn(), message: Message::user("go"), started_at: None },
        ClientCommand::CancelTurn { chat: side(), turn: turn() },
        ClientCommand::ResolvePermission {
            chat: side(),
            turn: turn(),
            question: PermissionTarget::Request("r1".into()),
            verdict: Decision::Approved.into(),
            answered_by: None,
        },
        ClientCommand::ConfirmResult {
            chat: side(),
            turn: turn(),
            call: "c1".into(),
            decision: Decision::Approved,
            answered_by: None,
        },
        ClientCommand::CompleteClientCall {
            chat: side(),
            turn: turn(),
            call: "c1".into(),
            result: success(),
            ask: false,
        },
        ClientCommand::ReportClientOutput { chat: side(), turn: turn(), call: "c1".into(), output: output("half") },
        ClientCommand::AnswerInput {
            chat: side(),
            request: "q1".into(),
            outcome: InputOutcome::Cancelled,
            answers: Answers::new(),
            answered_by: None,
        },
        ClientCommand::DraftAnswer { chat: side(), request: "q1".into(), question: QUESTION.into(), answer: None },
        ClientCommand::SetChatRead { chat: side(), read: true },
        ClientCommand::SetChatArchived { chat: side(), archived: true },
        ClientCommand::RenameChat { chat: side(), title: "x".into() },
        ClientCommand::SetSteering { chat: side(), message: pending("p1", "left") },
        ClientCommand::RemoveSteering { chat: side(), id: "p1".into() },
        ClientCommand::Enqueue { chat: side(), message: pending("p1", "later") },
        ClientCommand::Dequeue { chat: side(), id: "p1".into() },
        ClientCommand::ReorderQueue { chat: side(), order: vec![] },
        ClientCommand::SetDraft { chat: side(), draft: None },
    ];
    let unknown = || Rejection::UnknownChat("side".into());
    let mut cases: Vec<_> =
        commands.into_iter().map(|command| client_wants(Scene::in_turn(), command, unknown(), NO_SIDE_CHAT)).collect();
    let of_the_host = [
        EventReport::Chat { chat: side(), event: ended() }.into(),
        HostCommand::StopTurn { chat: side(), turn: turn(), error: ErrorInfo::new("hostStopped", "bye") },
        HostCommand::StartQueued { chat: side() },
        HostCommand::TakeSteering { chat: side() },
        HostCommand::RemoveChat(side()),
    ];
    cases.extend(of_the_host.map(|command| host_wants(Scene::in_turn(), command, unknown(), NO_SIDE_CHAT)));
    check(cases);
}

#[test]
fn chats_are_added_under_new_names_within_bounds_and_removed_while_idle() {
    let beside = || Scene::ready().after_command_of_host(add_chat("side"));
    let busy = || {
        let (chat, message) = ("side".into(), Message::user("go"));
        beside().after(ClientCommand::StartTurn { chat, turn: turn(), message, started_at: None })
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
            HostCommand::RemoveChat(main()),
            Rejection::MainChat,
            "the main chat cannot be removed: dispose the session instead",
        ),
        host_wants(busy(), HostCommand::RemoveChat("side".into()), Rejection::TurnInProgress(turn()), IN_PROGRESS),
    ]);
}

#[test]
fn a_client_takes_part_in_its_own_name_and_within_bounds() {
    let mut full = Scene::ready();
    full.session.active_clients = (0..MAX_ACTIVE_CLIENTS).map(|number| taking_part(&format!("c{number}"))).collect();
    let others = || Scene::ready().after_host(SessionEvent::ActiveClientSet(taking_part("other")));
    let join = |client| ClientCommand::SetActiveClient(taking_part(client));
    check(vec![
        client_wants(Scene::ready(), join("other"), Rejection::NotPermitted, NOT_YOURS),
        client_wants(others(), ClientCommand::RemoveActiveClient("other".into()), Rejection::NotPermitted, NOT_YOURS),
        client_wants(full, join("client"), Rejection::TooManyClients, "100 clients take part already"),
    ]);
}

#[test]
fn a_session_without_settings_takes_none() {
    let mut given = Scene::ready();
    given.session.config = None;
    let change = ClientCommand::ChangeConfig { values: extra("mode", "auto"), replace: true };
    check(vec![client_wants(given, change, Rejection::NoConfig, "the session has no settings")]);
}

#[test]
fn a_session_keeps_no_more_rules_than_it_may() {
    let change =
        ClientCommand::ChangePermissions(PermissionsChange::AddDirectory("x".repeat(MAX_PERMISSION_ARGUMENT + 1)));
    let reason = "a session keeps 1000 rules and folders of up to 4096 bytes: remove some first";
    check(vec![client_wants(Scene::ready(), change, Rejection::TooManyRules, reason)]);
}

#[test]
fn the_folder_changes_only_while_nothing_runs_and_the_session_stands() {
    let set = || ClientCommand::SetWorkingDirectory("/w".into());
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
