//! Sessions that a storage client keeps: the changes that must be saved before they count.
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

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use grove_core::*;
use grove_storage::ActionOrigin;
use grove_storage::chat_log::LoggedVerdict;

use super::save_job::{SaveError, SaveOutcome, SaveRequest, SaveRequirement};
use super::{Outbox, Persistence, PersistenceFeatures, Progress, SaveStep, SavedParts, StorageClientPresence};
use crate::env::Task;
use crate::sequencer::{HostStopped, WriteFailurePolicy};
use crate::session::{CommandError, SessionContext};

/// The delay before a failed save is retried first.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(100);
/// The delay before a failed save is retried again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// An event that matters counts when the storage client has it.
#[derive(Default)]
pub(in crate::session) struct ClientPersistence {
    /// Something happened that belongs into the session's folder.
    is_folder_due: bool,
    /// Events that happened and are not published yet, oldest first.
    held: VecDeque<UnsavedBatch>,
    save_job: Option<SaveJob>,
    /// Fires when a save is to be retried.
    retry: Option<Task>,
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

#[async_trait]
impl Persistence for ClientPersistence {
    fn features(&self) -> PersistenceFeatures {
        PersistenceFeatures {
            keeps_turns: false,
            may_be_evicted: false,
            may_move: false,
            may_lack_folders: true,
            // It is a record until it is resumed.
            forks_agent: false,
        }
    }

    /// A change of `session.json` is saved first, and has not happened if that fails: then the error gives the reason.
    /// A change of the log has happened, and is held if it cannot be written: a storage client that failed may have it
    /// all the same. The end of a turn and a decision are not even waited for.
    async fn commit(
        &mut self,
        mut parts: SavedParts<'_>,
        mut out: Outbox,
        origin: Option<ActionOrigin>,
    ) -> Result<Result<Progress, CommandError>, HostStopped> {
        let happens_anyway = |event: &Event| event.change.class().saved == SaveTarget::LogLater;
        let need = out.events.iter().filter_map(SaveRequirement::of).reduce(SaveRequirement::and);
        let is_free = self.holds_nothing();
        if !is_free || need.is_some_and(SaveRequirement::is_of_log) {
            let is_awaited = is_free && !out.events.iter().any(happens_anyway);
            let progress = self.hold(parts, out, origin).await?;
            return Ok(Ok(Progress { is_awaited, ..progress }));
        }
        if let Some(need) = need {
            let saved = self.request(&mut parts, need, Vec::new(), 0).run().await;
            parts.logs.give_back(saved.logs, parts.tip);
            if let Err(failed) = saved.result {
                return Ok(Err(CommandError::Unsaved(unsaved(&failed.reason))));
            }
        }
        // Changes that may be held are never refused.
        parts.publisher.commit(&mut out, origin, WriteFailurePolicy::Hold).await?.ok();
        Ok(Ok(Progress::released(out)))
    }

    async fn send(&mut self, parts: SavedParts<'_>, out: Outbox) -> Result<Progress, HostStopped> {
        self.hold(parts, out, None).await
    }

    async fn save_folder(&mut self, mut parts: SavedParts<'_>) {
        self.is_folder_due = false;
        self.begin_save(&mut parts, SaveScope::Folder);
    }

    /// Saves a disposed session, once: its turns have just ended.
    async fn save_disposed(&mut self, mut parts: SavedParts<'_>) {
        let patience = parts.context.env.clock.sleep(parts.context.config.limits.stop_grace);
        let save = self.request(&mut parts, SaveRequirement::ALL, Vec::new(), 0);
        let failed = tokio::select! {
            saved = save.run() => saved.result.is_err(),
            () = patience => true,
        };
        if failed {
            let session = &parts.tip.id;
            tracing::error!(%session, "a client-stored session was disposed before its storage client had all of it");
        }
    }

    fn mark_folder_due(&mut self) {
        self.is_folder_due = true;
    }

    fn is_folder_due(&self) -> bool {
        self.is_folder_due
    }

    fn may_save_folder(&self, session: &Session) -> bool {
        self.holds_nothing() && self.retry.is_none() && session.details.unsaved.is_none()
    }

    fn takes_reports(&self, session: &Session) -> bool {
        self.held.is_empty() && session.details.unsaved.is_none()
    }

    fn holds_nothing(&self) -> bool {
        self.held.is_empty() && self.save_job.is_none()
    }

    fn refusal(&self, session: &Session) -> Option<String> {
        session.details.unsaved.as_deref().map(unsaved)
    }

    fn is_abandoned(&self, session: &Session, context: &SessionContext) -> bool {
        let client_storage = context.env.stores.client_storage(&session.store);
        client_storage.is_some_and(|client_storage| !client_storage.line.is_connected())
    }

