//! A client's answers to requests.

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

    /// A client's decision. [`crate::copilot::decode::verdict`] converts each kind.
    #[derive(Default, Eq)]
    pub struct PermissionDecision {
        pub kind: String,
        /// A comment on a denial.
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

    /// The result or the error of a client's own tool.
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

/// The result of a client's tool.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ToolCallResult {
    Text(String),
    Object(Box<ToolCallResultObject>),
    /// An unexpected value; it is shown as it came.
    Other(Value),
}
