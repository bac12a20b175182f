//! Requests to clients and people.

use serde_json::Value;

use crate::ahp::macros::records;
use crate::copilot::Object;
use crate::copilot::methods::{CommandDeclaration, UiCapabilities};

records! {
    pub struct PermissionRequested {
        pub request_id: String,
        pub permission_request: PermissionRequest,
        /// The same request for display.
        pub prompt_request: Option<PromptRequest>,
        /// True if it is answered without the client: by a rule, or by an earlier answer.
        pub resolved_by_hook: Option<bool>,
    }

    /// An agent's permission request. The members depend on the kind; clients of some kinds require them all, so
    /// unknown ones are empty and not absent.
    #[derive(Default)]
    pub struct PermissionRequest {
        /// `shell`, `write`, `read`, `mcp`, `url`, and others that are not used here.
        pub kind: String,
        pub tool_call_id: Option<String>,
        pub intention: Option<String>,
        pub full_command_text: Option<String>,
        pub commands: Option<Vec<ShellCommand>>,
        pub possible_paths: Option<Vec<String>>,
        pub possible_urls: Option<Vec<Value>>,
        pub has_write_file_redirection: Option<bool>,
        pub can_offer_session_approval: Option<bool>,
        pub file_name: Option<String>,
        pub diff: Option<String>,
        pub path: Option<String>,
        pub url: Option<String>,
        pub server_name: Option<String>,
        pub tool_name: Option<String>,
        pub tool_title: Option<String>,
        pub args: Option<Value>,
        pub read_only: Option<bool>,
    }

    #[derive(Default, Eq)]
    pub struct ShellCommand {
        pub identifier: String,
        pub read_only: bool,
    }

    /// A [`PermissionRequest`] for display: a command is of kind `commands` here.
    #[derive(Default)]
    pub struct PromptRequest {
        pub kind: String,
        pub tool_call_id: Option<String>,
        pub intention: Option<String>,
        pub full_command_text: Option<String>,
        pub command_identifiers: Option<Vec<String>>,
        pub can_offer_session_approval: Option<bool>,
        pub file_name: Option<String>,
        pub diff: Option<String>,
        pub path: Option<String>,
        pub url: Option<String>,
        pub server_name: Option<String>,
        pub tool_name: Option<String>,
        pub tool_title: Option<String>,
        pub args: Option<Value>,
    }

    #[derive(Default)]
    pub struct PermissionCompleted {
        pub request_id: String,
        pub tool_call_id: Option<String>,
        pub result: PermissionResult,
        /// `human_response`, `host_policy`, and others.
        pub decision_source: Option<String>,
    }

    #[derive(Default)]
    pub struct PermissionResult {
        /// `approved`, `denied-interactively-by-user`, `denied-by-rules`, `cancelled`, and others.
        pub kind: String,
        pub feedback: Option<String>,
        pub reason: Option<String>,
        /// The rules that denied it. Grove also lists one that approved it.
        pub rules: Option<Vec<Value>>,
    }

    /// Asks a client to run one of its own tools.
    pub struct ExternalToolRequested {
        pub request_id: String,
        pub session_id: String,
        pub tool_call_id: String,
        pub tool_name: String,
        pub arguments: Option<Value>,
        pub working_directory: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct ExternalToolCompleted {
        pub request_id: String,
    }

    #[derive(Default, Eq)]
    pub struct UserInputRequested {
        pub request_id: String,
        pub question: String,
        pub choices: Option<Vec<String>>,
        pub allow_freeform: Option<bool>,
    }

    #[derive(Default, Eq)]
    pub struct UserInputCompleted {
        pub request_id: String,
        pub answer: Option<String>,
        pub was_freeform: Option<bool>,
    }

    /// Asks the person at a client to fill in a form.
    pub struct ElicitationRequested {
        pub request_id: String,
        pub message: String,
        /// `form`.
        pub mode: Option<String>,
        pub requested_schema: Option<Value>,
    }

    #[derive(Default)]
    pub struct ElicitationCompleted {
        pub request_id: String,
        pub action: Option<String>,
        pub content: Option<Object>,
    }

    /// Asks the clients whether one of them handles a queued command.
    #[derive(Default, Eq)]
    pub struct CommandQueued {
        pub request_id: String,
        pub command: String,
    }

    /// Asks a client to run one of its own commands.
    #[derive(Default, Eq)]
    pub struct CommandExecute {
        pub request_id: String,
        /// The whole line, with the slash.
        pub command: String,
        pub command_name: String,
        pub args: String,
    }

    #[derive(Default, Eq)]
    pub struct CommandCompleted {
        pub request_id: String,
    }

    /// The commands that clients run, after a change.
    #[derive(Default, Eq)]
    pub struct CommandsChanged {
        pub commands: Vec<CommandDeclaration>,
    }

    #[derive(Default, Eq)]
    pub struct CapabilitiesChanged {
        pub ui: Option<UiCapabilities>,
    }
}
