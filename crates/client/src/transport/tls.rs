//! TLS to a host with a pinned certificate.
//!
//! A host on a private machine has no name that an authority would certify. So the certificate itself is trusted, by
//! its fingerprint, as SSH does with the key of a machine. Names and dates in it are ignored.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use grove_checks::Check;
use sha2::{Digest, Sha256};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    CertificateError as RustlsCertificate, ClientConfig, DigitallySignedStruct, Error as TlsError, SignatureScheme,
    version,
};

use super::{ByteStream, Dial};

/// The SHA-256 of a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a certificate in DER.
    pub fn of(certificate: &[u8]) -> Self {
        Self(Sha256::digest(certificate).into())
    }
}

/// An invalid fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a fingerprint of a certificate: it must be `sha256:` and 64 hexadecimal digits, as `grove serve` shows it"
)]
pub struct FingerprintError(String);

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    /// Colons and capitals are accepted as well, as openssl writes them.
    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let wrong = || FingerprintError(text.chars().take(100).collect());
        let digits = text.trim();
        let digits = match digits.get(..7) {
            Some(prefix) if prefix.eq_ignore_ascii_case("sha256:") => &digits[7..],
            _ => digits,
        };
        let mut bytes = [0; 32];
        hex::decode_to_slice(digits.replace(':', ""), &mut bytes).map_err(|_| wrong())?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", hex::encode(self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The reason why a host's certificate is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    #[error(
        "the host's certificate is not pinned. It shows {shown}: compare that with what `grove serve` prints there, and \
         pin it"
    )]
    Unpinned { shown: Fingerprint },
    #[error(
        "the host shows another certificate than the pinned one: {shown} instead of {pinned}. The connection may be \
         intercepted; if the host has a new certificate, pin that"
    )]
    Changed { pinned: Fingerprint, shown: Fingerprint },
}

/// A host on TCP, behind TLS.
pub(super) struct Tls {
    /// The address for the TCP connection.
    pub(super) address: String,
    /// The server name for TLS.
    pub(super) name: String,
    pub(super) pin: Option<Fingerprint>,
}

#[async_trait]
impl Dial for Tls {
    async fn dial(&self) -> io::Result<Box<dyn ByteStream>> {
        let name = ServerName::try_from(self.name.clone()).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{:?} is not a valid name of a machine", self.name))
        })?;
        let provider = Arc::new(ring::default_provider());
        let shown = Arc::new(OnceLock::new());
        let verifier = PinnedCertVerifier { pin: self.pin, shown: shown.clone(), provider: provider.clone() };
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13])
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        let stream = TcpStream::connect(&self.address).await?;
        // A frame is written in one piece: waiting for more only costs time.
        stream.set_nodelay(true)?;
        match TlsConnector::from(Arc::new(config)).connect(name, stream).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(match (shown.get(), self.pin) {
                (Some(&shown), None) => io::Error::other(CertificateError::Unpinned { shown }),
                (Some(&shown), Some(pinned)) if shown != pinned => {
                    io::Error::other(CertificateError::Changed { pinned, shown })
                }
                _ => io::Error::new(error.kind(), format!("the TLS handshake failed: {error}")),
            }),
        }
    }
}

/// Trusts one certificate, and stores the fingerprint of the one it was shown.
#[derive(Debug)]
struct PinnedCertVerifier {
    pin: Option<Fingerprint>,
    shown: Arc<OnceLock<Fingerprint>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedCertVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        let shown = *self.shown.get_or_init(|| Fingerprint::of(certificate));
        match !Check::Pin.is_enforced() || self.pin == Some(shown) {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(TlsError::InvalidCertificate(RustlsCertificate::ApplicationVerificationFailure)),
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        // Only TLS 1.3 is offered.
        Err(TlsError::General("TLS 1.3 is required".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_as_it_is_shown_and_as_openssl_writes_it() {
        let fingerprint = Fingerprint::of(b"certificate");
        let shown = fingerprint.to_string();
        assert_eq!(shown.parse(), Ok(fingerprint));
        let digits = shown.strip_prefix("sha256:").unwrap();
        let pairs: Vec<&str> = (0..32).map(|at| &digits[2 * at..2 * at + 2]).collect();
        assert_eq!(pairs.join(":").to_uppercase().parse(), Ok(fingerprint));
        for wrong in ["", "sha256:", "abc", "sha1:0123", &digits[1..], "sha256:é"] {
            assert!(wrong.parse::<Fingerprint>().is_err(), "{wrong}");
        }
    }
}
