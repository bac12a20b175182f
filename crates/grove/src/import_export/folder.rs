//! What lies beside a session's log, on this machine.

use std::fs;
use std::path::{Path, PathBuf};

use grove_fs::RelativeName;

/// How deep folders may lie in each other; what is deeper is left out.
const DEEPEST: usize = 32;
/// How many files a session may have beside its log; the rest is left out.
const MAX_FILES: usize = 19_000;

/// The single files that go along.
const FILES: [&str; 2] = ["plan.md", "session.db"];
/// The folders that do, with everything in them.
const FOLDERS: [&str; 4] = ["checkpoints", "files", "research", "content"];

/// A file of a session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SidecarFile {
    /// Below the session's folder.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

/// What goes along, and what does not, in words.
#[derive(Debug, Default)]
pub(super) struct Sidecars {
    pub(super) files: Vec<SidecarFile>,
    pub(super) warnings: Vec<String>,
}

/// Lists what lies beside the log in a session's folder. No link is followed.
pub(super) fn list_sidecars(folder: &Path) -> Sidecars {
    let mut found = Sidecars::default();
    for name in FILES {
        let path = folder.join(name);
        if is_file(&path) {
            found.files.push(SidecarFile { name: name.to_owned(), path });
        }
    }
    if fs::symlink_metadata(folder.join("session.db-wal")).is_ok_and(|wal| wal.len() > 0) {
        found
            .warnings
            .push("session.db is in use: its newest changes stay behind, end the program that has it".to_owned());
    }
    if fs::read_dir(folder.join("chats")).is_ok_and(|mut chats| chats.next().is_some()) {
        found.warnings.push("what was said in chats beside the main one is left out".to_owned());
    }
    for name in FOLDERS {
        let path = folder.join(name);
        if fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
            found.look_into(&path, name, 1);
        }
    }
    found.files.sort();
    found
}

impl Sidecars {
    fn look_into(&mut self, folder: &Path, below: &str, depth: usize) {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return self.warnings.push(format!("{below} is left out: {error}")),
        };
        for entry in entries.filter_map(Result::ok) {
            let path = entry.path();
            let Some(name) = entry.file_name().to_str().map(|name| format!("{below}/{name}")) else {
                self.warnings.push(format!("{} is left out: its name is no text", path.display()));
                continue;
            };
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < DEEPEST => self.look_into(&path, &name, depth + 1),
                Ok(kind) if kind.is_dir() => self.warnings.push(format!("{name} is left out: it lies too deep")),
                Ok(kind) if kind.is_file() => self.add(name, path),
                Ok(_) => self.warnings.push(format!("{name} is left out: it is neither a file nor a folder")),
                Err(error) => self.warnings.push(format!("{name} is left out: {error}")),
            }
        }
    }

    fn add(&mut self, name: String, path: PathBuf) {
        if let Err(error) = RelativeName::parse(&name) {
            return self.warnings.push(format!("{name:?} is left out: {error}"));
        }
        match self.files.len() < MAX_FILES {
            true => self.files.push(SidecarFile { name, path }),
            false => self.warnings.push(format!("{name} is left out: there are more than {MAX_FILES} files")),
        }
    }
}

fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}
