//! The task that starts, stops and prompts one chat's agent. `start` starts its process, `configure` applies settings,
//! `fork` makes copies.

mod configure;
mod fork;
mod login;
mod start;

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use grove_core::{Extra, ModelId, TurnId};
use grove_shim::ShimError;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use self::login::login_question_id;
use super::chat::AcpChat;
use super::choices::ChosenSetting;
use super::exit_message::with_stderr_tail;
use super::one_shot::OneShotProcess;
use super::open::ContextRetention;
use super::process::{AgentProcess, RunningTurn, TurnOrigin};
use super::session_record::{PromptRecord, SessionRecord, TurnOutcome};
use super::start::{AttachOutcome, LiveProcess, attach};
use super::{AcpSessionState, ForkReply, TurnReply};
use crate::acp::connection::{AgentCallError, CallPurpose};
use crate::acp::content;
use crate::acp::pool::end_processes_in;
use crate::agent::*;
use crate::sink::TurnSink;

/// The bytes of a conversation that are retold to an agent that has forgotten it.
pub const RECAP_BYTES: usize = 64 << 10;
/// The time that an agent may take to close a session that is no longer needed.
pub const CLOSING: Duration = Duration::from_secs(5);
/// The time that an agent may take to end, when its stdin closes and again at SIGTERM, after it ignored a cancellation.
const DEAF_GRACE: Duration = Duration::from_secs(1);
/// The time that the host may take to store the end of a turn when it stops.
const STORING: Duration = Duration::from_secs(1);
/// The time that an agent may take to list the tools of clients again, after they have changed.
const LISTING: Duration = Duration::from_secs(2);
/// The bytes of a system message that the conversation shows.
const SHOWN_MESSAGE: usize = 2_000;
/// The time after which a turn tells what it waits for.
const SILENCE: Duration = Duration::from_millis(1_500);

/// A command to the worker.
#[derive(Debug)]
pub(super) enum WorkerCommand {
    /// Start the process before the first turn, within this time.
    Start(Duration, TurnReply),
    Prompt(Box<Prompt>, TurnSink, TurnReply),
    Resume(Box<Prompt>, Resumption, TurnSink, TurnReply),
    Configure(Extra),
    SetTitle(String),
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
    /// The agent's id of the conversation.
    agent_session_id: Option<String>,
    /// The settings that a person or the agent itself has chosen.
    chosen: Extra,
    /// The settings that this process refused: they are not requested again.
    refused: Vec<ChosenSetting>,
    /// This process's knowledge of the conversation before its start.
    context_retention: ContextRetention,
    /// The agent's own conversation could not be reopened, and nobody was told yet.
    lost_conversation: bool,
    /// No prompt was accepted yet: it may be that nothing was ever said.
    may_be_unprompted: bool,
    /// Copies made by other processes, while there is no process here.
    copies: JoinSet<()>,
    /// The title that the agent has to be told.
    title: Option<String>,
    /// The open question how to log in, and its answer, of a turn that an earlier host began.
    login_question: Option<PendingRequest>,
}

