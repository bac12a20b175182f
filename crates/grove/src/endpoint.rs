//! The endpoint of a running host, for other processes of this machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use grove_client::{ByteStream, Credentials, HostAddress};
use grove_wire::x_grove::presence::AttendedSession;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use tokio::net::{TcpStream, UnixStream};

use crate::data_folder;

/// The addresses of a host. The file is private to its owner, since it contains the token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostEndpoint {
    pub(crate) ws: String,
    pub(crate) http: String,
    pub(crate) token: String,
    pub(crate) pid: u32,
    /// The address of the Copilot SDK server, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) copilot: Option<String>,
    /// The host's socket, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unix: Option<PathBuf>,
    /// The address for other machines, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) remote: Option<RemoteAddress>,
}

/// The address of a host for other machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RemoteAddress {
    pub(crate) ws: String,
    pub(crate) http: String,
    /// The fingerprint of the host's certificate. Without one there is no TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) certificate: Option<String>,
    /// A name under which the host accepts requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
}

/// A connection to a host, and the host name for requests on it.
pub(crate) struct HostStream {
    pub(crate) stream: Box<dyn ByteStream>,
    pub(crate) name: String,
}

/// The host's report about itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Health {
    pub(crate) version: String,
    pub(crate) pid: u32,
    pub(crate) sessions: usize,
    /// The number of sessions in memory. Older hosts do not report it.
    #[serde(default)]
    pub(crate) loaded_sessions: usize,
    pub(crate) running_turns: usize,
    pub(crate) connections: usize,
    pub(crate) server_seq: u64,
    /// The reason why nothing can be stored at the moment.
    #[serde(default)]
    pub(crate) storage_problem: Option<String>,
    /// The first damage that the host found when it started, and the number of all findings.
    #[serde(default)]
    pub(crate) damage: Vec<String>,
    #[serde(default)]
    pub(crate) damage_count: usize,
    /// The first sessions in which everything is allowed without a question, and the number of all of them.
    #[serde(default)]
    pub(crate) allow_all_sessions: Vec<String>,
    #[serde(default)]
    pub(crate) allow_all_count: usize,
    /// The first sessions with attached clients, and the number of all of them.
    #[serde(default)]
    pub(crate) attended_sessions: Vec<AttendedSession>,
    #[serde(default)]
    pub(crate) attended_count: usize,
}

/// How long a host may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum size of an answer.
const MAX_BYTES: usize = 64 << 10;
/// The maximum size of the metrics: their number is fixed.
const MAX_METRICS_BYTES: usize = 1 << 20;

impl HostEndpoint {
    /// The address of the web page, without anything that gives access.
    pub(crate) fn page(&self) -> String {
        format!("{}/", self.http)
    }

    /// The address of the web page, with a one-time code after the `#`, which browsers never send.
    pub(crate) fn page_with_code(&self, code: &str) -> String {
        format!("{}/#code={code}", self.http)
    }

    /// Connects to the socket, or else to the loopback port.
    pub(crate) async fn dial(&self) -> Result<HostStream> {
        if let Some(path) = self.socket() {
            let stream = UnixStream::connect(path).await.context("the host does not answer")?;
            return Ok(HostStream { stream: Box::new(stream), name: "localhost".to_owned() });
        }
        let address = self.address()?;
        let stream = TcpStream::connect(address).await.context("the host does not answer")?;
        // Messages are written in one piece: waiting for more only costs time.
        stream.set_nodelay(true)?;
        Ok(HostStream { stream: Box::new(stream), name: address.to_owned() })
    }

    /// The endpoint for a client.
    pub(crate) fn for_client(&self) -> Result<grove_client::Endpoint> {
        let endpoint = match self.socket() {
            Some(path) => grove_client::Endpoint::new(&HostAddress::Unix(path.to_owned()), &Credentials::default()),
            None => grove_client::Endpoint::tcp(&self.ws, Some(&self.token)),
        };
        endpoint.context("the host's address is invalid")
    }

    /// The host's socket, unless it was removed while the host runs.
    ///
    /// After a host's death its loopback port is not used: another program may have taken it, and would get the token.
    fn socket(&self) -> Option<&Path> {
        let is_lost = |path: &Path| !path.exists() && path.parent().is_some_and(data_folder::is_taken);
        self.unix.as_deref().filter(|path| !is_lost(path))
    }

    /// The loopback address.
    pub(crate) fn address(&self) -> Result<&str> {
        self.http.strip_prefix("http://").context("the host's address is not an http address")
    }

    /// Requests the host's metrics.
    pub(crate) async fn metrics(&self) -> Result<String> {
        let body = tokio::time::timeout(TIMEOUT, self.get("/metrics", MAX_METRICS_BYTES));
        let body = body.await.context("the host did not answer in time")??;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// Requests the host's health. An error means that no host answers there, or another program does.
    pub(crate) async fn health(&self) -> Result<Health> {
        tokio::time::timeout(TIMEOUT, self.ask()).await.context("the host did not answer in time")?
    }

    async fn ask(&self) -> Result<Health> {
        serde_json::from_slice(&self.get("/healthz", MAX_BYTES).await?).context("the host's answer is invalid")
    }

    async fn get(&self, path: &str, max_bytes: usize) -> Result<Bytes> {
        let HostStream { stream, name } = self.dial().await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let request = hyper::Request::get(path)
            .header("host", name)
            .header("authorization", format!("Bearer {}", self.token))
            .body(Empty::<Bytes>::new())?;
        let exchange = async {
            let response = sender.send_request(request).await?;
            if !response.status().is_success() {
                bail!("the host answered {}", response.status());
            }
            let body = Limited::new(response.into_body(), max_bytes).collect().await;
            let body = body.map_err(|error| anyhow::anyhow!("the host's answer was cut off: {error}"))?;
            Ok(body.to_bytes())
        };
        tokio::select! {
            answer = exchange => answer,
            // The connection only ends first if it broke.
            ended = connection => { ended?; bail!("the host closed the connection") }
        }
    }
}
