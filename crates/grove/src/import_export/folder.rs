//! The files beside a session's log, on this machine.

use std::fs;
use std::path::{Path, PathBuf};

use grove_fs::RelativeName;

/// The maximum depth of folders; deeper ones are left out.
const DEEPEST: usize = 32;
/// The maximum number of files beside a log; the others are left out.
const MAX_FILES: usize = 19_000;

/// The single files that belong to a session.
const FILES: [&str; 2] = ["plan.md", "session.db"];
/// The folders that belong to a session, with everything in them.
const FOLDERS: [&str; 4] = ["checkpoints", "files", "research", "content"];

/// A file of a session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SidecarFile {
    /// The path below the session's folder.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

/// The files of a session, and warnings about omitted ones.
#[derive(Debug, Default)]
pub(super) struct Sidecars {
    pub(super) files: Vec<SidecarFile>,
    pub(super) warnings: Vec<String>,
}

/// Lists the files beside the log in a session's folder. No link is followed.
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
            .push("session.db is in use: its newest changes are left out; end the program that uses it".to_owned());
    }
    if fs::read_dir(folder.join("chats")).is_ok_and(|mut chats| chats.next().is_some()) {
        found.warnings.push("chats beside the main one are left out".to_owned());
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
                self.warnings.push(format!("{} is left out: its name is not UTF-8", path.display()));
                continue;
            };
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < DEEPEST => self.look_into(&path, &name, depth + 1),
                Ok(kind) if kind.is_dir() => self.warnings.push(format!("{name} is left out: it is nested too deeply")),
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
