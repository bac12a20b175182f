//! Paths and their patterns.

use super::glob::{Certainty, GlobToken, TextToken, known, matches};
use super::{PatternError, require_bounds};

/// A pattern of paths.
///
/// | pattern | paths |
/// |---|---|
/// | `/etc/hosts`, `~/.ssh/**` | absolute, or in the home folder |
/// | `src/*.rs` | relative to the working directory; `*` is within one name, `**` any number of names |
/// | `.env`, `*.pem` | without a slash: this name in the working directory or any folder below it |
/// | `docs/` | the folder and everything below it |
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathPattern {
    text: String,
    base: PatternBase,
    tokens: Vec<GlobToken>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum PatternBase {
    Root,
    Home,
    Directory,
}

/// The path of a request or of a word, absolute and normalized; its pieces may be unknown.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PathText {
    Known(String),
    /// Pieces are unknown.
    Partial(Vec<TextToken>),
    /// Nothing is known.
    Unknown,
}

impl PathText {
    /// The text of a normalized path. One through the files of a process may lead anywhere.
    pub(crate) fn of(normal: Option<String>) -> Self {
        normal.filter(|path| !is_process_path(path)).map_or(PathText::Unknown, PathText::Known)
    }
}

/// True for `/proc/1/…`, `/proc/self/…` and `/dev/fd/…`, whose links depend on the process.
pub(crate) fn is_process_path(path: &str) -> bool {
    let Some(rest) = path.strip_prefix("/proc") else { return path.starts_with("/dev/fd") };
    let Some(rest) = rest.strip_prefix('/') else { return rest.is_empty() || rest.starts_with(['*', '?']) };
    let name = rest.split('/').next().unwrap_or_default();
    name.is_empty()
        || name.contains(['*', '?'])
        || name.chars().all(|c| c.is_ascii_digit())
        || matches!(name, "self" | "thread-self")
}

/// The folder itself, or anything below it.
const BELOW: [GlobToken; 2] = [GlobToken::Below, GlobToken::DoubleStar];

impl PathPattern {
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        require_bounds(text)?;
        let (base, rest) = match text.strip_prefix("~/") {
            Some(rest) => (PatternBase::Home, rest),
            None if text == "~" => (PatternBase::Home, ""),
            None => match text.strip_prefix('/') {
                Some(rest) => (PatternBase::Root, rest),
                None => (PatternBase::Directory, text.strip_prefix("./").unwrap_or(text)),
            },
        };
        if rest.split('/').any(|name| name == "..") {
            return Err(PatternError::Path(text.to_owned()));
        }
        let is_name_anywhere = base == PatternBase::Directory
            && !text.starts_with("./")
            && !rest.trim_end_matches('/').contains('/')
            && !matches!(rest, "**" | "" | ".");
        let mut names: Vec<&str> = rest.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
        if is_name_anywhere {
            names.insert(0, "**");
        }
        let mut tokens = Vec::new();
        for name in &names {
            match *name {
                "**" => tokens.extend(BELOW),
                name => {
                    tokens.push(GlobToken::Char('/'));
                    tokens.extend(name.chars().map(|c| match c {
                        '*' => GlobToken::Star,
                        '?' => GlobToken::One,
                        c => GlobToken::Char(c),
                    }));
                }
            }
        }
        if text.ends_with('/') {
            tokens.extend(BELOW);
        }
        Ok(Self { text: text.to_owned(), base, tokens })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Matches the path itself.
    pub(crate) fn matches(&self, path: &PathText, directory: Option<&str>, home: Option<&str>) -> Certainty {
        self.compare(path, directory, home, false)
    }

    /// Matches the path, or a folder that it is in.
    pub(crate) fn covers(&self, path: &PathText, directory: Option<&str>, home: Option<&str>) -> Certainty {
        self.compare(path, directory, home, true)
    }

    fn compare(&self, path: &PathText, directory: Option<&str>, home: Option<&str>, below: bool) -> Certainty {
        let base = match self.base {
            PatternBase::Root => Some(""),
            PatternBase::Home => home,
            PatternBase::Directory => directory,
        };
        let Some(base) = base.map(|base| base.trim_end_matches('/')) else {
            // Whether the pattern means this path is unknown.
            return Certainty::Maybe;
        };
        let text;
        let (mut pattern, tokens): (Vec<GlobToken>, &[TextToken]) = match path {
            PathText::Unknown => return Certainty::Maybe,
            PathText::Partial(tokens) => {
                (base.chars().map(GlobToken::Char).chain(self.tokens.iter().copied()).collect(), tokens)
            }
            // Most patterns differ from a path in a character before the first wildcard.
            PathText::Known(path) => {
                let Some(rest) = path.trim_end_matches('/').strip_prefix(base) else { return Certainty::No };
                let Some((pattern, rest)) = after_literal(&self.tokens, rest) else { return Certainty::No };
                text = known(rest);
                (pattern.to_vec(), &text)
            }
        };
        let itself = matches(&pattern, tokens);
        if !below || itself == Certainty::Yes {
            return itself;
        }
        pattern.extend(BELOW);
        itself.max(matches(&pattern, tokens))
    }
}

