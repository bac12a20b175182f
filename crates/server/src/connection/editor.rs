//! WebSockets of editors, which speak the Agent Client Protocol.
//!
//! The program that embeds this crate passes the service that speaks the protocol. The editor's messages go to it as
//! they come. It reaches the host with connections of its own, in process, that have the rights of the editor's token.

use std::convert::Infallible;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use grove_host::Host;
use grove_host::sequencer::HostStopped;
use grove_host::subscriber::{DisconnectReason, Encode, Outgoing, Queue, QueuedAnswer};
use tokio::sync::mpsc;
use tracing::Span;

use super::frame_log::FrameLog;
use super::in_process::{InProcessConnection, InProcessHost};
use super::{Connection, Inbox, UpgradedStream};
use crate::principal::Principal;

/// The messages between a WebSocket and its service that may wait, each way; then the other side waits.
pub const EDITOR_MESSAGES: usize = 4;

/// Serves editors on WebSockets of the host.
pub trait EditorService: Send + Sync {
    /// Serves one editor until its connection ends.
    fn serve(&self, editor: EditorConnection) -> BoxFuture<'static, ()>;
}

/// The connection of an editor. The WebSocket ends when `to_editor` is dropped.
#[derive(Debug)]
pub struct EditorConnection {
    /// The editor's messages, each a text frame.
    pub from_editor: mpsc::Receiver<String>,
    pub to_editor: mpsc::Sender<String>,
    pub host: EditorHost,
    /// The agent that the editor wants for new sessions.
    pub agent: Option<String>,
    /// The editor and the host have the same files.
    pub shares_files: bool,
}

/// The requests in the address of an editor.
#[derive(Debug, Default)]
pub(crate) struct EditorRequest {
    pub(crate) agent: Option<String>,
    pub(crate) shares_files: bool,
}

/// Connects an editor to the host of its WebSocket, with the rights of its token. It does not keep the host alive.
#[derive(Clone, Debug)]
pub struct EditorHost {
    host: InProcessHost,
    principal: Arc<Principal>,
}

impl EditorHost {
    /// Opens a connection, whose messages are those of any client.
    pub fn connect(&self) -> Result<InProcessConnection, HostStopped> {
        self.host.connect_as(Principal::clone(&self.principal))
    }
}

/// Serves one upgraded WebSocket of an editor until either side ends it.
pub(crate) async fn serve_editor(
    host: Host,
    frame_log: Option<FrameLog>,
    upgraded: UpgradedStream,
    principal: Arc<Principal>,
    service: Arc<dyn EditorService>,
    request: EditorRequest,
) {
    let id = host.next_connection();
    Span::current().record("id", id.0);
    Span::current().record("dialect", "acp");
    let queue = Arc::new(Queue::new(&host.config().limits, principal.usage(&host)));
    let inbox = Inbox::default();
    let tap = frame_log.as_ref().map(|log| log.tap(id, host.env().clock.clone()));
    let mut connection = Box::pin(Connection::open(&host, tap, upgraded, queue.clone())).await;
    let (to_service, from_editor) = mpsc::channel(EDITOR_MESSAGES);
    let (to_editor, from_service) = mpsc::channel(EDITOR_MESSAGES);
    let in_process = InProcessHost::new(&host);
    let in_process = match frame_log {
        Some(log) => in_process.with_frame_log(log),
        None => in_process,
    };
    let editor_host = EditorHost { host: in_process, principal: principal.clone() };
    let EditorRequest { agent, shares_files } = request;
    let editor = EditorConnection { from_editor, to_editor, host: editor_host, agent, shares_files };
    host.env().spawn.spawn(service.serve(editor));
    let handling = std::pin::pin!(pass_on(&inbox, &queue, to_service, from_service));
    connection.serve(id, &principal, &inbox, handling).await;
}

/// Passes messages on in both directions, for ever.
async fn pass_on(
    inbox: &Inbox,
    queue: &Queue,
    to_service: mpsc::Sender<String>,
    mut from_service: mpsc::Receiver<String>,
) -> Infallible {
    let receiving = async {
        loop {
            let text = inbox.next().await;
            // A service that has ended also ends the connection, below.
            to_service.send(text.to_string()).await.ok();
        }
    };
    let sending = async {
        while let Some(frame) = from_service.recv().await {
            // The service waits for an editor that reads slowly.
            let Some(permit) = queue.answer_permit(frame.len()).await else { break };
            queue.push(Outgoing::QueuedAnswer(QueuedAnswer::new(Encode::Text(frame), permit)));
        }
        queue.close(DisconnectReason::Gone);
    };
    let (never, ()): (Infallible, ()) = tokio::join!(receiving, sending);
    never
}
