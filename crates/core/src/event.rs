//! What can happen. Events are finer than any dialect's actions: each maps, in each dialect, to one action or to none.

use serde::{Deserialize, Serialize};

use crate::ids::*;
use crate::state::*;
use crate::turn::*;

/// Something that happened, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    pub at: Timestamp,
    pub change: Change,
}

/// Where it happened, and what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Change {
    Root(RootEvent),
    Session(SessionId, SessionEvent),
    Chat(SessionId, ChatId, ChatEvent),
}

impl Change {
    /// The session that this concerns.
    pub fn session(&self) -> Option<&SessionId> {
        match self {
            Change::Root(_) => None,
            Change::Session(session, _) | Change::Chat(session, _, _) => Some(session),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RootEvent {
    AgentsChanged(Vec<AgentInfo>),
    ActiveSessionsChanged(u32),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum SessionEvent {
    /// The session stands in state, its agent not yet.
    Created(Box<NewSession>),
    Ready,
    CreationFailed(ErrorInfo),
    /// The session has its row in every list: announced once, after its creation has ended either way.
    Listed,
    /// The session is gone from state and lists.
    Removed,
    TitleChanged(String),
    ModelChanged(ModelId),
    ReadChanged(bool),
    ArchivedChanged(bool),
    /// A chat's row changed, because the chat did.
    ChatRowChanged(ChatRow),
    InputNeededSet(InputNeeded),
    InputNeededRemoved(RequestId),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ChatEvent {
    TurnStarted {
        turn: TurnId,
        message: Message,
    },
    /// A part begins: an empty text that deltas will fill, or something whole.
    PartAdded {
        turn: TurnId,
        part: Part,
    },
    TextDelta {
        turn: TurnId,
        part: PartId,
        content: String,
    },
    ReasoningDelta {
        turn: TurnId,
        part: PartId,
        content: String,
    },
    /// A call begins; its input is still being written.
    ToolCallStarted {
        turn: TurnId,
        call: NewToolCall,
    },
    ToolCallInputDelta {
        turn: TurnId,
        call: ToolCallId,
        content: String,
    },
    /// The input is whole; names are said again, since they may have changed meanwhile and since version 1 hears of
    /// the call only now. With [`Gate::Follows`] a [`ChatEvent::ToolCallGated`] comes next.
    ToolCallReady {
        turn: TurnId,
        call: NewToolCall,
        invocation_message: String,
        input: Option<String>,
        gate: Gate,
    },
    /// A person is asked.
    ToolCallGated {
        turn: TurnId,
        call: ToolCallId,
        request: PermissionRequest,
    },
    ToolCallConfirmed {
        turn: TurnId,
        call: ToolCallId,
        request: RequestId,
        decision: Decision,
    },
    ToolCallCompleted {
        turn: TurnId,
        call: ToolCallId,
        result: ToolResult,
    },
    /// The call ran, and a person is asked whether the agent may see the result.
    ToolCallResultGated {
        turn: TurnId,
        call: ToolCallId,
        result: ToolResult,
    },
    ToolCallResultConfirmed {
        turn: TurnId,
        call: ToolCallId,
        result: ToolResult,
        decision: Decision,
    },
    UsageReported {
        turn: TurnId,
        usage: Usage,
    },
    InputRequested {
        turn: TurnId,
        request: RequestId,
        question: String,
    },
    InputAnswered {
        turn: TurnId,
        request: RequestId,
        response: InputResponse,
    },
    TurnCompleted {
        turn: TurnId,
    },
    TurnCancelled {
        turn: TurnId,
    },
    TurnFailed {
        turn: TurnId,
        error: ErrorInfo,
    },
    SteeringSet(PendingMessage),
    SteeringRemoved(PendingId),
    QueuedSet(PendingMessage),
    QueuedRemoved(PendingId),
    QueueReordered(Vec<PendingId>),
    DraftChanged(Option<Message>),
}

impl ChatEvent {
    /// The turn that this event is about, where it is about one.
    pub fn turn(&self) -> Option<&TurnId> {
        match self {
            ChatEvent::TurnStarted { turn, .. }
            | ChatEvent::PartAdded { turn, .. }
            | ChatEvent::TextDelta { turn, .. }
            | ChatEvent::ReasoningDelta { turn, .. }
            | ChatEvent::ToolCallStarted { turn, .. }
            | ChatEvent::ToolCallInputDelta { turn, .. }
            | ChatEvent::ToolCallReady { turn, .. }
            | ChatEvent::ToolCallGated { turn, .. }
            | ChatEvent::ToolCallConfirmed { turn, .. }
            | ChatEvent::ToolCallCompleted { turn, .. }
            | ChatEvent::ToolCallResultGated { turn, .. }
            | ChatEvent::ToolCallResultConfirmed { turn, .. }
            | ChatEvent::UsageReported { turn, .. }
            | ChatEvent::InputRequested { turn, .. }
            | ChatEvent::InputAnswered { turn, .. }
            | ChatEvent::TurnCompleted { turn }
            | ChatEvent::TurnCancelled { turn }
            | ChatEvent::TurnFailed { turn, .. } => Some(turn),
            ChatEvent::SteeringSet(_)
            | ChatEvent::SteeringRemoved(_)
            | ChatEvent::QueuedSet(_)
            | ChatEvent::QueuedRemoved(_)
            | ChatEvent::QueueReordered(_)
            | ChatEvent::DraftChanged(_) => None,
        }
    }

    /// Whether this ends its turn.
    pub fn ends_turn(&self) -> bool {
        matches!(self, ChatEvent::TurnCompleted { .. } | ChatEvent::TurnCancelled { .. } | ChatEvent::TurnFailed { .. })
    }
}

/// A tool call at its beginning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewToolCall {
    pub id: ToolCallId,
    pub name: String,
    pub display_name: String,
    pub kind: Option<ToolKind>,
    pub language: Option<String>,
}

/// Whether a person is asked before a call runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Gate {
    None,
    Follows,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Decision {
    Approved,
    Denied,
}
