//! The catalog of agents that counts for a data folder: its own file, or the one that this program includes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use grove_agents::catalog::AgentCatalog;

use crate::data_folder;
use crate::secret_files;

/// The catalog of a data folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoadedCatalog {
    pub(crate) catalog: Arc<AgentCatalog>,
    pub(crate) source: CatalogSource,
    /// The reason why the file of the data folder is not used, if it is there and should be.
    pub(crate) problem: Option<String>,
}

/// The origin of a catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CatalogSource {
    /// It is part of this program.
    BuiltIn,
    File(PathBuf),
}

impl LoadedCatalog {
    fn built_in(problem: Option<String>) -> Self {
        Self { catalog: AgentCatalog::built_in(), source: CatalogSource::BuiltIn, problem }
    }

    /// Loads the catalog of a data folder. A file that cannot be used, or is older than this program's catalog, does not
    /// count.
    pub(crate) fn load(data_dir: &Path) -> Self {
        let path = data_folder::catalog_path(data_dir);
        let unusable = |problem: String| {
            let advice = "`grove agents update FILE` replaces it, `grove agents update --built-in` removes it";
            Self::built_in(Some(format!("{} is not used: {problem}; {advice}", path.display())))
        };
        let text = match secret_files::read(&path) {
            Ok(None) => return Self::built_in(None),
            Ok(Some(read)) => read.text,
            Err(error) => return unusable(error.to_string()),
        };
        match AgentCatalog::parse(&text) {
            Ok(catalog) if catalog.date < AgentCatalog::built_in().date => Self::built_in(None),
            Ok(catalog) => Self { catalog: Arc::new(catalog), source: CatalogSource::File(path), problem: None },
            Err(error) => unusable(error.to_string()),
        }
    }
}

/// Stores the text of a valid catalog in a data folder.
pub(crate) fn replace(data_dir: &Path, text: &str) -> Result<PathBuf> {
    data_folder::make(data_dir)?;
    let path = data_folder::catalog_path(data_dir);
    data_folder::write_private(&path, text)?;
    Ok(path)
}

/// Removes the catalog of a data folder, and returns whether there was one.
pub(crate) fn remove(data_dir: &Path) -> Result<bool> {
    let path = data_folder::catalog_path(data_dir);
    match fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| format!("{} cannot be removed", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_the_data_folder_counts_unless_it_is_older_or_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        assert_eq!(LoadedCatalog::load(&data), LoadedCatalog::built_in(None));
        let newer = AgentCatalog::BUILT_IN_TEXT.replacen("date = \"20", "date = \"29", 1);
        let path = replace(&data, &newer).unwrap();
        let loaded = LoadedCatalog::load(&data);
        assert_eq!((&loaded.source, loaded.problem.as_deref()), (&CatalogSource::File(path.clone()), None));
        assert!(loaded.catalog.date.starts_with("29"));

        replace(&data, &AgentCatalog::BUILT_IN_TEXT.replacen("date = \"20", "date = \"19", 1)).unwrap();
        assert_eq!(LoadedCatalog::load(&data), LoadedCatalog::built_in(None), "an update of Grove brings newer facts");

        fs::write(&path, "format = 1\ndate =").unwrap();
        let damaged = LoadedCatalog::load(&data);
        assert_eq!(damaged.source, CatalogSource::BuiltIn);
        let problem = damaged.problem.unwrap();
        assert!(problem.contains("cannot be read") && problem.contains("--built-in"), "{problem}");
        assert!(remove(&data).unwrap() && !remove(&data).unwrap());
    }
}
