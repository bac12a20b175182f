//! A WebSocket of version 1 of the protocol.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

/// The time in which a host must answer.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Socket {
    pub(crate) stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    next_id: u64,
}

impl Socket {
    pub(crate) async fn open(ws: &str, token: &str) -> Result<Self> {
        // The usual buffers would be most of the memory of 2,000 clients.
        let config = WebSocketConfig::default().read_buffer_size(8 << 10).write_buffer_size(0);
        let connecting = connect_async_with_config(format!("{ws}?tkn={token}"), Some(config), true);
        let (stream, _) = timeout(PATIENCE, connecting).await.context("the host does not accept")??;
        Ok(Self { stream, next_id: 0 })
    }

    /// Connects as a client, with subscriptions.
    pub(crate) async fn client(ws: &str, token: &str, client: &str, subscriptions: &[String]) -> Result<Self> {
        let mut socket = Self::open(ws, token).await?;
        let params = json!({"protocolVersion": 1, "clientId": client, "initialSubscriptions": subscriptions});
        socket.call("initialize", params).await?;
        Ok(socket)
    }

    pub(crate) async fn send(&mut self, text: String) -> Result<()> {
        Ok(self.stream.send(Message::text(text)).await?)
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Result<Value> {
        self.next_id += 1;
        let id = self.next_id;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()).await?;
        loop {
            let text = timeout(PATIENCE, self.next()).await.context("the host does not answer")??;
            let Ok(mut message) = serde_json::from_str::<Value>(&text) else { bail!("no JSON came") };
            if message["id"] == id {
                return match message.get("error") {
                    None => Ok(message["result"].take()),
                    Some(error) => bail!("{method}: {error}"),
                };
            }
        }
    }

    /// Dispatches an action.
    pub(crate) async fn act(&mut self, client_seq: u64, action: Value) -> Result<()> {
        let params = json!({"clientSeq": client_seq, "action": action});
        self.send(json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": params}).to_string()).await
    }

    /// The next text.
    pub(crate) async fn next(&mut self) -> Result<String> {
        loop {
            match self.stream.next().await {
                Some(Ok(Message::Text(text))) => return Ok(text.as_str().to_owned()),
                Some(Ok(Message::Close(frame))) => bail!("the host closed the connection: {frame:?}"),
                Some(Ok(_)) => {}
                Some(Err(error)) => bail!("the connection is lost: {error}"),
                None => bail!("the connection has ended"),
            }
        }
    }

    /// Creates a session, and waits until it is ready.
    pub(crate) async fn create(&mut self, uri: &str) -> Result<()> {
        self.call("createSession", json!({"session": uri, "provider": "scripted"})).await?;
        for _ in 0..1_000 {
            if self.call("subscribe", json!({"resource": uri})).await?["state"]["lifecycle"] == "ready" {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        bail!("{uri} did not become ready")
    }

    /// Starts a turn whose answer is one text.
    pub(crate) async fn prompt(&mut self, uri: &str, number: u64, answer: &str) -> Result<()> {
        let text = format!("script:{}", json!([{"say": answer}]));
        let turn = format!("t{number}");
        let message = json!({"text": text});
        let action = json!({"type": "session/turnStarted", "session": uri, "turnId": turn, "userMessage": message});
        self.act(number, action).await
    }

    /// Waits until a turn is over.
    pub(crate) async fn turn_end(&mut self) -> Result<()> {
        loop {
            let text = timeout(PATIENCE, self.next()).await.context("the turn does not end")??;
            if text.contains("\"session/turnComplete\"") {
                return Ok(());
            }
            if text.contains("\"session/error\"") || text.contains("\"rejectionReason\"") {
                bail!("a turn failed: {text}");
            }
        }
    }
}
