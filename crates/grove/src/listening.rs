//! Where a host listens: for this machine on loopback and on a socket in its data folder, and for other machines where
//! somebody says so.
//!
//! What is for other machines comes beside loopback and not in its place: commands, hooks and SDKs of this machine always
//! find the host in the same way.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context, Result};
use grove_client::Fingerprint;
use grove_host::Host;
use grove_host::server::{self, Access, Certificate, Page, Privacy, Serving, TlsListener, Token, UnixSocket};
use tokio::net::TcpListener;

use crate::data_folder::DataFolder;
use crate::endpoint::Remote;
use crate::settings::Settings;

pub(crate) struct Listening {
    local: TcpListener,
    remote: Option<(TcpListener, Option<Certificate>)>,
    socket: Option<(UnixSocket, PathBuf)>,
}

/// Where it can be found.
pub(crate) struct Found {
    pub(crate) local: SocketAddr,
    pub(crate) remote: Option<Remote>,
    pub(crate) socket: Option<PathBuf>,
}

impl Listening {
    pub(crate) async fn begin(settings: &Settings, folder: &DataFolder) -> Result<Self> {
        let certificate = match (&settings.tls_cert.value, &settings.tls_key.value) {
            (Some(certificate), Some(key)) => Some(Certificate::read(certificate, key)?),
            // The settings have both or none.
            _ => None,
        };
        let wanted = bind(settings.listen.value).await?;
        let (local, remote) = match certificate.is_some() || !settings.listen.value.ip().is_loopback() {
            true => (bind((Ipv4Addr::LOCALHOST, 0).into()).await?, Some((wanted, certificate))),
            false => (wanted, None),
        };
        Ok(Self { local, remote, socket: socket(folder) })
    }

    pub(crate) fn find(&self) -> Result<Found> {
        let address = |listener: &TcpListener| listener.local_addr().context("the listener has no address");
        let remote = match &self.remote {
            Some((listener, Some(certificate))) => {
                let address = address(listener)?;
                Some(Remote {
                    http: format!("https://{address}"),
                    ws: format!("wss://{address}/ws"),
                    certificate: Some(Fingerprint::of(certificate.der()).to_string()),
                })
            }
            Some((listener, None)) => {
                let address = address(listener)?;
                Some(Remote { http: format!("http://{address}"), ws: format!("ws://{address}/ws"), certificate: None })
            }
            None => None,
        };
        Ok(Found { local: address(&self.local)?, remote, socket: self.socket.as_ref().map(|(_, path)| path.clone()) })
    }

    /// Lets clients in everywhere.
    pub(crate) fn serve(self, host: Host, token: &Token, page: Page) -> Result<Serving> {
        let local = self.find()?.local;
        let serving = server::serve_with_page(host, Access::loopback(token.clone(), local), page, Box::new(self.local));
        match self.remote {
            Some((listener, Some(certificate))) => {
                let access = Access::remote(token.clone(), Privacy::Tls);
                serving.listen(access, Box::new(TlsListener::new(listener, &certificate)));
            }
            Some((listener, None)) => {
                tracing::warn!(
                    "what other machines say to this host, the token too, can be read on the way (--insecure)"
                );
                serving.listen(Access::remote(token.clone(), Privacy::None), Box::new(listener));
            }
            None => {}
        }
        if let Some((socket, _)) = self.socket {
            serving.listen(Access::owner(), Box::new(socket));
        }
        Ok(serving)
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("{address} cannot be listened on"))
}

/// The socket in the data folder. A host without it is a host all the same: loopback does what it does.
fn socket(folder: &DataFolder) -> Option<(UnixSocket, PathBuf)> {
    let path = folder.socket_path();
    match UnixSocket::bind(&path) {
        Ok(socket) => Some((socket, path)),
        Err(error) => {
            // The usual reason is a path of more than about 100 bytes, which no system takes.
            tracing::info!(path = %path.display(), %error, "there is no socket in the data folder: loopback is used instead");
            None
        }
    }
}
