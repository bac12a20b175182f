//! OpenCode: all sessions in one database, or, in older versions, in a tree of small files. The migration has left
//! sessions behind, so both are read; the database takes precedence.
//!
//! A subagent's session is included with the call that started it. A database is copied before it is read; its sessions
//! share the copy. The output of `opencode export` is read as well.

mod database;
mod exports;
mod storage;
mod turns;

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;

pub use database::Database;
pub(crate) use database::SharedDatabase;
pub use exports::read_exports;

use grove_transcript::{DamageKind, DamageLocation, TranscriptSession, TranscriptSource, TranscriptTurn};
use serde_json::Value;

use crate::error::HistoryError;
use crate::files;
use crate::json::JsonMembers;
use crate::limits::MAX_JSON_ITEM;
use crate::platform::{Platform, StoreEnvironment, below, set};
use crate::reader::{
    Bookmark, FileMark, Hints, HistoryReader, ReadOutcome, SessionLocation, SessionPreview, StoreListing, StoreRoot,
    TurnSink, every,
};
use storage::FileStorage;
use turns::{TurnFold, session_info};

/// The reader of OpenCode's sessions.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenCode;

/// The maximum depth of subagents' sessions.
const MAX_DEPTH: usize = 8;

/// One message with its parts.
#[derive(Debug)]
struct StoredMessage {
    id: String,
    message: JsonMembers,
    parts: Vec<Value>,
    /// The size of its text in bytes.
    weight: usize,
}

/// A store of messages.
trait MessageStore {
    /// A session's data; `None` if it is not here.
    fn session_info(&self, id: &str) -> Result<Option<JsonMembers>, HistoryError>;

    /// The messages of a session, in order. An unreadable one is reported in its place.
    /// Ends early if `each` breaks.
    fn messages(&self, id: &str, each: &mut MessageSink<'_>) -> Result<(), HistoryError>;
}

/// The receiver of a session's messages. It breaks to end the read, at a message and never at an error.
type MessageSink<'a> = dyn FnMut(Result<StoredMessage, String>) -> ControlFlow<()> + 'a;

/// The folder of sessions, the same on every platform.
pub fn store_roots(platform: Platform, environment: &StoreEnvironment) -> Vec<StoreRoot> {
    let folder = match set(environment.data_home.as_ref()) {
        Some(data) => below(platform, data, &["opencode"]),
        None => below(platform, &environment.home, &[".local", "share", "opencode"]),
    };
    vec![StoreRoot { source: TranscriptSource::OpenCode, product: "OpenCode".to_owned(), folder }]
}

impl HistoryReader for OpenCode {
    fn source(&self) -> TranscriptSource {
        TranscriptSource::OpenCode
    }

    /// The list is in the database, so it is read whatever the hints are.
    fn find(&self, root: &StoreRoot, _: Hints) -> StoreListing {
        let mut listing = StoreListing::default();
        let names = listing.names(&root.folder);
        let mut known = HashSet::new();
        let mut has_database = false;
        // Unreleased versions have databases of their own.
        for name in names.iter().filter(|name| name.starts_with("opencode") && name.ends_with(".db")) {
            let path = root.folder.join(name);
            match listed(root, &path, &mut known, &mut listing) {
                Ok(()) => has_database = true,
                Err(problem) => listing.problems.push(problem),
            }
        }
        let in_database = known.clone();
        let storage = FileStorage::new(root.folder.join("storage"));
        let sessions = storage.sessions(&mut listing.problems);
        known.extend(sessions.iter().map(|(id, _)| id.clone()).filter(|id| !in_database.contains(id)));
        // Once there is a database, OpenCode lists nothing else.
        let listed = has_database.then_some(false);
        for (id, path) in sessions.iter().filter(|(id, _)| !in_database.contains(id)) {
            filed(root, &storage, (id, path), &known, listed, &mut listing);
        }
        listing
    }

    fn has_hints(&self) -> bool {
        false
    }

    fn read_until(
        &self,
        location: &SessionLocation,
        from: Option<&Bookmark>,
        turns: &mut TurnSink<'_>,
    ) -> Result<ReadOutcome, HistoryError> {
        let path = location.path_for(TranscriptSource::OpenCode)?;
        location.without_bookmark(from)?;
        let session = if let Some(database) = &location.database {
            database.get().read_until(&location.id, turns)?
        } else if is_database(location.source, path) {
            Database::copy(path)?.read_until(&location.id, turns)?
        } else if let Some(storage) = FileStorage::of_session(path) {
            tell(&storage, &location.id, 0, &mut HashSet::new(), turns)?
        } else {
            let export = files::read(path, MAX_JSON_ITEM as u64)?;
            exports::read_until(&export, &location.id, turns)?
        };
        Ok(ReadOutcome { session, bookmark: None, tail_index: None, may_go_back: false })
    }
}

impl Database {
    /// Reads one session: each turn goes to `turns`, in order.
    pub fn read(&self, id: &str, turns: &mut dyn FnMut(TranscriptTurn)) -> Result<TranscriptSession, HistoryError> {
        self.read_until(id, &mut every(turns))
    }

