//! What Grove adds to the protocols: methods with the prefix `x-grove/`, the same on connections of every dialect.
//!
//! Each names its session, or one of its chats, by `channel`; version 1 may write `session`. Without a chat the main one
//! is meant. What a session has beside its conversation is [`workspace`]. [`import`] is about sessions that are
//! not there yet, [`history`] about those of other tools, and [`sessions`] about those of every source: none names one by
//! `channel`.
//!
//! Which of them a host serves it says in the answer to `initialize` ([`announcement`]).

pub mod announcement;
pub mod handover;
pub mod history;
pub mod import;
pub mod line_control;
pub mod removal;
pub mod sessions;
pub mod workspace;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// What every method's name begins with.
pub const PREFIX: &str = "x-grove/";

/// The methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Tree,
    Entries,
    Navigate,
    Label,
    Rename,
    Permissions,
    SetWorkingDirectory,
    Branch,
    Fork,
    Merge,
    Compact,
    Abort,
    Migrate,
    Workspace(workspace::WorkspaceMethod),
    Handover(handover::HandoverMethod),
    Import(import::ImportMethod),
    Removal(removal::RemovalMethod),
    History(history::HistoryMethod),
    Sessions(sessions::SessionsMethod),
}

impl Method {
    pub const ALL: [Self; 60] = [
        Self::Tree,
        Self::Entries,
        Self::Navigate,
        Self::Label,
        Self::Rename,
        Self::Permissions,
        Self::SetWorkingDirectory,
        Self::Branch,
        Self::Fork,
        Self::Merge,
        Self::Compact,
        Self::Abort,
        Self::Migrate,
        Self::Workspace(workspace::WorkspaceMethod::Manifest),
        Self::Workspace(workspace::WorkspaceMethod::Plan),
        Self::Workspace(workspace::WorkspaceMethod::SetPlan),
        Self::Workspace(workspace::WorkspaceMethod::Files),
        Self::Workspace(workspace::WorkspaceMethod::ReadFile),
        Self::Workspace(workspace::WorkspaceMethod::WriteFile),
        Self::Workspace(workspace::WorkspaceMethod::RemoveFile),
        Self::Workspace(workspace::WorkspaceMethod::Checkpoints),
        Self::Workspace(workspace::WorkspaceMethod::Checkpoint),
        Self::Workspace(workspace::WorkspaceMethod::Todos),
        Self::Handover(handover::HandoverMethod::Files),
        Self::Handover(handover::HandoverMethod::Read),
        Self::Handover(handover::HandoverMethod::Leave),
        Self::Import(import::ImportMethod::Begin),
        Self::Import(import::ImportMethod::Put),
        Self::Import(import::ImportMethod::Commit),
        Self::Import(import::ImportMethod::Abort),
        Self::Removal(removal::RemovalMethod::Disposed),
        Self::Removal(removal::RemovalMethod::Erase),
        Self::History(history::HistoryMethod::List),
        Self::History(history::HistoryMethod::Scan),
        Self::Sessions(sessions::SessionsMethod::List),
        Self::Sessions(sessions::SessionsMethod::Subscribe),
        Self::Sessions(sessions::SessionsMethod::Unsubscribe),
        Self::Sessions(sessions::SessionsMethod::Providers),
        Self::Sessions(sessions::SessionsMethod::Types),
        Self::Sessions(sessions::SessionsMethod::TypesForFolder),
        Self::Sessions(sessions::SessionsMethod::Open),
        Self::Sessions(sessions::SessionsMethod::OpenChat),
        Self::Sessions(sessions::SessionsMethod::OpenNewSessionView),
        Self::Sessions(sessions::SessionsMethod::Restore),
        Self::Sessions(sessions::SessionsMethod::Create),
        Self::Sessions(sessions::SessionsMethod::SetSessionType),
        Self::Sessions(sessions::SessionsMethod::UnsetNewSession),
        Self::Sessions(sessions::SessionsMethod::SendAndCreateChat),
        Self::Sessions(sessions::SessionsMethod::SendRequest),
        Self::Sessions(sessions::SessionsMethod::SetModel),
        Self::Sessions(sessions::SessionsMethod::RenameChat),
        Self::Sessions(sessions::SessionsMethod::Archive),
        Self::Sessions(sessions::SessionsMethod::Unarchive),
        Self::Sessions(sessions::SessionsMethod::Delete),
        Self::Sessions(sessions::SessionsMethod::DeleteChat),
        Self::Sessions(sessions::SessionsMethod::SetRead),
        Self::Sessions(sessions::SessionsMethod::SetActiveProvider),
        Self::Sessions(sessions::SessionsMethod::BrowseActions),
        Self::Sessions(sessions::SessionsMethod::Browse),
        Self::Sessions(sessions::SessionsMethod::AnswerTrust),
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Method::Tree => "x-grove/tree",
            Method::Entries => "x-grove/entries",
            Method::Navigate => "x-grove/navigate",
            Method::Label => "x-grove/label",
            Method::Rename => "x-grove/rename",
            Method::Permissions => "x-grove/permissions",
            Method::SetWorkingDirectory => "x-grove/setWorkingDirectory",
            Method::Branch => "x-grove/branch",
            Method::Fork => "x-grove/fork",
            Method::Merge => "x-grove/merge",
            Method::Compact => "x-grove/compact",
            Method::Abort => "x-grove/abort",
            Method::Migrate => "x-grove/migrate",
            Method::Workspace(method) => method.as_str(),
            Method::Handover(method) => method.as_str(),
            Method::Import(method) => method.as_str(),
            Method::Removal(method) => method.as_str(),
            Method::History(method) => method.as_str(),
            Method::Sessions(method) => method.as_str(),
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == name)
    }
}

