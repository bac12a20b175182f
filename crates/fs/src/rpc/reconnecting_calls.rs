//! A provider's calls, over whichever connection it has at the moment.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::watch;

use super::{CallError, RemoteCalls};

/// Calls that go to the connection of the moment. While there is none they fail at once, and so does what waits for an
/// answer when a connection goes: whether that was done is not known, and nothing is sent again by itself.
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
    /// Sends calls there from now on. What was asked over another connection has no answer any more.
    pub fn connect(&self, calls: Arc<dyn RemoteCalls>) {
        self.line.send_replace(Some(calls));
    }

    /// The connection is gone.
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
            // An answer that is there counts.
            biased;
            answer = calls.call(method, params) => answer,
            _ = line.changed() => Err(CallError::Disconnected),
        }
    }
}
