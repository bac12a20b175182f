//! The way of an agent's reports into the session.

use grove_agents::{AgentEvent, PermissionPrompt, PromptedParty, Report};
use grove_core::*;
use grove_fs::FsError;
use grove_storage::content;

use super::{ReportContext, ReportTranslation, in_turn, of_session};
use crate::sequencer::HostStopped;
use crate::session::agents::AnswerSender;
use crate::session::client_hooks::{HookOutcome, HookOutcomes};
use crate::session::{Flow, Outbox, SessionTask};

impl SessionTask {
    /// Accepts reports, and publishes their events in one piece.
    pub(in crate::session) async fn take_reports(&mut self, reports: Vec<Report>) -> Result<Flow, HostStopped> {
        let now = self.session_context.env.clock.now();
        let mut out = Outbox::default();
        for report in reports {
            self.agents.note_report(&report.chat, report.turn.as_ref(), now);
            if let Err(error) = self.take_or_hold(report, &mut out).await {
                self.content_failed(&error, &mut out);
            }
        }
        self.send(out).await?;
        Ok(Flow::On)
    }

    /// Fails the running turns: content of one could not be stored.
    pub(in crate::session) fn content_failed(&mut self, error: &FsError, out: &mut Outbox) {
        tracing::warn!(session = %self.tip.id, %error, "a turn's content could not be stored");
        self.fail_turns_of(|_| true, &ErrorInfo::new("storage", error.to_string()), out);
    }

    /// Takes a report with what hooks decided about its events.
    pub(in crate::session) async fn take_report(
        &mut self,
        report: Report,
        mut hooked: HookOutcomes,
        out: &mut Outbox,
    ) -> Result<(), FsError> {
        let Report { chat, turn, events, mark } = report;
        let spoke = turn.is_some() && events.iter().any(|event| !matches!(event, AgentEvent::Activity(_)));
        for (place, event) in events.into_iter().enumerate() {
            self.take_event(&chat, turn.as_ref(), event, hooked.remove(&place), out).await?;
        }
        if spoke && self.tip.chat(&chat).is_some_and(|chat| chat.activity.is_some()) {
            let event = ChatEvent::ActivityChanged(None);
            self.accept(EventReport::Chat { chat: chat.clone(), event }, out).ok();
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
        hooked: Option<HookOutcome>,
        out: &mut Outbox,
    ) -> Result<(), FsError> {
        let has_told = matches!(hooked, Some(HookOutcome::Result(_)));
        let is_reported_later = is_reported_later(&event);
        let decided = self.apply_hooks(&mut event, hooked).await;
        if is_reported_later && decided.is_none() {
            return Ok(());
        }
        if is_reported_later && let Some(turn) = turn {
            self.name_running_call(chat, turn, &mut event);
        }
        // The chat may be gone.
        let Some(state) = self.tip.chat(chat) else { return Ok(()) };
        let place = ReportContext { session: &self.tip, chat: state, limits: &self.session_context.config.limits };
        let plan = match &event {
            AgentEvent::Plan(entries) if chat.as_str() == Session::MAIN_CHAT => Some(entries.clone()),
            _ => None,
        };
        let ReportTranslation { store, commands } = match turn.map(|turn| state.active_turn(turn)) {
            Some(Some(active)) => in_turn(&mut event, active, place),
            // A late report: its turn may be over.
            Some(None) => return Ok(()),
            None => of_session(&mut event, place),
        };
        for (id, bytes) in store {
            content::put(self.logs.store().as_ref(), &self.tip.id, &id, &bytes).await?;
        }
        for command in commands {
            if let Err(rejection) = self.accept_from(command, out) {
                tracing::debug!(
                    session = %self.tip.id, %rejection,
                    "an agent's report is invalid in the session's current state"
                );
                // Requests in it are dropped, which the agent notices by its answer never coming.
                return Ok(());
            }
        }
        if has_told && let AgentEvent::ToolCompleted { call, .. } = &event {
            out.completed.retain(|completed| completed.id != *call);
        }
        if let Some(plan) = plan {
            self.write_todos(plan);
        }
        let Some(turn) = turn.cloned() else { return Ok(()) };
        let (call, asked, result) = match event {
            AgentEvent::ToolReady { call, permission, result, .. } => (call, permission, result),
            AgentEvent::Tool(update) => (update.call, update.permission, update.result),
            AgentEvent::InputNeeded { request, answer } => {
                self.agents.await_answer(chat, &turn, request.id, AnswerSender::Question(answer));
                return Ok(());
            }
            _ => return Ok(()),
        };
        if let Some(result) = result {
            self.agents.await_answer(chat, &turn, call.as_str().into(), AnswerSender::Result(result));
        }
        let Some(PermissionPrompt { request, answer, .. }) = asked else { return Ok(()) };
        self.agents.await_answer(chat, &turn, request.id.clone(), AnswerSender::Permission(answer));
        self.judge_permission(chat, &turn, (&call, &request), decided.as_ref(), out);
        Ok(())
    }
}

/// Returns whether the agent itself reports the call of this event, if it may run.
fn is_reported_later(event: &AgentEvent) -> bool {
    let AgentEvent::Tool(update) = event else { return false };
    update.permission.as_ref().is_some_and(|prompt| prompt.asks == PromptedParty::HooksAlone)
}
