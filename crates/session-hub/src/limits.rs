//! The bounds of this crate that the table of limits names (`crates/limits`, `docs/limits.md`).

pub use crate::LINGER as LINGER_TIME;
pub use crate::active_hub::FIRST_LIST as FIRST_LIST_TIME;
pub use crate::active_hub::MAX_DETACHED_VIEWERS as DETACHED_VIEWERS;
pub use crate::host_lists::ASKED_AT_ONCE as HOSTS_AT_ONCE;
pub use crate::host_lists::TIMEOUT as HOST_TIME;
pub use crate::publisher::FRAMES as PENDING_FRAMES;
pub use crate::throttle::ACTIVITY_INTERVAL as ACTIVITY_TIME;
