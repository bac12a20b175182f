//! `files/` and `research/`: files for the participants of a session.

use std::collections::VecDeque;
use std::time::SystemTime;

use super::{Workspace, WorkspaceError, inside, removed};
use crate::{Confined, FileKind, FsError, Removal, SessionFs};

/// The most files that are listed at once.
pub const MOST_LISTED: usize = 10_000;
/// The deepest nesting of folders that is listed. A storage client may have a link that leads back.
pub const DEEPEST: usize = 32;

/// One of the two folders that hold a session's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilesFolder {
    Files,
    Research,
}

/// The content of one of these folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderListing {
    /// Sorted by name.
    pub files: Vec<FileInfo>,
    /// Set if not all files could be listed: too many, nested too deep, or with names that are too long to request.
    pub more: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// Its name below the folder, its parts separated by `/`.
    pub name: String,
    pub size: u64,
    pub modified: SystemTime,
}

impl FilesFolder {
    /// Its name in the session's folder.
    pub fn folder(self) -> &'static str {
        match self {
            FilesFolder::Files => "files",
            FilesFolder::Research => "research",
        }
    }
}

impl Workspace<'_> {
    /// Lists every file of a folder, also in folders below it. Links are not files.
    pub async fn files(&self, folder: FilesFolder) -> Result<FolderListing, WorkspaceError> {
        let view = self.folder_view(folder)?;
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
        folder: FilesFolder,
        name: &str,
        offset: u64,
        length: usize,
    ) -> Result<Vec<u8>, WorkspaceError> {
        Ok(self.folder_view(folder)?.read_range(name, offset, length).await?)
    }

    /// Replaces the content of a file.
    pub async fn write_file(&self, folder: FilesFolder, name: &str, bytes: &[u8]) -> Result<(), WorkspaceError> {
        Ok(self.folder_view(folder)?.write_file(name, bytes).await?)
    }

    /// Deletes a file, or an empty folder; `false` if it did not exist.
    pub async fn remove_file(&self, folder: FilesFolder, name: &str) -> Result<bool, WorkspaceError> {
        removed(self.folder_view(folder)?.rm(name, Removal::One).await)
    }

    /// The view of a folder, from which no name and no link leads out.
    pub(super) fn folder_view(&self, folder: FilesFolder) -> Result<Confined, WorkspaceError> {
        Ok(Confined::new(self.store, &self.path(folder.folder()))?)
    }
}

impl FolderListing {
    /// Skips an entry that cannot be read.
    fn pass_over(&mut self, error: FsError) -> Result<(), WorkspaceError> {
        match error {
            // It was deleted since it was listed, or replaced by a link.
            FsError::NotFound { .. } | FsError::NotADirectory { .. } | FsError::Link { .. } => Ok(()),
            // Each part of its name is valid, but all together are too long.
            FsError::BadName { .. } => {
                self.more = true;
                Ok(())
            }
            error => Err(error.into()),
        }
    }
}
