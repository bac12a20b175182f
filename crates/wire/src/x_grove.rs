//! Grove's additions to the protocols: methods with the prefix `x-grove/`, the same in every dialect.
//!
//! Each names its session, or one of its chats, by `channel`; version 1 may write `session`. Without a chat the main
//! one is used. [`presence`] is about the clients of a session, [`workspace`] about its data beside its conversation,
//! [`policy`] about a pending permission request, [`import`] about sessions that do not exist yet, [`history`] about those
//! of other tools, [`sessions`] about those of every source, [`tokens`] about the tokens of the host, and [`notify`] about
//! the devices that are told: the last five name no `channel`.
//!
//! A host announces the methods that it serves in the result of `initialize` ([`announcement`]).

pub mod administration;
pub mod announcement;
pub mod handover;
pub mod history;
pub mod import;
pub mod line_control;
pub mod notify;
pub mod policy;
pub mod presence;
pub mod removal;
pub mod sessions;
pub mod tokens;
pub mod workspace;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// The prefix of every method's name.
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
    Setup,
    Workspace(workspace::WorkspaceMethod),
    Handover(handover::HandoverMethod),
    Import(import::ImportMethod),
    Removal(removal::RemovalMethod),
    History(history::HistoryMethod),
    Sessions(sessions::SessionsMethod),
    Tokens(tokens::TokensMethod),
    Policy(policy::PolicyMethod),
    Notify(notify::NotifyMethod),
    Presence,
    Administration(administration::AdministrationMethod),
}

impl Method {
    pub const ALL: [Self; 96] = [
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
        Self::Setup,
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
        Self::History(history::HistoryMethod::Import),
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
        Self::Sessions(sessions::SessionsMethod::Pin),
        Self::Sessions(sessions::SessionsMethod::Waiting),
        Self::Sessions(sessions::SessionsMethod::Answer),
        Self::Tokens(tokens::TokensMethod::List),
        Self::Tokens(tokens::TokensMethod::Add),
        Self::Tokens(tokens::TokensMethod::Revoke),
        Self::Tokens(tokens::TokensMethod::Rotate),
        Self::Tokens(tokens::TokensMethod::IssueCode),
        Self::Policy(policy::PolicyMethod::Offers),
        Self::Policy(policy::PolicyMethod::Allow),
        Self::Notify(notify::NotifyMethod::Key),
        Self::Notify(notify::NotifyMethod::Subscribe),
        Self::Notify(notify::NotifyMethod::Unsubscribe),
        Self::Notify(notify::NotifyMethod::List),
        Self::Notify(notify::NotifyMethod::Test),
        Self::Presence,
        Self::Administration(administration::AdministrationMethod::ListAgents),
        Self::Administration(administration::AdministrationMethod::CheckAgents),
        Self::Administration(administration::AdministrationMethod::PlanInstall),
        Self::Administration(administration::AdministrationMethod::Install),
        Self::Administration(administration::AdministrationMethod::InstallStatus),
        Self::Administration(administration::AdministrationMethod::CancelInstall),
        Self::Administration(administration::AdministrationMethod::LogIn),
        Self::Administration(administration::AdministrationMethod::ListHosts),
        Self::Administration(administration::AdministrationMethod::CheckHosts),
        Self::Administration(administration::AdministrationMethod::AddHost),
        Self::Administration(administration::AdministrationMethod::RemoveHost),
        Self::Administration(administration::AdministrationMethod::Rules),
        Self::Administration(administration::AdministrationMethod::CheckRules),
        Self::Administration(administration::AdministrationMethod::TestRules),
        Self::Administration(administration::AdministrationMethod::SuggestRules),
        Self::Administration(administration::AdministrationMethod::AddRules),
        Self::Administration(administration::AdministrationMethod::RemoveRule),
        Self::Administration(administration::AdministrationMethod::ListSettings),
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
            Method::Setup => "x-grove/setup",
            Method::Workspace(method) => method.as_str(),
            Method::Handover(method) => method.as_str(),
            Method::Import(method) => method.as_str(),
            Method::Removal(method) => method.as_str(),
            Method::History(method) => method.as_str(),
            Method::Sessions(method) => method.as_str(),
            Method::Tokens(method) => method.as_str(),
            Method::Policy(method) => method.as_str(),
            Method::Notify(method) => method.as_str(),
            Method::Presence => "x-grove/presence",
            Method::Administration(method) => method.as_str(),
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == name)
    }
}

/// The session or chat of a request; further params depend on the method.
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
    /// Continues after the last page.
    pub cursor: Option<String>,
    pub limit: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeResult {
    pub rows: Vec<TreeRow>,
    /// The total number of rows.
    pub total: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// An entry of the log in tree order: depth first, the active branch first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeRow {
    pub id: String,
    /// The nearest shown ancestor.
    pub parent: Option<String>,
    pub depth: u32,
    /// The number of forks above it.
    pub indent: u32,
    /// The entry's type in the log.
    pub kind: String,
    /// The speaker: `user`, `assistant`, `toolResult`, or the entry's type.
    pub role: String,
    /// A preview of one line.
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<i64>,
    /// True if it is on the path to the leaf.
    pub active: bool,
    pub leaf: bool,
    pub has_children: bool,
    /// The turn that a user message begins. Another branch may have a turn of the same id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NavigateParams {
    /// The target; `null` is before the first entry. The member is required, so that it cannot be forgotten.
    #[serde(deserialize_with = "said")]
    pub entry: Option<String>,
    /// A label for the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// True to summarize the abandoned branch and attach the summary at the target.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub summarize: bool,
    /// Instructions for the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// True if the instructions replace the default prompt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace_instructions: bool,
}

