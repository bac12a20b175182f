//! Reports of agents that wait for the hooks of clients: of tool calls that are about to run, and of results.

use std::collections::VecDeque;

use futures_util::FutureExt;
use futures_util::future::{abortable, join_all};
use grove_agents::setup::{HookMode, Support};
use grove_agents::{AgentEvent, PermissionPrompt, PromptedParty, Report};
use grove_core::*;

use super::{HeldReports, HookMessage, HookOutcome, HookOutcomes};
use crate::client_hooks::{HookVerdict, HookedCall, HookedResult, ToolOutcome, input_of};
use crate::sequencer::HostStopped;
use crate::session::judgement::PROTECTED_WRITE;
use crate::session::{Outbox, SessionTask, ToSession};

/// The party that denies what hooks ask for and the agent cannot do.
const UNABLE: &str = "the agent cannot do what the hook asks for";

/// The party that denies calls of tools that the session may not use.
const TOOL_FILTER: &str = "the session's list of tools";

/// An event of a report that hooks are asked about.
enum HookedEvent {
    Call(HookedCall),
    Result(HookedCall, HookedResult),
}

impl SessionTask {
    /// Takes a report, or holds it until the hooks have answered about it, and everything after it of its chat.
    pub(in crate::session) async fn take_or_hold(
        &mut self,
        report: Report,
        out: &mut Outbox,
    ) -> Result<(), grove_fs::FsError> {
        if let Some(held) = self.hook_waits.reports.get_mut(&report.chat) {
            held.reports.push_back(report);
            return Ok(());
        }
        let events = self.hooked_events(&report).await;
        if events.is_empty() {
            return self.take_report(report, HookOutcomes::default(), out).await;
        }
        self.hold(VecDeque::from([report]), events).await;
        Ok(())
    }

    /// Takes the held reports whose hooks have answered.
    pub(in crate::session) async fn take_answered_reports(&mut self) -> Result<(), HostStopped> {
        let answered = |(chat, held): (&ChatId, &HeldReports)| held.answers.is_some().then(|| chat.clone());
        let chats: Vec<ChatId> = self.hook_waits.reports.iter().filter_map(answered).collect();
        for chat in chats {
            let Some(HeldReports { mut reports, answers, .. }) = self.hook_waits.reports.remove(&chat) else {
                continue;
            };
            let mut out = Outbox::default();
            let mut answers = answers;
            while let Some(report) = reports.pop_front() {
                let outcomes = answers.take();
                let events = match &outcomes {
                    Some(_) => Vec::new(),
                    None => self.hooked_events(&report).await,
                };
                if !events.is_empty() {
                    reports.push_front(report);
                    self.hold(std::mem::take(&mut reports), events).await;
                    break;
                }
                if let Err(error) = self.take_report(report, outcomes.unwrap_or_default(), &mut out).await {
                    self.content_failed(&error, &mut out);
                }
            }
            self.send(out).await?;
        }
        Ok(())
    }

    async fn hold(&mut self, reports: VecDeque<Report>, events: Vec<(usize, HookedEvent)>) {
        let (Some(caller), Some(first)) = (self.hook_caller(), reports.front()) else { return };
        let (mode, denied) = (self.hook_mode().await, self.denied_tools().await);
        let (chat, turn) = (first.chat.clone(), first.turn.clone());
        let ticket = self.hook_waits.next_ticket();
        let (inbox, at) = (self.inbox_sender.clone(), chat.clone());
        let asking = async move {
            let answers = events.into_iter().map(|(place, event)| {
                let (caller, denied) = (&caller, &denied);
                async move {
                    let outcome = match event {
                        HookedEvent::Call(call)
                            if denied.as_ref().is_some_and(|tools| !tools.allows_call(&call.tool)) =>
                        {
                            let reason = format!("the session may not use the tool {}", call.tool);
                            HookOutcome::Tool(ToolOutcome::denied(&reason, Answerer::rule(TOOL_FILTER)))
                        }
                        HookedEvent::Call(call) => HookOutcome::Tool(caller.before_tool(call, mode).await),
                        HookedEvent::Result(call, result) => HookOutcome::Result(caller.after_tool(call, result).await),
                    };
                    (place, outcome)
                }
            });
            let answers: HookOutcomes = join_all(answers).await.into_iter().collect();
            if let Some(inbox) = inbox.upgrade() {
                // A session that is gone has no use for them.
                inbox.send(ToSession::Hooks(HookMessage::Reports { chat: at, ticket, answers })).await.ok();
            }
        };
        let (asking, call) = abortable(asking);
        self.hook_waits.reports.insert(chat, HeldReports { ticket, turn, reports, call, answers: None });
        self.session_context.env.spawn.spawn(Box::pin(asking.map(|_| ())));
    }

