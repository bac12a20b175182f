//! Handling an agent's requests: permissions, a person's answers, files, terminals.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use grove_core::{Decision, RequestId, Verdict};
use grove_wire::jsonrpc::{ErrorObject, Id, Request, code};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{oneshot, watch};

use super::chat::ServicePolicy;
use super::process::{ASKED, TurnHandle};
use super::protected;
use super::reader::{CallEffect, DecodedFrame, PermissionState, ProcessReader};
use crate::acp::elicit;
use crate::acp::map;
use crate::acp::serve::AgentServices;
use crate::agent::*;

/// The error code of a request that its sender has cancelled.
const CANCELLED: i64 = -32800;

/// A call about a conversation.
trait SessionScoped {
    fn session(&self) -> &acp::SessionId;
}

macro_rules! in_session {
    ($($request:ident),*) => {$(
        impl SessionScoped for acp::$request {
            fn session(&self) -> &acp::SessionId {
                &self.session_id
            }
        }
    )*};
}

in_session!(
    ReadTextFileRequest,
    WriteTextFileRequest,
    CreateTerminalRequest,
    TerminalOutputRequest,
    WaitForTerminalExitRequest,
    KillTerminalRequest,
    ReleaseTerminalRequest
);

impl ProcessReader {
    pub(super) async fn request(&mut self, request: Request<'_>, decoded: &mut DecodedFrame) {
        let Request { id, method, params } = request;
        let params = params.map_or("{}", RawValue::get);
        if self.process.with_frames(|frames| frames.wanted()) >= ASKED {
            let error = ErrorObject::new(code::INTERNAL, format!("{ASKED} calls wait for an answer: wait for one"));
            return self.refuse(&id, error).await;
        }
        // Two answers with one id could not be told apart. The first request keeps its answer.
        let Some(cancelled) = self.process.open_request(&id) else {
            let problem = format!("a request with the id {} is not answered yet: give each its own id", id.as_json());
            return self.refuse(&id, ErrorObject::new(code::INVALID_REQUEST, problem)).await;
        };
        decoded.cancelled = Some(cancelled);
        // Nothing slow happens here: the next line would wait for it.
        let result = match method.as_ref() {
            "session/request_permission" => self.permission(&id, params, decoded),
            unserved if self.chat.service_policy == ServicePolicy::Nothing => {
                Err(ErrorObject::unknown_method(unserved))
            }
            "elicitation/create" => self.elicitation(&id, params, decoded),
            "fs/read_text_file" => self.read(&id, params, decoded),
            "fs/write_text_file" => self.write(&id, params, decoded),
            "terminal/create" => self.serve(&id, params, decoded, CallEffect::Once, |services, request| async move {
                services.create_terminal(request).await
            }),
            "terminal/output" => self.serve(&id, params, decoded, CallEffect::None, |services, request| async move {
                services.terminal_output(&request).await
            }),
            "terminal/wait_for_exit" => {
                self.serve(&id, params, decoded, CallEffect::None, |services, request| async move {
                    services.wait_for_terminal_exit(&request).await
                })
            }
            "terminal/kill" => self.serve(&id, params, decoded, CallEffect::None, |services, request| async move {
                services.kill_terminal(&request).await
            }),
            "terminal/release" => self.serve(&id, params, decoded, CallEffect::None, |services, request| async move {
                services.release_terminal(&request).await
            }),
            unknown => Err(ErrorObject::unknown_method(unknown)),
        };
        if let Err(error) = result {
            self.process.close_request(&id);
            self.refuse(&id, error).await;
        }
    }

