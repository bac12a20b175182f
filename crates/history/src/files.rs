//! Opening other tools' files: only to read, only as much as is allowed, and never a device or a pipe.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use crate::error::HistoryError;

/// The byte order mark that some editors write before the text of a file.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Opens a file to read it. Only regular files are opened: a pipe would wait for a writer.
pub(crate) fn open(path: &Path) -> Result<(File, Metadata), HistoryError> {
    let fail = |error| HistoryError::io(path, error);
    // Asked before it is opened: opening a pipe already waits.
    stat(path)?;
    let file = File::open(path).map_err(fail)?;
    let metadata = file.metadata().map_err(fail)?;
    Ok((file, metadata))
}

/// What is known of a regular file without opening it.
pub(crate) fn stat(path: &Path) -> Result<Metadata, HistoryError> {
    let metadata = std::fs::metadata(path).map_err(|error| HistoryError::io(path, error))?;
    if metadata.is_file() { Ok(metadata) } else { Err(HistoryError::io(path, io::Error::other("it is not a file"))) }
}

/// A whole file of bounded size.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Vec<u8>, HistoryError> {
    let (file, _) = open(path)?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| HistoryError::io(path, error))?;
    if bytes.len() as u64 > limit {
        return Err(HistoryError::TooLarge { path: path.to_owned(), limit });
    }
    Ok(bytes)
}

/// A whole file of text. What is no UTF-8 is shown as such.
pub(crate) fn read_text(path: &Path, limit: u64) -> Result<String, HistoryError> {
    Ok(match String::from_utf8(read(path, limit)?) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// The names in a folder, sorted, so that what is found does not depend on the file system. A folder that is not there
/// has none.
pub(crate) fn names(folder: &Path) -> Result<Vec<String>, HistoryError> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(HistoryError::io(folder, error)),
    };
    // Names that are no text are none that the tools give.
    let mut names: Vec<String> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    Ok(names)
}
