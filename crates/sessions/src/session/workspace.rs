//! The workspace of a session.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{Icon, Uri};

/// The workspace of a session: a folder or a repository, here or elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionWorkspace {
    /// The chosen folder or repository. Trust applies to it.
    pub uri: Uri,
    /// Its name for people, such as `my-app` or `my-app [dev-box]`. It is the heading of the group in a list.
    pub label: Arc<str>,
    /// Its icon.
    pub icon: Icon,
    /// Its host, if that is not this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Arc<str>>,
    /// Its repositories. A folder without one has none.
    #[serde(default)]
    pub repositories: Vec<Repository>,
    /// A person must trust the folder before anything is sent.
    #[serde(default)]
    pub requires_workspace_trust: bool,
}

impl SessionWorkspace {
    /// A folder with a label, and no other facts.
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
    /// The source repository: a folder, or its address at a forge. Worktrees have that of their main repository.
    pub uri: Uri,
    /// The identity of the repository, the same for every clone, such as `github.com/acme/site`, if it has a remote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Arc<str>>,
    /// The worktree or checkout that the session works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<Uri>,
    /// A detail that the provider shows beside it, such as the branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Arc<str>>,
    /// The branch that the work began from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_branch_name: Option<Arc<str>>,
    /// That branch is protected, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_branch_protected: Option<bool>,
}

impl Repository {
    /// A repository of which only the location is known.
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

/// The identity of a remote, however it is spelled: `github.com/acme/site` for `git@github.com:acme/site.git` and
/// `https://github.com/acme/site/` alike. `None` for a text that is not a remote.
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
