//! A conversation with an agent, whichever protocol it is held in: what there is to see, and what one can do.
//!
//! [`ChatView`] borrows from the state as the host has confirmed it, so looking costs no copies however long a turn is.

pub(crate) mod ahp;
pub(crate) mod any;
pub(crate) mod tree;
pub(crate) mod v1;

use std::borrow::Cow;
use std::time::Duration;

use anyhow::Result;
use grove_client::{ClientClosed, ConnectionStatus, DispatchHandle};
use grove_core::{ContextUsage, Cost, PlanEntry};
use grove_wire::ahp::{ChatInputAnswer, ChatInputRequest, ConfirmationOption, FileEdit, Object};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::watch;

use crate::show::call::{self, ToolCallSubject};
use crate::show::diff::FileDiff;

/// A session, and the chat in it that is shown.
pub(crate) trait ChatClient {
    /// The session's URI.
    fn uri(&self) -> &str;

    /// Looks at the chat. It cannot change meanwhile: take what is needed, and return.
    fn read_view<T>(&self, read_view: impl FnOnce(&ChatView<'_>) -> T) -> T;

    /// What waits for a person, in whichever chat of the session.
    fn waiting(&self) -> Vec<PendingRequest>;

    /// How far the session is with its beginning.
    fn readiness(&self) -> SessionReadiness;

    /// Waits until anything has changed since the last time that this waited.
    async fn changed(&mut self) -> Result<(), ClientClosed>;

    /// How it stands with the connection.
    fn status(&self) -> watch::Receiver<ConnectionStatus>;

    /// Whether the session is not there any more.
    fn is_gone(&self) -> bool;

    /// Does something. What becomes of it is told by what is given back.
    async fn act(&mut self, command: ChatCommand) -> Result<DispatchHandle>;

    /// The text behind a reference, if it is text and can be had.
    async fn content(&self, uri: &str) -> Option<String>;

    /// A finished turn as the protocol writes it.
    fn finished(&self, turn: &str) -> Option<Value>;
}

/// The settings that a session has.
#[derive(Debug, Default)]
pub(crate) struct SessionSettings {
    /// Whether the session has settings at all, even if its agent has not named them yet.
    pub(crate) has_any: bool,
    pub(crate) mode: Option<ModeSetting>,
}

/// The setting that chooses an agent's mode.
#[derive(Debug)]
pub(crate) struct ModeSetting {
    pub(crate) name: String,
    /// The id and label of each mode.
    pub(crate) choices: Vec<(String, String)>,
}

/// Another chat of the same session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OtherChat {
    /// The name that `--chat` takes.
    pub(crate) name: String,
    pub(crate) title: String,
}

/// Whether a session can be used.
#[derive(Debug)]
pub(crate) enum SessionReadiness {
    Creating,
    Ready,
    Failed(String),
}

/// What there is to see.
#[derive(Debug)]
pub(crate) struct ChatView<'a> {
    pub(crate) title: &'a str,
    /// The finished turns that are held, oldest first.
    pub(crate) turns: Vec<TurnView<'a>>,
    /// Whether there are older ones.
    pub(crate) older: bool,
    pub(crate) active: Option<TurnView<'a>>,
    /// What waits to become a turn.
    pub(crate) queued: Vec<&'a str>,
    /// What it is busy with, where nothing else shows it.
    pub(crate) activity: Option<&'a str>,
    /// What a person should know before going on.
    pub(crate) warnings: &'a [String],
}

#[derive(Debug)]
pub(crate) struct TurnView<'a> {
    pub(crate) id: &'a str,
    pub(crate) prompt: &'a str,
    pub(crate) parts: Vec<PartView<'a>>,
    pub(crate) usage: Option<UsageView<'a>>,
    /// Nothing while it runs.
    pub(crate) end: Option<TurnResult<'a>>,
}

/// What a turn took. What is beyond tokens is read when somebody wants it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UsageView<'a> {
    pub(crate) input: Option<u64>,
    pub(crate) output: Option<u64>,
    pub(crate) meta: Option<&'a Object>,
}

impl UsageView<'_> {
    /// How much of the model's window is taken.
    pub(crate) fn context(&self) -> Option<ContextUsage> {
        ContextUsage::deserialize(self.meta?.get("context")?).ok()
    }

    /// What the session has cost so far.
    pub(crate) fn cost(&self) -> Option<Cost> {
        Cost::deserialize(self.meta?.get("cost")?).ok()
    }
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnResult<'a> {
    Complete,
    Cancelled,
    Failed(&'a str),
}

/// A piece of an answer. Pieces of one turn are told apart by their key, and only ever grow.
#[derive(Debug)]
pub(crate) struct PartView<'a> {
    pub(crate) key: PartKey,
    pub(crate) content: PartContent<'a>,
}

/// What kind of piece, and the how-manieth of its kind.
pub(crate) type PartKey = (u8, usize);

