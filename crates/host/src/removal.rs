//! Disposed sessions, and deleting any session for good.
//!
//! Disposing removes a session from the lists and leaves its folder. Here the folder is deleted, too: nothing of it can
//! be recovered.

use std::time::Duration;

use grove_core::{Session, SessionId, SessionUri};
use grove_fs::{FsError, Removal};
use grove_storage::session_file::{self, SessionFile};
use grove_storage::{paths, store_scan};

use crate::host::Host;
use crate::sequencer::HostStopped;

/// The time for which a deletion waits for copies out of the session's folder.
pub const COPY_TIMEOUT: Duration = Duration::from_secs(10);
/// The disposed sessions that are listed.
pub const MAX_LISTED: usize = 10_000;

/// The reason why a session is not deleted.
#[derive(Debug, thiserror::Error)]
pub enum EraseError {
    #[error("a fork is being copied out of {0}: try again when the copy is complete")]
    BeingCopied(SessionUri),
    #[error("the session's folder could not be removed: {0}")]
    Fs(#[from] FsError),
    #[error(transparent)]
    HostStopped(#[from] HostStopped),
}

impl Host {
    /// Disposed sessions whose folders still exist, last changed first.
    pub async fn disposed(&self) -> Vec<Session> {
        let mut sessions = Vec::new();
        for (name, fs) in self.stores().kept() {
            // A store that cannot be read is left out.
            for id in store_scan::list(name, fs.as_ref()).await.unwrap_or_default() {
                if let Ok(file) = session_file::read(fs.as_ref(), &SessionId::from(id.as_str())).await
                    && file.disposed
                {
                    sessions.push(file.in_store(name.clone()).without_turns());
                }
            }
        }
        sessions.sort_by_key(|session| std::cmp::Reverse(session.modified_at));
        sessions.truncate(MAX_LISTED);
        sessions
    }

    /// Deletes a session with everything that it has, open or disposed. `false` if there is none.
    pub async fn erase(&self, uri: &SessionUri) -> Result<bool, EraseError> {
        let Some(id) = uri.id() else { return Ok(false) };
        let was_open = self.dispose_session(uri).await?;
        // A session that is open under another URI has this folder.
        if self.id_is_taken(&id) {
            return Ok(was_open);
        }
        tokio::select! {
            () = self.0.copies.none_from(&id) => {}
            () = self.0.env.clock.sleep(COPY_TIMEOUT) => return Err(EraseError::BeingCopied(uri.clone())),
        }
        let mut erased = was_open;
        for (_, fs) in self.stores().kept() {
            let is_meant = |file: &SessionFile| file.disposed && file.uri() == uri;
            if session_file::read(fs.as_ref(), &id).await.is_ok_and(|file| is_meant(&file)) {
                fs.rm(&paths::folder(&id), Removal::Everything).await?;
                erased = true;
            }
        }
        Ok(erased)
    }
}
