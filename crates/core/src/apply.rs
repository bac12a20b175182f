//! `apply`: how an event changes the state. Total, in place, and O(1) per delta.
//!
//! What does not fit (a turn that is not the active one, an id that is not there) changes nothing:
//! [`crate::validate()`] is the place for refusing.

use std::sync::Arc;

use crate::event::*;
use crate::ids::*;
use crate::state::*;
use crate::turn::*;

/// Brings `state` forward by one event.
pub fn apply(state: &mut State, event: &Event) {
    match &event.change {
        Change::Root(RootEvent::AgentsChanged(agents)) => state.root.agents.clone_from(agents),
        Change::Root(RootEvent::ActiveSessionsChanged(count)) => state.root.active_sessions = *count,
        Change::Session(id, SessionEvent::Created(new)) => {
            state.sessions.entry(id.clone()).or_insert_with(|| Session::new(new, event.at));
        }
        Change::Session(id, SessionEvent::Removed) => {
            state.sessions.remove(id);
        }
        Change::Session(id, _) | Change::Chat(id, _, _) => {
            if let Some(session) = state.sessions.get_mut(id) {
                session.apply(event);
            }
        }
    }
}

impl Session {
    /// Brings this session forward by one of its own events.
    pub fn apply(&mut self, event: &Event) {
        match &event.change {
            Change::Session(id, change) if *id == self.id => self.apply_own(event.at, change),
            Change::Chat(id, chat, change) if *id == self.id => self.apply_chat(event.at, chat, change),
            Change::Root(_) | Change::Session(..) | Change::Chat(..) => {}
        }
    }

    fn apply_own(&mut self, at: Timestamp, change: &SessionEvent) {
        match change {
            // These put a session into state or take it out: see `apply`.
            SessionEvent::Created(_) | SessionEvent::Listed | SessionEvent::Removed => {}
            SessionEvent::Ready => self.lifecycle = Lifecycle::Ready,
            SessionEvent::CreationFailed(error) => self.lifecycle = Lifecycle::CreationFailed(error.clone()),
            SessionEvent::TitleChanged(title) => {
                self.title.clone_from(title);
                self.modified_at = at;
            }
            SessionEvent::ModelChanged(model) => {
                self.model = Some(model.clone());
                self.modified_at = at;
            }
            SessionEvent::ReadChanged(read) => self.is_read = *read,
            SessionEvent::ArchivedChanged(archived) => self.is_archived = *archived,
            SessionEvent::ChatRowChanged(row) => {
                if let Some(mine) = self.catalogue.iter_mut().find(|mine| mine.chat == row.chat) {
                    mine.clone_from(row);
                }
            }
            SessionEvent::InputNeededSet(input) => {
                self.input_needed.retain(|mine| mine.request != input.request);
                self.input_needed.push(input.clone());
            }
            SessionEvent::InputNeededRemoved(request) => self.input_needed.retain(|mine| mine.request != *request),
        }
    }

    fn apply_chat(&mut self, at: Timestamp, chat: &ChatId, change: &ChatEvent) {
        let Some((position, chat)) = self.chats.iter_mut().enumerate().find(|(_, mine)| mine.id == *chat) else {
            return;
        };
        let touched = chat.apply(at, change);
        if touched == Touched::Conversation {
            chat.modified_at = at;
            // The first is the main one.
            if position == 0 {
                self.modified_at = at;
            }
        }
    }
}

/// Whether an event moved the conversation on, as opposed to filling in a part of it.
#[derive(PartialEq, Eq)]
enum Touched {
    Conversation,
    Detail,
}

impl Chat {
    fn apply(&mut self, at: Timestamp, change: &ChatEvent) -> Touched {
        match change {
            ChatEvent::TurnStarted { turn, message } => {
                if self.active.is_some() {
                    return Touched::Detail;
                }
                self.active = Some(Box::new(ActiveTurn::new(turn.clone(), message.clone(), at)));
                Touched::Conversation
            }
            ChatEvent::TurnCompleted { turn } => self.finish(turn, Outcome::Complete, None, at),
            ChatEvent::TurnCancelled { turn } => self.finish(turn, Outcome::Cancelled, None, at),
            ChatEvent::TurnFailed { turn, error } => self.finish(turn, Outcome::Error, Some(error), at),
            ChatEvent::SteeringSet(message) => {
                self.steering = Some(message.clone());
                Touched::Detail
            }
            ChatEvent::SteeringRemoved(id) => {
                self.steering.take_if(|message| message.id == *id);
                Touched::Detail
            }
            ChatEvent::QueuedSet(message) => {
                match self.queued.iter_mut().find(|queued| queued.id == message.id) {
                    Some(queued) => queued.clone_from(message),
                    None => self.queued.push(message.clone()),
                }
                Touched::Detail
            }
            ChatEvent::QueuedRemoved(id) => {
                self.queued.retain(|queued| queued.id != *id);
                Touched::Detail
            }
            ChatEvent::QueueReordered(order) => {
                // Those that the order does not name keep their places behind those that it names.
                let rank =
                    |message: &PendingMessage| order.iter().position(|id| *id == message.id).unwrap_or(order.len());
                self.queued.sort_by_key(rank);
                Touched::Detail
            }
            ChatEvent::DraftChanged(draft) => {
                self.draft.clone_from(draft);
                Touched::Detail
            }
            ChatEvent::PartAdded { .. }
            | ChatEvent::TextDelta { .. }
            | ChatEvent::ReasoningDelta { .. }
            | ChatEvent::ToolCallStarted { .. }
            | ChatEvent::ToolCallInputDelta { .. }
            | ChatEvent::ToolCallReady { .. }
            | ChatEvent::ToolCallGated { .. }
            | ChatEvent::ToolCallConfirmed { .. }
            | ChatEvent::ToolCallCompleted { .. }
            | ChatEvent::ToolCallResultGated { .. }
            | ChatEvent::ToolCallResultConfirmed { .. }
            | ChatEvent::UsageReported { .. }
            | ChatEvent::InputRequested { .. }
            | ChatEvent::InputAnswered { .. } => {
                if let Some(active) = &mut self.active
                    && change.turn() == Some(&active.id)
                {
                    active.apply(change);
                }
                Touched::Detail
            }
        }
    }

