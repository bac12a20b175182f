//! What a session has beside its conversation: its manifest, plan, files and checkpoints.
//!
//! What clients do with it is done beside the session's task, one thing after the other ([`lane`]): a slow store holds up
//! nobody but them. The task itself writes the manifest and lists checkpoints, and tells everybody when something has
//! changed. So each file has one writer.

mod checkpoints;
mod lane;
mod manifest;

use grove_core::*;
use grove_fs::FsError;
use grove_fs::workspace::database::DatabaseError;
use grove_fs::workspace::{Checkpoint, Listing, Manifest, Shelf, Todo, WorkspaceError};
use tokio::sync::{mpsc, oneshot};

use self::lane::{Job, Question};
use super::{Outbox, SessionTask};
use crate::sequencer::Stopped;
use crate::store::paths;

pub(crate) use checkpoints::surveyed;
pub(super) use manifest::{Facts, put as put_manifest};

/// What can be asked of a session's workspace.
#[derive(Clone, Debug)]
pub(crate) enum WorkspaceRequest {
    Manifest,
    Plan,
    /// Writes the plan, or takes it away.
    SetPlan(Option<String>),
    Files(Shelf),
    ReadFile {
        shelf: Shelf,
        name: String,
        offset: u64,
        length: usize,
    },
    WriteFile {
        shelf: Shelf,
        name: String,
        bytes: Vec<u8>,
    },
    RemoveFile {
        shelf: Shelf,
        name: String,
    },
    Checkpoints,
    Checkpoint(u32),
    Todos,
}

/// What comes of it.
#[derive(Clone, Debug)]
pub(crate) enum WorkspaceAnswer {
    Manifest {
        manifest: Box<Manifest>,
        /// The session's folder, as it is spelled where it lies.
        path: String,
    },
    Plan(Option<String>),
    Files(Listing),
    File {
        bytes: Vec<u8>,
        more: bool,
    },
    Written {
        size: u64,
    },
    /// Whether the plan changed, or a file was there.
    Changed(bool),
    Checkpoints(Vec<Checkpoint>),
    Checkpoint(String),
    Todos(Vec<Todo>),
}

/// Why a workspace did not give or take something.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAnswer {
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("too much is being asked of this session's workspace at once: wait for answers, then ask again")]
    Busy,
    #[error("{0}")]
    Unsaved(String),
    #[error("what the session begins with could not be copied yet, and will be tried again: {0}")]
    NotCopied(String),
}

impl From<FsError> for NoAnswer {
    fn from(error: FsError) -> Self {
        WorkspaceError::Fs(error).into()
    }
}

/// What was changed, for those who keep some of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    PlanWritten,
    PlanRemoved,
    Files,
}

impl Change {
    /// What a request changes when it is done.
    pub(super) fn of(request: &WorkspaceRequest) -> Option<Self> {
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
}

/// The answer's way back. Whoever asked may have gone meanwhile.
pub(crate) type Done = oneshot::Sender<Result<WorkspaceAnswer, NoAnswer>>;

/// Something that was done beside the task, of which others are to hear before it is answered.
#[derive(Debug)]
pub(crate) struct Arranged {
    change: Change,
    answer: WorkspaceAnswer,
    done: Done,
}

/// What a session's task keeps of its workspace.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Where requests are done, once there was one.
    lane: Option<Lane>,
    /// What the manifest was last made to say.
    written: Option<Facts>,
    /// Whether a person gave the session's name, where that was seen.
    named_by_person: Option<bool>,
    /// How many forks were made that the manifest does not count yet.
    new_forks: u64,
    /// Whether the list of checkpoints was compared with the log since the task began.
    is_listed: bool,
}

/// Where requests are done.
#[derive(Debug)]
struct Lane {
    jobs: mpsc::Sender<Job>,
    /// Told when all of them are done.
    ended: oneshot::Receiver<()>,
}

impl Kept {
    /// Whether the folder says everything that the task knows of it.
    pub(super) fn is_settled(&self) -> bool {
        self.new_forks == 0
    }
}

impl SessionTask {
    /// Waits until nothing is done with the workspace any more.
    pub(super) async fn finish_workspace(&mut self) {
        if let Some(Lane { jobs, ended }) = self.kept.lane.take() {
            drop(jobs);
            // It ends without a word where it broke down.
            ended.await.ok();
        }
    }

