//! A test that no bound of the code is missing in the table.
//!
//! It reads the constants of all crates. Each is either in the table, or in `constants-without-a-row.txt` below a reason.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The types that a bound may have.
const TYPES: &[&str] = &["usize", "u32", "u64", "Duration", "NonZeroUsize", "NonZeroU64"];
/// Crates that a host does not run.
const OTHER_CRATES: &[&str] = &["checks", "fixtures", "limits", "testkit"];
/// The names under which the table refers to parts of crates, apart from `grove_NAME`.
const SHORT_NAMES: &[(&str, &str)] = &[
    ("core", "core/src/"),
    ("jsonrpc", "wire/src/jsonrpc/"),
    ("copilot", "wire/src/copilot/"),
    ("x_grove", "wire/src/x_grove/"),
    ("history", "history/src/limits.rs"),
];

/// A constant, as `crate/src/file.rs` and its name.
type Constant = (String, String);

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files below a folder that are not tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match (path.is_dir(), path.extension().is_some_and(|extension| extension == "rs")) {
            (true, _) if !path.ends_with("tests") => sources(&path, found),
            (false, true) if !path.ends_with("tests.rs") => found.push(path),
            _ => {}
        }
    }
}

/// The constants of all crates.
fn constants() -> BTreeSet<Constant> {
    let mut all = BTreeSet::new();
    for entry in std::fs::read_dir(crates()).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        if OTHER_CRATES.contains(&name.as_str()) || !folder.join("src").is_dir() {
            continue;
        }
        let mut files = Vec::new();
        sources(&folder.join("src"), &mut files);
        for path in files {
            let file = format!("{name}/{}", path.strip_prefix(&folder).unwrap().to_str().unwrap());
            let text = read(&path);
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            all.extend(code.lines().filter_map(constant).map(|constant| (file.clone(), constant.to_owned())));
        }
    }
    all
}

/// The name of the constant that a line declares, if it may be a bound.
fn constant(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = ["pub(crate) ", "pub(super) ", "pub "].iter().find_map(|word| line.strip_prefix(word)).unwrap_or(line);
    let (name, rest) = line.strip_prefix("const ")?.split_once(": ")?;
    let kind = rest.split_once(" =").map_or(rest, |(kind, _)| kind);
    TYPES.contains(&kind.rsplit("::").next()?).then_some(name)
}

/// The letters of a path of Rust at the beginning of a text.
fn path_in(text: &str) -> &str {
    let end = text.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_' || letter == ':'));
    &text[..end.unwrap_or(text.len())]
}

/// The path of a module, as a crate's own code writes it.
fn module(file: &str) -> (&str, String) {
    let (name, path) = file.split_once("/src/").unwrap();
    let path = path.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::");
    (name, if path == "lib" { String::new() } else { format!("{path}::") })
}

/// The table's own text, and the paths that each crate's `limits.rs` publishes with the names that the table uses.
struct References {
    table: String,
    published: BTreeMap<String, BTreeMap<String, String>>,
}

impl References {
    fn read() -> Self {
        let mut files = Vec::new();
        sources(&crates().join("limits/src/table"), &mut files);
        let table = files.iter().map(|file| read(file)).collect();
        let mut published = BTreeMap::new();
        for entry in std::fs::read_dir(crates()).unwrap() {
            let folder = entry.unwrap().path();
            let Ok(text) = std::fs::read_to_string(folder.join("src/limits.rs")) else { continue };
            let names = text.split("crate::").skip(1).map(|rest| {
                let path = path_in(rest);
                let alias = rest[path.len()..].strip_prefix(" as ").map_or(path, path_in);
                (path.to_owned(), alias.rsplit("::").next().unwrap().to_owned())
            });
            published.insert(folder.file_name().unwrap().to_str().unwrap().to_owned(), names.collect());
        }
        Self { table, published }
    }

    fn has(&self, (file, name): &Constant) -> bool {
        let (of, module) = module(file);
        if let Some(alias) = self.published.get(of).and_then(|paths| paths.get(&format!("{module}{name}"))) {
            // The program compares its own values, in its `limits.rs`.
            return of == "grove" || self.names(alias).any(|_| true);
        }
        self.names(name).any(|path| {
            let first = path.split("::").next().unwrap_or_default();
            let is_short = SHORT_NAMES.iter().any(|(short, part)| *short == first && file.starts_with(part));
            let is_long = first.strip_prefix("grove_").is_some_and(|long| long.replace('_', "-") == of);
            // A name of `limits.rs` is that of a constant with another path.
            is_short || is_long && !path.contains("::limits::")
        })
    }

    /// The paths in the table that end with a name.
    fn names<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let is_path = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == ':';
        let paths = self.table.split(move |letter: char| !is_path(letter));
        paths.filter(move |path| path.rsplit_once("::").is_some_and(|(_, last)| last == name))
    }
}

/// The constants without a row, and the folders in which none has a row.
fn without_row() -> (BTreeSet<Constant>, Vec<String>) {
    let (mut names, mut folders, mut has_reason) = (BTreeSet::new(), Vec::new(), false);
    for line in include_str!("constants-without-a-row.txt").lines().filter(|line| !line.is_empty()) {
        if line.starts_with("# ") {
            has_reason = true;
            continue;
        }
        assert!(has_reason, "{line} has no reason above it");
        let mut words = line.split(' ');
        let path = words.next().unwrap().to_owned();
        if path.ends_with('/') {
            folders.push(path);
            continue;
        }
        for name in words {
            assert!(names.insert((path.clone(), name.to_owned())), "{path} {name} is there twice");
        }
    }
    (names, folders)
}

#[test]
fn each_bound_of_the_code_is_in_the_table_or_has_a_reason_not_to_be() {
    let (all, references) = (constants(), References::read());
    assert!(all.len() > 500, "{}", all.len());
    let (without, folders) = without_row();
    let is_in_folder = |(file, _): &Constant| folders.iter().any(|folder| file.starts_with(folder));
    let mut problems = Vec::new();
    for constant in &all {
        let (file, name) = constant;
        match (references.has(constant), without.contains(constant) || is_in_folder(constant)) {
            (true, false) | (false, true) => {}
            (false, false) => problems.push(format!("{file} {name}: add a row to the table, or a line to the list")),
            (true, true) => problems.push(format!("{file} {name}: it has a row, so remove its line from the list")),
        }
    }
    let gone = without.difference(&all).map(|(file, name)| format!("{file} {name}: the code has no such constant"));
    problems.extend(gone);
    assert!(problems.is_empty(), "crates/limits/src/constants-without-a-row.txt:\n{}", problems.join("\n"));
}

#[test]
fn a_constant_is_found_whatever_its_visibility_and_its_path() {
    let lines = ["const A: usize = 1;", "    pub const B: Duration = X;", "pub(super) const C: std::time::Duration ="];
    assert_eq!(lines.map(constant), [Some("A"), Some("B"), Some("C")]);
    assert_eq!(["const A: &str = \"\";", "let a: usize = 1;", "const fn a() {"].map(constant), [None; 3]);
}
