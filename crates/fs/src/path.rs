//! Checking paths before a store is asked.

use crate::names::MAX_PART;
use crate::{BadPath, FsError, Result};

/// The longest path, in bytes: the common limit of operating systems.
pub const MAX_PATH: usize = 4096;

/// The parts of a path; none for the root.
pub(crate) fn parts(path: &str) -> Result<Vec<&str>> {
    let bad = |reason| FsError::BadPath { path: path.to_owned(), reason };
    if path.is_empty() {
        return Ok(Vec::new());
    }
    if path.starts_with('/') {
        return Err(bad(BadPath::Absolute));
    }
    if path.contains('\0') {
        return Err(bad(BadPath::Nul));
    }
    if path.len() > MAX_PATH {
        return Err(bad(BadPath::LongPath));
    }
    let parts: Vec<&str> = path.split('/').collect();
    if parts.iter().any(|part| part.is_empty()) {
        return Err(bad(BadPath::EmptyPart));
    }
    if parts.iter().any(|part| *part == "." || *part == "..") {
        return Err(bad(BadPath::DotPart));
    }
    if parts.iter().any(|part| part.len() > MAX_PART) {
        return Err(bad(BadPath::LongPart));
    }
    Ok(parts)
}

/// The parts of a path that is not the root.
pub(crate) fn file_parts(path: &str) -> Result<Vec<&str>> {
    let parts = parts(path)?;
    if parts.is_empty() {
        return Err(FsError::BadPath { path: path.to_owned(), reason: BadPath::Root });
    }
    Ok(parts)
}

/// Returns whether a name in a folder can be a part of a path.
pub(crate) fn is_part(name: &str) -> bool {
    !name.contains('/') && file_parts(name).is_ok()
}
