//! Requests of sessions for a person's input, over all sessions, and their answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ahp::{ChatInputResponseKind, SessionInputRequest};

/// The maximum number of requests of one answer.
pub const MAX_WAITING_ITEMS: usize = 200;
/// The maximum size of a request in this list, in bytes. A larger one is listed without its content.
pub const MAX_WAITING_BYTES: usize = 256 << 10;

/// The pending requests, those of the session that changed last first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingResult {
    /// At most [`MAX_WAITING_ITEMS`].
    pub items: Vec<WaitingItem>,
    /// The number of further ones.
    pub more: usize,
}

/// A session that waits for a person.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WaitingItem {
    /// The session's id.
    pub session: String,
    /// The session's URI.
    pub resource: String,
    pub title: String,
    pub provider_id: String,
    pub provider_label: String,
    /// The label of its workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    pub updated_at: u64,
    /// The title of the chat that asks, if it is not the main one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_title: Option<String>,
    /// The id of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The request in the shape of the Agent Host Protocol: a permission request or questions. It is absent if it is too
    /// large, or if the session's provider tells only that the session waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<SessionInputRequest>,
}

/// Answers a pending request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswerParams {
    pub session: String,
    /// The id of the request.
    pub request: String,
    pub answer: WaitingAnswer,
}

/// An answer of a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum WaitingAnswer {
    /// To a permission request.
    Permission {
        approved: bool,
        /// One of the options of the request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        option_id: Option<String>,
    },
    /// To questions.
    Input {
        response: ChatInputResponseKind,
        /// The answers by the ids of the questions, in the shape of the Agent Host Protocol.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answers: Option<Value>,
    },
}
