//! Commands: those of the agent, of the host, and of clients.

use crate::ahp::macros::{records, words};

/// The largest number of commands that a client may declare in a session; more are left out.
pub const MAX_CLIENT_COMMANDS: usize = 256;

records! {
    /// A command that a client runs.
    #[derive(Default, Eq)]
    pub struct CommandDeclaration {
        /// The name without the slash.
        pub name: String,
        pub description: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct CommandsListResult {
        pub commands: Vec<CommandInfo>,
    }

    #[derive(Eq)]
    pub struct CommandInfo {
        pub name: String,
        pub description: String,
        pub kind: CommandKind,
        pub input: Option<CommandInput>,
        pub allow_during_agent_execution: bool,
    }

    #[derive(Default, Eq)]
    pub struct CommandInput {
        pub hint: String,
    }

    #[derive(Eq)]
    pub struct CommandInvokeParams {
        pub session_id: String,
        pub name: String,
        pub input: Option<String>,
    }

    /// The outcome of a command, by its kind: `text` shows a text, `agent-prompt` is to be sent, `completed` is done.
    #[derive(Default, Eq)]
    pub struct CommandInvokeResult {
        pub kind: String,
        pub text: Option<String>,
        pub prompt: Option<String>,
        pub display_prompt: Option<String>,
        pub message: Option<String>,
    }

    #[derive(Eq)]
    pub struct CommandExecuteParams {
        pub session_id: String,
        pub command_name: String,
        #[serde(default)]
        pub args: String,
    }

    #[derive(Default, Eq)]
    pub struct CommandExecuteResult {
        /// The reason, if the command failed.
        pub error: Option<String>,
    }

    #[derive(Eq)]
    pub struct HandleCommandParams {
        pub session_id: String,
        pub request_id: String,
        pub error: Option<String>,
    }

    #[derive(Eq)]
    pub struct CommandEnqueueParams {
        pub session_id: String,
        pub command: String,
    }

    #[derive(Copy, Default, Eq)]
    pub struct CommandEnqueueResult {
        pub queued: bool,
    }

    #[derive(Eq)]
    pub struct RespondToCommandParams {
        pub session_id: String,
        pub request_id: String,
        pub result: QueuedCommandResult,
    }

    #[derive(Default, Eq)]
    pub struct QueuedCommandResult {
        /// False if the client does not know the command: it is sent to the agent then.
        pub handled: bool,
        pub stop_processing_queue: Option<bool>,
    }
}

words! {
    pub enum CommandKind {
        /// One of the host or of the agent.
        BuiltIn = "builtin",
        Client = "client",
    }
}