/// The reason to look at a process.
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
            may_be_unprompted: true,
            copies: JoinSet::new(),
            title: None,
            login_question: None,
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            self.look();
            let woken = self.wait().await;
            match woken {
                WakeReason::Look => {}
                WakeReason::Stop => self.stop_by_need().await,
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
                WakeReason::WorkerCommand(Some(WorkerCommand::SetTitle(title))) => {
                    self.title = Some(title);
                    self.send_title().await;
                }
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
        // From here on no change is missed; earlier changes are looked at first.
        let idle = !alive.process.has_turn();
        if alive.process.ended().is_some() || idle && alive.slot.idle_since().is_none() {
            return WakeReason::Look;
        }
        let deadline = match alive.process.cancelled_at() {
            Some(since) => Some(since + options.cancel),
            None => alive.slot.idle_since().map(|since| since + options.idle),
        };
        tokio::select! {
            order = self.commands.recv() => WakeReason::WorkerCommand(order),
            () = until(deadline) => WakeReason::Stop,
            () = alive.slot.stop_requested(), if idle => WakeReason::Stop,
            _ = changes.changed() => WakeReason::Look,
        }
    }

    /// Notes changes of the process since the last look.
    fn look(&mut self) {
        let Some(alive) = &self.alive else { return };
        if alive.process.ended().is_some() {
            self.remember();
            // The reader does the rest.
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
        let outcome = {
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
                outcome = self.begin(&turn, &prompt) => Some(outcome),
            }
        };
        match outcome {
            Some(Ok(before)) => self.send(prompt, before, turn, reply).await,
            Some(Err(error)) => {
                self.drop_unopened().await;
                // The caller may have stopped waiting.
                reply.send(Err(error)).ok();
            }
            None => self.drop_unopened().await,
        }
    }

    /// Prepares a process for the turn, and returns the texts that it has to be sent first: the system message and the
    /// recap.
    async fn begin(&mut self, turn: &TurnSink, prompt: &Prompt) -> Result<Vec<String>, AgentError> {
        self.prepare(Some(turn), prompt.model.as_ref()).await?;
        match self.context_retention {
            ContextRetention::Retained if self.is_unprompted(prompt).await? => {
                Ok(self.system_message_before(turn).await.into_iter().collect())
            }
            ContextRetention::Retained => Ok(Vec::new()),
            ContextRetention::Empty => {
                let story = prompt.memory.retell(content::room(RECAP_BYTES)).await?;
                // Losing an empty conversation is no loss.
                if std::mem::take(&mut self.lost_conversation) && story.is_some() {
                    let notice = "The agent could not resume its own session: the conversation was retold to it.";
                    self.report(Some(turn), vec![AgentEvent::Notice(notice.to_owned())]).await;
                }
                let system_message = self.system_message_before(turn).await;
                Ok(system_message.into_iter().chain(story.map(|story| content::recap(&story))).collect())
            }
        }
    }

    /// Returns whether the agent has a system message to be told in a conversation in which nothing was said.
    async fn is_unprompted(&self, prompt: &Prompt) -> Result<bool, AgentError> {
        if !self.may_be_unprompted || self.chat.system_message().is_none() {
            return Ok(false);
        }
        Ok(prompt.memory.retell(content::room(RECAP_BYTES)).await?.is_none())
    }

    /// The system message, if it goes before the prompt: an agent without a memory of the conversation gets it again.
    async fn system_message_before(&self, turn: &TurnSink) -> Option<String> {
        let able = self.alive.as_ref()?.process.capabilities();
        let text = self.chat.message_before_prompt(&able)?;
        let message = self.chat.system_message();
        let content = message.as_ref().map_or("", |message| message.content.as_str());
        let shown = &content[..content.floor_char_boundary(SHOWN_MESSAGE)];
        let rest = if shown.len() < content.len() { " …" } else { "" };
        let notice = format!("The session's system message goes to the agent before this prompt: {shown}{rest}");
        self.report(Some(turn), vec![AgentEvent::Notice(notice)]).await;
        Some(text)
    }

    /// Ends an idle process that does not know the tools that clients offer: the next one does.
    async fn settle_tools(&mut self) {
        let Some(alive) = &self.alive else { return };
        let is_stale = match &alive.process.tools {
            Some(tools) => tokio::time::timeout(LISTING, tools.wait_until_listed()).await.is_err(),
            None => !self.chat.client_tools.allowed(&self.chat.setup.tool_filter).is_empty(),
        };
        if is_stale {
            self.stop().await;
        }
    }

    /// Ensures that there is a process with our conversation and our settings.
    async fn prepare(&mut self, turn: Option<&TurnSink>, model: Option<&ModelId>) -> Result<(), AgentError> {
        self.settle(turn).await?;
        if turn.is_some() {
            self.settle_tools().await;
        }
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

    /// Waits for a turn that was cancelled, and drops a process that cannot be used any more.
    async fn settle(&mut self, turn: Option<&TurnSink>) -> Result<(), AgentError> {
        self.look();
        let Some(alive) = &self.alive else { return Ok(()) };
        if alive.process.has_turn() {
            let Some(since) = alive.process.cancelled_at() else {
                return Err(AgentError::TurnFailed(
                    "another turn is running: wait for its end, or cancel it".to_owned(),
                ));
            };
            let limit = self.chat.pool.options().cancel;
            let mut changes = alive.process.changes();
            let process = Arc::clone(&alive.process);
            let over = async {
                while process.has_turn() {
                    if changes.changed().await.is_err() {
                        return;
                    }
                }
            };
            let name = &self.chat.program.display_name;
            let words =
                format!("{name} still works on the cancelled turn. It is ended after {} s.", limit.as_secs_f32());
            let over = self.announce_wait(turn, words, over);
            let late = tokio::time::timeout_at(since + limit, over).await.is_err();
            self.look();
            if late {
                self.stop_deaf().await;
                let notice = format!(
                    "{} did not stop the cancelled turn within {} s: its process was ended, and this turn runs in a new one.",
                    self.chat.program.display_name,
                    limit.as_secs_f32()
                );
                self.report(turn, vec![AgentEvent::Notice(notice)]).await;
            }
        }
        // An agent that requires a login asks for it when it opens a conversation.
        let needs_login = self.alive.as_ref().is_some_and(|alive| alive.process.needs_login());
        if needs_login || self.alive.as_ref().is_some_and(|alive| !alive.slot.busy()) {
            self.stop().await;
        }
        Ok(())
    }

    async fn send(&mut self, prompt: Prompt, before: Vec<String>, turn: TurnSink, reply: TurnReply) {
        let Some(alive) = &self.alive else { return };
        let process = Arc::clone(&alive.process);
        let Some(session) = process.session() else { return };
        let capabilities = process.capabilities();
        let mut blocks = content::blocks(&prompt.message, &capabilities.prompt_capabilities);
        blocks.splice(0..0, before.into_iter().map(|text| acp::ContentBlock::Text(acp::TextContent::new(text))));
        let id = turn.turn().clone();
        let Some(frame) = process.begin(RunningTurn::new(turn, reply, TurnOrigin::Own)) else { return };
        // From here on a cancellation finds the turn; an earlier one was only noted.
        if self.was_cancelled(&id) {
            return process.finish(Err(AgentError::TurnOver));
        }
        let (number, reported_settings) =
            (process.with_frames(|frames| frames.process()), process.with_choices(|c| c.reported_settings().clone()));
        let request = acp::PromptRequest::new(session.clone(), blocks);
        let folder = self.chat.folder();
        let session_record = |line| {
            let turn = PromptRecord { turn: id.clone(), frame, line, ended: None };
            SessionRecord { process: number, session, capabilities, said: reported_settings, turn }.write(folder)
        };
        match process.agent_connection.prompt(id.as_str(), &request, session_record).await {
            Ok(()) => {
                self.context_retention = ContextRetention::Retained;
                self.may_be_unprompted = false;
            }
            // The reader knows the reason better, and reports it.
            Err(AgentCallError::Shim(error)) if !is_about_the_line(&error) => {}
            Err(error) => process.finish(Err(AgentError::TurnFailed(error.to_string()))),
        }
        // It may have been cancelled before the agent received it.
        if process.cancelled_at().is_some() {
            process.cancel(&id, self.chat.pool.options().patience).await;
        }
    }

    fn was_cancelled(&self, turn: &TurnId) -> bool {
        self.shared.cancelled.borrow().as_ref() == Some(turn)
    }

    /// Continues a turn of an earlier host.
    async fn resume(&mut self, prompt: Prompt, from: Resumption, turn: TurnSink, reply: TurnReply) {
        self.abort_forks();
        if self.alive.is_some() {
            reply.send(Err(AgentError::TurnFailed("the agent already runs another turn".to_owned()))).ok();
            return;
        }
        let (mut from, asked) = (from, login_question_id(turn.turn(), 0));
        let position = from.waiting.iter().position(|waiting| waiting.request.as_str().starts_with(asked.as_str()));
        self.login_question = position.map(|at| from.waiting.remove(at));
        let grace = self.chat.pool.options().shim_limits.grace;
        let session_record = SessionRecord::read(self.chat.folder())
            .await
            .filter(|session_record| session_record.turn.turn == *turn.turn());
        let Some(session_record) = session_record else {
            // The agent never received it.
            if let Err(error) = end_processes_in(self.chat.folder(), grace).await {
                tracing::warn!(%error, "cannot end an agent of an earlier host");
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
                    // Settings chosen since the prompt were sent to the earlier host.
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
                // An earlier cancellation found no process to notify.
                if self.was_cancelled(&id) {
                    process.cancel(&id, self.chat.pool.options().patience).await;
                }
            }
            Ok(AttachOutcome::NeverSent) => self.prompt(prompt, turn, reply).await,
            Err(error) => {
                // An agent that cannot be reached would work on for nobody.
                if let Err(error) = end_processes_in(self.chat.folder(), grace).await {
                    tracing::warn!(%error, "cannot end an agent of an earlier host");
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
        // Events of the session must not be dropped with a turn that may be over by now.
        let (of_session, of_turn): (Vec<_>, Vec<_>) = events.into_iter().partition(AgentEvent::is_of_session);
        // Without a receiver the host is ending.
        if !of_session.is_empty() {
            self.chat.reports.report(of_session, None).await.ok();
        }
        if let (Some(turn), false) = (turn, of_turn.is_empty()) {
            turn.report(of_turn, None).await.ok();
        }
    }

    // The process's end.

    /// Ends the idle process. Another is started when it is needed.
    async fn stop(&mut self) {
        self.remember();
        if let Some(alive) = self.alive.take() {
            alive.end().await;
        }
    }

    /// Ends a process that is idle for too long, or that does not stop a cancelled turn.
    async fn stop_by_need(&mut self) {
        match self.alive.as_ref().is_some_and(|alive| alive.process.has_turn()) {
            true => self.stop_deaf().await,
            false => self.stop().await,
        }
    }

    /// Ends a process that does not react. It had its time, so it gets little more.
    async fn stop_deaf(&mut self) {
        self.remember();
        if let Some(alive) = self.alive.take() {
            alive.end_within(DEAF_GRACE).await;
        }
    }

    /// Does something that is usually fast. If it is not, the turn tells what it waits for.
    async fn announce_wait<T>(&self, turn: Option<&TurnSink>, words: String, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        if let Ok(done) = tokio::time::timeout(SILENCE, &mut work).await {
            return done;
        }
        self.report(turn, vec![AgentEvent::Activity(Some(words))]).await;
        let done = work.await;
        self.report(turn, vec![AgentEvent::Activity(None)]).await;
        done
    }

    /// Ends a process without a conversation: nobody can use it.
    async fn drop_unopened(&mut self) {
        if self.alive.as_ref().is_some_and(|alive| alive.process.session().is_none()) {
            self.stop().await;
        }
    }

    /// Keeps the settings that the agent itself has chosen, for its next process.
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
                self.delete_at_agent();
            }
            return;
        };
        // The host stores the end of a turn at this moment: an agent that is left for it would wait an hour for a host.
        if why == CloseReason::Detached && !alive.process.has_turn() {
            alive.process.wait_until_stored(STORING).await;
        }
        // The next host continues a running turn, and reads again the end of one that is not stored. A cancelled turn
        // has neither: its agent would only be left behind.
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

    /// Records the outcome of the last turn: the host may end before storing it.
    async fn keep_end(&self, process: &AgentProcess) {
        let Some((turn, ended)) = process.last() else { return };
        if let Some(mut session_record) =
            SessionRecord::read(self.chat.folder()).await.filter(|session_record| session_record.turn.turn == turn)
        {
            session_record.turn.ended = Some(ended);
            session_record.write(self.chat.folder()).await;
        }
    }

    /// Has another process of the agent delete the conversation, if agents of its kind do that. Nobody waits for it.
    fn delete_at_agent(&self) {
        let Some(id) = self.agent_session_id.clone().filter(|_| self.chat.profile.deletes_sessions()) else { return };
        let chat = Arc::new(self.chat.one_shot_chat());
        tokio::spawn(async move {
            let deleted = async {
                let one_shot = OneShotProcess::start(chat).await.map_err(|error| error.to_string())?;
                let (request, method) = (acp::DeleteSessionRequest::new(id), acp::AGENT_METHOD_NAMES.session_delete);
                let deleted: Result<serde_json::Value, _> = one_shot.call(method, &request).await;
                one_shot.end().await;
                deleted.map(drop).map_err(|error| error.to_string())
            };
            if let Err(error) = deleted.await {
                tracing::debug!(%error, "an agent did not delete its session");
            }
        });
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
            closed.inspect_err(|error| tracing::debug!(%error, "an agent did not close its session")).ok();
        }
        if able.delete.is_some() {
            let request = acp::DeleteSessionRequest::new(session);
            let deleted =
                process.agent_connection.call_for(CallPurpose::Any, names.session_delete, &request, patience).await;
            deleted.inspect_err(|error| tracing::debug!(%error, "an agent did not delete its session")).ok();
        }
    }
}

/// Returns whether the line caused the error, and not the connection.
fn is_about_the_line(error: &ShimError) -> bool {
    matches!(error, ShimError::LineTooLong { .. } | ShimError::LineBreak)
}

pub(super) async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
