//! Watching files and folders.
//!
//! There is one [`Watcher`] for the whole process, since the system limits the instances; its [`WatchReader`] is a
//! future that the caller runs. Each [`Watch`] has an inbox in which events are coalesced as they arrive, bounded by
//! the number of paths. [`Watch::next`] does the work of its watch: it gathers for a moment, examines the paths, and
//! watches new folders. So a watch that nobody reads costs only its inbox, and a slow disk costs only the watch that is
//! on it.
//!
//! A notice is the sum of the events: a file that was created and deleted within one notice is not reported, one that
//! was deleted and created again has changed. Without a memory of all names some changes are reported more than once,
//! or larger than they were, never smaller: a file that another one was moved over counts as added (the watched file
//! itself as changed). A deleted folder is reported once, for everything in it.

mod filter;
#[cfg_attr(not(target_os = "linux"), path = "unsupported.rs")]
mod hub;
mod inbox;
mod tree;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use self::hub::WatchHub;
pub use self::hub::WatchReader;
use self::inbox::Inbox;
use self::tree::WatchTree;
use crate::{FileError, Policy};

/// Returns whether this system can watch folders: Linux can. Elsewhere every watch fails with [`WatchError::Start`].
pub const fn can_watch() -> bool {
    cfg!(target_os = "linux")
}

/// The parameters of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchRequest {
    /// A file, or a folder with its direct entries.
    pub path: PathBuf,
    /// Also everything below the folder. Links are not followed.
    pub recursive: bool,
    /// Glob patterns or paths, relative to `path`, of the reported paths; without any, all are. A pattern that names a
    /// folder matches everything in it. `*` stays within a folder, `**` does not.
    pub includes: Vec<String>,
    /// Patterns of paths that are not reported. Folders that are completely excluded are not watched.
    pub excludes: Vec<String>,
}

/// A notice of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// Changes, by path.
    Changes(Vec<PathChange>),
    /// More changes than can be reported: read everything again. The watch goes on.
    Overflow,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathChange {
    /// Below the requested path, even if that leads through links.
    pub path: PathBuf,
    pub kind: PathChangeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathChangeKind {
    Added,
    Changed,
    Deleted,
}

/// The limits of every watch, each with the consequence of exceeding it.
#[derive(Clone, Copy, Debug)]
pub struct WatchLimits {
    /// Folders of one watch; with more it is refused, or ends.
    pub folders: usize,
    /// Changes that wait to be reported, and those of one notice; with more there is an overflow.
    pub changes: usize,
    /// Patterns of one watch; with more it is refused.
    pub patterns: usize,
    /// The time for which changes are gathered before they are reported.
    pub debounce: Duration,
}

impl Default for WatchLimits {
    fn default() -> Self {
        Self { folders: 8_192, changes: 4_096, patterns: 256, debounce: Duration::from_millis(100) }
    }
}

/// The reason why a path is not watched, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{pattern} is not a valid pattern: {reason}")]
    BadPattern { pattern: String, reason: String },
    #[error("a watch has {patterns} patterns, and the limit is {limit}: leave some out")]
    TooManyPatterns { patterns: usize, limit: usize },
    #[error(
        "{} has more than {limit} folders below it: exclude some of them, or watch a part of it",
        .path.display()
    )]
    TooManyFolders { path: PathBuf, limit: usize },
    #[error("the system watches no more folders for this user: raise fs.inotify.max_user_watches")]
    SystemLimit,
    #[error("the system gives this user no more watchers: raise fs.inotify.max_user_instances")]
    TooManyInstances,
    #[error("files cannot be watched on this system: {0}")]
    Start(io::Error),
    #[error("files are no longer watched: the host is stopping")]
    Stopped,
}

/// Creates watches. Clones share the watcher.
#[derive(Clone, Debug)]
pub struct Watcher {
    hub: Arc<WatchHub>,
    limits: WatchLimits,
}

