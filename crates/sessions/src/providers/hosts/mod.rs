//! The sessions of a host, this one or another: one provider for each, over the Agent Host Protocol. Any host that
//! speaks it works.
//!
//! # Sources of the properties
//!
//! The host's *list* alone feeds the rows: it is fetched once for each connection and updated by the host's events, so
//! ten thousand sessions cost one list and no subscription. Details that only the channels of a session and of its
//! chats have (the running tool, the last turn's end, changed files, model, mode, loading: `details.rs`) are subscribed
//! to for the eight newest running sessions, and for those that are [open](HostProvider::open). After a subscription
//! ends, the last details stay. `docs/providers.md` has a row for each property.
//!
//! # An unreachable host
//!
//! Its sessions stay listed as they were last seen; drafts and session types are dropped. The client reconnects by
//! itself, or is connected again, with growing delays. A host that refuses the client (by its token, its certificate or
//! a login) is tried [on request](HostProvider::retry_now), or is [reached in another way](HostProvider::reach). Rows
//! are removed only if a complete list of the new connection lacks them. The last list is cached
//! ([`SessionListCache`]), and shown before the first list of the next start, with its time.
//!
//! # New sessions
//!
//! A new session is a draft: only a row of ours until its first message, and not listed. With that message it is
//! listed, created on the host under its own name, and gets its turn; then the host's session replaces it. The host's
//! events about that session are held back meanwhile, so that both are never listed at once. If sending fails, it is a
//! draft again.

mod answers;
pub(crate) mod browse;
pub(crate) mod cache;
pub(crate) mod details;
pub(crate) mod drafts;
pub(crate) mod driver;
pub(crate) mod follow;
mod identity;
mod message;
mod retry_delays;
mod session_actions;
mod state;
pub(crate) mod table;

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

/// The extent of the subscriptions to a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListenDepth {
    /// Its list, sessions that run or are open, and the repositories of folders.
    #[default]
    SessionDetails,
    /// Only its list: for a single look.
    ListAlone,
}

/// The options of a provider of a host.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// The limits of its connection.
    pub limits: ClientLimits,
    /// The retries of a lost connection, and of a list that did not come. Without retries ([`Backoff::never`]), an
    /// unreachable host stays so until it is [reached](HostProvider::reach) in another way.
    pub reconnect: Backoff,
    /// The time that a new session may take to be ready for its first message. Then it is not sent.
    pub commit: Duration,
    /// The extent of the subscriptions.
    pub depth: ListenDepth,
    /// The cache of the host's list, for when it is unreachable. It belongs to this host alone.
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
    /// The way to reach the host. Dropped with the provider, which ends the driver.
    endpoint: watch::Sender<Endpoint>,
}

impl HostProvider {
    /// The provider of a host, with its cached list, and its driver.
    pub fn new(host: HostIdentity, endpoint: Endpoint, options: HostOptions) -> (Self, HostDriver) {
        let shared = Arc::new(HostState::new(host, options.list_cache.clone()));
        let (endpoint, reached_at) = watch::channel(endpoint);
        let provider = Self { shared: shared.clone(), commit: options.commit, endpoint };
        (provider, HostDriver { shared, endpoint: reached_at, options })
    }

    /// Reaches the host in another way from now on: with another token, or another certificate. Its sessions stay
    /// listed; the connection is made again.
    pub fn reach(&self, endpoint: Endpoint) {
        self.endpoint.send_replace(endpoint);
    }

    /// Tries a host again that refused this client, since somebody wants to see it. Other hosts are retried by
    /// themselves, and nothing happens.
    pub fn retry_now(&self) {
        self.shared.retry_requested.notify_waiters();
    }

    /// The provider's host.
    pub fn host(&self) -> &HostIdentity {
        &self.shared.host
    }

    /// Waits until the host has listed its sessions once, completely. While it is unreachable, this waits.
    pub async fn listed(&self) {
        // The sender lives as long as the provider.
        self.shared.listed.subscribe().wait_for(|listed| *listed).await.ok();
    }

    /// The sessions as the host lists them. If it is unreachable, those of the cache, for which a file may have to be
    /// read.
    pub fn summaries(&self) -> Vec<SessionSummary> {
        let list_cache = || self.shared.list_cache.newer(None).map(|list| list.sessions);
        self.shared.summaries().or_else(list_cache).unwrap_or_default()
    }

    /// Subscribes to a session's channels until the result is dropped. `None`: it does not belong to this host.
    pub fn open(&self, session: &SessionId) -> Option<OpenedSession> {
        let host_uri = self.shared.host.session_on_host(session)?.to_owned();
        self.shared.row(&host_uri)?;
        self.shared.opened.send_modify(|opened| *opened.entry(host_uri.clone()).or_default() += 1);
        Some(OpenedSession { shared: self.shared.clone(), host_uri })
    }
}

/// An open session: its channels are subscribed to.
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
