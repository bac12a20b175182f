//! Creating sessions.

use std::sync::Arc;
use std::time::Duration;

use grove_agents::Agent;
use grove_agents::setup::{AgentSetup, SetupRefusal};
use grove_core::*;
use grove_fs::{FsError, SessionFs};
use grove_storage::StoreError;
use grove_storage::copies::CopyGuard;
use grove_storage::{pastes, session_file};
use grove_work::{FileError, local_path};
use tokio::sync::oneshot;

use super::Host;
use crate::sequencer::{HostStopped, JournalScope, JournalWriteError, PublishedState};
use crate::session::{self, ForkPlan, ForkedChat, SessionSetup, SessionStart, SetupFileError, SetupKeeper};

/// The time for which a new session waits for copies out of the folder of an earlier session of its id.
const COPY_TIMEOUT: Duration = Duration::from_secs(10);

/// A client's request to create a session.
#[derive(Clone, Debug)]
pub struct CreateSession {
    pub uri: SessionUri,
    /// By default the one that the URI's scheme names.
    pub agent: Option<AgentId>,
    pub model: Option<ModelId>,
    pub working_directories: Vec<String>,
    /// Settings of the session, if it has any. [`STORE_SETTING`] among them is not the agent's.
    pub config: Option<Extra>,
    /// Its store; by default the one in its settings, else the store of new sessions.
    pub store: Option<StoreName>,
    /// The agent's configuration. An agent that cannot honour all of it is refused.
    pub setup: AgentSetup,
    /// A client that takes part from the beginning, so that the agent knows its tools.
    pub active_client: Option<ActiveClient>,
}

/// The setting by which a client chooses the store of a new session.
pub const STORE_SETTING: &str = "grove.store";

/// The working directories that a session may have: its row in every list contains them.
pub const MAX_DIRECTORIES: usize = 64;

/// The system has no randomness for an id.
#[derive(Debug, thiserror::Error)]
#[error("cannot generate an id, the system has no randomness: {0}")]
pub struct IdGenerationError(String);

