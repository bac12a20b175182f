//! A session's agent at work: how it is started, given turns, listened to, and stopped.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::abortable;
use grove_agents::{AgentError, AgentEvent, Awaits, OpenSession, Prompt, TurnSink, Waiting};
use grove_core::*;
use grove_fs::FsError;
use tokio::sync::oneshot;

use super::reports::{self, Report, Reported};
use super::{AnswerTo, Awaited, Backend, Ended, Flow, Outbox, Running, SessionTask, ToSession};
use crate::sequencer::Stopped;
use crate::store::content;

impl SessionTask {
    /// Starts the agent.
    pub(super) fn open(&mut self) {
        let opening = OpenSession {
            session: self.tip.id.clone(),
            model: self.tip.model.clone(),
            working_directories: self.tip.working_directories.clone(),
        };
        let (agent, inbox) = (self.agent.clone(), self.inbox_sender.clone());
        let (opened, abort) = abortable(async move {
            let opened = AssertUnwindSafe(agent.open(opening)).catch_unwind().await;
            let opened = opened.unwrap_or_else(|_| Err(AgentError::Start("it broke down".to_owned())));
            // A session that was disposed meanwhile does not listen any more.
            if let Some(inbox) = inbox.upgrade() {
                inbox.send(ToSession::Opened(opened)).await.ok();
            }
        });
        self.backend = Backend::Opening(abort);
        self.around.env.spawn.spawn(Box::pin(opened.map(|_| ())));
    }

