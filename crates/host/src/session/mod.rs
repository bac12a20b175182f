//! A session's task: it owns the tip (the session with everything accepted so far), and routes messages to its parts.
//!
//! | part | is | rules in |
//! |---|---|---|
//! | `ChatAgents` | the agents of the chats: connections, running turns, pending answers, silence | `agents/` |
//! | `ChatLogs` | the logs of the chats | `logs.rs`, `log.rs` |
//! | `LogCopies` | the logs of forked chats that are being copied | `forks/` |
//! | `TreeOperations` | the running summaries and navigations in the chats' trees | `tree/operation.rs` |
//! | `WorkspaceFolder` | plan, files, checkpoints and manifest; the checkout; spilled output | `workspace/` |
//! | `HookWaits` | reports and prompts that wait for hooks of clients | `client_hooks/` |
//! | `SessionSetup` | what its creator configured for the agent | `setup.rs` |
//! | `Publisher` | the way of events to the sequencer | `persistence/publisher.rs` |
//! | `Persistence` | what keeps the session: the journal and its folder, or a storage client | `persistence/` |
//!
//! A command of a client, or a report of an agent, is checked against the tip (`outbox.rs`); its events are committed or
//! sent by the persistence, and their consequences then go to the agents. No part knows the task: the task passes to
//! each what it needs.

mod active_folders;
mod agent_lifecycle;
pub(crate) mod agents;
mod checkout;
pub(crate) mod client_hooks;
mod departures;
mod end;
mod eviction;
mod forks;
mod handover;
mod judgement;
mod logs;
pub(crate) mod memory;
mod message;
mod migration;
pub(crate) mod outbox;
pub(crate) mod pastes;
mod persistence;
pub(crate) mod reports;
mod setup;
pub(crate) mod spills;
pub(crate) mod tree;
pub(crate) mod workspace;

use std::collections::HashMap;
use std::sync::Arc;

use grove_agents::Agent;
use grove_core::*;
use grove_fs::SessionFs;
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument;

use self::agents::{AgentsEvent, ChatAgents};
use self::client_hooks::HookWaits;
use self::end::StopState;
use self::forks::LogCopies;
use self::logs::ChatLogs;
use self::outbox::{CommandOutcome, EndedTurn, Outbox};
use self::persistence::{Persistence, Publisher};
use self::spills::{LeftoverSpills, SessionSpills};
use self::tree::TreeOperations;
use self::workspace::WorkspaceFolder;
use crate::audit::AuditOutcome;
use crate::env::Task;
use crate::refusal::{Refusal, refusal_label};
use crate::sequencer::{HostStopped, ToSequencer};

pub use self::forks::ForkPlan;
pub use self::handover::{HandoverAnswer, HandoverManifest, HandoverRequest};
pub use self::message::{ChatForkRequest, ClientAction, ClientRequest, DispatchOutcome, SessionHandle};
pub use self::migration::{MigrateError, MigrateOutcome};
pub use self::outbox::{ActionRefusal, CommandError};
pub use self::pastes::PasteError;
pub use self::setup::{SetupChangeError, SetupFileError};
pub use self::tree::{
    BranchInfo, CompactionOutcome, Entries, InfoEntries, MergeOutcome, NavigateOptions, NavigateOutcome, TreeAnswer,
    TreeError, TreeRequest,
};
pub use self::workspace::{WorkspaceAnswer, WorkspaceRequest, WorkspaceRequestError};
pub use crate::branch::{
    BranchedSession, ChatAddress, PendingCommand, PendingHandover, PendingMigration, PendingPermissionsRequest,
    PendingTreeRequest, SessionRequestError,
};

pub(crate) use self::active_folders::ActiveFolders;
pub(crate) use self::checkout::read_checkout;
pub(crate) use self::departures::Departures;
pub(crate) use self::forks::ForkedChat;
pub(crate) use self::message::{SessionContext, SessionStart, ToSession};
pub(crate) use self::persistence::StorageClientPresence;
pub(crate) use self::setup::{SessionSetup, SetupKeeper};
pub(crate) use self::workspace::scan_workspace;

/// The messages that may wait for a session before their senders do.
pub const INBOX: usize = 256;

