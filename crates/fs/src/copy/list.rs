//! What of a session's folder is copied, and how each file is treated.

use super::{CopyError, Parts, Place, Purpose, note};
use crate::workspace::{CHECKPOINTS, DATABASE, INDEX, MANIFEST, PLAN, PLAN_HISTORY, inside};
use crate::{FsError, Kind};

/// A session with more files is not copied.
const MOST_FILES: usize = 100_000;
/// Nor one with more folders inside one another: a provider may have a link that leads back.
const DEEPEST: usize = 32;

pub(super) const LOG: &str = "events.jsonl";
const CHATS: &str = "chats";

/// Something to be made in the copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// Below the session's folder.
    pub path: String,
    pub treatment: Treatment,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Treatment {
    Bytes,
    /// Line by line, through the hook.
    Log,
    Manifest,
    Index,
    Database,
    /// It is not copied, but made of this.
    Text(String),
    /// A folder with nothing in it.
    Folder,
}

/// What is in a session's folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Listed {
    /// What says that there is a session, its log and its manifest, comes last.
    pub items: Vec<Item>,
    /// The paths of what is neither a file nor a folder.
    pub others: Vec<String>,
}

/// Everything that the copy has, and what stays behind because it cannot be copied.
pub(super) async fn everything(from: &Place<'_>, purpose: &Purpose) -> Result<Listed, CopyError> {
    let Listed { mut items, mut others } = Listed::default();
    let mut folders = vec![(String::new(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let below = if folder.is_empty() { from.folder.to_owned() } else { inside(from.folder, &folder) };
        let entries = match from.store.readdir_with_types(&below).await {
            Ok(entries) => entries,
            Err(FsError::NotFound { .. } | FsError::NotADirectory { .. }) if folder.is_empty() => {
                return Err(CopyError::NothingThere { folder: from.folder.to_owned() });
            }
            // It was taken away since.
            Err(FsError::NotFound { .. } | FsError::NotADirectory { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        if entries.is_empty() && !folder.is_empty() {
            items.push(Item { path: folder.clone(), treatment: Treatment::Folder });
        }
        for entry in entries {
            let path = inside(&folder, &entry.name);
            if !belongs(&path, from, purpose) {
                continue;
            }
            match entry.kind {
                Kind::Folder if depth + 1 >= DEEPEST => return Err(CopyError::TooDeep { path, limit: DEEPEST }),
                Kind::Folder => folders.push((path, depth + 1)),
                Kind::File => items.push(Item { treatment: treatment(&path, purpose), path }),
                Kind::Other => others.push(path),
            }
            if items.len() + others.len() + folders.len() > MOST_FILES {
                return Err(CopyError::TooMany { folder: from.folder.to_owned(), limit: MOST_FILES });
            }
        }
    }
    items.sort_by(|a, b| order(a).cmp(&order(b)));
    others.sort();
    Ok(Listed { items, others })
}

/// Items are copied from the least to the greatest.
pub(super) fn order(item: &Item) -> (u8, &str) {
    let rank = match item.path.as_str() {
        MANIFEST => 2,
        LOG => 1,
        _ => 0,
    };
    (rank, &item.path)
}

fn belongs(path: &str, from: &Place<'_>, purpose: &Purpose) -> bool {
    let first = path.split('/').next().unwrap_or(path);
    match purpose {
        Purpose::Fork(fork) => match first {
            MANIFEST | PLAN | PLAN_HISTORY | DATABASE | CHECKPOINTS | "files" | "research" => true,
            CHATS => fork.parts == Parts::All && !is_side_file(path),
            LOG | "content" => fork.parts == Parts::All,
            _ => false,
        },
        Purpose::Move => {
            let lock = first == ".workspace-fork.lock" || first.starts_with("inuse.");
            let temporary = first == "temp" || (first.starts_with('.') && first.ends_with(".tmp"));
            // A snapshot has what these hold.
            let beside_database = matches!(first.strip_prefix(DATABASE), Some("-journal" | "-wal" | "-shm"));
            let of_database = from.database.is_some() && beside_database;
            !(lock || temporary || of_database || note::is_ours(first))
        }
    }
}

/// What is made anew of a log, or was cut off it.
pub(super) fn is_side_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name == "events.idx" || name.ends_with(".torn")
}

fn treatment(path: &str, purpose: &Purpose) -> Treatment {
    let is_chat_log = || path.starts_with("chats/") && path.ends_with("/events.jsonl");
    match (path, purpose) {
        (DATABASE, _) => Treatment::Database,
        (_, Purpose::Move) => Treatment::Bytes,
        (MANIFEST, Purpose::Fork(_)) => Treatment::Manifest,
        (INDEX, Purpose::Fork(_)) => Treatment::Index,
        (LOG, Purpose::Fork(_)) => Treatment::Log,
        (_, Purpose::Fork(_)) if is_chat_log() => Treatment::Log,
        (_, Purpose::Fork(_)) => Treatment::Bytes,
    }
}
