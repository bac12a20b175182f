//! Deleting.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::survey::{TreeBudget, names, open_listed, survey};
use super::target::TargetUse;
use super::{ChangePolicy, is_folder, lock, stat_at};
use crate::FileError;

/// Deletes a file, a link or a folder.
pub(super) fn delete(policy: &ChangePolicy, path: &Path, recursive: bool) -> Result<(), FileError> {
    let target = policy.target(path, TargetUse::Remove)?;
    let found = target.stat()?.ok_or_else(|| FileError::NotFound { path: path.to_owned() })?;
    let failed = |errno| FileError::from_io(Errno::into(errno), path);
    if !is_folder(&found) {
        let _lock = lock();
        return rustix::fs::unlinkat(&target.folder, &target.name, AtFlags::empty()).map_err(failed);
    }
    if recursive {
        survey(policy, target.folder.as_fd(), &target.name, &target.real, path)?;
        return remove_tree(target.folder.as_fd(), &target.name, &mut TreeBudget::new(path), 1);
    }
    rustix::fs::unlinkat(&target.folder, &target.name, AtFlags::REMOVEDIR).map_err(|errno| match errno {
        Errno::NOTEMPTY | Errno::EXIST => FileError::NotEmpty { path: path.to_owned() },
        errno => failed(errno),
    })
}

/// Deletes a folder with everything in it. Links in it go, and their targets stay.
pub(super) fn remove_tree(
    parent: BorrowedFd<'_>,
    name: &OsString,
    budget: &mut TreeBudget<'_>,
    depth: usize,
) -> Result<(), FileError> {
    let folder = open_listed(parent, name).map_err(|errno| budget.failed(errno))?;
    for name in names(&folder).map_err(|errno| budget.failed(errno))? {
        budget.add(depth)?;
        match stat_at(folder.as_fd(), &name).map_err(|errno| budget.failed(errno))? {
            Some(found) if is_folder(&found) => remove_tree(folder.as_fd(), &name, budget, depth + 1)?,
            Some(_) => {
                rustix::fs::unlinkat(&folder, &name, AtFlags::empty()).map_err(|errno| budget.failed(errno))?;
            }
            None => {}
        }
    }
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR).map_err(|errno| budget.failed(errno))
}
