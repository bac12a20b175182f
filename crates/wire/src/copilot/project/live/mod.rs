//! The live events of a session.

use grove_core::{
    self as core, ActiveTurn, Change, ChatEvent, Part, Session, SessionEvent, Timestamp, ToolCall, ToolCallId,
    ToolCallStatus,
};
use serde::Deserialize;

use super::pending_input::{PendingInput, pending_input, unanswered};
use super::steps::{self, BEGINNING, ProjectedTurn, StepKind, TurnStep};
use super::{history, ids, request_events, turn_events};
use crate::ahp::time;
use crate::copilot::events::*;
use crate::copilot::methods::{ALLOW_ALL, MANUAL};
use crate::copilot::{Event, EventId};

/// Turns changes in a session's main chat into events, in order.
///
/// It keeps a copy of the session without the finished turns, applies each event to it, and returns the resulting SDK
/// events. So it can start in the middle of a turn, and an event that does not fit changes and returns nothing.
#[derive(Debug)]
pub struct Projector {
    /// Only the main chat with its running turn.
    session: Session,
    /// The last persisted event.
    last: EventId,
    /// The pending idle event: it is sent unless a queued message starts next.
    idle: Option<TurnEnding>,
    /// The number of ephemeral events of the session at this time.
    asides: (Timestamp, u64),
}

/// The outcome of the last turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TurnEnding {
    Done,
    Aborted,
}

impl Projector {
    /// Starts with a session in its current state. Earlier events are [`history`](super::history()).
    pub fn new(session: &Session) -> Self {
        let last = history::last(session);
        let mut session = session.with_newest_turns(0);
        session.chats.truncate(1);
        session.catalogue.clear();
        session.input_needed.clear();
        session.active_clients.clear();
        for chat in &mut session.chats {
            chat.unlogged.clear();
            chat.draft = None;
        }
        Self { session, last, idle: None, asides: (Timestamp(0), 0) }
    }

    /// The events for clients that result from a core event.
    pub fn tell(&mut self, event: &core::Event) -> Vec<Event> {
        let mut events = Vec::new();
        match &event.change {
            Change::Session(session, change) if *session == self.session.id => {
                self.become_idle(event.at, &mut events);
                self.on_session_event(event, change, &mut events);
            }
            Change::Chat(session, chat, change) if *session == self.session.id => {
                if self.session.main_chat().is_none_or(|main| main.id != *chat) {
                    return events;
                }
                if !may_start_next(change) {
                    self.become_idle(event.at, &mut events);
                }
                self.on_chat_event(event, change, &mut events);
            }
            Change::Root(_) | Change::Session(..) | Change::Chat(..) => {}
        }
        events
    }

    /// The pending requests, for a client that joins in the middle.
    pub fn waiting(&mut self, at: Timestamp) -> Vec<Event> {
        let mut due: Vec<EventData> = Vec::new();
        for part in self.active().map_or(&[][..], ActiveTurn::parts) {
            match part {
                Part::ToolCall(call) => due.extend(self.question(call)),
                Part::InputRequest(request) if request.outcome.is_none() => {
                    due.push(request_events::user_input_requested(request).into());
                }
                _ => {}
            }
        }
        due.into_iter().map(|data| self.aside(at, data)).collect()
    }

    /// An ephemeral event after the ones so far.
    pub fn aside(&mut self, at: Timestamp, data: impl Into<EventData>) -> Event {
        if self.asides.0 != at {
            self.asides = (at, 0);
        }
        self.asides.1 += 1;
        let data = data.into();
        let id = ids::aside(&self.session.id, data.kind(), at, self.asides.1);
        self.ephemeral(id, at, data)
    }

    fn ephemeral(&self, id: EventId, at: Timestamp, data: EventData) -> Event {
        Event {
            id,
            timestamp: time::text(at),
            parent_id: Some(self.last.clone()),
            ephemeral: true,
            agent_id: None,
            data,
        }
    }

    fn active(&self) -> Option<&ActiveTurn> {
        self.session.main_chat()?.active.as_deref()
    }

