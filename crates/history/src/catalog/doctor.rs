//! Compares every session file on disk with every session in the catalog.
//!
//! The files are searched in another way than readers do it: everything below a root that is named like a session. So
//! files that a reader overlooks are reported, not only those that it fails on. Tools' own lists are the third side: a
//! session that is in one and has no file is lost. Not every tool has a list: if a tool lists sessions by their files,
//! none can be lost.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use grove_transcript::{Damage, TranscriptSource};
use serde::Serialize;

use super::entry::{CatalogEntry, key_of};
use super::error::CatalogError;
use super::store::Catalog;
use crate::files;
use crate::reader::{Hints, StoreListing, StoreRoot};
use crate::reader_of;

/// The maximum depth of the search below a root.
const MAX_DEPTH: usize = 8;
/// The maximum number of files. Beyond it the report is marked as incomplete.
const MAX_FILES: usize = 2_000_000;

/// The comparison of a store's files with the lists.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DoctorReport {
    /// The number of files named like sessions, and of those that are shown.
    pub files: usize,
    pub shown: usize,
    /// Shown with less than their tool once wrote.
    pub damaged: Vec<DoctorFinding>,
    /// Shown here, but missing in their tool's list: its user takes them for lost.
    pub orphaned: Vec<DoctorFinding>,
    /// In their tool's list, but missing on the disk.
    pub lost: Vec<DoctorFinding>,
    /// Named like sessions, but not shown.
    pub unknown: Vec<DoctorFinding>,
    /// Problems of the search, in words.
    pub problems: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DoctorFinding {
    pub source: TranscriptSource,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
    pub path: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<Damage>,
}

impl DoctorReport {
    /// True if nothing is wrong. A session that its own tool does not list is not a problem of ours.
    pub fn is_well(&self) -> bool {
        self.damaged.is_empty() && self.lost.is_empty() && self.unknown.is_empty() && self.problems.is_empty()
    }
}

/// Checks the current catalog against the files below the roots.
pub fn check(catalog: &Catalog, roots: &[StoreRoot]) -> Result<DoctorReport, CatalogError> {
    let mut checkup = DoctorReport::default();
    let roots: Vec<&StoreRoot> = roots.iter().filter(|root| root.folder.is_dir()).collect();
    let findings: Vec<StoreListing> = roots.iter().map(|root| reader_of(root.source).find(root, Hints::Read)).collect();
    // A tool may have listed a session since it was read.
    let found = findings.iter().flat_map(|listing| &listing.sessions);
    let listed: HashMap<PathBuf, Option<bool>> =
        found.map(|location| (key_of(location), location.preview.listed)).collect();
    let mut paths: HashSet<PathBuf> = HashSet::new();
    let mut ids: HashSet<(TranscriptSource, String)> = HashSet::new();
    catalog.each(|entry| {
        let is_listed = listed.get(&entry.key()).copied().unwrap_or(entry.listed);
        let CatalogEntry { path, older, session, .. } = entry;
        let suspect = |damage| DoctorFinding {
            source: session.source,
            source_id: Some(session.source_id.clone()),
            path: path.clone(),
            damage,
        };
        if session.damage.is_recovered() || session.damage.count > 0 {
            checkup.damaged.push(suspect(Some(session.damage.clone())));
        }
        // Tools hide sessions without messages: nobody misses those.
        if is_listed == Some(false) && session.turns > 0 {
            checkup.orphaned.push(suspect(None));
        }
        ids.insert((session.source, session.source_id));
        paths.extend(older);
        paths.insert(path);
    })?;
    for (root, listing) in roots.into_iter().zip(findings) {
        let mut found = BTreeSet::new();
        walk(root.source, &root.folder, 0, &mut found, &mut checkup.problems);
        for path in found {
            checkup.files += 1;
            if paths.contains(&path) {
                checkup.shown += 1;
            } else if !is_part_of_one(&path, &root.folder, &paths) {
                checkup.unknown.push(DoctorFinding { source: root.source, source_id: None, path, damage: None });
            }
        }
        for problem in listing.problems.iter().map(ToString::to_string) {
            // A folder that cannot be listed was reported already.
            if !checkup.problems.contains(&problem) {
                checkup.problems.push(problem);
            }
        }
        // There may be a backup of a deleted one.
        let lost = listing.lost.into_iter().filter(|lost| !ids.contains(&(root.source, lost.id.clone())));
        checkup.lost.extend(lost.map(|lost| DoctorFinding {
            source: root.source,
            source_id: Some(lost.id),
            path: lost.path,
            damage: None,
        }));
    }
    Ok(checkup)
}

/// Finds files named like a session: logs, and flat files in session folders.
fn walk(
    source: TranscriptSource,
    folder: &Path,
    depth: usize,
    found: &mut BTreeSet<PathBuf>,
    problems: &mut Vec<String>,
) {
    let names = match files::names(folder) {
        Ok(names) => names,
        Err(problem) => return problems.push(problem.to_string()),
    };
    for name in names {
        let path = folder.join(&name);
        let Ok(metadata) = path.symlink_metadata() else { continue };
        if metadata.is_dir() {
            if depth < MAX_DEPTH {
                walk(source, &path, depth + 1, found, problems);
            }
        } else if metadata.is_file() && is_named_like_one(source, folder, &name) {
            if found.len() >= MAX_FILES {
                return problems
                    .push(format!("{} has more than {MAX_FILES} files: the rest is not checked", folder.display()));
            }
            found.insert(path);
        }
    }
}

/// True if a file is named as its tool names sessions. Logs of subagents and of typed input are not.
fn is_named_like_one(source: TranscriptSource, folder: &Path, name: &str) -> bool {
    let folder = folder.file_name().map(|folder| folder.to_string_lossy()).unwrap_or_default();
    let is_log = name.ends_with(".jsonl");
    match source {
        TranscriptSource::VsCode => {
            is_log || (folder.to_lowercase().ends_with("chatsessions") && name.ends_with(".json"))
        }
        TranscriptSource::CopilotCli | TranscriptSource::Pi => is_log,
        TranscriptSource::Claude => is_log && !name.starts_with("agent-"),
        TranscriptSource::Codex => name.starts_with("rollout-") && (is_log || name.ends_with(".jsonl.zst")),
        TranscriptSource::Gemini => {
            folder == "chats" && name.starts_with("session-") && (is_log || name.ends_with(".json"))
        }
        // All sessions are in one file, or in files that are the list themselves.
        TranscriptSource::OpenCode => false,
    }
}

/// True if a file is in the folder of a shown session: a subagent's log, a spilled result. While a log is compressed
/// both forms of it exist.
fn is_part_of_one(path: &Path, root: &Path, shown: &HashSet<PathBuf>) -> bool {
    if path.extension().is_some_and(|extension| extension == "zst") && shown.contains(&path.with_extension("")) {
        return true;
    }
    let inside = path.ancestors().skip(1).take_while(|folder| *folder != root);
    inside.into_iter().any(|folder| {
        let mut beside = folder.as_os_str().to_owned();
        beside.push(".jsonl");
        shown.contains(&PathBuf::from(beside)) || shown.contains(&folder.join("events.jsonl"))
    })
}
