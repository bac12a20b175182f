//! The scan of all stores for sessions, which completes or undoes interrupted moves between two of them.

use std::collections::{BTreeMap, HashMap, HashSet};

use grove_core::{ChatId, Session, SessionId, SessionUri, StoreName, Timestamp};
use grove_fs::{FsError, SessionFs, copy};
use grove_tree::turns::TurnLimit;

use super::paths;
use super::session_file::{self, LoadError, SessionFile};
use super::store_move::{self, Move};
use super::stores::{StoreLifetime, Stores, check_reachable};
use crate::journal::{JournaledMove, MAX_SEQ};

/// The contents of the stores.
#[derive(Debug, Default)]
pub(crate) struct StoreScan {
    /// The file of each session, from the store that it belongs to.
    pub(crate) files: Vec<SessionFile>,
    /// Sessions that ended with the host, or that belong to a store which does not exist any more.
    pub(crate) gone: HashSet<SessionId>,
    /// Sessions of an unreachable store: the journal keeps what it has of them.
    pub(crate) held: HashSet<SessionId>,
    /// Sessions whose last move led to a store that ended with the host, and which are in their old store again.
    pub(crate) stayed: HashSet<SessionId>,
    /// Folders of sessions that have a log and no file, each in its store.
    unnamed: Vec<(StoreName, SessionId)>,
    /// Descriptions of damage.
    pub(crate) damage: Vec<String>,
}

/// A session's file, and the store in which it was found.
struct FoundFile {
    store: StoreName,
    file: SessionFile,
}

/// The files that were found under one id.
#[derive(Default)]
struct Candidates {
    /// Files that were written for the store in which they are.
    own: Vec<FoundFile>,
    /// Files in folders that are incomplete copies.
    copies: Vec<FoundFile>,
}

/// Scans every store that outlives the host. Only the local one is required; another one costs its own sessions.
pub(crate) async fn store_scan(
    stores: &Stores,
    moves: &HashMap<SessionId, JournaledMove>,
) -> Result<StoreScan, FsError> {
    let mut store_scan = StoreScan::default();
    let mut found: BTreeMap<SessionId, Candidates> = BTreeMap::new();
    for (name, fs) in stores.kept() {
        match list(name, fs.as_ref()).await {
            Ok(names) => store_scan.scan_store(name, fs.as_ref(), names, &mut found).await,
            Err(error) if name.is_local() => return Err(error),
            Err(error) => {
                let reason = error.to_string();
                store_scan
                    .damage
                    .push(format!("the store {name} cannot be reached, and its sessions with it: {reason}"));
                stores.lost(name, reason);
            }
        }
    }
    for (id, moved) in moves {
        found.entry(id.clone()).or_default();
        let is_kept = stores.lifetime(&moved.to) == Some(StoreLifetime::Kept);
        if is_kept && stores.is_lost(&moved.to) {
            store_scan.held.insert(id.clone());
        }
    }
    for (id, candidates) in found {
        store_scan.choose(stores, &id, candidates, moves.get(&id)).await;
    }
    Ok(store_scan)
}

/// The names of all entries in a store.
pub async fn list(name: &StoreName, fs: &dyn SessionFs) -> Result<Vec<String>, FsError> {
    check_reachable(name, fs).await?;
    match fs.readdir("").await {
        Err(FsError::NotFound { .. }) => Ok(Vec::new()),
        listed => listed,
    }
}

impl StoreScan {
    async fn scan_store(
        &mut self,
        store: &StoreName,
        fs: &dyn SessionFs,
        names: Vec<String>,
        found: &mut BTreeMap<SessionId, Candidates>,
    ) {
        for name in names {
            if paths::is_moved_away(&name) {
                // A host was killed while removing it.
                if let Err(error) = store_move::remove_renamed(fs, &name).await {
                    self.damage.push(format!("{name}, the old folder of a moved session, cannot be removed: {error}"));
                }
                continue;
            }
            if paths::is_staged(&name) {
                // The import's connection ended with the earlier host.
                if let Err(error) = store_move::remove_renamed(fs, &name).await {
                    self.damage.push(format!("{name}, which never became a session, cannot be removed: {error}"));
                }
                continue;
            }
            if paths::is_disposed_folder(&name) {
                continue;
            }
            let id = SessionId::from(name.as_str());
            match session_file::read(fs, &id).await.map(|file| self.with_valid_seq(file)) {
                Ok(file) if file.backend() == store => {
                    found.entry(id).or_default().own.push(FoundFile { store: store.clone(), file });
                }
                Ok(file) if is_copy(fs, &id).await => {
                    found.entry(id).or_default().copies.push(FoundFile { store: store.clone(), file });
                }
                Ok(file) => {
                    let other = file.backend();
                    self.damage.push(format!(
                        "session {id} in the store {store} was written for the store {other}: it is left alone"
                    ));
                }
                // A session that was never written is only in the journal.
                Err(LoadError::Fs(FsError::NotFound { .. } | FsError::NotADirectory { .. })) => {
                    if is_copy(fs, &id).await || is_hardly_begun(fs, &id).await {
                        self.undo(fs, &id).await;
                    } else {
                        self.unnamed.push((store.clone(), id));
                    }
                }
                Err(error) => self.damage.push(format!("session {id}: {error}")),
            }
        }
    }

