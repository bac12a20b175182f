//! Tool calls: permission to run, results, and calls that a client runs.

use super::batch::BatchBuilder;
use super::{MAX_REMEMBERED_PERMISSIONS, MAX_REMEMBERED_SUBJECT_BYTES, Rejection};
use crate::answerer::{Answerer, CallAnswer};
use crate::command::{Actor, PermissionTarget};
use crate::event::*;
use crate::ids::*;
use crate::state::*;
use crate::turn::*;
use grove_checks::Check;

impl BatchBuilder<'_> {
    pub(super) fn resolve_permission(
        &mut self,
        chat: &ChatId,
        turn: TurnId,
        question: &PermissionTarget,
        verdict: Verdict,
        answered_by: Option<Box<Answerer>>,
    ) -> Result<(), Rejection> {
        let (_, active) = self.running(chat, &turn)?;
        let (call, pending) = pending_permission(active, question)?;
        if let Some(option) = &verdict.option {
            match pending.options.iter().find(|known| known.id == *option) {
                Some(known) if known.allows == (verdict.decision == Decision::Approved) => {}
                Some(_) | None => return Err(Rejection::UnknownOption(option.clone())),
            }
        }
        if verdict.edited_input.is_some() && !pending.editable {
            return Err(Rejection::ToolCall { call: call.id.clone(), problem: "does not accept an edited input" });
        }
        let remembered = remembered(self.session, pending, &verdict);
        let answer = answered_by.map(|by| Box::new(CallAnswer::new(*by, call)));
        let (call, request) = (call.id.clone(), pending.id.clone());
        self.chat_event(chat, ChatEvent::ToolCallConfirmed { turn, call, request, verdict, answer });
        if let Some(details) = remembered {
            self.session_event(SessionEvent::DetailsChanged(Box::new(details)));
        }
        Ok(())
    }

    pub(super) fn confirm_result(
        &mut self,
        chat: &ChatId,
        turn: TurnId,
        call: ToolCallId,
        decision: Decision,
        answered_by: Option<Box<Answerer>>,
    ) -> Result<(), Rejection> {
        let (_, active) = self.running(chat, &turn)?;
        let known = active.tool_call(&call).map(|call| (call, &call.status));
        let Some((known, ToolCallStatus::PendingResultConfirmation(result))) = known else {
            return Err(Rejection::ToolCall { call, problem: "has no pending result" });
        };
        let answer = answered_by.map(|by| Box::new(CallAnswer::new(*by, known)));
        let result = result.clone();
        self.chat_event(chat, ChatEvent::ToolCallResultConfirmed { turn, call, result, decision, answer });
        Ok(())
    }

    pub(super) fn complete_client_call(
        &mut self,
        chat: &ChatId,
        turn: TurnId,
        call: ToolCallId,
        result: ToolResult,
        ask: bool,
    ) -> Result<(), Rejection> {
        self.require_running_client_call(chat, &turn, &call)?;
        let run = self.running(chat, &turn)?.1.run_of(&call, self.who, self.now);
        let event = match ask {
            true => ChatEvent::ToolCallResultGated { turn, call, result, run },
            false => ChatEvent::ToolCallCompleted { turn, call, result, run },
        };
        self.chat_event(chat, event);
        Ok(())
    }

    pub(super) fn report_client_output(
        &mut self,
        chat: &ChatId,
        turn: TurnId,
        call: ToolCallId,
        output: ToolOutput,
    ) -> Result<(), Rejection> {
        self.require_running_client_call(chat, &turn, &call)?;
        self.chat_event(chat, ChatEvent::ToolCallOutput { turn, call, output });
        Ok(())
    }

    /// Requires a running call that this client has to run.
    fn require_running_client_call(&self, chat: &ChatId, turn: &TurnId, call: &ToolCallId) -> Result<(), Rejection> {
        let problem = |problem| Err(Rejection::ToolCall { call: call.clone(), problem });
        let (_, active) = self.running(chat, turn)?;
        match (active.tool_call(call), self.who) {
            (None, _) => problem("is unknown"),
            (Some(ToolCall { client: Some(owner), .. }), Actor::Client(client))
                if Check::ToolOwner.is_enforced() && owner != client =>
            {
                problem("belongs to another client")
            }
            (Some(ToolCall { client: None, .. }), Actor::Client(_)) => problem("is run by the agent"),
            (Some(call), _) if call.status != ToolCallStatus::Running => problem("is not running"),
            (Some(_), _) => Ok(()),
        }
    }
}

/// The session's details with an answer that holds for later requests, if this is one.
fn remembered(session: &Session, request: &PermissionRequest, verdict: &Verdict) -> Option<SessionDetails> {
    let option = request.options.iter().find(|option| Some(&option.id) == verdict.option.as_ref())?;
    let about = RememberedPermission::subject(request).filter(|about| about.len() <= MAX_REMEMBERED_SUBJECT_BYTES)?;
    if !option.lasting || verdict.by != ConfirmationReason::Person {
        return None;
    }
    let mut details = session.details.clone();
    details.remembered.retain(|known| !known.answers(request));
    if details.remembered.len() >= MAX_REMEMBERED_PERMISSIONS {
        details.remembered.remove(0);
    }
    details.remembered.push(RememberedPermission {
        kind: request.kind,
        about: about.to_owned(),
        option: option.clone(),
    });
    Some(details)
}

/// The call that a question is about, and the question.
fn pending_permission<'a>(
    active: &'a ActiveTurn,
    question: &PermissionTarget,
) -> Result<(&'a ToolCall, &'a PermissionRequest), Rejection> {
    let call = match question {
        PermissionTarget::Request(request) => match active.call_waiting_for(request) {
            Some(call) => call,
            None if active.knows_request(request) => return Err(Rejection::AlreadyAnswered(request.clone())),
            None => return Err(Rejection::UnknownRequest(request.clone())),
        },
        PermissionTarget::OfToolCall(call) => {
            active.tool_call(call).ok_or_else(|| Rejection::ToolCall { call: call.clone(), problem: "is unknown" })?
        }
    };
    match &call.status {
        ToolCallStatus::PendingConfirmation(pending) => Ok((call, pending)),
        _ => Err(Rejection::ToolCall { call: call.id.clone(), problem: "does not wait for an answer" }),
    }
}

impl ActiveTurn {
    /// How long a call ran that ends now. A call that the host itself ends was cut off, perhaps long ago.
    pub(super) fn run_of(&self, call: &ToolCallId, who: &Actor, now: Timestamp) -> Option<Box<CallRun>> {
        if *who == Actor::Host {
            return None;
        }
        self.tool_call(call)?.run_until(now).map(Box::new)
    }
}
