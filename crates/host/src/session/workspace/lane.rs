//! Requests about a workspace, done one after the other.

use std::sync::Arc;

use grove_fs::SessionFs;
use grove_fs::workspace::database::LocalDatabase;
use grove_fs::workspace::{Todos, Workspace};
use tokio::sync::mpsc;

use super::manifest::{self, Facts};
use super::{Arranged, Change, Done, NoAnswer, WorkspaceAnswer, WorkspaceRequest};
use crate::session::ToSession;

/// How many requests may wait. More are refused: the task must not wait for a store.
pub(super) const WAITING: usize = 64;

/// Something to be done.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) request: WorkspaceRequest,
    /// What the session's manifest says when it is true.
    pub(super) facts: Facts,
    pub(super) done: Done,
}

/// Does what is asked until the session's task is gone.
pub(super) async fn serve(
    mut jobs: mpsc::Receiver<Job>,
    fs: Arc<dyn SessionFs>,
    folder: String,
    inbox: mpsc::WeakSender<ToSession>,
) {
    while let Some(Job { request, facts, done }) = jobs.recv().await {
        let change = change(&request);
        let answer = answer(fs.as_ref(), &folder, request, facts).await;
        match (answer, change, inbox.upgrade()) {
            (Ok(answer), Some(change), Some(inbox)) if !matches!(answer, WorkspaceAnswer::Changed(false)) => {
                // A session that ends at this moment answers nobody.
                inbox.send(ToSession::Arranged(Arranged { change, answer, done })).await.ok();
            }
            (answer, _, _) => drop(done.send(answer)),
        }
    }
}

/// What a request changes when it is done.
fn change(request: &WorkspaceRequest) -> Option<Change> {
    match request {
        WorkspaceRequest::SetPlan(Some(_)) => Some(Change::PlanWritten),
        WorkspaceRequest::SetPlan(None) => Some(Change::PlanRemoved),
        WorkspaceRequest::WriteFile { .. } | WorkspaceRequest::RemoveFile { .. } => Some(Change::Files),
        WorkspaceRequest::Manifest
        | WorkspaceRequest::Plan
        | WorkspaceRequest::Files(_)
        | WorkspaceRequest::ReadFile { .. }
        | WorkspaceRequest::Checkpoints
        | WorkspaceRequest::Checkpoint(_)
        | WorkspaceRequest::Todos => None,
    }
}

async fn answer(
    fs: &dyn SessionFs,
    folder: &str,
    request: WorkspaceRequest,
    facts: Facts,
) -> Result<WorkspaceAnswer, NoAnswer> {
    let workspace = Workspace::of(fs, Some(folder))?;
    Ok(match request {
        WorkspaceRequest::Manifest => {
            let manifest = manifest::updated(workspace.manifest().await?, &facts.complete().await);
            WorkspaceAnswer::Manifest { manifest: Box::new(manifest), path: fs.location(folder)? }
        }
        WorkspaceRequest::Plan => WorkspaceAnswer::Plan(workspace.plan().await?),
        WorkspaceRequest::SetPlan(Some(text)) => {
            workspace.set_plan(&text).await?;
            WorkspaceAnswer::Changed(true)
        }
        WorkspaceRequest::SetPlan(None) => WorkspaceAnswer::Changed(workspace.delete_plan().await?),
        WorkspaceRequest::Files(shelf) => WorkspaceAnswer::Files(workspace.files(shelf).await?),
        WorkspaceRequest::ReadFile { shelf, name, offset, length } => {
            // One more tells whether there is more.
            let mut bytes = workspace.read_file(shelf, &name, offset, length.saturating_add(1)).await?;
            let more = bytes.len() > length;
            bytes.truncate(length);
            WorkspaceAnswer::File { bytes, more }
        }
        WorkspaceRequest::WriteFile { shelf, name, bytes } => {
            workspace.write_file(shelf, &name, &bytes).await?;
            WorkspaceAnswer::Written { size: bytes.len() as u64 }
        }
        WorkspaceRequest::RemoveFile { shelf, name } => {
            WorkspaceAnswer::Changed(workspace.remove_file(shelf, &name).await?)
        }
        WorkspaceRequest::Checkpoints => WorkspaceAnswer::Checkpoints(workspace.checkpoints().await?),
        WorkspaceRequest::Checkpoint(number) => WorkspaceAnswer::Checkpoint(workspace.checkpoint(number).await?),
        WorkspaceRequest::Todos => WorkspaceAnswer::Todos(match LocalDatabase::of(fs, folder) {
            Some(database) => Todos::of(&database).list().await?,
            None => Vec::new(),
        }),
    })
}
