//! The process behind a connection, and whether it belongs to an agent.
//!
//! An agent could approve its own requests by running `grove approve`, or with the token that it reads from a file. So a
//! connection whose process descends from an agent's process, or from the host itself, has no right to approve.
//!
//! - A peer of the Unix socket is known by its credentials. It is judged when it is admitted: following its parents
//!   takes a tenth of a millisecond.
//! - A peer of a TCP address of this machine is found in the tables of the kernel, and among the descriptors of
//!   processes. That takes some milliseconds, so it is judged when it first asks for something that needs the right. A
//!   peer that has left by then is refused.
//! - A program behind a relay (`grove copilot`) is judged beside the relay.
//!
//! Other machines, `ssh` and containers with an address of their own are not known, and neither are processes that
//! another service starts for an agent (`systemd-run`, `at`, a running `tmux`). `docs/agents.md` says what is left.

mod socket_table;

use std::collections::HashSet;
use std::fs;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

use grove_core::{Scope, ScopeSet, SessionId};
use grove_host::{AgentRoot, Host};
use grove_work::{Ancestry, ProcFolder, ProcessKey, ProcessStat, ancestry, descendants};

use crate::listener::PeerAddress;

/// The scopes that no process of an agent has, whatever its token.
pub(crate) const PERSONS_ALONE: ScopeSet = ScopeSet::NONE.with(Scope::Approve).with(Scope::Terminal).with(Scope::Admin);

/// The descriptors that are looked at for one connection.
const MAX_DESCRIPTORS: usize = 1_000_000;
/// The number of looks at an agent's processes, which may pass a socket on meanwhile.
const LOOKS: usize = 3;

/// The party behind a connection, judged by its process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// No process of an agent, or one of another machine, of which nothing can be known.
    Other,
    /// A process of an agent, and the agent's session; none if the host itself started it, as for an agent's terminal.
    Agent(Option<SessionId>),
    /// A process of this machine that has ended, or that cannot be found.
    Unknown,
}

/// The processes behind a connection: its peer, and the client whose bytes the peer relays.
#[derive(Debug)]
pub(crate) struct PeerProcess {
    peer: PeerAddress,
    relayed: Option<PeerAddress>,
    origin: OnceLock<Origin>,
}

impl PeerProcess {
    pub(crate) fn new(peer: PeerAddress) -> Self {
        Self { peer, relayed: None, origin: OnceLock::new() }
    }

    pub(crate) fn peer(&self) -> PeerAddress {
        self.peer
    }

    /// The process of a relay, with the address of its client. What is known of the relay stays known.
    pub(crate) fn relaying(&self, client: PeerAddress) -> Self {
        let origin = match self.origin.get() {
            Some(found @ (Origin::Agent(_) | Origin::Unknown)) => OnceLock::from(found.clone()),
            Some(Origin::Other) | None => OnceLock::new(),
        };
        Self { peer: self.peer, relayed: Some(client), origin }
    }

    /// Judges a peer of the Unix socket at once: its process exists now.
    pub(crate) fn admitted(&self, host: &Host) {
        if let (PeerAddress::Unix { .. }, None) = (self.peer, self.relayed) {
            self.origin.get_or_init(|| {
                host.env().metrics.process_lookups.increment();
                ProcessLookup::new(host).judge(self.peer)
            });
        }
    }

    /// Says whether it is known by now that the connection belongs to an agent.
    pub(crate) fn is_known_agent(&self) -> bool {
        matches!(self.origin.get(), Some(Origin::Agent(_)))
    }

    /// The origin, looked up when it is first needed.
    pub(crate) async fn origin(&self, host: &Host) -> Origin {
        if let Some(origin) = self.origin.get() {
            return origin.clone();
        }
        if (self.peer, self.relayed) == (PeerAddress::InProcess, None) {
            return Origin::Other;
        }
        host.env().metrics.process_lookups.increment();
        let (peers, lookup) = ([Some(self.peer), self.relayed], ProcessLookup::new(host));
        let judged = host.env().spawn.run_blocking(move || {
            let mut judged = peers.into_iter().flatten().map(|peer| lookup.judge(peer));
            judged.find(|origin| *origin != Origin::Other).unwrap_or(Origin::Other)
        });
        // A stopping host runs nothing more.
        let judged = judged.await.unwrap_or(Origin::Unknown);
        self.origin.get_or_init(|| judged).clone()
    }
}

/// The processes that agents descend from.
struct ProcessLookup {
    host: Option<ProcessKey>,
    roots: Vec<AgentRoot>,
    sought: HashSet<ProcessKey>,
}

impl ProcessLookup {
    fn new(host: &Host) -> Self {
        Self::below(ProcFolder.key(std::process::id()), host.agent_roots())
    }

    fn below(host: Option<ProcessKey>, roots: Vec<AgentRoot>) -> Self {
        let sought = roots.iter().map(|root| root.process).chain(host).collect();
        Self { host, roots, sought }
    }

