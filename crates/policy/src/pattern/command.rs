//! Patterns of commands.

use super::effects::effects;
use super::glob::{Certainty, GlobToken, TextToken, matches};
use super::{PatternError, require_bounds};
use crate::shell::{Assignment, Command, ShellWord, parse};

/// The maximum number of words of a pattern.
pub const MAX_WORDS: usize = 64;
/// The largest table of pattern words and command words; past it, the answer is "maybe".
const MAX_TABLE: usize = 1 << 18;

/// A pattern of a command: words as in a shell, of which `*` stands for any number of words.
///
/// | pattern | commands |
/// |---|---|
/// | `cargo test` | exactly these words |
/// | `cargo test *` | these words, and any further ones or none |
/// | `npm run test-*` | `*` inside a word: any characters |
/// | `git '*'` | a quoted `*` is the character |
/// | `DEBUG=* npm test` | with this variable set |
///
/// An option that runs a program or writes a file (`git -c`, `sort -o`) must be named by a pattern that allows.
/// A rule that denies or asks is generous: it also matches `/usr/bin/git` for `git`, and options before the second
/// word (`git -C dir push` for `git push *`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CommandPattern {
    text: String,
    variables: Vec<(String, Vec<GlobToken>)>,
    words: Vec<WordPattern>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum WordPattern {
    /// Any number of words.
    Any,
    One(Vec<GlobToken>),
}

impl CommandPattern {
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        require_bounds(text)?;
        let wrong = || PatternError::Command(text.to_owned());
        let script = parse(text);
        let mut commands = script.commands.iter().filter(|command| command.depth == 0);
        let (Some(command), None) = (commands.next(), commands.next()) else { return Err(wrong()) };
        if script.is_unreadable()
            || !script.accesses.is_empty()
            || command.words.is_empty()
            || command.words.len() > MAX_WORDS
        {
            return Err(wrong());
        }
        let glob = |word: &ShellWord| word.as_pattern().ok_or_else(wrong);
        let word = |word: &ShellWord| {
            let tokens = glob(word)?;
            Ok(match tokens[..] {
                [GlobToken::DoubleStar] => WordPattern::Any,
                _ => WordPattern::One(tokens),
            })
        };
        let variables = command.assignments.iter().map(|set| Ok((set.name.clone(), glob(&set.value)?)));
        let variables = variables.collect::<Result<_, PatternError>>()?;
        let words = command.words.iter().map(word).collect::<Result<Vec<_>, PatternError>>()?;
        Ok(Self { text: text.to_owned(), variables, words })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Matches a command exactly, for a rule that allows.
    pub(crate) fn matches(&self, command: &Command) -> Certainty {
        let is_known = |set: &Assignment| {
            let covers = |(name, value): &(String, Vec<GlobToken>)| {
                *name == set.name && matches(value, &set.value.tokens()) == Certainty::Yes
            };
            set.is_harmless() || self.variables.iter().any(covers)
        };
        let is_named = |word: &ShellWord| {
            let names = |pattern: &WordPattern| match pattern {
                WordPattern::One(glob) => {
                    matches!(glob.first(), Some(GlobToken::Char(_))) && matches(glob, &word.tokens()) == Certainty::Yes
                }
                WordPattern::Any => false,
            };
            self.words.iter().any(names)
        };
        if !command.assignments.iter().all(is_known) || !effects(&command.words).into_iter().all(is_named) {
            return Certainty::No;
        }
        self.compare(&command.words, false)
    }

    /// Matches a command generously, for a rule that denies or asks.
    pub(crate) fn covers(&self, command: &Command) -> Certainty {
        let direct = self.compare(&command.words, true);
        let Some(base) = command.words.first().and_then(ShellWord::base_name) else { return direct };
        let mut words = command.words.clone();
        words[0] = base;
        direct.max(self.compare(&words, true))
    }

