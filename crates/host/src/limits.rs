//! The bounds of this crate that the table of limits names (`crates/limits`, `docs/limits.md`).

pub use crate::editors::ANSWER_TIMEOUT as EDITOR_TIMEOUT;
pub use crate::editors::QUESTIONS as EDITOR_QUESTIONS;
pub use crate::eviction::MAX_TRACKED_SESSIONS as TRACKED_SESSIONS;
pub use crate::host::creation::MAX_DIRECTORIES as DIRECTORIES;
pub use crate::removal::MAX_LISTED as DELETED_SESSIONS;
pub use crate::sequencer::BATCH as SEQUENCER_BATCH;
pub use crate::sequencer::INBOX as SEQUENCER_INBOX;
pub use crate::session::INBOX as SESSION_INBOX;
pub use crate::session::agents::REPORTS as AGENT_REPORTS;
pub use crate::session::reports::MAX_COMMANDS as AGENT_COMMANDS;
pub use crate::session::tree::ENTRIES_BYTES;
pub use crate::session::tree::summarize::HOOK_BYTES;
pub use crate::session::workspace::request_queue::MAX_QUEUED_REQUESTS as WORKSPACE_REQUESTS;
