//! The reference page of all metrics, `docs/metrics.md`.

use std::fmt::Write;

use crate::table::DEFINITIONS;

/// The text of `docs/metrics.md`. A test compares it with the file.
pub fn reference() -> String {
    let mut page = "# Metrics\n\n\
        What `GET /metrics` of a host answers, in Prometheus' text format. [docs/watching.md](watching.md) says how to \
        scrape it.\nThis page is generated from `crates/metrics/src/table.rs`:\n\
        `GROVE_METRICS_WRITE=1 cargo test -p grove-metrics --test it` writes it again.\n\n\
        Durations are in seconds. A label has the listed values and no others: nothing that a client sends becomes a \
        label.\n\n\
        | metric | type | label | meaning |\n|---|---|---|---|\n"
        .to_owned();
    for definition in DEFINITIONS {
        let label = match (definition.label)() {
            Some(("version", _)) => "`version`".to_owned(),
            Some((name, values)) => {
                let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
                format!("`{name}`: {}", values.join(", "))
            }
            None => String::new(),
        };
        // A string takes everything.
        writeln!(page, "| `{}` | {} | {label} | {} |", definition.name, definition.kind, definition.help).ok();
    }
    page
}
