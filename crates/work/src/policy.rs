//! What may be seen of the file system.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::FileError;
use crate::error::blocking;

/// Which parts of the file system may be seen, whatever sessions there are.
#[derive(Clone, Debug, Default)]
pub struct Roots {
    /// What may be listed.
    pub browse: Vec<PathBuf>,
    /// What may be read.
    pub read: Vec<PathBuf>,
    /// Folders and files that may never be seen, wherever they lie: Grove's own.
    pub private: Vec<PathBuf>,
}

/// What somebody wants with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAccess {
    /// The names in a folder.
    Browse,
    /// The bytes of a file.
    Read,
    /// Only that it is there, and what it is: given where either of the others is.
    See,
}

/// The roots and the working directories at one moment. Clones are cheap.
///
/// Nothing is remembered of the file system: every question resolves links anew, so a folder that became a link
/// since the last one is seen through.
#[derive(Clone, Debug)]
pub struct Policy(Arc<PolicyInner>);

#[derive(Debug)]
struct PolicyInner {
    roots: Roots,
    /// The folders in which sessions work: they may be listed and read.
    working_directories: Vec<PathBuf>,
}

/// How many links that lead nowhere are followed, one after another; as many as the system does.
const MOST_LINKS: usize = 40;

impl Policy {
    pub fn new(roots: Roots, mut working_directories: Vec<PathBuf>) -> Self {
        // Many sessions work in the same folder.
        working_directories.sort_unstable();
        working_directories.dedup();
        Self(Arc::new(PolicyInner { roots, working_directories }))
    }

    /// The real path, links followed, where it lies inside one of the roots and is not private.
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
            // Whether something exists outside the roots is nobody's business: what is missing is only said to be so
            // where the nearest folder above it may be seen.
            Err(error) => match nearest(path) {
                Some((above, _)) if self.shows(&above, access) => Err(FileError::from_io(error, path)),
                Some(_) | None => Err(outside()),
            },
        }
    }

    /// Whether a link may be looked at for itself: not what it leads to, but that it is there.
    pub(crate) fn shows_link(&self, path: &Path, access: FileAccess) -> bool {
        let is_root = self.roots(access).any(|root| root == path);
        let Some((folder, name)) = path.parent().zip(path.file_name()) else { return is_root };
        let Ok(folder) = fs::canonicalize(folder) else { return false };
        let link = folder.join(name);
        !is_private(&link, &self.private()) && (is_root || self.shows(&folder, access))
    }

    /// What is private, resolved as things are now. What does not exist is private before it does.
    pub(crate) fn private(&self) -> Vec<PathBuf> {
        let private = self.0.roots.private.iter();
        private.map(|path| nearest(path).map_or_else(|| path.clone(), |(above, rest)| above.join(rest))).collect()
    }

    fn shows(&self, real: &Path, access: FileAccess) -> bool {
        let inside = |root: &PathBuf| fs::canonicalize(root).is_ok_and(|root| real.starts_with(root));
        !is_private(real, &self.private()) && self.roots(access).any(inside)
    }

    fn roots(&self, access: FileAccess) -> impl Iterator<Item = &PathBuf> {
        let PolicyInner { roots, working_directories } = self.0.as_ref();
        let browse = if access == FileAccess::Read { &[][..] } else { &roots.browse };
        let read = if access == FileAccess::Browse { &[][..] } else { &roots.read };
        browse.iter().chain(read).chain(working_directories)
    }
}

pub(crate) fn is_private(real: &Path, private: &[PathBuf]) -> bool {
    private.iter().any(|folder| real.starts_with(folder))
}

/// The real path of the nearest thing at or above a path, and what of the path is missing below it. A link that
/// leads nowhere is followed to where its target would be: it must not tell what is missing there.
fn nearest(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let mut target = None;
        for above in path.ancestors() {
            let rest = path.strip_prefix(above).ok()?;
            if let Ok(real) = fs::canonicalize(above) {
                return Some((real, rest.to_owned()));
            }
            if let Ok(link) = fs::read_link(above) {
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
