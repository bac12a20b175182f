//! The storage of a session at a storage client: a program at the other end of a connection.
//!
//! The wire has whole files, two error codes, and nothing else: no truncation, no atomic replacement, and ranges only
//! from clients that offer them. The rest of the trait is built from that:
//!
//! - A file is replaced by writing another one beside it and renaming it.
//! - Without ranges, one is cut out of the whole file, which is cached while the client reports it as unchanged.
//! - Truncating, and appending bytes that are not text, reads the file and replaces it.
//! - If a call failed without a reason, the client is asked what is at the path, so that the error is the same as on
//!   every backend.
//!
//! A change holds the file's lock until the client has answered, even if the caller timed out or went away: a change
//! can never overtake another one of the same file. A call that is not answered within [`Limits::call`] has failed, and
//! the lock is free. Whether the client did it is unknown then; `unconfirmed` ensures that an append is never there
//! twice.
//!
//! [`RpcFs`] is one session. [`ClientStore`] is all sessions of a storage client, each below its id, over one
//! [`Remote`];
//! [`ReconnectingCalls`] lets that outlive a connection.

mod change;
mod config;
mod database;
mod file_cache;
mod reconnecting_calls;
mod remote;
mod store;
pub(crate) mod unconfirmed;
pub mod wire;

use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::file_cache::CachedFile;
use self::wire::{
    ExistsResult, PathParams, RangeParams, ReadResult, ReaddirWithTypesResult, SessionFsMethod, StatResult, WireCode,
    WireKind,
};
pub use config::{StorageCapabilities, StorageClientConfig, StorageClientConfigError};
pub(crate) use database::{cell, value};
pub use reconnecting_calls::ReconnectingCalls;
pub use remote::{CallError, Limits, Remote, RemoteCalls};
pub use store::ClientStore;

use self::database::RpcDatabase;
use crate::lines::{Chunks, WholeFile};
use crate::names::windows;
use crate::path::{file_parts, is_part, parts};
use crate::workspace::database::Database;
use crate::{Backend, BadPath, Conventions, DirEntry, FileKind, FileLines, FsError, Removal, Result, SessionFs, Stat};

/// The files of one session at a storage client. A clone is another handle on the same session.
///
/// It needs a tokio runtime with time.
#[derive(Clone, Debug)]
pub struct RpcFs {
    shared: Arc<RpcSession>,
    /// The root of its paths, in the client's spelling.
    root: Arc<str>,
}

#[derive(Debug)]
struct RpcSession {
    remote: Arc<Remote>,
    session: String,
    config: Arc<StorageClientConfig>,
}

/// The bytes that are requested at once when a file is read line by line.
const CHUNK: usize = 1 << 20;

impl RpcFs {
    /// The files of a session at a storage client.
    pub fn new(
        remote: Arc<Remote>,
        session: impl Into<String>,
        config: StorageClientConfig,
    ) -> std::result::Result<Self, StorageClientConfigError> {
        config.check()?;
        Ok(Self::checked(remote, session.into(), Arc::new(config)))
    }

    /// The same with a configuration that was checked.
    fn checked(remote: Arc<Remote>, session: String, config: Arc<StorageClientConfig>) -> Self {
        let root = config.session_state_path.as_str().into();
        Self { shared: Arc::new(RpcSession { remote, session, config }), root }
    }

    /// The abilities of the client beside text files.
    pub fn capabilities(&self) -> StorageCapabilities {
        self.shared.config.capabilities
    }

    fn is_binary(&self) -> bool {
        self.capabilities().binary
    }

    fn remote(&self) -> &Remote {
        &self.shared.remote
    }

    /// The location of a path that is not the root.
    fn file_location(&self, path: &str) -> Result<String> {
        file_parts(path)?;
        self.location(path)
    }

    fn params(&self, location: &str) -> PathParams {
        PathParams { session_id: self.shared.session.clone(), path: location.to_owned() }
    }

    async fn call<P: Serialize, R: DeserializeOwned>(
        &self,
        method: SessionFsMethod,
        params: &P,
        path: &str,
    ) -> Result<R> {
        self.remote().call(method, params, path).await
    }

    /// Runs a read when it is its turn, and drops it when it takes too long.
    async fn reading<T: Send>(&self, path: &str, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
        // A read is a large future, and it is nested deeply: on the heap it costs no caller's stack.
        let work = Box::pin(work);
        self.in_time(path, async {
            let _turn = self.remote().turn(path).await?;
            work.await
        })
        .await
    }

    /// Applies the time limit.
    async fn in_time<T>(&self, path: &str, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
        let limit = self.remote().limits.time;
        match tokio::time::timeout(limit, work).await {
            Ok(result) => result,
            Err(_) => Err(FsError::TimedOut { path: path.to_owned(), limit }),
        }
    }

