//! What has to run for a host: the connection, its list, and the channels of sessions that are listened to.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use grove_client::dialect::ahp::State;
use grove_client::{Ahp, Backoff, Client, ConnectError, Endpoint, OpenError, Options, RequestError, Sessions, Status};
use grove_wire::ahp::{AgentInfo, ROOT, error_code, version};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::follow::{follow, knows_manifests, manifest};
use super::state::FolderFacts;
use super::table::Shared;
use super::waits::Waits;
use super::{Depth, HostOptions};
use crate::provider::Availability;

/// How many sessions that run are listened to: those that changed last. Of further ones only the list tells.
const MAX_FOLLOWED: usize = 8;
/// How long changes of the list are gathered before it is kept.
const KEEP_PAUSE: Duration = Duration::from_secs(2);

/// Runs a provider of a host: the caller spawns [`HostDriver::run`], which ends when the provider is dropped.
#[derive(Debug)]
#[must_use = "the host is not connected unless it runs"]
pub struct HostDriver {
    pub(super) shared: Arc<Shared>,
    pub(super) endpoint: watch::Receiver<Endpoint>,
    pub(super) options: HostOptions,
}

/// When to try again.
enum Retry {
    Soon,
    /// It will not be different soon.
    Late,
}

type Relisting = Pin<Box<dyn Future<Output = Result<(), RequestError>> + Send>>;

impl HostDriver {
    /// Connects, and connects again, until the provider is dropped.
    pub async fn run(self) {
        let Self { shared, mut endpoint, options } = self;
        loop {
            let reached_at = endpoint.borrow_and_update().clone();
            tokio::select! {
                changed = endpoint.changed() => match changed {
                    Ok(()) => {
                        shared.settle_others(&[]);
                        shared.away(Availability::Connecting);
                    }
                    Err(_) => break,
                },
                () = keep_connected(&shared, &reached_at, &options) => {}
            }
        }
        shared.keep_seen();
    }
}

async fn keep_connected(shared: &Arc<Shared>, endpoint: &Endpoint, options: &HostOptions) {
    let mut waits = Waits::new(&options.reconnect);
    loop {
        shared.connecting();
        let dialect = Ahp { versions: vec![version::CURRENT, version::OLDEST], ..Ahp::default() };
        let client = Options { limits: options.limits, reconnect: options.reconnect, ..Options::default() };
        let retry = match Client::connect(endpoint.clone(), dialect, client).await {
            Ok(client) => {
                let began = Instant::now();
                let why = serve(shared, &client, options).await;
                shared.settle_others(&[]);
                if began.elapsed() >= options.reconnect.steady {
                    waits.reset();
                }
                shared.away(Availability::Away { reason: why.into() });
                Retry::Soon
            }
            Err(error) => {
                let (availability, retry) = explain(&error, &options.reconnect);
                tracing::debug!(host = %shared.host.id, %error, "a host is not connected");
                shared.away(availability);
                take_newer(shared).await;
                retry
            }
        };
        if !is_tried_again(&options.reconnect) {
            return std::future::pending().await;
        }
        sleep(match retry {
            Retry::Soon => waits.next(),
            Retry::Late => waits.longest(),
        })
        .await;
    }
}

/// Somebody else may have seen the host meanwhile.
async fn take_newer(shared: &Arc<Shared>) {
    let (kept, than) = (shared.kept.clone(), shared.seen_at());
    // A reader that breaks down has read nothing.
    if let Ok(Some(list)) = tokio::task::spawn_blocking(move || kept.newer(than)).await {
        shared.take_seen(list);
    }
}

/// Serves one client until it is closed. Gives why.
async fn serve(shared: &Arc<Shared>, client: &Client<Ahp>, options: &HostOptions) -> String {
    let mut status = client.status();
    let mut sessions = client.sessions();
    let mut root = match client.subscribe(ROOT).await {
        Ok(root) => root,
        Err(error) => return error.to_string(),
    };
    let mut opened = shared.opened.subscribe();
    let mut followed: HashMap<String, oneshot::Sender<()>> = HashMap::new();
    let mut tasks = JoinSet::new();
    let mut relisting: Option<Relisting> = None;
    let mut was_connected = false;
    // Only a list of this connection tells what is gone.
    let mut is_whole = false;
    let mut fetched = 0;
    let mut keep_at: Option<Instant> = None;
    loop {
        let now = status.borrow_and_update().clone();
        match now {
            Status::Connected if !was_connected => {
                was_connected = true;
                // What could not be listened to may be now.
                followed.retain(|_, stop| !stop.is_closed());
                root.read(|state| shared.connected(client, agents(state)));
                relisting = Some(Box::pin(relist(client.sessions(), fetched, options.reconnect)));
            }
            Status::Connected => {}
            Status::Reconnecting { why, .. } => {
                (was_connected, is_whole, relisting) = (false, false, None);
                fetched = sessions.read(|list| list.fetched());
                shared.away(Availability::Away { reason: format!("{why}; it is tried again by itself").into() });
                take_newer(shared).await;
            }
            Status::Closed(why) => return why.to_string(),
        }
        if was_connected {
            root.read(|state| shared.set_agents(agents(state)));
            let wanted = wanted(shared, &opened.borrow_and_update(), options.depth);
            followed.retain(|on_host, _| wanted.contains(on_host));
            shared.settle_others(&wanted);
            for on_host in wanted {
                followed.entry(on_host).or_insert_with_key(|on_host| {
                    let (stop, stopped) = oneshot::channel();
                    tasks.spawn(follow(shared.clone(), client.clone(), on_host.clone(), stopped));
                    stop
                });
            }
        }
        tokio::select! {
            _ = status.changed() => {}
            _ = root.changed() => {}
            _ = opened.changed() => {}
            _ = sessions.changed() => {
                sessions.read(|list| shared.take_list(list, is_whole));
                keep_at.get_or_insert_with(|| Instant::now() + KEEP_PAUSE);
            }
            listed = done(&mut relisting) => {
                relisting = None;
                if let Err(error) = &listed
                    && !is_tried_again(&options.reconnect)
                {
                    return error.to_string();
                }
                if listed.is_ok() {
                    is_whole = true;
                    fetched = sessions.read(|list| {
                        shared.take_list(list, true);
                        list.fetched()
                    });
                    shared.is_seen();
                    shared.listed.send_replace(true);
                    keep_at.get_or_insert_with(Instant::now);
                    if options.depth == Depth::Details {
                        tasks.spawn(learn_folders(shared.clone(), client.clone()));
                    }
                }
            }
            () = at(keep_at) => {
                keep_at = None;
                shared.keep_seen();
            }
            Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
        }
    }
}

