//! Refused commands and the words of their rejections.

mod answers;
mod messages;
mod reports;
mod session;

use std::collections::BTreeSet;

use grove_core::*;

use crate::scene::*;

struct Case {
    given: Scene,
    command: Command,
    with: Rejection,
    says: &'static str,
}

/// A client's command that is refused.
fn client_wants(given: Scene, command: ClientCommand, with: Rejection, says: &'static str) -> Case {
    Case { given, command: Command::Client(client(), command), with, says }
}

/// A host's command that is refused.
fn host_wants(given: Scene, command: impl Into<HostCommand>, with: Rejection, says: &'static str) -> Case {
    Case { given, command: Command::Host(command.into()), with, says }
}

/// An agent's report that is refused.
fn agent_reports(given: Scene, event: ChatEvent, with: Rejection, says: &'static str) -> Case {
    Case { given, command: Command::Agent(EventReport::Chat { chat: main(), event }), with, says }
}

fn check(cases: Vec<Case>) {
    for Case { given, command, with, says } in cases {
        let mut scene = given.clone();
        assert_eq!(scene.by(command.clone()), Err(with.clone()), "{command:?}");
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

fn start_with(message: Message) -> ClientCommand {
    ClientCommand::StartTurn { chat: main(), turn: TURN.into(), message, started_at: None }
}

fn unknown_model() -> Rejection {
    Rejection::UnknownModel { model: "huge".into(), agent: "scripted".into() }
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
