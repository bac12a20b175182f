//! The host's environment: time, randomness, tasks and storage.
//!
//! Each is an argument, so that a simulation can own it.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use grove_core::Timestamp;
use grove_fs::MemoryFs;
use grove_metrics::Metrics;
use grove_storage::Stores;
use tokio::sync::oneshot;

/// A future for [`Spawn`] to run.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The host's environment.
#[derive(Clone, Debug)]
pub struct Env {
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub spawn: Arc<dyn Spawn>,
    /// The stores of sessions.
    pub stores: Stores,
    /// The numbers that the host counts.
    pub metrics: Arc<Metrics>,
}

impl Env {
    /// The real clock, randomness and tasks of this process, with sessions' folders in memory.
    pub fn in_memory() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            random: Arc::new(SystemRandom),
            spawn: Arc::new(TokioSpawn),
            stores: Stores::new(Arc::new(MemoryFs::default())),
            metrics: Arc::default(),
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

/// Runs tasks concurrently.
pub trait Spawn: Send + Sync + fmt::Debug {
    fn spawn(&self, task: Task);

    /// Runs work that blocks, a look into folders for example, beside the tasks.
    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>);
}

impl dyn Spawn + '_ {
    /// Runs work that blocks and waits for its result.
    pub async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, BlockingWorkPanicked> {
        let (sender, result) = oneshot::channel();
        // The caller may have stopped waiting.
        self.spawn_blocking(Box::new(move || drop(sender.send(work()))));
        result.await.map_err(|_| BlockingWorkPanicked)
    }
}

/// Work that blocks has panicked.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the work panicked: the log of the host says where")]
pub struct BlockingWorkPanicked;

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

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        tokio::task::spawn_blocking(work);
    }
}
