//! A changeset's channel: changed files, and the operations on them.

use super::{ErrorInfo, FileEdit, StringOrMarkdown};
use crate::ahp::Object;
use crate::ahp::macros::{records, words};

records! {
    /// A changeset in the catalogue of a session or a chat.
    #[derive(Default)]
    pub struct Changeset {
        pub label: String,
        /// Its URI, once the variables in braces are replaced.
        pub uri_template: String,
        pub description: Option<String>,
        /// `session`, `branch`, `uncommitted`, `turn`, `compare-turns`, or a host's own kind.
        pub change_kind: String,
        pub capabilities: Option<ChangesetCapabilities>,
    }

    #[derive(Default)]
    pub struct ChangesetCapabilities {
        /// Files can be marked as reviewed.
        pub review: Option<Object>,
    }

    /// The state of a changeset's channel.
    pub struct ChangesetState {
        pub status: ChangesetStatus,
        pub error: Option<ErrorInfo>,
        pub files: Vec<ChangesetFile>,
        pub operations: Option<Vec<ChangesetOperation>>,
    }

    #[derive(Default)]
    pub struct ChangesetFile {
        pub id: String,
        pub edit: FileEdit,
        pub reviewed: Option<bool>,
        pub meta: Option<Object>,
    }

    pub struct ChangesetOperation {
        pub id: String,
        pub label: String,
        pub description: Option<String>,
        /// The possible targets.
        pub scopes: Vec<ChangesetOperationScope>,
        /// A question to ask before running it.
        pub confirmation: Option<StringOrMarkdown>,
        pub icon: Option<String>,
        pub group: Option<String>,
        pub status: ChangesetOperationStatus,
        pub error: Option<ErrorInfo>,
    }
}

words! {
    pub enum ChangesetStatus {
        Computing = "computing",
        Recomputing = "recomputing",
        Ready = "ready",
        Error = "error",
    }

    pub enum ChangesetOperationStatus {
        Idle = "idle",
        Running = "running",
        Error = "error",
        Disabled = "disabled",
    }

    pub enum ChangesetOperationScope {
        Changeset = "changeset",
        Resource = "resource",
        Range = "range",
    }
}
