//! A log at one moment, for readers beside the session's task.

use std::borrow::Cow;
use std::sync::Arc;

use grove_fs::{FsError, SessionFs};
use grove_tree::{EntryNo, LogError, LogIndex, LogSource, store};
use serde_json::value::RawValue;

/// A log at one moment.
#[derive(Clone, Debug)]
pub struct LogSnapshot {
    pub fs: Arc<dyn SessionFs>,
    pub path: String,
    pub index: Arc<LogIndex>,
}

/// A reader of a log has panicked.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the log could not be read: its reader crashed")]
pub struct LogReaderCrash;

impl LogSnapshot {
    /// Reads the log on a thread where waiting for its bytes holds up nobody.
    pub async fn with<T: Send + 'static>(
        &self,
        look: impl FnOnce(&LogIndex, &LogBytes) -> T + Send + 'static,
    ) -> Result<T, LogReaderCrash> {
        let index = self.index.clone();
        let bytes =
            LogBytes { fs: self.fs.clone(), path: self.path.clone(), runtime: tokio::runtime::Handle::current() };
        tokio::task::spawn_blocking(move || look(&index, &bytes)).await.map_err(|_| LogReaderCrash)
    }

    /// The lines of entries.
    pub async fn lines(&self, entries: &[EntryNo]) -> Result<Vec<Box<RawValue>>, LogError> {
        let lines = store::read_lines(self.fs.as_ref(), &self.path, &self.index, entries).await?;
        Ok(lines.iter().filter_map(|line| raw_line(line)).collect())
    }
}

/// A line as it is; invalid UTF-8 is replaced.
pub fn raw_line(line: &[u8]) -> Option<Box<RawValue>> {
    RawValue::from_string(String::from_utf8_lossy(line).into_owned()).ok()
}

/// A log's bytes, read on demand.
#[derive(Debug)]
pub struct LogBytes {
    fs: Arc<dyn SessionFs>,
    path: String,
    runtime: tokio::runtime::Handle,
}

impl LogSource for LogBytes {
    fn read(&self, offset: u64, length: usize) -> Result<Cow<'_, [u8]>, FsError> {
        self.runtime.block_on(self.fs.read_range(&self.path, offset, length)).map(Cow::Owned)
    }
}
