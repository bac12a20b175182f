//! Patterns with `*`, matched against texts of which some pieces are unknown.

/// How certainly a pattern matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Certainty {
    No,
    /// It matches for some values of the unknown pieces.
    Maybe,
    Yes,
}

impl From<bool> for Certainty {
    fn from(is_certain: bool) -> Self {
        if is_certain { Certainty::Yes } else { Certainty::No }
    }
}

/// A character of a text, or an unknown piece: any characters, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TextToken {
    Char(char),
    Unknown,
    /// An unknown piece without a slash.
    UnknownName,
}

/// A token of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum GlobToken {
    Char(char),
    /// One character except `/`.
    One,
    /// Any characters except `/`, or none.
    Star,
    /// Any characters, or none.
    DoubleStar,
    /// Nothing, or a slash and the `DoubleStar` that follows this token.
    Below,
}

/// The largest table that is computed for a text with unknown pieces; past it, the answer is "maybe".
const MAX_TABLE: usize = 1 << 20;

/// Matches a pattern against a text. Runs in time proportional to the product of their lengths.
pub(crate) fn matches(pattern: &[GlobToken], text: &[TextToken]) -> Certainty {
    if pattern.len().saturating_mul(text.len()) > MAX_TABLE {
        return Certainty::Maybe;
    }
    // Most patterns differ from a text in a character before the first wildcard.
    let (mut pattern, mut text) = (pattern, text);
    while let ([GlobToken::Char(wanted), patterns @ ..], [TextToken::Char(found), texts @ ..]) = (pattern, text) {
        if wanted != found {
            return Certainty::No;
        }
        (pattern, text) = (patterns, texts);
    }
    // row[i] is the certainty with which pattern[i..] matches the rest of the text.
    let mut row = vec![Certainty::No; pattern.len() + 1];
    row[pattern.len()] = Certainty::Yes;
    for at in (0..pattern.len()).rev() {
        row[at] = match pattern[at] {
            GlobToken::Star | GlobToken::DoubleStar => row[at + 1],
            GlobToken::Below => row.get(at + 2).copied().unwrap_or(Certainty::No),
            GlobToken::Char(_) | GlobToken::One => Certainty::No,
        };
    }
    for token in text.iter().rev() {
        let after = row.clone();
        for at in (0..=pattern.len()).rev() {
            row[at] = step(pattern.get(at), *token, &after, &row, at);
        }
    }
    row[0]
}

/// The certainty at one position: `after` is the row behind this token, `row` that of this token, filled from the end.
fn step(pattern: Option<&GlobToken>, token: TextToken, after: &[Certainty], row: &[Certainty], at: usize) -> Certainty {
    let absorbs = |rest: Certainty| rest.max(row[at + 1]);
    match (pattern, token) {
        (Some(GlobToken::DoubleStar), _) => absorbs(after[at]),
        (Some(GlobToken::Below), token) => {
            let nothing = row.get(at + 2).copied().unwrap_or(Certainty::No);
            match token {
                TextToken::Char('/') => nothing.max(after[at + 1]),
                TextToken::Char(_) => nothing,
                TextToken::UnknownName => nothing.max(after[at].min(Certainty::Maybe)),
                TextToken::Unknown => nothing.max(after[at].max(after[at + 1]).min(Certainty::Maybe)),
            }
        }
        (Some(GlobToken::Star), TextToken::Char('/')) => row[at + 1],
        (Some(GlobToken::Star), TextToken::Char(_) | TextToken::UnknownName) => absorbs(after[at]),
        // The unknown piece may have a slash.
        (Some(GlobToken::Star), TextToken::Unknown) => absorbs(after[at].min(Certainty::Maybe)),
        (Some(GlobToken::One), TextToken::Char(c)) => {
            if c == '/' {
                Certainty::No
            } else {
                after[at + 1]
            }
        }
        (Some(GlobToken::Char(wanted)), TextToken::Char(c)) => {
            if *wanted == c {
                after[at + 1]
            } else {
                Certainty::No
            }
        }
        (Some(GlobToken::One | GlobToken::Char(_)), TextToken::Unknown) => {
            after[at].max(row[at + 1]).min(Certainty::Maybe)
        }
        (Some(GlobToken::Char('/')), TextToken::UnknownName) => after[at].min(Certainty::Maybe),
        (Some(GlobToken::One | GlobToken::Char(_)), TextToken::UnknownName) => {
            after[at].max(row[at + 1]).min(Certainty::Maybe)
        }
        (None, TextToken::Unknown | TextToken::UnknownName) => after[at].min(Certainty::Maybe),
        (None, TextToken::Char(_)) => Certainty::No,
    }
}

/// The tokens of a text without unknown pieces.
pub(crate) fn known(text: &str) -> Vec<TextToken> {
    text.chars().map(TextToken::Char).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glob(text: &str) -> Vec<GlobToken> {
        let token = |c| match c {
            '*' => GlobToken::Star,
            '#' => GlobToken::DoubleStar,
            '?' => GlobToken::One,
            c => GlobToken::Char(c),
        };
        text.chars().map(token).collect()
    }

    fn text(text: &str) -> Vec<TextToken> {
        text.chars().map(|c| if c == '$' { TextToken::Unknown } else { TextToken::Char(c) }).collect()
    }

    #[test]
    fn a_known_text_matches_or_not() {
        for (pattern, subject, is_match) in [
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "a/c", false),
            ("a#c", "a/b/c", true),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("abc", "ab", false),
            ("", "", true),
            ("*", "", true),
        ] {
            assert_eq!(matches(&glob(pattern), &text(subject)), Certainty::from(is_match), "{pattern} {subject}");
        }
    }

    #[test]
    fn an_unknown_piece_may_match_and_only_a_wildcard_makes_it_certain() {
        for (pattern, subject, certainty) in [
            ("push", "$", Certainty::Maybe),
            ("push", "pu$", Certainty::Maybe),
            ("push", "st$", Certainty::No),
            ("push", "push$", Certainty::Maybe),
            ("#", "$", Certainty::Yes),
            ("a#", "a$", Certainty::Yes),
            ("a*", "a$", Certainty::Maybe),
            ("a#b", "$b", Certainty::Maybe),
        ] {
            assert_eq!(matches(&glob(pattern), &text(subject)), certainty, "{pattern} {subject}");
        }
    }
}
