//! The errors of a shim, on either side.

use std::io;
use std::path::PathBuf;

use grove_work::ProcessError;

/// The reason why there is no shim, or nothing more from it.
#[derive(Debug, thiserror::Error)]
pub enum ShimError {
    #[error("no shim is running in {}: its agent has ended; start another", .folder.display())]
    Gone { folder: PathBuf },
    #[error("another host has taken over the agent")]
    TakenOver,
    #[error("the connection to the shim broke: attach to it again")]
    Broken,
    #[error("the agent does not read its stdin, and {waiting} bytes wait for it: cancel its turn, or end it")]
    StdinFull { waiting: usize },
    #[error("lines from {from} on were requested, but those before {oldest} are acknowledged: attach from {oldest}")]
    Forgotten { from: u64, oldest: u64 },
    #[error("the shim speaks version {theirs} and this host {ours}: end the agent with the program that started it")]
    Version { theirs: u32, ours: u32 },
    #[error("the shim closed the connection: {0}")]
    ConnectionClosed(String),
    #[error("received an invalid message: {0}")]
    Nonsense(String),
    #[error("a line that is sent to an agent cannot hold a line break: encode it")]
    LineBreak,
    #[error("a line of {length} bytes is longer than the limit of {limit}")]
    LineTooLong { length: usize, limit: usize },
    #[error("the agent could not be started: {0}")]
    NotStarted(String),
    #[error("the shim could not be started: {0}")]
    Start(String),
    #[error("invalid options of a shim ({0}): only a host starts it")]
    Options(String),
    #[error("a shim cannot use {}: {error}", .path.display())]
    Folder { path: PathBuf, error: io::Error },
    #[error("{} can be entered by others: it must be a folder of this user's with mode 0700", .path.display())]
    NotPrivate { path: PathBuf },
    #[error("another shim runs in {}: attach to it, or choose another folder", .folder.display())]
    InUse { folder: PathBuf },
    #[error("the other end belongs to another user")]
    OtherUser,
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("a system call of the shim failed: {0}")]
    Io(io::Error),
}

impl ShimError {
    /// The error of an established connection.
    pub(crate) fn broken(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::NotConnected
            | io::ErrorKind::UnexpectedEof => ShimError::Broken,
            _ => ShimError::Io(error),
        }
    }
}
