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

use super::chat::Chat;
use super::choices::Wish;
use super::kept::{Ended, Kept, KeptTurn};
use super::last_words::with_last_words;
use super::open::Recollection;
use super::process::{Origin, Process, Running};
use super::start::{Alive, Attached, attach};
use super::{Copied, Reply, Shared};
use crate::acp::connection::{CallError, Purpose};
use crate::acp::content;
use crate::acp::fleet::end_what_runs_in;
use crate::agent::*;

/// How much of a conversation is retold to an agent that has forgotten it.
const RECAP_BYTES: usize = 64 << 10;
/// How long an agent may take to close a session that nobody needs any more.
const CLOSING: Duration = Duration::from_secs(5);

/// What is wanted of the worker.
#[derive(Debug)]
pub(super) enum Order {
    /// Start the process before the first turn, within this time.
    Start(Duration, Reply),
    Prompt(Box<Prompt>, TurnSink, Reply),
    Resume(Box<Prompt>, Resumption, TurnSink, Reply),
    Configure(Extra),
    Fork(Copied),
    Close(Closing, oneshot::Sender<()>),
}

#[derive(Debug)]
pub(super) struct Worker {
    shared: Arc<Shared>,
    chat: Arc<Chat>,
    orders: mpsc::Receiver<Order>,
    /// Changes, or is closed, when the session is.
    closing: watch::Receiver<bool>,
    alive: Option<Alive>,
    /// How the agent calls the conversation.
    known_as: Option<String>,
    /// What was chosen, by a person or by the agent itself.
    chosen: Extra,
    /// What this process did not take: it is not asked again.
    refused: Vec<Wish>,
    /// Whether this process knows what was said before it was started.
    recollection: Recollection,
    /// Its own conversation could not be brought back, which nobody was told yet.
    lost_conversation: bool,
    /// Copies that are made beside the process: there is none.
    copies: JoinSet<()>,
}

/// Why a process is looked at.
enum Woken {
    Order(Option<Order>),
    Stop,
    Look,
}

impl Worker {
    pub(super) fn new(
        shared: Arc<Shared>,
        orders: mpsc::Receiver<Order>,
        closing: watch::Receiver<bool>,
        opening: OpenSession,
    ) -> Self {
        let chat = Arc::clone(&shared.chat);
        let OpenSession { known_as, settings, .. } = opening;
        let recollection = Recollection::Kept;
        Self {
            shared,
            chat,
            orders,
            closing,
            alive: None,
            known_as,
            chosen: settings,
            refused: Vec::new(),
            recollection,
            lost_conversation: false,
            copies: JoinSet::new(),
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            self.look();
            let woken = self.wait().await;
            match woken {
                Woken::Look => {}
                Woken::Stop => self.stop().await,
                Woken::Order(Some(Order::Start(within, reply))) => self.start_now(within, reply).await,
                Woken::Order(Some(Order::Prompt(prompt, turn, reply))) => self.prompt(*prompt, turn, reply).await,
                Woken::Order(Some(Order::Resume(prompt, from, turn, reply))) => {
                    self.resume(*prompt, from, turn, reply).await;
                }
                Woken::Order(Some(Order::Configure(values))) => self.configure(values).await,
                Woken::Order(Some(Order::Fork(copied))) => self.fork(copied).await,
                Woken::Order(Some(Order::Close(why, done))) => {
                    self.close(why).await;
                    done.send(()).ok();
                    return;
                }
                // The session was dropped, as it is when the host is.
                Woken::Order(None) => return self.close(Closing::LetGo).await,
            }
        }
    }

    async fn wait(&mut self) -> Woken {
        let Some(alive) = &self.alive else { return Woken::Order(self.orders.recv().await) };
        let options = self.chat.fleet.options();
        let mut changes = alive.process.changes();
        // From here on no change is missed; what happened since the last look is looked at first.
        let idle = !alive.process.has_turn();
        if alive.process.ended().is_some() || idle && alive.place.idle_since().is_none() {
            return Woken::Look;
        }
        let deadline = match alive.process.cancelled_at() {
            Some(since) => Some(since + options.patience),
            None => alive.place.idle_since().map(|since| since + options.idle),
        };
        tokio::select! {
            order = self.orders.recv() => Woken::Order(order),
            () = until(deadline) => Woken::Stop,
            () = alive.place.told_to_stop(), if idle => Woken::Stop,
            _ = changes.changed() => Woken::Look,
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
            alive.place.idle();
        }
    }