    /// The pending question about a call, if there is one.
    fn question(&self, call: &ToolCall) -> Option<EventData> {
        match &call.status {
            ToolCallStatus::PendingConfirmation(request) => {
                let resolved_by_hook = self.session.details.answers(request).then_some(true);
                let requested = request_events::permission_requested(call, request);
                Some(Box::new(PermissionRequested { resolved_by_hook, ..requested }).into())
            }
            ToolCallStatus::Running if call.client.is_some() => {
                Some(request_events::external_tool(&self.session, call).into())
            }
            _ => None,
        }
    }

    fn become_idle(&mut self, at: Timestamp, events: &mut Vec<Event>) {
        if let Some(idle) = self.idle.take() {
            let aborted = (idle == TurnEnding::Aborted).then_some(true);
            events.push(self.aside(at, SessionIdle { aborted }));
        }
    }

    fn on_session_event(&mut self, event: &core::Event, change: &SessionEvent, events: &mut Vec<Event>) {
        let at = event.at;
        match change {
            SessionEvent::TitleChanged(title) => {
                self.session.apply(event);
                events.push(self.aside(at, TitleChanged { title: title.text().to_owned() }));
            }
            SessionEvent::ModelChanged(model) => {
                let previous_model = self.session.model.as_ref().map(core::ModelId::to_string);
                self.session.apply(event);
                events.push(self.aside(at, ModelChange { previous_model, new_model: model.to_string() }));
            }
            // The SDK's event needs a model's name, and which one the agent takes by itself is not known.
            SessionEvent::ModelReset => self.session.apply(event),
            SessionEvent::DetailsChanged(details) => self.on_details_changed(event, details, events),
            SessionEvent::CreationFailed(error) => events.push(self.aside(at, turn_events::session_error(error))),
            SessionEvent::Created(_)
            | SessionEvent::Ready
            | SessionEvent::Listed
            | SessionEvent::Removed
            | SessionEvent::ReadChanged(_)
            | SessionEvent::ArchivedChanged(_)
            | SessionEvent::ChatRowChanged(_)
            | SessionEvent::InputNeededSet(_)
            | SessionEvent::InputNeededRemoved { .. }
            | SessionEvent::ChatAdded(_)
            | SessionEvent::ChatRemoved(_)
            | SessionEvent::ActiveClientSet(_)
            | SessionEvent::ActiveClientRemoved(_)
            | SessionEvent::ConfigChanged { .. }
            | SessionEvent::CheckoutChanged(_)
            | SessionEvent::WorkingDirectoryChanged { .. }
            | SessionEvent::Moved(_) => {}
        }
    }

    fn on_details_changed(&mut self, event: &core::Event, details: &core::SessionDetails, events: &mut Vec<Event>) {
        let plan = |details: &core::SessionDetails| details.workspace.and_then(|workspace| workspace.plan);
        let operation = match (plan(&self.session.details), plan(details)) {
            (None, Some(_)) => Some("create"),
            (Some(before), Some(after)) if before != after => Some("update"),
            (Some(_), None) => Some("delete"),
            (Some(_), Some(_)) | (None, None) => None,
        };
        if let Some(operation) = operation {
            events.push(self.aside(event.at, PlanChanged { operation: operation.to_owned() }));
        }
        let (before, after) = (self.session.details.allows_all(), details.allows_all());
        if before != after {
            let named = |allows| if allows { ALLOW_ALL } else { MANUAL }.to_owned();
            let changed = PermissionsChanged { mode: named(after), previous_mode: named(before) };
            events.push(self.aside(event.at, changed));
        }
        let known = &self.session.details.warnings;
        let new: Vec<_> = details.warnings.iter().filter(|warning| !known.contains(warning)).cloned().collect();
        for message in new {
            events.push(self.aside(event.at, SessionWarning { warning_type: "session".to_owned(), message }));
        }
        if let Some(reason) = &details.unsaved
            && self.session.details.unsaved.as_ref() != Some(reason)
        {
            events.push(self.aside(event.at, super::persistence_error(reason)));
        }
        self.session.apply(event);
    }

