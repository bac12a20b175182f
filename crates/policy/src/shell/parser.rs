//! The grammar: lists, pipes, groups, redirections, here-documents.

use super::unwrap::unwrap_command;
use super::*;

/// Words that begin or continue a compound command. The commands inside are listed, but the whole stays unknown.
const KEYWORDS: [&str; 14] =
    ["if", "then", "elif", "else", "fi", "while", "until", "do", "done", "select", "coproc", "function", "for", "case"];

/// A here-document whose text follows the current line.
pub(super) struct HereDocument {
    pub(super) delimiter: String,
    pub(super) strips_tabs: bool,
    pub(super) expands: bool,
}

/// A reader of one text.
pub(super) struct Parser<'a> {
    pub(super) text: Vec<char>,
    pub(super) at: usize,
    pub(super) depth: usize,
    pub(super) script: &'a mut ShellScript,
    pub(super) here_documents: Vec<HereDocument>,
    /// True after `cd`, or another command that may change the folder.
    pub(super) is_elsewhere: bool,
}

/// Parses a text at a depth, and adds its commands to a script.
pub(super) fn parse_into(text: &str, depth: usize, script: &mut ShellScript) {
    if text.len() > MAX_COMMAND_BYTES || depth > MAX_DEPTH {
        return script.note(UnknownReason::TooLarge);
    }
    if text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
        script.note(UnknownReason::Syntax("it has control characters"));
    }
    let is_elsewhere = depth > 0 && script.commands.iter().any(|command| changes_folder(&command.words));
    let mut parser =
        Parser { text: text.chars().collect(), at: 0, depth, script, here_documents: Vec::new(), is_elsewhere };
    parser.list(None, 0);
    if parser.at < parser.text.len() {
        parser.fail("a bracket or separator is not expected");
    }
    if !parser.here_documents.is_empty() {
        parser.fail("a here-document has no text");
    }
}

