//! JSON-RPC over the lines of a shim: sending, and the calls that wait for an answer.

mod frames;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use grove_shim::{ShimError, ShimWriter};
use grove_wire::jsonrpc::{self, ErrorObject, Id};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};

pub(crate) use self::frames::{FrameTracker, settled};
use super::capture::{CaptureDirection, CaptureTap};

/// The number of calls that may wait for the agent's answers at a time.
pub const CALLS: usize = 64;
/// The prefix of our call ids.
const CALL: &str = "grove";
/// The prefix of a prompt's id. Its turn follows, so that a host that comes back recognizes the answer.
const TURN: &str = "turn:";

/// The notification that a request is not waited for any more, in both directions.
pub(crate) const CANCEL_REQUEST: &str = "$/cancel_request";
/// The time that such a notification may take to be sent.
const CANCEL_PATIENCE: Duration = Duration::from_secs(1);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CancelCall<'a> {
    request_id: &'a str,
}

/// The sending side of the connection to an agent.
#[derive(Debug)]
pub(crate) struct AgentConnection {
    writer: ShimWriter,
    /// The number of lines written since the agent's start. Locked during a write, so that a line's number is known
    /// first.
    written: tokio::sync::Mutex<u64>,
    calls: Mutex<PendingCalls>,
    /// Distinguishes the ids of this connection from those of another connection to the same agent.
    tag: String,
    tap: Option<CaptureTap>,
}

#[derive(Debug, Default)]
struct PendingCalls {
    closed: bool,
    last: u64,
    open: HashMap<String, PendingCall>,
}

/// A call that the agent has not answered.
#[derive(Debug)]
pub(crate) struct PendingCall {
    pub(crate) purpose: CallPurpose,
    answer: oneshot::Sender<CallOutcome>,
}

/// The outcome of a call.
type CallOutcome = Result<Box<RawValue>, ErrorObject>;

/// The purpose of a call, for calls whose answers the reader treats specially.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallPurpose {
    Any,
    /// It opens a conversation: this one, or one whose id the answer contains.
    Opens(Option<acp::SessionId>),
}

