//! A store whose calls are counted and timed.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use grove_fs::workspace::database::Database;
use grove_fs::{Backend, Conventions, DirEntry, FileLines, FsError, Removal, Result, SessionFs, Stat};
use grove_metrics::{Metrics, SlowLabel, StoreCallLabel};

/// A store that counts its calls. Slow ones are logged with the file's path in the store.
#[derive(Clone, Debug)]
pub struct MeasuredFs {
    store: Arc<dyn SessionFs>,
    metrics: Arc<Metrics>,
}

impl MeasuredFs {
    /// The same store, counting in these metrics.
    pub fn new(store: Arc<dyn SessionFs>, metrics: Arc<Metrics>) -> Self {
        Self { store, metrics }
    }

    fn same(&self, store: Arc<dyn SessionFs>) -> Arc<dyn SessionFs> {
        Arc::new(Self::new(store, self.metrics.clone()))
    }

    async fn measure<T>(&self, call: StoreCallLabel, path: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
        let started = Instant::now();
        let result = work.await;
        let took = started.elapsed();
        self.metrics.store_calls.of(call).increment();
        self.metrics.store_seconds.observe(took);
        if let Err(error) = &result
            && !matches!(error, FsError::NotFound { .. })
        {
            self.metrics.store_errors.of(call).increment();
        }
        if self.metrics.is_slow(SlowLabel::StoreCall, took) {
            let is_ok = result.is_ok();
            tracing::warn!(?call, ?path, ms = took.as_millis() as u64, is_ok, "slow: a call of a store");
        }
        result
    }
}

#[async_trait]
impl SessionFs for MeasuredFs {
    fn backend(&self) -> Backend {
        self.store.backend()
    }

    fn conventions(&self) -> Conventions {
        self.store.conventions()
    }

    fn location(&self, path: &str) -> Result<String> {
        self.store.location(path)
    }

    fn lock_key(&self, path: &str) -> Result<String> {
        self.store.lock_key(path)
    }

    fn join(&self, parts: &[&str]) -> String {
        self.store.join(parts)
    }

    fn session_state_path(&self) -> Option<String> {
        self.store.session_state_path()
    }

    fn initial_cwd(&self) -> Option<String> {
        self.store.initial_cwd()
    }

    fn tmpdir(&self) -> Result<Arc<dyn SessionFs>> {
        Ok(self.same(self.store.tmpdir()?))
    }

    async fn leftover_tmpdirs(&self) -> Result<Vec<Arc<dyn SessionFs>>> {
        let found = self.store.leftover_tmpdirs().await?;
        Ok(found.into_iter().map(|store| self.same(store)).collect())
    }

    fn session_store(&self, session: &str) -> Option<Arc<dyn SessionFs>> {
        self.store.session_store(session).map(|store| self.same(store))
    }

    fn database(&self, folder: &str) -> Option<Arc<dyn Database>> {
        self.store.database(folder)
    }

    fn without_links(&self) -> Arc<dyn SessionFs> {
        self.same(self.store.without_links())
    }

    async fn read_file(&self, path: &str) -> Result<Vec<u8>> {
        self.measure(StoreCallLabel::Read, path, self.store.read_file(path)).await
    }

    async fn read_range(&self, path: &str, offset: u64, length: usize) -> Result<Vec<u8>> {
        self.measure(StoreCallLabel::Read, path, self.store.read_range(path, offset, length)).await
    }

    async fn read_lines(&self, path: &str, longest: usize) -> Result<FileLines> {
        self.measure(StoreCallLabel::Read, path, self.store.read_lines(path, longest)).await
    }

    async fn write_file(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.measure(StoreCallLabel::Write, path, self.store.write_file(path, bytes)).await
    }

    async fn append_file(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.measure(StoreCallLabel::Append, path, self.store.append_file(path, bytes)).await
    }

    async fn sync(&self, path: &str) -> Result<()> {
        self.measure(StoreCallLabel::Sync, path, self.store.sync(path)).await
    }

    async fn truncate(&self, path: &str, length: u64) -> Result<()> {
        self.measure(StoreCallLabel::Change, path, self.store.truncate(path, length)).await
    }

    async fn exists(&self, path: &str) -> Result<bool> {
        self.measure(StoreCallLabel::List, path, self.store.exists(path)).await
    }

    async fn stat(&self, path: &str) -> Result<Stat> {
        self.measure(StoreCallLabel::List, path, self.store.stat(path)).await
    }

    async fn mkdir(&self, path: &str) -> Result<()> {
        self.measure(StoreCallLabel::Change, path, self.store.mkdir(path)).await
    }

    async fn readdir_with_types(&self, path: &str) -> Result<Vec<DirEntry>> {
        self.measure(StoreCallLabel::List, path, self.store.readdir_with_types(path)).await
    }

    async fn rm(&self, path: &str, what: Removal) -> Result<()> {
        self.measure(StoreCallLabel::Change, path, self.store.rm(path, what)).await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.measure(StoreCallLabel::Change, from, self.store.rename(from, to)).await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use grove_fs::MemoryFs;

    use super::*;

    #[tokio::test]
    async fn a_slow_call_is_counted_as_one() {
        let metrics = Arc::new(Metrics::default());
        metrics.slow_threshold.set(Duration::from_millis(1));
        let store = MeasuredFs::new(Arc::new(MemoryFs::default()), metrics.clone());
        let slow = async {
            std::thread::sleep(Duration::from_millis(5));
            Ok(())
        };
        store.measure(StoreCallLabel::Read, "a", slow).await.unwrap();
        assert_eq!(metrics.slow_operations.of(SlowLabel::StoreCall).get(), 1);
    }

    #[tokio::test]
    async fn calls_are_counted_by_kind_and_a_missing_file_is_no_failure() {
        let metrics = Arc::new(Metrics::default());
        metrics.slow_threshold.set(Duration::from_secs(60));
        let store = MeasuredFs::new(Arc::new(MemoryFs::default()), metrics.clone());
        store.write_text("a/b", "text").await.unwrap();
        assert_eq!(store.without_links().read_text("a/b").await.unwrap(), "text");
        store.read_file("missing").await.unwrap_err();
        store.read_file("a").await.unwrap_err();
        let calls = |call| (metrics.store_calls.of(call).get(), metrics.store_errors.of(call).get());
        assert_eq!(calls(StoreCallLabel::Write), (1, 0));
        assert_eq!(calls(StoreCallLabel::Read), (3, 1), "a folder is no file");
        assert_eq!(metrics.store_seconds.count(), 4);
    }
}
