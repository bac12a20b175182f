//! A program and everything that it started, ended together.
//!
//! The program's process id names its group. The system reuses that id once the program was waited for and its group is
//! empty, and a signal to the group would then hit another one. So the program's end is observed without waiting for it
//! (it stays as a zombie) until nothing of its group is left.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep, timeout_at};

use super::ancestry::{ProcFolder, ProcessStat};
use super::orphans::LeaderEntry;
use super::{Exit, ProcessError};

/// The interval of checks if the system has no notification.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The time that the system may take to remove killed processes.
const REAP_TIMEOUT: Duration = Duration::from_secs(5);

/// The processes that belong to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupScope {
    /// The process group that it leads.
    ProcessGroup,
    /// The process session that it leads, with a group for each job of a shell.
    Session,
}

/// A program that leads a group or session. Dropping it kills all of it.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    id: Pid,
    scope: GroupScope,
    /// Readable when the leader has ended. Without pidfds it is polled.
    pidfd: Option<AsyncFd<OwnedFd>>,
    exit: Option<Exit>,
    /// The leader was waited for: its id is no longer ours.
    is_reaped: bool,
    /// Keeps the reaper of orphans away from the leader.
    entry: Option<LeaderEntry>,
}

impl ProcessGroup {
    /// The group of a child that leads its own group or session. Must be called inside a runtime.
    pub(crate) fn new(leader: &Child, scope: GroupScope) -> io::Result<Self> {
        let id = i32::try_from(leader.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { id, scope, pidfd: pidfd(id), exit: None, is_reaped: false, entry: Some(LeaderEntry::new(id)) })
    }

    pub(crate) fn id(&self) -> u32 {
        self.id.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits for the leader's exit. Others of its group may go on. Dropping the call loses nothing.
    pub(crate) async fn exited(&mut self) -> Exit {
        loop {
            if let Some(exit) = self.poll_exit() {
                return exit;
            }
            match &self.pidfd {
                Some(pidfd) => match pidfd.readable().await {
                    Ok(mut rung) => rung.clear_ready(),
                    Err(_) => self.pidfd = None,
                },
                None => sleep(POLL_INTERVAL).await,
            }
        }
    }

    /// Ends everything that is left, even if it resists: SIGTERM, `grace`, SIGKILL. Afterwards nothing of it exists.
    pub(crate) async fn end(&mut self, grace: Duration) -> Result<Exit, ProcessError> {
        if !self.is_gone() {
            self.signal(Signal::TERM);
            self.gone(grace).await;
        }
        // Even if nothing seems to be left: not every system lets us see.
        self.signal(Signal::KILL);
        let deadline = Instant::now() + REAP_TIMEOUT;
        while !self.gone(POLL_INTERVAL).await {
            if Instant::now() > deadline {
                return Err(ProcessError::Survived { id: self.id() });
            }
            self.signal(Signal::KILL);
        }
        self.reap();
        Ok(self.exit.unwrap_or_default())
    }

    /// Waits until nothing is left, and returns whether that happened in time.
    async fn gone(&mut self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        if timeout_at(deadline, self.exited()).await.is_err() {
            return false;
        }
        while !self.is_gone() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            sleep(POLL_INTERVAL.min(left)).await;
        }
        true
    }

    fn is_gone(&mut self) -> bool {
        self.is_reaped || (self.poll_exit().is_some() && self.living().is_empty())
    }

    /// The leader's exit if it has ended, without reaping it.
    fn poll_exit(&mut self) -> Option<Exit> {
        if self.exit.is_none() {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
            self.exit = match rustix::process::waitid(WaitId::Pid(self.id), options) {
                Ok(status) => status.as_ref().map(Exit::from),
                Err(Errno::INTR) => None,
                // Another process waited for it.
                Err(_) => Some(Exit::default()),
            };
        }
        self.exit
    }

    fn signal(&self, signal: Signal) {
        if self.is_reaped {
            return;
        }
        // It fails if nothing is left, which is the goal.
        rustix::process::kill_process_group(self.id, signal).ok();
        if self.scope == GroupScope::Session {
            for group in self.living().into_iter().filter(|group| *group != self.id) {
                rustix::process::kill_process_group(group, signal).ok();
            }
        }
    }

    /// The groups with living processes that belong to the leader. If that is unknown, none.
    fn living(&self) -> HashSet<Pid> {
        let id = self.id.as_raw_nonzero().get();
        live_processes()
            .filter(|process| match self.scope {
                GroupScope::ProcessGroup => process.group == id,
                GroupScope::Session => process.session == id,
            })
            .filter_map(|process| Pid::from_raw(process.group))
            .collect()
    }

    /// Reaps the leader, which has ended, and so releases its id.
    fn reap(&mut self) {
        let waited = rustix::process::waitid(WaitId::Pid(self.id), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        self.is_reaped = !matches!(waited, Ok(None) | Err(Errno::INTR));
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if self.is_reaped {
            return;
        }
        self.signal(Signal::KILL);
        self.reap();
        if !self.is_reaped {
            // It is dying, which takes a moment that nobody should have to wait for here.
            let id = self.id;
            let entry = self.entry.take();
            let wait = move || {
                rustix::process::waitid(WaitId::Pid(id), WaitIdOptions::EXITED).ok();
                drop(entry);
            };
            std::thread::Builder::new().name("burial".to_owned()).spawn(wait).ok();
        }
    }
}

#[cfg(target_os = "linux")]
fn pidfd(id: Pid) -> Option<AsyncFd<OwnedFd>> {
    use rustix::process::{PidfdFlags, pidfd_open};

    let descriptor = pidfd_open(id, PidfdFlags::empty()).ok()?;
    // The constructors that replace this one are unsafe, since they accept any descriptor at all. This one is owned.
    #[allow(deprecated, reason = "sound for a descriptor that is owned, and there is no other without `unsafe`")]
    AsyncFd::with_interest(descriptor, tokio::io::Interest::READABLE).ok()
}

#[cfg(not(target_os = "linux"))]
fn pidfd(_id: Pid) -> Option<AsyncFd<OwnedFd>> {
    None
}

/// Every process that has not ended. Without `/proc`, none.
fn live_processes() -> impl Iterator<Item = ProcessStat> {
    ProcFolder.all().filter(|process| !process.has_ended)
}
