//! Finding sessions of other tools on this machine by name. They are only read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use grove_history::catalog::{Catalog, CatalogEntry};
use grove_history::{Hints, SessionLocation, StoreRoot, reader_of, readers};
use grove_transcript::TranscriptSource;

use super::prepared_import::{self, PathSession, PrepareImportError};

/// The minimum length of a name that is compared with aliases, since that opens every session.
const SHORTEST_ALIAS: usize = 12;

/// An error of finding a session by name.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NameError {
    #[error("{wanted:?} matches several sessions of other tools ({found}): use more characters, or name the file")]
    Several { wanted: String, found: String },
    #[error(transparent)]
    Bring(#[from] PrepareImportError),
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
}

/// The stores of the tools on this machine, and their catalog.
#[derive(Debug)]
pub(crate) struct ToolStores {
    roots: Vec<StoreRoot>,
    catalog: Option<PathBuf>,
}

/// The result of a catalog lookup.
#[derive(Debug)]
pub(crate) enum CatalogLookup {
    Session(Box<SessionLocation>),
    Unknown,
    /// There is no catalog, or it cannot be read.
    NoCatalog,
}

impl ToolStores {
    pub(crate) fn new(roots: Vec<StoreRoot>, catalog: Option<PathBuf>) -> Self {
        Self { roots, catalog }
    }

    /// Finds a session in the catalog by its name there, an id, the beginning of one, or its tool's alias for it.
    pub(crate) fn look_up_in_catalog(
        &self,
        source: Option<TranscriptSource>,
        wanted: &str,
    ) -> Result<CatalogLookup, NameError> {
        let catalog = self.catalog.as_deref().filter(|path| path.is_file()).map(Catalog::open_read_only);
        let Some(Ok(catalog)) = catalog else { return Ok(CatalogLookup::NoCatalog) };
        let Ok(candidates) = catalog.candidates(source, wanted) else { return Ok(CatalogLookup::NoCatalog) };
        // Sessions that were deleted since the last scan do not count.
        let there: Vec<SessionLocation> =
            candidates.iter().filter(|entry| entry.path.exists()).map(CatalogEntry::location).collect();
        let found = one_of(&there.iter().collect::<Vec<_>>(), wanted)?;
        Ok(found.map_or(CatalogLookup::Unknown, |location| CatalogLookup::Session(Box::new(location))))
    }

    /// The same by searching every store, which is slow.
    pub(crate) fn named(
        &self,
        source: Option<TranscriptSource>,
        wanted: &str,
    ) -> Result<Option<SessionLocation>, NameError> {
        let roots = self.roots.iter().filter(|root| source.is_none_or(|source| source == root.source));
        let all: Vec<SessionLocation> =
            roots.flat_map(|root| reader_of(root.source).find(root, Hints::Read).sessions).collect();
        let exact: Vec<&SessionLocation> = all.iter().filter(|location| location.id == wanted).collect();
        if !exact.is_empty() {
            return one_of(&exact, wanted);
        }
        let fitting: Vec<&SessionLocation> = match wanted.is_empty() {
            true => Vec::new(),
            false => all.iter().filter(|location| location.id.starts_with(wanted)).collect(),
        };
        if !fitting.is_empty() || wanted.len() < SHORTEST_ALIAS {
            return one_of(&fitting, wanted);
        }
        Ok(all.iter().find(|location| has_id(location, wanted)).cloned())
    }
}

/// Splits a name into a source and an id.
pub(crate) fn with_source(wanted: &str) -> Option<(TranscriptSource, &str)> {
    let (name, id) = wanted.split_once(':')?;
    // Lists show it as a URI.
    let id = id.strip_prefix('/').unwrap_or(id);
    let source = readers().iter().map(|reader| reader.source()).find(|source| source.name() == name)?;
    Some((source, id))
}

/// Detects the session at a path. Text that names no file is not a path.
pub(crate) fn session_at_path(wanted: &str) -> Option<Result<PathSession, NameError>> {
    let path = Path::new(wanted);
    let has_extension =
        path.extension().is_some_and(|extension| ["json", "jsonl", "zst"].iter().any(|it| extension == *it));
    match fs::metadata(path) {
        Ok(_) if has_extension || wanted.contains(std::path::is_separator) => {
            Some(prepared_import::find(path).map_err(NameError::from))
        }
        // Only a path looks like this.
        Err(error) if has_extension || path.is_absolute() || wanted.starts_with('.') => {
            Some(Err(NameError::Io { path: path.to_owned(), error }))
        }
        Ok(_) | Err(_) => None,
    }
}

fn one_of(found: &[&SessionLocation], wanted: &str) -> Result<Option<SessionLocation>, NameError> {
    match found {
        [] => Ok(None),
        [one] => Ok(Some((*one).clone())),
        several => {
            let names: Vec<String> = several.iter().map(|one| one.path.display().to_string()).take(5).collect();
            let more = several.len().saturating_sub(names.len());
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            Err(NameError::Several { wanted: wanted.to_owned(), found: format!("{}{more}", names.join(", ")) })
        }
    }
}

/// Returns whether the session's file contains this alias.
fn has_id(location: &SessionLocation, wanted: &str) -> bool {
    let read = reader_of(location.source).read(location, None, &mut |_| {});
    read.is_ok_and(|reading| reading.session.has_id(wanted))
}
