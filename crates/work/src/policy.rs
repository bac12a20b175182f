//! The visible part of the file system.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::FileError;
use crate::error::blocking;
use grove_checks::Check;

/// The configured visible parts of the file system, independent of sessions.
#[derive(Clone, Debug, Default)]
pub struct Roots {
    /// Folders that may be listed.
    pub browse: Vec<PathBuf>,
    /// Folders that may be read.
    pub read: Vec<PathBuf>,
    /// Grove's own folders and files, which are never visible, wherever they are.
    pub private: Vec<PathBuf>,
}

/// The kind of access to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAccess {
    /// To list a folder.
    Browse,
    /// To read a file.
    Read,
    /// To see its existence and kind: allowed if listing or reading is.
    See,
    /// To change it: allowed in the working directories of sessions alone. A [`crate::ChangePolicy`] checks more.
    Change,
}

/// The roots and the working directories at one moment. Clones are cheap.
///
/// Nothing of the file system is cached: every call resolves links again, so a folder that became a link since the last
/// call is handled correctly.
#[derive(Clone, Debug)]
pub struct Policy(Arc<PolicyInner>);

#[derive(Debug)]
struct PolicyInner {
    roots: Roots,
    /// The working directories of sessions: they may be listed and read.
    working_directories: Vec<PathBuf>,
}

/// The most broken links that are followed, one after another; the same limit as the system's.
pub const MOST_LINKS: usize = 40;
/// The most private files that a file with several names is compared with.
pub const MOST_COMPARED: usize = 20_000;

impl Policy {
    pub fn new(roots: Roots, mut working_directories: Vec<PathBuf>) -> Self {
        // Many sessions work in the same folder.
        working_directories.sort_unstable();
        working_directories.dedup();
        Self(Arc::new(PolicyInner { roots, working_directories }))
    }

    /// The real path, links followed, if it is inside one of the roots and not private.
    pub async fn allowed(&self, path: &Path, access: FileAccess) -> Result<PathBuf, FileError> {
        let policy = self.clone();
        blocking(path, move |path| policy.find(path, access)).await
    }

    /// [`Policy::allowed`], blocking.
    pub(crate) fn find(&self, path: &Path, access: FileAccess) -> Result<PathBuf, FileError> {
        let outside = || FileError::Outside { path: path.to_owned() };
        match fs::canonicalize(path) {
            Ok(real) if self.shows(&real, access) => Ok(real),
            Ok(_) => Err(outside()),
            // The existence of files outside the roots is not revealed: a missing file is only reported as such if the
            // nearest existing folder above it may be seen.
            Err(error) => match nearest(path) {
                Some((above, _)) if !Check::HiddenExistence.is_enforced() || self.shows(&above, access) => {
                    Err(FileError::from_io(error, path))
                }
                Some(_) | None => Err(outside()),
            },
        }
    }

    /// Returns whether a link itself may be seen: not its target, but its existence.
    pub(crate) fn shows_link(&self, path: &Path, access: FileAccess) -> bool {
        let is_root = self.roots(access).any(|root| root == path);
        let Some((folder, name)) = path.parent().zip(path.file_name()) else { return is_root };
        let Ok(folder) = fs::canonicalize(folder) else { return false };
        let link = folder.join(name);
        !is_private(&link, &self.private()) && (is_root || self.shows(&folder, access))
    }

    /// The private paths, resolved now. A path is private even before it exists.
    pub(crate) fn private(&self) -> Vec<PathBuf> {
        let private = self.0.roots.private.iter();
        private.map(|path| nearest(path).map_or_else(|| path.clone(), |(above, rest)| above.join(rest))).collect()
    }

    /// Says whether a real path, which may be missing, is inside one of the roots and not private.
    pub(crate) fn shows(&self, real: &Path, access: FileAccess) -> bool {
        let inside = |root: &PathBuf| {
            !Check::Roots.is_enforced() || fs::canonicalize(root).is_ok_and(|root| real.starts_with(root))
        };
        let private = self.private();
        !is_private(real, &private)
            && self.roots(access).any(inside)
            && !describes_processes(real)
            && !is_private_under_another_name(real, &private)
    }

