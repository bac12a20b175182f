//! The events of a session's task: checked against the tip, published in one piece, then passed to the agent.

use std::collections::HashMap;
use std::sync::Arc;

use grove_core::*;
use grove_fs::FsError;
use grove_storage::ActionOrigin;

use super::agents::RequestAnswer;
use super::client_hooks::CompletedCall;
use super::pastes::PasteError;
use super::tree::TreeError;
use super::{SessionTask, ToSession};
use crate::host::Host;
use crate::sequencer::{HostStopped, JournalScope, JournalWriteError, Publication, WriteFailurePolicy};

/// The warnings that a session may have.
pub const MAX_WARNINGS: usize = 20;

/// The events of one step of the task, published in one piece, and their consequences for the agent.
#[derive(Default)]
pub(super) struct Outbox {
    pub(super) events: Vec<Event>,
    pub(super) finished: Vec<(SessionId, ChatId, Arc<Turn>)>,
    pub(super) ended: Vec<EndedTurn>,
    pub(super) decided: Vec<((ChatId, RequestId), RequestAnswer)>,
    /// Turns that the agent is to start.
    pub(super) prompts: Vec<(ChatId, TurnId)>,
    /// Settings that the user has changed.
    pub(super) settings: Extra,
    /// Tool calls that have ended, for the hooks of clients.
    pub(super) completed: Vec<CompletedCall>,
    /// The title that a person gave the session.
    pub(super) title: Option<String>,
    /// The frame cursors of agents after this step.
    pub(super) marks: HashMap<ChatId, FrameCursor>,
}

/// A turn that is over.
pub(super) struct EndedTurn {
    pub(super) chat: ChatId,
    pub(super) turn: TurnId,
    pub(super) by_agent: bool,
    pub(super) outcome: Outcome,
    /// The error that ended it, if one did.
    pub(super) error: Option<ErrorInfo>,
}

