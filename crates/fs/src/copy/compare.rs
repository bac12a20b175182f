//! Comparing two sessions byte for byte.

use super::list::{self, CopyItem, CopyMethod};
use super::stream::{self, PIECE};
use super::{CopyError, CopyPurpose, SessionFolder};
use crate::workspace::database::{DatabaseError, LocalDatabase};
use crate::workspace::{DATABASE, inside};
use crate::{LocalFs, SessionFs};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    Same { files: u64, bytes: u64 },
    Different(Difference),
}

/// The first difference, in the order in which a copy is made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Difference {
    #[error("{path} is only in the first")]
    OnlyInFirst { path: String },
    #[error("{path} is only in the second")]
    OnlyInSecond { path: String },
    #[error("{path} is a file in one and a folder in the other")]
    FileKind { path: String },
    #[error("{path} differs from byte {offset} on")]
    Bytes { path: String, offset: u64 },
}

/// Compares everything that belongs to a moved session. Databases are compared by their pages, since the header counts
/// the writes.
pub async fn compare(first: &SessionFolder<'_>, second: &SessionFolder<'_>) -> Result<Comparison, CopyError> {
    // Without links, like a copy.
    let stores = (first.store.without_links(), second.store.without_links());
    let (first, second) =
        (&SessionFolder { store: &*stores.0, ..*first }, &SessionFolder { store: &*stores.1, ..*second });
    let (a, b) =
        (list::everything(first, &CopyPurpose::Move).await?, list::everything(second, &CopyPurpose::Move).await?);
    let (mut files, mut bytes) = (0, 0);
    let (mut a, mut b) = (a.items.iter().peekable(), b.items.iter().peekable());
    loop {
        let (one, other) = match (a.peek(), b.peek()) {
            (None, None) => return Ok(Comparison::Same { files, bytes }),
            (Some(one), Some(other)) if one.path == other.path => (*one, *other),
            (Some(one), Some(other)) if list::order(one) > list::order(other) => return Ok(only_in_second(other)),
            (Some(one), _) => return Ok(only_in_first(one)),
            (None, Some(other)) => return Ok(only_in_second(other)),
        };
        a.next();
        b.next();
        let folders = (one.copy_method == CopyMethod::Folder, other.copy_method == CopyMethod::Folder);
        let result = match folders {
            (true, true) => continue,
            (true, false) | (false, true) => {
                return Ok(Comparison::Different(Difference::FileKind { path: one.path.clone() }));
            }
            (false, false) if one.copy_method == CopyMethod::Database => databases(first, second).await?,
            (false, false) => {
                let paths = (inside(first.folder, &one.path), inside(second.folder, &one.path));
                bytes_of(first.store, &paths.0, second.store, &paths.1).await?
            }
        };
        match result {
            Ok(length) => (files, bytes) = (files + 1, bytes + length),
            Err(offset) => {
                return Ok(Comparison::Different(Difference::Bytes { path: one.path.clone(), offset }));
            }
        }
    }
}

fn only_in_first(item: &CopyItem) -> Comparison {
    Comparison::Different(Difference::OnlyInFirst { path: item.path.clone() })
}

fn only_in_second(item: &CopyItem) -> Comparison {
    Comparison::Different(Difference::OnlyInSecond { path: item.path.clone() })
}

/// The length of two equal files, or the offset of the first different byte.
async fn bytes_of(
    first: &dyn SessionFs,
    first_path: &str,
    second: &dyn SessionFs,
    second_path: &str,
) -> Result<Result<u64, u64>, CopyError> {
    let mut offset = 0;
    loop {
        let a = first.read_range(first_path, offset, PIECE).await?;
        let b = second.read_range(second_path, offset, PIECE).await?;
        let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
        if same < a.len().max(b.len()) {
            return Ok(Err(offset + same as u64));
        }
        if a.is_empty() {
            return Ok(Ok(offset));
        }
        offset += a.len() as u64;
    }
}

async fn databases(first: &SessionFolder<'_>, second: &SessionFolder<'_>) -> Result<Result<u64, u64>, CopyError> {
    let (a, b) = (inside(first.folder, DATABASE), inside(second.folder, DATABASE));
    // A file that others have open is not read beside SQLite, which would lose its locks.
    let as_files = match (first.database, second.database) {
        (None, None) => Some(bytes_of(first.store, &a, second.store, &b).await?),
        (Some(_), _) | (_, Some(_)) => None,
    };
    if let Some(Ok(length)) = as_files {
        return Ok(Ok(length));
    }
    match (snapshot(first).await, snapshot(second).await) {
        (Ok(one), Ok(other)) => bytes_of(one.store(), DATABASE, other.store(), DATABASE).await,
        // If it is not a database, it is compared as a file.
        (Err(error), _) | (_, Err(error)) => as_files.ok_or(error),
    }
}

async fn snapshot(
    session_folder: &SessionFolder<'_>,
) -> Result<crate::workspace::database::DatabaseSnapshot, CopyError> {
    let path = inside(session_folder.folder, DATABASE);
    let failed = |error| CopyError::Database { path: path.clone(), error };
    if let Some(database) = session_folder.database {
        return database.snapshot().await.map_err(failed);
    }
    let folder = tempfile::tempdir().map_err(|error| failed(DatabaseError::Sql { reason: error.to_string() }))?;
    let store = LocalFs::new(folder.path());
    let to = SessionFolder { store: &store, folder: "", database: None };
    stream::copy(session_folder.store, &path, &to, DATABASE).await?;
    LocalDatabase::new(store.clone(), "").snapshot().await.map_err(failed)
}
