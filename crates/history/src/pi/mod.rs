//! pi and oh-my-pi: a folder for each working directory, a file for each session, one entry per line.
//!
//! All three versions of the format are read directly: the first has no ids and so no branches. Entries have parents;
//! all turns are returned in file order, each with its parent turn.

mod fold;

use std::io;
use std::path::Path;

use crate::append_log;
use crate::error::HistoryError;
use crate::files;
use crate::platform::{Platform, StoreEnvironment, below, set};
use crate::reader::{
    Bookmark, Hints, HistoryReader, ReadOutcome, SessionLocation, StoreListing, StoreRoot, TurnSink, every,
};
use fold::{FoldState, ReaderState, TurnFold, session_of};
use grove_transcript::{DamageKind, TranscriptSession, TranscriptSource, TranscriptTurn};

/// The reader of pi's and oh-my-pi's sessions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pi;

/// The product whose sessions pi's reader reads as well.
const OH_MY_PI: &str = "oh-my-pi";

/// The folders of sessions: the configured one, else the defaults.
pub fn store_roots(platform: Platform, environment: &StoreEnvironment) -> Vec<StoreRoot> {
    let root = |product: &str, folder| StoreRoot { source: TranscriptSource::Pi, product: product.to_owned(), folder };
    let home = environment.home.as_str();
    let pi = match set(environment.pi_home.as_ref()) {
        Some(own) => below(platform, own, &["sessions"]),
        None => below(platform, home, &[".pi", "agent", "sessions"]),
    };
    vec![root("pi", pi), root(OH_MY_PI, below(platform, home, &[".omp", "agent", "sessions"]))]
}

impl HistoryReader for Pi {
    fn source(&self) -> TranscriptSource {
        TranscriptSource::Pi
    }

    fn find(&self, root: &StoreRoot, _: Hints) -> StoreListing {
        let mut listing = StoreListing::default();
        let mut folders = vec![root.folder.clone()];
        folders.extend(listing.names(&root.folder).iter().map(|name| root.folder.join(name)));
        for folder in folders {
            // A file that begins with a dot is being written, and will replace another.
            let names = listing.names(&folder);
            for name in names.iter().filter(|name| name.ends_with(".jsonl") && !name.starts_with('.')) {
                listing.add_file(
                    root,
                    folder.join(name),
                    SessionLocation::without_file(TranscriptSource::Pi, session_of(name)),
                );
            }
        }
        listing
    }

    fn locate(&self, path: &Path) -> Result<SessionLocation, HistoryError> {
        let mut location = SessionLocation::of_file(TranscriptSource::Pi, path)?;
        session_of(&path.to_string_lossy()).clone_into(&mut location.id);
        if path.ancestors().any(|folder| folder.file_name().is_some_and(|name| name == ".omp")) {
            OH_MY_PI.clone_into(&mut location.product);
        }
        Ok(location)
    }

    fn read_until(
        &self,
        location: &SessionLocation,
        from: Option<&Bookmark>,
        turns: &mut TurnSink<'_>,
    ) -> Result<ReadOutcome, HistoryError> {
        let path = location.path_for(TranscriptSource::Pi)?;
        let (file, _) = files::open(path)?;
        let product = if location.product.is_empty() { "pi" } else { &location.product };
        let begin = |known| begin(known, &location.id, product);
        let read = append_log::read(append_log::of_file(&file), begin, from, turns);
        Ok(read.map_err(|error| HistoryError::io(path, error))?.reading(location, finish))
    }
}

/// Reads a session's file in memory, from its beginning or from a bookmark.
pub fn read_log(
    bytes: &[u8],
    id: &str,
    from: Option<&Bookmark>,
    turns: &mut dyn FnMut(TranscriptTurn),
) -> io::Result<ReadOutcome> {
    let begin = |known| begin(known, id, "pi");
    let grown = append_log::read(append_log::of_bytes(bytes), begin, from, &mut every(turns))?;
    Ok(grown.reading(&SessionLocation::without_file(TranscriptSource::Pi, id), finish))
}

fn begin(carried: Option<FoldState>, id: &str, product: &str) -> TurnFold {
    let is_resumed = carried.is_some();
    TurnFold::new(carried.unwrap_or_else(|| FoldState::initial(id, product)), is_resumed)
}

fn finish(known: FoldState) -> TranscriptSession {
    let FoldState { mut session, own: ReaderState { title, has_start, .. }, .. } = known;
    if !has_start && !session.damage.marks.contains(&DamageKind::Empty) {
        session.damage.mark(DamageKind::MissingStart);
    }
    let first = session.first_message.lines().next().map(str::to_owned);
    let first = first.filter(|first| session.turns > 0 && !first.is_empty());
    session.title = title.filter(|title| !title.is_empty()).or(first);
    session.modified_at = session.modified_at.or(session.created_at);
    session
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_both_programs_are_looked_for_where_they_are_kept() {
        let environment =
            StoreEnvironment { home: "/home/me".into(), pi_home: Some("/own".into()), ..StoreEnvironment::default() };
        let roots = store_roots(Platform::Linux, &environment);
        let folders: Vec<_> = roots.iter().map(|root| (root.product.as_str(), root.folder.to_str().unwrap())).collect();
        assert_eq!(folders, [("pi", "/own/sessions"), ("oh-my-pi", "/home/me/.omp/agent/sessions")]);
    }

    #[test]
    fn a_session_is_known_by_its_files_name_or_its_id() {
        for name in ["2026-01-02T03-04-05-000Z_abc.jsonl", "/x/y/2026_abc.jsonl", "abc"] {
            assert_eq!(session_of(name), "abc", "{name}");
        }
    }
}