    fn on_chat_event(&mut self, event: &core::Event, change: &ChatEvent, events: &mut Vec<Event>) {
        let at = event.at;
        match change {
            ChatEvent::TurnStarted { .. } => self.turn_started(event, events),
            ChatEvent::TurnCompleted { .. } | ChatEvent::TurnCancelled { .. } | ChatEvent::TurnFailed { .. } => {
                self.turn_ended(event, events);
            }
            ChatEvent::TextDelta { turn, part, content } => {
                self.grown(event, turn, &GrowingPart::Part(part), content, events);
            }
            ChatEvent::ReasoningDelta { turn, part, content } => {
                self.grown(event, turn, &GrowingPart::Part(part), content, events);
            }
            ChatEvent::ToolCallInputDelta { turn, call, content } => {
                self.grown(event, turn, &GrowingPart::Input(call), content, events);
            }
            ChatEvent::PartAdded { turn, .. }
            | ChatEvent::ToolCallStarted { turn, .. }
            | ChatEvent::InputRequested { turn, .. } => self.added(event, turn, events),
            ChatEvent::ToolCallReady { turn, call, .. } => self.call_changed(event, turn, &call.id, events),
            ChatEvent::ToolCallRestated { turn, restated } => self.call_changed(event, turn, &restated.call.id, events),
            ChatEvent::ToolCallGated { turn, gated } => self.call_changed(event, turn, &gated.call, events),
            ChatEvent::ToolCallConfirmed { turn, call, .. }
            | ChatEvent::ToolCallOutput { turn, call, .. }
            | ChatEvent::ToolCallCompleted { turn, call, .. }
            | ChatEvent::ToolCallResultGated { turn, call, .. }
            | ChatEvent::ToolCallResultConfirmed { turn, call, .. } => self.call_changed(event, turn, call, events),
            ChatEvent::UsageReported { turn, usage } => {
                if self.active().is_some_and(|active| active.id == *turn) {
                    self.session.apply(event);
                    self.used(at, usage, events);
                }
            }
            ChatEvent::InputAnswerChanged { .. } => self.session.apply(event),
            ChatEvent::InputAnswered { turn, request, .. } => {
                let is_open = |active: &ActiveTurn| {
                    active.id == *turn && active.input_request(request).is_some_and(|input| input.outcome.is_none())
                };
                if self.active().is_some_and(is_open) {
                    self.session.apply(event);
                    let answers = self.active().and_then(|active| Some(&active.input_request(request)?.answers));
                    let answered = answers.map(|answers| request_events::user_input_completed(request, answers));
                    events.extend(answered.map(|answered| self.aside(at, answered)));
                }
            }
            ChatEvent::SteeringSet(_)
            | ChatEvent::SteeringRemoved(_)
            | ChatEvent::QueuedSet(_)
            | ChatEvent::QueuedRemoved(_)
            | ChatEvent::QueueReordered(_) => {
                self.session.apply(event);
                events.push(self.aside(at, PendingMessagesModified {}));
            }
            ChatEvent::TurnsCleared => {
                self.session.apply(event);
                self.last = ids::start_id(&self.session.id);
            }
            // The turns themselves are not kept here.
            ChatEvent::BranchTurnsLoaded { turns, .. } => {
                self.last = history::last_of(&self.session, turns.last().map(|turn| &**turn));
            }
            ChatEvent::TurnsInherited { origin, turns, .. } => {
                if origin.is_shown() {
                    self.last = history::last_of(&self.session, turns.last().map(|turn| &**turn));
                }
            }
            ChatEvent::EntryAdded(entry) => {
                if let Some(compacted) = compaction(&entry.line) {
                    events.push(self.aside(at, compacted));
                }
            }
            ChatEvent::DraftChanged(_)
            | ChatEvent::ChatReadChanged(_)
            | ChatEvent::ChatArchivedChanged(_)
            | ChatEvent::ChatTitleChanged(_)
            | ChatEvent::ActivityChanged(_)
            | ChatEvent::AgentSessionChanged(_) => {}
        }
    }

