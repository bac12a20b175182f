//! Shell commands, taken apart into the commands that they would run.
//!
//! [`parse`] reads a subset of bash and POSIX sh: lists, pipes, subshells, groups, substitutions, quotes, redirections,
//! here-documents. It never runs or expands anything. A word that only a shell can know keeps its known pieces.
//!
//! Programs that run other programs (`sudo`, `env`, `xargs`, `find -exec`, `sh -c`) are opened, and the inner command
//! is listed as well. Everything that the parser does not know for certain is named in [`ShellScript::unknown`]; the commands that
//! it found are listed all the same, so that a rule can deny them.

mod builtins;
mod parser;
mod unwrap;
mod word;

pub(crate) use parser::changes_folder;

use crate::pattern::glob::{GlobToken, TextToken};

/// The maximum length of a command, in bytes.
pub const MAX_COMMAND_BYTES: usize = 64 * 1024;
/// The maximum number of commands in a script, inner ones included.
pub const MAX_COMMANDS: usize = 512;
/// The maximum number of words in all commands of a script.
pub const MAX_WORDS: usize = 4_096;
/// The maximum depth of subshells, substitutions and wrappers.
pub const MAX_DEPTH: usize = 12;

/// A parsed shell command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellScript {
    pub commands: Vec<Command>,
    /// Files that redirections read or write.
    pub accesses: Vec<FileAccess>,
    /// The reason why the list of commands may be incomplete.
    pub unknown: Option<UnknownReason>,
}

/// A simple command: a program and its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    pub assignments: Vec<Assignment>,
    pub words: Vec<ShellWord>,
    /// 0, or the number of wrappers and substitutions around it.
    pub depth: usize,
    /// True if another command of the list stands for it: a wrapper without an effect of its own, or the command that
    /// `sudo` runs. A rule may deny it, and no rule needs to allow it.
    pub is_covered: bool,
}

/// The setting of a variable before a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    pub name: String,
    pub value: ShellWord,
}

/// A file that a redirection opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileAccess {
    pub path: ShellWord,
    pub writes: bool,
    /// True if the shell may have changed its folder before.
    pub is_elsewhere: bool,
}

/// A word, with the pieces that are known before it is expanded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellWord {
    pub(crate) pieces: Vec<WordPiece>,
    /// True if it may become several words, or none.
    pub(crate) splits: bool,
    /// The number of unquoted characters at its beginning.
    pub(crate) plain: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WordPiece {
    Text(String),
    /// A character that matches file names.
    Glob(char),
    Unknown,
}

/// The reason why the commands of a script are not known for certain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownReason {
    #[error("the command cannot be parsed: {0}")]
    Syntax(&'static str),
    #[error(
        "the command is larger than {MAX_COMMAND_BYTES} bytes, {MAX_COMMANDS} commands, {MAX_WORDS} words or {MAX_DEPTH} levels"
    )]
    TooLarge,
    #[error("the name of a program is known only when the command runs")]
    ProgramName,
    #[error("{0:?} runs a command that is not known before")]
    Program(String),
}

impl UnknownReason {
    /// True if the text itself could not be read.
    pub(crate) fn is_unreadable(&self) -> bool {
        matches!(self, UnknownReason::Syntax(_) | UnknownReason::TooLarge)
    }
}

/// Takes a shell command apart.
pub fn parse(text: &str) -> ShellScript {
    let mut script = ShellScript::default();
    parser::parse_into(text, 0, &mut script);
    script
}

impl ShellScript {
    /// Notes a reason; one that the text cannot be read replaces others.
    pub(crate) fn note(&mut self, reason: UnknownReason) {
        if self.unknown.is_none() || reason.is_unreadable() && !self.is_unreadable() {
            self.unknown = Some(reason);
        }
    }

    pub(crate) fn is_unreadable(&self) -> bool {
        self.unknown.as_ref().is_some_and(UnknownReason::is_unreadable)
    }

    pub(crate) fn access(&mut self, access: FileAccess) {
        match self.accesses.len() < MAX_COMMANDS {
            true => self.accesses.push(access),
            false => self.note(UnknownReason::TooLarge),
        }
    }

    pub(crate) fn push(&mut self, mut command: Command) {
        let left = MAX_WORDS.saturating_sub(self.commands.iter().map(|command| command.words.len()).sum());
        if command.words.len() > left {
            self.note(UnknownReason::TooLarge);
            // Its first words still say what a rule may deny.
            command.words.truncate(left.max(1));
        }
        match self.commands.len() < MAX_COMMANDS {
            true => self.commands.push(command),
            false => self.note(UnknownReason::TooLarge),
        }
    }
}

