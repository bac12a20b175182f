//! A session's task: validates what clients and the agent want against everything accepted so far (the tip), and
//! hands what happens to the sequencer.

mod checkout;
mod copying;
mod forks;
mod handing;
mod holding;
mod log;
mod memory;
mod migrating;
mod pastes;
mod publishing;
mod reports;
mod resting;
mod saving;
mod settings;
pub(crate) mod spills;
mod tree;
mod work;
mod workplaces;
mod workspace;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use futures_util::future::AbortHandle;
use grove_agents::{Agent, AgentError, AgentSession, Closing, Mark, Outlasts, Report, Resumption};
use grove_core::*;
use grove_fs::SessionFs;
use grove_fs::temp_files::Fate as TempFate;
use tokio::sync::{mpsc, oneshot, watch};

use self::checkout::Looks;
pub(crate) use self::checkout::seen_at;
use self::copying::Copying;
use self::holding::Holding;
pub(crate) use self::holding::Presence;
pub(crate) use self::log::{ChatLog, ChatLogError, Seen, entry_id};
pub(crate) use self::publishing::Refusal;
use self::publishing::{Attempted, Ended, Outbox, done};
pub(crate) use self::settings::THINKING_SETTINGS;
use crate::config::Config;
use crate::env::{Env, Task};
use crate::hooks::Hooks;
use crate::host::Inner;
use crate::sequencer::{Aside, NotWritten, Origin, SequencerHandle, Stopped, ToSequencer, Unwritten};
use crate::store::copies::Copies;
use crate::store::session_file::{self, Fate, LogExtents};
pub(crate) use forks::{ForkedInto, Heritage, NewChat};
pub(crate) use handing::{HandedOver, HandoverAnswer, HandoverRequest, words_of};
pub(crate) use migrating::{MigrateError, Migrated};
use spills::{Left, SessionSpills};
use tree::Undertaking;
pub(crate) use tree::{Cutting, NavigateWishes, Navigated, TreeAnswer, TreeError, TreeRequest, Undertaken};
pub(crate) use workplaces::{Workplaces, is_collision};
pub(crate) use workspace::{Arranged, NoAnswer, WorkspaceAnswer, WorkspaceRequest, surveyed};

/// How many messages may wait for a session before their senders do.
const INBOX: usize = 256;
/// How far an agent may run ahead of the host.
const REPORTS: usize = 256;
/// How many reports are published together.
const REPORTS_AT_ONCE: usize = 64;

/// What a session's task can be told.
pub(crate) enum ToSession {
    Dispatch(Dispatch),
    /// Something that a client asked for and waits for, or the host wants by itself.
    Do(Command, oneshot::Sender<Result<(), Refusal>>),
    /// A chat's agent has started, or has not.
    Opened(ChatId, Result<Arc<dyn AgentSession>, AgentError>),
    /// Another session began or ended a turn in a folder of this one.
    NeighboursChanged,
    /// A client that took part has been away for too long.
    ClientGone(ClientId),
    /// Looks at the log of a chat, for an agent that has forgotten what was said.
    Recall(ChatId, oneshot::Sender<Result<Option<Seen>, TreeError>>),
    /// Looks at the tree of a chat, or changes it.
    Tree(ChatId, TreeRequest, oneshot::Sender<Result<TreeAnswer, TreeError>>),
    /// Something that took its time with a chat's tree has come to its end.
    Undertaken(ChatId, Undertaken),
    /// Looks at what the session has beside its conversation, or changes it.
    Workspace(WorkspaceRequest, workspace::Done),
    /// Something of it has changed.
    Arranged(Arranged),
    /// What it has from the session that it comes from.
    Surveyed(WorkspaceDetails),
    /// What is checked out where the session works; nothing where its folder is not there.
    LookedAt(Option<Box<Checkout>>),
    /// A session was made of this one.
    ForkedInto(Box<ForkedInto>),
    /// Begins another chat with what was said in one.
    Fork(ChatId, NewChat, oneshot::Sender<Result<(), TreeError>>),
    /// Has the session lie in another store.
    Migrate(StoreName, oneshot::Sender<Result<Migrated, MigrateError>>),
    /// Has it go to another host.
    HandOver(HandoverRequest, oneshot::Sender<Result<HandoverAnswer, MigrateError>>),
    /// The provider that keeps the session has gone, or has come back.
    Provider(Presence),
    /// Ends the task, where it has nothing to do and nobody wants anything of it. The session stays.
    Rest,
    /// Ends the session; told when it is gone.
    Dispose(oneshot::Sender<()>),
    /// The host stops; told when no turn is running any more.
    Stop(oneshot::Sender<()>),
}

