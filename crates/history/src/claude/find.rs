//! Finds sessions: a folder for each project, a file for each session.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use grove_transcript::{FileLocation, TranscriptSource, TranscriptWorkspace};
use serde_json::Value;

use crate::error::HistoryError;
use crate::files;
use crate::json::JsonMembers;
use crate::limits::MAX_SMALL_FILE;
use crate::reader::{Hints, MissingSession, SessionLocation, SessionPreview, StoreListing, StoreRoot};

/// The list that newer versions keep in a project's folder.
const INDEX: &str = "sessions-index.json";

/// A session in that list.
#[derive(Default)]
struct IndexRecord {
    preview: SessionPreview,
    workspace: TranscriptWorkspace,
    /// Its file, if the list has it.
    path: Option<PathBuf>,
}

pub(super) fn find(root: &StoreRoot, hints: Hints) -> StoreListing {
    let mut listing = StoreListing::default();
    for project in listing.names(&root.folder) {
        let folder = root.folder.join(project);
        let names = listing.names(&folder);
        let mut listed = match hints {
            Hints::Read if names.iter().any(|name| name == INDEX) => listed(&folder.join(INDEX), &mut listing),
            Hints::Read | Hints::Skip => None,
        };
        for name in names {
            // A subagent's log belongs to the session that started it.
            let Some(id) = name.strip_suffix(".jsonl").filter(|id| !id.starts_with("agent-")) else { continue };
            let is_listed = listed.as_ref().map(|listed| listed.contains_key(id));
            let IndexRecord { mut preview, workspace, .. } =
                listed.as_mut().and_then(|listed| listed.remove(id)).unwrap_or_default();
            preview.listed = is_listed;
            let location =
                SessionLocation { workspace, preview, ..SessionLocation::without_file(TranscriptSource::Claude, id) };
            listing.add_file(root, folder.join(&name), location);
        }
        for (id, listed) in listed.into_iter().flatten() {
            if !listed.path.is_some_and(|path| path.exists()) {
                let path = folder.join(format!("{id}.jsonl"));
                listing.lost.push(MissingSession { id, path });
            }
        }
    }
    listing
}

/// A session by its file, with its data from the list in its folder.
pub(super) fn locate(path: &Path) -> Result<SessionLocation, HistoryError> {
    let alone = SessionLocation::of_file(TranscriptSource::Claude, path)?;
    let index = path.parent().map(|folder| folder.join(INDEX)).filter(|index| index.is_file());
    let listed = index.and_then(|index| listed(&index, &mut StoreListing::default()));
    let is_listed = listed.as_ref().map(|listed| listed.contains_key(&alone.id));
    let IndexRecord { mut preview, workspace, .. } =
        listed.and_then(|mut listed| listed.remove(&alone.id)).unwrap_or_default();
    preview.listed = is_listed;
    preview.modified_at = preview.modified_at.or(alone.preview.modified_at);
    Ok(SessionLocation { workspace, preview, ..alone })
}

/// The program's own list of sessions.
fn listed(path: &Path, listing: &mut StoreListing) -> Option<HashMap<String, IndexRecord>> {
    let bytes = match files::read(path, MAX_SMALL_FILE) {
        Ok(bytes) => bytes,
        Err(problem) => {
            listing.problems.push(problem);
            return None;
        }
    };
    let list: Value = match serde_json::from_slice(&bytes) {
        Ok(list) => list,
        Err(error) => {
            listing.problems.push(HistoryError::malformed(path, error));
            return None;
        }
    };
    let entries = list.get("entries").and_then(Value::as_array)?;
    let entries = entries.iter().filter_map(|entry| {
        let mut entry = JsonMembers::of(entry.clone()).ok()?;
        let id = entry.string("sessionId")?;
        // The log has a better first message.
        let title =
            ["customTitle", "summary"].iter().find_map(|key| entry.string(key).filter(|title| !title.is_empty()));
        let preview = SessionPreview {
            title,
            created_at: entry.time("created"),
            modified_at: entry.time("modified"),
            listed: None,
        };
        let workspace = TranscriptWorkspace {
            folders: entry.string("projectPath").map(FileLocation::local).into_iter().collect(),
            branch: entry.string("gitBranch").filter(|branch| !branch.is_empty()),
            ..TranscriptWorkspace::default()
        };
        let path = entry.string("fullPath").map(PathBuf::from);
        Some((id, IndexRecord { preview, workspace, path }))
    });
    Some(entries.collect())
}
