//! The version control state of a session's working directory.

use serde::{Deserialize, Serialize};

/// The checkout in a session's working directory at the last look. Unknown fields are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Checkout {
    /// The root folder of the checkout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// The main repository, if this checkout is a worktree of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree_of: Option<String>,
    /// The remote's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// `owner/name`, if the remote is on GitHub.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub github: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The branch that this one is to be merged into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_branch: Option<String>,
    /// The address of the pull request that the branch belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch_pull_request: Option<String>,
    /// The address of the newest pull request that the session itself opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_pull_request: Option<String>,
}

impl Checkout {
    /// The session's pull request: its own one takes precedence over its branch's.
    pub fn pull_request(&self) -> Option<&str> {
        self.own_pull_request.as_deref().or(self.branch_pull_request.as_deref())
    }

    /// True if nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}