/// An action of a client.
pub(crate) struct Dispatch {
    /// What it asks for, or why it cannot be understood.
    pub(crate) wish: Result<Wish, String>,
    pub(crate) origin: Origin,
    /// Makes the answer to the client alone: why not, or that everything is so already.
    pub(crate) answer: Box<dyn FnOnce(Reply) -> Aside + Send>,
}

/// What an action of a client asks for.
pub(crate) enum Wish {
    Command(Box<Command>),
    /// Goes back to the end of a turn, or before the first one. What came behind it stays in the log.
    Truncate {
        chat: ChatId,
        turn: Option<TurnId>,
    },
}

/// What became of an action of which nobody else hears.
#[derive(Debug)]
pub(crate) enum Reply {
    Refused(String),
    /// It is allowed, and changes nothing.
    NoChange,
}

/// The way to a session's task.
#[derive(Clone)]
pub(crate) struct SessionHandle {
    pub(crate) uri: SessionUri,
    pub(crate) inbox: mpsc::Sender<ToSession>,
}

/// What a session's task works with.
pub(crate) struct Surroundings {
    pub(crate) env: Env,
    pub(crate) config: Arc<Config>,
    pub(crate) sequencer: SequencerHandle,
    pub(crate) agents: watch::Receiver<Arc<[AgentInfo]>>,
    /// Where sessions' agents work.
    pub(crate) workplaces: Arc<Workplaces>,
    pub(crate) hooks: Hooks,
    /// The host, for what hooks do.
    pub(crate) host: Weak<Inner>,
    pub(crate) copies: Copies,
    /// Sessions of which an earlier host left temporary files.
    pub(crate) left: Arc<HashSet<SessionId>>,
    /// What becomes of the session's own.
    pub(crate) temp_files: TempFate,
    /// Those that it has from before its task rested.
    pub(crate) spills: Option<SessionSpills>,
}

/// How a session's task begins.
pub(crate) enum Beginning {
    /// The session is new; the task waits until it stands in state. Its chats may begin with what others have.
    New { begun: oneshot::Receiver<()>, heritage: Vec<Heritage> },
    /// The session was there before its task; everything of it up to a number is in it. Its agents were heard up to
    /// these marks.
    Known { seq: u64, marks: HashMap<ChatId, Mark> },
}

/// Starts the task of a session.
pub(crate) fn start(
    tip: Session,
    fs: Arc<dyn SessionFs>,
    agent: Arc<dyn Agent>,
    around: Surroundings,
    beginning: Beginning,
) -> SessionHandle {
    let (inbox_sender, inbox) = mpsc::channel(INBOX);
    let (report_sender, reports) = mpsc::channel(REPORTS);
    let handle = SessionHandle { uri: tip.uri.clone(), inbox: inbox_sender.clone() };
    let spawn = around.env.spawn.clone();
    let copying = Copying::expected(&around, &tip).into_iter().collect();
    let left = if around.left.contains(&tip.id) { Left::Some } else { Left::None };
    let new_spills = || SessionSpills::new(tip.id.clone(), fs.clone(), left, around.temp_files, &around.config);
    let spills = around.spills.clone().unwrap_or_else(new_spills);
    let holding = around.env.stores.is_entrusted(&tip.store).then(Holding::default);
    let mut task = SessionTask {
        holding,
        copying,
        spills,
        around,
        fs,
        left: None,
        tip,
        agent,
        inbox_sender: inbox_sender.downgrade(),
        inbox,
        report_sender,
        reports,
        outstanding: None,
        desks: HashMap::new(),
        awaited: HashMap::new(),
        resumed: HashMap::new(),
        unstored: HashMap::new(),
        silence: None,
        stopping: None,
        logs: HashMap::new(),
        last_seq: 0,
        folder_due: false,
        last_undertaking: 0,
        kept: workspace::Kept::default(),
        looks: Looks::default(),
    };
    spawn.spawn(Box::pin(async move {
        match beginning {
            Beginning::New { begun, heritage } => {
                if begun.await.is_err() {
                    return;
                }
                task.inherit(heritage).await;
                task.look_at_checkout();
                task.open(&Session::MAIN_CHAT.into());
            }
            Beginning::Known { seq, marks } => {
                task.last_seq = seq;
                task.begin_copies(HashMap::new()).await;
                if task.pick_up(marks).await.is_err() {
                    return;
                }
                task.note_workplace();
                task.look_at_checkout();
            }
        }
        task.run().await;
    }));
    handle
}

