//! Batches: several messages in one frame, answered by one frame.
//!
//! Requests take effect in order. A slow request holds up neither the client's next messages nor streamed events. Only
//! an answer with a snapshot has a fixed position, before the events that follow it: a batch with such a request and a
//! slow one is answered by two frames. The answers of the other requests are in the snapshot's frame, so that frame
//! also precedes the events that the requests before the snapshot cause.

use std::sync::Arc;

use grove_host::Spawn;
use grove_host::sequencer::ReplySink;
use grove_host::subscriber::{Encode, Outgoing, Queue, QueuedAnswer};
use grove_wire::jsonrpc::{self, ErrorObject, Id, InvalidMessage, RpcMessage};
use grove_wire::x_grove;
use tokio::sync::oneshot;

use crate::dialect::ConnectionPeer;

/// The expected size of an answer, before it is known.
pub(super) const ANSWER_BYTES: usize = 1 << 20;
/// The expected size of all answers of a batch, at most.
pub const BATCH_BYTES: usize = 16 << 20;
/// The size of an answer that is never too large.
const SMALL: usize = 4 << 10;
/// Requests whose answers have a fixed position among the events.
const PLACED: [&str; 4] = ["initialize", "reconnect", "subscribe", "createResourceWatch"];

/// The time at which a message is answered.
enum AnswerTiming {
    /// At its position among the events.
    Placed,
    /// Concurrently with everything else: it may take long.
    Slow(Id),
    Other,
}

impl AnswerTiming {
    fn of(message: &Result<RpcMessage<'_>, InvalidMessage>) -> Self {
        match message {
            Ok(RpcMessage::Request(request)) if PLACED.contains(&&*request.method) => AnswerTiming::Placed,
            Ok(RpcMessage::Request(request)) if x_grove::Method::named(&request.method).is_some() => {
                AnswerTiming::Slow(request.id.clone())
            }
            Ok(_) | Err(_) => AnswerTiming::Other,
        }
    }
}

/// The answers of a batch, bounded together.
struct BatchAnswers {
    texts: Vec<String>,
    bytes: usize,
    limit: usize,
    /// An answer did not fit. No later request is carried out.
    is_full: bool,
}

impl BatchAnswers {
    fn new(limit: usize) -> Self {
        Self { texts: Vec::new(), bytes: 0, limit, is_full: false }
    }

    /// Adds an answer. A small one always fits: an applied change is never answered with an error.
    fn push(&mut self, id: Option<&Id>, text: String) {
        let fits = self.texts.is_empty() || self.bytes.saturating_add(text.len()) <= self.limit;
        if fits || text.len() <= SMALL {
            self.bytes += text.len();
            self.texts.push(text);
        } else {
            self.is_full = true;
            self.refuse(id);
        }
    }

    fn refuse(&mut self, id: Option<&Id>) {
        let words =
            format!("the answers of a batch may have at most {} bytes: send this request by itself", self.limit);
        self.texts.push(jsonrpc::error(id, &ErrorObject::invalid_request(words)));
    }

    /// The frame, if there is anything to answer.
    fn frame(self) -> Option<String> {
        (!self.texts.is_empty()).then(|| jsonrpc::batch(&self.texts))
    }
}

/// Handles a batch. A task of its own waits for its slow requests.
pub(super) async fn handle(
    messages: Vec<Result<RpcMessage<'_>, InvalidMessage>>,
    queue: &Arc<Queue>,
    peer: &mut ConnectionPeer,
    spawn: &dyn Spawn,
) {
    let limit = queue.answer_bytes();
    // Both frames of a batch must fit together.
    let most = BATCH_BYTES.min(limit / 4);
    let expected = ANSWER_BYTES.saturating_mul(messages.len()).min(most);
    let Some(permit) = queue.answer_permit(expected).await else { return };
    let mut answers = BatchAnswers::new(limit);
    let has_place = messages.iter().any(|message| matches!(AnswerTiming::of(message), AnswerTiming::Placed));
    let mut place = None;
    let mut slow = Vec::new();
    for message in messages {
        let kind = AnswerTiming::of(&message);
        let id = match &message {
            Ok(RpcMessage::Request(request)) => Some(request.id.clone()),
            Ok(RpcMessage::Notification { .. } | RpcMessage::Response { .. }) | Err(_) => None,
        };
        if answers.is_full && id.is_some() {
            answers.refuse(id.as_ref());
            continue;
        }
        let is_answered_there = id.is_some() && !matches!(kind, AnswerTiming::Slow(_));
        if has_place && is_answered_there && place.is_none() {
            let permit = queue.further_permit(ANSWER_BYTES.min(most)).await;
            let (sender, receiver) = oneshot::channel();
            queue.push(Outgoing::Slot(receiver));
            place = Some((sender, permit));
        }
        let (sender, answer) = oneshot::channel::<Encode>();
        let reply: ReplySink = Box::new(move |encode| {
            // The receiver is gone if the connection is.
            sender.send(encode).ok();
        });
        peer.handle(message, reply).await;
        match kind {
            AnswerTiming::Slow(id) => slow.push((id, answer)),
            // A notification's reply is dropped unused, which ends this wait.
            AnswerTiming::Placed | AnswerTiming::Other => {
                if let Ok(encode) = answer.await {
                    answers.push(id.as_ref(), encode.into_text());
                }
            }
        }
    }
    if let Some((place, permit)) = place {
        let placed = std::mem::replace(&mut answers, BatchAnswers::new(limit));
        if let Some(frame) = placed.frame() {
            place.send(QueuedAnswer::new(Encode::Text(frame), permit)).ok();
        }
    }
    let queue = queue.clone();
    let answering = async move {
        for (id, answer) in slow {
            if let Ok(encode) = answer.await {
                answers.push(Some(&id), encode.into_text());
            }
        }
        if let Some(frame) = answers.frame() {
            queue.push(Outgoing::QueuedAnswer(QueuedAnswer::new(Encode::Text(frame), permit)));
        }
    };
    spawn.spawn(Box::pin(answering));
}
