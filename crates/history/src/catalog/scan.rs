//! Bringing the catalog up to date.
//!
//! Folders are listed and files' marks compared; only what is new or has changed is opened, by several threads, and what
//! they read is written down by the one that called.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use rusqlite::params;

use super::entry::{Entry, key_of, name_of};
use super::error::CatalogError;
use super::keep::{self, Copied, Keep};
use super::place::Folders;
use super::store::{self, Catalog, Known, Marks, Noted};
use crate::changes::{Gathered, Gathering};
use crate::error::HistoryError;
use crate::fingerprint::Fingerprint;
use crate::normal::Source;
use crate::reader::{Bookmark, FileMark, Finding, Hints, Located, Reading, Root};
use crate::reader_of;

/// How many threads read, at most.
const MAX_THREADS: usize = 4;
/// How many read sessions may wait to be written down. Beyond, reading waits.
const MAX_WAITING: usize = 64;
/// Files larger than this are read one at a time: some formats are held in memory whole while they are read.
const LARGE: u64 = 8 * 1024 * 1024;
/// After how many sessions what was read is there to be listed, also where the scan does not come to its end.
const AT_ONCE: usize = 256;
/// How many problems a report tells. Further ones are counted.
const MAX_PROBLEMS: usize = 100;

/// What to look at.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    pub roots: Vec<Root>,
    /// Copies what tools are about to delete.
    pub keep: Option<Keep>,
}

/// How far a scan has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub phase: Phase,
    /// How many sessions were read, of how many that must be.
    pub read: usize,
    pub of: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Looking,
    Reading,
    Done,
}

/// What a scan came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanReport {
    /// How many sessions there are.
    pub sessions: usize,
    /// How many files were opened; of those, how many were read on from where they ended before.
    pub read: usize,
    pub continued: usize,
    pub removed: usize,
    /// How many sessions are left as a copy alone, and how many copies were made now.
    pub gone: usize,
    pub copied: usize,
    /// How many sessions' folders were found elsewhere.
    pub moved: usize,
    /// Sessions with less than what their tool once wrote.
    pub recovered: usize,
    /// What could not be read at all, in words: the first hundred.
    pub problems: Vec<String>,
    pub untold_problems: usize,
}

impl ScanReport {
    fn problem(&mut self, problem: impl ToString) {
        match self.problems.len() < MAX_PROBLEMS {
            true => self.problems.push(problem.to_string()),
            false => self.untold_problems += 1,
        }
    }
}

/// A session that is read, or could not be.
struct Done {
    located: Located,
    known: Option<Entry>,
    reading: Result<Reading, HistoryError>,
    changes: Gathered,
    continued: bool,
}

impl Catalog {
    /// Brings the catalog up to date with what lies below the roots. `progress` is called from this thread.
    ///
    /// A database that turns out to be damaged is made anew, and read once more.
    pub fn scan(&self, scan: &Scan, progress: &mut dyn FnMut(Progress)) -> Result<ScanReport, CatalogError> {
        match self.scan_once(scan, progress) {
            Err(error) if error.is_damage() => {
                self.clear()?;
                self.scan_once(scan, progress)
            }
            result => result,
        }
    }

    fn scan_once(&self, scan: &Scan, progress: &mut dyn FnMut(Progress)) -> Result<ScanReport, CatalogError> {
        progress(Progress { phase: Phase::Looking, read: 0, of: 0 });
        let mut report = ScanReport::default();
        let marks = self.marks()?;
        let mut found = HashSet::new();
        let mut stale: Vec<Located> = Vec::new();
        let mut unread: Vec<&Root> = Vec::new();
        for (root, Finding { sessions, problems, .. }) in look(scan, &marks) {
            problems.iter().for_each(|problem| report.problem(problem));
            if !problems.is_empty() {
                unread.push(root);
            }
            let lifetime = scan.keep.as_ref().and_then(|keep| Some((keep, keep::lifetime(root)?)));
            for located in sessions {
                if let Some((keep, lifetime)) = lifetime
                    && keep.is_due(lifetime, located.mark.modified_at)
                {
                    match keep.copy(&located) {
                        Ok(is_new) => report.copied += usize::from(is_new),
                        Err(error) => report.problem(format!("{} is not kept: {error}", located.path.display())),
                    }
                }
                let key = key_of(&located);
                if marks.get(&key) != Some(&Marks::of(&located)) && !found.contains(&key) {
                    stale.push(located);
                }
                found.insert(key);
            }
        }
        let mut origins = HashMap::new();
        for Copied { located, origin } in scan.keep.iter().flat_map(Keep::copies) {
            // Nobody needs the copy while the file is there.
            if found.contains(&origin) || origin.exists() {
                continue;
            }
            report.gone += 1;
            found.insert(located.path.clone());
            origins.insert(located.path.clone(), origin);
            if marks.get(&located.path) != Some(&Marks::of(&located)) {
                stale.push(located);
            }
        }
        self.read_all(stale, &marks, &origins, &mut report, progress)?;
        self.forget_gone(scan, &marks, &found, &unread, &mut report)?;
        self.attach_moved(&mut report)?;
        report.sessions = usize::try_from(self.len()?).unwrap_or_default();
        progress(Progress { phase: Phase::Done, read: report.read, of: report.read });
        Ok(report)
    }

