//! The process of the list: five providers, one management, one subscriber.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use grove_client::{Ahp, Client, Endpoint, Options, Subscription};
use grove_history::catalog::Catalog;
use grove_session_hub::list_page;
use grove_sessions::management::SessionsEvent;
use grove_sessions::providers::history::HistoryProvider;
use grove_sessions::providers::hosts::{HostIdentity, HostOptions, HostProvider};
use grove_sessions::{InMemoryState, Management, Registry, SubscriptionItem};
use grove_wire::ahp::{Action, SessionAction, SessionTitleChanged};
use grove_wire::x_grove::sessions::{RowStatus, SessionListFilter, SessionListSort, SessionsListParams};
use serde::{Deserialize, Serialize};

use crate::histories::TOOLS;

/// The number of changes, and of those that fetch the whole list.
const CHANGES: usize = 200;
const LISTS: usize = 20;
/// The number of lists built from the providers.
const FIRST_LISTS: usize = 5;
/// The time limit of every step.
const PATIENCE: Duration = Duration::from_secs(60);

/// The results, in milliseconds and bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Figures {
    pub(crate) sessions: usize,
    /// From nothing until everything is listed: three hosts are connected and list, the catalog is read.
    pub(crate) from_nothing: f64,
    /// The slowest of several lists of a new management whose providers are ready.
    pub(crate) first_list: f64,
    /// The slowest of several first pages of a search, as JSON.
    pub(crate) filtered_page: f64,
    /// From the change of a title by another client until the subscriber gets the event.
    pub(crate) change: f64,
    pub(crate) slowest_of_100_changes: f64,
    /// The same by fetching the host's list again.
    pub(crate) change_by_listing: f64,
    pub(crate) memory: u64,
    pub(crate) peak: u64,
}

pub(crate) async fn print(catalog: &Path, hosts: &[String]) -> Result<()> {
    println!("{}", serde_json::to_string(&measure(catalog, hosts).await?)?);
    Ok(())
}

