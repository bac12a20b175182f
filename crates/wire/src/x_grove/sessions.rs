//! The sessions of every source in one list: this host's, other hosts', and other tools'.
//!
//! A client subscribes and then lists, page by page: it applies the changes that it gets from then on to the list, at
//! whichever page it is. Each client has a view of its own: its active session and chat, and its new session. A session
//! is named by its id, `providerId:localId`. No session is named by `channel` here.

mod call;
mod filter;
pub(crate) mod row;
pub(crate) mod waiting;

use serde::{Deserialize, Serialize};

pub use self::call::{SessionsCall, SessionsCallError, SessionsOutcome};
pub use self::filter::*;
pub use self::row::*;
pub use self::waiting::*;

/// The default and the maximum number of rows of a page.
pub const DEFAULT_LIST_ROWS: usize = 200;
pub const MAX_LIST_ROWS: usize = 1000;
/// The maximum number of sessions of one deletion.
pub const MAX_DELETED_SESSIONS: usize = 1000;

/// The notifications.
pub const CHANGED: &str = "x-grove/sessions/changed";
pub const VIEW: &str = "x-grove/sessions/view";

macro_rules! methods {
    ($($variant:ident => $name:literal),* $(,)?) => {
        /// The methods.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum SessionsMethod {
            $($variant,)*
        }

        impl SessionsMethod {
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(SessionsMethod::$variant => concat!("x-grove/sessions/", $name),)*
                }
            }
        }
    };
}

methods! {
    List => "list",
    Subscribe => "subscribe",
    Unsubscribe => "unsubscribe",
    Providers => "providers",
    Types => "types",
    TypesForFolder => "typesForFolder",
    Open => "open",
    OpenChat => "openChat",
    OpenNewSessionView => "openNewSessionView",
    Restore => "restore",
    Create => "create",
    SetSessionType => "setSessionType",
    UnsetNewSession => "unsetNewSession",
    SendAndCreateChat => "sendAndCreateChat",
    SendRequest => "sendRequest",
    SetModel => "setModel",
    RenameChat => "renameChat",
    Archive => "archive",
    Unarchive => "unarchive",
    Delete => "delete",
    DeleteChat => "deleteChat",
    SetRead => "setRead",
    SetActiveProvider => "setActiveProvider",
    BrowseActions => "browseActions",
    Browse => "browse",
    AnswerTrust => "answerTrust",
    Pin => "pin",
    Waiting => "waiting",
    Answer => "answer",
}

/// The page of a list; by default the first one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionsListParams {
    /// Continues after the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Lists matching sessions alone. All pages of a list need the same one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<SessionListFilter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grouping: Option<SessionListGrouping>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sort: Option<SessionListSort>,
}

/// Pinned sessions come first. The rest is in the requested order.
///
/// The order by creation never changes, so no row is missed between two pages. In the order of changes a session only
/// moves forward, and the client is told of the row that moved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionsListResult {
    pub sessions: Vec<SessionListRow>,
    /// The total number of rows that match.
    pub total: usize,
    /// The groups of the matching rows, in order, on the first page of a list by project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<SessionListGroup>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The view at the start of the subscription.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscribeResult {
    pub view: SessionsView,
}

/// A change of the list. Removals are applied first, then the rest: a known row is replaced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionListChange {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<SessionListRow>,
    /// The ids of removed sessions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<SessionListRow>,
    /// Temporary sessions that were replaced by permanent ones; the change of the list follows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<SessionReplacement>,
    /// All groups, if they or their headings have changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<SessionListGroup>>,
    /// True if the providers, their capabilities or their connections may have changed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub providers: bool,
    /// True if too many changes were dropped: list again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reset: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionReplacement {
    pub from: String,
    pub to: String,
}

/// The view of this client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionsView {
    /// The active session. Absent means the form for a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_session: Option<SessionListRow>,
    /// Its active chat, by URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_chat: Option<String>,
    /// The new session that was not sent yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_session: Option<SessionListRow>,
    /// The provider for new sessions. It is the same for all clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_provider_id: Option<String>,
    pub context: ContextKeys,
}