    fn permission(&mut self, id: &Id, params: &str, decoded: &mut DecodedFrame) -> Result<(), ErrorObject> {
        let turn = self.process.turn();
        let name = turn.as_ref().map_or_else(|| RequestId::from(""), |turn| question(turn, id));
        let (answer, mut verdict) = oneshot::channel();
        let map::ParsedPermissionRequest { session, offered, mut update } =
            map::permission(parse(params)?, name.clone(), answer).map_err(ErrorObject::invalid_params)?;
        self.check(&session)?;
        let Some(turn) = turn else { return self.nobody_answers(id, decoded, &offered) };
        let earlier = self.asking.get(&update.call).cloned();
        let call = update.call.clone();
        self.complete(&mut update);
        if let Some(prompt) = &mut update.permission {
            prompt.asks = self.chat.asked_party();
        }
        if let Some(tools) = self.process.tools.as_ref().filter(|_| !decoded.again) {
            tools.ask(&mut update);
        }
        let event = AgentEvent::Tool(update);
        // A call asks one question at a time: another waits until the first is answered.
        let mut held = None;
        if decoded.again {
            match (self.past.waiting.remove(&name), earlier) {
                (Some(PendingAnswer::Permission(_, waited)), _) => verdict = waited,
                (None, Some(earlier)) => held = Some((earlier, event)),
                // A denied call is not waited for, whether the agent has decoded of it or not.
                (Some(PendingAnswer::Question(_) | PendingAnswer::Result(..)) | None, _) => {
                    return self.nobody_answers(id, decoded, &offered);
                }
            }
        } else {
            match earlier.filter(|earlier| matches!(*earlier.borrow(), PermissionState::Open)) {
                Some(earlier) => held = Some((earlier, event)),
                None => decoded.events.push(event),
            }
        }
        let (tell, asking) = watch::channel(PermissionState::Open);
        self.asking.insert(call, asking);
        let patience = self.chat.pool.options().patience;
        let process = Arc::clone(&self.process);
        self.answer(id, decoded, CallEffect::None, async move {
            let verdict = match held {
                None => answered(verdict, turn, patience).await,
                Some((earlier, event)) => match answer_of(earlier).await {
                    Some(allowed) if allowed.decision == Decision::Approved => {
                        // Without a receiver the host is ending, and the next one asks.
                        turn.sink.report(vec![event], None).await.ok();
                        answered(verdict, turn, patience).await
                    }
                    // A call that was denied, or whose turn was cancelled, asks nothing more.
                    over => over,
                },
            };
            if verdict.as_ref().is_some_and(|verdict| verdict.decision == Decision::Denied) {
                process.note_denial();
            }
            tell.send_replace(PermissionState::Answered(verdict.clone()));
            json(&map::response(&offered, verdict.as_ref()))
        });
        Ok(())
    }

    /// Reads a file, and asks a person first if it is outside the working directories.
    fn read(&mut self, id: &Id, params: &str, decoded: &DecodedFrame) -> Result<(), ErrorObject> {
        let request: acp::ReadTextFileRequest = self.parse(params)?;
        let (services, turn) = (Arc::clone(&self.process.services), self.process.turn());
        let question = turn.as_ref().map(|turn| question(turn, id));
        let waited = question.as_ref().filter(|_| decoded.again).and_then(|name| self.past.waiting.remove(name));
        let patience = self.chat.pool.options().patience;
        self.answer(id, decoded, CallEffect::None, async move {
            if !services.asks_before_reading(&request).await? {
                return json(&services.read_text_file(request).await?);
            }
            let approval = protected::ask_to_read(&request.path, turn.zip(question), waited, patience).await?;
            let content = services.read_text_file(request).await;
            approval.done(content.as_ref().err()).await;
            json(&content?)
        });
        Ok(())
    }

    /// Writes a file, and asks a person first if it is protected.
    fn write(&mut self, id: &Id, params: &str, decoded: &DecodedFrame) -> Result<(), ErrorObject> {
        let request: acp::WriteTextFileRequest = self.parse(params)?;
        let (services, turn) = (Arc::clone(&self.process.services), self.process.turn());
        let question = turn.as_ref().map(|turn| question(turn, id));
        let waited = question.as_ref().filter(|_| decoded.again).and_then(|name| self.past.waiting.remove(name));
        let patience = self.chat.pool.options().patience;
        self.answer(id, decoded, CallEffect::Once, async move {
            let planned = services.plan_write(request).await?;
            let turn_request = planned.protected.is_some().then_some(turn.zip(question));
            let approval = match turn_request {
                None => None,
                Some(turn_request) => Some(protected::ask(&planned, turn_request, waited, patience).await?),
            };
            let written = services.write(planned).await;
            if let Some(approval) = approval {
                approval.done(written.as_ref().err()).await;
            }
            json(&written?)
        });
        Ok(())
    }

    fn nobody_answers(
        &mut self,
        id: &Id,
        decoded: &DecodedFrame,
        offered: &[acp::PermissionOption],
    ) -> Result<(), ErrorObject> {
        let cancelled = acp::RequestPermissionResponse::new(map::outcome(offered, None));
        self.answer(id, decoded, CallEffect::None, ready(json(&cancelled)));
        Ok(())
    }

    fn elicitation(&mut self, id: &Id, params: &str, decoded: &mut DecodedFrame) -> Result<(), ErrorObject> {
        let elicitation: Value = parse(params)?;
        if let Some(session) = elicitation.get("sessionId").and_then(Value::as_str) {
            self.check(&acp::SessionId::new(session))?;
        }
        let nobody_answers = ready(json(&elicit::response(&elicitation, None)));
        let Some(turn) = self.process.turn() else {
            self.answer(id, decoded, CallEffect::None, nobody_answers);
            return Ok(());
        };
        let name = question(&turn, id);
        let response = if decoded.again {
            let Some(PendingAnswer::Question(waited)) = self.past.waiting.remove(&name) else {
                self.answer(id, decoded, CallEffect::None, nobody_answers);
                return Ok(());
            };
            waited
        } else {
            let request = Box::new(elicit::request(&elicitation, name).map_err(ErrorObject::invalid_params)?);
            let (answer, response) = oneshot::channel();
            decoded.events.push(AgentEvent::InputNeeded { request, answer });
            response
        };
        let patience = self.chat.pool.options().patience;
        self.answer(id, decoded, CallEffect::None, async move {
            let response = answered(response, turn, patience).await;
            json(&elicit::response(&elicitation, response.as_ref()))
        });
        Ok(())
    }

