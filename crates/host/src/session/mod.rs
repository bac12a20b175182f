//! A session's task.
//!
//! It validates requests of clients and reports of the agent against everything accepted so far (the tip), and sends
//! the resulting events to the sequencer.

mod active_folders;
mod agent_lifecycle;
mod agents;
mod checkout;
mod eviction;
mod forks;
mod handover;
mod log;
mod logs;
mod memory;
mod migration;
mod outbox;
mod pastes;
mod reports;
mod save_job;
mod settings;
pub(crate) mod spills;
mod tree;
mod unsaved_changes;
mod workspace;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use grove_agents::{Agent, AgentError, AgentSession, CloseReason, FrameCursor, TurnSurvival};
use grove_core::*;
use grove_fs::SessionFs;
use grove_fs::temp_files::TempFilePolicy as TempFate;
use tokio::sync::{mpsc, oneshot, watch};

use self::agents::{AgentsEvent, ChatAgents};
use self::checkout::CheckoutScan;
pub(crate) use self::checkout::read_checkout;
pub(crate) use self::log::{ChatLog, ChatLogError, LogSnapshot, entry_id};
use self::logs::ChatLogs;
pub(crate) use self::outbox::CommandError;
use self::outbox::{CommandOutcome, EndedTurn, Outbox, done};
pub(crate) use self::settings::THINKING_SETTINGS;
pub(crate) use self::unsaved_changes::StorageClientPresence;
use self::unsaved_changes::UnsavedChanges;
use crate::config::Config;
use crate::env::{Env, Task};
use crate::hooks::Hooks;
use crate::host::HostInner;
use crate::sequencer::{
    ActionOrigin, DirectReply, HostStopped, JournalWriteError, SequencerHandle, ToSequencer, WriteFailurePolicy,
};
use crate::store::copies::ActiveCopies;
use crate::store::session_file::{self, Disposition};
pub(crate) use active_folders::{ActiveFolders, is_collision};
use forks::LogCopies;
pub(crate) use forks::{ForkPlan, ForkedChat};
pub(crate) use handover::{HandoverAnswer, HandoverManifest, HandoverRequest, moved_message};
pub(crate) use migration::{MigrateError, MigrateOutcome};
use spills::{LeftoverSpills, SessionSpills};
use tree::TreeOperations;
pub(crate) use tree::{NavigateOptions, NavigateOutcome, TreeAnswer, TreeError, TreeOutcome, TreeRequest};
pub(crate) use workspace::{WorkspaceAnswer, WorkspaceRequest, WorkspaceRequestError, WorkspaceUpdate, scan_workspace};

/// The messages that may wait for a session before their senders do.
const INBOX: usize = 256;
/// A message to a session's task.
pub(crate) enum ToSession {
    ClientAction(ClientAction),
    /// A command that a client waits for, or of the host itself.
    Do(Command, oneshot::Sender<Result<(), CommandError>>),
    /// A chat's agent has started, or has failed to.
    AgentOpened(ChatId, Result<Arc<dyn AgentSession>, AgentError>),
    /// Another session started or ended a turn in a folder of this one.
    ActiveFoldersChanged,
    /// A participating client has been disconnected for too long.
    ClientGone(ClientId),
    /// Reads the log of a chat, for an agent without its conversation.
    Recall(ChatId, oneshot::Sender<Result<Option<LogSnapshot>, TreeError>>),
    /// Reads the tree of a chat, or changes it.
    Tree(ChatId, TreeRequest, oneshot::Sender<Result<TreeAnswer, TreeError>>),
    /// A long operation on a chat's tree has ended.
    TreeOutcome(ChatId, TreeOutcome),
    /// Reads the session's workspace, or changes it.
    Workspace(WorkspaceRequest, workspace::WorkspaceReply),
    /// The workspace has changed.
    WorkspaceUpdate(WorkspaceUpdate),
    /// The workspace that it has from its fork origin.
    WorkspaceScanned(WorkspaceDetails),
    /// The checkout in the session's folder; `None` if the folder is missing.
    CheckoutScanned(Option<Box<Checkout>>),
    /// A session was forked from a chat of this one, and has its log.
    Forked {
        fork: SessionId,
        title: String,
        origin: Arc<ChatOrigin>,
    },
    /// Creates a chat as a fork of another one.
    ForkChat {
        source: ChatId,
        /// The last turn of the fork.
        turn: TurnId,
        chat: ChatId,
        uri: String,
        kind: OriginKind,
        done: oneshot::Sender<Result<(), TreeError>>,
    },
    /// Moves the session to another store.
    Migrate(StoreName, oneshot::Sender<Result<MigrateOutcome, MigrateError>>),
    /// Hands the session over to another host.
    HandOver(HandoverRequest, oneshot::Sender<Result<HandoverAnswer, MigrateError>>),
    /// The session's storage client has disconnected or returned.
    StorageClient(StorageClientPresence),
    /// Ends the task, if it is idle and not in use. The session stays.
    Evict,
    /// Ends the session; resolves when it is gone.
    Dispose(oneshot::Sender<()>),
    /// The host stops; resolves when no turn is running any more.
    Stop(oneshot::Sender<()>),
}

