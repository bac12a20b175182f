//! A session's task: validates what clients and the agent want against everything accepted so far (the tip), and
//! hands what happens to the sequencer.

mod log;
mod reports;
mod work;

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::AbortHandle;
use grove_agents::{Agent, AgentError, AgentEvent, AgentSession, Waiting};
use grove_core::*;
use tokio::sync::{mpsc, oneshot, watch};

use self::log::{SessionLog, SessionLogError};
use crate::config::Config;
use crate::env::{Env, Task};
use crate::sequencer::{NotWritten, Origin, Publication, Refusal, SequencerHandle, Stopped, ToSequencer, Unwritten};
use crate::store::session_file::{self, Fate};

/// How many messages may wait for a session before their senders do.
const INBOX: usize = 256;
/// How far an agent may run ahead of the host.
const REPORTS: usize = 256;
/// How many reports are published together.
const REPORTS_AT_ONCE: usize = 64;

/// What a session's task can be told.
pub(crate) enum ToSession {
    Dispatch(Dispatch),
    Opened(Result<Arc<dyn AgentSession>, AgentError>),
    /// Ends the session; told when it is gone.
    Dispose(oneshot::Sender<()>),
    /// The host stops; told when no turn is running any more.
    Stop(oneshot::Sender<()>),
}

/// An action of a client.
pub(crate) struct Dispatch {
    /// What it asks for, or why it cannot be understood.
    pub(crate) command: Result<Command, String>,
    pub(crate) origin: Origin,
    /// Makes the refusal from its reason.
    pub(crate) refuse: Box<dyn FnOnce(String) -> Refusal + Send>,
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
}

/// How a session's task begins.
pub(crate) enum Beginning {
    /// The session is new; the task waits until it stands in state.
    New(oneshot::Receiver<()>),
    /// The session was there before its task; everything of it up to a number is in it.
    Known { seq: u64 },
}

/// Starts the task of a session.
pub(crate) fn start(tip: Session, agent: Arc<dyn Agent>, around: Surroundings, beginning: Beginning) -> SessionHandle {
    let (inbox_sender, inbox) = mpsc::channel(INBOX);
    let (report_sender, reports) = mpsc::channel(REPORTS);
    let handle = SessionHandle { uri: tip.uri.clone(), inbox: inbox_sender.clone() };
    let spawn = around.env.spawn.clone();
    let backend = match tip.lifecycle {
        Lifecycle::Creating | Lifecycle::Ready => Backend::Closed,
        Lifecycle::CreationFailed(_) => Backend::Failed,
    };
    let log = SessionLog::new(around.env.sessions.clone(), &tip.id);
    let mut task = SessionTask {
        around,
        tip,
        agent,
        inbox_sender: inbox_sender.downgrade(),
        inbox,
        report_sender,
        reports,
        outstanding: None,
        backend,
        running: None,
        awaited: HashMap::new(),
        resumed: HashMap::new(),
        silence: None,
        last_report: Timestamp::default(),
        stopping: None,
        log,
        last_seq: 0,
        folder_due: false,
    };
    spawn.spawn(Box::pin(async move {
        match beginning {
            Beginning::New(begun) => {
                if begun.await.is_err() {
                    return;
                }
                task.open();
            }
            Beginning::Known { seq } => {
                task.last_seq = seq;
                if task.pick_up().await.is_err() {
                    return;
                }
            }
        }
        task.run().await;
    }));
    handle
}

struct SessionTask {
    around: Surroundings,
    /// The session with everything accepted so far.
    tip: Session,
    agent: Arc<dyn Agent>,
    /// Its own inbox, for what comes back from the agent's start. Weak, so that the task ends with its last handle.
    inbox_sender: mpsc::WeakSender<ToSession>,
    inbox: mpsc::Receiver<ToSession>,
    report_sender: mpsc::Sender<AgentEvent>,
    reports: mpsc::Receiver<AgentEvent>,
    /// The last publication of the agent's reports, until it is done. Meanwhile no more are taken: an agent runs no
    /// faster than what it says can be stored.
    outstanding: Option<oneshot::Receiver<Result<u64, NotWritten>>>,
    backend: Backend,
    running: Option<Running>,
    /// Where the answers go that a person has not given yet.
    awaited: HashMap<RequestId, Awaited>,
    /// Turns from before the host's start that go on when the agent is back, and what they wait for.
    resumed: HashMap<TurnId, Vec<Waiting>>,
    /// Rings when a running turn may have been silent for too long.
    silence: Option<Task>,
    last_report: Timestamp,
    stopping: Option<Stopping>,
    log: SessionLog,
    /// The number of the last event that is published.
    last_seq: u64,
    /// Something happened that belongs into the session's folder.
    folder_due: bool,
}