    // Turns.

    async fn prompt(&mut self, prompt: Prompt, turn: TurnSink, mut reply: Reply) {
        self.give_up_copies();
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
        match self.recollection {
            Recollection::Kept => Ok(None),
            Recollection::Empty => {
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
        let mut wishes = Vec::new();
        // Since its start, the agent itself may have chosen something else.
        if self.alive.is_none() {
            let place = self.place(turn).await;
            self.start(turn, place).await?;
            wishes = self.chosen_wishes();
        }
        wishes.extend(model.cloned().map(Wish::Model));
        self.apply(wishes, turn).await;
        Ok(())
    }

    /// Waits for a turn that was cancelled, and lets go of a process that cannot be used any more.
    async fn settle(&mut self) -> Result<(), AgentError> {
        self.look();
        let Some(alive) = &self.alive else { return Ok(()) };
        if alive.process.has_turn() {
            let Some(since) = alive.process.cancelled_at() else {
                return Err(AgentError::Turn("another turn is running: wait for its end, or cancel it".to_owned()));
            };
            let patience = self.chat.fleet.options().patience;
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
        if self.alive.as_ref().is_some_and(|alive| !alive.place.busy()) {
            self.stop().await;
        }
        Ok(())
    }

    async fn send(&mut self, prompt: Prompt, retold: Option<String>, turn: TurnSink, reply: Reply) {
        let Some(alive) = &self.alive else { return };
        let process = Arc::clone(&alive.process);
        let Some(session) = process.session() else { return };
        let capabilities = process.capabilities();
        let mut blocks = content::blocks(&prompt.message, &capabilities.prompt_capabilities);
        if let Some(retold) = retold {
            blocks.insert(0, acp::ContentBlock::Text(acp::TextContent::new(retold)));
        }
        let id = turn.turn().clone();
        let Some(frame) = process.begin(Running::new(turn, reply, Origin::Own)) else { return };
        // From here on whoever cancels it finds it; who did so before has only said so.
        if self.was_cancelled(&id) {
            return process.finish(Err(AgentError::TurnOver));
        }
        let (number, said) =
            (process.with_frames(|frames| frames.process()), process.with_choices(|c| c.said().clone()));
        let request = acp::PromptRequest::new(session.clone(), blocks);
        let folder = self.chat.folder();
        let kept = |line| {
            let turn = KeptTurn { turn: id.clone(), frame, line, ended: None };
            Kept { process: number, session, capabilities, said, turn }.write(folder)
        };
        match process.link.prompt(id.as_str(), &request, kept).await {
            Ok(()) => self.recollection = Recollection::Kept,
            // Whoever hears the agent knows better why, and says so.
            Err(CallError::Shim(error)) if !is_about_the_line(&error) => {}
            Err(error) => process.finish(Err(AgentError::Turn(error.to_string()))),
        }
        // It may have been cancelled before the agent heard of it.
        if process.cancelled_at().is_some() {
            process.cancel(&id, self.chat.fleet.options().patience).await;
        }
    }

    fn was_cancelled(&self, turn: &TurnId) -> bool {
        self.shared.cancelled.borrow().as_ref() == Some(turn)
    }

    /// Goes on with a turn of an earlier host's.
    async fn resume(&mut self, prompt: Prompt, from: Resumption, turn: TurnSink, reply: Reply) {
        self.give_up_copies();
        if self.alive.is_some() {
            reply.send(Err(AgentError::Turn("the agent has begun another turn".to_owned()))).ok();
            return;
        }
        let grace = self.chat.fleet.options().shim_limits.grace;
        let kept = Kept::read(self.chat.folder()).await.filter(|kept| kept.turn.turn == *turn.turn());
        let Some(kept) = kept else {
            // The agent never heard of it.
            if let Err(error) = end_what_runs_in(self.chat.folder(), grace).await {
                tracing::warn!(%error, "an agent of an earlier host cannot be ended");
            }
            return self.prompt(prompt, turn, reply).await;
        };
        let session = kept.session.clone();
        let known_as = session.0.to_string();
        // The host may have ended before it was stored.
        if self.known_as.replace(known_as.clone()).as_ref() != Some(&known_as) {
            self.report(Some(&turn), vec![AgentEvent::KnownAs(known_as)]).await;
        }
        let (id, ended) = (turn.turn().clone(), kept.turn.ended.clone());
        match attach(&self.chat, kept, from).await {
            Ok(Attached::Running(going)) => {
                let running = Running::new(turn, reply, going.origin());
                let alive = going.on(&self.chat, running);
                alive.process.with_choices(|choices| {
                    // What was chosen since the prompt was told to the earlier host.
                    for wish in self.chosen_wishes() {
                        if let Some(change) = choices.change(&session, &wish) {
                            choices.made(&change);
                        }
                    }
                    self.chat.learned.models(choices.settings());
                });
                let process = Arc::clone(&alive.process);
                self.shared.set_process(Some(Arc::clone(&process)));
                self.alive = Some(alive);
                // Whoever cancelled it before found no process to tell.
                if self.was_cancelled(&id) {
                    process.cancel(&id, self.chat.fleet.options().patience).await;
                }
            }
            Ok(Attached::NeverSent) => self.prompt(prompt, turn, reply).await,
            Err(error) => {
                // An agent that cannot be heard would work on for nobody.
                if let Err(error) = end_what_runs_in(self.chat.folder(), grace).await {
                    tracing::warn!(%error, "an agent of an earlier host cannot be ended");
                }
                let result = match ended {
                    Some(Ended::Well) => Ok(()),
                    Some(Ended::Failed(why)) => Err(AgentError::Turn(why)),
                    None => {
                        let how = with_last_words(error.to_string(), self.chat.folder()).await;
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

    async fn close(&mut self, why: Closing) {
        self.look();
        let Some(alive) = self.alive.take() else {
            if why == Closing::Removed {
                end_what_runs_in(self.chat.folder(), self.chat.fleet.options().shim_limits.grace).await.ok();
                super::remove(self.chat.folder()).await;
            }
            return;
        };
        // The next host goes on with a turn that runs, and hears again the end of one that is not stored. A cancelled
        // turn has neither: its agent would only be left behind.
        let is_left = !alive.process.was_cancelled() && (alive.process.has_turn() || alive.process.has_unstored());
        match why {
            Closing::LetGo if is_left => alive.detach(),
            Closing::LetGo => {
                self.keep_end(&alive.process).await;
                alive.end().await;
            }
            Closing::Replaced => alive.end().await,
            Closing::Removed => {
                self.part(&alive.process).await;
                alive.end().await;
                super::remove(self.chat.folder()).await;
            }
        }
        self.shared.set_process(None);
    }

    /// Notes how the last turn ended: the host may not get to store it.
    async fn keep_end(&self, process: &Process) {
        let Some((turn, ended)) = process.last() else { return };
        if let Some(mut kept) = Kept::read(self.chat.folder()).await.filter(|kept| kept.turn.turn == turn) {
            kept.turn.ended = Some(ended);
            kept.write(self.chat.folder()).await;
        }
    }

    /// Tells the agent that the conversation is over for good.
    async fn part(&self, process: &Process) {
        let Some(session) = process.session() else { return };
        let able = process.capabilities().session_capabilities;
        let patience = CLOSING.min(self.chat.fleet.options().patience);
        let names = acp::AGENT_METHOD_NAMES;
        if able.close.is_some() {
            let request = acp::CloseSessionRequest::new(session.clone());
            let closed = process.link.call_for(Purpose::Any, names.session_close, &request, patience).await;
            closed.inspect_err(|error| tracing::debug!(%error, "an agent does not close its session")).ok();
        }
        if able.delete.is_some() {
            let request = acp::DeleteSessionRequest::new(session);
            let deleted = process.link.call_for(Purpose::Any, names.session_delete, &request, patience).await;
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