    fn judge(&self, peer: PeerAddress) -> Origin {
        // Without `/proc` nothing is known of any process.
        if self.host.is_none() {
            return Origin::Other;
        }
        match peer {
            PeerAddress::InProcess => Origin::Other,
            // It is outside of the host's process namespace, where no process of an agent is.
            PeerAddress::Unix { pid: None | Some(0), .. } => Origin::Other,
            PeerAddress::Unix { pid: Some(pid), started, .. } => match ProcFolder.key(pid) {
                Some(process) if Some(process.started) == started => self.judge_process(pid),
                // It has ended, and another one may have its number.
                Some(_) | None => Origin::Unknown,
            },
            PeerAddress::Tcp { peer, local } if is_of_this_machine(peer, local) => self.judge_socket(peer, local),
            PeerAddress::Tcp { .. } => Origin::Other,
        }
    }

    fn judge_process(&self, id: u32) -> Origin {
        if self.host.is_some_and(|host| host.id == id) {
            return Origin::Other;
        }
        match ancestry(&ProcFolder, id, &self.sought) {
            Ancestry::Below(root) => self.agent(root),
            Ancestry::Outside => Origin::Other,
            Ancestry::Unknown => Origin::Unknown,
        }
    }

    fn agent(&self, root: ProcessKey) -> Origin {
        let known = self.roots.iter().find(|known| known.process == root);
        Origin::Agent(known.map(|root| root.session.clone()))
    }

    fn judge_socket(&self, peer: SocketAddr, local: SocketAddr) -> Origin {
        let row = match socket_table::find(peer, local) {
            Ok(Some(row)) if row.inode != 0 => row,
            // Its process has closed it.
            Ok(_) | Err(_) => return Origin::Unknown,
        };
        let own = rustix::process::geteuid().as_raw();
        if row.uid != own && own != 0 {
            // Agents run as the host's user.
            return Origin::Other;
        }
        let mut left = MAX_DESCRIPTORS;
        let mut has_forwarder = false;
        for _ in 0..LOOKS {
            let all: Vec<ProcessStat> = ProcFolder.all().filter(|process| !process.has_ended).collect();
            let below = descendants(&all, &self.sought);
            let (inside, outside): (Vec<_>, Vec<_>) =
                all.iter().map(|process| process.key).partition(|key| below.contains_key(key));
            for key in inside.iter().filter(|key| Some(**key) != self.host) {
                // An agent's process that hides its descriptors is taken for the holder.
                if holds(*key, row.inode, &mut left) != Some(false) {
                    return below.get(key).map_or(Origin::Unknown, |root| self.agent(*root));
                }
            }
            for key in outside.into_iter().chain(self.host) {
                match holds(key, row.inode, &mut left) {
                    Some(true) => return Origin::Other,
                    Some(false) => {}
                    None => has_forwarder |= is_of_user(key, own) && is_forwarder(key),
                }
            }
            if left == 0 {
                return Origin::Unknown;
            }
        }
        // sshd hides its descriptors, and forwards connections of persons. Otherwise nobody holds the socket: it may be in
        // a message between two processes.
        if has_forwarder { Origin::Other } else { Origin::Unknown }
    }
}

/// Says whether a process has a socket among its descriptors; `None` if it does not show them.
fn holds(process: ProcessKey, inode: u64, left: &mut usize) -> Option<bool> {
    let descriptors = match fs::read_dir(format!("/proc/{}/fd", process.id)) {
        Ok(descriptors) => descriptors,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return None,
        // It has ended.
        Err(_) => return Some(false),
    };
    let name = format!("socket:[{inode}]");
    for descriptor in descriptors.flatten() {
        *left = left.saturating_sub(1);
        if *left == 0 {
            return None;
        }
        if fs::read_link(descriptor.path()).is_ok_and(|link| link.as_os_str() == name.as_str()) {
            return Some(true);
        }
    }
    Some(false)
}

/// Says whether a process forwards connections of persons: a server of SSH.
fn is_forwarder(process: ProcessKey) -> bool {
    fs::read_to_string(format!("/proc/{}/comm", process.id)).is_ok_and(|name| name.starts_with("sshd"))
}

/// Says whether a process runs as a user, though its files may belong to another one.
fn is_of_user(process: ProcessKey, user: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id)).unwrap_or_default();
    let real = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_ascii_whitespace().next()?.parse().ok());
    let owner = || fs::metadata(format!("/proc/{}", process.id)).ok().map(|found| found.uid());
    real.or_else(owner) == Some(user)
}

/// Says whether a peer is on this machine: only a local address can be bound to.
fn is_of_this_machine(peer: SocketAddr, local: SocketAddr) -> bool {
    let ip = peer.ip().to_canonical();
    ip.is_loopback() || ip == local.ip().to_canonical() || UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests;
