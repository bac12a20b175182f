//! A chat with an agent, independent of the protocol: a view of its state, and the commands of a user.
//!
//! [`ChatView`] borrows from the confirmed state, so reading it copies nothing, however long a turn is.

pub(crate) mod ahp;
mod always;
pub(crate) mod any;
pub(crate) mod presence;
pub(crate) mod tree;
pub(crate) mod v1;

use std::borrow::Cow;
use std::time::Duration;

use anyhow::Result;
use grove_client::{ClientClosed, ConnectionStatus, DispatchHandle};
use grove_core::{Answerer, ContextUsage, Cost, PlanEntry};
use grove_wire::ahp::{ChatInputAnswer, ChatInputRequest, ConfirmationOption, FileEdit, Object};
use grove_wire::x_grove::policy::{OfferedRule, PolicyAllowResult, PolicyOffersResult, RuleTarget};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::watch;

use crate::show::call::{self, ToolCallSubject};
use crate::show::diff::FileDiff;

/// A client of a session and of one chat in it.
pub(crate) trait ChatClient {
    /// The session's URI.
    fn uri(&self) -> &str;

    /// Reads the chat. The state is locked meanwhile: copy the needed values, and return.
    fn read_view<T>(&self, read_view: impl FnOnce(&ChatView<'_>) -> T) -> T;

    /// The pending requests of all chats of the session.
    fn waiting(&self) -> Vec<PendingRequest>;

    /// The progress of the session's creation.
    fn readiness(&self) -> SessionReadiness;

    /// Waits for the next change since the last call.
    async fn changed(&mut self) -> Result<(), ClientClosed>;

    /// The status of the connection.
    fn status(&self) -> watch::Receiver<ConnectionStatus>;

    /// Returns whether the session has been removed.
    fn is_gone(&self) -> bool;

    /// Dispatches a command. The handle reports its outcome.
    async fn act(&mut self, command: ChatCommand) -> Result<DispatchHandle>;

    /// The rules that would answer a pending permission request. A host without rules offers none.
    async fn rule_offers(&self, permission: &ToolPermission) -> PolicyOffersResult;

    /// Stores an offered rule, which answers the permission request.
    async fn allow_always(&self, permission: &ToolPermission, choice: AlwaysChoice) -> Result<PolicyAllowResult>;

    /// The text behind a URI, if it is text and can be read.
    async fn content(&self, uri: &str) -> Option<String>;

    /// A finished turn in the protocol's JSON.
    fn finished(&self, turn: &str) -> Option<Value>;
}

/// The settings of a session.
#[derive(Debug, Default)]
pub(crate) struct SessionSettings {
    /// The session has settings, even if its agent has not named them yet.
    pub(crate) has_any: bool,
    pub(crate) mode: Option<ModeSetting>,
}

/// The setting that selects an agent's mode.
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

/// The progress of a session's creation.
#[derive(Debug)]
pub(crate) enum SessionReadiness {
    Creating,
    Ready,
    Failed(String),
}

/// The state of a chat.
#[derive(Debug)]
pub(crate) struct ChatView<'a> {
    pub(crate) title: &'a str,
    /// The loaded finished turns, oldest first.
    pub(crate) turns: Vec<TurnView<'a>>,
    /// There are older turns that are not loaded.
    pub(crate) older: bool,
    pub(crate) active: Option<TurnView<'a>>,
    /// Queued prompts.
    pub(crate) queued: Vec<&'a str>,
    /// The session's current activity, if no turn shows it.
    pub(crate) activity: Option<&'a str>,
    /// Warnings for the user before they continue.
    pub(crate) warnings: &'a [String],
}

#[derive(Debug)]
pub(crate) struct TurnView<'a> {
    pub(crate) id: &'a str,
    pub(crate) prompt: &'a str,
    pub(crate) parts: Vec<PartView<'a>>,
    pub(crate) usage: Option<UsageView<'a>>,
    /// `None` while the turn runs.
    pub(crate) end: Option<TurnResult<'a>>,
}

/// The usage of a turn. Values beyond tokens are parsed on demand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UsageView<'a> {
    pub(crate) input: Option<u64>,
    pub(crate) output: Option<u64>,
    pub(crate) meta: Option<&'a Object>,
}

impl UsageView<'_> {
    /// The used part of the model's context window.
    pub(crate) fn context(&self) -> Option<ContextUsage> {
        ContextUsage::deserialize(self.meta?.get("context")?).ok()
    }

    /// The cost of the session so far.
    pub(crate) fn cost(&self) -> Option<Cost> {
        Cost::deserialize(self.meta?.get("cost")?).ok()
    }
}

/// The end of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnResult<'a> {
    Complete,
    Cancelled,
    Failed(&'a str),
}

/// A part of a response. The parts of one turn are identified by their keys, and only ever grow.
#[derive(Debug)]
pub(crate) struct PartView<'a> {
    pub(crate) key: PartKey,
    pub(crate) content: PartContent<'a>,
}

/// The kind of a part, and its index among the parts of that kind.
pub(crate) type PartKey = (u8, usize);

