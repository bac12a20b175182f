//! Parts: the pieces of a turn.

use serde::{Deserialize, Serialize};

use super::ToolCall;
use crate::ids::*;
use crate::input::*;

/// A piece of a turn, in the order in which it began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Part {
    Text(TextPart),
    Reasoning {
        id: PartId,
        content: String,
    },
    ToolCall(Box<ToolCall>),
    /// A body that is stored elsewhere, by reference.
    Content(ContentRef),
    Error(ErrorInfo),
    InputRequest(InputRequest),
    /// The agent's plan at this moment. A later plan replaces it in what is shown, not in the turn.
    Plan(Vec<PlanEntry>),
    /// A notice of the agent or the host on the turn: a retry, or an omission.
    Notice(String),
}

/// A step of a plan, or an item of a to-do list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanEntry {
    pub content: String,
    pub priority: PlanPriority,
    pub status: PlanStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PlanPriority {
    High,
    Medium,
    Low,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PlanStatus {
    Pending,
    InProgress,
    Completed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TextPart {
    pub id: PartId,
    pub content: String,
    pub delivery: Delivery,
}

/// The delivery of a text: in deltas, or all at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Delivery {
    Streamed,
    Whole,
}

/// A body above the inline limit, or one that is not text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContentRef {
    pub id: ContentId,
    pub size: u64,
    pub mime_type: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorInfo {
    /// A short machine-readable kind, such as `agentFailed`.
    pub kind: String,
    pub message: String,
    pub stack: Option<String>,
}

impl ErrorInfo {
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind: kind.into(), message: message.into(), stack: None }
    }
}
