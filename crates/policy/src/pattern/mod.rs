//! Patterns of rules: command, path, host, and name.

pub(crate) mod command;
mod effects;
pub(crate) mod glob;
mod host;
mod path;

pub use command::CommandPattern;
pub use host::HostPattern;
pub(crate) use host::{host_of, hosts_in};
pub use path::PathPattern;
pub(crate) use path::{PathText, is_process_path, normalize};

use self::glob::{Certainty, GlobToken, known, matches};

/// The maximum length of a pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 2_048;

/// The reason why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("the pattern is empty: name something, or leave the key out")]
    Empty,
    #[error("the pattern is longer than {MAX_PATTERN_BYTES} bytes: use a shorter one")]
    TooLong,
    #[error("the command pattern {0:?} cannot be read as words of a shell: quote its special characters")]
    Command(String),
    #[error("the path pattern {0:?} has \"..\": write the path without it")]
    Path(String),
    #[error(
        "{0:?} is no host pattern: use a name such as \"example.com\", or \"*.example.com\" for all names below it"
    )]
    Host(String),
}

fn require_bounds(text: &str) -> Result<(), PatternError> {
    match text.len() {
        0 => Err(PatternError::Empty),
        length if length > MAX_PATTERN_BYTES => Err(PatternError::TooLong),
        _ => Ok(()),
    }
}

/// A pattern of a name: an agent, or an MCP tool as `server/tool`. `*` stands for any characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NamePattern {
    text: String,
    tokens: Vec<GlobToken>,
}

impl NamePattern {
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        require_bounds(text)?;
        let token = |c| if c == '*' { GlobToken::DoubleStar } else { GlobToken::Char(c) };
        Ok(Self { text: text.to_owned(), tokens: text.chars().map(token).collect() })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn matches(&self, name: &str) -> bool {
        matches(&self.tokens, &known(name)) == Certainty::Yes
    }
}
