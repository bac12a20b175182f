//! Whole homes as `bench/history/gen_corpus.py` writes them: nothing is overlooked, and what is bad is told.

use std::path::Path;
use std::process::Command;

use grove_history::catalog::{Catalog, CatalogFilter, ScanRequest, check};
use grove_history::{Platform, StoreEnvironment, TranscriptSource, readers, store_roots};
use serde_json::Value;

use crate::support::TestStore;

/// What the generator calls a tool.
fn generated(source: TranscriptSource) -> Option<&'static str> {
    match source.name() {
        "vs-code" => Some("vscode"),
        "copilot-cli" => Some("copilot-cli"),
        "claude" => Some("claude"),
        "codex" => Some("codex"),
        "pi" => Some("pi"),
        "gemini" => Some("gemini"),
        _ => None,
    }
}

/// Generates a home with sessions of every tool that is read here, and gives what it was made of.
fn generate(home: &Path, options: &[&str]) -> Option<Value> {
    let mix: Vec<String> =
        readers().iter().filter_map(|reader| Some(format!("{}=1", generated(reader.source())?))).collect();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/history/gen_corpus.py");
    let mut command = Command::new("python3");
    command.arg(script).arg("--root").arg(home).args(["--mix", &mix.join(",")]).args(options);
    match command.output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            println!("skipped: there is no python3 to generate with ({error})");
            return None;
        }
    }
    serde_json::from_slice(&std::fs::read(home.join("manifest.json")).unwrap()).ok()
}

#[test]
fn every_session_of_a_dirty_home_is_found_and_each_bad_line_is_told() {
    let (home, data) = (TestStore::new(), TestStore::new());
    let options = ["--sessions", "150", "--mb", "6", "--giants", "1", "--giant-mb", "1", "--dirty", "0.3"];
    let Some(manifest) = generate(home.path(), &options) else { return };
    let environment =
        StoreEnvironment { home: home.path().to_string_lossy().into_owned(), ..StoreEnvironment::default() };
    let mut roots = store_roots(Platform::Linux, &environment);
    roots.retain(|root| root.folder.starts_with(home.path()));
    let catalog = Catalog::open(&data.path().join("history.db")).unwrap();
    let report = catalog.scan(&ScanRequest { roots: roots.clone(), keep: None }, &mut |_| {}).unwrap();
    let rows = manifest["sessions"].as_array().unwrap();
    assert_eq!((report.sessions, &report.problems), (rows.len(), &vec![]));
    let mut dirty = 0;
    for row in rows {
        let id = row["id"].as_str().unwrap();
        let entry = catalog.get(id).unwrap().unwrap_or_else(|| panic!("{row} is not found"));
        assert_eq!(entry.path, home.path().join(row["path"].as_str().unwrap()));
        let is_bad = !matches!(row["dirty"].as_str().unwrap(), "" | "blank");
        dirty += usize::from(is_bad);
        assert_eq!(entry.session.damage.is_recovered(), is_bad, "{row}: {:?}", entry.session.damage);
        assert_eq!(!entry.session.damage.places.is_empty(), is_bad, "{row}");
    }
    assert!(dirty > 10, "{dirty} of {}", rows.len());
    let checkup = check(&catalog, &roots).unwrap();
    assert_eq!((checkup.damaged.len(), checkup.unknown.len(), checkup.problems.len()), (dirty, 0, 0));
    let again = catalog.scan(&ScanRequest { roots, keep: None }, &mut |_| {}).unwrap();
    assert_eq!((again.read, again.sessions), (0, rows.len()));
    assert_eq!(catalog.list(&CatalogFilter::default(), None, 1_000).unwrap().entries.len(), rows.len());
}
