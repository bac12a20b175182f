//! The driver of a host: its connection, its list, and the subscriptions to its sessions.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use grove_client::dialect::ahp::ResourceState;
use grove_client::{
    Ahp, Backoff, Client, ConnectError, ConnectionStatus, Endpoint, Options, RequestError, SessionListHandle,
    TransportError,
};
use grove_wire::ahp::{AgentInfo, ROOT, error_code, version};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::follow::{follow, knows_manifests, manifest};
use super::retry_delays::RetryDelays;
use super::state::FolderFacts;
use super::table::HostState;
use super::{HostOptions, ListenDepth};
use crate::provider::Availability;

/// The most running sessions that are subscribed to: those that changed last. Of further ones only the list tells.
pub const MAX_FOLLOWED: usize = 8;
/// The most sessions that wait for a person and are followed, so that their requests can be answered in the list. Of
/// further ones only the list tells.
pub const MAX_WAITING_FOLLOWED: usize = 64;
/// The time for which changes of the list are gathered before it is cached.
const KEEP_PAUSE: Duration = Duration::from_secs(2);

/// Drives a provider of a host: the caller spawns [`HostDriver::run`], which ends when the provider is dropped.
#[derive(Debug)]
#[must_use = "the host is not connected unless it runs"]
pub struct HostDriver {
    pub(super) shared: Arc<HostState>,
    pub(super) endpoint: watch::Receiver<Endpoint>,
    pub(super) options: HostOptions,
}

/// The time of the next attempt.
enum Retry {
    Soon,
    /// It will not change soon.
    Late,
    /// The host refuses this client, or has another identity than before. Each further attempt would be another failed
    /// login, for which some machines lock their users out: there is none before somebody asks for it.
    WhenAsked,
}

/// The reason why a client was closed.
struct Disconnection {
    reason: String,
    retry: Retry,
}

impl Disconnection {
    fn soon(reason: impl ToString) -> Self {
        Self { reason: reason.to_string(), retry: Retry::Soon }
    }
}

type BoxedFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl HostDriver {
    /// Connects, and reconnects, until the provider is dropped.
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
        shared.store_cached_list();
    }
}

async fn keep_connected(shared: &Arc<HostState>, endpoint: &Endpoint, options: &HostOptions) {
    let mut retry_delays = RetryDelays::new(&options.reconnect);
    loop {
        shared.connecting();
        let dialect = Ahp { versions: vec![version::CURRENT, version::OLDEST], ..Ahp::default() };
        let client = Options { limits: options.limits, reconnect: options.reconnect, ..Options::default() };
        let retry = match Client::connect(endpoint.clone(), dialect, client).await {
            Ok(client) => {
                let began = Instant::now();
                let Disconnection { reason, retry } = serve(shared, &client, options).await;
                shared.settle_others(&[]);
                if began.elapsed() >= options.reconnect.steady {
                    retry_delays.reset();
                }
                shared.away(Availability::Away { reason: reason.into() });
                // It would go on by itself as long as somebody uses it.
                client.close().await;
                retry
            }
            Err(error) => {
                let (availability, retry) = explain(&error, &options.reconnect);
                tracing::debug!(host = %shared.host.id, %error, "cannot connect to a host");
                shared.away(availability);
                take_newer(shared).await;
                retry
            }
        };
        if !is_tried_again(&options.reconnect) {
            return std::future::pending().await;
        }
        match retry {
            Retry::Soon => sleep(retry_delays.next()).await,
            Retry::Late => sleep(retry_delays.longest()).await,
            Retry::WhenAsked => shared.retry_requested.notified().await,
        }
    }
}

/// Another process may have seen the host meanwhile.
async fn take_newer(shared: &Arc<HostState>) {
    let (list_cache, than) = (shared.list_cache.clone(), shared.seen_at());
    // A reader that panics has read nothing.
    if let Ok(Some(list)) = tokio::task::spawn_blocking(move || list_cache.newer(than)).await {
        shared.take_cached_list(list);
    }
}

