//! A session's workspace beside its conversation: plan, files, checkpoints.

use super::Nullable;
use crate::ahp::macros::records;

records! {
    #[derive(Default, Eq)]
    pub struct PlanReadResult {
        pub exists: bool,
        #[serde(default)]
        pub content: Nullable<String>,
        #[serde(default)]
        pub path: Nullable<String>,
    }

    #[derive(Eq)]
    pub struct PlanUpdateParams {
        pub session_id: String,
        pub content: String,
    }

    #[derive(Default, Eq)]
    pub struct WorkspaceResult {
        #[serde(default)]
        pub workspace: Nullable<Workspace>,
        pub path: Option<String>,
    }

    /// A session's manifest. Its keys are those of the file.
    #[derive(Default, Eq)]
    pub struct Workspace {
        pub id: String,
        pub cwd: Option<String>,
        #[serde(rename = "git_root")]
        pub git_root: Option<String>,
        pub repository: Option<String>,
        pub branch: Option<String>,
        pub name: Option<String>,
        #[serde(rename = "client_name")]
        pub client_name: Option<String>,
        #[serde(rename = "user_named")]
        pub user_named: Option<bool>,
        #[serde(rename = "summary_count")]
        pub summary_count: Option<u64>,
        #[serde(rename = "created_at")]
        pub created_at: Option<String>,
        #[serde(rename = "updated_at")]
        pub updated_at: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct ListFilesResult {
        pub files: Vec<String>,
    }

    /// The params of `readFile` and of `statFile`.
    #[derive(Eq)]
    pub struct WorkspacePathParams {
        pub session_id: String,
        pub path: String,
    }

    #[derive(Default, Eq)]
    pub struct ReadFileResult {
        pub content: String,
    }

    #[derive(Eq)]
    pub struct CreateFileParams {
        pub session_id: String,
        pub path: String,
        pub content: String,
    }

    #[derive(Eq)]
    pub struct CreateDirectoryParams {
        pub session_id: String,
        pub path: String,
        pub recursive: Option<bool>,
    }

    #[derive(Copy, Default, Eq)]
    pub struct StatFileResult {
        pub is_file: bool,
        pub is_directory: bool,
        pub size: u64,
        pub mtime_ms: u64,
        pub birthtime_ms: u64,
    }

    #[derive(Eq)]
    pub struct RemovePathParams {
        pub session_id: String,
        pub path: String,
        pub recursive: Option<bool>,
        pub force: Option<bool>,
    }

    #[derive(Eq)]
    pub struct RenamePathParams {
        pub session_id: String,
        pub source: String,
        pub destination: String,
    }

    #[derive(Eq)]
    pub struct SaveLargePasteParams {
        pub session_id: String,
        pub content: String,
    }

    #[derive(Default, Eq)]
    pub struct SaveLargePasteResult {
        #[serde(default)]
        pub saved: Nullable<SavedPaste>,
    }

    #[derive(Eq)]
    pub struct SavedPaste {
        pub file_path: String,
        pub filename: String,
        pub size_bytes: u64,
    }

    #[derive(Default, Eq)]
    pub struct ListCheckpointsResult {
        pub checkpoints: Vec<Checkpoint>,
    }

    #[derive(Eq)]
    pub struct Checkpoint {
        pub number: u64,
        pub title: String,
        pub filename: String,
    }

    #[derive(Eq)]
    pub struct ReadCheckpointParams {
        pub session_id: String,
        pub number: u64,
    }

    /// A missing checkpoint has no content.
    #[derive(Default, Eq)]
    pub struct ReadCheckpointResult {
        #[serde(default)]
        pub content: Nullable<String>,
    }
}
