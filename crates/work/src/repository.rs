//! The git repository of a folder, read from its files. Nothing is run: hooks and the configuration of the repository
//! have no effect.

pub(crate) mod config;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

pub use self::config::GitConfig;

/// The bytes of a git file that are read.
pub const READ: u64 = 1 << 20;
/// The number of parent folders that are searched for a repository.
const LEVELS: usize = 64;
/// The longest branch name, in bytes. A longer one counts as unknown.
pub const LONGEST_NAME: usize = 1_024;

/// A repository, as seen from one of its folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitRepository {
    /// The folder of the checkout.
    pub root: PathBuf,
    /// The main repository of a worktree: its checkout, or the repository itself if it is bare.
    pub worktree_of: Option<PathBuf>,
    /// The branch, if one is checked out.
    pub branch: Option<String>,
    /// The branch to merge into, if it is known. It is another one.
    pub base_branch: Option<String>,
    /// The URL of `origin`, or of the only remote.
    pub origin: Option<String>,
    /// The address of the branch's pull request.
    pub pull_request: Option<String>,
}

impl GitRepository {
    /// The repository of a folder. Unreadable facts are unknown.
    pub fn of(folder: &Path) -> Option<Self> {
        let root = folder.ancestors().take(LEVELS).find(|folder| folder.join(".git").exists())?;
        let own = own_folder(root)?;
        let shared = match read(&own.join("commondir")) {
            Ok(common) => own.join(common.trim_end()),
            Err(_) => own.clone(),
        };
        let config = read(&shared.join("config")).map(|text| GitConfig::parse(&text)).unwrap_or_default();
        let branch = read(&own.join("HEAD")).ok().and_then(|head| branch_in(&head));
        let known = GitFolder { shared: &shared, config: &config };
        Some(Self {
            root: root.to_owned(),
            worktree_of: (shared != own).then(|| source_of(&shared)),
            base_branch: branch.as_deref().and_then(|branch| known.base_branch(branch)),
            origin: known.main_remote().and_then(|remote| config.value("remote", remote, "url")).map(without_secret),
            pull_request: branch.as_deref().and_then(|branch| known.pull_request(branch)),
            branch,
        })
    }

    /// `owner/name` of the repository, by its origin.
    pub fn name(&self) -> Option<String> {
        remote_name(self.origin.as_deref()?)
    }

    /// The same, if the origin is on GitHub.
    pub fn github_name(&self) -> Option<String> {
        github_name(self.origin.as_deref()?)
    }
}

/// `owner/name` of a repository by the URL of a remote, on any forge.
pub fn remote_name(remote: &str) -> Option<String> {
    let remote = remote.trim_end_matches('/');
    let remote = remote.strip_suffix(".git").unwrap_or(remote);
    // `git@host:owner/name` and `https://host/owner/name` alike.
    let mut parts = remote.rsplit(['/', ':']).filter(|part| !part.is_empty());
    let (name, owner) = (parts.next()?, parts.next()?);
    parts.next().map(|_| format!("{owner}/{name}"))
}

/// The address of a pull request on GitHub, if the text is one.
pub fn pull_request_address(text: &str) -> Option<&str> {
    let path = text.strip_prefix("https://github.com/")?;
    let mut parts = path.split('/');
    let (owner, name, kind, number) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_one = is_plain(owner) && is_plain(name) && kind == "pull" && is_number(number) && parts.next().is_none();
    is_one.then_some(text)
}

/// The files of a repository.
struct GitFolder<'a> {
    /// Git's folder, shared by all worktrees.
    shared: &'a Path,
    config: &'a GitConfig,
}

