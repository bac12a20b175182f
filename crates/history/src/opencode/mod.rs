//! OpenCode: all sessions in one database, or, in older versions, in a tree of small files. Moving from one to the other
//! has left sessions behind, so both are looked at; the database counts where both have a session.
//!
//! A session that a subagent had is told with the call that started it. A database is copied before it is read; the sessions
//! that were found in one share the copy. What `opencode export` prints is read as well.

mod database;
mod exported;
mod storage;
mod turns;

use std::collections::HashSet;
use std::path::Path;

pub use database::Database;
pub(crate) use database::SharedDatabase;
pub use exported::read_exports;

use serde_json::Value;

use crate::damage::{BadPlace, Mark};
use crate::error::HistoryError;
use crate::files;
use crate::json::Members;
use crate::limits::MAX_PIECE;
use crate::normal::{ForeignSession, ForeignTurn, Source};
use crate::platform::{Environment, Platform, below, set};
use crate::reader::{Bookmark, FileMark, Finding, Headline, Hints, Located, Reader, Reading, Root};
use storage::Storage;
use turns::{Teller, about};

/// The reader of OpenCode's sessions.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenCode;

/// How deep the sessions of subagents are followed.
const MAX_DEPTH: usize = 8;

/// One message with its parts.
#[derive(Debug)]
struct Said {
    id: String,
    message: Members,
    parts: Vec<Value>,
    /// In bytes, as text.
    weight: usize,
}

/// Where sessions are kept.
trait Store {
    /// What is known of a session; `None` where it is not here.
    fn about(&self, id: &str) -> Result<Option<Members>, HistoryError>;

    /// The messages of a session, in order. What cannot be read is told in its place.
    fn messages(&self, id: &str, each: &mut dyn FnMut(Result<Said, String>)) -> Result<(), HistoryError>;
}

/// The folder in which sessions lie, on every platform the same.
pub fn locations(platform: Platform, environment: &Environment) -> Vec<Root> {
    let folder = match set(environment.data_home.as_ref()) {
        Some(data) => below(platform, data, &["opencode"]),
        None => below(platform, &environment.home, &[".local", "share", "opencode"]),
    };
    vec![Root { source: Source::OpenCode, product: "OpenCode".to_owned(), folder }]
}

impl Reader for OpenCode {
    fn source(&self) -> Source {
        Source::OpenCode
    }

    /// The list is in the database, so that is looked at whatever the hints say.
    fn find(&self, root: &Root, _: Hints) -> Finding {
        let mut finding = Finding::default();
        let names = finding.names(&root.folder);
        let mut known = HashSet::new();
        let mut has_database = false;
        // Versions that are not released have databases of their own.
        for name in names.iter().filter(|name| name.starts_with("opencode") && name.ends_with(".db")) {
            let path = root.folder.join(name);
            match listed(root, &path, &mut known, &mut finding) {
                Ok(()) => has_database = true,
                Err(problem) => finding.problems.push(problem),
            }
        }
        let in_database = known.clone();
        let storage = Storage::new(root.folder.join("storage"));
        let sessions = storage.sessions(&mut finding.problems);
        known.extend(sessions.iter().map(|(id, _)| id.clone()).filter(|id| !in_database.contains(id)));
        // Once there is a database, OpenCode lists nothing else.
        let listed = has_database.then_some(false);
        for (id, path) in sessions.iter().filter(|(id, _)| !in_database.contains(id)) {
            filed(root, &storage, (id, path), &known, listed, &mut finding);
        }
        finding
    }

    fn has_hints(&self) -> bool {
        false
    }

    fn read(
        &self,
        located: &Located,
        from: Option<&Bookmark>,
        turns: &mut dyn FnMut(ForeignTurn),
    ) -> Result<Reading, HistoryError> {
        let path = located.meant_for(Source::OpenCode)?;
        located.without_bookmark(from)?;
        let session = if let Some(database) = &located.database {
            database.get().read(&located.id, turns)?
        } else if is_database(located.source, path) {
            Database::copy(path)?.read(&located.id, turns)?
        } else if let Some(storage) = Storage::of_session(path) {
            tell(&storage, &located.id, 0, &mut HashSet::new(), turns)?
        } else {
            let export = files::read(path, MAX_PIECE as u64)?;
            read_exports(&export, &located.id, turns)?
        };
        Ok(Reading { session, bookmark: None, ending: None })
    }
}

impl Database {
    /// Reads one session: each turn goes to `turns`, in order.
    pub fn read(&self, id: &str, turns: &mut dyn FnMut(ForeignTurn)) -> Result<ForeignSession, HistoryError> {
        tell(self, id, 0, &mut HashSet::new(), turns)
    }
}