/// Variables that change nothing but messages. Names that end in `_` stand for all that begin so.
const HARMLESS_VARIABLES: [&str; 22] = [
    "CARGO_TERM_COLOR",
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "DEBIAN_FRONTEND",
    "FORCE_COLOR",
    "LANG",
    "LANGUAGE",
    "LC_",
    "LINES",
    "NEXT_TELEMETRY_DISABLED",
    "NODE_ENV",
    "NO_COLOR",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "RUST_TEST_THREADS",
    "SOURCE_DATE_EPOCH",
    "TERM",
    "TZ",
];

impl Assignment {
    /// True if the value is known, and no later command can find an expression in it.
    pub(crate) fn is_literal(&self) -> bool {
        self.value.known().is_some_and(|value| !value.contains(['$', '`', '[']))
    }

    /// True if the variable cannot change which program runs or what it does.
    pub(crate) fn is_harmless(&self) -> bool {
        HARMLESS_VARIABLES.iter().any(|known| match known.ends_with('_') {
            true => self.name.starts_with(known),
            false => self.name == *known,
        })
    }
}

impl ShellWord {
    pub(crate) fn text(text: &str) -> Self {
        Self { pieces: vec![WordPiece::Text(text.to_owned())], splits: false, plain: 0 }
    }

    /// A word, or several words, that nothing is known about.
    pub(crate) fn unknown() -> Self {
        Self { pieces: vec![WordPiece::Unknown], splits: true, plain: 0 }
    }

    /// The whole word, if it is known.
    pub fn known(&self) -> Option<String> {
        let mut whole = String::new();
        for piece in &self.pieces {
            match piece {
                WordPiece::Text(text) => whole.push_str(text),
                WordPiece::Glob(_) | WordPiece::Unknown => return None,
            }
        }
        (!self.splits).then_some(whole)
    }

    /// True if the word is exactly this text.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.known().is_some_and(|known| known == text)
    }

    /// The pieces as tokens. What is between the first unquoted `[` and the last `]` is unknown.
    pub(crate) fn tokens(&self) -> Vec<TextToken> {
        let mut tokens = Vec::new();
        let mut open = None;
        for piece in &self.pieces {
            if *piece == WordPiece::Glob('[') {
                open.get_or_insert(tokens.len());
            }
            match piece {
                WordPiece::Text(text) => tokens.extend(text.chars().map(TextToken::Char)),
                WordPiece::Glob(_) => tokens.push(TextToken::UnknownName),
                WordPiece::Unknown => tokens.push(TextToken::Unknown),
            }
        }
        let close = tokens.iter().rposition(|token| *token == TextToken::Char(']'));
        if let (Some(open), Some(close)) = (open, close)
            && open < close
        {
            tokens.splice(open..=close, [TextToken::Unknown]);
        }
        tokens
    }

    /// The word as a pattern: an unquoted `*` is a wildcard. `None` if the word has an expansion.
    pub(crate) fn as_pattern(&self) -> Option<Vec<GlobToken>> {
        let mut tokens = Vec::new();
        for piece in &self.pieces {
            match piece {
                WordPiece::Text(text) => tokens.extend(text.chars().map(GlobToken::Char)),
                WordPiece::Glob('*') => tokens.push(GlobToken::DoubleStar),
                WordPiece::Glob(c) => tokens.push(GlobToken::Char(*c)),
                WordPiece::Unknown => return None,
            }
        }
        Some(tokens)
    }

    /// The word from a byte of a piece on, where that piece is text.
    pub(crate) fn part(&self, piece: usize, start: usize) -> Self {
        let mut pieces = self.pieces.get(piece..).unwrap_or_default().to_vec();
        if let Some(WordPiece::Text(text)) = pieces.first_mut() {
            *text = text.get(start..).unwrap_or_default().to_owned();
        }
        pieces.retain(|piece| *piece != WordPiece::Text(String::new()));
        Self { pieces, splits: self.splits, plain: 0 }
    }

    /// True if the word has an unknown piece, or characters in brackets that match file names.
    pub(crate) fn has_unknown(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, WordPiece::Unknown | WordPiece::Glob('[')))
    }

    /// The whole word, if it is known and has no quotes.
    pub(crate) fn plain(&self) -> Option<String> {
        self.known().filter(|text| text.chars().count() == self.plain)
    }

    /// The word after its last slash, if it has one and that is known.
    pub(crate) fn base_name(&self) -> Option<Self> {
        let WordPiece::Text(last) = self.pieces.last()? else { return None };
        let (_, name) = last.rsplit_once('/')?;
        Some(Self { pieces: vec![WordPiece::Text(name.to_owned())], splits: false, plain: 0 })
    }

    /// The word for people: unknown pieces are shown as `…`.
    pub fn display(&self) -> String {
        let piece = |piece: &WordPiece| match piece {
            WordPiece::Text(text) => text.clone(),
            WordPiece::Glob(c) => c.to_string(),
            WordPiece::Unknown => "…".to_owned(),
        };
        self.pieces.iter().map(piece).collect()
    }
}

/// A word quoted for a shell, so that it is read as exactly this text.
pub fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
