//! A test folder.

use std::fs;
use std::path::{Path, PathBuf};

use grove_work::{Policy, Roots};
use tempfile::TempDir;

pub(crate) struct TestFolder {
    _folder: TempDir,
    real: PathBuf,
}

impl TestFolder {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        Self { _folder: folder, real }
    }

    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.real.join(path)
    }

    /// Writes a file, with the folders that lead to it.
    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn folder(&self, path: &str) -> PathBuf {
        let path = self.path(path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// A policy for a session that works in `work`, with `work/private` never visible.
    pub(crate) fn policy(&self) -> Policy {
        let roots = Roots { private: vec![self.path("work/private")], ..Roots::default() };
        Policy::new(roots, vec![self.path("work")])
    }
}