    /// Serves a request in its own task.
    fn serve<P, R, F>(
        &mut self,
        id: &Id,
        params: &str,
        decoded: &DecodedFrame,
        effect: CallEffect,
        serve: impl FnOnce(Arc<AgentServices>, P) -> F,
    ) -> Result<(), ErrorObject>
    where
        P: DeserializeOwned + SessionScoped,
        R: Serialize,
        F: Future<Output = Result<R, ErrorObject>> + Send + 'static,
    {
        let services = serve(Arc::clone(&self.process.services), self.parse(params)?);
        self.answer(id, decoded, effect, async move { json(&services.await?) });
        Ok(())
    }

    /// Answers a call once its answer is there.
    fn answer(
        &mut self,
        id: &Id,
        decoded: &DecodedFrame,
        effect: CallEffect,
        outcome: impl Future<Output = Result<Box<RawValue>, ErrorObject>> + Send + 'static,
    ) {
        let (process, id, frame) = (Arc::clone(&self.process), id.clone(), decoded.frame);
        process.with_frames(|frames| frames.wants_answer(frame));
        let mut cancelled = decoded.cancelled.clone();
        self.tasks.spawn(async move {
            let is_cancelled = async {
                match &mut cancelled {
                    Some(cancelled) => drop(cancelled.wait_for(|is_cancelled| *is_cancelled).await),
                    None => std::future::pending().await,
                }
            };
            let outcome = tokio::select! {
                outcome = outcome => outcome,
                () = is_cancelled => Err(ErrorObject::new(CANCELLED, "the request was cancelled")),
            };
            // The agent may use the id again as soon as it has the answer.
            process.close_request(&id);
            // If it cannot be sent, the agent is gone.
            process.agent_connection.answer(&id, outcome).await.ok();
            process.with_frames(|frames| frames.answered(frame));
            effect
        });
    }

    async fn refuse(&self, id: &Id, error: ErrorObject) {
        // If it cannot be sent, the agent is gone.
        self.process.agent_connection.answer(id, Err(error)).await.ok();
    }

    fn parse<P: DeserializeOwned + SessionScoped>(&self, params: &str) -> Result<P, ErrorObject> {
        let request: P = parse(params)?;
        self.check(request.session())?;
        Ok(request)
    }

    fn check(&self, session: &acp::SessionId) -> Result<(), ErrorObject> {
        if self.process.concerns(session) {
            return Ok(());
        }
        Err(ErrorObject::invalid_params("there is no such session"))
    }
}

/// The id of a question in its turn. A host that comes back gives it the same id.
fn question(turn: &TurnHandle, id: &Id) -> RequestId {
    format!("{}/{}", turn.sink.turn(), id.as_json()).into()
}

/// The answer to an earlier request of the same call.
async fn answer_of(mut asking: watch::Receiver<PermissionState>) -> Option<Verdict> {
    let answered = asking.wait_for(|asking| matches!(asking, PermissionState::Answered(_))).await;
    match answered.as_deref() {
        Ok(PermissionState::Answered(verdict)) => verdict.clone(),
        Ok(PermissionState::Open) | Err(_) => None,
    }
}

/// Waits for the answer; `None` if the turn is cancelled or nobody can answer.
pub(super) async fn answered<T>(answer: oneshot::Receiver<T>, turn: TurnHandle, patience: Duration) -> Option<T> {
    let answered = async {
        match answer.await {
            Ok(answer) => Some(answer),
            // The sender was dropped: the question did not fit, or the host is about to end. Then the next host asks,
            // and this one stays silent.
            Err(_) => {
                tokio::time::sleep(patience).await;
                None
            }
        }
    };
    tokio::select! {
        answer = answered => answer,
        () = turn.cancelled() => None,
    }
}

fn parse<P: DeserializeOwned>(params: &str) -> Result<P, ErrorObject> {
    serde_json::from_str(params).map_err(|error| ErrorObject::invalid_params(error.to_string()))
}

fn json<T: Serialize>(value: &T) -> Result<Box<RawValue>, ErrorObject> {
    serde_json::value::to_raw_value(value).map_err(|error| ErrorObject::internal(error.to_string()))
}
