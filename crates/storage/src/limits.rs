//! The bounds of this crate that the table of limits names (`crates/limits`, `docs/limits.md`).

pub use crate::journal::files::LINE_BYTES as JOURNAL_LINE_BYTES;
pub use crate::journal::files::SEGMENT_BYTES;
pub use crate::store::chat_log::info_entries::MAX_INFO_BYTES as LOG_INFO_BYTES;
pub use crate::store::chat_log::info_entries::MAX_INFO_ENTRIES as LOG_INFO_ENTRIES;
pub use crate::store::register::MAX_REGISTERED as CLIENT_STORED_SESSIONS;
pub use crate::store::setup_file::MAX_BYTES as SETUP_FILE_BYTES;
pub use crate::store::stores::MAX_NAME as STORE_NAME_BYTES;
