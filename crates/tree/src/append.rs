//! Appends a line to an index as its log grows.

use crate::error::LogError;
use crate::header::is_type;
use crate::index::{Ending, EntryNo, LogIndex, ParsedLog};
use crate::indexer::Indexer;
use crate::links::TreeLinks;
use crate::object::field;
use crate::scan::text_of;

/// The reason why a line cannot be appended to a log. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    #[error("the log does not end with a complete line: repair its end first")]
    NotWhole,
    #[error("the log has no header yet")]
    NoHeader,
    #[error("the line is not an entry: it must be one JSON object in UTF-8, without a line feed, and have an id")]
    NotAnEntry,
    #[error("there is an entry with the id {id} already")]
    IdInUse { id: String },
    #[error("the parent entry {id} does not exist")]
    UnknownParent { id: String },
    #[error(transparent)]
    Log(#[from] LogError),
}

impl LogIndex {
    /// Adds a line, without its line feed, that is being appended to the log. It must be an entry with a new id and an
    /// existing parent. The cost does not depend on the log's length.
    pub fn append(&mut self, line: &[u8]) -> Result<EntryNo, AppendError> {
        let id = self.check(line)?;
        // An earlier entry may name this id as its parent: it was a root until now.
        let was_missed = self.parsed.ids.find(&id).is_some();
        let mut indexer = Indexer::on(std::mem::replace(&mut self.parsed, ParsedLog::empty()));
        indexer.line(line);
        let (parsed, failed) = indexer.into_parsed();
        self.parsed = parsed;
        if let Some(error) = failed {
            return Err(error.into());
        }
        if was_missed {
            self.links = TreeLinks::of(&self.parsed);
        } else {
            self.links.append(&self.parsed);
        }
        self.entries().next_back().ok_or(AppendError::NotAnEntry)
    }

    /// Checks that a line fits at the end of the log, and returns its id.
    fn check(&self, line: &[u8]) -> Result<Vec<u8>, AppendError> {
        if self.parsed.ending != Ending::Whole {
            return Err(AppendError::NotWhole);
        }
        if self.parsed.header.is_none() {
            return Err(AppendError::NoHeader);
        }
        let sound = std::str::from_utf8(line).is_ok() && !line.contains(&b'\n');
        let id = field(line, "id").and_then(text_of).filter(|id| !id.is_empty() && sound);
        let Some(id) = id.filter(|_| !is_type(field(line, "type"), "session")) else {
            return Err(AppendError::NotAnEntry);
        };
        let shown = |id: &[u8]| String::from_utf8_lossy(id).into_owned();
        if self.parsed.ids.find(&id).is_some_and(|number| self.parsed.entry_of(number).is_some()) {
            return Err(AppendError::IdInUse { id: shown(&id) });
        }
        let parent = match field(line, "parentId") {
            None | Some(b"null") => return Ok(id.into_owned()),
            Some(parent) => text_of(parent).unwrap_or(std::borrow::Cow::Borrowed(parent)),
        };
        let known = self.parsed.ids.find(&parent).is_some_and(|number| self.parsed.entry_of(number).is_some());
        if known { Ok(id.into_owned()) } else { Err(AppendError::UnknownParent { id: shown(&parent) }) }
    }
}
