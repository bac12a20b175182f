//! The bounds of this crate that the table of limits names (`crates/limits`, `docs/limits.md`).

pub use crate::management::EVENTS as LIST_EVENTS;
pub use crate::provider::send::MAX_ATTACHMENT_BYTES as ATTACHMENT_BYTES;
pub use crate::provider::send::MAX_ATTACHMENTS as ATTACHMENTS;
pub use crate::provider::send::MAX_QUERY_BYTES as QUERY_BYTES;
pub use crate::providers::history::MAX_SESSIONS as HISTORIES;
pub use crate::providers::hosts::browse::MAX_OFFERS as OFFERS;
pub use crate::providers::hosts::cache::MAX_CACHED_ROWS as CACHED_ROWS;
pub use crate::providers::hosts::details::MAX_CHANGES as CHANGES;
pub use crate::providers::hosts::details::MAX_WAITING as SESSION_WAITING;
pub use crate::providers::hosts::drafts::MAX_DRAFTS as DRAFTS;
pub use crate::providers::hosts::driver::MAX_FOLLOWED as FOLLOWED_SESSIONS;
pub use crate::providers::hosts::driver::MAX_WAITING_FOLLOWED as FOLLOWED_WAITING;
pub use crate::providers::hosts::follow::MAX_CHATS as FOLLOWED_CHATS;
pub use crate::providers::hosts::table::MAX_ROWS as HOST_ROWS;
pub use crate::state_store::MAX_LAST_CHATS as LAST_CHATS;
pub use crate::state_store::MAX_PINS as PINS;
pub use crate::state_store::MAX_TRUST_ANSWERS as TRUST_ANSWERS;
