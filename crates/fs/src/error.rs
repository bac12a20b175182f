//! The errors of stores.

use std::fmt;
use std::io;
use std::time::Duration;

use rustix::io::Errno;

use crate::names::BadName;

/// The reason why a store refused or failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FsError {
    #[error("{path}: no such file or folder (ENOENT)")]
    NotFound { path: String },
    #[error("{path}: it exists already")]
    AlreadyExists { path: String },
    #[error("{path}: a part of it is not a folder")]
    NotADirectory { path: String },
    #[error("{path}: it is a folder")]
    IsADirectory { path: String },
    #[error("{path}: the folder is not empty: remove its content first, or all of it at once")]
    NotEmpty { path: String },
    #[error("{path}: there is no room left: free some, then try again")]
    NoSpace { path: String },
    #[error("{path}: permission denied")]
    PermissionDenied { path: String },
    #[error("{} is not a valid path in a session's storage: {reason}", EscapedName(path))]
    BadPath { path: String, reason: BadPath },
    #[error("{} cannot be the name of a session's file: {reason}", EscapedName(path))]
    BadName { path: String, reason: BadName },
    #[error("{path}: a symbolic link is on the way, and is not followed: put the file itself there")]
    Link { path: String },
    #[error("{path}: it is not text (UTF-8), and this store only accepts text")]
    NotText { path: String },
    #[error("{path}: it is larger than the limit of {limit} bytes")]
    TooLarge { path: String, limit: u64 },
    #[error("{path}: line {line} is longer than {limit} bytes")]
    LongLine { path: String, line: u64, limit: usize },
    #[error("{path}: the storage client did not answer within {limit:?}: it may or may not have done it")]
    TimedOut { path: String, limit: Duration },
    #[error("{path}: the storage client is not connected: connect it, then try again")]
    Disconnected { path: String },
    #[error("{path}: the storage client's answer is invalid: {reason}")]
    BadAnswer { path: String, reason: String },
    #[error("{path}: the sessions of a storage client share no files, so a file cannot be moved between them: copy it")]
    AcrossSessions { path: String },
    #[error("{path}: {reason}")]
    Other { path: String, reason: String },
}

/// The fault of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadPath {
    Absolute,
    /// `.` or `..`
    DotPart,
    /// `a//b`, or a `/` at the end.
    EmptyPart,
    Nul,
    /// A part that no file system accepts.
    LongPart,
    LongPath,
    /// A separator inside a single part: a `\` in a store where it separates parts, a `/` in a session's id.
    Separator,
    /// The root in place of a file.
    Root,
}

impl fmt::Display for BadPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadPath::Absolute => "it must be relative to the store's root",
            BadPath::DotPart => "`.` and `..` may not be parts of it",
            BadPath::EmptyPart => "none of its parts may be empty",
            BadPath::Nul => "it has a NUL in it",
            BadPath::LongPart => "none of its parts may have more than 255 bytes",
            BadPath::LongPath => "it may not have more than 4096 bytes",
            BadPath::Separator => "it has a separator where a single part is required",
            BadPath::Root => "the store's root is not a file",
        })
    }
}

/// The path in an error, shared or mutable as the error is.
macro_rules! path_of {
    ($error:expr) => {
        match $error {
            FsError::NotFound { path }
            | FsError::AlreadyExists { path }
            | FsError::NotADirectory { path }
            | FsError::IsADirectory { path }
            | FsError::NotEmpty { path }
            | FsError::NoSpace { path }
            | FsError::PermissionDenied { path }
            | FsError::BadPath { path, .. }
            | FsError::BadName { path, .. }
            | FsError::Link { path }
            | FsError::NotText { path }
            | FsError::TooLarge { path, .. }
            | FsError::LongLine { path, .. }
            | FsError::TimedOut { path, .. }
            | FsError::Disconnected { path }
            | FsError::BadAnswer { path, .. }
            | FsError::AcrossSessions { path }
            | FsError::Other { path, .. } => path,
        }
    };
}

impl FsError {
    /// The path of the call.
    pub fn path(&self) -> &str {
        path_of!(self)
    }

    /// The same error about another path: a view of a store uses its own paths.
    #[must_use]
    pub fn at(mut self, other: &str) -> Self {
        other.clone_into(path_of!(&mut self));
        self
    }

    /// The error code on the wire. Errors without a code of their own are `UNKNOWN`.
    pub fn code(&self) -> &'static str {
        match self {
            FsError::NotFound { .. } => "ENOENT",
            FsError::AlreadyExists { .. } => "EEXIST",
            FsError::NotADirectory { .. } => "ENOTDIR",
            FsError::IsADirectory { .. } => "EISDIR",
            FsError::NotEmpty { .. } => "ENOTEMPTY",
            FsError::NoSpace { .. } => "ENOSPC",
            FsError::PermissionDenied { .. } => "EACCES",
            FsError::BadPath { .. } | FsError::BadName { .. } => "EINVAL",
            FsError::Link { .. } => "ELOOP",
            FsError::NotText { .. } => "EILSEQ",
            FsError::TooLarge { .. } | FsError::LongLine { .. } => "EFBIG",
            FsError::TimedOut { .. } => "ETIMEDOUT",
            FsError::Disconnected { .. } => "ENOTCONN",
            FsError::BadAnswer { .. } => "EPROTO",
            FsError::AcrossSessions { .. } => "EXDEV",
            FsError::Other { .. } => "UNKNOWN",
        }
    }

    /// An error of the operating system about a path.
    pub fn from_io(error: &io::Error, path: &str) -> Self {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::NotFound => FsError::NotFound { path },
            io::ErrorKind::AlreadyExists => FsError::AlreadyExists { path },
            io::ErrorKind::NotADirectory => FsError::NotADirectory { path },
            io::ErrorKind::IsADirectory => FsError::IsADirectory { path },
            io::ErrorKind::DirectoryNotEmpty => FsError::NotEmpty { path },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FsError::NoSpace { path },
            io::ErrorKind::PermissionDenied => FsError::PermissionDenied { path },
            _ if Errno::from_io_error(error) == Some(Errno::LOOP) => FsError::Link { path },
            _ => FsError::Other { path, reason: error.to_string() },
        }
    }
}

/// A name from outside in a message: terminal control characters are escaped, and it is cut at a line's length.
struct EscapedName<'a>(&'a str);

impl fmt::Display for EscapedName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONGEST: usize = 80;
        match self.0.char_indices().nth(LONGEST) {
            None => write!(f, "{:?}", self.0),
            Some((end, _)) => write!(f, "{:?}…", &self.0[..end]),
        }
    }
}
