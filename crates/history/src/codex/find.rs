//! Finds rollouts: a folder for each day, and one for archived ones.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use grove_transcript::TranscriptSource;

use crate::error::HistoryError;
use crate::files;
use crate::json::JsonMembers;
use crate::limits::MAX_SMALL_FILE;
use crate::reader::{Hints, MissingSession, SessionLocation, SessionPreview, StoreListing, StoreRoot};

/// The list of named sessions. It has no others, so a session that is not in it is fine.
const INDEX: &str = "session_index.jsonl";
/// The depth of rollouts: year, month, day.
const DEPTH: usize = 3;

/// The session's id from a file name, and true if the file is compressed; `None` for any other file.
pub(super) fn rollout(name: &str) -> Option<(&str, bool)> {
    let rest = name.strip_prefix("rollout-")?;
    let (stem, is_packed) = match rest.strip_suffix(".jsonl.zst") {
        Some(stem) => (stem, true),
        None => (rest.strip_suffix(".jsonl")?, false),
    };
    // A time, which has dashes too, followed by an id of 36 characters.
    let id = stem.len().checked_sub(36).and_then(|at| stem.get(at..)).unwrap_or(stem);
    Some((id, is_packed))
}

pub(super) fn find(root: &StoreRoot, hints: Hints) -> StoreListing {
    let mut listing = StoreListing::default();
    let titles = match hints {
        Hints::Read => titles(&root.folder, &mut listing),
        Hints::Skip => HashMap::new(),
    };
    let mut open = vec![(root.folder.join("sessions"), 0), (root.folder.join("archived_sessions"), 0)];
    while let Some((folder, depth)) = open.pop() {
        let names = listing.names(&folder);
        for name in &names {
            let path = folder.join(name);
            let Some((id, is_packed)) = rollout(name) else {
                if depth < DEPTH && path.is_dir() {
                    open.push((path, depth + 1));
                }
                continue;
            };
            // During compression both exist.
            if is_packed && names.iter().any(|other| name.strip_suffix(".zst") == Some(other)) {
                continue;
            }
            let preview = SessionPreview { title: titles.get(id).cloned(), ..SessionPreview::default() };
            listing.add_file(
                root,
                path,
                SessionLocation { preview, ..SessionLocation::without_file(TranscriptSource::Codex, id) },
            );
        }
    }
    let found: HashSet<&str> = listing.sessions.iter().map(|location| location.id.as_str()).collect();
    let lost = titles.into_keys().filter(|id| !found.contains(id.as_str()));
    listing.lost = lost.map(|id| MissingSession { id, path: root.folder.join(INDEX) }).collect();
    listing.lost.sort_by(|one, other| one.id.cmp(&other.id));
    listing.sessions.sort_by(|one, other| one.path.cmp(&other.path));
    listing
}

/// A rollout by its file, with the session's name.
pub(super) fn locate(path: &Path) -> Result<SessionLocation, HistoryError> {
    let mut location = SessionLocation::of_file(TranscriptSource::Codex, path)?;
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    if let Some((id, _)) = rollout(&name) {
        id.clone_into(&mut location.id);
    }
    let is_store =
        |folder: &&Path| folder.file_name().is_some_and(|name| name == "sessions" || name == "archived_sessions");
    let home = path.ancestors().skip(1).take(DEPTH + 1).find(is_store).and_then(Path::parent);
    location.preview.title = home.and_then(|home| titles(home, &mut StoreListing::default()).remove(&location.id));
    Ok(location)
}

/// The sessions' names: a log, in which the last line counts.
fn titles(folder: &Path, listing: &mut StoreListing) -> HashMap<String, String> {
    let path = folder.join(INDEX);
    if !path.is_file() {
        return HashMap::new();
    }
    let bytes = match files::read(&path, MAX_SMALL_FILE) {
        Ok(bytes) => bytes,
        Err(problem) => {
            listing.problems.push(problem);
            return HashMap::new();
        }
    };
    let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| {
        let mut line = JsonMembers::of(serde_json::from_slice(line).ok()?).ok()?;
        Some((line.string("id")?, line.string("thread_name").filter(|name| !name.is_empty())?))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollouts_name_says_the_sessions_id() {
        let id = "01a1e039-1686-7a20-b7e3-98dd8870ad1b";
        let name = format!("rollout-2026-11-15T17-20-00-{id}.jsonl");
        assert_eq!(rollout(&name), Some((id, false)));
        assert_eq!(rollout(&format!("{name}.zst")), Some((id, true)));
        assert_eq!(rollout("rollout-x.jsonl"), Some(("x", false)));
        assert_eq!(rollout("notes.jsonl"), None);
    }
}