    /// Reads what has changed and writes it down.
    fn read_all(
        &self,
        mut stale: Vec<Located>,
        marks: &HashMap<PathBuf, Marks>,
        origins: &HashMap<PathBuf, PathBuf>,
        report: &mut ScanReport,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), CatalogError> {
        if stale.is_empty() {
            return Ok(());
        }
        // The large ones first, so that no thread is left alone with one at the end.
        stale.sort_by_key(|located| std::cmp::Reverse(located.mark.size));
        let of = stale.len();
        let (next, large) = (AtomicUsize::new(0), Mutex::new(()));
        let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS).min(of);
        let mut folders = Folders::default();
        let (done, waiting) = mpsc::sync_channel::<Done>(MAX_WAITING);
        thread::scope(|scope| {
            for _ in 0..threads {
                let done = done.clone();
                let (stale, next, large) = (&stale, &next, &large);
                scope.spawn(move || {
                    while let Some(located) = stale.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let _alone =
                            (located.mark.size > LARGE).then(|| large.lock().unwrap_or_else(PoisonError::into_inner));
                        let key = key_of(located);
                        let known = if marks.contains_key(&key) { self.known(&key) } else { Ok(None) };
                        // What is not known any more is read from its beginning.
                        let known = known.unwrap_or_default();
                        let before = marks.get(&key).map(|marks| marks.mark);
                        if done.send(self.read(located.clone(), known, before)).is_err() {
                            // Whoever writes down has failed, and says so.
                            return;
                        }
                    }
                });
            }
            drop(done);
            let mut writer = self.writer();
            let mut transaction = writer.transaction()?;
            for (at, done) in waiting.into_iter().enumerate() {
                if at % AT_ONCE == AT_ONCE - 1 {
                    transaction.commit()?;
                    transaction = writer.transaction()?;
                }
                report.read += 1;
                report.continued += usize::from(done.continued);
                match done.reading {
                    Ok(reading) => {
                        let Reading { session, bookmark, ending } = reading;
                        let Gathered { changes, before } = done.changes;
                        let place = session.workspace.folders.first().filter(|place| place.host.is_none());
                        let changes = changes.below(place.and_then(|place| place.path.as_deref()));
                        let mut entry = entry_of(&done.located, done.known, session, &mut folders);
                        entry.kept_from = origins.get(&entry.path).cloned();
                        report.recovered += usize::from(entry.session.damage.is_recovered());
                        let beside_written = done.located.beside_written;
                        let noted = Noted { bookmark, ending, changes, before, beside_written };
                        store::write(&transaction, &mut entry, &noted)?;
                    }
                    // One that went away meanwhile is no problem.
                    Err(HistoryError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => report.problem(error),
                }
                progress(Progress { phase: Phase::Reading, read: at + 1, of });
            }
            transaction.commit()?;
            Ok(())
        })
    }

    /// Reads a session, from its bookmark where the file has only grown.
    fn read(&self, mut located: Located, known: Option<Known>, before: Option<FileMark>) -> Done {
        let key = key_of(&located);
        let (known, bookmark) = known.map_or((None, None), |known| (Some(known.entry), known.bookmark));
        if let Some(known) = &known {
            // What the tool's lists said when the session was new still holds, as far as nothing newer is known.
            located.headline.title = located.headline.title.take().or_else(|| known.listed_title.clone());
            located.headline.created_at = located.headline.created_at.or(known.session.created_at);
            located.headline.listed = located.headline.listed.or(known.listed);
        }
        let grown = |before: FileMark| before.inode == located.mark.inode && before.size < located.mark.size;
        let bookmark: Option<Bookmark> = bookmark.filter(|bookmark| {
            before.is_some_and(grown)
                && before.is_some_and(|before| bookmark.offset <= before.size)
                // Other programs write over a log in place, which leaves it longer than it was as well.
                && bookmark.fingerprint.is_some_and(|print| print.fits(&located.path))
        });
        // Before it is read: what is written over it meanwhile does not fit then.
        let fingerprint = Fingerprint::of(&located.path, located.mark.size);
        // Without what was changed before it a bookmark is of no use.
        let bookmark = bookmark.and_then(|bookmark| Some((self.changes_before(&key).ok()?, bookmark)));
        let reader = reader_of(located.source);
        let (mut continued, mut gathering) = match &bookmark {
            Some((changes, bookmark)) => (true, Gathering::from(bookmark, changes.clone())),
            None => (false, Gathering::default()),
        };
        let bookmark = bookmark.map(|(_, bookmark)| bookmark);
        let mut reading = reader.read(&located, bookmark.as_ref(), &mut |turn| gathering.take(&turn));
        if continued && reading.is_err() {
            (gathering, continued) = (Gathering::default(), false);
            reading = reader.read(&located, None, &mut |turn| gathering.take(&turn));
        }
        if let (Ok(reading), Some(bookmark), true) = (&mut reading, &bookmark, continued)
            && let Some(before) = self.ending_of(&key).unwrap_or_default()
        {
            reading.ending = Some(match reading.ending.take() {
                Some(more) => before.grown(more, bookmark),
                None => before,
            });
        }
        if let Ok(reading) = &mut reading {
            reading.bookmark = reading.bookmark.take().filter(|bookmark| gathering.fits(bookmark));
            if let Some(bookmark) = &mut reading.bookmark {
                bookmark.fingerprint = fingerprint;
            }
            if let Some(ending) = &mut reading.ending {
                ending.fingerprint = fingerprint;
            }
        }
        Done { located, known, reading, changes: gathering.finish(), continued }
    }

    /// Takes out what is gone. What lies where nobody may look for now is not.
    fn forget_gone(
        &self,
        scan: &Scan,
        marks: &HashMap<PathBuf, Marks>,
        found: &HashSet<PathBuf>,
        unread: &[&Root],
        report: &mut ScanReport,
    ) -> Result<(), CatalogError> {
        let missing = marks.keys().filter(|path| !found.contains(*path));
        // A database that could not be read now may hold what it held.
        let is_doubtful =
            |path: &Path| unread.iter().any(|root| root.source == Source::OpenCode && path.starts_with(&root.folder));
        let is_gone = |path: &Path| path.try_exists().is_ok() && !hides(scan, path) && !is_doubtful(path);
        let gone: Vec<&PathBuf> = missing.filter(|path| is_gone(path)).collect();
        if gone.is_empty() {
            return Ok(());
        }
        let mut writer = self.writer();
        let transaction = writer.transaction()?;
        for path in gone {
            store::forget(&transaction, path)?;
            report.removed += 1;
        }
        transaction.commit()?;
        Ok(())
    }

    /// Finds folders that were moved by the repositories that they had.
    fn attach_moved(&self, report: &mut ScanReport) -> Result<(), CatalogError> {
        let writer = self.writer();
        let mut folders = Folders::default();
        let mut lost: Vec<(String, String)> = Vec::new();
        {
            let mut statement =
                writer.prepare("SELECT DISTINCT folder, repository FROM session WHERE folder IS NOT NULL")?;
            let rows =
                statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?)))?;
            for row in rows {
                let (folder, repository) = row?;
                if Path::new(&folder).is_dir() {
                    folders.note(&folder);
                } else if let Some(repository) = repository {
                    lost.push((folder, repository));
                }
            }
        }
        for (folder, repository) in lost {
            if let Some(place) = folders.moved_to(&repository) {
                let sql = "UPDATE session SET folder = ?2, entry = json_set(entry, '$.folder', ?2) WHERE folder = ?1 AND repository = ?3";
                let place = place.to_string_lossy();
                report.moved += writer.prepare(sql)?.execute(params![folder, place, repository])?;
            }
        }
        Ok(())
    }
}

