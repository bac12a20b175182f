//! Keeps a client connected: one connection after the other, with waits between them.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::connection::{self, End, First};
use crate::dialect::Dialect;
use crate::error::ConnectError;
use crate::options::{Backoff, FrameLog};
use crate::shared::Shared;
use crate::status::{Closed, Status};
use crate::transport::{self, Endpoint, OpenError};

pub(crate) struct Driver<D: Dialect> {
    pub(crate) shared: Arc<Shared<D>>,
    pub(crate) endpoint: Endpoint,
    pub(crate) backoff: Backoff,
    pub(crate) log: Option<FrameLog>,
    pub(crate) closing: Closing,
}

/// Says when the client is to end.
#[derive(Clone, Debug)]
pub(crate) struct Closing(pub(crate) watch::Receiver<bool>);

impl Closing {
    /// Waits until somebody has closed the client, or nobody is left who could want anything of it.
    pub(crate) async fn wait(&mut self) {
        self.0.wait_for(|closing| *closing).await.ok();
    }
}

impl<D: Dialect> Driver<D> {
    /// Runs until the client ends or is turned away. `first` hears of the first connection; if there is none, that is
    /// the end.
    pub(crate) async fn run(mut self, first: First) {
        let why = self.keep_connected(first).await;
        tracing::debug!(client = self.shared.client_id, %why, "a client is closed");
        self.shared.close(why);
    }

    async fn keep_connected(&mut self, mut first: First) -> Closed {
        let mut attempt = 0;
        let mut afresh = false;
        loop {
            let began = Instant::now();
            let end = self.connect(afresh, &mut first).await;
            self.shared.detach();
            let last = end.to_string();
            afresh = matches!(end, End::Confused(_));
            let fate = match &end {
                End::ByUs => Some(Closed::ByUs),
                End::TakenOver => Some(Closed::TakenOver),
                End::Refused(_) | End::NotOpened(OpenError::Denied { .. } | OpenError::Certificate(_)) => {
                    Some(Closed::Refused(last.clone()))
                }
                End::NotOpened(_) | End::Confused(_) | End::Lost(_) => None,
            };
            if let Some(first) = first.take() {
                // Whoever wanted to connect may have changed their mind.
                first.send(Err(connect_error(end))).ok();
                return fate.unwrap_or(Closed::GaveUp { attempts: 1, last });
            }
            if let Some(fate) = fate {
                return fate;
            }
            if began.elapsed() >= self.backoff.steady {
                attempt = 0;
            }
            if self.backoff.attempts.is_some_and(|limit| attempt >= limit) {
                return Closed::GaveUp { attempts: attempt, last };
            }
            attempt += 1;
            tracing::debug!(client = self.shared.client_id, attempt, why = last, "a connection is tried again");
            self.shared.status.send_replace(Status::Reconnecting { attempt, why: last });
            tokio::select! {
                () = sleep(self.backoff.wait(attempt, random())) => {}
                () = self.closing.wait() => return Closed::ByUs,
            }
        }
    }

    async fn connect(&mut self, afresh: bool, first: &mut First) -> End {
        let limits = &self.shared.limits;
        let open = timeout(limits.connect, transport::open(&self.endpoint, limits.message_bytes));
        let opened = tokio::select! {
            opened = open => opened,
            () = self.closing.wait() => return End::ByUs,
        };
        match opened {
            Ok(Ok(socket)) => {
                let closing = self.closing.clone();
                connection::serve(&self.shared, socket, self.log.as_ref(), afresh, closing, first).await
            }
            Ok(Err(error)) => End::NotOpened(error),
            Err(_) => End::Lost(format!("no connection came about in {:?}", limits.connect)),
        }
    }
}

fn connect_error(end: End) -> ConnectError {
    match end {
        End::NotOpened(error) => ConnectError::Open(error),
        End::Refused(error) => ConnectError::Refused(error),
        End::Confused(why) => ConnectError::NotUnderstood(why),
        end @ (End::ByUs | End::TakenOver | End::Lost(_)) => ConnectError::Ended(end.to_string()),
    }
}

/// A number that others do not guess and no other client draws. It keeps no secret.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
