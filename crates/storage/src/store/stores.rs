//! The stores of sessions, each under a name.
//!
//! A session belongs to one of them from its creation on, and names it in its folder. Nothing else in the host knows
//! more than one store at a time, except for recovery, which scans all, and moves from one to another.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grove_core::{SessionId, StoreName};
use grove_fs::rpc::ReconnectingCalls;
use grove_fs::{ClientStore, FileKind, FsError, MemoryFs, SessionFs};
use grove_metrics::Metrics;

use super::measured::MeasuredFs;
use super::register::ClientStorageRegister;
use super::session_file;

/// The longest name of a store.
pub const MAX_NAME: usize = 64;

/// The stores of a host. Clones share them.
#[derive(Clone, Debug)]
pub struct Stores(Arc<StoresInner>);

#[derive(Debug)]
struct StoresInner {
    named: BTreeMap<StoreName, StoreEntry>,
    /// Stores that existed once: their sessions are not listed, and requests for them are told why.
    retired: Vec<RetiredStore>,
    /// The store of sessions that name none.
    default: Mutex<StoreName>,
    /// Stores that could not be read when the host started: their contents are unknown.
    out_of_reach: Mutex<BTreeMap<StoreName, String>>,
    /// Stores of storage clients, which are added while the host runs.
    client_storage: Mutex<BTreeMap<StoreName, ClientStorage>>,
    /// The register of the sessions in those.
    register: ClientStorageRegister,
}

/// The store of a storage client.
#[derive(Clone, Debug)]
pub struct ClientStorage {
    pub fs: Arc<ClientStore>,
    pub line: Arc<ReconnectingCalls>,
}

#[derive(Clone, Debug)]
struct StoreEntry {
    fs: Arc<dyn SessionFs>,
    lifetime: StoreLifetime,
}

/// The lifetime of a store's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreLifetime {
    /// They outlive the host.
    Kept,
    /// They end with the host.
    WithHost,
    /// They are a storage client's, at the other end of a connection, and nowhere else.
    ClientStorage,
}

/// A store that is not configured any more.
#[derive(Clone, Debug)]
pub struct RetiredStore {
    pub name: StoreName,
    pub fs: Arc<dyn SessionFs>,
}

/// The reason why there is no such store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("there is no store {name:?}: there are {known}; name one of them, or add [stores.{name}] to grove.toml")]
    Unknown { name: StoreName, known: String },
    #[error("the store {name} cannot be reached: {reason}; is its folder there, or its disk mounted?")]
    OutOfReach { name: StoreName, reason: String },
    #[error("{0:?} is not a valid name for a store: use letters, digits, `-` and `_`, at most {MAX_NAME} of them")]
    BadName(String),
    #[error("the store {0} exists already")]
    Twice(StoreName),
    #[error("the storage client of {0} is not connected: connect it, then try again")]
    Away(StoreName),
    #[error("{0} is the store of a storage client: its sessions are created through its own endpoint, and stay there")]
    OfStorageClient(StoreName),
    #[error(
        "sessions are active ({0}), so the store of new ones cannot be changed: end them first, or set it before any \
         starts"
    )]
    SessionsActive(usize),
}

impl Stores {
    /// The name of the store that every host has beside the local one. Its contents are gone with the host.
    pub const MEMORY: &'static str = "memory";

    /// The two stores that every host has: the local one, which outlives the host, and memory.
    pub fn new(local: Arc<dyn SessionFs>) -> Self {
        let local = StoreEntry { fs: local, lifetime: StoreLifetime::Kept };
        let memory = StoreEntry { fs: Arc::new(MemoryFs::default()), lifetime: StoreLifetime::WithHost };
        let named = BTreeMap::from([(StoreName::default(), local), (StoreName::from(Self::MEMORY), memory)]);
        Self(Arc::new(StoresInner {
            named,
            retired: Vec::new(),
            default: Mutex::default(),
            out_of_reach: Mutex::default(),
            client_storage: Mutex::default(),
            register: ClientStorageRegister::default(),
        }))
    }

    /// Sets the register of client-stored sessions.
    ///
    /// Without one, these are forgotten with the host.
    pub fn with_register(self, register: ClientStorageRegister) -> Self {
        Self(Arc::new(StoresInner { register, ..self.parts() }))
    }

    /// Counts the calls of the stores that the host has now, except memory.
    #[must_use]
    pub fn with_metrics(self, metrics: &Arc<Metrics>) -> Self {
        let mut parts = self.parts();
        for entry in parts.named.values_mut().filter(|entry| entry.lifetime == StoreLifetime::Kept) {
            entry.fs = Arc::new(MeasuredFs::new(entry.fs.clone(), metrics.clone()));
        }
        Self(Arc::new(parts))
    }

