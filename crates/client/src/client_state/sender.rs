//! The sending side of one connection.

use std::sync::Arc;

use grove_wire::jsonrpc::{self, CallError, CallTable, OutgoingCall};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::dialect::{Dialect, method};
use crate::error::NotConnected;

/// The sending side of one connection.
///
/// Its queues are bounded by the tables of open requests and pending actions, and by the number of subscriptions.
#[derive(Clone)]
pub(crate) struct ConnectionSender {
    pub(crate) frames: mpsc::UnboundedSender<String>,
    pub(crate) calls: Arc<CallTable>,
    pub(crate) tracked: mpsc::UnboundedSender<TrackedCall>,
}

/// A request whose response must be handled in order with the actions, before anything that arrived after it.
pub(crate) struct TrackedCall {
    pub(crate) purpose: CallPurpose,
    pub(crate) call: OutgoingCall,
}

#[derive(Debug)]
pub(crate) enum CallPurpose {
    Initialize { resources: Vec<String> },
    Reconnect { resources: Vec<String> },
    Subscribe(String),
    List,
}

impl ConnectionSender {
    /// Sends a request whose response the connection handles.
    pub(crate) fn track(&self, method: &str, params: &impl Serialize, purpose: CallPurpose) -> Result<(), CallError> {
        let mut call = self.calls.begin(method, params)?;
        let frame = std::mem::take(&mut call.frame);
        // The response cannot arrive before the request, so its reader finds this first.
        let queued = self.tracked.send(TrackedCall { purpose, call }).is_ok() && self.frames.send(frame).is_ok();
        if queued { Ok(()) } else { Err(CallError::Closed) }
    }

    pub(crate) fn call(&self, method: &str, params: &impl Serialize) -> Result<OutgoingCall, CallError> {
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
            // A closed connection has no subscriptions.
            Ok(frame) => self.send(frame).unwrap_or_default(),
            Err(error) => tracing::warn!(%error, resource, "cannot encode an unsubscription"),
        }
    }
}
