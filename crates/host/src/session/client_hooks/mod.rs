//! The hooks of clients in a session: what waits for them, and what they change.
//!
//! A hook runs outside of the session's task. Meanwhile the reports of the chat whose call waits are held in their order,
//! and so are prompts whose hooks have not answered. Nothing that is held is published or stored, so a host that ends
//! loses nothing: the agent's lines come again, and the hooks are asked again.

pub(crate) mod prompts;
mod reports;

use std::collections::{HashMap, VecDeque};

use futures_util::future::AbortHandle;
use grove_agents::Report;
use grove_agents::setup::{HookMode, ToolFilter};
use grove_core::*;

use super::agents::REPORTS;
use super::{EndedTurn, SessionTask, ToSession};
use crate::client_hooks::{ClientHookEvent, HookCaller, HookedCall, HookedResult, PromptOutcome, ToolOutcome};
use crate::host::Host;

/// The times that a hook may have the agent go on, one after the other, without a prompt of a person.
pub const MAX_STOP_BLOCKS: u32 = 8;

/// Everything of a session that waits for hooks.
#[derive(Default)]
pub(super) struct HookWaits {
    reports: HashMap<ChatId, HeldReports>,
    prompts: VecDeque<HeldPrompt>,
    last_ticket: u64,
    stop_blocks: u32,
}

/// The reports of a chat from the one on that waits for hooks.
struct HeldReports {
    ticket: u64,
    turn: Option<TurnId>,
    reports: VecDeque<Report>,
    call: AbortHandle,
    /// The answers for the first report, when they are there. Empty if its turn is over.
    answers: Option<HookOutcomes>,
}

/// A prompt that waits for hooks.
struct HeldPrompt {
    ticket: u64,
    message: ToSession,
    outcome: Option<PromptOutcome>,
}

/// A tool call that has ended, as hooks see it.
pub(super) struct CompletedCall {
    pub(super) id: ToolCallId,
    call: HookedCall,
    result: HookedResult,
}

/// The answers of hooks for the events of a report, by their places in it.
pub(crate) type HookOutcomes = HashMap<usize, HookOutcome>;

/// The answer of all hooks about one event.
#[derive(Debug)]
pub(crate) enum HookOutcome {
    Tool(ToolOutcome),
    Result(Option<HookedResult>),
}

/// A message of hooks to the session's task.
pub(crate) enum HookMessage {
    Reports {
        chat: ChatId,
        ticket: u64,
        answers: HookOutcomes,
    },
    Prompt {
        ticket: u64,
        outcome: PromptOutcome,
    },
    /// The agent is not to stop, and goes on with this message.
    Continue(String),
}

impl HookWaits {
    /// Returns whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.reports.is_empty() && self.prompts.is_empty()
    }

    /// Returns whether so many reports wait that no more are taken from agents.
    pub(super) fn is_full(&self) -> bool {
        self.reports.values().map(|held| held.reports.len()).sum::<usize>() >= REPORTS
    }

    /// Notes the end of a turn: what waits for hooks in it is late, and nothing waits for that any more.
    pub(super) fn end_turn(&mut self, chat: &ChatId, turn: &TurnId) {
        if let Some(held) = self.reports.get_mut(chat).filter(|held| held.turn.as_ref() == Some(turn)) {
            held.call.abort();
            held.answers.get_or_insert_default();
        }
    }

    fn next_ticket(&mut self) -> u64 {
        self.last_ticket += 1;
        self.last_ticket
    }
}

impl SessionTask {
    /// How the session's hooks count.
    async fn hook_mode(&mut self) -> HookMode {
        self.setup.get().await.map(|setup| setup.hooks).unwrap_or_default()
    }

    /// The tools that the agent is denied, because it cannot leave them out itself.
    async fn denied_tools(&mut self) -> Option<ToolFilter> {
        let setup = self.setup.get().await.ok()?;
        let abilities = self.agents.agent().abilities();
        abilities.denies_filtered(&setup.tool_filter).then(|| setup.tool_filter.clone())
    }

