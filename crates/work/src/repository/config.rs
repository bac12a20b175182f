//! A git configuration, read line by line.
//!
//! Only the facts about repositories matter, so included files are not read, and nothing is ever written. Git refuses a
//! file with a mistake in it; here the line with the mistake is skipped, and the rest counts.

use std::iter::Peekable;
use std::str::Chars;
use std::sync::Arc;

/// The most variables that are kept. Later ones are ignored.
pub const MOST: usize = 32_768;
/// The longest value, in bytes. A longer one is ignored.
pub const LONGEST: usize = 4_096;

/// A configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GitConfig(Vec<Variable>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Variable {
    /// Shared by all variables of the section.
    heading: Arc<SectionHeader>,
    /// In lower case, as git compares it.
    name: String,
    value: String,
}

/// The header of a section: `[branch "main"]`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SectionHeader {
    /// In lower case.
    section: String,
    subsection: Option<String>,
}

impl GitConfig {
    /// Parses any text. A text that is not a configuration gives an empty one.
    pub fn parse(text: &str) -> Self {
        let mut reader = ConfigParser { rest: text.chars().peekable() };
        let mut variables = Vec::new();
        let mut heading = None;
        while let Some(&next) = reader.rest.peek() {
            match next {
                next if next.is_whitespace() => drop(reader.rest.next()),
                '[' => heading = reader.heading().map(Arc::new),
                next if next.is_ascii_alphabetic() => {
                    let Some((name, value)) = reader.variable() else { continue };
                    let Some(heading) = heading.clone() else { continue };
                    if variables.len() == MOST {
                        break;
                    }
                    variables.push(Variable { heading, name, value });
                }
                // A comment, or invalid text.
                _ => reader.skip_line(),
            }
        }
        Self(variables)
    }

    /// The value of a section's variable, such as `branch`, `main` and `remote`. Of several values the last one counts.
    pub fn value(&self, section: &str, subsection: &str, name: &str) -> Option<&str> {
        let is_meant = |variable: &&Variable| {
            let SectionHeader { section: mine, subsection: of } = &*variable.heading;
            variable.name == name && mine == section && of.as_deref() == Some(subsection)
        };
        self.0.iter().rfind(is_meant).map(|variable| variable.value.as_str()).filter(|value| !value.is_empty())
    }

    /// The values of this name in all subsections of a section, each with its subsection, in their order.
    pub fn values<'a>(&'a self, section: &'a str, name: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let is_meant = move |variable: &&Variable| variable.name == name && variable.heading.section == section;
        let named = |variable: &'a Variable| Some((variable.heading.subsection.as_deref()?, variable.value.as_str()));
        self.0.iter().filter(is_meant).filter_map(named)
    }
}

struct ConfigParser<'a> {
    rest: Peekable<Chars<'a>>,
}

impl ConfigParser<'_> {
    fn skip_line(&mut self) {
        // The end of the line as well, so that the reader always advances.
        self.rest.by_ref().find(|next| *next == '\n');
    }

    /// Skips an invalid line.
    fn mistake<T>(&mut self) -> Option<T> {
        self.skip_line();
        None
    }

    fn blanks(&mut self) {
        while self.rest.next_if(|next| matches!(next, ' ' | '\t' | '\r')).is_some() {}
    }

    fn word(&mut self, belongs: impl Fn(char) -> bool) -> String {
        std::iter::from_fn(|| self.rest.next_if(|next| belongs(*next))).map(|next| next.to_ascii_lowercase()).collect()
    }

    /// The header in brackets. A variable may follow it on the same line.
    fn heading(&mut self) -> Option<SectionHeader> {
        self.rest.next();
        let section = self.word(|next| next.is_ascii_alphanumeric() || matches!(next, '-' | '.'));
        if section.is_empty() {
            return self.mistake();
        }
        self.blanks();
        if self.rest.next_if_eq(&']').is_some() {
            // `[branch.main]` is an older form.
            return Some(match section.split_once('.') {
                Some((section, of)) => SectionHeader { section: section.to_owned(), subsection: Some(of.to_owned()) },
                None => SectionHeader { section, subsection: None },
            });
        }
        if self.rest.next_if_eq(&'"').is_none() {
            return self.mistake();
        }
        let mut subsection = String::new();
        loop {
            // The end of the line is left for the next step.
            match self.rest.next_if(|next| *next != '\n') {
                Some('"') => break,
                Some('\\') => subsection.extend(self.rest.next_if(|next| *next != '\n')),
                Some(next) => subsection.push(next),
                None => return self.mistake(),
            }
        }
        match self.rest.next_if_eq(&']') {
            Some(_) if subsection.len() <= LONGEST => Some(SectionHeader { section, subsection: Some(subsection) }),
            Some(_) | None => self.mistake(),
        }
    }

    /// A name and its value. A name without a value has no text.
    fn variable(&mut self) -> Option<(String, String)> {
        let name = self.word(|next| next.is_ascii_alphanumeric() || next == '-');
        self.blanks();
        if self.rest.next_if_eq(&'=').is_none() {
            return self.mistake();
        }
        self.blanks();
        let mut value = String::new();
        // The end of the value: trailing blanks do not count, unless they are quoted.
        let mut end = 0;
        let mut is_quoted = false;
        while let Some(next) = self.rest.next() {
            match next {
                '\n' if is_quoted => return None,
                '\n' => break,
                '"' => {
                    is_quoted = !is_quoted;
                    end = value.len();
                    continue;
                }
                '#' | ';' if !is_quoted => {
                    self.skip_line();
                    break;
                }
                '\\' => match self.escaped() {
                    Some(EscapeSequence::Character(next)) => {
                        value.push(next);
                        end = value.len();
                    }
                    Some(EscapeSequence::LineEnd) => {}
                    None => return self.mistake(),
                },
                next => {
                    value.push(next);
                    if is_quoted || !next.is_whitespace() {
                        end = value.len();
                    }
                }
            }
        }
        value.truncate(end);
        (value.len() <= LONGEST).then_some((name, value))
    }

    /// The character after a backslash in a value.
    fn escaped(&mut self) -> Option<EscapeSequence> {
        self.rest.next_if_eq(&'\r');
        match *self.rest.peek()? {
            '\n' => {
                self.rest.next();
                Some(EscapeSequence::LineEnd)
            }
            next @ ('n' | 't' | 'b' | '"' | '\\') => {
                self.rest.next();
                Some(EscapeSequence::Character(match next {
                    'n' => '\n',
                    't' => '\t',
                    'b' => '\u{8}',
                    next => next,
                }))
            }
            _ => None,
        }
    }
}

