//! Finds sessions: files decide, the tool's own list only adds data.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use grove_transcript::uri::location_from;
use grove_transcript::{TranscriptSource, TranscriptWorkspace};

use super::index::{self, SessionIndex};
use super::workspace::{self, WorkspaceFolder};
use crate::error::HistoryError;
use crate::files;
use crate::reader::{FileMark, Hints, MissingSession, SessionLocation, SessionPreview, StoreListing, StoreRoot};

const STORAGE: &str = "workspaceStorage";
const GLOBAL: &str = "globalStorage";
const SESSIONS: &str = "chatSessions";
const EDITING: &str = "chatEditingSessions";
/// The folder of sessions without a workspace.
const EMPTY_WINDOW: &str = "emptyWindowChatSessions";
/// The folder of sessions in transfer to another window. The index does not list them.
const TRANSFERRED: &str = "transferredChatSessions";

/// The workspaces below a `User` folder, those whose `workspace.json` is missing included.
pub fn workspaces(root: &StoreRoot) -> Result<Vec<WorkspaceFolder>, HistoryError> {
    let mut found = Vec::new();
    let mut problems = Vec::new();
    each_workspace(root, &mut problems, |workspace| found.push(workspace));
    match problems.into_iter().next() {
        Some(problem) if found.is_empty() => Err(problem),
        _ => Ok(found),
    }
}

/// The sessions of a workspace.
pub fn sessions(root: &StoreRoot, workspace: &WorkspaceFolder, hints: Hints) -> StoreListing {
    let mut listing = StoreListing::default();
    let index = read_index(&workspace.folder, hints, &mut listing);
    let folder = workspace.folder.join(SESSIONS);
    collect(root, &folder, &workspace.workspace, index.as_ref(), &mut listing);
    listing.lost = lost(&folder, index.as_ref());
    listing
}

/// The folder of a session's editing session, if it has one.
pub fn editing_folder(location: &SessionLocation) -> Option<PathBuf> {
    let storage = location.path.parent()?.parent()?;
    let folder = storage.join(EDITING).join(&location.id);
    folder.is_dir().then_some(folder)
}

pub(crate) fn find(root: &StoreRoot, hints: Hints) -> StoreListing {
    let mut listing = StoreListing::default();
    let mut problems = Vec::new();
    each_workspace(root, &mut problems, |workspace| {
        let StoreListing { sessions, lost, problems } = sessions(root, &workspace, hints);
        listing.sessions.extend(sessions);
        listing.lost.extend(lost);
        listing.problems.extend(problems);
    });
    listing.problems.extend(problems);
    let mut globals = vec![root.folder.join(GLOBAL)];
    let profiles = root.folder.join("profiles");
    match files::names(&profiles) {
        Ok(names) => globals.extend(names.iter().map(|name| profiles.join(name).join(GLOBAL))),
        Err(problem) => listing.problems.push(problem),
    }
    for global in globals {
        let index = read_index(&global, hints, &mut listing);
        let folder = global.join(EMPTY_WINDOW);
        collect(root, &folder, &TranscriptWorkspace::default(), index.as_ref(), &mut listing);
        collect(root, &global.join(TRANSFERRED), &TranscriptWorkspace::default(), None, &mut listing);
        listing.lost.extend(lost(&folder, index.as_ref()));
    }
    listing
}

