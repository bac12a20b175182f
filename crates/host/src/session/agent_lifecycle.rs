//! The agent of a session: starting it, prompting it, receiving its reports, and stopping it.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Either, abortable, select};
use grove_agents::{
    AgentError, AgentEvent, AgentStart, ChatSink, FrameCursor, OfferedTool, OpenSession, PendingAnswer, PendingRequest,
    Prompt, Report, Resumption, TurnSurvival,
};
use grove_core::*;
use grove_fs::FsError;
use grove_work::local_path;
use tokio::sync::oneshot;

use super::pastes::with_pictures;
use super::reports::{self, ReportContext, ReportTranslation};
use super::{
    AgentConnection, AnswerSender, AnswerSlot, ChatAgent, EndedTurn, Flow, Outbox, RunningTurn, SessionTask, StopState,
    ToSession,
};
use crate::sequencer::HostStopped;
use crate::store::content;

impl SessionTask {
    /// Starts the agent for a chat.
    pub(super) fn open(&mut self, chat: &ChatId) {
        let mut opening = OpenSession {
            session: self.tip.id.clone(),
            chat: chat.clone(),
            model: self.tip.model.clone(),
            working_directories: self.tip.working_directories.clone(),
            agent_session_id: self.tip.chat(chat).and_then(|chat| chat.agent_session.clone()),
            settings: self.tip.config.as_ref().map(|config| config.values.clone()).unwrap_or_default(),
            reports: ChatSink::new(chat.clone(), self.report_sender.clone()),
            spills: Arc::new(self.spills.clone()),
            start: AgentStart::FirstTurn,
        };
        let limit = self.session_context.config.limits.creation;
        let begins_now = self.begins_now(chat);
        if begins_now {
            // A little less, so that the agent itself reports why it did not start.
            opening.start = AgentStart::Now { within: limit - limit / 10 };
        }
        let late = begins_now.then(|| self.session_context.env.clock.sleep(limit));
        let (agent, inbox, at) = (self.agent.clone(), self.inbox_sender.clone(), chat.clone());
        let is_client_stored = self.unsaved_changes.is_some();
        let chat_agent = self.chat_agent(chat);
        let (leaving, inherits) = (chat_agent.leaving.take(), chat_agent.inherits.take());
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
            if is_client_stored {
                opening.working_directories = here(opening.working_directories).await;
            }
            let opened = AssertUnwindSafe(agent.open(opening)).catch_unwind();
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
            // A session that was disposed meanwhile does not listen any more.
            if let Some(inbox) = inbox.upgrade() {
                inbox.send(ToSession::AgentOpened(at, opened)).await.ok();
            }
        });
        self.chat_agent(chat).backend = AgentConnection::Opening(abort);
        self.session_context.env.spawn.spawn(Box::pin(opened.map(|_| ())));
    }

    /// Says whether a chat's agent starts with its session.
    ///
    /// A session with a conversation already (a fork, an import, one of an earlier host) waits for its next turn
    /// instead.
    fn begins_now(&self, chat: &ChatId) -> bool {
        let Some(state) = self.tip.chat(chat) else { return false };
        let is_resumed = state.active.as_ref().is_some_and(|active| self.resumed.contains_key(&active.id));
        let is_empty = state.origin.is_none() && state.turns.is_empty() && !state.has_older_turns;
        self.is_being_created(chat) && is_empty && !is_resumed
    }

    /// Sends a turn to the agent, or starts the agent first.
    pub(super) fn prompt(&mut self, chat: &ChatId, turn: &TurnId) {
        if matches!(self.tip.lifecycle, Lifecycle::CreationFailed(_)) {
            return;
        }
        if !self.operations.may_start_turn(chat) {
            return;
        }
        let agent = match &self.chat_agent(chat).backend {
            AgentConnection::Ready(agent) => agent.clone(),
            AgentConnection::Closed => return self.open(chat),
            // It gets the turn when it is ready.
            AgentConnection::Opening(_) => return,
        };
        let Some(state) = self.tip.chat(chat) else { return };
        let Some(active) = state.active_turn(turn) else { return };
        let message = active.message.clone();
        let model = message.model.clone().or_else(|| self.tip.model.clone());
        let offered = self.tip.active_clients.iter().flat_map(|client| {
            client.tools.iter().map(|tool| OfferedTool { client: client.client.clone(), tool: tool.clone() })
        });
        let client_tools = offered.collect();
        let sink = ChatSink::new(chat.clone(), self.report_sender.clone()).turn(turn.clone());
        let resumed = self.resumed.remove(turn);
        let memory = Arc::new(self.memory(chat));
        let (spills, most) = (self.spills.clone(), self.session_context.config.limits.message_bytes);
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
        let heard = self.session_context.env.clock.now();
        self.chat_agent(chat).running = Some(RunningTurn { turn: turn.clone(), abort, heard });
        self.silence_begins(chat);
        self.session_context.env.spawn.spawn(Box::pin(work.map(|_| ())));
    }

    /// Restarts the agent's silence: earlier waiting was not its own.
    pub(super) fn silence_begins(&mut self, chat: &ChatId) {
        let now = self.session_context.env.clock.now();
        if let Some(running) = &mut self.chat_agent(chat).running {
            running.heard = now;
            self.silence = Some(self.session_context.env.clock.sleep(self.session_context.config.limits.turn_quiet));
        }
    }

    /// Sends the agents changed settings.
    pub(super) fn configure(&mut self, settings: &Extra) {
        for chat_agent in self.chat_agents.values_mut() {
            let settings = settings.clone();
            match &chat_agent.backend {
                AgentConnection::Ready(agent) => {
                    let agent = agent.clone();
                    self.session_context.env.spawn.spawn(Box::pin(async move { agent.configure(settings).await }));
                }
                // It got the earlier settings when it started to open.
                AgentConnection::Opening(_) => chat_agent.set_meanwhile.extend(settings),
                AgentConnection::Closed => {}
            }
        }
    }

    /// Releases the resources of a turn.
    pub(super) fn end(&mut self, ended: &EndedTurn) {
        let chat_agent = self.chat_agent(&ended.chat);
        let running = chat_agent.running.take_if(|running| running.turn == ended.turn);
        // If the agent itself ended the turn, there is nothing to stop.
        if let (Some(running), AgentConnection::Ready(agent), false) = (running, &chat_agent.backend, ended.by_agent) {
            running.abort.abort();
            let agent = agent.clone();
            let cancel = async move { agent.cancel(&running.turn).await };
            self.session_context.env.spawn.spawn(Box::pin(cancel));
        }
        if self.is_full(&ended.chat) {
            self.operations.mark_full(&ended.chat);
        }
        self.answer_slots.retain(|_, answer_slots| answer_slots.turn != ended.turn);
        self.resumed.remove(&ended.turn);
        if self.chat_agents.values().all(|chat_agent| chat_agent.running.is_none()) {
            self.silence = None;
        }
        self.scan_checkout_after(ended);
    }

    /// Sends messages for running turns to agents that accept them.
    pub(super) async fn steer(&mut self) -> Result<Flow, HostStopped> {
        let mut out = Outbox::default();
        let due: Vec<ChatId> =
            self.tip.chats.iter().filter(|chat| chat.steering.is_some()).map(|c| c.id.clone()).collect();
        for chat in due {
            let (
                Some(ChatAgent { backend: AgentConnection::Ready(agent), running: Some(running), .. }),
                Some(steering),
            ) = (self.chat_agents.get(&chat), self.tip.chat(&chat).and_then(|chat| chat.steering.clone()))
            else {
                continue;
            };
            if !agent.can_steer() {
                continue;
            }
            let (agent, turn) = (agent.clone(), running.turn.clone());
            self.accept(Command::TakeSteering { chat }, &Actor::Host, &mut out).ok();
            let (spills, most) = (self.spills.clone(), self.session_context.config.limits.message_bytes);
            let steer = async move { agent.steer(&turn, with_pictures(steering.message, &spills, most).await).await };
            self.session_context.env.spawn.spawn(Box::pin(steer));
        }
        if !out.events.is_empty() {
            self.send(out).await?;
        }
        Ok(Flow::On)
    }

    /// Resumes the turns of a session from before the host's start.
    ///
    /// A turn continues if its agent can, and is closed with its parts so far otherwise.
    pub(super) async fn resume_turns(&mut self, mut marks: HashMap<ChatId, FrameCursor>) -> Result<(), HostStopped> {
        let mut out = Outbox::default();
        for (chat, turn) in self.active_turns() {
            if self.goes_on(&chat, &turn) {
                // Set up now, so that an answer that comes before the agent is back is delivered.
                let waiting = self.waiting_in(&chat, &turn);
                self.resumed.insert(turn, Resumption { waiting, mark: marks.remove(&chat) });
                continue;
            }
            // A turn that its agent never saw can be sent to it now.
            if self.tip.lifecycle == Lifecycle::Creating {
                continue;
            }
            self.interrupt(&chat, &turn, &mut out);
        }
        // Messages that were queued when the host stopped continue now.
        for chat in self.tip.chats.iter().map(|chat| chat.id.clone()).collect::<Vec<_>>() {
            self.accept(Command::StartQueued { chat }, &Actor::Host, &mut out).ok();
        }
        self.send(out).await?;
        // The folder of a killed host may be out of date.
        self.folder_due = true;
        let main = ChatId::from(Session::MAIN_CHAT);
        let mut needing: Vec<ChatId> = self.active_turns().into_iter().map(|(chat, _)| chat).collect();
        if self.tip.lifecycle == Lifecycle::Creating && !needing.contains(&main) {
            needing.push(main);
        }
        let failed = matches!(self.tip.lifecycle, Lifecycle::CreationFailed(_));
        for chat in needing {
            if !failed && matches!(self.chat_agent(&chat).backend, AgentConnection::Closed) {
                self.open(&chat);
            }
        }
        Ok(())
    }

    /// Says whether the agent can continue a turn after a restart of the host.
    fn goes_on(&self, chat: &ChatId, turn: &TurnId) -> bool {
        let Some(active) = self.tip.chat(chat).and_then(|chat| chat.active_turn(turn)) else { return false };
        match self.turn_survival() {
            TurnSurvival::Nothing => false,
            TurnSurvival::PendingRequest => active.waits_for_person(),
            TurnSurvival::Running => true,
        }
    }

    /// Says whether the next host continues a turn, so that a stopping one leaves it as it is.
    ///
    /// [`Self::resume_turns`] decides the same after a crash.
    pub(super) fn outlives_host(&self, chat: &ChatId, turn: &TurnId) -> bool {
        // A turn that its agent never saw is sent to it by the next host.
        let unseen = self.tip.lifecycle == Lifecycle::Creating && self.unsaved_changes.is_none();
        unseen || self.goes_on(chat, turn)
    }

    /// Says whether an answer would come too late.
    ///
    /// The host has then released the session, and its waiting turns belong to the next host. An agent that survives
    /// the host gets a late answer from that one.
    pub(super) fn takes_no_answers(&self, stopping: &StopState) -> bool {
        stopping.done.is_none() && self.turn_survival() != TurnSurvival::Running
    }

    /// The pending requests of a turn from before the host's start, ready for their answers.
    ///
    /// An agent that survived the host may have missed an answer given just before the end: those are sent again.
    pub(super) fn waiting_in(&mut self, chat: &ChatId, turn: &TurnId) -> Vec<PendingRequest> {
        let Some(active) = self.tip.chat(chat).and_then(|chat| chat.active_turn(turn)) else { return Vec::new() };
        let mut waiting = Vec::new();
        for part in active.parts() {
            let (request, answer, answer_from) = match part {
                Part::ToolCall(call) => match &call.status {
                    ToolCallStatus::PendingConfirmation(pending) => {
                        let (answer, answered) = oneshot::channel();
                        let answer_from = PendingAnswer::Permission(call.id.clone(), answered);
                        (pending.id.clone(), AnswerSender::Permission(answer), answer_from)
                    }
                    ToolCallStatus::PendingResultConfirmation(_) => {
                        let (answer, answered) = oneshot::channel();
                        let answer_from = PendingAnswer::Result(call.id.clone(), answered);
                        (call.id.as_str().into(), AnswerSender::Result(answer), answer_from)
                    }
                    _ => continue,
                },
                Part::InputRequest(input) if input.outcome.is_none() => {
                    let (answer, answered) = oneshot::channel();
                    (input.id.clone(), AnswerSender::Question(answer), PendingAnswer::Question(answered))
                }
                _ => continue,
            };
            self.answer_slots.insert((chat.clone(), request.clone()), AnswerSlot { turn: turn.clone(), answer });
            waiting.push(PendingRequest { request, answer_from });
        }
        if self.turn_survival() == TurnSurvival::Running {
            let decided = self.tip.chat(chat).and_then(|chat| chat.active_turn(turn)).into_iter();
            waiting.extend(decided.flat_map(ActiveTurn::permission_verdicts).map(|(request, call, verdict)| {
                let (answer, answered) = oneshot::channel();
                // The receiver is here.
                answer.send(verdict).ok();
                PendingRequest { request, answer_from: PendingAnswer::Permission(call, answered) }
            }));
        }
        waiting
    }

    /// Ends a turn that the host's end interrupted. Its open tool calls are marked as interrupted.
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
                    attached: Vec::new(),
                    extra: None,
                },
                run: None,
            }),
            _ => None,
        });
        let mut events: Vec<_> = running.collect();
        let error = ErrorInfo::new("interrupted", "the host ended in the middle of the turn");
        events.push(ChatEvent::TurnFailed { turn: turn.clone(), duration: None, error });
        for event in events {
            self.accept(Command::Report { chat: chat.clone(), event }, &Actor::Host, out).ok();
        }
    }

    pub(super) async fn take_reports(&mut self, reports: impl Iterator<Item = Report>) -> Result<Flow, HostStopped> {
        let now = self.session_context.env.clock.now();
        let mut out = Outbox::default();
        for report in reports {
            let running = self.chat_agents.get_mut(&report.chat).and_then(|chat_agent| chat_agent.running.as_mut());
            if let Some(running) = running.filter(|running| report.turn.as_ref() == Some(&running.turn)) {
                running.heard = now;
            }
            if let Err(error) = self.take_report(report, &mut out).await {
                tracing::warn!(session = %self.tip.id, %error, "a turn's content could not be stored");
                self.fail_turns_of(|_| true, &ErrorInfo::new("storage", error.to_string()), &mut out);
            }
        }
        self.send(out).await?;
        Ok(Flow::On)
    }

    async fn take_report(&mut self, report: Report, out: &mut Outbox) -> Result<(), FsError> {
        let Report { chat, turn, events, mark } = report;
        let spoke = turn.is_some() && !events.is_empty();
        for event in events {
            self.take_event(&chat, turn.as_ref(), event, out).await?;
        }
        if spoke && self.tip.chat(&chat).is_some_and(|chat| chat.activity.is_some()) {
            let event = ChatEvent::ActivityChanged(None);
            self.accept(Command::Report { chat: chat.clone(), event }, &Actor::Host, out).ok();
        }
        if let Some(mark) = mark {
            out.marks.insert(chat, mark);
        }
        Ok(())
    }

    async fn take_event(
        &mut self,
        chat: &ChatId,
        turn: Option<&TurnId>,
        mut event: AgentEvent,
        out: &mut Outbox,
    ) -> Result<(), FsError> {
        // The chat may be gone.
        let Some(state) = self.tip.chat(chat) else { return Ok(()) };
        let place = ReportContext { session: &self.tip, chat: state, limits: &self.session_context.config.limits };
        let plan = match &event {
            AgentEvent::Plan(entries) if chat.as_str() == Session::MAIN_CHAT => Some(entries.clone()),
            _ => None,
        };
        let ReportTranslation { store, commands } = match turn.map(|turn| state.active_turn(turn)) {
            Some(Some(active)) => reports::in_turn(&mut event, active, place),
            // A late report: its turn may be over.
            Some(None) => return Ok(()),
            None => reports::of_session(&mut event, place),
        };
        for (id, bytes) in store {
            content::put(self.fs().as_ref(), &self.tip.id, &id, &bytes).await?;
        }
        for command in commands {
            let who = match &command {
                // The agent withdraws its request, which nobody has decided.
                Command::ResolvePermission { .. } => Actor::Host,
                _ => Actor::Agent,
            };
            if let Err(rejection) = self.accept(command, &who, out) {
                tracing::debug!(
                    session = %self.tip.id, %rejection,
                    "an agent's report is invalid in the session's current state"
                );
                // Requests in it are dropped, which the agent notices by its answer never coming.
                return Ok(());
            }
        }
        if let Some(plan) = plan {
            self.write_todos(plan);
        }
        let Some(turn) = turn.cloned() else { return Ok(()) };
        let (request, answer) = match event {
            AgentEvent::ToolReady { permission: Some(asked), .. } => {
                (asked.request, AnswerSender::Permission(asked.answer))
            }
            AgentEvent::Tool(update) => match update.permission {
                Some(asked) => (asked.request, AnswerSender::Permission(asked.answer)),
                None => return Ok(()),
            },
            AgentEvent::ToolReady { call, result: Some(result), .. } => {
                let answer = AnswerSender::Result(result);
                self.answer_slots.insert((chat.clone(), call.as_str().into()), AnswerSlot { turn, answer });
                return Ok(());
            }
            AgentEvent::InputNeeded { request, answer } => {
                let answer = AnswerSender::Question(answer);
                self.answer_slots.insert((chat.clone(), request.id), AnswerSlot { turn, answer });
                return Ok(());
            }
            _ => return Ok(()),
        };
        self.answer_slots.insert((chat.clone(), request.id.clone()), AnswerSlot { turn: turn.clone(), answer });
        self.apply_remembered_permission(chat, turn, &request, out);
        Ok(())
    }

    /// Answers a permission request by a rule, or by a permanent decision.
    fn apply_remembered_permission(
        &mut self,
        chat: &ChatId,
        turn: TurnId,
        request: &PermissionRequest,
        out: &mut Outbox,
    ) {
        if let Some(decision) = self.tip.details.permissions.as_ref().and_then(|policy| policy.answer(request)) {
            let (chat, question) = (chat.clone(), PermissionTarget::Request(request.id.clone()));
            let verdict = Verdict::by_rule(decision, request);
            self.accept(Command::ResolvePermission { chat, turn, question, verdict }, &Actor::Host, out).ok();
            return;
        }
        let Some(remembered) = self.tip.details.remembered.iter().find(|known| known.answers(request)) else { return };
        let allows = remembered.option.allows;
        let fitting = |wanted: &dyn Fn(&PermissionOption) -> bool| {
            request.options.iter().find(|option| option.allows == allows && wanted(option)).map(|o| o.id.clone())
        };
        let option = fitting(&|option| option.id == remembered.option.id)
            .or_else(|| fitting(&|option| option.lasting))
            .or_else(|| fitting(&|_| true));
        let decision = if allows { Decision::Approved } else { Decision::Denied };
        let resolve = Command::ResolvePermission {
            chat: chat.clone(),
            turn,
            question: PermissionTarget::Request(request.id.clone()),
            verdict: Verdict { by: ConfirmationReason::Setting, option, ..decision.into() },
        };
        self.accept(resolve, &Actor::Host, out).ok();
    }

    /// Reports turns whose agents have been silent for a while, and ends those that were for too long.
    ///
    /// Turns that wait for the user or a client are left alone.
    pub(super) async fn check_silence(&mut self) -> Result<Flow, HostStopped> {
        let (limit, quiet) =
            (self.session_context.config.limits.turn_silence, self.session_context.config.limits.turn_quiet);
        let now = self.session_context.env.clock.now();
        let mut next = limit;
        let (mut silent, mut hushed) = (Vec::new(), Vec::new());
        for (chat, chat_agent) in &self.chat_agents {
            let Some(running) = &chat_agent.running else { continue };
            let Some(state) = self.tip.chat(chat) else { continue };
            let Some(active) = state.active_turn(&running.turn) else { continue };
            if active.waits_for_person() || active.waits_for_client() {
                continue;
            }
            let past = Duration::from_millis(now.0.saturating_sub(running.heard.0));
            match (limit.saturating_sub(past), quiet.saturating_sub(past)) {
                (Duration::ZERO, _) => silent.push(chat.clone()),
                (left, Duration::ZERO) => {
                    next = next.min(left);
                    // A running tool explains the silence.
                    if !active.runs_tool() && state.activity.is_none() {
                        hushed.push((chat.clone(), past.as_secs()));
                    }
                }
                (_, left) => next = next.min(left),
            }
        }
        self.silence = Some(self.session_context.env.clock.sleep(next));
        let mut out = Outbox::default();
        for (chat, seconds) in hushed {
            let words =
                format!("no report from the agent for {seconds} s: it may be waiting for its model, or retrying");
            let event = ChatEvent::ActivityChanged(Some(words));
            self.accept(Command::Report { chat, event }, &Actor::Host, &mut out).ok();
        }
        let error = ErrorInfo::new("agentSilent", format!("the agent was silent for {} seconds", limit.as_secs()));
        self.fail_turns_of(|chat| silent.contains(chat), &error, &mut out);
        self.send(out).await?;
        Ok(Flow::On)
    }

    /// Ends turns in error that the next host cannot continue. Queued messages stay queued.
    pub(super) async fn stop_turns(&mut self) -> Result<Flow, HostStopped> {
        let mut out = Outbox::default();
        let error = ErrorInfo::new("hostStopped", "the host stopped before the turn ended");
        let mut ending = self.active_turns();
        ending.retain(|(chat, turn)| !self.outlives_host(chat, turn));
        for (chat, turn) in ending {
            let stop = Command::StopTurn { chat, turn, error: error.clone() };
            self.accept(stop, &Actor::Host, &mut out).ok();
        }
        self.send(out).await?;
        Ok(Flow::On)
    }

    /// Ends the running turns of some chats in error.
    pub(super) fn fail_turns_of(&mut self, of: impl Fn(&ChatId) -> bool, error: &ErrorInfo, out: &mut Outbox) {
        for (chat, turn) in self.active_turns().into_iter().filter(|(chat, _)| of(chat)) {
            let event = ChatEvent::TurnFailed { turn, duration: None, error: error.clone() };
            self.accept(Command::Report { chat, event }, &Actor::Host, out).ok();
        }
    }

    pub(super) fn active_turns(&self) -> Vec<(ChatId, TurnId)> {
        let active = |chat: &Chat| Some((chat.id.clone(), chat.active.as_ref()?.id.clone()));
        self.tip.chats.iter().filter_map(active).collect()
    }
}

/// The folders that are on this machine.
///
/// A storage client's folder need not be: its agent then works like that of a session without any.
async fn here(folders: Vec<String>) -> Vec<String> {
    let is_here = |folder: &String| local_path(folder).is_ok_and(|path| path.is_dir());
    let looked = tokio::task::spawn_blocking(move || folders.into_iter().filter(is_here).collect()).await;
    looked.unwrap_or_default()
}
