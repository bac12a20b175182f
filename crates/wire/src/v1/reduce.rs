//! The reducers of version 1: pure, shared by host and clients.

use super::action::*;
use super::state::*;

/// The root state after `action`.
pub fn root_reducer(mut state: RootState, action: &RootAction) -> RootState {
    match action {
        RootAction::AgentsChanged { agents } => state.agents.clone_from(agents),
    }
    state
}

/// The session's state after `action`.
pub fn session_reducer(mut state: SessionState, action: &SessionAction) -> SessionState {
    reduce_session(&mut state, action);
    state
}

/// [`session_reducer`] in place.
pub fn reduce_session(state: &mut SessionState, action: &SessionAction) {
    if state.change(&action.change) == ReduceOutcome::Changed
        && let Some(timestamp) = action.timestamp
    {
        state.summary.modified_at = timestamp;
    }
}

#[derive(PartialEq, Eq)]
enum ReduceOutcome {
    Changed,
    Unchanged,
}

impl SessionState {
    fn change(&mut self, change: &SessionChange) -> ReduceOutcome {
        match change {
            SessionChange::Ready => self.lifecycle = Lifecycle::Ready,
            SessionChange::CreationFailed { error } => {
                self.lifecycle = Lifecycle::CreationFailed;
                self.creation_error = Some(error.clone());
            }
            SessionChange::TitleChanged { title } => self.summary.title.clone_from(title),
            SessionChange::ModelChanged { model } => self.summary.model = Some(model.clone()),
            SessionChange::TurnStarted { turn_id, user_message } => {
                if self.active_turn.is_some() {
                    return ReduceOutcome::Unchanged;
                }
                self.active_turn = Some(ActiveTurn::new(turn_id, user_message));
                self.summary.status = SessionStatus::InProgress;
            }
            SessionChange::TurnComplete { turn_id } => return self.finish(turn_id, TurnState::Complete, None),
            SessionChange::TurnCancelled { turn_id } => return self.finish(turn_id, TurnState::Cancelled, None),
            SessionChange::Error { turn_id, error } => return self.finish(turn_id, TurnState::Error, Some(error)),
            SessionChange::Delta { turn_id, .. }
            | SessionChange::ResponsePart { turn_id, .. }
            | SessionChange::ToolStart { turn_id, .. }
            | SessionChange::ToolComplete { turn_id, .. }
            | SessionChange::PermissionRequest { turn_id, .. }
            | SessionChange::PermissionResolved { turn_id, .. }
            | SessionChange::Usage { turn_id, .. }
            | SessionChange::Reasoning { turn_id, .. } => match &mut self.active_turn {
                Some(active) if active.id == *turn_id => active.change(change),
                Some(_) | None => return ReduceOutcome::Unchanged,
            },
        }
        ReduceOutcome::Changed
    }

    fn finish(&mut self, turn_id: &str, state: TurnState, error: Option<&ErrorInfo>) -> ReduceOutcome {
        let Some(active) = self.active_turn.take_if(|active| active.id == turn_id) else {
            return ReduceOutcome::Unchanged;
        };
        self.summary.status = match state {
            TurnState::Complete | TurnState::Cancelled => SessionStatus::Idle,
            TurnState::Error => SessionStatus::Error,
        };
        self.turns.push(active.finish(state, error));
        ReduceOutcome::Changed
    }
}

impl ActiveTurn {
    fn new(id: &str, user_message: &UserMessage) -> Self {
        Self {
            id: id.to_owned(),
            user_message: user_message.clone(),
            streaming_text: String::new(),
            response_parts: Vec::new(),
            tool_calls: Default::default(),
            pending_permissions: Default::default(),
            reasoning: String::new(),
            usage: None,
        }
    }

    fn change(&mut self, change: &SessionChange) {
        match change {
            SessionChange::Delta { content, .. } => self.streaming_text.push_str(content),
            SessionChange::Reasoning { content, .. } => self.reasoning.push_str(content),
            SessionChange::ResponsePart { part, .. } => self.response_parts.push(part.clone()),
            SessionChange::Usage { usage, .. } => self.usage = Some(usage.clone()),
            SessionChange::ToolStart { tool_call, .. } => {
                self.tool_calls.insert(tool_call.tool_call_id.clone(), tool_call.clone());
            }
            SessionChange::ToolComplete { tool_call_id, result, .. } => {
                if let Some(call) = self.tool_calls.get_mut(tool_call_id) {
                    call.complete(result);
                }
            }
            SessionChange::PermissionRequest { request, .. } => {
                if let Some(call) = request.tool_call_id.as_ref().and_then(|id| self.tool_calls.get_mut(id)) {
                    call.status = ToolCallStatus::PendingPermission;
                }
                self.pending_permissions.insert(request.request_id.clone(), request.clone());
            }
            SessionChange::PermissionResolved { request_id, approved, .. } => {
                let Some(request) = self.pending_permissions.shift_remove(request_id) else { return };
                if let Some(call) = request.tool_call_id.and_then(|id| self.tool_calls.get_mut(&id)) {
                    call.status = if *approved { ToolCallStatus::Running } else { ToolCallStatus::Failed };
                }
            }
            // Changes of the session itself.
            SessionChange::Ready
            | SessionChange::CreationFailed { .. }
            | SessionChange::TurnStarted { .. }
            | SessionChange::TurnComplete { .. }
            | SessionChange::TurnCancelled { .. }
            | SessionChange::Error { .. }
            | SessionChange::TitleChanged { .. }
            | SessionChange::ModelChanged { .. } => {}
        }
    }

    /// The finished turn: streamed text becomes one part before the others.
    pub(super) fn finish(self, state: TurnState, error: Option<&ErrorInfo>) -> Turn {
        let streamed = Some(self.streaming_text).filter(|text| !text.is_empty());
        let streamed = streamed.map(|content| ResponsePart::Markdown { content });
        Turn {
            id: self.id,
            user_message: self.user_message,
            response_parts: streamed.into_iter().chain(self.response_parts).collect(),
            tool_calls: self.tool_calls.into_values().map(ToolCallState::finish).collect(),
            usage: self.usage,
            state,
            error: error.cloned(),
        }
    }
}

impl ToolCallState {
    fn complete(&mut self, result: &ToolCallResult) {
        self.status = if result.success { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
        self.success = Some(result.success);
        self.past_tense_message = Some(result.past_tense_message.clone());
        self.tool_output.clone_from(&result.tool_output);
    }

    /// A call that never completed counts as failed, and keeps its first message.
    fn finish(self) -> CompletedToolCall {
        CompletedToolCall {
            tool_call_id: self.tool_call_id,
            tool_name: self.tool_name,
            display_name: self.display_name,
            success: self.success.unwrap_or(false),
            past_tense_message: self.past_tense_message.unwrap_or(self.invocation_message),
            tool_output: self.tool_output,
        }
    }
}
