//! The editor's side of the connection: messages to it, and requests that it answers.

use std::sync::Arc;

use agent_client_protocol_schema::v1 as acp;
use grove_wire::jsonrpc::{self, CallError, CallTable, ErrorObject, Id};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// The messages that wait for an editor that reads slowly; then their senders wait.
pub const QUEUE: usize = 64;
/// The requests to the editor that wait for an answer; a further one fails.
pub const OPEN_CALLS: usize = 64;

/// The editor. Clones send to the same one.
#[derive(Clone, Debug)]
pub(crate) struct Editor {
    frames: mpsc::Sender<String>,
    calls: Arc<CallTable>,
}

/// The editor is gone: nothing can be sent to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EditorGone;

/// Writes the messages to the editor.
#[derive(Debug)]
pub(crate) struct EditorWriter {
    frames: mpsc::Receiver<String>,
}

impl Editor {
    pub(crate) fn new() -> (Self, EditorWriter) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        (Self { frames: sender, calls: Arc::new(CallTable::new(OPEN_CALLS)) }, EditorWriter { frames: receiver })
    }

    async fn send(&self, frame: String) -> Result<(), EditorGone> {
        self.frames.send(frame).await.map_err(|_| EditorGone)
    }

    /// Answers a request of the editor.
    pub(crate) async fn respond(&self, id: &Id, outcome: Result<&RawValue, &ErrorObject>) -> Result<(), EditorGone> {
        self.send(match outcome {
            Ok(result) => jsonrpc::response_raw(id, result.get()),
            Err(error) => jsonrpc::error(Some(id), error),
        })
        .await
    }

    /// Refuses a message that could not be read.
    pub(crate) async fn refuse(&self, id: Option<&Id>, error: &ErrorObject) -> Result<(), EditorGone> {
        self.send(jsonrpc::error(id, error)).await
    }

    /// Sends an update of a session.
    pub(crate) async fn update(&self, session: &str, update: acp::SessionUpdate) -> Result<(), EditorGone> {
        let notification = acp::SessionNotification::new(acp::SessionId::new(session), update);
        match jsonrpc::notification(acp::CLIENT_METHOD_NAMES.session_update, &notification) {
            Ok(frame) => self.send(frame).await,
            Err(error) => {
                tracing::warn!(%error, "an update cannot be written as JSON, and is left out");
                Ok(())
            }
        }
    }

    /// Sends a request, and waits for the answer. If the caller stops waiting, the request is cancelled.
    pub(crate) async fn ask(&self, method: &str, params: &(impl Serialize + Sync)) -> Result<Box<RawValue>, CallError> {
        let call = self.calls.begin(method, params)?;
        let cancel = CancelOnDrop { request: call.id, editor: Some(self.clone()) };
        let frame = call.frame.clone();
        self.send(frame).await.map_err(|EditorGone| CallError::Closed)?;
        let answer = call.answer().await;
        cancel.settled();
        answer
    }

    /// Passes on the editor's answer.
    pub(crate) fn settle(&self, id: &Id, outcome: Result<&RawValue, ErrorObject>) {
        if !self.calls.settle(id, outcome) {
            tracing::debug!(id = id.as_json(), "the editor answered a request that is not open");
        }
    }

    /// Ends all requests to the editor.
    pub(crate) fn close(&self) {
        self.calls.close();
    }
}

/// Tells the editor that the answer to a request is no longer needed.
struct CancelOnDrop {
    request: u64,
    editor: Option<Editor>,
}

impl CancelOnDrop {
    fn settled(mut self) {
        self.editor = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some(editor) = self.editor.take() else { return };
        let request = i64::try_from(self.request).unwrap_or(i64::MAX);
        let cancelled = acp::CancelRequestNotification::new(acp::RequestId::Number(request));
        let method = acp::PROTOCOL_LEVEL_METHOD_NAMES.cancel_request;
        if let Ok(frame) = jsonrpc::notification(method, &cancelled) {
            // A full queue must not hold the caller: the editor's late answer is ignored anyway.
            editor.frames.try_send(frame).ok();
        }
    }
}

impl EditorWriter {
    /// Passes messages on until all senders are gone, or the receiver is.
    pub(crate) async fn pass_on(mut self, output: mpsc::Sender<String>) -> std::io::Result<()> {
        while let Some(frame) = self.frames.recv().await {
            if output.send(frame).await.is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Writes lines until all senders are gone, or the editor no longer reads.
    pub(crate) async fn write_lines(mut self, mut output: impl AsyncWrite + Unpin) -> std::io::Result<()> {
        while let Some(frame) = self.frames.recv().await {
            let mut lines = frame;
            lines.push('\n');
            while let Ok(next) = self.frames.try_recv() {
                lines.push_str(&next);
                lines.push('\n');
            }
            output.write_all(lines.as_bytes()).await?;
            output.flush().await?;
        }
        Ok(())
    }
}