    fn turn_started(&mut self, event: &core::Event, events: &mut Vec<Event>) {
        if self.active().is_some() {
            return;
        }
        self.idle = None;
        self.session.apply(event);
        self.keep(event.at, &BEGINNING, events);
    }

    /// Sends steps of the running turn.
    fn keep(&mut self, at: Timestamp, steps: &[TurnStep], events: &mut Vec<Event>) {
        let Some(active) = self.session.main_chat().and_then(|chat| chat.active.as_deref()) else { return };
        keep(&self.session.id, ProjectedTurn::running(active), at, steps, &mut self.last, events);
    }

    /// The steps of some of the running turn's parts.
    fn steps_of(&self, parts: std::ops::Range<usize>) -> Vec<TurnStep> {
        let Some(active) = self.active() else { return Vec::new() };
        parts.flat_map(|at| steps::of_part(ProjectedTurn::running(active), at)).collect()
    }

    /// A part was added, so the one before is complete.
    fn added(&mut self, event: &core::Event, turn: &core::TurnId, events: &mut Vec<Event>) {
        let Some(active) = self.active().filter(|active| active.id == *turn) else { return };
        let count = active.parts().len();
        self.session.apply(event);
        let Some(active) = self.active().filter(|active| active.parts().len() > count) else { return };
        let opened = match &active.parts()[count] {
            Part::Text(text) => Some(text.content.clone()),
            Part::Reasoning { content, .. } => Some(content.clone()),
            _ => None,
        };
        let data = match &active.parts()[count] {
            Part::Plan(_) => Some(TodosChanged {}.into()),
            Part::InputRequest(request) => Some(request_events::user_input_requested(request).into()),
            Part::ToolCall(call) => self.question(call),
            Part::Text(_) | Part::Reasoning { .. } | Part::Content(_) | Part::Error(_) | Part::Notice(_) => None,
        };
        // The previous part was not sent while it could still grow.
        let due = self.steps_of(count.saturating_sub(1)..count + 1);
        let due: Vec<TurnStep> = due.into_iter().filter(|step| is_new_at(*step, count)).collect();
        self.keep(event.at, &due, events);
        if let Some(content) = opened {
            self.opened(event.at, count, &content, events);
        }
        events.extend(data.map(|data| self.aside(event.at, data)));
    }

    /// A text or a thought began, perhaps complete.
    fn opened(&mut self, at: Timestamp, part: usize, content: &str, events: &mut Vec<Event>) {
        let Some(active) = self.active() else { return };
        let turn = ProjectedTurn::running(active);
        if let Some(Part::Text(_)) = turn.parts.get(part) {
            let message_id = ids::message(&self.session.id, turn, part).to_string();
            let id = ids::piece(&self.session.id, turn, "messageStart", part, 0);
            events.push(self.ephemeral(id, at, MessageStart { message_id }.into()));
        }
        events.extend(self.piece(at, part, 0, content));
    }

    /// A text, a thought or an input grew.
    fn grown(
        &mut self,
        event: &core::Event,
        turn: &core::TurnId,
        what: &GrowingPart<'_>,
        content: &str,
        events: &mut Vec<Event>,
    ) {
        let Some(active) = self.active().filter(|active| active.id == *turn) else { return };
        // The growing part is the last, or near it.
        let Some(part) = active.parts().iter().rposition(|part| what.is(part)) else { return };
        let offset = length(&active.parts()[part]);
        self.session.apply(event);
        let is_longer = self.active().is_some_and(|active| length(&active.parts()[part]) > offset);
        if is_longer {
            events.extend(self.piece(event.at, part, offset, content));
        }
    }

    /// The delta of a growing part.
    fn piece(&self, at: Timestamp, part: usize, offset: usize, content: &str) -> Option<Event> {
        if content.is_empty() {
            return None;
        }
        let turn = ProjectedTurn::running(self.active()?);
        let delta = content.to_owned();
        let data: EventData = match turn.parts.get(part)? {
            Part::Text(_) => {
                let message_id = ids::message(&self.session.id, turn, part).to_string();
                MessageDelta { message_id, delta_content: delta }.into()
            }
            Part::Reasoning { id, .. } => ReasoningDelta { reasoning_id: id.to_string(), delta_content: delta }.into(),
            Part::ToolCall(call) => ToolCallDelta {
                tool_call_id: call.id.to_string(),
                tool_name: Some(call.name.clone()),
                input_delta: delta,
            }
            .into(),
            _ => return None,
        };
        let id = ids::piece(&self.session.id, turn, "delta", part, offset);
        Some(self.ephemeral(id, at, data))
    }