/// Distinguishes `null` from absent.
pub(crate) fn said<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(deserializer)
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NavigateResult {
    /// False if the target was the current position.
    pub moved: bool,
    pub leaf: Option<String>,
    /// The user message, returned for editing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The message's attachments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Value>,
    /// The entry with the summary of the abandoned branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_entry: Option<String>,
}

/// Requests the log's lines, in the order in which they were written.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EntriesParams {
    /// Continues after an earlier result; without it, the result begins at the log's first entry.
    pub cursor: Option<String>,
    pub limit: Option<usize>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EntriesResult {
    /// The raw lines of the log, Grove's own marks included.
    pub entries: Vec<Box<RawValue>>,
    /// The cursor for the next request, also at the end: later entries come after it.
    pub cursor: String,
    /// True if there are more now.
    pub more: bool,
    pub leaf: Option<String>,
}

/// Adds a summary of another branch at the current position.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MergeParams {
    /// The end of that branch.
    pub entry: String,
    /// Instructions for the summary.
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

/// Replaces the older part of the branch by a summary.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CompactParams {
    /// Instructions for the summary.
    pub instructions: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactResult {
    pub compaction_entry: String,
    pub summary: String,
    /// The first entry that the agent still gets unchanged.
    pub first_kept_entry: Option<String>,
    /// The approximate size of the conversation in tokens.
    pub tokens_before: u64,
}

/// The result of `x-grove/abort`: `aborted` is true if a summary was being made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AbortResult {
    pub aborted: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelParams {
    pub entry: String,
    /// Absent or empty removes the entry's label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelResult {
    pub leaf: Option<String>,
}

/// Names a chat, and with the main one the session.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RenameParams {
    pub title: String,
}

/// Lists a session's permissions without asking, after revoking them if `revoke` is set.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PermissionsParams {
    /// Revokes everything that is allowed: `allowAll`, rules, folders and remembered answers. Denials stay.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub revoke: bool,
}

/// A session's permissions without asking.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PermissionsResult {
    /// Allows everything that no rule denies.
    pub allow_all: bool,
    pub approved: Vec<grove_core::PermissionRule>,
    pub denied: Vec<grove_core::PermissionRule>,
    /// Folders in which reading is allowed.
    pub directories: Vec<String>,
    /// Rules of the policy grammar, in TOML.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policy_rules: Vec<String>,
    /// A person's remembered answers.
    pub remembered: Vec<grove_core::RememberedPermission>,
}

impl PermissionsResult {
    pub fn of(details: &grove_core::SessionDetails) -> Self {
        let grove_core::Permissions { allow_all, approved, denied, directories, policy_rules, primary: _ } =
            details.permissions.clone().unwrap_or_default();
        Self { allow_all, approved, denied, directories, policy_rules, remembered: details.remembered.clone() }
    }

    /// True if anything is allowed without asking a person.
    pub fn allows_anything(&self) -> bool {
        let remembers = self.remembered.iter().any(|known| known.option.allows);
        let has_rules = !self.approved.is_empty() || !self.policy_rules.is_empty();
        self.allow_all || has_rules || !self.directories.is_empty() || remembers
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

/// Creates a session from the conversation before a user message, to rephrase that message.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BranchParams {
    /// The message, returned for editing.
    pub entry: String,
}

/// Creates a full copy of this session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ForkParams {
    /// The title; by default this session's, marked as a fork.
    pub title: Option<String>,
    /// The store of the copy; by default this session's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
}

/// Changes what the session's agent is configured with. Members that are not set stay as they are.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SetupParams {
    /// All MCP servers: `{name, type: "stdio", command, args?, env?}`, or `{name, type: "http" | "sse", url, headers?}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_servers: Option<Vec<serde_json::Value>>,
    /// `{mode: "append" | "replace", content}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_message: Option<serde_json::Value>,
    /// `{available?, excluded?}`, lists of names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_filter: Option<serde_json::Value>,
}

impl fmt::Debug for SetupParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The values may be secrets.
        f.debug_struct("SetupParams").finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupResult {}

/// Moves the session to another store, under the same name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MigrateParams {
    pub store: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MigrateResult {
    pub store: String,
    /// The number of copied and verified files; 0 if it was there already.
    pub files: u64,
    pub bytes: u64,
}

/// The result of `x-grove/branch` and `x-grove/fork`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSessionResult {
    /// The new session's URI.
    pub session: String,
    /// The message to edit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The message's attachments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Value>,
}
