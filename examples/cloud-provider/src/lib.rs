//! How a cloud's tasks become sessions in Grove, in a crate of one's own: nothing of Grove is changed for it.
//!
//! [`cloud`] stands for the service; yours has a network in it. [`CloudProvider`] is all that it takes:
//!
//! - It answers from memory. A table of [`SessionSource`]s is kept under one lock, and every change is told while the lock is
//!   held, so what happened first is told first.
//! - It says where a session works by [`Metadata::cloud`]: `owner` and `name` give the heading in a list, the workspace and
//!   what GitHub knows; a pull request is one key more.
//! - A new session is not listed. Its first message starts the task, under a name that is drawn *here*: what the cloud tells
//!   of the task is this session's, even before `start` has answered, so there is never a second row. A cloud that draws
//!   names itself needs [`Announcer::replaced`].
//! - [`CloudProvider::run`] follows the cloud's list and tells what differs.
//!
//! Whatever a cloud cannot do is left out: the trait refuses it with the provider's label. `tests/plug_in.rs` registers the
//! provider while a management runs, sends, watches the task end, and takes the provider out again.

#![forbid(unsafe_code)]

pub mod cloud;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use grove_core::Timestamp;
use grove_sessions::provider::{
    Announcer, Environment, ProviderError, ProviderEvent, SendOptions, SessionType, SessionsChange, SessionsProvider,
};
use grove_sessions::session::{
    ChatState, GitHubInfo, SessionCapabilities, SessionState, SessionStatus, Workspace, first_title,
};
use grove_sessions::{BadId, Icon, Metadata, ProviderId, Session, SessionId, SessionIdentity, SessionSource, Uri};
use tokio::sync::broadcast;

use crate::cloud::{Cloud, Progress, Task, Tasks};

/// How many new sessions may wait for their first message.
const MAX_DRAFTS: usize = 100;

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
    drafts: HashMap<String, SessionSource>,
}

impl CloudProvider {
    pub fn new(cloud: Arc<Cloud>) -> Result<Self, BadId> {
        let id = ProviderId::new("example-cloud")?;
        Ok(Self { id, cloud, announcer: Announcer::default(), table: Mutex::default(), drawn: AtomicU64::new(1) })
    }

    /// Follows the cloud. The caller spawns it, and ends it when the provider is taken out.
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

    /// Makes the list what the cloud has. A new session that was sent becomes a row; what somebody else began is new here.
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
            let sent = table.drafts.remove(name).map_or_else(|| self.source(name, &task.repository), Ok);
            let Ok(row) = sent else { continue };
            row.update(|state| put(state, task));
            change.added.push(row.session());
            table.rows.insert(name.clone(), row);
        }
        self.announcer.sessions(change);
    }

    /// A session in which nothing was said.
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
        };
        Ok(SessionSource::new(identity, state))
    }
}

/// Puts what the cloud says of a task into a session.
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

    fn environment(&self) -> Environment {
        Environment::Cloud
    }

    fn session_types(&self) -> Vec<SessionType> {
        vec![SessionType { id: "cloud-agent".into(), label: "Cloud agent".into(), icon: "cloud".into() }]
    }

    fn subscribe(&self) -> broadcast::Receiver<ProviderEvent> {
        self.announcer.subscribe()
    }

    fn sessions(&self) -> Vec<Session> {
        self.table().rows.values().map(SessionSource::session).collect()
    }

    async fn resolve_workspace(&self, uri: &Uri) -> Result<Option<Workspace>, ProviderError> {
        let info = GitHubInfo::from_address(uri.as_str()).filter(|info| self.cloud.has(&info.owner, &info.repo));
        Ok(info.and_then(|info| Metadata::cloud(&*info.owner, &*info.repo).workspace(None)))
    }

    async fn create_new_session(&self, workspace: &Workspace) -> Result<Session, ProviderError> {
        let identity = workspace.repositories.first().and_then(|repository| repository.identity.as_deref());
        let repository = identity.and_then(|identity| identity.strip_prefix("github.com/")?.split_once('/'));
        let Some((owner, name)) = repository.filter(|(owner, name)| self.cloud.has(owner, name)) else {
            return Err(ProviderError::Refused("the cloud does not have that repository: connect it there".to_owned()));
        };
        let task = format!("task-{}-{}", now().0, self.drawn.fetch_add(1, Ordering::Relaxed));
        let draft = self.source(&task, &(owner.to_owned(), name.to_owned()))?;
        let (session, mut table) = (draft.session(), self.table());
        if table.drafts.len() >= MAX_DRAFTS {
            return Err(ProviderError::Refused(format!("{MAX_DRAFTS} new sessions wait: drop some of them")));
        }
        table.drafts.insert(task, draft);
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
        let draft = self.table().drafts.get(id.local()).map(SessionSource::session);
        let draft = draft.ok_or_else(|| self.unsupported("begin further chats"))?;
        let info = draft.github_info().ok_or_else(|| ProviderError::UnknownSession(id.clone()))?;
        let repository = (info.owner.to_string(), info.repo.to_string());
        let task = Task { repository, prompt: options.query, progress: Progress::Queued };
        // Where the cloud refuses, it stays a new session: what was typed is not lost.
        let refused = |error: cloud::Full| ProviderError::Refused(error.to_string());
        self.cloud.start(id.local(), task).await.map_err(refused)?;
        self.take(&self.cloud.tasks().borrow());
        Ok(draft)
    }
}