struct SessionTask {
    around: Surroundings,
    /// The store that the session lies in.
    fs: Arc<dyn SessionFs>,
    /// The store that it lay in before, until its folder there is removed.
    left: Option<Arc<dyn SessionFs>>,
    /// The session with everything accepted so far.
    tip: Session,
    agent: Arc<dyn Agent>,
    /// Its own inbox, for what comes back from the agent's start. Weak, so that the task ends with its last handle.
    inbox_sender: mpsc::WeakSender<ToSession>,
    inbox: mpsc::Receiver<ToSession>,
    report_sender: mpsc::Sender<Report>,
    reports: mpsc::Receiver<Report>,
    /// The last publication of the agent's reports, until it is done. Meanwhile no more are taken: an agent runs no
    /// faster than what it says can be stored.
    outstanding: Option<oneshot::Receiver<Result<u64, NotWritten>>>,
    /// Where the agent works, a place for each chat.
    desks: HashMap<ChatId, Desk>,
    /// Where the answers go that nobody has given yet, by chat and request.
    awaited: HashMap<(ChatId, RequestId), Awaited>,
    /// Turns from before the host's start that go on when the agent is back, and where they stood.
    resumed: HashMap<TurnId, Resumption>,
    /// Up to where agents are heard by what is being published.
    unstored: HashMap<ChatId, Mark>,
    /// Rings when a running turn may have been silent for too long.
    silence: Option<Task>,
    stopping: Option<Stopping>,
    logs: HashMap<ChatId, ChatLog>,
    /// Chats whose logs are being made.
    copying: HashMap<ChatId, Copying>,
    /// Where output goes that is too large for its agents.
    spills: SessionSpills,
    /// The number of the last event that is published.
    last_seq: u64,
    /// Something happened that belongs into the session's folder.
    folder_due: bool,
    /// What waits for the provider that keeps the session, where one does.
    holding: Option<Holding>,
    /// The number of the last thing that was undertaken.
    last_undertaking: u64,
    kept: workspace::Kept,
    looks: Looks,
}

/// An answer that an agent waits for.
struct Awaited {
    turn: TurnId,
    answer: AnswerTo,
}

enum AnswerTo {
    Permission(oneshot::Sender<Verdict>),
    Question(oneshot::Sender<InputResponse>),
    /// The result of a call that a client runs.
    Result(oneshot::Sender<ToolResult>),
}

/// An agent's place for one chat.
#[derive(Default)]
struct Desk {
    backend: Backend,
    running: Option<Running>,
    /// Told when the agent that was here before is gone.
    leaving: Option<oneshot::Receiver<()>>,
    /// What takes its time with the chat's tree.
    undertaking: Option<Undertaking>,
    /// The last turn filled the model's window: the conversation is to be compacted before the next one.
    is_full: bool,
    /// Settings that a person changed while the agent was opening. It is told when it is there.
    set_meanwhile: Extra,
    /// How the agent calls a copy of its conversation that is made for this chat: its first opening waits for it.
    inherits: Option<oneshot::Receiver<Option<String>>>,
}

impl Desk {
    fn agent(&self) -> Option<Arc<dyn AgentSession>> {
        match &self.backend {
            Backend::Ready(agent) => Some(agent.clone()),
            Backend::Closed | Backend::Opening(_) => None,
        }
    }
}

