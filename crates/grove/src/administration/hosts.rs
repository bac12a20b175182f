//! The other hosts that this one knows by name: listing, checking, adding and removing them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt;
use grove_client::{Credentials, HostAddress};
use grove_core::ClientId;
use grove_host::WeakHost;
use grove_host::administration::AdministrationRefusal;
use grove_session_hub::HostDirectory;
use grove_sessions::providers::hosts::HostIdentity;
use grove_wire::x_grove::administration::hosts::*;
use grove_wire::x_grove::sessions::{Availability, Provider, SessionsCall, SessionsOutcome};

use super::refusal::{failed, invalid, joined, not_found, of_hosts};
use crate::hosts::{self, HostProbe, HostsFile, KnownHost, KnownHosts, known_hosts, probe, shown_certificate};
use crate::show::table::cut;

/// The number of hosts that are asked at a time.
pub(crate) const ASKED_AT_ONCE: usize = 16;
/// The characters that are shown of a text of another host.
const TEXT_CHARS: usize = 300;
/// The longest token that is accepted, in bytes.
pub(crate) const MAX_TOKEN: usize = 4 << 10;
/// The longest address that is accepted, in bytes.
pub(crate) const MAX_ADDRESS: usize = 2 << 10;

pub(super) struct HostListAdministration {
    host: WeakHost,
    /// The answer of each host to its last check, by name and address. Removed hosts are forgotten.
    probes: Mutex<HashMap<(String, String), Result<HostProbe, String>>>,
}

/// The cached session list of a host: its time, and the number of sessions.
type CachedList = Option<(u64, usize)>;

impl HostListAdministration {
    pub(super) fn new(host: WeakHost) -> Self {
        Self { host, probes: Mutex::default() }
    }

    pub(super) async fn list(&self, data_dir: &Path) -> Result<HostsResult, AdministrationRefusal> {
        let (known, cached) = read(data_dir.to_owned()).await?;
        let providers = self.providers().await;
        let mut probes = self.probes();
        probes.retain(|(name, address), _| is_in(&known, name, address));
        let mut rows: BTreeMap<String, HostRow> = BTreeMap::new();
        for (host, cached) in known.hosts.iter().zip(cached) {
            let probed = probes.get(&key(host));
            rows.insert(host.name.clone(), row(host, cached, provider(&providers, host), probed));
        }
        for unusable in known.unusable {
            let name = cut(&unusable.name, hosts::NAME);
            let reason = Some(cut(&unusable.error.to_string(), TEXT_CHARS));
            rows.insert(name.clone(), HostRow { name, state: HostState::Unusable, reason, ..HostRow::default() });
        }
        Ok(HostsResult { hosts: rows.into_values().collect() })
    }

    /// Connects to all hosts, or to one, and lists them.
    pub(super) async fn check(
        &self,
        data_dir: &Path,
        params: CheckHostsParams,
    ) -> Result<HostsResult, AdministrationRefusal> {
        let (known, _) = read(data_dir.to_owned()).await?;
        let mut wanted = known.hosts;
        if let Some(name) = params.name {
            wanted.retain(|host| host.name == name);
            if wanted.is_empty() {
                return Err(not_found(format!("no usable host is called {:?}", cut(&name, hosts::NAME))));
            }
        }
        let answers: Vec<_> = futures_util::stream::iter(&wanted).map(probe).buffered(ASKED_AT_ONCE).collect().await;
        for (host, answer) in wanted.iter().zip(answers) {
            self.probes().insert(key(host), answer.map_err(|error| cut(&format!("{error:#}"), TEXT_CHARS)));
        }
        self.list(data_dir).await
    }

    /// Adds a host that answers. Of one behind TLS, a person compares the certificate first.
    pub(super) async fn add(
        &self,
        data_dir: &Path,
        params: AddHostParams,
    ) -> Result<AddHostResult, AdministrationRefusal> {
        let unchecked = params.unchecked;
        let address = address(&params)?;
        if hosts::named(data_dir, &params.name).map_err(|error| of_hosts(&error))?.is_some() {
            return Err(of_hosts(&hosts::HostsError::Known(params.name)));
        }
        let warning = address.is_readable_by_others().then(|| {
            format!("everybody between here and {address} can read the host's token and all sessions: wss:// and ssh:// encrypt them")
        });
        if matches!(address, HostAddress::Tls(_)) && params.pin.is_none() {
            let shown = shown_certificate(&address).await;
            let shown = shown.map_err(|error| failed(cut(&format!("{error:#}"), TEXT_CHARS)))?;
            return Ok(AddHostResult { certificate: Some(shown.to_string()), warning, ..AddHostResult::default() });
        }
        let pin = params.pin.as_deref().map(str::parse).transpose();
        let pin = pin.map_err(|error| invalid(format!("`pin` is not valid: {error}")))?;
        let host =
            KnownHost { name: params.name, address, access: Credentials { token: params.token, pin, ssh: None } };
        // Detects a token that cannot be sent.
        host.endpoint().map_err(|error| invalid(error.to_string()))?;
        let probed = match unchecked {
            true => None,
            false => Some(probe(&host).await.map_err(|error| {
                failed(format!("{} was not added: {}", host.name, cut(&format!("{error:#}"), TEXT_CHARS)))
            })?),
        };
        let (folder, added) = (data_dir.to_owned(), host.clone());
        let added = tokio::task::spawn_blocking(move || hosts::add(&folder, &added)).await.map_err(joined)?;
        added.map_err(|error| of_hosts(&error))?;
        if let Some(probed) = probed {
            self.probes().insert(key(&host), Ok(probed));
        }
        let row = row(&host, None, None, self.probes().get(&key(&host)));
        Ok(AddHostResult { added: true, certificate: None, host: Some(row), warning })
    }

