//! Checkpoints: the summary of each compaction, in a file of its own.
//!
//! The log decides which of them are listed: those whose compactions are on the path to the leaf. So moving back
//! removes the later ones from the list, and returning restores them; their files stay.

use grove_core::*;
use grove_fs::SessionFs;
use grove_fs::workspace::{FilesFolder, Workspace, WorkspaceError};
use grove_storage::artifacts::moment;
use grove_storage::checkpoints::{self, title_of};
use grove_storage::paths;
use serde_json::{Value, json};

use crate::sequencer::HostStopped;
use crate::session::SessionTask;
use crate::session::tree::TreeError;

/// A checkpoint that was written for a compaction which is not in the log yet.
pub(in crate::session) struct NewCheckpoint {
    number: u32,
    path: String,
}

impl SessionTask {
    /// Writes the checkpoint of a compaction. A failure does not prevent the compaction.
    pub(in crate::session) async fn add_checkpoint(&mut self, summary: &str) -> Option<NewCheckpoint> {
        let fs = self.logs.store();
        let folder = paths::folder(&self.tip.id);
        let at = moment(self.session_context.env.clock.now());
        let added = async {
            let workspace = Workspace::of(fs.as_ref(), Some(&folder))?;
            workspace.add_checkpoint(&title_of(summary), summary, at).await
        };
        // The list has changed the manifest, too.
        self.workspace.manifest.changed();
        match added.await {
            Ok(added) => Some(NewCheckpoint {
                number: added.number,
                path: format!("{}/{}", paths::checkpoints(&self.tip.id), added.file),
            }),
            Err(error) => {
                tracing::warn!(
                    session = %self.tip.id, %error,
                    "a compaction has no checkpoint: it could not be written"
                );
                None
            }
        }
    }

    /// Removes a checkpoint whose compaction failed.
    pub(in crate::session) async fn drop_checkpoint(&mut self, checkpoint: &NewCheckpoint) {
        let fs = self.logs.store();
        let folder = paths::folder(&self.tip.id);
        let at = moment(self.session_context.env.clock.now());
        let taken = async {
            let workspace = Workspace::of(fs.as_ref(), Some(&folder))?;
            workspace.relist_checkpoints(Vec::new(), &[checkpoint.number], at).await?;
            fs.rm(&checkpoint.path, grove_fs::Removal::One).await?;
            Ok::<_, WorkspaceError>(())
        };
        if let Err(error) = taken.await {
            tracing::warn!(
                session = %self.tip.id, %error,
                "a checkpoint without a compaction could not be deleted"
            );
        }
    }

    /// Lists the checkpoints whose compactions are on the path to a chat's leaf, and none of its others.
    pub(in crate::session) async fn relist_checkpoints(&mut self, chat: &ChatId) -> Result<(), HostStopped> {
        self.workspace.is_listed = true;
        let fs = self.logs.store();
        let folder = paths::folder(&self.tip.id);
        let at = moment(self.session_context.env.clock.now());
        let listed = async {
            let Some(seen) = self.look(chat).await? else { return Ok(None) };
            let named = checkpoints::named(fs.as_ref(), &seen.path, &seen.index, seen.index.leaf()).await?;
            if named.is_empty() {
                return Ok(None);
            }
            let workspace = Workspace::of(fs.as_ref(), Some(&folder)).map_err(TreeError::Workspace)?;
            let listed = workspace.relist_checkpoints(named.on_branch, &named.elsewhere, at).await;
            Ok::<_, TreeError>(Some(listed.map_err(TreeError::Workspace)?))
        };
        match listed.await {
            Ok(None) => Ok(()),
            Ok(Some(count)) => {
                self.workspace.manifest.changed();
                self.checkpoints_listed(count).await
            }
            Err(error) => {
                // It is compared again before the folder is saved next.
                self.workspace.is_listed = false;
                tracing::warn!(session = %self.tip.id, %error, "the list of checkpoints is not that of the branch");
                Ok(())
            }
        }
    }

    /// Lists checkpoints once, in case a killed host did not get to it.
    pub(in crate::session) async fn relist_checkpoints_once(&mut self) -> Result<(), HostStopped> {
        let has_any = self.tip.details.workspace.is_some_and(|workspace| workspace.checkpoints > 0);
        if self.workspace.is_listed || !has_any {
            return Ok(());
        }
        self.relist_checkpoints(&Session::MAIN_CHAT.into()).await
    }

    async fn checkpoints_listed(&mut self, count: usize) -> Result<(), HostStopped> {
        let checkpoints = u32::try_from(count).unwrap_or(u32::MAX);
        let workspace = WorkspaceDetails { checkpoints, ..self.tip.details.workspace.unwrap_or_default() };
        self.publish_workspace(workspace).await
    }
}

impl NewCheckpoint {
    /// The details of a compaction's entry: the given ones, and the checkpoint.
    pub(in crate::session) fn added_to(&self, details: Option<Value>) -> Value {
        let mut details = match details {
            Some(Value::Object(details)) => details,
            Some(other) => serde_json::Map::from_iter([("details".to_owned(), other)]),
            None => serde_json::Map::new(),
        };
        details.insert("checkpointNumber".to_owned(), json!(self.number));
        details.insert("checkpointPath".to_owned(), json!(self.path));
        details.into()
    }
}

/// Reads the workspace that was made by another program or host.
pub(crate) async fn scan_workspace(fs: &dyn SessionFs, folder: &str) -> Result<WorkspaceDetails, WorkspaceError> {
    let workspace = Workspace::of(fs, Some(folder))?;
    let millis = |time: std::time::SystemTime| {
        let since = time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    };
    let mut files = None;
    for folder in [FilesFolder::Files, FilesFolder::Research] {
        let newest = workspace.files(folder).await?.files.into_iter().map(|file| millis(file.modified)).max();
        files = files.max(newest);
    }
    let checkpoints = workspace.checkpoints().await?.len();
    Ok(WorkspaceDetails {
        plan: workspace.plan_written().await?.map(millis),
        files,
        checkpoints: u32::try_from(checkpoints).unwrap_or(u32::MAX),
    })
}
