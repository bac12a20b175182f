//! Resolving a path from the root to its folder, folder by folder if links are not followed.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::SystemTime;

use grove_checks::Check;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::{FileKind, Stat};

/// The treatment of symbolic links below the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SymlinkPolicy {
    /// The folder is Grove's own: links in it are intended.
    Follow,
    /// Others write there too.
    Refuse,
}

impl SymlinkPolicy {
    fn open_flags(self) -> OFlags {
        match self {
            SymlinkPolicy::Follow => OFlags::CLOEXEC,
            SymlinkPolicy::Refuse if !Check::Links.is_enforced() => OFlags::CLOEXEC,
            SymlinkPolicy::Refuse => OFlags::CLOEXEC | OFlags::NOFOLLOW,
        }
    }

    pub(super) fn at_flags(self) -> AtFlags {
        match self {
            SymlinkPolicy::Follow => AtFlags::empty(),
            SymlinkPolicy::Refuse if !Check::Links.is_enforced() => AtFlags::empty(),
            SymlinkPolicy::Refuse => AtFlags::SYMLINK_NOFOLLOW,
        }
    }
}

/// The treatment of missing folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissingFolders {
    Fail,
    Make,
}

/// The root of a store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Root<'a> {
    pub(super) path: &'a Path,
    /// A folder that must exist before anything is created.
    pub(super) container: Option<&'a Path>,
}

/// A path below the root that was checked and is not the root.
#[derive(Debug)]
pub(super) struct LocalPath<'a> {
    root: Root<'a>,
    /// The folders that lead to it; empty for the root.
    folders: &'a str,
    name: &'a str,
    links: SymlinkPolicy,
}

impl<'a> LocalPath<'a> {
    pub(super) fn new(root: Root<'a>, path: &'a str, links: SymlinkPolicy) -> Self {
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        Self { root, folders, name, links }
    }

    pub(super) fn name(&self) -> &str {
        self.name
    }

    /// Opens the folder that contains it.
    pub(super) fn folder(&self, missing: MissingFolders) -> io::Result<OwnedFd> {
        open_folder(self.root, self.folders, self.links, missing)
    }

    /// Opens the file at this path. Anything but a file is refused; opening never blocks.
    pub(super) fn open_file(&self, flags: OFlags) -> io::Result<File> {
        let folder = self.folder(MissingFolders::Fail)?;
        let flags = flags | self.links.open_flags() | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(rustix::fs::openat(&folder, self.name, flags, Mode::RUSR | Mode::WUSR)?);
        let kind = file.metadata()?;
        if kind.is_file() {
            Ok(file)
        } else if kind.is_dir() {
            Err(Errno::ISDIR.into())
        } else {
            Err(io::Error::other("it is not a file, but a pipe, a socket or a device"))
        }
    }

    pub(super) fn stat(&self) -> io::Result<Stat> {
        self.stat_in(&self.folder(MissingFolders::Fail)?)
    }

    /// The stat of this path, in its folder.
    pub(super) fn stat_in(&self, folder: impl AsFd) -> io::Result<Stat> {
        let stat = rustix::fs::statat(&folder, self.name, self.links.at_flags())?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::Symlink {
            return Err(Errno::LOOP.into());
        }
        let modified = time(stat.st_mtime, stat.st_mtime_nsec);
        let created = created(folder, self.name, self.links).unwrap_or(modified);
        let size = if kind == FileType::Directory { 0 } else { u64::try_from(stat.st_size).unwrap_or(0) };
        Ok(Stat { kind: super::kind_of(kind), size, modified, created })
    }

    /// Creates a folder here, and those that lead to it.
    pub(super) fn make_folder(&self) -> io::Result<()> {
        let above = self.folder(MissingFolders::Make)?;
        match rustix::fs::mkdirat(&above, self.name, Mode::RWXU) {
            Err(Errno::EXIST) => match self.stat_in(&above)?.kind {
                FileKind::Folder => Ok(()),
                FileKind::File | FileKind::Other => Err(Errno::EXIST.into()),
            },
            made => Ok(made?),
        }
    }
}