/// The reason why a call has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentCallError {
    #[error("it refused `{method}`: {}", error_text(.error))]
    Refused { method: &'static str, error: ErrorObject },
    #[error("it did not answer `{method}` within {} s", .patience.as_secs_f32())]
    Slow { method: &'static str, patience: Duration },
    #[error("its answer to `{method}` is invalid: {error}")]
    Nonsense { method: &'static str, error: serde_json::Error },
    #[error("it ended")]
    Ended,
    #[error("{CALLS} calls already wait for its answers")]
    TooMany,
    #[error("`{method}` cannot be written as JSON: {error}")]
    Encode { method: &'static str, error: serde_json::Error },
    #[error(transparent)]
    Shim(#[from] ShimError),
}

impl AgentCallError {
    /// The error code of a refusal.
    pub(crate) fn code(&self) -> Option<i64> {
        match self {
            AgentCallError::Refused { error, .. } => Some(error.code),
            _ => None,
        }
    }
}

/// An error as a person can read it: agents put the reason into either member.
pub(crate) fn error_text(error: &ErrorObject) -> String {
    let details = error.data.as_ref().and_then(|data| {
        let inner = ["details", "message"].iter().find_map(|name| data.get(name));
        inner.unwrap_or(data).as_str().map(ToOwned::to_owned)
    });
    match details {
        Some(details) if !error.message.contains(&details) => format!("{} ({details})", error.message),
        _ => error.message.clone(),
    }
}

/// The id of a prompt.
fn prompt_id(turn: &str) -> String {
    format!("{TURN}{turn}")
}

/// The turn whose prompt has this id.
pub(crate) fn turn_of(id: &str) -> Option<&str> {
    id.strip_prefix(TURN)
}

impl AgentConnection {
    /// `written` is the number of lines that the agent was sent before.
    pub(crate) fn new(writer: ShimWriter, written: u64, tag: String, tap: Option<CaptureTap>) -> Self {
        Self { writer, written: tokio::sync::Mutex::new(written), calls: Mutex::default(), tag, tap }
    }

    pub(crate) fn shim(&self) -> &ShimWriter {
        &self.writer
    }

    /// Captures a line that the agent sent.
    pub(crate) fn record_received(&self, text: &str) {
        if let Some(tap) = &self.tap {
            tap.record(CaptureDirection::FromAgent, text);
        }
    }

    /// Calls a method, and waits for its result.
    pub(crate) async fn call<P: Serialize, R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: &P,
        patience: Duration,
    ) -> Result<R, AgentCallError> {
        let result = self.call_for(CallPurpose::Any, method, params, patience).await?;
        serde_json::from_str(result.get()).map_err(|error| AgentCallError::Nonsense { method, error })
    }

    /// Calls a method, and returns its result unparsed.
    pub(crate) async fn call_for<P: Serialize>(
        &self,
        purpose: CallPurpose,
        method: &'static str,
        params: &P,
        patience: Duration,
    ) -> Result<Box<RawValue>, AgentCallError> {
        let deadline = Instant::now() + patience;
        let slow = |_| AgentCallError::Slow { method, patience };
        let sent = timeout_at(deadline, self.ask(purpose, method, params)).await.map_err(slow)??;
        let id = sent.id().to_owned();
        match timeout_at(deadline, sent.answered()).await {
            Ok(answer) => answer,
            Err(late) => {
                self.cancel_call(&id).await;
                Err(slow(late))
            }
        }
    }

    /// Tells the agent that nobody waits for its answer to a call any more.
    async fn cancel_call(&self, id: &str) {
        let cancel = CancelCall { request_id: id };
        // An agent that reads nothing is not waited for.
        timeout(CANCEL_PATIENCE, self.notify(CANCEL_REQUEST, &cancel)).await.ok();
    }

    /// Sends a call. Everything sent later follows it.
    pub(crate) async fn ask<P: Serialize>(
        &self,
        purpose: CallPurpose,
        method: &'static str,
        params: &P,
    ) -> Result<SentCall<'_>, AgentCallError> {
        let (id, answer) = self.begin(purpose)?;
        let forgets = PendingCallGuard { agent_connection: self, id };
        let frame = jsonrpc::request(&Id::from(forgets.id.as_str()), method, params);
        let frame = frame.map_err(|error| AgentCallError::Encode { method, error })?;
        self.write(&frame).await?;
        Ok(SentCall { pending: forgets, method, answer })
    }

    /// Sends a prompt without waiting for its answer. `before` gets the number that its line will have, and completes
    /// before the line is sent.
    pub(crate) async fn prompt<P: Serialize, B: Future<Output = ()>>(
        &self,
        turn: &str,
        params: &P,
        before: impl FnOnce(u64) -> B,
    ) -> Result<(), AgentCallError> {
        let method = acp::AGENT_METHOD_NAMES.session_prompt;
        let frame = jsonrpc::request(&Id::from(prompt_id(turn).as_str()), method, params);
        let frame = frame.map_err(|error| AgentCallError::Encode { method, error })?;
        let mut written = self.written.lock().await;
        before(*written + 1).await;
        self.write_as(&mut written, &frame).await?;
        Ok(())
    }

    pub(crate) async fn notify<P: Serialize>(&self, method: &'static str, params: &P) -> Result<(), AgentCallError> {
        let frame = jsonrpc::notification(method, params).map_err(|error| AgentCallError::Encode { method, error })?;
        self.write(&frame).await?;
        Ok(())
    }

    /// Answers a call of the agent.
    pub(crate) async fn answer(&self, id: &Id, outcome: CallOutcome) -> Result<(), ShimError> {
        match outcome {
            Ok(result) => self.write(&jsonrpc::response_raw(id, result.get())).await,
            Err(error) => self.write(&jsonrpc::error(Some(id), &error)).await,
        }
    }

    /// Removes and returns the pending call with this id.
    pub(crate) fn take(&self, id: &str) -> Option<PendingCall> {
        self.calls().open.remove(id)
    }

    /// Ends all open calls, and every later one at once: the agent has ended.
    pub(crate) fn close(&self) {
        let mut calls = self.calls();
        calls.closed = true;
        calls.open.clear();
    }

    fn begin(&self, purpose: CallPurpose) -> Result<(String, oneshot::Receiver<CallOutcome>), AgentCallError> {
        let mut calls = self.calls();
        if calls.closed {
            return Err(AgentCallError::Ended);
        }
        if calls.open.len() >= CALLS {
            return Err(AgentCallError::TooMany);
        }
        calls.last += 1;
        let id = format!("{CALL}-{}-{}", self.tag, calls.last);
        let (answer, answered) = oneshot::channel();
        calls.open.insert(id.clone(), PendingCall { purpose, answer });
        Ok((id, answered))
    }

    async fn write(&self, frame: &str) -> Result<(), ShimError> {
        let mut written = self.written.lock().await;
        self.write_as(&mut written, frame).await
    }

    async fn write_as(&self, written: &mut u64, frame: &str) -> Result<(), ShimError> {
        if let Some(tap) = &self.tap {
            tap.record(CaptureDirection::ToAgent, frame);
        }
        // Counted before the wait: a call that is dropped during it is sent nevertheless.
        *written += 1;
        let sent = self.writer.write(frame.as_bytes()).await;
        if let Err(ShimError::LineTooLong { .. } | ShimError::LineBreak) = sent {
            *written -= 1;
        }
        sent.map(|_| ())
    }

    // Every change of the table is complete before anything can panic, so a poisoned one is still sound.
    fn calls(&self) -> MutexGuard<'_, PendingCalls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingCall {
    pub(crate) fn answer(self, outcome: Result<&RawValue, ErrorObject>) {
        // The caller may have stopped waiting.
        self.answer.send(outcome.map(ToOwned::to_owned)).ok();
    }
}

/// A call that was sent.
pub(crate) struct SentCall<'a> {
    pending: PendingCallGuard<'a>,
    method: &'static str,
    answer: oneshot::Receiver<CallOutcome>,
}

impl SentCall<'_> {
    fn id(&self) -> &str {
        &self.pending.id
    }

    pub(crate) async fn answered(self) -> Result<Box<RawValue>, AgentCallError> {
        let method = self.method;
        match self.answer.await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(AgentCallError::Refused { method, error }),
            Err(_) => Err(AgentCallError::Ended),
        }
    }
}

/// Forgets a call whose caller has stopped waiting.
struct PendingCallGuard<'a> {
    agent_connection: &'a AgentConnection,
    id: String,
}

impl Drop for PendingCallGuard<'_> {
    fn drop(&mut self) {
        self.agent_connection.calls().open.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_reason_of_a_refusal_is_told_wherever_it_stands() {
        let error = |message: &str, data: serde_json::Value| {
            error_text(&ErrorObject { code: -1, message: message.to_owned(), data: Some(data) })
        };
        assert_eq!(error("Internal error", json!({"details": "no such model"})), "Internal error (no such model)");
        assert_eq!(error("Internal error", json!("no such model")), "Internal error (no such model)");
        assert_eq!(error("no such model", json!("no such model")), "no such model");
        assert_eq!(error("no", json!({"a": 1})), "no");
    }

    #[test]
    fn the_answer_to_a_prompt_tells_its_turn() {
        assert_eq!(turn_of(&prompt_id("t-1")), Some("t-1"));
        assert_eq!(turn_of("grove-00-1"), None);
    }
}
