//! The host itself: its agents, its sessions, its start and its end.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use grove_agents::catalog;
use grove_agents::{Agent, AgentError, AgentSession, FrameCursor, OpenSession};
use grove_core::*;
use grove_fs::temp_files::TempFilePolicy;
use grove_fs::{FsError, SessionFs};
use grove_work::{FileError, Policy, WatchError, WatchLimits, Watcher, local_path};
use tokio::sync::{oneshot, watch};

use crate::config::Config;
use crate::connection::DisconnectReason;
use crate::copilot::{CopilotConnections, Feeds};
use crate::editors::Editors;
use crate::env::Env;
use crate::eviction::EvictionState;
use crate::history::History;
use crate::hooks::{Hook, Hooks};
use crate::import::ImportReservations;
use crate::journal::{Journal, NoJournal, RecoveredState};
use crate::leases::Leases;
use crate::sequencer::{
    ConnectionId, HostStopped, JournalScope, JournalWriteError, Publication, PublishedState, Sequencer,
    SequencerHandle, StorageHealth, ToSequencer, WriteFailurePolicy,
};
use crate::session::{
    self, ActiveFolders, CommandError, ForkPlan, SessionContext, SessionHandle, SessionStart, ToSession, spills,
};
use crate::session_hub::SessionHubService;
use crate::store::copies::ActiveCopies;
use crate::store::stores::{StoreError, Stores};
use crate::store::{content, pastes, session_file};
use crate::trust::FolderTrust;

/// The time for which a new session waits for copies out of the folder of an earlier session of its id.
const COPY_TIMEOUT: Duration = Duration::from_secs(10);

/// A running host. Clones are the same host.
#[derive(Clone)]
pub struct Host(pub(crate) Arc<HostInner>);

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}

pub(crate) struct HostInner {
    pub(crate) env: Env,
    pub(crate) config: Arc<Config>,
    pub(crate) sequencer: SequencerHandle,
    agents: Mutex<Vec<Arc<dyn Agent>>>,
    /// The agents' descriptions of themselves, for validation.
    agent_infos: watch::Sender<Arc<[AgentInfo]>>,
    sessions: Mutex<OpenSessions>,
    /// The agents' frame cursors from before the host's start, of sessions whose tasks have not started.
    marks: Mutex<HashMap<(SessionId, ChatId), FrameCursor>>,
    active_folders: Arc<ActiveFolders>,
    pub(crate) hooks: Hooks,
    pub(crate) leases: Leases,
    pub(crate) copies: ActiveCopies,
    /// The ids of sessions that are being imported.
    pub(crate) imports: ImportReservations,
    pub(crate) editors: Editors,
    /// Sessions whose temporary files are kept, though the host's are not.
    keeping: Mutex<HashSet<SessionId>>,
    /// The event streams for SDKs, and their connections.
    pub(crate) feeds: Feeds,
    pub(crate) copilot_connections: CopilotConnections,
    /// Sessions whose temporary files an earlier host left and that are still needed.
    left: Arc<HashSet<SessionId>>,
    last_connection: AtomicU64,
    watcher: Mutex<Option<Watcher>>,
    /// The sessions of other tools, if the host has a history.
    history: OnceLock<Arc<dyn History>>,
    /// The sessions of all sources, if the host has a session hub.
    layer: OnceLock<Arc<dyn SessionHubService>>,
    /// The trusted folders, if the host manages them.
    trust: OnceLock<Arc<dyn FolderTrust>>,
    /// Damage that was found at the start.
    damage: Arc<[String]>,
    storage: StorageHealth,
    storage_check: OnceLock<StorageCheck>,
    /// Finds agents that were installed since the host's start, if set.
    agent_finder: OnceLock<Arc<dyn AgentFinder>>,
}

/// Finds agents that a host does not know yet.
#[async_trait]
pub trait AgentFinder: Send + Sync {
    /// Looks for agents again, and adds new ones ([`Host::add_agent`]).
    async fn look_again(&self, host: &Host);
}

/// The instructions for installing an agent that is known by name.
pub(crate) fn install_hint(provider: &ProviderId) -> String {
    match catalog::agent_entry(provider.as_str()) {
        Some(known) => format!(
            ": {} is not installed there, or not in the host's PATH; install it with `{}`, then try again",
            known.display_name,
            known.install.words()
        ),
        None => String::new(),
    }
}

/// Checks that the host's storage is still there; returns a description of the problem.
type StorageCheck = Arc<dyn Fn() -> Option<String> + Send + Sync>;

#[derive(Default)]
pub(crate) struct OpenSessions {
    pub(crate) stopping: bool,
    pub(crate) open: HashMap<SessionId, SessionHandle>,
    pub(crate) rest: EvictionState,
}

/// A client's request to create a session.
#[derive(Clone, Debug)]
pub struct CreateSession {
    pub uri: SessionUri,
    /// By default the one that the URI's scheme names.
    pub provider: Option<ProviderId>,
    pub model: Option<ModelId>,
    pub working_directories: Vec<String>,
    /// Settings of the session, if it has any. [`STORE_SETTING`] among them is not the agent's.
    pub config: Option<Extra>,
    /// Its store; by default the one in its settings, else the store of new sessions.
    pub store: Option<StoreName>,
}

