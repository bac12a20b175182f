//! `apply`: changes the state by one event. Total, in place, and O(1) per delta.
//!
//! An event that does not fit (its turn is not the active one, its id is unknown) changes nothing: only
//! [`crate::validate()`] refuses.

use std::sync::Arc;

use crate::answerer::CallAnswer;
use crate::event::*;
use crate::ids::*;
use crate::origin::ChatOrigin;
use crate::state::*;
use crate::turn::*;

/// Applies one event to `state`.
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
    /// Applies one of the session's own events to it.
    pub fn apply(&mut self, event: &Event) {
        match &event.change {
            Change::Session(id, change) if *id == self.id => self.apply_session_event(event.at, change),
            Change::Chat(id, chat, change) if *id == self.id => self.apply_chat(event.at, chat, change),
            Change::Root(_) | Change::Session(..) | Change::Chat(..) => {}
        }
    }

    fn apply_session_event(&mut self, at: Timestamp, change: &SessionEvent) {
        match change {
            // These add a session to the state or remove it: see `apply`.
            SessionEvent::Created(_) | SessionEvent::Listed | SessionEvent::Removed => {}
            SessionEvent::Ready => self.lifecycle = Lifecycle::Ready,
            SessionEvent::CreationFailed(error) => self.lifecycle = Lifecycle::CreationFailed(error.clone()),
            SessionEvent::TitleChanged(title) => {
                self.set_title(title);
                self.modified_at = at;
            }
            SessionEvent::ModelChanged(model) => {
                self.model = Some(model.clone());
                self.modified_at = at;
            }
            SessionEvent::ModelReset => {
                self.model = None;
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
                match self.input_needed.iter_mut().find(|mine| mine.is(&input.chat, &input.request)) {
                    Some(mine) => mine.clone_from(input),
                    None => self.input_needed.push(input.clone()),
                }
            }
            SessionEvent::InputNeededRemoved { chat, request } => {
                self.input_needed.retain(|mine| !mine.is(chat, request));
            }
            SessionEvent::ChatAdded(row) => {
                if self.chat(&row.chat).is_none() {
                    self.chats.push(Chat::of(row));
                    self.catalogue.push(row.clone());
                }
            }
            // The main chat stays: a session cannot be without it.
            SessionEvent::ChatRemoved(chat) if self.main_chat().is_some_and(|main| main.id == *chat) => {}
            SessionEvent::ChatRemoved(chat) => {
                self.chats.retain(|mine| mine.id != *chat);
                self.catalogue.retain(|mine| mine.chat != *chat);
            }
            SessionEvent::ActiveClientSet(client) => {
                match self.active_clients.iter_mut().find(|mine| mine.client == client.client) {
                    Some(mine) => mine.clone_from(client),
                    None => self.active_clients.push(client.clone()),
                }
            }
            SessionEvent::ActiveClientRemoved(client) => self.active_clients.retain(|mine| mine.client != *client),
            SessionEvent::ConfigChanged { values, replace } => {
                if let Some(config) = &mut self.config {
                    config.values = config.changed(values, *replace);
                }
            }
            SessionEvent::DetailsChanged(details) => self.details.clone_from(details),
            SessionEvent::CheckoutChanged(checkout) => self.checkout.clone_from(checkout),
            SessionEvent::WorkingDirectoryChanged { previous, directory } => {
                replace_directory(&mut self.working_directories, previous.as_deref(), directory);
            }
            SessionEvent::Moved(store) => self.store.clone_from(store),
        }
    }

    fn apply_chat(&mut self, at: Timestamp, chat: &ChatId, change: &ChatEvent) {
        let Some((position, chat)) = self.chats.iter_mut().enumerate().find(|(_, mine)| mine.id == *chat) else {
            return;
        };
        let touched = chat.apply(at, change);
        if touched == ChangeScope::Conversation {
            chat.touched_at = at;
            // The first chat is the main one.
            if position == 0 {
                self.modified_at = at;
            }
        }
    }
}

