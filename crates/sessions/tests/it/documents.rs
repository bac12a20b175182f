//! `docs/providers.md` names everything that there is.

use std::path::Path;

use grove_sessions::management::{ContextKeys, row_context};

use crate::provider::TestProvider;

/// The names in the first column of all tables.
fn first_column() -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/providers.md");
    let text = std::fs::read_to_string(file).unwrap();
    let cells = text.lines().filter_map(|line| line.trim().strip_prefix("| `")?.split('|').next().map(str::to_owned));
    let names =
        cells.flat_map(|cell| cell.split(',').map(|name| name.trim_matches([' ', '`']).to_owned()).collect::<Vec<_>>());
    names.collect()
}

#[test]
fn every_property_of_a_session_has_its_row() {
    let named = first_column();
    let source = TestProvider::new("p").make("s", "/work/app");
    let state = serde_json::to_value(&*source.session().state()).unwrap();
    let of_state = state.as_object().unwrap().keys().map(String::as_str);
    let of_chat = state["mainChat"].as_object().unwrap().keys().map(String::as_str);
    // The list of chats is shown as one property, and what a person may do with one is no property of the session.
    let shown = of_state.chain(of_chat).filter(|name| !["moreChats", "interactivity"].contains(name));
    let fixed = ["sessionId", "resource", "providerId", "createdAt", "chats", "mainChat", "chatError"];
    for name in shown.chain(fixed) {
        let name = if name == "githubInfo" { "gitHubInfo" } else { name };
        assert!(named.iter().any(|known| known == name), "docs/providers.md has no row {name}");
    }
}

#[test]
fn every_context_key_has_its_row() {
    let named = first_column();
    let source = TestProvider::new("p").make("s", "/work/app");
    let of_row = row_context(&source.session()).map(|(name, _)| name);
    for name in ContextKeys::default().entries().map(|(name, _)| name).into_iter().chain(of_row) {
        assert!(named.iter().any(|known| known == name), "docs/providers.md has no row {name}");
    }
}
