//! The open calls of this side: sent and not answered yet.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::frame::{ErrorObject, Id, request};

/// A table of open calls. Dropping or [closing](CallTable::close) it ends them all.
#[derive(Debug)]
pub struct CallTable {
    limit: usize,
    table: Mutex<OpenCalls>,
}

#[derive(Debug, Default)]
struct OpenCalls {
    closed: bool,
    last: u64,
    open: HashMap<u64, oneshot::Sender<Result<Box<RawValue>, ErrorObject>>>,
}

/// The reason why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("the other side refused the call: {} ({})", .0.message, .0.code)]
    Refused(ErrorObject),
    #[error("the connection ended before the answer came")]
    Closed,
    #[error("{0} calls are waiting for an answer already")]
    TooMany(usize),
    #[error("the call cannot be written as JSON: {0}")]
    Encode(#[from] serde_json::Error),
}

/// An open call.
#[derive(Debug)]
pub struct OutgoingCall {
    /// The id, to cancel the call by.
    pub id: u64,
    /// The frame to send.
    pub frame: String,
    answer: oneshot::Receiver<Result<Box<RawValue>, ErrorObject>>,
}

impl OutgoingCall {
    /// Waits for the answer, or for the end of the connection.
    pub async fn answer(self) -> Result<Box<RawValue>, CallError> {
        match self.answer.await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(CallError::Refused(error)),
            Err(_) => Err(CallError::Closed),
        }
    }
}

impl CallTable {
    /// A table for at most `limit` calls at a time.
    pub fn new(limit: usize) -> Self {
        Self { limit, table: Mutex::default() }
    }

    /// Opens a call. Its frame still has to be sent.
    pub fn begin<P: Serialize + ?Sized>(&self, method: &str, params: &P) -> Result<OutgoingCall, CallError> {
        let mut table = self.table();
        if table.closed {
            return Err(CallError::Closed);
        }
        if table.open.len() >= self.limit {
            // Calls whose caller stopped waiting are dropped.
            table.open.retain(|_, waiting| !waiting.is_closed());
        }
        if table.open.len() >= self.limit {
            return Err(CallError::TooMany(self.limit));
        }
        let number = table.last + 1;
        let frame = request(&Id::from(number), method, params)?;
        let (sender, answer) = oneshot::channel();
        table.last = number;
        table.open.insert(number, sender);
        Ok(OutgoingCall { id: number, frame, answer })
    }

    /// Passes an answer to its open call. `false` if there is none.
    pub fn settle(&self, id: &Id, outcome: Result<&RawValue, ErrorObject>) -> bool {
        let Ok(number) = id.as_json().parse() else { return false };
        let Some(waiting) = self.table().open.remove(&number) else { return false };
        waiting.send(outcome.map(ToOwned::to_owned)).is_ok()
    }

    /// Ends all open calls, and every later one at once: the connection is closed.
    pub fn close(&self) {
        let mut table = self.table();
        table.closed = true;
        table.open.clear();
    }

    // Every change of the table is complete before anything can panic, so a poisoned one is still valid.
    fn table(&self) -> MutexGuard<'_, OpenCalls> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn an_answer_reaches_its_own_call_and_no_other() {
        let calls = CallTable::new(8);
        let (first, second) = (calls.begin("a", &()).unwrap(), calls.begin("b", &()).unwrap());
        assert_eq!(second.frame, r#"{"jsonrpc":"2.0","id":2,"method":"b","params":null}"#);
        assert!(calls.settle(&Id::from(2), Ok(RawValue::NULL)));
        assert!(!calls.settle(&Id::from(2), Ok(RawValue::NULL)), "a second answer finds nobody");
        assert!(!calls.settle(&Id::from(9), Ok(RawValue::NULL)));
        assert_eq!(run(second.answer()).unwrap().get(), "null");
        assert!(calls.settle(&Id::from(1), Err(ErrorObject::new(-1, "no"))));
        assert!(matches!(run(first.answer()), Err(CallError::Refused(error)) if error.code == -1));
    }

    #[test]
    fn open_calls_end_with_the_connection() {
        let calls = CallTable::new(8);
        let call = calls.begin("a", &()).unwrap();
        calls.close();
        assert!(matches!(run(call.answer()), Err(CallError::Closed)));
        assert!(matches!(calls.begin("b", &()), Err(CallError::Closed)));
    }

    #[test]
    fn the_number_of_open_calls_is_bounded() {
        let calls = CallTable::new(1);
        let open = calls.begin("a", &()).unwrap();
        assert!(matches!(calls.begin("b", &()), Err(CallError::TooMany(1))));
        drop(open);
        assert!(calls.begin("c", &()).is_ok(), "a call that nobody waits for takes no place");
    }
}
