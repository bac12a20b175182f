//! `docs/providers.md` names every property and test.

use std::path::{Path, PathBuf};

use grove_sessions::management::{ContextKeys, row_context};

use crate::provider::TestProvider;

fn document() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/providers.md")).unwrap()
}

/// The names in the first column of all tables.
fn first_column() -> Vec<String> {
    let text = document();
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
    // The list of chats is shown as one property, and a chat's interactivity is not a property of the session.
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

/// The text of all sources in a folder.
fn sources(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let text = |path: PathBuf| match path.is_dir() {
        true => sources(&path),
        false => std::fs::read_to_string(&path).unwrap_or_default(),
    };
    entries.map(text).collect()
}

#[test]
fn every_test_that_is_named_is_there() {
    let document = document();
    let (_, held) = document.split_once("| of hosts | held by |").unwrap();
    let (held, _) = held.split_once("## Groups").unwrap();
    let is_test =
        |name: &&str| name.len() > 8 && name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_');
    let named: Vec<&str> = held.split('`').skip(1).step_by(2).filter(is_test).collect();
    assert!(named.len() > 30, "{named:?}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let all = sources(&root.join("src")) + &sources(&root.join("tests"));
    for name in named {
        assert!(all.contains(&format!("fn {name}(")), "docs/providers.md names {name}, and there is no such test");
    }
}