    /// The status of a call changed.
    fn call_changed(&mut self, event: &core::Event, turn: &core::TurnId, call: &ToolCallId, events: &mut Vec<Event>) {
        let Some(active) = self.active().filter(|active| active.id == *turn) else { return };
        let is_it = |part: &Part| matches!(part, Part::ToolCall(mine) if mine.id == *call);
        let Some(part) = active.parts().iter().rposition(is_it) else { return };
        let waited = pending_input(&active.parts()[part]);
        let output = output_of(&active.parts()[part]).map(str::to_owned);
        let known = self.steps_of(part..part + 1);
        self.session.apply(event);

        let Some(now) = self.active().and_then(|active| active.parts().get(part)) else { return };
        let waiting = pending_input(now);
        let Part::ToolCall(now) = now else { return };
        let partial = match &event.change {
            Change::Chat(_, _, ChatEvent::ToolCallOutput { .. }) => partial_result(now, output.as_deref()),
            _ => None,
        };
        let asks = (waiting != waited).then(|| self.question(now)).flatten();
        let answered: Option<EventData> = match (&waited, &event.change) {
            _ if waiting == waited => None,
            (PendingInput::Permission(request), Change::Chat(_, _, ChatEvent::ToolCallConfirmed { verdict, .. })) => {
                Some(request_events::permission_completed(call, request, verdict).into())
            }
            (PendingInput::Permission(request), _) => Some(request_events::permission_cancelled(call, request).into()),
            (PendingInput::Client, _) => Some(ExternalToolCompleted { request_id: call.to_string() }.into()),
            (PendingInput::No, _) => None,
        };
        let due: Vec<TurnStep> =
            self.steps_of(part..part + 1).into_iter().filter(|step| !known.contains(step)).collect();

        events.extend(answered.map(|data| self.aside(event.at, data)));
        self.keep(event.at, &due, events);
        events.extend(asks.map(|data| self.aside(event.at, data)));
        events.extend(partial.map(|data| self.aside(event.at, data)));
    }

    fn turn_ended(&mut self, event: &core::Event, events: &mut Vec<Event>) {
        let Some(active) = self.active() else { return };
        let known: Vec<TurnStep> = steps::steps(ProjectedTurn::running(active)).collect();
        let unanswered: Vec<EventData> = active.parts().iter().filter_map(unanswered).collect();
        self.session.apply(event);
        let finished = match self.session.chats.first_mut() {
            Some(chat) if chat.active.is_none() => chat.turns.pop(),
            _ => None,
        };
        let Some(finished) = finished else { return };
        for data in unanswered {
            let ephemeral = self.aside(event.at, data);
            events.push(ephemeral);
        }
        let turn = ProjectedTurn::of(&finished);
        // Both are sorted, so that one pass finds the new ones.
        let mut known = known.into_iter().peekable();
        let due: Vec<TurnStep> = steps::steps(turn).filter(|step| known.next_if_eq(step).is_none()).collect();
        keep(&self.session.id, turn, event.at, &due, &mut self.last, events);
        let aborted = finished.outcome == core::Outcome::Cancelled;
        self.idle = Some(if aborted { TurnEnding::Aborted } else { TurnEnding::Done });
        // Matters only if a queued message starts next.
        let waits = self.session.main_chat().is_some_and(|chat| chat.steering.is_some() || !chat.queued.is_empty());
        if !waits {
            self.become_idle(event.at, events);
        }
    }

