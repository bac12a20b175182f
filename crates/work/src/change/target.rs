//! The place of a change: a name in an open folder.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use grove_checks::Check;
use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{ChangePolicy, stat_at};
use crate::policy::nearest;
use crate::{FileAccess, FileError, protection};

/// A name in a folder, checked, with its folder open.
#[derive(Debug)]
pub(super) struct Target {
    /// The path as it was given.
    pub(super) path: PathBuf,
    pub(super) real: PathBuf,
    pub(super) folder: OwnedFd,
    pub(super) name: OsString,
}

/// The use of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TargetUse {
    /// A link at its end is followed.
    Write,
    /// A link at its end is replaced itself.
    Replace,
    /// A link at its end goes itself. Roots, private files and the folders above them stay.
    Remove,
}

/// The flags to open a folder only as a place to look from, without following a link.
#[cfg(target_os = "linux")]
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl ChangePolicy {
    /// The place of a change, if the change is allowed there.
    pub(super) fn target(&self, path: &Path, use_of_it: TargetUse) -> Result<Target, FileError> {
        let real = self.real(path, use_of_it)?;
        self.check(path, &real, use_of_it)?;
        self.grants.check(path, &real)?;
        let outside = || FileError::Outside { path: path.to_owned() };
        let (folder, name) = real.parent().zip(real.file_name()).ok_or_else(outside)?;
        let (folder, name) = (self.open_folder(folder, path)?, name.to_owned());
        Ok(Target { path: path.to_owned(), real, folder, name })
    }

    /// The real path of a place, which may be missing.
    pub(super) fn real(&self, path: &Path, use_of_it: TargetUse) -> Result<PathBuf, FileError> {
        let outside = || FileError::Outside { path: path.to_owned() };
        let (parent, name) = path.parent().zip(path.file_name()).ok_or_else(outside)?;
        if use_of_it == TargetUse::Write {
            return real_or_missing(path).ok_or_else(outside);
        }
        Ok(real_or_missing(parent).ok_or_else(outside)?.join(name))
    }

    /// Checks everything about a real path but its grant.
    pub(super) fn check(&self, path: &Path, real: &Path, use_of_it: TargetUse) -> Result<(), FileError> {
        let shown = |access| {
            // A missing file's file system is that of the nearest folder above it.
            let above = real.ancestors().find(|above| above.symlink_metadata().is_ok());
            self.policy.shows(real, access) && above.is_some_and(|above| self.is_of_files(above))
        };
        if !shown(FileAccess::Change) {
            let path = path.to_owned();
            return Err(if shown(FileAccess::See) {
                FileError::ReadOnly { path }
            } else {
                FileError::Outside { path }
            });
        }
        let is_landmark = || self.policy.landmarks().iter().any(|landmark| landmark.starts_with(real));
        if use_of_it != TargetUse::Write && Check::ChangeLandmarks.is_enforced() && is_landmark() {
            return Err(FileError::Landmark { path: path.to_owned() });
        }
        match protection(self.policy.working_directories(), path, real) {
            Some(reason) if !self.changes_protected => Err(FileError::Protected { path: path.to_owned(), reason }),
            Some(_) | None => Ok(()),
        }
    }

    fn is_of_files(&self, above: &Path) -> bool {
        !crate::policy::describes_processes(above)
    }

    /// The nearest existing folder at or above a path, open, and the missing names below it.
    pub(super) fn missing_folders(&self, path: &Path) -> Result<(OwnedFd, Vec<OsString>), FileError> {
        let real = self.real(path, TargetUse::Write)?;
        self.check(path, &real, TargetUse::Write)?;
        self.grants.check(path, &real)?;
        let outside = || FileError::Outside { path: path.to_owned() };
        let above = real.ancestors().find(|above| above.symlink_metadata().is_ok()).ok_or_else(outside)?;
        let rest = real.strip_prefix(above).map_err(|_| outside())?;
        if !above.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            return Err(FileError::Exists { path: path.to_owned() });
        }
        let names = rest.components().map(|part| part.as_os_str().to_owned()).collect();
        Ok((self.open_folder(above, path)?, names))
    }

    /// Opens a folder by its real path, part by part: a link that was put in its way meanwhile is not followed.
    fn open_folder(&self, real: &Path, path: &Path) -> Result<OwnedFd, FileError> {
        open_folder(real).map_err(|errno| match errno {
            Errno::LOOP | Errno::NOTDIR => FileError::NotAFolder { path: real.to_owned() },
            errno => FileError::from_io(errno.into(), path),
        })
    }
}

impl Target {
    /// The metadata of what is there; `None` if it is missing.
    pub(super) fn stat(&self) -> Result<Option<Stat>, FileError> {
        stat_at(self.folder.as_fd(), &self.name).map_err(|errno| FileError::from_io(errno.into(), &self.path))
    }
}

/// Opens a folder by its real path, without following a link.
pub(super) fn open_folder(real: &Path) -> Result<OwnedFd, Errno> {
    let mut folder = rustix::fs::open("/", FOLDER, Mode::empty())?;
    for part in real.components() {
        if let Component::Normal(name) = part {
            folder = open_below(folder.as_fd(), name)?;
        }
    }
    Ok(folder)
}

/// Opens a folder in a folder, without following a link.
pub(super) fn open_below(folder: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    let follow = if Check::ChangeLinks.is_enforced() { OFlags::NOFOLLOW } else { OFlags::empty() };
    rustix::fs::openat(folder, name, FOLDER | follow, Mode::empty())
}

/// The real path of a file that may be missing. `..` leads nowhere in a folder that is missing.
fn real_or_missing(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = fs::canonicalize(path) {
        return Some(real);
    }
    let (above, rest) = nearest(path)?;
    rest.components().all(|part| matches!(part, Component::Normal(_))).then(|| above.join(rest))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_folder_is_opened_part_by_part_and_a_link_on_the_way_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        fs::create_dir_all(real.join("a/b")).unwrap();
        symlink(real.join("a"), real.join("link")).unwrap();
        open_folder(&real.join("a/b")).unwrap();
        assert!(matches!(open_folder(&real.join("link/b")), Err(Errno::NOTDIR | Errno::LOOP)));
        assert!(matches!(open_folder(&real.join("link")), Err(Errno::NOTDIR | Errno::LOOP)));
    }
}
