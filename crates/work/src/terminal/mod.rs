//! Commands on pseudo-terminals, for agents and clients.
//!
//! [`Terminals`] holds those of one user by their ids, and limits their number. Each [`Terminal`] comes with a future
//! ([`TerminalDriver::run`]) that the caller runs: it reads the command's output, so that a command never blocks on
//! output that nobody reads. The newest bytes are kept; a listener gets all of them as they come
//! ([`TerminalDriver::with_listener`]). What a person types ([`Terminal::write`]) waits in a bounded queue for the command
//! to read it.

mod output;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::termios::Winsize;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use self::output::OutputBuffer;
use crate::process::{Exit, GroupScope, ProcessError, ProcessGroup, Program, inherit_nothing};

/// A command to run on a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalRequest {
    pub program: Program,
    /// The bytes of output that are kept; without it, as many as the limits allow.
    pub output_bytes: Option<usize>,
    pub size: TerminalSize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    pub rows: u16,
    pub columns: u16,
}

impl Default for TerminalSize {
    fn default() -> Self {
        Self { rows: 24, columns: 80 }
    }
}

/// The output of a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalOutput {
    /// The newest part, cut between characters.
    pub text: String,
    /// An earlier part is missing.
    pub truncated: bool,
    /// The command's exit; if it is set, the output is complete.
    pub exit: Option<Exit>,
}

/// The limits of an agent's terminals, each with the consequence of exceeding it.
#[derive(Clone, Copy, Debug)]
pub struct TerminalLimits {
    /// Terminals that are not released; another one is refused.
    pub terminals: usize,
    /// Bytes of output of one terminal; the newest are kept.
    pub output_bytes: usize,
    /// The time that a killed command may take before it gets SIGKILL.
    pub grace: Duration,
}

impl Default for TerminalLimits {
    fn default() -> Self {
        Self { terminals: 64, output_bytes: 1 << 20, grace: Duration::from_secs(1) }
    }
}

/// The reason why a terminal operation failed.
#[derive(Debug, thiserror::Error)]
pub enum TerminalError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("no more than {limit} terminals can be open at a time: release some")]
    TooMany { limit: usize },
    #[error("no terminal {0}: it was released, or never created")]
    Unknown(String),
    #[error("cannot open a pseudo-terminal: {0}")]
    Open(io::Error),
    #[error("the command on this terminal does not read its input: {limit} pieces of it wait already")]
    InputFull { limit: usize },
    #[error("the command on this terminal has ended")]
    Ended,
}

/// The time that a command's last output may take through the terminal after its end, if a leftover process keeps that
/// open.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);
const CHUNK_BYTES: usize = 16 << 10;
/// The pieces of input that wait for a command to read them.
pub const MAX_INPUTS: usize = 256;
/// The default terminal type for programs.
const KIND: (&str, &str) = ("TERM", "xterm-256color");

/// The terminals of one agent. Clones share them.
#[derive(Clone, Debug)]
pub struct Terminals {
    limits: TerminalLimits,
    table: Arc<Mutex<BTreeMap<String, Terminal>>>,
    made: Arc<AtomicU64>,
}

/// A command on a terminal. Clones share it. After its release, the output is dropped with the last clone.
#[derive(Clone, Debug)]
pub struct Terminal {
    id: String,
    buffer: Arc<Mutex<OutputBuffer>>,
    input: mpsc::Sender<TerminalInput>,
    /// Closed when the last handle of the terminal is dropped.
    requested: watch::Sender<RequestedState>,
    /// Closed when the driver is dropped.
    state: watch::Receiver<CommandState>,
}

/// A message from outside to a terminal.
#[derive(Debug)]
enum TerminalInput {
    Bytes(Vec<u8>),
    Size(TerminalSize),
}

/// The state of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandState {
    Running,
    Ended(Exit),
}

/// The requested state of a command. It only advances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RequestedState {
    Run,
    Kill,
    Release,
}