/// An answer that an agent waits for.
struct Awaited {
    turn: TurnId,
    answer: AnswerTo,
}

enum AnswerTo {
    Permission(oneshot::Sender<Decision>),
    Question(oneshot::Sender<InputResponse>),
}

enum Backend {
    /// Not needed yet.
    Closed,
    Opening(AbortHandle),
    Ready(Arc<dyn AgentSession>),
    Failed,
}

/// A turn that an agent works on.
struct Running {
    turn: TurnId,
    abort: AbortHandle,
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
                _ = self.reports.recv_many(&mut batch, REPORTS_AT_ONCE), if self.outstanding.is_none() => {
                    self.take_reports(batch.drain(..)).await
                }
                seq = done(self.outstanding.as_mut()) => {
                    self.outstanding = None;
                    // A client's action may have been published behind it meanwhile.
                    self.last_seq = self.last_seq.max(seq.unwrap_or(0));
                    Ok(Flow::On)
                }
                () = ring(self.silence.as_mut()) => self.check_silence().await,
                () = ring(self.stopping.as_mut().and_then(|stopping| stopping.grace.as_mut())) => {
                    if let Some(stopping) = &mut self.stopping {
                        stopping.grace = None;
                    }
                    self.fail_turn("hostStopped", "the host stopped before the turn ended").await
                }
            };
            if self.folder_due && self.outstanding.is_none() && self.active_turns().is_empty() {
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
        if let Some(running) = self.running.take() {
            running.abort.abort();
        }
    }

    async fn handle(&mut self, message: ToSession) -> Result<Flow, Stopped> {
        match message {
            ToSession::Dispatch(dispatch) => self.dispatch(dispatch).await?,
            ToSession::Opened(Ok(agent)) => {
                self.backend = Backend::Ready(agent);
                let mut out = Outbox::default();
                // An agent that was started again has nothing to announce.
                if self.tip.lifecycle == Lifecycle::Creating {
                    self.accept(Command::ReportSession(SessionEvent::Ready), &Who::Host, &mut out).ok();
                    self.accept(Command::ReportSession(SessionEvent::Listed), &Who::Host, &mut out).ok();
                }
                // A turn may have been started meanwhile, or have waited since before the host was.
                let waiting = self.tip.chats.iter().filter_map(|chat| chat.active.as_ref());
                out.prompts = waiting.map(|active| active.id.clone()).collect();
                self.send(out).await?;
            }
            ToSession::Opened(Err(error)) => {
                self.backend = Backend::Failed;
                let mut out = Outbox::default();
                if self.tip.lifecycle == Lifecycle::Creating {
                    let failed = SessionEvent::CreationFailed(error.info());
                    self.accept(Command::ReportSession(failed), &Who::Host, &mut out).ok();
                    self.fail_turns(&error.info(), &mut out);
                    self.accept(Command::ReportSession(SessionEvent::Listed), &Who::Host, &mut out).ok();
                } else {
                    // The session is fine; its agent may start at the next prompt.
                    self.backend = Backend::Closed;
                    self.fail_turns(&error.info(), &mut out);
                }
                self.send(out).await?;
            }
            ToSession::Dispose(done) => {
                self.dispose().await?;
                // Whoever asked may have gone meanwhile.
                done.send(()).ok();
                return Ok(Flow::End);
            }
            ToSession::Stop(done) => {
                let grace = self.around.env.clock.sleep(self.around.config.limits.stop_grace);
                self.stopping = Some(Stopping { done: Some(done), grace: Some(grace) });
            }
        }
        Ok(Flow::On)
    }

    async fn dispatch(&mut self, dispatch: Dispatch) -> Result<(), Stopped> {
        let who = Who::Client(dispatch.origin.client.clone());
        let mut out = Outbox::default();
        // What a client wants has not happened while it cannot be stored: the session is put back then. Finished turns
        // are shared, so keeping it costs the running one.
        let before = self.tip.clone();
        let starts = matches!(dispatch.command, Ok(Command::StartTurn { .. } | Command::Enqueue { .. }));
        let accepted = match dispatch.command {
            Ok(_) if starts && self.stopping.is_some() => Err(Stopped.to_string()),
            Ok(command) => self.accept(command, &who, &mut out).map_err(|rejection| rejection.to_string()),
            Err(reason) => Err(reason),
        };
        let accepted = match accepted {
            Ok(()) => {
                let publication = out.publication(Some(dispatch.origin), Unwritten::Refused);
                let written = self.around.sequencer.publish_now(publication).await?;
                written.map(|seq| self.last_seq = seq).map_err(|error| error.to_string())
            }
            Err(reason) => Err(reason),
        };
        match accepted {
            Ok(()) => {
                self.act(out);
                Ok(())
            }
            Err(reason) => {
                self.tip = before;
                self.around.sequencer.tell(ToSequencer::Refuse((dispatch.refuse)(reason))).await
            }
        }
    }

    /// Checks a command against the tip; what it makes happen goes to the outbox.
    fn accept(&mut self, command: Command, who: &Who, out: &mut Outbox) -> Result<(), Rejection> {
        let agents = self.around.agents.borrow().clone();
        let agent = agents.iter().find(|agent| agent.provider == self.tip.provider);
        let batch = advance(&mut self.tip, agent, command, who, self.around.env.clock.now())?;
        for event in &batch.events {
            if let Change::Chat(_, chat, event) = &event.change {
                self.note(chat, event, who, out);
            }
        }
        out.events.extend(batch.events);
        Ok(())
    }

    /// Notes what an accepted event means for the agent. It is told when the event is written.
    fn note(&mut self, chat: &ChatId, event: &ChatEvent, who: &Who, out: &mut Outbox) {
        match event {
            ChatEvent::TurnStarted { turn, .. } => out.prompts.push(turn.clone()),
            ChatEvent::ToolCallConfirmed { request, decision, .. } => {
                out.decided.push((request.clone(), Answer::Permission(*decision)));
            }
            ChatEvent::InputAnswered { request, response, .. } => {
                out.decided.push((request.clone(), Answer::Question(response.clone())));
            }
            event if event.ends_turn() => {
                if let Some(turn) = event.turn() {
                    let ended = Ended { turn: turn.clone(), by_agent: *who == Who::Agent };
                    out.ended.push(ended);
                }
                let turn = self.tip.chat(chat).and_then(|state| state.turns.last().cloned());
                out.finished.extend(turn.map(|turn| (self.tip.id.clone(), chat.clone(), turn)));
            }
            _ => {}
        }
    }

    /// Publishes what happened by itself, then tells the agent. It happened whether it can be written or not, so it is
    /// held where it cannot.
    async fn send(&mut self, mut out: Outbox) -> Result<(), Stopped> {
        if !out.events.is_empty() {
            let publication = out.publication(None, Unwritten::Held);
            self.outstanding = Some(self.around.sequencer.publish(publication).await?);
        }
        self.act(out);
        Ok(())
    }

    /// Tells the agent what concerns it.
    fn act(&mut self, out: Outbox) {
        self.folder_due = true;
        for ended in out.ended {
            self.end(&ended);
        }
        for (request, answer) in out.decided {
            // The agent may have given up on it.
            match (self.awaited.remove(&request).map(|awaited| awaited.answer), answer) {
                (Some(AnswerTo::Permission(waiting)), Answer::Permission(decision)) => {
                    waiting.send(decision).ok();
                }
                (Some(AnswerTo::Question(waiting)), Answer::Question(response)) => {
                    waiting.send(response).ok();
                }
                (Some(_) | None, _) => {}
            }
        }
        for turn in out.prompts {
            self.prompt(&turn);
        }
    }

    /// Cancels what runs, lets the agent go, and takes the session out of state.
    async fn dispose(&mut self) -> Result<(), Stopped> {
        let mut out = Outbox::default();
        for chat in &mut self.tip.chats {
            chat.queued.clear();
        }
        for (chat, turn) in self.active_turns() {
            self.accept(Command::Report { chat, event: ChatEvent::TurnCancelled { turn } }, &Who::Host, &mut out).ok();
        }
        self.accept(Command::ReportSession(SessionEvent::Removed), &Who::Host, &mut out).ok();
        out.prompts.clear();
        let publication = out.publication(None, Unwritten::Held);
        // What is held is never refused.
        let published = self.around.sequencer.publish_now(publication).await?;
        self.last_seq = published.unwrap_or(self.last_seq);
        self.act(out);
        self.write_folder(Fate::Disposed).await;
        // Nothing is to be said of it any more.
        self.folder_due = false;
        match &self.backend {
            Backend::Opening(abort) => abort.abort(),
            Backend::Ready(agent) => {
                let agent = agent.clone();
                self.around.env.spawn.spawn(Box::pin(async move { agent.close().await }));
            }
            Backend::Closed | Backend::Failed => {}
        }
        Ok(())
    }

    /// Brings the session's folder up to date: the log, then what is beside it. What is in the journal is safe already,
    /// so a failure costs nothing but the journal's room.
    async fn write_folder(&mut self, fate: Fate) {
        let fs = self.around.env.sessions.clone();
        let written = async {
            self.log.catch_up(&self.tip).await?;
            let written = session_file::write(fs.as_ref(), &self.tip, self.last_seq, fate).await?;
            Ok::<_, SessionLogError>(written)
        };
        match written.await {
            Ok(true) => {
                let persisted = ToSequencer::Persisted(self.tip.id.clone(), self.last_seq);
                self.around.sequencer.tell(persisted).await.ok();
            }
            Ok(false) => {}
            Err(error) => {
                self.folder_due = true;
                tracing::warn!(session = %self.tip.id, %error, "the session's folder could not be written; it will be tried again");
            }
        }
    }

    /// Tells a host that stops when nothing runs and the folder is written; past the grace, whether it is or not.
    fn stop_when_idle(&mut self) {
        let at_rest = !self.folder_due && self.outstanding.is_none();
        if let Some(stopping) = &mut self.stopping
            && self.tip.chats.iter().all(|chat| chat.active.is_none())
            && (at_rest || stopping.grace.is_none())
            && let Some(done) = stopping.done.take()
        {
            done.send(()).ok();
        }
    }
}