#[derive(Default)]
enum Backend {
    /// Not needed yet.
    #[default]
    Closed,
    Opening(AbortHandle),
    Ready(Arc<dyn AgentSession>),
}

/// A turn that an agent works on.
struct Running {
    turn: TurnId,
    abort: AbortHandle,
    /// When the agent last said something, or got something to do.
    heard: Timestamp,
}

/// The host stops, and this session with it.
struct Stopping {
    /// Told once, when no turn is running.
    done: Option<oneshot::Sender<()>>,
    grace: Option<Task>,
}

enum Flow {
    On,
    End,
}

impl SessionTask {
    async fn run(mut self) {
        let mut batch = Vec::with_capacity(REPORTS_AT_ONCE);
        loop {
            let flow = tokio::select! {
                message = self.inbox.recv() => match message {
                    Some(message) => self.handle(message).await,
                    None => break,
                },
                _ = self.reports.recv_many(&mut batch, REPORTS_AT_ONCE),
                    if self.outstanding.is_none() && self.takes_reports() =>
                {
                    self.take_reports(batch.drain(..)).await
                }
                next = holding::next(self.holding.as_mut()) => self.go_on(next).await.map(|()| Flow::On),
                seq = done(self.outstanding.as_mut()) => {
                    self.published(seq);
                    Ok(Flow::On)
                }
                chat = copying::next_done(&mut self.copying) => {
                    self.take_copy(&chat);
                    Ok(Flow::On)
                }
                () = ring(self.silence.as_mut()) => self.check_silence().await,
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
            if self.desks.values().any(|desk| desk.is_full) && self.compact_full().await.is_err() {
                break;
            }
            let at_rest = self.outstanding.is_none() && self.copying.is_empty() && self.active_turns().is_empty();
            if self.folder_due && at_rest && self.holding.is_some() {
                self.save_folder().await;
            } else if self.folder_due && at_rest {
                self.folder_due = false;
                self.write_folder(Fate::Kept).await;
            }
            self.stop_when_idle();
            match flow {
                Ok(Flow::On) => {}
                // Without the sequencer nothing can happen any more.
                Ok(Flow::End) | Err(Stopped) => break,
            }
        }
        for running in self.desks.values_mut().filter_map(|desk| desk.running.take()) {
            running.abort.abort();
        }
    }

    async fn handle(&mut self, message: ToSession) -> Result<Flow, Stopped> {
        match message {
            ToSession::Dispatch(dispatch) => self.dispatch(dispatch).await?,
            ToSession::Do(command, done) => {
                let result = self.carry_out(command).await?;
                // Whoever asked may have gone meanwhile.
                done.send(result).ok();
            }
            ToSession::Tree(chat, request, done) => {
                self.tree(&chat, request, done).await?;
            }
            ToSession::Undertaken(chat, end) => self.undertaken(&chat, end).await?,
            ToSession::Recall(chat, done) => {
                let seen = self.look(&chat).await;
                // The turn may have been cancelled meanwhile.
                done.send(seen).ok();
            }
            ToSession::Workspace(request, done) => self.workspace(request, done).await?,
            ToSession::Arranged(arranged) => self.arranged(arranged).await?,
            ToSession::Surveyed(found) => self.surveyed(found).await?,
            ToSession::LookedAt(seen) => self.looked_at(seen).await?,
            ToSession::ForkedInto(fork) => self.forked_into(*fork).await?,
            ToSession::Fork(source, new, done) => {
                let forked = self.fork_chat(&source, new).await?;
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
            ToSession::NeighboursChanged => {
                let mut out = Outbox::default();
                self.warn_of_collisions(&mut out);
                self.send(out).await?;
            }
            ToSession::ClientGone(client) => self.client_gone(client).await?,
            ToSession::Opened(chat, Ok(agent)) => {
                // A chat that was removed meanwhile needs none.
                let Some(state) = self.tip.chat(&chat) else { return Ok(Flow::On) };
                // A turn may have been started meanwhile, or have waited since before the host was.
                let prompts = state.active.iter().map(|active| (chat.clone(), active.id.clone())).collect();
                let desk = self.desk(&chat);
                let set_meanwhile = std::mem::take(&mut desk.set_meanwhile);
                if !set_meanwhile.is_empty() {
                    let agent = agent.clone();
                    self.around.env.spawn.spawn(Box::pin(async move { agent.configure(set_meanwhile).await }));
                }
                self.desk(&chat).backend = Backend::Ready(agent);
                let mut out = Outbox { prompts, ..Outbox::default() };
                // An agent that was started again has nothing to announce.
                if self.is_being_created(&chat) {
                    self.accept(Command::ReportSession(SessionEvent::Ready), &Who::Host, &mut out).ok();
                    self.accept(Command::ReportSession(SessionEvent::Listed), &Who::Host, &mut out).ok();
                }
                self.send(out).await?;
            }
            ToSession::Opened(chat, Err(error)) => {
                // Where the session itself is fine, its agent may start at the next prompt.
                let desk = self.desk(&chat);
                desk.backend = Backend::Closed;
                desk.set_meanwhile.clear();
                let mut out = Outbox::default();
                let created = !self.is_being_created(&chat);
                if !created {
                    let failed = SessionEvent::CreationFailed(error.info());
                    self.accept(Command::ReportSession(failed), &Who::Host, &mut out).ok();
                }
                self.fail_turns_of(|mine| *mine == chat, &error.info(), &mut out);
                if !created {
                    self.accept(Command::ReportSession(SessionEvent::Listed), &Who::Host, &mut out).ok();
                }
                self.send(out).await?;
            }
            ToSession::Provider(presence) => self.provider_is(presence).await?,
            ToSession::Rest => return Ok(self.rest().await),
            ToSession::Dispose(done) => {
                self.dispose().await?;
                // Whoever asked may have gone meanwhile.
                done.send(()).ok();
                return Ok(Flow::End);
            }
            ToSession::Stop(done) => {
                for chat in self.desks.keys().cloned().collect::<Vec<_>>() {
                    self.give_up(&chat, TreeError::Aborted).await?;
                }
                let grace = self.around.env.clock.sleep(self.around.config.limits.stop_grace);
                self.stopping = Some(Stopping { done: Some(done), grace: Some(grace) });
            }
        }
        Ok(Flow::On)
    }

    /// Whether the session waits for this chat's agent to begin at all.
    fn is_being_created(&self, chat: &ChatId) -> bool {
        self.tip.lifecycle == Lifecycle::Creating && chat.as_str() == Session::MAIN_CHAT
    }

    /// What of a turn outlasts the host. Of a session that no journal has, nothing does.
    fn outlasts(&self) -> Outlasts {
        if self.holding.is_some() { Outlasts::Nothing } else { self.agent.outlasts() }
    }

    /// The store that the session lies in.
    fn fs(&self) -> Arc<dyn SessionFs> {
        self.fs.clone()
    }

    fn desk(&mut self, chat: &ChatId) -> &mut Desk {
        self.desks.entry(chat.clone()).or_default()
    }

    async fn dispatch(&mut self, dispatch: Dispatch) -> Result<(), Stopped> {
        let who = Who::Client(dispatch.origin.client.clone());
        let attempted = match dispatch.wish {
            Ok(Wish::Command(command)) => {
                self.attempt(*command, &who, Some(dispatch.origin)).await?.map_err(|refusal| refusal.to_string())
            }
            Ok(Wish::Truncate { chat, turn }) => self.truncate(&chat, turn, dispatch.origin).await?,
            Err(reason) => Err(reason),
        };
        let reply = match attempted {
            Ok(Attempted::Happened) => return Ok(()),
            Ok(Attempted::NoChange) => Reply::NoChange,
            Err(refused) => Reply::Refused(refused),
        };
        self.around.sequencer.tell(ToSequencer::Tell((dispatch.answer)(reply))).await
    }

    /// A command that somebody waits for. A chat that goes takes its turn with it.
    async fn carry_out(&mut self, command: Command) -> Result<Result<(), Refusal>, Stopped> {
        if let Command::RemoveChat(chat) = &command
            && chat.as_str() != Session::MAIN_CHAT
        {
            self.close_chat(&chat.clone()).await?;
        }
        if let Command::AddChat { chat, .. } = &command
            && let Err(error) = self.make_room_for(chat).await
        {
            return Ok(Err(Refusal::Unavailable(error.to_string())));
        }
        let changes_folder = matches!(command, Command::SetWorkingDirectory(_));
        let attempted = self.attempt(command, &Who::Host, None).await?;
        if changes_folder && matches!(attempted, Ok(Attempted::Happened)) {
            self.folder_changed();
        }
        Ok(attempted.map(|_| ()))
    }

    /// Lets the agents go that work in the former folder, and looks what is checked out in the new one.
    fn folder_changed(&mut self) {
        let chats: Vec<ChatId> = self.desks.keys().cloned().collect();
        for chat in chats {
            if let Some(desk) = self.desks.get_mut(&chat)
                && let Backend::Opening(abort) = &desk.backend
            {
                abort.abort();
                desk.backend = Backend::Closed;
            }
            self.start_over(&chat);
        }
        self.look_at_checkout();
    }

    /// Cancels what runs in a chat, forgets what waits there, and lets its agent go.
    async fn close_chat(&mut self, chat: &ChatId) -> Result<(), Stopped> {
        let mut out = Outbox::default();
        let Some(state) = self.tip.chat(chat) else { return Ok(()) };
        let waiting = state.queued.iter().map(|queued| Command::Dequeue { chat: chat.clone(), id: queued.id.clone() });
        let steering = state.steering.iter();
        let steering = steering.map(|steering| Command::RemoveSteering { chat: chat.clone(), id: steering.id.clone() });
        let turn = state.active.iter().map(|turn| Command::CancelTurn { chat: chat.clone(), turn: turn.id.clone() });
        let commands: Vec<_> = waiting.chain(steering).chain(turn).collect();
        for command in commands {
            self.accept(command, &Who::Host, &mut out).ok();
        }
        self.send(out).await?;
        if let Some(desk) = self.desks.remove(chat) {
            self.close_desk(desk);
        }
        self.settle_copy(chat).await;
        self.copying.remove(chat);
        self.logs.remove(chat);
        Ok(())
    }

    /// Lets an agent go. What is given comes to an end when it is gone.
    fn close_desk(&self, desk: Desk) -> Option<oneshot::Receiver<()>> {
        if let Some(undertaking) = &desk.undertaking {
            undertaking.drop_it();
        }
        match desk.backend {
            Backend::Opening(abort) => abort.abort(),
            Backend::Ready(agent) => {
                let (gone, leaving) = oneshot::channel();
                self.around.env.spawn.spawn(Box::pin(async move {
                    agent.close(Closing::Removed).await;
                    // Nobody need wait for it.
                    gone.send(()).ok();
                }));
                return Some(leaving);
            }
            Backend::Closed => {}
        }
        None
    }

    /// Ends what waits for a client that is gone, and takes it off the list of those who take part.
    async fn client_gone(&mut self, client: ClientId) -> Result<(), Stopped> {
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
                past_tense_message: format!("{name} was not run: its client went away"),
                output: None,
                attached: Vec::new(),
                extra: None,
            };
            let command = Command::CompleteClientCall { chat, turn, call, result, ask: false };
            self.accept(command, &Who::Host, &mut out).ok();
        }
        self.accept(Command::RemoveActiveClient(client), &Who::Host, &mut out).ok();
        self.send(out).await
    }

