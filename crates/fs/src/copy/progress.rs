//! The record of a copy's progress, in a file beside it.
//!
//! Each line is JSON: first a description of the copy, then the finished paths, at last `true`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{CopyError, CopyPurpose, FolderCopy, ForkScope, SessionFolder};
use crate::workspace::inside;
use crate::{FileKind, FsError, Removal, SessionFs};

const NAME: &str = ".copying";
/// The name of a large file until it is complete.
const PART: &str = ".copying.part";
/// The largest record; a larger file is not ours.
const LARGEST: usize = 256 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct CopyProgress {
    done: BTreeSet<String>,
    finished: bool,
}

/// The content of a record.
struct StoredProgress {
    what: Value,
    progress: CopyProgress,
    /// The end of its last complete line. A line cut off by an interrupted write may follow.
    end: u64,
}

/// Returns whether there is an interrupted copy at this place.
pub async fn is_unfinished(store: &dyn SessionFs, folder: &str) -> Result<bool, CopyError> {
    Ok(read(store, folder).await?.is_some_and(|read| !read.progress.finished))
}

/// Deletes the record of a finished copy: from now on it is a session like any other.
pub async fn settle(store: &dyn SessionFs, folder: &str) -> Result<(), CopyError> {
    match read(store, folder).await? {
        None => Ok(()),
        Some(read) if read.progress.finished => Ok(store.rm(&inside(folder, NAME), Removal::One).await?),
        Some(_) => Err(CopyError::Unfinished { folder: folder.to_owned() }),
    }
}

/// Returns whether there is a moved copy at this place, finished or not, that is not [settled](settle) yet.
pub async fn is_move(store: &dyn SessionFs, folder: &str) -> Result<bool, CopyError> {
    Ok(read(store, folder).await?.is_some_and(|read| read.what.get("move").is_some()))
}

pub(super) fn is_ours(name: &str) -> bool {
    name == NAME || name == PART
}

pub(super) fn part(to: &SessionFolder<'_>) -> String {
    inside(to.folder, PART)
}

impl CopyProgress {
    /// The record of this copy: a new one, or that of an earlier run.
    pub(super) async fn begin(copying: &FolderCopy<'_>) -> Result<Self, CopyError> {
        let (from, to) = (&copying.from, &copying.to);
        match from.store.stat(from.folder).await {
            Ok(stat) if stat.kind == FileKind::Folder => {}
            Ok(_) | Err(FsError::NotFound { .. } | FsError::NotADirectory { .. }) => {
                return Err(CopyError::NothingThere { folder: from.folder.to_owned() });
            }
            Err(error) => return Err(error.into()),
        }
        let what = describe(copying);
        let occupied = || CopyError::Occupied { folder: to.folder.to_owned() };
        match read(to.store, to.folder).await? {
            Some(read) if read.what == what => {
                to.store.truncate(&inside(to.folder, NAME), read.end).await?;
                return Ok(read.progress);
            }
            Some(read) if read.progress.finished && !copying.is_beside() => return Err(occupied()),
            // The folder belongs to the new session, with everything that is in it.
            Some(_) | None if copying.is_beside() => {}
            // An unfinished copy of something else that is no longer needed.
            Some(_) => clear(to).await?,
            None => match to.store.readdir(to.folder).await {
                Err(FsError::NotFound { .. }) => {}
                Ok(names) if names.is_empty() => {}
                Ok(_) | Err(FsError::NotADirectory { .. }) => return Err(occupied()),
                Err(error) => return Err(error.into()),
            },
        }
        to.store.write_file(&inside(to.folder, NAME), line(&what).as_bytes()).await?;
        Ok(Self { done: BTreeSet::new(), finished: false })
    }

    /// Returns whether a path is finished. Once all is finished, new files in the source are not part of the copy.
    pub(super) fn has(&self, path: &str) -> bool {
        self.finished || self.done.contains(path)
    }

    pub(super) async fn add(&mut self, to: &SessionFolder<'_>, path: &str) -> Result<(), CopyError> {
        to.store.append_file(&inside(to.folder, NAME), line(&path.into()).as_bytes()).await?;
        self.done.insert(path.to_owned());
        Ok(())
    }

    pub(super) async fn finish(&mut self, to: &SessionFolder<'_>) -> Result<(), CopyError> {
        if !self.finished {
            to.store.append_file(&inside(to.folder, NAME), line(&true.into()).as_bytes()).await?;
            to.store.sync(&inside(to.folder, NAME)).await?;
            self.finished = true;
        }
        Ok(())
    }
}

/// Deletes everything except for the record, which is empty until then: an interrupted run clears again.
async fn clear(to: &SessionFolder<'_>) -> Result<(), CopyError> {
    to.store.write_file(&inside(to.folder, NAME), line(&Value::Null).as_bytes()).await?;
    for name in to.store.readdir(to.folder).await? {
        if name != NAME {
            to.store.rm(&inside(to.folder, &name), Removal::Everything).await?;
        }
    }
    Ok(())
}

fn line(value: &Value) -> String {
    format!("{value}\n")
}

async fn read(store: &dyn SessionFs, folder: &str) -> Result<Option<StoredProgress>, CopyError> {
    let path = inside(folder, NAME);
    let bytes = match store.read_range(&path, 0, LARGEST).await {
        Ok(bytes) => bytes,
        Err(FsError::NotFound { .. } | FsError::NotADirectory { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let mut values = bytes[..end].split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    let what = values.next().unwrap_or(Value::Null);
    let mut progress = CopyProgress { done: BTreeSet::new(), finished: false };
    for value in values {
        match value {
            Value::String(path) => drop(progress.done.insert(path)),
            Value::Bool(true) => progress.finished = true,
            _ => {}
        }
    }
    Ok(Some(StoredProgress { what, progress, end: end as u64 }))
}

/// Identifies this copy. It is compared with a record that another version of the host may have written.
fn describe(copying: &FolderCopy<'_>) -> Value {
    let from = copying.from.folder;
    match &copying.purpose {
        CopyPurpose::Move => json!({ "move": from }),
        CopyPurpose::Fork(fork) => {
            let at = fork.at.as_millisecond();
            let until = fork.boundary.as_ref().map(|boundary| boundary.last_checkpoint);
            let logs = match fork.parts {
                ForkScope::All => json!(fork.logs),
                ForkScope::Artifacts => Value::Null,
            };
            json!({ "fork": from, "id": fork.id, "name": fork.name, "at": at, "logs": logs, "until": until })
        }
    }
}
