//! `grove agents update`: replacing the catalog of known agents.

use std::fs;

use grove_agents::catalog::AgentCatalog;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::file_server::FileServer;
use crate::support::*;

/// A catalog of later facts: a newer Gemini CLI, one agent less, one more.
fn later() -> String {
    AgentCatalog::BUILT_IN_TEXT
        .replacen("date = \"2026", "date = \"2036", 1)
        .replace("version = \"0.61.0\"", "version = \"0.62.0\"")
        .replace("id = \"auggie\"", "id = \"brandnew\"")
}

fn show(place: &TestHome, agent: &str) -> Value {
    let ran = place.run(&["agents", "show", agent, "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn a_newer_catalog_takes_the_place_of_the_included_one_after_its_changes_were_shown() {
    let place = TestHome::new();
    let file = place.write("later.toml", later());
    let file = file.to_str().unwrap();

    let dry = place.run(&["agents", "update", file, "--dry-run"]);
    assert_eq!(dry.code, Some(0), "{}", dry.stderr);
    for line in ["changed  gemini", "  version: 0.61.0 -> 0.62.0", "added    brandnew (0.36.0)", "removed  auggie"] {
        assert!(dry.stdout.contains(line), "no {line:?} in {}", dry.stdout);
    }
    assert!(!place.data().exists(), "a dry run writes nothing");
    let asked = place.run(&["agents", "update", file]);
    assert_eq!(asked.code, Some(1));
    assert!(asked.stderr.contains("--yes"), "{}", asked.stderr);
    assert_eq!(show(&place, "gemini")["package"]["version"], "0.61.0");

    let updated = place.run(&["agents", "update", file, "--yes", "--json"]);
    let updated: Value = serde_json::from_str(&updated.stdout).unwrap();
    let gemini = json!({
        "agent": "gemini", "change": "changed", "members": [{"name": "version", "before": "0.61.0", "after": "0.62.0"}],
    });
    assert!(updated["changes"].as_array().unwrap().contains(&gemini), "{updated}");
    assert_eq!((&updated["updated"], &updated["to"]), (&json!(true), &json!("2036-11-18")));
    assert_eq!(show(&place, "gemini")["package"]["version"], "0.62.0");
    assert_eq!(show(&place, "brandnew")["displayName"], "Auggie");
    let gone = place.run(&["agents", "show", "auggie"]);
    assert_eq!(gone.code, Some(8), "{}", gone.stderr);
    // A table without a command needs an agent of this catalog.
    place.write("home/.config/grove/grove.toml", "[agents.brandnew]\nenabled = false\n");
    assert_eq!(show(&place, "brandnew")["status"], "disabled");
    place.write("home/.config/grove/grove.toml", "");

    let back = place.run(&["agents", "update", "--built-in", "--yes"]);
    assert_eq!(back.code, Some(0), "{}", back.stderr);
    assert_eq!(show(&place, "gemini")["package"]["version"], "0.61.0");
}

#[test]
fn a_damaged_catalog_or_one_for_a_newer_grove_changes_nothing() {
    let place = TestHome::new();
    let good = place.write("later.toml", later());
    assert_eq!(place.run(&["agents", "update", good.to_str().unwrap(), "--yes"]).code, Some(0));
    let stored = fs::read(place.data().join("agents.toml")).unwrap();
    for (text, words) in [
        (later().replacen("format = 1", "format = 2", 1), "update Grove"),
        (later()[..2_000].to_owned(), "cannot be read"),
        (later().replacen("commands = [\"gemini\"]", "commands = [\"/bin/sh\"]", 1), "gemini"),
        (later().replacen("date = \"2036", "date = \"1999", 1), "older than the catalog of this Grove"),
        (format!("{}#{}", later(), "x".repeat(1 << 20)), "more than"),
    ] {
        let file = place.write("bad.toml", text);
        let ran = place.run(&["agents", "update", file.to_str().unwrap(), "--yes"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{words}");
        assert!(ran.stderr.contains(words), "no {words:?} in {}", ran.stderr);
        assert_eq!(fs::read(place.data().join("agents.toml")).unwrap(), stored, "{words}");
    }
    // The same by hand: the included catalog counts, and every list says why.
    fs::write(place.data().join("agents.toml"), "format = 1").unwrap();
    let ran = place.run(&["agents"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains("is not used") && ran.stderr.contains("--built-in"), "{}", ran.stderr);
}

#[test]
fn a_catalog_comes_from_a_file_or_a_safe_address_alone() {
    let place = TestHome::new();
    let server = FileServer::start([("later.toml", later().into_bytes())]);
    let ran = place.run(&["agents", "update", &server.url("later.toml"), "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(show(&place, "gemini")["package"]["version"], "0.62.0");
    let missing = place.run(&["agents", "update", &server.url("none.toml"), "--yes"]);
    assert_eq!(missing.code, Some(1));
    assert!(missing.stderr.contains("cannot be downloaded"), "{}", missing.stderr);
    for address in ["http://example.org/agents.toml", "http://127.0.0.1@example.org/x", "file:///etc/passwd"] {
        let ran = place.run(&["agents", "update", address, "--yes"]);
        assert_eq!(ran.code, Some(1), "{address}");
        assert!(ran.stderr.contains("an address begins with https://"), "{}", ran.stderr);
    }
}

#[test]
fn a_catalog_with_another_checksum_changes_nothing() {
    let place = TestHome::new();
    let server = FileServer::start([("later.toml", later().into_bytes())]);
    let wrong = "0".repeat(64);
    let ran = place.run(&["agents", "update", &server.url("later.toml"), "--sha256", &wrong, "--yes"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains(&wrong) && ran.stderr.contains("not the expected file"), "{}", ran.stderr);
    assert!(!place.data().join("agents.toml").exists());
    let right = hex::encode(Sha256::digest(later()));
    let ran = place.run(&["agents", "update", &server.url("later.toml"), "--sha256", &right, "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}
