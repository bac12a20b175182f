//! The bounds of this crate that the table of limits names (`crates/limits`, `docs/limits.md`).

pub use crate::policy::MOST_LINKS as LINKS;
pub use crate::repository::READ as GIT_FILE_BYTES;