/// The driver of a terminal, which must run ([`TerminalDriver::run`]). Dropping it kills the command.
#[derive(Debug)]
pub struct TerminalDriver {
    master: AsyncFd<OwnedFd>,
    group: ProcessGroup,
    grace: Duration,
    buffer: Arc<Mutex<OutputBuffer>>,
    input: mpsc::Receiver<TerminalInput>,
    requested: watch::Receiver<RequestedState>,
    state: watch::Sender<CommandState>,
    /// Receives all output.
    listener: Option<mpsc::Sender<Vec<u8>>>,
}

impl Terminals {
    pub fn new(limits: TerminalLimits) -> Self {
        Self { limits, table: Arc::default(), made: Arc::default() }
    }

    /// Starts a command on a new terminal. Must be called inside a runtime.
    pub fn create(&self, request: &TerminalRequest) -> Result<(Terminal, TerminalDriver), TerminalError> {
        let limit = self.limits.terminals;
        if self.table().len() >= limit {
            return Err(TerminalError::TooMany { limit });
        }
        let (master, group) = start(&request.program, request.size)?;
        let bytes = request.output_bytes.unwrap_or(usize::MAX).min(self.limits.output_bytes);
        let (state, its_state) = watch::channel(CommandState::Running);
        let (requested, its_requested) = watch::channel(RequestedState::Run);
        let buffer = Arc::new(Mutex::new(OutputBuffer::new(bytes)));
        let grace = self.limits.grace;
        let (input, its_input) = mpsc::channel(MAX_INPUTS);
        let its_buffer = Arc::clone(&buffer);
        let screen = TerminalDriver {
            master,
            group,
            grace,
            buffer: its_buffer,
            input: its_input,
            requested: its_requested,
            state,
            listener: None,
        };
        let id = format!("terminal-{}", self.made.fetch_add(1, Ordering::Relaxed) + 1);
        let terminal = Terminal { id: id.clone(), buffer, input, requested, state: its_state };
        let mut table = self.table();
        // Others may have been created in the meantime.
        if table.len() >= limit {
            return Err(TerminalError::TooMany { limit });
        }
        table.insert(id, terminal.clone());
        Ok((terminal, screen))
    }

    pub fn get(&self, id: &str) -> Result<Terminal, TerminalError> {
        self.table().get(id).cloned().ok_or_else(|| TerminalError::Unknown(id.to_owned()))
    }

    /// Ends a terminal's command and everything that it started, and drops the terminal. Returns when they are gone.
    pub async fn release(&self, id: &str) -> Result<(), TerminalError> {
        let terminal = self.table().remove(id).ok_or_else(|| TerminalError::Unknown(id.to_owned()))?;
        terminal.requested(RequestedState::Release);
        terminal.gone().await;
        Ok(())
    }

    /// The same for all of them.
    pub async fn release_all(&self) {
        let terminals = std::mem::take(&mut *self.table());
        for terminal in terminals.values() {
            terminal.requested(RequestedState::Release);
        }
        for terminal in terminals.values() {
            terminal.gone().await;
        }
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<String, Terminal>> {
        locked(&self.table)
    }
}

impl Terminal {
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its output so far.
    pub fn output(&self) -> TerminalOutput {
        // In this order: once the command has ended, no output is added.
        let exit = self.exit();
        let (text, truncated) = locked(&self.buffer).text(exit.is_none());
        TerminalOutput { text, truncated, exit }
    }

    /// Gives the command input, after all earlier input.
    pub fn write(&self, bytes: Vec<u8>) -> Result<(), TerminalError> {
        self.tell(TerminalInput::Bytes(bytes))
    }

    /// Changes the size, after all earlier input. The command is told by a signal.
    pub fn resize(&self, size: TerminalSize) -> Result<(), TerminalError> {
        self.tell(TerminalInput::Size(size))
    }