/// Serves one client until it is closed, or refused on reconnecting. Returns the reason.
async fn serve(shared: &Arc<HostState>, client: &Client<Ahp>, options: &HostOptions) -> Disconnection {
    let mut status = client.status();
    let mut sessions = client.sessions();
    let mut root = match client.subscribe(ROOT).await {
        Ok(root) => root,
        Err(error) => return Disconnection::soon(error),
    };
    let mut opened = shared.opened.subscribe();
    let mut followed: HashMap<String, oneshot::Sender<()>> = HashMap::new();
    let mut tasks = JoinSet::new();
    let mut relisting: Option<BoxedFuture<Result<(), RequestError>>> = None;
    let mut learning: Option<BoxedFuture<()>> = None;
    let learn = |learning: &mut Option<BoxedFuture<()>>| {
        if options.depth == ListenDepth::SessionDetails {
            learning.get_or_insert_with(|| Box::pin(learn_folders(shared.clone(), client.clone())));
        }
    };
    let mut was_connected = false;
    // Only a list of this connection shows removals.
    let mut is_whole = false;
    let mut fetched = 0;
    let mut keep_at: Option<Instant> = None;
    loop {
        let now = status.borrow_and_update().clone();
        match now {
            ConnectionStatus::Connected if !was_connected => {
                was_connected = true;
                // A subscription that failed may work now.
                followed.retain(|_, stop| !stop.is_closed());
                root.read(|state| shared.connected(client, agents(state)));
                relisting = Some(Box::pin(relist(client.sessions(), fetched, options.reconnect)));
            }
            ConnectionStatus::Connected => {}
            ConnectionStatus::Reconnecting { why, .. } if is_login_refused(&why) => {
                return Disconnection { reason: turned_away(&why, &options.reconnect), retry: Retry::WhenAsked };
            }
            ConnectionStatus::Reconnecting { why, .. } => {
                (was_connected, is_whole, relisting) = (false, false, None);
                fetched = sessions.read(|list| list.fetched());
                shared.away(Availability::Away { reason: format!("{why}; it is tried again by itself").into() });
                take_newer(shared).await;
            }
            ConnectionStatus::ClientClosed(why) => return Disconnection::soon(why),
        }
        if was_connected {
            root.read(|state| shared.set_agents(agents(state)));
            let wanted = wanted(shared, &opened.borrow_and_update(), options.depth);
            followed.retain(|host_uri, _| wanted.contains(host_uri));
            shared.settle_others(&wanted);
            for host_uri in wanted {
                followed.entry(host_uri).or_insert_with_key(|host_uri| {
                    let (stop, stopped) = oneshot::channel();
                    tasks.spawn(follow(shared.clone(), client.clone(), host_uri.clone(), stopped));
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
                learn(&mut learning);
                keep_at.get_or_insert_with(|| Instant::now() + KEEP_PAUSE);
            }
            listed = done(&mut relisting) => {
                relisting = None;
                if let Err(error) = &listed
                    && !is_tried_again(&options.reconnect)
                {
                    return Disconnection { reason: error.to_string(), retry: Retry::Soon };
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
                    learn(&mut learning);
                }
            }
            () = done(&mut learning) => learning = None,
            () = at(keep_at) => {
                keep_at = None;
                shared.store_cached_list();
            }
            Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
        }
    }
}

fn agents(state: &ResourceState) -> &[AgentInfo] {
    state.root().map(|root| root.agents.as_slice()).unwrap_or_default()
}

/// The sessions to subscribe to, each once: the opened ones, the newest running ones, and those that wait for a person.
fn wanted(shared: &HostState, opened: &HashMap<String, usize>, depth: ListenDepth) -> Vec<String> {
    let mut wanted: Vec<String> = opened.keys().cloned().collect();
    if depth == ListenDepth::ListAlone {
        return wanted;
    }
    let further = shared.running(MAX_FOLLOWED).into_iter().chain(shared.waiting(MAX_WAITING_FOLLOWED));
    let mut known: HashSet<String> = wanted.iter().cloned().collect();
    wanted.extend(further.filter(|host_uri| known.insert(host_uri.clone())));
    wanted
}

/// Waits for a list that was fetched after `before` others. The client fetches one by itself; if that fails it is
/// requested again.
async fn relist(sessions: SessionListHandle<Ahp>, before: u64, reconnect: Backoff) -> Result<(), RequestError> {
    let mut retry_delays = RetryDelays::new(&reconnect);
    loop {
        if sessions.read(|list| list.fetched()) > before {
            return Ok(());
        }
        match sessions.refresh().await {
            Ok(()) => return Ok(()),
            Err(error @ RequestError::NotConnected(_)) => return Err(error),
            Err(error) if !is_tried_again(&reconnect) => return Err(error),
            Err(error) => {
                tracing::debug!(%error, "a host did not list its sessions; asking again");
                sleep(retry_delays.next()).await;
            }
        }
    }
}

/// Requests once for each folder its repository, if the rows of its sessions do not name it. Failed requests are
/// repeated after the next change of the list. Hosts other than Grove are not asked.
async fn learn_folders(shared: Arc<HostState>, client: Client<Ahp>) {
    if !knows_manifests(&client) {
        return;
    }
    while let Some((folder, session)) = shared.next_unknown_folder() {
        match manifest(&client, &session).await {
            Ok(manifest) => {
                let facts = FolderFacts { repository: manifest.repository, git_root: manifest.git_root };
                shared.learn_folder(folder, facts);
            }
            Err(RequestError::Refused { .. }) => shared.learn_folder(folder, FolderFacts::default()),
            Err(_) => return shared.still_unknown(folder, session),
        }
    }
}

/// Returns whether a failure is retried.
fn is_tried_again(reconnect: &Backoff) -> bool {
    reconnect.attempts != Some(0)
}

/// The availability after a failed connection, and the time of the next attempt.
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
        ConnectError::Open(TransportError::Denied { .. }) => {
            let reason = turned_away(&format!("{error}; the token is in that host's data folder"), reconnect);
            (Availability::Away { reason: reason.into() }, Retry::WhenAsked)
        }
        ConnectError::Open(TransportError::Certificate(_)) => {
            (Availability::Away { reason: turned_away(&error.to_string(), reconnect).into() }, Retry::WhenAsked)
        }
        ConnectError::Open(TransportError::Ssh(ssh)) if is_login_refused(&ssh.to_string()) => {
            (Availability::Away { reason: turned_away(&error.to_string(), reconnect).into() }, Retry::WhenAsked)
        }
        ConnectError::Refused(refused) if refused.code == error_code::AUTH_REQUIRED => {
            (Availability::Away { reason: turned_away(&error.to_string(), reconnect).into() }, Retry::WhenAsked)
        }
        ConnectError::Refused(_) => (Availability::Away { reason: error.to_string().into() }, Retry::Late),
        ConnectError::Open(_) | ConnectError::Ended(_) => {
            let again = if is_tried_again(reconnect) { "; it is tried again by itself" } else { "" };
            (Availability::Away { reason: format!("{error}{again}").into() }, Retry::Soon)
        }
    }
}

