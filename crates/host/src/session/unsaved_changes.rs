//! A session whose storage is a provider's: what must be there before it counts, and what is held while it cannot be.
//!
//! No journal has such a session, so what clients see must not be ahead of what the provider has, where that matters: a turn
//! that is over is in the log before anybody hears that it is; an agent learns of a verdict when the log has it, and
//! begins a turn when `session.json` has its message. Text that streams is told at once.
//!
//! What the provider does not take is held in its order, with everything behind it, and tried again. Meanwhile nothing new
//! is taken: no report of an agent and no change by a client, but that a turn is cancelled. So what is held is what one
//! step of the task made happen, and the ends of turns. Clients are told why ([`SessionDetails::unsaved`]).

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use futures_util::future::BoxFuture;
use grove_core::*;

use super::log::{ChatLog, LoggedVerdict};
use super::save_job::{SaveOutcome, SaveRequest, SaveRequirement};
use super::workspace::WorkspaceChange;
use super::{CommandOutcome, Outbox, SessionTask, WorkspaceRequest};
use crate::env::Task;
use crate::sequencer::{ActionOrigin, HostStopped, JournalScope, Publication, ToSequencer, WriteFailurePolicy};

/// How long until a save that failed is tried again,
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(100);
/// and one that failed again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// How many characters of a reason are told.
const REASON: usize = 1_000;

/// What a session's task holds for its provider.
#[derive(Default)]
pub(super) struct UnsavedChanges {
    /// What happened and is not told yet, oldest first.
    held: VecDeque<UnsavedBatch>,
    save_job: Option<SaveJob>,
    /// Rings when it is to be tried again.
    again: Option<Task>,
    /// How often it has failed since it last worked.
    failures: u32,
}

/// What one step of the task made happen, from the first event on that must be saved before it is told.
struct UnsavedBatch {
    out: Outbox,
    origin: Option<ActionOrigin>,
    permissions: Vec<(ChatId, LoggedVerdict)>,
}

/// A save that is under way.
struct SaveJob {
    work: BoxFuture<'static, SaveOutcome>,
    /// How many batches it is for.
    batches: usize,
    extent: SaveScope,
}

/// How much of a session is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SaveScope {
    /// What must be there before something is told.
    Needed,
    /// Everything, the session being at rest.
    Folder,
}

/// Something to go on with.
pub(super) enum SaveStep {
    SaveOutcome(Box<SaveOutcome>),
    Again,
}

/// Whether a provider is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StorageClientPresence {
    Away,
    Back,
}

