//! Watching files and folders.
//!
//! A [`Watcher`] is one for the whole process, since the system has few instances to give; its [`WatchReader`] is a future
//! that has to run somewhere. Each [`Watch`] has a box in which what was seen is coalesced as it arrives, bounded by
//! the number of paths. Whoever asks a watch for the next notice does its work: gathers for a moment, looks at what is
//! there, watches new folders. So a watch that nobody asks costs its box and nothing else, and a slow disk costs only
//! the watch that is on it.
//!
//! What is told is what happened, added up: a file that came and went within one notice is not told, one that was
//! removed and made again has changed. Without a memory of all names some things are told more than once, or bigger
//! than they were, never smaller: a file that another one was moved over counts as added (the watched file itself as
//! changed). A folder that goes is told once, for all that was in it.

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

/// Whether this system can watch folders: Linux can. Elsewhere every watch fails with [`WatchError::Start`].
pub const fn can_watch() -> bool {
    cfg!(target_os = "linux")
}

/// What to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchRequest {
    /// A file, or a folder with what is directly in it.
    pub path: PathBuf,
    /// Also everything below the folder. Links are not followed.
    pub recursive: bool,
    /// Glob patterns or paths, relative to `path`, of what is told; without any, everything is. One that names a
    /// folder stands for all that is in it. `*` stays within a folder, `**` does not.
    pub includes: Vec<String>,
    /// What is not told, likewise. Folders of which nothing is told are not watched.
    pub excludes: Vec<String>,
}

/// What a watch has to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// By path.
    Changes(Vec<PathChange>),
    /// More happened than can be told: look at everything again. The watch goes on.
    Overflow,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathChange {
    /// Below the path that was asked for, also where that leads through links.
    pub path: PathBuf,
    pub kind: PathChangeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathChangeKind {
    Added,
    Changed,
    Deleted,
}

/// The bounds of every watch. What happens beyond each is said beside it.
#[derive(Clone, Copy, Debug)]
pub struct WatchLimits {
    /// Folders of one watch; with more it is refused, or ends.
    pub folders: usize,
    /// Changes that wait to be told, and those of one notice; with more there is an overflow.
    pub changes: usize,
    /// Patterns of one watch; with more it is refused.
    pub patterns: usize,
    /// How long changes are gathered before they are told.
    pub debounce: Duration,
}

impl Default for WatchLimits {
    fn default() -> Self {
        Self { folders: 8_192, changes: 4_096, patterns: 256, debounce: Duration::from_millis(100) }
    }
}

/// Why something is not watched, or not any longer.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{pattern} is no pattern: {reason}")]
    BadPattern { pattern: String, reason: String },
    #[error("a watch may have {limit} patterns, not {patterns}: leave some out")]
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

/// Watches for whoever asks. Clones are the same watcher.
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

    /// Begins to watch: what happens from now on is seen. What the policy does not show is never told. The policy is
    /// that of this moment: whoever narrows it later drops the watches that it no longer allows.
    pub async fn watch(&self, policy: &Policy, request: WatchRequest) -> Result<Watch, WatchError> {
        let inbox = Arc::new(Inbox::new(self.limits.changes));
        let asked = request.path.clone();
        let (hub, policy, limits, its_inbox) = (Arc::clone(&self.hub), policy.clone(), self.limits, Arc::clone(&inbox));
        let planted = tokio::task::spawn_blocking(move || WatchTree::open(hub, its_inbox, policy, limits, request));
        let tree = planted.await.map_err(|_| WatchError::Stopped)??;
        Ok(Watch {
            inbox,
            asked,
            debounce: self.limits.debounce,
            until: None,
            work: WatchState::Waiting(Box::new(tree)),
        })
    }
}

/// A file or folder that is watched for as long as this is kept.
#[derive(Debug)]
pub struct Watch {
    inbox: Arc<Inbox>,
    asked: PathBuf,
    debounce: Duration,
    /// When what has been gathered is told.
    until: Option<Instant>,
    work: WatchState,
}

/// A tree, back with what it has to tell.
type CollectOutcome = (Box<WatchTree>, Result<Option<WatchEvent>, WatchError>);

/// Where a watch's tree is.
#[derive(Debug)]
enum WatchState {
    Waiting(Box<WatchTree>),
    /// With those who do the blocking work.
    Collecting(JoinHandle<CollectOutcome>),
    Ended,
}

impl Watch {
    /// The path that was asked for.
    pub fn path(&self) -> &Path {
        &self.asked
    }

    /// The next notice. After an error there is none. A call that is dropped loses nothing.
    pub async fn next(&mut self) -> Option<Result<WatchEvent, WatchError>> {
        loop {
            match (&mut self.work, self.until) {
                (WatchState::Ended, _) => return None,
                (WatchState::Collecting(work), _) => {
                    let (tree, told) = match work.await {
                        Ok(done) => done,
                        Err(_) => {
                            self.work = WatchState::Ended;
                            return Some(Err(WatchError::Stopped));
                        }
                    };
                    match told {
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
                        let told = tree.tell(gathered);
                        (tree, told)
                    }));
                }
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // A tree that is away ends when it comes back to nobody.
        if let WatchState::Waiting(tree) = std::mem::replace(&mut self.work, WatchState::Ended) {
            put_away(tree);
        }
    }
}

/// Ends a tree where its many calls to the system keep nobody.
fn put_away(tree: Box<WatchTree>) {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(move || drop(tree))),
        Err(_) => drop(tree),
    }
}