    /// Gives a turn to the agent, where there is one yet.
    pub(super) fn prompt(&mut self, turn: &TurnId) {
        let agent = match &self.backend {
            Backend::Ready(agent) => agent.clone(),
            Backend::Closed => return self.open(),
            // It is given the turn when it is there.
            Backend::Opening(_) | Backend::Failed => return,
        };
        let Some(active) = self.tip.chats.iter().find_map(|chat| chat.active_turn(turn)) else { return };
        let message = active.message.clone();
        let model = message.model.clone().or_else(|| self.tip.model.clone());
        let sink = TurnSink::new(turn.clone(), self.report_sender.clone());
        let waiting = self.resumed.remove(turn).unwrap_or_default();
        let (work, abort) = abortable(async move {
            let prompt = Prompt { message, model };
            let work = match waiting.is_empty() {
                true => agent.prompt(prompt, sink.clone()),
                false => agent.resume(prompt, waiting, sink.clone()),
            };
            let result = match AssertUnwindSafe(work).catch_unwind().await {
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

    /// Lets go of what a turn had.
    pub(super) fn end(&mut self, ended: &Ended) {
        let running = self.running.take_if(|running| running.turn == ended.turn);
        // Where the agent itself says that the turn is over, there is nothing to stop.
        if let (Some(running), Backend::Ready(agent), false) = (running, &self.backend, ended.by_agent) {
            running.abort.abort();
            let agent = agent.clone();
            let cancel = async move { agent.cancel(&running.turn).await };
            self.around.env.spawn.spawn(Box::pin(cancel));
        }
        self.awaited.retain(|_, awaited| awaited.turn != ended.turn);
        self.resumed.remove(&ended.turn);
        self.silence = None;
    }

    /// Goes on with a session from before the host's start: a turn that waits for a person goes on waiting where its
    /// agent can go on, any other is closed with what had arrived.
    pub(super) async fn pick_up(&mut self) -> Result<(), Stopped> {
        let mut out = Outbox::default();
        for (chat, turn) in self.active_turns() {
            let Some(active) = self.tip.chat(&chat).and_then(|chat| chat.active_turn(&turn)) else { continue };
            if active.waits_for_person() && self.agent.can_resume() {
                // From now on, so that an answer that comes before the agent is back finds its way.
                let waiting = self.waiting_in(&turn);
                self.resumed.insert(turn, waiting);
                continue;
            }
            // A turn that its agent never saw can be given to it now.
            if self.tip.lifecycle == Lifecycle::Creating {
                continue;
            }
            self.interrupt(&chat, &turn, &mut out);
        }
        self.send(out).await?;
        // A host that was killed may have left the folder behind.
        self.folder_due = true;
        let needs_agent = self.tip.lifecycle == Lifecycle::Creating || !self.active_turns().is_empty();
        if needs_agent && matches!(self.backend, Backend::Closed) {
            self.open();
        }
        Ok(())
    }

    /// What a turn from before the host's start waits for. The answers will come here.
    pub(super) fn waiting_in(&mut self, turn: &TurnId) -> Vec<Waiting> {
        let Some(active) = self.tip.chats.iter().find_map(|chat| chat.active_turn(turn)) else { return Vec::new() };
        let mut waiting = Vec::new();
        for part in active.parts() {
            let (request, answer, awaits) = match part {
                Part::ToolCall(call) => {
                    let ToolCallStatus::PendingConfirmation(pending) = &call.status else { continue };
                    let (answer, answered) = oneshot::channel();
                    (&pending.id, AnswerTo::Permission(answer), Awaits::Permission(call.id.clone(), answered))
                }
                Part::InputRequest(input) if input.response.is_none() => {
                    let (answer, answered) = oneshot::channel();
                    (&input.id, AnswerTo::Question(answer), Awaits::Question(answered))
                }
                _ => continue,
            };
            self.awaited.insert(request.clone(), Awaited { turn: turn.clone(), answer });
            waiting.push(Waiting { request: request.clone(), awaits });
        }
        waiting
    }

    /// Ends a turn that the host's end cut off. Its open tool calls are marked as interrupted.
    pub(super) fn interrupt(&mut self, chat: &ChatId, turn: &TurnId, out: &mut Outbox) {
        let active = self.tip.chat(chat).and_then(|chat| chat.active_turn(turn));
        let running = active.iter().flat_map(|active| active.parts()).filter_map(|part| match part {
            Part::ToolCall(call) if call.status == ToolCallStatus::Running => Some(ChatEvent::ToolCallCompleted {
                turn: turn.clone(),
                call: call.id.clone(),
                result: ToolResult {
                    success: false,
                    past_tense_message: format!("{} (interrupted)", call.invocation_message),
                    output: None,
                },
            }),
            _ => None,
        });
        let mut events: Vec<_> = running.collect();
        let error = ErrorInfo::new("interrupted", "the host ended in the middle of the turn");
        events.push(ChatEvent::TurnFailed { turn: turn.clone(), error });
        for event in events {
            self.accept(Command::Report { chat: chat.clone(), event }, &Who::Host, out).ok();
        }
    }

    pub(super) async fn take_reports(&mut self, reports: impl Iterator<Item = AgentEvent>) -> Result<Flow, Stopped> {
        self.last_report = self.around.env.clock.now();
        let mut out = Outbox::default();
        for report in reports {
            if let Err(error) = self.take_report(report, &mut out).await {
                tracing::warn!(session = %self.tip.id, %error, "a turn's content could not be stored");
                self.fail_turns(&ErrorInfo::new("storage", error.to_string()), &mut out);
            }
        }
        self.send(out).await?;
        Ok(Flow::On)
    }

    pub(super) async fn take_report(&mut self, mut event: AgentEvent, out: &mut Outbox) -> Result<(), FsError> {
        let found = self.tip.chats.iter().find_map(|chat| Some((chat.id.clone(), chat.active_turn(event.turn())?)));
        // An agent may be late: its turn may be over.
        let Some((chat, active)) = found else { return Ok(()) };
        let Report { store, events } = reports::translate(&mut event, active, &self.around.config.limits);
        for (id, bytes) in store {
            content::put(self.around.env.sessions.as_ref(), &self.tip.id, &id, &bytes).await?;
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
    pub(super) async fn check_silence(&mut self) -> Result<Flow, Stopped> {
        let limit = self.around.config.limits.turn_silence;
        let waits = self.tip.chats.iter().filter_map(|chat| chat.active.as_ref()).any(|a| a.waits_for_person());
        let silent = self.around.env.clock.now().0.saturating_sub(self.last_report.0);
        let left = limit.saturating_sub(Duration::from_millis(silent));
        if waits || !left.is_zero() {
            let next = if waits { limit } else { left };
            self.silence = Some(self.around.env.clock.sleep(next));
            return Ok(Flow::On);
        }
        let message = format!("the agent said nothing for {} seconds", limit.as_secs());
        self.fail_turn("agentSilent", &message).await
    }

    pub(super) async fn fail_turn(&mut self, kind: &str, message: &str) -> Result<Flow, Stopped> {
        let mut out = Outbox::default();
        self.fail_turns(&ErrorInfo::new(kind, message), &mut out);
        self.send(out).await?;
        Ok(Flow::On)
    }

    pub(super) fn fail_turns(&mut self, error: &ErrorInfo, out: &mut Outbox) {
        for (chat, turn) in self.active_turns() {
            let event = ChatEvent::TurnFailed { turn, error: error.clone() };
            self.accept(Command::Report { chat, event }, &Who::Host, out).ok();
        }
    }

    pub(super) fn active_turns(&self) -> Vec<(ChatId, TurnId)> {
        let active = |chat: &Chat| Some((chat.id.clone(), chat.active.as_ref()?.id.clone()));
        self.tip.chats.iter().filter_map(active).collect()
    }
}
