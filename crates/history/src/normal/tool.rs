//! What an agent did: tool calls, their input and output, who allowed them, and the agents that they started.

use grove_core::{Extra, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{EditKind, FileLocation, TranscriptTurn};

/// One call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TranscriptToolCall {
    pub id: String,
    /// The id under which the model made the call, where the tool keeps two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
    /// The tool, as the model calls it where that is known.
    pub name: String,
    /// The same as the person is shown it, where that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown_name: Option<String>,
    pub kind: TranscriptToolKind,
    /// Where the tool comes from: built in, an extension, a server's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What it was about to do, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intention: Option<String>,
    /// What it has done, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    pub input: ToolInput,
    /// The input as it came: an object, or text where it was no JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_input: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<ToolOutput>,
    pub approval: Approval,
    pub state: CallState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// How long it ran, where that is known and its times are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ran_ms: Option<u64>,
    /// Files that it named in its result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<FileLocation>,
    /// The agent that it started, and what that did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent: Option<Box<TranscriptChat>>,
    #[serde(skip_serializing_if = "Extra::is_empty")]
    pub raw: Extra,
}

impl TranscriptToolCall {
    /// How many milliseconds it ran, by whatever is known of that.
    pub fn ran_for_ms(&self) -> Option<u64> {
        self.ran_ms.or_else(|| Some(self.ended_at?.0.saturating_sub(self.started_at?.0)))
    }
}

/// A conversation that a tool call started: a chat beside the one that it belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TranscriptChat {
    /// How the tool calls it; the call's id where it has no other.
    pub id: String,
    /// Which agent it was, as it is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub turns: Vec<TranscriptTurn>,
}

/// What a tool does. Tools that nobody here knows stay [`Other`](Self::Other).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TranscriptToolKind {
    Shell,
    /// Reads what a command in the background has put out.
    ShellOutput,
    Read,
    List,
    Search,
    Fetch,
    Todo,
    Subagent,
    Edit,
    /// Several edits in one call.
    Edits,
    #[default]
    Other,
}

/// A call's input, as far as it is understood.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ToolInput {
    Command {
        command: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        folder: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        language: Option<String>,
        #[serde(default)]
        background: bool,
    },
    ShellOutput {
        terminal: String,
    },
    File {
        place: FileLocation,
    },
    Folder {
        place: FileLocation,
    },
    Todos(Vec<TodoItem>),
    Subagent {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        prompt: String,
    },
    Edits(Vec<Replacement>),
    /// Only `raw_input` tells.
    #[default]
    Generic,
}

/// A piece of a file and what takes its place. Without `before` it is the whole file, or the place is not said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Replacement {
    pub path: String,
    /// What is done to the file. One that is written whole counts as created where nothing says that it was there.
    #[serde(skip_serializing_if = "super::is_default")]
    pub kind: EditKind,
    /// Where it lay before, where it is moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    pub after: String,
    /// Lines that came and lines that went, where the tool says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<u64>,
}

impl ToolInput {
    /// What the result of a call says of the one file that it edits: whether it was there, and how many lines came and went
    /// in all. Of a call that edits several, a result says nothing here.
    pub(crate) fn set_edit_result(&mut self, kind: Option<EditKind>, lines: Option<(u64, u64)>) {
        let Self::Edits(edits) = self else { return };
        if edits.iter().any(|edit| edit.path != edits[0].path) {
            return;
        }
        for (at, edit) in edits.iter_mut().enumerate() {
            edit.kind = kind.unwrap_or(edit.kind);
            if let Some((added, removed)) = lines {
                // The sum stands at the first, so that it is counted once.
                (edit.added, edit.removed) = if at == 0 { (Some(added), Some(removed)) } else { (Some(0), Some(0)) };
            }
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TodoItem {
    pub id: String,
    pub title: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    pub status: TodoStatus,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TodoStatus {
    #[default]
    NotStarted,
    InProgress,
    Completed,
}

/// What a call gave back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolOutput {
    /// For showing, search and export.
    pub text: String,
    /// As it came, where the text is not all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
}

/// Who let a call run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Approval {
    /// The tool does not say.
    #[default]
    Unknown,
    NotNeeded {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A setting of the tool.
    Setting {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// An earlier answer that was meant to last.
    Remembered {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<String>,
    },
    Person {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        button: Option<String>,
    },
    Denied,
    Skipped,
    /// It was asked, and nobody has answered.
    Waiting,
}

/// How far a call came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CallState {
    Complete,
    Failed,
    /// It was begun, and nothing tells of its end.
    #[default]
    Interrupted,
    /// It was not allowed to run.
    Refused,
}
