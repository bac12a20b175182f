//! Labels against cases that were verified with another program.
//!
//! They lie outside the repository (`GROVE_FIXTURES`, or `../shared/fixtures` beside the workspace). Where they are missing
//! the test says so and passes.

use std::path::{Path, PathBuf};

use grove_sessions::Metadata;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct Case {
    #[serde(default)]
    metadata: Metadata,
    badge: Option<Badge>,
    expect: Option<String>,
}

/// A badge is text, or an object that holds it.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Badge {
    Text(String),
    Markdown { value: String },
}

#[test]
fn labels_are_those_that_other_programs_give() {
    let root = match std::env::var_os("GROVE_FIXTURES") {
        Some(root) => PathBuf::from(root),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures"),
    };
    let file = root.join("vscode/get-repository-name.cases.json");
    let Ok(text) = std::fs::read_to_string(&file) else {
        println!("skipped: the cases are not at {}", file.display());
        return;
    };
    let cases: Vec<Case> = serde_json::from_str(&text).unwrap();
    assert!(cases.len() > 30);
    for case in &cases {
        let badge = case.badge.as_ref().map(|badge| match badge {
            Badge::Text(text) | Badge::Markdown { value: text } => text.as_str(),
        });
        assert_eq!(case.metadata.repository_name(badge), case.expect, "{case:?}");
    }
}
