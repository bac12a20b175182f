//! The task that starts, stops and prompts one chat's agent; `start` is how its process begins, `configure` what it
//! does with settings, `fork` how it makes copies.

mod configure;
mod fork;
mod start;

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use grove_core::{Extra, ModelId, TurnId};
use grove_shim::ShimError;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::chat::AcpChat;
use super::choices::ChosenSetting;
use super::exit_message::with_stderr_tail;
use super::open::ContextRetention;
use super::process::{AgentProcess, RunningTurn, TurnOrigin};
use super::session_record::{PromptRecord, SessionRecord, TurnOutcome};
use super::start::{AttachOutcome, LiveProcess, attach};
use super::{AcpSessionState, ForkReply, TurnReply};
use crate::acp::connection::{AgentCallError, CallPurpose};
use crate::acp::content;
use crate::acp::pool::end_processes_in;
use crate::agent::*;

/// How much of a conversation is retold to an agent that has forgotten it.
const RECAP_BYTES: usize = 64 << 10;
/// How long an agent may take to close a session that nobody needs any more.
const CLOSING: Duration = Duration::from_secs(5);

/// What is wanted of the worker.
#[derive(Debug)]
pub(super) enum WorkerCommand {
    /// Start the process before the first turn, within this time.
    Start(Duration, TurnReply),
    Prompt(Box<Prompt>, TurnSink, TurnReply),
    Resume(Box<Prompt>, Resumption, TurnSink, TurnReply),
    Configure(Extra),
    Fork(ForkReply),
    Close(CloseReason, oneshot::Sender<()>),
}

#[derive(Debug)]
pub(super) struct SessionWorker {
    shared: Arc<AcpSessionState>,
    chat: Arc<AcpChat>,
    commands: mpsc::Receiver<WorkerCommand>,
    /// Changes, or is closed, when the session is.
    closing: watch::Receiver<bool>,
    alive: Option<LiveProcess>,
    /// How the agent calls the conversation.
    agent_session_id: Option<String>,
    /// What was chosen, by a person or by the agent itself.
    chosen: Extra,
    /// What this process did not take: it is not asked again.
    refused: Vec<ChosenSetting>,
    /// Whether this process knows what was said before it was started.
    context_retention: ContextRetention,
    /// Its own conversation could not be brought back, which nobody was told yet.
    lost_conversation: bool,
    /// Copies that are made beside the process: there is none.
    copies: JoinSet<()>,
}

/// Why a process is looked at.
enum WakeReason {
    WorkerCommand(Option<WorkerCommand>),
    Stop,
    Look,
}

impl SessionWorker {
    pub(super) fn new(
        shared: Arc<AcpSessionState>,
        commands: mpsc::Receiver<WorkerCommand>,
        closing: watch::Receiver<bool>,
        opening: OpenSession,
    ) -> Self {
        let chat = Arc::clone(&shared.chat);
        let OpenSession { agent_session_id, settings, .. } = opening;
        let context_retention = ContextRetention::Retained;
        Self {
            shared,
            chat,
            commands,
            closing,
            alive: None,
            agent_session_id,
            chosen: settings,
            refused: Vec::new(),
            context_retention,
            lost_conversation: false,
            copies: JoinSet::new(),
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            self.look();
            let woken = self.wait().await;
            match woken {
                WakeReason::Look => {}
                WakeReason::Stop => self.stop().await,
                WakeReason::WorkerCommand(Some(WorkerCommand::Start(within, reply))) => {
                    self.start_now(within, reply).await
                }
                WakeReason::WorkerCommand(Some(WorkerCommand::Prompt(prompt, turn, reply))) => {
                    self.prompt(*prompt, turn, reply).await
                }
                WakeReason::WorkerCommand(Some(WorkerCommand::Resume(prompt, from, turn, reply))) => {
                    self.resume(*prompt, from, turn, reply).await;
                }
                WakeReason::WorkerCommand(Some(WorkerCommand::Configure(values))) => self.configure(values).await,
                WakeReason::WorkerCommand(Some(WorkerCommand::Fork(copied))) => self.fork(copied).await,
                WakeReason::WorkerCommand(Some(WorkerCommand::Close(why, done))) => {
                    self.close(why).await;
                    done.send(()).ok();
                    return;
                }
                // The session was dropped, as it is when the host is.
                WakeReason::WorkerCommand(None) => return self.close(CloseReason::Detached).await,
            }
        }
    }

