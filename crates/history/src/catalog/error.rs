//! Errors of the catalog itself.

use std::io;
use std::path::PathBuf;

/// The reason why a catalog operation failed.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error("{} cannot be made or replaced: {error}: check that the data folder is writable", path.display())]
    Folder { path: PathBuf, error: io::Error },
    #[error("the catalog of sessions does not answer ({0}): run `grove history scan`, which makes it anew if need be")]
    Database(#[from] rusqlite::Error),
    #[error("the catalog of sessions is of another version: run `grove history scan`, which makes it anew")]
    OtherVersion,
    #[error("{0:?} is no cursor of this list: begin the list anew")]
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
