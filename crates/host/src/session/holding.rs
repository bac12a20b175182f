//! A session whose storage is a provider's: what must be there before it counts, and what is held while it cannot be.
//!
//! No journal has such a session, so what clients see must not be ahead of what the provider has, where that matters: a turn
//! that is over is in the log before anybody hears that it is; an agent learns of a verdict when the log has it, and
//! begins a turn when `session.json` has its message. Text that streams is told at once.
//!
//! What the provider does not take is held in its order, with everything behind it, and tried again. Meanwhile nothing new
//! is taken: no report of an agent and no change by a client, but that a turn is cancelled. So what is held is what one
//! step of the task made happen, and the ends of turns. Clients are told why ([`Details::unsaved`]).

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use futures_util::future::BoxFuture;
use grove_core::*;

use super::log::{ChatLog, Permission};
use super::saving::{Need, Save, Saved};
use super::workspace::Change as WorkspaceChange;
use super::{Attempted, Outbox, SessionTask, WorkspaceRequest};
use crate::env::Task;
use crate::sequencer::{Origin, Publication, Stopped, ToSequencer, Trace, Unwritten};

/// How long until a save that failed is tried again,
const SOON: Duration = Duration::from_millis(100);
/// and one that failed again.
const LATER: Duration = Duration::from_secs(1);

/// How many characters of a reason are told.
const REASON: usize = 1_000;

/// What a session's task holds for its provider.
#[derive(Default)]
pub(super) struct Holding {
    /// What happened and is not told yet, oldest first.
    held: VecDeque<Batch>,
    saving: Option<Saving>,
    /// Rings when it is to be tried again.
    again: Option<Task>,
    /// How often it has failed since it last worked.
    failures: u32,
}

/// What one step of the task made happen, from the first event on that must be saved before it is told.
struct Batch {
    out: Outbox,
    origin: Option<Origin>,
    permissions: Vec<(ChatId, Permission)>,
}

/// A save that is under way.
struct Saving {
    work: BoxFuture<'static, Saved>,
    /// How many batches it is for.
    batches: usize,
    extent: Extent,
}

/// How much of a session is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// What must be there before something is told.
    Needed,
    /// Everything, the session being at rest.
    Folder,
}

/// Something to go on with.
pub(super) enum Next {
    Saved(Box<Saved>),
    Again,
}

/// Whether a provider is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Away,
    Back,
}

/// Waits for what comes next, where a session is entrusted at all.
pub(super) async fn next(holding: Option<&mut Holding>) -> Next {
    let Some(holding) = holding else { return std::future::pending().await };
    if let Some(saving) = &mut holding.saving {
        return Next::Saved(Box::new((&mut saving.work).await));
    }
    match &mut holding.again {
        Some(again) => again.await,
        None => std::future::pending().await,
    }
    Next::Again
}

impl SessionTask {
    /// What of the session is on this machine's disk.
    pub(super) fn trace(&self) -> Trace {
        if self.holding.is_some() { Trace::Numbers } else { Trace::Journal }
    }

    /// Whether agents' reports are taken.
    pub(super) fn takes_reports(&self) -> bool {
        self.holding.as_ref().is_none_or(|holding| holding.held.is_empty() && self.tip.details.unsaved.is_none())
    }

    /// Whether nothing is held, and nothing under way.
    pub(super) fn holds_nothing(&self) -> bool {
        self.holding.as_ref().is_none_or(|holding| holding.held.is_empty() && holding.saving.is_none())
    }

    /// Whether nobody is there to take what is held. A host that stops waits for no provider.
    pub(super) fn is_abandoned(&self) -> bool {
        let store = self.around.env.stores.entrusted(&self.tip.store);
        store.is_some_and(|store| !store.line.is_connected())
    }

    /// Why a command is refused while the session's storage takes nothing.
    pub(super) fn refused_while_unsaved(&self, command: &Command) -> Option<String> {
        let is_refused = self.holding.is_some() && !matches!(command, Command::CancelTurn { .. });
        self.tip.details.unsaved.as_ref().filter(|_| is_refused).map(|reason| unsaved(reason))
    }

    /// The same for what is asked of the workspace.
    pub(super) fn workspace_is_refused(&self, request: &WorkspaceRequest) -> Option<String> {
        let reason = self.tip.details.unsaved.as_ref().filter(|_| self.holding.is_some())?;
        WorkspaceChange::of(request).map(|_| unsaved(reason))
    }

    /// Publishes what happened by itself, behind what is held, then tells the agent.
    pub(super) async fn send_entrusted(&mut self, mut out: Outbox, mut origin: Option<Origin>) -> Result<(), Stopped> {
        self.folder_due = true;
        self.unstored.extend(std::mem::take(&mut out.marks));
        // An agent that is to stop need not wait for anything.
        for ended in std::mem::take(&mut out.ended) {
            self.end(&ended);
        }
        let is_free = self.holding.as_ref().is_none_or(|holding| holding.held.is_empty());
        let first = if is_free { out.events.iter().position(|event| Need::of(event).is_some()) } else { Some(0) };
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
        if let Some(holding) = &mut self.holding {
            holding.held.push_back(Batch { out, origin, permissions });
        }
        self.begin_save(Extent::Needed);
        Ok(())
    }

