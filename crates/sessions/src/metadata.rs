//! The metadata of a session's origin, and the workspace and label that follow.
//!
//! Sources of all kinds use the same keys. The key that decides the label is fixed, and so is the label: other programs
//! read the same metadata and must compute the same heading. Nine sources are tried, the first with a value wins:
//!
//! 1. `remoteAgentHost`, with `workingDirectoryPath`: `project [dev-box]`
//! 2. `owner` and `name`
//! 3. `repositoryNwo`: the part after the last `/`
//! 4. `repository`: a remote or `owner/name`
//! 5. `repositoryUrl`
//! 6. `repositoryPath`
//! 7. `worktreePath`
//! 8. `workingDirectoryPath`
//! 9. the badge

use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::{Icon, Uri};
use crate::session::{GitHubInfo, Repository, SessionWorkspace, remote_identity};

/// The other host that a session is on.
pub const REMOTE_AGENT_HOST: &str = "remoteAgentHost";
/// The owner of a cloud session's repository.
pub const OWNER: &str = "owner";
/// The name of that repository.
pub const NAME: &str = "name";
/// `owner/name` of the repository.
pub const REPOSITORY_NWO: &str = "repositoryNwo";
/// A remote, or `owner/name`.
pub const REPOSITORY: &str = "repository";
/// The address of the repository.
pub const REPOSITORY_URL: &str = "repositoryUrl";
/// The folder of the repository.
pub const REPOSITORY_PATH: &str = "repositoryPath";
/// The folder of the worktree.
pub const WORKTREE_PATH: &str = "worktreePath";
/// The folder that the session works in.
pub const WORKING_DIRECTORY_PATH: &str = "workingDirectoryPath";

const BRANCH: &str = "branch";
const BASE_BRANCH_NAME: &str = "baseBranchName";
const BASE_BRANCH_PROTECTED: &str = "baseBranchProtected";
const PULL_REQUEST_URL: &str = "pullRequestUrl";

/// The characters of a URI path that are not encoded.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');
/// The characters of one segment that are not encoded.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The metadata of a session's origin. Unknown keys are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Metadata(Map<String, Value>);

impl Metadata {
    /// The metadata of a session in a folder of this machine.
    pub fn local(working_directory: impl Into<String>) -> Self {
        Self::default().with(WORKING_DIRECTORY_PATH, working_directory)
    }

    /// The metadata of a session on another host.
    pub fn remote(host: impl Into<String>, working_directory: impl Into<String>) -> Self {
        Self::local(working_directory).with(REMOTE_AGENT_HOST, host)
    }

    /// The metadata of a session in a cloud.
    pub fn cloud(owner: impl Into<String>, name: impl Into<String>) -> Self {
        Self::default().with(OWNER, owner).with(NAME, name)
    }

    /// The metadata of a session in a worktree.
    pub fn worktree(repository: impl Into<String>, worktree: impl Into<String>) -> Self {
        let worktree = worktree.into();
        Self::local(worktree.clone()).with(REPOSITORY_PATH, repository).with(WORKTREE_PATH, worktree)
    }

