//! Programs in their own process groups.
//!
//! A program gets piped stdio, a working directory, the environment of its [`Program`], and no other descriptor of
//! ours. Its child processes belong to its group and end with it, even if the program itself ended before. A program
//! that leaves its group on purpose, as daemons do, is not ended.

mod ancestry;
mod exit;
mod group;
mod orphans;
mod program;

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

pub use self::ancestry::{Ancestry, ProcFolder, ProcessKey, ProcessStat, ProcessTable, ancestry, descendants};
pub use self::exit::Exit;
pub(crate) use self::group::{GroupScope, ProcessGroup};
pub use self::orphans::{adopt_orphans, reap_orphans};
pub use self::program::{Program, inherited_environment};

/// The reason why a program does not run, or does not end.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error("{command} cannot be found: install it, or give its full path")]
    NotFound { command: String },
    #[error("{} is not a folder: create it, or choose another working directory", .path.display())]
    NoFolder { path: PathBuf },
    #[error("{command} cannot be run: {error}")]
    Start { command: String, error: io::Error },
    #[error("the child processes of {id} do not end, not even when killed: see `ps -eo pid,pgid,stat,cmd`")]
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
    /// Dropping a taken handle closes it.
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
    group: ProcessGroup,
}

impl Process {
    /// Starts a program. Must be called inside a runtime.
    pub fn start(program: &Program) -> Result<Self, ProcessError> {
        let mut command = program.command()?;
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        inherit_nothing();
        let failed = |error| ProcessError::start(program, error);
        let mut child = command.spawn().map_err(failed)?;
        // From here on a failure must end the program.
        let group = ProcessGroup::new(&child, GroupScope::ProcessGroup).map_err(failed)?;
        let stdin = child.stdin.take().map(ChildStdin::from_std).transpose().map_err(failed)?;
        let stdout = child.stdout.take().map(ChildStdout::from_std).transpose().map_err(failed)?;
        let stderr = child.stderr.take().map(ChildStderr::from_std).transpose().map_err(failed)?;
        Ok(Self { stdin, stdout, stderr, group })
    }

    /// The process id of the program and of its group.
    pub fn id(&self) -> u32 {
        self.group.id()
    }

    /// Waits until the program has ended. Its child processes may go on, until [`end`](Self::end). Dropping the call
    /// loses nothing.
    pub async fn wait(&mut self) -> Exit {
        self.group.exited().await
    }

    /// Ends the program and everything that it started: closes its stdin (a taken one is closed by its holder), waits
    /// up to `grace` for it to end by itself, sends SIGTERM, waits again, sends SIGKILL. Dropping the call kills at
    /// once.
    pub async fn end(mut self, grace: Duration) -> Result<Exit, ProcessError> {
        drop(self.stdin.take());
        tokio::time::timeout(grace, self.group.exited()).await.ok();
        self.group.end(grace).await
    }
}

/// Makes later programs inherit nothing but stdio. Our own descriptors are never inherited, but those that we inherited
/// ourselves would be, and a reader of such a pipe would wait for an agent's end, too.
pub fn inherit_nothing() {
    close_fds::set_fds_cloexec_threadsafe(3, &[]);
}
