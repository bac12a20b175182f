//! A terminal's channel.

use serde::{Deserialize, Serialize};

use crate::ahp::Uri;
use crate::ahp::macros::{records, unions};

records! {
    /// The state of a terminal's channel.
    pub struct TerminalState {
        pub title: String,
        pub cwd: Option<Uri>,
        pub cols: Option<u64>,
        pub rows: Option<u64>,
        pub content: Vec<TerminalContentPart>,
        pub lifecycle: TerminalLifecycle,
        pub claim: TerminalClaim,
        pub supports_command_detection: Option<bool>,
        pub is_pty: Option<bool>,
    }

    /// A terminal's row in the root state.
    pub struct TerminalInfo {
        pub resource: Uri,
        pub title: String,
        pub claim: TerminalClaim,
        pub lifecycle: TerminalLifecycle,
    }

    #[derive(Default, Eq)]
    pub struct TerminalClientClaim {
        pub client_id: String,
    }

    #[derive(Default, Eq)]
    pub struct TerminalSessionClaim {
        pub session: Uri,
        pub chat: Uri,
        pub turn_id: Option<String>,
        pub tool_call_id: Option<String>,
    }

    /// Output that belongs to no known command.
    #[derive(Default, Eq)]
    pub struct TerminalUnclassifiedPart {
        pub value: String,
    }

    #[derive(Default, Eq)]
    pub struct TerminalCommandPart {
        pub command_id: String,
        pub command_line: String,
        pub output: String,
        /// Milliseconds since 1970.
        pub timestamp: u64,
        pub is_complete: bool,
        pub exit_code: Option<i64>,
        pub duration_ms: Option<u64>,
    }

    /// The result of a command that a tool ran.
    #[derive(Default, Eq)]
    pub struct TerminalCommandResult {
        pub exit_code: Option<i64>,
        pub preview: Option<String>,
        pub truncated: Option<bool>,
    }
}

unions! {
    pub enum TerminalContentPart by "type" {
        "unclassified" => Unclassified(TerminalUnclassifiedPart),
        "command" => Command(TerminalCommandPart),
    }
}

/// The user of a terminal. The protocol closes this list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum TerminalClaim {
    Client(TerminalClientClaim),
    Session(TerminalSessionClaim),
}

/// The state of a terminal's process. The protocol closes this list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "status", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum TerminalLifecycle {
    Running,
    Exited {
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i64>,
    },
}
