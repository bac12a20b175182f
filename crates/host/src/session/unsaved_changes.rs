//! Client-stored sessions: the changes that must be saved before they count, and those that are held meanwhile.
//!
//! No journal has such a session, so clients must not see changes ahead of the storage client if that matters: a
//! finished turn is in the log before anybody hears that it has ended; an agent learns of a decision when the log has
//! it, and starts a turn when `session.json` has its message. Streamed text is sent at once.
//!
//! Changes that the storage client does not accept are held in order, with everything after them, and retried.
//! Meanwhile nothing new is accepted: no report of an agent and no change by a client, except cancelling a turn. So the
//! held changes are those of one step of the task, and the ends of turns. Clients see the reason
//! ([`SessionDetails::unsaved`]).

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::future::BoxFuture;
use grove_core::*;

use super::log::LoggedVerdict;
use super::save_job::{SaveOutcome, SaveRequest, SaveRequirement};
use super::workspace::WorkspaceChange;
use super::{CommandOutcome, Outbox, SessionTask, WorkspaceRequest};
use crate::env::Task;
use crate::sequencer::{ActionOrigin, HostStopped, JournalScope, Publication, ToSequencer, WriteFailurePolicy};

/// The delay before a failed save is retried first.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(100);
/// The delay before a failed save is retried again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The characters of a reason that are published.
const REASON: usize = 1_000;

/// The changes that a session's task holds for its storage client.
#[derive(Default)]
pub(super) struct UnsavedChanges {
    /// Events that happened and are not published yet, oldest first.
    held: VecDeque<UnsavedBatch>,
    save_job: Option<SaveJob>,
    /// Fires when a save is to be retried.
    again: Option<Task>,
    /// The failures since the last success.
    failures: u32,
}

/// The events of one step of the task, from the first one on that must be saved before it is published.
struct UnsavedBatch {
    out: Outbox,
    origin: Option<ActionOrigin>,
    permissions: Vec<(ChatId, LoggedVerdict)>,
}

/// A running save.
struct SaveJob {
    work: BoxFuture<'static, SaveOutcome>,
    /// The number of batches that it covers.
    batches: usize,
    extent: SaveScope,
}

/// The part of a session that is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SaveScope {
    /// The files that must be saved before an event is published.
    Needed,
    /// Everything, while no turn runs.
    Folder,
}

/// The next step of saving.
pub(super) enum SaveStep {
    SaveOutcome(Box<SaveOutcome>),
    Again,
}

/// Says whether a storage client is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StorageClientPresence {
    Away,
    Back,
}

/// Waits for the next step, if the session is client-stored at all.
pub(super) async fn next(unsaved_changes: Option<&mut UnsavedChanges>) -> SaveStep {
    let Some(unsaved_changes) = unsaved_changes else { return std::future::pending().await };
    if let Some(save_job) = &mut unsaved_changes.save_job {
        return SaveStep::SaveOutcome(Box::new((&mut save_job.work).await));
    }
    match &mut unsaved_changes.again {
        Some(again) => again.await,
        None => std::future::pending().await,
    }
    SaveStep::Again
}

impl SessionTask {
    /// The part of the session that is on this machine's disk.
    pub(super) fn trace(&self) -> JournalScope {
        if self.unsaved_changes.is_some() { JournalScope::NumbersOnly } else { JournalScope::AllEvents }
    }

    /// Says whether agents' reports are accepted.
    pub(super) fn takes_reports(&self) -> bool {
        self.unsaved_changes
            .as_ref()
            .is_none_or(|unsaved_changes| unsaved_changes.held.is_empty() && self.tip.details.unsaved.is_none())
    }

    /// Says whether nothing is held, and no save is running.
    pub(super) fn holds_nothing(&self) -> bool {
        self.unsaved_changes
            .as_ref()
            .is_none_or(|unsaved_changes| unsaved_changes.held.is_empty() && unsaved_changes.save_job.is_none())
    }

    /// Says whether the storage client is gone. A stopping host does not wait for it.
    pub(super) fn is_abandoned(&self) -> bool {
        let store = self.session_context.env.stores.client_storage(&self.tip.store);
        store.is_some_and(|store| !store.line.is_connected())
    }

    /// The reason why a command is refused while the session cannot be saved.
    pub(super) fn refused_while_unsaved(&self, command: &Command) -> Option<String> {
        let is_refused = self.unsaved_changes.is_some() && !matches!(command, Command::CancelTurn { .. });
        self.tip.details.unsaved.as_ref().filter(|_| is_refused).map(|reason| unsaved(reason))
    }

    /// The reason why a workspace request is refused while the session cannot be saved.
    pub(super) fn workspace_is_refused(&self, request: &WorkspaceRequest) -> Option<String> {
        let reason = self.tip.details.unsaved.as_ref().filter(|_| self.unsaved_changes.is_some())?;
        WorkspaceChange::of(request).map(|_| unsaved(reason))
    }

