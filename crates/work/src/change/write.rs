//! Writing a file.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Access, AtFlags, Mode, OFlags, Stat};

use super::target::{Target, TargetUse};
use super::{ChangePolicy, is_file, lock, permissions, temporary_name};
use crate::FileError;
use crate::browse::etag;

/// The content to write, and its place in a file.
#[derive(Clone, Debug)]
pub struct FileWrite {
    pub data: Vec<u8>,
    pub mode: WriteMode,
    /// Counted as the mode says.
    pub position: u64,
    /// An existing file is not changed.
    pub create_only: bool,
    /// The version that is replaced. Another one is not.
    pub if_match: Option<String>,
    /// The bytes that the file may have.
    pub most: u64,
}

/// The place of content in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    /// The file ends with it, and begins with the bytes before the position.
    Truncate,
    /// So many bytes before the end of the file.
    Append,
    /// So many bytes after the beginning of the file.
    Insert,
}

pub(super) fn write(policy: &ChangePolicy, path: &Path, write: &FileWrite) -> Result<(), FileError> {
    let target = policy.target(path, TargetUse::Write)?;
    let _lock = lock();
    let found = target.stat()?;
    if found.as_ref().is_some_and(|found| !is_file(found)) {
        return Err(FileError::NotAFile { path: path.to_owned() });
    }
    if write.create_only && found.is_some() {
        return Err(FileError::Exists { path: path.to_owned() });
    }
    match_version(&target, found.as_ref(), write)?;
    let existing = match (&found, write.mode, write.position) {
        (None, ..) | (Some(_), WriteMode::Truncate, 0) => Vec::new(),
        (Some(_), ..) => read(&target, write.most)?,
    };
    let content = content(path, existing, write)?;
    if content.len() as u64 > write.most {
        return Err(FileError::TooLarge { path: path.to_owned(), limit: write.most });
    }
    let failed = |error| FileError::from_io(error, path);
    if found.is_some() {
        // Replacing a file asks its folder alone, so its own permissions are asked first.
        rustix::fs::accessat(&target.folder, &target.name, Access::WRITE_OK, AtFlags::empty())
            .map_err(|errno| failed(errno.into()))?;
    }
    let beside = temporary_name();
    let placed = fill(&target, &beside, &content, found.as_ref()).map_err(failed).and_then(|()| {
        // Programs that know nothing of the lock may have changed it meanwhile.
        match_version(&target, target.stat()?.as_ref(), write)?;
        target.place(target.folder.as_fd(), &beside, false, write.create_only)
    });
    if placed.is_err() {
        rustix::fs::unlinkat(&target.folder, &beside, AtFlags::empty()).ok();
    }
    placed
}

/// Refuses to replace another version than the expected one.
fn match_version(target: &Target, found: Option<&Stat>, write: &FileWrite) -> Result<(), FileError> {
    match &write.if_match {
        Some(expected) if found.is_none_or(|found| *expected != etag(found)) => {
            Err(FileError::Conflict { path: target.path.clone() })
        }
        Some(_) | None => Ok(()),
    }
}

fn read(target: &Target, most: u64) -> Result<Vec<u8>, FileError> {
    let failed = |error| FileError::from_io(error, &target.path);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&target.folder, &target.name, flags, Mode::empty());
    let mut bytes = Vec::new();
    File::from(file.map_err(|errno| failed(errno.into()))?)
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    match bytes.len() as u64 > most {
        true => Err(FileError::TooLarge { path: target.path.clone(), limit: most }),
        false => Ok(bytes),
    }
}

/// The whole content of the file afterwards.
fn content(path: &Path, mut existing: Vec<u8>, write: &FileWrite) -> Result<Vec<u8>, FileError> {
    let size = existing.len();
    let position = usize::try_from(write.position).ok().filter(|position| *position <= size);
    let position = position.ok_or(FileError::PastEnd { path: path.to_owned(), size: size as u64 })?;
    match write.mode {
        WriteMode::Truncate => {
            existing.truncate(position);
            existing.extend(&write.data);
        }
        WriteMode::Append => drop(existing.splice(size - position..size - position, write.data.iter().copied())),
        WriteMode::Insert => drop(existing.splice(position..position, write.data.iter().copied())),
    }
    Ok(existing)
}

/// Writes a new file beside the target, with the permissions of the file that it replaces.
fn fill(target: &Target, name: &OsString, content: &[u8], replaced: Option<&Stat>) -> io::Result<()> {
    // A new file gets what the umask leaves; a replaced one stays private until it has its own permissions.
    let mode = if replaced.is_some() { 0o600 } else { 0o666 };
    let file: OwnedFd = create(target, name, Mode::from_raw_mode(mode))?;
    let mut file = File::from(file);
    file.write_all(content)?;
    if let Some(replaced) = replaced {
        rustix::fs::fchmod(&file, permissions(replaced))?;
    }
    file.sync_data()
}

/// Creates a file beside the target.
pub(super) fn create(target: &Target, name: &OsString, mode: Mode) -> io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(&target.folder, name, flags, mode)?)
}
