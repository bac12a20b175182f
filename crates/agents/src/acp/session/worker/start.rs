//! Starting an agent's process, and opening its conversation.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::super::TurnReply;
use super::super::choices::Choices;
use super::super::exit_message::with_stderr_tail;
use super::super::open::{ContextRetention, ConversationError};
use super::super::process::AgentProcess;
use super::super::start::launch;
use super::login::OpenFailure;
use super::{CLOSING, SessionWorker};
use crate::acp::connection::AgentCallError;
use crate::acp::pool::ProcessSlot;
use crate::agent::*;
use crate::sink::TurnSink;

/// The number of times that an agent is started again after a login elsewhere.
const LOGIN_ATTEMPTS: u32 = 8;

impl SessionWorker {
    /// Starts the agent before its first turn, so that a session that cannot work fails at its creation. If every slot
    /// has a running turn, the agent starts with its first turn.
    pub(super) async fn start_now(&mut self, within: Duration, mut reply: TurnReply) {
        let mut closing = self.closing.clone();
        let started = {
            let deadline = Instant::now() + within;
            let given_up = async {
                tokio::select! {
                    () = reply.closed() => {}
                    _ = closing.wait_for(|closing| *closing) => {}
                }
            };
            tokio::select! {
                biased;
                () = given_up => None,
                started = self.start_by(deadline) => Some(started),
            }
        };
        match started {
            Some(Ok(StartOutcome::Yes)) => {
                reply.send(Ok(())).ok();
            }
            Some(Ok(StartOutcome::Late)) => {
                let how = format!("it was not ready within {} s", within.as_secs_f32());
                let how = with_stderr_tail(how, self.chat.folder()).await;
                self.drop_unopened().await;
                reply.send(Err(AgentError::Start(how))).ok();
            }
            // The first turn asks a person how to log in.
            Some(Err(AgentError::LoginRequired { has_methods: true, .. })) => {
                self.drop_unopened().await;
                reply.send(Ok(())).ok();
            }
            Some(Err(error)) => {
                self.drop_unopened().await;
                reply.send(Err(error)).ok();
            }
            // The chat is not needed any more, or the host is ending.
            None => {
                self.drop_unopened().await;
                super::super::remove(self.chat.folder()).await;
            }
        }
    }

    async fn start_by(&mut self, deadline: Instant) -> Result<StartOutcome, AgentError> {
        let Ok(slot) = timeout_at(deadline, self.chat.pool.slots().take_from_idle()).await else {
            return Ok(StartOutcome::Yes);
        };
        let Some(slot) = slot else { return Ok(StartOutcome::Yes) };
        match timeout_at(deadline, self.start(None, slot)).await {
            Ok(started) => started?,
            Err(_) => return Ok(StartOutcome::Late),
        }
        let chosen_settings = self.all_chosen_settings();
        // An agent that is slow to apply its settings is usable all the same, and gets them again with its first turn.
        timeout_at(deadline, self.apply(chosen_settings, None)).await.ok();
        Ok(StartOutcome::Yes)
    }

    /// Starts a process with our conversation. If the agent requires a login, a person is asked for it during a turn.
    pub(super) async fn start(&mut self, turn: Option<&TurnSink>, slot: ProcessSlot) -> Result<(), AgentError> {
        let mut slot = slot;
        for attempt in 0..LOGIN_ATTEMPTS {
            match self.start_once(turn, slot, attempt).await {
                Ok(()) => return Ok(()),
                Err(StartError::Agent(error)) => return Err(error),
                // A login elsewhere may only be known to a new process.
                Err(StartError::LoggedInElsewhere) => {
                    self.stop().await;
                    slot = self.slot(turn).await;
                }
            }
        }
        let words = format!(
            "{} still requires a login: run `grove agents login {}`",
            self.chat.program.display_name, self.chat.program.id
        );
        Err(AgentError::LoginRequired { words, has_methods: false })
    }

    async fn start_once(&mut self, turn: Option<&TurnSink>, slot: ProcessSlot, attempt: u32) -> Result<(), StartError> {
        let alive = launch(&self.chat, slot).await?;
        let process = Arc::clone(&alive.process);
        self.shared.set_process(Some(Arc::clone(&process)));
        self.alive = Some(alive);
        self.refused.clear();
        let opened = match self.open_conversation(turn, &process, attempt).await {
            Ok(opened) => opened,
            Err(OpenFailure::LoggedInElsewhere) => return Err(StartError::LoggedInElsewhere),
            Err(OpenFailure::Conversation(ConversationError::LoginRequired { words, methods, .. })) => {
                let has_methods = !methods.is_empty();
                let words = format!("{}: {words}", self.chat.program.display_name);
                return Err(AgentError::LoginRequired { words, has_methods }.into());
            }
            Err(OpenFailure::Conversation(error)) => {
                return Err(AgentError::Start(self.why(&process, error).await).into());
            }
        };
        // The next prompt may come from another caller: a start that is given up after this leaves it running.
        self.context_retention = opened.context_retention;
        let mut events = Vec::new();
        let session = opened.session.0.to_string();
        let before = self.agent_session_id.replace(session.clone());
        if before.as_ref() != Some(&session) {
            events.push(AgentEvent::AgentSessionId(session));
        }
        process.with_choices(|choices| {
            *choices = Choices::of(opened.result);
            self.chat.profile.models(choices.settings());
            if opened.context_retention == ContextRetention::Empty {
                self.chat.profile.defaults(choices.settings());
            }
            events.extend(choices.settings().event());
        });
        self.lost_conversation = before.is_some() && opened.context_retention == ContextRetention::Empty;
        self.report(turn, events).await;
        self.send_title().await;
        Ok(())
    }

    pub(super) async fn slot(&self, turn: Option<&TurnSink>) -> ProcessSlot {
        let slots = self.chat.pool.slots();
        if let Some(slot) = slots.try_take() {
            return slot;
        }
        if let Some(turn) = turn {
            let most = self.chat.pool.options().processes;
            let waits =
                format!("The limit on running agents ({most}) is reached: this turn begins when one of them stops.");
            self.report(Some(turn), vec![AgentEvent::Activity(Some(waits))]).await;
        }
        let slot = slots.take().await;
        self.report(turn, vec![AgentEvent::Activity(None)]).await;
        slot
    }

    /// The reason why an agent did not start, as precise as possible.
    async fn why(&self, process: &AgentProcess, error: ConversationError) -> String {
        if let ConversationError::Call(AgentCallError::Ended | AgentCallError::Shim(_)) = error
            && let Some(how) = process.wait_for_end(CLOSING).await
        {
            return how;
        }
        with_stderr_tail(error.to_string(), self.chat.folder()).await
    }
}

/// The reason why a process has no conversation of ours.
#[derive(Debug)]
enum StartError {
    Agent(AgentError),
    LoggedInElsewhere,
}

impl From<AgentError> for StartError {
    fn from(error: AgentError) -> Self {
        StartError::Agent(error)
    }
}

/// The outcome of an agent's initialization.
enum StartOutcome {
    Yes,
    /// It took too long.
    Late,
}
