//! The agents of a session's chats: their connections, running turns, pending answers and silence.
//!
//! This part starts, prompts and stops agents. It reads the session and never changes it: the session's task turns
//! reports into events.

mod answers;
mod connection;
mod silence;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{Either, abortable, select};
use grove_agents::{
    Agent, AgentError, AgentEvent, AgentSession, AgentStart, ChatSink, ClientTools, CloseReason, OfferedTool,
    OpenSession, PendingAnswer, PendingRequest, Prompt, Report, Resumption, TurnSurvival,
};
use grove_core::*;
use grove_metrics::{AgentStartLabel, Metrics, SlowLabel};
use grove_work::local_path;
use tokio::sync::{mpsc, oneshot, watch};

use self::answers::PendingAnswers;
pub(super) use self::answers::{AnswerSender, RequestAnswer};
use self::connection::{AgentConnection, ChatAgent, RunningTurn, close};
pub(super) use self::silence::SilenceReport;
use super::memory::LogMemory;
use super::pastes::with_pictures;
use super::spills::SessionSpills;
use super::{EndedTurn, SessionSetup, ToSession};
use crate::config::Limits;
use crate::env::{Env, Spawn, Task};

/// The reports that an agent may be ahead of the host.
pub const REPORTS: usize = 256;
/// The reports that are published together.
const REPORTS_AT_ONCE: usize = 64;

/// The agents of a session's chats.
pub(super) struct ChatAgents {
    agent: Arc<dyn Agent>,
    /// The inbox of the session's task, for the result of an agent's start.
    inbox: mpsc::WeakSender<ToSession>,
    report_sender: mpsc::Sender<Report>,
    reports: mpsc::Receiver<Report>,
    /// The tools that clients offer.
    client_tools: watch::Sender<Arc<[OfferedTool]>>,
    /// The agent connection of each chat.
    connections: HashMap<ChatId, ChatAgent>,
    answers: PendingAnswers,
    /// Turns from before the host's start that continue when the agent is back, with their progress.
    resumed: HashMap<TurnId, Resumption>,
    /// The frame cursors that are being published.
    unstored: HashMap<ChatId, FrameCursor>,
    /// Fires when a running turn may have been silent for too long.
    silence: Option<Task>,
}

/// The other parts of a session, as its agents need them.
#[derive(Clone, Copy)]
pub(super) struct AgentContext<'a> {
    pub(super) session: &'a Session,
    pub(super) env: &'a Env,
    pub(super) limits: &'a Limits,
    pub(super) spills: &'a SessionSpills,
    pub(super) setup: &'a SessionSetup,
    /// Its working directories may be on another machine.
    pub(super) may_lack_folders: bool,
}

/// The next event of a session's agents.
pub(super) enum AgentsEvent {
    /// Reports to be published together.
    Reports(Vec<Report>),
    /// A running turn may have been silent for too long.
    SilenceDue,
}

/// Says whether the session's creation waits for this chat's agent.
pub(super) fn is_being_created(session: &Session, chat: &ChatId) -> bool {
    session.lifecycle == Lifecycle::Creating && chat.as_str() == Session::MAIN_CHAT
}

/// Says whether an agent whose turns survive like this continues a turn after a restart of the host.
pub(super) fn continues(session: &Session, chat: &ChatId, turn: &TurnId, survival: TurnSurvival) -> bool {
    let Some(active) = session.chat(chat).and_then(|chat| chat.active_turn(turn)) else { return false };
    match survival {
        TurnSurvival::Nothing => false,
        TurnSurvival::PendingRequest => active.waits_for_person(),
        TurnSurvival::Running => true,
    }
}

impl ChatAgents {
    pub(super) fn new(agent: Arc<dyn Agent>, inbox: mpsc::WeakSender<ToSession>) -> Self {
        let (report_sender, reports) = mpsc::channel(REPORTS);
        Self {
            agent,
            inbox,
            report_sender,
            reports,
            client_tools: watch::Sender::new(Arc::default()),
            connections: HashMap::new(),
            answers: PendingAnswers::default(),
            resumed: HashMap::new(),
            unstored: HashMap::new(),
            silence: None,
        }
    }

    /// The agent that all chats of the session use.
    pub(super) fn agent(&self) -> &dyn Agent {
        self.agent.as_ref()
    }