    /// The caller of the session's hooks; `None` if the host has ended.
    fn hook_caller(&self) -> Option<HookCaller> {
        let host = self.session_context.host.upgrade().map(Host)?;
        let folder = self.tip.working_directories.first().and_then(|folder| grove_work::local_path(folder).ok());
        Some(HookCaller {
            registry: host.client_hooks().clone(),
            clock: self.session_context.env.clock.clone(),
            session: self.tip.id.clone(),
            folder: folder.map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default(),
        })
    }

    /// The caller, if clients with hooks are connected.
    fn connected_hooks(&self) -> Option<HookCaller> {
        self.hook_caller().filter(|caller| caller.registry.has_clients(&self.tip.id))
    }

    /// Handles a message of hooks.
    pub(super) fn hooks_answered(&mut self, message: HookMessage) -> Option<ToSession> {
        match message {
            HookMessage::Reports { chat, ticket, answers } => {
                if let Some(held) = self.hook_waits.reports.get_mut(&chat).filter(|held| held.ticket == ticket) {
                    held.answers.get_or_insert(answers);
                }
                None
            }
            HookMessage::Prompt { ticket, outcome } => {
                let held = self.hook_waits.prompts.iter_mut().find(|held| held.ticket == ticket);
                held.into_iter().for_each(|held| held.outcome = Some(outcome.clone()));
                None
            }
            HookMessage::Continue(text) => self.continue_prompt(text),
        }
    }

    /// Tells the hooks that tool calls have ended.
    pub(super) fn tell_of_results(&self, completed: Vec<CompletedCall>) {
        let Some(caller) = self.connected_hooks().filter(|_| !completed.is_empty()) else { return };
        for CompletedCall { call, result, .. } in completed {
            let caller = caller.clone();
            self.session_context.env.spawn.spawn(Box::pin(async move {
                caller.after_tool(call, result).await;
            }));
        }
    }

    /// A call that has just ended, if hooks are told of it.
    pub(super) fn completed_call(&self, chat: &ChatId, turn: &TurnId, id: &ToolCallId) -> Option<CompletedCall> {
        self.connected_hooks()?;
        let call = self.tip.chat(chat)?.active_turn(turn)?.tool_call(id)?;
        let ToolCallStatus::Completed(result) = &call.status else { return None };
        let text = result.output.clone().unwrap_or_default();
        let result = HookedResult { success: result.success, text };
        Some(CompletedCall { id: id.clone(), call: HookedCall::new(&call.name, call.input.as_deref()), result })
    }

    /// Tells the hooks that turns of the main chat have ended.
    pub(super) fn tell_of_turns(&self, ended: &[EndedTurn]) {
        let Some(caller) = self.connected_hooks().filter(|_| !ended.is_empty()) else { return };
        for ended in ended.iter().filter(|ended| ended.chat.as_str() == Session::MAIN_CHAT) {
            let event = match (ended.outcome, &ended.error) {
                (Outcome::Complete, _) => ClientHookEvent::AgentStop { is_again: self.hook_waits.stop_blocks > 0 },
                (Outcome::Error, Some(error)) => {
                    ClientHookEvent::Error { message: error.message.clone(), of_agent: error.kind == "agent" }
                }
                (Outcome::Error | Outcome::Cancelled, _) => continue,
            };
            let (caller, inbox) = (caller.clone(), self.inbox_sender.clone());
            self.session_context.env.spawn.spawn(Box::pin(async move {
                let goes_on = caller.notify(event).await;
                if let (Some(text), Some(inbox)) = (goes_on, inbox.upgrade()) {
                    // A session that is gone does not go on.
                    inbox.send(ToSession::Hooks(HookMessage::Continue(text))).await.ok();
                }
            }));
        }
    }
}
