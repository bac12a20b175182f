//! The committed goldens: compared with what a scenario gives, and written on demand.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The variable that has goldens written again.
const WRITE: &str = "GROVE_GOLDEN_WRITE";

pub(crate) fn root(scenario: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/data").join(scenario)
}

/// Compares files with those of a scenario, or writes them with `GROVE_GOLDEN_WRITE=1`.
pub(crate) fn compare(scenario: &str, files: &BTreeMap<PathBuf, Vec<u8>>) {
    compare_normalized(scenario, files, |_, bytes| bytes.to_vec());
}

/// The same, of the bytes that `normalize` makes of those of each file.
pub(crate) fn compare_normalized(
    scenario: &str,
    files: &BTreeMap<PathBuf, Vec<u8>>,
    normalize: impl Fn(&Path, &[u8]) -> Vec<u8>,
) {
    let root = root(scenario);
    if std::env::var_os(WRITE).is_some() {
        write(&root, files);
        return;
    }
    let committed = read(&root);
    let missing = committed.keys().find(|path| !files.contains_key(*path));
    assert!(missing.is_none(), "{scenario} writes no file {missing:?} any more{}", hint());
    for (path, bytes) in files {
        let expected = committed.get(path);
        let expected = expected.unwrap_or_else(|| panic!("{scenario} writes a new file {path:?}{}", hint()));
        if let Some(difference) = first_difference(&normalize(path, expected), &normalize(path, bytes)) {
            panic!("{scenario}: {} differs, {difference}{}", path.display(), hint());
        }
    }
}

fn hint() -> String {
    format!(
        "\nNames on disk and on the wire are kept for good: fix the code. If the change is meant and old folders still \
         open, write the goldens again with {WRITE}=1."
    )
}

fn first_difference(expected: &[u8], found: &[u8]) -> Option<String> {
    if expected == found {
        return None;
    }
    let lines = |bytes: &[u8]| -> Vec<String> {
        bytes.split(|byte| *byte == b'\n').map(|line| String::from_utf8_lossy(line).into_owned()).collect()
    };
    let (expected, found) = (lines(expected), lines(found));
    let number = (0..).find(|n| expected.get(*n) != found.get(*n)).unwrap_or_default();
    let line = |lines: &[String]| lines.get(number).cloned().unwrap_or_else(|| "(no such line)".to_owned());
    let (expected, found) = (line(&expected), line(&found));
    let at = expected.bytes().zip(found.bytes()).take_while(|(a, b)| a == b).count();
    let part = |text: &str| text.chars().skip(at.saturating_sub(120)).take(400).collect::<String>();
    Some(format!(
        "first in line {} at byte {at}:\n  expected …{}\n  found    …{}",
        number + 1,
        part(&expected),
        part(&found)
    ))
}

fn write(root: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) {
    match std::fs::remove_dir_all(root) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{}: {error}", root.display()),
        _ => {}
    }
    for (path, bytes) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

/// Every file below a folder, by its path there.
pub(crate) fn read(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for entry in entries {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let bytes = std::fs::read(&path).unwrap();
                    all.insert(path.strip_prefix(root).unwrap().to_owned(), bytes);
                }
            }
        }
    }
    all
}