/// What a step of the task makes happen, gathered so that it is published in one piece, and what the agent is told of
/// it afterwards.
#[derive(Default)]
struct Outbox {
    events: Vec<Event>,
    finished: Vec<(SessionId, ChatId, Arc<Turn>)>,
    ended: Vec<Ended>,
    decided: Vec<(RequestId, Answer)>,
    /// Turns that the agent is to begin.
    prompts: Vec<TurnId>,
}

/// A turn that is over.
struct Ended {
    turn: TurnId,
    by_agent: bool,
}

/// What a person answered.
enum Answer {
    Permission(Decision),
    Question(InputResponse),
}

impl Outbox {
    /// Takes the events out, to be published.
    fn publication(&mut self, origin: Option<Origin>, unwritten: Unwritten) -> Publication {
        Publication {
            events: std::mem::take(&mut self.events),
            origin,
            finished: std::mem::take(&mut self.finished),
            unwritten,
            done: None,
        }
    }
}

/// Waits for a publication that may not be under way, and gives its number.
async fn done(publication: Option<&mut oneshot::Receiver<Result<u64, NotWritten>>>) -> Option<u64> {
    match publication {
        // What is held is never refused, and a sequencer that ended is noticed elsewhere.
        Some(publication) => publication.await.ok()?.ok(),
        None => std::future::pending().await,
    }
}

/// Waits for an alarm that may not be set.
async fn ring(alarm: Option<&mut Task>) {
    match alarm {
        Some(alarm) => alarm.await,
        None => std::future::pending().await,
    }
}
