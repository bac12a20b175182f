//! The running copies out of sessions' folders, and into which.

use std::sync::Arc;

use grove_core::SessionId;
use tokio::sync::watch;

/// The running copies. Clones share the list.
#[derive(Clone, Debug)]
pub struct ActiveCopies(Arc<watch::Sender<ActiveCopyList>>);

#[derive(Debug, Default)]
struct ActiveCopyList {
    last: u64,
    under_way: Vec<ActiveCopy>,
}

#[derive(Debug)]
struct ActiveCopy {
    number: u64,
    from: SessionId,
    /// `None` while it is unknown.
    to: Option<SessionId>,
}

/// While this is held, the source's folder stays where it is, and users of the copy wait.
#[derive(Debug)]
pub struct CopyGuard {
    copies: ActiveCopies,
    number: u64,
}

impl Default for ActiveCopies {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(ActiveCopyList::default())))
    }
}

impl ActiveCopies {
    pub fn hold(&self, from: &SessionId, to: Option<&SessionId>) -> CopyGuard {
        let mut number = 0;
        self.0.send_modify(|list| {
            list.last += 1;
            number = list.last;
            list.under_way.push(ActiveCopy { number, from: from.clone(), to: to.cloned() });
        });
        CopyGuard { copies: self.clone(), number }
    }

    /// Waits until nothing is copied from a session's folder.
    pub async fn none_from(&self, session: &SessionId) {
        self.none(|copy| copy.from == *session).await;
    }

    /// Waits until nothing is copied into a session's folder.
    pub async fn none_into(&self, session: &SessionId) {
        self.none(|copy| copy.to.as_ref() == Some(session)).await;
    }

    async fn none(&self, is_meant: impl Fn(&ActiveCopy) -> bool) {
        let mut list = self.0.subscribe();
        // The sender is here, so it cannot be dropped while we wait.
        list.wait_for(|list| !list.under_way.iter().any(&is_meant)).await.ok();
    }
}

impl Drop for CopyGuard {
    fn drop(&mut self) {
        self.copies.0.send_modify(|list| list.under_way.retain(|copy| copy.number != self.number));
    }
}
