//! A folder of a store in which others than Grove choose the names and write files.

use std::sync::Arc;

use async_trait::async_trait;

use crate::names::RelativeName;
use crate::{Backend, Conventions, DirEntry, FileLines, Removal, Result, SessionFs, Stat};

/// A view of a store below one of its folders, from which nothing leads out.
///
/// [`RelativeName`] checks every name first, so that a bad one gives the same error on every backend. No symbolic link
/// is followed, neither in the folder nor on the way to it from the store's root: an agent that can write into the
/// folder cannot make Grove read or write elsewhere. Names that would be refused are not listed, since they could not
/// be used.
#[derive(Clone, Debug)]
pub struct Confined {
    store: Arc<dyn SessionFs>,
    folder: String,
}

impl Confined {
    /// The view of `store` below `folder`, which Grove names and which need not exist yet.
    pub fn new(store: &dyn SessionFs, folder: &str) -> Result<Self> {
        crate::path::file_parts(folder)?;
        Ok(Self { store: store.without_links(), folder: folder.to_owned() })
    }

    /// The path of a name in the store.
    fn below(&self, name: &str) -> Result<String> {
        let name = RelativeName::parse(name)?;
        Ok(format!("{}/{name}", self.folder))
    }

    /// The same, but the empty name is the folder itself.
    fn here(&self, name: &str) -> Result<String> {
        if name.is_empty() { Ok(self.folder.clone()) } else { self.below(name) }
    }
}

#[async_trait]
impl SessionFs for Confined {
    fn backend(&self) -> Backend {
        self.store.backend()
    }

    fn conventions(&self) -> Conventions {
        self.store.conventions()
    }

    fn location(&self, path: &str) -> Result<String> {
        self.store.location(&self.here(path)?).map_err(|error| error.at(path))
    }

    fn lock_key(&self, path: &str) -> Result<String> {
        self.store.lock_key(&self.here(path)?).map_err(|error| error.at(path))
    }

    fn initial_cwd(&self) -> Option<String> {
        self.store.initial_cwd()
    }

    fn tmpdir(&self) -> Result<Arc<dyn SessionFs>> {
        self.store.tmpdir()
    }

    fn without_links(&self) -> Arc<dyn SessionFs> {
        Arc::new(self.clone())
    }

    async fn read_file(&self, path: &str) -> Result<Vec<u8>> {
        self.store.read_file(&self.below(path)?).await.map_err(|error| error.at(path))
    }

    async fn read_range(&self, path: &str, offset: u64, length: usize) -> Result<Vec<u8>> {
        self.store.read_range(&self.below(path)?, offset, length).await.map_err(|error| error.at(path))
    }

    async fn read_lines(&self, path: &str, longest: usize) -> Result<FileLines> {
        let lines = self.store.read_lines(&self.below(path)?, longest).await;
        lines.map(|lines| lines.named(path)).map_err(|error| error.at(path))
    }

    async fn write_file(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.store.write_file(&self.below(path)?, bytes).await.map_err(|error| error.at(path))
    }

    async fn append_file(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.store.append_file(&self.below(path)?, bytes).await.map_err(|error| error.at(path))
    }

    async fn sync(&self, path: &str) -> Result<()> {
        self.store.sync(&self.below(path)?).await.map_err(|error| error.at(path))
    }

    async fn truncate(&self, path: &str, length: u64) -> Result<()> {
        self.store.truncate(&self.below(path)?, length).await.map_err(|error| error.at(path))
    }

    async fn exists(&self, path: &str) -> Result<bool> {
        self.store.exists(&self.here(path)?).await.map_err(|error| error.at(path))
    }

    async fn stat(&self, path: &str) -> Result<Stat> {
        self.store.stat(&self.here(path)?).await.map_err(|error| error.at(path))
    }

    async fn mkdir(&self, path: &str) -> Result<()> {
        self.store.mkdir(&self.here(path)?).await.map_err(|error| error.at(path))
    }

    async fn readdir_with_types(&self, path: &str) -> Result<Vec<DirEntry>> {
        let mut entries = self.store.readdir_with_types(&self.here(path)?).await.map_err(|error| error.at(path))?;
        entries.retain(|entry| RelativeName::parse(&entry.name).is_ok());
        Ok(entries)
    }

    async fn rm(&self, path: &str, what: Removal) -> Result<()> {
        self.store.rm(&self.below(path)?, what).await.map_err(|error| error.at(path))
    }

    async fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (source, target) = (self.below(from)?, self.below(to)?);
        self.store.rename(&source, &target).await.map_err(|error| error.at(from))
    }
}
