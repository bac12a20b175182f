//! The echo of each command.

use std::collections::BTreeSet;

use super::*;

/// A client's command's name; does not compile unless all commands are listed.
fn client_command(command: &ClientCommand) -> &'static str {
    match command {
        ClientCommand::StartTurn { .. } => "StartTurn",
        ClientCommand::CancelTurn { .. } => "CancelTurn",
        ClientCommand::ResolvePermission { .. } => "ResolvePermission",
        ClientCommand::ConfirmResult { .. } => "ConfirmResult",
        ClientCommand::CompleteClientCall { .. } => "CompleteClientCall",
        ClientCommand::ReportClientOutput { .. } => "ReportClientOutput",
        ClientCommand::AnswerInput { .. } => "AnswerInput",
        ClientCommand::DraftAnswer { .. } => "DraftAnswer",
        ClientCommand::ChangeModel(_) => "ChangeModel",
        ClientCommand::ChangeTitle(_) => "ChangeTitle",
        ClientCommand::SetRead(_) => "SetRead",
        ClientCommand::SetArchived(_) => "SetArchived",
        ClientCommand::SetChatRead { .. } => "SetChatRead",
        ClientCommand::SetChatArchived { .. } => "SetChatArchived",
        ClientCommand::RenameChat { .. } => "RenameChat",
        ClientCommand::SetActiveClient(_) => "SetActiveClient",
        ClientCommand::RemoveActiveClient(_) => "RemoveActiveClient",
        ClientCommand::ChangeConfig { .. } => "ChangeConfig",
        ClientCommand::ChangePermissions(_) => "ChangePermissions",
        ClientCommand::SetWorkingDirectory(_) => "SetWorkingDirectory",
        ClientCommand::SetSteering { .. } => "SetSteering",
        ClientCommand::RemoveSteering { .. } => "RemoveSteering",
        ClientCommand::Enqueue { .. } => "Enqueue",
        ClientCommand::Dequeue { .. } => "Dequeue",
        ClientCommand::ReorderQueue { .. } => "ReorderQueue",
        ClientCommand::SetDraft { .. } => "SetDraft",
    }
}

/// A host's command's name; does not compile unless all commands are listed.
fn host_command(command: &HostCommand) -> &'static str {
    match command {
        HostCommand::AsClient(command) => client_command(command),
        HostCommand::Report(EventReport::Chat { .. }) => "Report",
        HostCommand::Report(EventReport::Session(_)) => "ReportSession",
        HostCommand::AddChat { .. } => "AddChat",
        HostCommand::ForkChat { .. } => "ForkChat",
        HostCommand::RemoveChat(_) => "RemoveChat",
        HostCommand::StartQueued { .. } => "StartWaiting",
        HostCommand::TakeSteering { .. } => "TakeSteering",
        HostCommand::StopTurn { .. } => "StopTurn",
        HostCommand::MoveLeaf { .. } => "MoveLeaf",
        HostCommand::AddEntries { .. } => "AddEntries",
    }
}

const COMMANDS: usize = 36;

