//! The path conventions of a store's machine.
//!
//! Inside Grove a path is relative and its parts are separated by `/`, whatever the store. These rules are for the
//! other spelling, which the store's own machine understands: it is shown to people and agents, and sent to a storage
//! client.

use serde::{Deserialize, Serialize};

/// The rules of a machine for its paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Conventions {
    Posix,
    Windows,
}

impl Conventions {
    /// The conventions of this machine.
    pub const fn native() -> Self {
        if cfg!(windows) { Conventions::Windows } else { Conventions::Posix }
    }

    /// The separator between two parts.
    pub const fn separator(self) -> char {
        match self {
            Conventions::Posix => '/',
            Conventions::Windows => '\\',
        }
    }

    /// Returns whether a character ends a part. Windows accepts `/` as well.
    pub const fn is_separator(self, character: char) -> bool {
        match self {
            Conventions::Posix => character == '/',
            Conventions::Windows => matches!(character, '/' | '\\'),
        }
    }

    /// Returns whether a path is absolute. On Windows that takes a drive with a separator behind it, or a server:
    /// `\folder` and `C:folder` depend on the current directory.
    pub fn is_absolute(self, path: &str) -> bool {
        match self {
            Conventions::Posix => path.starts_with('/'),
            Conventions::Windows => self.root_of(path).is_some(),
        }
    }

    /// Joins parts one below the other. A later part is always below the earlier ones, even if it begins with a
    /// separator.
    /// Nothing is resolved: `..` stays `..`. Empty parts are left out.
    pub fn join(self, parts: &[&str]) -> String {
        let mut joined = String::new();
        for part in parts.iter().filter(|part| !part.is_empty()) {
            if joined.is_empty() {
                joined.push_str(part);
                continue;
            }
            let below = part.trim_start_matches(|c| self.is_separator(c));
            if below.is_empty() {
                continue;
            }
            if !joined.ends_with(|c| self.is_separator(c)) {
                joined.push(self.separator());
            }
            match self {
                Conventions::Posix => joined.push_str(below),
                Conventions::Windows => joined.extend(below.chars().map(|c| if c == '/' { '\\' } else { c })),
            }
        }
        joined
    }

    /// The parts of an absolute path, from the root of all paths on. A drive is its letter in upper case; a server is
    /// below `UNC`, which is not a drive's name. `None` for a path that is not absolute. Empty parts are left out.
    pub fn parts(self, path: &str) -> Option<Vec<String>> {
        let (mut parts, rest) = match self {
            Conventions::Posix => (Vec::new(), path.strip_prefix('/')?),
            Conventions::Windows => self.root_of(path)?,
        };
        let rest = rest.split(|c| self.is_separator(c)).filter(|part| !part.is_empty());
        parts.extend(rest.map(str::to_owned));
        Some(parts)
    }

    /// The root of a Windows path, as parts, and the rest of the path.
    fn root_of(self, path: &str) -> Option<(Vec<String>, &str)> {
        let mut characters = path.chars();
        let (first, second) = (characters.next()?, characters.next()?);
        if self.is_separator(first) && self.is_separator(second) {
            let rest = characters.as_str();
            let server = rest.split(|c| self.is_separator(c)).next()?;
            return (!server.is_empty()).then(|| (vec!["UNC".to_owned()], rest));
        }
        let drive =
            first.is_ascii_alphabetic() && second == ':' && characters.next().is_some_and(|c| self.is_separator(c));
        drive.then(|| (vec![first.to_ascii_uppercase().to_string()], characters.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::Conventions::{Posix, Windows};

    #[test]
    fn what_is_joined_lies_below() {
        for (rules, parts, joined) in [
            (Posix, &["/state", "files", "a.md"][..], "/state/files/a.md"),
            (Posix, &["/", "a"], "/a"),
            (Posix, &["/state/", "/etc/passwd"], "/state/etc/passwd"),
            (Posix, &["/state", "", "/"], "/state"),
            (Posix, &[r"/a\b", "c"], r"/a\b/c"),
            (Posix, &[], ""),
            (Windows, &[r"C:\state", "files/notes/a.md"], r"C:\state\files\notes\a.md"),
            (Windows, &[r"C:\", "a"], r"C:\a"),
            (Windows, &["C:/state", r"\a"], r"C:/state\a"),
            (Windows, &[r"\\server\share", "a"], r"\\server\share\a"),
        ] {
            assert_eq!(rules.join(parts), joined, "{parts:?}");
        }
    }

    #[test]
    fn absolute_is_what_depends_on_nothing() {
        for (rules, path, parts) in [
            (Posix, "/", Some(&[][..])),
            (Posix, "/state//a/", Some(&["state", "a"])),
            (Posix, r"C:\a", None),
            (Posix, "a", None),
            (Posix, "", None),
            (Windows, r"c:\a\b", Some(&["C", "a", "b"])),
            (Windows, "C:/", Some(&["C"])),
            (Windows, "C:a", None),
            (Windows, r"\a", None),
            (Windows, r"\\server\share\a", Some(&["UNC", "server", "share", "a"])),
            (Windows, r"\\", None),
            (Windows, "/a", None),
            (Windows, "ä:", None),
        ] {
            let expected = parts.map(|parts| parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>());
            assert_eq!(rules.parts(path), expected, "{path}");
            assert_eq!(rules.is_absolute(path), parts.is_some(), "{path}");
        }
    }
}