    async fn wait(&mut self) -> WakeReason {
        let Some(alive) = &self.alive else { return WakeReason::WorkerCommand(self.commands.recv().await) };
        let options = self.chat.pool.options();
        let mut changes = alive.process.changes();
        // From here on no change is missed; what happened since the last look is looked at first.
        let idle = !alive.process.has_turn();
        if alive.process.ended().is_some() || idle && alive.slot.idle_since().is_none() {
            return WakeReason::Look;
        }
        let deadline = match alive.process.cancelled_at() {
            Some(since) => Some(since + options.patience),
            None => alive.slot.idle_since().map(|since| since + options.idle),
        };
        tokio::select! {
            order = self.commands.recv() => WakeReason::WorkerCommand(order),
            () = until(deadline) => WakeReason::Stop,
            () = alive.slot.stop_requested(), if idle => WakeReason::Stop,
            _ = changes.changed() => WakeReason::Look,
        }
    }

    /// Notes what became of the process since the last look.
    fn look(&mut self) {
        let Some(alive) = &self.alive else { return };
        if alive.process.ended().is_some() {
            self.remember();
            // Whoever hears it sees to the rest.
            self.alive = None;
        } else if !alive.process.has_turn() {
            alive.slot.idle();
        }
    }

    // Turns.

    async fn prompt(&mut self, prompt: Prompt, turn: TurnSink, mut reply: TurnReply) {
        self.abort_forks();
        let (mut cancelled, mut closing) = (self.shared.cancelled.subscribe(), self.closing.clone());
        let id = turn.turn().clone();
        let begun = {
            let given_up = async {
                tokio::select! {
                    () = reply.closed() => {}
                    _ = cancelled.wait_for(|cancelled| cancelled.as_ref() == Some(&id)) => {}
                    _ = closing.wait_for(|closing| *closing) => {}
                }
            };
            tokio::select! {
                biased;
                () = given_up => None,
                begun = self.begin(&turn, &prompt) => Some(begun),
            }
        };
        match begun {
            Some(Ok(retold)) => self.send(prompt, retold, turn, reply).await,
            Some(Err(error)) => {
                self.drop_unopened().await;
                // Whoever waited may have gone.
                reply.send(Err(error)).ok();
            }
            None => self.drop_unopened().await,
        }
    }

    /// Sees to it that the turn can be given to a process, and gives what that has to be told first.
    async fn begin(&mut self, turn: &TurnSink, prompt: &Prompt) -> Result<Option<String>, AgentError> {
        self.prepare(Some(turn), prompt.model.as_ref()).await?;
        match self.context_retention {
            ContextRetention::Retained => Ok(None),
            ContextRetention::Empty => {
                let story = prompt.memory.retell(content::room(RECAP_BYTES)).await?;
                // A conversation in which nothing was said is no loss.
                if std::mem::take(&mut self.lost_conversation) && story.is_some() {
                    let told = "The agent could not go on with its own session: it was told the conversation so far.";
                    self.report(Some(turn), vec![AgentEvent::Notice(told.to_owned())]).await;
                }
                Ok(story.map(|story| content::recap(&story)))
            }
        }
    }

    /// Sees to it that there is a process with our conversation and our settings.
    async fn prepare(&mut self, turn: Option<&TurnSink>, model: Option<&ModelId>) -> Result<(), AgentError> {
        self.settle().await?;
        let mut chosen_settings = Vec::new();
        // Since its start, the agent itself may have chosen something else.
        if self.alive.is_none() {
            let slot = self.slot(turn).await;
            self.start(turn, slot).await?;
            chosen_settings = self.all_chosen_settings();
        }
        chosen_settings.extend(model.cloned().map(ChosenSetting::Model));
        self.apply(chosen_settings, turn).await;
        Ok(())
    }

    /// Waits for a turn that was cancelled, and lets go of a process that cannot be used any more.
    async fn settle(&mut self) -> Result<(), AgentError> {
        self.look();
        let Some(alive) = &self.alive else { return Ok(()) };
        if alive.process.has_turn() {
            let Some(since) = alive.process.cancelled_at() else {
                return Err(AgentError::TurnFailed(
                    "another turn is running: wait for its end, or cancel it".to_owned(),
                ));
            };
            let patience = self.chat.pool.options().patience;
            let mut changes = alive.process.changes();
            let process = Arc::clone(&alive.process);
            let over = async {
                while process.has_turn() {
                    if changes.changed().await.is_err() {
                        return;
                    }
                }
            };
            let late = tokio::time::timeout_at(since + patience, over).await.is_err();
            self.look();
            if late {
                self.stop().await;
            }
        }
        if self.alive.as_ref().is_some_and(|alive| !alive.slot.busy()) {
            self.stop().await;
        }
        Ok(())
    }