    /// The events of a report that the session's hooks are asked about, with their places.
    async fn hooked_events(&mut self, report: &Report) -> Vec<(usize, HookedEvent)> {
        let asks = |event: &AgentEvent| match event {
            AgentEvent::ToolReady { permission, .. } => permission.is_some(),
            AgentEvent::Tool(update) => update.permission.is_some(),
            AgentEvent::ToolCompleted { .. } => true,
            _ => false,
        };
        if !report.events.iter().any(asks) || (self.hook_mode().await.is_none() && self.denied_tools().await.is_none())
        {
            return Vec::new();
        }
        let Some(turn) = report.turn.as_ref() else { return Vec::new() };
        let active = self.tip.chat(&report.chat).and_then(|chat| chat.active_turn(turn));
        let Some(active) = active else { return Vec::new() };
        let has_clients = self.connected_hooks().is_some();
        let events = report.events.iter().enumerate().filter_map(|(place, event)| {
            let name_of = |call: &ToolCallId| {
                let started = report.events.iter().find_map(|event| match event {
                    AgentEvent::ToolStarted(started) if started.id == *call => Some(started.name.clone()),
                    _ => None,
                });
                started.or_else(|| active.tool_call(call).map(|known| known.name.clone()))
            };
            let input_of = |call: &ToolCallId| active.tool_call(call).and_then(|known| known.input.clone());
            match event {
                AgentEvent::ToolReady { call, input, permission: Some(prompt), .. } if is_hooked(prompt) => {
                    let (name, input) = (name_of(call)?, input.clone().or_else(|| input_of(call)));
                    Some((place, HookedEvent::Call(HookedCall::new(&name, input.as_deref()))))
                }
                AgentEvent::Tool(update) if update.permission.as_ref().is_some_and(is_hooked) => {
                    let name = update.name.clone().filter(|name| !name.is_empty());
                    let name = name.or_else(|| name_of(&update.call)).unwrap_or_else(|| "tool".to_owned());
                    let input = update.input.clone().or_else(|| input_of(&update.call));
                    Some((place, HookedEvent::Call(HookedCall::new(&name, input.as_deref()))))
                }
                // Only the agent whose results the host delivers reports them so; the others have seen theirs.
                AgentEvent::ToolCompleted { call, result } if has_clients => {
                    let known = active.tool_call(call)?;
                    let text = result.output.clone().unwrap_or_default();
                    let result = HookedResult { success: result.success, text };
                    Some((place, HookedEvent::Result(HookedCall::new(&known.name, known.input.as_deref()), result)))
                }
                _ => None,
            }
        });
        events.collect()
    }

