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
/// The folder of sessions that belong to no workspace.
const EMPTY_WINDOW: &str = "emptyWindowChatSessions";
/// The folder of sessions on their way to another window. The index does not list them.
const TRANSFERRED: &str = "transferredChatSessions";

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
    finding.lost = lost(&folder, index.as_ref());
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
        let folder = global.join(EMPTY_WINDOW);
        collect(root, &folder, &Workspace::default(), index.as_ref(), &mut finding);
        collect(root, &global.join(TRANSFERRED), &Workspace::default(), None, &mut finding);
        finding.lost.extend(lost(&folder, index.as_ref()));
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

/// The sessions that the index lists and the folder lacks. Empty sessions and those of extensions are listed without a file.
fn lost(folder: &Path, index: Option<&Index>) -> Vec<Lost> {
    let listed = index.into_iter().flatten().filter(|(_, entry)| !entry.is_empty && !entry.is_external);
    let lost = listed.filter_map(|(id, _)| {
        let file = |end: &str| folder.join(format!("{id}.{end}"));
        let is_there = file("jsonl").exists() || file("json").exists();
        (!is_there).then(|| Lost { id: id.clone(), path: file("jsonl") })
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
        let forms = Forms { id, path: folder.join(name), older: log.and(flat).map(|flat| folder.join(flat)) };
        match located(forms, workspace, index) {
            Ok(located) => finding.sessions.push(Located { product: root.product.clone(), ..located }),
            Err(problem) => finding.problems.push(problem),
        }
    }
}

/// The files of one session.
struct Forms<'a> {
    id: &'a str,
    path: PathBuf,
    older: Option<PathBuf>,
}

/// A session with what its workspace and the index say of it.
fn located(forms: Forms<'_>, workspace: &Workspace, index: Option<&Index>) -> Result<Located, HistoryError> {
    let Forms { id, path, older } = forms;
    let mark = FileMark::of(&files::stat(&path)?);
    let entry = index.and_then(|index| index.get(id));
    let mut workspace = workspace.clone();
    if let Some(folder) = entry.and_then(|entry| place_of(entry.folder.as_ref()?)) {
        workspace.folders = vec![folder];
    }
    let headline = Headline {
        title: entry.and_then(|entry| entry.title.clone()),
        created_at: entry.and_then(|entry| entry.created_at),
        modified_at: entry.and_then(|entry| entry.modified_at).or(Some(mark.modified_at)),
        listed: index.map(|_| entry.is_some_and(|entry| !entry.is_empty)),
    };
    let located = Located { path, older, mark, workspace, headline, ..Located::nowhere(Source::VsCode, id) };
    // The editing session is written behind the session's own file.
    let editing = editing_folder(&located).and_then(|folder| files::stat(&folder.join("state.json")).ok());
    let beside_written = editing.map(|metadata| FileMark::of(&metadata).modified_at).unwrap_or_default();
    Ok(Located { beside_written, ..located })
}

/// A session by its file: in a store it has the same workspace and title as in a list. The index and `workspace.json` are
/// hints, so what is wrong with them is no error.
pub(crate) fn locate(path: &Path) -> Result<Located, HistoryError> {
    let alone = Located::of_file(Source::VsCode, path)?;
    let name = |folder: &Path| folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let Some(folder) = path.parent() else { return Ok(alone) };
    let (Some(kind), Some(storage)) = (name(folder), folder.parent()) else { return Ok(alone) };
    let index = || index::read(storage).unwrap_or_default();
    let is_in = |name_of_parent: &str| storage.parent().and_then(name).as_deref() == Some(name_of_parent);
    let (workspace, index) = match kind.as_str() {
        SESSIONS if is_in(STORAGE) => (workspace::read(storage, &mut Vec::new()), index()),
        EMPTY_WINDOW => (Workspace::default(), index()),
        _ => return Ok(alone),
    };
    let flat = path.with_extension("json");
    let older = (path != flat && flat.is_file()).then_some(flat);
    located(Forms { id: &alone.id, path: path.to_owned(), older }, &workspace, index.as_ref())
}
