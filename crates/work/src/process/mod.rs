//! Programs in process groups of their own.
//!
//! A program gets piped stdio, a working directory, the environment that [`Program`] says, and no other descriptor of
//! ours. What it starts in turn belongs to its group and ends with it, also where the program itself ended before; a
//! program that leaves its group on purpose, as daemons do, is no longer ours to end.

mod exit;
mod group;
mod program;

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

pub use self::exit::Exit;
pub(crate) use self::group::{GroupScope, ProcessGroup};
pub use self::program::{Program, inherited_environment};

/// Why a program does not run, or goes on running.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error("{command} cannot be found: install it, or give its full path")]
    NotFound { command: String },
    #[error("{} is no folder to work in: make it, or choose another working directory", .path.display())]
    NoFolder { path: PathBuf },
    #[error("{command} cannot be run: {error}")]
    Start { command: String, error: io::Error },
    #[error("what process {id} started does not end, not even when it is killed: see `ps -eo pid,pgid,stat,cmd`")]
    Survived { id: u32 },
}

impl ProcessError {
    pub(crate) fn start(program: &Program, error: io::Error) -> Self {
        let command = program.command.clone();
        match error.kind() {
            io::ErrorKind::NotFound => ProcessError::NotFound { command },
            _ => ProcessError::Start { command, error },
        }
    }
}

/// A running program and its group. Dropping it kills all of the group.
#[derive(Debug)]
pub struct Process {
    /// Whoever takes one of these closes it by dropping it.
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
    group: ProcessGroup,
}

impl Process {
    /// Starts a program. It must be called inside a runtime.
    pub fn start(program: &Program) -> Result<Self, ProcessError> {
        let mut command = program.command()?;
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        inherit_nothing();
        let failed = |error| ProcessError::start(program, error);
        let mut child = command.spawn().map_err(failed)?;
        // From here on a failure must end what was started.
        let group = ProcessGroup::new(&child, GroupScope::ProcessGroup).map_err(failed)?;
        let stdin = child.stdin.take().map(ChildStdin::from_std).transpose().map_err(failed)?;
        let stdout = child.stdout.take().map(ChildStdout::from_std).transpose().map_err(failed)?;
        let stderr = child.stderr.take().map(ChildStderr::from_std).transpose().map_err(failed)?;
        Ok(Self { stdin, stdout, stderr, group })
    }

    /// The number of the program and of its group.
    pub fn id(&self) -> u32 {
        self.group.id()
    }

    /// Waits until the program has ended. What it started may go on, until [`end`](Self::end). A call that is dropped
    /// loses nothing.
    pub async fn wait(&mut self) -> Exit {
        self.group.exited().await
    }

    /// Ends the program and all that it started: closes its stdin (a taken one is closed by who has it), waits up to
    /// `grace` for it to end by itself, sends SIGTERM, waits again, sends SIGKILL. Dropped, it kills at once.
    pub async fn end(mut self, grace: Duration) -> Result<Exit, ProcessError> {
        drop(self.stdin.take());
        tokio::time::timeout(grace, self.group.exited()).await.ok();
        self.group.end(grace).await
    }
}

/// Lets nothing but stdio go to programs that are started from now on. Our own descriptors never do; those that we
/// inherited ourselves would, and whoever waits for the end of such a pipe would wait for an agent's end, too.
pub fn inherit_nothing() {
    close_fds::set_fds_cloexec_threadsafe(3, &[]);
}