    /// Cancels what runs, lets the agent go, and takes the session out of state.
    async fn dispose(&mut self) -> Result<(), Stopped> {
        let mut out = Outbox::default();
        if self.holding.is_some() {
            self.last_try().await;
            self.let_go().await?;
        }
        for chat in &mut self.tip.chats {
            chat.queued.clear();
            chat.steering = None;
        }
        for (chat, turn) in self.active_turns() {
            self.accept(Command::CancelTurn { chat, turn }, &Who::Host, &mut out).ok();
        }
        self.accept(Command::ReportSession(SessionEvent::Removed), &Who::Host, &mut out).ok();
        out.prompts.clear();
        let publication = out.publication(None, Unwritten::Held, self.trace());
        // What is held is never refused.
        let published = self.around.sequencer.publish_now(publication).await?;
        self.last_seq = published.unwrap_or(self.last_seq);
        self.act(out);
        for chat in self.copying.keys().cloned().collect::<Vec<_>>() {
            self.settle_copy(&chat).await;
        }
        match self.holding.is_some() {
            true => self.save_at_end().await,
            false => self.write_folder(Fate::Disposed).await,
        }
        // Nothing is to be said of it any more.
        self.folder_due = false;
        self.around.workplaces.leave(&self.tip.id);
        let desks = std::mem::take(&mut self.desks);
        let leaving: Vec<_> = desks.into_values().filter_map(|desk| self.close_desk(desk)).collect();
        let spills = self.spills.clone();
        self.around.env.spawn.spawn(Box::pin(async move {
            // What still runs for an agent may still write.
            futures_util::future::join_all(leaving).await;
            spills.remove().await;
        }));
        Ok(())
    }

