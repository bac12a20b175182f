//! Sessions, chats, settings, completions, tokens.

use crate::ahp::macros::{records, unions, words};
use crate::ahp::state::{
    Message, MessageAttachment, SessionActiveClient, SessionConfigSchema, SessionSummary, SideChatSelection,
};
use crate::ahp::{Object, Uri};

records! {
    #[derive(Default)]
    pub struct ListSessionsParams {
        pub channel: Uri,
        pub meta: Option<Object>,
        pub limit: Option<u64>,
        pub cursor: Option<String>,
    }

    /// The most recently modified session comes first.
    #[derive(Default)]
    pub struct ListSessionsResult {
        pub next_cursor: Option<String>,
        pub items: Vec<SessionSummary>,
    }

    /// The channel is the URI of the new session, which the client chooses.
    #[derive(Default)]
    pub struct CreateSessionParams {
        pub channel: Uri,
        pub meta: Option<Object>,
        pub provider: Option<String>,
        pub working_directories: Option<Vec<Uri>>,
        pub config: Option<Object>,
        pub active_client: Option<SessionActiveClient>,
        pub progress_token: Option<String>,
    }

    /// The channel is the session's; the client chooses the chat's URI.
    #[derive(Default)]
    pub struct CreateChatParams {
        pub channel: Uri,
        pub meta: Option<Object>,
        pub chat: Uri,
        pub initial_message: Option<Message>,
        pub source: Option<ChatSource>,
        pub working_directories: Option<Vec<Uri>>,
    }

    #[derive(Default, Eq)]
    pub struct ForkChatSource {
        pub chat: Uri,
        pub turn_id: String,
    }

    #[derive(Default, Eq)]
    pub struct SideChatSource {
        pub chat: Uri,
        pub turn_id: String,
        pub selection: Option<SideChatSelection>,
    }

    pub struct MoveChatParams {
        pub channel: Uri,
        pub meta: Option<Object>,
        pub destination: ChatMoveDestination,
    }

    #[derive(Default, Eq)]
    pub struct MoveToSession {
        pub session: Uri,
        /// The preceding chat; absent means the end.
        pub after: Option<Uri>,
    }

    #[derive(Default, Eq)]
    pub struct MoveToNewSession {}

    #[derive(Default, Eq)]
    pub struct MoveChatResult {
        pub session: Uri,
    }

    /// Older turns are sent as `chat/turnsLoaded` before the result, which is empty.
    #[derive(Default)]
    pub struct FetchTurnsParams {
        pub channel: Uri,
        pub meta: Option<Object>,
        pub cursor: Option<String>,
    }

    pub struct CompletionsParams {
        pub channel: Uri,
        pub meta: Option<Object>,
        pub kind: CompletionItemKind,
        pub text: String,
        /// In UTF-16 units.
        pub offset: u64,
    }

    #[derive(Default)]
    pub struct CompletionsResult {
        pub items: Vec<CompletionItem>,
    }

    pub struct CompletionItem {
        pub insert_text: String,
        pub range_start: Option<u64>,
        pub range_end: Option<u64>,
        pub attachment: MessageAttachment,
    }

    #[derive(Default)]
    pub struct ResolveSessionConfigParams {
        pub channel: Uri,
        pub meta: Option<Object>,
        pub provider: Option<String>,
        pub working_directory: Option<Uri>,
        pub config: Option<Object>,
    }

    #[derive(Default)]
    pub struct ResolveSessionConfigResult {
        pub schema: SessionConfigSchema,
        pub values: Object,
    }

    #[derive(Default)]
    pub struct SessionConfigCompletionsParams {
        pub channel: Uri,
        pub meta: Option<Object>,
        pub provider: Option<String>,
        pub working_directory: Option<Uri>,
        pub config: Option<Object>,
        pub property: String,
        pub query: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct SessionConfigCompletionsResult {
        pub items: Vec<SessionConfigValueItem>,
    }

    #[derive(Default, Eq)]
    pub struct SessionConfigValueItem {
        pub value: String,
        pub label: String,
        pub description: Option<String>,
    }

}

/// Params of `authenticate`.
#[derive(Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AuthenticateParams {
    pub channel: Uri,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Object>,
    pub resource: String,
    /// An empty token revokes the earlier one.
    pub token: String,
    /// Seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
}

/// Prints everything but the token, so that none gets into a log.
impl std::fmt::Debug for AuthenticateParams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthenticateParams")
            .field("channel", &self.channel)
            .field("resource", &self.resource)
            .field("expires_in", &self.expires_in)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

unions! {
    /// The origin of a new chat's turns.
    pub enum ChatSource by "kind" {
        "fork" => Fork(ForkChatSource),
        "sideChat" => SideChat(SideChatSource),
    }

    pub enum ChatMoveDestination by "kind" {
        "session" => Session(MoveToSession),
        "newSession" => NewSession(MoveToNewSession),
    }
}

words! {
    pub enum CompletionItemKind {
        UserMessage = "userMessage",
    }
}
