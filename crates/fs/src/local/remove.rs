//! Removing a folder with everything in it, without following a link.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// The deepest nesting of folders: each level holds an open folder.
const DEEPEST: usize = 128;

/// Removes a folder inside another one.
pub(super) fn everything(above: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    // The open folders, the innermost last, each with its name and the entries left to remove.
    let mut open = vec![RemovalLevel::open(above, name.as_bytes())?];
    while let Some(level) = open.last_mut() {
        let Some(entry) = level.left.pop() else {
            let Some(done) = open.pop() else { break };
            match open.last() {
                Some(parent) => rustix::fs::unlinkat(&parent.folder, done.name.as_slice(), AtFlags::REMOVEDIR)?,
                None => rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR)?,
            }
            continue;
        };
        let stat = match rustix::fs::statat(&level.folder, entry.as_slice(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => continue,
            stat => stat?,
        };
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            match rustix::fs::unlinkat(&level.folder, entry.as_slice(), AtFlags::empty()) {
                // Another task removed it first.
                Ok(()) | Err(Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            }
        }
        let inner = RemovalLevel::open(level.folder.as_fd(), &entry)?;
        if open.len() >= DEEPEST {
            return Err(io::Error::other(format!(
                "its folders are nested more than {DEEPEST} deep: remove the inner ones first"
            )));
        }
        open.push(inner);
    }
    Ok(())
}

struct RemovalLevel {
    folder: OwnedFd,
    name: Vec<u8>,
    left: Vec<Vec<u8>>,
}

impl RemovalLevel {
    fn open(above: BorrowedFd<'_>, name: &[u8]) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(above, name, flags, Mode::empty())?;
        let mut left = Vec::new();
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let entry = entry.file_name().to_bytes();
            if entry != b"." && entry != b".." {
                left.push(entry.to_vec());
            }
        }
        Ok(Self { folder, name: name.to_vec(), left })
    }
}
