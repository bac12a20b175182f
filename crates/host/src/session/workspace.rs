//! The workspace of a session: its manifest, plan, files and checkpoints.
//!
//! Clients' requests are handled outside the session's task, one after another ([`request_queue`]): a slow store holds
//! up only them. The task itself writes the manifest and lists checkpoints, and publishes changes. So each file has one
//! writer.

mod checkpoints;
mod manifest;
pub(crate) mod request_queue;

use grove_core::*;
use grove_fs::workspace::database::DatabaseError;
use grove_fs::workspace::{Checkpoint, FilesFolder, FolderListing, Manifest, Todo, WorkspaceError};
use grove_fs::{FsError, SessionFs};
use grove_storage::paths;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use self::request_queue::{QueuedRequest, WorkspaceJob};
use super::checkout::CheckoutScan;
use super::persistence::ManifestUpdate;
use super::spills::SessionSpills;
use super::{Outbox, SessionTask};
use crate::sequencer::HostStopped;

pub(crate) use checkpoints::scan_workspace;
use manifest::ManifestState;
pub(super) use manifest::{ManifestFacts, put as put_manifest};

/// A request to a session's workspace.
#[derive(Clone, Debug)]
pub enum WorkspaceRequest {
    Manifest,
    Plan,
    /// Writes the plan, or deletes it.
    SetPlan(Option<String>),
    Files(FilesFolder),
    ReadFile {
        folder: FilesFolder,
        name: String,
        offset: u64,
        length: usize,
    },
    WriteFile {
        folder: FilesFolder,
        name: String,
        bytes: Vec<u8>,
    },
    RemoveFile {
        folder: FilesFolder,
        name: String,
    },
    Checkpoints,
    Checkpoint(u32),
    Todos,
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub enum WorkspaceAnswer {
    Manifest {
        manifest: Box<Manifest>,
        /// The session's folder, as its store spells it.
        path: String,
    },
    Plan(Option<String>),
    Files(FolderListing),
    File {
        bytes: Vec<u8>,
        more: bool,
    },
    Written {
        size: u64,
    },
    /// Says whether the plan changed, or a file existed.
    Changed(bool),
    Checkpoints(Vec<Checkpoint>),
    Checkpoint(String),
    Todos(Vec<Todo>),
}

/// The reason why a workspace request failed.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceRequestError {
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("too many requests to this session's workspace are pending: wait for answers, then try again")]
    Busy,
    #[error("{0}")]
    Unsaved(String),
    #[error("the session's log could not be copied yet, and will be retried: {0}")]
    NotCopied(String),
}

impl From<FsError> for WorkspaceRequestError {
    fn from(error: FsError) -> Self {
        WorkspaceError::Fs(error).into()
    }
}

/// A change of the workspace, for clients that cache parts of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkspaceChange {
    PlanWritten,
    PlanRemoved,
    Files,
}

impl WorkspaceChange {
    /// The change that a request makes.
    pub(super) fn of(request: &WorkspaceRequest) -> Option<Self> {
        match request {
            WorkspaceRequest::SetPlan(Some(_)) => Some(WorkspaceChange::PlanWritten),
            WorkspaceRequest::SetPlan(None) => Some(WorkspaceChange::PlanRemoved),
            WorkspaceRequest::WriteFile { .. } | WorkspaceRequest::RemoveFile { .. } => Some(WorkspaceChange::Files),
            WorkspaceRequest::Manifest
            | WorkspaceRequest::Plan
            | WorkspaceRequest::Files(_)
            | WorkspaceRequest::ReadFile { .. }
            | WorkspaceRequest::Checkpoints
            | WorkspaceRequest::Checkpoint(_)
            | WorkspaceRequest::Todos => None,
        }
    }

    /// The workspace details after the change. Two changes within a millisecond get different times.
    fn applied_to(self, mut workspace: WorkspaceDetails, now: Timestamp) -> WorkspaceDetails {
        let behind =
            |last: Option<Timestamp>| Some(last.map_or(now, |last| now.max(Timestamp(last.0.saturating_add(1)))));
        match self {
            WorkspaceChange::PlanWritten => workspace.plan = behind(workspace.plan),
            WorkspaceChange::PlanRemoved => workspace.plan = None,
            WorkspaceChange::Files => workspace.files = behind(workspace.files),
        }
        workspace
    }
}

/// The sender of an answer. The caller may have stopped waiting.
pub(crate) type WorkspaceReply = oneshot::Sender<Result<WorkspaceAnswer, WorkspaceRequestError>>;