impl GitFolder<'_> {
    fn is_remote(&self, name: &str) -> bool {
        self.config.value("remote", name, "url").is_some()
    }

    /// The main remote of the repository.
    fn main_remote(&self) -> Option<&str> {
        if self.is_remote("origin") {
            return Some("origin");
        }
        let mut remotes = self.config.values("remote", "url").map(|(remote, _)| remote);
        let first = remotes.next()?;
        remotes.all(|remote| remote == first).then_some(first)
    }

    /// The branch that another one is merged into: the one that tools have recorded, else the default branch of its
    /// remote, or of the main remote.
    fn base_branch(&self, branch: &str) -> Option<String> {
        let noted = ["vscode-merge-base", "gh-merge-base"];
        let noted = noted.into_iter().find_map(|name| self.config.value("branch", branch, name));
        let noted = noted.filter(|noted| is_name(noted));
        let base = match noted {
            Some(noted) => self.without_remote(noted.strip_prefix("refs/heads/").unwrap_or(noted)).to_owned(),
            None => {
                let own = self.config.value("branch", branch, "remote").filter(|remote| self.is_remote(remote));
                own.into_iter().chain(self.main_remote()).find_map(|remote| self.first_branch(remote))?
            }
        };
        (base != branch && is_name(&base)).then_some(base)
    }

    /// `main` of `origin/main`.
    fn without_remote<'b>(&self, name: &'b str) -> &'b str {
        let remote_of = |(at, _): (usize, &str)| self.is_remote(&name[..at]).then(|| &name[at + 1..]);
        name.match_indices('/').find_map(remote_of).unwrap_or(name)
    }

    /// The default branch of a remote.
    fn first_branch(&self, remote: &str) -> Option<String> {
        // The name must not lead to another folder.
        let is_inside = Path::new(remote).components().all(|part| matches!(part, Component::Normal(_)));
        let head = is_inside.then(|| self.shared.join("refs/remotes").join(remote).join("HEAD"))?;
        let head = read(&head).ok()?;
        let name = head.trim_end().strip_prefix("ref: refs/remotes/")?.strip_prefix(remote)?.strip_prefix('/')?;
        Some(name.to_owned())
    }

    /// The pull request of a branch: recorded by the editor's extension, or checked out as one.
    fn pull_request(&self, branch: &str) -> Option<String> {
        let address = |name: &str, number: &str| Some(format!("https://github.com/{name}/pull/{number}"));
        if let Some(noted) = self.config.value("branch", branch, "github-pr-owner-number") {
            // The same record is made for pull requests of other servers, and does not name the server.
            let is_there = self.config.values("remote", "url").any(|(_, url)| github_name(url).is_some());
            let mut parts = noted.split('#');
            if let (Some(owner), Some(name), Some(number), None) =
                (parts.next(), parts.next(), parts.next(), parts.next())
                && is_there
                && is_plain(owner)
                && is_plain(name)
                && is_number(number)
            {
                return address(&format!("{owner}/{name}"), number);
            }
        }
        let merged = self.config.value("branch", branch, "merge")?;
        let number = merged.strip_prefix("refs/pull/")?.strip_suffix("/head").filter(|number| is_number(number))?;
        let remote = self.config.value("branch", branch, "remote")?;
        // It is a remote's name, or a URL itself.
        address(&github_name(self.config.value("remote", remote, "url").unwrap_or(remote))?, number)
    }
}

/// Git's own folder of a checkout: for a worktree it is elsewhere, and a file names it.
fn own_folder(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let content = read(&git).ok()?;
    Some(root.join(content.trim_end().strip_prefix("gitdir: ")?))
}

/// The main repository of a worktree, by git's folder there.
fn source_of(shared: &Path) -> PathBuf {
    // Its path may lead through the worktree's own folder.
    let shared = shared.canonicalize().unwrap_or_else(|_| shared.to_owned());
    match shared.parent() {
        Some(checked_out) if shared.file_name().is_some_and(|name| name == ".git") => checked_out.to_owned(),
        Some(_) | None => shared,
    }
}

fn branch_in(head: &str) -> Option<String> {
    let name = head.trim_end().strip_prefix("ref: refs/heads/")?;
    // If references are not stored in files, this placeholder is here.
    (name != ".invalid" && is_name(name)).then(|| name.to_owned())
}

fn read(file: &Path) -> io::Result<String> {
    // Opening a pipe would block until somebody writes to it.
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    File::open(file)?.take(READ).read_to_end(&mut bytes)?;
    // A truncated file may end within a character.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns whether a text can be the name of a branch, and is worth showing.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= LONGEST_NAME && !text.contains(char::is_control)
}

/// Returns whether a text can be an owner or a repository name on GitHub.
fn is_plain(text: &str) -> bool {
    let belongs = |next: char| next.is_ascii_alphanumeric() || matches!(next, '-' | '_' | '.');
    (1..=100).contains(&text.len()) && text.chars().all(belongs) && text != "." && text != ".."
}

fn is_number(text: &str) -> bool {
    !text.starts_with('0') && text.bytes().all(|next| next.is_ascii_digit()) && text.parse::<u32>().is_ok()
}

/// `owner/name` of a remote on GitHub.
fn github_name(remote: &str) -> Option<String> {
    let (place, path) = match remote.split_once("://") {
        Some((_, rest)) => rest.split_once('/')?,
        None => remote.split_once(':')?,
    };
    let host = place.rsplit_once('@').map_or(place, |(_, host)| host);
    let host = host.split_once(':').map_or(host, |(host, _port)| host);
    if !["github.com", "ssh.github.com"].iter().any(|github| host.eq_ignore_ascii_case(github)) {
        return None;
    }
    let path = path.trim_matches('/');
    let (owner, name) = path.strip_suffix(".git").unwrap_or(path).split_once('/')?;
    (is_plain(owner) && is_plain(name)).then(|| format!("{owner}/{name}"))
}

