//! What can go wrong.

use std::fmt;
use std::io;

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
    #[error("{path}: there is no room left: free some, then try again")]
    NoSpace { path: String },
    #[error("{path}: permission denied")]
    PermissionDenied { path: String },
    #[error("{path:?} is no path in a session's storage: {reason}")]
    BadPath { path: String, reason: BadPath },
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
            | FsError::NoSpace { path }
            | FsError::PermissionDenied { path }
            | FsError::BadPath { path, .. }
            | FsError::Other { path, .. } => path,
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
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FsError::NoSpace { path },
            io::ErrorKind::PermissionDenied => FsError::PermissionDenied { path },
            _ => FsError::Other { path, reason: error.to_string() },
        }
    }
}
