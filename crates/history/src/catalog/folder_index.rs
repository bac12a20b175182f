//! Finds the present path of a session's working directory: moved folders are found by their repository.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use grove_transcript::{FileLocation, TranscriptWorkspace};
use grove_work::{GitRepository, remote_name};

/// A repository for comparison: `owner/name` in lower case if the URL has it, else the text itself.
pub(super) fn repository_name(url: &str) -> String {
    let name = remote_name(url).unwrap_or_else(|| url.trim_end_matches('/').trim_end_matches(".git").to_owned());
    name.to_lowercase()
}

/// Known folders during one scan. Each is read once, and only working directories of sessions are: a moved repository
/// is found once any session has worked at its new path.
#[derive(Debug, Default)]
pub(super) struct FolderIndex {
    repositories: HashMap<String, Option<GitRepository>>,
    /// The present path of a repository, by its name.
    places: HashMap<String, PathBuf>,
}

/// The working directory of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WorkspaceLocation {
    pub folder: Option<String>,
    pub repository: Option<String>,
}

impl FolderIndex {
    /// Looks up a session's working directory.
    pub(super) fn look(&mut self, workspace: &TranscriptWorkspace) -> WorkspaceLocation {
        let own = workspace.repository.as_deref().map(repository_name).filter(|name| !name.is_empty());
        let place = workspace.folders.first().filter(|place| place.host.is_none());
        let Some(folder) = place.and_then(|place| place.path.clone()) else {
            let folder = workspace.folders.first().map(|place| place.shown().to_owned());
            return WorkspaceLocation { folder, repository: own };
        };
        let path = Path::new(&folder);
        // A deleted folder may have a repository above it, which is another one.
        let look = || if path.is_dir() { GitRepository::of(path) } else { None };
        let repository = self.repositories.entry(folder.clone()).or_insert_with(look);
        let name = repository.as_ref().and_then(|it| Some((it.origin.as_deref()?, &it.root))).map(|(origin, root)| {
            let name = repository_name(origin);
            self.places.entry(name.clone()).or_insert_with(|| root.clone());
            name
        });
        WorkspaceLocation { folder: Some(folder), repository: own.or(name) }
    }

    /// Reads a working directory of sessions.
    pub(super) fn note(&mut self, folder: &str) {
        self.look(&TranscriptWorkspace {
            folders: vec![FileLocation::local(folder)],
            ..TranscriptWorkspace::default()
        });
    }

    /// The present path of the repository of a missing folder.
    pub(super) fn moved_to(&self, repository: &str) -> Option<&Path> {
        let known = self.places.get(repository);
        // Some tools know only `owner/name`, some only a name.
        let by_end = || {
            let end = format!("/{repository}");
            let mut fitting = self.places.iter().filter(|(name, _)| name.ends_with(&end));
            // Two matches are ambiguous, so they count as none.
            fitting.next().filter(|_| fitting.next().is_none()).map(|(_, place)| place)
        };
        known.or_else(by_end).map(PathBuf::as_path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_repository_has_one_name_however_it_is_spelled() {
        for url in
            ["git@github.com:Acme/Site.git", "https://github.com/acme/site/", "acme/site", "ssh://git@h/acme/Site"]
        {
            assert_eq!(repository_name(url), "acme/site", "{url}");
        }
    }
}
