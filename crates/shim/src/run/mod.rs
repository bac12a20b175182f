//! The shim's process: one task that serves the agent, the host and the timers.
//!
//! Whatever the agent has written by the time the task runs is one read, and one write to the host. A host that falls
//! behind, or none, makes the task write files as well. They are cached in memory unless the disk is slow, and then
//! only this one agent waits.

mod agent;
pub(crate) mod host;
mod lines;

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

use bytes::BytesMut;
use grove_work::{Exit, ProcessError};
use tokio::net::UnixListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use self::agent::{AgentProcess, ReadOutcome, ended, read};
use self::host::{HostConnection, PendingHost, accept_host};
use self::lines::{LineSplitter, TooLong};
use crate::folder::{self, SocketAddress, is_ours};
use crate::log::StderrLog;
use crate::spool::Spool;
use crate::wire::{AgentEnd, EndReason, FromHost, FromShim, Welcome, frame_limit};
use crate::{ShimError, ShimLimits, ShimOptions};

/// The bytes of an agent's output that are read at once.
const CHUNK_BYTES: usize = 64 << 10;
/// The most connections that may be in the handshake at once.
pub const MAX_PENDING_HOSTS: usize = 16;
/// The time that an agent's stdout is read after its end, if a process that left its group keeps that open.
const STDOUT_GRACE: Duration = Duration::from_secs(1);
/// The time that an agent may run on after it closed its stdout, and then may take for each step of its end.
const CLOSED_STDOUT_GRACE: Duration = Duration::from_millis(500);
/// The time that a shim that was asked to end waits for the host to acknowledge the agent's last lines.
const LAST_SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// The time until the disk is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// The interval at which a shim without a host checks whether one could still find it.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// The pause after the system refuses to accept a connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Runs a shim until its agent has ended and nobody needs it any longer, and returns the agent's end. It leaves the
/// terminal and the process session that it was started in, so it must not be called in a process that leads its group.
pub fn run(options: ShimOptions) -> Result<AgentEnd, ShimError> {
    // From now on it is independent of the host's process and terminal.
    rustix::process::setsid().map_err(|errno| ShimError::Io(errno.into()))?;
    // A process of the agent stays below the shim whatever it does, so that the host recognizes it.
    grove_work::adopt_orphans().map_err(ShimError::Io)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ShimError::Io)?;
    runtime.block_on(async {
        let shim = Shim::start(options)?;
        // The agent is the one child that the shim itself waits for.
        tokio::spawn(grove_work::reap_orphans(Duration::ZERO));
        Ok(shim.serve().await)
    })
}

#[derive(Debug)]
struct Shim {
    limits: ShimLimits,
    host_listener: HostListener,
    agent: AgentProcess,
    lines: LineSplitter,
    spool: Spool,
    log: StderrLog,
    host: Option<HostConnection>,
    /// The time since which there is no host.
    alone_since: Instant,
    /// The time of the last check that a host could come.
    looked: Instant,
    /// The newest write of a host that was taken.
    taken: u64,
    /// The reason why the shim ends the agent, if it does.
    ending: Option<(EndReason, String)>,
    /// The shim was asked to end.
    is_end_requested: bool,
    exit: Option<Exited>,
    /// The time at which the agent's stdout is given up.
    stdout_deadline: Option<Instant>,
    /// The time at which an agent that has closed its stdout is ended, unless it ends by itself.
    closed_stdout_deadline: Option<Instant>,
    /// The agent's end, once all its output is in the spool. Its number is the spool's next one.
    end: Option<AgentEnd>,
    end_acknowledged: bool,
    /// The time at which the disk is tried again.
    retry: Option<Instant>,
}

/// Nothing is left of the agent's group.
#[derive(Clone, Copy, Debug)]
struct Exited {
    exit: Option<Exit>,
    at: Instant,
}

/// An event that the shim waits for.
enum ShimEvent {
    HostConnected(PendingHost),
    HostReady,
    StdoutRead(ReadOutcome),
    StderrRead,
    Exited(Result<Exit, ProcessError>),
    Terminated,
    /// Only checks everything again.
    Look,
}

