//! Turns: prompts, and answers to agents' requests.

use grove_core::*;
use grove_host::audit::{AuditAction, AuditOutcome, PendingRecord};
use grove_host::subscriber::Outgoing;
use grove_wire::copilot::decode;
use grove_wire::copilot::methods::server::{USER_INPUT_REQUEST, UserInputParams};
use grove_wire::copilot::methods::*;
use grove_wire::copilot::project;

use super::peer::{CopilotError, CopilotPeer, SessionRef};
use crate::recording;

impl CopilotPeer {
    /// Starts a turn. While one runs, the prompt is queued, or steers it.
    pub(super) async fn send(&self, params: SendParams) -> Result<SendResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let message_id = self.host().new_id()?;
        let SendParams { prompt, attachments, mode, agent_mode, .. } = params;
        let message = decode::message(prompt, attachments.unwrap_or_default());
        let message = decode::with_agent_mode(message, agent_mode);
        let chat = ChatId::from(Session::MAIN_CHAT);
        let busy = |session: &Session| {
            session.main_chat().is_some_and(|chat| chat.active.is_some() || !chat.queued.is_empty())
        };
        let pending = |message| PendingMessage { id: PendingId::from(message_id.as_str()), message };
        let command = match (self.look(&session, busy).await?, mode) {
            (false, _) => {
                ClientCommand::StartTurn { chat, turn: message_id.as_str().into(), message, started_at: None }
            }
            (true, Some(SendMode::Immediate)) => ClientCommand::SetSteering { chat, message: pending(message) },
            (true, _) => ClientCommand::Enqueue { chat, message: pending(message) },
        };
        self.carry_out(&session, command).await?;
        Ok(SendResult { message_id })
    }

    /// Sends a prompt, and answers when its turn has ended.
    pub(super) async fn send_and_wait(&self, params: SendParams) -> Result<SendAndWaitResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let Some(feed) = self.endpoint().feeds().of(&session.id) else {
            return Err(CopilotError::Failed(format!("Session not found: {}", session.id)));
        };
        let mut updates = feed.updates();
        let SendResult { message_id } = self.send(params).await?;
        loop {
            let wanted = message_id.clone();
            let waits = move |session: &Session| {
                session.main_chat().is_some_and(|chat| {
                    let mut queued = chat.queued.iter().chain(&chat.steering);
                    chat.active.as_deref().is_some_and(|turn| turn.id.as_str() == wanted)
                        || queued.any(|pending| pending.id.as_str() == wanted)
                })
            };
            if !self.look(&session, waits).await? {
                break;
            }
            if updates.changed().await.is_err() {
                return Err(CopilotError::Failed(format!("Session not found: {}", session.id)));
            }
        }
        let response = self.answer_of(&session, &message_id).await?;
        Ok(SendAndWaitResult { message_id, response })
    }

    /// Ends the running turn, if there is one.
    pub(super) async fn abort(&self, params: AbortParams) -> Result<Success, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let active = |session: &Session| Some(session.main_chat()?.active.as_deref()?.id.clone());
        if let Some(turn) = self.look(&session, active).await? {
            let command = ClientCommand::CancelTurn { chat: Session::MAIN_CHAT.into(), turn };
            // It may have ended by itself meanwhile.
            match self.carry_out(&session, command).await {
                Err(CopilotError::Refused(refusal)) => return Ok(Success::failed(refusal.to_string())),
                Err(CopilotError::Failed(reason) | CopilotError::UnknownModel(reason)) => {
                    return Ok(Success::failed(reason));
                }
                Ok(()) | Err(CopilotError::Error(_)) => {}
            }
        }
        Ok(Success::YES)
    }

    /// Ends the running turn, if there is one, and says so.
    pub(super) async fn interrupt(&self, params: SessionParams) -> Result<InterruptResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let runs = |session: &Session| session.main_chat().is_some_and(|chat| chat.active.is_some());
        if !self.look(&session, runs).await? {
            return Ok(InterruptResult { interrupted: false });
        }
        let aborted = self.abort(AbortParams { session_id: params.session_id, reason: None }).await?;
        Ok(InterruptResult { interrupted: aborted.success })
    }

    /// Answers a permission request, and adds the decision to the record.
    pub(super) async fn answer_permission(
        &self,
        params: HandlePermissionParams,
        record: &mut PendingRecord,
    ) -> Result<Success, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let wanted = RequestId::from(params.request_id);
        let asked = wanted.clone();
        let found = self.look(&session, move |session| {
            let turn = session.main_chat()?.active.as_deref()?;
            let (_, request) = asked_permissions(turn).find(|(_, request)| request.id == asked)?;
            Some((turn.id.clone(), request.clone()))
        });
        let Some((turn, request)) = found.await? else { return Ok(Success::NO) };
        let verdict = decode::verdict(params.result, &request).map_err(CopilotError::Failed)?;
        record.describe_decision(verdict.decision, &request);
        let (chat, question) = (Session::MAIN_CHAT.into(), PermissionTarget::Request(wanted));
        self.answer_if_pending(
            &session,
            ClientCommand::ResolvePermission { chat, turn, question, verdict, answered_by: None },
        )
        .await
    }

    pub(super) async fn pending_permissions(
        &self,
        params: SessionParams,
    ) -> Result<PendingPermissionsResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let items = self.look(&session, |session| {
            let turn = session.main_chat().and_then(|chat| chat.active.as_deref());
            let asked = turn.into_iter().flat_map(asked_permissions);
            let pending = asked.map(|(call, request)| PendingPermission {
                request_id: request.id.to_string(),
                request: project::prompt_request(call, request),
            });
            pending.collect()
        });
        Ok(PendingPermissionsResult { items: items.await? })
    }

    pub(super) async fn answer_tool(&self, params: HandleToolCallParams) -> Result<Success, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let (call, chat) = (ToolCallId::from(params.request_id), ChatId::from(Session::MAIN_CHAT));
        let wanted = call.clone();
        let found = self.look(&session, move |session| {
            let turn = session.main_chat()?.active.as_deref()?;
            let name = calls(turn).find(|call| call.id == wanted)?.display_name.clone();
            Some((turn.id.clone(), name))
        });
        let Some((turn, name)) = found.await? else { return Ok(Success::NO) };
        let result = decode::tool_result(&name, params.result, params.error);
        self.answer_if_pending(&session, ClientCommand::CompleteClientCall { chat, turn, call, result, ask: false })
            .await
    }

    pub(super) async fn answer_input(&self, params: HandleUserInputParams) -> Result<Success, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let wanted = params.request_id.clone();
        let request = self.look(&session, move |session| {
            let turn = session.main_chat()?.active.as_deref()?;
            turn.input_request(&RequestId::from(wanted.as_str())).cloned()
        });
        let Some(request) = request.await? else { return Ok(Success::NO) };
        let Some(question) = request.questions.first() else { return Ok(Success::NO) };
        let answer = fitting(question, &params.response).map_err(CopilotError::Failed)?;
        let answers = Answers::from([(question.id.clone(), answer)]);
        self.accept_input(&session, &request, answers).await
    }

    /// Asks the client an agent's questions, one after another.
    pub(super) fn ask(&self, session: &SessionId, request: InputRequest) {
        let (peer, session) = (self.clone(), session.clone());
        self.host().env().spawn.spawn(Box::pin(async move {
            let mut answers = Answers::new();
            for question in &request.questions {
                let asked = project::user_input(&session, &request, Some(question));
                let Some(response) = peer.ask_one(&asked).await else { return };
                // Another client may still give a valid one.
                let Ok(answer) = fitting(question, &response) else { return };
                answers.insert(question.id.clone(), answer);
            }
            if let Ok(session) = peer.find(session.as_str()).await {
                let outcome = match peer.accept_input(&session, &request, answers).await {
                    Ok(_) => AuditOutcome::Done,
                    Err(_) => AuditOutcome::Refused,
                };
                let (host, client) = (peer.host(), Some(peer.client()));
                let record = recording::record(host, peer.principal(), client, AuditAction::Answer, USER_INPUT_REQUEST);
                host.audit(record.with_session(Some(session.id.as_str())).with_outcome(outcome, None));
            }
        }));
    }

    async fn ask_one(&self, asked: &UserInputParams) -> Option<UserInputResponse> {
        let call = self.calls().begin(USER_INPUT_REQUEST, asked).ok()?;
        self.queue().push(Outgoing::Frame(call.frame.as_str().into()));
        let answer = call.answer().await.ok()?;
        serde_json::from_str(answer.get()).ok()
    }

    /// Asks the client the questions that were pending before it connected.
    pub(super) async fn ask_pending_requests(&self, session: &SessionRef) -> Result<(), CopilotError> {
        let waiting = self.look(session, |session| {
            let active = session.main_chat().and_then(|chat| chat.active.as_deref());
            let parts = active.into_iter().flat_map(ActiveTurn::parts);
            let open = parts.filter_map(|part| match part {
                Part::InputRequest(request) if request.outcome.is_none() => Some(InputRequest::clone(request)),
                _ => None,
            });
            open.collect::<Vec<_>>()
        });
        for request in waiting.await? {
            self.ask(&session.id, request);
        }
        Ok(())
    }

    async fn accept_input(
        &self,
        session: &SessionRef,
        request: &InputRequest,
        answers: Answers,
    ) -> Result<Success, CopilotError> {
        let command = ClientCommand::AnswerInput {
            chat: Session::MAIN_CHAT.into(),
            request: request.id.clone(),
            outcome: InputOutcome::Accepted,
            answers,
            answered_by: None,
        };
        self.answer_if_pending(session, command).await
    }

    /// Answers a request, unless another client has answered it meanwhile.
    async fn answer_if_pending(&self, session: &SessionRef, command: ClientCommand) -> Result<Success, CopilotError> {
        match self.carry_out(session, command).await {
            Ok(()) => Ok(Success::YES),
            Err(CopilotError::Refused(refusal)) => {
                tracing::debug!(session = %session.id, %refusal, "an answer of an SDK came too late");
                Ok(Success::NO)
            }
            Err(CopilotError::Failed(reason) | CopilotError::UnknownModel(reason)) => {
                tracing::debug!(session = %session.id, reason, "an answer of an SDK found no session");
                Ok(Success::NO)
            }
            Err(error @ CopilotError::Error(_)) => Err(error),
        }
    }
}

/// The answer to a question, if the response is a valid one.
fn fitting(question: &Question, response: &UserInputResponse) -> Result<Answer, String> {
    let answer = decode::answer(question, response)?;
    let answer_error = match &answer {
        Answer::Submitted(value) => question.answer_error(value),
        Answer::Draft(_) | Answer::Skipped { .. } => None,
    };
    answer_error.map_or(Ok(answer), |why| Err(format!("the answer does not fit: it {why}")))
}

fn calls(turn: &ActiveTurn) -> impl Iterator<Item = &ToolCall> {
    turn.parts().iter().filter_map(|part| match part {
        Part::ToolCall(call) => Some(call.as_ref()),
        _ => None,
    })
}

/// The pending permission requests of a turn.
pub(super) fn asked_permissions(turn: &ActiveTurn) -> impl Iterator<Item = (&ToolCall, &PermissionRequest)> {
    calls(turn).filter_map(|call| match &call.status {
        ToolCallStatus::PendingConfirmation(request) => Some((call, request)),
        _ => None,
    })
}
