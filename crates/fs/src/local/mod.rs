//! A folder on this machine.

mod local_path;
mod remove;
mod temp;

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use self::local_path::{LocalPath, MissingFolders, Root, SymlinkPolicy};
use self::temp::TempFolder;
use crate::lines::Chunks;
use crate::path::{file_parts, is_part, parts};
use crate::workspace::database::{Database, LocalDatabase};
use crate::{Backend, DirEntry, FileKind, FileLines, FsError, Removal, Result, SessionFs, Stat};

/// Files in a folder on this machine. The folder is created, as other folders are, with the first write.
///
/// Every call runs on tokio's threads for blocking work. Anything that is not a file (a pipe, a device) is never opened
/// as one, so no call blocks forever.
#[derive(Clone, Debug)]
pub struct LocalFs {
    shared: Arc<LocalStore>,
    links: SymlinkPolicy,
}

#[derive(Debug)]
struct LocalStore {
    root: RootFolder,
    of_session: SessionRoot,
    initial_cwd: Option<PathBuf>,
    /// Chosen on first use, and shared by all handles.
    temp: OnceLock<Arc<TempFolder>>,
}

#[derive(Debug)]
enum RootFolder {
    Folder(PathBuf),
    /// A folder below another one, which is never created.
    Inside {
        container: PathBuf,
        path: PathBuf,
    },
    /// The folder exists as long as it is in use.
    Temp(Arc<TempFolder>),
}

impl RootFolder {
    fn path(&self) -> &Path {
        match self {
            RootFolder::Folder(path) | RootFolder::Inside { path, .. } => path,
            RootFolder::Temp(folder) => folder.path(),
        }
    }
}

/// The kind of root: one session's folder, or another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionRoot {
    Yes,
    No,
}

impl LocalFs {
    /// Files below `root`, which is not the folder of one session: that of all sessions, for instance.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self::with(RootFolder::Folder(root.into()), SessionRoot::No, None)
    }

    /// Files below `root`. Nothing is created while `container` is missing: a data folder that was deleted under a host stays
    /// deleted.
    pub fn inside(container: impl Into<PathBuf>, root: impl Into<PathBuf>) -> Self {
        let root = RootFolder::Inside { container: container.into(), path: root.into() };
        Self::with(root, SessionRoot::No, None)
    }

    /// The files of the session in `folder`. Its default working directory is `initial_cwd`.
    pub fn of_session(folder: impl Into<PathBuf>, initial_cwd: Option<PathBuf>) -> Self {
        Self::with(RootFolder::Folder(folder.into()), SessionRoot::Yes, initial_cwd)
    }

    fn with(root: RootFolder, of_session: SessionRoot, initial_cwd: Option<PathBuf>) -> Self {
        let shared = LocalStore { root, of_session, initial_cwd, temp: OnceLock::new() };
        Self { shared: Arc::new(shared), links: SymlinkPolicy::Follow }
    }

    /// The location of a path on this machine.
    pub fn path(&self, path: &str) -> Result<PathBuf> {
        let mut full = self.root().path.to_path_buf();
        full.extend(parts(path)?);
        Ok(full)
    }

    fn root(&self) -> Root<'_> {
        let root = &self.shared.root;
        let container = match root {
            RootFolder::Inside { container, .. } => Some(container.as_path()),
            RootFolder::Folder(_) | RootFolder::Temp(_) => None,
        };
        Root { path: root.path(), container }
    }

    /// Runs blocking work on a file or folder below the root.
    async fn at<T: Send + 'static>(
        &self,
        path: &str,
        work: impl FnOnce(&LocalPath<'_>) -> io::Result<T> + Send + 'static,
    ) -> Result<T> {
        file_parts(path)?;
        let (store, given) = (self.clone(), path.to_owned());
        blocking(path, move || work(&LocalPath::new(store.root(), &given, store.links))).await
    }
}

fn shared(store: LocalFs) -> Arc<dyn SessionFs> {
    Arc::new(store)
}

/// Runs blocking work on a path, and adds the path to errors.
async fn blocking<T: Send + 'static>(path: &str, work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(|error| FsError::from_io(&error, path)),
        Err(error) => Err(FsError::Other { path: path.to_owned(), reason: error.to_string() }),
    }
}

#[async_trait]
impl SessionFs for LocalFs {
    fn backend(&self) -> Backend {
        Backend::Local
    }

    fn location(&self, path: &str) -> Result<String> {
        // A root that is not UTF-8 can be used, but has no spelling.
        let full = self.path(path)?;
        full.into_os_string().into_string().map_err(|_| FsError::NotText { path: path.to_owned() })
    }

    fn session_state_path(&self) -> Option<String> {
        (self.shared.of_session == SessionRoot::Yes).then(|| self.location("").ok()).flatten()
    }