    /// A number that no host gives says nothing: the journal is read as if the file had none. Times are replaced already.
    fn with_valid_seq(&mut self, mut file: SessionFile) -> SessionFile {
        self.damage.extend(file.implausible_times());
        if file.seq <= MAX_SEQ {
            return file;
        }
        self.damage.push(format!(
            "session {}: session.json has the impossible sequence number {}: the journal's events of the session are \
             applied again",
            file.id(),
            file.seq
        ));
        file.seq = 0;
        file
    }

    /// Rebuilds the files of sessions of which only the log is left. The journal completes those whose creation it has.
    pub(crate) async fn rebuild_files(
        &mut self,
        created: &HashMap<SessionId, Timestamp>,
        stores: &Stores,
        limit: TurnLimit,
    ) {
        for (store, id) in std::mem::take(&mut self.unnamed) {
            let is_known = created.contains_key(&id) || self.files.iter().any(|file| *file.id() == id);
            let Ok(fs) = stores.get(&store) else { continue };
            let log = paths::log(&id, &ChatId::from(Session::MAIN_CHAT));
            let is_session = SessionUri::from(format!("session:/{id}")).id().is_some();
            if is_known || self.is_left_out(&id) || !is_session || !fs.exists(&log).await.unwrap_or(false) {
                continue;
            }
            match session_file::rebuild(fs.as_ref(), &id, &store, limit).await {
                Ok(file) => {
                    self.damage.push(format!(
                        "session {id}: session.json is missing, and the journal knows nothing of the session: its \
                         file was rebuilt from its log"
                    ));
                    self.files.push(file);
                }
                Err(error) => self.damage.push(format!("session {id}: session.json is missing: {error}")),
            }
        }
    }

    /// Chooses the one file that is the session, and completes or undoes the rest.
    async fn choose(&mut self, stores: &Stores, id: &SessionId, candidates: Candidates, moved: Option<&JournaledMove>) {
        let Candidates { mut own, mut copies } = candidates;
        own.sort_by_key(|found| found.file.seq);
        let mut chosen = own.pop();
        let is_newer = |moved: &&JournaledMove| chosen.as_ref().is_none_or(|chosen| moved.seq > chosen.file.seq);
        if let Some(moved) = moved.filter(is_newer) {
            match stores.lifetime(&moved.to) {
                Some(StoreLifetime::Kept) if self.held.contains(id) => return,
                Some(StoreLifetime::Kept) => {
                    let copy = copies.iter().position(|found| found.store == moved.to).map(|at| copies.swap_remove(at));
                    match copy {
                        Some(copy) => {
                            own.extend(chosen.take());
                            chosen = self.take_over(stores, id, copy).await;
                        }
                        None if chosen.is_some() => self.damage.push(format!(
                            "session {id} was moved to the store {} and is missing there: its old folder is used",
                            moved.to
                        )),
                        None => {}
                    }
                }
                // The new one is gone, but the old one is not.
                Some(StoreLifetime::WithHost | StoreLifetime::ClientStorage) if chosen.is_some() => {
                    self.stayed.insert(id.clone());
                }
                Some(StoreLifetime::WithHost | StoreLifetime::ClientStorage) => drop(self.gone.insert(id.clone())),
                None => {
                    self.belongs_elsewhere(id, &moved.to);
                    return;
                }
            }
        }
        let Some(chosen) = chosen else {
            for copy in copies {
                self.undo_in(stores, &copy.store, id).await;
            }
            return;
        };
        // A disposed session may have had the same id: its folder stays.
        own.retain(|other| !other.file.disposed);
        for other in &own {
            self.settle(stores, id, &chosen.store, other).await;
        }
        for copy in copies {
            self.undo_in(stores, &copy.store, id).await;
        }
        // Removing its note may be all that was left to do.
        let may_be_copy = moved.is_some() || stores.kept().count() > 1;
        if let Ok(fs) = stores.get(&chosen.store)
            && (may_be_copy && own.is_empty())
            && is_copy(fs.as_ref(), id).await
            && let Err(error) = copy::settle(fs.as_ref(), &paths::folder(id)).await
        {
            self.damage.push(format!("session {id}: {error}"));
        }
        self.files.push(chosen.file);
    }