    fn used(&mut self, at: Timestamp, usage: &core::Usage, events: &mut Vec<Event>) {
        let asked_for = self.active().and_then(|active| active.message.model.as_ref());
        let model = usage.model.as_ref().or(asked_for).or(self.session.model.as_ref());
        let model = model.map_or_else(|| self.session.agent.to_string(), core::ModelId::to_string);
        let used = Usage {
            model,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_read_tokens: usage.cache_read_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            reasoning_tokens: usage.reasoning_tokens,
        };
        events.push(self.aside(at, used));
        if let Some(context) = usage.context {
            // Only the agent knows the number of messages in its context window.
            let info = UsageInfo { token_limit: context.size, current_tokens: context.used, messages_length: 0 };
            events.push(self.aside(at, info));
        }
    }
}

/// Sends steps of a turn, each with the previous one as its parent.
fn keep(
    session: &core::SessionId,
    turn: ProjectedTurn<'_>,
    at: Timestamp,
    steps: &[TurnStep],
    last: &mut EventId,
    events: &mut Vec<Event>,
) {
    for step in steps {
        let event = turn_events::event(session, turn, *step, last.clone());
        last.clone_from(&event.id);
        events.push(Event { timestamp: time::text(at), ..event });
    }
}

/// A part that can grow by a delta.
enum GrowingPart<'a> {
    Part(&'a core::PartId),
    Input(&'a ToolCallId),
}

impl GrowingPart<'_> {
    fn is(&self, part: &Part) -> bool {
        match (self, part) {
            (GrowingPart::Part(id), Part::Text(text)) => text.id == **id,
            (GrowingPart::Part(id), Part::Reasoning { id: mine, .. }) => mine == *id,
            (GrowingPart::Input(id), Part::ToolCall(call)) => call.id == **id,
            _ => false,
        }
    }
}

fn length(part: &Part) -> usize {
    match part {
        Part::Text(text) => text.content.len(),
        Part::Reasoning { content, .. } => content.len(),
        Part::ToolCall(call) => call.input.as_ref().map_or(0, String::len),
        _ => 0,
    }
}

/// True if a step became due with part `added`: of the previous part only its completion. Events of a call there were
/// sent earlier.
fn is_new_at(step: TurnStep, added: usize) -> bool {
    step.place() == added || matches!(step.what, StepKind::Text | StepKind::Reasoning)
}

/// True for changes that may come between a turn's end and the start of a queued message.
fn may_start_next(change: &ChatEvent) -> bool {
    matches!(
        change,
        ChatEvent::ActivityChanged(_)
            | ChatEvent::QueuedRemoved(_)
            | ChatEvent::SteeringRemoved(_)
            | ChatEvent::TurnStarted { .. }
    )
}

fn output_of(part: &Part) -> Option<&str> {
    match part {
        Part::ToolCall(call) => call.output.as_ref().map(|output| output.text.as_str()),
        _ => None,
    }
}

/// The new part of a call's output: all of it, if it does not continue the known one.
fn partial_result(call: &ToolCall, known: Option<&str>) -> Option<EventData> {
    let text = call.output.as_ref()?.text.as_str();
    let new = known.and_then(|known| text.strip_prefix(known)).unwrap_or(text);
    if new.is_empty() {
        return None;
    }
    Some(ToolPartialResult { tool_call_id: call.id.to_string(), partial_output: new.to_owned() }.into())
}

/// The compaction of a log entry, if the entry is one.
fn compaction(line: &str) -> Option<CompactionComplete> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct CompactionLine {
        #[serde(rename = "type")]
        kind: String,
        summary: Option<String>,
        tokens_before: Option<u64>,
        details: Option<CheckpointLink>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct CheckpointLink {
        checkpoint_number: Option<u64>,
        checkpoint_path: Option<String>,
    }
    let entry: CompactionLine =
        serde_json::from_str(line).ok().filter(|entry: &CompactionLine| entry.kind == "compaction")?;
    let details = entry.details;
    Some(CompactionComplete {
        success: true,
        pre_compaction_tokens: entry.tokens_before,
        summary_content: entry.summary,
        checkpoint_number: details.as_ref().and_then(|details| details.checkpoint_number),
        checkpoint_path: details.and_then(|details| details.checkpoint_path),
        ..CompactionComplete::default()
    })
}
