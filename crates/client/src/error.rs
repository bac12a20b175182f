//! Errors, with advice in their messages.

use grove_wire::jsonrpc::{CallError, ErrorObject};

use crate::dialect::Unsupported;
use crate::transport::TransportError;

/// There is no connection at the moment. Nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the host is not connected at the moment: try again when it is")]
pub struct NotConnected;

/// An error of connecting.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(transparent)]
    Open(#[from] TransportError),
    #[error("the host rejected this client: {0}")]
    Refused(ErrorObject),
    #[error("the host sent an invalid message: {0}")]
    NotUnderstood(String),
    #[error("the connection ended before it was established: {0}")]
    Ended(String),
}

/// An error of a request.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    #[error(transparent)]
    NotConnected(#[from] NotConnected),
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    #[error("the host refused {method}: {error}")]
    Refused { method: String, error: Box<ErrorObject> },
    #[error("{method} was not answered in time: it may have been done anyway")]
    TimedOut { method: String },
    #[error("the connection ended before {method} was answered: it may have been done anyway")]
    Lost { method: String },
    #[error("{0} requests wait for an answer already: wait for some of them")]
    TooMany(usize),
    #[error("{method} cannot be written as JSON: {error}")]
    Encode { method: String, error: serde_json::Error },
    #[error("the host's answer to {method} does not end: it has more than {pages} pages")]
    Endless { method: String, pages: usize },
    #[error("the answer to {method} is invalid: {error}")]
    NotUnderstood { method: String, error: serde_json::Error },
}

impl RequestError {
    pub(crate) fn new(method: &str, error: CallError) -> Self {
        let method = method.to_owned();
        match error {
            CallError::Refused(error) => RequestError::Refused { method, error: Box::new(error) },
            CallError::Closed => RequestError::Lost { method },
            CallError::TooMany(limit) => RequestError::TooMany(limit),
            CallError::Encode(error) => RequestError::Encode { method, error },
        }
    }
}

/// An error of dispatching an action. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum DispatchError {
    #[error(transparent)]
    NotConnected(#[from] NotConnected),
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    #[error("the host has removed {0}: subscribe again, in case it was created again")]
    Gone(String),
    #[error("{0} actions wait for an answer already: wait for some of them")]
    TooMany(usize),
    #[error("the action cannot be written as JSON: {0}")]
    Encode(#[from] serde_json::Error),
}
