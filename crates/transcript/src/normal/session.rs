//! A session without its turns: the data for a list.

use std::fmt;

use grove_core::{Extra, MessageOrigin, Timestamp};
use serde::{Deserialize, Serialize};

use super::{FileLocation, TodoItem, TranscriptTurn, TranscriptUsage, TurnOutcome, model_key};
use crate::damage::Damage;
use crate::limits::MAX_NAMES;

/// The tool whose store a session was found in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TranscriptSource {
    #[default]
    VsCode,
    CopilotCli,
    Claude,
    Codex,
    /// pi and oh-my-pi, which write the same format.
    Pi,
    Gemini,
    #[serde(rename = "opencode")]
    OpenCode,
}

impl TranscriptSource {
    pub fn name(self) -> &'static str {
        match self {
            Self::VsCode => "vs-code",
            Self::CopilotCli => "copilot-cli",
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Pi => "pi",
            Self::Gemini => "gemini",
            Self::OpenCode => "opencode",
        }
    }

    /// True if a later turn of a session can abandon earlier ones: see [`TurnParent`](super::TurnParent).
    pub fn has_branches(self) -> bool {
        match self {
            Self::Claude | Self::Codex | Self::Pi | Self::Gemini => true,
            Self::VsCode | Self::CopilotCli | Self::OpenCode => false,
        }
    }
}

impl fmt::Display for TranscriptSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A session's data. Its turns are returned one by one while it is read, and counted here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TranscriptSession {
    pub source: TranscriptSource,
    /// The id that the tool itself uses.
    pub source_id: String,
    /// Other ids of the same session: those of the tool's agent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub workspace: TranscriptWorkspace,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// The time of the last activity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified_at: Option<Timestamp>,
    pub state: TranscriptState,
    /// The agent of the last answer, for display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The version of the format, or of the program that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The number of all turns.
    pub turns: u32,
    /// The number of turns that were not cancelled.
    pub turns_completed: u32,
    /// The first message, shortened; see [`FIRST_MESSAGE_LENGTH`] and [`NO_MESSAGES`].
    pub first_message: String,
    /// The models that answered, without their vendors, each once, in order, in their first spelling.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// The used tools, each once, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    #[serde(skip_serializing_if = "super::is_default")]
    pub usage: TranscriptUsage,
    /// The final to-do list, if its tool keeps it beside the conversation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub todos: Vec<TodoItem>,
    /// The person's unsent text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draft: Option<String>,
    /// The parent session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    pub damage: Damage,
    #[serde(skip_serializing_if = "Extra::is_empty")]
    pub raw: Extra,
}

/// The workspace of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TranscriptWorkspace {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<FileLocation>,
    /// The file that lists the folders, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<FileLocation>,
    /// The repository's URL, or `owner/name` if no more is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The branch that the work started from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_branch: Option<String>,
    /// The worktree, if it worked in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    /// The address of the resulting pull request: the newest of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
}

/// A worktree of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Worktree {
    pub folder: String,
    /// The folder of its main repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
}

/// The maximum length of a pull request's address.
const LONGEST_ADDRESS: usize = 2_048;

impl TranscriptWorkspace {
    /// Records a resulting pull request. Anything but a web address is ignored.
    pub fn set_pull_request(&mut self, address: Option<String>) {
        let is_page = |address: &String| {
            address.len() <= LONGEST_ADDRESS && (address.starts_with("https://") || address.starts_with("http://"))
        };
        self.pull_request = address.filter(is_page).or(self.pull_request.take());
    }

    /// Fills unknown fields from `other`.
    pub fn fill(&mut self, other: Self) {
        if self.folders.is_empty() {
            self.folders = other.folders;
        }
        let fill = |mine: &mut Option<String>, other: Option<String>| *mine = mine.take().or(other);
        fill(&mut self.repository, other.repository);
        fill(&mut self.branch, other.branch);
        fill(&mut self.commit, other.commit);
        fill(&mut self.base_branch, other.base_branch);
        fill(&mut self.pull_request, other.pull_request);
        fill(&mut self.system, other.system);
        fill(&mut self.shell, other.shell);
        self.file = self.file.take().or(other.file);
        self.worktree = self.worktree.take().or(other.worktree);
    }
}

