//! Events. They are finer than any dialect's actions: in each dialect, an event maps to one action or to none.

mod class;
mod delta;

use std::sync::Arc;

pub use class::*;
use serde::{Deserialize, Serialize};

use crate::answerer::{Answerer, CallAnswer};
use crate::checkout::Checkout;
use crate::ids::*;
use crate::input::*;
use crate::origin::*;
use crate::state::*;
use crate::title::{SessionTitle, stored_chat_title};
use crate::turn::*;

/// An event with its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    pub at: Timestamp,
    pub change: Change,
}

/// A change and its scope: the root, a session or a chat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Change {
    Root(RootEvent),
    Session(SessionId, SessionEvent),
    Chat(SessionId, ChatId, ChatEvent),
}

impl Change {
    /// The session that this change concerns.
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
    /// The session exists in the state; its agent does not run yet.
    Created(Box<NewSession>),
    Ready,
    CreationFailed(ErrorInfo),
    /// The session is in every list: announced once, after its creation has succeeded or failed.
    Listed,
    /// The session is removed from the state and from every list.
    Removed,
    TitleChanged(SessionTitle),
    ModelChanged(ModelId),
    /// The session goes on with its agent's default model. Comes with a move of the leaf alone.
    ModelReset,
    ReadChanged(bool),
    ArchivedChanged(bool),
    /// A chat's row changed because the chat did.
    ChatRowChanged(ChatRow),
    InputNeededSet(InputNeeded),
    InputNeededRemoved {
        chat: ChatId,
        request: RequestId,
    },
    ChatAdded(ChatRow),
    ChatRemoved(ChatId),
    ActiveClientSet(ActiveClient),
    ActiveClientRemoved(ClientId),
    /// Some settings of the session change, or all of them are replaced.
    ConfigChanged {
        values: Extra,
        replace: bool,
    },
    /// The session's details beside its conversation, complete and current.
    DetailsChanged(Box<SessionDetails>),
    /// The version control state of the session's working directory, complete and current.
    CheckoutChanged(Box<Checkout>),
    /// The agents work in this folder from now on. It replaces the previous one; without one it is added.
    WorkingDirectoryChanged {
        previous: Option<String>,
        directory: String,
    },
    /// The session moved to another store.
    Moved(StoreName),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ChatEvent {
    TurnStarted {
        turn: TurnId,
        message: Message,
        /// The start time that the sender claims; `None` means now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        started_at: Option<Timestamp>,
        /// The queued message that became this turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queued: Option<PendingId>,
    },
    /// A part begins: an empty text that deltas will fill, or a complete part.
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
    /// A call begins; its input is still being streamed.
    ToolCallStarted {
        turn: TurnId,
        call: NewToolCall,
    },
    ToolCallInputDelta {
        turn: TurnId,
        call: ToolCallId,
        content: String,
    },
    /// The input is complete. Names are repeated, since a client may learn of the call only now. With [`Gate::Follows`] a
    /// [`ChatEvent::ToolCallGated`] comes next.
    ToolCallReady {
        turn: TurnId,
        call: NewToolCall,
        invocation_message: String,
        input: Option<String>,
        gate: Gate,
    },
    /// A running call turns out to do something else. Its output so far has to be sent again.
    ToolCallRestated {
        turn: TurnId,
        #[serde(flatten)]
        restated: Box<InvocationUpdate>,
    },
    /// A person is asked for permission.
    ToolCallGated {
        turn: TurnId,
        #[serde(flatten)]
        gated: Box<ToolCallGate>,
    },
    ToolCallConfirmed {
        turn: TurnId,
        call: ToolCallId,
        request: RequestId,
        #[serde(flatten)]
        verdict: Verdict,
        /// The party that answered, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<Box<CallAnswer>>,
    },
    /// The output of a running call so far.
    ToolCallOutput {
        turn: TurnId,
        call: ToolCallId,
        output: ToolOutput,
    },
    ToolCallCompleted {
        turn: TurnId,
        call: ToolCallId,
        result: ToolResult,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<Box<CallRun>>,
    },
    /// The call ran, and a person is asked if the agent may see the result.
    ToolCallResultGated {
        turn: TurnId,
        call: ToolCallId,
        result: ToolResult,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<Box<CallRun>>,
    },
    ToolCallResultConfirmed {
        turn: TurnId,
        call: ToolCallId,
        result: ToolResult,
        decision: Decision,
        /// The party that answered, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<Box<CallAnswer>>,
    },
    UsageReported {
        turn: TurnId,
        usage: Usage,
    },
    InputRequested {
        turn: TurnId,
        request: Box<InputRequest>,
    },
    /// A person has changed or cleared an answer and not submitted it yet.
    InputAnswerChanged {
        turn: TurnId,
        request: RequestId,
        question: QuestionId,
        answer: Option<Answer>,
    },
    InputAnswered {
        turn: TurnId,
        request: RequestId,
        outcome: InputOutcome,
        #[serde(default)]
        answers: Answers,
        /// The party that answered, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answered_by: Option<Box<Answerer>>,
    },
    TurnCompleted {
        turn: TurnId,
        #[serde(default)]
        duration: Option<u64>,
    },
    TurnCancelled {
        turn: TurnId,
        #[serde(default)]
        duration: Option<u64>,
    },
    TurnFailed {
        turn: TurnId,
        #[serde(default)]
        duration: Option<u64>,
        error: ErrorInfo,
    },
    SteeringSet(PendingMessage),
    SteeringRemoved(PendingId),
    QueuedSet(PendingMessage),
    QueuedRemoved(PendingId),
    QueueReordered(Vec<PendingId>),
    DraftChanged(Option<Message>),
    ChatReadChanged(bool),
    ChatArchivedChanged(bool),
    /// The title of a chat other than the main one, which goes by its session's title.
    ChatTitleChanged(#[serde(deserialize_with = "stored_chat_title")] String),
    /// The chat's current activity in a few words, sent if nothing else shows it.
    ActivityChanged(Option<String>),
    /// The agent's own name for this conversation. Clients are not told.
    AgentSessionChanged(Option<String>),
    /// The leaf has moved: none of the shown turns is on the path to it. They stay in the log.
    #[serde(rename = "turnsLeft")]
    TurnsCleared,
    /// The newest turns on the path to the leaf, after a [`ChatEvent::TurnsCleared`].
    #[serde(rename = "turnsTaken")]
    BranchTurnsLoaded {
        turns: Vec<Arc<Turn>>,
        /// True if there are older turns, which are stored.
        older: bool,
    },
    /// A new chat begins with these newest turns of another chat. They are not written with the event: the chat's
    /// origin says where they are stored.
    TurnsInherited {
        origin: Arc<ChatOrigin>,
        #[serde(skip)]
        turns: Vec<Arc<Turn>>,
        /// True if there are older turns, which are stored.
        older: bool,
    },
    /// An entry of the chat's log outside of any turn: a label, a summary, the leaf's new position. Clients are not
    /// told of the entry itself.
    EntryAdded(LogEntry),
}

impl ChatEvent {
    /// The turn that this event concerns, if it concerns one.
    pub fn turn(&self) -> Option<&TurnId> {
        match self {
            ChatEvent::TurnStarted { turn, .. }
            | ChatEvent::PartAdded { turn, .. }
            | ChatEvent::TextDelta { turn, .. }
            | ChatEvent::ReasoningDelta { turn, .. }
            | ChatEvent::ToolCallStarted { turn, .. }
            | ChatEvent::ToolCallInputDelta { turn, .. }
            | ChatEvent::ToolCallReady { turn, .. }
            | ChatEvent::ToolCallRestated { turn, .. }
            | ChatEvent::ToolCallGated { turn, .. }
            | ChatEvent::ToolCallConfirmed { turn, .. }
            | ChatEvent::ToolCallOutput { turn, .. }
            | ChatEvent::ToolCallCompleted { turn, .. }
            | ChatEvent::ToolCallResultGated { turn, .. }
            | ChatEvent::ToolCallResultConfirmed { turn, .. }
            | ChatEvent::UsageReported { turn, .. }
            | ChatEvent::InputRequested { turn, .. }
            | ChatEvent::InputAnswerChanged { turn, .. }
            | ChatEvent::InputAnswered { turn, .. }
            | ChatEvent::TurnCompleted { turn, .. }
            | ChatEvent::TurnCancelled { turn, .. }
            | ChatEvent::TurnFailed { turn, .. } => Some(turn),
            ChatEvent::SteeringSet(_)
            | ChatEvent::SteeringRemoved(_)
            | ChatEvent::QueuedSet(_)
            | ChatEvent::QueuedRemoved(_)
            | ChatEvent::QueueReordered(_)
            | ChatEvent::DraftChanged(_)
            | ChatEvent::ChatReadChanged(_)
            | ChatEvent::ChatArchivedChanged(_)
            | ChatEvent::ChatTitleChanged(_)
            | ChatEvent::ActivityChanged(_)
            | ChatEvent::AgentSessionChanged(_)
            | ChatEvent::TurnsCleared
            | ChatEvent::BranchTurnsLoaded { .. }
            | ChatEvent::TurnsInherited { .. }
            | ChatEvent::EntryAdded(_) => None,
        }
    }

    /// True if this event ends its turn.
    pub fn ends_turn(&self) -> bool {
        self.class().boundary == Some(TurnBoundary::End)
    }
}

/// A tool call at its start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewToolCall {
    pub id: ToolCallId,
    pub name: String,
    pub display_name: String,
    pub kind: Option<ToolKind>,
    pub language: Option<String>,
    /// The client that will run the call; `None` means the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientId>,
    /// Further data from the agent. It may be sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Extra>,
}

impl NewToolCall {
    /// True if `call` started with these data.
    pub fn is(&self, call: &ToolCall) -> bool {
        let Self { id, name, display_name, kind, language, client, extra: _ } = self;
        (id, name, display_name, kind) == (&call.id, &call.name, &call.display_name, &call.kind)
            && (language, client) == (&call.language, &call.client)
    }
}

/// The new description of a running call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InvocationUpdate {
    /// The call's names, repeated and unchanged.
    pub call: NewToolCall,
    pub invocation_message: String,
    /// `None` leaves the input as it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The known reason for its confirmation: repeated, since a dialect sends both as one.
    pub confirmed: ConfirmationReason,
}

/// A question before a call runs. It repeats the known data of the call, since a dialect may send both as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallGate {
    pub call: ToolCallId,
    pub request: PermissionRequest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invocation_message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The decision of a client's hook, if one decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<HookGate>,
}

/// The decision of a hook about a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HookGate {
    /// Nobody is asked: the answer is in the same batch.
    Resolved,
    /// A person is asked, whatever the session allows.
    Asks,
}

/// A person's answer to a [`ToolCallGate`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    pub decision: Decision,
    #[serde(default = "Verdict::by_default")]
    pub by: ConfirmationReason,
    /// The id of the chosen option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
    /// The call's input as the person edited it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_input: Option<String>,
    /// True if the person skipped the call rather than refused it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
    /// The person's further data on the answer, as the dialect has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Extra>,
}

impl Verdict {
    fn by_default() -> ConfirmationReason {
        ConfirmationReason::Person
    }
}

impl From<Decision> for Verdict {
    fn from(decision: Decision) -> Self {
        Self { decision, by: ConfirmationReason::Person, option: None, edited_input: None, skipped: false, extra: None }
    }
}

/// The need for a person's permission before a call runs.
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
