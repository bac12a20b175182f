//! Sessions of other tools on this machine: one provider for each tool, over the catalog of found sessions.
//!
//! These sessions do not run. They are listed and can be read; every change is refused with the advice to continue the
//! session on a host first. The catalog describes a session without opening it. The files that it changed are read only
//! if the session's file differs from before.
//!
//! A catalog sends no events. The scanner signals changes through a channel, and the [`HistoryDriver`] lists again and
//! announces the differences.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use grove_history::catalog::{Catalog, CatalogEntry, CatalogError, CatalogFilter, MAX_PAGE};
use grove_history::{ChangeOperation, FileMark, SessionChanges};
use grove_transcript::{TranscriptSource, TranscriptState as ForeignState};
use indexmap::IndexMap;
use tokio::sync::{broadcast, watch};

use crate::ids::{BadId, Icon, ProviderId, SessionTypeId, Uri};
use crate::metadata::{
    Metadata, REMOTE_AGENT_HOST, REPOSITORY_NWO, REPOSITORY_PATH, REPOSITORY_URL, WORKTREE_PATH, file_uri,
};
use crate::provider::{
    Announcer, Availability, ProviderEnvironment, ProviderError, ProviderEvent, SessionType, SessionsChange,
    SessionsProvider,
};
use crate::session::{
    self, ChatState, FileOperation, Interactivity, Session, SessionCapabilities, SessionIdentity, SessionSource,
    SessionState, SessionStatus, SessionWorkspace,
};

/// The most sessions of a tool that are shown: those that changed last. Older ones are left out.
pub const MAX_SESSIONS: usize = 50_000;

/// The sessions of one tool.
#[derive(Debug)]
pub struct HistoryProvider {
    id: ProviderId,
    source: TranscriptSource,
    catalog: Arc<Catalog>,
    announcer: Announcer,
    listed: Mutex<HistoryList>,
}

#[derive(Debug)]
struct HistoryList {
    /// By the catalog's name.
    rows: IndexMap<String, HistoryRow>,
    availability: Availability,
}

#[derive(Debug)]
struct HistoryRow {
    source: SessionSource,
    /// The session's file as it was when its changes were read.
    mark: FileMark,
}

/// A session of the catalog, with its changed files.
struct CatalogSession {
    entry: CatalogEntry,
    changes: Arc<[session::ChatFileChange]>,
}

impl HistoryProvider {
    /// A provider for each tool, over one catalog. They are empty until they are [refreshed](Self::refresh).
    pub fn of_all_tools(catalog: &Arc<Catalog>) -> Result<Vec<Arc<Self>>, BadId> {
        let all = [
            TranscriptSource::VsCode,
            TranscriptSource::CopilotCli,
            TranscriptSource::Claude,
            TranscriptSource::Codex,
            TranscriptSource::Pi,
            TranscriptSource::Gemini,
            TranscriptSource::OpenCode,
        ];
        all.into_iter().map(|source| Self::new(source, catalog.clone()).map(Arc::new)).collect()
    }

    /// The provider of a tool.
    pub fn new(source: TranscriptSource, catalog: Arc<Catalog>) -> Result<Self, BadId> {
        Ok(Self {
            id: ProviderId::new(format!("history-{}", source.name()))?,
            source,
            catalog,
            announcer: Announcer::default(),
            listed: Mutex::new(HistoryList { rows: IndexMap::new(), availability: Availability::Ready }),
        })
    }

    /// Lists the catalog again and announces the differences. It reads from the disk. If the catalog cannot be read,
    /// the list stays as it was.
    pub fn refresh(&self) -> Result<(), CatalogError> {
        let found = self.found();
        let mut listed = self.listed();
        let availability = match &found {
            Ok(_) => Availability::Ready,
            Err(error) => Availability::Away { reason: error.to_string().into() },
        };
        if listed.availability != availability {
            listed.availability = availability;
            self.announcer.availability();
        }
        self.take(&mut listed.rows, found?);
        Ok(())
    }