#[derive(Debug)]
pub(crate) enum PartContent<'a> {
    Text(&'a str),
    Reasoning(&'a str),
    ToolPart(ToolPart<'a>),
    /// A question to the user, and whether it has been answered.
    Question {
        asks: Cow<'a, str>,
        response: Option<&'static str>,
    },
    /// A notice for the user.
    Notice(Cow<'a, str>),
    /// The agent's plan. A later one replaces it.
    PlanPart(PlanPart<'a>),
}

/// A plan, parsed on demand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanPart<'a> {
    pub(crate) plan: &'a Value,
    /// The plan as plain text.
    pub(crate) text: &'a str,
}

impl PlanPart<'_> {
    /// The steps, if they can be parsed.
    pub(crate) fn steps(&self) -> Option<Vec<PlanEntry>> {
        Vec::deserialize(self.plan).ok()
    }
}

#[derive(Debug)]
pub(crate) struct ToolPart<'a> {
    /// The tool's name.
    pub(crate) name: &'a str,
    /// A description of the call, in the present tense.
    pub(crate) does: &'a str,
    pub(crate) input: Option<&'a str>,
    /// The files that the call changed.
    pub(crate) edits: Vec<&'a FileEdit>,
    /// The party that allowed it, if a question was asked and the host says who answered.
    pub(crate) approved_by: Option<Answerer>,
    pub(crate) state: ToolPartState<'a>,
}

#[derive(Debug)]
pub(crate) enum ToolPartState<'a> {
    /// Its input is still streaming, or it waits for approval.
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

/// A request that waits for a person.
#[derive(Clone, Debug)]
pub(crate) enum PendingRequest {
    ToolPermission(ToolPermission),
    /// Questions, and the chat that they are asked in.
    Questions {
        chat: String,
        request: Box<ChatInputRequest>,
    },
    /// A request that only another client can serve.
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

    /// A description of the request, in one line.
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

/// A tool call that waits for approval of its execution or of its result.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolPermission {
    pub(crate) chat: String,
    pub(crate) turn: String,
    pub(crate) request: String,
    /// The tool's name.
    pub(crate) name: String,
    /// The request in the agent's words, not necessarily a question.
    pub(crate) title: String,
    pub(crate) input: Option<String>,
    /// The input is a shell command.
    pub(crate) is_command: bool,
    /// The changes that it would make, once they have been fetched.
    pub(crate) diffs: Vec<FileDiff>,
    /// The files that it would change.
    pub(crate) edits: Vec<FileEdit>,
    /// Further answers beside yes and no.
    pub(crate) options: Vec<ConfirmationOption>,
    pub(crate) about: ApprovalStage,
    /// The rules that would answer it always, once they have been fetched.
    pub(crate) offers: Box<PolicyOffersResult>,
}

/// A rule that a person chose to always allow, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AlwaysChoice {
    pub(crate) rule: OfferedRule,
    pub(crate) target: RuleTarget,
}

impl ToolPermission {
    /// The offered rules, each with each target, as a person chooses among them.
    pub(crate) fn always_choices(&self) -> Vec<(AlwaysChoice, String)> {
        let choices = self.offers.rules.iter().flat_map(|rule| {
            self.offers.targets.iter().map(move |offered| {
                let choice = AlwaysChoice { rule: rule.clone(), target: offered.target };
                let file = offered.file.as_deref().unwrap_or_default();
                let at = match offered.target {
                    RuleTarget::Session => "in this session".to_owned(),
                    RuleTarget::Repository => format!("for this repository ({file})"),
                    RuleTarget::Everywhere => format!("everywhere ({file})"),
                };
                let words = format!("{} {at}", rule.text);
                (choice, words)
            })
        });
        choices.collect()
    }
}

/// The subject of a permission request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ApprovalStage {
    #[default]
    Running,
    Result,
}

/// The answer to a permission request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PermissionDecision {
    pub(crate) approved: bool,
    pub(crate) option: Option<String>,
    /// A message to the agent about a denial.
    pub(crate) reason: Option<String>,
    pub(crate) by: DecisionSource,
}

/// The origin of a decision.
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

/// A user's command to a chat.
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
    /// Queues a message. It becomes a turn of the same id when nothing else runs.
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
    /// Answers all questions of a request, or declines it if there are no answers.
    Answer {
        chat: String,
        request: String,
        answers: Option<Vec<(String, ChatInputAnswer)>>,
    },
}

/// The maximum number of pages of a list: a host could give a next cursor for ever.
pub(crate) const MAX_PAGES: usize = 10_000;

/// The error of a list that does not end.
pub(crate) fn endless_list() -> anyhow::Error {
    anyhow::anyhow!("the host's list does not end: it has more than {MAX_PAGES} pages")
}

/// A text on one line, shortened if necessary.
pub(crate) fn one_line(text: &str) -> String {
    const MOST: usize = 100;
    let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((at, _)) = words.char_indices().nth(MOST) {
        words.truncate(at);
        words.push('…');
    }
    words
}