enum EscapeSequence {
    Character(char),
    /// The value continues in the next line.
    LineEnd,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_as_git_reads_it() {
        let cases = [
            ("[branch \"a\"]\n\tremote = origin\n", Some("origin")),
            ("[BRANCH \"a\"] Remote=origin ; why\n", Some("origin")),
            ("[branch.a]\r\nremote = origin\r\n", Some("origin")),
            ("[branch \"a\"]\nremote = \" o#r \" x # no\n", Some(" o#r  x")),
            ("[branch \"a\"]\nremote = or\\\nigin\n", Some("origin")),
            ("[branch \"a\"]\nremote = a\\tb\\\\\\\"\n", Some("a\tb\\\"")),
            ("[branch \"a\"]\nremote = one\n[branch \"b\"]\nremote = no\n[branch \"a\"]\nremote = two", Some("two")),
            ("[branch \"a\"]\nremote\nremote =\n", None),
            ("[branch \"A\"]\nremote = origin\n", None),
            ("[branch]\nremote = origin\n", None),
            ("remote = origin\n", None),
        ];
        for (text, expected) in cases {
            assert_eq!(GitConfig::parse(text).value("branch", "a", "remote"), expected, "{text}");
        }
        let odd = GitConfig::parse("[remote \"a \\\"]\\\\ b\"]\nurl = x\n");
        assert_eq!(odd.values("remote", "url").collect::<Vec<_>>(), [("a \"]\\ b", "x")]);
    }

    #[test]
    fn a_mistake_costs_its_line_and_nothing_else() {
        let mistakes = ["remote = \"open\n", "remote = \\x\n", "= x\n", "remote origin\n", "]\n", "\"\n", "é = 1\n"];
        for mistake in mistakes {
            let text = format!("[branch \"a\"]\n{mistake}merge = main\n");
            let config = GitConfig::parse(&text);
            assert_eq!(config.value("branch", "a", "remote"), None, "{mistake}");
            assert_eq!(config.value("branch", "a", "merge"), Some("main"), "{mistake}");
        }
        // Variables under an invalid header are dropped.
        for mistake in ["[branch \"a\n", "[branch \"a\" x]\n", "[]\n", "[branch a]\n", "["] {
            let config = GitConfig::parse(&format!("[branch \"a\"]\n{mistake}merge = main\n"));
            assert_eq!(config.value("branch", "a", "merge"), None, "{mistake}");
        }
    }

    #[test]
    fn what_is_too_much_is_not_known() {
        let long = "x".repeat(LONGEST + 1);
        let config = GitConfig::parse(&format!("[branch \"a\"]\nremote = {long}\nmerge = main\n"));
        assert_eq!((config.value("branch", "a", "remote"), config.value("branch", "a", "merge")), (None, Some("main")));
        let many = format!("[branch \"a\"]\n{}merge = main\n", "x=1\n".repeat(MOST));
        assert_eq!(GitConfig::parse(&many).value("branch", "a", "merge"), None);
    }
}
