//! The host itself: its data, its start, and a module for each part of its work.

mod agents;
mod clients;
mod connections;
pub(crate) mod creation;
mod open_sessions;
mod publication;
mod services;
mod status;
mod stop;
mod stores;

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use grove_agents::Agent;
use grove_core::*;
use grove_storage::copies::ActiveCopies;
use grove_storage::{Journal, NoJournal, RecoveredState};
use grove_work::Watcher;
use tokio::sync::watch;

pub use agents::AgentFinder;
pub use creation::{CreateError, CreateSession, IdGenerationError, STORE_SETTING};

pub use status::{HostStatus, TableSizes};

use clients::waited_for;
use connections::UnattachedConnections;
use open_sessions::OpenSessions;
use status::StorageCheck;

use crate::administration::HostAdministration;
use crate::agent_processes::AgentProcesses;
use crate::audit::AuditLog;
use crate::client_hooks::ClientHookRegistry;
use crate::config::Config;
use crate::editors::Editors;
use crate::env::Env;
use crate::history::History;
use crate::hooks::Hooks;
use crate::import::ImportReservations;
use crate::leases::Leases;
use crate::notifications::NotificationService;
use crate::policy::PermissionRules;
use crate::sequencer::{HostStopped, Sequencer, SequencerHandle, StorageHealth};
use crate::session::{ActiveFolders, Departures, spills};
use crate::session_hub::SessionHubService;
use crate::terminals::ClientTerminals;
use crate::tokens::TokenRegistry;
use crate::trust::FolderTrust;
use crate::usage::{ConnectionLimits, ConnectionUsage, UsageLimitTable, UsageTable};

/// A running host. Clones are the same host.
#[derive(Clone)]
pub struct Host(pub(crate) Arc<HostInner>);

/// A reference to a host that does not keep it alive.
#[derive(Clone)]
pub struct WeakHost(Weak<HostInner>);

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for WeakHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WeakHost").finish_non_exhaustive()
    }
}

impl WeakHost {
    /// The host, if it has not ended.
    pub fn upgrade(&self) -> Option<Host> {
        self.0.upgrade().map(Host)
    }
}

pub(crate) struct HostInner {
    pub(crate) env: Env,
    /// When the host started.
    started_at: Timestamp,
    pub(crate) config: Arc<Config>,
    pub(crate) sequencer: SequencerHandle,
    agents: Mutex<Vec<Arc<dyn Agent>>>,
    /// The agents' descriptions of themselves, for validation.
    agent_infos: watch::Sender<Arc<[AgentInfo]>>,
    sessions: Mutex<OpenSessions>,
    /// The agents' frame cursors from before the host's start, of sessions whose tasks have not started.
    marks: Mutex<HashMap<(SessionId, ChatId), FrameCursor>>,
    active_folders: Arc<ActiveFolders>,
    departures: Arc<Departures>,
    pub(crate) hooks: Hooks,
    client_hooks: Arc<ClientHookRegistry>,
    pub(crate) leases: Leases,
    pub(crate) copies: ActiveCopies,
    /// The ids of sessions that are being imported.
    pub(crate) imports: ImportReservations,
    pub(crate) editors: Editors,
    /// Sessions whose temporary files are kept, though the host's are not.
    keeping: Mutex<HashSet<SessionId>>,
    /// Sessions whose temporary files an earlier host left and that are still needed.
    left: Arc<HashSet<SessionId>>,
    last_connection: AtomicU64,
    usage: UsageTable,
    /// Connections that do not attach to the sequencer.
    unattached: UnattachedConnections,
    watcher: Mutex<Option<Watcher>>,
    /// The sessions of other tools, if the host has a history.
    history: OnceLock<Arc<dyn History>>,
    /// The sessions of all sources, if the host has a session hub.
    session_hub: OnceLock<Arc<dyn SessionHubService>>,
    administration: OnceLock<Arc<dyn HostAdministration>>,
    /// The named tokens, if the host has any beside its own.
    tokens: OnceLock<TokenRegistry>,
    /// The trusted folders, if the host manages them.
    trust: OnceLock<Arc<dyn FolderTrust>>,
    /// The processes of agents, if the host has any.
    agent_processes: OnceLock<Arc<dyn AgentProcesses>>,
    /// The audit log, if the host keeps one.
    pub(crate) audit_log: OnceLock<Arc<dyn AuditLog>>,
    permission_rules: OnceLock<Arc<dyn PermissionRules>>,
    /// The service that tells people's devices, if the host has one.
    notifications: OnceLock<Arc<dyn NotificationService>>,
    /// Damage that was found at the start.
    damage: Arc<[String]>,
    storage: StorageHealth,
    storage_check: OnceLock<StorageCheck>,
    /// Finds agents that were installed since the host's start, if set.
    agent_finder: OnceLock<Arc<dyn AgentFinder>>,
    pub(crate) terminals: Arc<ClientTerminals>,
}

