//! The sessions of all sources, in every dialect.

use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use grove_checks::Check;
use grove_core::ClientId;
use grove_host::sequencer::ReplySink;
use grove_host::session_hub::{SessionHubConnection, SessionHubRefusal, SessionHubRefusalKind};
use grove_host::subscriber::{Encode, Outgoing, Queue, QueuedNotice};
use grove_host::{FolderReach, Host};
use grove_wire::ahp::error_code;
use grove_wire::jsonrpc::{self, ErrorObject, Id, code};
use grove_wire::x_grove::sessions::{BrowseResult, SessionsCall, SessionsMethod, SessionsOutcome};
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, oneshot};

use super::answer::encode;
use crate::principal::Principal;

/// Notices that wait to be written.
///
/// With more, the next ones wait at their source. Too many are dropped there, and the client is told to list again.
pub const WINDOW: usize = 64;

/// One connection's use of the session hub.
pub(super) struct SessionHubClient {
    host: Host,
    queue: Arc<Queue>,
    principal: Arc<Principal>,
    /// Opened by the first call.
    visit: Option<Arc<dyn SessionHubConnection>>,
    /// Dropping it ends the subscription.
    subscribed: Option<oneshot::Sender<()>>,
}

impl SessionHubClient {
    pub(super) fn new(host: Host, queue: Arc<Queue>, principal: Arc<Principal>) -> Self {
        Self { host, queue, principal, visit: None, subscribed: None }
    }

    /// Answers a request. One to a provider may take long, without holding up the client's next messages.
    pub(super) async fn handle(
        &mut self,
        client: &ClientId,
        id: Id,
        method: SessionsMethod,
        params: Option<&RawValue>,
        reply: ReplySink,
    ) {
        let begun = self.begin(client, method, params);
        let (visit, call) = match begun {
            Ok(begun) => begun,
            Err(error) => return reply(Encode::later(move || jsonrpc::error(Some(&id), &error))),
        };
        match call {
            SessionsCall::Subscribe => self.subscribe(visit.as_ref(), &id, reply),
            SessionsCall::Unsubscribe => {
                self.subscribed = None;
                answer(&id, Ok(SessionsOutcome::Done {}), reply);
            }
            // Calls that only select something take effect in order.
            SessionsCall::List(_)
            | SessionsCall::Providers
            | SessionsCall::Types(_)
            | SessionsCall::Open(_)
            | SessionsCall::OpenChat(_)
            | SessionsCall::OpenNewSessionView
            | SessionsCall::Restore
            | SessionsCall::SetActiveProvider(_)
            | SessionsCall::BrowseActions
            | SessionsCall::Waiting
            | SessionsCall::Pin(_)
            | SessionsCall::AnswerTrust(_) => answer(&id, visit.call(call).await, reply),
            SessionsCall::TypesForFolder(_)
            | SessionsCall::Create(_)
            | SessionsCall::SetSessionType(_)
            | SessionsCall::UnsetNewSession
            | SessionsCall::SendAndCreateChat(_)
            | SessionsCall::SendRequest(_)
            | SessionsCall::SetModel(_)
            | SessionsCall::RenameChat(_)
            | SessionsCall::Archive(_)
            | SessionsCall::Unarchive(_)
            | SessionsCall::Delete(_)
            | SessionsCall::DeleteChat(_)
            | SessionsCall::Answer(_)
            | SessionsCall::SetRead(_) => {
                self.host.env().spawn.spawn(Box::pin(async move { answer(&id, visit.call(call).await, reply) }));
            }
            SessionsCall::Browse(_) => {
                let (host, principal) = (self.host.clone(), self.principal.clone());
                self.host.env().spawn.spawn(Box::pin(async move {
                    let outcome = match visit.call(call).await {
                        Ok(SessionsOutcome::Browsed(result)) => {
                            Ok(SessionsOutcome::Browsed(visible(&host, &principal, result).await))
                        }
                        other => other,
                    };
                    answer(&id, outcome, reply);
                }));
            }
        }
    }

    fn begin(
        &mut self,
        client: &ClientId,
        method: SessionsMethod,
        params: Option<&RawValue>,
    ) -> Result<(Arc<dyn SessionHubConnection>, SessionsCall), ErrorObject> {
        let Some(hub) = self.host.session_hub() else {
            return Err(ErrorObject::unknown_method(method.as_str()));
        };
        let call =
            SessionsCall::read(method, params).map_err(|error| ErrorObject::invalid_params(error.to_string()))?;
        let visit = match &self.visit {
            Some(visit) => visit.clone(),
            None => {
                let visit = hub.visit(client).map_err(refused)?;
                self.visit = Some(visit.clone());
                visit
            }
        };
        Ok((visit, call))
    }

