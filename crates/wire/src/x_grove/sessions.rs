//! The sessions of every source in one list: this host's, those of other hosts, and what other tools left.
//!
//! A client subscribes and then lists, page by page: what it is told from then on is put into the list, whatever page it is
//! at. Each client has a view of its own: which session and chat it looks at, and which session it is making. A session is
//! named by its id, `providerId:localId`. No session is named by `channel` here.

mod call;
mod row;

use serde::{Deserialize, Serialize};

pub use self::call::{SessionsCall, SessionsCallError, SessionsOutcome};
pub use self::row::*;

/// How many rows a page has when nothing is said, and at most.
pub const DEFAULT_LIST_ROWS: usize = 200;
pub const MAX_LIST_ROWS: usize = 1000;
/// How many sessions are deleted at once.
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
}

/// Which rows are wanted; without anything, the first ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionsListParams {
    /// Goes on behind the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// The session that was made last first. That never changes, so no row is missed between two pages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionsListResult {
    pub sessions: Vec<SessionListRow>,
    /// How many there are in all.
    pub total: usize,
    /// The groups, in their order. The first page has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<SessionListGroup>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// What is looked at when the subscription begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscribeResult {
    pub view: SessionsView,
}

/// What changed in the list. What was removed is taken out first, then the rest is put in: a row that is known takes the place
/// of the one before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionListChange {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<SessionListRow>,
    /// The ids of those that are not there any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<SessionListRow>,
    /// Temporary sessions that gave their place to those that came of them; the change of the list follows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<SessionReplacement>,
    /// All groups, where they or their headings are others than before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<SessionListGroup>>,
    /// Whether providers, what they offer or whether they can be reached may be others than before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub providers: bool,
    /// So much happened that some of it was not told: list anew.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reset: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionReplacement {
    pub from: String,
    pub to: String,
}

/// What this client looks at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionsView {
    /// The session that is looked at. Without one, the form for a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_session: Option<SessionListRow>,
    /// Which of its chats, by its URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_chat: Option<String>,
    /// The session that is being made and was not sent yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_session: Option<SessionListRow>,
    /// The provider that new sessions are begun with. It is the same for all clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_provider_id: Option<String>,
    pub context: ContextKeys,
}

/// The context keys, by which views decide what they offer.
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
    /// Why it cannot be reached, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When its sessions were as they are listed, where that is not now, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<u64>,
    pub attachments: Attachments,
}

/// What the sessions of a provider run on.
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

/// What can be attached to a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Attachments {
    pub files: bool,
    pub folders: bool,
    pub selections: bool,
    pub images: bool,
}

/// Of a session, or without one of all providers.
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

/// An agent backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionType {
    pub id: String,
    pub label: String,
    pub icon: String,
    /// Whose it is, where a folder was asked for.
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

/// A session in a folder. What is not said is chosen.
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
    /// `sendRequest` says to which chat; `sendAndCreateChat` makes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<String>,
    pub query: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attached_context: Vec<ContextAttachment>,
}

/// Something that a message is about.
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

/// Where one cannot be deleted, the others are nevertheless.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteResult {
    pub deleted: Vec<String>,
    /// The first thing that went wrong, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteChatResult {
    /// Whether there was such a chat.
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

/// A way in which a folder for a new session can be looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BrowseAction {
    pub id: String,
    pub label: String,
    pub icon: String,
    pub provider_id: String,
    pub provider_label: String,
}

/// Runs such an action: once for what it offers, and again with what was chosen of it.
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

/// The workspace where it was chosen, else what there is to choose from.
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

/// Says whether agents may work in a folder, whatever was said before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswerTrustParams {
    pub provider_id: String,
    pub folder: String,
    pub trusted: bool,
}

/// What an error says beside its words where a folder must be trusted first: ask the person, say what they answered with
/// `answerTrust`, and send again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrustNeeded {
    pub provider_id: String,
    pub folder: String,
}