    /// Waits for the next event. Reports are only accepted if `takes_reports` is set. Cancelling it loses nothing.
    pub(super) async fn next(&mut self, takes_reports: bool) -> AgentsEvent {
        let Self { reports, silence, .. } = self;
        let mut batch = Vec::new();
        let silence = async {
            match silence {
                Some(silence) => silence.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = reports.recv_many(&mut batch, REPORTS_AT_ONCE), if takes_reports => AgentsEvent::Reports(batch),
            () = silence => AgentsEvent::SilenceDue,
        }
    }

    fn connection(&mut self, chat: &ChatId) -> &mut ChatAgent {
        self.connections.entry(chat.clone()).or_default()
    }

    /// Says whether a chat has no agent, and none is starting.
    pub(super) fn is_closed(&self, chat: &ChatId) -> bool {
        self.connections.get(chat).is_none_or(|found| matches!(found.backend, AgentConnection::Closed))
    }

    /// Says whether agents work, start or stop, or something is still to be passed to one.
    pub(super) fn is_busy(&mut self) -> bool {
        let owes = !self.answers.is_empty() || !self.resumed.is_empty() || !self.reports.is_empty();
        owes || self.connections.values_mut().any(ChatAgent::is_busy)
    }

    /// Has the first agent of a chat continue its own copy of another conversation.
    pub(super) fn inherit(&mut self, chat: &ChatId, copy: oneshot::Receiver<Option<String>>) {
        self.connection(chat).inherits = Some(copy);
    }

    /// Tells the agents which tools clients offer.
    pub(super) fn offer_tools(&self, session: &Session) {
        let offered = offered_tools(session);
        self.client_tools.send_if_modified(|known| {
            let differs = **known != *offered;
            if differs {
                *known = offered.into();
            }
            differs
        });
    }

    /// Starts the agent for a chat. The task gets [`ToSession::AgentOpened`].
    pub(super) fn open(&mut self, chat: &ChatId, context: AgentContext<'_>) {
        let AgentContext { session, env, limits, spills, setup, may_lack_folders } = context;
        self.offer_tools(session);
        let mut opening = OpenSession {
            session: session.id.clone(),
            chat: chat.clone(),
            model: session.model.clone(),
            working_directories: session.working_directories.clone(),
            agent_session_id: session.chat(chat).and_then(|chat| chat.agent_session.clone()),
            settings: session.config.as_ref().map(|config| config.values.clone()).unwrap_or_default(),
            reports: ChatSink::new(chat.clone(), self.report_sender.clone()),
            spills: Arc::new(spills.clone()),
            start: AgentStart::FirstTurn,
            setup: Arc::default(),
            client_tools: ClientTools::new(self.client_tools.subscribe()),
        };
        let limit = limits.creation;
        let starts_now = self.starts_now(session, chat);
        if starts_now {
            // A little less, so that the agent itself reports why it did not start.
            opening.start = AgentStart::Now { within: limit - limit / 10 };
        }
        let late = starts_now.then(|| env.clock.sleep(limit));
        let (agent, inbox, at, spawn) = (self.agent.clone(), self.inbox.clone(), chat.clone(), env.spawn.clone());
        let (metrics, agent_id) = (env.metrics.clone(), session.agent.clone());
        let setup = setup.clone();
        let connection = self.connection(chat);
        connection.has_old_setup = false;
        let is_again = std::mem::replace(&mut connection.was_opened, true);
        let kind = if is_again { AgentStartLabel::Again } else { AgentStartLabel::First };
        let (leaving, inherits) = (connection.leaving.take(), connection.inherits.take());
        let (opened, abort) = abortable(async move {
            if let Some(leaving) = leaving {
                // It is gone, one way or the other.
                leaving.await.ok();
            }
            if let Some(inherits) = inherits
                && let Ok(Some(copy)) = inherits.await
            {
                // The agent reports its id of a conversation only if that changes.
                opening.reports.report(vec![AgentEvent::AgentSessionId(copy.clone())], None).await.ok();
                opening.agent_session_id = Some(copy);
            }
            if may_lack_folders {
                opening.working_directories = here(spawn.as_ref(), opening.working_directories).await;
            }
            let started = Instant::now();
            let opened = async {
                opening.setup = setup.get().await.map_err(|error| AgentError::Start(error.to_string()))?;
                agent.open(opening).await
            };
            let opened = Box::pin(AssertUnwindSafe(opened).catch_unwind());
            let opened = match late {
                None => opened.await,
                Some(late) => match select(opened, late).await {
                    Either::Left((opened, _)) => opened,
                    Either::Right(((), _)) => {
                        let how = format!("it was not ready within {} s", limit.as_secs_f32());
                        Ok(Err(AgentError::Start(how)))
                    }
                },
            };
            let opened = opened.unwrap_or_else(|_| Err(AgentError::Start("it crashed".to_owned())));
            note_start(&metrics, &agent_id, kind, started.elapsed(), opened.is_ok());
            // A session that was disposed meanwhile does not listen any more.
            if let Some(inbox) = inbox.upgrade() {
                inbox.send(ToSession::AgentOpened(at, opened)).await.ok();
            }
        });
        self.connection(chat).backend = AgentConnection::Opening(abort);
        env.spawn.spawn(Box::pin(opened.map(|_| ())));
    }

    /// Says whether a chat's agent starts with its session.
    ///
    /// A session with a conversation already (a fork, an import, one of an earlier host) waits for its next turn
    /// instead.
    fn starts_now(&self, session: &Session, chat: &ChatId) -> bool {
        let Some(state) = session.chat(chat) else { return false };
        let is_resumed = state.active.as_ref().is_some_and(|active| self.resumed.contains_key(&active.id));
        let is_empty = state.origin.is_none() && state.turns.is_empty() && !state.has_older_turns;
        is_being_created(session, chat) && is_empty && !is_resumed
    }

    /// Takes over an agent that has started.
    pub(super) fn opened(&mut self, chat: &ChatId, agent: Arc<dyn AgentSession>, spawn: &dyn Spawn) {
        let connection = self.connection(chat);
        let settings = std::mem::take(&mut connection.set_meanwhile);
        connection.backend = AgentConnection::Ready(agent.clone());
        if connection.has_old_setup {
            // The next one gets the settings when it starts.
            connection.release(CloseReason::Replaced, spawn);
            return;
        }
        if !settings.is_empty() {
            spawn.spawn(Box::pin(async move { agent.configure(settings).await }));
        }
    }

    /// Notes that an agent did not start.
    pub(super) fn failed_to_open(&mut self, chat: &ChatId) {
        let connection = self.connection(chat);
        connection.backend = AgentConnection::Closed;
        connection.set_meanwhile.clear();
    }

    /// Sends a turn to the agent, or starts the agent first.
    pub(super) fn prompt(&mut self, chat: &ChatId, turn: &TurnId, context: AgentContext<'_>) {
        let AgentContext { session, env, limits, spills, .. } = context;
        let agent = match &self.connection(chat).backend {
            AgentConnection::Ready(agent) => agent.clone(),
            AgentConnection::Closed => return self.open(chat, context),
            // It gets the turn when it is ready.
            AgentConnection::Opening(_) => return,
        };
        let Some(active) = session.chat(chat).and_then(|state| state.active_turn(turn)) else { return };
        let message = active.message.clone();
        let model = message.model.clone().or_else(|| session.model.clone());
        let client_tools = offered_tools(session);
        let sink = ChatSink::new(chat.clone(), self.report_sender.clone()).turn(turn.clone());
        let resumed = self.resumed.remove(turn);
        let memory = Arc::new(LogMemory::new(self.inbox.clone(), chat.clone()));
        let (spills, most) = (spills.clone(), limits.message_bytes);
        let (work, abort) = abortable(async move {
            let message = with_pictures(message, &spills, most).await;
            let prompt = Prompt { message, model, client_tools, memory };
            let work = match resumed {
                None => agent.prompt(prompt, sink.clone()),
                Some(from) => agent.resume(prompt, from, sink.clone()),
            };
            let result = match AssertUnwindSafe(work).catch_unwind().await {
                Ok(result) => result.map_err(|error| error.info()),
                Err(_) => Err(ErrorInfo::new("agentDied", "the agent crashed in the middle of the turn")),
            };
            // A session that is gone does not listen any more.
            sink.ended(result).await.ok();
        });
        let last_report = env.clock.now();
        self.connection(chat).running = Some(RunningTurn { turn: turn.clone(), abort, last_report });
        self.restart_silence(chat, env, limits);
        env.spawn.spawn(Box::pin(work.map(|_| ())));
    }

    /// Restarts the agent's silence: earlier waiting was not its own.
    fn restart_silence(&mut self, chat: &ChatId, env: &Env, limits: &Limits) {
        let now = env.clock.now();
        if let Some(running) = &mut self.connection(chat).running {
            running.last_report = now;
            self.silence = Some(env.clock.sleep(limits.turn_quiet));
        }
    }

    /// Notes that an agent has reported something about its running turn.
    pub(super) fn note_report(&mut self, chat: &ChatId, turn: Option<&TurnId>, now: Timestamp) {
        let running = self.connections.get_mut(chat).and_then(|connection| connection.running.as_mut());
        if let Some(running) = running.filter(|running| turn == Some(&running.turn)) {
            running.last_report = now;
        }
    }

    /// Looks for silent turns, and sets the time to look again.
    pub(super) fn check_silence(&mut self, session: &Session, env: &Env, limits: &Limits) -> SilenceReport {
        let running = self.connections.iter().filter_map(|(chat, connection)| {
            let running = connection.running.as_ref()?;
            Some((chat, &running.turn, running.last_report))
        });
        let report = SilenceReport::of(running, session, env.clock.now(), limits);
        self.silence = Some(env.clock.sleep(report.next));
        report
    }

    /// Sends the agents changed settings.
    pub(super) fn configure(&mut self, settings: &Extra, spawn: &dyn Spawn) {
        for connection in self.connections.values_mut() {
            let settings = settings.clone();
            match &connection.backend {
                AgentConnection::Ready(agent) => {
                    let agent = agent.clone();
                    spawn.spawn(Box::pin(async move { agent.configure(settings).await }));
                }
                // It got the earlier settings when it started to open.
                AgentConnection::Opening(_) => connection.set_meanwhile.extend(settings),
                AgentConnection::Closed => {}
            }
        }
    }

    /// Tells the agent of the main chat the title that a person gave the session.
    pub(super) fn set_title(&mut self, title: String, spawn: &dyn Spawn) {
        let Some(connection) = self.connections.get(&ChatId::from(Session::MAIN_CHAT)) else { return };
        // An agent that is not there has no session to rename.
        if let AgentConnection::Ready(agent) = &connection.backend {
            let agent = agent.clone();
            spawn.spawn(Box::pin(async move { agent.set_title(title).await }));
        }
    }

    /// Notes that an agent waits for an answer.
    pub(super) fn await_answer(&mut self, chat: &ChatId, turn: &TurnId, request: RequestId, sender: AnswerSender) {
        self.answers.insert(chat, turn, request, sender);
    }

    /// Passes an answer to the agent that waits for it.
    pub(super) fn answer(&mut self, request: &(ChatId, RequestId), answer: RequestAnswer, context: AgentContext<'_>) {
        let AgentContext { env, limits, spills, .. } = context;
        if self.answers.deliver(request, answer, spills, env.spawn.as_ref()) {
            self.restart_silence(&request.0, env, limits);
        }
    }

    /// Releases the resources of a turn.
    pub(super) fn end(&mut self, ended: &EndedTurn, spawn: &dyn Spawn) {
        let connection = self.connection(&ended.chat);
        let running = connection.running.take_if(|running| running.turn == ended.turn);
        // If the agent itself ended the turn, there is nothing to stop.
        if let (Some(running), AgentConnection::Ready(agent), false) = (running, &connection.backend, ended.by_agent) {
            running.abort.abort();
            let agent = agent.clone();
            spawn.spawn(Box::pin(async move { agent.cancel(&running.turn).await }));
        }
        self.answers.drop_turn(&ended.turn);
        self.resumed.remove(&ended.turn);
        self.connection(&ended.chat).release_old_setup(spawn);
        if self.connections.values().all(|connection| connection.running.is_none()) {
            self.silence = None;
        }
    }

    /// The agent and the turn that it works on, if it accepts messages for it.
    pub(super) fn steerable(&self, chat: &ChatId) -> Option<(Arc<dyn AgentSession>, TurnId)> {
        let connection = self.connections.get(chat)?;
        let agent = connection.agent().filter(|agent| agent.can_steer())?;
        Some((agent, connection.running.as_ref()?.turn.clone()))
    }

    /// Prepares a turn from before the host's start, which continues when its agent is back.
    ///
    /// Answers that come before then are delivered. An agent that survived the host may have missed an answer given just
    /// before the end: those are sent again.
    pub(super) fn resume(
        &mut self,
        session: &Session,
        chat: &ChatId,
        turn: &TurnId,
        mark: Option<FrameCursor>,
        survival: TurnSurvival,
    ) {
        let Some(active) = session.chat(chat).and_then(|chat| chat.active_turn(turn)) else { return };
        let mut waiting = Vec::new();
        for part in active.parts() {
            if let Some((request, sender, answer_from)) = pending_request(part) {
                self.answers.insert(chat, turn, request.clone(), sender);
                waiting.push(PendingRequest { request, answer_from });
            }
            if survival == TurnSurvival::Running
                && let Some((request, sender, answer_from)) = client_result(part)
            {
                if let Some(sender) = sender {
                    self.answers.insert(chat, turn, request.clone(), sender);
                }
                waiting.push(PendingRequest { request, answer_from });
            }
        }
        if survival == TurnSurvival::Running {
            waiting.extend(active.permission_verdicts().map(|(request, call, verdict)| {
                let (answer, answered) = oneshot::channel();
                // The receiver is here.
                answer.send(verdict).ok();
                PendingRequest { request, answer_from: PendingAnswer::Permission(call, answered) }
            }));
        }
        self.resumed.insert(turn.clone(), Resumption { waiting, mark });
    }

    /// Notes the frame cursors of reports that are being published.
    pub(super) fn publishing(&mut self, cursors: HashMap<ChatId, FrameCursor>) {
        self.unstored.extend(cursors);
    }

    /// Tells agents that published reports are stored and need not be kept any longer.
    pub(super) fn stored(&mut self) {
        for (chat, mark) in std::mem::take(&mut self.unstored) {
            if let Some(agent) = self.connections.get(&chat).and_then(ChatAgent::agent) {
                agent.stored(&mark);
            }
        }
    }

    /// Has a chat's next turn begin with a new agent: this one remembers another conversation, or works elsewhere.
    pub(super) fn restart(&mut self, chat: &ChatId, spawn: &dyn Spawn) {
        if let Some(connection) = self.connections.get_mut(chat) {
            connection.release(CloseReason::Replaced, spawn);
        }
    }

    /// Replaces the agent of every chat before its next turn, including agents that are starting.
    pub(super) fn restart_all(&mut self, spawn: &dyn Spawn) {
        for connection in self.connections.values_mut() {
            if let AgentConnection::Opening(abort) = &connection.backend {
                abort.abort();
                connection.backend = AgentConnection::Closed;
            }
            connection.release(CloseReason::Replaced, spawn);
        }
    }

    /// Has every agent start again with the new setup: idle ones before their next turn, others when their turn has ended.
    pub(super) fn setup_changed(&mut self, spawn: &dyn Spawn) {
        for connection in self.connections.values_mut() {
            connection.has_old_setup = !matches!(connection.backend, AgentConnection::Closed);
            connection.release_old_setup(spawn);
        }
    }

    /// Stops the agents of an idle session. Returns whether there were any.
    pub(super) fn release_all(&mut self, spawn: &dyn Spawn) -> bool {
        let mut is_any_released = false;
        for connection in self.connections.values_mut() {
            is_any_released |= connection.release(CloseReason::Detached, spawn);
        }
        is_any_released
    }

    /// Stops the agent of a removed chat. The receiver resolves when it is gone.
    pub(super) fn remove(&mut self, chat: &ChatId, spawn: &dyn Spawn) -> Option<oneshot::Receiver<()>> {
        match self.connections.remove(chat)?.backend {
            AgentConnection::Opening(abort) => abort.abort(),
            AgentConnection::Ready(agent) => return Some(close(agent, CloseReason::Removed, spawn)),
            AgentConnection::Closed => {}
        }
        None
    }

    /// Stops the agents of a disposed session. The receivers resolve when they are gone.
    pub(super) fn remove_all(&mut self, spawn: &dyn Spawn) -> Vec<oneshot::Receiver<()>> {
        let chats: Vec<ChatId> = self.connections.keys().cloned().collect();
        chats.iter().filter_map(|chat| self.remove(chat, spawn)).collect()
    }

    /// Aborts running turns and starts of agents without a report: the next host continues them, or nobody does.
    pub(super) fn abort_all(&self) {
        for connection in self.connections.values() {
            connection.running.iter().for_each(|running| running.abort.abort());
            if let AgentConnection::Opening(opening) = &connection.backend {
                opening.abort();
            }
        }
    }

    /// Aborts running turns without a report: the task ends.
    pub(super) fn abort_turns(&mut self) {
        let running = self.connections.values_mut().filter_map(|connection| connection.running.take());
        running.for_each(|running| running.abort.abort());
    }

    /// The connected agents.
    pub(super) fn connected(&self) -> Vec<Arc<dyn AgentSession>> {
        self.connections.values().filter_map(ChatAgent::agent).collect()
    }

    /// The connected agent of a chat.
    pub(super) fn connected_to(&self, chat: &ChatId) -> Option<Arc<dyn AgentSession>> {
        self.connections.get(chat)?.agent()
    }
}

/// The pending request of a part: its id, the sender of its answer, and the receiver for the agent.
fn pending_request(part: &Part) -> Option<(RequestId, AnswerSender, PendingAnswer)> {
    match part {
        Part::ToolCall(call) => match &call.status {
            ToolCallStatus::PendingConfirmation(pending) => {
                let (answer, answered) = oneshot::channel();
                let answer_from = PendingAnswer::Permission(call.id.clone(), answered);
                Some((pending.id.clone(), AnswerSender::Permission(answer), answer_from))
            }
            ToolCallStatus::PendingResultConfirmation(_) => {
                let (answer, answered) = oneshot::channel();
                let answer_from = PendingAnswer::Result(call.id.clone(), answered);
                Some((call.id.as_str().into(), AnswerSender::Result(answer), answer_from))
            }
            _ => None,
        },
        Part::InputRequest(input) if input.outcome.is_none() => {
            let (answer, answered) = oneshot::channel();
            Some((input.id.clone(), AnswerSender::Question(answer), PendingAnswer::Question(answered)))
        }
        _ => None,
    }
}

/// The result of a call that a client runs: the one that is there, or the sender of one that is still to come.
fn client_result(part: &Part) -> Option<(RequestId, Option<AnswerSender>, PendingAnswer)> {
    let Part::ToolCall(call) = part else { return None };
    call.client.as_ref()?;
    let (sender, result) = oneshot::channel();
    let answer_from = PendingAnswer::Result(call.id.clone(), result);
    let request = RequestId::from(call.id.as_str());
    match &call.status {
        ToolCallStatus::Running | ToolCallStatus::PendingConfirmation(_) => {
            Some((request, Some(AnswerSender::Result(sender)), answer_from))
        }
        ToolCallStatus::Completed(result) => {
            // The receiver is here.
            sender.send(result.clone()).ok();
            Some((request, None, answer_from))
        }
        _ => None,
    }
}

/// The tools that the clients of a session offer.
fn offered_tools(session: &Session) -> Vec<OfferedTool> {
    let offered = session.active_clients.iter().flat_map(|client| {
        client.tools.iter().map(|tool| OfferedTool { client: client.client.clone(), tool: tool.clone() })
    });
    offered.collect()
}

/// The folders that are on this machine.
///
/// A storage client's folder need not be: its agent then works like that of a session without any.
async fn here(spawn: &dyn Spawn, folders: Vec<String>) -> Vec<String> {
    let is_here = |folder: &String| local_path(folder).is_ok_and(|path| path.is_dir());
    let looked = spawn.run_blocking(move || folders.into_iter().filter(is_here).collect()).await;
    looked.unwrap_or_default()
}

/// Counts the start of an agent, and logs it if it was slow.
fn note_start(metrics: &Metrics, agent: &AgentId, kind: AgentStartLabel, took: Duration, is_ready: bool) {
    metrics.agent_starts.of(kind).increment();
    metrics.agent_start_seconds.observe(took);
    if !is_ready {
        metrics.agent_start_failures.increment();
    }
    if metrics.is_slow(SlowLabel::AgentStart, took) {
        // Many agents take a second: that is no reason to warn.
        tracing::info!(%agent, ms = took.as_millis() as u64, is_ready, "slow: the start of an agent");
    }
}
