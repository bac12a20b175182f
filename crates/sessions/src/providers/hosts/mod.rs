//! The sessions of a host, this one or another: one provider for each, over the Agent Host Protocol. Any host that speaks it
//! will do.
//!
//! # Where what is shown comes from
//!
//! The host's *list* alone feeds the rows: it is fetched once for each connection and kept by what the host tells, so ten
//! thousand sessions cost one list and no subscription. What only the channels of a session and of its chats tell (the running
//! tool, the last turn's end, changed files, model, mode, loading: `details.rs`) is listened to for the eight newest sessions
//! that run, and for those that somebody has [opened](HostProvider::open). When nobody listens any more, the last of it stays.
//! `docs/providers.md` has a row for each property.
//!
//! # When the host is away
//!
//! Its sessions stay listed as they were last seen; new sessions that were not sent and session types go. The client comes
//! back by itself, or is connected anew, with waits that grow. A host that does not let it in (by its token, its certificate or
//! a login) is tried [when somebody asks](HostProvider::retry_now), or is [reached otherwise](HostProvider::reach). Rows go only after a list that came whole on the new
//! connection did not have them. What the host had is kept ([`SessionListCache`]), and shown before the first list of the next start,
//! with when that was seen.
//!
//! # New sessions
//!
//! A new session is nothing but a row of ours until its first message, and is not listed. With that message it is listed,
//! made on the host under a name of its own, and given its turn; then the host's takes its place. What the host tells of that
//! one meanwhile is held back, so no moment has both. Where sending fails, it is a new session again.

mod browse;
mod cache;
mod details;
mod drafts;
mod driver;
mod follow;
mod identity;
mod message;
mod retry_delays;
mod session_actions;
mod state;
mod table;

use std::sync::Arc;
use std::time::Duration;

use grove_client::{Backoff, ClientLimits, Endpoint};
use grove_wire::ahp::SessionSummary;
use tokio::sync::watch;

pub use self::cache::{CachedSessionList, InMemorySessionListCache, MAX_CACHED_ROWS, SessionListCache};
pub use self::driver::HostDriver;
pub use self::identity::{HostIdentity, THIS_HOST};
use self::table::HostState;
use crate::ids::SessionId;

/// How much of a host is listened to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListenDepth {
    /// Its list, sessions that run or are open, and which repositories folders belong to.
    #[default]
    SessionDetails,
    /// Its list and nothing else: for somebody who looks once.
    ListAlone,
}

/// How a provider of a host is to be.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// The limits of its connection.
    pub limits: ClientLimits,
    /// When a lost connection is tried again, and a list that did not come. Where no attempt is wanted ([`Backoff::never`]), a host
    /// that is away stays so until it is [reached](HostProvider::reach) in another way.
    pub reconnect: Backoff,
    /// How long a new session may take to be ready for its first message. Then it is not sent.
    pub commit: Duration,
    /// How much of the host is listened to.
    pub depth: ListenDepth,
    /// Where what the host has is kept for when it is away. It is this host's alone.
    pub list_cache: Arc<dyn SessionListCache>,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            limits: ClientLimits::default(),
            reconnect: Backoff::default(),
            commit: Duration::from_secs(120),
            depth: ListenDepth::SessionDetails,
            list_cache: Arc::new(InMemorySessionListCache::default()),
        }
    }
}

/// The sessions of one host.
#[derive(Debug)]
pub struct HostProvider {
    shared: Arc<HostState>,
    commit: Duration,
    /// How the host is reached. Dropped with the provider, which ends the driver.
    endpoint: watch::Sender<Endpoint>,
}

impl HostProvider {
    /// The provider of a host, with what was kept of its list, and what has to run for it.
    pub fn new(host: HostIdentity, endpoint: Endpoint, options: HostOptions) -> (Self, HostDriver) {
        let shared = Arc::new(HostState::new(host, options.list_cache.clone()));
        let (endpoint, reached_at) = watch::channel(endpoint);
        let provider = Self { shared: shared.clone(), commit: options.commit, endpoint };
        (provider, HostDriver { shared, endpoint: reached_at, options })
    }

    /// Reaches the host in another way from now on: with another token, or another certificate. Its sessions stay listed; the
    /// connection is made anew.
    pub fn reach(&self, endpoint: Endpoint) {
        self.endpoint.send_replace(endpoint);
    }

    /// Tries a host once more that does not let this client in, since somebody wants to see it. Other hosts are tried again
    /// by themselves, and nothing happens.
    pub fn retry_now(&self) {
        self.shared.asked.notify_waiters();
    }

    /// Which host it is of.
    pub fn host(&self) -> &HostIdentity {
        &self.shared.host
    }

    /// Waits until the host has listed its sessions once, whole. Where it cannot be reached, that is until it can.
    pub async fn listed(&self) {
        // The sender lives as long as the provider.
        self.shared.listed.subscribe().wait_for(|listed| *listed).await.ok();
    }

    /// The sessions as the host lists them. Where it cannot be asked, those that were kept of it, for which a file may have to be
    /// read.
    pub fn summaries(&self) -> Vec<SessionSummary> {
        let list_cache = || self.shared.list_cache.newer(None).map(|list| list.sessions);
        self.shared.summaries().or_else(list_cache).unwrap_or_default()
    }

    /// Listens to a session's channels for as long as what is given is held. `None`: it is none of this host's.
    pub fn open(&self, session: &SessionId) -> Option<OpenedSession> {
        let host_uri = self.shared.host.session_on_host(session)?.to_owned();
        self.shared.row(&host_uri)?;
        self.shared.opened.send_modify(|opened| *opened.entry(host_uri.clone()).or_default() += 1);
        Some(OpenedSession { shared: self.shared.clone(), host_uri })
    }
}

/// A session that somebody looks at.
#[derive(Debug)]
pub struct OpenedSession {
    shared: Arc<HostState>,
    host_uri: String,
}

impl Drop for OpenedSession {
    fn drop(&mut self) {
        self.shared.opened.send_modify(|opened| {
            if let Some(holders) = opened.get_mut(&self.host_uri) {
                *holders -= 1;
                if *holders == 0 {
                    opened.remove(&self.host_uri);
                }
            }
        });
    }
}
