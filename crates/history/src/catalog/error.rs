//! Errors of the catalog itself.

use std::io;
use std::path::PathBuf;

/// The reason why a catalog operation failed.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error("cannot create or replace {}: {error}: check that the data folder is writable", path.display())]
    Folder { path: PathBuf, error: io::Error },
    #[error("cannot read the catalog of sessions ({0}): run `grove history scan`, which rebuilds a damaged catalog")]
    Database(#[from] rusqlite::Error),
    #[error("the catalog of sessions has another version: run `grove history scan` to rebuild it")]
    OtherVersion,
    #[error("{0:?} is not a cursor of this list: request the list without one")]
    BadCursor(String),
}

impl CatalogError {
    /// True if the database itself is unusable.
    pub(super) fn is_damage(&self) -> bool {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase, SchemaChanged};
        match self {
            Self::Database(rusqlite::Error::SqliteFailure(error, message)) => {
                matches!(error.code, DatabaseCorrupt | NotADatabase | SchemaChanged)
                    || message.as_deref().is_some_and(|message| message.starts_with("no such"))
            }
            Self::Database(_) | Self::Folder { .. } | Self::OtherVersion | Self::BadCursor(_) => false,
        }
    }
}
