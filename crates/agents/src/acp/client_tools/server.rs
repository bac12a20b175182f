//! The socket of the tools of one agent process.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use grove_checks::Check;
use grove_core::ToolCallId;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::calls::ToolCalls;
use super::{CALL_PREFIX, HELLO_BYTES, MESSAGE_BYTES, OPEN_REQUESTS, ToolGreeting, address, messages, next_line};

/// The connections at a time; a further one waits.
pub const CONNECTIONS: usize = 8;
/// The time for the first line of a connection.
pub const HELLO_TIME: Duration = Duration::from_secs(5);
/// The longest name of a process in a call's id.
const PROCESS_NAME: usize = 32;

/// Serves the tools of clients to one agent process, until it is dropped.
#[derive(Debug)]
pub(crate) struct ToolServer {
    task: JoinHandle<()>,
}

impl Drop for ToolServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A message of the agent.
#[derive(Deserialize)]
struct McpMessage {
    method: Option<String>,
    /// Missing in a notification.
    id: Option<Value>,
    params: Option<Value>,
}

impl ToolServer {
    /// Begins to serve. Must be called inside a runtime.
    pub(crate) fn start(calls: Arc<ToolCalls>) -> io::Result<Self> {
        let address = address(calls.folder())?;
        // The socket of an earlier host.
        std::fs::remove_file(address.path()).ok();
        let listener = UnixListener::bind(address.path())?;
        std::fs::set_permissions(address.path(), std::fs::Permissions::from_mode(0o600))?;
        Ok(Self { task: tokio::spawn(accept(listener, calls)) })
    }
}

async fn accept(listener: UnixListener, calls: Arc<ToolCalls>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < CONNECTIONS => match accepted {
                Ok((stream, _)) => drop(connections.spawn(serve(stream, Arc::clone(&calls)))),
                Err(error) => {
                    tracing::debug!(%error, "a connection to the tools of clients failed");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Serves a connection to its end. One that does not know the secret is closed.
async fn serve(stream: UnixStream, calls: Arc<ToolCalls>) {
    let is_ours = stream.peer_cred().is_ok_and(|peer| peer.uid() == rustix::process::geteuid().as_raw());
    let (reader, writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    let Ok(Ok(Some(first))) = timeout(HELLO_TIME, next_line(&mut reader, HELLO_BYTES)).await else { return };
    let Ok(ToolGreeting { secret, process }) = serde_json::from_str(&first) else { return };
    let is_named = process.len() <= PROCESS_NAME && process.chars().all(|c| c.is_ascii_alphanumeric());
    let is_known = calls.knows(&secret) || !Check::ToolsSecret.is_enforced();
    if !is_ours || !is_known || !is_named {
        tracing::warn!("a connection to the tools of clients without their secret was closed");
        return;
    }
    let (answers, outgoing) = mpsc::channel(OPEN_REQUESTS);
    let mut changed = calls.offered.changes();
    let writing = write(writer, outgoing);
    let reading = async {
        let mut open = JoinSet::new();
        loop {
            let line = tokio::select! {
                line = next_line(&mut reader, MESSAGE_BYTES) => line,
                () = tell_changes(&mut changed, &answers) => return,
            };
            let Ok(Some(line)) = line else { return };
            while open.try_join_next().is_some() {}
            handle(&line, &process, &calls, &answers, &mut open).await;
        }
    };
    tokio::select! {
        () = reading => {}
        () = writing => {}
    }
}

/// Tells the agent of each change of the list, until the connection is gone.
async fn tell_changes(changed: &mut watch::Receiver<Arc<[crate::OfferedTool]>>, answers: &mpsc::Sender<String>) {
    while changed.changed().await.is_ok() {
        if answers.send(messages::LIST_CHANGED.to_owned()).await.is_err() {
            return;
        }
    }
    // The session has no more news of its clients.
    std::future::pending::<()>().await;
}

async fn write(mut writer: impl AsyncWriteExt + Unpin, mut outgoing: mpsc::Receiver<String>) {
    while let Some(mut line) = outgoing.recv().await {
        line.push('\n');
        if writer.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn handle(
    line: &str,
    process: &str,
    calls: &Arc<ToolCalls>,
    answers: &mpsc::Sender<String>,
    open: &mut JoinSet<()>,
) {
    let Ok(McpMessage { method: Some(method), id: Some(id), params }) = serde_json::from_str(line) else { return };
    let outcome = match method.as_str() {
        "initialize" => Ok(messages::initialized(params.as_ref())),
        "ping" => Ok(Value::Object(serde_json::Map::new())),
        "tools/list" => Ok(calls.list()),
        "tools/call" if open.len() >= OPEN_REQUESTS => Err(messages::too_many(OPEN_REQUESTS)),
        "tools/call" => match messages::tool_request(params.as_ref()) {
            Ok(request) => {
                let call = ToolCallId::from(format!("{CALL_PREFIX}{process}-{}", id.to_string().trim_matches('"')));
                let (calls, answers) = (Arc::clone(calls), answers.clone());
                open.spawn(async move {
                    let answer = calls.call(call, request).await;
                    // The program connects again if the connection is gone, and repeats its request.
                    answers.send(messages::answer(&id, Ok(answer))).await.ok();
                });
                return;
            }
            Err(error) => Err(error),
        },
        unknown => Err(messages::unknown(unknown)),
    };
    answers.send(messages::answer(&id, outcome)).await.ok();
}
