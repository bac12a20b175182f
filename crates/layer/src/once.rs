//! What other hosts have, for somebody who looks once and goes: all are asked at once, by the providers that everybody else has. One
//! that is away is waited for a moment, and what it had is shown.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use grove_client::{Backoff, Endpoint};
use grove_core::Timestamp;
use grove_sessions::SessionsProvider;
use grove_sessions::provider::Availability;
use grove_sessions::providers::hosts::{Depth, HostIdentity, HostOptions, HostProvider, KeepSeen};
use grove_wire::ahp::SessionSummary;
use tokio::sync::broadcast::error::RecvError;

use crate::known::{KnownHosts, OtherHost, Unread};

/// How long a host may take. A list is for a person who waits for it.
const PATIENCE: Duration = Duration::from_millis(1_800);
/// How many hosts are asked at a time.
const ASKED_AT_ONCE: usize = 64;

/// What a host has.
#[derive(Debug)]
pub struct HostList {
    /// What people call it.
    pub host: String,
    /// Its sessions, as it listed them.
    pub sessions: Vec<SessionSummary>,
    /// Whether it has them now.
    pub state: ListState,
}

/// Whether a list is what a host has now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListState {
    Now,
    /// It did not answer: the list is what it had, as far as that is known.
    Away {
        why: String,
        seen_at: Option<Timestamp>,
    },
}

/// Asks every host that is known, in their order. What they have is kept for when they are away, and that is done when this
/// returns.
pub async fn list_once(known: &dyn KnownHosts) -> Result<Vec<HostList>, Unread> {
    let all = known.all()?.hosts.into_iter().map(|host| (known.kept(&host), host));
    let lists = futures_util::stream::iter(all).map(|(kept, host)| one(kept, host));
    Ok(lists.buffered(ASKED_AT_ONCE).collect().await)
}

async fn one(kept: Arc<dyn KeepSeen>, host: OtherHost) -> HostList {
    match reach(&host) {
        Ok((identity, endpoint)) => ask(identity, endpoint, kept, host.name).await,
        // What is wrong with one costs only that, and what it had is known all the same.
        Err(error) => {
            let (seen_at, sessions) = kept.newer(None).map(|list| (list.at, list.sessions)).unzip();
            let state = ListState::Away { why: error.to_string(), seen_at };
            HostList { host: host.name, sessions: sessions.unwrap_or_default(), state }
        }
    }
}

fn reach(host: &OtherHost) -> Result<(HostIdentity, Endpoint), Unread> {
    Ok((HostIdentity::other_host(&host.address.to_string(), host.name.as_str())?, host.endpoint()?))
}

async fn ask(identity: HostIdentity, endpoint: Endpoint, kept: Arc<dyn KeepSeen>, host: String) -> HostList {
    let options = HostOptions {
        reconnect: Backoff::never(),
        depth: Depth::ListAlone,
        kept: kept.clone(),
        ..HostOptions::default()
    };
    let (provider, driver) = HostProvider::new(identity, endpoint, options);
    let running = tokio::spawn(driver.run());
    let why = tokio::select! {
        () = provider.listed() => None,
        why = away(&provider) => Some(why),
        () = tokio::time::sleep(PATIENCE) => Some("it did not answer in time".to_owned()),
    };
    let sessions = provider.summaries();
    let state = match why {
        None => ListState::Now,
        Some(why) => ListState::Away { why, seen_at: provider.seen_at() },
    };
    // The driver ends with its provider, and keeps what was seen. Nobody else would see to it that this is written.
    drop(provider);
    if running.await.is_ok() {
        tokio::task::spawn_blocking(move || kept.settle()).await.ok();
    }
    HostList { host, sessions, state }
}

/// Waits until it is known why a host cannot be asked.
async fn away(provider: &HostProvider) -> String {
    let mut told = provider.subscribe();
    loop {
        match provider.availability() {
            Availability::Away { reason } => return reason.to_string(),
            Availability::Incompatible { message } => return message.to_string(),
            Availability::Ready | Availability::Connecting => {}
        }
        if let Err(RecvError::Closed) = told.recv().await {
            // The provider has gone, which it does not while it is borrowed.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use grove_sessions::providers::hosts::{SeenInMemory, SeenList};

    use super::*;
    use crate::known::AllHosts;

    #[derive(Debug)]
    struct Known {
        hosts: Vec<OtherHost>,
        kept: Arc<SeenInMemory>,
    }

    impl KnownHosts for Known {
        fn mark(&self) -> Option<String> {
            None
        }

        fn all(&self) -> Result<AllHosts, Unread> {
            Ok(AllHosts { hosts: self.hosts.clone(), ..AllHosts::default() })
        }

        fn kept(&self, _host: &OtherHost) -> Arc<dyn KeepSeen> {
            self.kept.clone()
        }
    }

    #[tokio::test]
    async fn of_a_host_that_is_away_the_list_says_why_and_what_it_had_as_it_listed_it() {
        let host = |token: &str| OtherHost {
            name: "lab".to_owned(),
            address: "ws://127.0.0.1:1/".parse().unwrap(),
            access: grove_client::Access { token: Some(token.to_owned()), ..Default::default() },
        };
        let session = SessionSummary { resource: "scripted:/1".to_owned(), ..SessionSummary::default() };
        let kept = Arc::new(SeenInMemory::default());
        kept.keep(SeenList::new(Timestamp(5), [&session]));
        // The second cannot even be tried.
        let known = Known { hosts: vec![host("secret"), host("no\ntoken")], kept };
        let lists = list_once(&known).await.unwrap();
        assert_eq!(lists.len(), 2);
        for list in lists {
            assert_eq!(list.sessions, std::slice::from_ref(&session));
            let ListState::Away { why, seen_at } = list.state else { panic!("nobody is there") };
            assert_eq!(seen_at, Some(Timestamp(5)));
            assert!(!why.is_empty() && !why.contains("again by itself"), "nobody tries it again: {why}");
        }
    }
}
