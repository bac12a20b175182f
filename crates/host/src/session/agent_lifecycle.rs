//! The agents of a session, as its task directs them: start, prompts, resumption after a restart, silence and stop.

use std::collections::HashMap;
use std::sync::Arc;

use grove_agents::{AgentError, AgentSession, TurnSurvival};
use grove_core::*;

use super::agents::{self, AgentContext, ChatAgents, is_being_created};
use super::pastes::with_pictures;
use super::{EndedTurn, Flow, Outbox, SessionTask, StopState};
use crate::sequencer::HostStopped;

impl SessionTask {
    /// The agents, and what they need of the other parts.
    pub(super) fn agent_parts(&mut self) -> (&mut ChatAgents, AgentContext<'_>) {
        let context = AgentContext {
            session: &self.tip,
            env: &self.session_context.env,
            limits: &self.session_context.config.limits,
            spills: &self.workspace.spills,
            setup: &self.setup,
            may_lack_folders: self.persistence.features().may_lack_folders,
        };
        (&mut self.agents, context)
    }

    /// Starts the agent for a chat.
    pub(super) fn open(&mut self, chat: &ChatId) {
        let (agents, context) = self.agent_parts();
        agents.open(chat, context);
    }

    /// Sends a turn to the agent, or starts the agent first.
    pub(super) fn prompt(&mut self, chat: &ChatId, turn: &TurnId) {
        if matches!(self.tip.lifecycle, Lifecycle::CreationFailed(_)) || !self.operations.may_start_turn(chat) {
            return;
        }
        let (agents, context) = self.agent_parts();
        agents.prompt(chat, turn, context);
    }

    /// Handles the start of a chat's agent, or its failure.
    pub(super) async fn agent_opened(
        &mut self,
        chat: ChatId,
        opened: Result<Arc<dyn AgentSession>, AgentError>,
    ) -> Result<(), HostStopped> {
        let is_being_created = is_being_created(&self.tip, &chat);
        let mut out = Outbox::default();
        match opened {
            Ok(agent) => {
                // A chat that was removed meanwhile needs none.
                let Some(state) = self.tip.chat(&chat) else { return Ok(()) };
                // A turn may have been started meanwhile, or wait since before the host's start.
                out.prompts = state.active.iter().map(|active| (chat.clone(), active.id.clone())).collect();
                self.agents.opened(&chat, agent, self.session_context.env.spawn.as_ref());
                // An agent that was restarted has nothing to announce.
                if is_being_created {
                    self.accept(EventReport::Session(SessionEvent::Ready), &mut out).ok();
                    self.accept(EventReport::Session(SessionEvent::Listed), &mut out).ok();
                }
            }
            Err(error) => {
                // If the session itself is fine, its agent may start at the next prompt.
                self.agents.failed_to_open(&chat);
                if is_being_created {
                    let failed = SessionEvent::CreationFailed(error.info());
                    self.accept(EventReport::Session(failed), &mut out).ok();
                }
                self.fail_turns_of(|mine| *mine == chat, &error.info(), &mut out);
                if is_being_created {
                    self.accept(EventReport::Session(SessionEvent::Listed), &mut out).ok();
                }
            }
        }
        self.send(out).await
    }

    /// Releases the resources of a turn.
    pub(super) fn end(&mut self, ended: &EndedTurn) {
        self.agents.end(ended, self.session_context.env.spawn.as_ref());
        if self.is_full(&ended.chat) {
            self.operations.mark_full(&ended.chat);
        }
        self.scan_checkout_after(ended);
    }