/// A change that was made outside the task, to be published before it is answered.
#[derive(Debug)]
pub(crate) struct WorkspaceUpdate {
    change: WorkspaceChange,
    answer: WorkspaceAnswer,
    done: WorkspaceReply,
}

/// The folder of a session beside its logs, as its task knows it.
#[derive(Debug)]
pub(super) struct WorkspaceFolder {
    /// The queue of requests, created with the first one.
    request_queue: Option<RequestQueue>,
    manifest: ManifestState,
    /// Says whether the list of checkpoints was compared with the log since the task started.
    is_listed: bool,
    /// The scans of the working directory's version control.
    pub(super) checkout: CheckoutScan,
    /// The files for output that is too large for its agents.
    pub(super) spills: SessionSpills,
}

/// The queue of requests.
#[derive(Debug)]
struct RequestQueue {
    jobs: mpsc::Sender<WorkspaceJob>,
    /// Resolves when all of them are done.
    ended: oneshot::Receiver<()>,
}

impl WorkspaceFolder {
    pub(super) fn new(spills: SessionSpills) -> Self {
        let (manifest, checkout) = (ManifestState::default(), CheckoutScan::default());
        Self { request_queue: None, manifest, is_listed: false, checkout, spills }
    }

    /// Says whether the folder has everything that the task knows about it.
    pub(super) fn is_settled(&self) -> bool {
        self.manifest.counts_all_forks()
    }

    /// Waits until all requests are done.
    pub(super) async fn finish_requests(&mut self) {
        if let Some(RequestQueue { jobs, ended }) = self.request_queue.take() {
            drop(jobs);
            // It ends without a message if it panicked.
            ended.await.ok();
        }
    }

    /// The manifest, to be written outside the task.
    pub(super) fn manifest_to_save(&self, session: &Session) -> ManifestUpdate {
        self.manifest.update(session)
    }

    /// Notes the facts that the manifest has now.
    pub(super) fn manifest_saved(&mut self, facts: Option<ManifestFacts>) {
        self.manifest.saved(facts);
    }

    /// Updates the manifest, and creates the workspace if there is none yet.
    pub(super) async fn write_manifest(&mut self, session: &Session, store: &dyn SessionFs) {
        self.manifest.write(session, store).await;
    }

    /// Notes the source of the session's name.
    pub(super) fn named_by(&mut self, source: TitleSource) {
        self.manifest.named_by(source);
    }

    /// Counts a fork of the session.
    pub(super) fn count_fork(&mut self) {
        self.manifest.count_fork();
    }
}

impl SessionTask {
    /// Queues a workspace request. It is answered when it is done and published.
    pub(super) async fn workspace(
        &mut self,
        request: WorkspaceRequest,
        done: WorkspaceReply,
    ) -> Result<(), HostStopped> {
        let changes = WorkspaceChange::of(&request).is_some();
        if let Some(reason) = self.persistence.refusal(&self.tip).filter(|_| changes) {
            done.send(Err(WorkspaceRequestError::Unsaved(reason))).ok();
            return Ok(());
        }
        let main = Session::MAIN_CHAT.into();
        if let Err(error) = self.copied(&main).await {
            done.send(Err(WorkspaceRequestError::NotCopied(error.to_string()))).ok();
            return Ok(());
        }
        if matches!(request, WorkspaceRequest::Checkpoints) {
            self.relist_checkpoints(&main).await?;
        }
        let now = self.session_context.env.clock.now();
        let facts = self.workspace.manifest.facts(&self.tip);
        let job = WorkspaceJob::Answer(Box::new(QueuedRequest { request, facts, now, done }));
        if let Err(mpsc::error::TrySendError::Full(job) | mpsc::error::TrySendError::Closed(job)) =
            self.request_queue().try_send(job)
            && let WorkspaceJob::Answer(question) = job
        {
            question.done.send(Err(WorkspaceRequestError::Busy)).ok();
        }
        Ok(())
    }

    /// Records the plan's current version, at the start and the end of a turn: agents and users write it themselves.
    ///
    /// If the queue is full, the next turn does it.
    pub(super) fn note_plan(&mut self) {
        // A fork has none before it is copied.
        if !self.copies.contains(&ChatId::from(Session::MAIN_CHAT)) {
            let now = self.session_context.env.clock.now();
            self.request_queue().try_send(WorkspaceJob::NotePlan { now }).ok();
        }
    }