    fn finish(&mut self, turn: &TurnId, outcome: Outcome, error: Option<&ErrorInfo>, at: Timestamp) -> Touched {
        match self.active.take_if(|active| active.id == *turn) {
            Some(active) => {
                self.turns.push(Arc::new(active.finish(outcome, error, at)));
                Touched::Conversation
            }
            None => Touched::Detail,
        }
    }
}

impl ActiveTurn {
    /// What happens inside the running turn.
    fn apply(&mut self, change: &ChatEvent) {
        match change {
            ChatEvent::PartAdded { part, .. } => self.push(part.clone()),
            ChatEvent::TextDelta { part, content, .. } => {
                if let Some(text) = self.text_mut(part) {
                    text.push_str(content);
                }
            }
            ChatEvent::ReasoningDelta { part, content, .. } => {
                if let Some(text) = self.reasoning_mut(part) {
                    text.push_str(content);
                }
            }
            ChatEvent::ToolCallStarted { call, .. } => {
                if self.tool_call(&call.id).is_none() {
                    self.push(Part::ToolCall(Box::new(call.begin())));
                }
            }
            ChatEvent::ToolCallInputDelta { call, content, .. } => {
                if let Some(call) = self.tool_call_mut(call)
                    && call.status == ToolCallStatus::Streaming
                {
                    call.input.get_or_insert_default().push_str(content);
                }
            }
            ChatEvent::ToolCallReady { call, invocation_message, input, gate, .. } => {
                if !self.tool_call(&call.id).is_some_and(|call| call.status == ToolCallStatus::Streaming) {
                    return;
                }
                let ready_rank = Some(self.next_ready_rank());
                if let Some(mine) = self.tool_call_mut(&call.id) {
                    *mine = ToolCall {
                        invocation_message: invocation_message.clone(),
                        input: input.clone(),
                        status: match gate {
                            Gate::None => ToolCallStatus::Running,
                            Gate::Follows => ToolCallStatus::Ready,
                        },
                        ready_rank,
                        ..call.begin()
                    };
                }
            }
            ChatEvent::ToolCallGated { call, request, .. } => self.gate(call, request),
            ChatEvent::ToolCallConfirmed { call, request, decision, .. } => {
                let next = match decision {
                    Decision::Approved => ToolCallStatus::Running,
                    Decision::Denied => ToolCallStatus::Cancelled(CancelReason::Denied),
                };
                self.ungate(call, request, next);
            }
            ChatEvent::ToolCallCompleted { call, result, .. } => {
                self.leave_running(call, ToolCallStatus::Completed(result.clone()));
            }
            ChatEvent::ToolCallResultGated { call, result, .. } => {
                self.leave_running(call, ToolCallStatus::PendingResultConfirmation(result.clone()));
            }
            ChatEvent::ToolCallResultConfirmed { call, result, decision, .. } => {
                if let Some(call) = self.tool_call_mut(call)
                    && matches!(call.status, ToolCallStatus::PendingResultConfirmation(_))
                {
                    call.status = match decision {
                        Decision::Approved => ToolCallStatus::Completed(result.clone()),
                        Decision::Denied => ToolCallStatus::Cancelled(CancelReason::ResultDenied),
                    };
                }
            }
            ChatEvent::UsageReported { usage, .. } => self.usage = Some(usage.clone()),
            ChatEvent::InputRequested { request, question, .. } => {
                if !self.knows_request(request) {
                    self.push(Part::InputRequest(InputRequest {
                        id: request.clone(),
                        question: question.clone(),
                        response: None,
                    }));
                }
            }
            ChatEvent::InputAnswered { request, response, .. } => self.answer(request, response),
            // These are the chat's own.
            ChatEvent::TurnStarted { .. }
            | ChatEvent::TurnCompleted { .. }
            | ChatEvent::TurnCancelled { .. }
            | ChatEvent::TurnFailed { .. }
            | ChatEvent::SteeringSet(_)
            | ChatEvent::SteeringRemoved(_)
            | ChatEvent::QueuedSet(_)
            | ChatEvent::QueuedRemoved(_)
            | ChatEvent::QueueReordered(_)
            | ChatEvent::DraftChanged(_) => {}
        }
    }

    fn leave_running(&mut self, call: &ToolCallId, next: ToolCallStatus) {
        if let Some(call) = self.tool_call_mut(call)
            && call.status == ToolCallStatus::Running
        {
            call.status = next;
        }
    }
}

impl NewToolCall {
    fn begin(&self) -> ToolCall {
        ToolCall {
            id: self.id.clone(),
            name: self.name.clone(),
            display_name: self.display_name.clone(),
            kind: self.kind,
            language: self.language.clone(),
            invocation_message: String::new(),
            input: None,
            status: ToolCallStatus::Streaming,
            ready_rank: None,
        }
    }
}
