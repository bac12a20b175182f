//! The bounds of this crate that the table of limits names (`crates/limits`, `docs/limits.md`).

pub use crate::run::MAX_PENDING_HOSTS as PENDING_HOSTS;
pub use crate::run::host::GREETING as GREETING_TIME;
pub use crate::run::host::OUT_BYTES as HOST_BYTES;
pub use crate::wire::SMALL_BYTES as CONTROL_BYTES;
