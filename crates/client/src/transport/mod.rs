//! The way to a host: its address, and the connection that is made there.

mod address;
mod lines;
mod ssh;
mod tls;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use futures_util::{Sink, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_tungstenite::client_async_with_config;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode, Uri, header};
use tokio_tungstenite::tungstenite::protocol::{Message, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Error as SocketError};

pub use address::{AddressError, HostAddress, SshAddress};
pub use ssh::SshError;
pub use tls::{CertificateError, Fingerprint, FingerprintError};

use ssh::Ssh;
use tls::Tls;

/// The socket's buffers, each way.
const SOCKET_BUFFER: usize = 8 << 10;

/// A connection's bytes, both ways.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// Makes the stream that the WebSocket goes over.
#[async_trait]
pub trait Dial: Send + Sync {
    async fn dial(&self) -> io::Result<Box<dyn ByteStream>>;
}

/// Where a host is, and what lets a client in. The token is never shown by `Debug`.
#[derive(Clone)]
pub struct Endpoint(Route);

#[derive(Clone)]
enum Route {
    /// A WebSocket on some stream.
    WebSocket { url: Uri, token: Option<HeaderValue>, dial: Arc<dyn Dial> },
    /// A message a line.
    Ssh(Arc<Ssh>),
}

/// What a client has that lets it in. `Debug` does not show the token.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The host's token. Who can use a host's socket or log in by SSH needs none.
    pub token: Option<String>,
    /// The certificate that a host behind TLS must show. Without one, none is trusted.
    pub pin: Option<Fingerprint>,
    /// What is run as `ssh`, if it is not the one that `PATH` finds.
    pub ssh: Option<OsString>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("pin", &self.pin).field("ssh", &self.ssh).finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    #[error("{0:?} is no address of a host: it looks like ws://127.0.0.1:7000/ws")]
    Url(String),
    #[error("the token has characters that no token has: copy it again")]
    Token,
}

impl Endpoint {
    /// A host at an address.
    pub fn new(address: &HostAddress, access: &Credentials) -> Result<Self, EndpointError> {
        let web = |url: Uri, dial: Arc<dyn Dial>| {
            Ok(Self(Route::WebSocket { url, token: bearer(access.token.as_deref())?, dial }))
        };
        match address {
            HostAddress::Plain(url) => web(url.clone(), Arc::new(TcpDialer(socket_address(url, 80)))),
            HostAddress::Tls(url) => {
                // An address of version 6 has brackets only where a port may follow.
                let name = url.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
                web(url.clone(), Arc::new(Tls { address: socket_address(url, 443), name, pin: access.pin }))
            }
            HostAddress::Unix(path) => web(Uri::from_static(ON_SOCKET), Arc::new(UnixDialer(path.clone()))),
            HostAddress::Ssh(address) => {
                let program = access.ssh.clone().unwrap_or_else(|| "ssh".into());
                Ok(Self(Route::Ssh(Arc::new(Ssh { address: address.clone(), program }))))
            }
        }
    }

    /// A host on TCP. `url` is the address that the host prints, without its token.
    pub fn tcp(url: &str, token: Option<&str>) -> Result<Self, EndpointError> {
        let address = socket_address(&parse(url)?, 80);
        Self::over(url, token, Arc::new(TcpDialer(address)))
    }

    /// A host on any stream. `url` is what is asked for there.
    pub fn over(url: &str, token: Option<&str>, dial: Arc<dyn Dial>) -> Result<Self, EndpointError> {
        Ok(Self(Route::WebSocket { url: parse(url)?, token: bearer(token)?, dial }))
    }
}

/// What is asked for on a host's own socket, which goes by no other name.
const ON_SOCKET: &str = "ws://localhost/ws";

fn parse(url: &str) -> Result<Uri, EndpointError> {
    let parsed = address::parse_url(url).filter(|parsed| parsed.scheme_str() == Some("ws"));
    parsed.ok_or_else(|| EndpointError::Url(url.to_owned()))
}

fn socket_address(url: &Uri, port: u16) -> String {
    format!("{}:{}", url.host().unwrap_or_default(), url.port_u16().unwrap_or(port))
}

