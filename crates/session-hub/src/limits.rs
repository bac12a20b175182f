//! The bounds of this crate that the table of limits names (`crates/limits`, `docs/limits.md`).

pub use crate::active_hub::MAX_DETACHED_VIEWERS as DETACHED_VIEWERS;
pub use crate::host_lists::ASKED_AT_ONCE as HOSTS_AT_ONCE;
pub use crate::publisher::FRAMES as PENDING_FRAMES;
