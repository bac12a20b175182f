//! A running host, as other processes find and ask it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use grove_client::{ByteStream, Credentials, HostAddress};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use tokio::net::{TcpStream, UnixStream};

use crate::data_folder;

/// Where a host can be reached. Lies in the data folder for its owner alone, since it holds the token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostEndpoint {
    pub(crate) ws: String,
    pub(crate) http: String,
    pub(crate) token: String,
    pub(crate) pid: u32,
    /// Where Copilot SDKs find a server, where they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) copilot: Option<String>,
    /// Its own socket, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unix: Option<PathBuf>,
    /// Where other machines find it, where they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) remote: Option<RemoteAddress>,
}

/// Where other machines find a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RemoteAddress {
    pub(crate) ws: String,
    pub(crate) http: String,
    /// The fingerprint of what it shows. Without one there is no TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) certificate: Option<String>,
}

/// A connection to a host, and the name that the host goes by there.
pub(crate) struct HostStream {
    pub(crate) stream: Box<dyn ByteStream>,
    pub(crate) name: String,
}

/// What a host says of itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Health {
    pub(crate) version: String,
    pub(crate) pid: u32,
    pub(crate) sessions: usize,
    /// How many of them are in memory. A host from before this was told says nothing of it.
    #[serde(default)]
    pub(crate) loaded_sessions: usize,
    pub(crate) running_turns: usize,
    pub(crate) connections: usize,
    pub(crate) server_seq: u64,
    /// Why nothing can be stored at the moment.
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
}

/// How long a host may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long its answer may be.
const MAX_BYTES: usize = 64 << 10;

impl HostEndpoint {
    /// Where the web page is, with the token. A browser keeps what is behind the `#` to itself: it is sent nowhere.
    pub(crate) fn page(&self) -> String {
        format!("{}/#token={}", self.http, self.token)
    }

    /// Connects to it: through its socket, or else through loopback.
    pub(crate) async fn dial(&self) -> Result<HostStream> {
        if let Some(path) = self.socket() {
            let stream = UnixStream::connect(path).await.context("the host does not answer")?;
            return Ok(HostStream { stream: Box::new(stream), name: "localhost".to_owned() });
        }
        let address = self.address()?;
        let stream = TcpStream::connect(address).await.context("the host does not answer")?;
        // A message is written in one piece: waiting for more only costs time.
        stream.set_nodelay(true)?;
        Ok(HostStream { stream: Box::new(stream), name: address.to_owned() })
    }

    /// The same for a client.
    pub(crate) fn for_client(&self) -> Result<grove_client::Endpoint> {
        let endpoint = match self.socket() {
            Some(path) => grove_client::Endpoint::new(&HostAddress::Unix(path.to_owned()), &Credentials::default()),
            None => grove_client::Endpoint::tcp(&self.ws, Some(&self.token)),
        };
        endpoint.context("the host's address is no address")
    }

    /// Its socket, unless somebody has removed it while the host lives. What a dead host left behind is not asked for on
    /// loopback: somebody else may have its port by now, who would be told the token.
    fn socket(&self) -> Option<&Path> {
        let is_lost = |path: &Path| !path.exists() && path.parent().is_some_and(data_folder::is_taken);
        self.unix.as_deref().filter(|path| !is_lost(path))
    }

    /// Its address on loopback.
    pub(crate) fn address(&self) -> Result<&str> {
        self.http.strip_prefix("http://").context("the host's address is no http address")
    }

    /// Asks the host how it is. An error means that nobody answers there, or somebody else does.
    pub(crate) async fn health(&self) -> Result<Health> {
        tokio::time::timeout(TIMEOUT, self.ask()).await.context("the host did not answer in time")?
    }

    async fn ask(&self) -> Result<Health> {
        let HostStream { stream, name } = self.dial().await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let request = hyper::Request::get("/healthz")
            .header("host", name)
            .header("authorization", format!("Bearer {}", self.token))
            .body(Empty::<Bytes>::new())?;
        let exchange = async {
            let response = sender.send_request(request).await?;
            if !response.status().is_success() {
                bail!("the host answered {}", response.status());
            }
            let body = Limited::new(response.into_body(), MAX_BYTES).collect().await;
            let body = body.map_err(|error| anyhow::anyhow!("the host's answer broke off: {error}"))?;
            serde_json::from_slice(&body.to_bytes()).context("the host's answer is not understood")
        };
        tokio::select! {
            answer = exchange => answer,
            // The connection only ends first when it broke.
            ended = connection => { ended?; bail!("the host closed the connection") }
        }
    }
}
