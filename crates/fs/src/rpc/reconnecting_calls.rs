//! A storage client's calls, over its current connection.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::watch;

use super::{CallError, RemoteCalls};

/// Calls over the current connection. Without one they fail at once, and so do pending calls when a connection is lost:
/// whether those were done is unknown, and nothing is sent again automatically.
#[derive(Debug)]
pub struct ReconnectingCalls {
    line: watch::Sender<Option<Arc<dyn RemoteCalls>>>,
}

impl Default for ReconnectingCalls {
    fn default() -> Self {
        Self { line: watch::Sender::new(None) }
    }
}

impl ReconnectingCalls {
    /// Sends calls over this connection from now on. Calls pending on another connection fail.
    pub fn connect(&self, calls: Arc<dyn RemoteCalls>) {
        self.line.send_replace(Some(calls));
    }

    /// Notes that the connection is lost.
    pub fn disconnect(&self) {
        self.line.send_replace(None);
    }

    pub fn is_connected(&self) -> bool {
        self.line.borrow().is_some()
    }
}

#[async_trait]
impl RemoteCalls for ReconnectingCalls {
    async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        let mut line = self.line.subscribe();
        let calls = line.borrow_and_update().clone();
        let Some(calls) = calls else { return Err(CallError::Disconnected) };
        tokio::select! {
            // An answer that has arrived counts.
            biased;
            answer = calls.call(method, params) => answer,
            _ = line.changed() => Err(CallError::Disconnected),
        }
    }
}
