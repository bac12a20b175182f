//! The files beside a session's log: its manifest, its plan, its checkpoints, and VS Code's additions.

use std::path::{Component, Path};

use grove_core::Timestamp;
use grove_fs::workspace::{CheckpointIndex, Field, Manifest};
use grove_transcript::{FileLocation, TranscriptWorkspace, Worktree};
use serde_json::Value;

use crate::error::HistoryError;
use crate::files;
use crate::json::JsonMembers;
use crate::limits::MAX_SMALL_FILE;

/// The data of the files beside the log.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sidecar {
    /// The title that a person gave it in VS Code.
    pub custom_title: Option<String>,
    pub name: Option<String>,
    pub workspace: TranscriptWorkspace,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
    pub parent: Option<String>,
}

/// A summary of a session up to a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointSummary {
    pub number: u32,
    pub title: String,
    /// `None` if its file is missing.
    pub text: Option<String>,
}

impl Sidecar {
    /// Reads the existing files. Problems are reported, and the other files count.
    pub(super) fn read(folder: &Path, problems: &mut Vec<HistoryError>) -> Self {
        let mut sidecar = Self::default();
        if let Some(text) = optional(&folder.join("workspace.yaml"), problems) {
            match Manifest::parse(&text) {
                Ok(manifest) => sidecar.manifest(&manifest),
                Err(error) => problems.push(HistoryError::malformed(&folder.join("workspace.yaml"), error)),
            }
        }
        let path = folder.join("vscode.metadata.json");
        if let Some(text) = optional(&path, problems) {
            match serde_json::from_str(&text) {
                Ok(value) => sidecar.editor(value),
                Err(error) => problems.push(HistoryError::malformed(&path, error)),
            }
        }
        sidecar
    }

    /// Reads the manifest. A field of a wrong type is ignored.
    fn manifest(&mut self, manifest: &Manifest) {
        let text = |field| manifest.text(field).ok().flatten().map(str::to_owned);
        let time = |field| {
            let at = manifest.time(field).ok().flatten()?;
            u64::try_from(at.as_millisecond()).ok().map(Timestamp)
        };
        self.name = text(Field::Name).filter(|name| !name.is_empty());
        self.workspace = TranscriptWorkspace {
            folders: text(Field::Cwd).map(FileLocation::local).into_iter().collect(),
            repository: text(Field::Repository),
            branch: text(Field::Branch),
            ..TranscriptWorkspace::default()
        };
        self.created_at = time(Field::CreatedAt);
        self.updated_at = time(Field::UpdatedAt);
    }

    fn editor(&mut self, value: Value) {
        let Ok(mut members) = JsonMembers::of(value) else { return };
        self.custom_title = members.string("customTitle").filter(|title| !title.is_empty());
        self.parent = members.string("parentSessionId");
        let Some(mut tree) = members.object("worktreeProperties") else { return };
        let mut text = |key: &str| tree.string(key).filter(|text| !text.is_empty());
        let workspace = &mut self.workspace;
        workspace.set_pull_request(text("pullRequestUrl"));
        workspace.base_branch = text("baseBranchName").or(workspace.base_branch.take());
        workspace.branch = workspace.branch.take().or_else(|| text("branchName"));
        let repository = text("repositoryPath");
        workspace.worktree = text("worktreePath").map(|folder| Worktree { folder, repository });
    }
}

/// The plan of a session, if it has one.
pub fn plan(folder: &Path) -> Result<Option<String>, HistoryError> {
    let path = folder.join("plan.md");
    if path.is_file() { files::read_text(&path, MAX_SMALL_FILE).map(Some) } else { Ok(None) }
}

/// The checkpoints that a session's index lists.
pub fn checkpoints(folder: &Path) -> Result<Vec<CheckpointSummary>, HistoryError> {
    let folder = folder.join("checkpoints");
    let path = folder.join("index.md");
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let index = CheckpointIndex::parse(&files::read_text(&path, MAX_SMALL_FILE)?);
    let read = |name: &str| {
        // Only a plain name stays in the folder.
        let mut parts = Path::new(name).components();
        let is_plain = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
        if is_plain { files::read_text(&folder.join(name), MAX_SMALL_FILE).ok() } else { None }
    };
    let rows = index.checkpoints();
    Ok(rows
        .map(|row| CheckpointSummary { number: row.number, title: row.title.clone(), text: read(&row.file) })
        .collect())
}

fn optional(path: &Path, problems: &mut Vec<HistoryError>) -> Option<String> {
    if !path.is_file() {
        return None;
    }
    files::read_text(path, MAX_SMALL_FILE).map_err(|problem| problems.push(problem)).ok()
}