/// The setting by which a client chooses the store of a new session.
pub const STORE_SETTING: &str = "grove.store";

/// The system has no randomness for an id.
#[derive(Debug, thiserror::Error)]
#[error("cannot generate an id, the system has no randomness: {0}")]
pub struct IdGenerationError(String);

/// The working directories that a session may have: its row in every list contains them.
pub(crate) const MAX_DIRECTORIES: usize = 64;

/// The reason why a session was not created.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    #[error("{0} is not a session URI: it must be <scheme>:/<id>, the id of letters, digits, `.`, `_` and `-`")]
    BadUri(SessionUri),
    #[error("{0} cannot name a session: its scheme has another meaning; choose <agent>:/<id>")]
    ReservedUri(SessionUri),
    #[error("there is no agent {0}{hint}", hint = install_hint(.0))]
    UnknownProvider(ProviderId),
    #[error("there is a session {0} already")]
    Exists(SessionUri),
    #[error(
        "the id {id} belongs to the session {by}: an id is unique on a host, whatever the agent; choose another id"
    )]
    IdTaken { id: SessionId, by: SessionUri },
    #[error("a session with the id {0} is being imported: wait for it, or choose another id")]
    BeingImported(SessionId),
    #[error("agent {provider} has no model {model}")]
    UnknownModel { provider: ProviderId, model: ModelId },
    #[error("a session may have at most {0} working directories: name fewer")]
    TooManyDirectories(usize),
    #[error("the working directory cannot be used: {0}")]
    WorkingDirectory(#[from] FileError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the storage client of {store} cannot store the session: {reason}")]
    Provider { store: StoreName, reason: String },
    #[error("the storage client has a session {0} already: resume it, or delete it first")]
    Kept(SessionId),
    #[error("the session's folder cannot be prepared: {0}")]
    Folder(#[from] FsError),
    #[error("sessions that were forked from an earlier {0} are still being copied: try again in a moment")]
    BeingCopied(SessionUri),
    #[error(transparent)]
    IdGenerationError(#[from] IdGenerationError),
    #[error(transparent)]
    NotStored(#[from] JournalWriteError),
    #[error(transparent)]
    HostStopped(#[from] HostStopped),
}

/// A host's activity in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostStatus {
    pub sessions: usize,
    /// The sessions in memory: those with subscribers, now or a while ago.
    pub loaded: usize,
    pub running_turns: usize,
    pub connections: usize,
    pub server_seq: u64,
    /// The sessions in which everything is allowed without a question (`allowAll`), by their ids.
    pub allow_all: Vec<SessionId>,
}

impl Host {
    /// Starts a host with these agents that keeps nothing on disk.
    pub async fn in_memory(env: Env, config: Config, agents: Vec<Arc<dyn Agent>>) -> Result<Self, HostStopped> {
        let recovered = RecoveredState::nothing(&config.limits);
        Self::start(env, config, agents, Box::new(NoJournal), recovered).await
    }

    /// Starts a host with these agents from the end of its journal.
    pub async fn start(
        env: Env,
        config: Config,
        agents: Vec<Arc<dyn Agent>>,
        journal: Box<dyn Journal>,
        mut recovered: RecoveredState,
    ) -> Result<Self, HostStopped> {
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
        let (sequencer, handle) = Sequencer::new(config.clone(), env.clock.clone(), journal, recovered);
        let storage = sequencer.storage();
        env.spawn.spawn(Box::pin(sequencer.run()));
        let host = Self(Arc::new(HostInner {
            env,
            config,
            sequencer: handle,
            agents: Mutex::new(agents),
            agent_infos: watch::Sender::new(known_agents),
            sessions: Mutex::default(),
            marks: Mutex::new(marks),
            active_folders: Arc::default(),
            hooks: Hooks::default(),
            leases: Leases::default(),
            copies: ActiveCopies::default(),
            imports: ImportReservations::default(),
            editors: Editors::default(),
            keeping: Mutex::default(),
            feeds: Feeds::default(),
            copilot_connections: CopilotConnections::default(),
            left: Arc::new(left),
            last_connection: AtomicU64::new(0),
            watcher: Mutex::default(),
            history: OnceLock::new(),
            layer: OnceLock::new(),
            trust: OnceLock::new(),
            damage,
            storage,
            storage_check: OnceLock::new(),
            agent_finder: OnceLock::new(),
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

    /// Adds an agent, or replaces the one of the same id; clients are notified.
    pub async fn add_agent(&self, agent: Arc<dyn Agent>) -> Result<(), HostStopped> {
        {
            let mut agents = self.agents();
            let provider = agent.info().provider;
            match agents.iter_mut().find(|mine| mine.info().provider == provider) {
                Some(mine) => *mine = agent,
                None => agents.push(agent),
            }
        }
        self.agents_changed().await
    }

    /// Adds a hook that is called for changes of sessions' trees.
    pub fn add_hook(&self, hook: Arc<dyn Hook>) {
        self.0.hooks.add(hook);
    }

    /// Sets the history of other tools' sessions for clients that ask for it. Only the first call has an effect.
    pub fn set_history(&self, history: Arc<dyn History>) {
        if self.0.history.set(history).is_err() {
            tracing::warn!("a host has one history: the second one is not used");
        }
    }

    /// The sessions of other tools, if the host has a history.
    pub(crate) fn history(&self) -> Option<&Arc<dyn History>> {
        self.0.history.get()
    }

    /// Sets the hub that lists the sessions of all sources. Only the first call has an effect.
    pub fn set_session_hub(&self, layer: Arc<dyn SessionHubService>) {
        if self.0.layer.set(layer).is_err() {
            tracing::warn!("a host has one session hub: the second one is not used");
        }
    }

    pub(crate) fn session_hub(&self) -> Option<&Arc<dyn SessionHubService>> {
        self.0.layer.get()
    }

    /// Lets clients read and change which folders are trusted.
    pub fn set_trust(&self, trust: Arc<dyn FolderTrust>) {
        if self.0.trust.set(trust).is_err() {
            tracing::warn!("a host has one list of trusted folders: the second one is not used");
        }
    }

    /// Descriptions of the damage that was found when the host started.
    pub fn damage(&self) -> &[String] {
        &self.0.damage
    }

    /// Sets the check behind [`Host::storage_problem`]. Only the first call has an effect.
    pub fn set_storage_check(&self, check: impl Fn() -> Option<String> + Send + Sync + 'static) {
        if self.0.storage_check.set(Arc::new(check)).is_err() {
            tracing::warn!("a host has one check of its storage: the second one is not used");
        }
    }

    /// The reason why nothing can be stored at the moment; `None` if it can.
    pub fn storage_problem(&self) -> Option<String> {
        let check = self.0.storage_check.get();
        check.and_then(|check| check()).or_else(|| self.0.storage.problem())
    }

    /// Sets the finder of agents that are requested and unknown. Only the first call has an effect.
    pub fn set_agent_finder(&self, finder: Arc<dyn AgentFinder>) {
        if self.0.agent_finder.set(finder).is_err() {
            tracing::warn!("a host has one finder of agents: the second one is not used");
        }
    }

    /// The agent of this name. An unknown one is looked for again: it may have been installed since.
    pub(crate) async fn agent_named(&self, provider: &ProviderId) -> Option<Arc<dyn Agent>> {
        let find = || self.agents().iter().find(|agent| agent.info().provider == *provider).cloned();
        if let Some(agent) = find() {
            return Some(agent);
        }
        self.0.agent_finder.get()?.look_again(self).await;
        find()
    }

    pub(crate) fn trust(&self) -> Option<&Arc<dyn FolderTrust>> {
        self.0.trust.get()
    }

    /// Removes an agent. Sessions that it works for keep it.
    pub async fn remove_agent(&self, provider: &ProviderId) -> Result<(), HostStopped> {
        self.agents().retain(|agent| agent.info().provider != *provider);
        self.agents_changed().await
    }

    /// Asks the agents for their descriptions again, and notifies clients of changes.
    pub async fn agents_changed(&self) -> Result<(), HostStopped> {
        let infos: Vec<AgentInfo> = self.agents().iter().map(|agent| agent.info()).collect();
        let changed = self.0.agent_infos.send_if_modified(|known| {
            let changed = **known != *infos;
            *known = infos.as_slice().into();
            changed
        });
        if changed { self.publish_root(RootEvent::AgentsChanged(infos)).await } else { Ok(()) }
    }

    /// Creates a session. It is in the state as `creating` when this returns; its agent starts in the background.
    pub async fn create_session(&self, wanted: CreateSession) -> Result<(), CreateError> {
        self.create(wanted, None).await
    }

    /// Creates a session from another one, and returns its URI.
    pub(crate) async fn create_from(
        &self,
        fork_plan: ForkPlan,
        title: SessionTitle,
        store: Option<StoreName>,
    ) -> Result<SessionUri, CreateError> {
        let uri = SessionUri::from(format!("{}:/{}", fork_plan.like.provider, self.new_id()?));
        let wanted = CreateSession {
            uri: uri.clone(),
            provider: Some(fork_plan.like.provider.clone()),
            model: fork_plan.like.model.clone(),
            working_directories: fork_plan.like.working_directories.clone(),
            config: fork_plan.like.config.as_ref().map(|config| config.values.clone()),
            store: Some(store.unwrap_or_else(|| fork_plan.like.store.clone())),
        };
        self.create(wanted, Some((fork_plan, title))).await?;
        Ok(uri)
    }

    /// An unused id: a UUID of version 4, as clients make theirs.
    pub(crate) fn new_id(&self) -> Result<String, IdGenerationError> {
        let mut bytes = [0; 16];
        self.0.env.random.fill(&mut bytes).map_err(|error| IdGenerationError(error.to_string()))?;
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let hex = hex::encode(bytes);
        let (a, b, c, d, e) = (&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
        Ok(format!("{a}-{b}-{c}-{d}-{e}"))
    }

    async fn create(
        &self,
        mut wanted: CreateSession,
        from: Option<(ForkPlan, SessionTitle)>,
    ) -> Result<(), CreateError> {
        let folders = &self.0.config.folders;
        wanted.working_directories =
            wanted.working_directories.into_iter().map(|folder| folders.expand(folder)).collect();
        let id = wanted.uri.id().ok_or_else(|| CreateError::BadUri(wanted.uri.clone()))?;
        if wanted.uri.is_reserved() {
            return Err(CreateError::ReservedUri(wanted.uri));
        }
        let provider = match wanted.provider {
            Some(provider) => provider,
            None => ProviderId::from(wanted.uri.scheme().unwrap_or_default()),
        };
        let agent = self.agent_named(&provider).await;
        let agent = agent.ok_or_else(|| CreateError::UnknownProvider(provider.clone()))?;
        if let Some(model) = &wanted.model
            && !agent.info().has_model(model)
        {
            return Err(CreateError::UnknownModel { provider, model: model.clone() });
        }
        if wanted.working_directories.len() > MAX_DIRECTORIES {
            return Err(CreateError::TooManyDirectories(MAX_DIRECTORIES));
        }
        for folder in &wanted.working_directories {
            local_path(folder)?;
        }
        let (store, settings) = self.store_for(wanted.store, wanted.config)?;
        let stores = &self.0.env.stores;
        if let Some((fork_plan, _)) = &from
            && let Some(store) =
                [&store, &fork_plan.like.store].into_iter().find(|store| stores.is_client_stored(store))
        {
            return Err(StoreError::OfProvider(store.clone()).into());
        }
        let fs = stores.reach(&store).await?;
        let trace = if stores.is_client_stored(&store) { JournalScope::NumbersOnly } else { JournalScope::AllEvents };
        let mut working_directories = wanted.working_directories;
        if working_directories.is_empty() {
            // Only a storage client knows the folder of a session that names none.
            working_directories.extend(fs.initial_cwd().filter(|_| trace == JournalScope::NumbersOnly));
        }
        let config = match (agent.settings(), settings) {
            (Some(mut known), chosen) => {
                // An agent reports its settings only when it runs, so the chosen values are kept until then.
                known.values.extend(chosen.unwrap_or_default());
                Some(known)
            }
            (None, chosen) => chosen.map(SessionConfig::of),
        };
        let new = NewSession {
            id: id.clone(),
            uri: wanted.uri.clone(),
            provider,
            model: wanted.model,
            working_directories,
            config,
            store,
        };
        let at = self.0.env.clock.now();
        let mut tip = Session::new(&new, at);
        let (mut changes, mut fork_origins) = (Vec::new(), Vec::new());
        // Held until the session's own task holds it.
        let mut _hold = None;
        if let Some((fork_plan, title)) = from {
            let source = self.0.env.stores.get(&fork_plan.like.store)?;
            let moved = pastes::moved((source.as_ref(), &fork_plan.like.id), (fs.as_ref(), &id));
            let main = (ChatId::from(Session::MAIN_CHAT), fork_plan.main);
            let others = fork_plan.others.into_iter().map(|cut| Ok((ChatId::from(self.new_id()?), cut)));
            let others = others.collect::<Result<Vec<_>, CreateError>>()?;
            for (chat, cut) in std::iter::once(main).chain(others) {
                let (begins, inherited) = cut.begin(&id, chat, at, &moved);
                changes.extend(begins);
                fork_origins.push(inherited);
            }
            _hold = Some(fork_plan._hold);
            changes.push(Change::Session(id.clone(), SessionEvent::TitleChanged(title)));
        }
        let mut events: Vec<Event> = changes.into_iter().map(|change| Event { at, change }).collect();
        events.iter().for_each(|event| tip.apply(event));
        for due in mirror::pending_events(&tip) {
            let event = Event { at, change: Change::Session(id.clone(), due) };
            tip.apply(&event);
            events.push(event);
        }
        self.require_unused_id(&wanted.uri, &id).await?;

        // The id is reserved before anything else happens, so that of two creations one fails; the event goes out
        // before the session's task starts, so that it is the session's first.
        let (begin, begun) = oneshot::channel();
        {
            let mut sessions = self.sessions();
            if sessions.stopping {
                return Err(HostStopped.into());
            }
            if let Some(open) = sessions.open.get(&id) {
                return Err(taken(&wanted.uri, id, open.uri.clone()));
            }
            if self.0.imports.has(&id) {
                return Err(CreateError::BeingImported(id));
            }
            let beginning = SessionStart::New { begun, fork_origins };
            let handle =
                session::start(tip, fs.clone(), agent, self.new_session_context(&id, &mut sessions), beginning);
            sessions.open.insert(id.clone(), handle);
        }
        let room = match trace {
            JournalScope::AllEvents => self.make_room(&new, fs.as_ref()).await,
            JournalScope::NumbersOnly => self.begin_client_stored(fs.as_ref(), &Session::new(&new, at)).await,
        };
        if let Err(error) = room {
            self.sessions().open.remove(&id);
            return Err(error);
        }
        let created = Change::Session(id.clone(), SessionEvent::Created(Box::new(new)));
        let events = std::iter::once(Event { at, change: created }).chain(events).collect();
        match self.publish(events, WriteFailurePolicy::Refuse, trace).await {
            Ok(Ok(_)) => {}
            // The task that waits for its start ends without it.
            Ok(Err(not_written)) => {
                self.sessions().open.remove(&id);
                return Err(not_written.into());
            }
            Err(stopped) => return Err(stopped.into()),
        }
        // The task waits for this; if it is gone, so is the host.
        begin.send(()).ok();
        self.active_sessions_changed().await?;
        Ok(())
    }

    /// Prepares a session's folder, after copies out of an earlier one of the same id have ended.
    pub(crate) async fn make_room(&self, new: &NewSession, fs: &dyn SessionFs) -> Result<(), CreateError> {
        tokio::select! {
            () = self.0.copies.none_from(&new.id) => {}
            () = self.0.env.clock.sleep(COPY_TIMEOUT) => return Err(CreateError::BeingCopied(new.uri.clone())),
        }
        Ok(session_file::make_room(fs, &new.id).await?)
    }

    fn new_session_context(&self, id: &SessionId, sessions: &mut OpenSessions) -> SessionContext {
        let keeps = self.0.keeping.lock().unwrap_or_else(PoisonError::into_inner).contains(id);
        SessionContext {
            temp_files: if keeps { TempFilePolicy::Kept } else { self.0.config.temp_files },
            env: self.0.env.clone(),
            config: self.0.config.clone(),
            sequencer: self.0.sequencer.clone(),
            agents: self.0.agent_infos.subscribe(),
            active_folders: self.0.active_folders.clone(),
            hooks: self.0.hooks.clone(),
            host: Arc::downgrade(&self.0),
            copies: self.0.copies.clone(),
            left: self.0.left.clone(),
            spills: sessions.rest.take_spills(id),
        }
    }

    /// Says whether a session has this id, under any URI.
    pub(crate) async fn id_is_taken(&self, id: &SessionId) -> Result<bool, HostStopped> {
        Ok(self.uri_of(id).await?.is_some())
    }

    /// The URI of the session with this id.
    async fn uri_of(&self, id: &SessionId) -> Result<Option<SessionUri>, HostStopped> {
        let id = id.clone();
        let look = move |published: &PublishedState, _| {
            let evicted = || published.evicted.get(&id).map(|evicted| &evicted.session);
            published.state.sessions.get(&id).or_else(evicted).map(|session| session.uri.clone())
        };
        self.0.sequencer.read(look).await
    }

    /// Refuses a new session whose id is in use. Folders, plain URIs and chats are named by the id alone.
    pub(crate) async fn require_unused_id(&self, uri: &SessionUri, id: &SessionId) -> Result<(), CreateError> {
        let open = self.open_session(id).map(|open| open.uri);
        let by = match open {
            Some(by) => Some(by),
            None => self.uri_of(id).await?,
        };
        match by {
            Some(by) => Err(taken(uri, id.clone(), by)),
            None => Ok(()),
        }
    }

    /// Disposes a session: cancels its turn, releases its agent and removes it from state and lists.
    ///
    /// Returns `false` if there is none.
    pub async fn dispose_session(&self, uri: &SessionUri) -> Result<bool, HostStopped> {
        let (Some(id), Some(handle)) = (uri.id(), self.session(uri).await?) else { return Ok(false) };
        let host = self.clone();
        let (told, gone) = oneshot::channel();
        // Its id is free only once it is gone, so that a new session under its URI is not taken for the old one. That
        // happens in a task of its own, since the caller may be dropped in the middle.
        self.0.env.spawn.spawn(Box::pin(async move {
            let (done, disposed) = oneshot::channel();
            let sent = handle.inbox.send(ToSession::Dispose(done)).await.is_ok();
            // Of two concurrent calls, one finds it gone already.
            let disposed = sent && disposed.await.is_ok();
            let mut result = Ok(disposed);
            if disposed {
                host.sessions().open.remove(&id);
                result = host.active_sessions_changed().await.map(|()| true);
            }
            told.send(result).ok();
        }));
        gone.await.unwrap_or(Err(HostStopped))
    }

    /// Ends a session's task, and leaves the session as it is.
    pub(crate) async fn end_session_task(&self, id: &SessionId) {
        let Some(handle) = self.sessions().open.remove(id) else { return };
        let (done, stopped) = oneshot::channel();
        if handle.inbox.send(ToSession::Stop(done)).await.is_ok() {
            // It may have ended by itself.
            stopped.await.ok();
        }
    }

    /// The load of the host.
    pub async fn status(&self) -> Result<HostStatus, HostStopped> {
        self.0
            .sequencer
            .read(|published, counters| HostStatus {
                sessions: published.state.sessions.len() + published.evicted.len(),
                loaded: published.state.sessions.len(),
                running_turns: published
                    .state
                    .sessions
                    .values()
                    .flat_map(|session| &session.chats)
                    .filter(|chat| chat.active.is_some())
                    .count(),
                connections: counters.connections,
                server_seq: published.seq,
                allow_all: {
                    let allowing = published.listed().filter(|(session, _)| session.details.allows_all());
                    let mut ids: Vec<SessionId> = allowing.map(|(session, _)| session.id.clone()).collect();
                    ids.sort_unstable();
                    ids
                },
            })
            .await
    }

    /// Stops: no new turns, a grace period for running ones, then an error for the rest; closes connections.
    pub async fn stop(&self) {
        self.stop_sessions().await;
        // Everything published before this is in the queues by now.
        self.0.sequencer.tell(ToSequencer::CloseAll(DisconnectReason::Stopping)).await.ok();
        self.0.copilot_connections.end();
    }

    /// Stops a host whose storage was deleted: clients are told so. Sessions that wait for something to be written are given
    /// up after a while.
    pub async fn stop_without_storage(&self) {
        let patience = self.0.env.clock.sleep(self.0.config.limits.stop_grace);
        futures_util::future::select(Box::pin(self.stop_sessions()), patience).await;
        self.0.sequencer.tell(ToSequencer::CloseAll(DisconnectReason::StorageLost)).await.ok();
        self.0.copilot_connections.end();
    }

    async fn stop_sessions(&self) {
        let open: Vec<SessionHandle> = {
            let mut sessions = self.sessions();
            sessions.stopping = true;
            sessions.open.values().cloned().collect()
        };
        let mut ending = Vec::new();
        for handle in open {
            let (done, stopped) = oneshot::channel();
            if handle.inbox.send(ToSession::Stop(done)).await.is_ok() {
                ending.push(stopped);
            }
        }
        for stopped in ending {
            // A session that was disposed meanwhile has stopped as well.
            stopped.await.ok();
        }
        self.remove_spills_of_evicted().await;
    }

    /// The task of the session with this URI. A session from before the host's start gets its task now.
    pub(crate) async fn session(&self, uri: &SessionUri) -> Result<Option<SessionHandle>, HostStopped> {
        let Some(id) = uri.id() else { return Ok(None) };
        self.mark_used(&id);
        let open = |sessions: &OpenSessions| sessions.open.get(&id).cloned();
        if let Some(handle) = open(&self.sessions()) {
            return Ok(Some(handle).filter(|handle| handle.uri == *uri));
        }
        self.load(&id).await?;
        // A session without a task does not change, so its published state is its tip.
        let found = self.0.sequencer.read({
            let uri = uri.clone();
            move |published, _| published.session_at(&uri).map(|session| (session.clone(), published.seq))
        });
        let Some((tip, seq)) = found.await? else { return Ok(None) };
        let agent = self.agents().iter().find(|agent| agent.info().provider == tip.provider).cloned();
        let agent = agent.unwrap_or_else(|| Arc::new(MissingAgent { provider: tip.provider.clone() }));
        // Sessions of missing stores are not listed either.
        let Ok(fs) = self.0.env.stores.get(&tip.store) else { return Ok(None) };
        let mut sessions = self.sessions();
        if let Some(handle) = open(&sessions) {
            return Ok(Some(handle));
        }
        let mine =
            self.marks().extract_if(|(session, _), _| *session == id).map(|((_, chat), mark)| (chat, mark)).collect();
        let session_context = self.new_session_context(&id, &mut sessions);
        let handle = session::start(tip, fs, agent, session_context, SessionStart::Known { seq, marks: mine });
        sessions.open.insert(id, handle.clone());
        Ok(Some(handle))
    }

    /// The task of a session, if it has one now.
    pub(crate) fn open_session(&self, id: &SessionId) -> Option<SessionHandle> {
        self.sessions().open.get(id).cloned()
    }

    /// Loads an evicted session of this id from its folder. It stays long enough to be used.
    pub(crate) async fn load(&self, id: &SessionId) -> Result<(), HostStopped> {
        self.mark_used(id);
        let wanted = id.clone();
        let evicted = move |published: &PublishedState, _| {
            published.evicted.get(&wanted).map(|evicted| evicted.session.store.clone())
        };
        let Some(store) = self.0.sequencer.read(evicted).await? else { return Ok(()) };
        let loaded = match self.0.env.stores.get(&store) {
            Ok(fs) => session_file::load(fs.as_ref(), id, &self.0.config.limits).await,
            Err(error) => Err(error.into()),
        };
        match loaded {
            Ok(session) => {
                waited_for(&session).collect::<HashSet<_>>().into_iter().for_each(|client| self.client_left(client));
                self.0.sequencer.tell(ToSequencer::Load(Box::new(session))).await
            }
            Err(error) => {
                tracing::error!(session = %id, %error, "a session cannot be read from its folder");
                Ok(())
            }
        }
    }

    /// Sends a command to a session, and waits until it is done. The error gives the reason if it is not.
    pub(crate) async fn carry_out(
        &self,
        session: &SessionHandle,
        command: Command,
    ) -> Result<Result<(), CommandError>, HostStopped> {
        let (done, told) = oneshot::channel();
        // A session that ends at this moment counts as gone.
        let gone = || Ok(Err(CommandError::Gone));
        if session.inbox.send(ToSession::Do(command, done)).await.is_err() {
            return gone();
        }
        match told.await {
            Ok(result) => Ok(result),
            Err(_) => gone(),
        }
    }

    /// Notes that a client's connection has ended. If it does not reconnect in time, sessions continue without it.
    pub(crate) fn client_left(&self, client: ClientId) {
        let host = self.clone();
        self.0.env.spawn.spawn(Box::pin(async move {
            // A stopping host releases everything anyway.
            host.release_client(client).await.ok();
        }));
    }

    async fn release_client(&self, client: ClientId) -> Result<(), HostStopped> {
        let left = self.0.sequencer.find_client(client.clone()).await?.map(|known| known.touched);
        self.0.env.clock.sleep(self.0.config.limits.client_grace).await;
        let known = self.0.sequencer.find_client(client.clone()).await?;
        // For a client that reconnected and left again, the time starts again from then.
        if known.is_some_and(|known| known.connected || Some(known.touched) != left) {
            return Ok(());
        }
        let look = {
            let client = client.clone();
            move |published: &PublishedState, _| {
                let sessions = published.state.sessions.values();
                let sessions = sessions.filter(|session| waited_for(session).any(|other| other == client));
                sessions.map(|session| session.uri.clone()).collect::<Vec<_>>()
            }
        };
        for uri in self.0.sequencer.read(look).await? {
            if let Some(session) = self.session(&uri).await? {
                session.inbox.send(ToSession::ClientGone(client.clone())).await.ok();
            }
        }
        Ok(())
    }

    /// Keeps the temporary files of a session, from the start of its task.
    pub(crate) fn keep_temp_files(&self, id: &SessionId) {
        // Nothing that can panic happens while it is held, so a poisoned lock still guards valid data.
        self.0.keeping.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone());
    }

    /// The agents' descriptions of themselves.
    pub(crate) fn agent_infos(&self) -> Arc<[AgentInfo]> {
        self.0.agent_infos.borrow().clone()
    }

    /// Says whether there is an agent of this id.
    pub(crate) fn has_agent(&self, provider: &ProviderId) -> bool {
        self.agents().iter().any(|agent| agent.info().provider == *provider)
    }

    /// The settings of sessions of this agent, as far as they are known.
    pub(crate) fn settings_of(&self, provider: &ProviderId) -> Option<SessionConfig> {
        self.agents().iter().find(|agent| agent.info().provider == *provider)?.settings()
    }

    /// The file watcher, started when it is first needed.
    pub fn watcher(&self) -> Result<Watcher, WatchError> {
        // Nothing that can panic happens while it is held, so a poisoned lock still guards valid data.
        let mut watcher = self.0.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watcher) = &*watcher {
            return Ok(watcher.clone());
        }
        let (started, reader) = Watcher::start(WatchLimits::default())?;
        self.0.env.spawn.spawn(Box::pin(reader.run()));
        Ok(watcher.insert(started).clone())
    }

    /// The content type, as far as a loaded turn gives it; `None` if there is no such session.
    pub(crate) async fn content_type(
        &self,
        session: &SessionId,
        content: &ContentId,
    ) -> Result<Option<Option<String>>, HostStopped> {
        self.load(session).await?;
        let (session, content) = (session.clone(), content.clone());
        self.0.sequencer.read(move |published, _| mime_type(published, &session, &content)).await
    }

    /// A body that is stored beside a session.
    pub(crate) async fn content(&self, session: &SessionId, id: &ContentId) -> Result<Vec<u8>, FsError> {
        let missing = || FsError::NotFound { path: id.to_string() };
        let fs = self.store_of(session).await.ok_or_else(missing)?;
        match content::get(fs.as_ref(), session, id).await {
            Err(FsError::NotFound { .. }) => {
                // It may still be copied from the session's fork origin, or the session may have moved meanwhile.
                self.0.copies.none_into(session).await;
                let fs = self.store_of(session).await.ok_or_else(missing)?;
                content::get(fs.as_ref(), session, id).await
            }
            found => found,
        }
    }

    /// The current store of a session.
    pub(crate) async fn store_of(&self, session: &SessionId) -> Option<Arc<dyn SessionFs>> {
        let wanted = session.clone();
        let look = move |published: &PublishedState, _| {
            let evicted = || published.evicted.get(&wanted).map(|evicted| &evicted.session);
            published.state.sessions.get(&wanted).or_else(evicted).map(|session| session.store.clone())
        };
        let store = self.0.sequencer.read(look).await.ok().flatten()?;
        self.0.env.stores.get(&store).ok()
    }

    /// The reason why a session of this id is missing, if there is a particular one.
    pub(crate) async fn why_missing(&self, id: &SessionId) -> Option<String> {
        let stores = &self.0.env.stores;
        if !stores.may_hide_sessions() || self.id_is_taken(id).await.unwrap_or(true) {
            return None;
        }
        stores.why_missing(id).await
    }

    /// The stores of sessions.
    pub fn stores(&self) -> &Stores {
        &self.0.env.stores
    }

    /// Sets the store of new sessions that name none, and returns the former one.
    ///
    /// Only while no session is active, so that the caller knows the store of each session.
    pub fn set_default_store(&self, name: &StoreName) -> Result<StoreName, StoreError> {
        // Held meanwhile, so that no session is created between the two.
        let sessions = self.sessions();
        match sessions.open.len() {
            0 => self.0.env.stores.set_default(name),
            active => Err(StoreError::SessionsActive(active)),
        }
    }

    /// The store of a new session: the named one, else the one in its settings, else that of new sessions.
    fn store_for(
        &self,
        named: Option<StoreName>,
        mut settings: Option<Extra>,
    ) -> Result<(StoreName, Option<Extra>), StoreError> {
        let set = settings.as_mut().and_then(|settings| settings.remove(STORE_SETTING));
        // Settings that only name the store are none.
        if set.is_some() {
            settings = settings.filter(|settings| !settings.is_empty());
        }
        let set = set.map(|set| match set.as_str() {
            Some(name) => Ok(StoreName::from(name)),
            None => Err(StoreError::BadName(set.to_string())),
        });
        let store = match named {
            Some(named) => named,
            None => set.transpose()?.unwrap_or_else(|| self.0.env.stores.default_name()),
        };
        Ok((store, settings))
    }

    /// The agent for sessions that name none: the configured one, else the first.
    pub(crate) fn default_provider(&self) -> Option<ProviderId> {
        let agents = self.agents();
        let known = |provider: &ProviderId| agents.iter().any(|agent| agent.info().provider == *provider);
        let configured = self.0.config.default_agent.clone().filter(known);
        configured.or_else(|| agents.first().map(|agent| agent.info().provider))
    }

    pub(crate) fn next_connection(&self) -> ConnectionId {
        ConnectionId(self.0.last_connection.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// The visible part of the file system: the configured roots, and the working directories of sessions.
    pub(crate) async fn policy(&self) -> Result<Policy, HostStopped> {
        let stores = self.0.env.stores.clone();
        let working_directories = self.0.sequencer.read(move |published, _| {
            let evicted = published.evicted.values().map(|evicted| &evicted.session);
            let sessions = published.state.sessions.values().chain(evicted);
            // A storage client's folder need not be one of this machine.
            let is_told =
                |session: &Session, folder: &String| stores.initial_cwd(&session.store).as_ref() != Some(folder);
            let folders = sessions
                .flat_map(|session| session.working_directories.iter().filter(move |folder| is_told(session, folder)));
            folders.filter_map(|folder| local_path(folder).ok()).collect()
        });
        Ok(Policy::new(self.0.config.folders.roots.clone(), working_directories.await?))
    }

    /// Publishes the number of sessions, if it has changed.
    pub(crate) async fn publish_session_count(&self) -> Result<(), HostStopped> {
        let differs = |published: &PublishedState, _| {
            let count = published.state.sessions.len() + published.evicted.len();
            usize::try_from(published.state.root.active_sessions).ok() != Some(count)
        };
        if self.0.sequencer.read(differs).await? { self.active_sessions_changed().await } else { Ok(()) }
    }

    pub(crate) async fn active_sessions_changed(&self) -> Result<(), HostStopped> {
        let all = |published: &PublishedState, _| published.state.sessions.len() + published.evicted.len();
        let count = self.0.sequencer.read(all).await?;
        self.publish_root(RootEvent::ActiveSessionsChanged(u32::try_from(count).unwrap_or(u32::MAX))).await
    }

    async fn publish_root(&self, event: RootEvent) -> Result<(), HostStopped> {
        let event = Event { at: self.0.env.clock.now(), change: Change::Root(event) };
        // Changes that may be held are never refused.
        self.publish(vec![event], WriteFailurePolicy::Hold, JournalScope::AllEvents).await.map(|_| ())
    }

    pub(crate) async fn publish(
        &self,
        events: Vec<Event>,
        on_write_failure: WriteFailurePolicy,
        trace: JournalScope,
    ) -> Result<Result<u64, JournalWriteError>, HostStopped> {
        let publication = Publication {
            events,
            origin: None,
            finished: Vec::new(),
            marks: Vec::new(),
            on_write_failure,
            trace,
            done: None,
        };
        self.0.sequencer.publish_now(publication).await
    }

    // Nothing that can panic leaves either list half-changed, so a poisoned lock still guards valid data.
    fn agents(&self) -> MutexGuard<'_, Vec<Arc<dyn Agent>>> {
        self.0.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn marks(&self) -> MutexGuard<'_, HashMap<(SessionId, ChatId), FrameCursor>> {
        self.0.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn sessions(&self) -> MutexGuard<'_, OpenSessions> {
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reason why a new session cannot have its URI.
fn taken(uri: &SessionUri, id: SessionId, by: SessionUri) -> CreateError {
    if by == *uri { CreateError::Exists(by) } else { CreateError::IdTaken { id, by } }
}

fn mime_type(published: &PublishedState, session: &SessionId, content: &ContentId) -> Option<Option<String>> {
    let session = published.state.sessions.get(session)?;
    let finished = session.chats.iter().flat_map(|chat| &chat.turns).flat_map(|turn| &turn.parts);
    let active = session.chats.iter().filter_map(|chat| chat.active.as_deref()).flat_map(|turn| turn.parts());
    let named = finished.chain(active).flat_map(content::named_in).find(|named| named.id == *content);
    Some(named.and_then(|named| named.mime_type.clone()))
}

/// Replaces an agent of an earlier session that is not installed any more.
struct MissingAgent {
    provider: ProviderId,
}

#[async_trait]
impl Agent for MissingAgent {
    fn info(&self) -> AgentInfo {
        AgentInfo {
            provider: self.provider.clone(),
            display_name: String::new(),
            description: String::new(),
            models: Vec::new(),
        }
    }

    async fn open(&self, _session: OpenSession) -> Result<Arc<dyn AgentSession>, AgentError> {
        Err(AgentError::Start(format!("there is no agent {} on this host any more", self.provider)))
    }
}

/// The clients that a session depends on: participants, and those that run a tool call.
fn waited_for(session: &Session) -> impl Iterator<Item = ClientId> + '_ {
    let parts = session.chats.iter().filter_map(|chat| chat.active.as_deref()).flat_map(ActiveTurn::parts);
    let runs = parts.filter_map(|part| match part {
        Part::ToolCall(call) if call.status == ToolCallStatus::Running => call.client.clone(),
        _ => None,
    });
    session.active_clients.iter().map(|active| active.client.clone()).chain(runs)
}
