//! MCP servers of a session.

use super::{CustomizationEnablement, ErrorInfo, Icon, McpAuthRequirement, TextRange};
use crate::ahp::macros::{records, unions};
use crate::ahp::{Object, Uri};

records! {
    pub struct McpServerCustomization {
        pub id: String,
        pub uri: Uri,
        pub name: String,
        pub icons: Option<Vec<Icon>>,
        pub range: Option<TextRange>,
        pub meta: Option<Object>,
        pub enablement: Option<Vec<CustomizationEnablement>>,
        pub state: McpServerState,
        /// The side channel on which a client may talk to the server.
        pub channel: Option<Uri>,
        pub mcp_app: Option<McpServerCustomizationApps>,
    }

    #[derive(Default)]
    pub struct McpServerCustomizationApps {
        pub capabilities: AhpMcpUiHostCapabilities,
    }

    /// The capabilities of a host for the pages of an MCP server. Their contents belong to MCP.
    #[derive(Default)]
    pub struct AhpMcpUiHostCapabilities {
        pub server_tools: Option<Object>,
        pub server_resources: Option<Object>,
        pub logging: Option<Object>,
        pub sampling: Option<Object>,
    }

    #[derive(Default, Eq)]
    pub struct McpServerStarting {
        /// True if messages wait for it. `session/mcpServerBackgroundRequested` stops that.
        pub blocking: Option<bool>,
    }

    #[derive(Default, Eq)]
    pub struct McpServerReady {}

    #[derive(Default)]
    pub struct McpServerFailed {
        pub error: ErrorInfo,
    }

    #[derive(Default, Eq)]
    pub struct McpServerStopped {}
}

unions! {
    pub enum McpServerState by "kind" {
        "starting" => Starting(McpServerStarting),
        "ready" => Ready(McpServerReady),
        "authRequired" => AuthRequired(Box<McpAuthRequirement>),
        "error" => Error(McpServerFailed),
        "stopped" => Stopped(McpServerStopped),
    }
}