    fn initial_cwd(&self) -> Option<String> {
        self.shared.initial_cwd.as_deref().and_then(Path::to_str).map(str::to_owned)
    }

    fn tmpdir(&self) -> Result<Arc<dyn SessionFs>> {
        let temp = match (&self.shared.root, self.shared.temp.get()) {
            // A temporary folder has no temporary folder of its own.
            (RootFolder::Temp(temp), _) | (_, Some(temp)) => temp,
            (RootFolder::Folder(_) | RootFolder::Inside { .. }, None) => {
                let new = Arc::new(TempFolder::choose(self.root().path).map_err(|error| FsError::from_io(&error, ""))?);
                self.shared.temp.get_or_init(|| new)
            }
        };
        Ok(Arc::new(Self::with(RootFolder::Temp(Arc::clone(temp)), SessionRoot::No, None)))
    }

    async fn leftover_tmpdirs(&self) -> Result<Vec<Arc<dyn SessionFs>>> {
        if let RootFolder::Temp(_) = &self.shared.root {
            return Ok(Vec::new());
        }
        let root = self.root().path.to_path_buf();
        let left = blocking("", move || TempFolder::left(&root)).await?;
        let own = self.shared.temp.get().map(|own| own.path().to_owned());
        let left = left.into_iter().filter(|folder| own.as_deref() != Some(folder.path()));
        Ok(left
            .map(|folder| Self::with(RootFolder::Temp(Arc::new(folder)), SessionRoot::No, None))
            .map(shared)
            .collect())
    }

    fn database(&self, folder: &str) -> Option<Arc<dyn Database>> {
        Some(Arc::new(LocalDatabase::new(self.clone(), folder)))
    }

    fn without_links(&self) -> Arc<dyn SessionFs> {
        Arc::new(Self { shared: Arc::clone(&self.shared), links: SymlinkPolicy::Refuse })
    }

    async fn read_file(&self, path: &str) -> Result<Vec<u8>> {
        self.at(path, |local_path| {
            let mut bytes = Vec::new();
            local_path.open_file(OFlags::RDONLY)?.read_to_end(&mut bytes)?;
            Ok(bytes)
        })
        .await
    }

    async fn read_range(&self, path: &str, offset: u64, length: usize) -> Result<Vec<u8>> {
        self.at(path, move |local_path| {
            let mut file = local_path.open_file(OFlags::RDONLY)?;
            // Nobody can request more memory than the file has bytes.
            let rest = file.metadata()?.len().saturating_sub(offset);
            let length = rest.min(length as u64);
            if length == 0 {
                // Some offsets are too large to seek to.
                return Ok(Vec::new());
            }
            let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
            file.seek(SeekFrom::Start(offset))?;
            file.take(length).read_to_end(&mut bytes)?;
            Ok(bytes)
        })
        .await
    }

    async fn read_lines(&self, path: &str, longest: usize) -> Result<FileLines> {
        let file = self.at(path, |local_path| local_path.open_file(OFlags::RDONLY)).await?;
        Ok(FileLines::new(path, OpenFile { path: path.to_owned(), file: Arc::new(file), at: 0 }, longest))
    }

    async fn write_file(&self, path: &str, bytes: &[u8]) -> Result<()> {
        let bytes = bytes.to_vec();
        self.at(path, move |local_path| replace(local_path, &bytes)).await
    }