    /// Publishes events that happened by themselves, after held ones, then informs the agent.
    pub(super) async fn send_client_stored(
        &mut self,
        mut out: Outbox,
        mut origin: Option<ActionOrigin>,
    ) -> Result<(), HostStopped> {
        self.folder_due = true;
        self.agents.publishing(std::mem::take(&mut out.marks));
        // An agent that is to stop need not wait for anything.
        for ended in std::mem::take(&mut out.ended) {
            self.end(&ended);
        }
        let is_free = self.unsaved_changes.as_ref().is_none_or(|unsaved_changes| unsaved_changes.held.is_empty());
        let first =
            if is_free { out.events.iter().position(|event| SaveRequirement::of(event).is_some()) } else { Some(0) };
        let Some(first) = first else {
            self.tell_all(&mut out, origin).await?;
            self.act(out);
            return Ok(());
        };
        let rest = out.events.split_off(first);
        if !out.events.is_empty() {
            let mut before = Outbox { events: std::mem::take(&mut out.events), ..Outbox::default() };
            self.tell_all(&mut before, origin.take()).await?;
        }
        out.events = rest;
        let permissions = self.permissions(&out.events);
        if let Some(unsaved_changes) = &mut self.unsaved_changes {
            unsaved_changes.held.push_back(UnsavedBatch { out, origin, permissions });
        }
        self.begin_save(SaveScope::Needed);
        Ok(())
    }

    /// Carries out a client's command.
    ///
    /// A change of `session.json` is saved first, and has not happened if that fails: then the error gives the reason.
    /// A change of the log has happened, and is held if it cannot be written: a storage client that failed may have it
    /// all the same. The end of a turn and a decision are not even waited for.
    pub(super) async fn attempt_client_stored(
        &mut self,
        mut out: Outbox,
        origin: Option<ActionOrigin>,
    ) -> Result<Result<CommandOutcome, String>, HostStopped> {
        let happens_anyway = |event: &Event| event.change.class().saved == SaveTarget::LogLater;
        let need = out.events.iter().filter_map(SaveRequirement::of).reduce(SaveRequirement::and);
        let is_free = self.holds_nothing();
        if !is_free || need.is_some_and(SaveRequirement::is_of_log) {
            let waits = is_free && !out.events.iter().any(happens_anyway);
            self.send_client_stored(out, origin).await?;
            if waits {
                self.settle().await?;
            }
            return Ok(Ok(CommandOutcome::Happened));
        }
        if let Some(need) = need {
            let saved = self.save(need, Vec::new(), 0).run().await;
            self.logs.give_back(saved.logs, &self.tip);
            if let Err(failed) = saved.result {
                return Ok(Err(unsaved(&failed.reason)));
            }
        }
        let publication = out.publication(origin, WriteFailurePolicy::Hold, JournalScope::NumbersOnly);
        // Changes that may be held are never refused.
        if let Ok(seq) = self.session_context.sequencer.publish_now(publication).await? {
            self.last_seq = seq;
        }
        self.act(out);
        Ok(Ok(CommandOutcome::Happened))
    }

    async fn tell_all(&mut self, out: &mut Outbox, origin: Option<ActionOrigin>) -> Result<(), HostStopped> {
        if !out.events.is_empty() {
            let publication: Publication = out.publication(origin, WriteFailurePolicy::Hold, JournalScope::NumbersOnly);
            self.outstanding = Some(self.session_context.sequencer.publish(publication).await?);
        } else if self.outstanding.is_none() {
            self.agents.stored();
        }
        Ok(())
    }

    /// The decisions among events, as the log has them.
    fn permissions(&self, events: &[Event]) -> Vec<(ChatId, LoggedVerdict)> {
        let verdicts = events.iter().filter_map(|event| match &event.change {
            Change::Chat(_, chat, ChatEvent::ToolCallConfirmed { turn, call, request, verdict }) => {
                let tool = self.tool_name(chat, turn, call).unwrap_or_default();
                let (turn, call, request) = (turn.clone(), call.clone(), request.clone());
                let permission = LoggedVerdict { turn, call, request, tool, decision: verdict.decision, at: event.at };
                Some((chat.clone(), permission))
            }
            _ => None,
        });
        verdicts.collect()
    }

    fn tool_name(&self, chat: &ChatId, turn: &TurnId, call: &ToolCallId) -> Option<String> {
        let chat = self.tip.chat(chat)?;
        let active = chat.active_turn(turn).map(ActiveTurn::parts);
        let parts = active.or_else(|| Some(chat.turns.get(chat.position(turn)?)?.parts.as_slice()))?;
        parts.iter().find_map(|part| match part {
            Part::ToolCall(found) if found.id == *call => Some(found.name.clone()),
            _ => None,
        })
    }