    async fn next(&mut self) -> SaveStep {
        if let Some(saved) = self.running_save().await {
            return SaveStep::Ended(saved);
        }
        match &mut self.retry {
            Some(retry) => retry.await,
            None => std::future::pending().await,
        }
        SaveStep::RetryDue
    }

    async fn running_save(&mut self) -> Option<Box<SaveOutcome>> {
        let save_job = self.save_job.as_mut()?;
        Some(Box::new((&mut save_job.work).await))
    }

    async fn saved(&mut self, mut parts: SavedParts<'_>, saved: SaveOutcome) -> Result<Progress, HostStopped> {
        let Some(SaveJob { batches, extent, .. }) = self.save_job.take() else { return Ok(Progress::default()) };
        parts.logs.give_back(saved.logs, parts.tip);
        if let Err(failed) = saved.result {
            return Ok(self.failed(&parts, failed, extent));
        }
        self.failures = 0;
        let mut progress = Progress::default();
        for UnsavedBatch { mut out, origin, .. } in self.held.drain(..batches) {
            publish(&mut parts, &mut out, origin, &mut progress).await?;
            progress.released.push(out);
        }
        if extent == SaveScope::Folder {
            parts.workspace.manifest_saved(saved.manifest);
            entries_saved(&mut parts, &saved.entries).await;
        }
        if !self.held.is_empty() {
            self.begin_save(&mut parts, SaveScope::Needed);
        } else if is_connected(parts.tip, parts.context) {
            progress.unsaved = Some(None);
        }
        Ok(progress)
    }

    fn retry(&mut self, mut parts: SavedParts<'_>) {
        let at_rest = parts.tip.chats.iter().all(|chat| chat.active.is_none()) && parts.copies.is_empty();
        let extent = if !self.held.is_empty() || !at_rest { SaveScope::Needed } else { SaveScope::Folder };
        if extent == SaveScope::Folder {
            self.is_folder_due = false;
        }
        self.begin_save(&mut parts, extent);
    }

    async fn abandon(&mut self, mut parts: SavedParts<'_>) -> Result<(), HostStopped> {
        (self.save_job, self.retry) = (None, None);
        for UnsavedBatch { mut out, origin, .. } in std::mem::take(&mut self.held) {
            publish(&mut parts, &mut out, origin, &mut Progress::default()).await?;
        }
        Ok(())
    }

    fn storage_client_is(&mut self, parts: SavedParts<'_>, presence: StorageClientPresence) -> Progress {
        match presence {
            StorageClientPresence::Away => Progress::unsaved(Some("no storage client is connected".to_owned())),
            StorageClientPresence::Back if self.holds_nothing() && self.retry.is_none() => Progress::unsaved(None),
            StorageClientPresence::Back => {
                self.retry(parts);
                Progress::default()
            }
        }
    }
}

impl ClientPersistence {
    /// Publishes events that have happened, after held ones. From the first one on that must be saved, they are held.
    async fn hold(
        &mut self,
        mut parts: SavedParts<'_>,
        mut out: Outbox,
        mut origin: Option<ActionOrigin>,
    ) -> Result<Progress, HostStopped> {
        self.is_folder_due = true;
        // The cursors are in no journal.
        out.marks.clear();
        // An agent that is to stop need not wait for anything.
        let mut progress = Progress { ended: std::mem::take(&mut out.ended), ..Progress::default() };
        let needs_save = |event: &Event| SaveRequirement::of(event).is_some();
        let first = if self.held.is_empty() { out.events.iter().position(needs_save) } else { Some(0) };
        let Some(first) = first else {
            publish(&mut parts, &mut out, origin, &mut progress).await?;
            progress.released.push(out);
            return Ok(progress);
        };
        let rest = out.events.split_off(first);
        if !out.events.is_empty() {
            let mut before = Outbox { events: std::mem::take(&mut out.events), ..Outbox::default() };
            publish(&mut parts, &mut before, origin.take(), &mut progress).await?;
        }
        out.events = rest;
        let permissions = permissions(parts.tip, &out.events);
        self.held.push_back(UnsavedBatch { out, origin, permissions });
        self.begin_save(&mut parts, SaveScope::Needed);
        Ok(progress)
    }

    /// Saves the session as it is now.
    fn request(
        &self,
        parts: &mut SavedParts<'_>,
        need: SaveRequirement,
        permissions: Vec<(ChatId, LoggedVerdict)>,
        ended: u64,
    ) -> SaveRequest {
        SaveRequest {
            // Finished turns are shared, so this costs the running one.
            session: parts.tip.clone(),
            seq: parts.publisher.last_seq(),
            need,
            logs: parts.logs.lend(),
            // Logs that are being copied must not be written to.
            unmade: parts.copies.chats().into_iter().collect(),
            permissions,
            ended,
            is_unsure: self.failures > 0,
            manifest: None,
            register: parts.context.env.stores.register().clone(),
        }
    }