    /// Makes a copy the session, if the journal says so.
    async fn take_over(&mut self, stores: &Stores, id: &SessionId, copy: FoundFile) -> Option<FoundFile> {
        let FoundFile { store, file } = copy;
        let file = file.in_store(store.clone());
        let saved = match stores.get(&store) {
            Ok(fs) => session_file::save(fs.as_ref(), &file).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = saved {
            self.damage.push(format!(
                "session {id} is in the store {store} now, but its session.json cannot be written there: {error}"
            ));
            self.held.insert(id.clone());
            return None;
        }
        Some(FoundFile { store, file })
    }

    /// Settles other folders of a session's id: a move's leftovers are removed, anything else stays.
    async fn settle(&mut self, stores: &Stores, id: &SessionId, chosen: &StoreName, other: &FoundFile) {
        let (Ok(to), Ok(from)) = (stores.get(chosen), stores.get(&other.store)) else { return };
        if is_copy(to.as_ref(), id).await {
            let left = Move { session: id, from: from.as_ref(), to: to.as_ref() };
            if let Err(error) = left.finish().await {
                self.damage.push(format!(
                    "session {id} was moved to the store {chosen}, but its old folder cannot be removed: {error}"
                ));
            }
        } else {
            let first = &other.store;
            self.damage
                .push(format!("session {id} is in two stores, {first} and {chosen}: the one in {chosen} is used"));
        }
    }

    fn belongs_elsewhere(&mut self, id: &SessionId, store: &StoreName) {
        self.damage
            .push(format!("session {id} is in the store {store}, which is not configured: add it to grove.toml"));
        self.gone.insert(id.clone());
    }

    /// Decides about a session that is only in the journal, by its store.
    pub(crate) fn judge(&mut self, stores: &Stores, id: &SessionId, store: &StoreName) {
        match stores.lifetime(store) {
            Some(StoreLifetime::Kept) if stores.is_lost(store) => drop(self.held.insert(id.clone())),
            Some(StoreLifetime::Kept) => {
                self.gone.remove(id);
                self.held.remove(id);
            }
            // No journal has client-stored sessions.
            Some(StoreLifetime::WithHost | StoreLifetime::ClientStorage) => drop(self.gone.insert(id.clone())),
            None => self.belongs_elsewhere(id, store),
        }
    }

    /// Says whether the journal's events of a session are skipped.
    pub(crate) fn is_left_out(&self, id: &SessionId) -> bool {
        self.gone.contains(id) || self.held.contains(id)
    }

    async fn undo_in(&mut self, stores: &Stores, store: &StoreName, id: &SessionId) {
        if let Ok(fs) = stores.get(store) {
            self.undo(fs.as_ref(), id).await;
        }
    }

    /// Removes a copy that never became the session.
    async fn undo(&mut self, fs: &dyn SessionFs, id: &SessionId) {
        if let Err(error) = store_move::discard(fs, id).await {
            self.damage.push(format!("an abandoned copy of session {id} cannot be removed: {error}"));
        }
    }
}

/// Says whether a folder is a copy of a session that was to move there. In doubt it is not, and left alone.
async fn is_copy(fs: &dyn SessionFs, id: &SessionId) -> bool {
    copy::is_move(fs, &paths::folder(id)).await.unwrap_or(false)
}

/// Says whether a folder is empty, or only has files that were to be renamed.
///
/// A copy that was interrupted while its note was written leaves one. It can be removed: the journal's events of a
/// session need no folder.
async fn is_hardly_begun(fs: &dyn SessionFs, id: &SessionId) -> bool {
    let is_temporary = |name: &String| name.starts_with('.') && name.ends_with(".tmp");
    fs.readdir(&paths::folder(id)).await.is_ok_and(|names| names.iter().all(is_temporary))
}