/// Starts the task of a session.
pub(crate) fn start(
    tip: Session,
    fs: Arc<dyn SessionFs>,
    agent: Arc<dyn Agent>,
    session_context: SessionContext,
    beginning: SessionStart,
) -> SessionHandle {
    let (inbox_sender, inbox) = mpsc::channel(INBOX);
    let handle = SessionHandle { uri: tip.uri.clone(), inbox: inbox_sender.clone() };
    let spawn = session_context.env.spawn.clone();
    let copies = LogCopies::expected(&tip, &session_context.copies);
    let left = if session_context.left.contains(&tip.id) { LeftoverSpills::Some } else { LeftoverSpills::None };
    let new_spills =
        || SessionSpills::new(tip.id.clone(), fs.clone(), left, session_context.temp_files, &session_context.config);
    let spills = session_context.spills.clone().unwrap_or_else(new_spills);
    let last_seq = match &beginning {
        SessionStart::New { .. } => 0,
        SessionStart::Known { seq, .. } => *seq,
    };
    let setup = match &beginning {
        SessionStart::New { setup, .. } => setup.clone(),
        SessionStart::Known { .. } => {
            let keeper = SetupKeeper::of(&session_context.env.stores, &tip.store);
            SessionSetup::stored(fs.clone(), tip.id.clone(), keeper)
        }
    };
    let (persistence, publisher) = persistence::of(&tip, &session_context, last_seq);
    let mut task = SessionTask {
        agents: ChatAgents::new(agent, inbox_sender.downgrade()),
        logs: ChatLogs::new(fs, tip.id.clone()),
        copies,
        operations: TreeOperations::default(),
        workspace: WorkspaceFolder::new(spills),
        setup,
        hook_waits: HookWaits::default(),
        publisher,
        persistence,
        flushes: Vec::new(),
        stopping: None,
        session_context,
        tip,
        inbox_sender: inbox_sender.downgrade(),
        inbox,
    };
    // Not inside of the connection that asked for it, which it outlives.
    let span = tracing::debug_span!(parent: None, "session", id = %task.tip.id, agent = %task.tip.agent);
    let running = async move {
        match beginning {
            SessionStart::New { begun, forked, .. } => {
                if begun.await.is_err() {
                    return;
                }
                task.inherit(forked).await;
                task.scan_checkout();
                task.open(&Session::MAIN_CHAT.into());
            }
            SessionStart::Known { marks, .. } => {
                task.begin_copies(HashMap::new()).await;
                if task.resume_turns(marks).await.is_err() {
                    return;
                }
                task.note_active_folder();
                task.scan_checkout();
            }
        }
        task.run().await;
    };
    spawn.spawn(Box::pin(running.instrument(span)));
    handle
}

/// A session's task: it owns the tip and routes messages to its parts.
struct SessionTask {
    session_context: SessionContext,
    /// The session with everything accepted so far.
    tip: Session,
    /// Its own inbox, for the results of work outside the task. Weak, so that the task ends with its last handle.
    inbox_sender: mpsc::WeakSender<ToSession>,
    inbox: mpsc::Receiver<ToSession>,
    /// The agents of the chats.
    agents: ChatAgents,
    /// The logs of the chats.
    logs: ChatLogs,
    /// The logs of forked chats that are being copied.
    copies: LogCopies,
    /// The running operations on the chats' trees.
    operations: TreeOperations,
    /// The session's folder beside its logs.
    workspace: WorkspaceFolder,
    /// The configuration of the agent by the session's creator.
    setup: SessionSetup,
    /// Reports and prompts that wait for hooks of clients.
    hook_waits: HookWaits,
    /// The way of events to the sequencer.
    publisher: Publisher,
    /// Keeps the session: in the journal and its folder, or at a storage client.
    persistence: Box<dyn Persistence>,
    /// The callers that wait until the session is saved.
    flushes: Vec<oneshot::Sender<()>>,
    stopping: Option<StopState>,
}

enum Flow {
    On,
    End,
}