impl Host {
    /// Starts a host with these agents that keeps nothing on disk.
    pub async fn in_memory(env: Env, config: Config, agents: Vec<Arc<dyn Agent>>) -> Result<Self, HostStopped> {
        let recovered = RecoveredState::default();
        Self::start(env, config, agents, Box::new(NoJournal::default()), recovered).await
    }

    /// Starts a host with these agents from the end of its journal.
    pub async fn start(
        env: Env,
        config: Config,
        agents: Vec<Arc<dyn Agent>>,
        journal: Box<dyn Journal>,
        mut recovered: RecoveredState,
    ) -> Result<Self, HostStopped> {
        let usage = UsageTable::new(config.usage_limits());
        let config = Arc::new(config);
        let unfinished = recovered.unfinished();
        let marks = std::mem::take(&mut recovered.marks);
        let taking_part: HashSet<ClientId> = recovered.state.sessions.values().flat_map(waited_for).collect();
        let known_agents: Arc<[AgentInfo]> = recovered.state.root.agents.as_slice().into();
        let busy = unfinished.iter().filter_map(SessionUri::id).collect();
        let mut left = HashSet::new();
        for (_, store) in env.stores.kept() {
            left.extend(spills::sweep(store.as_ref(), &busy).await);
        }
        let damage: Arc<[String]> = recovered.damage.as_slice().into();
        let (sequencer, handle) = Sequencer::start(config.clone(), &env, journal, recovered).await;
        let storage = sequencer.storage();
        env.spawn.spawn(Box::pin(sequencer.run()));
        let started_at = env.clock.now();
        let host = Self(Arc::new(HostInner {
            started_at,
            env,
            config,
            sequencer: handle,
            agents: Mutex::new(agents),
            agent_infos: watch::Sender::new(known_agents),
            sessions: Mutex::default(),
            marks: Mutex::new(marks),
            active_folders: Arc::default(),
            departures: Arc::default(),
            hooks: Hooks::default(),
            client_hooks: Arc::default(),
            leases: Leases::default(),
            copies: ActiveCopies::default(),
            imports: ImportReservations::default(),
            editors: Editors::default(),
            keeping: Mutex::default(),
            left: Arc::new(left),
            last_connection: AtomicU64::new(0),
            usage,
            unattached: UnattachedConnections::default(),
            watcher: Mutex::default(),
            history: OnceLock::new(),
            session_hub: OnceLock::new(),
            administration: OnceLock::new(),
            tokens: OnceLock::new(),
            trust: OnceLock::new(),
            agent_processes: OnceLock::new(),
            audit_log: OnceLock::new(),
            permission_rules: OnceLock::new(),
            notifications: OnceLock::new(),
            damage,
            storage,
            storage_check: OnceLock::new(),
            agent_finder: OnceLock::new(),
            terminals: Arc::default(),
        }));
        host.agents_changed().await?;
        // Some sessions may have ended with the earlier host, or with their store.
        host.publish_session_count().await?;
        // Sessions with unfinished work continue at once; the others when they are needed.
        for uri in unfinished {
            host.session(&uri).await?;
        }
        host.start_eviction();
        // Clients that took part before may reconnect.
        taking_part.into_iter().for_each(|client| host.client_left(client));
        Ok(host)
    }

    /// A reference that does not keep the host alive.
    pub fn downgrade(&self) -> WeakHost {
        WeakHost(Arc::downgrade(&self.0))
    }

    /// Clock, randomness, tasks and stores of the host.
    pub fn env(&self) -> &Env {
        &self.0.env
    }

    /// When the host started.
    pub fn started_at(&self) -> Timestamp {
        self.0.started_at
    }

    /// The configuration of the host.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// Counts the use of a new connection, with the others of its token.
    pub fn connection_usage(&self, token: &Arc<str>) -> ConnectionUsage {
        self.0.usage.connection(token, self.0.env.clock.clone())
    }

    /// The use of a connection from a part of the host's own process, which has no rates.
    pub fn in_process_usage(&self) -> ConnectionUsage {
        self.0.usage.in_process()
    }

    /// Sets other bounds of use: for tokens at once, for connections from the next one on.
    pub fn set_usage_limits(&self, limits: UsageLimitTable) {
        self.0.usage.set_limits(limits);
    }

    /// The current bounds of connections, for a token of this name.
    pub fn connection_limits(&self, token: &str) -> ConnectionLimits {
        self.0.usage.connections_of(token)
    }

    /// Counts the use of a new connection that has not authenticated, with the others of its address.
    pub fn pending_connection_usage(&self, address: Option<IpAddr>) -> ConnectionUsage {
        self.0.usage.pending_connection(address, self.0.env.clock.clone())
    }

    /// Counts a connection for its token from now on.
    pub fn log_in_usage(&self, usage: &ConnectionUsage, token: &Arc<str>) {
        self.0.usage.log_in(usage, token);
    }

    /// The sequencer: connections attach to it, and it answers from the published state.
    pub fn sequencer(&self) -> &SequencerHandle {
        &self.0.sequencer
    }
}
