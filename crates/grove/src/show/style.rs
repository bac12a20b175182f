//! Colours. All output goes through `anstream`, which removes them if stdout is not a terminal.

use std::fmt;

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

/// Removes control sequences from a text: an agent must not control the terminal.
pub(crate) fn sanitize(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_steer_the_terminal_is_left_out() {
        assert_eq!(sanitize("a\x1b[31mb\x07\r\n\tc\u{9b}2J"), "a[31mb\n\tc2J");
        assert_eq!(sanitize("ä€😀"), "ä€😀");
    }
}
