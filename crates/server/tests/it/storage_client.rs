//! A storage client in the test's own process that keeps sessions in memory, records its calls, and can fail.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use grove_fs::rpc::{CallError, RemoteCalls, StorageCapabilities, StorageClientConfig};
use grove_fs::{Conventions, MemoryFs, SessionFs, StorageClient};
use serde_json::{Value, json};
use tokio::time::Instant;

/// The fault of a storage client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fault {
    #[default]
    None,
    /// Appends take this long.
    SlowAppends(Duration),
    /// Changes are answered with an error.
    Errors,
    /// Changes are refused as calls.
    Refusals,
    /// Appends are done, and answered with an error.
    DoneButFailed,
    /// The connection breaks at an append, before it is done.
    Lost,
    /// Changes are never answered.
    Hangs,
    /// The call of this number, counted from when it was set, fails in this way; no other does.
    Once(usize, Failure),
}

/// The failure of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    NotDone,
    /// It is done, and the answer is an error.
    Done,
    /// It is done, and the connection breaks before the answer.
    DoneAndLost,
    /// It is done, and never answered.
    DoneAndSilent,
    /// It is neither done nor answered.
    Silent,
}

/// A call that was made.
#[derive(Clone, Debug)]
pub(crate) struct RecordedCall {
    pub(crate) method: String,
    pub(crate) params: Value,
    /// The time of its answer.
    pub(crate) at: Instant,
}

#[derive(Debug)]
pub(crate) struct FaultyStorageClient {
    provider: StorageClient,
    files: Mutex<HashMap<String, MemoryFs>>,
    asked: Mutex<Vec<RecordedCall>>,
    fault: Mutex<Fault>,
    /// The failure of the next append.
    next_append: Mutex<Option<Failure>>,
}

pub(crate) fn config() -> StorageClientConfig {
    StorageClientConfig {
        initial_cwd: "/virtual/project".to_owned(),
        session_state_path: "/state".to_owned(),
        conventions: Conventions::Posix,
        capabilities: StorageCapabilities::default(),
    }
}

impl FaultyStorageClient {
    pub(crate) fn new() -> Arc<Self> {
        let provider = StorageClient::new(Conventions::Posix, config().capabilities);
        Arc::new(Self {
            provider,
            files: Mutex::default(),
            asked: Mutex::default(),
            fault: Mutex::default(),
            next_append: Mutex::default(),
        })
    }

    /// Serves a session from now on, with its earlier files.
    pub(crate) fn open(&self, session: &str) -> MemoryFs {
        let files = self.files.lock().unwrap().entry(session.to_owned()).or_default().clone();
        self.provider.begin(session, Some(Arc::new(files.clone()))).unwrap();
        files
    }

    /// Stops serving a session.
    pub(crate) fn close(&self, session: &str) {
        self.provider.remove(session);
    }

    pub(crate) fn fail(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    pub(crate) fn fail_next_append(&self, failure: Failure) {
        *self.next_append.lock().unwrap() = Some(failure);
    }

    pub(crate) fn asked(&self) -> Vec<RecordedCall> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) async fn log(&self, session: &str) -> String {
        let files = self.files.lock().unwrap().get(session).cloned().unwrap_or_default();
        files.read_text("state/events.jsonl").await.unwrap_or_default()
    }
}

#[async_trait]
impl RemoteCalls for FaultyStorageClient {
    async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        let mut fault = *self.fault.lock().unwrap();
        let mut once = None;
        if let Fault::Once(number, failure) = fault {
            let left = if number == 0 { Fault::None } else { Fault::Once(number - 1, failure) };
            *self.fault.lock().unwrap() = left;
            fault = Fault::None;
            once = Some(failure).filter(|_| number == 0);
        }
        if method == "sessionFs.appendFile" {
            once = once.or(self.next_append.lock().unwrap().take());
        }
        if once == Some(Failure::NotDone) {
            return Err(CallError::Refused { code: -32603, message: "once".to_owned() });
        }
        if once == Some(Failure::Silent) {
            std::future::pending::<()>().await;
        }
        let appends = method == "sessionFs.appendFile";
        let changes = appends || ["sessionFs.writeFile", "sessionFs.rename", "sessionFs.mkdir"].contains(&method);
        let failed = json!({"code": "UNKNOWN", "message": "disk full"});
        match fault {
            Fault::SlowAppends(time) if appends => tokio::time::sleep(time).await,
            Fault::Errors if changes => return Ok(failed),
            Fault::Refusals if changes => {
                return Err(CallError::Refused { code: -32603, message: "not today".to_owned() });
            }
            Fault::Lost if changes => return Err(CallError::Disconnected),
            Fault::Hangs if changes => std::future::pending().await,
            _ => {}
        }
        let answer = self.provider.answer(method, params.clone()).await;
        let asked = RecordedCall { method: method.to_owned(), params, at: Instant::now() };
        self.asked.lock().unwrap().push(asked);
        match once {
            Some(Failure::DoneAndSilent) => std::future::pending().await,
            Some(Failure::DoneAndLost) => Err(CallError::Disconnected),
            Some(_) => Err(CallError::Refused { code: -32603, message: "once".to_owned() }),
            None if fault == Fault::DoneButFailed && appends => Ok(failed),
            None => answer,
        }
    }
}
