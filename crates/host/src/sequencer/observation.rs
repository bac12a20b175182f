//! The events of turns, tool calls and permission requests, as metrics and spans.
//!
//! The sequencer sees every event once, whatever the agent and the dialect. A streamed delta costs one match here. A
//! span is never entered: it begins with one event and ends with another one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use grove_core::*;
use grove_metrics::{Metrics, PermissionLabel, ToolCallLabel, TurnLabel};
use tracing::Span;

/// Counts events, and keeps the open spans and permission requests of running turns.
pub(super) struct EventObserver {
    metrics: Arc<Metrics>,
    /// The chats with a running turn. A turn that began before this host is not among them.
    turns: HashMap<(SessionId, ChatId), TurnObservation>,
}

/// A running turn.
struct TurnObservation {
    span: Span,
    /// The spans of open tool calls.
    calls: HashMap<ToolCallId, Span>,
    /// The open permission requests, and since when they wait.
    requests: HashMap<ToolCallId, Timestamp>,
}

impl EventObserver {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        Self { metrics, turns: HashMap::new() }
    }

    /// Counts an event, before it is applied.
    ///
    /// `agent` is the agent of a session.
    pub(super) fn observe(&mut self, event: &Event, agent: impl FnOnce(&SessionId) -> Option<AgentId>) {
        match &event.change {
            Change::Session(session, change) => self.session(session, change),
            Change::Chat(session, chat, ChatEvent::TurnStarted { turn, .. }) => {
                self.turn_begins(session, chat, turn, agent);
            }
            Change::Chat(session, chat, change) => self.chat(session, chat, change, event.at),
            Change::Root(_) => {}
        }
    }

    fn session(&mut self, session: &SessionId, change: &SessionEvent) {
        match change {
            SessionEvent::Created(_) => self.metrics.sessions_created.increment(),
            SessionEvent::Removed => {
                self.metrics.sessions_removed.increment();
                self.turns.retain(|(of, _), _| of != session);
            }
            SessionEvent::ChatRemoved(chat) => {
                self.turns.remove(&(session.clone(), chat.clone()));
            }
            _ => {}
        }
    }

    fn chat(&mut self, session: &SessionId, chat: &ChatId, change: &ChatEvent, at: Timestamp) {
        match change {
            ChatEvent::ToolCallStarted { call, .. } | ChatEvent::ToolCallReady { call, .. } => {
                self.call_begins(session, chat, call);
            }
            ChatEvent::ToolCallGated { gated, .. } => {
                self.metrics.permission_requests.increment();
                if let Some(turn) = self.turn(session, chat) {
                    turn.requests.insert(gated.call.clone(), at);
                }
            }
            ChatEvent::ToolCallConfirmed { call, verdict, .. } => {
                let outcome = match verdict.decision {
                    Decision::Approved => PermissionLabel::Allowed,
                    Decision::Denied => PermissionLabel::Denied,
                };
                self.answered(session, chat, call, outcome, at);
                if verdict.decision == Decision::Denied {
                    self.call_ends(session, chat, call, ToolCallLabel::Denied);
                }
            }
            ChatEvent::ToolCallCompleted { call, result, .. } => {
                let outcome = if result.success { ToolCallLabel::Succeeded } else { ToolCallLabel::Failed };
                self.call_ends(session, chat, call, outcome);
            }
            ChatEvent::ToolCallResultConfirmed { call, result, decision, .. } => {
                let outcome = match (decision, result.success) {
                    (Decision::Denied, _) => ToolCallLabel::Denied,
                    (Decision::Approved, true) => ToolCallLabel::Succeeded,
                    (Decision::Approved, false) => ToolCallLabel::Failed,
                };
                self.call_ends(session, chat, call, outcome);
            }
            ChatEvent::TurnCompleted { duration, .. } => self.turn_ends(session, chat, TurnLabel::Completed, *duration),
            ChatEvent::TurnCancelled { duration, .. } => self.turn_ends(session, chat, TurnLabel::Cancelled, *duration),
            ChatEvent::TurnFailed { duration, .. } => self.turn_ends(session, chat, TurnLabel::Failed, *duration),
            _ => {}
        }
    }

    fn turn_begins(
        &mut self,
        session: &SessionId,
        chat: &ChatId,
        turn: &TurnId,
        agent: impl FnOnce(&SessionId) -> Option<AgentId>,
    ) {
        self.metrics.turns_started.increment();
        let empty = tracing::field::Empty;
        let span = tracing::debug_span!(parent: None, "turn", %session, %chat, %turn, agent = empty, outcome = empty);
        if let (false, Some(agent)) = (span.is_disabled(), agent(session)) {
            span.record("agent", tracing::field::display(agent));
        }
        let observed = TurnObservation { span, calls: HashMap::new(), requests: HashMap::new() };
        self.turns.insert((session.clone(), chat.clone()), observed);
    }

    fn turn(&mut self, session: &SessionId, chat: &ChatId) -> Option<&mut TurnObservation> {
        self.turns.get_mut(&(session.clone(), chat.clone()))
    }

    fn call_begins(&mut self, session: &SessionId, chat: &ChatId, call: &NewToolCall) {
        let Some(turn) = self.turn(session, chat) else { return };
        if turn.span.is_disabled() || turn.calls.contains_key(&call.id) {
            return;
        }
        let (id, kind, outcome) = (&call.id, call.kind, tracing::field::Empty);
        let span = tracing::debug_span!(parent: &turn.span, "tool_call", call = %id, ?kind, outcome);
        turn.calls.insert(call.id.clone(), span);
    }

    fn call_ends(&mut self, session: &SessionId, chat: &ChatId, call: &ToolCallId, outcome: ToolCallLabel) {
        self.metrics.tool_calls.of(outcome).increment();
        let Some(turn) = self.turn(session, chat) else { return };
        if let Some(span) = turn.calls.remove(call) {
            span.record("outcome", tracing::field::debug(outcome));
        }
    }

    fn answered(
        &mut self,
        session: &SessionId,
        chat: &ChatId,
        call: &ToolCallId,
        outcome: PermissionLabel,
        at: Timestamp,
    ) {
        self.metrics.permission_answers.of(outcome).increment();
        let since = self.turn(session, chat).and_then(|turn| turn.requests.remove(call));
        if let Some(since) = since {
            self.metrics.permission_wait_seconds.observe(Duration::from_millis(at.0.saturating_sub(since.0)));
        }
    }

    fn turn_ends(&mut self, session: &SessionId, chat: &ChatId, outcome: TurnLabel, duration_ms: Option<u64>) {
        self.metrics.turns_finished.of(outcome).increment();
        if let Some(duration) = duration_ms {
            self.metrics.turn_seconds.observe(Duration::from_millis(duration));
        }
        let Some(turn) = self.turns.remove(&(session.clone(), chat.clone())) else { return };
        turn.span.record("outcome", tracing::field::debug(outcome));
        self.metrics.permission_answers.of(PermissionLabel::Withdrawn).add(turn.requests.len() as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(at: u64, change: ChatEvent) -> Event {
        Event { at: Timestamp(at), change: Change::Chat("s".into(), "main".into(), change) }
    }

    fn gate(call: &str) -> ChatEvent {
        let request = PermissionRequest {
            id: "r".into(),
            kind: PermissionKind::Shell,
            path: None,
            full_command_text: None,
            intention: None,
            title: None,
            options: Vec::new(),
            edits: Vec::new(),
            editable: false,
        };
        let gated = ToolCallGate { call: call.into(), request, invocation_message: None, input: None, hook: None };
        ChatEvent::ToolCallGated { turn: "t".into(), gated: Box::new(gated) }
    }

    #[test]
    fn a_turn_its_calls_and_its_permission_requests_are_counted_once_and_forgotten_with_the_turn() {
        let metrics = Arc::new(Metrics::default());
        let mut observer = EventObserver::new(metrics.clone());
        let turn = || TurnId::from("t");
        let message = Message::user("hello");
        let started = ChatEvent::TurnStarted { turn: turn(), message, started_at: None, queued: None };
        let confirmed = ChatEvent::ToolCallConfirmed {
            turn: turn(),
            call: "a".into(),
            request: "r".into(),
            verdict: Decision::Approved.into(),
            answer: None,
        };
        let events = [
            chat(0, started),
            chat(1_000, gate("a")),
            chat(3_000, confirmed),
            chat(4_000, gate("b")),
            chat(5_000, ChatEvent::TurnCancelled { turn: turn(), duration: Some(5_000) }),
        ];
        events.iter().for_each(|event| observer.observe(event, |_| None));
        let answers = [PermissionLabel::Allowed, PermissionLabel::Denied, PermissionLabel::Withdrawn];
        assert_eq!(answers.map(|answer| metrics.permission_answers.of(answer).get()), [1, 0, 1]);
        assert_eq!((metrics.permission_requests.get(), metrics.permission_wait_seconds.count()), (2, 1));
        assert_eq!((metrics.turns_started.get(), metrics.turns_finished.of(TurnLabel::Cancelled).get()), (1, 1));
        assert!(observer.turns.is_empty());
    }
}
