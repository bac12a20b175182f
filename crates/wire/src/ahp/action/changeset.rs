//! Actions on a changeset.

use crate::ahp::macros::records;
use crate::ahp::state::{ChangesetFile, ChangesetOperation, ChangesetOperationStatus, ChangesetStatus, ErrorInfo};

actions! {
    pub enum ChangesetAction {
        "changeset/statusChanged" Host => StatusChanged(ChangesetStatusChanged),
        "changeset/fileSet" Host => FileSet(ChangesetFileSet),
        "changeset/fileRemoved" Host => FileRemoved(ChangesetFileRemoved),
        "changeset/filesReviewChanged" Client => FilesReviewChanged(ChangesetFilesReviewChanged),
        "changeset/contentChanged" Host => ContentChanged(ChangesetContentChanged),
        "changeset/operationsChanged" Host => OperationsChanged(ChangesetOperationsChanged),
        "changeset/operationStatusChanged" Host => OperationStatusChanged(ChangesetOperationStatusChanged),
        "changeset/cleared" Host => Cleared(ChangesetCleared),
    }
}

records! {
    pub struct ChangesetStatusChanged {
        pub status: ChangesetStatus,
        pub error: Option<ErrorInfo>,
    }

    pub struct ChangesetFileSet {
        pub file: ChangesetFile,
    }

    pub struct ChangesetFileRemoved {
        pub file_id: String,
    }

    pub struct ChangesetFilesReviewChanged {
        /// The files' ids.
        pub files: Vec<String>,
        pub reviewed: bool,
    }

    /// Replaces all files.
    pub struct ChangesetContentChanged {
        pub files: Vec<ChangesetFile>,
        pub operations: Option<Vec<ChangesetOperation>>,
    }

    pub struct ChangesetOperationsChanged {
        pub operations: Option<Vec<ChangesetOperation>>,
    }

    pub struct ChangesetOperationStatusChanged {
        pub operation_id: String,
        pub status: ChangesetOperationStatus,
        pub error: Option<ErrorInfo>,
    }

    pub struct ChangesetCleared {}
}
