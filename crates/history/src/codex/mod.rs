//! Codex: a file for each session, called a rollout, with what happened one a line. Old ones are compressed.
//!
//! A rollout only grows, so a reading can go on where the newest turn began. Turns that were rolled back stay in it: the
//! turn behind them says which one it goes on from.

mod find;
mod fold;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use crate::damage::{BadPlace, Mark};
use crate::error::HistoryError;
use crate::files;
use crate::growing::{self, BUFFER, Grown};
use crate::normal::{ForeignSession, ForeignTurn, Source};
use crate::platform::{Environment, Platform, below, set};
use crate::reader::{Bookmark, Finding, Hints, Located, Reader, Reading, Root};
use fold::{Fold, Known, Own};

/// The reader of Codex's sessions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Codex;

/// The folder in which sessions lie: where the program is told to keep them, else where it does by itself.
pub fn locations(platform: Platform, environment: &Environment) -> Vec<Root> {
    let folder = match set(environment.codex_home.as_ref()) {
        Some(home) => below(platform, home, &[]),
        None => below(platform, &environment.home, &[".codex"]),
    };
    vec![Root { source: Source::Codex, product: "Codex".to_owned(), folder }]
}

impl Reader for Codex {
    fn source(&self) -> Source {
        Source::Codex
    }

    fn find(&self, root: &Root, hints: Hints) -> Finding {
        find::find(root, hints)
    }

    fn locate(&self, path: &Path) -> Result<Located, HistoryError> {
        find::locate(path)
    }

    fn read(
        &self,
        located: &Located,
        from: Option<&Bookmark>,
        turns: &mut dyn FnMut(ForeignTurn),
    ) -> Result<Reading, HistoryError> {
        let path = located.meant_for(Source::Codex)?;
        let (file, _) = files::open(path)?;
        let name = path.file_name().and_then(|name| name.to_str()).and_then(find::rollout);
        let (id, is_packed) = name.unwrap_or((&located.id, false));
        let read = if is_packed {
            read_packed(file, id, turns)
        } else {
            growing::read(growing::of_file(&file), |known| begin(known, id), from, turns)
        };
        let grown = read.map_err(|error| HistoryError::io(path, error))?;
        Ok(grown.reading(located, |known| finish(known, located.headline.title.clone())))
    }
}

/// Reads a rollout that is at hand, from its beginning or from a bookmark.
pub fn read_log(
    bytes: &[u8],
    id: &str,
    from: Option<&Bookmark>,
    turns: &mut dyn FnMut(ForeignTurn),
) -> io::Result<Reading> {
    let grown = growing::read(growing::of_bytes(bytes), |known| begin(known, id), from, turns)?;
    Ok(grown.reading(&Located::nowhere(Source::Codex, id), |known| finish(known, None)))
}

/// Reads a compressed rollout. One that is torn gives what can be unpacked. It is not written any more, so there is nothing
/// to read on from.
fn read_packed(file: File, id: &str, turns: &mut dyn FnMut(ForeignTurn)) -> io::Result<Grown<Own>> {
    let mut broken = None;
    let unpacked = match ruzstd::decoding::StreamingDecoder::new(BufReader::with_capacity(BUFFER, file)) {
        Ok(unpacked) => Some(unpacked),
        Err(error) => {
            broken = Some(error.to_string());
            None
        }
    };
    let source = Torn { source: unpacked, error: &mut broken };
    let mut source = Some(BufReader::with_capacity(BUFFER, source));
    let once = |_| source.take().ok_or_else(|| io::Error::other("it is read once"));
    let mut known = growing::read(once, |known| begin(known, id), None, turns)?.known;
    if let Some(what) = broken {
        known.session.damage.add(Mark::TornTail, BadPlace { what, ..BadPlace::default() });
    }
    Ok(Grown { known, bookmark: None, steps: None })
}

/// A source that ends where it cannot be read on, and says why.
struct Torn<'a, R> {
    source: Option<R>,
    error: &'a mut Option<String>,
}

impl<R: Read> Read for Torn<'_, R> {
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

fn begin(carried: Option<Known>, id: &str) -> Fold {
    Fold::new(carried.unwrap_or_else(|| Known::begun(id)))
}

fn finish(known: Known, listed: Option<String>) -> ForeignSession {
    let Known { mut session, own: Own { title, has_start, .. }, .. } = known;
    if !has_start && session.turns > 0 {
        session.damage.mark(Mark::MissingStart);
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
        let folder = |environment: &Environment| locations(Platform::Linux, environment)[0].folder.clone();
        let mut environment = Environment { home: "/home/me".into(), ..Environment::default() };
        assert_eq!(folder(&environment).to_string_lossy(), "/home/me/.codex");
        environment.codex_home = Some("/own/".into());
        assert_eq!(folder(&environment).to_string_lossy(), "/own");
    }
}