impl Shim {
    fn start(options: ShimOptions) -> Result<Self, ShimError> {
        let ShimOptions { folder, agent, limits } = options;
        let host_listener = HostListener::open(&folder)?;
        let now = Instant::now();
        // The host is told of a failed start as of every end.
        let (agent, ending) = match AgentProcess::start(&agent) {
            Ok(agent) => (agent, None),
            Err(error) => (AgentProcess::default(), Some((EndReason::NotStarted, error.to_string()))),
        };
        Ok(Self {
            limits,
            host_listener,
            exit: ending.as_ref().map(|_| Exited { exit: None, at: now }),
            agent,
            lines: LineSplitter::new(limits.line_bytes),
            spool: Spool::new(&folder, limits.spool_bytes),
            log: StderrLog::new(&folder, limits.log_bytes),
            host: None,
            alone_since: now,
            looked: now,
            taken: 0,
            ending,
            is_end_requested: false,
            stdout_deadline: None,
            closed_stdout_deadline: None,
            end: None,
            end_acknowledged: false,
            retry: None,
        })
    }

    async fn serve(mut self) -> AgentEnd {
        let mut complaints = BytesMut::new();
        loop {
            self.advance();
            if let Some(end) = self.done() {
                return end;
            }
            let (deadline, reads) = (self.deadline(), self.may_read());
            let Self {
                host_listener,
                agent: AgentProcess { stdin, stdout, stderr, exit_task, .. },
                lines,
                host,
                spool,
                ..
            } = &mut self;
            let event = tokio::select! {
                event = host_listener.event() => event,
                () = ready(host.as_ref(), spool.next()) => ShimEvent::HostReady,
                outcome = read(stdout, &mut lines.buffer, CHUNK_BYTES), if reads => ShimEvent::StdoutRead(outcome),
                _ = read(stderr, &mut complaints, CHUNK_BYTES) => ShimEvent::StderrRead,
                () = stdin.write() => ShimEvent::Look,
                exit = ended(exit_task) => ShimEvent::Exited(exit),
                () = pass(deadline) => ShimEvent::Look,
            };
            match event {
                ShimEvent::HostConnected(pending_host) => self.welcome(pending_host),
                ShimEvent::HostReady => self.listen(),
                ShimEvent::StdoutRead(outcome) => self.take_output(outcome),
                ShimEvent::StderrRead => {
                    self.log.write(&complaints);
                    complaints.clear();
                }
                ShimEvent::Exited(exit) => self.exited(exit),
                ShimEvent::Terminated => self.stop(EndReason::Requested, "the shim got a signal", self.limits.grace),
                ShimEvent::Look => {}
            }
        }
    }

    /// Does everything that needs no waiting.
    fn advance(&mut self) {
        let now = Instant::now();
        if self.host.is_none() && self.exit.is_none() && now >= self.alone_since + self.limits.alone {
            self.stop(EndReason::Abandoned, "no host came for too long", self.limits.grace);
        }
        if self.host.is_none() && now >= self.looked + CHECK_INTERVAL {
            self.looked = now;
            if !self.host_listener.is_reachable() {
                self.is_end_requested = true;
                self.stop(EndReason::Abandoned, "its folder is gone, so no host can come", self.limits.grace);
            }
        }
        if self.closed_stdout_deadline.take_if(|at| now >= *at).is_some() {
            self.stop(
                EndReason::StdoutClosed,
                "the agent closed its stdout",
                CLOSED_STDOUT_GRACE.min(self.limits.grace),
            );
        }
        self.move_to_files(now);
        self.finish_stdout(now);
        if let Some(exited) = self.exit
            && self.end.is_none()
            && self.agent.stdout.is_none()
        {
            self.end = Some(self.agent_end(exited));
        }
        if let Some(mut host) = self.host.take() {
            let end = self.end.clone().map(|end| FromShim::Ended { number: self.spool.next(), end });
            let served =
                host.fill(&self.spool, self.taken, end.as_ref()).map_err(ShimError::Io).and_then(|()| host.send());
            self.keep(host, served);
        }
        self.move_to_files(now);
    }

    /// Moves the agent's output to files if memory should not hold it. Until that succeeds, the agent waits.
    fn move_to_files(&mut self, now: Instant) {
        if !self.must_move() {
            self.retry = None;
        } else if self.retry.is_none_or(|retry| now >= retry) {
            self.retry = self.spool.write().err().map(|_| now + RETRY);
        }
    }

    /// Returns whether memory holds output for too long: more than a host lags behind, or without a host.
    fn must_move(&self) -> bool {
        self.spool.is_memory_full() || self.host.is_none() && self.spool.has_recent()
    }

    /// After the agent's end, reads its output to the end. That does not come if a process that left the agent's group
    /// holds the other end of the pipe.
    fn finish_stdout(&mut self, now: Instant) {
        let Some(exited) = self.exit.filter(|_| self.agent.stdout.is_some()) else { return };
        let given_up = if self.may_read() {
            now >= *self.stdout_deadline.get_or_insert(now + STDOUT_GRACE)
        } else {
            // Time does not count while there is no room for more output.
            self.stdout_deadline = None;
            self.is_over(now, exited)
        };
        if given_up {
            self.agent.stdout = None;
            self.take_output(ReadOutcome::End);
        }
    }

