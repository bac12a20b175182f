//! The WebSocket of a test client.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::protocol::{Message, Role, WebSocketConfig};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// The time limit of every wait.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A connection's bytes.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// The end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// With a close frame.
    Closed { code: u16, reason: String },
    /// Without one.
    Broken,
}

pub(crate) struct TestSocket {
    stream: WebSocketStream<Box<dyn ByteStream>>,
    ended: Option<ConnectionEnd>,
}

impl TestSocket {
    /// Connects over TCP. `ws` is the address that the host prints.
    pub(crate) async fn connect(ws: &str, token: &str) -> Self {
        let address = ws.strip_prefix("ws://").unwrap().split('/').next().unwrap();
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self::over(Box::new(stream), &format!("{ws}?tkn={token}")).await
    }

    /// Connects over any stream.
    pub(crate) async fn over(stream: Box<dyn ByteStream>, url: &str) -> Self {
        let config = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        let (stream, _) = client_async_with_config(url, stream, Some(config)).await.unwrap();
        Self { stream, ended: None }
    }

    pub(crate) fn ended(&self) -> Option<&ConnectionEnd> {
        self.ended.as_ref()
    }

    /// Drops the connection without closing it; pending messages are lost.
    pub(crate) async fn cut(&mut self) {
        let (nowhere, _) = tokio::io::duplex(1);
        let nowhere: Box<dyn ByteStream> = Box::new(nowhere);
        self.stream = WebSocketStream::from_raw_socket(nowhere, Role::Client, None).await;
        self.ended = Some(ConnectionEnd::Broken);
    }

    pub(crate) async fn send(&mut self, text: String) {
        if tokio::time::timeout(PATIENCE, self.stream.send(Message::text(text))).await.unwrap().is_err() {
            self.ended.get_or_insert(ConnectionEnd::Broken);
        }
    }

    pub(crate) async fn send_raw(&mut self, message: Message) -> bool {
        self.stream.send(message).await.is_ok()
    }

    /// The next text frame; `None` at the connection's end.
    pub(crate) async fn frame(&mut self, whose: &str) -> Option<String> {
        loop {
            let next = tokio::time::timeout(PATIENCE, self.stream.next());
            match next.await.unwrap_or_else(|_| panic!("{whose}: nothing came for {PATIENCE:?}")) {
                Some(Ok(Message::Text(text))) => return Some(text.to_string()),
                Some(Ok(Message::Close(frame))) => {
                    self.ended = Some(match frame {
                        Some(frame) => {
                            ConnectionEnd::Closed { code: frame.code.into(), reason: frame.reason.to_string() }
                        }
                        None => ConnectionEnd::Broken,
                    });
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => {
                    self.ended.get_or_insert(ConnectionEnd::Broken);
                    return None;
                }
            }
        }
    }
}
