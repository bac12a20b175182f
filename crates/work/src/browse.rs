//! Listing and reading files and folders, within a [`Policy`].

use std::fmt::LowerHex;
use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{OFlags, Stat};

use crate::content_type::content_type;
use crate::error::blocking;
use crate::{FileAccess, FileError, Policy};

/// The kind of a path. Sockets and devices count as files, since clients have no other kind; reading one is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileKind {
    File,
    Folder,
    /// Only if a link itself is examined ([`SymlinkMode::NoFollow`]).
    Link,
}

/// A name in a folder. A link counts as its target; a broken link counts as a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FolderEntry {
    pub name: String,
    pub kind: FileKind,
}

/// The content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileContent {
    pub bytes: Vec<u8>,
    /// Guessed from the name.
    pub content_type: Option<&'static str>,
}

impl FileContent {
    /// The text, or the bytes again if they are not UTF-8.
    pub fn into_text(self) -> Result<String, Vec<u8>> {
        String::from_utf8(self.bytes).map_err(std::string::FromUtf8Error::into_bytes)
    }
}

/// The treatment of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymlinkMode {
    Follow,
    /// A link at the path's end is not followed. Links on the way are.
    NoFollow,
}

/// The metadata of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMetadata {
    /// The real path if links are followed, else the requested path.
    pub path: PathBuf,
    pub kind: FileKind,
    /// In bytes; a folder has none.
    pub size: Option<u64>,
    pub modified: Option<SystemTime>,
    /// The creation time, if the file system records it.
    pub created: Option<SystemTime>,
    /// Guessed from a file's name.
    pub content_type: Option<&'static str>,
    /// Changes when the file is changed or replaced. It is opaque.
    pub etag: String,
}

/// Lists a folder by name. A folder with more than `most` entries is refused.
pub async fn list(policy: &Policy, path: &Path, most: usize) -> Result<Vec<FolderEntry>, FileError> {
    let policy = policy.clone();
    blocking(path, move |path| {
        let failed = |error| FileError::from_io(error, path);
        let real = policy.find(path, FileAccess::Browse)?;
        if !fs::metadata(&real).map_err(failed)?.is_dir() {
            return Err(FileError::NotAFolder { path: path.to_owned() });
        }
        let mut entries = Vec::new();
        for entry in fs::read_dir(&real).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entries.len() >= most {
                return Err(FileError::TooManyEntries { path: path.to_owned(), limit: most });
            }
            let is_folder = match entry.file_type().map_err(failed)? {
                kind if kind.is_symlink() => fs::metadata(entry.path()).is_ok_and(|metadata| metadata.is_dir()),
                kind => kind.is_dir(),
            };
            let kind = if is_folder { FileKind::Folder } else { FileKind::File };
            entries.push(FolderEntry { name: entry.file_name().to_string_lossy().into_owned(), kind });
        }
        entries.sort_unstable();
        Ok(entries)
    })
    .await
}

/// Reads a file. A file with more than `most` bytes is refused.
pub async fn read(policy: &Policy, path: &Path, most: u64) -> Result<FileContent, FileError> {
    let policy = policy.clone();
    blocking(path, move |path| {
        let failed = |error| FileError::from_io(error, path);
        let real = policy.find(path, FileAccess::Read)?;
        if !fs::metadata(&real).map_err(failed)?.is_file() {
            return Err(FileError::NotAFile { path: path.to_owned() });
        }
        // The file may have been replaced meanwhile: no link is followed, and no pipe blocks.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(&real).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        let too_large = || FileError::TooLarge { path: path.to_owned(), limit: most };
        if size > most {
            return Err(too_large());
        }
        let bytes = read_at_most(file, size, most).map_err(failed)?.ok_or_else(too_large)?;
        Ok(FileContent { bytes, content_type: content_type(&real) })
    })
    .await
}

/// Reads a file of a reported size. `None` if it has more than `most` bytes: it may grow while it is read, and kernel files
/// report no size.
fn read_at_most(file: impl Read, size: u64, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default().saturating_add(1));
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// The metadata of the file or folder at a path.
pub async fn resolve(policy: &Policy, path: &Path, links: SymlinkMode) -> Result<FileMetadata, FileError> {
    let policy = policy.clone();
    blocking(path, move |path| {
        let failed = |error| FileError::from_io(error, path);
        let link = fs::symlink_metadata(path).ok().filter(Metadata::is_symlink);
        if let (SymlinkMode::NoFollow, Some(metadata)) = (links, link) {
            return match policy.shows_link(path, FileAccess::See) {
                true => Ok(describe(path.to_owned(), &metadata)),
                false => Err(FileError::Outside { path: path.to_owned() }),
            };
        }
        let real = policy.find(path, FileAccess::See)?;
        let metadata = fs::metadata(&real).map_err(failed)?;
        let path = if links == SymlinkMode::Follow { real } else { path.to_owned() };
        Ok(describe(path, &metadata))
    })
    .await
}

fn describe(path: PathBuf, metadata: &Metadata) -> FileMetadata {
    let kind = match metadata.file_type() {
        kind if kind.is_dir() => FileKind::Folder,
        kind if kind.is_symlink() => FileKind::Link,
        _ => FileKind::File,
    };
    FileMetadata {
        kind,
        size: (kind != FileKind::Folder).then_some(metadata.len()),
        modified: metadata.modified().ok(),
        created: metadata.created().ok(),
        content_type: if kind == FileKind::File { content_type(&path) } else { None },
        etag: etag_of(metadata.mtime(), metadata.mtime_nsec(), metadata.len(), metadata.ino()),
        path,
    }
}

/// The version of a file, as [`FileMetadata::etag`] has it.
pub(crate) fn etag(stat: &Stat) -> String {
    etag_of(stat.st_mtime, stat.st_mtime_nsec, stat.st_size, stat.st_ino)
}

/// A version of the time, size and number of a file. Systems have these in different types.
fn etag_of(seconds: impl LowerHex, nanoseconds: impl LowerHex, size: impl LowerHex, number: impl LowerHex) -> String {
    format!("{seconds:x}.{nanoseconds:x}-{size:x}-{number:x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_has_more_than_it_reports_is_bounded_too() {
        let read = |most| read_at_most(&b"0123456789"[..], 0, most).unwrap();
        assert_eq!((read(10).as_deref(), read(9)), (Some(&b"0123456789"[..]), None));
    }
}
