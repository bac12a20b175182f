//! Editing `grove.toml` for the user: their comments and their order of tables stay.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result};
use toml_edit::DocumentMut;

/// The mode of a new file, since it may hold secrets.
const PRIVATE: u32 = 0o600;

/// Reads the file; a missing one is empty.
pub(crate) fn read(file: &Path) -> Result<DocumentMut> {
    match fs::read_to_string(file) {
        Ok(text) => text.parse().with_context(|| format!("{} is not valid TOML", file.display())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(DocumentMut::new()),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", file.display())),
    }
}

/// Writes the file atomically. A symbolic link stays a link.
pub(crate) fn write(file: &Path, document: &DocumentMut) -> Result<()> {
    let failed = || format!("{} cannot be written", file.display());
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(failed)?;
    }
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let mode = fs::metadata(&file).map_or(PRIVATE, |found| found.permissions().mode());
    let temporary = file.with_extension("toml.new");
    let mut written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(PRIVATE)
        .open(&temporary)
        .with_context(failed)?;
    written.set_permissions(fs::Permissions::from_mode(mode & 0o777)).with_context(failed)?;
    written.write_all(document.to_string().as_bytes()).and_then(|()| written.sync_all()).with_context(failed)?;
    fs::rename(&temporary, &file).with_context(failed)
}
