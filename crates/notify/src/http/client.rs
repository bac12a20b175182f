//! Sending a request over HTTPS, with bounds: no redirect is followed, and every step has its time.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, version};

use super::address::TargetUrl;

/// The time for one request, from the name to the answer.
pub const REQUEST_TIME: Duration = Duration::from_secs(20);
/// The time for a connection, without TLS.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// The addresses of a name that are tried.
const MAX_ADDRESSES: usize = 4;
/// The bytes of an answer that are read; the connection is closed then.
pub const MAX_ANSWER_BYTES: usize = 16 << 10;
/// The size of an answer's head.
const MAX_HEAD_BYTES: usize = 16 << 10;

/// A request with a body.
#[derive(Clone, Debug)]
pub struct Post {
    pub url: TargetUrl,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// The part of an answer that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostAnswer {
    pub status: u16,
    /// The time after which the request may be sent again.
    pub retry_after: Option<Duration>,
}

/// A request got no answer.
#[derive(Debug, thiserror::Error)]
pub enum PostError {
    #[error("{host} leads to a machine that is not on the internet: `allow-private-push` allows it")]
    Private { host: String },
    #[error("{host} cannot be reached: {error}")]
    Unreachable { host: String, error: io::Error },
    #[error("{host} did not answer within {} s", REQUEST_TIME.as_secs())]
    Slow { host: String },
    #[error("{host} answered with something that is no HTTP: {error}")]
    Http { host: String, error: hyper::Error },
    #[error("the certificates of the system cannot be read: {0}: set SSL_CERT_FILE")]
    Roots(String),
}

/// Sends requests.
#[async_trait]
pub trait Transport: fmt::Debug + Send + Sync {
    async fn post(&self, post: Post) -> Result<PostAnswer, PostError>;
}

/// Reads the certificates that the system trusts, in PEM.
pub type RootSource = Box<dyn Fn() -> io::Result<Vec<u8>> + Send + Sync>;

/// Sends requests over TLS 1.3, each on a connection of its own.
pub struct HttpsTransport {
    roots: RootSource,
    config: OnceLock<Result<Arc<ClientConfig>, String>>,
}

impl HttpsTransport {
    /// The certificates are read with the first request.
    pub fn new(roots: RootSource) -> Self {
        Self { roots, config: OnceLock::new() }
    }

    fn config(&self) -> Result<Arc<ClientConfig>, PostError> {
        let read = || client_config(&(self.roots)().map_err(|error| error.to_string())?);
        self.config.get_or_init(read).clone().map_err(PostError::Roots)
    }

    async fn send(&self, post: Post) -> Result<PostAnswer, PostError> {
        let host = post.url.host().to_owned();
        let stream = connect(&post.url).await?;
        if !post.url.is_https() {
            return exchange(stream, post).await;
        }
        let config = self.config()?;
        let unreachable = |error| PostError::Unreachable { host: host.clone(), error };
        let name = ServerName::try_from(host.clone()).map_err(|error| unreachable(io::Error::other(error)))?;
        let stream = TlsConnector::from(config).connect(name, stream).await.map_err(unreachable)?;
        exchange(stream, post).await
    }
}

impl fmt::Debug for HttpsTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpsTransport").finish_non_exhaustive()
    }
}

#[async_trait]
impl Transport for HttpsTransport {
    async fn post(&self, post: Post) -> Result<PostAnswer, PostError> {
        let host = post.url.host().to_owned();
        timeout(REQUEST_TIME, self.send(post)).await.unwrap_or(Err(PostError::Slow { host }))
    }
}

fn client_config(pem: &[u8]) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    // A certificate that cannot be read is one that is not trusted.
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(pem).filter_map(Result::ok));
    if roots.is_empty() {
        return Err("there are none".to_owned());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&version::TLS13])
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Connects to a machine. All its addresses must be allowed, and the connection is to one of those that were checked.
async fn connect(url: &TargetUrl) -> Result<TcpStream, PostError> {
    let host = url.host().to_owned();
    let unreachable = |error| PostError::Unreachable { host: host.clone(), error };
    let addresses: Vec<SocketAddr> =
        tokio::net::lookup_host((url.host(), url.port())).await.map_err(unreachable)?.take(MAX_ADDRESSES).collect();
    if addresses.iter().any(|address| !url.allows(address.ip())) {
        return Err(PostError::Private { host });
    }
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "it has no address");
    for address in addresses {
        match timeout(CONNECT_TIME, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => failure = error,
            Err(_) => failure = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(unreachable(failure))
}

/// Sends the request on a connection, and reads as much of the answer as is needed.
async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    post: Post,
) -> Result<PostAnswer, PostError> {
    let host = post.url.host().to_owned();
    let broken = |error| PostError::Http { host: host.clone(), error };
    let client = hyper::client::conn::http1::Builder::new().max_buf_size(MAX_HEAD_BYTES).to_owned();
    let (mut sender, connection) = client.handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let Post { url, headers, body } = post;
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = url.path().parse().unwrap_or_default();
    *request.headers_mut() = headers;
    if let Ok(authority) = HeaderValue::from_str(url.authority()) {
        request.headers_mut().insert(header::HOST, authority);
    }
    let mut answer = std::pin::pin!(async {
        let response = sender.send_request(request).await?;
        let answer = PostAnswer { status: response.status().as_u16(), retry_after: retry_after(response.headers()) };
        read_end(response.into_body()).await;
        Ok(answer)
    });
    // A connection that has ended has given everything that it had, so the answer or its failure is there.
    let answer = tokio::select! {
        biased;
        answer = &mut answer => answer,
        _ = connection => answer.await,
    };
    answer.map_err(broken)
}

/// Reads a body until its end, or its bound. Its text is of no use, and the service need not see a broken connection.
async fn read_end(mut body: Incoming) {
    let mut read = 0;
    while let Some(Ok(frame)) = body.frame().await {
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > MAX_ANSWER_BYTES {
            return;
        }
    }
}

/// The header `Retry-After` in seconds. A date is not read: the usual pause is used.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
