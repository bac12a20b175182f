//! Export of spans.
//!
//! A span is encoded when it ends and put into a bounded queue. A task sends batches.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::{Collector, authority, nanoseconds, resource};

/// The spans that may wait to be sent; the next ones are dropped.
pub(crate) const QUEUE: usize = 2_048;
/// The spans of one request.
const BATCH: usize = 256;
/// The time for which spans are gathered.
const GATHERING: Duration = Duration::from_secs(1);
/// The pause after a request that failed.
const PAUSE: Duration = Duration::from_secs(10);
/// The longest value of an attribute, in characters.
const VALUE_CHARS: usize = 256;
/// The path of spans below an endpoint.
const TRACES: &str = "/v1/traces";

/// Encodes the host's spans when they end.
pub(crate) struct SpanLayer {
    queue: mpsc::Sender<Value>,
}

/// Sends spans to a collector.
pub(crate) struct SpanExporter {
    queue: mpsc::Receiver<Value>,
    collector: Collector,
}

/// A layer for the subscriber, and the exporter of its spans.
pub(crate) fn exporter(endpoint: &str) -> Option<(SpanLayer, SpanExporter)> {
    let collector = Collector::new(authority(endpoint)?.to_owned(), TRACES, "spans");
    let (sender, receiver) = mpsc::channel(QUEUE);
    Some((SpanLayer { queue: sender }, SpanExporter { queue: receiver, collector }))
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
            if !self.collector.deliver(request).await {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// A request of OTLP with these spans.
fn request(spans: Vec<Value>) -> String {
    let scope = json!({"scope": {"name": "grove"}, "spans": spans});
    json!({"resourceSpans": [{"resource": resource(), "scopeSpans": [scope]}]}).to_string()
}
