//! Reports: events that an agent or the host has seen happen. An agent may be late or wrong; the state may not.

use super::Rejection;
use super::batch::BatchBuilder;
use crate::command::Actor;
use crate::event::*;
use crate::ids::*;
use crate::state::*;
use crate::title::*;
use crate::turn::*;

impl BatchBuilder<'_> {
    /// An event of a chat, from an agent or the host.
    pub(super) fn report_chat(&mut self, chat: &ChatId, event: ChatEvent) -> Result<(), Rejection> {
        let (state, active) = match (event.turn(), &event) {
            (Some(turn), _) => self.running(chat, turn)?,
            // Events that concern the chat, whether or not a turn runs.
            (None, ChatEvent::ActivityChanged(activity)) => {
                if self.chat(chat)?.activity != *activity {
                    self.chat_event(chat, event);
                }
                return Ok(());
            }
            (None, ChatEvent::AgentSessionChanged(name)) => {
                if self.chat(chat)?.agent_session != *name {
                    self.chat_event(chat, event);
                }
                return Ok(());
            }
            (None, _) => return Err(Rejection::NotPermitted),
        };
        check_report(active, &event)?;
        let event = completed(active, event, self.who, self.now);
        if event.ends_turn() {
            self.end_turn(chat, active, event);
            self.start_queued(chat, state);
        } else {
            self.chat_event(chat, event);
        }
        Ok(())
    }

    /// An event of the session itself, from the host or an agent.
    pub(super) fn report_session(&mut self, event: SessionEvent) -> Result<(), Rejection> {
        match &event {
            SessionEvent::TitleChanged(title) if *self.who == Actor::Agent && !takes_agent_title(self.session, title) => {
                return Ok(());
            }
            // A failed creation has ended: clients keep its error.
            SessionEvent::Ready => self.require_created()?,
            // These follow from the chats and are never reported.
            SessionEvent::ChatRowChanged(_)
            | SessionEvent::InputNeededSet(_)
            | SessionEvent::InputNeededRemoved { .. }
            // It comes with a move of the leaf.
            | SessionEvent::ModelReset
            // Commands of their own check whether chats may come and go, and whether the folder may change.
            | SessionEvent::ChatAdded(_)
            | SessionEvent::ChatRemoved(_)
            | SessionEvent::WorkingDirectoryChanged { .. } => return Err(Rejection::NotPermitted),
            SessionEvent::Created(_)
            | SessionEvent::CreationFailed(_)
            | SessionEvent::Listed
            | SessionEvent::Removed
            | SessionEvent::TitleChanged(_)
            | SessionEvent::ModelChanged(_)
            | SessionEvent::ReadChanged(_)
            | SessionEvent::ArchivedChanged(_)
            | SessionEvent::ActiveClientSet(_)
            | SessionEvent::ActiveClientRemoved(_)
            | SessionEvent::ConfigChanged { .. }
            | SessionEvent::DetailsChanged(_)
            | SessionEvent::CheckoutChanged(_)
            | SessionEvent::Moved(_) => {}
        }
        self.session_event(event);
        Ok(())
    }
}

/// Decides if an agent's title replaces the current one.
///
/// A title that a person gave stays. An agent whose conversation began with a retelling of earlier turns, as after a
/// compaction, names it after the words of that retelling: such a title replaces none.
fn takes_agent_title(session: &Session, title: &SessionTitle) -> bool {
    let is_retold = session.main_chat().is_some_and(|main| main.is_agent_retold);
    let is_replaceable = match session.title_source {
        TitleSource::None => true,
        TitleSource::Prompt | TitleSource::Agent => !is_retold,
        TitleSource::Person => false,
    };
    is_replaceable && !title.is_none() && title.text() != session.title
}

