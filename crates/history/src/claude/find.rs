//! Finding sessions: a folder for each project, a file for each session.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::HistoryError;
use crate::files;
use crate::json::Members;
use crate::limits::MAX_SMALL_FILE;
use crate::normal::{Place, Source, Workspace};
use crate::reader::{Finding, Headline, Hints, Located, Lost, Root};

/// The list that newer versions keep in a project's folder.
const INDEX: &str = "sessions-index.json";

/// What that list says of a session.
#[derive(Default)]
struct Listed {
    headline: Headline,
    workspace: Workspace,
    /// Its file, where the list says so.
    path: Option<PathBuf>,
}

pub(super) fn find(root: &Root, hints: Hints) -> Finding {
    let mut finding = Finding::default();
    for project in finding.names(&root.folder) {
        let folder = root.folder.join(project);
        let names = finding.names(&folder);
        let mut listed = match hints {
            Hints::Read if names.iter().any(|name| name == INDEX) => listed(&folder.join(INDEX), &mut finding),
            Hints::Read | Hints::Leave => None,
        };
        for name in names {
            // A subagent's log belongs to the session that started it.
            let Some(id) = name.strip_suffix(".jsonl").filter(|id| !id.starts_with("agent-")) else { continue };
            let is_listed = listed.as_ref().map(|listed| listed.contains_key(id));
            let Listed { mut headline, workspace, .. } =
                listed.as_mut().and_then(|listed| listed.remove(id)).unwrap_or_default();
            headline.listed = is_listed;
            let located = Located { workspace, headline, ..Located::nowhere(Source::Claude, id) };
            finding.add_file(root, folder.join(&name), located);
        }
        for (id, listed) in listed.into_iter().flatten() {
            if !listed.path.is_some_and(|path| path.exists()) {
                let path = folder.join(format!("{id}.jsonl"));
                finding.lost.push(Lost { id, path });
            }
        }
    }
    finding
}

/// A session by its file, with what the list in its folder says of it.
pub(super) fn locate(path: &Path) -> Result<Located, HistoryError> {
    let alone = Located::of_file(Source::Claude, path)?;
    let index = path.parent().map(|folder| folder.join(INDEX)).filter(|index| index.is_file());
    let listed = index.and_then(|index| listed(&index, &mut Finding::default()));
    let is_listed = listed.as_ref().map(|listed| listed.contains_key(&alone.id));
    let Listed { mut headline, workspace, .. } =
        listed.and_then(|mut listed| listed.remove(&alone.id)).unwrap_or_default();
    headline.listed = is_listed;
    headline.modified_at = headline.modified_at.or(alone.headline.modified_at);
    Ok(Located { workspace, headline, ..alone })
}

/// What the program's own list says of each session.
fn listed(path: &Path, finding: &mut Finding) -> Option<HashMap<String, Listed>> {
    let bytes = match files::read(path, MAX_SMALL_FILE) {
        Ok(bytes) => bytes,
        Err(problem) => {
            finding.problems.push(problem);
            return None;
        }
    };
    let list: Value = match serde_json::from_slice(&bytes) {
        Ok(list) => list,
        Err(error) => {
            finding.problems.push(HistoryError::malformed(path, error));
            return None;
        }
    };
    let entries = list.get("entries").and_then(Value::as_array)?;
    let entries = entries.iter().filter_map(|entry| {
        let mut entry = Members::of(entry.clone()).ok()?;
        let id = entry.string("sessionId")?;
        // What was said first the log tells better.
        let title =
            ["customTitle", "summary"].iter().find_map(|key| entry.string(key).filter(|title| !title.is_empty()));
        let headline =
            Headline { title, created_at: entry.time("created"), modified_at: entry.time("modified"), listed: None };
        let workspace = Workspace {
            folders: entry.string("projectPath").map(Place::local).into_iter().collect(),
            branch: entry.string("gitBranch").filter(|branch| !branch.is_empty()),
            ..Workspace::default()
        };
        let path = entry.string("fullPath").map(PathBuf::from);
        Some((id, Listed { headline, workspace, path }))
    });
    Some(entries.collect())
}
