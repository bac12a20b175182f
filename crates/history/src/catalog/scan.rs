//! Updates the catalog.
//!
//! Folders are listed and files' marks compared. Several threads open only new and changed files; the calling thread
//! writes the results.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use grove_transcript::TranscriptSource;
use rusqlite::params;

use super::backup::{self, BackupStore, SessionBackup};
use super::entry::{CatalogEntry, key_of, name_of};
use super::error::CatalogError;
use super::folder_index::FolderIndex;
use super::store::{self, Catalog, EntryDetails, FileMarks, StoredEntry};
use crate::changes::{ChangeCollector, CollectedChanges};
use crate::error::HistoryError;
use crate::fingerprint::Fingerprint;
use crate::reader::{Bookmark, FileMark, Hints, ReadOutcome, SessionLocation, StoreListing, StoreRoot};
use crate::reader_of;

/// The maximum number of reading threads.
const MAX_THREADS: usize = 4;
/// The maximum number of read sessions that wait to be written. Beyond it, reading waits.
const MAX_WAITING: usize = 64;
/// Files larger than this are read one at a time: some formats are held in memory completely while they are read.
const LARGE: u64 = 8 * 1024 * 1024;
/// The number of sessions per transaction, which are listed even if the scan does not finish.
const AT_ONCE: usize = 256;
/// The maximum number of reported problems. Further ones are counted.
const MAX_PROBLEMS: usize = 100;

/// A request for a scan.
#[derive(Clone, Debug, Default)]
pub struct ScanRequest {
    pub roots: Vec<StoreRoot>,
    /// Backs up sessions that tools are about to delete.
    pub keep: Option<BackupStore>,
}

/// The progress of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanProgress {
    pub phase: ScanPhase,
    /// The number of sessions that were read, and that have to be.
    pub read: usize,
    pub of: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanPhase {
    Listing,
    ReadingFiles,
    Finished,
}

/// The result of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanReport {
    /// The number of sessions.
    pub sessions: usize,
    /// The number of opened files; and of those that were read on from their earlier end.
    pub read: usize,
    pub continued: usize,
    pub removed: usize,
    /// The number of sessions that exist only as a backup, and of new backups.
    pub gone: usize,
    pub copied: usize,
    /// The number of sessions whose folders were found elsewhere.
    pub moved: usize,
    /// Sessions with less than their tool once wrote.
    pub recovered: usize,
    /// Problems in words: the first hundred.
    pub problems: Vec<String>,
    pub omitted_problems: usize,
}

impl ScanReport {
    fn problem(&mut self, problem: impl ToString) {
        match self.problems.len() < MAX_PROBLEMS {
            true => self.problems.push(problem.to_string()),
            false => self.omitted_problems += 1,
        }
    }
}

/// A session that was read, or failed to be.
struct ScannedSession {
    location: SessionLocation,
    known: Option<CatalogEntry>,
    reading: Result<ReadOutcome, HistoryError>,
    changes: CollectedChanges,
    continued: bool,
}

impl Catalog {
    /// Updates the catalog from the files below the roots. `progress` is called from this thread.
    ///
    /// A database that turns out to be damaged is replaced, and the scan is repeated once.
    pub fn scan(&self, scan: &ScanRequest, progress: &mut dyn FnMut(ScanProgress)) -> Result<ScanReport, CatalogError> {
        match self.scan_once(scan, progress) {
            Err(error) if error.is_damage() => {
                self.clear()?;
                self.scan_once(scan, progress)
            }
            result => result,
        }
    }

    fn scan_once(
        &self,
        scan: &ScanRequest,
        progress: &mut dyn FnMut(ScanProgress),
    ) -> Result<ScanReport, CatalogError> {
        progress(ScanProgress { phase: ScanPhase::Listing, read: 0, of: 0 });
        let mut report = ScanReport::default();
        let marks = self.marks()?;
        let mut found = HashSet::new();
        let mut stale: Vec<SessionLocation> = Vec::new();
        let mut unread: Vec<&StoreRoot> = Vec::new();
        for (root, StoreListing { sessions, problems, .. }) in look(scan, &marks) {
            problems.iter().for_each(|problem| report.problem(problem));
            if !problems.is_empty() {
                unread.push(root);
            }
            let lifetime = scan.keep.as_ref().and_then(|keep| Some((keep, backup::lifetime(root)?)));
            for location in sessions {
                if let Some((keep, lifetime)) = lifetime
                    && keep.is_due(lifetime, location.mark.modified_at)
                {
                    match keep.copy(&location) {
                        Ok(is_new) => report.copied += usize::from(is_new),
                        Err(error) => report.problem(format!("{} is not kept: {error}", location.path.display())),
                    }
                }
                let key = key_of(&location);
                if marks.get(&key) != Some(&FileMarks::of(&location)) && !found.contains(&key) {
                    stale.push(location);
                }
                found.insert(key);
            }
        }
        let mut origins = HashMap::new();
        for SessionBackup { location, origin } in scan.keep.iter().flat_map(BackupStore::copies) {
            // The backup is not needed while the file exists.
            if found.contains(&origin) || origin.exists() {
                continue;
            }
            report.gone += 1;
            found.insert(location.path.clone());
            origins.insert(location.path.clone(), origin);
            if marks.get(&location.path) != Some(&FileMarks::of(&location)) {
                stale.push(location);
            }
        }
        self.read_all(stale, &marks, &origins, &mut report, progress)?;
        self.remove_missing(scan, &marks, &found, &unread, &mut report)?;
        self.relocate_moved(&mut report)?;
        report.sessions = usize::try_from(self.len()?).unwrap_or_default();
        progress(ScanProgress { phase: ScanPhase::Finished, read: report.read, of: report.read });
        Ok(report)
    }

