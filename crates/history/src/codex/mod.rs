//! Codex: a file for each session, called a rollout, with one record per line. Old ones are compressed.
//!
//! A rollout only grows, so a read can continue at the newest turn. Rolled back turns stay in it: the turn after them
//! names its parent.

mod content;
mod find;
mod fold;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use crate::append_log::{self, BUFFER, LogOutcome};
use crate::error::HistoryError;
use crate::files;
use crate::platform::{Platform, StoreEnvironment, below, set};
use crate::reader::{
    Bookmark, Hints, HistoryReader, ReadOutcome, SessionLocation, StoreListing, StoreRoot, TurnSink, every,
};
use fold::{FoldState, ReaderState, TurnFold};
use grove_transcript::{DamageKind, DamageLocation, TranscriptSession, TranscriptSource, TranscriptTurn};

/// The reader of Codex's sessions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Codex;

/// The folder of sessions: the configured one, else the default.
pub fn store_roots(platform: Platform, environment: &StoreEnvironment) -> Vec<StoreRoot> {
    let folder = match set(environment.codex_home.as_ref()) {
        Some(home) => below(platform, home, &[]),
        None => below(platform, &environment.home, &[".codex"]),
    };
    vec![StoreRoot { source: TranscriptSource::Codex, product: "Codex".to_owned(), folder }]
}

impl HistoryReader for Codex {
    fn source(&self) -> TranscriptSource {
        TranscriptSource::Codex
    }

    fn find(&self, root: &StoreRoot, hints: Hints) -> StoreListing {
        find::find(root, hints)
    }

    fn locate(&self, path: &Path) -> Result<SessionLocation, HistoryError> {
        find::locate(path)
    }

    fn read_until(
        &self,
        location: &SessionLocation,
        from: Option<&Bookmark>,
        turns: &mut TurnSink<'_>,
    ) -> Result<ReadOutcome, HistoryError> {
        let path = location.path_for(TranscriptSource::Codex)?;
        let (file, _) = files::open(path)?;
        let name = path.file_name().and_then(|name| name.to_str()).and_then(find::rollout);
        let (id, is_packed) = name.unwrap_or((&location.id, false));
        let read = if is_packed {
            read_packed(file, id, turns)
        } else {
            append_log::read(append_log::of_file(&file), |known| begin(known, id), from, turns)
        };
        let grown = read.map_err(|error| HistoryError::io(path, error))?;
        Ok(grown.reading(location, |known| finish(known, location.preview.title.clone())))
    }
}

/// Reads a rollout in memory, from its beginning or from a bookmark.
pub fn read_log(
    bytes: &[u8],
    id: &str,
    from: Option<&Bookmark>,
    turns: &mut dyn FnMut(TranscriptTurn),
) -> io::Result<ReadOutcome> {
    let grown = append_log::read(append_log::of_bytes(bytes), |known| begin(known, id), from, &mut every(turns))?;
    Ok(grown.reading(&SessionLocation::without_file(TranscriptSource::Codex, id), |known| finish(known, None)))
}

/// Reads a compressed rollout. Of a truncated one everything that can be decompressed is read. It does not grow any
/// more, so it has no bookmark.
fn read_packed(file: File, id: &str, turns: &mut TurnSink<'_>) -> io::Result<LogOutcome<ReaderState>> {
    let mut broken = None;
    let unpacked = match ruzstd::decoding::StreamingDecoder::new(BufReader::with_capacity(BUFFER, file)) {
        Ok(unpacked) => Some(unpacked),
        Err(error) => {
            broken = Some(error.to_string());
            None
        }
    };
    let source = TruncatedReader { source: unpacked, error: &mut broken };
    let mut source = Some(BufReader::with_capacity(BUFFER, source));
    let once = |_| source.take().ok_or_else(|| io::Error::other("it is read once"));
    let LogOutcome { mut known, may_go_back, .. } = append_log::read(once, |known| begin(known, id), None, turns)?;
    if let Some(what) = broken {
        known.session.damage.add(DamageKind::TornTail, DamageLocation { what, ..DamageLocation::default() });
    }
    Ok(LogOutcome { known, bookmark: None, steps: None, may_go_back })
}

/// A source that ends at the first error, and keeps the error.
struct TruncatedReader<'a, R> {
    source: Option<R>,
    error: &'a mut Option<String>,
}

impl<R: Read> Read for TruncatedReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(source) = &mut self.source else { return Ok(0) };
        match source.read(buffer) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                *self.error = Some(error.to_string());
                self.source = None;
                Ok(0)
            }
            read => read,
        }
    }
}

fn begin(carried: Option<FoldState>, id: &str) -> TurnFold {
    TurnFold::new(carried.unwrap_or_else(|| FoldState::initial(id)))
}

fn finish(known: FoldState, listed: Option<String>) -> TranscriptSession {
    let FoldState { mut session, own: ReaderState { title, has_start, .. }, .. } = known;
    if !has_start && session.turns > 0 {
        session.damage.mark(DamageKind::MissingStart);
    }
    let first = session.first_message.lines().next().map(str::to_owned);
    let first = first.filter(|first| session.turns > 0 && !first.is_empty());
    session.title = title.or(listed).or(first);
    session
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_looked_for_where_the_program_is_told_to_keep_them() {
        let folder = |environment: &StoreEnvironment| store_roots(Platform::Linux, environment)[0].folder.clone();
        let mut environment = StoreEnvironment { home: "/home/me".into(), ..StoreEnvironment::default() };
        assert_eq!(folder(&environment).to_string_lossy(), "/home/me/.codex");
        environment.codex_home = Some("/own/".into());
        assert_eq!(folder(&environment).to_string_lossy(), "/own");
    }
}
