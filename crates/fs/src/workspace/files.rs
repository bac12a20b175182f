//! `files/` and `research/`: what a session keeps for those who take part in it.

use std::collections::VecDeque;
use std::time::SystemTime;

use super::{Workspace, WorkspaceError, inside, removed};
use crate::{Confined, FileKind, FsError, Removal, SessionFs};

/// No more files are listed at once.
const MOST_LISTED: usize = 10_000;
/// Folders inside folders that are looked into. A provider may have a link that leads back.
const DEEPEST: usize = 32;

/// One of the two folders that hold a session's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilesFolder {
    Files,
    Research,
}

/// What is on a shelf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderListing {
    /// Sorted by name.
    pub files: Vec<FileInfo>,
    /// Whether there are more than could be listed: too many, too deep, or with names that are too long to ask for.
    pub more: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// Below the shelf's folder, its parts separated by `/`.
    pub name: String,
    pub size: u64,
    pub modified: SystemTime,
}

impl FilesFolder {
    /// How its folder is called in the session's.
    pub fn folder(self) -> &'static str {
        match self {
            FilesFolder::Files => "files",
            FilesFolder::Research => "research",
        }
    }
}

impl Workspace<'_> {
    /// Every file of a shelf, also in folders below it. Links are no files.
    pub async fn files(&self, shelf: FilesFolder) -> Result<FolderListing, WorkspaceError> {
        let view = self.shelf(shelf)?;
        let mut listing = FolderListing::default();
        let mut folders = VecDeque::from([(String::new(), 0)]);
        while let Some((folder, depth)) = folders.pop_front() {
            let entries = match view.readdir_with_types(&folder).await {
                Ok(entries) => entries,
                Err(error) => {
                    listing.pass_over(error)?;
                    continue;
                }
            };
            for entry in entries {
                let name = inside(&folder, &entry.name);
                match entry.kind {
                    FileKind::Folder if depth + 1 < DEEPEST && folders.len() < MOST_LISTED => {
                        folders.push_back((name, depth + 1));
                    }
                    FileKind::Folder => listing.more = true,
                    FileKind::File if listing.files.len() >= MOST_LISTED => {
                        listing.more = true;
                        break;
                    }
                    FileKind::File => match view.stat(&name).await {
                        Ok(stat) => listing.files.push(FileInfo { name, size: stat.size, modified: stat.modified }),
                        Err(error) => listing.pass_over(error)?,
                    },
                    FileKind::Other => {}
                }
            }
        }
        listing.files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(listing)
    }

    /// The bytes of a file from `offset`, at most `length` of them.
    pub async fn read_file(
        &self,
        shelf: FilesFolder,
        name: &str,
        offset: u64,
        length: usize,
    ) -> Result<Vec<u8>, WorkspaceError> {
        Ok(self.shelf(shelf)?.read_range(name, offset, length).await?)
    }

    /// Makes a file hold exactly these bytes.
    pub async fn write_file(&self, shelf: FilesFolder, name: &str, bytes: &[u8]) -> Result<(), WorkspaceError> {
        Ok(self.shelf(shelf)?.write_file(name, bytes).await?)
    }

    /// Takes a file, or an empty folder, away; `false` where it was not there.
    pub async fn remove_file(&self, shelf: FilesFolder, name: &str) -> Result<bool, WorkspaceError> {
        removed(self.shelf(shelf)?.rm(name, Removal::One).await)
    }

    /// The view of a shelf, from which no name and no link leads out.
    pub(super) fn shelf(&self, shelf: FilesFolder) -> Result<Confined, WorkspaceError> {
        Ok(Confined::new(self.store, &self.path(shelf.folder()))?)
    }
}

impl FolderListing {
    /// Goes on without something that cannot be looked at.
    fn pass_over(&mut self, error: FsError) -> Result<(), WorkspaceError> {
        match error {
            // It was taken away since it was listed, or a link was put in its place.
            FsError::NotFound { .. } | FsError::NotADirectory { .. } | FsError::Link { .. } => Ok(()),
            // Each part of its name is good, and all of them are too long.
            FsError::BadName { .. } => {
                self.more = true;
                Ok(())
            }
            error => Err(error.into()),
        }
    }
}
