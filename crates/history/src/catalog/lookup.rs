//! Finds sessions by a name.

use grove_transcript::TranscriptSource;
use rusqlite::params;

use super::entry::CatalogEntry;
use super::error::CatalogError;
use super::store::{Catalog, read_entry};

/// The maximum number of sessions for an ambiguous name.
pub const MAX_MATCHES: usize = 100;

/// The forms of a name, the most exact first.
const NAMES: [&str; 4] = [
    "id = ?1",
    "source_id = ?1",
    "EXISTS (SELECT 1 FROM json_each(entry, '$.session.aliases') WHERE value = ?1)",
    "?1 <> '' AND (substr(source_id, 1, length(?1)) = ?1 OR substr(id, 1, length(?1)) = ?1)",
];

impl Catalog {
    /// The session with a name; the newest of several.
    pub fn get(&self, name: &str) -> Result<Option<CatalogEntry>, CatalogError> {
        Ok(self.candidates(None, name)?.into_iter().next())
    }

    /// The candidates for a name, newest first, a hundred at most: by the catalog's own name, the tool's id, the id of
    /// the tool's agent, or a prefix of one of the first two. Exact matches come before others.
    pub fn candidates(
        &self,
        source: Option<TranscriptSource>,
        wanted: &str,
    ) -> Result<Vec<CatalogEntry>, CatalogError> {
        let reader = self.reader();
        let source = source.map(TranscriptSource::name);
        for name in NAMES {
            let sql = format!(
                "SELECT entry FROM session WHERE (?2 IS NULL OR source = ?2) AND ({name}) \
                ORDER BY modified DESC, id DESC LIMIT {MAX_MATCHES}"
            );
            let mut statement = reader.prepare(&sql)?;
            let rows = statement.query_map(params![wanted, source], read_entry)?;
            let candidates: Vec<CatalogEntry> = rows.filter_map(Result::transpose).collect::<Result<_, _>>()?;
            if !candidates.is_empty() {
                return Ok(candidates);
            }
        }
        Ok(Vec::new())
    }
}