    /// The client's stat of a path.
    async fn look(&self, path: &str) -> Result<Stat> {
        let found: StatResult = self.call(SessionFsMethod::Stat, &self.params(&self.location(path)?), path).await?;
        if let Some(error) = found.error {
            return Err(failed(error, path));
        }
        let kind = match (found.is_file, found.is_directory) {
            (true, _) => FileKind::File,
            (false, true) => FileKind::Folder,
            (false, false) => FileKind::Other,
        };
        let time = |text: &str| {
            let time = text.parse::<jiff::Timestamp>().map(SystemTime::from);
            time.map_err(|error| FsError::BadAnswer { path: path.to_owned(), reason: error.to_string() })
        };
        let size = if kind == FileKind::Folder { 0 } else { found.size };
        Ok(Stat { kind, size, modified: time(&found.mtime)?, created: time(&found.birthtime)? })
    }

    /// The reason why a call about a file failed, if the client gave none. If it cannot be found out, the error stays.
    async fn why(&self, error: FsError) -> FsError {
        let FsError::Other { path, .. } = &error else { return error };
        match self.look(path).await {
            Ok(stat) if stat.kind == FileKind::Folder => FsError::IsADirectory { path: path.clone() },
            // It exists, and something else is wrong with it.
            Ok(_) => error,
            Err(_) => self.why_not_there(error).await,
        }
    }

    /// The same for a path at which nothing was found: a file may be in the middle of it.
    async fn why_not_there(&self, error: FsError) -> FsError {
        let FsError::Other { path, .. } = &error else { return error };
        if self.is_blocked(path).await { FsError::NotADirectory { path: path.clone() } } else { error }
    }

    /// Returns whether a part of the path exists and is not a folder.
    async fn is_blocked(&self, path: &str) -> bool {
        for (end, _) in path.match_indices('/') {
            match self.look(&path[..end]).await {
                Ok(stat) if stat.kind == FileKind::Folder => {}
                Ok(_) => return true,
                Err(_) => return false,
            }
        }
        false
    }

    /// All bytes of a file, without a time limit of its own.
    async fn fetch(&self, path: &str) -> Result<Vec<u8>> {
        self.file_location(path)?;
        match self.look(path).await {
            Ok(stat) => self.fetch_looked(path, stat).await,
            Err(error) => Err(self.why(error).await),
        }
    }

    /// The same for a file with this stat.
    async fn fetch_looked(&self, path: &str, stat: Stat) -> Result<Vec<u8>> {
        let params = self.params(&self.file_location(path)?);
        let limit = self.remote().limits.file;
        match stat.kind {
            FileKind::Folder => return Err(FsError::IsADirectory { path: path.to_owned() }),
            // The wire has whole files only: too large a file is refused.
            FileKind::File | FileKind::Other if stat.size > limit => {
                return Err(FsError::TooLarge { path: path.to_owned(), limit });
            }
            FileKind::File | FileKind::Other => {}
        }
        let method = if self.is_binary() { SessionFsMethod::ReadFileBytes } else { SessionFsMethod::ReadFile };
        let read: ReadResult = self.call(method, &params, path).await?;
        if let Some(error) = read.error {
            return Err(self.why(failed(error, path)).await);
        }
        let bytes = if self.is_binary() {
            let decoded = STANDARD.decode(read.content);
            decoded.map_err(|error| FsError::BadAnswer { path: path.to_owned(), reason: error.to_string() })?
        } else if may_be_lossy(&read.content, stat.size) && self.has_byte_sizes(path).await? {
            // The client decoded bytes that are not text. Nobody may take that for the file, and write it back.
            return Err(FsError::NotText { path: path.to_owned() });
        } else {
            read.content.into_bytes()
        };
        if bytes.len() as u64 > limit {
            return Err(FsError::TooLarge { path: path.to_owned(), limit });
        }
        Ok(bytes)
    }

    /// Finds out whether the client counts sizes in bytes, and not in characters or not at all, by writing a file for
    /// which these numbers differ.
    async fn has_byte_sizes(&self, path: &str) -> Result<bool> {
        if let Some(known) = self.remote().has_byte_sizes.get() {
            return Ok(*known);
        }
        let stat = self.stat_of_text("\u{e9}", path).await?;
        Ok(*self.remote().has_byte_sizes.get_or_init(|| stat.size == "\u{e9}".len() as u64))
    }

    /// All bytes of a file, from the cache if the client reports it as unchanged.
    async fn fetch_cached(&self, path: &str) -> Result<Arc<[u8]>> {
        self.file_location(path)?;
        let stat = match self.look(path).await {
            Ok(stat) => stat,
            Err(error) => return Err(self.why(error).await),
        };
        let key = self.lock_key(path)?;
        if let Some(bytes) = self.remote().file_cache.get(&key, &stat) {
            return Ok(bytes);
        }
        let bytes: Arc<[u8]> = self.fetch_looked(path, stat).await?.into();
        // A file that changed during the read does not match its stat. Not every client's sizes are bytes, so if the
        // sizes differ, the stat is read again.
        if bytes.len() as u64 == stat.size || self.look(path).await? == stat {
            self.remote().file_cache.put(CachedFile { key, stat, bytes: Arc::clone(&bytes) });
        }
        Ok(bytes)
    }

