//! A connection: reads requests in their order, writes what its queue holds.

mod queue;

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use grove_wire::jsonrpc::{self, ErrorObject, Frame};
use tokio::sync::oneshot;

pub(crate) use queue::{Answer, Close, Encode, Events, Outgoing, Queue};

use crate::dialect::v1;
use crate::host::Host;
use crate::sequencer::{Reply, ToSequencer};

/// How long a client that is told to go may take to hear it.
const CLOSE_GRACE: Duration = Duration::from_secs(5);

/// Serves one WebSocket until either side ends it.
pub(crate) async fn serve(host: Host, socket: WebSocket) {
    let id = host.next_connection();
    let queue = Arc::new(Queue::new(&host.0.config.limits));
    let (sink, stream) = socket.split();
    let peer = v1::Peer::new(host.clone(), id, queue.clone());
    tokio::join!(read(&host, stream, &queue, peer), write(&host, sink, &queue));
    host.0.sequencer.tell(ToSequencer::Detach(id)).await.ok();
}

async fn read(host: &Host, mut stream: SplitStream<WebSocket>, queue: &Arc<Queue>, mut peer: v1::Peer) {
    let silence = host.0.config.limits.connection_silence;
    let mut closed = pin!(queue.closed());
    // One alarm for many messages: it looks whether anything came since it was set, and is set again.
    let mut alarm = host.0.env.clock.sleep(silence);
    let mut heard = true;
    loop {
        let message = tokio::select! {
            biased;
            message = stream.next() => message,
            _ = &mut closed => return,
            () = &mut alarm => {
                if !std::mem::take(&mut heard) {
                    return queue.close(Close::Silent);
                }
                alarm = host.0.env.clock.sleep(silence);
                continue;
            }
        };
        heard = true;
        let text = match message {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Binary(_))) => {
                let error = ErrorObject::new(jsonrpc::code::PARSE, "binary frames are not understood: send text");
                queue.push(Outgoing::Frame(jsonrpc::error(None, &error).into()));
                continue;
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
            Some(Err(error)) if is_too_big(&error) => return queue.close(Close::TooBig),
            Some(Ok(Message::Close(_)) | Err(_)) | None => return queue.close(Close::Gone),
        };
        tokio::select! {
            biased;
            () = handle(&text, queue, &mut peer) => {}
            _ = &mut closed => return,
        }
    }
}

fn is_too_big(error: &axum::Error) -> bool {
    // axum hides the library's own error behind a trait object; its message is what can be asked.
    error.to_string().contains("too long") || error.to_string().contains("too big")
}

/// Handles one frame to its end, so that what comes in one breath takes effect in its order.
async fn handle(text: &str, queue: &Arc<Queue>, peer: &mut v1::Peer) {
    match jsonrpc::parse(text) {
        Err(error) => queue.push(Outgoing::Frame(jsonrpc::error(None, &error).into())),
        Ok(Frame::Single(message)) => {
            let Some(permit) = queue.answer_permit().await else { return };
            let queue = queue.clone();
            let reply: Reply = Box::new(move |encode| queue.push(Outgoing::Answer(Answer { encode, _permit: permit })));
            peer.handle(message, reply).await;
        }
        Ok(Frame::Batch(messages)) => {
            // The answers take their place before anything that the batch causes.
            let (slot, place) = oneshot::channel();
            queue.push(Outgoing::Slot(place));
            let mut answers = Vec::new();
            for message in messages {
                let (sender, answer) = oneshot::channel::<Encode>();
                let reply: Reply = Box::new(move |encode| {
                    // Nobody waits for it once the connection is gone.
                    sender.send(encode).ok();
                });
                peer.handle(message, reply).await;
                // A notification's reply is dropped unused, which ends this wait.
                if let Ok(encode) = answer.await {
                    answers.push(encode());
                }
            }
            let frame = if answers.is_empty() { String::new() } else { jsonrpc::batch(&answers) };
            slot.send(frame).ok();
        }
    }
}

async fn write(host: &Host, mut sink: SplitSink<WebSocket, Message>, queue: &Queue) {
    let ping_after = host.0.config.limits.connection_silence / 3;
    let mut closed = pin!(queue.closed());
    let mut ping = host.0.env.clock.sleep(ping_after);
    let mut items = VecDeque::new();
    let reason = loop {
        let step = async {
            tokio::select! {
                biased;
                () = queue.take(&mut items) => write_all(host, &mut sink, &mut items).await,
                () = &mut ping => {
                    ping = host.0.env.clock.sleep(ping_after);
                    sink.send(Message::Ping(Default::default())).await.map(|()| None)
                }
            }
        };
        tokio::select! {
            biased;
            written = step => match written {
                Ok(None) => {}
                Ok(Some(last)) => break last,
                Err(_) => break Close::Gone,
            },
            reason = &mut closed => break reason,
        }
    };
    // The reader learns of it here, where the writer was the first to know.
    queue.close(reason);
    let farewell = async {
        if let Some((code, reason)) = reason.code() {
            let frame = CloseFrame { code, reason: Utf8Bytes::from_static(reason) };
            sink.send(Message::Close(Some(frame))).await?;
        }
        sink.close().await
    };
    tokio::select! {
        // Either it was heard or there is nobody to hear it.
        _ = farewell => {}
        () = host.0.env.clock.sleep(CLOSE_GRACE) => {}
    }
}

/// Writes what was taken from the queue, with one flush at the end. Gives the reason to close, where that came up.
async fn write_all(
    host: &Host,
    sink: &mut SplitSink<WebSocket, Message>,
    items: &mut VecDeque<Outgoing>,
) -> Result<Option<Close>, axum::Error> {
    for item in items.drain(..) {
        let text: Utf8Bytes = match item {
            Outgoing::Events(events) => {
                for (_, frame) in &events.frames {
                    sink.feed(Message::Text(frame.clone())).await?;
                }
                continue;
            }
            Outgoing::Frame(frame) | Outgoing::Event(_, frame) => frame,
            Outgoing::Merged(merged) => {
                let event = merged.first.merged(merged.text, merged.last_seq);
                match event.frame(merged.dialect, &host.0.config.registry) {
                    Some(frame) => frame,
                    None => continue,
                }
            }
            Outgoing::Answer(answer) => (answer.encode)().into(),
            Outgoing::Slot(place) => match place.await {
                Ok(frame) if !frame.is_empty() => frame.into(),
                // A batch of notifications has no answer.
                Ok(_) | Err(_) => continue,
            },
            Outgoing::Last(reason) => {
                sink.flush().await?;
                return Ok(Some(reason));
            }
        };
        sink.feed(Message::Text(text)).await?;
    }
    sink.flush().await?;
    Ok(None)
}
