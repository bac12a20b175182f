//! Editors on WebSockets of the host (`/acp`): the Agent Client Protocol without a program of the editor's own.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use grove_acp_agent::{AgentChoice, EditorClient, HostAccess};
use grove_client::{Ahp, Client, ConnectInProcess, Endpoint, MessageChannel};
use grove_server::{EditorConnection, EditorHost, EditorService};
use grove_session_hub::message_channel;

use crate::connect::for_editor;

/// Serves the editors of a host.
#[derive(Debug)]
pub(crate) struct EditorSockets;

impl EditorService for EditorSockets {
    fn serve(&self, editor: EditorConnection) -> BoxFuture<'static, ()> {
        let EditorConnection { from_editor, to_editor, host, agent, shares_files } = editor;
        let access = Arc::new(SocketHost { host: Arc::new(InProcess(host)), shares_files });
        Box::pin(async move {
            let served = grove_acp_agent::serve_messages(access, AgentChoice { agent }, from_editor, to_editor);
            if let Err(error) = served.await {
                tracing::debug!(%error, "the connection of an editor ended early");
            }
        })
    }
}

/// The host of an editor's WebSocket.
struct SocketHost {
    host: Arc<InProcess>,
    shares_files: bool,
}

#[async_trait]
impl HostAccess for SocketHost {
    async fn connect(&self, editor: EditorClient) -> Result<Client<Ahp>, String> {
        let (dialect, options) = for_editor(editor);
        let connected = Client::connect(Endpoint::in_process(self.host.clone()), dialect, options).await;
        connected.map_err(|error| format!("the host refused the editor: {error}"))
    }

    async fn start(&self) -> Result<(), String> {
        // The WebSocket is the host's, so it runs.
        Ok(())
    }

    fn shares_files(&self) -> bool {
        self.shares_files
    }
}

struct InProcess(EditorHost);

impl ConnectInProcess for InProcess {
    fn connect(&self) -> Option<MessageChannel> {
        self.0.connect().ok().map(message_channel)
    }
}