/// Waits for what comes next, where a session is entrusted at all.
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
    /// What of the session is on this machine's disk.
    pub(super) fn trace(&self) -> JournalScope {
        if self.unsaved_changes.is_some() { JournalScope::NumbersOnly } else { JournalScope::AllEvents }
    }

    /// Whether agents' reports are taken.
    pub(super) fn takes_reports(&self) -> bool {
        self.unsaved_changes
            .as_ref()
            .is_none_or(|unsaved_changes| unsaved_changes.held.is_empty() && self.tip.details.unsaved.is_none())
    }

    /// Whether nothing is held, and nothing under way.
    pub(super) fn holds_nothing(&self) -> bool {
        self.unsaved_changes
            .as_ref()
            .is_none_or(|unsaved_changes| unsaved_changes.held.is_empty() && unsaved_changes.save_job.is_none())
    }

    /// Whether nobody is there to take what is held. A host that stops waits for no provider.
    pub(super) fn is_abandoned(&self) -> bool {
        let store = self.session_context.env.stores.client_storage(&self.tip.store);
        store.is_some_and(|store| !store.line.is_connected())
    }

    /// Why a command is refused while the session's storage takes nothing.
    pub(super) fn refused_while_unsaved(&self, command: &Command) -> Option<String> {
        let is_refused = self.unsaved_changes.is_some() && !matches!(command, Command::CancelTurn { .. });
        self.tip.details.unsaved.as_ref().filter(|_| is_refused).map(|reason| unsaved(reason))
    }

    /// The same for what is asked of the workspace.
    pub(super) fn workspace_is_refused(&self, request: &WorkspaceRequest) -> Option<String> {
        let reason = self.tip.details.unsaved.as_ref().filter(|_| self.unsaved_changes.is_some())?;
        WorkspaceChange::of(request).map(|_| unsaved(reason))
    }

    /// Publishes what happened by itself, behind what is held, then tells the agent.
    pub(super) async fn send_client_stored(
        &mut self,
        mut out: Outbox,
        mut origin: Option<ActionOrigin>,
    ) -> Result<(), HostStopped> {
        self.folder_due = true;
        self.unstored.extend(std::mem::take(&mut out.marks));
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

    /// Does what a client wants. What must be in `session.json` is put there first, and has not happened where it cannot be:
    /// then the error says why. What goes to the log has happened, and is held where it cannot be written: a provider that
    /// failed may have it all the same. The end of a turn and a verdict are not even waited for.
    pub(super) async fn attempt_client_stored(
        &mut self,
        mut out: Outbox,
        origin: Option<ActionOrigin>,
    ) -> Result<Result<CommandOutcome, String>, HostStopped> {
        let happens_anyway = |event: &Event| match &event.change {
            Change::Chat(_, _, event) => event.ends_turn() || matches!(event, ChatEvent::ToolCallConfirmed { .. }),
            Change::Session(..) | Change::Root(_) => false,
        };
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
            self.take_logs(saved.logs);
            if let Err(failed) = saved.result {
                return Ok(Err(unsaved(&failed.reason)));
            }
        }
        let publication = out.publication(origin, WriteFailurePolicy::Hold, JournalScope::NumbersOnly);
        // What is held is never refused.
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
            self.stored();
        }
        Ok(())
    }

    /// The verdicts among events, as the log keeps them.
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
            fs: self.fs(),
            // Finished turns are shared, so this costs the running one.
            session: self.tip.clone(),
            seq: self.last_seq,
            need,
            logs: std::mem::take(&mut self.logs),
            // Those that are being made are not to be written to.
            unmade: self.log_copy.keys().cloned().collect(),
            permissions,
            ended,
            is_unsure: self.unsaved_changes.as_ref().is_some_and(|unsaved_changes| unsaved_changes.failures > 0),
            manifest: None,
            register: self.session_context.env.stores.register().clone(),
        }
    }

    /// Begins to save what is held, where nothing is being saved.
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

    /// Brings everything that belongs to the session to its storage, where it is at rest.
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

    /// Goes on with what was saved, or could not be.
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
        let at_rest = self.active_turns().is_empty() && self.log_copy.is_empty();
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
                self.take_logs(saved.logs);
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
                self.take_logs(saved.logs);
                self.folder_due |= extent == SaveScope::Folder;
                if self.tip.details.unsaved.is_none() {
                    // Its reason is the provider's, and may say what is not ours to keep.
                    let (session, code) = (&self.tip.id, failed.code);
                    tracing::warn!(%session, code, "an entrusted session cannot be saved; it will be tried again");
                }
                self.set_unsaved(Some(failed.reason)).await
            }
        }
    }

    fn take_logs(&mut self, logs: HashMap<ChatId, ChatLog>) {
        // Nobody has looked at one meanwhile: whoever does waits for the save.
        self.logs.extend(logs.into_iter().filter(|(chat, _)| self.tip.chat(chat).is_some()));
    }

    /// These are in the logs: they need not be kept beside the chats any longer.
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

    /// Tells clients why nothing can be saved, or that it can. It goes past what is held, which it is about.
    async fn set_unsaved(&mut self, reason: Option<String>) -> Result<(), HostStopped> {
        // The words are a provider's.
        let reason = reason.map(|reason| reason.chars().take(REASON).collect::<String>());
        if self.tip.details.unsaved == reason {
            return Ok(());
        }
        let details = Box::new(SessionDetails { unsaved: reason, ..self.tip.details.clone() });
        let mut out = Outbox::default();
        self.accept(Command::ReportSession(SessionEvent::DetailsChanged(details)), &Actor::Host, &mut out).ok();
        self.tell_all(&mut out, None).await
    }

    /// The provider has gone, or has come back.
    pub(super) async fn provider_is(&mut self, presence: StorageClientPresence) -> Result<(), HostStopped> {
        let Some(unsaved_changes) = &mut self.unsaved_changes else { return Ok(()) };
        match presence {
            StorageClientPresence::Away => self.set_unsaved(Some("the provider is not connected".to_owned())).await,
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

    /// Waits for the save that is under way, and for those that follow it while they succeed.
    pub(super) async fn settle(&mut self) -> Result<(), HostStopped> {
        while let Some(UnsavedChanges { save_job: Some(save_job), .. }) = &mut self.unsaved_changes {
            let saved = (&mut save_job.work).await;
            self.saved(saved).await?;
        }
        Ok(())
    }

    /// Tries once more to save what is held, for as long as a host that stops waits for anything; then gives it up.
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
            tracing::error!(%session, "an entrusted session ends without its provider having all of it");
        }
    }

    /// Saves a session that is gone, once: its turns were ended for it.
    pub(super) async fn save_at_end(&mut self) {
        let patience = self.session_context.env.clock.sleep(self.session_context.config.limits.stop_grace);
        let save = self.save(SaveRequirement::ALL, Vec::new(), 0);
        let failed = tokio::select! {
            saved = save.run() => saved.result.is_err(),
            () = patience => true,
        };
        if failed {
            let session = &self.tip.id;
            tracing::error!(%session, "an entrusted session was disposed without its provider having all of it");
        }
    }

    /// Publishes what is held though it could not be saved: the session ends.
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
    format!("the session's storage does not take anything at the moment ({reason}): try again when it does")
}