    /// Starts to save held changes, unless a save is running.
    fn begin_save(&mut self, parts: &mut SavedParts<'_>, extent: SaveScope) {
        if self.save_job.is_some() {
            return;
        }
        self.retry = None;
        let permissions = self.held.iter().flat_map(|batch| batch.permissions.clone()).collect();
        let events = self.held.iter().flat_map(|batch| &batch.out.events);
        let ends = |event: &&Event| matches!(&event.change, Change::Chat(_, _, event) if event.ends_turn());
        let ended = events.clone().filter(ends).count() as u64;
        let need = events.filter_map(SaveRequirement::of).reduce(SaveRequirement::and);
        let need = match extent {
            SaveScope::Needed => need.unwrap_or(SaveRequirement::FILE),
            SaveScope::Folder => SaveRequirement::ALL,
        };
        let mut save = self.request(parts, need, permissions, ended);
        if extent == SaveScope::Folder {
            save.manifest = Some(parts.workspace.manifest_to_save(parts.tip));
        }
        self.save_job = Some(SaveJob { work: Box::pin(save.run()), batches: self.held.len(), extent });
    }

    fn failed(&mut self, parts: &SavedParts<'_>, failed: SaveError, extent: SaveScope) -> Progress {
        let pause = if self.failures == 0 { FIRST_RETRY_DELAY } else { RETRY_DELAY };
        self.failures = self.failures.saturating_add(1);
        self.retry = Some(parts.context.env.clock.sleep(pause));
        self.is_folder_due |= extent == SaveScope::Folder;
        if parts.tip.details.unsaved.is_none() {
            // The reason comes from the storage client, and may contain data that is not ours to keep.
            let (session, code) = (&parts.tip.id, failed.code);
            tracing::warn!(%session, code, "a client-stored session cannot be saved; it will be retried");
        }
        Progress::unsaved(Some(failed.reason))
    }
}

/// Publishes events. If there are none, the reports that they came of are stored as soon as the earlier ones.
async fn publish(
    parts: &mut SavedParts<'_>,
    out: &mut Outbox,
    origin: Option<ActionOrigin>,
    progress: &mut Progress,
) -> Result<(), HostStopped> {
    if !out.events.is_empty() {
        return parts.publisher.send(&parts.tip.id, out, origin).await;
    }
    progress.is_stored |= parts.publisher.is_idle();
    Ok(())
}

/// Drops entries that are in the logs now from the chats.
async fn entries_saved(parts: &mut SavedParts<'_>, saved: &[(ChatId, usize)]) {
    let is_saved = |chat: &Chat| {
        let known = saved.iter().find(|(id, _)| *id == chat.id);
        chat.active.is_none() && known.is_some_and(|(_, count)| *count == chat.unlogged.len())
    };
    if parts.tip.chats.iter().all(is_saved) {
        parts.tip.chats.iter_mut().for_each(|chat| chat.unlogged.clear());
        parts.publisher.persisted(&parts.tip.id).await;
    }
}

/// The decisions among events, as the log has them.
fn permissions(session: &Session, events: &[Event]) -> Vec<(ChatId, LoggedVerdict)> {
    let verdicts = events.iter().filter_map(|event| match &event.change {
        Change::Chat(_, chat, ChatEvent::ToolCallConfirmed { turn, call, request, verdict, .. }) => {
            let tool = tool_name(session, chat, turn, call).unwrap_or_default();
            let (turn, call, request) = (turn.clone(), call.clone(), request.clone());
            let permission = LoggedVerdict { turn, call, request, tool, decision: verdict.decision, at: event.at };
            Some((chat.clone(), permission))
        }
        _ => None,
    });
    verdicts.collect()
}

fn tool_name(session: &Session, chat: &ChatId, turn: &TurnId, call: &ToolCallId) -> Option<String> {
    let chat = session.chat(chat)?;
    let active = chat.active_turn(turn).map(ActiveTurn::parts);
    let parts = active.or_else(|| Some(chat.turns.get(chat.position(turn)?)?.parts.as_slice()))?;
    parts.iter().find_map(|part| match part {
        Part::ToolCall(found) if found.id == *call => Some(found.name.clone()),
        _ => None,
    })
}

/// Says whether the session's storage client is connected.
fn is_connected(session: &Session, context: &SessionContext) -> bool {
    let client_storage = context.env.stores.client_storage(&session.store);
    client_storage.is_some_and(|client_storage| client_storage.line.is_connected())
}

fn unsaved(reason: &str) -> String {
    format!("the session cannot be saved at the moment ({reason}): try again later")
}