    async fn send(&mut self, prompt: Prompt, retold: Option<String>, turn: TurnSink, reply: TurnReply) {
        let Some(alive) = &self.alive else { return };
        let process = Arc::clone(&alive.process);
        let Some(session) = process.session() else { return };
        let capabilities = process.capabilities();
        let mut blocks = content::blocks(&prompt.message, &capabilities.prompt_capabilities);
        if let Some(retold) = retold {
            blocks.insert(0, acp::ContentBlock::Text(acp::TextContent::new(retold)));
        }
        let id = turn.turn().clone();
        let Some(frame) = process.begin(RunningTurn::new(turn, reply, TurnOrigin::Own)) else { return };
        // From here on whoever cancels it finds it; who did so before has only said so.
        if self.was_cancelled(&id) {
            return process.finish(Err(AgentError::TurnOver));
        }
        let (number, said) =
            (process.with_frames(|frames| frames.process()), process.with_choices(|c| c.said().clone()));
        let request = acp::PromptRequest::new(session.clone(), blocks);
        let folder = self.chat.folder();
        let session_record = |line| {
            let turn = PromptRecord { turn: id.clone(), frame, line, ended: None };
            SessionRecord { process: number, session, capabilities, said, turn }.write(folder)
        };
        match process.agent_connection.prompt(id.as_str(), &request, session_record).await {
            Ok(()) => self.context_retention = ContextRetention::Retained,
            // Whoever hears the agent knows better why, and says so.
            Err(AgentCallError::Shim(error)) if !is_about_the_line(&error) => {}
            Err(error) => process.finish(Err(AgentError::TurnFailed(error.to_string()))),
        }
        // It may have been cancelled before the agent heard of it.
        if process.cancelled_at().is_some() {
            process.cancel(&id, self.chat.pool.options().patience).await;
        }
    }

    fn was_cancelled(&self, turn: &TurnId) -> bool {
        self.shared.cancelled.borrow().as_ref() == Some(turn)
    }

    /// Goes on with a turn of an earlier host's.
    async fn resume(&mut self, prompt: Prompt, from: Resumption, turn: TurnSink, reply: TurnReply) {
        self.abort_forks();
        if self.alive.is_some() {
            reply.send(Err(AgentError::TurnFailed("the agent has begun another turn".to_owned()))).ok();
            return;
        }
        let grace = self.chat.pool.options().shim_limits.grace;
        let session_record = SessionRecord::read(self.chat.folder())
            .await
            .filter(|session_record| session_record.turn.turn == *turn.turn());
        let Some(session_record) = session_record else {
            // The agent never heard of it.
            if let Err(error) = end_processes_in(self.chat.folder(), grace).await {
                tracing::warn!(%error, "an agent of an earlier host cannot be ended");
            }
            return self.prompt(prompt, turn, reply).await;
        };
        let session = session_record.session.clone();
        let agent_session_id = session.0.to_string();
        // The host may have ended before it was stored.
        if self.agent_session_id.replace(agent_session_id.clone()).as_ref() != Some(&agent_session_id) {
            self.report(Some(&turn), vec![AgentEvent::AgentSessionId(agent_session_id)]).await;
        }
        let (id, ended) = (turn.turn().clone(), session_record.turn.ended.clone());
        match attach(&self.chat, session_record, from).await {
            Ok(AttachOutcome::RunningTurn(going)) => {
                let running = RunningTurn::new(turn, reply, going.origin());
                let alive = going.on(&self.chat, running);
                alive.process.with_choices(|choices| {
                    // What was chosen since the prompt was told to the earlier host.
                    for chosen_setting in self.all_chosen_settings() {
                        if let Some(change) = choices.change(&session, &chosen_setting) {
                            choices.made(&change);
                        }
                    }
                    self.chat.profile.models(choices.settings());
                });
                let process = Arc::clone(&alive.process);
                self.shared.set_process(Some(Arc::clone(&process)));
                self.alive = Some(alive);
                // Whoever cancelled it before found no process to tell.
                if self.was_cancelled(&id) {
                    process.cancel(&id, self.chat.pool.options().patience).await;
                }
            }
            Ok(AttachOutcome::NeverSent) => self.prompt(prompt, turn, reply).await,
            Err(error) => {
                // An agent that cannot be heard would work on for nobody.
                if let Err(error) = end_processes_in(self.chat.folder(), grace).await {
                    tracing::warn!(%error, "an agent of an earlier host cannot be ended");
                }
                let result = match ended {
                    Some(TurnOutcome::Well) => Ok(()),
                    Some(TurnOutcome::Failed(why)) => Err(AgentError::TurnFailed(why)),
                    None => {
                        let how = with_stderr_tail(error.to_string(), self.chat.folder()).await;
                        Err(AgentError::Interrupted(how))
                    }
                };
                reply.send(result).ok();
            }
        }
    }