    /// Starts the subscription, or restarts it. The answer precedes all notices.
    fn subscribe(&mut self, visit: &dyn SessionHubConnection, id: &Id, reply: ReplySink) {
        let (result, frames) = visit.subscribe();
        answer(id, Ok(SessionsOutcome::Subscribed(Box::new(result))), reply);
        let (stop, stopped) = oneshot::channel();
        self.subscribed = Some(stop);
        self.host.env().spawn.spawn(Box::pin(tell(frames, self.queue.clone(), stopped)));
    }
}

/// The offered folders that a client may see: the hub itself sees as much as the host.
async fn visible(host: &Host, principal: &Principal, mut result: BrowseResult) -> BrowseResult {
    if principal.folder_reach() == FolderReach::Everywhere || !Check::BrowseFolders.is_enforced() {
        return result;
    }
    for offer in std::mem::take(&mut result.offers) {
        if host.is_inside_roots(offer.uri.clone()).await {
            result.offers.push(offer);
        }
    }
    result
}

/// Forwards notices until the subscription or the connection ends.
async fn tell(mut frames: BoxStream<'static, Arc<str>>, queue: Arc<Queue>, mut stopped: oneshot::Receiver<()>) {
    let window = Arc::new(Semaphore::new(WINDOW));
    let mut closed = pin!(queue.closed());
    loop {
        let next = async {
            let permit = window.clone().acquire_owned().await.ok()?;
            Some((frames.next().await?, permit))
        };
        tokio::select! {
            _ = &mut stopped => return,
            _ = &mut closed => return,
            next = next => match next {
                Some((frame, permit)) => queue.push(Outgoing::QueuedNotice(QueuedNotice::new(frame, permit))),
                None => return,
            },
        }
    }
}

fn answer(id: &Id, outcome: Result<SessionsOutcome, SessionHubRefusal>, reply: ReplySink) {
    let answer = match outcome {
        Ok(outcome) => encode(id, &outcome),
        Err(refusal) => jsonrpc::error(Some(id), &refused(refusal)),
    };
    reply(Encode::Text(answer));
}

fn refused(refusal: SessionHubRefusal) -> ErrorObject {
    let SessionHubRefusal { why, words } = refusal;
    let (code, data) = match why {
        SessionHubRefusalKind::NoSession => (error_code::SESSION_NOT_FOUND, None),
        SessionHubRefusalKind::NoProvider => (error_code::PROVIDER_NOT_FOUND, None),
        SessionHubRefusalKind::NotFound => (error_code::NOT_FOUND, None),
        SessionHubRefusalKind::Unfit => (code::INVALID_PARAMS, None),
        // Two strings always serialize.
        SessionHubRefusalKind::TrustNeeded(needed) => {
            (error_code::PERMISSION_DENIED, serde_json::to_value(needed).ok())
        }
        SessionHubRefusalKind::Untrusted => (error_code::PERMISSION_DENIED, None),
        SessionHubRefusalKind::Failed => (code::INTERNAL, None),
    };
    ErrorObject { code, message: words, data }
}

#[cfg(test)]
mod tests {
    use grove_host::{ConnectionUsage, Limits, SystemClock, UsageLimits};

    use std::collections::VecDeque;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_client_that_does_not_read_is_told_no_more_than_a_window() {
        let limits = Limits::default();
        let queue = Arc::new(Queue::new(&limits, ConnectionUsage::unbounded(UsageLimits::from(&limits))));
        let taken = Arc::new(AtomicUsize::new(0));
        let counted = taken.clone();
        let frames = futures_util::stream::repeat_with(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Arc::from("{}")
        });
        let (stop, stopped) = oneshot::channel();
        let telling = tokio::spawn(tell(frames.boxed(), queue.clone(), stopped));
        let settled = || async {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        };
        settled().await;
        assert_eq!(taken.load(Ordering::Relaxed), WINDOW);
        // Written notices make room for as many again.
        let mut written = VecDeque::new();
        queue.take(&mut written, &SystemClock).await.unwrap();
        assert_eq!(written.len(), WINDOW);
        written.clear();
        settled().await;
        assert_eq!(taken.load(Ordering::Relaxed), 2 * WINDOW);
        drop(stop);
        telling.await.unwrap();
    }
}