/// The rest of a pattern from its first wildcard on, and the rest of the text there; `None` if the characters before it differ.
fn after_literal<'p, 't>(pattern: &'p [GlobToken], text: &'t str) -> Option<(&'p [GlobToken], &'t str)> {
    let (mut pattern, mut text) = (pattern, text.chars());
    while let [GlobToken::Char(wanted), others @ ..] = pattern {
        if text.next()? != *wanted {
            return None;
        }
        pattern = others;
    }
    Some((pattern, text.as_str()))
}

/// The absolute path without `.`, `..` and `~`, by text alone; `None` if it cannot be known.
pub(crate) fn normalize(path: &str, directory: Option<&str>, home: Option<&str>) -> Option<String> {
    if path.is_empty() || path.contains('\0') {
        return None;
    }
    let path = path.strip_prefix("file://").filter(|rest| rest.starts_with('/') && !rest.contains('%')).unwrap_or(path);
    let whole = if path == "~" || path.starts_with("~/") {
        format!("{}{}", home?, &path[1..])
    } else if path.starts_with('~') {
        return None;
    } else if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{}/{path}", directory?)
    };
    let mut names: Vec<&str> = Vec::new();
    for name in whole.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    Some(format!("/{}", names.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_match(pattern: &str, path: &str) -> bool {
        let path = PathText::Known(normalize(path, Some("/w/app"), Some("/home/dev")).unwrap());
        PathPattern::parse(pattern).unwrap().matches(&path, Some("/w/app"), Some("/home/dev")) == Certainty::Yes
    }

    #[test]
    fn a_relative_pattern_matches_nothing_outside_the_working_directory() {
        assert!(is_match("src/**", "src/a/b.rs") && is_match("src/**", "/w/app/src/a") && is_match("src/**", "src"));
        for outside in ["../src/a", "/w/src/a", "src/../../src/a", "/src/a", "~/src/a", "/w/apple/src/a"] {
            assert!(!is_match("src/**", outside), "{outside}");
            assert!(!is_match("**", outside), "{outside}");
        }
        assert!(is_match("**", "src/../x") && !is_match("src/**", "src/../x"));
    }

    #[test]
    fn a_name_without_a_slash_matches_in_every_folder_of_the_working_directory() {
        assert!(is_match(".env", ".env") && is_match(".env", "a/b/.env") && is_match("*.pem", "keys/a.pem"));
        assert!(!is_match(".env", "/etc/.env") && !is_match(".env", "a.env") && !is_match("./.env", "a/.env"));
        assert!(is_match("./.env", ".env"));
    }

    #[test]
    fn a_star_stays_in_one_name_and_two_stars_do_not() {
        assert!(is_match("src/*.rs", "src/a.rs") && !is_match("src/*.rs", "src/a/b.rs"));
        assert!(is_match("src/**/x.rs", "src/a/b/x.rs") && is_match("src/**/x.rs", "src/x.rs"));
        assert!(!is_match("src/**", "srcs/a") && !is_match("src/**/x.rs", "src/ax.rs"));
        assert!(
            is_match("docs/", "docs/a/b") && is_match("/etc/**", "/etc/passwd") && is_match("~/.ssh/**", "~/.ssh/id")
        );
        assert!(is_match("/**", "/etc/passwd"));
    }

    #[test]
    fn a_deny_pattern_covers_what_is_below_it() {
        let covers = |pattern: &str, path: &str| {
            let path = PathText::Known(normalize(path, Some("/w"), None).unwrap());
            PathPattern::parse(pattern).unwrap().covers(&path, Some("/w"), None)
        };
        assert_eq!(covers("secrets", "secrets/a/b"), Certainty::Yes);
        assert_eq!(covers("secrets", "secretsmith"), Certainty::No);
        assert_eq!(covers("~/.ssh", "/home/dev/.ssh/id"), Certainty::Maybe, "the home folder is unknown");
    }

    #[test]
    fn dots_and_the_home_folder_are_resolved() {
        for (path, normal) in [
            ("a/./b//c/", Some("/w/a/b/c")),
            ("/../../etc/passwd", Some("/etc/passwd")),
            ("~/x", Some("/h/x")),
            ("~root/x", None),
            ("file:///w/x", Some("/w/x")),
            ("", None),
        ] {
            assert_eq!(normalize(path, Some("/w"), Some("/h")).as_deref(), normal, "{path}");
        }
    }
}
