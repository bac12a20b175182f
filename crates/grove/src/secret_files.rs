//! Files and folders with secrets: they must belong to the user, and other users must not be able to change them.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use grove_checks::Check;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};

/// The maximum size of a file with a secret.
pub(crate) const MAX_BYTES: u64 = 1 << 20;
/// The mode bits that let others write.
const OTHERS_WRITE: u32 = 0o022;
/// The mode bits that let others read, write or enter.
const OTHERS: u32 = 0o077;

/// A file or folder that Grove refuses to use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretError {
    #[error(
        "{} belongs to another user (uid {owner}), who could read and change what Grove stores there: choose another \
         folder, or take it over with `chown`", .path.display()
    )]
    Owner { path: PathBuf, owner: u32 },
    #[error("other users may write to {}: run `chmod go-w {}`", .path.display(), .path.display())]
    Writable { path: PathBuf },
    #[error("{} is a symbolic link, which is not allowed for a file with secrets: replace it by the file itself", .path.display())]
    Link { path: PathBuf },
    #[error("{} is not a regular file: remove it", .path.display())]
    Kind { path: PathBuf },
    #[error("{} has more than {MAX_BYTES} bytes: remove it", .path.display())]
    TooLarge { path: PathBuf },
    #[error("{} cannot be read: {error}", .path.display())]
    Io { path: PathBuf, error: io::Error },
}

/// A secret, and whether other users could read it.
#[derive(Debug)]
pub(crate) struct Secret {
    pub(crate) text: String,
    pub(crate) was_readable: bool,
}

/// Refuses a folder that belongs to another user, or that others may write to.
pub(crate) fn check_folder(path: &Path) -> Result<(), SecretError> {
    let found = fs::metadata(path).map_err(|error| SecretError::Io { path: path.to_owned(), error })?;
    check(path, &found, &[geteuid().as_raw()])
}

/// Refuses a file that others may write to, or that belongs neither to the user nor to the administrator.
///
/// Links are followed, since the user named the file. Returns whether others may read it.
pub(crate) fn check_named(path: &Path) -> Result<bool, SecretError> {
    let found = fs::metadata(path).map_err(|error| SecretError::Io { path: path.to_owned(), error })?;
    check_owner(path, &found, &[geteuid().as_raw(), 0])?;
    // Editors of users with their own group create such files.
    let own_group = found.gid() == getegid().as_raw();
    let writers = if own_group { OTHERS_WRITE & 0o007 } else { OTHERS_WRITE };
    if Check::NamedSecretWriters.is_enforced() && found.mode() & writers != 0 {
        return Err(SecretError::Writable { path: path.to_owned() });
    }
    Ok(found.mode() & 0o004 != 0)
}

/// Opens a file with a secret, without following links, and makes it private. `None` if it does not exist.
pub(crate) fn open(path: &Path) -> Result<Option<(File, bool)>, SecretError> {
    let failed = |error| SecretError::Io { path: path.to_owned(), error };
    // If a pipe has replaced the file, opening it must not block.
    let links = if Check::SecretLinks.is_enforced() { OFlags::NOFOLLOW } else { OFlags::empty() };
    let flags = (links | OFlags::NONBLOCK).bits();
    let file = match OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            return Err(SecretError::Link { path: path.to_owned() });
        }
        Err(error) => return Err(failed(error)),
    };
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(SecretError::Kind { path: path.to_owned() });
    }
    check(path, &found, &[geteuid().as_raw()])?;
    let was_readable = found.mode() & OTHERS != 0;
    if Check::SecretReaders.is_enforced() && was_readable {
        file.set_permissions(fs::Permissions::from_mode(0o600)).map_err(failed)?;
    }
    Ok(Some((file, was_readable)))
}

/// Reads a file with a secret as [`open`] opens it.
pub(crate) fn read(path: &Path) -> Result<Option<Secret>, SecretError> {
    let Some((file, was_readable)) = open(path)? else { return Ok(None) };
    let mut text = String::new();
    let length = file.take(MAX_BYTES + 1).read_to_string(&mut text);
    let length = length.map_err(|error| SecretError::Io { path: path.to_owned(), error })?;
    if length as u64 > MAX_BYTES {
        return Err(SecretError::TooLarge { path: path.to_owned() });
    }
    Ok(Some(Secret { text, was_readable }))
}

fn check_owner(path: &Path, found: &Metadata, owners: &[u32]) -> Result<(), SecretError> {
    match !Check::SecretOwner.is_enforced() || owners.contains(&found.uid()) {
        true => Ok(()),
        false => Err(SecretError::Owner { path: path.to_owned(), owner: found.uid() }),
    }
}

fn check(path: &Path, found: &Metadata, owners: &[u32]) -> Result<(), SecretError> {
    check_owner(path, found, owners)?;
    if Check::SecretWriters.is_enforced() && found.mode() & OTHERS_WRITE != 0 {
        return Err(SecretError::Writable { path: path.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_secret_is_read_without_following_a_link_and_not_where_others_may_write() {
        let folder = tempfile::tempdir().unwrap();
        let (secret, link) = (folder.path().join("token"), folder.path().join("link"));
        assert!(read(&secret).unwrap().is_none());
        fs::write(&secret, "hunter2").unwrap();
        set_mode(&secret, 0o600);
        let found = read(&secret).unwrap().unwrap();
        assert_eq!((found.text.as_str(), found.was_readable), ("hunter2", false));
        std::os::unix::fs::symlink(&secret, &link).unwrap();
        assert!(matches!(read(&link), Err(SecretError::Link { .. })));
        set_mode(&secret, 0o644);
        assert!(read(&secret).unwrap().unwrap().was_readable, "it is reported");
        assert!(!read(&secret).unwrap().unwrap().was_readable, "and fixed");
        for mode in [0o620, 0o602, 0o666] {
            set_mode(&secret, mode);
            assert!(matches!(read(&secret), Err(SecretError::Writable { .. })), "{mode:o}");
        }
        assert!(matches!(read(folder.path()), Err(SecretError::Kind { .. })));
    }

    #[test]
    fn a_folder_that_others_may_write_to_or_that_belongs_to_another_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        check_folder(folder.path()).unwrap();
        set_mode(folder.path(), 0o777);
        assert!(matches!(check_folder(folder.path()), Err(SecretError::Writable { .. })));
        set_mode(folder.path(), 0o700);
        let found = fs::metadata(folder.path()).unwrap();
        let other = [found.uid() + 1];
        assert!(matches!(check(folder.path(), &found, &other), Err(SecretError::Owner { .. })));
    }
}
