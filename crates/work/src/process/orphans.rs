//! Orphans: processes whose parent has ended, adopted so that they stay descendants of the program that started them.
//!
//! A process that forks twice loses its parent, and the system gives it to another one: the nearest ancestor that is a
//! *child subreaper*, or the first process. A shim and a host are subreapers, so a process of an agent stays below
//! them whatever it does to its process group and session. A parent has to reap its ended children, the adopted ones
//! too.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, WaitId, WaitIdOptions};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep, timeout};

use super::ancestry::{ProcFolder, ProcessStat};

/// The pause after each scan: a flood of ended orphans must not keep its parent busy.
const SCAN_PAUSE: Duration = Duration::from_millis(100);

/// The leaders of process groups, which their owners wait for.
static LEADERS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// The entry of a leader that nobody else may wait for. Dropping it removes it.
#[derive(Debug)]
pub(super) struct LeaderEntry(i32);

impl LeaderEntry {
    pub(super) fn new(leader: Pid) -> Self {
        let id = leader.as_raw_nonzero().get();
        leaders().insert(id);
        Self(id)
    }
}

impl Drop for LeaderEntry {
    fn drop(&mut self) {
        leaders().remove(&self.0);
    }
}

// Nothing that can panic happens while it is held, so a poisoned lock still guards valid data.
fn leaders() -> MutexGuard<'static, BTreeSet<i32>> {
    LEADERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes this process the parent of its descendants' orphans. Only Linux has this.
#[cfg(target_os = "linux")]
pub fn adopt_orphans() -> io::Result<()> {
    // Any process id means "yes".
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Makes this process the parent of its descendants' orphans. Only Linux has this.
#[cfg(not(target_os = "linux"))]
pub fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

/// Reaps adopted orphans that have ended, for ever. Must be called inside a runtime.
///
/// Programs in process groups of [`Process`](super::Process) are left to their owners. With a `patience`, an ended child
/// is reaped only after this time, and never if it is in the group of this process: its owner may still wait for it.
pub async fn reap_orphans(patience: Duration) -> io::Result<()> {
    let mut ended_children = signal(SignalKind::child())?;
    let mut reaper = OrphanReaper { patience, ended: HashMap::new() };
    loop {
        match reaper.reap() {
            0 => {
                ended_children.recv().await;
            }
            _ => {
                timeout(patience, ended_children.recv()).await.ok();
            }
        }
        sleep(SCAN_PAUSE).await;
    }
}

/// Finds ended children that nobody waits for.
struct OrphanReaper {
    patience: Duration,
    /// Ended children that were seen already, since when.
    ended: HashMap<i32, Instant>,
}

impl OrphanReaper {
    /// Reaps what can be reaped. Returns the number of ended children that have to wait.
    fn reap(&mut self) -> usize {
        let now = Instant::now();
        let zombies = self.zombies();
        self.ended.retain(|id, _| zombies.contains(id));
        for id in zombies {
            let since = *self.ended.entry(id).or_insert(now);
            let Some(pid) = Pid::from_raw(id).filter(|_| now.duration_since(since) >= self.patience) else { continue };
            // Looked up again: its owner may have come.
            if !leaders().contains(&id) {
                rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG).ok();
                self.ended.remove(&id);
            }
        }
        self.ended.len()
    }

    /// The ended children that no owner is known of.
    fn zombies(&self) -> BTreeSet<i32> {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let own_group = rustix::process::getpgrp().as_raw_nonzero().get();
        let is_ours = |child: &ProcessStat| {
            child.parent == own.unsigned_abs()
                && child.has_ended
                && (self.patience.is_zero() || child.group != own_group)
        };
        let known = leaders().clone();
        let children = ProcFolder.all().filter(is_ours).filter_map(|child| i32::try_from(child.key.id).ok());
        children.filter(|id| !known.contains(id)).collect()
    }
}