/// What lies below each root. A tool's own lists are looked at only where something is there that was not: they cost more
/// than all the rest.
fn look<'a>(scan: &'a Scan, marks: &HashMap<PathBuf, Marks>) -> Vec<(&'a Root, Finding)> {
    thread::scope(|scope| {
        let look = |root: &'a Root| {
            let reader = reader_of(root.source);
            let quick = reader.find(root, Hints::Leave);
            let is_known = quick.sessions.iter().all(|located| marks.contains_key(&key_of(located)));
            match is_known || !reader.has_hints() {
                true => (root, quick),
                false => (root, reader.find(root, Hints::Read)),
            }
        };
        let threads: Vec<_> = scan
            .roots
            .iter()
            // Most roots are not there, and need no thread.
            .filter(|root| root.folder.is_dir())
            .map(|root| scope.spawn(move || look(root)))
            .collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    })
}

fn entry_of(
    located: &Located,
    known: Option<Entry>,
    mut session: crate::ForeignSession,
    folders: &mut Folders,
) -> Entry {
    session.raw.clear();
    session.draft = None;
    let found = folders.look(&session.workspace);
    Entry {
        id: name_of(session.source, &session.source_id),
        product: located.product.clone(),
        path: located.path.clone(),
        older: located.older.clone(),
        kept_from: None,
        mark: located.mark,
        listed: located.headline.listed,
        listed_title: located.headline.title.clone(),
        folder: found.folder,
        // A folder that is gone cannot tell any more.
        repository: found.repository.or_else(|| known.and_then(|known| known.repository)),
        session,
    }
}

/// Whether a path lies below a root that is there and cannot be looked into.
fn hides(scan: &Scan, path: &Path) -> bool {
    let unreadable = |root: &Root| match std::fs::read_dir(&root.folder) {
        Ok(_) => false,
        Err(error) => error.kind() != io::ErrorKind::NotFound && error.kind() != io::ErrorKind::NotADirectory,
    };
    scan.roots.iter().any(|root| path.starts_with(&root.folder) && unreadable(root))
}
