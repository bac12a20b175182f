//! The bounds of this crate that the table of limits names (`crates/limits`, `docs/limits.md`).

pub use crate::grammar::MAX_FILE_BYTES as FILE_BYTES;
pub use crate::grammar::MAX_FILE_PATTERNS as FILE_PATTERNS;
pub use crate::grammar::MAX_REASON_BYTES as REASON_BYTES;
pub use crate::judge::MAX_FOLDERS as FOLDERS;
pub use crate::judge::MAX_PATHS as PATHS;
pub use crate::pattern::MAX_PATTERN_BYTES as PATTERN_BYTES;
pub use crate::pattern::command::MAX_WORDS as PATTERN_WORDS;
pub use crate::rule::MAX_PATTERNS as RULE_PATTERNS;
pub use crate::rule::MAX_RULES as RULES;
pub use crate::shell::MAX_COMMAND_BYTES as COMMAND_BYTES;
pub use crate::shell::MAX_COMMANDS as COMMANDS;
pub use crate::shell::MAX_DEPTH as DEPTH;
pub use crate::shell::MAX_WORDS as WORDS;