#[derive(Debug)]
pub(crate) enum PartContent<'a> {
    Text(&'a str),
    Reasoning(&'a str),
    ToolPart(ToolPart<'a>),
    /// A question to the person, and whether it has been answered.
    Question {
        asks: Cow<'a, str>,
        response: Option<&'static str>,
    },
    /// Something that the person should know.
    Notice(Cow<'a, str>),
    /// What the agent means to do. A later one takes its place.
    PlanPart(PlanPart<'a>),
}

/// A plan, which is read when somebody wants to see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanPart<'a> {
    pub(crate) plan: &'a Value,
    /// The same in words.
    pub(crate) text: &'a str,
}

impl PlanPart<'_> {
    /// Its steps, where they can be read.
    pub(crate) fn steps(&self) -> Option<Vec<PlanEntry>> {
        Vec::deserialize(self.plan).ok()
    }
}

#[derive(Debug)]
pub(crate) struct ToolPart<'a> {
    /// The tool.
    pub(crate) name: &'a str,
    /// What it does, in the present tense.
    pub(crate) does: &'a str,
    pub(crate) input: Option<&'a str>,
    /// The files that it changed.
    pub(crate) edits: Vec<&'a FileEdit>,
    pub(crate) state: ToolPartState<'a>,
}

#[derive(Debug)]
pub(crate) enum ToolPartState<'a> {
    /// Its input still comes, or it waits to be allowed.
    NotYet,
    Runs,
    Done {
        success: bool,
        did: &'a str,
        /// How long it ran, where the host says it.
        ran: Option<Duration>,
        output: Cow<'a, str>,
    },
    Cancelled {
        why: Cow<'a, str>,
    },
}

/// Something that waits for a person.
#[derive(Clone, Debug)]
pub(crate) enum PendingRequest {
    ToolPermission(ToolPermission),
    /// Questions, and the chat that they are asked in.
    Questions {
        chat: String,
        request: Box<ChatInputRequest>,
    },
    /// Something that only another client can do.
    Elsewhere {
        id: String,
        what: String,
    },
}

impl PendingRequest {
    pub(crate) fn id(&self) -> &str {
        match self {
            PendingRequest::ToolPermission(permission) => &permission.request,
            PendingRequest::Questions { request, .. } => &request.id,
            PendingRequest::Elsewhere { id, .. } => id,
        }
    }

    /// What it is about, in a line.
    pub(crate) fn summary(&self) -> String {
        match self {
            PendingRequest::ToolPermission(permission) => {
                let question = call::question(permission);
                let subject = ToolCallSubject::of(permission.input.as_deref()).line();
                match (subject.is_empty(), question.contains(&subject)) {
                    (true, _) => call::with_tool(permission, question),
                    (false, true) => question,
                    (false, false) => format!("{question} {subject}"),
                }
            }
            PendingRequest::Questions { request, .. } => {
                let first = request.questions.iter().flatten().next().map(crate::question_dialog::wording);
                one_line(request.message.as_deref().or(first.as_deref()).unwrap_or("a question"))
            }
            PendingRequest::Elsewhere { what, .. } => what.clone(),
        }
    }
}

/// A tool call that waits to be allowed, or for its result to be used.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolPermission {
    pub(crate) chat: String,
    pub(crate) turn: String,
    pub(crate) request: String,
    /// The tool.
    pub(crate) name: String,
    /// The request in the agent's words, which need not be a question.
    pub(crate) title: String,
    pub(crate) input: Option<String>,
    /// Whether the input is a command for a shell.
    pub(crate) is_command: bool,
    /// The changes that it would make, once they were fetched.
    pub(crate) diffs: Vec<FileDiff>,
    /// The files that it would change.
    pub(crate) edits: Vec<FileEdit>,
    /// Answers that are more than yes and no.
    pub(crate) options: Vec<ConfirmationOption>,
    pub(crate) about: ApprovalStage,
}

/// What a permission is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ApprovalStage {
    #[default]
    Running,
    Result,
}

/// The answer to a permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PermissionDecision {
    pub(crate) approved: bool,
    pub(crate) option: Option<String>,
    /// A word to the agent, where it is denied.
    pub(crate) reason: Option<String>,
    pub(crate) by: DecisionSource,
}

/// Who decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecisionSource {
    Person,
    /// `--yes`.
    Setting,
}

impl PermissionDecision {
    pub(crate) fn new(approved: bool) -> Self {
        Self { approved, option: None, reason: None, by: DecisionSource::Person }
    }
}

/// What one can do.
#[derive(Clone, Debug)]
pub(crate) enum ChatCommand {
    Start {
        turn: String,
        text: String,
        /// The model to use from this turn on.
        model: Option<String>,
    },
    /// Changes settings of the session.
    Configure {
        values: Object,
    },
    /// A message that becomes a turn of the same id when nothing else runs.
    Queue {
        id: String,
        text: String,
    },
    Cancel {
        turn: String,
    },
    Permit {
        permission: Box<ToolPermission>,
        verdict: PermissionDecision,
    },
    /// Answers to all questions of a request, or none: then it is declined.
    Answer {
        chat: String,
        request: String,
        answers: Option<Vec<(String, ChatInputAnswer)>>,
    },
}

/// A text in one line, not too long for one.
pub(crate) fn one_line(text: &str) -> String {
    const MOST: usize = 100;
    let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((at, _)) = words.char_indices().nth(MOST) {
        words.truncate(at);
        words.push('…');
    }
    words
}
