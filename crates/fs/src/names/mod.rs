//! Names from people, agents and clients: of files below `files/` and `research/`.
//!
//! A name is relative, its parts separated by `/`. A name that could lead out of its folder, that some backend cannot
//! store, or that looks like another, is refused: always with the same [`BadName`] whatever the backend, so that a
//! session can move from any backend to any other.
//!
//! The rules:
//!
//! - Only `/` separates. A `\` is refused and not converted: it is a separator on one machine and a letter on another.
//! - A name must be in Unicode's normal form C. Others are refused and not changed, so that a listed name is exactly
//!   the written one, and two names that only differ by their form cannot both exist.
//! - Case matters: `A.md` and `a.md` are two names.
//! - Characters that look like dots and slashes, or become them when text is normalised, are refused, as are invisible
//!   ones: joiners and variation selectors too, which only matter to prose and emoji.

mod unicode;
pub(crate) mod windows;

use std::fmt;

use grove_checks::Check;
use unicode_normalization::is_nfc;

use crate::{FsError, Result};

/// The longest part of a name, in bytes: the common limit of file systems.
pub const MAX_PART: usize = 255;

/// The longest name, in bytes. It leaves room for the path of a session's folder.
pub const MAX_NAME: usize = 1024;

/// A checked name: it stays in its folder, on every backend.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelativeName(String);

impl RelativeName {
    /// Checks a name, and returns its fault.
    pub fn parse(name: &str) -> Result<Self> {
        match fault(name) {
            None => Ok(Self(name.to_owned())),
            Some(reason) => Err(FsError::BadName { path: name.to_owned(), reason }),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }
}

impl fmt::Display for RelativeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The fault of a name. Of several faults the first of this list is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum BadName {
    #[error("it is empty: give it a name")]
    Empty,
    #[error("it is longer than {MAX_NAME} bytes: give it a shorter one")]
    LongName,
    #[error("it has a NUL in it: leave it out")]
    Nul,
    #[error("it has a control character in it: leave it out")]
    Control,
    #[error("it has a character that turns the direction of text: leave it out")]
    Direction,
    #[error("it has a character that cannot be seen: leave it out")]
    Invisible,
    #[error("it has a character that looks like a dot or a slash, or becomes one: write a plain one, or another")]
    Lookalike,
    #[error("it is not in Unicode's normal form C: write it in that form")]
    NotNormal,
    #[error("it begins like the name of a server: give a name inside the folder")]
    Server,
    #[error("it is absolute: give a name inside the folder")]
    Absolute,
    #[error("it begins with a drive: give a name inside the folder")]
    Drive,
    #[error("it has a `\\` in it: parts are separated by `/`")]
    Backslash,
    #[error("one of its parts is empty: separate parts by one `/`, with none at the end")]
    EmptyPart,
    #[error("`.` or `..` is a part of it: give a name inside the folder")]
    Dots,
    #[error("one of its parts is longer than {MAX_PART} bytes: give it a shorter one")]
    LongPart,
    #[error("it has one of `<>:\"|?*` in it, which Windows cannot have: leave it out")]
    Forbidden,
    #[error("one of its parts ends with a dot or a space, which Windows drops: leave it out")]
    Trailing,
    #[error("one of its parts is the name of a device on Windows: give it another")]
    Reserved,
}

/// The first fault of a name.
fn fault(name: &str) -> Option<BadName> {
    if name.is_empty() {
        return Some(BadName::Empty);
    }
    if name.len() > MAX_NAME {
        return Some(BadName::LongName);
    }
    // Of several characters, the one whose fault is first in the list is reported, wherever it is in the name.
    if let Some(fault) = name.chars().filter_map(unicode::fault).min() {
        return Some(fault);
    }
    if !is_nfc(name) {
        return Some(BadName::NotNormal);
    }
    lead_fault(name).or_else(|| name.split('/').filter_map(part_fault).min())
}

/// The fault of a name's beginning, or of its separators.
fn lead_fault(name: &str) -> Option<BadName> {
    let mut characters = name.chars();
    let is_separator = |character: Option<char>| matches!(character, Some('/' | '\\'));
    let (first, second) = (characters.next(), characters.next());
    match (is_separator(first), is_separator(second)) {
        (true, true) => Some(BadName::Server),
        (true, false) => Some(BadName::Absolute),
        _ if first.is_some_and(|c| c.is_ascii_alphabetic()) && second == Some(':') => Some(BadName::Drive),
        _ => name.contains('\\').then_some(BadName::Backslash),
    }
}

fn part_fault(part: &str) -> Option<BadName> {
    match part {
        "" => Some(BadName::EmptyPart),
        "." | ".." if Check::Dots.is_enforced() => Some(BadName::Dots),
        _ if part.len() > MAX_PART => Some(BadName::LongPart),
        _ => windows::fault(part),
    }
}

#[cfg(test)]
mod tests {
    use super::{BadName, MAX_NAME, MAX_PART, fault};