    async fn append_file(&self, path: &str, bytes: &[u8]) -> Result<()> {
        let bytes = bytes.to_vec();
        self.at(path, move |local_path| {
            let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
            let mut file = match local_path.open_file(flags) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    local_path.folder(MissingFolders::Make)?;
                    local_path.open_file(flags)?
                }
                opened => opened?,
            };
            file.write_all(&bytes)
        })
        .await
    }

    async fn sync(&self, path: &str) -> Result<()> {
        self.at(path, |local_path| local_path.open_file(OFlags::RDONLY)?.sync_data()).await
    }

    async fn truncate(&self, path: &str, length: u64) -> Result<()> {
        self.at(path, move |local_path| {
            let file = local_path.open_file(OFlags::WRONLY)?;
            if file.metadata()?.len() > length { file.set_len(length) } else { Ok(()) }
        })
        .await
    }

    async fn stat(&self, path: &str) -> Result<Stat> {
        if parts(path)?.is_empty() {
            let root = self.root().path.to_path_buf();
            return blocking(path, move || Ok(local_path::stat_of(&fs::metadata(root)?))).await;
        }
        self.at(path, |local_path| local_path.stat()).await
    }

    async fn mkdir(&self, path: &str) -> Result<()> {
        if parts(path)?.is_empty() {
            let store = self.clone();
            return blocking(path, move || local_path::make_root(store.root())).await;
        }
        self.at(path, |local_path| local_path.make_folder()).await
    }

    async fn readdir_with_types(&self, path: &str) -> Result<Vec<DirEntry>> {
        parts(path)?;
        let (store, given) = (self.clone(), path.to_owned());
        blocking(path, move || {
            let folder = local_path::open_folder(store.root(), &given, store.links, MissingFolders::Fail)?;
            let mut entries = Vec::new();
            for entry in Dir::read_from(&folder)? {
                let entry = entry?;
                let Ok(name) = entry.file_name().to_str() else { continue };
                if !is_part(name) {
                    continue;
                }
                // Entries that are gone meanwhile, or links that lead nowhere, do not exist.
                let Ok(stat) = rustix::fs::statat(&folder, entry.file_name(), store.links.at_flags()) else { continue };
                entries.push(DirEntry { name: name.to_owned(), kind: kind_of(FileType::from_raw_mode(stat.st_mode)) });
            }
            entries.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(entries)
        })
        .await
    }

    async fn rm(&self, path: &str, what: Removal) -> Result<()> {
        self.at(path, move |local_path| {
            let folder = local_path.folder(MissingFolders::Fail)?;
            // A link itself is removed, never its target.
            let stat = rustix::fs::statat(&folder, local_path.name(), AtFlags::SYMLINK_NOFOLLOW)?;
            match (FileType::from_raw_mode(stat.st_mode), what) {
                (FileType::Directory, Removal::One) => {
                    Ok(rustix::fs::unlinkat(&folder, local_path.name(), AtFlags::REMOVEDIR)?)
                }
                (FileType::Directory, Removal::Everything) => remove::everything(folder.as_fd(), local_path.name()),
                _ => Ok(rustix::fs::unlinkat(&folder, local_path.name(), AtFlags::empty())?),
            }
        })
        .await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        file_parts(to)?;
        let (store, to) = (self.clone(), to.to_owned());
        self.at(from, move |source| {
            let target = LocalPath::new(store.root(), &to, store.links);
            let old = source.folder(MissingFolders::Fail)?;
            // If two things are wrong, the missing source is reported, as on every backend.
            rustix::fs::statat(&old, source.name(), AtFlags::SYMLINK_NOFOLLOW)?;
            let new = target.folder(MissingFolders::Fail)?;
            rustix::fs::renameat(&old, source.name(), &new, target.name())?;
            rustix::fs::fsync(&new)?;
            Ok(())
        })
        .await
    }
}

/// Replaces a file by a temporary one beside it.
fn replace(local_path: &LocalPath<'_>, bytes: &[u8]) -> io::Result<()> {
    /// Two writes of this process never share a temporary file.
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let folder = local_path.folder(MissingFolders::Make)?;
    match local_path.stat_in(&folder) {
        Ok(stat) if stat.kind == FileKind::Folder => return Err(Errno::ISDIR.into()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(_) | Err(_) => {}
    }
    // Not derived from the file's own name, which may be as long as a name can be.
    let temporary = format!(".grove-{}-{}.tmp", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let written: io::Result<()> = (|| {
        // A file that a process with the same id left behind is overwritten; a link of that name is not followed.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(&folder, &temporary, flags, Mode::RUSR | Mode::WUSR)?);
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(rustix::fs::renameat(&folder, &temporary, &folder, local_path.name())?)
    })();
    if written.is_err() {
        // The write's own error is the one to report.
        rustix::fs::unlinkat(&folder, &temporary, AtFlags::empty()).ok();
    }
    written?;
    // A name is on the disk when its folder is synced.
    Ok(rustix::fs::fsync(&folder)?)
}

fn kind_of(kind: FileType) -> FileKind {
    match kind {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Folder,
        _ => FileKind::Other,
    }
}

/// A file that is read chunk by chunk.
#[derive(Debug)]
struct OpenFile {
    path: String,
    file: Arc<File>,
    /// The offset of the next chunk. Kept here and not by the system, so that a dropped call skips nothing.
    at: u64,
}

#[async_trait]
impl Chunks for OpenFile {
    async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        const CHUNK: usize = 64 * 1024;
        let (file, at) = (Arc::clone(&self.file), self.at);
        let chunk = blocking(&self.path, move || {
            let mut chunk = vec![0; CHUNK];
            loop {
                match file.read_at(&mut chunk, at) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    read => {
                        chunk.truncate(read?);
                        return Ok(chunk);
                    }
                }
            }
        });
        let chunk = chunk.await?;
        self.at += chunk.len() as u64;
        Ok(Some(chunk).filter(|chunk| !chunk.is_empty()))
    }
}