fn turned_away(why: &str, reconnect: &Backoff) -> String {
    match is_tried_again(reconnect) {
        true => format!(
            "{why}. It is not tried again before its entry changes, or somebody opens the list of sessions again"
        ),
        // Nobody expects a retry.
        false => why.to_owned(),
    }
}

/// Returns whether ssh reports that the machine refuses the user, or has another identity than before. Its text is the
/// only evidence: its exit code is the same after a lost connection, and the client has no other error for it.
fn is_login_refused(why: &str) -> bool {
    // Programs on the host may be denied something, too, but in other words.
    let methods = ["publickey", "password", "keyboard-interactive", "gssapi", "hostbased"];
    let denied = |rest: &str| methods.iter().any(|method| rest.starts_with(method));
    why.starts_with("ssh to ")
        && (why.split("Permission denied (").skip(1).any(denied)
            || ["Host key verification failed", "Too many authentication failures"].iter().any(|it| why.contains(it)))
}

async fn done<T>(running: &mut Option<BoxedFuture<T>>) -> T {
    match running {
        Some(running) => running.await,
        None => std::future::pending().await,
    }
}

async fn at(when: Option<Instant>) {
    match when {
        Some(when) => sleep_until(when).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use grove_client::SshError;

    use super::*;

    #[test]
    fn a_login_that_was_refused_is_told_from_a_connection_that_was_lost() {
        let is_refused = |complaint: &str| {
            let (host, status) = ("dev-box".to_owned(), Some("exit status: 255".to_owned()));
            is_login_refused(&SshError::Ended { host, status, complaint: complaint.to_owned() }.to_string())
        };
        for refused in [
            "me@dev-box: Permission denied (publickey,password).",
            "Welcome\r\nPermission denied (keyboard-interactive).",
            "No ED25519 host key is known for dev-box.\r\nHost key verification failed.",
            "Received disconnect from 10.0.0.7 port 22:2: Too many authentication failures",
        ] {
            assert!(is_refused(refused), "{refused}");
        }
        for lost in [
            "",
            "ssh: connect to host dev-box port 22: Connection refused",
            "client_loop: send disconnect: Broken pipe",
            "bash: line 1: /opt/grove: Permission denied",
            "a folder is not watched: Permission denied (os error 13)",
        ] {
            assert!(!is_refused(lost), "{lost}");
        }
        assert!(!is_login_refused("the host cannot be reached (Permission denied (os error 13)): is it running?"));
    }
}
