//! A store in memory whose every step takes a moment of the test's clock.
//!
//! Tasks that would otherwise be ready at the same moment, in whatever order, then follow one another.
//!
//! Trees are read on blocking threads. Paused time stands still while such a thread works, so a step there cannot take
//! time; it waits until the runtime has nothing else to do instead.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

use async_trait::async_trait;
use grove_fs::{Backend, Conventions, DirEntry, FileLines, MemoryFs, Removal, Result, SessionFs, Stat};

/// The thread of a runtime, and whether it has nothing to do.
#[derive(Debug)]
struct RuntimeThread {
    id: ThreadId,
    is_idle: Mutex<bool>,
    changed: Condvar,
}

thread_local! {
    static RUNTIME: RefCell<Option<Arc<RuntimeThread>>> = const { RefCell::new(None) };
}

/// Runs a test on a runtime of this thread, whose time is paused.
pub(crate) fn run_paused(test: impl Future<Output = ()>) {
    let id = thread::current().id();
    let runtime = Arc::new(RuntimeThread { id, is_idle: Mutex::new(false), changed: Condvar::new() });
    RUNTIME.set(Some(runtime.clone()));
    let (parked, unparked) = (runtime.clone(), runtime);
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().start_paused(true);
    builder.on_thread_park(move || parked.set_idle(true)).on_thread_unpark(move || unparked.set_idle(false));
    builder.build().unwrap().block_on(test);
}

impl RuntimeThread {
    fn set_idle(&self, is_idle: bool) {
        *self.is_idle.lock().unwrap() = is_idle;
        self.changed.notify_all();
    }

    /// Blocks until the runtime has nothing to do.
    fn wait_until_idle(&self) {
        drop(self.changed.wait_while(self.is_idle.lock().unwrap(), |is_idle| !*is_idle).unwrap());
    }
}

#[derive(Debug)]
pub(crate) struct TimedFs {
    files: MemoryFs,
    runtime: Arc<RuntimeThread>,
}

impl TimedFs {
    /// A store that the runtime of this thread uses.
    pub(crate) fn new(files: MemoryFs) -> Self {
        let runtime = RUNTIME.with_borrow(|runtime| runtime.clone().expect("in run_paused"));
        Self { files, runtime }
    }

    async fn moment(&self) {
        match thread::current().id() == self.runtime.id {
            true => tokio::time::sleep(Duration::from_millis(1)).await,
            false => self.runtime.wait_until_idle(),
        }
    }
}

#[async_trait]
impl SessionFs for TimedFs {
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
        Arc::new(Self { files: self.files.clone(), runtime: self.runtime.clone() })
    }

    async fn read_lines(&self, path: &str, longest: usize) -> Result<FileLines> {
        self.moment().await;
        self.files.read_lines(path, longest).await
    }

    async fn read_file(&self, path: &str) -> Result<Vec<u8>> {
        self.moment().await;
        self.files.read_file(path).await
    }

    async fn read_range(&self, path: &str, offset: u64, length: usize) -> Result<Vec<u8>> {
        self.moment().await;
        self.files.read_range(path, offset, length).await
    }

    async fn write_file(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.moment().await;
        self.files.write_file(path, bytes).await
    }

    async fn append_file(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.moment().await;
        self.files.append_file(path, bytes).await
    }

    async fn sync(&self, path: &str) -> Result<()> {
        self.moment().await;
        self.files.sync(path).await
    }

    async fn truncate(&self, path: &str, length: u64) -> Result<()> {
        self.moment().await;
        self.files.truncate(path, length).await
    }

    /// Files in memory have the times of the machine: here all have one.
    async fn stat(&self, path: &str) -> Result<Stat> {
        self.moment().await;
        let time = std::time::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        Ok(Stat { modified: time, created: time, ..self.files.stat(path).await? })
    }

    async fn mkdir(&self, path: &str) -> Result<()> {
        self.moment().await;
        self.files.mkdir(path).await
    }

    async fn readdir_with_types(&self, path: &str) -> Result<Vec<DirEntry>> {
        self.moment().await;
        self.files.readdir_with_types(path).await
    }

    async fn rm(&self, path: &str, what: Removal) -> Result<()> {
        self.moment().await;
        self.files.rm(path, what).await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.moment().await;
        self.files.rename(from, to).await
    }
}
