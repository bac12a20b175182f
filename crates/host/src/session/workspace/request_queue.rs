//! Workspace requests, handled one after another.

use std::sync::Arc;

use grove_core::{PlanEntry, PlanStatus, Timestamp};
use grove_fs::SessionFs;
use grove_fs::workspace::database::DatabaseError;
use grove_fs::workspace::{PlanCheck, PlanTracker, TodoStatus, Todos, Workspace};
use tokio::sync::mpsc;

use super::manifest::{self, ManifestFacts};
use super::{
    WorkspaceAnswer, WorkspaceChange, WorkspaceReply, WorkspaceRequest, WorkspaceRequestError, WorkspaceUpdate,
};
use crate::env::Spawn;
use crate::session::ToSession;

/// The requests that may wait. More are refused: the task must not wait for a store.
pub const MAX_QUEUED_REQUESTS: usize = 64;

/// A job of the queue.
#[derive(Debug)]
pub(super) enum WorkspaceJob {
    Answer(Box<QueuedRequest>),
    /// Records the plan's version, if it was changed.
    NotePlan {
        now: Timestamp,
    },
    /// Writes the agent's plan to the session's todo list.
    SetTodos(Vec<PlanEntry>),
}

/// A request that a caller waits for.
#[derive(Debug)]
pub(super) struct QueuedRequest {
    pub(super) request: WorkspaceRequest,
    /// The current facts for the session's manifest.
    pub(super) facts: ManifestFacts,
    /// The time of the request.
    pub(super) now: Timestamp,
    pub(super) done: WorkspaceReply,
}

/// The plan's versions, recorded for forks of earlier moments.
///
/// A failure to record one is ignored: such a fork gets the plan of a later time.
struct PlanVersions<'a> {
    fs: &'a dyn SessionFs,
    folder: &'a str,
    watch: PlanTracker,
}

impl PlanVersions<'_> {
    async fn note(&mut self, look: PlanCheck, now: Timestamp) {
        let noted = async {
            let workspace = Workspace::of(self.fs, Some(self.folder))?;
            self.watch.note(&workspace, look, now.0).await
        };
        if let Err(error) = noted.await {
            tracing::warn!(folder = self.folder, %error, "the plan's version could not be recorded");
        }
    }
}

/// Handles jobs until the session's task is gone.
pub(super) async fn serve(
    mut jobs: mpsc::Receiver<WorkspaceJob>,
    fs: Arc<dyn SessionFs>,
    folder: String,
    inbox: mpsc::WeakSender<ToSession>,
    spawn: Arc<dyn Spawn>,
) {
    // Agents write the plan, too: a link to another place does not count as one.
    let without_links = fs.without_links();
    let mut plans = PlanVersions { fs: without_links.as_ref(), folder: &folder, watch: PlanTracker::default() };
    while let Some(job) = jobs.recv().await {
        let QueuedRequest { request, facts, now, done } = match job {
            WorkspaceJob::Answer(question) => *question,
            WorkspaceJob::NotePlan { now } => {
                plans.note(PlanCheck::Perhaps, now).await;
                continue;
            }
            WorkspaceJob::SetTodos(entries) => {
                if let Err(error) = set_todos(fs.as_ref(), &folder, &entries).await {
                    tracing::warn!(%folder, %error, "the agent's plan is not on the session's todo list");
                }
                continue;
            }
        };
        let change = WorkspaceChange::of(&request);
        let sets_plan = matches!(request, WorkspaceRequest::SetPlan(_));
        if sets_plan {
            // The current one may be another program's.
            plans.note(PlanCheck::Perhaps, now).await;
        }
        let answer = answer(fs.as_ref(), &folder, request, facts, spawn.as_ref()).await;
        if sets_plan {
            plans.note(PlanCheck::Written, now).await;
        }
        match (answer, change, inbox.upgrade()) {
            (Ok(answer), Some(change), Some(inbox)) if !matches!(answer, WorkspaceAnswer::Changed(false)) => {
                // A session that ends at this moment answers nobody.
                inbox.send(ToSession::WorkspaceUpdate(WorkspaceUpdate { change, answer, done })).await.ok();
            }
            (answer, _, _) => drop(done.send(answer)),
        }
    }
}

/// Writes a plan to the todo list, if the store has tables.
async fn set_todos(fs: &dyn SessionFs, folder: &str, entries: &[PlanEntry]) -> Result<(), DatabaseError> {
    let Some(database) = fs.database(folder) else { return Ok(()) };
    let todos = entries.iter().map(|entry| {
        let status = match entry.status {
            PlanStatus::Pending => TodoStatus::Pending,
            PlanStatus::InProgress => TodoStatus::InProgress,
            PlanStatus::Completed => TodoStatus::Done,
        };
        (entry.content.as_str(), status)
    });
    Todos::of(&*database).set_plan(todos).await
}

async fn answer(
    fs: &dyn SessionFs,
    folder: &str,
    request: WorkspaceRequest,
    facts: ManifestFacts,
    spawn: &dyn Spawn,
) -> Result<WorkspaceAnswer, WorkspaceRequestError> {
    let workspace = Workspace::of(fs, Some(folder))?;
    Ok(match request {
        WorkspaceRequest::Manifest => {
            let manifest = manifest::updated(workspace.manifest().await?, &facts.seen_now(spawn).await);
            WorkspaceAnswer::Manifest { manifest: Box::new(manifest), path: fs.location(folder)? }
        }
        WorkspaceRequest::Plan => WorkspaceAnswer::Plan(workspace.plan().await?),
        WorkspaceRequest::SetPlan(Some(text)) => {
            workspace.set_plan(&text).await?;
            WorkspaceAnswer::Changed(true)
        }
        WorkspaceRequest::SetPlan(None) => WorkspaceAnswer::Changed(workspace.delete_plan().await?),
        WorkspaceRequest::Files(folder) => WorkspaceAnswer::Files(workspace.files(folder).await?),
        WorkspaceRequest::ReadFile { folder, name, offset, length } => {
            // One more byte tells whether there is more.
            let mut bytes = workspace.read_file(folder, &name, offset, length.saturating_add(1)).await?;
            let more = bytes.len() > length;
            bytes.truncate(length);
            WorkspaceAnswer::File { bytes, more }
        }
        WorkspaceRequest::WriteFile { folder, name, bytes } => {
            workspace.write_file(folder, &name, &bytes).await?;
            WorkspaceAnswer::Written { size: bytes.len() as u64 }
        }
        WorkspaceRequest::RemoveFile { folder, name } => {
            WorkspaceAnswer::Changed(workspace.remove_file(folder, &name).await?)
        }
        WorkspaceRequest::Checkpoints => WorkspaceAnswer::Checkpoints(workspace.checkpoints().await?),
        WorkspaceRequest::Checkpoint(number) => WorkspaceAnswer::Checkpoint(workspace.checkpoint(number).await?),
        WorkspaceRequest::Todos => WorkspaceAnswer::Todos(match fs.database(folder) {
            Some(database) => Todos::of(&*database).list().await?,
            None => Vec::new(),
        }),
    })
}
