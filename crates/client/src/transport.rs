//! Where a host is, and the WebSocket to it.

use std::fmt;
use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode, Uri, header};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Error as SocketError};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// The socket's buffers, each way.
const SOCKET_BUFFER: usize = 8 << 10;

/// A connection's bytes, both ways.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Makes the stream that the WebSocket goes over.
#[async_trait]
pub trait Dial: Send + Sync {
    async fn dial(&self) -> io::Result<Box<dyn Stream>>;
}

/// Where a host is, and what lets a client in. The token is never shown by `Debug`.
#[derive(Clone)]
pub struct Endpoint {
    url: Uri,
    token: Option<HeaderValue>,
    dial: Arc<dyn Dial>,
}

#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    #[error("{0:?} is no address of a host: it looks like ws://127.0.0.1:7000/ws")]
    Url(String),
    #[error("the token has characters that no token has: copy it again")]
    Token,
}

impl Endpoint {
    /// A host on TCP. `url` is the address that the host prints, without its token.
    pub fn tcp(url: &str, token: Option<&str>) -> Result<Self, EndpointError> {
        let parsed = parse(url)?;
        let host = parsed.host().unwrap_or_default();
        let address = format!("{host}:{}", parsed.port_u16().unwrap_or(80));
        Self::over(url, token, Arc::new(Tcp(address)))
    }

    /// A host on any stream. `url` is what is asked for there.
    pub fn over(url: &str, token: Option<&str>, dial: Arc<dyn Dial>) -> Result<Self, EndpointError> {
        let token = token.map(|token| {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| EndpointError::Token)?;
            value.set_sensitive(true);
            Ok(value)
        });
        Ok(Self { url: parse(url)?, token: token.transpose()?, dial })
    }
}

fn parse(url: &str) -> Result<Uri, EndpointError> {
    let parsed: Option<Uri> = url.parse().ok();
    let wanted = |parsed: &Uri| parsed.scheme_str() == Some("ws") && parsed.host().is_some_and(|host| !host.is_empty());
    parsed.filter(wanted).ok_or_else(|| EndpointError::Url(url.to_owned()))
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A query may hold a token.
        let path = self.url.path();
        f.debug_struct("Endpoint").field("host", &self.url.authority()).field("path", &path).finish_non_exhaustive()
    }
}

/// A host's TCP address.
struct Tcp(String);

#[async_trait]
impl Dial for Tcp {
    async fn dial(&self) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect(&self.0).await?;
        // A frame is written in one piece: waiting for more only costs time.
        stream.set_nodelay(true)?;
        Ok(Box::new(stream))
    }
}

pub(crate) type Socket = WebSocketStream<Box<dyn Stream>>;

/// Why there is no WebSocket.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the host cannot be reached ({0}): is it running?")]
    Unreachable(#[from] io::Error),
    #[error("the host does not let this client in ({status}): {message}")]
    Denied { status: u16, message: String },
    #[error("no WebSocket is spoken there: {0}")]
    NoWebSocket(Box<tungstenite::Error>),
}

/// Opens a WebSocket to a host.
pub(crate) async fn open(endpoint: &Endpoint, message_bytes: usize) -> Result<Socket, OpenError> {
    let other = |error: SocketError| OpenError::NoWebSocket(Box::new(error));
    let mut request = endpoint.url.clone().into_client_request().map_err(other)?;
    if let Some(token) = &endpoint.token {
        request.headers_mut().insert(header::AUTHORIZATION, token.clone());
    }
    let stream = endpoint.dial.dial().await?;
    let config = WebSocketConfig::default()
        .read_buffer_size(SOCKET_BUFFER)
        .write_buffer_size(SOCKET_BUFFER)
        .max_message_size(Some(message_bytes))
        .max_frame_size(Some(message_bytes));
    match client_async_with_config(request, stream, Some(config)).await {
        Ok((socket, _)) => Ok(socket),
        Err(SocketError::Io(error)) => Err(error.into()),
        Err(SocketError::Http(answer))
            if matches!(answer.status(), StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED) =>
        {
            let body = answer.body().as_deref().map(String::from_utf8_lossy).unwrap_or_default();
            let message: String = body.trim().chars().take(200).collect();
            Err(OpenError::Denied { status: answer.status().as_u16(), message })
        }
        Err(error) => Err(other(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_not_shown_and_an_address_that_is_none_is_refused() {
        let endpoint = Endpoint::tcp("ws://127.0.0.1:7000/ws?tkn=secret", Some("secret")).unwrap();
        assert!(!format!("{endpoint:?}").contains("secret"), "{endpoint:?}");
        for url in ["", "http://127.0.0.1:7000", "wss://example.org", "ws://", "127.0.0.1:7000"] {
            assert!(matches!(Endpoint::tcp(url, None), Err(EndpointError::Url(_))), "{url}");
        }
        assert!(matches!(Endpoint::tcp("ws://127.0.0.1:1", Some("a\nb")), Err(EndpointError::Token)));
    }
}
