//! The stand-in for systems without inotify: every watch fails with an error.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::WatchError;
use super::inbox::Inbox;

pub(super) type Descriptor = i32;

#[derive(Debug)]
#[allow(dead_code, reason = "nobody ever sits")]
pub(super) struct FolderWatch {
    pub(super) inbox: Arc<Inbox>,
    pub(super) folder: PathBuf,
    pub(super) only: Option<OsString>,
}

#[derive(Debug)]
pub(super) struct WatchHub(Infallible);

/// Reads the system's events for all watches. There are none on this system.
#[derive(Debug)]
pub struct WatchReader(Infallible);

impl WatchHub {
    pub(super) fn start() -> Result<(Self, WatchReader), WatchError> {
        Err(WatchError::Start(io::ErrorKind::Unsupported.into()))
    }

    pub(super) fn subscribe(&self, _seat: FolderWatch) -> Result<Result<Descriptor, io::Error>, WatchError> {
        match self.0 {}
    }

    pub(super) fn unsubscribe(&self, _descriptor: Descriptor, _inbox: &Arc<Inbox>, _folder: &Path) {
        match self.0 {}
    }
}

impl WatchReader {
    /// Runs until the [`Watcher`](super::Watcher) and all its watches are dropped.
    pub async fn run(self) {
        match self.0 {}
    }
}