    /// The same with another key.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<String>) -> Self {
        self.0.insert(key.to_owned(), Value::String(value.into()));
        self
    }

    /// The text under a key. Empty text counts as missing.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// All keys, as the source gave them.
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The heading of a session's group, `None` if neither metadata nor badge give one. It can be empty.
    pub fn repository_name(&self, badge: Option<&str>) -> Option<String> {
        if let Some(host) = self.text(REMOTE_AGENT_HOST) {
            let folder = self.text(WORKING_DIRECTORY_PATH).and_then(name_of_path);
            return Some(folder.map_or_else(|| host.to_owned(), |folder| format!("{folder} [{host}]")));
        }
        if let (Some(_), Some(name)) = (self.text(OWNER), self.text(NAME)) {
            return Some(name.to_owned());
        }
        if let Some((_, name)) = self.text(REPOSITORY_NWO).and_then(|nwo| nwo.rsplit_once('/')) {
            return Some(name.to_owned());
        }
        let parsed = |key| self.text(key).and_then(name_of_remote);
        let folder = |key| self.text(key).and_then(name_of_path);
        parsed(REPOSITORY)
            .or_else(|| parsed(REPOSITORY_URL))
            .or_else(|| folder(REPOSITORY_PATH))
            .or_else(|| folder(WORKTREE_PATH))
            .or_else(|| folder(WORKING_DIRECTORY_PATH))
            .or_else(|| badge.and_then(name_in_badge))
    }

    /// The session's workspace, `None` if it is unknown.
    pub fn workspace(&self, badge: Option<&str>) -> Option<SessionWorkspace> {
        let source = self.source_uri();
        let label = self.repository_name(badge);
        if source.is_none() && label.is_none() {
            return None;
        }
        let uri = source.unwrap_or_else(|| Uri::from("unknown:///"));
        let label = label.unwrap_or_else(|| uri.basename());
        let mut workspace = SessionWorkspace::new(uri.clone(), label);
        workspace.host = self.text(REMOTE_AGENT_HOST).map(Arc::from);
        let identity = self.identity();
        if identity.is_some() || self.text(REPOSITORY_PATH).is_some() {
            workspace.icon = Icon::from("repo");
            workspace.repositories.push(Repository {
                uri,
                identity,
                working_directory: self.text(WORKTREE_PATH).or(self.text(WORKING_DIRECTORY_PATH)).map(file_uri),
                detail: self.text(BRANCH).map(Arc::from),
                base_branch_name: self.text(BASE_BRANCH_NAME).map(Arc::from),
                base_branch_protected: self.0.get(BASE_BRANCH_PROTECTED).and_then(Value::as_bool),
            });
        }
        Some(workspace)
    }

    /// The session's GitHub information.
    pub fn github_info(&self) -> Option<GitHubInfo> {
        let pull = self.text(PULL_REQUEST_URL).and_then(GitHubInfo::from_address);
        let named = |owner: &str, repo: &str| GitHubInfo { owner: owner.into(), repo: repo.into(), pull_request: None };
        let info = match (self.text(OWNER), self.text(NAME)) {
            (Some(owner), Some(name)) => Some(named(owner, name)),
            _ => self.text(REPOSITORY_NWO).and_then(two_parts).map(|(owner, repo)| named(owner, repo)),
        };
        let info = info.or_else(|| self.text(REPOSITORY).and_then(two_parts).map(|(owner, repo)| named(owner, repo)));
        let info = info.or_else(|| self.text(REPOSITORY).and_then(GitHubInfo::from_address));
        let info = info.or_else(|| self.text(REPOSITORY_URL).and_then(GitHubInfo::from_address));
        match info {
            Some(info) => Some(GitHubInfo { pull_request: pull.and_then(|pull| pull.pull_request), ..info }),
            None => pull,
        }
    }

    /// The identity of the repository, the same for every clone.
    fn identity(&self) -> Option<Arc<str>> {
        let on_github = |(owner, name): (&str, &str)| Arc::from(format!("github.com/{owner}/{name}"));
        let named = self.text(OWNER).zip(self.text(NAME)).map(on_github);
        named
            .or_else(|| self.text(REPOSITORY_NWO).and_then(two_parts).map(on_github))
            .or_else(|| self.text(REPOSITORY).and_then(two_parts).map(on_github))
            .or_else(|| self.text(REPOSITORY).and_then(remote_identity))
            .or_else(|| self.text(REPOSITORY_URL).and_then(remote_identity))
    }

    /// The location of the repository or folder.
    fn source_uri(&self) -> Option<Uri> {
        if let (Some(owner), Some(name)) = (self.text(OWNER), self.text(NAME)) {
            let segment = |text| utf8_percent_encode(text, SEGMENT);
            let branch = self.text(BRANCH).unwrap_or("HEAD");
            let (owner, name, branch) = (segment(owner), segment(name), segment(branch));
            return Some(Uri::from(format!("github-remote-file://github/{owner}/{name}/{branch}")));
        }
        let folder = self.text(REPOSITORY_PATH).or(self.text(WORKTREE_PATH)).or(self.text(WORKING_DIRECTORY_PATH));
        folder.map(file_uri)
    }
}

/// The `file:` URI of an absolute path of either kind of system.
pub(crate) fn file_uri(path: &str) -> Uri {
    let path = path.replace('\\', "/");
    // A network share names its server, which becomes the authority.
    let (slash, path) = match path.strip_prefix("//") {
        Some(share) => ("", share.trim_start_matches('/')),
        None => ("/", path.strip_prefix('/').unwrap_or(&path)),
    };
    Uri::from(format!("file://{slash}{}", utf8_percent_encode(path, PATH)))
}

fn two_parts(text: &str) -> Option<(&str, &str)> {
    let (owner, name) = text.split_once('/')?;
    let name = name.strip_suffix(".git").unwrap_or(name);
    let plain = |part: &str| !part.is_empty() && !part.contains(['/', ':', '@', '\\']);
    (plain(owner) && plain(name)).then_some((owner, name))
}

