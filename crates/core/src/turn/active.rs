//! The running turn.

use std::collections::HashMap;

use super::*;
use crate::answerer::{Answerer, CallAnswer};
use crate::event::{Decision, InvocationUpdate, ToolCallGate, Verdict};
use crate::ids::*;
use crate::input::*;

/// The running turn.
///
/// Its parts are indexed by id, so that a delta costs the same however long the turn is.
#[derive(Clone, Debug)]
pub struct ActiveTurn {
    pub id: TurnId,
    pub message: Message,
    pub usage: Option<Usage>,
    /// The start time that the sender claims.
    pub started_at: Timestamp,
    /// The start time by the host's clock, from which the duration is measured.
    begun_at: Timestamp,
    parts: Vec<Part>,
    part_index: HashMap<PartId, usize>,
    tool_index: HashMap<ToolCallId, usize>,
    request_index: HashMap<RequestId, usize>,
    /// The number of unanswered questions to a person.
    open_requests: usize,
    ready_calls: u32,
    newest_streamed: Option<usize>,
    newest_reasoning: Option<usize>,
}

/// Two running turns are equal if their contents are; the indices follow from these.
impl PartialEq for ActiveTurn {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
            && self.message == other.message
            && self.parts == other.parts
            && self.usage == other.usage
            && self.started_at == other.started_at
    }
}

impl Eq for ActiveTurn {}

impl ActiveTurn {
    pub fn new(id: TurnId, message: Message, started_at: Timestamp, begun_at: Timestamp) -> Self {
        Self {
            id,
            message,
            usage: None,
            started_at,
            begun_at,
            parts: Vec::new(),
            part_index: HashMap::new(),
            tool_index: HashMap::new(),
            request_index: HashMap::new(),
            open_requests: 0,
            ready_calls: 0,
            newest_streamed: None,
            newest_reasoning: None,
        }
    }

    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The duration so far in milliseconds, by the host's clock.
    pub fn duration_at(&self, now: Timestamp) -> u64 {
        now.0.saturating_sub(self.begun_at.0)
    }

    pub fn has_part(&self, id: &PartId) -> bool {
        self.part_index.contains_key(id)
    }

    /// True if part `id` accepts more text. Only the newest streamed text does: a dialect that keeps all streamed text
    /// in one place cannot express an insertion in the middle of it.
    pub fn takes_text(&self, id: &PartId) -> bool {
        self.newest_streamed.is_some_and(|newest| self.part_index.get(id) == Some(&newest))
    }

    /// True if part `id` accepts more reasoning: only the newest one does, for the same reason.
    pub fn takes_reasoning(&self, id: &PartId) -> bool {
        self.newest_reasoning.is_some_and(|newest| self.part_index.get(id) == Some(&newest))
    }

    pub fn tool_call(&self, id: &ToolCallId) -> Option<&ToolCall> {
        match self.parts.get(*self.tool_index.get(id)?) {
            Some(Part::ToolCall(call)) => Some(call),
            _ => None,
        }
    }

    /// The tool call that waits for the answer to `request`.
    pub fn call_waiting_for(&self, request: &RequestId) -> Option<&ToolCall> {
        match self.parts.get(*self.request_index.get(request)?) {
            Some(Part::ToolCall(call)) => match &call.status {
                ToolCallStatus::PendingConfirmation(pending) if pending.id == *request => Some(call),
                _ => None,
            },
            _ => None,
        }
    }

    /// The input request of this id, answered or not.
    pub fn input_request(&self, request: &RequestId) -> Option<&InputRequest> {
        match self.parts.get(*self.request_index.get(request)?) {
            Some(Part::InputRequest(input)) => Some(input),
            _ => None,
        }
    }

    /// True if `request` was ever made in this turn.
    pub fn knows_request(&self, request: &RequestId) -> bool {
        self.request_index.contains_key(request)
    }

    /// True if the turn waits for a person.
    pub fn waits_for_person(&self) -> bool {
        self.open_requests > 0
    }

    /// True if a client has to run a call before the turn goes on.
    pub fn waits_for_client(&self) -> bool {
        self.parts.iter().any(|part| match part {
            Part::ToolCall(call) => call.client.is_some() && call.status == ToolCallStatus::Running,
            _ => false,
        })
    }