    /// The bytes of a file that an append may still reach; `None` for other files.
    async fn fetch_guarded(&self, path: &str) -> Result<Option<Vec<u8>>> {
        let key = self.lock_key(path)?;
        if !self.remote().unconfirmed.is_guarded(&key) {
            return Ok(None);
        }
        let _held = self.held(path, &key).await?;
        match self.reading(path, self.fetch_counting(path)).await {
            Err(FsError::TooLarge { .. }) => {
                self.remote().unconfirmed.forget(&key);
                Ok(None)
            }
            read => read.map(Some),
        }
    }

    /// Some bytes of a file, from a client that has ranges.
    async fn fetch_range(&self, path: &str, offset: u64, length: usize) -> Result<Vec<u8>> {
        let location = self.file_location(path)?;
        let length = (length as u64).min(self.remote().limits.file);
        let params = RangeParams { session_id: self.shared.session.clone(), path: location, offset, length };
        let read: ReadResult = self.call(SessionFsMethod::ReadFileRange, &params, path).await?;
        if let Some(error) = read.error {
            return Err(self.why(failed(error, path)).await);
        }
        let bytes = STANDARD.decode(read.content);
        let bytes = bytes.map_err(|error| FsError::BadAnswer { path: path.to_owned(), reason: error.to_string() })?;
        match bytes.len() as u64 > length {
            true => Err(FsError::BadAnswer { path: path.to_owned(), reason: "it has more than requested".to_owned() }),
            false => Ok(bytes),
        }
    }

    /// Drops the cache of a file, or of everything in a folder.
    fn forget(&self, location: &str) {
        self.remote().file_cache.forget(&self.key_of(location));
    }

    /// The sessions of one client have the same paths, and are not the same files.
    fn key_of(&self, location: &str) -> String {
        format!("{}:{location}", self.shared.session)
    }
}

/// A file in ranges, one after the other.
#[derive(Debug)]
struct RangeChunks {
    fs: RpcFs,
    path: String,
    offset: u64,
}

#[async_trait]
impl Chunks for RangeChunks {
    async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let chunk = self.fs.read_range(&self.path, self.offset, CHUNK).await?;
        self.offset += chunk.len() as u64;
        Ok(Some(chunk).filter(|chunk| !chunk.is_empty()))
    }
}

/// Recognizes a text that a client may have decoded from a file of this size that is not text: each of its replacement
/// characters, three bytes long, then stands for one to three bytes.
fn may_be_lossy(content: &str, size: u64) -> bool {
    let length = content.len() as u64;
    let replaced = content.matches(char::REPLACEMENT_CHARACTER).count() as u64;
    replaced > 0 && (length.saturating_sub(2 * replaced)..length).contains(&size)
}

/// The error that a client reported.
fn failed(error: wire::WireError, path: &str) -> FsError {
    let path = path.to_owned();
    match error.code {
        WireCode::NotFound => FsError::NotFound { path },
        WireCode::Unknown => {
            let reason = error.message.unwrap_or_else(|| "the storage client gave no reason".to_owned());
            FsError::Other { path, reason: format!("the storage client failed: {reason}") }
        }
    }
}

#[async_trait]
impl SessionFs for RpcFs {
    fn backend(&self) -> Backend {
        Backend::Rpc
    }

    fn conventions(&self) -> Conventions {
        self.shared.config.conventions
    }

    fn location(&self, path: &str) -> Result<String> {
        let parts = parts(path)?;
        if self.conventions() == Conventions::Windows {
            if path.contains('\\') {
                return Err(FsError::BadPath { path: path.to_owned(), reason: BadPath::Separator });
            }
            if let Some(reason) = parts.iter().find_map(|part| windows::fault(part)) {
                return Err(FsError::BadName { path: path.to_owned(), reason });
            }
        }
        Ok(self.join(&[&self.root, path]))
    }

    fn lock_key(&self, path: &str) -> Result<String> {
        Ok(self.key_of(&self.location(path)?))
    }

    fn session_state_path(&self) -> Option<String> {
        (*self.root == *self.shared.config.session_state_path).then(|| self.root.to_string())
    }

    fn initial_cwd(&self) -> Option<String> {
        Some(self.shared.config.initial_cwd.clone())
    }

    fn tmpdir(&self) -> Result<Arc<dyn SessionFs>> {
        let temp = self.join(&[&self.shared.config.session_state_path, "temp"]);
        Ok(Arc::new(Self { shared: Arc::clone(&self.shared), root: temp.into() }))
    }