/// The name of a repository by its remote. A URL gives its second segment, even if there are more.
fn name_of_remote(remote: &str) -> Option<String> {
    let has_scheme = remote.contains("://");
    let segment = if remote.contains('/') && !has_scheme && !remote.starts_with("git@") {
        remote.split('/').rfind(|part| !part.is_empty())
    } else if let Some(second) = second_segment_of_url(remote) {
        Some(second)
    } else if remote.starts_with("git@") {
        remote.split_once(':').and_then(|(_, path)| path.rsplit('/').next())
    } else {
        None
    }?;
    let name = segment.strip_suffix(".git").unwrap_or(segment);
    (!name.is_empty()).then(|| name.to_owned())
}

fn second_segment_of_url(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    let valid = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(|next| next.is_ascii_alphanumeric() || matches!(next, '+' | '-' | '.'));
    if !valid {
        return None;
    }
    let path = rest.split(['?', '#']).next().unwrap_or(rest).split_once('/')?.1;
    path.split('/').filter(|part| !part.is_empty()).nth(1)
}

/// The name of a folder: its own, or for a folder in `app.worktrees` that of the repository.
fn name_of_path(path: &str) -> Option<String> {
    let mut parts = path.rsplit(['/', '\\']).filter(|part| !part.is_empty());
    let last = parts.next()?;
    let name = match parts.next().and_then(|parent| parent.strip_suffix(".worktrees")) {
        Some(repository) => repository,
        None => last,
    };
    (!name.is_empty()).then(|| name.to_owned())
}