async fn measure(catalog: &Path, hosts: &[String]) -> Result<Figures> {
    let began = Instant::now();
    let registry = Registry::new();
    let mut registered = Vec::new();
    let mut endpoints = Vec::new();
    for (number, host) in hosts.iter().enumerate() {
        let (url, token) = host.split_once(' ').context("a host has no token")?;
        let endpoint = Endpoint::tcp(url, Some(token))?;
        let identity = match number {
            0 => HostIdentity::this_host("Grove")?,
            _ => HostIdentity::other_host(&format!("host-{number}"), format!("host-{number}"))?,
        };
        let (provider, driver) = HostProvider::new(identity, endpoint.clone(), HostOptions::default());
        tokio::spawn(driver.run());
        registered.push(registry.register(Arc::new(provider))?);
        endpoints.push(endpoint);
    }
    let catalog = Arc::new(Catalog::open(catalog)?);
    let (management, driver) = Management::new(registry.clone(), Arc::new(InMemoryState::default()))?;
    tokio::spawn(driver.run());
    for tool in TOOLS {
        let provider = Arc::new(HistoryProvider::new(tool, catalog.clone())?);
        let reading = provider.clone();
        registered.push(registry.register(provider)?);
        tokio::task::spawn_blocking(move || reading.refresh()).await??;
    }
    let wanted = registered.len() * per_provider(&registry).await?;
    tokio::time::timeout(PATIENCE, async {
        while management.sessions().len() < wanted {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await
    .context("not everything was listed")?;
    let from_nothing = millis(began.elapsed());

    let mut first_list = Duration::ZERO;
    for _ in 0..FIRST_LISTS {
        let began = Instant::now();
        let (another, _driver) = Management::new(registry.clone(), Arc::new(InMemoryState::default()))?;
        ensure!(another.sessions().len() == wanted, "a list is incomplete");
        first_list = first_list.max(began.elapsed());
    }
    let filtered_page = filtered_page(&management)?;
    let memory = status("VmRSS:")?;
    let changes = changes(&management, &endpoints).await?;
    let peak = status("VmHWM:")?;
    let by_listing = changes_by_listing(&endpoints).await?;
    Ok(Figures {
        sessions: wanted,
        from_nothing,
        first_list: millis(first_list),
        filtered_page: millis(filtered_page),
        change: millis(changes[changes.len() / 2]),
        slowest_of_100_changes: millis(changes[changes.len() * 99 / 100]),
        change_by_listing: millis(by_listing[by_listing.len() / 2]),
        memory,
        peak,
    })
}

/// The slowest first page of some searches: one that most sessions match, one that few match, and one that none does.
fn filtered_page(management: &Management) -> Result<Duration> {
    let mut slowest = Duration::ZERO;
    for text in ["s", "session 77", "scripted", "nothing matches this"] {
        for _ in 0..FIRST_LISTS {
            let filter = SessionListFilter {
                text: Some(text.to_owned()),
                states: vec![RowStatus::Completed, RowStatus::InProgress, RowStatus::Untitled],
                archived: Some(false),
                ..SessionListFilter::default()
            };
            let sort = Some(SessionListSort::Updated);
            let params = SessionsListParams { filter: Some(filter), sort, ..SessionsListParams::default() };
            let began = Instant::now();
            let page = list_page(management, params).map_err(|refusal| anyhow!(refusal.words))?;
            serde_json::to_string(&page)?;
            slowest = slowest.max(began.elapsed());
        }
    }
    Ok(slowest)
}

/// The number of sessions of each provider: the generator creates the same for all.
async fn per_provider(registry: &Registry) -> Result<usize> {
    let providers = registry.providers();
    let read = providers.iter().rev().find(|provider| !provider.environment().is_background());
    Ok(read.context("there is no history")?.sessions().len())
}

/// A session that another client of a host has subscribed to.
async fn opened(endpoint: &Endpoint) -> Result<Subscription<Ahp>> {
    let options = Options { list_sessions: false, ..Options::default() };
    let client = Client::connect(endpoint.clone(), Ahp::default(), options).await?;
    Ok(client.subscribe("scripted:/7").await?)
}

fn titled(title: &str) -> Action {
    Action::Session(SessionAction::TitleChanged(SessionTitleChanged { title: title.to_owned() }))
}

/// The times until the subscriber got each change, sorted. The hosts alternate.
async fn changes(management: &Management, endpoints: &[Endpoint]) -> Result<Vec<Duration>> {
    let mut sessions = Vec::new();
    for endpoint in endpoints {
        sessions.push(opened(endpoint).await?);
    }
    let (_, mut events) = management.subscribe();
    let mut taken = Vec::new();
    for number in 0..CHANGES {
        let title = format!("change {number}");
        let began = Instant::now();
        sessions[number % sessions.len()].dispatch(titled(&title))?;
        let arrival = async {
            loop {
                match events.next().await.context("the management ended")? {
                    SubscriptionItem::Event(SessionsEvent::Sessions(change)) => {
                        if change.changed.iter().any(|session| *session.title() == *title) {
                            return anyhow::Ok(began.elapsed());
                        }
                    }
                    SubscriptionItem::Event(_) | SubscriptionItem::Reset => {}
                }
            }
        };
        taken.push(tokio::time::timeout(PATIENCE, arrival).await.context("a change did not arrive")??);
        // One change at a time.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    taken.sort_unstable();
    Ok(taken)
}

/// The peer: fetches the host's whole list after each change.
async fn changes_by_listing(endpoints: &[Endpoint]) -> Result<Vec<Duration>> {
    let endpoint = endpoints.last().context("there is no host")?;
    let session = opened(endpoint).await?;
    let lister = Client::connect(endpoint.clone(), Ahp::default(), Options::default()).await?;
    let mut taken = Vec::new();
    for number in 0..LISTS {
        let title = format!("listed {number}");
        let began = Instant::now();
        session.dispatch(titled(&title))?.await;
        let listing = async {
            loop {
                lister.sessions().refresh().await?;
                // A list that was already requested may be older than the change.
                if lister.sessions().read(|list| list.iter().any(|row| row.title == title)) {
                    return anyhow::Ok(began.elapsed());
                }
            }
        };
        taken.push(tokio::time::timeout(PATIENCE, listing).await.context("a list does not have the change")??);
    }
    taken.sort_unstable();
    Ok(taken)
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e5).round() / 1e2
}

/// A memory figure of this process in bytes, from the system.
fn status(what: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("the system does not report memory")?;
    let line = status.lines().find(|line| line.starts_with(what)).context("the system does not report memory")?;
    let kilobytes: u64 = line.split_whitespace().nth(1).context("no figure")?.parse()?;
    Ok(kilobytes << 10)
}
