//! Where output goes that is too large to be given to an agent.

use std::fmt::Debug;
use std::path::Path;

use async_trait::async_trait;

/// Keeps what is too large for an agent to be given, where the agent can search it. Agents do not know where that is.
#[async_trait]
pub trait SpillStore: Debug + Send + Sync + 'static {
    /// A place for the output of one command or tool.
    fn begin(&self) -> Box<dyn SpillWriter>;

    /// The first bytes of a file, at most so many, where it is one that the agent was told of: output that was too large,
    /// or what a person has pasted. `None` where it is another; the error says why it cannot be read.
    async fn read(&self, path: &Path, most: usize) -> Option<Result<Vec<u8>, String>>;
}

/// Takes output as it comes.
#[async_trait]
pub trait SpillWriter: Debug + Send + 'static {
    /// Takes more of it. This does not fail: what was done is done, also where it cannot be kept.
    async fn write(&mut self, bytes: &[u8]);

    /// What the agent is told in place of the output so far: how it begins, how large it is, where all of it lies and how
    /// to search it. `None` as long as it is not too large.
    async fn notice(&mut self) -> Option<String>;
}

/// Keeps nothing, so nothing is too large.
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
