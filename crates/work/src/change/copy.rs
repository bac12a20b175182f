//! Copying.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};

use super::delete::remove_tree;
use super::survey::{TreeBudget, names, open_listed, survey};
use super::target::{TargetUse, open_folder};
use super::{ChangePolicy, MAX_COPIED_BYTES, is_folder, lock, permissions, stat_at, temporary_name};
use crate::{FileAccess, FileError};

/// Copies a file or a folder.
pub(super) fn copy(
    policy: &ChangePolicy,
    source: &Path,
    destination: &Path,
    fail_if_exists: bool,
) -> Result<(), FileError> {
    let real = policy.policy.find(source, FileAccess::Read)?;
    let to = policy.target(destination, TargetUse::Replace)?;
    let failed = |error| FileError::from_io(error, source);
    let not_a_file = || FileError::NotAFile { path: source.to_owned() };
    let (folder, name) = real.parent().zip(real.file_name()).ok_or_else(not_a_file)?;
    let folder = open_folder(folder).map_err(|errno| failed(errno.into()))?;
    let name = name.to_owned();
    let found = stat_at(folder.as_fd(), &name).map_err(|errno| failed(errno.into()))?;
    let found = found.ok_or_else(|| FileError::NotFound { path: source.to_owned() })?;
    let is_folder = is_folder(&found);
    if is_folder {
        if to.real.starts_with(&real) {
            return Err(FileError::InsideItself { path: source.to_owned() });
        }
        survey(policy, folder.as_fd(), &name, &real, source)?;
    }
    let beside = temporary_name();
    let mut copy = TreeCopy { policy, source, budget: TreeBudget::new(source), bytes: MAX_COPIED_BYTES };
    let copied = copy.entry((folder.as_fd(), &name, &found), &real, (to.folder.as_fd(), &beside), 1);
    let placed = copied.and_then(|()| {
        let _lock = lock();
        to.place(to.folder.as_fd(), &beside, is_folder, fail_if_exists)
    });
    if placed.is_err() {
        match is_folder {
            true => remove_tree(to.folder.as_fd(), &beside, &mut TreeBudget::new(source), 1).ok(),
            false => rustix::fs::unlinkat(&to.folder, &beside, AtFlags::empty()).ok(),
        };
    }
    placed
}

/// A copy in progress.
struct TreeCopy<'p> {
    policy: &'p ChangePolicy,
    source: &'p Path,
    budget: TreeBudget<'p>,
    /// The bytes that may still be copied.
    bytes: u64,
}

impl TreeCopy<'_> {
    /// Copies one entry to a new name. A link is copied as a link.
    fn entry(
        &mut self,
        (folder, name, found): (BorrowedFd<'_>, &OsString, &Stat),
        real: &Path,
        (to, new): (BorrowedFd<'_>, &OsString),
        depth: usize,
    ) -> Result<(), FileError> {
        let source = self.source;
        let failed = |errno: rustix::io::Errno| FileError::from_io(errno.into(), source);
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => self.file((folder, name, found), real, (to, new)),
            FileType::Symlink => {
                let link = rustix::fs::readlinkat(folder, name, Vec::new()).map_err(failed)?;
                rustix::fs::symlinkat(link, to, new).map_err(failed)
            }
            FileType::Directory => {
                let listed = open_listed(folder, name).map_err(failed)?;
                rustix::fs::mkdirat(to, new, Mode::RWXU).map_err(failed)?;
                let copy = open_listed(to, new).map_err(failed)?;
                for name in names(&listed).map_err(failed)? {
                    self.budget.add(depth)?;
                    let Some(found) = stat_at(listed.as_fd(), &name).map_err(failed)? else { continue };
                    let below = real.join(&name);
                    self.entry((listed.as_fd(), &name, &found), &below, (copy.as_fd(), &name), depth + 1)?;
                }
                rustix::fs::fchmod(&copy, permissions(found)).map_err(failed)
            }
            _ => Err(FileError::NotAFile { path: real.to_owned() }),
        }
    }

    fn file(
        &mut self,
        (folder, name, found): (BorrowedFd<'_>, &OsString, &Stat),
        real: &Path,
        (to, new): (BorrowedFd<'_>, &OsString),
    ) -> Result<(), FileError> {
        // A file with several names may be a private one.
        if found.st_nlink > 1 && !self.policy.policy.shows(real, FileAccess::Read) {
            return Err(FileError::Outside { path: real.to_owned() });
        }
        let too_large = || FileError::TooLarge { path: self.source.to_owned(), limit: MAX_COPIED_BYTES };
        let copied = copy_bytes((folder, name), (to, new), permissions(found), self.bytes);
        let copied = copied.map_err(|error| FileError::from_io(error, self.source))?;
        self.bytes = self.bytes.checked_sub(copied).ok_or_else(too_large)?;
        Ok(())
    }
}

/// Copies a file's content; returns its length, which is above `most` if there is more than that.
fn copy_bytes(
    (folder, name): (BorrowedFd<'_>, &OsString),
    (to, new): (BorrowedFd<'_>, &OsString),
    mode: Mode,
    most: u64,
) -> io::Result<u64> {
    // A pipe that was put in its place meanwhile does not block.
    let reads = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let writes = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let from: OwnedFd = rustix::fs::openat(folder, name, reads, Mode::empty())?;
    let mut copy = File::from(rustix::fs::openat(to, new, writes, Mode::RUSR | Mode::WUSR)?);
    let copied = io::copy(&mut File::from(from).take(most.saturating_add(1)), &mut copy)?;
    rustix::fs::fchmod(&copy, mode)?;
    Ok(copied)
}