    /// Brings the session's folder up to date: the log, then what is beside it. What is in the journal is safe already,
    /// so a failure costs nothing but the journal's room.
    async fn write_folder(&mut self, fate: Fate) {
        let fs = self.fs();
        let written = async {
            let mut extents = LogExtents::new();
            // One whose log could not be made has none.
            for chat in self.tip.chats.iter().filter(|chat| !self.copying.contains_key(&chat.id)) {
                let log = self.logs.entry(chat.id.clone());
                let log = log.or_insert_with(|| ChatLog::new(fs.clone(), &self.tip.id, chat.id.clone()));
                log.catch_up(&self.tip).await?;
                extents.extend(log.extent(&self.tip).await?.map(|extent| (chat.id.clone(), extent)));
            }
            let written = session_file::write(fs.as_ref(), &self.tip, &extents, self.last_seq, fate).await?;
            Ok::<_, ChatLogError>(written)
        };
        match written.await {
            Ok(true) => {
                // They are in the logs now.
                self.tip.chats.iter_mut().for_each(|chat| chat.unlogged.clear());
                let persisted = ToSequencer::Persisted(self.tip.id.clone(), self.last_seq);
                self.around.sequencer.tell(persisted).await.ok();
                if fate == Fate::Kept {
                    // A sequencer that ended is noticed elsewhere.
                    self.relist_once().await.ok();
                    self.write_manifest().await;
                }
                self.remove_left().await;
            }
            Ok(false) => {}
            Err(error) => {
                self.folder_due = true;
                tracing::warn!(session = %self.tip.id, %error, "the session's folder could not be written; it will be tried again");
            }
        }
    }

