//! Delivery: attempts with pauses between them, until a message is delivered, useless, or replaced by a newer one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grove_host::Env;
use grove_metrics::NotificationLabel;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::http::{Post, PostAnswer, PostError, Transport};
use crate::notice::TargetId;

/// The messages that are being delivered at a time; with more, the newest is dropped.
pub const MAX_DELIVERIES: usize = 64;
/// The attempts for a message; then it is dropped.
pub const MAX_ATTEMPTS: u32 = 5;
/// The pause before the second attempt. Each further one is four times as long.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// The longest pause that a service can ask for.
pub const MAX_PAUSE: Duration = Duration::from_secs(15 * 60);

/// The end of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryOutcome {
    Delivered,
    /// The service does not know the device any more.
    Gone,
    /// The reason.
    Failed(String),
    /// A newer message is being delivered in its place.
    Replaced,
}

/// Makes the request of an attempt: its signature and its encryption are new each time.
pub(crate) type MakePost = Box<dyn Fn() -> Result<Post, String> + Send + Sync>;

/// A message for a party.
pub(crate) struct OutgoingMessage {
    pub(crate) target: TargetId,
    /// A message with the same tag replaces this one.
    pub(crate) tag: String,
    pub(crate) make: MakePost,
}

/// Delivers messages.
pub(crate) struct Courier {
    env: Env,
    transport: Arc<dyn Transport>,
    slots: Arc<Semaphore>,
    /// The number of the newest message of each party and tag, while it is being delivered.
    newest: Mutex<HashMap<(TargetId, String), u64>>,
    last: std::sync::atomic::AtomicU64,
}

impl Courier {
    pub(crate) fn new(env: Env, transport: Arc<dyn Transport>) -> Arc<Self> {
        let slots = Arc::new(Semaphore::new(MAX_DELIVERIES));
        Arc::new(Self { env, transport, slots, newest: Mutex::default(), last: 0.into() })
    }

    /// Delivers a message in a task of its own, and calls back when that has ended.
    pub(crate) fn send(
        self: &Arc<Self>,
        message: OutgoingMessage,
        done: impl FnOnce(DeliveryOutcome) + Send + 'static,
    ) {
        let Ok(slot) = self.slots.clone().try_acquire_owned() else {
            tracing::warn!(target = %message.target, "too many notifications wait for delivery: one is dropped");
            self.env.metrics.notifications.of(NotificationLabel::Dropped).increment();
            return;
        };
        let courier = self.clone();
        self.env.spawn.spawn(Box::pin(async move {
            let outcome = courier.deliver(message, slot).await;
            done(outcome);
        }));
    }

    async fn deliver(&self, message: OutgoingMessage, slot: OwnedSemaphorePermit) -> DeliveryOutcome {
        let number = self.last.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let key = (message.target.clone(), message.tag.clone());
        self.newest().insert(key.clone(), number);
        let outcome = self.attempt_until_done(&message, &key, number).await;
        {
            let mut newest = self.newest();
            if newest.get(&key) == Some(&number) {
                newest.remove(&key);
            }
        }
        drop(slot);
        self.count(&message.target, &outcome);
        outcome
    }

    async fn attempt_until_done(
        &self,
        message: &OutgoingMessage,
        key: &(TargetId, String),
        number: u64,
    ) -> DeliveryOutcome {
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=MAX_ATTEMPTS {
            let retry = match self.attempt(&message.make).await {
                AttemptOutcome::Done(outcome) => return outcome,
                AttemptOutcome::Retry { after, reason } if attempt == MAX_ATTEMPTS => {
                    tracing::debug!(target = %message.target, ?after, "the last attempt failed");
                    return DeliveryOutcome::Failed(reason);
                }
                AttemptOutcome::Retry { after, .. } => after.unwrap_or(pause).min(MAX_PAUSE),
            };
            self.env.clock.sleep(retry).await;
            pause *= 4;
            if self.newest().get(key) != Some(&number) {
                return DeliveryOutcome::Replaced;
            }
        }
        DeliveryOutcome::Failed("it was tried too often".to_owned())
    }

    /// Makes one attempt, for a person who waits for it.
    pub(crate) async fn attempt_once(&self, make: &MakePost) -> DeliveryOutcome {
        match self.attempt(make).await {
            AttemptOutcome::Done(outcome) => outcome,
            AttemptOutcome::Retry { reason, .. } => DeliveryOutcome::Failed(reason),
        }
    }

    async fn attempt(&self, make: &MakePost) -> AttemptOutcome {
        let post = match make() {
            Ok(post) => post,
            Err(reason) => return AttemptOutcome::Done(DeliveryOutcome::Failed(reason)),
        };
        match self.transport.post(post).await {
            Ok(answer) => of_answer(&answer),
            // Another attempt would lead to the same machine.
            Err(error @ (PostError::Private { .. } | PostError::Roots(_))) => {
                AttemptOutcome::Done(DeliveryOutcome::Failed(error.to_string()))
            }
            Err(error) => AttemptOutcome::Retry { after: None, reason: error.to_string() },
        }
    }

    fn count(&self, target: &TargetId, outcome: &DeliveryOutcome) {
        let label = match outcome {
            DeliveryOutcome::Delivered => NotificationLabel::Delivered,
            DeliveryOutcome::Gone => NotificationLabel::Gone,
            DeliveryOutcome::Failed(reason) => {
                tracing::warn!(%target, %reason, "a notification was not delivered");
                NotificationLabel::Failed
            }
            DeliveryOutcome::Replaced => NotificationLabel::Replaced,
        };
        self.env.metrics.notifications.of(label).increment();
    }

    // Nothing that can panic leaves it half-changed, so a poisoned lock still guards valid data.
    fn newest(&self) -> MutexGuard<'_, HashMap<(TargetId, String), u64>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum AttemptOutcome {
    Done(DeliveryOutcome),
    Retry { after: Option<Duration>, reason: String },
}

/// The meaning of an answer. A redirect is a refusal: it could lead anywhere.
fn of_answer(answer: &PostAnswer) -> AttemptOutcome {
    match answer.status {
        200..=299 => AttemptOutcome::Done(DeliveryOutcome::Delivered),
        404 | 410 => AttemptOutcome::Done(DeliveryOutcome::Gone),
        408 | 429 | 500..=599 => {
            let reason = format!("the service answered {}", answer.status);
            AttemptOutcome::Retry { after: answer.retry_after, reason }
        }
        status => AttemptOutcome::Done(DeliveryOutcome::Failed(format!("the service answered {status}"))),
    }
}
