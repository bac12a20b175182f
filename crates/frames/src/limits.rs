//! The bounds of this crate that the table of limits names (`crates/limits`, `docs/limits.md`).

pub use crate::file::MAX_BYTES as LOGGED_BYTES;
pub use crate::file::MAX_FRAMES as LOGGED_FRAMES;
pub use crate::redaction::MAX_DEPTH as LOGGED_DEPTH;
