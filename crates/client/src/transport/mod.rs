//! Transports: the address of a host, and connections to it.

mod address;
mod in_process;
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
pub use in_process::{ConnectInProcess, HostMessage, MessageChannel};
pub use ssh::SshError;
pub use tls::{CertificateError, Fingerprint, FingerprintError};

use ssh::Ssh;
use tls::Tls;

/// The size of the socket's buffers, in each direction.
const SOCKET_BUFFER: usize = 8 << 10;

/// A connection's bytes, in both directions.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// Opens the stream for a WebSocket.
#[async_trait]
pub trait Dial: Send + Sync {
    async fn dial(&self) -> io::Result<Box<dyn ByteStream>>;
}

/// The address of a host and the credentials for it. `Debug` never shows the token.
#[derive(Clone)]
pub struct Endpoint(Route);

#[derive(Clone)]
enum Route {
    /// A WebSocket on some stream.
    WebSocket { url: Uri, token: Option<HeaderValue>, dial: Arc<dyn Dial> },
    /// One message per line.
    Ssh(Arc<Ssh>),
    /// Channels.
    InProcess(Arc<dyn ConnectInProcess>),
}

/// The credentials of a client. `Debug` does not show the token.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The host's token. It is not needed for a host's socket or for SSH.
    pub token: Option<String>,
    /// The certificate of a host behind TLS. Without it no certificate is trusted.
    pub pin: Option<Fingerprint>,
    /// The program to run as `ssh`, if it is not the one in `PATH`.
    pub ssh: Option<OsString>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("pin", &self.pin).field("ssh", &self.ssh).finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    #[error("{0:?} is not an address of a host: use for example ws://127.0.0.1:7000/ws")]
    Url(String),
    #[error("the token has invalid characters: copy it again")]
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
                // An IPv6 address has brackets only if a port may follow.
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

    /// A host on any stream. `url` is the URL of the request.
    pub fn over(url: &str, token: Option<&str>, dial: Arc<dyn Dial>) -> Result<Self, EndpointError> {
        Ok(Self(Route::WebSocket { url: parse(url)?, token: bearer(token)?, dial }))
    }

    /// A host in this process.
    pub fn in_process(host: Arc<dyn ConnectInProcess>) -> Self {
        Self(Route::InProcess(host))
    }
}

/// The URL of requests on a host's own socket.
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
            // A query may contain a token.
            Route::WebSocket { url, .. } => shown.field("host", &url.authority()).field("path", &url.path()),
            Route::Ssh(ssh) => shown.field("ssh", &ssh.address),
            Route::InProcess(_) => shown.field("host", &"in this process"),
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

/// A connection's messages, in both directions, as WebSocket messages on any transport.
pub(crate) struct MessageSocket {
    pub(crate) sink: MessageSink,
    pub(crate) stream: MessageStream,
}

pub(crate) type MessageSink = Pin<Box<dyn Sink<Message, Error = SocketError> + Send>>;
pub(crate) type MessageStream = BoxStream<'static, Result<Message, SocketError>>;

/// An error of opening a connection.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    #[error("cannot reach the host ({0}): is it running?")]
    Unreachable(io::Error),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error(transparent)]
    Ssh(#[from] SshError),
    #[error("the host refused this client ({status}): {message}")]
    Denied { status: u16, message: String },
    #[error("there is no WebSocket server at this address: {0}")]
    NoWebSocket(Box<tungstenite::Error>),
}

impl From<io::Error> for TransportError {
    fn from(error: io::Error) -> Self {
        // A more precise error may be inside.
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
        Route::InProcess(host) => in_process::open(host.as_ref()),
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
