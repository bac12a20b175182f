//! What a session has beside its log: a manifest, a plan, checkpoints, files, research, a database.
//!
//! A [`Workspace`] is a view of one session's folder in any store. It keeps nothing in memory, so two of them on one
//! folder see the same. Changes that read before they write (the manifest, the index of checkpoints) expect one writer,
//! as a session has with its task.
//!
//! In `files/` and `research/` others choose the names and put files, so Grove goes there through a
//! [`Confined`](crate::Confined) view alone.

mod checkpoints;
pub mod database;
mod files;
mod manifest;
mod paste;
mod plan;
mod plan_history;
mod todos;

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

/// A manifest is a few lines. One that is larger is not read.
const LARGEST_MANIFEST: usize = 1024 * 1024;
/// Plans, summaries and their index are texts that people read. Larger ones are not read as a whole.
const LARGEST_TEXT: usize = 16 * 1024 * 1024;

/// What lies in a session's folder beside its log.
#[derive(Clone, Copy, Debug)]
pub struct Workspace<'a> {
    store: &'a dyn SessionFs,
    folder: &'a str,
}

/// Why a workspace did not give or take something.
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
    #[error("{path} is not UTF-8 text: write it anew, or read it as bytes")]
    NotText { path: String },
    #[error("there is no checkpoint {number}: list the checkpoints to see which there are")]
    NoCheckpoint { number: u32 },
    #[error("{path} has the highest number that a checkpoint can have: give that one a lower number, then try again")]
    NoNumberLeft { path: String },
    #[error(transparent)]
    Fs(#[from] FsError),
}

impl<'a> Workspace<'a> {
    /// The workspace in `folder`, the session's folder in the store; without one there is none.
    pub fn of(store: &'a dyn SessionFs, folder: Option<&'a str>) -> Result<Self, WorkspaceError> {
        let folder = folder.ok_or(WorkspaceError::NoWorkspace)?;
        Ok(Self { store, folder })
    }

    /// Makes what every workspace has: its manifest, its folders and an index without checkpoints. What is there
    /// already stays as it is.
    pub async fn create(&self, manifest: &Manifest) -> Result<(), WorkspaceError> {
        // The folder of the checkpoints comes with their index: at a provider each folder is a call.
        for folder in [FilesFolder::Files.folder(), FilesFolder::Research.folder()] {
            self.store.mkdir(&self.path(folder)).await?;
        }
        if !self.store.exists(&self.path(INDEX)).await? {
            self.write(INDEX, CheckpointIndex::default().to_string().as_bytes()).await?;
        }
        // It comes last: where it is, the rest is.
        if !self.store.exists(&self.path(MANIFEST)).await? {
            self.set_manifest(manifest).await?;
        }
        Ok(())
    }

    /// `workspace.yaml`; `None` where the session has none.
    pub async fn manifest(&self) -> Result<Option<Manifest>, WorkspaceError> {
        let Some(text) = self.read_text(MANIFEST, LARGEST_MANIFEST).await? else { return Ok(None) };
        let parsed = Manifest::parse(&text);
        parsed.map(Some).map_err(|error| WorkspaceError::Manifest { path: self.path(MANIFEST), error })
    }

    pub async fn set_manifest(&self, manifest: &Manifest) -> Result<(), WorkspaceError> {
        self.write(MANIFEST, manifest.to_string().as_bytes()).await
    }

    /// Where a name in the session's folder lies in the store.
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

    /// Removes something; `false` where it was not there.
    async fn remove(&self, name: &str) -> Result<bool, WorkspaceError> {
        removed(self.store.rm(&self.path(name), Removal::One).await)
    }
}

/// Whether something was removed that may not have been there.
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
