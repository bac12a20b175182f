//! Export of metrics: all of them at the start, and then each minute.

use std::time::{Duration, SystemTime};

use grove_host::Host;
use grove_metrics::{MetricFamily, Sample};
use serde_json::{Value, json};

use super::{Collector, authority, nanoseconds, resource};

/// The time between two exports.
const INTERVAL: Duration = Duration::from_secs(60);
/// The path of metrics below an endpoint.
const METRICS: &str = "/v1/metrics";
/// The numbers of a counter or histogram are those since the start.
const CUMULATIVE: u8 = 2;

/// Sends the metrics of a host as long as it runs. Numbers that cannot be sent are in the next ones.
pub(crate) async fn export(host: Host, endpoint: String) {
    let Some(authority) = authority(&endpoint) else { return };
    let mut collector = Collector::new(authority.to_owned(), METRICS, "metrics");
    let start = SystemTime::now();
    while host.refresh_metrics().await.is_ok() {
        let body = request(&host.env().metrics.families(), start, SystemTime::now());
        collector.deliver(body).await;
        tokio::time::sleep(INTERVAL).await;
    }
}

/// A request of OTLP with these metrics.
fn request(families: &[MetricFamily], start: SystemTime, now: SystemTime) -> String {
    let times = (nanoseconds(start), nanoseconds(now));
    let metrics: Vec<Value> = families.iter().map(|family| metric(family, &times)).collect();
    let scope = json!({"scope": {"name": "grove"}, "metrics": metrics});
    json!({"resourceMetrics": [{"resource": resource(), "scopeMetrics": [scope]}]}).to_string()
}

/// A metric under the name that it has for Prometheus.
fn metric(family: &MetricFamily, times: &(String, String)) -> Value {
    let numbers = || family.samples.iter().map(|sample| number(sample, times)).collect::<Vec<_>>();
    let (kind, data) = match family.kind {
        "counter" => {
            ("sum", json!({"aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": numbers()}))
        }
        "histogram" => {
            let by_label = family.samples.chunk_by(|one, other| one.label == other.label);
            let points: Vec<Value> = by_label.map(|samples| histogram(samples, times)).collect();
            ("histogram", json!({"aggregationTemporality": CUMULATIVE, "dataPoints": points}))
        }
        _ => ("gauge", json!({"dataPoints": numbers()})),
    };
    json!({"name": family.name, "description": family.help, kind: data})
}

/// One number of a counter or a gauge. 64-bit integers are strings in OTLP's JSON.
fn number(sample: &Sample, times: &(String, String)) -> Value {
    let mut point = data_point(sample, times);
    point["asInt"] = sample.value.as_str().into();
    point
}

/// A histogram of one label. The buckets of OTLP count separately, those of Prometheus everything up to their bounds.
fn histogram(samples: &[Sample], times: &(String, String)) -> Value {
    let Some(first) = samples.first() else { return Value::Null };
    let mut point = data_point(first, times);
    let (mut bounds, mut counts, mut below) = (Vec::new(), Vec::new(), 0);
    for sample in samples {
        match (sample.suffix, &sample.bound) {
            ("_bucket", Some(bound)) => {
                let up_to: u64 = sample.value.parse().unwrap_or(below);
                counts.push(up_to.saturating_sub(below).to_string());
                below = up_to;
                // The last bucket, `+Inf`, has no bound.
                bounds.extend(bound.parse::<f64>().ok().filter(|bound| bound.is_finite()));
            }
            ("_sum", _) => point["sum"] = sample.value.parse::<f64>().unwrap_or_default().into(),
            ("_count", _) => point["count"] = sample.value.as_str().into(),
            _ => {}
        }
    }
    point["explicitBounds"] = bounds.into();
    point["bucketCounts"] = counts.into();
    point
}

fn data_point(sample: &Sample, (start, now): &(String, String)) -> Value {
    let attribute = |(key, value): (&str, &str)| json!({"key": key, "value": {"stringValue": value}});
    let attributes: Vec<Value> = sample.label.into_iter().map(attribute).collect();
    json!({"attributes": attributes, "startTimeUnixNano": start, "timeUnixNano": now})
}

#[cfg(test)]
mod tests {
    use grove_metrics::{Metrics, TurnLabel};

    use super::*;

    #[test]
    fn each_metric_is_a_sum_a_gauge_or_a_histogram_with_the_numbers_of_the_text_format() {
        let metrics = Metrics::default();
        metrics.turns_finished.of(TurnLabel::Completed).add(3);
        metrics.sessions.set(7);
        for millis in [2, 2, 700, 7_200_000] {
            metrics.turn_seconds.observe(Duration::from_millis(millis));
        }
        let text = request(&metrics.families(), SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH + INTERVAL);
        let request: Value = serde_json::from_str(&text).unwrap();
        let all = request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
        let named = |name: &str| all.iter().find(|metric| metric["name"] == name).unwrap();
        let turns = &named("grove_turns_finished_total")["sum"];
        assert_eq!((&turns["isMonotonic"], &turns["aggregationTemporality"]), (&json!(true), &json!(2)));
        let completed = &turns["dataPoints"][0];
        assert_eq!(completed["attributes"], json!([{"key": "outcome", "value": {"stringValue": "completed"}}]));
        assert_eq!((&completed["asInt"], &completed["timeUnixNano"]), (&json!("3"), &json!("60000000000")));
        assert_eq!(named("grove_sessions")["gauge"]["dataPoints"][0]["asInt"], "7");
        let point = &named("grove_turn_seconds")["histogram"]["dataPoints"][0];
        let counts: Vec<u64> = point["bucketCounts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|count| count.as_str().unwrap().parse().unwrap())
            .collect();
        assert_eq!((counts.iter().sum::<u64>(), &point["count"]), (4, &json!("4")));
        assert_eq!(counts.len(), point["explicitBounds"].as_array().unwrap().len() + 1);
        assert_eq!((counts.last(), point["sum"].as_f64()), (Some(&1), Some(7_200.704)));
    }
}