    /// Saves the session as it is now.
    fn save(&mut self, need: SaveRequirement, permissions: Vec<(ChatId, LoggedVerdict)>, ended: u64) -> SaveRequest {
        SaveRequest {
            // Finished turns are shared, so this costs the running one.
            session: self.tip.clone(),
            seq: self.last_seq,
            need,
            logs: self.logs.lend(),
            // Logs that are being copied must not be written to.
            unmade: self.copies.chats().into_iter().collect(),
            permissions,
            ended,
            is_unsure: self.unsaved_changes.as_ref().is_some_and(|unsaved_changes| unsaved_changes.failures > 0),
            manifest: None,
            register: self.session_context.env.stores.register().clone(),
        }
    }

    /// Starts to save held changes, unless a save is running.
    fn begin_save(&mut self, extent: SaveScope) {
        let Some(unsaved_changes) =
            self.unsaved_changes.as_mut().filter(|unsaved_changes| unsaved_changes.save_job.is_none())
        else {
            return;
        };
        unsaved_changes.again = None;
        let batches = unsaved_changes.held.len();
        let permissions = unsaved_changes.held.iter().flat_map(|batch| batch.permissions.clone()).collect();
        let events = unsaved_changes.held.iter().flat_map(|batch| &batch.out.events);
        let ends = |event: &&Event| matches!(&event.change, Change::Chat(_, _, event) if event.ends_turn());
        let ended = events.clone().filter(ends).count() as u64;
        let need = events.filter_map(SaveRequirement::of).reduce(SaveRequirement::and);
        let need = match extent {
            SaveScope::Needed => need.unwrap_or(SaveRequirement::FILE),
            SaveScope::Folder => SaveRequirement::ALL,
        };
        let mut save = self.save(need, permissions, ended);
        if extent == SaveScope::Folder {
            save.manifest = Some(self.manifest_to_save());
        }
        if let Some(unsaved_changes) = &mut self.unsaved_changes {
            unsaved_changes.save_job = Some(SaveJob { work: Box::pin(save.run()), batches, extent });
        }
    }

    /// Saves everything of the session, if no turn runs.
    pub(super) async fn save_folder(&mut self) {
        let waits = self.unsaved_changes.as_ref().is_some_and(|unsaved_changes| unsaved_changes.again.is_some());
        if !self.holds_nothing() || waits || self.tip.details.unsaved.is_some() {
            return;
        }
        // A sequencer that ended is noticed elsewhere.
        self.relist_checkpoints_once().await.ok();
        self.folder_due = false;
        self.begin_save(SaveScope::Folder);
    }

    /// Continues after a save, successful or not.
    pub(super) async fn go_on(&mut self, next: SaveStep) -> Result<(), HostStopped> {
        match next {
            SaveStep::SaveOutcome(saved) => self.saved(*saved).await,
            SaveStep::Again => {
                self.try_again();
                Ok(())
            }
        }
    }

    fn try_again(&mut self) {
        let is_held = self.unsaved_changes.as_ref().is_some_and(|unsaved_changes| !unsaved_changes.held.is_empty());
        let at_rest = self.active_turns().is_empty() && self.copies.is_empty();
        let extent = if is_held || !at_rest { SaveScope::Needed } else { SaveScope::Folder };
        if extent == SaveScope::Folder {
            self.folder_due = false;
        }
        self.begin_save(extent);
    }

    async fn saved(&mut self, saved: SaveOutcome) -> Result<(), HostStopped> {
        let Some(unsaved_changes) = &mut self.unsaved_changes else { return Ok(()) };
        let Some(SaveJob { batches, extent, .. }) = unsaved_changes.save_job.take() else { return Ok(()) };
        match saved.result {
            Ok(()) => {
                unsaved_changes.failures = 0;
                let batches: Vec<UnsavedBatch> = unsaved_changes.held.drain(..batches).collect();
                self.logs.give_back(saved.logs, &self.tip);
                for mut batch in batches {
                    self.tell_all(&mut batch.out, batch.origin.take()).await?;
                    self.act(batch.out);
                }
                if extent == SaveScope::Folder {
                    self.manifest_saved(saved.manifest);
                    self.entries_saved(&saved.entries).await;
                }
                if self.unsaved_changes.as_ref().is_some_and(|unsaved_changes| !unsaved_changes.held.is_empty()) {
                    self.begin_save(SaveScope::Needed);
                } else if self.is_connected() {
                    self.set_unsaved(None).await?;
                }
                Ok(())
            }
            Err(failed) => {
                let pause = if unsaved_changes.failures == 0 { FIRST_RETRY_DELAY } else { RETRY_DELAY };
                unsaved_changes.failures = unsaved_changes.failures.saturating_add(1);
                unsaved_changes.again = Some(self.session_context.env.clock.sleep(pause));
                self.logs.give_back(saved.logs, &self.tip);
                self.folder_due |= extent == SaveScope::Folder;
                if self.tip.details.unsaved.is_none() {
                    // The reason comes from the storage client, and may contain data that is not ours to keep.
                    let (session, code) = (&self.tip.id, failed.code);
                    tracing::warn!(%session, code, "a client-stored session cannot be saved; it will be retried");
                }
                self.set_unsaved(Some(failed.reason)).await
            }
        }
    }

