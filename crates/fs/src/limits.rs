//! The bounds of this crate that the table of limits names (`crates/limits`, `docs/limits.md`).

pub use crate::copy::list::DEEPEST as COPIED_DEPTH;
pub use crate::copy::list::MOST_FILES as COPIED_FILES;
pub use crate::names::MAX_PART as NAME_PART_BYTES;
pub use crate::path::MAX_PATH as PATH_BYTES;
pub use crate::rpc::unconfirmed::MOST_FILES as UNCONFIRMED_FILES;
pub use crate::temp_files::MOST_FILES as TEMP_FILES;
pub use crate::workspace::LARGEST_MANIFEST as MANIFEST_BYTES;
pub use crate::workspace::LARGEST_TEXT as WORKSPACE_TEXT_BYTES;
pub use crate::workspace::database::local::LONGEST as QUERY_TIME;
pub use crate::workspace::database::local::MOST_BYTES as QUERY_BYTES;
pub use crate::workspace::database::local::MOST_ROWS as QUERY_ROWS;
pub use crate::workspace::files::DEEPEST as WORKSPACE_DEPTH;
pub use crate::workspace::files::MOST_LISTED as WORKSPACE_FILES;
pub use crate::workspace::plan_history::LARGEST_HISTORY as PLAN_HISTORY_BYTES;
pub use crate::workspace::plan_history::LONGEST_PLAN as RECORDED_PLAN_BYTES;
pub use crate::workspace::todos::MAX_PLAN as TODOS;
pub use crate::workspace::todos::MAX_TITLE as TODO_TITLE;
