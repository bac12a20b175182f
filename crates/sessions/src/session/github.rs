//! The GitHub information of a session.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{Icon, Uri};

/// The repository on GitHub that a session belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GitHubInfo {
    /// The owner of the repository.
    pub owner: Arc<str>,
    /// Its name.
    pub repo: Arc<str>,
    /// The session's pull request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<PullRequest>,
}

/// A pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PullRequest {
    /// Its number.
    pub number: u64,
    /// Its web address.
    pub uri: Uri,
    /// Its icon, which may show whether it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon: Option<Icon>,
}

impl GitHubInfo {
    /// Reads a GitHub address: of a repository (`https://github.com/acme/site`, `git@github.com:acme/site.git`) or of a
    /// pull request in it.
    pub fn from_address(address: &str) -> Option<Self> {
        let identity = super::remote_identity(address)?;
        let mut parts = identity.strip_prefix("github.com/")?.split('/').filter(|part| !part.is_empty());
        let (owner, repo) = (parts.next()?, parts.next()?);
        let number = match (parts.next(), parts.next()) {
            (Some("pull"), Some(number)) => number.parse().ok(),
            _ => None,
        };
        let pull_request = number.map(|number| PullRequest { number, uri: address.into(), icon: None });
        let repo = repo.strip_suffix(".git").unwrap_or(repo);
        Some(Self { owner: owner.into(), repo: repo.into(), pull_request })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_on_github_tells_repository_and_pull_request() {
        let info = GitHubInfo::from_address("https://github.com/acme/site/pull/12").unwrap();
        assert_eq!((&*info.owner, &*info.repo), ("acme", "site"));
        assert_eq!(info.pull_request.unwrap().number, 12);
        let info = GitHubInfo::from_address("git@github.com:acme/site.git").unwrap();
        assert_eq!((&*info.owner, &*info.repo, info.pull_request), ("acme", "site", None));
        assert_eq!(GitHubInfo::from_address("https://gitlab.com/acme/site"), None);
        assert_eq!(GitHubInfo::from_address("https://github.com/acme"), None);
    }
}