    /// Adds a store.
    pub fn with(self, name: &StoreName, fs: Arc<dyn SessionFs>) -> Result<Self, StoreError> {
        check_name(name)?;
        let mut named = self.0.named.clone();
        match named.insert(name.clone(), StoreEntry { fs, lifetime: StoreLifetime::Kept }) {
            None => Ok(Self(Arc::new(StoresInner { named, ..self.parts() }))),
            Some(_) => Err(StoreError::Twice(name.clone())),
        }
    }

    /// Sets the stores that existed once.
    pub fn with_retired(self, retired: Vec<RetiredStore>) -> Self {
        Self(Arc::new(StoresInner { retired, ..self.parts() }))
    }

    /// Sets the store of sessions that name none.
    pub fn with_default(self, name: &StoreName) -> Result<Self, StoreError> {
        self.get(name)?;
        *self.default_mut() = name.clone();
        Ok(self)
    }

    fn parts(&self) -> StoresInner {
        StoresInner {
            named: self.0.named.clone(),
            retired: self.0.retired.clone(),
            default: Mutex::new(self.default_name()),
            out_of_reach: Mutex::new(self.out_of_reach().clone()),
            client_storage: Mutex::new(self.providers().clone()),
            register: self.0.register.clone(),
        }
    }

    /// Adds the store of a storage client, or replaces the one of its name.
    ///
    /// The caller has checked that no session is active there.
    pub fn attach_storage_client(&self, name: &StoreName, client_storage: ClientStorage) -> Result<(), StoreError> {
        check_name(name)?;
        if self.0.named.contains_key(name) {
            return Err(StoreError::Twice(name.clone()));
        }
        self.providers().insert(name.clone(), client_storage);
        Ok(())
    }

    /// Removes the store of a storage client.
    pub fn release(&self, name: &StoreName) {
        self.providers().remove(name);
    }

    /// The store of a storage client.
    pub fn client_storage(&self, name: &StoreName) -> Option<ClientStorage> {
        self.providers().get(name).cloned()
    }

    /// The folder of a storage client's sessions that name none, as the client spells it.
    pub fn initial_cwd(&self, name: &StoreName) -> Option<String> {
        self.client_storage(name)?.fs.initial_cwd()
    }

    /// Says whether a storage client keeps the sessions of this store.
    pub fn is_client_stored(&self, name: &StoreName) -> bool {
        self.lifetime(name) == Some(StoreLifetime::ClientStorage)
    }

    pub fn register(&self) -> &ClientStorageRegister {
        &self.0.register
    }

    pub fn get(&self, name: &StoreName) -> Result<Arc<dyn SessionFs>, StoreError> {
        if let Some(entry) = self.0.named.get(name) {
            return Ok(entry.fs.clone());
        }
        match self.client_storage(name) {
            Some(client_storage) => Ok(client_storage.fs),
            None => Err(StoreError::Unknown { name: name.clone(), known: self.to_string() }),
        }
    }

    /// A store, if it can be reached now.
    pub async fn reach(&self, name: &StoreName) -> Result<Arc<dyn SessionFs>, StoreError> {
        let fs = self.get(name)?;
        if self.client_storage(name).is_some_and(|client_storage| !client_storage.line.is_connected()) {
            return Err(StoreError::Away(name.clone()));
        }
        let out_of_reach = |reason: String| StoreError::OutOfReach { name: name.clone(), reason };
        // Its contents are unknown since the start, so an id that seems free may be in use there.
        if let Some(reason) = self.out_of_reach().get(name) {
            return Err(out_of_reach(format!("{reason} when the host started")));
        }
        check_reachable(name, fs.as_ref()).await.map_err(|error| out_of_reach(error.to_string()))?;
        Ok(fs)
    }

    pub fn lifetime(&self, name: &StoreName) -> Option<StoreLifetime> {
        let named = self.0.named.get(name).map(|entry| entry.lifetime);
        named.or_else(|| self.client_storage(name).map(|_| StoreLifetime::ClientStorage))
    }

    /// The names of all stores that are this host's own, sorted.
    pub fn names(&self) -> impl Iterator<Item = &StoreName> {
        self.0.named.keys()
    }

    /// The stores that outlive the host.
    pub fn kept(&self) -> impl Iterator<Item = (&StoreName, &Arc<dyn SessionFs>)> {
        let kept = self.0.named.iter().filter(|(_, entry)| entry.lifetime == StoreLifetime::Kept);
        kept.map(|(name, entry)| (name, &entry.fs))
    }

    /// The store of sessions that name none.
    pub fn default_name(&self) -> StoreName {
        self.default_mut().clone()
    }

