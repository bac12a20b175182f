//! The bounds of this crate that the table of limits names (`crates/limits`, `docs/limits.md`).

pub use crate::content::SHOWN_BYTES as SHOWN_CONTENT;
pub use crate::editor::OPEN_CALLS as REQUESTS_TO_EDITOR;
pub use crate::editor::QUEUE as QUEUED_UPDATES;
pub use crate::follower::OPEN_QUESTIONS;
pub use crate::follower::REPLAYED_TURNS;
pub use crate::host::HOST_PATIENCE;
pub use crate::methods::START as START_TIME;
pub use crate::server::OPEN_REQUESTS as EDITOR_REQUESTS;
pub use crate::session::OPEN_PROMPTS;
pub use crate::session_list::PAGE as LISTED_SESSIONS;
pub use crate::sessions::OPEN_SESSIONS;
