//! The workspace: the files of a session beside its log (manifest, plan, checkpoints, files, research, database).
//!
//! A [`Workspace`] is a view of one session's folder in any store. It keeps nothing in memory, so two of them on one
//! folder see the same. Changes that read before they write (the manifest, the index of checkpoints) expect one writer,
//! such as the session's task.
//!
//! In `files/` and `research/` others choose the names and write files, so Grove accesses them only through a
//! [`Confined`](crate::Confined) view.

mod checkpoints;
pub mod database;
pub(crate) mod files;
mod manifest;
mod paste;
mod plan;
pub(crate) mod plan_history;
pub(crate) mod todos;

pub(crate) use checkpoints::number_of;
pub use checkpoints::{Checkpoint, CheckpointIndex};
pub use files::{FileInfo, FilesFolder, FolderListing};
pub use manifest::{Field, ForkIdentity, Manifest, ManifestError, Value};
pub use paste::{PASTE, PASTE_LIMIT, PasteLocation, StoredPaste};
pub use plan_history::{PlanAtTime, PlanCheck, PlanTracker};
pub use todos::{Todo, TodoStatus, Todos};

use crate::{FsError, Removal, SessionFs};

pub(crate) const MANIFEST: &str = "workspace.yaml";
pub(crate) const PLAN: &str = "plan.md";
pub(crate) const PLAN_HISTORY: &str = "plan-history.jsonl";
pub(crate) const CHECKPOINTS: &str = "checkpoints";
pub(crate) const INDEX: &str = "checkpoints/index.md";
pub(crate) const DATABASE: &str = "session.db";

/// The largest manifest that is read. A normal one has a few lines.
pub const LARGEST_MANIFEST: usize = 1024 * 1024;
/// The largest plan, summary or index that is read as a whole. These are texts for people.
pub const LARGEST_TEXT: usize = 16 * 1024 * 1024;

/// A view of a session's folder, without its log.
#[derive(Clone, Copy, Debug)]
pub struct Workspace<'a> {
    store: &'a dyn SessionFs,
    folder: &'a str,
}

/// The reason why a workspace operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkspaceError {
    #[error(
        "the session is stored nowhere, so it has no plan, checkpoints or files: \
         create it with a storage that has a folder for it, then try again"
    )]
    NoWorkspace,
    #[error("{path}: {error}")]
    Manifest { path: String, error: ManifestError },
    #[error("{path} has more than {limit} bytes: read a part of it, or make it smaller")]
    TooLarge { path: String, limit: usize },
    #[error("{path} is not UTF-8 text: write it again, or read it as bytes")]
    NotText { path: String },
    #[error("no checkpoint {number}: list the checkpoints to see their numbers")]
    NoCheckpoint { number: u32 },
    #[error("{path} has the highest number that a checkpoint can have: give that one a lower number, then try again")]
    NoNumberLeft { path: String },
    #[error(transparent)]
    Fs(#[from] FsError),
}

impl<'a> Workspace<'a> {
    /// The workspace in `folder`, the session's folder in the store. `None` gives an error: there is no workspace.
    pub fn of(store: &'a dyn SessionFs, folder: Option<&'a str>) -> Result<Self, WorkspaceError> {
        let folder = folder.ok_or(WorkspaceError::NoWorkspace)?;
        Ok(Self { store, folder })
    }

    /// Creates the parts that every workspace has: its manifest, its folders and an empty index of checkpoints.
    /// Existing ones stay as they are.
    pub async fn create(&self, manifest: &Manifest) -> Result<(), WorkspaceError> {
        // The folder of the checkpoints comes with their index: at a storage client each folder is a call.
        for folder in [FilesFolder::Files.folder(), FilesFolder::Research.folder()] {
            self.store.mkdir(&self.path(folder)).await?;
        }
        if !self.store.exists(&self.path(INDEX)).await? {
            self.write(INDEX, CheckpointIndex::default().to_string().as_bytes()).await?;
        }
        // Written last: if it exists, so does the rest.
        if !self.store.exists(&self.path(MANIFEST)).await? {
            self.set_manifest(manifest).await?;
        }
        Ok(())
    }

    /// `workspace.yaml`; `None` if the session has none.
    pub async fn manifest(&self) -> Result<Option<Manifest>, WorkspaceError> {
        let Some(text) = self.read_text(MANIFEST, LARGEST_MANIFEST).await? else { return Ok(None) };
        let parsed = Manifest::parse(&text);
        parsed.map(Some).map_err(|error| WorkspaceError::Manifest { path: self.path(MANIFEST), error })
    }

    pub async fn set_manifest(&self, manifest: &Manifest) -> Result<(), WorkspaceError> {
        self.write(MANIFEST, manifest.to_string().as_bytes()).await
    }

    /// The path in the store of a name in the session's folder.
    pub(crate) fn path(&self, name: &str) -> String {
        inside(self.folder, name)
    }

    pub(crate) async fn read_text(&self, name: &str, limit: usize) -> Result<Option<String>, WorkspaceError> {
        let path = self.path(name);
        let bytes = match self.store.read_range(&path, 0, limit.saturating_add(1)).await {
            Ok(bytes) if bytes.len() > limit => return Err(WorkspaceError::TooLarge { path, limit }),
            Ok(bytes) => bytes,
            Err(FsError::NotFound { .. } | FsError::NotADirectory { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        String::from_utf8(bytes).map(Some).map_err(|_| WorkspaceError::NotText { path })
    }

    pub(crate) async fn write(&self, name: &str, bytes: &[u8]) -> Result<(), WorkspaceError> {
        Ok(self.store.write_file(&self.path(name), bytes).await?)
    }

    /// Deletes a file; `false` if it did not exist.
    async fn remove(&self, name: &str) -> Result<bool, WorkspaceError> {
        removed(self.store.rm(&self.path(name), Removal::One).await)
    }
}

/// Returns whether a file that may not have existed was deleted.
fn removed(done: crate::Result<()>) -> Result<bool, WorkspaceError> {
    match done {
        Ok(()) => Ok(true),
        Err(FsError::NotFound { .. } | FsError::NotADirectory { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A name inside a folder; the folder may be the store's root.
pub(crate) fn inside(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}
