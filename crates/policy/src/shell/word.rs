//! Words: quotes, escapes and expansions.

use super::parser::{Parser, parse_into};
use super::*;

impl Parser<'_> {
    /// Reads a word up to an unquoted blank or operator.
    pub(super) fn word(&mut self) -> ShellWord {
        let mut word = WordBuilder::default();
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | ')' => break,
                '<' | '>' if self.peek_second() == Some('(') => {
                    self.at += 2;
                    self.substitution();
                    word.unknown(false);
                }
                '<' | '>' => break,
                '(' => break,
                '\'' => self.single_quoted(&mut word),
                '"' => {
                    self.at += 1;
                    word.is_present = true;
                    self.double_quoted(Some('"'), &mut word);
                }
                '\\' => {
                    self.at += 1;
                    match self.text.get(self.at).copied() {
                        Some(c) => word.quoted(c),
                        None => word.quoted('\\'),
                    }
                    self.at += 1;
                }
                '$' => self.dollar(&mut word, false),
                '`' => self.backtick(&mut word, true),
                '*' | '?' | '[' => {
                    self.at += 1;
                    word.glob(c);
                }
                _ => {
                    self.at += 1;
                    word.plain(c);
                }
            }
        }
        word.finish()
    }

    fn single_quoted(&mut self, word: &mut WordBuilder) {
        self.at += 1;
        word.is_present = true;
        loop {
            match self.text.get(self.at).copied() {
                None => return self.fail("a quote is not closed"),
                Some('\'') => {
                    self.at += 1;
                    return;
                }
                Some(c) => {
                    self.at += 1;
                    word.quoted(c);
                }
            }
        }
    }

    /// Reads text in double quotes, up to the closing one; or, without one, to the end.
    pub(super) fn double_quoted(&mut self, close: Option<char>, word: &mut WordBuilder) {
        loop {
            match self.peek() {
                None if close.is_some() => return self.fail("a quote is not closed"),
                None => return,
                c if c == close => {
                    self.at += 1;
                    return;
                }
                Some('\\') => {
                    let next = self.text.get(self.at + 1).copied();
                    match next {
                        Some(c @ ('$' | '`' | '"' | '\\')) => {
                            word.quoted(c);
                            self.at += 2;
                        }
                        _ => {
                            word.quoted('\\');
                            self.at += 1;
                        }
                    }
                }
                Some('$') => self.dollar(word, true),
                Some('`') => self.backtick(word, false),
                Some(c) => {
                    self.at += 1;
                    word.quoted(c);
                }
            }
        }
    }

    /// Finds the commands in a text that a shell expands like one in double quotes.
    pub(super) fn expand_text(&mut self, text: &str) {
        let depth = self.depth + 1;
        if depth > MAX_DEPTH {
            return self.script.note(UnknownReason::TooLarge);
        }
        let (text, is_elsewhere) = (text.chars().collect(), self.is_elsewhere);
        let mut inner =
            Parser { text, at: 0, depth, script: &mut *self.script, here_documents: Vec::new(), is_elsewhere };
        inner.double_quoted(None, &mut WordBuilder::default());
    }

    /// Reads what begins with `$`.
    fn dollar(&mut self, word: &mut WordBuilder, is_quoted: bool) {
        self.at += 1;
        match self.peek() {
            Some('(') => {
                self.at += 1;
                if self.peek() == Some('(') {
                    return self.fail("arithmetic is not read");
                }
                self.substitution();
                word.unknown(!is_quoted);
            }
            Some('{') => {
                self.at += 1;
                self.parameter();
                word.unknown(true);
            }
            Some('\'') if !is_quoted => self.escaped(word),
            Some('"') if !is_quoted => {
                self.at += 1;
                word.is_present = true;
                self.double_quoted(Some('"'), word);
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                    self.at += 1;
                }
                word.unknown(!is_quoted);
            }
            Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => {
                self.at += 1;
                // "$@" becomes several words in quotes too.
                word.unknown(!is_quoted || c == '@');
            }
            Some('[') => self.fail("arithmetic is not read"),
            _ => word.quoted('$'),
        }
    }

    /// Reads `${…}`. Forms that may evaluate something are unknown.
    fn parameter(&mut self) {
        let mut inside = String::new();
        loop {
            match self.peek() {
                Some('}') => {
                    self.at += 1;
                    break;
                }
                Some(c) if c.is_ascii_alphanumeric() || "_@*#?!-:=+%/.,^[] ".contains(c) => {
                    self.at += 1;
                    inside.push(c);
                }
                Some(_) => return self.fail("a parameter expansion is not read"),
                None => return self.fail("a parameter expansion does not end"),
            }
        }
        if !is_plain_parameter(&inside) {
            self.script.note(UnknownReason::Syntax("a parameter expansion may evaluate its value"));
        }
    }

    /// Reads the commands of a substitution, behind its opening bracket.
    fn substitution(&mut self) {
        self.depth += 1;
        let (was_elsewhere, documents) = (self.is_elsewhere, std::mem::take(&mut self.here_documents));
        self.list(Some(')'), 0);
        if !self.here_documents.is_empty() {
            self.fail("a here-document has no text");
        }
        self.eat(')');
        self.here_documents = documents;
        self.is_elsewhere = was_elsewhere;
        self.depth -= 1;
    }

    fn backtick(&mut self, word: &mut WordBuilder, splits: bool) {
        self.at += 1;
        let mut inner = String::new();
        loop {
            match (self.text.get(self.at).copied(), self.text.get(self.at + 1).copied()) {
                (None, _) => return self.fail("a backtick is not closed"),
                (Some('`'), _) => {
                    self.at += 1;
                    break;
                }
                (Some('\\'), Some(c @ ('$' | '`' | '\\'))) => {
                    inner.push(c);
                    self.at += 2;
                }
                // In double quotes, a backslash also quotes the double quote.
                (Some('\\'), Some('"')) if !splits => {
                    // In a here-document it does not.
                    self.script.note(UnknownReason::Syntax("a quote in backticks is escaped"));
                    inner.push('"');
                    self.at += 2;
                }
                (Some(c), _) => {
                    inner.push(c);
                    self.at += 1;
                }
            }
        }
        parse_into(&inner, self.depth + 1, self.script);
        word.unknown(splits);
    }

    /// Reads `$'…'` with its escapes.
    fn escaped(&mut self, word: &mut WordBuilder) {
        self.at += 1;
        word.is_present = true;
        loop {
            let Some(c) = self.text.get(self.at).copied() else { return self.fail("a quote is not closed") };
            self.at += 1;
            match c {
                '\'' => return,
                '\\' => match self.escape() {
                    Some(c) => word.quoted(c),
                    None => return self.fail("an escape is not read"),
                },
                c => word.quoted(c),
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        let c = self.text.get(self.at).copied()?;
        self.at += 1;
        let code = match c {
            'n' => return Some('\n'),
            't' => return Some('\t'),
            '\\' | '\'' | '"' | '?' => return Some(c),
            'x' => self.number(16, 2)?,
            'u' => self.number(16, 4)?,
            'U' => self.number(16, 8)?,
            '0'..='7' => {
                self.at -= 1;
                self.number(8, 3)?
            }
            // Control characters are of no use in a command that a person would allow.
            _ => return None,
        };
        // Bytes above ASCII depend on the encoding, and a zero ends the text.
        char::from_u32(code).filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).filter(|_| c != 'x' || code < 128)
    }

    fn number(&mut self, radix: u32, most: usize) -> Option<u32> {
        let digits: String =
            self.text.get(self.at..).unwrap_or_default().iter().take(most).take_while(|c| c.is_digit(radix)).collect();
        self.at += digits.len();
        u32::from_str_radix(&digits, radix).ok()
    }
}

