//! Turns: messages, tool calls, usage.

use serde_json::Value;

use crate::ahp::macros::records;
use crate::copilot::methods::Attachment;

records! {
    #[derive(Default)]
    pub struct UserMessage {
        pub content: String,
        pub message_id: Option<String>,
        pub attachments: Option<Vec<Attachment>>,
        /// The sender, if it was not a person.
        pub source: Option<String>,
        /// The mode that the sender asked for.
        pub agent_mode: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct TurnStart {
        pub turn_id: String,
        pub model: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct TurnEnd {
        pub turn_id: String,
    }

    #[derive(Default, Eq)]
    pub struct MessageStart {
        pub message_id: String,
    }

    #[derive(Default, Eq)]
    pub struct MessageDelta {
        pub message_id: String,
        pub delta_content: String,
    }

    /// A complete piece of an answer, with the calls that follow from it.
    #[derive(Default)]
    pub struct AssistantMessage {
        pub message_id: String,
        pub model: Option<String>,
        pub content: String,
        pub tool_requests: Option<Vec<ToolRequest>>,
        pub reasoning_text: Option<String>,
        pub turn_id: Option<String>,
    }

    pub struct ToolRequest {
        pub tool_call_id: String,
        pub name: String,
        pub arguments: Option<Value>,
        /// `function` or `custom`.
        #[serde(rename = "type")]
        pub kind: Option<String>,
        pub tool_title: Option<String>,
        pub intention_summary: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct ReasoningDelta {
        pub reasoning_id: String,
        pub delta_content: String,
    }

    #[derive(Default, Eq)]
    pub struct Reasoning {
        pub reasoning_id: String,
        pub content: String,
    }

    #[derive(Default, Eq)]
    pub struct ToolCallDelta {
        pub tool_call_id: String,
        pub tool_name: Option<String>,
        pub input_delta: String,
    }

    #[derive(Default)]
    pub struct Usage {
        pub model: String,
        pub input_tokens: Option<u64>,
        pub output_tokens: Option<u64>,
        pub cache_read_tokens: Option<u64>,
        pub cache_write_tokens: Option<u64>,
        pub reasoning_tokens: Option<u64>,
    }

    pub struct ToolStart {
        pub tool_call_id: String,
        pub tool_name: String,
        pub arguments: Option<Value>,
        pub turn_id: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct ToolPartialResult {
        pub tool_call_id: String,
        /// The new part of the output.
        pub partial_output: String,
    }

    #[derive(Default, Eq)]
    pub struct ToolComplete {
        pub tool_call_id: String,
        pub success: bool,
        pub result: Option<ToolResult>,
        pub error: Option<ToolError>,
        pub turn_id: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct ToolResult {
        pub content: String,
        pub detailed_content: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct ToolError {
        pub message: String,
        pub code: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct Abort {
        pub reason: String,
    }
}