/// The context keys, by which views decide on their actions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContextKeys {
    pub is_new_chat_session: bool,
    pub active_session_provider_id: String,
    pub active_session_type: String,
    pub is_active_session_background_provider: bool,
    pub is_active_session_archived: bool,
    pub active_session_supports_multi_chat: bool,
    pub active_session_has_git_repository: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProvidersResult {
    /// In their order.
    pub providers: Vec<Provider>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Provider {
    pub id: String,
    pub label: String,
    pub icon: String,
    pub environment: ProviderEnvironment,
    pub availability: Availability,
    /// The reason why it is unreachable, and the remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The time of its listed sessions, if they are not current, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<u64>,
    pub attachments: Attachments,
}

/// The environment of a provider's sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ProviderEnvironment {
    ThisHost,
    OtherHost,
    History,
    Cloud,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Availability {
    Ready,
    Connecting,
    Away,
    Incompatible,
}

/// The kinds of attachments that a message may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Attachments {
    pub files: bool,
    pub folders: bool,
    pub selections: bool,
    pub images: bool,
}

/// Of a session, or by default of all providers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TypesParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FolderParams {
    /// A folder's or a repository's URI.
    pub folder: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TypesResult {
    pub types: Vec<SessionType>,
}

/// An agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionType {
    pub id: String,
    pub label: String,
    pub icon: String,
    /// The provider, if a folder was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenParams {
    /// The session's URI.
    pub resource: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRefParams {
    pub session: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatParams {
    pub session: String,
    pub chat: String,
}

/// Creates a session in a folder. Absent members are chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateParams {
    pub folder: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_type: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetSessionTypeParams {
    pub session: String,
    pub session_type: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SendParams {
    pub session: String,
    /// The chat for `sendRequest`; `sendAndCreateChat` creates one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<String>,
    pub query: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attached_context: Vec<ContextAttachment>,
}

/// An attachment of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ContextAttachment {
    File {
        uri: String,
    },
    Folder {
        uri: String,
    },
    /// Lines are counted from 1.
    Selection {
        uri: String,
        first_line: u32,
        last_line: u32,
        text: String,
    },
    /// The bytes are in base64.
    Image {
        media_type: String,
        data: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetModelParams {
    pub session: String,
    pub model: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RenameChatParams {
    pub session: String,
    pub chat: String,
    pub title: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteParams {
    /// At most [`MAX_DELETED_SESSIONS`].
    pub sessions: Vec<String>,
}

/// A failed deletion does not stop the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteResult {
    pub deleted: Vec<String>,
    /// The first error, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteChatResult {
    /// True if there was such a chat.
    pub deleted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetReadParams {
    pub session: String,
    pub read: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PinParams {
    pub session: String,
    pub pinned: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderParams {
    pub provider_id: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionResult {
    pub session: SessionListRow,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BrowseActionsResult {
    pub actions: Vec<BrowseAction>,
}

/// An action to look for a new session's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BrowseAction {
    pub id: String,
    pub label: String,
    pub icon: String,
    pub provider_id: String,
    pub provider_label: String,
}

/// Runs a browse action: first for its choices, then with the chosen one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BrowseParams {
    pub provider_id: String,
    pub action: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
}

/// The workspace if it was chosen, else the choices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BrowseResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<RowWorkspace>,
    pub offers: Vec<BrowseOffer>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BrowseOffer {
    pub uri: String,
    pub label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Records whether agents may work in a folder, replacing an earlier answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswerTrustParams {
    pub provider_id: String,
    pub folder: String,
    pub trusted: bool,
}

/// The error data if a folder must be trusted first: ask the person, send the answer with `answerTrust`, and retry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrustNeeded {
    pub provider_id: String,
    pub folder: String,
}