    /// Writes the agent's plan to the session's todo list. If the queue is full, the next plan is written.
    pub(super) fn write_todos(&mut self, entries: Vec<PlanEntry>) {
        if !self.copies.contains(&ChatId::from(Session::MAIN_CHAT)) {
            self.request_queue().try_send(WorkspaceJob::SetTodos(entries)).ok();
        }
    }

    /// Publishes a change that was made outside the task, then answers its request.
    pub(super) async fn apply_workspace_update(
        &mut self,
        apply_workspace_update: WorkspaceUpdate,
    ) -> Result<(), HostStopped> {
        let WorkspaceUpdate { change, answer, done } = apply_workspace_update;
        let had_plan = self.tip.details.workspace.is_some_and(|workspace| workspace.plan.is_some());
        self.workspace_changed(change).await?;
        let plan = match change {
            WorkspaceChange::PlanWritten if had_plan => Some(("update", "The plan was changed.")),
            WorkspaceChange::PlanWritten => Some(("create", "The plan was created.")),
            WorkspaceChange::PlanRemoved => Some(("delete", "The plan was deleted.")),
            WorkspaceChange::Files => None,
        };
        if let Some((operation, message)) = plan {
            self.note_event(json!({"infoType": "plan", "message": message, "operation": operation})).await?;
        }
        done.send(Ok(answer)).ok();
        Ok(())
    }

    /// Publishes a change.
    pub(super) async fn workspace_changed(&mut self, change: WorkspaceChange) -> Result<(), HostStopped> {
        let workspace = self.workspace_after(change);
        self.publish_workspace(workspace).await
    }

    /// The workspace details after a change.
    fn workspace_after(&self, change: WorkspaceChange) -> WorkspaceDetails {
        change.applied_to(self.tip.details.workspace.unwrap_or_default(), self.session_context.env.clock.now())
    }

    /// Publishes that there are new files, together with the current details.
    pub(super) fn files_came(&mut self, out: &mut Outbox) {
        let workspace = Some(self.workspace_after(WorkspaceChange::Files));
        let details = SessionDetails { workspace, ..self.tip.details.clone() };
        let command = EventReport::Session(SessionEvent::DetailsChanged(Box::new(details)));
        self.accept(command, out).ok();
    }

    /// Publishes the workspace that a fork has from its origin.
    pub(super) async fn scan_workspace(&mut self, found: WorkspaceDetails) -> Result<(), HostStopped> {
        self.publish_workspace(found).await
    }

    async fn publish_workspace(&mut self, workspace: WorkspaceDetails) -> Result<(), HostStopped> {
        let workspace = Some(workspace).filter(|workspace| *workspace != WorkspaceDetails::default());
        if self.tip.details.workspace == workspace {
            return Ok(());
        }
        let details = SessionDetails { workspace, ..self.tip.details.clone() };
        let command = EventReport::Session(SessionEvent::DetailsChanged(Box::new(details)));
        if let Err(error) = self.attempt(command, None).await? {
            // It has happened all the same; it is published with the next change.
            tracing::warn!(session = %self.tip.id, %error, "clients were not told of a change in the workspace");
        }
        Ok(())
    }

    fn request_queue(&mut self) -> mpsc::Sender<WorkspaceJob> {
        let fs = self.logs.store();
        let (folder, inbox) = (paths::folder(&self.tip.id), self.inbox_sender.clone());
        let spawn = &self.session_context.env.spawn;
        let request_queue = self.workspace.request_queue.get_or_insert_with(|| {
            let (sender, jobs) = mpsc::channel(request_queue::MAX_QUEUED_REQUESTS);
            let (end, ended) = oneshot::channel();
            let of_queue = spawn.clone();
            spawn.spawn(Box::pin(async move {
                request_queue::serve(jobs, fs, folder, inbox, of_queue).await;
                end.send(()).ok();
            }));
            RequestQueue { jobs: sender, ended }
        });
        request_queue.jobs.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_changes_at_the_same_time_are_told_apart() {
        let (none, now) = (WorkspaceDetails::default(), Timestamp(5));
        let once = WorkspaceChange::Files.applied_to(none, now);
        let twice = WorkspaceChange::Files.applied_to(once, now);
        assert_eq!((once.files, twice.files), (Some(Timestamp(5)), Some(Timestamp(6))));
        let planned = WorkspaceChange::PlanWritten.applied_to(twice, Timestamp(9));
        assert_eq!((planned.plan, planned.files), (Some(Timestamp(9)), twice.files));
        assert_eq!(WorkspaceChange::PlanRemoved.applied_to(planned, Timestamp(9)), twice);
    }
}
