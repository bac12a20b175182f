//! A folder on this machine.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use async_trait::async_trait;

use crate::path::{file_parts, parts};
use crate::{DirEntry, FsError, Kind, Removal, Result, SessionFs, Stat};

/// Files in a folder on this machine. It is made, as other folders are, when something is first written.
///
/// Every call runs on tokio's threads for blocking work.
#[derive(Clone, Debug)]
pub struct LocalFs {
    root: Arc<Path>,
}

impl LocalFs {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into().into() }
    }

    /// Where a path lies on this machine.
    pub fn path(&self, path: &str) -> Result<PathBuf> {
        let mut full = self.root.to_path_buf();
        full.extend(parts(path)?);
        Ok(full)
    }

    fn file_path(&self, path: &str) -> Result<PathBuf> {
        file_parts(path)?;
        self.path(path)
    }
}

/// Runs blocking work about a path, and names the path in what goes wrong.
async fn blocking<T: Send + 'static>(path: &str, work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(|error| FsError::from_io(&error, path)),
        Err(error) => Err(FsError::Other { path: path.to_owned(), reason: error.to_string() }),
    }
}

#[async_trait]
impl SessionFs for LocalFs {
    async fn read_file(&self, path: &str) -> Result<Vec<u8>> {
        let full = self.file_path(path)?;
        blocking(path, move || fs::read(full)).await
    }

    async fn read_range(&self, path: &str, offset: u64, length: usize) -> Result<Vec<u8>> {
        let full = self.file_path(path)?;
        blocking(path, move || {
            let mut file = File::open(full)?;
            // Nobody should be able to ask for more memory than the file has bytes.
            let rest = file.metadata()?.len().saturating_sub(offset);
            let length = rest.min(length as u64);
            if length == 0 {
                // No file can be sought to any place at all.
                return Ok(Vec::new());
            }
            let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
            file.seek(SeekFrom::Start(offset))?;
            file.take(length).read_to_end(&mut bytes)?;
            Ok(bytes)
        })
        .await
    }

    async fn write_file(&self, path: &str, bytes: &[u8]) -> Result<()> {
        let full = self.file_path(path)?;
        let bytes = bytes.to_vec();
        blocking(path, move || replace(&full, &bytes)).await
    }

    async fn append_file(&self, path: &str, bytes: &[u8]) -> Result<()> {
        let full = self.file_path(path)?;
        let bytes = bytes.to_vec();
        blocking(path, move || {
            let open = || OpenOptions::new().append(true).create(true).mode(0o600).open(&full);
            let mut file = match open() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    make_folder(folder_of(&full))?;
                    open()?
                }
                opened => opened?,
            };
            file.write_all(&bytes)
        })
        .await
    }

    async fn sync(&self, path: &str) -> Result<()> {
        let full = self.file_path(path)?;
        blocking(path, move || File::open(full)?.sync_data()).await
    }

    async fn truncate(&self, path: &str, length: u64) -> Result<()> {
        let full = self.file_path(path)?;
        blocking(path, move || {
            let file = OpenOptions::new().write(true).open(full)?;
            if file.metadata()?.len() > length { file.set_len(length) } else { Ok(()) }
        })
        .await
    }

    async fn stat(&self, path: &str) -> Result<Stat> {
        let full = self.path(path)?;
        blocking(path, move || {
            let metadata = fs::metadata(full)?;
            let kind = kind_of(metadata.file_type());
            let size = if kind == Kind::Folder { 0 } else { metadata.len() };
            Ok(Stat { kind, size, modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH) })
        })
        .await
    }

    async fn mkdir(&self, path: &str) -> Result<()> {
        let full = self.path(path)?;
        blocking(path, move || make_folder(&full)).await
    }

    async fn readdir_with_types(&self, path: &str) -> Result<Vec<DirEntry>> {
        let full = self.path(path)?;
        blocking(path, move || {
            let mut entries = Vec::new();
            for entry in fs::read_dir(full)? {
                let entry = entry?;
                // What is gone since, or leads nowhere, is not there.
                let Ok(metadata) = fs::metadata(entry.path()) else { continue };
                let Ok(name) = entry.file_name().into_string() else { continue };
                entries.push(DirEntry { name, kind: kind_of(metadata.file_type()) });
            }
            entries.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(entries)
        })
        .await
    }

    async fn rm(&self, path: &str, what: Removal) -> Result<()> {
        let full = self.file_path(path)?;
        blocking(path, move || {
            let is_folder = fs::symlink_metadata(&full)?.is_dir();
            match (is_folder, what) {
                (false, Removal::One | Removal::Everything) => fs::remove_file(full),
                (true, Removal::One) => fs::remove_dir(full),
                (true, Removal::Everything) => fs::remove_dir_all(full),
            }
        })
        .await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (source, target) = (self.file_path(from)?, self.file_path(to)?);
        blocking(from, move || {
            fs::rename(source, &target)?;
            sync_folder(folder_of(&target))
        })
        .await
    }
}

/// Replaces a file by way of a temporary one beside it.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    /// No two writes of this process share a temporary file, whatever they write.
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let folder = folder_of(path);
    make_folder(folder)?;
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let temporary = folder.join(format!(".{name}.{}-{count}.tmp", std::process::id()));
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        // The write's own error is the one to tell.
        fs::remove_file(&temporary).ok();
    }
    written?;
    sync_folder(folder)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// A name is on the disk when its folder is.
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn kind_of(kind: fs::FileType) -> Kind {
    match (kind.is_file(), kind.is_dir()) {
        (true, _) => Kind::File,
        (_, true) => Kind::Folder,
        (false, false) => Kind::Other,
    }
}
