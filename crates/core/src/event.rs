//! What can happen. Events are finer than any dialect's actions: each maps, in each dialect, to one action or to none.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::checkout::Checkout;
use crate::ids::*;
use crate::input::*;
use crate::origin::*;
use crate::state::*;
use crate::title::{SessionTitle, stored_chat_title};
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
    TitleChanged(SessionTitle),
    ModelChanged(ModelId),
    /// The session goes on with its agent's default model. Comes with a move of the leaf alone: version 1 cannot say it.
    ModelReset,
    ReadChanged(bool),
    ArchivedChanged(bool),
    /// A chat's row changed, because the chat did.
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
    /// Settings of the session: these change, or all of them are replaced.
    ConfigChanged {
        values: Extra,
        replace: bool,
    },
    /// What is known about the session beside what is said in it: all of it, as it is from now on.
    DetailsChanged(Box<SessionDetails>),
    /// What version control says of where the session works: all of it, as it is from now on.
    CheckoutChanged(Box<Checkout>),
    /// The agents work in this folder from now on. It replaces the previous one; without one it is added.
    WorkingDirectoryChanged {
        previous: Option<String>,
        directory: String,
    },
    /// The session lies in another store from now on.
    Moved(StoreName),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ChatEvent {
    TurnStarted {
        turn: TurnId,
        message: Message,
        /// When whoever started it says it started; without that, now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        started_at: Option<Timestamp>,
        /// The waiting message that it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queued: Option<PendingId>,
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
    /// The input is whole; names are said again, since version 1 hears of the call only now. With [`Gate::Follows`] a [`ChatEvent::ToolCallGated`] comes next.
    ToolCallReady {
        turn: TurnId,
        call: NewToolCall,
        invocation_message: String,
        input: Option<String>,
        gate: Gate,
    },
    /// What a running call is about turns out to be something else. What it has put out so far is to be said again.
    ToolCallRestated {
        turn: TurnId,
        #[serde(flatten)]
        restated: Box<InvocationUpdate>,
    },
    /// A person is asked.
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
    },
    /// What a running call has put out so far.
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
    /// The call ran, and a person is asked whether the agent may see the result.
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
    },
    UsageReported {
        turn: TurnId,
        usage: Usage,
    },
    InputRequested {
        turn: TurnId,
        request: Box<InputRequest>,
    },
    /// A person has changed an answer, or taken it back, and not sent it yet.
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
    /// What a chat other than the main one is called: that one goes by its session's name.
    ChatTitleChanged(#[serde(deserialize_with = "stored_chat_title")] String),
    /// What the chat is busy with, in a few words: said where nothing else shows it.
    ActivityChanged(Option<String>),
    /// How its agent calls this conversation. No client hears of it.
    AgentSessionChanged(Option<String>),
    /// The leaf has moved: none of the turns is on the way to it that were shown. They stay in the log.
    #[serde(rename = "turnsLeft")]
    TurnsCleared,
    /// The newest turns on the way to the leaf, behind a [`ChatEvent::TurnsCleared`].
    #[serde(rename = "turnsTaken")]
    BranchTurnsLoaded {
        turns: Vec<Arc<Turn>>,
        /// Whether there are older ones, which are stored.
        older: bool,
    },
    /// A new chat begins with what another one has: these are the newest turns of it. They are not written with the
    /// event: the chat's origin says where they are stored.
    TurnsInherited {
        origin: Arc<ChatOrigin>,
        #[serde(skip)]
        turns: Vec<Arc<Turn>>,
        /// Whether there are older ones, which are stored.
        older: bool,
    },
    /// An entry of the chat's log that is no part of a turn: a label, a summary, the leaf's new place. No client hears
    /// of it by itself.
    EntryAdded(LogEntry),
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
    /// The client that will run it; without one, the agent does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientId>,
    /// What its agent says of it beyond this. It may be said anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Extra>,
}

impl NewToolCall {
    /// Whether this is how `call` began.
    pub fn is(&self, call: &ToolCall) -> bool {
        let Self { id, name, display_name, kind, language, client, extra: _ } = self;
        (id, name, display_name, kind) == (&call.id, &call.name, &call.display_name, &call.kind)
            && (language, client) == (&call.language, &call.client)
    }
}

/// What a running call is about, said anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InvocationUpdate {
    /// Names are said again; they are what they were.
    pub call: NewToolCall,
    pub invocation_message: String,
    /// Without one, the input is what it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Why it may run, as it is known: said again, since a dialect tells both as one.
    pub confirmed: ConfirmationReason,
}

/// A question put before a call. What is known of the call is said again, since a dialect may tell both as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallGate {
    pub call: ToolCallId,
    pub request: PermissionRequest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invocation_message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
}

/// A person's answer to such a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    pub decision: Decision,
    #[serde(default = "Verdict::by_default")]
    pub by: ConfirmationReason,
    /// The id of the option that was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
    /// The call's input as the person wants it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_input: Option<String>,
    /// A no that passes over the call rather than refusing it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
    /// What the person said to it, as its dialect has it.
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
