//! The spans of a host, as a subscriber of `tracing` sees them.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use grove_host::Config;
use grove_testkit::ahp;
use grove_testkit::host::{ADDRESS, TOKEN};
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};

use crate::server::Served;

/// A span that was created.
#[derive(Clone, Debug)]
struct Recorded {
    name: &'static str,
    level: Level,
    /// The name of the span around it.
    parent: Option<&'static str>,
    fields: HashMap<&'static str, String>,
    entered: i64,
    is_closed: bool,
}

/// Records the spans of the host, by their ids.
#[derive(Clone, Debug, Default)]
struct Recorder(Arc<Mutex<HashMap<u64, Recorded>>>);

struct Fields<'a>(&'a mut HashMap<&'static str, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Recorder {
    fn change(&self, id: &Id, change: impl FnOnce(&mut Recorded)) {
        // Spans of other crates are not recorded.
        if let Some(span) = self.0.lock().unwrap().get_mut(&id.into_u64()) {
            change(span);
        }
    }

    fn named(&self, name: &str) -> Vec<Recorded> {
        self.0.lock().unwrap().values().filter(|span| span.name == name).cloned().collect()
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Recorder {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let metadata = attributes.metadata();
        if !metadata.target().starts_with("grove") {
            return;
        }
        let mut recorded = Recorded {
            name: metadata.name(),
            level: *metadata.level(),
            parent: context.span(id).and_then(|span| span.parent()).map(|parent| parent.name()),
            fields: HashMap::new(),
            entered: 0,
            is_closed: false,
        };
        attributes.record(&mut Fields(&mut recorded.fields));
        // The registry uses an id again after its span was closed: that one keeps a number of its own.
        let mut spans = self.0.lock().unwrap();
        if let Some(earlier) = spans.remove(&id.into_u64()) {
            let key = u64::MAX - spans.len() as u64;
            spans.insert(key, earlier);
        }
        spans.insert(id.into_u64(), recorded);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        self.change(id, |span| values.record(&mut Fields(&mut span.fields)));
    }

    fn on_enter(&self, id: &Id, _: Context<'_, S>) {
        self.change(id, |span| span.entered += 1);
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        self.change(id, |span| span.entered -= 1);
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        self.change(&id, |span| span.is_closed = true);
    }
}

#[tokio::test]
async fn a_turn_and_its_tool_calls_are_spans_that_end_with_them() {
    let recorder = Recorder::default();
    // With one subscriber in the process, tracing asks the thread that first reaches a span whether it is wanted: threads of other tests
    // would say no for all. With two, it asks both.
    let _second = tracing::Dispatch::new(Registry::default());
    let _recording = tracing::subscriber::set_default(Registry::default().with(recorder.clone()));
    let host = Served::start(Config::default(), None).await;
    let mut client = host.client("a").await;
    client.ready_session("scripted:/s").await;
    client.run_script("scripted:/s", "t", json!([{"say": "hello"}, {"tool": {"name": "ls"}}])).await;

    let (turns, calls) = (recorder.named("turn"), recorder.named("tool_call"));
    assert_eq!((turns.len(), calls.len()), (1, 1), "{turns:?} {calls:?}");
    assert_eq!((turns[0].fields["outcome"].as_str(), turns[0].fields["turn"].as_str()), ("Completed", "t"));
    assert_eq!((calls[0].fields["outcome"].as_str(), calls[0].parent), ("Succeeded", Some("turn")));
    assert!(turns[0].is_closed && calls[0].is_closed);
    assert!(recorder.named("session").iter().any(|span| span.fields["agent"] == "scripted"));
    let connections = recorder.named("connection");
    assert!(connections.len() == 1 && connections[0].fields.contains_key("id"), "{connections:?}");
    assert_eq!((turns[0].fields["agent"].as_str(), connections[0].fields["dialect"].as_str()), ("scripted", "\"v1\""));
    let url = format!("ws://{ADDRESS}/ws?tkn={TOKEN}");
    let mut other = ahp::Client::over(Box::new(host.dial()), &url, "b").await;
    other.initialize(&[]).await;
    let dialects: Vec<_> = recorder.named("connection").iter().map(|span| span.fields["dialect"].clone()).collect();
    assert!(dialects.len() == 2 && dialects.contains(&"\"ahp\"".to_owned()), "{dialects:?}");
    drop(other);

    drop(client);
    host.until_empty().await;
    tokio::task::yield_now().await;
    assert!(recorder.named("connection").iter().all(|span| span.is_closed));
    let spans: Vec<Recorded> = recorder.0.lock().unwrap().values().cloned().collect();
    // This task runs now, so no other one may be inside of a span: one held across an await would be.
    assert!(spans.iter().all(|span| span.entered == 0), "{spans:?}");
    assert!(spans.iter().all(|span| span.level >= Level::DEBUG), "the default log has no spans: {spans:?}");
}