    /// Has something done with the workspace. It is answered when it is done, and when others have heard of it.
    pub(super) async fn workspace(&mut self, request: WorkspaceRequest, done: Done) -> Result<(), Stopped> {
        if let Some(reason) = self.workspace_is_refused(&request) {
            done.send(Err(NoAnswer::Unsaved(reason))).ok();
            return Ok(());
        }
        let main = Session::MAIN_CHAT.into();
        if let Err(error) = self.copied(&main).await {
            done.send(Err(NoAnswer::NotCopied(error.to_string()))).ok();
            return Ok(());
        }
        if matches!(request, WorkspaceRequest::Checkpoints) {
            self.relist_checkpoints(&main).await?;
        }
        let now = self.around.env.clock.now();
        let job = Job::Answer(Box::new(Question { request, facts: self.facts(), now, done }));
        if let Err(mpsc::error::TrySendError::Full(job) | mpsc::error::TrySendError::Closed(job)) =
            self.lane().try_send(job)
            && let Job::Answer(question) = job
        {
            question.done.send(Err(NoAnswer::Busy)).ok();
        }
        Ok(())
    }

    /// Has the plan noted as it is now, at the beginning and the end of a turn: agents and people write it themselves. A
    /// lane that is full looks at the next turn.
    pub(super) fn note_plan(&mut self) {
        // A fork has none before it is copied.
        if !self.copying.contains_key(&ChatId::from(Session::MAIN_CHAT)) {
            let now = self.around.env.clock.now();
            self.lane().try_send(Job::NotePlan { now }).ok();
        }
    }

    /// Puts the agent's plan on the session's todo list. Where the lane is full, the next plan is put there.
    pub(super) fn write_todos(&mut self, entries: Vec<PlanEntry>) {
        if !self.copying.contains_key(&ChatId::from(Session::MAIN_CHAT)) {
            self.lane().try_send(Job::SetTodos(entries)).ok();
        }
    }

    /// Tells others of a change that was made beside the task, then whoever made it.
    pub(super) async fn arranged(&mut self, arranged: Arranged) -> Result<(), Stopped> {
        let Arranged { change, answer, done } = arranged;
        self.workspace_changed(change).await?;
        done.send(Ok(answer)).ok();
        Ok(())
    }

    /// Tells others of a change.
    pub(super) async fn workspace_changed(&mut self, change: Change) -> Result<(), Stopped> {
        let workspace = self.workspace_after(change);
        self.tell_workspace(workspace).await
    }

    /// What is told of the workspace after a change.
    fn workspace_after(&self, change: Change) -> WorkspaceDetails {
        let mut workspace = self.tip.details.workspace.unwrap_or_default();
        // Two changes within a millisecond are two.
        let now = self.around.env.clock.now();
        let behind =
            |last: Option<Timestamp>| Some(last.map_or(now, |last| now.max(Timestamp(last.0.saturating_add(1)))));
        match change {
            Change::PlanWritten => workspace.plan = behind(workspace.plan),
            Change::PlanRemoved => workspace.plan = None,
            Change::Files => workspace.files = behind(workspace.files),
        }
        workspace
    }

    /// Tells others that there are new files, together with what is told already.
    pub(super) fn files_came(&mut self, out: &mut Outbox) {
        let workspace = Some(self.workspace_after(Change::Files));
        let details = Details { workspace, ..self.tip.details.clone() };
        let command = Command::ReportSession(SessionEvent::DetailsChanged(Box::new(details)));
        self.accept(command, &Who::Host, out).ok();
    }

    /// What a new session has from the one that it comes from.
    pub(super) async fn surveyed(&mut self, found: WorkspaceDetails) -> Result<(), Stopped> {
        self.tell_workspace(found).await
    }

    async fn tell_workspace(&mut self, workspace: WorkspaceDetails) -> Result<(), Stopped> {
        let workspace = Some(workspace).filter(|workspace| *workspace != WorkspaceDetails::default());
        if self.tip.details.workspace == workspace {
            return Ok(());
        }
        let details = Details { workspace, ..self.tip.details.clone() };
        let command = Command::ReportSession(SessionEvent::DetailsChanged(Box::new(details)));
        if let Err(error) = self.attempt(command, &Who::Host, None).await? {
            // It has happened all the same; others hear of it with the next change.
            tracing::warn!(session = %self.tip.id, %error, "clients were not told of a change in the workspace");
        }
        Ok(())
    }

    fn lane(&mut self) -> mpsc::Sender<Job> {
        let fs = self.fs();
        let (folder, inbox) = (paths::folder(&self.tip.id), self.inbox_sender.clone());
        let spawn = &self.around.env.spawn;
        let lane = self.kept.lane.get_or_insert_with(|| {
            let (sender, jobs) = mpsc::channel(lane::WAITING);
            let (end, ended) = oneshot::channel();
            spawn.spawn(Box::pin(async move {
                lane::serve(jobs, fs, folder, inbox).await;
                end.send(()).ok();
            }));
            Lane { jobs: sender, ended }
        });
        lane.jobs.clone()
    }
}
