//! Export of spans and metrics to an OpenTelemetry collector: OTLP over HTTP, encoded as JSON.
//!
//! If the collector is away or too slow, spans and metrics are dropped: nothing in the host waits for it.

mod metrics;
pub(crate) mod spans;

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, anyhow, bail};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::net::TcpStream;

pub(crate) use metrics::export as export_metrics;
pub(crate) use spans::{SpanExporter, exporter, is_exported};

/// The time for one request.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// The table `[telemetry]` of `grove.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct TelemetryConfig {
    /// The address of a collector, `http://HOST:PORT`, if spans are exported.
    pub(crate) otlp_endpoint: Option<String>,
}

/// Reads the table. Errors name the file and the key.
pub(crate) fn read(file: &Path, table: Option<&toml::Value>) -> Result<TelemetryConfig> {
    let mut telemetry = TelemetryConfig::default();
    let Some(table) = table else { return Ok(telemetry) };
    let file = file.display();
    let table = table.as_table().ok_or_else(|| anyhow!("{file}: `telemetry` must be a table [telemetry]"))?;
    for (key, value) in table {
        match key.as_str() {
            "otlp-endpoint" => {
                let address = value.as_str().filter(|address| authority(address).is_some());
                let wrong = || anyhow!("{file}: [telemetry] otlp-endpoint must be http://HOST:PORT");
                telemetry.otlp_endpoint = Some(address.ok_or_else(wrong)?.trim_end_matches('/').to_owned());
            }
            unknown => bail!("{file}: [telemetry] has no `{unknown}`; there is: otlp-endpoint"),
        }
    }
    Ok(telemetry)
}

/// Host and port of an endpoint.
fn authority(endpoint: &str) -> Option<&str> {
    let authority = endpoint.strip_prefix("http://")?.trim_end_matches('/');
    let (host, port) = authority.rsplit_once(':')?;
    // The address is shown, so it must not hold a password.
    (!host.is_empty() && !authority.contains(['/', '@']) && port.parse::<u16>().is_ok()).then_some(authority)
}

/// A collector, as one exporter sees it.
struct Collector {
    authority: String,
    /// The path of the exported data.
    path: &'static str,
    /// The name of that data in the log.
    content: &'static str,
    is_reachable: bool,
}

impl Collector {
    fn new(authority: String, path: &'static str, content: &'static str) -> Self {
        Self { authority, path, content, is_reachable: true }
    }

    /// Sends a request, and says whether the collector has accepted it. The log has each change of that, once.
    async fn deliver(&mut self, body: String) -> bool {
        let sent = tokio::time::timeout(TIMEOUT, self.send(body)).await;
        let sent = sent.unwrap_or_else(|_| Err(anyhow!("it did not answer in time")));
        match &sent {
            Ok(()) if !self.is_reachable => tracing::info!("{} are exported again", self.content),
            Err(error) if self.is_reachable => {
                tracing::warn!(collector = %self.authority, "{} are not exported: {error:#}", self.content);
            }
            Ok(()) | Err(_) => {}
        }
        self.is_reachable = sent.is_ok();
        self.is_reachable
    }

    async fn send(&self, body: String) -> Result<()> {
        let stream = TcpStream::connect(&self.authority).await.context("the collector does not answer")?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let request = hyper::Request::post(self.path)
            .header("host", &self.authority)
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))?;
        tokio::select! {
            response = sender.send_request(request) => match response?.status() {
                status if status.is_success() => Ok(()),
                status => bail!("the collector answered {status}"),
            },
            // The connection only ends first if it broke.
            ended = connection => { ended?; bail!("the collector closed the connection") }
        }
    }
}

/// The program, as every request names it.
fn resource() -> Value {
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    json!({"attributes": [text("service.name", "grove"), text("service.version", env!("CARGO_PKG_VERSION"))]})
}

fn nanoseconds(time: SystemTime) -> String {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_host_and_a_port_without_tls() {
        let of = |text: &str| read(Path::new("grove.toml"), text.parse::<toml::Table>().unwrap().get("telemetry"));
        let set = of("[telemetry]\notlp-endpoint = 'http://127.0.0.1:4318/'").unwrap();
        assert_eq!(set.otlp_endpoint.as_deref(), Some("http://127.0.0.1:4318"));
        assert_eq!(of("").unwrap(), TelemetryConfig::default());
        for bad in
            ["127.0.0.1:4318", "https://a:1", "http://a", "http://a:1/x", "http://:1", "http://a:x", "http://b:c@a:1"]
        {
            let error = of(&format!("[telemetry]\notlp-endpoint = '{bad}'")).unwrap_err().to_string();
            assert!(error.contains("otlp-endpoint"), "{bad}: {error}");
        }
        of("[telemetry]\nx = 1").unwrap_err();
    }
}
