//! JSON-RPC over lines, in both directions.

use std::collections::HashMap;
use std::io::{BufRead, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::behavior::{AgentBehavior, RpcError};

/// The longest line that is read. The agent ends when a longer one comes.
const LONGEST_LINE: u64 = 256 << 20;
/// The most complaints that are kept; the first are the most useful.
const MOST_COMPLAINTS: usize = 100;

pub(super) const PARSE: i64 = -32700;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const NO_METHOD: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
pub(super) const INTERNAL: i64 = -32603;
pub(super) const NEEDS_AUTH: i64 = -32000;
pub(super) const NOT_FOUND: i64 = -32002;

/// The result of a request.
pub(super) type RpcResult = Result<Value, RpcError>;

/// A message of the other side.
pub(super) enum IncomingMessage {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// A message that was handled, or that means nothing.
    Nothing,
    /// The other side closed, or sent an invalid line.
    End,
}

/// The other side.
pub(super) struct RpcPeer {
    out: Mutex<Box<dyn Write + Send>>,
    /// The waiters for answers, by the id of the question as JSON.
    waiting: Mutex<HashMap<String, Arc<TurnWait>>>,
    next: AtomicU64,
    ids_as_text: bool,
    complaints: Mutex<Vec<String>>,
}

impl RpcPeer {
    pub(super) fn new(out: Box<dyn Write + Send>, behavior: &AgentBehavior) -> Self {
        Self {
            out: Mutex::new(out),
            waiting: Mutex::default(),
            next: AtomicU64::new(if behavior.ids_from_zero { 0 } else { 1 }),
            ids_as_text: behavior.ids_as_text,
            complaints: Mutex::default(),
        }
    }

    /// Sends a line as it is. If nobody reads, it is lost: the end of stdin says the rest.
    pub(super) fn line(&self, mut line: String) {
        line.push('\n');
        let mut out = lock(&self.out);
        out.write_all(line.as_bytes()).and_then(|()| out.flush()).ok();
    }

    /// Closes stdout; later lines are lost.
    pub(super) fn close(&self) {
        *lock(&self.out) = Box::new(std::io::sink());
        // The descriptor itself has to be closed, for the other side to notice. A null device takes its place.
        if let Ok(null) = std::fs::File::options().write(true).open("/dev/null") {
            rustix::stdio::dup2_stdout(null).ok();
        }
    }

    pub(super) fn notify(&self, method: &str, params: &Value) {
        self.line(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    pub(super) fn respond(&self, id: &Value, answer: &RpcResult) {
        let response = match answer {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(fault) => json!({"jsonrpc": "2.0", "id": id, "error": fault}),
        };
        self.line(response.to_string());
    }

    /// Sends a request, and returns its id: the answer goes to the waiter.
    pub(super) fn ask(&self, method: &str, params: &Value, wait: &Arc<TurnWait>) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let id = if self.ids_as_text { json!(format!("question {number}")) } else { json!(number) };
        let key = id.to_string();
        lock(&self.waiting).insert(key.clone(), wait.clone());
        self.line(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        key
    }

    /// Records a fault of the other side that no answer can report.
    pub(super) fn complain(&self, complaint: impl Into<String>) {
        let complaint = complaint.into();
        writeln!(std::io::stderr(), "acp-agent: {complaint}").ok();
        let mut complaints = lock(&self.complaints);
        if complaints.len() < MOST_COMPLAINTS {
            complaints.push(complaint);
        }
    }

    pub(super) fn complaints(&self) -> Vec<String> {
        lock(&self.complaints).clone()
    }

    /// The next message of the other side. Answers go to their waiters.
    pub(super) fn hear(&self, lines: &mut dyn BufRead) -> IncomingMessage {
        let mut line = Vec::new();
        match lines.take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) => return IncomingMessage::End,
            Ok(_) if line.len() as u64 == LONGEST_LINE => {
                self.complain("a line is too long");
                return IncomingMessage::End;
            }
            Ok(_) => {}
            Err(error) => {
                self.complain(format!("stdin cannot be read: {error}"));
                return IncomingMessage::End;
            }
        }
        match serde_json::from_slice(&line) {
            Ok(message) => self.sort(message),
            Err(error) => {
                self.refuse(&Value::Null, PARSE, &format!("not JSON: {error}"));
                IncomingMessage::Nothing
            }
        }
    }

    fn sort(&self, message: Value) -> IncomingMessage {
        let Value::Object(mut message) = message else {
            self.refuse(&Value::Null, INVALID_REQUEST, "a message is an object");
            return IncomingMessage::Nothing;
        };
        let id = message.remove("id");
        let is_id = |id: &Value| matches!(id, Value::Number(_) | Value::String(_));
        if message.get("jsonrpc") != Some(&json!("2.0")) || id.as_ref().is_some_and(|id| !is_id(id)) {
            self.refuse(&id.unwrap_or_default(), INVALID_REQUEST, "not a message of JSON-RPC 2.0");
            return IncomingMessage::Nothing;
        }
        let params = message.remove("params").unwrap_or_default();
        match (id, message.remove("method")) {
            (Some(id), Some(Value::String(method))) => IncomingMessage::Request { id, method, params },
            (None, Some(Value::String(method))) => IncomingMessage::Notification { method, params },
            (Some(id), None) => {
                self.answered(&id, message.remove("result"), message.remove("error"));
                IncomingMessage::Nothing
            }
            (id, _) => {
                self.refuse(&id.unwrap_or_default(), INVALID_REQUEST, "neither a request nor an answer");
                IncomingMessage::Nothing
            }
        }
    }

    fn answered(&self, id: &Value, result: Option<Value>, error: Option<Value>) {
        let key = id.to_string();
        let Some(wait) = lock(&self.waiting).remove(&key) else {
            self.complain(format!("an answer to {key}, which nobody asked"));
            return;
        };
        let malformed = |why: &str| {
            self.complain(format!("the answer to {key} {why}"));
            Err(RpcError::new(INVALID_REQUEST, "a malformed answer"))
        };
        let answer = match (result, error.map(serde_json::from_value::<RpcError>)) {
            (Some(result), None) => Ok(result),
            (None, Some(Ok(fault))) => Err(fault),
            (None, Some(Err(error))) => malformed(&format!("has an error that is none: {error}")),
            (Some(_), Some(_)) => malformed("is both a result and an error"),
            (None, None) => malformed("is neither a result nor an error"),
        };
        wait.take(key, answer);
    }

    fn refuse(&self, id: &Value, code: i64, message: &str) {
        self.complain(message);
        self.respond(id, &Err(RpcError::new(code, message)));
    }
}

/// The waiting state of a turn: answers, time, and its end.
#[derive(Default)]
pub(super) struct TurnWait {
    state: Mutex<WaitState>,
    changed: Condvar,
}

#[derive(Default)]
struct WaitState {
    cancelled: bool,
    answers: HashMap<String, RpcResult>,
}

/// The turn was cancelled.
pub(super) struct Cancelled;

impl TurnWait {
    pub(super) fn cancel(&self) {
        lock(&self.state).cancelled = true;
        self.changed.notify_all();
    }

    fn take(&self, id: String, answer: RpcResult) {
        lock(&self.state).answers.insert(id, answer);
        self.changed.notify_all();
    }

    pub(super) fn go_on(&self) -> Result<(), Cancelled> {
        if lock(&self.state).cancelled { Err(Cancelled) } else { Ok(()) }
    }

    pub(super) fn sleep(&self, time: Duration) -> Result<(), Cancelled> {
        self.until(Instant::now() + time)
    }

    pub(super) fn until(&self, deadline: Instant) -> Result<(), Cancelled> {
        let mut state = lock(&self.state);
        while !state.cancelled {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Err(Cancelled)
    }

    pub(super) fn forever(&self) -> Cancelled {
        let mut state = lock(&self.state);
        while !state.cancelled {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Cancelled
    }

    /// The answer to a question. It is awaited even if the turn was cancelled: a client owes it.
    pub(super) fn answer(&self, id: &str) -> RpcResult {
        let mut state = lock(&self.state);
        loop {
            if let Some(answer) = state.answers.remove(id) {
                return answer;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The answer, if it comes before the deadline and the turn's end.
    pub(super) fn answer_by(&self, id: &str, deadline: Option<Instant>) -> Option<RpcResult> {
        let mut state = lock(&self.state);
        loop {
            if let Some(answer) = state.answers.remove(id) {
                return Some(answer);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if state.cancelled || left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            // Without a deadline it checks again now and then.
            let left = left.unwrap_or(Duration::from_secs(60));
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// A thread that panicked left nothing half done here.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
