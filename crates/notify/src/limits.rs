//! The bounds of this crate that the table of limits names (`crates/limits`, `docs/limits.md`).

pub use crate::delivery::MAX_ATTEMPTS as ATTEMPTS;
pub use crate::delivery::MAX_DELIVERIES as DELIVERIES;
pub use crate::delivery::MAX_PAUSE as PAUSE;
pub use crate::http::address::MAX_URL_BYTES as URL_BYTES;
pub use crate::http::client::MAX_ANSWER_BYTES as ANSWER_BYTES;
pub use crate::http::client::REQUEST_TIME;
pub use crate::notice::MAX_TEXT_CHARS as TEXT_CHARS;
pub use crate::notice::MAX_TITLE_CHARS as TITLE_CHARS;
pub use crate::notifier::MAX_EVENTS as EVENTS;
pub use crate::planner::ATTENDED_TIME;
pub use crate::planner::MAX_OPEN_NOTICES as OPEN_NOTICES;
pub use crate::planner::MAX_OPEN_REQUESTS as OPEN_REQUESTS;
pub use crate::planner::MAX_RATE as RATE;
pub use crate::planner::RATE_TIME;
pub use crate::planner::SETTLE_TIME;
pub use crate::push::devices::MAX_DEVICE_NAME as DEVICE_NAME;
pub use crate::push::devices::MAX_DEVICES as DEVICES;
pub use crate::push::devices::MAX_TOKEN_DEVICES as TOKEN_DEVICES;
pub use crate::push::encryption::MAX_MESSAGE_BYTES as MESSAGE_BYTES;
pub use crate::quiet::MAX_QUIET_BYTES as QUIET_BYTES;
