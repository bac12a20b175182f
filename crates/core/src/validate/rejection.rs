//! The reasons why a command is refused, and the bounds that some of them name.

use std::fmt;

use crate::ids::*;
use crate::permissions::{MAX_PERMISSION_ARGUMENT, MAX_PERMISSION_RULES};
use crate::refusal::RefusalKind;

/// The reason why a command is refused, in words for the person who sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    CreationFailed(String),
    /// The session's agent is being started.
    BeingCreated,
    UnknownChat(ChatId),
    TurnInProgress(TurnId),
    TurnNotActive(TurnId),
    DuplicateTurn(TurnId),
    EmptyId,
    UnknownRequest(RequestId),
    AlreadyAnswered(RequestId),
    UnknownModel {
        model: ModelId,
        agent: AgentId,
    },
    UnknownPending(PendingId),
    QueueFull,
    OnlyUserMessages,
    /// The message has neither text nor attachments.
    EmptyMessage,
    UnknownPart(PartId),
    PartClosed(PartId),
    DuplicatePart,
    ToolCall {
        call: ToolCallId,
        problem: &'static str,
    },
    UnknownQuestion(QuestionId),
    Unanswered(QuestionId),
    InvalidAnswer {
        question: QuestionId,
        why: String,
    },
    UnknownOption(String),
    DuplicateChat(ChatId),
    TooManyChats,
    MainChat,
    TooManyClients,
    NoConfig,
    TooManyRules,
    NotPermitted,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::CreationFailed(why) => {
                write!(f, "the session could not be created ({why}): dispose it and create another")
            }
            Rejection::BeingCreated => f.write_str("the session is still being created: try again in a moment"),
            Rejection::UnknownChat(chat) => write!(f, "the session has no chat {chat}"),
            Rejection::TurnInProgress(turn) => {
                write!(f, "turn {turn} is still in progress: wait for its end or cancel it")
            }
            Rejection::TurnNotActive(turn) => write!(f, "turn {turn} is not the active turn"),
            Rejection::DuplicateTurn(turn) => write!(f, "turn {turn} exists already: choose another id"),
            Rejection::EmptyId => f.write_str("an id must not be empty"),
            Rejection::UnknownRequest(request) => write!(f, "there is no open request {request}"),
            Rejection::AlreadyAnswered(request) => write!(f, "{request} has been answered already"),
            Rejection::UnknownModel { model, agent } => write!(f, "agent {agent} has no model {model}"),
            Rejection::UnknownPending(id) => write!(f, "there is no queued message {id}"),
            Rejection::QueueFull => write!(f, "{MAX_QUEUED} messages are queued already"),
            Rejection::OnlyUserMessages => f.write_str("a client may only send user messages"),
            Rejection::EmptyMessage => f.write_str("the message is empty: write a text or attach something"),
            Rejection::UnknownPart(part) => write!(f, "the turn has no part {part}"),
            Rejection::PartClosed(part) => write!(f, "part {part} accepts no more text"),
            Rejection::DuplicatePart => f.write_str("the turn has a part of this id already"),
            Rejection::ToolCall { call, problem } => write!(f, "tool call {call} {problem}"),
            Rejection::UnknownQuestion(question) => write!(f, "there is no question {question} in this request"),
            Rejection::Unanswered(question) => write!(f, "question {question} must be answered first"),
            Rejection::InvalidAnswer { question, why } => {
                write!(f, "the answer to question {question} does not fit: it {why}")
            }
            Rejection::UnknownOption(option) => write!(f, "{option} is none of the options"),
            Rejection::DuplicateChat(chat) => write!(f, "the session has a chat {chat} already"),
            Rejection::TooManyChats => write!(f, "the session has {MAX_CHATS} chats already"),
            Rejection::MainChat => f.write_str("the main chat cannot be removed: dispose the session instead"),
            Rejection::TooManyClients => write!(f, "{MAX_ACTIVE_CLIENTS} clients take part already"),
            Rejection::NoConfig => f.write_str("the session has no settings"),
            Rejection::TooManyRules => write!(
                f,
                "a session keeps {MAX_PERMISSION_RULES} rules and folders of up to {MAX_PERMISSION_ARGUMENT} bytes: \
                 remove some first"
            ),
            Rejection::NotPermitted => f.write_str("only the host may do this"),
        }
    }
}

impl std::error::Error for Rejection {}

impl Rejection {
    /// The kind of this rejection.
    pub fn kind(&self) -> RefusalKind {
        match self {
            Rejection::DuplicateChat(_) | Rejection::DuplicateTurn(_) | Rejection::DuplicatePart => RefusalKind::Exists,
            Rejection::TurnInProgress(_) | Rejection::BeingCreated => RefusalKind::Busy,
            Rejection::NotPermitted => RefusalKind::NotPermitted,
            Rejection::CreationFailed(_)
            | Rejection::TooManyChats
            | Rejection::TooManyClients
            | Rejection::TooManyRules
            | Rejection::QueueFull
            | Rejection::MainChat
            | Rejection::NoConfig => RefusalKind::InvalidState,
            Rejection::UnknownChat(_)
            | Rejection::TurnNotActive(_)
            | Rejection::EmptyId
            | Rejection::EmptyMessage
            | Rejection::InvalidAnswer { .. }
            | Rejection::UnknownRequest(_)
            | Rejection::AlreadyAnswered(_)
            | Rejection::UnknownModel { .. }
            | Rejection::UnknownPending(_)
            | Rejection::OnlyUserMessages
            | Rejection::UnknownPart(_)
            | Rejection::PartClosed(_)
            | Rejection::ToolCall { .. }
            | Rejection::UnknownQuestion(_)
            | Rejection::Unanswered(_)
            | Rejection::UnknownOption(_) => RefusalKind::InvalidParams,
        }
    }
}

/// The maximum number of queued messages of a chat.
pub const MAX_QUEUED: usize = 1_000;
/// The maximum number of chats of a session.
pub const MAX_CHATS: usize = 100;
/// The maximum number of clients that take part in a session.
pub const MAX_ACTIVE_CLIENTS: usize = 100;
/// The maximum number of answers that a session remembers. Beyond it the oldest is forgotten.
pub const MAX_REMEMBERED_PERMISSIONS: usize = 1_000;
/// The maximum length of a command, a path or a question whose answer is remembered. Longer ones are asked again each
/// time: every answer sends all that is remembered.
pub const MAX_REMEMBERED_SUBJECT_BYTES: usize = 4_096;
