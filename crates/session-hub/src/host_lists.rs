//! The session lists of other hosts for a single request: all hosts are asked at once.
//!
//! The usual providers ask them. An unreachable host is waited for briefly, and its cached sessions are returned.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use grove_client::{Backoff, Endpoint};
use grove_core::Timestamp;
use grove_sessions::SessionsProvider;
use grove_sessions::provider::Availability;
use grove_sessions::providers::hosts::{HostIdentity, HostOptions, HostProvider, ListenDepth, SessionListCache};
use grove_wire::ahp::SessionSummary;
use tokio::sync::broadcast::error::RecvError;

use crate::host_directory::{HostDirectory, HostDirectoryError, RemoteHost};

/// How long a host may take. A user waits for the list.
pub const TIMEOUT: Duration = Duration::from_millis(1_800);
/// The number of hosts that are asked at a time.
pub const ASKED_AT_ONCE: usize = 64;

/// The sessions of a host.
#[derive(Debug)]
pub struct HostList {
    /// The host's name.
    pub host: String,
    /// Its sessions, in its order.
    pub sessions: Vec<SessionSummary>,
    /// Current or cached.
    pub state: ListState,
}

/// The freshness of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListState {
    Now,
    /// The host did not answer: the list is cached, if there is one.
    Away {
        why: String,
        seen_at: Option<Timestamp>,
    },
}

/// Asks every known host, in order. Their lists are cached before this returns.
pub async fn list_hosts(known: &dyn HostDirectory) -> Result<Vec<HostList>, HostDirectoryError> {
    let all = known.all()?.hosts.into_iter().map(|host| (known.list_cache(&host), host));
    let lists = futures_util::stream::iter(all).map(|(list_cache, host)| one(list_cache, host));
    Ok(lists.buffered(ASKED_AT_ONCE).collect().await)
}

async fn one(list_cache: Arc<dyn SessionListCache>, host: RemoteHost) -> HostList {
    match reach(&host) {
        Ok((identity, endpoint)) => ask(identity, endpoint, list_cache, host.name).await,
        // A problem with one host affects only that one, and its cached sessions are returned.
        Err(error) => {
            let (seen_at, sessions) = list_cache.newer(None).map(|list| (list.at, list.sessions)).unzip();
            let state = ListState::Away { why: error.to_string(), seen_at };
            HostList { host: host.name, sessions: sessions.unwrap_or_default(), state }
        }
    }
}

fn reach(host: &RemoteHost) -> Result<(HostIdentity, Endpoint), HostDirectoryError> {
    Ok((HostIdentity::other_host(&host.address.to_string(), host.name.as_str())?, host.endpoint()?))
}

async fn ask(
    identity: HostIdentity,
    endpoint: Endpoint,
    list_cache: Arc<dyn SessionListCache>,
    host: String,
) -> HostList {
    let options = HostOptions {
        reconnect: Backoff::never(),
        depth: ListenDepth::ListAlone,
        list_cache: list_cache.clone(),
        ..HostOptions::default()
    };
    let (provider, driver) = HostProvider::new(identity, endpoint, options);
    let running = tokio::spawn(driver.run());
    let why = tokio::select! {
        () = provider.listed() => None,
        why = away(&provider) => Some(why),
        () = tokio::time::sleep(TIMEOUT) => Some("it did not answer in time".to_owned()),
    };
    let sessions = provider.summaries();
    let state = match why {
        None => ListState::Now,
        Some(why) => ListState::Away { why, seen_at: provider.seen_at() },
    };
    // The driver ends with its provider, and keeps the list. It must be written here.
    drop(provider);
    if running.await.is_ok() {
        tokio::task::spawn_blocking(move || list_cache.settle()).await.ok();
    }
    HostList { host, sessions, state }
}

/// Waits for the reason why a host is unreachable.
async fn away(provider: &HostProvider) -> String {
    let mut events = provider.subscribe();
    loop {
        match provider.availability() {
            Availability::Away { reason } => return reason.to_string(),
            Availability::Incompatible { message } => return message.to_string(),
            Availability::Ready | Availability::Connecting => {}
        }
        if let Err(RecvError::Closed) = events.recv().await {
            // The provider is gone, which is impossible while it is borrowed.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use grove_sessions::providers::hosts::{CachedSessionList, InMemorySessionListCache};

    use super::*;
    use crate::host_directory::RemoteHosts;

    #[derive(Debug)]
    struct TestDirectory {
        hosts: Vec<RemoteHost>,
        list_cache: Arc<InMemorySessionListCache>,
    }

    impl HostDirectory for TestDirectory {
        fn mark(&self) -> Option<String> {
            None
        }

        fn all(&self) -> Result<RemoteHosts, HostDirectoryError> {
            Ok(RemoteHosts { hosts: self.hosts.clone(), ..RemoteHosts::default() })
        }

        fn list_cache(&self, _host: &RemoteHost) -> Arc<dyn SessionListCache> {
            self.list_cache.clone()
        }
    }

    #[tokio::test]
    async fn of_a_host_that_is_away_the_list_says_why_and_what_it_had_as_it_listed_it() {
        let host = |token: &str| RemoteHost {
            name: "lab".to_owned(),
            address: "ws://127.0.0.1:1/".parse().unwrap(),
            access: grove_client::Credentials { token: Some(token.to_owned()), ..Default::default() },
        };
        let session = SessionSummary { resource: "scripted:/1".to_owned(), ..SessionSummary::default() };
        let list_cache = Arc::new(InMemorySessionListCache::default());
        list_cache.keep(CachedSessionList::new(Timestamp(5), [&session]));
        // The second has an invalid token.
        let known = TestDirectory { hosts: vec![host("secret"), host("no\ntoken")], list_cache };
        let lists = list_hosts(&known).await.unwrap();
        assert_eq!(lists.len(), 2);
        for list in lists {
            assert_eq!(list.sessions, std::slice::from_ref(&session));
            let ListState::Away { why, seen_at } = list.state else { panic!("nobody is there") };
            assert_eq!(seen_at, Some(Timestamp(5)));
            assert!(!why.is_empty() && !why.contains("again by itself"), "nobody tries it again: {why}");
        }
    }
}