    /// Sets the store of new sessions, and returns the former one. The caller has checked that none is active.
    pub fn set_default(&self, name: &StoreName) -> Result<StoreName, StoreError> {
        self.get(name)?;
        if self.is_client_stored(name) {
            return Err(StoreError::OfStorageClient(name.clone()));
        }
        Ok(std::mem::replace(&mut *self.default_mut(), name.clone()))
    }

    /// Notes that a store could not be read when the host started.
    pub(crate) fn lost(&self, name: &StoreName, reason: String) {
        self.out_of_reach().insert(name.clone(), reason);
    }

    /// Says whether a store could not be read when the host started.
    pub(crate) fn is_lost(&self, name: &StoreName) -> bool {
        self.out_of_reach().contains_key(name)
    }

    /// The store with this file: the named one, else any other that outlives the host.
    ///
    /// The session may have moved since the store was named.
    pub async fn find_holder(&self, name: &StoreName, path: &str) -> Result<Arc<dyn SessionFs>, StoreError> {
        let named = self.get(name);
        if let Ok(fs) = &named
            && fs.exists(path).await.unwrap_or(false)
        {
            return named;
        }
        for (_, fs) in self.kept() {
            if fs.exists(path).await.unwrap_or(false) {
                return Ok(fs.clone());
            }
        }
        named
    }

    /// Says whether there may be unknown sessions.
    pub fn may_hide_sessions(&self) -> bool {
        !self.0.retired.is_empty() || !self.out_of_reach().is_empty()
    }

    /// The reason why a session is missing: its store does not exist any more, or cannot be read.
    pub async fn why_missing(&self, session: &SessionId) -> Option<String> {
        for RetiredStore { name, fs } in &self.0.retired {
            if session_file::read(fs.as_ref(), session).await.is_ok_and(|file| !file.disposed) {
                let place = fs.location("").unwrap_or_default();
                return Some(format!(
                    "session {session} is in the store {name} ({place}), which is not configured any more: \
                     add [stores.{name}] with folder = {place:?} to grove.toml, and start the host again"
                ));
            }
        }
        let out_of_reach = self.out_of_reach().clone();
        let (name, reason) = out_of_reach.iter().next()?;
        Some(format!(
            "there is no session {session}, unless it is in the store {name}, which cannot be reached: {reason}"
        ))
    }

    // Nothing that can panic leaves either half-changed, so a poisoned lock still guards valid data.
    fn default_mut(&self) -> MutexGuard<'_, StoreName> {
        self.0.default.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn providers(&self) -> MutexGuard<'_, BTreeMap<StoreName, ClientStorage>> {
        self.0.client_storage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn out_of_reach(&self) -> MutexGuard<'_, BTreeMap<StoreName, String>> {
        self.0.out_of_reach.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The names of all stores.
impl fmt::Display for Stores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.names().map(StoreName::as_str).collect();
        f.write_str(&names.join(", "))
    }
}

/// Checks that a name is valid for a store: it is used in files and on command lines.
fn check_name(name: &StoreName) -> Result<(), StoreError> {
    let text = name.as_str();
    let fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    match !text.is_empty() && text.len() <= MAX_NAME && text.chars().all(fit) {
        true => Ok(()),
        false => Err(StoreError::BadName(text.to_owned())),
    }
}

/// Checks that a store exists. The local one is created when it is first needed; any other must exist before.
///
/// A missing folder may be a disk that is not mounted, and files written in its place would be lost to it.
pub(crate) async fn check_reachable(name: &StoreName, fs: &dyn SessionFs) -> Result<(), FsError> {
    match fs.stat("").await {
        Ok(stat) if stat.kind == FileKind::Folder => Ok(()),
        Ok(_) => Err(FsError::NotADirectory { path: fs.location("").unwrap_or_default() }),
        Err(FsError::NotFound { .. }) if name.is_local() => Ok(()),
        Err(FsError::NotFound { .. }) => Err(FsError::NotFound { path: fs.location("").unwrap_or_default() }),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_store_has_one_name_and_a_name_that_fits() {
        let stores = || Stores::new(Arc::new(MemoryFs::default()));
        let fs = || Arc::new(MemoryFs::default());
        for bad in ["", "a b", "../x", "a.b", &"x".repeat(65)] {
            assert_eq!(stores().with(&bad.into(), fs()).unwrap_err(), StoreError::BadName(bad.to_owned()));
        }
        for used in ["local", "memory"] {
            assert_eq!(stores().with(&used.into(), fs()).unwrap_err(), StoreError::Twice(used.into()));
        }
        let three = stores().with(&"disk-2".into(), fs()).unwrap();
        assert_eq!(three.to_string(), "disk-2, local, memory");
        assert_eq!(three.default_name(), StoreName::default());
        let known = three.to_string();
        assert_eq!(three.with_default(&"x".into()).unwrap_err(), StoreError::Unknown { name: "x".into(), known });
    }
}
