//! Which git repository a folder belongs to, from what lies there. Nothing is run: a hook or a configuration of the
//! repository has no say in it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// How much of a file of git's is read.
const READ: u64 = 256 << 10;
/// How far up a repository is looked for.
const LEVELS: usize = 64;

/// A repository, as seen from one of its folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// The folder that is checked out.
    pub root: PathBuf,
    /// The branch, where one is checked out.
    pub branch: Option<String>,
    /// Where `origin` is.
    pub origin: Option<String>,
}

impl Repository {
    /// The repository that a folder belongs to. What cannot be read is not known.
    pub fn of(folder: &Path) -> Option<Self> {
        let root = folder.ancestors().take(LEVELS).find(|folder| folder.join(".git").exists())?;
        let own = own_folder(root)?;
        let branch = read(&own.join("HEAD")).ok().and_then(|head| {
            let name = head.trim_end().strip_prefix("ref: refs/heads/")?;
            Some(name.to_owned()).filter(|name| !name.is_empty())
        });
        let shared = match read(&own.join("commondir")) {
            Ok(common) => own.join(common.trim_end()),
            Err(_) => own,
        };
        let origin = read(&shared.join("config")).ok().and_then(|config| origin_in(&config));
        Some(Self { root: root.to_owned(), branch, origin })
    }

    /// `owner/name` of the repository, where its origin tells.
    pub fn name(&self) -> Option<String> {
        let origin = self.origin.as_deref()?.trim_end_matches('/');
        let origin = origin.strip_suffix(".git").unwrap_or(origin);
        // `git@host:owner/name` and `https://host/owner/name` alike.
        let mut parts = origin.rsplit(['/', ':']).filter(|part| !part.is_empty());
        let (name, owner) = (parts.next()?, parts.next()?);
        parts.next().map(|_| format!("{owner}/{name}"))
    }
}

/// Git's own folder of what is checked out: of a worktree it lies elsewhere, and a file says where.
fn own_folder(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let told = read(&git).ok()?;
    Some(root.join(told.trim_end().strip_prefix("gitdir: ")?))
}

fn read(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(file)?.take(READ).read_to_string(&mut text)?;
    Ok(text)
}

/// The URL of `origin` in a configuration of git's.
fn origin_in(config: &str) -> Option<String> {
    let mut inside = false;
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line == "[remote \"origin\"]";
        } else if inside
            && let Some((key, value)) = line.split_once('=')
            && key.trim() == "url"
        {
            return Some(without_secret(value.trim())).filter(|url| !url.is_empty());
        }
    }
    None
}

/// A URL may hold a token, which is nobody's business.
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
        let found = Repository::of(&folder.path().join("a/b")).unwrap();
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
        let found = Repository::of(&folder.path().join("w")).unwrap();
        assert_eq!((found.branch.as_deref(), found.name().as_deref()), (Some("w"), Some("owner/name")));
    }

    #[test]
    fn what_is_not_there_is_not_known() {
        let folder = with(&[(".git/HEAD", "0123456789abcdef\n")]);
        let found = Repository::of(folder.path()).unwrap();
        assert_eq!((found.branch, found.origin), (None, None));
        let broken = with(&[("x/.git", "nonsense")]);
        assert_eq!(Repository::of(&broken.path().join("x")), None);
    }

    #[test]
    fn names_are_read_from_every_spelling_of_an_origin() {
        let name =
            |origin: &str| Repository { root: PathBuf::new(), branch: None, origin: Some(origin.to_owned()) }.name();
        for origin in ["git@example.org:o/n.git", "ssh://git@example.org/o/n", "https://example.org/group/o/n/"] {
            assert_eq!(name(origin).as_deref(), Some("o/n"), "{origin}");
        }
        assert_eq!(name("name"), None);
        assert_eq!(name("/srv"), None);
    }
}