    fn compare(&self, words: &[ShellWord], is_generous: bool) -> Certainty {
        let pattern = &self.words[..];
        if pattern.len().saturating_mul(words.len()) > MAX_TABLE {
            return Certainty::Maybe;
        }
        // row[i]: how certainly pattern[i..] matches the words from the current one on.
        let mut row: Vec<Certainty> = vec![Certainty::No; pattern.len() + 1];
        row[pattern.len()] = Certainty::Yes;
        for at in (0..pattern.len()).rev() {
            if pattern[at] == WordPattern::Any {
                row[at] = row[at + 1];
            }
        }
        // The row behind the next word, for an option that takes the next word as its value.
        let mut second = vec![Certainty::No; pattern.len() + 1];
        for (position, word) in words.iter().enumerate().rev() {
            let after = row.clone();
            let tokens = word.tokens();
            for at in (0..=pattern.len()).rev() {
                let mut best = match pattern.get(at) {
                    Some(WordPattern::Any) => after[at].max(row[at + 1]),
                    Some(WordPattern::One(glob)) => {
                        let one = matches(glob, &tokens).min(after[at + 1]);
                        if word.splits { one.min(Certainty::Maybe) } else { one }
                    }
                    None => Certainty::No,
                };
                if word.splits && best < Certainty::Maybe {
                    // It may become no word, or several.
                    let next = row.get(at + 1).copied().unwrap_or(Certainty::No);
                    best = best.max(after[at].max(next).min(Certainty::Maybe));
                }
                if is_generous && at > 0 && position > 0 && word.is_option() {
                    let with_value = if word.may_take_next() { second[at] } else { Certainty::No };
                    best = best.max(after[at].max(with_value));
                }
                row[at] = best;
            }
            second = after;
        }
        row[0]
    }
}

impl ShellWord {
    /// True for an option, or a word that may be one.
    fn is_option(&self) -> bool {
        match self.tokens().first() {
            Some(TextToken::Char(first)) => *first == '-',
            Some(TextToken::Unknown | TextToken::UnknownName) => true,
            None => false,
        }
    }

    fn may_take_next(&self) -> bool {
        !self.tokens().contains(&TextToken::Char('='))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(command: &str) -> Command {
        parse(command).commands.into_iter().next().unwrap()
    }

    fn exact(pattern: &str, command: &str) -> Certainty {
        CommandPattern::parse(pattern).unwrap().matches(&first(command))
    }

    fn generous(pattern: &str, command: &str) -> Certainty {
        CommandPattern::parse(pattern).unwrap().covers(&first(command))
    }

    #[test]
    fn words_match_exactly_and_a_star_is_any_number_of_words() {
        assert_eq!(exact("cargo test", "cargo 'test'"), Certainty::Yes);
        assert_eq!(exact("cargo test", "cargo test -p x"), Certainty::No);
        assert_eq!(exact("cargo test *", "cargo test"), Certainty::Yes);
        assert_eq!(exact("cargo test *", "cargo test -p x"), Certainty::Yes);
        assert_eq!(exact("cargo test *", "cargo test-all"), Certainty::No);
        assert_eq!(exact("npm run test-*", "npm run test-unit"), Certainty::Yes);
        assert_eq!(exact("git * main", "git merge --ff main"), Certainty::Yes);
        assert_eq!(exact("echo '*'", "echo x"), Certainty::No);
        assert_eq!(exact("git *", "/usr/bin/git x"), Certainty::No, "another program may have that path");
    }

    #[test]
    fn an_unknown_word_is_certain_only_under_a_star() {
        assert_eq!(exact("git *", "git $x"), Certainty::Yes);
        assert_eq!(exact("git push *", "git $x"), Certainty::Maybe);
        assert_eq!(exact("git push *", "git status $x"), Certainty::No);
        assert_eq!(generous("git push *", "git $x origin"), Certainty::Maybe);
        assert_eq!(generous("git push --force", "git push $x"), Certainty::Maybe);
    }

    #[test]
    fn a_variable_that_may_change_the_program_needs_to_be_named() {
        assert_eq!(exact("npm test", "CI=1 npm test"), Certainty::Yes);
        assert_eq!(exact("npm test", "NODE_OPTIONS=x npm test"), Certainty::No);
        assert_eq!(exact("DEBUG=* npm test", "DEBUG=a npm test"), Certainty::Yes);
        assert_eq!(generous("npm test", "NODE_OPTIONS=x npm test"), Certainty::Yes);
    }

    #[test]
    fn a_deny_pattern_sees_through_paths_and_options() {
        assert_eq!(generous("git push *", "/usr/bin/git push"), Certainty::Yes);
        assert_eq!(generous("git push *", "git -C /x push origin"), Certainty::Yes);
        assert_eq!(generous("git push *", "git --no-pager -c a=b push"), Certainty::Yes);
        assert_eq!(generous("git push *", "git status"), Certainty::No);
        assert_eq!(exact("git push *", "git -C /x push"), Certainty::No);
    }

    #[test]
    fn a_pattern_is_one_command() {
        for wrong in ["", "a && b", "a; b", "a | b", "a > b", "echo $x", "echo $(x)", "a 'b"] {
            assert!(CommandPattern::parse(wrong).is_err(), "{wrong}");
        }
    }
}