    fn tell(&self, input: TerminalInput) -> Result<(), TerminalError> {
        if self.exit().is_some() {
            return Err(TerminalError::Ended);
        }
        self.input.try_send(input).map_err(|error| match error {
            TrySendError::Full(_) => TerminalError::InputFull { limit: MAX_INPUTS },
            TrySendError::Closed(_) => TerminalError::Ended,
        })
    }

    pub async fn wait_for_exit(&self) -> Exit {
        let mut state = self.state.clone();
        match state.wait_for(|state| *state != CommandState::Running).await.as_deref() {
            Ok(CommandState::Ended(exit)) => *exit,
            // The driver was dropped, and the command with it.
            _ => Exit::default(),
        }
    }

    /// Ends the command, and returns its exit. The output can still be read.
    pub async fn kill(&self) -> Exit {
        self.requested(RequestedState::Kill);
        self.wait_for_exit().await
    }

    fn exit(&self) -> Option<Exit> {
        match *self.state.borrow() {
            CommandState::Ended(exit) => Some(exit),
            CommandState::Running => self.state.has_changed().is_err().then(Exit::default),
        }
    }

    fn requested(&self, requested: RequestedState) {
        self.requested.send_if_modified(|wished| {
            let grows = requested > *wished;
            *wished = requested.max(*wished);
            grows
        });
    }

    async fn gone(&self) {
        let mut state = self.state.clone();
        while state.changed().await.is_ok() {}
    }
}

// Nothing that can panic leaves it half-changed, so a poisoned lock still guards complete data.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TerminalDriver {
    /// Sends all output to a listener, before the exit is known. The command waits while the listener has no room.
    #[must_use]
    pub fn with_listener(self, listener: mpsc::Sender<Vec<u8>>) -> Self {
        Self { listener: Some(listener), ..self }
    }

    /// Runs until the terminal is released.
    pub async fn run(mut self) {
        let exit = self.show().await;
        // The listener sees the end before anybody else sees the exit.
        self.listener = None;
        self.state.send_replace(CommandState::Ended(exit));
        // Leftover processes go on until the terminal is released, or its last handle is dropped.
        self.requested.wait_for(|requested| *requested == RequestedState::Release).await.map(drop).ok();
        self.group.end(self.grace).await.ok();
    }

    /// Reads the command's output, until it has ended or is killed.
    async fn show(&mut self) -> Exit {
        let (group, requested, grace) = (&mut self.group, &mut self.requested, self.grace);
        let life = async move {
            tokio::select! {
                exit = group.exited() => return exit,
                requested = requested.wait_for(|requested| *requested != RequestedState::Run) => drop(requested),
            }
            group.end(grace).await.unwrap_or_default()
        };
        let mut life = std::pin::pin!(life);
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut open = true;
        let mut ended: Option<(Exit, Instant)> = None;
        let mut listens = self.listener.is_some();
        let mut pending: Option<PendingOutput> = None;
        let mut typed: Vec<u8> = Vec::new();
        loop {
            // A slow listener does not shorten the time of a command.
            let last_words = ended.filter(|_| pending.is_none()).map(|(_, until)| until);
            tokio::select! {
                read = read(&self.master, &mut chunk), if open && pending.is_none() => match read {
                    Ok(bytes) if bytes > 0 => {
                        locked(&self.buffer).push(&chunk[..bytes]);
                        let bytes = listens.then(|| chunk[..bytes].to_vec());
                        pending = bytes.map(|bytes| PendingOutput { bytes, since: Instant::now() });
                    }
                    _ => open = false,
                },
                room = room(self.listener.as_ref()), if pending.is_some() => {
                    let output = pending.take();
                    if let (Some(PendingOutput { since, .. }), Some((_, until))) = (&output, &mut ended) {
                        *until += since.elapsed();
                    }
                    match (room, output) {
                        (Ok(room), Some(output)) => room.send(output.bytes),
                        // The listener is gone.
                        (Err(_), _) => listens = false,
                        (Ok(_), None) => {}
                    }
                }
                Some(input) = self.input.recv(), if typed.is_empty() => match input {
                    TerminalInput::Bytes(bytes) => typed = bytes,
                    TerminalInput::Size(size) => resize(&self.master, size),
                },
                written = write(&self.master, &typed), if !typed.is_empty() => match written {
                    Ok(bytes) => drop(typed.drain(..bytes)),
                    // Nothing reads it any longer.
                    Err(_) => typed.clear(),
                },
                exit = &mut life, if ended.is_none() => ended = Some((exit, Instant::now() + DRAIN_TIMEOUT)),
                () = until(last_words) => open = false,
            }
            if let Some((exit, _)) = ended
                && !open
                && pending.is_none()
            {
                return exit;
            }
        }
    }
}

