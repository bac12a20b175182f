//! The workspace of a session: its manifest, plan, files and checkpoints.
//!
//! Clients' requests are handled outside the session's task, one after another ([`request_queue`]): a slow store holds
//! up only them. The task itself writes the manifest and lists checkpoints, and publishes changes. So each file has one
//! writer.

mod checkpoints;
mod manifest;
mod request_queue;

use grove_core::*;
use grove_fs::FsError;
use grove_fs::workspace::database::DatabaseError;
use grove_fs::workspace::{Checkpoint, FilesFolder, FolderListing, Manifest, Todo, WorkspaceError};
use tokio::sync::{mpsc, oneshot};

use self::request_queue::{QueuedRequest, WorkspaceJob};
use super::{Outbox, SessionTask};
use crate::sequencer::HostStopped;
use crate::store::paths;

pub(crate) use checkpoints::scan_workspace;
pub(super) use manifest::{ManifestFacts, put as put_manifest};

/// A request to a session's workspace.
#[derive(Clone, Debug)]
pub(crate) enum WorkspaceRequest {
    Manifest,
    Plan,
    /// Writes the plan, or deletes it.
    SetPlan(Option<String>),
    Files(FilesFolder),
    ReadFile {
        shelf: FilesFolder,
        name: String,
        offset: u64,
        length: usize,
    },
    WriteFile {
        shelf: FilesFolder,
        name: String,
        bytes: Vec<u8>,
    },
    RemoveFile {
        shelf: FilesFolder,
        name: String,
    },
    Checkpoints,
    Checkpoint(u32),
    Todos,
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub(crate) enum WorkspaceAnswer {
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
pub(crate) enum WorkspaceRequestError {
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

/// The workspace state of a session's task.
#[derive(Debug, Default)]
pub(super) struct WorkspaceState {
    /// The queue of requests, created with the first one.
    request_queue: Option<RequestQueue>,
    /// The manifest that was last written.
    written: Option<ManifestFacts>,
    /// Says whether the user gave the session's name, if that is known.
    named_by_person: Option<bool>,
    /// The number of forks that the manifest does not count yet.
    new_forks: u64,
    /// Says whether the list of checkpoints was compared with the log since the task started.
    is_listed: bool,
}

/// The queue of requests.
#[derive(Debug)]
struct RequestQueue {
    jobs: mpsc::Sender<WorkspaceJob>,
    /// Resolves when all of them are done.
    ended: oneshot::Receiver<()>,
}

impl WorkspaceState {
    /// Says whether the folder has everything that the task knows about it.
    pub(super) fn is_settled(&self) -> bool {
        self.new_forks == 0
    }
}

impl SessionTask {
    /// Waits until all workspace requests are done.
    pub(super) async fn finish_workspace(&mut self) {
        if let Some(RequestQueue { jobs, ended }) = self.kept.request_queue.take() {
            drop(jobs);
            // It ends without a message if it panicked.
            ended.await.ok();
        }
    }

    /// Queues a workspace request. It is answered when it is done and published.
    pub(super) async fn workspace(
        &mut self,
        request: WorkspaceRequest,
        done: WorkspaceReply,
    ) -> Result<(), HostStopped> {
        if let Some(reason) = self.workspace_is_refused(&request) {
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
        let job = WorkspaceJob::Answer(Box::new(QueuedRequest { request, facts: self.facts(), now, done }));
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
        self.workspace_changed(change).await?;
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
        let mut workspace = self.tip.details.workspace.unwrap_or_default();
        // Two changes within a millisecond get different times.
        let now = self.session_context.env.clock.now();
        let behind =
            |last: Option<Timestamp>| Some(last.map_or(now, |last| now.max(Timestamp(last.0.saturating_add(1)))));
        match change {
            WorkspaceChange::PlanWritten => workspace.plan = behind(workspace.plan),
            WorkspaceChange::PlanRemoved => workspace.plan = None,
            WorkspaceChange::Files => workspace.files = behind(workspace.files),
        }
        workspace
    }

    /// Publishes that there are new files, together with the current details.
    pub(super) fn files_came(&mut self, out: &mut Outbox) {
        let workspace = Some(self.workspace_after(WorkspaceChange::Files));
        let details = SessionDetails { workspace, ..self.tip.details.clone() };
        let command = Command::ReportSession(SessionEvent::DetailsChanged(Box::new(details)));
        self.accept(command, &Actor::Host, out).ok();
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
        let command = Command::ReportSession(SessionEvent::DetailsChanged(Box::new(details)));
        if let Err(error) = self.attempt(command, &Actor::Host, None).await? {
            // It has happened all the same; it is published with the next change.
            tracing::warn!(session = %self.tip.id, %error, "clients were not told of a change in the workspace");
        }
        Ok(())
    }

    fn request_queue(&mut self) -> mpsc::Sender<WorkspaceJob> {
        let fs = self.logs.store();
        let (folder, inbox) = (paths::folder(&self.tip.id), self.inbox_sender.clone());
        let spawn = &self.session_context.env.spawn;
        let request_queue = self.kept.request_queue.get_or_insert_with(|| {
            let (sender, jobs) = mpsc::channel(request_queue::MAX_QUEUED_REQUESTS);
            let (end, ended) = oneshot::channel();
            spawn.spawn(Box::pin(async move {
                request_queue::serve(jobs, fs, folder, inbox).await;
                end.send(()).ok();
            }));
            RequestQueue { jobs: sender, ended }
        });
        request_queue.jobs.clone()
    }
}