/// Puts a directory in the place of another one, or behind all where there is no other. No directory is listed twice: the
/// first occurrence stays, as in AHP's `session/workingDirectoryReplaced` and `session/workingDirectorySet`.
fn replace_directory(directories: &mut Vec<String>, previous: Option<&str>, directory: &str) {
    let at = match previous {
        Some(previous) => match directories.iter().position(|known| known == previous) {
            Some(at) => at,
            None => return,
        },
        None => directories.len(),
    };
    if directories.iter().take(at).any(|known| known == directory) {
        directories.drain(at..directories.len().min(at + 1));
        return;
    }
    let mut behind = directories.split_off(at);
    directories.push(directory.to_owned());
    directories.extend(behind.drain(..).skip(1).filter(|known| known != directory));
}

/// The extent of a change: it moves the conversation on, or fills in a part of it.
#[derive(PartialEq, Eq)]
enum ChangeScope {
    Conversation,
    Detail,
}

impl Chat {
    fn apply(&mut self, at: Timestamp, change: &ChatEvent) -> ChangeScope {
        match change {
            ChatEvent::TurnStarted { turn, message, started_at, queued } => {
                return self.start(turn, message, *started_at, queued.as_ref(), at);
            }
            ChatEvent::TurnCompleted { turn, duration } => {
                return self.finish(turn, Outcome::Complete, None, *duration, at);
            }
            ChatEvent::TurnCancelled { turn, duration } => {
                return self.finish(turn, Outcome::Cancelled, None, *duration, at);
            }
            ChatEvent::TurnFailed { turn, duration, error } => {
                return self.finish(turn, Outcome::Error, Some(error), *duration, at);
            }
            ChatEvent::ChatReadChanged(read) => self.is_read = *read,
            ChatEvent::ChatArchivedChanged(archived) => self.is_archived = *archived,
            ChatEvent::ChatTitleChanged(title) => self.title.clone_from(title),
            ChatEvent::ActivityChanged(activity) => self.activity.clone_from(activity),
            ChatEvent::AgentSessionChanged(name) => self.name_agent_session(name.as_ref()),
            ChatEvent::TurnsCleared => self.clear_turns(),
            ChatEvent::BranchTurnsLoaded { turns, older } => self.load_turns(turns, *older),
            ChatEvent::TurnsInherited { origin, turns, older } => self.inherit_turns(origin, turns, *older),
            ChatEvent::EntryAdded(entry) => self.unlogged.push(entry.clone()),
            ChatEvent::SteeringSet(message) => self.steering = Some(message.clone()),
            ChatEvent::SteeringRemoved(id) => drop(self.steering.take_if(|message| message.id == *id)),
            ChatEvent::QueuedSet(message) => match self.queued.iter_mut().find(|queued| queued.id == message.id) {
                Some(queued) => queued.clone_from(message),
                None => self.queued.push(message.clone()),
            },
            ChatEvent::QueuedRemoved(id) => self.queued.retain(|queued| queued.id != *id),
            ChatEvent::QueueReordered(order) => {
                // Messages that the order does not name keep their order and follow those that it names.
                let rank =
                    |message: &PendingMessage| order.iter().position(|id| *id == message.id).unwrap_or(order.len());
                self.queued.sort_by_key(rank);
            }
            ChatEvent::DraftChanged(draft) => self.draft.clone_from(draft),
            ChatEvent::PartAdded { .. }
            | ChatEvent::TextDelta { .. }
            | ChatEvent::ReasoningDelta { .. }
            | ChatEvent::ToolCallStarted { .. }
            | ChatEvent::ToolCallInputDelta { .. }
            | ChatEvent::ToolCallReady { .. }
            | ChatEvent::ToolCallRestated { .. }
            | ChatEvent::ToolCallGated { .. }
            | ChatEvent::ToolCallConfirmed { .. }
            | ChatEvent::ToolCallOutput { .. }
            | ChatEvent::ToolCallCompleted { .. }
            | ChatEvent::ToolCallResultGated { .. }
            | ChatEvent::ToolCallResultConfirmed { .. }
            | ChatEvent::UsageReported { .. }
            | ChatEvent::InputRequested { .. }
            | ChatEvent::InputAnswerChanged { .. }
            | ChatEvent::InputAnswered { .. } => {
                if let Some(active) = &mut self.active
                    && change.turn() == Some(&active.id)
                {
                    active.apply(at, change);
                    // A question wants to be seen.
                    self.is_read &= !matches!(change, ChatEvent::InputRequested { .. });
                }
            }
        }
        ChangeScope::Detail
    }