    /// The same up to a break of `turns`.
    fn read_until(&self, id: &str, turns: &mut TurnSink<'_>) -> Result<TranscriptSession, HistoryError> {
        tell(self, id, 0, &mut HashSet::new(), turns)
    }
}

/// True if a session's file is a database, which has other sessions too.
pub(crate) fn is_database(source: TranscriptSource, path: &Path) -> bool {
    source == TranscriptSource::OpenCode && path.extension().is_some_and(|extension| extension == "db")
}

fn listed(
    root: &StoreRoot,
    path: &Path,
    known: &mut HashSet<String>,
    listing: &mut StoreListing,
) -> Result<(), HistoryError> {
    let inode = FileMark::of(&files::stat(path)?).inode;
    let database = SharedDatabase::copy(path)?;
    let rows = database.get().rows()?;
    for row in rows {
        known.insert(row.id.clone());
        // A subagent's session is included with the one that started it.
        if row.has_parent {
            continue;
        }
        let mut session = TranscriptSession::new(TranscriptSource::OpenCode, &row.id);
        session_info(&mut session, row.info);
        // A database's mark says nothing of a single session; the session has its own time.
        let mark = FileMark { inode, size: 0, modified_at: session.modified_at.unwrap_or_default() };
        let preview = SessionPreview {
            title: session.title,
            created_at: session.created_at,
            modified_at: session.modified_at,
            listed: Some(true),
        };
        add(root, &row.id, path, mark, preview, listing);
        if let Some(found) = listing.sessions.last_mut() {
            found.workspace = session.workspace;
            found.database = Some(database.clone());
        }
    }
    Ok(())
}

/// A session stored in files, unless another known one started it.
fn filed(
    root: &StoreRoot,
    storage: &FileStorage,
    (id, path): (&str, &Path),
    known: &HashSet<String>,
    listed: Option<bool>,
    listing: &mut StoreListing,
) {
    let mark = match files::stat(path) {
        Ok(metadata) => FileMark::of(&metadata),
        Err(problem) => return listing.problems.push(problem),
    };
    let mut session = TranscriptSession::new(TranscriptSource::OpenCode, id);
    match storage.session_info(id) {
        Ok(info) => session_info(&mut session, info.unwrap_or_default()),
        // It is shown all the same: its messages may be intact.
        Err(problem) => listing.problems.push(problem),
    }
    if session.parent.as_ref().is_some_and(|parent| known.contains(parent)) {
        return;
    }
    let preview = SessionPreview {
        title: session.title,
        created_at: session.created_at,
        modified_at: session.modified_at.or(Some(mark.modified_at)),
        listed,
    };
    add(root, id, path, mark, preview, listing);
}

fn add(root: &StoreRoot, id: &str, path: &Path, mark: FileMark, preview: SessionPreview, listing: &mut StoreListing) {
    listing.sessions.push(SessionLocation {
        product: root.product.clone(),
        path: path.to_owned(),
        mark,
        preview,
        ..SessionLocation::without_file(TranscriptSource::OpenCode, id)
    });
}

/// Reads a session out of a store, up to a break of `turns`.
fn tell(
    store: &dyn MessageStore,
    id: &str,
    depth: usize,
    seen: &mut HashSet<String>,
    turns: &mut TurnSink<'_>,
) -> Result<TranscriptSession, HistoryError> {
    let mut teller = TurnFold::new(store, id, depth, seen);
    match store.session_info(id) {
        Ok(Some(info)) => session_info(&mut teller.session, info),
        Ok(None) => teller.session.damage.mark(DamageKind::MissingStart),
        // A session's data may be damaged while its messages are intact.
        Err(HistoryError::Malformed { what, .. }) => {
            teller.session.damage.add(DamageKind::Damaged, DamageLocation { what, ..DamageLocation::default() });
        }
        Err(problem) => return Err(problem),
    }
    let mut flow = ControlFlow::Continue(());
    store.messages(id, &mut |message| {
        match message {
            Ok(message) => {
                if let Some(turn) = teller.take(message) {
                    flow = turns(turn);
                }
            }
            Err(what) => {
                teller.session.damage.add(DamageKind::Damaged, DamageLocation { what, ..DamageLocation::default() });
            }
        }
        flow.map_break(|_| ())
    })?;
    if flow.is_continue()
        && let Some(turn) = teller.end_turn()
    {
        // Nothing follows, so a break changes nothing.
        let _ended = turns(turn);
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
        let mut environment = StoreEnvironment { home: "/home/me".into(), ..StoreEnvironment::default() };
        let folder = |environment: &StoreEnvironment| store_roots(Platform::Linux, environment)[0].folder.clone();
        assert_eq!(folder(&environment).to_string_lossy(), "/home/me/.local/share/opencode");
        environment.data_home = Some("/data".into());
        assert_eq!(folder(&environment).to_string_lossy(), "/data/opencode");
    }
}
