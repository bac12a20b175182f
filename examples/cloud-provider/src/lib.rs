//! A cloud's tasks as sessions in Grove, in a separate crate: nothing in Grove is changed for it.
//!
//! [`cloud`] stands for the service; a real one uses a network. [`CloudProvider`] is the whole integration:
//!
//! - It answers from memory. A table of [`SessionSource`]s is kept under one lock, and every change is announced while
//!   the lock is held, so changes are announced in their order.
//! - It describes a session's workspace with [`Metadata::cloud`]: `owner` and `name` determine the heading in a list,
//!   the workspace and the GitHub context; a pull request is one more key.
//! - It offers its repositories as a browse action, so that a new session can be created in one.
//! - A new session is not listed. Its first message lists it and starts the task, which the cloud names: the session of
//!   that name replaces the new one ([`Announcer::replaced`]). The task carries its local name, so it is recognized
//!   even if the cloud's list contains it before `start` has answered, and there is never a second row.
//! - [`CloudProvider::run`] follows the cloud's list and announces the differences.
//!
//! Operations that a cloud does not support are left out: the trait refuses them with the provider's label.
//!
//! `examples/serve.rs` is a host with the cloud in it, registered in the session hub
//! (`grove_session_hub::SessionHub::registry`). `tests/running.rs` does the same over the wire while clients are connected;
//! `tests/plug_in.rs` needs no host.

#![forbid(unsafe_code)]

pub mod cloud;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use grove_core::Timestamp;
use grove_sessions::provider::{
    Announcer, BrowseAction, BrowseOffer, BrowseOutcome, BrowseRequest, ProviderEnvironment, ProviderError,
    ProviderEvent, SendOptions, SessionType, SessionsChange, SessionsProvider,
};
use grove_sessions::session::{
    ChatState, GitHubInfo, SessionCapabilities, SessionState, SessionStatus, SessionWorkspace, first_title,
};
use grove_sessions::{BadId, Icon, Metadata, ProviderId, Session, SessionId, SessionIdentity, SessionSource, Uri};
use tokio::sync::broadcast;

use crate::cloud::{Cloud, Progress, Task, Tasks};

/// The maximum number of new sessions without a first message.
const MAX_DRAFTS: usize = 100;
/// The browse action.
const REPOSITORIES: &str = "repositories";

/// The tasks of an account in the cloud, as sessions.
#[derive(Debug)]
pub struct CloudProvider {
    id: ProviderId,
    cloud: Arc<Cloud>,
    announcer: Announcer,
    table: Mutex<Table>,
    drawn: AtomicU64,
}

#[derive(Debug, Default)]
struct Table {
    /// By the name of the task, which is the local part of the session's id.
    rows: HashMap<String, SessionSource>,
    /// New sessions, by locally generated names. They are not listed.
    drafts: HashMap<String, SessionSource>,
    /// Sessions whose first message is being sent, with their earlier state. They are listed.
    sending: HashMap<String, (SessionSource, SessionState)>,
}

/// A first message that is being sent.
///
/// If it fails for any reason, the session is a draft again, and its text is not lost.
struct Sending<'a> {
    provider: &'a CloudProvider,
    draft: &'a str,
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        let mut table = self.provider.table();
        // The cloud's session may have replaced it already.
        let Some((draft, before)) = table.sending.remove(self.draft) else { return };
        draft.update(|state| *state = before);
        let session = draft.session();
        table.drafts.insert(self.draft.to_owned(), draft);
        self.provider.announcer.sessions(SessionsChange::removed([session]));
    }
}

impl CloudProvider {
    pub fn new(cloud: Arc<Cloud>) -> Result<Self, BadId> {
        let id = ProviderId::new("example-cloud")?;
        Ok(Self { id, cloud, announcer: Announcer::default(), table: Mutex::default(), drawn: AtomicU64::new(1) })
    }

