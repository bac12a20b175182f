//! Small samples of every form of the format, written for these tests (`tests/data`).

use std::path::Path;

use grove_tree::{Rules, open};
use serde_json::{Value, json};

use crate::support::{branch, damage, ids_from, leaf, opened};

pub(crate) fn all() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), std::fs::read(path).unwrap())).collect()
}

/// The undamaged ones that need no migration.
pub(crate) fn sound_version_3() -> Vec<(String, Vec<u8>)> {
    let mut samples = all();
    samples.retain(|(name, _)| name.contains("v3"));
    assert!(samples.len() >= 3);
    samples
}

fn sample(name: &str) -> Vec<u8> {
    all().into_iter().find(|(sample, _)| sample == name).unwrap().1
}

fn context(name: &str, rules: Rules) -> Value {
    let log = opened(sample(name));
    serde_json::to_value(log.context(rules, log.index().leaf())).unwrap()
}

#[test]
fn sound_samples_have_no_damage() {
    for (name, bytes) in sound_version_3() {
        let log = open(bytes, &mut || unreachable!()).unwrap();
        assert_eq!(damage(log.index()), [""; 0], "{name}");
        assert_eq!(log.migrated_from(), None);
    }
}

#[test]
fn a_log_of_pi_is_read() {
    let log = opened(sample("pi-v3.jsonl"));
    let index = log.index();
    assert_eq!(leaf(index).as_deref(), Some("p0000010"));
    assert_eq!(branch(index), ["p0000001", "p0000002", "p0000006", "p0000007", "p0000008", "p0000009", "p0000010"]);
    assert_eq!(index.name().as_deref(), Some("Birches"));
    assert_eq!(index.label(index.find("p0000002").unwrap()), Some("the fork"));
    let context = context("pi-v3.jsonl", Rules::Pi);
    let roles: Vec<&str> =
        context["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["compactionSummary", "custom", "user"]);
    assert_eq!(context["model"], json!({"provider": "acme", "modelId": "oak-2"}));
    assert_eq!(context["thinkingLevel"], "high");
}

#[test]
fn a_log_of_oh_my_pi_is_read() {
    let log = opened(sample("omp-v3.jsonl"));
    let index = log.index();
    let header: Value = serde_json::from_slice(&index.header().unwrap().to_json()).unwrap();
    assert_eq!((&header["title"], &header["titleSource"]), (&json!("Pines"), &json!("user")));
    assert_eq!(index.name().as_deref(), Some("Pines"));
    let context = context("omp-v3.jsonl", Rules::Omp);
    assert_eq!(context["model"], json!({"default": "acme/oak-2", "small": "acme/acorn"}));
    assert_eq!(context["mode"], "plan");
    assert_eq!(context["injectedRules"], json!(["no-force", "no-secrets"]));
    assert_eq!(context["messages"].as_array().unwrap().len(), 1, "only what follows the reset");
}

#[test]
fn a_log_of_grove_is_read_by_every_rule() {
    let log = opened(sample("grove-v3.jsonl"));
    assert_eq!(leaf(log.index()).as_deref(), Some("g0000002"));
    for rules in [Rules::Pi, Rules::Omp, Rules::Grove] {
        let context = context("grove-v3.jsonl", rules);
        assert_eq!(context["messages"].as_array().unwrap().len(), 2, "{rules:?}");
    }
}

#[test]
fn old_samples_are_migrated() {
    for (name, version) in [("old-v1.jsonl", 1), ("old-v2.jsonl", 2)] {
        let log = open(sample(name), &mut ids_from(1)).unwrap();
        assert_eq!(log.migrated_from(), Some(version), "{name}");
        assert_eq!(damage(log.index()), [""; 0], "{name}");
        let context = context(name, Rules::Grove);
        let roles: Vec<_> = context["messages"].as_array().unwrap().iter().map(|m| m["role"].clone()).collect();
        assert!(roles.iter().all(|role| role == "user" || role == "assistant"), "{name}: {roles:?}");
    }
}
