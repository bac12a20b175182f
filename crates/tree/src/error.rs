//! Errors of logs that cannot be read at all. Problems inside a readable log are [`Damage`](crate::Damage).

use grove_fs::FsError;

/// The reason why a log cannot be opened. Such a file is never written to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    #[error("line {line} is not a session header: the file is not a session log and is left unchanged")]
    NoHeader { line: u64 },
    #[error("no line is a session header: the file is not a session log and is left unchanged")]
    NothingReadable,
    #[error(
        "its header says version {version}, and this Grove knows versions 1 to {}: use a newer Grove",
        crate::VERSION
    )]
    UnknownVersion { version: String },
    #[error("it has more entries or longer ids than an index can hold")]
    TooLarge,
    #[error(transparent)]
    Fs(#[from] FsError),
}
