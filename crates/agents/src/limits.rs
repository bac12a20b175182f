//! The bounds of this crate that the table of limits names (`crates/limits`, `docs/limits.md`).

pub use crate::acp::connection::CALLS as OPEN_CALLS;
pub use crate::acp::serve::files::READ_BYTES;
pub use crate::acp::session::contents::MOST_BYTES as REMEMBERED_CALL_BYTES;
pub use crate::acp::session::contents::MOST_CALLS as REMEMBERED_CALLS;
pub use crate::acp::session::process::ASKED as AGENT_REQUESTS;
pub use crate::acp::summary::LONGEST as SUMMARY_BYTES;
pub use crate::acp::summary::PATIENCE as SUMMARY_TIME;
pub use crate::scripted::LARGEST_SCRIPT as SCRIPT_BYTES;