    /// Applies what hooks decided about an event. Returns their decision about its permission request, if it still has one.
    pub(in crate::session) async fn apply_hooks(
        &mut self,
        event: &mut AgentEvent,
        outcome: Option<HookOutcome>,
    ) -> Option<ToolOutcome> {
        if let (AgentEvent::ToolCompleted { result, .. }, Some(HookOutcome::Result(changed))) = (&mut *event, &outcome)
        {
            if let Some(HookedResult { success, text }) = changed {
                (result.success, result.output) = (*success, Some(text.clone()));
            }
            return None;
        }
        // A rule that asks goes before a hook that allows, and protected files are always asked about.
        let is_protected =
            matches!(&*event, AgentEvent::Tool(update) if update.name.as_deref() == Some(PROTECTED_WRITE));
        let (input, permission) = match event {
            AgentEvent::ToolReady { input, permission, .. } => (input, permission),
            AgentEvent::Tool(update) => (&mut update.input, &mut update.permission),
            _ => return None,
        };
        let asks = permission.as_ref()?.asks;
        let mut outcome = match outcome {
            Some(HookOutcome::Tool(outcome)) => outcome,
            Some(HookOutcome::Result(_)) | None => ToolOutcome::default(),
        };
        if outcome.arguments.is_some() && outcome.verdict != Some(HookVerdict::Deny) {
            outcome = self.with_changed_arguments(outcome).await;
        }
        let changed = outcome.arguments.as_ref().map(input_of);
        if let Some(changed) = changed.clone() {
            *input = Some(changed);
        }
        let stays = match (asks, outcome.verdict) {
            (PromptedParty::Hooks | PromptedParty::HooksAlone, verdict) => {
                matches!(verdict, Some(HookVerdict::Ask | HookVerdict::Deny))
            }
            _ => true,
        };
        if !stays && let Some(PermissionPrompt { answer, .. }) = permission.take() {
            let allowed = outcome.verdict == Some(HookVerdict::Allow);
            let by = if allowed { ConfirmationReason::Setting } else { ConfirmationReason::NotNeeded };
            // The agent may have stopped waiting.
            answer.send(Verdict { by, edited_input: changed, ..Decision::Approved.into() }).ok();
            return None;
        }
        let may_be_asked = is_protected || self.has_rules();
        if let Some(prompt) = permission {
            match outcome.verdict {
                Some(HookVerdict::Ask) => {
                    prompt.asks = PromptedParty::PersonByHook;
                    prompt.request.intention = outcome.reason.clone().or(prompt.request.intention.take());
                }
                Some(HookVerdict::Deny) => prompt.asks = PromptedParty::Nobody,
                Some(HookVerdict::Allow) if !may_be_asked => prompt.asks = PromptedParty::Nobody,
                Some(HookVerdict::Allow) | None => {}
            }
        }
        Some(outcome)
    }

    /// Gives a call that hooks object to the id of the running call with the same input, which the agent has announced.
    pub(in crate::session) fn name_running_call(&self, chat: &ChatId, turn: &TurnId, event: &mut AgentEvent) {
        let AgentEvent::Tool(update) = event else { return };
        let Some(active) = self.tip.chat(chat).and_then(|chat| chat.active_turn(turn)) else { return };
        if active.tool_call(&update.call).is_some() {
            return;
        }
        let input = HookedCall::new("", update.input.as_deref()).arguments;
        let announced = active.parts().iter().rev().find_map(|part| match part {
            Part::ToolCall(call) if call.status == ToolCallStatus::Running && call.client.is_none() => {
                (HookedCall::new("", call.input.as_deref()).arguments == input).then(|| call.id.clone())
            }
            _ => None,
        });
        if let Some(announced) = announced {
            update.call = announced;
        }
    }

    /// The outcome of hooks that change a call's arguments. An agent that cannot take them does not run the call as it was,
    /// unless hooks are best effort.
    async fn with_changed_arguments(&mut self, outcome: ToolOutcome) -> ToolOutcome {
        if self.agents.agent().abilities().changed_arguments == Support::Yes {
            return outcome;
        }
        if self.hook_mode().await == HookMode::BestEffort {
            return ToolOutcome { arguments: None, ..outcome };
        }
        let reason = format!("the hook changed the arguments, and the agent {} takes no changed ones", self.tip.agent);
        ToolOutcome::denied(&reason, outcome.by.unwrap_or_else(|| Answerer::rule(UNABLE)))
    }
}

/// Returns whether hooks are asked about a permission request.
fn is_hooked(prompt: &PermissionPrompt) -> bool {
    match prompt.asks {
        PromptedParty::Person | PromptedParty::Hooks | PromptedParty::HooksAlone => true,
        PromptedParty::PersonAfterHooks | PromptedParty::Nobody | PromptedParty::PersonByHook => false,
    }
}
