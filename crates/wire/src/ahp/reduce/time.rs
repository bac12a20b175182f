//! Times as the protocol writes them.

use jiff::{SignedDuration, Timestamp};

/// The moment that comes `milliseconds` after one in RFC 3339, in UTC and to the millisecond. `None` where `start` is
/// no such moment, or where it would be beyond the years that there are.
pub(super) fn later(start: &str, milliseconds: i64) -> Option<String> {
    let start: Timestamp = start.parse().ok()?;
    let end = start.checked_add(SignedDuration::from_millis(milliseconds)).ok()?;
    Some(format!("{end:.3}"))
}
