//! The metrics as a scraper sees them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use grove_metrics::{CloseLabel, Metrics, ProtocolLabel, reference};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

#[test]
fn the_reference_page_is_generated_from_the_table() {
    let file = docs().join("metrics.md");
    if std::env::var_os("GROVE_METRICS_WRITE").is_some() {
        std::fs::write(&file, reference()).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        written == reference(),
        "docs/metrics.md is out of date: set GROVE_METRICS_WRITE=1 and run this test again"
    );
}

#[test]
fn every_sample_has_help_and_a_type_before_it_and_every_name_is_there_once() {
    let metrics = Metrics::default();
    let text = metrics.encode();
    let (mut named, mut current) = (BTreeSet::new(), String::new());
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, words) = help.split_once(' ').unwrap();
            assert!(words.ends_with('.') && words.len() > 10, "{line}");
            assert!(named.insert(name.to_owned()), "{name} is there twice");
            current = name.to_owned();
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(name, current);
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
        } else {
            let name = line.split(['{', ' ']).next().unwrap();
            assert!(name.starts_with(&current), "{line} does not belong to {current}");
            line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
        }
    }
    assert!(named.len() > 40, "{named:?}");
}

#[test]
fn counts_are_by_label_and_histograms_are_cumulative() {
    let metrics = Metrics::default();
    metrics.connections.of(ProtocolLabel::Ahp).increment();
    metrics.connections_closed.of(CloseLabel::Behind).add(3);
    metrics.journal_sync_seconds.observe(Duration::from_micros(700));
    metrics.journal_sync_seconds.observe(Duration::from_secs(7_200));
    let text = metrics.encode();
    for line in [
        "grove_connections{dialect=\"ahp\"} 1",
        "grove_connections{dialect=\"v1\"} 0",
        "grove_connections_closed_total{reason=\"behind\"} 3",
        "grove_journal_sync_seconds_bucket{le=\"0.0005\"} 0",
        "grove_journal_sync_seconds_bucket{le=\"0.001\"} 1",
        "grove_journal_sync_seconds_bucket{le=\"3600\"} 1",
        "grove_journal_sync_seconds_bucket{le=\"+Inf\"} 2",
        "grove_journal_sync_seconds_sum 7200.0007",
        "grove_journal_sync_seconds_count 2",
    ] {
        assert!(text.lines().any(|written| written == line), "{line} is missing in\n{text}");
    }
}

#[test]
fn the_dashboard_asks_for_metrics_that_exist() {
    let metrics = Metrics::default().encode();
    let known: BTreeSet<&str> =
        metrics.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split(' ').next()).collect();
    let text = std::fs::read_to_string(docs().join("grafana/grove.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let queries = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let mut asked = BTreeSet::new();
    for query in queries.map(|target| target["expr"].as_str().unwrap()) {
        let words = query.split(|sign: char| !(sign.is_ascii_alphanumeric() || sign == '_'));
        for word in words.filter(|word| word.starts_with("grove_") || word.starts_with("process_")) {
            let whole =
                ["_bucket", "_sum", "_count"].iter().find_map(|suffix| word.strip_suffix(suffix)).unwrap_or(word);
            assert!(known.contains(word) || known.contains(whole), "{word} of {query:?} does not exist");
            asked.insert(whole.to_owned());
        }
    }
    assert!(asked.len() > 20, "{asked:?}");
}