/// A URL without its token.
fn without_secret(url: &str) -> String {
    match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?))) {
        Some((scheme, (user, rest))) if !user.contains('/') && scheme != "ssh" => format!("{scheme}://{rest}"),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    const CONFIG: &str = "[core]\n\turl = no\n[remote \"other\"]\n\turl = no\n[remote \"origin\"]\n\turl = https://me:secret@example.org/owner/name.git\n";

    #[test]
    fn a_folder_belongs_to_the_repository_above_it() {
        let folder = with(&[(".git/HEAD", "ref: refs/heads/feature/x\n"), (".git/config", CONFIG), ("a/b/c", "")]);
        let found = GitRepository::of(&folder.path().join("a/b")).unwrap();
        assert_eq!((found.root.as_path(), found.branch.as_deref()), (folder.path(), Some("feature/x")));
        assert_eq!(found.origin.as_deref(), Some("https://example.org/owner/name.git"), "no secret is told");
        assert_eq!(found.name().as_deref(), Some("owner/name"));
    }

    #[test]
    fn a_worktree_knows_its_branch_and_the_repositorys_origin() {
        let folder = with(&[
            ("main/.git/config", CONFIG),
            ("main/.git/worktrees/w/HEAD", "ref: refs/heads/w\n"),
            ("main/.git/worktrees/w/commondir", "../..\n"),
            ("w/.git", "gitdir: ../main/.git/worktrees/w\n"),
        ]);
        let found = GitRepository::of(&folder.path().join("w")).unwrap();
        assert_eq!((found.branch.as_deref(), found.name().as_deref()), (Some("w"), Some("owner/name")));
        assert_eq!(found.worktree_of, Some(folder.path().join("main").canonicalize().unwrap()));
        let bare = with(&[
            ("site.git/worktrees/w/HEAD", "ref: refs/heads/w\n"),
            ("site.git/worktrees/w/commondir", "../..\n"),
            ("w/.git", "gitdir: ../site.git/worktrees/w\n"),
        ]);
        let found = GitRepository::of(&bare.path().join("w")).unwrap();
        assert_eq!(found.worktree_of, Some(bare.path().join("site.git").canonicalize().unwrap()));
    }

    const ORIGIN: &str = "[remote \"origin\"]\nurl = git@github.com:acme/site.git\n";
    const FORK: &str = "[remote \"me/fork\"]\nurl = https://github.com/me/site\n";
    const BOTH_HEADS: [(&str, &str); 2] = [
        (".git/refs/remotes/origin/HEAD", "ref: refs/remotes/origin/main\n"),
        (".git/refs/remotes/me/fork/HEAD", "ref: refs/remotes/me/fork/trunk\n"),
    ];

    /// The repository on the branch `fix` with this configuration.
    fn on_fix(config: &str, files: &[(&str, &str)]) -> GitRepository {
        let config = format!("{ORIGIN}{FORK}[branch \"fix\"]\n{config}");
        let own = [(".git/HEAD", "ref: refs/heads/fix\n"), (".git/config", config.as_str())];
        GitRepository::of(with(&[&own, files].concat()).path()).unwrap()
    }

    #[test]
    fn the_base_branch_is_what_tools_noted_else_where_the_remote_begins() {
        let cases = [
            ("vscode-merge-base = origin/release/1\ngh-merge-base = no", Some("release/1")),
            ("vscode-merge-base = me/fork/dev", Some("dev")),
            ("gh-merge-base = dev", Some("dev")),
            ("gh-merge-base = feature/dev", Some("feature/dev")),
            ("remote = me/fork", Some("trunk")),
            ("remote = https://github.com/me/site", Some("main")),
            ("", Some("main")),
            ("gh-merge-base = fix", None),
            ("vscode-merge-base = origin/fix", None),
        ];
        for (config, base) in cases {
            assert_eq!(on_fix(config, &BOTH_HEADS).base_branch.as_deref(), base, "{config}");
        }
        assert_eq!(on_fix("", &[]).base_branch, None);
        assert_eq!(on_fix("", &[(".git/refs/remotes/origin/HEAD", "0123abcd\n")]).base_branch, None);
    }

    #[test]
    fn the_branch_that_a_remote_begins_with_has_no_base() {
        let head = (".git/refs/remotes/origin/HEAD", "ref: refs/remotes/origin/main\n");
        let folder = with(&[(".git/HEAD", "ref: refs/heads/main\n"), (".git/config", ORIGIN), head]);
        let found = GitRepository::of(folder.path()).unwrap();
        assert_eq!((found.branch.as_deref(), found.base_branch), (Some("main"), None));
    }

    #[test]
    fn the_name_of_a_remote_leads_to_no_other_file() {
        let config = "[remote \"../../../x\"]\nurl = git@github.com:acme/site.git\n";
        let other = ("x/HEAD", "ref: refs/remotes/../../../x/main\n");
        let folder = with(&[(".git/HEAD", "ref: refs/heads/fix\n"), (".git/config", config), other]);
        assert_eq!(GitRepository::of(folder.path()).unwrap().base_branch, None);
    }

    #[test]
    fn a_branch_is_tied_to_a_pull_request_by_the_editor_or_by_having_been_checked_out_as_one() {
        let cases = [
            ("github-pr-owner-number = \"acme#site#7\"", Some("https://github.com/acme/site/pull/7")),
            (
                "github-pr-owner-number = \"acme#site#7\"\nremote = origin\nmerge = refs/pull/8/head",
                Some("acme/site/pull/7"),
            ),
            ("remote = origin\nmerge = refs/pull/8/head", Some("acme/site/pull/8")),
            ("remote = https://github.com/acme/site\nmerge = refs/pull/9/head", Some("acme/site/pull/9")),
            ("remote = origin\nmerge = refs/heads/fix", None),
            ("remote = https://example.org/acme/site\nmerge = refs/pull/9/head", None),
            ("merge = refs/pull/9/head", None),
            ("github-pr-owner-number = \"acme#site\"", None),
            ("github-pr-owner-number = \"acme#site#7#8\"", None),
            ("github-pr-owner-number = \"acme#a/b#7\"", None),
            ("github-pr-owner-number = \"acme#site#0\"", None),
            ("github-pr-owner-number = \"acme#site#x\"", None),
        ];
        for (config, expected) in cases {
            let known = on_fix(config, &[]).pull_request;
            assert_eq!(known.is_some(), expected.is_some(), "{config}: {known:?}");
            assert!(
                known.as_deref().unwrap_or_default().ends_with(expected.unwrap_or_default()),
                "{config}: {known:?}"
            );
        }
        let elsewhere = "[remote \"origin\"]\nurl = https://git.example.org/acme/site\n[branch \"fix\"]\ngithub-pr-owner-number = \"acme#site#7\"\n";
        let folder = with(&[(".git/HEAD", "ref: refs/heads/fix\n"), (".git/config", elsewhere)]);
        let found = GitRepository::of(folder.path()).unwrap();
        assert_eq!((found.pull_request.as_deref(), found.github_name()), (None, None), "it is another server's");
        assert_eq!(found.name().as_deref(), Some("acme/site"));
    }

    #[test]
    fn only_an_address_of_a_pull_request_and_nothing_else_is_one() {
        let address = "https://github.com/acme/site.js/pull/12";
        assert_eq!(pull_request_address(address), Some(address));
        let others = ["/files", "#issuecomment-1", "?x", " ", "x", "/"].map(|more| format!("{address}{more}"));
        let more = ["https://github.com/acme/site/issues/1", "https://github.com/acme/pull/1", "", "x"];
        for other in others.iter().map(String::as_str).chain(more) {
            assert_eq!(pull_request_address(other), None, "{other}");
        }
    }

    #[test]
    fn names_on_github_are_read_from_every_spelling_of_a_remote() {
        for remote in [
            "git@github.com:o/n.git",
            "https://x@GitHub.com/o/n/",
            "ssh://git@github.com:22/o/n",
            "ssh://git@ssh.github.com:443/o/n.git",
        ] {
            assert_eq!(github_name(remote).as_deref(), Some("o/n"), "{remote}");
        }
        for remote in ["https://github.com/o", "https://github.com/o/n/x", "https://notgithub.com/o/n", "/srv/o/n", "o"]
        {
            assert_eq!(github_name(remote), None, "{remote}");
        }
    }

    #[test]
    fn what_is_not_there_is_not_known() {
        for head in ["0123456789abcdef\n", "ref: refs/heads/.invalid\n", "ref: refs/heads/\n", ""] {
            let folder = with(&[(".git/HEAD", head)]);
            let found = GitRepository::of(folder.path()).unwrap();
            assert_eq!(found, GitRepository { root: folder.path().to_owned(), ..GitRepository::default() });
        }
        let broken = with(&[("x/.git", "nonsense")]);
        assert_eq!(GitRepository::of(&broken.path().join("x")), None);
    }

    #[test]
    fn names_are_read_from_every_spelling_of_an_origin() {
        for origin in ["git@example.org:o/n.git", "ssh://git@example.org/o/n", "https://example.org/group/o/n/"] {
            assert_eq!(remote_name(origin).as_deref(), Some("o/n"), "{origin}");
        }
        assert_eq!(remote_name("name"), None);
        assert_eq!(remote_name("/srv"), None);
    }
}
