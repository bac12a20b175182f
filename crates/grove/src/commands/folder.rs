//! The working directory of a session on a host that is new to it. The user decides it, never a file.

use std::io::{IsTerminal, stdin};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};

use super::Failure;
use crate::show::style::sanitize;

/// Permission to ask the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FolderPrompt {
    /// Ask on a terminal.
    Allowed,
    /// Never ask: a program reads the output.
    Never,
}

/// A folder at another host. Which there are is not for this machine to say, and the current one is none of them.
pub(super) fn far_folder(named: &Path) -> Result<PathBuf, Failure> {
    match named.is_absolute() {
        true => Ok(named.to_owned()),
        false => {
            Err(anyhow!("{} is relative: name a folder at another host by its whole path", named.display()).into())
        }
    }
}

/// A folder of this machine, with its whole path.
pub(super) fn local_folder(named: &Path) -> Result<PathBuf, Failure> {
    let folder = named.canonicalize().with_context(|| format!("{} cannot be worked in", named.display()))?;
    match folder.is_dir() {
        true => Ok(folder),
        false => Err(anyhow!("{} is no folder: name one", folder.display()).into()),
    }
}

/// The folder that is named, else the one that the person names when asked. `was` is the folder that the session worked in
/// elsewhere; a session that had none is asked for none.
pub(super) fn choose(
    named: Option<&Path>,
    was: Option<&str>,
    host: &str,
    asking: FolderPrompt,
) -> Result<Option<PathBuf>, Failure> {
    let Some(was) = was.filter(|_| named.is_none()) else { return Ok(named.map(Path::to_owned)) };
    let was = grove_work::local_path(was).map_or_else(|_| was.to_owned(), |path| path.display().to_string());
    let was = sanitize(&was);
    if asking == FolderPrompt::Never || !stdin().is_terminal() {
        anstream::eprintln!(
            "it worked in {was}; at {host} it works in no folder: name one with --cwd, or later with `grove cd`"
        );
        return Ok(None);
    }
    anstream::eprint!("It worked in {was}. Folder to work in at {host} (empty: none): ");
    let mut line = String::new();
    stdin().read_line(&mut line)?;
    let line = line.trim();
    Ok((!line.is_empty()).then(|| PathBuf::from(line)))
}
