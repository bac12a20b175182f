//! Where a session works.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{Icon, Uri};

/// Where a session works: a folder or a repository, here or elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionWorkspace {
    /// The folder or repository that was chosen. Trust is given to it.
    pub uri: Uri,
    /// What people call it, such as `my-app` or `my-app [dev-box]`. It heads the group in a list.
    pub label: Arc<str>,
    /// How it is drawn.
    pub icon: Icon,
    /// The host that it lies on, where that is not this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Arc<str>>,
    /// The repositories that it consists of. A folder without one has none.
    #[serde(default)]
    pub repositories: Vec<Repository>,
    /// Whether a person must have said that the folder is trusted before anything is sent.
    #[serde(default)]
    pub requires_workspace_trust: bool,
}

impl SessionWorkspace {
    /// A folder with a label, and nothing else known.
    pub fn new(uri: impl Into<Uri>, label: impl Into<Arc<str>>) -> Self {
        Self {
            uri: uri.into(),
            label: label.into(),
            icon: Icon::from("folder"),
            host: None,
            repositories: Vec::new(),
            requires_workspace_trust: false,
        }
    }
}

/// A repository of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Repository {
    /// The source repository: a folder, or where a forge has it. Worktrees have that of the repository they came from.
    pub uri: Uri,
    /// What the repository is wherever it was cloned, such as `github.com/acme/site`, where its remote says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Arc<str>>,
    /// The worktree or checkout that the session works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<Uri>,
    /// What the provider shows beside it, such as the branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Arc<str>>,
    /// The branch that the work began from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_branch_name: Option<Arc<str>>,
    /// Whether that branch is protected, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_branch_protected: Option<bool>,
}

impl Repository {
    /// A repository of which only the place is known.
    pub fn new(uri: impl Into<Uri>) -> Self {
        Self {
            uri: uri.into(),
            identity: None,
            working_directory: None,
            detail: None,
            base_branch_name: None,
            base_branch_protected: None,
        }
    }
}

/// What a remote is, however it is spelled: `github.com/acme/site` for `git@github.com:acme/site.git` and
/// `https://github.com/acme/site/` alike. `None` for what is no remote.
pub fn remote_identity(remote: &str) -> Option<Arc<str>> {
    let remote = remote.trim();
    let (place, path) = match remote.split_once("://") {
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("file") => return None,
        Some((_, rest)) => rest.split_once('/')?,
        // `user@host:path`; a lone letter before the colon is a drive.
        None => remote.split_once(':').filter(|(host, _)| host.len() > 1 && !host.contains(['/', '\\']))?,
    };
    let host = place.rsplit_once('@').map_or(place, |(_, host)| host);
    let host = host.split_once(':').map_or(host, |(host, _port)| host);
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/');
    if host.is_empty() || path.is_empty() {
        return None;
    }
    Some(format!("{}/{path}", host.to_ascii_lowercase()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_is_the_same_however_it_is_spelled() {
        let same = [
            "git@github.com:acme/site.git",
            "https://github.com/acme/site",
            "https://me:secret@GitHub.com/acme/site.git/",
            "ssh://git@github.com:22/acme/site.git",
        ];
        for remote in same {
            assert_eq!(remote_identity(remote).as_deref(), Some("github.com/acme/site"), "{remote}");
        }
        for none in ["", "/srv/site.git", "C:\\src\\site", "file:///srv/site", "https://github.com/", "git@github.com:"]
        {
            assert_eq!(remote_identity(none), None, "{none}");
        }
    }
}
