//! What the host takes from the world: time, randomness, tasks, storage and connections.
//!
//! Everything of this kind is an argument, so that a simulation can own it.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use grove_core::{ContentId, SessionId, Timestamp};
use tokio::io::{AsyncRead, AsyncWrite};

/// A future that somebody else runs.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The host's surroundings.
#[derive(Clone, Debug)]
pub struct Env {
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub spawn: Arc<dyn Spawn>,
    pub storage: Arc<dyn Storage>,
}

impl Env {
    /// The real clock, randomness and tasks of this process, with sessions' contents in memory.
    pub fn in_memory() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            random: Arc::new(SystemRandom),
            spawn: Arc::new(TokioSpawn),
            storage: Arc::new(MemoryStorage::new(MemoryStorage::DEFAULT_LIMIT)),
        }
    }
}

/// Time.
pub trait Clock: Send + Sync + fmt::Debug {
    fn now(&self) -> Timestamp;
    fn sleep(&self, time: Duration) -> Task;
}

/// Randomness fit for secrets.
pub trait Random: Send + Sync + fmt::Debug {
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()>;
}

/// Running things beside one another.
pub trait Spawn: Send + Sync + fmt::Debug {
    fn spawn(&self, task: Task);
}

/// Where bodies that are too large for the state are kept.
#[async_trait]
pub trait Storage: Send + Sync + fmt::Debug {
    async fn put(&self, session: &SessionId, content: &ContentId, bytes: Bytes) -> Result<(), StorageError>;
    async fn get(&self, session: &SessionId, content: &ContentId) -> Result<Bytes, StorageError>;
    /// Forgets everything of a session.
    async fn remove(&self, session: &SessionId);
}

#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    #[error("there is no such content")]
    NotFound,
    #[error("the store is full: it holds {limit} bytes at most")]
    Full { limit: usize },
    #[error("{path} cannot be used: {error}", path = path.display())]
    Io { path: PathBuf, error: io::Error },
}

/// Where connections come from.
#[async_trait]
pub trait Listener: Send {
    async fn accept(&mut self) -> io::Result<Box<dyn Stream>>;
}

/// A connection's bytes, both ways.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

#[async_trait]
impl Listener for tokio::net::TcpListener {
    async fn accept(&mut self) -> io::Result<Box<dyn Stream>> {
        let (stream, _) = tokio::net::TcpListener::accept(self).await?;
        // A frame is written in one piece: waiting for more only costs time.
        stream.set_nodelay(true)?;
        Ok(Box::new(stream))
    }
}

/// The machine's clock.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX))
    }

    fn sleep(&self, time: Duration) -> Task {
        Box::pin(tokio::time::sleep(time))
    }
}

/// The machine's source of randomness.
#[derive(Clone, Copy, Debug)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        getrandom::fill(bytes).map_err(io::Error::other)
    }
}

/// Tasks on the tokio runtime of the caller.
#[derive(Clone, Copy, Debug)]
pub struct TokioSpawn;

impl Spawn for TokioSpawn {
    fn spawn(&self, task: Task) {
        tokio::spawn(task);
    }
}

/// Contents in the data folder: `session-state/<session>/content/<hash>`. They stay when a session is disposed, like
/// all that is in its folder.
#[derive(Clone, Debug)]
pub struct LocalStorage {
    root: PathBuf,
}

impl LocalStorage {
    pub fn new(data_dir: &Path) -> Self {
        Self { root: data_dir.join("session-state") }
    }

    // Both names are fit for a path: a session's id is checked when it is made, a content's is the hash of its bytes.
    fn path(&self, session: &SessionId, content: &ContentId) -> Result<PathBuf, StorageError> {
        let plain = |name: &str| !name.starts_with('.') && !name.contains(['/', '\\', '\0']);
        if !plain(session.as_str()) || !plain(content.as_str()) {
            return Err(StorageError::NotFound);
        }
        Ok(self.root.join(session.as_str()).join("content").join(content.as_str()))
    }
}

#[async_trait]
impl Storage for LocalStorage {
    async fn put(&self, session: &SessionId, content: &ContentId, bytes: Bytes) -> Result<(), StorageError> {
        let path = self.path(session, content)?;
        let write = {
            let path = path.clone();
            move || write_whole(&path, &bytes)
        };
        let written = tokio::task::spawn_blocking(write).await.unwrap_or_else(|error| Err(io::Error::other(error)));
        written.map_err(|error| StorageError::Io { path, error })
    }

    async fn get(&self, session: &SessionId, content: &ContentId) -> Result<Bytes, StorageError> {
        let path = self.path(session, content)?;
        match tokio::fs::read(&path).await {
            Ok(bytes) => Ok(bytes.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(StorageError::NotFound),
            Err(error) => Err(StorageError::Io { path, error }),
        }
    }

    async fn remove(&self, _session: &SessionId) {}
}

/// Writes a file that is there whole or not at all, and only once.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};

    if path.exists() {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let temporary = path.with_extension("new");
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_data()?;
    std::fs::rename(&temporary, path)
}

/// Contents in memory, up to a number of bytes.
#[derive(Debug)]
pub struct MemoryStorage {
    limit: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    bytes: usize,
    sessions: HashMap<SessionId, HashMap<ContentId, Bytes>>,
}

impl MemoryStorage {
    pub const DEFAULT_LIMIT: usize = 512 << 20;

    pub fn new(limit: usize) -> Self {
        Self { limit, kept: Mutex::default() }
    }

    // Nothing in here can panic half-way, so a poisoned lock still guards whole data.
    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Storage for MemoryStorage {
    async fn put(&self, session: &SessionId, content: &ContentId, bytes: Bytes) -> Result<(), StorageError> {
        let mut kept = self.kept();
        let Kept { bytes: total, sessions } = &mut *kept;
        let contents = sessions.entry(session.clone()).or_default();
        // Contents are named by their hash: what is there already is the same.
        if contents.contains_key(content) {
            return Ok(());
        }
        if *total + bytes.len() > self.limit {
            return Err(StorageError::Full { limit: self.limit });
        }
        *total += bytes.len();
        contents.insert(content.clone(), bytes);
        Ok(())
    }

    async fn get(&self, session: &SessionId, content: &ContentId) -> Result<Bytes, StorageError> {
        let kept = self.kept();
        kept.sessions.get(session).and_then(|contents| contents.get(content)).cloned().ok_or(StorageError::NotFound)
    }

    async fn remove(&self, session: &SessionId) {
        let mut kept = self.kept();
        if let Some(contents) = kept.sessions.remove(session) {
            kept.bytes -= contents.values().map(Bytes::len).sum::<usize>();
        }
    }
}