    /// Tells a host that stops when nothing runs that would end with it, and the folder is written; past the grace,
    /// whether it is or not. Agents are let go before.
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
            if self.outlasts() != Outlasts::Running {
                // Nothing more may be reported of turns that are kept: the next host goes on from here.
                for desk in self.desks.values() {
                    desk.running.iter().for_each(|running| running.abort.abort());
                    if let Backend::Opening(opening) = &desk.backend {
                        opening.abort();
                    }
                }
            }
            let agents: Vec<_> = self.desks.values().filter_map(Desk::agent).collect();
            let patience = self.around.env.clock.sleep(self.around.config.limits.stop_grace);
            let removal = self.around.env.clock.sleep(2 * self.around.config.limits.stop_grace);
            // An agent that works on may still need them.
            let spills = idle.then(|| self.spills.clone());
            self.around.env.spawn.spawn(Box::pin(async move {
                let let_go = futures_util::future::join_all(agents.iter().map(|agent| agent.close(Closing::LetGo)));
                futures_util::future::select(Box::pin(let_go), patience).await;
                if let Some(spills) = spills {
                    // Where they lie with somebody who does not answer, they stay.
                    futures_util::future::select(Box::pin(spills.remove()), removal).await;
                }
                done.send(()).ok();
            }));
        }
    }
}

/// Waits for an alarm that may not be set.
async fn ring(alarm: Option<&mut Task>) {
    match alarm {
        Some(alarm) => alarm.await,
        None => std::future::pending().await,
    }
}