    fn start(
        &mut self,
        turn: &TurnId,
        message: &Message,
        started_at: Option<Timestamp>,
        queued: Option<&PendingId>,
        at: Timestamp,
    ) -> ChangeScope {
        if self.active.is_some() {
            return ChangeScope::Detail;
        }
        if let Some(queued) = queued {
            self.steering.take_if(|message| message.id == *queued);
            self.queued.retain(|message| message.id != *queued);
        }
        let started_at = started_at.unwrap_or(at);
        self.active = Some(Box::new(ActiveTurn::new(turn.clone(), message.clone(), started_at, at)));
        self.modified_at = started_at;
        self.is_read = false;
        ChangeScope::Conversation
    }

    fn name_agent_session(&mut self, name: Option<&String>) {
        self.agent_session = name.cloned();
        // The first turn is the running one, unless the agent was told of earlier ones.
        self.is_agent_retold = name.is_some() && (!self.turns.is_empty() || self.has_older_turns);
    }

    fn clear_turns(&mut self) {
        self.turns.clear();
        self.active = None;
        self.has_failed = false;
        self.has_older_turns = false;
    }

    fn load_turns(&mut self, turns: &[Arc<Turn>], older: bool) {
        let new: Vec<_> = turns.iter().filter(|turn| self.position(&turn.id).is_none()).cloned().collect();
        self.turns.splice(..0, new);
        self.has_older_turns = older && !turns.is_empty();
    }

    fn inherit_turns(&mut self, origin: &Arc<ChatOrigin>, turns: &[Arc<Turn>], older: bool) {
        self.origin = Some(origin.clone());
        // Other inherited turns are shown in their own chat; only this chat's agent is told of them.
        if origin.is_shown() {
            self.turns = turns.to_vec();
            self.has_older_turns = older && !turns.is_empty();
        }
    }

    fn finish(
        &mut self,
        turn: &TurnId,
        outcome: Outcome,
        error: Option<&ErrorInfo>,
        duration: Option<u64>,
        at: Timestamp,
    ) -> ChangeScope {
        match self.active.take_if(|active| active.id == *turn) {
            Some(active) => {
                let duration = duration.unwrap_or_else(|| active.duration_at(at));
                let turn = active.finish(outcome, error, duration);
                self.has_failed = outcome == Outcome::Error;
                self.modified_at = turn.ended_at;
                self.turns.push(Arc::new(turn));
                ChangeScope::Conversation
            }
            None => ChangeScope::Detail,
        }
    }
}

