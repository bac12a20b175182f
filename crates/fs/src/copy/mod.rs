//! Copying a session's state from one place to another, in one store or between two.
//!
//! A copy is made file by file, streaming, and can be run again after an interruption: finished files are recorded in a
//! file beside it, and only the rest is done ([`is_unfinished`] tells). When the copy is complete, and its owner has
//! recorded that, [`settle`] deletes the record.
//!
//! Agents write into a session's folder, so no symbolic link in the source is followed: one that leads elsewhere would
//! put other files into the copy. Links are left out and reported.
//!
//! [`CopyPurpose::Move`] copies everything as it is, so that [`compare`] finds no difference. [`CopyPurpose::Fork`]
//! copies the beginning of a fork: logs go through a hook line by line, the manifest gets a new identity, and with a
//! boundary later content is left out.

mod compare;
mod inventory;
mod lines;
pub(crate) mod list;
mod pastes;
mod progress;
mod rewrite;
mod stream;

use std::collections::BTreeMap;
use std::time::SystemTime;

use jiff::Timestamp;

pub use compare::{Comparison, Difference, compare};
pub use inventory::{Inventory, InventoryFile, inventory};
pub use lines::{KeepAllLines, LONGEST_LINE, LineAction, LineExtent, LogLine, LogRewriter};
use list::{CopyItem, CopyList, CopyMethod};
pub use pastes::{PastePathRewriter, PastePathStream};
use progress::CopyProgress;
pub use progress::{is_move, is_unfinished, settle};
pub use rewrite::{ForkLogRewriter, PathRewrite};

pub use crate::workspace::PlanAtTime;

use crate::workspace::database::{DatabaseError, LocalDatabase};
use crate::workspace::{
    CHECKPOINTS, CheckpointIndex, DATABASE, ForkIdentity, INDEX, MANIFEST, PLAN, PLAN_HISTORY, Workspace,
};
use crate::workspace::{WorkspaceError, inside, number_of};
use crate::{FsError, SessionFs, Stat};

/// A session's folder in a store.
#[derive(Clone, Copy, Debug)]
pub struct SessionFolder<'a> {
    pub store: &'a dyn SessionFs,
    pub folder: &'a str,
    /// Its database, if it is a file on this machine that others may have open. Without it `session.db` is copied like
    /// any other file.
    pub database: Option<&'a LocalDatabase>,
}

/// A copy of a session's state.
#[derive(Clone, Debug)]
pub struct FolderCopy<'a> {
    pub from: SessionFolder<'a>,
    pub to: SessionFolder<'a>,
    pub purpose: CopyPurpose,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyPurpose {
    /// The same session in another place: everything except for locks and temporary files, byte for byte.
    Move,
    /// Another session that begins as this one is, or was.
    Fork(Fork),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fork {
    pub id: String,
    /// The name that a person gave; without one it is the source's name followed by " (fork)".
    pub name: Option<String>,
    pub at: Timestamp,
    pub parts: ForkScope,
    /// The bytes of each log that belong to the fork, by the log's path below the session's folder. A log that is not
    /// listed is copied completely. So a fork that is finished later has no more than one finished at once.
    pub logs: BTreeMap<String, u64>,
    /// The end of the fork, if that is before the present.
    pub boundary: Option<Boundary>,
}

/// The part of a session that a fork copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkScope {
    /// Everything, into an empty folder.
    All,
    /// The files beside the conversation: manifest, plan, checkpoints, files, research, database. The caller copies
    /// logs and bodies itself, into the same folder, which may have some of them already.
    Artifacts,
}

/// The moment that a fork starts from. The hook decides which lines of the logs belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boundary {
    /// Checkpoints with higher numbers are left out.
    pub last_checkpoint: u32,
    /// Files created later are left out. A store that replaces a file as a whole creates a new one; a file that existed
    /// and has grown since is copied completely, and reported.
    pub at: SystemTime,
    pub plan: PlanAtTime,
}

/// The result of a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyReport {
    /// The number of files that this run wrote.
    pub files: u64,
    /// Files left out because they were created after the boundary.
    pub left_out: Vec<String>,
    /// Files in their present state although the fork is of an earlier moment.
    pub as_of_now: Vec<String>,
    /// Paths that are neither files nor folders, symbolic links for instance: they are left out.
    pub not_files: Vec<String>,
}