impl SessionTask {
    async fn run(mut self) {
        loop {
            // No more reports are accepted before the last ones are stored: an agent is no faster than that.
            let is_ready = self.publisher.is_idle() && self.persistence.takes_reports(&self.tip);
            if is_ready && self.take_answered_reports().await.is_err() {
                break;
            }
            let takes_reports = is_ready && self.publisher.is_idle() && !self.hook_waits.is_full();
            let flow = tokio::select! {
                message = self.inbox.recv() => match message {
                    Some(message) => self.handle(message).await,
                    None => break,
                },
                event = self.agents.next(takes_reports) => match event {
                    AgentsEvent::Reports(reports) => self.take_reports(reports).await,
                    AgentsEvent::SilenceDue => self.check_silence().await,
                },
                step = self.persistence.next() => self.continue_save(step).await.map(|()| Flow::On),
                is_written = self.publisher.done() => {
                    self.published(is_written);
                    Ok(Flow::On)
                }
                chat = self.copies.next_done() => {
                    self.logs.adopt(&chat, self.copies.take(&chat));
                    Ok(Flow::On)
                }
                () = ring(self.stopping.as_mut().and_then(|stopping| stopping.grace.as_mut())) => {
                    if let Some(stopping) = &mut self.stopping {
                        stopping.grace = None;
                    }
                    let stopped = self.stop_turns().await;
                    self.last_try().await;
                    stopped
                }
            };
            let flow = match flow {
                Ok(Flow::On) => self.steer().await,
                ended => ended,
            };
            if self.compact_full().await.is_err() {
                break;
            }
            let at_rest = self.publisher.is_idle() && self.copies.is_empty() && self.active_turns().is_empty();
            // Nothing more is written of a session that has ended.
            if self.persistence.is_folder_due() && at_rest && !matches!(flow, Ok(Flow::End)) {
                self.save_folder().await;
            }
            self.answer_flushes();
            self.stop_when_idle();
            match flow {
                Ok(Flow::On) => {}
                // Without the sequencer nothing can happen any more.
                Ok(Flow::End) | Err(HostStopped) => break,
            }
        }
        self.agents.abort_turns();
    }

    /// Handles a message. A prompt waits for the hooks of clients first.
    async fn handle(&mut self, message: ToSession) -> Result<Flow, HostStopped> {
        let mut flow = Flow::On;
        let mut next = match message {
            ToSession::Hooks(message) => self.hooks_answered(message),
            message => self.hold_prompt(message).await?,
        };
        loop {
            if let Some(message) = next {
                flow = self.handle_now(message).await?;
            }
            next = match self.next_hooked_prompt() {
                Some(message) if matches!(flow, Flow::On) => Some(message),
                Some(_) | None => return Ok(flow),
            };
        }
    }

    async fn handle_now(&mut self, message: ToSession) -> Result<Flow, HostStopped> {
        match message {
            // Answers of hooks are handled before.
            ToSession::Hooks(_) => {}
            ToSession::ClientAction(dispatch) => self.dispatch(dispatch).await?,
            ToSession::Do(command, done) => {
                let result = self.carry_out(command).await?;
                // The caller may have stopped waiting.
                done.send(result).ok();
            }
            ToSession::Tree(chat, request, done) => {
                self.tree(&chat, request, done).await?;
            }
            ToSession::TreeOutcome(chat, end) => self.finish_operation(&chat, end).await?,
            ToSession::ReadSetup(done) => {
                let setup = self.setup.clone();
                done.send(setup.get().await).ok();
            }
            ToSession::ChangeSetup(change, done) => {
                done.send(self.change_setup(change).await?).ok();
            }
            ToSession::Recall(chat, done) => {
                let seen = self.look(&chat).await;
                // The turn may have been cancelled meanwhile.
                done.send(seen).ok();
            }
            ToSession::Workspace(request, done) => self.workspace(request, done).await?,
            ToSession::WorkspaceUpdate(apply_workspace_update) => {
                self.apply_workspace_update(apply_workspace_update).await?
            }
            ToSession::WorkspaceScanned(found) => self.scan_workspace(found).await?,
            ToSession::CheckoutScanned(seen) => self.publish_checkout(seen).await?,
            ToSession::Forked { fork, title, origin } => self.note_fork(fork, &title, &origin).await?,
            ToSession::ForkChat(request, done) => {
                let ChatForkRequest { source, turn, chat, uri, kind } = request;
                let forked = self.fork_chat(&source, turn, chat, uri, kind).await?;
                done.send(forked).ok();
            }
            ToSession::Migrate(to, done) => {
                let migrated = self.migrate(&to).await?;
                done.send(migrated).ok();
            }
            ToSession::HandOver(request, done) => {
                let answer = self.hand_over(request).await?;
                done.send(answer).ok();
            }
            ToSession::ActiveFoldersChanged => {
                let mut out = Outbox::default();
                self.warn_of_collisions(&mut out);
                self.send(out).await?;
            }
            ToSession::Warn(words) => {
                let mut out = Outbox::default();
                self.warn(words, &mut out);
                self.send(out).await?;
            }
            ToSession::ClientGone(client) => self.client_gone(client).await?,
            ToSession::AgentOpened(chat, opened) => self.agent_opened(chat, opened).await?,
            ToSession::StorageClient(presence) => self.storage_client_is(presence).await?,
            ToSession::OfferRules(chat, request, done) => {
                done.send(self.offer_rules(&chat, &request)).ok();
            }
            ToSession::JudgePending(done) => {
                self.judge_pending().await?;
                done.send(()).ok();
            }
            ToSession::Flush(done) => self.flushes.push(done),
            ToSession::Evict => return Ok(self.rest().await),
            ToSession::Dispose(done) => {
                self.dispose().await?;
                // The caller may have stopped waiting.
                done.send(()).ok();
                return Ok(Flow::End);
            }
            ToSession::Stop(done) => {
                for chat in self.operations.chats() {
                    self.give_up(&chat, TreeError::Aborted).await?;
                }
                let grace = self.session_context.env.clock.sleep(self.session_context.config.limits.stop_grace);
                self.stopping = Some(StopState { done: Some(done), grace: Some(grace) });
            }
        }
        Ok(Flow::On)
    }