fn bearer(token: Option<&str>) -> Result<Option<HeaderValue>, EndpointError> {
    let bearer = |token: &str| {
        let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| EndpointError::Token)?;
        value.set_sensitive(true);
        Ok(value)
    };
    token.map(bearer).transpose()
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Endpoint");
        match &self.0 {
            // A query may hold a token.
            Route::WebSocket { url, .. } => shown.field("host", &url.authority()).field("path", &url.path()),
            Route::Ssh(ssh) => shown.field("ssh", &ssh.address),
        };
        shown.finish_non_exhaustive()
    }
}

/// A host's TCP address.
struct TcpDialer(String);

#[async_trait]
impl Dial for TcpDialer {
    async fn dial(&self) -> io::Result<Box<dyn ByteStream>> {
        let stream = TcpStream::connect(&self.0).await?;
        // A frame is written in one piece: waiting for more only costs time.
        stream.set_nodelay(true)?;
        Ok(Box::new(stream))
    }
}

/// A host's own socket.
struct UnixDialer(PathBuf);

#[async_trait]
impl Dial for UnixDialer {
    async fn dial(&self) -> io::Result<Box<dyn ByteStream>> {
        Ok(Box::new(UnixStream::connect(&self.0).await?))
    }
}

/// A connection's messages, both ways. On whatever they go, they look like those of a WebSocket.
pub(crate) struct MessageSocket {
    pub(crate) sink: MessageSink,
    pub(crate) stream: MessageStream,
}

pub(crate) type MessageSink = Pin<Box<dyn Sink<Message, Error = SocketError> + Send>>;
pub(crate) type MessageStream = BoxStream<'static, Result<Message, SocketError>>;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    #[error("the host cannot be reached ({0}): is it running?")]
    Unreachable(io::Error),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error(transparent)]
    Ssh(#[from] SshError),
    #[error("the host does not let this client in ({status}): {message}")]
    Denied { status: u16, message: String },
    #[error("no WebSocket is spoken there: {0}")]
    NoWebSocket(Box<tungstenite::Error>),
}

impl From<io::Error> for TransportError {
    fn from(error: io::Error) -> Self {
        // What is known better was put into it where it happened.
        let inner = error.get_ref();
        if let Some(known) = inner.and_then(|inner| inner.downcast_ref::<CertificateError>()) {
            return (*known).into();
        }
        match inner.and_then(|inner| inner.downcast_ref::<SshError>()) {
            Some(known) => known.clone().into(),
            None => TransportError::Unreachable(error),
        }
    }
}

/// Opens a connection to a host.
pub(crate) async fn open(endpoint: &Endpoint, message_bytes: usize) -> Result<MessageSocket, TransportError> {
    match &endpoint.0 {
        Route::WebSocket { url, token, dial } => open_web(url, token.as_ref(), dial.as_ref(), message_bytes).await,
        Route::Ssh(ssh) => Ok(ssh.open(message_bytes)?),
    }
}

async fn open_web(
    url: &Uri,
    token: Option<&HeaderValue>,
    dial: &dyn Dial,
    message_bytes: usize,
) -> Result<MessageSocket, TransportError> {
    let other = |error: SocketError| TransportError::NoWebSocket(Box::new(error));
    let mut request = url.clone().into_client_request().map_err(other)?;
    if let Some(token) = token {
        request.headers_mut().insert(header::AUTHORIZATION, token.clone());
    }
    let stream = dial.dial().await?;
    let config = WebSocketConfig::default()
        .read_buffer_size(SOCKET_BUFFER)
        .write_buffer_size(SOCKET_BUFFER)
        .max_message_size(Some(message_bytes))
        .max_frame_size(Some(message_bytes));
    match client_async_with_config(request, stream, Some(config)).await {
        Ok((socket, _)) => {
            let (sink, stream) = socket.split();
            Ok(MessageSocket { sink: Box::pin(sink), stream: stream.boxed() })
        }
        Err(SocketError::Io(error)) => Err(error.into()),
        Err(SocketError::Http(answer))
            if matches!(answer.status(), StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED) =>
        {
            let body = answer.body().as_deref().map(String::from_utf8_lossy).unwrap_or_default();
            let message: String = body.trim().chars().take(200).collect();
            Err(TransportError::Denied { status: answer.status().as_u16(), message })
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
