//! The ends in a session: of a chat, of a client's participation, of the session itself, and of its host.

use grove_agents::{CloseReason, TurnSurvival};
use grove_core::*;
use tokio::sync::oneshot;

use super::{Outbox, SessionTask};
use crate::env::Task;
use crate::sequencer::{HostStopped, WriteFailurePolicy};

/// The host stops, and this session with it.
pub(super) struct StopState {
    /// Resolved once, when no turn is running.
    pub(super) done: Option<oneshot::Sender<()>>,
    pub(super) grace: Option<Task>,
}

impl SessionTask {
    /// The part of a turn that survives the host.
    pub(super) fn turn_survival(&self) -> TurnSurvival {
        match self.persistence.features().keeps_turns {
            true => self.agents.agent().turn_survival(),
            false => TurnSurvival::Nothing,
        }
    }

    /// Cancels the turn of a chat, drops its queued messages, and stops its agent.
    pub(super) async fn close_chat(&mut self, chat: &ChatId) -> Result<(), HostStopped> {
        let mut out = Outbox::default();
        let Some(state) = self.tip.chat(chat) else { return Ok(()) };
        let waiting =
            state.queued.iter().map(|queued| ClientCommand::Dequeue { chat: chat.clone(), id: queued.id.clone() });
        let steering = state.steering.iter();
        let steering =
            steering.map(|steering| ClientCommand::RemoveSteering { chat: chat.clone(), id: steering.id.clone() });
        let turn =
            state.active.iter().map(|turn| ClientCommand::CancelTurn { chat: chat.clone(), turn: turn.id.clone() });
        let commands: Vec<_> = waiting.chain(steering).chain(turn).collect();
        for command in commands {
            self.accept(command, &mut out).ok();
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
    pub(super) async fn client_gone(&mut self, client: ClientId) -> Result<(), HostStopped> {
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
            let command = ClientCommand::CompleteClientCall { chat, turn, call, result, ask: false };
            self.accept(command, &mut out).ok();
        }
        self.accept(ClientCommand::RemoveActiveClient(client), &mut out).ok();
        self.send(out).await
    }

    /// Cancels turns, stops the agents, and removes the session from the state.
    pub(super) async fn dispose(&mut self) -> Result<(), HostStopped> {
        let mut out = Outbox::default();
        self.last_try().await;
        self.abandon_unsaved().await?;
        for chat in &mut self.tip.chats {
            chat.queued.clear();
            chat.steering = None;
        }
        for (chat, turn) in self.active_turns() {
            self.accept(ClientCommand::CancelTurn { chat, turn }, &mut out).ok();
        }
        self.accept(EventReport::Session(SessionEvent::Removed), &mut out).ok();
        out.prompts.clear();
        // Changes that may be held are never refused.
        self.publisher.commit(&mut out, None, WriteFailurePolicy::Hold).await?.ok();
        self.act(out);
        for chat in self.copies.chats() {
            let log = self.copies.settle(&chat).await;
            self.logs.adopt(&chat, log);
        }
        self.save_disposed().await;
        self.setup.remove().await;
        self.session_context.active_folders.leave(&self.tip.id);
        self.operations.clear();
        let leaving = self.agents.remove_all(self.session_context.env.spawn.as_ref());
        let spills = self.workspace.spills.clone();
        let departure = self.session_context.departures.begin();
        self.session_context.env.spawn.spawn(Box::pin(async move {
            // Remaining processes of an agent may still write.
            futures_util::future::join_all(leaving).await;
            spills.remove().await;
            drop(departure);
        }));
        Ok(())
    }

    /// Says whether everything is saved that can be: the folder is not written while a turn runs.
    fn is_saved(&self) -> bool {
        let is_folder_saved = !self.persistence.is_folder_due() || !self.active_turns().is_empty();
        is_folder_saved && self.persistence.holds_nothing() && self.publisher.is_idle()
    }

    /// Answers the callers that wait until the session is saved.
    ///
    /// A storage client that refuses a save may do so for long, so nobody waits for that.
    pub(super) fn answer_flushes(&mut self) {
        if !self.flushes.is_empty() && (self.is_saved() || self.tip.details.unsaved.is_some()) {
            for done in self.flushes.drain(..) {
                // The caller may have stopped waiting.
                done.send(()).ok();
            }
        }
    }

    /// Reports to a stopping host that the session has stopped.
    ///
    /// That is when nothing runs that would end with the host, and the folder is written; after the grace period in any
    /// case. Agents are released before.
    pub(super) fn stop_when_idle(&mut self) {
        let active = self.active_turns();
        let idle = active.is_empty();
        let only_outliving = active.iter().all(|(chat, turn)| self.outlives_host(chat, turn));
        let at_rest = self.is_saved() || self.persistence.is_abandoned(&self.tip, &self.session_context);
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
            let spills = idle.then(|| self.workspace.spills.clone());
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
