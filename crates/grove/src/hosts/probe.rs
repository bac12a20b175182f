//! Probing a host: whether it answers, its version, and the number of its sessions.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use grove_client::{
    Ahp, Backoff, CertificateError, Client, ConnectError, Credentials, Endpoint, Fingerprint, HostAddress, Options,
    TransportError,
};
use grove_wire::ahp::Implementation;

use super::KnownHost;

/// How long a probe may take. A connection through SSH takes a few round trips.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The state of a host that answers.
#[derive(Clone, Debug)]
pub(crate) struct HostProbe {
    /// The program and its version, if the host reports them.
    pub(crate) program: Option<Implementation>,
    pub(crate) sessions: usize,
}

/// Probes a host. The error says why it cannot be used.
pub(crate) async fn probe(host: &KnownHost) -> Result<HostProbe> {
    let ask = async {
        let options = Options { reconnect: Backoff::never(), ..Options::default() };
        let client = Client::connect(host.endpoint()?, Ahp::default(), options).await?;
        let sessions = client.sessions();
        sessions.refresh().await?;
        let program = client.server().and_then(|server| server.info);
        let probe_result = HostProbe { program, sessions: sessions.read(|list| list.iter().count()) };
        client.close().await;
        Ok(probe_result)
    };
    tokio::time::timeout(TIMEOUT, ask).await.context("the host did not answer in time")?
}

/// The certificate that the host at an address shows, for a person to compare.
pub(crate) async fn shown_certificate(address: &HostAddress) -> Result<Fingerprint> {
    let endpoint = Endpoint::new(address, &Credentials::default())?;
    let options = Options { reconnect: Backoff::never(), ..Options::default() };
    let connected = tokio::time::timeout(TIMEOUT, Client::connect(endpoint, Ahp::default(), options)).await;
    match connected.context("the host did not answer in time")? {
        Err(ConnectError::Open(TransportError::Certificate(CertificateError::Unpinned { shown }))) => Ok(shown),
        Err(error) => Err(error).context("cannot get the host's certificate"),
        Ok(_) => bail!("the host was accepted without a certificate"),
    }
}
