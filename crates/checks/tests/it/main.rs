//! The tests that the table of checks and the threat model name exist.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use grove_checks::{Check, TestSuite};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text of all Rust files of a package.
fn sources(package: &str) -> String {
    let folder = root().join("crates").join(package.strip_prefix("grove-").unwrap_or(package));
    let (mut waiting, mut text) = (vec![folder], String::new());
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
    text
}

fn has_test(package: &str, name: &str) -> bool {
    sources(package).contains(&format!("fn {name}("))
}

#[test]
fn the_test_of_each_check_exists() {
    let page = |name: &str| {
        let files = fs::read_dir(root().join("web/tests/unit")).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.is_file()).any(|path| fs::read_to_string(path).unwrap().contains(&format!("'{name}'")))
    };
    for check in Check::ALL {
        let exists = match check.test() {
            (TestSuite::Package(package), name) => has_test(package, name),
            (TestSuite::Page, name) => page(name),
        };
        assert!(exists, "{check:?}: there is no test {}", check.test().1);
    }
}

#[test]
fn every_test_that_the_threat_model_names_exists() {
    let text = fs::read_to_string(root().join("docs/threat-model.md")).unwrap();
    let mut count = 0;
    for name in text.split('`').skip(1).step_by(2) {
        if let Some((file, title)) = name.split_once(".test.ts: ") {
            let tests = fs::read_to_string(root().join(format!("{file}.test.ts"))).unwrap();
            assert!(tests.contains(&format!("'{title}'")), "{file}.test.ts has no test {title:?}");
        } else if let Some((package, test)) = name.split_once("::").filter(|(_, test)| *test != "name") {
            assert!(has_test(package, test), "{package} has no test {test}");
        } else {
            continue;
        }
        count += 1;
    }
    assert!(count > 80, "the tests are not found in the page any more: {count}");
}