impl Watcher {
    /// A watcher, and the future ([`WatchReader::run`]) that must run for its watches to see anything.
    pub fn start(limits: WatchLimits) -> Result<(Self, WatchReader), WatchError> {
        let (hub, reader) = WatchHub::start()?;
        Ok((Self { hub: Arc::new(hub), limits }, reader))
    }

    /// Starts a watch of all changes from now on. Paths that the policy hides are never reported. The policy is the
    /// present one: code that narrows it later drops the watches that it no longer allows.
    pub async fn watch(&self, policy: &Policy, request: WatchRequest) -> Result<Watch, WatchError> {
        let inbox = Arc::new(Inbox::new(self.limits.changes));
        let path = request.path.clone();
        let (hub, policy, limits, its_inbox) = (Arc::clone(&self.hub), policy.clone(), self.limits, Arc::clone(&inbox));
        let planted = tokio::task::spawn_blocking(move || WatchTree::open(hub, its_inbox, policy, limits, request));
        let tree = planted.await.map_err(|_| WatchError::Stopped)??;
        Ok(Watch {
            inbox,
            path,
            debounce: self.limits.debounce,
            until: None,
            work: WatchState::Waiting(Box::new(tree)),
        })
    }
}

/// A file or folder that is watched as long as this is kept.
#[derive(Debug)]
pub struct Watch {
    inbox: Arc<Inbox>,
    path: PathBuf,
    debounce: Duration,
    /// The time at which the gathered changes are reported.
    until: Option<Instant>,
    work: WatchState,
}

/// A tree, returned with its notice.
type CollectOutcome = (Box<WatchTree>, Result<Option<WatchEvent>, WatchError>);

/// The location of a watch's tree.
#[derive(Debug)]
enum WatchState {
    Waiting(Box<WatchTree>),
    /// In a blocking task.
    Collecting(JoinHandle<CollectOutcome>),
    Ended,
}

impl Watch {
    /// The requested path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next notice. After an error there is none. Dropping the call loses nothing.
    pub async fn next(&mut self) -> Option<Result<WatchEvent, WatchError>> {
        loop {
            match (&mut self.work, self.until) {
                (WatchState::Ended, _) => return None,
                (WatchState::Collecting(work), _) => {
                    let (tree, result) = match work.await {
                        Ok(done) => done,
                        Err(_) => {
                            self.work = WatchState::Ended;
                            return Some(Err(WatchError::Stopped));
                        }
                    };
                    match result {
                        Ok(notice) => {
                            self.work = WatchState::Waiting(tree);
                            if let Some(notice) = notice {
                                return Some(Ok(notice));
                            }
                        }
                        Err(error) => {
                            self.work = WatchState::Ended;
                            put_away(tree);
                            return Some(Err(error));
                        }
                    }
                }
                (WatchState::Waiting(_), None) => {
                    self.inbox.wait().await;
                    self.until = Some(Instant::now() + self.debounce);
                }
                (WatchState::Waiting(_), Some(until)) => {
                    tokio::time::sleep_until(until).await;
                    self.until = None;
                    let WatchState::Waiting(mut tree) = std::mem::replace(&mut self.work, WatchState::Ended) else {
                        return None;
                    };
                    let gathered = self.inbox.take();
                    if gathered.ended {
                        put_away(tree);
                        return Some(Err(WatchError::Stopped));
                    }
                    self.work = WatchState::Collecting(tokio::task::spawn_blocking(move || {
                        let result = tree.tell(gathered);
                        (tree, result)
                    }));
                }
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // A tree in a blocking task ends when that completes.
        if let WatchState::Waiting(tree) = std::mem::replace(&mut self.work, WatchState::Ended) {
            put_away(tree);
        }
    }
}

/// Drops a tree in a blocking task, since that makes many system calls.
fn put_away(tree: Box<WatchTree>) {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(move || drop(tree))),
        Err(_) => drop(tree),
    }
}