/// The outcome of a session's newest turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TranscriptState {
    /// It has no turns.
    #[default]
    Empty,
    Complete,
    Cancelled,
    Failed,
    Interrupted,
}

/// The number of kept characters of the first message.
pub const FIRST_MESSAGE_LENGTH: usize = 100;
/// The placeholder for a missing first message.
pub const NO_MESSAGES: &str = "(No messages)";

impl TranscriptSession {
    pub fn new(source: TranscriptSource, source_id: impl Into<String>) -> Self {
        Self { source, source_id: source_id.into(), first_message: NO_MESSAGES.to_owned(), ..Self::default() }
    }

    /// True if this is the session's id, or another one of its ids.
    pub fn has_id(&self, id: &str) -> bool {
        self.source_id == id || self.aliases.iter().any(|alias| alias == id)
    }

    /// Counts a turn.
    pub fn count(&mut self, turn: &TranscriptTurn) {
        if self.first_message == NO_MESSAGES && turn.message.origin == MessageOrigin::User {
            self.first_message = turn.message.text.chars().take(FIRST_MESSAGE_LENGTH).collect();
        }
        self.turns = self.turns.saturating_add(1);
        if turn.outcome != TurnOutcome::Cancelled {
            self.turns_completed = self.turns_completed.saturating_add(1);
        }
        self.state = match turn.outcome {
            TurnOutcome::Complete => TranscriptState::Complete,
            TurnOutcome::Cancelled => TranscriptState::Cancelled,
            TurnOutcome::Failed(_) => TranscriptState::Failed,
            TurnOutcome::Interrupted => TranscriptState::Interrupted,
        };
        if let Some(model) = &turn.model {
            add_model(&mut self.models, &model.model);
        }
        for call in turn.tool_calls() {
            add_name(&mut self.tools, &call.name);
        }
        if let Some(usage) = &turn.usage {
            self.usage.add(usage);
        }
        if let Some(alias) = &turn.agent_session
            && *alias != self.source_id
        {
            add_name(&mut self.aliases, alias);
        }
        if let Some(agent) = &turn.agent {
            self.agent = Some(agent.name.clone()).filter(|name| !name.is_empty());
        }
        self.modified_at = self.modified_at.max(turn.ended_at.max(turn.started_at));
    }
}

/// Adds a model, unless it is there in another spelling.
fn add_model(models: &mut Vec<String>, model: &str) {
    // Most turns have a known model in the same spelling.
    if models.iter().any(|known| known == model) {
        return;
    }
    let key = model_key(model);
    if !models.iter().any(|known| model_key(known) == key) {
        add_name(models, model);
    }
}

fn add_name(names: &mut Vec<String>, name: &str) {
    if !name.is_empty() && names.len() < MAX_NAMES && !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normal::TranscriptMessage;

    fn turn(text: &str, outcome: TurnOutcome) -> TranscriptTurn {
        let message = TranscriptMessage { text: text.into(), ..TranscriptMessage::default() };
        TranscriptTurn { message, outcome, ..TranscriptTurn::default() }
    }

    #[test]
    fn the_first_message_is_cut_at_100_characters_and_never_inside_one() {
        let mut session = TranscriptSession::new(TranscriptSource::VsCode, "s");
        assert_eq!(session.first_message, "(No messages)");
        session.count(&turn(&"é𝄞".repeat(80), TurnOutcome::Complete));
        session.count(&turn("second", TurnOutcome::Complete));
        assert_eq!(session.first_message, "é𝄞".repeat(50));
    }

    #[test]
    fn all_turns_are_counted_and_those_completed_that_were_not_cancelled() {
        let mut session = TranscriptSession::new(TranscriptSource::VsCode, "s");
        assert_eq!(session.state, TranscriptState::Empty);
        for outcome in [TurnOutcome::Complete, TurnOutcome::Cancelled, TurnOutcome::Interrupted] {
            session.count(&turn("x", outcome));
        }
        assert_eq!((session.turns, session.turns_completed, session.state), (3, 2, TranscriptState::Interrupted));
    }
}