    pub(super) async fn remove(
        &self,
        data_dir: &Path,
        params: RemoveHostParams,
    ) -> Result<RemoveHostResult, AdministrationRefusal> {
        let folder = data_dir.to_owned();
        let removed = tokio::task::spawn_blocking(move || hosts::remove(&folder, &params.name));
        let removed = removed.await.map_err(joined)?.map_err(|error| of_hosts(&error))?;
        Ok(RemoveHostResult { removed })
    }

    /// The hosts as the session hub sees them; none if it cannot tell.
    async fn providers(&self) -> Vec<Provider> {
        let Some(host) = self.host.upgrade() else { return Vec::new() };
        let Some(hub) = host.session_hub() else { return Vec::new() };
        let Ok(visit) = hub.visit(&ClientId::from("grove-administration")) else { return Vec::new() };
        match visit.call(SessionsCall::Providers).await {
            Ok(SessionsOutcome::Providers(result)) => result.providers,
            Ok(_) | Err(_) => Vec::new(),
        }
    }

    fn probes(&self) -> MutexGuard<'_, HashMap<(String, String), Result<HostProbe, String>>> {
        // Nothing that can panic leaves it half changed.
        self.probes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The hosts of the file, with the cached list of each, read on a thread that may wait for the disk.
async fn read(data_dir: PathBuf) -> Result<(KnownHosts, Vec<CachedList>), AdministrationRefusal> {
    let read = move || {
        let known = known_hosts(&data_dir)?;
        let directory = HostsFile::of(&data_dir);
        let cached = |host: &KnownHost| {
            let list = directory.list_cache(&host.remote()).newer(None)?;
            Some((list.at.0, list.sessions.len()))
        };
        let cached = known.hosts.iter().map(cached).collect();
        Ok((known, cached))
    };
    tokio::task::spawn_blocking(read).await.map_err(joined)?.map_err(|error| of_hosts(&error))
}

fn address(params: &AddHostParams) -> Result<HostAddress, AdministrationRefusal> {
    let AddHostParams { name: _, address, token, pin, unchecked: _ } = params;
    if address.len() > MAX_ADDRESS || token.as_ref().is_some_and(|token| token.len() > MAX_TOKEN) {
        return Err(invalid("the address or the token is too long"));
    }
    let address: HostAddress = address.parse().map_err(|error| invalid(format!("the address is invalid: {error}")))?;
    if pin.is_some() && !matches!(address, HostAddress::Tls(_)) {
        return Err(invalid("only a host behind TLS (wss://) has a certificate to pin"));
    }
    match (&address, token) {
        (HostAddress::Tls(_) | HostAddress::Plain(_), None) => {
            Err(invalid(format!("{address} needs a token: it is in the file `token` in the host's data folder")))
        }
        (HostAddress::Tls(_) | HostAddress::Plain(_), Some(_)) => Ok(address),
        (_, Some(_)) => Err(invalid(format!("{address} needs no token"))),
        (_, None) => Ok(address),
    }
}

fn key(host: &KnownHost) -> (String, String) {
    (host.name.clone(), host.address.to_string())
}

fn is_in(known: &KnownHosts, name: &str, address: &str) -> bool {
    known.hosts.iter().any(|host| host.name == name && host.address.to_string() == address)
}

/// The provider of a host in the session hub.
fn provider<'a>(providers: &'a [Provider], host: &KnownHost) -> Option<&'a Provider> {
    let identity = HostIdentity::other_host(&host.address.to_string(), host.name.as_str()).ok()?;
    providers.iter().find(|provider| provider.id == identity.id().to_string())
}

fn row(
    host: &KnownHost,
    cached: CachedList,
    provider: Option<&Provider>,
    probed: Option<&Result<HostProbe, String>>,
) -> HostRow {
    let (mut state, mut reason) = match provider {
        None => (HostState::Unknown, None),
        Some(provider) => {
            let state = match provider.availability {
                Availability::Ready => HostState::Ready,
                Availability::Connecting => HostState::Connecting,
                Availability::Away => HostState::Away,
                Availability::Incompatible => HostState::Incompatible,
            };
            (state, provider.reason.clone())
        }
    };
    // The hub's connection is newer than a check, unless it has none yet.
    let is_settled = !matches!(state, HostState::Unknown | HostState::Connecting);
    let probe = match probed {
        Some(Ok(probe)) => {
            if !is_settled {
                (state, reason) = (HostState::Ready, None);
            }
            Some(probe)
        }
        Some(Err(error)) if !is_settled => {
            (state, reason) = (HostState::Away, Some(error.clone()));
            None
        }
        Some(Err(_)) | None => None,
    };
    let program = probe.and_then(|probe| probe.program.as_ref());
    HostRow {
        name: host.name.clone(),
        address: Some(host.address.to_string()),
        state,
        // It may be from another machine.
        reason: reason.map(|reason| cut(&reason, TEXT_CHARS)),
        program: program.map(|program| cut(&program.name, TEXT_CHARS)),
        version: program.and_then(|program| program.version.as_ref()).map(|version| cut(version, TEXT_CHARS)),
        sessions: cached.map(|(_, sessions)| sessions).or(probe.map(|probe| probe.sessions)),
        seen_at: cached.map(|(at, _)| at),
        pin: host.access.pin.map(|pin| pin.to_string()),
        has_token: host.access.token.is_some(),
    }
}
