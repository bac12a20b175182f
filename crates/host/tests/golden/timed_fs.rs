//! A store in memory whose every step takes a moment of the test's clock.
//!
//! Tasks that would otherwise be ready at the same moment, in whatever order, then follow one another.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use grove_fs::{Backend, Conventions, DirEntry, FileLines, MemoryFs, Removal, Result, SessionFs, Stat};

#[derive(Debug)]
pub(crate) struct TimedFs(pub(crate) MemoryFs);

async fn moment() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[async_trait]
impl SessionFs for TimedFs {
    fn backend(&self) -> Backend {
        self.0.backend()
    }

    fn conventions(&self) -> Conventions {
        self.0.conventions()
    }

    fn location(&self, path: &str) -> Result<String> {
        self.0.location(path)
    }

    fn lock_key(&self, path: &str) -> Result<String> {
        self.0.lock_key(path)
    }

    fn tmpdir(&self) -> Result<Arc<dyn SessionFs>> {
        self.0.tmpdir()
    }

    fn without_links(&self) -> Arc<dyn SessionFs> {
        Arc::new(Self(self.0.clone()))
    }

    async fn read_lines(&self, path: &str, longest: usize) -> Result<FileLines> {
        moment().await;
        self.0.read_lines(path, longest).await
    }

    async fn read_file(&self, path: &str) -> Result<Vec<u8>> {
        moment().await;
        self.0.read_file(path).await
    }

    async fn read_range(&self, path: &str, offset: u64, length: usize) -> Result<Vec<u8>> {
        moment().await;
        self.0.read_range(path, offset, length).await
    }

    async fn write_file(&self, path: &str, bytes: &[u8]) -> Result<()> {
        moment().await;
        self.0.write_file(path, bytes).await
    }

    async fn append_file(&self, path: &str, bytes: &[u8]) -> Result<()> {
        moment().await;
        self.0.append_file(path, bytes).await
    }

    async fn sync(&self, path: &str) -> Result<()> {
        moment().await;
        self.0.sync(path).await
    }

    async fn truncate(&self, path: &str, length: u64) -> Result<()> {
        moment().await;
        self.0.truncate(path, length).await
    }

    /// Files in memory have the times of the machine: here all have one.
    async fn stat(&self, path: &str) -> Result<Stat> {
        moment().await;
        let time = std::time::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        Ok(Stat { modified: time, created: time, ..self.0.stat(path).await? })
    }

    async fn mkdir(&self, path: &str) -> Result<()> {
        moment().await;
        self.0.mkdir(path).await
    }

    async fn readdir_with_types(&self, path: &str) -> Result<Vec<DirEntry>> {
        moment().await;
        self.0.readdir_with_types(path).await
    }

    async fn rm(&self, path: &str, what: Removal) -> Result<()> {
        moment().await;
        self.0.rm(path, what).await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        moment().await;
        self.0.rename(from, to).await
    }
}