    async fn dispatch(&mut self, dispatch: ClientAction) -> Result<(), HostStopped> {
        let mut record = dispatch.record;
        let attempted = match dispatch.client_request {
            Ok(ClientRequest::Command(command)) => {
                record.describe(&command, &self.tip);
                let command = Command::Client(dispatch.origin.client.clone(), *command);
                self.attempt_from(command, Some(dispatch.origin)).await?.map_err(ActionRefusal::from)
            }
            Ok(ClientRequest::Truncate { chat, turn }) => self.truncate(&chat, turn, dispatch.origin).await?,
            Err(reason) => Err(ActionRefusal::Invalid(reason)),
        };
        if let Err(refused) = &attempted {
            self.session_context.env.metrics.refusals.of(refusal_label(refused.kind())).increment();
        }
        let reply = match attempted {
            Ok(CommandOutcome::Happened) => {
                record.finish(AuditOutcome::Done, None);
                return Ok(());
            }
            Ok(CommandOutcome::NoChange) => {
                record.finish(AuditOutcome::Unchanged, None);
                DispatchOutcome::NoChange
            }
            Err(refused) => {
                record.finish(AuditOutcome::Refused, Some(&refused.to_string()));
                DispatchOutcome::Refused(refused)
            }
        };
        self.session_context.sequencer.tell(ToSequencer::SendDirect((dispatch.answer)(reply))).await
    }

    /// Carries out a command. A removed chat's turn ends with it.
    async fn carry_out(&mut self, command: HostCommand) -> Result<Result<(), CommandError>, HostStopped> {
        if let HostCommand::RemoveChat(chat) = &command
            && chat.as_str() != Session::MAIN_CHAT
        {
            self.close_chat(&chat.clone()).await?;
        }
        if let HostCommand::AddChat { chat, .. } = &command
            && let Err(error) = self.make_room_for(chat).await
        {
            return Ok(Err(error.into()));
        }
        let changes_folder = matches!(command, HostCommand::AsClient(ClientCommand::SetWorkingDirectory(_)));
        let changes_permissions = matches!(command, HostCommand::AsClient(ClientCommand::ChangePermissions(_)));
        let attempted = self.attempt(command, None).await?;
        if changes_permissions && matches!(attempted, Ok(CommandOutcome::Happened)) {
            self.judge_pending().await?;
        }
        if changes_folder && matches!(attempted, Ok(CommandOutcome::Happened)) {
            self.folder_changed();
        }
        Ok(attempted.map(|_| ()))
    }

    /// Lets the agents go that work in the former folder, and looks what is checked out in the new one.
    fn folder_changed(&mut self) {
        self.agents.restart_all(self.session_context.env.spawn.as_ref());
        self.scan_checkout();
    }
}

/// Waits for a timer that may not be set.
async fn ring(alarm: Option<&mut Task>) {
    match alarm {
        Some(alarm) => alarm.await,
        None => std::future::pending().await,
    }
}
