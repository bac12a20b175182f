//! The one inotify instance that all watches share: a user has only 128 of them by default.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::inotify::{self, CreateFlags, Event, ReadFlags, WatchFlags};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;

use super::WatchError;
use super::inbox::{Inbox, PathEvent};

/// The kernel's id of a watched folder: the folder itself, even if it is renamed.
pub(super) type Descriptor = i32;

/// A watch's interest in a folder.
#[derive(Debug)]
pub(super) struct FolderWatch {
    pub(super) inbox: Arc<Inbox>,
    /// The folder, under this watch's name of it.
    pub(super) folder: PathBuf,
    /// The only name in it that matters, if not all do.
    pub(super) only: Option<OsString>,
}

/// The watches' side of the hub.
#[derive(Debug)]
pub(super) struct WatchHub {
    shared: Arc<HubState>,
    /// Held while folders are subscribed and unsubscribed: otherwise the last to leave a folder would remove it from
    /// the next one. The reader never waits for it.
    changing: Mutex<()>,
    /// Dropped with the hub, which ends the reader.
    _alive: oneshot::Sender<()>,
}

#[derive(Debug)]
struct HubState {
    inotify: Arc<OwnedFd>,
    table: Mutex<FolderTable>,
}

#[derive(Debug, Default)]
struct FolderTable {
    folder_watches: HashMap<Descriptor, Vec<FolderWatch>>,
    ended: bool,
}

/// Reads the system's events for all watches. It must run for any of them to see anything.
#[derive(Debug)]
pub struct WatchReader {
    shared: Arc<HubState>,
    hub: oneshot::Receiver<()>,
}

/// Everything that changes the content of a folder. Never through links.
const EVENTS: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::EXCL_UNLINK)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::DONT_FOLLOW);

const BUFFER_BYTES: usize = 16 << 10;

impl WatchHub {
    pub(super) fn start() -> Result<(Self, WatchReader), WatchError> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(|errno| match errno {
            Errno::MFILE => WatchError::TooManyInstances,
            errno => WatchError::Start(errno.into()),
        })?;
        let shared = Arc::new(HubState { inotify: Arc::new(inotify), table: Mutex::default() });
        let (alive, hub) = oneshot::channel();
        let reader = WatchReader { shared: Arc::clone(&shared), hub };
        Ok((Self { shared, changing: Mutex::default(), _alive: alive }, reader))
    }

    /// Subscribes to a folder. An error of the system is the inner error.
    pub(super) fn subscribe(&self, folder_watch: FolderWatch) -> Result<Result<Descriptor, io::Error>, WatchError> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let descriptor = match inotify::add_watch(&self.shared.inotify, &folder_watch.folder, EVENTS) {
            Ok(descriptor) => descriptor,
            Err(Errno::NOSPC) => return Err(WatchError::SystemLimit),
            Err(errno) => return Ok(Err(errno.into())),
        };
        let mut table = self.shared.table();
        if table.ended {
            return Err(WatchError::Stopped);
        }
        let folder_watches = table.folder_watches.entry(descriptor).or_default();
        if !folder_watches.iter().any(|taken| taken.is(&folder_watch.inbox, &folder_watch.folder)) {
            folder_watches.push(folder_watch);
        }
        Ok(Ok(descriptor))
    }

    /// Unsubscribes from a folder. With the last subscription the system no longer watches it.
    pub(super) fn unsubscribe(&self, descriptor: Descriptor, inbox: &Arc<Inbox>, folder: &Path) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut table = self.shared.table();
        let Some(folder_watches) = table.folder_watches.get_mut(&descriptor) else { return };
        folder_watches.retain(|folder_watch| !folder_watch.is(inbox, folder));
        if folder_watches.is_empty() {
            table.folder_watches.remove(&descriptor);
            drop(table);
            // It fails for a deleted folder, which is no longer watched either.
            inotify::remove_watch(&self.shared.inotify, descriptor).ok();
        }
    }
}

impl FolderWatch {
    fn is(&self, inbox: &Arc<Inbox>, folder: &Path) -> bool {
        Arc::ptr_eq(&self.inbox, inbox) && self.folder == folder
    }
}

impl HubState {
    // Nothing that can panic leaves it half-changed, so a poisoned lock still guards complete data.
    fn table(&self) -> MutexGuard<'_, FolderTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn dispatch(&self, event: &Event<'_>) {
        let flags = event.events();
        let mut table = self.table();
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            for folder_watch in table.folder_watches.values().flatten() {
                folder_watch.inbox.overflow();
            }
            return;
        }
        if flags.contains(ReadFlags::IGNORED) {
            table.folder_watches.remove(&event.wd());
            return;
        }
        let path_event = match flags {
            flags if flags.contains(ReadFlags::CREATE) => PathEvent::Created,
            flags if flags.contains(ReadFlags::MOVED_TO) => PathEvent::Arrived,
            flags if flags.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM) => PathEvent::Deleted,
            _ => PathEvent::Changed,
        };
        // An event without a name is about the folder itself: its parent folder reports that.
        let Some(name) = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes())) else { return };
        for folder_watch in table.folder_watches.get(&event.wd()).into_iter().flatten() {
            if folder_watch.only.as_ref().is_none_or(|only| only == name) {
                folder_watch.inbox.record(folder_watch.folder.join(name), path_event);
            }
        }
    }
}

impl WatchReader {
    /// Runs until the [`Watcher`](super::Watcher) and all its watches are dropped.
    pub async fn run(mut self) {
        // The constructors that replace this one are unsafe, since they accept any descriptor at all. This one is
        // owned, and open as long as it is shared.
        #[allow(deprecated, reason = "sound for a descriptor that is owned, and there is no other without `unsafe`")]
        let registered = AsyncFd::with_interest(Arc::clone(&self.shared.inotify), Interest::READABLE);
        let Ok(inotify) = registered else { return };
        let mut buffer = vec![MaybeUninit::uninit(); BUFFER_BYTES];
        loop {
            let mut ready = tokio::select! {
                ready = inotify.readable() => match ready {
                    Ok(ready) => ready,
                    Err(_) => return,
                },
                _ = &mut self.hub => return,
            };
            let mut events = inotify::Reader::new(inotify.get_ref(), &mut buffer);
            loop {
                match events.next() {
                    Ok(event) => self.shared.dispatch(&event),
                    Err(Errno::AGAIN) => {
                        ready.clear_ready();
                        break;
                    }
                    Err(Errno::INTR) => continue,
                    Err(_) => return,
                }
                if events.is_buffer_empty() {
                    break;
                }
            }
            // A flood of events must not block the thread.
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for WatchReader {
    fn drop(&mut self) {
        let mut table = self.shared.table();
        table.ended = true;
        for folder_watch in table.folder_watches.values().flatten() {
            folder_watch.inbox.end();
        }
    }
}
