//! Tool calls, their input and output, approvals, and the agents that they started.

use grove_core::{Extra, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{EditKind, FileLocation, TranscriptTurn};

/// A tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TranscriptToolCall {
    pub id: String,
    /// The model's id of the call, if the tool keeps two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
    /// The tool's name, as the model uses it if that is known.
    pub name: String,
    /// The displayed name, if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown_name: Option<String>,
    pub kind: TranscriptToolKind,
    /// The origin of the tool: built in, an extension, a server's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The intended action, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intention: Option<String>,
    /// The completed action, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    pub input: ToolInput,
    /// The raw input: an object, or a text if it is not JSON.
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
    /// The conversation of the agent that it started.
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
    /// The tool's own id; the call's id if there is none.
    pub id: String,
    /// The agent's name for display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub turns: Vec<TranscriptTurn>,
}

/// The purpose of a tool. Unknown tools are [`Other`](Self::Other).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TranscriptToolKind {
    Shell,
    /// Reads the output of a background command.
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
    /// See `raw_input`.
    #[default]
    Generic,
}

/// A piece of a file and its replacement. Without `before` it is the whole file, or the place is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Replacement {
    pub path: String,
    /// The operation on the file. A whole file counts as created unless it is known to have existed.
    #[serde(skip_serializing_if = "super::is_default")]
    pub kind: EditKind,
    /// Its earlier path, if it is moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    pub after: String,
    /// Numbers of added and removed lines, if the tool has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<u64>,
}

impl ToolInput {
    /// Adds the result of an edit of one file: if it existed, and the numbers of added and removed lines. Ignored for a
    /// call that edits several.
    pub fn set_edit_result(&mut self, kind: Option<EditKind>, lines: Option<(u64, u64)>) {
        let Self::Edits(edits) = self else { return };
        if edits.iter().any(|edit| edit.path != edits[0].path) {
            return;
        }
        for (at, edit) in edits.iter_mut().enumerate() {
            edit.kind = kind.unwrap_or(edit.kind);
            if let Some((added, removed)) = lines {
                // The totals are on the first edit, so that they are counted once.
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

/// The output of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolOutput {
    /// The text for display, search and export.
    pub text: String,
    /// The raw output, if the text is not all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
}

/// The approval of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Approval {
    /// Not recorded by the tool.
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
    /// Not answered yet.
    Waiting,
}

/// The state of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CallState {
    Complete,
    Failed,
    /// It started, and its end is not known.
    #[default]
    Interrupted,
    /// It was not allowed to run.
    Refused,
}