impl Parser<'_> {
    pub(super) fn fail(&mut self, why: &'static str) {
        self.script.note(UnknownReason::Syntax(why));
        self.at = self.text.len();
    }

    /// The next character; a backslash with a newline is skipped.
    pub(super) fn peek(&mut self) -> Option<char> {
        while self.text.get(self.at) == Some(&'\\') && self.text.get(self.at + 1) == Some(&'\n') {
            self.at += 2;
        }
        self.text.get(self.at).copied()
    }

    /// The character after the next one.
    pub(super) fn peek_second(&mut self) -> Option<char> {
        self.peek()?;
        let start = self.at;
        self.at += 1;
        let second = self.peek();
        self.at = start;
        second
    }

    pub(super) fn eat(&mut self, wanted: char) -> bool {
        let is_next = self.peek() == Some(wanted);
        if is_next {
            self.at += 1;
        }
        is_next
    }

    fn skip_blanks(&mut self) {
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' => self.at += 1,
                '#' => {
                    // A backslash does not continue a comment.
                    while self.text.get(self.at).is_some_and(|c| *c != '\n') {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    /// Reads commands up to the closing character, which stays, or to the end.
    pub(super) fn list(&mut self, close: Option<char>, nesting: usize) {
        if nesting + self.depth > MAX_DEPTH {
            self.script.note(UnknownReason::TooLarge);
            self.at = self.text.len();
            return;
        }
        loop {
            self.skip_blanks();
            let Some(c) = self.peek() else {
                if close.is_some() {
                    self.fail("a bracket is not closed");
                }
                return;
            };
            match c {
                _ if Some(c) == close && (c == ')' || self.is_closing_brace()) => return,
                '\n' => {
                    self.at += 1;
                    self.read_here_documents();
                }
                ';' if self.peek_second() == Some(';') => return self.fail("\";;\" belongs to \"case\""),
                ';' => self.at += 1,
                '&' if self.peek_second() == Some('>') => self.command(nesting),
                '&' => {
                    self.at += 1;
                    self.eat('&');
                }
                '|' => {
                    self.at += 1;
                    let _ = self.eat('|') || self.eat('&');
                }
                ')' => return self.fail("a closing bracket has no opening one"),
                _ => self.command(nesting),
            }
        }
    }

    fn is_closing_brace(&mut self) -> bool {
        self.peek() == Some('}')
            && self.peek_second().is_none_or(|c| matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | ')' | '<' | '>'))
    }

    /// Reads one command with its redirections: a simple one, a subshell or a group.
    fn command(&mut self, nesting: usize) {
        let mut command = Command { depth: self.depth, ..Command::default() };
        let mut is_first = true;
        loop {
            self.skip_blanks();
            let Some(c) = self.peek() else { break };
            match c {
                '\n' | ';' | ')' => break,
                '|' => break,
                '&' if self.peek_second() == Some('>') => {
                    self.at += 2;
                    self.eat('>');
                    self.redirect_to_file(true);
                }
                '&' => break,
                '<' | '>' if self.peek_second() == Some('(') => {
                    let word = self.word();
                    self.take_word(word, &mut command);
                }
                '<' | '>' => self.redirection(),
                '(' if is_first => self.subshell(nesting),
                '(' => return self.fail("a function is defined, or a bracket is not quoted"),
                '{' if is_first && self.is_group() => {
                    self.at += 1;
                    self.list(Some('}'), nesting + 1);
                    self.eat('}');
                }
                _ => {
                    let start = self.at;
                    let word = self.word();
                    if self.at == start {
                        return self.fail("a character is not expected");
                    }
                    if self.is_file_number(&word) {
                        continue;
                    }
                    if command.words.is_empty() && command.assignments.is_empty() {
                        match self.keyword(&word) {
                            Keyword::None => {}
                            Keyword::Skip => continue,
                            Keyword::End => return,
                        }
                    }
                    self.take_word(word, &mut command);
                }
            }
            is_first = false;
        }
        self.finish(command);
    }

    /// True for digits directly before a redirection.
    fn is_file_number(&mut self, word: &ShellWord) -> bool {
        let is_number = word.plain().is_some_and(|text| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit()));
        is_number && matches!(self.peek(), Some('<' | '>'))
    }

    fn is_group(&mut self) -> bool {
        self.peek_second().is_some_and(|c| matches!(c, ' ' | '\t' | '\n'))
    }

    fn subshell(&mut self, nesting: usize) {
        self.at += 1;
        if self.peek() == Some('(') {
            return self.fail("arithmetic is not read");
        }
        let was_elsewhere = self.is_elsewhere;
        self.list(Some(')'), nesting + 1);
        self.eat(')');
        self.is_elsewhere = was_elsewhere;
    }

    fn keyword(&mut self, word: &ShellWord) -> Keyword {
        let Some(text) = word.plain() else { return Keyword::None };
        match text.as_str() {
            "!" => Keyword::Skip,
            "[[" => {
                self.script.note(UnknownReason::Syntax("\"[[\" is not read"));
                Keyword::None
            }
            "for" | "case" | "select" | "function" => {
                // The commands inside are still listed, where a separator shows them.
                self.script.note(UnknownReason::Syntax("a loop, \"case\" or function is not read"));
                Keyword::End
            }
            text if KEYWORDS.contains(&text) => {
                self.script.note(UnknownReason::Syntax("a condition or loop is not read"));
                Keyword::Skip
            }
            _ => Keyword::None,
        }
    }

    fn take_word(&mut self, word: ShellWord, command: &mut Command) {
        if command.words.is_empty() {
            match word.as_assignment() {
                Some(assignment) => return command.assignments.push(assignment),
                None if word.may_be_assignment() => self.script.note(UnknownReason::ProgramName),
                None => {}
            }
        }
        command.words.push(word);
    }

    /// Adds a command that is complete, and the commands that it runs.
    fn finish(&mut self, command: Command) {
        if command.words.is_empty() && command.assignments.is_empty() {
            return;
        }
        let first = self.script.commands.len();
        unwrap_command(command, self.script);
        self.is_elsewhere |= self.script.commands[first..].iter().any(|command| changes_folder(&command.words));
    }

    fn redirection(&mut self) {
        let is_input = self.peek() == Some('<');
        self.at += 1;
        match (is_input, self.peek()) {
            (true, Some('<')) => {
                self.at += 1;
                match self.eat('<') {
                    true => {
                        self.skip_blanks();
                        self.word();
                    }
                    false => self.here_document(),
                }
            }
            (true, Some('>')) => {
                self.at += 1;
                self.redirect_to_file(true);
            }
            (_, Some('&')) => {
                self.at += 1;
                self.duplicate(!is_input);
            }
            (false, Some('>' | '|')) => {
                self.at += 1;
                self.redirect_to_file(true);
            }
            (is_input, _) => self.redirect_to_file(!is_input),
        }
    }

    /// Reads the target of `>&` or `<&`: a number, `-`, or a file.
    fn duplicate(&mut self, writes: bool) {
        self.skip_blanks();
        let path = self.word();
        let is_number = |text: String| {
            let digits = text.strip_suffix('-').unwrap_or(&text);
            digits.chars().all(|c| c.is_ascii_digit()) && !text.is_empty()
        };
        if !path.known().is_some_and(is_number) {
            self.open(path, writes);
        }
    }

    fn redirect_to_file(&mut self, writes: bool) {
        self.skip_blanks();
        let path = self.word();
        self.open(path, writes);
    }

    fn open(&mut self, path: ShellWord, writes: bool) {
        const HARMLESS: [&str; 4] = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin"];
        if path.pieces.is_empty() {
            return self.fail("a redirection has no file");
        }
        if !HARMLESS.iter().any(|known| path.is(known)) {
            let is_elsewhere = self.is_elsewhere;
            self.script.access(FileAccess { path, writes, is_elsewhere });
        }
    }

    fn here_document(&mut self) {
        let strips_tabs = self.eat('-');
        self.skip_blanks();
        let start = self.at;
        let word = self.word();
        // After a failure the position may be behind the end.
        let end = self.at.min(self.text.len());
        let source = &self.text[start.min(end)..end];
        if source.windows(2).any(|pair| pair == ['\\', '\n']) {
            self.script.note(UnknownReason::Syntax("the end of a here-document is continued on the next line"));
        }
        let is_quoted = self.text[start.min(end)..end].iter().any(|c| matches!(c, '\'' | '"' | '\\'));
        match word.known() {
            Some(delimiter) if !delimiter.is_empty() => {
                self.here_documents.push(HereDocument { delimiter, strips_tabs, expands: !is_quoted });
            }
            _ => self.fail("the end of a here-document is not known"),
        }
    }

    /// Reads the here-documents of the line that has ended.
    fn read_here_documents(&mut self) {
        for document in std::mem::take(&mut self.here_documents) {
            let mut body = String::new();
            loop {
                if self.at >= self.text.len() {
                    return self.fail("a here-document does not end");
                }
                let end = self.text[self.at..].iter().position(|c| *c == '\n').map(|end| self.at + end);
                let line: String = self.text[self.at..end.unwrap_or(self.text.len())].iter().collect();
                self.at = end.map_or(self.text.len(), |end| end + 1);
                if document.expands && line.ends_with('\\') {
                    // The shell joins the lines before it looks for the end.
                    self.script.note(UnknownReason::Syntax("a here-document has a continued line"));
                }
                let line = if document.strips_tabs { line.trim_start_matches('\t') } else { &line };
                if line == document.delimiter {
                    break;
                }
                body.push_str(line);
                body.push('\n');
            }
            if document.expands && body.contains(['$', '`', '\\']) {
                self.expand_text(&body);
            }
        }
    }
}

enum Keyword {
    None,
    /// The next word begins a command.
    Skip,
    /// The rest up to a separator is no command.
    End,
}

/// True if a command may change the folder of the shell.
pub(crate) fn changes_folder(words: &[ShellWord]) -> bool {
    let name = words.first().and_then(ShellWord::known);
    name.is_none_or(|name| matches!(name.as_str(), "cd" | "pushd" | "popd" | "eval" | "source" | "."))
        && !words.is_empty()
}

/// True for a word that is no program at the beginning of a command. Elsewhere it would be one with a strange name.
pub(super) fn is_reserved(word: &str) -> bool {
    KEYWORDS.contains(&word) || matches!(word, "!" | "{" | "}" | "[[")
}
