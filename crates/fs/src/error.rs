//! What can go wrong.

use std::fmt;
use std::io;
use std::time::Duration;

use rustix::io::Errno;

use crate::names::BadName;

/// Why a store did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FsError {
    #[error("{path}: no such file or folder (ENOENT)")]
    NotFound { path: String },
    #[error("{path}: there is something of that name already")]
    AlreadyExists { path: String },
    #[error("{path}: a part of it is not a folder")]
    NotADirectory { path: String },
    #[error("{path}: it is a folder")]
    IsADirectory { path: String },
    #[error("{path}: the folder is not empty: remove what is in it first, or all of it at once")]
    NotEmpty { path: String },
    #[error("{path}: there is no room left: free some, then try again")]
    NoSpace { path: String },
    #[error("{path}: permission denied")]
    PermissionDenied { path: String },
    #[error("{} is no path in a session's storage: {reason}", EscapedName(path))]
    BadPath { path: String, reason: BadPath },
    #[error("{} cannot be the name of a session's file: {reason}", EscapedName(path))]
    BadName { path: String, reason: BadName },
    #[error("{path}: a symbolic link stands in its way, and is not followed here: put the file itself there")]
    Link { path: String },
    #[error("{path}: it is not text (UTF-8), and this store can only take text")]
    NotText { path: String },
    #[error("{path}: it is larger than {limit} bytes, the most that can be taken at once")]
    TooLarge { path: String, limit: u64 },
    #[error("{path}: line {line} is longer than {limit} bytes")]
    LongLine { path: String, line: u64, limit: usize },
    #[error("{path}: the provider did not answer within {limit:?}: whether it did what it was asked is not known")]
    TimedOut { path: String, limit: Duration },
    #[error("{path}: the provider is not connected: connect it again, then try again")]
    Disconnected { path: String },
    #[error("{path}: the provider's answer cannot be understood: {reason}")]
    BadAnswer { path: String, reason: String },
    #[error(
        "{path}: the sessions of a provider share no files, so nothing goes from one to another by its name: copy it"
    )]
    AcrossSessions { path: String },
    #[error("{path}: {reason}")]
    Other { path: String, reason: String },
}

/// What is wrong with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadPath {
    Absolute,
    /// `.` or `..`
    DotPart,
    /// `a//b`, or a `/` at the end.
    EmptyPart,
    Nul,
    /// A part that no file system would take.
    LongPart,
    LongPath,
    /// A separator where one part is meant: a `\` in a store where it separates parts, a `/` in a session's id.
    Separator,
    /// The root, where a file is meant.
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
            BadPath::Separator => "a separator stands in what must be one part",
            BadPath::Root => "the store's root is not a file",
        })
    }
}

impl FsError {
    /// The path that the call was about.
    pub fn path(&self) -> &str {
        match self {
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
    }

    /// The same about another path: a view of a store speaks of its own paths.
    #[must_use]
    pub fn at(mut self, other: &str) -> Self {
        match &mut self {
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
            | FsError::Other { path, .. } => other.clone_into(path),
        }
        self
    }

    /// The code under which others know this error. What none of them fits is `UNKNOWN`.
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

    /// What the operating system said, about a path.
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

/// A name from outside in a message: what would steer a terminal is escaped, and it is no longer than a line.
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
