//! Sessions whose events are in the journal.

use std::sync::Arc;

use async_trait::async_trait;
use grove_fs::SessionFs;
use grove_storage::ActionOrigin;
use grove_storage::chat_log::ChatLogError;
use grove_storage::session_file::{self, Disposition};
use grove_storage::store_move::Move;

use super::{Outbox, Persistence, PersistenceFeatures, Progress, SavedParts};
use crate::sequencer::{HostStopped, WriteFailurePolicy};
use crate::session::CommandError;

/// An event counts when the journal has it. The folder is written behind it, so a failure costs nothing but the
/// journal's space.
#[derive(Default)]
pub(in crate::session) struct JournalPersistence {
    /// Something happened that belongs into the session's folder.
    is_folder_due: bool,
    /// The former store, until the session's folder there is removed.
    former_store: Option<Arc<dyn SessionFs>>,
}

#[async_trait]
impl Persistence for JournalPersistence {
    fn features(&self) -> PersistenceFeatures {
        PersistenceFeatures {
            keeps_turns: true,
            may_be_evicted: true,
            may_move: true,
            may_lack_folders: false,
            forks_agent: true,
        }
    }

    async fn commit(
        &mut self,
        parts: SavedParts<'_>,
        mut out: Outbox,
        origin: Option<ActionOrigin>,
    ) -> Result<Result<Progress, CommandError>, HostStopped> {
        let committed = parts.publisher.commit(&mut out, origin, WriteFailurePolicy::Refuse).await?;
        Ok(committed.map(|()| Progress::released(out)).map_err(CommandError::from))
    }

    async fn send(&mut self, parts: SavedParts<'_>, mut out: Outbox) -> Result<Progress, HostStopped> {
        if !out.events.is_empty() || !out.marks.is_empty() {
            parts.publisher.send(&parts.tip.id, &mut out, None).await?;
        }
        Ok(Progress::released(out))
    }

    async fn save_folder(&mut self, parts: SavedParts<'_>) {
        self.write_folder(parts, Disposition::Kept).await;
    }

    async fn save_disposed(&mut self, parts: SavedParts<'_>) {
        self.write_folder(parts, Disposition::Disposed).await;
    }

    fn mark_folder_due(&mut self) {
        self.is_folder_due = true;
    }

    fn is_folder_due(&self) -> bool {
        self.is_folder_due
    }

    fn moved_from(&mut self, former: Arc<dyn SessionFs>) {
        self.former_store = Some(former);
    }

    fn has_former_store(&self) -> bool {
        self.former_store.is_some()
    }
}

impl JournalPersistence {
    /// Writes the logs, then the files beside them.
    async fn write_folder(&mut self, mut parts: SavedParts<'_>, fate: Disposition) {
        self.is_folder_due = false;
        match write_session(&mut parts, fate).await {
            Ok(true) => {
                // They are in the logs now.
                parts.tip.chats.iter_mut().for_each(|chat| chat.unlogged.clear());
                parts.publisher.persisted(&parts.tip.id).await;
                if fate == Disposition::Kept {
                    parts.workspace.write_manifest(parts.tip, parts.logs.store().as_ref()).await;
                }
                self.remove_former(&parts).await;
            }
            Ok(false) => {}
            Err(error) => {
                self.is_folder_due = true;
                tracing::warn!(
                    session = %parts.tip.id, %error,
                    "the session's folder could not be written; it will be tried again"
                );
            }
        }
    }

    /// Removes the former folder, once the new one is the session's.
    async fn remove_former(&mut self, parts: &SavedParts<'_>) {
        let Some(from) = self.former_store.take() else { return };
        let (session, to) = (&parts.tip.id, parts.logs.store());
        if let Err(error) = (Move { session, from: from.as_ref(), to: to.as_ref() }).finish().await {
            tracing::warn!(%session, %error, "the session's old folder could not be removed; it will be retried");
            self.former_store = Some(from);
        }
    }
}

/// Writes the logs and `session.json`. Returns whether it did: not while a turn runs.
async fn write_session(parts: &mut SavedParts<'_>, fate: Disposition) -> Result<bool, ChatLogError> {
    // A chat whose log could not be copied has none.
    let extents = parts.logs.catch_up(parts.tip, |chat| !parts.copies.contains(chat)).await?;
    let store = parts.logs.store();
    Ok(session_file::write(store.as_ref(), parts.tip, &extents, parts.publisher.last_seq(), fate).await?)
}
