//! The bounds of this crate that the table of limits names (`crates/limits`, `docs/limits.md`).

pub use crate::ahp::decode::MAX_ID as ACTION_ID_BYTES;
pub use crate::x_grove::sessions::row::MAX_ACTIVITY_CHARS as ROW_ACTIVITY_CHARS;
pub use crate::x_grove::sessions::row::MAX_ROW_CHANGES as ROW_CHANGES;
pub use crate::x_grove::sessions::row::MAX_ROW_CHATS as ROW_CHATS;
