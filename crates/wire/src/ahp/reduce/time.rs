//! Times in the protocol's format.

use jiff::{SignedDuration, Timestamp};

/// The time `milliseconds` after an RFC 3339 time, in UTC and to the millisecond. `None` if `start` is invalid, or the
/// result is out of range.
pub(super) fn later(start: &str, milliseconds: i64) -> Option<String> {
    let start: Timestamp = start.parse().ok()?;
    let end = start.checked_add(SignedDuration::from_millis(milliseconds)).ok()?;
    Some(format!("{end:.3}"))
}
