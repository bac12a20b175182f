//! The editor's messages: reads them, and hands each request to its method.

use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Poll;
use std::time::Duration;

use grove_wire::jsonrpc::{self, ErrorObject, Frame, Id, MESSAGE_BYTES, RpcMessage};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::capabilities::EditorCapabilities;
use crate::editor::{Editor, EditorGone};
use crate::host::{HostAccess, HostConnection};
use crate::lines::{BoundedLines, EditorInput, InputLine, id_in_head};
use crate::session::EditorSession;
use crate::sessions::SessionTable;

/// The requests that are carried out at the same time; a further one is refused.
pub const OPEN_REQUESTS: usize = 128;
/// How long the editor may take to read the last messages.
const FAREWELL: Duration = Duration::from_secs(2);

/// The choice of the agent behind new sessions.
#[derive(Clone, Debug, Default)]
pub struct AgentChoice {
    /// The agent; by default the host's default agent. The editor may choose another one.
    pub agent: Option<String>,
}

/// The server of one editor.
pub(crate) struct AcpServer {
    pub(crate) access: Arc<dyn HostAccess>,
    pub(crate) choice: AgentChoice,
    pub(crate) editor: Editor,
    pub(crate) sessions: Arc<SessionTable>,
    link: OnceLock<EditorLink>,
    /// The session and the turn of each open prompt, by the id of its request.
    prompts: Mutex<HashMap<String, (Arc<EditorSession>, String)>>,
}

/// The connection to the host and the editor's capabilities, since `initialize`.
pub(crate) struct EditorLink {
    pub(crate) host: HostConnection,
    pub(crate) editor: EditorCapabilities,
}