/// An action of a client.
pub(crate) struct ClientAction {
    /// The request, or the reason why it is invalid.
    pub(crate) client_request: Result<ClientRequest, String>,
    pub(crate) origin: ActionOrigin,
    /// Makes the reply to the client alone: the refusal, or that nothing changes.
    pub(crate) answer: Box<dyn FnOnce(DispatchOutcome) -> DirectReply + Send>,
}

/// The request of a client's action.
pub(crate) enum ClientRequest {
    Command(Box<Command>),
    /// Moves back to the end of a turn, or before the first one. Later turns stay in the log.
    Truncate {
        chat: ChatId,
        turn: Option<TurnId>,
    },
}

/// The outcome of an action that causes no event.
#[derive(Debug)]
pub(crate) enum DispatchOutcome {
    Refused(String),
    /// It is allowed, and changes nothing.
    NoChange,
}

/// A handle to a session's task.
#[derive(Clone)]
pub(crate) struct SessionHandle {
    pub(crate) uri: SessionUri,
    pub(crate) inbox: mpsc::Sender<ToSession>,
}

/// The environment of a session's task.
pub(crate) struct SessionContext {
    pub(crate) env: Env,
    pub(crate) config: Arc<Config>,
    pub(crate) sequencer: SequencerHandle,
    pub(crate) agents: watch::Receiver<Arc<[AgentInfo]>>,
    /// The folders in which sessions' agents work.
    pub(crate) active_folders: Arc<ActiveFolders>,
    pub(crate) hooks: Hooks,
    /// The host, for the actions of hooks.
    pub(crate) host: Weak<HostInner>,
    pub(crate) copies: ActiveCopies,
    /// Sessions whose temporary files an earlier host left.
    pub(crate) left: Arc<HashSet<SessionId>>,
    /// The fate of the session's own temporary files.
    pub(crate) temp_files: TempFate,
    /// The temporary files from before the session was evicted.
    pub(crate) spills: Option<SessionSpills>,
}

/// The start of a session's task.
pub(crate) enum SessionStart {
    /// The session is new; the task waits until it is in the state. Its chats may be forks.
    New { begun: oneshot::Receiver<()>, forked: Vec<ForkedChat> },
    /// The session existed before its task; everything of it up to a sequence number is in it.
    /// The frames of its agents are processed up to these cursors.
    Known { seq: u64, marks: HashMap<ChatId, FrameCursor> },
}

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
    let unsaved_changes = session_context.env.stores.is_client_stored(&tip.store).then(UnsavedChanges::default);
    let mut task = SessionTask {
        unsaved_changes,
        copies,
        spills,
        session_context,
        left: None,
        logs: ChatLogs::new(fs, tip.id.clone()),
        tip,
        agents: ChatAgents::new(agent, inbox_sender.downgrade()),
        inbox_sender: inbox_sender.downgrade(),
        inbox,
        outstanding: None,
        stopping: None,
        last_seq: 0,
        folder_due: false,
        operations: TreeOperations::default(),
        kept: workspace::WorkspaceState::default(),
        checkout_scan: CheckoutScan::default(),
    };
    spawn.spawn(Box::pin(async move {
        match beginning {
            SessionStart::New { begun, forked } => {
                if begun.await.is_err() {
                    return;
                }
                task.inherit(forked).await;
                task.scan_checkout();
                task.open(&Session::MAIN_CHAT.into());
            }
            SessionStart::Known { seq, marks } => {
                task.last_seq = seq;
                task.begin_copies(HashMap::new()).await;
                if task.resume_turns(marks).await.is_err() {
                    return;
                }
                task.note_active_folder();
                task.scan_checkout();
            }
        }
        task.run().await;
    }));
    handle
}

