//! The commands, one module each.

pub(crate) mod acp;
pub(crate) mod agent_hook;
pub(crate) mod agent_shim;
pub(crate) mod agents;
pub(crate) mod answer;
pub(crate) mod attach;
pub(crate) mod audit;
pub(crate) mod bridge;
pub(crate) mod cd;
pub(crate) mod chats;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod copilot;
pub(crate) mod debug;
pub(crate) mod doctor;
pub(crate) mod du;
pub(crate) mod export;
mod folder;
pub(crate) mod gc;
pub(crate) mod history;
pub(crate) mod hosts;
pub(crate) mod import;
pub(crate) mod inspect;
pub(crate) mod logs;
pub(crate) mod ls;
pub(crate) mod marks;
pub(crate) mod mcp_filter;
pub(crate) mod mcp_tools;
pub(crate) mod move_session;
pub(crate) mod open;
pub(crate) mod permissions;
pub(crate) mod policy;
pub(crate) mod resolve;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod send;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod start;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod token;
pub(crate) mod tree;
pub(crate) mod wait;
pub(crate) mod workspace;

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use crate::data_folder::DataFolderInUse;
use crate::endpoint::HostEndpoint;
use crate::show::style::escape_controls;

/// The exit code of a host whose data folder is in use by another host.
pub(crate) const IN_USE: u8 = exit::IN_USE;

/// Exit codes. `--help` documents them.
pub(crate) mod exit {
    pub(crate) const FAILED: u8 = 1;
    pub(crate) const NO_HOST: u8 = 3;
    pub(crate) const IN_USE: u8 = 4;
    pub(crate) const DAMAGED: u8 = 5;
    pub(crate) const TURN_FAILED: u8 = 6;
    pub(crate) const TURN_CANCELLED: u8 = 7;
    pub(crate) const NOT_FOUND: u8 = 8;
    pub(crate) const WAITING: u8 = 9;
    /// The same as `timeout`'s.
    pub(crate) const TIMED_OUT: u8 = 124;
    /// The same as shells use after Ctrl-C.
    pub(crate) const LEFT: u8 = 130;
}

/// A failure of a command. It decides the exit code.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No host is running for the data folder.
    NoHost(String),
    /// A log is damaged.
    Damaged(String),
    /// There is no such session, entry, agent, question or turn.
    NotFound(String),
    /// The failure is already on the screen; only the exit code is left to report.
    Exit(u8),
    Other(anyhow::Error),
}

impl Failure {
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Failure::NoHost(_) => ExitCode::from(exit::NO_HOST),
            Failure::Damaged(_) => ExitCode::from(exit::DAMAGED),
            Failure::NotFound(_) => ExitCode::from(exit::NOT_FOUND),
            Failure::Exit(code) => ExitCode::from(*code),
            Failure::Other(error) if error.is::<DataFolderInUse>() => ExitCode::from(IN_USE),
            // The reader of the output is gone: there is nothing left to do.
            Failure::Other(error) if is_broken_pipe(error) => ExitCode::SUCCESS,
            Failure::Other(_) => ExitCode::from(exit::FAILED),
        }
    }

    /// The kind of failure for programs.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Failure::NoHost(_) => "noHost",
            Failure::Damaged(_) => "damaged",
            Failure::NotFound(_) => "notFound",
            Failure::Other(error) if error.is::<DataFolderInUse>() => "inUse",
            Failure::Exit(_) | Failure::Other(_) => "failed",
        }
    }

    /// Returns whether the output on stdout already reports the failure.
    pub(crate) fn is_reported(&self) -> bool {
        matches!(self, Failure::Damaged(_) | Failure::Exit(_))
    }

    /// Returns whether there is nothing left to print.
    pub(crate) fn is_printed(&self) -> bool {
        match self {
            Failure::Exit(_) => true,
            Failure::Other(error) => is_broken_pipe(error),
            Failure::NoHost(_) | Failure::Damaged(_) | Failure::NotFound(_) => false,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NoHost(message) | Failure::Damaged(message) | Failure::NotFound(message) => f.write_str(message),
            Failure::Exit(code) => write!(f, "exit code {code}"),
            Failure::Other(error) => write!(f, "{error:#}"),
        }
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::Other(error.into())
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Prints a line on stdout. A closed stdout is not a failure.
pub(crate) fn print_line(line: impl fmt::Display) -> io::Result<()> {
    print_line_if_open(line).map(drop)
}

/// Prints a line, and says whether stdout is still open.
pub(crate) fn print_line_if_open(line: impl fmt::Display) -> io::Result<bool> {
    let mut out = anstream::stdout().lock();
    match writeln!(out, "{}", escape_controls(&line.to_string())).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

/// Prints the address of the page, without anything that gives access.
pub(crate) fn print_page_url(endpoint: &HostEndpoint) -> io::Result<()> {
    print_line(format!("page: {} (`grove open` opens it)", endpoint.page()))
}

/// A runtime for a short request.
pub(crate) fn command_runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