/// The reason why a session did not carry out a command.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error(transparent)]
    Rejected(#[from] Rejection),
    #[error(transparent)]
    HostStopped(#[from] HostStopped),
    /// The session's storage client does not accept the change at the moment.
    #[error("{0}")]
    Unsaved(String),
    /// Too many prompts wait for hooks of clients.
    #[error("{0} prompts wait for hooks already: send this one again when they have started")]
    TooManyPrompts(usize),
    #[error(transparent)]
    NotWritten(#[from] JournalWriteError),
    #[error(transparent)]
    Paste(PasteError),
    #[error(transparent)]
    Fs(#[from] FsError),
    #[error("the session is gone")]
    Gone,
}

impl From<PasteError> for CommandError {
    fn from(error: PasteError) -> Self {
        match error {
            PasteError::Rejected(rejection) => rejection.into(),
            error => CommandError::Paste(error),
        }
    }
}

/// The reason why a client's action is refused.
#[derive(Debug, thiserror::Error)]
pub enum ActionRefusal {
    /// The action cannot be understood, or no client may send it.
    #[error("{0}")]
    Invalid(String),
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    Tree(#[from] TreeError),
}

/// The outcome of a command that is allowed.
pub(super) enum CommandOutcome {
    Happened,
    NoChange,
}

impl Outbox {
    /// Takes the events out, to be published.
    pub(super) fn publication(
        &mut self,
        origin: Option<ActionOrigin>,
        on_write_failure: WriteFailurePolicy,
        scope: JournalScope,
    ) -> Publication {
        Publication {
            events: std::mem::take(&mut self.events),
            origin,
            finished: std::mem::take(&mut self.finished),
            marks: Vec::new(),
            on_write_failure,
            scope,
            done: None,
        }
    }
}

impl SessionTask {
    /// Carries out a command of the host. If it cannot be stored, the session is restored and nothing has happened.
    ///
    /// Finished turns are shared, so a copy to restore from only costs the running one.
    pub(super) async fn attempt(
        &mut self,
        command: impl Into<HostCommand>,
        origin: Option<ActionOrigin>,
    ) -> Result<Result<CommandOutcome, CommandError>, HostStopped> {
        self.attempt_from(Command::Host(command.into()), origin).await
    }

    /// [`SessionTask::attempt`] for a command of any sender.
    pub(super) async fn attempt_from(
        &mut self,
        mut command: Command,
        origin: Option<ActionOrigin>,
    ) -> Result<Result<CommandOutcome, CommandError>, HostStopped> {
        let starts = match &command {
            Command::Host(HostCommand::AddChat { .. } | HostCommand::ForkChat { .. }) => true,
            command => matches!(
                command.client_command(),
                Some(
                    ClientCommand::StartTurn { .. } | ClientCommand::Enqueue { .. } | ClientCommand::SetSteering { .. }
                )
            ),
        };
        if self.stopping.as_ref().is_some_and(|stopping| starts || self.takes_no_answers(stopping)) {
            return Ok(Err(HostStopped.into()));
        }
        // A running save is waited for, except by commands that only end something or give an answer.
        if !matches!(
            command.client_command(),
            Some(ClientCommand::CancelTurn { .. } | ClientCommand::ResolvePermission { .. })
        ) {
            self.settle().await?;
        }
        let is_refused = !matches!(command.client_command(), Some(ClientCommand::CancelTurn { .. }));
        if let Some(reason) = self.persistence.refusal(&self.tip).filter(|_| is_refused) {
            return Ok(Err(CommandError::Unsaved(reason)));
        }
        if let Some(turn) = self.older_turn(&command).await {
            return Ok(Err(Rejection::DuplicateTurn(turn).into()));
        }
        let pastes = match self.store_pastes(&mut command).await {
            Ok(pastes) => pastes,
            Err(error) => return Ok(Err(error.into())),
        };
        let before = self.tip.clone();
        let mut out = Outbox::default();
        if let Err(rejection) = self.accept_from(command, &mut out) {
            self.tip = before;
            self.forget(pastes).await;
            return Ok(Err(rejection.into()));
        }
        if out.events.is_empty() {
            return Ok(Ok(CommandOutcome::NoChange));
        }
        if !pastes.is_empty() {
            self.files_came(&mut out);
        }
        if let Err(error) = self.commit(out, origin).await? {
            self.tip = before;
            self.note_active_folder();
            self.forget(pastes).await;
            return Ok(Err(error));
        }
        Ok(Ok(CommandOutcome::Happened))
    }

    /// The turn with the same id as one that a command would start, if only a log has it.
    ///
    /// Turns in memory are checked with the command itself.
    async fn older_turn(&mut self, command: &Command) -> Option<TurnId> {
        let turn = match command.client_command()? {
            ClientCommand::StartTurn { turn, .. } => turn.clone(),
            // A queued message becomes a turn of its own id.
            ClientCommand::Enqueue { message, .. } | ClientCommand::SetSteering { message, .. } => {
                TurnId::from(message.id.as_str())
            }
            _ => return None,
        };
        // A fork's log may still be copied: nobody waits for that.
        let has_more = |chat: &&Chat| chat.has_older_turns && !self.copies.contains(&chat.id);
        let chats: Vec<ChatId> = self.tip.chats.iter().filter(has_more).map(|chat| chat.id.clone()).collect();
        for chat in chats {
            match self.logs.log(&chat).has_turn(&turn).await {
                Ok(true) => return Some(turn),
                Ok(false) => {}
                Err(error) => {
                    // The turn continues all the same: a duplicate id loses nothing of it.
                    tracing::warn!(session = %self.tip.id, %chat, %error, "the ids of older turns cannot be read");
                }
            }
        }
        None
    }

    /// Says whether a command would be accepted now.
    pub(super) fn check(&self, command: Command) -> Result<(), Rejection> {
        let agents = self.session_context.agents.borrow().clone();
        let agent = agents.iter().find(|agent| agent.id == self.tip.agent);
        let tip = ValidationContext { session: &self.tip, agent, queue: self.queue_policy() };
        validate(tip, command, self.session_context.env.clock.now()).map(|_| ())
    }

    /// The handling of queued messages when a turn ends: a stopping host leaves them to the next one.
    fn queue_policy(&self) -> QueuePolicy {
        if self.stopping.is_some() { QueuePolicy::Hold } else { QueuePolicy::Start }
    }

    /// Checks a command of the host against the tip; its events go to the outbox.
    pub(super) fn accept(&mut self, command: impl Into<HostCommand>, out: &mut Outbox) -> Result<(), Rejection> {
        self.accept_from(Command::Host(command.into()), out)
    }

    /// [`SessionTask::accept`] for a command of any sender.
    pub(super) fn accept_from(&mut self, command: Command, out: &mut Outbox) -> Result<(), Rejection> {
        let who = command.sender();
        let agents = self.session_context.agents.borrow().clone();
        let agent = agents.iter().find(|agent| agent.id == self.tip.agent);
        let (queue, now) = (self.queue_policy(), self.session_context.env.clock.now());
        let batch = advance_with(&mut self.tip, agent, queue, command, now)?;
        for event in &batch.events {
            match &event.change {
                Change::Chat(_, chat, event) => self.note(chat, event, &who, out),
                Change::Session(_, SessionEvent::ConfigChanged { values, .. }) if matches!(&who, Actor::Client(_)) => {
                    out.settings.extend(values.clone());
                }
                Change::Session(_, SessionEvent::ActiveClientSet(_) | SessionEvent::ActiveClientRemoved(_)) => {
                    self.agents.offer_tools(&self.tip);
                }
                Change::Session(_, SessionEvent::TitleChanged(title)) => {
                    self.workspace.named_by(title.source());
                    if title.source() == TitleSource::Person && who != Actor::Agent {
                        out.title = Some(title.text().to_owned());
                    }
                }
                Change::Session(..) | Change::Root(_) => {}
            }
        }
        let turn_changes = batch.events.iter().any(|event| event.change.class().boundary.is_some());
        out.events.extend(batch.events);
        if turn_changes {
            self.note_active_folder();
            self.warn_of_collisions(out);
        }
        Ok(())
    }

    /// Notes whether a turn runs in the session's folders, and notifies the sessions that this concerns.
    pub(super) fn note_active_folder(&self) {
        let runs = self.agents.agent().edits_files() && self.tip.chats.iter().any(|chat| chat.active.is_some());
        let active_folders = &self.session_context.active_folders;
        let concerned = if runs { active_folders.enter(&self.tip) } else { active_folders.leave(&self.tip.id) };
        let Some(host) = self.session_context.host.upgrade().filter(|_| !concerned.is_empty()) else { return };
        self.session_context.env.spawn.spawn(Box::pin(async move {
            let host = Host(host);
            for session in concerned {
                if let Some(handle) = host.open_session(&session) {
                    // A session that ends at this moment needs no warning.
                    handle.inbox.send(ToSession::ActiveFoldersChanged).await.ok();
                }
            }
        }));
    }

    /// Reports the other sessions that run in the session's folders, and rules that do not count, if they have changed.
    pub(super) fn warn_of_collisions(&mut self, out: &mut Outbox) {
        let is_other = |words: &&String| !warning::is_shared_folder(words) && !warning::is_policy(words);
        let others = self.tip.details.warnings.iter().filter(is_other);
        let collision = self.session_context.active_folders.collision(&self.tip.id);
        let warnings: Vec<String> = others.cloned().chain(collision).chain(self.policy_warning()).collect();
        if self.tip.details.warnings != warnings {
            let details = Box::new(SessionDetails { warnings, ..self.tip.details.clone() });
            self.accept(EventReport::Session(SessionEvent::DetailsChanged(details)), out).ok();
        }
    }

    /// Adds a warning, unless the session has it or has too many.
    pub(super) fn warn(&mut self, words: String, out: &mut Outbox) {
        let warnings = &self.tip.details.warnings;
        if !warnings.contains(&words) && warnings.len() < MAX_WARNINGS {
            let warnings = warnings.iter().cloned().chain([words]).collect();
            let details = Box::new(SessionDetails { warnings, ..self.tip.details.clone() });
            self.accept(EventReport::Session(SessionEvent::DetailsChanged(details)), out).ok();
        }
    }

    /// Notes the consequences of an accepted event for the agent, which gets them when the event is written.
    fn note(&mut self, chat: &ChatId, event: &ChatEvent, who: &Actor, out: &mut Outbox) {
        let mut decided = |request: &str, answer| out.decided.push(((chat.clone(), request.into()), answer));
        match event {
            ChatEvent::TurnStarted { turn, .. } => out.prompts.push((chat.clone(), turn.clone())),
            ChatEvent::ToolCallConfirmed { request, verdict, .. } => {
                decided(request.as_str(), RequestAnswer::Permission(verdict.clone()));
            }
            // Its receiver waits for a client's call.
            ChatEvent::ToolCallCompleted { turn, call, result, .. } => {
                out.completed.extend(self.completed_call(chat, turn, call));
                decided(call.as_str(), RequestAnswer::Result(result.clone()));
            }
            ChatEvent::ToolCallResultConfirmed { call, result, decision, .. } => {
                let result = match decision {
                    Decision::Approved => result.clone(),
                    Decision::Denied => ToolResult {
                        success: false,
                        past_tense_message: "The result was not released".to_owned(),
                        output: None,
                        attached: Vec::new(),
                        extra: None,
                    },
                };
                decided(call.as_str(), RequestAnswer::Result(result));
            }
            ChatEvent::InputAnswered { request, outcome, .. } => {
                let asked = self.tip.chat(chat).and_then(|chat| chat.active.as_deref()?.input_request(request));
                let answers = asked.map(|input| input.answers.clone()).unwrap_or_default();
                decided(request.as_str(), RequestAnswer::Question(InputResponse { outcome: *outcome, answers }));
            }
            event if event.ends_turn() => {
                if let Some(turn) = event.turn() {
                    let (outcome, error) = match event {
                        ChatEvent::TurnCompleted { .. } => (Outcome::Complete, None),
                        ChatEvent::TurnFailed { error, .. } => (Outcome::Error, Some(error.clone())),
                        _ => (Outcome::Cancelled, None),
                    };
                    let by_agent = *who == Actor::Agent;
                    let ended = EndedTurn { chat: chat.clone(), turn: turn.clone(), by_agent, outcome, error };
                    out.ended.push(ended);
                }
                let finished = self.tip.chat(chat).and_then(|state| {
                    let turn = state.turns.get(state.position(event.turn()?)?)?;
                    Some((self.tip.id.clone(), chat.clone(), turn.clone()))
                });
                out.finished.extend(finished);
            }
            _ => {}
        }
    }

    /// Passes the consequences of a step to the agent.
    pub(super) fn act(&mut self, out: Outbox) {
        self.persistence.mark_folder_due();
        if !(out.prompts.is_empty() && out.ended.is_empty()) {
            self.note_plan();
        }
        self.tell_of_results(out.completed);
        self.tell_of_turns(&out.ended);
        for ended in out.ended {
            self.hook_waits.end_turn(&ended.chat, &ended.turn);
            self.end(&ended);
        }
        for (request, answer) in out.decided {
            let (agents, context) = self.agent_parts();
            agents.answer(&request, answer, context);
        }
        if !out.settings.is_empty() {
            self.agents.configure(&out.settings, self.session_context.env.spawn.as_ref());
        }
        if let Some(title) = out.title {
            self.agents.set_title(title, self.session_context.env.spawn.as_ref());
        }
        for (chat, turn) in out.prompts {
            self.prompt(&chat, &turn);
        }
    }
}