    /// Does what a client wants. What must be in `session.json` is put there first, and has not happened where it cannot be:
    /// then the error says why. What goes to the log has happened, and is held where it cannot be written: a provider that
    /// failed may have it all the same. The end of a turn and a verdict are not even waited for.
    pub(super) async fn attempt_entrusted(
        &mut self,
        mut out: Outbox,
        origin: Option<Origin>,
    ) -> Result<Result<Attempted, String>, Stopped> {
        let happens_anyway = |event: &Event| match &event.change {
            Change::Chat(_, _, event) => event.ends_turn() || matches!(event, ChatEvent::ToolCallConfirmed { .. }),
            Change::Session(..) | Change::Root(_) => false,
        };
        let need = out.events.iter().filter_map(Need::of).reduce(Need::and);
        let is_free = self.holds_nothing();
        if !is_free || need.is_some_and(Need::is_of_log) {
            let waits = is_free && !out.events.iter().any(happens_anyway);
            self.send_entrusted(out, origin).await?;
            if waits {
                self.settle().await?;
            }
            return Ok(Ok(Attempted::Happened));
        }
        if let Some(need) = need {
            let saved = self.save(need, Vec::new(), 0).run().await;
            self.take_logs(saved.logs);
            if let Err(failed) = saved.result {
                return Ok(Err(unsaved(&failed.reason)));
            }
        }
        let publication = out.publication(origin, Unwritten::Held, Trace::Numbers);
        // What is held is never refused.
        if let Ok(seq) = self.around.sequencer.publish_now(publication).await? {
            self.last_seq = seq;
        }
        self.act(out);
        Ok(Ok(Attempted::Happened))
    }

    async fn tell_all(&mut self, out: &mut Outbox, origin: Option<Origin>) -> Result<(), Stopped> {
        if !out.events.is_empty() {
            let publication: Publication = out.publication(origin, Unwritten::Held, Trace::Numbers);
            self.outstanding = Some(self.around.sequencer.publish(publication).await?);
        } else if self.outstanding.is_none() {
            self.stored();
        }
        Ok(())
    }