    fn found(&self) -> Result<Vec<CatalogSession>, CatalogError> {
        let filter = CatalogFilter { source: Some(self.source.name().to_owned()), ..CatalogFilter::default() };
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = self.catalog.list(&filter, after.as_ref(), MAX_PAGE)?;
            self.add_changes(page.entries, &mut found)?;
            after = page.next;
            if after.is_none() || found.len() >= MAX_SESSIONS {
                found.truncate(MAX_SESSIONS);
                return Ok(found);
            }
        }
    }

    /// Adds the changed files to sessions. Those of unchanged session files are known.
    fn add_changes(&self, entries: Vec<CatalogEntry>, found: &mut Vec<CatalogSession>) -> Result<(), CatalogError> {
        let known: Vec<Option<Arc<[session::ChatFileChange]>>> = {
            let listed = self.listed();
            let known = |entry: &CatalogEntry| listed.rows.get(&entry.id).filter(|row| row.mark == entry.mark);
            entries.iter().map(|entry| known(entry).map(|row| row.source.session().changes())).collect()
        };
        let unknown = entries.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(entry, _)| entry);
        let mut new_changes = self.catalog.changes(unknown)?.into_iter();
        for (entry, known) in entries.into_iter().zip(known) {
            let changes = known.unwrap_or_else(|| new_changes.next().map(changes).unwrap_or_default());
            found.push(CatalogSession { entry, changes });
        }
        Ok(())
    }

    fn take(&self, rows: &mut IndexMap<String, HistoryRow>, found: Vec<CatalogSession>) {
        let mut change = SessionsChange::default();
        let mut now = IndexMap::with_capacity(found.len());
        for CatalogSession { entry, changes } in found {
            let resource = resource(&entry);
            let state = state(&entry, &resource, changes);
            let source = match rows.swap_remove(&entry.id) {
                Some(HistoryRow { source, .. }) => {
                    if source.update(|shown| *shown = state) {
                        change.changed.push(source.session());
                    }
                    source
                }
                None => {
                    let Ok(id) = self.id.session(&entry.id) else { continue };
                    let created_at = entry.session.created_at.unwrap_or_else(|| entry.modified_at());
                    let identity = SessionIdentity { id, resource, provider_id: self.id.clone(), created_at };
                    let source = SessionSource::new(identity, state);
                    change.added.push(source.session());
                    source
                }
            };
            now.insert(entry.id, HistoryRow { source, mark: entry.mark });
        }
        change.removed = rows.drain(..).map(|(_, row)| row.source.session()).collect();
        *rows = now;
        self.announcer.sessions(change);
    }

    fn listed(&self) -> MutexGuard<'_, HistoryList> {
        // Nothing under the lock leaves it half changed.
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl SessionsProvider for HistoryProvider {
    fn id(&self) -> &ProviderId {
        &self.id
    }

    fn label(&self) -> Arc<str> {
        match self.source {
            TranscriptSource::VsCode => "VS Code",
            TranscriptSource::CopilotCli => "Copilot CLI",
            TranscriptSource::Claude => "Claude Code",
            TranscriptSource::Codex => "Codex",
            TranscriptSource::Pi => "pi",
            TranscriptSource::Gemini => "Gemini CLI",
            TranscriptSource::OpenCode => "OpenCode",
        }
        .into()
    }

    fn icon(&self) -> Icon {
        Icon::from("history")
    }

    /// Running sessions come before history.
    fn order(&self) -> i32 {
        10
    }

    fn environment(&self) -> ProviderEnvironment {
        ProviderEnvironment::History
    }

    fn availability(&self) -> Availability {
        self.listed().availability.clone()
    }

    /// No session can be created here.
    fn session_types(&self) -> Vec<SessionType> {
        Vec::new()
    }

    fn subscribe(&self) -> broadcast::Receiver<ProviderEvent> {
        self.announcer.subscribe()
    }

    fn sessions(&self) -> Vec<Session> {
        self.listed().rows.values().map(|row| row.source.session()).collect()
    }

    async fn resolve_workspace(&self, _uri: &Uri) -> Result<Option<SessionWorkspace>, ProviderError> {
        Ok(None)
    }

    fn unsupported(&self, what: &'static str) -> ProviderError {
        let provider = format!("{} (its sessions are read-only here: continue it first, on a host)", self.label());
        ProviderError::Unsupported { provider, what }
    }
}

/// Keeps providers in step with their catalog: the caller spawns [`HistoryDriver::run`].
#[derive(Debug)]
#[must_use = "providers list nothing unless it runs"]
pub struct HistoryDriver {
    /// The providers of one catalog.
    pub providers: Vec<Arc<HistoryProvider>>,
    /// Signals changes of the catalog: the scanner sends after each scan, and during long ones now and then.
    pub changed: watch::Receiver<u64>,
}

