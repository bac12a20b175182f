//! One connection, as those see it who send on it.

use std::sync::Arc;

use grove_wire::jsonrpc::{self, Call, CallError, Calls};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::dialect::{Dialect, method};
use crate::error::NotConnected;

/// One connection, for those who send on it. What lies in its queues is bounded by the tables of open requests and
/// unanswered actions, and by the number of subscriptions.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) frames: mpsc::UnboundedSender<String>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) tracked: mpsc::UnboundedSender<Tracked>,
}

/// A request whose answer must be dealt with in its place among the actions, before anything that came after it.
pub(crate) struct Tracked {
    pub(crate) purpose: Purpose,
    pub(crate) call: Call,
}

#[derive(Debug)]
pub(crate) enum Purpose {
    Initialize { resources: Vec<String> },
    Reconnect { resources: Vec<String> },
    Subscribe(String),
    List,
}

impl Line {
    /// Sends a request whose answer is the connection's to deal with.
    pub(crate) fn track(&self, method: &str, params: &impl Serialize, purpose: Purpose) -> Result<(), CallError> {
        let mut call = self.calls.begin(method, params)?;
        let frame = std::mem::take(&mut call.frame);
        // The answer cannot come before the question, so whoever reads it finds this first.
        let queued = self.tracked.send(Tracked { purpose, call }).is_ok() && self.frames.send(frame).is_ok();
        if queued { Ok(()) } else { Err(CallError::Closed) }
    }

    pub(crate) fn call(&self, method: &str, params: &impl Serialize) -> Result<Call, CallError> {
        let mut call = self.calls.begin(method, params)?;
        let frame = std::mem::take(&mut call.frame);
        self.frames.send(frame).map_err(|_| CallError::Closed)?;
        Ok(call)
    }

    pub(crate) fn send(&self, frame: String) -> Result<(), NotConnected> {
        self.frames.send(frame).map_err(|_| NotConnected)
    }

    pub(super) fn unsubscribe<D: Dialect>(&self, dialect: &D, resource: &str) {
        match jsonrpc::notification(method::UNSUBSCRIBE, &dialect.unsubscribe(resource)) {
            // A line that is closed has no subscriptions.
            Ok(frame) => self.send(frame).unwrap_or_default(),
            Err(error) => tracing::warn!(%error, resource, "an unsubscription cannot be written"),
        }
    }
}
