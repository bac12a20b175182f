//! Actions on a session.

use crate::ahp::macros::records;
use crate::ahp::state::{
    Changeset, ChatSummary, Customization, CustomizationEnablement, ErrorInfo, McpServerState, PartialChatSummary,
    SessionActiveClient, SessionInputRequest, ToolDefinition,
};
use crate::ahp::{Object, Uri};

actions! {
    pub enum SessionAction {
        "session/ready" Host => Ready(SessionReady),
        "session/creationFailed" Host => CreationFailed(SessionCreationFailed),
        "session/chatAdded" Host => ChatAdded(SessionChatAdded),
        "session/chatRemoved" Host => ChatRemoved(SessionChatRemoved),
        "session/chatUpdated" Host => ChatUpdated(SessionChatUpdated),
        "session/chatsReordered" Host => ChatsReordered(SessionChatsReordered),
        "session/defaultChatChanged" Host => DefaultChatChanged(SessionDefaultChatChanged),
        "session/titleChanged" Client => TitleChanged(SessionTitleChanged),
        "session/isReadChanged" Client => IsReadChanged(SessionIsReadChanged),
        "session/isArchivedChanged" Client => IsArchivedChanged(SessionIsArchivedChanged),
        "session/activityChanged" Host => ActivityChanged(SessionActivityChanged),
        "session/changesetsChanged" Host => ChangesetsChanged(SessionChangesetsChanged),
        "session/serverToolsChanged" Host => ServerToolsChanged(SessionServerToolsChanged),
        "session/activeClientSet" Client => ActiveClientSet(SessionActiveClientSet),
        "session/activeClientRemoved" Client => ActiveClientRemoved(SessionActiveClientRemoved),
        "session/workingDirectorySet" Client => WorkingDirectorySet(SessionWorkingDirectorySet),
        "session/workingDirectoryRemoved" Client => WorkingDirectoryRemoved(SessionWorkingDirectoryRemoved),
        "session/workingDirectoryReplaced" Client => WorkingDirectoryReplaced(SessionWorkingDirectoryReplaced),
        "session/inputNeededSet" Host => InputNeededSet(Box<SessionInputNeededSet>),
        "session/inputNeededRemoved" Host => InputNeededRemoved(SessionInputNeededRemoved),
        "session/customizationsChanged" Host => CustomizationsChanged(SessionCustomizationsChanged),
        "session/customizationToggled" Client => CustomizationToggled(SessionCustomizationToggled),
        "session/customizationUpdated" Host => CustomizationUpdated(Box<SessionCustomizationUpdated>),
        "session/customizationRemoved" Host => CustomizationRemoved(SessionCustomizationRemoved),
        "session/mcpServerStateChanged" Host => McpServerStateChanged(SessionMcpServerStateChanged),
        "session/mcpServerStartRequested" Client => McpServerStartRequested(SessionMcpServerStartRequested),
        "session/mcpServerStopRequested" Client => McpServerStopRequested(SessionMcpServerStopRequested),
        "session/mcpServerBackgroundRequested" Client =>
            McpServerBackgroundRequested(SessionMcpServerBackgroundRequested),
        "session/configChanged" Client => ConfigChanged(SessionConfigChanged),
        "session/metaChanged" Host => MetaChanged(SessionMetaChanged),
    }
}

records! {
    pub struct SessionReady {}

    pub struct SessionCreationFailed {
        pub error: ErrorInfo,
    }

    /// Adds a chat, or replaces one of the same URI.
    pub struct SessionChatAdded {
        pub summary: ChatSummary,
    }

    pub struct SessionChatRemoved {
        pub chat: Uri,
    }

    pub struct SessionChatUpdated {
        pub chat: Uri,
        pub changes: PartialChatSummary,
    }

    /// The order of all chats. An order that does not name exactly the existing chats changes nothing.
    pub struct SessionChatsReordered {
        pub chats: Vec<Uri>,
    }

    pub struct SessionDefaultChatChanged {
        pub default_chat: Option<Uri>,
    }

    pub struct SessionTitleChanged {
        pub title: String,
    }

    pub struct SessionIsReadChanged {
        pub is_read: bool,
    }

    pub struct SessionIsArchivedChanged {
        pub is_archived: bool,
    }

    pub struct SessionActivityChanged {
        pub activity: Option<String>,
    }

    pub struct SessionChangesetsChanged {
        pub changesets: Option<Vec<Changeset>>,
    }

    pub struct SessionServerToolsChanged {
        pub tools: Vec<ToolDefinition>,
    }

    /// Adds a client that takes part, or updates its tools and plugins.
    pub struct SessionActiveClientSet {
        pub active_client: SessionActiveClient,
    }

    pub struct SessionActiveClientRemoved {
        pub client_id: String,
    }

    pub struct SessionWorkingDirectorySet {
        pub directory: Uri,
    }

    pub struct SessionWorkingDirectoryRemoved {
        pub directory: Uri,
    }

    pub struct SessionWorkingDirectoryReplaced {
        pub directory: Uri,
        pub replacement: Uri,
    }

    pub struct SessionInputNeededSet {
        pub request: SessionInputRequest,
    }

    pub struct SessionInputNeededRemoved {
        pub id: String,
    }

    pub struct SessionCustomizationsChanged {
        pub customizations: Vec<Customization>,
    }

    /// All decisions on one customization; earlier ones are dropped.
    pub struct SessionCustomizationToggled {
        pub id: String,
        pub enablement: Vec<CustomizationEnablement>,
    }

    pub struct SessionCustomizationUpdated {
        pub customization: Customization,
    }

    pub struct SessionCustomizationRemoved {
        pub id: String,
    }

    /// An absent channel means that there is none any more.
    pub struct SessionMcpServerStateChanged {
        pub id: String,
        pub state: McpServerState,
        pub channel: Option<Uri>,
    }

    pub struct SessionMcpServerStartRequested {
        pub id: String,
    }

    pub struct SessionMcpServerStopRequested {
        pub id: String,
    }

    pub struct SessionMcpServerBackgroundRequested {
        pub id: String,
    }

    /// Merges or replaces values.
    pub struct SessionConfigChanged {
        pub config: Object,
        pub replace: Option<bool>,
    }

    /// Replaces the whole `_meta`.
    pub struct SessionMetaChanged {
        pub meta: Option<Object>,
    }
}
