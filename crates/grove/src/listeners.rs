//! The addresses that a host listens on.
//!
//! They are loopback, a socket in its data folder, and optionally an address for other machines.
//!
//! The address for other machines is additional to loopback: commands, hooks and SDKs of this machine always reach the
//! host in the same way.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context, Result};
use grove_client::Fingerprint;
use grove_host::tokens::HostToken;
use grove_server::{AccessPolicy, Certificate, HostNames, HostServer, TlsListener, TransportSecurity, UnixSocket};
use tokio::net::TcpListener;

use crate::data_folder::DataFolder;
use crate::endpoint::RemoteAddress;
use crate::secret_files;
use crate::settings::{DEFAULT_PORT, SettingSource, Settings};

pub(crate) struct HostListeners {
    local: TcpListener,
    remote: Option<(TcpListener, Option<Certificate>)>,
    socket: Option<(UnixSocket, PathBuf)>,
    /// The names under which other machines reach the host.
    host_names: HostNames,
}

/// The bound listeners of a host.
pub(crate) struct ListenAddresses {
    pub(crate) local: SocketAddr,
    pub(crate) remote: Option<RemoteAddress>,
    pub(crate) socket: Option<PathBuf>,
}

impl HostListeners {
    pub(crate) async fn begin(settings: &Settings, folder: &DataFolder) -> Result<Self> {
        let certificate = match (&settings.tls_cert.value, &settings.tls_key.value) {
            (Some(certificate), Some(key)) => {
                let certificate = Certificate::read(certificate, key)?;
                if secret_files::check_named(key)? {
                    tracing::warn!(
                        key = %key.display(),
                        "every user of this machine may read the TLS key: `chmod o-r` prevents that"
                    );
                }
                Some(certificate)
            }
            // The settings have both or none.
            _ => None,
        };
        let address = settings.listen.value;
        let is_default = settings.listen.source == SettingSource::Default;
        let (local, remote) = match (certificate, address.ip().is_loopback()) {
            // A certificate without `--listen`: its listener gets any port, and the page keeps the usual one.
            (Some(certificate), _) if is_default => {
                (bind_usual(folder).await?, Some((bind((Ipv4Addr::LOCALHOST, 0).into()).await?, Some(certificate))))
            }
            (certificate @ Some(_), _) | (certificate @ None, false) => {
                let remote = bind(address).await?;
                (bind_usual(folder).await?, Some((remote, certificate)))
            }
            (None, true) if is_default => (bind_usual(folder).await?, None),
            (None, true) => (bind(address).await?, None),
        };
        if let Err(error) = local.local_addr().map_err(Into::into).and_then(|local| folder.store_port(local.port())) {
            tracing::warn!("the next start may choose another port: {error:#}");
        }
        let host_names = HostNames::listed(settings.host_names.value.clone());
        Ok(Self { local, remote, socket: socket(folder), host_names })
    }

    pub(crate) fn find(&self) -> Result<ListenAddresses> {
        let address = |listener: &TcpListener| listener.local_addr().context("the listener has no address");
        let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let remote = match &self.remote {
            Some((listener, Some(certificate))) => {
                let address = address(listener)?;
                Some(RemoteAddress {
                    http: format!("https://{address}"),
                    ws: format!("wss://{address}/ws"),
                    certificate: Some(Fingerprint::of(certificate.der()).to_string()),
                    name: self.host_names.clone().or_of(certificate).shown(&machine),
                })
            }
            Some((listener, None)) => {
                let address = address(listener)?;
                Some(RemoteAddress {
                    http: format!("http://{address}"),
                    ws: format!("ws://{address}/ws"),
                    certificate: None,
                    name: self.host_names.shown(&machine),
                })
            }
            None => None,
        };
        Ok(ListenAddresses {
            local: address(&self.local)?,
            remote,
            socket: self.socket.as_ref().map(|(_, path)| path.clone()),
        })
    }

    /// Serves clients on all listeners.
    pub(crate) fn serve(self, serving: &HostServer, token: &HostToken, settings: &Settings) -> Result<()> {
        let local = self.find()?.local;
        serving.listen(AccessPolicy::loopback(token.clone(), local), Box::new(self.local));
        let remote = |privacy, names| {
            let access = AccessPolicy::remote(token.clone(), privacy, names);
            if settings.query_token.value { access.with_query_token() } else { access }
        };
        match self.remote {
            Some((listener, Some(certificate))) => {
                let names = self.host_names.or_of(&certificate);
                let access = remote(TransportSecurity::Tls, names);
                serving.listen(access, Box::new(TlsListener::new(listener, &certificate)));
            }
            Some((listener, None)) => {
                tracing::warn!("traffic of other machines, including the token, is not encrypted (--insecure)");
                serving.listen(remote(TransportSecurity::None, self.host_names), Box::new(listener));
            }
            None => {}
        }
        if let Some((socket, _)) = self.socket {
            serving.listen(AccessPolicy::owner(), Box::new(socket));
        }
        Ok(())
    }
}

/// Listens on the loopback port where pages and bookmarks expect this data folder's host.
///
/// That is the port of its last start, or the default one. If other programs use them, any free port is taken.
async fn bind_usual(folder: &DataFolder) -> Result<TcpListener> {
    bind_first_free([folder.last_port(), Some(DEFAULT_PORT)].into_iter().flatten()).await
}

async fn bind_first_free(ports: impl Iterator<Item = u16>) -> Result<TcpListener> {
    for port in ports {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
            Ok(listener) => return Ok(listener),
            Err(error) if matches!(error.kind(), ErrorKind::AddrInUse | ErrorKind::PermissionDenied) => {
                tracing::warn!(port, %error, "the usual port cannot be used: trying another one");
            }
            Err(error) => return Err(error).with_context(|| format!("127.0.0.1:{port} cannot be used to listen on")),
        }
    }
    bind((Ipv4Addr::LOCALHOST, 0).into()).await
}

async fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("{address} cannot be used to listen on"))
}

/// The socket in the data folder. The host works without it, on loopback.
fn socket(folder: &DataFolder) -> Option<(UnixSocket, PathBuf)> {
    let path = folder.socket_path();
    match UnixSocket::bind(&path) {
        Ok(socket) => Some((socket, path)),
        Err(error) => {
            // The usual reason is a path of more than about 100 bytes, the limit of most systems.
            tracing::info!(path = %path.display(), %error, "there is no socket in the data folder: loopback is used instead");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_free_port_is_taken_and_another_one_where_all_are_in_use() {
        let taken = bind((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let taken = (taken.local_addr().unwrap().port(), taken);
        let free = bind((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap().local_addr().unwrap().port();
        let port =
            async |ports: &[u16]| bind_first_free(ports.iter().copied()).await.unwrap().local_addr().unwrap().port();
        assert_eq!(port(&[free, taken.0]).await, free);
        assert_eq!(port(&[taken.0, free]).await, free);
        assert!(![0, taken.0].contains(&port(&[taken.0]).await));
        assert!(port(&[]).await > 0);
    }
}