/// The text after the icon of a repository, folder or worktree.
fn name_in_badge(badge: &str) -> Option<String> {
    let mut rest = badge;
    while let Some(start) = rest.find("$(") {
        rest = &rest[start + 2..];
        let icon = ["repo)", "folder)", "worktree)"].iter().find_map(|icon| rest.strip_prefix(icon));
        let Some(after) = icon else { continue };
        if let Some(line) = after.trim_start().lines().next() {
            return Some(line.trim().to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn metadata(value: Value) -> Metadata {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn each_place_is_looked_at_in_its_turn() {
        let all = [
            (REMOTE_AGENT_HOST, "box", "eight [box]"),
            (OWNER, "o", "two"),
            (REPOSITORY_NWO, "o/three", "three"),
            (REPOSITORY, "git@example.org:o/four.git", "four"),
            (REPOSITORY_URL, "https://example.org/o/five", "five"),
            (REPOSITORY_PATH, "/r/six", "six"),
            (WORKTREE_PATH, "/r/seven.worktrees/branch", "seven"),
            (WORKING_DIRECTORY_PATH, "/r/eight", "eight"),
        ];
        for first in 0..=all.len() {
            let mut given = Metadata::default().with(NAME, "two");
            for (key, value, _) in &all[first..] {
                given = given.with(key, *value);
            }
            let expected = all.get(first).map_or("nine", |(_, _, expected)| expected);
            assert_eq!(given.repository_name(Some("$(repo) nine")).as_deref(), Some(expected), "from {first} on");
        }
    }

    #[test]
    fn odd_metadata_gives_what_other_programs_make_of_it() {
        let cases = [
            (json!({"remoteAgentHost": "box", "workingDirectoryPath": "/"}), Some("box")),
            (json!({"remoteAgentHost": 7, "workingDirectoryPath": ["x"]}), None),
            (json!({"owner": "o"}), None),
            (json!({"repositoryNwo": "o/"}), Some("")),
            (json!({"repository": "https://example.org/group/sub/repo.git"}), Some("sub")),
            (json!({"repository": "https://example.org/o"}), None),
            (json!({"repository": "git@example.org:"}), None),
            (json!({"repository": "plain"}), None),
            (json!({"repository": "o/.git"}), None),
            (json!({"repository": "://a/b/c"}), None),
            (json!({"worktreePath": "/r/.worktrees/b"}), None),
            (json!({"worktreePath": "/r/app.worktrees/b/sub"}), Some("sub")),
            (json!({"workingDirectoryPath": "C:\\src\\app\\"}), Some("app")),
        ];
        for (given, expected) in cases {
            assert_eq!(metadata(given.clone()).repository_name(None).as_deref(), expected, "{given}");
        }
        let badge = |badge| Metadata::default().repository_name(Some(badge));
        assert_eq!(badge("$(worktree)   feature  ").as_deref(), Some("feature"));
        assert_eq!(badge("$(git-branch) main"), None);
        assert_eq!(badge("$(git-branch) main $(repo) o/r").as_deref(), Some("o/r"));
        assert_eq!(badge("$(repo)"), None);
    }

    #[test]
    fn a_local_session_is_grouped_by_its_folder() {
        let workspace = Metadata::local("/home/u/my app").workspace(None).unwrap();
        assert_eq!((&*workspace.label, workspace.uri.as_str()), ("my app", "file:///home/u/my%20app"));
        assert!(workspace.repositories.is_empty() && workspace.host.is_none());
        assert_eq!(Metadata::local("C:\\src\\app").workspace(None).unwrap().uri.as_str(), "file:///C:/src/app");
    }

    #[test]
    fn a_remote_session_is_labelled_with_its_host() {
        let workspace = Metadata::remote("dev-box", "/srv/app").workspace(None).unwrap();
        assert_eq!((&*workspace.label, workspace.host.as_deref()), ("app [dev-box]", Some("dev-box")));
    }

    #[test]
    fn a_cloud_session_works_on_a_repository_of_a_forge() {
        let given = Metadata::cloud("acme", "site").with(BRANCH, "fix/a b");
        let workspace = given.workspace(None).unwrap();
        assert_eq!(
            (&*workspace.label, workspace.uri.as_str()),
            ("site", "github-remote-file://github/acme/site/fix%2Fa%20b")
        );
        assert_eq!(workspace.repositories[0].identity.as_deref(), Some("github.com/acme/site"));
        assert_eq!(Metadata::cloud("a", "b").workspace(None).unwrap().uri.basename(), "HEAD");
    }

    #[test]
    fn a_worktree_session_belongs_to_its_repository() {
        let given =
            Metadata::worktree("/r/app", "/r/app.worktrees/fix").with(BRANCH, "fix").with(BASE_BRANCH_NAME, "main");
        let workspace = given.workspace(None).unwrap();
        let repository = &workspace.repositories[0];
        assert_eq!((&*workspace.label, repository.uri.as_str()), ("app", "file:///r/app"));
        let working_directory = repository.working_directory.as_ref().unwrap();
        assert_eq!(working_directory.as_str(), "file:///r/app.worktrees/fix");
        assert_eq!((repository.detail.as_deref(), repository.base_branch_name.as_deref()), (Some("fix"), Some("main")));
        assert_eq!(repository.base_branch_protected, None, "nobody said so");
        let metadata = metadata(json!({"repositoryPath": "/r/app", "baseBranchProtected": true}));
        assert_eq!(metadata.workspace(None).unwrap().repositories[0].base_branch_protected, Some(true));
    }

    #[test]
    fn what_was_stored_gives_the_same_workspace_again() {
        let given = Metadata::remote("dev-box", "/srv/app").with("theirs", "kept");
        let stored: Metadata = serde_json::from_str(&serde_json::to_string(&given).unwrap()).unwrap();
        assert_eq!((stored.workspace(None), &stored), (given.workspace(None), &given));
    }

    #[test]
    fn nothing_known_is_no_workspace() {
        assert_eq!(Metadata::default().workspace(None), None);
        assert_eq!(&*Metadata::default().workspace(Some("$(folder) app")).unwrap().label, "app");
    }

    #[test]
    fn github_is_found_by_name_then_by_remote_then_by_pull_request() {
        let pull = "https://github.com/p/q/pull/9";
        let cases = [
            (json!({"owner": "a", "name": "b", "repositoryNwo": "c/d", "pullRequestUrl": pull}), ("a", "b", Some(9))),
            (json!({"repositoryNwo": "c/d", "repositoryUrl": "https://github.com/e/f"}), ("c", "d", None)),
            (json!({"repositoryNwo": "c/d/e", "repositoryUrl": "https://github.com/e/f"}), ("e", "f", None)),
            (json!({"repository": "git@github.com:g/h.git"}), ("g", "h", None)),
            (json!({"pullRequestUrl": pull}), ("p", "q", Some(9))),
        ];
        for (given, (owner, repo, number)) in cases {
            let info = metadata(given.clone()).github_info().unwrap();
            let pull = info.pull_request.map(|pull| pull.number);
            assert_eq!((&*info.owner, &*info.repo, pull), (owner, repo, number), "{given}");
        }
        assert_eq!(metadata(json!({"repositoryUrl": "https://example.org/e/f"})).github_info(), None);
    }
}
