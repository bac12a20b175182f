//! `plan.md`.

use std::time::SystemTime;

use super::{LARGEST_TEXT, PLAN, Workspace, WorkspaceError};
use crate::FsError;

impl Workspace<'_> {
    /// The plan; `None` if there is none.
    pub async fn plan(&self) -> Result<Option<String>, WorkspaceError> {
        self.read_text(PLAN, LARGEST_TEXT).await
    }

    /// The time of the plan's last change; `None` if there is none.
    pub async fn plan_written(&self) -> Result<Option<SystemTime>, WorkspaceError> {
        match self.store.stat(&self.path(PLAN)).await {
            Ok(stat) => Ok(Some(stat.modified)),
            Err(FsError::NotFound { .. } | FsError::NotADirectory { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub async fn set_plan(&self, text: &str) -> Result<(), WorkspaceError> {
        if text.len() > LARGEST_TEXT {
            return Err(WorkspaceError::TooLarge { path: self.path(PLAN), limit: LARGEST_TEXT });
        }
        self.write(PLAN, text.as_bytes()).await
    }

    /// Deletes the plan; `false` if there was none.
    pub async fn delete_plan(&self) -> Result<bool, WorkspaceError> {
        self.remove(PLAN).await
    }
}
