//! Plan, files and checkpoints of a session, as the SDK names them.

use grove_fs::FsError;
use grove_fs::workspace::{self as fs, FilesFolder, WorkspaceError};
use grove_host::session::{WorkspaceAnswer, WorkspaceRequest};
use grove_wire::copilot::events::WorkspaceFileChanged;
use grove_wire::copilot::methods::*;

use super::history::unexpected;
use super::peer::{CopilotError, CopilotPeer, SessionRef};

/// The largest file that is sent in one piece.
pub const MAX_FILE_BYTES: usize = 8 << 20;

impl CopilotPeer {
    pub(super) async fn plan(&self, params: SessionParams) -> Result<PlanReadResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let WorkspaceAnswer::Plan(content) = self.ask_workspace(&session, WorkspaceRequest::Plan).await? else {
            return Err(unexpected());
        };
        let path = self.path_of(&session, "plan.md").await;
        Ok(PlanReadResult { exists: content.is_some(), content: content.into(), path: path.into() })
    }

    pub(super) async fn update_plan(&self, params: PlanUpdateParams) -> Result<(), CopilotError> {
        let session = self.find(&params.session_id).await?;
        self.ask_workspace(&session, WorkspaceRequest::SetPlan(Some(params.content))).await.map(|_| ())
    }

    pub(super) async fn delete_plan(&self, params: SessionParams) -> Result<(), CopilotError> {
        let session = self.find(&params.session_id).await?;
        self.ask_workspace(&session, WorkspaceRequest::SetPlan(None)).await.map(|_| ())
    }

    pub(super) async fn workspace(&self, params: SessionParams) -> Result<WorkspaceResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let WorkspaceAnswer::Manifest { manifest, path } =
            self.ask_workspace(&session, WorkspaceRequest::Manifest).await?
        else {
            return Err(unexpected());
        };
        let text = |field| Ok::<_, CopilotError>(manifest.text(field)?.map(str::to_owned));
        let workspace = Workspace {
            id: text(fs::Field::Id)?.unwrap_or_default(),
            cwd: text(fs::Field::Cwd)?,
            git_root: text(fs::Field::GitRoot)?,
            repository: text(fs::Field::Repository)?,
            branch: text(fs::Field::Branch)?,
            name: text(fs::Field::Name)?,
            client_name: None,
            user_named: manifest.flag(fs::Field::UserNamed)?,
            summary_count: manifest.number(fs::Field::SummaryCount)?,
            created_at: text(fs::Field::CreatedAt)?,
            updated_at: text(fs::Field::UpdatedAt)?,
        };
        Ok(WorkspaceResult { workspace: Some(workspace).into(), path: Some(path) })
    }

    pub(super) async fn list_files(&self, params: SessionParams) -> Result<ListFilesResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let WorkspaceAnswer::Files(listing) =
            self.ask_workspace(&session, WorkspaceRequest::Files(FilesFolder::Files)).await?
        else {
            return Err(unexpected());
        };
        Ok(ListFilesResult { files: listing.files.into_iter().map(|file| file.name).collect() })
    }

    pub(super) async fn read_file(&self, params: WorkspacePathParams) -> Result<ReadFileResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        inside(&params.path)?;
        let bytes = self.bytes(&session, params.path).await?;
        let text = String::from_utf8(bytes);
        let content = text.map_err(|_| CopilotError::Failed("the file is not text".to_owned()))?;
        Ok(ReadFileResult { content })
    }

    pub(super) async fn create_file(&self, params: CreateFileParams) -> Result<(), CopilotError> {
        let session = self.find(&params.session_id).await?;
        let path = inside(&params.path)?;
        let WorkspaceAnswer::Files(before) =
            self.ask_workspace(&session, WorkspaceRequest::Files(FilesFolder::Files)).await?
        else {
            return Err(unexpected());
        };
        let (name, bytes) = (params.path, params.content.into_bytes());
        self.ask_workspace(&session, WorkspaceRequest::WriteFile { folder: FilesFolder::Files, name, bytes }).await?;
        let operation = if before.files.iter().any(|file| file.name == path) { "update" } else { "create" };
        if let Some(feed) = self.endpoint().feeds().of(&session.id) {
            feed.say(WorkspaceFileChanged { path, operation: operation.to_owned() });
        }
        Ok(())
    }

    /// Checks the path of a folder. Folders exist as soon as they contain something.
    pub(super) async fn create_directory(&self, params: CreateDirectoryParams) -> Result<(), CopilotError> {
        self.find(&params.session_id).await?;
        inside(&params.path).map(|_| ())
    }

    pub(super) async fn stat_file(&self, params: WorkspacePathParams) -> Result<StatFileResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let WorkspaceAnswer::Files(listing) =
            self.ask_workspace(&session, WorkspaceRequest::Files(FilesFolder::Files)).await?
        else {
            return Err(unexpected());
        };
        let name = inside(&params.path)?;
        let inside = format!("{name}/");
        if let Some(file) = listing.files.iter().find(|file| file.name == name) {
            let time = millis(file.modified);
            return Ok(StatFileResult {
                is_file: true,
                is_directory: false,
                size: file.size,
                mtime_ms: time,
                birthtime_ms: time,
            });
        }
        match listing.files.iter().any(|file| file.name.starts_with(&inside)) {
            true => Ok(StatFileResult { is_directory: true, ..StatFileResult::default() }),
            false => Err(FsError::NotFound { path: name }.into()),
        }
    }

    pub(super) async fn remove_path(&self, params: RemovePathParams) -> Result<(), CopilotError> {
        let session = self.find(&params.session_id).await?;
        let name = params.path;
        let request = WorkspaceRequest::RemoveFile { folder: FilesFolder::Files, name: name.clone() };
        match self.ask_workspace(&session, request).await? {
            WorkspaceAnswer::Changed(false) if params.force != Some(true) => {
                Err(FsError::NotFound { path: name }.into())
            }
            _ => Ok(()),
        }
    }

    pub(super) async fn rename_path(&self, params: RenamePathParams) -> Result<(), CopilotError> {
        let session = self.find(&params.session_id).await?;
        let (from, to) = (params.source, params.destination);
        let bytes = self.bytes(&session, from.clone()).await?;
        let written = WorkspaceRequest::WriteFile { folder: FilesFolder::Files, name: to, bytes };
        self.ask_workspace(&session, written).await?;
        self.ask_workspace(&session, WorkspaceRequest::RemoveFile { folder: FilesFolder::Files, name: from })
            .await
            .map(|_| ())
    }

    /// Stores a text as a file.
    pub(super) async fn save_paste(&self, params: SaveLargePasteParams) -> Result<SaveLargePasteResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let size = params.content.len();
        let name = format!("paste-{}.txt", self.host().env().clock.now().0);
        let bytes = params.content.into_bytes();
        let request = WorkspaceRequest::WriteFile { folder: FilesFolder::Files, name: name.clone(), bytes };
        self.ask_workspace(&session, request).await?;
        let file_path = self.path_of(&session, &format!("files/{name}")).await.unwrap_or_else(|| name.clone());
        let saved = SavedPaste { file_path, filename: name, size_bytes: size as u64 };
        Ok(SaveLargePasteResult { saved: Some(saved).into() })
    }

    pub(super) async fn list_checkpoints(&self, params: SessionParams) -> Result<ListCheckpointsResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let WorkspaceAnswer::Checkpoints(checkpoints) =
            self.ask_workspace(&session, WorkspaceRequest::Checkpoints).await?
        else {
            return Err(unexpected());
        };
        let named = |checkpoint: fs::Checkpoint| Checkpoint {
            number: checkpoint.number.into(),
            title: checkpoint.title,
            filename: checkpoint.file,
        };
        Ok(ListCheckpointsResult { checkpoints: checkpoints.into_iter().map(named).collect() })
    }

    pub(super) async fn read_checkpoint(
        &self,
        params: ReadCheckpointParams,
    ) -> Result<ReadCheckpointResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let number = u32::try_from(params.number)?;
        let answer = self.host().ask_workspace(&session.uri, WorkspaceRequest::Checkpoint(number)).await?;
        let content = match answer.await {
            Ok(Ok(WorkspaceAnswer::Checkpoint(text))) => Some(text),
            Ok(Err(grove_host::session::WorkspaceRequestError::Workspace(WorkspaceError::NoCheckpoint { .. }))) => None,
            Ok(Err(error)) => return Err(error.into()),
            Ok(Ok(_)) | Err(_) => return Err(unexpected()),
        };
        Ok(ReadCheckpointResult { content: content.into() })
    }

    async fn bytes(&self, session: &SessionRef, name: String) -> Result<Vec<u8>, CopilotError> {
        let request = WorkspaceRequest::ReadFile {
            folder: FilesFolder::Files,
            name: name.clone(),
            offset: 0,
            length: MAX_FILE_BYTES,
        };
        match self.ask_workspace(session, request).await? {
            WorkspaceAnswer::File { bytes, more: false } => Ok(bytes),
            WorkspaceAnswer::File { .. } => Err(FsError::TooLarge { path: name, limit: MAX_FILE_BYTES as u64 }.into()),
            _ => Err(unexpected()),
        }
    }

    /// A path in a session's folder, as its store spells it.
    async fn path_of(&self, session: &SessionRef, name: &str) -> Option<String> {
        let fs = self.host().store_of(&session.id)?;
        fs.location(&format!("{}/{name}", grove_storage::paths::folder(&session.id))).ok()
    }
}

/// A path as the name of a file of the workspace.
fn inside(path: &str) -> Result<String, CopilotError> {
    let outside = |error| {
        let reason = format!("{path:?} is not a path inside of the session's workspace files directory: {error}");
        CopilotError::Failed(reason)
    };
    grove_fs::RelativeName::parse(path).map(|name| name.to_string()).map_err(outside)
}

fn millis(time: std::time::SystemTime) -> u64 {
    let since_1970 = time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX)
}
