//! Terminals and changesets.

use crate::ahp::macros::{records, unions};
use crate::ahp::state::{ContentRef, StringOrMarkdown, TerminalClaim, TextRange};
use crate::ahp::{Object, Uri};

records! {
    /// The channel is the URI of the new terminal, which the client chooses.
    pub struct CreateTerminalParams {
        pub channel: Uri,
        pub meta: Option<Object>,
        pub claim: TerminalClaim,
        pub name: Option<String>,
        pub cwd: Option<Uri>,
        pub cols: Option<u64>,
        pub rows: Option<u64>,
    }

    #[derive(Default)]
    pub struct InvokeChangesetOperationParams {
        pub channel: Uri,
        pub meta: Option<Object>,
        pub operation_id: String,
        /// Absent means the whole changeset.
        pub target: Option<ChangesetOperationTarget>,
    }

    #[derive(Default, Eq)]
    pub struct InvokeChangesetOperationResult {
        pub message: Option<StringOrMarkdown>,
        pub follow_up: Option<ChangesetOperationFollowUp>,
    }

    /// A resource to open afterwards.
    #[derive(Default, Eq)]
    pub struct ChangesetOperationFollowUp {
        pub content: ContentRef,
        pub external: Option<bool>,
    }

    #[derive(Default, Eq)]
    pub struct ResourceTarget {
        pub resource: Uri,
        /// `before` or `after`.
        pub side: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct RangeTarget {
        pub resource: Uri,
        /// `before` or `after`.
        pub side: Option<String>,
        pub range: TextRange,
    }
}

unions! {
    pub enum ChangesetOperationTarget by "kind" {
        "resource" => Resource(ResourceTarget),
        "range" => Range(RangeTarget),
    }
}