/// True for the inside of `${name}`, `${#name}`, and of forms with a default or a removed prefix or suffix.
fn is_plain_parameter(inside: &str) -> bool {
    let text = inside.strip_prefix('#').filter(|rest| !rest.is_empty()).unwrap_or(inside);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = text.find(|c| !is_name(c)).unwrap_or(text.len());
    let rest = match end {
        0 => text.strip_prefix(['@', '*', '#', '?', '-']),
        end => Some(&text[end..]),
    };
    let Some(rest) = rest else { return false };
    let operator = rest.strip_prefix(':').unwrap_or(rest);
    let is_default = operator.starts_with(['-', '+', '?']);
    let is_removal = rest.starts_with(['#', '%']);
    rest.is_empty() || (is_default || is_removal) && !rest.contains(['!', '@', '['])
}

/// A word in progress.
#[derive(Default)]
pub(super) struct WordBuilder {
    word: ShellWord,
    /// True for quotes, even around nothing.
    is_present: bool,
    /// Unquoted text so far, in which braces may be expanded.
    braces: String,
}

impl WordBuilder {
    fn push(&mut self, c: char) {
        match self.word.pieces.last_mut() {
            Some(WordPiece::Text(text)) => text.push(c),
            _ => self.word.pieces.push(WordPiece::Text(c.to_string())),
        }
    }

    fn quoted(&mut self, c: char) {
        self.push(c);
        self.braces.push('q');
    }

    fn plain(&mut self, c: char) {
        if self.braces.len() == self.word.plain && !self.is_present {
            self.word.plain += 1;
        }
        self.push(c);
        self.braces.push(c);
    }

    fn glob(&mut self, c: char) {
        self.word.pieces.push(WordPiece::Glob(c));
        self.word.splits = true;
        self.braces.push('q');
    }

    fn unknown(&mut self, splits: bool) {
        self.word.pieces.push(WordPiece::Unknown);
        self.word.splits |= splits;
        self.braces.push('q');
    }

    fn finish(mut self) -> ShellWord {
        let is_expanded = self.braces.find('{').is_some_and(|open| {
            let inner = &self.braces[open..];
            inner.contains('}') && (inner.contains(',') || inner.contains(".."))
        });
        if is_expanded {
            return ShellWord::unknown();
        }
        if self.word.pieces == [WordPiece::Glob('[')] {
            return ShellWord::text("[");
        }
        if self.word.pieces.is_empty() && self.is_present {
            self.word.pieces.push(WordPiece::Text(String::new()));
        }
        self.word
    }
}

impl ShellWord {
    /// The word as `NAME=value`.
    pub(super) fn as_assignment(&self) -> Option<Assignment> {
        let WordPiece::Text(first) = self.pieces.first()? else { return None };
        let (name, rest) = first.split_once('=')?;
        if name.chars().count() >= self.plain {
            return None;
        }
        let name = name.strip_suffix('+').unwrap_or(name);
        let is_start = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !is_start || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return None;
        }
        let mut pieces = vec![WordPiece::Text(rest.to_owned())];
        pieces.extend(self.pieces[1..].iter().cloned());
        // A value is not split.
        Some(Assignment { name: name.to_owned(), value: ShellWord { pieces, splits: false, plain: 0 } })
    }

    /// True for a word such as `a[0]=x`.
    pub(super) fn may_be_assignment(&self) -> bool {
        let is_bracket = self.pieces.contains(&WordPiece::Glob('['));
        is_bracket
            && self
                .pieces
                .iter()
                .any(|piece| matches!(piece, WordPiece::Text(text) if text.contains("]=") || text.contains("]+=")))
    }
}
