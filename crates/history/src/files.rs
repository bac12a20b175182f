//! Opens other tools' files: read-only, within limits, and never a device or a pipe.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use crate::error::HistoryError;

/// The byte order mark that some editors write before the text of a file.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Opens a file for reading. Only regular files are opened: a pipe would wait for a writer.
pub(crate) fn open(path: &Path) -> Result<(File, Metadata), HistoryError> {
    let fail = |error| HistoryError::io(path, error);
    // Checked before it is opened: opening a pipe already waits.
    stat(path)?;
    let file = File::open(path).map_err(fail)?;
    let metadata = file.metadata().map_err(fail)?;
    Ok((file, metadata))
}

/// The metadata of a regular file, without opening it.
pub(crate) fn stat(path: &Path) -> Result<Metadata, HistoryError> {
    let metadata = std::fs::metadata(path).map_err(|error| HistoryError::io(path, error))?;
    if metadata.is_file() { Ok(metadata) } else { Err(HistoryError::io(path, io::Error::other("it is not a file"))) }
}

/// Reads a whole file of bounded size.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Vec<u8>, HistoryError> {
    let (file, _) = open(path)?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| HistoryError::io(path, error))?;
    if bytes.len() as u64 > limit {
        return Err(HistoryError::TooLarge { path: path.to_owned(), limit });
    }
    Ok(bytes)
}

/// Reads a whole text file. Invalid UTF-8 is replaced.
pub(crate) fn read_text(path: &Path, limit: u64) -> Result<String, HistoryError> {
    Ok(match String::from_utf8(read(path, limit)?) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// The names in a folder, sorted, so that results do not depend on the file system. A missing folder has none.
pub(crate) fn names(folder: &Path) -> Result<Vec<String>, HistoryError> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(HistoryError::io(folder, error)),
    };
    // Tools use only names in UTF-8.
    let mut names: Vec<String> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    Ok(names)
}
