//! The bounds of this crate that the table of limits names (`crates/limits`, `docs/limits.md`).

pub use crate::change::MAX_COPIED_BYTES as COPIED_BYTES;
pub use crate::change::grants::MAX_WRITE_GRANTS as WRITE_GRANTS;
pub use crate::change::survey::MAX_CHANGED_DEPTH as CHANGED_DEPTH;
pub use crate::change::survey::MAX_CHANGED_ENTRIES as CHANGED_ENTRIES;
pub use crate::policy::MOST_COMPARED as COMPARED_FILES;
pub use crate::policy::MOST_LINKS as LINKS;
pub use crate::repository::LONGEST_NAME as BRANCH_NAME_BYTES;
pub use crate::repository::READ as GIT_FILE_BYTES;
pub use crate::repository::config::LONGEST as GIT_VALUE_BYTES;
pub use crate::repository::config::MOST as GIT_VARIABLES;
pub use crate::terminal::MAX_INPUTS as TERMINAL_INPUTS;