    /// The agent's end, once nobody needs the shim any longer.
    fn done(&self) -> Option<AgentEnd> {
        let exited = self.exit?;
        let done = self.end_acknowledged || self.is_over(Instant::now(), exited);
        done.then(|| self.agent_end(exited))
    }

    fn agent_end(&self, exited: Exited) -> AgentEnd {
        let (reason, message) = match &self.ending {
            Some((reason, message)) => (*reason, Some(message.clone())),
            None => (EndReason::Exited, None),
        };
        AgentEnd { reason, exit: exited.exit, message }
    }

    /// Returns whether to stop waiting for the remaining lines to be fetched.
    fn is_over(&self, now: Instant, exited: Exited) -> bool {
        match &self.host {
            Some(_) => self.ends_soon() && now >= exited.at + LAST_SEND_TIMEOUT,
            None => self.ends_soon() || now >= self.alone_since.max(exited.at) + self.limits.linger,
        }
    }

    /// Returns whether nobody will fetch the remaining lines.
    fn ends_soon(&self) -> bool {
        self.is_end_requested || matches!(self.ending, Some((EndReason::Abandoned, _)))
    }

    /// The time of the next check if nothing happens; `None` if only an event can make a difference.
    fn deadline(&self) -> Option<Instant> {
        let alone = match (&self.host, self.exit) {
            (Some(_), _) => None,
            (None, None) => Some(self.alone_since + self.limits.alone),
            (None, Some(exited)) => Some(self.alone_since.max(exited.at) + self.limits.linger),
        };
        let look = self.host.is_none().then_some(self.looked + CHECK_INTERVAL);
        let farewell = self.exit.filter(|_| self.ends_soon()).map(|exited| exited.at + LAST_SEND_TIMEOUT);
        let mut all = [alone, look, farewell, self.stdout_deadline, self.closed_stdout_deadline, self.retry]
            .into_iter()
            .flatten()
            .peekable();
        all.peek()?;
        // Past times are handled, and wait for something else.
        let now = Instant::now();
        Some(all.filter(|at| *at > now).min().unwrap_or(now + RETRY))
    }

    /// Returns whether there is room for more output of the agent.
    fn may_read(&self) -> bool {
        self.agent.stdout.is_some() && !self.must_move() && self.spool.bytes() < self.limits.spool_bytes
    }

    fn take_output(&mut self, outcome: ReadOutcome) {
        match outcome {
            ReadOutcome::Data => {
                let spool = &mut self.spool;
                if let Err(TooLong) = self.lines.take(|line| spool.push(line)) {
                    self.agent.stdout = None;
                    self.lines = LineSplitter::new(self.limits.line_bytes);
                    let message = format!("the agent said a line of more than {} bytes", self.limits.line_bytes);
                    self.stop(EndReason::LineTooLong, &message, self.limits.grace);
                }
            }
            ReadOutcome::End => {
                if let Some(rest) = self.lines.rest() {
                    self.spool.push(&rest);
                }
                // An agent that ends closes its stdout a moment earlier.
                if self.exit.is_none() {
                    self.closed_stdout_deadline = Some(Instant::now() + CLOSED_STDOUT_GRACE);
                }
            }
        }
    }

    fn exited(&mut self, exit: Result<Exit, ProcessError>) {
        let exit = match exit {
            Ok(exit) => Some(exit),
            Err(error) => {
                self.ending.get_or_insert((EndReason::Exited, String::new())).1 = error.to_string();
                None
            }
        };
        self.exit = Some(Exited { exit, at: Instant::now() });
    }

    /// Ends the agent. Only the first reason counts.
    fn stop(&mut self, reason: EndReason, message: &str, grace: Duration) {
        self.is_end_requested |= reason == EndReason::Requested;
        if self.exit.is_none() {
            self.ending.get_or_insert_with(|| (reason, message.to_owned()));
            self.agent.end(grace);
        }
    }

    /// Connects a host. The previous one is disconnected.
    fn welcome(&mut self, pending_host: PendingHost) {
        if let Some(mut before) = self.host.take() {
            // Its messages until now count.
            before.receive(|words| self.hear(words)).ok();
            before.close(&ShimError::TakenOver);
        }
        self.alone_since = Instant::now();
        let from = pending_host.hello.from;
        let Ok(position) = self.spool.position(from) else { return };
        let mut host = HostConnection::new(pending_host, frame_limit(self.limits.line_bytes), position, self.taken);
        host.say(&FromShim::Welcome(Welcome {
            agent: self.agent.id,
            taken: self.taken,
            oldest: self.spool.oldest(),
            next: self.spool.next(),
            line_bytes: self.limits.line_bytes,
        }));
        self.host = Some(host);
    }