fn agents(state: &State) -> &[AgentInfo] {
    state.root().map(|root| root.agents.as_slice()).unwrap_or_default()
}

/// The sessions that are listened to: those that somebody has opened, and the newest that run.
fn wanted(shared: &Shared, opened: &HashMap<String, usize>, depth: Depth) -> Vec<String> {
    let mut wanted: Vec<String> = opened.keys().cloned().collect();
    if depth == Depth::ListAlone {
        return wanted;
    }
    wanted.extend(shared.running(MAX_FOLLOWED).into_iter().filter(|on_host| !opened.contains_key(on_host)));
    wanted
}

/// Waits for a list that was fetched after `before` others. The client fetches one by itself; where that fails it is asked
/// again.
async fn relist(sessions: Sessions<Ahp>, before: u64, reconnect: Backoff) -> Result<(), RequestError> {
    let mut waits = Waits::new(&reconnect);
    loop {
        if sessions.read(|list| list.fetched()) > before {
            return Ok(());
        }
        match sessions.refresh().await {
            Ok(()) => return Ok(()),
            Err(error @ RequestError::NotConnected(_)) => return Err(error),
            Err(error) if !is_tried_again(&reconnect) => return Err(error),
            Err(error) => {
                tracing::debug!(%error, "a host did not list its sessions; it is asked again");
                sleep(waits.next()).await;
            }
        }
    }
}

/// Asks once for each folder which repository it belongs to. Hosts other than Grove are not asked.
async fn learn_folders(shared: Arc<Shared>, client: Client<Ahp>) {
    if !knows_manifests(&client) {
        return;
    }
    for (folder, session) in shared.unknown_folders() {
        match manifest(&client, &session).await {
            Ok(manifest) => {
                let facts = FolderFacts { repository: manifest.repository, git_root: manifest.git_root };
                shared.learn_folder(folder, facts);
            }
            Err(RequestError::Refused { .. }) => shared.learn_folder(folder, FolderFacts::default()),
            Err(_) => return,
        }
    }
}

/// Whether what did not work is tried again.
fn is_tried_again(reconnect: &Backoff) -> bool {
    reconnect.attempts != Some(0)
}

/// What is said of a host that could not be connected, and when to try again.
fn explain(error: &ConnectError, reconnect: &Backoff) -> (Availability, Retry) {
    match error {
        ConnectError::Refused(refused) if refused.code == error_code::UNSUPPORTED_PROTOCOL_VERSION => {
            let theirs = refused.data.as_ref().and_then(|data| data.get("supportedVersions")).map(ToString::to_string);
            let message = format!(
                "the host speaks {}, and this side speaks {} and {}: bring the older of the two up to date",
                theirs.as_deref().unwrap_or("other versions of the protocol"),
                version::CURRENT,
                version::OLDEST
            );
            (Availability::Incompatible { message: message.into() }, Retry::Late)
        }
        ConnectError::NotUnderstood(why) => {
            let message = format!("the host was not understood ({why}): is it an agent host, and is it up to date?");
            (Availability::Incompatible { message: message.into() }, Retry::Late)
        }
        ConnectError::Open(OpenError::Denied { .. }) | ConnectError::Refused(_) => {
            (Availability::Away { reason: error.to_string().into() }, Retry::Late)
        }
        ConnectError::Open(_) | ConnectError::Ended(_) => {
            let again = if is_tried_again(reconnect) { "; it is tried again by itself" } else { "" };
            (Availability::Away { reason: format!("{error}{again}").into() }, Retry::Soon)
        }
    }
}

async fn done(relisting: &mut Option<Relisting>) -> Result<(), RequestError> {
    match relisting {
        Some(relisting) => relisting.await,
        None => std::future::pending().await,
    }
}

async fn at(when: Option<Instant>) {
    match when {
        Some(when) => sleep_until(when).await,
        None => std::future::pending().await,
    }
}
