//! The store for output that is too large for an agent.

use std::fmt::Debug;
use std::path::Path;

use async_trait::async_trait;

/// Stores output that is too large for an agent where the agent can search it. The agent backend does not know the
/// place.
#[async_trait]
pub trait SpillStore: Debug + Send + Sync + 'static {
    /// Begins to store the output of one command or tool.
    fn begin(&self) -> Box<dyn SpillWriter>;

    /// The first bytes of a file, at most so many, if the agent was referred to it: spilled output, or a user's paste.
    /// `None` for any other file; the error says why it cannot be read.
    async fn read(&self, path: &Path, most: usize) -> Option<Result<Vec<u8>, String>>;
}

/// Stores output as it comes.
#[async_trait]
pub trait SpillWriter: Debug + Send + 'static {
    /// Stores more output. This does not fail: the command has run, even if its output cannot be stored.
    async fn write(&mut self, bytes: &[u8]);

    /// The text that the agent gets in place of the output so far: its beginning, its size, the file and how to search
    /// it.
    /// `None` as long as it is not too large.
    async fn notice(&mut self) -> Option<String>;
}

/// Stores nothing, so nothing is too large.
#[async_trait]
impl SpillStore for () {
    fn begin(&self) -> Box<dyn SpillWriter> {
        Box::new(())
    }

    async fn read(&self, _path: &Path, _most: usize) -> Option<Result<Vec<u8>, String>> {
        None
    }
}

#[async_trait]
impl SpillWriter for () {
    async fn write(&mut self, _bytes: &[u8]) {}

    async fn notice(&mut self) -> Option<String> {
        None
    }
}
