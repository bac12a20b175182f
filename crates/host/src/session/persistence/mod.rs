//! The persistence of a session: when an event counts, and what keeps it.
//!
//! [`Persistence`] has two implementations:
//!
//! | | events | folder |
//! |---|---|---|
//! | [`JournalPersistence`] | the journal has them when they are published | written behind the journal, while no turn runs |
//! | [`ClientPersistence`] | a storage client has those that matter before they are published | the storage client's, always |
//!
//! The rest of the task does not ask which one a session has. What else differs is in [`PersistenceFeatures`].

mod client;
mod journal;
mod publisher;
mod save_job;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use grove_core::*;
use grove_fs::SessionFs;
use grove_storage::ActionOrigin;

pub(super) use self::client::ClientPersistence;
pub(super) use self::journal::JournalPersistence;
pub(super) use self::publisher::Publisher;
pub(super) use self::save_job::{ManifestUpdate, SaveOutcome};
use super::forks::LogCopies;
use super::logs::ChatLogs;
use super::outbox::{CommandError, EndedTurn, Outbox};
use super::workspace::WorkspaceFolder;
use super::{SessionContext, SessionTask};
use crate::sequencer::{HostStopped, JournalScope};

/// The characters of a reason that are published.
const REASON: usize = 1_000;

/// The differences between sessions that come with their persistence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PersistenceFeatures {
    /// The next host continues turns that were running.
    pub(super) keeps_turns: bool,
    /// The task may end while the session stays.
    pub(super) may_be_evicted: bool,
    /// The session can move to another store or host.
    pub(super) may_move: bool,
    /// The working directories may be on another machine.
    pub(super) may_lack_folders: bool,
    /// A fork is a session at once, whose agent continues a copy of the conversation.
    pub(super) forks_agent: bool,
}

/// The parts of a session that are kept.
pub(super) struct SavedParts<'a> {
    pub(super) tip: &'a mut Session,
    pub(super) logs: &'a mut ChatLogs,
    pub(super) copies: &'a LogCopies,
    pub(super) workspace: &'a mut WorkspaceFolder,
    pub(super) publisher: &'a mut Publisher,
    pub(super) context: &'a SessionContext,
}

/// The consequences of a step, for the rest of the task.
#[derive(Default)]
pub(super) struct Progress {
    /// Turns whose agents stop at once.
    pub(super) ended: Vec<EndedTurn>,
    /// The agents' reports so far are stored.
    pub(super) is_stored: bool,
    /// Steps whose consequences agents get now, in order.
    pub(super) released: Vec<Outbox>,
    /// The new reason why nothing can be saved, or that it can.
    pub(super) unsaved: Option<Option<String>>,
    /// The caller waits until it is saved.
    pub(super) is_awaited: bool,
}

impl Progress {
    fn released(out: Outbox) -> Self {
        Self { released: vec![out], ..Self::default() }
    }

    fn unsaved(reason: Option<String>) -> Self {
        Self { unsaved: Some(reason), ..Self::default() }
    }
}

/// The next step of a save.
pub(super) enum SaveStep {
    Ended(Box<SaveOutcome>),
    RetryDue,
}

/// Says whether a storage client is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StorageClientPresence {
    Away,
    Back,
}

/// Keeps a session. The provided methods are those of a persistence that holds nothing back.
#[async_trait]
pub(super) trait Persistence: Send {
    fn features(&self) -> PersistenceFeatures;

    /// Publishes the events of a command. The error says why it has not happened.
    async fn commit(
        &mut self,
        parts: SavedParts<'_>,
        out: Outbox,
        origin: Option<ActionOrigin>,
    ) -> Result<Result<Progress, CommandError>, HostStopped>;

