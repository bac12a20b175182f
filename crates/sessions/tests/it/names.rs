//! Labels: against cases that were verified with another program, and of arbitrary metadata.

use std::path::Path;
use std::sync::Arc;

use grove_sessions::grouping::group;
use grove_sessions::session::{first_title, remote_identity};
use grove_sessions::{Metadata, SessionId, Uri};
use proptest::prelude::*;
use serde::Deserialize;

use crate::provider::TestProvider;

#[derive(Debug, Deserialize)]
struct LabelCase {
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
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/repository-names.json");
    let text = std::fs::read_to_string(file).unwrap();
    let cases: Vec<LabelCase> = serde_json::from_str(&text).unwrap();
    assert!(cases.len() > 30);
    for case in &cases {
        let badge = case.badge.as_ref().map(|badge| match badge {
            Badge::Text(text) | Badge::Markdown { value: text } => text.as_str(),
        });
        assert_eq!(case.metadata.repository_name(badge), case.expect, "{case:?}");
    }
}

/// Text that is almost a path, an address or a badge.
fn nearly() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("/"),
        Just("\\"),
        Just(":"),
        Just("://"),
        Just("git@"),
        Just(".git"),
        Just(".worktrees"),
        Just("$(repo)"),
        Just("%2F"),
        Just("%é"),
        Just("\n"),
        Just("?"),
        Just("#"),
        Just("github.com"),
        Just("pull"),
        Just("file"),
        Just("é"),
        Just("a"),
        Just(" "),
        Just("7"),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_text_is_fatal(texts in prop::collection::vec(nearly(), 12)) {
        let keys = [
            "remoteAgentHost", "owner", "name", "repositoryNwo", "repository", "repositoryUrl", "repositoryPath",
            "worktreePath", "workingDirectoryPath", "pullRequestUrl", "branch",
        ];
        for skipped in 0..keys.len() {
            let pairs = keys.iter().zip(&texts).skip(skipped);
            let metadata = pairs.fold(Metadata::default(), |metadata, (key, text)| metadata.with(key, text.as_str()));
            metadata.repository_name(texts.last().map(String::as_str));
            metadata.github_info();
            let provider = TestProvider::new("p");
            let sources = [0, 1].map(|number| {
                let source = provider.make(&number.to_string(), "/");
                let mut workspace = metadata.workspace(texts.last().map(String::as_str));
                if let Some(workspace) = &mut workspace && number == 1 {
                    workspace.uri = texts[0].as_str().into();
                }
                source.update(|state| state.workspace = workspace.map(Arc::new));
                source
            });
            let groups = group(sources.iter().map(|source| source.session()));
            prop_assert_eq!(groups.iter().map(|group| group.sessions.len()).sum::<usize>(), 2);
        }
        for text in &texts {
            let uri = Uri::from(text.as_str());
            let _ = (uri.scheme(), uri.path(), uri.basename(), SessionId::parse(text), remote_identity(text));
            prop_assert!((1..=100).contains(&first_title(text).chars().count()));
        }
    }
}
