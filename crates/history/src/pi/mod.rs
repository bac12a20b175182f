//! pi and oh-my-pi: a folder for each working directory, a file for each session, its entries one a line.
//!
//! All three versions of the format are read as they are: the first has no ids and so no branches. Entries hang from each
//! other; all turns are told in the order of the file, and each says which one it goes on from.

mod fold;

use std::io;
use std::path::Path;

use crate::damage::Mark;
use crate::error::HistoryError;
use crate::files;
use crate::growing;
use crate::normal::{ForeignSession, ForeignTurn, Source};
use crate::platform::{Environment, Platform, below, set};
use crate::reader::{Bookmark, Finding, Hints, Located, Reader, Reading, Root};
use fold::{Fold, Known, Own, session_of};

/// The reader of pi's and oh-my-pi's sessions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pi;

/// The product whose sessions pi's reader reads as well.
const OH_MY_PI: &str = "oh-my-pi";

/// The folders in which sessions lie: where the program is told to keep them, else where each does by itself.
pub fn locations(platform: Platform, environment: &Environment) -> Vec<Root> {
    let root = |product: &str, folder| Root { source: Source::Pi, product: product.to_owned(), folder };
    let home = environment.home.as_str();
    let pi = match set(environment.pi_home.as_ref()) {
        Some(own) => below(platform, own, &["sessions"]),
        None => below(platform, home, &[".pi", "agent", "sessions"]),
    };
    vec![root("pi", pi), root(OH_MY_PI, below(platform, home, &[".omp", "agent", "sessions"]))]
}

impl Reader for Pi {
    fn source(&self) -> Source {
        Source::Pi
    }

    fn find(&self, root: &Root, _: Hints) -> Finding {
        let mut finding = Finding::default();
        let mut folders = vec![root.folder.clone()];
        folders.extend(finding.names(&root.folder).iter().map(|name| root.folder.join(name)));
        for folder in folders {
            // What begins with a dot is being written, and takes the place of another when it is.
            let names = finding.names(&folder);
            for name in names.iter().filter(|name| name.ends_with(".jsonl") && !name.starts_with('.')) {
                finding.add_file(root, folder.join(name), Located::nowhere(Source::Pi, session_of(name)));
            }
        }
        finding
    }

    fn locate(&self, path: &Path) -> Result<Located, HistoryError> {
        let mut located = Located::of_file(Source::Pi, path)?;
        session_of(&path.to_string_lossy()).clone_into(&mut located.id);
        if path.ancestors().any(|folder| folder.file_name().is_some_and(|name| name == ".omp")) {
            OH_MY_PI.clone_into(&mut located.product);
        }
        Ok(located)
    }

    fn read(
        &self,
        located: &Located,
        from: Option<&Bookmark>,
        turns: &mut dyn FnMut(ForeignTurn),
    ) -> Result<Reading, HistoryError> {
        let path = located.meant_for(Source::Pi)?;
        let (file, _) = files::open(path)?;
        let product = if located.product.is_empty() { "pi" } else { &located.product };
        let begin = |known| begin(known, &located.id, product);
        let read = growing::read(growing::of_file(&file), begin, from, turns);
        Ok(read.map_err(|error| HistoryError::io(path, error))?.reading(located, finish))
    }
}

/// Reads a session's file that is at hand, from its beginning or from a bookmark.
pub fn read_log(
    bytes: &[u8],
    id: &str,
    from: Option<&Bookmark>,
    turns: &mut dyn FnMut(ForeignTurn),
) -> io::Result<Reading> {
    let begin = |known| begin(known, id, "pi");
    let grown = growing::read(growing::of_bytes(bytes), begin, from, turns)?;
    Ok(grown.reading(&Located::nowhere(Source::Pi, id), finish))
}

fn begin(carried: Option<Known>, id: &str, product: &str) -> Fold {
    let is_resumed = carried.is_some();
    Fold::new(carried.unwrap_or_else(|| Known::begun(id, product)), is_resumed)
}

fn finish(known: Known) -> ForeignSession {
    let Known { mut session, own: Own { title, has_start, .. }, .. } = known;
    if !has_start && !session.damage.marks.contains(&Mark::Empty) {
        session.damage.mark(Mark::MissingStart);
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
            Environment { home: "/home/me".into(), pi_home: Some("/own".into()), ..Environment::default() };
        let roots = locations(Platform::Linux, &environment);
        let told: Vec<_> = roots.iter().map(|root| (root.product.as_str(), root.folder.to_str().unwrap())).collect();
        assert_eq!(told, [("pi", "/own/sessions"), ("oh-my-pi", "/home/me/.omp/agent/sessions")]);
    }

    #[test]
    fn a_session_is_known_by_its_files_name_or_its_id() {
        for name in ["2026-01-02T03-04-05-000Z_abc.jsonl", "/x/y/2026_abc.jsonl", "abc"] {
            assert_eq!(session_of(name), "abc", "{name}");
        }
    }
}
