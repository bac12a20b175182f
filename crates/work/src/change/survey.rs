//! A look at everything below a folder before it is deleted, copied or moved.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use grove_checks::Check;
use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;

use super::{ChangePolicy, is_folder, stat_at};
use crate::FileError;
use crate::policy::{FileIdentity, identity};
use crate::protected::protected_name;

/// The files and folders below one that is deleted, copied or moved.
pub const MAX_CHANGED_ENTRIES: usize = 100_000;
/// The folders inside of each other below one that is deleted, copied or moved.
pub const MAX_CHANGED_DEPTH: usize = 100;

/// The bounds of one change of a folder.
#[derive(Debug)]
pub(super) struct TreeBudget<'p> {
    /// The path of the folder, for errors.
    path: &'p Path,
    entries: usize,
}

impl<'p> TreeBudget<'p> {
    pub(super) fn new(path: &'p Path) -> Self {
        Self { path, entries: 0 }
    }

    /// Counts one entry at a depth.
    pub(super) fn add(&mut self, depth: usize) -> Result<(), FileError> {
        let path = || self.path.to_owned();
        self.entries += 1;
        if !Check::ChangeSize.is_enforced() {
            return Ok(());
        }
        if self.entries > MAX_CHANGED_ENTRIES {
            return Err(FileError::TooManyEntries { path: path(), limit: MAX_CHANGED_ENTRIES });
        }
        if depth > MAX_CHANGED_DEPTH {
            return Err(FileError::TooDeep { path: path(), limit: MAX_CHANGED_DEPTH });
        }
        Ok(())
    }

    pub(super) fn failed(&self, errno: Errno) -> FileError {
        FileError::from_io(errno.into(), self.path)
    }
}

/// Refuses a folder that is too large, that holds protected files which may not be changed, or private ones.
pub(super) fn survey(
    policy: &ChangePolicy,
    folder: BorrowedFd<'_>,
    name: &OsString,
    real: &Path,
    path: &Path,
) -> Result<(), FileError> {
    let private = policy.policy.private();
    if private.iter().any(|private| private.starts_with(real)) {
        return Err(FileError::Landmark { path: path.to_owned() });
    }
    let private = private.iter().filter_map(|path| identity(path)).collect();
    let mut survey = Survey { policy, private, budget: TreeBudget::new(path) };
    survey.folder(folder, name, real, 1)
}

struct Survey<'p> {
    policy: &'p ChangePolicy,
    private: Vec<FileIdentity>,
    budget: TreeBudget<'p>,
}

impl Survey<'_> {
    fn folder(&mut self, parent: BorrowedFd<'_>, name: &OsString, real: &Path, depth: usize) -> Result<(), FileError> {
        if identity(real).is_some_and(|it| self.private.contains(&it)) {
            return Err(FileError::Landmark { path: self.budget.path.to_owned() });
        }
        let folder = open_listed(parent, name).map_err(|errno| self.budget.failed(errno))?;
        for name in names(&folder).map_err(|errno| self.budget.failed(errno))? {
            self.budget.add(depth)?;
            let below = real.join(&name);
            if !self.policy.changes_protected
                && Check::ProtectedFiles.is_enforced()
                && let Some(reason) = protected_name(&name)
            {
                return Err(FileError::Protected { path: below, reason });
            }
            let found = stat_at(folder.as_fd(), &name).map_err(|errno| self.budget.failed(errno))?;
            if found.is_some_and(|found| is_folder(&found)) {
                self.folder(folder.as_fd(), &name, &below, depth + 1)?;
            }
        }
        Ok(())
    }
}

/// Opens a folder in a folder to list it. A link is not followed.
pub(super) fn open_listed(folder: BorrowedFd<'_>, name: &OsString) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, Mode::empty())
}

/// The names in a folder, no more than a change may have.
pub(super) fn names(folder: &OwnedFd) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
        if name != "." && name != ".." {
            names.push(name);
        }
        // The caller counts, and refuses at this one.
        if names.len() > MAX_CHANGED_ENTRIES {
            break;
        }
    }
    Ok(names)
}
