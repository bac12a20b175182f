//! The pending events of one watch: coalesced as they arrive, so its size follows the paths, not the events.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The change of a path since its last report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathEvent {
    /// It did not exist before.
    Created,
    /// It was moved here, perhaps over another file.
    Arrived,
    Changed,
    Deleted,
    /// It is another file or folder now.
    Replaced,
}

impl PathEvent {
    /// Both, one after the other; `None` if the second undoes the first.
    fn then(self, next: PathEvent) -> Option<PathEvent> {
        use PathEvent::{Arrived, Changed, Created, Deleted, Replaced};
        match (self, next) {
            (Created, Deleted) => None,
            (_, Deleted) => Some(Deleted),
            (Changed | Deleted | Replaced, Created | Arrived | Replaced) => Some(Replaced),
            (Created | Arrived | Changed | Deleted | Replaced, Changed)
            | (Created | Arrived, Created | Arrived | Replaced) => Some(self),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct PathEvents {
    /// In the order of their parts: the content of a folder comes right after it.
    pub(super) paths: BTreeMap<PathBuf, PathEvent>,
    /// More events happened than are kept; then no paths are.
    pub(super) overflowed: bool,
    /// No more events will come.
    pub(super) ended: bool,
}

#[derive(Debug)]
pub(super) struct Inbox {
    gathered: Mutex<PathEvents>,
    news: Notify,
    /// The most paths that are kept.
    most: usize,
}

impl Inbox {
    pub(super) fn new(most: usize) -> Self {
        Self { gathered: Mutex::default(), news: Notify::new(), most }
    }

    pub(super) fn record(&self, path: PathBuf, event: PathEvent) {
        let mut gathered = self.gathered();
        if gathered.overflowed {
            return;
        }
        let together = match gathered.paths.get(&path) {
            Some(before) => before.then(event),
            None => Some(event),
        };
        match together {
            Some(event) => gathered.paths.insert(path, event),
            None => gathered.paths.remove(&path),
        };
        if gathered.paths.len() > self.most {
            gathered.paths.clear();
            gathered.overflowed = true;
        }
        self.news.notify_one();
    }

    pub(super) fn overflow(&self) {
        let mut gathered = self.gathered();
        gathered.paths.clear();
        gathered.overflowed = true;
        self.news.notify_one();
    }

    pub(super) fn end(&self) {
        self.gathered().ended = true;
        self.news.notify_one();
    }

    /// Returns when there are events, or when none will ever come.
    pub(super) async fn wait(&self) {
        loop {
            {
                let PathEvents { paths, overflowed, ended } = &*self.gathered();
                if !paths.is_empty() || *overflowed || *ended {
                    return;
                }
            }
            self.news.notified().await;
        }
    }

    pub(super) fn take(&self) -> PathEvents {
        let mut gathered = self.gathered();
        let ended = gathered.ended;
        let taken = std::mem::take(&mut *gathered);
        gathered.ended = ended;
        taken
    }

    // Nothing that can panic leaves it half-changed, so a poisoned lock still guards complete data.
    fn gathered(&self) -> MutexGuard<'_, PathEvents> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_to_a_path_adds_up() {
        use PathEvent::{Arrived, Changed, Created, Deleted, Replaced};
        for (steps, sum) in [
            (&[Created, Changed, Changed][..], Some(Created)),
            (&[Created, Changed, Deleted], None),
            (&[Changed, Deleted], Some(Deleted)),
            (&[Deleted, Created, Changed], Some(Replaced)),
            (&[Deleted, Created, Deleted], Some(Deleted)),
            // A moved file may have replaced another, whose end has to be reported then.
            (&[Arrived, Changed], Some(Arrived)),
            (&[Arrived, Deleted], Some(Deleted)),
            (&[Changed, Arrived], Some(Replaced)),
        ] {
            let inbox = Inbox::new(10);
            for step in steps {
                inbox.record("/p".into(), *step);
            }
            assert_eq!(inbox.take().paths.into_values().next(), sum, "{steps:?}");
        }
    }
}