/// The session or chat that a request is about; the rest of its params is its own.
#[derive(Clone, Debug, Deserialize)]
pub struct ChannelRef {
    #[serde(alias = "session")]
    pub channel: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TreeParams {
    /// `default`, `no-tools`, `user-only`, `labeled-only` or `all`.
    pub filter: Option<String>,
    /// Words that must all be in a row.
    pub search: Option<String>,
    /// Goes on behind the last page.
    pub cursor: Option<String>,
    pub limit: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeResult {
    pub rows: Vec<TreeRow>,
    /// How many there are in all.
    pub total: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// An entry of the log, in its place: depth first, the active branch first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeRow {
    pub id: String,
    /// The nearest entry above it that is shown.
    pub parent: Option<String>,
    pub depth: u32,
    /// How many forks there are above it.
    pub indent: u32,
    /// The entry's type in the log.
    pub kind: String,
    /// Who speaks: `user`, `assistant`, `toolResult`, or what the entry is.
    pub role: String,
    /// One line of it.
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<i64>,
    /// Whether it is on the way to the leaf.
    pub active: bool,
    pub leaf: bool,
    pub has_children: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NavigateParams {
    /// Where to go; null is before the first entry. It must be said: nobody goes there by forgetting it.
    #[serde(deserialize_with = "said")]
    pub entry: Option<String>,
    /// A name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Whether what is left is to be summarized where one goes to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub summarize: bool,
    /// What the summary should look at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Whether that takes the place of what a summarizer is usually told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace_instructions: bool,
}

/// Tells `null` from absent.
pub(crate) fn said<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(deserializer)
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NavigateResult {
    /// Whether anything changed: who goes to where they are stays there.
    pub moved: bool,
    pub leaf: Option<String>,
    /// The message that was taken back to be said anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What came with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Value>,
    /// The entry with the summary of what was left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_entry: Option<String>,
}

/// The log's lines, in the order in which they were written.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EntriesParams {
    /// Goes on behind what an answer before this one gave; without one it begins at the log's first entry.
    pub cursor: Option<String>,
    pub limit: Option<usize>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EntriesResult {
    /// As they stand in the log, Grove's own marks among them.
    pub entries: Vec<Box<RawValue>>,
    /// Where to go on, also when there is nothing more now: what is written later comes behind it.
    pub cursor: String,
    /// Whether there is more now.
    pub more: bool,
    pub leaf: Option<String>,
}

/// Brings what came of another branch to where one is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MergeParams {
    /// The end of that branch.
    pub entry: String,
    /// What the summary should look at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MergeResult {
    pub summary_entry: String,
    pub summary: String,
    pub leaf: Option<String>,
}

/// Puts a summary in place of the older part of the branch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CompactParams {
    /// What the summary should look at.
    pub instructions: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactResult {
    pub compaction_entry: String,
    pub summary: String,
    /// The first entry that the agent is still told as it is.
    pub first_kept_entry: Option<String>,
    /// How large the conversation was, in tokens, about.
    pub tokens_before: u64,
}

/// Whether there was a summary being made, which is given up now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AbortResult {
    pub aborted: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelParams {
    pub entry: String,
    /// Without one, or with an empty one, the entry has none any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelResult {
    pub leaf: Option<String>,
}

/// Gives a chat a name, and the session with its main one.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RenameParams {
    pub title: String,
}

/// Lists what a session may do without a person being asked, after revoking it where that is wanted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PermissionsParams {
    /// Revoke everything that allows something: `allowAll`, rules, folders and remembered answers. Denials stay.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub revoke: bool,
}

/// What a session may do without a person being asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PermissionsResult {
    /// Everything is allowed that no rule denies.
    pub allow_all: bool,
    pub approved: Vec<grove_core::PermissionRule>,
    pub denied: Vec<grove_core::PermissionRule>,
    /// Folders in which reading is allowed.
    pub directories: Vec<String>,
    /// Answers that a person gave for all times.
    pub remembered: Vec<grove_core::RememberedPermission>,
}

impl PermissionsResult {
    pub fn of(details: &grove_core::SessionDetails) -> Self {
        let grove_core::Permissions { allow_all, approved, denied, directories, primary: _ } =
            details.permissions.clone().unwrap_or_default();
        Self { allow_all, approved, denied, directories, remembered: details.remembered.clone() }
    }

    /// Whether anything is allowed without a person being asked.
    pub fn allows_anything(&self) -> bool {
        let remembers = self.remembered.iter().any(|known| known.option.allows);
        self.allow_all || !self.approved.is_empty() || !self.directories.is_empty() || remembers
    }
}

/// Has a session's agents work in another folder of the host's machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetWorkingDirectoryParams {
    /// An absolute path, a `file:` URI, or a path below `~`.
    pub directory: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetWorkingDirectoryResult {
    /// The folder's URI.
    pub directory: String,
}

/// It has that name now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenameResult {}

/// A new session with what was said before a message of the user.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BranchParams {
    /// The message, which is taken back to be said anew.
    pub entry: String,
}

/// A new session with everything that this one has.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ForkParams {
    /// What it is called; without one, as this one, and that it is a fork.
    pub title: Option<String>,
    /// The store that it is to lie in; without one, where this one lies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
}

/// Has the session lie in another store, under the same name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MigrateParams {
    pub store: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MigrateResult {
    pub store: String,
    /// How many files were copied and compared; none where it was there already.
    pub files: u64,
    pub bytes: u64,
}

/// The answer to `x-grove/branch` and `x-grove/fork`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSessionResult {
    /// The new session's URI.
    pub session: String,
    /// The message to begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What came with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Value>,
}