    /// True if a tool call is running.
    pub fn runs_tool(&self) -> bool {
        self.parts.iter().any(|part| match part {
            Part::ToolCall(call) => call.status == ToolCallStatus::Running,
            _ => false,
        })
    }

    /// The answered permission requests: the request, its call and the answer.
    pub fn permission_verdicts(&self) -> impl Iterator<Item = (RequestId, ToolCallId, Verdict)> + '_ {
        self.request_index.iter().filter_map(|(request, at)| {
            let Some(Part::ToolCall(call)) = self.parts.get(*at) else { return None };
            let (decision, option, skipped) = match &call.status {
                ToolCallStatus::PendingConfirmation(pending) if pending.id == *request => return None,
                ToolCallStatus::Cancelled(cancellation) => {
                    (Decision::Denied, &cancellation.option, cancellation.reason == CancelReason::Skipped)
                }
                _ => (Decision::Approved, call.confirmed.as_ref().map_or(&None, |confirmed| &confirmed.option), false),
            };
            let option = option.as_ref().map(|option| option.id.clone());
            Some((request.clone(), call.id.clone(), Verdict { option, skipped, ..decision.into() }))
        })
    }

    pub(crate) fn push(&mut self, part: Part) {
        let at = self.parts.len();
        match &part {
            Part::Text(text) => {
                self.part_index.insert(text.id.clone(), at);
                if text.delivery == Delivery::Streamed {
                    self.newest_streamed = Some(at);
                }
            }
            Part::Reasoning { id, .. } => {
                self.part_index.insert(id.clone(), at);
                self.newest_reasoning = Some(at);
            }
            Part::ToolCall(call) => {
                self.tool_index.insert(call.id.clone(), at);
                if let ToolCallStatus::PendingConfirmation(pending) = &call.status {
                    self.request_index.insert(pending.id.clone(), at);
                }
                if call.status.waits_for_person() {
                    self.open_requests += 1;
                }
            }
            Part::InputRequest(input) => {
                self.request_index.insert(input.id.clone(), at);
                if input.outcome.is_none() {
                    self.open_requests += 1;
                }
            }
            Part::Content(_) | Part::Error(_) | Part::Plan(_) | Part::Notice(_) => {}
        }
        self.parts.push(part);
    }

    pub(crate) fn text_mut(&mut self, id: &PartId) -> Option<&mut String> {
        match self.parts.get_mut(*self.part_index.get(id)?) {
            Some(Part::Text(text)) => Some(&mut text.content),
            _ => None,
        }
    }

    pub(crate) fn reasoning_mut(&mut self, id: &PartId) -> Option<&mut String> {
        match self.parts.get_mut(*self.part_index.get(id)?) {
            Some(Part::Reasoning { content, .. }) => Some(content),
            _ => None,
        }
    }

    pub(crate) fn tool_call_mut(&mut self, id: &ToolCallId) -> Option<&mut ToolCall> {
        match self.parts.get_mut(*self.tool_index.get(id)?) {
            Some(Part::ToolCall(call)) => Some(call),
            _ => None,
        }
    }

    pub(crate) fn next_ready_rank(&mut self) -> u32 {
        let rank = self.ready_calls;
        self.ready_calls += 1;
        rank
    }

    /// Puts a gate before a call and indexes the question.
    pub(crate) fn gate(&mut self, gated: &ToolCallGate) {
        let Some(&at) = self.tool_index.get(&gated.call) else { return };
        let Some(Part::ToolCall(call)) = self.parts.get_mut(at) else { return };
        if !matches!(call.status, ToolCallStatus::Ready | ToolCallStatus::Running) {
            return;
        }
        call.restate(gated.invocation_message.as_ref(), gated.input.as_ref());
        if gated.request.intention.is_some() {
            call.intention.clone_from(&gated.request.intention);
        }
        call.confirmed = None;
        call.output = None;
        call.running_since = None;
        call.status = ToolCallStatus::PendingConfirmation(gated.request.clone());
        self.request_index.insert(gated.request.id.clone(), at);
        self.open_requests += 1;
    }

    /// Moves a call off its gate.
    pub(crate) fn ungate(
        &mut self,
        at: Timestamp,
        call: &ToolCallId,
        request: &RequestId,
        verdict: &Verdict,
        answer: Option<&CallAnswer>,
    ) {
        let Some(call) = self.tool_call_mut(call) else { return };
        let option = match &call.status {
            ToolCallStatus::PendingConfirmation(pending) if pending.id == *request => {
                pending.options.iter().find(|option| Some(&option.id) == verdict.option.as_ref()).cloned()
            }
            _ => return,
        };
        call.set_answer(answer);
        call.status = match verdict.decision {
            Decision::Approved => {
                // A missing input cannot be edited.
                if call.input.is_some() {
                    call.restate(None, verdict.edited_input.as_ref());
                }
                call.confirmed = Some(Confirmation { by: verdict.by, option });
                call.running_since = Some(at);
                ToolCallStatus::Running
            }
            Decision::Denied => ToolCallStatus::Cancelled(Cancellation {
                reason: if verdict.skipped { CancelReason::Skipped } else { CancelReason::Denied },
                option,
                extra: verdict.extra.clone(),
            }),
        };
        self.open_requests -= 1;
    }

    /// Replaces the description of a running call.
    pub(crate) fn restate(&mut self, restated: &InvocationUpdate) {
        let Some(call) = self.tool_call_mut(&restated.call.id) else { return };
        if call.status != ToolCallStatus::Running {
            return;
        }
        call.restate(Some(&restated.invocation_message), restated.input.as_ref());
        if restated.call.extra.is_some() {
            call.extra.clone_from(&restated.call.extra);
        }
        call.confirmed = Some(Confirmation { by: restated.confirmed, option: None });
        call.output = None;
    }

    /// A call has run; its result waits for a person, or is there.
    pub(crate) fn complete(&mut self, call: &ToolCallId, next: ToolCallStatus, run: Option<&CallRun>) {
        let asks = next.waits_for_person();
        let Some(call) = self.tool_call_mut(call) else { return };
        if call.status == ToolCallStatus::Running {
            call.status = next;
            call.output = None;
            call.running_since = None;
            call.ran_ms = run.map(|run| run.ran_ms);
            self.open_requests += usize::from(asks);
        }
    }

    /// Records a person's decision on a result.
    pub(crate) fn release(&mut self, call: &ToolCallId, next: ToolCallStatus, answer: Option<&CallAnswer>) {
        let Some(call) = self.tool_call_mut(call) else { return };
        if matches!(call.status, ToolCallStatus::PendingResultConfirmation(_)) {
            call.set_answer(answer);
            call.status = next;
            self.open_requests -= 1;
        }
    }

    /// The open input request of this id.
    pub(crate) fn open_input_mut(&mut self, request: &RequestId) -> Option<&mut InputRequest> {
        match self.parts.get_mut(*self.request_index.get(request)?) {
            Some(Part::InputRequest(input)) if input.outcome.is_none() => Some(input),
            _ => None,
        }
    }

    pub(crate) fn answer(
        &mut self,
        request: &RequestId,
        outcome: InputOutcome,
        answers: &Answers,
        answered_by: Option<&Answerer>,
    ) {
        let Some(input) = self.open_input_mut(request) else { return };
        input.answers.extend(answers.iter().map(|(question, answer)| (question.clone(), answer.clone())));
        input.outcome = Some(outcome);
        input.answered_by = answered_by.cloned().map(Box::new);
        self.open_requests -= 1;
    }

    /// The turn in its finished form.
    ///
    /// Its times count from the claimed start: a wrong clock shifts the turn and leaves its length.
    pub(crate) fn finish(mut self, outcome: Outcome, error: Option<&ErrorInfo>, duration: u64) -> Turn {
        let ended_at = Timestamp(self.started_at.0.saturating_add(duration));
        if let Some(error) = error {
            self.parts.push(Part::Error(error.clone()));
        }
        self.parts.shrink_to_fit();
        Turn {
            id: self.id,
            message: self.message,
            parts: self.parts,
            usage: self.usage,
            outcome,
            started_at: self.started_at,
            ended_at,
            derived: DerivedCache::default(),
        }
    }
}
