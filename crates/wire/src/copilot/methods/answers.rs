//! A client's answers to what it was asked.

use serde_json::Value;

use crate::ahp::macros::records;
use crate::copilot::events::PromptRequest;

records! {
    #[derive(Eq)]
    pub struct HandlePermissionParams {
        pub session_id: String,
        pub request_id: String,
        pub result: PermissionDecision,
    }

    /// What a client decides. [`crate::copilot::decode::verdict`] says what each kind means.
    #[derive(Default, Eq)]
    pub struct PermissionDecision {
        pub kind: String,
        /// A word to it, where it is a no.
        pub feedback: Option<String>,
        pub reason: Option<String>,
        pub message: Option<String>,
    }

    pub struct PendingPermissionsResult {
        pub items: Vec<PendingPermission>,
    }

    pub struct PendingPermission {
        pub request_id: String,
        pub request: PromptRequest,
    }

    /// A client has run a tool of its own: it has a result, or an error.
    #[derive(Default)]
    pub struct HandleToolCallParams {
        pub session_id: String,
        pub request_id: String,
        pub result: Option<ToolCallResult>,
        pub error: Option<String>,
    }

    #[derive(Default)]
    pub struct ToolCallResultObject {
        pub text_result_for_llm: Option<String>,
        /// `success`, `failure`, `rejected`, `denied`, `timeout`.
        pub result_type: Option<String>,
        pub error: Option<String>,
        pub session_log: Option<String>,
        pub binary_results_for_llm: Option<Vec<Value>>,
        pub contents: Option<Vec<Value>>,
    }

    #[derive(Eq)]
    pub struct HandleUserInputParams {
        pub session_id: String,
        pub request_id: String,
        pub response: UserInputResponse,
    }

    #[derive(Default, Eq)]
    pub struct UserInputResponse {
        pub answer: String,
        pub was_freeform: Option<bool>,
    }
}

/// What a tool of a client gave.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum ToolCallResult {
    Text(String),
    Object(Box<ToolCallResultObject>),
    /// Something that no tool should give; it is shown as it came.
    Other(Value),
}
