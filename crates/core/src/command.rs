//! Commands: requests for a change, from a client, the host or an agent.

use std::sync::Arc;

use crate::answerer::Answerer;
use crate::event::*;
use crate::ids::*;
use crate::input::*;
use crate::origin::ChatOrigin;
use crate::permissions::PermissionsChange;
use crate::state::*;
use crate::turn::*;

/// A command on a session, with its sender.
///
/// Each sender has commands of its own, so that a client cannot even ask for what only the host does:
///
/// ```compile_fail
/// use grove_core::{Command, HostCommand};
/// Command::Client("me".into(), HostCommand::StartQueued { chat: "main".into() });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Client(ClientId, ClientCommand),
    Host(HostCommand),
    Agent(EventReport),
}

/// A command that a client may send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientCommand {
    StartTurn {
        chat: ChatId,
        turn: TurnId,
        message: Message,
        /// The start time that the sender claims.
        started_at: Option<Timestamp>,
    },
    CancelTurn {
        chat: ChatId,
        turn: TurnId,
    },
    ResolvePermission {
        chat: ChatId,
        turn: TurnId,
        question: PermissionTarget,
        verdict: Verdict,
        /// The party that answers: set by the host, never by a client.
        answered_by: Option<Box<Answerer>>,
    },
    /// Decides if the agent may see a call's result.
    ConfirmResult {
        chat: ChatId,
        turn: TurnId,
        call: ToolCallId,
        decision: Decision,
        answered_by: Option<Box<Answerer>>,
    },
    /// Reports the result of a call that a client ran.
    CompleteClientCall {
        chat: ChatId,
        turn: TurnId,
        call: ToolCallId,
        result: ToolResult,
        /// True if a person is to be asked before the agent sees it.
        ask: bool,
    },
    /// Reports the output so far of a call that a client runs.
    ReportClientOutput {
        chat: ChatId,
        turn: TurnId,
        call: ToolCallId,
        output: ToolOutput,
    },
    AnswerInput {
        chat: ChatId,
        request: RequestId,
        outcome: InputOutcome,
        answers: Answers,
        answered_by: Option<Box<Answerer>>,
    },
    DraftAnswer {
        chat: ChatId,
        request: RequestId,
        question: QuestionId,
        answer: Option<Answer>,
    },
    ChangeModel(ModelId),
    ChangeTitle(String),
    SetRead(bool),
    SetArchived(bool),
    SetChatRead {
        chat: ChatId,
        read: bool,
    },
    SetChatArchived {
        chat: ChatId,
        archived: bool,
    },
    /// Names a chat. The main one goes by its session's title.
    RenameChat {
        chat: ChatId,
        title: String,
    },
    SetActiveClient(ActiveClient),
    RemoveActiveClient(ClientId),
    ChangeConfig {
        values: Extra,
        replace: bool,
    },
    ChangePermissions(PermissionsChange),
    /// Has the agents work in another folder, where no turn runs.
    SetWorkingDirectory(String),
    SetSteering {
        chat: ChatId,
        message: PendingMessage,
    },
    RemoveSteering {
        chat: ChatId,
        id: PendingId,
    },
    Enqueue {
        chat: ChatId,
        message: PendingMessage,
    },
    Dequeue {
        chat: ChatId,
        id: PendingId,
    },
    ReorderQueue {
        chat: ChatId,
        order: Vec<PendingId>,
    },
    SetDraft {
        chat: ChatId,
        draft: Option<Message>,
    },
}

impl ClientCommand {
    /// The same command, with the party behind it if it is an answer.
    pub fn answered_by(mut self, party: &Answerer) -> Self {
        if let Self::ResolvePermission { answered_by, .. }
        | Self::ConfirmResult { answered_by, .. }
        | Self::AnswerInput { answered_by, .. } = &mut self
        {
            *answered_by = Some(Box::new(party.clone()));
        }
        self
    }
}

/// A command that only the host gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostCommand {
    /// A command that clients may send too, given by the host: for a request that it has checked itself, by a rule, or to
    /// end something. The limits of a client do not apply.
    AsClient(ClientCommand),
    AddChat {
        chat: ChatId,
        uri: String,
    },
    /// Adds a chat that begins with these newest turns of another one.
    ForkChat {
        chat: ChatId,
        uri: String,
        origin: Arc<ChatOrigin>,
        turns: Vec<Arc<Turn>>,
        older: bool,
    },
    /// Removes a chat in which no turn runs.
    RemoveChat(ChatId),
    /// Starts the oldest queued message if no turn runs.
    StartQueued {
        chat: ChatId,
    },
    /// Records that the agent has taken the steering message into its running turn.
    TakeSteering {
        chat: ChatId,
    },
    /// Moves the leaf and shows these newest turns on the path to it.
    MoveLeaf {
        chat: ChatId,
        turns: Vec<Arc<Turn>>,
        older: bool,
        entries: Vec<LogEntry>,
        /// The settings of that branch.
        settings: RestoredSettings,
    },
    /// Adds entries to a chat's log, after the last finished turn.
    AddEntries {
        chat: ChatId,
        entries: Vec<LogEntry>,
        /// The agent's conversation has to be rebuilt, since these entries change its context.
        resets_agent: bool,
    },
    /// Ends a turn because the host stops: queued messages stay queued.
    StopTurn {
        chat: ChatId,
        turn: TurnId,
        error: ErrorInfo,
    },
    /// Reports an event that the host has seen happen.
    Report(EventReport),
}

/// An event that an agent or the host has seen happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventReport {
    Chat { chat: ChatId, event: ChatEvent },
    Session(SessionEvent),
}

impl Command {
    /// The sender.
    pub fn sender(&self) -> Actor {
        match self {
            Command::Client(client, _) => Actor::Client(client.clone()),
            Command::Host(_) => Actor::Host,
            Command::Agent(_) => Actor::Agent,
        }
    }

    /// The command among those that clients may send, from any sender.
    pub fn client_command(&self) -> Option<&ClientCommand> {
        match self {
            Command::Client(_, command) | Command::Host(HostCommand::AsClient(command)) => Some(command),
            Command::Host(_) | Command::Agent(_) => None,
        }
    }

    /// [`Command::client_command`], to be changed.
    pub fn client_command_mut(&mut self) -> Option<&mut ClientCommand> {
        match self {
            Command::Client(_, command) | Command::Host(HostCommand::AsClient(command)) => Some(command),
            Command::Host(_) | Command::Agent(_) => None,
        }
    }
}

impl From<HostCommand> for Command {
    fn from(command: HostCommand) -> Self {
        Command::Host(command)
    }
}

impl From<ClientCommand> for HostCommand {
    fn from(command: ClientCommand) -> Self {
        HostCommand::AsClient(command)
    }
}

impl From<EventReport> for HostCommand {
    fn from(report: EventReport) -> Self {
        HostCommand::Report(report)
    }
}

/// The settings that a branch continues with, as far as they differ from the session's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoredSettings {
    pub model: Option<RestoredModel>,
    /// Values of the session's settings.
    pub values: Extra,
}

/// The model that a branch goes on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoredModel {
    Named(ModelId),
    /// The agent's own: the branch never had another one.
    Default,
}

impl RestoredModel {
    /// The model for a session; `None` is its agent's own.
    pub fn for_session(self) -> Option<ModelId> {
        match self {
            RestoredModel::Named(model) => Some(model),
            RestoredModel::Default => None,
        }
    }
}

/// How a question about a tool call is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermissionTarget {
    Request(RequestId),
    /// The current question about this call.
    OfToolCall(ToolCallId),
}

/// The sender of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    Client(ClientId),
    Agent,
    Host,
}
