//! The bounds of this crate that the table of limits names (`crates/limits`, `docs/limits.md`).

pub use crate::copy::list::MOST_FILES as COPIED_FILES;
pub use crate::path::MAX_PATH as PATH_BYTES;
pub use crate::temp_files::MOST_FILES as TEMP_FILES;
pub use crate::workspace::LARGEST_TEXT as WORKSPACE_TEXT_BYTES;
pub use crate::workspace::database::local::LONGEST as QUERY_TIME;
pub use crate::workspace::database::local::MOST_BYTES as QUERY_BYTES;
pub use crate::workspace::database::local::MOST_ROWS as QUERY_ROWS;
pub use crate::workspace::files::DEEPEST as WORKSPACE_DEPTH;
pub use crate::workspace::files::MOST_LISTED as WORKSPACE_FILES;
pub use crate::workspace::plan_history::LARGEST_HISTORY as PLAN_HISTORY_BYTES;
pub use crate::workspace::todos::MAX_PLAN as TODOS;