impl HistoryDriver {
    /// Lists at once, and again after each change, until the channel is closed.
    pub async fn run(mut self) {
        loop {
            self.changed.mark_unchanged();
            let providers = self.providers.clone();
            let refreshed = tokio::task::spawn_blocking(move || {
                for provider in providers {
                    if let Err(error) = provider.refresh() {
                        tracing::warn!(provider = %provider.id, %error, "cannot list the sessions of another tool");
                    }
                }
            });
            // An error means that the program ends.
            if refreshed.await.is_err() || self.changed.changed().await.is_err() {
                return;
            }
        }
    }
}

/// The URI under which a host shows the session, too.
fn resource(entry: &CatalogEntry) -> Uri {
    Uri::from(format!("{}:/{}", entry.source().name(), entry.id))
}

fn state(entry: &CatalogEntry, resource: &Uri, changes: Arc<[session::ChatFileChange]>) -> SessionState {
    let metadata = metadata(entry);
    let created_at = entry.session.created_at.unwrap_or_else(|| entry.modified_at());
    let main_chat = ChatState {
        title: entry.title().into(),
        updated_at: entry.modified_at(),
        status: match entry.session.state {
            ForeignState::Failed => SessionStatus::Error,
            ForeignState::Empty
            | ForeignState::Complete
            | ForeignState::Cancelled
            // Nobody waits for the rest of it any more.
            | ForeignState::Interrupted => SessionStatus::Completed,
        },
        model_id: entry.session.models.last().map(|model| model.as_str().into()),
        last_turn_end: entry.session.modified_at.filter(|_| entry.session.turns > 0),
        github_info: metadata.github_info().map(Arc::new),
        changes,
        interactivity: Interactivity::ReadOnly,
        ..ChatState::untitled(resource.clone(), created_at)
    };
    SessionState {
        session_type: SessionTypeId::from(entry.source().name()),
        icon: Icon::from("history"),
        workspace: metadata.workspace(None).map(Arc::new),
        metadata: Arc::new(metadata),
        capabilities: SessionCapabilities::default(),
        main_chat: Arc::new(main_chat),
        more_chats: Vec::new(),
        waiting: Arc::default(),
    }
}

/// The tool's metadata of the session's origin.
fn metadata(entry: &CatalogEntry) -> Metadata {
    let workspace = &entry.session.workspace;
    let place = workspace.folders.first();
    let folder = entry.folder.as_deref().or_else(|| place?.path.as_deref());
    let mut metadata = folder.map(Metadata::local).unwrap_or_default();
    if let Some(host) = place.and_then(|place| place.host.as_deref()) {
        metadata = metadata.with(REMOTE_AGENT_HOST, host);
    }
    if let Some(repository) = workspace.repository.as_deref().or(entry.repository.as_deref()) {
        let is_address = repository.contains("://") || repository.contains(':');
        metadata = metadata.with(if is_address { REPOSITORY_URL } else { REPOSITORY_NWO }, repository);
    }
    if let Some(worktree) = workspace.worktree.as_ref().filter(|_| place.is_none_or(|place| place.host.is_none())) {
        metadata = metadata.with(WORKTREE_PATH, &worktree.folder);
        if let Some(repository) = &worktree.repository {
            metadata = metadata.with(REPOSITORY_PATH, repository);
        }
    }
    let more = [
        ("branch", &workspace.branch),
        ("baseBranchName", &workspace.base_branch),
        ("pullRequestUrl", &workspace.pull_request),
    ];
    for (key, value) in more {
        if let Some(value) = value {
            metadata = metadata.with(key, value);
        }
    }
    metadata
}

/// The files that a session changed. Their earlier content is not available: the tool keeps no copy with a URI.
fn changes(changes: SessionChanges) -> Arc<[session::ChatFileChange]> {
    let change = |(path, change): (String, grove_history::FileChangeSummary)| session::ChatFileChange {
        uri: match change.uri {
            Some(uri) => Uri::from(uri),
            None if is_path(&path) => file_uri(&path),
            // A URI, or a path below an unknown folder.
            None => Uri::from(path),
        },
        original_uri: None,
        operation: match change.operation {
            ChangeOperation::Created => FileOperation::Created,
            ChangeOperation::Modified => FileOperation::Modified,
            ChangeOperation::Deleted => FileOperation::Deleted,
        },
        insertions: change.insertions,
        deletions: change.deletions,
    };
    changes.files.into_iter().map(change).collect()
}

/// Returns whether a path begins with a root or a drive.
fn is_path(path: &str) -> bool {
    path.starts_with(['/', '\\']) || path.get(1..2) == Some(":")
}