/// Serves an editor on a pair of streams, with one message per line, until it closes its side.
///
/// The host is connected when the editor sends `initialize`. Turns go on in the host when the editor is gone.
pub async fn serve(
    access: Arc<dyn HostAccess>,
    choice: AgentChoice,
    input: impl AsyncRead + Unpin + Send,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> io::Result<()> {
    let (editor, writer) = Editor::new();
    let input = BoundedLines::new(BufReader::new(input), MESSAGE_BYTES);
    run(AcpServer::new(access, choice, editor), input, writer.write_lines(output)).await
}

/// Serves an editor whose messages are separate already, until `from_editor` ends.
pub async fn serve_messages(
    access: Arc<dyn HostAccess>,
    choice: AgentChoice,
    from_editor: mpsc::Receiver<String>,
    to_editor: mpsc::Sender<String>,
) -> io::Result<()> {
    let (editor, writer) = Editor::new();
    run(AcpServer::new(access, choice, editor), from_editor, writer.pass_on(to_editor)).await
}

async fn run(
    server: AcpServer,
    mut input: impl EditorInput,
    writer: impl Future<Output = io::Result<()>> + Send + 'static,
) -> io::Result<()> {
    let server = Arc::new(server);
    let mut writing = tokio::spawn(writer);
    let mut requests = JoinSet::new();
    let ended = loop {
        tokio::select! {
            line = input.next() => match line {
                Ok(Some(line)) => if server.receive(line, &mut requests).await.is_err() { break Ok(()) },
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            },
            Some(_) = requests.join_next() => {}
            written = &mut writing => return written.unwrap_or(Ok(())),
        }
    };
    server.editor.close();
    server.sessions.close_all();
    requests.shutdown().await;
    drop(server);
    // The writer ends with the last sender.
    tokio::time::timeout(FAREWELL, writing).await.ok();
    ended
}

impl AcpServer {
    fn new(access: Arc<dyn HostAccess>, choice: AgentChoice, editor: Editor) -> Self {
        Self { access, choice, editor, sessions: Arc::default(), link: OnceLock::new(), prompts: Mutex::default() }
    }

    /// The connection to the host, once the editor has sent `initialize`.
    pub(crate) fn link(&self) -> Result<&EditorLink, ErrorObject> {
        self.link.get().ok_or_else(|| ErrorObject::invalid_request("send `initialize` first"))
    }

    /// Notes the result of `initialize`. A repeated one changes nothing.
    pub(crate) fn set_link(&self, link: EditorLink) {
        self.link.set(link).ok();
    }

    async fn receive(self: &Arc<Self>, line: InputLine, requests: &mut JoinSet<()>) -> Result<(), EditorGone> {
        let text = match line {
            InputLine::Text(text) => text,
            InputLine::TooLong { head } => {
                let message = format!("a message may have {MESSAGE_BYTES} bytes: send less at once");
                return self.editor.refuse(id_in_head(&head).as_ref(), &ErrorObject::invalid_request(message)).await;
            }
            InputLine::NotUtf8 => {
                return self.editor.refuse(None, &ErrorObject::invalid_request("a message must be UTF-8")).await;
            }
        };
        let message = match jsonrpc::parse(&text) {
            Ok(Frame::Single(Ok(message))) => message,
            Ok(Frame::Single(Err(invalid))) => return self.editor.refuse(invalid.id.as_ref(), &invalid.error).await,
            Ok(Frame::Batch(_)) => {
                let error = ErrorObject::invalid_request("batches are not supported: send one message per line");
                return self.editor.refuse(None, &error).await;
            }
            Err(error) => return self.editor.refuse(None, &error).await,
        };
        match message {
            RpcMessage::Notification { method, params } => self.notified(&method, params),
            RpcMessage::Response { id, outcome } => self.editor.settle(&id, outcome),
            RpcMessage::Request(request) => {
                if requests.len() >= OPEN_REQUESTS {
                    let message = format!("{OPEN_REQUESTS} requests are open: wait for an answer");
                    let error = ErrorObject::invalid_request(message);
                    return self.editor.respond(&request.id, Err(&error)).await;
                }
                let (id, method) = (request.id, request.method.into_owned());
                let params = request.params.map(ToOwned::to_owned);
                // Begun here, so that a cancellation behind a prompt finds it.
                let mut answering = Box::pin(self.clone().answer(id, method, params));
                let is_answered = poll_fn(|context| Poll::Ready(answering.as_mut().poll(context).is_ready())).await;
                if !is_answered {
                    requests.spawn(answering);
                }
            }
        }
        Ok(())
    }

    /// Carries out a request, and answers it.
    async fn answer(self: Arc<Self>, id: Id, method: String, params: Option<Box<RawValue>>) {
        let outcome = self.call(&id, &method, params.as_deref()).await;
        let answered = match &outcome {
            Ok(reply) => self.editor.respond(&id, Ok(&reply.result)).await,
            Err(error) => {
                tracing::debug!(%error, method, "a request of the editor failed");
                self.editor.respond(&id, Err(error)).await
            }
        };
        // Updates come behind the answer: before it, an editor does not know the session.
        if let (Ok(()), Ok(reply)) = (answered, outcome)
            && let Some(follower) = reply.follower
        {
            tokio::spawn(follower.run());
        }
    }

    /// Notes the turn of a prompt's request, until the returned guard is dropped.
    pub(crate) fn note_prompt(&self, id: &Id, session: &Arc<EditorSession>, turn: &str) -> NotedPrompt<'_> {
        let request = id.as_json().to_owned();
        let mut prompts = self.prompts.lock().unwrap_or_else(PoisonError::into_inner);
        prompts.insert(request.clone(), (session.clone(), turn.to_owned()));
        NotedPrompt { server: self, request }
    }

    /// The session and the turn of an open prompt.
    pub(crate) fn open_prompt(&self, request: &Value) -> Option<(Arc<EditorSession>, String)> {
        let prompts = self.prompts.lock().unwrap_or_else(PoisonError::into_inner);
        prompts.get(&request.to_string()).cloned()
    }
}

/// An open prompt in the server's table.
pub(crate) struct NotedPrompt<'a> {
    server: &'a AcpServer,
    request: String,
}

impl Drop for NotedPrompt<'_> {
    fn drop(&mut self) {
        self.server.prompts.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.request);
    }
}
