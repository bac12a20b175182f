//! The list of files that a copy contains, and the treatment of each.

use super::{CopyError, CopyPurpose, ForkScope, SessionFolder, progress};
use crate::workspace::{CHECKPOINTS, DATABASE, INDEX, MANIFEST, PLAN, PLAN_HISTORY, inside};
use crate::{FileKind, FsError};

/// The most files of a session that is copied.
pub const MOST_FILES: usize = 100_000;
/// The deepest nesting of folders: a storage client may have a link that leads back.
pub const DEEPEST: usize = 32;

pub(super) const LOG: &str = "events.jsonl";
const CHATS: &str = "chats";

/// An item of the copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CopyItem {
    /// The path below the session's folder.
    pub path: String,
    pub copy_method: CopyMethod,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CopyMethod {
    Bytes,
    /// Copied line by line, through the hook.
    Log,
    Manifest,
    CheckpointIndex,
    Database,
    /// Written from this text instead of copied.
    Text(String),
    /// An empty folder.
    Folder,
}

/// The content of a session's folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CopyList {
    /// The files that prove that there is a session, its log and its manifest, come last.
    pub items: Vec<CopyItem>,
    /// The paths that are neither files nor folders.
    pub others: Vec<String>,
}

/// Lists everything that the copy contains, and the paths that cannot be copied.
pub(super) async fn everything(from: &SessionFolder<'_>, purpose: &CopyPurpose) -> Result<CopyList, CopyError> {
    let CopyList { mut items, mut others } = CopyList::default();
    let mut folders = vec![(String::new(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let below = if folder.is_empty() { from.folder.to_owned() } else { inside(from.folder, &folder) };
        let entries = match from.store.readdir_with_types(&below).await {
            Ok(entries) => entries,
            Err(FsError::NotFound { .. } | FsError::NotADirectory { .. }) if folder.is_empty() => {
                return Err(CopyError::NothingThere { folder: from.folder.to_owned() });
            }
            // It was deleted meanwhile.
            Err(FsError::NotFound { .. } | FsError::NotADirectory { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        if entries.is_empty() && !folder.is_empty() {
            items.push(CopyItem { path: folder.clone(), copy_method: CopyMethod::Folder });
        }
        for entry in entries {
            let path = inside(&folder, &entry.name);
            if !belongs(&path, from, purpose) {
                continue;
            }
            match entry.kind {
                FileKind::Folder if depth + 1 >= DEEPEST => return Err(CopyError::TooDeep { path, limit: DEEPEST }),
                FileKind::Folder => folders.push((path, depth + 1)),
                FileKind::File => items.push(CopyItem { copy_method: copy_method(&path, purpose), path }),
                FileKind::Other => others.push(path),
            }
            if items.len() + others.len() + folders.len() > MOST_FILES {
                return Err(CopyError::TooMany { folder: from.folder.to_owned(), limit: MOST_FILES });
            }
        }
    }
    items.sort_by(|a, b| order(a).cmp(&order(b)));
    others.sort();
    Ok(CopyList { items, others })
}

/// The order of copying, lowest first.
pub(super) fn order(item: &CopyItem) -> (u8, &str) {
    let rank = match item.path.as_str() {
        MANIFEST => 2,
        LOG => 1,
        _ => 0,
    };
    (rank, &item.path)
}

fn belongs(path: &str, from: &SessionFolder<'_>, purpose: &CopyPurpose) -> bool {
    let first = path.split('/').next().unwrap_or(path);
    match purpose {
        CopyPurpose::Fork(fork) => match first {
            MANIFEST | PLAN | PLAN_HISTORY | DATABASE | CHECKPOINTS | "files" | "research" => true,
            CHATS => fork.parts == ForkScope::All && !is_side_file(path),
            LOG | "content" => fork.parts == ForkScope::All,
            _ => false,
        },
        CopyPurpose::Move => {
            let lock = first == ".workspace-fork.lock" || first.starts_with("inuse.");
            let temporary = first == "temp" || (first.starts_with('.') && first.ends_with(".tmp"));
            // A snapshot contains their data.
            let beside_database = matches!(first.strip_prefix(DATABASE), Some("-journal" | "-wal" | "-shm"));
            let of_database = from.database.is_some() && beside_database;
            !(lock || temporary || of_database || progress::is_ours(first))
        }
    }
}

/// Returns whether a file is derived from a log, or was cut off from one.
pub(super) fn is_side_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name == "events.idx" || name.ends_with(".torn")
}

fn copy_method(path: &str, purpose: &CopyPurpose) -> CopyMethod {
    let is_chat_log = || path.starts_with("chats/") && path.ends_with("/events.jsonl");
    match (path, purpose) {
        (DATABASE, _) => CopyMethod::Database,
        (_, CopyPurpose::Move) => CopyMethod::Bytes,
        (MANIFEST, CopyPurpose::Fork(_)) => CopyMethod::Manifest,
        (INDEX, CopyPurpose::Fork(_)) => CopyMethod::CheckpointIndex,
        (LOG, CopyPurpose::Fork(_)) => CopyMethod::Log,
        (_, CopyPurpose::Fork(_)) if is_chat_log() => CopyMethod::Log,
        (_, CopyPurpose::Fork(_)) => CopyMethod::Bytes,
    }
}
