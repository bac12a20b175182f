//! Commands for a session's plan, files and checkpoints.

mod checkpoints;
mod files;
mod plan;

pub(crate) use checkpoints::run as checkpoints;
pub(crate) use files::run as files;
pub(crate) use plan::run as plan;

use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;

use anyhow::Context;

use super::Failure;
use crate::show::style::sanitize;

/// Reads a file or stdin. It stops one byte after `most`, so that callers can detect excess.
fn read(file: &Path, most: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let most = most as u64 + 1;
    let done = match file.as_os_str() == "-" {
        true => io::stdin().lock().take(most).read_to_end(&mut bytes),
        false => std::fs::File::open(file).and_then(|file| file.take(most).read_to_end(&mut bytes)),
    };
    done.with_context(|| format!("reading {}", file.display()))?;
    Ok(bytes)
}

/// Prints a session's file unchanged; on a terminal, control sequences are removed.
fn print(bytes: &[u8]) -> Result<(), Failure> {
    let done = match io::stdout().is_terminal() {
        true => {
            let text = sanitize(&String::from_utf8_lossy(bytes));
            let end = if text.ends_with('\n') { "" } else { "\n" };
            write!(anstream::stdout().lock(), "{text}{end}")
        }
        false => io::stdout().lock().write_all(bytes),
    };
    match done.and_then(|()| io::stdout().lock().flush()) {
        // A closed stdout is not a failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => Ok(done?),
    }
}