struct SessionTask {
    session_context: SessionContext,
    /// Its former store, until its folder there is removed.
    left: Option<Arc<dyn SessionFs>>,
    /// The session with everything accepted so far.
    tip: Session,
    agents: ChatAgents,
    /// Its own inbox, for the result of the agent's start. Weak, so that the task ends with its last handle.
    inbox_sender: mpsc::WeakSender<ToSession>,
    inbox: mpsc::Receiver<ToSession>,
    /// The last publication of the agent's reports, until it is done.
    /// No more are accepted meanwhile: an agent is no faster than its reports can be stored.
    outstanding: Option<oneshot::Receiver<Result<u64, JournalWriteError>>>,
    stopping: Option<StopState>,
    logs: ChatLogs,
    /// Chats whose logs are being copied.
    copies: LogCopies,
    /// The files for output that is too large for its agents.
    spills: SessionSpills,
    /// The sequence number of the last published event.
    last_seq: u64,
    /// Something happened that belongs into the session's folder.
    folder_due: bool,
    /// The changes that wait for the session's storage client, if it has one.
    unsaved_changes: Option<UnsavedChanges>,
    /// The running operations on the chats' trees.
    operations: TreeOperations,
    kept: workspace::WorkspaceState,
    checkout_scan: CheckoutScan,
}

/// The host stops, and this session with it.
struct StopState {
    /// Resolved once, when no turn is running.
    done: Option<oneshot::Sender<()>>,
    grace: Option<Task>,
}

enum Flow {
    On,
    End,
}

