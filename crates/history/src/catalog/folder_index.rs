//! Where a session worked, as far as that is still there: folders that were moved are found again by their repository.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use grove_work::{GitRepository, remote_name};

use crate::normal::{FileLocation, TranscriptWorkspace};

/// A repository as it is compared: `owner/name` in small letters, where a URL tells it, else what stands there.
pub(super) fn repository_name(url: &str) -> String {
    let name = remote_name(url).unwrap_or_else(|| url.trim_end_matches('/').trim_end_matches(".git").to_owned());
    name.to_lowercase()
}

/// What is known of folders during one scan. Each is looked at once, and those that sessions worked in are all that is
/// looked at: a moved repository is found again once any session has worked where it lies now.
#[derive(Debug, Default)]
pub(super) struct FolderIndex {
    seen: HashMap<String, Option<GitRepository>>,
    /// Where a repository lies now, by its name.
    places: HashMap<String, PathBuf>,
}

/// Where a session worked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WorkspaceLocation {
    pub folder: Option<String>,
    pub repository: Option<String>,
}

impl FolderIndex {
    /// Looks at where a session says that it worked.
    pub(super) fn look(&mut self, workspace: &TranscriptWorkspace) -> WorkspaceLocation {
        let own = workspace.repository.as_deref().map(repository_name).filter(|name| !name.is_empty());
        let place = workspace.folders.first().filter(|place| place.host.is_none());
        let Some(folder) = place.and_then(|place| place.path.clone()) else {
            let folder = workspace.folders.first().map(|place| place.shown().to_owned());
            return WorkspaceLocation { folder, repository: own };
        };
        let path = Path::new(&folder);
        // A folder that is gone may still have a repository above it, which is another one.
        let look = || if path.is_dir() { GitRepository::of(path) } else { None };
        let repository = self.seen.entry(folder.clone()).or_insert_with(look);
        let name = repository.as_ref().and_then(|it| Some((it.origin.as_deref()?, &it.root))).map(|(origin, root)| {
            let name = repository_name(origin);
            self.places.entry(name.clone()).or_insert_with(|| root.clone());
            name
        });
        WorkspaceLocation { folder: Some(folder), repository: own.or(name) }
    }

    /// Looks at a folder that sessions worked in.
    pub(super) fn note(&mut self, folder: &str) {
        self.look(&TranscriptWorkspace {
            folders: vec![FileLocation::local(folder)],
            ..TranscriptWorkspace::default()
        });
    }

    /// Where the repository of a folder that is gone lies now.
    pub(super) fn moved_to(&self, repository: &str) -> Option<&Path> {
        let known = self.places.get(repository);
        // Some tools know no more than `owner/name`, some no more than a name.
        let by_end = || {
            let end = format!("/{repository}");
            let mut fitting = self.places.iter().filter(|(name, _)| name.ends_with(&end));
            // Two that fit are none.
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