    async fn report(&self, turn: Option<&TurnSink>, events: Vec<AgentEvent>) {
        // What holds for the session is not to go with a turn that may be over by now.
        let (of_session, of_turn): (Vec<_>, Vec<_>) = events.into_iter().partition(AgentEvent::is_of_session);
        // Where nobody listens, the host is going.
        if !of_session.is_empty() {
            self.chat.reports.report(of_session, None).await.ok();
        }
        if let (Some(turn), false) = (turn, of_turn.is_empty()) {
            turn.report(of_turn, None).await.ok();
        }
    }

    // The process's end.

    /// Ends the process, which has nothing to do. Another is started when it is needed.
    async fn stop(&mut self) {
        self.remember();
        if let Some(alive) = self.alive.take() {
            alive.end().await;
        }
    }

    /// Ends a process that has no conversation: nobody can use it.
    async fn drop_unopened(&mut self) {
        if self.alive.as_ref().is_some_and(|alive| alive.process.session().is_none()) {
            self.stop().await;
        }
    }

    /// What the agent itself has chosen holds for its next process, too.
    fn remember(&mut self) {
        if let Some(alive) = &self.alive {
            self.chosen.extend(alive.process.with_choices(|choices| choices.values()));
        }
    }

    async fn close(&mut self, why: CloseReason) {
        self.look();
        let Some(alive) = self.alive.take() else {
            if why == CloseReason::Removed {
                end_processes_in(self.chat.folder(), self.chat.pool.options().shim_limits.grace).await.ok();
                super::remove(self.chat.folder()).await;
            }
            return;
        };
        // The next host goes on with a turn that runs, and hears again the end of one that is not stored. A cancelled
        // turn has neither: its agent would only be left behind.
        let is_left = !alive.process.was_cancelled() && (alive.process.has_turn() || alive.process.has_unstored());
        match why {
            CloseReason::Detached if is_left => alive.detach(),
            CloseReason::Detached => {
                self.keep_end(&alive.process).await;
                alive.end().await;
            }
            CloseReason::Replaced => alive.end().await,
            CloseReason::Removed => {
                self.part(&alive.process).await;
                alive.end().await;
                super::remove(self.chat.folder()).await;
            }
        }
        self.shared.set_process(None);
    }

    /// Notes how the last turn ended: the host may not get to store it.
    async fn keep_end(&self, process: &AgentProcess) {
        let Some((turn, ended)) = process.last() else { return };
        if let Some(mut session_record) =
            SessionRecord::read(self.chat.folder()).await.filter(|session_record| session_record.turn.turn == turn)
        {
            session_record.turn.ended = Some(ended);
            session_record.write(self.chat.folder()).await;
        }
    }

    /// Tells the agent that the conversation is over for good.
    async fn part(&self, process: &AgentProcess) {
        let Some(session) = process.session() else { return };
        let able = process.capabilities().session_capabilities;
        let patience = CLOSING.min(self.chat.pool.options().patience);
        let names = acp::AGENT_METHOD_NAMES;
        if able.close.is_some() {
            let request = acp::CloseSessionRequest::new(session.clone());
            let closed =
                process.agent_connection.call_for(CallPurpose::Any, names.session_close, &request, patience).await;
            closed.inspect_err(|error| tracing::debug!(%error, "an agent does not close its session")).ok();
        }
        if able.delete.is_some() {
            let request = acp::DeleteSessionRequest::new(session);
            let deleted =
                process.agent_connection.call_for(CallPurpose::Any, names.session_delete, &request, patience).await;
            deleted.inspect_err(|error| tracing::debug!(%error, "an agent does not delete its session")).ok();
        }
    }
}

/// Whether what was to be written is the reason, and not the connection.
fn is_about_the_line(error: &ShimError) -> bool {
    matches!(error, ShimError::LineTooLong { .. } | ShimError::LineBreak)
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