impl SessionTask {
    async fn run(mut self) {
        loop {
            let takes_reports = self.outstanding.is_none() && self.takes_reports();
            let flow = tokio::select! {
                message = self.inbox.recv() => match message {
                    Some(message) => self.handle(message).await,
                    None => break,
                },
                event = self.agents.next(takes_reports) => match event {
                    AgentsEvent::Reports(reports) => self.take_reports(reports).await,
                    AgentsEvent::SilenceDue => self.check_silence().await,
                },
                next = unsaved_changes::next(self.unsaved_changes.as_mut()) => self.go_on(next).await.map(|()| Flow::On),
                seq = done(self.outstanding.as_mut()) => {
                    self.published(seq);
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
            let at_rest = self.outstanding.is_none() && self.copies.is_empty() && self.active_turns().is_empty();
            if self.folder_due && at_rest && self.unsaved_changes.is_some() {
                self.save_folder().await;
            } else if self.folder_due && at_rest {
                self.folder_due = false;
                self.write_folder(Disposition::Kept).await;
            }
            self.stop_when_idle();
            match flow {
                Ok(Flow::On) => {}
                // Without the sequencer nothing can happen any more.
                Ok(Flow::End) | Err(HostStopped) => break,
            }
        }
        self.agents.abort_turns();
    }

    async fn handle(&mut self, message: ToSession) -> Result<Flow, HostStopped> {
        match message {
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
            ToSession::ForkChat { source, turn, chat, uri, kind, done } => {
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
            ToSession::ClientGone(client) => self.client_gone(client).await?,
            ToSession::AgentOpened(chat, opened) => self.agent_opened(chat, opened).await?,
            ToSession::StorageClient(presence) => self.provider_is(presence).await?,
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

    /// The part of a turn that survives the host. Nothing does in a session without a journal.
    fn turn_survival(&self) -> TurnSurvival {
        if self.unsaved_changes.is_some() { TurnSurvival::Nothing } else { self.agents.agent().turn_survival() }
    }

    async fn dispatch(&mut self, dispatch: ClientAction) -> Result<(), HostStopped> {
        let who = Actor::Client(dispatch.origin.client.clone());
        let attempted = match dispatch.client_request {
            Ok(ClientRequest::Command(command)) => {
                self.attempt(*command, &who, Some(dispatch.origin)).await?.map_err(|refusal| refusal.to_string())
            }
            Ok(ClientRequest::Truncate { chat, turn }) => self.truncate(&chat, turn, dispatch.origin).await?,
            Err(reason) => Err(reason),
        };
        let reply = match attempted {
            Ok(CommandOutcome::Happened) => return Ok(()),
            Ok(CommandOutcome::NoChange) => DispatchOutcome::NoChange,
            Err(refused) => DispatchOutcome::Refused(refused),
        };
        self.session_context.sequencer.tell(ToSequencer::SendDirect((dispatch.answer)(reply))).await
    }

    /// Carries out a command. A removed chat's turn ends with it.
    async fn carry_out(&mut self, command: Command) -> Result<Result<(), CommandError>, HostStopped> {
        if let Command::RemoveChat(chat) = &command
            && chat.as_str() != Session::MAIN_CHAT
        {
            self.close_chat(&chat.clone()).await?;
        }
        if let Command::AddChat { chat, .. } = &command
            && let Err(error) = self.make_room_for(chat).await
        {
            return Ok(Err(CommandError::Unavailable(error.to_string())));
        }
        let changes_folder = matches!(command, Command::SetWorkingDirectory(_));
        let attempted = self.attempt(command, &Actor::Host, None).await?;
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

    /// Cancels the turn of a chat, drops its queued messages, and stops its agent.
    async fn close_chat(&mut self, chat: &ChatId) -> Result<(), HostStopped> {
        let mut out = Outbox::default();
        let Some(state) = self.tip.chat(chat) else { return Ok(()) };
        let waiting = state.queued.iter().map(|queued| Command::Dequeue { chat: chat.clone(), id: queued.id.clone() });
        let steering = state.steering.iter();
        let steering = steering.map(|steering| Command::RemoveSteering { chat: chat.clone(), id: steering.id.clone() });
        let turn = state.active.iter().map(|turn| Command::CancelTurn { chat: chat.clone(), turn: turn.id.clone() });
        let commands: Vec<_> = waiting.chain(steering).chain(turn).collect();
        for command in commands {
            self.accept(command, &Actor::Host, &mut out).ok();
        }
        self.send(out).await?;
        self.operations.remove(chat);
        self.agents.remove(chat, self.session_context.env.spawn.as_ref());
        self.copies.settle(chat).await;
        self.copies.remove(chat);
        self.logs.remove(chat);
        Ok(())
    }

    /// Ends pending requests to a client that is gone, and removes it from the participants.
    async fn client_gone(&mut self, client: ClientId) -> Result<(), HostStopped> {
        let mut out = Outbox::default();
        let mut calls = Vec::new();
        for chat in &self.tip.chats {
            for (turn, part) in chat.active.iter().flat_map(|turn| turn.parts().iter().map(|part| (&turn.id, part))) {
                if let Part::ToolCall(call) = part
                    && call.client.as_ref() == Some(&client)
                    && call.status == ToolCallStatus::Running
                {
                    calls.push((chat.id.clone(), turn.clone(), call.id.clone(), call.display_name.clone()));
                }
            }
        }
        for (chat, turn, call, name) in calls {
            let result = ToolResult {
                success: false,
                past_tense_message: format!("{name} was not run: its client disconnected"),
                output: None,
                attached: Vec::new(),
                extra: None,
            };
            let command = Command::CompleteClientCall { chat, turn, call, result, ask: false };
            self.accept(command, &Actor::Host, &mut out).ok();
        }
        self.accept(Command::RemoveActiveClient(client), &Actor::Host, &mut out).ok();
        self.send(out).await
    }

    /// Cancels turns, stops the agents, and removes the session from the state.
    async fn dispose(&mut self) -> Result<(), HostStopped> {
        let mut out = Outbox::default();
        if self.unsaved_changes.is_some() {
            self.last_try().await;
            self.let_go().await?;
        }
        for chat in &mut self.tip.chats {
            chat.queued.clear();
            chat.steering = None;
        }
        for (chat, turn) in self.active_turns() {
            self.accept(Command::CancelTurn { chat, turn }, &Actor::Host, &mut out).ok();
        }
        self.accept(Command::ReportSession(SessionEvent::Removed), &Actor::Host, &mut out).ok();
        out.prompts.clear();
        let publication = out.publication(None, WriteFailurePolicy::Hold, self.trace());
        // Changes that may be held are never refused.
        let published = self.session_context.sequencer.publish_now(publication).await?;
        self.last_seq = published.unwrap_or(self.last_seq);
        self.act(out);
        for chat in self.copies.chats() {
            let log = self.copies.settle(&chat).await;
            self.logs.adopt(&chat, log);
        }
        match self.unsaved_changes.is_some() {
            true => self.save_at_end().await,
            false => self.write_folder(Disposition::Disposed).await,
        }
        // Nothing of it is written any more.
        self.folder_due = false;
        self.session_context.active_folders.leave(&self.tip.id);
        self.operations.clear();
        let leaving = self.agents.remove_all(self.session_context.env.spawn.as_ref());
        let spills = self.spills.clone();
        self.session_context.env.spawn.spawn(Box::pin(async move {
            // Remaining processes of an agent may still write.
            futures_util::future::join_all(leaving).await;
            spills.remove().await;
        }));
        Ok(())
    }

    /// Brings the session's folder up to date: the log, then the files beside it.
    ///
    /// Events in the journal are safe already, so a failure costs nothing but the journal's space.
    async fn write_folder(&mut self, fate: Disposition) {
        let fs = self.logs.store();
        let written = async {
            // A chat whose log could not be copied has none.
            let extents = self.logs.catch_up(&self.tip, |chat| !self.copies.contains(chat)).await?;
            let written = session_file::write(fs.as_ref(), &self.tip, &extents, self.last_seq, fate).await?;
            Ok::<_, ChatLogError>(written)
        };
        match written.await {
            Ok(true) => {
                // They are in the logs now.
                self.tip.chats.iter_mut().for_each(|chat| chat.unlogged.clear());
                let persisted = ToSequencer::Persisted(self.tip.id.clone(), self.last_seq);
                self.session_context.sequencer.tell(persisted).await.ok();
                if fate == Disposition::Kept {
                    // A sequencer that ended is noticed elsewhere.
                    self.relist_checkpoints_once().await.ok();
                    self.write_manifest().await;
                }
                self.remove_left().await;
            }
            Ok(false) => {}
            Err(error) => {
                self.folder_due = true;
                tracing::warn!(
                    session = %self.tip.id, %error,
                    "the session's folder could not be written; it will be tried again"
                );
            }
        }
    }

    /// Reports to a stopping host that the session has stopped.
    ///
    /// That is when nothing runs that would end with the host, and the folder is written; after the grace period in any
    /// case. Agents are released before.
    fn stop_when_idle(&mut self) {
        let active = self.active_turns();
        let idle = active.is_empty();
        let only_outliving = active.iter().all(|(chat, turn)| self.outlives_host(chat, turn));
        // The folder is not written while a turn runs.
        let at_rest = (!self.folder_due || !idle) && self.outstanding.is_none() && self.holds_nothing();
        let at_rest = at_rest || self.is_abandoned();
        if let Some(stopping) = &mut self.stopping
            && only_outliving
            && (at_rest || stopping.grace.is_none())
            && let Some(done) = stopping.done.take()
        {
            if self.turn_survival() != TurnSurvival::Running {
                // Nothing more may be reported of turns that survive: the next host continues from here.
                self.agents.abort_all();
            }
            let agents = self.agents.connected();
            let patience = self.session_context.env.clock.sleep(self.session_context.config.limits.stop_grace);
            let removal = self.session_context.env.clock.sleep(2 * self.session_context.config.limits.stop_grace);
            // An agent that survives may still need them.
            let spills = idle.then(|| self.spills.clone());
            self.session_context.env.spawn.spawn(Box::pin(async move {
                let let_go =
                    futures_util::future::join_all(agents.iter().map(|agent| agent.close(CloseReason::Detached)));
                futures_util::future::select(Box::pin(let_go), patience).await;
                if let Some(spills) = spills {
                    // At a storage client that does not answer, they stay.
                    futures_util::future::select(Box::pin(spills.remove()), removal).await;
                }
                done.send(()).ok();
            }));
        }
    }
}

/// Waits for a timer that may not be set.
async fn ring(alarm: Option<&mut Task>) {
    match alarm {
        Some(alarm) => alarm.await,
        None => std::future::pending().await,
    }
}