    /// The verdicts among events, as the log keeps them.
    fn permissions(&self, events: &[Event]) -> Vec<(ChatId, Permission)> {
        let verdicts = events.iter().filter_map(|event| match &event.change {
            Change::Chat(_, chat, ChatEvent::ToolCallConfirmed { turn, call, request, verdict }) => {
                let tool = self.tool_name(chat, turn, call).unwrap_or_default();
                let (turn, call, request) = (turn.clone(), call.clone(), request.clone());
                let permission = Permission { turn, call, request, tool, decision: verdict.decision, at: event.at };
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
    fn save(&mut self, need: Need, permissions: Vec<(ChatId, Permission)>, ended: u64) -> Save {
        Save {
            fs: self.fs(),
            // Finished turns are shared, so this costs the running one.
            session: self.tip.clone(),
            seq: self.last_seq,
            need,
            logs: std::mem::take(&mut self.logs),
            // Those that are being made are not to be written to.
            unmade: self.copying.keys().cloned().collect(),
            permissions,
            ended,
            is_unsure: self.holding.as_ref().is_some_and(|holding| holding.failures > 0),
            manifest: None,
            register: self.around.env.stores.register().clone(),
        }
    }

    /// Begins to save what is held, where nothing is being saved.
    fn begin_save(&mut self, extent: Extent) {
        let Some(holding) = self.holding.as_mut().filter(|holding| holding.saving.is_none()) else { return };
        holding.again = None;
        let batches = holding.held.len();
        let permissions = holding.held.iter().flat_map(|batch| batch.permissions.clone()).collect();
        let events = holding.held.iter().flat_map(|batch| &batch.out.events);
        let ends = |event: &&Event| matches!(&event.change, Change::Chat(_, _, event) if event.ends_turn());
        let ended = events.clone().filter(ends).count() as u64;
        let need = events.filter_map(Need::of).reduce(Need::and);
        let need = match extent {
            Extent::Needed => need.unwrap_or(Need::FILE),
            Extent::Folder => Need::ALL,
        };
        let mut save = self.save(need, permissions, ended);
        if extent == Extent::Folder {
            save.manifest = Some(self.manifest_to_save());
        }
        if let Some(holding) = &mut self.holding {
            holding.saving = Some(Saving { work: Box::pin(save.run()), batches, extent });
        }
    }

    /// Brings everything that belongs to the session to its storage, where it is at rest.
    pub(super) async fn save_folder(&mut self) {
        let waits = self.holding.as_ref().is_some_and(|holding| holding.again.is_some());
        if !self.holds_nothing() || waits || self.tip.details.unsaved.is_some() {
            return;
        }
        // A sequencer that ended is noticed elsewhere.
        self.relist_once().await.ok();
        self.folder_due = false;
        self.begin_save(Extent::Folder);
    }

    /// Goes on with what was saved, or could not be.
    pub(super) async fn go_on(&mut self, next: Next) -> Result<(), Stopped> {
        match next {
            Next::Saved(saved) => self.saved(*saved).await,
            Next::Again => {
                self.try_again();
                Ok(())
            }
        }
    }

    fn try_again(&mut self) {
        let is_held = self.holding.as_ref().is_some_and(|holding| !holding.held.is_empty());
        let at_rest = self.active_turns().is_empty() && self.copying.is_empty();
        let extent = if is_held || !at_rest { Extent::Needed } else { Extent::Folder };
        if extent == Extent::Folder {
            self.folder_due = false;
        }
        self.begin_save(extent);
    }

    async fn saved(&mut self, saved: Saved) -> Result<(), Stopped> {
        let Some(holding) = &mut self.holding else { return Ok(()) };
        let Some(Saving { batches, extent, .. }) = holding.saving.take() else { return Ok(()) };
        match saved.result {
            Ok(()) => {
                holding.failures = 0;
                let batches: Vec<Batch> = holding.held.drain(..batches).collect();
                self.take_logs(saved.logs);
                for mut batch in batches {
                    self.tell_all(&mut batch.out, batch.origin.take()).await?;
                    self.act(batch.out);
                }
                if extent == Extent::Folder {
                    self.manifest_saved(saved.manifest);
                    self.entries_saved(&saved.entries).await;
                }
                if self.holding.as_ref().is_some_and(|holding| !holding.held.is_empty()) {
                    self.begin_save(Extent::Needed);
                } else if self.is_connected() {
                    self.set_unsaved(None).await?;
                }
                Ok(())
            }
            Err(failed) => {
                let pause = if holding.failures == 0 { SOON } else { LATER };
                holding.failures = holding.failures.saturating_add(1);
                holding.again = Some(self.around.env.clock.sleep(pause));
                self.take_logs(saved.logs);
                self.folder_due |= extent == Extent::Folder;
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
            self.around.sequencer.tell(ToSequencer::Persisted(self.tip.id.clone(), self.last_seq)).await.ok();
        }
    }

    fn is_connected(&self) -> bool {
        let entrusted = self.around.env.stores.entrusted(&self.tip.store);
        entrusted.is_some_and(|entrusted| entrusted.line.is_connected())
    }

    /// Tells clients why nothing can be saved, or that it can. It goes past what is held, which it is about.
    async fn set_unsaved(&mut self, reason: Option<String>) -> Result<(), Stopped> {
        // The words are a provider's.
        let reason = reason.map(|reason| reason.chars().take(REASON).collect::<String>());
        if self.tip.details.unsaved == reason {
            return Ok(());
        }
        let details = Box::new(Details { unsaved: reason, ..self.tip.details.clone() });
        let mut out = Outbox::default();
        self.accept(Command::ReportSession(SessionEvent::DetailsChanged(details)), &Who::Host, &mut out).ok();
        self.tell_all(&mut out, None).await
    }

    /// The provider has gone, or has come back.
    pub(super) async fn provider_is(&mut self, presence: Presence) -> Result<(), Stopped> {
        let Some(holding) = &mut self.holding else { return Ok(()) };
        match presence {
            Presence::Away => self.set_unsaved(Some("the provider is not connected".to_owned())).await,
            Presence::Back if holding.held.is_empty() && holding.again.is_none() && holding.saving.is_none() => {
                self.set_unsaved(None).await
            }
            Presence::Back => {
                self.try_again();
                Ok(())
            }
        }
    }

    /// Waits for the save that is under way, and for those that follow it while they succeed.
    pub(super) async fn settle(&mut self) -> Result<(), Stopped> {
        while let Some(Holding { saving: Some(saving), .. }) = &mut self.holding {
            let saved = (&mut saving.work).await;
            self.saved(saved).await?;
        }
        Ok(())
    }

    /// Tries once more to save what is held, for as long as a host that stops waits for anything; then gives it up.
    pub(super) async fn last_try(&mut self) {
        if self.holding.is_none() {
            return;
        }
        let patience = self.around.env.clock.sleep(self.around.config.limits.stop_grace);
        let tried = async {
            self.settle().await?;
            if !self.holds_nothing() || self.folder_due {
                self.try_again();
                self.settle().await?;
            }
            Ok::<_, Stopped>(())
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
        let patience = self.around.env.clock.sleep(self.around.config.limits.stop_grace);
        let save = self.save(Need::ALL, Vec::new(), 0);
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
    pub(super) async fn let_go(&mut self) -> Result<(), Stopped> {
        let held = self.holding.as_mut().map(|holding| {
            (holding.saving, holding.again) = (None, None);
            std::mem::take(&mut holding.held)
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
