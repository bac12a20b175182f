//! The artifacts that a fork copies beside its log: manifest, plan, checkpoints, files, research, database.
//!
//! Every step can be interrupted and run again: finished steps are noted in the new folder until the fork's log is
//! there, which comes last.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use grove_core::{Session, SessionTitle, Timestamp};
use grove_fs::copy::{
    self, Boundary, CopyError, CopyPurpose, CopyReport, FolderCopy, Fork, ForkScope, KeepAllLines, PlanAtTime,
    SessionFolder,
};
use grove_fs::workspace::database::LocalDatabase;
use grove_fs::workspace::{Field, Workspace, WorkspaceError};
use grove_fs::{FsError, SessionFs};

use super::checkpoints::LoggedCheckpoints;
use super::copy::CopyJob;
use super::paths;

/// Copies a session's artifacts into the folder of a fork, or completes that.
///
/// `named` are the checkpoints that its log names, and those that only its source's does.
pub(crate) async fn copy(fork: &CopyJob, named: &LoggedCheckpoints) -> Result<CopyReport, CopyError> {
    let (from, to) = (fork.from.as_ref(), fork.to.as_ref());
    let (from_folder, to_folder) = (paths::folder(&fork.origin.session), paths::folder(&fork.session));
    let (from_folder, to_folder) = (from_folder.as_str(), to_folder.as_str());
    // A session that was never written has no folder yet.
    if !from.exists(from_folder).await? {
        return Ok(CopyReport::default());
    }
    let at = moment(fork.at);
    let boundary = match fork.origin.log.until {
        Some(until) => Some(Boundary {
            last_checkpoint: named.last(),
            at: UNIX_EPOCH + Duration::from_millis(until.0),
            plan: plan_then(from, from_folder, until).await?,
        }),
        None => None,
    };
    let database = LocalDatabase::of(from, from_folder);
    let purpose = CopyPurpose::Fork(Fork {
        id: fork.session.to_string(),
        name: given_name(from, from_folder, &fork.title).await,
        at,
        parts: ForkScope::Artifacts,
        logs: BTreeMap::new(),
        boundary,
    });
    let copying = FolderCopy {
        from: SessionFolder { store: from, folder: from_folder, database: database.as_ref() },
        to: SessionFolder { store: to, folder: to_folder, database: None },
        purpose,
    };
    let copied = copying.run(&mut KeepAllLines).await?;
    // The source may be on another branch by now than the forked one.
    if !named.is_empty() {
        let failed = |error| CopyError::Workspace { path: to_folder.to_owned(), error };
        let workspace = Workspace::of(to, Some(to_folder)).map_err(failed)?;
        let listed = named.on_branch.clone();
        workspace.relist_checkpoints(listed, &named.elsewhere, at).await.map_err(failed)?;
    }
    Ok(copied)
}

/// The plan at an earlier time. An unreadable history counts as none.
async fn plan_then(from: &dyn SessionFs, folder: &str, until: Timestamp) -> Result<PlanAtTime, FsError> {
    // As in every copy, links are not followed.
    let from = from.without_links();
    let plan = async { Workspace::of(from.as_ref(), Some(folder))?.plan_at(until.0).await };
    match plan.await {
        Ok(plan) => Ok(plan),
        Err(WorkspaceError::Fs(error)) => Err(error),
        Err(_) => Ok(PlanAtTime::Unknown),
    }
}

/// Removes the note about the copy of a complete fork.
pub async fn settle(to: &dyn SessionFs, to_folder: &str) -> Result<(), FsError> {
    match copy::settle(to, to_folder).await {
        Err(CopyError::Fs(error)) => Err(error),
        // A cancelled copy stays as far as it came.
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The name that the user gave the fork. One derived from its source does not count.
async fn given_name(from: &dyn SessionFs, folder: &str, title: &str) -> Option<String> {
    let manifest = Workspace::of(from, Some(folder)).ok()?.manifest().await.ok().flatten();
    let name =
        manifest.as_ref().and_then(|manifest| manifest.text(Field::Name).ok().flatten()).unwrap_or(Session::UNTITLED);
    let is_given = title != name && title != SessionTitle::given(name).of_fork().text();
    Some(title.to_owned()).filter(|_| is_given)
}

/// The host's clock in the form of a manifest.
pub fn moment(at: Timestamp) -> jiff::Timestamp {
    let millis = i64::try_from(at.0).ok();
    millis.and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok()).unwrap_or(jiff::Timestamp::MAX)
}
