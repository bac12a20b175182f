//! The bounds of this crate that the table of limits names (`crates/limits`, `docs/limits.md`).

pub use crate::conversation::MAX_RESULT as TOOL_RESULT_CHARS;
pub use crate::damage::MAX_DAMAGE as DAMAGE_ITEMS;
pub use crate::preview::MAX_PREVIEW_CHARS as PREVIEW_CHARS;