    /// Handles the host's messages.
    fn listen(&mut self) {
        if let Some(mut host) = self.host.take() {
            let result = host.receive(|words| self.hear(words));
            self.keep(host, result);
        }
    }

    fn keep(&mut self, host: HostConnection, result: Result<(), ShimError>) {
        match result {
            Ok(()) => self.host = Some(host),
            Err(error) => {
                host.close(&error);
                self.alone_since = Instant::now();
            }
        }
    }

    fn hear(&mut self, words: FromHost) -> Result<(), ShimError> {
        match words {
            FromHost::Hello(_) => return Err(ShimError::Nonsense("a second hello".to_owned())),
            // It was taken before the connection broke.
            FromHost::Write { number, .. } if number <= self.taken => {}
            FromHost::Write { number, line } => {
                if number != self.taken + 1 {
                    let expected = self.taken + 1;
                    return Err(ShimError::Nonsense(format!("write {number} instead of {expected}")));
                }
                let waiting = self.agent.stdin.waiting();
                if waiting + line.len() > self.limits.stdin_bytes {
                    return Err(ShimError::StdinFull { waiting });
                }
                self.taken = number;
                self.agent.stdin.push(line);
            }
            FromHost::Acknowledge(number) => {
                self.spool.acknowledge(number);
                self.end_acknowledged |= self.end.is_some() && number >= self.spool.next();
            }
            FromHost::End { grace } => self.stop(EndReason::Requested, "the host said so", grace),
        }
        Ok(())
    }
}

/// Waits for a time, or forever if there is none.
async fn pass(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

async fn ready(host: Option<&HostConnection>, next: u64) {
    match host {
        // An error shows when the connection is used.
        Some(host) => host.ready(next).await.unwrap_or_default(),
        None => std::future::pending().await,
    }
}

/// The sources of hosts and signals.
#[derive(Debug)]
struct HostListener {
    address: SocketAddress,
    listener: UnixListener,
    pending_hosts: JoinSet<Option<PendingHost>>,
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
    _lock: File,
}

impl HostListener {
    fn open(folder: &Path) -> Result<Self, ShimError> {
        folder::make_private(folder)?;
        let lock = folder::lock(folder)?;
        let failed = |error| ShimError::Folder { path: folder.to_owned(), error };
        let address = SocketAddress::of_shim(folder).map_err(failed)?;
        // We hold the lock, so an existing socket belongs to nobody.
        match fs::remove_file(address.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        Ok(Self {
            listener: UnixListener::bind(address.path()).map_err(failed)?,
            address,
            pending_hosts: JoinSet::new(),
            hangup: signal(SignalKind::hangup()).map_err(ShimError::Io)?,
            terminate: signal(SignalKind::terminate()).map_err(ShimError::Io)?,
            interrupt: signal(SignalKind::interrupt()).map_err(ShimError::Io)?,
            _lock: lock,
        })
    }

    /// Returns whether a host could still find it: the folder may have been removed.
    fn is_reachable(&self) -> bool {
        fs::symlink_metadata(self.address.path()).is_ok()
    }

    /// Waits for the next event. Dropping the call loses nothing.
    async fn event(&mut self) -> ShimEvent {
        let room = self.pending_hosts.len() < MAX_PENDING_HOSTS;
        tokio::select! {
            accepted = self.listener.accept(), if room => match accepted {
                Ok((stream, _)) => {
                    if is_ours(&stream) {
                        self.pending_hosts.spawn(accept_host(stream));
                    }
                    ShimEvent::Look
                }
                // The system is out of resources at the moment.
                Err(_) => {
                    tokio::time::sleep(PAUSE).await;
                    ShimEvent::Look
                }
            },
            Some(arrived) = self.pending_hosts.join_next() => match arrived {
                Ok(Some(pending_host)) => ShimEvent::HostConnected(pending_host),
                _ => ShimEvent::Look,
            },
            _ = self.terminate.recv() => ShimEvent::Terminated,
            _ = self.interrupt.recv() => ShimEvent::Terminated,
            // The loss of a terminal does not matter to it.
            _ = self.hangup.recv() => ShimEvent::Look,
        }
    }
}

impl Drop for HostListener {
    fn drop(&mut self) {
        fs::remove_file(self.address.path()).ok();
    }
}
