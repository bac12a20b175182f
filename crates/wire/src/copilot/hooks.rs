//! The host's request to call a client's hook.
//!
//! A hook gets its input with the time in milliseconds and the working directory as `cwd`. It returns an object, or
//! nothing. Members that it gives in another form than the protocol's count as absent, except for the decision about a
//! tool call: a denial that cannot be read must not let the call run.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::ahp::macros::{records, words};

/// The request to call a hook.
pub const HOOKS_INVOKE: &str = "hooks.invoke";

records! {
    pub struct HookInvokeParams {
        pub session_id: String,
        /// The name of the hook.
        pub hook_type: String,
        pub input: HookInput,
    }

    pub struct HookInvokeResult {
        /// Absent if the client has no such hook, or the hook returned nothing.
        #[serde(default)]
        pub output: Option<Value>,
    }

    /// The input of a hook.
    pub struct HookInput {
        pub session_id: String,
        /// In milliseconds since 1970.
        pub timestamp: u64,
        pub cwd: String,
        #[serde(flatten)]
        pub moment: HookMomentInput,
    }

    /// The result of a tool call.
    pub struct HookToolResult {
        pub text_result_for_llm: String,
        pub result_type: ToolResultType,
    }
}

words! {
    /// The way in which a session starts.
    pub enum StartSource {
        New = "new",
        Resume = "resume",
        Startup = "startup",
    }

    /// The reason why a session ends for its client.
    pub enum EndReason {
        Complete = "complete",
        Error = "error",
        Abort = "abort",
        Timeout = "timeout",
        UserExit = "user_exit",
    }

    pub enum ErrorContext {
        ModelCall = "model_call",
        ToolExecution = "tool_execution",
        System = "system",
        UserInput = "user_input",
    }

    pub enum ToolResultType {
        Success = "success",
        Failure = "failure",
        Rejected = "rejected",
        Denied = "denied",
        Timeout = "timeout",
    }

    pub enum PermissionVerdict {
        Allow = "allow",
        Deny = "deny",
        Ask = "ask",
    }
}

/// The members of an input that belong to its hook.
#[derive(Clone, Debug, PartialEq, Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum HookMomentInput {
    PostToolUse {
        tool_name: String,
        tool_args: Value,
        tool_result: HookToolResult,
    },
    PostToolUseFailure {
        tool_name: String,
        tool_args: Value,
        error: String,
    },
    PreToolUse {
        tool_name: String,
        tool_args: Value,
    },
    UserPromptSubmitted {
        prompt: String,
    },
    SessionStart {
        source: StartSource,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        initial_prompt: Option<String>,
    },
    SessionEnd {
        reason: EndReason,
    },
    ErrorOccurred {
        error: String,
        error_context: ErrorContext,
        recoverable: bool,
    },
    AgentStop {
        stop_reason: String,
        /// Its name on the wire is not in camel case.
        #[serde(rename = "stop_hook_active")]
        stop_hook_active: bool,
    },
}

/// The output of a hook, with the members of all hooks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookOutput {
    pub permission_decision: Option<PermissionVerdict>,
    pub permission_decision_reason: Option<String>,
    pub modified_args: Option<Value>,
    pub modified_prompt: Option<String>,
    pub modified_result: Option<HookToolResult>,
    pub additional_context: Option<String>,
    /// True if an agent that stops is to go on, with `reason` as its next prompt.
    pub blocks: bool,
    pub reason: Option<String>,
}

impl HookMomentInput {
    /// The protocol's name of the hook.
    pub fn hook_type(&self) -> &'static str {
        match self {
            HookMomentInput::PreToolUse { .. } => "preToolUse",
            HookMomentInput::PostToolUse { .. } => "postToolUse",
            HookMomentInput::PostToolUseFailure { .. } => "postToolUseFailure",
            HookMomentInput::UserPromptSubmitted { .. } => "userPromptSubmitted",
            HookMomentInput::SessionStart { .. } => "sessionStart",
            HookMomentInput::SessionEnd { .. } => "sessionEnd",
            HookMomentInput::ErrorOccurred { .. } => "errorOccurred",
            HookMomentInput::AgentStop { .. } => "agentStop",
        }
    }
}

impl HookOutput {
    /// Reads an output. The error says why a decision about a tool call cannot be read.
    pub fn read(output: Option<Value>) -> Result<Self, String> {
        let Some(Value::Object(mut members)) = output else { return Ok(Self::default()) };
        let permission_decision = match members.remove("permissionDecision") {
            None | Some(Value::Null) => None,
            Some(value) => match serde_json::from_value(value) {
                Ok(PermissionVerdict::Unknown(word)) => return Err(format!("{word:?} is not a permissionDecision")),
                Ok(verdict) => Some(verdict),
                Err(_) => return Err("its permissionDecision is not a text".to_owned()),
            },
        };
        let modified_result = members.remove("modifiedResult").and_then(|result| match result {
            // A result may be its text alone.
            Value::String(text_result_for_llm) => {
                Some(HookToolResult { text_result_for_llm, result_type: ToolResultType::Success })
            }
            result => serde_json::from_value(result).ok(),
        });
        Ok(Self {
            permission_decision,
            permission_decision_reason: text(&mut members, "permissionDecisionReason"),
            modified_args: members.remove("modifiedArgs").filter(|arguments| !arguments.is_null()),
            modified_prompt: text(&mut members, "modifiedPrompt"),
            modified_result,
            additional_context: text(&mut members, "additionalContext"),
            blocks: members.get("decision").and_then(Value::as_str) == Some("block"),
            reason: text(&mut members, "reason"),
        })
    }
}

fn text(members: &mut Map<String, Value>, name: &str) -> Option<String> {
    match members.remove(name)? {
        Value::String(text) => Some(text),
        _ => None,
    }
}
