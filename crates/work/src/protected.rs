//! Protected files: files in a workspace that decide what runs there. They are written only after a person approved it.
//!
//! A hook in `.git` or a command in an agent's settings runs later, outside of the present permissions of an agent or of a
//! token.

use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};

use grove_checks::Check;

/// Git's own data, and the configuration of Grove and of agents. Names are compared without case, as on some file
/// systems.
const GIT: &str = ".git";
const CONFIGURATION: [&str; 15] = [
    ".grove",
    "grove.toml",
    ".agents",
    ".claude",
    ".codex",
    ".copilot",
    ".gemini",
    ".goose",
    ".mcp.json",
    ".omp",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".pi",
    ".qwen",
];

/// The reason why a file is protected, in words that follow its path.
pub fn protection(roots: &[PathBuf], requested_path: &Path, real: &Path) -> Option<&'static str> {
    if !Check::ProtectedFiles.is_enforced() {
        return None;
    }
    [requested_path, real].into_iter().find_map(|path| named(below_root(roots, path))).or_else(|| {
        let top = root(roots, real);
        let folders =
            real.ancestors().skip(1).take_while(|folder| top.as_ref().is_none_or(|top| folder.starts_with(top)));
        folders.into_iter().any(is_git_folder).then_some(IS_GIT)
    })
}

const IS_GIT: &str = "belongs to Git's own data, whose hooks and settings run programs";
const IS_CONFIGURATION: &str = "configures an agent or Grove, which may run programs";

/// The part of a path below its working directory: a workspace may itself be inside a protected folder.
fn below_root<'a>(roots: &[PathBuf], path: &'a Path) -> &'a Path {
    let below = roots.iter().filter_map(|root| path.strip_prefix(root).ok());
    let real = roots.iter().filter_map(|root| path.strip_prefix(fs::canonicalize(root).ok()?).ok());
    below.chain(real).min_by_key(|rest| rest.components().count()).unwrap_or(path)
}

fn root(roots: &[PathBuf], real: &Path) -> Option<PathBuf> {
    let roots = roots.iter().filter_map(|root| fs::canonicalize(root).ok()).filter(|root| real.starts_with(root));
    roots.max_by_key(|root| root.components().count())
}

fn named(path: &Path) -> Option<&'static str> {
    path.components().find_map(|part| {
        let Component::Normal(name) = part else { return None };
        protected_name(name)
    })
}

/// The reason why a file or folder of this name is protected, with everything below it.
pub(crate) fn protected_name(name: &OsStr) -> Option<&'static str> {
    let name = folded(&name.to_string_lossy());
    if name == GIT { Some(IS_GIT) } else { CONFIGURATION.contains(&name.as_str()).then_some(IS_CONFIGURATION) }
}

/// A name as case-insensitive file systems compare it, without invisible characters.
fn folded(name: &str) -> String {
    let is_unseen =
        |c: char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    name.chars().filter(|c| !is_unseen(*c)).flat_map(char::to_lowercase).collect()
}

/// Returns whether a folder is a repository's data, whatever its name: a bare repository, or one that `.git` refers to.
fn is_git_folder(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).exists();
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

    use super::*;

    #[test]
    fn names_are_guarded_in_any_case_and_only_below_the_working_directory() {
        let roots = [PathBuf::from("/h/.claude/worktrees/a"), PathBuf::from("/w")];
        let is = |path: &str| protection(&roots, Path::new(path), Path::new(path)).is_some();
        for protected in [
            "/w/.git/hooks/pre-commit",
            "/w/sub/.GIT/config",
            "/w/.g\u{200c}it/config",
            "/w/.git",
            "/w/.claude/settings.json",
            "/w/a/.mcp.json",
            "/w/Grove.toml",
        ] {
            assert!(is(protected), "{protected}");
        }
        for free in [
            "/w/a.txt",
            "/w/.gitignore",
            "/w/git/hooks/x",
            "/h/.claude/worktrees/a/src/x",
            "/w/.github/workflows/a.yml",
        ] {
            assert!(!is(free), "{free}");
        }
    }

    #[test]
    fn a_repository_is_known_by_what_it_holds() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let data = root.join("data");
        for name in ["objects", "refs", "hooks"] {
            fs::create_dir_all(data.join(name)).unwrap();
        }
        let hook = data.join("hooks/pre-commit");
        assert_eq!(protection(std::slice::from_ref(&root), &hook, &hook), None);
        fs::write(data.join("HEAD"), "ref: refs/heads/main").unwrap();
        assert_eq!(protection(std::slice::from_ref(&root), &hook, &hook), Some(IS_GIT));
        assert_eq!(protection(std::slice::from_ref(&root), &root.join("a"), &root.join("a")), None);
        assert_eq!(
            protection(std::slice::from_ref(&root), &root.join(".git/x"), &root.join("b")),
            Some(IS_GIT),
            "through a link"
        );
    }
}