    /// Publishes events that happened by themselves. They happened even if they cannot be written.
    async fn send(&mut self, parts: SavedParts<'_>, out: Outbox) -> Result<Progress, HostStopped>;

    /// Brings the session's folder up to date. No turn runs.
    async fn save_folder(&mut self, parts: SavedParts<'_>);

    /// Brings the folder of a disposed session up to date.
    async fn save_disposed(&mut self, parts: SavedParts<'_>);

    /// Notes that something happened that belongs into the session's folder.
    fn mark_folder_due(&mut self);

    /// Says whether the folder lacks something.
    fn is_folder_due(&self) -> bool;

    /// Says whether the folder can be saved now.
    fn may_save_folder(&self, _session: &Session) -> bool {
        true
    }

    /// Says whether agents' reports are accepted.
    fn takes_reports(&self, _session: &Session) -> bool {
        true
    }

    /// Says whether nothing is held back, and no save is running.
    fn holds_nothing(&self) -> bool {
        true
    }

    /// The reason why changes are refused.
    fn refusal(&self, _session: &Session) -> Option<String> {
        None
    }

    /// Says whether whatever keeps the session is gone. A stopping host does not wait for it.
    fn is_abandoned(&self, _session: &Session, _context: &SessionContext) -> bool {
        false
    }

    /// Waits for the next step of a save. Cancelling it loses nothing.
    async fn next(&mut self) -> SaveStep {
        std::future::pending().await
    }

    /// Waits for the running save, if there is one.
    async fn running_save(&mut self) -> Option<Box<SaveOutcome>> {
        None
    }

    /// Continues after a save, successful or not.
    async fn saved(&mut self, _parts: SavedParts<'_>, _saved: SaveOutcome) -> Result<Progress, HostStopped> {
        Ok(Progress::default())
    }

    /// Tries to save again what could not be saved.
    fn retry(&mut self, _parts: SavedParts<'_>) {}

    /// Publishes what could not be saved: the session ends.
    async fn abandon(&mut self, _parts: SavedParts<'_>) -> Result<(), HostStopped> {
        Ok(())
    }

    /// Handles the disconnect or the return of the storage client.
    fn storage_client_is(&mut self, _parts: SavedParts<'_>, _presence: StorageClientPresence) -> Progress {
        Progress::default()
    }

    /// Notes the former store of a session that has moved: its folder there is removed once it is saved here.
    fn moved_from(&mut self, _former: Arc<dyn SessionFs>) {}

    /// Says whether a folder in a former store is left to be removed.
    fn has_former_store(&self) -> bool {
        false
    }
}

/// The persistence of a session in this store, and its way to the sequencer.
pub(super) fn of(session: &Session, context: &SessionContext, last_seq: u64) -> (Box<dyn Persistence>, Publisher) {
    let publisher = |scope| Publisher::new(context.sequencer.clone(), scope, last_seq);
    match context.env.stores.is_client_stored(&session.store) {
        true => (Box::new(ClientPersistence::default()), publisher(JournalScope::NumbersOnly)),
        false => (Box::new(JournalPersistence::default()), publisher(JournalScope::AllEvents)),
    }
}

impl SessionTask {
    /// The persistence, and the parts that it keeps.
    fn saved_parts(&mut self) -> (&mut dyn Persistence, SavedParts<'_>) {
        let parts = SavedParts {
            tip: &mut self.tip,
            logs: &mut self.logs,
            copies: &self.copies,
            workspace: &mut self.workspace,
            publisher: &mut self.publisher,
            context: &self.session_context,
        };
        (self.persistence.as_mut(), parts)
    }

    /// Publishes the events of a command. The error says why it has not happened.
    pub(super) async fn commit(
        &mut self,
        out: Outbox,
        origin: Option<ActionOrigin>,
    ) -> Result<Result<(), CommandError>, HostStopped> {
        let (persistence, parts) = self.saved_parts();
        let progress = match persistence.commit(parts, out, origin).await? {
            Ok(progress) => progress,
            Err(error) => return Ok(Err(error)),
        };
        let is_awaited = progress.is_awaited;
        self.follow(progress).await?;
        if is_awaited {
            self.settle().await?;
        }
        Ok(Ok(()))
    }

    /// Publishes events that happened by themselves, then informs the agents.
    pub(super) async fn send(&mut self, out: Outbox) -> Result<(), HostStopped> {
        self.agents.publishing(out.marks.clone());
        let (persistence, parts) = self.saved_parts();
        let progress = persistence.send(parts, out).await?;
        self.follow(progress).await
    }

    /// Passes the consequences of a step to the other parts.
    async fn follow(&mut self, progress: Progress) -> Result<(), HostStopped> {
        for ended in &progress.ended {
            self.end(ended);
        }
        if progress.is_stored {
            self.agents.stored();
        }
        for out in progress.released {
            self.act(out);
        }
        match progress.unsaved {
            Some(reason) => self.set_unsaved(reason).await,
            None => Ok(()),
        }
    }

    /// Publishes the reason why nothing can be saved, or that it can. It overtakes held changes, which it is about.
    async fn set_unsaved(&mut self, reason: Option<String>) -> Result<(), HostStopped> {
        // The text is the storage client's.
        let reason = reason.map(|reason| reason.chars().take(REASON).collect::<String>());
        if self.tip.details.unsaved == reason {
            return Ok(());
        }
        let details = Box::new(SessionDetails { unsaved: reason, ..self.tip.details.clone() });
        let mut out = Outbox::default();
        self.accept(EventReport::Session(SessionEvent::DetailsChanged(details)), &mut out).ok();
        self.publisher.send(&self.tip.id, &mut out, None).await
    }

    /// Continues after a step of a save.
    pub(super) async fn continue_save(&mut self, step: SaveStep) -> Result<(), HostStopped> {
        let (persistence, parts) = self.saved_parts();
        match step {
            SaveStep::Ended(saved) => {
                let progress = persistence.saved(parts, *saved).await?;
                self.follow(progress).await
            }
            SaveStep::RetryDue => {
                persistence.retry(parts);
                Ok(())
            }
        }
    }

    /// Waits for the running save, and for those that follow it while they succeed.
    pub(super) async fn settle(&mut self) -> Result<(), HostStopped> {
        while let Some(saved) = self.persistence.running_save().await {
            self.continue_save(SaveStep::Ended(saved)).await?;
        }
        Ok(())
    }

    /// Handles the disconnect or the return of the storage client.
    pub(super) async fn storage_client_is(&mut self, presence: StorageClientPresence) -> Result<(), HostStopped> {
        let (persistence, parts) = self.saved_parts();
        let progress = persistence.storage_client_is(parts, presence);
        self.follow(progress).await
    }

    /// Brings the session's folder up to date. No turn runs.
    pub(super) async fn save_folder(&mut self) {
        if self.persistence.may_save_folder(&self.tip) {
            // A sequencer that ended is noticed elsewhere.
            self.relist_checkpoints_once().await.ok();
            let (persistence, parts) = self.saved_parts();
            persistence.save_folder(parts).await;
        }
    }

    /// Brings the folder of a disposed session up to date.
    pub(super) async fn save_disposed(&mut self) {
        let (persistence, parts) = self.saved_parts();
        persistence.save_disposed(parts).await;
    }

    /// Waits until the agents' last reports are published.
    pub(super) async fn finish_publication(&mut self) {
        if !self.publisher.is_idle() {
            let is_written = self.publisher.done().await;
            self.published(is_written);
        }
    }

    /// Notes that the agents' last reports are published, if the sequencer has written them.
    pub(super) fn published(&mut self, is_written: bool) {
        // Agents keep reports that an ended sequencer did not write, for the next host.
        if is_written {
            self.agents.stored();
        }
    }

    /// Tries once more to save what is held back, within the grace period of a stopping host; then gives it up.
    pub(super) async fn last_try(&mut self) {
        let patience = self.session_context.env.clock.sleep(self.session_context.config.limits.stop_grace);
        let tried = async {
            self.settle().await?;
            if !self.persistence.holds_nothing() || self.persistence.is_folder_due() {
                let (persistence, parts) = self.saved_parts();
                persistence.retry(parts);
                self.settle().await?;
            }
            Ok::<_, HostStopped>(())
        };
        tokio::select! {
            // A sequencer that ended is noticed elsewhere.
            _ = tried => {}
            () = patience => {}
        }
        if self.tip.details.unsaved.is_some() || !self.persistence.holds_nothing() {
            let session = &self.tip.id;
            tracing::error!(%session, "a client-stored session ends before its storage client has all of it");
        }
    }

    /// Publishes what could not be saved: the session ends.
    pub(super) async fn abandon_unsaved(&mut self) -> Result<(), HostStopped> {
        let (persistence, parts) = self.saved_parts();
        persistence.abandon(parts).await
    }
}