    fn database(&self, folder: &str) -> Option<Arc<dyn Database>> {
        let has_one = self.capabilities().sqlite && folder.is_empty();
        has_one.then(|| -> Arc<dyn Database> { Arc::new(RpcDatabase::new(self.clone())) })
    }

    fn without_links(&self) -> Arc<dyn SessionFs> {
        // The wire has no links. The client resolves its paths.
        Arc::new(self.clone())
    }

    async fn read_file(&self, path: &str) -> Result<Vec<u8>> {
        self.file_location(path)?;
        if let Some(bytes) = self.fetch_guarded(path).await? {
            return Ok(bytes);
        }
        self.reading(path, self.fetch(path)).await
    }

    async fn read_range(&self, path: &str, offset: u64, length: usize) -> Result<Vec<u8>> {
        self.file_location(path)?;
        let bytes: Arc<[u8]> = match self.fetch_guarded(path).await? {
            Some(bytes) => bytes.into(),
            None if self.capabilities().ranges => {
                return self.reading(path, self.fetch_range(path, offset, length)).await;
            }
            None => self.reading(path, self.fetch_cached(path)).await?,
        };
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let end = start.saturating_add(length).min(bytes.len());
        Ok(bytes[start..end].to_vec())
    }

    async fn read_lines(&self, path: &str, longest: usize) -> Result<FileLines> {
        self.file_location(path)?;
        if self.capabilities().ranges && !self.remote().unconfirmed.is_guarded(&self.lock_key(path)?) {
            // A missing file is reported at once.
            self.reading(path, self.fetch_range(path, 0, 0)).await?;
            return Ok(FileLines::new(
                path,
                RangeChunks { fs: self.clone(), path: path.to_owned(), offset: 0 },
                longest,
            ));
        }
        Ok(FileLines::new(path, WholeFile::new(self.read_file(path).await?), longest))
    }

    async fn write_file(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.replace(path, bytes.to_vec()).await
    }

    async fn append_file(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.append(path, bytes.to_vec()).await
    }

    async fn sync(&self, path: &str) -> Result<()> {
        // The client has stored what it has answered. Pending changes are waited for, and then only the file's
        // existence can be checked.
        file_parts(path)?;
        drop(self.held(path, &self.lock_key(path)?).await?);
        match self.stat(path).await?.kind {
            FileKind::Folder => Err(FsError::IsADirectory { path: path.to_owned() }),
            FileKind::File | FileKind::Other => Ok(()),
        }
    }

    async fn truncate(&self, path: &str, length: u64) -> Result<()> {
        self.cut(path, length).await
    }

    async fn exists(&self, path: &str) -> Result<bool> {
        let params = self.params(&self.location(path)?);
        let found: ExistsResult = self.reading(path, self.call(SessionFsMethod::Exists, &params, path)).await?;
        Ok(found.exists)
    }

    async fn stat(&self, path: &str) -> Result<Stat> {
        self.reading(path, async {
            match self.look(path).await {
                Err(error) => Err(self.why(error).await),
                found => found,
            }
        })
        .await
    }

    async fn mkdir(&self, path: &str) -> Result<()> {
        self.make_folder(path).await
    }

    async fn readdir_with_types(&self, path: &str) -> Result<Vec<DirEntry>> {
        let params = self.params(&self.location(path)?);
        let found = self.reading(path, async {
            let found: ReaddirWithTypesResult = self.call(SessionFsMethod::ReaddirWithTypes, &params, path).await?;
            let Some(error) = found.error else { return Ok(found.entries) };
            match self.why(failed(error, path)).await {
                // It exists and could not be listed: it is not a folder.
                error @ FsError::Other { .. } => match self.look(path).await {
                    Ok(stat) if stat.kind != FileKind::Folder => Err(FsError::NotADirectory { path: path.to_owned() }),
                    Ok(_) | Err(_) => Err(error),
                },
                error => Err(error),
            }
        });
        let found = found.await?;
        let limit = self.remote().limits.entries;
        if found.len() > limit {
            return Err(FsError::TooLarge { path: path.to_owned(), limit: limit as u64 });
        }
        // A client is not trusted to keep names in their folder.
        let mut entries: Vec<DirEntry> = (found.into_iter().filter(|entry| is_part(&entry.name)))
            .map(|entry| {
                let kind = match entry.kind {
                    WireKind::File => FileKind::File,
                    WireKind::Directory => FileKind::Folder,
                };
                DirEntry { name: entry.name, kind }
            })
            .collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        entries.dedup_by(|a, b| a.name == b.name);
        Ok(entries)
    }

    async fn rm(&self, path: &str, what: Removal) -> Result<()> {
        self.remove(path, what).await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.rename_to(from, to).await
    }
}