    /// Drops entries that are in the logs now from the chats.
    async fn entries_saved(&mut self, saved: &[(ChatId, usize)]) {
        let is_all = |chat: &Chat| {
            let known = saved.iter().find(|(id, _)| *id == chat.id);
            known.is_some_and(|(_, count)| *count == chat.unlogged.len())
        };
        if self.active_turns().is_empty() && self.tip.chats.iter().all(is_all) {
            self.tip.chats.iter_mut().for_each(|chat| chat.unlogged.clear());
            self.session_context.sequencer.tell(ToSequencer::Persisted(self.tip.id.clone(), self.last_seq)).await.ok();
        }
    }

    fn is_connected(&self) -> bool {
        let client_storage = self.session_context.env.stores.client_storage(&self.tip.store);
        client_storage.is_some_and(|client_storage| client_storage.line.is_connected())
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
        self.accept(Command::ReportSession(SessionEvent::DetailsChanged(details)), &Actor::Host, &mut out).ok();
        self.tell_all(&mut out, None).await
    }

    /// Handles the disconnect or the return of the storage client.
    pub(super) async fn provider_is(&mut self, presence: StorageClientPresence) -> Result<(), HostStopped> {
        let Some(unsaved_changes) = &mut self.unsaved_changes else { return Ok(()) };
        match presence {
            StorageClientPresence::Away => self.set_unsaved(Some("no storage client is connected".to_owned())).await,
            StorageClientPresence::Back
                if unsaved_changes.held.is_empty()
                    && unsaved_changes.again.is_none()
                    && unsaved_changes.save_job.is_none() =>
            {
                self.set_unsaved(None).await
            }
            StorageClientPresence::Back => {
                self.try_again();
                Ok(())
            }
        }
    }

    /// Waits for the running save, and for those that follow it while they succeed.
    pub(super) async fn settle(&mut self) -> Result<(), HostStopped> {
        while let Some(UnsavedChanges { save_job: Some(save_job), .. }) = &mut self.unsaved_changes {
            let saved = (&mut save_job.work).await;
            self.saved(saved).await?;
        }
        Ok(())
    }

    /// Tries once more to save held changes, within the grace period of a stopping host; then gives them up.
    pub(super) async fn last_try(&mut self) {
        if self.unsaved_changes.is_none() {
            return;
        }
        let patience = self.session_context.env.clock.sleep(self.session_context.config.limits.stop_grace);
        let tried = async {
            self.settle().await?;
            if !self.holds_nothing() || self.folder_due {
                self.try_again();
                self.settle().await?;
            }
            Ok::<_, HostStopped>(())
        };
        tokio::select! {
            // A sequencer that ended is noticed elsewhere.
            _ = tried => {}
            () = patience => {}
        }
        let unsaved = self.tip.details.unsaved.is_some() || !self.holds_nothing();
        if unsaved {
            let session = &self.tip.id;
            tracing::error!(%session, "a client-stored session ends before its storage client has all of it");
        }
    }

    /// Saves a disposed session, once: its turns have just ended.
    pub(super) async fn save_at_end(&mut self) {
        let patience = self.session_context.env.clock.sleep(self.session_context.config.limits.stop_grace);
        let save = self.save(SaveRequirement::ALL, Vec::new(), 0);
        let failed = tokio::select! {
            saved = save.run() => saved.result.is_err(),
            () = patience => true,
        };
        if failed {
            let session = &self.tip.id;
            tracing::error!(%session, "a client-stored session was disposed before its storage client had all of it");
        }
    }

    /// Publishes held changes that could not be saved: the session ends.
    pub(super) async fn let_go(&mut self) -> Result<(), HostStopped> {
        let held = self.unsaved_changes.as_mut().map(|unsaved_changes| {
            (unsaved_changes.save_job, unsaved_changes.again) = (None, None);
            std::mem::take(&mut unsaved_changes.held)
        });
        for mut batch in held.into_iter().flatten() {
            self.tell_all(&mut batch.out, batch.origin.take()).await?;
        }
        Ok(())
    }
}

fn unsaved(reason: &str) -> String {
    format!("the session cannot be saved at the moment ({reason}): try again later")
}
