//! Keeps a client connected: one connection after the other, with pauses between them.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::client_state::ClientState;
use crate::connection::{self, ConnectReply, ConnectionCallbacks, ConnectionEnd};
use crate::dialect::Dialect;
use crate::error::ConnectError;
use crate::options::{Backoff, FrameLog, RequestHandler};
use crate::status::{ClientClosed, ConnectionStatus};
use crate::transport::{self, Endpoint, TransportError};

pub(crate) struct Driver<D: Dialect> {
    pub(crate) shared: Arc<ClientState<D>>,
    pub(crate) endpoint: Endpoint,
    pub(crate) backoff: Backoff,
    pub(crate) log: Option<FrameLog>,
    pub(crate) requests: Option<RequestHandler>,
    pub(crate) closing: CloseSignal,
}

/// The signal to close the client.
#[derive(Clone, Debug)]
pub(crate) struct CloseSignal(pub(crate) watch::Receiver<bool>);

impl CloseSignal {
    /// Waits until the client is closed, or its last handle is dropped.
    pub(crate) async fn wait(&mut self) {
        self.0.wait_for(|closing| *closing).await.ok();
    }
}

impl<D: Dialect> Driver<D> {
    /// Runs until the client is closed or rejected. `first` gets the result of the first attempt, which must succeed.
    pub(crate) async fn run(mut self, first: ConnectReply) {
        let why = self.keep_connected(first).await;
        tracing::debug!(client = self.shared.client_id, %why, "a client is closed");
        self.shared.close(why);
    }

    async fn keep_connected(&mut self, mut first: ConnectReply) -> ClientClosed {
        let mut attempt = 0;
        let mut from_scratch = false;
        loop {
            let began = Instant::now();
            let end = self.connect(from_scratch, &mut first).await;
            self.shared.detach();
            let last = end.to_string();
            from_scratch = matches!(end, ConnectionEnd::ProtocolError(_));
            let fate = match &end {
                ConnectionEnd::LocalClose => Some(ClientClosed::LocalClose),
                ConnectionEnd::TakenOver => Some(ClientClosed::TakenOver),
                ConnectionEnd::Refused(_)
                | ConnectionEnd::NotOpened(TransportError::Denied { .. } | TransportError::Certificate(_)) => {
                    Some(ClientClosed::Refused(last.clone()))
                }
                ConnectionEnd::NotOpened(_) | ConnectionEnd::ProtocolError(_) | ConnectionEnd::Lost(_) => None,
            };
            if let Some(first) = first.take() {
                // The caller may be gone.
                first.send(Err(connect_error(end))).ok();
                return fate.unwrap_or(ClientClosed::GaveUp { attempts: 1, last });
            }
            if let Some(fate) = fate {
                return fate;
            }
            if began.elapsed() >= self.backoff.steady {
                attempt = 0;
            }
            if self.backoff.attempts.is_some_and(|limit| attempt >= limit) {
                return ClientClosed::GaveUp { attempts: attempt, last };
            }
            attempt += 1;
            tracing::debug!(client = self.shared.client_id, attempt, why = last, "reconnecting");
            self.shared.status.send_replace(ConnectionStatus::Reconnecting { attempt, why: last });
            tokio::select! {
                () = sleep(self.backoff.wait(attempt, random())) => {}
                () = self.closing.wait() => return ClientClosed::LocalClose,
            }
        }
    }

    async fn connect(&mut self, from_scratch: bool, first: &mut ConnectReply) -> ConnectionEnd {
        let limits = &self.shared.limits;
        let open = timeout(limits.connect, transport::open(&self.endpoint, limits.message_bytes));
        let opened = tokio::select! {
            opened = open => opened,
            () = self.closing.wait() => return ConnectionEnd::LocalClose,
        };
        match opened {
            Ok(Ok(socket)) => {
                let closing = self.closing.clone();
                let callbacks = ConnectionCallbacks { log: self.log.as_ref(), requests: self.requests.as_ref() };
                connection::serve(&self.shared, socket, callbacks, from_scratch, closing, first).await
            }
            Ok(Err(error)) => ConnectionEnd::NotOpened(error),
            Err(_) => ConnectionEnd::Lost(format!("no connection within {:?}", limits.connect)),
        }
    }
}

fn connect_error(end: ConnectionEnd) -> ConnectError {
    match end {
        ConnectionEnd::NotOpened(error) => ConnectError::Open(error),
        ConnectionEnd::Refused(error) => ConnectError::Refused(error),
        ConnectionEnd::ProtocolError(why) => ConnectError::NotUnderstood(why),
        end @ (ConnectionEnd::LocalClose | ConnectionEnd::TakenOver | ConnectionEnd::Lost(_)) => {
            ConnectError::Ended(end.to_string())
        }
    }
}

/// A number that no other client is likely to draw. It protects no secret.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
