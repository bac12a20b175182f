//! TLS on a listener.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{ServerConfig, version};

use super::admission::PendingConnections;
use crate::listener::{AcceptedStream, Listener, PeerAddress};

/// The time in which a client must complete the handshake; then it is dropped.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Concurrent handshakes. With more, the oldest is dropped.
pub const MAX_HANDSHAKES: usize = 128;

/// The host's certificate and its key.
#[derive(Clone)]
pub struct Certificate {
    config: Arc<ServerConfig>,
    /// Its own certificate, as DER, without the chain.
    own: CertificateDer<'static>,
}

/// The reason why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateFileError {
    #[error("{} cannot be read as PEM ({error}): it must hold the certificate, then its chain", .path.display())]
    Certificate { path: PathBuf, error: String },
    #[error("{} cannot be read as PEM ({error}): it must hold the private key of the certificate", .path.display())]
    Key { path: PathBuf, error: String },
    #[error("the certificate and its key cannot be used ({0}): check that they belong together")]
    Unfit(String),
}

impl Certificate {
    /// Reads both from files in PEM.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, CertificateFileError> {
        let unread = |error: String| CertificateFileError::Certificate { path: certificate.to_owned(), error };
        let chain: Result<Vec<CertificateDer<'static>>, _> =
            CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
        let chain = chain.map_err(|error| unread(error.to_string()))?;
        let own = chain.first().cloned().ok_or_else(|| unread("there is none in it".to_owned()))?;
        let key = PrivateKeyDer::from_pem_file(key)
            .map_err(|error| CertificateFileError::Key { path: key.to_owned(), error: error.to_string() })?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&version::TLS13])
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|error| CertificateFileError::Unfit(error.to_string()))?;
        Ok(Self { config: Arc::new(config), own })
    }

    /// Says whether the certificate is for this name.
    pub(super) fn is_for(&self, name: &str) -> bool {
        let parsed = ParsedCertificate::try_from(&self.own);
        let name = ServerName::try_from(name);
        matches!((parsed, name), (Ok(parsed), Ok(name)) if verify_server_name(&parsed, &name).is_ok())
    }

    /// The certificate itself, as DER.
    pub fn der(&self) -> &[u8] {
        &self.own
    }
}

impl std::fmt::Debug for Certificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Certificate(…)")
    }
}

/// A TCP listener behind TLS. A slow handshake holds up no other client.
pub struct TlsListener {
    inner: TcpListener,
    acceptor: TlsAcceptor,
    begun: FuturesUnordered<BoxFuture<'static, io::Result<AcceptedStream>>>,
    pending_connections: PendingConnections,
}

impl TlsListener {
    pub fn new(inner: TcpListener, certificate: &Certificate) -> Self {
        Self {
            inner,
            acceptor: TlsAcceptor::from(certificate.config.clone()),
            begun: FuturesUnordered::new(),
            pending_connections: PendingConnections::new(MAX_HANDSHAKES),
        }
    }
}

impl std::fmt::Debug for TlsListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsListener").field("inner", &self.inner).finish_non_exhaustive()
    }
}

#[async_trait]
impl Listener for TlsListener {
    async fn accept(&mut self) -> io::Result<AcceptedStream> {
        loop {
            tokio::select! {
                // A closing connection ends before the next one is accepted.
                biased;
                Some(shaken) = self.begun.next(), if !self.begun.is_empty() => match shaken {
                    Ok(stream) => return Ok(stream),
                    // Port scanners end here; that is no failure of the listener.
                    Err(error) => tracing::debug!(%error, "a TLS handshake failed"),
                },
                accepted = async {
                    self.pending_connections.settled().await;
                    self.inner.accept().await
                } => {
                    let (stream, peer) = accepted?;
                    // A frame is written in one piece: waiting for more only costs time.
                    stream.set_nodelay(true)?;
                    let peer = PeerAddress::Tcp { peer, local: stream.local_addr()? };
                    let (connection, mut rejected) = self.pending_connections.enter();
                    let shaking = timeout(HANDSHAKE_TIMEOUT, self.acceptor.accept(connection.watch(stream)));
                    self.begun.push(Box::pin(async move {
                        let _connection = connection;
                        tokio::select! {
                            shaken = shaking => Ok(AcceptedStream { stream: Box::new(shaken??), peer }),
                            () = rejected.signaled() => Err(io::ErrorKind::ConnectionAborted.into()),
                        }
                    }));
                }
            }
        }
    }
}
