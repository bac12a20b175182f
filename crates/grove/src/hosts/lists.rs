//! The sessions of all other hosts, asked at once. One that is away is waited for a moment, and what it had is shown.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::StreamExt;
use grove_client::{Ahp, Backoff, Client, Options};
use grove_host::{Clock, SystemClock};
use grove_sessions::providers::hosts::SeenList;
use grove_wire::ahp::SessionSummary;

use super::{HostsError, KnownHost, SeenFile, all_hosts};

/// How long a host may take. A list is for a person who waits for it.
const PATIENCE: Duration = Duration::from_millis(1_800);
/// How many hosts are asked at a time.
const ASKED_AT_ONCE: usize = 64;

/// What a host has.
#[derive(Debug)]
pub(crate) struct HostList {
    pub(crate) host: KnownHost,
    pub(crate) sessions: Vec<SessionSummary>,
    pub(crate) state: ListState,
}

/// Whether a list is what a host has now.
#[derive(Debug)]
pub(crate) enum ListState {
    Now,
    /// It did not answer: the list is what it had, as far as that is known.
    Away {
        why: String,
        seen_at: Option<u64>,
    },
}

/// Asks every host that is known.
pub(crate) async fn lists(data_dir: &Path) -> Result<Vec<HostList>, HostsError> {
    let all = all_hosts(data_dir)?;
    Ok(futures_util::stream::iter(all).map(|host| one(data_dir, host)).buffered(ASKED_AT_ONCE).collect().await)
}

async fn one(data_dir: &Path, host: KnownHost) -> HostList {
    let asked = tokio::time::timeout(PATIENCE, ask(&host)).await;
    let seen = SeenFile::of(data_dir, &host);
    match asked.context("it did not answer in time").and_then(|answer| answer) {
        Ok(sessions) => {
            seen.write(SeenList::new(SystemClock.now(), &sessions));
            HostList { host, sessions, state: ListState::Now }
        }
        Err(error) => {
            let (seen_at, sessions) = seen.read().map(|list| (list.at.0, list.sessions)).unzip();
            let state = ListState::Away { why: format!("{error:#}"), seen_at };
            HostList { host, sessions: sessions.unwrap_or_default(), state }
        }
    }
}

async fn ask(host: &KnownHost) -> Result<Vec<SessionSummary>> {
    let options = Options { reconnect: Backoff::never(), ..Options::default() };
    let client = Client::connect(host.endpoint()?, Ahp::default(), options).await?;
    client.sessions().refresh().await?;
    let sessions = client.sessions().read(|list| list.iter().cloned().collect());
    client.close().await;
    Ok(sessions)
}
