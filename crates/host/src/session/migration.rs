//! Moving a session to another store. Its task does nothing else meanwhile, so nobody writes to its folder.

use std::sync::Arc;
use std::time::Duration;

use grove_core::*;
use grove_fs::copy::CopyError;
use grove_fs::{FsError, SessionFs};
use grove_storage::StoreError;
use grove_storage::store_move::{self, Move, MoveError, VerifiedCopy};

use super::{CommandError, SessionTask, TreeError};
use crate::sequencer::HostStopped;

/// The time for which a move waits for copies out of the session's folder.
const COPY_TIMEOUT: Duration = Duration::from_secs(10);

/// A session that is in another store now.
#[derive(Clone, Debug)]
pub struct MigrateOutcome {
    pub store: StoreName,
    /// The copied and compared files; none if it was there already.
    pub checked: VerifiedCopy,
}

/// The reason why a session does not move to another store. It stays in its own.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    #[error("a turn is running: wait until it is over, or cancel it")]
    TurnRuns,
    #[error("a summary is being made: wait for it, or abort it")]
    Busy,
    #[error("the session is still being created: try again in a moment")]
    Creating,
    #[error("sessions that were forked from it are still being copied: try again in a moment")]
    BeingCopied,
    #[error("its plan or its files are being changed: try again in a moment")]
    BeingChanged,
    #[error("its folder cannot be written, so it cannot move completely: see the host's log")]
    NotWritten,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    NotCopied(#[from] TreeError),
    #[error("the session stays where it is: {0}")]
    Move(#[from] MoveError),
    #[error("the session stays where it is: {0}")]
    Refused(CommandError),
    #[error("the session stays where it is: {0}")]
    SessionFile(String),
    #[error("the session has changed since its files were listed: list them again")]
    Changed,
    #[error(
        "this session is stored by a client and cannot be moved: export its conversation, and import that at the \
         destination"
    )]
    OfClient,
    #[error("{0} is not a file of the session")]
    NoFile(String),
    #[error("{0}: only a session that is completely in its folder can move")]
    Inventory(#[from] CopyError),
    #[error(transparent)]
    Fs(#[from] FsError),
}

impl SessionTask {
    pub(super) async fn migrate(
        &mut self,
        name: &StoreName,
    ) -> Result<Result<MigrateOutcome, MigrateError>, HostStopped> {
        if self.tip.store == *name {
            return Ok(Ok(MigrateOutcome { store: name.clone(), checked: VerifiedCopy::default() }));
        }
        let stores = &self.session_context.env.stores;
        if let Some(store) = [&self.tip.store, name].into_iter().find(|store| stores.is_client_stored(store)) {
            return Ok(Err(StoreError::OfStorageClient(store.clone()).into()));
        }
        let prepared = self.copy_to(name).await;
        let (to, checked) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Ok(Err(error)),
        };
        let moved = EventReport::Session(SessionEvent::Moved(name.clone()));
        if let Err(reason) = self.attempt(moved, None).await? {
            give_up_copy(to.as_ref(), &self.tip.id).await;
            return Ok(Err(MigrateError::Refused(reason)));
        }
        // The journal has it: from here on this is the session, whatever happens.
        self.setup.move_to(to.clone());
        let former = self.logs.move_to(to);
        self.persistence.moved_from(former);
        self.save_folder().await;
        Ok(Ok(MigrateOutcome { store: name.clone(), checked }))
    }

    /// Copies all files of the session, and compares them.
    async fn copy_to(&mut self, name: &StoreName) -> Result<(Arc<dyn SessionFs>, VerifiedCopy), MigrateError> {
        self.may_go()?;
        let to = self.session_context.env.stores.reach(name).await?;
        self.settle_folder().await?;
        let from = self.logs.store();
        let copied = Move { session: &self.tip.id, from: from.as_ref(), to: to.as_ref() }.copy().await;
        match copied {
            Ok(checked) => Ok((to, checked)),
            Err(error) => {
                give_up_copy(to.as_ref(), &self.tip.id).await;
                Err(error.into())
            }
        }
    }

    /// Checks that the session has no work that would be interrupted.
    fn may_go(&self) -> Result<(), MigrateError> {
        if !self.active_turns().is_empty() {
            return Err(MigrateError::TurnRuns);
        }
        if self.operations.is_any_running() {
            return Err(MigrateError::Busy);
        }
        if self.tip.lifecycle == Lifecycle::Creating {
            return Err(MigrateError::Creating);
        }
        if self.stopping.is_some() {
            return Err(MigrateError::Refused(HostStopped.into()));
        }
        Ok(())
    }

    /// Writes everything to the session's folder, and waits for all other users of it.
    async fn settle_folder(&mut self) -> Result<(), MigrateError> {
        for chat in self.copies.chats() {
            self.copied(&chat).await?;
        }
        let patience = self.session_context.env.clock.sleep(COPY_TIMEOUT);
        tokio::select! {
            () = self.session_context.copies.none_from(&self.tip.id) => {}
            () = self.session_context.env.clock.sleep(COPY_TIMEOUT) => return Err(MigrateError::BeingCopied),
        }
        // Finished workspace requests move with it, and later ones are handled in the new store.
        tokio::select! {
            () = self.workspace.finish_requests() => {}
            () = patience => return Err(MigrateError::BeingChanged),
        }
        self.finish_publication().await;
        self.save_folder().await;
        // The leftovers of an earlier move are in the store that it may move back to.
        if self.persistence.is_folder_due() || self.persistence.has_former_store() {
            return Err(MigrateError::NotWritten);
        }
        Ok(())
    }

    /// Writes the session's folder for a reader.
    pub(super) async fn flush_for_reading(&mut self) -> Result<(), MigrateError> {
        self.may_go()?;
        self.settle_folder().await
    }
}

/// Removes an unneeded copy. Its leftovers are removed at the next start.
async fn give_up_copy(to: &dyn SessionFs, session: &SessionId) {
    if let Err(error) = store_move::discard(to, session).await {
        tracing::warn!(%session, %error, "a copy of the session could not be removed");
    }
}