/// Opens a folder below the root.
pub(super) fn open_folder(
    root: Root<'_>,
    path: &str,
    links: SymlinkPolicy,
    missing: MissingFolders,
) -> io::Result<OwnedFd> {
    if links == SymlinkPolicy::Follow {
        // Mostly it exists, and one step is enough.
        match rustix::fs::openat(CWD, root.path.join(path), FOLDER | OFlags::CLOEXEC, Mode::empty()) {
            Err(Errno::NOENT) if missing == MissingFolders::Make => {}
            // The path is too long for one step.
            Err(Errno::NAMETOOLONG) => {}
            opened => return Ok(opened?),
        }
    }
    let open_root = || rustix::fs::openat(CWD, root.path, FOLDER | OFlags::CLOEXEC, Mode::empty());
    let mut folder = match open_root() {
        Err(Errno::NOENT) if missing == MissingFolders::Make => {
            make_root(root)?;
            open_root()?
        }
        opened => opened?,
    };
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let open = || rustix::fs::openat(&folder, part, FOLDER | links.open_flags(), Mode::empty());
        let opened = match open() {
            Err(Errno::NOENT) if missing == MissingFolders::Make => {
                match rustix::fs::mkdirat(&folder, part, Mode::RWXU) {
                    // Another task created it first.
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                open()
            }
            opened => opened,
        };
        folder = match opened {
            // The system reports a link that is not followed as "not a directory"; here it is a link.
            Err(Errno::NOTDIR) if links == SymlinkPolicy::Refuse && is_link(&folder, part) => {
                return Err(Errno::LOOP.into());
            }
            opened => opened?,
        };
    }
    Ok(folder)
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

fn is_link(folder: &OwnedFd, name: &str) -> bool {
    let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

/// Creates the root and the folders that lead to it. Links in these are followed: they are the person's choice.
pub(super) fn make_root(root: Root<'_>) -> io::Result<()> {
    if let Some(container) = root.container {
        std::fs::metadata(container)?;
    }
    DirBuilder::new().recursive(true).mode(0o700).create(root.path)
}

/// The stat of the root.
pub(super) fn stat_of(metadata: &std::fs::Metadata) -> Stat {
    let kind = if metadata.is_dir() { FileKind::Folder } else { FileKind::Other };
    let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    Stat { kind, size: 0, modified, created: metadata.created().unwrap_or(modified) }
}

/// The system's own types differ between platforms.
fn time(seconds: impl TryInto<i64>, nanoseconds: impl TryInto<u64>) -> SystemTime {
    let (seconds, nanoseconds): (i64, u64) = (seconds.try_into().unwrap_or(0), nanoseconds.try_into().unwrap_or(0));
    let whole = std::time::Duration::from_secs(seconds.unsigned_abs());
    let start = SystemTime::UNIX_EPOCH;
    let second = if seconds < 0 { start.checked_sub(whole) } else { start.checked_add(whole) };
    second.and_then(|second| second.checked_add(std::time::Duration::from_nanos(nanoseconds))).unwrap_or(start)
}

/// The creation time of a file, if the system knows it.
#[cfg(target_os = "linux")]
fn created(folder: impl AsFd, name: &str, links: SymlinkPolicy) -> Option<SystemTime> {
    use rustix::fs::StatxFlags;
    let found = rustix::fs::statx(folder, name, links.at_flags(), StatxFlags::BTIME).ok()?;
    let known = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
    known.then(|| time(found.stx_btime.tv_sec, found.stx_btime.tv_nsec))
}

#[cfg(not(target_os = "linux"))]
fn created(_: impl AsFd, _: &str, _: SymlinkPolicy) -> Option<SystemTime> {
    None
}
