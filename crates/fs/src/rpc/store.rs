//! All sessions of a storage client as one store: the first part of a path is the session's id.
//!
//! `s1/plan.md` is `plan.md` in the folder of session `s1`, wherever the client stores it. So code that keeps sessions
//! in folders named by their ids works with a storage client unchanged, and sends it no path of this machine.

use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;

use super::{Remote, RpcFs, StorageCapabilities, StorageClientConfig, StorageClientConfigError};
use crate::path::file_parts;
use crate::workspace::database::Database;
use crate::{Backend, BadPath, Conventions, DirEntry, FileKind, FileLines, FsError, Removal, Result, SessionFs, Stat};

/// The sessions of a storage client. A clone is another handle on the same ones.
///
/// A client answers for the sessions that it knows by their ids, and cannot list them: the root is a folder without
/// entries. A file cannot be renamed from one session to another ([`FsError::AcrossSessions`]). Temporary files belong
/// to a session ([`SessionFs::session_store`]).
#[derive(Clone, Debug)]
pub struct ClientStore {
    remote: Arc<Remote>,
    config: Arc<StorageClientConfig>,
}

impl ClientStore {
    pub fn new(
        remote: Arc<Remote>,
        config: StorageClientConfig,
    ) -> std::result::Result<Self, StorageClientConfigError> {
        config.check()?;
        Ok(Self { remote, config: Arc::new(config) })
    }

    /// The abilities of the client beside text files.
    pub fn capabilities(&self) -> StorageCapabilities {
        self.config.capabilities
    }

    /// The files of one session.
    pub fn session(&self, id: &str) -> RpcFs {
        RpcFs::checked(Arc::clone(&self.remote), id.to_owned(), Arc::clone(&self.config))
    }

    /// The session of a path, and the rest of the path: empty for the session's folder.
    fn split<'a>(&self, path: &'a str) -> Result<(RpcFs, &'a str)> {
        file_parts(path)?;
        let (id, rest) = path.split_once('/').unwrap_or((path, ""));
        Ok((self.session(id), rest))
    }

    /// The same for a path that must be a file.
    fn file<'a>(&self, path: &'a str) -> Result<(RpcFs, &'a str)> {
        let (fs, rest) = self.split(path)?;
        match rest.is_empty() {
            true => Err(FsError::IsADirectory { path: path.to_owned() }),
            false => Ok((fs, rest)),
        }
    }
}

/// The stat of the root: it always exists, and has no times.
const ROOT: Stat =
    Stat { kind: FileKind::Folder, size: 0, modified: SystemTime::UNIX_EPOCH, created: SystemTime::UNIX_EPOCH };

#[async_trait]
impl SessionFs for ClientStore {
    fn backend(&self) -> Backend {
        Backend::Rpc
    }

    fn conventions(&self) -> Conventions {
        self.config.conventions
    }

    fn location(&self, path: &str) -> Result<String> {
        // All sessions have the same folder in their own names.
        if path.is_empty() {
            return Ok(self.config.session_state_path.clone());
        }
        let (fs, rest) = self.split(path)?;
        fs.location(rest).map_err(|error| error.at(path))
    }

    fn lock_key(&self, path: &str) -> Result<String> {
        let (fs, rest) = self.split(path)?;
        let key = fs.lock_key(rest).map_err(|error| error.at(path))?;
        // Two clients may have a session of the same id: the connection distinguishes them.
        Ok(format!("provider-{:p}:{key}", Arc::as_ptr(&self.remote)))
    }

    fn initial_cwd(&self) -> Option<String> {
        Some(self.config.initial_cwd.clone())
    }

    fn tmpdir(&self) -> Result<Arc<dyn SessionFs>> {
        // Only a session has temporary files.
        Err(FsError::BadPath { path: String::new(), reason: BadPath::Root })
    }

    fn session_store(&self, session: &str) -> Option<Arc<dyn SessionFs>> {
        Some(Arc::new(self.session(session)))
    }