/// Output that was not sent to the listener yet.
#[derive(Debug)]
struct PendingOutput {
    bytes: Vec<u8>,
    since: Instant,
}

async fn room<T>(listener: Option<&mpsc::Sender<T>>) -> Result<mpsc::Permit<'_, T>, mpsc::error::SendError<()>> {
    match listener {
        Some(listener) => listener.reserve().await,
        None => Err(mpsc::error::SendError(())),
    }
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

async fn read(master: &AsyncFd<OwnedFd>, chunk: &mut [u8]) -> io::Result<usize> {
    loop {
        let mut ready = master.readable().await?;
        match rustix::io::read(master.get_ref(), &mut *chunk) {
            Ok(bytes) => return Ok(bytes),
            Err(Errno::AGAIN) => ready.clear_ready(),
            Err(Errno::INTR) => {}
            // Nothing holds the other end open any longer.
            Err(errno) => return Err(errno.into()),
        }
    }
}

async fn write(master: &AsyncFd<OwnedFd>, bytes: &[u8]) -> io::Result<usize> {
    loop {
        let mut ready = master.writable().await?;
        match rustix::io::write(master.get_ref(), bytes) {
            Ok(bytes) => return Ok(bytes),
            Err(Errno::AGAIN) => ready.clear_ready(),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn resize(master: &AsyncFd<OwnedFd>, size: TerminalSize) {
    let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    // It fails if the terminal is gone, which its output says as well.
    rustix::termios::tcsetwinsize(master.get_ref(), size).ok();
}

/// Starts a program as the leader of a session with a new terminal.
fn start(program: &Program, size: TerminalSize) -> Result<(AsyncFd<OwnedFd>, ProcessGroup), TerminalError> {
    let mut command = program.command()?;
    let (name, value) = KIND;
    if !program.env.contains_key(name) {
        command.env(name, value);
    }
    let (pty, pts) = pty_process::blocking::open().map_err(open_error)?;
    pty.resize(pty_process::Size::new(size.rows, size.columns)).map_err(open_error)?;
    let master = OwnedFd::from(pty);
    let flags = rustix::fs::fcntl_getfl(&master).map_err(|errno| TerminalError::Open(errno.into()))?;
    rustix::fs::fcntl_setfl(&master, flags | OFlags::NONBLOCK).map_err(|errno| TerminalError::Open(errno.into()))?;
    #[allow(deprecated, reason = "sound for a descriptor that is owned, and there is no other without `unsafe`")]
    let master =
        AsyncFd::with_interest(master, Interest::READABLE | Interest::WRITABLE).map_err(TerminalError::Open)?;

    inherit_nothing();
    let child = pty_process::blocking::Command::from(command).spawn(pts).map_err(|error| match error {
        pty_process::Error::Io(error) => ProcessError::start(program, error),
        pty_process::Error::Rustix(errno) => ProcessError::start(program, errno.into()),
    })?;
    let group = ProcessGroup::new(&child, GroupScope::Session).map_err(|error| ProcessError::start(program, error))?;
    Ok((master, group))
}

fn open_error(error: pty_process::Error) -> TerminalError {
    TerminalError::Open(match error {
        pty_process::Error::Io(error) => error,
        pty_process::Error::Rustix(errno) => errno.into(),
    })
}