    /// Reads the changed sessions and writes them.
    fn read_all(
        &self,
        mut stale: Vec<SessionLocation>,
        marks: &HashMap<PathBuf, FileMarks>,
        origins: &HashMap<PathBuf, PathBuf>,
        report: &mut ScanReport,
        progress: &mut dyn FnMut(ScanProgress),
    ) -> Result<(), CatalogError> {
        if stale.is_empty() {
            return Ok(());
        }
        // Large ones first, so that no thread is left alone with one at the end.
        stale.sort_by_key(|location| std::cmp::Reverse(location.mark.size));
        let of = stale.len();
        let (next, large) = (AtomicUsize::new(0), Mutex::new(()));
        let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS).min(of);
        let mut folders = FolderIndex::default();
        let (done, waiting) = mpsc::sync_channel::<ScannedSession>(MAX_WAITING);
        thread::scope(|scope| {
            for _ in 0..threads {
                let done = done.clone();
                let (stale, next, large) = (&stale, &next, &large);
                scope.spawn(move || {
                    while let Some(location) = stale.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let _alone =
                            (location.mark.size > LARGE).then(|| large.lock().unwrap_or_else(PoisonError::into_inner));
                        let key = key_of(location);
                        let known = if marks.contains_key(&key) { self.known(&key) } else { Ok(None) };
                        // An unknown session is read from its beginning.
                        let known = known.unwrap_or_default();
                        let before = marks.get(&key).map(|marks| marks.mark);
                        if done.send(self.read(location.clone(), known, before)).is_err() {
                            // The writer has failed, and reports it.
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
                        let ReadOutcome { session, bookmark, tail_index, .. } = reading;
                        let CollectedChanges { changes, before } = done.changes;
                        let place = session.workspace.folders.first().filter(|place| place.host.is_none());
                        let changes = changes.below(place.and_then(|place| place.path.as_deref()));
                        let mut entry = entry_of(&done.location, done.known, session, &mut folders);
                        entry.kept_from = origins.get(&entry.path).cloned();
                        report.recovered += usize::from(entry.session.damage.is_recovered());
                        let sidecar_modified_at = done.location.sidecar_modified_at;
                        let noted = EntryDetails { bookmark, tail_index, changes, before, sidecar_modified_at };
                        store::write(&transaction, &mut entry, &noted)?;
                    }
                    // A file that was deleted meanwhile is not a problem.
                    Err(HistoryError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => report.problem(error),
                }
                progress(ScanProgress { phase: ScanPhase::ReadingFiles, read: at + 1, of });
            }
            transaction.commit()?;
            Ok(())
        })
    }

    /// Reads a session, from its bookmark if the file has only grown.
    fn read(
        &self,
        mut location: SessionLocation,
        known: Option<StoredEntry>,
        before: Option<FileMark>,
    ) -> ScannedSession {
        let key = key_of(&location);
        let (known, bookmark) = known.map_or((None, None), |known| (Some(known.entry), known.bookmark));
        if let Some(known) = &known {
            // The data of the tool's lists at the first read are still valid, unless there are newer ones.
            location.preview.title = location.preview.title.take().or_else(|| known.listed_title.clone());
            location.preview.created_at = location.preview.created_at.or(known.session.created_at);
            location.preview.listed = location.preview.listed.or(known.listed);
        }
        let grown = |before: FileMark| before.inode == location.mark.inode && before.size < location.mark.size;
        let bookmark: Option<Bookmark> = bookmark.filter(|bookmark| {
            before.is_some_and(grown)
                && before.is_some_and(|before| bookmark.offset <= before.size)
                // Other programs overwrite a log in place, which may leave it longer as well.
                && bookmark.fingerprint.is_some_and(|print| print.fits(&location.path))
        });
        // Before the read: a file that is overwritten meanwhile does not match.
        let fingerprint = Fingerprint::of(&location.path, location.mark.size);
        // A bookmark needs the changes before it.
        let bookmark = bookmark.and_then(|bookmark| Some((self.changes_before(&key).ok()?, bookmark)));
        let reader = reader_of(location.source);
        let (mut continued, mut collector) = match &bookmark {
            Some((changes, bookmark)) => (true, ChangeCollector::from(bookmark, changes.clone())),
            None => (false, ChangeCollector::default()),
        };
        let bookmark = bookmark.map(|(_, bookmark)| bookmark);
        let mut reading = reader.read(&location, bookmark.as_ref(), &mut |turn| collector.take(&turn));
        if continued && reading.is_err() {
            (collector, continued) = (ChangeCollector::default(), false);
            reading = reader.read(&location, None, &mut |turn| collector.take(&turn));
        }
        if let (Ok(reading), Some(bookmark), true) = (&mut reading, &bookmark, continued)
            && let Some(before) = self.tail_index_of(&key).unwrap_or_default()
        {
            reading.tail_index = Some(match reading.tail_index.take() {
                Some(more) => before.grown(more, bookmark),
                None => before,
            });
        }
        if let Ok(reading) = &mut reading {
            reading.bookmark = reading.bookmark.take().filter(|bookmark| collector.fits(bookmark));
            if let Some(bookmark) = &mut reading.bookmark {
                bookmark.fingerprint = fingerprint;
            }
            if let Some(tail_index) = &mut reading.tail_index {
                tail_index.fingerprint = fingerprint;
            }
        }
        ScannedSession { location, known, reading, changes: collector.finish(), continued }
    }

    /// Removes deleted sessions. Those in an inaccessible place stay.
    fn remove_missing(
        &self,
        scan: &ScanRequest,
        marks: &HashMap<PathBuf, FileMarks>,
        found: &HashSet<PathBuf>,
        unread: &[&StoreRoot],
        report: &mut ScanReport,
    ) -> Result<(), CatalogError> {
        let missing = marks.keys().filter(|path| !found.contains(*path));
        // A database that cannot be read now may still have its sessions.
        let is_doubtful = |path: &Path| {
            unread.iter().any(|root| root.source == TranscriptSource::OpenCode && path.starts_with(&root.folder))
        };
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

    /// Finds moved folders by their repositories.
    fn relocate_moved(&self, report: &mut ScanReport) -> Result<(), CatalogError> {
        let writer = self.writer();
        let mut folders = FolderIndex::default();
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

/// Lists the files below each root. A tool's own lists are read only if there is a new file: they cost more than
/// everything else.
fn look<'a>(scan: &'a ScanRequest, marks: &HashMap<PathBuf, FileMarks>) -> Vec<(&'a StoreRoot, StoreListing)> {
    thread::scope(|scope| {
        let look = |root: &'a StoreRoot| {
            let reader = reader_of(root.source);
            let quick = reader.find(root, Hints::Skip);
            let is_known = quick.sessions.iter().all(|location| marks.contains_key(&key_of(location)));
            match is_known || !reader.has_hints() {
                true => (root, quick),
                false => (root, reader.find(root, Hints::Read)),
            }
        };
        let threads: Vec<_> = scan
            .roots
            .iter()
            // Most roots do not exist, and need no thread.
            .filter(|root| root.folder.is_dir())
            .map(|root| scope.spawn(move || look(root)))
            .collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    })
}

fn entry_of(
    location: &SessionLocation,
    known: Option<CatalogEntry>,
    mut session: grove_transcript::TranscriptSession,
    folders: &mut FolderIndex,
) -> CatalogEntry {
    session.raw.clear();
    session.draft = None;
    let found = folders.look(&session.workspace);
    CatalogEntry {
        id: name_of(session.source, &session.source_id),
        product: location.product.clone(),
        path: location.path.clone(),
        older: location.older.clone(),
        kept_from: None,
        mark: location.mark,
        listed: location.preview.listed,
        listed_title: location.preview.title.clone(),
        folder: found.folder,
        // A deleted folder has no repository any more.
        repository: found.repository.or_else(|| known.and_then(|known| known.repository)),
        session,
    }
}

/// True if a path is below an existing root that cannot be read.
fn hides(scan: &ScanRequest, path: &Path) -> bool {
    let unreadable = |root: &StoreRoot| match std::fs::read_dir(&root.folder) {
        Ok(_) => false,
        Err(error) => error.kind() != io::ErrorKind::NotFound && error.kind() != io::ErrorKind::NotADirectory,
    };
    scan.roots.iter().any(|root| path.starts_with(&root.folder) && unreadable(root))
}
