//! Files and folders that only their owner can read: conversations with agents are private.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a file, if it is missing.
pub(super) fn make_file(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(|_| ())
}

/// Creates a folder and its parents, if they are missing.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Copies a file's contents, and not its permissions.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    make_file(to)?;
    let mut source = fs::File::open(from)?;
    let mut copy = OpenOptions::new().write(true).truncate(true).open(to)?;
    io::copy(&mut source, &mut copy).map(|_| ())
}
