//! The rows, one module for each side of the host.

mod agents;
mod clients;
mod editors;
mod files;
mod host;
mod hub;
mod messages;
mod notify;
mod program;
mod rules;

use crate::LimitGroup;

/// Every limit, by subject.
pub fn table() -> Vec<LimitGroup> {
    let limits = grove_host::Limits::default();
    let parts = [
        clients::groups(&limits),
        messages::groups(&limits),
        host::groups(&limits),
        hub::groups(),
        notify::groups(),
        editors::groups(),
        agents::groups(&limits),
        rules::groups(),
        files::groups(&limits),
        program::groups(),
    ];
    parts.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::page;

    /// Set to write the page instead of comparing it.
    const WRITE: &str = "GROVE_LIMITS_WRITE";

    #[test]
    fn the_page_of_limits_is_made_from_the_table() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/limits.md");
        let expected = page(&table());
        if std::env::var_os(WRITE).is_some() {
            std::fs::write(&path, &expected).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(written == expected, "docs/limits.md differs from the table: run `make limits`");
    }

    #[test]
    fn each_limit_has_a_name_of_its_own_and_says_what_happens_beyond_it() {
        let table = table();
        let limits: Vec<_> = table.iter().flat_map(|group| &group.limits).collect();
        let names: BTreeSet<_> = limits.iter().map(|limit| limit.name).collect();
        assert_eq!(names.len(), limits.len(), "two limits have one name");
        for limit in limits {
            let is_name = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
            assert!(limit.name.chars().all(is_name), "{limit:?}");
            assert!(!limit.per.is_empty() && limit.beyond.len() > 10 && !limit.beyond.contains('|'), "{limit:?}");
        }
    }

    #[test]
    fn every_field_of_the_configured_limits_is_in_the_table() {
        let shown = format!("{:#?}", grove_host::Limits::default());
        // The fields of the struct itself are indented once.
        let fields =
            shown.lines().filter_map(|line| line.strip_prefix("    ")?.split_once(": ")).map(|(field, _)| field);
        let fields: Vec<_> = fields.filter(|field| !field.starts_with(' ')).collect();
        assert!(fields.len() > 40, "{shown}");
        let table = table();
        for field in fields {
            let name = field.replace('_', "-");
            let limits = table.iter().flat_map(|group| &group.limits);
            assert!(limits.into_iter().any(|limit| limit.name == name), "`Limits::{field}` has no row `{name}`");
        }
    }

    /// The names that a refusal gives as `data.limit`.
    #[test]
    fn every_bound_of_a_refusal_is_in_the_table() {
        let table = table();
        let has = |name: &str| table.iter().flat_map(|group| &group.limits).any(|limit| limit.name == name);
        for name in [
            "subscriptions",
            "token-subscriptions",
            "watches",
            "token-open-requests",
            "large-calls",
            "token-large-calls",
            "token-starts",
        ] {
            assert!(has(name), "{name}");
        }
    }
}