fn each_workspace(root: &StoreRoot, problems: &mut Vec<HistoryError>, mut each: impl FnMut(WorkspaceFolder)) {
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

/// Reads the index. An unreadable one is reported, and hides no session.
fn read_index(folder: &Path, hints: Hints, listing: &mut StoreListing) -> Option<SessionIndex> {
    if hints == Hints::Skip {
        return None;
    }
    index::read(folder).unwrap_or_else(|problem| {
        listing.problems.push(problem);
        None
    })
}

/// The sessions in the index without a file. Empty sessions and those of extensions are listed without one.
fn lost(folder: &Path, index: Option<&SessionIndex>) -> Vec<MissingSession> {
    let listed = index.into_iter().flatten().filter(|(_, entry)| !entry.is_empty && !entry.is_external);
    let lost = listed.filter_map(|(id, _)| {
        let file = |end: &str| folder.join(format!("{id}.{end}"));
        let is_there = file("jsonl").exists() || file("json").exists();
        (!is_there).then(|| MissingSession { id: id.clone(), path: file("jsonl") })
    });
    lost.collect()
}

/// The sessions in a folder. If both forms of a session exist the log is the newer one.
fn collect(
    root: &StoreRoot,
    folder: &Path,
    workspace: &TranscriptWorkspace,
    index: Option<&SessionIndex>,
    listing: &mut StoreListing,
) {
    let names = match files::names(folder) {
        Ok(names) => names,
        Err(problem) => return listing.problems.push(problem),
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
        let forms = SessionFiles { id, path: folder.join(name), older: log.and(flat).map(|flat| folder.join(flat)) };
        match location(forms, workspace, index) {
            Ok(location) => listing.sessions.push(SessionLocation { product: root.product.clone(), ..location }),
            Err(problem) => listing.problems.push(problem),
        }
    }
}

/// The files of one session.
struct SessionFiles<'a> {
    id: &'a str,
    path: PathBuf,
    older: Option<PathBuf>,
}

/// A session with the data of its workspace and of the index.
fn location(
    forms: SessionFiles<'_>,
    workspace: &TranscriptWorkspace,
    index: Option<&SessionIndex>,
) -> Result<SessionLocation, HistoryError> {
    let SessionFiles { id, path, older } = forms;
    let mark = FileMark::of(&files::stat(&path)?);
    let entry = index.and_then(|index| index.get(id));
    let mut workspace = workspace.clone();
    if let Some(folder) = entry.and_then(|entry| location_from(entry.folder.as_ref()?)) {
        workspace.folders = vec![folder];
    }
    let preview = SessionPreview {
        title: entry.and_then(|entry| entry.title.clone()),
        created_at: entry.and_then(|entry| entry.created_at),
        modified_at: entry.and_then(|entry| entry.modified_at).or(Some(mark.modified_at)),
        listed: index.map(|_| entry.is_some_and(|entry| !entry.is_empty)),
    };
    let location = SessionLocation {
        path,
        older,
        mark,
        workspace,
        preview,
        ..SessionLocation::without_file(TranscriptSource::VsCode, id)
    };
    // The editing session is written after the session's own file.
    let editing = editing_folder(&location).and_then(|folder| files::stat(&folder.join("state.json")).ok());
    let sidecar_modified_at = editing.map(|metadata| FileMark::of(&metadata).modified_at).unwrap_or_default();
    Ok(SessionLocation { sidecar_modified_at, ..location })
}

/// A session by its file: in a store it has the same workspace and title as in a list. The index and `workspace.json`
/// are hints, so their problems are not errors.
pub(crate) fn locate(path: &Path) -> Result<SessionLocation, HistoryError> {
    let alone = SessionLocation::of_file(TranscriptSource::VsCode, path)?;
    let name = |folder: &Path| folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let Some(folder) = path.parent() else { return Ok(alone) };
    let (Some(kind), Some(storage)) = (name(folder), folder.parent()) else { return Ok(alone) };
    let index = || index::read(storage).unwrap_or_default();
    let is_in = |name_of_parent: &str| storage.parent().and_then(name).as_deref() == Some(name_of_parent);
    let (workspace, index) = match kind.as_str() {
        SESSIONS if is_in(STORAGE) => (workspace::read(storage, &mut Vec::new()), index()),
        EMPTY_WINDOW => (TranscriptWorkspace::default(), index()),
        _ => return Ok(alone),
    };
    let flat = path.with_extension("json");
    let older = (path != flat && flat.is_file()).then_some(flat);
    location(SessionFiles { id: &alone.id, path: path.to_owned(), older }, &workspace, index.as_ref())
}
