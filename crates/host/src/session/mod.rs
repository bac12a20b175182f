//! A session's task: validates what clients and the agent want against everything accepted so far (the tip), and
//! hands what happens to the sequencer.

mod reports;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{AbortHandle, abortable};
use grove_agents::{Agent, AgentError, AgentEvent, AgentSession, OpenSession, Prompt, TurnSink};
use grove_core::*;
use tokio::sync::{mpsc, oneshot, watch};

use self::reports::{Report, Reported};
use crate::config::Config;
use crate::env::{Env, Task};
use crate::sequencer::{Origin, Publication, Refusal, SequencerHandle, Stopped, ToSequencer};

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

/// Starts the task of a session, and its agent. Both wait until the session stands in state (`begun`).
pub(crate) fn start(
    tip: Session,
    agent: Arc<dyn Agent>,
    around: Surroundings,
    begun: oneshot::Receiver<()>,
) -> SessionHandle {
    let (inbox_sender, inbox) = mpsc::channel(INBOX);
    let (report_sender, reports) = mpsc::channel(REPORTS);
    let handle = SessionHandle { uri: tip.uri.clone(), inbox: inbox_sender.clone() };

    let opening = OpenSession {
        session: tip.id.clone(),
        model: tip.model.clone(),
        working_directories: tip.working_directories.clone(),
    };
    let (opened, abort_opening) = abortable(async move {
        let opened = AssertUnwindSafe(agent.open(opening)).catch_unwind().await;
        let opened = opened.unwrap_or_else(|_| Err(AgentError::Start("it broke down".to_owned())));
        // A session that was disposed meanwhile does not listen any more.
        inbox_sender.send(ToSession::Opened(opened)).await.ok();
    });
    let env = around.env.clone();
    let task = SessionTask {
        around,
        tip,
        inbox,
        report_sender,
        reports,
        backend: Backend::Opening(abort_opening),
        running: None,
        awaited: HashMap::new(),
        silence: None,
        last_report: Timestamp::default(),
        stopping: None,
    };
    let spawn = env.spawn.clone();
    env.spawn.spawn(Box::pin(async move {
        if begun.await.is_ok() {
            spawn.spawn(Box::pin(opened.map(|_| ())));
            task.run().await;
        }
    }));
    handle
}