    /// Follows the cloud. The caller spawns it, and ends it when the provider is unregistered.
    pub async fn run(self: Arc<Self>) {
        let mut tasks = self.cloud.tasks();
        loop {
            self.take(&tasks.borrow_and_update());
            if tasks.changed().await.is_err() {
                return;
            }
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the list from the cloud's tasks.
    ///
    /// A task that was started here replaces its new session; a task of another client is added.
    fn take(&self, tasks: &Tasks) {
        let mut table = self.table();
        let mut change = SessionsChange::default();
        let gone: Vec<String> = table.rows.keys().filter(|name| !tasks.contains_key(*name)).cloned().collect();
        change.removed = gone.iter().filter_map(|name| table.rows.remove(name)).map(|row| row.session()).collect();
        for (name, task) in tasks {
            if let Some(row) = table.rows.get(name) {
                if row.update(|state| put(state, task)) {
                    change.changed.push(row.session());
                }
                continue;
            }
            let Ok(row) = self.source(name, &task.repository) else { continue };
            row.update(|state| put(state, task));
            let session = row.session();
            table.rows.insert(name.clone(), row);
            match task.reference.as_ref().and_then(|draft| table.sending.remove(draft)) {
                Some((draft, _)) => self.announcer.replaced(draft.session(), session),
                None => change.added.push(session),
            }
        }
        self.announcer.sessions(change);
    }

    /// Lists a new session whose first message is sent now. Returns the task to start.
    fn begin_sending<'a>(&'a self, id: &'a SessionId, prompt: String) -> Result<(Task, Sending<'a>), ProviderError> {
        let mut table = self.table();
        let session = table.drafts.get(id.local()).map(SessionSource::session);
        let session = session.ok_or_else(|| self.unsupported("begin further chats"))?;
        let repository = session.github_info().map(|info| (info.owner.to_string(), info.repo.to_string()));
        let found = repository.zip(table.drafts.remove_entry(id.local()));
        let (repository, (name, draft)) = found.ok_or_else(|| ProviderError::UnknownSession(id.clone()))?;
        let before = SessionState::clone(&session.state());
        let task = Task { repository, prompt, reference: Some(name.clone()), progress: Progress::Queued };
        draft.update(|state| put(state, &task));
        table.sending.insert(name, (draft, before));
        self.announcer.sessions(SessionsChange::added([session]));
        Ok((task, Sending { provider: self, draft: id.local() }))
    }

    /// An empty session.
    fn source(&self, name: &str, repository: &(String, String)) -> Result<SessionSource, ProviderError> {
        let failed = |error| ProviderError::Failed { what: "naming the session", source: Box::new(error) };
        let (resource, created_at) = (Uri::from(format!("example-cloud:/{name}")), now());
        let id = self.id.session(name).map_err(failed)?;
        let identity = SessionIdentity { id, resource: resource.clone(), provider_id: self.id.clone(), created_at };
        let metadata = Metadata::cloud(&repository.0, &repository.1);
        let mut main_chat = ChatState::untitled(resource, created_at);
        main_chat.github_info = metadata.github_info().map(Arc::new);
        let state = SessionState {
            session_type: "cloud-agent".into(),
            icon: "cloud".into(),
            workspace: metadata.workspace(None).map(Arc::new),
            metadata: Arc::new(metadata),
            capabilities: SessionCapabilities { supports_delete: true, ..SessionCapabilities::default() },
            main_chat: Arc::new(main_chat),
            more_chats: Vec::new(),
            waiting: Arc::default(),
        };
        Ok(SessionSource::new(identity, state))
    }
}

/// Applies the cloud's state of a task to a session.
fn put(state: &mut SessionState, task: &Task) {
    let before = state.main_chat.clone();
    let chat = Arc::make_mut(&mut state.main_chat);
    chat.title = first_title(&task.prompt).into();
    (chat.status, chat.loading, chat.description) = match &task.progress {
        Progress::Queued => (SessionStatus::InProgress, true, None),
        Progress::Running { doing } => (SessionStatus::InProgress, false, Some((*doing).into())),
        Progress::Done { .. } => (SessionStatus::Completed, false, None),
    };
    if let Progress::Done { pull_request } = &task.progress {
        let (owner, name) = &task.repository;
        let address = format!("https://github.com/{owner}/{name}/pull/{pull_request}");
        let metadata = Metadata::cloud(owner, name).with("pullRequestUrl", address);
        chat.github_info = metadata.github_info().map(Arc::new);
        chat.last_turn_end = before.last_turn_end.or_else(|| Some(now()));
        state.metadata = Arc::new(metadata);
    }
    if *chat != *before {
        chat.updated_at = now();
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[async_trait]
impl SessionsProvider for CloudProvider {
    fn id(&self) -> &ProviderId {
        &self.id
    }

    fn label(&self) -> Arc<str> {
        "Example Cloud".into()
    }

    fn icon(&self) -> Icon {
        "cloud".into()
    }

    fn environment(&self) -> ProviderEnvironment {
        ProviderEnvironment::Cloud
    }

    fn session_types(&self) -> Vec<SessionType> {
        vec![SessionType { id: "cloud-agent".into(), label: "Cloud agent".into(), icon: "cloud".into() }]
    }

    fn subscribe(&self) -> broadcast::Receiver<ProviderEvent> {
        self.announcer.subscribe()
    }

    fn sessions(&self) -> Vec<Session> {
        let table = self.table();
        let sending = table.sending.values().map(|(draft, _)| draft);
        table.rows.values().chain(sending).map(SessionSource::session).collect()
    }

    fn browse_actions(&self) -> Vec<BrowseAction> {
        let (label, icon) = ("Repositories".into(), "repo".into());
        vec![BrowseAction { id: REPOSITORIES.into(), label, icon, provider_id: self.id.clone() }]
    }

    async fn browse(&self, request: &BrowseRequest) -> Result<BrowseOutcome, ProviderError> {
        if request.action.as_str() != REPOSITORIES {
            return Ok(BrowseOutcome::Nothing);
        }
        if let Some(chosen) = &request.chosen {
            return Ok(self.resolve_workspace(chosen).await?.map_or(BrowseOutcome::Nothing, BrowseOutcome::Chosen));
        }
        let typed = request.query.as_deref().unwrap_or_default();
        let offer = |(owner, name): &(String, String)| BrowseOffer {
            uri: format!("https://github.com/{owner}/{name}").into(),
            label: format!("{owner}/{name}").into(),
            description: None,
        };
        let offers = self.cloud.repositories().iter().map(offer).filter(|offer| offer.label.contains(typed));
        Ok(BrowseOutcome::Offered(offers.collect()))
    }

    async fn resolve_workspace(&self, uri: &Uri) -> Result<Option<SessionWorkspace>, ProviderError> {
        let info = GitHubInfo::from_address(uri.as_str()).filter(|info| self.cloud.has(&info.owner, &info.repo));
        Ok(info.and_then(|info| Metadata::cloud(&*info.owner, &*info.repo).workspace(None)))
    }

    async fn create_new_session(&self, workspace: &SessionWorkspace) -> Result<Session, ProviderError> {
        let identity = workspace.repositories.first().and_then(|repository| repository.identity.as_deref());
        let repository = identity.and_then(|identity| identity.strip_prefix("github.com/")?.split_once('/'));
        let Some((owner, name)) = repository.filter(|(owner, name)| self.cloud.has(owner, name)) else {
            return Err(ProviderError::Refused("the cloud does not have that repository: connect it there".to_owned()));
        };
        let drawn = format!("new-{}-{}", now().0, self.drawn.fetch_add(1, Ordering::Relaxed));
        let draft = self.source(&drawn, &(owner.to_owned(), name.to_owned()))?;
        let (session, mut table) = (draft.session(), self.table());
        if table.drafts.len() + table.sending.len() >= MAX_DRAFTS {
            return Err(ProviderError::Refused(format!(
                "{MAX_DRAFTS} new sessions have no message yet: delete some of them"
            )));
        }
        table.drafts.insert(drawn, draft);
        Ok(session)
    }

    async fn delete_new_session(&self, session: &SessionId) -> Result<(), ProviderError> {
        self.table().drafts.remove(session.local());
        Ok(())
    }

    async fn delete_session(&self, session: &SessionId) -> Result<(), ProviderError> {
        self.cloud.delete(session.local());
        self.take(&self.cloud.tasks().borrow());
        Ok(())
    }

    async fn send_and_create_chat(&self, id: &SessionId, options: SendOptions) -> Result<Session, ProviderError> {
        let (task, sending) = self.begin_sending(id, options.query)?;
        let refused = |error: cloud::Full| ProviderError::Refused(error.to_string());
        let name = self.cloud.start(task).await.map_err(refused)?;
        self.take(&self.cloud.tasks().borrow());
        drop(sending);
        let sent = self.table().rows.get(&name).map(SessionSource::session);
        sent.ok_or_else(|| ProviderError::UnknownSession(id.clone()))
    }
}