/// The reason why a copy or a comparison failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CopyError {
    #[error("there is no session at {folder}: nothing was copied")]
    NothingThere { folder: String },
    #[error("{folder} exists already and is not an unfinished copy: choose another place, or remove it")]
    Occupied { folder: String },
    #[error("{folder} has more than {limit} files: remove some, then copy it again")]
    TooMany { folder: String, limit: usize },
    #[error("{path} has folders nested more than {limit} deep: is there a link that leads back?")]
    TooDeep { path: String, limit: usize },
    #[error("{path} was written again and again while it was copied: copy it when nobody writes it")]
    Changing { path: String },
    #[error("the copy at {folder} is not finished: run it again first")]
    Unfinished { folder: String },
    #[error("copying {path}: {error}")]
    Workspace { path: String, error: WorkspaceError },
    #[error("copying {path}: {error}")]
    Database { path: String, error: DatabaseError },
    #[error("the copy failed: {0}; fix that and run it again to continue")]
    Fs(#[from] FsError),
}

impl FolderCopy<'_> {
    /// Makes the copy, or finishes an interrupted one. Each line of a fork's logs goes through `lines`.
    pub async fn run(&self, lines: &mut dyn LogRewriter) -> Result<CopyReport, CopyError> {
        let source = self.from.store.without_links();
        let from = SessionFolder { store: &*source, ..self.from };
        FolderCopy { from, to: self.to, purpose: self.purpose.clone() }.run_without_links(lines).await
    }

    async fn run_without_links(&self, lines: &mut dyn LogRewriter) -> Result<CopyReport, CopyError> {
        let mut progress = CopyProgress::begin(self).await?;
        let CopyList { mut items, others } = list::everything(&self.from, &self.purpose).await?;
        let mut copied = CopyReport { not_files: others, ..CopyReport::default() };
        if let Some(boundary) = self.boundary() {
            items = self.leave_out_later(items, boundary, &mut copied).await?;
        }
        for item in &items {
            if !progress.has(&item.path) {
                self.copy(item, lines).await?;
                progress.add(&self.to, &item.path).await?;
                copied.files += 1;
            }
        }
        progress.finish(&self.to).await?;
        Ok(copied)
    }

    /// Returns whether others write into the new folder as well.
    fn is_beside(&self) -> bool {
        matches!(&self.purpose, CopyPurpose::Fork(Fork { parts: ForkScope::Artifacts, .. }))
    }

    fn boundary(&self) -> Option<&Boundary> {
        match &self.purpose {
            CopyPurpose::Fork(fork) => fork.boundary.as_ref(),
            CopyPurpose::Move => None,
        }
    }

    /// Removes items from after the boundary, and reports the rest that may be newer than it.
    async fn leave_out_later(
        &self,
        items: Vec<CopyItem>,
        boundary: &Boundary,
        copied: &mut CopyReport,
    ) -> Result<Vec<CopyItem>, CopyError> {
        let mut items_to_copy = Vec::with_capacity(items.len());
        for mut item in items {
            if item.path == PLAN_HISTORY {
                items_to_copy.extend(self.history(boundary).await?);
                continue;
            }
            let mut as_of_now = item.path == DATABASE;
            let later = match item.path.split_once('/') {
                None if item.path == PLAN => match &boundary.plan {
                    PlanAtTime::Unknown => {
                        as_of_now = self.modified(&item).await?.is_some_and(|modified| modified > boundary.at);
                        false
                    }
                    // The plan of that moment is added below, whether there is one now or not.
                    PlanAtTime::None | PlanAtTime::Was(_) => true,
                },
                Some((CHECKPOINTS, file)) => number_of(file).is_some_and(|number| number > boundary.last_checkpoint),
                Some(("files" | "research", _)) if item.copy_method != CopyMethod::Folder => {
                    match self.from.store.stat(&inside(self.from.folder, &item.path)).await {
                        Ok(stat) => {
                            as_of_now = stat.modified > boundary.at;
                            came_at(&stat) > boundary.at
                        }
                        // It was deleted meanwhile.
                        Err(FsError::NotFound { .. }) => false,
                        Err(error) => return Err(error.into()),
                    }
                }
                None | Some(_) => false,
            };
            if later {
                copied.left_out.push(std::mem::take(&mut item.path));
                continue;
            }
            if as_of_now {
                copied.as_of_now.push(item.path.clone());
            }
            items_to_copy.push(item);
        }
        if let PlanAtTime::Was(text) = &boundary.plan {
            copied.left_out.retain(|path| path != PLAN);
            items_to_copy.insert(0, CopyItem { path: PLAN.to_owned(), copy_method: CopyMethod::Text(text.clone()) });
        }
        Ok(items_to_copy)
    }

    /// The part of the plan's history that a fork at the boundary has, if there is any.
    async fn history(&self, boundary: &Boundary) -> Result<Option<CopyItem>, CopyError> {
        let since = boundary.at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let at = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let failed = |error| CopyError::Workspace { path: inside(self.from.folder, PLAN_HISTORY), error };
        let text = self.workspace().map_err(failed)?.history_until(at).await.map_err(failed)?;
        let item = CopyItem { path: PLAN_HISTORY.to_owned(), copy_method: CopyMethod::Text(text.clone()) };
        Ok(Some(item).filter(|_| !text.is_empty()))
    }

    /// The time of a file's last change; `None` if it was deleted meanwhile.
    async fn modified(&self, item: &CopyItem) -> Result<Option<SystemTime>, CopyError> {
        match self.from.store.stat(&inside(self.from.folder, &item.path)).await {
            Ok(stat) => Ok(Some(stat.modified)),
            Err(FsError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn copy(&self, item: &CopyItem, lines: &mut dyn LogRewriter) -> Result<(), CopyError> {
        let source = inside(self.from.folder, &item.path);
        let target = inside(self.to.folder, &item.path);
        match (&item.copy_method, &self.purpose) {
            (CopyMethod::Folder, _) => Ok(self.to.store.mkdir(&target).await?),
            (CopyMethod::Text(text), _) => Ok(self.to.store.write_file(&target, text.as_bytes()).await?),
            (CopyMethod::Database, _) => self.copy_database(&source, &target).await,
            (CopyMethod::Log, CopyPurpose::Fork(fork)) => {
                let end = fork.logs.get(&item.path).copied().unwrap_or(u64::MAX);
                lines::copy(self, &item.path, end, lines).await
            }
            (CopyMethod::Manifest, CopyPurpose::Fork(fork)) => self.copy_manifest(fork, &target).await,
            (CopyMethod::CheckpointIndex, CopyPurpose::Fork(_)) => {
                let index = self.index().await?.to_string();
                Ok(self.to.store.write_file(&target, index.as_bytes()).await?)
            }
            (CopyMethod::Bytes | CopyMethod::Log | CopyMethod::Manifest | CopyMethod::CheckpointIndex, _) => {
                stream::copy(self.from.store, &source, &self.to, &target).await
            }
        }
    }

    async fn copy_manifest(&self, fork: &Fork, target: &str) -> Result<(), CopyError> {
        let path = inside(self.from.folder, MANIFEST);
        let failed = |error| CopyError::Workspace { path: path.clone(), error };
        let Some(manifest) = self.workspace().map_err(failed)?.manifest().await.map_err(failed)? else { return Ok(()) };
        let checkpoints = self.index().await?.checkpoints().count() as u64;
        let new = ForkIdentity { id: &fork.id, name: fork.name.as_deref(), at: fork.at, checkpoints };
        let forked = manifest.forked(new);
        let forked = forked.map_err(|error| failed(WorkspaceError::Manifest { path: path.clone(), error }))?;
        Ok(self.to.store.write_file(target, forked.to_string().as_bytes()).await?)
    }

    /// The index of checkpoints for the copy.
    async fn index(&self) -> Result<CheckpointIndex, CopyError> {
        let failed = |error| CopyError::Workspace { path: inside(self.from.folder, INDEX), error };
        let mut index = self.workspace().map_err(failed)?.index().await.map_err(failed)?;
        if let Some(boundary) = self.boundary() {
            index.remove_after(boundary.last_checkpoint);
        }
        Ok(index)
    }

    fn workspace(&self) -> Result<Workspace<'_>, WorkspaceError> {
        Workspace::of(self.from.store, Some(self.from.folder))
    }

    async fn copy_database(&self, source: &str, target: &str) -> Result<(), CopyError> {
        let Some(database) = self.from.database else {
            return stream::copy(self.from.store, source, &self.to, target).await;
        };
        let snapshot = database.snapshot().await;
        let snapshot = snapshot.map_err(|error| CopyError::Database { path: source.to_owned(), error })?;
        stream::copy(snapshot.store(), DATABASE, &self.to, target).await
    }
}

/// The creation time of a file. A file restored from elsewhere with its times is older than the store says.
fn came_at(stat: &Stat) -> SystemTime {
    stat.created.min(stat.modified)
}
