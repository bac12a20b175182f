//! Changes of files and folders: writing, creating, deleting, copying, moving.
//!
//! Every change passes [`ChangePolicy::target`], which resolves a path, checks it, and opens its folder without following
//! a link. The change itself names the file in that open folder, so a link that is put in the way meanwhile leads nowhere.

mod copy;
mod delete;
pub(crate) mod grants;
pub(crate) mod survey;
mod target;
mod write;

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, FileType, Mode, RenameFlags, Stat};
use rustix::io::Errno;

pub use self::grants::WriteGrants;
use self::target::{Target, TargetUse};
pub use self::write::{FileWrite, WriteMode};
use crate::error::blocking;
use crate::{FileError, Policy};

/// The bytes of files that one copy may have.
pub const MAX_COPIED_BYTES: u64 = 2 << 30;

/// The right to change files: the granted paths inside the working directories of a policy.
#[derive(Clone, Debug)]
pub struct ChangePolicy {
    policy: Policy,
    grants: WriteGrants,
    changes_protected: bool,
}

impl ChangePolicy {
    /// The right to change the granted paths, without protected files.
    pub fn new(policy: Policy, grants: WriteGrants) -> Self {
        Self { policy, grants, changes_protected: false }
    }

    /// The same right, with protected files.
    #[must_use]
    pub fn with_protected(self) -> Self {
        Self { changes_protected: true, ..self }
    }

    /// The real path to grant for changes at a path, which may be missing. Everything but the grant is checked.
    pub async fn grantable(&self, path: &Path) -> Result<PathBuf, FileError> {
        let policy = self.clone();
        blocking(path, move |path| {
            let real = policy.real(path, TargetUse::Write)?;
            policy.check(path, &real, TargetUse::Write)?;
            Ok(real)
        })
        .await
    }

    /// Writes a file, in one step. A replaced file keeps its permissions.
    pub async fn write(&self, path: &Path, write: FileWrite) -> Result<(), FileError> {
        let policy = self.clone();
        blocking(path, move |path| write::write(&policy, path, &write)).await
    }

    /// Creates a folder, with the missing ones above it. An existing folder is fine.
    pub async fn create_folder(&self, path: &Path) -> Result<(), FileError> {
        let policy = self.clone();
        blocking(path, move |path| policy.create_folder_now(path)).await
    }

    /// Deletes a file, a link or a folder; one that is not empty only with `recursive`.
    pub async fn delete(&self, path: &Path, recursive: bool) -> Result<(), FileError> {
        let policy = self.clone();
        blocking(path, move |path| delete::delete(&policy, path, recursive)).await
    }

    /// Copies a file or a folder. An existing file is replaced, unless that is to fail; an existing folder never is.
    pub async fn copy(&self, source: &Path, destination: &Path, fail_if_exists: bool) -> Result<(), FileError> {
        let (policy, destination) = (self.clone(), destination.to_owned());
        blocking(source, move |source| copy::copy(&policy, source, &destination, fail_if_exists)).await
    }

    /// Moves a file, a link or a folder. An existing file is replaced, unless that is to fail; an existing folder never is.
    pub async fn rename(&self, source: &Path, destination: &Path, fail_if_exists: bool) -> Result<(), FileError> {
        let (policy, destination) = (self.clone(), destination.to_owned());
        blocking(source, move |source| policy.rename_now(source, &destination, fail_if_exists)).await
    }

    fn create_folder_now(&self, path: &Path) -> Result<(), FileError> {
        let (folder, missing) = self.missing_folders(path)?;
        let mut folder = folder;
        for name in missing {
            let failed = |errno: Errno| FileError::from_io(errno.into(), path);
            match rustix::fs::mkdirat(&folder, &name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed(errno)),
            }
            folder = target::open_below(folder.as_fd(), &name).map_err(|errno| match errno {
                Errno::NOTDIR | Errno::LOOP => FileError::Exists { path: path.to_owned() },
                errno => failed(errno),
            })?;
        }
        Ok(())
    }

    fn rename_now(&self, source: &Path, destination: &Path, fail_if_exists: bool) -> Result<(), FileError> {
        let from = self.target(source, TargetUse::Remove)?;
        let to = self.target(destination, TargetUse::Replace)?;
        let found = from.stat()?.ok_or_else(|| FileError::NotFound { path: source.to_owned() })?;
        if to.real.starts_with(&from.real) && to.real != from.real {
            return Err(FileError::InsideItself { path: source.to_owned() });
        }
        if is_folder(&found) {
            survey::survey(self, from.folder.as_fd(), &from.name, &from.real, source)?;
        }
        let _lock = lock();
        to.place(from.folder.as_fd(), &from.name, is_folder(&found), fail_if_exists).map_err(|error| match error {
            FileError::OtherFileSystem { .. } => FileError::OtherFileSystem { path: source.to_owned() },
            error => error,
        })
    }
}

impl Target {
    /// Puts a file or folder of the same file system into this place, in one step.
    fn place(&self, folder: BorrowedFd<'_>, name: &OsString, is_folder: bool, keep: bool) -> Result<(), FileError> {
        let path = || self.path.clone();
        let exists = || FileError::Exists { path: path() };
        let replaces = match self.stat()? {
            Some(found) if keep || is_folder || self::is_folder(&found) => return Err(exists()),
            found => found.is_some(),
        };
        let flags = if replaces { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        let renamed = match rustix::fs::renameat_with(folder, name, &self.folder, &self.name, flags) {
            // Not every file system can refuse to replace.
            Err(Errno::INVAL | Errno::NOSYS) => rustix::fs::renameat(folder, name, &self.folder, &self.name),
            renamed => renamed,
        };
        renamed.map_err(|errno| match errno {
            Errno::EXIST => exists(),
            Errno::XDEV => FileError::OtherFileSystem { path: path() },
            errno => FileError::from_io(errno.into(), &self.path),
        })
    }
}

/// Held while a version is compared and replaced, so that two clients never both replace the same one.
fn lock() -> MutexGuard<'static, ()> {
    static CHANGES: Mutex<()> = Mutex::new(());
    CHANGES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_folder(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode).is_dir()
}

fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode).is_file()
}

fn permissions(stat: &Stat) -> Mode {
    Mode::from_raw_mode(stat.st_mode) & (Mode::RWXU | Mode::RWXG | Mode::RWXO)
}

/// The metadata of a name in a folder, links not followed; `None` if it is missing.
fn stat_at(folder: BorrowedFd<'_>, name: &OsString) -> Result<Option<Stat>, Errno> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// A name for a file beside the one that it becomes.
fn temporary_name() -> OsString {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!(".grove-{}-{}.tmp", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)).into()
}
