//! Export of spans to an OpenTelemetry collector: OTLP over HTTP, encoded as JSON.
//!
//! A span is encoded when it ends and put into a bounded queue. A task sends batches. If the collector is away or too
//! slow, spans are dropped: nothing in the host waits for it.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, anyhow, bail};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// The spans that may wait to be sent; the next ones are dropped.
pub(crate) const QUEUE: usize = 2_048;
/// The spans of one request.
const BATCH: usize = 256;
/// The time for which spans are gathered.
const GATHERING: Duration = Duration::from_secs(1);
/// The time for one request.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);
/// The pause after a request that failed.
const PAUSE: Duration = Duration::from_secs(10);
/// The longest value of an attribute, in characters.
const VALUE_CHARS: usize = 256;
/// The path of spans below an endpoint.
const TRACES: &str = "/v1/traces";

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

/// Encodes the host's spans when they end.
pub(crate) struct SpanLayer {
    queue: mpsc::Sender<Value>,
}

/// Sends spans to a collector.
pub(crate) struct SpanExporter {
    queue: mpsc::Receiver<Value>,
    authority: String,
}

/// A layer for the subscriber, and the exporter of its spans.
pub(crate) fn exporter(endpoint: &str) -> Option<(SpanLayer, SpanExporter)> {
    let authority = authority(endpoint)?.to_owned();
    let (sender, receiver) = mpsc::channel(QUEUE);
    Some((SpanLayer { queue: sender }, SpanExporter { queue: receiver, authority }))
}

/// Says whether a span or an event is exported: spans of Grove's own crates are.
pub(crate) fn is_exported(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && metadata.target().starts_with("grove")
}

/// A span that has not ended.
struct OpenSpan {
    trace: String,
    id: String,
    parent: Option<String>,
    start: SystemTime,
    attributes: Vec<Value>,
}

struct AttributeVisitor<'a>(&'a mut Vec<Value>);

impl AttributeVisitor<'_> {
    fn push(&mut self, field: &Field, value: Value) {
        self.0.push(json!({"key": format!("grove.{}", field.name()), "value": value}));
    }
}

impl Visit for AttributeVisitor<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let text: String = format!("{value:?}").chars().take(VALUE_CHARS).collect();
        self.push(field, json!({"stringValue": text}));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let text: String = value.chars().take(VALUE_CHARS).collect();
        self.push(field, json!({"stringValue": text}));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field, json!({"intValue": value.to_string()}));
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let parent = span.parent().and_then(|parent| {
            let extensions = parent.extensions();
            extensions.get::<OpenSpan>().map(|open| (open.trace.clone(), open.id.clone()))
        });
        let (trace, parent) = parent.unzip();
        let mut open = OpenSpan {
            trace: trace.unwrap_or_else(random_hex::<16>),
            id: random_hex::<8>(),
            parent,
            start: SystemTime::now(),
            attributes: Vec::new(),
        };
        attributes.record(&mut AttributeVisitor(&mut open.attributes));
        span.extensions_mut().insert(open);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<OpenSpan>() {
            values.record(&mut AttributeVisitor(&mut open.attributes));
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(open) = span.extensions_mut().remove::<OpenSpan>() else { return };
        let encoded = json!({
            "traceId": open.trace,
            "spanId": open.id,
            "parentSpanId": open.parent.unwrap_or_default(),
            "name": span.name(),
            // An internal operation.
            "kind": 1,
            "startTimeUnixNano": nanoseconds(open.start),
            "endTimeUnixNano": nanoseconds(SystemTime::now()),
            "attributes": open.attributes,
        });
        // A full queue: the collector is away or too slow.
        self.queue.try_send(encoded).ok();
    }
}

fn nanoseconds(time: SystemTime) -> String {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}

/// Random bytes in hexadecimal. Without randomness they are zero, which collectors ignore.
fn random_hex<const N: usize>() -> String {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).ok();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl SpanExporter {
    /// Sends spans as long as the host runs. A batch that cannot be sent is dropped.
    pub(crate) async fn run(mut self) {
        let mut batch = Vec::with_capacity(BATCH);
        let mut is_reachable = true;
        while self.queue.recv_many(&mut batch, BATCH).await > 0 {
            if batch.len() < BATCH {
                tokio::time::sleep(GATHERING).await;
                while batch.len() < BATCH
                    && let Ok(span) = self.queue.try_recv()
                {
                    batch.push(span);
                }
            }
            let request = request(std::mem::take(&mut batch));
            let sent = tokio::time::timeout(TIMEOUT, self.send(request)).await;
            let sent = sent.unwrap_or_else(|_| Err(anyhow!("it did not answer in time")));
            match &sent {
                Ok(()) if !is_reachable => tracing::info!("spans are exported again"),
                // Once, not for every batch.
                Err(error) if is_reachable => {
                    tracing::warn!(collector = %self.authority, "spans are not exported: {error:#}");
                }
                Ok(()) | Err(_) => {}
            }
            is_reachable = sent.is_ok();
            if !is_reachable {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    async fn send(&self, body: String) -> Result<()> {
        let stream = TcpStream::connect(&self.authority).await.context("the collector does not answer")?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let request = hyper::Request::post(TRACES)
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

/// A request of OTLP with these spans.
fn request(spans: Vec<Value>) -> String {
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let resource = [text("service.name", "grove"), text("service.version", env!("CARGO_PKG_VERSION"))];
    let scope = json!({"scope": {"name": "grove"}, "spans": spans});
    json!({"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": [scope]}]}).to_string()
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
