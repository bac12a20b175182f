//! Lists: newest first, page by page.

use grove_transcript::model_key;
use rusqlite::types::Value;

use super::entry::CatalogEntry;
use super::error::CatalogError;
use super::folder_index::repository_name;
use super::store::{Catalog, read_entry, whole};
use grove_core::Timestamp;

/// The maximum number of sessions of a page.
pub const MAX_PAGE: usize = 10_000;

/// The filter of a list. Without any, all sessions match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogFilter {
    /// The name of a source.
    pub source: Option<String>,
    /// A repository (`owner/name`, its name alone, or a URL), or the working directory.
    pub repository: Option<String>,
    /// Sessions with an activity at this time or later.
    pub since: Option<Timestamp>,
    /// Words of the title, case-insensitive.
    pub text: Option<String>,
    /// A model that answered, in any [spelling](model_key).
    pub model: Option<String>,
}

/// A position in the list: the next page begins after this session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogCursor {
    pub modified_at: Timestamp,
    pub id: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CatalogPage {
    pub entries: Vec<CatalogEntry>,
    /// The start of the next page, if there is one.
    pub next: Option<CatalogCursor>,
}

impl CatalogCursor {
    pub fn of(entry: &CatalogEntry) -> Self {
        Self { modified_at: entry.modified_at(), id: entry.id.clone() }
    }

    pub fn parse(text: &str) -> Result<Self, CatalogError> {
        let read = || {
            let (at, id) = text.split_once('/')?;
            Some(Self { modified_at: Timestamp(at.parse().ok()?), id: id.to_owned() })
        };
        read().ok_or_else(|| CatalogError::BadCursor(text.chars().take(100).collect()))
    }

    pub fn text(&self) -> String {
        format!("{}/{}", self.modified_at.0, self.id)
    }
}

impl Catalog {
    /// The newest sessions after a cursor. A page has `limit` of them, [`MAX_PAGE`] at most.
    pub fn list(
        &self,
        filter: &CatalogFilter,
        after: Option<&CatalogCursor>,
        limit: usize,
    ) -> Result<CatalogPage, CatalogError> {
        let limit = limit.clamp(1, MAX_PAGE);
        let mut wanted: Vec<&str> = Vec::new();
        let mut values: Vec<Value> = Vec::new();
        if let Some(source) = &filter.source {
            wanted.push("source = ?");
            values.push(source.clone().into());
        }
        if let Some(repository) = &filter.repository {
            wanted.push("(repository = ? OR repository LIKE ? ESCAPE '\\' OR folder = ?)");
            let name = repository_name(repository);
            values.push(name.clone().into());
            values.push(format!("%/{}", escaped(&name)).into());
            values.push(repository.trim_end_matches('/').to_owned().into());
        }
        if let Some(since) = filter.since {
            wanted.push("modified >= ?");
            values.push(whole(since.0).into());
        }
        if let Some(text) = &filter.text {
            wanted.push("instr(title, ?) > 0");
            values.push(text.to_lowercase().into());
        }
        if let Some(model) = &filter.model {
            wanted.push("instr(models, ?) > 0");
            values.push(format!("|{}|", model_key(model)).into());
        }
        if let Some(after) = after {
            wanted.push("(modified, id) < (?, ?)");
            values.push(whole(after.modified_at.0).into());
            values.push(after.id.clone().into());
        }
        let wanted = if wanted.is_empty() { String::new() } else { format!("WHERE {}", wanted.join(" AND ")) };
        // One more tells if there is a next page.
        let sql = format!("SELECT entry FROM session {wanted} ORDER BY modified DESC, id DESC LIMIT {}", limit + 1);
        let reader = self.reader();
        let mut statement = reader.prepare(&sql)?;
        let rows = statement.query_map(rusqlite::params_from_iter(values), read_entry)?;
        let mut entries: Vec<CatalogEntry> = rows.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        let has_more = entries.len() > limit;
        entries.truncate(limit);
        let next = entries.last().filter(|_| has_more).map(CatalogCursor::of);
        Ok(CatalogPage { entries, next })
    }
}

/// Escapes a name in a pattern.
fn escaped(name: &str) -> String {
    name.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let cursor = CatalogCursor { modified_at: Timestamp(17), id: "vs-code.a/b".into() };
        assert_eq!(CatalogCursor::parse(&cursor.text()).unwrap(), cursor);
        for bad in ["", "17", "x/y"] {
            assert!(CatalogCursor::parse(bad).is_err(), "{bad}");
        }
    }
}