    fn database(&self, folder: &str) -> Option<Arc<dyn Database>> {
        let (fs, rest) = self.split(folder).ok()?;
        fs.database(rest)
    }

    fn without_links(&self) -> Arc<dyn SessionFs> {
        Arc::new(self.clone())
    }

    async fn read_file(&self, path: &str) -> Result<Vec<u8>> {
        let (fs, rest) = self.file(path)?;
        fs.read_file(rest).await.map_err(|error| error.at(path))
    }

    async fn read_range(&self, path: &str, offset: u64, length: usize) -> Result<Vec<u8>> {
        let (fs, rest) = self.file(path)?;
        fs.read_range(rest, offset, length).await.map_err(|error| error.at(path))
    }

    async fn read_lines(&self, path: &str, longest: usize) -> Result<FileLines> {
        let (fs, rest) = self.file(path)?;
        let lines = fs.read_lines(rest, longest).await;
        lines.map(|lines| lines.named(path)).map_err(|error| error.at(path))
    }

    async fn write_file(&self, path: &str, bytes: &[u8]) -> Result<()> {
        let (fs, rest) = self.file(path)?;
        fs.write_file(rest, bytes).await.map_err(|error| error.at(path))
    }

    async fn append_file(&self, path: &str, bytes: &[u8]) -> Result<()> {
        let (fs, rest) = self.file(path)?;
        fs.append_file(rest, bytes).await.map_err(|error| error.at(path))
    }

    async fn sync(&self, path: &str) -> Result<()> {
        let (fs, rest) = self.file(path)?;
        fs.sync(rest).await.map_err(|error| error.at(path))
    }

    async fn truncate(&self, path: &str, length: u64) -> Result<()> {
        let (fs, rest) = self.file(path)?;
        fs.truncate(rest, length).await.map_err(|error| error.at(path))
    }

    async fn exists(&self, path: &str) -> Result<bool> {
        if path.is_empty() {
            return Ok(true);
        }
        let (fs, rest) = self.split(path)?;
        fs.exists(rest).await.map_err(|error| error.at(path))
    }

    async fn stat(&self, path: &str) -> Result<Stat> {
        if path.is_empty() {
            return Ok(ROOT);
        }
        let (fs, rest) = self.split(path)?;
        fs.stat(rest).await.map_err(|error| error.at(path))
    }

    async fn mkdir(&self, path: &str) -> Result<()> {
        if path.is_empty() {
            return Ok(());
        }
        let (fs, rest) = self.split(path)?;
        fs.mkdir(rest).await.map_err(|error| error.at(path))
    }

    async fn readdir_with_types(&self, path: &str) -> Result<Vec<DirEntry>> {
        if path.is_empty() {
            return Ok(Vec::new());
        }
        let (fs, rest) = self.split(path)?;
        fs.readdir_with_types(rest).await.map_err(|error| error.at(path))
    }

    async fn rm(&self, path: &str, what: Removal) -> Result<()> {
        let (fs, rest) = self.split(path)?;
        if !rest.is_empty() {
            return fs.rm(rest, what).await.map_err(|error| error.at(path));
        }
        // The client owns the session's folder itself. Everything that Grove put there is deleted.
        let inside = fs.readdir_with_types("").await.map_err(|error| error.at(path))?;
        if what == Removal::One && !inside.is_empty() {
            return Err(FsError::NotEmpty { path: path.to_owned() });
        }
        for entry in inside {
            fs.rm(&entry.name, Removal::Everything).await.map_err(|error| error.at(path))?;
        }
        Ok(())
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        let across = || FsError::AcrossSessions { path: from.to_owned() };
        file_parts(to)?;
        let (fs, source) = self.file(from).map_err(|_| across())?;
        let (id, _) = from.split_once('/').unwrap_or((from, ""));
        match to.split_once('/') {
            Some((other, target)) if other == id => fs.rename(source, target).await.map_err(|error| error.at(from)),
            Some(_) | None => Err(across()),
        }
    }
}