/// Checks that an agent's report fits the running turn. An agent may be late or wrong; the state may not.
fn check_report(active: &ActiveTurn, event: &ChatEvent) -> Result<(), Rejection> {
    let call_in = |id: &ToolCallId, wanted: fn(&ToolCallStatus) -> bool, problem| match active.tool_call(id) {
        Some(call) if wanted(&call.status) => Ok(()),
        Some(_) => Err(Rejection::ToolCall { call: id.clone(), problem }),
        None => Err(Rejection::ToolCall { call: id.clone(), problem: "is unknown" }),
    };
    match event {
        ChatEvent::PartAdded { part, .. } => {
            let duplicate = match part {
                Part::Text(text) => active.has_part(&text.id),
                Part::Reasoning { id, .. } => active.has_part(id),
                Part::Content(_) | Part::Error(_) | Part::Plan(_) | Part::Notice(_) => false,
                // These have events of their own, which carry more data.
                Part::ToolCall(_) | Part::InputRequest(_) => return Err(Rejection::NotPermitted),
            };
            if duplicate { Err(Rejection::DuplicatePart) } else { Ok(()) }
        }
        ChatEvent::TextDelta { part, .. } if active.takes_text(part) => Ok(()),
        ChatEvent::ReasoningDelta { part, .. } if active.takes_reasoning(part) => Ok(()),
        ChatEvent::TextDelta { part, .. } | ChatEvent::ReasoningDelta { part, .. } => {
            if active.has_part(part) {
                Err(Rejection::PartClosed(part.clone()))
            } else {
                Err(Rejection::UnknownPart(part.clone()))
            }
        }
        ChatEvent::ToolCallStarted { call, .. } => match active.tool_call(&call.id) {
            Some(_) => Err(Rejection::DuplicatePart),
            None => Ok(()),
        },
        ChatEvent::ToolCallInputDelta { call, .. } => {
            call_in(call, |status| *status == ToolCallStatus::Streaming, "has its input already")
        }
        ChatEvent::ToolCallReady { call, .. } => {
            call_in(&call.id, |status| *status == ToolCallStatus::Streaming, "has its input already")?;
            require_same_name(active, call)
        }
        ChatEvent::ToolCallRestated { restated, .. } => {
            call_in(&restated.call.id, |status| *status == ToolCallStatus::Running, "is not running")?;
            require_same_name(active, &restated.call)
        }
        ChatEvent::ToolCallGated { gated, .. } => {
            if active.knows_request(&gated.request.id) {
                return Err(Rejection::AlreadyAnswered(gated.request.id.clone()));
            }
            call_in(
                &gated.call,
                |status| matches!(status, ToolCallStatus::Ready | ToolCallStatus::Running),
                "cannot ask for permission now",
            )
        }
        ChatEvent::ToolCallCompleted { call, .. }
        | ChatEvent::ToolCallResultGated { call, .. }
        | ChatEvent::ToolCallOutput { call, .. } => {
            call_in(call, |status| *status == ToolCallStatus::Running, "is not running")
        }
        ChatEvent::ToolCallResultConfirmed { call, .. } => call_in(
            call,
            |status| matches!(status, ToolCallStatus::PendingResultConfirmation(_)),
            "has no pending result",
        ),
        ChatEvent::InputRequested { request, .. } => {
            if active.knows_request(&request.id) {
                Err(Rejection::DuplicatePart)
            } else {
                Ok(())
            }
        }
        ChatEvent::UsageReported { .. }
        | ChatEvent::TurnCompleted { .. }
        | ChatEvent::TurnFailed { .. }
        | ChatEvent::TurnCancelled { .. } => Ok(()),
        // Done by a person or the queue, with commands of their own.
        ChatEvent::TurnStarted { .. }
        | ChatEvent::ToolCallConfirmed { .. }
        | ChatEvent::InputAnswerChanged { .. }
        | ChatEvent::InputAnswered { .. }
        | ChatEvent::ChatReadChanged(_)
        | ChatEvent::ChatArchivedChanged(_)
        | ChatEvent::ChatTitleChanged(_)
        | ChatEvent::SteeringSet(_)
        | ChatEvent::SteeringRemoved(_)
        | ChatEvent::QueuedSet(_)
        | ChatEvent::QueuedRemoved(_)
        | ChatEvent::QueueReordered(_)
        | ChatEvent::DraftChanged(_)
        | ChatEvent::ActivityChanged(_)
        | ChatEvent::AgentSessionChanged(_)
        | ChatEvent::TurnsCleared
        | ChatEvent::BranchTurnsLoaded { .. }
        | ChatEvent::TurnsInherited { .. }
        | ChatEvent::EntryAdded(_) => Err(Rejection::NotPermitted),
    }
}

/// Requires that a repeated call has the name that it started with.
fn require_same_name(active: &ActiveTurn, call: &NewToolCall) -> Result<(), Rejection> {
    match active.tool_call(&call.id) {
        Some(known_call) if !call.is(known_call) => {
            Err(Rejection::ToolCall { call: call.id.clone(), problem: "has changed its name" })
        }
        Some(_) | None => Ok(()),
    }
}

/// An event with what is known already said again, so that a dialect can tell it without looking anything up.
fn completed(active: &ActiveTurn, mut event: ChatEvent, who: &Actor, now: Timestamp) -> ChatEvent {
    match &mut event {
        ChatEvent::ToolCallCompleted { call, run, .. } | ChatEvent::ToolCallResultGated { call, run, .. } => {
            *run = active.run_of(call, who, now);
        }
        ChatEvent::ToolCallGated { gated, .. } => {
            if let Some(call) = active.tool_call(&gated.call) {
                gated.invocation_message.get_or_insert_with(|| call.invocation_message.clone());
                gated.input = gated.input.take().or_else(|| call.input.clone());
            }
        }
        // The host decides why a call may run, whatever its agent reports.
        ChatEvent::ToolCallRestated { restated, .. } => {
            if let Some(confirmed) = active.tool_call(&restated.call.id).and_then(|call| call.confirmed.as_ref()) {
                restated.confirmed = confirmed.by;
            }
        }
        // The confirmed result is the pending one.
        ChatEvent::ToolCallResultConfirmed { call, result, .. } => {
            let status = active.tool_call(call).map(|call| &call.status);
            if let Some(ToolCallStatus::PendingResultConfirmation(waiting)) = status {
                result.clone_from(waiting);
            }
        }
        _ => {}
    }
    event
}