impl ActiveTurn {
    /// Events inside the running turn.
    fn apply(&mut self, at: Timestamp, change: &ChatEvent) {
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
                self.ready(at, call, invocation_message, input.as_ref(), *gate);
            }
            ChatEvent::ToolCallRestated { restated, .. } => self.restate(restated),
            ChatEvent::ToolCallGated { gated, .. } => self.gate(gated),
            ChatEvent::ToolCallConfirmed { call, request, verdict, answer, .. } => {
                self.ungate(at, call, request, verdict, answer.as_deref());
            }
            ChatEvent::ToolCallOutput { call, output, .. } => {
                if let Some(call) = self.tool_call_mut(call)
                    && call.status == ToolCallStatus::Running
                {
                    call.output = Some(output.clone());
                }
            }
            ChatEvent::ToolCallCompleted { call, result, run, .. } => {
                self.complete(call, ToolCallStatus::Completed(result.clone()), run.as_deref());
            }
            ChatEvent::ToolCallResultGated { call, result, run, .. } => {
                self.complete(call, ToolCallStatus::PendingResultConfirmation(result.clone()), run.as_deref());
            }
            ChatEvent::ToolCallResultConfirmed { call, result, decision, answer, .. } => {
                self.decide_result(call, result, *decision, answer.as_deref());
            }
            ChatEvent::UsageReported { usage, .. } => self.usage = Some(usage.clone()),
            ChatEvent::InputRequested { request, .. } => {
                if !self.knows_request(&request.id) {
                    self.push(Part::InputRequest(request.as_ref().clone()));
                }
            }
            ChatEvent::InputAnswerChanged { request, question, answer, .. } => {
                if let Some(input) = self.open_input_mut(request) {
                    match answer {
                        Some(answer) => drop(input.answers.insert(question.clone(), answer.clone())),
                        None => drop(input.answers.remove(question)),
                    }
                }
            }
            ChatEvent::InputAnswered { request, outcome, answers, answered_by, .. } => {
                self.answer(request, *outcome, answers, answered_by.as_deref());
            }
            // Events of the chat itself, not of its turn.
            ChatEvent::TurnStarted { .. }
            | ChatEvent::TurnCompleted { .. }
            | ChatEvent::TurnCancelled { .. }
            | ChatEvent::TurnFailed { .. }
            | ChatEvent::SteeringSet(_)
            | ChatEvent::SteeringRemoved(_)
            | ChatEvent::QueuedSet(_)
            | ChatEvent::QueuedRemoved(_)
            | ChatEvent::QueueReordered(_)
            | ChatEvent::DraftChanged(_)
            | ChatEvent::ChatReadChanged(_)
            | ChatEvent::ChatArchivedChanged(_)
            | ChatEvent::ChatTitleChanged(_)
            | ChatEvent::ActivityChanged(_)
            | ChatEvent::AgentSessionChanged(_)
            | ChatEvent::TurnsCleared
            | ChatEvent::BranchTurnsLoaded { .. }
            | ChatEvent::TurnsInherited { .. }
            | ChatEvent::EntryAdded(_) => {}
        }
    }

    /// Completes the input of a call, which runs now or waits for a gate.
    fn ready(
        &mut self,
        at: Timestamp,
        call: &NewToolCall,
        invocation_message: &str,
        input: Option<&String>,
        gate: Gate,
    ) {
        if !self.tool_call(&call.id).is_some_and(|call| call.status == ToolCallStatus::Streaming) {
            return;
        }
        let ready_rank = Some(self.next_ready_rank());
        if let Some(mine) = self.tool_call_mut(&call.id) {
            let extra = call.extra.clone().or_else(|| mine.extra.take());
            let (status, confirmed, running_since) = match gate {
                Gate::None => {
                    let confirmed = Confirmation { by: ConfirmationReason::NotNeeded, option: None };
                    (ToolCallStatus::Running, Some(confirmed), Some(at))
                }
                Gate::Follows => (ToolCallStatus::Ready, None, None),
            };
            *mine = ToolCall {
                extra,
                invocation_message: invocation_message.to_owned(),
                input: input.cloned(),
                status,
                confirmed,
                ready_rank,
                running_since,
                ..call.begin()
            };
        }
    }

    /// Lets the agent see a pending result, or withholds it.
    fn decide_result(
        &mut self,
        call: &ToolCallId,
        result: &ToolResult,
        decision: Decision,
        answer: Option<&CallAnswer>,
    ) {
        let option = self.tool_call(call).and_then(|call| call.confirmed.as_ref()?.option.clone());
        let next = match decision {
            Decision::Approved => ToolCallStatus::Completed(result.clone()),
            Decision::Denied => {
                ToolCallStatus::Cancelled(Cancellation { reason: CancelReason::ResultDenied, option, extra: None })
            }
        };
        self.release(call, next, answer);
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
            intention: None,
            client: self.client.clone(),
            input: None,
            confirmed: None,
            output: None,
            status: ToolCallStatus::Streaming,
            ready_rank: None,
            announced: None,
            extra: self.extra.clone(),
            running_since: None,
            ran_ms: None,
        }
    }
}