    #[test]
    fn ordinary_names_are_taken() {
        for name in [
            "a",
            "notes/x.md",
            ".hidden",
            "a..b",
            "-rf",
            "~/x",
            "Bericht über Bäume.md",
            "報告書（最終版）.txt",
            "🌲.png",
            "console.log",
            "com10",
            "nul-values.csv",
            "a b/c d",
            &"p".repeat(MAX_PART),
        ] {
            assert_eq!(fault(name), None, "{name:?}");
        }
    }

    #[test]
    fn each_class_of_bad_name_has_its_own_error() {
        let long_part = format!("a/{}", "ü".repeat(MAX_PART / 2 + 1));
        let long_name = "a/".repeat(MAX_NAME / 2) + "a";
        for (name, expected) in [
            ("", BadName::Empty),
            (long_name.as_str(), BadName::LongName),
            ("a\0b", BadName::Nul),
            ("a\nb", BadName::Control),
            ("a\u{7f}", BadName::Control),
            ("a\u{85}", BadName::Control),
            ("a\u{2028}b", BadName::Control),
            ("photo\u{202e}gnp.exe", BadName::Direction),
            ("a\u{2066}b", BadName::Direction),
            ("a\u{200b}b", BadName::Invisible),
            ("a\u{feff}", BadName::Invisible),
            ("a\u{e0041}", BadName::Invisible),
            ("．．/a", BadName::Lookalike),
            ("a／b", BadName::Lookalike),
            ("a∕b", BadName::Lookalike),
            ("a＼b", BadName::Lookalike),
            ("℀", BadName::Lookalike),
            ("‥", BadName::Lookalike),
            ("e\u{301}", BadName::NotNormal),
            ("\u{212a}", BadName::NotNormal),
            ("//server/share", BadName::Server),
            (r"\\?\C:\a", BadName::Server),
            (r"/\a", BadName::Server),
            ("/etc/passwd", BadName::Absolute),
            (r"\a", BadName::Absolute),
            ("C:", BadName::Drive),
            ("c:/a", BadName::Drive),
            (r"C:\a", BadName::Drive),
            (r"a\b", BadName::Backslash),
            (r"a/..\..\b", BadName::Backslash),
            ("a//b", BadName::EmptyPart),
            ("a/", BadName::EmptyPart),
            ("..", BadName::Dots),
            ("a/../../b", BadName::Dots),
            ("./a", BadName::Dots),
            (long_part.as_str(), BadName::LongPart),
            ("file:stream", BadName::Forbidden),
            ("what?", BadName::Forbidden),
            ("a.", BadName::Trailing),
            ("a /b", BadName::Trailing),
            ("...", BadName::Trailing),
            ("a\u{a0}", BadName::Trailing),
            ("NUL", BadName::Reserved),
            ("a/con.txt", BadName::Reserved),
            ("Com1 .tar.gz", BadName::Reserved),
            ("LPT¹", BadName::Reserved),
            ("conin$", BadName::Reserved),
        ] {
            assert_eq!(fault(name), Some(expected), "{name:?}");
        }
    }
}
