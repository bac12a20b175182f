//! What clients may see of the file system: resolved for real, inside the allowed folders, never Grove's own.

use std::io;
use std::path::{Path, PathBuf};

use grove_wire::v1::{DirectoryEntry, EntryKind};
use percent_encoding::percent_decode_str;

use crate::config::{Folders, Limits};

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{0} is no file URI and no absolute path")]
    NotAFileUri(String),
    #[error("{path} cannot be opened: {error}")]
    Io { path: String, error: io::Error },
    #[error("{0} is outside the folders that this host shows: configure `browse-roots`, or start a session there")]
    Outside(String),
    #[error("{0} is not a folder")]
    NotAFolder(String),
    #[error("{0} is not a file")]
    NotAFile(String),
    #[error("{path} has more than {limit} entries")]
    TooManyEntries { path: String, limit: usize },
    #[error("{path} is larger than {limit} bytes")]
    TooLarge { path: String, limit: u64 },
}

/// The path behind an absolute path or a `file:` URI of this machine.
pub fn local_path(uri: &str) -> Result<PathBuf, FileError> {
    let refused = || FileError::NotAFileUri(uri.chars().take(200).collect());
    let path = match uri.strip_prefix("file:") {
        None => PathBuf::from(uri),
        Some(rest) => {
            let path = match rest.strip_prefix("//") {
                Some(rest) => rest.strip_prefix("localhost").unwrap_or(rest),
                None => rest,
            };
            PathBuf::from(percent_decode_str(path).decode_utf8().map_err(|_| refused())?.as_ref())
        }
    };
    // A path with a zero byte is no path; the system would say so less clearly.
    if !path.is_absolute() || path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(refused());
    }
    Ok(path)
}

/// Lists a folder, folders and files alike, by name.
pub(crate) async fn browse(
    uri: &str,
    folders: &Folders,
    working_directories: &[PathBuf],
    limits: &Limits,
) -> Result<Vec<DirectoryEntry>, FileError> {
    let path = local_path(uri)?;
    let shown = path.display().to_string();
    let failed = |error| FileError::Io { path: shown.clone(), error };
    let real = allowed(&path, folders, folders.browse.iter().chain(working_directories)).await?;
    if !tokio::fs::metadata(&real).await.map_err(failed)?.is_dir() {
        return Err(FileError::NotAFolder(shown));
    }
    let mut entries = Vec::new();
    let mut folder = tokio::fs::read_dir(&real).await.map_err(failed)?;
    while let Some(entry) = folder.next_entry().await.map_err(failed)? {
        if entries.len() >= limits.folder_entries {
            return Err(FileError::TooManyEntries { path: shown, limit: limits.folder_entries });
        }
        // A link counts as what it leads to; one that leads nowhere, as a file.
        let is_folder = tokio::fs::metadata(entry.path()).await.is_ok_and(|metadata| metadata.is_dir());
        let kind = if is_folder { EntryKind::Directory } else { EntryKind::File };
        entries.push(DirectoryEntry { name: entry.file_name().to_string_lossy().into_owned(), kind });
    }
    entries.sort();
    Ok(entries)
}

/// Reads a file.
pub(crate) async fn read(
    uri: &str,
    folders: &Folders,
    working_directories: &[PathBuf],
    limits: &Limits,
) -> Result<Vec<u8>, FileError> {
    let path = local_path(uri)?;
    let shown = path.display().to_string();
    let failed = |error| FileError::Io { path: shown.clone(), error };
    let real = allowed(&path, folders, folders.read.iter().chain(working_directories)).await?;
    let metadata = tokio::fs::metadata(&real).await.map_err(failed)?;
    if !metadata.is_file() {
        return Err(FileError::NotAFile(shown));
    }
    if metadata.len() > limits.fetch_bytes {
        return Err(FileError::TooLarge { path: shown, limit: limits.fetch_bytes });
    }
    tokio::fs::read(&real).await.map_err(failed)
}

/// The real path, links followed, where it lies inside one of `roots` and in none of Grove's own folders.
async fn allowed<'a>(
    path: &Path,
    folders: &Folders,
    roots: impl Iterator<Item = &'a PathBuf>,
) -> Result<PathBuf, FileError> {
    let shown = path.display().to_string();
    let outside = || FileError::Outside(shown.clone());
    // Whether something exists outside the roots is nobody's business: what is missing is only said to be so where
    // the nearest folder above it may be seen.
    let mut real_roots = Vec::new();
    for root in roots {
        if let Ok(root) = tokio::fs::canonicalize(root).await {
            real_roots.push(root);
        }
    }
    let mut private = Vec::new();
    for folder in &folders.private {
        if let Ok(folder) = tokio::fs::canonicalize(folder).await {
            private.push(folder);
        }
    }
    let visible = |real: &Path| {
        real_roots.iter().any(|root| real.starts_with(root)) && !private.iter().any(|folder| real.starts_with(folder))
    };
    match tokio::fs::canonicalize(path).await {
        Ok(real) if visible(&real) => Ok(real),
        Ok(_) => Err(outside()),
        Err(error) => {
            for above in path.ancestors().skip(1) {
                if let Ok(real) = tokio::fs::canonicalize(above).await {
                    return Err(if visible(&real) { FileError::Io { path: shown, error } } else { outside() });
                }
            }
            Err(outside())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_uris_and_absolute_paths_name_local_files() {
        let path = |uri: &str| local_path(uri).ok().map(|path| path.display().to_string());
        assert_eq!(path("/a/b"), Some("/a/b".into()));
        assert_eq!(path("file:///a/b%20c"), Some("/a/b c".into()));
        assert_eq!(path("file://localhost/a"), Some("/a".into()));
        assert_eq!(path("file:/a"), Some("/a".into()));
        for bad in ["a/b", "file://other/a", "http://x/a", "file:///a%00b", "file:///%ff", "", "~"] {
            assert_eq!(path(bad), None, "{bad}");
        }
    }
}
