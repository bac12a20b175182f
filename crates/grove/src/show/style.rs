//! Colours. All output goes through `anstream`, which removes them if stdout is not a terminal.

use std::borrow::Cow;
use std::fmt;

use grove_checks::Check;
use grove_core::{is_unprintable, printable};

/// A text in a colour or weight.
pub(crate) struct Styled<T>(&'static str, T);

impl<T: fmt::Display> fmt::Display for Styled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\x1b[{}m{}\x1b[0m", self.0, self.1)
    }
}

pub(crate) fn bold<T>(text: T) -> Styled<T> {
    Styled("1", text)
}

pub(crate) fn dim<T>(text: T) -> Styled<T> {
    Styled("2", text)
}

pub(crate) fn red<T>(text: T) -> Styled<T> {
    Styled("31", text)
}

pub(crate) fn green<T>(text: T) -> Styled<T> {
    Styled("32", text)
}

pub(crate) fn yellow<T>(text: T) -> Styled<T> {
    Styled("33", text)
}

pub(crate) fn cyan<T>(text: T) -> Styled<T> {
    Styled("36", text)
}

/// Removes control characters from a text: an agent must control neither the terminal nor the direction of other text.
pub(crate) fn sanitize(text: &str) -> String {
    printable(text)
}

/// The same on one line, for a name that must not look like several lines of ours.
pub(crate) fn sanitize_line(text: &str) -> String {
    if !Check::OneLine.is_enforced() {
        return sanitize(text);
    }
    sanitize(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Output that may end up on a terminal, with everything escaped that could control it and is not a style of our own.
///
/// The escapes are those of JSON. So a line of JSON stays the same value, and in other text they can be seen.
pub(crate) fn escape_controls(text: &str) -> Cow<'_, str> {
    let is_harmless =
        |c: char| !Check::EscapedOutput.is_enforced() || c.is_ascii_control() && c != '\u{7f}' || !is_unprintable(c);
    if text.chars().all(is_harmless) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_harmless(c) {
            escaped.push(c);
        } else {
            escaped.push_str(&format!("\\u{:04x}", u32::from(c)));
        }
    }
    escaped.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_steer_the_terminal_is_left_out() {
        assert_eq!(sanitize("a\x1b[31mb\x07\r\n\tc\u{9b}2J"), "a[31mb\n\tc2J");
        assert_eq!(sanitize("a\u{202e}b\u{2066}c\u{2069}"), "abc");
        assert_eq!(sanitize("ä€😀👩\u{200d}👧"), "ä€😀👩\u{200d}👧");
    }

    #[test]
    fn a_line_of_json_stays_the_same_value_and_cannot_steer_the_terminal() {
        let value = serde_json::json!({"\u{9b}a": "b\u{1b}[31m\u{7f}\u{9b}2J\u{202e}c\u{2066}ä😀\n"});
        let line = value.to_string();
        let escaped = escape_controls(&line);
        assert!(!escaped.contains(is_unprintable), "{escaped:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
        let many = "\u{9b}".repeat(1 << 20);
        assert_eq!(escape_controls(&many).len(), 6 << 20, "in one pass, however many there are");
        assert_eq!(escape_controls("\u{1b}[1mbold\u{1b}[0m\n\tä"), "\u{1b}[1mbold\u{1b}[0m\n\tä");
    }
}
