//! Connections of clients in the host's own process: messages go through channels.
//!
//! Such a client needs no token, takes no connection slot and does not keep an idle host from exiting. Otherwise its
//! connection is like any other: in order, with a bounded queue, and its frames are logged.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;

use grove_host::sequencer::HostStopped;
use grove_host::subscriber::{DisconnectReason, Outgoing, Queue};
use grove_host::{Host, WeakHost};
use tokio::sync::mpsc;

use super::frame_log::{FrameDirection, FrameLog, FrameTap};
use super::{MAX_QUEUED_MESSAGES, Texts, handle};
use crate::dialect::ConnectionPeer;
use crate::principal::Principal;

/// The messages that a client may not have received yet. Further ones wait in its queue.
pub const UNRECEIVED: usize = 64;

/// Connects clients in the host's own process. It does not keep the host alive.
#[derive(Clone, Debug)]
pub struct InProcessHost {
    host: WeakHost,
    frame_log: Option<FrameLog>,
}

/// A client's connection to the host of its process. Dropping it ends it.
#[derive(Debug)]
pub struct InProcessConnection {
    /// The client's messages, each a frame of JSON-RPC.
    pub to_host: mpsc::Sender<String>,
    pub from_host: mpsc::Receiver<InProcessMessage>,
}

/// A message of the host to a client in its process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InProcessMessage {
    /// A frame of JSON-RPC.
    Frame(Arc<str>),
    /// The last message: the close code and reason that a WebSocket would have.
    Closed { code: u16, reason: &'static str },
}

impl InProcessHost {
    /// A handle for clients in the process of this host.
    pub fn new(host: &Host) -> Self {
        Self { host: host.downgrade(), frame_log: None }
    }

    /// Records the frames of the connections that open from now on.
    pub fn with_frame_log(self, log: FrameLog) -> Self {
        Self { frame_log: Some(log), ..self }
    }

    /// Opens a connection with all rights, which a task of the host's own serves.
    pub fn connect(&self) -> Result<InProcessConnection, HostStopped> {
        self.connect_as(Principal::in_process())
    }

    /// Opens a connection with the rights of a principal.
    pub fn connect_as(&self, principal: Principal) -> Result<InProcessConnection, HostStopped> {
        let host = self.host.upgrade().ok_or(HostStopped)?;
        let (to_host, messages) = mpsc::channel(MAX_QUEUED_MESSAGES);
        let (output, from_host) = mpsc::channel(UNRECEIVED);
        let spawn = host.env().spawn.clone();
        spawn.spawn(Box::pin(serve(host, Arc::new(principal), self.frame_log.clone(), messages, output)));
        Ok(InProcessConnection { to_host, from_host })
    }
}

/// Serves a connection until either side ends it.
async fn serve(
    host: Host,
    principal: Arc<Principal>,
    frame_log: Option<FrameLog>,
    messages: mpsc::Receiver<String>,
    output: mpsc::Sender<InProcessMessage>,
) {
    let id = host.next_connection();
    let queue = Arc::new(Queue::new(&host.config().limits, principal.usage(&host)));
    let mut peer = ConnectionPeer::new(host.clone(), id, queue.clone(), principal);
    let tap = frame_log.map(|log| log.tap(id, host.env().clock.clone()));
    let tap = tap.as_ref();
    let handling = async {
        handle_all(&host, messages, &queue, &mut peer, tap).await;
        // The client has dropped its end.
        queue.close(DisconnectReason::Gone);
    };
    let sending = async {
        let reason = send_all(&host, &queue, &output, tap).await;
        queue.close(reason);
        if let Some((code, reason)) = reason.code() {
            // A client that receives nothing does not learn the reason.
            output.try_send(InProcessMessage::Closed { code, reason }).ok();
        }
    };
    tokio::join!(handling, sending);
    host.sequencer().detach(id).await.ok();
    peer.ended();
}

/// Handles a client's messages one after another, until either side ends the connection.
async fn handle_all(
    host: &Host,
    mut messages: mpsc::Receiver<String>,
    queue: &Arc<Queue>,
    peer: &mut ConnectionPeer,
    tap: Option<&FrameTap>,
) {
    let mut closed = pin!(queue.closed());
    loop {
        let step = async {
            let Some(text) = messages.recv().await else { return false };
            if let Some(tap) = tap {
                tap.record(FrameDirection::FromClient, &text);
            }
            handle(host, &text, queue, peer).await;
            true
        };
        tokio::select! {
            biased;
            more = step => if !more { return },
            _ = &mut closed => return,
        }
    }
}

/// Sends a client's queued output. Returns the reason to close.
async fn send_all(
    host: &Host,
    queue: &Queue,
    output: &mpsc::Sender<InProcessMessage>,
    tap: Option<&FrameTap>,
) -> DisconnectReason {
    let clock = host.env().clock.as_ref();
    let mut closed = pin!(queue.closed());
    let mut items = VecDeque::new();
    loop {
        let step = async {
            queue.take(&mut items, clock).await?;
            while let Some(item) = items.pop_front() {
                send(item, host, output, tap).await?;
            }
            Ok(())
        };
        tokio::select! {
            biased;
            sent = step => if let Err(reason) = sent { return reason },
            reason = &mut closed => return reason,
        }
    }
}

/// Sends the frames of one item.
async fn send(
    item: Outgoing,
    host: &Host,
    output: &mpsc::Sender<InProcessMessage>,
    tap: Option<&FrameTap>,
) -> Result<(), DisconnectReason> {
    let frame = async |text: Arc<str>| {
        if let Some(tap) = tap {
            tap.record(FrameDirection::ToClient, &text);
        }
        output.send(InProcessMessage::Frame(text)).await.map_err(|_| DisconnectReason::Gone)
    };
    match Texts::of(item, host).await {
        Texts::None => Ok(()),
        Texts::One(text) => frame(text).await,
        Texts::QueuedAnswer(text, permit) => {
            let sent = frame(text.into()).await;
            drop(permit);
            sent
        }
        Texts::EventFrames(events) => {
            for (_, text) in &events.frames {
                frame(text.clone()).await?;
            }
            Ok(())
        }
        Texts::Last(reason) => Err(reason),
    }
}