/// Whether a session's file is a database, which holds others too.
pub(crate) fn is_database(source: Source, path: &Path) -> bool {
    source == Source::OpenCode && path.extension().is_some_and(|extension| extension == "db")
}

fn listed(root: &Root, path: &Path, known: &mut HashSet<String>, finding: &mut Finding) -> Result<(), HistoryError> {
    let inode = FileMark::of(&files::stat(path)?).inode;
    let database = SharedDatabase::copy(path)?;
    let rows = database.get().rows()?;
    for row in rows {
        known.insert(row.id.clone());
        // A subagent's session is told with the one that started it.
        if row.has_parent {
            continue;
        }
        let mut session = ForeignSession::new(Source::OpenCode, &row.id);
        about(&mut session, row.info);
        // A database says nothing of a single session, and the session says when it changed.
        let mark = FileMark { inode, size: 0, modified_at: session.modified_at.unwrap_or_default() };
        let headline = Headline {
            title: session.title,
            created_at: session.created_at,
            modified_at: session.modified_at,
            listed: Some(true),
        };
        add(root, &row.id, path, mark, headline, finding);
        if let Some(found) = finding.sessions.last_mut() {
            found.workspace = session.workspace;
            found.database = Some(database.clone());
        }
    }
    Ok(())
}

/// A session that lies in files, if no other that is known started it.
fn filed(
    root: &Root,
    storage: &Storage,
    (id, path): (&str, &Path),
    known: &HashSet<String>,
    listed: Option<bool>,
    finding: &mut Finding,
) {
    let mark = match files::stat(path) {
        Ok(metadata) => FileMark::of(&metadata),
        Err(problem) => return finding.problems.push(problem),
    };
    let mut session = ForeignSession::new(Source::OpenCode, id);
    match storage.about(id) {
        Ok(info) => about(&mut session, info.unwrap_or_default()),
        // It is shown all the same: what was said may be whole.
        Err(problem) => finding.problems.push(problem),
    }
    if session.parent.as_ref().is_some_and(|parent| known.contains(parent)) {
        return;
    }
    let headline = Headline {
        title: session.title,
        created_at: session.created_at,
        modified_at: session.modified_at.or(Some(mark.modified_at)),
        listed,
    };
    add(root, id, path, mark, headline, finding);
}

fn add(root: &Root, id: &str, path: &Path, mark: FileMark, headline: Headline, finding: &mut Finding) {
    finding.sessions.push(Located {
        product: root.product.clone(),
        path: path.to_owned(),
        mark,
        headline,
        ..Located::nowhere(Source::OpenCode, id)
    });
}

/// Reads a session out of a store.
fn tell(
    store: &dyn Store,
    id: &str,
    depth: usize,
    seen: &mut HashSet<String>,
    turns: &mut dyn FnMut(ForeignTurn),
) -> Result<ForeignSession, HistoryError> {
    let mut teller = Teller::new(store, id, depth, seen);
    match store.about(id) {
        Ok(Some(info)) => about(&mut teller.session, info),
        Ok(None) => teller.session.damage.mark(Mark::MissingStart),
        // What is known of a session may be broken, and what was said in it whole.
        Err(HistoryError::Malformed { what, .. }) => {
            teller.session.damage.add(Mark::Damaged, BadPlace { what, ..BadPlace::default() });
        }
        Err(problem) => return Err(problem),
    }
    store.messages(id, &mut |said| match said {
        Ok(said) => {
            if let Some(turn) = teller.take(said) {
                turns(turn);
            }
        }
        Err(what) => teller.session.damage.add(Mark::Damaged, BadPlace { what, ..BadPlace::default() }),
    })?;
    if let Some(turn) = teller.end_turn() {
        turns(turn);
    }
    let mut session = teller.session;
    let first = session.first_message.lines().next().map(str::to_owned);
    session.title = session.title.take().or(first.filter(|first| session.turns > 0 && !first.is_empty()));
    Ok(session)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_looked_for_where_data_is_kept() {
        let mut environment = Environment { home: "/home/me".into(), ..Environment::default() };
        let folder = |environment: &Environment| locations(Platform::Linux, environment)[0].folder.clone();
        assert_eq!(folder(&environment).to_string_lossy(), "/home/me/.local/share/opencode");
        environment.data_home = Some("/data".into());
        assert_eq!(folder(&environment).to_string_lossy(), "/data/opencode");
    }
}