struct SessionTask {
    around: Surroundings,
    /// The session with everything accepted so far.
    tip: Session,
    inbox: mpsc::Receiver<ToSession>,
    report_sender: mpsc::Sender<AgentEvent>,
    reports: mpsc::Receiver<AgentEvent>,
    backend: Backend,
    running: Option<Running>,
    /// Where the answers go that a person has not given yet.
    awaited: HashMap<RequestId, Awaited>,
    /// Rings when a running turn may have been silent for too long.
    silence: Option<Task>,
    last_report: Timestamp,
    stopping: Option<Stopping>,
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
                _ = self.reports.recv_many(&mut batch, REPORTS_AT_ONCE) => {
                    self.take_reports(batch.drain(..)).await
                }
                () = ring(self.silence.as_mut()) => self.check_silence().await,
                () = ring(self.stopping.as_mut().and_then(|stopping| stopping.grace.as_mut())) => {
                    self.fail_turn("hostStopped", "the host stopped before the turn ended").await
                }
            };
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
                self.accept(Command::ReportSession(SessionEvent::Ready), &Who::Host, &mut out).ok();
                self.accept(Command::ReportSession(SessionEvent::Listed), &Who::Host, &mut out).ok();
                // A turn may have been started meanwhile.
                let waiting = self.tip.chats.iter().filter_map(|chat| chat.active.as_ref());
                out.prompts = waiting.map(|active| active.id.clone()).collect();
                self.send(out, None).await?;
            }
            ToSession::Opened(Err(error)) => {
                self.backend = Backend::Failed;
                let mut out = Outbox::default();
                let failed = SessionEvent::CreationFailed(error.info());
                self.accept(Command::ReportSession(failed), &Who::Host, &mut out).ok();
                self.fail_turns(&error.info(), &mut out);
                self.accept(Command::ReportSession(SessionEvent::Listed), &Who::Host, &mut out).ok();
                self.send(out, None).await?;
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
        let starts = matches!(dispatch.command, Ok(Command::StartTurn { .. } | Command::Enqueue { .. }));
        let accepted = match dispatch.command {
            Ok(_) if starts && self.stopping.is_some() => Err(Stopped.to_string()),
            Ok(command) => self.accept(command, &who, &mut out).map_err(|rejection| rejection.to_string()),
            Err(reason) => Err(reason),
        };
        match accepted {
            Ok(()) => self.send(out, Some(dispatch.origin)).await,
            Err(reason) => self.around.sequencer.tell(ToSequencer::Refuse((dispatch.refuse)(reason))).await,
        }
    }

    /// Checks a command against the tip; what it makes happen goes to the outbox.
    fn accept(&mut self, command: Command, who: &Who, out: &mut Outbox) -> Result<(), Rejection> {
        let agents = self.around.agents.borrow().clone();
        let agent = agents.iter().find(|agent| agent.provider == self.tip.provider);
        let batch = advance(&mut self.tip, agent, command, who, self.around.env.clock.now())?;
        for event in &batch.events {
            if let Change::Chat(_, chat, event) = &event.change {
                self.react(chat, event, who, out);
            }
        }
        out.events.extend(batch.events);
        Ok(())
    }

    /// What an accepted event means for the agent.
    fn react(&mut self, chat: &ChatId, event: &ChatEvent, who: &Who, out: &mut Outbox) {
        match event {
            ChatEvent::TurnStarted { turn, .. } => out.prompts.push(turn.clone()),
            ChatEvent::ToolCallConfirmed { request, decision, .. } => {
                if let Some(Awaited { answer: AnswerTo::Permission(answer), .. }) = self.awaited.remove(request) {
                    // The agent may have given up on it.
                    answer.send(*decision).ok();
                }
            }
            ChatEvent::InputAnswered { request, response, .. } => {
                if let Some(Awaited { answer: AnswerTo::Question(answer), .. }) = self.awaited.remove(request) {
                    answer.send(response.clone()).ok();
                }
            }
            event if event.ends_turn() => {
                let running = self.running.take_if(|running| Some(&running.turn) == event.turn());
                // Where the agent itself says that the turn is over, there is nothing to stop.
                if let (Some(running), Backend::Ready(agent), false) = (running, &self.backend, *who == Who::Agent) {
                    running.abort.abort();
                    let agent = agent.clone();
                    let cancel = async move { agent.cancel(&running.turn).await };
                    self.around.env.spawn.spawn(Box::pin(cancel));
                }
                self.awaited.retain(|_, awaited| Some(&awaited.turn) != event.turn());
                self.silence = None;
                let turn = self.tip.chat(chat).and_then(|state| state.turns.last().cloned());
                out.finished.extend(turn.map(|turn| (self.tip.id.clone(), chat.clone(), turn)));
            }
            _ => {}
        }
    }

    /// Publishes what the outbox holds, then sets the agent to work.
    async fn send(&mut self, out: Outbox, origin: Option<Origin>) -> Result<(), Stopped> {
        if !out.events.is_empty() {
            let publication = Publication { events: out.events, origin, finished: out.finished, done: None };
            self.around.sequencer.tell(ToSequencer::Publish(publication)).await?;
        }
        for turn in out.prompts {
            self.prompt(&turn);
        }
        Ok(())
    }

    /// Gives a turn to the agent, where there is one yet.
    fn prompt(&mut self, turn: &TurnId) {
        let Backend::Ready(agent) = &self.backend else { return };
        let Some(active) = self.tip.chats.iter().find_map(|chat| chat.active_turn(turn)) else { return };
        let message = active.message.clone();
        let model = message.model.clone().or_else(|| self.tip.model.clone());
        let sink = TurnSink::new(turn.clone(), self.report_sender.clone());
        let agent = agent.clone();
        let (work, abort) = abortable(async move {
            let prompt = AssertUnwindSafe(agent.prompt(Prompt { message, model }, sink.clone()));
            let result = match prompt.catch_unwind().await {
                Ok(result) => result.map_err(|error| error.info()),
                Err(_) => Err(ErrorInfo::new("agentDied", "the agent broke down in the middle of the turn")),
            };
            // A session that is gone does not listen any more.
            sink.ended(result).await.ok();
        });
        self.running = Some(Running { turn: turn.clone(), abort });
        self.last_report = self.around.env.clock.now();
        self.silence = Some(self.around.env.clock.sleep(self.around.config.limits.turn_silence));
        self.around.env.spawn.spawn(Box::pin(work.map(|_| ())));
    }

    async fn take_reports(&mut self, reports: impl Iterator<Item = AgentEvent>) -> Result<Flow, Stopped> {
        self.last_report = self.around.env.clock.now();
        let mut out = Outbox::default();
        for report in reports {
            if let Err(error) = self.take_report(report, &mut out).await {
                tracing::warn!(session = %self.tip.id, %error, "a turn's content could not be stored");
                self.fail_turns(&ErrorInfo::new("storage", error.to_string()), &mut out);
            }
        }
        self.send(out, None).await?;
        Ok(Flow::On)
    }

    async fn take_report(&mut self, mut event: AgentEvent, out: &mut Outbox) -> Result<(), crate::env::StorageError> {
        let found = self.tip.chats.iter().find_map(|chat| Some((chat.id.clone(), chat.active_turn(event.turn())?)));
        // An agent may be late: its turn may be over.
        let Some((chat, active)) = found else { return Ok(()) };
        let Report { store, events } = reports::translate(&mut event, active, &self.around.config.limits);
        for (content, bytes) in store {
            self.around.env.storage.put(&self.tip.id, &content, bytes).await?;
        }
        for event in events {
            let command = match event {
                Reported::Chat(event) => Command::Report { chat: chat.clone(), event },
                Reported::Session(event) => Command::ReportSession(event),
            };
            if let Err(rejection) = self.accept(command, &Who::Agent, out) {
                tracing::debug!(session = %self.tip.id, %rejection, "an agent's report does not fit the session");
                // What was asked in it is not asked, which the agent learns by its answer never coming.
                return Ok(());
            }
        }
        match event {
            AgentEvent::ToolReady { turn, permission: Some(asked), .. } => {
                let answer = AnswerTo::Permission(asked.answer);
                self.awaited.insert(asked.request.id, Awaited { turn, answer });
            }
            AgentEvent::Asked { turn, request, answer, .. } => {
                self.awaited.insert(request, Awaited { turn, answer: AnswerTo::Question(answer) });
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends a turn whose agent has said nothing for too long, unless it waits for a person.
    async fn check_silence(&mut self) -> Result<Flow, Stopped> {
        let limit = self.around.config.limits.turn_silence;
        let waits = self.tip.chats.iter().filter_map(|chat| chat.active.as_ref()).any(|a| a.waits_for_person());
        let silent = self.around.env.clock.now().0.saturating_sub(self.last_report.0);
        let left = limit.saturating_sub(std::time::Duration::from_millis(silent));
        if waits || !left.is_zero() {
            let next = if waits { limit } else { left };
            self.silence = Some(self.around.env.clock.sleep(next));
            return Ok(Flow::On);
        }
        let message = format!("the agent said nothing for {} seconds", limit.as_secs());
        self.fail_turn("agentSilent", &message).await
    }

    async fn fail_turn(&mut self, kind: &str, message: &str) -> Result<Flow, Stopped> {
        let mut out = Outbox::default();
        self.fail_turns(&ErrorInfo::new(kind, message), &mut out);
        self.send(out, None).await?;
        Ok(Flow::On)
    }

    fn fail_turns(&mut self, error: &ErrorInfo, out: &mut Outbox) {
        for (chat, turn) in self.active_turns() {
            let event = ChatEvent::TurnFailed { turn, error: error.clone() };
            self.accept(Command::Report { chat, event }, &Who::Host, out).ok();
        }
    }

    fn active_turns(&self) -> Vec<(ChatId, TurnId)> {
        let active = |chat: &Chat| Some((chat.id.clone(), chat.active.as_ref()?.id.clone()));
        self.tip.chats.iter().filter_map(active).collect()
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
        let publication = Publication { events: out.events, origin: None, finished: out.finished, done: None };
        self.around.sequencer.publish_now(publication).await?;
        match &self.backend {
            Backend::Opening(abort) => abort.abort(),
            Backend::Ready(agent) => {
                let agent = agent.clone();
                self.around.env.spawn.spawn(Box::pin(async move { agent.close().await }));
            }
            Backend::Failed => {}
        }
        self.around.env.storage.remove(&self.tip.id).await;
        Ok(())
    }

    fn stop_when_idle(&mut self) {
        if let Some(stopping) = &mut self.stopping
            && self.tip.chats.iter().all(|chat| chat.active.is_none())
        {
            stopping.grace = None;
            if let Some(done) = stopping.done.take() {
                done.send(()).ok();
            }
        }
    }
}

/// What a step of the task makes happen, gathered so that it is published in one piece.
#[derive(Default)]
struct Outbox {
    events: Vec<Event>,
    finished: Vec<(SessionId, ChatId, Arc<Turn>)>,
    /// Turns that the agent is to begin.
    prompts: Vec<TurnId>,
}

/// Waits for an alarm that may not be set.
async fn ring(alarm: Option<&mut Task>) {
    match alarm {
        Some(alarm) => alarm.await,
        None => std::future::pending().await,
    }
}