/// The first event of each accepted command is its echo.
#[test]
fn every_command_is_echoed_first() {
    let waiting = || Scene::in_turn().after(enqueue("p1")).after(enqueue("p2"));
    let started =
        |started_at| ChatEvent::TurnStarted { turn: turn(), message: Message::user("go"), started_at, queued: None };
    let chat_cases = [
        (Scene::ready(), start(TURN), started(None)),
        (Scene::ready(), start_at(7), started(Some(Timestamp(7)))),
        (Scene::in_turn(), cancel(TURN), lasting(cancelled(), 1)),
        (
            Scene::reported(asking("c1", "r1")),
            resolve("r1", Decision::Denied),
            ChatEvent::ToolCallConfirmed {
                turn: turn(),
                call: "c1".into(),
                request: "r1".into(),
                verdict: Decision::Denied.into(),
                answer: None,
            },
        ),
        (
            Scene::reported(running("c1")).after_report(result_gated("c1")),
            confirm_result("c1", Decision::Denied),
            result_confirmed("c1", Decision::Denied),
        ),
        (Scene::reported(handed_to("client", "c1")), complete("c1", false), ran_for(1, completed("c1"))),
        (Scene::reported(handed_to("client", "c1")), complete("c1", true), ran_for(1, result_gated("c1"))),
        (Scene::reported(handed_to("client", "c1")), report_output("c1", "half"), put_out("c1", "half")),
        (
            Scene::reported([asked("q1")]),
            answer("q1", InputOutcome::Accepted, answers(Answer::text("this"))),
            ChatEvent::InputAnswered {
                turn: turn(),
                request: "q1".into(),
                outcome: InputOutcome::Accepted,
                answers: answers(Answer::text("this")),
                answered_by: None,
            },
        ),
        (
            Scene::reported([asked("q1")]),
            draft_answer("q1", QUESTION, Some(draft("th"))),
            ChatEvent::InputAnswerChanged {
                turn: turn(),
                request: "q1".into(),
                question: QUESTION.into(),
                answer: Some(draft("th")),
            },
        ),
        (Scene::in_turn(), ClientCommand::SetChatRead { chat: main(), read: true }, ChatEvent::ChatReadChanged(true)),
        (
            Scene::failed(),
            ClientCommand::SetChatArchived { chat: main(), archived: true },
            ChatEvent::ChatArchivedChanged(true),
        ),
        (Scene::in_turn(), steer("p1"), ChatEvent::SteeringSet(pending("p1", "p1"))),
        (
            Scene::in_turn().after(steer("p1")),
            ClientCommand::RemoveSteering { chat: main(), id: "p1".into() },
            ChatEvent::SteeringRemoved("p1".into()),
        ),
        (Scene::in_turn(), enqueue("p1"), ChatEvent::QueuedSet(pending("p1", "p1"))),
        (waiting(), ClientCommand::Dequeue { chat: main(), id: "p1".into() }, ChatEvent::QueuedRemoved("p1".into())),
        (
            waiting(),
            ClientCommand::ReorderQueue { chat: main(), order: vec!["p2".into(), "p1".into()] },
            ChatEvent::QueueReordered(vec!["p2".into(), "p1".into()]),
        ),
        (
            Scene::failed(),
            ClientCommand::SetDraft { chat: main(), draft: Some(Message::user("half a")) },
            ChatEvent::DraftChanged(Some(Message::user("half a"))),
        ),
    ];
    let session_cases = [
        (Scene::ready(), ClientCommand::ChangeModel("large".into()), SessionEvent::ModelChanged("large".into())),
        (Scene::failed(), ClientCommand::ChangeTitle("Name".into()), SessionEvent::TitleChanged("Name".into())),
        (
            Scene::failed(),
            ClientCommand::RenameChat { chat: main(), title: "Name".into() },
            SessionEvent::TitleChanged("Name".into()),
        ),
        (Scene::failed(), ClientCommand::SetRead(false), SessionEvent::ReadChanged(false)),
        (Scene::failed(), ClientCommand::SetArchived(true), SessionEvent::ArchivedChanged(true)),
        (
            Scene::failed(),
            ClientCommand::SetActiveClient(taking_part("client")),
            SessionEvent::ActiveClientSet(taking_part("client")),
        ),
        (
            Scene::failed().after(ClientCommand::SetActiveClient(taking_part("client"))),
            ClientCommand::RemoveActiveClient("client".into()),
            SessionEvent::ActiveClientRemoved("client".into()),
        ),
        (
            Scene::failed(),
            ClientCommand::ChangeConfig { values: extra("mode", "auto"), replace: false },
            SessionEvent::ConfigChanged { values: extra("mode", "auto"), replace: false },
        ),
        (
            Scene::failed(),
            ClientCommand::ChangePermissions(PermissionsChange::Primary("/w".into())),
            SessionEvent::DetailsChanged(Box::new(SessionDetails {
                permissions: Some(Permissions { primary: Some("/w".into()), ..Permissions::default() }),
                ..SessionDetails::default()
            })),
        ),
        (
            Scene::ready(),
            ClientCommand::SetWorkingDirectory("/w".into()),
            SessionEvent::WorkingDirectoryChanged {
                previous: Scene::ready().session.working_directories.first().cloned(),
                directory: "/w".into(),
            },
        ),
    ];
    let mut seen = BTreeSet::new();
    for (mut scene, command, echo) in chat_cases {
        seen.insert(client_command(&command));
        let changes = scene.act(command).unwrap();
        assert_eq!(changes[0], Change::Chat("s1".into(), main(), echo));
    }
    for (mut scene, command, echo) in session_cases {
        seen.insert(client_command(&command));
        let changes = scene.act(command).unwrap();
        assert_eq!(changes[0], Change::Session("s1".into(), echo));
    }
    let in_chat = |event| Change::Chat("s1".into(), main(), event);
    let in_session = |event| Change::Session("s1".into(), event);
    let side = ChatRow {
        chat: "side".into(),
        uri: Some("scripted:/s1/side".into()),
        title: String::new(),
        origin: None,
        status: ChatStatus::Idle,
        is_read: true,
        is_archived: false,
        modified_at: Timestamp(3),
        touched_at: Timestamp(3),
    };
    let host_cases = [
        (Scene::in_turn(), EventReport::Chat { chat: main(), event: ended() }.into(), in_chat(lasting(ended(), 1))),
        (Scene::in_turn(), EventReport::Session(SessionEvent::Listed).into(), in_session(SessionEvent::Listed)),
        (Scene::ready(), add_chat("side"), in_session(SessionEvent::ChatAdded(side.clone()))),
        (
            Scene::ready(),
            fork_chat("side", OriginKind::Fork, vec![]),
            in_session(SessionEvent::ChatAdded(ChatRow { origin: Some(origin(OriginKind::Fork)), ..side })),
        ),
        (
            Scene::ready().after_command_of_host(add_chat("side")),
            HostCommand::RemoveChat("side".into()),
            in_session(SessionEvent::ChatRemoved("side".into())),
        ),
        (
            Scene::in_turn().after(steer("p1")),
            HostCommand::TakeSteering { chat: main() },
            in_chat(ChatEvent::SteeringRemoved("p1".into())),
        ),
        (
            waiting(),
            stop(),
            in_chat(ChatEvent::TurnFailed {
                turn: turn(),
                duration: Some(3),
                error: ErrorInfo::new("hostStopped", "the host stopped"),
            }),
        ),
        (
            Scene::ready(),
            HostCommand::MoveLeaf {
                chat: main(),
                turns: vec![],
                older: false,
                entries: vec![entry()],
                settings: RestoredSettings::default(),
            },
            in_chat(ChatEvent::TurnsCleared),
        ),
        (
            Scene::ready(),
            HostCommand::AddEntries { chat: main(), entries: vec![entry()], resets_agent: false },
            in_chat(ChatEvent::EntryAdded(entry())),
        ),
        (waiting().after_command_of_host(stop()), start_queued(), in_chat(ChatEvent::QueuedRemoved("p1".into()))),
    ];
    for (mut scene, command, echo) in host_cases {
        seen.insert(host_command(&command));
        assert_eq!(scene.host(command).unwrap()[0], echo);
    }
    assert_eq!(seen.len(), COMMANDS, "every command was tried");
}