/// The reason why a session was not created.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    #[error("{0} is not a session URI: it must be <scheme>:/<id>, the id of letters, digits, `.`, `_` and `-`")]
    BadUri(SessionUri),
    #[error("{0} cannot name a session: its scheme has another meaning; choose <agent>:/<id>")]
    ReservedUri(SessionUri),
    #[error("there is no agent {agent}{hint}")]
    UnknownAgent { agent: AgentId, hint: String },
    #[error("there is a session {0} already")]
    Exists(SessionUri),
    #[error(
        "the id {id} belongs to the session {by}: an id is unique on a host, whatever the agent; choose another id"
    )]
    IdTaken { id: SessionId, by: SessionUri },
    #[error("a session with the id {0} is being imported: wait for it, or choose another id")]
    BeingImported(SessionId),
    #[error("agent {agent} has no model {model}")]
    UnknownModel { agent: AgentId, model: ModelId },
    #[error("a session may have at most {0} working directories: name fewer")]
    TooManyDirectories(usize),
    #[error(transparent)]
    Setup(#[from] SetupRefusal),
    #[error("the setup of the session could not be stored: {0}")]
    SetupFile(#[from] SetupFileError),
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

/// A session that may be created: its request is valid, and nothing has changed yet.
struct CreationPlan {
    new: NewSession,
    agent: Arc<dyn Agent>,
    setup: SessionSetup,
    is_configured: bool,
    active_client: Option<ActiveClient>,
    fs: Arc<dyn SessionFs>,
    scope: JournalScope,
    at: Timestamp,
}

/// The state of a new session, and the events that lead to it after its creation.
struct InitialState {
    tip: Session,
    events: Vec<Event>,
    forked: Vec<ForkedChat>,
    /// Held until the session's own task holds it.
    _hold: Option<CopyGuard>,
}

impl Host {
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
        let uri = SessionUri::from(format!("{}:/{}", fork_plan.like.agent, self.new_id()?));
        let wanted = CreateSession {
            uri: uri.clone(),
            agent: Some(fork_plan.like.agent.clone()),
            model: fork_plan.like.model.clone(),
            working_directories: fork_plan.like.working_directories.clone(),
            config: fork_plan.like.config.as_ref().map(|config| config.values.clone()),
            store: Some(store.unwrap_or_else(|| fork_plan.like.store.clone())),
            setup: AgentSetup::clone(&fork_plan.setup),
            active_client: None,
        };
        self.create(wanted, Some((fork_plan, title))).await?;
        Ok(uri)
    }

    /// An unused id: a UUID of version 4, as clients make theirs.
    pub fn new_id(&self) -> Result<String, IdGenerationError> {
        let mut bytes = [0; 16];
        self.0.env.random.fill(&mut bytes).map_err(|error| IdGenerationError(error.to_string()))?;
        Ok(uuid::Builder::from_random_bytes(bytes).into_uuid().to_string())
    }

    async fn create(&self, wanted: CreateSession, from: Option<(ForkPlan, SessionTitle)>) -> Result<(), CreateError> {
        let plan = self.plan_session(wanted, from.as_ref().map(|(fork_plan, _)| fork_plan)).await?;
        let InitialState { tip, events, forked, _hold } = self.initial_state(&plan, from)?;
        self.require_unused_id(&plan.new.uri, &plan.new.id).await?;
        let begin = self.reserve_id(&plan, tip, forked)?;
        let is_configured = plan.is_configured;
        let CreationPlan { new, setup, fs, scope, at, .. } = plan;
        let id = new.id.clone();
        let room = match scope {
            JournalScope::AllEvents => self.make_room(&new, fs.as_ref()).await,
            JournalScope::NumbersOnly => self.begin_client_stored(fs.as_ref(), &Session::new(&new, at)).await,
        };
        // It is there before the session is: the session never runs without it.
        let room = match room {
            Ok(()) if !is_configured => Ok(()),
            Ok(()) => setup.write().await.map_err(CreateError::from),
            Err(error) => Err(error),
        };
        if let Err(error) = room {
            self.sessions().open.remove(&id);
            return Err(error);
        }
        let created = Change::Session(id.clone(), SessionEvent::Created(Box::new(new)));
        let events = std::iter::once(Event { at, change: created }).chain(events).collect();
        match self.publish_creation(events, scope).await {
            Ok(Ok(_)) => {}
            // The task that waits for its start ends without it.
            Ok(Err(not_written)) => {
                self.sessions().open.remove(&id);
                if is_configured {
                    setup.remove().await;
                }
                return Err(not_written.into());
            }
            Err(stopped) => return Err(stopped.into()),
        }
        // The task waits for this; if it is gone, so is the host.
        begin.send(()).ok();
        // Another session may have been created or removed meanwhile.
        self.publish_session_count().await?;
        Ok(())
    }

    /// Checks a request to create a session, and chooses its agent, store and settings.
    async fn plan_session(
        &self,
        mut wanted: CreateSession,
        fork_plan: Option<&ForkPlan>,
    ) -> Result<CreationPlan, CreateError> {
        let folders = &self.0.config.folders;
        wanted.working_directories =
            wanted.working_directories.into_iter().map(|folder| folders.expand(folder)).collect();
        let id = wanted.uri.id().ok_or_else(|| CreateError::BadUri(wanted.uri.clone()))?;
        if wanted.uri.is_reserved() {
            return Err(CreateError::ReservedUri(wanted.uri));
        }
        let agent_id = match wanted.agent {
            Some(agent_id) => agent_id,
            None => AgentId::from(wanted.uri.scheme().unwrap_or_default()),
        };
        let agent = self.agent_named(&agent_id).await;
        let unknown = || CreateError::UnknownAgent { agent: agent_id.clone(), hint: self.install_hint(&agent_id) };
        let agent = agent.ok_or_else(unknown)?;
        if let Some(model) = &wanted.model
            && !agent.info().has_model(model)
        {
            return Err(CreateError::UnknownModel { agent: agent_id, model: model.clone() });
        }
        let offered = wanted.active_client.iter().flat_map(|client| &client.tools).map(|tool| tool.name.as_str());
        wanted.setup.check(agent_id.as_str(), &agent.abilities(), &offered.collect::<Vec<_>>())?;
        if wanted.working_directories.len() > MAX_DIRECTORIES {
            return Err(CreateError::TooManyDirectories(MAX_DIRECTORIES));
        }
        for folder in &wanted.working_directories {
            local_path(folder)?;
        }
        let (store, settings) = self.store_for(wanted.store, wanted.config)?;
        let stores = &self.0.env.stores;
        if let Some(fork_plan) = fork_plan
            && let Some(store) =
                [&store, &fork_plan.like.store].into_iter().find(|store| stores.is_client_stored(store))
        {
            return Err(StoreError::OfStorageClient(store.clone()).into());
        }
        let fs = stores.reach(&store).await?;
        let scope = if stores.is_client_stored(&store) { JournalScope::NumbersOnly } else { JournalScope::AllEvents };
        let mut working_directories = wanted.working_directories;
        if working_directories.is_empty() {
            // Only a storage client knows the folder of a session that names none.
            working_directories.extend(fs.initial_cwd().filter(|_| scope == JournalScope::NumbersOnly));
        }
        let config = match (agent.settings(), settings) {
            (Some(mut known), chosen) => {
                // An agent reports its settings only when it runs, so the chosen values are kept until then.
                known.values.extend(chosen.unwrap_or_default());
                Some(known)
            }
            (None, chosen) => chosen.map(SessionConfig::of),
        };
        let (uri, model) = (wanted.uri, wanted.model);
        let is_configured = !wanted.setup.is_empty();
        let keeper = SetupKeeper::of(stores, &store);
        let setup = SessionSetup::stored(fs.clone(), id.clone(), keeper).with(Arc::new(wanted.setup));
        let new = NewSession { id, uri, agent: agent_id, model, working_directories, config, store };
        Ok(CreationPlan {
            new,
            agent,
            setup,
            is_configured,
            active_client: wanted.active_client,
            fs,
            scope,
            at: self.0.env.clock.now(),
        })
    }

    /// The state of a new session before its agent starts: empty, or with the turns of its fork origin.
    fn initial_state(
        &self,
        plan: &CreationPlan,
        from: Option<(ForkPlan, SessionTitle)>,
    ) -> Result<InitialState, CreateError> {
        let CreationPlan { new, active_client, fs, at, .. } = plan;
        let (id, at) = (&new.id, *at);
        let mut tip = Session::new(new, at);
        let (mut changes, mut forked, mut hold) = (Vec::new(), Vec::new(), None);
        let takes_part =
            |client: &ActiveClient| Change::Session(id.clone(), SessionEvent::ActiveClientSet(client.clone()));
        changes.extend(active_client.iter().map(takes_part));
        if let Some((fork_plan, title)) = from {
            let source = self.0.env.stores.get(&fork_plan.like.store)?;
            let moved = pastes::moved((source.as_ref(), &fork_plan.like.id), (fs.as_ref(), id));
            for mut chat in fork_plan.chats {
                if chat.chat.as_str() != Session::MAIN_CHAT {
                    chat.chat = ChatId::from(self.new_id()?);
                }
                changes.extend(chat.changes(id, at, &moved));
                forked.push(chat);
            }
            hold = Some(fork_plan._hold);
            changes.push(Change::Session(id.clone(), SessionEvent::TitleChanged(title)));
        }
        let mut events: Vec<Event> = changes.into_iter().map(|change| Event { at, change }).collect();
        events.iter().for_each(|event| tip.apply(event));
        for due in mirror::pending_events(&tip) {
            let event = Event { at, change: Change::Session(id.clone(), due) };
            tip.apply(&event);
            events.push(event);
        }
        Ok(InitialState { tip, events, forked, _hold: hold })
    }

    /// Reserves the id of a new session by its task, which waits for the returned signal.
    ///
    /// The id is reserved before anything else happens, so that of two creations one fails. The task starts after the
    /// event is published, so that it is the session's first.
    fn reserve_id(
        &self,
        plan: &CreationPlan,
        tip: Session,
        forked: Vec<ForkedChat>,
    ) -> Result<oneshot::Sender<()>, CreateError> {
        let (begin, begun) = oneshot::channel();
        let CreationPlan { new, agent, setup, fs, .. } = plan;
        let mut sessions = self.sessions();
        if sessions.stopping {
            return Err(HostStopped.into());
        }
        if let Some(open) = sessions.open.get(&new.id) {
            return Err(taken(&new.uri, new.id.clone(), open.uri.clone()));
        }
        if self.0.imports.has(&new.id) {
            return Err(CreateError::BeingImported(new.id.clone()));
        }
        let beginning = SessionStart::New { begun, forked, setup: setup.clone() };
        let context = self.new_session_context(&new.id, &mut sessions);
        let handle = session::start(tip, fs.clone(), agent.clone(), context, beginning);
        sessions.open.insert(new.id.clone(), handle);
        Ok(begin)
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

    /// Refuses a new session whose id is in use. Folders, plain URIs and chats are named by the id alone.
    pub(crate) async fn require_unused_id(&self, uri: &SessionUri, id: &SessionId) -> Result<(), CreateError> {
        let open = self.open_session(id).map(|open| open.uri);
        let by = match open {
            Some(by) => Some(by),
            None => self.uri_of(id),
        };
        match by {
            Some(by) => Err(taken(uri, id.clone(), by)),
            None => Ok(()),
        }
    }

    /// Says whether a session has this id, under any URI.
    pub(crate) fn id_is_taken(&self, id: &SessionId) -> bool {
        self.uri_of(id).is_some()
    }

    /// The URI of the session with this id.
    fn uri_of(&self, id: &SessionId) -> Option<SessionUri> {
        let look = |published: &PublishedState| {
            let evicted = || published.evicted.get(id).map(|evicted| &evicted.session);
            published.state.sessions.get(id).or_else(evicted).map(|session| session.uri.clone())
        };
        self.0.sequencer.read(look)
    }

    /// Prepares a session's folder, after copies out of an earlier one of the same id have ended.
    pub(crate) async fn make_room(&self, new: &NewSession, fs: &dyn SessionFs) -> Result<(), CreateError> {
        tokio::select! {
            () = self.0.copies.none_from(&new.id) => {}
            () = self.0.env.clock.sleep(COPY_TIMEOUT) => return Err(CreateError::BeingCopied(new.uri.clone())),
        }
        Ok(session_file::make_room(fs, &new.id).await?)
    }
}

/// The reason why a new session cannot have its URI.
fn taken(uri: &SessionUri, id: SessionId, by: SessionUri) -> CreateError {
    if by == *uri { CreateError::Exists(by) } else { CreateError::IdTaken { id, by } }
}