    /// Sends messages for running turns to agents that accept them.
    pub(super) async fn steer(&mut self) -> Result<Flow, HostStopped> {
        let mut out = Outbox::default();
        let due = self.tip.chats.iter().filter_map(|chat| Some((chat.id.clone(), chat.steering.clone()?.message)));
        for (chat, message) in due.collect::<Vec<_>>() {
            let Some((agent, turn)) = self.agents.steerable(&chat) else { continue };
            self.accept(HostCommand::TakeSteering { chat }, &mut out).ok();
            let (spills, most) = (self.workspace.spills.clone(), self.session_context.config.limits.message_bytes);
            let steer = async move { agent.steer(&turn, with_pictures(message, &spills, most).await).await };
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
        let survival = self.turn_survival();
        for (chat, turn) in self.active_turns() {
            if agents::continues(&self.tip, &chat, &turn, survival) {
                // Set up now, so that an answer that comes before the agent is back is delivered.
                self.agents.resume(&self.tip, &chat, &turn, marks.remove(&chat), survival);
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
            self.accept(HostCommand::StartQueued { chat }, &mut out).ok();
        }
        self.send(out).await?;
        // The folder of a killed host may be out of date.
        self.persistence.mark_folder_due();
        let main = ChatId::from(Session::MAIN_CHAT);
        let mut needing: Vec<ChatId> = self.active_turns().into_iter().map(|(chat, _)| chat).collect();
        if self.tip.lifecycle == Lifecycle::Creating && !needing.contains(&main) {
            needing.push(main);
        }
        let failed = matches!(self.tip.lifecycle, Lifecycle::CreationFailed(_));
        for chat in needing {
            if !failed && self.agents.is_closed(&chat) {
                self.open(&chat);
            }
        }
        Ok(())
    }

    /// Says whether the next host continues a turn, so that a stopping one leaves it as it is.
    ///
    /// [`Self::resume_turns`] decides the same after a crash.
    pub(super) fn outlives_host(&self, chat: &ChatId, turn: &TurnId) -> bool {
        // A turn that its agent never saw is sent to it by the next host.
        let unseen = self.tip.lifecycle == Lifecycle::Creating && self.persistence.features().keeps_turns;
        unseen || agents::continues(&self.tip, chat, turn, self.turn_survival())
    }

    /// Says whether an answer would come too late.
    ///
    /// The host has then released the session, and its waiting turns belong to the next host. An agent that survives
    /// the host gets a late answer from that one.
    pub(super) fn takes_no_answers(&self, stopping: &StopState) -> bool {
        stopping.done.is_none() && self.turn_survival() != TurnSurvival::Running
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
            self.accept(EventReport::Chat { chat: chat.clone(), event }, out).ok();
        }
    }

    /// Reports turns whose agents have been silent for a while, and ends those that were for too long.
    pub(super) async fn check_silence(&mut self) -> Result<Flow, HostStopped> {
        let (env, limits) = (&self.session_context.env, &self.session_context.config.limits);
        let limit = limits.turn_silence;
        let report = self.agents.check_silence(&self.tip, env, limits);
        let mut out = Outbox::default();
        for (chat, seconds) in report.quiet {
            let words =
                format!("no report from the agent for {seconds} s: it may be waiting for its model, or retrying");
            let event = ChatEvent::ActivityChanged(Some(words));
            self.accept(EventReport::Chat { chat, event }, &mut out).ok();
        }
        let error = ErrorInfo::new("agentSilent", format!("the agent was silent for {} seconds", limit.as_secs()));
        self.fail_turns_of(|chat| report.silent.contains(chat), &error, &mut out);
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
            let stop = HostCommand::StopTurn { chat, turn, error: error.clone() };
            self.accept(stop, &mut out).ok();
        }
        self.send(out).await?;
        Ok(Flow::On)
    }

    /// Ends the running turns of some chats in error.
    pub(super) fn fail_turns_of(&mut self, of: impl Fn(&ChatId) -> bool, error: &ErrorInfo, out: &mut Outbox) {
        for (chat, turn) in self.active_turns().into_iter().filter(|(chat, _)| of(chat)) {
            let event = ChatEvent::TurnFailed { turn, duration: None, error: error.clone() };
            self.accept(EventReport::Chat { chat, event }, out).ok();
        }
    }

    pub(super) fn active_turns(&self) -> Vec<(ChatId, TurnId)> {
        let active = |chat: &Chat| Some((chat.id.clone(), chat.active.as_ref()?.id.clone()));
        self.tip.chats.iter().filter_map(active).collect()
    }
}
