//! The commands, one module each.

pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod inspect;
pub(crate) mod serve;
pub(crate) mod status;
pub(crate) mod stop;

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use crate::data_folder::InUse;

/// Why a command failed, which decides its exit code.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No host is running for the data folder.
    NoHost(String),
    /// A log was read, and something is wrong with it.
    Damaged(String),
    Other(anyhow::Error),
}

impl Failure {
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Failure::NoHost(_) => ExitCode::from(3),
            Failure::Damaged(_) => ExitCode::from(5),
            Failure::Other(error) if error.is::<InUse>() => ExitCode::from(4),
            Failure::Other(_) => ExitCode::from(1),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NoHost(message) | Failure::Damaged(message) => f.write_str(message),
            Failure::Other(error) => write!(f, "{error:#}"),
        }
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::Other(error.into())
    }
}

/// Prints a line on stdout. A reader that went away is no failure.
pub(crate) fn say(line: impl fmt::Display) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// A runtime for a short errand.
pub(crate) fn errand() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
