//! What version control says of where a session works.

use serde::{Deserialize, Serialize};

/// What was checked out where a session works, when somebody last looked. What is not known is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Checkout {
    /// The folder that is checked out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// The repository that it came from, where it is a worktree of another folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree_of: Option<String>,
    /// The remote's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// `owner/name` on GitHub, where the remote is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub github: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The branch that this one is to go back to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_branch: Option<String>,
    /// The address of the pull request that the branch belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch_pull_request: Option<String>,
    /// The address of the newest pull request that came of the session itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_pull_request: Option<String>,
}

impl Checkout {
    /// The pull request of the session: what it made itself says more than what its branch is tied to.
    pub fn pull_request(&self) -> Option<&str> {
        self.own_pull_request.as_deref().or(self.branch_pull_request.as_deref())
    }

    /// Whether nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}
