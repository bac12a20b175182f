//! A store in memory in which copies of logs, and all changes, can be held up at every step.

use std::sync::Arc;

use async_trait::async_trait;
use grove_fs::{Backend, Conventions, DirEntry, FileLines, MemoryFs, Removal, Result, SessionFs, Stat};
use tokio::sync::Semaphore;

/// The steps that a copy may still do. Unlimited at first.
#[derive(Clone, Debug)]
pub(crate) struct Gate(Arc<Semaphore>);

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)))
    }
}

impl Gate {
    /// Lets so many steps through and no more.
    pub(crate) fn close_behind(&self, steps: usize) {
        self.0.forget_permits(Semaphore::MAX_PERMITS);
        self.0.add_permits(steps);
    }

    pub(crate) fn open(&self) {
        self.0.add_permits(1_000);
    }

    async fn pass(&self, path: &str) {
        if path.ends_with(".copy") {
            self.step().await;
        }
    }

    pub(crate) async fn step(&self) {
        self.0.acquire().await.unwrap().forget();
    }
}

#[derive(Debug)]
pub(crate) struct GatedFs {
    pub(crate) files: MemoryFs,
    pub(crate) gate: Gate,
    /// Everything that changes the store passes this one.
    pub(crate) changes: Gate,
}

#[async_trait]
impl SessionFs for GatedFs {
    fn backend(&self) -> Backend {
        self.files.backend()
    }

    fn conventions(&self) -> Conventions {
        self.files.conventions()
    }

    fn location(&self, path: &str) -> Result<String> {
        self.files.location(path)
    }

    fn lock_key(&self, path: &str) -> Result<String> {
        self.files.lock_key(path)
    }

    fn tmpdir(&self) -> Result<Arc<dyn SessionFs>> {
        self.files.tmpdir()
    }

    fn without_links(&self) -> Arc<dyn SessionFs> {
        Arc::new(Self { files: self.files.clone(), gate: self.gate.clone(), changes: self.changes.clone() })
    }

    async fn read_lines(&self, path: &str, longest: usize) -> Result<FileLines> {
        self.files.read_lines(path, longest).await
    }

    async fn read_file(&self, path: &str) -> Result<Vec<u8>> {
        self.files.read_file(path).await
    }

    async fn read_range(&self, path: &str, offset: u64, length: usize) -> Result<Vec<u8>> {
        self.files.read_range(path, offset, length).await
    }

    async fn write_file(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.changes.step().await;
        self.files.write_file(path, bytes).await
    }

    async fn append_file(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.changes.step().await;
        self.gate.pass(path).await;
        if path.ends_with(".copy") {
            // Half of it, and then the rest.
            let (one, other) = bytes.split_at(bytes.len() / 2);
            self.files.append_file(path, one).await?;
            self.gate.pass(path).await;
            return self.files.append_file(path, other).await;
        }
        self.files.append_file(path, bytes).await
    }

    async fn sync(&self, path: &str) -> Result<()> {
        self.gate.pass(path).await;
        self.files.sync(path).await
    }

    async fn truncate(&self, path: &str, length: u64) -> Result<()> {
        self.changes.step().await;
        self.files.truncate(path, length).await
    }

    async fn stat(&self, path: &str) -> Result<Stat> {
        self.files.stat(path).await
    }

    async fn mkdir(&self, path: &str) -> Result<()> {
        self.changes.step().await;
        self.files.mkdir(path).await
    }

    async fn readdir_with_types(&self, path: &str) -> Result<Vec<DirEntry>> {
        self.files.readdir_with_types(path).await
    }

    async fn rm(&self, path: &str, what: Removal) -> Result<()> {
        self.changes.step().await;
        self.files.rm(path, what).await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.changes.step().await;
        self.gate.pass(from).await;
        self.files.rename(from, to).await
    }
}
