//! The live events of a session.

mod growth;
mod session_changes;

pub use session_changes::mode;

use grove_core::{
    self as core, ActiveTurn, Change, ChatEvent, HookGate, LogEntry, Part, Session, Timestamp, ToolCall, ToolCallId,
    ToolCallStatus,
};

use self::growth::GrowingPart;
use super::entries::{self, EntryTail};
use super::pending_input::{PendingInput, pending_input, unanswered};
use super::steps::{self, BEGINNING, ProjectedTurn, StepKind, TurnStep};
use super::{history, ids, request_events, turn_events};
use crate::ahp::time;
use crate::copilot::events::*;
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
    /// The newest entries of the log outside of turns.
    tail: EntryTail,
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
    /// Starts with a session in its current state. Earlier events are [`history`](super::history()), with the same
    /// entries.
    pub fn new(session: &Session, entries: &[LogEntry]) -> Self {
        let last = history::last(session, entries);
        let newest = session.main_chat().and_then(|chat| chat.turns.last()).map(|turn| turn.id.clone());
        let tail = EntryTail::new(&session.id, newest, entries);
        let mut session = session.with_newest_turns(0);
        session.chats.truncate(1);
        session.catalogue.clear();
        session.input_needed.clear();
        session.active_clients.clear();
        for chat in &mut session.chats {
            chat.unlogged.clear();
            chat.draft = None;
        }
        Self { session, last, tail, idle: None, asides: (Timestamp(0), 0) }
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
                Part::ToolCall(call) => due.extend(self.question(call, None)),
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

    /// The pending question about a call, if there is one. A hook may have decided it already.
    fn question(&self, call: &ToolCall, hook: Option<HookGate>) -> Option<EventData> {
        match &call.status {
            ToolCallStatus::PendingConfirmation(request) => {
                let is_resolved = match hook {
                    Some(HookGate::Resolved) => true,
                    Some(HookGate::Asks) => false,
                    None => self.session.details.answers(request),
                };
                let resolved_by_hook = is_resolved.then_some(true);
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
                self.continue_after(None);
            }
            // The turns themselves are not kept here.
            ChatEvent::BranchTurnsLoaded { turns, .. } => self.continue_after(turns.last().map(|turn| &**turn)),
            ChatEvent::TurnsInherited { origin, turns, .. } => {
                if origin.is_shown() {
                    self.continue_after(turns.last().map(|turn| &**turn));
                }
            }
            ChatEvent::EntryAdded(entry) => self.entry_added(entry, events),
            ChatEvent::DraftChanged(_)
            | ChatEvent::ChatReadChanged(_)
            | ChatEvent::ChatArchivedChanged(_)
            | ChatEvent::ChatTitleChanged(_)
            | ChatEvent::ActivityChanged(_)
            | ChatEvent::AgentSessionChanged(_) => {}
        }
    }

    /// Continues after a turn and the entries behind it: the leaf has moved.
    fn continue_after(&mut self, turn: Option<&core::Turn>) {
        let last = history::last_of(&self.session, turn);
        self.last = self.tail.move_to(turn.map(|turn| turn.id.clone())).unwrap_or(last);
    }

    /// An entry of the log outside of turns. One that belongs to an older turn is read again only.
    fn entry_added(&mut self, entry: &LogEntry, events: &mut Vec<Event>) {
        if let Some(event) = entries::event(&self.session.id, &entry.line, self.last.clone())
            && self.tail.add(entry, &event.id)
        {
            self.last.clone_from(&event.id);
            events.push(event);
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
            Part::ToolCall(call) => self.question(call, None),
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
        let hook = match &event.change {
            Change::Chat(_, _, ChatEvent::ToolCallGated { gated, .. }) => gated.hook,
            _ => None,
        };
        let asks = (waiting != waited).then(|| self.question(now, hook)).flatten();
        let answered: Option<EventData> = match (&waited, &event.change) {
            _ if waiting == waited => None,
            (
                PendingInput::Permission(request),
                Change::Chat(_, _, ChatEvent::ToolCallConfirmed { verdict, answer, .. }),
            ) => {
                let by = answer.as_ref().map(|answer| &answer.by);
                Some(request_events::permission_completed(call, request, verdict, by).into())
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
        self.tail.turn_ended(finished.id.clone());
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
