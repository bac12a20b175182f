//! Errors of a whole store or file. Damage inside a session is not an error: see [`Damage`](grove_transcript::Damage).

use std::io;
use std::path::{Path, PathBuf};

/// The reason why a session or a part of a store could not be read at all.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error("{} cannot be read: {error}: check that it exists and that you may read it", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{} has more than {limit} bytes, the limit for reading it: leave it out, or make it smaller", path.display())]
    TooLarge { path: PathBuf, limit: u64 },
    #[error("{} is malformed ({what}): open it with the tool that wrote it", path.display())]
    Malformed { path: PathBuf, what: String },
    #[error("cannot write the turns of {} to a temporary file: {error}: free some space there", path.display())]
    Buffer { path: PathBuf, error: io::Error },
    #[error("{} belongs to another reader: read it with the reader of {wanted}", path.display())]
    OtherSource { path: PathBuf, wanted: grove_transcript::TranscriptSource },
}

impl HistoryError {
    pub(crate) fn io(path: &Path, error: io::Error) -> Self {
        Self::Io { path: path.to_owned(), error }
    }

    pub(crate) fn malformed(path: &Path, what: impl ToString) -> Self {
        Self::Malformed { path: path.to_owned(), what: what.to_string() }
    }
}