    fn roots(&self, access: FileAccess) -> impl Iterator<Item = &PathBuf> {
        let PolicyInner { roots, working_directories } = self.0.as_ref();
        let changes = access == FileAccess::Change && Check::ChangeFolders.is_enforced();
        let browse = if access == FileAccess::Read || changes { &[][..] } else { &roots.browse };
        let read = if access == FileAccess::Browse || changes { &[][..] } else { &roots.read };
        browse.iter().chain(read).chain(working_directories)
    }

    /// The working directories of sessions.
    pub(crate) fn working_directories(&self) -> &[PathBuf] {
        &self.0.working_directories
    }

    /// The real paths of all roots, working directories and private paths: what other parts of the host rely on.
    pub(crate) fn landmarks(&self) -> Vec<PathBuf> {
        let PolicyInner { roots, working_directories } = self.0.as_ref();
        let visible = roots.browse.iter().chain(&roots.read).chain(working_directories);
        visible.filter_map(|path| fs::canonicalize(path).ok()).chain(self.private()).collect()
    }
}

pub(crate) fn is_private(real: &Path, private: &[PathBuf]) -> bool {
    Check::PrivateFiles.is_enforced() && private.iter().any(|folder| real.starts_with(folder))
}

/// Returns whether a file describes processes, as those below `/proc` do: they hold environments, and lead to any file.
pub(crate) fn describes_processes(real: &Path) -> bool {
    Check::ProcessFiles.is_enforced()
        && rustix::fs::statfs(real).is_ok_and(|found| found.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

/// The file system of a file and its number there: they are the same under any name.
pub(crate) type FileIdentity = (u64, u64);

pub(crate) fn identity(path: &Path) -> Option<FileIdentity> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// Returns whether a path leads to something private: through a folder that is mounted twice, or by a hard link.
fn is_private_under_another_name(real: &Path, private: &[PathBuf]) -> bool {
    let known: Vec<FileIdentity> = private.iter().filter_map(|path| identity(path)).collect();
    if Check::SecondMount.is_enforced() && real.ancestors().filter_map(identity).any(|above| known.contains(&above)) {
        return true;
    }
    // Most files have one name. Package managers link files, so this must not take long.
    let Ok(found) = fs::symlink_metadata(real) else { return false };
    let has_names = Check::HardLinks.is_enforced() && found.is_file() && found.nlink() > 1;
    has_names && is_linked(private, (found.dev(), found.ino()))
}

/// Returns whether one of the first [`MOST_COMPARED`] files below these folders is this one. Upper folders come first:
/// tokens and keys are there.
fn is_linked(folders: &[PathBuf], file: FileIdentity) -> bool {
    let (mut waiting, mut compared) = (VecDeque::from(folders.to_vec()), 0);
    while let Some(folder) = waiting.pop_front() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            compared += 1;
            let Ok(found) = entry.metadata() else { continue };
            if (found.dev(), found.ino()) == file {
                return true;
            }
            if compared == MOST_COMPARED {
                return false;
            }
            if found.is_dir() {
                waiting.push_back(entry.path());
            }
        }
    }
    false
}

/// The real path of the nearest existing file or folder at or above a path, and the missing rest of the path. A broken
/// link is followed to its missing target: it must not reveal what is missing there.
pub(crate) fn nearest(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let mut target = None;
        for above in path.ancestors() {
            let rest = path.strip_prefix(above).ok()?;
            if let Ok(real) = fs::canonicalize(above) {
                return Some((real, rest.to_owned()));
            }
            if let Ok(link) = fs::read_link(above)
                && Check::BrokenLinks.is_enforced()
            {
                // Part by part: an empty rest would leave a slash at the end, which follows links by itself.
                let mut there = above.parent()?.join(link);
                there.extend(rest);
                target = Some(there);
                break;
            }
        }
        path = target?;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_private_folder_is_known_by_its_number_under_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join("work");
        fs::create_dir_all(work.join("private/deep")).unwrap();
        fs::create_dir_all(work.join("other")).unwrap();
        // A folder that is mounted twice has two real paths. A link stands for the second mount here.
        symlink(&work, folder.path().join("mount")).unwrap();
        let private = [folder.path().join("mount/private")];
        assert!(!is_private(&work.join("private/deep"), &private));
        assert!(is_private_under_another_name(&work.join("private/deep"), &private));
        assert!(!is_private_under_another_name(&work.join("other"), &private));
    }
}
