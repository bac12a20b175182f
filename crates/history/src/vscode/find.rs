//! Finding sessions: files are what counts, the tool's own list only adds to what is known of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::index::{self, Index};
use super::uri::place_of;
use super::workspace::{self, WorkspaceFolder};
use crate::error::HistoryError;
use crate::files;
use crate::normal::{Source, Workspace};
use crate::reader::{FileMark, Finding, Headline, Hints, Located, Lost, Root};

const STORAGE: &str = "workspaceStorage";
const GLOBAL: &str = "globalStorage";
const SESSIONS: &str = "chatSessions";
const EDITING: &str = "chatEditingSessions";
/// Folders of sessions that belong to no workspace.
const WITHOUT_WORKSPACE: &[&str] = &["emptyWindowChatSessions", "transferredChatSessions"];

/// The workspaces below a `User` folder, those whose `workspace.json` is missing included.
pub fn workspaces(root: &Root) -> Result<Vec<WorkspaceFolder>, HistoryError> {
    let mut found = Vec::new();
    let mut problems = Vec::new();
    each_workspace(root, &mut problems, |workspace| found.push(workspace));
    match problems.into_iter().next() {
        Some(problem) if found.is_empty() => Err(problem),
        _ => Ok(found),
    }
}

/// The sessions of a workspace.
pub fn sessions(root: &Root, workspace: &WorkspaceFolder, hints: Hints) -> Finding {
    let mut finding = Finding::default();
    let index = read_index(&workspace.folder, hints, &mut finding);
    let folder = workspace.folder.join(SESSIONS);
    collect(root, &folder, &workspace.workspace, index.as_ref(), &mut finding);
    finding.lost = lost(&[folder], index.as_ref());
    finding
}

/// The folder of a session's editing session, where it has one.
pub fn editing_folder(located: &Located) -> Option<PathBuf> {
    let storage = located.path.parent()?.parent()?;
    let folder = storage.join(EDITING).join(&located.id);
    folder.is_dir().then_some(folder)
}

pub(crate) fn find(root: &Root, hints: Hints) -> Finding {
    let mut finding = Finding::default();
    let mut problems = Vec::new();
    each_workspace(root, &mut problems, |workspace| {
        let Finding { sessions, lost, problems } = sessions(root, &workspace, hints);
        finding.sessions.extend(sessions);
        finding.lost.extend(lost);
        finding.problems.extend(problems);
    });
    finding.problems.extend(problems);
    let mut globals = vec![root.folder.join(GLOBAL)];
    let profiles = root.folder.join("profiles");
    match files::names(&profiles) {
        Ok(names) => globals.extend(names.iter().map(|name| profiles.join(name).join(GLOBAL))),
        Err(problem) => finding.problems.push(problem),
    }
    for global in globals {
        let index = read_index(&global, hints, &mut finding);
        let folders: Vec<PathBuf> = WITHOUT_WORKSPACE.iter().map(|name| global.join(name)).collect();
        for folder in &folders {
            collect(root, folder, &Workspace::default(), index.as_ref(), &mut finding);
        }
        finding.lost.extend(lost(&folders, index.as_ref()));
    }
    finding
}

fn each_workspace(root: &Root, problems: &mut Vec<HistoryError>, mut each: impl FnMut(WorkspaceFolder)) {
    let storage = root.folder.join(STORAGE);
    let names = files::names(&storage).unwrap_or_else(|problem| {
        problems.push(problem);
        Vec::new()
    });
    for hash in names {
        let folder = storage.join(&hash);
        if folder.is_dir() {
            let workspace = workspace::read(&folder, problems);
            each(WorkspaceFolder { hash, folder, workspace });
        }
    }
}

/// A list that cannot be read is told, and hides no session.
fn read_index(folder: &Path, hints: Hints, finding: &mut Finding) -> Option<Index> {
    if hints == Hints::Leave {
        return None;
    }
    index::read(folder).unwrap_or_else(|problem| {
        finding.problems.push(problem);
        None
    })
}

/// What the list has and none of the folders does. VS Code lists sessions that nobody said anything in, and writes no file of
/// them.
fn lost(folders: &[PathBuf], index: Option<&Index>) -> Vec<Lost> {
    let listed = index.into_iter().flatten().filter(|(_, entry)| !entry.is_empty);
    let lost = listed.filter_map(|(id, _)| {
        let file = |folder: &PathBuf, end: &str| folder.join(format!("{id}.{end}"));
        let is_there = folders.iter().any(|folder| file(folder, "jsonl").exists() || file(folder, "json").exists());
        let path = folders.first().filter(|_| !is_there).map(|folder| file(folder, "jsonl"))?;
        Some(Lost { id: id.clone(), path })
    });
    lost.collect()
}

/// The sessions in a folder. Where both forms of a session are there the log is the newer one.
fn collect(root: &Root, folder: &Path, workspace: &Workspace, index: Option<&Index>, finding: &mut Finding) {
    let names = match files::names(folder) {
        Ok(names) => names,
        Err(problem) => return finding.problems.push(problem),
    };
    let mut forms: BTreeMap<&str, (Option<&str>, Option<&str>)> = BTreeMap::new();
    for name in &names {
        if let Some(id) = name.strip_suffix(".jsonl") {
            forms.entry(id).or_default().0 = Some(name);
        } else if let Some(id) = name.strip_suffix(".json") {
            forms.entry(id).or_default().1 = Some(name);
        }
    }
    for (id, (log, flat)) in forms {
        let Some(name) = log.or(flat) else { continue };
        let path = folder.join(name);
        let mark = match files::stat(&path) {
            Ok(metadata) => FileMark::of(&metadata),
            Err(problem) => {
                finding.problems.push(problem);
                continue;
            }
        };
        let entry = index.and_then(|index| index.get(id));
        let mut workspace = workspace.clone();
        if let Some(folder) = entry.and_then(|entry| place_of(entry.folder.as_ref()?)) {
            workspace.folders = vec![folder];
        }
        finding.sessions.push(Located {
            product: root.product.clone(),
            path,
            older: log.and(flat).map(|flat| folder.join(flat)),
            mark,
            workspace,
            headline: Headline {
                title: entry.and_then(|entry| entry.title.clone()),
                created_at: entry.and_then(|entry| entry.created_at),
                modified_at: entry.and_then(|entry| entry.modified_at).or(Some(mark.modified_at)),
                listed: index.map(|_| entry.is_some_and(|entry| !entry.is_empty)),
            },
            ..Located::nowhere(Source::VsCode, id)
        });
    }
}
